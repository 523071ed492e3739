//! Execution of a plan: its operators become pipelines, which [`crate::worker`] runs one after the other.

use crate::compile::{Pipe, PipelineBuilder, StageInput};
use crate::eval::EvalContext;
use crate::executor::{Executor, ShardWork};
use crate::explore::{Halt, QueryContext, StepStats, unhalted};
use crate::offload::Offload;
use crate::operators::{EndSpec, Link, OuterRow, SliceState, StageStats, ToAny, ToBuffer, ToSinks};
use crate::options::{ExecOptions, NodeProfile, Profile, Spawned, StepProfile, WorkerPool};
use crate::row_buffer::RowBuffer;
use crate::sink::{ChecksumSink, ParallelSink, Sink, SinkFactory, Streaming, Summed};
use crate::terms::QueryTerms;
use crate::tree::Nodes;
use crate::worker::{guarded, run_pipe};
use jindou_graph::Graph;
use jindou_model::scope::is_measured;
use jindou_model::{CancelToken, Error, Holder, Resource, Result, Scope, invariant, scope, sync};
use jindou_plan::{Exploration, Operator, Plan, Slot, Weight};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Depth above which a tree runs on a thread of its own with a stack that is large enough.
const PLAIN_DEPTH: usize = 100;
/// Stack for each level of a deep tree.
const STACK_A_LEVEL: usize = 8 << 10;

/// The executor that a plan is for.
#[derive(Clone, Default)]
pub enum ExecutorChoice {
    /// The CPU.
    #[default]
    Here,
    /// Another executor; the CPU if that one cannot run the plan, or fails.
    Rather(Arc<dyn Executor>),
    /// Another executor is required: if it fails, so does the query. The CPU is used only for plans that it cannot
    /// execute at all.
    Demanded(Arc<dyn Executor>),
    /// The shards of the store execute as much of the plan as they can, and this CPU the rest, requesting data from
    /// them. If they fail, so does the query.
    Shards(Arc<dyn Executor>),
}

/// A plan with everything needed to run it.
#[derive(Clone, Copy)]
pub struct Execution<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The state of the graph that it was made for.
    pub snapshot: &'a dyn Graph,
    /// Threads, deadline, memory.
    pub options: &'a ExecOptions,
    /// The query-local terms.
    pub terms: &'a QueryTerms,
    /// The executor to use.
    pub executor: &'a ExecutorChoice,
}

/// The outcome of a plan that ran.
#[derive(Clone, Debug, Default)]
pub struct ExecutionOutcome {
    /// Counts and times.
    pub profile: Profile,
    /// Lines about the execution that only its executor knows; empty unless profiling.
    pub details: String,
    /// Reason why the CPU ran the plan although another executor was chosen.
    pub why_here: Option<String>,
    /// Work of each shard for rows that shards made.
    pub shards: Vec<ShardWork>,
}

impl Execution<'_> {
    /// Executes the plan with one sink per worker, created by `sinks`. If the order of rows matters, they all come from
    /// one worker.
    ///
    /// # Errors
    /// As [`execute`]; [`Error::Gpu`], in one sentence, if another executor was required and failed.
    pub fn run<P: ParallelSink>(&self, sinks: &P) -> Result<ExecutionOutcome> {
        self.rows(sinks)
    }

    /// Runs the plan with one consumer, which gets one batch at a time.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn stream(&self, sink: &mut dyn Sink) -> Result<ExecutionOutcome> {
        self.rows(&Streaming::new(sink, self.options))
    }

    /// Runs the plan into a checksum; also returns whether another executor computed it, and the work of each shard.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn checksum(&self) -> Result<(ChecksumSink, bool, Vec<ShardWork>)> {
        if let ExecutorChoice::Rather(other) | ExecutorChoice::Demanded(other) = self.executor
            && let Ok(sum) = self.checksum_elsewhere(&**other)?
        {
            return Ok((sum, true, Vec::new()));
        }
        let sum = Summed::<ChecksumSink>::default();
        let ran = match self.executor {
            ExecutorChoice::Shards(shards) => self.rows_at_shards(&**shards, &sum)?,
            _ => self.rows_here(&sum)?,
        };
        Ok((sum.into_inner(), false, ran.shards))
    }

    fn rows(&self, sinks: &dyn SinkFactory) -> Result<ExecutionOutcome> {
        match self.executor {
            ExecutorChoice::Here => self.rows_here(sinks),
            ExecutorChoice::Shards(shards) => self.rows_at_shards(&**shards, sinks),
            ExecutorChoice::Rather(other) => self.rows_elsewhere(&**other, true, sinks),
            ExecutorChoice::Demanded(other) => self.rows_elsewhere(&**other, false, sinks),
        }
    }

    /// Runs the plan on this CPU.
    pub(crate) fn rows_here(&self, sinks: &dyn SinkFactory) -> Result<ExecutionOutcome> {
        let (plan, snapshot) = (self.plan, self.snapshot);
        Ok(ExecutionOutcome {
            profile: drive(plan, snapshot, self.options, self.terms, sinks, None)?,
            ..ExecutionOutcome::default()
        })
    }

    /// Runs the plan, as much as possible of it at the shards.
    fn rows_at_shards(
        &self,
        shards: &dyn Executor,
        sinks: &dyn SinkFactory,
    ) -> Result<ExecutionOutcome> {
        let (plan, snapshot) = (self.plan, self.snapshot);
        let offload = match Offload::for_plan(plan, snapshot, self.options, shards, false) {
            Ok(offload) => Some(offload),
            Err(Error::Unsupported(_)) => None,
            Err(e) => return Err(e),
        };
        let offload = offload.as_ref();
        let profile = drive(plan, snapshot, self.options, self.terms, sinks, offload)?;
        Ok(ExecutionOutcome {
            profile,
            details: offload.map_or(String::new(), Offload::details),
            why_here: None,
            shards: offload.map_or(Vec::new(), Offload::work),
        })
    }
}

