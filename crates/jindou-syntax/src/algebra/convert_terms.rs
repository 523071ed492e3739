//! Conversion of terms, term patterns and targets of updates to `spargebra`'s types and back.

use super::*;
use spargebra::term as t;

impl From<&oxrdf::NamedNode> for NamedNode {
    fn from(n: &oxrdf::NamedNode) -> Self {
        Self::new_unchecked(n.as_str())
    }
}

impl From<oxrdf::NamedNode> for NamedNode {
    fn from(n: oxrdf::NamedNode) -> Self {
        Self::from(&n)
    }
}

impl From<&NamedNode> for oxrdf::NamedNode {
    fn from(n: &NamedNode) -> Self {
        Self::new_unchecked(n.as_str())
    }
}

impl From<&oxrdf::Variable> for Variable {
    fn from(v: &oxrdf::Variable) -> Self {
        Self::new_unchecked(v.as_str())
    }
}

impl From<oxrdf::Variable> for Variable {
    fn from(v: oxrdf::Variable) -> Self {
        Self::from(&v)
    }
}

impl From<&Variable> for oxrdf::Variable {
    fn from(v: &Variable) -> Self {
        Self::new_unchecked(v.as_str())
    }
}

impl From<&oxrdf::BlankNode> for BlankNode {
    fn from(b: &oxrdf::BlankNode) -> Self {
        Self::new_unchecked(b.as_str())
    }
}

impl From<&BlankNode> for oxrdf::BlankNode {
    fn from(b: &BlankNode) -> Self {
        Self::new_unchecked(b.label())
    }
}

impl From<&oxrdf::Literal> for Literal {
    fn from(l: &oxrdf::Literal) -> Self {
        let mut bytes = vec![];
        jindou_model::term::push_literal(l, &mut bytes);
        Self::of_canonical(bytes.into())
    }
}

impl From<oxrdf::Literal> for Literal {
    fn from(l: oxrdf::Literal) -> Self {
        Self::from(&l)
    }
}

impl From<&Literal> for oxrdf::Literal {
    fn from(l: &Literal) -> Self {
        match jindou_model::term::decode(l.canonical()) {
            Some(oxrdf::Term::Literal(l)) => l,
            _ => Self::new_simple_literal(""),
        }
    }
}

impl From<&oxrdf::NamedOrBlankNode> for NamedOrBlankNode {
    fn from(n: &oxrdf::NamedOrBlankNode) -> Self {
        match n {
            oxrdf::NamedOrBlankNode::NamedNode(n) => Self::NamedNode(n.into()),
            oxrdf::NamedOrBlankNode::BlankNode(b) => Self::BlankNode(b.into()),
        }
    }
}

impl From<&NamedOrBlankNode> for oxrdf::NamedOrBlankNode {
    fn from(n: &NamedOrBlankNode) -> Self {
        match n {
            NamedOrBlankNode::NamedNode(n) => Self::NamedNode(n.into()),
            NamedOrBlankNode::BlankNode(b) => Self::BlankNode(b.into()),
        }
    }
}

impl From<&oxrdf::Term> for Term {
    fn from(t: &oxrdf::Term) -> Self {
        match t {
            oxrdf::Term::NamedNode(n) => Self::NamedNode(n.into()),
            oxrdf::Term::BlankNode(b) => Self::BlankNode(b.into()),
            oxrdf::Term::Literal(l) => Self::Literal(l.into()),
            oxrdf::Term::Triple(t) => Triple {
                subject: (&t.subject).into(),
                predicate: (&t.predicate).into(),
                object: (&t.object).into(),
            }
            .into(),
        }
    }
}

impl From<&Term> for oxrdf::Term {
    fn from(t: &Term) -> Self {
        match t {
            Term::NamedNode(n) => Self::NamedNode(n.into()),
            Term::BlankNode(b) => Self::BlankNode(b.into()),
            Term::Literal(l) => Self::Literal(l.into()),
            Term::Triple(t) => oxrdf::Triple {
                subject: (&t.subject).into(),
                predicate: (&t.predicate).into(),
                object: (&t.object).into(),
            }
            .into(),
        }
    }
}

impl From<&t::GroundTerm> for GroundTerm {
    fn from(g: &t::GroundTerm) -> Self {
        match g {
            t::GroundTerm::NamedNode(n) => Self::NamedNode(n.into()),
            t::GroundTerm::Literal(l) => Self::Literal(l.into()),
            t::GroundTerm::Triple(t) => GroundTriple {
                subject: (&t.subject).into(),
                predicate: (&t.predicate).into(),
                object: (&t.object).into(),
            }
            .into(),
        }
    }
}

