//! [`Node`] tree → [`Operator`] tree: what is evaluated by itself, what goes on from rows.

use crate::condition::{self, Compiled, Compiler};
use crate::cost::{self, EXPRESSION, GROUP, HASH_BUILD, HASH_PROBE, OUT, PATH, SERVICE, SORT};
use crate::expression::Expr;
use crate::logical::{Bgp, End, Kind, Node, PathNode, Place};
use crate::resolve::Dataset;
use crate::set::SlotSet;
use crate::steps;
use crate::{
    Aggregate, AggregateFunction, ApplyKind, Cell, Condition, Count, Exploration, FarEnd, GraphRef,
    JoinKey, JoinKind, Operand, Operator, Path, Slot, StartSource, Step, StepKind,
};
use jindou_model::{VertexId, term};
use jindou_store::Snapshot;
use spargebra::algebra::PropertyPathExpression;

/// Which slots hold nodes of which graphs.
pub(crate) type Nodes = Vec<(Place, Slot)>;

/// Operators with what is known of their rows.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub op: Operator,
    /// Slots bound in every row.
    pub certain: SlotSet,
    /// Slots that a row may bind.
    pub possible: SlotSet,
    /// Slots whose value is a node of the graphs at this place in every row.
    pub nodes: Nodes,
    pub rows: f64,
    /// In about nanoseconds of one core, inputs included.
    pub cost: f64,
}

/// Slots of the rows that the nearest `Apply` runs its inner part for.
#[derive(Clone, Default)]
pub(crate) struct OuterRow {
    pub certain: SlotSet,
    pub possible: SlotSet,
}

pub(crate) struct Builder<'a> {
    pub snapshot: &'a Snapshot,
    pub dataset: &'a Dataset,
    pub slots: Vec<String>,
    /// Set inside the inner part of an `Apply` that runs for each row.
    pub outer: OuterRow,
    pub graphs: Option<f64>,
}

