//! `LCASE`.

use super::{Cost, Definition, Row, Scalar, Type, Val, blocks};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["LCASE"],
    arguments: &[("text", Type::Text)],
    least: 1,
    repeats: false,
    gives: Type::Text,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::LCase),
    number: None,
    group: "Strings",
    summary: "The text in lower case. Keeps the language tag.",
    errors: "for anything but a string",
    examples: &[(r#"LCASE("BAR")"#, r#""bar""#)],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, ..]: [Option<Val>; 3]) -> Option<Val> {
    let t = row.text(first?)?;
    blocks::mapped(row, t, str::to_lowercase, blocks::between_contexts)
}
