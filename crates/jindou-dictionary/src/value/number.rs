//! Numbers of SPARQL.

use super::exact::{Exact, decimal_parts};
use jindou_model::term::{FIRST_DATATYPE, NUMERIC_TAGS};
use oxsdatatypes::Decimal;
use std::str::FromStr;

/// A numeric literal's value in the type that SPARQL computes with.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// `xsd:integer` and the types derived from it, within 64 bits. The bounds of derived types
    /// are not enforced: `"300"^^xsd:byte` counts as 300, as in most engines.
    Integer(i64),
    /// `xsd:decimal` with at most 18 digits behind the point.
    Decimal(Decimal),
    /// An integer or decimal beyond those: its lexical form, which parses as a decimal.
    Big(String),
    /// `xsd:float`.
    Float(f32),
    /// `xsd:double`.
    Double(f64),
}

/// How a number compares: exactly, or after rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumericKind {
    /// Integers and decimals.
    Exact,
    /// `xsd:float`.
    Float,
    /// `xsd:double`.
    Double,
}

pub(crate) const DOUBLE_TAG: u8 = FIRST_DATATYPE + 2;
pub(crate) const FLOAT_TAG: u8 = FIRST_DATATYPE + 3;
const DECIMAL_TAG: u8 = FIRST_DATATYPE + 1;

impl NumericKind {
    /// The kind of a tag of [`NUMERIC_TAGS`].
    #[must_use]
    pub fn of_tag(tag: u8) -> Option<Self> {
        match tag {
            DOUBLE_TAG => Some(Self::Double),
            FLOAT_TAG => Some(Self::Float),
            _ => NUMERIC_TAGS.contains(&tag).then_some(Self::Exact),
        }
    }
}

impl Number {
    /// The value of a lexical form of a numeric datatype's tag; `None` when ill-typed or when the
    /// tag is not numeric.
    #[must_use]
    pub fn parse(tag: u8, lexical: &str) -> Option<Self> {
        match NumericKind::of_tag(tag)? {
            NumericKind::Double => floating(lexical, f64::INFINITY, f64::NAN).map(Self::Double),
            NumericKind::Float => floating(lexical, f32::INFINITY, f32::NAN).map(Self::Float),
            NumericKind::Exact => {
                let (_, integer, fraction) = decimal_parts(lexical)?;
                if tag != DECIMAL_TAG {
                    if integer.is_empty() || lexical.contains('.') {
                        return None;
                    }
                    if let Ok(i) = i64::from_str(lexical) {
                        return Some(Self::Integer(i));
                    }
                } else if fraction.len() <= 18
                    && let Ok(d) = Decimal::from_str(lexical)
                {
                    return Some(Self::Decimal(d));
                }
                Some(Self::Big(lexical.to_owned()))
            }
        }
    }

    /// How it compares.
    #[must_use]
    pub fn kind(&self) -> NumericKind {
        match self {
            Self::Integer(_) | Self::Decimal(_) | Self::Big(_) => NumericKind::Exact,
            Self::Float(_) => NumericKind::Float,
            Self::Double(_) => NumericKind::Double,
        }
    }

    /// The nearest double (infinite when too large).
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        let v = match self {
            Self::Integer(i) => *i as f64,
            Self::Decimal(d) => d.to_string().parse().unwrap_or(f64::NAN),
            Self::Big(s) => s.parse().unwrap_or(f64::NAN),
            Self::Float(f) => f64::from(*f),
            Self::Double(d) => *d,
        };
        v + 0.0
    }

    /// The nearest float, widened.
    pub(crate) fn to_f32(&self) -> f64 {
        f64::from(match self {
            Self::Integer(i) => *i as f32,
            Self::Decimal(d) => d.to_string().parse().unwrap_or(f32::NAN),
            Self::Big(s) => s.parse().unwrap_or(f32::NAN),
            Self::Float(f) => *f,
            Self::Double(d) => *d as f32,
        }) + 0.0
    }

    /// The exact value; `None` for NaN and the infinities.
    pub(crate) fn exact(&self) -> Option<Exact> {
        match self {
            Self::Integer(i) => Exact::parse(&i.to_string()),
            Self::Decimal(d) => Exact::parse(&d.to_string()),
            Self::Big(s) => Exact::parse(s),
            Self::Float(_) | Self::Double(_) => {
                let v = self.to_f64();
                v.is_finite().then(|| Exact::from_f64(v))
            }
        }
    }
}

