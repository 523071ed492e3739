//! SPARQL algebra → a [`LogicalNode`] tree over slots, or the reason why the query cannot be planned.
//!
//! Each variable has one slot per scope, where a scope is the query, the inside of a sub-query, or the inside of an
//! aggregated group. Expressions read only variables that are visible in their group.

mod columns;
mod expressions;
mod graph;
mod modifiers;
mod paths;
mod service;
mod triples;

use crate::expression::{Expr, Variables, conjuncts, map_parts, varies, walk};
use crate::logical::{
    LogicalNode, LogicalPattern, NodeKind, PathNode, PatternGraphTerm, PatternTerm, Row, add_new,
};
use crate::set::SlotSet;
use crate::{
    Aggregate, AggregateFunction, ApplyKind, Form, Functions, Service, ServiceEndpoint, Slot,
    TemplateTerm,
};
use jindou_model::{Error, scope};
use jindou_syntax::algebra::{
    AggregateExpression, AggregateFunction as SetFunction, BaseIri, BlankNode, Canonical,
    Expression, Function, GraphPattern, GroundTerm, NamedNodePattern, OrderExpression,
    PropertyPathExpression, Query, QueryDataset, TermPattern, TriplePattern, Variable, text_len,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

use columns::TemplateColumns;
use expressions::{has_exists, reads};
use graph::in_some_graph;
use service::{asks_rows, unbound_endpoint};

/// Reason why a query cannot be planned.
pub(crate) type Reason = String;

/// Reason for a query that was cancelled or has timed out; [`scope::look`] returns the actual error.
const GIVEN_UP: &str = "given up";

/// A translated query; no order of evaluation is chosen yet.
pub(crate) struct Logical {
    pub form: Form,
    pub dataset: Option<QueryDataset>,
    /// Name of each slot; names of hidden slots contain a space, so that they differ from all variables.
    pub slots: Vec<String>,
    pub root: LogicalNode,
    pub output: Vec<Slot>,
    /// Names of the result's columns.
    pub columns: Vec<String>,
}

/// # Errors
/// [`Error::Query`] for a query that is wrong wherever it runs, [`Error::Unsupported`] for one that no plan can answer,
/// and the errors of [`scope::look`].
pub(crate) fn translate(query: &Query, functions: &Functions) -> Result<Logical, Error> {
    let mut t = Translator {
        base: query.base_iri().cloned(),
        functions: functions.clone(),
        slots: vec![],
        blanks: FxHashMap::default(),
        triples: FxHashMap::default(),
        outer: SlotSet::default(),
        as_set: false,
        open: vec![],
        fault: None,
        refused: None,
    };
    let logical = t.query(query);
    if let Some(refused) = t.refused {
        return Err(refused);
    }
    scope::look()?;
    match (t.fault, logical) {
        (Some(fault), _) => Err(Error::Query(fault)),
        (None, logical) => logical.map_err(Error::Unsupported),
    }
}

impl Translator {
    fn query(&mut self, query: &Query) -> Result<Logical, Reason> {
        let t = self;
        let pattern = query.pattern();
        let mut env = ScopeSlots {
            is_top: matches!(query, Query::Select { .. } | Query::Describe { .. }),
            ..ScopeSlots::default()
        };
        t.as_set = match query {
            Query::Ask { .. } | Query::Describe { .. } => true,
            // Each solution gets new blank nodes for those of the template, so duplicates matter.
            Query::Construct { template, .. } => !template.iter().any(triples::has_blank),
            Query::Select { .. } => false,
        };
        let mut root = t.pattern(pattern, &mut env, &PatternGraphTerm::Default)?;
        let mut output = vec![];
        let mut columns = vec![];
        let form = match query {
            Query::Ask { .. } => {
                root = root.slice(0, Some(1));
                Form::Ask
            }
            Query::Select { .. } | Query::Describe { .. } => {
                for v in projected(pattern).ok_or("no projection")? {
                    output.push(t.variable(v, &mut env));
                    columns.push(v.as_str().to_owned());
                }
                if matches!(query, Query::Select { .. }) {
                    Form::Select
                } else {
                    Form::Describe(query.dataset().cloned())
                }
            }
            Query::Construct { template, .. } => {
                let mut read = TemplateColumns::default();
                let triples = template.iter().map(|p| read.triple(p)).collect::<Vec<_>>();
                for v in &read.variables {
                    output.push(t.variable(v, &mut env));
                    columns.push(v.as_str().to_owned());
                }
                Form::Construct(triples)
            }
        };
        Ok(Logical {
            form,
            dataset: query.dataset().cloned(),
            slots: std::mem::take(&mut t.slots),
            root,
            output,
            columns,
        })
    }
}

/// The variables of the query's SELECT.
fn projected(pattern: &GraphPattern) -> Option<&[Variable]> {
    match pattern {
        GraphPattern::Project { variables, .. } => Some(variables),
        GraphPattern::Slice { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner } => projected(inner),
        _ => None,
    }
}

/// Longest part of a variable's name, in bytes, that becomes part of a hidden slot's name, which only EXPLAIN shows.
const SHOWN: usize = 60;

/// Slots of the variables in one scope.
#[derive(Default)]
struct ScopeSlots {
    slots: FxHashMap<Variable, Slot>,
    /// True above the query's own SELECT.
    is_top: bool,
    /// True directly below the query's SELECT, where `(?x AS ?y)` only renames the slot, since nothing joins with it.
    is_select: bool,
    /// True in a scope whose variables are not visible outside: of a sub-query, a group or an EXISTS.
    is_inner: bool,
}

struct Translator {
    slots: Vec<String>,
    blanks: FxHashMap<BlankNode, Slot>,
    /// Canonical bytes of triple terms by address; `None` for triple terms with variables.
    triples: FxHashMap<*const TriplePattern, Option<Canonical>>,
    /// Slots of the rows for which the body of an EXISTS or LATERAL is evaluated.
    outer: SlotSet,
    base: Option<BaseIri>,
    /// True if duplicate solutions do not matter: below DISTINCT and inside EXISTS.
    as_set: bool,
    /// Triple terms with variables that still have to be matched ([`Translator::opened`]), each with the slot that
    /// holds the whole term.
    open: Vec<(Slot, Arc<TriplePattern>)>,
    /// Functions that the query may call by IRI.
    functions: Functions,
    /// The first error in the query itself.
    fault: Option<String>,
    /// The error of a memory or time limit, if one was exceeded.
    refused: Option<Error>,
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

    fn variable(&mut self, v: &Variable, env: &mut ScopeSlots) -> Slot {
        if let Some(&slot) = env.slots.get(v) {
            return slot;
        }
        let name = if env.is_inner {
            let shown = &v.as_str()[..crate::show::floor(v.as_str(), SHOWN)];
            format!("{shown} inside {}", self.slots.len())
        } else {
            v.as_str().to_owned()
        };
        // A query of at most 4 MiB has 2^16 variables only if it consists of little else. The last slot then stands for
        // all further variables, and `pattern` rejects the query.
        let slot = (self.slots.len().min(usize::from(Slot::MAX))) as Slot;
        self.slots.push(name);
        env.slots.insert(v.clone(), slot);
        slot
    }

    fn pattern(
        &mut self,
        p: &GraphPattern,
        env: &mut ScopeSlots,
        place: &PatternGraphTerm,
    ) -> Result<LogicalNode, Reason> {
        if self.slots.len() >= usize::from(Slot::MAX) {
            return Err("more than 65,535 variables".into());
        }
        if scope::is_over() {
            return Err(GIVEN_UP.into());
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
                let node = self.path(subject, path, object, place)?;
                self.opened(node, env, place)?
            }
            GraphPattern::Join { .. } => {
                let sequences = if self.as_set {
                    paths::sequences(p)
                } else {
                    None
                };
                self.joined(sequences.as_deref().unwrap_or(p), env, place)?
            }
            GraphPattern::LeftJoin {
                left,
                right,
                expression,
            } => self.optional(left, right, expression.as_ref(), env, place)?,
            GraphPattern::Lateral { left, right } => self.lateral(left, right, env, place)?,
            GraphPattern::Filter { expr, inner } => {
                let node = self.pattern(inner, env, place)?;
                let scope = node.possible.clone();
                self.filter(node, expr, env, place, &scope)?
            }
            GraphPattern::Union { left, right } => self.union(left, right, env, place)?,
            GraphPattern::Graph { name, inner } => match name {
                NamedNodePattern::NamedNode(n) => {
                    let place = PatternGraphTerm::Named(n.canonical());
                    let node = self.pattern(inner, env, &place)?;
                    self.in_named(node, n.canonical())
                }
                NamedNodePattern::Variable(v) => self.graph(v, inner, env)?,
            },
            GraphPattern::Extend {
                inner,
                variable,
                expression,
            } => self.extend(inner, variable, expression, env, place)?,
            GraphPattern::Minus { left, right } => self.minus(left, right, env, place)?,
            GraphPattern::Values {
                variables,
                bindings,
            } => self.inline_data(variables, bindings, env)?,
            GraphPattern::OrderBy { inner, expression } => {
                let (node, keys) = self.ordered(inner, expression, env, place)?;
                match keys.is_empty() {
                    true => node,
                    false => node.above(|inner| NodeKind::OrderBy { inner, keys }),
                }
            }
            GraphPattern::Project { inner, variables } => {
                self.projected(inner, variables, env, place)?
            }
            GraphPattern::Distinct { inner } => self.distinct(inner, env, place, false)?,
            GraphPattern::Reduced { inner } => self.distinct(inner, env, place, true)?,
            GraphPattern::Slice {
                inner,
                start,
                length,
            } => {
                let node = self.counted(false, |t| t.pattern(inner, env, place))?;
                node.slice(*start as u64, length.map(|l| l as u64))
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
            } => self.service_pattern(name, inner, *silent, env)?,
        })
    }

    fn minus(
        &mut self,
        left: &GraphPattern,
        right: &GraphPattern,
        env: &mut ScopeSlots,
        place: &PatternGraphTerm,
    ) -> Result<LogicalNode, Reason> {
        let left = self.pattern(left, env, place)?;
        let right = self.counted(true, |t| t.pattern(right, env, place))?;
        let left = in_some_graph(left, &right.uses, place);
        Ok(LogicalNode::minus(left, right))
    }

    fn lateral(
        &mut self,
        left: &GraphPattern,
        right: &GraphPattern,
        env: &mut ScopeSlots,
        place: &PatternGraphTerm,
    ) -> Result<LogicalNode, Reason> {
        let left = self.pattern(left, env, place)?;
        let before = self.enter(&left.possible);
        let body = self.pattern(right, env, place)?;
        self.outer = before;
        Ok(in_some_graph(left, &body.uses, place).apply(body, ApplyKind::Inner))
    }

    fn optional(
        &mut self,
        left: &GraphPattern,
        right: &GraphPattern,
        expression: Option<&Arc<Expression>>,
        env: &mut ScopeSlots,
        place: &PatternGraphTerm,
    ) -> Result<LogicalNode, Reason> {
        let left = self.pattern(left, env, place)?;
        if asks_rows(right).is_some() {
            if expression.is_some() {
                return Err("OPTIONAL with a FILTER over a SERVICE whose endpoint is a variable is not supported; put the FILTER after the OPTIONAL".into());
            }
            return self.service_by_rows(left, right, env, ApplyKind::Left);
        }
        let mut right = self.pattern(right, env, place)?;
        let left = in_some_graph(left, &right.uses, place);
        let both = left.possible.or(&right.possible);
        let (mut condition, mut inside) = (vec![], vec![]);
        let mut exists = false;
        if let Some(e) = expression {
            for c in conjuncts(e) {
                if scope::is_over() {
                    return Err(GIVEN_UP.into());
                }
                if has_exists(c) {
                    let foreign = left.possible.minus(&right.certain);
                    if self.is_varying(c) || reads(c, &foreign, env) {
                        exists = true;
                    } else {
                        inside.push(c);
                    }
                } else {
                    condition.push(self.expr(c, &both, env));
                }
            }
        }
        if !exists {
            // A condition that reads nothing of the left side is tested on the right side.
            for c in inside {
                let scope = right.possible.clone();
                right = self.filter(right, c, env, place, &scope)?;
            }
            return Ok(LogicalNode::left_join(left, right, condition));
        }
        // A condition that contains EXISTS over both sides is tested on the pairs, for each row of the left side.
        let expression = expression.ok_or("OPTIONAL without its condition")?;
        let before = self.enter(&left.possible);
        let body = self.filter(right, expression, env, place, &both)?;
        self.outer = before;
        Ok(left.apply(body, ApplyKind::Left))
    }

    fn union(
        &mut self,
        left: &GraphPattern,
        right: &GraphPattern,
        env: &mut ScopeSlots,
        place: &PatternGraphTerm,
    ) -> Result<LogicalNode, Reason> {
        // The parser nests a chain of UNIONs in the left branch.
        let mut rest = vec![right];
        let mut at = left;
        while let GraphPattern::Union { left, right } = at {
            rest.push(right);
            at = left;
        }
        let mut branches = vec![self.pattern(at, env, place)?];
        for b in rest.into_iter().rev() {
            branches.push(self.pattern(b, env, place)?);
        }
        Ok(LogicalNode::union(branches))
    }

    fn inline_data(
        &mut self,
        variables: &[Variable],
        bindings: &[Vec<Option<GroundTerm>>],
        env: &mut ScopeSlots,
    ) -> Result<LogicalNode, Reason> {
        let slots: Vec<Slot> = variables.iter().map(|v| self.variable(v, env)).collect();
        let mut rows: Vec<Row> = Vec::with_capacity(bindings.len());
        for row in bindings {
            let cells = row
                .iter()
                .map(|t| t.as_ref().map(|t| self.ground(t)).transpose());
            rows.push(cells.collect::<Result<_, _>>()?);
        }
        Ok(LogicalNode::values(slots, rows))
    }

    fn projected(
        &mut self,
        inner: &GraphPattern,
        variables: &[Variable],
        env: &mut ScopeSlots,
        place: &PatternGraphTerm,
    ) -> Result<LogicalNode, Reason> {
        if env.is_top {
            // Variables that are not selected may keep their slots: nothing joins with them, and unread columns are
            // dropped later.
            env.is_top = false;
            env.is_select = true;
            self.pattern(inner, env, place)
        } else {
            let (mut own, visible) = self.scope(variables, env);
            Ok(self.pattern(inner, &mut own, place)?.project(&visible))
        }
    }

    fn service_pattern(
        &mut self,
        name: &NamedNodePattern,
        inner: &Arc<GraphPattern>,
        silent: bool,
        env: &mut ScopeSlots,
    ) -> Result<LogicalNode, Reason> {
        match name {
            NamedNodePattern::NamedNode(endpoint) => {
                let endpoint = ServiceEndpoint::Iri(endpoint.clone());
                self.service(endpoint, inner, silent, env)
            }
            // The endpoint's variable is unbound here. That is an error, which SILENT turns into one solution without
            // bindings.
            NamedNodePattern::Variable(_) if silent => Ok(LogicalNode::unit()),
            NamedNodePattern::Variable(v) => Err(unbound_endpoint(v)),
        }
    }

    /// Translates a join; its parts are joined from left to right.
    fn joined(
        &mut self,
        p: &GraphPattern,
        env: &mut ScopeSlots,
        place: &PatternGraphTerm,
    ) -> Result<LogicalNode, Reason> {
        let GraphPattern::Join { left, right } = p else {
            return self.pattern(p, env, place);
        };
        // Other parts of the group may bind the endpoint of a SERVICE, so the SERVICE is joined after them.
        let (left, right) = match (asks_rows(left), asks_rows(right)) {
            (Some(_), None) => (right, left),
            _ => (left, right),
        };
        let left = self.joined(left, env, place)?;
        if asks_rows(right).is_some() {
            return self.service_by_rows(left, right, env, ApplyKind::Inner);
        }
        let right = self.joined(right, env, place)?;
        Ok(LogicalNode::join(left, right))
    }

    /// Calls `f`; with `as_set`, duplicate solutions of the part that it translates do not matter.
    fn counted<T>(&mut self, as_set: bool, f: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.as_set, as_set);
        let done = f(self);
        self.as_set = before;
        done
    }

    /// Makes a row's slots visible in a body that is evaluated for each row. Returns the former value of `outer`, which
    /// the caller restores after the body.
    fn enter(&mut self, row: &SlotSet) -> SlotSet {
        let inside = self.outer.or(row);
        std::mem::replace(&mut self.outer, inside)
    }

    /// Creates the scope inside a SELECT or a group: `shared` variables have the slots of the outer scope, all others
    /// get their own. Also returns the slots of the shared variables.
    fn scope(&mut self, shared: &[Variable], env: &mut ScopeSlots) -> (ScopeSlots, SlotSet) {
        let mut own = ScopeSlots {
            is_inner: true,
            ..ScopeSlots::default()
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
        env: &mut ScopeSlots,
        place: &PatternGraphTerm,
    ) -> Result<LogicalNode, Reason> {
        let mut out: Vec<LogicalPattern> = vec![];
        // Patterns with triple terms that contain variables, which are bound when the triple terms are matched part by
        // part.
        let mut opening: Vec<LogicalPattern> = vec![];
        for p in patterns {
            let closed = self.open.len();
            let subject = self.end(&p.subject, env)?;
            let predicate = match &p.predicate {
                NamedNodePattern::NamedNode(n) => PatternTerm::Term(n.canonical()),
                NamedNodePattern::Variable(v) => PatternTerm::Slot(self.variable(v, env)),
            };
            let object = self.end(&p.object, env)?;
            let pattern = LogicalPattern {
                subject,
                predicate,
                object,
                place: place.clone(),
            };
            if self.open.len() > closed {
                opening.push(pattern);
            } else {
                out.push(pattern);
            }
        }
        let all = std::mem::take(&mut out);
        add_new(&mut out, &all);
        let hidden: SlotSet = place.slot().into_iter().collect();
        if !opening.is_empty() {
            let node = LogicalNode::bgp(opening, hidden.clone());
            let opened = self.opened(node, env, place)?;
            return Ok(LogicalNode::join(opened, LogicalNode::bgp(out, hidden)));
        }
        Ok(match place {
            // `GRAPH ?g` binds its variable to every graph, also around an empty pattern.
            PatternGraphTerm::Slot(g) if out.is_empty() => LogicalNode::graphs(*g),
            _ => LogicalNode::bgp(out, hidden),
        })
    }

    fn end(&mut self, end: &TermPattern, env: &mut ScopeSlots) -> Result<PatternTerm, Reason> {
        Ok(match end {
            TermPattern::NamedNode(n) => PatternTerm::Term(n.canonical()),
            TermPattern::Literal(l) => PatternTerm::Term(l.canonical().clone()),
            TermPattern::Variable(v) => PatternTerm::Slot(self.variable(v, env)),
            TermPattern::BlankNode(b) => match self.blanks.get(b) {
                Some(&slot) => PatternTerm::Slot(slot),
                None => {
                    let slot = self.new_slot(format!("blank {}", self.blanks.len()))?;
                    self.blanks.insert(b.clone(), slot);
                    PatternTerm::Slot(slot)
                }
            },
            TermPattern::Triple(t) => match self.ground_triple(t)? {
                Some(bytes) => PatternTerm::Term(bytes),
                None => {
                    let slot = self.hidden("triple")?;
                    self.open.push((slot, Arc::clone(t)));
                    PatternTerm::Slot(slot)
                }
            },
        })
    }

    /// Canonical bytes of a triple term, computed once; `None` if it contains variables.
    fn ground_triple(&mut self, t: &Arc<TriplePattern>) -> Result<Option<Canonical>, Reason> {
        if let Some(made) = self.triples.get(&Arc::as_ptr(t)) {
            return Ok(made.clone());
        }
        let made = match t.canonical_len() {
            Some(len) => {
                self.room(len)?;
                t.canonical()
            }
            None => None,
        };
        self.triples.insert(Arc::as_ptr(t), made.clone());
        Ok(made)
    }

    fn ground(&mut self, t: &GroundTerm) -> Result<Canonical, Reason> {
        if let GroundTerm::Triple(_) = t {
            self.room(t.canonical_len())?;
        }
        Ok(t.canonical())
    }

    /// Checks that this many bytes may be allocated.
    fn room(&mut self, bytes: usize) -> Result<(), Reason> {
        match scope::look_for(bytes as u64) {
            Ok(()) => Ok(()),
            Err(refused) => {
                self.refused.get_or_insert(refused);
                Err(GIVEN_UP.into())
            }
        }
    }
}
