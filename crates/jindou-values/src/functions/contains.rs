//! `CONTAINS`.

use super::{Cost, Definition, Row, Scalar, Type, Val, blocks};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["CONTAINS"],
    arguments: &[("text", Type::Text), ("part", Type::Text)],
    least: 2,
    repeats: false,
    gives: Type::Boolean,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::Contains),
    number: None,
    group: "Strings",
    summary: "True if the text has the part.",
    errors: "unless both are strings, and the second has no language tag or the first's",
    examples: &[(r#"CONTAINS("foobar"@en, "foo")"#, "true")],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, second, _]: [Option<Val>; 3]) -> Option<Val> {
    let (a, b) = row.compatible(first?, second?)?;
    Some(blocks::find(row, a.text, b.text).is_some().into())
}
