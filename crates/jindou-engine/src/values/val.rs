//! Values while an expression is computed: small, copied, never on the heap. Text lies in the machine's arena.

use jindou_dictionary::Number;
use oxsdatatypes::{Decimal, Double, Float, Integer};
use std::cmp::Ordering;

/// A number in the type that SPARQL computes with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Num {
    Int(Integer),
    Dec(Decimal),
    Flt(Float),
    Dbl(Double),
}

/// Bytes of the arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub start: u32,
    pub end: u32,
}

/// A string with or without language tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    pub text: Span,
    pub lang: Option<Span>,
}

/// A value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Val {
    /// A term as it is.
    Id(u32),
    Bool(bool),
    Num(Num),
    Text(Text),
    /// Canonical bytes.
    Term(Span),
}

impl From<bool> for Val {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}

/// Two numbers in the wider of their types (SPARQL 1.1 §17.3, XPath type promotion).
enum Pair {
    Int(Integer, Integer),
    Dec(Decimal, Decimal),
    Flt(Float, Float),
    Dbl(Double, Double),
}

fn pair(a: Num, b: Num) -> Pair {
    use Num::{Dbl, Dec, Flt, Int};
    match (a, b) {
        (Int(a), Int(b)) => Pair::Int(a, b),
        (Int(a), Dec(b)) => Pair::Dec(a.into(), b),
        (Dec(a), Int(b)) => Pair::Dec(a, b.into()),
        (Dec(a), Dec(b)) => Pair::Dec(a, b),
        (Flt(a), Flt(b)) => Pair::Flt(a, b),
        (Flt(a), Int(b)) => Pair::Flt(a, b.into()),
        (Flt(a), Dec(b)) => Pair::Flt(a, b.into()),
        (Int(a), Flt(b)) => Pair::Flt(a.into(), b),
        (Dec(a), Flt(b)) => Pair::Flt(a.into(), b),
        (Dbl(a), b) => Pair::Dbl(a, b.double()),
        (a, Dbl(b)) => Pair::Dbl(a.double(), b),
    }
}

/// The four arithmetic operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Num {
    /// From the dictionary's; `None` for numbers beyond 64-bit integers and 18-digit decimals, which the
    /// evaluator treats as literals of no known type.
    pub fn of(n: Number) -> Option<Self> {
        Some(match n {
            Number::Integer(i) => Self::Int(i.into()),
            Number::Decimal(d) => Self::Dec(d),
            Number::Float(f) => Self::Flt(f.into()),
            Number::Double(d) => Self::Dbl(d.into()),
            Number::Big(_) => return None,
        })
    }

    pub fn double(self) -> Double {
        match self {
            Self::Int(i) => i.into(),
            Self::Dec(d) => d.into(),
            Self::Flt(f) => f.into(),
            Self::Dbl(d) => d,
        }
    }

    /// `None` on overflow and on exact division by zero.
    pub fn compute(self, op: Arithmetic, other: Self) -> Option<Self> {
        use Arithmetic::{Add, Divide, Multiply, Subtract};
        Some(match (pair(self, other), op) {
            (Pair::Int(a, b), Add) => Self::Int(a.checked_add(b)?),
            (Pair::Int(a, b), Subtract) => Self::Int(a.checked_sub(b)?),
            (Pair::Int(a, b), Multiply) => Self::Int(a.checked_mul(b)?),
            (Pair::Int(a, b), Divide) => Self::Dec(Decimal::from(a).checked_div(b)?),
            (Pair::Dec(a, b), Add) => Self::Dec(a.checked_add(b)?),
            (Pair::Dec(a, b), Subtract) => Self::Dec(a.checked_sub(b)?),
            (Pair::Dec(a, b), Multiply) => Self::Dec(a.checked_mul(b)?),
            (Pair::Dec(a, b), Divide) => Self::Dec(a.checked_div(b)?),
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

    /// `None` with NaN.
    pub fn order(self, other: Self) -> Option<Ordering> {
        match pair(self, other) {
            Pair::Int(a, b) => a.partial_cmp(&b),
            Pair::Dec(a, b) => a.partial_cmp(&b),
            Pair::Flt(a, b) => a.partial_cmp(&b),
            Pair::Dbl(a, b) => a.partial_cmp(&b),
        }
    }

    pub fn negate(self) -> Option<Self> {
        Some(match self {
            Self::Int(i) => Self::Int(i.checked_neg()?),
            Self::Dec(d) => Self::Dec(d.checked_neg()?),
            Self::Flt(f) => Self::Flt(-f),
            Self::Dbl(d) => Self::Dbl(-d),
        })
    }

    pub fn abs(self) -> Option<Self> {
        Some(match self {
            Self::Int(i) => Self::Int(i.checked_abs()?),
            Self::Dec(d) => Self::Dec(d.checked_abs()?),
            Self::Flt(f) => Self::Flt(f.abs()),
            Self::Dbl(d) => Self::Dbl(d.abs()),
        })
    }

    pub fn ceil(self) -> Option<Self> {
        Some(match self {
            Self::Int(_) => self,
            Self::Dec(d) => Self::Dec(d.checked_ceil()?),
            Self::Flt(f) => Self::Flt(f.ceil()),
            Self::Dbl(d) => Self::Dbl(d.ceil()),
        })
    }

    pub fn floor(self) -> Option<Self> {
        Some(match self {
            Self::Int(_) => self,
            Self::Dec(d) => Self::Dec(d.checked_floor()?),
            Self::Flt(f) => Self::Flt(f.floor()),
            Self::Dbl(d) => Self::Dbl(d.floor()),
        })
    }

    pub fn round(self) -> Option<Self> {
        Some(match self {
            Self::Int(_) => self,
            Self::Dec(d) => Self::Dec(d.checked_round()?),
            Self::Flt(f) => Self::Flt(f.round()),
            Self::Dbl(d) => Self::Dbl(d.round()),
        })
    }

    /// The effective boolean value.
    pub fn truth(self) -> bool {
        match self {
            Self::Int(i) => i64::from(i) != 0,
            Self::Dec(d) => d != Decimal::default(),
            Self::Flt(f) => f != Float::from(0.) && !f.is_nan(),
            Self::Dbl(d) => d != Double::from(0.) && !d.is_nan(),
        }
    }

    pub fn is_nan(self) -> bool {
        match self {
            Self::Int(_) | Self::Dec(_) => false,
            Self::Flt(f) => f.is_nan(),
            Self::Dbl(d) => d.is_nan(),
        }
    }

    /// Appends the canonical bytes of the literal.
    pub fn push(self, out: &mut Vec<u8>) {
        use std::io::Write;
        // Writing to a vector cannot fail.
        let _ = match self {
            Self::Int(i) => {
                out.push(TAG);
                write!(out, "{i}")
            }
            Self::Dec(d) => {
                out.push(TAG + 1);
                write!(out, "{d}")
            }
            Self::Dbl(d) => {
                out.push(TAG + 2);
                write!(out, "{d}")
            }
            Self::Flt(f) => {
                out.push(TAG + 3);
                write!(out, "{f}")
            }
        };
    }
}

/// Codes of integer, decimal, double and float follow each other.
const TAG: u8 = jindou_model::term::FIRST_DATATYPE;
