//! Counts the allocations, and their bytes, that parsing and planning take for the queries of LUBM, WatDiv and BSBM,
//! over a small graph of each.
//!
//! `plan_allocations [ROUNDS]` plans each query `ROUNDS` times more, for `valgrind --tool=callgrind`.

use jindou_model::{Progress, QuadSource, Result};
use jindou_plan::{PlanOptions, parse, plan};
use jindou_store::{LoadOptions, Snapshot, load, open};
use jindou_testing::{Counting, counted};
use jindou_workloads::bsbm::Bsbm;
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::{bsbm, lubm, watdiv};
use jindou_workloads::watdiv::{Watdiv, WatdivModel};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> Result<()> {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let rounds = rounds.unwrap_or(0);
    let texts: Vec<String> = lubm::QUERIES.iter().map(|q| q.text.to_owned()).collect();
    measure_set("LUBM", &Lubm::new(1, 0), &texts, rounds)?;
    let texts: Vec<String> = watdiv::instances(1, 0, 1)?
        .into_iter()
        .map(|i| i.text)
        .collect();
    let data = Watdiv::new(&WatdivModel::standard(), 1, 0)?;
    measure_set("WatDiv", &data, &texts, rounds)?;
    let data = Bsbm::new(100, 0);
    let all = bsbm::EXPLORE.iter().chain(&bsbm::BUSINESS);
    let texts: Vec<String> = all
        .flat_map(|t| t.instances(&data, 1))
        .map(|i| i.text)
        .collect();
    measure_set("BSBM", &data, &texts, rounds)
}

fn measure_set(name: &str, data: &dyn QuadSource, texts: &[String], rounds: usize) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("plan-allocations-{}", std::process::id()));
    let options = LoadOptions::default().with_threads(2);
    load(&folder, data, &options, &Progress::default())?;
    let snapshot = Snapshot::of_base(open(&folder)?);
    let options = PlanOptions::default();
    let (mut parsing, mut planning) = ([0; 2], [0; 2]);
    for text in texts {
        // The first time fills caches, which must not count.
        plan(&parse(text)?, &snapshot, &options)?;
        let (query, parsed) = counted(|| parse(text));
        let query = query?;
        let (planned, taken) = counted(|| plan(&query, &snapshot, &options));
        planned?;
        for (sum, one) in [(&mut parsing, parsed), (&mut planning, taken)] {
            sum[0] += one.number;
            sum[1] += one.bytes;
        }
        for _ in 0..rounds {
            plan(&parse(text)?, &snapshot, &options)?;
        }
    }
    let n = texts.len() as u64;
    println!(
        "{name}, {n} queries, each on average: parse {} allocations of {} bytes, plan {} of {}",
        parsing[0] / n,
        parsing[1] / n,
        planning[0] / n,
        planning[1] / n
    );
    drop(snapshot);
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}
