//! Labels without the feature `text`: none are looked at.

use super::data::{Candidate, Look};
use oxrdf::Term;

pub(crate) struct Labelled {
    pub candidate: Candidate,
    pub is_counted: bool,
    pub label: Option<String>,
}

pub(crate) fn found(
    _: &Look<'_>,
    _: &str,
    _: bool,
    _: &[Candidate],
    _: impl Fn(&Term) -> bool,
) -> Vec<Labelled> {
    Vec::new()
}

/// A text in lower case: without the feature `text` accents count.
pub(crate) fn folded(text: &str) -> String {
    text.to_lowercase()
}
