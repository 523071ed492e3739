//! Freeing the ids of terms that no quad uses: on servers that follow one log and merge whenever they like, against a
//! set of quads and a store that never frees; and a store with few ids for new terms.

use crate::merge::merge;
use crate::transactions::{Q, bytes, change, changes, quads_of};
use jindou_graph::segment::GraphScope;
use jindou_model::{Direction, Error, FIRST_TAIL_ID, PredicateId, VertexId, term};
use jindou_store::testing::agreement::{Draw, iri};
use jindou_store::testing::{TermQuad, changed, edit, store_of_terms};
use jindou_store::{ChangeTerm, Changes, Snapshot, check, info, open};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A server of the log: its store, and its snapshot after the records so far.
struct Server {
    folder: tempfile::TempDir,
    now: Snapshot,
}

impl Server {
    fn new(quads: &[TermQuad]) -> Self {
        let (folder, base) = store_of_terms(quads);
        let now = Snapshot::of_base(base);
        Self { folder, now }
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn follow(&mut self, record: &[u8]) {
        self.now = self.now.replay(record).unwrap();
    }

    /// Merges a snapshot of before, and goes on over the new files; or opens the store again and follows the log.
    fn merge(&mut self, then: &Snapshot, log: &[Vec<u8>], reopens: bool, generations: usize) {
        if then.number() <= then.base().number()
            || !std::sync::Arc::ptr_eq(then.base(), self.now.base())
        {
            return;
        }
        let dir = self.dir();
        let merging = merge(&dir, then, generations);
        if !reopens {
            self.now = merging.rebase(&self.now).unwrap();
            return;
        }
        let report = check(&dir).unwrap();
        assert!(report.is_sound(), "{:?}", report.damages);
        let number = self.now.number();
        self.now = Snapshot::of_base(open(&dir).unwrap());
        assert_eq!(
            info(&dir).unwrap().free_ids,
            u64::from(self.now.tail().free_count())
        );
        for record in &log[self.now.number() as usize..number as usize] {
            self.follow(record);
        }
    }
}

/// The terms of the tail by number.
fn tail_of(snapshot: &Snapshot) -> Vec<Option<Vec<u8>>> {
    let ids = (0..snapshot.tail().len()).map(|n| VertexId(FIRST_TAIL_ID + n));
    ids.map(|v| snapshot.tail().term(v).map(<[u8]>::to_vec))
        .collect()
}

/// The terms of the tail that a set of quads uses, and those of predicates.
fn used_of(snapshot: &Snapshot, truth: &BTreeSet<TermQuad>) -> BTreeSet<Vec<u8>> {
    let ids = (0..snapshot.predicate_count()).map(|p| snapshot.vertex_of(PredicateId(p)));
    let mut used: BTreeSet<Vec<u8>> = truth.iter().flatten().cloned().collect();
    used.extend(ids.map(|v| {
        let mut out = Vec::new();
        assert!(snapshot.term(v, &mut out));
        out
    }));
    used
}

fn random_quad(draw: &mut Draw) -> Q {
    // Some terms are in the load; the others come and go.
    let [s, o] = [0, 1].map(|_| match draw.below(3) {
        0 => draw.below(10) as u8,
        _ => draw.below(120) as u8,
    });
    let g = if draw.below(3) == 0 {
        draw.below(40) as u8
    } else {
        0
    };
    [s, draw.below(7) as u8, o, g]
}

/// Frees what is unused at a server, and lets all others follow.
fn free(servers: &mut [Server], at: usize, log: &mut Vec<Vec<u8>>) -> u32 {
    let before = servers[at].now.tail().free_count();
    for part in servers[at].now.unused_terms() {
        let Some((next, record)) = servers[at].now.free_terms(&part).unwrap() else {
            continue;
        };
        assert!(
            next.shape() != servers[at].now.shape(),
            "plans must be made again"
        );
        for server in servers.iter_mut() {
            server.follow(&record);
        }
        log.push(record);
    }
    servers[at].now.tail().free_count() - before
}

fn run(seed: u64, steps: usize) -> u32 {
    let mut draw = Draw(seed);
    let quads: Vec<TermQuad> = (0..draw.below(30))
        .map(|_| random_quad(&mut draw))
        .map(|[s, p, o, g]| bytes([s % 10, p, o % 10, g % 10]))
        .collect();
    let mut truth: BTreeSet<TermQuad> = quads.iter().cloned().collect();
    let mut servers: Vec<Server> = (0..3).map(|_| Server::new(&quads)).collect();
    let mut never = Server::new(&quads).now;
    let mut log: Vec<Vec<u8>> = Vec::new();
    let mut past: Vec<(Snapshot, BTreeSet<TermQuad>)> = Vec::new();
    let mut freed = 0;
    for step in 0..steps {
        // Any server writes.
        let at = draw.below(3) as usize;
        let (mut changes, mut same) = (Changes::new(), Changes::new());
        let known: Vec<TermQuad> = truth.iter().cloned().collect();
        for _ in 0..draw.below(12) {
            let insert = draw.below(100) < 45;
            if let (false, true, Some(quad)) = (
                insert,
                draw.below(3) > 0,
                known.get(draw.below(known.len().max(1) as u64) as usize),
            ) {
                edit(&mut changes, quad, false);
                edit(&mut same, quad, false);
                truth.remove(quad);
                continue;
            }
            let quad = random_quad(&mut draw);
            let by_id = draw.below(2) == 0;
            change(&mut changes, &servers[at].now, (quad, insert, by_id));
            change(&mut same, &never, (quad, insert, by_id));
            match insert {
                true => truth.insert(bytes(quad)),
                false => truth.remove(&bytes(quad)),
            };
        }
        never = never.apply(&same, 1).unwrap().snapshot;
        let applied = servers[at].now.apply(&changes, 1).unwrap();
        for (i, server) in servers.iter_mut().enumerate() {
            match i == at {
                true => server.now = applied.snapshot.clone(),
                false => server.follow(&applied.record),
            }
        }
        log.push(applied.record);
        if draw.below(8) == 0 {
            freed += free(&mut servers, draw.below(3) as usize, &mut log);
        }
        // The last server never merges.
        let at = draw.below(12) as usize;
        if at < 2 {
            let then = match past.last() {
                Some((past, _)) if draw.below(3) == 0 => past.clone(),
                _ => servers[at].now.clone(),
            };
            // An older snapshot of another server is of other files.
            let (reopens, generations) = (draw.below(2) == 0, 1 + draw.below(4) as usize);
            servers[at].merge(&then, &log, reopens, generations);
        }
        if step % 10 == 9 {
            past.push((servers[draw.below(3) as usize].now.clone(), truth.clone()));
            let tail = tail_of(&servers[0].now);
            let revision = servers[0].now.revision();
            for server in &servers {
                let now = &server.now;
                assert_eq!(quads_of(now), truth, "seed {seed}, step {step}");
                assert_eq!((tail_of(now), now.revision()), (tail.clone(), revision));
                let graphs = now.named_graphs().len();
                assert_eq!(graphs, never.named_graphs().len());
            }
            assert_eq!(quads_of(&never), truth);
        }
    }
    for (past, truth) in past {
        assert_eq!(quads_of(&past), truth, "a snapshot of seed {seed} changed");
    }
    // After freeing, the tail has no other terms than those that are used.
    free(&mut servers, 2, &mut log);
    let now = &servers[2].now;
    let used = used_of(now, &truth);
    let kept: BTreeSet<Vec<u8>> = tail_of(now).into_iter().flatten().collect();
    assert!(kept.is_subset(&used), "seed {seed}");
    assert!(now.tail().len() <= never.tail().len());
    freed
}

#[test]
fn servers_with_any_bases_agree_on_freed_and_reused_ids() {
    let freed: u32 = (0..12).map(|seed| run(seed, 120)).sum();
    assert!(freed > 500, "{freed}");
}

#[test]
#[ignore = "takes minutes"]
fn servers_with_any_bases_agree_in_many_runs() {
    let freed: u32 = (100..200).map(|seed| run(seed, 250)).sum();
    assert!(freed > 10_000, "{freed}");
}

/// Ids for new terms in the tests of a full store.
const IDS: u32 = 10_000;

fn literal(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    term::push_typed(text, "http://www.w3.org/2001/XMLSchema#string", &mut out);
    out
}

/// The values of update `n`.
fn values(n: u64) -> impl Iterator<Item = Vec<u8>> {
    (0..20).map(move |i| literal(&format!("value {n} {i}")))
}

/// Updates that replace 20 literals by 20 others each, with merges in between, until this many new terms have been there.
fn replaces(terms: u64) {
    let known: Vec<TermQuad> = (0..20)
        .map(|i| {
            let s = iri(&format!("http://e/s{i}"));
            [s, iri("http://e/p"), literal("first"), Vec::new()]
        })
        .collect();
    let (folder, base) = store_of_terms(&known);
    let dir = folder.path().join("store");
    let mut now = Snapshot::of_base(base).with_new_ids(IDS);
    let (mut old, mut lengths) = (Vec::new(), Vec::new());
    for n in 0..terms / 20 {
        let mut changes = Changes::new();
        let before = n.checked_sub(1).map(values).into_iter().flatten();
        let quads = || {
            known
                .iter()
                .map(|q| [0, 1].map(|i| ChangeTerm::Bytes(&q[i])))
        };
        for ([s, p], value) in quads().zip(before) {
            changes.remove(s, p, ChangeTerm::Bytes(&value), None);
        }
        for ([s, p], value) in quads().zip(values(n)) {
            changes.insert(s, p, ChangeTerm::Bytes(&value), None);
        }
        now = now.apply(&changes, 1).unwrap().snapshot;
        if n % 400 == 399 {
            for part in now.unused_terms() {
                let (next, record) = now.free_terms(&part).unwrap().unwrap();
                assert_eq!(tail_of(&now.replay(&record).unwrap()), tail_of(&next));
                now = next;
            }
            let merging = merge(&dir, &now, 3);
            now = merging.rebase(&now).unwrap();
            old.push((now.clone(), n));
            let file: u64 = std::fs::read_dir(&dir)
                .unwrap()
                .map(|e| e.unwrap().metadata().unwrap().len())
                .sum();
            lengths.push(file);
        }
    }
    assert!(now.tail().len() <= IDS);
    let (first, last) = (lengths[1], lengths[lengths.len() - 1]);
    assert!(
        last * 10 < first * 12,
        "{first} bytes of files, then {last}"
    );
    let p = now
        .predicate_of(now.lookup(b"<http://e/p").unwrap())
        .unwrap();
    let keep = old.len().saturating_sub(5);
    for (snapshot, n) in old.drain(keep..) {
        let view = snapshot.edges(p, Direction::Out);
        for (quad, value) in known.iter().zip(values(n)) {
            let s = snapshot.lookup(&quad[0]).unwrap().0;
            let o = snapshot.lookup(&value).unwrap().0;
            assert!(view.contains(s, o, GraphScope::of(0)));
        }
    }
    let again = Snapshot::of_base(open(&dir).unwrap());
    assert!(again.tail().free_count() > 0);
    assert!(check(&dir).unwrap().is_sound());
}

#[test]
fn a_store_with_few_ids_takes_any_number_of_new_terms() {
    replaces(48_000);
}

#[test]
#[ignore = "takes a minute"]
fn a_store_with_few_ids_takes_a_million_new_terms() {
    replaces(1_000_000);
}

#[test]
fn a_full_store_refuses_updates_with_the_remedy_and_is_read() {
    let (folder, base) = store_of_terms(&[]);
    let dir = folder.path().join("store");
    let mut now = Snapshot::of_base(base).with_new_ids(10);
    let insert = |now: &Snapshot, from: u64, to: u64| {
        let mut changes = Changes::new();
        for n in from..to {
            let (s, o) = (iri(&format!("http://e/{n}")), literal(&n.to_string()));
            let [s, o] = [&s, &o].map(|t| ChangeTerm::Bytes(t));
            changes.insert(s, ChangeTerm::Bytes(b"<http://e/p"), o, None);
        }
        now.apply(&changes, 1).map(|applied| applied.snapshot)
    };
    now = insert(&now, 0, 4).unwrap();
    let refused = insert(&now, 4, 6).err().unwrap();
    let text = refused.to_string();
    assert!(matches!(refused, Error::Limit(_)), "{text}");
    assert!(
        text.contains("9 of the 10 ids") && text.contains("a merge frees"),
        "{text}"
    );
    assert_eq!(quads_of(&now).len(), 4);
    // A change without new terms is possible.
    now = insert(&now, 0, 3).unwrap();
    let first = quads_of(&now).into_iter().take(1);
    now = changed(now, first.map(|q| (q, false)));
    assert!(insert(&now, 4, 5).is_err());
    let [part] = &now.unused_terms()[..] else {
        panic!("{:?}", now.unused_terms());
    };
    now = now.free_terms(part).unwrap().unwrap().0;
    now = insert(&now, 4, 5).unwrap();
    assert_eq!((now.tail().len(), now.tail().free_count()), (9, 0));
    let merging = merge(&dir, &now, 3);
    now = merging.rebase(&now).unwrap();
    assert_eq!(now.new_ids(), 10);
    assert_eq!(quads_of(&now).len(), 4);
    assert!(insert(&now, 7, 8).is_err());
}

#[test]
fn records_that_free_or_reuse_other_ids_are_refused() {
    let (_folder, base) = store_of_terms(&[]);
    let loaded = Snapshot::of_base(base);
    let quad = |n: u8| bytes([n, 2, n + 1, 3]);
    let with = |now: &Snapshot, n: u8, comes: bool| {
        let op = ([n, 2, n + 1, 3], comes, false);
        now.apply(&changes(now, &[op]), 1).unwrap()
    };
    let there = with(&loaded, 20, true).snapshot;
    assert!(there.unused_terms().is_empty());
    assert!(there.free_terms(&[[0, 9]]).unwrap().is_none());
    let gone = with(&there, 20, false).snapshot;
    let unused = gone.unused_terms().concat();
    let (freed, record) = gone.free_terms(&unused).unwrap().unwrap();
    // All but the predicate.
    assert_eq!((freed.tail().len(), freed.tail().free_count()), (4, 3));
    assert_eq!(freed.lookup(&quad(20)[0]), None);
    assert!(freed.lookup(&quad(20)[1]).is_some());
    let refused = |now: &Snapshot, record: &[u8]| {
        let error = now.replay(record).err().unwrap();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
    };
    // One that is in use, and one that is free already: of another line of the same numbers.
    let other = with(&with(&loaded, 20, true).snapshot, 30, true).snapshot;
    refused(&other, &record);
    let again = with(&freed, 40, true);
    assert!(again.snapshot.tail().len() == 4, "the free ids come first");
    refused(&with(&gone, 50, false).snapshot, &again.record);
    assert_eq!(
        gone.replay(&record)
            .unwrap()
            .replay(&again.record)
            .unwrap()
            .tail()
            .len(),
        4
    );
}

#[test]
fn the_name_of_an_emptied_graph_is_freed_with_its_revision() {
    for merged in [true, false] {
        let (folder, base) = store_of_terms(&[bytes([1, 2, 3, 0])]);
        let dir = folder.path().join("store");
        let mut now = Snapshot::of_base(base);
        let untouched = now.graph_revision(Some(b"<http://e/none"));
        let step = |now: Snapshot, q: Q, comes: bool| changed(now, [(bytes(q), comes)]);
        // Its subject and object are of the load, so that only the name is new.
        now = step(now, [1, 2, 3, 77], true);
        let name = bytes([1, 2, 3, 77])[3].clone();
        if merged {
            now = merge(&dir, &now, 4).rebase(&now).unwrap();
        }
        assert!(now.unused_terms().is_empty());
        let there = now.clone();
        now = step(now, [1, 2, 3, 77], false);
        assert!(now.named_graphs().is_empty());
        assert_ne!(now.graph_revision(Some(&name)), untouched);
        let part = now.unused_terms().concat();
        now = now.free_terms(&part).unwrap().unwrap().0;
        assert_eq!(now.graph_revision(Some(&name)), untouched);
        // The next graph has the id, and nothing of the one before.
        let id = there.lookup(&name).unwrap();
        now = step(now, [1, 2, 3, 78], true);
        let next = bytes([1, 2, 3, 78])[3].clone();
        assert_eq!(now.lookup(&next), Some(id));
        assert_eq!(there.lookup(&next), None);
        assert_eq!(quads_of(&there).len(), 2);
        let want = BTreeSet::from([[1, 2, 3, 0], [1, 2, 3, 78]].map(bytes));
        assert_eq!(quads_of(&now), want);
        now = merge(&dir, &now, 4).rebase(&now).unwrap();
        assert_eq!(quads_of(&now), want);
        assert_eq!(quads_of(&Snapshot::of_base(open(&dir).unwrap())), want);
    }
}
