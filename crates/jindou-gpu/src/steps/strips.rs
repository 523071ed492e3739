//! Expansions: the outputs of measured lists, strip by strip.

use super::MeasuredExpansion;
use crate::backend::Kernel;
use crate::compile::{DeviceStep, DeviceWithin};
use crate::params::{self, TILE};
use crate::run::{ProgramRun, StepStop};
use crate::table::DeviceTable;
use jindou_model::{Error, Resource, Result};
use jindou_plan::Slot;

impl ProgramRun<'_, '_, '_> {
    pub(crate) fn expand_strips(
        &mut self,
        k: usize,
        step: &DeviceStep<'_>,
        table: DeviceTable,
        to: Slot,
        m: MeasuredExpansion,
        within: &DeviceWithin,
    ) -> Result<()> {
        self.expand_strips_of(k, step, table, to, m, within.params)
    }

    /// Makes the outputs of an expansion strip by strip and runs the rest of the plan over each.
    pub(crate) fn expand_strips_of(
        &mut self,
        k: usize,
        step: &DeviceStep<'_>,
        table: DeviceTable,
        to: Slot,
        m: MeasuredExpansion,
        within: params::Within,
    ) -> Result<()> {
        if m.total == 0 {
            self.queue.rows(u64::from(table.rows), 0);
            return Ok(());
        }
        if m.total > u64::from(u32::MAX) {
            // Prefix sums wrapped.
            return self.halves(k, &table);
        }
        let mut slots = Self::kept_slots(&table, &step.keep);
        slots.push(to);
        // Units of merge path: a strip of this many makes at most as many rows.
        let units = u64::from(table.rows) + m.total;
        let row_bytes = 4 * slots.len() as u64;
        // The last step may fill the remaining memory; an earlier one leaves room for the tables of later steps.
        let share = self.memory.left() / if k + 1 == self.steps.len() { 1 } else { 3 };
        let slack = 64 * 1024;
        let fit = share.saturating_sub(slack) / row_bytes / TILE * TILE;
        let most = fit.clamp(TILE, self.most_rows);
        self.queue.rows(u64::from(table.rows), 0);
        let mut begin = 0;
        let mut table = Some((table, m));
        while begin < units {
            self.cancel.check()?;
            let end = (begin + most.min(self.next_few().max(TILE))).min(units);
            let Some((t, measured)) = &table else { break };
            self.queue.at_step(k);
            // The steps after it may have removed its blocks.
            self.page_in(k)?;
            let room = measured.total.min(end - begin);
            let next =
                self.expand_strip(step, t, slots.clone(), measured, begin, end, room, &within);
            let next = match next {
                Ok(n) => n,
                Err(StepStop::Error(e)) => return Err(e),
                Err(StepStop::TooLarge) => {
                    return Err(Error::limit(
                        Resource::Device,
                        format!(
                            "the GPU's memory for tables is too small for this query ({} KiB left)",
                            self.memory.left() >> 10
                        ),
                    ));
                }
            };
            self.queue.rows(0, u64::from(next.rows));
            self.cuts += u64::from(begin > 0);
            begin = end;
            if begin >= units {
                // The table and its sums are no longer needed: their memory becomes available to later steps.
                table = None;
            }
            self.run(k + 1, next)?;
        }
        Ok(())
    }

    /// Makes the outputs of a measured expansion strip by strip and passes each on. Only the new column is made.
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
        let units = u64::from(table.rows) + m.total;
        let share = self.memory.left() / 3 / 4 / TILE * TILE;
        let most = share.clamp(TILE, self.most_rows);
        let all: params::Within = bytemuck::Zeroable::zeroed();
        let mut begin = 0;
        while begin < units && m.total > 0 {
            self.cancel.check()?;
            let end = (begin + most).min(units);
            let room = m.total.min(end - begin);
            let next = self.expand_strip(step, table, vec![to], m, begin, end, room, &all)?;
            if next.rows > 0 {
                f(self, &next)?;
            }
            begin = end;
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn expand_strip(
        &mut self,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
        slots: Vec<Slot>,
        m: &MeasuredExpansion,
        begin: u64,
        end: u64,
        room: u64,
        within: &params::Within,
    ) -> Result<DeviceTable, StepStop> {
        let carried = slots.len() - 1;
        // The numbers of rows that end before the strip and up to its end are stored after the columns.
        let columns = slots.len();
        let new = self.new_table_and(slots, room, 8)?;
        let bounds = new.at(columns);
        let whole = begin == 0 && end == u64::from(table.rows) + m.total;
        // Rows of this strip: all, or approximately their share.
        let share = (end - begin) as f64 / (f64::from(table.rows) + m.total as f64);
        let (in_rows, outputs) = (f64::from(table.rows) * share, m.total as f64 * share);
        let columns = new.columns(table.kept(&step.keep));
        let made = if m.addresses != 0 {
            let p = params::ExpandAnyParams {
                columns,
                prefix: m.prefix,
                bounds,
                lists: m.addresses,
                out: new.at(carried),
                begin,
                end,
                rows: table.rows,
                pad: 0,
            };
            let read = (12.0 + 4.0 * carried as f64) * in_rows + 4.0 * outputs;
            // SAFETY: as below; `addresses` has `rows` addresses of lists in resident segments.
            unsafe {
                self.queue
                    .launch(Kernel::ExpandAny, end - begin, &p, read, 0.0)?
            };
            self.made_by(whole, m, bounds, begin, end)?
        } else {
            let counter = self.next_counter()?;
            let p = params::ExpandParams {
                columns,
                prefix: m.prefix,
                bounds,
                starts: m.starts,
                neighbours: m.neighbours,
                out: new.at(carried),
                counter,
                begin,
                end,
                rows: table.rows,
                lists: m.lists,
                within: *within,
                ranges: m.ranges,
            };
            let kernel = match (m.starts, within.count) {
                (0, _) => Kernel::Intersect,
                (_, 0) => Kernel::Expand,
                (_, _) => Kernel::ExpandWithin,
            };
            let ranges = m.ranges.iter().filter(|r| r.starts != 0).count() as f64;
            let a_row = if m.starts != 0 {
                8.0
            } else {
                4.0 + 8.0 * ranges
            };
            let read = (a_row + 4.0 * carried as f64) * in_rows + 4.0 * outputs;
            // SAFETY: outputs have room for every unit of the strip that is not a row's end; all arrays have
            // `rows` entries or one more; segments are resident and outlive the queued work.
            unsafe { self.queue.launch(kernel, end - begin, &p, read, 0.0)? };
            if kernel == Kernel::Expand {
                self.made_by(whole, m, bounds, begin, end)?
            } else {
                self.read_counter()?
            }
        };
        self.queue
            .add_bytes(0.0, f64::from(made) * (4.0 + 4.0 * carried as f64));
        Ok(new.finish(made))
    }

    /// Number of outputs of an expansion that keeps all.
    fn made_by(
        &mut self,
        whole: bool,
        m: &MeasuredExpansion,
        bounds: u64,
        begin: u64,
        end: u64,
    ) -> Result<u32> {
        if whole {
            Ok(m.total as u32)
        } else {
            self.outputs_of(bounds, begin, end)
        }
    }

    /// Number of outputs of a strip that keeps all: its units less the rows that end in it.
    fn outputs_of(&mut self, bounds: u64, begin: u64, end: u64) -> Result<u32> {
        // SAFETY: two words lie there.
        let rows = unsafe { self.read_words([bounds, bounds + 4])? };
        Ok((end - begin - u64::from(rows[1] - rows[0])) as u32)
    }
}
