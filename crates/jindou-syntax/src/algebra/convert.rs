//! Conversion to and from `spargebra`'s algebra, for programs that build queries with it, and for tests against other
//! engines. Recursive, to the depth of the algebra.

use super::*;
use oxiri::Iri;
use spargebra::algebra as from;
use std::sync::Arc;

macro_rules! paths {
    ($to:ident, $from:path, $new:path) => {
        impl From<&$from> for $to {
            fn from(p: &$from) -> Self {
                use $from as P;
                let to = |p: &P| $new(Self::from(p));
                match p {
                    P::NamedNode(n) => Self::NamedNode(n.into()),
                    P::Reverse(p) => Self::Reverse(to(p)),
                    P::Sequence(a, b) => Self::Sequence(to(a), to(b)),
                    P::Alternative(a, b) => Self::Alternative(to(a), to(b)),
                    P::ZeroOrMore(p) => Self::ZeroOrMore(to(p)),
                    P::OneOrMore(p) => Self::OneOrMore(to(p)),
                    P::ZeroOrOne(p) => Self::ZeroOrOne(to(p)),
                    P::NegatedPropertySet(set) => {
                        Self::NegatedPropertySet(set.iter().map(Into::into).collect())
                    }
                }
            }
        }
    };
}

type TheirPath = from::PropertyPathExpression;
paths!(
    PropertyPathExpression,
    spargebra::algebra::PropertyPathExpression,
    Arc::new
);
paths!(TheirPath, super::PropertyPathExpression, Box::new);

/// Defines the conversion of functions that `spargebra` has, too; it represents all others as functions named by an
/// IRI.
macro_rules! functions {
    ($($name:ident)*) => {
        impl From<&from::Function> for Function {
            fn from(f: &from::Function) -> Self {
                match f {
                    $(from::Function::$name => Self::$name,)*
                    from::Function::Custom(iri) => Self::Custom(iri.into()),
                }
            }
        }

        impl From<&Function> for from::Function {
            fn from(f: &Function) -> Self {
                #[allow(unreachable_patterns, reason = "as long as they know all of ours")]
                match f {
                    $(Function::$name => Self::$name,)*
                    Function::Custom(iri) => Self::Custom(iri.into()),
                    other => Self::Custom(oxrdf::NamedNode::new_unchecked(format!("urn:jindou:function:{other}"))),
                }
            }
        }
    };
}

functions! {
    Str Lang LangMatches Datatype Iri BNode Rand Abs Ceil Floor Round Concat SubStr StrLen Replace UCase LCase EncodeForUri
    Contains StrStarts StrEnds StrBefore StrAfter Year Month Day Hours Minutes Seconds Timezone Tz Now Uuid StrUuid Md5 Sha1
    Sha256 Sha384 Sha512 StrLang StrDt IsIri IsBlank IsLiteral IsNumeric Regex Triple Subject Predicate Object IsTriple LangDir
    HasLang HasLangDir StrLangDir Adjust
}

macro_rules! expressions {
    ($to:ident, $from:path, $new:path) => {
        impl From<&$from> for $to {
            fn from(e: &$from) -> Self {
                use $from as E;
                let to = |e: &E| $new(Self::from(e));
                let all = |list: &[E]| list.iter().map(Self::from).collect();
                match e {
                    E::NamedNode(n) => Self::NamedNode(n.into()),
                    E::Literal(l) => Self::Literal(l.into()),
                    E::Variable(v) => Self::Variable(v.into()),
                    E::Bound(v) => Self::Bound(v.into()),
                    E::Or(a, b) => Self::Or(to(a), to(b)),
                    E::And(a, b) => Self::And(to(a), to(b)),
                    E::Equal(a, b) => Self::Equal(to(a), to(b)),
                    E::SameTerm(a, b) => Self::SameTerm(to(a), to(b)),
                    E::Greater(a, b) => Self::Greater(to(a), to(b)),
                    E::GreaterOrEqual(a, b) => Self::GreaterOrEqual(to(a), to(b)),
                    E::Less(a, b) => Self::Less(to(a), to(b)),
                    E::LessOrEqual(a, b) => Self::LessOrEqual(to(a), to(b)),
                    E::Add(a, b) => Self::Add(to(a), to(b)),
                    E::Subtract(a, b) => Self::Subtract(to(a), to(b)),
                    E::Multiply(a, b) => Self::Multiply(to(a), to(b)),
                    E::Divide(a, b) => Self::Divide(to(a), to(b)),
                    E::UnaryPlus(a) => Self::UnaryPlus(to(a)),
                    E::UnaryMinus(a) => Self::UnaryMinus(to(a)),
                    E::Not(a) => Self::Not(to(a)),
                    E::In(a, list) => Self::In(to(a), all(list)),
                    E::Exists(p) => Self::Exists($new((&**p).into())),
                    E::If(a, b, c) => Self::If(to(a), to(b), to(c)),
                    E::Coalesce(list) => Self::Coalesce(all(list)),
                    E::FunctionCall(f, list) => Self::FunctionCall(f.into(), all(list)),
                }
            }
        }
    };
}

