//! `SUBSTR`.

use super::{ArenaSpan, ArenaText, Cost, Definition, Row, Scalar, Type, Val, blocks};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["SUBSTR"],
    arguments: &[
        ("text", Type::Text),
        ("start", Type::Number),
        ("length", Type::Number),
    ],
    least: 2,
    repeats: false,
    gives: Type::Text,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::SubStr),
    number: None,
    group: "Strings",
    summary: "The characters of a text from a position on, which counts from 1, as many as `length`; all that follow without it. Keeps the language tag.",
    errors: "unless the first is a string and the others are integers",
    examples: &[
        (r#"SUBSTR("foobar", 4)"#, r#""bar""#),
        (r#"SUBSTR("foobar"@en, 4, 1)"#, r#""b"@en"#),
    ],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, second, third]: [Option<Val>; 3]) -> Option<Val> {
    let t = row.text(first?)?;
    let start = row.integer(second?)?;
    let length = match third {
        Some(v) => Some(row.integer(v)?),
        None => None,
    };
    let (from, to) = range(start, length, |at| blocks::offset(row, t.text, at))?;
    Some(Val::Text(ArenaText {
        text: ArenaSpan {
            start: t.text.start + from as u32,
            end: t.text.start + to as u32,
        },
        lang: t.lang,
    }))
}

/// Byte range of the characters from `start` (the first is 1), `length` of them.
fn range(
    start: i64,
    length: Option<i64>,
    mut offset: impl FnMut(i64) -> usize,
) -> Option<(usize, usize)> {
    let start = start.checked_sub(1)?;
    let end = match length {
        Some(l) => start.checked_add(l)?,
        None => i64::MAX,
    };
    let from = offset(start);
    Some((from, offset(end).max(from)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substrings_count_characters_from_one() {
        let sub = |s: &'static str, a, b| {
            let offset = |at: i64| {
                let at = usize::try_from(at.max(0)).unwrap_or(usize::MAX);
                s.char_indices().nth(at).map_or(s.len(), |(at, _)| at)
            };
            range(a, b, offset).map(|(x, y)| &s[x..y])
        };
        assert_eq!(sub("motor car", 6, None), Some(" car"));
        assert_eq!(sub("metadata", 4, Some(3)), Some("ada"));
        assert_eq!(sub("12345", 0, Some(3)), Some("12"));
        assert_eq!(sub("12345", 5, Some(-3)), Some(""));
        assert_eq!(sub("12345", -3, Some(5)), Some("1"));
        assert_eq!(sub("", 1, Some(3)), Some(""));
        assert_eq!(sub("aé日z", 2, Some(2)), Some("é日"));
    }
}
