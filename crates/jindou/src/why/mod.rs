//! Reasons why a query has no answer, found from the query, the store's statistics, and small queries that run for a
//! moment.
//!
//! A query with rows costs nothing: reasons are sought only on request, after an answer without rows.
//!
//! | module | job |
//! |---|---|
//! | `walk` | goes through the algebra: which part is empty, and why |
//! | `pattern` | why a triple pattern has no match |
//! | `literal` | literals that are nearly the one that is asked for |
//! | `graphs` | graphs that are empty, or are not there |
//! | `filter` | which FILTER keeps nothing |
//! | `near` | names of the store that are like another |
//! | `probe` | the small queries |
//! | `words` | terms and patterns as a person writes them |

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

/// Longest text that is examined, in bytes: a longer one was not written by a person.
const LONGEST: usize = 1 << 20;
/// The longest text whose prefixes shorten names.
const LONGEST_WITH_NAMES: usize = 256 << 10;
/// Longest time for the search, not counting the parsing of the text.
const PATIENCE: Duration = Duration::from_millis(200);
/// Most reasons.
const MOST: usize = 8;

/// Kind of a reason, for programs; the message is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReasonKind {
    /// A term that no quad of the store has.
    UnknownTerm,
    /// A literal that the store has with another language, datatype or case.
    OtherLiteral,
    /// A term that the store has, but not as predicate, class, subject or object as the query requires.
    OtherPosition,
    /// A triple pattern or path without matches, though each of its terms occurs.
    NoMatch,
    /// Patterns that each have matches, but none together.
    Join,
    /// A condition that keeps no solution.
    Filter,
    /// A condition that keeps no solution because it is false or an error for every solution.
    NeverTrue,
    /// The default graph has no triples.
    EmptyDefaultGraph,
    /// Matches exist only in graphs that this part of the query does not read.
    OtherGraphs,
    /// A graph that the store does not have.
    UnknownGraph,
    /// The store has no named graphs.
    NoNamedGraphs,
    /// MINUS removes every solution.
    Minus,
    /// LIMIT, OFFSET or VALUES leave nothing.
    NothingAsked,
    /// No particular part of the query was identified.
    NoSolution,
}

impl ReasonKind {
    /// The name of the kind in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownTerm => "unknown-term",
            Self::OtherLiteral => "other-literal",
            Self::OtherPosition => "other-position",
            Self::NoMatch => "no-match",
            Self::Join => "join",
            Self::Filter => "filter",
            Self::NeverTrue => "never-true",
            Self::EmptyDefaultGraph => "empty-default-graph",
            Self::OtherGraphs => "other-graphs",
            Self::UnknownGraph => "unknown-graph",
            Self::NoNamedGraphs => "no-named-graphs",
            Self::Minus => "minus",
            Self::NothingAsked => "nothing-asked",
            Self::NoSolution => "no-solution",
        }
    }
}

/// Place of a reason in the query. Lines and columns count from 1, columns count characters, offsets count bytes from
/// 0.
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
    /// The part of the query, if the reason has a place.
    pub place: Option<ReasonPlace>,
    /// Remedies, the likeliest first. Terms in them occur in the store.
    pub suggestions: Vec<Suggestion>,
}

/// The reason with its first remedy.
impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        match self.suggestions.first() {
            Some(first) => write!(f, "; {}", first.text),
            None => Ok(()),
        }
    }
}

/// A text, and the recorded places of its parts.
struct QueryText<'t> {
    text: &'t str,
    recorded: Recorded,
    names: Names<'t>,
    /// True if queries know the common prefixes.
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
    /// Reasons why a query has no answer: no row, or a lone aggregate over nothing. Meant to be called after such an
    /// answer; for a query with an answer the list is empty. The reasons come from the first parts of the query and
    /// from small queries that run for 200 ms at most in total. A reason is returned only if it holds for the snapshot
    /// at hand.
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

    /// [`why_empty`](Self::why_empty) with another limit of time than the usual fifth of a second: tests that compare reasons must
    /// not depend on how busy the machine is.
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
        self.inner.made_of(&checked, || {
            let verdict = walk.query(&query);
            if let Some(error) = prober.failed.take() {
                return Err(error);
            }
            let mut reasons = walk.reasons;
            match verdict {
                PartVerdict::Some => reasons.clear(),
                PartVerdict::Empty if reasons.is_empty() => reasons.push(text.reason(
                    ReasonKind::NoSolution,
                    "no solution has all that the query asks for".into(),
                    None,
                )),
                _ => {}
            }
            reasons.truncate(MOST);
            Ok(reasons)
        })
    }
}
