//! Transactions against a set of quads: snapshots, records, and terms and predicates added by updates.

use crate::transactions::{Op, bytes, change_set, changes, op, quads_of};
use jindou_model::{CancelToken, Error, Watch};
use jindou_store::testing::{TermQuad, store_of_terms};
use jindou_store::{Base, ChangeTerm, Changes, Snapshot};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names of the default graph, of the graphs that these quads are in, and of one without any.
fn graphs<'q>(quads: &[&'q BTreeSet<TermQuad>]) -> BTreeSet<&'q [u8]> {
    let names = quads.iter().flat_map(|quads| quads.iter().map(|q| &*q[3]));
    names.chain([&b""[..], b"<http://e/never"]).collect()
}

/// Checks that revisions changed where the quads did, and only there.
fn revised((before, quads): &(Snapshot, BTreeSet<TermQuad>), now: &(Snapshot, BTreeSet<TermQuad>)) {
    assert_eq!(before.revision() == now.0.revision(), *quads == now.1);
    for graph in graphs(&[quads, &now.1]) {
        let name = (!graph.is_empty()).then_some(graph);
        let of = |quads: &BTreeSet<TermQuad>| -> Vec<TermQuad> {
            quads.iter().filter(|q| q[3] == graph).cloned().collect()
        };
        let kept = before.graph_revision(name) == now.0.graph_revision(name);
        assert_eq!(kept, of(quads) == of(&now.1));
    }
}

