//! Operations on whole trees without recursion (dropping, comparing, hashing), since a text may produce trees that are
//! too deep for it.

use super::expression::{Expression, Function};
use super::path::PropertyPathExpression;
use super::pattern::{AggregateExpression, AggregateFunction, GraphPattern, OrderExpression};
use super::term::{
    GroundTerm, Literal, NamedNode, NamedNodePattern, TermPattern, TriplePattern, Variable,
};
use std::hash::{Hash, Hasher};
use std::mem::{Discriminant, discriminant, take};
use std::slice::from_ref;
use std::sync::Arc;

/// Parts of dropped trees that have no other owner; they are dropped one by one.
#[derive(Default)]
struct DropQueue {
    patterns: Vec<GraphPattern>,
    expressions: Vec<Expression>,
}

impl DropQueue {
    fn pattern(&mut self, p: &mut Arc<GraphPattern>) {
        if let Some(p) = Arc::get_mut(p)
            && !p.is_leaf()
        {
            self.patterns.push(take(p));
        }
    }

    fn expression(&mut self, e: &mut Arc<Expression>) {
        if let Some(e) = Arc::get_mut(e) {
            self.value(e);
        }
    }

    fn value(&mut self, e: &mut Expression) {
        if !e.is_leaf() {
            self.expressions
                .push(std::mem::replace(e, Expression::Coalesce(vec![])));
        }
    }

    fn all(mut self) {
        loop {
            if let Some(mut e) = self.expressions.pop() {
                e.hollow(&mut self);
            } else if let Some(mut p) = self.patterns.pop() {
                p.hollow(&mut self);
            } else {
                return;
            }
        }
    }
}

