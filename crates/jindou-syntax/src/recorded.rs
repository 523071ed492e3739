//! A query with the places of its parts.

use crate::algebra::{
    Expression, NamedNodePattern, PropertyPathExpression, Query, TermPattern, TriplePattern,
};
use crate::parser::Parser;
use crate::source::ParserText;
use crate::{Escapes, ParseFailure, ParserOptions, failure};
use std::ops::Range;

/// Places of parts of a query, as byte ranges of its text in ascending order, for the first few thousand parts of each
/// kind.
#[derive(Debug, Default)]
pub struct Recorded {
    /// IRIs and literals, not including `a`.
    pub terms: Vec<(TermPattern, Range<usize>)>,
    /// Triple patterns and path patterns, from the predicate to the object.
    pub patterns: Vec<PatternPlace>,
    /// Conditions of FILTER, from the keyword to the end.
    pub filters: Vec<(Expression, Range<usize>)>,
    /// The group of the whole query with its braces.
    pub body: Option<Range<usize>>,
}

/// A pattern and its place.
#[derive(Debug)]
pub struct PatternPlace {
    /// The subject.
    pub subject: TermPattern,
    /// The predicate, unless there is a path.
    pub predicate: Option<NamedNodePattern>,
    /// The path.
    pub path: Option<PropertyPathExpression>,
    /// The object.
    pub object: TermPattern,
    /// From the predicate to the object.
    pub range: Range<usize>,
}

impl Recorded {
    /// The place of a triple pattern.
    #[must_use]
    pub fn triple(&self, t: &TriplePattern) -> Option<Range<usize>> {
        let is = |p: &&PatternPlace| {
            p.predicate.as_ref() == Some(&t.predicate)
                && p.subject == t.subject
                && p.object == t.object
        };
        self.pattern(is)
    }

    /// The place of a pattern with a path.
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

    /// The first matching pattern in the query's group, otherwise in a template.
    fn pattern(&self, is: impl Fn(&&PatternPlace) -> bool) -> Option<Range<usize>> {
        let mut all = self.patterns.iter().filter(|p| is(p));
        let from = self.body.as_ref().map_or(0, |b| b.start);
        let first = all.clone().find(|p| p.range.start >= from);
        first.or_else(|| all.next()).map(|p| p.range.clone())
    }

    /// The place of a term: within the range, otherwise the last one before it, otherwise the first one in the text.
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

/// Parses a query, and records the places of its parts.
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
