//! The boundary behind which steps are run: by this CPU, by a GPU, by other servers.
//!
//! *Given the first steps of an exploration, run them and stream batches of their rows.* The history table may lie in host,
//! device or remote memory meanwhile.

use crate::offload::Ran;
use crate::options::{ExecOptions, StepProfile};
use crate::sink::{ChecksumSink, Sink};
use jindou_graph::Graph;
use jindou_model::sync;
use jindou_model::{Error, Result};
use jindou_plan::{Operator, Plan, Slot, Step, layout_of};
use std::sync::Mutex;

/// Steps to run, and under which limits.
pub struct Task<'a> {
    /// The state of the graph.
    pub snapshot: &'a dyn Graph,
    /// The steps; the first is a `Start`.
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
    /// As [`Self::stream`].
    fn pull(&self, _task: &Task<'_>, _needs: Needs) -> Result<Option<Box<dyn PulledRows>>> {
        Ok(None)
    }

    /// True if its rows are [pulled](Self::pull), never streamed.
    fn is_pulled(&self) -> bool {
        false
    }

    /// Runs the steps and gives the rows to a sink, batch by batch: columns in the order of [`columns_after`],
    /// which is returned. A batch may be much larger than the task's `batch_rows`. Appends what each step did to `profile`, if
    /// the executor knows.
    ///
    /// # Errors
    /// `Cancelled`, `Timeout`, `Limit`, and the sink's.
    fn stream(
        &self,
        task: &Task<'_>,
        sink: &mut dyn Sink,
        profile: &mut Vec<StepProfile>,
    ) -> Result<Vec<Slot>>;

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
    /// As [`Self::stream`].
    fn counts(&self, task: &OperatorTask<'_>, _profile: &mut Vec<StepProfile>) -> Result<Vec<u64>> {
        let name = task.op.name();
        Err(Error::Unsupported(format!("{name} on {}", self.name())))
    }

    /// Runs a whole plan and gives its rows to a sink: columns in the plan's order, in batches of any size.
    ///
    /// # Errors
    /// `Unsupported`, before the first row, for a plan of which this executor runs at most the steps: all plans, unless an
    /// executor says otherwise. Otherwise errors of [`Self::stream`]; the sink may have got rows by then.
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
