//! SUM and AVG, whose results must not depend on how rows are distributed over threads.
//!
//! Integers and decimals are added exactly. Floating point numbers are added with twice their precision (Knuth's
//! two-sum keeps the rounding error of each addition) and rounded once, at the end. About 100 bits of the sum do not
//! depend on the order, and a double has 53. Only a sum whose parts cancel to less than 2⁻⁵⁰ of the largest may differ
//! in the last digit.

use crate::partitions::{Words, push_bytes, push_u64};
use jindou_values::{Arithmetic, Num, Number, Value, value};

/// The sum of the values so far.
#[derive(Clone)]
pub(crate) struct Sum {
    /// The sum of integers and decimals.
    exact: ExactSum,
    /// The sum of floats and doubles.
    high: f64,
    low: f64,
    /// The widest numeric type so far.
    kind: SumType,
    count: i64,
}

/// A sum of integers and decimals.
#[derive(Clone)]
enum ExactSum {
    Small(Num),
    /// A sum beyond the range of small numbers.
    Long(Box<Number>),
    /// A value was not a number, or unbound, so the sum is an error.
    Failed,
}

impl ExactSum {
    fn number(&self) -> Option<Number> {
        match self {
            Self::Small(n) => Some((*n).into()),
            Self::Long(n) => Some((**n).clone()),
            Self::Failed => None,
        }
    }

