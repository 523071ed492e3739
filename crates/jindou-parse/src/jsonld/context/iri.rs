//! Expansion of names to IRIs (JSON-LD 1.1 API, 5.2).

use super::{Context, Keyword, Name};
use jindou_model::iri::resolve;
use std::rc::Rc;

impl Context {
    /// Expands a name: with `vocab`, as a term or relative to the vocabulary; with `relative`, relative to the base.
    pub(in crate::jsonld) fn expand(&self, text: &str, vocab: bool, relative: bool) -> Name {
        if let Some(keyword) = Keyword::parse(text) {
            return Name::Keyword(keyword);
        }
        if is_keyword_like(text) {
            return Name::Null;
        }
        if let Some(term) = self.term(text)
            && (vocab || matches!(term.name, Name::Keyword(_)))
        {
            return term.name.clone();
        }
        if let Some((prefix, suffix)) = split(text) {
            if prefix == "_" || suffix.starts_with("//") {
                return Name::Text(text.into());
            }
            if let Some(term) = self.term(prefix)
                && term.prefix
                && let Name::Text(iri) = &term.name
            {
                return Name::Text(join(iri, suffix));
            }
            if has_scheme(text) {
                return Name::Text(text.into());
            }
        }
        if vocab && let Some(vocabulary) = &self.vocab {
            return Name::Text(join(vocabulary, text));
        }
        if relative && let Some(base) = &self.base {
            // A reference that cannot be resolved is kept; the quads that contain it are omitted later.
            if let Ok(iri) = resolve(base, text) {
                return Name::Text(iri.into());
            }
        }
        Name::Text(text.into())
    }
}

/// The parts before and after the first colon that is not the first character.
pub(super) fn split(text: &str) -> Option<(&str, &str)> {
    let at = memchr::memchr(b':', text.as_bytes().get(1..)?)? + 1;
    Some((&text[..at], &text[at + 1..]))
}

pub(super) fn join(start: &str, end: &str) -> Rc<str> {
    [start, end].concat().into()
}

/// True for `@` followed by letters only: names that are reserved for later versions of JSON-LD.
pub(super) fn is_keyword_like(text: &str) -> bool {
    text.strip_prefix('@')
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphabetic()))
}

/// True if a text begins with a scheme and contains no blanks.
fn has_scheme(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
            && !rest.contains(|c: char| c.is_ascii_whitespace())
    })
}

/// True if a text has the form of an IRI or of a blank node identifier.
pub(in crate::jsonld) fn is_iri_or_blank(text: &str) -> bool {
    text.starts_with("_:") || has_scheme(text)
}
