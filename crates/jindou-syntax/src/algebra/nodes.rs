//! Operations on whole trees without recursion (dropping, comparing, hashing), since a text may produce trees that are
//! too deep for it.

use super::expression::Expression;
use super::pattern::{AggregateExpression, GraphPattern, OrderExpression};
use super::term::{NamedNodePattern, TermPattern, TriplePattern, Variable};
use std::hash::{Hash, Hasher};
use std::mem::{discriminant, take};
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

impl Expression {
    /// Moves the parts that have no other owner to `open`.
    fn hollow(&mut self, open: &mut DropQueue) {
        match self {
            Self::NamedNode(_) | Self::Literal(_) | Self::Variable(_) | Self::Bound(_) => {}
            Self::Or(a, b)
            | Self::And(a, b)
            | Self::Equal(a, b)
            | Self::SameTerm(a, b)
            | Self::Greater(a, b)
            | Self::GreaterOrEqual(a, b)
            | Self::Less(a, b)
            | Self::LessOrEqual(a, b)
            | Self::Add(a, b)
            | Self::Subtract(a, b)
            | Self::Multiply(a, b)
            | Self::Divide(a, b) => {
                open.expression(a);
                open.expression(b);
            }
            Self::UnaryPlus(a) | Self::UnaryMinus(a) | Self::Not(a) => open.expression(a),
            Self::If(a, b, c) => [a, b, c].into_iter().for_each(|e| open.expression(e)),
            Self::In(a, list) => {
                open.expression(a);
                list.iter_mut().for_each(|e| open.value(e));
            }
            Self::Coalesce(list) | Self::FunctionCall(_, list) => {
                list.iter_mut().for_each(|e| open.value(e));
            }
            Self::Exists(p) => open.pattern(p),
        }
    }

    /// Adds the direct parts of this node to `out`.
    fn inside<'a>(&'a self, out: &mut Vec<NodePart<'a>>) {
        if let Self::Exists(p) = self {
            out.push(NodePart::Pattern(p));
        }
        self.each_part(|e| out.push(NodePart::Expression(e)));
    }

    /// True if both nodes are equal apart from their parts, and have the same number of parts.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::NamedNode(a), Self::NamedNode(b)) => a == b,
            (Self::Literal(a), Self::Literal(b)) => a == b,
            (Self::Variable(a), Self::Variable(b)) | (Self::Bound(a), Self::Bound(b)) => a == b,
            (Self::In(_, a), Self::In(_, b)) | (Self::Coalesce(a), Self::Coalesce(b)) => {
                a.len() == b.len()
            }
            (Self::FunctionCall(f, a), Self::FunctionCall(g, b)) => f == g && a.len() == b.len(),
            _ => discriminant(self) == discriminant(other),
        }
    }

    fn hash_itself<H: Hasher>(&self, state: &mut H) {
        discriminant(self).hash(state);
        match self {
            Self::NamedNode(n) => n.hash(state),
            Self::Literal(l) => l.hash(state),
            Self::Variable(v) | Self::Bound(v) => v.hash(state),
            Self::In(_, list) | Self::Coalesce(list) => list.len().hash(state),
            Self::FunctionCall(f, list) => {
                f.hash(state);
                list.len().hash(state);
            }
            _ => {}
        }
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

    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bgp { patterns: a }, Self::Bgp { patterns: b }) => a == b,
            (
                Self::Path {
                    subject,
                    path,
                    object,
                },
                Self::Path {
                    subject: s,
                    path: p,
                    object: o,
                },
            ) => subject == s && path == p && object == o,
            (Self::LeftJoin { expression: a, .. }, Self::LeftJoin { expression: b, .. }) => {
                a.is_some() == b.is_some()
            }
            (Self::Graph { name: a, .. }, Self::Graph { name: b, .. }) => a == b,
            (Self::Extend { variable: a, .. }, Self::Extend { variable: b, .. }) => a == b,
            (
                Self::Values {
                    variables,
                    bindings,
                },
                Self::Values {
                    variables: v,
                    bindings: b,
                },
            ) => variables == v && bindings == b,
            (Self::OrderBy { expression: a, .. }, Self::OrderBy { expression: b, .. }) => {
                let same = |(a, b)| discriminant::<OrderExpression>(a) == discriminant(b);
                a.len() == b.len() && a.iter().zip(b).all(same)
            }
            (Self::Project { variables: a, .. }, Self::Project { variables: b, .. }) => a == b,
            (
                Self::Slice { start, length, .. },
                Self::Slice {
                    start: s,
                    length: l,
                    ..
                },
            ) => start == s && length == l,
            (
                Self::Group {
                    variables,
                    aggregates,
                    ..
                },
                Self::Group {
                    variables: v,
                    aggregates: a,
                    ..
                },
            ) => {
                use AggregateExpression as A;
                let same = |a: &A, b: &A| match (a, b) {
                    (A::CountSolutions { distinct: a }, A::CountSolutions { distinct: b }) => {
                        a == b
                    }
                    (
                        A::FunctionCall { name, distinct, .. },
                        A::FunctionCall {
                            name: n,
                            distinct: d,
                            ..
                        },
                    ) => name == n && distinct == d,
                    _ => false,
                };
                variables == v
                    && aggregates.len() == a.len()
                    && aggregates
                        .iter()
                        .zip(a)
                        .all(|(a, b)| a.0 == b.0 && same(&a.1, &b.1))
            }
            (
                Self::Service { name, silent, .. },
                Self::Service {
                    name: n, silent: s, ..
                },
            ) => name == n && silent == s,
            _ => discriminant(self) == discriminant(other),
        }
    }

    fn hash_itself<H: Hasher>(&self, state: &mut H) {
        discriminant(self).hash(state);
        match self {
            Self::Bgp { patterns } => patterns.hash(state),
            Self::Path {
                subject,
                path,
                object,
            } => {
                subject.hash(state);
                path.hash(state);
                object.hash(state);
            }
            Self::Graph { name, .. } | Self::Service { name, .. } => name.hash(state),
            Self::Extend { variable, .. } => variable.hash(state),
            Self::Values {
                variables,
                bindings,
            } => {
                variables.hash(state);
                bindings.hash(state);
            }
            Self::Project { variables, .. } | Self::Group { variables, .. } => {
                variables.hash(state);
            }
            Self::Slice { start, length, .. } => (start, length).hash(state),
            _ => {}
        }
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
                (NodePart::Pattern(a), NodePart::Pattern(b)) => (std::ptr::eq(a, b), a.is_like(b)),
                (NodePart::Expression(a), NodePart::Expression(b)) => {
                    (std::ptr::eq(a, b), a.is_like(b))
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
                NodePart::Pattern(p) => p.hash_itself(state),
                NodePart::Expression(e) => e.hash_itself(state),
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
            return self.is_like(other);
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
