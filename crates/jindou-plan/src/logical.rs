//! A query as a tree over slots, and the rewritings that are valid for any data: nested joins become one join, joined
//! patterns become one group, and filters are pushed down as far as their slots are certain to be bound.

mod copied;
mod sink;

use crate::expression::Expr;
use crate::set::SlotSet;
use crate::{Aggregate, ApplyKind, Service, ServiceEndpoint, Slot};
use jindou_syntax::algebra::{Canonical, Expression, PropertyPathExpression};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use std::hash::BuildHasher;
use std::sync::Arc;

/// A row of VALUES.
pub(crate) type Row = Vec<Option<Canonical>>;

/// One position of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PatternTerm {
    Slot(Slot),
    Term(Canonical),
}

/// The graph position of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PatternGraphTerm {
    Default,
    Named(Canonical),
    Slot(Slot),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LogicalPattern {
    pub subject: PatternTerm,
    pub predicate: PatternTerm,
    pub object: PatternTerm,
    pub place: PatternGraphTerm,
}

impl PatternTerm {
    pub(crate) fn slot(&self) -> Option<Slot> {
        match self {
            Self::Slot(s) => Some(*s),
            Self::Term(_) => None,
        }
    }
}

impl PatternGraphTerm {
    pub(crate) fn slot(&self) -> Option<Slot> {
        match self {
            Self::Slot(g) => Some(*g),
            _ => None,
        }
    }
}

impl LogicalPattern {
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.ends().chain(self.place.slot())
    }

    /// The slots of its subject, predicate and object.
    fn ends(&self) -> impl Iterator<Item = Slot> {
        let ends = [&self.subject, &self.predicate, &self.object];
        ends.into_iter().filter_map(PatternTerm::slot)
    }
}

/// Joined patterns, and filters over their slots. Conditions that are tested in several groups are shared, not copied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bgp {
    pub patterns: Vec<LogicalPattern>,
    pub filters: Vec<Arc<Expr>>,
    /// Positions in `patterns` by the pattern's hash, used if there are many.
    places: FxHashMap<u64, usize>,
    /// Number of patterns that `places` includes.
    placed: usize,
}

/// Number of patterns up to which the list is searched rather than hashed.
const FEW: usize = 32;

impl Bgp {
    pub(crate) fn new(patterns: Vec<LogicalPattern>, filters: Vec<Arc<Expr>>) -> Self {
        Self {
            patterns,
            filters,
            ..Self::default()
        }
    }

