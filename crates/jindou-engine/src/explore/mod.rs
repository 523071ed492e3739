//! Exploration: steps over batches of the history table, pushed through all steps one batch at a time.
//!
//! ```text
//! source ─► [filters] ─► step 1 ─► [filters] ─► step 2 … ─► consumer
//! morsel                 │ output not full? take the next input batch first
//! └ full: push it on, then continue where it stopped
//! ```
//!
//! A step writes new ids, and for each the number of the input row that it extends. The columns that are still needed
//! are then gathered by this number, so rows contain only what later steps read. If no columns are needed, a batch is
//! only a number of rows.

mod any;
mod check;
mod expand;
pub(crate) mod lists;
mod pipeline;
mod scan;
mod source;
mod step;
mod views;

pub(crate) use pipeline::Pipeline;
pub(crate) use source::StartReader;
pub(crate) use step::StepStats;
pub(crate) use views::RowPredicates;

use crate::batch::{Batch, View};
use crate::eval::EvalContext;
use crate::live::LiveProfile;
use crate::options::{ServiceCaller, WorkerPool};
use jindou_graph::Graph;
use jindou_model::{Error, Invariant, QueryTemp, Result};
use jindou_plan::{Operand, Slot};
use std::ops::Deref;

/// Reason why a pipeline ended before its input did.
pub(crate) enum Halt {
    /// No more rows are needed. Returned by a slice or a sink that has enough rows; where the worker began its morsel,
    /// it becomes success.
    Stop,
    /// An error occurred.
    Failed(Error),
}

/// The result of a run that may have ended early because enough rows were found.
pub(crate) fn unhalted(flow: Flow) -> Result<()> {
    match flow {
        Ok(()) | Err(Halt::Stop) => Ok(()),
        Err(Halt::Failed(e)) => Err(e),
    }
}

impl From<Error> for Halt {
    fn from(e: Error) -> Self {
        Self::Failed(e)
    }
}

/// Result of passing rows on. `Err(Halt::Stop)` is not a failure.
pub(crate) type Flow = Result<(), Halt>;

/// Receives the batches at the end of a pipeline.
pub(crate) trait Consumer {
    /// Receives rows, which are overwritten after the call.
    fn batch(&mut self, rows: View<'_>) -> Flow;
}

/// Data that all parts of a running query share: its [`EvalContext`], whose fields can also be read directly (`Deref`),
/// the graph, sizes, and threads.
#[derive(Clone, Copy)]
pub(crate) struct QueryContext<'r> {
    pub eval: EvalContext<'r>,
    pub snapshot: &'r dyn Graph,
    pub batch_rows: usize,
    /// Rows of an exploration's first batches, which then grow up to `batch_rows`. Smaller where few rows may be
    /// enough.
    pub first_batch: usize,
    pub profile: bool,
    /// Counts that are updated while the query runs, for clients that watch it; then `profile` is set as well.
    pub live: Option<&'r LiveProfile>,
    /// Largest number of threads.
    pub threads: usize,
    /// True if the plan is expected to be heavy: it then starts with more than one thread.
    pub heavy: bool,
    /// Sends parts of the query to other SPARQL endpoints, for SERVICE.
    pub service: Option<&'r dyn ServiceCaller>,
    /// Pool of threads that may help.
    pub pool: &'r dyn WorkerPool,
    /// Temporary files for operators that need more memory than the budget has.
    pub temp: Option<&'r QueryTemp>,
}

impl<'r> Deref for QueryContext<'r> {
    type Target = EvalContext<'r>;

    fn deref(&self) -> &EvalContext<'r> {
        &self.eval
    }
}

/// Input and output columns of a step, used while the pipeline is built.
pub(crate) struct StepLayout<'a, 'p> {
    pub snapshot: &'a dyn Graph,
    /// Slots of the input's columns.
    pub input: &'p [Slot],
    /// Slots of the output's columns.
    pub output: &'p [Slot],
}

impl StepLayout<'_, '_> {
    /// Input column of a slot, which must be bound.
    #[track_caller]
    pub fn column(&self, slot: Slot) -> usize {
        let at = self.input.iter().position(|&s| s == slot);
        at.invariant("a step reads slots that are still columns")
    }

