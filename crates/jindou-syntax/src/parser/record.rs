//! Recording of the positions of terms, patterns and filters while a query is parsed.

use super::Parser;
use super::expression::Expr;
use super::triples::TriplePart;
use crate::algebra::TermPattern;
use crate::recorded::{PatternPlace, Recorded};

/// Largest number of recorded positions of each kind, which is more than queries written by hand have.
const MOST: usize = 4_000;

/// Recorded positions, and the position of the triple that is being read.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub found: Recorded,
    /// Start of the current predicate or path.
    verb: usize,
    /// Range of the current pattern, from its predicate to its object.
    pattern: (usize, usize),
}

impl Parser<'_, '_> {
    /// Records a term that begins at `start` and ends at the current position.
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

    /// Records the start of the current predicate or path.
    #[inline]
    pub(super) fn record_verb(&mut self) {
        let start = self.token.start;
        if let Some(recorder) = &mut self.recorder {
            recorder.verb = start;
        }
    }

    /// Records that the current pattern ends with this object. Triples inside the object may have set a later `verb`,
    /// hence the minimum.
    #[inline]
    pub(super) fn record_object(&mut self, object: crate::lexer::Token) {
        if let Some(recorder) = &mut self.recorder {
            recorder.pattern = (recorder.verb.min(object.start), object.end);
        }
    }

    /// Records a pattern with the current range.
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
        let (subject, predicate, path, object) = match part {
            TriplePart::Triple(t) => (&t.subject, Some(t.predicate.clone()), None, &t.object),
            TriplePart::Path(subject, path, object) => (subject, None, Some(path.clone()), object),
        };
        let (start, end) = recorder.pattern;
        recorder.found.patterns.push(PatternPlace {
            subject: subject.clone(),
            predicate,
            path,
            object: object.clone(),
            range: self.source.range(start..end),
        });
    }

    /// Records a FILTER that begins at `start` and ends at the current position.
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

    /// Records the group of the whole query, which begins at `start` and ends at the current position.
    pub(super) fn record_body(&mut self, start: usize) {
        if self.recorder.is_some() {
            let range = self.source.range(start..self.behind);
            if let Some(recorder) = &mut self.recorder {
                recorder.found.body = Some(range);
            }
        }
    }
}
