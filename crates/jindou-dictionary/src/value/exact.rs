//! Exact numbers of any size, as digits: what ranks fall back to when two numbers have the same
//! nearest double.

use std::cmp::Ordering;

/// `± 0.d₁d₂d₃… · 10^exponent`, without zeros at either end of the digits; zero has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exact {
    negative: bool,
    exponent: i64,
    digits: Vec<u8>,
}

impl Exact {
    fn new(negative: bool, integer: &[u8], fraction: &[u8], power: i64) -> Self {
        let mut digits: Vec<u8> = integer.iter().chain(fraction).copied().collect();
        let leading = digits.iter().take_while(|&&d| d == b'0').count();
        digits.drain(..leading);
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
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

    /// The value of an `xsd:decimal` or `xsd:integer` of any length; `None` when ill-typed.
    pub(crate) fn parse(lexical: &str) -> Option<Self> {
        let (negative, integer, fraction) = decimal_parts(lexical)?;
        Some(Self::new(negative, integer, fraction, 0))
    }

    /// The exact value of a finite double.
    pub(crate) fn from_f64(v: f64) -> Self {
        // 766 digits behind the first are enough for every double; the formatting is exact.
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

/// Sign, digits before and behind the point of `(\+|-)?([0-9]+(\.[0-9]*)?|\.[0-9]+)`.
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

    #[test]
    fn ill_typed_decimals_have_no_value() {
        for bad in [
            "", "+", "-", ".", "1e5", " 1", "1 ", "0x1", "--1", "1.2.3", "NaN", "١",
        ] {
            assert_eq!(Exact::parse(bad), None, "{bad}");
        }
        for good in ["1.", ".5", "+0", "-0.0", "007"] {
            assert!(Exact::parse(good).is_some(), "{good}");
        }
        assert_eq!(Exact::parse("-0.0"), Exact::parse("+000"));
    }

    #[test]
    fn doubles_are_taken_exactly() {
        assert_eq!(Some(Exact::from_f64(0.5)), Exact::parse("0.5"));
        assert_eq!(Some(Exact::from_f64(-1024.0)), Exact::parse("-1024"));
        assert_eq!(
            Some(Exact::from_f64(0.1)),
            Exact::parse("0.1000000000000000055511151231257827021181583404541015625")
        );
        let smallest = Exact::from_f64(5e-324);
        assert_eq!((smallest.digits.len(), smallest.exponent), (751, -323));
        assert_eq!(Exact::from_f64(f64::MAX).exponent, 309);
    }

    proptest! {
        #[test]
        fn order_is_that_of_scaled_integers(
            a in -2000i64..2000, b in -2000i64..2000, i in 0usize..4, j in 0usize..4, pad in 0usize..3,
        ) {
            let text = |v: i64, places: usize| {
                let s = format!("{:0w$}", v.abs(), w = places + 1);
                let (x, y) = s.split_at(s.len() - places);
                format!("{}{}{x}.{y}{}", if v < 0 { "-" } else { "" }, "0".repeat(pad), "0".repeat(pad))
            };
            let (x, y) = (Exact::parse(&text(a, i)).unwrap(), Exact::parse(&text(b, j)).unwrap());
            let (m, n) = (a * 10i64.pow(3 - i as u32), b * 10i64.pow(3 - j as u32));
            prop_assert_eq!(x.cmp(&y), m.cmp(&n));
        }
    }
}