impl Builder<'_> {
    /// Operators that give the node's solutions: for the outer row, if there is one.
    pub(crate) fn build(&mut self, node: &Node) -> Built {
        match &node.kind {
            Kind::Bgp(_)
            | Kind::Graphs(_)
            | Kind::HasGraph(_)
            | Kind::Path(_)
            | Kind::Values { .. }
            | Kind::Service(_) => self.leaf_for_row(node),
            Kind::Join(parts) => self.join(parts),
            Kind::Union(branches) => {
                let built = branches.iter().map(|b| self.build(b)).collect();
                union(built)
            }
            Kind::LeftJoin {
                left,
                right,
                condition,
            } => {
                let left = self.build(left);
                self.left_join(left, right, condition)
            }
            Kind::Minus { left, right } => {
                let above = left.possible.clone();
                let left = self.build(left);
                self.minus(left, &above, right)
            }
            Kind::Apply { input, body, kind } => {
                let input = self.build(input);
                self.apply(input, body, *kind)
            }
            Kind::Filter { inner, filters } => {
                let inner = self.build(inner);
                self.filter(inner, filters)
            }
            Kind::Extend { inner, to, value } => {
                let inner = self.build(inner);
                self.extend(inner, *to, value)
            }
            Kind::Group {
                inner,
                by,
                aggregates,
            } => {
                let inner = self.build(inner);
                group(inner, by, aggregates)
            }
            Kind::OrderBy { inner, keys } => {
                let b = self.build(inner);
                let keys: Vec<(Slot, bool)> = keys
                    .iter()
                    .copied()
                    .filter(|k| b.possible.has(k.0))
                    .collect();
                if keys.is_empty() {
                    return b;
                }
                let cost = b.cost + b.rows * SORT * (2.0 + b.rows).log2();
                b.with(|op| Operator::OrderBy(op, keys), None, cost)
            }
            Kind::Distinct { inner, slots } => {
                let b = self.build(unordered(inner));
                let slots = kept(slots, &b.possible);
                let cost = b.cost + b.rows * HASH_PROBE;
                b.with(|op| Operator::Distinct(op, slots), None, cost)
            }
            Kind::Reduced { inner, slots } => {
                let b = self.build(inner);
                let slots = kept(slots, &b.possible);
                let cost = b.cost + b.rows * OUT;
                b.with(|op| Operator::Reduced(op, slots), None, cost)
            }
            Kind::Slice {
                inner,
                offset,
                limit,
            } => slice(self.build(inner), *offset, *limit),
            // Hidden slots are other slots; nothing above reads them.
            Kind::Project(inner) => self.build(unordered(inner)),
        }
    }

    /// A leaf; the outer row's values of its slots go in first.
    fn leaf_for_row(&mut self, node: &Node) -> Built {
        let known = node.uses.and(&self.outer.possible);
        if known.is_empty() {
            return self.leaf(node);
        }
        let row = self.outer_row(&known);
        if self.can_go_on(&row.certain, &row.possible, node) {
            return self.go_on(row, node);
        }
        let outer = std::mem::take(&mut self.outer);
        let leaf = self.leaf(node);
        self.outer = outer;
        hash_join(row, leaf, JoinKind::Inner, None)
    }

    /// These columns of the outer row.
    fn outer_row(&self, slots: &SlotSet) -> Built {
        Built {
            op: Operator::Outer(slots.to_vec()),
            certain: slots.and(&self.outer.certain),
            possible: slots.clone(),
            nodes: vec![],
            rows: 1.0,
            cost: 0.0,
        }
    }

    /// The rows with the outer row's columns that they lack of these.
    fn with_outer(&mut self, b: Built, slots: &SlotSet) -> Built {
        let missing = slots.and(&self.outer.possible).minus(&b.possible);
        if missing.is_empty() {
            return b;
        }
        let row = self.outer_row(&missing);
        hash_join(b, row, JoinKind::Inner, None)
    }

    /// A leaf by itself.
    fn leaf(&mut self, node: &Node) -> Built {
        match &node.kind {
            Kind::Bgp(b) => self.explore(b),
            Kind::Graphs(g) => self.graphs(*g),
            Kind::HasGraph(name) => {
                let there = self
                    .dataset
                    .graph(name, self.snapshot)
                    .is_some_and(|g| self.snapshot.named_graphs().binary_search(&g).is_ok());
                if there {
                    unit()
                } else {
                    nothing(format!(
                        "{} is not a named graph of the query's dataset",
                        crate::show::term(name)
                    ))
                }
            }
            Kind::Path(p) => self.path(unit(), p),
            Kind::Values { slots, rows } => self.values(node, slots, rows),
            Kind::Service(s) => Built {
                op: Operator::Service(Box::new(s.clone())),
                certain: SlotSet::default(),
                possible: node.possible.clone(),
                nodes: vec![],
                rows: 1_000.0,
                cost: SERVICE,
            },
            _ => nothing("an inner node stands where a leaf should".into()),
        }
    }

    fn values(&mut self, node: &Node, slots: &[Slot], rows: &[Vec<Option<Vec<u8>>>]) -> Built {
        let cells = rows
            .iter()
            .map(|r| {
                r.iter()
                    .map(|c| match c {
                        None => Cell::Unbound,
                        Some(bytes) => match self.snapshot.lookup(bytes) {
                            Some(VertexId(v)) => Cell::Id(v),
                            None => Cell::Term(bytes.clone()),
                        },
                    })
                    .collect()
            })
            .collect::<Vec<_>>();
        let n = rows.len() as f64;
        Built {
            op: Operator::Values {
                slots: slots.to_vec(),
                rows: cells,
            },
            certain: node.certain.clone(),
            possible: node.possible.clone(),
            nodes: vec![],
            rows: n,
            cost: n * OUT,
        }
    }

    /// A group of patterns by itself. One with more slots or patterns than a mask has bits is cut.
    fn explore(&mut self, bgp: &Bgp) -> Built {
        let mut uses: SlotSet = SlotSet::default();
        for p in &bgp.patterns {
            p.slots().for_each(|s| uses.insert(s));
        }
        if uses.len() > steps::MAX_LOCAL || bgp.patterns.len() > crate::resolve::MAX_EDGES {
            let (parts, filters) = cut(bgp);
            let joined = self.join(&parts);
            return self.filter(joined, &filters);
        }
        match steps::plan(bgp, &mut self.slots, None, self.dataset, self.snapshot) {
            Ok(p) => Built {
                op: Operator::Explore(Exploration {
                    steps: p.steps,
                    empty: None,
                }),
                certain: uses.clone(),
                possible: uses,
                nodes: nodes_of(bgp),
                rows: p.rows,
                cost: p.cost,
            },
            Err(why) => Built {
                certain: uses.clone(),
                possible: uses,
                ..nothing(why)
            },
        }
    }

    fn graph_count(&mut self) -> f64 {
        let snapshot = self.snapshot;
        let named = self.dataset.named.as_ref().map(Vec::len);
        *self
            .graphs
            .get_or_insert_with(|| named.unwrap_or_else(|| snapshot.named_graphs().len()) as f64)
    }

    fn graphs(&mut self, g: Slot) -> Built {
        let rows = self.graph_count();
        let step = Step {
            kind: StepKind::Start {
                to: Some(g),
                source: StartSource::Graphs(self.dataset.named.clone()),
                within: None,
            },
            filters: vec![],
            live: vec![g],
            rows,
            cost: rows,
            why: "the query asks for the graphs".into(),
        };
        Built {
            op: Operator::Explore(Exploration {
                steps: vec![step],
                empty: None,
            }),
            certain: SlotSet::one(g),
            possible: SlotSet::one(g),
            nodes: vec![],
            rows,
            cost: rows,
        }
    }

    // ---- row by row ----

    /// True if the node's solutions that go with a row can be found from that row, operators that look at all rows
    /// aside.
    pub(crate) fn can_go_on(&self, certain: &SlotSet, possible: &SlotSet, node: &Node) -> bool {
        let known = |uses: &SlotSet| uses.and(possible).is_within(certain);
        match &node.kind {
            Kind::Bgp(b) => {
                known(&node.uses)
                    && node.uses.len() <= steps::MAX_LOCAL
                    && b.patterns.len() <= crate::resolve::MAX_EDGES
            }
            Kind::Path(_) => known(&node.uses),
            Kind::Graphs(g) => !possible.has(*g),
            Kind::HasGraph(_) | Kind::Values { .. } | Kind::Service(_) => false,
            Kind::Join(parts) => {
                let parts: Vec<&Node> = parts.iter().collect();
                self.can_follow(certain, possible, &parts, 0)
            }
            Kind::Union(branches) => branches
                .iter()
                .all(|b| self.can_go_on(certain, possible, b)),
            Kind::LeftJoin {
                left,
                right,
                condition: _,
            } => {
                let (c, p) = (certain.or(&op_certain(left)), possible.or(&left.uses));
                let mut nodes = vec![];
                sure_nodes(left, &mut nodes);
                self.can_go_on(certain, possible, left)
                    && self.can_go_on(&c, &p, right)
                    && is_safe(right, &p, &nodes)
            }
            Kind::Minus { .. } => false,
            Kind::Filter { inner, .. } | Kind::Project(inner) => {
                self.can_go_on(certain, possible, inner)
            }
            Kind::Reduced { inner, .. } => self.can_go_on(certain, possible, inner),
            Kind::Extend { inner, to, .. } => {
                !possible.has(*to) && self.can_go_on(certain, possible, inner)
            }
            Kind::Apply { input, body, kind } => {
                let (c, p) = (certain.or(&op_certain(input)), possible.or(&input.uses));
                let slot_is_free = match kind {
                    ApplyKind::Mark(s) => !possible.has(*s),
                    _ => true,
                };
                slot_is_free
                    && self.can_go_on(certain, possible, input)
                    && self.can_go_on(&c, &p, body)
            }
            Kind::Group { .. }
            | Kind::OrderBy { .. }
            | Kind::Distinct { .. }
            | Kind::Slice { .. } => false,
        }
    }

    /// Each row of the input with the node's solutions that go with it. Only if [`Self::can_go_on`].
    pub(crate) fn go_on(&mut self, input: Built, node: &Node) -> Built {
        match &node.kind {
            Kind::Bgp(b) => self.steps(input, b),
            Kind::Path(p) => self.path(input, p),
            Kind::Graphs(g) => {
                let n = self.graph_count();
                let rows = input.rows * n;
                let step = Step {
                    kind: StepKind::Cross {
                        to: *g,
                        source: StartSource::Graphs(self.dataset.named.clone()),
                        within: None,
                    },
                    filters: vec![],
                    live: vec![],
                    rows,
                    cost: rows,
                    why: "in each graph".into(),
                };
                let mut out = on_steps(input, vec![step], rows, rows);
                out.certain.insert(*g);
                out.possible.insert(*g);
                out
            }
            Kind::Join(parts) => {
                let mut at = input;
                let mut rest: Vec<&Node> = parts.iter().collect();
                while !rest.is_empty() {
                    // What is connected comes first, as long as the others can still follow.
                    let next = (0..rest.len())
                        .filter(|&i| rest[i].uses.meets(&at.possible))
                        .find(|&i| self.can_follow(&at.certain, &at.possible, &rest, i))
                        .unwrap_or(0);
                    at = self.go_on(at, rest.remove(next));
                }
                at
            }
            Kind::Union(branches) => {
                // All of the row's columns: what comes after reads others than the union does.
                let is_row = matches!(input.op, Operator::Outer(_));
                let row = if is_row {
                    input.clone()
                } else {
                    row_of(&input, &node.uses.and(&input.possible))
                };
                let built = branches
                    .iter()
                    .map(|b| self.go_on(row.clone(), b))
                    .collect::<Vec<_>>();
                let all = union(built);
                if is_row {
                    return all;
                }
                apply_op(input, all, ApplyKind::Inner, false)
            }
            Kind::LeftJoin {
                left,
                right,
                condition,
            } => {
                let left = self.go_on(input, left);
                self.optional_by_row(left, right, condition)
            }
            Kind::Filter { inner, filters } => {
                let b = self.go_on(input, inner);
                self.filter(b, filters)
            }
            Kind::Extend { inner, to, value } => {
                let b = self.go_on(input, inner);
                self.extend(b, *to, value)
            }
            Kind::Apply {
                input: i,
                body,
                kind,
            } => {
                let b = self.go_on(input, i);
                self.apply_by_row(b, body, *kind)
            }
            Kind::Project(inner) | Kind::Reduced { inner, .. } => self.go_on(input, inner),
            _ => {
                let right = self.build(node);
                hash_join(input, right, JoinKind::Inner, None)
            }
        }
    }

    /// True if all parts can go on from the rows one after the other, this one first.
    fn can_follow(
        &self,
        certain: &SlotSet,
        possible: &SlotSet,
        parts: &[&Node],
        first: usize,
    ) -> bool {
        let (mut certain, mut possible) = (certain.clone(), possible.clone());
        let (mut known, mut nodes) = (SlotSet::default(), vec![]);
        let others = (0..parts.len()).filter(|&i| i != first);
        std::iter::once(first).chain(others).all(|i| {
            let p = parts[i];
            let ok = self.can_go_on(&certain, &possible, p) && is_safe(p, &known, &nodes);
            certain.add(&op_certain(p));
            possible.add(&p.uses);
            known.add(&p.uses);
            sure_nodes(p, &mut nodes);
            ok
        })
    }

    fn steps(&mut self, input: Built, bgp: &Bgp) -> Built {
        let uses: SlotSet = bgp.patterns.iter().flat_map(|p| p.slots()).collect();
        let given = uses.and(&input.certain);
        let planned = steps::plan(
            bgp,
            &mut self.slots,
            Some((&given, input.rows)),
            self.dataset,
            self.snapshot,
        );
        match planned {
            Ok(p) => {
                let mut out = if p.steps.is_empty() {
                    input
                } else {
                    on_steps(input, p.steps, p.rows, p.cost)
                };
                out.nodes.extend(nodes_of(bgp));
                out.certain.add(&uses);
                out.possible.add(&uses);
                for c in p.conditions {
                    out = filtered(out, c);
                }
                out
            }
            Err(_) => {
                // Nothing goes with any row.
                let mut out = filtered(input, Condition::Or(vec![]));
                out.certain.add(&uses);
                out.possible.add(&uses);
                out.rows = 0.0;
                out
            }
        }
    }

    fn optional_by_row(&mut self, left: Built, right: &Node, condition: &[Expr]) -> Built {
        let mut uses = right.uses.clone();
        condition.iter().for_each(|c| uses.add(&c.slots()));
        let row = row_of(&left, &uses.and(&left.possible));
        let inner = self.go_on(row, right);
        let inner = self.filter(inner, condition);
        apply_op(left, inner, ApplyKind::Left, false)
    }

    fn apply_by_row(&mut self, input: Built, body: &Node, kind: ApplyKind) -> Built {
        let row = row_of(&input, &body.uses.and(&input.possible));
        let inner = self.go_on(row, body);
        apply_op(input, inner, kind, false)
    }

    // ---- operators ----

    fn left_join(&mut self, left: Built, right: &Node, condition: &[Expr]) -> Built {
        let mut needs = SlotSet::default();
        condition.iter().for_each(|c| needs.add(&c.slots()));
        let left = self.with_outer(left, &needs);
        let by_row = self.can_go_on(&left.certain, &left.possible, right)
            && is_safe(right, &left.possible, &left.nodes);
        let by_row = by_row.then(|| self.optional_by_row(left.clone(), right, condition));
        let right = self.build(right);
        let hashed = {
            let both = left.certain.or(&right.certain);
            let condition = self.conjunction(condition, &both);
            hash_join(left, right, JoinKind::Left, condition)
        };
        cheaper(by_row, hashed)
    }

    fn minus(&mut self, left: Built, above: &SlotSet, right: &Node) -> Built {
        let shared = above.and(&right.possible);
        if shared.is_empty() {
            return left;
        }
        let plain = shared.is_within(&left.certain) && shared.is_within(&right.certain);
        let by_row = plain
            && self.can_go_on(&left.certain, &left.possible, right)
            && is_safe(right, &left.possible, &left.nodes);
        let by_row = by_row.then(|| self.apply_by_row(left.clone(), right, ApplyKind::Anti));
        let visible = right.possible.clone();
        let mut right = self.build(right);
        let hashed = if plain {
            hash_join(left, right, JoinKind::Anti, None)
        } else {
            // Only variables in scope tell whether the sides have something in common.
            if right.possible.meets(&left.possible.minus(&visible)) {
                let slots = visible.and(&right.possible);
                right.possible = slots.clone();
                right.certain = right.certain.and(&slots);
                right = right.with(|op| Operator::Reduced(op, slots.to_vec()), None, 0.0);
            }
            hash_join(left, right, JoinKind::Minus, None)
        };
        cheaper(by_row, hashed)
    }

    fn apply(&mut self, input: Built, body: &Node, kind: ApplyKind) -> Built {
        let input = self.with_outer(input, &body.uses);
        let shared = body.uses.and(&input.possible);
        let by_row = self
            .can_go_on(&input.certain, &input.possible, body)
            .then(|| self.apply_by_row(input.clone(), body, kind));
        // A body that means the same by itself can be hashed once.
        let join = match kind {
            ApplyKind::Semi => Some(JoinKind::Semi),
            ApplyKind::Anti => Some(JoinKind::Anti),
            _ => None,
        };
        let is_independent = shared.is_within(&input.certain)
            && shared.is_within(&op_certain(body))
            && !shared.is_empty()
            && is_safe(body, &shared, &input.nodes);
        if let (Some(join), true) = (join, is_independent) {
            let right = self.build(body);
            let hashed = hash_join(input, right, join, None);
            return cheaper(by_row, hashed);
        }
        if let Some(b) = by_row {
            return b;
        }
        let row = OuterRow {
            certain: input.certain.clone(),
            possible: input.possible.clone(),
        };
        let before = std::mem::replace(&mut self.outer, row);
        let inner = self.build(body);
        self.outer = before;
        apply_op(input, inner, kind, true)
    }

    /// Keeps rows on which all filters are true.
    fn filter(&mut self, b: Built, filters: &[Expr]) -> Built {
        let mut needs = SlotSet::default();
        filters.iter().for_each(|f| needs.add(&f.slots()));
        let b = self.with_outer(b, &needs);
        match self.conjunction(filters, &b.certain) {
            Some(c) => filtered(b, c),
            None => b,
        }
    }

    fn conjunction(&self, filters: &[Expr], certain: &SlotSet) -> Option<Condition> {
        let compiler = Compiler {
            snapshot: self.snapshot,
            resources: 0,
            certain: Some(certain),
        };
        let mut all: Vec<Condition> = filters
            .iter()
            .filter_map(|f| match compiler.compile(f) {
                Compiled::True => None,
                other => Some(condition::known(other)),
            })
            .collect();
        match all.len() {
            0 => None,
            1 => all.pop(),
            _ => Some(Condition::And(all)),
        }
    }

    fn extend(&mut self, b: Built, to: Slot, value: &Expr) -> Built {
        use spargebra::algebra::Expression;
        let b = self.with_outer(b, &value.slots());
        let bound = match &value.expression {
            Expression::NamedNode(_) | Expression::Literal(_) => true,
            Expression::Variable(v) => value.slot(v).is_some_and(|s| b.certain.has(s)),
            _ => false,
        };
        let cost = b.cost + b.rows * if bound { OUT } else { EXPRESSION };
        let value = value.general();
        let mut out = b.with(|input| Operator::Extend { input, to, value }, None, cost);
        out.possible.insert(to);
        if bound {
            out.certain.insert(to);
        }
        out
    }

    // ---- paths ----

    fn path(&mut self, input: Built, p: &PathNode) -> Built {
        let mut input = input;
        let graph = match &p.place {
            Place::Default => self.dataset.default.clone(),
            Place::Named(name) => match self.dataset.graph(name, self.snapshot) {
                Some(g) => GraphRef::Named(g),
                None => {
                    let mut none = filtered(input, Condition::Or(vec![]));
                    for end in [&p.subject, &p.object] {
                        if let End::Slot(s) = end {
                            none.certain.insert(*s);
                            none.possible.insert(*s);
                        }
                    }
                    return none;
                }
            },
            Place::Slot(g) => {
                if !input.possible.has(*g) {
                    let graphs = Node::graphs(*g);
                    input = if is_unit(&input) {
                        self.graphs(*g)
                    } else {
                        self.go_on(input, &graphs)
                    };
                }
                GraphRef::Slot(*g)
            }
        };
        let path = self.path_of(&p.path);
        let mut binds = vec![];
        let mut unknown = vec![];
        let mut ends = vec![];
        for end in [&p.subject, &p.object] {
            ends.push(match end {
                End::Slot(s) if input.certain.has(*s) => FarEnd::Known(Operand::Slot(*s)),
                End::Slot(s) => {
                    binds.push(*s);
                    FarEnd::Bind(*s)
                }
                End::Term(bytes) => match self.snapshot.lookup(bytes) {
                    Some(VertexId(v)) => FarEnd::Known(Operand::Const(v)),
                    None => {
                        // A path of length zero gives a term that is nowhere in the store.
                        let s = self.slots.len().min(usize::from(Slot::MAX)) as Slot;
                        self.slots.push(format!("term {s}"));
                        unknown.push((s, bytes.clone()));
                        FarEnd::Known(Operand::Slot(s))
                    }
                },
            });
        }
        for (s, bytes) in unknown {
            let values = Built {
                op: Operator::Values {
                    slots: vec![s],
                    rows: vec![vec![Cell::Term(bytes)]],
                },
                certain: SlotSet::one(s),
                possible: SlotSet::one(s),
                nodes: vec![],
                rows: 1.0,
                cost: OUT,
            };
            input = if is_unit(&input) {
                values
            } else {
                hash_join(input, values, JoinKind::Inner, None)
            };
        }
        let (Some(object), Some(subject)) = (ends.pop(), ends.pop()) else {
            return input;
        };
        let quads = self.snapshot.statistics().quads as f64;
        let (each, visited) = cost::path(&subject, &object, quads);
        let rows = input.rows * each;
        let cost = input.cost + input.rows * visited * PATH;
        let mut out = input.with(
            |input| Operator::Path {
                input,
                subject,
                path,
                object,
                graph,
            },
            Some(rows),
            cost,
        );
        for s in binds {
            out.certain.insert(s);
            out.possible.insert(s);
        }
        out
    }

    fn path_of(&self, p: &PropertyPathExpression) -> Path {
        use PropertyPathExpression as P;
        let predicate = |n: &spargebra::term::NamedNode| {
            let mut bytes = vec![];
            term::push_iri(n.as_str(), &mut bytes);
            let v = self.snapshot.lookup(&bytes)?;
            self.snapshot.predicate_of(v)
        };
        match p {
            P::NamedNode(n) => Path::Predicate(predicate(n)),
            P::Reverse(p) => Path::Inverse(Box::new(self.path_of(p))),
            P::Sequence(a, b) => {
                let mut parts = vec![];
                for p in [a, b] {
                    match self.path_of(p) {
                        Path::Sequence(more) => parts.extend(more),
                        one => parts.push(one),
                    }
                }
                Path::Sequence(parts)
            }
            P::Alternative(a, b) => {
                let mut parts = vec![];
                for p in [a, b] {
                    match self.path_of(p) {
                        Path::Alternative(more) => parts.extend(more),
                        one => parts.push(one),
                    }
                }
                Path::Alternative(parts)
            }
            P::ZeroOrMore(p) => Path::ZeroOrMore(Box::new(self.path_of(p))),
            P::OneOrMore(p) => Path::OneOrMore(Box::new(self.path_of(p))),
            P::ZeroOrOne(p) => Path::ZeroOrOne(Box::new(self.path_of(p))),
            P::NegatedPropertySet(list) => {
                Path::Except(list.iter().filter_map(predicate).collect())
            }
        }
    }
}

