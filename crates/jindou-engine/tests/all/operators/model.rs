//! The definition of each operator, computed row by row.

use super::world::{Row, V, World};
use jindou_model::Direction;
use jindou_plan::operator;
use jindou_plan::sparql::Expression;
use jindou_plan::{
    ApplyKind, Cell, Condition, Count, EdgeList, FarEnd, JoinKind, Match, MatchBy, Operand,
    Operator, Path, Relation, Slot, Step, StepKind,
};
use std::collections::{BTreeMap, BTreeSet};

pub struct Model<'w> {
    pub world: &'w World,
}

impl Model<'_> {
    pub fn rows(&self, op: &Operator, outer: &Row) -> Vec<Row> {
        match op {
            Operator::Outer(operator::Outer { slots }) => vec![only(outer, slots)],
            Operator::Values(operator::Values { slots, rows }) => {
                let cell = |(s, c): (&Slot, &Cell)| match c {
                    Cell::Id(v) => Some((*s, V::Id(*v))),
                    _ => None,
                };
                let row = |r: &Vec<Cell>| slots.iter().zip(r).filter_map(cell).collect();
                rows.iter().map(row).collect()
            }
            Operator::Steps(operator::Steps { input, steps }) => {
                let mut rows = self.rows(input, outer);
                for step in steps {
                    rows = rows.iter().flat_map(|r| self.step(step, r)).collect();
                }
                rows
            }
            Operator::Path(path) => self.path_rows(path, outer),
            Operator::Filter(operator::Filter { input, condition }) => {
                let mut rows = self.rows(input, outer);
                rows.retain(|r| truth(condition, r) == Some(true));
                rows
            }
            Operator::Extend(extend) => self.extended(extend, outer),
            Operator::Union(operator::Union { inputs: list }) => {
                list.iter().flat_map(|i| self.rows(i, outer)).collect()
            }
            Operator::Join(join) => self.joined(join, outer),
            Operator::Apply(apply) => self.applied(apply, outer),
            Operator::Distinct(operator::Distinct { input, slots }) => {
                let rows = self.rows(input, outer);
                let rows: BTreeSet<Row> = rows.iter().map(|r| only(r, slots)).collect();
                rows.into_iter().collect()
            }
            Operator::Group(group) => {
                let counts = group.aggregates.iter().map(|a| Count {
                    to: a.to,
                    of: a.of,
                    distinct: a.distinct,
                    row: a.row.clone(),
                });
                let rows = self.rows(&group.input, outer);
                counted(&rows, &group.by, &counts.collect::<Vec<_>>())
            }
            Operator::Count(count) => {
                counted(&self.rows(&count.input, outer), &count.group, &count.counts)
            }
            Operator::OrderBy(operator::OrderBy { input, .. }) => self.rows(input, outer),
            Operator::Slice(_)
            | Operator::Reduced(_)
            | Operator::Explore(_)
            | Operator::Service(_) => panic!("not in random trees"),
        }
    }

    fn path_rows(&self, op: &operator::FollowPath, outer: &Row) -> Vec<Row> {
        let pairs = self.pairs(&op.path);
        let mut out = vec![];
        for row in self.rows(&op.input, outer) {
            let known = |e: &FarEnd| match e {
                FarEnd::Known(Operand::Const(v)) => Some(*v),
                FarEnd::Known(Operand::Slot(s)) => match row.get(s) {
                    Some(V::Id(v)) => Some(*v),
                    _ => panic!("a known end is unbound"),
                },
                FarEnd::Bind(_) => None,
            };
            let (s, o) = (known(&op.subject), known(&op.object));
            for &(a, b) in &pairs {
                if s.is_some_and(|s| s != a) || o.is_some_and(|o| o != b) {
                    continue;
                }
                let mut row = row.clone();
                let mut fits = true;
                for (end, v) in [(&op.subject, a), (&op.object, b)] {
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

    /// Rows of an operator that binds a slot to a COALESCE of variables, the only kind of expression in random trees.
    fn extended(&self, op: &operator::Extend, outer: &Row) -> Vec<Row> {
        let Expression::Coalesce(list) = &*op.value.expression else {
            panic!()
        };
        let slots: Vec<Slot> = list
            .iter()
            .map(|e| {
                let Expression::Variable(v) = e else { panic!() };
                op.value.variables.iter().find(|x| x.0 == *v).unwrap().1
            })
            .collect();
        let mut rows = self.rows(&op.input, outer);
        for r in &mut rows {
            if let Some(v) = slots.iter().find_map(|s| r.get(s)).copied() {
                r.insert(op.to, v);
            }
        }
        rows
    }

    fn joined(&self, op: &operator::Join, outer: &Row) -> Vec<Row> {
        let right = self.rows(&op.right, outer);
        let mut out = vec![];
        for l in self.rows(&op.left, outer) {
            let pairs: Vec<Row> = right
                .iter()
                .filter(|r| op.kind != JoinKind::Minus || r.keys().any(|k| l.contains_key(k)))
                .filter(|r| op.matches.iter().all(|m| is_match(m, &l, r)))
                .filter(|r| op.either.is_empty() || op.either.iter().any(|m| is_match(m, &l, r)))
                .filter_map(|r| merged(&l, r))
                .filter(|r| (op.condition.as_ref()).is_none_or(|c| truth(c, r) == Some(true)))
                .collect();
            match op.kind {
                JoinKind::Inner => out.extend(pairs),
                JoinKind::Left if pairs.is_empty() => out.push(l),
                JoinKind::Left => out.extend(pairs),
                JoinKind::Semi if !pairs.is_empty() => out.push(l),
                JoinKind::Anti | JoinKind::Minus if pairs.is_empty() => out.push(l),
                JoinKind::Mark(to) => {
                    let mut l = l;
                    l.insert(to, V::Truth(!pairs.is_empty()));
                    out.push(l);
                }
                _ => {}
            }
        }
        out
    }

    fn applied(&self, op: &operator::Apply, outer: &Row) -> Vec<Row> {
        let mut out = vec![];
        for l in self.rows(&op.input, outer) {
            let found = self.rows(&op.inner, &l);
            let any = !found.is_empty();
            let pairs: Vec<Row> = found.iter().filter_map(|r| merged(&l, r)).collect();
            match op.kind {
                ApplyKind::Inner => out.extend(pairs),
                ApplyKind::Left if pairs.is_empty() => out.push(l),
                ApplyKind::Left => out.extend(pairs),
                ApplyKind::Semi if any => out.push(l),
                ApplyKind::Anti if !any => out.push(l),
                ApplyKind::Mark(to) => {
                    let mut l = l;
                    l.insert(to, V::Truth(any));
                    out.push(l);
                }
                _ => {}
            }
        }
        out
    }

    pub fn step(&self, step: &Step, row: &Row) -> Vec<Row> {
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
            StepKind::Check { list, other } => match neighbours(list).contains(&of(other)) {
                true => vec![row.clone()],
                false => vec![],
            },
            _ => panic!(),
        }
    }

    /// All pairs of nodes that a path connects, by the definition of SPARQL 1.1 §18.
    pub fn pairs(&self, path: &Path) -> BTreeSet<(u32, u32)> {
        let nodes: BTreeSet<u32> = self.world.edges.iter().flat_map(|e| [e.0, e.2]).collect();
        let same = || nodes.iter().map(|n| (*n, *n)).collect::<BTreeSet<_>>();
        let after = |a: &BTreeSet<(u32, u32)>, b: &BTreeSet<(u32, u32)>| {
            a.iter()
                .flat_map(|x| b.iter().filter(|y| x.1 == y.0).map(|y| (x.0, y.1)))
                .collect::<BTreeSet<_>>()
        };
        let edges = |is_taken: &dyn Fn(u32) -> bool| {
            let taken = self.world.edges.iter().filter(|e| is_taken(e.1));
            taken.map(|e| (e.0, e.2)).collect()
        };
        match path {
            Path::Predicate(p) => edges(&|e| p.is_some_and(|p| p.0 == e)),
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
            Path::Except(not) => edges(&|e| !not.iter().any(|p| p.0 == e)),
        }
    }
}

/// True if both slots are bound and the comparison is true; for IRIs that can only be `=`.
fn is_match(m: &Match, l: &Row, r: &Row) -> bool {
    let (Some(a), Some(b)) = (l.get(&m.left), r.get(&m.right)) else {
        return false;
    };
    let order = match (a, b) {
        (V::Number(a), V::Number(b)) => Some(a.cmp(b)),
        (V::Truth(a), V::Truth(b)) => Some(a.cmp(b)),
        _ => None,
    };
    match (m.by, order) {
        (MatchBy::Term | MatchBy::Value, _) => a == b,
        (MatchBy::Order(_), None) => false,
        (MatchBy::Order(r), Some(o)) => match r {
            Relation::Less => o.is_lt(),
            Relation::LessOrEqual => o.is_le(),
            Relation::Greater => o.is_gt(),
            _ => o.is_ge(),
        },
    }
}

pub fn only(row: &Row, slots: &[Slot]) -> Row {
    let bound = slots.iter().filter_map(|s| Some((*s, *row.get(s)?)));
    bound.collect()
}

pub fn merged(a: &Row, b: &Row) -> Option<Row> {
    let mut out = a.clone();
    for (s, v) in b {
        if *out.entry(*s).or_insert(*v) != *v {
            return None;
        }
    }
    Some(out)
}

pub fn counted(rows: &[Row], by: &[Slot], counts: &[Count]) -> Vec<Row> {
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
                // A row that is counted, or its value, which may be unbound.
                let of = c.of.map(|s| vec![s]);
                let all = rows.iter().map(|r| only(r, of.as_ref().unwrap_or(&c.row)));
                let all = all.filter(|r| of.is_none() || !r.is_empty());
                let n = match c.distinct {
                    false => all.count(),
                    true => all.collect::<BTreeSet<Row>>().len(),
                };
                key.insert(c.to, V::Number(n as u64));
            }
            key
        })
        .collect()
}

pub fn truth(c: &Condition, row: &Row) -> Option<bool> {
    let of = |o: &Operand| match o {
        Operand::Const(v) => Some(V::Id(*v)),
        Operand::Slot(s) => row.get(s).copied(),
    };
    match c {
        Condition::Same(a, b) => Some(of(a)? == of(b)?),
        Condition::Bound(s) => Some(row.contains_key(s)),
        Condition::Not(c) => truth(c, row).map(|t| !t),
        Condition::And(list) | Condition::Or(list) => {
            let decides = matches!(c, Condition::Or(_));
            let all: Vec<_> = list.iter().map(|c| truth(c, row)).collect();
            match all.contains(&Some(decides)) {
                true => Some(decides),
                false if all.contains(&None) => None,
                false => Some(!decides),
            }
        }
        _ => panic!(),
    }
}
