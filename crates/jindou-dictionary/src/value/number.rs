//! Approximate values of numbers, which ranking compares before it reads exact ones.

use jindou_model::term::FIRST_DATATYPE;
use jindou_values::{Exact, Number, NumericKind};

pub(crate) const DOUBLE_TAG: u8 = FIRST_DATATYPE + 2;
pub(crate) const FLOAT_TAG: u8 = FIRST_DATATYPE + 3;
const INTEGER_TAG: u8 = FIRST_DATATYPE;
const DECIMAL_TAG: u8 = FIRST_DATATYPE + 1;

/// A number in the form used for ranking: the nearest double, and true if that is known to be the exact value.
pub(crate) struct Approximate {
    pub(crate) value: f64,
    pub(crate) exact: bool,
}

/// The approximation of a numeric lexical form; `None` if it is ill-typed. No allocation for up to 15 digits.
pub(crate) fn approximate(tag: u8, lexical: &str) -> Option<Approximate> {
    if NumericKind::of_tag(tag)? == NumericKind::Exact
        && let Some(short) = short(tag, lexical)
    {
        return Some(short);
    }
    let n = Number::parse(tag, lexical)?;
    let value = n.to_f64();
    let exact = match n.kind() {
        NumericKind::Exact => value.is_finite() && n.exact() == Some(Exact::from_f64(value)),
        _ => true,
    };
    Some(Approximate { value, exact })
}

/// The approximation of a number of up to 15 digits, in a datatype without bounds: a double represents the digits and
/// the power of ten exactly.
fn short(tag: u8, lexical: &str) -> Option<Approximate> {
    if !matches!(tag, INTEGER_TAG | DECIMAL_TAG) || lexical.len() > 17 {
        return None;
    }
    let (negative, rest) = match lexical.as_bytes().split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, lexical.as_bytes()),
    };
    let (mut m, mut digits, mut places) = (0u64, 0, None);
    for &b in rest {
        match b {
            b'0'..=b'9' => {
                m = m * 10 + u64::from(b - b'0');
                digits += 1;
                places = places.map(|p| p + 1);
            }
            b'.' if places.is_none() && tag == DECIMAL_TAG => places = Some(0u32),
            _ => return None,
        }
    }
    if digits == 0 || digits > 15 {
        return None;
    }
    let places = places.unwrap_or(0);
    let value = m as f64 / 10u64.pow(places) as f64;
    // `m / 10^k` has a finite binary representation if and only if 5^k divides m.
    let exact = m % 5u64.pow(places) == 0;
    // Adding 0 turns the negative zero into the positive one.
    let value = if negative { -value + 0.0 } else { value };
    Some(Approximate { value, exact })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ill_typed_ones_have_no_approximation() {
        for (tag, bad) in [
            (INTEGER_TAG, "1.0"),
            (INTEGER_TAG, ""),
            (INTEGER_TAG, "-"),
            (DECIMAL_TAG, "."),
            (DECIMAL_TAG, "1.2.3"),
            (DECIMAL_TAG, "1e3"),
            (DOUBLE_TAG, "inf"),
            (FIRST_DATATYPE + 7, "300"),
            (b'"', "1"),
        ] {
            assert!(approximate(tag, bad).is_none(), "{bad}");
        }
        assert!(approximate(FIRST_DATATYPE + 7, "100").is_some());
    }

    proptest! {
        #[test]
        fn approximations_are_the_nearest_double(s in "[+-]?[0-9]{1,12}(\\.[0-9]{0,12})?") {
            let a = approximate(DECIMAL_TAG, &s).unwrap();
            prop_assert_eq!(a.value, s.parse::<f64>().unwrap());
            prop_assert_eq!(a.exact, Exact::parse(&s).unwrap() == Exact::from_f64(a.value));
            let n = Number::parse(DECIMAL_TAG, &s).unwrap();
            prop_assert_eq!(n.to_f64(), a.value);
        }
    }
}
