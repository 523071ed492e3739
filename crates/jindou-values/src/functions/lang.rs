//! `LANG`.

use super::{Cost, Definition, Row, Scalar, Type, Val};
use jindou_model::term::Parts;

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["LANG"],
    arguments: &[("literal", Type::Literal)],
    least: 1,
    repeats: false,
    gives: Type::Simple,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::Lang),
    number: None,
    group: "Strings",
    summary: "The language tag of a literal, in lower case; the empty string for a literal without one.",
    errors: "for anything but a literal",
    examples: &[
        (r#"LANG("Robert"@EN)"#, r#""en""#),
        (r#"LANG("Robert")"#, r#""""#),
    ],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, ..]: [Option<Val>; 3]) -> Option<Val> {
    row.parts(first?, |row, parts| {
        let lang = match parts? {
            Parts::Lang(_, lang) => lang.split_once("--").map_or(lang, |(l, _)| l),
            Parts::String(_) | Parts::Coded(..) | Parts::Typed(..) => "",
            _ => return None,
        };
        Some(row.make(lang.as_bytes(), None))
    })
}