impl From<&GroundTerm> for t::GroundTerm {
    fn from(g: &GroundTerm) -> Self {
        match g {
            GroundTerm::NamedNode(n) => Self::NamedNode(n.into()),
            GroundTerm::Literal(l) => Self::Literal(l.into()),
            GroundTerm::Triple(t) => t::GroundTriple {
                subject: (&t.subject).into(),
                predicate: (&t.predicate).into(),
                object: (&t.object).into(),
            }
            .into(),
        }
    }
}

/// Defines conversions in both directions between enums with the same variants.
macro_rules! alike {
    ($($ours:ident, $theirs:ty { $($variant:ident),* } $({ $($unit:ident),* })?)*) => {$(
        impl From<&$theirs> for $ours {
            fn from(x: &$theirs) -> Self {
                type Theirs = $theirs;
                match x {
                    $(Theirs::$variant(x) => Self::$variant(x.into()),)*
                    $($(Theirs::$unit => Self::$unit,)*)?
                }
            }
        }

        impl From<&$ours> for $theirs {
            fn from(x: &$ours) -> Self {
                match x {
                    $($ours::$variant(x) => Self::$variant(x.into()),)*
                    $($($ours::$unit => Self::$unit,)*)?
                }
            }
        }
    )*};
}

alike! {
    NamedNodePattern, t::NamedNodePattern { NamedNode, Variable }
    GraphName, t::GraphName { NamedNode } { DefaultGraph }
    GraphNamePattern, t::GraphNamePattern { NamedNode, Variable } { DefaultGraph }
    GraphTarget, spargebra::algebra::GraphTarget { NamedNode } { DefaultGraph, NamedGraphs, AllGraphs }
}

/// Defines conversions in both directions between structs with the same fields.
macro_rules! fields {
    ($($ours:ident, $theirs:ty { $($field:ident),* })*) => {$(
        impl From<&$theirs> for $ours {
            fn from(x: &$theirs) -> Self {
                Self { $($field: (&x.$field).into()),* }
            }
        }

        impl From<&$ours> for $theirs {
            fn from(x: &$ours) -> Self {
                Self { $($field: (&x.$field).into()),* }
            }
        }
    )*};
}

fields! {
    TriplePattern, t::TriplePattern { subject, predicate, object }
    GroundTriplePattern, t::GroundTriplePattern { subject, predicate, object }
    QuadPattern, t::QuadPattern { subject, predicate, object, graph_name }
    GroundQuadPattern, t::GroundQuadPattern { subject, predicate, object, graph_name }
    Quad, t::Quad { subject, predicate, object, graph_name }
    GroundQuad, t::GroundQuad { subject, predicate, object, graph_name }
}

impl From<&t::TermPattern> for TermPattern {
    fn from(p: &t::TermPattern) -> Self {
        match p {
            t::TermPattern::NamedNode(n) => Self::NamedNode(n.into()),
            t::TermPattern::BlankNode(b) => Self::BlankNode(b.into()),
            t::TermPattern::Literal(l) => Self::Literal(l.into()),
            t::TermPattern::Variable(v) => Self::Variable(v.into()),
            t::TermPattern::Triple(t) => TriplePattern::from(&**t).into(),
        }
    }
}

impl From<&TermPattern> for t::TermPattern {
    fn from(p: &TermPattern) -> Self {
        match p {
            TermPattern::NamedNode(n) => Self::NamedNode(n.into()),
            TermPattern::BlankNode(b) => Self::BlankNode(b.into()),
            TermPattern::Literal(l) => Self::Literal(l.into()),
            TermPattern::Variable(v) => Self::Variable(v.into()),
            TermPattern::Triple(t) => t::TriplePattern::from(&**t).into(),
        }
    }
}

impl From<&t::GroundTermPattern> for GroundTermPattern {
    fn from(p: &t::GroundTermPattern) -> Self {
        match p {
            t::GroundTermPattern::NamedNode(n) => Self::NamedNode(n.into()),
            t::GroundTermPattern::Literal(l) => Self::Literal(l.into()),
            t::GroundTermPattern::Variable(v) => Self::Variable(v.into()),
            t::GroundTermPattern::Triple(t) => GroundTriplePattern::from(&**t).into(),
        }
    }
}

impl From<&GroundTermPattern> for t::GroundTermPattern {
    fn from(p: &GroundTermPattern) -> Self {
        match p {
            GroundTermPattern::NamedNode(n) => Self::NamedNode(n.into()),
            GroundTermPattern::Literal(l) => Self::Literal(l.into()),
            GroundTermPattern::Variable(v) => Self::Variable(v.into()),
            GroundTermPattern::Triple(t) => Self::Triple(Box::new((&**t).into())),
        }
    }
}
