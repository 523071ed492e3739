//! Plans of which another executor, such as a GPU or another server, runs some operators, or the first steps of
//! explorations. All threads pass its rows through the remaining steps and operators here while it produces more. Where
//! the CPU must be able to begin from the start if the executor fails, the rows are buffered until it has finished.

mod above;
mod fall_back;
mod stream;

pub(crate) use stream::{StreamWork, Streamed};

use crate::batch::{Batch, View};
use crate::compile::{Leaf, LeafSource, Pipe, StageInput};
use crate::execute::{Exec, ExecutionOutcome};
use crate::executor::{
    Executor, GroupedRows, Needs, OperatorTask, PulledRows, Repeats, RowBlock, ShardWork, Task,
    Top, columns_after,
};
use crate::explore::{Halt, QueryContext};
use crate::operators::StageStats;
use crate::options::{ExecOptions, Profile, StepProfile};
use crate::sink::{Sink, Streaming};
use crate::terms::QueryTerms;
use above::Above;
use jindou_graph::Graph;
use jindou_model::sync::lock;
use jindou_model::{Error, Holder, Result, invariant};
use jindou_plan::{Exploration, Operator, Plan, Slot};
use std::sync::{Arc, Mutex, PoisonError};

/// Executes a plan: `executor` executes the first steps of its explorations, as many as it can, and this CPU the rest.
///
/// # Errors
/// `Unsupported`, before the first row, if the executor runs no operator, and of no exploration at least its first two
/// steps (or its only one); otherwise as [`crate::execute`].
pub fn execute_on(
    plan: &Plan,
    snapshot: &dyn Graph,
    options: &ExecOptions,
    terms: &QueryTerms,
    executor: &dyn Executor,
    sink: &mut dyn Sink,
) -> Result<Profile> {
    let offload = Offload::for_plan(plan, snapshot, options, executor, false)?;
    let streaming = Streaming::new(sink, options);
    crate::execute::drive(plan, snapshot, options, terms, &streaming, Some(&offload))
}

/// Largest number of bytes of ids that are buffered. For a longer result decoding takes most of the time, and the CPU
/// does that in any case.
const MOST_HELD: u64 = 256 << 20;

/// Largest number of rows in one chunk of buffered rows.
const HELD_TOGETHER: usize = 512;

/// The share of a node of the plan that the other executor runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OffloadShare {
    /// The leading steps of its exploration, as many as given (possibly 0), and which of the resulting rows are needed.
    Steps(usize, Needs),
    /// The node with everything below it. At most this many of its rows are needed (`None`: all), or the first in some
    /// order.
    All(Option<u64>, Option<Top>),
}

/// Another executor, and the parts of the plan that it runs.
pub(crate) struct Offload<'a> {
    executor: &'a dyn Executor,
    options: &'a ExecOptions,
    /// The share of each node that the executor runs, by the node's number.
    shares: Vec<OffloadShare>,
    /// True if the executor's rows are buffered until it has finished.
    hold: bool,
    /// Set if the executor runs the whole plan: the outcome of that.
    whole: Option<Mutex<ExecutionOutcome>>,
    /// Nodes whose exploration the executor declined to start; one entry per attempt.
    declined: Mutex<Vec<usize>>,
    started: Mutex<Vec<PulledExploration>>,
}

/// Rows that are pulled, their slots, and the number of steps that they have passed.
pub(crate) type Pulled = (Arc<dyn PulledRows>, Vec<Slot>, usize);

/// An exploration of which the executor runs the first steps, and whose rows are pulled.
struct PulledExploration {
    node: usize,
    rows: Arc<dyn PulledRows>,
    /// Number of leading steps that the executor runs.
    first: usize,
    /// True if no steps are left to run here.
    all: bool,
}

impl<'a> Offload<'a> {
    /// An executor that is to run the whole plan. If it does not support that, it reports an error during execution.
    fn whole(options: &'a ExecOptions, executor: &'a dyn Executor, hold: bool) -> Self {
        Self {
            executor,
            options,
            shares: Vec::new(),
            hold,
            whole: Some(Mutex::default()),
            declined: Mutex::default(),
            started: Mutex::default(),
        }
    }

