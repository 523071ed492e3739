//! `jindou bench mixed`: many light queries at once, alone and alongside heavy ones (OSDI '16, §7.5; ATC '18, §6.6).

mod alone;
pub mod arrivals;
mod classes;
mod emulate;
mod histogram;
mod http;
mod machine;
mod outcome;
mod report;
mod runs;

use crate::args::mixed::BenchMixed;
use alone::{How, alone};
use classes::Class;
use emulate::{Heavy, Setup};
use jindou::{Database, Error, QueryOptions, Result};
use jindou_workloads::queries::lubm;
use report::print_stalls;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

pub fn run(a: &BenchMixed) -> Result<ExitCode> {
    let db = Database::open(&a.store)?;
    let mut setup = prepare(db, a)?;
    setup.sums = sums(&setup, false);
    for c in &setup.classes {
        c.check(&setup.db, a.check)?;
    }
    let prepared = alone(&setup, How::Prepared, a.warm_up, a.seed)?;
    let text = alone(&setup, How::Text, a.warm_up, a.seed)?;
    if a.reciprocal {
        // The papers' shares: by the reciprocal of the mean latency.
        for (class, mean) in setup.classes.iter_mut().zip(&prepared.means) {
            class.weight = 1.0 / mean.max(1e-9);
        }
        for heavy in &mut setup.heavy {
            heavy.weight = 1.0 / heavy_mean(&setup.db, heavy)?.as_secs_f64().max(1e-9);
        }
    }
    setup.sums = sums(&setup, a.freely);
    let setup = Arc::new(setup);
    let quads = Database::info(&a.store)?.quads;
    println!(
        "{quads} triples; one thread without a scheduler: {:.0} prepared queries/s ({:.0} a second of processor time), {:.0} ({:.0}) as text",
        prepared.rate, prepared.of_processor, text.rate, text.of_processor
    );
    for (c, (p, t)) in setup
        .classes
        .iter()
        .zip(prepared.means.iter().zip(&text.means))
    {
        println!(
            "  {:<4} weight {:>6.1} {:>8} start points {:>9.2} µs prepared {:>9.2} µs as text",
            c.name,
            100.0 * c.weight / setup.sums.last().unwrap_or(&1.0),
            c.starts.len(),
            p * 1e6,
            t * 1e6
        );
    }
    if let Some(time) = a.stalls {
        let threads = a.workers.iter().copied().max().unwrap_or(1);
        print_stalls(&machine::stalls(threads, time), machine::arithmetic());
    }
    if a.http {
        runs::over_http(a, &setup)?;
    } else {
        runs::all(a, &setup)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Running sums of the weights of all queries that clients of light queries may send.
fn sums(setup: &Setup, freely: bool) -> Vec<f64> {
    let heavy = setup.heavy.iter().map(|h| h.weight).filter(|_| freely);
    let all = setup.classes.iter().map(|c| c.weight).chain(heavy);
    all.scan(0.0, |sum, weight| {
        *sum += weight;
        Some(*sum)
    })
    .collect()
}

/// The mean time of five runs on one thread.
fn heavy_mean(db: &Database, heavy: &Heavy) -> Result<Duration> {
    let options = QueryOptions::default().with_threads(1);
    db.checksum(&heavy.planned, &options)?;
    let begin = std::time::Instant::now();
    for _ in 0..5 {
        db.checksum(&heavy.planned, &options)?;
    }
    Ok(begin.elapsed() / 5)
}

fn prepare(db: Database, a: &BenchMixed) -> Result<Setup> {
    let classes = classes::lubm()
        .iter()
        .map(|t| Class::new(&db, t, a.starts))
        .collect::<Result<Vec<_>>>()?;
    let options = QueryOptions::default();
    let mut heavy = vec![];
    for name in &a.heavy {
        let (name, text) = match lubm::query(name) {
            Some(q) => (name.clone(), q.text.to_owned()),
            None => {
                let path = Path::new(name);
                let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
                let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned());
                (stem.unwrap_or_else(|| name.clone()), text)
            }
        };
        heavy.push(Heavy {
            name,
            planned: db.plan(&text, &options)?,
            text,
            weight: 0.0,
        });
    }
    Ok(Setup {
        sums: vec![],
        db,
        classes,
        heavy,
    })
}

#[cfg(test)]
mod tests {
    use crate::args::Args;
    use clap::Parser;
    use jindou::{Database, LoadOptions, Progress};
    use jindou_workloads::lubm::Lubm;
    use std::path::Path;

    fn run(store: &Path, more: &str) {
        let store = store.to_string_lossy().into_owned();
        let fixed = ["jindou-bench", "mixed", "--store", &store];
        let short = "--warm-up 30ms --duration 150ms --starts 100 --check 5";
        let words = short.split_whitespace().chain(more.split_whitespace());
        let args = Args::try_parse_from(fixed.into_iter().chain(words)).expect("arguments");
        let code = crate::run(args.command).expect("answers that are right");
        assert_eq!(
            format!("{code:?}"),
            format!("{:?}", std::process::ExitCode::SUCCESS)
        );
    }

    /// The command itself compares answers with plain execution, before and during each run.
    #[test]
    fn every_way_to_ask_the_mix_gets_its_answers() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("store");
        let options = LoadOptions::default().with_threads(2);
        Database::load(&store, &Lubm::new(1, 0), &options, &Progress::default()).expect("a load");
        run(
            &store,
            "--heavy L1,L7 --scheduling oblige,private,stealing,shared,isolation --mt-threshold 1,2",
        );
        run(&store, "--rates 0.5x,10x --reciprocal");
        run(&store, "--http --batch 20 --pipeline 4 --clients 2");
        run(&store, "--http --batch 20 --rates 3x --clients 40");
        run(
            &store,
            "--http --heavy L1,L7 --heavy-clients 2 --clients 2 --rates 0.5x",
        );
        run(&store, "--heavy L1 --stalls 20ms --rounds 2");
        run(
            &store,
            "--heavy L2 --reciprocal --freely --mt-threshold 1,2",
        );
    }
}
