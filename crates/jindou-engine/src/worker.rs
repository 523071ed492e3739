//! Runs one pipeline: workers take morsels of its leaves, and their results are merged.

use crate::batch::{Batch, View};
use crate::compile::{LeafSource, Pipe, StageInput};
use crate::eval::EvalContext;
use crate::execute::{Exec, within};
use crate::executor::{Poll, PulledRows};
use crate::explore::{Consumer, Flow, Halt, Pipeline, QueryContext, StepStats};
use crate::morsels::{LeafJob, MorselSource, each_chunk, job};
use crate::offload::{StreamWork, Streamed};
use crate::operators::{CountedStage, EndSpec, StageStats, finish, push};
use crate::options::HELPERS_STACK;
use crate::row_buffer::RowBuffer;
use jindou_model::sync::lock;
use jindou_model::{Error, Invariant, Result};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Mean number of morsels per thread; enough that all threads finish at about the same time.
const MORSELS_A_THREAD: u64 = 24;
/// Smallest and largest number of start values in a morsel.
const MORSEL: Range<u64> = 16..16_384;
/// Time after which a plan that was expected to be light gets more threads. Starting them costs about a tenth of this.
const PATIENCE: Duration = Duration::from_micros(300);
/// Rows of the first batch of a pipeline that needs only some rows. Small, so that the first row is cheap; if all rows
/// are needed after all, it hardly costs more.
const FIRST_BATCH: usize = 64;

/// Depth of the deepest tree whose pipelines several threads run. The stack of helpers has the same size for all
/// queries, which is enough for 16 KiB per level at this depth. A deeper tree runs on one thread with a larger stack.
const SHARED_DEPTH: usize = HELPERS_STACK / (16 << 10);

/// Largest number of ids in a batch: with the default number of rows, batches of more than 64 columns have
/// fewer rows, but at least [`LEAST_ROWS`].
const BATCH_CELLS: usize = 1 << 17;
const LEAST_ROWS: usize = 16;

// Makes an error of a panic, since neither a bug nor a damaged store may end the process.
pub(crate) use jindou_model::invariant::guarded;

/// State that all workers of a pipeline share.
struct PipelineState<'d, 'p, 'a> {
    pipe: &'p Pipe<'a>,
    /// The stage that gets the rows of all jobs; `None` if each job is a leaf of the pipeline.
    from: Option<StageInput>,
    /// True if the end needs only one row.
    any_row: bool,
    ctx: &'d QueryContext<'p>,
    jobs: Vec<LeafJob<'p>>,
    /// True once there are enough rows, so that workers may leave work unfinished.
    enough: AtomicBool,
    outcome: Mutex<Option<Error>>,
}

/// The counts of one worker for the profile. `explored` has the number of a leaf and the counts of its steps, `stages`
/// the number of a node, the counts of its stage, and those of the steps of an exploration in it.
struct WorkerCounts {
    explored: Vec<(usize, Vec<StepStats>)>,
    stages: Vec<(usize, StageStats, Vec<StepStats>)>,
}

/// Runs a pipeline and returns what its end has collected.
pub(crate) fn run_pipe<'a, E: EndSpec>(
    exec: &Exec<'a>,
    pipe: &Pipe<'a>,
    end: E,
) -> Result<E::Done, Halt> {
    let stop = AtomicBool::new(false);
    let ends_early = E::ENDS_EARLY
        || pipe
            .leaves
            .iter()
            .all(|l| pipe.slices(l.first).next().is_some());
    // Rows that are wide anywhere in the pipeline limit the batch, since each stage holds one.
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
            | MorselSource::Overflow(_)
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
        from: None,
        any_row: E::ENDS_EARLY,
        ctx: &ctx,
        jobs,
        enough: AtomicBool::new(false),
        outcome: Mutex::new(None),
    };
    let mut done = run_workers(&shared, end, first, threads, heavy)?;
    for link in &pipe.links {
        if shared.enough.load(Ordering::Relaxed) {
            break;
        }
        let Some(rows) = link.spec.overflow()? else {
            continue;
        };
        let job = LeafJob {
            work: MorselSource::Overflow(rows),
            total: rows.parts(),
            morsel: 1,
            next: AtomicU64::new(0),
            done: AtomicBool::new(false),
        };
        let shared = PipelineState {
            pipe,
            from: Some(link.next),
            any_row: E::ENDS_EARLY,
            ctx: &ctx,
            jobs: vec![job],
            enough: AtomicBool::new(false),
            outcome: Mutex::new(None),
        };
        done.extend(run_workers(&shared, end, None, threads, heavy)?);
    }
    exec.joined(done.len());
    let mut whole: Option<E::Done> = None;
    for (part, counts) in done {
        for (leaf, steps) in &counts.explored {
            let node = shared.pipe.leaves[*leaf].node;
            let ends = StageStats {
                rows_in: steps.first().map_or(0, |s| s.rows_in),
                rows_out: steps.last().map_or(0, |s| s.rows_out),
                time: steps.iter().map(|s| s.time).sum(),
            };
            exec.did(node, &ends, steps);
        }
        for (node, stats, steps) in &counts.stages {
            exec.did(*node, stats, steps);
        }
        match &mut whole {
            None => whole = Some(part),
            Some(whole) => E::merge(whole, &exec.ctx, part)?,
        }
    }
    Ok(match whole {
        Some(whole) => whole,
        None => E::done(end.part(&pipe.layout, &exec.ctx)?, &exec.ctx)?,
    })
}

