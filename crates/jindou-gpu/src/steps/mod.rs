//! Execution of the steps of a plan as kernels over one table.

mod any;
mod count;
mod group;
mod operators;
mod path;
mod strips;
mod top;

pub use group::ReduceOptions;
pub(crate) use group::{GROUP_GROWTH, GroupState};
pub(crate) use operators::sets_of;
pub(crate) use path::{NODE, Reached};
pub(crate) use top::TopState;

use crate::backend::Kernel;
use crate::buffer::DeviceBuffer;
use crate::compile::{DeviceList, DeviceSource, DeviceStep, DeviceWithin, Owner};
use crate::counts::{RowCount, TotalUse};
use crate::params;
use crate::resident::ResidentSegment;
use crate::run::{ProgramRun, StepStop};
use crate::table::{DeviceTable, NewTable, TableColumn};
use jindou_model::{Error, Resource, Result};
use jindou_plan::{Operand as PlanOperand, Slot};
use std::sync::Arc;

/// The state of a prefix sum: addresses, and the buffer that holds them.
struct ScanWords {
    total: u64,
    ticket: u64,
    state: u64,
    buffer: DeviceBuffer,
}

/// Mean number of bytes that finding a key and reading the bounds of its list takes.
fn list_bytes(s: &ResidentSegment) -> f64 {
    s.lookup_bytes() + if s.params.offsets == 0 { 0.0 } else { 8.0 }
}

/// Mean number of bytes that a binary search in a list takes.
fn search_bytes(s: &ResidentSegment) -> f64 {
    let degree = f64::from(s.params.edges) / f64::from(s.params.key_count.max(1));
    4.0 * (degree.max(1.0).log2().ceil() + 1.0)
}

/// Mean number of bytes that clipping a list reads, assuming that half of the lists extend beyond either end of the
/// hull.
fn clip_bytes(list: &DeviceList) -> f64 {
    if !list.clips {
        return 0.0;
    }
    let p = &list.segment.params;
    let degree = f64::from(p.edges) / f64::from(p.key_count.max(1));
    8.0 + 4.0 * degree.max(1.0).log2().ceil()
}

/// An expansion after its lists were measured: where the list of each row starts, and the prefix sums of their lengths.
pub(crate) struct MeasuredExpansion {
    /// Number of outputs before conditions are tested; an upper bound if `count` is set.
    total: u64,
    /// The counter of the number of outputs, if the host does not know it.
    count: Option<RowCount>,
    /// Address of the prefix sums: `rows + 1` words.
    prefix: u64,
    /// If there is a single list per row, the address of their starts (`rows` words); otherwise 0.
    starts: u64,
    /// Address of the neighbours that contain the single list; 0 with several.
    neighbours: u64,
    ranges: [params::ListRange; params::MAX_LISTS],
    lists: u32,
    /// If the lists are of several segments, the address of their addresses (`rows` of 8 bytes); otherwise 0.
    addresses: u64,
    /// Keeps these arrays alive.
    _scratch: DeviceBuffer,
    /// Keeps the column of a cross product's source alive.
    _owner: Option<Arc<DeviceBuffer>>,
}

impl MeasuredExpansion {
    /// Number of outputs before conditions are tested, or an upper bound.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Address of the `rows + 1` prefix sums of the lists' lengths.
    pub fn prefix(&self) -> u64 {
        self.prefix
    }
}

