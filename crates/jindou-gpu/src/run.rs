//! One execution of a program: acquires the device for each step, divides tables that would not fit, and passes rows
//! on.

use crate::backend::Kernel;
use crate::buffer::{DeviceBuffer, DeviceMemory, HostBuffer};
use crate::compile::{DeviceList, DeviceStep, StepWork};
use crate::counts::{DeviceCounts, RowCount, TotalUse};
use crate::execute::ResultUse;
use crate::pages::{Moved, Paging};
use crate::params::{self, TILE};
use crate::queue::LaunchQueue;
use crate::results::hand_out;
use crate::steps::{GroupState, MeasuredExpansion, Reached, TopState};
use crate::table::{DeviceTable, NewTable, compact};
use crate::turns::DeviceTurn;
use jindou_model::{CancelToken, Error, Resource, Result};
use jindou_plan::Slot;
use std::sync::Arc;

/// An execution of a program. The modules in `steps` execute the single steps.
pub(crate) struct ProgramRun<'a, 'o, 's> {
    pub steps: &'a [DeviceStep<'s>],
    /// If segments are paged: uploads the blocks that steps read. And the bytes moved so far.
    pub paging: Option<&'a Paging<'s>>,
    pub moved: Moved,
    /// The step whose blocks were uploaded last; `None` once blocks for the steps after it have been requested, too.
    pub ahead_of: Option<usize>,
    pub output_slots: &'a [Slot],
    pub queue: LaunchQueue,
    pub memory: DeviceMemory,
    /// Largest number of rows of a table.
    pub most_rows: u64,
    /// The counters on the device, and the counter of the current kernel.
    pub counts: DeviceCounts,
    pub counter: RowCount,
    /// Pinned memory to which counters and other small numbers are copied.
    pub words: HostBuffer,
    pub cancel: &'a CancelToken,
    /// The right to queue work on the device, passed on after each step if other queries wait.
    pub turn: &'a mut DeviceTurn,
    pub output: ResultUse<'o>,
    /// The outer rows of each `Apply` whose inner steps are being executed.
    pub frames: Vec<OuterFrame>,
    /// The bitmaps of the program, by number, with their memory.
    pub sets: Vec<(Arc<DeviceBuffer>, params::Bits)>,
    /// The counters of a GROUP BY.
    pub groups: Option<GroupState<'a>>,
    /// The nodes that are reachable by each path, by the number of its step.
    pub reaches: Vec<(usize, Reached)>,
    /// The bound that ORDER BY with LIMIT has found so far, if there is one; and the smallest table for which it is
    /// computed.
    pub top: Option<TopState>,
    pub least_sorted: u32,
    /// Number of result rows to skip, number that may still be passed on (`None`: all), and the current limit on a
    /// table's rows, which avoids computing rows beyond a LIMIT.
    pub skip: u64,
    pub left: Option<u64>,
    pub few: u64,
    /// Address of the checksum; `None` if none is computed.
    pub sum: Option<u64>,
    pub rows: u64,
    pub cuts: u64,
}

/// The outer rows of an `Apply`.
#[derive(Clone)]
pub(crate) struct OuterFrame {
    /// The `Apply` step's number.
    pub begin: usize,
    /// The outer rows' columns that are read after the inner steps.
    pub outer: DeviceTable,
    /// Address of a bitmap with a bit for each outer row, set if it has an inner row.
    pub bits: u64,
}

/// The reason why a step could not be executed over a whole table.
pub(crate) enum StepStop {
    /// The table must be divided into smaller ones.
    TooLarge,
    /// The query fails.
    Error(Error),
}

/// The result of one step over a table.
#[allow(
    clippy::large_enum_variant,
    reason = "one at a time, and consumed at once"
)]
enum StepRows {
    Table(DeviceTable),
    /// An expansion whose lists were measured; its outputs, with the new column `to`, are yet to be produced.
    Measured {
        to: Slot,
        lists: MeasuredExpansion,
        within: params::Within,
    },
    /// The rows were counted by the GROUP BY, so there is no table.
    Grouped,
}

impl From<Error> for StepStop {
    fn from(e: Error) -> Self {
        Self::Error(e)
    }
}

