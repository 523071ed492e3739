//! Numbers of SPARQL.

use crate::decimal::Decimal;
use crate::exact::{Exact, decimal_parts};
use jindou_model::term::{FIRST_DATATYPE, NUMERIC_TAGS};
use std::cmp::Ordering;
use std::io::Write;
use std::str::FromStr;

const DECIMAL_TAG: u8 = FIRST_DATATYPE + 1;
const DOUBLE_TAG: u8 = FIRST_DATATYPE + 2;
const FLOAT_TAG: u8 = FIRST_DATATYPE + 3;

/// A number that is copied: its type is the one that SPARQL computes with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Num {
    /// `xsd:integer` and the types derived from it.
    Int(i64),
    /// `xsd:decimal`.
    Dec(Decimal),
    /// `xsd:float`.
    Flt(f32),
    /// `xsd:double`.
    Dbl(f64),
}

/// Any number.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// One that is copied.
    Small(Num),
    /// An integer beyond 64 bits; never one that is small.
    Integer(Exact),
    /// A decimal beyond [`Decimal`]; never one that is small.
    Decimal(Exact),
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

/// The four arithmetic operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

/// Two numbers in the wider of their types (XPath 3.1 §B.1, type promotion).
enum Pair {
    Int(i64, i64),
    Dec(Decimal, Decimal),
    Flt(f32, f32),
    Dbl(f64, f64),
}

#[inline]
fn pair(a: Num, b: Num) -> Pair {
    use Num::{Dbl, Dec, Int};
    match (a, b) {
        (Int(a), Int(b)) => Pair::Int(a, b),
        (Int(a), Dec(b)) => Pair::Dec(a.into(), b),
        (Dec(a), Int(b)) => Pair::Dec(a, b.into()),
        (Dec(a), Dec(b)) => Pair::Dec(a, b),
        (Dbl(a), b) => Pair::Dbl(a, b.to_f64()),
        (a, Dbl(b)) => Pair::Dbl(a.to_f64(), b),
        (a, b) => Pair::Flt(a.to_f32(), b.to_f32()),
    }
}

