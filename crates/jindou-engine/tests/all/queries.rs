//! Plans and runs random queries with all operators, and compares the answers with `spareval`.

use crate::edits::Edits;
use crate::support::{HeapGraph, run, sharding, spilling};
use jindou_graph::Graph;
use jindou_plan::{Operator, Plan, PlanOptions, Walk, Weight};
use jindou_store::{Snapshot, testing};
use jindou_testing::{
    Query, Rng, answer, comparing_quads, comparing_query, from_environment, overview_quads,
    overview_query, quads, query,
};
use oxrdf::{GraphName, Quad};

/// Functions that make random data, and random queries over it.
#[derive(Clone, Copy)]
struct Maker {
    quads: fn(&mut Rng) -> Vec<Quad>,
    query: fn(&mut Rng, &[Quad]) -> Query,
    /// True if patterns outside GRAPH read the union of all graphs.
    union_default: bool,
}

impl Maker {
    fn plan(&self, query: &str, snapshot: &dyn Graph) -> Plan {
        let parsed = jindou_plan::parse(query).unwrap_or_else(|e| panic!("{query}: {e}"));
        let options = PlanOptions {
            union_default: self.union_default,
            ..PlanOptions::default()
        };
        jindou_plan::plan(&parsed, snapshot, &options).unwrap_or_else(|e| panic!("{e}\n{query}"))
    }

    /// The dataset that the queries see.
    fn dataset(&self, mut data: Vec<Quad>) -> Vec<Quad> {
        if self.union_default {
            let triples = data.clone().into_iter();
            data.extend(triples.map(|q| Quad {
                graph_name: GraphName::DefaultGraph,
                ..q
            }));
        }
        data
    }
}

/// Queries with all operators.
const ALL: Maker = Maker {
    quads,
    query,
    union_default: false,
};
/// Queries in which only comparisons of values connect some groups.
const COMPARING: Maker = Maker {
    quads: comparing_quads,
    query: comparing_query,
    ..ALL
};
/// Queries that counts may answer.
const OVERVIEW: Maker = Maker {
    quads: overview_quads,
    query: overview_query,
    ..ALL
};
/// As [`OVERVIEW`], of all graphs together.
const OVERVIEW_OF_ALL: Maker = Maker {
    union_default: true,
    ..OVERVIEW
};

/// How the data gets into a store.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Loaded,
    /// A part of the data and other quads are loaded; then transactions add and remove quads until the data is
    /// complete.
    Edited,
    /// As [`Self::Edited`], and the edits are merged, all of them or those before the last transaction.
    Merged,
    /// The data is in a graph that is not a store ([`HeapGraph`]).
    OnHeap,
    /// The data is loaded into several shards, and queried at one of them, which requests data from the others.
    Sharded,
    /// As [`Self::Edited`], in several shards.
    ShardedEdited,
}

/// Most have blocks that are as small as possible.
const SHIFTS: [Option<u32>; 4] = [None, None, Some(1), Some(4)];

/// A graph with the data, and the graph before the last transaction.
fn store_of(
    rng: &mut Rng,
    data: &[Quad],
    maker: Maker,
    way: Way,
) -> (tempfile::TempDir, [Snapshot; 2]) {
    let loaded = |rng: &mut Rng, quads: &[Quad]| match way {
        Way::Sharded | Way::ShardedEdited => {
            let (sharding, own) = sharding(rng, SHIFTS);
            jindou_cluster::testing::shards_of(quads, sharding, own)
        }
        _ => {
            let (folder, base) = testing::store_of(quads);
            (folder, Snapshot::of_base(base))
        }
    };
    if !matches!(way, Way::Edited | Way::Merged | Way::ShardedEdited) {
        let (folder, snapshot) = loaded(rng, data);
        return (folder, [snapshot.clone(), snapshot]);
    }
    let edits = Edits::to(rng, data, maker.quads);
    let (folder, first) = loaded(rng, &edits.first);
    let [before, now] = edits.apply(rng, first);
    if way != Way::Merged {
        return (folder, [before, now]);
    }
    let then = if rng.chance(50) { &before } else { &now };
    let merged = testing::merged(&folder.path().join("store"), then, &now);
    (folder, [merged.clone(), merged])
}