    /// Output column of a slot; `None` if no later step reads it.
    pub fn output(&self, slot: Slot) -> Option<usize> {
        self.output.iter().position(|&s| s == slot)
    }

    /// Pairs of positions (input, output) of the columns that the step passes on. O(columns), since layouts keep their
    /// order.
    pub fn carry(&self) -> Vec<(usize, usize)> {
        let mut carry = Vec::with_capacity(self.output.len());
        let mut from = 0;
        for (o, slot) in self.output.iter().enumerate() {
            let rest = &self.input[from..];
            let found = match rest.iter().position(|s| s == slot) {
                Some(at) => Some(from + at),
                None => self.input.iter().take(from).position(|s| s == slot),
            };
            if let Some(i) = found {
                carry.push((i, o));
                from = from.max(i + 1);
            }
        }
        carry
    }

    pub fn anchor(&self, operand: Operand) -> Anchor {
        match operand {
            Operand::Slot(s) => Anchor::Column(self.column(s)),
            Operand::Const(v) => Anchor::Const(v),
        }
    }
}

/// A known end of an edge: an input column or a constant.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Column(usize),
    Const(u32),
}

impl Anchor {
    #[inline]
    pub fn id_at(self, input: View<'_>, row: usize) -> u32 {
        match self {
            Self::Const(v) => v,
            Self::Column(c) => input.column(c)[row],
        }
    }
}

/// Output of a step while it is written: new columns, and for each row the number of the input row that it extends.
pub(crate) struct Emit<'e> {
    batch: &'e mut Batch,
    /// For each output row, the number of its input row; its length is the batch's capacity.
    index: &'e mut [u32],
    /// Written in place of columns that nothing reads; grown when it is first needed.
    spare: &'e mut Vec<u32>,
}

impl Emit<'_> {
    /// The column for new ids (a spare one for `None`), the input row numbers, and the number of rows written so far.
    #[inline]
    pub fn columns(&mut self, to: Option<usize>) -> (&mut [u32], &mut [u32], &mut usize) {
        let room = self.index.len();
        let column = match to.and_then(|t| self.batch.columns.get_mut(t)) {
            Some(c) => &mut c[..room],
            None => {
                if self.spare.len() < room {
                    self.spare.resize(room, 0);
                }
                &mut self.spare[..room]
            }
        };
        (column, self.index, &mut self.batch.rows)
    }

    #[inline]
    pub fn is_full(&self) -> bool {
        self.batch.rows >= self.index.len()
    }

    /// Appends one row; the output must not be full.
    #[inline]
    pub fn row(&mut self, input_row: usize, ids: &[(Option<usize>, u32)]) {
        let w = self.batch.rows;
        if let Some(i) = self.index.get_mut(w) {
            *i = input_row as u32;
            for &(to, v) in ids {
                if let Some(c) = to.and_then(|t| self.batch.columns.get_mut(t)) {
                    c[w] = v;
                }
            }
            self.batch.rows = w + 1;
        }
    }

    /// Appends a row for each id of `list`, as far as they fit into the batch: `to` gets the ids, each of `constants`
    /// is repeated, and `graphs` has the graph of each id. Returns the number of ids that fitted.
    pub fn list(
        &mut self,
        input_row: usize,
        to: Option<usize>,
        list: &[u32],
        constants: &[(Option<usize>, u32)],
        graphs: Option<(Option<usize>, &[u32])>,
    ) -> usize {
        let w = self.batch.rows;
        let n = list.len().min(self.index.len() - w);
        if n == 0 {
            return 0;
        }
        self.index[w..w + n].fill(input_row as u32);
        let columns = &mut self.batch.columns;
        if let Some(c) = to.and_then(|t| columns.get_mut(t)) {
            c[w..w + n].copy_from_slice(&list[..n]);
        }
        for &(to, v) in constants {
            if let Some(c) = to.and_then(|t| columns.get_mut(t)) {
                c[w..w + n].fill(v);
            }
        }
        if let Some((to, graphs)) = graphs
            && let Some(c) = to.and_then(|t| columns.get_mut(t))
        {
            for (o, &g) in c[w..w + n].iter_mut().zip(graphs) {
                *o = g;
            }
        }
        self.batch.rows = w + n;
        n
    }
}
