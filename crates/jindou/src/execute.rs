//! Execution of planned queries: runs a plan in the engine, decodes its rows of ids and passes them to the caller's
//! sink.
//!
//! If the sink accepts rows as text in any order, each worker decodes and formats its own rows, and takes the sink's
//! lock only to pass finished pieces of text. Otherwise decoded rows are passed.

use crate::again::again_in_place;
use crate::database::Checksum;
use crate::default_graph::DefaultGraph;
use crate::formatted::{GROUP, RowFormatter};
use crate::graph_forms::{self, Construct, DescribedVertices};
use crate::options::QueryOptions;
use crate::profile::ProfileNode;
use crate::results::{AnswerSink, PIECE, RowText, Rows};
use crate::runtime::{Computing, Settled};
use crate::watch::QueryWatch;
use jindou_engine::{
    CountSink, DEFAULT_BATCH_ROWS, ExecOptions, Execution, ExecutionOutcome, ExecutorChoice,
    ParallelSink, QueryTerms, Sink, TermDecoder,
};
use jindou_graph::Graph;
use jindou_model::{CancelToken, Holder, MemoryBudget, Result, Scope, TextRoom, scope, sync};
use jindou_plan::{Form, Plan, Weight};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// Size in bytes of a worker's first piece of text; later pieces are larger. Small, so that the first rows of a slow
/// answer are passed on early.
const FIRST_PIECE: usize = 1 << 12;

pub(crate) type Options<'o> = Settled<'o, QueryOptions>;

/// Takes a computing slot for a heavy plan; light plans need none.
fn place<'p>(plan: &Plan, options: &'p Options<'_>, cancel: &CancelToken) -> Result<Computing<'p>> {
    match plan.weight {
        Weight::Light => Ok(Computing::light()),
        Weight::Heavy => Computing::enter(&**options.pool, cancel),
    }
}

fn exec_options(plan: &Plan, options: &Options<'_>, cancel: CancelToken) -> ExecOptions {
    // A thread that holds a computing slot, or will take one, needs the pool, so that it can release the slot while it
    // waits.
    let is_inside = || plan.weight == Weight::Heavy || options.pool.is_inside();
    ExecOptions {
        threads: options.threads,
        cancel,
        memory: options.memory.clone(),
        batch_rows: DEFAULT_BATCH_ROWS,
        profile: options.profile,
        live: options.watch.as_ref().map(QueryWatch::live),
        service: options.service.clone(),
        pool: (options.threads > 1 || is_inside()).then(|| Arc::clone(options.pool)),
        temp: options.files.clone(),
    }
}

/// A plan with all data that its execution needs.
pub(crate) struct PlanExecution<'a> {
    pub plan: &'a Plan,
    pub snapshot: &'a dyn Graph,
    pub options: &'a Options<'a>,
    pub cancel: CancelToken,
}