/// Slots that an operator over the node's rows finds bound in every row: those in scope, and the graph's.
pub(crate) fn op_certain(node: &Node) -> SlotSet {
    let graphs = match &node.kind {
        Kind::Bgp(_) | Kind::Graphs(_) | Kind::Path(_) => return node.uses.clone(),
        Kind::Join(parts) => parts
            .iter()
            .fold(SlotSet::default(), |a, p| a.or(&op_certain(p))),
        Kind::LeftJoin { left: inner, .. }
        | Kind::Minus { left: inner, .. }
        | Kind::Apply { input: inner, .. }
        | Kind::Filter { inner, .. }
        | Kind::Extend { inner, .. }
        | Kind::Reduced { inner, .. }
        | Kind::Project(inner) => op_certain(inner),
        _ => SlotSet::default(),
    };
    node.certain.or(&graphs)
}

/// True if the node's solutions, restricted to values of the slots `known`, are what evaluation with those values
/// put in from the start gives: no filter, OPTIONAL, MINUS or BIND inside sees them bound before it would.
pub(crate) fn is_safe(node: &Node, known: &SlotSet, nodes: &Nodes) -> bool {
    if !node.uses.meets(known) {
        return true;
    }
    let sees_bound = |read: &SlotSet, bound: &SlotSet| read.and(known).is_within(bound);
    match &node.kind {
        // Between two variables, a path of length zero is only on nodes of the graph.
        Kind::Path(p) => match (&p.subject, &p.object) {
            (End::Slot(s), End::Slot(o)) => {
                let is_node = |s: &Slot| nodes.iter().any(|n| n.0 == p.place && n.1 == *s);
                !is_nullable(&p.path) || [s, o].iter().all(|s| !known.has(**s) || is_node(s))
            }
            _ => true,
        },
        Kind::Bgp(_) | Kind::Values { .. } | Kind::Graphs(_) | Kind::HasGraph(_) => true,
        Kind::Join(parts) | Kind::Union(parts) => parts.iter().all(|p| is_safe(p, known, nodes)),
        Kind::Filter { inner, filters } => {
            is_safe(inner, known, nodes)
                && filters
                    .iter()
                    .all(|f| sees_bound(&f.slots(), &inner.certain))
        }
        Kind::Extend { inner, to, value } => {
            !known.has(*to)
                && is_safe(inner, known, nodes)
                && sees_bound(&value.slots(), &inner.certain)
        }
        Kind::LeftJoin {
            left,
            right,
            condition,
        } => {
            let both = left.certain.or(&right.certain);
            is_safe(left, known, nodes)
                && is_safe(right, known, nodes)
                && sees_bound(&right.uses, &op_certain(left))
                && condition.iter().all(|c| sees_bound(&c.slots(), &both))
        }
        Kind::Minus { left, right } => {
            is_safe(left, known, nodes)
                && is_safe(right, known, nodes)
                && sees_bound(&right.uses, &left.certain.and(&right.certain))
        }
        Kind::Apply { input, body, kind } => {
            !matches!(kind, ApplyKind::Inner | ApplyKind::Left)
                && is_safe(input, known, nodes)
                && sees_bound(&body.uses, &op_certain(input))
        }
        Kind::Project(inner) | Kind::Reduced { inner, .. } => is_safe(inner, known, nodes),
        Kind::Service(_)
        | Kind::Group { .. }
        | Kind::OrderBy { .. }
        | Kind::Distinct { .. }
        | Kind::Slice { .. } => false,
    }
}

