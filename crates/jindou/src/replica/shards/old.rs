//! When a server releases the bases that merges replaced.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A base is released only if no server has reported reading it, or an older base, for this time. A server that is
/// briefly disconnected does not report.
const UNUSED: Duration = Duration::from_secs(10);

/// Replaced bases by number: the time of the replacement, and the time since which no server has reported reading this
/// base or an older one.
#[derive(Default)]
pub(super) struct OldBases(BTreeMap<u64, (Instant, Option<Instant>)>);

impl OldBases {
    /// The bases to release now. `old` are the replaced bases that are still served; `oldest_in_use` is the oldest base
    /// that a connected server reads.
    pub(super) fn due(
        &mut self,
        (old, oldest_in_use): (impl Iterator<Item = u64>, u64),
        patience: Duration,
        now: Instant,
    ) -> Vec<u64> {
        let known = std::mem::take(&mut self.0);
        let mut due = Vec::new();
        for base in old {
            let (replaced, unused) = known.get(&base).copied().unwrap_or((now, None));
            let unused = (base < oldest_in_use).then(|| unused.unwrap_or(now));
            let is_unused = unused.is_some_and(|since| now.duration_since(since) >= UNUSED);
            match is_unused || now.duration_since(replaced) >= patience {
                true => due.push(base),
                false => drop(self.0.insert(base, (replaced, unused))),
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_kept_while_it_is_read_and_at_most_for_the_patience() {
        let begun = Instant::now();
        let mut bases = OldBases::default();
        let patience = Duration::from_secs(100);
        let mut due = |seconds: u64, old: &[u64], in_use: u64| {
            let now = begun + Duration::from_secs(seconds);
            bases.due((old.iter().copied(), in_use), patience, now)
        };
        assert!(due(0, &[3], 3).is_empty());
        assert!(due(50, &[3], 3).is_empty());
        // The other server does not report for a moment that it reads base 3.
        assert!(due(60, &[3], 7).is_empty());
        assert!(due(65, &[3], 3).is_empty());
        assert!(due(72, &[3], 7).is_empty());
        assert!(due(81, &[3, 7], 8).is_empty());
        assert_eq!(due(82, &[3, 7], 8), [3]);
        // Base 7 is still read, but replaced for longer than the patience.
        assert!(due(83, &[7], 7).is_empty());
        assert!(due(180, &[7], 7).is_empty());
        assert_eq!(due(181, &[7], 7), [7]);
        assert!(due(182, &[], 9).is_empty());
    }
}
