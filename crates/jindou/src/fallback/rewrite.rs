//! Queries in a form that `spareval` answers as SPARQL 1.1 says. It departs from the specification in five
//! places, each seen in the W3C suites; queries without them pass unchanged.
//!
//! - A path of length zero from or to a constant gives that constant even where no edge has it (§18.4
//!   `ZeroLengthPath`): the constant is added.
//! - `GRAPH ?g { P }` is P in each graph, joined with the graph's name (§18.6): `spareval` puts the graph into P's
//!   triple patterns instead, so an aggregate, MINUS, VALUES, a limit, or a `?g` inside P sees all graphs at once.
//!   Where P has such a thing, it is written out for each graph, if the graphs are few and have IRIs.
//! - `STR(?v)` is the literal's text as it stands in the data: `spareval` computes with values and would say "1"
//!   for `"01"^^xsd:integer`. The dataset tells the text through [`crate::dataset::TEXT`].
//! - `GROUP_CONCAT` joins texts (§18.5.1.7), so it never has a language.
//! - `BNODE(text)` is one blank node a text *and solution* (§17.4.2.9), not one a text.

use crate::dataset::TEXT;
use oxrdf::{Literal, NamedNode, Variable};
use spargebra::Query;
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern, OrderExpression,
    PropertyPathExpression,
};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern};

/// Graphs that a `GRAPH ?g` is written out for.
pub(super) const MAX_GRAPHS: usize = 4096;

/// The query's graph names, if there are at most [`MAX_GRAPHS`] and all are IRIs.
pub(super) type Names<'a> = &'a dyn Fn() -> Option<Vec<NamedNode>>;

/// See the module.
pub(super) fn query(query: &Query, names: Names<'_>) -> Query {
    let mut out = query.clone();
    match &mut out {
        Query::Select { pattern, .. }
        | Query::Construct { pattern, .. }
        | Query::Describe { pattern, .. }
        | Query::Ask { pattern, .. } => Rewriter {
            names,
            made: 0,
            blanks_only: false,
        }
        .pattern(pattern),
    }
    out
}

/// Only the last of the module's changes: the engine needs it as well.
pub(crate) fn blank_nodes(query: &mut Query) {
    let (Query::Select { pattern, .. }
    | Query::Construct { pattern, .. }
    | Query::Describe { pattern, .. }
    | Query::Ask { pattern, .. }) = query;
    Rewriter {
        names: &|| None,
        made: 0,
        blanks_only: true,
    }
    .pattern(pattern);
}

struct Rewriter<'a> {
    names: Names<'a>,
    /// Variables made so far.
    made: usize,
    /// Change nothing but `BNODE`.
    blanks_only: bool,
}

