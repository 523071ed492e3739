//! Merging against a set of quads: the new base, snapshots made meanwhile, the store opened again, and older snapshots.

use crate::place::names;
use crate::transactions::{Op, bytes, change_set, changes, op, quads_of};
use jindou_graph::segment::GraphScope;
use jindou_log::Directory;
use jindou_model::{Direction, Error, PredicateId, Progress, VertexId, term};
use jindou_store::directory::remove_leftovers;
use jindou_store::testing::{TermQuad, edit, store_of_terms};
use jindou_store::{Changes, MergeOptions, Merging, Snapshot, check, info, open};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn apply(now: &Snapshot, ops: &[Op], truth: &mut BTreeSet<TermQuad>) -> Snapshot {
    change_set(truth, ops);
    now.apply(&changes(now, ops), 1).unwrap().snapshot
}

pub fn merge(dir: &Path, now: &Snapshot, generations: usize) -> Merging {
    let files = Directory::open(dir).unwrap();
    let options = MergeOptions::default().with_generations(generations);
    Merging::write(dir, &files, now, &options, &Progress::default()).unwrap()
}

/// Checks everything about a snapshot that readers rely on.
fn sound(s: &Snapshot, truth: &BTreeSet<TermQuad>) {
    assert_eq!(&quads_of(s), truth);
    assert_eq!(s.quads(), truth.len() as u64);
    let id = |t: &[u8]| s.lookup(t).unwrap();
    let graphs: BTreeSet<u32> = truth
        .iter()
        .filter(|q| !q[3].is_empty())
        .map(|q| id(&q[3]).0)
        .collect();
    assert!(s.named_graphs().iter().copied().eq(graphs));
    let mut edges: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
    for q in truth {
        let p = s.predicate_of(id(&q[1])).unwrap();
        edges.entry(p.0).or_default()[usize::from(!q[3].is_empty())] += 1;
    }
    for p in 0..s.predicate_count() {
        let counts = s.predicate_statistics(PredicateId(p));
        let want = edges.get(&p).copied().unwrap_or_default();
        assert_eq!([counts.edges, counts.named_edges], want);
        assert_eq!(counts.vertex, s.vertex_of(PredicateId(p)).0);
    }
    let subjects: BTreeSet<&Vec<u8>> = truth.iter().map(|q| &q[0]).collect();
    assert!(s.subjects() >= subjects.len() as u64);
    let Some(rdf_type) = s.lookup(&term::rdf_type()).and_then(|v| s.predicate_of(v)) else {
        return;
    };
    // Classes: intervals are exact, unless an edit differs.
    let untouched = !s.is_predicate_patched(rdf_type) && s.statistics().rdf_type.is_some();
    let view = s.edges(rdf_type, Direction::In);
    let mut classes = vec![];
    view.candidate_keys(GraphScope::Union, &mut classes);
    let mut scratch = vec![];
    let mut counted: BTreeMap<u32, u64> = s.classes().into_iter().collect();
    for class in classes {
        let members = view.read(class, GraphScope::Union, &mut scratch).to_vec();
        let count = members.len() as u64;
        assert_eq!(s.class_members(VertexId(class)).unwrap_or(0), count);
        assert_eq!(counted.remove(&class).unwrap_or(0), count);
        if let Some(runs) = s.class_intervals(VertexId(class)).filter(|_| untouched) {
            assert!(
                runs.iter()
                    .flat_map(|r| r[0]..r[1])
                    .eq(members.iter().copied())
            );
        }
        if !untouched {
            continue;
        }
        // No set lacks a property of one of its subjects.
        for v in members {
            let list = s.predicates_of(v, Direction::Out);
            let has = |set: &jindou_graph::statistics::PlannerSet| {
                let own: Vec<u32> = set.predicates.iter().map(|p| p.0).collect();
                list.iter().all(|p| own.contains(p)) && set.classes.iter().any(|c| c.0 == class)
            };
            let widened = |(own, _): (&[u32], u32)| list.iter().all(|p| own.contains(p));
            assert!(
                s.statistics().sets.iter().any(has) || s.predicates().widened_sets().any(widened),
                "{v} in {class}"
            );
        }
    }
    assert_eq!(counted, BTreeMap::new());
}

