//! `hasLANG`.

use super::{Cost, Definition, Row, Scalar, Type, Val};
use jindou_model::term;

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["hasLANG"],
    arguments: &[("term", Type::Term)],
    least: 1,
    repeats: false,
    gives: Type::Boolean,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::HasLang),
    number: None,
    group: "Strings",
    summary: "True for a literal with a language tag.",
    errors: "",
    examples: &[(r#"hasLANG("a"@en)"#, "true")],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, ..]: [Option<Val>; 3]) -> Option<Val> {
    Some((row.tag(first?) == term::LANG).into())
}
