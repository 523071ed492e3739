//! `ROUND`.

use super::{Cost, Definition, Row, Scalar, Type, Val};
use crate::{Num, Number};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["ROUND"],
    arguments: &[("number", Type::Number)],
    least: 1,
    repeats: false,
    gives: Type::Number,
    deterministic: true,
    cost: Cost::Little,
    row: Some(Scalar::Round),
    number: Some(Num::round),
    group: "Numbers",
    summary: "The nearest whole number, in the argument's type; of two that are as near, the greater.",
    errors: "for anything but a number",
    examples: &[
        (
            "ROUND(2.5)",
            r#""3"^^<http://www.w3.org/2001/XMLSchema#decimal>"#,
        ),
        (
            "ROUND(-2.5)",
            r#""-2"^^<http://www.w3.org/2001/XMLSchema#decimal>"#,
        ),
    ],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, ..]: [Option<Val>; 3]) -> Option<Val> {
    row.each_number(first?, Num::round, Number::round)
}