impl Rewriter<'_> {
    fn pattern(&mut self, p: &mut GraphPattern) {
        match p {
            GraphPattern::Bgp { .. } | GraphPattern::Values { .. } => {}
            GraphPattern::Path { .. } if self.blanks_only => {}
            GraphPattern::Path { .. } => zero_length(p),
            GraphPattern::Graph { inner, .. } | GraphPattern::Group { inner, .. }
                if self.blanks_only =>
            {
                self.pattern(inner);
            }
            GraphPattern::Graph { .. } => self.graph(p),
            GraphPattern::Extend { .. } => self.extend(p),
            GraphPattern::Filter { inner, expr } => {
                self.pattern(inner);
                self.exists(expr);
                self.texts(inner, [expr]);
            }
            GraphPattern::OrderBy { inner, expression } => {
                self.pattern(inner);
                let keys = expression.iter_mut().map(|e| match e {
                    OrderExpression::Asc(e) | OrderExpression::Desc(e) => e,
                });
                self.texts(inner, keys);
            }
            GraphPattern::Group {
                inner, aggregates, ..
            } => {
                self.pattern(inner);
                let over = aggregates.iter_mut().filter_map(|(_, a)| match a {
                    AggregateExpression::FunctionCall {
                        expr,
                        name: AggregateFunction::GroupConcat { .. },
                        distinct: false,
                    } => {
                        let own = std::mem::replace(expr, Expression::Coalesce(vec![]));
                        *expr = Expression::FunctionCall(Function::Str, vec![own]);
                        Some(expr)
                    }
                    AggregateExpression::FunctionCall { expr, .. } => Some(expr),
                    AggregateExpression::CountSolutions { .. } => None,
                });
                self.texts(inner, over);
            }
            GraphPattern::LeftJoin {
                left,
                right,
                expression,
            } => {
                self.pattern(left);
                self.pattern(right);
                if let Some(e) = expression {
                    self.exists(e);
                }
            }
            GraphPattern::Join { left, right }
            | GraphPattern::Lateral { left, right }
            | GraphPattern::Union { left, right }
            | GraphPattern::Minus { left, right } => {
                self.pattern(left);
                self.pattern(right);
            }
            GraphPattern::Project { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::Slice { inner, .. }
            | GraphPattern::Service { inner, .. } => self.pattern(inner),
        }
    }

    fn exists(&mut self, e: &mut Expression) {
        if let Expression::Exists(p) = e {
            self.pattern(p);
        } else {
            for part in parts(e) {
                self.exists(part);
            }
        }
    }

    fn graph(&mut self, p: &mut GraphPattern) {
        let GraphPattern::Graph { name, inner } = p else {
            return;
        };
        let hard = is_hard(inner, name);
        self.pattern(inner);
        if !hard {
            return;
        }
        match name {
            // A graph that is not there has no solutions, whatever is inside.
            NamedNodePattern::NamedNode(_) => {
                *p = join(
                    GraphPattern::Graph {
                        name: name.clone(),
                        inner: Box::new(nothing()),
                    },
                    p.clone(),
                );
            }
            NamedNodePattern::Variable(g) => {
                let Some(names) = (self.names)() else { return };
                let own = mentions(inner, g);
                *p = names
                    .into_iter()
                    .map(|n| {
                        let one = GraphPattern::Graph {
                            name: n.clone().into(),
                            inner: inner.clone(),
                        };
                        if own {
                            join(one, value(g, n.into()))
                        } else {
                            GraphPattern::Extend {
                                inner: Box::new(one),
                                variable: g.clone(),
                                expression: n.into(),
                            }
                        }
                    })
                    .collect::<Vec<_>>()
                    .into_balanced_union()
                    .unwrap_or(GraphPattern::Values {
                        variables: vec![g.clone()],
                        bindings: vec![],
                    });
            }
        }
    }

    /// A BIND needs its texts before it; and all BINDs that follow each other see the same solution, so they share
    /// what tells solutions apart for `BNODE`.
    fn extend(&mut self, p: &mut GraphPattern) {
        let mut salted = None;
        self.binds(p, &mut salted);
    }

    fn binds(&mut self, p: &mut GraphPattern, row: &mut Option<Variable>) {
        let GraphPattern::Extend {
            inner, expression, ..
        } = p
        else {
            self.pattern(p);
            if let Some(row) = row.take() {
                *p = GraphPattern::Extend {
                    inner: Box::new(std::mem::replace(p, nothing())),
                    variable: row,
                    expression: Expression::FunctionCall(Function::StrUuid, vec![]),
                };
            }
            return;
        };
        self.exists(expression);
        if has_bnode(expression) {
            let row = row.get_or_insert_with(|| self.fresh());
            bnodes(expression, row);
        }
        self.binds(inner, row);
        self.texts(inner, [expression]);
    }

    fn fresh(&mut self) -> Variable {
        self.made += 1;
        // A space is in no variable of a query's text.
        Variable::new_unchecked(format!("jindou {}", self.made))
    }

    /// Makes `STR(?v)` in the expressions over `inner` read the text from the dataset.
    fn texts<'e>(
        &mut self,
        inner: &mut GraphPattern,
        expressions: impl IntoIterator<Item = &'e mut Expression>,
    ) {
        if self.blanks_only {
            return;
        }
        let mut known: Vec<(Variable, Variable)> = vec![];
        for e in expressions {
            self.text(e, &mut known);
        }
        for (variable, text) in known {
            let look_up = GraphPattern::Bgp {
                patterns: vec![TriplePattern {
                    subject: text.into(),
                    predicate: NamedNode::new_unchecked(TEXT).into(),
                    object: variable.into(),
                }],
            };
            // Lateral, so that the variable has its value when the dataset is asked.
            *inner = GraphPattern::Lateral {
                left: Box::new(std::mem::replace(inner, nothing())),
                right: Box::new(GraphPattern::LeftJoin {
                    left: Box::new(nothing()),
                    right: Box::new(look_up),
                    expression: None,
                }),
            };
        }
    }

    fn text(&mut self, e: &mut Expression, known: &mut Vec<(Variable, Variable)>) {
        if let Expression::FunctionCall(Function::Str, list) = e
            && let [Expression::Variable(v)] = &mut list[..]
        {
            let text = match known.iter().find(|k| k.0 == *v) {
                Some((_, text)) => text.clone(),
                None => {
                    let text = self.fresh();
                    known.push((v.clone(), text.clone()));
                    text
                }
            };
            *v = text;
            return;
        }
        for part in parts(e) {
            self.text(part, known);
        }
    }
}

