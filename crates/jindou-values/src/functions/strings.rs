//! Functions of strings, and those that return strings.

use super::{Definition, Type};

/// Fields that most definitions in this file have in common.
const BASE: Definition = Definition {
    arguments: &[("text", Type::Text)],
    gives: Type::Simple,
    group: "Strings",
    errors: "for anything but a string",
    ..Definition::DEFAULT
};

functions! {
    str "STR" {
        arguments: &[("term", Type::Term)],
        row: Some(Scalar::Str),
        summary: "The text of a literal without its language tag or datatype, or of an IRI.",
        errors: "for a blank node or a triple term",
        examples: &[
            (r#"STR("chat"@en)"#, r#""chat""#),
            ("STR(<http://example.org/a>)", r#""http://example.org/a""#),
            ("STR(12)", r#""12""#),
        ],
    } |row, values| {
        if let Some(Val::Text(t)) = values.first() {
            return Some(Val::Text(ArenaText {
                text: t.text,
                lang: None,
            }));
        }
        row.parts(*values.first()?, |row, parts| match parts? {
            Parts::Iri(s)
            | Parts::String(s)
            | Parts::Lang(s, _)
            | Parts::Coded(s, _)
            | Parts::Typed(s, _) => Some(row.make(s.as_bytes(), None)),
            _ => None,
        })
    }

    lang "LANG" {
        arguments: &[("literal", Type::Literal)],
        row: Some(Scalar::Lang),
        summary: "The language tag of a literal, in lower case; the empty string for a literal without one.",
        errors: "for anything but a literal",
        examples: &[
            (r#"LANG("Robert"@EN)"#, r#""en""#),
            (r#"LANG("Robert")"#, r#""""#),
        ],
    } |row, values| {
        row.parts(*values.first()?, |row, parts| {
            let lang = match parts? {
                Parts::Lang(_, lang) => lang.split_once("--").map_or(lang, |(l, _)| l),
                Parts::String(_) | Parts::Coded(..) | Parts::Typed(..) => "",
                _ => return None,
            };
            Some(row.make(lang.as_bytes(), None))
        })
    }

    datatype "DATATYPE" {
        arguments: &[("literal", Type::Literal)],
        gives: Type::Iri,
        row: Some(Scalar::Datatype),
        summary: "The datatype of a literal; `xsd:string`, `rdf:langString` or `rdf:dirLangString` for strings.",
        errors: "for anything but a literal",
        examples: &[
            (
                "DATATYPE(1.5)",
                "<http://www.w3.org/2001/XMLSchema#decimal>",
            ),
            (
                r#"DATATYPE("a"@en)"#,
                "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>",
            ),
        ],
    } |row, values| {
        row.parts(*values.first()?, |row, parts| {
            let datatype: std::borrow::Cow<'_, str> = match parts? {
                Parts::String(_) => "http://www.w3.org/2001/XMLSchema#string".into(),
                Parts::Lang(_, l) if l.contains("--") => {
                    "http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString".into()
                }
                Parts::Lang(..) => "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString".into(),
                Parts::Coded(_, code) => term::datatype_iri(code)?.into(),
                Parts::Typed(_, iri) => iri.into(),
                _ => return None,
            };
            let mut bytes = vec![];
            term::push_iri(&datatype, &mut bytes);
            Some(Val::Term(row.push(&bytes)))
        })
    }

    /// Its values are computed in the engine's `text.rs`.
    concat "CONCAT" {
        least: 0,
        repeats: true,
        gives: Type::Text,
        summary: "All arguments joined; with a language tag if all have the same one. Takes any number of arguments.",
        errors: "unless all are strings",
        examples: &[
            (r#"CONCAT("foo"@en, "bar"@en)"#, r#""foobar"@en"#),
            (r#"CONCAT("foo"@en, "bar")"#, r#""foobar""#),
        ],
    }

    substr "SUBSTR" {
        arguments: &[
            ("text", Type::Text),
            ("start", Type::Number),
            ("length", Type::Number),
        ],
        least: 2,
        gives: Type::Text,
        row: Some(Scalar::SubStr),
        summary: "The characters of a text from a position on, which counts from 1, as many as `length`; all that follow without it. Keeps the language tag.",
        errors: "unless the first is a string and the others are integers",
        examples: &[
            (r#"SUBSTR("foobar", 4)"#, r#""bar""#),
            (r#"SUBSTR("foobar"@en, 4, 1)"#, r#""b"@en"#),
        ],
    } |row, values| {
        let [first, second] = *values.first_chunk()?;
        let t = row.text(first)?;
        let start = row.integer(second)?;
        let length = match values.get(2) {
            Some(v) => Some(row.integer(*v)?),
            None => None,
        };
        let (from, to) = super::range(start, length, |at| blocks::offset(row, t.text, at))?;
        Some(Val::Text(ArenaText {
            text: ArenaSpan {
                start: t.text.start + from as u32,
                end: t.text.start + to as u32,
            },
            lang: t.lang,
        }))
    }

    strlen "STRLEN" {
        gives: Type::Number,
        row: Some(Scalar::StrLen),
        summary: "The number of characters (code points) of a text.",
        examples: &[(r#"STRLEN("chat"@en)"#, "4")],
    } |row, values| {
        let t = row.text(*values.first()?)?;
        Some(Val::Num(Num::Int(blocks::characters(row, t.text) as i64)))
    }

    ucase "UCASE" {
        gives: Type::Text,
        row: Some(Scalar::UCase),
        summary: "The text in upper case. Keeps the language tag.",
        examples: &[(r#"UCASE("foo"@en)"#, r#""FOO"@en"#)],
    } |row, values| {
        let t = row.text(*values.first()?)?;
        blocks::mapped(row, t, str::to_uppercase, blocks::between_characters)
    }

    lcase "LCASE" {
        gives: Type::Text,
        row: Some(Scalar::LCase),
        summary: "The text in lower case. Keeps the language tag.",
        examples: &[(r#"LCASE("BAR")"#, r#""bar""#)],
    } |row, values| {
        let t = row.text(*values.first()?)?;
        blocks::mapped(row, t, str::to_lowercase, blocks::between_contexts)
    }

    /// Its values are computed in the engine's `make.rs`.
    encode_for_uri "ENCODE_FOR_URI" {
        summary: "The text with everything but letters, digits, `-`, `_`, `.` and `~` percent-encoded.",
        examples: &[(r#"ENCODE_FOR_URI("Los Angeles")"#, r#""Los%20Angeles""#)],
    }

    langdir "LANGDIR" {
        arguments: &[("literal", Type::Literal)],
        row: Some(Scalar::LangDir),
        summary: "The base direction of a literal, `ltr` or `rtl`; the empty string for a literal without one.",
        errors: "for anything but a literal",
        examples: &[(r#"LANGDIR("a"@en)"#, r#""""#)],
    } |row, values| {
        row.parts(*values.first()?, |row, parts| {
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

    has_lang "hasLANG" {
        arguments: &[("term", Type::Term)],
        gives: Type::Boolean,
        row: Some(Scalar::HasLang),
        summary: "True for a literal with a language tag.",
        errors: "",
        examples: &[(r#"hasLANG("a"@en)"#, "true")],
    } |row, values| {
        Some((row.tag(*values.first()?) == term::LANG).into())
    }

    has_langdir "hasLANGDIR" {
        arguments: &[("term", Type::Term)],
        gives: Type::Boolean,
        row: Some(Scalar::HasLangDir),
        summary: "True for a literal with a language tag and a base direction.",
        errors: "",
        examples: &[(r#"hasLANGDIR("a"@en)"#, "false")],
    } |row, values| {
        row.parts(*values.first()?, |_, parts| {
            Some(matches!(parts, Some(Parts::Lang(_, tag)) if tag.contains("--")).into())
        })
    }
}

/// Byte range of `length` characters (`None`: all) from character `start` on, where the first one has number 1.
/// `offset` returns the byte offset of a character, counted from 0.
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