/// The fields of a node apart from its parts, to compare and hash it.
#[derive(PartialEq, Hash)]
enum Own<'a> {
    /// Nothing but a number of parts, where its kind allows several.
    Parts(usize),
    Iri(&'a NamedNode),
    Literal(&'a Literal),
    Function(&'a Function, usize),
    Triples(&'a [TriplePattern]),
    Path(&'a TermPattern, &'a PropertyPathExpression, &'a TermPattern),
    /// A graph or an endpoint; true with SILENT.
    Name(&'a NamedNodePattern, bool),
    Variables(&'a [Variable]),
    Values(&'a [Variable], &'a [Vec<Option<GroundTerm>>]),
    Order(Vec<Discriminant<OrderExpression>>),
    Slice(usize, Option<usize>),
    /// The keys; for each aggregate its variable, its function unless it is `COUNT(*)`, and true with DISTINCT.
    Group(
        &'a [Variable],
        Vec<(&'a Variable, Option<&'a AggregateFunction>, bool)>,
    ),
}

impl Expression {
    /// Moves the parts that have no other owner to `open`.
    fn hollow(&mut self, open: &mut DropQueue) {
        if let Self::Exists(p) = self {
            open.pattern(p);
        }
        let (shared, list) = self.parts_mut();
        shared.for_each(|e| open.expression(e));
        list.for_each(|e| open.value(e));
    }

    /// Adds the direct parts of this node to `out`.
    fn inside<'a>(&'a self, out: &mut Vec<NodePart<'a>>) {
        if let Self::Exists(p) = self {
            out.push(NodePart::Pattern(p));
        }
        self.each_part(|e| out.push(NodePart::Expression(e)));
    }

    fn own(&self) -> (Discriminant<Self>, Own<'_>) {
        let own = match self {
            Self::NamedNode(n) => Own::Iri(n),
            Self::Literal(l) => Own::Literal(l),
            Self::Variable(v) | Self::Bound(v) => Own::Variables(from_ref(v)),
            Self::In(_, list) | Self::Coalesce(list) => Own::Parts(list.len()),
            Self::FunctionCall(f, list) => Own::Function(f, list.len()),
            _ => Own::Parts(0),
        };
        (discriminant(self), own)
    }
}

impl GraphPattern {
    fn hollow(&mut self, open: &mut DropQueue) {
        match self {
            Self::Bgp { .. } | Self::Path { .. } | Self::Values { .. } => {}
            Self::Join { left, right }
            | Self::Lateral { left, right }
            | Self::Union { left, right }
            | Self::Minus { left, right } => {
                open.pattern(left);
                open.pattern(right);
            }
            Self::LeftJoin {
                left,
                right,
                expression,
            } => {
                open.pattern(left);
                open.pattern(right);
                if let Some(e) = expression {
                    open.expression(e);
                }
            }
            Self::Filter { expr, inner } => {
                open.expression(expr);
                open.pattern(inner);
            }
            Self::Extend {
                inner, expression, ..
            } => {
                open.expression(expression);
                open.pattern(inner);
            }
            Self::OrderBy { inner, expression } => {
                open.pattern(inner);
                for key in expression {
                    let (OrderExpression::Asc(e) | OrderExpression::Desc(e)) = key;
                    open.expression(e);
                }
            }
            Self::Group {
                inner, aggregates, ..
            } => {
                open.pattern(inner);
                for (_, a) in aggregates {
                    if let AggregateExpression::FunctionCall { expr, .. } = a {
                        open.expression(expr);
                    }
                }
            }
            Self::Graph { inner, .. }
            | Self::Project { inner, .. }
            | Self::Distinct { inner }
            | Self::Reduced { inner }
            | Self::Slice { inner, .. }
            | Self::Service { inner, .. } => open.pattern(inner),
        }
    }

    fn inside<'a>(&'a self, out: &mut Vec<NodePart<'a>>) {
        out.extend(self.inputs().map(NodePart::Pattern));
        self.each_expression(|e| out.push(NodePart::Expression(e)));
    }

    fn own(&self) -> (Discriminant<Self>, Own<'_>) {
        let own = match self {
            Self::Bgp { patterns } => Own::Triples(patterns),
            Self::Path {
                subject,
                path,
                object,
            } => Own::Path(subject, path, object),
            Self::LeftJoin { expression, .. } => Own::Parts(usize::from(expression.is_some())),
            Self::Graph { name, .. } => Own::Name(name, false),
            Self::Service { name, silent, .. } => Own::Name(name, *silent),
            Self::Extend { variable, .. } => Own::Variables(from_ref(variable)),
            Self::Project { variables, .. } => Own::Variables(variables),
            Self::Values {
                variables,
                bindings,
            } => Own::Values(variables, bindings),
            Self::OrderBy { expression, .. } => {
                Own::Order(expression.iter().map(discriminant).collect())
            }
            Self::Slice { start, length, .. } => Own::Slice(*start, *length),
            Self::Group {
                variables,
                aggregates,
                ..
            } => {
                use AggregateExpression as A;
                let all = aggregates.iter().map(|(to, aggregate)| match aggregate {
                    A::CountSolutions { distinct } => (to, None, *distinct),
                    A::FunctionCall { name, distinct, .. } => (to, Some(name), *distinct),
                });
                Own::Group(variables, all.collect())
            }
            _ => Own::Parts(0),
        };
        (discriminant(self), own)
    }
}

impl Drop for Expression {
    fn drop(&mut self) {
        if !self.is_leaf() {
            let mut open = DropQueue::default();
            self.hollow(&mut open);
            open.all();
        }
    }
}

impl Drop for GraphPattern {
    fn drop(&mut self) {
        if !self.is_leaf() {
            let mut open = DropQueue::default();
            self.hollow(&mut open);
            open.all();
        }
    }
}

#[derive(Clone, Copy)]
enum NodePart<'a> {
    Pattern(&'a GraphPattern),
    Expression(&'a Expression),
}

impl<'a> NodePart<'a> {
    fn inside(self, out: &mut Vec<Self>) {
        match self {
            Self::Pattern(p) => p.inside(out),
            Self::Expression(e) => e.inside(out),
        }
    }

    fn is(self, other: Self) -> bool {
        let (mut left, mut right) = (vec![self], vec![other]);
        while let (Some(a), Some(b)) = (left.pop(), right.pop()) {
            let (same, alike) = match (a, b) {
                (NodePart::Pattern(a), NodePart::Pattern(b)) => {
                    (std::ptr::eq(a, b), a.own() == b.own())
                }
                (NodePart::Expression(a), NodePart::Expression(b)) => {
                    (std::ptr::eq(a, b), a.own() == b.own())
                }
                _ => (false, false),
            };
            if same {
                continue;
            }
            if !alike {
                return false;
            }
            a.inside(&mut left);
            b.inside(&mut right);
            if left.len() != right.len() {
                return false;
            }
        }
        true
    }

    fn hash_all<H: Hasher>(self, state: &mut H) {
        let mut open = vec![self];
        while let Some(part) = open.pop() {
            match part {
                NodePart::Pattern(p) => p.own().hash(state),
                NodePart::Expression(e) => e.own().hash(state),
            }
            part.inside(&mut open);
        }
    }
}

impl GraphPattern {
    /// True if a variable occurs anywhere in the pattern, in scope or not. O(pattern).
    #[must_use]
    pub fn mentions(&self, v: &Variable) -> bool {
        let mut open = vec![NodePart::Pattern(self)];
        while let Some(part) = open.pop() {
            let names = match part {
                NodePart::Expression(Expression::Variable(x) | Expression::Bound(x)) => x == v,
                NodePart::Expression(_) => false,
                NodePart::Pattern(p) => p.names(v),
            };
            if names {
                return true;
            }
            part.inside(&mut open);
        }
        false
    }

    /// True if a triple pattern or a path occurs outside GRAPH and SERVICE, and so reads the query's default graph.
    /// O(pattern).
    #[must_use]
    pub fn reads_default_graph(&self) -> bool {
        let mut open = vec![NodePart::Pattern(self)];
        while let Some(part) = open.pop() {
            match part {
                NodePart::Pattern(Self::Bgp { patterns }) if !patterns.is_empty() => return true,
                NodePart::Pattern(Self::Path { .. }) => return true,
                NodePart::Pattern(Self::Graph { .. } | Self::Service { .. }) => {}
                part => part.inside(&mut open),
            }
        }
        false
    }

    /// True if the operator itself names a variable, ignoring its parts.
    fn names(&self, v: &Variable) -> bool {
        match self {
            Self::Bgp { patterns } => patterns.iter().any(|t| t.names(v)),
            Self::Path {
                subject, object, ..
            } => subject.names(v) || object.names(v),
            Self::Graph { name, .. } | Self::Service { name, .. } => {
                matches!(name, NamedNodePattern::Variable(x) if x == v)
            }
            Self::Extend { variable, .. } => variable == v,
            Self::Values { variables, .. } | Self::Project { variables, .. } => {
                variables.contains(v)
            }
            Self::Group {
                variables,
                aggregates,
                ..
            } => variables.contains(v) || aggregates.iter().any(|a| a.0 == *v),
            _ => false,
        }
    }
}

impl TriplePattern {
    fn names(&self, v: &Variable) -> bool {
        self.subject.names(v)
            || matches!(&self.predicate, NamedNodePattern::Variable(x) if x == v)
            || self.object.names(v)
    }
}

impl TermPattern {
    /// True if the pattern is the variable or contains it. Recursive, to the depth of nested triple terms.
    fn names(&self, v: &Variable) -> bool {
        match self {
            Self::Variable(x) => x == v,
            Self::Triple(t) => t.names(v),
            Self::NamedNode(_) | Self::BlankNode(_) | Self::Literal(_) => false,
        }
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        if self.is_leaf() {
            return self.own() == other.own();
        }
        NodePart::Expression(self).is(NodePart::Expression(other))
    }
}

impl Eq for Expression {}

impl Hash for Expression {
    fn hash<H: Hasher>(&self, state: &mut H) {
        NodePart::Expression(self).hash_all(state);
    }
}

impl PartialEq for GraphPattern {
    fn eq(&self, other: &Self) -> bool {
        NodePart::Pattern(self).is(NodePart::Pattern(other))
    }
}

impl Eq for GraphPattern {}

impl Hash for GraphPattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        NodePart::Pattern(self).hash_all(state);
    }
}