    pub fn for_plan(
        plan: &Plan,
        snapshot: &dyn Graph,
        options: &'a ExecOptions,
        executor: &'a dyn Executor,
        hold: bool,
    ) -> Result<Self> {
        let mut shares = Vec::new();
        // Operators to visit, with: whether they run for each row of other operators, which of their rows are needed,
        // and whether the executor runs them as part of an operator above.
        let mut open = vec![(&plan.root, false, Above::default(), false)];
        while let Some((op, nested, above, covered)) = open.pop() {
            let most = (shares.is_empty() && plan.is_ask()).then_some(1);
            let task = OperatorTask {
                op,
                most,
                top: above.needs.top,
                snapshot,
                options,
            };
            let all = !covered && !nested && executor.runs(&task)?;
            let share = match op {
                _ if all => OffloadShare::All(most, above.needs.top),
                Operator::Explore(e)
                    if !covered && e.empty.is_none() && (!nested || executor.runs_nested()) =>
                {
                    let task = Task {
                        snapshot,
                        steps: &e.steps,
                        options,
                    };
                    let n = executor.prefix(&task)?.min(e.steps.len());
                    // Running only the start there is not worth the transfer.
                    let n = if n < e.steps.len().min(2) { 0 } else { n };
                    let whole = n == e.steps.len();
                    let needs = if whole { above.needs } else { Needs::default() };
                    OffloadShare::Steps(n, needs)
                }
                _ => OffloadShare::Steps(0, Needs::default()),
            };
            shares.push(share);
            let (below, covered) = (above.below(op), covered || all);
            let from = open.len();
            op.each_input(&mut |role, i| {
                // An operator's rows are in the order of its first input, so a need for the first rows does not apply
                // to other inputs.
                let below = match open.len() == from {
                    true => below,
                    false => Above::from_repeats(below.needs.repeats),
                };
                open.push((i, nested || role.is_dependent(), below, covered));
            });
            open[from..].reverse();
        }
        if shares
            .iter()
            .all(|s| matches!(s, OffloadShare::Steps(0, _)))
        {
            return Err(Error::Unsupported(format!(
                "this plan on {}",
                executor.place()
            )));
        }
        Ok(Self {
            executor,
            options,
            shares,
            hold,
            whole: None,
            declined: Mutex::default(),
            started: Mutex::default(),
        })
    }

    /// The number of leading steps of a node's exploration that the executor runs, and which of the rows are needed.
    fn first(&self, node: usize) -> (usize, Needs) {
        match self.shares.get(node) {
            Some(OffloadShare::Steps(n, needs)) => (*n, *needs),
            _ => (0, Needs::default()),
        }
    }

    /// True if the executor runs the whole plan.
    pub fn is_whole(&self) -> bool {
        self.whole.is_some()
    }

