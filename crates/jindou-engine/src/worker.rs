//! Execution of one pipeline: cuts its leaves into morsels, distributes them to workers, and combines their results.

use crate::batch::{Batch, View};
use crate::compile::{Leaf, LeafSource, Pipe, StageInput};
use crate::eval::EvalContext;
use crate::execute::{Exec, within};
use crate::executor::{Poll, PulledRows};
use crate::explore::{
    Consumer, Flow, Halt, Pipeline, QueryContext, StartReader as Start, StepStats,
};
use crate::offload::{StreamWork, Streamed};
use crate::operators::{CountedStage, EndSpec, PipelineEnd, Sorter, StageStats, finish, push};
use crate::options::HELPERS_STACK;
use crate::row_buffer::RowBuffer;
use jindou_model::sync::lock;
use jindou_model::{Error, Result};
use jindou_plan::Exploration;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Mean number of morsels per thread: enough that the threads finish together.
const MORSELS_A_THREAD: u64 = 24;
/// Smallest and largest number of start values in a morsel.
const MORSEL: Range<u64> = 16..16_384;
/// Time after which a plan that was expected to be light gets its other threads: starting them costs about a tenth of
/// it.
const PATIENCE: Duration = Duration::from_micros(300);
/// First batch of a pipeline that ends once it has enough rows: small, so that the first row costs little; producing
/// all rows hardly costs more.
const FIRST_BATCH: usize = 64;
/// Number of rows that a short start is expanded to before its steps are shared among threads.
const SHARE_FROM: usize = 512;

/// Deepest tree whose pipelines are shared among threads: helpers have stacks of the same size for any query, which
/// hold 16 KiB per level of this depth. The thread of a deeper tree gets a stack made for it.
const SHARED_DEPTH: usize = HELPERS_STACK / (16 << 10);

/// Cells of the largest batch: a batch of rows with more than 32 columns has fewer rows, but at least [`LEAST_ROWS`].
const BATCH_CELLS: usize = 1 << 17;
const LEAST_ROWS: usize = 16;

// A panic below becomes an error: neither a bug nor a damaged store may bring the process down.
pub(crate) use jindou_model::invariant::guarded;

