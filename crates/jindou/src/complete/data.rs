//! Candidates for a predicate, an object or a graph: from statistics where these suffice, otherwise from the properties
//! of subjects that a query finds.

use super::lists::{NameCount, NameLists};
use super::names::Names;
use super::sample::{self, Sample};
use super::star::SubjectStar;
use super::{Counts, Request};
use crate::{Database, Snapshot};
use jindou_graph::Graph;
use jindou_graph::segment::GraphScope;
use jindou_model::{Charge, Direction, Holder, PredicateId, VertexId, term};
use jindou_syntax::place::{CursorPlace, Pattern, Slot};
use oxrdf::vocab::rdf;
use oxrdf::{NamedNode, Term};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// A term that may stand at the cursor.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub term: Term,
    pub count: u64,
}

/// Candidates, the meaning of their counts, and whether the time limit left some out.
pub(crate) struct FoundCandidates {
    pub all: Vec<Candidate>,
    pub counts: Counts,
    pub partial: bool,
}

impl FoundCandidates {
    pub(crate) fn nothing() -> Self {
        Self {
            all: Vec::new(),
            counts: Counts::Nothing,
            partial: false,
        }
    }
}

/// Largest number of objects that are decoded, the most frequent ones.
const DECODED: usize = 2_000;
/// Longest term that is offered, in bytes of its canonical form. Lists of suggestions cannot show longer ones.
pub(crate) const LONGEST_TERM: usize = 2048;
/// Estimated bytes per candidate without its text, and the number of copies that are made of the text, such as for
/// lower case and for sorting.
const CANDIDATE: usize = 160;
const COPIES: usize = 4;
/// Largest number of neighbours of one subject that are counted.
const NEIGHBOURS: usize = 1_000;
/// Largest number of objects of a predicate for which all of them are counted.
const FEW_OBJECTS: u32 = 4_000;

/// The graphs that the group of patterns at the cursor reads.
pub(crate) enum Graphs {
    Default,
    Named(u32),
    AnyNamed,
    Union,
    Set(Vec<u32>),
}

impl Graphs {
    pub(crate) fn scope(&self) -> GraphScope<'_> {
        match self {
            Self::Default => GraphScope::Default,
            Self::Named(g) => GraphScope::Named(*g),
            Self::AnyNamed => GraphScope::AnyNamed,
            Self::Union => GraphScope::Union,
            Self::Set(ids) => GraphScope::Set(ids),
        }
    }
}

/// State of one search for candidates.
pub(crate) struct CandidateSearch<'a> {
    pub db: &'a Database,
    pub snapshot: &'a Snapshot,
    pub lists: &'a NameLists,
    pub place: &'a CursorPlace,
    pub names: Names<'a>,
    pub request: &'a Request<'a>,
    pub graphs: Graphs,
    begin: Instant,
    /// Charge for the memory of the candidates.
    charge: RefCell<Charge>,
}

impl<'a> CandidateSearch<'a> {
    pub(crate) fn new(
        db: &'a Database,
        snapshot: &'a Snapshot,
        lists: &'a NameLists,
        place: &'a CursorPlace,
        request: &'a Request<'a>,
        begin: Instant,
    ) -> Self {
        let mut look = Self {
            db,
            snapshot,
            lists,
            place,
            names: Names::at(place, request.before, &request.options, snapshot.prefixes()),
            request,
            graphs: Graphs::Default,
            begin,
            charge: RefCell::new(Charge::new(
                Holder::Rest,
                &db.settle(&request.options).memory,
            )),
        };
        look.graphs = look.graphs_here();
        look
    }

    pub(crate) fn union_default(&self) -> bool {
        let chosen = self.request.options.union_default;
        chosen.unwrap_or_else(|| self.snapshot.base().union_default())
    }

