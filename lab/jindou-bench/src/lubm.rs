//! `jindou bench lubm`: the papers' LUBM queries over data that this process generates, with checked answers.

use super::measure::{
    Folder, Measured, measure, peak_memory, resident_memory, threads_or_all, verdict, write_json,
};
use super::mix::{self, Mix};
use super::set::{Loaded, load};
use super::{light, lookup};
use crate::args::BenchLubm;
use jindou::{
    Database, Error, GpuChoice, Progress, QuadBatch, QuadSink, QuadSource, QueryOptions, Result,
};
use jindou_graph::segment::GraphScope;
use jindou_peers::Named;
use jindou_workloads::lubm::{Lubm, known};
use jindou_workloads::queries::lubm::{LubmQuery, QUERIES};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

pub fn run(a: &BenchLubm) -> Result<ExitCode> {
    if a.official {
        return mix::lubm(a);
    }
    let threads = threads_or_all(a.common.threads);
    let wanted = wanted(&a.common.queries)?;
    if !a.common.peers.peers.is_empty() {
        return beside_peers(a, &wanted);
    }
    let place = Folder::new(a.common.store.as_deref())?;
    let load = load_or_reuse(&place.dir, a, threads)?;
    let info = Database::info(&place.dir)?;
    check_size(&place.dir, info.quads, a.universities)?;
    let start = Instant::now();
    let db = Database::open(&place.dir)?;
    let open_ms = start.elapsed().as_secs_f64() * 1e3;
    let options = QueryOptions::default()
        .with_threads(threads)
        .with_gpu(a.gpu);
    if a.gpu != GpuChoice::Off {
        db.runtime().open_gpu();
    }
    let mut results = Vec::new();
    let mut wrong = Vec::new();
    for q in wanted {
        let m = measure(&db, q.text, &options, a.common.repeat)?;
        let known = q.rows(a.universities);
        if let Some(rows) = known.filter(|&rows| rows != m.seen.rows) {
            wrong.push(format!(
                "{}: {} rows, {rows} are right",
                q.name, m.seen.rows
            ));
        }
        results.push((q.name, known.is_some(), m));
    }
    let light = if a.light > 0 {
        Some(light::run_all(&db, a.universities, a.light)?)
    } else {
        None
    };
    let memory = resident_memory();
    if let Some(to) = &a.common.json {
        let value = as_json(
            a,
            threads,
            load.as_ref(),
            &info,
            open_ms,
            &results,
            light.as_deref(),
        );
        write_json(to, &value)?;
    } else {
        print_table(a, threads, load.as_ref(), &info, open_ms, &results);
        if let Some(l) = &light {
            light::print(l);
        }
        let l = lookup::measure(&db, GraphScope::Default, 1_000_000)?;
        l.print();
        println!(
            "memory while answering: {:.0} MiB own, {:.0} MiB of the store's files mapped; peak of this process {:.0} MiB",
            mib(memory.0),
            mib(memory.1),
            mib(peak_memory())
        );
    }
    Ok(verdict(&wrong))
}

/// The queries of these names; all queries if there are no names.
fn wanted(names: &[String]) -> Result<Vec<&'static LubmQuery>> {
    let is = |q: &LubmQuery, name: &String| name.eq_ignore_ascii_case(q.name);
    for name in names {
        if !QUERIES.iter().any(|q| is(q, name)) {
            return Err(Error::Usage(format!(
                "unknown LUBM query '{name}': use L1 to L7 or q8 to q12"
            )));
        }
    }
    let wanted = QUERIES
        .iter()
        .filter(|q| names.is_empty() || names.iter().any(|name| is(q, name)));
    Ok(wanted.collect())
}

/// Returns an error if the store's triples are not as many as this many universities have.
fn check_size(store: &Path, quads: u64, universities: u32) -> Result<()> {
    match known::totals(universities) {
        Some(t) if quads != t.distinct => Err(Error::external(format!(
            "{} has {quads} triples, but LUBM({universities}) has {}; choose another --store or remove it",
            store.display(),
            t.distinct
        ))),
        _ => Ok(()),
    }
}

/// Runs the queries on other engines, too. All are timed at the client, so `--repeat`, `--light` and `--gpu` do not
/// apply.
fn beside_peers(a: &BenchLubm, wanted: &[&LubmQuery]) -> Result<ExitCode> {
    let queries = wanted
        .iter()
        .map(|q| Named {
            rows: q.rows(a.universities),
            ..Named::new(q.name, q.text)
        })
        .collect();
    let mix = Mix {
        title: format!("LUBM({})", a.universities),
        file: format!("lubm-{}.nt", a.universities),
        source: &|| Ok(Box::new(Lubm::new(a.universities, 0))),
        statements: known::totals(a.universities).map(|t| t.raw),
        queries,
    };
    mix::beside_peers(mix, &a.common)
}

