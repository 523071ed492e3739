//! Graph patterns: the operators of SPARQL's algebra.

use super::expression::Expression;
use super::path::PropertyPathExpression;
use super::term::{GroundTerm, NamedNode, NamedNodePattern, TermPattern, TriplePattern, Variable};
use super::text::Text;
use std::sync::Arc;

/// An operator over patterns (SPARQL 1.1 §18.2). Its parts are reference-counted, so it cannot be deeply copied.
/// Dropping and comparing do not recurse.
#[derive(Debug)]
pub enum GraphPattern {
    /// Triple patterns.
    Bgp {
        /// The patterns.
        patterns: Vec<TriplePattern>,
    },
    /// A pattern whose predicate is a path.
    Path {
        /// Subject.
        subject: TermPattern,
        /// Path.
        path: PropertyPathExpression,
        /// Object.
        object: TermPattern,
    },
    /// A join.
    Join {
        /// Left side.
        left: Arc<Self>,
        /// Right side.
        right: Arc<Self>,
    },
    /// OPTIONAL.
    LeftJoin {
        /// The required side.
        left: Arc<Self>,
        /// The optional side.
        right: Arc<Self>,
        /// A condition on the combined solutions.
        expression: Option<Arc<Expression>>,
    },
    /// LATERAL: the right side is evaluated for each solution of the left side.
    Lateral {
        /// Left side.
        left: Arc<Self>,
        /// Right side.
        right: Arc<Self>,
    },
    /// FILTER, HAVING.
    Filter {
        /// The condition.
        expr: Arc<Expression>,
        /// The filtered pattern.
        inner: Arc<Self>,
    },
    /// UNION.
    Union {
        /// Left side.
        left: Arc<Self>,
        /// Right side.
        right: Arc<Self>,
    },
    /// GRAPH.
    Graph {
        /// The graph.
        name: NamedNodePattern,
        /// The pattern inside.
        inner: Arc<Self>,
    },
    /// BIND, or AS in a SELECT or GROUP BY.
    Extend {
        /// Input.
        inner: Arc<Self>,
        /// The new variable.
        variable: Variable,
        /// Its value.
        expression: Arc<Expression>,
    },
    /// MINUS.
    Minus {
        /// The solutions from which others are removed.
        left: Arc<Self>,
        /// The solutions to remove.
        right: Arc<Self>,
    },
    /// VALUES.
    Values {
        /// Columns.
        variables: Vec<Variable>,
        /// Rows; `None` is UNDEF.
        bindings: Vec<Vec<Option<GroundTerm>>>,
    },
    /// ORDER BY.
    OrderBy {
        /// Input.
        inner: Arc<Self>,
        /// Keys.
        expression: Vec<OrderExpression>,
    },
    /// Projection.
    Project {
        /// Input.
        inner: Arc<Self>,
        /// Columns.
        variables: Vec<Variable>,
    },
    /// DISTINCT.
    Distinct {
        /// Input.
        inner: Arc<Self>,
    },
    /// REDUCED.
    Reduced {
        /// Input.
        inner: Arc<Self>,
    },
    /// LIMIT and OFFSET.
    Slice {
        /// Input.
        inner: Arc<Self>,
        /// Number of solutions to skip.
        start: usize,
        /// Largest number of solutions to return; `None` for all.
        length: Option<usize>,
    },
    /// GROUP BY.
    Group {
        /// Input.
        inner: Arc<Self>,
        /// Keys.
        variables: Vec<Variable>,
        /// Aggregates with the variables that they bind.
        aggregates: Vec<(Variable, AggregateExpression)>,
    },
    /// SERVICE.
    Service {
        /// The endpoint.
        name: NamedNodePattern,
        /// The pattern that is sent to the endpoint.
        inner: Arc<Self>,
        /// True if a failure is not an error.
        silent: bool,
    },
}

impl Default for GraphPattern {
    /// One solution without variables.
    fn default() -> Self {
        Self::Bgp { patterns: vec![] }
    }
}

impl GraphPattern {
    /// True for an operator that contains no patterns.
    #[must_use]
    pub fn is_leaf(&self) -> bool {
        matches!(
            self,
            Self::Bgp { .. } | Self::Path { .. } | Self::Values { .. }
        )
    }

    /// The patterns to which the operator applies.
    pub fn inputs(&self) -> impl Iterator<Item = &Self> {
        let (first, second) = match self {
            Self::Bgp { .. } | Self::Values { .. } | Self::Path { .. } => (None, None),
            Self::Join { left, right }
            | Self::Lateral { left, right }
            | Self::Union { left, right }
            | Self::Minus { left, right }
            | Self::LeftJoin { left, right, .. } => (Some(left), Some(right)),
            Self::Filter { inner, .. }
            | Self::Extend { inner, .. }
            | Self::OrderBy { inner, .. }
            | Self::Group { inner, .. }
            | Self::Graph { inner, .. }
            | Self::Project { inner, .. }
            | Self::Distinct { inner }
            | Self::Reduced { inner }
            | Self::Slice { inner, .. }
            | Self::Service { inner, .. } => (Some(inner), None),
        };
        first.into_iter().chain(second).map(|p| &**p)
    }

    /// Calls `visit` with each expression of the operator.
    pub fn each_expression<'a>(&'a self, mut visit: impl FnMut(&'a Expression)) {
        match self {
            Self::LeftJoin { expression, .. } => expression.iter().for_each(|e| visit(e)),
            Self::Filter { expr, .. } => visit(expr),
            Self::Extend { expression, .. } => visit(expression),
            Self::OrderBy { expression, .. } => {
                expression.iter().for_each(|e| visit(e.expression()));
            }
            Self::Group { aggregates, .. } => {
                let arguments = aggregates.iter().filter_map(|a| a.1.argument());
                arguments.for_each(|e| visit(e));
            }
            _ => {}
        }
    }