    fn graphs_here(&self) -> Graphs {
        // Graphs that the store does not contain are left out, as empty graphs.
        let set = |iris: &[String]| {
            let mut set: Vec<u32> = iris.iter().filter_map(|iri| self.vertex(iri)).collect();
            set.sort_unstable();
            set.dedup();
            Graphs::Set(set)
        };
        let chosen = self.dataset();
        match (&self.place.graph, chosen) {
            (Some(g), None) if g.starts_with('?') => Graphs::AnyNamed,
            (Some(g), Some([_, named])) if g.starts_with('?') => set(&named),
            (Some(g), chosen) => {
                let iri = self
                    .names
                    .iri(g)
                    .filter(|iri| chosen.is_none_or(|[_, named]| named.contains(iri)));
                let known = iri.and_then(|iri| self.vertex(&iri));
                known.map_or(Graphs::Set(Vec::new()), Graphs::Named)
            }
            (None, Some([default, _])) if !default.iter().any(String::is_empty) => set(&default),
            (None, _) if self.union_default() => Graphs::Union,
            (None, _) => Graphs::Default,
        }
    }

    /// The IRIs of the graphs that form the default graph, and of the named graphs; `None` if neither the request nor
    /// the text (`FROM`, `FROM NAMED`) selects any. The request takes precedence.
    fn dataset(&self) -> Option<[Vec<String>; 2]> {
        if let Some(chosen) = &self.request.options.dataset {
            return Some([chosen.default.clone(), chosen.named.clone()]);
        }
        let chosen = &self.place.dataset;
        let iris = |names: &Vec<String>| names.iter().filter_map(|n| self.names.iri(n)).collect();
        (!chosen.iter().all(Vec::is_empty)).then(|| chosen.each_ref().map(iris))
    }

    /// Charges the memory of a candidate with a text of this many bytes; false if the budget does not allow it.
    pub(crate) fn has_room(&self, text: usize) -> bool {
        let bytes = (CANDIDATE + COPIES * text) as u64;
        self.charge.borrow_mut().add(bytes).is_ok()
    }

    /// A candidate with this IRI; `None` if memory is exhausted, or if the IRI cannot be offered.
    fn named(&self, iri: &str, count: u64) -> Option<Candidate> {
        self.has_room(iri.len()).then(|| named(iri, count))?
    }

    /// Time left before the request's time limit.
    pub(crate) fn left(&self) -> Duration {
        let patience = self.request.patience;
        patience.saturating_sub(self.begin.elapsed())
    }

    pub(crate) fn vertex(&self, iri: &String) -> Option<u32> {
        let node = NamedNode::new(iri).ok()?;
        let found = self.snapshot.lookup(&term::encode(&node.into()))?;
        Some(found.0)
    }

    fn vertex_of_name(&self, name: &str) -> Option<u32> {
        self.vertex(&self.names.iri(name)?)
    }

    /// The dense id of the predicate with this name in the query's text.
    pub(crate) fn predicate(&self, name: &str) -> Option<PredicateId> {
        let v = self.vertex_of_name(name)?;
        Graph::predicate_of(self.snapshot, VertexId(v))
    }

    /// True if counts over all graphs of the store are exact for the graphs at the cursor.
    fn sees_all(&self) -> bool {
        match self.graphs {
            Graphs::Default => !self.lists.has_named,
            Graphs::Union => true,
            _ => false,
        }
    }

    /// Candidates for the position of the cursor, in no particular order.
    pub(crate) fn candidates(&self, word: &str) -> FoundCandidates {
        // A term is not useful while a variable is being typed.
        if word.starts_with(['?', '$']) {
            return FoundCandidates::nothing();
        }
        match self.place.slot {
            Slot::Predicate => self.predicates(),
            Slot::Object => self.objects(),
            Slot::Graph => self.named_graphs(),
            _ => FoundCandidates::nothing(),
        }
    }

    fn named_graphs(&self) -> FoundCandidates {
        let named = self.dataset().map(|[_, named]| named);
        let is_chosen = |iri: &&String| named.as_ref().is_none_or(|chosen| chosen.contains(*iri));
        let all = self.lists.graphs.iter().filter(is_chosen);
        FoundCandidates {
            all: all.filter_map(|iri| self.named(iri, 0)).collect(),
            ..FoundCandidates::nothing()
        }
    }

