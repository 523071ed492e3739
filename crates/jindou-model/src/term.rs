//! The canonical bytes of a term, by which dictionaries, runs and hashes identify it.
//!
//! The first byte is a tag, the rest is content in unescaped UTF-8. Two terms are the same exactly if their bytes are
//! equal (language tags are converted to lower case, since their case is not significant). Literals of one well-known
//! datatype share their tag. In byte order, each datatype is therefore an interval, and so are all numeric datatypes
//! together ([`NUMERIC_TAGS`]), so that columns of values can be plain arrays.
//!
//! | tag | content |
//! |---|---|
//! | `<` | the IRI, without the closing `>` |
//! | `_` | `:` and the blank node's label |
//! | `"` | the lexical form of an `xsd:string` |
//! | `@` | lower-case language tag (`en`, or `en--ltr` with a base direction), a 0 byte, lexical form |
//! | `^` | datatype IRI, a 0 byte, lexical form (datatypes without a tag of their own) |
//! | `(` | an RDF 1.2 triple term: three parts, each a 4-byte little-endian length and canonical bytes |
//! | `0x80 ..` | lexical form of the well-known datatype with that code ([`DATATYPES`]) |
//!
//! In N-Triples text, an IRI and a plain literal without the closing delimiter already have this form, so the loader
//! does not copy them.

use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BlankNode, Literal, NamedNode, NamedOrBlankNode, Term, Triple};

/// Tag of an IRI.
pub const IRI: u8 = b'<';
/// Tag of a blank node.
pub const BLANK: u8 = b'_';
/// Tag of an `xsd:string`.
pub const STRING: u8 = b'"';
/// Tag of a language-tagged string.
pub const LANG: u8 = b'@';
/// Tag of a literal whose datatype has no code.
pub const TYPED: u8 = b'^';
/// Tag of a triple term.
pub const TRIPLE: u8 = b'(';
/// First datatype code.
pub const FIRST_DATATYPE: u8 = 0x80;
/// The tags of numeric datatypes: `0x80 ..= 0x8F`.
pub const NUMERIC_TAGS: std::ops::RangeInclusive<u8> = 0x80..=0x8F;
/// The tag of `xsd:boolean`.
pub const BOOLEAN_TAG: u8 = 0x90;
/// The tags of dates, times and durations.
pub const TEMPORAL_TAGS: std::ops::RangeInclusive<u8> = 0x91..=0x9B;

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// Local names in the XSD namespace of the datatypes with a code, which is `0x80` plus the index. Stores contain these
/// codes, so the list may only be extended at its end.
pub const DATATYPES: [&str; 28] = [
    "integer",
    "decimal",
    "double",
    "float",
    "int",
    "long",
    "short",
    "byte",
    "nonNegativeInteger",
    "positiveInteger",
    "nonPositiveInteger",
    "negativeInteger",
    "unsignedInt",
    "unsignedLong",
    "unsignedShort",
    "unsignedByte",
    "boolean", // 0x90
    "dateTime",
    "date",
    "time",
    "gYear",
    "gYearMonth",
    "gMonth",
    "gMonthDay",
    "gDay",
    "duration",
    "dayTimeDuration",
    "yearMonthDuration", // 0x9B
];

/// The code of a datatype IRI, if it has one.
#[must_use]
pub fn datatype_code(iri: &str) -> Option<u8> {
    let local = iri.strip_prefix(XSD)?;
    DATATYPES
        .iter()
        .position(|d| *d == local)
        .map(|i| FIRST_DATATYPE + i as u8)
}

/// The datatype IRI of a code; `None` if no datatype has the code.
#[must_use]
pub fn datatype_iri(code: u8) -> Option<String> {
    let local = DATATYPES.get(code.checked_sub(FIRST_DATATYPE)? as usize)?;
    Some(format!("{XSD}{local}"))
}

/// Appends the canonical bytes of an IRI.
pub fn push_iri(iri: &str, out: &mut Vec<u8>) {
    out.push(IRI);
    out.extend_from_slice(iri.as_bytes());
}

/// Appends a blank node (label without `_:`).
pub fn push_blank(label: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"_:");
    out.extend_from_slice(label.as_bytes());
}

/// Appends a typed literal; with `xsd:string`, a string with its own tag.
pub fn push_typed(lexical: &str, datatype: &str, out: &mut Vec<u8>) {
    if datatype == xsd::STRING.as_str() {
        out.push(STRING);
    } else if let Some(code) = datatype_code(datatype) {
        out.push(code);
    } else {
        out.push(TYPED);
        out.extend_from_slice(datatype.as_bytes());
        out.push(0);
    }
    out.extend_from_slice(lexical.as_bytes());
}

