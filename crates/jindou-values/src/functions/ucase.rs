//! `UCASE`.

use super::{Cost, Definition, Row, Scalar, Type, Val, blocks};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["UCASE"],
    arguments: &[("text", Type::Text)],
    least: 1,
    repeats: false,
    gives: Type::Text,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::UCase),
    number: None,
    group: "Strings",
    summary: "The text in upper case. Keeps the language tag.",
    errors: "for anything but a string",
    examples: &[(r#"UCASE("foo"@en)"#, r#""FOO"@en"#)],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, ..]: [Option<Val>; 3]) -> Option<Val> {
    let t = row.text(first?)?;
    blocks::mapped(row, t, str::to_uppercase, blocks::between_characters)
}
