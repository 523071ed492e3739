//! Execution of operators above patterns: comparisons by rank, DISTINCT by a bitmap, and `Apply`, whose inner steps
//! process numbered rows.

use crate::backend::Kernel;
use crate::buffer::DeviceBuffer;
use crate::compile::{DeviceStep, StepWork};
use crate::counts::TotalUse;
use crate::params::{self, ColumnsParams};
use crate::ranks::DeviceRanks;
use crate::run::{OuterFrame, ProgramRun, StepStop};
use crate::table::{DeviceTable, NewTable};
use bytemuck::Zeroable;
use jindou_model::{Error, Resource, Result};
use jindou_plan::{ApplyKind, Operand, Slot};
use std::sync::Arc;

/// An `Apply`, with what its first and its last step need.
struct ApplyWork<'p> {
    kind: ApplyKind,
    end: usize,
    number: Slot,
    new: &'p [Slot],
}

fn part<'p>(steps: &'p [DeviceStep<'_>], begin: usize) -> Result<ApplyWork<'p>> {
    match steps.get(begin).map(|s| &s.work) {
        Some(StepWork::Apply {
            kind,
            end,
            number,
            new,
            ..
        }) => Ok(ApplyWork {
            kind: *kind,
            end: *end,
            number: *number,
            new,
        }),
        _ => Err(Error::Internal("an inner part without a beginning".into())),
    }
}

/// The error of a query for whose tables the `left` bytes of memory do not suffice.
pub(super) fn too_small(left: u64) -> Error {
    Error::limit(
        Resource::Device,
        format!(
            "the GPU's memory for tables is too small for this query ({} KiB left)",
            left >> 10
        ),
    )
}

impl<'a> ProgramRun<'a, '_, '_> {
    /// Keeps rows in which the number in a column satisfies a comparison.
    pub(crate) fn compare(
        &mut self,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
        slot: Slot,
        ranks: &DeviceRanks,
    ) -> Result<DeviceTable, StepStop> {
        let new = self.kept_table(step, table, None)?;
        let p = params::CompareParams {
            compact: self.compact_of(table, &new, &step.keep)?,
            operand: table.operand(Operand::Slot(slot))?,
            ranks: ranks.params,
        };
        // SAFETY: columns hold `rows` ids, outputs have room for as many; the program keeps the ranks alive.
        unsafe { self.launch_over(Kernel::Compare, table, &p, (8.0, 0.0))? };
        Ok(self.finish_compact(new)?)
    }

    /// Keeps rows whose id occurred in no earlier row.
    pub(crate) fn distinct(
        &mut self,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
        slot: Slot,
        set: usize,
    ) -> Result<DeviceTable, StepStop> {
        let new = self.kept_table(step, table, None)?;
        let bits = match self.sets.get(set) {
            Some((_, bits)) => *bits,
            None => return Err(Error::Internal("a DISTINCT without its set".into()).into()),
        };
        let p = params::DistinctParams {
            compact: self.compact_of(table, &new, &step.keep)?,
            bits,
            operand: table.operand(Operand::Slot(slot))?,
        };
        // SAFETY: as in `compare`; the bitmap has a bit for each id, and lives as long as the run.
        unsafe { self.launch_over(Kernel::Distinct, table, &p, (8.0, 0.0))? };
        Ok(self.finish_compact(new)?)
    }

    /// Executes the inner steps of an `Apply` over the table's rows, numbered. Then continues with the outer rows that
    /// belong to the result without an inner row (for OPTIONAL and NOT EXISTS) or because of one (for EXISTS).
    pub(crate) fn apply(
        &mut self,
        k: usize,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
    ) -> Result<()> {
        let (bits, inner) = match self.numbered(step, table) {
            Ok(made) => made,
            Err(StepStop::Error(e)) => return Err(e),
            Err(StepStop::TooLarge) => return self.halves(k, table),
        };
        self.queue.rows(u64::from(table.rows), 0);
        let outer = DeviceTable {
            rows: table.rows,
            count: None,
            columns: table.kept(&step.keep).cloned().collect(),
        };
        self.frames.push(OuterFrame {
            begin: k,
            outer: outer.clone(),
            bits: bits.at(),
        });
        let ran = self.run(k + 1, inner);
        self.frames.pop();
        ran?;
        self.alone(k, &outer, &bits, 0, outer.rows)
    }

    /// Allocates a bitmap with a bit for each row, and a table of the columns that the inner steps read and of the
    /// rows' numbers.
    fn numbered(
        &mut self,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
    ) -> Result<(DeviceBuffer, DeviceTable), StepStop> {
        let StepWork::Apply {
            number,
            numbers,
            reads,
            ..
        } = &step.work
        else {
            return Err(Error::Internal("another step than an inner part".into()).into());
        };
        let rows = table.rows;
        let words = u64::from(rows).div_ceil(32);
        let bits = self.memory.alloc(words * 4)?.ok_or(StepStop::TooLarge)?;
        bits.clear()?;
        let new = self.new_table(vec![*number], u64::from(rows))?;
        let p = params::StartIntervalsParams {
            intervals: numbers.params.table,
            before: numbers.before,
            out: new.at(0),
            begin: 0,
            count: numbers.params.count,
            rows,
        };
        let written = 4.0 * f64::from(rows);
        // SAFETY: `out` has room for `rows` numbers; the program keeps the interval of all numbers alive.
        unsafe {
            self.queue
                .launch(Kernel::StartIntervals, u64::from(rows), &p, 0.0, written)?
        };
        let mut inner = new.finish(rows);
        inner.columns.extend(table.kept(reads).cloned());
        Ok((bits, inner))
    }

    /// Continues with those outer rows in `from .. to` that have inner rows, or with those that have none, as the
    /// `Apply` requires.
    fn alone(
        &mut self,
        k: usize,
        outer: &DeviceTable,
        bits: &DeviceBuffer,
        from: u32,
        to: u32,
    ) -> Result<()> {
        let steps = self.steps;
        let ApplyWork { kind, end, new, .. } = part(steps, k)?;
        let want = match kind {
            ApplyKind::Inner => return Ok(()),
            ApplyKind::Semi => 1,
            _ => 0,
        };
        self.cancel.check()?;
        self.queue.at_step(k);
        // The columns of the inner steps that are read later; they are unbound in the rows that found no match.
        let read = |s: &Slot| steps.get(end).is_some_and(|e| e.keep.contains(s));
        let new: Vec<Slot> = new.iter().copied().filter(read).collect();
        match self.marked(outer, bits, (from, to), want, &new) {
            Ok(next) => {
                self.queue.rows(0, u64::from(next.rows));
                self.run(end + 1, next)
            }
            Err(StepStop::Error(e)) => Err(e),
            Err(StepStop::TooLarge) if to - from < 2 => Err(too_small(self.memory.left())),
            Err(StepStop::TooLarge) => {
                self.cuts += 1;
                let middle = from + (to - from) / 2;
                self.alone(k, outer, bits, from, middle)?;
                self.alone(k, outer, bits, middle, to)
            }
        }
    }

    /// The rows whose bit is `want`, with a column of zeros (unbound) for each slot in `new`.
    fn marked(
        &mut self,
        outer: &DeviceTable,
        bits: &DeviceBuffer,
        (from, to): (u32, u32),
        want: u32,
        unbound: &[Slot],
    ) -> Result<DeviceTable, StepStop> {
        let part = outer.part(from, to);
        let mut slots: Vec<Slot> = part.columns.iter().map(|c| c.slot).collect();
        let carried = slots.len();
        slots.extend(unbound);
        let new = self.new_table(slots, u64::from(part.rows))?;
        let keep: Vec<Slot> = part.columns.iter().map(|c| c.slot).collect();
        let p = params::TestParams {
            compact: self.compact_of(&part, &new, &keep)?,
            bits: rows_of(bits.at(), outer.rows),
            operand: params::OperandParams::constant(0),
            want,
            by_row: 1,
            first: from,
            pad: 0,
        };
        let bytes = 4.0 * f64::from(part.rows);
        // SAFETY: columns hold `rows` ids, outputs have room for as many; the bitmap has a bit for each outer row.
        unsafe {
            self.queue
                .launch(Kernel::Test, u64::from(part.rows), &p, bytes, 0.0)?
        };
        let kept = self.read_counter()?;
        let moved = 4.0 * carried as f64 * f64::from(kept);
        self.queue.add_bytes(moved, moved);
        for i in carried..new.slots.len() {
            // SAFETY: the column has room for at least `kept` rows.
            unsafe { self.queue.device.zero(new.at(i), kept as usize * 4)? };
        }
        Ok(new.finish(kept))
    }

    /// The end of an `Apply`'s inner steps: records which outer rows have inner rows, and continues with the joined
    /// rows if they are part of the result.
    pub(crate) fn end_apply(&mut self, k: usize, begin: usize, table: &DeviceTable) -> Result<()> {
        let steps = self.steps;
        let ApplyWork {
            kind, number, new, ..
        } = part(steps, begin)?;
        let frame = self.frames.iter().rev().find(|f| f.begin == begin);
        let frame = frame
            .cloned()
            .ok_or_else(|| Error::Internal("an inner part outside of its rows".into()))?;
        if kind != ApplyKind::Inner {
            self.mark(&frame, table, number, 0)?;
        }
        if matches!(kind, ApplyKind::Semi | ApplyKind::Anti) {
            self.queue.rows(u64::from(table.rows), 0);
            return Ok(());
        }
        let slots: Vec<Slot> = frame.outer.columns.iter().map(|c| c.slot).collect();
        let made = match self.new_table(slots, u64::from(table.rows)) {
            Ok(made) => made,
            Err(StepStop::Error(e)) => return Err(e),
            Err(StepStop::TooLarge) => return self.halves(k, table),
        };
        self.gather(&frame, table, number, &made)?;
        let mut next = made.finish(table.rows);
        next.columns.extend(table.kept(new).cloned());
        self.queue.rows(u64::from(table.rows), u64::from(next.rows));
        self.run(k + 1, next)
    }

    /// Copies the outer rows' columns to the inner rows, by the row numbers in the latter.
    fn gather(
        &mut self,
        frame: &OuterFrame,
        table: &DeviceTable,
        number: Slot,
        to: &NewTable,
    ) -> Result<()> {
        let columns: ColumnsParams = to.columns(frame.outer.columns.iter());
        if columns.count == 0 {
            return Ok(());
        }
        let p = params::GatherParams {
            columns,
            index: table.operand(Operand::Slot(number))?.column,
            rows: table.rows,
            pad: 0,
        };
        let (rows, count) = (f64::from(table.rows), f64::from(columns.count));
        // SAFETY: the outer columns have rows with these numbers; outputs have room for `rows`.
        unsafe {
            self.queue.launch(
                Kernel::Gather,
                u64::from(table.rows),
                &p,
                4.0 * rows * (1.0 + count),
                4.0 * rows * count,
            )
        }
    }

    /// Sets the bits of the outer rows whose numbers occur in the table. If `prefix` is not 0, it is the address of
    /// prefix sums of lengths, and rows with an empty list are ignored.
    fn mark(
        &mut self,
        frame: &OuterFrame,
        table: &DeviceTable,
        number: Slot,
        prefix: u64,
    ) -> Result<()> {
        let p = params::MarkParams {
            bits: rows_of(frame.bits, frame.outer.rows),
            operand: table.operand(Operand::Slot(number))?,
            prefix,
            rows: table.rows,
            pad: 0,
        };
        let a_row = if prefix == 0 { 8.0 } else { 16.0 };
        let bytes = a_row * f64::from(table.rows);
        // SAFETY: the column holds `rows` numbers, the sums one more; the bitmap has a bit for each outer row.
        unsafe {
            self.queue
                .launch(Kernel::Mark, u64::from(table.rows), &p, bytes, 0.0)
        }
    }

    /// If step `k` is the last inner step of an `Apply` that only tests for existence: marks the outer rows by the
    /// lengths of the step's lists, without producing rows, and returns true.
    pub(crate) fn sought(
        &mut self,
        k: usize,
        step: &DeviceStep<'_>,
        table: &DeviceTable,
    ) -> Result<bool, StepStop> {
        let Some(StepWork::EndApply { begin }) = self.steps.get(k + 1).map(|s| &s.work) else {
            return Ok(false);
        };
        let steps: &'a [DeviceStep<'_>] = self.steps;
        let ApplyWork { kind, number, .. } = part(steps, *begin)?;
        let StepWork::Expand { lists, within, .. } = &step.work else {
            return Ok(false);
        };
        let [one] = lists.as_slice() else {
            return Ok(false);
        };
        if !matches!(kind, ApplyKind::Semi | ApplyKind::Anti)
            || within.left(lists).count != 0
            || one.constant.is_some()
            || one.segment.is_degree_one()
        {
            return Ok(false);
        }
        let frame = self
            .frames
            .iter()
            .rev()
            .find(|f| f.begin == *begin)
            .cloned();
        let frame =
            frame.ok_or_else(|| Error::Internal("an inner part outside of its rows".into()))?;
        let measured = self.measure_lists(table, lists, within, TotalUse::Number)?;
        self.queue.rows(u64::from(table.rows), measured.total);
        self.queue.at_step(k + 1);
        self.mark(&frame, table, number, measured.prefix)?;
        Ok(true)
    }
}

/// A bitmap with a bit for each of this many rows.
fn rows_of(words: u64, rows: u32) -> params::Bits {
    params::Bits {
        words,
        dense: rows,
        first_tail: u32::MAX,
        ..params::Bits::zeroed()
    }
}

/// Allocates the bitmaps of a run, empty.
pub(crate) fn sets_of(
    memory: &crate::buffer::DeviceMemory,
    sets: &[params::Bits],
) -> Result<Vec<(Arc<DeviceBuffer>, params::Bits)>> {
    let made = sets.iter().map(|set| {
        let words = (u64::from(set.dense) + u64::from(set.tail)).div_ceil(32);
        let buffer = memory.alloc(words * 4)?;
        let buffer = buffer.ok_or_else(|| too_small(memory.left()))?;
        buffer.clear()?;
        let bits = params::Bits {
            words: buffer.at(),
            ..*set
        };
        Ok((Arc::new(buffer), bits))
    });
    made.collect()
}
