//! `isTRIPLE`.

use super::{Cost, Definition, Row, Scalar, Type, Val};
use jindou_model::term;

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["isTRIPLE"],
    arguments: &[("term", Type::Term)],
    least: 1,
    repeats: false,
    gives: Type::Boolean,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::IsTriple),
    number: None,
    group: "Terms",
    summary: "True for a triple term.",
    errors: "",
    examples: &[(r#"isTRIPLE("a")"#, "false")],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, ..]: [Option<Val>; 3]) -> Option<Val> {
    Some((row.tag(first?) == term::TRIPLE).into())
}
