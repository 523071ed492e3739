//! Latencies in buckets whose width grows with them: 64 to each power of two, so a value is known to 1.6 %.

use std::time::Duration;

const SUB: u32 = 6;
const SUBS: usize = 1 << SUB;
/// Up to 2^40 ns, some 18 minutes; what is longer counts there.
const BUCKETS: usize = (40 - SUB as usize + 1) * SUBS;

/// Counts of latencies.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS],
            count: 0,
            sum: 0,
            max: 0,
        }
    }
}

fn bucket(ns: u64) -> usize {
    let ns = ns.max(SUBS as u64);
    let power = 63 - ns.leading_zeros();
    let at = (power - SUB + 1) as usize * SUBS + (ns >> (power - SUB)) as usize - SUBS;
    at.min(BUCKETS - 1)
}

/// The upper end of a bucket.
fn value(bucket: usize) -> u64 {
    let (power, sub) = (bucket / SUBS, bucket % SUBS);
    if power == 0 {
        return SUBS as u64;
    }
    ((SUBS + sub + 1) as u64) << (power - 1)
}

impl Histogram {
    pub fn add(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(ns)] += 1;
        self.count += 1;
        self.sum += u128::from(ns);
        self.max = self.max.max(ns);
    }

    pub fn merge(&mut self, other: &Self) {
        for (a, b) in self.counts.iter_mut().zip(&other.counts) {
            *a += b;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    pub fn mean(&self) -> Duration {
        Duration::from_nanos((self.sum / u128::from(self.count.max(1))) as u64)
    }

    /// The latency that a share `q` of all does not exceed.
    pub fn quantile(&self, q: f64) -> Duration {
        let rank = ((q * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (i, n) in self.counts.iter().enumerate() {
            seen += n;
            if seen >= rank {
                return Duration::from_nanos(value(i).min(self.max));
            }
        }
        self.max()
    }

    /// (latency, share that does not exceed it) for each bucket that has any.
    pub fn cumulative(&self) -> Vec<(Duration, f64)> {
        let mut seen = 0;
        let mut out = vec![];
        for (i, &n) in self.counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            seen += n;
            let at = Duration::from_nanos(value(i).min(self.max));
            out.push((at, seen as f64 / self.count as f64));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_near_the_exact_ones() {
        let mut h = Histogram::default();
        let mut all: Vec<u64> = (0..10_000u64).map(|i| (i * i * 37) % 90_000_017).collect();
        for &ns in &all {
            h.add(Duration::from_nanos(ns));
        }
        all.sort_unstable();
        for q in [0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let exact = all[((q * all.len() as f64).ceil() as usize).max(1) - 1] as f64;
            let got = h.quantile(q).as_nanos() as f64;
            assert!(
                got >= exact - 1.0 && got <= exact * 1.017 + 65.0,
                "{q}: {got} for {exact}"
            );
        }
        assert_eq!(h.max(), Duration::from_nanos(*all.last().unwrap()));
        let cdf = h.cumulative();
        assert!(cdf.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 < w[1].1));
        assert_eq!(cdf.last().unwrap().1, 1.0);
        h.add(Duration::from_secs(10_000));
        assert_eq!(
            h.quantile(1.0),
            Duration::from_secs(10_000)
                .min(h.max())
                .min(Duration::from_nanos(value(BUCKETS - 1)))
        );
    }
}
