//! One run of a program: a turn at the device for each step, tables that are cut if they would not fit, and the
//! delivery of rows.

use crate::backend::Kernel;
use crate::buffer::{DeviceBuffer, DeviceMemory, HostBuffer};
use crate::compile::{DeviceStep, StepWork};
use crate::execute::ResultUse;
use crate::pages::{Moved, Paging};
use crate::params::{self, TILE};
use crate::queue::LaunchQueue;
use crate::results::Results;
use crate::steps::{GroupState, Reached, TopState};
use crate::table::{DeviceTable, NewTable, compact};
use crate::turns::DeviceTurn;
use jindou_model::{CancelToken, Error, Resource, Result};
use jindou_plan::Slot;
use std::sync::Arc;

/// Number of counters that are cleared at once.
pub(crate) const COUNTERS: usize = 256;

/// An execution of a program. The steps themselves are in `steps.rs`.
pub(crate) struct ProgramRun<'a, 'o, 's> {
    pub steps: &'a [DeviceStep<'s>],
    /// The blocks that steps read, if segments are paged, and the bytes that were moved.
    pub paging: Option<&'a Paging<'s>>,
    pub moved: Moved,
    /// The step whose blocks were uploaded last, until those of the next ones are.
    pub ahead_of: Option<usize>,
    pub output_slots: &'a [Slot],
    pub queue: LaunchQueue,
    pub memory: DeviceMemory,
    /// Most rows of a table.
    pub most_rows: u64,
    /// Words in which kernels count, used in turn and cleared all at once, so that a step need not clear its own.
    pub counters: DeviceBuffer,
    pub counters_used: usize,
    /// Address of the current block.
    pub counter: u64,
    /// Destination of small numbers.
    pub words: HostBuffer,
    pub cancel: &'a CancelToken,
    /// The right to queue work, passed on after each step if others wait.
    pub turn: &'a mut DeviceTurn,
    pub output: ResultUse<'o>,
    /// The outer rows of the inner parts in progress.
    pub frames: Vec<OuterFrame>,
    /// Sets of ids that steps fill.
    pub sets: Vec<(Arc<DeviceBuffer>, params::Bits)>,
    /// The counters of a GROUP BY.
    pub groups: Option<GroupState<'a>>,
    /// The nodes that paths lead to, by the number of the step.
    pub reaches: Vec<(usize, Reached)>,
    /// The bound on the rows of an ORDER BY, once it is looked for; least rows of a table for that.
    pub top: Option<TopState>,
    pub least_sorted: u32,
    /// Number of result rows to skip, and of those that may still leave; and the present limit on a table's rows, so
    /// that few are made in vain.
    pub skip: u64,
    pub left: Option<u64>,
    pub few: u64,
    pub results: Results,
    pub sum: Option<DeviceBuffer>,
    pub rows: u64,
    pub cuts: u64,
}

/// The outer rows of an inner part.
#[derive(Clone)]
pub(crate) struct OuterFrame {
    /// The step with which it begins.
    pub begin: usize,
    /// The columns of the rows that are read later.
    pub outer: DeviceTable,
    /// Words with a bit for each outer row: set if it has inner rows.
    pub bits: u64,
}

/// Reason why a step did not run over a whole table.
pub(crate) enum StepStop {
    /// The table must be cut.
    TooLarge,
    /// The query ends.
    Error(Error),
}

impl From<Error> for StepStop {
    fn from(e: Error) -> Self {
        Self::Error(e)
    }
}

