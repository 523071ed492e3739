//! `YEAR`.

use super::{Cost, Definition, Row, Scalar, Type, Val};
use crate::Num;

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["YEAR"],
    arguments: &[("time", Type::Time)],
    least: 1,
    repeats: false,
    gives: Type::Number,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::Year),
    number: None,
    group: "Dates and times",
    summary: "The year.",
    errors: "for a value without a year",
    examples: &[(
        r#"YEAR("2011-01-10T14:45:13.815-05:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>)"#,
        "2011",
    )],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, ..]: [Option<Val>; 3]) -> Option<Val> {
    let n = row.time(first?)?.year()?;
    Some(Val::Num(Num::Int(n)))
}
