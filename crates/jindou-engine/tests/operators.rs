//! Random operator trees against a model that follows each operator's contract row by row.

use jindou_engine::{CollectSink, ExecOptions, QueryTerms, TermDecoder, execute_streaming};
use jindou_model::{Direction, MemoryBudget, PredicateId, term};
use jindou_plan::{
    Aggregate, AggregateFunction, ApplyKind, Cell, Condition, Count, EdgeList, FarEnd, Form,
    GeneralExpression, GraphRef, JoinKey, JoinKind, Operand, Operator, Path, Plan, Slot, Step,
    StepKind, Weight,
};
use jindou_store::Snapshot;
use jindou_store::testing::store_of;
use oxrdf::{GraphName, NamedNode, Quad, Variable};
use spargebra::algebra::Expression;
use std::collections::{BTreeMap, BTreeSet};

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A cell's value. Terms that a query makes are numbers and booleans; the store has none of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
enum V {
    Id(u32),
    Number(u64),
    Truth(bool),
}

type Row = BTreeMap<Slot, V>;

struct World {
    _folder: tempfile::TempDir,
    snapshot: Snapshot,
    nodes: Vec<u32>,
    /// Subject, predicate, object.
    edges: Vec<(u32, u32, u32)>,
    predicates: Vec<u32>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let iri = |s: String| NamedNode::new_unchecked(format!("http://e/{s}"));
        let n = 4 + rng.below(9);
        let triples: BTreeSet<(usize, usize, usize)> = (0..8 + rng.below(40))
            .map(|_| (rng.below(n), rng.below(3), rng.below(n)))
            .collect();
        let quads: Vec<Quad> = triples
            .iter()
            .map(|&(s, p, o)| {
                Quad::new(
                    iri(format!("n{s}")),
                    iri(format!("p{p}")),
                    iri(format!("n{o}")),
                    GraphName::DefaultGraph,
                )
            })
            .collect();
        let (folder, base) = store_of(&quads);
        let snapshot = Snapshot::of_base(base);
        let id = |s: &str| {
            let mut bytes = vec![];
            term::push_iri(&format!("http://e/{s}"), &mut bytes);
            snapshot.lookup(&bytes)
        };
        let nodes: Vec<u32> = (0..n)
            .filter_map(|i| Some(id(&format!("n{i}"))?.0))
            .collect();
        let predicates: Vec<u32> = (0..3)
            .filter_map(|i| Some(snapshot.predicate_of(id(&format!("p{i}"))?)?.0))
            .collect();
        let edges = triples
            .iter()
            .filter_map(|(s, p, o)| {
                Some((
                    id(&format!("n{s}"))?.0,
                    snapshot.predicate_of(id(&format!("p{p}"))?)?.0,
                    id(&format!("n{o}"))?.0,
                ))
            })
            .collect();
        Self {
            _folder: folder,
            snapshot,
            nodes,
            edges,
            predicates,
        }
    }
}

// ---- the model -----------------------------------------------------------------------------------------

struct Model<'w> {
    world: &'w World,
}

