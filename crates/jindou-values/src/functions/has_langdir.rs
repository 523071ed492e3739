//! `hasLANGDIR`.

use super::{Cost, Definition, Row, Scalar, Type, Val};
use jindou_model::term::Parts;

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["hasLANGDIR"],
    arguments: &[("term", Type::Term)],
    least: 1,
    repeats: false,
    gives: Type::Boolean,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::HasLangDir),
    number: None,
    group: "Strings",
    summary: "True for a literal with a language tag and a base direction.",
    errors: "",
    examples: &[(r#"hasLANGDIR("a"@en)"#, "false")],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, ..]: [Option<Val>; 3]) -> Option<Val> {
    row.parts(first?, |_, parts| {
        Some(matches!(parts, Some(Parts::Lang(_, tag)) if tag.contains("--")).into())
    })
}
