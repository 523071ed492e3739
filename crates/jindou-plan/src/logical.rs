//! A query as a tree over slots, and the rewritings that hold whatever the data: joins are flattened, patterns that
//! are joined become one group, filters sink as deep as their slots are surely bound.

use crate::expression::Expr;
use crate::set::SlotSet;
use crate::{Aggregate, ApplyKind, Endpoint, Service, Slot};
use jindou_syntax::algebra::{Canonical, Expression, PropertyPathExpression};
use rustc_hash::FxHashSet;

/// A row of VALUES.
pub(crate) type Row = Vec<Option<Canonical>>;

/// One position of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    Slot(Slot),
    Term(Canonical),
}

/// The graph position of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Default,
    Named(Canonical),
    Slot(Slot),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pattern {
    pub subject: End,
    pub predicate: End,
    pub object: End,
    pub place: Place,
}

impl Pattern {
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        let graph = match self.place {
            Place::Slot(g) => Some(g),
            _ => None,
        };
        [&self.subject, &self.predicate, &self.object]
            .map(|e| match e {
                End::Slot(s) => Some(*s),
                End::Term(_) => None,
            })
            .into_iter()
            .chain([graph])
            .flatten()
    }
}

/// Joined patterns and filters over their slots.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bgp {
    pub patterns: Vec<Pattern>,
    pub filters: Vec<Expr>,
}

/// Patterns up to which a list is searched rather than hashed.
const FEW: usize = 32;

/// Adds the patterns that are not there yet.
pub(crate) fn add_new(to: &mut Vec<Pattern>, more: &[Pattern]) {
    if more.len() <= 4 || to.len() + more.len() <= FEW {
        for p in more {
            if !to.contains(p) {
                to.push(p.clone());
            }
        }
        return;
    }
    let there: FxHashSet<Pattern> = to.iter().cloned().collect();
    let mut new: FxHashSet<&Pattern> = FxHashSet::default();
    for p in more {
        if !there.contains(p) && new.insert(p) {
            to.push(p.clone());
        }
    }
}

/// A property path with `?`, `*` or `+` on top, or a sequence with such parts.
#[derive(Clone, Debug)]
pub(crate) struct PathNode {
    pub subject: End,
    pub path: PropertyPathExpression,
    pub object: End,
    pub place: Place,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Bgp(Bgp),
    /// The named graphs, one a row.
    Graphs(Slot),
    /// One empty row if the named graph is there.
    HasGraph(Canonical),
    Path(PathNode),
    Values {
        slots: Vec<Slot>,
        /// `None` is UNDEF.
        rows: Vec<Row>,
    },
    Service(Service),
    Join(Vec<Node>),
    LeftJoin {
        left: Box<Node>,
        right: Box<Node>,
        condition: Vec<Expr>,
    },
    Minus {
        left: Box<Node>,
        right: Box<Node>,
    },
    Union(Vec<Node>),
    Filter {
        inner: Box<Node>,
        filters: Vec<Expr>,
    },
    Extend {
        inner: Box<Node>,
        to: Slot,
        value: Expr,
    },
    /// `body` with the slots of a row of `input` bound: EXISTS, LATERAL, a group evaluated for each graph.
    Apply {
        input: Box<Node>,
        body: Box<Node>,
        kind: ApplyKind,
    },
    Group {
        inner: Box<Node>,
        by: Vec<Slot>,
        aggregates: Vec<Aggregate>,
    },
    OrderBy {
        inner: Box<Node>,
        keys: Vec<(Slot, bool)>,
    },
    Distinct {
        inner: Box<Node>,
        slots: Vec<Slot>,
    },
    Reduced {
        inner: Box<Node>,
        slots: Vec<Slot>,
    },
    Slice {
        inner: Box<Node>,
        offset: u64,
        limit: Option<u64>,
    },
    /// A sub-query's SELECT: hides the other slots.
    Project(Box<Node>),
}

