//! The boundary behind which steps are run: by this CPU, by a GPU, by other servers.
//!
//! *Given a handle to a history table and the next steps, run them and give back a handle, or stream batches.*
//! The handle is opaque: the table may lie in host, device or remote memory. It carries the id epoch and
//! snapshot that its ids mean something in, so that no executor mixes two states of the graph.

use crate::batch::{Batch, View};
use crate::explore::{Consumer, Flow, Halt, Pipeline, Run};
use crate::offload::Ran;
use crate::options::{ExecOptions, Spawned, StepProfile};
use crate::sink::{ChecksumSink, Sink};
use crate::terms::QueryTerms;
use jindou_graph::{Graph, Identity};
use jindou_model::sync;
use jindou_model::{Error, MemoryBudget, Result};
use jindou_plan::{Exploration, Operator, Plan, Slot, Step, layout_of};
use std::any::Any;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// A history table held by an executor.
pub struct Table {
    /// Id epoch of the base.
    pub epoch: u64,
    /// The snapshot's version.
    pub snapshot: u64,
    /// Slots of its columns, in order.
    pub slots: Vec<Slot>,
    /// Rows. Without columns they are a bare multiplicity.
    pub rows: u64,
    /// The executor's own.
    body: Box<dyn Any + Send>,
}

impl Table {
    /// A handle over an executor's own body.
    #[must_use]
    pub fn new(
        snapshot: &dyn Graph,
        slots: Vec<Slot>,
        rows: u64,
        body: Box<dyn Any + Send>,
    ) -> Self {
        let Identity { epoch, version, .. } = snapshot.identity();
        Self {
            epoch,
            snapshot: version,
            slots,
            rows,
            body,
        }
    }

    /// The body, if it is this executor's.
    #[must_use]
    pub fn body<T: Any>(&self) -> Option<&T> {
        self.body.downcast_ref()
    }

    /// An error unless the table belongs to this snapshot.
    ///
    /// # Errors
    /// `Internal`.
    pub fn belongs_to(&self, snapshot: &dyn Graph) -> Result<()> {
        if (self.epoch, self.snapshot) == (snapshot.identity().epoch, snapshot.identity().version) {
            Ok(())
        } else {
            Err(Error::Internal(
                "a history table of another snapshot".into(),
            ))
        }
    }
}

/// Steps to run, and under which limits.
pub struct Task<'a> {
    /// The state of the graph.
    pub snapshot: &'a dyn Graph,
    /// The steps. With an input table they go on from it; without one, the first is a `Start`.
    pub steps: &'a [Step],
    /// Threads, deadline, memory.
    pub options: &'a ExecOptions,
}

/// An operator to run with all below it, and under which limits.
pub struct OperatorTask<'a> {
    /// The operator. No part of it depends on rows of others.
    pub op: &'a Operator,
    /// Rows of it that are wanted at most.
    pub most: Option<u64>,
    /// The state of the graph.
    pub snapshot: &'a dyn Graph,
    /// Threads, deadline, memory.
    pub options: &'a ExecOptions,
}

/// How often rows that are the same come from an executor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repeats {
    /// Each one comes.
    #[default]
    Each,
    /// Equal rows may come once.
    Once,
    /// Equal rows may come once, if one more column, after the others, says how many there were.
    Counted,
}

/// The rows of an exploration that can be among those that an ORDER BY with LIMIT above it shows.
///
/// Each row of the exploration becomes at least one of those that are sorted, with the same term in `slot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Top {
    /// The slot that is sorted by first.
    pub slot: Slot,
    /// The greatest terms come first.
    pub is_descending: bool,
    /// Nothing else is sorted by, so that of rows with equal terms any may be shown.
    pub is_alone: bool,
    /// Rows that are shown, and those that are skipped before them.
    pub most: u64,
}

/// The rows of an exploration that are needed above it: others may come all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// How often rows that are the same are needed.
    pub repeats: Repeats,
    /// The first in some order, if only these are.
    pub top: Option<Top>,
}

/// The next of the rows that an executor makes while they are taken.
#[derive(Debug)]
pub enum Poll {
    /// Some rows: their columns, and how many they are. Without columns they are a bare number.
    Rows(Vec<Vec<u32>>, u64),
    /// No rows yet.
    Pending,
    /// No rows any more.
    Done,
}