impl PlanExecution<'_> {
    /// Executes the plan and computes a checksum of its rows.
    pub fn into_checksum(self) -> Result<Checksum> {
        let (plan, snapshot, options) = (self.plan, self.snapshot, self.options);
        if let Some(sharded) = snapshot.as_sharded() {
            sharded.charge_to(&options.memory);
        }
        let (terms, exec) = (QueryTerms::new(), exec_options(plan, options, self.cancel));
        let _place = place(plan, options, &exec.cancel)?;
        let chosen = options.choose(plan, snapshot)?;
        let execution = Execution {
            plan,
            snapshot,
            options: &exec,
            terms: &terms,
            executor: &chosen.executor,
        };
        let (sum, on_gpu, shards) = execution.checksum()?;
        Ok(Checksum {
            rows: sum.rows,
            checksum: sum.checksum,
            on_gpu,
            shards,
        })
    }

    /// Writes the answer into a sink. Returns the number of rows written (1 for ASK) and, if requested, the profile.
    /// `described` is the default graph that DESCRIBE reads.
    pub fn into_sink(
        self,
        described: &DefaultGraph,
        sink: &mut dyn AnswerSink,
    ) -> Result<(u64, MeasuredProfile)> {
        let (plan, snapshot, options) = (self.plan, self.snapshot, self.options);
        if let Some(watch) = &options.watch {
            watch.begin(plan, snapshot);
        }
        if let Some(sharded) = snapshot.as_sharded() {
            sharded.charge_to(&options.memory);
        }
        let (terms, exec) = (QueryTerms::new(), exec_options(plan, options, self.cancel));
        let _place = place(plan, options, &exec.cancel)?;
        let chosen = options.choose(plan, snapshot)?;
        let began = chosen.is_predicted().then(Instant::now);
        let execution = Execution {
            plan,
            snapshot,
            options: &exec,
            terms: &terms,
            executor: &chosen.executor,
        };
        let answer =
            |execution, sink: &mut dyn AnswerSink| answer(execution, (options, described), sink);
        let (rows, executor, ran) = match chosen.executor {
            ExecutorChoice::Shards(_) => again_in_place(execution, sink, answer)?,
            _ => answer(execution, sink)?,
        };
        let there = matches!(executor, ExecutorChoice::Rather(_)) && ran.why_here.is_none();
        // The time is not recorded for templates and descriptions, whose work does not depend on the device.
        if let Some(began) = began
            && matches!(plan.form, Form::Select | Form::Ask)
        {
            chosen.ran(there, began.elapsed(), rows);
        }
        Ok((rows, measured(plan, snapshot, options, ran)))
    }

    /// Passes a SELECT's rows of ids unchanged to a single consumer.
    pub fn into_rows(self, terms: &QueryTerms, out: &mut dyn Sink) -> Result<()> {
        let (plan, snapshot, options) = (self.plan, self.snapshot, self.options);
        if let Some(watch) = &options.watch {
            watch.begin(plan, snapshot);
        }
        let exec = exec_options(plan, options, self.cancel);
        let _place = place(plan, options, &exec.cancel)?;
        let chosen = options.choose(plan, snapshot)?;
        let execution = Execution {
            plan,
            snapshot,
            options: &exec,
            terms,
            executor: &chosen.executor,
        };
        execution.stream(out)?;
        Ok(())
    }
}

/// The number of rows of an answer, the executor that computed them, and the engine's report.
type Answered<'a> = (u64, &'a ExecutorChoice, ExecutionOutcome);

/// Writes the answer of a plan into a sink.
fn answer<'a>(
    mut execution: Execution<'a>,
    (options, described): (&Options<'_>, &DefaultGraph),
    sink: &mut dyn AnswerSink,
) -> Result<Answered<'a>> {
    let (plan, snapshot, terms) = (execution.plan, execution.snapshot, execution.terms);
    let cancel = &execution.options.cancel;
    let (rows, ran) = match &plan.form {
        _ if plan.is_ask() => {
            let mut count = CountSink::default();
            let ran = execution.stream(&mut count)?;
            sink.boolean(count.rows > 0)?;
            sink.finish()?;
            (1, ran)
        }
        Form::Construct(template) => {
            if !matches!(execution.executor, ExecutorChoice::Shards(_)) {
                execution.executor = &ExecutorChoice::Here;
            }
            sink.graph()?;
            let mut rows = Construct::new(template, snapshot, terms, &options.memory, cancel, sink);
            let ran = execution.stream(&mut rows)?;
            (rows.finish()?, ran)
        }
        Form::Describe(_) => {
            if !matches!(execution.executor, ExecutorChoice::Shards(_)) {
                execution.executor = &ExecutorChoice::Here;
            }
            sink.graph()?;
            let mut rows = DescribedVertices::new(&options.memory);
            let ran = execution.stream(&mut rows)?;
            let memory = &options.memory;
            let triples = Scope::beside_charges(Holder::Rest, memory, cancel).try_run(|| {
                let graph = (snapshot, terms);
                graph_forms::describe(rows, described, graph, cancel, memory, sink)
            })?;
            sink.finish()?;
            (triples, ran)
        }
        _ => {
            sink.solutions(&plan.columns)?;
            let ran = solutions(&execution, sink)?;
            (ran.profile.rows, ran)
        }
    };
    Ok((rows, execution.executor, ran))
}

/// Runs a SELECT's plan into a sink: as text if the sink accepts text in any order, otherwise as decoded rows.
fn solutions(execution: &Execution<'_>, sink: &mut dyn AnswerSink) -> Result<ExecutionOutcome> {
    let (snapshot, terms) = (execution.snapshot, execution.terms);
    let text = sink
        .row_text()
        .filter(|_| !execution.plan.root.is_ordered());
    let Some(kind) = text else {
        let mut decoded = DecodedRows {
            decoder: RowDecoder::new(snapshot, terms, &execution.options.memory),
            sink,
        };
        let ran = execution.stream(&mut decoded)?;
        decoded.sink.finish()?;
        return Ok(ran);
    };
    let pieces = &TextRows {
        sink: Mutex::new(sink),
        exec: execution.options,
        snapshot,
        terms,
        kind,
    };
    let ran = execution.run(&pieces)?;
    sync::lock(&pieces.sink).finish()?;
    Ok(ran)
}