impl Num {
    /// The nearest double.
    #[inline]
    #[must_use]
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Int(i) => i as f64,
            Self::Dec(d) => d.to_f64(),
            Self::Flt(f) => f64::from(f),
            Self::Dbl(d) => d,
        }
    }

    /// The nearest float.
    #[must_use]
    pub fn to_f32(self) -> f32 {
        match self {
            Self::Int(i) => i as f32,
            Self::Dec(d) => d.to_f32(),
            Self::Flt(f) => f,
            Self::Dbl(d) => d as f32,
        }
    }

    /// `None` where the value is no small number: after overflow, and of exact division by zero.
    #[inline]
    #[must_use]
    pub fn compute(self, op: Arithmetic, other: Self) -> Option<Self> {
        use Arithmetic::{Add, Divide, Multiply, Subtract};
        Some(match (pair(self, other), op) {
            (Pair::Int(a, b), Add) => Self::Int(a.checked_add(b)?),
            (Pair::Int(a, b), Subtract) => Self::Int(a.checked_sub(b)?),
            (Pair::Int(a, b), Multiply) => Self::Int(a.checked_mul(b)?),
            (Pair::Int(a, b), Divide) => Self::Dec(Decimal::from(a).divide(b.into())?),
            (Pair::Dec(a, b), Add) => Self::Dec(a.plus(b)?),
            (Pair::Dec(a, b), Subtract) => Self::Dec(a.subtract(b)?),
            (Pair::Dec(a, b), Multiply) => Self::Dec(a.multiply(b)?),
            (Pair::Dec(a, b), Divide) => Self::Dec(a.divide(b)?),
            (Pair::Flt(a, b), Add) => Self::Flt(a + b),
            (Pair::Flt(a, b), Subtract) => Self::Flt(a - b),
            (Pair::Flt(a, b), Multiply) => Self::Flt(a * b),
            (Pair::Flt(a, b), Divide) => Self::Flt(a / b),
            (Pair::Dbl(a, b), Add) => Self::Dbl(a + b),
            (Pair::Dbl(a, b), Subtract) => Self::Dbl(a - b),
            (Pair::Dbl(a, b), Multiply) => Self::Dbl(a * b),
            (Pair::Dbl(a, b), Divide) => Self::Dbl(a / b),
        })
    }

    /// How two numbers compare as `=` and `<` have it: in the wider type. `None` with NaN.
    #[inline]
    #[must_use]
    pub fn order(self, other: Self) -> Option<Ordering> {
        match pair(self, other) {
            Pair::Int(a, b) => Some(a.cmp(&b)),
            Pair::Dec(a, b) => Some(a.cmp(&b)),
            Pair::Flt(a, b) => a.partial_cmp(&b),
            Pair::Dbl(a, b) => a.partial_cmp(&b),
        }
    }

    /// `None` where the value is no small number.
    #[must_use]
    pub fn negate(self) -> Option<Self> {
        Some(match self {
            Self::Int(i) => Self::Int(i.checked_neg()?),
            Self::Dec(d) => Self::Dec(d.negate()?),
            Self::Flt(f) => Self::Flt(-f),
            Self::Dbl(d) => Self::Dbl(-d),
        })
    }

    /// `None` where the value is no small number.
    #[must_use]
    pub fn abs(self) -> Option<Self> {
        Some(match self {
            Self::Int(i) => Self::Int(i.checked_abs()?),
            Self::Dec(d) => Self::Dec(d.abs()?),
            Self::Flt(f) => Self::Flt(f.abs()),
            Self::Dbl(d) => Self::Dbl(d.abs()),
        })
    }

    /// `None` where the value is no small number.
    #[must_use]
    pub fn ceil(self) -> Option<Self> {
        Some(match self {
            Self::Int(_) => self,
            Self::Dec(d) => Self::Dec(d.ceil()?),
            Self::Flt(f) => Self::Flt(f.ceil()),
            Self::Dbl(d) => Self::Dbl(d.ceil()),
        })
    }

    /// `None` where the value is no small number.
    #[must_use]
    pub fn floor(self) -> Option<Self> {
        Some(match self {
            Self::Int(_) => self,
            Self::Dec(d) => Self::Dec(d.floor()?),
            Self::Flt(f) => Self::Flt(f.floor()),
            Self::Dbl(d) => Self::Dbl(d.floor()),
        })
    }

    /// Of two nearest integers the greater (fn:round). `None` where the value is no small number.
    #[must_use]
    pub fn round(self) -> Option<Self> {
        Some(match self {
            Self::Int(_) => self,
            Self::Dec(d) => Self::Dec(d.round()?),
            // A float's half is a double, and what is rounded fits a float.
            Self::Flt(f) => Self::Flt(round(f64::from(f)) as f32),
            Self::Dbl(d) => Self::Dbl(round(d)),
        })
    }

    /// The effective boolean value.
    #[must_use]
    pub fn truth(self) -> bool {
        match self {
            Self::Int(i) => i != 0,
            Self::Dec(d) => !d.is_zero(),
            Self::Flt(f) => f != 0.0 && !f.is_nan(),
            Self::Dbl(d) => d != 0.0 && !d.is_nan(),
        }
    }

    /// True for NaN.
    #[must_use]
    pub fn is_nan(self) -> bool {
        match self {
            Self::Int(_) | Self::Dec(_) => false,
            Self::Flt(f) => f.is_nan(),
            Self::Dbl(d) => d.is_nan(),
        }
    }

    /// How it compares.
    #[must_use]
    pub fn kind(self) -> NumericKind {
        match self {
            Self::Int(_) | Self::Dec(_) => NumericKind::Exact,
            Self::Flt(_) => NumericKind::Float,
            Self::Dbl(_) => NumericKind::Double,
        }
    }

    /// Appends the canonical bytes of the literal.
    pub fn push(self, out: &mut Vec<u8>) {
        out.push(match self {
            Self::Int(_) => FIRST_DATATYPE,
            Self::Dec(_) => DECIMAL_TAG,
            Self::Dbl(_) => DOUBLE_TAG,
            Self::Flt(_) => FLOAT_TAG,
        });
        self.push_text(out);
    }

    /// Appends the canonical lexical form: that of a cast to string (XPath F&O 3.1 §19.1.1).
    pub fn push_text(self, out: &mut Vec<u8>) {
        // Writing to a vector cannot fail.
        let _ = match self {
            Self::Int(i) => write!(out, "{i}"),
            Self::Dec(d) => {
                d.push(out);
                Ok(())
            }
            Self::Dbl(d) if special(d, out) => Ok(()),
            Self::Flt(f) if special(f64::from(f), out) => Ok(()),
            Self::Dbl(d) if plain(d.abs()) => write!(out, "{d}"),
            Self::Flt(f) if (0.000_001..1_000_000.0).contains(&f.abs()) || f == 0.0 => {
                write!(out, "{f}")
            }
            Self::Dbl(d) => scientific(&format!("{d:E}"), out),
            Self::Flt(f) => scientific(&format!("{f:E}"), out),
        };
    }
}

