//! Requests to shards against the loaded quads: keys in pages, numbers of edges in one round, memory of kept lists.

use jindou_cluster::shards::{InProcessShards, Reply, RequestGraphs, ShardClient, ShardRequest};
use jindou_cluster::testing::shards_of_terms;
use jindou_graph::Graph;
use jindou_graph::segment::GraphScope;
use jindou_model::{CancelToken, Direction, Error, MemoryBudget, PredicateId};
use jindou_store::shard::{Cluster, Placement, Sharding, open_shards};
use jindou_store::testing::agreement::{agree, quads};
use jindou_store::testing::{TermQuad, varied_quads};
use jindou_store::{Snapshot, check};
use std::collections::BTreeSet;
use tempfile::TempDir;

fn cut(
    quads: &[TermQuad],
    shards: u32,
    placement: Placement,
) -> (TempDir, Snapshot, InProcessShards) {
    let sharding = Sharding::new(shards).with_placement(placement);
    let sharding = sharding.with_block_shift(Some(0));
    let (folder, snapshot) = shards_of_terms(quads, sharding, 0);
    let dir = folder.path().join("store");
    let cluster = Cluster::read(&dir).unwrap().unwrap();
    let near = InProcessShards::new(open_shards(&dir, &cluster).unwrap());
    (folder, snapshot, near)
}

fn id(snapshot: &Snapshot, term: &[u8]) -> u32 {
    snapshot.lookup(term).expect("a term of the data").0
}

/// Each predicate of the data with its dense id.
fn predicates(snapshot: &Snapshot, quads: &[TermQuad]) -> Vec<(Vec<u8>, PredicateId)> {
    let terms: BTreeSet<&Vec<u8>> = quads.iter().map(|q| &q[1]).collect();
    let known = |t: &Vec<u8>| snapshot.predicate_of(snapshot.lookup(t)?);
    let with_id = |t: &Vec<u8>| (t.clone(), known(t).expect("a predicate of the data"));
    terms.into_iter().map(with_id).collect()
}

/// True if some graphs have a quad.
type Sees<'a> = dyn Fn(&TermQuad) -> bool + 'a;

/// Pages of keys, however short, are together the subjects and objects of the quads.
#[test]
fn pages_of_keys_are_the_ends_of_the_quads() {
    let quads = varied_quads();
    for placement in [Placement::Range, Placement::Hash] {
        let (_folder, snapshot, near) = cut(&quads, 3, placement);
        let graph = id(&snapshot, &quads[0][3]);
        let chosen = |q: &TermQuad| !q[3].is_empty() && id(&snapshot, &q[3]) == graph;
        let scopes: [(RequestGraphs, &Sees<'_>); 5] = [
            (RequestGraphs::Default, &|q| q[3].is_empty()),
            (RequestGraphs::Named(graph), &chosen),
            (RequestGraphs::AnyNamed, &|q| !q[3].is_empty()),
            (RequestGraphs::Union, &|_| true),
            (RequestGraphs::Set(vec![0, graph]), &|q| {
                q[3].is_empty() || chosen(q)
            }),
        ];
        for (term, p) in predicates(&snapshot, &quads) {
            for (graphs, sees) in &scopes {
                for (direction, end) in [(Direction::Out, 0), (Direction::In, 2)] {
                    let edges = quads.iter().filter(|q| q[1] == term && sees(q));
                    let want: BTreeSet<u32> = edges.map(|q| id(&snapshot, &q[end])).collect();
                    for most in [1, 2, 7, u32::MAX] {
                        let got = keys(&near, p.0, direction, graphs, most);
                        assert_eq!(got, want, "{graphs:?} {direction:?} {most}");
                    }
                }
            }
        }
    }
}

fn keys(
    near: &InProcessShards,
    predicate: u32,
    direction: Direction,
    graphs: &RequestGraphs,
    most: u32,
) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    for shard in 0..near.shards().len() as u32 {
        let mut from = 0;
        loop {
            let request = ShardRequest::Keys {
                predicate,
                direction,
                graphs: graphs.clone(),
                from,
                most,
            };
            let mut replies = near
                .ask(&[(shard, request)], &CancelToken::default())
                .unwrap();
            let Some(Reply::Ids { ids, more }) = replies.pop() else {
                panic!("no ids");
            };
            assert!(ids.len() <= most as usize && ids.is_sorted());
            assert!(ids.iter().all(|&v| v >= from && all.insert(v)));
            if !more {
                break;
            }
            from = ids.last().expect("a page before others is full") + 1;
        }
    }
    all
}

