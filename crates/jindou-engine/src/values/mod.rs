//! Expressions: computes their values for rows, as ids or as true, false or error; and aggregates of such values.
//!
//! ```text
//! expression ─ code: compile ─► machine: one row at a time ─► value ─► id (the store's, or a query-local one)
//!                                     └ numbers: columns of many rows at a time, for arithmetic
//! ```
//!
//! The crate `jindou-values` defines what values are, and what `=`, `<`, arithmetic and casts do with them. A term that
//! an expression only passes on keeps its id.

mod aggregate;
mod code;
mod custom;
mod equal;
mod machine;
mod make;
mod members;
mod numbers;
mod order_keys;
mod patterns;
mod ranges;
mod regex;
mod sum;
#[cfg(test)]
mod tests;
mod text;
mod val;

pub(crate) use aggregate::Accumulators;
pub(crate) use equal::{Equals, Partners};
pub(crate) use machine::relation::holds;
pub(crate) use order_keys::{Added, Looked, PLACE_BITS, SortKeys, each_term};
pub(crate) use ranges::{Later, Ordered};

use crate::batch::{OperatorCharge, View};
use crate::eval::EvalContext;
use crate::filter::{ERROR, FALSE, TRUE};
use crate::tree::SlotLayout;
use code::CompiledExpr;
use jindou_model::Result;
use jindou_plan::GeneralExpression;
use machine::{BatchRow, Interpreter};
use numbers::NumericExpr;
use rustc_hash::FxHashMap;
use val::Val;

/// Number of cached results from which on the cache is cleared.
const MEMO: usize = 1 << 20;
/// Number of rows between two checks of the deadline, for expressions of up to [`FEW`] parts. Larger ones are checked
/// more often.
const CHECK: usize = 256;
const FEW: usize = 32;
/// Number of lookups after which the cache is given up if fewer than one in eight was a hit: it then costs more than it
/// saves.
const TRIAL: u32 = 1 << 14;

/// Counts rows until the next check of the deadline.
struct CheckInterval {
    look: usize,
    left: usize,
}

impl CheckInterval {
    fn new(look: usize) -> Self {
        Self { look, left: 1 }
    }

    fn tick(&mut self, ctx: &EvalContext<'_>) -> Result<()> {
        self.left -= 1;
        if self.left == 0 {
            self.left = self.look;
            ctx.check()?;
        }
        Ok(())
    }
}

/// An expression over rows with certain columns, in one worker. Computes either values or effective boolean values.
pub(crate) struct Evaluator {
    compiled: CompiledExpr,
    machine: Interpreter,
    /// Cache of results by the ids of up to two inputs; `None` if computing is faster than looking up.
    memo: Option<FxHashMap<u64, u32>>,
    /// Evaluates many rows at a time; `None` if the expression does not allow that.
    numbers: Option<NumericExpr>,
    /// Number of rows between two checks of the deadline.
    look: usize,
    /// Lookups in the cache that were misses (`asked`) and hits (`knew`) since its benefit was last checked.
    asked: u32,
    knew: u32,
    charge: OperatorCharge,
}

impl Evaluator {
    /// # Errors
    /// `Limit` for an expression nested too deep.
    pub fn new(
        g: &GeneralExpression,
        layout: &SlotLayout<'_>,
        ctx: &EvalContext<'_>,
    ) -> Result<Self> {
        let compiled = code::compile(g, layout, ctx)?;
        let machine = Interpreter::new(&compiled.constants, ctx)?;
        let known = compiled.pure && compiled.inputs.len() <= 2;
        let memo =
            (known && (compiled.is_costly || compiled.inputs.is_empty())).then(FxHashMap::default);
        let numbers = if memo.is_none() {
            NumericExpr::compile(&compiled.code, &machine, ctx)
        } else {
            None
        };
        Ok(Self {
            look: (CHECK * FEW / compiled.parts.max(FEW)).max(1),
            compiled,
            machine,
            memo,
            numbers,
            asked: 0,
            knew: 0,
            charge: OperatorCharge::new(ctx.budget),
        })
    }

    /// Writes the ids of the values in the rows to `out`; 0 for an error.
    ///
    /// # Errors
    /// `Limit` if there is no memory for new terms; `Cancelled`, `Timeout`.
    pub fn column(&mut self, ctx: &EvalContext<'_>, rows: View<'_>, out: &mut [u32]) -> Result<()> {
        if let Some(numbers) = self.numbers.take() {
            return self.numbers_or_rest(numbers, ctx, rows, out);
        }
        let mut clock = CheckInterval::new(self.look);
        for (row, o) in out.iter_mut().enumerate().take(rows.rows) {
            clock.tick(ctx)?;
            *o = self.id_of(ctx, rows, row)?;
        }
        self.machine.trim();
        Ok(())
    }

