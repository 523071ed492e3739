//! Expressions with the slots of their variables.

use crate::set::SlotSet;
use crate::{Functions, GeneralExpression, Slot};
use jindou_model::scope;
use jindou_syntax::algebra::{BaseIri, Expression, Function, Variable};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, OnceLock};

/// An EXISTS-free expression whose variables are slots; a variable that is not listed is unbound.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub expression: Arc<Expression>,
    pub variables: Arc<[(Variable, Slot)]>,
    /// See [`GeneralExpression::per_row`].
    pub per_row: bool,
    pub base_iri: Option<BaseIri>,
    pub functions: Functions,
    /// Result of [`Self::weight`], once computed.
    weight: OnceLock<usize>,
    /// Slots by variable; built when a variable of a long list is first looked up.
    by_name: OnceLock<Arc<FxHashMap<Variable, Slot>>>,
}

impl Expr {
    pub(crate) fn new(
        expression: Arc<Expression>,
        variables: Arc<[(Variable, Slot)]>,
        per_row: bool,
        base_iri: Option<BaseIri>,
        functions: Functions,
    ) -> Self {
        Self {
            expression,
            variables,
            per_row,
            base_iri,
            functions,
            weight: OnceLock::new(),
            by_name: OnceLock::new(),
        }
    }

    /// Wraps an expression that calls no function whose value varies from row to row, that needs a base IRI, or that is
    /// named by an IRI.
    pub(crate) fn plain(
        expression: Expression,
        variables: impl IntoIterator<Item = (Variable, Slot)>,
    ) -> Self {
        let variables = variables.into_iter().collect();
        Self::new(
            Arc::new(expression),
            variables,
            false,
            None,
            Functions::new(),
        )
    }

    /// The same expression over other slots.
    pub(crate) fn renamed(&self, mut to: impl FnMut(Slot) -> Slot) -> Self {
        let variables = self.variables.iter();
        Self {
            variables: variables.map(|(v, s)| (v.clone(), to(*s))).collect(),
            by_name: OnceLock::new(),
            ..self.clone()
        }
    }

    /// Cost of planning and testing the expression once more: the number of its parts; a list of constants counts only
    /// a fraction. O(parts) at the first call.
    pub(crate) fn weight(&self) -> usize {
        let count = || weight_until(&self.expression, usize::MAX);
        *self.weight.get_or_init(count)
    }

    pub(crate) fn slots(&self) -> SlotSet {
        self.variables.iter().map(|v| v.1).collect()
    }

    pub(crate) fn slot(&self, v: &Variable) -> Option<Slot> {
        if self.variables.len() <= FEW {
            return self.variables.iter().find(|x| x.0 == *v).map(|x| x.1);
        }
        let by_name = || Arc::new(self.variables.iter().cloned().collect());
        self.by_name.get_or_init(by_name).get(v).copied()
    }

    pub(crate) fn general(&self) -> GeneralExpression {
        GeneralExpression {
            expression: Arc::clone(&self.expression),
            variables: Arc::clone(&self.variables),
            per_row: self.per_row,
            base_iri: self.base_iri.clone(),
            functions: self.functions.clone(),
            asked: None,
        }
    }

    /// The part `e` of the expression as an independent [`Expr`].
    pub(crate) fn only(&self, e: &Expression) -> Self {
        let part = self.part(&Arc::new(e.shared()));
        Self::new(
            part.expression,
            part.variables,
            part.per_row,
            part.base_iri,
            part.functions,
        )
    }

    /// The part `e` of the expression, with only the variables that it reads.
    pub(crate) fn part(&self, e: &Arc<Expression>) -> GeneralExpression {
        if Arc::ptr_eq(e, &self.expression) {
            return self.general();
        }
        let mut variables = Variables::default();
        let mut per_row = false;
        walk(e, &mut |e| match e {
            Expression::Variable(v) | Expression::Bound(v) => {
                variables.add(v, || self.slot(v));
            }
            // Whether a function called by IRI varies is known for the whole expression only.
            Expression::FunctionCall(Function::Custom(_), _) => per_row |= self.per_row,
            Expression::FunctionCall(f, _) => per_row |= varies(f),
            _ => {}
        });
        GeneralExpression {
            expression: Arc::clone(e),
            variables: variables.list.into(),
            per_row,
            base_iri: self.base_iri.clone(),
            functions: self.functions.clone(),
            asked: None,
        }
    }
}

/// Variables of an expression, each once, with their slots.
#[derive(Default)]
pub(crate) struct Variables {
    pub list: Vec<(Variable, Slot)>,
    /// The variables in `list`; used once the list is too long to be searched.
    met: FxHashSet<Variable>,
}

/// Number of variables up to which a list is searched rather than hashed.
const FEW: usize = 16;

impl Variables {
    /// Adds a variable, if it is new and has a slot.
    pub(crate) fn add(&mut self, v: &Variable, slot: impl FnOnce() -> Option<Slot>) {
        if self.list.len() < FEW {
            if self.list.iter().any(|x| x.0 == *v) {
                return;
            }
        } else {
            if self.met.is_empty() {
                self.met.extend(self.list.iter().map(|x| x.0.clone()));
            }
            if !self.met.insert(v.clone()) {
                return;
            }
        }
        if let Some(slot) = slot() {
            self.list.push((v.clone(), slot));
        }
    }
}

/// Returns true for functions whose value may differ between calls with equal arguments (RAND, UUID, …).
pub(crate) fn varies(f: &Function) -> bool {
    f.definition().is_some_and(|d| !d.deterministic)
}

/// The direct subexpressions; patterns of EXISTS are not searched.
#[must_use]
pub fn parts(e: &Expression) -> Vec<&Expression> {
    let mut out = vec![];
    e.each_part(|part| out.push(part));
    out
}