/// Rows that an executor makes while they are taken, by any thread. Dropped, they are made no further.
pub trait PulledRows: Send + Sync {
    /// The next rows that are there.
    ///
    /// # Errors
    /// Whatever keeps the rows from being all.
    fn poll(&self) -> Result<Poll>;

    /// Waits a while for rows, their end or a failure; may come back before.
    ///
    /// # Errors
    /// Those of the task's token; that what makes the rows is gone.
    fn wait(&self) -> Result<()>;

    /// Says that no more rows are wanted: they are made no further, and those that are there are given out no more.
    fn end(&self) {}

    /// True if the last column says how many rows each row stands for. Bare rows have no such column.
    fn is_counted(&self) -> bool {
        false
    }

    /// Counts of each step so far.
    fn steps(&self) -> Vec<StepProfile>;

    /// Lines for people about how the rows were made.
    fn details(&self) -> String {
        String::new()
    }

    /// Work of each shard so far, where shards make the rows.
    fn work(&self) -> Vec<ShardWork> {
        Vec::new()
    }
}

/// Work that one shard did for a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardWork {
    /// Rows that came into its steps, summed over them; for the first step, values that were looked at.
    pub rows: u64,
    /// Rows that it sent to other shards, on their way or to the query's coordinator.
    pub sent: u64,
    /// Time in which its threads computed, waits for lists that were asked for included.
    pub time: std::time::Duration,
}

/// Rows that are there already.
pub(crate) struct Ready {
    rows: Mutex<Option<(Vec<Vec<u32>>, u64)>>,
    counts: Vec<u64>,
    details: String,
}

impl Ready {
    /// Rows in columns, the number of rows after each step, and lines for people.
    pub fn new(columns: Vec<Vec<u32>>, rows: u64, counts: Vec<u64>, details: String) -> Self {
        Self {
            rows: Mutex::new(Some((columns, rows))),
            counts,
            details,
        }
    }
}

impl PulledRows for Ready {
    fn poll(&self) -> Result<Poll> {
        Ok(match sync::lock(&self.rows).take() {
            Some((columns, rows)) if rows > 0 => Poll::Rows(columns, rows),
            _ => Poll::Done,
        })
    }

    fn wait(&self) -> Result<()> {
        Ok(())
    }

    fn steps(&self) -> Vec<StepProfile> {
        let mut before = 0;
        let each = self.counts.iter().map(|&rows_out| {
            let rows_in = std::mem::replace(&mut before, rows_out);
            StepProfile {
                rows_in,
                rows_out,
                ..StepProfile::default()
            }
        });
        each.collect()
    }

    fn details(&self) -> String {
        self.details.clone()
    }
}

/// Runs exploration steps. One implementation a place that rows can be in.
pub trait Executor: Send + Sync {
    /// For EXPLAIN and logs.
    fn name(&self) -> &'static str;

    /// Where its steps run, for profiles: a device's name, a server's.
    fn place(&self) -> String {
        self.name().into()
    }

    /// How many of the task's steps, from its start on, this executor runs: the caller has the others run by
    /// another one. All, unless an executor says otherwise.
    ///
    /// # Errors
    /// When nothing can be told, such as `Internal` from a broken device.
    fn prefix(&self, task: &Task<'_>) -> Result<usize> {
        Ok(task.steps.len())
    }

    /// True if it is worth running explorations inside parts of a plan that are run for each row, or batch of rows, of others.
    fn runs_nested(&self) -> bool {
        true
    }

    /// Starts the task's steps, all that [`Self::prefix`] gave, from the start on, for an executor whose rows come while they are taken.
    /// `None` if it is not such an executor, or the steps had better be run here after all.
    ///
    /// # Errors
    /// As [`Self::run`].
    fn pull(&self, _task: &Task<'_>, _needs: Needs) -> Result<Option<Box<dyn PulledRows>>> {
        Ok(None)
    }

    /// True if its rows are [pulled](Self::pull), never streamed.
    fn is_pulled(&self) -> bool {
        false
    }

    /// Brings rows here: `columns` are as long as `rows` says, one for each slot.
    ///
    /// # Errors
    /// `Limit` when there is no room.
    fn load(
        &self,
        task: &Task<'_>,
        slots: &[Slot],
        columns: &[&[u32]],
        rows: usize,
    ) -> Result<Table>;