impl Model<'_> {
    fn rows(&self, op: &Operator, outer: &Row) -> Vec<Row> {
        match op {
            Operator::Outer(slots) => vec![
                slots
                    .iter()
                    .filter_map(|s| Some((*s, *outer.get(s)?)))
                    .collect(),
            ],
            Operator::Values { slots, rows } => rows
                .iter()
                .map(|r| {
                    slots
                        .iter()
                        .zip(r)
                        .filter_map(|(s, c)| match c {
                            Cell::Id(v) => Some((*s, V::Id(*v))),
                            _ => None,
                        })
                        .collect()
                })
                .collect(),
            Operator::Steps { input, steps } => {
                let mut rows = self.rows(input, outer);
                for step in steps {
                    rows = rows.iter().flat_map(|r| self.step(step, r)).collect();
                }
                rows
            }
            Operator::Path {
                input,
                subject,
                path,
                object,
                ..
            } => {
                let pairs = self.pairs(path);
                let mut out = vec![];
                for row in self.rows(input, outer) {
                    let known = |e: &FarEnd| match e {
                        FarEnd::Known(Operand::Const(v)) => Some(*v),
                        FarEnd::Known(Operand::Slot(s)) => match row.get(s) {
                            Some(V::Id(v)) => Some(*v),
                            _ => panic!("a known end is unbound"),
                        },
                        FarEnd::Bind(_) => None,
                    };
                    let (s, o) = (known(subject), known(object));
                    for &(a, b) in &pairs {
                        if s.is_some_and(|s| s != a) || o.is_some_and(|o| o != b) {
                            continue;
                        }
                        let mut row = row.clone();
                        let mut fits = true;
                        for (end, v) in [(subject, a), (object, b)] {
                            if let FarEnd::Bind(slot) = end {
                                fits &= *row.entry(*slot).or_insert(V::Id(v)) == V::Id(v);
                            }
                        }
                        if fits {
                            out.push(row);
                        }
                    }
                }
                out
            }
            Operator::Filter(input, c) => self
                .rows(input, outer)
                .into_iter()
                .filter(|r| truth(c, r) == Some(true))
                .collect(),
            Operator::Extend { input, to, value } => {
                let Expression::Coalesce(list) = &value.expression else {
                    panic!()
                };
                let slots: Vec<Slot> = list
                    .iter()
                    .map(|e| {
                        let Expression::Variable(v) = e else { panic!() };
                        value.variables.iter().find(|x| x.0 == *v).unwrap().1
                    })
                    .collect();
                let mut rows = self.rows(input, outer);
                for r in &mut rows {
                    if let Some(v) = slots.iter().find_map(|s| r.get(s)).copied() {
                        r.insert(*to, v);
                    }
                }
                rows
            }
            Operator::Union(list) => list.iter().flat_map(|i| self.rows(i, outer)).collect(),
            Operator::Join {
                kind,
                left,
                right,
                condition,
                ..
            } => {
                let right = self.rows(right, outer);
                let mut out = vec![];
                for l in self.rows(left, outer) {
                    let pairs: Vec<Row> = right
                        .iter()
                        .filter(|r| *kind != JoinKind::Minus || r.keys().any(|k| l.contains_key(k)))
                        .filter_map(|r| merged(&l, r))
                        .filter(|r| condition.as_ref().is_none_or(|c| truth(c, r) == Some(true)))
                        .collect();
                    match kind {
                        JoinKind::Inner => out.extend(pairs),
                        JoinKind::Left if pairs.is_empty() => out.push(l),
                        JoinKind::Left => out.extend(pairs),
                        JoinKind::Semi if !pairs.is_empty() => out.push(l),
                        JoinKind::Anti | JoinKind::Minus if pairs.is_empty() => out.push(l),
                        _ => {}
                    }
                }
                out
            }
            Operator::Apply {
                input, inner, kind, ..
            } => {
                let mut out = vec![];
                for l in self.rows(input, outer) {
                    let found = self.rows(inner, &l);
                    let any = !found.is_empty();
                    let pairs: Vec<Row> = found.iter().filter_map(|r| merged(&l, r)).collect();
                    match kind {
                        ApplyKind::Inner => out.extend(pairs),
                        ApplyKind::Left if pairs.is_empty() => out.push(l),
                        ApplyKind::Left => out.extend(pairs),
                        ApplyKind::Semi if any => out.push(l),
                        ApplyKind::Anti if !any => out.push(l),
                        ApplyKind::Mark(to) => {
                            let mut l = l;
                            l.insert(*to, V::Truth(any));
                            out.push(l);
                        }
                        _ => {}
                    }
                }
                out
            }
            Operator::Distinct(input, slots) => {
                let rows: BTreeSet<Row> = self
                    .rows(input, outer)
                    .into_iter()
                    .map(|r| only(&r, slots))
                    .collect();
                rows.into_iter().collect()
            }
            Operator::Group {
                input,
                by,
                aggregates,
            } => {
                let counts: Vec<Count> = aggregates
                    .iter()
                    .map(|a| Count {
                        to: a.to,
                        of: a.of,
                        distinct: a.distinct,
                        row: a.row.clone(),
                    })
                    .collect();
                counted(&self.rows(input, outer), by, &counts)
            }
            Operator::Count {
                input,
                group,
                counts,
            } => counted(&self.rows(input, outer), group, counts),
            Operator::OrderBy(input, _) => self.rows(input, outer),
            Operator::Slice { .. }
            | Operator::Reduced(..)
            | Operator::Explore(_)
            | Operator::Service(_) => panic!("not in random trees"),
        }
    }

    fn step(&self, step: &Step, row: &Row) -> Vec<Row> {
        let of = |o: &Operand| match o {
            Operand::Const(v) => *v,
            Operand::Slot(s) => match row.get(s) {
                Some(V::Id(v)) => *v,
                _ => panic!("a step reads an unbound slot"),
            },
        };
        let neighbours = |l: &EdgeList| -> Vec<u32> {
            let v = of(&l.anchor);
            let edges = self.world.edges.iter().filter(|e| e.1 == l.predicate.0);
            match l.direction {
                Direction::Out => edges.filter(|e| e.0 == v).map(|e| e.2).collect(),
                Direction::In => edges.filter(|e| e.2 == v).map(|e| e.0).collect(),
            }
        };
        match &step.kind {
            StepKind::Expand { to, lists, .. } => neighbours(&lists[0])
                .into_iter()
                .filter(|v| lists[1..].iter().all(|l| neighbours(l).contains(v)))
                .map(|v| {
                    let mut r = row.clone();
                    r.insert(*to, V::Id(v));
                    r
                })
                .collect(),
            StepKind::Check { list, other } => {
                if neighbours(list).contains(&of(other)) {
                    vec![row.clone()]
                } else {
                    vec![]
                }
            }
            _ => panic!(),
        }
    }

    /// All pairs of a path, by definition.
    fn pairs(&self, path: &Path) -> BTreeSet<(u32, u32)> {
        let nodes: BTreeSet<u32> = self.world.edges.iter().flat_map(|e| [e.0, e.2]).collect();
        let same = || nodes.iter().map(|n| (*n, *n)).collect::<BTreeSet<_>>();
        let after = |a: &BTreeSet<(u32, u32)>, b: &BTreeSet<(u32, u32)>| {
            a.iter()
                .flat_map(|x| b.iter().filter(|y| x.1 == y.0).map(|y| (x.0, y.1)))
                .collect::<BTreeSet<_>>()
        };
        match path {
            Path::Predicate(p) => self
                .world
                .edges
                .iter()
                .filter(|e| p.is_some_and(|p| p.0 == e.1))
                .map(|e| (e.0, e.2))
                .collect(),
            Path::Inverse(p) => self.pairs(p).into_iter().map(|(a, b)| (b, a)).collect(),
            Path::Sequence(list) => list
                .iter()
                .map(|p| self.pairs(p))
                .reduce(|a, b| after(&a, &b))
                .unwrap(),
            Path::Alternative(list) => list.iter().flat_map(|p| self.pairs(p)).collect(),
            Path::ZeroOrOne(p) => &self.pairs(p) | &same(),
            Path::OneOrMore(p) | Path::ZeroOrMore(p) => {
                let one = self.pairs(p);
                let mut all = one.clone();
                loop {
                    let more = &all | &after(&all, &one);
                    if more == all {
                        break;
                    }
                    all = more;
                }
                if matches!(path, Path::ZeroOrMore(_)) {
                    all = &all | &same();
                }
                all
            }
            Path::Except(not) => self
                .world
                .edges
                .iter()
                .filter(|e| !not.iter().any(|p| p.0 == e.1))
                .map(|e| (e.0, e.2))
                .collect(),
        }
    }
}