/// True if a path may have length zero.
fn is_nullable(path: &PropertyPathExpression) -> bool {
    use PropertyPathExpression as P;
    match path {
        P::ZeroOrMore(_) | P::ZeroOrOne(_) => true,
        P::NamedNode(_) | P::NegatedPropertySet(_) => false,
        P::Reverse(p) | P::OneOrMore(p) => is_nullable(p),
        P::Sequence(a, b) => is_nullable(a) && is_nullable(b),
        P::Alternative(a, b) => is_nullable(a) || is_nullable(b),
    }
}

fn nodes_of(bgp: &Bgp) -> Nodes {
    let ends = bgp
        .patterns
        .iter()
        .flat_map(|p| [(&p.place, &p.subject), (&p.place, &p.object)]);
    ends.filter_map(|(place, end)| match end {
        End::Slot(s) => Some((place.clone(), *s)),
        End::Term(_) => None,
    })
    .collect()
}

/// Slots that hold nodes of a graph in each of the node's rows.
fn sure_nodes(node: &Node, out: &mut Nodes) {
    match &node.kind {
        Kind::Bgp(b) => out.extend(nodes_of(b)),
        Kind::Join(parts) => parts.iter().for_each(|p| sure_nodes(p, out)),
        Kind::LeftJoin { left: inner, .. }
        | Kind::Minus { left: inner, .. }
        | Kind::Apply { input: inner, .. }
        | Kind::Filter { inner, .. }
        | Kind::Extend { inner, .. }
        | Kind::Project(inner) => sure_nodes(inner, out),
        _ => {}
    }
}

