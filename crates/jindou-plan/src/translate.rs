//! SPARQL algebra → a [`Node`] tree over slots, or the reason why not.
//!
//! Scoping is exact: a variable is one slot in one scope (a query, a sub-query's inside, an aggregated group's inside),
//! and an expression names only variables that its group can see.

use crate::expression::{Expr, conjuncts, parts_mut, varies, walk};
use crate::logical::{End, Node, PathNode, Pattern, Place};
use crate::set::SlotSet;
use crate::{Aggregate, AggregateFunction, ApplyKind, Form, Service, Slot, TemplateTerm};
use jindou_model::term;
use rustc_hash::FxHashMap;
use spargebra::Query;
use spargebra::algebra::{
    AggregateExpression, AggregateFunction as SetFunction, Expression, Function, GraphPattern,
    OrderExpression, PropertyPathExpression, QueryDataset,
};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern, Variable};

/// Why a query is not native; shown by EXPLAIN.
pub(crate) type Reason = String;

/// Everything but the order of evaluation.
pub(crate) struct Logical {
    pub form: Form,
    pub dataset: Option<QueryDataset>,
    /// Name of each slot; hidden ones contain a space.
    pub slots: Vec<String>,
    pub root: Node,
    pub output: Vec<Slot>,
}

pub(crate) fn of(query: &Query) -> Result<Logical, Reason> {
    let (Query::Select { pattern, .. }
    | Query::Ask { pattern, .. }
    | Query::Construct { pattern, .. }
    | Query::Describe { pattern, .. }) = query;
    let mut t = Translator {
        base: query.base_iri().map(|b| b.as_str().to_owned()),
        ..Translator::default()
    };
    let mut env = Env {
        is_top: matches!(query, Query::Select { .. } | Query::Describe { .. }),
        ..Env::default()
    };
    let mut root = t.pattern(pattern, &mut env, &Place::Default)?;
    let mut output = vec![];
    let form = match query {
        Query::Ask { .. } => {
            root = root.above(|inner| crate::logical::Kind::Slice {
                inner,
                offset: 0,
                limit: Some(1),
            });
            Form::Ask
        }
        Query::Select { .. } | Query::Describe { .. } => {
            for v in projected(pattern).ok_or("no projection")? {
                output.push(t.variable(v, &mut env));
            }
            if matches!(query, Query::Select { .. }) {
                Form::Select
            } else {
                Form::Describe
            }
        }
        Query::Construct { template, .. } => {
            let mut columns = Columns::default();
            let triples = template
                .iter()
                .map(|p| columns.triple(p))
                .collect::<Vec<_>>();
            for v in &columns.variables {
                output.push(t.variable(v, &mut env));
            }
            Form::Construct(triples)
        }
    };
    Ok(Logical {
        form,
        dataset: query.dataset().cloned(),
        slots: t.slots,
        root,
        output,
    })
}

/// The variables of a SELECT.
fn projected(pattern: &GraphPattern) -> Option<&[Variable]> {
    match pattern {
        GraphPattern::Project { variables, .. } => Some(variables),
        GraphPattern::Slice { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner } => projected(inner),
        _ => None,
    }
}

/// The columns that a template reads, and its blank nodes.
#[derive(Default)]
struct Columns {
    variables: Vec<Variable>,
    blanks: Vec<String>,
}

impl Columns {
    fn triple(&mut self, p: &TriplePattern) -> [TemplateTerm; 3] {
        let predicate = match &p.predicate {
            NamedNodePattern::NamedNode(n) => TemplateTerm::Term(iri(n.as_str())),
            NamedNodePattern::Variable(v) => self.column(v),
        };
        [self.term(&p.subject), predicate, self.term(&p.object)]
    }

    fn column(&mut self, v: &Variable) -> TemplateTerm {
        let at = self.variables.iter().position(|x| x == v);
        TemplateTerm::Column(at.unwrap_or_else(|| {
            self.variables.push(v.clone());
            self.variables.len() - 1
        }))
    }

    fn term(&mut self, t: &TermPattern) -> TemplateTerm {
        match t {
            TermPattern::NamedNode(n) => TemplateTerm::Term(iri(n.as_str())),
            TermPattern::Literal(l) => TemplateTerm::Term(literal(l)),
            TermPattern::Variable(v) => self.column(v),
            TermPattern::BlankNode(b) => {
                let at = self.blanks.iter().position(|x| x == b.as_str());
                TemplateTerm::Blank(at.unwrap_or_else(|| {
                    self.blanks.push(b.as_str().to_owned());
                    self.blanks.len() - 1
                }))
            }
            TermPattern::Triple(t) => TemplateTerm::Triple(Box::new(self.triple(t))),
        }
    }
}

fn iri(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() + 1);
    term::push_iri(text, &mut bytes);
    bytes
}

fn literal(l: &spargebra::term::Literal) -> Vec<u8> {
    let mut bytes = vec![];
    term::push_literal(l, &mut bytes);
    bytes
}

