//! Carries operator trees out as their documentation says, one row at a time over the list of quads; expressions and
//! aggregates through `spareval`. What the contracts promise is asserted on the way.

mod steps;
mod values;

use jindou_model::{DEFAULT_GRAPH, FIRST_QUERY_ID, VertexId, term};
use jindou_plan::operator;
use jindou_plan::{
    Aggregate, AggregateFunction, ApplyKind, Cell, FarEnd, JoinKind, Operator, Plan, Slot,
};
use jindou_store::Snapshot;
use oxrdf::{Literal, Quad, Term};
use spareval::QueryEvaluator;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// A row: slots without a value are not in it.
pub type Row = BTreeMap<Slot, u32>;

/// Most rows anywhere.
const MAX_ROWS: usize = 3_000;

pub struct Data<'a> {
    snapshot: &'a Snapshot,
    /// Subject, predicate, object, graph.
    quads: Vec<[u32; 4]>,
    /// Terms that the store does not have.
    made: RefCell<Vec<Vec<u8>>>,
    evaluator: QueryEvaluator,
}

/// Too many rows on the way: the case is skipped.
pub struct TooLarge;

type Rows = Result<Vec<Row>, TooLarge>;

impl<'a> Data<'a> {
    pub fn new(snapshot: &'a Snapshot, quads: &[Quad]) -> Self {
        let id = |t: &Term| snapshot.lookup(&term::encode(t)).expect("a stored term").0;
        let quads = quads
            .iter()
            .map(|q| {
                let graph = match &q.graph_name {
                    oxrdf::GraphName::NamedNode(n) => id(&n.clone().into()),
                    oxrdf::GraphName::BlankNode(n) => id(&n.clone().into()),
                    oxrdf::GraphName::DefaultGraph => DEFAULT_GRAPH,
                };
                [
                    id(&q.subject.clone().into()),
                    id(&q.predicate.clone().into()),
                    id(&q.object),
                    graph,
                ]
            })
            .collect();
        Self {
            snapshot,
            quads,
            made: RefCell::default(),
            evaluator: jindou_testing::evaluator(),
        }
    }

    pub fn run(&self, plan: &Plan) -> Result<Vec<Vec<Option<Term>>>, TooLarge> {
        let rows = self.operator(&plan.root, None)?;
        Ok(rows
            .iter()
            .map(|r| {
                plan.output
                    .iter()
                    .map(|s| r.get(s).map(|v| self.term(*v)))
                    .collect()
            })
            .collect())
    }

    fn bytes(&self, v: u32) -> Vec<u8> {
        if v >= FIRST_QUERY_ID {
            return self.made.borrow()[(v - FIRST_QUERY_ID) as usize].clone();
        }
        let mut bytes = vec![];
        assert!(self.snapshot.term(VertexId(v), &mut bytes), "no term {v}");
        bytes
    }

    fn term(&self, v: u32) -> Term {
        term::decode(&self.bytes(v)).expect("a term")
    }

    /// One id a term.
    fn id(&self, bytes: &[u8]) -> u32 {
        if let Some(v) = self.snapshot.lookup(bytes) {
            return v.0;
        }
        let mut made = self.made.borrow_mut();
        let at = made.iter().position(|b| b == bytes).unwrap_or_else(|| {
            made.push(bytes.to_vec());
            made.len() - 1
        });
        FIRST_QUERY_ID + at as u32
    }

