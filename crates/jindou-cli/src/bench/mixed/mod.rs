//! `jindou bench mixed`: many light queries at once, alone and beside heavy ones (OSDI '16, §7.5; ATC '18, §6.6).

mod alone;
mod classes;
mod emulate;
mod histogram;
mod http;
mod plot;

use crate::args_mixed::{BenchMixed, Rate, Scheduling};
use alone::{How, alone};
use classes::{Class, Template};
use emulate::{Arrivals, Outcome, Plan, Setup};
use histogram::Histogram;
use jindou::{Database, Error, QueryOptions, Result};
use jindou_scheduler::{Limits, Options};
use jindou_workloads::queries::lubm;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// A run and what it is called.
struct Named {
    title: String,
    outcome: Outcome,
}

pub fn run(a: &BenchMixed) -> Result<ExitCode> {
    let db = Database::open(&a.store)?;
    let templates = match &a.templates {
        Some(dir) => classes::folder(dir)?,
        None => classes::lubm(),
    };
    let mut setup = prepare(db, &templates, a)?;
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
        setup.sums = sums(&setup.classes);
    }
    let setup = Arc::new(setup);
    println!(
        "{} triples; one thread without a scheduler: {:.0} prepared queries/s ({:.0} a second of processor time), {:.0} ({:.0}) as text",
        Database::info(&a.store)?.quads,
        prepared.rate,
        prepared.of_processor,
        text.rate,
        text.of_processor
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
    let runs = if a.http {
        over_http(a, &setup)?
    } else {
        all_runs(a, &setup)?
    };
    let panels: Vec<plot::Panel<'_>> = runs.iter().map(|r| panel(&setup, r)).collect();
    write(a.svg.as_deref(), || plot::svg(&panels))?;
    write(a.csv.as_deref(), || plot::csv(&panels))?;
    write(a.json.as_deref(), || {
        let runs: Vec<_> = runs.iter().map(|r| as_json(&setup, r)).collect();
        let document = json!({
            "prepared_alone": prepared.rate, "text_alone": text.rate,
            "prepared_alone_processor": prepared.of_processor, "text_alone_processor": text.of_processor, "runs": runs,
        });
        format!("{document:#}\n")
    })?;
    Ok(ExitCode::SUCCESS)
}

fn write(path: Option<&Path>, text: impl FnOnce() -> String) -> Result<()> {
    match path {
        Some(path) => std::fs::write(path, text()).map_err(|e| Error::io(path, e)),
        None => Ok(()),
    }
}

fn sums(classes: &[Class]) -> Vec<f64> {
    classes
        .iter()
        .scan(0.0, |sum, c| {
            *sum += c.weight;
            Some(*sum)
        })
        .collect()
}

fn prepare(db: Database, templates: &[Template], a: &BenchMixed) -> Result<Setup> {
    let classes = templates
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
        heavy.push((name, db.plan(&text, &options)?));
    }
    Ok(Setup {
        sums: sums(&classes),
        db,
        classes,
        heavy,
        light_limit: a.light_limit,
        deadline: a.deadline,
    })
}

fn options(a: &BenchMixed, s: &Scheduling, workers: usize, threads: usize, open: bool) -> Options {
    let limits = Limits {
        light: a.queue,
        heavy: 256,
        // In a closed loop the clients bound what waits.
        light_wait: if open { a.max_wait } else { Duration::MAX },
        heavy_wait: Duration::MAX,
        light_workers: workers,
        heavy_workers: threads,
    };
    Options {
        workers,
        policy: s.policy(),
        stuck_after: a.stuck_after,
        heavy_threads: threads,
        heavy_workers: threads,
        isolate: s.isolates(),
        limits,
    }
}

