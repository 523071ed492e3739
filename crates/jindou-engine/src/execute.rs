//! Runs a plan: cuts its start into morsels, gives them to workers, puts their parts together.

use crate::batch::{Batch, View};
use crate::explore::{Consumer, Flow, Halt, Pipeline, Run, Source, StepStats};
use crate::operators::{self, Output, Seen, Stage, chain};
use crate::options::{ExecOptions, Profile, StepProfile};
use crate::sink::{ParallelSink, Sink, SinkFactory, Streaming};
use crate::terms::QueryTerms;
use jindou_model::{Error, Result};
use jindou_plan::{Exploration, Operator, Plan, Slot, Weight};
use jindou_store::Snapshot;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Morsels a thread gets on average: enough that the last ones end together.
const MORSELS_A_THREAD: u64 = 24;
/// Largest and smallest number of start values in a morsel.
const MORSEL: Range<u64> = 16..16_384;
/// A plan that was called light and runs longer than this gets its other threads: starting them costs about a
/// tenth of it.
const PATIENCE: Duration = Duration::from_micros(300);
/// Rows that a short start is carried to before its steps are shared among threads.
const SHARE_FROM: usize = 512;

/// Runs a plan with one sink a worker, made by `sinks`. Plans whose last operator must see all rows (DISTINCT,
/// ORDER BY, LIMIT, COUNT) use one part only, from one thread at a time.
///
/// # Errors
/// `Cancelled`, `Timeout`, `Limit` (memory), what the sink returns, `Internal` for a plan of another epoch or
/// snapshot or a bug. Rows given before an error are not taken back.
pub fn execute<P: ParallelSink>(
    plan: &Plan,
    snapshot: &Snapshot,
    options: &ExecOptions,
    terms: &QueryTerms,
    sinks: &P,
) -> Result<Profile> {
    drive(plan, snapshot, options, terms, sinks)
}

/// Runs a plan with one consumer, which gets one batch at a time from whichever worker has one.
///
/// # Errors
/// As [`execute`].
pub fn execute_streaming(
    plan: &Plan,
    snapshot: &Snapshot,
    options: &ExecOptions,
    terms: &QueryTerms,
    sink: &mut dyn Sink,
) -> Result<Profile> {
    drive(plan, snapshot, options, terms, &Streaming::new(sink))
}

/// Operators behind the lock, and the sink they end in.
struct Tail<'a, 't, 's> {
    run: &'t Run<'a>,
    stages: Vec<Stage<'a>>,
    output: Output<'s>,
}

impl Consumer for Tail<'_, '_, '_> {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        operators::push(&mut self.stages, self.run, rows, &mut self.output)
    }
}

/// What workers take morsels of.
enum Work<'a> {
    /// The start's values.
    Source(Source<'a>),
    /// Rows after the step with this number.
    Rows(Batch, usize),
    /// Predicates, for a scan of everything.
    Scan(Source<'a>),
}

/// What all workers of a query share.
struct Shared<'a, 't, 's> {
    plan: &'a Plan,
    blocking: bool,
    exploration: &'a Exploration,
    run: &'t Run<'a>,
    work: Work<'a>,
    total: u64,
    morsel: u64,
    next: AtomicU64,
    /// Operators that each worker has for itself.
    local: &'t [&'a Operator],
    above: &'t [&'a Operator],
    distinct: Option<&'a [Slot]>,
    tail: Option<Mutex<Tail<'a, 't, 's>>>,
    sinks: &'t dyn SinkFactory,
    /// Set by the first worker that halts; others see it at their next check.
    stop: &'t AtomicBool,
    outcome: Mutex<Option<Halt>>,
}

/// What a worker leaves behind.
struct Done<'a> {
    /// Its part of the blocking operator.
    blocking: Option<Stage<'a>>,
    stats: Vec<StepStats>,
    rows: u64,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