/// Executes a plan with one sink per worker, created by `sinks`. If the order of rows matters, they all come from one
/// worker.
///
/// # Errors
/// `Cancelled`, `Timeout`, `Limit` (memory; the message names the operator), errors of the sink, `Internal` for a plan
/// of another epoch or snapshot or a bug. Rows delivered before an error are not taken back.
pub fn execute<P: ParallelSink>(
    plan: &Plan,
    snapshot: &dyn Graph,
    options: &ExecOptions,
    terms: &QueryTerms,
    sinks: &P,
) -> Result<Profile> {
    drive(plan, snapshot, options, terms, sinks, None)
}

/// Runs a plan with one consumer, which gets one batch at a time from whichever worker has one.
///
/// # Errors
/// As [`execute`].
pub fn execute_streaming(
    plan: &Plan,
    snapshot: &dyn Graph,
    options: &ExecOptions,
    terms: &QueryTerms,
    sink: &mut dyn Sink,
) -> Result<Profile> {
    drive(
        plan,
        snapshot,
        options,
        terms,
        &Streaming::new(sink, options),
        None,
    )
}

/// Largest measured plan, in bytes, whose pipelines take little memory.
const SMALL_PLAN: u64 = 4 << 10;

/// Runs a plan. Explorations that another executor begins run there.
pub(crate) fn drive(
    plan: &Plan,
    snapshot: &dyn Graph,
    options: &ExecOptions,
    terms: &QueryTerms,
    sinks: &dyn SinkFactory,
    offload: Option<&Offload<'_>>,
) -> Result<Profile> {
    let begin = Instant::now();
    if !plan.validity.holds(snapshot) {
        return guarded(|| {
            invariant::violated(format_args!("the plan was made for this snapshot"))
        });
    }
    options.cancel.check()?;
    if let Operator::Explore(Exploration { empty: Some(_), .. }) = &plan.root {
        sinks.worker().done()?;
        return Ok(Profile {
            nodes: vec![NodeProfile::default()],
            bottom: Some(0),
            elapsed: begin.elapsed(),
            threads: 1,
            ..Profile::default()
        });
    }
    let stop = AtomicBool::new(false);
    let scope = measured(plan, snapshot, options, offload);
    let ctx = QueryContext {
        eval: EvalContext {
            vocabulary: snapshot.vocabulary(),
            terms,
            cancel: &options.cancel,
            scope: scope.as_ref(),
            budget: &options.memory,
            stop: &stop,
        },
        snapshot,
        batch_rows: options.batch_rows.clamp(16, 1 << 16),
        first_batch: options.batch_rows.clamp(16, 1 << 16),
        profile: options.profile || options.live.is_some(),
        live: options.live.as_deref(),
        threads: options.threads.max(1),
        heavy: plan.weight == Weight::Heavy,
        service: options.service.as_deref(),
        pool: options.pool.as_deref().unwrap_or(&Spawned),
    };
    if let (Operator::Explore(e), 1, None, false) =
        (&plan.root, ctx.threads, offload, plan.is_ask())
    {
        if let Some(live) = ctx.live {
            live.begin(1);
        }
        let one = || guarded(|| crate::single_thread::run(plan, e, &ctx, sinks, begin));
        return within(&ctx, one);
    }
    let nodes = Nodes::from_root(&plan.root)?;
    if let Some(live) = ctx.live {
        live.begin(nodes.len());
    }
    let profile = Mutex::new(Profile {
        nodes: vec![NodeProfile::default(); nodes.len()],
        threads: 1,
        ..Profile::default()
    });
    let exec = Exec {
        ctx,
        nodes: &nodes,
        profile: &profile,
        outer: None,
        offload,
    };
    let all = || guarded(|| unhalted(exec.output(plan, sinks)));
    let all = || within(&ctx, all);
    if nodes.depth <= PLAIN_DEPTH {
        all()?;
    } else {
        on_deep_stack(nodes.depth, ctx.pool, &options.cancel, all)?;
    }
    if let Some(offload) = offload {
        offload.note(&exec);
    }
    let mut profile = profile.into_inner().unwrap_or_else(PoisonError::into_inner);
    profile.elapsed = begin.elapsed();
    profile.bottom = bottom(&plan.root);
    Ok(profile)
}