/// A part of the query.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub kind: Kind,
    /// Slots of variables in scope that every solution binds.
    pub certain: SlotSet,
    /// Slots of variables in scope that a solution may bind.
    pub possible: SlotSet,
    /// Every slot that is mentioned somewhere inside.
    pub uses: SlotSet,
}

impl Node {
    fn of(kind: Kind, certain: SlotSet, possible: SlotSet, uses: SlotSet) -> Self {
        Self {
            kind,
            certain,
            possible,
            uses,
        }
    }

    /// One empty solution.
    pub(crate) fn unit() -> Self {
        Self::bgp(vec![], SlotSet::default())
    }

    pub(crate) fn is_unit(&self) -> bool {
        matches!(&self.kind, Kind::Bgp(b) if b.patterns.is_empty() && b.filters.is_empty())
    }

    /// Patterns; `hidden` slots (the graph's) are bound but not in scope.
    pub(crate) fn bgp(patterns: Vec<Pattern>, hidden: SlotSet) -> Self {
        let uses: SlotSet = patterns.iter().flat_map(Pattern::slots).collect();
        // The graph variable may be an end as well; then it is in scope.
        let ends: SlotSet = patterns
            .iter()
            .flat_map(|p| [&p.subject, &p.predicate, &p.object])
            .filter_map(|e| match e {
                End::Slot(s) => Some(*s),
                End::Term(_) => None,
            })
            .collect();
        let visible = uses.minus(&hidden.minus(&ends));
        let filters = vec![];
        Self::of(
            Kind::Bgp(Bgp { patterns, filters }),
            visible.clone(),
            visible,
            uses,
        )
    }

    pub(crate) fn graphs(slot: Slot) -> Self {
        let none = SlotSet::default;
        Self::of(Kind::Graphs(slot), none(), none(), SlotSet::one(slot))
    }

    pub(crate) fn has_graph(bytes: Canonical) -> Self {
        let none = SlotSet::default;
        Self::of(Kind::HasGraph(bytes), none(), none(), none())
    }

    pub(crate) fn path(path: PathNode) -> Self {
        let ends: SlotSet = [&path.subject, &path.object]
            .into_iter()
            .filter_map(|e| match e {
                End::Slot(s) => Some(*s),
                End::Term(_) => None,
            })
            .collect();
        let mut uses = ends.clone();
        if let Place::Slot(g) = path.place {
            uses.insert(g);
        }
        Self::of(Kind::Path(path), ends.clone(), ends, uses)
    }

    pub(crate) fn values(slots: Vec<Slot>, rows: Vec<Row>) -> Self {
        let possible: SlotSet = slots.iter().copied().collect();
        let certain = slots
            .iter()
            .enumerate()
            .filter(|(i, _)| rows.iter().all(|r| r.get(*i).is_some_and(Option::is_some)))
            .map(|(_, s)| *s)
            .collect();
        let uses = possible.clone();
        Self::of(Kind::Values { slots, rows }, certain, possible, uses)
    }

    pub(crate) fn service(service: Service) -> Self {
        let slots: SlotSet = service.slots.iter().map(|s| s.1).collect();
        let mut uses = slots.clone();
        if let Endpoint::Slot(slot) = service.endpoint {
            uses.insert(slot);
        }
        Self::of(Kind::Service(service), SlotSet::default(), slots, uses)
    }

    pub(crate) fn union(branches: Vec<Self>) -> Self {
        let mut all = vec![];
        for b in branches {
            match b.kind {
                // What all of it binds (the graph that it is in) each part binds.
                Kind::Union(inner) => all.extend(inner.into_iter().map(|mut part| {
                    part.certain.add(&b.certain);
                    part.possible.add(&b.certain);
                    part.uses.add(&b.certain);
                    part
                })),
                _ => all.push(b),
            }
        }
        let mut parts = all.iter();
        let Some(first) = parts.next() else {
            return Self::values(vec![], vec![]);
        };
        let (mut certain, mut possible, mut uses) = (
            first.certain.clone(),
            first.possible.clone(),
            first.uses.clone(),
        );
        for p in parts {
            certain = certain.and(&p.certain);
            possible.add(&p.possible);
            uses.add(&p.uses);
        }
        Self::of(Kind::Union(all), certain, possible, uses)
    }