fn check(base: &Arc<Base>, start: &BTreeSet<TermQuad>, transactions: &[Vec<Op>]) {
    let mut now = Snapshot::of_base(Arc::clone(base));
    let mut truth = start.clone();
    let mut past = vec![(now.clone(), truth.clone())];
    let mut records: Vec<Vec<u8>> = vec![];
    for ops in transactions {
        let mut next = truth.clone();
        change_set(&mut next, ops);
        let applied = now.apply(&changes(&now, ops), 2).unwrap();
        assert_eq!(applied.added, next.difference(&truth).count() as u64);
        assert_eq!(applied.removed, truth.difference(&next).count() as u64);
        assert_eq!(applied.snapshot.number(), now.number() + 1);
        assert_eq!(quads_of(&applied.snapshot), next);
        records.push(applied.record);
        now = applied.snapshot;
        truth = next;
        past.push((now.clone(), truth.clone()));
        let [.., before, after] = &past[..] else {
            continue;
        };
        revised(before, after);
    }
    let mut again = Snapshot::of_base(Arc::clone(base));
    for (i, record) in records.iter().enumerate() {
        let (snapshot, truth) = &past[i];
        assert_eq!(&quads_of(snapshot), truth, "an old snapshot changed");
        if i > 0 {
            assert!(again.replay(&records[i - 1]).is_err());
        }
        again = again.replay(record).unwrap();
        assert_eq!(quads_of(&again), past[i + 1].1);
        assert_eq!(again.revision(), past[i + 1].0.revision());
        assert_eq!(again.predicate_count(), past[i + 1].0.predicate_count());
    }
    // All as one transaction.
    let mut whole = vec![];
    let mut one = Snapshot::of_base(Arc::clone(base));
    for (i, ops) in transactions.iter().enumerate() {
        let changes = changes(&one, ops);
        let applied = match i {
            0 => one.apply(&changes, 1),
            _ => one.apply_within(&changes, 1),
        }
        .unwrap();
        whole.extend(applied.record);
        one = applied.snapshot;
    }
    if !transactions.is_empty() {
        assert_eq!((quads_of(&one), one.number()), (truth.clone(), 1));
        let replayed = Snapshot::of_base(Arc::clone(base)).replay(&whole).unwrap();
        assert_eq!((quads_of(&replayed), replayed.number()), (truth, 1));
        assert_eq!(replayed.revision(), one.revision());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn transactions_do_what_they_say(
        base in prop::collection::vec((0u8..8, 0u8..3, 0u8..8, prop_oneof![Just(0u8), 0u8..4]), 1..40),
        transactions in prop::collection::vec(prop::collection::vec(op(), 0..12), 0..8),
    ) {
        let quads: Vec<TermQuad> = base.iter().map(|&(s, p, o, g)| bytes([s, p, o, g])).collect();
        let (_folder, base) = store_of_terms(&quads);
        check(&base, &quads.into_iter().collect(), &transactions);
    }
}

#[test]
fn large_transactions_use_several_threads() {
    let quad = |i: u32, p: u32| -> TermQuad {
        [
            format!("<http://e/s{}", i % 9_000).into_bytes(),
            format!("<http://e/p{p}").into_bytes(),
            format!("\"{}", i / 3).into_bytes(),
            vec![],
        ]
    };
    let start: Vec<TermQuad> = (0..3_000).map(|i| quad(i, i % 3)).collect();
    let (_folder, base) = store_of_terms(&start);
    let snapshot = Snapshot::of_base(base);
    let mut changes = Changes::new();
    let mut truth: BTreeSet<TermQuad> = start.into_iter().collect();
    for i in 0..20_000 {
        let q = quad(i, i % 4);
        let [s, p, o, _] = q.each_ref().map(|t| ChangeTerm::Bytes(t));
        if i % 5 == 0 {
            changes.remove(s, p, o, None);
            truth.remove(&q);
        } else {
            changes.insert(s, p, o, None);
            truth.insert(q);
        }
    }
    let one = snapshot.apply(&changes, 1).unwrap();
    let many = snapshot.apply(&changes, 3).unwrap();
    assert_eq!(one.record, many.record);
    assert_eq!(quads_of(&many.snapshot), truth);
    assert_eq!(quads_of(&snapshot.replay(&one.record).unwrap()), truth);
}

/// Fails at a given look.
#[derive(Debug)]
struct Looks {
    left: AtomicU64,
}

impl Watch for Looks {
    fn check(&self) -> Result<(), Error> {
        match self.left.fetch_sub(1, Ordering::SeqCst) {
            0 => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }
}

/// A hundred megabytes of RDF are millions of changes, which take seconds: time limits are checked meanwhile.
#[test]
fn applying_can_be_ended_at_every_long_step() {
    let (_folder, base) = store_of_terms(&[bytes([0, 1, 2, 0])]);
    let plain = Snapshot::of_base(base);
    let mut changes = Changes::new();
    for i in 0..140_000 {
        let object = format!("\"{i}");
        let terms = ["<http://e/s", "<http://e/p", &object];
        let [s, p, o] = terms.map(|t| ChangeTerm::Bytes(t.as_bytes()));
        changes.insert(s, p, o, None);
    }
    let ended_at = |look: u64, threads: usize| {
        let left = AtomicU64::new(look);
        let cancel = CancelToken::new().watching(Arc::new(Looks { left }));
        plain.apply_while(&changes, threads, false, &cancel)
    };
    let expected = plain.apply(&changes, 1).unwrap().record;
    for threads in [1, 3] {
        let looks = (0..).find(|&look| match ended_at(look, threads) {
            Err(Error::Cancelled) => false,
            Err(e) => panic!("{e}"),
            Ok(applied) => {
                assert_eq!(applied.record, expected);
                true
            }
        });
        // Every 65,536 changes in each of six loops, and between the steps of applying them.
        assert!(looks > Some(20), "{looks:?}");
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let (_folder, base) = store_of_terms(&[bytes([0, 1, 2, 0])]);
    let plain = Snapshot::of_base(base);
    let removal = changes(&plain, &[([0, 1, 2, 0], false, false)]);
    let removed = plain.apply(&removal, 1).unwrap();
    // The same removal again has nothing to remove.
    let mut bad = removed.record.clone();
    bad[2] = 2;
    assert!(removed.snapshot.replay(&bad).is_err());
    for cut in 0..removed.record.len() {
        assert!(plain.replay(&removed.record[..cut]).is_err());
    }
    let unknown = ChangeTerm::Id(1 << 20);
    let mut changes = Changes::new();
    changes.insert(unknown, unknown, unknown, None);
    assert!(plain.apply(&changes, 1).is_err());
}