/// Work that workers take morsels from.
enum MorselSource<'p> {
    /// The start's values.
    Start(Start<'p>),
    /// Rows after the step with this number.
    After(Batch, usize),
    /// Predicates, for a scan of everything.
    Scan(Start<'p>),
    /// Chunks; the first morsel has the rows without columns as well.
    RowBuffer(&'p RowBuffer),
    /// Rows that another executor makes meanwhile.
    Pulled(&'p dyn PulledRows),
    /// Rows that another executor makes on the main worker's thread, and the blocks that it may be ahead of the others.
    Streamed(&'p Streamed<'p>, usize),
    /// Rows of long columns.
    Whole(&'p Batch),
    Sorted(&'p Mutex<Sorter>),
}

/// A leaf while it is being run.
struct LeafJob<'p> {
    work: MorselSource<'p>,
    total: u64,
    morsel: u64,
    next: AtomicU64,
    /// No more of its rows are needed.
    done: AtomicBool,
}

/// State that all workers of a pipeline share.
struct PipelineState<'d, 'p, 'a, 's> {
    pipe: &'p Pipe<'a>,
    end: EndSpec<'a, 's>,
    ctx: &'d QueryContext<'p>,
    jobs: Vec<LeafJob<'p>>,
    /// No more rows are needed: unfinished work is not missing.
    enough: AtomicBool,
    outcome: Mutex<Option<Error>>,
}

/// Final state and counts of a worker.
struct WorkerResult<'a, 's> {
    end: PipelineEnd<'a, 's>,
    explored: Vec<(usize, Vec<StepStats>)>,
    stages: Vec<(usize, StageStats, Vec<StepStats>)>,
}

/// Runs a pipeline to its end.
pub(crate) fn run_pipe<'a, 's>(
    exec: &Exec<'a>,
    pipe: &Pipe<'a>,
    end: EndSpec<'a, 's>,
) -> Result<PipelineEnd<'a, 's>, Halt> {
    let stop = AtomicBool::new(false);
    let ends_early = matches!(end, EndSpec::Any)
        || (0..pipe.leaves.len()).all(|l| pipe.slices(l).next().is_some());
    // Each of a pipeline's stages holds a batch.
    let batch_rows = (BATCH_CELLS / pipe.widest().max(1)).max(LEAST_ROWS);
    let batch_rows = batch_rows.min(exec.ctx.batch_rows);
    let ctx = QueryContext {
        eval: EvalContext {
            stop: &stop,
            ..exec.ctx.eval
        },
        batch_rows,
        first_batch: if ends_early {
            FIRST_BATCH.min(batch_rows)
        } else {
            batch_rows
        },
        ..exec.ctx
    };
    let alone = pipe.is_ordered() || exec.nodes.depth > SHARED_DEPTH;
    let threads = if alone { 1 } else { ctx.threads };
    let heavy = ctx.heavy && !ends_early && threads > 1;
    let mut first: Option<(usize, Pipeline<'_>)> = None;
    let mut jobs = Vec::with_capacity(pipe.leaves.len());
    for (at, leaf) in pipe.leaves.iter().enumerate() {
        let (work, total, pipeline) = job(leaf, &ctx, heavy, threads)?;
        let morsel = match &work {
            MorselSource::Scan(_)
            | MorselSource::RowBuffer(_)
            | MorselSource::Pulled(_)
            | MorselSource::Streamed(..) => 1,
            MorselSource::Sorted(_) => total.max(1),
            _ if threads == 1 => total.max(1),
            _ => (total / (threads as u64 * MORSELS_A_THREAD)).clamp(MORSEL.start, MORSEL.end),
        };
        jobs.push(LeafJob {
            work,
            total,
            morsel,
            next: AtomicU64::new(0),
            done: AtomicBool::new(false),
        });
        if let (None, Some(p)) = (&first, pipeline) {
            first = Some((at, p));
        }
    }
    let shared = PipelineState {
        pipe,
        end,
        ctx: &ctx,
        jobs,
        enough: AtomicBool::new(false),
        outcome: Mutex::new(None),
    };
    let done = run_workers(&shared, first, threads, heavy)?;
    exec.joined(done.len());
    let mut whole: Option<PipelineEnd<'a, 's>> = None;
    for d in done {
        for (leaf, steps) in &d.explored {
            let node = shared.pipe.leaves[*leaf].node;
            let ends = StageStats {
                rows_in: steps.first().map_or(0, |s| s.rows_in),
                rows_out: steps.last().map_or(0, |s| s.rows_out),
                time: steps.iter().map(|s| s.time).sum(),
            };
            exec.did(node, &ends, steps);
        }
        for (node, stats, steps) in &d.stages {
            exec.did(*node, stats, steps);
        }
        match &mut whole {
            None => whole = Some(d.end),
            Some(w) => w.merge(&exec.ctx, d.end)?,
        }
    }
    Ok(match whole {
        Some(w) => w,
        None => PipelineEnd::new(end, &pipe.layout, &exec.ctx),
    })
}

/// The work of a leaf that morsels are taken from, and its size. Also returns the exploration's pipeline, which is made
/// to find out.
fn job<'p, 'a>(
    leaf: &'p Leaf<'a>,
    ctx: &QueryContext<'p>,
    heavy: bool,
    threads: usize,
) -> Result<(MorselSource<'p>, u64, Option<Pipeline<'p>>), Halt> {
    Ok(match &leaf.source {
        LeafSource::Explore(e) => {
            let mut pipeline = Pipeline::new(e, ctx)?;
            pipeline.watch(ctx, leaf.node);
            let (work, total) = cut(e, &mut pipeline, ctx, heavy)?;
            (work, total, Some(pipeline))
        }
        LeafSource::RowBuffer(h) => {
            let total = h.chunks().len() as u64 + u64::from(h.bare() > 0);
            (MorselSource::RowBuffer(h), total, None)
        }
        // Their number is not known before the last one came.
        LeafSource::Pulled(rows) => (MorselSource::Pulled(&**rows), u64::MAX, None),
        LeafSource::Streamed(rows) => (MorselSource::Streamed(rows, threads - 1), u64::MAX, None),
        LeafSource::Whole(b) => (MorselSource::Whole(b), b.rows as u64, None),
        LeafSource::Sorted(s) => (MorselSource::Sorted(s), 1, None),
        LeafSource::Outer(_) => {
            return Err(Error::Internal("outer rows outside of an apply".into()).into());
        }
    })
}

/// Collects the rows that a short start has grown into, before they are shared.
struct CollectRows {
    rows: Batch,
    bare: usize,
}

impl Consumer for CollectRows {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        if rows.columns.is_empty() {
            self.bare += rows.rows;
            return Ok(());
        }
        Ok(self.rows.append(rows)?)
    }
}

/// The work of an exploration that morsels are taken from, and its size. If the plan is heavy and its start short,
/// steps are run until there are rows to share.
fn cut<'p>(
    exploration: &'p Exploration,
    pipeline: &mut Pipeline<'p>,
    ctx: &QueryContext<'p>,
    heavy: bool,
) -> Result<(MorselSource<'p>, u64), Halt> {
    let source = Pipeline::source(exploration, ctx)?;
    let len = source.len();
    if heavy && source.is_unit() && pipeline.is_scan() {
        return Ok((
            MorselSource::Scan(source),
            u64::from(ctx.snapshot.predicate_count()),
        ));
    }
    if !heavy || len >= SHARE_FROM as u64 || pipeline.steps() == 0 {
        return Ok((MorselSource::Start(source), len));
    }
    let collect = |at: usize, pipeline: &Pipeline<'_>| CollectRows {
        rows: Batch::new(pipeline.layout_after(at).len(), ctx.budget),
        bare: 0,
    };
    let mut held = collect(0, pipeline);
    pipeline.morsel(ctx, &source, 0..len, 0, &mut held)?;
    let mut at = 0;
    while at < pipeline.steps() && (1..SHARE_FROM).contains(&(held.rows.rows + held.bare)) {
        let mut next = collect(at + 1, pipeline);
        let total = held.rows.rows + held.bare;
        let mut chunk = Batch::new(held.rows.columns.len(), ctx.budget);
        each_chunk(
            &held.rows,
            total,
            0..total,
            ctx.batch_rows,
            &mut chunk,
            |rows| pipeline.rows(ctx, rows, at..at + 1, &mut next),
        )?;
        pipeline.flush(ctx, at..at + 1, &mut next)?;
        held = next;
        at += 1;
    }
    let mut rows = held.rows;
    if held.bare > 0 {
        rows.rows = held.bare;
    }
    let total = rows.rows as u64;
    Ok((MorselSource::After(rows, at), total))
}

/// Calls `f` with the rows `range` of a batch, `step` at a time, copied to `chunk`.
fn each_chunk(
    rows: &Batch,
    total: usize,
    range: Range<usize>,
    step: usize,
    chunk: &mut Batch,
    mut f: impl FnMut(View<'_>) -> Flow,
) -> Flow {
    let range = range.start..range.end.min(total);
    for from in range.clone().step_by(step) {
        let n = step.min(range.end - from);
        if rows.columns.is_empty() {
            f(View {
                columns: &[],
                rows: n,
            })?;
        } else {
            chunk.copy_rows(rows, from, n)?;
            f(chunk.view())?;
        }
    }
    Ok(())
}

fn run_workers<'p, 'a, 's>(
    shared: &PipelineState<'_, 'p, 'a, 's>,
    first: Option<(usize, Pipeline<'p>)>,
    threads: usize,
    heavy: bool,
) -> Result<Vec<WorkerResult<'a, 's>>, Halt> {
    let mut done = Vec::with_capacity(threads);
    if threads == 1 {
        let pool = shared.ctx.pool;
        done.extend(worker(shared, first, true, &mut || {
            pool.pause(shared.ctx.cancel)?;
            Ok(true)
        }));
    } else {
        let others = Mutex::new(Vec::new());
        let help = || {
            let d = worker(shared, None, false, &mut || {
                Ok(!shared.ctx.pool.is_crowded())
            });
            lock(&others).extend(d);
        };
        let mut first = Some(first);
        shared.ctx.pool.work(&help, &mut |ask| {
            let begin = Instant::now();
            let mut waiting = true;
            // Leaves before this one have no morsels left, and never will.
            let mut open = 0;
            let mut start = |at_once: bool| {
                if !waiting || !(at_once || begin.elapsed() > PATIENCE) {
                    return;
                }
                let left = |j: &LeafJob<'_>| match &j.work {
                    MorselSource::Streamed(rows, _) => rows.left(),
                    _ => {
                        let left = j.total.saturating_sub(j.next.load(Ordering::Relaxed));
                        left.div_ceil(j.morsel)
                    }
                };
                let is_over = |j: &&LeafJob<'_>| match &j.work {
                    MorselSource::Streamed(rows, _) => rows.is_over(),
                    _ => left(j) == 0,
                };
                open += shared.jobs[open..].iter().take_while(is_over).count();
                // Pulled rows have no known end: `u64::MAX` of them, each time.
                let next = shared.jobs[open..].iter().take(JOBS_AHEAD);
                let left = next.map(left).fold(0, u64::saturating_add);
                if left > 0 {
                    waiting = false;
                    ask(left.min(threads as u64 - 1) as usize);
                }
            };
            if heavy {
                start(true);
            }
            done.extend(worker(shared, first.take().flatten(), true, &mut || {
                // Rows that another executor makes come after this began.
                start(heavy);
                shared.ctx.pool.pause(shared.ctx.cancel)?;
                Ok(true)
            }));
        });
        done.append(&mut lock(&others));
    }
    match lock(&shared.outcome).take() {
        Some(e) => Err(Halt::Failed(e)),
        None => Ok(done),
    }
}

/// Number of leaves that are checked for work for helpers. A union of many branches has thousands, and every morsel
/// checks.
const JOBS_AHEAD: usize = 64;

/// Runs one worker from first to last morsel; `between` is called before each morsel and decides whether to go on, which
/// the main worker always does. The first failure is the query's outcome. `None` also if the worker took no part.
fn worker<'p, 'a, 's>(
    shared: &PipelineState<'_, 'p, 'a, 's>,
    first: Option<(usize, Pipeline<'p>)>,
    is_main: bool,
    between: &mut dyn FnMut() -> Result<bool>,
) -> Option<WorkerResult<'a, 's>> {
    let work = || guarded(|| take_morsels(shared, first, is_main, between));
    let failed = match within(shared.ctx.scope, work) {
        Ok(done) => return done,
        Err(e) => e,
    };
    let mut outcome = lock(&shared.outcome);
    if outcome.is_none() {
        *outcome = Some(failed);
    }
    shared.ctx.stop.store(true, Ordering::Relaxed);
    None
}

/// Passes the rows of a leaf through the stages to the end.
struct Chain<'w, 'p, 'd, 'a, 's> {
    ctx: &'d QueryContext<'p>,
    stages: &'w mut [CountedStage<'p>],
    first: StageInput,
    end: &'w mut AtEnd<'d, 'p, 'a, 's>,
}

