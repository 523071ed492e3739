//! `PREDICATE`.

use super::{Cost, Definition, Row, Scalar, Type, Val};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["PREDICATE"],
    arguments: &[("triple", Type::Triple)],
    least: 1,
    repeats: false,
    gives: Type::Iri,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::Predicate),
    number: None,
    group: "Terms",
    summary: "The predicate of a triple term.",
    errors: "for anything but a triple term",
    examples: &[],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, ..]: [Option<Val>; 3]) -> Option<Val> {
    row.part_of_triple(first?, 1)
}