fn only(row: &Row, slots: &[Slot]) -> Row {
    slots
        .iter()
        .filter_map(|s| Some((*s, *row.get(s)?)))
        .collect()
}

fn merged(a: &Row, b: &Row) -> Option<Row> {
    let mut out = a.clone();
    for (s, v) in b {
        if *out.entry(*s).or_insert(*v) != *v {
            return None;
        }
    }
    Some(out)
}

fn counted(rows: &[Row], by: &[Slot], counts: &[Count]) -> Vec<Row> {
    let mut groups: BTreeMap<Row, Vec<&Row>> = BTreeMap::new();
    if by.is_empty() {
        groups.insert(Row::new(), vec![]);
    }
    for r in rows {
        groups.entry(only(r, by)).or_default().push(r);
    }
    groups
        .into_iter()
        .map(|(mut key, rows)| {
            for c in counts {
                let n = match (c.of, c.distinct) {
                    (None, false) => rows.len(),
                    (None, true) => rows
                        .iter()
                        .map(|r| only(r, &c.row))
                        .collect::<BTreeSet<_>>()
                        .len(),
                    (Some(s), false) => rows.iter().filter(|r| r.contains_key(&s)).count(),
                    (Some(s), true) => rows
                        .iter()
                        .filter_map(|r| r.get(&s))
                        .collect::<BTreeSet<_>>()
                        .len(),
                };
                key.insert(c.to, V::Number(n as u64));
            }
            key
        })
        .collect()
}

