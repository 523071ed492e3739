//! The interface of what runs steps and operators: the CPU, a GPU, or other servers.
//!
//! An executor gets the first steps of an exploration, runs them, and delivers batches of their rows. Where it keeps
//! the history table meanwhile (in the memory of the host, of a device or of other servers) is its own decision.

use crate::execute::ExecutionOutcome;
use crate::options::{ExecOptions, StepProfile};
use crate::sink::{ChecksumSink, Sink};
use jindou_graph::Graph;
use jindou_model::sync;
use jindou_model::{Error, Result};
use jindou_plan::{AggregateFunction, Operator, Plan, Slot, Step, layout_of};
use std::sync::Mutex;

/// Steps to run.
pub struct Task<'a> {
    /// The snapshot to read.
    pub snapshot: &'a dyn Graph,
    /// The steps; the first is a `Start`.
    pub steps: &'a [Step],
    /// Threads, deadline, memory.
    pub options: &'a ExecOptions,
}

/// An operator to run with everything below it.
pub struct OperatorTask<'a> {
    /// The operator. It does not depend on outer rows.
    pub op: &'a Operator,
    /// Largest number of its rows that are needed; `None` for all.
    pub most: Option<u64>,
    /// Set if only the first rows in some order are needed. The executor may return other rows as well.
    pub top: Option<Top>,
    /// The snapshot to read.
    pub snapshot: &'a dyn Graph,
    /// Threads, deadline, memory.
    pub options: &'a ExecOptions,
}

/// How duplicates of rows from an executor may be treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repeats {
    /// Every duplicate is delivered.
    #[default]
    Each,
    /// Duplicates may be removed.
    Once,
    /// Duplicates may be removed if an additional last column counts them.
    Counted,
}

/// A need for only the first rows, because of an ORDER BY with LIMIT above.
///
/// It describes rows of an exploration, each of which becomes at least one of the sorted rows, with the same term in
/// `slot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Top {
    /// The first sort slot.
    pub slot: Slot,
    /// True if the greatest terms come first.
    pub is_descending: bool,
    /// True if the slot is the only sort key, so that any of several rows with equal terms may be returned.
    pub is_alone: bool,
    /// Number of rows needed: LIMIT plus OFFSET.
    pub most: u64,
}

/// The rows of an exploration that the operators above it need. The executor may return other rows as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Treatment of duplicate rows.
    pub repeats: Repeats,
    /// Set if only the first rows in some order are needed.
    pub top: Option<Top>,
}

/// Result of polling an executor that produces rows while they are consumed.
#[derive(Debug)]
pub enum Poll {
    /// Some rows: their columns and their number. Rows without columns have only a number.
    Rows(Vec<Vec<u32>>, u64),
    /// No rows yet.
    Pending,
    /// No more rows.
    Done,
}

/// Rows in columns, in memory of the executor that produced them. Dropping the block gives the memory back to the
/// executor.
pub trait RowBlock: Send + Sync {
    /// Number of rows.
    fn rows(&self) -> usize;

    /// Number of columns.
    fn width(&self) -> usize;

    /// The ids of a column, one for each row.
    fn column(&self, at: usize) -> &[u32];
}

/// Rows that an executor produces while any thread consumes them. Dropping the value stops their production.
pub trait PulledRows: Send + Sync {
    /// The next rows that are available.
    ///
    /// # Errors
    /// Any failure that makes the rows incomplete.
    fn poll(&self) -> Result<Poll>;

    /// Waits until there are rows, the end or a failure, or for a while. May return early.
    ///
    /// # Errors
    /// Those of the task's token; a failure of the producer.
    fn wait(&self) -> Result<()>;

    /// Signals that no more rows are needed: production stops, and rows already produced are not delivered.
    fn end(&self) {}

    /// True if the last column counts the duplicates that each row stands for. Rows without columns have no such
    /// column.
    fn is_counted(&self) -> bool {
        false
    }

    /// Counts of each step so far, beginning with the start.
    fn steps(&self) -> Vec<StepProfile>;

    /// Lines for the profile on how the rows were produced.
    fn details(&self) -> String {
        String::new()
    }

    /// Work of each shard so far, by shard number; empty if shards are not involved.
    fn work(&self) -> Vec<ShardWork> {
        Vec::new()
    }
}