/// One round for all, none for known ones, and the numbers are those of the quads.
#[test]
fn numbers_of_edges_come_in_one_round() {
    let quads: BTreeSet<TermQuad> = varied_quads().into_iter().collect();
    let quads: Vec<TermQuad> = quads.into_iter().collect();
    let (_folder, snapshot, _near) = cut(&quads, 6, Placement::Hash);
    let mut all = vec![];
    for (term, p) in predicates(&snapshot, &quads) {
        for q in quads.iter().filter(|q| q[1] == term) {
            all.push((p, Direction::Out, id(&snapshot, &q[0]), &q[0], 0));
            all.push((p, Direction::In, id(&snapshot, &q[2]), &q[2], 2));
        }
    }
    let terms = predicates(&snapshot, &quads);
    // Most numbers of the looked-up ends of the quads are known; a query that looked nothing up knows none.
    let another = snapshot.for_new_query();
    for (snapshot, most_messages) in [(&snapshot, 4), (&*another, 5)] {
        let sharded = snapshot.as_sharded().unwrap();
        let before = sharded.traffic();
        sharded.fetch_degrees(all.iter().map(|a| (a.0, a.1, a.2)));
        let after = sharded.traffic();
        assert!(after.rounds <= before.rounds + 1);
        let messages = after.messages - before.messages;
        assert!(messages <= most_messages, "{messages} messages");
        assert_eq!(messages == 5, most_messages == 5);
        for &(p, direction, key, end, at) in &all {
            let name = &terms.iter().find(|t| t.1 == p).unwrap().0;
            let edges = || quads.iter().filter(|q| &q[1] == name && &q[at] == end);
            let view = snapshot.edges(p, direction);
            let default = edges().filter(|q| q[3].is_empty()).count() as u64;
            assert_eq!(view.default_degree(key), default);
            assert_eq!(view.named_degree(key), edges().count() as u64 - default);
        }
        assert_eq!(sharded.traffic(), after, "nothing was asked for again");
    }
}

/// Kept lists are charged to the query's memory, and a list without room ends the query.
#[test]
fn kept_lists_are_charged_to_the_query() {
    let quads = varied_quads();
    let (_folder, snapshot, _near) = cut(&quads, 3, Placement::Range);
    let fetch = |snapshot: &Snapshot, memory: &MemoryBudget| {
        snapshot.as_sharded().unwrap().charge_to(memory);
        for (_, p) in predicates(snapshot, &quads) {
            let keys = 1..=snapshot.dense_ids();
            let set = [0, id(snapshot, &quads[0][3])];
            let view = snapshot.edges(p, Direction::Out);
            view.fetch(keys.clone().map(|v| (v, GraphScope::Set(&set))));
            view.fetch(keys.map(|v| (v, GraphScope::Union)));
        }
    };
    let memory = MemoryBudget::new(1 << 30);
    let one = snapshot.for_new_query().into_owned();
    fetch(&one, &memory);
    one.check_shards().unwrap();
    let used = memory.used();
    assert!(used > 10_000, "{used} bytes");
    // Kept lists are not fetched again.
    let set = vec![0, id(&one, &quads[0][3])];
    let (_, p) = predicates(&one, &quads).remove(0);
    let before = one.as_sharded().unwrap().traffic();
    one.edges(p, Direction::Out)
        .fetch((1..=one.dense_ids()).map(|v| (v, GraphScope::Set(&set))));
    assert_eq!(one.as_sharded().unwrap().traffic(), before);
    drop(one);
    assert_eq!(memory.used(), 0);

    // Too little for all, enough for each: older lists are dropped.
    let memory = MemoryBudget::new(used / 4);
    let another = snapshot.for_new_query().into_owned();
    fetch(&another, &memory);
    another.check_shards().unwrap();
    drop(another);
    assert_eq!(memory.used(), 0);

    let memory = MemoryBudget::new(64);
    let poor = snapshot.for_new_query().into_owned();
    fetch(&poor, &memory);
    match poor.check_shards() {
        Err(Error::Limit(_)) => {}
        other => panic!("{other:?}"),
    }
}

