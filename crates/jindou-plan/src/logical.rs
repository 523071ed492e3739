//! A query as a tree over slots, and the rewritings that hold whatever the data: joins are flattened, patterns that
//! are joined become one group, filters sink as deep as their slots are surely bound.

mod copied;
mod sink;

use crate::expression::Expr;
use crate::set::SlotSet;
use crate::{Aggregate, ApplyKind, Endpoint, Service, Slot};
use jindou_syntax::algebra::{Canonical, Expression, PropertyPathExpression};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use std::hash::BuildHasher;
use std::sync::Arc;

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

/// Joined patterns and filters over their slots. Conditions are shared by all places that test them, never copied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bgp {
    pub patterns: Vec<Pattern>,
    pub filters: Vec<Arc<Expr>>,
    /// Places of patterns by their hashes, as far as someone had to find them among many.
    places: FxHashMap<u64, usize>,
    /// Patterns that are in `places`.
    placed: usize,
}

/// Patterns up to which a list is searched rather than hashed.
const FEW: usize = 32;

impl Bgp {
    pub(crate) fn new(patterns: Vec<Pattern>, filters: Vec<Arc<Expr>>) -> Self {
        Self {
            patterns,
            filters,
            ..Self::default()
        }
    }

    /// Adds the patterns that are not there yet: the same pattern twice constrains nothing more, since a group is a conjunction
    /// and each match unique.
    fn add(&mut self, more: Vec<Pattern>) {
        if self.patterns.len() + more.len() <= FEW {
            add_new(&mut self.patterns, &more);
            return;
        }
        let hash = |p: &Pattern| FxBuildHasher.hash_one(p);
        if self.placed > self.patterns.len() {
            (self.placed, self.places) = (0, FxHashMap::default());
        }
        for (at, p) in self.patterns.iter().enumerate().skip(self.placed) {
            self.places.entry(hash(p)).or_insert(at);
        }
        for p in more {
            match self.places.entry(hash(&p)) {
                Entry::Occupied(o) if self.patterns.get(*o.get()) == Some(&p) => {}
                entry => {
                    entry.or_insert(self.patterns.len());
                    self.patterns.push(p);
                }
            }
        }
        self.placed = self.patterns.len();
    }
}

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

#[derive(Debug)]
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
        condition: Vec<Arc<Expr>>,
    },
    Minus {
        left: Box<Node>,
        right: Box<Node>,
    },
    Union(Vec<Node>),
    Filter {
        inner: Box<Node>,
        filters: Vec<Arc<Expr>>,
    },
    Extend {
        inner: Box<Node>,
        to: Slot,
        value: Arc<Expr>,
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
#[derive(Debug)]
pub(crate) struct Node {
    pub kind: Kind,
    /// Slots of variables in scope that every solution binds.
    pub certain: SlotSet,
    /// Slots of variables in scope that a solution may bind.
    pub possible: SlotSet,
    /// Every slot that is mentioned somewhere inside.
    pub uses: SlotSet,
    pub(crate) size: Size,
    /// Of a join, where its patterns were seen last.
    pub(crate) group: Option<usize>,
}

/// The amount of work that a part of the query is, which bounds how often conditions may be repeated in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Size {
    /// Nodes.
    nodes: usize,
    /// Weight of the conditions that sank to more than one place.
    repeated: usize,
    /// Whether a path is what may connect it with other parts.
    has_path: bool,
}

impl Size {
    fn and(self, other: Self) -> Self {
        Self {
            nodes: self.nodes + other.nodes,
            repeated: self.repeated + other.repeated,
            has_path: self.has_path || other.has_path,
        }
    }
}

impl Node {
    /// A node with the size of its inputs; a join's or a union's is set by its creator.
    fn of(kind: Kind, certain: SlotSet, possible: SlotSet, uses: SlotSet) -> Self {
        let inside = match &kind {
            Kind::Join(_)
            | Kind::Union(_)
            | Kind::Bgp(_)
            | Kind::Graphs(_)
            | Kind::HasGraph(_)
            | Kind::Path(_)
            | Kind::Values { .. }
            | Kind::Service(_) => Size {
                has_path: matches!(kind, Kind::Path(_)),
                ..Size::default()
            },
            Kind::LeftJoin { left, right, .. } | Kind::Minus { left, right } => {
                left.size.and(right.size)
            }
            Kind::Apply { input, body, .. } => input.size.and(body.size),
            Kind::Filter { inner, .. }
            | Kind::Extend { inner, .. }
            | Kind::Group { inner, .. }
            | Kind::OrderBy { inner, .. }
            | Kind::Distinct { inner, .. }
            | Kind::Reduced { inner, .. }
            | Kind::Slice { inner, .. }
            | Kind::Project(inner) => inner.size,
        };
        let connects = matches!(
            kind,
            Kind::Path(_) | Kind::Filter { .. } | Kind::Extend { .. } | Kind::Project(_)
        );
        let has_path = connects && inside.has_path;
        Self {
            kind,
            certain,
            possible,
            uses,
            size: Size {
                nodes: inside.nodes + 1,
                has_path,
                ..inside
            },
            group: None,
        }
    }