impl Built {
    pub(crate) fn with(
        self,
        op: impl FnOnce(Box<Operator>) -> Operator,
        rows: Option<f64>,
        cost: f64,
    ) -> Self {
        Self {
            op: op(Box::new(self.op)),
            rows: rows.unwrap_or(self.rows),
            cost: cost.max(self.cost),
            certain: self.certain,
            possible: self.possible,
            nodes: self.nodes,
        }
    }
}

/// One empty row.
pub(crate) fn unit() -> Built {
    let step = Step {
        kind: StepKind::Start {
            to: None,
            source: StartSource::Unit,
            within: None,
        },
        filters: vec![],
        live: vec![],
        rows: 1.0,
        cost: 0.0,
        why: "one empty row".into(),
    };
    Built {
        op: Operator::Explore(Exploration {
            steps: vec![step],
            empty: None,
        }),
        certain: SlotSet::default(),
        possible: SlotSet::default(),
        nodes: vec![],
        rows: 1.0,
        cost: 0.0,
    }
}

fn is_unit(b: &Built) -> bool {
    matches!(&b.op, Operator::Explore(e) if matches!(e.steps.as_slice(),
        [Step { kind: StepKind::Start { source: StartSource::Unit, .. }, filters, .. }] if filters.is_empty()))
}