/// The revision of the store, and that of each of the quads' graphs.
fn revisions(snapshot: &Snapshot, quads: &BTreeSet<TermQuad>) -> Vec<u64> {
    let graphs: BTreeSet<&[u8]> = quads.iter().map(|q| &*q[3]).collect();
    let of_graph = |g: &[u8]| snapshot.graph_revision((!g.is_empty()).then_some(g));
    let all = [snapshot.revision()].into_iter();
    all.chain(graphs.into_iter().map(of_graph)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn merged_stores_hold_what_was_there(
        base in prop::collection::vec((0u8..8, 0u8..3, 0u8..8, prop_oneof![Just(0u8), 0u8..4]), 0..40),
        rounds in prop::collection::vec(
            (prop::collection::vec(prop::collection::vec(op(), 0..12), 0..4),
             prop::collection::vec(prop::collection::vec(op(), 0..9), 0..4), 1usize..5, any::<bool>()),
            1..6),
    ) {
        let quads: Vec<TermQuad> = base.iter().map(|&(s, p, o, g)| bytes([s, p, o, g])).collect();
        let (folder, loaded) = store_of_terms(&quads);
        let dir = folder.path().join("store");
        let mut truth: BTreeSet<TermQuad> = quads.into_iter().collect();
        let mut now = Snapshot::of_base(loaded);
        let mut past = vec![(now.clone(), truth.clone())];
        for (before, meanwhile, generations, reopen) in rounds {
            for ops in &before {
                now = apply(&now, ops, &mut truth);
            }
            past.push((now.clone(), truth.clone()));
            if now.number() == now.base().number() {
                continue;
            }
            let merging = merge(&dir, &now, generations);
            let again = Snapshot::of_base(open(&dir).unwrap());
            prop_assert_eq!(again.number(), now.number());
            prop_assert_eq!(revisions(&again, &truth), revisions(&now, &truth));
            sound(&again, &truth);
            let report = check(&dir).unwrap();
            prop_assert!(report.is_sound(), "{:?}", report.damages);
            let told = info(&dir).unwrap();
            let predicates: BTreeSet<_> = truth.iter().map(|q| &q[1]).collect();
            let (used, _): (Vec<_>, Vec<_>) = told.predicates.iter().partition(|p| p.edges != [0; 2]);
            prop_assert_eq!(used.iter().map(|p| &p.term).collect::<BTreeSet<_>>(), predicates);
            prop_assert!(told.classes.iter().all(|(class, _)| !class.is_empty()));
            prop_assert_eq!(told.terms, u64::from(again.vertices()));
            let then = merging.rebase(&now).unwrap();
            prop_assert_eq!(then.edit_count(), 0);
            sound(&then, &truth);
            for ops in &meanwhile {
                now = apply(&now, ops, &mut truth);
            }
            past.push((now.clone(), truth.clone()));
            let over = merging.rebase(&now).unwrap();
            sound(&over, &truth);
            prop_assert_eq!(revisions(&over, &truth), revisions(&now, &truth));
            // Updates have the same results on the merged store and on one that was opened.
            let mut other = again;
            let mut truth_there = quads_of(&other);
            for ops in &meanwhile {
                other = apply(&other, ops, &mut truth_there);
            }
            sound(&other, &truth);
            prop_assert_eq!(revisions(&other, &truth), revisions(&now, &truth));
            merging.remove_replaced(&Directory::open(&dir).unwrap());
            prop_assert!(remove_leftovers(&dir).unwrap().is_empty());
            now = if reopen { other } else { over };
        }
        for (snapshot, truth) in &past {
            prop_assert_eq!(&quads_of(snapshot), truth);
        }
    }
}

fn many(now: &Snapshot, from: u32, count: u32, insert: bool) -> Snapshot {
    let mut changes = Changes::new();
    for i in from..from + count {
        let quad = [
            format!("<http://e/s{}", i * 7 % 9_000).into_bytes(),
            format!("<http://e/p{}", i % 4).into_bytes(),
            format!("\"{}", i / 3).into_bytes(),
            if i % 5 == 0 {
                format!("<http://e/g{}", i % 40).into_bytes()
            } else {
                vec![]
            },
        ];
        edit(&mut changes, &quad, insert);
    }
    now.apply(&changes, 2).unwrap().snapshot
}

#[test]
fn tens_of_thousands_of_edges_with_folded_finders() {
    let (folder, base) = store_of_terms(&[]);
    let dir = folder.path().join("store");
    let empty = Snapshot::of_base(base);
    let one = many(&empty, 0, 40_000, true);
    let merging = merge(&dir, &one, 8);
    assert!(merging.report().edges >= 80_000 && merging.report().predicates == 4);
    let merged = merging.rebase(&one).unwrap();
    assert_eq!(quads_of(&merged), quads_of(&one));
    assert!(merged.delta_bytes() < one.delta_bytes() * 2 / 3);
    let two = many(&many(&merged, 1_000, 9_000, false), 50_000, 20_000, true);
    let again = merge(&dir, &two, 8);
    let merged = again.rebase(&two).unwrap();
    assert_eq!(quads_of(&merged), quads_of(&two));
    assert_eq!(
        quads_of(&Snapshot::of_base(open(&dir).unwrap())),
        quads_of(&two)
    );
    let report = check(&dir).unwrap();
    assert!(report.is_sound(), "{:?}", report.damages);
}

#[test]
fn limits_and_cancelling_leave_the_store_as_it_was() {
    let (folder, base) = store_of_terms(&[]);
    let dir = folder.path().join("store");
    let one = many(&Snapshot::of_base(base), 0, 5_000, true);
    let files = Directory::open(&dir).unwrap();
    let before = names(&dir);
    let small = MergeOptions::default().with_memory(1_000);
    let progress = Progress::default();
    let refused = Merging::write(&dir, &files, &one, &small, &progress);
    assert!(matches!(refused, Err(Error::Limit(_))));
    let slow = MergeOptions::default().with_bytes_per_second(100_000);
    let token = slow.cancel.clone();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(200));
            token.cancel();
        });
        let ended = Merging::write(&dir, &files, &one, &slow, &progress);
        assert!(matches!(ended, Err(Error::Cancelled)));
    });
    assert_eq!(names(&dir), before);
    let paced = MergeOptions::default().with_bytes_per_second(1_000_000);
    let begun = std::time::Instant::now();
    let merging = Merging::write(&dir, &files, &one, &paced, &progress).unwrap();
    let seconds = merging.report().bytes as f64 / 1e6;
    assert!(begun.elapsed().as_secs_f64() > seconds * 0.8, "{seconds}");
    assert_eq!(quads_of(&merging.rebase(&one).unwrap()), quads_of(&one));
    // A snapshot of the new base does not fit the old merge.
    let over = merging.rebase(&one).unwrap();
    assert!(merging.rebase(&over).is_err());
}
