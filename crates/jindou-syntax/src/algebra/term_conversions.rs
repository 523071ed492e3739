//! Conversions between terms, patterns of terms, and enums that have them as variants.

use super::expression::Expression;
use super::pattern::GraphTarget;
use super::term::{
    BlankNode, GraphName, GraphNamePattern, GroundQuad, GroundQuadPattern, GroundTerm,
    GroundTermPattern, GroundTriple, GroundTriplePattern, Literal, NamedNode, NamedNodePattern,
    NamedOrBlankNode, Quad, QuadPattern, Term, TermPattern, Triple, TriplePattern, Variable,
};

/// Implements `From` for each variant with the same name as the type in it.
macro_rules! variants {
    ($($to:ident { $($variant:ident ($part:ty)),* })*) => {$($(
        impl From<$part> for $to {
            fn from(part: $part) -> Self {
                Self::$variant(part.into())
            }
        }
    )*)*};
}

variants! {
    NamedOrBlankNode { NamedNode(NamedNode), BlankNode(BlankNode) }
    Term { NamedNode(NamedNode), BlankNode(BlankNode), Literal(Literal), Triple(Triple) }
    GroundTerm { NamedNode(NamedNode), Literal(Literal), Triple(GroundTriple) }
    GraphName { NamedNode(NamedNode) }
    NamedNodePattern { NamedNode(NamedNode), Variable(Variable) }
    TermPattern { NamedNode(NamedNode), BlankNode(BlankNode), Literal(Literal), Triple(TriplePattern), Variable(Variable) }
    GroundTermPattern { NamedNode(NamedNode), Literal(Literal), Variable(Variable), Triple(GroundTriplePattern) }
    GraphNamePattern { NamedNode(NamedNode), Variable(Variable) }
    GraphTarget { NamedNode(NamedNode) }
    Expression { NamedNode(NamedNode), Literal(Literal), Variable(Variable) }
}

/// Implements `From` for an enum whose variants another one has, too.
macro_rules! wider {
    ($($from:ident { $($variant:ident),* } in $to:ident)*) => {$(
        impl From<$from> for $to {
            fn from(part: $from) -> Self {
                match part {
                    $($from::$variant(part) => Self::$variant(part),)*
                }
            }
        }
    )*};
}

wider! {
    NamedNodePattern { NamedNode, Variable } in TermPattern
    NamedNodePattern { NamedNode, Variable } in GraphNamePattern
    NamedNodePattern { NamedNode, Variable } in Expression
    NamedOrBlankNode { NamedNode, BlankNode } in Term
}

impl From<GraphName> for GraphNamePattern {
    fn from(g: GraphName) -> Self {
        match g {
            GraphName::NamedNode(n) => n.into(),
            GraphName::DefaultGraph => Self::DefaultGraph,
        }
    }
}

impl TryFrom<NamedNodePattern> for NamedNode {
    type Error = ();

    fn try_from(p: NamedNodePattern) -> Result<Self, ()> {
        match p {
            NamedNodePattern::NamedNode(n) => Ok(n),
            NamedNodePattern::Variable(_) => Err(()),
        }
    }
}

impl TryFrom<TermPattern> for NamedOrBlankNode {
    type Error = ();

    fn try_from(p: TermPattern) -> Result<Self, ()> {
        match p {
            TermPattern::NamedNode(n) => Ok(n.into()),
            TermPattern::BlankNode(b) => Ok(b.into()),
            TermPattern::Literal(_) | TermPattern::Triple(_) | TermPattern::Variable(_) => Err(()),
        }
    }
}

/// Fails for variables. Recursive, to the depth of nested triple terms.
impl TryFrom<TermPattern> for Term {
    type Error = ();

    fn try_from(p: TermPattern) -> Result<Self, ()> {
        Ok(match p {
            TermPattern::NamedNode(n) => n.into(),
            TermPattern::BlankNode(b) => b.into(),
            TermPattern::Literal(l) => l.into(),
            TermPattern::Triple(t) => Triple {
                subject: t.subject.clone().try_into()?,
                predicate: t.predicate.clone().try_into()?,
                object: t.object.clone().try_into()?,
            }
            .into(),
            TermPattern::Variable(_) => return Err(()),
        })
    }
}

impl TryFrom<Term> for GroundTerm {
    type Error = ();

    fn try_from(t: Term) -> Result<Self, ()> {
        Ok(match t {
            Term::NamedNode(n) => n.into(),
            Term::BlankNode(_) => return Err(()),
            Term::Literal(l) => l.into(),
            Term::Triple(t) => GroundTriple {
                subject: match &t.subject {
                    NamedOrBlankNode::NamedNode(n) => n.clone(),
                    NamedOrBlankNode::BlankNode(_) => return Err(()),
                },
                predicate: t.predicate.clone(),
                object: t.object.clone().try_into()?,
            }
            .into(),
        })
    }
}

impl TryFrom<TermPattern> for GroundTermPattern {
    type Error = ();

    fn try_from(p: TermPattern) -> Result<Self, ()> {
        Ok(match p {
            TermPattern::NamedNode(n) => n.into(),
            TermPattern::BlankNode(_) => return Err(()),
            TermPattern::Literal(l) => l.into(),
            TermPattern::Variable(v) => v.into(),
            TermPattern::Triple(t) => GroundTriplePattern {
                subject: t.subject.clone().try_into()?,
                predicate: t.predicate.clone(),
                object: t.object.clone().try_into()?,
            }
            .into(),
        })
    }
}

impl TryFrom<GraphNamePattern> for GraphName {
    type Error = ();

    fn try_from(g: GraphNamePattern) -> Result<Self, ()> {
        match g {
            GraphNamePattern::NamedNode(n) => Ok(n.into()),
            GraphNamePattern::DefaultGraph => Ok(Self::DefaultGraph),
            GraphNamePattern::Variable(_) => Err(()),
        }
    }
}

impl TryFrom<QuadPattern> for Quad {
    type Error = ();

    fn try_from(q: QuadPattern) -> Result<Self, ()> {
        Ok(Self {
            subject: q.subject.try_into()?,
            predicate: q.predicate.try_into()?,
            object: q.object.try_into()?,
            graph_name: q.graph_name.try_into()?,
        })
    }
}

impl TryFrom<Quad> for GroundQuad {
    type Error = ();

    fn try_from(q: Quad) -> Result<Self, ()> {
        Ok(Self {
            subject: match q.subject {
                NamedOrBlankNode::NamedNode(n) => n,
                NamedOrBlankNode::BlankNode(_) => return Err(()),
            },
            predicate: q.predicate,
            object: q.object.try_into()?,
            graph_name: q.graph_name,
        })
    }
}

impl TryFrom<QuadPattern> for GroundQuadPattern {
    type Error = ();

    fn try_from(q: QuadPattern) -> Result<Self, ()> {
        Ok(Self {
            subject: q.subject.try_into()?,
            predicate: q.predicate,
            object: q.object.try_into()?,
            graph_name: q.graph_name,
        })
    }
}
