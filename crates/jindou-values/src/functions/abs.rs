//! `ABS`.

use super::{Cost, Definition, Row, Scalar, Type, Val};
use crate::{Num, Number};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["ABS"],
    arguments: &[("number", Type::Number)],
    least: 1,
    repeats: false,
    gives: Type::Number,
    deterministic: true,
    cost: Cost::Little,
    row: Some(Scalar::Abs),
    number: Some(Num::abs),
    group: "Numbers",
    summary: "The absolute value, in the argument's type.",
    errors: "for anything but a number",
    examples: &[("ABS(-1.5)", "1.5")],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, ..]: [Option<Val>; 3]) -> Option<Val> {
    row.each_number(first?, Num::abs, Number::abs)
}
