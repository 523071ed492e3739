//! Running a plan on a device, resident: all segments brought first, every step a few kernels over the whole
//! table, nothing copied back but row counts and, at the end, the result.
//!
//! Tables that would not fit are cut. An expansion makes its outputs strip by strip and each strip runs
//! through the rest of the plan before the next is made, so the deepest table bounds memory, not the widest.

use crate::backend::{Backend, Kernel};
use crate::cache::SegmentCache;
use crate::compile::{DeviceStep, Program, Work, compile};
use crate::device::{Device, DeviceBuffer, HostBuffer, Memory};
use crate::params::{self, TILE};
use crate::profile::GpuProfile;
use crate::queue::Queue;
use crate::results::Results;
use crate::table::{NewTable, Table, compact};
use crate::turns::Turns;
use jindou_model::{CancelToken, Error, Resource, Result};
use jindou_plan::{Operator, Plan, Slot, Step};
use jindou_store::Graph;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rows of a table at most; row numbers are 32 bits wide.
const MOST_ROWS: u64 = 1 << 31;
/// Counters that are cleared at once.
const COUNTERS: usize = 256;
/// How long a device without queries keeps memory that nothing uses.
const IDLE: Duration = Duration::from_secs(10);

/// Takes result rows: ids by column of `Plan::output`, 0 for unbound. An error ends the query.
pub type RowSink<'a> = dyn FnMut(&[&[u32]], usize) -> Result<()> + 'a;

/// The use made of the result.
pub enum Output<'a> {
    /// Rows are counted.
    Count,
    /// Rows are counted and every binding goes into a checksum ([`crate::checksum`]) on the device.
    Checksum,
    /// Rows are copied back and given to this.
    Rows(&'a mut RowSink<'a>),
}

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct GpuOptions {
    /// Checked between kernels.
    pub cancel: CancelToken,
    /// Device memory for tables in bytes; default: nine tenths of what is free, shared evenly with the queries that run.
    pub table_bytes: Option<u64>,
    /// Rows of a table at most; default: 2^31, and never more.
    pub table_rows: Option<u64>,
    /// Measure each kernel's time.
    pub profile: bool,
}

/// A result.
#[derive(Clone, Debug)]
pub struct GpuResult {
    /// Rows.
    pub rows: u64,
    /// With [`Output::Checksum`].
    pub checksum: Option<u64>,
    /// Its cost, step by step.
    pub profile: GpuProfile,
}

/// Runs plans on one device; keeps segments there between them.
pub struct GpuExecutor {
    device: Arc<Device>,
    cache: SegmentCache,
    pub(crate) turns: Arc<Turns>,
}

