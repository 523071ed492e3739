//! `jindou bench bsbm`, `sp2b` and `lubm --official`: a set of queries over data that is generated, alone or
//! beside other engines.

use super::measure::{Measured, Times, measure, peak_memory};
use super::peers::{Work, Workload, run as run_peers};
use crate::args::{BenchBsbm, BenchLubm, BenchMix, BenchSp2b, BsbmMix};
use crate::measure::threads_or_all;
use jindou::{
    Database, Error, InfoReport, LoadOptions, LoadReport, Progress, QuadSource, QueryOptions,
    Resource, Result,
};
use jindou_peers::Named;
use jindou_workloads::bsbm::Bsbm;
use jindou_workloads::lubm::{Inferred, Lubm};
use jindou_workloads::ntriples::{TagCase, write_source};
use jindou_workloads::queries::{bsbm as bsbm_queries, lubm_official, sp2b as sp2b_queries};
use jindou_workloads::sp2b::Sp2b;
use serde_json::json;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Data, and what to ask of it.
struct Mix<'a> {
    title: String,
    /// Name of the file that other engines are given.
    file: String,
    /// Makes the data; called once a run.
    source: &'a dyn Fn() -> Box<dyn QuadSource>,
    queries: Vec<Named>,
}

pub fn bsbm(a: &BenchBsbm) -> Result<ExitCode> {
    let templates: Vec<_> = bsbm_queries::EXPLORE
        .iter()
        .filter(|_| a.mix != BsbmMix::Bi)
        .chain(
            bsbm_queries::BUSINESS
                .iter()
                .filter(|_| a.mix != BsbmMix::Explore),
        )
        .collect();
    let data = Bsbm::new(a.products, a.common.seed);
    let queries = templates
        .iter()
        .flat_map(|t| t.instances(&data, a.instances))
        .map(|i| Named {
            name: i.name,
            template: Some(i.template),
            text: i.text,
            rows: None,
        })
        .collect();
    run(
        Mix {
            title: format!("BSBM({} products)", a.products),
            file: format!("bsbm-{}-{}.nt", a.products, a.common.seed),
            source: &|| Box::new(Bsbm::new(a.products, a.common.seed)),
            queries,
        },
        &a.common,
    )
}

pub fn sp2b(a: &BenchSp2b) -> Result<ExitCode> {
    let queries = sp2b_queries::QUERIES
        .iter()
        .map(|q| Named {
            name: q.name.into(),
            template: None,
            text: q.text(),
            rows: None,
        })
        .collect();
    run(
        Mix {
            title: format!("after SP2Bench({} triples)", a.triples),
            file: format!("sp2b-{}-{}.nt", a.triples, a.common.seed),
            source: &|| Box::new(Sp2b::new(a.triples, a.common.seed)),
            queries,
        },
        &a.common,
    )
}

/// The official queries.
pub fn lubm(a: &BenchLubm) -> Result<ExitCode> {
    let queries = lubm_official::QUERIES
        .iter()
        .map(|q| Named {
            name: q.name.into(),
            template: None,
            text: q.text.into(),
            rows: a
                .inferred
                .then(|| lubm_official::inferred_rows(q.name, a.universities))
                .flatten(),
        })
        .collect();
    let (how, suffix) = if a.inferred {
        ("with inferences", "-inferred")
    } else {
        ("as it is", "")
    };
    run(
        Mix {
            title: format!("LUBM({}) {how}", a.universities),
            file: format!("lubm-{}{suffix}.nt", a.universities),
            source: &|| {
                let lubm = Lubm::new(a.universities, 0);
                if a.inferred {
                    Box::new(Inferred::new(lubm))
                } else {
                    Box::new(lubm)
                }
            },
            queries,
        },
        &BenchMix {
            seed: 0,
            queries: a.queries.clone(),
            threads: a.threads,
            repeat: a.repeat,
            store: a.store.clone(),
            memory: a.memory,
            json: a.json.clone(),
            peers: a.peers.clone(),
        },
    )
}

/// A query's name, or its template's.
fn group(q: &Named) -> &str {
    q.template.as_deref().unwrap_or(&q.name)
}

fn run(mut mix: Mix<'_>, a: &BenchMix) -> Result<ExitCode> {
    for w in &a.queries {
        if !mix.queries.iter().any(|q| group(q).eq_ignore_ascii_case(w)) {
            return Err(Error::limit(
                Resource::Other,
                format!("{} has no query '{w}' in this mix", mix.title),
            ));
        }
    }
    mix.queries.retain(|q| {
        a.queries.is_empty() || a.queries.iter().any(|w| group(q).eq_ignore_ascii_case(w))
    });
    if !a.peers.peers.is_empty() {
        return beside_peers(&mix, a);
    }
    let temporary = std::env::temp_dir().join(format!("jindou-mix-{}", std::process::id()));
    let dir = a.store.clone().unwrap_or_else(|| temporary.clone());
    let outcome = alone(&mix, a, &dir);
    if a.store.is_none() {
        let _ = std::fs::remove_dir_all(&temporary);
    }
    outcome
}

/// The same data and queries given to other engines too. Their times hold what a client waits for, so `--repeat`
/// does not apply, and the store is made from the file that all load, so `--store` does not either.
fn beside_peers(mix: &Mix<'_>, a: &BenchMix) -> Result<ExitCode> {
    let work = Work::new(&a.peers)?;
    let data = work.file(&mix.file, |part| {
        let file = File::create(part).map_err(|e| Error::io(part, e))?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        write_source(&*(mix.source)(), TagCase::Lower, &mut out)?;
        Ok(())
    })?;
    run_peers(
        &Workload {
            title: mix.title.clone(),
            data: &data,
            statements: None,
            queries: mix.queries.clone(),
            threads: threads_or_all(a.threads),
        },
        &a.peers,
        &work,
        a.json.as_deref(),
    )
}

