//! The interface behind which steps run: on this CPU, on a GPU, on other servers.
//!
//! *Given the first steps of an exploration, run them and stream batches of their rows.* The history table may be in
//! host, device or remote memory meanwhile.

use crate::execute::ExecutionOutcome;
use crate::options::{ExecOptions, StepProfile};
use crate::sink::{ChecksumSink, Sink};
use jindou_graph::Graph;
use jindou_model::sync;
use jindou_model::{Error, Result};
use jindou_plan::{AggregateFunction, Operator, Plan, Slot, Step, layout_of};
use std::sync::Mutex;

/// Steps to run, with their limits.
pub struct Task<'a> {
    /// The state of the graph.
    pub snapshot: &'a dyn Graph,
    /// The steps; the first is a `Start`.
    pub steps: &'a [Step],
    /// Threads, deadline, memory.
    pub options: &'a ExecOptions,
}

/// An operator to run with everything below it, with its limits.
pub struct OperatorTask<'a> {
    /// The operator. It does not depend on rows of other operators.
    pub op: &'a Operator,
    /// Largest number of its rows that are needed.
    pub most: Option<u64>,
    /// Set if only the first rows in some order are needed; other rows may be returned as well.
    pub top: Option<Top>,
    /// The state of the graph.
    pub snapshot: &'a dyn Graph,
    /// Threads, deadline, memory.
    pub options: &'a ExecOptions,
}

/// Treatment of duplicate rows from an executor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repeats {
    /// Every duplicate is delivered.
    #[default]
    Each,
    /// Duplicates may be removed.
    Once,
    /// Duplicates may be removed if an additional last column has their number.
    Counted,
}

/// The rows of an exploration that an ORDER BY with LIMIT above it may need.
///
/// Each row of the exploration becomes at least one of the sorted rows, with the same term in `slot`.
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

/// The rows of an exploration that are needed above it; other rows may be returned as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Treatment of duplicate rows.
    pub repeats: Repeats,
    /// The first rows in some order, if only these are needed.
    pub top: Option<Top>,
}

/// Result of polling an executor that produces rows while they are consumed.
#[derive(Debug)]
pub enum Poll {
    /// Some rows: their columns, and their number. Without columns only the number counts.
    Rows(Vec<Vec<u32>>, u64),
    /// No rows yet.
    Pending,
    /// No more rows.
    Done,
}

/// Rows in columns, in memory of the executor that made them, which has it back when this is dropped.
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
    /// The next available rows.
    ///
    /// # Errors
    /// Any failure that makes the rows incomplete.
    fn poll(&self) -> Result<Poll>;

    /// Waits a while for rows, their end or a failure; may return early.
    ///
    /// # Errors
    /// Those of the task's token, and the loss of the producer.
    fn wait(&self) -> Result<()>;

    /// Signals that no more rows are needed: production stops, and rows already produced are not delivered.
    fn end(&self) {}

    /// True if the last column has the number of rows that each row stands for. Rows without columns have no such
    /// column.
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
    /// Rows that entered its steps, summed over the steps; for the first step, values that were read.
    pub rows: u64,
    /// Rows that it sent to other shards or to the query's coordinator.
    pub sent: u64,
    /// Time in which its threads computed, including waits for requested lists.
    pub time: std::time::Duration,
}

/// Rows that are already complete.
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

/// The rows that the aggregates of a GROUP BY read: their groups and results depend on no more than how often each occurs.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupedRows<'a> {
    /// Input of the operator.
    pub input: &'a Operator,
    /// Slots whose ids matter, without duplicates.
    pub ids: Vec<Slot>,
    /// Slots of `ids` of which, among rows with equal ids in all others, only a smallest and a largest value matter;
    /// other values may be replaced by one of these.
    pub extremes: Vec<Slot>,
    /// Slots for which only bound or unbound matters; any id may represent a bound one.
    pub tested: Vec<Slot>,
}

impl<'a> GroupedRows<'a> {
    /// The rows that a COUNT or GROUP BY reads; `None` for other operators, and for aggregates that use each row.
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

    /// All slots: those whose ids matter first.
    #[must_use]
    pub fn slots(&self) -> Vec<Slot> {
        self.ids.iter().chain(&self.tested).copied().collect()
    }
}

/// Executes exploration steps. There is one implementation for each kind of place that rows can be in.
pub trait Executor: Send + Sync {
    /// Name for EXPLAIN and logs.
    fn name(&self) -> &'static str;

    /// Where its steps run, for profiles: the name of a device or a server.
    fn place(&self) -> String {
        self.name().into()
    }

    /// Number of the task's steps, from its start on, that this executor can execute; the caller has the others
    /// executed elsewhere. By default all steps.
    ///
    /// # Errors
    /// If that cannot be determined, such as `Internal` from a broken device.
    fn prefix(&self, task: &Task<'_>) -> Result<usize> {
        Ok(task.steps.len())
    }

    /// True if it is worth using this executor for explorations inside parts of a plan that are executed for each row,
    /// or batch of rows, of other parts.
    fn runs_nested(&self) -> bool {
        true
    }

    /// Starts the task's steps, as many as [`Self::prefix`] returned, for an executor whose rows are produced while
    /// they are consumed. `None` if it is not such an executor, or the steps should be executed by the caller.
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

    /// Executes the steps and passes the rows to a sink, batch by batch, with the columns of [`columns_after`], which
    /// are returned. A batch may be much larger than the task's `batch_rows`. Rows that stay valid are better passed as
    /// [blocks](Sink::block), which several threads can process. Appends the counts of each step to `profile`, if the
    /// executor has them.
    ///
    /// # Errors
    /// `Cancelled`, `Timeout`, `Limit`, and the sink's.
    fn stream(
        &self,
        task: &Task<'_>,
        sink: &mut dyn Sink,
        profile: &mut Vec<StepProfile>,
    ) -> Result<Vec<Slot>>;

    /// True if this executor executes the operator with everything below it, by [`Self::groups`] or [`Self::counts`] if
    /// it is a GROUP BY or a COUNT, otherwise by [`Self::operator`]. Then fewer rows are returned than the exploration
    /// below produces. By default no operator.
    ///
    /// # Errors
    /// As [`Self::prefix`].
    fn runs(&self, _task: &OperatorTask<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Executes an operator that it [`runs`](Self::runs) and passes the rows to a sink, with columns as in
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

    /// The numbers of a COUNT without groups that it [`runs`](Self::runs), one per count. `profile` as in
    /// [`Self::operator`].
    ///
    /// # Errors
    /// As [`Self::stream`].
    fn counts(&self, task: &OperatorTask<'_>, _profile: &mut Vec<StepProfile>) -> Result<Vec<u64>> {
        let name = task.op.name();
        Err(Error::Unsupported(format!("{name} on {}", self.name())))
    }

    /// Executes the input of a GROUP BY or COUNT that it [`runs`](Self::runs), and returns equal rows once: columns as
    /// in [`GroupedRows::slots`], then the number of rows that each stands for, which is not 0. The same row may be
    /// returned several times. Returns false, without any row, if the caller should execute the operator.
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

    /// Executes a whole plan and passes its rows to a sink: columns in the plan's order, in batches of any size.
    ///
    /// # Errors
    /// `Unsupported`, before the first row, for a plan of which this executor can execute only the steps; by default
    /// for every plan. Otherwise errors of [`Self::stream`]; the sink may have received rows by then.
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

/// Columns after steps over rows with these slots: slots that are bound, and either live after the last step or read by
/// its conditions, in the order in which they were bound. Takes time proportional to the steps times their columns, so
/// `check` is called at every step.
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