impl Consumer for Chain<'_, '_, '_, '_, '_> {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        if self.first == StageInput::END {
            return self.end.batch(rows);
        }
        push(self.stages, 0, self.first, self.ctx, rows, self.end)
    }
}

struct AtEnd<'d, 'p, 'a, 's> {
    ctx: &'d QueryContext<'p>,
    end: PipelineEnd<'a, 's>,
}

impl Consumer for AtEnd<'_, '_, '_, '_> {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        self.end.batch(self.ctx, rows)
    }
}

fn take_morsels<'p, 'a, 's>(
    shared: &PipelineState<'_, 'p, 'a, 's>,
    first: Option<(usize, Pipeline<'p>)>,
    is_main: bool,
    between: &mut dyn FnMut() -> Result<bool>,
) -> Result<Option<WorkerResult<'a, 's>>> {
    let ctx = shared.ctx;
    let stages = shared.pipe.links.iter().map(|l| CountedStage::new(l, ctx));
    let mut stages = match stages.collect::<Result<Vec<_>>>() {
        Ok(stages) => stages,
        Err(e) if is_because_of_enough(shared, &e) => return Ok(None),
        Err(e) => return Err(e),
    };
    let mut end = AtEnd {
        ctx,
        end: PipelineEnd::new(shared.end, &shared.pipe.layout, ctx),
    };
    let mut explored = Vec::new();
    let (first_at, mut first) = first.unzip();
    for (at, job) in shared.jobs.iter().enumerate() {
        let mut pipeline = if first_at == Some(at) {
            first.take()
        } else {
            None
        };
        let mut chain = Chain {
            ctx,
            stages: &mut stages,
            first: shared.pipe.leaves[at].first,
            end: &mut end,
        };
        let flow = match &job.work {
            MorselSource::Streamed(rows, room) => {
                let mut work = BlockWork {
                    chunk: Batch::new(0, ctx.budget),
                    is_done: &|| is_done(shared, at, job),
                    chain: &mut chain,
                };
                take_blocks(ctx, rows, *room, &mut work, is_main, between)
            }
            _ => take_job(shared, at, job, &mut pipeline, &mut chain, between),
        };
        absorb_stop(shared, flow, || {
            job.done.store(true, Ordering::Relaxed);
            let all = matches!(shared.end, EndSpec::Any) || shared.pipe.ends_in_slice();
            if all {
                // Others may abandon their work: its rows would be dropped.
                shared.enough.store(true, Ordering::Relaxed);
                ctx.stop.store(true, Ordering::Relaxed);
            }
        })?;
        if let MorselSource::Pulled(rows) = &job.work
            && is_done(shared, at, job)
        {
            rows.end();
        }
        if let Some(p) = pipeline {
            explored.push((at, p.stats()));
        }
    }
    for at in 0..stages.len() {
        let flow = finish(&mut stages, at, ctx, &mut end);
        absorb_stop(shared, flow, || {})?;
    }
    let end = match end.end {
        PipelineEnd::Output(o) => PipelineEnd::Output(o.done()?),
        PipelineEnd::Order(mut o) => {
            o.done(ctx)?;
            PipelineEnd::Order(o)
        }
        other => other,
    };
    let mut did = Vec::with_capacity(stages.len());
    for s in &stages {
        s.inside(&mut |node, stats, steps| did.push((node, *stats, steps.to_vec())));
    }
    Ok(Some(WorkerResult {
        end,
        explored,
        stages: did,
    }))
}