fn drive(
    plan: &Plan,
    snapshot: &Snapshot,
    options: &ExecOptions,
    terms: &QueryTerms,
    sinks: &dyn SinkFactory,
) -> Result<Profile> {
    let begin = Instant::now();
    if plan.epoch != snapshot.base().epoch() || plan.snapshot != snapshot.number() {
        return Err(Error::Internal(
            "the plan was made for another snapshot of the store".into(),
        ));
    }
    options.cancel.check()?;
    let stop = AtomicBool::new(false);
    let run = Run {
        snapshot,
        terms,
        cancel: &options.cancel,
        budget: &options.memory,
        stop: &stop,
        batch_rows: options.batch_rows.clamp(16, 1 << 16),
        profile: options.profile,
    };
    let mut profile = guarded(|| match run_plan(plan, &run, options, sinks) {
        Ok(p) => Ok(p),
        Err(Halt::Failed(e)) => Err(e),
        Err(Halt::Stop) => Ok(Profile::default()),
    })?;
    profile.elapsed = begin.elapsed();
    Ok(profile)
}

/// A panic below becomes an error: a damaged store must not take the process down.
pub(crate) fn guarded<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Err(Error::Internal(format!("the engine panicked: {text}")))
    })
}

fn run_plan<'a>(
    plan: &'a Plan,
    run: &Run<'a>,
    options: &ExecOptions,
    sinks: &dyn SinkFactory,
) -> Result<Profile, Halt> {
    let exploration = plan.exploration();
    let operators = chain(plan);
    let filters = operators
        .iter()
        .take_while(|o| matches!(o, Operator::Filter(..)))
        .count();
    let blocking = matches!(
        operators.get(filters),
        Some(Operator::Count { .. } | Operator::OrderBy(..))
    );
    let (local, above) = operators.split_at(filters + usize::from(blocking));
    let own_sinks = above.is_empty() && !blocking && !plan.ask;

    let mut first = match exploration.empty {
        Some(_) => None,
        None => Some(Pipeline::new(exploration, run)?),
    };
    let layout = first.as_ref().map_or(vec![], |p| p.layout().to_vec());

    // What lies behind the lock.
    let mut sink = (!own_sinks).then(|| sinks.worker());
    let tail = match &mut sink {
        None => None,
        Some(sink) => {
            let (_, mut layout) = local_stages(local, above, &layout, run)?;
            let mut stages = Vec::with_capacity(above.len() + 1);
            for (i, operator) in above.iter().enumerate() {
                let (stage, out) = Stage::new(operator, &above[i + 1..], &layout, run)?;
                stages.push(stage);
                layout = out;
            }
            if plan.ask {
                stages.push(Stage::Slice {
                    skip: 0,
                    left: Some(1),
                    rest: Batch::new(layout.len(), run.budget),
                });
            }
            let output = Output::new(plan, &layout, &mut **sink);
            Some(Mutex::new(Tail {
                run,
                stages,
                output,
            }))
        }
    };

    let threads = options.threads.max(1);
    let stops_early = plan.ask
        || !blocking
            && above
                .iter()
                .any(|o| matches!(o, Operator::Slice { limit: Some(_), .. }));
    let heavy = plan.weight == Weight::Heavy && !stops_early && threads > 1;
    let mut stats = Vec::new();
    let mut shared = Shared {
        plan,
        blocking,
        exploration,
        run,
        work: Work::Rows(Batch::new(0, run.budget), 0),
        total: 0,
        morsel: 1,
        next: AtomicU64::new(0),
        local,
        above,
        distinct: match above.first() {
            Some(Operator::Distinct(_, slots)) if !blocking && threads > 1 => Some(slots),
            _ => None,
        },
        tail,
        sinks,
        stop: run.stop,
        outcome: Mutex::new(None),
    };
    if let Some(first) = &mut first {
        (shared.work, shared.total) = cut(exploration, first, run, heavy)?;
        shared.morsel = match &shared.work {
            Work::Scan(_) => 1,
            _ if threads == 1 => shared.total.max(1),
            _ => {
                (shared.total / (threads as u64 * MORSELS_A_THREAD)).clamp(MORSEL.start, MORSEL.end)
            }
        };
    }

    let mut done: Vec<Done<'a>> = Vec::new();
    if let Some(first) = first {
        done = run_workers(&shared, first, threads, heavy)?;
    }

    let mut rows = 0;
    for d in &done {
        add_stats(&mut stats, &d.stats);
        rows += d.rows;
    }
    let joined = done.len().max(1);
    let stopped = shared.stop.load(Ordering::Relaxed);
    if let Some(tail) = shared.tail.take() {
        let mut tail = tail.into_inner().unwrap_or_else(PoisonError::into_inner);
        if blocking {
            let mut parts = done.into_iter().filter_map(|d| d.blocking);
            let mut whole = match parts.next() {
                Some(w) => w,
                None => match local_stages(local, above, &layout, run)?.0.pop() {
                    Some(w) => w,
                    None => return Err(Error::Internal("no operator to finish".into()).into()),
                },
            };
            for p in parts {
                whole.merge(p)?;
            }
            let flow = operators::finish(std::slice::from_mut(&mut whole), run, &mut tail);
            stop_is_fine(flow)?;
        }
        if !stopped {
            let Tail { stages, output, .. } = &mut tail;
            stop_is_fine(operators::finish(stages, run, output))?;
        }
        rows = tail.output.rows;
    }
    if let Some(sink) = sink {
        sink.done()?;
    }
    Ok(Profile {
        steps: stats
            .iter()
            .map(|s| StepProfile {
                rows_in: s.rows_in,
                rows_out: s.rows_out,
                time: s.time,
                bytes: s.touched,
                written: s.written,
            })
            .collect(),
        rows,
        elapsed: Duration::ZERO,
        threads: joined,
        elsewhere: None,
    })
}

