//! `STRAFTER`.

use super::{ArenaSpan, ArenaText, Cost, Definition, Row, Scalar, Type, Val, blocks};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["STRAFTER"],
    arguments: &[("text", Type::Text), ("part", Type::Text)],
    least: 2,
    repeats: false,
    gives: Type::Text,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::StrAfter),
    number: None,
    group: "Strings",
    summary: "The text after the first occurrence of the part, with the text's language tag; the empty string without one if the part does not occur.",
    errors: "unless both are strings, and the second has no language tag or the first's",
    examples: &[
        (r#"STRAFTER("abc"@en, "ab")"#, r#""c"@en"#),
        (r#"STRAFTER("abc", "xyz")"#, r#""""#),
    ],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, second, _]: [Option<Val>; 3]) -> Option<Val> {
    let (a, b) = row.compatible(first?, second?)?;
    Some(Val::Text(match blocks::find(row, a.text, b.text) {
        Some(n) => ArenaText {
            text: ArenaSpan {
                start: a.text.start + n as u32 + (b.text.end - b.text.start),
                end: a.text.end,
            },
            lang: a.lang,
        },
        None => ArenaText::EMPTY,
    }))
}
