//! SUM and AVG, the same however the rows are dealt to threads.
//!
//! Integers and decimals are added exactly. Floating point numbers are added in twice their precision (Knuth's two-sum: the
//! rounding error of each addition is kept) and rounded once, at the end: some 100 bits of the sum do not depend on the order, of
//! which a double shows 53. Only sums that cancel to less than 2⁻⁵⁰ of their largest part may still differ in the last digit.

use super::val::{Arithmetic, Num};

/// A sum so far.
#[derive(Clone, Copy)]
pub(crate) struct Sum {
    /// Of integers and decimals; `None` once a value was no number, or this overflowed.
    exact: Option<Num>,
    /// Of floats and doubles.
    high: f64,
    low: f64,
    /// The widest type met.
    kind: Kind,
    count: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Exact,
    Float,
    Double,
}

impl Sum {
    /// Of nothing.
    pub fn zero() -> Self {
        Self {
            exact: Some(Num::Int(0.into())),
            high: 0.0,
            low: 0.0,
            kind: Kind::Exact,
            count: 0,
        }
    }

    /// A value that is no number, or unbound: an error from now on.
    pub fn fail(&mut self) {
        self.exact = None;
    }

    pub fn failed(&self) -> bool {
        self.exact.is_none()
    }

    #[inline]
    pub fn add(&mut self, n: Option<Num>) {
        self.count += 1;
        match n {
            None => self.exact = None,
            Some(n @ (Num::Int(_) | Num::Dec(_))) => {
                self.exact = self.exact.and_then(|e| e.compute(Arithmetic::Add, n));
            }
            Some(Num::Flt(f)) => {
                self.kind = self.kind.max(Kind::Float);
                self.add_real(f64::from(f32::from(f)));
            }
            Some(Num::Dbl(d)) => {
                self.kind = Kind::Double;
                self.add_real(d.into());
            }
        }
    }

    #[inline]
    fn add_real(&mut self, x: f64) {
        let sum = self.high + x;
        let part = sum - self.high;
        let error = (self.high - (sum - part)) + (x - part);
        self.high = sum;
        // Infinite and NaN have no error to keep.
        if error.is_finite() {
            self.low += error;
        }
    }

    /// Takes another part's values in.
    pub fn merge(&mut self, other: Self) {
        self.exact = match (self.exact, other.exact) {
            (Some(a), Some(b)) => a.compute(Arithmetic::Add, b),
            _ => None,
        };
        self.kind = self.kind.max(other.kind);
        self.add_real(other.high);
        self.low += other.low;
        self.count += other.count;
    }

    /// `None` after an error.
    pub fn total(&self) -> Option<Num> {
        let exact = self.exact?;
        if self.kind == Kind::Exact {
            return Some(exact);
        }
        let mut whole = *self;
        whole.add_real(f64::from(exact.double()));
        let real = whole.high + whole.low;
        Some(if self.kind == Kind::Float {
            Num::Flt((real as f32).into())
        } else {
            Num::Dbl(real.into())
        })
    }

    /// 0 for an empty group; `None` after an error.
    pub fn average(&self) -> Option<Num> {
        let total = self.total()?;
        if self.count == 0 {
            return Some(total);
        }
        total.compute(Arithmetic::Divide, Num::Int(self.count.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small generator: the test needs many orders, not good numbers.
    fn next(state: &mut u64) -> u64 {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        *state >> 33
    }

    #[test]
    fn the_order_and_the_parts_do_not_matter() {
        let mut state = 7;
        let mut values: Vec<Num> = (0..5000)
            .map(|i| {
                let n = next(&mut state) as f64 / 7.0;
                match i % 3 {
                    0 => Num::Flt((n as f32).into()),
                    1 => Num::Dbl((n * 1e-9).into()),
                    _ => Num::Int((next(&mut state) as i64 % 1000).into()),
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
            let (Some(Num::Dbl(total)), Some(Num::Dbl(mean))) = (all.total(), all.average()) else {
                panic!("a double");
            };
            seen.push((f64::from(total).to_bits(), f64::from(mean).to_bits()));
        }
        seen.dedup();
        assert_eq!(seen.len(), 1);
    }

    #[test]
    fn edges() {
        let of = |values: &[Num]| {
            let mut sum = Sum::zero();
            values.iter().for_each(|v| sum.add(Some(*v)));
            sum
        };
        let dbl = |d: f64| Num::Dbl(d.into());
        let big = of(&[dbl(1e20), dbl(1.0), dbl(-1e20)]);
        assert_eq!(big.total(), Some(dbl(1.0)));
        let inf = f64::INFINITY;
        assert_eq!(of(&[dbl(1.0), dbl(inf), dbl(2.0)]).total(), Some(dbl(inf)));
        assert!(of(&[dbl(inf), dbl(-inf)]).total().is_some_and(Num::is_nan));
        assert_eq!(Sum::zero().average(), Some(Num::Int(0.into())));
        let mut failed = of(&[dbl(1.0)]);
        failed.add(None);
        assert_eq!(failed.total(), None);
        let tenths = vec![Num::Flt(0.1f32.into()); 10];
        assert_eq!(of(&tenths).total(), Some(Num::Flt(1.0f32.into())));
    }
}
