//! Exact numbers of any length, as decimal digits. They are compared in linear time; arithmetic is limited to a number
//! of digits. If the query that the thread works for is over, operations on long numbers return `None`; the query then
//! ends with an error anyway.

use crate::decimal::{Decimal, PLACES};
use jindou_model::scope::worked;
use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;

/// Largest number of digits in arithmetic: products and quotients of longer numbers would take seconds.
const MOST_DIGITS: usize = 10_000;

/// Factor by which reading a digit, or adding two, is slower than copying a byte.
const READ_WORK: usize = 8;

/// The number `± 0.d₁d₂d₃… · 10^exponent`. The first and the last digit are not zero; zero has no digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Exact {
    negative: bool,
    exponent: i64,
    digits: Vec<u8>,
}

impl Exact {
    fn new(negative: bool, integer: &[u8], fraction: &[u8], power: i64) -> Self {
        let whole = integer.iter().chain(fraction);
        let leading = whole.clone().take_while(|&&d| d == b'0').count();
        let mut digits: Vec<u8> = whole.skip(leading).copied().collect();
        let kept = digits.iter().rposition(|&d| d != b'0').map_or(0, |n| n + 1);
        digits.truncate(kept);
        if digits.is_empty() {
            return Self {
                negative: false,
                exponent: 0,
                digits,
            };
        }
        Self {
            negative,
            exponent: integer.len() as i64 - leading as i64 + power,
            digits,
        }
    }

    /// The value of a lexical form of `xsd:decimal` or `xsd:integer`, of any length; `None` if it is invalid.
    /// O(length).
    #[must_use]
    pub fn parse(lexical: &str) -> Option<Self> {
        worked(READ_WORK * lexical.len()).ok()?;
        let (negative, integer, fraction) = decimal_parts(lexical)?;
        Some(Self::new(negative, integer, fraction, 0))
    }

    /// The exact value of a finite double.
    #[must_use]
    pub fn from_f64(v: f64) -> Self {
        // 766 digits after the first represent every double exactly.
        let text = format!("{:.766e}", v.abs());
        let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        Self::new(
            v < 0.0,
            integer.as_bytes(),
            fraction.as_bytes(),
            power.parse().unwrap_or(0),
        )
    }

