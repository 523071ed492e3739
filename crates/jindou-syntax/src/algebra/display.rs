//! Algebra as SPARQL text, for other endpoints (SERVICE) and for EXPLAIN. Recursive, to the depth of the algebra.

use super::expression::Expression;
use super::pattern::{
    AggregateExpression, AggregateFunction, GraphPattern, GraphTarget, OrderExpression,
    QueryDataset,
};
use super::query::Query;
use super::term::{
    GraphName, GroundTerm, GroundTriple, NamedNodePattern, NamedOrBlankNode, Term, TermPattern,
    Triple, TriplePattern, Variable,
};
use std::fmt::{self, Display, Formatter, Result, Write};

pub(super) fn list<T: Display>(
    f: &mut Formatter<'_>,
    items: impl Iterator<Item = T>,
    between: &str,
) -> Result {
    for (i, item) in items.enumerate() {
        if i > 0 {
            f.write_str(between)?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

/// Writes the term in any variant; the variant after a `+` contains the triple of a triple term.
macro_rules! terms {
    ($($term:ident { $($variant:ident),* } $(+ $triple:ident)?)*) => {$(
        impl Display for $term {
            fn fmt(&self, f: &mut Formatter<'_>) -> Result {
                match self {
                    $(Self::$variant(x) => x.fmt(f),)*
                    $(Self::$triple(t) => write!(f, "<<( {t} )>>"),)?
                }
            }
        }
    )*};
}

terms! {
    NamedNodePattern { NamedNode, Variable }
    TermPattern { NamedNode, BlankNode, Literal, Variable } + Triple
    NamedOrBlankNode { NamedNode, BlankNode }
    Term { NamedNode, BlankNode, Literal } + Triple
    GroundTerm { NamedNode, Literal } + Triple
}

macro_rules! triples {
    ($($triple:ident)*) => {$(
        impl Display for $triple {
            fn fmt(&self, f: &mut Formatter<'_>) -> Result {
                write!(f, "{} {} {}", self.subject, self.predicate, self.object)
            }
        }
    )*};
}

triples! { TriplePattern Triple GroundTriple }

impl Display for GraphName {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::NamedNode(n) => n.fmt(f),
            Self::DefaultGraph => f.write_str("DEFAULT"),
        }
    }
}

impl Display for GraphTarget {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::NamedNode(n) => write!(f, "GRAPH {n}"),
            Self::DefaultGraph => f.write_str("DEFAULT"),
            Self::NamedGraphs => f.write_str("NAMED"),
            Self::AllGraphs => f.write_str("ALL"),
        }
    }
}

impl Display for Expression {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut binary = |a: &Self, operator: &str, b: &Self| write!(f, "({a} {operator} {b})");
        match self {
            Self::Or(a, b) => binary(a, "||", b),
            Self::And(a, b) => binary(a, "&&", b),
            Self::Equal(a, b) => binary(a, "=", b),
            Self::Greater(a, b) => binary(a, ">", b),
            Self::GreaterOrEqual(a, b) => binary(a, ">=", b),
            Self::Less(a, b) => binary(a, "<", b),
            Self::LessOrEqual(a, b) => binary(a, "<=", b),
            Self::Add(a, b) => binary(a, "+", b),
            Self::Subtract(a, b) => binary(a, "-", b),
            Self::Multiply(a, b) => binary(a, "*", b),
            Self::Divide(a, b) => binary(a, "/", b),
            Self::NamedNode(n) => n.fmt(f),
            Self::Literal(l) => l.fmt(f),
            Self::Variable(v) => v.fmt(f),
            Self::SameTerm(a, b) => write!(f, "sameTerm({a}, {b})"),
            Self::In(a, of) => {
                write!(f, "({a} IN (")?;
                list(f, of.iter(), ", ")?;
                f.write_str("))")
            }
            // The space keeps sign and number apart: `+5` would be one token.
            Self::UnaryPlus(e) => write!(f, "(+ {e})"),
            Self::UnaryMinus(e) => write!(f, "(- {e})"),
            Self::Not(e) => match &**e {
                Self::Exists(p) => write!(f, "NOT EXISTS {{ {p} }}"),
                e => write!(f, "!{e}"),
            },
            Self::Exists(p) => write!(f, "EXISTS {{ {p} }}"),
            Self::Bound(v) => write!(f, "BOUND({v})"),
            Self::If(a, b, c) => write!(f, "IF({a}, {b}, {c})"),
            Self::Coalesce(of) => {
                f.write_str("COALESCE(")?;
                list(f, of.iter(), ", ")?;
                f.write_str(")")
            }
            Self::FunctionCall(function, of) => {
                write!(f, "{function}(")?;
                list(f, of.iter(), ", ")?;
                f.write_str(")")
            }
        }
    }
}

