//! Functions that search in texts: parts, patterns and language ranges.

use super::{Definition, Type};

/// Fields that most definitions in this file have in common.
const BASE: Definition = Definition {
    arguments: &[("text", Type::Text), ("part", Type::Text)],
    least: 2,
    gives: Type::Boolean,
    group: "Strings",
    errors: "unless both are strings, and the second has no language tag or the first's",
    ..Definition::DEFAULT
};

functions! {
    lang_matches "LANGMATCHES" {
        arguments: &[("tag", Type::Simple), ("range", Type::Simple)],
        row: Some(Scalar::LangMatches),
        summary: "True if a language tag matches a range by RFC 4647's basic filtering; `*` matches every tag but the empty one.",
        errors: "unless both are strings without a language tag",
        examples: &[
            (r#"LANGMATCHES("fr-BE", "FR")"#, "true"),
            (r#"LANGMATCHES("", "*")"#, "false"),
        ],
    } |row, values| {
        let [first, second] = *values.first_chunk()?;
        let tag = row.simple(first)?;
        let range = row.simple(second)?;
        Some(super::matches(row.str(tag), row.str(range)).into())
    }

    /// Its values are computed in the engine's `regex.rs`.
    replace "REPLACE" {
        arguments: &[
            ("text", Type::Text),
            ("pattern", Type::Simple),
            ("replacement", Type::Simple),
            ("flags", Type::Simple),
        ],
        least: 3,
        gives: Type::Text,
        summary: "The text with each match of a regular expression replaced; `$1` to `$9` in the replacement are groups of the match. Keeps the language tag.",
        errors: "unless the first is a string and the others are strings without a language tag, for an invalid pattern, flag or replacement, and for a pattern that matches the empty string",
        examples: &[
            (r#"REPLACE("abcd", "b", "Z")"#, r#""aZcd""#),
            (r#"REPLACE("abab", "B", "Z", "i")"#, r#""aZaZ""#),
        ],
    }

    contains "CONTAINS" {
        row: Some(Scalar::Contains),
        summary: "True if the text has the part.",
        examples: &[(r#"CONTAINS("foobar"@en, "foo")"#, "true")],
    } |row, values| {
        let [first, second] = *values.first_chunk()?;
        let (a, b) = row.compatible(first, second)?;
        Some(blocks::find(row, a.text, b.text).is_some().into())
    }

    strstarts "STRSTARTS" {
        row: Some(Scalar::StrStarts),
        summary: "True if the text begins with the part.",
        examples: &[(r#"STRSTARTS("foobar", "foo")"#, "true")],
    } |row, values| {
        let [first, second] = *values.first_chunk()?;
        let (a, b) = row.compatible(first, second)?;
        Some(row.bytes(a.text).starts_with(row.bytes(b.text)).into())
    }

    strends "STRENDS" {
        row: Some(Scalar::StrEnds),
        summary: "True if the text ends with the part.",
        examples: &[(r#"STRENDS("foobar"@en, "bar"@en)"#, "true")],
    } |row, values| {
        let [first, second] = *values.first_chunk()?;
        let (a, b) = row.compatible(first, second)?;
        Some(row.bytes(a.text).ends_with(row.bytes(b.text)).into())
    }

    strbefore "STRBEFORE" {
        gives: Type::Text,
        row: Some(Scalar::StrBefore),
        summary: "The text before the first occurrence of the part, with the text's language tag; the empty string without one if the part does not occur.",
        examples: &[
            (r#"STRBEFORE("abc", "b")"#, r#""a""#),
            (r#"STRBEFORE("abc"@en, "xyz")"#, r#""""#),
        ],
    } |row, values| {
        let [first, second] = *values.first_chunk()?;
        let (a, b) = row.compatible(first, second)?;
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

    strafter "STRAFTER" {
        gives: Type::Text,
        row: Some(Scalar::StrAfter),
        summary: "The text after the first occurrence of the part, with the text's language tag; the empty string without one if the part does not occur.",
        examples: &[
            (r#"STRAFTER("abc"@en, "ab")"#, r#""c"@en"#),
            (r#"STRAFTER("abc", "xyz")"#, r#""""#),
        ],
    } |row, values| {
        let [first, second] = *values.first_chunk()?;
        let (a, b) = row.compatible(first, second)?;
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

    /// Its values are computed in the engine's `regex.rs`.
    regex "REGEX" {
        arguments: &[
            ("text", Type::Text),
            ("pattern", Type::Simple),
            ("flags", Type::Simple),
        ],
        summary: "True if a part of the text matches a regular expression, as XPath has them.",
        errors: "unless the first is a string and the others are strings without a language tag, and for an invalid pattern or flag",
        examples: &[(r#"REGEX("Alice", "^ali", "i")"#, "true")],
    }
}

/// True if a language range matches a tag, by basic filtering (RFC 4647 §3.3.1).
fn matches(tag: &str, range: &str) -> bool {
    if range == "*" {
        return !tag.is_empty();
    }
    let mut parts = tag.split('-');
    range
        .split('-')
        .all(|r| parts.next().is_some_and(|t| t.eq_ignore_ascii_case(r)))
}