fn stop_is_fine(flow: Flow) -> Flow {
    match flow {
        Err(Halt::Stop) => Ok(()),
        other => other,
    }
}

fn add_stats(sum: &mut Vec<StepStats>, part: &[StepStats]) {
    if sum.len() < part.len() {
        sum.resize(part.len(), StepStats::default());
    }
    for (s, p) in sum.iter_mut().zip(part) {
        s.rows_in += p.rows_in;
        s.rows_out += p.rows_out;
        s.time += p.time;
        s.touched += p.touched;
        s.written += p.written;
    }
}

fn local_stages<'a>(
    local: &[&'a Operator],
    above: &[&'a Operator],
    layout: &[Slot],
    run: &Run<'a>,
) -> Result<(Vec<Stage<'a>>, Vec<Slot>)> {
    let mut layout = layout.to_vec();
    let mut stages = Vec::with_capacity(local.len());
    for operator in local {
        let (stage, out) = Stage::new(operator, above, &layout, run)?;
        stages.push(stage);
        layout = out;
    }
    Ok((stages, layout))
}

/// Rows that a short start has become, on their way to being shared.
struct Collect {
    rows: Batch,
    bare: usize,
}

impl Consumer for Collect {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        if rows.columns.is_empty() {
            self.bare += rows.rows;
            return Ok(());
        }
        Ok(self.rows.append(rows)?)
    }
}