/// A load, and the seconds of the generator alone, with its output discarded.
type Made = (Loaded, f64);

fn load_or_reuse(dir: &Path, a: &BenchLubm, threads: usize) -> Result<Option<Made>> {
    if dir.exists() {
        return Ok(None);
    }
    let lubm = || Lubm::new(a.universities, 0);
    let start = Instant::now();
    generate_to_nowhere(&lubm(), threads)?;
    let generate_seconds = start.elapsed().as_secs_f64();
    let loaded = load(dir, &lubm(), a.common.memory, threads)?;
    Ok(Some((loaded, generate_seconds)))
}

fn generate_to_nowhere(source: &dyn QuadSource, threads: usize) -> Result<()> {
    struct Nowhere;
    impl QuadSink for Nowhere {
        fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
            std::hint::black_box(batch.quads.len());
            Ok(())
        }
    }
    let progress = Progress::default();
    std::thread::scope(|s| {
        let workers: Vec<_> = (0..threads)
            .map(|w| {
                let progress = &progress;
                s.spawn(move || source.run(w, threads, &mut Nowhere, progress))
            })
            .collect();
        workers.into_iter().try_for_each(|w| {
            w.join()
                .unwrap_or_else(|_| Err(Error::Internal("the generator failed".into())))
        })
    })
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64
}

fn print_table(
    a: &BenchLubm,
    threads: usize,
    load: Option<&Made>,
    info: &jindou::InfoReport,
    open_ms: f64,
    results: &[(&str, bool, Measured)],
) {
    println!(
        "LUBM({}): {} triples, {} threads",
        a.universities, info.quads, threads
    );
    if let Some((l, generate_seconds)) = load {
        let net = (l.seconds - generate_seconds).max(1e-9);
        println!(
            "load: {} statements in {:.2} s ({generate_seconds:.2} s generating them): {:.2} M/s net; peak memory {:.0} MiB",
            l.report.quads_read,
            l.seconds,
            l.report.quads_read as f64 / 1e6 / net,
            mib(l.report.peak_bytes),
        );
        for (phase, s) in &l.report.seconds {
            println!("  {phase:<24} {s:>8.2} s");
        }
    } else {
        println!("load: reusing the existing store");
    }
    println!(
        "store: {} bytes, {:.2} a triple; opened in {open_ms:.2} ms",
        info.bytes,
        info.bytes as f64 / info.quads.max(1) as f64
    );
    println!(
        "query       rows         checksum    plan ms    exec ms       min       max   to TSV ms        min"
    );
    for (name, checked, m) in results {
        println!(
            "{name:<5} {:>10} {:016x}  {:>9.3}  {:>9.3} {:>9.3} {:>9.3}  {:>10.3} {:>10.3}  {}",
            m.seen.rows,
            m.seen.checksum,
            m.plan.median(),
            m.exec.median(),
            m.exec.min(),
            m.exec.max(),
            m.total.median(),
            m.total.min(),
            remark(a.gpu, *checked, m)
        );
    }
}

/// Remarks on one line of the table: how the GPU was used, and that an answer was not checked.
fn remark(gpu: GpuChoice, checked: bool, m: &Measured) -> String {
    let mut out = String::new();
    if gpu != GpuChoice::Off {
        out += if m.seen.on_gpu {
            "by the GPU's kernels "
        } else {
            "by the CPU "
        };
    }
    if !checked {
        out += "(no known count at this scale)";
    }
    out
}

fn as_json(
    a: &BenchLubm,
    threads: usize,
    load: Option<&Made>,
    info: &jindou::InfoReport,
    open_ms: f64,
    results: &[(&str, bool, Measured)],
    light: Option<&[light::Light]>,
) -> serde_json::Value {
    let queries: Vec<_> = results
        .iter()
        .map(|(name, checked, m)| {
            json!({
                "name": name, "rows": m.seen.rows, "checksum": format!("{:016x}", m.seen.checksum),
                "count_checked": checked, "on_gpu": m.seen.on_gpu,
                "plan_ms": m.plan.median(), "exec_ms": m.exec.median(), "total_ms": m.total.median(),
                "exec_min_ms": m.exec.min(), "exec_max_ms": m.exec.max(),
            })
        })
        .collect();
    let load = load.map(|(l, generate_seconds)| {
        json!({
            "triples": l.report.quads_read, "seconds": l.seconds,
            "generate_seconds": generate_seconds,
            "peak_bytes": l.report.peak_bytes, "store_bytes": l.report.store_bytes,
        })
    });
    json!({
            "universities": a.universities, "threads": threads, "triples": info.quads,
            "store_bytes": info.bytes, "open_ms": open_ms, "peak_bytes": peak_memory(),
            "queries": queries, "load": load,
            "light": light.map(|l| l.iter().map(light::Light::json).collect::<Vec<_>>()),
    })
}
