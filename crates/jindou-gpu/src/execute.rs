//! Execution of a plan on a device. All segments are uploaded first. Then each step runs as a few kernels over the
//! whole table of rows, and only row counts and, at the end, the result are copied back.
//!
//! A table that would not fit in memory is divided: an expansion produces its outputs in strips, and each strip passes
//! through the rest of the plan before the next one is produced. So memory is bounded by the number of steps, not by
//! the largest table.

use crate::backend::Backend;
use crate::buffer::{DeviceMemory, HostBuffer};
use crate::cache::SegmentCache;
use crate::compile::{StepProgram, WantedRows, compile, compile_tree};
use crate::cost::{Calibration, DeviceModel, WorkEstimate};
use crate::counts::{DeviceCounts, NUMBERS, RowCount};
use crate::device::Device;
use crate::pages::{Moved, Pager, PagingOptions};
use crate::params::TILE;
use crate::profile::GpuProfile;
use crate::queue::LaunchQueue;
use crate::resident::locked;
use crate::results::RowsOut;
use crate::run::ProgramRun;
use crate::steps::{GroupState, ReduceOptions, sets_of};
use crate::turns::{DeviceTurn, Turns};
use jindou_engine::Sink;
use jindou_graph::Graph;
use jindou_model::{CancelToken, Error, Result};
use jindou_plan::{Operator, Plan, Slot, Step};
use rustc_hash::FxHashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Largest number of rows of a table, since kernels number rows with 32 bits.
const MOST_ROWS: u64 = 1 << 31;
/// Number of programs whose steps' output counts are remembered as bounds for later runs.
const MOST_SEEN: usize = 1024;
/// Idle time after which a device's unused memory is released.
pub(crate) const IDLE: Duration = Duration::from_secs(10);

/// Largest number of rows of the first tables if not all results are needed, so that a LIMIT ends early.
fn few_of((skip, limit): (u64, Option<u64>)) -> u64 {
    match limit {
        Some(limit) => skip.saturating_add(limit).max(4 * TILE),
        None => u64::MAX,
    }
}

/// Receives blocks of result rows: the columns of `Plan::output` (ids, 0 for unbound), and the number of rows. An error
/// ends the query.
pub type RowSink<'a> = dyn FnMut(&[&[u32]], usize) -> Result<()> + 'a;

/// The use that is made of the result.
pub enum ResultUse<'a> {
    /// Rows are counted.
    Count,
    /// Rows are counted and every binding goes into a checksum ([`crate::checksum`]) on the device.
    Checksum,
    /// Rows are copied back and passed to this function, block by block.
    Rows(&'a mut RowSink<'a>),
    /// Rows are copied back and passed to this sink, which may process several blocks at the same time on its own
    /// threads.
    Blocks(&'a mut dyn Sink),
}

impl ResultUse<'_> {
    /// True if rows are copied back.
    pub(crate) fn leaves(&self) -> bool {
        matches!(self, Self::Rows(_) | Self::Blocks(..))
    }

    /// The receiver of rows, if they are copied back.
    pub(crate) fn rows_out(&mut self) -> Option<RowsOut<'_>> {
        match self {
            Self::Rows(sink) => Some(RowsOut::Each(&mut **sink)),
            Self::Blocks(sink) => Some(RowsOut::Blocks(&mut **sink)),
            Self::Count | Self::Checksum => None,
        }
    }
}

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct GpuOptions {
    /// Cancels the run; checked between kernels.
    pub cancel: CancelToken,
    /// Device memory for tables in bytes. `None` stands for nine tenths of the free memory, divided evenly among the
    /// running queries.
    pub table_bytes: Option<u64>,
    /// Largest number of rows of a table; `None` stands for 2^31, the maximum.
    pub table_rows: Option<u64>,
    /// True to measure each kernel's time.
    pub profile: bool,
    /// True to read the row count after each step, even where it may stay on the device; for measurements.
    pub wait_for_counts: bool,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct GpuResult {
    /// Number of rows.
    pub rows: u64,
    /// The checksum, if [`ResultUse::Checksum`] was requested.
    pub checksum: Option<u64>,
    /// The cost of each step.
    pub profile: GpuProfile,
}

/// Executes plans on one device, and caches segments in its memory.
pub struct GpuExecutor {
    pub(crate) device: Arc<Device>,
    cache: SegmentCache,
    /// Uploads segments in blocks if they do not fit as a whole; `None` if the device cannot map pages.
    pager: Option<Pager>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) reduction: ReduceOptions,
    /// The device's measured speeds, once they are known, and what was learned from runs.
    pub(crate) model: OnceLock<DeviceModel>,
    /// The largest output count of each step of programs that have run, by [`StepProgram::likeness`].
    seen: Mutex<FxHashMap<u64, Vec<u64>>>,
    /// True while a caller is measuring the speeds.
    pub(crate) measuring: AtomicBool,
    /// True while segments are uploaded in the background.
    pub(crate) bringing: AtomicBool,
}