    /// The pipeline of a plan that the executor runs as a whole.
    pub fn whole_pipe<'p>(&'p self, exec: &Exec<'p>, plan: &'p Plan) -> Result<Pipe<'p>, Halt>
    where
        'a: 'p,
    {
        let snapshot = exec.ctx.snapshot;
        let run = move |sink: &mut dyn Sink| {
            let ran = self.executor.whole(plan, snapshot, self.options, sink)?;
            if let Some(whole) = &self.whole {
                *lock(whole) = ran;
            }
            Ok(())
        };
        let source = self.source(exec, plan.output.len(), 0, Box::new(run))?;
        Ok(one_leaf(source, 0, plan.output.clone()))
    }

    /// The outcome of running the whole plan: the executor's, with the rows and the time as measured here.
    fn ran(self, here: Profile) -> ExecutionOutcome {
        let whole = self.whole.unwrap_or_default();
        let there = whole.into_inner().unwrap_or_else(PoisonError::into_inner);
        ExecutionOutcome {
            profile: Profile {
                rows: here.rows,
                elapsed: here.elapsed,
                threads: here.threads.max(there.profile.threads),
                ..there.profile
            },
            ..there
        }
    }

    /// The rows of `run`, which have `width` columns, as a leaf of a pipeline: streamed while the executor runs, or
    /// buffered first.
    fn source<'p>(
        &self,
        exec: &Exec<'p>,
        width: usize,
        node: usize,
        run: stream::Run<'p>,
    ) -> Result<LeafSource<'p>, Halt> {
        let run = Box::new(move |sink: &mut dyn Sink| run(&mut OfWidth { width, sink }));
        if !self.hold {
            return Ok(LeafSource::Streamed(Box::new(Streamed::new(run, None))));
        }
        let streamed = LeafSource::Streamed(Box::new(Streamed::new(run, Some(MOST_HELD))));
        let pipe = one_leaf(streamed, node, (0..width as Slot).collect());
        // A chunk is a morsel of the following pipeline, which may take long for each row.
        let mut exec = *exec;
        exec.ctx.batch_rows = exec.ctx.batch_rows.min(HELD_TOGETHER);
        Ok(LeafSource::RowBuffer(exec.held_of(pipe, Holder::Offload)?))
    }

    /// The rows of an operator that the executor runs with everything below it, and their slots; `None` if the operator
    /// runs here.
    pub fn operator<'p>(
        &'p self,
        exec: &Exec<'p>,
        op: &'p Operator,
        node: usize,
    ) -> Result<Option<(LeafSource<'p>, Vec<Slot>)>, Halt>
    where
        'a: 'p,
    {
        let Some(&OffloadShare::All(most, top)) = self.shares.get(node) else {
            return Ok(None);
        };
        if matches!(op, Operator::Count(_) | Operator::Group(_)) {
            return Ok(None);
        }
        let slots = op.layout(&[]);
        let whole = *exec;
        let run = move |sink: &mut dyn Sink| {
            let (task, mut steps) = (self.task(&whole, op, most, top), Vec::new());
            let mut counted = Counted { rows: 0, sink };
            let ran = self.executor.operator(&task, &mut counted, &mut steps);
            let rows = counted.rows;
            self.did(&whole, op, node, &steps, rows);
            ran
        };
        let source = self.source(exec, slots.len(), node, Box::new(run))?;
        Ok(Some((source, slots)))
    }

    /// The numbers of a COUNT that the executor runs with everything below it; `None` if the COUNT runs here.
    pub fn counts(
        &self,
        exec: &Exec<'_>,
        op: &Operator,
        node: usize,
    ) -> Result<Option<Vec<u64>>, Halt> {
        let Some(&OffloadShare::All(most, top)) = self.shares.get(node) else {
            return Ok(None);
        };
        let (task, mut steps) = (self.task(exec, op, most, top), Vec::new());
        let numbers = self.executor.counts(&task, &mut steps)?;
        self.did(exec, op, node, &steps, 1);
        Ok(Some(numbers))
    }

    /// Returns true if the executor runs the node with everything below it.
    pub fn runs_all(&self, node: usize) -> bool {
        matches!(self.shares.get(node), Some(OffloadShare::All(..)))
    }

    /// Passes the input rows of a GROUP BY or COUNT that the executor runs with everything below it to `add`, each row
    /// with the number of its duplicates; columns as in [`GroupedRows::slots`](crate::GroupedRows::slots). Returns
    /// false, having passed nothing, if the operator runs here.
    pub fn groups(
        &self,
        exec: &Exec<'_>,
        op: &Operator,
        node: usize,
        add: &mut (dyn FnMut(View<'_>, &[u32]) -> Result<()> + Send),
    ) -> Result<bool, Halt> {
        let Some(&OffloadShare::All(most, top)) = self.shares.get(node) else {
            return Ok(false);
        };
        let Some(rows) = GroupedRows::of(op) else {
            return Ok(false);
        };
        let width = rows.slots().len();
        let mut collector = GroupCollector {
            chunk: Batch::new(width + 1, exec.ctx.budget),
            ctx: &exec.ctx,
            add,
            rows: 0,
        };
        let (task, mut steps) = (self.task(exec, op, most, top), Vec::new());
        let ran = self.executor.groups(&task, &mut collector, &mut steps)?;
        if ran {
            self.did(exec, op, node, &steps, collector.rows);
        }
        Ok(ran)
    }

    fn task<'t>(
        &'t self,
        exec: &Exec<'t>,
        op: &'t Operator,
        most: Option<u64>,
        top: Option<Top>,
    ) -> OperatorTask<'t> {
        OperatorTask {
            op,
            most,
            top,
            snapshot: exec.ctx.snapshot,
            options: self.options,
        }
    }

    /// Adds the executor's counts to the profile: `rows` for the operator, `steps` for the exploration at its bottom.
    fn did(&self, exec: &Exec<'_>, op: &Operator, node: usize, steps: &[StepProfile], rows: u64) {
        let (mut below, mut bottom) = (op, node);
        while let Some(input) = below.inputs().first() {
            // Nodes are numbered in preorder, so the first input has the next number.
            (below, bottom) = (*input, bottom + 1);
        }
        let place = || self.executor.place();
        let stats = StageStats {
            rows_in: steps.first().map_or(0, |s| s.rows_in),
            rows_out: steps.last().map_or(0, |s| s.rows_out),
            time: steps.iter().map(|s| s.time).sum(),
        };
        exec.did_there(bottom, &stats, steps, place());
        if bottom != node {
            let stats = StageStats {
                rows_out: rows,
                ..StageStats::default()
            };
            exec.did_there(node, &stats, &[], place());
        }
    }

    /// Starts an exploration whose rows are pulled. Returns the rows, their slots, and the number of steps that they
    /// have passed; `None` if the executor does not support that, or declines, so that all steps run here.
    pub fn pull(
        &self,
        snapshot: &dyn Graph,
        e: &Exploration,
        node: usize,
    ) -> Result<Option<Pulled>> {
        let (_, mut needs) = self.first(node);
        // The caller has no count column, so each duplicate must be a row of its own.
        if needs.repeats == Repeats::Counted {
            needs.repeats = Repeats::Each;
        }
        self.begin(snapshot, e, node, needs)
    }

    /// As [`Self::pull`], for callers that accept rows with a count; also `None` if the operators above need no counts.
    pub fn pull_counted(
        &self,
        snapshot: &dyn Graph,
        e: &Exploration,
        node: usize,
    ) -> Result<Option<Pulled>> {
        let (_, needs) = self.first(node);
        match needs.repeats {
            Repeats::Counted => self.begin(snapshot, e, node, needs),
            _ => Ok(None),
        }
    }

    fn begin(
        &self,
        snapshot: &dyn Graph,
        e: &Exploration,
        node: usize,
        needs: Needs,
    ) -> Result<Option<Pulled>> {
        let (first, _) = self.first(node);
        if first == 0 || !self.executor.is_pulled() || lock(&self.declined).contains(&node) {
            return Ok(None);
        }
        let there = &e.steps[..first];
        let task = Task {
            snapshot,
            steps: there,
            options: self.options,
        };
        let Some(rows) = self.executor.pull(&task, needs)? else {
            lock(&self.declined).push(node);
            return Ok(None);
        };
        let rows: Arc<dyn PulledRows> = Arc::from(rows);
        lock(&self.started).push(PulledExploration {
            node,
            rows: Arc::clone(&rows),
            first,
            all: first == e.steps.len(),
        });
        let columns = columns_after(&[], there, || self.options.cancel.check())?;
        Ok(Some((rows, columns, first)))
    }

    /// Adds the executor's counts of all pulled rows to the profile.
    pub fn note(&self, exec: &Exec<'_>) {
        for s in &*lock(&self.started) {
            let mut steps = s.rows.steps();
            steps.resize(s.first, StepProfile::default());
            let stats = StageStats {
                rows_in: steps.first().map_or(0, |s| s.rows_in),
                rows_out: steps.last().filter(|_| s.all).map_or(0, |s| s.rows_out),
                time: steps.iter().map(|s| s.time).sum(),
            };
            exec.did_there(s.node, &stats, &steps, self.executor.place());
        }
    }

    /// Work of each shard for the pulled rows, by shard number; empty if shards were not involved.
    pub fn work(&self) -> Vec<ShardWork> {
        let mut all: Vec<ShardWork> = Vec::new();
        for started in &*lock(&self.started) {
            let work = started.rows.work();
            if all.len() < work.len() {
                all.resize(work.len(), ShardWork::default());
            }
            for (sum, w) in all.iter_mut().zip(work) {
                sum.rows += w.rows;
                sum.sent += w.sent;
                sum.time += w.time;
            }
        }
        all
    }

    /// Lines for the profile on how the pulled rows were produced.
    pub fn details(&self) -> String {
        let mut all: String = lock(&self.started)
            .iter()
            .map(|s| s.rows.details())
            .collect();
        for _ in &*lock(&self.declined) {
            all.push_str("run here: another shard declined it ");
            all.push_str("(it takes long, returns many rows, or no thread is free)\n");
        }
        all
    }

    /// The rows of an exploration's first steps, their slots, and the number of these steps; `None` if all steps run
    /// here, or rows are pulled.
    pub fn rows<'p>(
        &'p self,
        exec: &Exec<'p>,
        e: &'p Exploration,
        node: usize,
    ) -> Result<Option<(LeafSource<'p>, Vec<Slot>, usize)>, Halt>
    where
        'a: 'p,
    {
        let (first, _) = self.first(node);
        if first == 0 || self.executor.is_pulled() {
            return Ok(None);
        }
        let there = &e.steps[..first];
        let columns = columns_after(&[], there, || exec.ctx.check())?;
        let (whole, expected) = (*exec, columns.clone());
        let run = move |sink: &mut dyn Sink| {
            let task = Task {
                snapshot: whole.ctx.snapshot,
                steps: there,
                options: self.options,
            };
            let mut steps: Vec<StepProfile> = Vec::new();
            let mut counted = Counted { rows: 0, sink };
            let given = self.executor.stream(&task, &mut counted, &mut steps);
            steps.resize(first, StepProfile::default());
            let stats = StageStats {
                rows_in: steps.first().map_or(0, |s| s.rows_in),
                // If steps remain here, the node's rows are counted after the last of them instead.
                rows_out: if first == e.steps.len() {
                    counted.rows
                } else {
                    0
                },
                time: steps.iter().map(|s| s.time).sum(),
            };
            whole.did_there(node, &stats, &steps, self.executor.place());
            invariant!(given? == expected, "an executor gives the steps' columns");
            Ok(())
        };
        let source = self.source(exec, columns.len(), node, Box::new(run))?;
        Ok(Some((source, columns, first)))
    }
}

