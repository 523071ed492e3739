//! `jindou bench ugly`: loading, planning and lookups on data with the irregularities of real graphs.

use super::lookup;
use super::measure::{Folder, Times, threads_or_all};
use super::set::{Loaded, load};
use crate::args::BenchUgly;
use jindou::{Database, Error, MemoryBudget, QueryOptions, Result};
use jindou_graph::segment::GraphScope;
use jindou_workloads::queries::ugly as queries;
use jindou_workloads::ugly::Ugly;
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub fn run(a: &BenchUgly) -> Result<ExitCode> {
    let threads = threads_or_all(a.threads);
    let folder = Folder::new(a.store.as_deref())?;
    bench(a, threads, &folder.dir)
}

fn bench(a: &BenchUgly, threads: usize, dir: &std::path::Path) -> Result<ExitCode> {
    if !dir.exists() {
        let Loaded { report, seconds } = load(dir, &Ugly::new(a.quads, 0), None, threads)?;
        println!(
            "load: {} quads in {seconds:.2} s, {:.2} M/s; peak memory {} MiB",
            report.quads_read,
            report.quads_read as f64 / 1e6 / seconds,
            report.peak_bytes >> 20
        );
        for (phase, s) in &report.seconds {
            println!("  {phase:<24} {s:>8.2} s");
        }
    }
    let info = Database::info(dir)?;
    println!(
        "store: {} quads ({} in {} named graphs), {} terms, {} predicates, {} classes; {} bytes, {:.2} a quad",
        info.quads,
        info.named_quads,
        info.graphs,
        info.terms,
        info.predicates.len(),
        info.classes.len(),
        info.bytes,
        info.bytes as f64 / info.quads.max(1) as f64
    );
    let db = Database::open(dir)?;
    let graph = Ugly::new(a.quads, 0);
    plans(&db, &graph, a.queries, threads)?;
    let l = lookup::measure(&db, GraphScope::Default, 1_000_000)?;
    print!("in the default graph, ");
    l.print();
    let l = lookup::measure(&db, GraphScope::Union, 1_000_000)?;
    println!(
        "neighbour lists over all graphs: {:.1} ns out, {:.1} ns in",
        l.out_ns, l.in_ns
    );
    lookups(&db, &graph, a.queries)?;
    Ok(ExitCode::SUCCESS)
}

/// Measures the planning time of random queries, over both kinds of default graph, and how many of them finish in a
/// second.
fn plans(db: &Database, graph: &Ugly, count: usize, threads: usize) -> Result<()> {
    let mut worst = (Duration::ZERO, String::new());
    let mut times = Vec::new();
    let (mut done, mut rows) = (0, 0);
    for (i, text) in queries::queries(graph, count, 1).enumerate() {
        let options = QueryOptions::default()
            .with_threads(threads)
            .with_union_default(i % 2 == 0)
            .with_timeout(Duration::from_secs(1))
            .with_memory(MemoryBudget::new(1 << 30));
        let query = jindou::parse_query(&text)?;
        let start = Instant::now();
        let plan = db.plan_parsed(&query, &options)?;
        let took = start.elapsed();
        times.push(took);
        if took > worst.0 {
            worst = (took, text);
        }
        match db.checksum(&plan, &options) {
            Ok(seen) => {
                done += 1;
                rows += seen.rows;
            }
            Err(Error::Timeout(_) | Error::Limit(_)) => {}
            Err(e) => return Err(e),
        }
    }
    let t = Times::new(times);
    println!(
        "plans of {count} random queries of up to 12 patterns: median {:.3} ms, 99th {:.3} ms, worst {:.3} ms",
        t.median(),
        t.quantile(0.99),
        t.max()
    );
    println!(
        "  {done} of them answered within a second, {rows} rows; the worst to plan was: {}",
        worst.1.split_whitespace().collect::<Vec<_>>().join(" ")
    );
    Ok(())
}

/// Measures `<s> ?p ?o` and `?s ?p <o>` as whole queries on one thread, planned before.
fn lookups(db: &Database, graph: &Ugly, count: usize) -> Result<()> {
    let options = QueryOptions::default()
        .with_threads(1)
        .with_union_default(true)
        .with_memory(MemoryBudget::new(4 << 30));
    for (name, make) in [
        (
            "<s> ?p ?o",
            queries::subject_lookup as fn(&Ugly, u64, u64) -> String,
        ),
        ("?s ?p <o>", queries::object_lookup),
    ] {
        let (mut times, mut rows) = (Vec::new(), 0);
        for i in 0..count as u64 {
            let plan = db.plan_uncached(&make(graph, i, 2), &options)?;
            let start = Instant::now();
            rows += db.checksum(&plan, &options)?.rows;
            times.push(start.elapsed() * 1000);
        }
        let t = Times::new(times);
        println!(
            "{name}: median {:.2} us, 99th {:.2} us, {rows} rows in {count} queries",
            t.median(),
            t.quantile(0.99)
        );
    }
    Ok(())
}
