//! SPARQL algebra → a [`Node`] tree over slots, or the reason why not.
//!
//! Scoping is exact: a variable is one slot in one scope (a query, a sub-query's inside, an aggregated group's inside),
//! and an expression names only variables that its group can see.

mod columns;
mod depth;
mod expressions;
mod graph;
mod modifiers;
mod paths;
mod service;
mod triples;

use crate::expression::{Expr, Variables, conjuncts, map_parts, varies, walk};
use crate::logical::{End, Node, PathNode, Pattern, Place, Row, add_new};
use crate::set::SlotSet;
use crate::{
    Aggregate, AggregateFunction, ApplyKind, Endpoint, Form, Functions, Service, Slot, TemplateTerm,
};
use jindou_model::{Error, scope};
use jindou_syntax::algebra::{
    AggregateExpression, AggregateFunction as SetFunction, BaseIri, BlankNode, Canonical,
    Expression, Function, GraphPattern, GroundTerm, NamedNodePattern, OrderExpression,
    PropertyPathExpression, Query, QueryDataset, TermPattern, TriplePattern, Variable, text_len,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

use columns::Columns;
pub(crate) use depth::depth_is_within;
use expressions::{has_exists, reads};
use graph::in_some_graph;
use service::{asks_rows, unbound_endpoint};

/// Why a query has no plan.
pub(crate) type Reason = String;

/// The reason where the query's time is over; [`scope::look`] says it better.
const GIVEN_UP: &str = "given up";

/// Everything but the order of evaluation.
pub(crate) struct Logical {
    pub form: Form,
    pub dataset: Option<QueryDataset>,
    /// Name of each slot; hidden ones contain a space.
    pub slots: Vec<String>,
    pub root: Node,
    pub output: Vec<Slot>,
    /// Names of the columns.
    pub columns: Vec<String>,
}

/// # Errors
/// [`Error::Query`] for what is wrong with the query whoever runs it, [`Error::Unsupported`] for what no plan can do, those of
/// [`scope::look`].
pub(crate) fn of(query: &Query, functions: &Functions) -> Result<Logical, Error> {
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
        let mut env = Env {
            is_top: matches!(query, Query::Select { .. } | Query::Describe { .. }),
            ..Env::default()
        };
        t.as_set = match query {
            Query::Ask { .. } | Query::Describe { .. } => true,
            // A blank node of the template is another one for each solution.
            Query::Construct { template, .. } => !template.iter().any(triples::has_blank),
            Query::Select { .. } => false,
        };
        let mut root = t.pattern(pattern, &mut env, &Place::Default)?;
        let mut output = vec![];
        let mut columns = vec![];
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
                    columns.push(v.as_str().to_owned());
                }
                if matches!(query, Query::Select { .. }) {
                    Form::Select
                } else {
                    Form::Describe(query.dataset().cloned())
                }
            }
            Query::Construct { template, .. } => {
                let mut read = Columns::default();
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

/// Longest name of a variable in the name of a hidden slot, which only people read.
const SHOWN: usize = 60;

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

struct Translator {
    slots: Vec<String>,
    blanks: FxHashMap<BlankNode, Slot>,
    /// Canonical bytes of triple terms by their addresses, `None` for those that are patterns.
    triples: FxHashMap<*const TriplePattern, Option<Canonical>>,
    /// Variables of the rows that an EXISTS or LATERAL body is evaluated for.
    outer: SlotSet,
    base: Option<BaseIri>,
    /// Only which solutions there are matters, not how often each: below DISTINCT, inside EXISTS.
    as_set: bool,
    /// Triple terms with variables, each with the slot that stands for it in the pattern at hand.
    open: Vec<(Slot, Arc<TriplePattern>)>,
    /// Functions that the query may call by IRI.
    functions: Functions,
    /// The first thing that is wrong with the query itself.
    fault: Option<String>,
    /// Why there was no room for something.
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

    fn variable(&mut self, v: &Variable, env: &mut Env) -> Slot {
        if let Some(&slot) = env.slots.get(v) {
            return slot;
        }
        let name = if env.is_inner {
            let shown = &v.as_str()[..crate::show::floor(v.as_str(), SHOWN)];
            format!("{shown} inside {}", self.slots.len())
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
            } => {
                let left = self.pattern(left, env, place)?;
                if asks_rows(right).is_some() {
                    if expression.is_some() {
                        return Err("a condition of OPTIONAL over SERVICE with a variable; put the FILTER after the OPTIONAL".into());
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
                    // What reads nothing of the left side may as well hold before it comes in.
                    for c in inside {
                        let scope = right.possible.clone();
                        right = self.filter(right, c, env, place, &scope)?;
                    }
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
                    let place = Place::Named(n.canonical());
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
            GraphPattern::Minus { left, right } => {
                let left = self.pattern(left, env, place)?;
                let right = self.counted(true, |t| t.pattern(right, env, place))?;
                Node::minus(in_some_graph(left, &right.uses, place), right)
            }
            GraphPattern::Values {
                variables,
                bindings,
            } => {
                let slots: Vec<Slot> = variables.iter().map(|v| self.variable(v, env)).collect();
                let mut rows: Vec<Row> = Vec::with_capacity(bindings.len());
                for row in bindings {
                    let cells = row
                        .iter()
                        .map(|t| t.as_ref().map(|t| self.ground(t)).transpose());
                    rows.push(cells.collect::<Result<_, _>>()?);
                }
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
                let node = self.counted(false, |t| t.pattern(inner, env, place))?;
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
                name: NamedNodePattern::NamedNode(endpoint),
                inner,
                silent,
            } => {
                let endpoint = Endpoint::Iri(endpoint.clone());
                self.service(endpoint, inner, *silent, env)?
            }
            GraphPattern::Service {
                name: NamedNodePattern::Variable(v),
                silent,
                ..
            } => match silent {
                // As in `service_by_rows`.
                true => Node::unit(),
                false => return Err(unbound_endpoint(v)),
            },
        })
    }

    /// The parts of a join, one after the other.
    fn joined(&mut self, p: &GraphPattern, env: &mut Env, place: &Place) -> Result<Node, Reason> {
        let GraphPattern::Join { left, right } = p else {
            return self.pattern(p, env, place);
        };
        // Whom SERVICE asks, the rest of its group says, wherever that stands.
        let (left, right) = match (asks_rows(left), asks_rows(right)) {
            (Some(_), None) => (right, left),
            _ => (left, right),
        };
        let left = self.joined(left, env, place)?;
        if asks_rows(right).is_some() {
            return self.service_by_rows(left, right, env, ApplyKind::Inner);
        }
        let right = self.joined(right, env, place)?;
        Ok(Node::join(left, right))
    }

    /// Translates a part of which it matters only which solutions there are (`as_set`), or also how often.
    fn counted<T>(&mut self, as_set: bool, f: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.as_set, as_set);
        let done = f(self);
        self.as_set = before;
        done
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
        // Patterns with triple terms that are still to be opened: their variables are bound by that, not before.
        let mut opening: Vec<Pattern> = vec![];
        for p in patterns {
            let closed = self.open.len();
            let subject = self.end(&p.subject, env)?;
            let predicate = match &p.predicate {
                NamedNodePattern::NamedNode(n) => End::Term(n.canonical()),
                NamedNodePattern::Variable(v) => End::Slot(self.variable(v, env)),
            };
            let object = self.end(&p.object, env)?;
            let pattern = Pattern {
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
        let hidden = match place {
            Place::Slot(g) => SlotSet::one(*g),
            _ => SlotSet::default(),
        };
        if !opening.is_empty() {
            let node = Node::bgp(opening, hidden.clone());
            let opened = self.opened(node, env, place)?;
            return Ok(Node::join(opened, Node::bgp(out, hidden)));
        }
        Ok(match place {
            // `GRAPH ?g` binds even around nothing.
            Place::Slot(g) if out.is_empty() => Node::graphs(*g),
            _ => Node::bgp(out, hidden),
        })
    }

    fn end(&mut self, end: &TermPattern, env: &mut Env) -> Result<End, Reason> {
        Ok(match end {
            TermPattern::NamedNode(n) => End::Term(n.canonical()),
            TermPattern::Literal(l) => End::Term(l.canonical().clone()),
            TermPattern::Variable(v) => End::Slot(self.variable(v, env)),
            TermPattern::BlankNode(b) => match self.blanks.get(b) {
                Some(&slot) => End::Slot(slot),
                None => {
                    let slot = self.new_slot(format!("blank {}", self.blanks.len()))?;
                    self.blanks.insert(b.clone(), slot);
                    End::Slot(slot)
                }
            },
            TermPattern::Triple(t) => match self.ground_triple(t)? {
                Some(bytes) => End::Term(bytes),
                None => {
                    let slot = self.hidden("triple")?;
                    self.open.push((slot, Arc::clone(t)));
                    End::Slot(slot)
                }
            },
        })
    }

    /// The canonical bytes of a triple term without variables, made once.
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

    /// Asks for room for what is about to be made.
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