fn all_runs(a: &BenchMixed, setup: &Arc<Setup>) -> Result<Vec<Named>> {
    let closed = Arrivals::Closed {
        clients: a.clients,
        window: a.window,
    };
    let plan = |arrivals, heavy_clients| Plan {
        arrivals,
        heavy_clients,
        then: None,
        warm_up: a.warm_up,
        duration: a.duration,
        seed: a.seed,
    };
    let mut runs = vec![];
    header(setup);
    let mut go = |title: String, o: &Options, p: &Plan| -> Result<f64> {
        let outcome = emulate::run(setup, o, p)?;
        let rate = outcome.light_rate();
        print(&title, setup, &outcome);
        runs.push(Named { title, outcome });
        Ok(rate)
    };
    let heavy = if setup.heavy.is_empty() {
        0
    } else {
        a.heavy_clients
    };
    for &workers in &a.workers {
        let mut peak: f64 = 0.0;
        for s in &a.scheduling {
            let o = options(a, s, workers, 1, false);
            if !a.only_heavy {
                let title = format!("{workers} workers, {s}, light alone");
                peak = peak.max(go(title, &o, &plan(closed, 0))?);
            }
        }
        for rate in &a.rates {
            let (per_second, name) = match rate {
                Rate::Absolute(n) => (*n, format!("{n:.0}/s")),
                Rate::OfPeak(x) => (peak * x, format!("{x} × peak")),
            };
            let arrivals = Arrivals::Open {
                rate: per_second,
                clients: a.clients,
            };
            for s in &a.scheduling {
                let o = options(a, s, workers, 1, true);
                let mut p = plan(arrivals, 0);
                // Behind an overload, half of what can be done.
                p.then = (per_second > peak && peak > 0.0).then_some(peak / 2.0);
                go(format!("{workers} workers, {s}, open loop {name}"), &o, &p)?;
            }
        }
        if heavy == 0 {
            continue;
        }
        for &threads in &a.mt_threshold {
            let threads = threads.min(workers);
            let first = &a.scheduling[0];
            let o = options(a, first, workers, threads, false);
            let title = format!("{workers} workers, heavy alone on {threads}");
            go(title, &o, &plan(Arrivals::None, heavy))?;
            for s in &a.scheduling {
                let title = format!("{workers} workers, {s}, light beside heavy on {threads}");
                go(
                    title,
                    &options(a, s, workers, threads, false),
                    &plan(closed, heavy),
                )?;
                for rate in &a.rates {
                    let Rate::Absolute(n) = rate else { continue };
                    let arrivals = Arrivals::Open {
                        rate: *n,
                        clients: a.clients,
                    };
                    let title = format!(
                        "{workers} workers, {s}, open loop {n:.0}/s beside heavy on {threads}"
                    );
                    go(
                        title,
                        &options(a, s, workers, threads, true),
                        &plan(arrivals, heavy),
                    )?;
                }
            }
        }
    }
    Ok(runs)
}

/// The light mix over HTTP: each query a request; then in batches, or pipelined, if that was asked for.
fn over_http(a: &BenchMixed, setup: &Arc<Setup>) -> Result<Vec<Named>> {
    let mut ways = vec![("one a request".to_owned(), 1, 1)];
    if a.pipeline > 1 {
        ways.push((format!("{} pipelined", a.pipeline), 1, a.pipeline));
    }
    if a.batch > 1 {
        ways.push((format!("{} a batch", a.batch), a.batch, 1));
    }
    header(setup);
    let mut runs = vec![];
    for (name, batch, pipeline) in ways {
        let travel = http::Travel { batch, pipeline };
        let mut go = |title: String, arrivals| -> Result<f64> {
            let options = jindou_server::ServerOptions {
                port: 0,
                slow_query: None,
                ..jindou_server::ServerOptions::default()
            };
            let plan = Plan {
                arrivals,
                heavy_clients: 0,
                then: None,
                warm_up: a.warm_up,
                duration: a.duration,
                seed: a.seed,
            };
            let outcome = http::run(setup, options, travel, &plan)?;
            let rate = outcome.light_rate();
            print(&title, setup, &outcome);
            runs.push(Named { title, outcome });
            Ok(rate)
        };
        let clients = a.clients;
        let closed = Arrivals::Closed { clients, window: 1 };
        let peak = go(format!("HTTP, {clients} clients, {name}"), closed)?;
        for rate in &a.rates {
            let rate = match rate {
                Rate::Absolute(n) => *n,
                Rate::OfPeak(x) => peak * x,
            };
            let title = format!("HTTP, {clients} clients, {name}, open loop {rate:.0}/s");
            go(title, Arrivals::Open { rate, clients })?;
        }
    }
    Ok(runs)
}

/// What 99 of a hundred light queries must keep for a scheduler to be well.
const WELL: Duration = Duration::from_millis(20);
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

fn header(setup: &Setup) {
    println!(
        "latencies in µs from (intended) arrival to the last row; {} classes, {} heavy queries",
        setup.classes.len(),
        setup.heavy.len()
    );
    println!(
        "{:<58} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10}",
        "run", "queries/s", "p50", "p90", "p99", "p99.9", "max"
    );
}

fn line(name: &str, h: &Histogram, seconds: f64) {
    let q = QUANTILES.map(|q| format!(" {:>9.1}", h.quantile(q).as_secs_f64() * 1e6));
    println!(
        "{name:<58} {:>9.1}{} {:>10.1}",
        h.count() as f64 / seconds,
        q.concat(),
        h.max().as_secs_f64() * 1e6
    );
}