    /// Number of bytes on the heap.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.digits.capacity()
    }

    /// Work of a product or a quotient, as the number of bytes that could be copied in the same time.
    fn quadratic_work(&self, other: &Self) -> usize {
        let digits = self.length().max(other.length()).min(MOST_DIGITS);
        READ_WORK * digits + digits * digits / 64
    }

    /// Number of digits after the point.
    fn places(&self) -> usize {
        usize::try_from(self.digits.len() as i64 - self.exponent).unwrap_or(0)
    }

    /// Number of digits before and after the point, including zeros between the point and the first or last other
    /// digit.
    fn length(&self) -> usize {
        self.digits.len().max(self.exponent.unsigned_abs() as usize)
    }

    /// True if it has no digits after the point.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        self.digits.len() as i64 <= self.exponent
    }

    /// True if it is less than zero.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// True if it is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The number as a [`Decimal`]; `None` if it does not fit.
    pub(crate) fn small(&self) -> Option<Decimal> {
        if self.exponent > 21 || self.exponent < -(PLACES as i64) || self.digits.len() > 40 {
            return None;
        }
        Decimal::parse(&self.text())
    }

    /// The number as a 64-bit integer; `None` if it is not an integer or does not fit.
    pub(crate) fn integer(&self) -> Option<i64> {
        if self.exponent > 19 || !self.is_integer() {
            return None;
        }
        self.text().parse().ok()
    }

    /// The canonical lexical form. O(length including zeros).
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::with_capacity(self.length() + 3);
        if self.negative {
            out.push('-');
        }
        let zeros = |out: &mut String, n: i64| (0..n).for_each(|_| out.push('0'));
        if self.exponent <= 0 {
            out.push('0');
            if !self.digits.is_empty() {
                out.push('.');
                zeros(&mut out, -self.exponent);
            }
        }
        for (i, &d) in self.digits.iter().enumerate() {
            if i > 0 && i as i64 == self.exponent {
                out.push('.');
            }
            out.push(char::from(d));
        }
        zeros(&mut out, self.exponent - self.digits.len() as i64);
        out
    }

    /// The nearest double; infinite if the number is too large.
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        self.scientific().parse().unwrap_or(f64::NAN)
    }

    /// The nearest float; infinite if the number is too large.
    #[must_use]
    pub fn to_f32(&self) -> f32 {
        self.scientific().parse().unwrap_or(f32::NAN)
    }

    fn scientific(&self) -> String {
        let digits = String::from_utf8_lossy(&self.digits);
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}0.{digits}e{}", self.exponent)
    }

    /// The integer `value · 10^places`; `None` if it has too many digits. `places` must not be less than
    /// [`Self::places`].
    fn scaled(&self, places: usize) -> Option<BigInt> {
        if self.length().max(places) > MOST_DIGITS {
            return None;
        }
        let number = BigInt::parse_bytes(&self.digits, 10).unwrap_or_default();
        let power = places as i64 + self.exponent - self.digits.len() as i64;
        let number = number * BigInt::from(10).pow(u32::try_from(power).ok()?);
        Some(if self.negative { -number } else { number })
    }

    fn of_scaled(number: &BigInt, places: usize) -> Option<Self> {
        let digits = number.magnitude().to_str_radix(10);
        (digits.len() <= MOST_DIGITS).then(|| {
            Self::new(
                number.sign() == Sign::Minus,
                digits.as_bytes(),
                b"",
                -(places as i64),
            )
        })
    }

    /// The exact sum; `None` if there are too many digits. O(length).
    #[must_use]
    pub fn add(&self, other: &Self) -> Option<Self> {
        let places = self.places().max(other.places());
        let length = |e: &Self| e.length().max(places);
        if length(self).max(length(other)) > MOST_DIGITS {
            return None;
        }
        worked(READ_WORK * length(self).max(length(other))).ok()?;
        let is_greater = |a: &Self, b: &Self| {
            (a.exponent, &a.digits).cmp(&(b.exponent, &b.digits)) == Ordering::Greater
        };
        let (large, small) = match other.digits.is_empty() || is_greater(self, other) {
            true => (self, other),
            false => (other, self),
        };
        if small.digits.is_empty() {
            return Some(large.clone());
        }
        // The sum may have one digit more before the point than the larger number.
        let end = large.exponent + 1;
        let width = usize::try_from(end + places as i64).ok()?;
        let mut digits = large.aligned(end, width);
        let added = small.aligned(end, width);
        let carry = match large.negative == small.negative {
            true => add_digits(&mut digits, &added),
            false => subtract_digits(&mut digits, &added),
        };
        debug_assert!(!carry, "the larger number has the most digits");
        let sum = Self::new(large.negative, &digits, b"", -(places as i64));
        (sum.length().max(sum.places()) <= MOST_DIGITS).then_some(sum)
    }

    /// `width` digits of the number, padded with zeros; the first has the place value 10^(`end` − 1).
    fn aligned(&self, end: i64, width: usize) -> Vec<u8> {
        let mut digits = vec![b'0'; width];
        let from = usize::try_from(end - self.exponent).unwrap_or(0);
        if let Some(to) = digits.get_mut(from..from + self.digits.len()) {
            to.copy_from_slice(&self.digits);
        }
        digits
    }

    /// The exact difference; `None` if there are too many digits.
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Option<Self> {
        self.add(&other.negate())
    }

    /// The exact product; `None` if there are too many digits.
    #[must_use]
    pub fn multiply(&self, other: &Self) -> Option<Self> {
        let (a, b) = (self.places(), other.places());
        worked(self.quadratic_work(other)).ok()?;
        Self::of_scaled(&(self.scaled(a)? * other.scaled(b)?), a + b)
    }

    /// The quotient, truncated after 18 digits after the point, or after as many as either operand has if that is more.
    /// `None` for division by zero and if there are too many digits.
    #[must_use]
    pub fn divide(&self, other: &Self) -> Option<Self> {
        if other.is_zero() {
            return None;
        }
        let (a, b) = (self.places(), other.places());
        worked(self.quadratic_work(other)).ok()?;
        let places = PLACES.max(a).max(b);
        let wide = self.scaled(places)? * BigInt::from(10).pow(u32::try_from(b).ok()?);
        Self::of_scaled(&(wide / other.scaled(b)?), places)
    }

    /// The number with the opposite sign.
    #[must_use]
    pub fn negate(&self) -> Self {
        Self {
            negative: !self.negative && !self.digits.is_empty(),
            ..self.clone()
        }
    }

    /// The absolute value.
    #[must_use]
    pub fn abs(&self) -> Self {
        Self {
            negative: false,
            ..self.clone()
        }
    }

    /// The number without its digits after the point.
    #[must_use]
    pub fn truncate(&self) -> Self {
        let kept = usize::try_from(self.exponent).unwrap_or(0);
        let whole = self.digits.get(..kept).unwrap_or(&self.digits);
        Self::new(
            self.negative,
            whole,
            b"",
            self.exponent - whole.len() as i64,
        )
    }

    /// The greatest integer that is not greater than the number; `None` if there are too many digits.
    #[must_use]
    pub fn floor(&self) -> Option<Self> {
        let whole = self.truncate();
        if self.negative && !self.is_integer() {
            return whole.subtract(&Self::new(false, b"1", b"", 0));
        }
        Some(whole)
    }

    /// The least integer that is not less than the number; `None` if there are too many digits.
    #[must_use]
    pub fn ceil(&self) -> Option<Self> {
        Some(self.negate().floor()?.negate())
    }

    /// The nearest integer, halves rounded up (fn:round); `None` if there are too many digits.
    #[must_use]
    pub fn round(&self) -> Option<Self> {
        if self.is_integer() {
            return Some(self.clone());
        }
        self.add(&Self::new(false, b"", b"5", 0))?.floor()
    }
}