/// What the morsels are. A heavy plan whose start is short is carried on until there are rows to share.
fn cut<'a>(
    exploration: &'a Exploration,
    pipeline: &mut Pipeline<'a>,
    run: &Run<'a>,
    heavy: bool,
) -> Result<(Work<'a>, u64), Halt> {
    let source = Pipeline::source(exploration, run)?;
    let len = source.len();
    if heavy && source.is_unit() && pipeline.is_scan() {
        return Ok((
            Work::Scan(source),
            u64::from(run.snapshot.predicate_count()),
        ));
    }
    if !heavy || len >= SHARE_FROM as u64 || pipeline.steps() == 0 {
        return Ok((Work::Source(source), len));
    }
    let collect = |at: usize, pipeline: &Pipeline<'_>| Collect {
        rows: Batch::new(pipeline.layout_after(at).len(), run.budget),
        bare: 0,
    };
    let mut held = collect(0, pipeline);
    pipeline.morsel(run, &source, 0..len, 0, &mut held)?;
    let mut at = 0;
    while at < pipeline.steps() && (1..SHARE_FROM).contains(&(held.rows.rows + held.bare)) {
        let mut next = collect(at + 1, pipeline);
        let total = held.rows.rows + held.bare;
        let mut chunk = Batch::new(held.rows.columns.len(), run.budget);
        each_chunk(
            &held.rows,
            total,
            0..total,
            run.batch_rows,
            &mut chunk,
            |rows| pipeline.rows(run, rows, at..at + 1, &mut next),
        )?;
        pipeline.flush(run, at..at + 1, &mut next)?;
        held = next;
        at += 1;
    }
    let mut rows = held.rows;
    if held.bare > 0 {
        rows.rows = held.bare;
    }
    let total = rows.rows as u64;
    Ok((Work::Rows(rows, at), total))
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
            continue;
        }
        chunk.copy_rows(rows, from, n)?;
        f(chunk.view())?;
    }
    Ok(())
}

fn run_workers<'a>(
    shared: &Shared<'a, '_, '_>,
    first: Pipeline<'a>,
    threads: usize,
    heavy: bool,
) -> Result<Vec<Done<'a>>, Halt> {
    let mut done = Vec::with_capacity(threads);
    if threads == 1 {
        done.extend(worker(shared, Some(first), &mut || {}));
    } else {
        let others = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let begin = Instant::now();
            let mut waiting = true;
            let mut start = |at_once: bool| {
                let left = shared
                    .total
                    .saturating_sub(shared.next.load(Ordering::Relaxed));
                if waiting && left > 0 && (at_once || begin.elapsed() > PATIENCE) {
                    waiting = false;
                    let more = left.div_ceil(shared.morsel).min(threads as u64 - 1);
                    for _ in 0..more {
                        // A system without threads to give runs the query on fewer.
                        let _ = std::thread::Builder::new().spawn_scoped(scope, || {
                            let d = worker(shared, None, &mut || {});
                            lock(&others).extend(d);
                        });
                    }
                }
            };
            if heavy {
                start(true);
            }
            done.extend(worker(shared, Some(first), &mut || start(false)));
        });
        done.append(&mut lock(&others));
    }
    match lock(&shared.outcome).take() {
        Some(Halt::Failed(e)) => Err(Halt::Failed(e)),
        // Blocking operators never stop their input early, so nothing is missing.
        Some(Halt::Stop) | None => Ok(done),
    }
}

/// One worker from first to last morsel. What halts it is the query's outcome, if it is the first to.
fn worker<'a>(
    shared: &Shared<'a, '_, '_>,
    pipeline: Option<Pipeline<'a>>,
    between: &mut dyn FnMut(),
) -> Option<Done<'a>> {
    let result = guarded(|| match take_morsels(shared, pipeline, between) {
        Ok(done) => Ok(Ok(done)),
        Err(Halt::Failed(e)) => Err(e),
        Err(Halt::Stop) => Ok(Err(Halt::Stop)),
    });
    let halt = match result {
        Ok(Ok(done)) => return Some(done),
        Ok(Err(halt)) => halt,
        Err(e) => Halt::Failed(e),
    };
    let mut outcome = lock(&shared.outcome);
    if outcome.is_none() {
        *outcome = Some(halt);
    }
    shared.stop.store(true, Ordering::Relaxed);
    None
}