fn truth(c: &Condition, row: &Row) -> Option<bool> {
    let of = |o: &Operand| match o {
        Operand::Const(v) => Some(V::Id(*v)),
        Operand::Slot(s) => row.get(s).copied(),
    };
    match c {
        Condition::Same(a, b) => Some(of(a)? == of(b)?),
        Condition::Bound(s) => Some(row.contains_key(s)),
        Condition::Not(c) => truth(c, row).map(|t| !t),
        Condition::And(list) => {
            let all: Vec<_> = list.iter().map(|c| truth(c, row)).collect();
            if all.contains(&Some(false)) {
                Some(false)
            } else {
                all.into_iter().collect::<Option<Vec<_>>>().map(|_| true)
            }
        }
        Condition::Or(list) => {
            let all: Vec<_> = list.iter().map(|c| truth(c, row)).collect();
            if all.contains(&Some(true)) {
                Some(true)
            } else {
                all.into_iter().collect::<Option<Vec<_>>>().map(|_| false)
            }
        }
        _ => panic!(),
    }
}

// ---- random trees --------------------------------------------------------------------------------------

/// Slots of an operator's rows, and whether they are bound in all of them.
type Slots = BTreeMap<Slot, bool>;

struct Maker<'w> {
    rng: Rng,
    world: &'w World,
    /// Slots that hold ids of the store (never numbers or truths) in every row.
    made: BTreeSet<Slot>,
    next: Slot,
}

