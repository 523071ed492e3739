//! Suggestions whose label matches the word that is being typed: predicates, classes, objects and graphs among the
//! candidates, and resources that a search of labels finds.

use super::data::{Candidate, CandidateSearch};
use super::offer::GROUP_WORDS;
use crate::Result;
use crate::search::{self, Found, LabelOptions, MOST_FOUND, Search};
use jindou_graph::segment::GraphScope;
use jindou_graph::{Edges, Graph};
use jindou_model::Direction;
use jindou_syntax::place::Slot;
use jindou_text::{Fit, Folder, WordQuery};
use oxrdf::{NamedNode, Term};
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use std::time::Instant;

/// Shortest word, in characters, that is searched in labels; shorter words occur in too many labels.
const LEAST: usize = 3;
/// Largest number of candidates whose labels are read, the most frequent ones.
const MOST_READ: usize = 20_000;
/// Largest number of resources that a search of labels adds.
const MOST_SEARCHED: usize = 20;

/// An IRI that is offered because of its label.
pub(crate) struct Labelled {
    pub candidate: Candidate,
    /// True if the candidate's count has the same meaning as those of the other candidates.
    pub is_counted: bool,
    pub label: Option<String>,
}

/// IRIs that fit the position of the cursor and whose label matches the word, best first. `by_name` is true for terms
/// that are offered anyway because their name matches. Reads labels of all graphs within the remaining time, and omits
/// labels that cannot be read by then.
pub(crate) fn found(
    look: &CandidateSearch<'_>,
    word: &str,
    is_type: bool,
    known: &[Candidate],
    by_name: impl Fn(&Term) -> bool,
) -> Vec<Labelled> {
    let takes = matches!(
        look.place.slot,
        Slot::Subject | Slot::Predicate | Slot::Object | Slot::Graph
    );
    if !takes || !is_word(word) || !search::has_labels(look.snapshot, &look.request.labels) {
        return Vec::new();
    }
    let Some(asked) = WordQuery::new(word) else {
        return Vec::new();
    };
    let finder = LabelFinder {
        look,
        asked: &asked,
        end: Instant::now() + look.left().max(look.request.patience / 2),
    };
    let candidates = known.iter().filter(|c| !by_name(&c.term));
    let candidates = candidates.filter_map(|c| match &c.term {
        Term::NamedNode(n) => Some((n.as_str(), c.count)),
        _ => None,
    });
    let mut made = finder.among(candidates, true).unwrap_or_default();
    if made.is_empty() && !known.iter().any(|c| by_name(&c.term)) {
        // If no property of this subject matches, predicates or classes of other subjects are offered.
        let list = match look.place.slot {
            Slot::Predicate => &look.lists.predicates[..],
            Slot::Object if is_type => &look.lists.classes[..],
            _ => &[],
        };
        let others = list.iter().map(|c| (c.iri.as_str(), c.count));
        made = finder.among(others, false).unwrap_or_default();
    }
    let searched = match look.place.slot {
        // At the beginning of a pattern the word may become a keyword of SPARQL; then labels are not searched.
        Slot::Subject => !GROUP_WORDS.iter().any(|w| begins(w, word)),
        Slot::Object => !is_type,
        _ => false,
    };
    if searched {
        let offered = made.iter().map(|l| &l.candidate);
        let offered = offered.chain(known.iter().filter(|c| by_name(&c.term)));
        let offered: FxHashSet<Term> = offered.map(|c| c.term.clone()).collect();
        let more = finder.searched(word, &offered).unwrap_or_default();
        made.extend(more);
    }
    made
}

/// A text in lower case and without accents, as searches compare it.
pub(crate) fn folded(text: &str) -> String {
    match text.is_ascii() {
        true => text.to_ascii_lowercase(),
        false => Folder::default().line(text),
    }
}

/// True for a word that may be part of a label, as opposed to an IRI, prefixed name, literal or variable.
fn is_word(word: &str) -> bool {
    let word = folded(word);
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    word.starts_with(char::is_alphabetic)
        && word.chars().all(inside)
        && word.chars().count() >= LEAST
}

fn begins(text: &str, beginning: &str) -> bool {
    let start = text.get(..beginning.len());
    start.is_some_and(|s| s.eq_ignore_ascii_case(beginning))
}

struct LabelFinder<'a> {
    look: &'a CandidateSearch<'a>,
    asked: &'a WordQuery,
    end: Instant,
}