    /// Both, in any order: joins are flat, and all patterns among their parts are one group. What only adds to or
    /// drops rows of one side is done after the join where that is the same.
    pub(crate) fn join(left: Self, right: Self) -> Self {
        if left.is_unit() {
            return right;
        }
        if right.is_unit() {
            return left;
        }
        let (left, right) = match left.lift_over(right) {
            Ok(done) => return done,
            Err(pair) => *pair,
        };
        let (right, left) = match right.lift_over(left) {
            Ok(done) => return done,
            Err(pair) => *pair,
        };
        // Of the sides, not of the parts: a part in GRAPH ?g does not have ?g in scope, the whole has.
        let (certain, possible, uses) = (
            left.certain.or(&right.certain),
            left.possible.or(&right.possible),
            left.uses.or(&right.uses),
        );
        let list = |side: Self| match side.kind {
            Kind::Join(list) => list,
            _ => vec![side],
        };
        // The left side's own list: a long join is built part by part, and none of its parts may move for each.
        let mut parts = list(left);
        for part in list(right) {
            part.add_to(&mut parts);
        }
        if parts.len() == 1
            && let Some(one) = parts.pop()
        {
            return Self::of(one.kind, certain, possible, uses);
        }
        Self::of(Kind::Join(parts), certain, possible, uses)
    }

    fn add_to(self, parts: &mut Vec<Self>) {
        if let Kind::Bgp(new) = &self.kind
            && let Some(old) = parts.iter_mut().find(|p| matches!(p.kind, Kind::Bgp(_)))
            && let Kind::Bgp(bgp) = &mut old.kind
        {
            // The same pattern twice constrains nothing more: a group is a conjunction, each match unique.
            add_new(&mut bgp.patterns, &new.patterns);
            bgp.filters.extend(new.filters.iter().cloned());
            old.certain.add(&self.certain);
            old.possible.add(&self.possible);
            old.uses.add(&self.uses);
            return;
        }
        parts.push(self);
    }

    /// `left` ⋈ `other` with `left`'s top operator on top of the join, if that means the same.
    fn lift_over(self, other: Self) -> Result<Self, Box<(Self, Self)>> {
        // Slots that the operator reads or adds, and those of its input that are surely bound.
        let (reads, input) = match &self.kind {
            Kind::LeftJoin {
                left,
                right,
                condition,
            } => {
                let mut reads = right.uses.clone();
                for c in condition {
                    reads.add(&c.slots());
                }
                (reads, left)
            }
            Kind::Minus { left, right } => (right.uses.clone(), left),
            Kind::Extend { inner, to, value } if !value.per_row => {
                let mut reads = value.slots();
                reads.insert(*to);
                (reads, inner)
            }
            Kind::Apply {
                input,
                body,
                kind: ApplyKind::Semi | ApplyKind::Anti,
            } => (body.uses.clone(), input),
            Kind::Filter { inner, filters } if filters.iter().all(|f| !f.per_row) => {
                let reads = filters
                    .iter()
                    .fold(SlotSet::default(), |a, f| a.or(&f.slots()));
                (reads, inner)
            }
            _ => return Err(Box::new((self, other))),
        };
        let same = reads.and(&other.uses).is_within(&input.certain);
        if !same {
            return Err(Box::new((self, other)));
        }
        // Also what only the whole has in scope: the graph's variable.
        let (certain, possible, uses) = (self.certain, self.possible, self.uses);
        let mut lifted = match self.kind {
            Kind::LeftJoin {
                left,
                right,
                condition,
            } => Self::left_join(Self::join(*left, other), *right, condition),
            Kind::Minus { left, right } => Self::minus(Self::join(*left, other), *right),
            Kind::Extend { inner, to, value } => Self::join(*inner, other).extend(to, value),
            Kind::Apply { input, body, kind } => Self::join(*input, other).apply(*body, kind),
            Kind::Filter { inner, filters } => Self::join(*inner, other).filter(filters),
            kind => {
                let whole = Self::of(kind, certain, possible, uses);
                return Err(Box::new((whole, other)));
            }
        };
        lifted.certain.add(&certain);
        lifted.possible.add(&possible);
        lifted.uses.add(&uses);
        Ok(lifted)
    }

