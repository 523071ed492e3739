//! Numbers of counted triples, and of the different values of some of their columns.

use super::triples::{Columns, CountedTriples, GRAPH, OBJECT, PREDICATE, SUBJECT, SeenGraphs};
use super::*;
use jindou_graph::Graph;
use jindou_graph::counts::{ClassCounts, class_counts, vertices_with_edges};
use jindou_graph::segment::GraphScope;

/// Number of keys of a predicate that are always counted one by one.
const FEW_KEYS: u32 = 64;
/// Number of edges per key from which more keys are, below filters.
const EDGES_PER_KEY: u64 = 16;

/// The ids of a key of a group, and a number for each of several sets of columns.
pub(super) type KeyNumbers = (Vec<u32>, Vec<u64>);

pub(super) struct Numbers<'g> {
    pub(super) graph: &'g dyn Graph,
    pub(super) triples: &'g CountedTriples,
    class: Option<ClassCounts>,
}

impl<'g> Numbers<'g> {
    pub(super) fn new(graph: &'g dyn Graph, triples: &'g CountedTriples) -> Option<Self> {
        let class = match triples.class {
            None => None,
            Some(c) => Some(class_counts(graph, c.typing, c.class, c.direction)?),
        };
        Some(Self {
            graph,
            triples,
            class,
        })
    }

    pub(super) fn graphs(&self) -> SeenGraphs {
        self.triples.graphs
    }

    /// Numbers of edges of a predicate in the default graph and in named graphs, of those that are seen.
    pub(super) fn edges(&self, p: PredicateId) -> [u64; 2] {
        let (view, of) = (self.graph.edges(p, Direction::Out), self.graphs().of);
        [
            if of.default { view.default_edges() } else { 0 },
            if of.named { view.named_edges() } else { 0 },
        ]
    }

    /// Number of members of the class that have an edge of the predicate, and of their edges.
    fn of_class(class: &ClassCounts, p: PredicateId) -> [u64; 2] {
        let known = class.predicates.get(p.0 as usize);
        known.copied().unwrap_or_default()
    }

    /// The predicates of the triples.
    pub(super) fn predicates(&self) -> Vec<PredicateId> {
        let is_there = |p: &PredicateId| match &self.class {
            Some(class) => Self::of_class(class, *p)[1] > 0,
            None => self.edges(*p) != [0, 0],
        };
        let all = match self.triples.predicate {
            Some(p) => p.0..p.0 + 1,
            None => 0..self.graph.predicate_count(),
        };
        all.map(PredicateId).filter(is_there).collect()
    }

    /// The columns without that of the graph if all triples are in the same graph.
    pub(super) fn without_graph(&self, columns: Columns) -> Columns {
        match self.graphs().named {
            0 | 1 => columns & !GRAPH,
            _ => columns,
        }
    }

    /// Number of different values of some columns among the triples of one predicate, which has triples.
    pub(super) fn of_predicate(&self, p: PredicateId, columns: Columns) -> Option<u64> {
        const PAIR: Columns = SUBJECT | OBJECT;
        const QUAD: Columns = PAIR | GRAPH;
        let columns = self.without_graph(columns & !PREDICATE);
        if columns == 0 {
            return Some(1);
        }
        if let (Some(counts), Some(end)) = (&self.class, self.triples.class) {
            let [keys, edges] = Self::of_class(counts, p);
            return match (columns, end.direction) {
                (PAIR, _) => Some(edges),
                (SUBJECT, Direction::Out) | (OBJECT, Direction::In) => Some(keys),
                _ => None,
            };
        }
        let keys = |direction| {
            let view = self.graph.edges(p, direction);
            view.exact_keys(self.graphs().of)
        };
        match (columns, self.edges(p)) {
            (SUBJECT, _) => keys(Direction::Out),
            (OBJECT, _) => keys(Direction::In),
            (QUAD, [0, n]) => Some(n),
            (PAIR, [n, 0]) => Some(n),
            (PAIR, [0, n]) if self.graphs().named == 1 => Some(n),
            _ => None,
        }
    }

