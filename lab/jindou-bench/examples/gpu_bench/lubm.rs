//! Runs LUBM through the real loader and planner, on the GPU and on the CPU.

use crate::figures::{Goal, say_figure};
use crate::{Options, median, say};
use jindou_engine::{ChecksumSink, ExecOptions, QueryTerms, Summed};
use jindou_gpu::{Backend, GpuExecutor, GpuOptions, ResultUse};
use jindou_model::{CancelToken, Error, Progress, Result};
use jindou_plan::{Plan, PlanOptions, parse, plan};
use jindou_store::{LoadOptions, Snapshot, load, open};
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::lubm::{QUERIES, query};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// Shares of the table memory that a query needs; it is run again with each.
const PARTS: [f64; 4] = [1.0, 0.8, 0.5, 0.2];

pub fn load_into(o: &Options) -> Result<bool> {
    let began = Instant::now();
    let options = LoadOptions::default().with_threads(o.threads);
    load(
        &o.store,
        &Lubm::new(o.universities, 0),
        &options,
        &Progress::default(),
    )?;
    say(
        json!({ "lubm": o.universities, "threads": o.threads, "load_s": began.elapsed().as_secs_f64() }),
    );
    Ok(true)
}

/// The plan of the query with this name.
pub fn planned(name: &str, snapshot: &Snapshot) -> Result<Plan> {
    let q = query(name).ok_or_else(|| Error::Internal(format!("no query {name}")))?;
    plan(&parse(q.text)?, snapshot, &PlanOptions::default())
}

/// Checksum and median milliseconds on the CPU.
pub fn here(
    plan: &Plan,
    snapshot: &Snapshot,
    threads: usize,
    repeat: usize,
) -> Result<(ChecksumSink, f64)> {
    let exec = ExecOptions {
        threads,
        ..ExecOptions::default()
    };
    let (mut ms, mut sum) = (vec![], ChecksumSink::default());
    for _ in 0..repeat {
        let sink = Summed::<ChecksumSink>::default();
        let t = Instant::now();
        jindou_engine::execute(plan, snapshot, &exec, &QueryTerms::default(), &sink)?;
        ms.push(t.elapsed().as_secs_f64() * 1e3);
        sum = sink.into_inner();
    }
    Ok((sum, median(&mut ms)))
}