impl ProgramRun<'_, '_, '_> {
    /// Rows `begin .. begin + rows` of a source, as a table with one column, or none if no slot is given.
    pub(crate) fn source_rows(
        &mut self,
        source: &DeviceSource<'_>,
        slot: Option<Slot>,
        begin: u64,
        rows: u32,
    ) -> Result<DeviceTable> {
        let Some(slot) = slot else {
            return Ok(DeviceTable {
                rows,
                ..DeviceTable::default()
            });
        };
        match source {
            DeviceSource::Unit => Ok(DeviceTable {
                rows,
                ..DeviceTable::default()
            }),
            // The column is copied, since its blocks may be evicted while its rows are still needed.
            DeviceSource::Column {
                at,
                owner: Owner::Segment(s),
                ..
            } if s.pages().is_some() => {
                let new = self.first_table(slot, rows)?;
                if rows > 0 {
                    let (from, bytes) = (at + begin * 4, rows as usize * 4);
                    // SAFETY: the column has as many ids, and its blocks are on the device; the table is new.
                    unsafe { self.queue.device.copy(new.at(0), from, bytes)? };
                }
                Ok(new.finish(rows))
            }
            DeviceSource::Column { at, owner, .. } => {
                let column = TableColumn {
                    slot,
                    at: at + begin * 4,
                    owner: owner.clone(),
                };
                Ok(DeviceTable {
                    rows,
                    count: None,
                    columns: vec![column],
                })
            }
            DeviceSource::Intervals(_) | DeviceSource::Runs { .. } | DeviceSource::Bits { .. } => {
                let new = self.first_table(slot, rows)?;
                self.write_start_rows(source, &new, begin, rows)?;
                Ok(new.finish(rows))
            }
        }
    }

    /// Writes rows `begin .. begin + rows` of a source that is not a column of ids.
    fn write_start_rows(
        &mut self,
        source: &DeviceSource<'_>,
        new: &NewTable,
        begin: u64,
        rows: u32,
    ) -> Result<()> {
        let written = 4.0 * f64::from(rows);
        match source {
            DeviceSource::Intervals(within) => {
                let p = params::StartIntervalsParams {
                    intervals: within.params.table,
                    before: within.before,
                    out: new.at(0),
                    begin,
                    count: within.params.count,
                    rows,
                };
                // SAFETY: `out` has room for `rows` ids; the intervals' tables have `count` entries.
                unsafe {
                    self.queue
                        .launch(Kernel::StartIntervals, u64::from(rows), &p, 0.0, written)?
                };
            }
            DeviceSource::Runs { segment } => {
                let p = params::StartKeysParams {
                    segment: segment.params,
                    out: new.at(0),
                    begin: begin as u32,
                    rows,
                    first_block: 0,
                    blocks: 0,
                };
                // SAFETY: `out` has room for `rows` ids; the segment is on the device.
                unsafe {
                    self.queue
                        .launch(Kernel::StartRuns, u64::from(rows), &p, 0.0, written)?
                };
            }
            DeviceSource::Bits { segment, blocks } => {
                let begin = begin as u32;
                let first = blocks
                    .partition_point(|b| b.rank <= begin)
                    .saturating_sub(1);
                let last = blocks
                    .partition_point(|b| u64::from(b.rank) < u64::from(begin) + u64::from(rows));
                let count = last.saturating_sub(first) as u32;
                let p = params::StartKeysParams {
                    segment: segment.params,
                    out: new.at(0),
                    begin,
                    rows,
                    first_block: first as u32,
                    blocks: count,
                };
                // Each thread handles one block of the bitmap, so a block of threads handles TILE / 8 of them.
                let read = 16.0 * f64::from(count);
                // SAFETY: the kernel writes no rows outside of `out`; the bitmap's blocks lie in the segment's table.
                unsafe {
                    self.queue
                        .launch(Kernel::StartBits, u64::from(count) * 8, &p, read, written)?
                };
            }
            DeviceSource::Unit | DeviceSource::Column { .. } => {}
        }
        Ok(())
    }

    /// Allocates a table with one column for start rows.
    fn first_table(&self, slot: Slot, rows: u32) -> Result<NewTable> {
        self.new_table(vec![slot], u64::from(rows))
            .map_err(|s| match s {
                StepStop::Error(e) => e,
                StepStop::TooLarge => Error::limit(
                    Resource::Device,
                    "the GPU's memory for tables is too small to begin",
                ),
            })
    }

    /// Allocates the table of a step that filters rows: the columns that later steps read, and one for `to` if given.
    fn kept_table(
        &self,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
        to: Option<Slot>,
    ) -> Result<NewTable, StepStop> {
        let kept = table.kept(&step.keep).map(|c| c.slot);
        self.new_table(kept.chain(to).collect(), u64::from(table.rows))
    }

    /// Completes a table of the rows that a filtering kernel kept. For each of them, the kernel also read and wrote
    /// what the table has.
    fn finish_compact(&mut self, new: NewTable) -> Result<DeviceTable> {
        let bytes = 4.0 * new.slots.len() as f64;
        let next = if self.may_stay(new.room) {
            let (most, counter) = (new.room as u32, self.counter);
            new.finish_as(most, Some(counter))
        } else {
            let kept = self.read_counter()?;
            new.finish(kept)
        };
        self.add_row_bytes(&next, bytes, bytes);
        Ok(next)
    }

    pub(crate) fn restrict(
        &mut self,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
        slot: Slot,
        within: &DeviceWithin,
    ) -> Result<DeviceTable, StepStop> {
        let new = self.kept_table(step, table, None)?;
        let p = params::RestrictParams {
            compact: self.compact_of(table, &new, &step.keep)?,
            operand: table.operand(PlanOperand::Slot(slot))?,
            within: within.params,
        };
        // SAFETY: columns hold `rows` ids, outputs have room for as many; the buffers outlive the queued work.
        unsafe { self.launch_over(Kernel::Restrict, table, &p, (4.0, 0.0))? };
        Ok(self.finish_compact(new)?)
    }

    pub(crate) fn same(
        &mut self,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
        a: PlanOperand,
        b: PlanOperand,
        negate: bool,
    ) -> Result<DeviceTable, StepStop> {
        let new = self.kept_table(step, table, None)?;
        let p = params::SameParams {
            compact: self.compact_of(table, &new, &step.keep)?,
            left: table.operand(a)?,
            right: table.operand(b)?,
            negate: u32::from(negate),
            pad: 0,
        };
        let read = [p.left, p.right].iter().filter(|o| o.column != 0).count();
        // SAFETY: as in `restrict`.
        unsafe { self.launch_over(Kernel::Same, table, &p, (4.0 * read as f64, 0.0))? };
        Ok(self.finish_compact(new)?)
    }

    pub(crate) fn check(
        &mut self,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
        list: &DeviceList,
        other: PlanOperand,
    ) -> Result<DeviceTable, StepStop> {
        let new = self.kept_table(step, table, None)?;
        let p = params::CheckParams {
            compact: self.compact_of(table, &new, &step.keep)?,
            segment: list.segment.params,
            anchor: table.operand(list.anchor)?,
            other: table.operand(other)?,
        };
        let read = [p.anchor, p.other].iter().filter(|o| o.column != 0).count();
        let a_row = 4.0 * read as f64 + list_bytes(&list.segment) + search_bytes(&list.segment);
        // SAFETY: as in `restrict`; the segment is on the device.
        unsafe { self.launch_over(Kernel::Check, table, &p, (a_row, 0.0))? };
        Ok(self.finish_compact(new)?)
    }

    pub(crate) fn expand_one(
        &mut self,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
        to: Slot,
        list: &DeviceList,
        within: &DeviceWithin,
    ) -> Result<DeviceTable, StepStop> {
        let new = self.kept_table(step, table, Some(to))?;
        let p = params::ExpandOneParams {
            compact: self.compact_of(table, &new, &step.keep)?,
            segment: list.segment.params,
            anchor: table.operand(list.anchor)?,
            within: within.params,
            out: new.at(new.slots.len() - 1),
        };
        let a_row = 4.0 + list.segment.lookup_bytes();
        // SAFETY: as in `restrict`; the segment is on the device.
        unsafe { self.launch_over(Kernel::ExpandOne, table, &p, (a_row, 0.0))? };
        Ok(self.finish_compact(new)?)
    }

    /// Allocates the state of a prefix sum over `rows` rows (zeroed: a ticket, and a state per tile) and one array for
    /// each length in `words`; returns their addresses. The current counter receives the total.
    fn scratch<const N: usize>(
        &mut self,
        kernel: Kernel,
        rows: u32,
        words: [u64; N],
    ) -> Result<(ScanWords, [u64; N]), StepStop> {
        let scan = 1 + u64::from(rows).div_ceil(kernel.tile());
        let states = self.counts.states(scan);
        let mut end = match states {
            Some(_) => 0,
            None => (scan * 8).next_multiple_of(256),
        };
        let offsets = words.map(|n| {
            let at = end;
            end = (at + n * 4).next_multiple_of(256);
            at
        });
        let buffer = self.memory.alloc(end)?.ok_or(StepStop::TooLarge)?;
        let at = buffer.at();
        if states.is_none() {
            buffer.clear_first(scan as usize * 8)?;
        }
        let ticket = states.unwrap_or(at);
        let words = ScanWords {
            total: self.next_counter()?,
            ticket,
            state: ticket + 8,
            buffer,
        };
        Ok((words, offsets.map(|o| at + o)))
    }

    /// Measures the lists of each row, clipped to the hull of `within` if they are marked for that. `wanted` tells
    /// whether the total may stay on the device.
    pub(crate) fn measure_lists(
        &mut self,
        table: &DeviceTable,
        lists: &[DeviceList],
        within: &DeviceWithin,
        wanted: TotalUse,
    ) -> Result<MeasuredExpansion, StepStop> {
        let rows = table.rows;
        let [start, end] = within.hull;
        let clips = lists.iter().enumerate().filter(|(_, l)| l.clips);
        let clip = params::Clip {
            start,
            end,
            lists: clips.map(|(i, _)| 1 << i).sum(),
            pad: 0,
        };
        if let [one] = lists
            && !one.clips
        {
            return self.measure_one(table, one, wanted);
        }
        // Arrays for the start and the length of each row's list, except for lists of constants.
        let mut words = [0u64; 1 + 2 * params::MAX_LISTS];
        words[0] = u64::from(rows) + 1;
        for (i, list) in lists.iter().enumerate().take(params::MAX_LISTS) {
            if list.constant.is_none() {
                words[1 + 2 * i..3 + 2 * i].fill(u64::from(rows));
            }
        }
        let kernel = match clip.lists {
            0 => Kernel::MeasureMany,
            _ => Kernel::MeasureCut,
        };
        let (scan, arrays) = self.scratch(kernel, rows, words)?;
        let prefix = arrays[0];
        let mut p: params::MeasureManyParams = bytemuck::Zeroable::zeroed();
        p.rows = rows;
        p.lists = lists.len() as u32;
        p.clip = clip;
        p.prefix = prefix;
        (p.total, p.ticket, p.state) = (scan.total, scan.ticket, scan.state);
        p.count = table.count_at();
        let (mut a_row, mut written) = (0.0, 4.0);
        for (i, list) in lists.iter().enumerate() {
            p.segments[i] = list.segment.params;
            p.anchors[i] = table.operand(list.anchor)?;
            let range = &mut p.ranges[i];
            range.neighbours = list.segment.params.neighbours;
            match list.constant {
                Some((start, length)) => (range.start, range.length) = (start, length),
                None => {
                    (range.starts, range.lengths) = (arrays[1 + 2 * i], arrays[2 + 2 * i]);
                    a_row += 4.0 + list_bytes(&list.segment) + clip_bytes(list);
                    written += 8.0;
                }
            }
        }
        // SAFETY: all arrays have `rows` entries or one more; the segments are on the device.
        unsafe { self.launch_over(kernel, table, &p, (a_row, written))? };
        self.queue.add_bytes(0.0, 12.0);
        let (total, count) = self.counted_or_bound(wanted)?;
        let only = match lists {
            [_] => Some(p.ranges[0]),
            _ => None,
        };
        Ok(MeasuredExpansion {
            total,
            count,
            prefix,
            starts: only.map_or(0, |r| r.starts),
            neighbours: only.map_or(0, |r| r.neighbours),
            ranges: p.ranges,
            lists: p.lists,
            addresses: 0,
            _scratch: scan.buffer,
            _owner: None,
        })
    }

    /// Measures the lists of a single pattern, without clipping.
    fn measure_one(
        &mut self,
        table: &DeviceTable,
        one: &DeviceList,
        wanted: TotalUse,
    ) -> Result<MeasuredExpansion, StepStop> {
        let rows = table.rows;
        let words = [u64::from(rows) + 1, u64::from(rows)];
        let (scan, [prefix, starts]) = self.scratch(Kernel::Measure, rows, words)?;
        let p = params::MeasureParams {
            rows,
            lists: 1,
            segment: one.segment.params,
            anchor: table.operand(one.anchor)?,
            starts,
            prefix,
            total: scan.total,
            ticket: scan.ticket,
            state: scan.state,
            count: table.count_at(),
        };
        let anchor = if p.anchor.column == 0 { 0.0 } else { 4.0 };
        let a_row = anchor + list_bytes(&one.segment);
        // SAFETY: all arrays have `rows` entries or one more; the segment is on the device.
        unsafe { self.launch_over(Kernel::Measure, table, &p, (a_row, 8.0))? };
        self.queue.add_bytes(0.0, 12.0);
        let (total, count) = self.counted_or_bound(wanted)?;
        Ok(MeasuredExpansion {
            total,
            count,
            prefix,
            starts,
            neighbours: one.segment.params.neighbours,
            ranges: bytemuck::Zeroable::zeroed(),
            lists: 1,
            addresses: 0,
            _scratch: scan.buffer,
            _owner: None,
        })
    }

    /// Measures a cross product with a source: the list of every row is the whole source.
    pub(crate) fn measure_cross(
        &mut self,
        table: &DeviceTable,
        source: &DeviceSource<'_>,
    ) -> Result<MeasuredExpansion, StepStop> {
        let length = u32::try_from(source.rows()).map_err(|_| StepStop::TooLarge)?;
        let column = self.source_rows(source, Some(0), 0, length)?;
        let Some(TableColumn { at, owner, .. }) = column.columns.into_iter().next() else {
            return Err(Error::Internal("a product with nothing".into()).into());
        };
        let kernel = Kernel::MeasureMany;
        let (scan, [prefix]) = self.scratch(kernel, table.rows, [u64::from(table.rows) + 1])?;
        let mut p: params::MeasureManyParams = bytemuck::Zeroable::zeroed();
        p.rows = table.rows;
        p.lists = 1;
        p.prefix = prefix;
        (p.total, p.ticket, p.state) = (scan.total, scan.ticket, scan.state);
        p.count = table.count_at();
        p.ranges[0] = params::ListRange {
            neighbours: at,
            starts: 0,
            lengths: 0,
            start: 0,
            length,
        };
        // SAFETY: the prefix has `rows + 1` entries; no segment is read.
        unsafe { self.launch_over(Kernel::MeasureMany, table, &p, (0.0, 4.0))? };
        self.queue.add_bytes(0.0, 12.0);
        let product = u64::from(table.rows) * u64::from(length);
        let (total, count) = match table.count {
            None => (product, None),
            Some(_) => self.counted_or_bound(TotalUse::Room(Some(product)))?,
        };
        let owner = match owner {
            Owner::Buffer(b) => Some(b),
            Owner::Segment(_) => None,
        };
        Ok(MeasuredExpansion {
            total,
            count,
            prefix,
            starts: 0,
            neighbours: 0,
            ranges: p.ranges,
            lists: 1,
            addresses: 0,
            _scratch: scan.buffer,
            _owner: owner,
        })
    }
}