    /// Number of different values of some columns among the triples of some predicates, each of which has triples.
    /// `all` is true if these are all predicates that have any.
    pub(super) fn total(
        &self,
        predicates: &[PredicateId],
        columns: Columns,
        all: bool,
    ) -> Option<u64> {
        if columns & PREDICATE != 0 {
            let each = predicates.iter().take_while(|_| !scope::is_over());
            return each.map(|p| self.of_predicate(*p, columns)).sum();
        }
        if let [one] = predicates {
            return self.of_predicate(*one, columns);
        }
        if predicates.is_empty() {
            return Some(0);
        }
        let vertices =
            |direction| vertices_with_edges(self.graph, predicates, direction, self.graphs().of);
        match (self.without_graph(columns), &self.class) {
            (0, _) => Some(1),
            (SUBJECT, None) => vertices(Direction::Out),
            (OBJECT, None) => vertices(Direction::In),
            // Each member has at least the edge to its class.
            (SUBJECT, Some(class)) => {
                let end = self.triples.class?;
                (all && end.direction == Direction::Out).then_some(class.members)
            }
            _ => None,
        }
    }

    /// The predicates as vertices, each with its numbers of different values of sets of columns. `None` for more than
    /// [`MAX_ROWS`] predicates.
    pub(super) fn by_predicate(&self, sets: &[Columns]) -> Option<Vec<KeyNumbers>> {
        let predicates = self.predicates();
        if predicates.len() > MAX_ROWS {
            return None;
        }
        let numbers = |p: &PredicateId| {
            if scope::is_over() {
                return None;
            }
            let each = sets.iter().map(|c| self.of_predicate(*p, *c));
            Some((
                vec![self.graph.vertex_of(*p).0],
                each.collect::<Option<Vec<u64>>>()?,
            ))
        };
        predicates.iter().map(numbers).collect()
    }

    /// The subjects or the objects of the only predicate, as [`Self::by_predicate`].
    pub(super) fn by_end(&self, end: Columns, sets: &[Columns]) -> Option<Vec<KeyNumbers>> {
        let direction = match end {
            SUBJECT => Direction::Out,
            _ => Direction::In,
        };
        let p = self.triples.predicate?;
        // With few edges per key, evaluating filters per edge costs less than making these rows.
        let keys = self.graph.edges(p, direction).key_counts()[0];
        let pays = keys <= FEW_KEYS || self.edges(p)[0] >= EDGES_PER_KEY * u64::from(keys);
        if !self.triples.layers.is_empty() && !pays {
            return None;
        }
        let degrees = self.degrees(p, direction)?;
        let numbers = |degree: u64| {
            let each = sets.iter().map(|c| match self.without_graph(*c & !end) {
                0 => Some(1),
                SUBJECT | OBJECT => Some(degree),
                _ => None,
            });
            each.collect::<Option<Vec<u64>>>()
        };
        let rows = degrees
            .into_iter()
            .map(|(key, n)| Some((vec![key], numbers(n)?)));
        rows.collect()
    }

    /// The keys of a predicate and their numbers of edges in the default graph; `None` for more than [`MAX_ROWS`] keys,
    /// or if edges of named graphs count as well.
    fn degrees(&self, p: PredicateId, direction: Direction) -> Option<Vec<(u32, u64)>> {
        match self.edges(p) {
            [0, 0] => return Some(vec![]),
            [_, 0] => {}
            _ => return None,
        }
        let view = self.graph.edges(p, direction);
        let count = view.key_counts()[0];
        if count as usize > MAX_ROWS {
            return None;
        }
        let mut keys = vec![];
        match view.here() {
            None => view.candidate_keys(GraphScope::Default, &mut keys),
            Some(here) => here.default.keys_into(0, count, &mut keys),
        }
        if let Some(patch) = view.patch() {
            let mut from = Some(0);
            while let Some(key) = from.and_then(|f| patch.next_added_key(f)) {
                keys.push(key);
                from = key.checked_add(1);
                if keys.len() > 2 * MAX_ROWS {
                    return None;
                }
            }
            keys.sort();
            keys.dedup();
        }
        view.fetch_degrees(&keys);
        let degrees = keys
            .into_iter()
            .map(|key| (key, view.default_degree(key)))
            .filter(|x| x.1 > 0);
        let degrees: Vec<(u32, u64)> = degrees.collect();
        (degrees.len() <= MAX_ROWS).then_some(degrees)
    }
}