/// The slots of one scope's variables.
#[derive(Default)]
struct Env {
    slots: FxHashMap<Variable, Slot>,
    /// Above the query's own SELECT.
    is_top: bool,
    /// Directly below it: `(?x AS ?y)` there is another name for the slot, since nothing joins with it.
    is_select: bool,
    /// Inside a scope with hidden variables.
    is_inner: bool,
}

#[derive(Default)]
struct Translator {
    slots: Vec<String>,
    blanks: FxHashMap<String, Slot>,
    /// Variables of the rows that an EXISTS or LATERAL body is evaluated for.
    outer: SlotSet,
    base: Option<String>,
}

impl Translator {
    fn new_slot(&mut self, name: String) -> Result<Slot, Reason> {
        let slot = Slot::try_from(self.slots.len()).map_err(|_| "more than 65,535 variables")?;
        self.slots.push(name);
        Ok(slot)
    }

    fn hidden(&mut self, what: &str) -> Result<Slot, Reason> {
        self.new_slot(format!("{what} {}", self.slots.len()))
    }

    fn variable(&mut self, v: &Variable, env: &mut Env) -> Slot {
        if let Some(&slot) = env.slots.get(v) {
            return slot;
        }
        let name = if env.is_inner {
            format!("{} inside {}", v.as_str(), self.slots.len())
        } else {
            v.as_str().to_owned()
        };
        // A query of at most 4 MiB has fewer than 2^16 variables only if it is not all variables: the last slot
        // then stands for the rest, and `pattern` refuses the query.
        let slot = (self.slots.len().min(usize::from(Slot::MAX))) as Slot;
        self.slots.push(name);
        env.slots.insert(v.clone(), slot);
        slot
    }

    #[allow(clippy::too_many_lines)]
    fn pattern(&mut self, p: &GraphPattern, env: &mut Env, place: &Place) -> Result<Node, Reason> {
        if self.slots.len() >= usize::from(Slot::MAX) {
            return Err("more than 65,535 variables".into());
        }
        let is_select = env.is_select;
        env.is_select = is_select
            && matches!(
                p,
                GraphPattern::Extend { .. } | GraphPattern::OrderBy { .. }
            );
        Ok(match p {
            GraphPattern::Bgp { patterns } => self.bgp(patterns, env, place)?,
            GraphPattern::Path {
                subject,
                path,
                object,
            } => {
                let subject = self.end(subject, env)?;
                let object = self.end(object, env)?;
                self.path(subject, path, object, place)?
            }
            GraphPattern::Join { left, right } => {
                let left = self.pattern(left, env, place)?;
                let right = self.pattern(right, env, place)?;
                Node::join(left, right)
            }
            GraphPattern::LeftJoin {
                left,
                right,
                expression,
            } => {
                let left = self.pattern(left, env, place)?;
                let right = self.pattern(right, env, place)?;
                let left = in_some_graph(left, &right.uses, place);
                let both = left.possible.or(&right.possible);
                let mut condition = vec![];
                let mut exists = false;
                if let Some(e) = expression {
                    for c in conjuncts(e) {
                        if has_exists(c) {
                            exists = true;
                        } else {
                            condition.push(self.expr(c, &both, env));
                        }
                    }
                }
                if !exists {
                    return Ok(Node::left_join(left, right, condition));
                }
                // For each row of the left side: its partners on which the condition, EXISTS and all, is true.
                let expression = expression
                    .as_ref()
                    .ok_or("OPTIONAL without its condition")?;
                let before = self.enter(&left.possible);
                let body = self.filter(right, expression, env, place, &both)?;
                self.outer = before;
                left.apply(body, ApplyKind::Left)
            }
            GraphPattern::Lateral { left, right } => {
                let left = self.pattern(left, env, place)?;
                let before = self.enter(&left.possible);
                let body = self.pattern(right, env, place)?;
                self.outer = before;
                in_some_graph(left, &body.uses, place).apply(body, ApplyKind::Inner)
            }
            GraphPattern::Filter { expr, inner } => {
                let node = self.pattern(inner, env, place)?;
                let scope = node.possible.clone();
                self.filter(node, expr, env, place, &scope)?
            }
            GraphPattern::Union { left, right } => {
                // Unions chain to the left.
                let mut rest = vec![&**right];
                let mut at = &**left;
                while let GraphPattern::Union { left, right } = at {
                    rest.push(right);
                    at = left;
                }
                let mut branches = vec![self.pattern(at, env, place)?];
                for b in rest.into_iter().rev() {
                    branches.push(self.pattern(b, env, place)?);
                }
                Node::union(branches)
            }
            GraphPattern::Graph { name, inner } => match name {
                NamedNodePattern::NamedNode(n) => {
                    let place = Place::Named(iri(n.as_str()));
                    let node = self.pattern(inner, env, &place)?;
                    self.in_named(node, &iri(n.as_str()))
                }
                NamedNodePattern::Variable(v) => self.graph(v, inner, env)?,
            },
            GraphPattern::Extend {
                inner,
                variable,
                expression,
            } => self.extend(inner, variable, expression, env, place)?,
            GraphPattern::Minus { left, right } => {
                let left = self.pattern(left, env, place)?;
                let right = self.pattern(right, env, place)?;
                Node::minus(in_some_graph(left, &right.uses, place), right)
            }
            GraphPattern::Values {
                variables,
                bindings,
            } => {
                let slots: Vec<Slot> = variables.iter().map(|v| self.variable(v, env)).collect();
                let rows = bindings
                    .iter()
                    .map(|row| row.iter().map(|t| t.as_ref().map(ground)).collect())
                    .collect();
                Node::values(slots, rows)
            }
            GraphPattern::OrderBy { inner, expression } => {
                let (mut node, keys) = self.ordered(inner, expression, env, place)?;
                if !keys.is_empty() {
                    node = node.above(|inner| crate::logical::Kind::OrderBy { inner, keys });
                }
                node
            }
            GraphPattern::Project { inner, variables } => {
                if env.is_top {
                    // Other variables may stay: nothing joins with them, and unread columns are dropped.
                    env.is_top = false;
                    env.is_select = true;
                    self.pattern(inner, env, place)?
                } else {
                    let (mut own, visible) = self.scope(variables, env);
                    self.pattern(inner, &mut own, place)?.project(&visible)
                }
            }
            GraphPattern::Distinct { inner } => self.distinct(inner, env, place, false)?,
            GraphPattern::Reduced { inner } => self.distinct(inner, env, place, true)?,
            GraphPattern::Slice {
                inner,
                start,
                length,
            } => {
                let node = self.pattern(inner, env, place)?;
                let (offset, limit) = (*start as u64, length.map(|l| l as u64));
                node.above(|inner| crate::logical::Kind::Slice {
                    inner,
                    offset,
                    limit,
                })
            }
            GraphPattern::Group {
                inner,
                variables,
                aggregates,
            } => self.group(inner, variables, aggregates, env, place)?,
            GraphPattern::Service {
                name,
                inner,
                silent,
            } => {
                let NamedNodePattern::NamedNode(endpoint) = name else {
                    return Err("SERVICE with a variable endpoint".into());
                };
                let mut variables: Vec<Variable> = vec![];
                inner.on_in_scope_variable(|v| {
                    if !variables.contains(v) {
                        variables.push(v.clone());
                    }
                });
                variables.sort();
                let slots = variables
                    .iter()
                    .map(|v| (v.as_str().to_owned(), self.variable(v, env)))
                    .collect();
                let query = Query::Select {
                    dataset: None,
                    pattern: GraphPattern::Project {
                        inner: inner.clone(),
                        variables,
                    },
                    base_iri: None,
                };
                Node::service(Service {
                    endpoint: endpoint.as_str().to_owned(),
                    query: query.to_string(),
                    slots,
                    silent: *silent,
                })
            }
        })
    }

