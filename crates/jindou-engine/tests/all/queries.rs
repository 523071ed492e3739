//! Plans and runs random queries with all operators, and compares the answers with `spareval`.

use crate::edits::Edits;
use crate::support::{HeapGraph, run, sharding};
use jindou_engine::ExecOptions;
use jindou_graph::Graph;
use jindou_model::MemoryBudget;
use jindou_plan::{PlanOptions, Weight};
use jindou_store::{Snapshot, testing};
use jindou_testing::{
    Query, Rng, answer, comparing_quads, comparing_query, from_environment, quads, query,
};
use oxrdf::Quad;

/// Functions that make random data, and random queries over it.
#[derive(Clone, Copy)]
struct Maker {
    quads: fn(&mut Rng) -> Vec<Quad>,
    query: fn(&mut Rng, &[Quad]) -> Query,
}

/// Queries with all operators.
const ALL: Maker = Maker { quads, query };
/// Queries in which only comparisons of values connect some groups.
const COMPARING: Maker = Maker {
    quads: comparing_quads,
    query: comparing_query,
};

/// How the data gets into a store.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Loaded,
    /// A part of the data and other quads are loaded; then transactions add and remove quads until the data is
    /// complete.
    Edited,
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
    if way == Way::Sharded {
        let (sharding, own) = sharding(rng, SHIFTS);
        let (folder, snapshot) = jindou_cluster::testing::shards_of(data, sharding, own);
        return (folder, [snapshot.clone(), snapshot]);
    }
    if !matches!(way, Way::Edited | Way::ShardedEdited) {
        let (folder, base) = testing::store_of(data);
        let snapshot = Snapshot::of_base(base);
        return (folder, [snapshot.clone(), snapshot]);
    }
    let edits = Edits::to(rng, data, maker.quads);
    let (folder, loaded) = if way == Way::ShardedEdited {
        let (sharding, own) = sharding(rng, SHIFTS);
        jindou_cluster::testing::shards_of(&edits.first, sharding, own)
    } else {
        let (folder, base) = testing::store_of(&edits.first);
        (folder, Snapshot::of_base(base))
    };
    (folder, edits.apply(rng, loaded))
}

fn many(first: u64, stores: u64, queries: usize, maker: Maker, way: Way) {
    let (mut same, mut wrong, mut kept) = (0, 0, 0);
    for seed in first..first + stores {
        let mut rng = Rng::new(seed);
        let data = (maker.quads)(&mut rng);
        let (_folder, stored) = store_of(&mut rng, &data, maker, way);
        let canonical: Vec<_> = data.iter().map(testing::canonical).collect();
        let heap = HeapGraph::new(if way == Way::OnHeap {
            &canonical
        } else {
            &[][..]
        });
        let [before, snapshot]: [&dyn Graph; 2] = match way {
            Way::OnHeap => [&heap; 2],
            Way::Loaded | Way::Edited | Way::Sharded | Way::ShardedEdited => {
                [&stored[0], &stored[1]]
            }
        };
        for _ in 0..queries {
            let q = (maker.query)(&mut rng, &data);
            let want = answer(&data, &q.oracle).unwrap_or_else(|e| panic!("{e}\n{}", q.oracle));
            let want = want.bag();
            let parsed = jindou_plan::parse(&q.text).unwrap_or_else(|e| panic!("{}: {e}", q.text));
            let mut plan = jindou_plan::plan(&parsed, snapshot, &PlanOptions::default())
                .unwrap_or_else(|e| panic!("{e}\n{}", q.text));
            let earlier = jindou_plan::plan(&parsed, before, &PlanOptions::default()).unwrap();
            if rng.chance(50) && earlier.validity.holds(snapshot) {
                kept += u32::from(before.identity() != snapshot.identity());
                plan = earlier;
            }
            for (weight, threads, batch_rows) in [
                (plan.weight, 1, 2048),
                (Weight::Light, 1, 16),
                (Weight::Heavy, 3, 16),
            ] {
                plan.weight = weight;
                let options = ExecOptions {
                    threads,
                    batch_rows,
                    memory: MemoryBudget::new(256 << 20),
                    ..ExecOptions::default()
                };
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
    println!(
        "{same} runs agree, {wrong} queries are wrong, {kept} plans were made for an earlier snapshot"
    );
    assert_eq!(wrong, 0);
    assert!(same > 0);
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
    many(seed, stores, 50, ALL, Way::Loaded);
    many(seed, stores, 50, ALL, Way::Edited);
    many(seed, stores, 50, ALL, Way::OnHeap);
    many(seed, stores, 50, ALL, Way::Sharded);
    many(seed, stores, 50, ALL, Way::ShardedEdited);
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