    /// Calls `f` with each variable in scope (SPARQL 1.1 §18.2.1), possibly more than once.
    pub fn on_in_scope_variable<'a>(&'a self, mut f: impl FnMut(&'a Variable)) {
        let mut open = vec![self];
        while let Some(p) = open.pop() {
            match p {
                Self::Bgp { patterns } => patterns.iter().for_each(|t| t.on_variable(&mut f)),
                Self::Path {
                    subject, object, ..
                } => {
                    subject.on_variable(&mut f);
                    object.on_variable(&mut f);
                }
                Self::Join { left, right }
                | Self::LeftJoin { left, right, .. }
                | Self::Lateral { left, right }
                | Self::Union { left, right } => open.extend([&**right, &**left]),
                Self::Minus { left, .. } => open.push(left),
                Self::Graph { name, inner } | Self::Service { name, inner, .. } => {
                    if let NamedNodePattern::Variable(v) = name {
                        f(v);
                    }
                    open.push(inner);
                }
                Self::Extend {
                    inner, variable, ..
                } => {
                    f(variable);
                    open.push(inner);
                }
                Self::Values { variables, .. } | Self::Project { variables, .. } => {
                    variables.iter().for_each(&mut f);
                }
                Self::Group {
                    variables,
                    aggregates,
                    ..
                } => {
                    variables.iter().for_each(&mut f);
                    aggregates.iter().for_each(|a| f(&a.0));
                }
                Self::Filter { inner, .. }
                | Self::OrderBy { inner, .. }
                | Self::Distinct { inner }
                | Self::Reduced { inner }
                | Self::Slice { inner, .. } => open.push(inner),
            }
        }
    }
}

impl TriplePattern {
    fn on_variable<'a>(&'a self, f: &mut impl FnMut(&'a Variable)) {
        self.subject.on_variable(f);
        if let NamedNodePattern::Variable(v) = &self.predicate {
            f(v);
        }
        self.object.on_variable(f);
    }
}

impl TermPattern {
    /// Calls `f` with each variable in the pattern. Recursive, to the depth of nested triple terms.
    fn on_variable<'a>(&'a self, f: &mut impl FnMut(&'a Variable)) {
        match self {
            Self::Variable(v) => f(v),
            Self::Triple(t) => t.on_variable(f),
            Self::NamedNode(_) | Self::BlankNode(_) | Self::Literal(_) => {}
        }
    }
}

/// An aggregate of GROUP BY.
#[derive(Debug, PartialEq, Eq, Hash)]
pub enum AggregateExpression {
    /// `COUNT(*)`
    CountSolutions {
        /// True to count distinct solutions.
        distinct: bool,
    },
    /// Any other aggregate.
    FunctionCall {
        /// The function.
        name: AggregateFunction,
        /// The argument.
        expr: Arc<Expression>,
        /// True to use distinct values.
        distinct: bool,
    },
}

impl AggregateExpression {
    /// A copy of the aggregate that shares its parts. O(1).
    #[must_use]
    pub fn shared(&self) -> Self {
        match self {
            Self::CountSolutions { distinct } => Self::CountSolutions {
                distinct: *distinct,
            },
            Self::FunctionCall {
                name,
                expr,
                distinct,
            } => Self::FunctionCall {
                name: name.clone(),
                expr: Arc::clone(expr),
                distinct: *distinct,
            },
        }
    }

    /// The argument; `None` for `COUNT(*)`.
    #[must_use]
    pub fn argument(&self) -> Option<&Arc<Expression>> {
        match self {
            Self::CountSolutions { .. } => None,
            Self::FunctionCall { expr, .. } => Some(expr),
        }
    }
}

/// The function of an aggregate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    /// `COUNT`
    Count,
    /// `SUM`
    Sum,
    /// `AVG`
    Avg,
    /// `MIN`
    Min,
    /// `MAX`
    Max,
    /// `GROUP_CONCAT`
    GroupConcat {
        /// Separator of the values; `None` for a space.
        separator: Option<Text>,
    },
    /// `SAMPLE`
    Sample,
    /// A function named by an IRI.
    Custom(NamedNode),
}

/// A key of ORDER BY.
#[derive(Debug, PartialEq, Eq, Hash)]
pub enum OrderExpression {
    /// Ascending.
    Asc(Arc<Expression>),
    /// Descending.
    Desc(Arc<Expression>),
}

impl OrderExpression {
    /// The expression to sort by.
    #[must_use]
    pub fn expression(&self) -> &Arc<Expression> {
        let (Self::Asc(e) | Self::Desc(e)) = self;
        e
    }

    /// The same direction with another expression.
    #[must_use]
    pub fn with(&self, e: Arc<Expression>) -> Self {
        match self {
            Self::Asc(_) => Self::Asc(e),
            Self::Desc(_) => Self::Desc(e),
        }
    }
}

/// The graphs that a query reads: FROM and FROM NAMED, or USING, USING NAMED and WITH.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct QueryDataset {
    /// Graphs that are merged into the default graph.
    pub default: Vec<NamedNode>,
    /// The named graphs; `None` for all named graphs of the store.
    pub named: Option<Vec<NamedNode>>,
}

/// The graphs to which an operation of an update applies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GraphTarget {
    /// One graph.
    NamedNode(NamedNode),
    /// The default graph.
    DefaultGraph,
    /// All named graphs.
    NamedGraphs,
    /// All graphs.
    AllGraphs,
}
