//! Answers taken from the counts of segments. They are constants of the plan, which is then valid for one version of
//! the data only.
//!
//! A group is answered so if its rows are the triples of a pattern ([`triples`]), and its aggregates are numbers of
//! different values of some of their columns ([`numbers`]): for each predicate, for each end of one predicate, or for
//! all triples together. Filters and expressions that read nothing but the group's key are evaluated once per key.

mod kinds;
mod numbers;
mod patterns;
mod triples;

use super::*;
use crate::operator;
use jindou_model::{DEFAULT_GRAPH, Direction, NO_VERTEX, PredicateId};
use jindou_syntax::algebra::Variable;
use numbers::{KeyNumbers, Numbers};
use oxrdf::Literal;
use triples::{
    Columns, CountedTriples, Known, Layer, OBJECT, OBJECT_KIND, Origin, PREDICATE, SUBJECT,
    SUBJECT_KIND, Wanted, determined, kinds_of,
};

/// Largest number of rows of an answer that the planner itself computes.
const MAX_ROWS: usize = 4_096;

impl PlanBuilder<'_> {
    /// A group over triples whose numbers are known, or over a union of such. `None` for any other group, and if named
    /// graphs, edits or a filter make the counts inexact.
    pub(super) fn counted(
        &mut self,
        inner: &LogicalNode,
        by: &[Slot],
        aggregates: &[Aggregate],
    ) -> Option<Built> {
        if let (layers, None, core) = self.unwrapped(inner)
            && let (true, NodeKind::Union(branches)) = (layers.is_empty(), &core.kind)
        {
            return self.counted_union(branches, by, aggregates);
        }
        self.counted_one(inner, by, aggregates)
    }

    /// A group over a union: the branches' numbers are added up.
    fn counted_union(
        &mut self,
        branches: &[LogicalNode],
        by: &[Slot],
        aggregates: &[Aggregate],
    ) -> Option<Built> {
        use AggregateFunction::{Count, CountRows, Sum};
        let (mut parts, mut sums) = (vec![], vec![]);
        for a in aggregates {
            if a.distinct || !matches!(a.function, Count | CountRows | Sum) {
                return None;
            }
            let to = self.key(|slot| format!("part {slot}"))?;
            parts.push(Aggregate { to, ..a.clone() });
            sums.push(sum(a.to, to));
        }
        let rows = self.key(|slot| format!("rows {slot}"))?;
        parts.push(Aggregate {
            function: CountRows,
            of: None,
            ..sum(rows, rows)
        });
        let mut built = vec![];
        for branch in branches {
            let bound = by.iter().copied().filter(|s| branch.uses.has(*s));
            let bound: Vec<Slot> = bound.collect();
            let mut b = self.counted(branch, &bound, &parts)?;
            if bound.is_empty() && !by.is_empty() {
                // A group by nothing has a row even if it has no solutions.
                b = self.filter(b, &[Arc::new(is_positive(rows))]);
            }
            built.push(b);
        }
        Some(group(union(built), by, &sums))
    }

    fn counted_one(
        &mut self,
        inner: &LogicalNode,
        by: &[Slot],
        aggregates: &[Aggregate],
    ) -> Option<Built> {
        let triples = self.counted_triples(inner)?;
        let wanted = aggregates.iter().map(|a| triples.wanted(a, &inner.certain));
        let wanted: Vec<Wanted> = wanted.collect::<Option<_>>()?;
        let mut reads = triples.filters().fold(0, |all, f| all | f.1);
        if by.is_empty()
            && let Some(totals) = self.totals(&triples, reads, &wanted)
        {
            let slots = aggregates.iter().map(|a| a.to).collect();
            return Some(self.known_rows(slots, vec![(vec![], totals)]));
        }
        let mut by_columns = 0;
        for slot in by {
            match triples.origin(*slot)? {
                Origin::Column(c) => by_columns |= c,
                Origin::Computed(c) => reads |= c,
            }
        }
        for w in &wanted {
            if let Wanted::Whole(c) | Wanted::Weighted(c) = w {
                reads |= c;
            }
        }
        let columns = by_columns | reads;
        let key = columns & !kinds_of(columns);
        let with_predicate = if triples.predicate.is_none() {
            key | PREDICATE
        } else {
            key
        };
        let mut keys = vec![key, with_predicate, without_kinds(key)];
        keys.dedup();
        keys.into_iter().find_map(|key| {
            is_key(&triples, key).then_some(())?;
            let are_numbers = wanted.iter().all(|w| matches!(w, Wanted::Number(_)));
            if by_columns == key && are_numbers {
                self.each_key(&triples, key, aggregates, &wanted)
            } else {
                self.grouped_keys(&triples, [key, by_columns], by, aggregates, &wanted)
            }
        })
    }

    /// The numbers that aggregates over all triples want. `reads` are the columns that filters read.
    fn totals(
        &self,
        triples: &CountedTriples,
        reads: Columns,
        wanted: &[Wanted],
    ) -> Option<Vec<u64>> {
        let filters = triples.filters();
        let conditions: Vec<Condition> = filters.map(|f| self.compiled(f.0, triples)).collect();
        let numbers = Numbers::new(self.snapshot.graph(), triples)?;
        let mut predicates = numbers.predicates();
        let there = predicates.len();
        if !conditions.is_empty() {
            predicates = self.chosen(&numbers, &conditions, reads)?;
        }
        let all = predicates.len() == there;
        let each = wanted.iter().map(|w| match w {
            Wanted::Number(columns) => numbers.total(&predicates, *columns, all),
            Wanted::Whole(_) | Wanted::Weighted(_) => None,
        });
        each.collect()
    }

    /// The predicates whose triples meet conditions. `None` if some but not all of the triples of one do.
    fn chosen(
        &self,
        numbers: &Numbers<'_>,
        conditions: &[Condition],
        reads: Columns,
    ) -> Option<Vec<PredicateId>> {
        let kinds = reads & (SUBJECT_KIND | OBJECT_KIND);
        let parts = match kinds {
            0 => numbers.whole(),
            kinds => numbers.parts(&mut numbers.kind_counter()?, kinds)?,
        };
        let mut bytes = vec![];
        let mut chosen = vec![];
        for of_one in parts.chunk_by(|a, b| a.predicate == b.predicate) {
            let mut met = 0;
            for part in of_one {
                let tags = part.examples.map(|id| {
                    bytes.clear();
                    self.snapshot.term(VertexId(id), &mut bytes);
                    bytes.first().copied()
                });
                let predicate = match numbers.triples.predicate {
                    None => Some(self.snapshot.vertex_of(part.predicate).0),
                    Some(_) => None,
                };
                let known = Known { predicate, tags };
                let mut all = true;
                for c in conditions {
                    all &= numbers.triples.holds(c, known)?;
                }
                met += usize::from(all);
            }
            match of_one {
                [part, ..] if met == of_one.len() => chosen.push(part.predicate),
                _ if met > 0 => return None,
                _ => {}
            }
        }
        Some(chosen)
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
            Wanted::Whole(_) | Wanted::Weighted(_) => None,
        });
        let sets: Vec<Columns> = sets.collect::<Option<_>>()?;
        let to = aggregates.iter().map(|a| a.to).collect();
        self.keys(triples, key, &sets, to)
    }

    /// A group by expressions over a key, or by nothing: numbers of the keys are added up. So each of them must be a
    /// number of values of columns that, with the columns `by_columns` of the group, include the key.
    fn grouped_keys(
        &mut self,
        triples: &CountedTriples,
        [key, by_columns]: [Columns; 2],
        by: &[Slot],
        aggregates: &[Aggregate],
        wanted: &[Wanted],
    ) -> Option<Built> {
        let (mut sets, mut slots, mut sums, mut products) = (vec![], vec![], vec![], vec![]);
        let columns_of_key = key & (SUBJECT | PREDICATE | OBJECT);
        let are_apart = |columns: Columns| columns_of_key & !(columns | by_columns) == 0;
        for (a, wanted) in aggregates.iter().zip(wanted) {
            match *wanted {
                // The rows have each predicate several times.
                Wanted::Number(PREDICATE) if key & !PREDICATE != 0 && key & PREDICATE != 0 => {
                    sums.push(Aggregate {
                        function: AggregateFunction::Count,
                        distinct: true,
                        ..sum(a.to, triples.slot_of(PREDICATE)?)
                    });
                }
                Wanted::Number(columns) if are_apart(columns) => {
                    let number = self.key(|slot| format!("count {slot}"))?;
                    sets.push(columns);
                    slots.push(number);
                    sums.push(sum(a.to, number));
                }
                Wanted::Weighted(c) if c & !determined(key) == 0 && are_apart(triples.rows) => {
                    let number = self.key(|slot| format!("count {slot}"))?;
                    let product = self.key(|slot| format!("product {slot}"))?;
                    sets.push(triples.rows);
                    slots.push(number);
                    products.push((product, weighted(a, number)?));
                    sums.push(sum(a.to, product));
                }
                Wanted::Whole(c) if c & !determined(key) == 0 => sums.push(a.clone()),
                _ => return None,
            }
        }
        let mut keys = self.keys(triples, key, &sets, slots)?;
        for (to, value) in products {
            keys = self.extend(keys, to, &value);
        }
        Some(group(keys, by, &sums))
    }

    /// The keys that pass the filters, each with its numbers of different values of `sets` in the slots `to`, and with
    /// the expressions that depend on the key. A term of its kind stands for an end of which the key has the kind only.
    fn keys(
        &mut self,
        triples: &CountedTriples,
        key: Columns,
        sets: &[Columns],
        to: Vec<Slot>,
    ) -> Option<Built> {
        let numbers = Numbers::new(self.snapshot.graph(), triples)?;
        let rows: Vec<KeyNumbers> = match key {
            PREDICATE => numbers.by_predicate(sets)?,
            SUBJECT | OBJECT => numbers.by_end(key, sets)?,
            _ => numbers.by_kind(key, sets)?,
        };
        (rows.len() <= MAX_ROWS).then_some(())?;
        let in_rows = without_kinds(key);
        let columns = [PREDICATE, SUBJECT, OBJECT].into_iter();
        let columns = columns.filter(|c| in_rows & c != 0);
        let slots: Option<Vec<Slot>> = columns.map(|c| triples.slot_of(c)).collect();
        let mut slots = slots?;
        slots.extend(to);
        let mut b = self.known_rows(slots, rows);
        for (layer, reads) in &triples.layers {
            match layer {
                Layer::Filter(f) => b = self.filter(b, std::slice::from_ref(f)),
                Layer::Extend(to, value) => {
                    let is_there = match triples.origin(*to)? {
                        Origin::Column(c) => c & !in_rows == 0,
                        Origin::Computed(_) => reads & !determined(key) == 0,
                    };
                    if is_there {
                        b = self.extend(b, *to, value);
                    }
                }
            }
        }
        Some(b)
    }

    /// Rows of the ids of a key and of numbers.
    fn known_rows(&self, slots: Vec<Slot>, rows: Vec<KeyNumbers>) -> Built {
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
            match triples.origin(*one)? {
                Origin::Column(c) => (c == PREDICATE).then_some(())?,
                Origin::Computed(c) => (c != 0).then_some(())?,
            }
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

fn sum(to: Slot, of: Slot) -> Aggregate {
    Aggregate {
        to,
        function: AggregateFunction::Sum,
        of: Some(of),
        distinct: false,
        row: vec![],
    }
}

fn is_positive(slot: Slot) -> Expr {
    let v = Variable::new_unchecked("rows");
    let number = Arc::new(Expression::Variable(v.clone()));
    let zero = Arc::new(Expression::Literal(Literal::from(0).into()));
    Expr::plain(Expression::Greater(number, zero), [(v, slot)])
}

/// Share of some equal rows in a sum, or in a number of bound values.
fn weighted(a: &Aggregate, rows: Slot) -> Option<Expr> {
    let [value, number] = ["value", "rows"].map(Variable::new_unchecked);
    let slots = [(value.clone(), a.of?), (number.clone(), rows)];
    let number = Arc::new(Expression::Variable(number));
    let share = match a.function {
        AggregateFunction::Count => Expression::If(
            Arc::new(Expression::Bound(value)),
            number,
            Arc::new(Expression::Literal(Literal::from(0).into())),
        ),
        _ => Expression::Multiply(Arc::new(Expression::Variable(value)), number),
    };
    Some(Expr::plain(share, slots))
}

/// True if the numbers of these columns' values may be known.
fn is_key(triples: &CountedTriples, key: Columns) -> bool {
    let kinds = SUBJECT_KIND | OBJECT_KIND;
    match triples.predicate {
        None => key != 0 && key & !(PREDICATE | kinds) == 0,
        Some(_) => key == SUBJECT || key == OBJECT || key != 0 && key & !kinds == 0,
    }
}

/// The columns with each end in place of its kind.
fn without_kinds(columns: Columns) -> Columns {
    let end = |kind: Columns, end: Columns| if columns & kind != 0 { end } else { 0 };
    let ends = end(SUBJECT_KIND, SUBJECT) | end(OBJECT_KIND, OBJECT);
    columns & !(SUBJECT_KIND | OBJECT_KIND) | ends
}

fn is_rdf_type(term: &Canonical) -> bool {
    let iri = term.strip_prefix(&[term::IRI]);
    iri == Some(oxrdf::vocab::rdf::TYPE.as_str().as_bytes())
}
