//! Decimals with 18 digits after the point in 128 bits: `Copy`, exact, and without allocation.

use std::cmp::Ordering;

/// Number of units in 1.
const ONE: i128 = 1_000_000_000_000_000_000;
/// Number of digits after the point.
pub(crate) const PLACES: usize = 18;

/// A multiple of 10⁻¹⁸: any number with at most 18 digits after the point and an absolute value below some 1.7 · 10²⁰.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Decimal(i128);

impl Decimal {
    /// Creates a decimal from a number of units of 10⁻¹⁸.
    #[must_use]
    pub const fn from_units(units: i128) -> Self {
        Self(units)
    }

    /// The number of units of 10⁻¹⁸.
    #[must_use]
    pub const fn units(self) -> i128 {
        self.0
    }

    /// The value of a lexical form; `None` if it is invalid, or has more digits than fit, not counting trailing zeros.
    #[must_use]
    pub fn parse(lexical: &str) -> Option<Self> {
        let (negative, integer, fraction) = crate::exact::decimal_parts(lexical)?;
        Self::of_digits(negative, integer, fraction)
    }

    /// Creates a decimal from digits before and after the point; `None` if they do not fit.
    pub(crate) fn of_digits(negative: bool, integer: &[u8], fraction: &[u8]) -> Option<Self> {
        let mut units = 0i128;
        let push = |units: i128, d: &u8| units.checked_mul(10)?.checked_add(i128::from(d - b'0'));
        for d in integer {
            units = push(units, d)?;
        }
        let mut places = 0;
        for (i, d) in fraction.iter().enumerate() {
            if i < PLACES {
                units = push(units, d)?;
                places += 1;
            } else if *d != b'0' {
                return None;
            }
        }
        units = units.checked_mul(10i128.pow((PLACES - places) as u32))?;
        Some(Self(if negative { -units } else { units }))
    }

    /// The sum; `None` if it is too large.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The difference; `None` if it is too large.
    #[must_use]
    pub fn subtract(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// The exact product; `None` if its digits do not fit.
    #[must_use]
    pub fn multiply(self, other: Self) -> Option<Self> {
        let (a, b) = (self.0 / ONE, self.0 % ONE);
        let (c, d) = (other.0 / ONE, other.0 % ONE);
        let small = b * d;
        if small % ONE != 0 {
            return None;
        }
        let whole = a.checked_mul(c)?.checked_mul(ONE)?;
        let mixed = a.checked_mul(d)?.checked_add(b.checked_mul(c)?)?;
        whole.checked_add(mixed)?.checked_add(small / ONE).map(Self)
    }

    /// The quotient, truncated after the 18th digit after the point; `None` if it does not fit, and for division by
    /// zero.
    #[must_use]
    pub fn divide(self, other: Self) -> Option<Self> {
        let (a, b) = (self.0, other.0);
        if b == 0 {
            return None;
        }
        if let Some(wide) = a.checked_mul(ONE) {
            return wide.checked_div(b).map(Self);
        }
        // Otherwise by long division, six digits at a time.
        let mut quotient = a.checked_div(b)?;
        let mut rest = a % b;
        for _ in 0..3 {
            rest = rest.checked_mul(1_000_000)?;
            quotient = quotient.checked_mul(1_000_000)?.checked_add(rest / b)?;
            rest %= b;
        }
        Some(Self(quotient))
    }

    /// The number with the opposite sign; `None` for the smallest number.
    #[must_use]
    pub fn negate(self) -> Option<Self> {
        self.0.checked_neg().map(Self)
    }

    /// The absolute value; `None` for the smallest number.
    #[must_use]
    pub fn abs(self) -> Option<Self> {
        self.0.checked_abs().map(Self)
    }

    /// The greatest integer that is not greater than the number; `None` if it does not fit.
    #[must_use]
    pub fn floor(self) -> Option<Self> {
        self.0.div_euclid(ONE).checked_mul(ONE).map(Self)
    }

    /// The least integer that is not less than the number; `None` if it does not fit.
    #[must_use]
    pub fn ceil(self) -> Option<Self> {
        self.negate()?.floor()?.negate()
    }

    /// The nearest integer, halves rounded up (fn:round); `None` if it does not fit.
    #[must_use]
    pub fn round(self) -> Option<Self> {
        self.plus(Self(ONE / 2))?.floor()
    }

    /// The part before the point.
    #[must_use]
    pub fn whole(self) -> i128 {
        self.0 / ONE
    }

    /// True for zero.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The number's digits without trailing zeros as an integer, and how many of them are after the point.
    fn shortest(self) -> (i128, u32) {
        let (mut m, mut places) = (self.0, PLACES as u32);
        if m % ONE == 0 {
            return (m / ONE, 0);
        }
        if m % 1_000_000_000 == 0 {
            (m, places) = (m / 1_000_000_000, places - 9);
        }
        while m % 10 == 0 {
            (m, places) = (m / 10, places - 1);
        }
        (m, places)
    }

    /// The nearest double.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        let (m, places) = self.shortest();
        if places == 0 {
            return m as f64;
        }
        // Both operands are exact as doubles, so that only the division rounds.
        if m.unsigned_abs() <= 1 << 53 {
            return m as f64 / 10f64.powi(places as i32);
        }
        self.text().parse().unwrap_or(f64::NAN)
    }