impl Maker<'_> {
    fn fresh(&mut self) -> Slot {
        self.next += 1;
        self.next
    }

    fn node(&mut self) -> u32 {
        self.world.nodes[self.rng.below(self.world.nodes.len())]
    }

    fn some(&mut self, slots: &Slots, percent: usize) -> Vec<Slot> {
        slots
            .keys()
            .copied()
            .filter(|_| self.rng.chance(percent))
            .collect()
    }

    /// Slots that a step may read.
    fn sure(&mut self, slots: &Slots) -> Option<Slot> {
        let list: Vec<Slot> = slots
            .iter()
            .filter(|(s, sure)| **sure && !self.made.contains(s))
            .map(|s| *s.0)
            .collect();
        (!list.is_empty()).then(|| list[self.rng.below(list.len())])
    }

    fn values(&mut self) -> (Operator, Slots) {
        let slots: Vec<Slot> = (0..5).filter(|_| self.rng.chance(45)).collect();
        let holes: Vec<bool> = slots.iter().map(|_| self.rng.chance(40)).collect();
        let most = if self.rng.chance(10) { 300 } else { 12 };
        let n = if self.rng.chance(10) {
            0
        } else {
            self.rng.below(most)
        };
        let rows = (0..n)
            .map(|_| {
                holes
                    .iter()
                    .map(|&h| {
                        if h && self.rng.chance(30) {
                            Cell::Unbound
                        } else {
                            Cell::Id(self.node())
                        }
                    })
                    .collect()
            })
            .collect();
        let known = slots
            .iter()
            .copied()
            .zip(holes.iter().map(|h| !h))
            .collect();
        (Operator::Values { slots, rows }, known)
    }

    fn condition(&mut self, slots: &Slots, depth: usize) -> Condition {
        let list: Vec<Slot> = slots.keys().copied().chain([99]).collect();
        let slot = |me: &mut Self| list[me.rng.below(list.len())];
        match self.rng.below(if depth == 0 { 3 } else { 6 }) {
            0 => Condition::Bound(slot(self)),
            1 => Condition::Same(Operand::Slot(slot(self)), Operand::Const(self.node())),
            2 => Condition::Same(Operand::Slot(slot(self)), Operand::Slot(slot(self))),
            3 => Condition::Not(Box::new(self.condition(slots, depth - 1))),
            n => {
                let two = vec![
                    self.condition(slots, depth - 1),
                    self.condition(slots, depth - 1),
                ];
                if n == 4 {
                    Condition::And(two)
                } else {
                    Condition::Or(two)
                }
            }
        }
    }

    fn list(&mut self, anchor: Slot) -> EdgeList {
        EdgeList {
            anchor: Operand::Slot(anchor),
            predicate: self.predicate(),
            direction: if self.rng.chance(50) {
                Direction::Out
            } else {
                Direction::In
            },
            graph: GraphRef::Default,
        }
    }

    fn predicate(&mut self) -> PredicateId {
        PredicateId(self.world.predicates[self.rng.below(self.world.predicates.len())])
    }

    fn steps(&mut self, input: Operator, mut slots: Slots) -> (Operator, Slots) {
        let mut steps = vec![];
        for _ in 0..1 + self.rng.below(2) {
            let Some(a) = self.sure(&slots) else { break };
            let Some(b) = self.sure(&slots) else { break };
            let kind = if self.rng.chance(70) {
                let to = self.fresh();
                slots.insert(to, true);
                let mut lists = vec![self.list(a)];
                if self.rng.chance(25) {
                    lists.push(self.list(b));
                }
                StepKind::Expand {
                    to,
                    lists,
                    within: None,
                }
            } else {
                StepKind::Check {
                    list: self.list(a),
                    other: Operand::Slot(b),
                }
            };
            steps.push(Step {
                kind,
                filters: vec![],
                live: slots.keys().copied().collect(),
                rows: 1.0,
                cost: 1.0,
                why: String::new(),
            });
        }
        if steps.is_empty() {
            return (input, slots);
        }
        let input = Box::new(input);
        (Operator::Steps { input, steps }, slots)
    }

    fn path(&mut self, depth: usize) -> Path {
        let inner = |me: &mut Self| Box::new(me.path(depth - 1));
        match self.rng.below(if depth == 0 { 2 } else { 8 }) {
            0 => Path::Predicate(Some(self.predicate())),
            1 => Path::Except(vec![self.predicate()]),
            2 => Path::Inverse(inner(self)),
            3 => Path::Sequence(vec![*inner(self), *inner(self)]),
            4 => Path::Alternative(vec![*inner(self), *inner(self)]),
            5 => Path::ZeroOrOne(inner(self)),
            6 => Path::ZeroOrMore(inner(self)),
            _ => Path::OneOrMore(inner(self)),
        }
    }

    fn with_path(&mut self, input: Operator, mut slots: Slots) -> (Operator, Slots) {
        let end = |me: &mut Self| match me.sure(&slots) {
            Some(s) if me.rng.chance(60) => FarEnd::Known(Operand::Slot(s)),
            _ if me.rng.chance(30) => FarEnd::Known(Operand::Const(me.node())),
            _ => FarEnd::Bind(me.fresh()),
        };
        let subject = end(self);
        let mut object = end(self);
        if let (FarEnd::Bind(_), true) = (subject, self.rng.chance(20)) {
            object = subject;
        }
        for e in [subject, object] {
            if let FarEnd::Bind(s) = e {
                slots.insert(s, true);
            }
        }
        let inner = Box::new(self.path(1));
        let path = match self.rng.below(3) {
            0 => Path::ZeroOrOne(inner),
            1 => Path::ZeroOrMore(inner),
            _ => Path::OneOrMore(inner),
        };
        let op = Operator::Path {
            input: Box::new(input),
            subject,
            path,
            object,
            graph: GraphRef::Default,
        };
        (op, slots)
    }

    fn extend(&mut self, input: Operator, mut slots: Slots) -> (Operator, Slots) {
        let from: Vec<Slot> = self.some(&slots, 50);
        let to = self.fresh();
        let sure = from.iter().any(|s| slots[s]);
        if from.iter().any(|s| self.made.contains(s)) {
            self.made.insert(to);
        }
        slots.insert(to, sure);
        let name = |s: &Slot| Variable::new_unchecked(format!("v{s}"));
        let value = GeneralExpression {
            expression: Expression::Coalesce(from.iter().map(|s| name(s).into()).collect()),
            variables: from.iter().map(|s| (name(s), *s)).collect(),
            base_iri: None,
            per_row: false,
        };
        let input = Box::new(input);
        (Operator::Extend { input, to, value }, slots)
    }

    /// A tree. `outer`: the slots of the rows around it, if it is dependent; `wise`: it may only use what runs on many rows.
    fn tree(&mut self, depth: usize, outer: Option<&Slots>, wise: bool) -> (Operator, Slots) {
        if depth == 0 {
            return match outer {
                Some(o) if wise || self.rng.chance(60) => {
                    let kept = self.some(o, 80);
                    let slots = kept.iter().map(|s| (*s, o[s])).collect();
                    (Operator::Outer(kept), slots)
                }
                _ => self.values(),
            };
        }
        let below = |me: &mut Self| me.tree(depth - 1, outer, wise);
        match self.rng.below(if wise { 9 } else { 16 }) {
            0 => {
                let (input, slots) = below(self);
                let c = self.condition(&slots, 2);
                (Operator::Filter(Box::new(input), c), slots)
            }
            1 | 2 => {
                let (input, slots) = below(self);
                self.steps(input, slots)
            }
            3 => {
                let (input, slots) = below(self);
                self.extend(input, slots)
            }
            4 => {
                let (input, slots) = below(self);
                self.with_path(input, slots)
            }
            5 => {
                let n = 1 + self.rng.below(3);
                let parts: Vec<_> = (0..n).map(|_| below(self)).collect();
                let mut slots = Slots::new();
                for s in parts.iter().flat_map(|p| p.1.keys()) {
                    let sure = parts.iter().all(|p| p.1.get(s) == Some(&true));
                    slots.insert(*s, sure);
                }
                (
                    Operator::Union(parts.into_iter().map(|p| p.0).collect()),
                    slots,
                )
            }
            6 => below(self),
            7 | 8 => self.apply(depth, outer, wise),
            9..=12 => self.join(depth, outer),
            13 => {
                let (input, slots) = below(self);
                let kept = self.some(&slots, 60);
                let left = kept.iter().map(|s| (*s, slots[s])).collect();
                (Operator::Distinct(Box::new(input), kept), left)
            }
            _ => self.group(depth, outer),
        }
    }

    fn join(&mut self, depth: usize, outer: Option<&Slots>) -> (Operator, Slots) {
        let (left, l) = self.tree(depth - 1, outer, false);
        let (right, r) = self.tree(depth - 1, outer, false);
        let on = l
            .iter()
            .filter_map(|(s, sure)| {
                Some(JoinKey {
                    slot: *s,
                    left_bound: *sure,
                    right_bound: *r.get(s)?,
                })
            })
            .collect();
        let kind = [
            JoinKind::Inner,
            JoinKind::Left,
            JoinKind::Semi,
            JoinKind::Anti,
            JoinKind::Minus,
        ][self.rng.below(5)];
        let mut both = l.clone();
        for (s, sure) in &r {
            let e = both.entry(*s).or_insert(false);
            *e |= *sure && kind == JoinKind::Inner;
        }
        let condition = (!matches!(kind, JoinKind::Inner | JoinKind::Minus) && self.rng.chance(50))
            .then(|| self.condition(&both, 1));
        let slots = if matches!(kind, JoinKind::Inner | JoinKind::Left) {
            both
        } else {
            l
        };
        let op = Operator::Join {
            kind,
            left: Box::new(left),
            right: Box::new(right),
            on,
            condition,
        };
        (op, slots)
    }

    fn apply(&mut self, depth: usize, outer: Option<&Slots>, wise: bool) -> (Operator, Slots) {
        let (input, mut slots) = self.tree(depth - 1, outer, wise);
        let each_row = self.rng.chance(40);
        let (inner, i) = self.tree(depth - 1, Some(&slots), !each_row);
        let kind = match self.rng.below(5) {
            0 => ApplyKind::Inner,
            1 => ApplyKind::Left,
            2 => ApplyKind::Semi,
            3 => ApplyKind::Anti,
            _ => {
                let to = self.fresh();
                self.made.insert(to);
                ApplyKind::Mark(to)
            }
        };
        match kind {
            ApplyKind::Inner | ApplyKind::Left => {
                for (s, sure) in i {
                    let e = slots.entry(s).or_insert(false);
                    *e |= sure && kind == ApplyKind::Inner;
                }
            }
            ApplyKind::Mark(to) => {
                slots.insert(to, true);
            }
            _ => {}
        }
        let op = Operator::Apply {
            input: Box::new(input),
            inner: Box::new(inner),
            kind,
            each_row,
        };
        (op, slots)
    }

    fn group(&mut self, depth: usize, outer: Option<&Slots>) -> (Operator, Slots) {
        let (input, slots) = self.tree(depth - 1, outer, false);
        let by = self.some(&slots, 30);
        let mut out: Slots = by.iter().map(|s| (*s, slots[s])).collect();
        let all: Vec<Slot> = slots.keys().copied().collect();
        let counts: Vec<Count> = (0..self.rng.below(3))
            .map(|_| {
                let to = self.fresh();
                self.made.insert(to);
                out.insert(to, true);
                let of = (!all.is_empty() && self.rng.chance(60))
                    .then(|| all[self.rng.below(all.len())]);
                Count {
                    to,
                    of,
                    distinct: self.rng.chance(40),
                    row: all.clone(),
                }
            })
            .collect();
        let input = Box::new(input);
        if self.rng.chance(50) {
            let op = Operator::Count {
                input,
                group: by,
                counts,
            };
            return (op, out);
        }
        let aggregates = counts
            .into_iter()
            .map(|c| Aggregate {
                to: c.to,
                function: match c.of {
                    None => AggregateFunction::CountRows,
                    Some(_) => AggregateFunction::Count,
                },
                of: c.of,
                distinct: c.distinct,
                row: c.row,
            })
            .collect();
        (
            Operator::Group {
                input,
                by,
                aggregates,
            },
            out,
        )
    }
}