/// Work that one shard did for a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardWork {
    /// Rows that entered its steps, summed over the steps; for the first step, values that were read.
    pub rows: u64,
    /// Rows that it sent to other shards or to the query's coordinator.
    pub sent: u64,
    /// Time in which its threads computed, including waits for requested lists.
    pub time: std::time::Duration,
}

/// Rows that are already complete, as [`PulledRows`].
pub(crate) struct Ready {
    rows: Mutex<Option<(Vec<Vec<u32>>, u64)>>,
    counts: Vec<u64>,
    details: String,
}

impl Ready {
    /// Rows in columns, their number, the number of rows after each step, and lines for the profile.
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

/// The input rows of a GROUP BY or COUNT, reduced to what its aggregates read. The result depends only on how often
/// each of the reduced rows occurs.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupedRows<'a> {
    /// Input of the GROUP BY or COUNT.
    pub input: &'a Operator,
    /// Slots whose exact ids are read, without duplicates.
    pub ids: Vec<Slot>,
    /// The slots of `ids` that only MIN and MAX read: among rows that are equal in all other slots, a smallest and a
    /// largest value are enough, and may replace the other values.
    pub extremes: Vec<Slot>,
    /// Slots that operators only test for being bound; a bound one may have any id.
    pub tested: Vec<Slot>,
}

impl<'a> GroupedRows<'a> {
    /// The rows that a COUNT or GROUP BY reads; `None` for other operators, and if an aggregate needs every row
    /// (GROUP_CONCAT).
    #[must_use]
    pub fn of(op: &'a Operator) -> Option<Self> {
        let (input, by) = match op {
            Operator::Count(c) => (&c.input, &c.group),
            Operator::Group(g) => (&g.input, &g.by),
            _ => return None,
        };
        let mut rows = Self {
            input,
            ids: by.clone(),
            extremes: Vec::new(),
            tested: Vec::new(),
        };
        match op {
            Operator::Count(c) => {
                for c in &c.counts {
                    rows.reads(c.of, &c.row, c.distinct);
                }
            }
            Operator::Group(g) => {
                for a in &g.aggregates {
                    let exact = match a.function {
                        AggregateFunction::CountRows | AggregateFunction::Count => a.distinct,
                        AggregateFunction::GroupConcat(_) => return None,
                        AggregateFunction::Min | AggregateFunction::Max => {
                            rows.extremes.extend(a.of);
                            continue;
                        }
                        _ => true,
                    };
                    rows.reads(a.of, &a.row, exact);
                }
            }
            _ => return None,
        }
        let Self { ids, extremes, .. } = &mut rows;
        extremes.retain(|s| !ids.contains(s));
        ids.extend(extremes.iter());
        let mut seen: Vec<Slot> = Vec::new();
        for list in [&mut rows.ids, &mut rows.tested] {
            list.retain(|s| {
                !seen.contains(s) && {
                    seen.push(*s);
                    true
                }
            });
        }
        rows.extremes.sort_unstable();
        rows.extremes.dedup();
        Some(rows)
    }

    fn reads(&mut self, of: Option<Slot>, row: &[Slot], exact: bool) {
        match (of, exact) {
            (Some(of), true) => self.ids.push(of),
            (Some(of), false) => self.tested.push(of),
            (None, true) => self.ids.extend(row),
            (None, false) => {}
        }
    }

    /// All slots: those of `ids`, then those of `tested`.
    #[must_use]
    pub fn slots(&self) -> Vec<Slot> {
        self.ids.iter().chain(&self.tested).copied().collect()
    }
}

/// Runs steps of explorations, and possibly operators above them: on a GPU, or on other servers.
pub trait Executor: Send + Sync {
    /// Name for EXPLAIN and logs.
    fn name(&self) -> &'static str;

    /// Where its steps run, for profiles: the name of a device or a server. By default its own name.
    fn place(&self) -> String {
        self.name().into()
    }

    /// Number of leading steps of the task, from its start on, that this executor can run; the caller runs the
    /// remaining steps. By default all steps.
    ///
    /// # Errors
    /// If that cannot be determined, for example `Internal` for a device that does not work.
    fn prefix(&self, task: &Task<'_>) -> Result<usize> {
        Ok(task.steps.len())
    }