    #[allow(clippy::too_many_lines)]
    fn operator(&self, op: &Operator, outer: Option<&Row>) -> Rows {
        let rows = match op {
            Operator::Explore(e) => {
                if e.empty.is_some() {
                    assert!(e.steps.is_empty());
                    return Ok(vec![]);
                }
                self.steps(vec![], &e.steps, true)?
            }
            Operator::Outer(operator::Outer { slots }) => {
                let row = outer.expect("Outer stands inside an Apply");
                let part = row.iter().filter(|x| slots.contains(x.0));
                vec![part.map(|(s, v)| (*s, *v)).collect()]
            }
            Operator::Values(operator::Values { slots, rows }) => rows
                .iter()
                .map(|r| {
                    assert_eq!(r.len(), slots.len());
                    slots
                        .iter()
                        .zip(r)
                        .filter_map(|(s, c)| match c {
                            Cell::Unbound => None,
                            Cell::Id(v) => Some((*s, *v)),
                            Cell::Term(t) => {
                                assert!(self.snapshot.lookup(t).is_none());
                                Some((*s, self.id(t)))
                            }
                        })
                        .collect()
                })
                .collect(),
            Operator::Service(_) => panic!("no SERVICE in these tests"),
            Operator::Steps(operator::Steps { input, steps }) => {
                assert!(!steps.is_empty());
                let rows = self.operator(input, outer)?;
                self.steps(rows, steps, false)?
            }
            Operator::Path(operator::FollowPath {
                input,
                subject,
                path,
                object,
                graph,
                nodes,
                ..
            }) => {
                let mut out = vec![];
                for row in self.operator(input, outer)? {
                    for (s, o) in self.pairs(&row, *subject, path, *object, graph, *nodes) {
                        let mut r = row.clone();
                        let mut fits = true;
                        for (end, v) in [(subject, s), (object, o)] {
                            match end {
                                FarEnd::Known(k) => fits &= self.operand(&row, *k) == v,
                                FarEnd::Bind(slot) => {
                                    fits &= r.insert(*slot, v).is_none_or(|old| old == v);
                                    assert!(!row.contains_key(slot), "bound twice");
                                }
                            }
                        }
                        if fits {
                            out.push(r);
                        }
                    }
                }
                out
            }
            Operator::Join(operator::Join {
                kind,
                left,
                right,
                on,
                condition,
                matches,
                either,
            }) => {
                let l = self.operator(left, outer)?;
                let r = self.operator(right, outer)?;
                let slots = |rows: &[Row]| -> BTreeSet<Slot> {
                    rows.iter().flat_map(|r| r.keys().copied()).collect()
                };
                for s in slots(&l).intersection(&slots(&r)) {
                    assert!(on.iter().any(|k| k.slot == *s), "{s} is in both sides");
                }
                for k in on {
                    assert!(!k.left_bound || l.iter().all(|x| x.contains_key(&k.slot)));
                    assert!(!k.right_bound || r.iter().all(|x| x.contains_key(&k.slot)));
                }
                let mut out = vec![];
                for a in &l {
                    let mut partners = vec![];
                    for b in &r {
                        let Some(both) = compatible(a, b) else {
                            continue;
                        };
                        if *kind == JoinKind::Minus && !b.keys().any(|s| a.contains_key(s)) {
                            continue;
                        }
                        if !matches.iter().all(|m| self.is_match(a, b, m)) {
                            continue;
                        }
                        assert!(matches.is_empty() || either.is_empty());
                        if !either.is_empty() && !either.iter().any(|m| self.is_match(a, b, m)) {
                            continue;
                        }
                        if condition
                            .as_ref()
                            .is_none_or(|c| self.test(&both, c) == Some(true))
                        {
                            partners.push(both);
                        }
                    }
                    match kind {
                        JoinKind::Inner => out.extend(partners),
                        JoinKind::Left if partners.is_empty() => out.push(a.clone()),
                        JoinKind::Left => out.extend(partners),
                        JoinKind::Semi if !partners.is_empty() => out.push(a.clone()),
                        JoinKind::Anti | JoinKind::Minus if partners.is_empty() => {
                            out.push(a.clone());
                        }
                        JoinKind::Mark(s) => {
                            let b = Literal::from(!partners.is_empty());
                            let id = self.id(&term::encode(&b.into()));
                            let mut row = a.clone();
                            assert!(row.insert(*s, id).is_none());
                            out.push(row);
                        }
                        _ => {}
                    }
                    if out.len() > MAX_ROWS {
                        return Err(TooLarge);
                    }
                }
                out
            }
            Operator::Apply(operator::Apply {
                input,
                inner,
                kind,
                each_row,
            }) => {
                assert!(*each_row || is_row_wise(inner), "{inner:#?}");
                let mut out = vec![];
                for row in self.operator(input, outer)? {
                    let found = self.operator(inner, Some(&row))?;
                    let merged = |r: &Row| compatible(&row, r);
                    match kind {
                        ApplyKind::Inner => out.extend(found.iter().filter_map(merged)),
                        ApplyKind::Left => {
                            let before = out.len();
                            out.extend(found.iter().filter_map(merged));
                            if out.len() == before {
                                out.push(row);
                            }
                        }
                        ApplyKind::Semi if !found.is_empty() => out.push(row),
                        ApplyKind::Anti if found.is_empty() => out.push(row),
                        ApplyKind::Mark(s) => {
                            let b = Literal::from(!found.is_empty());
                            let id = self.id(&term::encode(&b.into()));
                            let mut row = row;
                            assert!(row.insert(*s, id).is_none());
                            out.push(row);
                        }
                        _ => {}
                    }
                    if out.len() > MAX_ROWS {
                        return Err(TooLarge);
                    }
                }
                out
            }
            Operator::Union(operator::Union { inputs: parts }) => {
                let mut out = vec![];
                for p in parts {
                    out.extend(self.operator(p, outer)?);
                }
                out
            }
            Operator::Extend(operator::Extend { input, to, value }) => {
                let mut rows = self.operator(input, outer)?;
                for r in &mut rows {
                    if let Some(t) = self.value(r, value) {
                        let id = self.id(&t);
                        assert!(r.insert(*to, id).is_none(), "slot {to} is bound twice");
                    }
                }
                rows
            }
            Operator::Group(operator::Group {
                input,
                by,
                aggregates,
            }) => {
                let rows = self.operator(input, outer)?;
                self.group(&rows, by, aggregates)
            }
            Operator::Count(operator::GroupCount {
                input,
                group,
                counts,
            }) => {
                let rows = self.operator(input, outer)?;
                let aggregates: Vec<Aggregate> = counts
                    .iter()
                    .map(|c| Aggregate {
                        to: c.to,
                        function: if c.of.is_some() {
                            AggregateFunction::Count
                        } else {
                            AggregateFunction::CountRows
                        },
                        of: c.of,
                        distinct: c.distinct,
                        row: c.row.clone(),
                    })
                    .collect();
                for r in &rows {
                    assert!(group.iter().all(|s| r.contains_key(s)));
                    assert!(
                        counts
                            .iter()
                            .all(|c| { c.of.iter().chain(&c.row).all(|s| r.contains_key(s)) })
                    );
                }
                self.group(&rows, group, &aggregates)
            }
            Operator::Filter(operator::Filter {
                input,
                condition: c,
            }) => {
                let mut rows = self.operator(input, outer)?;
                rows.retain(|r| self.test(r, c) == Some(true));
                rows
            }
            Operator::Distinct(operator::Distinct { input, slots: by }) => {
                let mut seen = BTreeSet::new();
                let rows = self.operator(input, outer)?;
                rows.iter()
                    .map(|r| only(r, by))
                    .filter(|r| seen.insert(r.clone()))
                    .collect()
            }
            Operator::Reduced(operator::Reduced { input, slots: by }) => {
                let rows = self.operator(input, outer)?;
                rows.iter().map(|r| only(r, by)).collect()
            }
            Operator::OrderBy(operator::OrderBy { input, .. }) => self.operator(input, outer)?,
            Operator::Slice(operator::Slice {
                input,
                offset,
                limit,
            }) => {
                let rows = self.operator(input, outer)?;
                let take = limit.map_or(usize::MAX, |l| l as usize);
                rows.into_iter().skip(*offset as usize).take(take).collect()
            }
        };
        if rows.len() > MAX_ROWS {
            return Err(TooLarge);
        }
        Ok(rows)
    }