/// Runs the work of a tree of this depth on a thread whose stack is large enough. The place in which this thread
/// computes moves with the work.
fn on_deep_stack(
    depth: usize,
    pool: &dyn WorkerPool,
    cancel: &CancelToken,
    work: impl Fn() -> Result<()> + Sync,
) -> Result<()> {
    let inside = pool.is_inside();
    let work = || {
        if inside {
            pool.enter(cancel)?;
        }
        let done = work();
        pool.leave();
        done
    };
    let mut done = Ok(());
    pool.blocking(cancel, &mut || {
        done = std::thread::scope(|scope| {
            std::thread::Builder::new()
                .stack_size((8 << 20) + depth * STACK_A_LEVEL)
                .spawn_scoped(scope, work)
                .map_err(|e| {
                    Error::limit(
                        Resource::Threads,
                        format!("cannot start a thread for a deeply nested query: {e}"),
                    )
                })?
                .join()
                .unwrap_or_else(|panic| Err(invariant::error_of(&*panic)))
        });
    })?;
    done
}

/// Scope of an execution, which measures memory that its operators allocate without charging it. `None` for small
/// explorations, which allocate no such memory, and if memory is exchanged with other threads, that is, with an
/// executor or other shards.
fn measured(
    plan: &Plan,
    snapshot: &dyn Graph,
    options: &ExecOptions,
    offload: Option<&Offload<'_>>,
) -> Option<Scope> {
    let is_small = plan.bytes < SMALL_PLAN && matches!(plan.root, Operator::Explore(_));
    if is_small || offload.is_some() || snapshot.is_sharded() || !is_measured() {
        return None;
    }
    let (memory, cancel) = (&options.memory, &options.cancel);
    Some(Scope::beside_charges(Holder::Rest, memory, cancel))
}

/// Runs a closure for the execution: inside its scope, if it has one. Fails also if work on texts was given up in it.
pub(crate) fn within<T>(ctx: &EvalContext<'_>, run: impl FnOnce() -> Result<T>) -> Result<T> {
    let run = || {
        let done = run()?;
        scope::worked(0)?;
        Ok(done)
    };
    match ctx.scope {
        Some(scope) => scope.run(run),
        None => scope::timed(ctx.cancel, run),
    }
}

/// Node of the exploration at the bottom of a chain.
fn bottom(root: &Operator) -> Option<usize> {
    let (mut at, mut node) = (root, 0);
    loop {
        match at {
            Operator::Explore(_) => return Some(node),
            _ => match at.inputs()[..] {
                [input] => (at, node) = (input, node + 1),
                _ => return None,
            },
        }
    }
}

/// Context for running any part of a plan.
#[derive(Clone, Copy)]
pub(crate) struct Exec<'a> {
    pub ctx: QueryContext<'a>,
    pub nodes: &'a Nodes,
    pub profile: &'a Mutex<Profile>,
    /// The row for which a dependent part runs.
    pub outer: Option<&'a OuterRow>,
    /// Another executor that begins explorations.
    pub offload: Option<&'a Offload<'a>>,
}

impl<'a> Exec<'a> {
    /// Runs the whole plan.
    fn output(&self, plan: &'a Plan, sinks: &dyn SinkFactory) -> Result<(), Halt> {
        let mut pipe = match self.offload.filter(|o| o.is_whole()) {
            Some(offload) => offload.whole_pipe(self, plan)?,
            None => PipelineBuilder::new(self).pipe(&plan.root, 0)?,
        };
        if plan.is_ask() {
            add_slice(&mut pipe, SliceState::new(0, Some(1)));
        }
        let (rows, _) = self.finish(pipe, ToSinks(&plan.output, sinks), None)?;
        self.profile().rows = rows;
        Ok(())
    }

