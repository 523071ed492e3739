//! Answers taken from the counts of segments. They are constants of the plan, which is then valid for one version of
//! the data only.

use super::*;
use crate::operator;
use jindou_graph::Edges;
use jindou_graph::segment::GraphScope;
use jindou_model::{DEFAULT_GRAPH, Direction, PredicateId};
use oxrdf::Literal;

/// Largest number of rows of an answer that the planner itself computes.
const MAX_ROWS: usize = 4_096;

impl PlanBuilder<'_> {
    /// COUNTs over a single pattern of the default graph whose variables are all free: of all rows, grouped by
    /// predicate, or grouped by one end of one predicate. `None` for any other group, or if named graphs make the
    /// counts inexact.
    pub(super) fn counted(
        &self,
        inner: &LogicalNode,
        by: &[Slot],
        aggregates: &[Aggregate],
    ) -> Option<Built> {
        let (s, p, o) = self.one_pattern(inner)?;
        let counts_rows = |a: &Aggregate| {
            let of_a_slot = a.of.is_none_or(|x| inner.certain.has(x));
            let function = matches!(
                a.function,
                AggregateFunction::Count | AggregateFunction::CountRows
            );
            // COUNT(DISTINCT *) equals the count of the pattern's rows only if no slot is hidden: that of a blank node,
            // or one that a SELECT leaves out.
            let in_row = |end: &PatternTerm| !matches!(end, PatternTerm::Slot(slot) if !a.row.contains(slot));
            let whole = || {
                a.of.is_none()
                    && in_row(&PatternTerm::Slot(s))
                    && in_row(p)
                    && in_row(&PatternTerm::Slot(o))
            };
            of_a_slot && function && (!a.distinct || whole())
        };
        if !aggregates.iter().all(counts_rows) {
            return None;
        }
        let groups: Vec<(Option<u32>, u64)> = match (by, p) {
            ([], PatternTerm::Slot(_)) => {
                let each = self.predicates()?;
                vec![(None, each.iter().map(|x| x.1).sum())]
            }
            ([], PatternTerm::Term(p)) => {
                let scope = self.dataset.default.scope()?;
                vec![(None, self.view(p, Direction::Out)?.exact_edges(scope)?)]
            }
            ([g], PatternTerm::Slot(p)) if g == p => self
                .predicates()?
                .iter()
                .filter(|x| x.1 > 0)
                .map(|x| (Some(self.snapshot.vertex_of(x.0).0), x.1))
                .collect(),
            ([g], PatternTerm::Term(p)) if *g == s => self.degrees(p, Direction::Out)?,
            ([g], PatternTerm::Term(p)) if *g == o => self.degrees(p, Direction::In)?,
            _ => return None,
        };
        if groups.len() > MAX_ROWS {
            return None;
        }
        self.snapshot.bind();
        let mut slots = by.to_vec();
        slots.extend(aggregates.iter().map(|a| a.to));
        let rows = groups
            .into_iter()
            .map(|(key, n)| {
                let mut row: Vec<Cell> = key.into_iter().map(Cell::Id).collect();
                let bytes = Canonical::from(term::encode(&Literal::from(n as i64).into()));
                let cell = match self.snapshot.lookup(&bytes) {
                    Some(VertexId(v)) => Cell::Id(v),
                    None => Cell::Term(bytes),
                };
                row.extend(aggregates.iter().map(|_| cell.clone()));
                row
            })
            .collect();
        Some(constant_rows(slots, rows))
    }

    /// The keys of a predicate and their numbers of edges in the default graph; `None` for more than [`MAX_ROWS`] keys.
    fn degrees(
        &self,
        predicate: &Canonical,
        direction: Direction,
    ) -> Option<Vec<(Option<u32>, u64)>> {
        let view = self.view(predicate, direction)?;
        let scope = self.dataset.default.scope()?;
        // `None` if edges of named graphs count as well; `seen` is false if the dataset does not include the default
        // graph.
        let seen = view.exact_edges(scope)? > 0;
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
            .iter()
            .map(|k| (Some(*k), view.default_degree(*k)))
            .filter(|x| seen && x.1 > 0);
        Some(degrees.collect())
    }

    /// The predicates of the default graph, or those that instances of a class have, for DISTINCT over a pattern's
    /// predicate.
    pub(super) fn distinct_predicates(&self, inner: &LogicalNode, slots: &[Slot]) -> Option<Built> {
        let [one] = slots else {
            return None;
        };
        let mut all = self.predicates_in(inner, *one)?;
        all.sort_unstable();
        all.dedup();
        let rows = all
            .iter()
            .map(|&p| vec![Cell::Id(self.snapshot.vertex_of(PredicateId(p)).0)])
            .collect::<Vec<_>>();
        self.snapshot.bind();
        (rows.len() <= MAX_ROWS).then(|| constant_rows(vec![*one], rows))
    }

    /// Predicates that the slot takes in the node's solutions, if it is the predicate of a single pattern or of one
    /// next to an `rdf:type` pattern, or if the node is a union of such.
    fn predicates_in(&self, node: &LogicalNode, slot: Slot) -> Option<Vec<u32>> {
        if let NodeKind::Project(inner) = &node.kind {
            return self.predicates_in(inner, slot);
        }
        if let NodeKind::Union(branches) = &node.kind {
            let mut all = vec![];
            for b in branches {
                all.append(&mut self.predicates_in(b, slot)?);
            }
            return Some(all);
        }
        if let Some((_, p, _)) = self.one_pattern(node) {
            return match p {
                PatternTerm::Slot(p) if *p == slot => Some(
                    self.predicates()?
                        .iter()
                        .filter(|x| x.1 > 0)
                        .map(|x| x.0.0)
                        .collect(),
                ),
                _ => None,
            };
        }
        self.predicates_of_class(node, slot)
    }

    /// The predicates in `?x a <C> . ?x ?p ?o` or `?x a <C> . ?s ?p ?x`, from the characteristic sets of the vertices
    /// in the class's intervals. Intervals and sets cover all graphs together, so `None` for a store with named graphs
    /// or edits.
    fn predicates_of_class(&self, node: &LogicalNode, slot: Slot) -> Option<Vec<u32>> {
        let NodeKind::Bgp(bgp) = &node.kind else {
            return None;
        };
        let (patterns, []) = (bgp.patterns.as_slice(), bgp.filters.as_slice()) else {
            return None;
        };
        let [typed, open] = patterns else {
            return None;
        };
        let (typed, open) = match (&typed.predicate, &open.predicate) {
            (PatternTerm::Term(_), PatternTerm::Slot(_)) => (typed, open),
            (PatternTerm::Slot(_), PatternTerm::Term(_)) => (open, typed),
            _ => return None,
        };
        let (PatternTerm::Slot(x), PatternTerm::Term(p), PatternTerm::Term(class)) =
            (&typed.subject, &typed.predicate, &typed.object)
        else {
            return None;
        };
        let (PatternTerm::Slot(s), PatternTerm::Slot(by), PatternTerm::Slot(o)) =
            (&open.subject, &open.predicate, &open.object)
        else {
            return None;
        };
        let places = [&typed.place, &open.place].map(|p| *p == PatternGraphTerm::Default);
        let free = !node.uses.meets(&self.outer.possible) && places == [true, true];
        let apart = s != o && s != by && o != by && *by == slot;
        if !free || !apart || !is_rdf_type(p) || (x != s && x != o) {
            return None;
        }
        self.dataset
            .default
            .scope()?
            .sees(DEFAULT_GRAPH)
            .then_some(())?;
        if !self.snapshot.is_as_loaded() || !self.snapshot.named_graphs().is_empty() {
            return None;
        }
        let class = self.snapshot.lookup(class)?;
        let intervals = self.snapshot.class_intervals(class)?;
        let sets = self.snapshot.predicates().sets();
        let mut found: Vec<u32> = vec![];
        for &[from, to] in intervals {
            let first = sets
                .runs
                .partition_point(|r| r.start <= from)
                .saturating_sub(1);
            for run in sets.runs.iter().skip(first).take_while(|r| r.start < to) {
                found.push(if x == s { run.out_set } else { run.in_set });
            }
        }
        found.sort_unstable();
        found.dedup();
        let mut all: Vec<u32> = found
            .iter()
            .flat_map(|&set| sets.list(set))
            .copied()
            .collect();
        all.sort_unstable();
        all.dedup();
        Some(all)
    }

    fn one_pattern<'n>(&self, node: &'n LogicalNode) -> Option<(Slot, &'n PatternTerm, Slot)> {
        // Inside an `Apply`, the outer row might bind the pattern's ends.
        let is_free = !node.uses.meets(&self.outer.possible);
        is_free.then(|| one_pattern(node)).flatten()
    }

    fn view(&self, predicate: &Canonical, direction: Direction) -> Option<Edges<'_>> {
        let v = self.snapshot.lookup(predicate)?;
        let p = self.snapshot.predicate_of(v)?;
        Some(self.snapshot.edges(p, direction))
    }

    /// Every predicate and its number of edges.
    fn predicates(&self) -> Option<Vec<(PredicateId, u64)>> {
        let scope = self.dataset.default.scope()?;
        (0..self.snapshot.predicate_count())
            .map(|p| {
                let p = PredicateId(p);
                let view = self.snapshot.edges(p, Direction::Out);
                Some((p, view.exact_edges(scope)?))
            })
            .collect()
    }
}

