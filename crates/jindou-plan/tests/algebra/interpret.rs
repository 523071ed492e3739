//! Carries operator trees out as their documentation says, one row at a time over the list of quads; expressions and
//! aggregates through `spareval`. What the contracts promise is asserted on the way.

use jindou_model::{DEFAULT_GRAPH, Direction, FIRST_QUERY_ID, VertexId, term};
use jindou_plan::{
    Aggregate, AggregateFunction, ApplyKind, Cell, Condition, EdgeList, FarEnd, GeneralExpression,
    GraphRef, JoinKind, Operand, Operator, Path, Plan, PredicateRef, Relation, Slot, StartSource,
    Step, StepKind, TermTest, Within,
};
use jindou_store::Snapshot;
use oxrdf::{Literal, Quad, Term};
use spareval::QueryEvaluator;
use spargebra::algebra::GraphPattern as Pattern;
use sparopt::algebra::GraphPattern;
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
            evaluator: QueryEvaluator::new(),
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
            Operator::Outer(slots) => {
                let row = outer.expect("Outer stands inside an Apply");
                let part = row.iter().filter(|x| slots.contains(x.0));
                vec![part.map(|(s, v)| (*s, *v)).collect()]
            }
            Operator::Values { slots, rows } => rows
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
            Operator::Steps { input, steps } => {
                assert!(!steps.is_empty());
                let rows = self.operator(input, outer)?;
                self.steps(rows, steps, false)?
            }
            Operator::Path {
                input,
                subject,
                path,
                object,
                graph,
            } => {
                let mut out = vec![];
                for row in self.operator(input, outer)? {
                    for (s, o) in self.pairs(&row, *subject, path, *object, graph) {
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
            Operator::Join {
                kind,
                left,
                right,
                on,
                condition,
                equal,
            } => {
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
                        if equal.is_some_and(|pair| !self.equal(&both, pair)) {
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
                        _ => {}
                    }
                    if out.len() > MAX_ROWS {
                        return Err(TooLarge);
                    }
                }
                out
            }
            Operator::Apply {
                input,
                inner,
                kind,
                each_row,
            } => {
                assert!(*each_row || is_row_wise(inner), "{inner:#?}");
                let mut out = vec![];
                for row in self.operator(input, outer)? {
                    let found = self.operator(inner, Some(&row))?;
                    let merged = |r: &Row| {
                        compatible(&row, r).unwrap_or_else(|| panic!("{row:?} with {r:?}"))
                    };
                    match kind {
                        ApplyKind::Inner => out.extend(found.iter().map(merged)),
                        ApplyKind::Left if found.is_empty() => out.push(row),
                        ApplyKind::Left => out.extend(found.iter().map(merged)),
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
            Operator::Union(parts) => {
                let mut out = vec![];
                for p in parts {
                    out.extend(self.operator(p, outer)?);
                }
                out
            }
            Operator::Extend { input, to, value } => {
                let mut rows = self.operator(input, outer)?;
                for r in &mut rows {
                    if let Some(t) = self.value(r, value) {
                        let id = self.id(&t);
                        assert!(r.insert(*to, id).is_none(), "slot {to} is bound twice");
                    }
                }
                rows
            }
            Operator::Group {
                input,
                by,
                aggregates,
            } => {
                let rows = self.operator(input, outer)?;
                self.group(&rows, by, aggregates)
            }
            Operator::Count {
                input,
                group,
                counts,
            } => {
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
            Operator::Filter(input, c) => {
                let mut rows = self.operator(input, outer)?;
                rows.retain(|r| self.test(r, c) == Some(true));
                rows
            }
            Operator::Distinct(input, by) => {
                let mut seen = BTreeSet::new();
                let rows = self.operator(input, outer)?;
                rows.iter()
                    .map(|r| only(r, by))
                    .filter(|r| seen.insert(r.clone()))
                    .collect()
            }
            Operator::Reduced(input, by) => {
                let rows = self.operator(input, outer)?;
                rows.iter().map(|r| only(r, by)).collect()
            }
            Operator::OrderBy(input, _) => self.operator(input, outer)?,
            Operator::Slice {
                input,
                offset,
                limit,
            } => {
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

    fn value(&self, row: &Row, g: &GeneralExpression) -> Option<Vec<u8>> {
        let pattern = Pattern::Extend {
            inner: Box::new(Pattern::Bgp { patterns: vec![] }),
            variable: spargebra::term::Variable::new_unchecked("value"),
            expression: g.expression.clone(),
        };
        let GraphPattern::Extend { expression, .. } = GraphPattern::from(&pattern) else {
            panic!("an expression did not translate");
        };
        let known = g
            .variables
            .iter()
            .filter_map(|(v, s)| Some((v, self.term(*row.get(s)?))));
        let value = self.evaluator.evaluate_expression(&expression, known)?;
        Some(term::encode(&value))
    }

    fn truth(&self, row: &Row, g: &GeneralExpression) -> Option<bool> {
        let pattern = Pattern::Extend {
            inner: Box::new(Pattern::Bgp { patterns: vec![] }),
            variable: spargebra::term::Variable::new_unchecked("value"),
            expression: g.expression.clone(),
        };
        let GraphPattern::Extend { expression, .. } = GraphPattern::from(&pattern) else {
            panic!("an expression did not translate");
        };
        let known = g
            .variables
            .iter()
            .filter_map(|(v, s)| Some((v, self.term(*row.get(s)?))));
        self.evaluator
            .evaluate_effective_boolean_value_expression(&expression, known)
    }

    /// The cheap conditions are only for slots that are bound.
    fn equal(&self, row: &Row, (a, b): (Slot, Slot)) -> bool {
        let (x, y) = (
            spargebra::term::Variable::new_unchecked("x"),
            spargebra::term::Variable::new_unchecked("y"),
        );
        let expression = spargebra::algebra::Expression::Equal(
            Box::new(x.clone().into()),
            Box::new(y.clone().into()),
        );
        let g = GeneralExpression {
            expression,
            variables: vec![(x, a), (y, b)],
            per_row: false,
            base_iri: None,
        };
        self.truth(row, &g) == Some(true)
    }

    fn test(&self, row: &Row, c: &Condition) -> Option<bool> {
        match c {
            Condition::Same(a, b) => Some(self.operand(row, *a) == self.operand(row, *b)),
            Condition::Compare(s, relation, constant) => {
                let sign = match relation {
                    Relation::Equal => "=",
                    Relation::NotEqual => "!=",
                    Relation::Less => "<",
                    Relation::LessOrEqual => "<=",
                    Relation::Greater => ">",
                    Relation::GreaterOrEqual => ">=",
                };
                let text = format!(
                    "SELECT * {{ BIND(?x {sign} {} AS ?y) }}",
                    term::decode(constant).expect("a constant")
                );
                let expression = expression_of(&text);
                let g = GeneralExpression {
                    expression,
                    variables: vec![(spargebra::term::Variable::new_unchecked("x"), *s)],
                    base_iri: None,
                    per_row: false,
                };
                assert!(row.contains_key(s));
                self.truth(row, &g)
            }
            Condition::Kind(s, test) => {
                let t = self.term(row[s]);
                Some(match test {
                    TermTest::Iri => matches!(t, Term::NamedNode(_)),
                    TermTest::Blank => matches!(t, Term::BlankNode(_)),
                    TermTest::Literal => matches!(t, Term::Literal(_)),
                    TermTest::Numeric => match &t {
                        Term::Literal(l) => {
                            l.datatype().as_str().ends_with("integer")
                                || l.datatype().as_str().ends_with("decimal")
                        }
                        _ => false,
                    },
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
            Condition::General(g) => self.truth(row, g),
        }
    }

    // ---- exploration ----

    fn sees(&self, graph: &GraphRef, row: &Row, g: u32) -> bool {
        match graph {
            GraphRef::Default => g == DEFAULT_GRAPH,
            GraphRef::Named(n) => g == *n && g != DEFAULT_GRAPH,
            GraphRef::AnyNamed | GraphRef::Bind(_, None) => g != DEFAULT_GRAPH,
            GraphRef::Union => true,
            GraphRef::Set(gs) => gs.contains(&g),
            GraphRef::Bind(_, Some(gs)) => g != DEFAULT_GRAPH && gs.contains(&g),
            GraphRef::Slot(s) => row[s] == g && g != DEFAULT_GRAPH,
        }
    }

    fn operand(&self, row: &Row, o: Operand) -> u32 {
        match o {
            Operand::Const(c) => c,
            Operand::Slot(s) => *row.get(&s).unwrap_or_else(|| panic!("slot {s} is unbound")),
        }
    }

    /// (neighbour, graph); graph 0 unless bound.
    fn list(&self, row: &Row, l: &EdgeList) -> BTreeSet<(u32, u32)> {
        let anchor = self.operand(row, l.anchor);
        let p = self.snapshot.vertex_of(l.predicate).0;
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

    fn source(&self, source: &StartSource, within: Option<&Within>) -> BTreeSet<u32> {
        let row = Row::new();
        let mut out: BTreeSet<u32> = match source {
            StartSource::Unit => panic!("unit has no values"),
            StartSource::Within => within
                .expect("within")
                .exact(self.snapshot)
                .iter()
                .flat_map(|r| r[0]..r[1])
                .collect(),
            StartSource::List(l) => {
                assert!(matches!(l.anchor, Operand::Const(_)));
                self.list(&row, l).into_iter().map(|x| x.0).collect()
            }
            StartSource::Keys {
                predicate,
                direction,
                graph,
            } => {
                let p = self.snapshot.vertex_of(*predicate).0;
                let end = if *direction == Direction::Out { 0 } else { 2 };
                self.quads
                    .iter()
                    .filter(|q| q[1] == p && self.sees(graph, &row, q[3]))
                    .map(|q| q[end])
                    .collect()
            }
            StartSource::Graphs(list) => {
                let graphs = self.quads.iter().map(|q| q[3]).filter(|g| *g != 0);
                graphs
                    .filter(|g| list.as_ref().is_none_or(|l| l.contains(g)))
                    .collect()
            }
        };
        out.retain(|v| inside(self.snapshot, within, *v));
        out
    }

    fn steps(&self, mut rows: Vec<Row>, steps: &[Step], start: bool) -> Rows {
        for (i, step) in steps.iter().enumerate() {
            let is_start = matches!(step.kind, StepKind::Start { .. });
            assert_eq!(is_start, start && i == 0, "start first and only first");
            rows = self.step(rows, step)?;
        }
        Ok(rows)
    }

    #[allow(clippy::too_many_lines)]
    fn step(&self, rows: Vec<Row>, step: &Step) -> Rows {
        let mut out: Vec<Row> = vec![];
        let rows = if let StepKind::Start { to, source, within } = &step.kind {
            match to {
                None => out.push(Row::new()),
                Some(s) => {
                    let values = self.source(source, within.as_ref());
                    out.extend(values.into_iter().map(|v| Row::from([(*s, v)])));
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
                    assert!(r.insert(*s, *v).is_none(), "slot {s} is bound twice");
                }
                out.push(r);
            };
            match &step.kind {
                StepKind::Start { .. } => {}
                StepKind::Expand { to, lists, within } => {
                    if let GraphRef::Bind(g, _) = lists[0].graph {
                        assert_eq!(lists.len(), 1);
                        for (v, graph) in self.list(&row, &lists[0]) {
                            if inside(self.snapshot, within.as_ref(), v) {
                                emit(&[(*to, v), (g, graph)]);
                            }
                        }
                        continue;
                    }
                    let mut all = self.list(&row, &lists[0]);
                    for l in &lists[1..] {
                        let more = self.list(&row, l);
                        all.retain(|x| more.contains(x));
                    }
                    for (v, _) in all {
                        if inside(self.snapshot, within.as_ref(), v) {
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
                        self.snapshot,
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
                    for q in &self.quads {
                        if q[key] != anchor || !self.sees(graph, &row, q[3]) {
                            continue;
                        }
                        let mut set = vec![];
                        match predicate {
                            PredicateRef::Bind(s) => set.push((*s, q[1])),
                            PredicateRef::Slot(s) if row[s] != q[1] => continue,
                            PredicateRef::Slot(_) => {}
                        }
                        match far {
                            FarEnd::Bind(s) => set.push((*s, q[end])),
                            FarEnd::Known(o) if self.operand(&row, *o) != q[end] => continue,
                            FarEnd::Known(_) => {}
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
                            PredicateRef::Slot(s) if row[s] != q[1] => continue,
                            PredicateRef::Slot(_) => {}
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
                return Err(TooLarge);
            }
        }
        out.retain(|r| step.filters.iter().all(|c| self.test(r, c) == Some(true)));
        for r in &mut out {
            r.retain(|s, _| step.live.contains(s));
        }
        Ok(out)
    }

    // ---- paths ----

    fn pairs(
        &self,
        row: &Row,
        subject: FarEnd,
        path: &Path,
        object: FarEnd,
        graph: &GraphRef,
    ) -> BTreeSet<(u32, u32)> {
        let mut nodes: BTreeSet<u32> = self
            .quads
            .iter()
            .filter(|q| self.sees(graph, row, q[3]))
            .flat_map(|q| [q[0], q[2]])
            .collect();
        for end in [subject, object] {
            if let FarEnd::Known(o) = end {
                nodes.insert(self.operand(row, o));
            }
        }
        self.relation(row, path, graph, &nodes)
    }

    fn relation(
        &self,
        row: &Row,
        path: &Path,
        graph: &GraphRef,
        nodes: &BTreeSet<u32>,
    ) -> BTreeSet<(u32, u32)> {
        let of = |p: &Path| self.relation(row, p, graph, nodes);
        let then = |a: &BTreeSet<(u32, u32)>, b: &BTreeSet<(u32, u32)>| {
            let mut out = BTreeSet::new();
            for x in a {
                out.extend(b.iter().filter(|y| y.0 == x.1).map(|y| (x.0, y.1)));
            }
            out
        };
        let closure = |start: BTreeSet<(u32, u32)>| {
            let mut all = start.clone();
            loop {
                let more = then(&all, &start);
                let before = all.len();
                all.extend(more);
                if all.len() == before {
                    return all;
                }
            }
        };
        let edges = || self.quads.iter().filter(|q| self.sees(graph, row, q[3]));
        let zero = || nodes.iter().map(|n| (*n, *n));
        match path {
            Path::Predicate(None) => BTreeSet::new(),
            Path::Predicate(Some(p)) => {
                let p = self.snapshot.vertex_of(*p).0;
                edges()
                    .filter(|q| q[1] == p)
                    .map(|q| (q[0], q[2]))
                    .collect()
            }
            Path::Inverse(p) => of(p).into_iter().map(|(a, b)| (b, a)).collect(),
            Path::Sequence(list) => {
                let mut parts = list.iter().map(of);
                let first = parts.next().expect("a part");
                parts.fold(first, |a, b| then(&a, &b))
            }
            Path::Alternative(list) => list.iter().flat_map(of).collect(),
            Path::ZeroOrOne(p) => of(p).into_iter().chain(zero()).collect(),
            Path::ZeroOrMore(p) => closure(of(p)).into_iter().chain(zero()).collect(),
            Path::OneOrMore(p) => closure(of(p)),
            Path::Except(list) => {
                let not: Vec<u32> = list.iter().map(|p| self.snapshot.vertex_of(*p).0).collect();
                edges()
                    .filter(|q| !not.contains(&q[1]))
                    .map(|q| (q[0], q[2]))
                    .collect()
            }
        }
    }
}

fn expression_of(text: &str) -> spargebra::algebra::Expression {
    let query = jindou_plan::parse(text).expect("an expression");
    let spargebra::Query::Select { pattern, .. } = query else {
        panic!("SELECT")
    };
    let Pattern::Project { inner, .. } = pattern else {
        panic!("a projection")
    };
    let Pattern::Extend { expression, .. } = *inner else {
        panic!("BIND")
    };
    expression
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

/// What may run on many outer rows at once.
fn is_row_wise(op: &Operator) -> bool {
    match op {
        Operator::Outer(_) => true,
        Operator::Steps { input, .. }
        | Operator::Path { input, .. }
        | Operator::Filter(input, _)
        | Operator::Extend { input, .. } => is_row_wise(input),
        // Its inner part is a level of its own.
        Operator::Apply { input, .. } => is_row_wise(input),
        Operator::Union(list) => list.iter().all(is_row_wise),
        _ => false,
    }
}

fn inside(snapshot: &Snapshot, within: Option<&Within>, v: u32) -> bool {
    within.is_none_or(|w| w.holds(snapshot, v))
}
