//! Expressions: computes their values for rows, as ids, as sort keys, or as true, false or error; and aggregates of such
//! values.
//!
//! ```text
//! expression ─ code: compile ─► machine: one row at a time ─► value ┬► id (the store's, or a query-local one)
//!                                     └ numbers: columns of many    ├► value_keys: sort key without an id
//!                                       rows at a time              └► true, false or error
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
mod value_keys;

pub(crate) use aggregate::Accumulators;
pub(crate) use equal::{Equals, Partners};
pub(crate) use machine::relation::holds;
pub(crate) use order_keys::{Added, Looked, PLACE_BITS, SortKeys, each_term, sorted};
pub(crate) use ranges::{Later, Ordered};
pub(crate) use value_keys::{BEYOND, ValueKeys};

use crate::batch::{OperatorCharge, View};
use crate::eval::EvalContext;
use crate::filter::{ERROR, FALSE, TRUE};
use crate::tree::SlotLayout;
use code::{Code, CompiledExpr};
use jindou_dictionary::Dictionary;
use jindou_model::{FIRST_TAIL_ID, Result, VertexId};
use jindou_plan::GeneralExpression;
use jindou_values::pattern::Pattern;
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

/// Largest number of terms in the dictionary for each row of a batch with which the rows are put in its order. With
/// more, rows have few of the dictionary's blocks in common.
const DENSE: u64 = 16;

/// Number of rows whose terms are prefetched together.
const AHEAD: usize = 32;