impl GpuExecutor {
    /// An executor on this device.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self::idle_after(backend, IDLE)
    }

    /// An executor that releases unused memory after no query has run for `idle`.
    #[must_use]
    pub fn idle_after(backend: Arc<dyn Backend>, idle: Duration) -> Self {
        Self::limited(backend, u64::MAX, idle)
    }

    /// An executor that uses at most `memory` bytes of device memory. Unused memory is released to the system after no
    /// query has run for `idle`.
    #[must_use]
    pub fn limited(backend: Arc<dyn Backend>, memory: u64, idle: Duration) -> Self {
        Self::on(Device::limited(backend, memory), idle)
    }

    /// An executor on a device that nothing else uses. Unused memory is released to the system after no query has run
    /// for `idle`.
    #[must_use]
    pub fn on(device: Arc<Device>, idle: Duration) -> Self {
        Self {
            turns: Turns::new(&device, idle),
            pager: Pager::new(&device),
            reduction: ReduceOptions::default(),
            device,
            cache: SegmentCache::default(),
            model: OnceLock::new(),
            seen: Mutex::default(),
            measuring: AtomicBool::new(false),
            bringing: AtomicBool::new(false),
        }
    }

    /// Returns the executor with these speeds, which are then not measured.
    #[must_use]
    pub fn with_calibration(self, speeds: Calibration) -> Self {
        Self {
            model: OnceLock::from(DeviceModel::new(speeds)),
            ..self
        }
    }

    /// Returns the executor with only some parts of paging enabled; by default all are.
    #[must_use]
    pub fn with_paging(mut self, options: PagingOptions) -> Self {
        if let Some(pager) = &mut self.pager {
            pager.options = options;
        }
        self
    }

    /// The device, the resident segments, and the pager.
    pub(crate) fn parts(&self) -> (&Arc<Device>, &SegmentCache, Option<&Pager>) {
        (&self.device, &self.cache, self.pager.as_ref())
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The reason why the device is lost, if it is. Every later query fails.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.device.failure()
    }

    /// Number of queries that run on the device or wait for it.
    #[must_use]
    pub fn queries(&self) -> u64 {
        self.turns.queries()
    }

    /// Bytes that are free for tables. If less than an eighth of the device's memory is free, cached segments that no
    /// plan uses are evicted first.
    fn room(&self) -> Result<u64> {
        let (free, total) = self.device.memory()?;
        if free >= total / 8 {
            return Ok(free);
        }
        self.cache.clear();
        if let Some(pager) = &self.pager {
            pager.clear();
        }
        Ok(self.device.memory()?.0)
    }

    /// The cached segments.
    #[must_use]
    pub fn cache(&self) -> &SegmentCache {
        &self.cache
    }

    /// Executes a plan: one exploration, and the operators above it that the device supports. Returns `Unsupported` for
    /// other plans, before the sink has received any row; `Limit` if the device's memory is too small even for strips;
    /// `Internal` if the device fails. The last two may be returned after some rows were passed on.
    pub fn execute(
        &self,
        plan: &Plan,
        snapshot: &dyn Graph,
        output: ResultUse<'_>,
        options: &GpuOptions,
    ) -> Result<GpuResult> {
        if !plan.validity.holds(snapshot) {
            return Err(Error::Internal(
                "the plan was made for another state of the store".into(),
            ));
        }
        let Operator::Explore(exploration) = &plan.root else {
            let wanted = WantedRows::Columns(&plan.output);
            return self.tree(&plan.root, None, wanted, snapshot, output, options);
        };
        if exploration.empty.is_some() || exploration.steps.is_empty() {
            let profile = GpuProfile {
                device: self.device.name(),
                ..GpuProfile::default()
            };
            return Ok(GpuResult {
                rows: 0,
                checksum: matches!(output, ResultUse::Checksum).then_some(0),
                profile,
            });
        }
        let mut turn = self.turns.begin(&options.cancel)?;
        let began = Instant::now();
        let program = self.compile(snapshot, &exploration.steps, false)?.whole()?;
        if options.profile {
            self.device.wait(&options.cancel)?;
        }
        let bring_seconds = began.elapsed().as_secs_f64();
        let (mut result, closed) =
            self.explore(&program, &plan.output, output, options, &mut turn)?;
        if let Some(e) = closed {
            return Err(e);
        }
        result.profile.bring_seconds = bring_seconds;
        Ok(result)
    }

    /// Executes an operator with everything below it. Returns at most `most` rows of the `wanted` part of its rows.
    ///
    /// # Errors
    /// As [`Self::execute`].
    pub(crate) fn tree(
        &self,
        op: &Operator,
        most: Option<u64>,
        wanted: WantedRows<'_>,
        snapshot: &dyn Graph,
        output: ResultUse<'_>,
        options: &GpuOptions,
    ) -> Result<GpuResult> {
        let (below, slice) = match op {
            Operator::Slice(s) => {
                let limit = s.limit.into_iter().chain(most).min();
                (&*s.input, (s.offset, limit))
            }
            op => (op, (0, most)),
        };
        let counts_some = matches!(wanted, WantedRows::Bound(_) | WantedRows::Different(_));
        if slice != StepProgram::ALL && counts_some {
            return Err(Error::Unsupported(
                "a count of some of a LIMIT's rows on the GPU".into(),
            ));
        }
        let mut turn = self.turns.begin(&options.cancel)?;
        let began = Instant::now();
        let (mut program, slots) = self.compile_tree(snapshot, below, wanted)?;
        program.slice = slice;
        if options.profile {
            self.device.wait(&options.cancel)?;
        }
        let bring_seconds = began.elapsed().as_secs_f64();
        let (mut result, closed) = self.explore(&program, &slots, output, options, &mut turn)?;
        if let Some(e) = closed {
            return Err(e);
        }
        result.profile.bring_seconds = bring_seconds;
        Ok(result)
    }

    /// Compiles an operator with everything below it. Also returns the slots that are copied back.
    pub(crate) fn compile_tree<'a>(
        &'a self,
        snapshot: &'a dyn Graph,
        op: &Operator,
        wanted: WantedRows<'_>,
    ) -> Result<(StepProgram<'a>, Vec<Slot>)> {
        let device = (&self.device, &self.cache);
        let (program, slots) = compile_tree(device, None, snapshot, op, wanted)?;
        let Some(pager) = self.pager.as_ref().filter(|_| program.is_short) else {
            return Ok((program.whole()?, slots));
        };
        drop(program);
        self.cache.clear();
        let (program, slots) = compile_tree(device, Some(pager), snapshot, op, wanted)?;
        if program.is_short {
            drop(program.paging);
            pager.clear();
            return Err(program.stopped.unwrap_or_else(|| {
                Error::Unsupported("segments larger than the GPU's memory".into())
            }));
        }
        Ok((program, slots))
    }

    /// True if the segments that the steps read exceed the total of the device's memory, so that uploading them as a
    /// whole cannot succeed.
    fn is_too_much(&self, steps: &[Step], snapshot: &dyn Graph) -> bool {
        let Some(bytes) = WorkEstimate::segment_bytes(steps, snapshot) else {
            return false;
        };
        let memory = self.device.memory().map_or(u64::MAX, |m| m.1);
        bytes > memory as f64
    }

    /// Compiles as many of the first steps as the device can execute.
    pub(crate) fn compile<'a>(
        &'a self,
        snapshot: &'a dyn Graph,
        steps: &[Step],
        keep_tested: bool,
    ) -> Result<StepProgram<'a>> {
        let device = (&self.device, &self.cache);
        if let Some(pager) = self
            .pager
            .as_ref()
            .filter(|_| self.is_too_much(steps, snapshot))
        {
            let paged = compile(device, Some(pager), snapshot, steps, keep_tested)?;
            if paged.stopped.is_none() {
                return Ok(paged);
            }
        }
        let whole = compile(device, None, snapshot, steps, keep_tested)?;
        let Some(pager) = self.pager.as_ref().filter(|_| whole.is_short) else {
            return Ok(whole);
        };
        // The segments do not fit together with what is cached already, so the plan is compiled again with paging.
        let covered = whole.covered;
        drop(whole);
        self.cache.clear();
        let paged = compile(device, Some(pager), snapshot, steps, keep_tested)?;
        if paged.covered > covered {
            return Ok(paged);
        }
        drop(paged);
        pager.clear();
        compile(device, None, snapshot, steps, keep_tested)
    }

    /// Remembers the largest output count of each step for later runs of similar programs.
    fn remember(&self, likeness: u64, seen: &[u64]) {
        let mut all = locked(&self.seen);
        if all.len() >= MOST_SEEN && !all.contains_key(&likeness) {
            all.clear();
        }
        let most = all.entry(likeness).or_default();
        most.resize(seen.len(), 0);
        for (most, seen) in most.iter_mut().zip(seen) {
            *most = (*most).max(*seen);
        }
    }

    /// Bytes of device memory that the tables of a run may take.
    fn table_bytes(&self, program: &StepProgram<'_>, options: &GpuOptions) -> Result<u64> {
        match options.table_bytes {
            Some(bytes) => Ok(bytes),
            None => {
                let kept = program.paging.as_ref().map_or(0, |p| p.pager.unmapped());
                Ok(self.room()?.saturating_sub(kept) / 10 * 9 / self.turns.running())
            }
        }
    }

    /// Executes a program. If the sink needs no more rows or fails, the run ends early and returns the sink's error
    /// together with what was done until then.
    pub(crate) fn explore(
        &self,
        program: &StepProgram<'_>,
        slots: &[Slot],
        output: ResultUse<'_>,
        options: &GpuOptions,
        turn: &mut DeviceTurn,
    ) -> Result<(GpuResult, Option<Error>)> {
        let (began, away) = (Instant::now(), turn.away());
        let limit = self.table_bytes(program, options)?;
        let names = || {
            let steps = program.steps.iter();
            let steps = steps.map(|s| (s.name.clone(), Some(s.plan_step)));
            steps.chain([("result".into(), None)]).collect()
        };
        // With an OFFSET, a LIMIT or paging, the exact count is needed after each step.
        let is_whole = program.slice == StepProgram::ALL && program.paging.is_none();
        let mut stay = is_whole && !options.wait_for_counts;
        let likeness = program.likeness();
        let mut expected = match stay {
            true => locked(&self.seen).get(&likeness).cloned(),
            false => None,
        };
        let mut output = output;
        let (run, closed, checksum) = loop {
            let expected = expected.take().unwrap_or_default();
            let counts = DeviceCounts::new(&self.device, stay, expected, program.steps.len())?;
            let sum = matches!(output, ResultUse::Checksum).then(|| counts.checksum());
            let mut run = ProgramRun {
                steps: &program.steps,
                paging: program.paging.as_ref(),
                moved: Moved::default(),
                ahead_of: None,
                output_slots: slots,
                queue: LaunchQueue::new(Arc::clone(&self.device), options.profile, names()),
                memory: DeviceMemory::new(&self.device, limit),
                most_rows: options
                    .table_rows
                    .unwrap_or(MOST_ROWS)
                    .clamp(TILE, MOST_ROWS),
                counts,
                counter: RowCount::default(),
                words: HostBuffer::new(&self.device, NUMBERS)?,
                cancel: &options.cancel,
                turn: &mut *turn,
                output,
                frames: Vec::new(),
                sets: Vec::new(),
                groups: None,
                reaches: Vec::new(),
                top: None,
                least_sorted: self.reduction.least_sorted,
                skip: program.slice.0,
                left: program.slice.1,
                few: few_of(program.slice),
                sum,
                rows: 0,
                cuts: 0,
            };
            run.sets = sets_of(&run.memory, &program.sets)?;
            if let Some(plan) = &program.groups {
                run.groups = Some(GroupState::new(&run.memory, plan, &self.reduction)?);
            }
            match run.finish_steps() {
                Ok((closed, checksum)) => break (run, closed, checksum),
                // No row has left the device yet, so the run is repeated with a wait for each count.
                Err(_) if stay && run.counts.overflowed => (stay, output) = (false, run.output),
                Err(e) => return Err(e),
            }
        };
        if is_whole {
            self.remember(likeness, &run.counts.seen);
        }
        if options.profile {
            self.device.wait(&options.cancel)?;
        }
        let moved = run.moved;
        let (rows, cuts, table_bytes) = (run.rows, run.cuts, run.memory.peak());
        let away = run.turn.away().saturating_sub(away);
        let mut profile = run.queue.finish()?;
        profile.seconds = began.elapsed().as_secs_f64();
        profile.away_seconds = away.as_secs_f64();
        profile.segment_bytes = program.segment_bytes;
        profile.cuts = cuts;
        (profile.paged_in, profile.paged_out) = (moved.come, moved.gone);
        profile.table_bytes = table_bytes;
        if let Some(model) = self.model.get() {
            model.occupied((profile.seconds - profile.away_seconds).max(0.0));
        }
        let result = GpuResult {
            rows,
            checksum,
            profile,
        };
        Ok((result, closed))
    }
}
