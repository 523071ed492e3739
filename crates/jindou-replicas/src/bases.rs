//! Decisions of a server with some shards of a store about its bases: when it proposes to commit a merge, when it uploads
//! its shards, and how long it keeps bases that were replaced. Without I/O, so that the simulator runs the same code.

use crate::machine::{Time, planted};
#[cfg(any(test, feature = "testing"))]
use crate::simulate::Fault;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time for which no server may have said that it reads a base or an older one, before the base is released. A server that
/// is not connected for a moment does not say so.
const UNUSED: Duration = Duration::from_secs(10);
/// Time for which slow holders are waited for once each shard of a new base has one.
const SLOW_HOLDERS: Duration = Duration::from_secs(60);
/// Time for which the others leave the proposal to the writer.
const WRITER_FIRST: Duration = Duration::from_secs(2);

/// The bases of a server's shards. A base has the number of the last snapshot that it contains.
#[derive(Debug, Default)]
pub struct HeldBases {
    /// The newest base that is committed; queries read it that begin now.
    committed: u64,
    /// Bases that were replaced: since when, and since when no server reads them or older ones.
    replaced: BTreeMap<u64, (Time, Option<Time>)>,
    /// A base that is not committed, and since when each shard of it has a holder.
    complete: Option<(u64, Time)>,
    #[cfg(any(test, feature = "testing"))]
    fault: Option<Fault>,
}

impl HeldBases {
    /// Injects a fault.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn with_fault(mut self, fault: Option<Fault>) -> Self {
        self.fault = fault;
        self
    }

    /// Takes note of the base of a published snapshot, and of the snapshot that started the merge that is open in it.
    /// Returns true if the base was committed since the last call, so that its shards are to be uploaded.
    pub fn published(&mut self, base: u64, open_merge: Option<u64>) -> bool {
        // A server that starts between the two records of a merge opens the merge's base.
        let is_open = open_merge.is_some_and(|started| started <= base);
        let is_new = !is_open && base > self.committed;
        if is_new || planted!(self, UploadForgotten) {
            self.committed = base;
        }
        is_new
    }

    /// True if this server should propose now to commit the open merge: each of the `shards` of its base has a holder, and
    /// all servers have the base of all their shards, or some time has passed. `servers` are this one and the connected
    /// ones, each with its shards and their bases.
    pub fn proposes_commit(
        &mut self,
        (base, shards): (u64, u32),
        servers: &[Vec<(u32, u64)>],
        is_writer: bool,
        now: Time,
    ) -> bool {
        let has = |held: &Vec<(u32, u64)>, shard| held.contains(&(shard, base));
        let has_holder = |shard| servers.iter().any(|held| has(held, shard));
        if !(0..shards).all(has_holder) && !planted!(self, CommittedTooEarly) {
            return false;
        }
        let complete = self.complete.filter(|(of, _)| *of == base);
        let (_, since) = *self.complete.insert(complete.unwrap_or((base, now)));
        let is_behind = |held: &Vec<(u32, u64)>| held.iter().any(|(shard, _)| !has(held, *shard));
        let waits = servers.iter().any(is_behind) && !planted!(self, CommittedTooEarly);
        (!waits || now.since(since) >= SLOW_HOLDERS)
            && (is_writer || now.since(since) > WRITER_FIRST)
    }

    /// The bases to release now, of those that are served. `oldest_in_use` is the oldest base that a connected server
    /// reads.
    pub fn due(
        &mut self,
        (served, oldest_in_use): (impl IntoIterator<Item = u64>, u64),
        patience: Duration,
        now: Time,
    ) -> Vec<u64> {
        let known = std::mem::take(&mut self.replaced);
        let mut due = Vec::new();
        for base in served.into_iter().filter(|base| *base < self.committed) {
            let (replaced, unused) = known.get(&base).copied().unwrap_or((now, None));
            let unused = (base < oldest_in_use).then(|| unused.unwrap_or(now));
            let is_unused = unused.is_some_and(|since| now.since(since) >= UNUSED);
            match is_unused || now.since(replaced) >= patience || planted!(self, ReleasedInUse) {
                true => due.push(base),
                false => drop(self.replaced.insert(base, (replaced, unused))),
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time(seconds * 1_000_000)
    }

    #[test]
    fn a_base_is_kept_while_it_is_read_and_at_most_for_the_patience() {
        let mut bases = HeldBases::default();
        assert!(bases.published(9, None));
        let patience = Duration::from_secs(100);
        let mut due = |seconds: u64, served: &[u64], in_use: u64| {
            bases.due((served.iter().copied(), in_use), patience, at(seconds))
        };
        assert!(due(0, &[3, 9], 3).is_empty());
        assert!(due(50, &[3, 9], 3).is_empty());
        // Another server does not say for a moment that it reads it.
        assert!(due(60, &[3, 9], 7).is_empty());
        assert!(due(65, &[3, 9], 3).is_empty());
        assert!(due(72, &[3, 9], 7).is_empty());
        assert!(due(81, &[3, 7, 9], 8).is_empty());
        assert_eq!(due(82, &[3, 7, 9], 8), [3]);
        // It is read, and too old.
        assert!(due(83, &[7, 9], 7).is_empty());
        assert!(due(180, &[7, 9], 7).is_empty());
        assert_eq!(due(181, &[7, 9], 7), [7]);
        assert!(due(182, &[9, 10], 9).is_empty());
    }

    #[test]
    fn shards_are_uploaded_once_their_base_is_committed() {
        let mut bases = HeldBases::default();
        assert!(!bases.published(0, None) && !bases.published(0, Some(4)));
        assert!(bases.published(5, None) && !bases.published(5, None));
        // It ended before a merge was committed whose base it had, and starts again.
        let mut bases = HeldBases::default();
        assert!(!bases.published(5, Some(4)) && bases.published(5, None));
        // The next merge was started meanwhile.
        assert!(HeldBases::default().published(5, Some(6)));
    }

    #[test]
    fn a_commit_waits_for_all_holders_and_the_writer_proposes_it_first() {
        let mut bases = HeldBases::default();
        let (old, new) = (vec![(0, 3), (1, 3)], vec![(0, 3), (0, 7)]);
        let mut proposes = |servers: &[&Vec<(u32, u64)>], is_writer: bool, seconds: u64| {
            let servers: Vec<_> = servers.iter().copied().cloned().collect();
            bases.proposes_commit((7, 2), &servers, is_writer, at(seconds))
        };
        assert!(!proposes(&[&new, &old], true, 0));
        let both = vec![(0, 7), (1, 3), (1, 7)];
        assert!(!proposes(&[&new, &both], false, 100));
        assert!(proposes(&[&new, &both], true, 100));
        assert!(proposes(&[&new, &both], false, 103));
        assert!(!proposes(&[&new, &both, &old], true, 159));
        assert!(proposes(&[&new, &both, &old], true, 160));
    }
}
