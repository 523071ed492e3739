//! Arithmetic and comparisons of numbers, many rows at a time.
//!
//! Each part of an expression has a column of results: of integers or of doubles as long as all rows have that type,
//! otherwise of numbers of any type. If in some row a value is not a number, overflows, is divided by zero or is
//! compared with NaN, the row is left to the [`Interpreter`], so that such cases are defined in one place only.

use super::code::Code;
use super::machine::{Interpreter, number_of_id};
use crate::batch::{OperatorCharge, View};
use crate::eval::EvalContext;
use crate::filter::{FALSE, TRUE, ValueSource};
use jindou_model::Result;
use jindou_model::scope::worked;
use jindou_plan::Relation;
use jindou_values::{Arithmetic, Num};

/// Length in bytes from which on reading a number's text is counted as work.
const LONG: usize = 256;
/// Number of rows that are computed together, so that their columns fit in the first-level cache.
const CHUNK: usize = 512;
/// Largest number of parts of an expression, each of which needs a column. The interpreter evaluates larger
/// expressions.
const MOST_PARTS: usize = 32;
/// Number of rows after which this evaluation is given up if more than half of them had to be left to the interpreter.
const TRIAL: usize = 1 << 12;

/// An expression that is computed column by column.
pub(super) struct NumericExpr {
    shape: NumberResult,
    parts: usize,
    rows: Vec<u32>,
    left: Vec<bool>,
    asked: usize,
    left_over: usize,
    charge: OperatorCharge,
}

enum NumberResult {
    Value(NumberExpr),
    /// Comparison of two numbers. Bits of the orders for which it is true: 0 for less, 1 for equal, 2 for greater.
    Order(u8, NumberExpr, NumberExpr),
}

struct NumberExpr {
    what: NumberOp,
    column: NumberColumn,
}

enum NumberOp {
    /// Numbers by the ids in a column of the rows.
    Column(usize),
    /// One number for all rows.
    Constant,
    Compute(Arithmetic, Box<[NumberExpr; 2]>),
    Each(fn(Num) -> Option<Num>, Box<NumberExpr>),
}

/// A number for each row, or a single one for a constant. Entries of rows that are left over are meaningless.
enum NumberColumn {
    Ints(Vec<i64>),
    Doubles(Vec<f64>),
    Any(Vec<Num>),
}

/// Cache of the numeric values of ids.
pub(super) struct NumberCache {
    ids: Vec<u32>,
    numbers: Vec<Option<Num>>,
    knew: usize,
    missed: usize,
    /// True once it does not cache any more, since ids hardly repeat or there is no memory.
    idle: bool,
    charge: OperatorCharge,
}

impl NumberCache {
    const FIRST: usize = 64;
    const MOST: usize = 4096;
    /// Bytes of one entry.
    const EACH: usize = size_of::<u32>() + size_of::<Option<Num>>();

    pub fn new(ctx: &EvalContext<'_>) -> Self {
        Self {
            ids: vec![],
            numbers: vec![],
            knew: 0,
            missed: 0,
            idle: false,
            charge: OperatorCharge::new(ctx.budget),
        }
    }

    /// The value of a numeric literal, if it is a small number.
    #[inline]
    pub fn number(&mut self, ctx: &EvalContext<'_>, id: u32, scratch: &mut Vec<u8>) -> Option<Num> {
        let at = id as usize & self.ids.len().wrapping_sub(1);
        if self.ids.get(at) == Some(&id) {
            self.knew += 1;
            return self.numbers.get(at).copied().flatten();
        }
        self.missing(ctx, id, scratch)
    }

    fn missing(&mut self, ctx: &EvalContext<'_>, id: u32, scratch: &mut Vec<u8>) -> Option<Num> {
        let number = number_of_id(ctx, id, scratch);
        // The query fails after this error, so the result does not matter.
        let is_over = scratch.len() > LONG && worked(8 * scratch.len()).is_err();
        if self.idle || is_over {
            return number;
        }
        self.missed += 1;
        if self.missed > 2 * self.ids.len() || self.ids.is_empty() {
            self.resize();
        }
        let at = id as usize & self.ids.len().wrapping_sub(1);
        if let (Some(i), Some(n)) = (self.ids.get_mut(at), self.numbers.get_mut(at)) {
            (*i, *n) = (id, number);
        }
        number
    }

