//! `STRBEFORE`.

use super::{ArenaSpan, ArenaText, Cost, Definition, Row, Scalar, Type, Val, blocks};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["STRBEFORE"],
    arguments: &[("text", Type::Text), ("part", Type::Text)],
    least: 2,
    repeats: false,
    gives: Type::Text,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::StrBefore),
    number: None,
    group: "Strings",
    summary: "The text before the first occurrence of the part, with the text's language tag; the empty string without one if the part does not occur.",
    errors: "unless both are strings, and the second has no language tag or the first's",
    examples: &[
        (r#"STRBEFORE("abc", "b")"#, r#""a""#),
        (r#"STRBEFORE("abc"@en, "xyz")"#, r#""""#),
    ],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, second, _]: [Option<Val>; 3]) -> Option<Val> {
    let (a, b) = row.compatible(first?, second?)?;
    Some(Val::Text(match blocks::find(row, a.text, b.text) {
        Some(n) => ArenaText {
            text: ArenaSpan {
                start: a.text.start,
                end: a.text.start + n as u32,
            },
            lang: a.lang,
        },
        None => ArenaText::EMPTY,
    }))
}
