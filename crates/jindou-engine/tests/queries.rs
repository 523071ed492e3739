//! Random queries over all operators: planned, run by the engine, and compared with `spareval`.

use jindou_engine::{CollectSink, ExecOptions, QueryTerms, TermDecoder, execute_streaming};
use jindou_model::MemoryBudget;
use jindou_plan::{Form, Plan, PlanOptions, Weight};
use jindou_store::{Snapshot, testing};
use jindou_testing::{Answer, Rng, answer, quads, query};

fn run(snapshot: &Snapshot, plan: &Plan, options: &ExecOptions) -> jindou_model::Result<Answer> {
    let terms = QueryTerms::new();
    let mut sink = CollectSink::default();
    execute_streaming(plan, snapshot, options, &terms, &mut sink)?;
    if plan.form == Form::Ask {
        return Ok(Answer::Boolean(sink.rows > 0));
    }
    let mut decoder = TermDecoder::new(snapshot, &terms);
    let mut rows = Vec::with_capacity(sink.rows);
    for row in sink.rows() {
        let row = row
            .iter()
            .map(|&id| decoder.term(id))
            .collect::<Result<_, _>>()?;
        rows.push(row);
    }
    Ok(Answer::Rows(vec![], rows))
}

fn many(first: u64, stores: u64, queries: usize) {
    let (mut same, mut wrong) = (0, 0);
    for seed in first..first + stores {
        let mut rng = Rng::new(seed);
        let data = quads(&mut rng);
        let (_folder, base) = testing::store_of(&data);
        let snapshot = Snapshot::of_base(base);
        for _ in 0..queries {
            let q = query(&mut rng, &data);
            let want = answer(&data, &q.oracle).unwrap_or_else(|e| panic!("{e}\n{}", q.oracle));
            let want = want.bag();
            let parsed = jindou_plan::parse(&q.text).unwrap_or_else(|e| panic!("{}: {e}", q.text));
            let mut plan = jindou_plan::plan(&parsed, &snapshot, &PlanOptions::default())
                .unwrap_or_else(|e| panic!("{e}\n{}", q.text));
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
                let got = match run(&snapshot, &plan, &options) {
                    Ok(a) => a.bag(),
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
                        jindou_plan::explain(&plan, &snapshot),
                        data.iter().map(|q| format!("{q} .\n")).collect::<String>()
                    );
                }
                break;
            }
        }
    }
    println!("{same} runs agree, {wrong} queries are wrong");
    assert_eq!(wrong, 0);
    assert!(same > 0);
}

#[test]
fn random_queries_agree_with_spareval() {
    many(1, 80, 25);
}

/// `cargo test --release -p jindou-engine --test queries -- --ignored --nocapture`; `JINDOU_SEED` and `JINDOU_STORES` (of 50
/// queries each) choose others.
#[test]
#[ignore = "long: 100,000 queries"]
fn a_hundred_thousand_random_queries_agree_with_spareval() {
    let seed = std::env::var("JINDOU_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(1_000_000);
    let stores = std::env::var("JINDOU_STORES")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(2_000);
    many(seed, stores, 50);
}
