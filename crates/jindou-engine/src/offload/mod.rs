//! Explorations whose first steps another executor runs: a GPU, another server. Its rows are held here and go on
//! through the other steps and the operators.

mod fall_back;
mod held;

pub use fall_back::{Choice, Execution, Ran};

use crate::batch::{Batch, View};
use crate::execute::Exec;
use crate::executor::{Executor, Task, columns_after};
use crate::explore::{Halt, Run};
use crate::operators::StageStats;
use crate::options::{ExecOptions, Profile, StepProfile};
use crate::row_buffer::RowBuffer;
use crate::sink::{Sink, Streaming};
use crate::terms::QueryTerms;
use jindou_model::{Error, Holder, Result};
use jindou_plan::{Exploration, Operator, Plan, Slot};
use jindou_store::Graph;

/// Runs a plan of whose explorations `executor` runs the first steps, as many as it can, and this CPU the rest.
///
/// # Errors
/// `Unsupported`, before the first row, where the executor runs less than two steps of every longer exploration; else as
/// [`crate::execute`].
pub fn execute_on(
    plan: &Plan,
    snapshot: &dyn Graph,
    options: &ExecOptions,
    terms: &QueryTerms,
    executor: &dyn Executor,
    sink: &mut dyn Sink,
) -> Result<Profile> {
    let offload = Offload::of(plan, snapshot, options, executor)?;
    let streaming = Streaming::new(sink, options);
    crate::execute::drive(plan, snapshot, options, terms, &streaming, Some(&offload))
}

/// Another executor, and what it runs.
pub(crate) struct Offload<'a> {
    executor: &'a dyn Executor,
    options: &'a ExecOptions,
    /// By node of the plan: how many steps of its exploration, from the start on.
    first: Vec<usize>,
}

impl<'a> Offload<'a> {
    fn of(
        plan: &Plan,
        snapshot: &dyn Graph,
        options: &'a ExecOptions,
        executor: &'a dyn Executor,
    ) -> Result<Self> {
        let mut first = Vec::new();
        let mut open = vec![&plan.root];
        while let Some(op) = open.pop() {
            first.push(match op {
                Operator::Explore(e) if e.empty.is_none() => {
                    let task = Task {
                        snapshot,
                        steps: &e.steps,
                        options,
                    };
                    let n = executor.prefix(&task)?.min(e.steps.len());
                    // A start alone is not worth the way.
                    if n < e.steps.len().min(2) { 0 } else { n }
                }
                _ => 0,
            });
            open.extend(op.inputs().into_iter().rev());
        }
        if first.iter().all(|n| *n == 0) {
            return Err(Error::Unsupported(format!(
                "this plan on {}",
                executor.place()
            )));
        }
        Ok(Self {
            executor,
            options,
            first,
        })
    }

    /// The rows of an exploration's first steps, their slots, and how many steps that were; `None` if all are run here.
    pub fn rows(
        &self,
        exec: &Exec<'_>,
        e: &Exploration,
        node: usize,
    ) -> Result<Option<(RowBuffer, Vec<Slot>, usize)>, Halt> {
        let first = self.first.get(node).copied().unwrap_or(0);
        if first == 0 {
            return Ok(None);
        }
        let there = e.steps.get(..first).unwrap_or(&[]);
        let columns = columns_after(&[], there);
        let mut keep = Keep {
            held: RowBuffer::new(columns.len(), &exec.run, Holder::Offload),
            chunk: Batch::new(columns.len(), exec.run.budget),
            run: &exec.run,
        };
        let task = Task {
            snapshot: exec.run.snapshot,
            steps: there,
            options: self.options,
        };
        let mut steps: Vec<StepProfile> = Vec::new();
        let given = self
            .executor
            .stream_profiled(&task, None, &mut keep, &mut steps)?;
        if given != columns {
            return Err(
                Error::Internal("an executor gave other columns than asked for".into()).into(),
            );
        }
        steps.resize(first, StepProfile::default());
        let stats = StageStats {
            rows_in: steps.first().map_or(0, |s| s.rows_in),
            // With steps left, what comes out of the last of them counts.
            rows_out: if first == e.steps.len() {
                keep.held.rows()
            } else {
                0
            },
            time: steps.iter().map(|s| s.time).sum(),
        };
        exec.did_there(node, &stats, &steps, self.executor.place());
        Ok(Some((keep.held, columns, first)))
    }
}

/// Keeps an executor's rows, whose batches may be much larger than ours.
struct Keep<'r, 'a> {
    held: RowBuffer,
    chunk: Batch,
    run: &'r Run<'a>,
}

impl Sink for Keep<'_, '_> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        if columns.is_empty() {
            return self.held.push(View { columns: &[], rows });
        }
        for from in (0..rows).step_by(self.run.batch_rows) {
            self.run.check()?;
            let n = self.run.batch_rows.min(rows - from);
            self.chunk.ensure(n)?;
            for (to, column) in self.chunk.columns.iter_mut().zip(columns) {
                let part = column.get(from..from + n).unwrap_or(&[]);
                to[..part.len()].copy_from_slice(part);
            }
            self.chunk.rows = n;
            self.held.push(self.chunk.view())?;
        }
        Ok(())
    }
}
