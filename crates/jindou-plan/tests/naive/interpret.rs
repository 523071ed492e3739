//! Carries a plan out as its documentation says, one row at a time over the list of quads.

use super::query::{Case, MAX_ROWS, Term};
use jindou_model::{DEFAULT_GRAPH, Direction, VertexId, term};
use jindou_plan::operator;
use jindou_plan::sparql::Expression;
use jindou_plan::{
    Cell, Condition, EdgeList, FarEnd, GraphRef, IdFilter, JoinKind, MatchBy, Operand, Operator,
    Plan, PredicateRef, Relation, Slot, StartSource, Step, StepKind, TermTest,
};
use jindou_store::Snapshot;
use std::collections::{BTreeMap, BTreeSet};

/// A row: only live columns are in it, so that reading a dropped one is an error.
type Row = BTreeMap<Slot, Value>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Id(u32),
    Number(u64),
}

struct Data<'a> {
    case: &'a Case,
    /// Subject, predicate, object, graph as ids.
    quads: Vec<[u32; 4]>,
}

/// The result's rows as terms; `None` when there are too many on the way.
pub fn run(plan: &Plan, case: &Case) -> Option<Vec<Vec<Term>>> {
    let id = |t: &Term| {
        if t.is_empty() {
            0
        } else {
            case.snapshot
                .lookup(&super::query::bytes(t))
                .expect("a stored term")
                .0
        }
    };
    let quads = case.quads.iter().map(|q| q.each_ref().map(id)).collect();
    let data = Data { case, quads };
    let rows = data.operator(&plan.root)?;
    Some(
        rows.iter()
            .map(|r| {
                plan.output
                    .iter()
                    .map(|s| match r.get(s) {
                        Some(Value::Id(v)) => data.text(*v),
                        Some(Value::Number(n)) => n.to_string(),
                        None => String::new(),
                    })
                    .collect()
            })
            .collect(),
    )
}