    /// Enlarges the cache. If it has its full size, stops caching if there were too few hits.
    fn resize(&mut self) {
        let mut len = (4 * self.ids.len()).clamp(Self::FIRST, Self::MOST);
        if self.ids.len() == Self::MOST {
            self.idle = self.knew < self.missed / 2;
            len = if self.idle { 0 } else { Self::MOST };
        }
        if len != self.ids.len() {
            if self.charge.set(len * Self::EACH).is_ok() {
                // Marks all entries as empty: 0 is not the id of a term.
                (self.ids, self.numbers) = (vec![0; len], vec![None; len]);
            } else {
                // Without memory the cache stays as it is, so that the budget is not asked again for each row.
                self.idle = true;
            }
        }
        (self.knew, self.missed) = (0, 0);
    }
}

impl NumericExpr {
    /// `None` for an expression other than arithmetic and comparisons that contain arithmetic.
    pub fn compile(code: &Code, machine: &Interpreter, ctx: &EvalContext<'_>) -> Option<Self> {
        let mut parts = 0;
        let mut part = |code| NumberExpr::compile(code, machine, &mut parts);
        let shape = match code {
            Code::Arithmetic(..) => NumberResult::Value(part(code)?),
            code => {
                let (not, code) = match code {
                    Code::Not(of) => (7, &**of),
                    other => (0, other),
                };
                let (holds, a, b) = match code {
                    Code::Order(relation, a, b) => (bits(*relation), a, b),
                    Code::Equal(a, b) => (bits(Relation::Equal), a, b),
                    _ => return None,
                };
                let (a, b) = (part(a)?, part(b)?);
                if !(a.computes() || b.computes()) {
                    return None;
                }
                NumberResult::Order(holds ^ not, a, b)
            }
        };
        Some(Self {
            shape,
            parts,
            rows: vec![],
            left: vec![],
            asked: 0,
            left_over: 0,
            charge: OperatorCharge::new(ctx.budget),
        })
    }

    /// Charges the memory for this many rows.
    fn room(&mut self, rows: usize) -> Result<()> {
        let each = self.parts * size_of::<Num>() + size_of::<u32>() + size_of::<bool>();
        let bytes = rows.min(CHUNK) * each;
        if bytes as u64 > self.charge.bytes() {
            self.charge.set(bytes)?;
        }
        Ok(())
    }

    /// Returns true if more than half of the rows were left to the interpreter.
    pub fn is_idle(&self) -> bool {
        self.asked >= TRIAL && 2 * self.left_over > self.asked
    }

    /// Computes a comparison for each row `from + i` whose `out[i]` is `TRUE` on entry. If it cannot decide a row, the
    /// entry stays `TRUE` and `i` is added to `rest`. Returns false if the expression is not a comparison.
    ///
    /// # Errors
    /// `Limit` without memory for the columns.
    pub fn truth(
        &mut self,
        machine: &mut Interpreter,
        ctx: &EvalContext<'_>,
        view: View<'_>,
        from: usize,
        out: &mut [u8],
        rest: &mut Vec<usize>,
    ) -> Result<bool> {
        if !matches!(self.shape, NumberResult::Order(..)) {
            return Ok(false);
        }
        self.room(out.len())?;
        let mut at = 0;
        while at < out.len() {
            ctx.check()?;
            self.rows.clear();
            while at < out.len() && self.rows.len() < CHUNK {
                if out[at] == TRUE {
                    self.rows.push((from + at) as u32);
                }
                at += 1;
            }
            self.left.clear();
            self.left.resize(self.rows.len(), false);
            let mut rows = NumberRows {
                machine: &mut *machine,
                ctx,
                view,
                rows: &self.rows,
                left: &mut self.left,
            };
            let NumberResult::Order(holds, a, b) = &mut self.shape else {
                return Ok(false);
            };
            a.fill(&mut rows);
            b.fill(&mut rows);
            compare(&a.column, &b.column, &mut self.left, |i, order| {
                out[self.rows[i] as usize - from] = if *holds >> (order as i8 + 1) & 1 == 1 {
                    TRUE
                } else {
                    FALSE
                };
            });
            self.asked += self.rows.len();
            for (&row, _) in self.rows.iter().zip(&self.left).filter(|x| *x.1) {
                self.left_over += 1;
                out[row as usize - from] = TRUE;
                rest.push(row as usize - from);
            }
        }
        Ok(true)
    }

    /// Computes the values of some rows from number `from` on, which [`Self::value`] then returns. Returns the number
    /// of rows; 0 if the expression is a comparison.
    ///
    /// # Errors
    /// `Limit` without memory for the columns.
    pub fn values(
        &mut self,
        machine: &mut Interpreter,
        ctx: &EvalContext<'_>,
        view: View<'_>,
        from: usize,
    ) -> Result<usize> {
        self.room(view.rows)?;
        let NumberResult::Value(part) = &mut self.shape else {
            return Ok(0);
        };
        ctx.check()?;
        let end = view.rows.min(from + CHUNK);
        self.rows.clear();
        self.rows.extend(from as u32..end as u32);
        self.left.clear();
        self.left.resize(self.rows.len(), false);
        part.fill(&mut NumberRows {
            machine,
            ctx,
            view,
            rows: &self.rows,
            left: &mut self.left,
        });
        self.asked += self.rows.len();
        self.left_over += self.left.iter().filter(|l| **l).count();
        Ok(self.rows.len())
    }