    pub(crate) fn left_join(left: Self, right: Self, condition: Vec<Expr>) -> Self {
        if right.is_unit() && condition.is_empty() {
            return left;
        }
        let (certain, possible) = (left.certain.clone(), left.possible.or(&right.possible));
        let mut uses = left.uses.or(&right.uses);
        for c in &condition {
            uses.add(&c.slots());
        }
        // A condition over the right side alone may as well hold inside it.
        let (inside, condition): (Vec<Expr>, Vec<Expr>) = condition.into_iter().partition(|c| {
            let slots = c.slots();
            !c.per_row && !slots.is_empty() && slots.is_within(&right.certain)
        });
        let (right, condition) = crate::keyed::keyed(&left, right.filter(inside), condition);
        let kind = Kind::LeftJoin {
            left: Box::new(left),
            right: Box::new(right),
            condition,
        };
        Self::of(kind, certain, possible, uses)
    }

    pub(crate) fn minus(left: Self, right: Self) -> Self {
        if !left.possible.meets(&right.possible) {
            return left;
        }
        let (certain, possible) = (left.certain.clone(), left.possible.clone());
        let uses = left.uses.or(&right.uses);
        let kind = Kind::Minus {
            left: Box::new(left),
            right: Box::new(right),
        };
        Self::of(kind, certain, possible, uses)
    }

    pub(crate) fn extend(self, to: Slot, value: Expr) -> Self {
        let bound = match &*value.expression {
            Expression::NamedNode(_) | Expression::Literal(_) => true,
            Expression::Variable(v) => value.slot(v).is_some_and(|s| self.certain.has(s)),
            _ => false,
        };
        let mut certain = self.certain.clone();
        if bound {
            certain.insert(to);
        }
        let (mut possible, mut uses) = (self.possible.clone(), self.uses.or(&value.slots()));
        possible.insert(to);
        uses.insert(to);
        let inner = Box::new(self);
        Self::of(Kind::Extend { inner, to, value }, certain, possible, uses)
    }

    pub(crate) fn apply(self, body: Self, kind: ApplyKind) -> Self {
        let (mut certain, mut possible) = (self.certain.clone(), self.possible.clone());
        let mut uses = self.uses.or(&body.uses);
        match kind {
            ApplyKind::Inner => {
                certain.add(&body.certain);
                possible.add(&body.possible);
            }
            ApplyKind::Left => possible.add(&body.possible),
            ApplyKind::Semi | ApplyKind::Anti => {}
            ApplyKind::Mark(s) => {
                certain.insert(s);
                possible.insert(s);
                uses.insert(s);
            }
        }
        let kind = Kind::Apply {
            input: Box::new(self),
            body: Box::new(body),
            kind,
        };
        Self::of(kind, certain, possible, uses)
    }

    pub(crate) fn group(self, by: Vec<Slot>, aggregates: Vec<Aggregate>) -> Self {
        use crate::AggregateFunction::{Count, CountRows};
        let keys: SlotSet = by.iter().copied().collect();
        let mut certain = keys.and(&self.certain);
        let mut possible = keys.and(&self.possible);
        let mut uses = self.uses.or(&keys);
        for a in &aggregates {
            if matches!(a.function, Count | CountRows) {
                certain.insert(a.to);
            }
            possible.insert(a.to);
            uses.insert(a.to);
        }
        let kind = Kind::Group {
            inner: Box::new(self),
            by,
            aggregates,
        };
        Self::of(kind, certain, possible, uses)
    }