    /// Runs the steps and keeps the rows here.
    ///
    /// # Errors
    /// `Cancelled`, `Timeout`, `Limit`; `Internal` for a table of another snapshot or executor.
    fn run(&self, task: &Task<'_>, input: Option<&Table>) -> Result<Table>;

    /// Runs the steps and gives the rows to a sink, batch by batch: columns in the order of [`columns_after`],
    /// which is returned. A batch may be much larger than the task's `batch_rows`.
    ///
    /// # Errors
    /// As [`Self::run`], and the sink's.
    fn stream(
        &self,
        task: &Task<'_>,
        input: Option<&Table>,
        sink: &mut dyn Sink,
    ) -> Result<Vec<Slot>>;

    /// As [`Self::stream`], and appends what each step did to `profile`, if the executor knows.
    ///
    /// # Errors
    /// As [`Self::stream`].
    fn stream_profiled(
        &self,
        task: &Task<'_>,
        input: Option<&Table>,
        sink: &mut dyn Sink,
        _profile: &mut Vec<StepProfile>,
    ) -> Result<Vec<Slot>> {
        self.stream(task, input, sink)
    }

    /// True if this executor runs the operator with all below it, by [`Self::counts`] if it is a COUNT, else by [`Self::operator`]: then
    /// fewer rows come back than the exploration below makes. No operator, unless an executor says otherwise.
    ///
    /// # Errors
    /// As [`Self::prefix`].
    fn runs(&self, _task: &OperatorTask<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Runs an operator that it [`runs`](Self::runs) and gives the rows to a sink: columns as [`Operator::layout`] has them. Appends what each
    /// step of the exploration below did to `profile`.
    ///
    /// # Errors
    /// As [`Self::stream`].
    fn operator(
        &self,
        task: &OperatorTask<'_>,
        _sink: &mut dyn Sink,
        _profile: &mut Vec<StepProfile>,
    ) -> Result<()> {
        let name = task.op.name();
        Err(Error::Unsupported(format!("{name} on {}", self.name())))
    }

    /// The numbers of a COUNT without groups that it [`runs`](Self::runs), one a count. `profile` as in [`Self::operator`].
    ///
    /// # Errors
    /// As [`Self::run`].
    fn counts(&self, task: &OperatorTask<'_>, _profile: &mut Vec<StepProfile>) -> Result<Vec<u64>> {
        let name = task.op.name();
        Err(Error::Unsupported(format!("{name} on {}", self.name())))
    }

    /// Runs a whole plan and gives its rows to a sink: columns in the plan's order, in batches of any size.
    ///
    /// # Errors
    /// `Unsupported`, before the first row, for a plan of which this executor runs at most the steps: all plans, unless an
    /// executor says otherwise. Otherwise errors of [`Self::run`] and of the sink; the sink may have got rows by then.
    fn whole(
        &self,
        _plan: &Plan,
        _snapshot: &dyn Graph,
        _options: &ExecOptions,
        _sink: &mut dyn Sink,
    ) -> Result<Ran> {
        Err(Error::Unsupported(format!(
            "whole plans on {}",
            self.name()
        )))
    }

    /// Runs a whole plan into a checksum.
    ///
    /// # Errors
    /// As [`Self::whole`].
    fn checksum(
        &self,
        _plan: &Plan,
        _snapshot: &dyn Graph,
        _options: &ExecOptions,
    ) -> Result<ChecksumSink> {
        Err(Error::Unsupported(format!(
            "whole plans on {}",
            self.name()
        )))
    }
}

/// The columns of rows that had these slots and went through the steps: what is bound, and either live after the
/// last step or read by its conditions, in the order in which it was bound.
#[must_use]
pub fn columns_after(slots: &[Slot], steps: &[Step]) -> Vec<Slot> {
    steps
        .iter()
        .fold(slots.to_vec(), |before, step| layout_of(&before, step))
}

/// The CPU's executor: tables are batches on the heap, charged to the task's memory budget.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuExecutor;

/// Rows of a CPU table. The batch has its columns from the first rows on.
struct Rows {
    batch: Option<Batch>,
    bare: usize,
    budget: MemoryBudget,
}

impl Rows {
    fn new(budget: &MemoryBudget) -> Self {
        Self {
            batch: None,
            bare: 0,
            budget: budget.clone(),
        }
    }

    fn len(&self) -> usize {
        self.bare + self.batch.as_ref().map_or(0, |b| b.rows)
    }
}

impl Consumer for Rows {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        if rows.columns.is_empty() {
            self.bare += rows.rows;
            return Ok(());
        }
        let batch = self
            .batch
            .get_or_insert_with(|| Batch::new(rows.columns.len(), &self.budget));
        Ok(batch.append(rows)?)
    }
}

/// Gives batches to a sink.
struct ToSink<'s> {
    sink: &'s mut dyn Sink,
}