/// Adds two lists of decimal digits of the same length. True if there is a carry at the end.
fn add_digits(digits: &mut [u8], added: &[u8]) -> bool {
    let mut carry = 0;
    for (d, a) in digits.iter_mut().zip(added).rev() {
        let sum = *d - b'0' + (a - b'0') + carry;
        carry = u8::from(sum >= 10);
        *d = b'0' + sum - 10 * carry;
    }
    carry > 0
}

/// Subtracts two lists of decimal digits of the same length. True if there is a borrow at the end.
fn subtract_digits(digits: &mut [u8], less: &[u8]) -> bool {
    let mut borrow = 0;
    for (d, l) in digits.iter_mut().zip(less).rev() {
        let taken = *l - b'0' + borrow;
        let own = *d - b'0';
        borrow = u8::from(own < taken);
        *d = b'0' + own + 10 * borrow - taken;
    }
    borrow > 0
}

impl From<Decimal> for Exact {
    fn from(d: Decimal) -> Self {
        let digits = d.units().unsigned_abs().to_string();
        Self::new(d.units() < 0, digits.as_bytes(), b"", -(PLACES as i64))
    }
}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Exact {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |e: &Self| match (e.digits.is_empty(), e.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let signs = sign(self).cmp(&sign(other));
        if signs != Ordering::Equal || self.digits.is_empty() {
            return signs;
        }
        let magnitude = self
            .exponent
            .cmp(&other.exponent)
            .then_with(|| self.digits.cmp(&other.digits));
        if self.negative {
            magnitude.reverse()
        } else {
            magnitude
        }
    }
}