trait BalancedUnion {
    fn into_balanced_union(self) -> Option<GraphPattern>;
}

impl BalancedUnion for Vec<GraphPattern> {
    /// A union as deep as the logarithm of its size: everything that walks the algebra recurses.
    fn into_balanced_union(mut self) -> Option<GraphPattern> {
        if self.len() <= 1 {
            return self.pop();
        }
        let right = self.split_off(self.len() / 2);
        Some(GraphPattern::Union {
            left: Box::new(self.into_balanced_union()?),
            right: Box::new(right.into_balanced_union()?),
        })
    }
}

/// One empty solution.
fn nothing() -> GraphPattern {
    GraphPattern::Bgp { patterns: vec![] }
}

fn join(left: GraphPattern, right: GraphPattern) -> GraphPattern {
    GraphPattern::Join {
        left: Box::new(left),
        right: Box::new(right),
    }
}

fn value(variable: &Variable, value: GroundTerm) -> GraphPattern {
    GraphPattern::Values {
        variables: vec![variable.clone()],
        bindings: vec![vec![Some(value)]],
    }
}

/// True if a path may have length zero.
fn is_nullable(path: &PropertyPathExpression) -> bool {
    match path {
        PropertyPathExpression::ZeroOrMore(_) | PropertyPathExpression::ZeroOrOne(_) => true,
        PropertyPathExpression::Reverse(p) => is_nullable(p),
        _ => false,
    }
}

fn zero_length(p: &mut GraphPattern) {
    if let Some(zero) = zero_solutions(p) {
        *p = GraphPattern::Distinct {
            inner: Box::new(GraphPattern::Union {
                left: Box::new(std::mem::replace(p, nothing())),
                right: Box::new(zero),
            }),
        };
    }
}

/// What a path of length zero with a constant end gives.
fn zero_solutions(p: &GraphPattern) -> Option<GraphPattern> {
    let GraphPattern::Path {
        subject,
        path,
        object,
    } = p
    else {
        return None;
    };
    if !is_nullable(path) {
        return None;
    }
    match (constant(subject), constant(object)) {
        (Some(a), Some(b)) => (a == b).then(nothing),
        (Some(c), None) | (None, Some(c)) => match (subject, object) {
            (TermPattern::Variable(v), _) | (_, TermPattern::Variable(v)) => Some(value(v, c)),
            _ => None,
        },
        (None, None) => None,
    }
}

fn constant(t: &TermPattern) -> Option<GroundTerm> {
    match t {
        TermPattern::NamedNode(n) => Some(n.clone().into()),
        TermPattern::Literal(l) => Some(l.clone().into()),
        _ => None,
    }
}