impl PipelineState<'_, '_, '_> {
    /// The stage that gets the rows of a job.
    fn first(&self, job: usize) -> StageInput {
        self.from.unwrap_or_else(|| self.pipe.leaves[job].first)
    }
}

fn run_workers<'p, E: EndSpec>(
    shared: &PipelineState<'_, 'p, '_>,
    end: E,
    first: Option<(usize, Pipeline<'p>)>,
    threads: usize,
    heavy: bool,
) -> Result<Vec<(E::Done, WorkerCounts)>, Halt> {
    let mut done = Vec::with_capacity(threads);
    if threads == 1 {
        let pool = shared.ctx.pool;
        done.extend(worker(shared, end, first, true, &mut || {
            pool.pause(shared.ctx.cancel)?;
            Ok(true)
        }));
    } else {
        let others = Mutex::new(Vec::new());
        let help = || {
            let d = worker(shared, end, None, false, &mut || {
                Ok(!shared.ctx.pool.is_crowded())
            });
            lock(&others).extend(d);
        };
        let mut first = Some(first);
        shared.ctx.pool.work(&help, &mut |ask| {
            let begin = Instant::now();
            let mut waiting = true;
            // Index of the first leaf that may still have morsels; earlier leaves have none left and get no more.
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
                // The number of pulled rows is unknown and counts as `u64::MAX`, so the sum must saturate.
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
            done.extend(worker(
                shared,
                end,
                first.take().flatten(),
                true,
                &mut || {
                    // Rows from another executor arrive only later, so a heavy plan may have had no work for helpers at
                    // the beginning.
                    start(heavy);
                    shared.ctx.pool.pause(shared.ctx.cancel)?;
                    Ok(true)
                },
            ));
        });
        done.append(&mut lock(&others));
    }
    match lock(&shared.outcome).take() {
        Some(e) => Err(Halt::Failed(e)),
        None => Ok(done),
    }
}

/// Number of leaves that are searched for work for helpers. A union may have thousands of leaves, and the search is
/// repeated for every morsel.
const JOBS_AHEAD: usize = 64;

/// Runs one worker from its first to its last morsel. `between` is called before each morsel and decides whether the
/// worker continues; the main worker always does. `None` if the worker failed or took no part. The first failure of all
/// workers becomes the outcome of the query.
fn worker<'p, E: EndSpec>(
    shared: &PipelineState<'_, 'p, '_>,
    end: E,
    first: Option<(usize, Pipeline<'p>)>,
    is_main: bool,
    between: &mut dyn FnMut() -> Result<bool>,
) -> Option<(E::Done, WorkerCounts)> {
    let work = || {
        guarded(|| {
            let ctx = shared.ctx;
            let mut part = PartOfEnd::<E> {
                ctx,
                part: end.part(&shared.pipe.layout, ctx)?,
            };
            match take_morsels(shared, first, is_main, between, &mut part)? {
                Some(counts) => Ok(Some((E::done(part.part, ctx)?, counts))),
                None => Ok(None),
            }
        })
    };
    let failed = match within(shared.ctx, work) {
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
struct Chain<'w, 'p, 'd> {
    ctx: &'d QueryContext<'p>,
    stages: &'w mut [CountedStage<'p>],
    first: StageInput,
    end: &'w mut dyn Consumer,
}

impl Consumer for Chain<'_, '_, '_> {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        if self.first == StageInput::END {
            return self.end.batch(rows);
        }
        push(self.stages, 0, self.first, self.ctx, rows, self.end)
    }
}

/// A worker's part of the pipeline's end.
struct PartOfEnd<'d, 'p, E: EndSpec> {
    ctx: &'d QueryContext<'p>,
    part: E::Part,
}

impl<E: EndSpec> Consumer for PartOfEnd<'_, '_, E> {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        E::batch(&mut self.part, self.ctx, rows)
    }
}