impl GpuExecutor {
    /// An executor on this device.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self::idle_after(backend, IDLE)
    }

    /// An executor that gives memory which nothing uses back once no query has run for so long.
    #[must_use]
    pub fn idle_after(backend: Arc<dyn Backend>, idle: Duration) -> Self {
        let device = Device::new(backend);
        Self {
            turns: Turns::new(&device, idle),
            device,
            cache: SegmentCache::default(),
        }
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Why the device is lost, if it is: every further query fails.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.device.failure()
    }

    /// The segments it holds.
    #[must_use]
    pub fn cache(&self) -> &SegmentCache {
        &self.cache
    }

    /// Runs a plan that is one exploration. `Unsupported` for plans that only the CPU runs, before anything
    /// reached the sink; `Limit` when the device is too small even in strips; `Internal` when it fails. The last two may come
    /// after some rows.
    pub fn execute(
        &self,
        plan: &Plan,
        snapshot: &dyn Graph,
        output: Output<'_>,
        options: &GpuOptions,
    ) -> Result<GpuResult> {
        if !plan.validity.holds(snapshot) {
            return Err(Error::Internal(
                "the plan was made for another state of the store".into(),
            ));
        }
        let Operator::Explore(exploration) = &plan.root else {
            return Err(Error::Unsupported(
                "operators above the patterns on the GPU".into(),
            ));
        };
        if exploration.empty.is_some() || exploration.steps.is_empty() {
            let profile = GpuProfile {
                device: self.device.name(),
                ..GpuProfile::default()
            };
            return Ok(GpuResult {
                rows: 0,
                checksum: matches!(output, Output::Checksum).then_some(0),
                profile,
            });
        }
        let _turn = self.turns.begin();
        let began = Instant::now();
        let program = self
            .compile(snapshot, &exploration.steps, None, false)?
            .whole()?;
        if options.profile {
            self.device.wait(&options.cancel)?;
        }
        let bring_seconds = began.elapsed().as_secs_f64();
        let (mut result, closed) =
            self.explore(&program, None, &plan.output, End::Output(output), options)?;
        if let Some(e) = closed {
            return Err(e);
        }
        result.profile.bring_seconds = bring_seconds;
        Ok(result)
    }

    /// As many of the first steps as the device runs.
    pub(crate) fn compile<'a>(
        &'a self,
        snapshot: &'a dyn Graph,
        steps: &[Step],
        input: Option<&[Slot]>,
        keep_tested: bool,
    ) -> Result<Program<'a>> {
        compile(
            &self.device,
            &self.cache,
            snapshot,
            steps,
            input,
            keep_tested,
        )
    }

    /// Runs a program over rows that are here already, or from its start. A sink that wants no more rows ends it
    /// early: that is no failure, and its error comes beside what was done until then.
    pub(crate) fn explore(
        &self,
        program: &Program<'_>,
        input: Option<&[Table]>,
        slots: &[Slot],
        end: End<'_, '_>,
        options: &GpuOptions,
    ) -> Result<(GpuResult, Option<Error>)> {
        let began = Instant::now();
        let limit = match options.table_bytes {
            Some(b) => b,
            None => self.device.memory()?.0 / 10 * 9 / self.turns.running(),
        };
        let names = program
            .steps
            .iter()
            .map(|s| (s.name.clone(), Some(s.plan_step)))
            .chain([("result".into(), None)])
            .collect();
        let sum = match &end {
            End::Output(Output::Checksum) => {
                let sum = DeviceBuffer::new(&self.device, 8)?;
                sum.clear()?;
                Some(sum)
            }
            _ => None,
        };
        let mut run = Run {
            steps: &program.steps,
            output_slots: slots,
            queue: Queue::new(Arc::clone(&self.device), options.profile, names),
            memory: Memory::new(&self.device, limit),
            most_rows: options
                .table_rows
                .unwrap_or(MOST_ROWS)
                .clamp(TILE, MOST_ROWS),
            counters: DeviceBuffer::new(&self.device, COUNTERS * 4)?,
            counters_used: 0,
            counter: 0,
            words: HostBuffer::new(&self.device, 64)?,
            cancel: &options.cancel,
            end,
            results: Results::default(),
            sum,
            rows: 0,
            cuts: 0,
        };
        let outcome = match input {
            Some(parts) => parts.iter().try_for_each(|part| run.run(0, part.clone())),
            None => run.start(),
        };
        let closed = match outcome {
            Ok(()) => None,
            Err(e @ Error::SinkClosed) => Some(e),
            Err(e) => return Err(e),
        };
        let checksum = match &run.sum {
            Some(s) => s.read_unless::<u64>(1, &options.cancel)?.first().copied(),
            None => None,
        };
        if options.profile {
            self.device.wait(&options.cancel)?;
        }
        let (rows, cuts) = (run.rows, run.cuts);
        let mut profile = run.queue.finish()?;
        profile.seconds = began.elapsed().as_secs_f64();
        profile.segment_bytes = program.segment_bytes;
        profile.cuts = cuts;
        let result = GpuResult {
            rows,
            checksum,
            profile,
        };
        Ok((result, closed))
    }
}

/// The destination of the last step's rows.
pub(crate) enum End<'a, 'o> {
    /// They leave the device.
    Output(Output<'o>),
    /// They stay here.
    Keep(&'a mut Vec<Table>),
}

/// One execution. The steps themselves are in `steps.rs`.
pub(crate) struct Run<'a, 'o, 's> {
    pub steps: &'a [DeviceStep<'s>],
    pub output_slots: &'a [Slot],
    pub queue: Queue,
    pub memory: Memory,
    /// Rows of a table at most.
    pub most_rows: u64,
    /// Words that kernels count in, used in turn and cleared all at once: no step needs to clear its own.
    counters: DeviceBuffer,
    counters_used: usize,
    /// The present one's address.
    pub counter: u64,
    /// Where small numbers arrive.
    words: HostBuffer,
    pub cancel: &'a CancelToken,
    end: End<'a, 'o>,
    results: Results,
    sum: Option<DeviceBuffer>,
    rows: u64,
    pub cuts: u64,
}

/// Why a step did not run over a whole table.
pub(crate) enum Stop {
    /// The table must be cut.
    TooLarge,
    /// The query ends.
    Error(Error),
}

impl From<Error> for Stop {
    fn from(e: Error) -> Self {
        Self::Error(e)
    }
}

