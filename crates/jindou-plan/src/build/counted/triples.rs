//! The triples that a group counts: those of one pattern, or of a pattern next to the class of one of its ends. Between
//! the triples and the group there may be filters, BIND, DISTINCT and sub-selects.

use super::*;
use crate::TermTest;
use crate::joins;
use crate::logical::{LogicalPattern, add_new};
use jindou_graph::counts::CountedGraphs;
use jindou_graph::segment::GraphScope;
use jindou_values::{Value, value};

/// A set of columns of triples, as bits.
pub(super) type Columns = u8;
pub(super) const SUBJECT: Columns = 1;
pub(super) const PREDICATE: Columns = 2;
pub(super) const OBJECT: Columns = 4;
pub(super) const GRAPH: Columns = 8;

/// Largest number of patterns, and of parts of a join, that are considered.
const FEW: usize = 4;

/// Source of a slot's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A column of the triples.
    Column(Columns),
    /// An expression over these columns, which may be unbound.
    Computed(Columns),
}

/// An operator between the triples and the group.
pub(super) enum Layer {
    Filter(Arc<Expr>),
    Extend(Slot, Arc<Expr>),
}

/// The graphs that a pattern reads, if its edges can be counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenGraphs {
    pub of: CountedGraphs,
    /// Number of named graphs that have quads.
    pub named: usize,
}

/// The class of an end of the pattern.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassEnd {
    /// `rdf:type`
    pub typing: PredicateId,
    pub class: VertexId,
    /// `Out` if the subject is in the class, `In` if the object is.
    pub direction: Direction,
}

/// An aggregate over counted triples.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// The number of different values of these columns.
    Number(Columns),
    /// An aggregate of values that depend on these columns only, and for which repeated rows do not matter.
    Whole(Columns),
}

pub(super) struct CountedTriples {
    origins: FxHashMap<Slot, Origin>,
    /// Slots of the pattern's own columns.
    columns: Vec<(Slot, Columns)>,
    /// The pattern's predicate; `None` if it is a variable.
    pub predicate: Option<PredicateId>,
    pub graphs: SeenGraphs,
    pub class: Option<ClassEnd>,
    /// The group's rows are the different values of these columns.
    pub rows: Columns,
    /// From the triples to the group, each with the columns that it reads.
    pub layers: Vec<(Layer, Columns)>,
}

impl CountedTriples {
    pub(super) fn origin(&self, slot: Slot) -> Option<Origin> {
        self.origins.get(&slot).copied()
    }

    /// The column whose values a slot has.
    fn column(&self, slot: Slot) -> Option<Columns> {
        match self.origin(slot)? {
            Origin::Column(c) => Some(c),
            Origin::Computed(_) => None,
        }
    }

    /// The pattern's slot of a column.
    pub(super) fn slot_of(&self, column: Columns) -> Option<Slot> {
        let own = self.columns.iter().find(|c| c.1 == column);
        own.map(|c| c.0)
    }

    /// The columns that an expression reads; `None` if it also reads anything else.
    fn read_by(&self, e: &Expr) -> Option<Columns> {
        let mut each = e.variables.iter().map(|v| match self.origin(v.1)? {
            Origin::Column(c) | Origin::Computed(c) => Some(c),
        });
        each.try_fold(0, |all, c| Some(all | c?))
    }

    pub(super) fn filters(&self) -> impl Iterator<Item = (&Arc<Expr>, Columns)> {
        self.layers.iter().filter_map(|(layer, reads)| match layer {
            Layer::Filter(f) => Some((f, *reads)),
            Layer::Extend(..) => None,
        })
    }

    /// An aggregate over the rows; `certain` are the slots that every row binds.
    pub(super) fn wanted(&self, a: &Aggregate, certain: &SlotSet) -> Option<Wanted> {
        use crate::AggregateFunction::{Avg, Count, CountRows, Max, Min, Sum};
        match (&a.function, a.of, a.distinct) {
            (CountRows, _, false) => Some(Wanted::Number(self.rows)),
            (CountRows, _, true) => self.distinct_rows(&a.row).map(Wanted::Number),
            (Count, Some(of), distinct) => match self.origin(of)? {
                Origin::Column(c) if c & !self.rows != 0 => None,
                Origin::Column(c) if distinct => Some(Wanted::Number(c)),
                Origin::Column(_) => Some(Wanted::Number(self.rows)),
                Origin::Computed(c) if distinct => Some(Wanted::Whole(c)),
                Origin::Computed(_) => certain.has(of).then_some(Wanted::Number(self.rows)),
            },
            // SAMPLE and GROUP_CONCAT depend on the order of the rows.
            (Min | Max | Sum | Avg, Some(of), _) if a.is_idempotent() => match self.origin(of)? {
                Origin::Column(c) | Origin::Computed(c) => Some(Wanted::Whole(c)),
            },
            _ => None,
        }
    }

