//! Speed-up and efficiency, and projections from the measured times to more cores than the machine has.

/// Measurements of one way to run a workload.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// ST, LT, SD or LD: small or large footprint, task or data parallelism.
    pub model: &'static str,
    pub cold: bool,
    /// Names of the partition and of the way of gathering; empty for task parallelism.
    pub way: String,
    pub workers: u32,
    /// Seconds that one worker takes for the same queries if it gets all at once and sends nothing meanwhile.
    pub serial: f64,
    pub seconds: f64,
    /// Part of `seconds` in which workers compute: with task parallelism the mean of all workers, with data parallelism
    /// the longest of each round.
    pub compute: f64,
    /// Part of `seconds` in which the master works: handing out queries, or joining results and running the remaining
    /// query.
    pub master: f64,
    /// Mean and standard deviation over the workers of their queries (task parallelism) or their rows of a round (data
    /// parallelism).
    pub balance: [f64; 2],
    /// Processor time of the workers while they compute, divided by that time.
    pub processor: f64,
}

impl Line {
    pub fn speed_up(&self) -> f64 {
        self.serial / self.seconds.max(1e-12)
    }

    /// Number of cores as the paper counts them, including the master's.
    pub fn cores(&self) -> u32 {
        self.workers + 1
    }

    /// Efficiency as in the paper: speed-up divided by cores.
    pub fn by_cores(&self) -> f64 {
        self.speed_up() / f64::from(self.cores())
    }

    /// Efficiency without the master's core.
    pub fn by_workers(&self) -> f64 {
        self.speed_up() / f64::from(self.workers)
    }

    /// Seconds in which neither a worker computes nor the master works: messages, and waiting for the last worker.
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

/// Gunther's Universal Scalability Law (Guerrilla Capacity Planning, 2007, chapter 4): with `w` workers `T(w) = T(1) (1
/// + σ (w − 1) + κ w (w − 1)) / w`. σ is the serial share, κ the cost of contention between each pair of workers.
///
/// Times of one and two workers determine only one parameter, so the two extremes are computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    one: f64,
    /// Lower bound of the time: the master's work, which more workers do not shorten.
    least: f64,
    pub serial_share: f64,
    pub contention: f64,
}

impl Fit {
    /// Fits the times of one and of two workers, attributing all of the loss to serial work (Amdahl's law). This is the
    /// upper bound of the speed-up.
    pub fn serial(one: &Line, two: &Line) -> Self {
        Self {
            one: one.seconds,
            least: one.master,
            serial_share: excess(one, two).max(0.0),
            contention: 0.0,
        }
    }

    /// Fits the same times, attributing to serial work only the master's share of the time, and the rest of the loss to
    /// contention. This is the lower bound of the speed-up. If the master's work alone explains the loss, the same as
    /// [`Self::serial`].
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

    /// The projected time with this many workers.
    pub fn seconds(&self, workers: u32) -> f64 {
        let w = f64::from(workers.max(1));
        let more = self.serial_share * (w - 1.0) + self.contention * w * (w - 1.0);
        (self.one * (1.0 + more) / w).max(self.least)
    }
}

/// The time of two workers relative to half of the time of one, minus 1.
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
                // Two workers that are more than twice as fast as one are fitted as exactly twice as fast.
                let two = two.seconds.max(5.0);
                assert!((fit.seconds(2) - two).abs() < 1e-9, "{fit:?}");
                assert!(fit.seconds(47) >= master);
            }
            assert!(most.seconds(47) <= least.seconds(47));
        }
        // Amdahl's law without contention: with σ = 0.02, 47 workers are at most 24.5 times as fast.
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
