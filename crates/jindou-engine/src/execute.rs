//! Execution of a plan: its operators are compiled to pipelines, which [`crate::worker`] runs one after the other.

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
use jindou_model::{
    CancelToken, Error, Holder, QueryTemp, Resource, Result, Scope, invariant, scope, sync,
};
use jindou_plan::{Exploration, Operator, Plan, Slot, Weight};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Depth of an operator tree from which on it runs on a thread of its own, with a stack that is large enough.
const PLAIN_DEPTH: usize = 100;
/// Bytes of stack for each level of a deep tree.
const STACK_A_LEVEL: usize = 8 << 10;

/// The executor that is to run a plan.
#[derive(Clone, Default)]
pub enum ExecutorChoice {
    /// The CPU.
    #[default]
    Here,
    /// Another executor, if it can run the plan and does not fail; otherwise the CPU.
    Rather(Arc<dyn Executor>),
    /// Another executor is required: if it fails, so does the query. The CPU runs only plans that the executor does not
    /// support at all.
    Demanded(Arc<dyn Executor>),
    /// The shards of the store run as much of the plan as they can. This CPU runs the rest, and requests data from
    /// them. If a shard fails, so does the query.
    Shards(Arc<dyn Executor>),
}

/// A plan with all that is needed to run it.
#[derive(Clone, Copy)]
pub struct Execution<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The snapshot that the plan was made for.
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
    /// Lines about the execution from its executor, for profiles; empty unless profiling.
    pub details: String,
    /// The reason why the CPU ran the plan although another executor was chosen; `None` if that one ran it.
    pub why_here: Option<String>,
    /// Work of each shard that produced rows, by shard number.
    pub shards: Vec<ShardWork>,
}

impl Execution<'_> {
    /// Runs the plan with one sink per worker, created by `sinks`. If the order of rows matters, one worker delivers
    /// all of them.
    ///
    /// # Errors
    /// As [`execute`]; [`Error::Gpu`], in one sentence, if another executor was required and failed.
    pub fn run<P: ParallelSink>(&self, sinks: &P) -> Result<ExecutionOutcome> {
        self.rows(sinks)
    }

    /// Runs the plan with one sink, which gets one batch at a time.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn stream(&self, sink: &mut dyn Sink) -> Result<ExecutionOutcome> {
        self.rows(&Streaming::new(sink, self.options))
    }

    /// Runs the plan and returns the checksum of its rows, whether another executor computed it, and the work of each
    /// shard.
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

    /// Runs the plan, with as much as possible of it at the shards.
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

/// Runs a plan with one sink per worker, created by `sinks`. If the order of rows matters, one worker delivers all of
/// them.
///
/// # Errors
/// `Cancelled`, `Timeout`, `Limit` (memory; the message names the operator), errors of the sink, `Internal` for a bug,
/// or a plan of another epoch or snapshot. Rows that were delivered before an error are not withdrawn.
pub fn execute<P: ParallelSink>(
    plan: &Plan,
    snapshot: &dyn Graph,
    options: &ExecOptions,
    terms: &QueryTerms,
    sinks: &P,
) -> Result<Profile> {
    drive(plan, snapshot, options, terms, sinks, None)
}

/// Runs a plan with one sink, which gets one batch at a time, from any worker.
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

/// Size in bytes of plans below which the memory of their pipelines need not be measured.
const SMALL_PLAN: u64 = 4 << 10;

/// Runs a plan; with `offload`, what it assigns to another executor runs there.
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
        temp: options.temp.as_ref(),
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
    profile.spilled = options.temp.as_ref().map_or(0, QueryTemp::written);
    Ok(profile)
}

/// Runs `work`, which walks a tree of this depth, on a new thread with a stack that is large enough. If this thread
/// holds a place in the pool, the new thread holds one instead.
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

/// A scope that measures the memory which operators allocate without charging it. `None` for a small exploration, which
/// allocates no such memory. Also `None` with another executor or other shards, which free memory that these threads
/// have allocated, or the other way round.
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

/// Runs `run` inside the query's scope, if there is one. Also fails if a function stopped working on a long text,
/// because of the query's token or memory limit.
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

/// The node of the exploration at the bottom of a tree whose operators have one input each; otherwise `None`.
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

/// The context for running any part of a plan.
#[derive(Clone, Copy)]
pub(crate) struct Exec<'a> {
    pub ctx: QueryContext<'a>,
    pub nodes: &'a Nodes,
    pub profile: &'a Mutex<Profile>,
    /// The outer row for which a dependent part runs; `None` for the rest of the plan.
    pub outer: Option<&'a OuterRow>,
    /// Another executor, with the parts of the plan that it runs.
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

    /// Runs an operator's pipeline into an end, on behalf of the operator with the number `for_node`.
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

    /// Runs an operator and buffers its rows, charged to `holder`. Returns them with their slots.
    pub fn held(
        &self,
        op: &'a Operator,
        node: usize,
        holder: Holder,
    ) -> Result<(RowBuffer, Vec<Slot>), Halt> {
        self.run_into(op, node, ToBuffer(holder), node)
    }

    /// Runs a pipeline and buffers its rows, charged to `holder`.
    pub fn held_of(&self, pipe: Pipe<'a>, holder: Holder) -> Result<RowBuffer, Halt> {
        Ok(self.finish(pipe, ToBuffer(holder), None)?.0)
    }

    /// Returns true if an operator has at least one row.
    pub fn any(&self, op: &'a Operator, node: usize) -> Result<bool, Halt> {
        Ok(self.run_into(op, node, ToAny, node)?.0)
    }

    fn profile(&self) -> std::sync::MutexGuard<'_, Profile> {
        sync::lock(self.profile)
    }

    /// Records in the profile that a node's tables hold this many bytes.
    pub fn holds(&self, node: usize, bytes: u64) {
        if bytes > 0
            && let Some(n) = self.profile().nodes.get_mut(node)
        {
            n.held = n.held.max(bytes);
        }
    }

    /// Records in the profile that this many threads took part.
    pub fn joined(&self, threads: usize) {
        let mut p = self.profile();
        p.threads = p.threads.max(threads);
    }

    /// Adds one worker's counts for a node to the profile.
    pub fn did(&self, node: usize, stats: &StageStats, steps: &[StepStats]) {
        let mut profile = self.profile();
        let Some(n) = profile.nodes.get_mut(node) else {
            return;
        };
        // If another executor ran the first steps of an exploration, these counts are those of the steps after them.
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

    /// Adds another executor's counts for the first steps of a node to the profile.
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

/// Appends a LIMIT or OFFSET at the end of the pipeline.
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