    /// A row's variables are visible in the body that is evaluated for it.
    fn enter(&mut self, row: &SlotSet) -> SlotSet {
        let inside = self.outer.or(row);
        std::mem::replace(&mut self.outer, inside)
    }

    /// The inside of a SELECT or of a group: the listed variables are those outside, others are its own.
    fn scope(&mut self, shared: &[Variable], env: &mut Env) -> (Env, SlotSet) {
        let mut own = Env {
            is_inner: true,
            ..Env::default()
        };
        let mut visible = SlotSet::default();
        for v in shared {
            let slot = self.variable(v, env);
            visible.insert(slot);
            own.slots.insert(v.clone(), slot);
        }
        (own, visible)
    }

    fn bgp(
        &mut self,
        patterns: &[TriplePattern],
        env: &mut Env,
        place: &Place,
    ) -> Result<Node, Reason> {
        let mut out: Vec<Pattern> = vec![];
        for p in patterns {
            let subject = self.end(&p.subject, env)?;
            let predicate = match &p.predicate {
                NamedNodePattern::NamedNode(n) => End::Term(iri(n.as_str())),
                NamedNodePattern::Variable(v) => End::Slot(self.variable(v, env)),
            };
            let object = self.end(&p.object, env)?;
            let pattern = Pattern {
                subject,
                predicate,
                object,
                place: place.clone(),
            };
            if !out.contains(&pattern) {
                out.push(pattern);
            }
        }
        Ok(match place {
            // `GRAPH ?g` binds even around nothing.
            Place::Slot(g) if out.is_empty() => Node::graphs(*g),
            Place::Slot(g) => Node::bgp(out, SlotSet::one(*g)),
            _ => Node::bgp(out, SlotSet::default()),
        })
    }

