//! GROUP BY: counts rows by combination of ids. If few combinations are possible, each has a counter of its own;
//! otherwise hash tables assign counters to those that occur.

use super::operators::too_small;
use crate::backend::Kernel;
use crate::buffer::{DeviceBuffer, DeviceMemory};
use crate::compile::{
    DeviceStep, FIRST, GroupPlan, HIGH, LAST, LOW, NUMBER, StepWork, number_column as plain,
};
use crate::counts::TotalUse;
use crate::params::{self, GroupColumnParams, OperandParams, TILE, TestedParams};
use crate::run::{ProgramRun, StepStop};
use crate::table::DeviceTable;
use jindou_model::{Error, Result};
use jindou_plan::{Operand, Slot};

/// Smallest and largest number of slots of a hash table, as powers of two.
pub(crate) const LEAST_SLOTS: u32 = 6;
pub(crate) const MOST_SLOTS: u32 = 30;
/// Number of counters that are converted to rows at a time.
const PART: u64 = 1 << 22;

/// Thresholds for counting rows by combination and for ORDER BY with LIMIT.
#[derive(Clone, Copy, Debug)]
pub struct ReduceOptions {
    /// If at most this many combinations are possible, plus `dense_a_row` per estimated row, each has a counter;
    /// otherwise hash tables are used.
    pub most_dense: u64,
    /// Number of counters allowed per estimated row; see `most_dense`.
    pub dense_a_row: u64,
    /// Slots of a hash table at the first attempt, as a power of two; 0 to derive it from the estimated rows.
    pub log_slots: u32,
    /// Smallest number of rows of a table for which ORDER BY with LIMIT is executed on the device.
    pub least_sorted: u32,
    /// Smallest share of numbers among a variable's possible values, from 0 to 1, for which MIN and MAX use ranks.
    pub numbers: f64,
}

impl Default for ReduceOptions {
    fn default() -> Self {
        Self {
            most_dense: 1 << 20,
            dense_a_row: 4,
            log_slots: 0,
            least_sorted: 1 << 14,
            numbers: 1.0,
        }
    }
}

/// The counters of a GROUP BY in one run.
pub(crate) struct GroupState<'a> {
    plan: &'a GroupPlan,
    /// Hash tables. The first one maps two ids to a slot; each further table maps a slot of the table before it and
    /// another id to a slot. Empty if each possible combination has a counter.
    tables: Vec<DeviceBuffer>,
    log_slots: u32,
    counts: DeviceBuffer,
    /// Number of counters.
    size: u64,
    /// The smallest and the largest rank in each combination, if they are needed.
    best: Option<[DeviceBuffer; 2]>,
    /// Three flags that kernels set: an id was outside of its column's numbering, a hash table was too full, a value
    /// had no rank.
    flags: DeviceBuffer,
}

impl<'a> GroupState<'a> {
    /// Allocates counters, in at most half of the memory.
    ///
    /// # Errors
    /// `Unsupported` if they do not fit.
    pub fn new(
        memory: &DeviceMemory,
        plan: &'a GroupPlan,
        options: &ReduceOptions,
    ) -> Result<Self> {
        let refused = || {
            Error::Unsupported("more groups than the GPU's memory for tables has room for".into())
        };
        let room = memory.left() / 2;
        let combinations = plan.combinations();
        let dense_rows = options.dense_a_row.saturating_mul(plan.rows as u64);
        let dense = options.most_dense.saturating_add(dense_rows);
        let counter = if plan.best.is_some() { 24 } else { 8 };
        let fits = combinations <= 1 << 31 && combinations * counter <= room;
        // One hash table for the first two columns, and one more for each further column; all tested columns together
        // count as one.
        let parts = plan.columns.len() + usize::from(!plan.tested.is_empty());
        let levels = parts.saturating_sub(1).max(1);
        let (mut log_slots, mut tables, mut size) = (0, Vec::new(), combinations);
        if !fits || combinations > dense {
            let slot_bytes = 8 * levels as u64 + counter;
            let most = (room / slot_bytes)
                .checked_ilog2()
                .unwrap_or(0)
                .min(MOST_SLOTS);
            let wanted = match plan.log_slots.get() {
                0 => (2 * (plan.rows as u64).min(combinations)).max(1).ilog2() + 1,
                log => log,
            };
            log_slots = wanted.clamp(LEAST_SLOTS, MOST_SLOTS);
            log_slots = log_slots.min(most);
            // A table of the size that was too small before is not tried again.
            let was = plan.full.get().then(|| wanted.saturating_sub(GROUP_GROWTH));
            if most < LEAST_SLOTS || was.is_some_and(|was| was >= log_slots) {
                return Err(refused());
            }
            size = 1 << log_slots;
            for _ in 0..levels {
                let table = memory.alloc(size * 8)?.ok_or_else(refused)?;
                table.clear()?;
                tables.push(table);
            }
        }
        plan.log_slots.set(log_slots);
        plan.full.set(false);
        let counts = memory.alloc(size * 8)?.ok_or_else(refused)?;
        counts.clear()?;
        let best = match &plan.best {
            None => None,
            Some(_) => {
                let both = [
                    memory.alloc(size * 8)?.ok_or_else(refused)?,
                    memory.alloc(size * 8)?.ok_or_else(refused)?,
                ];
                both.iter().try_for_each(DeviceBuffer::clear)?;
                Some(both)
            }
        };
        let flags = memory.alloc(12)?.ok_or_else(refused)?;
        flags.clear()?;
        Ok(Self {
            plan,
            tables,
            log_slots,
            counts,
            size,
            best,
            flags,
        })
    }
}

