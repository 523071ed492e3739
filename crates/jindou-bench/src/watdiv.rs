//! `jindou bench watdiv`: the 20 basic templates on data that this process generates.

use super::measure::{Measured, Times, measure, peak_memory};
use super::peers::{Work, Workload as Compared, run as run_peers};
use crate::args::BenchWatdiv;
use crate::measure::threads_or_all;
use jindou::{
    Database, Error, InfoReport, LoadOptions, LoadReport, Progress, QuadSource, QueryOptions,
    Resource, Result,
};
use jindou_parse::Sources;
use jindou_peers::Named;
use jindou_workloads::queries::watdiv::{Instance, instances, templates};
use jindou_workloads::watdiv::{Model, Watdiv, write_ntriples};
use serde_json::json;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A workload that any engine can be given: a file of N-Triples, and queries.
pub struct Workload {
    pub data: PathBuf,
    pub queries: Vec<Instance>,
}

/// Writes the data of a scale to `data`, unless the file is there, and draws the queries.
pub fn workload(data: &Path, scale: u32, seed: u64, instances_each: u32) -> Result<Workload> {
    if !data.exists() {
        // Under another name until it is whole: what is there is taken as it is.
        let part = data.with_extension("part");
        let write = || {
            let file = File::create(&part).map_err(|e| Error::io(&part, e))?;
            let mut out = BufWriter::with_capacity(1 << 20, file);
            write_ntriples(&Watdiv::new(&Model::standard(), scale, seed)?, &mut out)?;
            drop(out);
            std::fs::rename(&part, data).map_err(|e| Error::io(data, e))
        };
        write().inspect_err(|_| {
            let _ = std::fs::remove_file(&part);
        })?;
    }
    Ok(Workload {
        data: data.to_owned(),
        queries: instances(scale, seed, instances_each)?,
    })
}

pub fn run(a: &BenchWatdiv) -> Result<ExitCode> {
    let is_wanted =
        |name: &str| a.queries.is_empty() || a.queries.iter().any(|w| w.eq_ignore_ascii_case(name));
    for w in &a.queries {
        if !templates().iter().any(|t| t.name.eq_ignore_ascii_case(w)) {
            return Err(Error::limit(
                Resource::Other,
                format!(
                    "there is no WatDiv template '{w}': L1 to L5, S1 to S7, F1 to F5, C1 to C3"
                ),
            ));
        }
    }
    if !a.peers.peers.is_empty() {
        return beside_peers(a, &is_wanted);
    }
    let temporary = std::env::temp_dir().join(format!("jindou-watdiv-{}", std::process::id()));
    let dir = a.store.clone().unwrap_or_else(|| temporary.clone());
    let outcome = bench(a, &dir, &is_wanted);
    if a.store.is_none() {
        let _ = std::fs::remove_dir_all(&temporary);
    }
    outcome
}