/// The profile of a measured query, as text and as a tree; empty unless requested.
#[derive(Default)]
pub(crate) struct MeasuredProfile {
    pub text: String,
    pub tree: Option<ProfileNode>,
}

fn measured(
    plan: &Plan,
    snapshot: &dyn Graph,
    options: &Options<'_>,
    ran: ExecutionOutcome,
) -> MeasuredProfile {
    if !options.profile {
        return MeasuredProfile::default();
    }
    let tree = ProfileNode::from_profile(plan, &ran.profile);
    let why = ran.why_here;
    let traffic = snapshot.as_sharded().map_or(String::new(), |s| {
        let t = s.traffic();
        let reads = match t.reads {
            0 => String::new(),
            n => format!(", {n} reads of other servers' memory"),
        };
        format!(
            "shards: read in place, {} rounds, {} messages, {} bytes{reads}\n",
            t.rounds, t.messages, t.bytes
        )
    });
    let spilled = match ran.profile.spilled {
        0 => String::new(),
        bytes => format!("temporary files: {bytes} bytes written\n"),
    };
    let text = format!(
        "{}{traffic}{}\n{}{spilled}{}",
        why.map_or(String::new(), |why| format!("on the CPU: {why}\n")),
        jindou_plan::explain(plan, snapshot),
        tree.text(&ran.profile),
        ran.details
    );
    MeasuredProfile {
        text,
        tree: Some(tree),
    }
}

/// Decodes batches with one decoder per column. A decoder is fast for ids that are near each other, which those of a
/// column often are, and those of a row are not.
struct RowDecoder<'a> {
    snapshot: &'a dyn Graph,
    terms: &'a QueryTerms,
    columns: Vec<TermDecoder<'a>>,
    rows: Rows,
    /// Charge for the decoded rows.
    room: TextRoom,
}

/// Bytes of terms at which a group of rows ends. A column's decoder whose last term has this many bytes is replaced, to
/// free its buffer.
const GROUP_BYTES: usize = 1 << 18;

impl<'a> RowDecoder<'a> {
    fn new(snapshot: &'a dyn Graph, terms: &'a QueryTerms, memory: &MemoryBudget) -> Self {
        Self {
            snapshot,
            terms,
            columns: Vec::new(),
            rows: Rows::default(),
            room: TextRoom::new(Holder::Rest, memory),
        }
    }

    /// Decodes the next group of rows, starting at row `from`: up to [`GROUP`] rows, or fewer if their terms are long.
    fn group(&mut self, columns: &[&[u32]], from: usize, rows: usize) -> Result<&Rows> {
        if self.columns.len() != columns.len() {
            self.columns = columns
                .iter()
                .map(|_| TermDecoder::new(self.snapshot, self.terms))
                .collect();
        }
        let to = rows.min(from + GROUP);
        for (column, decoder) in columns.iter().zip(&mut self.columns) {
            decoder.prefetch(column.get(from..to).unwrap_or(&[]));
        }
        self.rows.clear(columns.len());
        for r in from..to {
            for (column, decoder) in columns.iter().zip(&mut self.columns) {
                if let Some(term) = decoder.canonical(column[r])? {
                    self.room.reserve(&mut self.rows.bytes, term.len())?;
                    self.rows.bytes.extend_from_slice(term);
                    if term.len() >= PIECE {
                        *decoder = TermDecoder::new(self.snapshot, self.terms);
                    }
                }
                self.rows.end_cell();
            }
            self.rows.rows += 1;
            if self.rows.bytes.len() >= GROUP_BYTES {
                break;
            }
        }
        Ok(&self.rows)
    }
}

/// Sink that decodes rows and passes them to a single consumer.
struct DecodedRows<'a, 's> {
    decoder: RowDecoder<'a>,
    sink: &'s mut dyn AnswerSink,
}

/// Number of rows whose terms are fetched from other shards in one round trip: a multiple of [`GROUP`].
const FETCHED: usize = 64 * GROUP;