/// A pipeline that consists of one leaf.
fn one_leaf(source: LeafSource<'_>, node: usize, layout: Vec<Slot>) -> Pipe<'_> {
    let first = StageInput::END;
    Pipe {
        leaves: vec![Leaf {
            source,
            first,
            node,
        }],
        links: vec![],
        layout,
    }
}

/// Counts rows and passes them on.
struct Counted<'s> {
    rows: u64,
    sink: &'s mut dyn Sink,
}

impl Sink for Counted<'_> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        self.rows += rows as u64;
        self.sink.batch(columns, rows)
    }

    fn block(&mut self, rows: Box<dyn RowBlock>) -> Result<()> {
        self.rows += rows.rows() as u64;
        self.sink.block(rows)
    }
}

/// Passes rows on if they have the right number of columns; otherwise reports an internal error.
struct OfWidth<'s> {
    width: usize,
    sink: &'s mut dyn Sink,
}

impl Sink for OfWidth<'_> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        invariant!(
            columns.len() == self.width,
            "an executor returns the requested number of columns"
        );
        self.sink.batch(columns, rows)
    }

    fn block(&mut self, rows: Box<dyn RowBlock>) -> Result<()> {
        invariant!(
            rows.width() == self.width,
            "an executor returns the requested number of columns"
        );
        self.sink.block(rows)
    }
}

/// Passes an executor's counted rows on, in batches of at most `batch_rows` rows.
struct GroupCollector<'r, 'a> {
    chunk: Batch,
    ctx: &'r QueryContext<'a>,
    add: &'r mut (dyn FnMut(View<'_>, &[u32]) -> Result<()> + Send),
    rows: u64,
}

impl Sink for GroupCollector<'_, '_> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        let width = self.chunk.columns.len();
        invariant!(
            columns.len() == width,
            "an executor returns the requested number of columns"
        );
        self.rows += rows as u64;
        for from in (0..rows).step_by(self.ctx.batch_rows) {
            self.ctx.check()?;
            let n = self.ctx.batch_rows.min(rows - from);
            self.chunk.ensure(n)?;
            for (to, column) in self.chunk.columns.iter_mut().zip(columns) {
                to[..n].copy_from_slice(&column[from..from + n]);
            }
            if let Some((times, columns)) = self.chunk.columns.split_last() {
                (self.add)(View { columns, rows: n }, &times[..n])?;
            }
        }
        Ok(())
    }
}