impl Display for AggregateFunction {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Self::Count => "COUNT",
            Self::Sum => "SUM",
            Self::Avg => "AVG",
            Self::Min => "MIN",
            Self::Max => "MAX",
            Self::GroupConcat { .. } => "GROUP_CONCAT",
            Self::Sample => "SAMPLE",
            Self::Custom(iri) => return iri.fmt(f),
        })
    }
}

impl Display for AggregateExpression {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let of = |distinct: &bool| if *distinct { "DISTINCT " } else { "" };
        match self {
            Self::CountSolutions { distinct } => write!(f, "COUNT({}*)", of(distinct)),
            Self::FunctionCall {
                name,
                expr,
                distinct,
            } => {
                write!(f, "{name}({}{expr}", of(distinct))?;
                if let AggregateFunction::GroupConcat {
                    separator: Some(separator),
                } = name
                {
                    let text = oxrdf::LiteralRef::new_simple_literal(separator);
                    write!(f, "; SEPARATOR = {text}")?;
                }
                f.write_str(")")
            }
        }
    }
}

impl Display for OrderExpression {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Asc(e) => write!(f, "ASC({e})"),
            Self::Desc(e) => write!(f, "DESC({e})"),
        }
    }
}

impl Display for QueryDataset {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for n in &self.default {
            write!(f, " FROM {n}")?;
        }
        for n in self.named.iter().flatten() {
            write!(f, " FROM NAMED {n}")?;
        }
        Ok(())
    }
}

/// A pattern that other operators follow in the same group. A filter gets braces of its own, since otherwise it would
/// apply to the whole group.
struct Before<'a>(&'a GraphPattern);

impl Display for Before<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0 {
            p @ GraphPattern::Filter { .. } => write!(f, "{{ {p} }}"),
            p => p.fmt(f),
        }
    }
}

/// The right side of a join. An operator that applies to everything before it in its group gets braces of its own.
struct Beside<'a>(&'a GraphPattern);

impl Display for Beside<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        use GraphPattern as P;
        match self.0 {
            p @ (P::Filter { .. }
            | P::LeftJoin { .. }
            | P::Lateral { .. }
            | P::Minus { .. }
            | P::Extend { .. }
            | P::Join { .. }) => write!(f, "{{ {p} }}"),
            p => p.fmt(f),
        }
    }
}

/// Writes the text between the braces of a group.
impl Display for GraphPattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Bgp { patterns } => {
                for p in patterns {
                    write!(f, "{p} . ")?;
                }
                Ok(())
            }
            Self::Path {
                subject,
                path,
                object,
            } => write!(f, "{subject} {path} {object} . "),
            Self::Join { left, right } if is_in_group(right) => {
                write!(f, "{}{right}", Before(left))
            }
            Self::Join { left, right } => write!(f, "{}{}", Before(left), Beside(right)),
            Self::LeftJoin {
                left,
                right,
                expression,
            } => {
                write!(f, "{} OPTIONAL {{ {}", Before(left), Before(right))?;
                if let Some(e) = expression {
                    write!(f, " FILTER({e})")?;
                }
                f.write_str(" } ")
            }
            Self::Lateral { left, right } => {
                write!(f, "{} LATERAL {{ {right} }} ", Before(left))
            }
            Self::Filter { expr, inner } => write!(f, "{inner} FILTER({expr}) "),
            Self::Union { left, right } => write!(f, "{{ {left} }} UNION {{ {right} }} "),
            Self::Graph { name, inner } => write!(f, "GRAPH {name} {{ {inner} }} "),
            Self::Extend {
                inner,
                variable,
                expression,
            } => write!(f, "{} BIND({expression} AS {variable}) ", Before(inner)),
            Self::Minus { left, right } => write!(f, "{} MINUS {{ {right} }} ", Before(left)),
            Self::Values {
                variables,
                bindings,
            } => values(f, variables, bindings),
            Self::Service {
                name,
                inner,
                silent,
            } => {
                let silent = if *silent { "SILENT " } else { "" };
                write!(f, "SERVICE {silent}{name} {{ {inner} }} ")
            }
            Self::Group {
                inner,
                variables,
                aggregates,
            } => group(f, inner, variables, aggregates),
            Self::OrderBy { .. }
            | Self::Project { .. }
            | Self::Distinct { .. }
            | Self::Reduced { .. }
            | Self::Slice { .. } => {
                f.write_str("{ ")?;
                select(f, self, None)?;
                f.write_str(" } ")
            }
        }
    }
}

