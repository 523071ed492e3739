//! Terms of answers: canonical bytes from what a SPARQL result in XML or JSON says about a term.

use super::labels;
use super::wide::WideAnswer;
use jindou_model::term;
use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNodeRef};

/// Deepest nesting of triple terms.
pub(super) const MOST_TRIPLES: usize = 64;

/// Reason why an answer is refused, without its place.
pub(super) enum TermFault {
    Wrong(String),
    Wide(WideAnswer),
}

pub(super) type TermResult<T> = Result<T, TermFault>;

#[cold]
pub(super) fn wrong<T>(message: impl Into<String>) -> TermResult<T> {
    Err(TermFault::Wrong(message.into()))
}

pub(super) fn shortened(text: &str) -> String {
    let text = jindou_model::diagnostic::shortened(text, 100);
    text.replace(char::is_control, "\u{FFFD}")
}

pub(super) fn iri(text: &str) -> TermResult<Vec<u8>> {
    if let Err(e) = NamedNodeRef::new(text) {
        return wrong(format!(
            "`{}` is not a valid IRI ({e}), expected an absolute one",
            shortened(text)
        ));
    }
    let mut bytes = Vec::new();
    term::push_iri(text, &mut bytes);
    Ok(bytes)
}

/// A blank node, with `own` as a prefix of its label.
pub(super) fn blank(text: &str, own: &str) -> TermResult<Vec<u8>> {
    let label = labels::allowed(text);
    if label.is_empty() {
        return wrong("a blank node has no label, expected one");
    }
    Ok(format!("_:{own}{label}").into_bytes())
}

/// A language tag, followed by the base direction if there is one.
pub(super) fn language(tag: &str, direction: Option<&str>) -> TermResult<String> {
    if Literal::new_language_tagged_literal("", tag).is_err() {
        return wrong(format!(
            "`{}` is not a valid language tag, expected one such as en",
            shortened(tag)
        ));
    }
    match direction {
        None => Ok(tag.to_owned()),
        Some(direction @ ("ltr" | "rtl")) => Ok(format!("{tag}--{direction}")),
        Some(_) => wrong("a base direction is neither `ltr` nor `rtl`, expected one of them"),
    }
}

pub(super) fn check_datatype(iri: &str) -> TermResult<()> {
    if NamedNodeRef::new(iri).is_err() {
        return wrong(format!(
            "`{}` is not a valid IRI of a datatype, expected an absolute one",
            shortened(iri)
        ));
    }
    Ok(())
}

/// A literal; `language` and `datatype` are empty if there is none.
pub(super) fn literal(text: &str, language: &str, datatype: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    match (language, datatype) {
        ("", "") => term::push_typed(text, xsd::STRING.as_str(), &mut bytes),
        ("", datatype) => term::push_typed(text, datatype, &mut bytes),
        (language, _) => term::push_lang(text, language, &mut bytes),
    }
    bytes
}

/// Checks that a term may be the subject (`part` is 0), predicate (1) or object (2) of a triple term.
pub(super) fn check_part(part: usize, bytes: &[u8]) -> TermResult<()> {
    let may_be = match part {
        0 => matches!(bytes.first(), Some(&(term::IRI | term::BLANK))),
        1 => bytes.first() == Some(&term::IRI),
        _ => true,
    };
    match may_be {
        true => Ok(()),
        false => {
            wrong("a triple's subject must be an IRI or a blank node, and its predicate an IRI")
        }
    }
}

pub(super) fn triple(parts: [Option<Vec<u8>>; 3]) -> TermResult<Vec<u8>> {
    let [Some(s), Some(p), Some(o)] = parts else {
        return wrong("a part of a triple is missing, expected subject, predicate and object");
    };
    let mut bytes = vec![term::TRIPLE];
    for (part, term) in [s, p, o].iter().enumerate() {
        check_part(part, term)?;
        let length = u32::try_from(term.len());
        let length = length.map_err(|_| TermFault::Wide(WideAnswer::Depth))?;
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(term);
    }
    Ok(bytes)
}
