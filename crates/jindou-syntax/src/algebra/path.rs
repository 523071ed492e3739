//! Property paths.

use super::term::NamedNode;
use std::fmt;
use std::sync::Arc;

/// A property path. Its parts are shared, so cloning takes constant time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PropertyPathExpression {
    /// A predicate.
    NamedNode(NamedNode),
    /// `^a`
    Reverse(Arc<Self>),
    /// `a/b`
    Sequence(Arc<Self>, Arc<Self>),
    /// `a|b`
    Alternative(Arc<Self>, Arc<Self>),
    /// `a*`
    ZeroOrMore(Arc<Self>),
    /// `a+`
    OneOrMore(Arc<Self>),
    /// `a?`
    ZeroOrOne(Arc<Self>),
    /// `!(a|b)`
    NegatedPropertySet(Arc<[NamedNode]>),
}

impl From<NamedNode> for PropertyPathExpression {
    fn from(n: NamedNode) -> Self {
        Self::NamedNode(n)
    }
}

/// Writes the path in SPARQL syntax. Recursive, to the depth of the path.
impl fmt::Display for PropertyPathExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NamedNode(n) => n.fmt(f),
            Self::Reverse(p) => write!(f, "^({p})"),
            Self::Sequence(a, b) => write!(f, "({a} / {b})"),
            Self::Alternative(a, b) => write!(f, "({a} | {b})"),
            Self::ZeroOrMore(p) => write!(f, "({p})*"),
            Self::OneOrMore(p) => write!(f, "({p})+"),
            Self::ZeroOrOne(p) => write!(f, "({p})?"),
            Self::NegatedPropertySet(set) => {
                f.write_str("!(")?;
                super::display::list(f, set.iter(), " | ")?;
                f.write_str(")")
            }
        }
    }
}