    /// Nodes, about.
    pub(crate) fn nodes(&self) -> usize {
        self.size.nodes
    }

    /// True if a path is what may connect it with other parts.
    pub(crate) fn has_path(&self) -> bool {
        self.size.has_path
    }

    fn sized(mut self, size: Size) -> Self {
        self.size = size;
        self
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
            Kind::Bgp(Bgp::new(patterns, filters)),
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
        let (mut certain, mut possible, mut uses, mut size) = (
            first.certain.clone(),
            first.possible.clone(),
            first.uses.clone(),
            first.size,
        );
        for p in parts {
            certain = certain.and(&p.certain);
            possible.add(&p.possible);
            uses.add(&p.uses);
            size = size.and(p.size);
        }
        Self::of(Kind::Union(all), certain, possible, uses).sized(size)
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
        let (right, mut left) = match right.lift_over(left) {
            Ok(done) => return done,
            Err(pair) => *pair,
        };
        // Of the sides, not of the parts: a part in GRAPH ?g does not have ?g in scope, the whole has.
        let (mut certain, mut possible, mut uses) = (
            std::mem::take(&mut left.certain),
            std::mem::take(&mut left.possible),
            std::mem::take(&mut left.uses),
        );
        if !matches!(left.kind, Kind::Join(_)) {
            left.certain = certain.clone();
            left.possible = possible.clone();
            left.uses = uses.clone();
        }
        certain.add(&right.certain);
        possible.add(&right.possible);
        uses.add(&right.uses);
        let size = left.size.and(right.size);
        let list = |side: Self| match side.kind {
            Kind::Join(list) => list,
            _ => vec![side],
        };
        // The left side's own list: a long join is built part by part, and none of its parts may move for each.
        let mut group = left.group;
        let mut parts = list(left);
        for part in list(right) {
            part.add_to(&mut parts, &mut group);
        }
        if parts.len() == 1
            && let Some(one) = parts.pop()
        {
            return Self::of(one.kind, certain, possible, uses).sized(size);
        }
        let mut whole = Self::of(Kind::Join(parts), certain, possible, uses).sized(size);
        whole.group = group;
        whole
    }

    /// Adds a part to a join. `group` is where the join's patterns are, if it has any.
    fn add_to(self, parts: &mut Vec<Self>, group: &mut Option<usize>) {
        let Kind::Bgp(new) = self.kind else {
            parts.push(self);
            return;
        };
        let is_group = |p: &Self| matches!(p.kind, Kind::Bgp(_));
        // A condition may have made something else of it.
        if !group.is_some_and(|at| parts.get(at).is_some_and(is_group)) {
            *group = parts.iter().position(is_group);
        }
        match group.and_then(|at| parts.get_mut(at)) {
            Some(Self {
                kind: Kind::Bgp(bgp),
                certain,
                possible,
                uses,
                ..
            }) => {
                bgp.add(new.patterns);
                bgp.filters.extend(new.filters);
                certain.add(&self.certain);
                possible.add(&self.possible);
                uses.add(&self.uses);
            }
            _ => {
                *group = Some(parts.len());
                parts.push(Self {
                    kind: Kind::Bgp(new),
                    ..self
                });
            }
        }
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
                let mut reads = SlotSet::default();
                filters.iter().for_each(|f| reads.add(&f.slots()));
                (reads, inner)
            }
            _ => return Err(Box::new((self, other))),
        };
        let same = reads.and(&other.uses).is_within(&input.certain);
        if !same {
            return Err(Box::new((self, other)));
        }
        // Also what only the whole has in scope: the graph's variable.
        let size = self.size.and(other.size);
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
                let whole = Self::of(kind, certain, possible, uses).sized(self.size);
                return Err(Box::new((whole, other)));
            }
        };
        lifted.certain.add(&certain);
        lifted.possible.add(&possible);
        lifted.uses.add(&uses);
        lifted.size = Size {
            has_path: lifted.size.has_path,
            ..size
        };
        Ok(lifted)
    }

    pub(crate) fn left_join(left: Self, right: Self, condition: Vec<Arc<Expr>>) -> Self {
        if right.is_unit() && condition.is_empty() {
            return left;
        }
        let (certain, possible) = (left.certain.clone(), left.possible.or(&right.possible));
        let mut uses = left.uses.or(&right.uses);
        for c in &condition {
            uses.add(&c.slots());
        }
        // A condition over the right side alone may as well hold inside it.
        let (inside, condition): (Vec<_>, Vec<_>) = condition.into_iter().partition(|c| {
            let slots = c.slots();
            !c.per_row && !slots.is_empty() && slots.is_within(&right.certain)
        });
        let kind = Kind::LeftJoin {
            left: Box::new(left),
            right: Box::new(right.filter(inside)),
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

    pub(crate) fn extend(self, to: Slot, value: Arc<Expr>) -> Self {
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
}
