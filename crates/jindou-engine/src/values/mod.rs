//! Expressions: values of rows as ids, and as true, false or error; aggregates over them.
//!
//! ```text
//! expression ─ code: compile ─► machine: one row at a time ─► value ─► id (the store's, or a query-local one)
//!                                     └ numbers: columns of many rows, where all is arithmetic
//! ```
//!
//! The crate `jindou-values` says what values are, and what `=`, `<`, arithmetic and casts make of them. Terms that an expression
//! only passes on stay the terms they are.

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

/// Largest number of cached values; beyond it, the cache is cleared.
const MEMO: usize = 1 << 20;
/// Rows between two checks of the deadline, for expressions of up to [`FEW`] parts: fewer for larger ones.
const CHECK: usize = 256;
const FEW: usize = 32;
/// Rows after which a cache with hits for fewer than one row in eight is given up: values that hardly repeat are
/// computed faster than cached.
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

/// An expression over rows with certain columns. One per worker, and either for values or for truths.
pub(crate) struct Evaluator {
    compiled: CompiledExpr,
    machine: Interpreter,
    /// Results by the ids of one or two inputs, where computing costs more than looking up.
    memo: Option<FxHashMap<u64, u32>>,
    /// Evaluation of many rows at a time, if the expression allows it.
    numbers: Option<NumericExpr>,
    /// Rows between two checks of the deadline.
    look: usize,
    /// Lookups in the cache since its benefit was last checked, and the hits among them.
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

    /// Ids of the values of the rows, 0 for an error.
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
        // Rows from `begun` to `done` are computed.
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
        // It does not give values of comparisons.
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

    /// Computes effective boolean values of the rows `from ..` for which `out` is `TRUE` ("wanted"); others are not
    /// changed. `rest` is scratch memory for positions of rows.
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
            // Without room nothing is cached.
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
