//! Histogram of latencies in nanoseconds, to a precision of 1 %.

use hdrhistogram::Histogram as Counts;
use std::time::Duration;

/// Longest latency that is recorded exactly: some 18 minutes. Longer ones count as this.
const LONGEST: u64 = 1 << 40;
/// Significant decimal digits of a recorded latency.
const DIGITS: u8 = 2;

/// Counts of latencies.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Counts<u64>,
    sum: u128,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let counts = Counts::new_with_max(LONGEST, DIGITS);
        Self {
            counts: counts.expect("two digits and a bound above two are allowed"),
            sum: 0,
            max: 0,
        }
    }
}

impl Histogram {
    pub fn add(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts.saturating_record(ns);
        self.sum += u128::from(ns);
        self.max = self.max.max(ns);
    }

    pub fn merge(&mut self, other: &Self) {
        // Both have the same bounds.
        let _ = self.counts.add(&other.counts);
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    pub fn mean(&self) -> Duration {
        Duration::from_nanos((self.sum / u128::from(self.count().max(1))) as u64)
    }

    /// The latency that a share `q` of all does not exceed.
    pub fn quantile(&self, q: f64) -> Duration {
        Duration::from_nanos(self.counts.value_at_quantile(q).min(self.max))
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
        // A time beyond the last bucket is counted in it.
        h.add(Duration::from_secs(10_000));
        let last = h.quantile(1.0).as_nanos() as f64 / LONGEST as f64;
        assert!((1.0..1.01).contains(&last), "{last}");
        assert_eq!((h.count(), h.max()), (10_001, Duration::from_secs(10_000)));
    }
}
