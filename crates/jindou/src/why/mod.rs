//! Reasons why a query has no answer, found from the query's text, the store's statistics, and small queries with a
//! short time limit.
//!
//! Reasons are computed only on request, after an answer without rows, so other queries do not pay for them.
//!
//! | module | job |
//! |---|---|
//! | `walk` | walks through the algebra: which part is empty, and why |
//! | `pattern` | why a triple pattern has no match |
//! | `literal` | literals that are similar to one in the query |
//! | `graphs` | graphs that are empty, do not exist, or are not read |
//! | `filter` | which FILTER removes all solutions |
//! | `near` | IRIs of the store that are similar to one in the query |
//! | `probe` | runs the small queries |
//! | `words` | text of terms and patterns for messages |

mod filter;
mod graphs;
mod literal;
mod near;
mod pattern;
mod probe;
mod walk;
mod words;

use crate::complete::names::Names;
use crate::{Database, QueryOptions, Result, Suggestion};
use jindou_model::{Error, Scope, diagnostic};
use jindou_plan::Parsed;
use jindou_syntax::place::place;
use jindou_syntax::{ParseFailure, Recorded, parse_recorded};
use probe::Prober;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use walk::{PartVerdict, PatternWalk};

/// Longest text that is examined, in bytes; longer ones are not written by people.
const LONGEST: usize = 1 << 20;
/// Longest text, in bytes, whose prefixes are used to abbreviate IRIs in messages.
const LONGEST_WITH_NAMES: usize = 256 << 10;
/// Longest time for finding reasons, not counting the parsing of the text.
const PATIENCE: Duration = Duration::from_millis(200);
/// Largest number of reasons.
const MOST: usize = 8;

jindou_model::named_enum! {
    /// Kind of a reason, for programs; the message is for people.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum ReasonKind {
        /// A term that does not occur in the store.
        UnknownTerm = "unknown-term",
        /// A literal that occurs in the store only with another language, datatype or case.
        OtherLiteral = "other-literal",
        /// A term that occurs in the store, but not as predicate, class, subject or object as the query requires.
        OtherPosition = "other-position",
        /// A triple pattern or path without matches, although each of its terms occurs.
        NoMatch = "no-match",
        /// Patterns that have matches each, but not together.
        Join = "join",
        /// A condition of FILTER or HAVING that removes all solutions.
        Filter = "filter",
        /// A condition that is false or an error whatever the solution, such as one without variables.
        NeverTrue = "never-true",
        /// The default graph has no triples.
        EmptyDefaultGraph = "empty-default-graph",
        /// Matches exist, but only in graphs that this part of the query does not read.
        OtherGraphs = "other-graphs",
        /// A graph that does not occur in the store.
        UnknownGraph = "unknown-graph",
        /// The store has no named graphs.
        NoNamedGraphs = "no-named-graphs",
        /// MINUS removes every solution.
        Minus = "minus",
        /// LIMIT 0, OFFSET, or empty VALUES leave no row.
        NothingAsked = "nothing-asked",
        /// No particular part of the query was identified.
        NoSolution = "no-solution",
    }
    /// The kind's name in JSON documents.
    pub fn name;
}

/// Range of the query's text to which a reason refers. Lines and columns count from 1, columns in characters; offsets
/// are in bytes from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReasonPlace {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
    /// Line of the first character.
    pub line: u64,
    /// Column of the first character.
    pub column: u64,
}

/// A reason why a query has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reason {
    /// Kind of the reason.
    pub kind: ReasonKind,
    /// The reason as a sentence without a full stop.
    pub message: String,
    /// The part of the query to which the reason refers; `None` if it refers to the whole query.
    pub place: Option<ReasonPlace>,
    /// Suggested changes, the likeliest first. Terms in them occur in the store.
    pub suggestions: Vec<Suggestion>,
}

/// The message, followed by the first suggestion.
impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        match self.suggestions.first() {
            Some(first) => write!(f, "; {}", first.text),
            None => Ok(()),
        }
    }
}

/// A query's text, with the ranges of its parts that the parser recorded.
struct QueryText<'t> {
    text: &'t str,
    recorded: Recorded,
    names: Names<'t>,
    /// True if the common prefixes apply to the query.
    common: bool,
}