fn plain(d: f64) -> bool {
    (0.000_001..1_000_000.0).contains(&d) || d == 0.0
}

fn special(d: f64, out: &mut Vec<u8>) -> bool {
    let text = match d {
        d if d.is_nan() => "NaN",
        f64::INFINITY => "INF",
        f64::NEG_INFINITY => "-INF",
        _ => return false,
    };
    out.extend_from_slice(text.as_bytes());
    true
}

/// A mantissa has at least one digit behind the point.
fn scientific(text: &str, out: &mut Vec<u8>) -> std::io::Result<()> {
    let (mantissa, power) = text.split_once('E').unwrap_or((text, "0"));
    let point = if mantissa.contains('.') { "" } else { ".0" };
    write!(out, "{mantissa}{point}E{power}")
}

/// fn:round: of two nearest integers the greater; zeros keep the sign.
fn round(d: f64) -> f64 {
    let below = d.floor();
    let rounded = if d - below >= 0.5 { below + 1.0 } else { below };
    rounded.copysign(d)
}

impl From<Num> for Number {
    fn from(n: Num) -> Self {
        Self::Small(n)
    }
}

impl Number {
    /// The value of a lexical form of a numeric datatype's tag; `None` when ill-typed (an integer out of its type's range
    /// is) or when the tag is not numeric.
    #[must_use]
    pub fn parse(tag: u8, lexical: &str) -> Option<Self> {
        match NumericKind::of_tag(tag)? {
            NumericKind::Double => {
                floating(lexical, f64::INFINITY, f64::NAN).map(|d| Num::Dbl(d).into())
            }
            NumericKind::Float => {
                floating(lexical, f32::INFINITY, f32::NAN).map(|f| Num::Flt(f).into())
            }
            NumericKind::Exact => {
                if tag == DECIMAL_TAG {
                    let (negative, integer, fraction) = decimal_parts(lexical)?;
                    return match Decimal::of_digits(negative, integer, fraction) {
                        Some(d) => Some(Num::Dec(d).into()),
                        None => Exact::parse(lexical).map(Self::Decimal),
                    };
                }
                let n = match i64::from_str(lexical) {
                    Ok(i) => Num::Int(i).into(),
                    Err(_) => {
                        let (_, integer, _) = decimal_parts(lexical)?;
                        if integer.is_empty() || lexical.contains('.') {
                            return None;
                        }
                        // Beyond 64 bits, or with many leading zeros.
                        Self::integer(Exact::parse(lexical)?)
                    }
                };
                n.is_within(tag).then_some(n)
            }
        }
    }

    /// An integer in its smallest form. It must have no digits behind the point.
    #[must_use]
    pub fn integer(e: Exact) -> Self {
        match e.integer() {
            Some(i) => Num::Int(i).into(),
            None => Self::Integer(e),
        }
    }

    /// A decimal in its smallest form.
    #[must_use]
    pub fn decimal(e: Exact) -> Self {
        match e.small() {
            Some(d) => Num::Dec(d).into(),
            None => Self::Decimal(e),
        }
    }

    /// Whether an integer is one of the type with this tag; true for types that are not derived from `xsd:integer`.
    #[must_use]
    pub fn is_within(&self, tag: u8) -> bool {
        let (least, most) = match tag.wrapping_sub(FIRST_DATATYPE) {
            4 => (Some(i128::from(i32::MIN)), Some(i128::from(i32::MAX))),
            5 => (Some(i128::from(i64::MIN)), Some(i128::from(i64::MAX))),
            6 => (Some(i128::from(i16::MIN)), Some(i128::from(i16::MAX))),
            7 => (Some(i128::from(i8::MIN)), Some(i128::from(i8::MAX))),
            8 => (Some(0), None),
            9 => (Some(1), None),
            10 => (None, Some(0)),
            11 => (None, Some(-1)),
            12 => (Some(0), Some(i128::from(u32::MAX))),
            13 => (Some(0), Some(i128::from(u64::MAX))),
            14 => (Some(0), Some(i128::from(u16::MAX))),
            15 => (Some(0), Some(i128::from(u8::MAX))),
            _ => return true,
        };
        match self {
            Self::Small(Num::Int(i)) => {
                let i = i128::from(*i);
                least.is_none_or(|l| l <= i) && most.is_none_or(|m| i <= m)
            }
            Self::Integer(e) => {
                // Beyond 64 bits: only unsignedLong has a bound there.
                if e.is_negative() {
                    least.is_none()
                } else {
                    most.is_none_or(|m| {
                        m == i128::from(u64::MAX) && e.text().parse::<u64>().is_ok()
                    })
                }
            }
            _ => false,
        }
    }