/// The same data and instances given to other engines too. Their times hold what a client waits for, so `--repeat`
/// does not apply, and the store is made from the file that all load, so `--store` does not either.
fn beside_peers(a: &BenchWatdiv, is_wanted: &dyn Fn(&str) -> bool) -> Result<ExitCode> {
    let work = Work::new(&a.peers)?;
    let name = format!("watdiv-{}-{}.nt", a.scale, a.seed);
    let data = a.data.clone().unwrap_or_else(|| work.dir.join(name));
    let drawn = workload(&data, a.scale, a.seed, a.instances)?;
    let mut of_template = 0;
    let mut last = None;
    let queries = drawn
        .queries
        .into_iter()
        .filter(|q| is_wanted(&q.template))
        .map(|q| {
            of_template = if last.as_ref() == Some(&q.template) {
                of_template + 1
            } else {
                0
            };
            last = Some(q.template.clone());
            Named {
                name: format!("{}-{of_template}", q.template),
                template: Some(q.template),
                text: q.text,
                rows: None,
            }
        })
        .collect();
    run_peers(
        &Compared {
            title: format!("WatDiv({})", a.scale),
            data: &data,
            statements: None,
            queries,
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

fn load(a: &BenchWatdiv, dir: &Path, source: &dyn QuadSource, threads: usize) -> Result<Loaded> {
    let mut options = LoadOptions {
        threads,
        ..LoadOptions::default()
    };
    if let Some(m) = a.memory {
        options.memory = m;
    }
    let start = Instant::now();
    let report = Database::load(dir, source, &options, &Progress::default())?;
    Ok(Loaded {
        report,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// All instances of a template, measured.
struct Row {
    template: String,
    measured: Vec<Measured>,
}

impl Row {
    /// Over the instances: medians of what `time` takes from each.
    fn times(&self, time: impl Fn(&Measured) -> f64) -> Times {
        let durations = self
            .measured
            .iter()
            .map(|m| Duration::from_secs_f64(time(m) / 1e3));
        Times::of(durations)
    }

    fn rows(&self) -> Vec<u64> {
        self.measured.iter().map(|m| m.seen.rows).collect()
    }
}

fn bench(a: &BenchWatdiv, dir: &Path, is_wanted: &dyn Fn(&str) -> bool) -> Result<ExitCode> {
    let threads = threads_or_all(a.threads);
    let mut loaded = None;
    let queries = match &a.data {
        Some(data) => {
            let w = workload(data, a.scale, a.seed, a.instances)?;
            if !dir.exists() {
                let file = Sources::builder().path(&w.data).build()?;
                loaded = Some(load(a, dir, &file, threads)?);
            }
            w.queries
        }
        None => {
            if !dir.exists() {
                let source = Watdiv::new(&Model::standard(), a.scale, a.seed)?;
                loaded = Some(load(a, dir, &source, threads)?);
            }
            instances(a.scale, a.seed, a.instances)?
        }
    };
    let info = Database::info(dir)?;
    // Some 104,500 different triples a scale; at scale 1 that varies by 2 %.
    let about = 104_500.0 * f64::from(a.scale);
    if (info.quads as f64 - about).abs() > 0.1 * about {
        return Err(Error::Store(format!(
            "{} holds {} triples, WatDiv({}) has some {about:.0}; give another --store or remove it",
            dir.display(),
            info.quads,
            a.scale
        )));
    }
    let db = Database::open(dir)?;
    let options = QueryOptions {
        threads: Some(threads),
        ..QueryOptions::default()
    };
    let mut rows: Vec<Row> = vec![];
    for q in queries.iter().filter(|q| is_wanted(&q.template)) {
        let measured = measure(&db, &q.text, &options, a.repeat)?;
        match rows.last_mut() {
            Some(row) if row.template == q.template => row.measured.push(measured),
            _ => rows.push(Row {
                template: q.template.clone(),
                measured: vec![measured],
            }),
        }
    }
    match &a.json {
        Some(to) => {
            let value = as_json(a, threads, loaded.as_ref(), &info, &rows);
            if to.as_os_str() == "-" {
                println!("{value:#}");
            } else {
                std::fs::write(to, format!("{value:#}\n")).map_err(|e| Error::io(to, e))?;
            }
        }
        None => print_table(a, threads, loaded.as_ref(), &info, &rows),
    }
    Ok(ExitCode::SUCCESS)
}

fn print_table(
    a: &BenchWatdiv,
    threads: usize,
    loaded: Option<&Loaded>,
    info: &InfoReport,
    rows: &[Row],
) {
    println!(
        "WatDiv({}), seed {}: {} triples, {threads} threads",
        a.scale, a.seed, info.quads
    );
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
    println!("medians over the instances of a template, each the median of its runs:");
    println!(
        "{:<5} {:>9}  {:>9}  {:>9} {:>9} {:>9}  {:>10}  rows of each",
        "query", "instances", "plan ms", "exec ms", "min", "max", "to TSV ms"
    );
    for row in rows {
        let exec = row.times(|m| m.exec.median());
        println!(
            "{:<5} {:>9}  {:>9.3}  {:>9.3} {:>9.3} {:>9.3}  {:>10.3}  {}",
            row.template,
            row.measured.len(),
            row.times(|m| m.plan.median()).median(),
            exec.median(),
            exec.min(),
            exec.max(),
            row.times(|m| m.total.median()).median(),
            row.rows()
                .iter()
                .map(u64::to_string)
                .collect::<Vec<_>>()
                .join(" "),
        );
    }
    println!("peak memory of this process {} MiB", peak_memory() >> 20);
}

fn as_json(
    a: &BenchWatdiv,
    threads: usize,
    loaded: Option<&Loaded>,
    info: &InfoReport,
    rows: &[Row],
) -> serde_json::Value {
    let queries: Vec<_> = rows
        .iter()
        .flat_map(|row| row.measured.iter().enumerate().map(move |(i, m)| (row, i, m)))
        .map(|(row, i, m)| {
            json!({
                "template": row.template, "name": format!("{}-{i}", row.template),
                "rows": m.seen.rows, "checksum": format!("{:016x}", m.seen.checksum),
                "plan_ms": m.plan.median(), "exec_ms": m.exec.median(), "total_ms": m.total.median(),
                "exec_min_ms": m.exec.min(), "exec_max_ms": m.exec.max(),
            })
        })
        .collect();
    json!({
            "scale": a.scale, "seed": a.seed, "threads": threads, "triples": info.quads,
            "store_bytes": info.bytes, "peak_bytes": peak_memory(), "queries": queries,
            "load": loaded.map(|l| json!({
                "triples": l.report.quads_read, "seconds": l.seconds,
                "peak_bytes": l.report.peak_bytes, "store_bytes": l.report.store_bytes,
            })),
    })
}