    /// Adds a number that is not small, or whose sum is not small.
    #[cold]
    fn add_long(&mut self, n: &Number) {
        let sum = self
            .number()
            .and_then(|own| own.compute(Arithmetic::Add, n));
        *self = match sum {
            Some(Number::Small(n)) => Self::Small(n),
            Some(long) => Self::Long(Box::new(long)),
            None => Self::Failed,
        };
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SumType {
    Exact,
    Float,
    Double,
}

impl Sum {
    /// The empty sum.
    pub fn zero() -> Self {
        Self {
            exact: ExactSum::Small(Num::Int(0)),
            high: 0.0,
            low: 0.0,
            kind: SumType::Exact,
            count: 0,
        }
    }

    /// Records a value that is unbound or not a number: the sum is an error from now on.
    pub fn fail(&mut self) {
        self.exact = ExactSum::Failed;
    }

    pub fn failed(&self) -> bool {
        matches!(self.exact, ExactSum::Failed)
    }

    /// Adds a small number `times` times, which is at least one.
    #[inline]
    pub fn add_times(&mut self, n: Num, times: u32) {
        if times == 1 {
            return self.add(Some(n));
        }
        self.add_product(&n.into(), times);
    }

    /// Adds a number `times` times, which is at least one; `None` is an error.
    pub fn add_number_times(&mut self, n: Option<Number>, times: u32) {
        match n {
            Some(n) if times > 1 => self.add_product(&n, times),
            other => {
                self.add_number(other);
                self.count += i64::from(times) - 1;
            }
        }
    }

    #[cold]
    fn add_product(&mut self, n: &Number, times: u32) {
        let (x, kind) = match n {
            Number::Small(Num::Flt(f)) => (f64::from(*f), SumType::Float),
            Number::Small(Num::Dbl(d)) => (*d, SumType::Double),
            exact => {
                let times = Num::Int(i64::from(times));
                self.add_number(exact.compute(Arithmetic::Multiply, &times.into()));
                (0.0, SumType::Exact)
            }
        };
        if kind == SumType::Exact {
            self.count += i64::from(times) - 1;
            return;
        }
        self.kind = self.kind.max(kind);
        self.count += i64::from(times);
        let times = f64::from(times);
        let product = x * times;
        self.add_real(product);
        // The rounding error of the product.
        let lost = x.mul_add(times, -product);
        if lost.is_finite() {
            self.low += lost;
        }
    }

    /// Adds a number of any length; `None` is an error.
    pub fn add_number(&mut self, n: Option<Number>) {
        match n {
            Some(Number::Small(n)) => self.add(Some(n)),
            Some(long) => {
                self.count += 1;
                self.exact.add_long(&long);
            }
            None => self.add(None),
        }
    }

    #[inline]
    pub fn add(&mut self, n: Option<Num>) {
        self.count += 1;
        match n {
            None => self.exact = ExactSum::Failed,
            Some(n @ (Num::Int(_) | Num::Dec(_))) => {
                if let ExactSum::Small(own) = &mut self.exact
                    && let Some(sum) = own.compute(Arithmetic::Add, n)
                {
                    *own = sum;
                } else {
                    self.exact.add_long(&n.into());
                }
            }
            Some(Num::Flt(f)) => {
                self.kind = self.kind.max(SumType::Float);
                self.add_real(f64::from(f));
            }
            Some(Num::Dbl(d)) => {
                self.kind = SumType::Double;
                self.add_real(d);
            }
        }
    }

    #[inline]
    fn add_real(&mut self, x: f64) {
        let sum = self.high + x;
        let part = sum - self.high;
        let error = (self.high - (sum - part)) + (x - part);
        self.high = sum;
        // Infinite values and NaN have no rounding error.
        if error.is_finite() {
            self.low += error;
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: Self) {
        match other.exact.number() {
            Some(n) => self.exact.add_long(&n),
            None => self.exact = ExactSum::Failed,
        }
        self.kind = self.kind.max(other.kind);
        self.add_real(other.high);
        self.low += other.low;
        self.count += other.count;
    }

    /// Appends the sum to words.
    pub fn push_words(&self, to: &mut Vec<u32>) {
        let exact = match &self.exact {
            ExactSum::Failed => 0,
            ExactSum::Small(Num::Int(_)) => 1,
            ExactSum::Small(_) | ExactSum::Long(_) => 2,
        };
        to.push(exact << 8 | self.kind as u32);
        push_u64(to, self.count as u64);
        push_u64(to, self.high.to_bits());
        push_u64(to, self.low.to_bits());
        match &self.exact {
            ExactSum::Failed => {}
            ExactSum::Small(Num::Int(n)) => push_u64(to, *n as u64),
            exact => {
                let mut bytes = Vec::new();
                if let Some(n) = exact.number() {
                    n.push(&mut bytes);
                }
                push_bytes(to, &bytes);
            }
        }
    }

    /// Reads a sum that [`Self::push_words`] has appended.
    pub fn of_words(words: &mut Words<'_>) -> Self {
        let first = words.u32();
        let kind = match first & 0xFF {
            0 => SumType::Exact,
            1 => SumType::Float,
            _ => SumType::Double,
        };
        let count = words.u64() as i64;
        let (high, low) = (f64::from_bits(words.u64()), f64::from_bits(words.u64()));
        let exact = match first >> 8 {
            0 => ExactSum::Failed,
            1 => ExactSum::Small(Num::Int(words.u64() as i64)),
            _ => match value(&words.bytes()) {
                Some(Value::Number(Number::Small(n))) => ExactSum::Small(n),
                Some(Value::Number(n)) => ExactSum::Long(Box::new(n)),
                _ => ExactSum::Failed,
            },
        };
        Self {
            exact,
            high,
            low,
            kind,
            count,
        }
    }

    /// Bytes of heap memory.
    pub fn bytes(&self) -> usize {
        match &self.exact {
            ExactSum::Long(n) => n.bytes(),
            ExactSum::Small(_) | ExactSum::Failed => 0,
        }
    }

    /// The sum; `None` after an error.
    pub fn total(&self) -> Option<Number> {
        let exact = self.exact.number()?;
        if self.kind == SumType::Exact {
            return Some(exact);
        }
        let mut whole = self.clone();
        whole.add_real(exact.to_f64());
        let real = whole.high + whole.low;
        Some(Number::Small(if self.kind == SumType::Float {
            Num::Flt(real as f32)
        } else {
            Num::Dbl(real)
        }))
    }

    /// The average: 0 for an empty group, `None` after an error.
    pub fn average(&self) -> Option<Number> {
        let total = self.total()?;
        if self.count == 0 {
            return Some(total);
        }
        total.compute(Arithmetic::Divide, &Num::Int(self.count).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simple random generator; the test needs many orders rather than good random numbers.
    fn next(state: &mut u64) -> u64 {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        *state >> 33
    }

    #[test]
    fn a_number_many_times_is_its_sum() {
        let decimal = Num::Dec(jindou_values::Decimal::parse("12345678.123456789").unwrap());
        let numbers = [
            Num::Int(7),
            Num::Int(i64::MAX / 3),
            decimal,
            Num::Flt(0.1),
            Num::Dbl(0.1),
            Num::Dbl(-3e300),
            Num::Dbl(f64::INFINITY),
        ];
        for n in numbers {
            for times in [1, 2, 1000] {
                let (mut each, mut all) = (Sum::zero(), Sum::zero());
                (0..times).for_each(|_| each.add(Some(n)));
                all.add_times(n, times);
                assert_eq!(all.total(), each.total(), "{n:?} {times} times");
                assert_eq!(all.average(), each.average(), "{n:?} {times} times");
                let mut any = Sum::zero();
                any.add_number_times(Some(n.into()), times);
                assert_eq!(any.total(), each.total(), "{n:?} {times} times");
            }
        }
        let mut failed = Sum::zero();
        failed.add_number_times(None, 3);
        assert!(failed.failed());
    }

    #[test]
    fn the_order_and_the_parts_do_not_matter() {
        let mut state = 7;
        let mut values: Vec<Num> = (0..5000)
            .map(|i| {
                let n = next(&mut state) as f64 / 7.0;
                match i % 3 {
                    0 => Num::Flt(n as f32),
                    1 => Num::Dbl(n * 1e-9),
                    _ => Num::Int(next(&mut state) as i64 % 1000),
                }
            })
            .collect();
        let mut seen = vec![];
        for round in 0..30 {
            for i in (1..values.len()).rev() {
                values.swap(i, next(&mut state) as usize % (i + 1));
            }
            let mut parts = vec![Sum::zero(); 1 + round % 4];
            for (i, v) in values.iter().enumerate() {
                let n = parts.len();
                parts[i * 7 % n].add(Some(*v));
            }
            let mut all = Sum::zero();
            parts.into_iter().for_each(|p| all.merge(p));
            let small = |n: Option<Number>| n.and_then(|n| n.small());
            let (Some(Num::Dbl(total)), Some(Num::Dbl(mean))) =
                (small(all.total()), small(all.average()))
            else {
                panic!("a double");
            };
            seen.push((total.to_bits(), mean.to_bits()));
        }
        seen.dedup();
        assert_eq!(seen.len(), 1);
    }
}
