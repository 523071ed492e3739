//! Conversion of terms, term patterns and targets of updates to `spargebra`'s types and back.

use super::*;
use spargebra::term as t;

/// Defines conversions in both directions of terms that consist of one text.
macro_rules! texts {
    ($($name:ident)*) => {$(
        impl From<&oxrdf::$name> for $name {
            fn from(x: &oxrdf::$name) -> Self {
                Self::new_unchecked(x.as_str())
            }
        }

        impl From<oxrdf::$name> for $name {
            fn from(x: oxrdf::$name) -> Self {
                Self::from(&x)
            }
        }

        impl From<&$name> for oxrdf::$name {
            fn from(x: &$name) -> Self {
                Self::new_unchecked(x.as_str())
            }
        }
    )*};
}

texts! { NamedNode Variable }

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

/// Defines conversions in both directions between enums with the same variants, those after a `+` in a box or `Arc`.
macro_rules! alike {
    ($($ours:ident, $theirs:ty { $($variant:ident),* } $({ $($unit:ident),* })? $(+ $boxed:ident)?)*) => {$(
        impl From<&$theirs> for $ours {
            fn from(x: &$theirs) -> Self {
                type Theirs = $theirs;
                match x {
                    $(Theirs::$variant(x) => Self::$variant(x.into()),)*
                    $($(Theirs::$unit => Self::$unit,)*)?
                    $(Theirs::$boxed(x) => Self::$boxed(std::sync::Arc::new((&**x).into())),)?
                }
            }
        }

        impl From<&$ours> for $theirs {
            fn from(x: &$ours) -> Self {
                match x {
                    $($ours::$variant(x) => Self::$variant(x.into()),)*
                    $($($ours::$unit => Self::$unit,)*)?
                    $($ours::$boxed(x) => Self::$boxed(Box::new((&**x).into())),)?
                }
            }
        }
    )*};
}

alike! {
    NamedOrBlankNode, oxrdf::NamedOrBlankNode { NamedNode, BlankNode }
    Term, oxrdf::Term { NamedNode, BlankNode, Literal } + Triple
    GroundTerm, t::GroundTerm { NamedNode, Literal } + Triple
    TermPattern, t::TermPattern { NamedNode, BlankNode, Literal, Variable } + Triple
    GroundTermPattern, t::GroundTermPattern { NamedNode, Literal, Variable } + Triple
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
    Triple, oxrdf::Triple { subject, predicate, object }
    GroundTriple, t::GroundTriple { subject, predicate, object }
    TriplePattern, t::TriplePattern { subject, predicate, object }
    GroundTriplePattern, t::GroundTriplePattern { subject, predicate, object }
    QuadPattern, t::QuadPattern { subject, predicate, object, graph_name }
    GroundQuadPattern, t::GroundQuadPattern { subject, predicate, object, graph_name }
    Quad, t::Quad { subject, predicate, object, graph_name }
    GroundQuad, t::GroundQuad { subject, predicate, object, graph_name }
}
