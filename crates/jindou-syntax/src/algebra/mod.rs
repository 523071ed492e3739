//! SPARQL's algebra (SPARQL 1.1 §18.2), with the names of `spargebra`. Unlike there, nothing is stored twice: texts are
//! [shared](Text), parts of trees are in [`Arc`](std::sync::Arc)s, and types that contain others are not `Clone`, so
//! that a tree cannot be copied by accident. A rewriting shares the unchanged parts.

mod convert;
mod convert_terms;
mod display;
mod expression;
mod nodes;
mod path;
mod pattern;
mod query;
mod rewrite;
mod term;
mod term_conversions;
mod text;

pub use display::text_len;
pub use expression::{Expression, Function};
pub use path::PropertyPathExpression;
pub use pattern::{
    AggregateExpression, AggregateFunction, GraphPattern, GraphTarget, OrderExpression,
    QueryDataset,
};
pub use query::{BaseIri, GraphUpdateOperation, Query};
pub use rewrite::Rewrite;
pub use term::{
    BlankNode, GraphName, GraphNamePattern, GroundQuad, GroundQuadPattern, GroundTerm,
    GroundTermPattern, GroundTriple, GroundTriplePattern, Literal, NamedNode, NamedNodePattern,
    NamedOrBlankNode, Quad, QuadPattern, Term, TermPattern, Triple, TriplePattern, Variable,
};
pub use text::{Canonical, Text};

/// Compiles only for types that are not `Clone`: for a type that is, both implementations apply.
#[doc(hidden)]
#[macro_export]
macro_rules! not_clone {
    ($($type:ty),* $(,)?) => {
        $(const _: fn() = || {
            trait Fits<Why> {
                fn once() {}
            }
            struct AsClone;
            impl<T: ?Sized> Fits<()> for T {}
            impl<T: ?Sized + Clone> Fits<AsClone> for T {}
            let _ = <$type as Fits<_>>::once;
        };)*
    };
}

not_clone!(GraphPattern, Expression);