    /// The columns whose different values are the different rows over some slots.
    fn distinct_rows(&self, slots: &[Slot]) -> Option<Columns> {
        let (mut columns, mut computed, mut others) = (0, 0, false);
        for slot in slots {
            match self.origin(*slot) {
                Some(Origin::Column(c)) => columns |= c,
                Some(Origin::Computed(c)) => computed |= c,
                None => others = true,
            }
        }
        // All columns together determine every other slot.
        let whole = columns == self.rows;
        let determined = !others && computed & !columns == 0 && columns & !self.rows == 0;
        (whole || determined).then_some(columns)
    }

    /// True if one of the conditions holds since a subject is an IRI or a blank node.
    fn are_resources(&self, either: &[Condition]) -> bool {
        let tests = |wanted: TermTest| {
            either.iter().any(|c| match c {
                Condition::Kind(slot, test) => {
                    *test == wanted && self.column(*slot) == Some(SUBJECT)
                }
                _ => false,
            })
        };
        tests(TermTest::Iri) && tests(TermTest::Blank)
    }

    /// Value of a condition for a predicate, given as a vertex, or for all predicates. `None` if it depends on other
    /// columns or has to be evaluated.
    pub(super) fn holds(&self, c: &Condition, predicate: Option<u32>) -> Option<bool> {
        let all = |list: &[Condition], end: bool| {
            let mut sure = true;
            for c in list {
                match self.holds(c, predicate) {
                    Some(b) if b == end => return Some(end),
                    Some(_) => {}
                    None => sure = false,
                }
            }
            sure.then_some(!end)
        };
        match c {
            Condition::Same(Operand::Slot(s), Operand::Const(id))
            | Condition::Same(Operand::Const(id), Operand::Slot(s)) => {
                (self.column(*s)? == PREDICATE).then_some(predicate? == *id)
            }
            Condition::Same(Operand::Slot(a), Operand::Slot(b)) => {
                (self.column(*a)? == self.column(*b)?).then_some(true)
            }
            Condition::Kind(slot, test) => match (self.column(*slot)?, test) {
                (PREDICATE, test) => Some(*test == TermTest::Iri),
                (SUBJECT, TermTest::Literal | TermTest::Numeric) => Some(false),
                _ => None,
            },
            Condition::Bound(slot) => self.column(*slot).map(|_| true),
            Condition::And(list) => all(list, false),
            Condition::Or(list) if self.are_resources(list) => Some(true),
            Condition::Or(list) => all(list, true),
            Condition::Not(c) => self.holds(c, predicate).map(|b| !b),
            _ => None,
        }
    }
}

