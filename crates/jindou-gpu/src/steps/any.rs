//! Execution of steps whose predicate is in a column: each row reads the segment of its own predicate.

use super::{MeasuredExpansion, list_bytes, search_bytes};
use crate::backend::Kernel;
use crate::compile::DeviceStep;
use crate::counts::TotalUse;
use crate::index::Catalog;
use crate::params;
use crate::run::{ProgramRun, StepStop};
use crate::table::DeviceTable;
use jindou_plan::{Operand, Slot};

impl ProgramRun<'_, '_, '_> {
    pub(crate) fn check_any(
        &mut self,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
        anchor: Operand,
        predicate: Slot,
        other: Operand,
        catalog: &Catalog,
    ) -> Result<DeviceTable, StepStop> {
        let new = self.kept_table(step, table, None)?;
        let p = params::CheckAnyParams {
            compact: self.compact_of(table, &new, &step.keep)?,
            catalog: catalog.params,
            anchor: table.operand(anchor)?,
            predicate: table.operand(Operand::Slot(predicate))?,
            other: table.operand(other)?,
        };
        let operands = [p.anchor, p.predicate, p.other];
        let columns = operands.iter().filter(|o| o.column != 0).count();
        let a_row = 4.0 * columns as f64 + catalog.mean(|s| list_bytes(s) + search_bytes(s));
        // SAFETY: columns hold `rows` ids, outputs have room for as many; the catalog keeps its segments alive, and the
        // program keeps the catalog alive.
        unsafe { self.launch_over(Kernel::CheckAny, table, &p, (a_row, 0.0))? };
        Ok(self.finish_compact(new)?)
    }

    pub(crate) fn measure_any(
        &mut self,
        table: &DeviceTable,
        anchor: Operand,
        predicate: Slot,
        catalog: &Catalog,
        wanted: TotalUse,
    ) -> Result<MeasuredExpansion, StepStop> {
        let rows = u64::from(table.rows);
        let (scan, [prefix, lists]) =
            self.scratch(Kernel::MeasureAny, table.rows, [rows + 1, 2 * rows])?;
        let p = params::MeasureAnyParams {
            rows: table.rows,
            pad: 0,
            catalog: catalog.params,
            anchor: table.operand(anchor)?,
            predicate: table.operand(Operand::Slot(predicate))?,
            lists,
            prefix,
            total: scan.total,
            ticket: scan.ticket,
            state: scan.state,
            count: table.count_at(),
        };
        let columns = [p.anchor, p.predicate];
        let columns = columns.iter().filter(|o| o.column != 0).count();
        let a_row = 4.0 * columns as f64 + catalog.mean(list_bytes);
        // SAFETY: all arrays have `rows` entries or one more; the program keeps the catalog and its segments alive.
        unsafe { self.launch_over(Kernel::MeasureAny, table, &p, (a_row, 12.0))? };
        self.queue.add_bytes(0.0, 12.0);
        let (total, count) = self.counted_or_bound(wanted)?;
        Ok(MeasuredExpansion {
            total,
            count,
            prefix,
            starts: 0,
            neighbours: 0,
            ranges: bytemuck::Zeroable::zeroed(),
            lists: 0,
            addresses: lists,
            _scratch: scan.buffer,
            _owner: None,
        })
    }
}