    /// The computed value of the row `from + at`; `None` if it is left to the interpreter.
    #[inline]
    pub fn value(&self, at: usize) -> Option<Num> {
        match (&self.shape, self.left.get(at)) {
            (NumberResult::Value(part), Some(false)) => Some(part.column.at(at)),
            _ => None,
        }
    }
}

fn bits(relation: Relation) -> u8 {
    match relation {
        Relation::Less => 1,
        Relation::Equal => 2,
        Relation::LessOrEqual => 3,
        Relation::Greater => 4,
        Relation::NotEqual => 5,
        Relation::GreaterOrEqual => 6,
    }
}

/// The rows to compute; `left` is set for those that are left over.
struct NumberRows<'r, 'm, 'q> {
    machine: &'m mut Interpreter,
    ctx: &'r EvalContext<'q>,
    view: View<'r>,
    rows: &'m [u32],
    left: &'m mut [bool],
}

impl NumberExpr {
    fn compile(code: &Code, machine: &Interpreter, parts: &mut usize) -> Option<Self> {
        *parts += 1;
        if *parts > MOST_PARTS {
            return None;
        }
        let mut column = NumberColumn::Ints(vec![]);
        let mut one = |f: fn(Num) -> Option<Num>, of: &Code| {
            Some(NumberOp::Each(
                f,
                Box::new(Self::compile(of, machine, parts)?),
            ))
        };
        let what = match code {
            Code::Var(ValueSource::Column(c)) => NumberOp::Column(*c),
            Code::Const(n) => {
                column.push(machine.constant_number(*n)?);
                NumberOp::Constant
            }
            Code::Arithmetic(op, a, b) => NumberOp::Compute(
                *op,
                Box::new([
                    Self::compile(a, machine, parts)?,
                    Self::compile(b, machine, parts)?,
                ]),
            ),
            Code::Plus(a) => one(Some, a)?,
            Code::Minus(a) => one(Num::negate, a)?,
            Code::Call(call, list) => one(call.of_number()?, list.first()?)?,
            _ => return None,
        };
        Some(Self { what, column })
    }

    fn computes(&self) -> bool {
        matches!(self.what, NumberOp::Compute(..) | NumberOp::Each(..))
    }

    fn fill(&mut self, rows: &mut NumberRows<'_, '_, '_>) {
        match &mut self.what {
            NumberOp::Constant => {}
            NumberOp::Column(c) => {
                self.column.clear();
                let ids = rows.view.column(*c);
                for (&row, left) in rows.rows.iter().zip(rows.left.iter_mut()) {
                    let id = ids[row as usize];
                    let number = if id == 0 {
                        None
                    } else {
                        rows.machine.number_by_id(rows.ctx, id)
                    };
                    match number {
                        Some(n) => self.column.push(n),
                        None => {
                            *left = true;
                            self.column.pad();
                        }
                    }
                }
            }
            NumberOp::Compute(op, of) => {
                let [a, b] = &mut **of;
                a.fill(rows);
                b.fill(rows);
                compute(*op, &a.column, &b.column, rows.left, &mut self.column);
            }
            NumberOp::Each(f, of) => {
                of.fill(rows);
                self.column.clear();
                for (i, left) in rows.left.iter_mut().enumerate() {
                    match f(of.column.at(i)) {
                        Some(n) if !*left => self.column.push(n),
                        _ => {
                            *left = true;
                            self.column.pad();
                        }
                    }
                }
            }
        }
    }
}

impl NumberColumn {
    fn clear(&mut self) {
        match self {
            Self::Ints(v) => v.clear(),
            Self::Doubles(v) => v.clear(),
            Self::Any(_) => *self = Self::Ints(vec![]),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Ints(v) => v.len(),
            Self::Doubles(v) => v.len(),
            Self::Any(v) => v.len(),
        }
    }

