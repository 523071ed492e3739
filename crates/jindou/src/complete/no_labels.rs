//! Completion without the feature `text`: labels are not searched.

use super::data::{Candidate, CandidateSearch};
use oxrdf::Term;

pub(crate) struct Labelled {
    pub candidate: Candidate,
    pub is_counted: bool,
    pub label: Option<String>,
}

pub(crate) fn found(
    _: &CandidateSearch<'_>,
    _: &str,
    _: bool,
    _: &[Candidate],
    _: impl Fn(&Term) -> bool,
) -> Vec<Labelled> {
    Vec::new()
}

/// A text in lower case; accents are kept, since removing them needs the feature `text`.
pub(crate) fn folded(text: &str) -> String {
    text.to_lowercase()
}