    /// The patterns that constrain the subject, directly or through shared variables.
    pub(crate) fn about(&self, subject: &str) -> Vec<&Pattern> {
        let patterns = &self.place.patterns;
        let mut known: FxHashSet<&str> = FxHashSet::default();
        known.insert(subject);
        let mut chosen = vec![false; patterns.len()];
        loop {
            let mut grew = false;
            for (pattern, chosen) in patterns.iter().zip(&mut chosen) {
                let ends = [&pattern.subject, &pattern.predicate, &pattern.object];
                let own = || ends.iter().filter(|t| t.starts_with('?'));
                if !*chosen && own().any(|v| known.contains(v.as_str())) {
                    known.extend(own().map(|v| v.as_str()));
                    *chosen = true;
                    grew = true;
                }
            }
            if !grew || chosen.iter().filter(|c| **c).count() >= sample::MOST_PATTERNS {
                break;
            }
        }
        let chosen = patterns.iter().zip(chosen).filter(|(_, c)| *c);
        chosen.map(|(p, _)| p).take(sample::MOST_PATTERNS).collect()
    }

    /// The star that the patterns form. `None` if they contain other patterns, if the graphs at the cursor are not
    /// those that characteristic sets count, or if the store has updates.
    fn star(&self, subject: &str, about: &[&Pattern]) -> Option<SubjectStar> {
        if !self.sees_all() || !Graph::is_as_loaded(self.snapshot) {
            return None;
        }
        let mut star = SubjectStar::default();
        let mut objects: FxHashSet<&str> = FxHashSet::default();
        for pattern in about {
            if pattern.subject != subject || pattern.graph.is_some() {
                return None;
            }
            let iri = self.names.iri(&pattern.predicate)?;
            let id = Graph::predicate_of(self.snapshot, VertexId(self.vertex(&iri)?))?;
            if pattern.object.starts_with('?') {
                if pattern.object == subject || !objects.insert(&pattern.object) {
                    return None;
                }
                star.predicates.push(id.0);
            } else if iri == rdf::TYPE.as_str() {
                star.classes.push(self.vertex_of_name(&pattern.object)?);
            } else {
                return None;
            }
        }
        Some(star)
    }

    fn predicates(&self) -> FoundCandidates {
        let everything = || self.all_predicates();
        let Some(subject) = &self.place.subject else {
            return everything();
        };
        let direction = if self.place.inverse {
            Direction::In
        } else {
            Direction::Out
        };
        if !subject.starts_with('?') {
            let Some(v) = self.vertex_of_name(subject) else {
                return everything();
            };
            let found = self.predicates_of(&Sample::whole(vec![v]), direction);
            return or(found, everything);
        }
        let about = self.about(subject);
        if about.is_empty() {
            return everything();
        }
        if direction == Direction::Out
            && let Some(star) = self.star(subject, &about)
        {
            let sums = star.predicates(Graph::statistics(self.snapshot));
            let named = |(id, n)| Some((self.lists.by_id.get(&id)?, n));
            let all = sums.counts.into_iter().filter_map(named);
            let found = FoundCandidates {
                all: all.filter_map(|(iri, n)| self.named(iri, n)).collect(),
                counts: counts(sums.exact),
                partial: false,
            };
            return or(found, everything);
        }
        let subjects = sample::subjects(self, subject, &about);
        or(self.predicates_of(&subjects, direction), everything)
    }

    fn all_predicates(&self) -> FoundCandidates {
        self.listed(&self.lists.predicates)
    }

    fn listed(&self, list: &[NameCount]) -> FoundCandidates {
        FoundCandidates {
            all: list
                .iter()
                .filter_map(|c| self.named(&c.iri, c.count))
                .collect(),
            counts: match self.sees_all() {
                true => Counts::Exact,
                false => Counts::Whole,
            },
            partial: false,
        }
    }