pub(crate) fn nothing(why: String) -> Built {
    Built {
        op: Operator::Explore(Exploration {
            steps: vec![],
            empty: Some(why),
        }),
        certain: SlotSet::default(),
        possible: SlotSet::default(),
        nodes: vec![],
        rows: 0.0,
        cost: 0.0,
    }
}

/// The input's rows as the inner part of an `Apply` reads them.
pub(crate) fn row_of(input: &Built, slots: &SlotSet) -> Built {
    Built {
        op: Operator::Outer(slots.to_vec()),
        certain: slots.and(&input.certain),
        possible: slots.clone(),
        nodes: input.nodes.clone(),
        rows: input.rows,
        cost: 0.0,
    }
}

fn on_steps(input: Built, more: Vec<Step>, rows: f64, cost: f64) -> Built {
    let cost = input.cost + cost;
    // Steps that go on from steps are one list.
    match input.op {
        Operator::Explore(Exploration { mut steps, empty }) if empty.is_none() => {
            steps.extend(more);
            Built {
                op: Operator::Explore(Exploration { steps, empty }),
                rows,
                cost,
                ..input
            }
        }
        Operator::Steps {
            input: i,
            mut steps,
        } => {
            steps.extend(more);
            Built {
                op: Operator::Steps { input: i, steps },
                rows,
                cost,
                ..input
            }
        }
        _ => input.with(
            |input| Operator::Steps { input, steps: more },
            Some(rows),
            cost,
        ),
    }
}

