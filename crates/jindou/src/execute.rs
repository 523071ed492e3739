//! Queries with a native plan: the engine's rows of ids, decoded and handed to the caller's sink.
//!
//! Where the sink takes rows as text in any order, each worker decodes and formats its own rows, and only finished
//! pieces of text pass the lock; else decoded rows do.

use crate::database::{Checksum, QueryOptions};
use crate::default_graph::DefaultGraph;
use crate::device::{Device, GpuChoice, demanded};
use crate::formatted::{GROUP, RowFormatter};
use crate::graph_forms::{self, Construct, Resources};
use crate::profile::ProfileNode;
use crate::results::{AnswerSink, RowText, Rows};
use crate::row_buffer::RowBuffer;
use jindou_engine::{
    ChecksumSink, CountSink, ExecOptions, NodeProfile, ParallelSink, Profile, QueryTerms, Sink,
    Summed, TermDecoder, execute, execute_on, execute_streaming,
};
use jindou_gpu::{GpuExecutor, GpuOptions, GpuResult, Output};
use jindou_model::{CancelToken, Error, Result};
use jindou_plan::{Form, Operator, Plan};
use jindou_store::Snapshot;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Text passes the lock in pieces of at least this size, the first ones of less: an answer that comes slowly must not
/// wait for a whole piece.
const PIECE: usize = 1 << 16;
const FIRST_PIECE: usize = 1 << 12;

fn exec_options(options: &QueryOptions, cancel: &CancelToken) -> ExecOptions {
    ExecOptions {
        threads: options.threads,
        cancel: cancel.clone(),
        memory: options.memory.clone(),
        profile: options.profile,
        service: options.service.clone(),
        pool: options.pool.clone(),
        ..ExecOptions::default()
    }
}

/// Runs a plan into a checksum.
pub(crate) fn checksum(
    device: &Device,
    plan: &Plan,
    snapshot: &Snapshot,
    options: &QueryOptions,
    cancel: &CancelToken,
) -> Result<Checksum> {
    if let Some(gpu) = device.choose(plan, options.gpu)?
        && let Ok(sum) = settle(
            options.gpu,
            checksum_there(&gpu, plan, snapshot, options, cancel),
        )?
    {
        return Ok(sum);
    }
    let terms = QueryTerms::new();
    let sum = Summed::<ChecksumSink>::default();
    execute(plan, snapshot, &exec_options(options, cancel), &terms, &sum)?;
    let sum = sum.into_inner();
    Ok(Checksum {
        rows: sum.rows,
        checksum: sum.checksum,
        on_gpu: false,
    })
}

fn checksum_there(
    gpu: &GpuExecutor,
    plan: &Plan,
    snapshot: &Snapshot,
    options: &QueryOptions,
    cancel: &CancelToken,
) -> Result<Checksum> {
    let gpu_options = gpu_options(options, cancel);
    let (rows, checksum) = match gpu.execute(plan, snapshot, Output::Checksum, &gpu_options) {
        Ok(r) => (r.rows, r.checksum.unwrap_or(0)),
        // Its first steps there, the rest here.
        Err(Error::Unsupported(_)) => {
            let exec = exec_options(options, cancel);
            let (terms, mut sum) = (QueryTerms::new(), ChecksumSink::default());
            execute_on(plan, snapshot, &exec, &terms, gpu, &mut sum)?;
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
            (GpuChoice::On, Error::Internal(why) | Error::Limit(why)) => Err(demanded(&why)),
            (GpuChoice::On, e) => Err(e),
            (_, Error::Internal(why) | Error::Limit(why)) => {
                Ok(Err(format!("on the CPU: {why}\n")))
            }
            (_, e) => Ok(Err(format!("on the CPU: {e}\n"))),
        },
    }
}