/// Fetches the terms of the rows starting at row `from`, if other shards hold some of them. Rows before `*fetched` were
/// fetched already.
fn fetch_terms(
    snapshot: &dyn Graph,
    columns: &[&[u32]],
    from: usize,
    rows: usize,
    fetched: &mut usize,
) {
    if from >= *fetched
        && let Some(sharded) = snapshot.as_sharded()
    {
        *fetched = rows.min(from + FETCHED);
        let parts = columns.iter().filter_map(|c| c.get(from..*fetched));
        sharded.fetch_terms(parts.flatten().copied());
    }
}

impl Sink for DecodedRows<'_, '_> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        let (mut from, mut fetched) = (0, 0);
        while from < rows {
            fetch_terms(self.decoder.snapshot, columns, from, rows, &mut fetched);
            let group = self.decoder.group(columns, from, rows)?;
            // Memory that the consumer allocates may outlive the query, so it is allocated outside the query's scope.
            scope::outside(|| self.sink.rows(group))?;
            from += group.rows;
        }
        Ok(())
    }
}

/// Sink that formats rows as text; each worker has a [`WorkerText`].
struct TextRows<'a, 's> {
    sink: Mutex<&'s mut dyn AnswerSink>,
    exec: &'a ExecOptions,
    snapshot: &'a dyn Graph,
    terms: &'a QueryTerms,
    kind: RowText,
}

/// One worker's formatter and the piece of text that it has not passed on yet.
struct WorkerText<'a, 'p, 's> {
    whole: &'p TextRows<'a, 's>,
    formatter: RowFormatter<'a>,
    text: Vec<u8>,
    /// Rows in `text`.
    rows: u64,
    /// The piece is passed on when it has this many bytes.
    enough: usize,
}

impl<'s> WorkerText<'_, '_, 's> {
    fn write_piece(&mut self) -> Result<()> {
        if !self.text.is_empty() {
            let mut sink = self.whole.exec.lock(&self.whole.sink)?;
            // Memory that the consumer allocates may outlive the query, so it is allocated outside the query's scope.
            scope::outside(|| sink.raw(&self.text, self.rows))?;
            drop(sink);
            self.rows = 0;
            self.enough = PIECE.min(self.enough * 2);
            // Enough capacity for the next piece and the last group of rows in it. A new buffer is allocated, since
            // growing the old one would copy it.
            if self.text.capacity() < 2 * self.enough {
                self.text = Vec::with_capacity(2 * self.enough);
            } else {
                self.text.clear();
            }
        }
        Ok(())
    }

    /// Appends a group of rows to the piece. If the piece gets too long in the middle of a row, it is passed on, and
    /// the sink stays locked until the whole group was passed on, so that other workers' text cannot get into the row.
    fn push_group(&mut self, columns: &[&[u32]], from: usize, rows: usize) -> Result<usize> {
        let (whole, rows_before) = (self.whole, self.rows);
        let mut sink: Option<MutexGuard<'_, &'s mut dyn AnswerSink>> = None;
        let mut write_piece = |text: &mut Vec<u8>| {
            scope::worked(text.len())?;
            let is_first = sink.is_none();
            let sink = match &mut sink {
                Some(sink) => sink,
                None => sink.insert(whole.exec.lock(&whole.sink)?),
            };
            let counted = if is_first { rows_before } else { 0 };
            scope::outside(|| sink.raw(text, counted))?;
            text.clear();
            Ok(())
        };
        let range = (from, rows);
        let text = &mut self.text;
        let pushed = (self.formatter).group(&whole.kind, columns, range, text, &mut write_piece)?;
        if let Some(mut sink) = sink {
            scope::outside(|| sink.raw(&self.text, pushed as u64))?;
            self.text.clear();
            self.rows = 0;
        } else {
            self.rows += pushed as u64;
        }
        Ok(pushed)
    }
}

impl Sink for WorkerText<'_, '_, '_> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        let mut fetched = 0;
        for from in (0..rows).step_by(GROUP) {
            fetch_terms(self.whole.snapshot, columns, from, rows, &mut fetched);
            self.push_group(columns, from, rows)?;
            if self.text.len() >= self.enough {
                self.write_piece()?;
            }
        }
        Ok(())
    }
}

impl<'a: 'p, 'p, 's> ParallelSink for &'p TextRows<'a, 's> {
    type Local = WorkerText<'a, 'p, 's>;

    fn local(&self) -> Self::Local {
        WorkerText {
            whole: self,
            formatter: RowFormatter::new(self.snapshot, self.terms),
            text: Vec::new(),
            rows: 0,
            enough: FIRST_PIECE,
        }
    }

    fn merge(&self, mut local: Self::Local) -> Result<()> {
        local.write_piece()
    }
}
