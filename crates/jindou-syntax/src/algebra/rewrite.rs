//! Rewritings of algebra: changed parts are built again, unchanged parts are shared.

use super::expression::Expression;
use super::pattern::{AggregateExpression, GraphPattern, OrderExpression};
use super::term::Variable;
use std::sync::Arc;

/// The new part if there is one, otherwise the old one.
fn or<T>(new: Option<Arc<T>>, old: &Arc<T>) -> Arc<T> {
    new.unwrap_or_else(|| Arc::clone(old))
}

/// A rewriting of algebra. Its methods return `None` for a part that remains unchanged.
pub trait Rewrite {
    /// Type of the errors with which the rewriting may fail.
    type Error;

    /// The new pattern.
    ///
    /// # Errors
    /// The rewriting's own errors.
    fn pattern(&mut self, p: &GraphPattern) -> Result<Option<Arc<GraphPattern>>, Self::Error>;

    /// The new expression.
    ///
    /// # Errors
    /// The rewriting's own errors.
    fn expression(&mut self, e: &Expression) -> Result<Option<Arc<Expression>>, Self::Error>;
}

impl GraphPattern {
    /// The operator with its direct parts rewritten; `None` if all are unchanged.
    ///
    /// # Errors
    /// The rewriting's errors.
    pub fn rewritten<R: Rewrite>(&self, with: &mut R) -> Result<Option<Self>, R::Error> {
        macro_rules! two {
            ($variant:ident, $left:ident, $right:ident) => {{
                let new = (with.pattern($left)?, with.pattern($right)?);
                if new.0.is_none() && new.1.is_none() {
                    return Ok(None);
                }
                Self::$variant {
                    left: or(new.0, $left),
                    right: or(new.1, $right),
                }
            }};
        }
        macro_rules! one {
            ($variant:ident, $inner:ident $(, $field:ident)*) => {{
                let Some($inner) = with.pattern($inner)? else {
                    return Ok(None);
                };
                Self::$variant { $inner $(, $field: $field.clone())* }
            }};
        }
        Ok(Some(match self {
            Self::Bgp { .. } | Self::Path { .. } | Self::Values { .. } => return Ok(None),
            Self::Join { left, right } => two!(Join, left, right),
            Self::Lateral { left, right } => two!(Lateral, left, right),
            Self::Union { left, right } => two!(Union, left, right),
            Self::Minus { left, right } => two!(Minus, left, right),
            Self::LeftJoin {
                left,
                right,
                expression,
            } => {
                let sides = (with.pattern(left)?, with.pattern(right)?);
                let condition = match expression {
                    Some(e) => with.expression(e)?,
                    None => None,
                };
                if sides.0.is_none() && sides.1.is_none() && condition.is_none() {
                    return Ok(None);
                }
                Self::LeftJoin {
                    left: or(sides.0, left),
                    right: or(sides.1, right),
                    expression: condition.or_else(|| expression.clone()),
                }
            }
            Self::Filter { expr, inner } => {
                let (below, condition) = (with.pattern(inner)?, with.expression(expr)?);
                if below.is_none() && condition.is_none() {
                    return Ok(None);
                }
                Self::Filter {
                    expr: or(condition, expr),
                    inner: or(below, inner),
                }
            }
            Self::Extend {
                inner,
                variable,
                expression,
            } => {
                let (below, value) = (with.pattern(inner)?, with.expression(expression)?);
                if below.is_none() && value.is_none() {
                    return Ok(None);
                }
                Self::Extend {
                    inner: or(below, inner),
                    variable: variable.clone(),
                    expression: or(value, expression),
                }
            }
            Self::OrderBy { inner, expression } => return rewritten_order(inner, expression, with),
            Self::Group {
                inner,
                variables,
                aggregates,
            } => return rewritten_group(inner, variables, aggregates, with),
            Self::Graph { name, inner } => one!(Graph, inner, name),
            Self::Project { inner, variables } => one!(Project, inner, variables),
            Self::Distinct { inner } => one!(Distinct, inner),
            Self::Reduced { inner } => one!(Reduced, inner),
            Self::Slice {
                inner,
                start,
                length,
            } => one!(Slice, inner, start, length),
            Self::Service {
                name,
                inner,
                silent,
            } => one!(Service, inner, name, silent),
        }))
    }
}

fn rewritten_order<R: Rewrite>(
    inner: &Arc<GraphPattern>,
    keys: &[OrderExpression],
    with: &mut R,
) -> Result<Option<GraphPattern>, R::Error> {
    let below = with.pattern(inner)?;
    let mut is_new = below.is_some();
    let mut expression = Vec::with_capacity(keys.len());
    for key in keys {
        let value = with.expression(key.expression())?;
        is_new |= value.is_some();
        expression.push(key.with(or(value, key.expression())));
    }
    Ok(is_new.then(|| GraphPattern::OrderBy {
        inner: or(below, inner),
        expression,
    }))
}

fn rewritten_group<R: Rewrite>(
    inner: &Arc<GraphPattern>,
    variables: &[Variable],
    aggregates: &[(Variable, AggregateExpression)],
    with: &mut R,
) -> Result<Option<GraphPattern>, R::Error> {
    let below = with.pattern(inner)?;
    let mut is_new = below.is_some();
    let mut all = Vec::with_capacity(aggregates.len());
    for (to, aggregate) in aggregates {
        let mut aggregate = aggregate.shared();
        if let AggregateExpression::FunctionCall { expr, .. } = &mut aggregate
            && let Some(value) = with.expression(expr)?
        {
            *expr = value;
            is_new = true;
        }
        all.push((to.clone(), aggregate));
    }
    Ok(is_new.then(|| GraphPattern::Group {
        inner: or(below, inner),
        variables: variables.to_vec(),
        aggregates: all,
    }))
}