/// Runs a plan into a sink; returns the rows written (1 for ASK) and, if asked for, what was measured.
pub(crate) fn run(
    device: &Device,
    plan: &Plan,
    described: &DefaultGraph,
    snapshot: &Snapshot,
    options: &QueryOptions,
    cancel: &CancelToken,
    sink: &mut dyn AnswerSink,
) -> Result<(u64, Measured)> {
    let gpu = device.choose(plan, options.gpu)?;
    let terms = QueryTerms::new();
    let exec = exec_options(options, cancel);
    if plan.is_ask() {
        let mut count = CountSink::default();
        let there = match &gpu {
            Some(g) => {
                let done = execute_on(plan, snapshot, &exec, &terms, &**g, &mut count);
                settle(options.gpu, done)?
            }
            None => Err(String::new()),
        };
        let (profile, note) = match there {
            Ok(profile) => (Some(profile), String::new()),
            Err(note) => {
                count = CountSink::default();
                (None, note)
            }
        };
        let profile = match profile {
            Some(p) => p,
            None => execute_streaming(plan, snapshot, &exec, &terms, &mut count)?,
        };
        sink.boolean(count.rows > 0)?;
        sink.finish()?;
        return Ok((1, measured(plan, snapshot, options, &profile, note)));
    }
    if let Form::Construct(template) = &plan.form {
        sink.graph()?;
        let mut rows = Construct::new(template, snapshot, &terms, &options.memory, cancel, sink);
        let profile = execute_streaming(plan, snapshot, &exec, &terms, &mut rows)?;
        rows.sink.finish()?;
        let m = measured(plan, snapshot, options, &profile, String::new());
        return Ok((rows.triples, m));
    }
    if let Form::Describe(_) = &plan.form {
        sink.graph()?;
        let mut rows = Resources::new(&options.memory);
        let profile = execute_streaming(plan, snapshot, &exec, &terms, &mut rows)?;
        let mut decoder = TermDecoder::new(snapshot, &terms);
        let resources = rows
            .ids
            .iter()
            .filter_map(|&id| decoder.term(id).transpose())
            .collect::<Result<Vec<_>>>()?;
        let triples = graph_forms::describe(
            resources,
            described,
            snapshot,
            cancel,
            &options.memory,
            sink,
        )?;
        sink.finish()?;
        let m = measured(plan, snapshot, options, &profile, String::new());
        return Ok((triples, m));
    }
    sink.solutions(&plan.columns)?;
    let mut note = String::new();
    if let Some(gpu) = &gpu {
        let there = There {
            gpu,
            plan,
            snapshot,
            options,
            cancel,
            exec: &exec,
            terms: &terms,
        };
        let mut decoded = Decoded {
            decoder: RowDecoder::new(snapshot, &terms),
            sink: &mut *sink,
            refused: false,
        };
        let done = if options.gpu == GpuChoice::Auto {
            // Nothing goes out before the device is done, so that the CPU can begin from the start.
            let mut held = RowBuffer::new(plan.output.len(), &options.memory);
            let done = settle(options.gpu, there.run(&mut held))?;
            if done.is_ok() {
                held.give(cancel, &mut decoded)?;
            }
            done
        } else {
            match there.run(&mut decoded) {
                Err(e) if decoded.refused => return Err(e),
                done => settle(options.gpu, done)?,
            }
        };
        match done {
            Ok(done) => {
                sink.finish()?;
                return Ok(done);
            }
            Err(why) => note = why,
        }
    }
    let text = sink.row_text().filter(|_| !is_ordered(&plan.root));
    let profile = match text {
        Some(kind) => {
            let pieces = &Pieces {
                sink: Mutex::new(sink),
                snapshot,
                terms: &terms,
                kind,
            };
            let profile = execute(plan, snapshot, &exec, &terms, &pieces)?;
            pieces
                .sink
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .finish()?;
            profile
        }
        None => {
            let mut decoded = Decoded {
                decoder: RowDecoder::new(snapshot, &terms),
                sink,
                refused: false,
            };
            let profile = execute_streaming(plan, snapshot, &exec, &terms, &mut decoded)?;
            decoded.sink.finish()?;
            profile
        }
    };
    Ok((
        profile.rows,
        measured(plan, snapshot, options, &profile, note),
    ))
}

/// A query on a GPU.
struct There<'a> {
    gpu: &'a GpuExecutor,
    plan: &'a Plan,
    snapshot: &'a Snapshot,
    options: &'a QueryOptions,
    cancel: &'a CancelToken,
    exec: &'a ExecOptions,
    terms: &'a QueryTerms,
}

impl There<'_> {
    /// Runs the whole plan there, or its first steps.
    ///
    /// # Errors
    /// `Unsupported` before the first row, where the GPU runs nothing of it; else of the GPU or the sink.
    fn run(&self, out: &mut dyn Sink) -> Result<(u64, Measured)> {
        let (plan, snapshot, options) = (self.plan, self.snapshot, self.options);
        let mut rows = |columns: &[&[u32]], rows: usize| out.batch(columns, rows);
        let output = Output::Rows(&mut rows);
        let gpu_options = gpu_options(options, self.cancel);
        match self.gpu.execute(plan, snapshot, output, &gpu_options) {
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
        let profile = execute_on(plan, snapshot, self.exec, self.terms, self.gpu, out)?;
        let m = measured(plan, snapshot, options, &profile, String::new());
        Ok((profile.rows, m))
    }
}

/// The profile of a measured query, as text and as a tree; empty unless asked for.
#[derive(Default)]
pub(crate) struct Measured {
    pub text: String,
    pub tree: Option<ProfileNode>,
}

fn measured(
    plan: &Plan,
    snapshot: &Snapshot,
    options: &QueryOptions,
    profile: &Profile,
    note: String,
) -> Measured {
    if !options.profile {
        return Measured::default();
    }
    let tree = ProfileNode::of(plan, profile);
    let text = format!(
        "{note}{}\n{}",
        jindou_plan::explain(plan, snapshot),
        tree.text(profile)
    );
    Measured {
        text,
        tree: Some(tree),
    }
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
        offloaded: Some((p.device.clone(), steps)),
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
        let below = match at {
            Operator::Explore(_) => {
                node.there = Some((p.device.clone(), steps));
                node.rows_in = steps_there.first().map_or(0, |s| s.rows_in);
                node.rows_out = steps_there.last().map_or(0, |s| s.rows_out);
                node.time = Duration::from_secs_f64(p.seconds);
                node.steps.clone_from(&steps_there);
                None
            }
            Operator::Filter(i, _)
            | Operator::Distinct(i, _)
            | Operator::Reduced(i, _)
            | Operator::OrderBy(i, _) => Some(&**i),
            Operator::Count { input, .. }
            | Operator::Group { input, .. }
            | Operator::Extend { input, .. }
            | Operator::Slice { input, .. } => Some(&**input),
            _ => None,
        };
        profile.nodes.push(node);
        match below {
            Some(b) => at = b,
            None => break,
        }
    }
    profile.steps = steps_there;
    profile
}