/// The end of a worker's own chain.
enum Target<'w, 'a, 't, 's> {
    /// Its own sink.
    Own(Output<'w>),
    /// The operators behind the lock, with a filter of rows met lately before DISTINCT.
    Shared(&'w Mutex<Tail<'a, 't, 's>>, Option<Seen>),
    /// A blocking operator takes all.
    Nothing,
}

impl Consumer for Target<'_, '_, '_, '_> {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        match self {
            Self::Own(output) => output.batch(rows),
            Self::Shared(tail, None) => lock(tail).batch(rows),
            Self::Shared(tail, Some(seen)) => {
                let rows = seen.pass(rows)?;
                if rows.rows == 0 {
                    return Ok(());
                }
                lock(tail).batch(rows)
            }
            Self::Nothing => Ok(()),
        }
    }
}

struct Chain<'r, 'a, 'w, 't, 's> {
    run: &'r Run<'a>,
    stages: Vec<Stage<'a>>,
    target: Target<'w, 'a, 't, 's>,
}

impl Consumer for Chain<'_, '_, '_, '_, '_> {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        operators::push(&mut self.stages, self.run, rows, &mut self.target)
    }
}

fn take_morsels<'a>(
    shared: &Shared<'a, '_, '_>,
    pipeline: Option<Pipeline<'a>>,
    between: &mut dyn FnMut(),
) -> Result<Done<'a>, Halt> {
    let run = shared.run;
    let mut pipeline = match pipeline {
        Some(p) => p,
        None => Pipeline::new(shared.exploration, run)?,
    };
    let (stages, layout) = local_stages(shared.local, shared.above, pipeline.layout(), run)?;
    let mut own = match (shared.blocking, &shared.tail) {
        (false, None) => Some(shared.sinks.worker()),
        _ => None,
    };
    let target = match (&mut own, &shared.tail) {
        (Some(sink), _) => Target::Own(Output::new(shared.plan, &layout, &mut **sink)),
        (None, Some(tail)) if !shared.blocking => Target::Shared(
            tail,
            shared
                .distinct
                .map(|slots| Seen::new(&layout, slots, run))
                .filter(Seen::is_useful),
        ),
        _ => Target::Nothing,
    };
    let mut chain = Chain {
        run,
        stages,
        target,
    };
    let from_step = match &shared.work {
        Work::Rows(_, at) => *at,
        Work::Source(_) | Work::Scan(_) => 0,
    };
    let steps = from_step..pipeline.steps();
    let mut chunk = match &shared.work {
        Work::Rows(rows, _) => Batch::new(rows.columns.len(), run.budget),
        Work::Source(_) | Work::Scan(_) => Batch::new(0, run.budget),
    };
    loop {
        let from = shared.next.fetch_add(shared.morsel, Ordering::Relaxed);
        if from >= shared.total {
            break;
        }
        let to = shared.total.min(from + shared.morsel);
        match &shared.work {
            Work::Source(source) => {
                pipeline.morsel(run, source, from..to, steps.end, &mut chain)?;
            }
            Work::Scan(source) => {
                pipeline.scan_only(from as u32..to as u32);
                pipeline.morsel(run, source, 0..1, steps.end, &mut chain)?;
            }
            Work::Rows(rows, _) => {
                let range = from as usize..to as usize;
                each_chunk(rows, rows.rows, range, run.batch_rows, &mut chunk, |rows| {
                    pipeline.rows(run, rows, steps.clone(), &mut chain)
                })?;
            }
        }
        between();
    }
    pipeline.flush(run, steps, &mut chain)?;
    let Chain {
        mut stages, target, ..
    } = chain;
    let rows = match &target {
        Target::Own(o) => o.rows,
        _ => 0,
    };
    drop(target);
    if let Some(sink) = own {
        sink.done()?;
    }
    let blocking = if shared.blocking { stages.pop() } else { None };
    Ok(Done {
        blocking,
        stats: pipeline.stats(),
        rows,
    })
}