impl PlanBuilder<'_> {
    /// The triples in the node's solutions; `None` if the solutions are anything else, or depend on an outer row.
    pub(super) fn counted_triples(&self, node: &LogicalNode) -> Option<CountedTriples> {
        if node.uses.meets(&self.outer.possible) {
            return None;
        }
        let (above, distinct, core) = peeled(node);
        let (patterns, filters) = joined_patterns(core)?;
        let found = match patterns.as_slice() {
            [one] => Some(self.of_pattern(one)?),
            [a, b] => self.of_class(a, b),
            _ => return None,
        };
        let (mut out, filters) = match found {
            Some(found) => (found, filters),
            None => {
                let (patterns, filters) = with_constants(patterns, filters);
                let [a, b] = patterns.as_slice() else {
                    return None;
                };
                (self.of_class(a, b)?, filters)
            }
        };
        let below = filters.into_iter().map(Layer::Filter);
        for layer in below.chain(above.into_iter().rev()) {
            self.add_layer(&mut out, layer)?;
        }
        if let Some(slots) = distinct {
            let (mut columns, mut computed) = (0, 0);
            for slot in slots {
                match out.origin(slot)? {
                    Origin::Column(c) => columns |= c,
                    Origin::Computed(c) => computed |= c,
                }
            }
            if computed & !columns != 0 {
                return None;
            }
            out.rows = columns;
        }
        Some(out)
    }

    fn of_pattern(&self, p: &LogicalPattern) -> Option<CountedTriples> {
        let (PatternTerm::Slot(s), PatternTerm::Slot(o)) = (&p.subject, &p.object) else {
            return None;
        };
        let mut columns = vec![(*s, SUBJECT), (*o, OBJECT)];
        let predicate = match &p.predicate {
            PatternTerm::Slot(p) => {
                columns.push((*p, PREDICATE));
                None
            }
            PatternTerm::Term(p) => Some(self.predicate_of(p)?),
        };
        if let PatternGraphTerm::Slot(g) = p.place {
            columns.push((g, GRAPH));
        }
        let origins: FxHashMap<Slot, Origin> =
            columns.iter().map(|c| (c.0, Origin::Column(c.1))).collect();
        // A slot in two places is a condition.
        (origins.len() == columns.len()).then_some(())?;
        Some(CountedTriples {
            origins,
            rows: columns.iter().fold(0, |all, c| all | c.1),
            columns,
            predicate,
            graphs: self.seen_graphs(&p.place)?,
            class: None,
            layers: vec![],
        })
    }

    /// The triples of two patterns, one of which gives an end of the other one its class.
    fn of_class(&self, a: &LogicalPattern, b: &LogicalPattern) -> Option<CountedTriples> {
        let (typed, open) = match (&a.predicate, &b.predicate) {
            (PatternTerm::Term(_), PatternTerm::Slot(_)) => (a, b),
            (PatternTerm::Slot(_), PatternTerm::Term(_)) => (b, a),
            _ => return None,
        };
        let (PatternTerm::Slot(x), PatternTerm::Term(p), PatternTerm::Term(class)) =
            (&typed.subject, &typed.predicate, &typed.object)
        else {
            return None;
        };
        if typed.place != open.place || !is_rdf_type(p) {
            return None;
        }
        let triples = self.of_pattern(open)?;
        let direction = match triples.column(*x)? {
            SUBJECT => Direction::Out,
            OBJECT => Direction::In,
            _ => return None,
        };
        // The members of a class are known for all graphs together.
        let graphs = triples.graphs.of;
        (graphs.default && !graphs.named).then_some(())?;
        let class = ClassEnd {
            typing: self.predicate_of(p)?,
            class: self.snapshot.lookup(class)?,
            direction,
        };
        Some(CountedTriples {
            class: Some(class),
            ..triples
        })
    }

    fn predicate_of(&self, term: &Canonical) -> Option<PredicateId> {
        let v = self.snapshot.lookup(term)?;
        self.snapshot.predicate_of(v)
    }

    /// The graphs that a pattern reads; `None` if these are some but not all of the named graphs.
    fn seen_graphs(&self, place: &PatternGraphTerm) -> Option<SeenGraphs> {
        let graph = match place {
            PatternGraphTerm::Default => self.dataset.default.clone(),
            PatternGraphTerm::Named(name) => {
                GraphRef::Named(self.dataset.graph(name, self.snapshot)?)
            }
            PatternGraphTerm::Slot(_) => match &self.dataset.named {
                None => GraphRef::AnyNamed,
                Some(list) => GraphRef::Set(list.clone()),
            },
        };
        let scope = graph.scope()?;
        let mut named = 0;
        if scope.sees_named() {
            let all = self.snapshot.named_graphs();
            named = match scope {
                GraphScope::Union | GraphScope::AnyNamed => all.len(),
                _ => all.iter().filter(|g| scope.sees(**g)).count(),
            };
            if named > 0 && named < all.len() {
                return None;
            }
        }
        let of = CountedGraphs {
            default: scope.sees(DEFAULT_GRAPH),
            named: named > 0,
        };
        Some(SeenGraphs { of, named })
    }

    fn add_layer(&self, to: &mut CountedTriples, layer: Layer) -> Option<()> {
        match &layer {
            Layer::Filter(f) => {
                if f.per_row {
                    return None;
                }
                let reads = to.read_by(f)?;
                if to.holds(&self.compiled(f, to), None) != Some(true) {
                    to.layers.push((layer, reads));
                }
            }
            Layer::Extend(slot, value) => {
                // Without an origin, the slot must not be read, and adding it changes no number of rows.
                let Some(reads) = to.read_by(value).filter(|_| !value.per_row) else {
                    return Some(());
                };
                let copied = match &*value.expression {
                    Expression::Variable(v) => value.slot(v).and_then(|s| to.origin(s)),
                    _ => None,
                };
                let origin = copied.unwrap_or(Origin::Computed(reads));
                if to.origins.insert(*slot, origin).is_some() {
                    return None;
                }
                to.layers.push((layer, reads));
            }
        }
        Some(())
    }

    /// A filter as a condition, for [`CountedTriples::holds`].
    pub(super) fn compiled(&self, f: &Expr, triples: &CountedTriples) -> Condition {
        if let Expression::Literal(l) = &*f.expression
            && let Some(Value::Boolean(b)) = value(l.canonical())
        {
            return match b {
                true => Condition::And(vec![]),
                false => Condition::Or(vec![]),
            };
        }
        let resources = triples.columns.iter().filter(|c| c.1 != OBJECT);
        let resources = resources
            .filter_map(|c| 1u128.checked_shl(u32::from(c.0)))
            .fold(0, |all, bit| all | bit);
        let compiler = ConditionCompiler {
            snapshot: self.snapshot,
            resources,
            certain: None,
            stored: false,
        };
        condition::known(compiler.compile(f))
    }
}