    fn numbers_or_rest(
        &mut self,
        mut numbers: NumericExpr,
        ctx: &EvalContext<'_>,
        rows: View<'_>,
        out: &mut [u32],
    ) -> Result<()> {
        // `numbers` has the values of rows from `begun` to `done`.
        let (mut begun, mut done) = (0, 0);
        let mut clock = CheckInterval::new(self.look);
        for (row, o) in out.iter_mut().enumerate().take(rows.rows) {
            clock.tick(ctx)?;
            if row == done {
                begun = row;
                done += numbers.values(&mut self.machine, ctx, rows, row)?;
            }
            *o = match numbers.value(row - begun) {
                Some(n) => self.machine.id(ctx, Val::Num(n))?,
                None => self.id_of(ctx, rows, row)?,
            };
        }
        // A comparison has no numeric values, so `numbers` is of no use here.
        let of_use = done > 0 || rows.rows == 0;
        self.numbers = (of_use && !numbers.is_idle()).then_some(numbers);
        self.machine.trim();
        Ok(())
    }

    fn id_of(&mut self, ctx: &EvalContext<'_>, rows: View<'_>, row: usize) -> Result<u32> {
        self.remembered(ctx, BatchRow { rows, row }, |m, value| match value {
            Some(v) => m.id(ctx, v),
            None => Ok(0),
        })
    }

    /// Computes the effective boolean value of each row `from + i` whose `out[i]` is `TRUE` on entry (a *wanted* row).
    /// Entries of other rows are not changed. `rest` is scratch memory.
    pub fn truth(
        &mut self,
        ctx: &EvalContext<'_>,
        rows: View<'_>,
        from: usize,
        out: &mut [u8],
        rest: &mut Vec<usize>,
    ) -> Result<()> {
        if let Some(numbers) = &mut self.numbers {
            rest.clear();
            let done = numbers.truth(&mut self.machine, ctx, rows, from, out, rest)?;
            if !done || numbers.is_idle() {
                self.numbers = None;
            }
            let mut clock = CheckInterval::new(self.look);
            for &i in &*rest {
                clock.tick(ctx)?;
                out[i] = self.truth_of(ctx, rows, from + i)?;
            }
            if done {
                self.machine.trim();
                return Ok(());
            }
        }
        let mut clock = CheckInterval::new(self.look);
        for (i, o) in out.iter_mut().enumerate() {
            if *o != TRUE {
                continue;
            }
            clock.tick(ctx)?;
            *o = self.truth_of(ctx, rows, from + i)?;
        }
        self.machine.trim();
        Ok(())
    }

    fn truth_of(&mut self, ctx: &EvalContext<'_>, rows: View<'_>, row: usize) -> Result<u8> {
        let truth = self.remembered(ctx, BatchRow { rows, row }, |m, value| {
            Ok(match value.and_then(|v| m.truth(ctx, v)) {
                Some(true) => u32::from(TRUE),
                Some(false) => u32::from(FALSE),
                None => u32::from(ERROR),
            })
        })?;
        Ok(truth as u8)
    }

    fn remembered(
        &mut self,
        ctx: &EvalContext<'_>,
        row: BatchRow<'_>,
        end: impl FnOnce(&mut Interpreter, machine::Maybe) -> Result<u32>,
    ) -> Result<u32> {
        let key = self.memo.is_some().then(|| {
            let id = |n: usize| {
                let column = self.compiled.inputs.get(n);
                column.map_or(0, |&c| row.rows.column(c)[row.row])
            };
            u64::from(id(0)) << 32 | u64::from(id(1))
        });
        if let (Some(memo), Some(key)) = (&self.memo, key)
            && let Some(&known) = memo.get(&key)
        {
            self.knew += 1;
            return Ok(known);
        }
        self.machine.clear();
        let value = self.machine.eval(ctx, &self.compiled.code, row)?;
        let result = end(&mut self.machine, value)?;
        self.machine.settle(ctx)?;
        if let (Some(memo), Some(key)) = (&mut self.memo, key) {
            if memo.len() >= MEMO {
                memo.clear();
            }
            memo.insert(key, result);
            // Without memory for the cache, results are no longer cached.
            if self.charge.set(memo.capacity() * 13).is_err() {
                self.memo = None;
                self.charge.set(0)?;
                return Ok(result);
            }
            self.asked += 1;
            if self.asked >= TRIAL {
                if self.knew < self.asked / 7 {
                    self.memo = None;
                    self.charge.set(0)?;
                }
                (self.asked, self.knew) = (0, 0);
            }
        }
        Ok(result)
    }
}
