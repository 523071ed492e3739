//! Algebra as text that does not depend on generated names, nor on how associative operators are nested.

use rustc_hash::FxHashMap;
use spargebra::algebra::*;
use spargebra::term::*;
use spargebra::{GraphUpdateOperation as Op, Query};
use std::fmt::Write;

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

#[derive(Default)]
pub(super) struct Normal {
    out: String,
    names: FxHashMap<String, usize>,
    /// True to sort the variables of projections.
    pub sorted: bool,
}

fn is_generated(name: &str) -> bool {
    name.starts_with("_gen")
        || (28..=32).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_hexdigit())
}

impl Normal {
    pub(super) fn query(query: &Query, sorted: bool) -> String {
        let mut n = Self {
            sorted,
            ..Self::default()
        };
        match query {
            Query::Select {
                dataset,
                pattern,
                base_iri,
            } => {
                n.put(format_args!("select {dataset:?} {base_iri:?} "));
                n.pattern(pattern);
            }
            Query::Ask {
                dataset,
                pattern,
                base_iri,
            } => {
                n.put(format_args!("ask {dataset:?} {base_iri:?} "));
                n.pattern(pattern);
            }
            Query::Describe {
                dataset,
                pattern,
                base_iri,
            } => {
                n.put(format_args!("describe {dataset:?} {base_iri:?} "));
                n.pattern(pattern);
            }
            Query::Construct {
                template,
                dataset,
                pattern,
                base_iri,
            } => {
                n.put(format_args!("construct {dataset:?} {base_iri:?} "));
                template.iter().for_each(|t| n.triple(t));
                n.pattern(pattern);
            }
        }
        n.out
    }