type Theirs = from::Expression;
expressions!(Expression, spargebra::algebra::Expression, Arc::new);
expressions!(Theirs, super::Expression, Box::new);

macro_rules! aggregates {
    ($to:ident, $from:path, $function_to:path, $function_from:path, $text:expr, $expression:expr) => {
        impl From<&$from> for $to {
            fn from(a: &$from) -> Self {
                use $from as A;
                use $function_from as F;
                use $function_to as To;
                let value = $expression;
                match a {
                    A::CountSolutions { distinct } => Self::CountSolutions {
                        distinct: *distinct,
                    },
                    A::FunctionCall {
                        name,
                        expr,
                        distinct,
                    } => Self::FunctionCall {
                        name: match name {
                            F::Count => To::Count,
                            F::Sum => To::Sum,
                            F::Avg => To::Avg,
                            F::Min => To::Min,
                            F::Max => To::Max,
                            F::Sample => To::Sample,
                            F::GroupConcat { separator } => To::GroupConcat {
                                separator: separator.as_deref().map($text),
                            },
                            F::Custom(iri) => To::Custom(iri.into()),
                        },
                        expr: value(expr),
                        distinct: *distinct,
                    },
                }
            }
        }
    };
}

type TheirAggregate = from::AggregateExpression;
aggregates!(
    AggregateExpression,
    spargebra::algebra::AggregateExpression,
    super::AggregateFunction,
    spargebra::algebra::AggregateFunction,
    Text::new,
    |e: &from::Expression| Arc::new(Expression::from(e))
);
aggregates!(
    TheirAggregate,
    super::AggregateExpression,
    spargebra::algebra::AggregateFunction,
    super::AggregateFunction,
    str::to_owned,
    |e: &Arc<Expression>| from::Expression::from(&**e)
);

// --- patterns ---

/// Matches a value of type `from` and builds the variant of the same name, whose fields are converted by the named
/// functions. `else` contains match arms for the other variants.
macro_rules! same_variant {
    (
        $value:ident: $from:ident;
        $($variant:ident { $($field:ident: $convert:ident),+ }),+;
        else { $($pattern:pat => $other:expr,)* }
    ) => {
        match $value {
            $($from::$variant { $($field),+ } => Self::$variant {
                $($field: $convert($field)),+
            },)+
            $($pattern => $other,)*
        }
    };
}

fn into<'a, A, B>(value: &'a A) -> B
where
    &'a A: Into<B>,
{
    value.into()
}

fn all<'a, A, B, C: FromIterator<B>>(values: &'a [A]) -> C
where
    &'a A: Into<B>,
{
    values.iter().map(Into::into).collect()
}

fn optional<'a, A, B>(value: &'a Option<A>) -> Option<B>
where
    &'a A: Into<B>,
{
    value.as_ref().map(Into::into)
}

fn copy<T: Copy>(value: &T) -> T {
    *value
}