    /// The predicates of these vertices, with the number of vertices that have each. Vertices that are not reached
    /// within the time limit are not counted.
    fn predicates_of(&self, vertices: &Sample, direction: Direction) -> FoundCandidates {
        let mut sums: FxHashMap<u32, u64> = FxHashMap::default();
        // A vertex's list of predicates covers all graphs, and may include predicates whose edges a patch removed. If
        // that could change the counts, the edges themselves are read.
        let sure = self.sees_all() && Graph::is_as_loaded(self.snapshot);
        let mut scratch = Vec::new();
        let counting = Instant::now();
        let mut counted = 0;
        for &v in &vertices.ids {
            if counted > 0 && counting.elapsed() > self.request.patience {
                break;
            }
            counted += 1;
            for &p in Graph::predicates_of(self.snapshot, v, direction).iter() {
                let has = sure || {
                    let edges = Graph::edges(self.snapshot, PredicateId(p), direction);
                    !edges.read(v, self.graphs.scope(), &mut scratch).is_empty()
                };
                if has {
                    *sums.entry(p).or_insert(0) += 1;
                }
            }
        }
        let named = |(id, n)| self.named(self.lists.by_id.get(&id)?, n);
        let (counts, partial) = vertices.counted(counted);
        FoundCandidates {
            all: sums.into_iter().filter_map(named).collect(),
            counts,
            partial,
        }
    }

    fn objects(&self) -> FoundCandidates {
        let (Some(subject), Some(path)) = (&self.place.subject, &self.place.predicate) else {
            return FoundCandidates::nothing();
        };
        if path.starts_with(['?', '$']) {
            return FoundCandidates::nothing();
        }
        let is_type = self
            .names
            .iri(path)
            .is_some_and(|p| p == rdf::TYPE.as_str());
        let anything = || {
            if is_type && !self.lists.classes.is_empty() {
                self.listed(&self.lists.classes)
            } else {
                self.objects_of_predicate(path)
            }
        };
        if !subject.starts_with('?') {
            let Some(v) = self.vertex_of_name(subject) else {
                return anything();
            };
            let found = self.objects_of(&Sample::whole(vec![v]), path);
            return or(found, anything);
        }
        let about = self.about(subject);
        if about.is_empty() {
            return anything();
        }
        let star = self.star(subject, &about);
        if is_type && let Some(star) = &star {
            let sums = star.classes(Graph::statistics(self.snapshot));
            let found = FoundCandidates {
                all: self.decoded(sums.counts),
                counts: counts(sums.exact),
                partial: false,
            };
            return or(found, anything);
        }
        if let (Some(star), Some(_)) = (&star, self.predicate(path)) {
            let subjects = sample::of_star(self.snapshot, star);
            if !subjects.ids.is_empty() {
                return or(self.objects_of(&subjects, path), anything);
            }
        }
        if self.predicate(path.trim_start_matches('^')).is_none() {
            return or(self.objects_of_path(subject, path, &about), anything);
        }
        let subjects = sample::subjects(self, subject, &about);
        or(self.objects_of(&subjects, path), anything)
    }

    /// The objects of a predicate or of its inverse, each with the number of `vertices` that have it. Empty for other
    /// paths. Vertices that are not reached within the request's time limit are not counted.
    fn objects_of(&self, vertices: &Sample, path: &str) -> FoundCandidates {
        let (name, direction) = match path.strip_prefix('^') {
            Some(name) => (name, Direction::In),
            None => (path, Direction::Out),
        };
        let Some(p) = self.predicate(name) else {
            return FoundCandidates::nothing();
        };
        let edges = Graph::edges(self.snapshot, p, direction);
        let mut sums: FxHashMap<u32, u64> = FxHashMap::default();
        let mut scratch = Vec::new();
        let mut all = true;
        let counting = Instant::now();
        let mut counted = 0;
        for &v in &vertices.ids {
            if counted > 0 && counting.elapsed() > self.request.patience {
                break;
            }
            counted += 1;
            let objects = edges.read(v, self.graphs.scope(), &mut scratch);
            all &= objects.len() <= NEIGHBOURS;
            for &o in objects.iter().take(NEIGHBOURS) {
                *sums.entry(o).or_insert(0) += 1;
            }
        }
        let (counts, partial) = vertices.counted(counted);
        FoundCandidates {
            all: self.decoded(sums),
            counts: if all { counts } else { Counts::Sample(counted) },
            partial,
        }
    }

