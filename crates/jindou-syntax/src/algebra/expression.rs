//! Expressions.

use super::pattern::GraphPattern;
use super::term::{Literal, NamedNode, Variable};
use jindou_values::functions::Definition;
use std::sync::Arc;

/// An expression. Its parts are reference-counted, so it cannot be deeply copied. Dropping, comparing and hashing do
/// not recurse.
#[derive(Debug)]
pub enum Expression {
    /// An IRI.
    NamedNode(NamedNode),
    /// A literal.
    Literal(Literal),
    /// A variable.
    Variable(Variable),
    /// `a || b`
    Or(Arc<Self>, Arc<Self>),
    /// `a && b`
    And(Arc<Self>, Arc<Self>),
    /// `a = b`
    Equal(Arc<Self>, Arc<Self>),
    /// `sameTerm(a, b)`
    SameTerm(Arc<Self>, Arc<Self>),
    /// `a > b`
    Greater(Arc<Self>, Arc<Self>),
    /// `a >= b`
    GreaterOrEqual(Arc<Self>, Arc<Self>),
    /// `a < b`
    Less(Arc<Self>, Arc<Self>),
    /// `a <= b`
    LessOrEqual(Arc<Self>, Arc<Self>),
    /// `a IN (b, c)`
    In(Arc<Self>, Vec<Self>),
    /// `a + b`
    Add(Arc<Self>, Arc<Self>),
    /// `a - b`
    Subtract(Arc<Self>, Arc<Self>),
    /// `a * b`
    Multiply(Arc<Self>, Arc<Self>),
    /// `a / b`
    Divide(Arc<Self>, Arc<Self>),
    /// `+a`
    UnaryPlus(Arc<Self>),
    /// `-a`
    UnaryMinus(Arc<Self>),
    /// `!a`
    Not(Arc<Self>),
    /// `EXISTS { … }`
    Exists(Arc<GraphPattern>),
    /// `BOUND(?v)`
    Bound(Variable),
    /// `IF(a, b, c)`
    If(Arc<Self>, Arc<Self>, Arc<Self>),
    /// `COALESCE(a, b)`
    Coalesce(Vec<Self>),
    /// A call of a function.
    FunctionCall(Function, Vec<Self>),
}

impl Expression {
    /// True if the expression has no parts: a term, a variable, BOUND, or a call without arguments.
    #[must_use]
    pub fn is_leaf(&self) -> bool {
        match self {
            Self::NamedNode(_) | Self::Literal(_) | Self::Variable(_) | Self::Bound(_) => true,
            Self::Coalesce(list) | Self::FunctionCall(_, list) => list.is_empty(),
            _ => false,
        }
    }

    /// Calls `visit` with each direct subexpression; patterns of EXISTS are not searched.
    pub fn each_part<'a>(&'a self, mut visit: impl FnMut(&'a Self)) {
        match self {
            Self::NamedNode(_)
            | Self::Literal(_)
            | Self::Variable(_)
            | Self::Bound(_)
            | Self::Exists(_) => {}
            Self::Or(a, b)
            | Self::And(a, b)
            | Self::Equal(a, b)
            | Self::SameTerm(a, b)
            | Self::Greater(a, b)
            | Self::GreaterOrEqual(a, b)
            | Self::Less(a, b)
            | Self::LessOrEqual(a, b)
            | Self::Add(a, b)
            | Self::Subtract(a, b)
            | Self::Multiply(a, b)
            | Self::Divide(a, b) => [a, b].into_iter().for_each(|e| visit(e)),
            Self::UnaryPlus(a) | Self::UnaryMinus(a) | Self::Not(a) => visit(a),
            Self::In(a, list) => {
                visit(a);
                list.iter().for_each(visit);
            }
            Self::If(a, b, c) => [a, b, c].into_iter().for_each(|e| visit(e)),
            Self::Coalesce(list) | Self::FunctionCall(_, list) => list.iter().for_each(visit),
        }
    }

