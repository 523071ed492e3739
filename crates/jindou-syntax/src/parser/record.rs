//! Places of terms, patterns and filters, recorded while a query is parsed.

use super::Parser;
use super::expression::Expr;
use super::triples::TriplePart;
use crate::algebra::{PropertyPathExpression, TermPattern, TriplePattern};
use crate::recorded::{PatternPlace, Recorded};

/// Largest number of recorded places of each kind; queries that people write have fewer.
const MOST: usize = 4_000;

/// Recorded places, and the place of the triple that is being read.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub found: Recorded,
    /// Beginning of the current verb.
    verb: usize,
    /// Range of the current pattern, from its verb to its object.
    pattern: (usize, usize),
}

impl Parser<'_, '_> {
    /// Records that the term is at the current position.
    #[inline]
    pub(super) fn record_term(&mut self, start: usize, term: impl FnOnce() -> TermPattern) {
        if self.recorder.is_some() {
            self.write_term(start, term());
        }
    }

    #[cold]
    fn write_term(&mut self, start: usize, term: TermPattern) {
        let range = self.source.range(start..self.behind);
        if let Some(recorder) = &mut self.recorder
            && recorder.found.terms.len() < MOST
        {
            recorder.found.terms.push((term, range));
        }
    }

    /// Remembers the beginning of a verb.
    #[inline]
    pub(super) fn record_verb(&mut self) {
        let start = self.token.start;
        if let Some(recorder) = &mut self.recorder {
            recorder.verb = start;
        }
    }

    /// Records the place of the current pattern's object. Terms inside the object may have moved the recorded verb past it.
    #[inline]
    pub(super) fn record_object(&mut self, object: crate::lexer::Token) {
        if let Some(recorder) = &mut self.recorder {
            recorder.pattern = (recorder.verb.min(object.start), object.end);
        }
    }

    /// Records a pattern of the current verb and object.
    #[inline]
    pub(super) fn record_part(&mut self, part: &TriplePart) {
        if self.recorder.is_some() {
            self.write_part(part);
        }
    }

    #[cold]
    fn write_part(&mut self, part: &TriplePart) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        if recorder.found.patterns.len() >= MOST {
            return;
        }
        let pattern = match part {
            TriplePart::Triple(TriplePattern {
                subject,
                predicate,
                object,
            }) => PatternPlace {
                subject: subject.clone(),
                predicate: Some(predicate.clone()),
                path: None,
                object: object.clone(),
                range: 0..0,
            },
            TriplePart::Path(subject, path, object) => PatternPlace {
                subject: subject.clone(),
                predicate: None,
                path: Some(PropertyPathExpression::clone(path)),
                object: object.clone(),
                range: 0..0,
            },
        };
        let (start, end) = recorder.pattern;
        let range = self.source.range(start..end);
        recorder
            .found
            .patterns
            .push(PatternPlace { range, ..pattern });
    }

    /// Records a FILTER that begins here and ends at the current position.
    #[inline]
    pub(super) fn record_filter(&mut self, start: usize, e: &Expr) {
        if self.recorder.is_some() {
            let range = self.source.range(start..self.behind);
            if let Some(recorder) = &mut self.recorder
                && recorder.found.filters.len() < MOST
            {
                recorder.found.filters.push((e.it.shared(), range));
            }
        }
    }

    /// Records the group of the whole query, which begins here and ends at the current position.
    pub(super) fn record_body(&mut self, start: usize) {
        if self.recorder.is_some() {
            let range = self.source.range(start..self.behind);
            if let Some(recorder) = &mut self.recorder {
                recorder.found.body = Some(range);
            }
        }
    }
}