/// Runs another executor on the main worker's thread, and takes its blocks on all of them.
fn take_blocks(
    ctx: &QueryContext<'_>,
    rows: &Streamed<'_>,
    room: usize,
    work: &mut BlockWork<'_, '_, '_, '_, '_, '_>,
    is_main: bool,
    between: &mut dyn FnMut() -> Result<bool>,
) -> Flow {
    if is_main && !(work.is_done)() {
        rows.drive(ctx, room, work, &mut || between().map(|_| ()))?;
    }
    rows.take_all(ctx, work, between)
}

/// Passes the rows of blocks through a chain, batch by batch.
struct BlockWork<'b, 'w, 'p, 'd, 'a, 's> {
    chunk: Batch,
    is_done: &'b dyn Fn() -> bool,
    chain: &'b mut Chain<'w, 'p, 'd, 'a, 's>,
}

impl StreamWork for BlockWork<'_, '_, '_, '_, '_, '_> {
    fn rows(&mut self, columns: &[&[u32]], rows: usize) -> Flow {
        let ctx = self.chain.ctx;
        if columns.is_empty() {
            ctx.check()?;
            return self.chain.batch(View { columns: &[], rows });
        }
        if self.chunk.columns.len() != columns.len() {
            self.chunk = Batch::new(columns.len(), ctx.budget);
        }
        for from in (0..rows).step_by(ctx.batch_rows) {
            ctx.check()?;
            let n = ctx.batch_rows.min(rows - from);
            self.chunk.copy_columns(columns, from, n)?;
            self.chain.batch(self.chunk.view())?;
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        (self.is_done)()
    }
}

/// Returns true if a worker was only told to stop because another one has found enough rows.
fn is_because_of_enough(shared: &PipelineState<'_, '_, '_, '_>, e: &Error) -> bool {
    matches!(e, Error::Cancelled)
        && shared.enough.load(Ordering::Relaxed)
        && !shared.ctx.cancel.is_cancelled()
}

/// Turns the end because of enough rows into success.
fn absorb_stop(
    shared: &PipelineState<'_, '_, '_, '_>,
    flow: Flow,
    stopped: impl FnOnce(),
) -> Result<()> {
    match flow {
        Ok(()) => Ok(()),
        Err(Halt::Stop) => {
            stopped();
            Ok(())
        }
        // Reported because of the stop flag, which was not set by a failure.
        Err(Halt::Failed(e)) if is_because_of_enough(shared, &e) => Ok(()),
        Err(Halt::Failed(e)) => Err(e),
    }
}

/// Returns true if no more rows of a leaf are needed.
fn is_done(shared: &PipelineState<'_, '_, '_, '_>, at: usize, job: &LeafJob<'_>) -> bool {
    job.done.load(Ordering::Relaxed) || shared.pipe.slices(at).any(|s| s.is_done())
}

/// Takes morsels of one leaf until there are none left.
fn take_job<'p>(
    shared: &PipelineState<'_, 'p, '_, '_>,
    at: usize,
    job: &LeafJob<'p>,
    pipeline: &mut Option<Pipeline<'p>>,
    chain: &mut Chain<'_, 'p, '_, '_, '_>,
    between: &mut dyn FnMut() -> Result<bool>,
) -> Flow {
    let ctx = shared.ctx;
    let from_step = match &job.work {
        MorselSource::After(_, at) => *at,
        _ => 0,
    };
    let mut chunk = match &job.work {
        MorselSource::After(rows, _) => Batch::new(rows.columns.len(), ctx.budget),
        MorselSource::Whole(rows) => Batch::new(rows.columns.len(), ctx.budget),
        _ => Batch::new(0, ctx.budget),
    };
    loop {
        if is_done(shared, at, job) {
            return Ok(());
        }
        if !between()? {
            // Others take the remaining ones.
            break;
        }
        let from = job.next.fetch_add(job.morsel, Ordering::Relaxed);
        if from >= job.total {
            break;
        }
        let to = job.total.min(from + job.morsel);
        let range = from as usize..to as usize;
        match &job.work {
            MorselSource::Start(source) => {
                let p = explorer(shared, at, pipeline)?;
                let steps = p.steps();
                p.morsel(ctx, source, from..to, steps, chain)?;
            }
            MorselSource::Scan(source) => {
                let p = explorer(shared, at, pipeline)?;
                let steps = p.steps();
                p.scan_only(from as u32..to as u32);
                p.morsel(ctx, source, 0..1, steps, chain)?;
            }
            MorselSource::After(rows, _) => {
                let p = explorer(shared, at, pipeline)?;
                let steps = from_step..p.steps();
                each_chunk(rows, rows.rows, range, ctx.batch_rows, &mut chunk, |rows| {
                    p.rows(ctx, rows, steps.clone(), chain)
                })?;
            }
            MorselSource::RowBuffer(held) => {
                ctx.check()?;
                let bare = usize::from(held.bare() > 0);
                for place in range {
                    match place.checked_sub(bare).map(|p| &held.chunks()[p]) {
                        None => chain.batch(View {
                            columns: &[],
                            rows: usize::try_from(held.bare()).unwrap_or(usize::MAX),
                        })?,
                        Some(c) => chain.batch(c.view())?,
                    }
                }
            }
            MorselSource::Pulled(rows) => {
                let Some(rows) = next_pulled(ctx, *rows)? else {
                    break;
                };
                let total = rows.rows;
                // An end takes any number at once.
                if rows.columns.is_empty() || chain.first == StageInput::END {
                    ctx.check()?;
                    chain.batch(rows.view())?;
                    continue;
                }
                if chunk.columns.len() != rows.columns.len() {
                    chunk = Batch::new(rows.columns.len(), ctx.budget);
                }
                each_chunk(&rows, total, 0..total, ctx.batch_rows, &mut chunk, |rows| {
                    ctx.check()?;
                    chain.batch(rows)
                })?;
            }
            MorselSource::Whole(rows) => {
                each_chunk(rows, rows.rows, range, ctx.batch_rows, &mut chunk, |rows| {
                    ctx.check()?;
                    chain.batch(rows)
                })?;
            }
            MorselSource::Sorted(sorter) => {
                lock(sorter).give(ctx, &mut |rows| chain.batch(rows))?;
            }
            MorselSource::Streamed(..) => {
                return Err(Error::Internal("blocks are not cut into morsels".into()).into());
            }
        }
    }
    if let Some(p) = pipeline {
        let steps = from_step..p.steps();
        p.flush(ctx, steps, chain)?;
    }
    Ok(())
}