    /// Adds the patterns that are not in the group yet. A repeated pattern constrains nothing more, since a group is a
    /// conjunction and each match is unique.
    fn add(&mut self, more: Vec<LogicalPattern>) {
        if self.patterns.len() + more.len() <= FEW {
            add_new(&mut self.patterns, &more);
            return;
        }
        let hash = |p: &LogicalPattern| FxBuildHasher.hash_one(p);
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

/// Adds the patterns of `more` that `to` lacks.
pub(crate) fn add_new(to: &mut Vec<LogicalPattern>, more: &[LogicalPattern]) {
    if more.len() <= 4 || to.len() + more.len() <= FEW {
        for p in more {
            if !to.contains(p) {
                to.push(p.clone());
            }
        }
        return;
    }
    let there: FxHashSet<LogicalPattern> = to.iter().cloned().collect();
    let mut new: FxHashSet<&LogicalPattern> = FxHashSet::default();
    for p in more {
        if !there.contains(p) && new.insert(p) {
            to.push(p.clone());
        }
    }
}

/// A property path with `?`, `*` or `+` at the top, or a sequence with such parts.
#[derive(Clone, Debug)]
pub(crate) struct PathNode {
    pub subject: PatternTerm,
    pub path: PropertyPathExpression,
    pub object: PatternTerm,
    pub place: PatternGraphTerm,
}

#[derive(Debug)]
pub(crate) enum NodeKind {
    Bgp(Bgp),
    /// One row per named graph, with the graph in this slot.
    Graphs(Slot),
    /// One empty row if the named graph exists.
    HasGraph(Canonical),
    Path(PathNode),
    Values {
        slots: Vec<Slot>,
        /// `None` is UNDEF.
        rows: Vec<Row>,
    },
    Service(Service),
    Join(Vec<LogicalNode>),
    LeftJoin {
        left: Box<LogicalNode>,
        right: Box<LogicalNode>,
        condition: Vec<Arc<Expr>>,
    },
    Minus {
        left: Box<LogicalNode>,
        right: Box<LogicalNode>,
    },
    Union(Vec<LogicalNode>),
    Filter {
        inner: Box<LogicalNode>,
        filters: Vec<Arc<Expr>>,
    },
    Extend {
        inner: Box<LogicalNode>,
        to: Slot,
        value: Arc<Expr>,
    },
    /// For each row of `input`, the solutions of `body` with that row's values: EXISTS, LATERAL, a group evaluated per
    /// graph.
    Apply {
        input: Box<LogicalNode>,
        body: Box<LogicalNode>,
        kind: ApplyKind,
    },
    Group {
        inner: Box<LogicalNode>,
        by: Vec<Slot>,
        aggregates: Vec<Aggregate>,
    },
    OrderBy {
        inner: Box<LogicalNode>,
        keys: Vec<(Slot, bool)>,
    },
    Distinct {
        inner: Box<LogicalNode>,
        slots: Vec<Slot>,
    },
    Reduced {
        inner: Box<LogicalNode>,
        slots: Vec<Slot>,
    },
    Slice {
        inner: Box<LogicalNode>,
        offset: u64,
        limit: Option<u64>,
    },
    /// A sub-query's SELECT: hides all other slots.
    Project(Box<LogicalNode>),
}

impl NodeKind {
    /// Calls `f` with each input of the node.
    pub(crate) fn each_input<'a>(&'a self, mut f: impl FnMut(&'a LogicalNode)) {
        match self {
            Self::Join(list) | Self::Union(list) => list.iter().for_each(f),
            Self::LeftJoin {
                left: a, right: b, ..
            }
            | Self::Minus { left: a, right: b }
            | Self::Apply {
                input: a, body: b, ..
            } => {
                f(a);
                f(b);
            }
            Self::Filter { inner, .. }
            | Self::Extend { inner, .. }
            | Self::Group { inner, .. }
            | Self::OrderBy { inner, .. }
            | Self::Distinct { inner, .. }
            | Self::Reduced { inner, .. }
            | Self::Slice { inner, .. }
            | Self::Project(inner) => f(inner),
            Self::Bgp(_)
            | Self::Graphs(_)
            | Self::HasGraph(_)
            | Self::Path(_)
            | Self::Values { .. }
            | Self::Service(_) => {}
        }
    }
}

/// A node of the logical tree.
#[derive(Debug)]
pub(crate) struct LogicalNode {
    pub kind: NodeKind,
    /// Slots of variables in scope that every solution binds.
    pub certain: SlotSet,
    /// Slots of variables in scope that a solution may bind.
    pub possible: SlotSet,
    /// All slots that the node mentions, also those that are not in scope.
    pub uses: SlotSet,
    pub(crate) size: RepeatCost,
    /// For a join: the position of its group of patterns, which may have become outdated.
    pub(crate) group: Option<usize>,
}

/// Size of a part of the query; limits how often conditions may be copied into its branches.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RepeatCost {
    /// Number of nodes.
    nodes: usize,
    /// Total weight of the additional copies of conditions that were pushed down into several branches.
    repeated: usize,
    /// True if the part contains a property path, which may be all that connects it with other parts.
    has_path: bool,
}

impl RepeatCost {
    fn and(self, other: Self) -> Self {
        Self {
            nodes: self.nodes + other.nodes,
            repeated: self.repeated + other.repeated,
            has_path: self.has_path || other.has_path,
        }
    }
}

impl LogicalNode {
    /// Creates a node with the size of its inputs; callers set the size of a join or a union.
    fn new(kind: NodeKind, certain: SlotSet, possible: SlotSet, uses: SlotSet) -> Self {
        use NodeKind::{Extend, Filter, Join, Path, Project, Union};
        let mut inside = RepeatCost {
            has_path: matches!(kind, Path(_)),
            ..RepeatCost::default()
        };
        if !matches!(kind, Join(_) | Union(_)) {
            kind.each_input(|input| inside = inside.and(input.size));
        }
        let connects = matches!(kind, Path(_) | Filter { .. } | Extend { .. } | Project(_));
        let has_path = connects && inside.has_path;
        Self {
            kind,
            certain,
            possible,
            uses,
            size: RepeatCost {
                nodes: inside.nodes + 1,
                has_path,
                ..inside
            },
            group: None,
        }
    }