impl Data<'_> {
    fn term(&self, v: u32) -> Vec<u8> {
        let mut bytes = vec![];
        assert!(
            self.case.snapshot.term(VertexId(v), &mut bytes),
            "no term {v}"
        );
        bytes
    }

    fn text(&self, v: u32) -> Term {
        match term::parts(&self.term(v)) {
            Some(term::Parts::Iri(i)) => format!("<{i}>"),
            Some(term::Parts::Coded(s, _)) => s.to_owned(),
            other => panic!("{other:?}"),
        }
    }

    fn operator(&self, op: &Operator) -> Option<Vec<Row>> {
        Some(match op {
            Operator::Explore(e) => {
                if e.empty.is_some() {
                    assert!(e.steps.is_empty());
                    return Some(vec![]);
                }
                let mut rows = vec![];
                for (i, step) in e.steps.iter().enumerate() {
                    assert_eq!(
                        i == 0,
                        matches!(step.kind, StepKind::Start { .. }),
                        "start first and only first"
                    );
                    rows = self.step(rows, step)?;
                }
                rows
            }
            Operator::Filter(operator::Filter {
                input: i,
                condition: c,
            }) => {
                let mut rows = self.operator(i)?;
                rows.retain(|r| self.test(r, c) == Some(true));
                rows
            }
            Operator::Distinct(operator::Distinct {
                input: i,
                slots: by,
            }) => {
                let mut seen = BTreeSet::new();
                let mut rows = self.operator(i)?;
                rows.retain(|r| {
                    seen.insert(by.iter().map(|s| r.get(s).cloned()).collect::<Vec<_>>())
                });
                rows
            }
            Operator::Count(operator::GroupCount {
                input,
                group,
                counts,
            }) => {
                let rows = self.operator(input)?;
                let mut groups: BTreeMap<Vec<Value>, Vec<&Row>> = BTreeMap::new();
                if group.is_empty() {
                    groups.insert(vec![], vec![]);
                }
                for r in &rows {
                    groups
                        .entry(group.iter().map(|s| r[s].clone()).collect())
                        .or_default()
                        .push(r);
                }
                groups
                    .iter()
                    .map(|(key, members)| {
                        let mut out: Row = group.iter().copied().zip(key.iter().cloned()).collect();
                        for c in counts {
                            let values: Vec<Vec<Value>> = members
                                .iter()
                                .map(|r| match c.of {
                                    Some(s) => vec![r[&s].clone()],
                                    None => c.row.iter().map(|s| r[s].clone()).collect(),
                                })
                                .collect();
                            let n = if c.distinct {
                                values.iter().collect::<BTreeSet<_>>().len()
                            } else {
                                values.len()
                            };
                            out.insert(c.to, Value::Number(n as u64));
                        }
                        out
                    })
                    .collect()
            }
            Operator::OrderBy(operator::OrderBy { input: i, keys }) => {
                let rows = self.operator(i)?;
                assert!(
                    rows.iter()
                        .all(|r| keys.iter().all(|k| r.contains_key(&k.0))),
                    "order keys are live"
                );
                rows
            }
            Operator::Slice(operator::Slice {
                input,
                offset,
                limit,
            }) => {
                let rows = self.operator(input)?;
                let take = limit.map_or(usize::MAX, |l| l as usize);
                rows.into_iter().skip(*offset as usize).take(take).collect()
            }
            // Alternatives read columns that are computed; the tests `algebra` and `operators` interpret those.
            Operator::Join(j) if !j.either.is_empty() => return None,
            // Groups of patterns that a filter equates: in this data equal values are the same term.
            Operator::Join(operator::Join {
                kind: kind @ (JoinKind::Inner | JoinKind::Semi),
                left,
                right,
                on,
                condition: None,
                matches,
                either,
            }) if either.is_empty() && on.iter().all(|k| k.left_bound && k.right_bound) => {
                let (left, right) = (self.operator(left)?, self.operator(right)?);
                if left.len() * right.len() > MAX_ROWS {
                    return None;
                }
                let mut rows = vec![];
                for l in &left {
                    let meets = |r: &&Row| {
                        on.iter().all(|k| l[&k.slot] == r[&k.slot])
                            && matches.iter().all(|m| {
                                assert!(!matches!(m.by, MatchBy::Order(_)));
                                l.contains_key(&m.left) && l.get(&m.left) == r.get(&m.right)
                            })
                    };
                    if *kind == JoinKind::Semi {
                        rows.extend(right.iter().any(|r| meets(&r)).then(|| l.clone()));
                        continue;
                    }
                    for r in right.iter().filter(meets) {
                        let both = l.iter().chain(r.iter());
                        rows.push(both.map(|(s, v)| (*s, v.clone())).collect());
                    }
                }
                rows
            }
            // A variable that a filter made the same as another.
            Operator::Extend(operator::Extend { input, to, value }) => {
                let [(_, from)] = &value.variables[..] else {
                    panic!("not interpreted: {value:?}");
                };
                assert!(
                    matches!(*value.expression, Expression::Variable(_)),
                    "not interpreted: {value:?}"
                );
                let mut rows = self.operator(input)?;
                for r in &mut rows {
                    if let Some(v) = r.get(from).cloned() {
                        r.insert(*to, v);
                    }
                }
                rows
            }
            Operator::Values(operator::Values { slots, rows }) => rows
                .iter()
                .map(|cells| {
                    slots
                        .iter()
                        .zip(cells)
                        .filter_map(|(&s, cell)| {
                            let value = match cell {
                                Cell::Unbound => return None,
                                Cell::Id(v) => Value::Id(*v),
                                Cell::Term(bytes) => match term::parts(bytes) {
                                    // Counts that the planner knew.
                                    Some(term::Parts::Coded(n, term::FIRST_DATATYPE)) => {
                                        Value::Number(n.parse().unwrap())
                                    }
                                    other => panic!("inline data of this test: {other:?}"),
                                },
                            };
                            Some((s, value))
                        })
                        .collect()
                })
                .collect(),
            other => panic!("not interpreted: {other:?}"),
        })
    }

    fn sees(&self, graph: &GraphRef, row: &Row, g: u32) -> bool {
        match graph {
            GraphRef::Default => g == DEFAULT_GRAPH,
            GraphRef::Named(n) => g == *n && g != DEFAULT_GRAPH,
            GraphRef::AnyNamed | GraphRef::Bind(_, None) => g != DEFAULT_GRAPH,
            GraphRef::Union => true,
            GraphRef::Set(gs) => gs.contains(&g),
            GraphRef::Bind(_, Some(gs)) => g != DEFAULT_GRAPH && gs.contains(&g),
            GraphRef::Slot(s) => row[s] == Value::Id(g) && g != DEFAULT_GRAPH,
        }
    }

    fn operand(&self, row: &Row, o: Operand) -> u32 {
        match o {
            Operand::Const(c) => c,
            Operand::Slot(s) => match &row[&s] {
                Value::Id(v) => *v,
                Value::Number(n) => panic!("{n} is not an id"),
            },
        }
    }

    /// (neighbour, graph); graph 0 unless bound.
    fn list(&self, row: &Row, l: &EdgeList) -> BTreeSet<(u32, u32)> {
        let anchor = self.operand(row, l.anchor);
        let p = self.case.snapshot.vertex_of(l.predicate).0;
        let bind = matches!(l.graph, GraphRef::Bind(..));
        let (key, far) = if l.direction == Direction::Out {
            (0, 2)
        } else {
            (2, 0)
        };
        self.quads
            .iter()
            .filter(|q| q[1] == p && q[key] == anchor && self.sees(&l.graph, row, q[3]))
            .map(|q| (q[far], if bind { q[3] } else { 0 }))
            .collect()
    }

    fn source(&self, source: &StartSource, within: Option<&IdFilter>) -> BTreeSet<u32> {
        let row = Row::new();
        let mut out: BTreeSet<u32> = match source {
            StartSource::Unit => panic!("unit has no values"),
            StartSource::IdFilter => within
                .expect("within")
                .exact(&self.case.snapshot)
                .iter()
                .flat_map(|r| r[0]..r[1])
                .collect(),
            StartSource::List(l) => {
                assert!(
                    matches!(l.anchor, Operand::Const(_)) && !matches!(l.graph, GraphRef::Bind(..))
                );
                self.list(&row, l).into_iter().map(|x| x.0).collect()
            }
            StartSource::Keys {
                predicate,
                direction,
                graph,
            } => {
                assert!(!matches!(graph, GraphRef::Bind(..) | GraphRef::Slot(_)));
                let p = self.case.snapshot.vertex_of(*predicate).0;
                let end = if *direction == Direction::Out { 0 } else { 2 };
                self.quads
                    .iter()
                    .filter(|q| q[1] == p && self.sees(graph, &row, q[3]))
                    .map(|q| q[end])
                    .collect()
            }
            StartSource::Graphs(list) => {
                let mut gs: BTreeSet<u32> = self
                    .quads
                    .iter()
                    .map(|q| q[3])
                    .filter(|g| *g != 0)
                    .collect();
                if let Some(list) = list {
                    gs.retain(|g| list.contains(g));
                }
                gs
            }
        };
        out.retain(|v| inside(&self.case.snapshot, within, *v));
        out
    }

    fn step(&self, rows: Vec<Row>, step: &Step) -> Option<Vec<Row>> {
        let mut out: Vec<Row> = vec![];
        let rows = if let StepKind::Start { to, source, within } = &step.kind {
            match to {
                None => out.push(Row::new()),
                Some(s) => {
                    for v in self.source(source, within.as_ref()) {
                        out.push(Row::from([(*s, Value::Id(v))]));
                    }
                }
            }
            vec![]
        } else {
            rows
        };
        for row in rows {
            let mut emit = |set: &[(Slot, u32)]| {
                let mut r = row.clone();
                for (s, v) in set {
                    assert!(
                        r.insert(*s, Value::Id(*v)).is_none(),
                        "slot {s} is bound twice"
                    );
                }
                out.push(r);
            };
            match &step.kind {
                StepKind::Start { .. } => {}
                StepKind::Expand { to, lists, within } => {
                    assert!(!lists.is_empty());
                    if let GraphRef::Bind(g, _) = lists[0].graph {
                        assert_eq!(lists.len(), 1);
                        for (v, graph) in self.list(&row, &lists[0]) {
                            if inside(&self.case.snapshot, within.as_ref(), v) {
                                emit(&[(*to, v), (g, graph)]);
                            }
                        }
                        continue;
                    }
                    let mut all = self.list(&row, &lists[0]);
                    for l in &lists[1..] {
                        assert!(!matches!(l.graph, GraphRef::Bind(..)));
                        let more = self.list(&row, l);
                        all.retain(|x| more.contains(x));
                    }
                    for (v, _) in all {
                        if inside(&self.case.snapshot, within.as_ref(), v) {
                            emit(&[(*to, v)]);
                        }
                    }
                }
                StepKind::Check { list, other } => {
                    let other = self.operand(&row, *other);
                    for (v, graph) in self.list(&row, list) {
                        if v == other {
                            match list.graph {
                                GraphRef::Bind(g, _) => emit(&[(g, graph)]),
                                _ => emit(&[]),
                            }
                        }
                    }
                }
                StepKind::Restrict { slot, within } => {
                    if inside(
                        &self.case.snapshot,
                        Some(within),
                        self.operand(&row, Operand::Slot(*slot)),
                    ) {
                        emit(&[]);
                    }
                }
                StepKind::ExpandAny {
                    anchor,
                    direction,
                    predicate,
                    far,
                    graph,
                } => {
                    let anchor = self.operand(&row, *anchor);
                    let (key, end) = if *direction == Direction::Out {
                        (0, 2)
                    } else {
                        (2, 0)
                    };
                    let mut found = BTreeSet::new();
                    for q in self
                        .quads
                        .iter()
                        .filter(|q| q[key] == anchor && self.sees(graph, &row, q[3]))
                    {
                        let mut set = vec![];
                        match predicate {
                            PredicateRef::Bind(s) => set.push((*s, q[1])),
                            PredicateRef::Slot(s) => {
                                if self.operand(&row, Operand::Slot(*s)) != q[1] {
                                    continue;
                                }
                            }
                        }
                        match far {
                            FarEnd::Bind(s) => set.push((*s, q[end])),
                            FarEnd::Known(o) => {
                                if self.operand(&row, *o) != q[end] {
                                    continue;
                                }
                            }
                        }
                        if let GraphRef::Bind(g, _) = graph {
                            set.push((*g, q[3]));
                        }
                        found.insert(set);
                    }
                    found.iter().for_each(|set| emit(set));
                }
                StepKind::ScanAll {
                    subject,
                    predicate,
                    object,
                    graph,
                } => {
                    let mut found = BTreeSet::new();
                    for q in self.quads.iter().filter(|q| self.sees(graph, &row, q[3])) {
                        let mut set = vec![(*subject, q[0]), (*object, q[2])];
                        match predicate {
                            PredicateRef::Bind(s) => set.push((*s, q[1])),
                            PredicateRef::Slot(s) => {
                                if self.operand(&row, Operand::Slot(*s)) != q[1] {
                                    continue;
                                }
                            }
                        }
                        if let GraphRef::Bind(g, _) = graph {
                            set.push((*g, q[3]));
                        }
                        found.insert(set);
                    }
                    found.iter().for_each(|set| emit(set));
                }
                StepKind::Cross { to, source, within } => {
                    for v in self.source(source, within.as_ref()) {
                        emit(&[(*to, v)]);
                    }
                }
            }
            if out.len() > 20 * MAX_ROWS {
                return None;
            }
        }
        out.retain(|r| step.filters.iter().all(|c| self.test(r, c) == Some(true)));
        for r in &mut out {
            assert!(
                step.live.iter().all(|s| r.contains_key(s)),
                "live slots are bound"
            );
            r.retain(|s, _| step.live.contains(s));
        }
        Some(out)
    }

    fn test(&self, row: &Row, c: &Condition) -> Option<bool> {
        match c {
            Condition::Same(a, b) => Some(self.operand(row, *a) == self.operand(row, *b)),
            Condition::Compare(s, relation, constant) => {
                let number = |b: &[u8]| match term::parts(b) {
                    Some(term::Parts::Coded(s, _)) => s.parse::<i64>().ok(),
                    _ => None,
                };
                let y = number(constant).expect("an integer");
                let Some(x) = number(&self.term(self.operand(row, Operand::Slot(*s)))) else {
                    return match relation {
                        Relation::Equal => Some(false),
                        Relation::NotEqual => Some(true),
                        _ => None,
                    };
                };
                Some(match relation {
                    Relation::Equal => x == y,
                    Relation::NotEqual => x != y,
                    Relation::Less => x < y,
                    Relation::LessOrEqual => x <= y,
                    Relation::Greater => x > y,
                    Relation::GreaterOrEqual => x >= y,
                })
            }
            Condition::Kind(s, test) => {
                let t = self.text(self.operand(row, Operand::Slot(*s)));
                Some(match test {
                    TermTest::Iri => t.starts_with('<'),
                    TermTest::Blank => false,
                    TermTest::Literal | TermTest::Numeric => !t.starts_with('<'),
                })
            }
            Condition::Bound(s) => Some(row.contains_key(s)),
            Condition::And(list) => {
                let each: Vec<_> = list.iter().map(|c| self.test(row, c)).collect();
                if each.contains(&Some(false)) {
                    Some(false)
                } else {
                    each.iter().all(Option::is_some).then_some(true)
                }
            }
            Condition::Or(list) => {
                let each: Vec<_> = list.iter().map(|c| self.test(row, c)).collect();
                if each.contains(&Some(true)) {
                    Some(true)
                } else {
                    each.iter().all(Option::is_some).then_some(false)
                }
            }
            Condition::Not(c) => self.test(row, c).map(|b| !b),
            Condition::General(g) => match &*g.expression {
                Expression::Equal(a, b) => {
                    let value = |e: &Expression| match e {
                        Expression::Variable(v) => {
                            let (_, slot) = g.variables.iter().find(|x| x.0 == *v)?;
                            Some(self.operand(row, Operand::Slot(*slot)))
                        }
                        other => panic!("{other}"),
                    };
                    Some(value(a)? == value(b)?)
                }
                other => panic!("the tests make no {other}"),
            },
        }
    }
}

fn inside(snapshot: &Snapshot, within: Option<&IdFilter>, v: u32) -> bool {
    within.is_none_or(|w| w.holds(snapshot, v))
}
