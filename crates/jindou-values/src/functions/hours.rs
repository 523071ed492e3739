//! `HOURS`.

use super::{Cost, Definition, Row, Scalar, Type, Val};
use crate::Num;

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["HOURS"],
    arguments: &[("time", Type::Time)],
    least: 1,
    repeats: false,
    gives: Type::Number,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::Hours),
    number: None,
    group: "Dates and times",
    summary: "The hour, from 0 to 23.",
    errors: "for a value without an hour",
    examples: &[(
        r#"HOURS("2011-01-10T14:45:13.815-05:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>)"#,
        "14",
    )],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, ..]: [Option<Val>; 3]) -> Option<Val> {
    let n = row.time(first?)?.hour()?;
    Some(Val::Num(Num::Int(n)))
}
