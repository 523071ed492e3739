//! Small numbers, which are `Copy`: arithmetic, order and lexical forms.

use super::{DECIMAL_TAG, DOUBLE_TAG, FLOAT_TAG, NumericKind};
use crate::decimal::Decimal;
use jindou_model::term::FIRST_DATATYPE;
use std::cmp::Ordering;
use std::io::Write;

/// A number that is not large, in one of the four types with which SPARQL computes.
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

/// Two numbers converted to the wider of their types (XPath 3.1 §B.1, type promotion).
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

    /// The result of an arithmetic operation; `None` if it does not fit a small number, and for exact division by zero.
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

    /// The order of two numbers for `=` and `<`, compared in the wider of their types. `None` if one is NaN.
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

    /// The number with the opposite sign; `None` if it does not fit a small number.
    #[must_use]
    pub fn negate(self) -> Option<Self> {
        Some(match self {
            Self::Int(i) => Self::Int(i.checked_neg()?),
            Self::Dec(d) => Self::Dec(d.negate()?),
            Self::Flt(f) => Self::Flt(-f),
            Self::Dbl(d) => Self::Dbl(-d),
        })
    }

    /// The absolute value; `None` if it does not fit a small number.
    #[must_use]
    pub fn abs(self) -> Option<Self> {
        Some(match self {
            Self::Int(i) => Self::Int(i.checked_abs()?),
            Self::Dec(d) => Self::Dec(d.abs()?),
            Self::Flt(f) => Self::Flt(f.abs()),
            Self::Dbl(d) => Self::Dbl(d.abs()),
        })
    }

    /// The least integer that is not less than the number; `None` if it does not fit a small number.
    #[must_use]
    pub fn ceil(self) -> Option<Self> {
        Some(match self {
            Self::Int(_) => self,
            Self::Dec(d) => Self::Dec(d.ceil()?),
            Self::Flt(f) => Self::Flt(f.ceil()),
            Self::Dbl(d) => Self::Dbl(d.ceil()),
        })
    }

    /// The greatest integer that is not greater than the number; `None` if it does not fit a small number.
    #[must_use]
    pub fn floor(self) -> Option<Self> {
        Some(match self {
            Self::Int(_) => self,
            Self::Dec(d) => Self::Dec(d.floor()?),
            Self::Flt(f) => Self::Flt(f.floor()),
            Self::Dbl(d) => Self::Dbl(d.floor()),
        })
    }

    /// The nearest integer, halves rounded up (fn:round); `None` if it does not fit a small number.
    #[must_use]
    pub fn round(self) -> Option<Self> {
        Some(match self {
            Self::Int(_) => self,
            Self::Dec(d) => Self::Dec(d.round()?),
            // Half a float is exact as a double, and the rounded value of a float is a float.
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

    /// The way in which the number is compared.
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

    /// Appends the canonical lexical form, which is the result of a cast to string (XPath F&O 3.1 §19.1.1).
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

/// Appends a number in scientific notation, with at least one digit after the mantissa's point.
fn scientific(text: &str, out: &mut Vec<u8>) -> std::io::Result<()> {
    let (mantissa, power) = text.split_once('E').unwrap_or((text, "0"));
    let point = if mantissa.contains('.') { "" } else { ".0" };
    write!(out, "{mantissa}{point}E{power}")
}

/// Rounds to an integer, halves up, as fn:round does; a zero keeps its sign.
fn round(d: f64) -> f64 {
    let below = d.floor();
    let rounded = if d - below >= 0.5 { below + 1.0 } else { below };
    rounded.copysign(d)
}