impl Consumer for ToSink<'_> {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        let columns: Vec<&[u32]> = (0..rows.columns.len()).map(|c| rows.column(c)).collect();
        Ok(self.sink.batch(&columns, rows.rows)?)
    }
}

impl CpuExecutor {
    /// Runs the steps into `end`; returns the slots of the rows.
    fn explore(
        task: &Task<'_>,
        input: Option<&Table>,
        end: &mut dyn Consumer,
    ) -> Result<Vec<Slot>> {
        let stop = AtomicBool::new(false);
        let terms = QueryTerms::new();
        let options = task.options;
        let run = Run {
            snapshot: task.snapshot,
            vocabulary: task.snapshot.vocabulary(),
            terms: &terms,
            cancel: &options.cancel,
            scope: None,
            budget: &options.memory,
            batch_rows: options.batch_rows.clamp(16, 1 << 16),
            first_batch: options.batch_rows.clamp(16, 1 << 16),
            profile: false,
            live: None,
            threads: 1,
            heavy: false,
            service: None,
            pool: &Spawned,
            stop: &stop,
        };
        let flow = |f: Flow| match f {
            Ok(()) | Err(Halt::Stop) => Ok(()),
            Err(Halt::Failed(e)) => Err(e),
        };
        if let Some(table) = input {
            table.belongs_to(task.snapshot)?;
            let rows = table
                .body::<Rows>()
                .ok_or_else(|| Error::Internal("a history table of another executor".into()))?;
            let mut pipeline = Pipeline::after(&table.slots, task.steps, &run)?;
            let steps = 0..pipeline.steps();
            let empty = Batch::new(0, &options.memory);
            let batch = rows.batch.as_ref().unwrap_or(&empty);
            let mut chunk = Batch::new(batch.columns.len(), &options.memory);
            for from in (0..rows.len()).step_by(run.batch_rows) {
                let n = run.batch_rows.min(rows.len() - from);
                chunk.copy_rows(batch, from, n)?;
                flow(pipeline.rows(&run, chunk.view(), steps.clone(), end))?;
            }
            flow(pipeline.flush(&run, steps, end))?;
            return Ok(pipeline.layout().to_vec());
        }
        let exploration = Exploration {
            steps: task.steps.to_vec(),
            empty: None,
        };
        let mut pipeline = Pipeline::new(&exploration, &run)?;
        let source = Pipeline::source(&exploration, &run)?;
        let steps = pipeline.steps();
        flow(pipeline.morsel(&run, &source, 0..source.len(), steps, end))?;
        flow(pipeline.flush(&run, 0..steps, end))?;
        Ok(pipeline.layout().to_vec())
    }
}

impl Executor for CpuExecutor {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn load(
        &self,
        task: &Task<'_>,
        slots: &[Slot],
        columns: &[&[u32]],
        rows: usize,
    ) -> Result<Table> {
        let mut held = Rows::new(&task.options.memory);
        if slots.is_empty() {
            held.bare = rows;
        } else {
            let mut batch = Batch::new(slots.len(), &task.options.memory);
            batch.ensure(rows)?;
            for (to, from) in batch.columns.iter_mut().zip(columns) {
                let n = rows.min(from.len());
                to[..n].copy_from_slice(&from[..n]);
            }
            batch.rows = rows;
            held.batch = Some(batch);
        }
        Ok(Table::new(
            task.snapshot,
            slots.to_vec(),
            rows as u64,
            Box::new(held),
        ))
    }

    fn run(&self, task: &Task<'_>, input: Option<&Table>) -> Result<Table> {
        let mut rows = Rows::new(&task.options.memory);
        let slots = Self::explore(task, input, &mut rows)?;
        let count = rows.len() as u64;
        Ok(Table::new(task.snapshot, slots, count, Box::new(rows)))
    }

    fn stream(
        &self,
        task: &Task<'_>,
        input: Option<&Table>,
        sink: &mut dyn Sink,
    ) -> Result<Vec<Slot>> {
        Self::explore(task, input, &mut ToSink { sink })
    }
}