    pub(super) fn operations<'o>(ops: impl IntoIterator<Item = &'o Op>, sorted: bool) -> String {
        let mut n = Self {
            sorted,
            ..Self::default()
        };
        for op in ops {
            match op {
                Op::InsertData { data } => {
                    n.put("insert data ");
                    for q in data {
                        n.term(&q.subject.clone().into());
                        n.put(format_args!("{} ", q.predicate));
                        n.term(&q.object.clone().into());
                        n.put(format_args!("{} . ", q.graph_name));
                    }
                }
                Op::DeleteInsert {
                    delete,
                    insert,
                    using,
                    pattern,
                } => {
                    n.put(format_args!("change {delete:?} {using:?} "));
                    for q in insert {
                        n.term(&q.subject);
                        n.put(format_args!("{} ", q.predicate));
                        n.term(&q.object);
                        n.put(format_args!("{} . ", q.graph_name));
                    }
                    n.pattern(pattern);
                }
                other => n.put(format_args!("{other:?} ")),
            }
            n.put(";\n");
        }
        n.out
    }

    fn put(&mut self, x: impl std::fmt::Display) {
        let _ = write!(self.out, "{x}");
    }

    fn name(&mut self, sign: &str, name: &str) {
        if is_generated(name) {
            let next = self.names.len();
            let n = *self.names.entry(format!("{sign}{name}")).or_insert(next);
            self.put(format_args!("{sign}#{n} "));
        } else {
            self.put(format_args!("{sign}{name} "));
        }
    }

    fn variable(&mut self, v: &Variable) {
        self.name("?", v.as_str());
    }

    fn term(&mut self, t: &TermPattern) {
        match t {
            TermPattern::BlankNode(b) => self.name("_:", b.as_str()),
            TermPattern::Variable(v) => self.variable(v),
            TermPattern::Triple(t) => self.triple(t),
            other => self.put(format_args!("{other} ")),
        }
    }

    fn triple(&mut self, t: &TriplePattern) {
        self.put("(");
        self.term(&t.subject);
        self.put(format_args!("{} ", t.predicate));
        self.term(&t.object);
        self.put(") ");
    }

    fn list<'a>(&mut self, p: &'a GraphPattern, parts: &mut Vec<&'a GraphPattern>, union: bool) {
        match p {
            GraphPattern::Join { left, right } if !union => {
                self.list(left, parts, union);
                self.list(right, parts, union);
            }
            GraphPattern::Union { left, right } if union => {
                self.list(left, parts, union);
                self.list(right, parts, union);
            }
            other => parts.push(other),
        }
    }

    fn named(&mut self, operator: &str, patterns: &[&GraphPattern]) {
        self.put(operator);
        patterns.iter().for_each(|p| self.pattern(p));
    }

    fn pattern(&mut self, p: &GraphPattern) {
        self.put("{");
        match p {
            GraphPattern::Bgp { patterns } => {
                self.put("bgp ");
                patterns.iter().for_each(|t| self.triple(t));
            }
            GraphPattern::Path {
                subject,
                path,
                object,
            } => {
                self.put("path ");
                self.term(subject);
                self.path(path);
                self.term(object);
            }
            GraphPattern::Join { .. } | GraphPattern::Union { .. } => {
                let union = matches!(p, GraphPattern::Union { .. });
                let mut parts = vec![];
                self.list(p, &mut parts, union);
                self.named(if union { "union " } else { "join " }, &parts);
            }
            GraphPattern::LeftJoin {
                left,
                right,
                expression,
            } => {
                self.named("optional ", &[left, right]);
                expression.iter().for_each(|e| self.expression(e));
            }
            GraphPattern::Lateral { left, right } => self.named("lateral ", &[left, right]),
            GraphPattern::Minus { left, right } => self.named("minus ", &[left, right]),
            GraphPattern::Filter { expr, inner } => {
                self.put("filter ");
                self.expression(expr);
                self.pattern(inner);
            }
            GraphPattern::Graph { name, inner } => self.named(&format!("graph {name} "), &[inner]),
            GraphPattern::Service {
                name,
                inner,
                silent,
            } => self.named(&format!("service {name} {silent} "), &[inner]),
            GraphPattern::Extend {
                inner,
                variable,
                expression,
            } => {
                self.pattern(inner);
                self.put("as ");
                self.expression(expression);
                self.variable(variable);
            }
            GraphPattern::Values { .. } => self.put(format_args!("{p:?}")),
            GraphPattern::OrderBy { inner, expression } => {
                self.pattern(inner);
                self.put("order ");
                for key in expression {
                    let (direction, e) = match key {
                        OrderExpression::Asc(e) => ("asc ", e),
                        OrderExpression::Desc(e) => ("desc ", e),
                    };
                    self.put(direction);
                    self.expression(e);
                }
            }
            GraphPattern::Project { inner, variables } => {
                self.pattern(inner);
                self.put("project ");
                let mut variables: Vec<_> = variables.iter().collect();
                if self.sorted {
                    variables.sort();
                }
                variables.into_iter().for_each(|v| self.variable(v));
            }
            GraphPattern::Distinct { inner } => self.named("distinct ", &[inner]),
            GraphPattern::Reduced { inner } => self.named("reduced ", &[inner]),
            GraphPattern::Slice {
                inner,
                start,
                length,
            } => self.named(&format!("slice {start} {length:?} "), &[inner]),
            GraphPattern::Group {
                inner,
                variables,
                aggregates,
            } => {
                self.pattern(inner);
                self.put("group ");
                variables.iter().for_each(|v| self.variable(v));
                aggregates.iter().for_each(|(v, a)| self.aggregate(v, a));
            }
        }
        self.put("} ");
    }

    fn aggregate(&mut self, variable: &Variable, aggregate: &AggregateExpression) {
        self.variable(variable);
        match aggregate {
            AggregateExpression::CountSolutions { distinct } => {
                self.put(format_args!("count {distinct} "));
            }
            AggregateExpression::FunctionCall {
                name,
                expr,
                distinct,
            } => {
                self.put(format_args!("{name:?} {distinct} "));
                self.expression(expr);
            }
        }
    }

    fn path(&mut self, p: &PropertyPathExpression) {
        use PropertyPathExpression as P;
        fn flat<'a>(p: &'a P, sequence: bool, out: &mut Vec<&'a P>) {
            match p {
                P::Sequence(a, b) if sequence => {
                    flat(a, sequence, out);
                    flat(b, sequence, out);
                }
                P::Alternative(a, b) if !sequence => {
                    flat(a, sequence, out);
                    flat(b, sequence, out);
                }
                other => out.push(other),
            }
        }
        self.put("(");
        match p {
            P::NamedNode(n) => self.put(n),
            P::NegatedPropertySet(s) => self.put(format_args!("{s:?}")),
            P::Sequence(..) | P::Alternative(..) => {
                let sequence = matches!(p, P::Sequence(..));
                self.put(if sequence { "/ " } else { "| " });
                let mut parts = vec![];
                flat(p, sequence, &mut parts);
                parts.into_iter().for_each(|p| self.path(p));
            }
            P::Reverse(p) | P::ZeroOrMore(p) | P::OneOrMore(p) | P::ZeroOrOne(p) => {
                self.path(p);
            }
        }
        self.put(match p {
            P::Reverse(_) => ")^",
            P::ZeroOrMore(_) => ")*",
            P::OneOrMore(_) => ")+",
            P::ZeroOrOne(_) => ")?",
            _ => ")",
        });
    }

    fn expression(&mut self, e: &Expression) {
        use Expression as E;
        fn flat<'a>(e: &'a E, or: bool, out: &mut Vec<&'a E>) {
            match e {
                E::Or(a, b) if or => {
                    flat(a, or, out);
                    flat(b, or, out);
                }
                E::And(a, b) if !or => {
                    flat(a, or, out);
                    flat(b, or, out);
                }
                other => out.push(other),
            }
        }
        self.put("[");
        match e {
            E::NamedNode(n) => self.put(n),
            // `spargebra` parses the sign of a number as an operator.
            E::Literal(l)
                if l.value().starts_with(['+', '-']) && l.datatype().as_str().starts_with(XSD) =>
            {
                let sign = if l.value().starts_with('+') {
                    "plus"
                } else {
                    "minus"
                };
                let rest = Literal::new_typed_literal(&l.value()[1..], l.datatype());
                self.put(format_args!("{sign} [{rest}]"));
            }
            E::Literal(l) => self.put(l),
            E::Variable(v) => self.variable(v),
            E::Bound(v) => {
                self.put("bound ");
                self.variable(v);
            }
            E::Or(..) | E::And(..) => {
                let or = matches!(e, E::Or(..));
                self.put(if or { "or " } else { "and " });
                let mut parts = vec![];
                flat(e, or, &mut parts);
                parts.into_iter().for_each(|e| self.expression(e));
            }
            E::Exists(p) => {
                self.put("exists ");
                self.pattern(p);
            }
            E::In(a, list) => {
                self.put("in ");
                self.expression(a);
                list.iter().for_each(|e| self.expression(e));
            }
            E::Coalesce(list) => {
                self.put("coalesce ");
                list.iter().for_each(|e| self.expression(e));
            }
            E::FunctionCall(f, list) => {
                self.put(format_args!("call {f:?} "));
                list.iter().for_each(|e| self.expression(e));
            }
            E::If(a, b, c) => {
                self.put("if ");
                [a, b, c].into_iter().for_each(|e| self.expression(e));
            }
            E::Not(a) => {
                self.put("not ");
                self.expression(a);
            }
            E::UnaryPlus(a) => {
                self.put("plus ");
                self.expression(a);
            }
            E::UnaryMinus(a) => {
                self.put("minus ");
                self.expression(a);
            }
            E::Equal(a, b) => self.two("=", a, b),
            E::SameTerm(a, b) => self.two("same", a, b),
            E::Greater(a, b) => self.two(">", a, b),
            E::GreaterOrEqual(a, b) => self.two(">=", a, b),
            E::Less(a, b) => self.two("<", a, b),
            E::LessOrEqual(a, b) => self.two("<=", a, b),
            E::Add(a, b) => self.two("+", a, b),
            E::Subtract(a, b) => self.two("-", a, b),
            E::Multiply(a, b) => self.two("*", a, b),
            E::Divide(a, b) => self.two("/", a, b),
        }
        self.put("]");
    }

    fn two(&mut self, sign: &str, a: &Expression, b: &Expression) {
        self.put(sign);
        self.expression(a);
        self.expression(b);
    }
}
