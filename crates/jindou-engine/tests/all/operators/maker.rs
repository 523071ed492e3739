//! Makes random operator trees that satisfy the contracts of a plan.

use super::world::World;
use crate::support::Rng;
use jindou_model::{Direction, PredicateId};
use jindou_plan::operator;
use jindou_plan::{
    Aggregate, AggregateFunction, ApplyKind, Cell, Condition, Count, EdgeList, FarEnd,
    GeneralExpression, GraphRef, JoinKey, JoinKind, Match, MatchBy, Operand, Operator, Path,
    Relation, Slot, Step, StepKind,
};

use jindou_plan::sparql::{Expression, Variable};
use std::collections::{BTreeMap, BTreeSet};

/// Slots of an operator's rows, with true for those that are bound in all of them.
pub type Slots = BTreeMap<Slot, bool>;

pub struct Maker<'w> {
    pub rng: Rng,
    pub world: &'w World,
    /// Slots that may have computed terms (numbers or booleans), which steps must not read.
    pub made: BTreeSet<Slot>,
    pub next: Slot,
}

impl Maker<'_> {
    pub fn fresh(&mut self) -> Slot {
        self.next += 1;
        self.next
    }

    /// A new slot for a computed term.
    fn mark(&mut self) -> Slot {
        let to = self.fresh();
        self.made.insert(to);
        to
    }

    pub fn node(&mut self) -> u32 {
        self.world.nodes[self.rng.below(self.world.nodes.len())]
    }

    pub fn some(&mut self, slots: &Slots, percent: usize) -> Vec<Slot> {
        slots
            .keys()
            .copied()
            .filter(|_| self.rng.chance(percent))
            .collect()
    }

    /// A random slot that a step may read.
    pub fn sure(&mut self, slots: &Slots) -> Option<Slot> {
        let list: Vec<Slot> = slots
            .iter()
            .filter(|(s, sure)| **sure && !self.made.contains(s))
            .map(|s| *s.0)
            .collect();
        (!list.is_empty()).then(|| list[self.rng.below(list.len())])
    }

    pub fn values(&mut self) -> (Operator, Slots) {
        let slots: Vec<Slot> = (0..5).filter(|_| self.rng.chance(45)).collect();
        let holes: Vec<bool> = slots.iter().map(|_| self.rng.chance(40)).collect();
        let most = if self.rng.chance(10) { 300 } else { 12 };
        let n = match self.rng.chance(10) {
            true => 0,
            false => self.rng.below(most),
        };
        let rows = (0..n)
            .map(|_| {
                holes
                    .iter()
                    .map(|&h| match h && self.rng.chance(30) {
                        true => Cell::Unbound,
                        false => Cell::Id(self.node()),
                    })
                    .collect()
            })
            .collect();
        let known = slots
            .iter()
            .copied()
            .zip(holes.iter().map(|h| !h))
            .collect();
        (Operator::Values(operator::Values { slots, rows }), known)
    }

    pub fn condition(&mut self, slots: &Slots, depth: usize) -> Condition {
        let list: Vec<Slot> = slots.keys().copied().chain([99]).collect();
        let slot = |me: &mut Self| list[me.rng.below(list.len())];
        let inner = |me: &mut Self| me.condition(slots, depth - 1);
        match self.rng.below(if depth == 0 { 3 } else { 6 }) {
            0 => Condition::Bound(slot(self)),
            1 => Condition::Same(Operand::Slot(slot(self)), Operand::Const(self.node())),
            2 => Condition::Same(Operand::Slot(slot(self)), Operand::Slot(slot(self))),
            3 => Condition::Not(Box::new(inner(self))),
            4 => Condition::And(vec![inner(self), inner(self)]),
            _ => Condition::Or(vec![inner(self), inner(self)]),
        }
    }

    pub fn list(&mut self, anchor: Slot) -> EdgeList {
        EdgeList {
            anchor: Operand::Slot(anchor),
            predicate: self.predicate(),
            direction: [Direction::In, Direction::Out][usize::from(self.rng.chance(50))],
            graph: GraphRef::Default,
        }
    }

    pub fn predicate(&mut self) -> PredicateId {
        PredicateId(self.world.predicates[self.rng.below(self.world.predicates.len())])
    }

    pub fn steps(&mut self, input: Operator, mut slots: Slots) -> (Operator, Slots) {
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
        (Operator::Steps(operator::Steps { input, steps }), slots)
    }

    pub fn path(&mut self, depth: usize) -> Path {
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

    pub fn with_path(&mut self, input: Operator, mut slots: Slots) -> (Operator, Slots) {
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
        let op = Operator::Path(operator::FollowPath {
            input: Box::new(input),
            subject,
            path,
            object,
            graph: GraphRef::Default,
            nodes: self.rng.chance(50),
            each: 1.0,
            visited: 1.0,
        });
        (op, slots)
    }

    pub fn extend(&mut self, input: Operator, mut slots: Slots) -> (Operator, Slots) {
        let from: Vec<Slot> = self.some(&slots, 50);
        let to = self.fresh();
        let sure = from.iter().any(|s| slots[s]);
        if from.iter().any(|s| self.made.contains(s)) {
            self.made.insert(to);
        }
        slots.insert(to, sure);
        let name = |s: &Slot| Variable::new_unchecked(format!("v{s}"));
        let value = GeneralExpression {
            expression: std::sync::Arc::new(Expression::Coalesce(
                from.iter().map(|s| name(s).into()).collect(),
            )),
            variables: from.iter().map(|s| (name(s), *s)).collect(),
            base_iri: None,
            functions: jindou_plan::Functions::new(),
            per_row: false,
            asked: None,
        };
        let op = operator::Extend {
            input: Box::new(input),
            to,
            value,
            is_computed_above: false,
        };
        (op.into(), slots)
    }

    /// A random tree. `outer` are the slots of the outer rows if it is dependent; `wise` trees contain only operators
    /// that run on a batch of outer rows at once.
    pub fn tree(&mut self, depth: usize, outer: Option<&Slots>, wise: bool) -> (Operator, Slots) {
        if depth == 0 {
            return match outer {
                Some(o) if wise || self.rng.chance(60) => {
                    let kept = self.some(o, 80);
                    let slots = kept.iter().map(|s| (*s, o[s])).collect();
                    (Operator::Outer(operator::Outer { slots: kept }), slots)
                }
                _ => self.values(),
            };
        }
        let below = |me: &mut Self| me.tree(depth - 1, outer, wise);
        match self.rng.below(if wise { 9 } else { 16 }) {
            0 => {
                let (input, slots) = below(self);
                let condition = self.condition(&slots, 2);
                let input = Box::new(input);
                (operator::Filter { input, condition }.into(), slots)
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
                let inputs = parts.into_iter().map(|p| p.0).collect();
                (operator::Union { inputs }.into(), slots)
            }
            6 => below(self),
            7 | 8 => self.apply(depth, outer, wise),
            9..=12 => self.join(depth, outer),
            13 => {
                let (input, slots) = below(self);
                let (input, kept) = (Box::new(input), self.some(&slots, 60));
                let left = kept.iter().map(|s| (*s, slots[s])).collect();
                let slots = kept;
                (operator::Distinct { input, slots }.into(), left)
            }
            _ => self.group(depth, outer),
        }
    }

    pub fn join(&mut self, depth: usize, outer: Option<&Slots>) -> (Operator, Slots) {
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
        let kind = match self.rng.below(6) {
            0 => JoinKind::Inner,
            1 => JoinKind::Left,
            2 => JoinKind::Semi,
            3 => JoinKind::Anti,
            4 => JoinKind::Minus,
            _ => JoinKind::Mark(self.mark()),
        };
        let mut both = l.clone();
        for (s, sure) in &r {
            let e = both.entry(*s).or_insert(false);
            *e |= *sure && kind == JoinKind::Inner;
        }
        let (mut matches, mut either) = (vec![], vec![]);
        if kind != JoinKind::Minus && self.rng.chance(60) {
            let is_either = self.rng.chance(40);
            for _ in 0..1 + self.rng.below(3) {
                const ORDERS: [Relation; 4] = [
                    Relation::Less,
                    Relation::LessOrEqual,
                    Relation::Greater,
                    Relation::GreaterOrEqual,
                ];
                let rng = &mut self.rng;
                let mut pick =
                    |from: &Slots| from.keys().nth(rng.below(from.len().max(1))).copied();
                if let (Some(left), Some(right)) = (pick(&l), pick(&r)) {
                    let by = match rng.below(if is_either { 4 } else { 6 }) {
                        0 | 1 => MatchBy::Term,
                        2 | 3 => MatchBy::Value,
                        _ => MatchBy::Order(*rng.pick(&ORDERS)),
                    };
                    let one = Match { left, right, by };
                    if is_either { &mut either } else { &mut matches }.push(one);
                }
            }
        }
        let condition = (!matches!(kind, JoinKind::Inner | JoinKind::Minus) && self.rng.chance(50))
            .then(|| self.condition(&both, 1));
        let mut slots = if kind.gives_pairs() { both } else { l };
        if let JoinKind::Mark(to) = kind {
            slots.insert(to, true);
        }
        let op = Operator::Join(operator::Join {
            kind,
            left: Box::new(left),
            right: Box::new(right),
            on,
            condition,
            matches,
            either,
        });
        (op, slots)
    }

    pub fn apply(&mut self, depth: usize, outer: Option<&Slots>, wise: bool) -> (Operator, Slots) {
        let (input, mut slots) = self.tree(depth - 1, outer, wise);
        let each_row = self.rng.chance(40);
        let (inner, i) = self.tree(depth - 1, Some(&slots), !each_row);
        let kind = match self.rng.below(5) {
            0 => ApplyKind::Inner,
            1 => ApplyKind::Left,
            2 => ApplyKind::Semi,
            3 => ApplyKind::Anti,
            _ => ApplyKind::Mark(self.mark()),
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
        let op = Operator::Apply(operator::Apply {
            input: Box::new(input),
            inner: Box::new(inner),
            kind,
            each_row,
        });
        (op, slots)
    }

    pub fn group(&mut self, depth: usize, outer: Option<&Slots>) -> (Operator, Slots) {
        let (input, slots) = self.tree(depth - 1, outer, false);
        let by = self.some(&slots, 30);
        let mut out: Slots = by.iter().map(|s| (*s, slots[s])).collect();
        let all: Vec<Slot> = slots.keys().copied().collect();
        let counts: Vec<Count> = (0..self.rng.below(3))
            .map(|_| {
                let to = self.mark();
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
            let group = by;
            let op = operator::GroupCount {
                input,
                group,
                counts,
            };
            return (op.into(), out);
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
        let op = operator::Group {
            input,
            by,
            aggregates,
        };
        (op.into(), out)
    }
}