/// True if putting the graph into every triple pattern is not the same as evaluating in each graph.
fn is_hard(inner: &GraphPattern, name: &NamedNodePattern) -> bool {
    let own = match name {
        NamedNodePattern::Variable(g) => mentions(inner, g),
        NamedNodePattern::NamedNode(_) => false,
    };
    own || !is_plain(inner, matches!(name, NamedNodePattern::Variable(_)))
}

/// True if every solution comes from patterns that bind the graph, and solutions are never counted, cut or
/// compared across graphs. With a constant graph only paths of length zero are not plain.
fn is_plain(p: &GraphPattern, variable: bool) -> bool {
    match p {
        GraphPattern::Bgp { patterns } => !variable || !patterns.is_empty(),
        GraphPattern::Path { .. } => zero_solutions(p).is_none(),
        GraphPattern::Join { left, right } | GraphPattern::Union { left, right } => {
            is_plain(left, variable) && is_plain(right, variable)
        }
        GraphPattern::LeftJoin { left, right, .. } => {
            is_plain(left, variable) && is_plain(right, variable)
        }
        GraphPattern::Filter { inner, expr } => {
            is_plain(inner, variable) && (!variable || !has_exists(expr))
        }
        GraphPattern::Graph { .. } => true,
        GraphPattern::Extend { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::Group { inner, .. } => !variable && is_plain(inner, variable),
        GraphPattern::Minus { left, right } | GraphPattern::Lateral { left, right } => {
            !variable && is_plain(left, variable) && is_plain(right, variable)
        }
        GraphPattern::Values { .. } | GraphPattern::Service { .. } => !variable,
    }
}

fn has_exists(e: &Expression) -> bool {
    matches!(e, Expression::Exists(_)) || parts(&mut e.clone()).into_iter().any(|p| has_exists(p))
}

/// True if `?v` stands in a pattern.
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

/// The expressions directly inside one, patterns of EXISTS not looked into.
fn parts(e: &mut Expression) -> Vec<&mut Expression> {
    use Expression as E;
    match e {
        E::NamedNode(_) | E::Literal(_) | E::Variable(_) | E::Bound(_) | E::Exists(_) => vec![],
        E::Or(a, b)
        | E::And(a, b)
        | E::Equal(a, b)
        | E::SameTerm(a, b)
        | E::Greater(a, b)
        | E::GreaterOrEqual(a, b)
        | E::Less(a, b)
        | E::LessOrEqual(a, b)
        | E::Add(a, b)
        | E::Subtract(a, b)
        | E::Multiply(a, b)
        | E::Divide(a, b) => vec![a, b],
        E::UnaryPlus(a) | E::UnaryMinus(a) | E::Not(a) => vec![a],
        E::In(a, list) => std::iter::once(&mut **a).chain(list).collect(),
        E::If(a, b, c) => vec![a, b, c],
        E::Coalesce(list) | E::FunctionCall(_, list) => list.iter_mut().collect(),
    }
}

fn has_bnode(e: &Expression) -> bool {
    let mut e = e.clone();
    has_bnode_in(&mut e)
}

fn has_bnode_in(e: &mut Expression) -> bool {
    matches!(e, Expression::FunctionCall(Function::BNode, list) if !list.is_empty())
        || parts(e).into_iter().any(has_bnode_in)
}

/// `BNODE(text)` becomes `BNODE(CONCAT("b", MD5(CONCAT(text, row))))`: any text makes a label, and the row makes
/// it that row's own.
fn bnodes(e: &mut Expression, row: &Variable) {
    for part in parts(e) {
        bnodes(part, row);
    }
    if let Expression::FunctionCall(Function::BNode, list) = e
        && let Some(text) = list.first_mut()
    {
        let call = |f, list| Expression::FunctionCall(f, list);
        let own = std::mem::replace(text, Expression::Variable(row.clone()));
        let salted = call(Function::Concat, vec![own, row.clone().into()]);
        let letter = Literal::new_simple_literal("b").into();
        *text = call(
            Function::Concat,
            vec![letter, call(Function::Md5, vec![salted])],
        );
    }
}