fn gpu_options(options: &QueryOptions, cancel: &CancelToken) -> GpuOptions {
    GpuOptions {
        cancel: cancel.clone(),
        profile: options.profile,
        ..GpuOptions::default()
    }
}

/// True if the order of rows means something.
fn is_ordered(mut op: &Operator) -> bool {
    loop {
        op = match op {
            Operator::OrderBy(..) => return true,
            Operator::Filter(i, _) | Operator::Distinct(i, _) | Operator::Reduced(i, _) => i,
            Operator::Extend { input, .. } | Operator::Slice { input, .. } => input,
            _ => return false,
        };
    }
}

/// Decodes batches. One decoder a column: a column's ids are often near each other, those of a row are not.
struct RowDecoder<'a> {
    snapshot: &'a Snapshot,
    terms: &'a QueryTerms,
    columns: Vec<TermDecoder<'a>>,
    rows: Rows,
}

impl<'a> RowDecoder<'a> {
    fn new(snapshot: &'a Snapshot, terms: &'a QueryTerms) -> Self {
        Self {
            snapshot,
            terms,
            columns: Vec::new(),
            rows: Rows::default(),
        }
    }

    /// Decodes up to `GROUP` rows from `from` on.
    fn group(&mut self, columns: &[&[u32]], from: usize, rows: usize) -> Result<&Rows> {
        if self.columns.len() != columns.len() {
            self.columns = columns
                .iter()
                .map(|_| TermDecoder::new(self.snapshot, self.terms))
                .collect();
        }
        let to = rows.min(from + GROUP);
        for (column, decoder) in columns.iter().zip(&self.columns) {
            decoder.prefetch(column.get(from..to).unwrap_or(&[]));
        }
        self.rows.clear(columns.len());
        for r in from..to {
            for (column, decoder) in columns.iter().zip(&mut self.columns) {
                if let Some(term) = decoder.canonical(column[r])? {
                    self.rows.bytes.extend_from_slice(term);
                }
                self.rows.end_cell();
            }
        }
        self.rows.rows = to - from;
        Ok(&self.rows)
    }
}

/// Rows as terms, to one consumer.
struct Decoded<'a, 's> {
    decoder: RowDecoder<'a>,
    sink: &'s mut dyn AnswerSink,
    /// Rows could not be decoded, or the consumer did not take them.
    refused: bool,
}

impl Sink for Decoded<'_, '_> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        for from in (0..rows).step_by(GROUP) {
            let group = self.decoder.group(columns, from, rows);
            let taken = group.and_then(|rows| self.sink.rows(rows));
            self.refused |= taken.is_err();
            taken?;
        }
        Ok(())
    }
}

/// Rows as text, from any worker.
struct Pieces<'a, 's> {
    sink: Mutex<&'s mut dyn AnswerSink>,
    snapshot: &'a Snapshot,
    terms: &'a QueryTerms,
    kind: RowText,
}

/// One worker's text.
struct Piece<'a, 'p, 's> {
    whole: &'p Pieces<'a, 's>,
    formatter: RowFormatter<'a>,
    text: Vec<u8>,
    /// Rows in `text`.
    rows: u64,
    /// Size to hand on.
    enough: usize,
}

impl Piece<'_, '_, '_> {
    fn hand_on(&mut self) -> Result<()> {
        if !self.text.is_empty() {
            self.whole
                .sink
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .raw(&self.text, self.rows)?;
            self.text.clear();
            self.rows = 0;
            self.enough = PIECE.min(self.enough * 2);
        }
        Ok(())
    }
}

impl Sink for Piece<'_, '_, '_> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        for from in (0..rows).step_by(GROUP) {
            let kind = &self.whole.kind;
            let pushed = self
                .formatter
                .group(kind, columns, from, rows, &mut self.text)?;
            self.rows += pushed as u64;
            if self.text.len() >= self.enough {
                self.hand_on()?;
            }
        }
        Ok(())
    }
}

impl<'a: 'p, 'p, 's> ParallelSink for &'p Pieces<'a, 's> {
    type Local = Piece<'a, 'p, 's>;

    fn local(&self) -> Self::Local {
        Piece {
            whole: self,
            formatter: RowFormatter::new(self.snapshot, self.terms),
            text: Vec::new(),
            rows: 0,
            enough: FIRST_PIECE,
        }
    }

    fn merge(&self, mut local: Self::Local) -> Result<()> {
        local.hand_on()
    }
}
