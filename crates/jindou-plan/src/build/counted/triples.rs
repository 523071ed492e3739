//! The triples that a group counts: those of one pattern, or of a pattern next to the class of one of its ends. Between
//! the triples and the group there may be filters, BIND, DISTINCT and sub-selects.

use super::patterns::{joined_patterns, with_constants};
use super::*;
use crate::TermTest;
use crate::expression::walk;
use crate::logical::LogicalPattern;
use jindou_graph::counts::CountedGraphs;
use jindou_graph::segment::GraphScope;
use jindou_syntax::algebra::{Function, Variable};
use jindou_values::{NumericKind, Value, value};

/// A set of columns of triples, as bits.
pub(super) type Columns = u8;
pub(super) const SUBJECT: Columns = 1;
pub(super) const PREDICATE: Columns = 2;
pub(super) const OBJECT: Columns = 4;
pub(super) const GRAPH: Columns = 8;
/// The kind of the subject or object: IRI, blank node, triple term, or literal of some datatype and language.
pub(super) const SUBJECT_KIND: Columns = 16;
pub(super) const OBJECT_KIND: Columns = 32;

/// The columns, and kinds, that these columns determine.
pub(super) fn determined(columns: Columns) -> Columns {
    columns | kinds_of(columns)
}

/// The kinds of the ends among some columns.
pub(super) fn kinds_of(columns: Columns) -> Columns {
    let kind = |end: Columns, kind: Columns| if columns & end != 0 { kind } else { 0 };
    kind(SUBJECT, SUBJECT_KIND) | kind(OBJECT, OBJECT_KIND)
}

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
    /// A sum, or the number of bound ones, of values that depend on these columns only. Repeated rows matter.
    Weighted(Columns),
}

/// Predicate and tags of some triples, where they are known.
#[derive(Clone, Copy, Default)]
pub(super) struct Known {
    /// The predicate, as a vertex.
    pub predicate: Option<u32>,
    /// The tags of the subjects and of the objects.
    pub tags: [Option<u8>; 2],
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

    /// The columns that an expression reads, or of which it reads the kind only; `None` if it also reads anything else.
    fn read_by(&self, e: &Expr) -> Option<Columns> {
        let end = |v: &Variable| self.column(e.slot(v)?).filter(|c| kinds_of(*c) != 0);
        // Numbers of occurrences of the ends other than as the argument of a function of their kind.
        let mut whole = [0i64; 2];
        let mut note = |v: &Variable, n: i64| match end(v) {
            Some(SUBJECT) => whole[0] += n,
            Some(_) => whole[1] += n,
            None => {}
        };
        walk(&e.expression, &mut |part| match part {
            Expression::Variable(v) => note(v, 1),
            Expression::FunctionCall(f, arguments) if is_of_kind(f) => {
                if let [Expression::Variable(v)] = arguments.as_slice() {
                    note(v, -1);
                }
            }
            _ => {}
        });
        let mut each = e.variables.iter().map(|v| match self.origin(v.1)? {
            Origin::Column(SUBJECT) if whole[0] == 0 => Some(SUBJECT_KIND),
            Origin::Column(OBJECT) if whole[1] == 0 => Some(OBJECT_KIND),
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
                Origin::Computed(_) if certain.has(of) => Some(Wanted::Number(self.rows)),
                Origin::Computed(c) => Some(Wanted::Weighted(c)),
            },
            (Sum, Some(of), false) => match self.origin(of)? {
                Origin::Computed(c) if self.is_exact(c) => Some(Wanted::Weighted(c)),
                _ => None,
            },
            // SAMPLE and GROUP_CONCAT depend on the order of the rows.
            (Min | Max | Sum | Avg, Some(of), _) if a.is_idempotent() => match self.origin(of)? {
                Origin::Column(c) | Origin::Computed(c) => Some(Wanted::Whole(c)),
            },
            _ => None,
        }
    }

    /// True if numbers computed from these columns are integers and decimals. Floats and doubles are rounded, so `n`
    /// times such a number may differ from the sum of `n` of them.
    fn is_exact(&self, columns: Columns) -> bool {
        let mut exact = columns & (SUBJECT | OBJECT) == 0;
        for (layer, _) in &self.layers {
            if let Layer::Extend(_, e) = layer {
                walk(&e.expression, &mut |part| {
                    exact &= match part {
                        Expression::Literal(l) => !is_rounded(l.canonical()),
                        Expression::FunctionCall(f, _) => is_of_kind(f) || *f == Function::StrLen,
                        _ => true,
                    };
                });
            }
        }
        exact
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
        let determined =
            !others && computed & !determined(columns) == 0 && columns & !self.rows == 0;
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

    /// Value of a condition for what is known of some triples. `None` if it depends on anything else or has to be
    /// evaluated.
    pub(super) fn holds(&self, c: &Condition, known: Known) -> Option<bool> {
        let all = |list: &[Condition], end: bool| {
            let mut sure = true;
            for c in list {
                match self.holds(c, known) {
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
                (self.column(*s)? == PREDICATE).then_some(known.predicate? == *id)
            }
            Condition::Same(Operand::Slot(a), Operand::Slot(b)) => {
                (self.column(*a)? == self.column(*b)?).then_some(true)
            }
            Condition::Kind(slot, test) => match (self.column(*slot)?, test) {
                (PREDICATE, test) => Some(*test == TermTest::Iri),
                (SUBJECT, TermTest::Literal | TermTest::Numeric) => Some(false),
                (SUBJECT, test) => has_tag(known.tags[0]?, *test),
                (OBJECT, test) => has_tag(known.tags[1]?, *test),
                _ => None,
            },
            Condition::Bound(slot) => self.column(*slot).map(|_| true),
            Condition::And(list) => all(list, false),
            Condition::Or(list) if self.are_resources(list) => Some(true),
            Condition::Or(list) => all(list, true),
            Condition::Not(c) => self.holds(c, known).map(|b| !b),
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
        let (above, distinct, core) = self.unwrapped(node);
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
            if computed & !determined(columns) != 0 {
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
    pub(super) fn seen_graphs(&self, place: &PatternGraphTerm) -> Option<SeenGraphs> {
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
                if to.holds(&self.compiled(f, to), Known::default()) != Some(true) {
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

/// True for functions whose value depends only on the kind of their argument.
fn is_of_kind(f: &Function) -> bool {
    matches!(
        f,
        Function::IsIri
            | Function::IsBlank
            | Function::IsLiteral
            | Function::IsTriple
            | Function::Datatype
            | Function::Lang
            | Function::LangDir
            | Function::HasLang
            | Function::HasLangDir
    )
}

/// True for floats and doubles.
fn is_rounded(literal: &[u8]) -> bool {
    let kind = literal.first().copied().and_then(NumericKind::of_tag);
    matches!(kind, Some(NumericKind::Float | NumericKind::Double))
}

/// Result of a test of terms with a tag, if the tag decides it.
fn has_tag(tag: u8, test: TermTest) -> Option<bool> {
    match test {
        TermTest::Iri => Some(tag == term::IRI),
        TermTest::Blank => Some(tag == term::BLANK),
        TermTest::Literal => Some(![term::IRI, term::BLANK, term::TRIPLE].contains(&tag)),
        TermTest::Numeric => None,
    }
}