    fn path(
        &mut self,
        s: End,
        path: &PropertyPathExpression,
        o: End,
        place: &Place,
    ) -> Result<Node, Reason> {
        use PropertyPathExpression as P;
        let pattern = |predicate: End, s: End, o: End| {
            let hidden = match place {
                Place::Slot(g) => SlotSet::one(*g),
                _ => SlotSet::default(),
            };
            let pattern = Pattern {
                subject: s,
                predicate,
                object: o,
                place: place.clone(),
            };
            Node::bgp(vec![pattern], hidden)
        };
        Ok(match path {
            P::NamedNode(n) => pattern(End::Term(iri(n.as_str())), s, o),
            P::Reverse(inner) => self.path(o, inner, s, place)?,
            P::Sequence(a, b) => {
                let middle = End::Slot(self.hidden("path")?);
                let first = self.path(s, a, middle.clone(), place)?;
                let second = self.path(middle, b, o, place)?;
                Node::join(first, second)
            }
            P::Alternative(a, b) => {
                let first = self.path(s.clone(), a, o.clone(), place)?;
                let second = self.path(s, b, o, place)?;
                Node::union(vec![first, second])
            }
            P::NegatedPropertySet(list) => {
                let p = self.hidden("predicate")?;
                let v = Variable::new_unchecked("predicate");
                let names = list.iter().map(|n| Expression::from(n.clone())).collect();
                let within = Expression::In(Box::new(v.clone().into()), names);
                let filter = Expr {
                    expression: Expression::Not(Box::new(within)),
                    variables: vec![(v, p)],
                    per_row: false,
                    base_iri: None,
                };
                let node = pattern(End::Slot(p), s, o);
                if list.is_empty() {
                    node
                } else {
                    node.filter(vec![filter])
                }
            }
            P::ZeroOrMore(_) | P::OneOrMore(_) | P::ZeroOrOne(_) => Node::path(PathNode {
                subject: s,
                path: path.clone(),
                object: o,
                place: place.clone(),
            }),
        })
    }

    fn end(&mut self, end: &TermPattern, env: &mut Env) -> Result<End, Reason> {
        Ok(match end {
            TermPattern::NamedNode(n) => End::Term(iri(n.as_str())),
            TermPattern::Literal(l) => End::Term(literal(l)),
            TermPattern::Variable(v) => End::Slot(self.variable(v, env)),
            TermPattern::BlankNode(b) => match self.blanks.get(b.as_str()) {
                Some(&slot) => End::Slot(slot),
                None => {
                    let slot = self.new_slot(format!("blank {}", self.blanks.len()))?;
                    self.blanks.insert(b.as_str().to_owned(), slot);
                    End::Slot(slot)
                }
            },
            TermPattern::Triple(t) => match ground_triple(t) {
                Some(bytes) => End::Term(bytes),
                None => return Err("a triple term with variables in a pattern".into()),
            },
        })
    }

    /// A named graph that is not there has no solutions, whatever is inside.
    fn in_named(&mut self, node: Node, name: &[u8]) -> Node {
        if has_pattern_in(&node, name) {
            node
        } else {
            Node::join(node, Node::has_graph(name.to_vec()))
        }
    }

    fn graph(&mut self, v: &Variable, inner: &GraphPattern, env: &mut Env) -> Result<Node, Reason> {
        let outside = self.variable(v, env);
        // Inside its own GRAPH the variable is an ordinary one; in plain patterns that is the same slot.
        let own = !is_conjunction(inner) && mentions(inner, v);
        let g = if own { self.hidden("graph")? } else { outside };
        let place = Place::Slot(g);
        let mut node = self.pattern(inner, env, &place)?;
        if is_per_graph(&node, g) {
            node = Node::graphs(g).apply(node, ApplyKind::Inner);
        } else if !binds_graph(&node, g) {
            node = Node::join(Node::graphs(g), node);
        }
        if !own {
            return Ok(node.in_graph(g));
        }
        let name = Variable::new_unchecked("graph");
        let value = Expr {
            expression: Expression::Variable(name.clone()),
            variables: vec![(name, g)],
            per_row: false,
            base_iri: None,
        };
        if node.possible.has(outside) {
            let names = Node::graphs(g).in_graph(g).extend(outside, value);
            Ok(Node::join(node.in_graph(g), names))
        } else {
            Ok(node.in_graph(g).extend(outside, value))
        }
    }

    /// An expression without EXISTS over the slots in scope.
    fn expr(&self, e: &Expression, scope: &SlotSet, env: &Env) -> Expr {
        let mut variables: Vec<(Variable, Slot)> = vec![];
        let mut per_row = false;
        let mut needs_base = false;
        walk(e, &mut |e| match e {
            Expression::Variable(v) | Expression::Bound(v) => {
                if let Some(&slot) = env.slots.get(v)
                    && (scope.has(slot) || self.outer.has(slot))
                    && !variables.iter().any(|x| x.0 == *v)
                {
                    variables.push((v.clone(), slot));
                }
            }
            Expression::FunctionCall(f, _) => {
                per_row |= varies(f);
                needs_base |= matches!(f, Function::Iri);
            }
            _ => {}
        });
        Expr {
            expression: e.clone(),
            variables,
            per_row,
            base_iri: if needs_base { self.base.clone() } else { None },
        }
    }

    /// The expression over the node's rows, for which the node may have to answer EXISTS first.
    fn expr_over(
        &mut self,
        mut node: Node,
        e: &Expression,
        env: &mut Env,
        place: &Place,
        scope: &SlotSet,
    ) -> Result<(Node, Expr), Reason> {
        if !has_exists(e) {
            let expr = self.expr(e, scope, env);
            return Ok((node, expr));
        }
        let mut e = e.clone();
        let mut marks = vec![];
        node = self.marks(node, &mut e, env, place, scope, &mut marks)?;
        let mut expr = self.expr(&e, scope, env);
        expr.variables.extend(marks);
        Ok((node, expr))
    }