macro_rules! patterns {
    ($to:ident, $from:path, $new:path, $expression:expr, $order:path, $order_from:path) => {
        impl From<&$from> for $to {
            fn from(p: &$from) -> Self {
                use $from as P;
                use $order as To;
                use $order_from as Key;
                let pattern = |p: &P| $new(Self::from(p));
                let value = $expression;
                same_variant! {
                    p: P;
                    Bgp { patterns: all },
                    Path { subject: into, path: into, object: into },
                    Join { left: pattern, right: pattern },
                    Lateral { left: pattern, right: pattern },
                    Filter { expr: value, inner: pattern },
                    Union { left: pattern, right: pattern },
                    Graph { name: into, inner: pattern },
                    Extend { inner: pattern, variable: into, expression: value },
                    Minus { left: pattern, right: pattern },
                    Project { inner: pattern, variables: all },
                    Distinct { inner: pattern },
                    Reduced { inner: pattern },
                    Slice { inner: pattern, start: copy, length: copy },
                    Service { name: into, inner: pattern, silent: copy };
                    else {
                        P::LeftJoin { left, right, expression } => Self::LeftJoin {
                            left: pattern(left),
                            right: pattern(right),
                            expression: expression.as_ref().map(|e| value(e)),
                        },
                        P::Values { variables, bindings } => Self::Values {
                            variables: all(variables),
                            bindings: bindings
                                .iter()
                                .map(|row| row.iter().map(|c| c.as_ref().map(Into::into)).collect())
                                .collect(),
                        },
                        P::OrderBy { inner, expression } => Self::OrderBy {
                            inner: pattern(inner),
                            expression: expression
                                .iter()
                                .map(|key| match key {
                                    Key::Asc(e) => To::Asc(value(e)),
                                    Key::Desc(e) => To::Desc(value(e)),
                                })
                                .collect(),
                        },
                        P::Group { inner, variables, aggregates } => Self::Group {
                            inner: pattern(inner),
                            variables: all(variables),
                            aggregates: aggregates.iter().map(|(v, a)| (v.into(), a.into())).collect(),
                        },
                    }
                }
            }
        }
    };
}

type TheirPattern = from::GraphPattern;
patterns!(
    GraphPattern,
    spargebra::algebra::GraphPattern,
    Arc::new,
    |e: &from::Expression| Arc::new(Expression::from(e)),
    super::OrderExpression,
    spargebra::algebra::OrderExpression
);
patterns!(
    TheirPattern,
    super::GraphPattern,
    Box::new,
    |e: &Expression| from::Expression::from(e),
    spargebra::algebra::OrderExpression,
    super::OrderExpression
);

macro_rules! datasets {
    ($to:ident, $from:path) => {
        impl From<&$from> for $to {
            fn from(d: &$from) -> Self {
                Self {
                    default: all(&d.default),
                    named: d.named.as_ref().map(|list| all(list)),
                }
            }
        }
    };
}

type TheirDataset = from::QueryDataset;
datasets!(QueryDataset, spargebra::algebra::QueryDataset);
datasets!(TheirDataset, super::QueryDataset);

fn base(iri: &Option<Iri<String>>) -> Option<BaseIri> {
    Some(Iri::parse_unchecked(iri.as_ref()?.as_str().into()))
}

fn their_base(iri: &Option<BaseIri>) -> Option<Iri<String>> {
    Some(Iri::parse_unchecked(iri.as_ref()?.as_str().to_owned()))
}

macro_rules! queries {
    ($to:ident, $from:path, $algebra:expr, $base:expr) => {
        impl From<&$from> for $to {
            fn from(q: &$from) -> Self {
                use $from as Q;
                let (algebra, base) = ($algebra, $base);
                same_variant! {
                    q: Q;
                    Select { dataset: optional, pattern: algebra, base_iri: base },
                    Ask { dataset: optional, pattern: algebra, base_iri: base },
                    Describe { dataset: optional, pattern: algebra, base_iri: base },
                    Construct { template: all, dataset: optional, pattern: algebra, base_iri: base };
                    else {}
                }
            }
        }
    };
}

type TheirQuery = spargebra::Query;
queries!(
    Query,
    spargebra::Query,
    |p: &from::GraphPattern| Arc::new(GraphPattern::from(p)),
    base
);
queries!(
    TheirQuery,
    super::Query,
    |p: &Arc<GraphPattern>| from::GraphPattern::from(&**p),
    their_base
);

impl From<&GraphUpdateOperation> for spargebra::GraphUpdateOperation {
    fn from(o: &GraphUpdateOperation) -> Self {
        use GraphUpdateOperation as Op;
        let algebra = |p: &Arc<GraphPattern>| Box::new(from::GraphPattern::from(&**p));
        same_variant! {
            o: Op;
            InsertData { data: all },
            DeleteData { data: all },
            DeleteInsert { delete: all, insert: all, using: optional, pattern: algebra },
            Load { silent: copy, source: into, destination: into },
            Clear { silent: copy, graph: into },
            Create { silent: copy, graph: into },
            Drop { silent: copy, graph: into };
            else {}
        }
    }
}