/// Rebuilds the expression with `f` applied to each direct subexpression; patterns of EXISTS are left as they are. `f`
/// returns a new part, or `None` to keep the old one. `None` if no part changes, so that the old expression can be
/// shared.
///
/// # Errors
/// Those of `f`.
pub fn map_parts<E>(
    e: &Expression,
    f: &mut dyn FnMut(&Expression) -> Result<Option<Expression>, E>,
) -> Result<Option<Expression>, E> {
    use Expression as X;
    macro_rules! parts {
        ($variant:ident: $($part:ident)+) => {{
            $(let $part = ($part, f($part)?.map(Arc::new));)+
            if $($part.1.is_none())&&+ {
                return Ok(None);
            }
            X::$variant($($part.1.unwrap_or_else(|| Arc::clone($part.0))),+)
        }};
    }
    type Change<'f, E> = &'f mut dyn FnMut(&Expression) -> Result<Option<Expression>, E>;
    fn list<E>(all: &[Expression], f: Change<'_, E>) -> Result<Option<Vec<Expression>>, E> {
        let mut out: Option<Vec<Expression>> = None;
        for (i, e) in all.iter().enumerate() {
            match (f(e)?, &mut out) {
                (Some(new), Some(out)) => out.push(new),
                (Some(new), None) => {
                    let mut before: Vec<_> = all[..i].iter().map(X::shared).collect();
                    before.push(new);
                    out = Some(before);
                }
                (None, Some(out)) => out.push(e.shared()),
                (None, None) => {}
            }
        }
        Ok(out)
    }
    Ok(Some(match e {
        X::NamedNode(_) | X::Literal(_) | X::Variable(_) | X::Bound(_) | X::Exists(_) => {
            return Ok(None);
        }
        X::Or(a, b) => parts!(Or: a b),
        X::And(a, b) => parts!(And: a b),
        X::Equal(a, b) => parts!(Equal: a b),
        X::SameTerm(a, b) => parts!(SameTerm: a b),
        X::Greater(a, b) => parts!(Greater: a b),
        X::GreaterOrEqual(a, b) => parts!(GreaterOrEqual: a b),
        X::Less(a, b) => parts!(Less: a b),
        X::LessOrEqual(a, b) => parts!(LessOrEqual: a b),
        X::Add(a, b) => parts!(Add: a b),
        X::Subtract(a, b) => parts!(Subtract: a b),
        X::Multiply(a, b) => parts!(Multiply: a b),
        X::Divide(a, b) => parts!(Divide: a b),
        X::UnaryPlus(a) => parts!(UnaryPlus: a),
        X::UnaryMinus(a) => parts!(UnaryMinus: a),
        X::Not(a) => parts!(Not: a),
        X::If(a, b, c) => parts!(If: a b c),
        X::Coalesce(all) => match list(all, f)? {
            Some(all) => X::Coalesce(all),
            None => return Ok(None),
        },
        X::FunctionCall(name, all) => match list(all, f)? {
            Some(all) => X::FunctionCall(name.clone(), all),
            None => return Ok(None),
        },
        X::In(a, all) => {
            let new = f(a)?.map(Arc::new);
            let mut out = vec![];
            let mut changed = new.is_some();
            for e in all {
                let part = f(e)?;
                changed |= part.is_some();
                out.push(part.unwrap_or_else(|| e.shared()));
            }
            if !changed {
                return Ok(None);
            }
            X::In(new.unwrap_or_else(|| Arc::clone(a)), out)
        }
    }))
}

/// Parts of an expression between two checks of the clock.
const PARTS: usize = 1 << 12;

/// Calls `f` with the expression and everything inside it, except patterns of EXISTS. Stops early if the [scope] is
/// over.
pub(crate) fn walk<'a>(e: &'a Expression, f: &mut impl FnMut(&'a Expression)) {
    let mut stack = vec![e];
    let mut seen = 0;
    while let Some(e) = stack.pop() {
        seen += 1;
        if seen % PARTS == 0 && scope::is_over() {
            return;
        }
        f(e);
        e.each_part(|part| stack.push(part));
    }
}

/// Number of constants in an IN that weigh as much as one part of an expression.
const MEMBERS: usize = 16;

/// True if planning and testing an expression once more has at most this weight ([`Expr::weight`]). O(`most`).
pub(crate) fn weighs_at_most(e: &Expression, most: usize) -> bool {
    weight_until(e, most) <= most
}

/// The weight of an expression: the number of its parts, where a list of constants counts only a fraction. Stops when
/// the weight exceeds `most`.
fn weight_until(e: &Expression, most: usize) -> usize {
    let mut weight = 0;
    let mut stack = vec![e];
    // The clock is read once per part; a list of constants is read to its end in between.
    while weight <= most
        && !scope::is_over()
        && let Some(e) = stack.pop()
    {
        weight += 1;
        match e {
            Expression::In(a, list) => {
                weight += list.len() / MEMBERS;
                stack.push(a);
                let is_constant = |e: &&Expression| {
                    matches!(e, Expression::NamedNode(_) | Expression::Literal(_))
                };
                stack.extend(list.iter().filter(|e| !is_constant(e)));
            }
            e => e.each_part(|part| stack.push(part)),
        }
    }
    weight
}

/// The operands of a filter's `&&`, at any depth. A row passes if all of them are true: a false one and an error both
/// reject the row.
pub(crate) fn conjuncts(e: &Arc<Expression>) -> Vec<&Arc<Expression>> {
    let mut out = vec![];
    let mut stack = vec![e];
    while let Some(e) = stack.pop() {
        if let Expression::And(a, b) = &**e {
            stack.push(b);
            stack.push(a);
        } else {
            out.push(e);
        }
    }
    out
}
