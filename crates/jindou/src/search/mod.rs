//! Labels of given resources, and search for resources by the words of their labels and IRIs.
//!
//! ```text
//! words ─► literals with all words   index-text.jd, the tail's index ─► objects of a label property ─► their subjects ─┐
//!       └► IRIs with all words       the same                                                       ──────────────────┴─► ranked
//! ```
//!
//! | module | job |
//! |---|---|
//! | `sight` | the graph as a search reads it: graphs, label properties, edges |
//! | `labels` | the labels of given resources |
//! | `find` | candidates for the words of a search, and their ranking |
//! | `scan` | candidates where there is no index: reads all terms |
//! | `shards` | candidates from all shards of a store, each of which searches its own terms |
//! | `tail` | the index of the tail's terms, and the thread that builds it |

mod find;
mod labels;
mod scan;
mod shards;
mod sight;
mod tail;

pub use jindou_text::Text;
pub(crate) use sight::ids_of;
pub(crate) use tail::TailTexts;

use crate::database::watching;
use crate::{Database, Error, QueryOptions, Result, Snapshot};
use jindou_model::{MemoryBudget, options_struct, setters};
use jindou_text::{Fit, WordQuery};
use sight::LabelGraph;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The properties whose objects are labels by default: `rdfs:label`, `skos:prefLabel`, `schema:name` (with `http` and
/// `https`), `foaf:name`, `dcterms:title`.
pub const LABEL_PROPERTIES: [&str; 6] = [
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://schema.org/name",
    "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
    "http://purl.org/dc/terms/title",
];

/// Default time limit of a search.
pub const PATIENCE: Duration = Duration::from_millis(200);
/// Largest number of resources in one call of [`Database::labels`].
pub const MOST_LABELS: usize = 10_000;
/// Largest number of resources that a search returns.
pub const MOST_FOUND: usize = 200;
/// Longest label that is returned, in bytes. Longer ones are truncated and end in `…`, since lists show no more.
pub const LONGEST_LABEL: usize = 1024;
/// Longest IRI of a resource or class that a search returns, in bytes; resources with longer ones are left out.
const LONGEST_IRI: usize = 8 << 10;
/// Longest text to search for, in bytes; longer ones are truncated.
const LONGEST: usize = 1024;

options_struct! {
    /// The properties that are labels, and the preferred languages.
    #[derive(Clone, Debug)]
    #[non_exhaustive]
    pub struct LabelOptions {
        /// Preferred languages, best first. Next come labels without a language, then English, then any language.
        pub languages: Vec<String> = Vec::new(), with_languages(Vec<String>);
        /// The properties whose objects are labels, the best first ([`LABEL_PROPERTIES`]).
        pub properties: Arc<[String]> = LABEL_PROPERTIES.map(str::to_owned).into(),
            with_properties(impl Into<Arc<[String]>>);
        /// Graphs to read (`union_default`, `dataset`), memory, time limit and cancel token. If `union_default` is
        /// `None`, all graphs are read, whatever the store's own default is.
        pub query: QueryOptions = QueryOptions::default(), with_query(QueryOptions);
    }
}

/// The label of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Label {
    /// The text, or the beginning of a text that is longer than [`LONGEST_LABEL`].
    pub text: String,
    /// Its language, if it has one.
    pub language: Option<String>,
}

/// Words to search for, and limits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Search<'t> {
    /// The words, all of which must occur in the label or IRI; the last one may be the beginning of a word. An IRI
    /// finds its resource.
    pub words: &'t str,
    /// Largest number of resources to return; at most [`MOST_FOUND`].
    pub limit: usize,
    /// Time limit, after which the search returns the resources found so far.
    pub patience: Duration,
    /// Options for the labels that are searched and returned.
    pub labels: LabelOptions,
}

impl<'t> Search<'t> {
    /// A search for at most 20 resources.
    #[must_use]
    pub fn new(words: &'t str) -> Self {
        Self {
            words,
            limit: 20,
            patience: PATIENCE,
            labels: LabelOptions::default(),
        }
    }

    setters! {
        with_limit: limit = usize;
        with_patience: patience = Duration;
        with_labels: labels = LabelOptions;
    }
}

/// A resource that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The resource's IRI.
    pub iri: String,
    /// Its label in the best language.
    pub label: Option<Label>,
    /// The text that matched: a literal, or part of the IRI.
    pub matched: String,
    /// The class with the fewest instances among the resource's classes.
    pub class: Option<String>,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Searched {
    /// Resources, best first: texts that equal the searched one, then those that begin with it, then those that contain
    /// the words; among these, texts with fewer words first, then resources with more uses.
    pub found: Vec<Found>,
    /// True if all terms that may match were examined. False if the time limit was reached, if too many terms match, or
    /// if terms of updates are not indexed yet; then there may be more and better resources.
    pub complete: bool,
    /// False if the search had to scan the terms in the store's files, since the store has no index of their words
    /// ([`Text`]).
    pub indexed: bool,
}

/// True if the data has one of these properties.
pub(crate) fn has_labels(snapshot: &Snapshot, properties: &[String]) -> bool {
    let mut all = properties.iter();
    all.any(|iri| sight::predicate_of(snapshot, iri).is_some())
}

/// Charges cached data of other shards to this budget.
fn charge_shards(snapshot: &Snapshot, memory: &MemoryBudget) {
    if let Some(sharded) = snapshot.as_sharded() {
        sharded.charge_to(memory);
    }
}

