//! Answers that the segments' own counts give: such a plan belongs to one version of the data, and these are its
//! constants.

use super::*;
use jindou_model::{Direction, PredicateId};
use jindou_store::segment::EdgeView;
use oxrdf::Literal;

/// Most rows that are made while planning.
const MAX_ROWS: usize = 4_096;

impl Builder<'_> {
    /// COUNTs over one pattern of the default graph with all ends free: of all, by predicate, or by one end of one
    /// predicate. `None` where that is not it, or where named graphs make the counts inexact.
    pub(super) fn counted(
        &self,
        inner: &Node,
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
            of_a_slot && function && (!a.distinct || a.of.is_none())
        };
        if !aggregates.iter().all(counts_rows) {
            return None;
        }
        let groups: Vec<(Option<u32>, u64)> = match (by, p) {
            ([], End::Slot(_)) => {
                let each = self.predicates()?;
                vec![(None, each.iter().map(|x| x.1).sum())]
            }
            ([], End::Term(p)) => {
                let scope = self.dataset.default.scope()?;
                vec![(None, self.view(p, Direction::Out)?.exact_edges(scope)?)]
            }
            ([g], End::Slot(p)) if g == p => self
                .predicates()?
                .iter()
                .filter(|x| x.1 > 0)
                .map(|x| (Some(self.snapshot.vertex_of(x.0).0), x.1))
                .collect(),
            ([g], End::Term(p)) if *g == s || *g == o => {
                let direction = if *g == s {
                    Direction::Out
                } else {
                    Direction::In
                };
                let view = self.view(p, direction)?;
                let scope = self.dataset.default.scope()?;
                // Without edges of named graphs the default graph has them all, if it is looked at.
                let seen = view.exact_edges(scope)? > 0;
                if view.default.key_count as usize > MAX_ROWS {
                    return None;
                }
                let mut keys = vec![];
                view.default.keys_into(0, view.default.key_count, &mut keys);
                if let Some(patch) = view.patch {
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
                keys.iter()
                    .map(|k| (Some(*k), view.default_degree(*k)))
                    .filter(|x| seen && x.1 > 0)
                    .collect()
            }
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
                let bytes = term::encode(&Literal::from(n as i64).into());
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

    /// The predicates of the default graph, for DISTINCT over a pattern's predicate.
    pub(super) fn distinct_predicates(&self, inner: &Node, slots: &[Slot]) -> Option<Built> {
        let (_, p, _) = self.one_pattern(inner)?;
        let (End::Slot(p), [one]) = (p, slots) else {
            return None;
        };
        if p != one {
            return None;
        }
        let rows = self
            .predicates()?
            .iter()
            .filter(|x| x.1 > 0)
            .map(|x| vec![Cell::Id(self.snapshot.vertex_of(x.0).0)])
            .collect::<Vec<_>>();
        self.snapshot.bind();
        (rows.len() <= MAX_ROWS).then(|| constant_rows(vec![*one], rows))
    }

    fn one_pattern<'n>(&self, node: &'n Node) -> Option<(Slot, &'n End, Slot)> {
        // An outer row's values would bind its ends.
        let is_free = !node.uses.meets(&self.outer.possible);
        is_free.then(|| one_pattern(node)).flatten()
    }

    fn view(&self, predicate: &[u8], direction: Direction) -> Option<EdgeView<'_>> {
        let v = self.snapshot.lookup(predicate)?;
        let p = self.snapshot.predicate_of(v)?;
        Some(self.snapshot.edges(p, direction))
    }

    /// Every predicate and its edges.
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

/// A single pattern outside GRAPH whose ends are different variables, and its predicate.
fn one_pattern(node: &Node) -> Option<(Slot, &End, Slot)> {
    let mut at = node;
    while let Kind::Project(inner) = &at.kind {
        at = inner;
    }
    let Kind::Bgp(bgp) = &at.kind else {
        return None;
    };
    let ([p], []) = (bgp.patterns.as_slice(), bgp.filters.as_slice()) else {
        return None;
    };
    let (End::Slot(s), End::Slot(o), Place::Default) = (&p.subject, &p.object, &p.place) else {
        return None;
    };
    let is_open = match &p.predicate {
        End::Slot(x) => s != x && o != x,
        End::Term(_) => true,
    };
    (s != o && is_open).then_some((*s, &p.predicate, *o))
}

fn constant_rows(slots: Vec<Slot>, rows: Vec<Vec<Cell>>) -> Built {
    let all: SlotSet = slots.iter().copied().collect();
    let n = rows.len() as f64;
    Built {
        op: Operator::Values { slots, rows },
        certain: all.clone(),
        possible: all,
        nodes: vec![],
        rows: n,
        cost: n * OUT,
    }
}