    /// Runs an operator into an end, on behalf of the operator `for_node`.
    pub fn run_into<E: EndSpec>(
        &self,
        op: &'a Operator,
        node: usize,
        end: E,
        for_node: usize,
    ) -> Result<(E::Done, Vec<Slot>), Halt> {
        let pipe = PipelineBuilder::new(self).pipe(op, node)?;
        self.finish(pipe, end, Some(for_node))
    }

    fn finish<E: EndSpec>(
        &self,
        pipe: Pipe<'a>,
        end: E,
        for_node: Option<usize>,
    ) -> Result<(E::Done, Vec<Slot>), Halt> {
        let end = run_pipe(self, &pipe, end)?;
        for link in &pipe.links {
            self.holds(link.node, link.spec.held());
        }
        if let Some(node) = for_node {
            self.holds(node, E::bytes(&end));
        }
        Ok((end, pipe.layout))
    }

    /// Rows of an operator, held in the name of `holder`, and their slots.
    pub fn held(
        &self,
        op: &'a Operator,
        node: usize,
        holder: Holder,
    ) -> Result<(RowBuffer, Vec<Slot>), Halt> {
        self.run_into(op, node, ToBuffer(holder), node)
    }

    /// Rows of a pipeline, held in the name of `holder`.
    pub fn held_of(&self, pipe: Pipe<'a>, holder: Holder) -> Result<RowBuffer, Halt> {
        Ok(self.finish(pipe, ToBuffer(holder), None)?.0)
    }

    /// Returns true if an operator has a row.
    pub fn any(&self, op: &'a Operator, node: usize) -> Result<bool, Halt> {
        Ok(self.run_into(op, node, ToAny, node)?.0)
    }

    fn profile(&self) -> std::sync::MutexGuard<'_, Profile> {
        sync::lock(self.profile)
    }

    /// Records bytes that a node's tables hold.
    pub fn holds(&self, node: usize, bytes: u64) {
        if bytes > 0
            && let Some(n) = self.profile().nodes.get_mut(node)
        {
            n.held = n.held.max(bytes);
        }
    }

    /// Records that this many threads took part.
    pub fn joined(&self, threads: usize) {
        let mut p = self.profile();
        p.threads = p.threads.max(threads);
    }

    /// Adds one worker's counts for a node.
    pub fn did(&self, node: usize, stats: &StageStats, steps: &[StepStats]) {
        let mut profile = self.profile();
        let Some(n) = profile.nodes.get_mut(node) else {
            return;
        };
        // For an exploration that another executor began, these are the steps after that.
        let there = n.there.as_ref().map_or(0, |t| t.1);
        if there == 0 {
            n.rows_in += stats.rows_in;
        }
        n.rows_out += stats.rows_out;
        n.time += stats.time;
        n.threads += usize::from(stats.rows_in > 0 || !steps.is_empty());
        if n.steps.len() < there + steps.len() {
            n.steps.resize(there + steps.len(), StepProfile::default());
        }
        for (sum, s) in n.steps.iter_mut().skip(there).zip(steps) {
            sum.rows_in += s.rows_in;
            sum.rows_out += s.rows_out;
            sum.time += s.time;
            sum.bytes += s.touched;
            sum.written += s.written;
        }
    }

    /// Adds another executor's counts for a node's first steps.
    pub fn did_there(&self, node: usize, stats: &StageStats, steps: &[StepProfile], place: String) {
        let mut profile = self.profile();
        let Some(n) = profile.nodes.get_mut(node) else {
            return;
        };
        n.rows_in += stats.rows_in;
        n.rows_out += stats.rows_out;
        n.time += stats.time;
        if n.steps.len() < steps.len() {
            n.steps.resize(steps.len(), StepProfile::default());
        }
        for (sum, s) in n.steps.iter_mut().zip(steps) {
            sum.rows_in += s.rows_in;
            sum.rows_out += s.rows_out;
            sum.time += s.time;
            sum.bytes += s.bytes;
            sum.written += s.written;
        }
        n.there = Some((place, steps.len()));
    }
}

/// Appends a slice at the end of the pipeline.
fn add_slice(pipe: &mut Pipe<'_>, state: SliceState) {
    let to = StageInput {
        stage: pipe.links.len(),
        input: 0,
    };
    for l in &mut pipe.leaves {
        if l.first == StageInput::END {
            l.first = to;
        }
    }
    for l in &mut pipe.links {
        if l.next == StageInput::END {
            l.next = to;
        }
    }
    pipe.links.push(Link {
        spec: Box::new(state),
        input: pipe.layout.clone(),
        next: StageInput::END,
        node: 0,
    });
}
