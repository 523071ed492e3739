//! Lists read from another server's files, against brute force.

use crate::support::{IdQuad, Store, neighbours, store};
use jindou_cluster::remote::{RemoteStore, expose, summary::summarise};
use jindou_cluster::transport::files::Files;
use jindou_cluster::transport::{Transport, TransportError};
use jindou_model::{Direction, PredicateId};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// More neighbours than any list here has.
const MANY: u32 = 1 << 20;

/// A base that is read from its files, and the summaries that the reader wants.
struct Remote {
    store: Store,
    remote: RemoteStore,
    wanted: Arc<Mutex<Vec<(PredicateId, Direction)>>>,
}

fn open(store: &Store, catalogue: &[u8], memory: u64) -> Result<Remote, TransportError> {
    let wanted: Arc<Mutex<Vec<_>>> = Arc::default();
    let wants = Arc::clone(&wanted);
    let want = Box::new(move |p, direction| wants.lock().unwrap().push((p, direction)));
    let link = Files.connect(&Files.address()?)?;
    let remote = RemoteStore::open(link, catalogue, |_| memory, want)?;
    Ok(Remote {
        store: store.clone(),
        remote,
        wanted,
    })
}

fn catalogue(store: &Store) -> Vec<u8> {
    expose(&store.base, &Files).unwrap().0
}

impl Remote {
    /// Sends the summaries that are wanted; returns their bytes.
    fn send(&self) -> u64 {
        let wanted = std::mem::take(&mut *self.wanted.lock().unwrap());
        let mut bytes = 0;
        for (p, direction) in wanted {
            let summary = summarise(&self.store.base, p, direction);
            bytes += summary.len() as u64;
            assert!(!self.remote.put(p, direction, &summary[1..]));
            assert!(self.remote.put(p, direction, &summary));
        }
        bytes
    }

    /// The lists of some keys, or `None` if they have to be requested.
    fn lists(
        &self,
        (p, direction): (u32, Direction),
        keys: &[u32],
        most: u32,
    ) -> Result<Option<Vec<Vec<u32>>>, TransportError> {
        let (mut ends, mut values) = (vec![], vec![]);
        let deadline = Instant::now() + Duration::from_secs(60);
        let of = (PredicateId(p), direction);
        let into = (&mut ends, &mut values);
        if !self.remote.lists(of, keys, most, into, deadline)? {
            assert!(ends.is_empty() && values.is_empty());
            return Ok(None);
        }
        assert_eq!(ends.len(), keys.len());
        let mut start = 0;
        let list = |&end: &u32| {
            let list = values[start..end as usize].to_vec();
            start = end as usize;
            list
        };
        Ok(Some(ends.iter().map(list).collect()))
    }
}

fn predicates(store: &Store) -> u32 {
    store.base.statistics().predicates.len() as u32
}

#[test]
fn lists_and_degrees_of_the_default_graph_are_right() {
    let store = store();
    let s = open(&store, &catalogue(&store), 1 << 30).unwrap();
    let (truth, mut read, mut sent) = (&s.store.truth, 0, 0);
    for p in 0..predicates(&s.store) {
        let quads: BTreeSet<IdQuad> = truth.iter().copied().filter(|q| q.1 == p).collect();
        for direction in [Direction::Out, Direction::In] {
            let of = |k| neighbours(&quads, p, direction == Direction::Out, k);
            let keys: Vec<u32> = (0..s.store.base.vertices() + 3).step_by(3).collect();
            let wanted: Vec<Vec<u32>> = keys.iter().map(|&k| of(k)).collect();
            // The first time its summary is requested, once.
            for _ in 0..2 {
                assert_eq!(s.lists((p, direction), &keys, MANY).unwrap(), None);
            }
            assert_eq!(s.wanted.lock().unwrap()[..], [(PredicateId(p), direction)]);
            sent += s.send();
            let got = s.lists((p, direction), &keys, MANY).unwrap();
            assert_eq!(got.as_ref(), Some(&wanted), "predicate {p} {direction:?}");
            for (key, want) in keys.iter().zip(&wanted).step_by(5) {
                let got = s.lists((p, direction), &[*key], MANY).unwrap();
                assert_eq!(
                    got.as_deref(),
                    Some(&[want.clone()][..]),
                    "predicate {p} {direction:?} key {key}"
                );
            }
            let all: usize = wanted.iter().map(Vec::len).sum();
            if all > 1 {
                let fewer = all as u32 - 1;
                let got = s.lists((p, direction), &keys, fewer).unwrap();
                assert_eq!(got, None, "more than {fewer} neighbours are asked for");
            }
            read += all;
            let degrees = s.remote.degrees((PredicateId(p), direction), &keys);
            let is_named = truth.iter().any(|q| q.1 == p && q.3 > 0);
            let lengths = wanted.iter().map(|l| l.len() as u64).collect();
            assert_eq!(degrees, (!is_named).then_some(lengths));
        }
    }
    assert!(read > 1000);
    assert!(s.remote.memory_used() > 0 && s.remote.memory_used() <= sent);
}

#[test]
fn without_memory_for_summaries_every_list_is_asked_for() {
    let store = store();
    let s = open(&store, &catalogue(&store), 0).unwrap();
    let mut asked = 0;
    for p in 0..predicates(&s.store) {
        for direction in [Direction::Out, Direction::In] {
            let read = || s.lists((p, direction), &[1, 2, 3], MANY).unwrap();
            assert_eq!(read(), None);
            s.send();
            let has_edges = s.store.truth.iter().any(|q| q.1 == p && q.3 == 0);
            assert_eq!(read().is_none(), has_edges);
            asked += usize::from(has_edges);
        }
    }
    assert!(asked > 8);
    assert_eq!(s.remote.memory_used(), 0);
}

#[test]
fn a_damaged_catalogue_is_refused() {
    let store = store();
    let whole = catalogue(&store);
    for length in 0..whole.len() {
        let cut = open(&store, &whole[..length], 1 << 30);
        assert!(cut.is_err(), "{length} bytes");
    }
    let longer = [&whole[..], b"x"].concat();
    assert!(open(&store, &longer, 1 << 30).is_err());
}

/// Any byte of a summary may differ: no list is then longer than the file, and nothing panics.
#[test]
fn damaged_summaries_give_wrong_lists_or_errors() {
    let store = store();
    let s = open(&store, &catalogue(&store), 1 << 30).unwrap();
    let keys: Vec<u32> = (0..300).collect();
    for p in 0..3 {
        let of = (p, Direction::Out);
        let right = summarise(&s.store.base, PredicateId(p), Direction::Out);
        for at in (0..right.len()).step_by(7) {
            let mut bad = right.clone();
            bad[at] ^= 0xA5;
            if s.remote.put(PredicateId(p), Direction::Out, &bad) {
                let _ = s.lists(of, &keys, MANY);
            }
        }
    }
}
