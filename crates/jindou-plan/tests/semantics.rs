//! The key test: every plan means what its query means. A naive interpreter carries plans out, step by step over
//! a list of quads; a nested loop over the same list answers the query. Random graphs, random queries.

mod naive;

use naive::interpret;
use naive::query::{self, Case, Rng};

/// Runs `queries` random queries on each of `stores` random stores.
fn run(seed: u64, stores: usize, queries: usize) {
    let (mut native, mut skipped, mut rows, mut empty) = (0, 0, 0usize, 0);
    for i in 0..stores {
        let mut rng = Rng::new(seed + i as u64);
        let case = Case::random(&mut rng);
        for _ in 0..queries {
            let q = query::random(&mut rng, &case.quads);
            let text = q.text();
            let Some(want) = query::answer(&q, &case.quads) else {
                skipped += 1;
                continue;
            };
            let parsed = jindou_plan::parse(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
            let options = jindou_plan::PlanOptions {
                union_default: q.union_default,
            };
            let planned = jindou_plan::plan(&parsed, &case.snapshot, &options).unwrap();
            let jindou_plan::Planned::Native(plan) = planned else {
                panic!("seed {seed}+{i}: not native: {planned:?}\n{text}");
            };
            let Some(got) = interpret::run(&plan, &case) else {
                skipped += 1;
                continue;
            };
            let explained = jindou_plan::explain(&plan, &case.snapshot);
            assert!(
                query::agree(&q, &want, &got),
                "seed {seed}+{i} union {} patched {}\n{text}\nwant {want:?}\ngot {got:?}\n{explained}\n{plan:#?}\n{:?}",
                q.union_default,
                case.snapshot.is_patched(),
                case.quads
            );
            native += 1;
            rows += want.len();
            empty += usize::from(want.is_empty());
        }
    }
    println!("{native} plans agree, {rows} rows, {empty} empty, {skipped} skipped as too large");
    assert!(
        native * 10 > stores * queries * 7,
        "most cases must be tried"
    );
    assert!(empty * 10 < native * 6, "some queries must have answers");
}

#[test]
fn plans_mean_what_queries_mean() {
    run(1, 24, 100);
}

/// The same for longer: `cargo test --release -- --ignored`.
#[test]
#[ignore = "minutes"]
fn plans_mean_what_queries_mean_for_long() {
    run(1_000_000, 1_000, 100);
}