/// Appends a language-tagged string. `tag` may be in any case, and may end in `--ltr` or `--rtl` for a base direction.
pub fn push_lang(lexical: &str, tag: &str, out: &mut Vec<u8>) {
    out.push(LANG);
    out.extend(tag.bytes().map(|b| b.to_ascii_lowercase()));
    out.push(0);
    out.extend_from_slice(lexical.as_bytes());
}

/// Appends any term. Recursive, to the depth of nested triple terms.
pub fn push_term(term: &Term, out: &mut Vec<u8>) {
    match term {
        Term::NamedNode(n) => push_iri(n.as_str(), out),
        Term::BlankNode(b) => push_blank(b.as_str(), out),
        Term::Literal(l) => push_literal(l, out),
        Term::Triple(t) => {
            out.push(TRIPLE);
            push_part(&t.subject.clone().into(), out);
            push_part(&t.predicate.clone().into(), out);
            push_part(&t.object, out);
        }
    }
}

fn push_part(term: &Term, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    push_term(term, out);
    let len = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&len.to_le_bytes());
}

/// Appends a literal.
pub fn push_literal(literal: &Literal, out: &mut Vec<u8>) {
    push_literal_head(literal, out);
    out.extend_from_slice(literal.value().as_bytes());
}

/// Appends the canonical bytes of a literal except for its lexical form, which comes last.
pub fn push_literal_head(literal: &Literal, out: &mut Vec<u8>) {
    if let Some(lang) = literal.language() {
        out.push(LANG);
        out.extend(lang.bytes().map(|b| b.to_ascii_lowercase()));
        match literal.direction() {
            Some(oxrdf::BaseDirection::Ltr) => out.extend_from_slice(b"--ltr"),
            Some(oxrdf::BaseDirection::Rtl) => out.extend_from_slice(b"--rtl"),
            None => {}
        }
        out.push(0);
    } else {
        push_typed("", literal.datatype().as_str(), out);
    }
}

/// The canonical bytes of a term.
#[must_use]
pub fn encode(term: &Term) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    push_term(term, &mut out);
    out
}

