//! Speed-up, efficiency, and what the measured points say about more cores than there are.

/// One measured way to run a workload.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// ST, LT, SD or LD: small or large footprint, task or data parallelism.
    pub model: &'static str,
    pub cold: bool,
    /// Partition and gathering; empty for task parallelism.
    pub way: String,
    pub workers: u32,
    /// The same queries by one worker that gets all at once and sends nothing meanwhile.
    pub serial: f64,
    pub seconds: f64,
    /// Of `seconds`: in which the workers computed; the mean of all workers with task parallelism, the longest of each round with data
    /// parallelism.
    pub compute: f64,
    /// Of `seconds`: in which the master was at work: handing out, or joining and running what is left.
    pub master: f64,
    /// Mean and standard deviation over workers: queries with task parallelism, rows of a round with data parallelism.
    pub balance: [f64; 2],
    /// Processor time over time, of the workers while they compute.
    pub processor: f64,
}

impl Line {
    pub fn speed_up(&self) -> f64 {
        self.serial / self.seconds.max(1e-12)
    }

    /// The paper's cores: one is the master's.
    pub fn cores(&self) -> u32 {
        self.workers + 1
    }

    /// The paper's efficiency.
    pub fn by_cores(&self) -> f64 {
        self.speed_up() / f64::from(self.cores())
    }

    /// Efficiency if the master's core is not counted.
    pub fn by_workers(&self) -> f64 {
        self.speed_up() / f64::from(self.workers)
    }

    /// Seconds that neither computing nor the master's work explains: messages, waiting for the last worker.
    pub fn rest(&self) -> f64 {
        (self.seconds - self.compute - self.master).max(0.0)
    }
}

/// Mean and standard deviation (of the whole population).
pub fn mean_and_deviation(values: impl Iterator<Item = f64> + Clone) -> [f64; 2] {
    let n = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / n;
    let variance = values.map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
    [mean, variance.sqrt()]
}

/// Gunther's Universal Scalability Law (Guerrilla Capacity Planning, 2007, chapter 4): with `w` workers
/// `T(w) = T(1) (1 + σ (w − 1) + κ w (w − 1)) / w`. σ is what only one can do at a time, κ what each pair costs.
///
/// Two points tell one parameter, so there are two ends of what they may mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    one: f64,
    /// The master's work, which more workers do not shorten.
    least: f64,
    pub serial_share: f64,
    pub contention: f64,
}

impl Fit {
    /// Through the times of one and of two workers, where all that two workers lose is serial (Amdahl's law): the most that more cores
    /// can give.
    pub fn serial(one: &Line, two: &Line) -> Self {
        Self {
            one: one.seconds,
            least: one.master,
            serial_share: excess(one, two).max(0.0),
            contention: 0.0,
        }
    }

    /// Through the same, where only the share of one worker's time in which the master is at work is serial, and pairs of workers lose the
    /// rest: the least. Nothing is left for pairs where the master alone explains the loss.
    pub fn contended(one: &Line, two: &Line) -> Self {
        let master = (one.master / one.seconds.max(1e-12)).clamp(0.0, 1.0);
        let rest = excess(one, two) - master;
        if rest <= 0.0 {
            return Self::serial(one, two);
        }
        Self {
            one: one.seconds,
            least: one.master,
            serial_share: master,
            contention: rest / 2.0,
        }
    }

    /// The time with this many workers; never less than the master works.
    pub fn seconds(&self, workers: u32) -> f64 {
        let w = f64::from(workers.max(1));
        let more = self.serial_share * (w - 1.0) + self.contention * w * (w - 1.0);
        (self.one * (1.0 + more) / w).max(self.least)
    }
}

/// By how much more than half of one worker's time two take, as a part of that half.
fn excess(one: &Line, two: &Line) -> f64 {
    2.0 * two.seconds / one.seconds.max(1e-12) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(workers: u32, seconds: f64, master: f64) -> Line {
        Line {
            workers,
            serial: 10.0,
            seconds,
            master,
            ..Line::default()
        }
    }

    #[test]
    fn a_fit_goes_through_both_points() {
        for (one, two, master) in [
            (10.0, 5.0, 0.0),
            (10.0, 6.0, 0.5),
            (10.0, 12.0, 1.0),
            (10.0, 5.1, 3.0),
            (10.0, 4.8, 3.0),
        ] {
            let (one, two) = (line(1, one, master), line(2, two, master));
            let (most, least) = (Fit::serial(&one, &two), Fit::contended(&one, &two));
            for fit in [most, least] {
                assert!((fit.seconds(1) - one.seconds).abs() < 1e-9);
                // Two workers that are faster than twice one are taken to be twice as fast.
                let two = two.seconds.max(5.0);
                assert!((fit.seconds(2) - two).abs() < 1e-9, "{fit:?}");
                assert!(fit.seconds(47) >= master);
            }
            assert!(most.seconds(47) <= least.seconds(47));
        }
        // Amdahl's law where pairs cost nothing: σ of 0.02 limits 47 workers to 24.5.
        let fit = Fit::serial(&line(1, 10.0, 0.2), &line(2, 5.1, 0.2));
        assert!((10.0 / fit.seconds(47) - 24.479).abs() < 1e-3);
    }

    #[test]
    fn efficiency_counts_the_masters_core_as_the_paper_does() {
        let l = line(2, 5.0, 0.0);
        assert_eq!((l.speed_up(), l.by_workers()), (2.0, 1.0));
        assert!((l.by_cores() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(mean_and_deviation([1.0, 3.0].into_iter()), [2.0, 1.0]);
    }
}