fn print(title: &str, setup: &Setup, o: &Outcome) {
    if o.light.count() > 0 || o.heavy.count() == 0 {
        line(title, &o.light, o.seconds);
    } else {
        println!("{title}");
    }
    for (name, h) in setup.names().zip(&o.latencies) {
        if h.count() > 0 {
            line(&format!("    {name}"), h, o.seconds);
        }
    }
    let c = &o.counts;
    println!(
        "    taken from others {}, moved to heavy {}, helped {}; refused {:.0}/s, unsent {:.0}/s, late {}, unfinished {}; {:.2} µs of processor time a light query, all included; own memory {} → {} MiB; {} answers compared",
        c.taken,
        c.moved,
        c.helped,
        o.refused as f64 / o.seconds,
        o.unsent as f64 / o.seconds,
        o.late,
        o.unfinished,
        o.processor * 1e6 / o.light.count().max(1) as f64,
        o.memory[0] >> 20,
        o.memory[1] >> 20,
        o.checked
    );
    if !o.after.is_empty() {
        match o.recovered(WELL) {
            Some(time) => println!(
                "    then at half the peak: nothing refused and p99 under {WELL:?} from {time:?} on"
            ),
            None => println!(
                "    then at half the peak: not well within {:?}",
                emulate::AFTER
            ),
        }
    }
}

fn panel<'a>(setup: &'a Setup, run: &'a Named) -> plot::Panel<'a> {
    plot::Panel {
        title: run.title.clone(),
        curves: setup
            .names()
            .zip(&run.outcome.latencies)
            .filter(|(_, h)| h.count() > 0)
            .collect(),
    }
}

fn as_json(setup: &Setup, run: &Named) -> serde_json::Value {
    let o = &run.outcome;
    let of = |h: &Histogram| {
        let us = |d: Duration| d.as_secs_f64() * 1e6;
        json!({
            "count": h.count(), "mean_us": us(h.mean()), "max_us": us(h.max()),
            "p50_us": us(h.quantile(0.5)), "p90_us": us(h.quantile(0.9)),
            "p99_us": us(h.quantile(0.99)), "p999_us": us(h.quantile(0.999)),
        })
    };
    let classes: serde_json::Map<String, serde_json::Value> = setup
        .names()
        .zip(&o.latencies)
        .map(|(n, h)| (n.to_owned(), of(h)))
        .collect();
    json!({
        "run": run.title, "seconds": o.seconds, "light_per_second": o.light_rate(),
        "heavy_per_second": o.heavy_rate(), "light": of(&o.light), "heavy": of(&o.heavy),
        "classes": classes, "refused": o.refused, "unsent": o.unsent,
        "recovered_seconds": o.recovered(WELL).map(|d| d.as_secs_f64()), "late": o.late, "unfinished": o.unfinished,
        "taken": o.counts.taken, "moved": o.counts.moved, "helped": o.counts.helped,
        "memory_bytes": o.memory, "processor_seconds": o.processor, "compared": o.checked,
    })
}

#[cfg(test)]
mod tests {
    use crate::args::Args;
    use clap::Parser;
    use std::path::Path;

    fn run(store: &Path, more: &str) {
        let store = store.to_string_lossy().into_owned();
        let fixed = ["jindou", "bench", "mixed", "--store", &store];
        let short = "--warm-up 30ms --duration 150ms --starts 100 --check 5";
        let words = short.split_whitespace().chain(more.split_whitespace());
        let args = Args::try_parse_from(fixed.into_iter().chain(words)).expect("arguments");
        let code = crate::commands::run(args).expect("answers that are right");
        assert_eq!(
            format!("{code:?}"),
            format!("{:?}", std::process::ExitCode::SUCCESS)
        );
    }

    /// Answers are compared with plain execution inside, before and during each run.
    #[test]
    fn every_way_to_ask_the_mix_gets_its_answers() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("store");
        let dir = store.to_string_lossy().into_owned();
        let load = [
            "jindou", "load", "--quiet", "--source", "lubm:1", "--store", &dir,
        ];
        crate::commands::run(Args::try_parse_from(load).expect("arguments")).expect("a load");
        run(
            &store,
            "--heavy L1,L7 --scheduling oblige,private,stealing,shared,isolation --mt-threshold 1,2",
        );
        let svg = folder.path().join("cdf.svg");
        run(
            &store,
            &format!("--rates 0.5x,10x --reciprocal --svg {}", svg.display()),
        );
        assert!(
            std::fs::read_to_string(svg)
                .expect("a plot")
                .ends_with("</svg>\n")
        );
        run(&store, "--http --batch 20 --pipeline 4 --clients 2");
    }
}
