//! A query's plan on a GPU, wholly or its first steps; the CPU takes over where the GPU can not, or fails.

use super::row_buffer::RowBuffer;
use crate::database::Checksum;
use crate::device::GpuChoice;
use crate::execute::{Consumer, Job, Measured, Options, measured};
use jindou_engine::{ChecksumSink, CountSink, NodeProfile, Profile, Sink, execute_on};
use jindou_gpu::{GpuExecutor, GpuOptions, GpuResult, Output};
use jindou_model::{CancelToken, Error, Result};
use jindou_plan::Plan;
use std::fmt::Write as _;
use std::time::Duration;

/// Runs a plan into a checksum; in its place why the CPU has to.
///
/// # Errors
/// As [`settle`].
pub(crate) fn checksum(gpu: &GpuExecutor, job: &Job) -> Result<Result<Checksum, String>> {
    settle(job.options.gpu, checksum_there(gpu, job))
}

fn checksum_there(gpu: &GpuExecutor, job: &Job) -> Result<Checksum> {
    let (plan, snapshot) = (job.plan, job.snapshot);
    let gpu_options = gpu_options(job.options, &job.exec.cancel);
    let (rows, checksum) = match gpu.execute(plan, snapshot, Output::Checksum, &gpu_options) {
        Ok(r) => (r.rows, r.checksum.unwrap_or(0)),
        // Its first steps there, the rest here.
        Err(Error::Unsupported(_)) => {
            let mut sum = ChecksumSink::default();
            execute_on(plan, snapshot, job.exec, job.terms, gpu, &mut sum)?;
            (sum.rows, sum.checksum)
        }
        Err(e) => return Err(e),
    };
    Ok(Checksum {
        rows,
        checksum,
        on_gpu: true,
    })
}

/// Runs an ASK's plan: whether it has a row, and its profile; in their place why the CPU has to.
///
/// # Errors
/// As [`settle`].
pub(crate) fn ask(gpu: &GpuExecutor, job: &Job) -> Result<Result<(bool, Profile), String>> {
    let mut count = CountSink::default();
    let done = execute_on(job.plan, job.snapshot, job.exec, job.terms, gpu, &mut count);
    settle(job.options.gpu, done.map(|p| (count.rows > 0, p)))
}

/// Runs a plan's rows into a sink, and counts them; in their place why the CPU has to, from the first row on.
///
/// # Errors
/// As [`settle`], and the consumer's own.
pub(crate) fn solutions(
    gpu: &GpuExecutor,
    job: &Job,
    out: &mut dyn Consumer,
) -> Result<Result<(u64, Measured), String>> {
    let choice = job.options.gpu;
    if choice == GpuChoice::Auto {
        // Nothing goes out before the device is done, so that the CPU can begin from the start.
        let mut held = RowBuffer::new(job.plan.output.len(), &job.options.memory);
        let done = settle(choice, rows(gpu, job, &mut held))?;
        if done.is_ok() {
            held.give(&job.exec.cancel, out)?;
        }
        return Ok(done);
    }
    match rows(gpu, job, out) {
        Err(e) if out.refused() => Err(e),
        done => settle(choice, done),
    }
}

/// Decides what follows a try on a GPU that gave nothing out: its outcome, why the CPU runs the query, or the query's error.
///
/// # Errors
/// The query's own end: it was cancelled, or its time is over. Where the GPU was demanded, in one sentence why it failed.
fn settle<T>(choice: GpuChoice, outcome: Result<T>) -> Result<Result<T, String>> {
    match outcome {
        Ok(done) => Ok(Ok(done)),
        // Said before the first row.
        Err(Error::Unsupported(why)) => Ok(Err(format!("on the CPU: {why}\n"))),
        Err(e @ (Error::Cancelled | Error::Timeout(_) | Error::SinkClosed)) => Err(e),
        Err(e) => match (choice, e) {
            (GpuChoice::On, Error::Internal(why)) => Err(Error::Gpu(why)),
            (GpuChoice::On, Error::Limit(why)) => Err(Error::Gpu(why.to_string())),
            (GpuChoice::On, e) => Err(e),
            (_, Error::Internal(why)) => Ok(Err(format!("on the CPU: {why}\n"))),
            (_, e) => Ok(Err(format!("on the CPU: {e}\n"))),
        },
    }
}

/// Runs the whole plan there, or its first steps.
///
/// # Errors
/// `Unsupported` before the first row, where the GPU runs nothing of it; else of the GPU or the sink.
fn rows(gpu: &GpuExecutor, job: &Job, out: &mut dyn Sink) -> Result<(u64, Measured)> {
    let (plan, snapshot, options) = (job.plan, job.snapshot, job.options);
    let mut rows = |columns: &[&[u32]], rows: usize| out.batch(columns, rows);
    let output = Output::Rows(&mut rows);
    let gpu_options = gpu_options(options, &job.exec.cancel);
    match gpu.execute(plan, snapshot, output, &gpu_options) {
        Ok(r) => {
            let profile = on_device(plan, &r);
            let mut m = measured(plan, snapshot, options, &profile, String::new());
            if options.profile {
                let p = &r.profile;
                let _ = writeln!(
                    m.text,
                    "{:.3} ms of it to bring {} bytes of segments\n{}",
                    p.bring_seconds * 1e3,
                    p.segment_bytes,
                    p.table(None)
                );
            }
            return Ok((r.rows, m));
        }
        // Said before the first row.
        Err(Error::Unsupported(_)) => {}
        Err(e) => return Err(e),
    }
    // Its first steps there, the rest here.
    let profile = execute_on(plan, snapshot, job.exec, job.terms, gpu, out)?;
    let m = measured(plan, snapshot, options, &profile, String::new());
    Ok((profile.rows, m))
}

/// The profile of a plan that ran on a device as a whole.
fn on_device(plan: &Plan, result: &GpuResult) -> Profile {
    let (p, steps) = (
        &result.profile,
        plan.exploration().map_or(0, |e| e.steps.len()),
    );
    let steps_there = p.by_plan_step(steps);
    let mut profile = Profile {
        rows: result.rows,
        elapsed: Duration::from_secs_f64(p.seconds + p.bring_seconds),
        threads: 1,
        ..Profile::default()
    };
    // Such plans are one exploration with nothing above it that the device does not do.
    let mut at = &plan.root;
    loop {
        let mut node = NodeProfile {
            rows_out: result.rows,
            there: Some((p.device.clone(), 0)),
            ..NodeProfile::default()
        };
        let inputs = at.inputs();
        if inputs.is_empty() {
            node.there = Some((p.device.clone(), steps));
            node.rows_in = steps_there.first().map_or(0, |s| s.rows_in);
            node.rows_out = steps_there.last().map_or(0, |s| s.rows_out);
            node.time = Duration::from_secs_f64(p.seconds);
            node.steps.clone_from(&steps_there);
            profile.bottom = Some(profile.nodes.len());
        }
        profile.nodes.push(node);
        match inputs.as_slice() {
            [below] => at = below,
            _ => break,
        }
    }
    profile
}

fn gpu_options(options: &Options<'_>, cancel: &CancelToken) -> GpuOptions {
    GpuOptions {
        cancel: cancel.clone(),
        profile: options.profile,
        ..GpuOptions::default()
    }
}