    /// Approximate number of nodes.
    pub(crate) fn nodes(&self) -> usize {
        self.size.nodes
    }

    /// True if the part contains a property path, which may be all that connects it with other parts.
    pub(crate) fn has_path(&self) -> bool {
        self.size.has_path
    }

    fn sized(mut self, size: RepeatCost) -> Self {
        self.size = size;
        self
    }

    /// Copies of the node's slots: those that are certain, possible, and used.
    fn slots(&self) -> (SlotSet, SlotSet, SlotSet) {
        let (certain, possible) = (self.certain.clone(), self.possible.clone());
        (certain, possible, self.uses.clone())
    }

    /// Adds slots that are certain, possible, and used.
    fn add_slots(&mut self, certain: &SlotSet, possible: &SlotSet, uses: &SlotSet) {
        self.certain.add(certain);
        self.possible.add(possible);
        self.uses.add(uses);
    }

    /// One empty solution.
    pub(crate) fn unit() -> Self {
        Self::bgp(vec![], SlotSet::default())
    }

    pub(crate) fn is_unit(&self) -> bool {
        matches!(&self.kind, NodeKind::Bgp(b) if b.patterns.is_empty() && b.filters.is_empty())
    }

    /// Creates a group of patterns; slots in `hidden` (a graph variable) are bound but not in scope.
    pub(crate) fn bgp(patterns: Vec<LogicalPattern>, hidden: SlotSet) -> Self {
        let uses: SlotSet = patterns.iter().flat_map(LogicalPattern::slots).collect();
        // The graph variable may also be an end of a pattern; then it is in scope.
        let ends: SlotSet = patterns.iter().flat_map(LogicalPattern::ends).collect();
        let visible = uses.minus(&hidden.minus(&ends));
        let kind = NodeKind::Bgp(Bgp::new(patterns, vec![]));
        Self::new(kind, visible.clone(), visible, uses)
    }

    pub(crate) fn graphs(slot: Slot) -> Self {
        let none = SlotSet::default;
        Self::new(NodeKind::Graphs(slot), none(), none(), SlotSet::one(slot))
    }

    pub(crate) fn has_graph(bytes: Canonical) -> Self {
        let none = SlotSet::default;
        Self::new(NodeKind::HasGraph(bytes), none(), none(), none())
    }

    pub(crate) fn path(path: PathNode) -> Self {
        let ends = [path.subject.slot(), path.object.slot()];
        let ends: SlotSet = ends.into_iter().flatten().collect();
        let uses = ends.or(&path.place.slot().into_iter().collect());
        Self::new(NodeKind::Path(path), ends.clone(), ends, uses)
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
        Self::new(NodeKind::Values { slots, rows }, certain, possible, uses)
    }

    pub(crate) fn service(service: Service) -> Self {
        let slots: SlotSet = service.slots.iter().map(|s| s.1).collect();
        let mut uses = slots.clone();
        if let ServiceEndpoint::Slot(slot) = service.endpoint {
            uses.insert(slot);
        }
        Self::new(NodeKind::Service(service), SlotSet::default(), slots, uses)
    }

