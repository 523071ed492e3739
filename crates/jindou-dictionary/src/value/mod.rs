//! Values of literals: which are equal, which are less, and the dense ranks that express this.
//!
//! A *rank* is the position of a value in its group: all numbers are one group; booleans, each date and time datatype,
//! and durations are one group each. Equal values have equal ranks whatever their lexical form and (among numbers)
//! datatype; a greater value has a greater rank. Equality and order of values are defined by `jindou-values`; dates and
//! times without a time zone are taken as UTC.

mod group;
mod number;

pub(crate) use group::TEMPORAL_GROUPS;
pub use group::ValueGroup;
pub(crate) use number::{DOUBLE_TAG, FLOAT_TAG, approximate};

use jindou_values::NumericKind;
use std::cmp::Ordering;
use std::ops::Range;

/// Stands for "no lex index", for ids that are not in the dictionary.
pub const NO_LEX: u32 = u32::MAX;
/// The rank of a term without a value: its datatype has no ranks, or it is ill-typed.
pub const NO_RANK: u32 = u32::MAX;
/// The rank of NaN, for which no comparison is true.
pub const NAN_RANK: u32 = u32::MAX - 1;

/// A comparison `value ∘ bound`. `!=` is left out: it is not a single interval, and it is true of NaN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `=`
    Equal,
    /// `>=`
    GreaterOrEqual,
    /// `>`
    Greater,
}

impl Comparison {
    /// True if the comparison holds for a value that has this order relative to the bound.
    #[must_use]
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Less => order == Ordering::Less,
            Self::LessOrEqual => order != Ordering::Greater,
            Self::Equal => order == Ordering::Equal,
            Self::GreaterOrEqual => order != Ordering::Less,
            Self::Greater => order == Ordering::Greater,
        }
    }

    /// The interval of `0..n` in which the comparison holds, given the order of the value at each position relative to
    /// the bound. The values ascend. O(log n) calls.
    pub(crate) fn interval(self, n: u32, order: impl Fn(u32) -> Ordering) -> Range<u32> {
        let less = partition(0, n, |i| order(i) == Ordering::Less);
        match self {
            Self::Less => 0..less,
            Self::GreaterOrEqual => less..n,
            _ => {
                let greater = partition(less, n, |i| order(i) != Ordering::Greater);
                match self {
                    Self::LessOrEqual => 0..greater,
                    Self::Equal => less..greater,
                    _ => greater..n,
                }
            }
        }
    }
}

/// The first position of `low..high` for which `before` is false.
pub(crate) fn partition(mut low: u32, mut high: u32, before: impl Fn(u32) -> bool) -> u32 {
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The numeric ranks for which a comparison with a constant is true, by the datatype of the value. SPARQL converts both
/// sides to float or double if one of them is, so that `0.1` equals `1e-1` although the two values differ; a single
/// interval cannot express that.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct NumericBounds {
    /// For values of `xsd:integer`, `xsd:decimal` and the types derived from them.
    pub exact: Range<u32>,
    /// For values of `xsd:float`.
    pub float: Range<u32>,
    /// For values of `xsd:double`.
    pub double: Range<u32>,
}

impl NumericBounds {
    /// The single interval for all datatypes, if there is one. That is nearly always so, since a datatype without a
    /// literal in the dictionary has the interval of another.
    #[must_use]
    pub fn uniform(&self) -> Option<Range<u32>> {
        (self.exact == self.float && self.float == self.double).then(|| self.exact.clone())
    }

    /// The interval for values of a kind.
    #[must_use]
    pub fn interval(&self, kind: NumericKind) -> Range<u32> {
        match kind {
            NumericKind::Exact => self.exact.clone(),
            NumericKind::Float => self.float.clone(),
            NumericKind::Double => self.double.clone(),
        }
    }
}
