//! How large algebra is: its bytes on the heap and its depth, without recursion.

use spargebra::algebra::{
    AggregateExpression, Expression, GraphPattern, OrderExpression, PropertyPathExpression,
};
use spargebra::term::{
    GroundTerm, GroundTermPattern, Literal, NamedNodePattern, NamedOrBlankNode, TermPattern,
    TriplePattern, Variable,
};
use spargebra::{GraphUpdateOperation, Query};

/// Bytes and levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes on the heap, about: strings, nodes and lists, with what the allocator adds to each piece.
    pub bytes: u64,
    /// Levels of patterns, expressions and paths inside each other.
    pub depth: usize,
    /// Levels of expressions alone inside each other.
    pub nested: usize,
}

/// Bytes that the allocator adds to a piece, on average.
const PIECE: u64 = 16;

enum Part<'a> {
    Pattern(&'a GraphPattern),
    /// With its level among expressions.
    Expression(&'a Expression, usize),
    Path(&'a PropertyPathExpression),
    Term(&'a TermPattern),
    Ground(&'a GroundTerm),
    GroundPattern(&'a GroundTermPattern),
}

#[derive(Default)]
struct Measure<'a> {
    open: Vec<(Part<'a>, usize)>,
    size: Size,
    /// Operators that the plan has on top of each other, however shallow the algebra is: an EXISTS works on the rows of the one
    /// before, and so does a join.
    stacked: usize,
}

/// The size of a query. O(query).
pub(super) fn of_query(query: &Query) -> Size {
    let mut m = Measure::default();
    let (Query::Select { pattern, .. }
    | Query::Ask { pattern, .. }
    | Query::Construct { pattern, .. }
    | Query::Describe { pattern, .. }) = query;
    m.open.push((Part::Pattern(pattern), 1));
    if let Query::Construct { template, .. } = query {
        m.list::<TriplePattern>(template.len());
        template.iter().for_each(|t| m.triple(t, 1));
    }
    if let Some(d) = query.dataset() {
        d.default.iter().for_each(|n| m.text(n.as_str().len()));
        let named = d.named.iter().flatten();
        named.for_each(|n| m.text(n.as_str().len()));
    }
    m.all()
}

/// The size of an update's operation. O(operation).
pub(super) fn of_operation(operation: &GraphUpdateOperation) -> Size {
    use GraphUpdateOperation as Op;
    let mut m = Measure::default();
    match operation {
        Op::InsertData { data } => {
            m.list::<spargebra::term::Quad>(data.len());
            for q in data {
                match &q.subject {
                    NamedOrBlankNode::NamedNode(n) => m.text(n.as_str().len()),
                    NamedOrBlankNode::BlankNode(b) => m.text(b.as_str().len()),
                }
                m.text(q.predicate.as_str().len());
                m.data(&q.object);
                m.graph(&q.graph_name);
            }
        }
        Op::DeleteData { data } => {
            m.list::<spargebra::term::GroundQuad>(data.len());
            for q in data {
                m.text(q.subject.as_str().len());
                m.text(q.predicate.as_str().len());
                m.open.push((Part::Ground(&q.object), 1));
                m.graph(&q.graph_name);
                m.drain();
            }
        }
        Op::DeleteInsert {
            delete,
            insert,
            pattern,
            using,
        } => {
            m.open.push((Part::Pattern(pattern), 1));
            m.list::<spargebra::term::QuadPattern>(insert.len());
            for q in insert {
                m.open.push((Part::Term(&q.subject), 1));
                m.open.push((Part::Term(&q.object), 1));
                m.predicate(&q.predicate);
                m.text(64);
                m.drain();
            }
            m.list::<spargebra::term::GroundQuadPattern>(delete.len());
            for q in delete {
                m.open.push((Part::GroundPattern(&q.subject), 1));
                m.open.push((Part::GroundPattern(&q.object), 1));
                m.predicate(&q.predicate);
                m.text(64);
                m.drain();
            }
            if let Some(d) = using {
                d.default.iter().for_each(|n| m.text(n.as_str().len()));
                let named = d.named.iter().flatten();
                named.for_each(|n| m.text(n.as_str().len()));
            }
        }
        Op::Load { .. } | Op::Clear { .. } | Op::Create { .. } | Op::Drop { .. } => m.text(64),
    }
    m.all()
}

/// Bytes of an expression on the heap, about. O(expression).
pub(crate) fn expression_bytes(e: &Expression) -> u64 {
    let mut m = Measure::default();
    m.open.push((Part::Expression(e, 1), 1));
    m.all().bytes
}

impl<'a> Measure<'a> {
    fn all(mut self) -> Size {
        self.drain();
        self.size.depth += self.stacked;
        self.size
    }

    fn drain(&mut self) {
        while let Some((part, depth)) = self.open.pop() {
            self.size.depth = self.size.depth.max(depth);
            match part {
                Part::Pattern(p) => self.pattern(p, depth + 1),
                Part::Expression(e, nested) => {
                    self.size.nested = self.size.nested.max(nested);
                    self.expression(e, nested + 1, depth + 1);
                }
                Part::Path(p) => self.path(p, depth + 1),
                Part::Term(t) => self.term(t, depth + 1),
                Part::Ground(t) => self.ground(t, depth + 1),
                Part::GroundPattern(t) => self.ground_pattern(t, depth + 1),
            }
        }
    }

    /// A string on the heap.
    fn text(&mut self, bytes: usize) {
        self.size.bytes += bytes as u64 + PIECE;
    }

    /// A list of so many.
    fn list<T>(&mut self, n: usize) {
        if n > 0 {
            // Lists double while they grow: a third of one is room.
            self.size.bytes += (n * size_of::<T>()) as u64 * 4 / 3 + PIECE;
        }
    }

    /// A node behind a box.
    fn node<T>(&mut self) {
        self.size.bytes += size_of::<T>() as u64 + PIECE;
    }

    fn literal(&mut self, l: &Literal) {
        self.text(l.value().len());
        match l.language() {
            Some(language) => self.text(language.len()),
            None if l.datatype() == oxrdf::vocab::xsd::STRING => {}
            None => self.text(l.datatype().as_str().len()),
        }
    }

    fn variable(&mut self, v: &Variable) {
        self.text(v.as_str().len());
    }

    fn predicate(&mut self, p: &NamedNodePattern) {
        match p {
            NamedNodePattern::NamedNode(n) => self.text(n.as_str().len()),
            NamedNodePattern::Variable(v) => self.variable(v),
        }
    }

    fn graph(&mut self, g: &spargebra::term::GraphName) {
        if let spargebra::term::GraphName::NamedNode(n) = g {
            self.text(n.as_str().len());
        }
    }

    fn data(&mut self, t: &oxrdf::Term) {
        let mut open = vec![t];
        while let Some(t) = open.pop() {
            match t {
                oxrdf::Term::NamedNode(n) => self.text(n.as_str().len()),
                oxrdf::Term::BlankNode(b) => self.text(b.as_str().len()),
                oxrdf::Term::Literal(l) => self.literal(l),
                oxrdf::Term::Triple(t) => {
                    self.node::<oxrdf::Triple>();
                    self.text(64 + t.predicate.as_str().len());
                    open.push(&t.object);
                }
            }
        }
    }

    fn triple(&mut self, t: &'a TriplePattern, depth: usize) {
        self.predicate(&t.predicate);
        for end in [&t.subject, &t.object] {
            // Triple terms nest; other terms are measured at once.
            if let TermPattern::Triple(_) = end {
                self.open.push((Part::Term(end), depth));
            } else {
                self.term(end, depth);
            }
        }
    }

    fn term(&mut self, t: &'a TermPattern, depth: usize) {
        match t {
            TermPattern::NamedNode(n) => self.text(n.as_str().len()),
            TermPattern::BlankNode(b) => self.text(b.as_str().len()),
            TermPattern::Literal(l) => self.literal(l),
            TermPattern::Variable(v) => self.variable(v),
            TermPattern::Triple(t) => {
                self.node::<TriplePattern>();
                self.triple(t, depth);
            }
        }
    }

    fn ground(&mut self, t: &'a GroundTerm, depth: usize) {
        match t {
            GroundTerm::NamedNode(n) => self.text(n.as_str().len()),
            GroundTerm::Literal(l) => self.literal(l),
            GroundTerm::Triple(t) => {
                self.node::<spargebra::term::GroundTriple>();
                self.text(t.subject.as_str().len());
                self.text(t.predicate.as_str().len());
                self.open.push((Part::Ground(&t.object), depth));
            }
        }
    }

    fn ground_pattern(&mut self, t: &'a GroundTermPattern, depth: usize) {
        match t {
            GroundTermPattern::NamedNode(n) => self.text(n.as_str().len()),
            GroundTermPattern::Literal(l) => self.literal(l),
            GroundTermPattern::Variable(v) => self.variable(v),
            GroundTermPattern::Triple(t) => {
                self.node::<spargebra::term::GroundTriplePattern>();
                self.predicate(&t.predicate);
                self.open.push((Part::GroundPattern(&t.subject), depth));
                self.open.push((Part::GroundPattern(&t.object), depth));
            }
        }
    }

    fn path(&mut self, p: &'a PropertyPathExpression, depth: usize) {
        use PropertyPathExpression as P;
        match p {
            P::NamedNode(n) => self.text(n.as_str().len()),
            P::NegatedPropertySet(list) => {
                self.list::<spargebra::term::NamedNode>(list.len());
                list.iter().for_each(|n| self.text(n.as_str().len()));
            }
            P::Reverse(p) | P::ZeroOrMore(p) | P::OneOrMore(p) | P::ZeroOrOne(p) => {
                self.node::<P>();
                self.open.push((Part::Path(p), depth));
            }
            P::Sequence(a, b) | P::Alternative(a, b) => {
                for p in [a, b] {
                    self.node::<P>();
                    self.open.push((Part::Path(p), depth));
                }
            }
        }
    }

    fn inner(&mut self, p: &'a GraphPattern, depth: usize) {
        self.node::<GraphPattern>();
        self.open.push((Part::Pattern(p), depth));
    }

    fn expressions(&mut self, list: impl IntoIterator<Item = &'a Expression>, depth: usize) {
        self.nested(list, 1, depth);
    }

    fn nested(
        &mut self,
        list: impl IntoIterator<Item = &'a Expression>,
        nested: usize,
        depth: usize,
    ) {
        let parts = list.into_iter().map(|e| Part::Expression(e, nested));
        self.open.extend(parts.map(|p| (p, depth)));
    }

    fn pattern(&mut self, p: &'a GraphPattern, depth: usize) {
        match p {
            GraphPattern::Bgp { patterns } => {
                self.list::<TriplePattern>(patterns.len());
                patterns.iter().for_each(|t| self.triple(t, depth));
            }
            GraphPattern::Path {
                subject,
                path,
                object,
            } => {
                self.open.push((Part::Term(subject), depth));
                self.open.push((Part::Term(object), depth));
                self.open.push((Part::Path(path), depth));
            }
            GraphPattern::Join { left, right }
            | GraphPattern::Lateral { left, right }
            | GraphPattern::Union { left, right }
            | GraphPattern::Minus { left, right } => {
                self.stacked += usize::from(matches!(p, GraphPattern::Join { .. }));
                self.inner(left, depth);
                self.inner(right, depth);
            }
            GraphPattern::LeftJoin {
                left,
                right,
                expression,
            } => {
                self.inner(left, depth);
                self.inner(right, depth);
                self.expressions(expression, depth);
            }
            GraphPattern::Filter { expr, inner } => {
                self.inner(inner, depth);
                self.expressions([expr], depth);
            }
            GraphPattern::Extend {
                inner,
                variable,
                expression,
            } => {
                self.variable(variable);
                self.inner(inner, depth);
                self.expressions([expression], depth);
            }
            GraphPattern::OrderBy { inner, expression } => {
                self.list::<OrderExpression>(expression.len());
                // Each key is bound over the rows before.
                self.inner(inner, depth + expression.len());
                let list = expression.iter().map(|e| {
                    let (OrderExpression::Asc(e) | OrderExpression::Desc(e)) = e;
                    e
                });
                self.expressions(list, depth);
            }
            GraphPattern::Group {
                inner,
                variables,
                aggregates,
            } => {
                // So is what is aggregated.
                self.inner(inner, depth + aggregates.len());
                self.list::<Variable>(variables.len());
                variables.iter().for_each(|v| self.variable(v));
                self.list::<(Variable, AggregateExpression)>(aggregates.len());
                for (v, a) in aggregates {
                    self.variable(v);
                    if let AggregateExpression::FunctionCall { expr, .. } = a {
                        self.expressions([expr], depth);
                    }
                }
            }
            GraphPattern::Values {
                variables,
                bindings,
            } => {
                variables.iter().for_each(|v| self.variable(v));
                self.list::<Vec<Option<GroundTerm>>>(bindings.len());
                for row in bindings {
                    self.size.bytes +=
                        (row.capacity() * size_of::<Option<GroundTerm>>()) as u64 + PIECE;
                    for t in row.iter().flatten() {
                        self.ground(t, depth);
                    }
                }
            }
            GraphPattern::Project { inner, variables } => {
                self.list::<Variable>(variables.len());
                variables.iter().for_each(|v| self.variable(v));
                self.inner(inner, depth);
            }
            GraphPattern::Graph { name, inner } | GraphPattern::Service { name, inner, .. } => {
                self.predicate(name);
                self.inner(inner, depth);
            }
            GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::Slice { inner, .. } => self.inner(inner, depth),
        }
    }

    fn expression(&mut self, e: &'a Expression, nested: usize, depth: usize) {
        match e {
            Expression::NamedNode(n) => self.text(n.as_str().len()),
            Expression::Literal(l) => self.literal(l),
            Expression::Variable(v) | Expression::Bound(v) => self.variable(v),
            Expression::Exists(p) => {
                self.stacked += 1;
                self.inner(p, depth);
            }
            Expression::Coalesce(list) | Expression::FunctionCall(_, list) => {
                self.list::<Expression>(list.len());
                self.nested(list, nested, depth);
            }
            Expression::In(a, list) => {
                self.node::<Expression>();
                self.list::<Expression>(list.len());
                self.nested([&**a], nested, depth);
                self.nested(list, nested, depth);
            }
            _ => {
                let parts = crate::expression::parts(e);
                parts.iter().for_each(|_| self.node::<Expression>());
                self.nested(parts, nested, depth);
            }
        }
    }
}
