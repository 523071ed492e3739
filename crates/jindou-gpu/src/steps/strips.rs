//! Execution of expansions: produces the outputs of measured lists in strips.

use super::MeasuredExpansion;
use super::operators::too_small;
use crate::backend::Kernel;
use crate::compile::DeviceStep;
use crate::params::{self, STRIP_TILE};
use crate::run::{ProgramRun, StepStop};
use crate::table::DeviceTable;
use jindou_model::Result;
use jindou_plan::Slot;

impl MeasuredExpansion {
    /// The outputs before conditions are tested, as a table without columns: only a row count.
    fn outputs(&self) -> DeviceTable {
        DeviceTable {
            rows: u32::try_from(self.total).unwrap_or(u32::MAX),
            count: self.count,
            ..DeviceTable::default()
        }
    }
}

impl ProgramRun<'_, '_, '_> {
    /// Produces the outputs of a measured expansion in strips, and executes the rest of the plan over each strip.
    pub(crate) fn expand_strips(
        &mut self,
        k: usize,
        step: &DeviceStep<'_>,
        table: DeviceTable,
        to: Slot,
        mut m: MeasuredExpansion,
        within: params::Within,
    ) -> Result<()> {
        let kept = table.kept(&step.keep).map(|c| c.slot);
        let slots: Vec<Slot> = kept.chain([to]).collect();
        if let Some(total) = m.count {
            // The total is only on the device, so all outputs are produced at once. The bound on them fits in memory.
            let units = u64::from(table.rows) + m.total;
            match self.expand_strip(step, &table, slots.clone(), &m, (0, units), &within) {
                Ok(next) => {
                    self.received(k, &table);
                    self.made(k, &next);
                    drop((table, m));
                    return self.run(k + 1, next);
                }
                Err(StepStop::Error(e)) => return Err(e),
                Err(StepStop::TooLarge) => (m.total, m.count) = (self.read_count(total)?, None),
            }
        }
        // The exact row count was read together with the total.
        let table = self.settled(table)?;
        self.received(k, &table);
        if m.total == 0 {
            return Ok(());
        }
        if m.total > u64::from(u32::MAX) {
            // The prefix sums have 32 bits and have wrapped.
            return self.halves(k, &table);
        }
        // An expansion is divided by units of merge path: each output and each end of a row is a unit. So a strip
        // produces at most as many rows as it has units.
        let units = u64::from(table.rows) + m.total;
        let row_bytes = 4 * slots.len() as u64;
        // The last step may fill the remaining memory; earlier ones leave space for the tables of later steps.
        let share = self.memory.left() / if k + 1 == self.steps.len() { 1 } else { 3 };
        let slack = 64 * 1024;
        let fit = share.saturating_sub(slack) / row_bytes / STRIP_TILE * STRIP_TILE;
        let most = fit.clamp(STRIP_TILE, self.most_rows);
        let mut begin = 0;
        let mut table = Some((table, m));
        while begin < units {
            self.cancel.check()?;
            let end = (begin + most.min(self.next_few().max(STRIP_TILE))).min(units);
            let Some((t, measured)) = &table else { break };
            self.queue.at_step(k);
            // The steps after this one may have evicted the blocks that it reads.
            self.page_in(k)?;
            let next = self.expand_strip(step, t, slots.clone(), measured, (begin, end), &within);
            let next = match next {
                Ok(n) => n,
                Err(StepStop::Error(e)) => return Err(e),
                Err(StepStop::TooLarge) => return Err(too_small(self.memory.left())),
            };
            self.made(k, &next);
            self.cuts += u64::from(begin > 0);
            begin = end;
            if begin >= units {
                // The input table and its prefix sums are no longer needed; later steps may use their memory.
                table = None;
            }
            self.run(k + 1, next)?;
        }
        Ok(())
    }

    /// Produces the outputs of a measured expansion in strips and passes each one to `f`. Only the new column is
    /// produced.
    pub(crate) fn each_strip(
        &mut self,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
        to: Slot,
        m: &MeasuredExpansion,
        mut f: impl FnMut(&mut Self, &DeviceTable) -> Result<(), StepStop>,
    ) -> Result<(), StepStop> {
        if m.total > u64::from(u32::MAX) {
            return Err(StepStop::TooLarge);
        }
        debug_assert!(table.count.is_none() && m.count.is_none());
        let units = u64::from(table.rows) + m.total;
        let share = self.memory.left() / 3 / 4 / STRIP_TILE * STRIP_TILE;
        let most = share.clamp(STRIP_TILE, self.most_rows);
        let all: params::Within = bytemuck::Zeroable::zeroed();
        let mut begin = 0;
        while begin < units && m.total > 0 {
            self.cancel.check()?;
            let end = (begin + most).min(units);
            let next = self.expand_strip(step, table, vec![to], m, (begin, end), &all)?;
            let next = self.settled(next)?;
            if next.rows > 0 {
                f(self, &next)?;
            }
            begin = end;
        }
        Ok(())
    }

    fn expand_strip(
        &mut self,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
        slots: Vec<Slot>,
        m: &MeasuredExpansion,
        (begin, end): (u64, u64),
        within: &params::Within,
    ) -> Result<DeviceTable, StepStop> {
        let carried = slots.len() - 1;
        let room = m.total.min(end - begin);
        // After the columns, the kernel writes two numbers: of rows that end before the strip's begin, and before its
        // end.
        let columns = slots.len();
        let new = self.new_table_and(slots, room, 8)?;
        let whole = begin == 0 && end == u64::from(table.rows) + m.total;
        let bounds = if whole { 0 } else { new.at(columns) };
        let columns = new.columns(table.kept(&step.keep));
        let (count, total) = (table.count_at(), m.count.map_or(0, |c| c.at));
        let (kernel, a_row) = if m.addresses != 0 {
            let p = params::ExpandAnyParams {
                columns,
                prefix: m.prefix,
                bounds,
                lists: m.addresses,
                out: new.at(carried),
                count,
                total,
                begin,
                end,
                room,
                rows: table.rows,
                pad: 0,
            };
            let kernel = Kernel::ExpandAny;
            // SAFETY: as below; `addresses` has `rows` addresses of lists in segments that are on the device.
            unsafe { self.queue.launch(kernel, end - begin, &p, 0.0, 0.0)? };
            (kernel, 12.0)
        } else {
            let kernel = match (m.starts, within.count) {
                (0, _) => Kernel::Intersect,
                (_, 0) => Kernel::Expand,
                (_, _) => Kernel::ExpandWithin,
            };
            let counter = match kernel {
                Kernel::Expand => 0,
                _ => self.next_counter()?,
            };
            let p = params::ExpandParams {
                columns,
                prefix: m.prefix,
                bounds,
                starts: m.starts,
                neighbours: m.neighbours,
                out: new.at(carried),
                counter,
                count,
                total,
                begin,
                end,
                room,
                rows: table.rows,
                lists: m.lists,
                within: *within,
                ranges: m.ranges,
            };
            // SAFETY: outputs have room for every unit of the strip that is not a row's end; all arrays have `rows`
            // entries or one more; segments are on the device and outlive the queued work.
            unsafe { self.queue.launch(kernel, end - begin, &p, 0.0, 0.0)? };
            let ranges = m.ranges.iter().filter(|r| r.starts != 0).count() as f64;
            match kernel {
                Kernel::Intersect => (kernel, 4.0 + 8.0 * ranges),
                _ => (kernel, 8.0),
            }
        };
        let a_row = a_row + 4.0 * carried as f64;
        self.add_strip_bytes(table, m, (!whole).then_some(end - begin), a_row);
        let all = matches!(kernel, Kernel::Expand | Kernel::ExpandAny);
        let next = match (whole, all) {
            // Without conditions, all measured outputs are rows.
            (true, true) => new.finish_as(m.total as u32, m.count),
            (true, false) if self.may_stay(room) => new.finish_as(room as u32, Some(self.counter)),
            (false, true) => {
                let made = self.outputs_of(bounds, begin, end)?;
                new.finish(made)
            }
            (_, false) => {
                let made = self.read_counter()?;
                new.finish(made)
            }
        };
        self.add_row_bytes(&next, 0.0, 4.0 + 4.0 * carried as f64);
        Ok(next)
    }

    /// Adds the bytes that a strip of `units` units reads to the profile (`None`: the whole expansion). Each input row
    /// takes `a_row` bytes.
    fn add_strip_bytes(
        &mut self,
        table: &DeviceTable,
        m: &MeasuredExpansion,
        units: Option<u64>,
        a_row: f64,
    ) {
        let Some(units) = units else {
            self.add_row_bytes(table, a_row, 0.0);
            self.add_row_bytes(&m.outputs(), 4.0, 0.0);
            return;
        };
        // The strip is assumed to have its share of the input rows.
        let share = units as f64 / (f64::from(table.rows) + m.total as f64);
        let read = a_row * f64::from(table.rows) + 4.0 * m.total as f64;
        self.queue.add_bytes(share * read, 0.0);
    }

    /// Number of outputs of a strip without conditions: its units minus the row ends among them.
    fn outputs_of(&mut self, bounds: u64, begin: u64, end: u64) -> Result<u32> {
        // SAFETY: there are two words.
        let rows = unsafe { self.read_words([bounds, bounds + 4])? };
        Ok((end - begin - u64::from(rows[1] - rows[0])) as u32)
    }
}