/// The next rows that another executor made; `None` when there are no more. While there are none yet, this thread gives
/// up its place.
pub(crate) fn next_pulled(ctx: &QueryContext<'_>, rows: &dyn PulledRows) -> Result<Option<Batch>> {
    loop {
        match rows.poll()? {
            Poll::Rows(columns, rows) => {
                let rows = usize::try_from(rows).unwrap_or(usize::MAX);
                return Ok(Some(Batch::from_columns(columns, rows, ctx.budget)?));
            }
            Poll::Done => return Ok(None),
            Poll::Pending => {
                let mut waited = Ok(());
                ctx.pool
                    .blocking(ctx.cancel, &mut || waited = rows.wait())?;
                waited?;
                ctx.check()?;
            }
        }
    }
}

/// This worker's pipeline of a leaf that is an exploration.
fn explorer<'w, 'p>(
    shared: &PipelineState<'_, 'p, '_, '_>,
    at: usize,
    pipeline: &'w mut Option<Pipeline<'p>>,
) -> Result<&'w mut Pipeline<'p>> {
    if pipeline.is_none() {
        let leaf = shared.pipe.leaves.get(at);
        let Some((LeafSource::Explore(e), node)) = leaf.map(|l| (&l.source, l.node)) else {
            return Err(Error::Internal("a leaf that is not an exploration".into()));
        };
        pipeline
            .insert(Pipeline::new(e, shared.ctx)?)
            .watch(shared.ctx, node);
    }
    pipeline
        .as_mut()
        .ok_or_else(|| Error::Internal("a leaf without a pipeline".into()))
}
