//! Numbers of all numeric types.

mod small;
#[cfg(test)]
mod tests;

pub use small::{Arithmetic, Num};

use crate::decimal::Decimal;
use crate::exact::{Exact, decimal_parts};
use jindou_model::term::{FIRST_DATATYPE, NUMERIC_TAGS};
use std::cmp::Ordering;
use std::str::FromStr;

const DECIMAL_TAG: u8 = FIRST_DATATYPE + 1;
const DOUBLE_TAG: u8 = FIRST_DATATYPE + 2;
const FLOAT_TAG: u8 = FIRST_DATATYPE + 3;

/// A number of any type and size.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// A number that fits [`Num`], which is `Copy`.
    Small(Num),
    /// An integer that does not fit 64 bits.
    Integer(Exact),
    /// A decimal that does not fit [`Decimal`].
    Decimal(Exact),
}

/// The way in which numbers are compared: exactly, or rounded to a floating-point type.
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
    /// The kind of the numeric datatype with this tag ([`NUMERIC_TAGS`]); `None` for other tags.
    #[must_use]
    pub fn of_tag(tag: u8) -> Option<Self> {
        match tag {
            DOUBLE_TAG => Some(Self::Double),
            FLOAT_TAG => Some(Self::Float),
            _ => NUMERIC_TAGS.contains(&tag).then_some(Self::Exact),
        }
    }
}

impl From<Num> for Number {
    fn from(n: Num) -> Self {
        Self::Small(n)
    }
}

impl Number {
    /// The value of a lexical form of the datatype with this tag; `None` if it is invalid (which includes an integer
    /// out of its type's range) or if the datatype is not numeric.
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
                        // It does not fit 64 bits, or has many leading zeros.
                        Self::integer(Exact::parse(lexical)?)
                    }
                };
                n.is_within(tag).then_some(n)
            }
        }
    }

    /// An integer in the smallest representation. It must have no digits after the point.
    #[must_use]
    pub fn integer(e: Exact) -> Self {
        match e.integer() {
            Some(i) => Num::Int(i).into(),
            None => Self::Integer(e),
        }
    }

    /// A decimal in the smallest representation.
    #[must_use]
    pub fn decimal(e: Exact) -> Self {
        match e.small() {
            Some(d) => Num::Dec(d).into(),
            None => Self::Decimal(e),
        }
    }

    /// True if an integer is in the range of the type with this tag; always true for types that are not derived from
    /// `xsd:integer`.
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
                // Of the types with bounds, only the range of `unsignedLong` exceeds 64 bits.
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

    /// The number as a small one; `None` if it does not fit.
    #[must_use]
    pub fn small(&self) -> Option<Num> {
        match self {
            Self::Small(n) => Some(*n),
            _ => None,
        }
    }

    /// The way in which the number is compared.
    #[must_use]
    pub fn kind(&self) -> NumericKind {
        match self {
            Self::Small(n) => n.kind(),
            Self::Integer(_) | Self::Decimal(_) => NumericKind::Exact,
        }
    }

    /// The nearest double, never negative zero; infinite if the number is too large.
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        match self {
            Self::Small(n) => n.to_f64() + 0.0,
            Self::Integer(e) | Self::Decimal(e) => e.to_f64(),
        }
    }

    /// The nearest float, never negative zero; infinite if the number is too large.
    #[must_use]
    pub fn to_f32(&self) -> f32 {
        match self {
            Self::Small(n) => n.to_f32() + 0.0,
            Self::Integer(e) | Self::Decimal(e) => e.to_f32(),
        }
    }

    /// The exact value; `None` for NaN and infinities.
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

    /// Number of bytes on the heap.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Small(_) => 0,
            Self::Integer(e) | Self::Decimal(e) => e.bytes(),
        }
    }

    /// The result of an arithmetic operation. `None` is an error: exact division by zero, or more than 10,000 digits.
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

    /// The order of two numbers for `=` and `<`, compared in the wider of their types. `None` if one is NaN.
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

    /// The order of two numbers for ORDER BY: by their exact values, whatever their types, with NaN last.
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
            // An infinity is beyond any finite number, also one that is too large for a double.
            (None, Some(_)) if a > 0.0 => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) if a > 0.0 => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        }
    }

    /// Applies `small` to a small number. If the number is not small, or the result is `None`, applies `exact` to the
    /// exact value.
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

    /// The number with the opposite sign; `None` is an error.
    #[must_use]
    pub fn negate(&self) -> Option<Self> {
        self.each(Num::negate, |e| Some(e.negate()))
    }

    /// The absolute value; `None` is an error.
    #[must_use]
    pub fn abs(&self) -> Option<Self> {
        self.each(Num::abs, |e| Some(e.abs()))
    }

    /// The least integer that is not less than the number, in the same type; `None` is an error.
    #[must_use]
    pub fn ceil(&self) -> Option<Self> {
        self.each(Num::ceil, Exact::ceil)
    }

    /// The greatest integer that is not greater than the number, in the same type; `None` is an error.
    #[must_use]
    pub fn floor(&self) -> Option<Self> {
        self.each(Num::floor, Exact::floor)
    }

    /// The nearest integer, halves rounded up (fn:round), in the same type; `None` is an error.
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

/// Parses a float or double by the grammar of XSD 1.1. Rust's parser accepts more, such as `inf` and `nan` in any case.
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