    /// The number as one that is copied, if it is.
    #[must_use]
    pub fn small(&self) -> Option<Num> {
        match self {
            Self::Small(n) => Some(*n),
            _ => None,
        }
    }

    /// How it compares.
    #[must_use]
    pub fn kind(&self) -> NumericKind {
        match self {
            Self::Small(n) => n.kind(),
            Self::Integer(_) | Self::Decimal(_) => NumericKind::Exact,
        }
    }

    /// The nearest double, never the negative zero; infinite when too large.
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        match self {
            Self::Small(n) => n.to_f64() + 0.0,
            Self::Integer(e) | Self::Decimal(e) => e.to_f64(),
        }
    }

    /// The nearest float, never the negative zero; infinite when too large.
    #[must_use]
    pub fn to_f32(&self) -> f32 {
        match self {
            Self::Small(n) => n.to_f32() + 0.0,
            Self::Integer(e) | Self::Decimal(e) => e.to_f32(),
        }
    }

    /// The exact value; `None` for NaN and the infinities.
    #[must_use]
    pub fn exact(&self) -> Option<Exact> {
        match self {
            Self::Small(Num::Int(i)) => Some(Decimal::from(*i).into()),
            Self::Small(Num::Dec(d)) => Some((*d).into()),
            Self::Small(n) => {
                let v = n.to_f64();
                v.is_finite().then(|| Exact::from_f64(v))
            }
            Self::Integer(e) | Self::Decimal(e) => Some(e.clone()),
        }
    }

    fn is_integer(&self) -> bool {
        matches!(self, Self::Small(Num::Int(_)) | Self::Integer(_))
    }

    /// Arithmetic on any numbers. `None` is an error: exact division by zero, or numbers of more than 10,000 digits.
    #[must_use]
    pub fn compute(&self, op: Arithmetic, other: &Self) -> Option<Self> {
        if let (Self::Small(a), Self::Small(b)) = (self, other)
            && let Some(n) = a.compute(op, *b)
        {
            return Some(n.into());
        }
        let (a, b) = match (self.kind(), other.kind()) {
            (NumericKind::Exact, NumericKind::Exact) => (self.exact()?, other.exact()?),
            (NumericKind::Double, _) | (_, NumericKind::Double) => {
                let (a, b) = (Num::Dbl(self.signed_f64()), Num::Dbl(other.signed_f64()));
                return a.compute(op, b).map(Self::Small);
            }
            _ => {
                let (a, b) = (Num::Flt(self.signed_f32()), Num::Flt(other.signed_f32()));
                return a.compute(op, b).map(Self::Small);
            }
        };
        let value = match op {
            Arithmetic::Add => a.add(&b),
            Arithmetic::Subtract => a.subtract(&b),
            Arithmetic::Multiply => a.multiply(&b),
            Arithmetic::Divide => a.divide(&b),
        }?;
        Some(
            if op != Arithmetic::Divide && self.is_integer() && other.is_integer() {
                Self::integer(value)
            } else {
                Self::decimal(value)
            },
        )
    }

    fn signed_f64(&self) -> f64 {
        match self {
            Self::Small(n) => n.to_f64(),
            _ => self.to_f64(),
        }
    }

    fn signed_f32(&self) -> f32 {
        match self {
            Self::Small(n) => n.to_f32(),
            _ => self.to_f32(),
        }
    }

    /// How two numbers compare as `=` and `<` have it: in the wider type. `None` with NaN.
    #[must_use]
    pub fn order(&self, other: &Self) -> Option<Ordering> {
        if let (Self::Small(a), Self::Small(b)) = (self, other) {
            return a.order(*b);
        }
        match (self.kind(), other.kind()) {
            (NumericKind::Exact, NumericKind::Exact) => Some(self.exact()?.cmp(&other.exact()?)),
            (NumericKind::Double, _) | (_, NumericKind::Double) => {
                self.to_f64().partial_cmp(&other.to_f64())
            }
            _ => self.to_f32().partial_cmp(&other.to_f32()),
        }
    }

    /// How two numbers compare by their exact values, whatever their types: the order of ORDER BY, in which NaN is last.
    #[must_use]
    pub fn total_order(&self, other: &Self) -> Ordering {
        let (a, b) = (self.to_f64(), other.to_f64());
        match (a.is_nan(), b.is_nan()) {
            (false, false) => {}
            (x, y) => return x.cmp(&y),
        }
        if a != b {
            return a.total_cmp(&b);
        }
        match (self.exact(), other.exact()) {
            (Some(a), Some(b)) => a.cmp(&b),
            // An infinity is beyond a number too large for a double.
            (None, Some(_)) if a > 0.0 => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) if a > 0.0 => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        }
    }

    /// Applies `small` to a small number; if the number is not small, or that gives nothing, applies `exact` to the exact
    /// one.
    fn each(
        &self,
        small: impl FnOnce(Num) -> Option<Num>,
        exact: impl FnOnce(&Exact) -> Option<Exact>,
    ) -> Option<Self> {
        if let Self::Small(n) = self
            && let Some(n) = small(*n)
        {
            return Some(n.into());
        }
        let value = exact(&self.exact()?)?;
        Some(if self.is_integer() {
            Self::integer(value)
        } else {
            Self::decimal(value)
        })
    }

    /// The number with the other sign.
    #[must_use]
    pub fn negate(&self) -> Option<Self> {
        self.each(Num::negate, |e| Some(e.negate()))
    }

    /// The absolute value.
    #[must_use]
    pub fn abs(&self) -> Option<Self> {
        self.each(Num::abs, |e| Some(e.abs()))
    }

    /// The least integer that is not less, in the same type.
    #[must_use]
    pub fn ceil(&self) -> Option<Self> {
        self.each(Num::ceil, Exact::ceil)
    }

    /// The greatest integer that is not greater, in the same type.
    #[must_use]
    pub fn floor(&self) -> Option<Self> {
        self.each(Num::floor, Exact::floor)
    }

    /// The nearest integer, of two the greater (fn:round), in the same type.
    #[must_use]
    pub fn round(&self) -> Option<Self> {
        self.each(Num::round, Exact::round)
    }

    /// The effective boolean value.
    #[must_use]
    pub fn truth(&self) -> bool {
        self.small().is_none_or(Num::truth)
    }

    /// Appends the canonical bytes of the literal.
    pub fn push(&self, out: &mut Vec<u8>) {
        match self {
            Self::Small(n) => return n.push(out),
            Self::Integer(_) => out.push(FIRST_DATATYPE),
            Self::Decimal(_) => out.push(DECIMAL_TAG),
        }
        self.push_text(out);
    }

    /// Appends the canonical lexical form.
    pub fn push_text(&self, out: &mut Vec<u8>) {
        match self {
            Self::Small(n) => n.push_text(out),
            Self::Integer(e) | Self::Decimal(e) => out.extend_from_slice(e.text().as_bytes()),
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

#[cfg(test)]
mod tests {
    use super::*;

    const INTEGER: u8 = FIRST_DATATYPE;

    fn n(tag: u8, lexical: &str) -> Number {
        Number::parse(tag, lexical).unwrap_or_else(|| panic!("{lexical}"))
    }

    fn text(n: Option<Number>) -> String {
        let mut out = vec![];
        match n {
            Some(n) => n.push_text(&mut out),
            None => return "error".into(),
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lexical_forms_of_each_type() {
        assert_eq!(n(INTEGER, "+007"), Num::Int(7).into());
        assert_eq!(
            n(INTEGER, &format!("{}7", "0".repeat(50))),
            Num::Int(7).into()
        );
        assert_eq!(Number::parse(INTEGER, "1.0"), None);
        assert_eq!(Number::parse(INTEGER, "1."), None);
        assert!(matches!(
            n(INTEGER, "99999999999999999999"),
            Number::Integer(_)
        ));
        assert_eq!(
            n(DECIMAL_TAG, "1.50"),
            Num::Dec(Decimal::parse("1.5").unwrap()).into()
        );
        assert!(matches!(n(DECIMAL_TAG, &"0".repeat(60)), Number::Small(_)));
        assert!(matches!(
            n(DECIMAL_TAG, "0.1234567890123456789"),
            Number::Decimal(_)
        ));
        assert_eq!(Number::parse(DECIMAL_TAG, "1e0"), None);
        assert_eq!(n(DOUBLE_TAG, "-INF"), Num::Dbl(f64::NEG_INFINITY).into());
        assert_eq!(n(DOUBLE_TAG, "1E400"), Num::Dbl(f64::INFINITY).into());
        assert_eq!(n(DOUBLE_TAG, "1e3"), Num::Dbl(1000.0).into());
        for bad in [
            "inf", "nan", "infinity", "", "e5", "1e", "0x10", "1_0", " 1",
        ] {
            assert_eq!(Number::parse(DOUBLE_TAG, bad), None, "{bad}");
            assert_eq!(Number::parse(FLOAT_TAG, bad), None, "{bad}");
        }
        assert_eq!(Number::parse(b'"', "1"), None);
    }

    #[test]
    fn derived_integers_have_their_ranges() {
        let code = |name: &str| {
            jindou_model::term::datatype_code(&format!("http://www.w3.org/2001/XMLSchema#{name}"))
                .unwrap()
        };
        for (name, good, bad) in [
            ("byte", &["-128", "127"][..], &["-129", "128", "300"][..]),
            ("unsignedByte", &["0", "255", "-0"], &["-1", "256"]),
            ("short", &["-32768"], &["32768"]),
            ("int", &["2147483647"], &["2147483648"]),
            (
                "long",
                &["9223372036854775807"],
                &["9223372036854775808", "-9223372036854775809"],
            ),
            (
                "unsignedLong",
                &["18446744073709551615"],
                &["18446744073709551616", "-1", "-99999999999999999999"],
            ),
            (
                "nonNegativeInteger",
                &["0", "99999999999999999999999999"],
                &["-1", "-99999999999999999999999"],
            ),
            ("positiveInteger", &["1"], &["0"]),
            (
                "nonPositiveInteger",
                &["0", "-99999999999999999999999"],
                &["1", "99999999999999999999999"],
            ),
            ("negativeInteger", &["-1"], &["0"]),
        ] {
            for s in good {
                assert!(Number::parse(code(name), s).is_some(), "{name} {s}");
            }
            for s in bad {
                assert!(Number::parse(code(name), s).is_none(), "{name} {s}");
            }
        }
    }

    /// F&O 3.1 §4.2 and §4.4: the examples, and the edges of 64 bits.
    #[test]
    fn arithmetic() {
        use Arithmetic::{Add, Divide, Multiply, Subtract};
        let max = n(INTEGER, "9223372036854775807");
        let one = n(INTEGER, "1");
        assert_eq!(text(max.compute(Add, &one)), "9223372036854775808");
        assert_eq!(
            text(max.compute(Multiply, &max)),
            "85070591730234615847396907784232501249"
        );
        assert_eq!(
            max.compute(Add, &one).unwrap().compute(Subtract, &one),
            Some(max.clone())
        );
        assert_eq!(
            text(n(INTEGER, "-9223372036854775808").negate()),
            "9223372036854775808"
        );
        assert_eq!(text(one.compute(Divide, &n(INTEGER, "0"))), "error");
        assert_eq!(text(one.compute(Divide, &n(DOUBLE_TAG, "0"))), "INF");
        assert_eq!(
            text(n(INTEGER, "0").compute(Divide, &n(DECIMAL_TAG, "0.5"))),
            "0"
        );
        assert_eq!(
            text(n(DECIMAL_TAG, "3").compute(Divide, &n(INTEGER, "4"))),
            "0.75"
        );
        let long = n(DECIMAL_TAG, "0.12345678901234567890123");
        assert_eq!(
            text(long.compute(Multiply, &n(DOUBLE_TAG, "1"))),
            "0.12345678901234568"
        );
        assert_eq!(text(long.compute(Subtract, &long)), "0");
        assert_eq!(
            text(n(DECIMAL_TAG, "0.0000000001").compute(Multiply, &n(DECIMAL_TAG, "0.0000000001"))),
            "0.00000000000000000001"
        );
        assert_eq!(
            text(n(FLOAT_TAG, "1.5").compute(Add, &n(INTEGER, "1"))),
            "2.5"
        );
        for (tag, value, want) in [
            (DECIMAL_TAG, "2.5", "3"),
            (DECIMAL_TAG, "2.4999", "2"),
            (DOUBLE_TAG, "-2.5", "-2"),
            (DOUBLE_TAG, "-0.2", "-0"),
            (DOUBLE_TAG, "0.49999999999999994", "0"),
            (DOUBLE_TAG, "4503599627370497.5", "4.503599627370498E15"),
            (FLOAT_TAG, "-0.5", "-0"),
            (INTEGER, "99999999999999999999", "99999999999999999999"),
            (DOUBLE_TAG, "NaN", "NaN"),
        ] {
            assert_eq!(text(n(tag, value).round()), want, "{value}");
        }
        assert_eq!(text(n(DECIMAL_TAG, "10.5").ceil()), "11");
        assert_eq!(text(n(DECIMAL_TAG, "-10.5").ceil()), "-10");
        assert_eq!(text(n(DECIMAL_TAG, "-10.5").floor()), "-11");
        assert_eq!(text(n(DECIMAL_TAG, "-10.5").abs()), "10.5");
    }

    #[test]
    fn numbers_compare_in_the_wider_type() {
        let order = |a: (u8, &str), b: (u8, &str)| n(a.0, a.1).order(&n(b.0, b.1));
        let equal = Some(Ordering::Equal);
        assert_eq!(order((INTEGER, "16777217"), (FLOAT_TAG, "16777216")), equal);
        assert_eq!(
            order((INTEGER, "16777217"), (DOUBLE_TAG, "16777216")),
            Some(Ordering::Greater)
        );
        assert_eq!(order((DECIMAL_TAG, "0.1"), (DOUBLE_TAG, "0.1")), equal);
        assert_eq!(
            order((FLOAT_TAG, "0.1"), (DOUBLE_TAG, "0.1")),
            Some(Ordering::Greater)
        );
        assert_eq!(order((DOUBLE_TAG, "-0"), (DOUBLE_TAG, "0")), equal);
        assert_eq!(order((DOUBLE_TAG, "NaN"), (INTEGER, "0")), None);
        let digits = "123456789012345678901234567890";
        assert_eq!(
            order((INTEGER, digits), (DECIMAL_TAG, &format!("{digits}.0"))),
            equal
        );
        assert_eq!(
            order(
                (INTEGER, "100000000000000000000"),
                (DECIMAL_TAG, "100000000000000000000.0")
            ),
            equal
        );
        assert_eq!(
            order(
                (INTEGER, digits),
                (DECIMAL_TAG, &format!("{digits}.00000000000000000001"))
            ),
            Some(Ordering::Less)
        );
        assert_eq!(
            order((INTEGER, &"9".repeat(400)), (DOUBLE_TAG, "INF")),
            equal
        );
        let total = n(INTEGER, &"9".repeat(400)).total_order(&n(DOUBLE_TAG, "INF"));
        assert_eq!(total, Ordering::Less);
        assert_eq!(
            n(DECIMAL_TAG, "0.1").total_order(&n(DOUBLE_TAG, "0.1")),
            Ordering::Less
        );
        assert_eq!(
            n(DOUBLE_TAG, "NaN").total_order(&n(DOUBLE_TAG, "INF")),
            Ordering::Greater
        );
    }

    /// F&O 3.1 §19.1.1.
    #[test]
    fn canonical_forms() {
        for (tag, value, want) in [
            (INTEGER, "+01", "1"),
            (INTEGER, "-0", "0"),
            (DECIMAL_TAG, "1.0", "1"),
            (DECIMAL_TAG, "-00.50", "-0.5"),
            (DOUBLE_TAG, "1e0", "1"),
            (DOUBLE_TAG, "1.5e5", "150000"),
            (DOUBLE_TAG, "1e6", "1.0E6"),
            (DOUBLE_TAG, "1e-7", "1.0E-7"),
            (DOUBLE_TAG, "0.000001", "0.000001"),
            (DOUBLE_TAG, "-1.25e20", "-1.25E20"),
            (DOUBLE_TAG, "-0", "-0"),
            (FLOAT_TAG, "1e38", "1.0E38"),
            (FLOAT_TAG, "0.1", "0.1"),
            (DOUBLE_TAG, "-INF", "-INF"),
        ] {
            assert_eq!(text(Some(n(tag, value))), want);
        }
    }
}