impl ProgramRun<'_, '_, '_> {
    /// Uploads the blocks that step `k` reads, if segments are paged. Must be called before kernels of a step are
    /// launched, in the same turn.
    pub(crate) fn page_in(&mut self, k: usize) -> Result<()> {
        if let Some(paging) = self.paging {
            let moved = paging.page_in(k, self.cancel)?;
            self.moved.come += moved.come;
            self.moved.gone += moved.gone;
            self.ahead_of = Some(k);
        }
        Ok(())
    }

    /// Uploads blocks for later steps, once a step's kernels are queued and before they are waited for.
    fn ahead(&mut self) -> Result<()> {
        if let Some((paging, k)) = self.paging.zip(self.ahead_of.take()) {
            let moved = paging.ahead(k)?;
            self.moved.come += moved.come;
            self.moved.gone += moved.gone;
        }
        Ok(())
    }

    /// Waits for small numbers, and thereby for all kernels so far.
    fn wait_for_words(&mut self) -> Result<()> {
        self.words.queued()?;
        self.ahead()?;
        self.words.wait(self.cancel)?;
        if let Some(paging) = self.paging {
            paging.pager.done();
        }
        Ok(())
    }

    pub(crate) fn start(&mut self) -> Result<()> {
        let steps = self.steps;
        let Some(DeviceStep {
            work: StepWork::Start { to, source },
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
            self.turn.pass()?;
            let rows = (total - begin).min(most).min(self.next_few());
            self.queue.at_step(0);
            self.page_in(0)?;
            let table = self.source_rows(source, slot, begin, rows as u32)?;
            self.ahead()?;
            self.queue.rows(rows, u64::from(table.rows));
            self.cuts += u64::from(begin > 0);
            self.run(1, table)?;
            begin += rows;
        }
        Ok(())
    }

    /// Runs step `k` and all after it over a table.
    pub(crate) fn run(&mut self, k: usize, table: DeviceTable) -> Result<()> {
        if table.rows == 0 {
            return Ok(());
        }
        self.cancel.check()?;
        self.turn.pass()?;
        let Some(step) = self.steps.get(k) else {
            self.queue.at_step(k);
            self.queue
                .rows(u64::from(table.rows), u64::from(table.rows));
            return self.emit(&table);
        };
        self.queue.at_step(k);
        self.page_in(k)?;
        let rows = table.rows;
        match self.sought(k, step, &table) {
            Ok(false) => {}
            Ok(true) => return Ok(()),
            Err(StepStop::Error(e)) => return Err(e),
            Err(StepStop::TooLarge) => return self.halves(k, &table),
        }
        match self.grouped(k, step, &table) {
            Ok(false) => {}
            Ok(true) => return Ok(()),
            Err(StepStop::Error(e)) => return Err(e),
            Err(StepStop::TooLarge) => return self.halves(k, &table),
        }
        match self.counted(k, step, &table) {
            Ok(None) => {}
            Ok(Some(made)) => {
                self.queue.rows(u64::from(rows), made);
                self.queue.at_step(k + 1);
                self.queue.rows(made, made);
                return self.emit_bare(made);
            }
            Err(StepStop::Error(e)) => return Err(e),
            Err(StepStop::TooLarge) => return self.halves(k, &table),
        }
        let outcome = match &step.work {
            StepWork::Expand { to, lists, within } => match lists.as_slice() {
                [one] if one.segment.is_degree_one() && one.constant.is_none() => {
                    self.expand_one(step, &table, *to, one, within)
                }
                _ => match self.measure_lists(&table, lists) {
                    Ok(m) => return self.expand_strips(k, step, table, *to, m, within),
                    Err(stop) => Err(stop),
                },
            },
            StepWork::Cross { to, source } => match self.measure_cross(&table, source) {
                Ok(m) => {
                    let all: crate::params::Within = bytemuck::Zeroable::zeroed();
                    return self.expand_strips_of(k, step, table, *to, m, all);
                }
                Err(stop) => Err(stop),
            },
            StepWork::Check { list, other } => self.check(step, &table, list, *other),
            StepWork::Restrict { slot, within } => self.restrict(step, &table, *slot, within),
            StepWork::Same {
                left,
                right,
                negate,
            } => self.same(step, &table, *left, *right, *negate),
            StepWork::ExpandAny {
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
            StepWork::CheckAny {
                anchor,
                predicate,
                other,
                catalog,
            } => self.check_any(step, &table, *anchor, *predicate, *other, catalog),
            StepWork::Compare { slot, ranks } => self.compare(step, &table, *slot, ranks),
            StepWork::Distinct { slot, set } => self.distinct(step, &table, *slot, *set),
            StepWork::Apply { .. } => return self.apply(k, step, &table),
            StepWork::EndApply { begin } => return self.end_apply(k, *begin, &table),
            StepWork::Path(path) => return self.path(k, step, table, path),
            StepWork::Top(top) => self.top(step, &table, top),
            StepWork::Group { .. } => match self.count_groups(&table, 0) {
                Ok(()) => {
                    self.queue.rows(u64::from(rows), 0);
                    return Ok(());
                }
                Err(stop) => Err(stop),
            },
            StepWork::Start { .. } => Err(StepStop::Error(Error::Internal(
                "a start in the middle of a plan".into(),
            ))),
        };
        match outcome {
            Ok(next) => {
                self.queue.rows(u64::from(rows), u64::from(next.rows));
                drop(table);
                self.run(k + 1, next)
            }
            Err(StepStop::Error(e)) => Err(e),
            Err(StepStop::TooLarge) => self.halves(k, &table),
        }
    }

    /// Runs step `k` over both halves of a table, one after the other.
    pub(crate) fn halves(&mut self, k: usize, table: &DeviceTable) -> Result<()> {
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

    /// Allocates a table.
    pub(crate) fn new_table(&self, slots: Vec<Slot>, room: u64) -> Result<NewTable, StepStop> {
        self.new_table_and(slots, room, 0)
    }

    /// Allocates a table with this many bytes more after its columns.
    pub(crate) fn new_table_and(
        &self,
        slots: Vec<Slot>,
        room: u64,
        more: u64,
    ) -> Result<NewTable, StepStop> {
        if room > self.most_rows {
            return Err(StepStop::TooLarge);
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
            None => Err(StepStop::TooLarge),
        }
    }

    /// A counter that is 0, for the next kernel.
    pub(crate) fn next_counter(&mut self) -> Result<u64> {
        let number = self.counters_used % COUNTERS;
        if number == 0 {
            // All earlier ones have been read, or belong to kernels queued before this.
            self.counters.clear()?;
        }
        self.counters_used += 1;
        self.counter = self.counters.at() + number as u64 * 4;
        Ok(self.counter)
    }

    /// The value of the present counter, after all work so far.
    pub(crate) fn read_counter(&mut self) -> Result<u32> {
        // SAFETY: a word of `counters`.
        let [n] = unsafe { self.read_words([self.counter])? };
        Ok(n)
    }

    /// Words of device memory, after all work so far, with a single wait.
    ///
    /// # Safety
    /// Four bytes of live device memory lie at each address.
    pub(crate) unsafe fn read_words<const N: usize>(&mut self, at: [u64; N]) -> Result<[u32; N]> {
        for (i, &at) in at.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { self.words.download(i * 4, at, 4)? };
        }
        self.wait_for_words()?;
        let mut words = [0u32; N];
        let bytes = self.words.bytes();
        bytemuck::cast_slice_mut::<u32, u8>(&mut words).copy_from_slice(&bytes[..N * 4]);
        Ok(words)
    }

    /// A 64-bit number in device memory, after all work so far.
    ///
    /// # Safety
    /// Eight bytes of live device memory lie there.
    pub(crate) unsafe fn read_long(&mut self, at: u64) -> Result<u64> {
        // SAFETY: the caller's promise.
        unsafe { self.words.download(0, at, 8)? };
        self.wait_for_words()?;
        let mut n = [0u64];
        bytemuck::cast_slice_mut::<u64, u8>(&mut n).copy_from_slice(&self.words.bytes()[..8]);
        Ok(n[0])
    }

    /// True if only the number of rows leaves the device.
    pub(crate) fn wants_number(&self) -> bool {
        match &self.output {
            ResultUse::Count => true,
            ResultUse::Rows(_) => self.output_slots.is_empty(),
            ResultUse::Checksum => false,
        }
    }

    /// Most rows of a table at present if not all results are wanted; the next limit is higher.
    pub(crate) fn next_few(&mut self) -> u64 {
        let few = self.few;
        self.few = few.saturating_mul(4);
        few
    }

    /// The part of this many result rows that leaves: its beginning and length.
    fn slice(&mut self, rows: u64) -> (u64, u64) {
        let skip = self.skip.min(rows);
        self.skip -= skip;
        let mut take = rows - skip;
        if let Some(left) = &mut self.left {
            take = take.min(*left);
            *left -= take;
        }
        (skip, take)
    }

    /// True if as many rows as wanted have left.
    pub(crate) fn is_full(&self) -> bool {
        self.left == Some(0)
    }

    /// Ends the run once it is full, which is not a failure; see [`Self::is_full`].
    fn unless_full(&self) -> Result<()> {
        if self.is_full() {
            return Err(Error::SinkClosed);
        }
        Ok(())
    }

    /// Delivers rows without columns, which were never made.
    fn emit_bare(&mut self, rows: u64) -> Result<()> {
        let (_, rows) = self.slice(rows);
        self.give_bare(rows)?;
        self.unless_full()
    }

    fn give_bare(&mut self, rows: u64) -> Result<()> {
        self.rows += rows;
        match &mut self.output {
            ResultUse::Rows(sink) if rows > 0 => {
                let rows = usize::try_from(rows)
                    .map_err(|_| Error::limit(Resource::Device, "a result this long"))?;
                self.turn.aside(|| sink(&[], rows))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn emit(&mut self, table: &DeviceTable) -> Result<()> {
        // Both are at most the table's rows.
        let (skip, take) = self.slice(u64::from(table.rows));
        let (skip, take) = (skip as u32, take as u32);
        if take == table.rows {
            self.give(table)?;
        } else if take > 0 {
            self.give(&table.part(skip, skip + take))?;
        }
        self.unless_full()
    }

    fn give(&mut self, table: &DeviceTable) -> Result<()> {
        self.rows += u64::from(table.rows);
        if let Some(sum) = &self.sum {
            let mut p: params::ChecksumParams = bytemuck::Zeroable::zeroed();
            p.sum = sum.at();
            p.rows = table.rows;
            // Unbound columns hold 0, and so does this one.
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
            // after the work.
            return unsafe {
                self.queue
                    .launch(Kernel::Checksum, u64::from(table.rows), &p, bytes, 0.0)
            };
        }
        if let ResultUse::Rows(sink) = &mut self.output {
            let device = &self.queue.device;
            let slots = self.output_slots;
            return self.results.hand_out(device, table, slots, self.turn, sink);
        }
        Ok(())
    }

    /// Parameters for a kernel that keeps rows.
    pub(crate) fn compact_of(
        &mut self,
        table: &DeviceTable,
        new: &NewTable,
        keep: &[Slot],
    ) -> Result<params::Compact> {
        let counter = self.next_counter()?;
        Ok(compact(table, counter, new.columns(table.kept(keep))))
    }
}