    /// Replaces each EXISTS by a variable that the node binds.
    fn marks(
        &mut self,
        mut node: Node,
        e: &mut Expression,
        env: &mut Env,
        place: &Place,
        scope: &SlotSet,
        marks: &mut Vec<(Variable, Slot)>,
    ) -> Result<Node, Reason> {
        if let Expression::Exists(p) = e {
            let slot = self.hidden("exists")?;
            // A space is in no variable of a query's text.
            let name = Variable::new_unchecked(format!("exists {slot}"));
            node = self.exists(node, p, ApplyKind::Mark(slot), env, place, scope)?;
            marks.push((name.clone(), slot));
            *e = Expression::Variable(name);
            return Ok(node);
        }
        for part in parts_mut(e) {
            node = self.marks(node, part, env, place, scope, marks)?;
        }
        Ok(node)
    }

    fn exists(
        &mut self,
        node: Node,
        pattern: &GraphPattern,
        kind: ApplyKind,
        env: &mut Env,
        place: &Place,
        scope: &SlotSet,
    ) -> Result<Node, Reason> {
        // Variables that the rows cannot bind are the body's own.
        let mut own = Env {
            is_inner: true,
            ..Env::default()
        };
        for (v, &slot) in &env.slots {
            if scope.has(slot) || self.outer.has(slot) {
                own.slots.insert(v.clone(), slot);
            }
        }
        let before = self.enter(scope);
        let body = self.pattern(pattern, &mut own, place);
        self.outer = before;
        let body = body?;
        Ok(in_some_graph(node, &body.uses, place).apply(body, kind))
    }

    fn filter(
        &mut self,
        mut node: Node,
        e: &Expression,
        env: &mut Env,
        place: &Place,
        scope: &SlotSet,
    ) -> Result<Node, Reason> {
        let (mut plain, mut others) = (vec![], vec![]);
        for c in conjuncts(e) {
            if has_exists(c) {
                others.push(c);
            } else {
                plain.push(self.expr(c, scope, env));
            }
        }
        node = node.filter(plain);
        for c in others {
            let (negated, inner) = match c {
                Expression::Not(e) => (true, &**e),
                e => (false, e),
            };
            if let Expression::Exists(p) = inner {
                let kind = if negated {
                    ApplyKind::Anti
                } else {
                    ApplyKind::Semi
                };
                node = self.exists(node, p, kind, env, place, scope)?;
            } else {
                let (with_marks, expr) = self.expr_over(node, c, env, place, scope)?;
                node = with_marks.filter(vec![expr]);
            }
        }
        Ok(node)
    }

    fn extend(
        &mut self,
        inner: &GraphPattern,
        variable: &Variable,
        expression: &Expression,
        env: &mut Env,
        place: &Place,
    ) -> Result<Node, Reason> {
        if let Expression::Variable(v) = expression {
            // `(COUNT(*) AS ?n)`: the aggregate goes where it is asked for.
            if !env.slots.contains_key(v) && is_aggregate(inner, v) {
                let slot = self.variable(variable, env);
                env.slots.insert(v.clone(), slot);
                return self.pattern(inner, env, place);
            }
            if env.is_select {
                let node = self.pattern(inner, env, place)?;
                if let Some(&slot) = env.slots.get(v)
                    && node.possible.has(slot)
                    && !env.slots.contains_key(variable)
                {
                    env.slots.insert(variable.clone(), slot);
                    return Ok(node);
                }
                let scope = node.possible.clone();
                let value = self.expr(expression, &scope, env);
                let to = self.variable(variable, env);
                return Ok(node.extend(to, value));
            }
        }
        let node = self.pattern(inner, env, place)?;
        let scope = node.possible.clone();
        let (node, value) = self.expr_over(node, expression, env, place, &scope)?;
        let to = self.variable(variable, env);
        Ok(node.extend(to, value))
    }

    /// Binds an expression over a node's rows to a slot, unless it is one already.
    fn slot_of(
        &mut self,
        node: Node,
        e: &Expression,
        env: &mut Env,
        place: &Place,
    ) -> Result<(Node, Option<Slot>), Reason> {
        if let Expression::Variable(v) = e {
            let slot = env.slots.get(v).copied();
            let seen = slot.filter(|s| node.possible.has(*s) || self.outer.has(*s));
            return Ok((node, seen));
        }
        let scope = node.possible.clone();
        let (node, value) = self.expr_over(node, e, env, place, &scope)?;
        let to = self.hidden("expression")?;
        Ok((node.extend(to, value), Some(to)))
    }

    fn ordered(
        &mut self,
        inner: &GraphPattern,
        keys: &[OrderExpression],
        env: &mut Env,
        place: &Place,
    ) -> Result<(Node, Vec<(Slot, bool)>), Reason> {
        let mut node = self.pattern(inner, env, place)?;
        let mut out: Vec<(Slot, bool)> = vec![];
        for k in keys {
            let (e, descending) = match k {
                OrderExpression::Asc(e) => (e, false),
                OrderExpression::Desc(e) => (e, true),
            };
            let slot;
            (node, slot) = self.slot_of(node, e, env, place)?;
            // A variable that is never bound orders nothing; one that ordered before adds nothing.
            if let Some(slot) = slot
                && !out.iter().any(|o| o.0 == slot)
            {
                out.push((slot, descending));
            }
        }
        Ok((node, out))
    }