pub(crate) fn apply_op(input: Built, inner: Built, kind: ApplyKind, each_row: bool) -> Built {
    let (mut certain, mut possible) = (input.certain.clone(), input.possible.clone());
    let mut nodes = input.nodes.clone();
    // By rows the inner part's figures are of all rows together.
    let times = if each_row { input.rows.max(1.0) } else { 1.0 };
    let found = inner.rows * times;
    let rows = match kind {
        ApplyKind::Inner => {
            certain.add(&inner.certain);
            possible.add(&inner.possible);
            nodes.extend(inner.nodes);
            found
        }
        ApplyKind::Left => {
            possible.add(&inner.possible);
            found.max(input.rows)
        }
        ApplyKind::Semi => input.rows.min(found),
        ApplyKind::Anti => (input.rows - found).max(input.rows * 0.05),
        ApplyKind::Mark(s) => {
            certain.insert(s);
            possible.insert(s);
            input.rows
        }
    };
    let cost = input.cost + inner.cost * times + (input.rows + found) * OUT * 4.0;
    Built {
        op: Operator::Apply {
            input: Box::new(input.op),
            inner: Box::new(inner.op),
            kind,
            each_row,
        },
        certain,
        possible,
        nodes,
        rows,
        cost,
    }
}

/// Both sides matched on all slots that both have.
pub(crate) fn hash_join(
    left: Built,
    right: Built,
    kind: JoinKind,
    condition: Option<Condition>,
) -> Built {
    let shared = left.possible.and(&right.possible);
    let on: Vec<JoinKey> = shared
        .iter()
        .map(|slot| JoinKey {
            slot,
            left_bound: left.certain.has(slot),
            right_bound: right.certain.has(slot),
        })
        .collect();
    let (mut certain, mut possible) = (left.certain.clone(), left.possible.clone());
    let mut nodes = left.nodes.clone();
    let matched = cost::joined(left.rows, right.rows, on.len());
    let rows = match kind {
        JoinKind::Inner => {
            certain.add(&right.certain);
            possible.add(&right.possible);
            nodes.extend(right.nodes);
            matched
        }
        JoinKind::Left => {
            possible.add(&right.possible);
            matched.max(left.rows)
        }
        JoinKind::Semi => left.rows.min(matched),
        JoinKind::Anti | JoinKind::Minus => (left.rows - matched).max(left.rows * 0.05),
    };
    let probe = if on.is_empty() { OUT } else { HASH_PROBE };
    let cost =
        left.cost + right.cost + right.rows * HASH_BUILD + left.rows * probe + matched * OUT * 4.0;
    Built {
        op: Operator::Join {
            kind,
            left: Box::new(left.op),
            right: Box::new(right.op),
            on,
            condition,
        },
        certain,
        possible,
        nodes,
        rows,
        cost,
    }
}

pub(crate) fn filtered(b: Built, c: Condition) -> Built {
    let each = if matches!(c, Condition::General(_)) {
        EXPRESSION
    } else {
        2.0 * OUT
    };
    let rows = b.rows * condition::selectivity(&c);
    let cost = b.cost + b.rows * each;
    match b.op {
        Operator::Filter(i, Condition::And(mut list)) => {
            list.push(c);
            let op = Operator::Filter(i, Condition::And(list));
            Built {
                op,
                rows,
                cost,
                ..b
            }
        }
        _ => b.with(|op| Operator::Filter(op, c), Some(rows), cost),
    }
}

fn union(built: Vec<Built>) -> Built {
    let mut parts = built.iter();
    let Some(first) = parts.next() else {
        return nothing("a union of nothing".into());
    };
    let (mut certain, mut possible) = (first.certain.clone(), first.possible.clone());
    let (mut rows, mut cost) = (first.rows, first.cost);
    let mut nodes = first.nodes.clone();
    for b in parts {
        nodes.retain(|n| b.nodes.contains(n));
        certain = certain.and(&b.certain);
        possible.add(&b.possible);
        rows += b.rows;
        cost += b.cost;
    }
    Built {
        op: Operator::Union(built.into_iter().map(|b| b.op).collect()),
        certain,
        possible,
        nodes,
        rows,
        cost,
    }
}