    /// A node above that keeps the slots in scope as they are.
    pub(crate) fn above(self, kind: impl FnOnce(Box<Self>) -> Kind) -> Self {
        let (certain, possible, uses) = (
            self.certain.clone(),
            self.possible.clone(),
            self.uses.clone(),
        );
        Self::of(kind(Box::new(self)), certain, possible, uses)
    }

    pub(crate) fn project(self, visible: &SlotSet) -> Self {
        let (certain, possible, uses) = (
            self.certain.and(visible),
            self.possible.and(visible),
            self.uses.clone(),
        );
        Self::of(Kind::Project(Box::new(self)), certain, possible, uses)
    }

    /// Adds the graph variable to the scope, whose graphs the solutions come from.
    pub(crate) fn in_graph(mut self, g: Slot) -> Self {
        self.certain.insert(g);
        self.possible.insert(g);
        self.uses.insert(g);
        self
    }

    /// Keeps solutions on which all are true. Filters sink.
    pub(crate) fn filter(self, filters: Vec<Expr>) -> Self {
        filters.into_iter().fold(self, Self::filter_one)
    }

    fn filter_one(mut self, f: Expr) -> Self {
        let slots = f.slots();
        if f.per_row {
            return self.filter_here(f);
        }
        match &mut self.kind {
            Kind::Bgp(b) if slots.is_within(&self.certain) => {
                b.filters.push(f);
                return self;
            }
            Kind::Join(parts) if !slots.is_empty() => {
                let mut sunk = false;
                for p in parts.iter_mut() {
                    if slots.is_within(&p.certain) {
                        sunk = true;
                        p.replace(|p| p.filter_one(f.clone()));
                    }
                }
                if sunk {
                    return self;
                }
            }
            Kind::Union(branches) => {
                // A branch that lacks a slot sees it unbound, as the row above would.
                for b in branches.iter_mut() {
                    b.replace(|b| b.filter_one(f.clone()));
                }
                self.uses.add(&slots);
                return self;
            }
            Kind::LeftJoin { left, .. } | Kind::Minus { left, .. }
                if slots.is_within(&left.certain) =>
            {
                left.replace(|l| l.filter_one(f));
                return self;
            }
            Kind::Apply { input, kind, .. }
                if slots.is_within(&input.certain)
                    && matches!(kind, ApplyKind::Semi | ApplyKind::Anti | ApplyKind::Mark(_)) =>
            {
                input.replace(|i| i.filter_one(f));
                return self;
            }
            Kind::Extend { inner, to, value }
                if !slots.has(*to) && !value.per_row && slots.is_within(&inner.certain) =>
            {
                inner.replace(|i| i.filter_one(f));
                return self;
            }
            Kind::Filter { inner, .. }
            | Kind::Distinct { inner, .. }
            | Kind::Reduced { inner, .. }
            | Kind::OrderBy { inner, .. }
            | Kind::Project(inner)
                if !slots.is_empty() && slots.is_within(&inner.certain) =>
            {
                inner.replace(|i| i.filter_one(f));
                return self;
            }
            Kind::Group { inner, by, .. }
                if !slots.is_empty()
                    && slots.is_within(&inner.certain)
                    && slots.iter().all(|s| by.contains(&s)) =>
            {
                inner.replace(|i| i.filter_one(f));
                return self;
            }
            _ => {}
        }
        self.filter_here(f)
    }

    fn replace(&mut self, f: impl FnOnce(Self) -> Self) {
        let own = std::mem::replace(self, Self::values(vec![], vec![]));
        *self = f(own);
    }

    fn filter_here(mut self, f: Expr) -> Self {
        self.uses.add(&f.slots());
        if let Kind::Filter { filters, .. } = &mut self.kind {
            filters.push(f);
            return self;
        }
        self.above(|inner| Kind::Filter {
            inner,
            filters: vec![f],
        })
    }
}
