//! Answers taken from the counts of segments. They are constants of the plan, which is then valid for one version of
//! the data only.
//!
//! A group is answered so if its rows are the triples of a pattern ([`triples`]), and its aggregates are numbers of
//! different values of some of their columns ([`numbers`]): for each predicate, for each end of one predicate, or for
//! all triples together. Filters and expressions that read nothing but the group's key are evaluated once per key.

mod numbers;
mod triples;

use super::*;
use crate::operator;
use jindou_model::{DEFAULT_GRAPH, Direction, NO_VERTEX, PredicateId};
use numbers::{KeyNumbers, Numbers};
use oxrdf::Literal;
use triples::{Columns, CountedTriples, Layer, OBJECT, Origin, PREDICATE, SUBJECT, Wanted};

/// Largest number of rows of an answer that the planner itself computes.
const MAX_ROWS: usize = 4_096;

impl PlanBuilder<'_> {
    /// A group over triples whose numbers are known. `None` for any other group, and if named graphs, edits or a filter
    /// make the counts inexact.
    pub(super) fn counted(
        &mut self,
        inner: &LogicalNode,
        by: &[Slot],
        aggregates: &[Aggregate],
    ) -> Option<Built> {
        let triples = self.counted_triples(inner)?;
        let wanted = aggregates.iter().map(|a| triples.wanted(a, &inner.certain));
        let wanted: Vec<Wanted> = wanted.collect::<Option<_>>()?;
        let (mut by_columns, mut reads) = (0, 0);
        for slot in by {
            match triples.origin(*slot)? {
                Origin::Column(c) => by_columns |= c,
                Origin::Computed(c) => reads |= c,
            }
        }
        if by.is_empty()
            && let Some(totals) = self.totals(&triples, &wanted)
        {
            let slots = aggregates.iter().map(|a| a.to).collect();
            return Some(self.known_rows(slots, vec![(None, totals)]));
        }
        reads |= triples.filters().fold(by_columns, |all, f| all | f.1);
        let is_key = match triples.predicate {
            None => reads == PREDICATE,
            Some(_) => reads == SUBJECT || reads == OBJECT,
        };
        is_key.then_some(())?;
        if by_columns == 0 {
            self.grouped_keys(&triples, reads, by, aggregates, &wanted)
        } else {
            self.each_key(&triples, reads, aggregates, &wanted)
        }
    }

    /// The numbers that aggregates over all triples want.
    fn totals(&self, triples: &CountedTriples, wanted: &[Wanted]) -> Option<Vec<u64>> {
        let filters = triples.filters();
        let conditions: Vec<Condition> = filters.map(|f| self.compiled(f.0, triples)).collect();
        let numbers = Numbers::new(self.snapshot.graph(), triples)?;
        let mut predicates = numbers.predicates();
        let there = predicates.len();
        if !conditions.is_empty() {
            let mut chosen = vec![];
            for p in predicates {
                let id = match triples.predicate {
                    None => Some(self.snapshot.vertex_of(p).0),
                    Some(_) => None,
                };
                let mut all = true;
                for c in &conditions {
                    all &= triples.holds(c, id)?;
                }
                if all {
                    chosen.push(p);
                }
            }
            predicates = chosen;
        }
        let all = predicates.len() == there;
        let each = wanted.iter().map(|w| match w {
            Wanted::Number(columns) => numbers.total(&predicates, *columns, all),
            Wanted::Whole(_) => None,
        });
        each.collect()
    }

    /// A group by one column, perhaps with others that depend on it: a row for each key.
    fn each_key(
        &mut self,
        triples: &CountedTriples,
        key: Columns,
        aggregates: &[Aggregate],
        wanted: &[Wanted],
    ) -> Option<Built> {
        let sets = wanted.iter().map(|w| match w {
            Wanted::Number(columns) => Some(*columns),
            Wanted::Whole(_) => None,
        });
        let sets: Vec<Columns> = sets.collect::<Option<_>>()?;
        let to = aggregates.iter().map(|a| a.to).collect();
        self.keys(triples, key, &sets, to)
    }

    /// A group by expressions over one column, or by nothing: numbers of the keys are added up. So each of them must be
    /// a number of values of columns that include the key.
    fn grouped_keys(
        &mut self,
        triples: &CountedTriples,
        key: Columns,
        by: &[Slot],
        aggregates: &[Aggregate],
        wanted: &[Wanted],
    ) -> Option<Built> {
        let (mut sets, mut slots, mut sums) = (vec![], vec![], vec![]);
        for (a, wanted) in aggregates.iter().zip(wanted) {
            match wanted {
                Wanted::Number(columns) if columns & key != 0 => {
                    let number = self.key(|slot| format!("count {slot}"))?;
                    sets.push(*columns);
                    slots.push(number);
                    sums.push(Aggregate {
                        to: a.to,
                        function: AggregateFunction::Sum,
                        of: Some(number),
                        distinct: false,
                        row: vec![],
                    });
                }
                Wanted::Whole(columns) if columns & !key == 0 => sums.push(a.clone()),
                _ => return None,
            }
        }
        let keys = self.keys(triples, key, &sets, slots)?;
        Some(group(keys, by, &sums))
    }

    /// The keys that pass the filters, each with its numbers of different values of `sets` in the slots `to`, and with
    /// the expressions that depend on the key.
    fn keys(
        &mut self,
        triples: &CountedTriples,
        key: Columns,
        sets: &[Columns],
        to: Vec<Slot>,
    ) -> Option<Built> {
        let numbers = Numbers::new(self.snapshot.graph(), triples)?;
        let keys: Vec<KeyNumbers> = match key {
            PREDICATE => numbers.by_predicate(sets)?,
            end => numbers.by_end(end, sets)?,
        };
        let mut slots = vec![triples.slot_of(key)?];
        slots.extend(to);
        let rows = keys.into_iter().map(|(key, n)| (Some(key), n)).collect();
        let mut b = self.known_rows(slots, rows);
        for (layer, reads) in &triples.layers {
            match layer {
                Layer::Filter(f) => b = self.filter(b, std::slice::from_ref(f)),
                Layer::Extend(to, value) if reads & !key == 0 => b = self.extend(b, *to, value),
                Layer::Extend(..) => {}
            }
        }
        Some(b)
    }

    /// Rows of a key, if there is one, and of numbers.
    fn known_rows(&self, slots: Vec<Slot>, rows: Vec<(Option<u32>, Vec<u64>)>) -> Built {
        self.snapshot.bind();
        let numbers = rows.iter().flat_map(|row| &row.1);
        let terms: Vec<Canonical> = numbers
            .map(|n| Canonical::from(term::encode(&Literal::from(*n as i64).into())))
            .collect();
        let bytes: Vec<&[u8]> = terms.iter().map(|t| &**t).collect();
        let mut ids = vec![];
        self.snapshot.vocabulary().lookup_many(&bytes, &mut ids);
        let mut cells = terms.into_iter().zip(ids).map(|(bytes, id)| match id {
            NO_VERTEX => Cell::Term(bytes),
            id => Cell::Id(id),
        });
        let rows = rows
            .into_iter()
            .map(|(key, numbers)| {
                let mut row: Vec<Cell> = key.into_iter().map(Cell::Id).collect();
                row.extend(cells.by_ref().take(numbers.len()));
                row
            })
            .collect();
        constant_rows(slots, rows)
    }

    /// The predicates of the default graph, or those that instances of a class have, for DISTINCT over a pattern's
    /// predicate.
    pub(super) fn distinct_predicates(
        &mut self,
        inner: &LogicalNode,
        slots: &[Slot],
    ) -> Option<Built> {
        let [one] = slots else {
            return None;
        };
        let Some(mut all) = self.predicates_in(inner, *one) else {
            let triples = self.counted_triples(inner)?;
            let is_predicate = triples.origin(*one) == Some(Origin::Column(PREDICATE));
            is_predicate.then_some(())?;
            return self.counted(inner, slots, &[]);
        };
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
