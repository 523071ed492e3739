//! The last step of a query that needs only the number of result rows: lengths of lists are added up, and no row is
//! produced.

use crate::compile::{DeviceStep, StepWork};
use crate::counts::TotalUse;
use crate::run::{ProgramRun, StepStop};
use crate::table::DeviceTable;

impl ProgramRun<'_, '_, '_> {
    /// True if step `k` is the last one of such a query, and each of its input rows contributes the same number of
    /// result rows.
    pub(crate) fn multiplies(&self, k: usize, step: &DeviceStep<'_>) -> bool {
        k + 1 == self.steps.len()
            && self.wants_number()
            && match &step.work {
                StepWork::Cross { .. } => true,
                StepWork::Expand { lists, .. } => lists.iter().all(|l| l.constant.is_some()),
                _ => false,
            }
    }

    /// The number of rows that step `k` would produce from a table, if only this is needed and the lengths of lists
    /// determine it. `None` if the step must be executed, because it tests its outputs, or if that is as cheap.
    pub(crate) fn counted(
        &mut self,
        k: usize,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
    ) -> Result<Option<u64>, StepStop> {
        if k + 1 != self.steps.len() || !self.wants_number() {
            return Ok(None);
        }
        // Both factors are less than 2^32, so their product fits in 64 bits.
        let times = |length: u64| u64::from(table.rows).checked_mul(length);
        match &step.work {
            StepWork::Expand { lists, within, .. } => {
                let [one] = lists.as_slice() else {
                    return Ok(None);
                };
                let all = within.params.count == 0;
                match one.constant {
                    Some((_, length)) if all || one.cut && within.params.count == 1 => {
                        Ok(times(u64::from(length)))
                    }
                    None if !one.segment.is_degree_one() && within.left(lists).count == 0 => {
                        Ok(Some(
                            self.measure_lists(table, lists, within, TotalUse::Number)?
                                .total,
                        ))
                    }
                    _ => Ok(None),
                }
            }
            StepWork::Cross { source, .. } => Ok(times(source.rows())),
            StepWork::ExpandAny {
                anchor,
                predicate,
                catalog,
                ..
            } => {
                let measured =
                    self.measure_any(table, *anchor, *predicate, catalog, TotalUse::Number)?;
                Ok(Some(measured.total))
            }
            _ => Ok(None),
        }
    }
}
