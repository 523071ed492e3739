//! `LANGDIR`.

use super::{Cost, Definition, Row, Scalar, Type, Val};
use jindou_model::term::Parts;

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["LANGDIR"],
    arguments: &[("literal", Type::Literal)],
    least: 1,
    repeats: false,
    gives: Type::Simple,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::LangDir),
    number: None,
    group: "Strings",
    summary: "The base direction of a literal, `ltr` or `rtl`; the empty string for a literal without one.",
    errors: "for anything but a literal",
    examples: &[(r#"LANGDIR("a"@en)"#, r#""""#)],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, ..]: [Option<Val>; 3]) -> Option<Val> {
    row.parts(first?, |row, parts| {
        let direction = match parts? {
            Parts::Lang(_, tag) => tag.split_once("--").map_or("", |(_, d)| d),
            Parts::String(_) | Parts::Coded(..) | Parts::Typed(..) => "",
            _ => return None,
        };
        let direction = match direction {
            "" => "",
            "rtl" => "rtl",
            _ => "ltr",
        };
        Some(row.make(direction.as_bytes(), None))
    })
}