fn group(inner: Built, by: &[Slot], aggregates: &[Aggregate]) -> Built {
    let rows = if by.is_empty() {
        1.0
    } else {
        inner.rows.sqrt()
    };
    let is_plain = |a: &Aggregate| {
        matches!(
            a.function,
            AggregateFunction::Count | AggregateFunction::CountRows
        ) && a.of.is_none_or(|s| inner.certain.has(s))
            && a.row.iter().all(|s| inner.certain.has(*s))
    };
    let mut certain: SlotSet = by
        .iter()
        .copied()
        .filter(|s| inner.certain.has(*s))
        .collect();
    let mut possible: SlotSet = by
        .iter()
        .copied()
        .filter(|s| inner.possible.has(*s))
        .collect();
    for a in aggregates {
        possible.insert(a.to);
        if matches!(
            a.function,
            AggregateFunction::Count | AggregateFunction::CountRows
        ) {
            certain.insert(a.to);
        }
    }
    let counts_only = !aggregates.is_empty()
        && aggregates.iter().all(is_plain)
        && by.iter().all(|s| inner.certain.has(*s));
    let each = if by.is_empty() && aggregates.iter().all(|a| !a.distinct) {
        OUT
    } else {
        GROUP
    };
    let cost = inner.cost + inner.rows * each;
    let (by, aggregates) = (by.to_vec(), aggregates.to_vec());
    let out = inner.with(
        |input| {
            if counts_only {
                let counts = aggregates
                    .into_iter()
                    .map(|a| Count {
                        to: a.to,
                        of: a.of,
                        distinct: a.distinct,
                        row: a.row,
                    })
                    .collect();
                Operator::Count {
                    input,
                    group: by,
                    counts,
                }
            } else {
                Operator::Group {
                    input,
                    by,
                    aggregates,
                }
            }
        },
        Some(rows),
        cost,
    );
    Built {
        certain,
        possible,
        ..out
    }
}

fn slice(b: Built, offset: u64, limit: Option<u64>) -> Built {
    let (mut rows, mut cost) = (b.rows, b.cost);
    if let Some(limit) = limit {
        let share = (offset.saturating_add(limit) as f64 / rows.max(1.0)).min(1.0);
        rows *= share;
        if is_streaming(&b.op) {
            // The pipeline stops when it has enough.
            cost *= share;
        }
    }
    Built {
        op: Operator::Slice {
            input: Box::new(b.op),
            offset,
            limit,
        },
        rows,
        cost,
        ..b
    }
}

/// True if rows come out before all have gone in.
fn is_streaming(op: &Operator) -> bool {
    match op {
        Operator::Group { .. } | Operator::Count { .. } | Operator::OrderBy(..) => false,
        Operator::Filter(i, _)
        | Operator::Extend { input: i, .. }
        | Operator::Distinct(i, _)
        | Operator::Reduced(i, _)
        | Operator::Steps { input: i, .. }
        | Operator::Path { input: i, .. }
        | Operator::Apply { input: i, .. }
        | Operator::Slice { input: i, .. }
        | Operator::Join { left: i, .. } => is_streaming(i),
        Operator::Union(list) => list.iter().all(is_streaming),
        Operator::Explore(_)
        | Operator::Outer(_)
        | Operator::Values { .. }
        | Operator::Service(_) => true,
    }
}

fn cheaper(a: Option<Built>, b: Built) -> Built {
    match a {
        Some(a) if a.cost <= b.cost => a,
        _ => b,
    }
}

/// An order that only a bag sees is none.
fn unordered(node: &Node) -> &Node {
    let mut at = node;
    while let Kind::OrderBy { inner, .. } = &at.kind {
        at = inner;
    }
    at
}

fn kept(slots: &[Slot], possible: &SlotSet) -> Vec<Slot> {
    slots.iter().copied().filter(|s| possible.has(*s)).collect()
}

/// Parts of a group, each small enough, and the filters that need several.
fn cut(bgp: &Bgp) -> (Vec<Node>, Vec<Expr>) {
    let half = steps::MAX_LOCAL / 2;
    let mut parts: Vec<(Bgp, SlotSet)> = vec![];
    for p in &bgp.patterns {
        let slots: SlotSet = p.slots().collect();
        let fits = |(b, s): &(Bgp, SlotSet)| b.patterns.len() < half && s.or(&slots).len() <= half;
        let connected = parts.iter().position(|x| fits(x) && x.1.meets(&slots));
        let at = connected.or_else(|| parts.iter().position(fits));
        match at.and_then(|i| parts.get_mut(i)) {
            Some((b, s)) => {
                b.patterns.push(p.clone());
                s.add(&slots);
            }
            None => parts.push((
                Bgp {
                    patterns: vec![p.clone()],
                    filters: vec![],
                },
                slots,
            )),
        }
    }
    let mut nodes: Vec<Node> = parts
        .into_iter()
        .map(|(b, _)| Node::bgp(b.patterns, SlotSet::default()))
        .collect();
    let mut rest = vec![];
    for f in &bgp.filters {
        let slots = f.slots();
        let part = nodes.iter_mut().find(|n| slots.is_within(&n.certain));
        match part.map(|n| &mut n.kind) {
            Some(Kind::Bgp(b)) => b.filters.push(f.clone()),
            _ => rest.push(f.clone()),
        }
    }
    (nodes, rest)
}