/// True for steps that can process a table whose row count is only on the device.
fn takes_bounds(work: &StepWork<'_>) -> bool {
    matches!(
        work,
        StepWork::Expand { .. }
            | StepWork::ExpandAny { .. }
            | StepWork::Cross { .. }
            | StepWork::Check { .. }
            | StepWork::CheckAny { .. }
            | StepWork::Restrict { .. }
            | StepWork::Same { .. }
            | StepWork::Compare { .. }
            | StepWork::Distinct { .. }
    )
}

/// Bound on the outputs of an expansion of a table: per row, the smallest known bound on the length of one of its
/// lists.
fn room_of(table: &DeviceTable, lists: &[DeviceList]) -> TotalUse {
    let most = lists.iter().filter_map(|l| l.most).min();
    TotalUse::Room(most.map(|most| u64::from(table.rows) * u64::from(most)))
}

impl ProgramRun<'_, '_, '_> {
    /// If segments are paged, uploads the blocks that step `k` reads. To be called before each launch of a step's
    /// kernels, in the same turn, since other queries may evict blocks between turns.
    pub(crate) fn page_in(&mut self, k: usize) -> Result<()> {
        if let Some(paging) = self.paging {
            let moved = paging.page_in(k, self.cancel)?;
            self.moved.come += moved.come;
            self.moved.gone += moved.gone;
            self.ahead_of = Some(k);
        }
        Ok(())
    }

    /// Uploads blocks for later steps. To be called while the kernels of a step run.
    fn ahead(&mut self) -> Result<()> {
        if let Some((paging, k)) = self.paging.zip(self.ahead_of.take()) {
            let moved = paging.ahead(k)?;
            self.moved.come += moved.come;
            self.moved.gone += moved.gone;
        }
        Ok(())
    }

    /// Waits for the copies to `words`, and thereby for all kernels queued so far.
    pub(crate) fn wait_for_words(&mut self) -> Result<()> {
        self.words.queued()?;
        self.ahead()?;
        self.words.wait(self.cancel)?;
        if let Some(paging) = self.paging {
            paging.pager.done();
        }
        Ok(())
    }

    /// Executes all steps. Returns the error of the sink if it ended the run early, and the checksum.
    pub(crate) fn finish_steps(&mut self) -> Result<(Option<Error>, Option<u64>)> {
        let outcome = match self.is_full() {
            true => Ok(()),
            false => self.start().and_then(|()| self.end_groups()),
        };
        let closed = match outcome {
            Ok(()) => None,
            Err(Error::SinkClosed) if self.is_full() => None,
            Err(e @ Error::SinkClosed) => Some(e),
            Err(e) => return Err(e),
        };
        let checksum = match self.sum {
            Some(_) => Some(self.learn_checksum()?),
            None if self.has_pending() => self.learn().map(|()| None)?,
            None => None,
        };
        Ok((closed, checksum))
    }

    /// Passes the groups on, after checking that no bound on a count was exceeded.
    fn end_groups(&mut self) -> Result<()> {
        if self.groups.is_some() && self.has_pending() {
            self.learn()?;
        }
        self.finish_groups()
    }

    fn start(&mut self) -> Result<()> {
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
        // The first column takes at most half of the memory, so that later steps have the rest; but it has at least a
        // tile of rows.
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

    /// Executes step `k` and all steps after it over a table.
    pub(crate) fn run(&mut self, k: usize, table: DeviceTable) -> Result<()> {
        if table.rows == 0 {
            return Ok(());
        }
        self.cancel.check()?;
        self.turn.pass()?;
        let Some(step) = self.steps.get(k) else {
            let is_wanted = self.output.leaves();
            let table = self.before_step(table, is_wanted)?;
            self.queue.at_step(k);
            self.received(k, &table);
            self.made(k, &table);
            return self.emit(&table);
        };
        let is_wanted = !takes_bounds(&step.work)
            || self.ends_part(k)
            || self.multiplies(k, step)
            || self.is_grouped(k);
        let table = self.before_step(table, is_wanted)?;
        if table.rows == 0 {
            return Ok(());
        }
        self.queue.at_step(k);
        self.page_in(k)?;
        let ended = match self.sought(k, step, &table) {
            Ok(false) => self.grouped(k, step, &table),
            other => other,
        };
        match ended {
            Ok(false) => {}
            Ok(true) => return Ok(()),
            Err(StepStop::Error(e)) => return Err(e),
            Err(StepStop::TooLarge) => return self.smaller(k, table),
        }
        match self.counted(k, step, &table) {
            Ok(None) => {}
            Ok(Some(made)) => {
                // The exact count was read together with the number of the step's outputs.
                let table = self.known(table);
                self.received(k, &table);
                self.queue.rows(0, made);
                self.queue.at_step(k + 1);
                self.queue.rows(made, made);
                return self.emit_bare(made);
            }
            Err(StepStop::Error(e)) => return Err(e),
            Err(StepStop::TooLarge) => return self.smaller(k, table),
        }
        match &step.work {
            StepWork::Apply { .. } => return self.apply(k, step, &table),
            StepWork::EndApply { begin } => return self.end_apply(k, *begin, &table),
            StepWork::Path(path) => return self.path(k, step, table, path),
            _ => {}
        }
        match self.execute_work(step, &table) {
            Ok(StepRows::Table(next)) => {
                self.received(k, &table);
                self.made(k, &next);
                drop(table);
                self.run(k + 1, next)
            }
            Ok(StepRows::Measured { to, lists, within }) => {
                self.expand_strips(k, step, table, to, lists, within)
            }
            Ok(StepRows::Grouped) => {
                self.queue.rows(u64::from(table.rows), 0);
                Ok(())
            }
            Err(StepStop::Error(e)) => Err(e),
            Err(StepStop::TooLarge) => self.smaller(k, table),
        }
    }

    /// Executes one step over a table, except for `Apply`, `EndApply` and `Path` steps.
    fn execute_work(
        &mut self,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
    ) -> Result<StepRows, StepStop> {
        let all: params::Within = bytemuck::Zeroable::zeroed();
        let measured = |to: Slot, lists, within| StepRows::Measured { to, lists, within };
        let next = match &step.work {
            StepWork::Expand { to, lists, within } => match lists.as_slice() {
                [one] if one.segment.is_degree_one() && one.constant.is_none() => {
                    self.expand_one(step, table, *to, one, within)?
                }
                _ => {
                    let m = self.measure_lists(table, lists, within, room_of(table, lists))?;
                    return Ok(measured(*to, m, within.left(lists)));
                }
            },
            StepWork::Cross { to, source } => {
                return Ok(measured(*to, self.measure_cross(table, source)?, all));
            }
            StepWork::ExpandAny {
                to,
                anchor,
                predicate,
                catalog,
            } => {
                let wanted = TotalUse::Room(None);
                let m = self.measure_any(table, *anchor, *predicate, catalog, wanted)?;
                return Ok(measured(*to, m, all));
            }
            StepWork::Check { list, other } => self.check(step, table, list, *other)?,
            StepWork::Restrict { slot, within } => self.restrict(step, table, *slot, within)?,
            StepWork::Same {
                left,
                right,
                negate,
            } => self.same(step, table, *left, *right, *negate)?,
            StepWork::CheckAny {
                anchor,
                predicate,
                other,
                catalog,
            } => self.check_any(step, table, *anchor, *predicate, *other, catalog)?,
            StepWork::Compare { slot, ranks } => self.compare(step, table, *slot, ranks)?,
            StepWork::Distinct { slot, set } => self.distinct(step, table, *slot, *set)?,
            StepWork::Top(top) => self.top(step, table, top)?,
            StepWork::Group { .. } => {
                self.count_groups(table, 0)?;
                return Ok(StepRows::Grouped);
            }
            StepWork::Start { .. }
            | StepWork::Apply { .. }
            | StepWork::EndApply { .. }
            | StepWork::Path(_) => {
                return Err(Error::Internal("a start in the middle of a plan".into()).into());
            }
        };
        Ok(StepRows::Table(next))
    }

    /// Executes step `k` over a table that was too large for it: if only a bound on its rows was known, with the exact
    /// row count; otherwise over its two halves.
    fn smaller(&mut self, k: usize, table: DeviceTable) -> Result<()> {
        match table.count {
            Some(_) => {
                let table = self.settled(table)?;
                self.run(k, table)
            }
            None => self.halves(k, &table),
        }
    }

    /// True if the step after step `k` ends an `Apply`.
    fn ends_part(&self, k: usize) -> bool {
        let next = self.steps.get(k + 1).map(|s| &s.work);
        matches!(next, Some(StepWork::EndApply { .. }))
    }

    /// Executes step `k` and all after it over the two halves of a table, one after the other.
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

    /// Allocates a table with space for `room` rows.
    pub(crate) fn new_table(&self, slots: Vec<Slot>, room: u64) -> Result<NewTable, StepStop> {
        self.new_table_and(slots, room, 0)
    }

    /// As [`Self::new_table`], with `more` bytes after the columns.
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

    /// Waits for the work so far and reads words of device memory.
    ///
    /// # Safety
    /// Four bytes of live device memory are at each address.
    pub(crate) unsafe fn read_words<const N: usize>(&mut self, at: [u64; N]) -> Result<[u32; N]> {
        for (i, &at) in at.iter().enumerate() {
            // SAFETY: guaranteed by the caller.
            unsafe { self.words.download(i * 4, at, 4)? };
        }
        self.wait_for_words()?;
        let mut words = [0u32; N];
        let bytes = self.words.bytes();
        bytemuck::cast_slice_mut::<u32, u8>(&mut words).copy_from_slice(&bytes[..N * 4]);
        Ok(words)
    }

    /// True if the rows are needed only as a number.
    pub(crate) fn wants_number(&self) -> bool {
        match &self.output {
            ResultUse::Count => true,
            ResultUse::Rows(_) | ResultUse::Blocks(..) => self.output_slots.is_empty(),
            ResultUse::Checksum => false,
        }
    }

    /// The current limit on a table's rows if not all results are needed. Each call raises the next limit.
    pub(crate) fn next_few(&mut self) -> u64 {
        let few = self.few;
        self.few = few.saturating_mul(4);
        few
    }

    /// The part of the next `rows` result rows that is passed on: the number to skip, and the number after those.
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

    /// True if LIMIT rows were passed on.
    pub(crate) fn is_full(&self) -> bool {
        self.left == Some(0)
    }

    /// Ends the run with `SinkClosed` after LIMIT rows, which callers do not treat as a failure; see [`Self::is_full`].
    fn unless_full(&self) -> Result<()> {
        if self.is_full() {
            return Err(Error::SinkClosed);
        }
        Ok(())
    }

    /// Passes on rows without columns.
    fn emit_bare(&mut self, rows: u64) -> Result<()> {
        let (_, rows) = self.slice(rows);
        self.give_bare(rows)?;
        self.unless_full()
    }

    fn give_bare(&mut self, rows: u64) -> Result<()> {
        if self.has_pending() && self.output.leaves() {
            self.learn()?;
        }
        self.rows += rows;
        match self.output.rows_out() {
            Some(mut out) if rows > 0 => {
                let rows = usize::try_from(rows)
                    .map_err(|_| Error::limit(Resource::Device, "a result this long"))?;
                self.turn.aside(|| out.bare(rows))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn emit(&mut self, table: &DeviceTable) -> Result<()> {
        if table.rows == 0 {
            return Ok(());
        }
        if self.has_pending() && self.output.leaves() {
            // Rows must not leave the device before all bounds on counts were checked.
            self.learn()?;
        }
        // Both numbers are at most the table's row count, so they have 32 bits.
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
        self.results(table);
        if let Some(sum) = self.sum {
            let mut p: params::ChecksumParams = bytemuck::Zeroable::zeroed();
            p.sum = sum;
            p.count = table.count_at();
            p.rows = table.rows;
            // Columns of unbound variables consist of zeros; one such column serves for all of them.
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
                p.width += 1;
            }
            let bytes = 4.0 * f64::from(p.width);
            // SAFETY: columns hold `rows` ids and are kept alive by `table`, the sum by `self`; memory is freed after
            // the queued work that uses it.
            return unsafe { self.launch_over(Kernel::Checksum, table, &p, (bytes, 0.0)) };
        }
        if let Some(mut out) = self.output.rows_out() {
            let (device, slots) = (&self.queue.device, self.output_slots);
            return hand_out(device, table, slots, self.turn, &mut out);
        }
        Ok(())
    }

    /// Parameters of a kernel that filters rows: copies the columns in `keep` to `new`.
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