impl Run<'_, '_, '_> {
    fn start(&mut self) -> Result<()> {
        let steps = self.steps;
        let Some(DeviceStep {
            work: Work::Start { to, source },
            keep,
            ..
        }) = steps.first()
        else {
            return Err(Error::Internal(
                "a plan that does not begin with a start".into(),
            ));
        };
        let total = source.rows();
        let slot = to.filter(|s| keep.contains(s));
        // Half of the memory for the first column, so that steps after it have room; at least a tile.
        let most = (self.memory.left() / 8).clamp(TILE, self.most_rows);
        let mut begin = 0;
        while begin < total {
            self.cancel.check()?;
            let rows = (total - begin).min(most);
            self.queue.at_step(0);
            let table = self.source_rows(source, slot, begin, rows as u32)?;
            self.queue.rows(rows, u64::from(table.rows));
            self.cuts += u64::from(begin > 0);
            self.run(1, table)?;
            begin += rows;
        }
        Ok(())
    }

    /// Runs step `k` and all after it over a table.
    pub(crate) fn run(&mut self, k: usize, table: Table) -> Result<()> {
        if table.rows == 0 {
            return Ok(());
        }
        self.cancel.check()?;
        let Some(step) = self.steps.get(k) else {
            self.queue.at_step(k);
            self.queue
                .rows(u64::from(table.rows), u64::from(table.rows));
            return self.emit(&table);
        };
        self.queue.at_step(k);
        let rows = table.rows;
        match self.counted(k, step, &table) {
            Ok(None) => {}
            Ok(Some(made)) => {
                self.queue.rows(u64::from(rows), made);
                self.queue.at_step(k + 1);
                self.queue.rows(made, made);
                return self.emit_bare(made);
            }
            Err(Stop::Error(e)) => return Err(e),
            Err(Stop::TooLarge) => return self.halves(k, &table),
        }
        let outcome = match &step.work {
            Work::Expand { to, lists, within } => match lists.as_slice() {
                [one] if one.segment.is_degree_one() && one.constant.is_none() => {
                    self.expand_one(step, &table, *to, one, within)
                }
                _ => match self.measure_lists(&table, lists) {
                    Ok(m) => return self.expand_strips(k, step, table, *to, m, within),
                    Err(stop) => Err(stop),
                },
            },
            Work::Cross { to, source } => match self.measure_cross(&table, source) {
                Ok(m) => {
                    let all: crate::params::Within = bytemuck::Zeroable::zeroed();
                    return self.expand_strips_of(k, step, table, *to, m, all);
                }
                Err(stop) => Err(stop),
            },
            Work::Check { list, other } => self.check(step, &table, list, *other),
            Work::Restrict { slot, within } => self.restrict(step, &table, *slot, within),
            Work::Same {
                left,
                right,
                negate,
            } => self.same(step, &table, *left, *right, *negate),
            Work::ExpandAny {
                to,
                anchor,
                predicate,
                catalog,
            } => match self.measure_any(&table, *anchor, *predicate, catalog) {
                Ok(m) => {
                    let all: crate::params::Within = bytemuck::Zeroable::zeroed();
                    return self.expand_strips_of(k, step, table, *to, m, all);
                }
                Err(stop) => Err(stop),
            },
            Work::CheckAny {
                anchor,
                predicate,
                other,
                catalog,
            } => self.check_any(step, &table, *anchor, *predicate, *other, catalog),
            Work::Start { .. } => Err(Stop::Error(Error::Internal(
                "a start in the middle of a plan".into(),
            ))),
        };
        match outcome {
            Ok(next) => {
                self.queue.rows(u64::from(rows), u64::from(next.rows));
                drop(table);
                self.run(k + 1, next)
            }
            Err(Stop::Error(e)) => Err(e),
            Err(Stop::TooLarge) => self.halves(k, &table),
        }
    }

    /// Runs step `k` over both halves of a table, one after the other.
    pub(crate) fn halves(&mut self, k: usize, table: &Table) -> Result<()> {
        if table.rows < 2 {
            return Err(Error::limit(
                Resource::Device,
                format!(
                    "one row of the query needs more than the GPU's memory for tables ({} MiB left)",
                    self.memory.left() >> 20
                ),
            ));
        }
        self.cuts += 1;
        let half = table.rows / 2;
        self.run(k, table.part(0, half))?;
        self.run(k, table.part(half, table.rows))
    }

    /// Room for a table.
    pub(crate) fn new_table(&self, slots: Vec<Slot>, room: u64) -> Result<NewTable, Stop> {
        self.new_table_and(slots, room, 0)
    }

    /// Room for a table, and behind its columns for so many bytes more.
    pub(crate) fn new_table_and(
        &self,
        slots: Vec<Slot>,
        room: u64,
        more: u64,
    ) -> Result<NewTable, Stop> {
        if room > self.most_rows {
            return Err(Stop::TooLarge);
        }
        match self
            .memory
            .alloc(NewTable::bytes(slots.len(), room) + more)?
        {
            Some(buffer) => Ok(NewTable {
                buffer: Arc::new(buffer),
                slots,
                room,
            }),
            None => Err(Stop::TooLarge),
        }
    }

    /// A counter that is 0, for the next kernel.
    pub(crate) fn next_counter(&mut self) -> Result<u64> {
        let number = self.counters_used % COUNTERS;
        if number == 0 {
            // All before it have been read, or belong to kernels queued before this.
            self.counters.clear()?;
        }
        self.counters_used += 1;
        self.counter = self.counters.at() + number as u64 * 4;
        Ok(self.counter)
    }

    /// The present counter, after all work so far.
    pub(crate) fn read_counter(&mut self) -> Result<u32> {
        // SAFETY: a word of `counters`.
        let [n] = unsafe { self.read_words([self.counter])? };
        Ok(n)
    }

    /// Words of device memory, after all work so far; one wait for all.
    ///
    /// # Safety
    /// Four bytes of live device memory lie at each address.
    pub(crate) unsafe fn read_words<const N: usize>(&mut self, at: [u64; N]) -> Result<[u32; N]> {
        for (i, &at) in at.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { self.words.download(i * 4, at, 4)? };
        }
        self.words.wait(self.cancel)?;
        let mut words = [0u32; N];
        let bytes = self.words.bytes();
        bytemuck::cast_slice_mut::<u32, u8>(&mut words).copy_from_slice(&bytes[..N * 4]);
        Ok(words)
    }

    /// A 64-bit number in device memory, likewise.
    ///
    /// # Safety
    /// Eight bytes of live device memory lie there.
    pub(crate) unsafe fn read_long(&mut self, at: u64) -> Result<u64> {
        // SAFETY: the caller's promise.
        unsafe { self.words.download(0, at, 8)? };
        self.words.wait(self.cancel)?;
        let mut n = [0u64];
        bytemuck::cast_slice_mut::<u64, u8>(&mut n).copy_from_slice(&self.words.bytes()[..8]);
        Ok(n[0])
    }

    /// True if nothing but the number of rows leaves the device.
    pub(crate) fn wants_number(&self) -> bool {
        match &self.end {
            End::Output(Output::Count) => true,
            End::Output(Output::Rows(_)) => self.output_slots.is_empty(),
            End::Output(Output::Checksum) | End::Keep(_) => false,
        }
    }

    /// Gives out rows without columns, which were never made.
    fn emit_bare(&mut self, rows: u64) -> Result<()> {
        self.rows += rows;
        match &mut self.end {
            End::Output(Output::Rows(sink)) if rows > 0 => {
                let rows = usize::try_from(rows)
                    .map_err(|_| Error::limit(Resource::Device, "a result this long"))?;
                sink(&[], rows)
            }
            _ => Ok(()),
        }
    }

    fn emit(&mut self, table: &Table) -> Result<()> {
        self.rows += u64::from(table.rows);
        if let End::Keep(parts) = &mut self.end {
            parts.push(table.clone());
            return Ok(());
        }
        if let Some(sum) = &self.sum {
            let mut p: params::Checksum = bytemuck::Zeroable::zeroed();
            p.sum = sum.at();
            p.rows = table.rows;
            // Unbound columns hold 0; so does this one.
            let mut unbound = None;
            for (i, &slot) in self.output_slots.iter().enumerate() {
                let at = match (table.column(slot), &unbound) {
                    (Some(c), _) => c.at,
                    (None, Some(zeros)) => DeviceBuffer::at(zeros),
                    (None, None) => {
                        let zeros = DeviceBuffer::new(&self.queue.device, table.rows as usize * 4)?;
                        zeros.clear()?;
                        unbound.insert(zeros).at()
                    }
                };
                let place = p.columns.get_mut(i).ok_or_else(|| {
                    Error::Unsupported(format!(
                        "more than {} columns on the GPU",
                        params::MAX_COLUMNS
                    ))
                })?;
                *place = at;
                p.count += 1;
            }
            let bytes = 4.0 * f64::from(table.rows) * f64::from(p.count);
            // SAFETY: columns hold `rows` ids and live in `table`, the sum in `self`; freeing is ordered
            // behind the work.
            return unsafe {
                self.queue
                    .launch(Kernel::Checksum, u64::from(table.rows), &p, bytes, 0.0)
            };
        }
        if let End::Output(Output::Rows(sink)) = &mut self.end {
            let device = &self.queue.device;
            let slots = self.output_slots;
            return self
                .results
                .hand_out(device, table, slots, self.cancel, sink);
        }
        Ok(())
    }

    /// Parameters for a kernel that keeps rows.
    pub(crate) fn compact_of(
        &mut self,
        table: &Table,
        new: &NewTable,
        keep: &[Slot],
    ) -> Result<params::Compact> {
        let counter = self.next_counter()?;
        Ok(compact(table, counter, new.columns(table.kept(keep))))
    }
}