    /// The direct subexpressions, to change them: those in memory of their own, and those in a list.
    pub(crate) fn parts_mut(
        &mut self,
    ) -> (
        impl Iterator<Item = &mut Arc<Self>>,
        impl Iterator<Item = &mut Self>,
    ) {
        let (shared, list) = match self {
            Self::NamedNode(_)
            | Self::Literal(_)
            | Self::Variable(_)
            | Self::Bound(_)
            | Self::Exists(_) => ([None, None, None], None),
            Self::Or(a, b)
            | Self::And(a, b)
            | Self::Equal(a, b)
            | Self::SameTerm(a, b)
            | Self::Greater(a, b)
            | Self::GreaterOrEqual(a, b)
            | Self::Less(a, b)
            | Self::LessOrEqual(a, b)
            | Self::Add(a, b)
            | Self::Subtract(a, b)
            | Self::Multiply(a, b)
            | Self::Divide(a, b) => ([Some(a), Some(b), None], None),
            Self::UnaryPlus(a) | Self::UnaryMinus(a) | Self::Not(a) => {
                ([Some(a), None, None], None)
            }
            Self::In(a, list) => ([Some(a), None, None], Some(list)),
            Self::If(a, b, c) => ([Some(a), Some(b), Some(c)], None),
            Self::Coalesce(list) | Self::FunctionCall(_, list) => ([None, None, None], Some(list)),
        };
        (shared.into_iter().flatten(), list.into_iter().flatten())
    }

    /// A copy of the top node that shares its parts. O(arguments) for a call, O(1) for others.
    #[must_use]
    pub fn shared(&self) -> Self {
        let list = |list: &[Self]| list.iter().map(Self::shared).collect();
        let two = |a: &Arc<Self>, b: &Arc<Self>| (Arc::clone(a), Arc::clone(b));
        macro_rules! binary {
            ($variant:ident, $a:ident, $b:ident) => {{
                let (a, b) = two($a, $b);
                Self::$variant(a, b)
            }};
        }
        match self {
            Self::NamedNode(n) => Self::NamedNode(n.clone()),
            Self::Literal(l) => Self::Literal(l.clone()),
            Self::Variable(v) => Self::Variable(v.clone()),
            Self::Bound(v) => Self::Bound(v.clone()),
            Self::Or(a, b) => binary!(Or, a, b),
            Self::And(a, b) => binary!(And, a, b),
            Self::Equal(a, b) => binary!(Equal, a, b),
            Self::SameTerm(a, b) => binary!(SameTerm, a, b),
            Self::Greater(a, b) => binary!(Greater, a, b),
            Self::GreaterOrEqual(a, b) => binary!(GreaterOrEqual, a, b),
            Self::Less(a, b) => binary!(Less, a, b),
            Self::LessOrEqual(a, b) => binary!(LessOrEqual, a, b),
            Self::Add(a, b) => binary!(Add, a, b),
            Self::Subtract(a, b) => binary!(Subtract, a, b),
            Self::Multiply(a, b) => binary!(Multiply, a, b),
            Self::Divide(a, b) => binary!(Divide, a, b),
            Self::In(a, l) => Self::In(Arc::clone(a), list(l)),
            Self::UnaryPlus(a) => Self::UnaryPlus(Arc::clone(a)),
            Self::UnaryMinus(a) => Self::UnaryMinus(Arc::clone(a)),
            Self::Not(a) => Self::Not(Arc::clone(a)),
            Self::Exists(p) => Self::Exists(Arc::clone(p)),
            Self::If(a, b, c) => Self::If(Arc::clone(a), Arc::clone(b), Arc::clone(c)),
            Self::Coalesce(l) => Self::Coalesce(list(l)),
            Self::FunctionCall(f, l) => Self::FunctionCall(f.clone(), list(l)),
        }
    }
}

/// Defines the functions that have a keyword in SPARQL, with their names, and those named by an IRI.
macro_rules! functions {
    ($(
        $variant:ident $name:literal $module:ident $($row:ident)? $(($alias:ident $other:literal))?
    ),* $(,)?) => {
        /// A function.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Function {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
            /// A function named by an IRI.
            Custom(NamedNode),
        }

        impl Function {
            /// The definitions of all functions that have a name.
            #[must_use]
            pub fn all() -> &'static [&'static Definition] {
                jindou_values::functions::ALL
            }

            /// The function's definition; `None` for one named by an IRI.
            #[must_use]
            pub fn definition(&self) -> Option<&'static Definition> {
                match self {
                    $(Self::$variant => Some(&jindou_values::functions::$module::DEFINITION),)*
                    Self::Custom(_) => None,
                }
            }
        }

        impl std::fmt::Display for Function {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$variant => f.write_str($name),)*
                    Self::Custom(iri) => iri.fmt(f),
                }
            }
        }
    };
}

jindou_values::for_each_function!(functions);