/// Parses `(\+|-)?([0-9]+(\.[0-9]*)?|\.[0-9]+)`: true for a minus sign, and the digits before and after the point.
#[must_use]
pub(crate) fn decimal_parts(lexical: &str) -> Option<(bool, &[u8], &[u8])> {
    let bytes = lexical.as_bytes();
    let (negative, rest) = match bytes.first()? {
        b'-' => (true, &bytes[1..]),
        b'+' => (false, &bytes[1..]),
        _ => (false, bytes),
    };
    let (integer, fraction) = match rest.iter().position(|&b| b == b'.') {
        Some(dot) => (&rest[..dot], &rest[dot + 1..]),
        None => (rest, &rest[..0]),
    };
    let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    (digits(integer) && digits(fraction) && !(integer.is_empty() && fraction.is_empty()))
        .then_some((negative, integer, fraction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn e(s: &str) -> Exact {
        Exact::parse(s).unwrap()
    }

    #[test]
    fn doubles_are_taken_exactly() {
        assert_eq!(Exact::from_f64(0.5), e("0.5"));
        assert_eq!(Exact::from_f64(-1024.0), e("-1024"));
        assert_eq!(
            Exact::from_f64(0.1),
            e("0.1000000000000000055511151231257827021181583404541015625")
        );
        let smallest = Exact::from_f64(5e-324);
        assert_eq!((smallest.digits.len(), smallest.exponent), (751, -323));
        assert_eq!(Exact::from_f64(f64::MAX).exponent, 309);
    }

    /// Other results are those of `crates/jindou/tests/cases/values/numbers.test`.
    #[test]
    fn sums_of_too_many_digits_have_no_value() {
        let long = e("123456789012345678901234567890");
        let huge = e(&"9".repeat(20_000));
        assert_eq!(huge.add(&e("1")), None);
        assert!(huge > long && huge.negate() < long.negate());
        assert_eq!(huge.to_f64(), f64::INFINITY);
    }

    proptest! {
        #[test]
        fn sums_are_those_of_large_integers(
            a in "-?[0-9]{0,40}[.]?[0-9]{1,40}", b in "-?[0-9]{0,40}[.]?[0-9]{1,40}",
        ) {
            let (a, b) = (e(&a), e(&b));
            let places = a.places().max(b.places());
            let sum = a.scaled(places).unwrap() + b.scaled(places).unwrap();
            prop_assert_eq!(a.add(&b), Exact::of_scaled(&sum, places));
        }

        #[test]
        fn order_is_that_of_scaled_integers(
            a in -2000i64..2000, b in -2000i64..2000, i in 0usize..4, j in 0usize..4, pad in 0usize..3,
        ) {
            let text = |v: i64, places: usize| {
                let s = format!("{:0w$}", v.abs(), w = places + 1);
                let (x, y) = s.split_at(s.len() - places);
                format!("{}{}{x}.{y}{}", if v < 0 { "-" } else { "" }, "0".repeat(pad), "0".repeat(pad))
            };
            let (x, y) = (e(&text(a, i)), e(&text(b, j)));
            let (m, n) = (a * 10i64.pow(3 - i as u32), b * 10i64.pow(3 - j as u32));
            prop_assert_eq!(x.cmp(&y), m.cmp(&n));
        }

        #[test]
        fn small_numbers_agree_with_decimals(a in any::<i64>(), b in any::<i64>(), i in 0u32..19, j in 0u32..19) {
            let d = |n: i64, i| Decimal::from_units(i128::from(n) * 10i128.pow(i));
            let (x, y) = (d(a, i), d(b, j));
            let (p, q) = (Exact::from(x), Exact::from(y));
            prop_assert_eq!(p.small(), Some(x));
            prop_assert_eq!(x.cmp(&y), p.cmp(&q));
            if let Some(sum) = x.plus(y) {
                prop_assert_eq!(p.add(&q), Some(sum.into()));
            }
            if let Some(product) = x.multiply(y) {
                prop_assert_eq!(p.multiply(&q), Some(product.into()));
            }
            if let Some(quotient) = x.divide(y) {
                prop_assert_eq!(p.divide(&q), Some(quotient.into()));
            }
            prop_assert_eq!(x.floor().map(Exact::from), p.floor());
            prop_assert_eq!(x.round().map(Exact::from), p.round());
            prop_assert_eq!(p.to_f64(), x.to_f64());
        }
    }
}
