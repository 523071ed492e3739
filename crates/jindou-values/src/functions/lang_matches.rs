//! `LANGMATCHES`.

use super::{Cost, Definition, Row, Scalar, Type, Val};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["LANGMATCHES"],
    arguments: &[("tag", Type::Simple), ("range", Type::Simple)],
    least: 2,
    repeats: false,
    gives: Type::Boolean,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::LangMatches),
    number: None,
    group: "Strings",
    summary: "True if a language tag matches a range by RFC 4647's basic filtering; `*` matches every tag but the empty one.",
    errors: "unless both are strings without a language tag",
    examples: &[
        (r#"LANGMATCHES("fr-BE", "FR")"#, "true"),
        (r#"LANGMATCHES("", "*")"#, "false"),
    ],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, second, _]: [Option<Val>; 3]) -> Option<Val> {
    let tag = row.simple(first?)?;
    let range = row.simple(second?)?;
    Some(matches(row.str(tag), row.str(range)).into())
}

/// True if the range matches, by basic filtering of language tags (RFC 4647 §3.3.1).
fn matches(tag: &str, range: &str) -> bool {
    if range == "*" {
        return !tag.is_empty();
    }
    let mut parts = tag.split('-');
    range
        .split('-')
        .all(|r| parts.next().is_some_and(|t| t.eq_ignore_ascii_case(r)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_ranges() {
        assert!(matches("en-GB", "en"));
        assert!(matches("en", "EN"));
        assert!(!matches("en", "en-GB"));
        assert!(matches("de", "*"));
        assert!(!matches("", "*"));
        assert!(!matches("", "en"));
    }
}