    fn distinct(
        &mut self,
        inner: &GraphPattern,
        env: &mut Env,
        place: &Place,
        reduced: bool,
    ) -> Result<Node, Reason> {
        use crate::logical::Kind;
        let make = |inner: Box<Node>, slots: Vec<Slot>| {
            if reduced {
                Kind::Reduced { inner, slots }
            } else {
                Kind::Distinct { inner, slots }
            }
        };
        let mut node = self.pattern(inner, env, place)?;
        let mut slots: Vec<Slot> = match projected(inner) {
            Some(variables) => {
                let mut slots = vec![];
                for v in variables {
                    if let Some(&s) = env.slots.get(v)
                        && node.possible.has(s)
                        && !slots.contains(&s)
                    {
                        slots.push(s);
                    }
                }
                slots
            }
            None => node.possible.to_vec(),
        };
        if let Place::Slot(g) = place
            && !slots.contains(g)
        {
            node = in_some_graph(node, &SlotSet::one(*g), place);
            slots.push(*g);
        }
        // An order must be above: duplicates are removed in no order.
        let visible = node.possible.clone();
        let is_project = matches!(node.kind, Kind::Project(_));
        let mut wrap = match node.kind {
            Kind::Project(inner) if matches!(inner.kind, Kind::OrderBy { .. }) => *inner,
            kind => Node { kind, ..node },
        };
        let mut keys = vec![];
        if let Kind::OrderBy { keys: own, inner } = wrap.kind {
            keys = own;
            wrap = *inner;
        }
        if keys.is_empty() {
            return Ok(wrap.above(|inner| make(inner, slots)));
        }
        if reduced || keys.iter().all(|k| slots.contains(&k.0)) {
            if !reduced {
                wrap = wrap.above(|inner| make(inner, slots));
            }
            let sorted = wrap.above(|inner| Kind::OrderBy { inner, keys });
            return Ok(if is_project {
                sorted.project(&visible)
            } else {
                sorted
            });
        }
        // Ordered by something else: each distinct row stands where one of its duplicates does.
        let mut samples = vec![];
        let mut order = vec![];
        for (slot, descending) in keys {
            if slots.contains(&slot) {
                order.push((slot, descending));
                continue;
            }
            let to = self.hidden("order")?;
            order.push((to, descending));
            samples.push(Aggregate {
                to,
                function: AggregateFunction::Sample,
                of: Some(slot),
                distinct: false,
                row: vec![],
            });
        }
        let one = if slots.is_empty() {
            wrap.above(|inner| make(inner, slots))
        } else {
            let grouped = wrap.group(slots, samples);
            grouped.above(|inner| Kind::OrderBy { inner, keys: order })
        };
        Ok(if is_project {
            one.project(&visible)
        } else {
            one
        })
    }

    fn group(
        &mut self,
        inner: &GraphPattern,
        variables: &[Variable],
        aggregates: &[(Variable, AggregateExpression)],
        env: &mut Env,
        place: &Place,
    ) -> Result<Node, Reason> {
        let (mut own, mut visible) = self.scope(variables, env);
        let mut node = self.pattern(inner, &mut own, place)?;
        let named: SlotSet = own.slots.values().copied().collect();
        let row = node.possible.and(&named).to_vec();
        let mut by: Vec<Slot> = variables
            .iter()
            .filter_map(|v| own.slots.get(v).copied())
            .collect();
        by.dedup();
        let mut out = vec![];
        for (name, aggregate) in aggregates {
            let to = self.variable(name, env);
            visible.insert(to);
            let (function, of, distinct) = match aggregate {
                AggregateExpression::CountSolutions { distinct } => {
                    (AggregateFunction::CountRows, None, *distinct)
                }
                AggregateExpression::FunctionCall {
                    name,
                    expr,
                    distinct,
                } => {
                    let function = match name {
                        SetFunction::Count => AggregateFunction::Count,
                        SetFunction::Sum => AggregateFunction::Sum,
                        SetFunction::Avg => AggregateFunction::Avg,
                        SetFunction::Min => AggregateFunction::Min,
                        SetFunction::Max => AggregateFunction::Max,
                        SetFunction::Sample => AggregateFunction::Sample,
                        SetFunction::GroupConcat { separator } => AggregateFunction::GroupConcat(
                            separator.clone().unwrap_or_else(|| " ".to_owned()),
                        ),
                        SetFunction::Custom(f) => return Err(format!("the aggregate {f}")),
                    };
                    let slot;
                    (node, slot) = self.slot_of(node, expr, &mut own, place)?;
                    let of = match slot {
                        Some(s) => s,
                        // Never bound: an error in every row.
                        None => self.hidden("unbound")?,
                    };
                    (function, Some(of), *distinct)
                }
            };
            let counts_rows = matches!(function, AggregateFunction::CountRows);
            out.push(Aggregate {
                to,
                function,
                of,
                distinct,
                row: if counts_rows && distinct {
                    row.clone()
                } else {
                    vec![]
                },
            });
        }
        if let Place::Slot(g) = place
            && !by.is_empty()
            && !by.contains(g)
        {
            node = in_some_graph(node, &SlotSet::one(*g), place);
            by.push(*g);
        }
        Ok(node.group(by, out).project(&visible))
    }
}

