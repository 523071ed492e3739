//! A query with the positions of its parts in the text.

use crate::algebra::{
    Expression, NamedNodePattern, PropertyPathExpression, Query, TermPattern, TriplePattern,
};
use crate::parser::Parser;
use crate::source::ParserText;
use crate::{Escapes, ParseFailure, ParserOptions, failure};
use std::ops::Range;

/// Positions of parts of a query, as ascending byte ranges of its text. Only the first few thousand parts of each kind
/// have one.
#[derive(Debug, Default)]
pub struct Recorded {
    /// IRIs and literals; without `a`.
    pub terms: Vec<(TermPattern, Range<usize>)>,
    /// Triple patterns and path patterns; the ranges reach from the predicate to the object.
    pub patterns: Vec<PatternPlace>,
    /// Conditions of FILTER; the ranges include the keyword.
    pub filters: Vec<(Expression, Range<usize>)>,
    /// The group of the whole query, with its braces.
    pub body: Option<Range<usize>>,
}

/// A pattern and its position.
#[derive(Debug)]
pub struct PatternPlace {
    /// The subject.
    pub subject: TermPattern,
    /// The predicate; `None` if the pattern has a path.
    pub predicate: Option<NamedNodePattern>,
    /// The path, if the pattern has one.
    pub path: Option<PropertyPathExpression>,
    /// The object.
    pub object: TermPattern,
    /// The byte range from the predicate to the object.
    pub range: Range<usize>,
}

impl Recorded {
    /// The position of a triple pattern; `None` if it was not recorded.
    #[must_use]
    pub fn triple(&self, t: &TriplePattern) -> Option<Range<usize>> {
        let is = |p: &&PatternPlace| {
            p.predicate.as_ref() == Some(&t.predicate)
                && p.subject == t.subject
                && p.object == t.object
        };
        self.pattern(is)
    }

    /// The position of a pattern with a path; `None` if it was not recorded.
    #[must_use]
    pub fn path(
        &self,
        subject: &TermPattern,
        path: &PropertyPathExpression,
        object: &TermPattern,
    ) -> Option<Range<usize>> {
        let is = |p: &&PatternPlace| {
            p.path.as_ref() == Some(path) && p.subject == *subject && p.object == *object
        };
        self.pattern(is)
    }

    /// The position of the first matching pattern in the query's group, or else in a template before it.
    fn pattern(&self, is: impl Fn(&&PatternPlace) -> bool) -> Option<Range<usize>> {
        let mut all = self.patterns.iter().filter(|p| is(p));
        let from = self.body.as_ref().map_or(0, |b| b.start);
        let first = all.clone().find(|p| p.range.start >= from);
        first.or_else(|| all.next()).map(|p| p.range.clone())
    }

    /// The position of a term: inside the range `near`, or else the last one before it, or else the first one in the
    /// text.
    #[must_use]
    pub fn term(&self, term: &TermPattern, near: Option<&Range<usize>>) -> Option<Range<usize>> {
        let mut all = self.terms.iter().filter(|t| t.0 == *term).map(|t| &t.1);
        let Some(near) = near else {
            return all.next().cloned();
        };
        let within = all
            .clone()
            .find(|r| r.start >= near.start && r.end <= near.end);
        let before = || all.clone().take_while(|r| r.start < near.start).last();
        within.or_else(before).or_else(|| all.next()).cloned()
    }
}

/// Parses a query, and records the positions of its parts.
///
/// # Errors
/// As [`crate::parse_query`].
pub fn parse_recorded(
    text: &str,
    options: &ParserOptions,
) -> Result<(Query, Recorded), ParseFailure> {
    let source = ParserText::new(text, options.escapes == Escapes::Anywhere);
    let mut parser = Parser::new(&source, options);
    parser.recorder = Some(Box::default());
    match parser.query() {
        Some(query) => {
            let found = parser.recorder.take().map(|r| r.found);
            Ok((query, found.unwrap_or_default()))
        }
        None => Err(failure(parser)),
    }
}