    fn group(&self, rows: &[Row], by: &[Slot], aggregates: &[Aggregate]) -> Vec<Row> {
        let mut groups: BTreeMap<Row, Vec<&Row>> = BTreeMap::new();
        if by.is_empty() {
            groups.insert(Row::new(), vec![]);
        }
        for r in rows {
            groups.entry(only(r, by)).or_default().push(r);
        }
        groups
            .into_iter()
            .map(|(mut out, members)| {
                for a in aggregates {
                    if let Some(t) = self.aggregate(a, &members) {
                        out.insert(a.to, self.id(&term::encode(&t)));
                    }
                }
                out
            })
            .collect()
    }

    fn aggregate(&self, a: &Aggregate, rows: &[&Row]) -> Option<Term> {
        let name = match &a.function {
            AggregateFunction::CountRows => {
                let n = if a.distinct {
                    let set: BTreeSet<Row> = rows.iter().map(|r| only(r, &a.row)).collect();
                    set.len()
                } else {
                    rows.len()
                };
                return Some(Literal::from(n as i64).into());
            }
            AggregateFunction::Count => "COUNT",
            AggregateFunction::Sum => "SUM",
            AggregateFunction::Avg => "AVG",
            AggregateFunction::Min => "MIN",
            AggregateFunction::Max => "MAX",
            AggregateFunction::Sample => "SAMPLE",
            AggregateFunction::GroupConcat(_) => panic!("no GROUP_CONCAT in these tests"),
        };
        let of = a.of.expect("an input");
        let node = |s: String| oxrdf::NamedNode::new_unchecked(s);
        let (in_, v) = (node("r:in".into()), node("r:v".into()));
        let mut quads = vec![];
        for (i, r) in rows.iter().enumerate() {
            let row = node(format!("r:{i}"));
            let graph = oxrdf::GraphName::DefaultGraph;
            quads.push(Quad::new(
                row.clone(),
                in_.clone(),
                in_.clone(),
                graph.clone(),
            ));
            if let Some(x) = r.get(&of) {
                quads.push(Quad::new(row, v.clone(), self.term(*x), graph));
            }
        }
        let distinct = if a.distinct { "DISTINCT " } else { "" };
        let text = format!(
            "SELECT ({name}({distinct}?x) AS ?r) {{ ?row <r:in> <r:in> OPTIONAL {{ ?row <r:v> ?x }} }}"
        );
        match jindou_testing::answer(&quads, &text).expect("an aggregate") {
            jindou_testing::Answer::Rows(_, rows) => rows[0][0].clone(),
            jindou_testing::Answer::Boolean(_) => None,
        }
    }
}

fn compatible(a: &Row, b: &Row) -> Option<Row> {
    let mut out = a.clone();
    for (s, v) in b {
        if out.insert(*s, *v).is_some_and(|old| old != *v) {
            return None;
        }
    }
    Some(out)
}

fn only(r: &Row, slots: &[Slot]) -> Row {
    r.iter()
        .filter(|x| slots.contains(x.0))
        .map(|(s, v)| (*s, *v))
        .collect()
}

/// True if the operator may run on many outer rows at once.
fn is_row_wise(op: &Operator) -> bool {
    match op {
        Operator::Outer(_) => true,
        Operator::Steps(operator::Steps { input, .. })
        | Operator::Path(operator::FollowPath { input, .. })
        | Operator::Filter(operator::Filter { input, .. })
        | Operator::Extend(operator::Extend { input, .. }) => is_row_wise(input),
        // Its inner part is a level of its own.
        Operator::Apply(operator::Apply { input, .. }) => is_row_wise(input),
        Operator::Union(operator::Union { inputs: list }) => list.iter().all(is_row_wise),
        _ => false,
    }
}