/// Matches a pattern with the terms of ids, as [`Interpreter::match_term`]. Calls `take` with positions and results.
fn match_terms(
    ctx: &EvalContext<'_>,
    machine: &mut Interpreter,
    pattern: (&Pattern, bool),
    ids: &[u32],
    mut take: impl FnMut(usize, u8),
) -> Result<()> {
    let mut clock = CheckInterval::new(CHECK);
    let mut last = Ok((0, ERROR));
    each_term(&mut ctx.vocabulary.decoding(), ids, |at, term| {
        let Ok((id, mut truth)) = last else { return };
        if ids[at] != id {
            let matched = machine.match_term(ctx, pattern, ids[at], term);
            last = clock.tick(ctx).and(matched).map(|truth| (ids[at], truth));
            truth = match last {
                Ok((_, truth)) => truth,
                Err(_) => return,
            };
        }
        take(at, truth);
    });
    last.map(|_| ())
}

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
    /// Scratch memory: lex indexes with positions of rows, and ids.
    order: Vec<u64>,
    ids: Vec<u32>,
    order_charge: OperatorCharge,
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
            order: vec![],
            ids: vec![],
            order_charge: OperatorCharge::new(ctx.budget),
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
        self.results(ctx, rows, out, |m, value| match value {
            Some(v) => m.id(ctx, v),
            None => Ok(0),
        })
    }

    /// Adds the values in the rows to `keys`, and writes their numbers there to `out`. With a bound, as
    /// [`ValueKeys::add_within`].
    ///
    /// # Errors
    /// `Limit` if there is no memory for the values; `Cancelled`, `Timeout`.
    pub fn keys(
        &mut self,
        ctx: &EvalContext<'_>,
        rows: View<'_>,
        out: &mut [u32],
        keys: &mut ValueKeys,
        bound: Option<(u32, bool)>,
    ) -> Result<()> {
        self.results(ctx, rows, out, |m, value| match bound {
            None => keys.add(m, ctx, value),
            Some(bound) => keys.add_within(m, ctx, value, bound),
        })
    }

    /// Clears the cache of results.
    pub fn forget(&mut self) {
        if let Some(memo) = &mut self.memo {
            memo.clear();
        }
    }

    /// Writes the result of each row to `out`, as `end` makes it from the value.
    fn results(
        &mut self,
        ctx: &EvalContext<'_>,
        rows: View<'_>,
        out: &mut [u32],
        mut end: impl FnMut(&mut Interpreter, machine::Maybe) -> Result<u32>,
    ) -> Result<()> {
        self.fetch(ctx, rows, 0..rows.rows);
        if let Some(numbers) = self.numbers.take() {
            return self.numbers_or_rest(numbers, ctx, rows, out, &mut end);
        }
        let mut positions: Vec<usize> = (0..rows.rows).collect();
        self.in_block_order(ctx, rows, 0, &mut positions)?;
        let mut clock = CheckInterval::new(self.look);
        for some in positions.chunks(AHEAD) {
            self.prefetch(ctx, rows, 0, some);
            for &row in some {
                clock.tick(ctx)?;
                out[row] = self.remembered(ctx, BatchRow { rows, row }, &mut end)?;
            }
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
        end: &mut impl FnMut(&mut Interpreter, machine::Maybe) -> Result<u32>,
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
                Some(n) => end(&mut self.machine, Some(Val::Num(n)))?,
                None => self.remembered(ctx, BatchRow { rows, row }, &mut *end)?,
            };
        }
        // A comparison has no numeric values, so `numbers` is of no use here.
        let of_use = done > 0 || rows.rows == 0;
        self.numbers = (of_use && !numbers.is_idle()).then_some(numbers);
        self.machine.trim();
        Ok(())
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
        let wanted = (0..out.len()).filter(|&i| out[i] == TRUE);
        self.fetch(ctx, rows, wanted.map(|i| from + i));
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
        rest.clear();
        rest.extend((0..out.len()).filter(|&i| out[i] == TRUE));
        self.in_block_order(ctx, rows, from, rest)?;
        if self.memo.is_none()
            && let Code::Regex(regex) = &self.compiled.code
            && let Some((column, is_str, pattern)) = regex.of_terms()
        {
            let ids = &mut self.ids;
            ids.clear();
            ids.extend(rest.iter().map(|&i| rows.column(column)[from + i]));
            match_terms(
                ctx,
                &mut self.machine,
                (pattern, is_str),
                ids,
                |at, truth| {
                    out[rest[at]] = truth;
                },
            )?;
        } else {
            let mut clock = CheckInterval::new(self.look);
            for some in rest.chunks(AHEAD) {
                self.prefetch(ctx, rows, from, some);
                for &i in some {
                    clock.tick(ctx)?;
                    out[i] = self.truth_of(ctx, rows, from + i)?;
                }
            }
        }
        self.machine.trim();
        Ok(())
    }

    /// If the expression reads the terms of one column, and its results are not cached: the column, and the dictionary
    /// that most of the terms are in.
    fn terms_read<'d>(&self, ctx: &EvalContext<'d>) -> Option<(usize, &'d Dictionary)> {
        let compiled = &self.compiled;
        let reads = self.memo.is_none() && compiled.is_costly && compiled.pure;
        match compiled.inputs[..] {
            [column] if reads => Some((column, ctx.vocabulary.ranks()?)),
            _ => None,
        }
    }

    /// Requests the terms of other shards that some rows need.
    fn fetch(
        &self,
        ctx: &EvalContext<'_>,
        rows: View<'_>,
        wanted: impl Iterator<Item = usize> + Clone,
    ) {
        if self.compiled.is_costly || self.numbers.is_some() {
            let columns = self.compiled.inputs.iter().map(|&c| rows.column(c));
            let ids = columns.flat_map(|ids| wanted.clone().map(move |at| ids[at]));
            ctx.vocabulary.prefetch(ids);
        }
    }

    /// Prefetches the terms of some rows, given by positions from `from` on.
    fn prefetch(&self, ctx: &EvalContext<'_>, rows: View<'_>, from: usize, positions: &[usize]) {
        let Some((column, dictionary)) = self.terms_read(ctx) else {
            return;
        };
        let ids = rows.column(column);
        let mut some = [0; AHEAD];
        for (to, &at) in some.iter_mut().zip(positions) {
            *to = ids[from + at];
        }
        dictionary.decoder().prefetch(&some);
    }

    /// Puts positions of rows, counted from `from`, in the order in which the dictionary has their terms, if that saves
    /// decoding: each of its blocks is then decoded once in a batch.
    fn in_block_order(
        &mut self,
        ctx: &EvalContext<'_>,
        rows: View<'_>,
        from: usize,
        positions: &mut [usize],
    ) -> Result<()> {
        let Some((column, dictionary)) = self.terms_read(ctx) else {
            return Ok(());
        };
        self.order_charge
            .set(positions.len() * (size_of::<u64>() + size_of::<u32>()))?;
        let ids = rows.column(column);
        // A load numbers the terms of a cluster in the dictionary's order.
        if positions.iter().map(|&i| ids[from + i]).is_sorted() {
            return Ok(());
        }
        let placed = positions.iter().map(|&i| {
            let id = ids[from + i];
            let lex = (id < FIRST_TAIL_ID).then(|| dictionary.lex(VertexId(id)));
            u64::from(lex.flatten().unwrap_or(0)) << 32 | i as u64
        });
        self.order.clear();
        self.order.extend(placed);
        let lexes = self.order.iter().map(|at| at >> 32);
        let span = lexes.clone().max().unwrap_or(0) - lexes.clone().min().unwrap_or(0);
        if lexes.is_sorted() || span > DENSE * positions.len() as u64 {
            return Ok(());
        }
        self.order.sort_unstable();
        for (to, at) in positions.iter_mut().zip(&self.order) {
            *to = *at as u32 as usize;
        }
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