/// Keys with long lists are known on every shard, with their lengths, but not on an unsharded store.
#[test]
fn heavy_keys_are_those_with_long_lists() {
    let term = |s: &str, i: usize| format!("<http://e/{s}{i}").into_bytes();
    let mut quads = Vec::new();
    for (hub, len) in [(0, 8191), (1, 8192), (2, 9000)] {
        for i in 0..len {
            quads.push([
                term("s", i),
                b"<http://e/p".to_vec(),
                term("hub", hub),
                Vec::new(),
            ]);
        }
    }
    for i in 0..8500 {
        quads.push([
            term("hub", 1),
            b"<http://e/q".to_vec(),
            term("s", i),
            Vec::new(),
        ]);
    }
    let (_folder, snapshot, near) = cut(&quads, 3, Placement::Hash);
    let known = |name: &[u8]| {
        snapshot
            .predicate_of(snapshot.lookup(name).unwrap())
            .unwrap()
            .0
    };
    let (p, q) = (known(b"<http://e/p"), known(b"<http://e/q"));
    let hub = |i| id(&snapshot, &term("hub", i));
    let mut want = [(hub(1), 8192), (hub(2), 9000)];
    want.sort_unstable();
    for base in near.shards() {
        let found = |p, direction| {
            let keys = base.statistics().heavy_keys(p, direction).iter();
            keys.map(|h| (h.key, h.edges)).collect::<Vec<_>>()
        };
        assert_eq!(found(p, Direction::In), want);
        assert_eq!(found(q, Direction::Out), [(hub(1), 8500)]);
        assert!(found(p, Direction::Out).is_empty() && found(q, Direction::In).is_empty());
    }
    let (_folder, whole) = jindou_store::testing::store_of_terms(&quads);
    assert!(whole.statistics().heavy.is_empty());
}

fn shardings() -> impl Iterator<Item = Sharding> {
    [2, 3, 12].into_iter().flat_map(|shards| {
        let placements = [Placement::Range, Placement::Hash].into_iter();
        placements.flat_map(move |placement| {
            let shifts = [None, Some(0), Some(3)].into_iter();
            shifts.map(move |shift| {
                let sharding = Sharding::new(shards).with_placement(placement);
                sharding.with_block_shift(shift)
            })
        })
    })
}

#[test]
fn shards_together_have_all_the_quads() {
    for (i, sharding) in (0..).zip(shardings()) {
        let quads = match i % 3 {
            0 => quads(i, 900, 3),
            1 => varied_quads(),
            _ => quads(i, 12, 0),
        };
        let own = sharding.shards - 1;
        let (folder, snapshot) = shards_of_terms(&quads, sharding, own);
        agree(&quads, &snapshot);
        snapshot.check_shards().unwrap();
        assert!(snapshot.as_sharded().unwrap().traffic().bytes > 0);
        let report = check(&folder.path().join("store")).unwrap();
        assert!(report.is_sound(), "{sharding:?}: {:?}", report.damages);
        // By id, both directions: each edge twice.
        let distinct: BTreeSet<&TermQuad> = quads.iter().collect();
        assert_eq!(report.edges, 2 * distinct.len() as u64);
    }
}