/// Runs random queries over random stores. Returns the share of plans, in percent, that read no edges.
fn many(first: u64, stores: u64, queries: usize, maker: Maker, way: Way) -> u64 {
    let (mut same, mut wrong, mut kept, mut known) = (0, 0, 0, 0);
    for seed in first..first + stores {
        let mut rng = Rng::new(seed);
        let data = (maker.quads)(&mut rng);
        let (_folder, stored) = store_of(&mut rng, &data, maker, way);
        let canonical: Vec<_> = data.iter().map(testing::canonical).collect();
        let heap = (way == Way::OnHeap).then(|| HeapGraph::new(&canonical));
        let [before, snapshot]: [&dyn Graph; 2] = match &heap {
            Some(heap) => [heap; 2],
            None => [&stored[0], &stored[1]],
        };
        let seen = maker.dataset(data.clone());
        for _ in 0..queries {
            let q = (maker.query)(&mut rng, &data);
            let want = answer(&seen, &q.oracle).unwrap_or_else(|e| panic!("{e}\n{}", q.oracle));
            let want = want.bag();
            let mut plan = maker.plan(&q.text, snapshot);
            let earlier = maker.plan(&q.text, before);
            if rng.chance(50) && earlier.validity.holds(snapshot) {
                kept += u32::from(before.identity() != snapshot.identity());
                plan = earlier;
            }
            known += u64::from(!reads_edges(&plan));
            for (weight, threads, batch_rows, spills) in [
                (plan.weight, 1, 2048, false),
                (Weight::Light, 1, 16, false),
                (Weight::Heavy, 3, 16, false),
                (Weight::Light, 1, 16, true),
                (Weight::Heavy, 3, 16, true),
            ] {
                plan.weight = weight;
                let options = spilling((threads, batch_rows), 256 << 20, spills);
                let got = match run(snapshot, &plan, &options) {
                    Ok(a) => {
                        stored[1].check_shards().expect("all shards answer");
                        a.bag()
                    }
                    Err(e) => vec![format!("error: {e}")],
                };
                let agree = if q.counts_only {
                    got.len() == want.len()
                } else {
                    got == want
                };
                if agree {
                    same += 1;
                    continue;
                }
                wrong += 1;
                if wrong <= 4 {
                    println!(
                        "seed {seed}, {threads} threads, batches of {batch_rows}\n{}\n{}\nwant {want:#?}\ngot {got:#?}\n{}\n{}",
                        q.text,
                        q.oracle,
                        jindou_plan::explain(&plan, snapshot),
                        data.iter().map(|q| format!("{q} .\n")).collect::<String>()
                    );
                }
                break;
            }
        }
    }
    let known = 100 * known / (stores * queries as u64).max(1);
    println!(
        "{same} runs agree, {wrong} queries are wrong, {kept} plans were made for an earlier snapshot, {known} % of \
         plans read no edges"
    );
    assert_eq!(wrong, 0);
    assert!(same > 0);
    known
}

fn reads_edges(plan: &Plan) -> bool {
    let mut found = false;
    plan.root.walk(&mut |op| {
        found |= matches!(
            op,
            Operator::Explore(_) | Operator::Steps(_) | Operator::Path(_)
        );
        Walk::Into
    });
    found
}

#[test]
fn random_queries_agree_with_spareval() {
    many(1, 80, 25, ALL, Way::Loaded);
}

#[test]
fn random_queries_over_edits_agree_with_spareval() {
    many(5_000, 80, 25, ALL, Way::Edited);
}

#[test]
fn random_queries_over_a_graph_that_is_no_store_agree_with_spareval() {
    many(9_000, 80, 25, ALL, Way::OnHeap);
}

#[test]
fn random_queries_over_shards_agree_with_spareval() {
    many(13_000, 30, 25, ALL, Way::Sharded);
}

#[test]
fn random_queries_over_changed_shards_agree_with_spareval() {
    many(15_000, 60, 25, ALL, Way::ShardedEdited);
}