    pub(crate) fn union(branches: Vec<Self>) -> Self {
        let mut all = vec![];
        for b in branches {
            match b.kind {
                // Slots that are certain in the whole union (such as the variable of a GRAPH around it) are certain in
                // each branch.
                NodeKind::Union(inner) => all.extend(inner.into_iter().map(|mut part| {
                    part.add_slots(&b.certain, &b.certain, &b.certain);
                    part
                })),
                _ => all.push(b),
            }
        }
        let mut parts = all.iter();
        let Some(first) = parts.next() else {
            return Self::values(vec![], vec![]);
        };
        let (mut certain, mut possible, mut uses) = first.slots();
        let mut size = first.size;
        for p in parts {
            certain = certain.and(&p.certain);
            possible.add(&p.possible);
            uses.add(&p.uses);
            size = size.and(p.size);
        }
        Self::new(NodeKind::Union(all), certain, possible, uses).sized(size)
    }

    /// Joins both sides: nested joins become one, and all their patterns become one group. If the top operator of a
    /// side only adds to or drops that side's rows, it moves above the join where that is equivalent.
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
        // The union of the parts' slots would not do: the variable of a GRAPH around a join is in scope of the join but
        // not of its parts.
        let (mut certain, mut possible, mut uses) = (
            std::mem::take(&mut left.certain),
            std::mem::take(&mut left.possible),
            std::mem::take(&mut left.uses),
        );
        if !matches!(left.kind, NodeKind::Join(_)) {
            left.certain = certain.clone();
            left.possible = possible.clone();
            left.uses = uses.clone();
        }
        certain.add(&right.certain);
        possible.add(&right.possible);
        uses.add(&right.uses);
        let size = left.size.and(right.size);
        let list = |side: Self| match side.kind {
            NodeKind::Join(list) => list,
            _ => vec![side],
        };
        // Extends the left side's list in place: long joins are built part by part, and must not be copied for each
        // part.
        let mut group = left.group;
        let mut parts = list(left);
        for part in list(right) {
            part.add_to(&mut parts, &mut group);
        }
        if parts.len() == 1
            && let Some(one) = parts.pop()
        {
            return Self::new(one.kind, certain, possible, uses).sized(size);
        }
        let mut whole = Self::new(NodeKind::Join(parts), certain, possible, uses).sized(size);
        whole.group = group;
        whole
    }

    /// Adds a part to a join. `group` is the last known position of the join's group of patterns, if it has one.
    fn add_to(self, parts: &mut Vec<Self>, group: &mut Option<usize>) {
        let NodeKind::Bgp(new) = self.kind else {
            parts.push(self);
            return;
        };
        let is_group = |p: &Self| matches!(p.kind, NodeKind::Bgp(_));
        // The position is outdated if a condition has replaced the group by another node.
        if !group.is_some_and(|at| parts.get(at).is_some_and(is_group)) {
            *group = parts.iter().position(is_group);
        }
        if let Some(part) = group.and_then(|at| parts.get_mut(at))
            && let NodeKind::Bgp(bgp) = &mut part.kind
        {
            bgp.add(new.patterns);
            bgp.filters.extend(new.filters);
            part.add_slots(&self.certain, &self.possible, &self.uses);
            return;
        }
        *group = Some(parts.len());
        let kind = NodeKind::Bgp(new);
        parts.push(Self { kind, ..self });
    }