/// Removes the operators at the top of a node that only filter its rows, add to them, or remove duplicates. Returns
/// the former two from the top down, the slots of which rows are different if duplicates were removed, and the node
/// below.
fn peeled(node: &LogicalNode) -> (Vec<Layer>, Option<Vec<Slot>>, &LogicalNode) {
    let (mut layers, mut distinct, mut at) = (vec![], None, node);
    loop {
        at = match &at.kind {
            NodeKind::Project(inner) | NodeKind::OrderBy { inner, .. } => inner,
            NodeKind::Filter { inner, filters } => {
                layers.extend(filters.iter().cloned().map(Layer::Filter));
                inner
            }
            NodeKind::Extend { inner, to, value } => {
                layers.push(Layer::Extend(*to, value.clone()));
                inner
            }
            // Only the uppermost of several decides.
            NodeKind::Distinct { inner, slots } => {
                distinct.get_or_insert_with(|| slots.clone());
                inner
            }
            NodeKind::Group { inner, by, .. } if !by.is_empty() => {
                distinct.get_or_insert_with(|| by.clone());
                inner
            }
            _ => return (layers, distinct, at),
        };
    }
}

type Conjunction = (Vec<LogicalPattern>, Vec<Arc<Expr>>);

/// The patterns and filters whose conjunction a node is, with one solution for each combination of matches.
fn joined_patterns(node: &LogicalNode) -> Option<Conjunction> {
    match &node.kind {
        NodeKind::Bgp(b) if b.patterns.len() <= FEW => {
            Some((b.patterns.clone(), b.filters.clone()))
        }
        NodeKind::Join(parts) if parts.len() <= FEW => {
            let mut out: Conjunction = (vec![], vec![]);
            for part in joins::constants(parts) {
                let (patterns, filters) = joined_patterns(without_modifiers(&part))?;
                add_new(&mut out.0, &patterns);
                out.1.extend(filters);
            }
            Some(out)
        }
        // Without slots of its own, the body has at most one solution for a row.
        NodeKind::Apply {
            input,
            body,
            kind: ApplyKind::Semi,
        } if body.uses.is_within(&input.certain) => {
            let (mut patterns, mut filters) = joined_patterns(input)?;
            let (more, over) = joined_patterns(without_modifiers(body))?;
            add_new(&mut patterns, &more);
            filters.extend(over);
            (patterns.len() <= FEW).then_some((patterns, filters))
        }
        _ => None,
    }
}

/// The node without sub-selects, DISTINCT and ORDER BY at its top that hide no slot and so remove no duplicates.
fn without_modifiers(node: &LogicalNode) -> &LogicalNode {
    let mut at = node;
    loop {
        at = match &at.kind {
            NodeKind::Project(inner) if inner.uses.is_within(&at.certain) => inner,
            NodeKind::OrderBy { inner, .. } => inner,
            NodeKind::Distinct { inner, slots }
                if inner.uses.is_within(&slots.iter().copied().collect()) =>
            {
                inner
            }
            _ => return at,
        };
    }
}

/// Replaces variables that a filter equates with an IRI by the IRI.
fn with_constants(patterns: Vec<LogicalPattern>, filters: Vec<Arc<Expr>>) -> Conjunction {
    let (mut patterns, mut rest) = (patterns, vec![]);
    for f in filters {
        let Some((slot, term)) = equated(&f) else {
            rest.push(f);
            continue;
        };
        for p in &mut patterns {
            for end in [&mut p.subject, &mut p.predicate, &mut p.object] {
                if *end == PatternTerm::Slot(slot) {
                    *end = PatternTerm::Term(term.clone());
                }
            }
        }
    }
    (patterns, rest)
}

/// The slot and the IRI that a filter equates, if that is all it does.
fn equated(f: &Expr) -> Option<(Slot, Canonical)> {
    let (v, name) = match &*f.expression {
        Expression::Equal(a, b) | Expression::SameTerm(a, b) => match (&**a, &**b) {
            (Expression::Variable(v), Expression::NamedNode(n))
            | (Expression::NamedNode(n), Expression::Variable(v)) => (v, n),
            _ => return None,
        },
        Expression::In(a, list) => match (&**a, list.as_slice()) {
            (Expression::Variable(v), [Expression::NamedNode(n)]) => (v, n),
            _ => return None,
        },
        _ => return None,
    };
    Some((f.slot(v)?, name.canonical()))
}
