//! Size of an algebra tree, bytes on the heap and depth, computed without recursion.

use crate::weigh::{CountedTexts, PIECE};
use jindou_syntax::algebra::{
    AggregateExpression, Expression, GraphName, GraphNamePattern, GraphPattern, GraphTarget,
    GraphUpdateOperation, GroundQuad, GroundQuadPattern, GroundTerm, GroundTermPattern,
    GroundTriple, GroundTriplePattern, Literal, NamedNode, NamedNodePattern, NamedOrBlankNode,
    OrderExpression, PropertyPathExpression, Quad, QuadPattern, Query, QueryDataset, Term,
    TermPattern, Triple, TriplePattern, Variable,
};

/// Size in bytes and in levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Approximate bytes on the heap: strings, nodes and lists, including the allocator's overhead for each piece.
    pub bytes: u64,
    /// Depth of nested patterns, expressions and paths.
    pub depth: usize,
    /// Depth of nested expressions alone.
    pub nested: usize,
}

enum SizedPart<'a> {
    Pattern(&'a GraphPattern),
    /// An expression, with its depth among expressions.
    Expression(&'a Expression, usize),
    Path(&'a PropertyPathExpression),
    Term(&'a TermPattern),
    Ground(&'a GroundTerm),
    GroundPattern(&'a GroundTermPattern),
}

#[derive(Default)]
struct SizeMeasure<'a> {
    open: Vec<(SizedPart<'a>, usize)>,
    size: Size,
    held: CountedTexts,
    /// Operators that the plan nests even if the algebra is flat: each EXISTS processes the rows of the previous one,
    /// and so does each join.
    stacked: usize,
}

/// The size of a query. O(query).
pub(super) fn of_query(query: &Query) -> Size {
    let mut m = SizeMeasure::default();
    m.open.push((SizedPart::Pattern(query.pattern()), 1));
    if let Query::Construct { template, .. } = query {
        m.list::<TriplePattern>(template.len());
        template.iter().for_each(|t| m.triple(t, 1));
    }
    if let Some(d) = query.dataset() {
        m.dataset(d);
    }
    m.all()
}

/// The size of an update's operation. O(operation).
pub(super) fn of_operation(operation: &GraphUpdateOperation) -> Size {
    use GraphUpdateOperation as Op;
    let mut m = SizeMeasure::default();
    match operation {
        Op::InsertData { data } => {
            m.list::<Quad>(data.len());
            for q in data {
                m.subject(&q.subject);
                m.iri(&q.predicate);
                m.data(&q.object);
                m.graph(&q.graph_name);
            }
        }
        Op::DeleteData { data } => {
            m.list::<GroundQuad>(data.len());
            for q in data {
                m.iri(&q.subject);
                m.iri(&q.predicate);
                m.open.push((SizedPart::Ground(&q.object), 1));
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
            m.open.push((SizedPart::Pattern(pattern), 1));
            m.list::<QuadPattern>(insert.len());
            for q in insert {
                m.open.push((SizedPart::Term(&q.subject), 1));
                m.open.push((SizedPart::Term(&q.object), 1));
                m.predicate(&q.predicate);
                m.graph_pattern(&q.graph_name);
                m.drain();
            }
            m.list::<GroundQuadPattern>(delete.len());
            for q in delete {
                m.open.push((SizedPart::GroundPattern(&q.subject), 1));
                m.open.push((SizedPart::GroundPattern(&q.object), 1));
                m.predicate(&q.predicate);
                m.graph_pattern(&q.graph_name);
                m.drain();
            }
            if let Some(d) = using {
                m.dataset(d);
            }
        }
        Op::Load {
            source,
            destination,
            ..
        } => {
            m.iri(source);
            m.graph(destination);
        }
        Op::Create { graph, .. } => m.iri(graph),
        Op::Clear { graph, .. } | Op::Drop { graph, .. } => {
            if let GraphTarget::NamedNode(n) = graph {
                m.iri(n);
            }
        }
    }
    m.all()
}

/// Approximate heap bytes of an expression; texts that are already counted are left out. O(expression).
pub(crate) fn expression_bytes(e: &Expression, held: &mut CountedTexts) -> u64 {
    let mut m = SizeMeasure {
        held: std::mem::take(held),
        ..SizeMeasure::default()
    };
    m.open.push((SizedPart::Expression(e, 1), 1));
    m.drain();
    *held = m.held;
    m.size.bytes
}

impl<'a> SizeMeasure<'a> {
    fn all(mut self) -> Size {
        self.drain();
        self.size.depth += self.stacked;
        self.size
    }

    fn drain(&mut self) {
        while let Some((part, depth)) = self.open.pop() {
            self.size.depth = self.size.depth.max(depth);
            match part {
                SizedPart::Pattern(p) => self.pattern(p, depth + 1),
                SizedPart::Expression(e, nested) => {
                    self.size.nested = self.size.nested.max(nested);
                    self.expression(e, nested + 1, depth + 1);
                }
                SizedPart::Path(p) => self.path(p, depth + 1),
                SizedPart::Term(t) => self.term(t, depth + 1),
                SizedPart::Ground(t) => self.ground(t, depth + 1),
                SizedPart::GroundPattern(t) => self.ground_pattern(t, depth + 1),
            }
        }
    }

    /// Adds a text on the heap unless it is already counted.
    fn text(&mut self, text: &[u8]) {
        self.size.bytes += self.held.bytes(text);
    }

    fn iri(&mut self, n: &NamedNode) {
        self.text(n.as_str().as_bytes());
    }

    fn subject(&mut self, n: &NamedOrBlankNode) {
        if let NamedOrBlankNode::NamedNode(n) = n {
            self.iri(n);
        }
    }

    fn graph_pattern(&mut self, g: &GraphNamePattern) {
        match g {
            GraphNamePattern::NamedNode(n) => self.iri(n),
            GraphNamePattern::Variable(v) => self.variable(v),
            GraphNamePattern::DefaultGraph => {}
        }
    }

    fn dataset(&mut self, d: &QueryDataset) {
        let named = d.named.iter().flatten();
        self.list::<NamedNode>(d.default.len() + named.clone().count());
        d.default.iter().chain(named).for_each(|n| self.iri(n));
    }

    /// Adds a list of this many elements.
    fn list<T>(&mut self, n: usize) {
        if n > 0 {
            // A growing list doubles: a third of it may be unused.
            self.size.bytes += (n * size_of::<T>()) as u64 * 4 / 3 + PIECE;
        }
    }

    /// Adds a boxed node.
    fn node<T>(&mut self) {
        self.size.bytes += size_of::<T>() as u64 + PIECE;
    }

    fn literal(&mut self, l: &Literal) {
        self.text(l.canonical());
    }

    fn variable(&mut self, v: &Variable) {
        self.text(v.as_str().as_bytes());
    }

    fn predicate(&mut self, p: &NamedNodePattern) {
        match p {
            NamedNodePattern::NamedNode(n) => self.iri(n),
            NamedNodePattern::Variable(v) => self.variable(v),
        }
    }

    fn graph(&mut self, g: &GraphName) {
        if let GraphName::NamedNode(n) = g {
            self.iri(n);
        }
    }

    fn data(&mut self, t: &Term) {
        let mut open = vec![t];
        while let Some(t) = open.pop() {
            match t {
                Term::NamedNode(n) => self.iri(n),
                Term::BlankNode(_) => {}
                Term::Literal(l) => self.literal(l),
                Term::Triple(t) => {
                    self.node::<Triple>();
                    self.subject(&t.subject);
                    self.iri(&t.predicate);
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
                self.open.push((SizedPart::Term(end), depth));
            } else {
                self.term(end, depth);
            }
        }
    }

    fn term(&mut self, t: &'a TermPattern, depth: usize) {
        match t {
            TermPattern::NamedNode(n) => self.iri(n),
            TermPattern::BlankNode(_) => {}
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
            GroundTerm::NamedNode(n) => self.iri(n),
            GroundTerm::Literal(l) => self.literal(l),
            GroundTerm::Triple(t) => {
                self.node::<GroundTriple>();
                self.iri(&t.subject);
                self.iri(&t.predicate);
                self.open.push((SizedPart::Ground(&t.object), depth));
            }
        }
    }

    fn ground_pattern(&mut self, t: &'a GroundTermPattern, depth: usize) {
        match t {
            GroundTermPattern::NamedNode(n) => self.iri(n),
            GroundTermPattern::Literal(l) => self.literal(l),
            GroundTermPattern::Variable(v) => self.variable(v),
            GroundTermPattern::Triple(t) => {
                self.node::<GroundTriplePattern>();
                self.predicate(&t.predicate);
                self.open
                    .push((SizedPart::GroundPattern(&t.subject), depth));
                self.open.push((SizedPart::GroundPattern(&t.object), depth));
            }
        }
    }

    fn path(&mut self, p: &'a PropertyPathExpression, depth: usize) {
        use PropertyPathExpression as P;
        match p {
            P::NamedNode(n) => self.iri(n),
            P::NegatedPropertySet(list) => {
                self.list::<NamedNode>(list.len());
                list.iter().for_each(|n| self.iri(n));
            }
            P::Reverse(p) | P::ZeroOrMore(p) | P::OneOrMore(p) | P::ZeroOrOne(p) => {
                self.node::<P>();
                self.open.push((SizedPart::Path(p), depth));
            }
            P::Sequence(a, b) | P::Alternative(a, b) => {
                for p in [a, b] {
                    self.node::<P>();
                    self.open.push((SizedPart::Path(p), depth));
                }
            }
        }
    }

    fn inner(&mut self, p: &'a GraphPattern, depth: usize) {
        self.node::<GraphPattern>();
        self.open.push((SizedPart::Pattern(p), depth));
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
        let parts = list.into_iter().map(|e| SizedPart::Expression(e, nested));
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
                self.open.push((SizedPart::Term(subject), depth));
                self.open.push((SizedPart::Term(object), depth));
                self.open.push((SizedPart::Path(path), depth));
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
                self.expressions(expression.iter().map(|e| &**e), depth);
            }
            GraphPattern::Filter { expr, inner } => {
                self.inner(inner, depth);
                self.expressions([&**expr], depth);
            }
            GraphPattern::Extend {
                inner,
                variable,
                expression,
            } => {
                self.variable(variable);
                self.inner(inner, depth);
                self.expressions([&**expression], depth);
            }
            GraphPattern::OrderBy { inner, expression } => {
                self.list::<OrderExpression>(expression.len());
                // Each key is bound over the rows of the previous one.
                self.inner(inner, depth + expression.len());
                let list = expression.iter().map(|e| &**e.expression());
                self.expressions(list, depth);
            }
            GraphPattern::Group {
                inner,
                variables,
                aggregates,
            } => {
                // So is each aggregated expression.
                self.inner(inner, depth + aggregates.len());
                self.list::<Variable>(variables.len());
                variables.iter().for_each(|v| self.variable(v));
                self.list::<(Variable, AggregateExpression)>(aggregates.len());
                for (v, a) in aggregates {
                    self.variable(v);
                    if let AggregateExpression::FunctionCall { expr, .. } = a {
                        self.expressions([&**expr], depth);
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
            Expression::NamedNode(n) => self.iri(n),
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
