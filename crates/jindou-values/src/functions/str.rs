//! `STR`.

use super::{ArenaText, Cost, Definition, Row, Scalar, Type, Val};
use jindou_model::term::Parts;

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["STR"],
    arguments: &[("term", Type::Term)],
    least: 1,
    repeats: false,
    gives: Type::Simple,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::Str),
    number: None,
    group: "Strings",
    summary: "The text of a literal without its language tag or datatype, or of an IRI.",
    errors: "for a blank node or a triple term",
    examples: &[
        (r#"STR("chat"@en)"#, r#""chat""#),
        ("STR(<http://example.org/a>)", r#""http://example.org/a""#),
        ("STR(12)", r#""12""#),
    ],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, ..]: [Option<Val>; 3]) -> Option<Val> {
    if let Some(Val::Text(t)) = first {
        return Some(Val::Text(ArenaText {
            text: t.text,
            lang: None,
        }));
    }
    row.parts(first?, |row, parts| match parts? {
        Parts::Iri(s)
        | Parts::String(s)
        | Parts::Lang(s, _)
        | Parts::Coded(s, _)
        | Parts::Typed(s, _) => Some(row.make(s.as_bytes(), None)),
        _ => None,
    })
}