    /// The nearest float.
    #[must_use]
    pub fn to_f32(self) -> f32 {
        let (m, places) = self.shortest();
        if places == 0 {
            return m as f32;
        }
        if m.unsigned_abs() <= 1 << 24 && places <= 10 {
            return m as f32 / 10f32.powi(places as i32);
        }
        self.text().parse().unwrap_or(f32::NAN)
    }

    fn text(self) -> String {
        let mut out = vec![];
        self.push(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    /// Appends the canonical lexical form, in which a point is always followed by digits.
    pub fn push(self, out: &mut Vec<u8>) {
        let (m, places) = self.shortest();
        if m < 0 {
            out.push(b'-');
        }
        let mut digits = [b'0'; 40];
        let (mut left, mut at) = (m.unsigned_abs(), digits.len());
        while left > 0 {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
        }
        let places = places as usize;
        at = at.min(digits.len() - places - 1);
        let point = digits.len() - places;
        out.extend_from_slice(&digits[at..point]);
        if places > 0 {
            out.push(b'.');
            out.extend_from_slice(&digits[point..]);
        }
    }

    /// The decimal nearest to a finite double, ties to even; `None` if it is too large.
    #[must_use]
    pub fn from_f64(d: f64) -> Option<Self> {
        let bits = d.to_bits();
        let exponent = (bits >> 52 & 0x7FF) as i32;
        if exponent == 0x7FF {
            return None;
        }
        let fraction = (bits & ((1 << 52) - 1)) as i128;
        let mantissa = if exponent == 0 {
            fraction
        } else {
            fraction | 1 << 52
        };
        let power = exponent.max(1) - 1075;
        // Does not overflow: 2^53 · 10^18 is less than 2^113.
        let units = mantissa * ONE;
        let units = if power >= 0 {
            // The double is at least 2^53; from about 2^67 on it is too large.
            if power > 14 {
                return None;
            }
            units.checked_mul(1 << power)?
        } else if power < -126 {
            0
        } else {
            let shift = -power as u32;
            let (cut, rest) = (units >> shift, units & ((1i128 << shift) - 1));
            let half = 1i128 << (shift - 1);
            match rest.cmp(&half) {
                Ordering::Less => cut,
                Ordering::Equal => cut + (cut & 1),
                Ordering::Greater => cut + 1,
            }
        };
        Some(Self(if d < 0.0 { -units } else { units }))
    }
}

impl From<i64> for Decimal {
    fn from(i: i64) -> Self {
        // Does not overflow: 2^63 · 10^18 is less than 2^127.
        Self(i128::from(i) * ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nearest_floats(units in any::<i128>(), cut in 0u32..38) {
            let d = Decimal::from_units(units / 10i128.pow(cut));
            prop_assert_eq!(d.to_f64(), d.text().parse::<f64>().unwrap());
            prop_assert_eq!(d.to_f32(), d.text().parse::<f32>().unwrap());
            prop_assert_eq!(Decimal::parse(&d.text()), Some(d));
        }

        #[test]
        fn products_and_quotients_are_those_of_long_numbers(a in any::<i128>(), b in any::<i128>(), i in 0u32..38, j in 0u32..38) {
            use num_bigint::BigInt;
            let (a, b) = (a / 10i128.pow(i), b / 10i128.pow(j));
            let (x, y) = (Decimal::from_units(a), Decimal::from_units(b));
            let one = BigInt::from(ONE);
            if let Some(p) = x.multiply(y) {
                prop_assert_eq!(BigInt::from(p.units()) * &one, BigInt::from(a) * BigInt::from(b));
            }
            if let Some(q) = x.divide(y) {
                prop_assert_eq!(BigInt::from(q.units()), BigInt::from(a) * &one / BigInt::from(b));
            }
        }
    }
}