fn ground(t: &GroundTerm) -> Vec<u8> {
    term::encode(&t.clone().into())
}

/// A triple term without variables.
fn ground_triple(t: &TriplePattern) -> Option<Vec<u8>> {
    fn of(t: &TermPattern) -> Option<oxrdf::Term> {
        Some(match t {
            TermPattern::NamedNode(n) => n.clone().into(),
            TermPattern::Literal(l) => l.clone().into(),
            TermPattern::Triple(t) => triple(t)?.into(),
            TermPattern::BlankNode(_) | TermPattern::Variable(_) => return None,
        })
    }
    fn triple(t: &TriplePattern) -> Option<oxrdf::Triple> {
        let TermPattern::NamedNode(s) = &t.subject else {
            return None;
        };
        let NamedNodePattern::NamedNode(p) = &t.predicate else {
            return None;
        };
        Some(oxrdf::Triple::new(s.clone(), p.clone(), of(&t.object)?))
    }
    Some(term::encode(&triple(t)?.into()))
}

fn has_exists(e: &Expression) -> bool {
    let mut found = false;
    walk(e, &mut |e| found |= matches!(e, Expression::Exists(_)));
    found
}

/// True if `v` is an aggregate of the group that this is made of.
fn is_aggregate(p: &GraphPattern, v: &Variable) -> bool {
    match p {
        GraphPattern::Extend { inner, .. } | GraphPattern::Filter { inner, .. } => {
            is_aggregate(inner, v)
        }
        GraphPattern::Group { aggregates, .. } => aggregates.iter().any(|a| a.0 == *v),
        _ => false,
    }
}

/// True for triple patterns joined and filtered, without EXISTS.
fn is_conjunction(p: &GraphPattern) -> bool {
    match p {
        GraphPattern::Bgp { .. } => true,
        GraphPattern::Join { left, right } => is_conjunction(left) && is_conjunction(right),
        GraphPattern::Filter { inner, expr } => is_conjunction(inner) && !has_exists(expr),
        _ => false,
    }
}