struct Loaded {
    report: LoadReport,
    seconds: f64,
}

fn load(mix: &Mix<'_>, a: &BenchMix, dir: &Path, threads: usize) -> Result<Loaded> {
    let mut options = LoadOptions {
        threads,
        ..LoadOptions::default()
    };
    if let Some(m) = a.memory {
        options.memory = m;
    }
    let start = Instant::now();
    let report = Database::load(dir, &*(mix.source)(), &options, &Progress::default())?;
    Ok(Loaded {
        report,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// All instances of a query, measured.
struct Row<'a> {
    name: &'a str,
    measured: Vec<Measured>,
}

impl Row<'_> {
    /// Over the instances: medians of what `time` takes from each.
    fn times(&self, time: impl Fn(&Measured) -> f64) -> Times {
        let each = self.measured.iter().map(time);
        Times::of(each.map(|ms| Duration::from_secs_f64(ms / 1e3)))
    }
}

fn alone(mix: &Mix<'_>, a: &BenchMix, dir: &Path) -> Result<ExitCode> {
    let threads = threads_or_all(a.threads);
    let loaded = if dir.exists() {
        None
    } else {
        Some(load(mix, a, dir, threads)?)
    };
    let info = Database::info(dir)?;
    let db = Database::open(dir)?;
    let options = QueryOptions {
        threads: Some(threads),
        ..QueryOptions::default()
    };
    let mut rows: Vec<Row<'_>> = vec![];
    let mut wrong = vec![];
    for q in &mix.queries {
        let measured = measure(&db, &q.text, &options, a.repeat)?;
        if q.rows.is_some_and(|rows| rows != measured.seen.rows) {
            wrong.push(format!(
                "{}: {} rows, {} are right",
                q.name,
                measured.seen.rows,
                q.rows.unwrap_or_default()
            ));
        }
        match rows.last_mut() {
            Some(row) if row.name == group(q) => row.measured.push(measured),
            _ => rows.push(Row {
                name: group(q),
                measured: vec![measured],
            }),
        }
    }
    match &a.json {
        Some(to) => {
            let value = as_json(mix, a, threads, loaded.as_ref(), &info, &rows);
            if to.as_os_str() == "-" {
                println!("{value:#}");
            } else {
                std::fs::write(to, format!("{value:#}\n")).map_err(|e| Error::io(to, e))?;
            }
        }
        None => print_table(mix, threads, loaded.as_ref(), &info, &rows),
    }
    for w in &wrong {
        eprintln!("WRONG ANSWER {w}");
    }
    Ok(if wrong.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(3)
    })
}

fn print_table(
    mix: &Mix<'_>,
    threads: usize,
    loaded: Option<&Loaded>,
    info: &InfoReport,
    rows: &[Row<'_>],
) {
    println!("{}: {} triples, {threads} threads", mix.title, info.quads);
    match loaded {
        Some(l) => println!(
            "load: {} statements in {:.2} s, {:.2} M/s; peak memory {} MiB",
            l.report.quads_read,
            l.seconds,
            l.report.quads_read as f64 / 1e6 / l.seconds.max(1e-9),
            l.report.peak_bytes >> 20
        ),
        None => println!("load: the store was there already"),
    }
    println!(
        "store: {} bytes, {:.2} a triple",
        info.bytes,
        info.bytes as f64 / info.quads.max(1) as f64
    );
    println!("medians over the instances of a query, each the median of its runs:");
    println!(
        "{:<5} {:>9}  {:>9}  {:>9} {:>9} {:>9}  {:>10}  rows of each",
        "query", "instances", "plan ms", "exec ms", "min", "max", "to TSV ms"
    );
    for row in rows {
        let exec = row.times(|m| m.exec.median());
        let counts: Vec<String> = row
            .measured
            .iter()
            .map(|m| m.seen.rows.to_string())
            .collect();
        println!(
            "{:<5} {:>9}  {:>9.3}  {:>9.3} {:>9.3} {:>9.3}  {:>10.3}  {}",
            row.name,
            row.measured.len(),
            row.times(|m| m.plan.median()).median(),
            exec.median(),
            exec.min(),
            exec.max(),
            row.times(|m| m.total.median()).median(),
            counts.join(" "),
        );
    }
    println!("peak memory of this process {} MiB", peak_memory() >> 20);
}

fn as_json(
    mix: &Mix<'_>,
    a: &BenchMix,
    threads: usize,
    loaded: Option<&Loaded>,
    info: &InfoReport,
    rows: &[Row<'_>],
) -> serde_json::Value {
    let queries: Vec<_> = rows
        .iter()
        .flat_map(|row| row.measured.iter().enumerate().map(move |(i, m)| (row, i, m)))
        .map(|(row, i, m)| {
            json!({
                "query": row.name, "instance": i,
                "rows": m.seen.rows, "checksum": format!("{:016x}", m.seen.checksum),
                "plan_ms": m.plan.median(), "exec_ms": m.exec.median(), "total_ms": m.total.median(),
                "exec_min_ms": m.exec.min(), "exec_max_ms": m.exec.max(),
            })
        })
        .collect();
    json!({
        "title": mix.title, "seed": a.seed, "threads": threads, "triples": info.quads,
        "store_bytes": info.bytes, "peak_bytes": peak_memory(), "queries": queries,
        "load": loaded.map(|l| json!({
            "triples": l.report.quads_read, "seconds": l.seconds,
            "peak_bytes": l.report.peak_bytes, "store_bytes": l.report.store_bytes,
        })),
    })
}