impl QueryText<'_> {
    fn reason(&self, kind: ReasonKind, message: String, range: Option<&Range<usize>>) -> Reason {
        let place = range.map(|r| {
            let (line, column) = diagnostic::place(self.text, r.start);
            ReasonPlace {
                start: r.start,
                end: r.end,
                line,
                column,
            }
        });
        Reason {
            kind,
            message: words::clean(&message),
            place,
            suggestions: Vec::new(),
        }
    }
}

impl Database {
    /// Reasons why a query has no answer: no row, or only an aggregate over no rows. Meant to be called after such an
    /// answer; for a query with an answer the list is empty. Reasons are found by looking at the first parts of the
    /// query and by running small queries, for 200 ms at most in total. Each returned reason holds for the snapshot
    /// that was examined.
    ///
    /// ```
    /// use jindou::{Database, QueryOptions, UpdateOptions};
    ///
    /// let db = Database::in_memory();
    /// let planets = "PREFIX : <http://e/> INSERT DATA { :mars a :Planet . :venus a :Planet }";
    /// db.update(planets, &UpdateOptions::default())?;
    /// let query = "PREFIX : <http://e/> SELECT * { ?x a :Planett }";
    /// let why = db.why_empty(query, &QueryOptions::default())?;
    /// assert_eq!(
    ///     why[0].to_string(),
    ///     ":Planett does not occur in this store; did you mean :Planet (2 instances)?"
    /// );
    /// # Ok::<(), jindou::Error>(())
    /// ```
    ///
    /// # Errors
    /// Parse errors ([`Error::Sparql`], [`Error::Limit`]), [`Error::Cancelled`], [`Error::Damaged`]. Running out of
    /// time is not an error: the reasons found by then are returned.
    pub fn why_empty(&self, text: &str, options: &QueryOptions) -> Result<Vec<Reason>> {
        self.why_empty_within(text, options, PATIENCE)
    }

    /// As [`why_empty`](Self::why_empty), with another time limit than 200 ms. For tests, so that the reasons do not
    /// depend on how busy the machine is.
    #[doc(hidden)]
    pub fn why_empty_within(
        &self,
        text: &str,
        options: &QueryOptions,
        patience: Duration,
    ) -> Result<Vec<Reason>> {
        if text.len() > LONGEST {
            return Ok(Vec::new());
        }
        let settled = self.settle(options);
        let scope = Scope::for_text(text.len(), &settled.memory, &options.token())?;
        let snapshot = self.snapshot_for(&options.token())?;
        let ((query, recorded), _charge) = scope.make(|| {
            let read = parse_recorded(text, &settled.syntax(&snapshot));
            let (query, recorded) = read.map_err(|failure| match failure {
                ParseFailure::Text(faults) => Error::Sparql(Box::new(faults)),
                ParseFailure::Limit(error) => error,
            })?;
            let mut query = Parsed::from_query(query)?;
            if let Some(dataset) = &options.dataset {
                dataset.apply(&mut query)?;
            }
            Ok((query.into_query(), recorded))
        })?;
        self.inner.check_for_faults(&snapshot)?;
        let prefixes = Arc::clone(snapshot.prefixes());
        let named = if text.len() <= LONGEST_WITH_NAMES {
            text
        } else {
            ""
        };
        let here = place(named, "");
        let text = QueryText {
            text,
            recorded,
            names: Names::at(&here, named, options, &prefixes),
            common: options.common_prefixes,
        };
        let prober = Prober::new(self, snapshot, options, &query, patience);
        let mut walk = PatternWalk::new(&prober, &text);
        let checked = prober.snapshot.clone();
        self.inner.computed_from(&checked, || {
            let verdict = walk.query(&query);
            if let Some(error) = prober.failed.take() {
                return Err(error);
            }
            let mut reasons = walk.reasons;
            match verdict {
                PartVerdict::Some => reasons.clear(),
                PartVerdict::Empty if reasons.is_empty() => reasons.push(text.reason(
                    ReasonKind::NoSolution,
                    "no solution matches all parts of the query".into(),
                    None,
                )),
                _ => {}
            }
            reasons.truncate(MOST);
            Ok(reasons)
        })
    }
}
