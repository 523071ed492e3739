//! SPARQL 1.1 and 1.2, queries and updates: text → [algebra], with error messages written for people.
//!
//! ```text
//! text ──source──► codepoint escapes decoded ──lexer──► tokens with places ──parser──► algebra
//!                                                            └── advice ──► faults with remedies
//! ```
//!
//! The parser is a recursive descent over tokens with one token of look-ahead. Its time is linear in the text, its
//! stack is bounded by [`MOST_NESTING`], and its memory and time are limited by the [scope](jindou_model::scope) that
//! the thread is inside.
//!
//! # Differences from `spargebra`'s parser
//!
//! The [algebra] equals the one that `spargebra` builds, with two exceptions. Generated blank nodes and variables have
//! other names. Chains of more than 32 parts of UNION, joins, `||`, `&&`, `/` and `|` in paths become balanced trees,
//! and more than 32 IRIs of DESCRIBE become inline data. Where `spargebra` deviates from the standard, this parser
//! follows the standard:
//!
//! 1. Codepoint escapes may occur anywhere (`\u003Fs` is `?s`, SPARQL 1.1 §19.2; [`Escapes`]).
//! 2. The longest token wins: `<` to `>` without spaces is an IRI, `.5` a number, and a sign belongs to the number that
//!    it touches and to its lexical form. Keywords need no space between them (`FILTERsameTerm`, `LIMIT10`).
//! 3. Names: local names may contain any number of dots (`e:a.b.c`, `ec:1.-.-.-`), and names may contain characters
//!    beyond the first plane.
//! 4. Keywords are case-insensitive, including `TRUE` and `False`.
//! 5. Spaces may precede the bracket of `CONCAT (…)`, `COALESCE (…)` and `BNODE ()`; comments may stand in `( )` and
//!    `[ ]`.
//! 6. In a grouped query, an expression of SELECT may use the expressions before it; `GROUP BY (?x AS ?y)` assigns a
//!    value to ?y, which must not have one already; a variable of HAVING or ORDER BY that is not grouped is a sample of
//!    its group; CONSTRUCT, ASK and DESCRIBE may be grouped and may have aggregates in HAVING and ORDER BY.
//! 7. Aggregates may occur in SELECT, HAVING and ORDER BY, but not in patterns, GROUP BY or other aggregates.
//! 8. Each operation of an update may have a prologue; a lone `;` is not an update; triples of quads are separated by
//!    dots.
//! 9. Subjects of triple terms in expressions are IRIs or variables.
//! 10. SELECT and DESCRIBE may list a variable twice: the selected variables are a set (SPARQL 1.1 §18.2.4.4).
//! 11. `SELECT *` gives columns in the order of the text. A byte order mark at the beginning is skipped.

mod advice;
pub mod algebra;
mod balance;
mod keyword;
mod lexer;
mod options;
mod parser;
pub mod place;
mod prefixes;
mod recorded;
mod source;

pub use advice::{Extension, distance, extension_of_iri, extensions};
pub use jindou_model::prefixes::{is_name_char, is_name_start};
pub use options::{Calls, Escapes, MOST_NESTING, ParserOptions};
pub use prefixes::{COMMON_PREFIXES, TextPrefixes, prefixes_of};
pub use recorded::{PatternPlace, Recorded, parse_recorded};

use algebra::{BaseIri, GraphUpdateOperation, Query};
use jindou_model::{Diagnostics, Error};
use parser::Parser;
use source::ParserText;

/// Reason why a text could not be parsed.
#[derive(Debug)]
pub enum ParseFailure {
    /// The text is not SPARQL.
    Text(Diagnostics),
    /// A limit on nesting, memory or time was exceeded.
    Limit(Error),
}

impl std::fmt::Display for ParseFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(faults) => faults.fmt(f),
            Self::Limit(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ParseFailure {}

/// A parsed update request.
#[derive(Debug, PartialEq, Eq)]
pub struct Update {
    /// The operations in their order. ADD, COPY and MOVE are expanded into zero or more operations.
    pub operations: Vec<Operation>,
    /// The base IRI at the end of the text, for `IRI()`.
    pub base: Option<BaseIri>,
}

/// One operation of a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Operation {
    /// The operation's algebra.
    pub operation: GraphUpdateOperation,
    /// Offset of its first word in the text, in bytes.
    pub at: usize,
    /// True for an operation into which an ADD, COPY or MOVE was expanded.
    pub whole_graph: bool,
    /// For the first of these operations: the named graph that is copied, if it is not the default graph.
    pub copied_from: Option<CopiedFrom>,
}

/// The named graph that an ADD, COPY or MOVE reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedFrom {
    /// Its name.
    pub graph: algebra::NamedNode,
    /// True with SILENT: a missing graph is not an error.
    pub silent: bool,
}

/// Parses a query within the limits of the [scope](jindou_model::scope) that the thread is inside. O(length of the
/// text).
///
/// # Errors
/// [`ParseFailure::Text`] with all errors that were found, or [`ParseFailure::Limit`].
pub fn parse_query(text: &str, options: &ParserOptions) -> Result<Query, ParseFailure> {
    let source = ParserText::new(text, options.escapes == Escapes::Anywhere);
    let mut parser = Parser::new(&source, options);
    parser.query().ok_or_else(|| failure(parser))
}

/// A call of REGEX or REPLACE whose pattern and flags are constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternCall {
    /// Line of the function's name, from 1.
    pub line: u64,
    /// Column of the function's name in characters, from 1.
    pub column: u64,
    /// The pattern.
    pub pattern: String,
    /// The flags; empty if there are none.
    pub flags: String,
    /// True for REPLACE, false for REGEX.
    pub replaces: bool,
    /// The replacement of REPLACE, if it is a constant.
    pub replacement: Option<String>,
}

/// The calls of REGEX and REPLACE in a query that have constant patterns, in the order of the text.
///
/// # Errors
/// As [`parse_query`].
pub fn pattern_calls(
    text: &str,
    options: &ParserOptions,
) -> Result<Vec<PatternCall>, ParseFailure> {
    let source = ParserText::new(text, options.escapes == Escapes::Anywhere);
    let mut parser = Parser::new(&source, options);
    parser.patterns = Some(Vec::new());
    match parser.query() {
        Some(_) => Ok(parser.patterns.take().unwrap_or_default()),
        None => Err(failure(parser)),
    }
}

/// Parses an update request within the limits of the [scope](jindou_model::scope) that the thread is inside. O(length
/// of the text).
///
/// # Errors
/// [`ParseFailure::Text`] with all errors that were found, or [`ParseFailure::Limit`].
pub fn parse_update(text: &str, options: &ParserOptions) -> Result<Update, ParseFailure> {
    let source = ParserText::new(text, options.escapes == Escapes::Anywhere);
    let mut parser = Parser::new(&source, options);
    parser.update().ok_or_else(|| failure(parser))
}

fn failure(parser: Parser<'_, '_>) -> ParseFailure {
    let (faults, stopped) = parser.outcome();
    let mut faults = faults.into_iter();
    match (stopped, faults.next()) {
        (Some(error), _) => ParseFailure::Limit(error),
        (None, Some(first)) => ParseFailure::Text(Diagnostics::new(first, faults)),
        (None, None) => ParseFailure::Limit(Error::Internal(
            "a text was refused without a reason".into(),
        )),
    }
}

#[cfg(test)]
mod tests;