    fn objects_of_path(&self, subject: &str, path: &str, about: &[&Pattern]) -> FoundCandidates {
        let ends = sample::ends(self, subject, path, about);
        let mut sums: FxHashMap<u32, u64> = FxHashMap::default();
        for &id in &ends.ids {
            *sums.entry(id).or_insert(0) += 1;
        }
        FoundCandidates {
            all: self.decoded(sums),
            counts: ends.counts(),
            partial: ends.partial,
        }
    }

    /// The objects of a predicate, over all subjects.
    fn objects_of_predicate(&self, path: &str) -> FoundCandidates {
        let (name, direction) = match path.strip_prefix('^') {
            Some(name) => (name, Direction::In),
            None => (path, Direction::Out),
        };
        let Some(p) = self.predicate(name) else {
            return self.objects_of_path("?", path, &[]);
        };
        let statistics = Graph::predicate_statistics(self.snapshot, p);
        let objects = match direction {
            Direction::Out => statistics.objects,
            Direction::In => statistics.subjects,
        };
        if objects > FEW_OBJECTS {
            let subjects = sample::of_predicate(self, p, direction);
            return self.objects_of(&subjects, path);
        }
        let edges = Graph::edges(self.snapshot, p, direction.reverse());
        let mut keys = Vec::new();
        edges.candidate_keys(self.graphs.scope(), &mut keys);
        keys.truncate(FEW_OBJECTS as usize);
        let mut scratch = Vec::new();
        let counted = keys.into_iter().map(|o| {
            let subjects = edges.read(o, self.graphs.scope(), &mut scratch);
            (o, subjects.len() as u64)
        });
        let sums = counted.filter(|c| c.1 > 0).collect();
        FoundCandidates {
            all: self.decoded(sums),
            counts: Counts::Exact,
            partial: false,
        }
    }

    /// The terms of these vertices, without blank nodes, which a query cannot name.
    fn decoded(&self, sums: FxHashMap<u32, u64>) -> Vec<Candidate> {
        let mut all: Vec<(u32, u64)> = sums.into_iter().collect();
        if all.len() > DECODED {
            all.select_nth_unstable_by_key(DECODED, |c| (std::cmp::Reverse(c.1), c.0));
            all.truncate(DECODED);
        }
        // Ascending ids are close to each other in the dictionary.
        all.sort_unstable();
        let mut decoding = self.snapshot.vocabulary().decoding();
        let term = |(id, count)| {
            let canonical = decoding.term(VertexId(id))?;
            let nameless = matches!(canonical.first(), Some(&(term::BLANK | term::TRIPLE)));
            if nameless || canonical.len() > LONGEST_TERM || !self.has_room(canonical.len()) {
                return None;
            }
            let term = term::decode(canonical)?;
            Some(Candidate { term, count })
        };
        all.into_iter().filter_map(term).collect()
    }
}

fn named(iri: &str, count: u64) -> Option<Candidate> {
    let term = NamedNode::new(iri).ok()?.into();
    Some(Candidate { term, count })
}

fn counts(exact: bool) -> Counts {
    if exact {
        Counts::Exact
    } else {
        Counts::Estimate
    }
}

/// Returns `found`, or, if it is empty, the candidates that `other` returns.
fn or(found: FoundCandidates, other: impl FnOnce() -> FoundCandidates) -> FoundCandidates {
    if !found.all.is_empty() {
        return found;
    }
    let partial = found.partial;
    let mut other = other();
    // These counts are about the whole data, not about the subject at the cursor.
    if other.counts == Counts::Exact {
        other.counts = Counts::Whole;
    }
    other.partial |= partial;
    other
}