    /// `self` ⋈ `other` with the top operator of `self` moved above the join. `Err` with both nodes if that is not
    /// equivalent.
    fn lift_over(self, other: Self) -> Result<Self, Box<(Self, Self)>> {
        // Slots that the operator reads or adds, and the operator's input.
        let (reads, input) = match &self.kind {
            NodeKind::LeftJoin {
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
            NodeKind::Minus { left, right } => (right.uses.clone(), left),
            NodeKind::Extend { inner, to, value } if !value.per_row => {
                let mut reads = value.slots();
                reads.insert(*to);
                (reads, inner)
            }
            NodeKind::Apply {
                input,
                body,
                kind: ApplyKind::Semi | ApplyKind::Anti,
            } => (body.uses.clone(), input),
            NodeKind::Filter { inner, filters } if filters.iter().all(|f| !f.per_row) => {
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
        // Added to the lifted node below, since `self` may have the variable of a GRAPH around it in scope.
        let size = self.size.and(other.size);
        let (certain, possible, uses) = (self.certain, self.possible, self.uses);
        let mut lifted = match self.kind {
            NodeKind::LeftJoin {
                left,
                right,
                condition,
            } => Self::left_join(Self::join(*left, other), *right, condition),
            NodeKind::Minus { left, right } => Self::minus(Self::join(*left, other), *right),
            NodeKind::Extend { inner, to, value } => Self::join(*inner, other).extend(to, value),
            NodeKind::Apply { input, body, kind } => Self::join(*input, other).apply(*body, kind),
            NodeKind::Filter { inner, filters } => Self::join(*inner, other).filter(filters),
            kind => {
                let whole = Self::new(kind, certain, possible, uses).sized(self.size);
                return Err(Box::new((whole, other)));
            }
        };
        lifted.add_slots(&certain, &possible, &uses);
        lifted.size = RepeatCost {
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
        // A condition that reads only the right side is tested inside the right side.
        let (inside, condition): (Vec<_>, Vec<_>) = condition.into_iter().partition(|c| {
            let slots = c.slots();
            !c.per_row && !slots.is_empty() && slots.is_within(&right.certain)
        });
        let kind = NodeKind::LeftJoin {
            left: Box::new(left),
            right: Box::new(right.filter(inside)),
            condition,
        };
        Self::new(kind, certain, possible, uses)
    }

    pub(crate) fn minus(left: Self, right: Self) -> Self {
        if !left.possible.meets(&right.possible) {
            return left;
        }
        let (certain, possible) = (left.certain.clone(), left.possible.clone());
        let uses = left.uses.or(&right.uses);
        let kind = NodeKind::Minus {
            left: Box::new(left),
            right: Box::new(right),
        };
        Self::new(kind, certain, possible, uses)
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
        let kind = NodeKind::Extend { inner, to, value };
        Self::new(kind, certain, possible, uses)
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
        let kind = NodeKind::Apply {
            input: Box::new(self),
            body: Box::new(body),
            kind,
        };
        Self::new(kind, certain, possible, uses)
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
        let kind = NodeKind::Group {
            inner: Box::new(self),
            by,
            aggregates,
        };
        Self::new(kind, certain, possible, uses)
    }

    /// Skips `offset` of the node's rows, then returns at most `limit` (`None`: all).
    pub(crate) fn slice(self, offset: u64, limit: Option<u64>) -> Self {
        self.above(|inner| NodeKind::Slice {
            inner,
            offset,
            limit,
        })
    }

    /// Puts an operator that has the same slots in scope above the node.
    pub(crate) fn above(self, kind: impl FnOnce(Box<Self>) -> NodeKind) -> Self {
        let (certain, possible, uses) = self.slots();
        Self::new(kind(Box::new(self)), certain, possible, uses)
    }

    pub(crate) fn project(self, visible: &SlotSet) -> Self {
        let (certain, possible) = (self.certain.and(visible), self.possible.and(visible));
        let uses = self.uses.clone();
        Self::new(NodeKind::Project(Box::new(self)), certain, possible, uses)
    }

    /// Adds the graph variable of an enclosing GRAPH to the scope; solutions bind it to their graph.
    pub(crate) fn in_graph(mut self, g: Slot) -> Self {
        let g = SlotSet::one(g);
        self.add_slots(&g, &g, &g);
        self
    }
}
