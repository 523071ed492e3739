//! Requests with a client's key that were executed in the last minutes, so that a repeated request is not executed
//! again. They are part of a snapshot, and of the record of their transaction, so they are as durable as its changes.

use crate::snapshot::Snapshot;
use jindou_graph::segment::CowTree;

/// Microseconds for which a request is certain to be remembered. It is forgotten at most this much later.
const KEPT: u64 = 600_000_000;
/// Number of requests above which they are forgotten earlier.
const MOST: usize = 1 << 20;
/// Number of words that encode one request.
pub(crate) const NUMBERS: usize = 10;

/// A request that was executed, and its outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoneRequest {
    /// Hash of the client's key.
    pub key: u128,
    /// Hash of the request.
    pub fingerprint: u64,
    /// Time of execution, in microseconds since 1970 (UTC).
    pub time: u64,
    /// Number of the first snapshot with the request's changes.
    pub snapshot: u64,
    /// Number of operations in the request.
    pub operations: u64,
    /// Number of quads added.
    pub added: u64,
    /// Number of quads removed.
    pub removed: u64,
    /// True if the graph existed before; `None` for requests that are not about one graph.
    pub graph_was_there: Option<bool>,
    /// Revision of the graph after the request.
    pub revision: Option<u64>,
}

impl DoneRequest {
    /// True if the same request must not be executed again at the time `now`, in microseconds since 1970.
    #[must_use]
    pub fn is_recent(&self, now: u64) -> bool {
        now.saturating_sub(self.time) <= KEPT
    }

    pub(crate) fn to_numbers(self) -> [u64; NUMBERS] {
        let there = self.graph_was_there.map_or(0, |there| 1 + u64::from(there));
        [
            (self.key >> 64) as u64,
            self.key as u64,
            self.fingerprint,
            self.time,
            self.snapshot,
            self.operations,
            self.added,
            self.removed,
            there << 1 | u64::from(self.revision.is_some()),
            self.revision.unwrap_or(0),
        ]
    }

    pub(crate) fn from_numbers(numbers: [u64; NUMBERS]) -> Self {
        let [
            high,
            low,
            fingerprint,
            time,
            snapshot,
            operations,
            added,
            removed,
            flags,
            revision,
        ] = numbers;
        Self {
            key: u128::from(high) << 64 | u128::from(low),
            fingerprint,
            time,
            snapshot,
            operations,
            added,
            removed,
            graph_was_there: match flags >> 1 {
                0 => None,
                there => Some(there > 1),
            },
            revision: (flags & 1 == 1).then_some(revision),
        }
    }
}

/// The requests that a snapshot remembers, by key. Cloning is O(1).
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    /// Time of the first request in `now`.
    since: u64,
    now: CowTree<[u64; NUMBERS]>,
    before: CowTree<[u64; NUMBERS]>,
}

impl Requests {
    pub(crate) fn is_empty(&self) -> bool {
        self.now.is_empty() && self.before.is_empty()
    }

    /// The request with this key. O(log requests).
    pub(crate) fn get(&self, key: u128) -> Option<DoneRequest> {
        let mut from = [0; NUMBERS];
        (from[0], from[1]) = ((key >> 64) as u64, key as u64);
        [&self.now, &self.before]
            .into_iter()
            .filter_map(|tree| tree.first_from(&from))
            .map(DoneRequest::from_numbers)
            .find(|request| request.key == key)
    }

    /// Remembers a request, which replaces an earlier one with the same key, and forgets old ones.
    pub(crate) fn note(&mut self, request: DoneRequest) {
        let earlier = self.get(request.key).map(DoneRequest::to_numbers);
        if request.time.saturating_sub(self.since) > KEPT || self.now.len() >= MOST {
            self.before = std::mem::take(&mut self.now);
            self.since = request.time;
        }
        self.now.apply(&[request.to_numbers()], earlier.as_slice());
    }

    /// Bytes on the heap, including those shared with other snapshots.
    pub(crate) fn bytes(&self) -> usize {
        self.now.bytes() + self.before.bytes()
    }

    /// Encodes the requests for [`Self::from_numbers`].
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let mut out = vec![self.since, self.before.len() as u64];
        out.extend(self.before.iter().chain(self.now.iter()).flatten());
        out
    }

    /// Decodes the output of [`Self::numbers`]; `None` for invalid input.
    pub(crate) fn from_numbers(numbers: &[u64]) -> Option<Self> {
        let (&[since, before], rest) = numbers.split_first_chunk::<2>()?;
        let (all, []) = rest.as_chunks::<NUMBERS>() else {
            return None;
        };
        let (before, now) = all.split_at_checked(usize::try_from(before).ok()?)?;
        if ![before, now].iter().all(|list| list.is_sorted()) {
            return None;
        }
        let mut out = Self {
            since,
            ..Self::default()
        };
        out.before.apply(before, &[]);
        out.now.apply(now, &[]);
        Some(out)
    }
}

impl Snapshot {
    /// The request with this key, if it was executed in the last ten minutes. It may also be returned for up to as long
    /// after that. O(log requests).
    #[must_use]
    pub fn request(&self, key: u128) -> Option<DoneRequest> {
        self.delta().requests.get(key)
    }

    /// The same snapshot, but with the requests that `other` remembers.
    #[must_use]
    pub fn with_requests_of(mut self, other: &Self) -> Self {
        *self.requests_mut() = other.delta().requests.clone();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_remembered_for_ten_minutes() {
        let minute = 60_000_000;
        let mut all = Requests::default();
        let of = |n: u64| DoneRequest {
            key: u128::from(n) << 60,
            fingerprint: n,
            time: 1_800_000_000_000_000 + n * minute,
            revision: n.is_multiple_of(2).then_some(n),
            graph_was_there: [None, Some(false), Some(true)][n as usize % 3],
            ..DoneRequest::default()
        };
        for n in 0..100 {
            all.note(of(n));
            let read = Requests::from_numbers(&all.numbers()).unwrap();
            for at in 0..100 {
                let known = all.get(of(at).key);
                assert_eq!(known, read.get(of(at).key));
                assert!(known.is_none_or(|known| known == of(at)));
                if at <= n && at + 10 >= n {
                    assert!(known.is_some(), "{at} of {n}");
                }
                assert!(known.is_none() || at + 22 >= n, "{at} of {n}");
            }
        }
        let again = DoneRequest {
            fingerprint: 0,
            time: of(101).time,
            ..of(99)
        };
        all.note(again);
        assert_eq!(all.get(again.key), Some(again));
        assert!(again.is_recent(of(111).time) && !again.is_recent(of(112).time));
        let numbers = all.numbers();
        assert!(Requests::from_numbers(&numbers[..numbers.len() - 1]).is_none());
        assert!(Requests::from_numbers(&[]).is_none());
        assert!(Requests::from_numbers(&[0, 1]).is_none());
    }
}