/// True if `?v` stands somewhere inside.
fn mentions(p: &GraphPattern, v: &Variable) -> bool {
    // The text names a variable with nothing that could continue the name behind it.
    let (text, name) = (p.to_string(), format!("?{}", v.as_str()));
    text.match_indices(&name).any(|(at, _)| {
        !text[at + name.len()..]
            .chars()
            .next()
            .is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

/// True if every row surely has the graph that it comes from.
fn binds_graph(node: &Node, g: Slot) -> bool {
    use crate::logical::Kind;
    match &node.kind {
        Kind::Bgp(b) => b.patterns.iter().any(|p| p.place == Place::Slot(g)),
        Kind::Graphs(s) => *s == g,
        Kind::Path(p) => p.place == Place::Slot(g),
        Kind::Join(parts) => parts.iter().any(|p| binds_graph(p, g)),
        Kind::Union(branches) => branches.iter().all(|b| binds_graph(b, g)),
        Kind::LeftJoin { left: inner, .. }
        | Kind::Minus { left: inner, .. }
        | Kind::Filter { inner, .. }
        | Kind::Extend { inner, .. }
        | Kind::Apply { input: inner, .. }
        | Kind::OrderBy { inner, .. }
        | Kind::Slice { inner, .. }
        | Kind::Project(inner) => binds_graph(inner, g),
        Kind::Distinct { inner, slots } | Kind::Reduced { inner, slots } => {
            slots.contains(&g) && binds_graph(inner, g)
        }
        Kind::Group { inner, by, .. } => by.contains(&g) && binds_graph(inner, g),
        Kind::Values { .. } | Kind::Service(_) | Kind::HasGraph(_) => false,
    }
}

/// Makes the left side of something one-sided say which graph it is in, when the other side depends on it.
fn in_some_graph(node: Node, other: &SlotSet, place: &Place) -> Node {
    match place {
        Place::Slot(g) if other.has(*g) && !binds_graph(&node, *g) => {
            Node::join(Node::graphs(*g), node)
        }
        _ => node,
    }
}

/// True if evaluating with the graph as one more column is not the same as evaluating in each graph.
fn is_per_graph(node: &Node, g: Slot) -> bool {
    use crate::logical::Kind;
    let dependent = |n: &Node| n.uses.has(g) && is_per_graph(n, g);
    match &node.kind {
        Kind::Bgp(_)
        | Kind::Graphs(_)
        | Kind::HasGraph(_)
        | Kind::Path(_)
        | Kind::Values { .. }
        | Kind::Service(_) => false,
        Kind::Join(parts) | Kind::Union(parts) => parts.iter().any(dependent),
        Kind::LeftJoin { left, right, .. } => dependent(left) || dependent(right),
        Kind::Minus { left, right } => {
            let shared = left.possible.and(&right.possible);
            let plain = shared.is_within(&left.certain) && shared.is_within(&right.certain);
            right.uses.has(g) && !plain || dependent(left) || dependent(right)
        }
        Kind::Filter { inner, .. }
        | Kind::Extend { inner, .. }
        | Kind::OrderBy { inner, .. }
        | Kind::Project(inner) => dependent(inner),
        Kind::Apply { input, body, .. } => dependent(input) || dependent(body),
        Kind::Distinct { inner, slots } | Kind::Reduced { inner, slots } => {
            !slots.contains(&g) && inner.uses.has(g) || dependent(inner)
        }
        Kind::Group { inner, by, .. } => !by.contains(&g) && inner.uses.has(g) || dependent(inner),
        Kind::Slice { inner, .. } => inner.uses.has(g),
    }
}

/// True if the rows surely come from a graph of this name.
fn has_pattern_in(node: &Node, name: &[u8]) -> bool {
    use crate::logical::Kind;
    match &node.kind {
        Kind::Bgp(b) => b
            .patterns
            .iter()
            .any(|p| matches!(&p.place, Place::Named(n) if n == name)),
        Kind::HasGraph(n) => n == name,
        Kind::Join(parts) => parts.iter().any(|p| has_pattern_in(p, name)),
        Kind::Filter { inner, .. } | Kind::Extend { inner, .. } => has_pattern_in(inner, name),
        Kind::LeftJoin { left, .. } | Kind::Minus { left, .. } => has_pattern_in(left, name),
        _ => false,
    }
}

/// True if the algebra, expressions included, is at most so deep. Does not recurse.
pub(crate) fn depth_is_within(p: &GraphPattern, limit: usize) -> bool {
    enum Part<'a> {
        Pattern(&'a GraphPattern),
        Expression(&'a Expression),
        Path(&'a PropertyPathExpression),
    }
    let mut stack = vec![(Part::Pattern(p), 1usize)];
    while let Some((part, depth)) = stack.pop() {
        if depth > limit {
            return false;
        }
        let d = depth + 1;
        match part {
            Part::Expression(e) => {
                if let Expression::Exists(p) = e {
                    stack.push((Part::Pattern(p), d));
                }
                stack.extend(
                    crate::expression::parts(e)
                        .into_iter()
                        .map(|e| (Part::Expression(e), d)),
                );
            }
            Part::Path(p) => {
                use PropertyPathExpression as P;
                match p {
                    P::NamedNode(_) | P::NegatedPropertySet(_) => {}
                    P::Reverse(p) | P::ZeroOrMore(p) | P::OneOrMore(p) | P::ZeroOrOne(p) => {
                        stack.push((Part::Path(p), d));
                    }
                    P::Sequence(a, b) | P::Alternative(a, b) => {
                        stack.extend([(Part::Path(a), d), (Part::Path(b), d)]);
                    }
                }
            }
            Part::Pattern(p) => match p {
                GraphPattern::Bgp { .. } | GraphPattern::Values { .. } => {}
                GraphPattern::Path { path, .. } => stack.push((Part::Path(path), d)),
                GraphPattern::Join { left, right }
                | GraphPattern::Lateral { left, right }
                | GraphPattern::Union { left, right }
                | GraphPattern::Minus { left, right } => {
                    stack.extend([(Part::Pattern(left), d), (Part::Pattern(right), d)]);
                }
                GraphPattern::LeftJoin {
                    left,
                    right,
                    expression,
                } => {
                    stack.extend([(Part::Pattern(left), d), (Part::Pattern(right), d)]);
                    stack.extend(expression.iter().map(|e| (Part::Expression(e), d)));
                }
                GraphPattern::Filter { expr, inner } => {
                    stack.extend([(Part::Expression(expr), d), (Part::Pattern(inner), d)]);
                }
                GraphPattern::Extend {
                    inner, expression, ..
                } => {
                    stack.extend([(Part::Expression(expression), d), (Part::Pattern(inner), d)]);
                }
                GraphPattern::OrderBy { inner, expression } => {
                    stack.push((Part::Pattern(inner), d));
                    stack.extend(expression.iter().map(|e| match e {
                        OrderExpression::Asc(e) | OrderExpression::Desc(e) => {
                            (Part::Expression(e), d)
                        }
                    }));
                }
                GraphPattern::Group {
                    inner, aggregates, ..
                } => {
                    stack.push((Part::Pattern(inner), d));
                    stack.extend(aggregates.iter().filter_map(|a| match &a.1 {
                        AggregateExpression::FunctionCall { expr, .. } => {
                            Some((Part::Expression(expr), d))
                        }
                        AggregateExpression::CountSolutions { .. } => None,
                    }));
                }
                GraphPattern::Graph { inner, .. }
                | GraphPattern::Project { inner, .. }
                | GraphPattern::Distinct { inner }
                | GraphPattern::Reduced { inner }
                | GraphPattern::Slice { inner, .. }
                | GraphPattern::Service { inner, .. } => stack.push((Part::Pattern(inner), d)),
            },
        }
    }
    true
}