/// `cargo test --release -p jindou-engine --test all queries:: -- --ignored --nocapture`; `JINDOU_SEED` and
/// `JINDOU_STORES` (of 50 queries each) choose other queries.
#[test]
#[ignore = "long: 100,000 queries"]
fn a_hundred_thousand_random_queries_agree_with_spareval() {
    let seed = from_environment("JINDOU_SEED", 1_000_000);
    let stores = from_environment("JINDOU_STORES", 2_000);
    use Way::{Edited, Loaded, OnHeap, Sharded, ShardedEdited};
    for way in [Loaded, Edited, OnHeap, Sharded, ShardedEdited] {
        many(seed, stores, 50, ALL, way);
    }
}

#[test]
fn random_comparisons_agree_with_spareval() {
    many(17_000, 60, 20, COMPARING, Way::Loaded);
}

#[test]
fn random_comparisons_over_edits_agree_with_spareval() {
    many(19_000, 30, 20, COMPARING, Way::Edited);
}

#[test]
fn random_comparisons_over_shards_agree_with_spareval() {
    many(21_000, 15, 20, COMPARING, Way::Sharded);
}

/// `cargo test --release -p jindou-engine --test all random_comparisons -- --ignored --nocapture`; `JINDOU_SEED` and
/// `JINDOU_STORES` (of 50 queries each) choose other queries.
#[test]
#[ignore = "long: 200,000 queries"]
fn two_hundred_thousand_random_comparisons_agree_with_spareval() {
    let seed = from_environment("JINDOU_SEED", 1_000_000);
    let stores = from_environment("JINDOU_STORES", 4_000);
    many(seed, stores * 8 / 10, 50, COMPARING, Way::Loaded);
    many(seed, stores / 10, 50, COMPARING, Way::Edited);
    many(seed, stores / 10, 50, COMPARING, Way::Sharded);
}

#[test]
fn random_overviews_agree_with_spareval() {
    let known = many(23_000, 100, 25, OVERVIEW, Way::Loaded);
    assert!(known > 10, "counts answer few of the queries");
    many(24_000, 40, 25, OVERVIEW, Way::OnHeap);
    many(24_500, 60, 25, OVERVIEW_OF_ALL, Way::Loaded);
}

#[test]
fn random_overviews_over_edits_agree_with_spareval() {
    let known = many(25_000, 100, 25, OVERVIEW, Way::Edited);
    let merged = many(26_000, 60, 25, OVERVIEW, Way::Merged);
    many(26_500, 60, 25, OVERVIEW_OF_ALL, Way::Edited);
    many(26_700, 30, 25, OVERVIEW_OF_ALL, Way::Merged);
    assert!(known.min(merged) > 10, "counts answer few of the queries");
}

#[test]
fn random_overviews_over_shards_agree_with_spareval() {
    many(27_000, 20, 25, OVERVIEW, Way::Sharded);
    many(27_500, 20, 25, OVERVIEW_OF_ALL, Way::ShardedEdited);
    let known = many(28_000, 40, 25, OVERVIEW, Way::ShardedEdited);
    assert!(known > 5, "counts answer few of the queries");
}

/// `cargo test --release -p jindou-engine --test all overviews -- --ignored --nocapture`; `JINDOU_SEED` and
/// `JINDOU_STORES` (of 50 queries each) choose other queries.
#[test]
#[ignore = "long: 100,000 queries"]
fn a_hundred_thousand_random_overviews_agree_with_spareval() {
    let seed = from_environment("JINDOU_SEED", 1_000_000);
    let stores = from_environment("JINDOU_STORES", 2_000);
    for way in [Way::Loaded, Way::Edited, Way::Merged, Way::OnHeap] {
        many(seed, stores / 5, 50, OVERVIEW, way);
        many(seed, stores / 10, 50, OVERVIEW_OF_ALL, way);
    }
    many(seed, stores / 10, 50, OVERVIEW, Way::Sharded);
    many(seed, stores / 10, 50, OVERVIEW, Way::ShardedEdited);
}

/// Runs the random queries without the loops that use AVX2.
#[test]
fn random_queries_without_avx2_agree_with_spareval() {
    let this = std::env::current_exe().expect("this test's program");
    let ran = std::process::Command::new(this)
        .env("JINDOU_PORTABLE", "1")
        .args(["--exact", "queries::random_queries_agree_with_spareval"])
        .output()
        .expect("a process");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}
