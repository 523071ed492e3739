//! Functions of strings, and those that return strings.

use super::{ArenaSpan, ArenaText, Definition, Row, Scalar, Type, Val, blocks};

/// Fields that most definitions in this file have in common.
const BASE: Definition = Definition {
    arguments: &[("text", Type::Text)],
    gives: Type::Simple,
    group: "Strings",
    errors: "for anything but a string",
    ..Definition::DEFAULT
};

/// `STR`.
pub mod str {
    use super::{ArenaText, BASE, Definition, Row, Scalar, Type, Val};
    use jindou_model::term::Parts;

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["STR"],
        arguments: &[("term", Type::Term)],
        row: Some(Scalar::Str),
        summary: "The text of a literal without its language tag or datatype, or of an IRI.",
        errors: "for a blank node or a triple term",
        examples: &[
            (r#"STR("chat"@en)"#, r#""chat""#),
            ("STR(<http://example.org/a>)", r#""http://example.org/a""#),
            ("STR(12)", r#""12""#),
        ],
        ..BASE
    };

    /// The function's value for one row, from the values of its arguments; `None` for an error.
    #[inline]
    pub fn row<R: Row>(row: &mut R, values: &[Val]) -> Option<Val> {
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
}

/// `LANG`.
pub mod lang {
    use super::{BASE, Definition, Row, Scalar, Type, Val};
    use jindou_model::term::Parts;

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["LANG"],
        arguments: &[("literal", Type::Literal)],
        row: Some(Scalar::Lang),
        summary: "The language tag of a literal, in lower case; the empty string for a literal without one.",
        errors: "for anything but a literal",
        examples: &[
            (r#"LANG("Robert"@EN)"#, r#""en""#),
            (r#"LANG("Robert")"#, r#""""#),
        ],
        ..BASE
    };

    /// The function's value for one row, from the values of its arguments; `None` for an error.
    #[inline]
    pub fn row<R: Row>(row: &mut R, values: &[Val]) -> Option<Val> {
        row.parts(*values.first()?, |row, parts| {
            let lang = match parts? {
                Parts::Lang(_, lang) => lang.split_once("--").map_or(lang, |(l, _)| l),
                Parts::String(_) | Parts::Coded(..) | Parts::Typed(..) => "",
                _ => return None,
            };
            Some(row.make(lang.as_bytes(), None))
        })
    }
}

/// `DATATYPE`.
pub mod datatype {
    use super::{BASE, Definition, Row, Scalar, Type, Val};
    use jindou_model::term::{self, Parts};
    use std::borrow::Cow;

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["DATATYPE"],
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
        ..BASE
    };

    /// The function's value for one row, from the values of its arguments; `None` for an error.
    #[inline]
    pub fn row<R: Row>(row: &mut R, values: &[Val]) -> Option<Val> {
        row.parts(*values.first()?, |row, parts| {
            let datatype: Cow<'_, str> = match parts? {
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
}

/// `CONCAT`. Its values are computed in the engine's `text.rs`.
pub mod concat {
    use super::{BASE, Definition, Type};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["CONCAT"],
        least: 0,
        repeats: true,
        gives: Type::Text,
        summary: "All arguments joined; with a language tag if all have the same one. Takes any number of arguments.",
        errors: "unless all are strings",
        examples: &[
            (r#"CONCAT("foo"@en, "bar"@en)"#, r#""foobar"@en"#),
            (r#"CONCAT("foo"@en, "bar")"#, r#""foobar""#),
        ],
        ..BASE
    };
}

/// `SUBSTR`.
pub mod substr {
    use super::{ArenaSpan, ArenaText, BASE, Definition, Row, Scalar, Type, Val, blocks};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["SUBSTR"],
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
        ..BASE
    };

    /// The function's value for one row, from the values of its arguments; `None` for an error.
    #[inline]
    pub fn row<R: Row>(row: &mut R, values: &[Val]) -> Option<Val> {
        let [first, second] = *values.first_chunk()?;
        let t = row.text(first)?;
        let start = row.integer(second)?;
        let length = match values.get(2) {
            Some(v) => Some(row.integer(*v)?),
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
}

/// `STRLEN`.
pub mod strlen {
    use super::{BASE, Definition, Row, Scalar, Type, Val, blocks};
    use crate::Num;

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["STRLEN"],
        gives: Type::Number,
        row: Some(Scalar::StrLen),
        summary: "The number of characters (code points) of a text.",
        examples: &[(r#"STRLEN("chat"@en)"#, "4")],
        ..BASE
    };

    /// The function's value for one row, from the values of its arguments; `None` for an error.
    #[inline]
    pub fn row<R: Row>(row: &mut R, values: &[Val]) -> Option<Val> {
        let t = row.text(*values.first()?)?;
        Some(Val::Num(Num::Int(blocks::characters(row, t.text) as i64)))
    }
}

/// `UCASE`.
pub mod ucase {
    use super::{BASE, Definition, Row, Scalar, Type, Val, blocks};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["UCASE"],
        gives: Type::Text,
        row: Some(Scalar::UCase),
        summary: "The text in upper case. Keeps the language tag.",
        examples: &[(r#"UCASE("foo"@en)"#, r#""FOO"@en"#)],
        ..BASE
    };

    /// The function's value for one row, from the values of its arguments; `None` for an error.
    #[inline]
    pub fn row<R: Row>(row: &mut R, values: &[Val]) -> Option<Val> {
        let t = row.text(*values.first()?)?;
        blocks::mapped(row, t, str::to_uppercase, blocks::between_characters)
    }
}

/// `LCASE`.
pub mod lcase {
    use super::{BASE, Definition, Row, Scalar, Type, Val, blocks};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["LCASE"],
        gives: Type::Text,
        row: Some(Scalar::LCase),
        summary: "The text in lower case. Keeps the language tag.",
        examples: &[(r#"LCASE("BAR")"#, r#""bar""#)],
        ..BASE
    };

    /// The function's value for one row, from the values of its arguments; `None` for an error.
    #[inline]
    pub fn row<R: Row>(row: &mut R, values: &[Val]) -> Option<Val> {
        let t = row.text(*values.first()?)?;
        blocks::mapped(row, t, str::to_lowercase, blocks::between_contexts)
    }
}

/// `ENCODE_FOR_URI`. Its values are computed in the engine's `make.rs`.
pub mod encode_for_uri {
    use super::{BASE, Definition};

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["ENCODE_FOR_URI"],
        summary: "The text with everything but letters, digits, `-`, `_`, `.` and `~` percent-encoded.",
        examples: &[(r#"ENCODE_FOR_URI("Los Angeles")"#, r#""Los%20Angeles""#)],
        ..BASE
    };
}

/// `LANGDIR`.
pub mod langdir {
    use super::{BASE, Definition, Row, Scalar, Type, Val};
    use jindou_model::term::Parts;

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["LANGDIR"],
        arguments: &[("literal", Type::Literal)],
        row: Some(Scalar::LangDir),
        summary: "The base direction of a literal, `ltr` or `rtl`; the empty string for a literal without one.",
        errors: "for anything but a literal",
        examples: &[(r#"LANGDIR("a"@en)"#, r#""""#)],
        ..BASE
    };

    /// The function's value for one row, from the values of its arguments; `None` for an error.
    #[inline]
    pub fn row<R: Row>(row: &mut R, values: &[Val]) -> Option<Val> {
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
}

/// `hasLANG`.
pub mod has_lang {
    use super::{BASE, Definition, Row, Scalar, Type, Val};
    use jindou_model::term;

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["hasLANG"],
        arguments: &[("term", Type::Term)],
        gives: Type::Boolean,
        row: Some(Scalar::HasLang),
        summary: "True for a literal with a language tag.",
        errors: "",
        examples: &[(r#"hasLANG("a"@en)"#, "true")],
        ..BASE
    };

    /// The function's value for one row, from the values of its arguments; `None` for an error.
    #[inline]
    pub fn row<R: Row>(row: &mut R, values: &[Val]) -> Option<Val> {
        Some((row.tag(*values.first()?) == term::LANG).into())
    }
}

/// `hasLANGDIR`.
pub mod has_langdir {
    use super::{BASE, Definition, Row, Scalar, Type, Val};
    use jindou_model::term::Parts;

    /// Names, argument types, cost and documentation of the function.
    pub const DEFINITION: Definition = Definition {
        names: &["hasLANGDIR"],
        arguments: &[("term", Type::Term)],
        gives: Type::Boolean,
        row: Some(Scalar::HasLangDir),
        summary: "True for a literal with a language tag and a base direction.",
        errors: "",
        examples: &[(r#"hasLANGDIR("a"@en)"#, "false")],
        ..BASE
    };

    /// The function's value for one row, from the values of its arguments; `None` for an error.
    #[inline]
    pub fn row<R: Row>(row: &mut R, values: &[Val]) -> Option<Val> {
        row.parts(*values.first()?, |_, parts| {
            Some(matches!(parts, Some(Parts::Lang(_, tag)) if tag.contains("--")).into())
        })
    }
}