/// For each of these vertices, the label in any language that matches the words best; `None` for those that were not
/// reached within the time limit.
pub(crate) fn labels_with(
    db: &Database,
    snapshot: &Snapshot,
    ids: &[u32],
    asked: &WordQuery,
    options: &LabelOptions,
    end: Instant,
) -> Result<Vec<Option<(Fit, String)>>> {
    let cancel = watching(options.query.token(), snapshot);
    let settled = db.settle(&options.query);
    charge_shards(snapshot, &settled.memory);
    let sight = LabelGraph::new(snapshot, options, cancel)?;
    labels::with(&sight, ids, asked, end, &settled.memory)
}

impl Database {
    /// The label of each of these resources in the best language; `None` for one without a label. At most
    /// [`MOST_LABELS`] resources.
    ///
    /// ```
    /// use jindou::search::LabelOptions;
    /// use jindou::{Database, UpdateOptions};
    ///
    /// let db = Database::in_memory();
    /// let text = r#"PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
    ///     INSERT DATA { <http://e/mars> rdfs:label "Mars"@en, "Mars"@de, "Marte"@es }"#;
    /// db.update(text, &UpdateOptions::default())?;
    /// let options = LabelOptions::default().with_languages(vec!["es".into()]);
    /// let labels = db.labels(&["http://e/mars", "http://e/venus"], &options)?;
    /// assert_eq!(labels[0].as_ref().map(|l| l.text.as_str()), Some("Marte"));
    /// assert_eq!(labels[1], None);
    /// # Ok::<(), jindou::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Query`] for too many resources; [`Error::Limit`] for memory; [`Error::Timeout`], [`Error::Cancelled`],
    /// [`Error::Damaged`].
    pub fn labels(
        &self,
        iris: &[impl AsRef<str>],
        options: &LabelOptions,
    ) -> Result<Vec<Option<Label>>> {
        if iris.len() > MOST_LABELS {
            return Err(Error::Query(format!(
                "the labels of {} resources are asked for; at most {MOST_LABELS} may be asked for in one request",
                iris.len()
            )));
        }
        let snapshot = self.snapshot_for(&options.query.token())?;
        let cancel = watching(options.query.token(), &snapshot);
        let settled = self.settle(&options.query);
        charge_shards(&snapshot, &settled.memory);
        self.inner.computed_from(&snapshot, || {
            let sight = LabelGraph::new(&snapshot, options, cancel)?;
            let iris: Vec<&str> = iris.iter().map(AsRef::as_ref).collect();
            labels::of_iris(&sight, &iris, options, &settled.memory)
        })
    }

    /// Finds resources by words of their labels and IRIs, best first. Ends within [`Search::patience`] and some
    /// milliseconds, with what was found by then. `docs/search.md` describes the ranking.
    ///
    /// ```
    /// use jindou::search::Search;
    /// use jindou::{Database, UpdateOptions};
    ///
    /// let db = Database::in_memory();
    /// let text = r#"PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
    ///     INSERT DATA { <http://e/q1> rdfs:label "red planet" . <http://e/q2> rdfs:label "Planet of the Apes" }"#;
    /// db.update(text, &UpdateOptions::default())?;
    /// let answer = db.search(&Search::new("planet"))?;
    /// let found: Vec<&str> = answer.found.iter().map(|f| f.iri.as_str()).collect();
    /// assert_eq!(found, ["http://e/q2", "http://e/q1"]);
    /// assert!(answer.complete);
    /// # Ok::<(), jindou::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Limit`] for memory; [`Error::Cancelled`], [`Error::Damaged`]; [`Error::Shard`] with the first shard that did not answer.
    pub fn search(&self, asked: &Search<'_>) -> Result<Searched> {
        let begun = Instant::now();
        let options = &asked.labels;
        let snapshot = self.snapshot_for(&options.query.token())?;
        let cancel = watching(options.query.token(), &snapshot);
        cancel.check()?;
        let mut end = asked.words.len().min(LONGEST);
        while !asked.words.is_char_boundary(end) {
            end -= 1;
        }
        let text = &asked.words[..end];
        let Some(words) = WordQuery::new(text) else {
            return Ok(Searched {
                found: Vec::new(),
                complete: true,
                indexed: tail::has_index(&snapshot),
            });
        };
        let settled = self.settle(&options.query);
        charge_shards(&snapshot, &settled.memory);
        self.inner.computed_from(&snapshot, || {
            let sight = LabelGraph::new(&snapshot, options, cancel)?;
            let texts = self.inner.texts.of(&snapshot);
            let made = find::ResourceFinder::new(&sight, &words, &texts, begun + asked.patience)
                .run(text, asked, &settled.memory)?;
            self.prepare_search();
            Ok(made)
        })
    }

    /// Starts a thread that makes later searches fast: it verifies the hash of the store's word index, and indexes the
    /// terms that updates added, within a part of the runtime's memory. Every search calls this; a program may call it
    /// before the first search. Does nothing if all of this is done.
    pub fn prepare_search(&self) {
        let snapshot = self.snapshot();
        TailTexts::catch_up(&self.inner.texts, &snapshot, self.runtime().memory());
    }

    /// True if [`Self::prepare_search`] has nothing left to do for the current snapshot.
    #[must_use]
    pub fn is_search_prepared(&self) -> bool {
        let snapshot = self.snapshot();
        tail::ready(&snapshot) && !self.inner.texts.is_behind(&snapshot)
    }
}