/// A float or double by the grammar of XSD 1.1: Rust's parser also takes `inf` and `nan` in any case.
fn floating<T: FromStr + std::ops::Neg<Output = T>>(lexical: &str, inf: T, nan: T) -> Option<T> {
    match lexical {
        "INF" | "+INF" => return Some(inf),
        "-INF" => return Some(-inf),
        "NaN" => return Some(nan),
        _ => {}
    }
    let plain = |b: u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E');
    if !lexical.bytes().all(plain) {
        return None;
    }
    lexical.parse().ok()
}

/// A number as ranking wants it: the nearest double, and whether that is the exact value for sure.
pub(crate) struct Approximate {
    pub(crate) value: f64,
    pub(crate) exact: bool,
}

/// The approximation of a numeric lexical form; `None` when ill-typed. No allocation.
pub(crate) fn approximate(tag: u8, lexical: &str) -> Option<Approximate> {
    let kind = NumericKind::of_tag(tag)?;
    if kind != NumericKind::Exact {
        let value = Number::parse(tag, lexical)?.to_f64();
        return Some(Approximate { value, exact: true });
    }
    let (negative, integer, fraction) = decimal_parts(lexical)?;
    if tag != DECIMAL_TAG && (integer.is_empty() || lexical.contains('.')) {
        return None;
    }
    // Up to 15 digits: a double holds them and the powers of ten.
    if integer.len() + fraction.len() <= 15 {
        let digits = integer.iter().chain(fraction);
        let m = digits.fold(0u64, |m, &d| m * 10 + u64::from(d - b'0'));
        let places = fraction.len() as u32;
        let value = m as f64 / 10u64.pow(places) as f64;
        // m / 10^k ends in binary if and only if 5^k divides m.
        let exact = m % 5u64.pow(places) == 0;
        // Adding 0 turns the negative zero into the positive one.
        let value = if negative { -value + 0.0 } else { value };
        return Some(Approximate { value, exact });
    }
    Some(Approximate {
        value: lexical.parse::<f64>().ok()? + 0.0,
        exact: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INTEGER: u8 = FIRST_DATATYPE;

    #[test]
    fn lexical_forms_of_each_type() {
        assert_eq!(Number::parse(INTEGER, "+007"), Some(Number::Integer(7)));
        assert_eq!(Number::parse(INTEGER, "1.0"), None);
        assert_eq!(Number::parse(INTEGER, "1."), None);
        assert!(matches!(
            Number::parse(INTEGER, "99999999999999999999"),
            Some(Number::Big(_))
        ));
        assert!(matches!(
            Number::parse(DECIMAL_TAG, "1.50"),
            Some(Number::Decimal(_))
        ));
        assert!(matches!(
            Number::parse(DECIMAL_TAG, &"0".repeat(60)),
            Some(Number::Decimal(_))
        ));
        assert!(matches!(
            Number::parse(DECIMAL_TAG, "0.1234567890123456789"),
            Some(Number::Big(_))
        ));
        assert_eq!(Number::parse(DECIMAL_TAG, "1e0"), None);
        assert_eq!(
            Number::parse(DOUBLE_TAG, "-INF"),
            Some(Number::Double(f64::NEG_INFINITY))
        );
        assert_eq!(
            Number::parse(DOUBLE_TAG, "1e3"),
            Some(Number::Double(1000.0))
        );
        for bad in ["inf", "nan", "infinity", "", "e5", "1e", "0x10", "1_0"] {
            assert_eq!(Number::parse(DOUBLE_TAG, bad), None, "{bad}");
            assert_eq!(Number::parse(FLOAT_TAG, bad), None, "{bad}");
        }
        assert_eq!(Number::parse(b'"', "1"), None);
    }

    proptest! {
        #[test]
        fn approximations_are_the_nearest_double(s in "[+-]?[0-9]{1,12}(\\.[0-9]{0,12})?") {
            let a = approximate(DECIMAL_TAG, &s).unwrap();
            prop_assert_eq!(a.value, s.parse::<f64>().unwrap());
            if a.exact {
                prop_assert_eq!(Exact::parse(&s).unwrap(), Exact::from_f64(a.value));
            }
            let n = Number::parse(DECIMAL_TAG, &s).unwrap();
            prop_assert_eq!(n.to_f64(), a.value);
            prop_assert_eq!(n.exact(), Exact::parse(&s));
        }
    }
}
