//! Plan times.
//!
//! `plan_bench STORE FILE.rq…` explains each query and prints the median time to parse and to plan it.
//! `plan_bench --many` makes a store of 14,000 predicates (by Zipf) and over 10,000 characteristic sets and plans
//! random connected patterns of 1 to 12 triples on it: median and worst.

use jindou_model::term;
use jindou_plan::{PlanOptions, explain, parse, plan};
use jindou_store::{Snapshot, open, testing};
use std::path::Path;
use std::time::Instant;

fn main() -> jindou_model::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((first, _)) if first == "--many" => {
            many();
            Ok(())
        }
        Some((dir, files)) if !files.is_empty() => some(Path::new(dir), files),
        _ => {
            eprintln!("usage: plan_bench STORE FILE.rq… | plan_bench --many");
            std::process::exit(2);
        }
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn some(dir: &Path, files: &[String]) -> jindou_model::Result<()> {
    let snapshot = Snapshot::of_base(open(dir)?);
    let options = PlanOptions::default();
    for file in files {
        let text = std::fs::read_to_string(file).map_err(|e| jindou_model::Error::io(file, e))?;
        let (mut parses, mut plans) = (vec![], vec![]);
        let mut planned = None;
        for _ in 0..31 {
            let clock = Instant::now();
            let query = parse(&text)?;
            parses.push(clock.elapsed().as_secs_f64() * 1e6);
            let clock = Instant::now();
            planned = Some(plan(&query, &snapshot, &options)?);
            plans.push(clock.elapsed().as_secs_f64() * 1e6);
        }
        println!(
            "{file}: parse {:.1} µs, plan {:.1} µs",
            median(parses),
            median(plans)
        );
        if let Some(p) = planned {
            println!("{}", explain(&p, &snapshot));
        }
    }
    Ok(())
}

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        jindou_model::random::splitmix64(&mut self.0)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// A rank below `n`, about as rare as one over it.
    fn zipf(&mut self, n: usize) -> usize {
        let u = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        ((n as f64).powf(u) as usize).clamp(1, n) - 1
    }
}

const PREDICATES: usize = 14_000;
const SETS: usize = 14_000;

fn iri(kind: char, n: usize) -> Vec<u8> {
    let mut out = vec![];
    term::push_iri(&format!("http://example.org/{kind}/{n}"), &mut out);
    out
}

fn many() {
    let mut rng = Rng(1);
    let mut sets = vec![];
    let mut quads = vec![];
    let subjects = 3 * SETS;
    for set in 0..SETS {
        // Every set has some of the commonest predicates: the planner's worst case.
        let mut predicates: Vec<usize> = (0..12).filter(|_| rng.below(10) < 8).collect();
        predicates.extend((0..4 + rng.below(12)).map(|_| rng.zipf(PREDICATES)));
        predicates.sort_unstable();
        predicates.dedup();
        for i in 0..3 {
            let s = iri('s', 3 * set + i);
            for &p in &predicates {
                quads.push([
                    s.clone(),
                    iri('p', p),
                    iri('s', rng.below(subjects)),
                    vec![],
                ]);
            }
            for _ in 0..1 + rng.below(2) {
                quads.push([s.clone(), term::rdf_type(), iri('c', rng.zipf(300)), vec![]]);
            }
        }
        sets.push(predicates);
    }
    let (_folder, base) = testing::store_of_terms(&quads);
    let snapshot = Snapshot::of_base(base);
    let statistics = snapshot.statistics();
    println!(
        "{} quads, {} predicates, {} planner sets",
        quads.len(),
        statistics.predicates.len(),
        statistics.sets.len()
    );
    drop(quads);
    // The allocator tidies up after this much was freed; that is not planning.
    let warm = query(&mut rng, &sets, "star of frequent predicates", 12);
    assert!(parse(&warm).is_ok_and(|q| plan(&q, &snapshot, &PlanOptions::default()).is_ok()));
    for shape in [
        "star of frequent predicates",
        "star of a real set",
        "chain",
        "mixed",
    ] {
        for size in [1, 2, 4, 6, 8, 12] {
            let mut times = vec![];
            for _ in 0..200 {
                let text = query(&mut rng, &sets, shape, size);
                let query = parse(&text).unwrap_or_else(|e| panic!("{e}"));
                let clock = Instant::now();
                let planned = plan(&query, &snapshot, &PlanOptions::default());
                times.push(clock.elapsed().as_secs_f64() * 1e3);
                assert!(planned.is_ok());
            }
            let worst = times.iter().copied().fold(0.0, f64::max);
            println!(
                "{shape:28} {size:3} patterns: median {:7.3} ms, worst {worst:7.3} ms",
                median(times)
            );
        }
    }
}

fn query(rng: &mut Rng, sets: &[Vec<usize>], shape: &str, size: usize) -> String {
    let mut out = String::from("SELECT * {\n");
    let mut vars = 1;
    for i in 0..size {
        let set = &sets[rng.below(sets.len())];
        let p = match shape {
            "star of frequent predicates" => i,
            "star of a real set" => sets[17].get(i).copied().unwrap_or(i),
            _ => set[rng.below(set.len())],
        };
        let s = match shape {
            "chain" => i,
            "mixed" => rng.below(vars),
            _ => 0,
        };
        let o = if shape == "mixed" && rng.below(4) == 0 {
            rng.below(vars)
        } else {
            vars
        };
        vars = vars.max(o + 1);
        out += &format!("  ?v{s} <http://example.org/p/{p}> ?v{o} .\n");
    }
    out + "}"
}