/// True if all parts of a join are triple patterns and paths of one group, and so may share blank nodes.
fn is_in_group(mut p: &GraphPattern) -> bool {
    use GraphPattern as P;
    loop {
        match p {
            P::Join { left, right } => {
                if !matches!(**right, P::Bgp { .. } | P::Path { .. }) {
                    return false;
                }
                p = left;
            }
            p => return matches!(p, P::Bgp { .. } | P::Path { .. }),
        }
    }
}

fn values(
    f: &mut Formatter<'_>,
    variables: &[Variable],
    bindings: &[Vec<Option<GroundTerm>>],
) -> Result {
    f.write_str("VALUES (")?;
    list(f, variables.iter(), " ")?;
    f.write_str(") { ")?;
    for row in bindings {
        f.write_char('(')?;
        for (i, cell) in row.iter().enumerate() {
            f.write_str(if i > 0 { " " } else { "" })?;
            match cell {
                Some(term) => write!(f, "{term}")?,
                None => f.write_str("UNDEF")?,
            }
        }
        f.write_str(") ")?;
    }
    f.write_str("} ")
}

fn group(
    f: &mut Formatter<'_>,
    inner: &GraphPattern,
    variables: &[Variable],
    aggregates: &[(Variable, AggregateExpression)],
) -> Result {
    f.write_str("{ SELECT")?;
    for v in variables {
        write!(f, " {v}")?;
    }
    for (v, a) in aggregates {
        write!(f, " ({a} AS {v})")?;
    }
    write!(f, " WHERE {{ {inner} }}")?;
    if !variables.is_empty() {
        f.write_str(" GROUP BY ")?;
        list(f, variables.iter(), " ")?;
    }
    f.write_str(" } ")
}

/// Writes SELECT with its modifiers, each at most once. The pattern below them becomes the WHERE clause.
fn select(f: &mut Formatter<'_>, p: &GraphPattern, dataset: Option<&QueryDataset>) -> Result {
    let mut below = p;
    let mut limits = None;
    if let GraphPattern::Slice {
        inner,
        start,
        length,
    } = below
    {
        limits = Some((*start, *length));
        below = inner;
    }
    f.write_str("SELECT")?;
    match below {
        GraphPattern::Distinct { inner } => {
            f.write_str(" DISTINCT")?;
            below = inner;
        }
        GraphPattern::Reduced { inner } => {
            f.write_str(" REDUCED")?;
            below = inner;
        }
        _ => {}
    }
    match below {
        GraphPattern::Project { inner, variables } if !variables.is_empty() => {
            for v in variables {
                write!(f, " {v}")?;
            }
            below = inner;
        }
        GraphPattern::Project { inner, .. } => {
            // SELECT must name at least one variable; this one is never bound.
            f.write_str(" ?_none")?;
            below = inner;
        }
        _ => f.write_str(" *")?,
    }
    let mut order = None;
    if let GraphPattern::OrderBy { inner, expression } = below {
        order = Some(expression);
        below = inner;
    }
    if let Some(dataset) = dataset {
        write!(f, "{dataset}")?;
    }
    write!(f, " WHERE {{ {below} }}")?;
    if let Some(keys) = order {
        f.write_str(" ORDER BY ")?;
        list(f, keys.iter(), " ")?;
    }
    if let Some((start, length)) = limits {
        if start > 0 {
            write!(f, " OFFSET {start}")?;
        }
        if let Some(length) = length {
            write!(f, " LIMIT {length}")?;
        }
    }
    Ok(())
}

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(base) = self.base_iri() {
            writeln!(f, "BASE <{base}>")?;
        }
        let dataset = self.dataset();
        match self {
            Self::Select { pattern, .. } => return select(f, pattern, dataset),
            Self::Construct { template, .. } => {
                f.write_str("CONSTRUCT { ")?;
                for t in template.iter() {
                    write!(f, "{t} . ")?;
                }
                f.write_str("}")?;
            }
            Self::Describe { .. } => f.write_str("DESCRIBE *")?,
            Self::Ask { .. } => f.write_str("ASK")?,
        }
        if let Some(dataset) = dataset {
            write!(f, "{dataset}")?;
        }
        write!(f, " WHERE {{ {} }}", self.pattern())
    }
}

/// Length in bytes of a value's text, computed without building the text; `None` if it exceeds the limit.
#[must_use]
pub fn text_len(of: &impl Display, limit: u64) -> Option<u64> {
    struct LengthCounter {
        left: u64,
    }
    impl fmt::Write for LengthCounter {
        fn write_str(&mut self, s: &str) -> Result {
            self.left = self.left.checked_sub(s.len() as u64).ok_or(fmt::Error)?;
            Ok(())
        }
    }
    let mut count = LengthCounter { left: limit };
    write!(count, "{of}").ok()?;
    Some(limit - count.left)
}
