//! Completion of a SPARQL query that is being written: the texts that may stand at the cursor, the most frequent first.
//!
//! ```text
//! text ──jindou_syntax::place──► slot, subject, patterns around ──► stars:  characteristic sets, exact
//!                                                               └─► joins:  a running query, a sample
//! ```
//!
//! | module | job |
//! |---|---|
//! | `names` | prefixes: names to IRIs and back |
//! | `lists` | predicates and classes of a snapshot, decoded once |
//! | `star` | counts of the properties that subjects with given predicates and classes have |
//! | `sample` | subjects that match the patterns written so far, found within the time limit |
//! | `data` | candidates from all of these |
//! | `labels` | candidates whose label matches the word (`no_labels` without the feature `text`) |
//! | `offer` | candidates and keywords, filtered by the word so far and ranked |

mod data;
#[cfg(feature = "text")]
mod labels;
mod lists;
pub(crate) mod names;
#[cfg(not(feature = "text"))]
mod no_labels;
mod offer;
mod sample;
mod star;

pub use jindou_syntax::place::Slot;

use crate::{Database, Error, QueryOptions, Result};
use jindou_model::invariant::guarded;
use jindou_model::sync;
use jindou_syntax::place::place;
use lists::NameLists;
#[cfg(not(feature = "text"))]
use no_labels as labels;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The longest text that is completed, in bytes, counting both sides of the cursor.
pub const LONGEST_TEXT: usize = 256 << 10;

/// Default limit on the time for the query that a completion runs.
pub const PATIENCE: Duration = Duration::from_millis(25);

/// The query around the cursor, and the limits of its completion.
#[derive(Clone, Debug)]
pub struct Request<'t> {
    /// The text before the cursor.
    pub before: &'t str,
    /// The text after the cursor; may be empty.
    pub after: &'t str,
    /// Largest number of items to return.
    pub limit: usize,
    /// Time limit for running a query and then counting the properties of its subjects; results found by then are used.
    pub patience: Duration,
    /// The memory, default graph, dataset and undeclared prefixes of the query.
    pub options: QueryOptions,
    /// The properties whose objects are searched as labels, best first. If empty, or without the feature `text`, only
    /// names are searched.
    pub labels: Arc<[String]>,
}

impl<'t> Request<'t> {
    /// A request for at most 50 items, with the default time limit and labels.
    #[must_use]
    pub fn new(before: &'t str, after: &'t str) -> Self {
        Self {
            before,
            after,
            limit: 50,
            patience: PATIENCE,
            options: QueryOptions::default(),
            #[cfg(feature = "text")]
            labels: crate::search::LabelOptions::default().properties,
            #[cfg(not(feature = "text"))]
            labels: Arc::default(),
        }
    }
}

jindou_model::named_enum! {
    /// The kind of a suggested item.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Kind {
        /// A predicate.
        Predicate = "predicate",
        /// A class, as the object of `rdf:type`.
        Class = "class",
        /// Another IRI, as an object or a subject.
        Object = "object",
        /// A literal as an object.
        Literal = "literal",
        /// The IRI of a graph.
        Graph = "graph",
        /// A variable of the text.
        Variable = "variable",
        /// A keyword of SPARQL.
        Keyword = "keyword",
        /// A function of SPARQL.
        Function = "function",
        /// A prefix with its colon; after PREFIX also with its IRI.
        Prefix = "prefix",
    }
    /// The kind's name in JSON documents.
    pub fn name;
}

/// A text that may stand at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The text, as short as the prefixes allow.
    pub text: String,
    /// The kind of text.
    pub kind: Kind,
    /// The IRI that the text stands for; `None` if the item is not an IRI.
    pub iri: Option<String>,
    /// Number of subjects that have the item. If the patterns do not constrain the subject: number of statements with a
    /// predicate, or of instances of a class. `None` if unknown.
    pub count: Option<u64>,
    /// A well-known prefix that the text uses without declaring it, with its IRI: the caller should add a declaration.
    pub declare: Option<(String, String)>,
    /// The matching label, if the item is offered because of its label.
    pub label: Option<String>,
}

/// The meaning of the items' counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// No counts.
    Nothing,
    /// Exact counts.
    Exact,
    /// Estimates that are close to the exact counts.
    Estimate,
    /// Counts of the whole data, regardless of the query's graphs and patterns; only useful for ranking.
    Whole,
    /// Counts among this many subjects that match the patterns so far.
    Sample(usize),
}

/// The answer: texts that may stand at the cursor.
#[derive(Clone, Debug)]
pub struct Completion {
    /// The kind of term expected at the cursor.
    pub slot: Slot,
    /// The offset in bytes of the beginning of the word that an item replaces; the word ends at the cursor.
    pub from: usize,
    /// The suggestions, best first.
    pub items: Vec<Item>,
    /// The meaning of the items' counts.
    pub counts: Counts,
    /// True if time ran out before the sample was complete.
    pub partial: bool,
}

/// Completes queries over a database. Caches the names of predicates and classes between calls.
pub struct Completer {
    db: Database,
    lists: Mutex<Option<Arc<NameLists>>>,
}

impl Completer {
    /// A completer over this database.
    #[must_use]
    pub fn new(db: Database) -> Self {
        Self {
            db,
            lists: Mutex::new(None),
        }
    }

    /// Finds texts that may stand at the cursor. Takes at most three times the request's time limit plus some
    /// milliseconds. If the data cannot be read in time, offers SPARQL's keywords, and the predicates and classes of
    /// the whole data.
    ///
    /// # Errors
    /// [`Error::Query`] for a text longer than [`LONGEST_TEXT`], [`Error::Damaged`] when the store's files are damaged.
    pub fn complete(&self, request: &Request<'_>) -> Result<Completion> {
        let length = request.before.len().saturating_add(request.after.len());
        if length > LONGEST_TEXT {
            return Err(Error::Query(format!(
                "the text is {length} bytes long; completion takes at most {LONGEST_TEXT}"
            )));
        }
        // Values read from damaged files may be out of range and cause panics; such a panic ends only this call.
        let made = guarded(|| Ok(self.made(request)));
        let snapshot = self.db.snapshot();
        snapshot.base().check_files()?;
        made
    }

    fn made(&self, request: &Request<'_>) -> Completion {
        let begin = Instant::now();
        let place = place(request.before, request.after);
        let snapshot = self.db.snapshot();
        let lists = self.lists(&snapshot);
        let word = request.before.get(place.from..).unwrap_or_default();
        let look = data::CandidateSearch::new(&self.db, &snapshot, &lists, &place, request, begin);
        let found = look.candidates(word);
        offer::completion(&place, word, &look, found, request.limit)
    }

    /// The lists of names of this snapshot, built now if the cached ones belong to another snapshot.
    fn lists(&self, snapshot: &crate::Snapshot) -> Arc<NameLists> {
        let known = sync::lock(&self.lists);
        if let Some(lists) = known.as_ref()
            && lists.is_of(snapshot)
        {
            return Arc::clone(lists);
        }
        // The lock is released while lists are built. Several threads may build the same lists, but none waits for
        // another.
        drop(known);
        let made = Arc::new(NameLists::from_snapshot(snapshot, &self.db));
        let mut known = sync::lock(&self.lists);
        *known = Some(Arc::clone(&made));
        made
    }
}

jindou_model::debug_format!(Completer, |_| "Completer {{ .. }}");