/// Factor, as a power of two, by which a hash table that was too small is enlarged.
pub(crate) const GROUP_GROWTH: u32 = 4;

/// How the rows of a table map to counters.
struct Numbered {
    by: [GroupColumnParams; params::MAX_GROUP],
    columns: u32,
    tested: TestedParams,
    /// The memory of a column of slots.
    _slots: Option<DeviceBuffer>,
}

impl ProgramRun<'_, '_, '_> {
    /// Counts the rows of a table. If `prefix` is not 0, it is the address of prefix sums of lengths, and each row
    /// counts as many times as its list is long.
    pub(crate) fn count_groups(
        &mut self,
        table: &DeviceTable,
        prefix: u64,
    ) -> Result<(), StepStop> {
        let Some(state) = self.groups.take() else {
            return Err(Error::Internal("a GROUP BY without counters".into()).into());
        };
        let done = self.add_to(&state, table, prefix);
        self.groups = Some(state);
        done
    }

    fn add_to(
        &mut self,
        state: &GroupState<'_>,
        table: &DeviceTable,
        prefix: u64,
    ) -> Result<(), StepStop> {
        let numbered = self.numbers_of(state, table)?;
        let p = params::GroupAddParams {
            by: numbered.by,
            tested: numbered.tested,
            prefix,
            counts: state.counts.at(),
            missed: state.flags.at(),
            rows: table.rows,
            columns: numbered.columns,
        };
        let read = 4 * (numbered.columns + numbered.tested.count) + if prefix == 0 { 0 } else { 8 };
        let rows = u64::from(table.rows);
        // SAFETY: columns hold `rows` ids, the sums one more; there is a counter for each number that a row can get.
        unsafe {
            self.queue.launch(
                Kernel::GroupAdd,
                rows,
                &p,
                f64::from(read) * rows as f64,
                0.0,
            )?
        };
        let Some(((slot, ranks), [least, most])) =
            state.plan.best.as_ref().zip(state.best.as_ref())
        else {
            return Ok(());
        };
        let p = params::GroupBestParams {
            by: numbered.by,
            tested: numbered.tested,
            prefix,
            ranks: ranks.params(),
            value: table.operand(Operand::Slot(*slot))?,
            least: least.at(),
            most: most.at(),
            unranked: state.flags.at() + 8,
            rows: table.rows,
            columns: numbered.columns,
        };
        let read = f64::from(read + 8) * rows as f64;
        // SAFETY: as above; there are two values for each counter, and the plan keeps the ranks alive.
        unsafe { self.queue.launch(Kernel::GroupBest, rows, &p, read, 0.0)? };
        Ok(())
    }

    /// The columns from which a row's counter is computed: the ids, or the slots in the last hash table.
    fn numbers_of(
        &mut self,
        state: &GroupState<'_>,
        table: &DeviceTable,
    ) -> Result<Numbered, StepStop> {
        let mut tested: TestedParams = bytemuck::Zeroable::zeroed();
        for (to, &slot) in tested.columns.iter_mut().zip(&state.plan.tested) {
            *to = table.operand(Operand::Slot(slot))?.column;
            tested.count += 1;
        }
        let mut by: [GroupColumnParams; params::MAX_GROUP] = bytemuck::Zeroable::zeroed();
        let mut operands = Vec::new();
        for (slot, _) in &state.plan.columns {
            operands.push(table.operand(Operand::Slot(*slot))?);
        }
        if state.tables.is_empty() {
            for ((to, (_, column)), operand) in by.iter_mut().zip(&state.plan.columns).zip(operands)
            {
                *to = GroupColumnParams { operand, ..*column };
            }
            return Ok(Numbered {
                by,
                columns: state.plan.columns.len() as u32,
                tested,
                _slots: None,
            });
        }
        let rows = u64::from(table.rows);
        let mut slots = None;
        let mut left = operands
            .first()
            .copied()
            .unwrap_or(OperandParams::constant(0));
        for (level, keys) in state.tables.iter().enumerate() {
            let right = operands.get(level + 1).copied();
            let none: TestedParams = bytemuck::Zeroable::zeroed();
            let out = self.memory.alloc(rows * 4)?.ok_or(StepStop::TooLarge)?;
            let p = params::GroupSlotsParams {
                left,
                right: right.unwrap_or(OperandParams::constant(0)),
                tested: if right.is_some() { none } else { tested },
                keys: keys.at(),
                out: out.at(),
                full: state.flags.at() + 4,
                rows: table.rows,
                log_slots: state.log_slots,
            };
            let columns = [p.left, p.right].iter().filter(|o| o.column != 0).count() as u32;
            let read = f64::from(4 * (columns + p.tested.count)) * rows as f64;
            // SAFETY: columns hold `rows` ids, the output has room for as many slots; the table has 2^log_slots keys.
            unsafe {
                self.queue
                    .launch(Kernel::GroupSlots, rows, &p, read, 4.0 * rows as f64)?
            };
            left = OperandParams::column(out.at());
            // The column of the table before is freed after the kernel that reads it, by the order of the queue.
            slots = Some(out);
        }
        by[0] = plain(left, state.size);
        Ok(Numbered {
            by,
            columns: 1,
            tested: bytemuck::Zeroable::zeroed(),
            _slots: slots,
        })
    }

    /// True if the rows of step `k` are counted by a GROUP BY.
    pub(crate) fn is_grouped(&self, k: usize) -> bool {
        let next = self.steps.get(k + 1).map(|s| &s.work);
        matches!(next, Some(StepWork::Group { .. }))
    }

    /// If step `k` is an expansion whose new column the GROUP BY after it does not read: adds the lengths of its lists
    /// to the counters, without producing rows, and returns true.
    pub(crate) fn grouped(
        &mut self,
        k: usize,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
    ) -> Result<bool, StepStop> {
        let Some(StepWork::Group { ids, tested }) = self.steps.get(k + 1).map(|s| &s.work) else {
            return Ok(false);
        };
        let StepWork::Expand { to, lists, within } = &step.work else {
            return Ok(false);
        };
        let [one] = lists.as_slice() else {
            return Ok(false);
        };
        if ids.contains(to)
            || tested.contains(to)
            || within.left(lists).count != 0
            || one.constant.is_some()
            || one.segment.is_degree_one()
        {
            return Ok(false);
        }
        let measured = self.measure_lists(table, lists, within, TotalUse::Number)?;
        self.queue.rows(u64::from(table.rows), measured.total());
        self.queue.at_step(k + 1);
        self.count_groups(table, measured.prefix())?;
        self.queue.rows(measured.total(), 0);
        Ok(true)
    }

    /// Passes on the combinations with their counts, after all rows have been counted.
    pub(crate) fn finish_groups(&mut self) -> Result<()> {
        let Some(state) = self.groups.take() else {
            return Ok(());
        };
        self.queue.at_step(self.steps.len());
        let flags = state.flags.at();
        // SAFETY: the flags are three words.
        let [missed, full, unranked] = unsafe { self.read_words([flags, flags + 4, flags + 8])? };
        state.plan.full.set(full != 0);
        state.plan.unranked.set(unranked != 0);
        if full != 0 || unranked != 0 {
            return Ok(());
        }
        if missed != 0 {
            return Err(Error::Internal("a group's id outside of its range".into()));
        }
        let mut begin = 0;
        while begin < state.size {
            self.cancel.check()?;
            self.turn.pass()?;
            let columns = 7 + state.plan.columns.len() + state.plan.tested.len();
            let fit = self.memory.left() / 2 / (4 * columns as u64) / TILE * TILE;
            let mut part = fit
                .clamp(TILE, PART.min(self.most_rows))
                .min(state.size - begin);
            let table = loop {
                match self.combinations(&state, begin, part) {
                    Ok(table) => break table,
                    Err(StepStop::Error(e)) => return Err(e),
                    Err(StepStop::TooLarge) if part > TILE => part = (part / 2).max(TILE),
                    Err(StepStop::TooLarge) => {
                        return Err(too_small(self.memory.left()));
                    }
                }
            };
            self.queue.rows(0, u64::from(table.rows));
            if table.rows > 0 {
                self.emit(&table)?;
            }
            begin += part;
        }
        Ok(())
    }

    /// Converts the `counters` counters from `begin` on to rows, one for each combination that occurred.
    fn combinations(
        &mut self,
        state: &GroupState<'_>,
        begin: u64,
        counters: u64,
    ) -> Result<DeviceTable, StepStop> {
        let new = self.new_table(vec![NUMBER, LOW, HIGH], counters)?;
        let p = params::GroupRowsParams {
            counts: state.counts.at(),
            counter: self.next_counter()?,
            number: new.at(0),
            low: new.at(1),
            high: new.at(2),
            begin: begin as u32,
            rows: counters as u32,
        };
        // SAFETY: there are as many counters from `begin` on, and room for as many rows.
        unsafe {
            self.queue
                .launch(Kernel::GroupRows, counters, &p, 8.0 * counters as f64, 0.0)?
        };
        let rows = self.read_counter()?;
        self.queue.add_bytes(0.0, 12.0 * f64::from(rows));
        let mut table = new.finish(rows);
        let numbers = table.operand(Operand::Slot(NUMBER))?.column;
        let plan = state.plan;
        if let Some([least, most]) = &state.best {
            let new = self.new_table(vec![FIRST, LAST], u64::from(rows))?;
            let p = params::GroupEndsParams {
                least: least.at(),
                most: most.at(),
                numbers,
                first: new.at(0),
                last: new.at(1),
                rows,
                pad: 0,
            };
            let moved = f64::from(rows);
            // SAFETY: the numbers are those of counters, each of which has two values; there is room for as many pairs.
            unsafe {
                self.queue.launch(
                    Kernel::GroupEnds,
                    u64::from(rows),
                    &p,
                    20.0 * moved,
                    8.0 * moved,
                )?
            };
            table.columns.extend(new.finish(rows).columns);
        }
        if state.tables.is_empty() {
            let ids: Vec<Slot> = plan.columns.iter().map(|c| c.0).collect();
            let mut by: [GroupColumnParams; params::MAX_GROUP] = bytemuck::Zeroable::zeroed();
            for (to, (_, column)) in by.iter_mut().zip(&plan.columns) {
                *to = *column;
            }
            self.ids(&mut table, numbers, by, &ids, &plan.tested)?;
            return Ok(table);
        }
        let mut slots = numbers;
        for (level, keys) in state.tables.iter().enumerate().rev() {
            let below = (level > 0).then_some(NUMBER);
            let left = below.or(plan.columns.first().map(|c| c.0));
            let right = plan.columns.get(level + 1).map(|c| c.0);
            let names = vec![left.unwrap_or(NUMBER), right.unwrap_or(NUMBER)];
            let new = self.new_table(names, u64::from(rows))?;
            let p = params::GroupKeysParams {
                keys: keys.at(),
                slots,
                left: new.at(0),
                right: new.at(1),
                rows,
                pad: 0,
            };
            let moved = f64::from(rows);
            // SAFETY: the slots are of keys in this table, and there is room for as many pairs.
            unsafe {
                self.queue.launch(
                    Kernel::GroupKeys,
                    u64::from(rows),
                    &p,
                    12.0 * moved,
                    8.0 * moved,
                )?
            };
            slots = new.at(0);
            let bits = new.at(1);
            // The table keeps all columns alive, including those that only later kernels read.
            table.columns.extend(new.finish(rows).columns);
            if right.is_none() && !plan.tested.is_empty() {
                let none = bytemuck::Zeroable::zeroed();
                self.ids(&mut table, bits, none, &[], &plan.tested)?;
            }
        }
        Ok(table)
    }

    /// Appends the columns of ids, and of whether tested columns are bound, that the numbers of combinations stand for.
    fn ids(
        &mut self,
        table: &mut DeviceTable,
        numbers: u64,
        by: [GroupColumnParams; params::MAX_GROUP],
        ids: &[Slot],
        tested: &[Slot],
    ) -> Result<(), StepStop> {
        let names: Vec<Slot> = ids.iter().chain(tested).copied().collect();
        if names.is_empty() {
            return Ok(());
        }
        let width = names.len();
        let new = self.new_table(names, u64::from(table.rows))?;
        let mut p: params::GroupIdsParams = bytemuck::Zeroable::zeroed();
        (p.by, p.numbers, p.rows) = (by, numbers, table.rows);
        (p.columns, p.tests) = (ids.len() as u32, tested.len() as u32);
        for (i, to) in p.out.iter_mut().enumerate().take(ids.len()) {
            *to = new.at(i);
        }
        for (i, to) in p.tested.iter_mut().enumerate().take(tested.len()) {
            *to = new.at(ids.len() + i);
        }
        let rows = f64::from(table.rows);
        // SAFETY: numbers and outputs have `rows` entries.
        unsafe {
            self.queue.launch(
                Kernel::GroupIds,
                u64::from(table.rows),
                &p,
                4.0 * rows,
                4.0 * rows * width as f64,
            )?
        };
        table.columns.extend(new.finish(table.rows).columns);
        Ok(())
    }
}