// ---- running -------------------------------------------------------------------------------------------

fn plan_of(root: Operator, output: Vec<Slot>, world: &World, weight: Weight) -> Plan {
    let slots = output.iter().max().map_or(0, |m| *m as usize + 1);
    Plan {
        columns: vec![],
        form: Form::Select,
        slots: (0..slots).map(|s| format!("v{s}")).collect(),
        output,
        root,
        cost: 0.0,
        weight,
        epoch: world.snapshot.base().epoch(),
        snapshot: world.snapshot.number(),
    }
}

fn run(world: &World, plan: &Plan, options: &ExecOptions) -> jindou_model::Result<Vec<Row>> {
    let terms = QueryTerms::new();
    let mut sink = CollectSink::default();
    execute_streaming(plan, &world.snapshot, options, &terms, &mut sink)?;
    let mut decoder = TermDecoder::new(&world.snapshot, &terms);
    Ok(sink
        .rows()
        .map(|r| {
            plan.output
                .iter()
                .zip(r)
                .filter(|c| *c.1 != 0)
                .map(|(s, &id)| {
                    let v = match decoder.term(id).unwrap().unwrap() {
                        oxrdf::Term::Literal(l) => match l.value() {
                            "true" => V::Truth(true),
                            "false" => V::Truth(false),
                            n => V::Number(n.parse().unwrap()),
                        },
                        _ => V::Id(id),
                    };
                    (*s, v)
                })
                .collect()
        })
        .collect())
}