/// The slots of the subject and object of a single pattern outside GRAPH, with its predicate between them. `None`
/// unless they are two different variables.
fn one_pattern(node: &LogicalNode) -> Option<(Slot, &PatternTerm, Slot)> {
    let mut at = node;
    while let NodeKind::Project(inner) = &at.kind {
        at = inner;
    }
    let NodeKind::Bgp(bgp) = &at.kind else {
        return None;
    };
    let ([p], []) = (bgp.patterns.as_slice(), bgp.filters.as_slice()) else {
        return None;
    };
    let (PatternTerm::Slot(s), PatternTerm::Slot(o), PatternGraphTerm::Default) =
        (&p.subject, &p.object, &p.place)
    else {
        return None;
    };
    let is_open = match &p.predicate {
        PatternTerm::Slot(x) => s != x && o != x,
        PatternTerm::Term(_) => true,
    };
    (s != o && is_open).then_some((*s, &p.predicate, *o))
}

/// Rows that are known while planning.
pub(super) fn constant_rows(slots: Vec<Slot>, rows: Vec<Vec<Cell>>) -> Built {
    let all: SlotSet = slots.iter().copied().collect();
    let n = rows.len() as f64;
    Built {
        op: Operator::Values(operator::Values { slots, rows }),
        certain: all.clone(),
        possible: all,
        nodes: vec![],
        texts: SlotSet::default(),
        rows: n,
        cost: n * OUT,
    }
}

fn is_rdf_type(term: &Canonical) -> bool {
    let iri = term.strip_prefix(&[term::IRI]);
    iri == Some(oxrdf::vocab::rdf::TYPE.as_str().as_bytes())
}
