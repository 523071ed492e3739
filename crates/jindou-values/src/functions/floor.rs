//! `FLOOR`.

use super::{Cost, Definition, Row, Scalar, Type, Val};
use crate::{Num, Number};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["FLOOR"],
    arguments: &[("number", Type::Number)],
    least: 1,
    repeats: false,
    gives: Type::Number,
    deterministic: true,
    cost: Cost::Little,
    row: Some(Scalar::Floor),
    number: Some(Num::floor),
    group: "Numbers",
    summary: "The largest whole number that is not greater, in the argument's type.",
    errors: "for anything but a number",
    examples: &[(
        "FLOOR(-10.5)",
        r#""-11"^^<http://www.w3.org/2001/XMLSchema#decimal>"#,
    )],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, ..]: [Option<Val>; 3]) -> Option<Val> {
    row.each_number(first?, Num::floor, Number::floor)
}