/// Takes morsels of each leaf in turn until there are none left; `None` if the worker took no part, since there were
/// enough rows already.
fn take_morsels<'p>(
    shared: &PipelineState<'_, 'p, '_>,
    first: Option<(usize, Pipeline<'p>)>,
    is_main: bool,
    between: &mut dyn FnMut() -> Result<bool>,
    end: &mut dyn Consumer,
) -> Result<Option<WorkerCounts>> {
    let ctx = shared.ctx;
    let stages = shared.pipe.links.iter().map(|l| CountedStage::new(l, ctx));
    let mut stages = match stages.collect::<Result<Vec<_>>>() {
        Ok(stages) => stages,
        Err(e) if is_because_of_enough(shared, &e) => return Ok(None),
        Err(e) => return Err(e),
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
            first: shared.first(at),
            end: &mut *end,
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
            let all = shared.any_row || shared.pipe.ends_in_slice();
            if all {
                // Other workers may stop, since their rows would be dropped.
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
        let flow = finish(&mut stages, at, ctx, end);
        absorb_stop(shared, flow, || {})?;
    }
    let mut did = Vec::with_capacity(stages.len());
    for s in &stages {
        s.inside(&mut |node, stats, steps| did.push((node, *stats, steps.to_vec())));
    }
    Ok(Some(WorkerCounts {
        explored,
        stages: did,
    }))
}

/// Runs another executor on the main worker's thread, while all workers process the blocks that it produces.
fn take_blocks(
    ctx: &QueryContext<'_>,
    rows: &Streamed<'_>,
    room: usize,
    work: &mut BlockWork<'_, '_, '_, '_>,
    is_main: bool,
    between: &mut dyn FnMut() -> Result<bool>,
) -> Flow {
    if is_main && !(work.is_done)() {
        rows.drive(ctx, room, work, &mut || between().map(|_| ()))?;
    }
    rows.take_all(ctx, work, between)
}

/// Passes the rows of blocks through the stages, batch by batch.
struct BlockWork<'b, 'w, 'p, 'd> {
    chunk: Batch,
    is_done: &'b dyn Fn() -> bool,
    chain: &'b mut Chain<'w, 'p, 'd>,
}

impl StreamWork for BlockWork<'_, '_, '_, '_> {
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

/// True if the error only means that this worker was stopped because there are enough rows.
fn is_because_of_enough(shared: &PipelineState<'_, '_, '_>, e: &Error) -> bool {
    matches!(e, Error::Cancelled)
        && shared.enough.load(Ordering::Relaxed)
        && !shared.ctx.cancel.is_cancelled()
}

/// Returns success if the flow ended because there are enough rows; calls `stopped` if this worker found that out.
fn absorb_stop(
    shared: &PipelineState<'_, '_, '_>,
    flow: Flow,
    stopped: impl FnOnce(),
) -> Result<()> {
    match flow {
        Ok(()) => Ok(()),
        Err(Halt::Stop) => {
            stopped();
            Ok(())
        }
        // This worker noticed the stop flag, which another worker set when it had enough rows.
        Err(Halt::Failed(e)) if is_because_of_enough(shared, &e) => Ok(()),
        Err(Halt::Failed(e)) => Err(e),
    }
}

/// Returns true if no more rows of a leaf are needed.
fn is_done(shared: &PipelineState<'_, '_, '_>, at: usize, job: &LeafJob<'_>) -> bool {
    job.done.load(Ordering::Relaxed) || shared.pipe.slices(shared.first(at)).any(|s| s.is_done())
}

/// Processes morsels of one leaf until there are none left.
fn take_job<'p>(
    shared: &PipelineState<'_, 'p, '_>,
    at: usize,
    job: &LeafJob<'p>,
    pipeline: &mut Option<Pipeline<'p>>,
    chain: &mut Chain<'_, 'p, '_>,
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
            // Other workers take the remaining morsels.
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
            MorselSource::RowBuffer(held) => give_chunks(held, range, ctx, chain)?,
            MorselSource::Pulled(rows) => {
                let Some(rows) = next_pulled(ctx, *rows)? else {
                    break;
                };
                let total = rows.rows;
                // The pipeline's end, and rows without columns, need no division into batches.
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
            MorselSource::Overflow(rows) => {
                for part in range {
                    rows.give(part as u64, ctx, chain)?;
                }
            }
            MorselSource::Streamed(..) => unreachable!("blocks are not cut into morsels"),
        }
    }
    if let Some(p) = pipeline {
        let steps = from_step..p.steps();
        p.flush(ctx, steps, chain)?;
    }
    Ok(())
}

/// Passes on the morsels of a buffer in this range: its chunks, after the rows without columns if there are any.
fn give_chunks(
    held: &RowBuffer,
    range: Range<usize>,
    ctx: &QueryContext<'_>,
    chain: &mut Chain<'_, '_, '_>,
) -> Flow {
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
    Ok(())
}

/// The next rows from another executor; `None` if there are no more. While the thread waits, it gives up its place in
/// the pool.
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

/// This worker's pipeline for a leaf that is an exploration; created when it is first needed.
fn explorer<'w, 'p>(
    shared: &PipelineState<'_, 'p, '_>,
    at: usize,
    pipeline: &'w mut Option<Pipeline<'p>>,
) -> Result<&'w mut Pipeline<'p>> {
    if pipeline.is_none() {
        let leaf = &shared.pipe.leaves[at];
        let LeafSource::Explore(e) = &leaf.source else {
            unreachable!("only explorations have steps");
        };
        let new = pipeline.insert(Pipeline::new(e, shared.ctx)?);
        new.watch(shared.ctx, leaf.node);
    }
    Ok(pipeline.as_mut().invariant("it was just made"))
}