fn ways() -> Vec<(Weight, ExecOptions)> {
    let mut out = vec![];
    for (weight, threads, batch_rows) in [
        (Weight::Light, 1, 2048),
        (Weight::Light, 1, 16),
        (Weight::Heavy, 3, 16),
    ] {
        let options = ExecOptions {
            threads,
            batch_rows,
            memory: MemoryBudget::new(64 << 20),
            ..ExecOptions::default()
        };
        out.push((weight, options));
    }
    out
}

fn many(from: u64, to: u64) {
    let mut skipped = 0;
    for seed in from..to {
        let world = World::new(seed / 20);
        let mut maker = Maker {
            rng: Rng(seed ^ 0xABCD_EF01),
            world: &world,
            made: BTreeSet::new(),
            next: 9,
        };
        let depth = 1 + maker.rng.below(4);
        let (root, slots) = maker.tree(depth, None, false);
        let output: Vec<Slot> = slots.keys().copied().collect();
        if too_large(&root, &world) {
            skipped += 1;
            continue;
        }
        let mut want = Model { world: &world }.rows(&root, &Row::new());
        want.sort();
        for (weight, options) in ways() {
            let plan = plan_of(root.clone(), output.clone(), &world, weight);
            let mut got = run(&world, &plan, &options)
                .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{root:#?}"));
            got.sort();
            assert!(
                got == want,
                "seed {seed} threads {} batch {}: got {} rows {:?}\nwant {} rows {:?}\n{root:#?}",
                options.threads,
                options.batch_rows,
                got.len(),
                got.iter().take(20).collect::<Vec<_>>(),
                want.len(),
                want.iter().take(20).collect::<Vec<_>>(),
            );
            assert_eq!(
                options.memory.used(),
                0,
                "seed {seed}: memory is not given back"
            );
        }
    }
    assert!(
        skipped * 2 < to - from,
        "{skipped} trees were too large to compare"
    );
}

/// Products of products: the model would take too long. Measured by the engine's own number of rows, with a limit.
fn too_large(root: &Operator, world: &World) -> bool {
    fn parts<'o>(op: &'o Operator, out: &mut Vec<&'o Operator>) {
        out.push(op);
        match op {
            Operator::Steps { input, .. }
            | Operator::Path { input, .. }
            | Operator::Filter(input, _)
            | Operator::Extend { input, .. }
            | Operator::Group { input, .. }
            | Operator::Count { input, .. }
            | Operator::Distinct(input, _) => parts(input, out),
            Operator::Join { left, right, .. } => {
                parts(left, out);
                parts(right, out);
            }
            Operator::Apply { input, .. } => parts(input, out),
            Operator::Union(list) => list.iter().for_each(|i| parts(i, out)),
            _ => {}
        }
    }
    let mut all = vec![];
    parts(root, &mut all);
    all.iter().rev().any(|op| {
        let limited = Operator::Slice {
            input: Box::new((*op).clone()),
            offset: 0,
            limit: Some(1500),
        };
        let plan = plan_of(limited, vec![], world, Weight::Light);
        let rows = run(world, &plan, &ExecOptions::default()).map_or(0, |r| r.len());
        rows >= 1500
    })
}

#[test]
fn random_trees_agree_with_the_model() {
    many(0, 400);
}

/// `cargo test --release -p jindou-engine --test operators -- --ignored`
#[test]
#[ignore = "long: 60,000 trees"]
fn many_random_trees_agree_with_the_model() {
    let seed: u64 = std::env::var("JINDOU_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(1_000_000);
    many(seed, seed + 60_000);
}