    #[inline]
    fn push(&mut self, n: Num) {
        match (&mut *self, n) {
            (Self::Ints(v), Num::Int(i)) => v.push(i),
            (Self::Doubles(v), Num::Dbl(d)) => v.push(d),
            (Self::Any(v), n) => v.push(n),
            (_, n) => {
                *self = match n {
                    Num::Int(i) if self.len() == 0 => Self::Ints(vec![i]),
                    Num::Dbl(d) if self.len() == 0 => Self::Doubles(vec![d]),
                    n => Self::Any((0..self.len()).map(|i| self.at(i)).chain([n]).collect()),
                };
            }
        }
    }

    /// Appends a placeholder for a row that is left over.
    fn pad(&mut self) {
        match self {
            Self::Ints(v) => v.push(0),
            Self::Doubles(v) => v.push(0.0),
            Self::Any(v) => v.push(Num::Int(0)),
        }
    }

    /// The number of a row.
    #[inline]
    fn at(&self, i: usize) -> Num {
        let i = if self.len() == 1 { 0 } else { i };
        match self {
            Self::Ints(v) => Num::Int(v[i]),
            Self::Doubles(v) => Num::Dbl(v[i]),
            Self::Any(v) => v[i],
        }
    }
}

/// Calls `f` with the pair of numbers of each of `n` rows; a column of one number has it for all rows.
#[inline]
fn both<T: Copy>(a: &[T], b: &[T], n: usize, mut f: impl FnMut(usize, T, T)) {
    match (a, b) {
        (&[a], &[b]) => (0..n).for_each(|i| f(i, a, b)),
        (a, &[b]) => a.iter().take(n).enumerate().for_each(|(i, &a)| f(i, a, b)),
        (&[a], b) => b.iter().take(n).enumerate().for_each(|(i, &b)| f(i, a, b)),
        (a, b) => {
            let both = a.iter().zip(b).take(n).enumerate();
            both.for_each(|(i, (&a, &b))| f(i, a, b));
        }
    }
}

fn compute(
    op: Arithmetic,
    a: &NumberColumn,
    b: &NumberColumn,
    left: &mut [bool],
    out: &mut NumberColumn,
) {
    use Arithmetic::{Add, Divide, Multiply, Subtract};
    let n = left.len();
    match (a, b, op) {
        (NumberColumn::Ints(a), NumberColumn::Ints(b), Add | Subtract | Multiply) => {
            let mut v = match std::mem::replace(out, NumberColumn::Any(vec![])) {
                NumberColumn::Ints(v) => v,
                _ => vec![],
            };
            v.clear();
            let mut put = |i: usize, (c, over): (i64, bool)| {
                left[i] |= over;
                v.push(c);
            };
            match op {
                Add => both(a, b, n, |i, a, b| put(i, a.overflowing_add(b))),
                Subtract => both(a, b, n, |i, a, b| put(i, a.overflowing_sub(b))),
                _ => both(a, b, n, |i, a, b| put(i, a.overflowing_mul(b))),
            }
            *out = NumberColumn::Ints(v);
        }
        (NumberColumn::Doubles(a), NumberColumn::Doubles(b), op) => {
            let mut v = match std::mem::replace(out, NumberColumn::Any(vec![])) {
                NumberColumn::Doubles(v) => v,
                _ => vec![],
            };
            v.clear();
            match op {
                Add => both(a, b, n, |_, a, b| v.push(a + b)),
                Subtract => both(a, b, n, |_, a, b| v.push(a - b)),
                Multiply => both(a, b, n, |_, a, b| v.push(a * b)),
                Divide => both(a, b, n, |_, a, b| v.push(a / b)),
            }
            *out = NumberColumn::Doubles(v);
        }
        (a, b, op) => {
            out.clear();
            for (i, left) in left.iter_mut().enumerate() {
                match a.at(i).compute(op, b.at(i)) {
                    Some(n) if !*left => out.push(n),
                    _ => {
                        *left = true;
                        out.pad();
                    }
                }
            }
        }
    }
}

/// Calls `f` with the order of the two numbers of each row. Rows with NaN are left over.
fn compare(
    a: &NumberColumn,
    b: &NumberColumn,
    left: &mut [bool],
    mut f: impl FnMut(usize, std::cmp::Ordering),
) {
    let n = left.len();
    match (a, b) {
        (NumberColumn::Ints(a), NumberColumn::Ints(b)) => both(a, b, n, |i, a, b| f(i, a.cmp(&b))),
        (NumberColumn::Doubles(a), NumberColumn::Doubles(b)) => {
            both(a, b, n, |i, a, b| match a.partial_cmp(&b) {
                Some(order) => f(i, order),
                None => left[i] = true,
            });
        }
        (a, b) => {
            for (i, left) in left.iter_mut().enumerate() {
                match a.at(i).order(b.at(i)) {
                    Some(order) => f(i, order),
                    None => *left = true,
                }
            }
        }
    }
}
