//! Values of literals and comparisons by rank.
use std::ops::Range;

/// Not a lex index.
pub const NO_LEX: u32 = u32::MAX;
/// The rank of a literal without a value in its datatype's value space (ill-typed).
pub const NO_RANK: u32 = u32::MAX;
/// The rank of NaN.
pub const NAN_RANK: u32 = u32::MAX - 1;
/// A comparison of SPARQL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}
/// A number.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Number {
    Integer(i64),
    Decimal(oxsdatatypes::Decimal),
    Float(f32),
    Double(f64),
}
/// Ranks that satisfy a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct NumericBounds {
    /// Integers and decimals.
    pub exact: Range<u32>,
    /// Floats.
    pub float: Range<u32>,
    /// Doubles.
    pub double: Range<u32>,
}
/// Ranks that satisfy a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TemporalBounds {
    /// With zone.
    pub zoned: Range<u32>,
    /// Without zone.
    pub unzoned: Range<u32>,
}