    /// True if this executor should also run explorations inside dependent parts of a plan, which run for each row, or
    /// batch of rows, of other parts.
    fn runs_nested(&self) -> bool {
        true
    }

    /// Starts the task's steps, as many as [`Self::prefix`] returned. The rows are produced while they are consumed.
    /// `None` if this executor does not work that way, or the caller should run the steps.
    ///
    /// # Errors
    /// As [`Self::stream`].
    fn pull(&self, _task: &Task<'_>, _needs: Needs) -> Result<Option<Box<dyn PulledRows>>> {
        Ok(None)
    }

    /// Returns true if its rows are [pulled](Self::pull), never streamed.
    fn is_pulled(&self) -> bool {
        false
    }

    /// Runs the steps and passes the rows to a sink, batch by batch; returns the slots of their columns, which are
    /// those of [`columns_after`]. A batch may be much larger than the task's `batch_rows`. Rows that stay valid should
    /// be passed as [blocks](Sink::block), which several threads can process. Appends the counts of each step to
    /// `profile`, if the executor has them.
    ///
    /// # Errors
    /// `Cancelled`, `Timeout`, `Limit`, and errors of the sink.
    fn stream(
        &self,
        task: &Task<'_>,
        sink: &mut dyn Sink,
        profile: &mut Vec<StepProfile>,
    ) -> Result<Vec<Slot>>;

    /// True if this executor runs the operator with everything below it: by [`Self::groups`] or [`Self::counts`] for a
    /// GROUP BY or COUNT, otherwise by [`Self::operator`]. Worthwhile if that returns fewer rows than the exploration
    /// below it. By default no operator.
    ///
    /// # Errors
    /// As [`Self::prefix`].
    fn runs(&self, _task: &OperatorTask<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Runs an operator for which [`runs`](Self::runs) is true, and passes the rows to a sink, with columns as in
    /// [`Operator::layout`]. Appends the counts of each step of the exploration below to `profile`.
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

    /// Runs a COUNT without groups for which [`runs`](Self::runs) is true, and returns the result of each count.
    /// `profile` as in [`Self::operator`].
    ///
    /// # Errors
    /// As [`Self::stream`].
    fn counts(&self, task: &OperatorTask<'_>, _profile: &mut Vec<StepProfile>) -> Result<Vec<u64>> {
        let name = task.op.name();
        Err(Error::Unsupported(format!("{name} on {}", self.name())))
    }

    /// Runs the input of a GROUP BY or COUNT for which [`runs`](Self::runs) is true, and merges equal rows: the columns
    /// are those of [`GroupedRows::slots`], then the number of rows that each stands for, which is not 0. Equal rows
    /// may still be passed several times. Returns false, having passed no rows, if the caller should run the operator.
    ///
    /// # Errors
    /// As [`Self::stream`].
    fn groups(
        &self,
        _task: &OperatorTask<'_>,
        _sink: &mut dyn Sink,
        _profile: &mut Vec<StepProfile>,
    ) -> Result<bool> {
        Ok(false)
    }

    /// Runs a whole plan and passes its rows to a sink: columns in the plan's order, in batches of any size.
    ///
    /// # Errors
    /// `Unsupported`, before the first row, for a plan of which this executor can run only some steps or operators; by
    /// default for every plan. Otherwise errors of [`Self::stream`]; the sink may have received rows by then.
    fn whole(
        &self,
        _plan: &Plan,
        _snapshot: &dyn Graph,
        _options: &ExecOptions,
        _sink: &mut dyn Sink,
    ) -> Result<ExecutionOutcome> {
        Err(Error::Unsupported(format!(
            "whole plans on {}",
            self.name()
        )))
    }

    /// Runs a whole plan and returns the checksum of its rows.
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

/// The slots of the columns after steps over rows with these slots: those that are bound and either live after the last
/// step or read by its conditions, in the order in which they were bound. Takes time proportional to the steps times
/// their columns, so `check` is called at every step.
///
/// # Errors
/// Those of `check`.
pub fn columns_after(
    slots: &[Slot],
    steps: &[Step],
    check: impl Fn() -> Result<()>,
) -> Result<Vec<Slot>> {
    steps.iter().try_fold(slots.to_vec(), |before, step| {
        check()?;
        Ok(layout_of(&before, step))
    })
}