/// A term's parts, borrowed from its canonical bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts<'a> {
    /// IRI.
    Iri(&'a str),
    /// Blank node label, without `_:`.
    Blank(&'a str),
    /// `xsd:string`.
    String(&'a str),
    /// Language-tagged string: lexical form, tag (with `--ltr` / `--rtl` if it has a direction).
    Lang(&'a str, &'a str),
    /// Literal with a coded datatype: lexical form, code.
    Coded(&'a str, u8),
    /// Literal with another datatype: lexical form, datatype IRI.
    Typed(&'a str, &'a str),
    /// Triple term: canonical bytes of its three parts.
    Triple([&'a [u8]; 3]),
}

/// Splits canonical bytes into parts; `None` if they are invalid. O(length), since the UTF-8 is checked.
#[must_use]
pub fn parts(bytes: &[u8]) -> Option<Parts<'_>> {
    let (&tag, rest) = bytes.split_first()?;
    if tag == TRIPLE {
        let mut at = rest;
        let mut out = [&[][..]; 3];
        for part in &mut out {
            let (len, tail) = at.split_first_chunk::<4>()?;
            let len = u32::from_le_bytes(*len) as usize;
            *part = tail.get(..len)?;
            at = &tail[len..];
        }
        return at.is_empty().then_some(Parts::Triple(out));
    }
    let text = std::str::from_utf8(rest).ok()?;
    Some(match tag {
        IRI => Parts::Iri(text),
        BLANK => Parts::Blank(text.strip_prefix(':')?),
        STRING => Parts::String(text),
        LANG => {
            let (tag, lexical) = text.split_once('\0')?;
            Parts::Lang(lexical, tag)
        }
        TYPED => {
            let (datatype, lexical) = text.split_once('\0')?;
            Parts::Typed(lexical, datatype)
        }
        code if (code.wrapping_sub(FIRST_DATATYPE) as usize) < DATATYPES.len() => {
            Parts::Coded(text, code)
        }
        _ => return None,
    })
}

/// The first bytes of a term, which tell its kind: the tag; for strings with a language and literals whose datatype has
/// no code, also the language or the datatype, with the 0 byte after it. Terms of one kind are an interval in the order
/// of bytes. `None` if the bytes are invalid.
#[must_use]
pub fn head(bytes: &[u8]) -> Option<&[u8]> {
    let end = match *bytes.first()? {
        LANG | TYPED => bytes.iter().position(|&b| b == 0)?,
        _ => 0,
    };
    bytes.get(..=end)
}

/// Deepest nesting of triple terms. Terms nested more deeply cannot be parsed, created, stored or decoded, so that the
/// stack which readers need does not depend on the data.
pub const MAX_TRIPLE_NESTING: usize = 64;

/// Nesting depth of triple terms in canonical bytes; 0 for other terms. Only the object of a triple term can be a
/// triple term. O(levels).
#[must_use]
pub fn triple_nesting(mut bytes: &[u8]) -> usize {
    let mut levels = 0;
    while bytes.first() == Some(&TRIPLE)
        && let Some(Parts::Triple([_, _, object])) = parts(bytes)
    {
        levels += 1;
        bytes = object;
    }
    levels
}

/// The term with these canonical bytes; `None` if they are invalid or nested too deeply.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<Term> {
    decode_at(bytes, 0)
}

fn decode_at(bytes: &[u8], depth: usize) -> Option<Term> {
    Some(match parts(bytes)? {
        Parts::Iri(i) => NamedNode::new_unchecked(i).into(),
        Parts::Blank(b) => BlankNode::new_unchecked(b).into(),
        Parts::String(s) => Literal::new_simple_literal(s).into(),
        Parts::Coded(s, code) => {
            Literal::new_typed_literal(s, NamedNode::new_unchecked(datatype_iri(code)?)).into()
        }
        Parts::Typed(s, d) => Literal::new_typed_literal(s, NamedNode::new_unchecked(d)).into(),
        Parts::Lang(s, tag) => match tag.rsplit_once("--") {
            Some((lang, dir)) => Literal::new_directional_language_tagged_literal_unchecked(
                s,
                lang,
                if dir == "rtl" {
                    oxrdf::BaseDirection::Rtl
                } else {
                    oxrdf::BaseDirection::Ltr
                },
            )
            .into(),
            None => Literal::new_language_tagged_literal_unchecked(s, tag).into(),
        },
        Parts::Triple([s, p, o]) => {
            if depth >= MAX_TRIPLE_NESTING {
                return None;
            }
            let s: NamedOrBlankNode = match decode_at(s, depth + 1)? {
                Term::NamedNode(n) => n.into(),
                Term::BlankNode(b) => b.into(),
                Term::Literal(_) | Term::Triple(_) => return None,
            };
            let Term::NamedNode(p) = decode_at(p, depth + 1)? else {
                return None;
            };
            Triple::new(s, p, decode_at(o, depth + 1)?).into()
        }
    })
}

/// The IRI of `rdf:type` as canonical bytes.
#[must_use]
pub fn rdf_type() -> Vec<u8> {
    encode(&rdf::TYPE.into_owned().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::BaseDirection;

    fn round(t: impl Into<Term>) {
        let t = t.into();
        assert_eq!(decode(&encode(&t)), Some(t));
    }

    #[test]
    fn every_kind_of_term_comes_back() {
        round(NamedNode::new_unchecked("http://e/a"));
        round(BlankNode::new_unchecked("b1"));
        round(Literal::new_simple_literal("a\0\"\n"));
        round(Literal::new_language_tagged_literal_unchecked("x", "de-at"));
        round(Literal::new_directional_language_tagged_literal_unchecked(
            "x",
            "he",
            BaseDirection::Rtl,
        ));
        for code in 0..DATATYPES.len() as u8 {
            let iri = datatype_iri(FIRST_DATATYPE + code).unwrap();
            assert_eq!(datatype_code(&iri), Some(FIRST_DATATYPE + code));
            round(Literal::new_typed_literal(
                "1",
                NamedNode::new_unchecked(iri),
            ));
        }
        round(Literal::new_typed_literal(
            "1",
            NamedNode::new_unchecked("http://e/dt"),
        ));
        let t = Triple::new(
            NamedNode::new_unchecked("http://e/s"),
            NamedNode::new_unchecked("http://e/p"),
            Literal::new_simple_literal("o"),
        );
        round(t.clone());
        round(Triple::new(
            t.subject.clone(),
            t.predicate.clone(),
            Term::from(t),
        ));
    }

    #[test]
    fn language_tags_compare_without_case() {
        let mut a = vec![];
        push_lang("x", "EN-us", &mut a);
        assert_eq!(a, b"@en-us\0x");
    }

    #[test]
    fn damaged_bytes_are_none_and_never_a_panic() {
        for bad in [
            &b""[..],
            b"@en",
            b"^x",
            b"_b",
            b"\xFFx",
            b"(\x01",
            b"<\xFF",
            b"(\xFF\xFF\xFF\xFFx",
        ] {
            assert_eq!(decode(bad), None);
        }
    }
}