impl LabelFinder<'_> {
    /// Options for reading labels from all graphs, or else from the graphs that the query reads.
    fn options(&self, all_graphs: bool) -> LabelOptions {
        let request = self.look.request;
        let mut query = request.options.clone();
        query.union_default = Some(all_graphs || self.look.union_default());
        if all_graphs {
            query.dataset = None;
        }
        LabelOptions::default()
            .with_properties(request.labels.clone())
            .with_query(query)
    }

    /// The given IRIs (with their counts) whose label matches the word; best first.
    fn among<'c>(
        &self,
        iris: impl Iterator<Item = (&'c str, u64)>,
        is_counted: bool,
    ) -> Result<Vec<Labelled>> {
        let snapshot = self.look.snapshot;
        let known = iris.take(MOST_READ);
        let mut counts: Vec<(&str, u64)> = known
            .take_while(|c| self.look.has_room(c.0.len()))
            .collect();
        let mut known = search::ids_of(snapshot, counts.iter().map(|c| c.0)).into_iter();
        let mut ids = Vec::new();
        counts.retain(|_| {
            let id = known.next().flatten();
            ids.extend(id);
            id.is_some()
        });
        let options = self.options(true);
        let labels =
            search::labels_with(self.look.db, snapshot, &ids, self.asked, &options, self.end)?;
        let mut made: Vec<(Fit, Reverse<u64>, &str, String)> = Vec::new();
        for ((iri, count), label) in counts.into_iter().zip(labels) {
            if let Some((fit, text)) = label {
                made.push((fit, Reverse(count), iri, text));
            }
        }
        made.sort_unstable();
        let labelled = |(_, Reverse(count), iri, label): (Fit, Reverse<u64>, &str, String)| {
            let term = NamedNode::new(iri).ok()?.into();
            Some(Labelled {
                candidate: Candidate { term, count },
                is_counted,
                label: Some(label),
            })
        };
        Ok(made.into_iter().filter_map(labelled).collect())
    }

    /// Resources whose label matches the word and that may stand at the cursor, except those in `offered`.
    fn searched(&self, word: &str, offered: &FxHashSet<Term>) -> Result<Vec<Labelled>> {
        let look = self.look;
        let elsewhere = look.place.slot == Slot::Object || look.place.graph.is_some();
        let asked = Search::new(word)
            .with_limit(MOST_FOUND)
            .with_patience(self.end.saturating_duration_since(Instant::now()))
            .with_labels(self.options(elsewhere));
        let answer = look.db.search(&asked)?;
        let objects = self.objects();
        // Ids are needed only for a known predicate at the cursor.
        let mut ids = match &objects {
            Some(objects) => objects.ids_of(look, &answer.found),
            None => Vec::new(),
        }
        .into_iter();
        let mut made = Vec::new();
        for found in answer.found {
            let id = ids.next().flatten();
            // Each id is looked up in the predicate's edge lists, which may be long, so the time is checked for each.
            if made.len() >= MOST_SEARCHED || Instant::now() >= self.end {
                break;
            }
            look.request.options.token().check()?;
            let Ok(node) = NamedNode::new(&found.iri) else {
                continue;
            };
            let term = Term::from(node);
            let may = |objects: &ObjectsHere<'_>| id.is_none_or(|id| objects.may_have(look, id));
            if offered.contains(&term) || !objects.as_ref().is_none_or(may) {
                continue;
            }
            let by_name = found.matched == jindou_text::local_name(&found.iri);
            made.push(Labelled {
                candidate: Candidate { term, count: 0 },
                is_counted: false,
                label: match by_name {
                    true => found.label.map(|label| label.text),
                    false => Some(found.matched),
                },
            });
        }
        Ok(made)
    }

    /// The edges whose keys may stand at the cursor; `None` unless the cursor is at the object of a known predicate.
    fn objects(&self) -> Option<ObjectsHere<'_>> {
        let look = self.look;
        let path = match (&look.place.predicate, look.place.slot) {
            (Some(path), Slot::Object) => path,
            _ => return None,
        };
        let (name, direction) = match path.strip_prefix('^') {
            Some(name) => (name, Direction::Out),
            None => (path.as_str(), Direction::In),
        };
        let p = look.predicate(name)?;
        Some(ObjectsHere(Graph::edges(look.snapshot, p, direction)))
    }
}

/// The edges of the predicate at the cursor, keyed by the terms that may stand there.
struct ObjectsHere<'a>(Edges<'a>);

impl ObjectsHere<'_> {
    /// The ids of the found IRIs. In a sharded store, also fetches the edge lists or degrees that [`Self::may_have`]
    /// needs, in one round trip.
    fn ids_of(&self, look: &CandidateSearch<'_>, found: &[Found]) -> Vec<Option<u32>> {
        let ids = search::ids_of(look.snapshot, found.iter().map(|f| f.iri.as_str()));
        let known: Vec<u32> = ids.iter().flatten().copied().collect();
        match look.graphs.scope() {
            GraphScope::Default | GraphScope::Union => self.0.fetch_degrees(&known),
            scope => self.0.fetch(known.iter().map(|&id| (id, scope))),
        }
        ids
    }

    /// False only if the predicate has no edge with this key in the graphs at the cursor.
    fn may_have(&self, look: &CandidateSearch<'_>, id: u32) -> bool {
        match look.graphs.scope() {
            // In a sharded store the list may be long and on another shard, so only its length was fetched.
            GraphScope::Default if self.0.is_sharded() => self.0.default_degree(id) > 0,
            GraphScope::Union if self.0.is_sharded() => {
                self.0.default_degree(id) > 0 || self.0.named_degree(id) > 0
            }
            scope => !self.0.read(id, scope, &mut Vec::new()).is_empty(),
        }
    }
}
