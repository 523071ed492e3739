//! Execution of ORDER BY with LIMIT: finds the rows of a table that may be among the first ones.

use crate::backend::Kernel;
use crate::buffer::DeviceBuffer;
use crate::compile::{DeviceStep, DeviceTop};
use crate::params::{self, BIN_BITS, BINS};
use crate::run::{ProgramRun, StepStop};
use crate::table::DeviceTable;
use jindou_model::Result;
use jindou_plan::Operand;

/// In device memory: the bound on keys found so far, and the state of the search for a lower one.
pub(crate) struct TopState {
    state: DeviceBuffer,
}

impl ProgramRun<'_, '_, '_> {
    /// Keeps the rows whose key is not above that of the last needed row, in this table or an earlier one, and rows
    /// without a key. Returns small tables unchanged.
    pub(crate) fn top(
        &mut self,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
        top: &DeviceTop,
    ) -> Result<DeviceTable, StepStop> {
        let rows = u64::from(table.rows);
        if rows <= top.most || table.rows < self.least_sorted {
            return Ok(DeviceTable {
                rows: table.rows,
                count: None,
                columns: table.kept(&step.keep).cloned().collect(),
            });
        }
        let state = match self.top.take() {
            Some(state) => state,
            None => self.top_state(top)?,
        };
        let done = self.topmost(step, table, top, &state);
        self.top = Some(state);
        done
    }

    fn top_state(&mut self, top: &DeviceTop) -> Result<TopState, StepStop> {
        // The head of `SortState`: the bound, the digits found so far, the number of wanted rows, and the number of
        // keys counted.
        let head = [u32::MAX, 0, top.most as u32, 0];
        let bytes = size_of_val(&head) as u64 + 4 * u64::from(BINS);
        let state = self.memory.alloc(bytes)?.ok_or(StepStop::TooLarge)?;
        state.clear()?;
        state.write(0, bytemuck::cast_slice(&head))?;
        Ok(TopState { state })
    }

    fn topmost(
        &mut self,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
        top: &DeviceTop,
        state: &TopState,
    ) -> Result<DeviceTable, StepStop> {
        let rows = u64::from(table.rows);
        let all = rows as f64;
        let state = state.state.at();
        let keys = self.memory.alloc(rows * 4)?.ok_or(StepStop::TooLarge)?;
        let new = self.kept_table(step, table, None)?;
        let p = params::SortKeysParams {
            ranks: top.ranks.params(),
            operand: table.operand(Operand::Slot(top.slot))?,
            out: keys.at(),
            rows: table.rows,
            last: top.last,
            descending: u32::from(top.is_descending),
            pad: 0,
        };
        // SAFETY: the column and the keys hold `rows` words; the program keeps the ranks alive.
        unsafe {
            self.queue
                .launch(Kernel::SortKeys, rows, &p, 8.0 * all, 4.0 * all)?
        };
        let bits = 32 - top.last.leading_zeros();
        let digits = bits.div_ceil(BIN_BITS).max(1);
        for digit in (0..digits).rev() {
            let p = params::SortBinsParams {
                keys: keys.at(),
                state,
                rows: table.rows,
                shift: digit * BIN_BITS,
            };
            // SAFETY: there are as many keys; the state contains all bins.
            unsafe {
                self.queue
                    .launch(Kernel::SortBins, rows, &p, 4.0 * all, 0.0)?
            };
            let p = params::SortPickParams {
                state,
                last: u32::from(digit == 0),
                most: top.most as u32,
            };
            let bytes = 4.0 * f64::from(BINS);
            // SAFETY: as above.
            unsafe { self.queue.launch(Kernel::SortPick, 1, &p, bytes, bytes)? };
        }
        let p = params::SortKeepParams {
            compact: self.compact_of(table, &new, &step.keep)?,
            keys: keys.at(),
            state,
        };
        // SAFETY: columns and keys hold `rows` words, outputs have room for as many.
        unsafe {
            self.queue
                .launch(Kernel::SortKeep, rows, &p, 4.0 * all, 0.0)?
        };
        Ok(self.finish_compact(new)?)
    }
}