/// Milliseconds of runs that return a count, a checksum, and rows, and of a checksum that waits for each step's number
/// of rows.
fn times(
    gpu: &GpuExecutor,
    plan: &Plan,
    snapshot: &Snapshot,
    repeat: usize,
) -> Result<[Vec<f64>; 4]> {
    let plain = GpuOptions::default();
    let waiting = GpuOptions {
        wait_for_counts: true,
        ..GpuOptions::default()
    };
    let mut times = [vec![], vec![], vec![], vec![]];
    for _ in 0..repeat {
        for (i, times) in times.iter_mut().enumerate() {
            let mut read = 0u64;
            let mut sink = |columns: &[&[u32]], _: usize| {
                read += columns
                    .iter()
                    .map(|c| u64::from(c.first().copied().unwrap_or(0)))
                    .sum::<u64>();
                Ok(())
            };
            let output = match i {
                0 => ResultUse::Count,
                1 | 3 => ResultUse::Checksum,
                _ => ResultUse::Rows(&mut sink),
            };
            let options = if i == 3 { &waiting } else { &plain };
            let t = Instant::now();
            gpu.execute(plan, snapshot, output, options)?;
            times.push(t.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(times)
}

/// Runs a query with shares of `table_bytes`, the memory that its tables need. Returns the runs and the errors found.
fn in_parts(
    gpu: &GpuExecutor,
    plan: &Plan,
    snapshot: &Snapshot,
    table_bytes: u64,
    sum: &ChecksumSink,
) -> Result<(Vec<serde_json::Value>, Vec<String>)> {
    let (mut runs, mut wrong) = (vec![], vec![]);
    for part in PARTS {
        let options = GpuOptions {
            table_bytes: Some((table_bytes as f64 * part) as u64),
            ..GpuOptions::default()
        };
        let t = Instant::now();
        match gpu.execute(plan, snapshot, ResultUse::Checksum, &options) {
            Ok(r) if (r.rows, r.checksum) != (sum.rows, Some(sum.checksum)) => {
                wrong.push(format!("{} rows in {part} of its memory", r.rows));
            }
            Ok(r) => runs.push(json!({ "part": part, "ms": t.elapsed().as_secs_f64() * 1e3, "cuts": r.profile.cuts })),
            Err(e @ Error::Limit(_)) => runs.push(json!({ "part": part, "refused": e.to_string() })),
            Err(e) => return Err(e),
        }
    }
    Ok((runs, wrong))
}

pub fn measure(backend: Arc<dyn Backend>, o: &Options) -> Result<bool> {
    let snapshot = Snapshot::of_base(open(&o.store)?);
    let gpu = GpuExecutor::new(backend);
    gpu.calibrate(&CancelToken::new())?;
    let mut right = true;
    let mut wrong = |query: &str, why: String| {
        say(json!({ "query": query, "wrong": why }));
        right = false;
    };
    let mut left_out = vec![];
    for q in QUERIES {
        if o.is_over() {
            left_out.push(q.name.to_owned());
            continue;
        }
        let plan = plan(&parse(q.text)?, &snapshot, &PlanOptions::default())?;
        let (sum, one) = here(&plan, &snapshot, 1, o.repeat.min(5))?;
        let (_, many) = here(&plan, &snapshot, o.threads, o.repeat.min(5))?;
        let predicted = gpu.predict(&plan, &snapshot, o.threads);
        let plain = GpuOptions::default();
        let first = match gpu.execute(&plan, &snapshot, ResultUse::Checksum, &plain) {
            Ok(r) => r,
            Err(Error::Unsupported(why)) => {
                wrong(q.name, format!("refused: {why}"));
                continue;
            }
            Err(e) => return Err(e),
        };
        if (first.rows, first.checksum) != (sum.rows, Some(sum.checksum)) {
            wrong(
                q.name,
                format!("{} rows, not {}, or another checksum", first.rows, sum.rows),
            );
        }
        if q.rows(o.universities)
            .is_some_and(|known| known != first.rows)
        {
            wrong(
                q.name,
                format!("{} rows, not the published count", first.rows),
            );
        }
        let mut times = times(&gpu, &plan, &snapshot, o.repeat)?;
        let (parts, bad) = in_parts(&gpu, &plan, &snapshot, first.profile.table_bytes, &sum)?;
        for why in bad {
            wrong(q.name, why);
        }
        let timed = GpuOptions {
            profile: true,
            ..GpuOptions::default()
        };
        let profile = gpu
            .execute(&plan, &snapshot, ResultUse::Checksum, &timed)?
            .profile;
        let kernels: f64 = profile.steps.iter().map(|s| s.seconds()).sum();
        let [count, sums, rows, waited] = &mut times;
        // Without the launches of the checksum.
        let own = profile.steps.iter().filter(|s| s.plan_step.is_some());
        let launches: u64 = own.flat_map(|s| &s.kernels).map(|k| k.launches).sum();
        goals(
            o,
            q.name,
            [median(count), median(sums)],
            one.min(many),
            launches,
        );
        say(json!({
            "query": q.name, "rows": first.rows, "cpu_1_ms": one, "cpu_threads": o.threads, "cpu_ms": many,
            "bring_ms": first.profile.bring_seconds * 1e3, "count_ms": median(count), "checksum_ms": median(sums),
            "rows_ms": median(rows), "checksum_waiting_ms": median(waited), "kernels_ms": kernels * 1e3, "segment_mb": first.profile.segment_bytes as f64 / 1e6,
            "table_mb": first.profile.table_bytes as f64 / 1e6, "parts": parts,
            "predicted_cpu_ms": predicted.as_ref().map(|p| p.cpu * 1e3),
            "predicted_gpu_ms": predicted.as_ref().map(|p| (p.gpu() - p.bring) * 1e3),
        }));
        for s in &profile.steps {
            for k in &s.kernels {
                say(json!({
                    "query": q.name, "step": s.name, "kernel": k.kernel.symbol(), "launches": k.launches,
                    "us": k.seconds * 1e6, "mb": k.bytes() / 1e6, "rows_in": s.rows_in, "rows_out": s.rows_out,
                }));
            }
        }
    }
    o.say_left_out(&left_out);
    Ok(right)
}

/// Prints the goals of a query whose segments are all on the device, given the milliseconds of a count and of a
/// checksum.
fn goals(o: &Options, query: &str, [count, sums]: [f64; 2], cpu: f64, launches: u64) {
    let wanted = match (query, o.universities) {
        ("L1" | "L7", 2560) => Some(Goal::AtMost(0.12)),
        ("L1" | "L2" | "L7", _) => Some(Goal::AtMost(cpu)),
        _ => None,
    };
    let what = format!("{query}, checksum");
    if wanted.is_some() {
        say_figure(
            o,
            &what,
            "ms",
            wanted,
            Some(sums),
            json!({ "query": query, "cpu_ms": cpu }),
        );
    }
    if launches == 1 {
        let what = format!("{query}, a count by one kernel");
        let (goal, more) = (Goal::AtMost(0.02), json!({ "query": query }));
        say_figure(o, &what, "ms", Some(goal), Some(count), more);
    }
}

/// Runs the heavy queries on the CPU with 1, 2, 4 … threads.
pub fn threads(o: &Options) -> Result<bool> {
    let snapshot = Snapshot::of_base(open(&o.store)?);
    let mut left_out = vec![];
    for q in QUERIES {
        if o.is_over() {
            left_out.push(q.name.to_owned());
            continue;
        }
        let plan = plan(&parse(q.text)?, &snapshot, &PlanOptions::default())?;
        let mut threads = 1;
        while threads <= o.threads {
            let (sum, ms) = here(&plan, &snapshot, threads, o.repeat.min(5))?;
            say(json!({ "query": q.name, "threads": threads, "ms": ms, "rows": sum.rows }));
            threads *= 2;
        }
    }
    o.say_left_out(&left_out);
    Ok(true)
}
