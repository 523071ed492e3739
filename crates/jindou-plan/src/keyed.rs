//! Conditions that compare the two sides of a join, each side by an expression over its own rows: keys to match by
//! instead of a test of every pair.
//!
//! `?a = ?b`, `sameTerm(?a, ?b)`, `STR(?a) = STR(?b)`, `?a IN (?b)`, `YEAR(?a) = YEAR(?b)` and the like. An expression
//! other than a variable first becomes a hidden column of its side. A row whose expression is an error or unbound
//! matches nothing, just as the comparison would not be true for it.
//!
//! Each alternative of a condition (`?a = ?b || ?a = ?c`, `?a IN (?b, ?c)`) is a key of its own. An alternative that
//! reads one side only (`?a = ?b || ?a = 1`) becomes a column that is bound where the alternative is true, and matches
//! every row of the other side.

mod choices;
mod columns;

use crate::build::Built;
use crate::expression::{Expr, map_parts, walk};
use crate::logical::{LogicalNode, NodeKind};
use crate::operator::MatchBy;
use crate::set::SlotSet;
use crate::{Relation, Slot};
use choices::{choices, is_compound};
use jindou_model::scope;
use jindou_syntax::algebra::{Expression, Variable};
use std::sync::Arc;

/// Largest number of variables of a condition that is considered.
const FEW: usize = 32;
/// Largest condition, in parts, in which a value is substituted for a variable.
const MOST_PARTS: usize = 256;
/// Largest value, in parts, that is substituted for the variable it is bound to.
const SMALL: usize = 16;
/// Largest number of occurrences that are substituted.
const USES: usize = 4;

/// One side of a comparison.
#[derive(Clone, Debug)]
pub(crate) struct ComparisonSide {
    value: Expr,
    slots: SlotSet,
    /// The variable's slot, or the column that the value gets.
    key: Slot,
    is_variable: bool,
}

/// An equality or an ordering comparison of two expressions, neither of them constant.
#[derive(Clone, Debug)]
struct ComparedPair {
    left: ComparisonSide,
    right: ComparisonSide,
    by: MatchBy,
}

/// An alternative of a condition.
#[derive(Clone, Debug)]
struct Alternative {
    /// Equalities that must hold for the alternative to be true. For a condition that is a single comparison, that
    /// comparison.
    pairs: Vec<ComparedPair>,
    /// The column that is bound where the alternative is true.
    whole: Option<ComparisonSide>,
    /// True if the alternative is exactly one equality.
    is_pair: bool,
}

/// A condition that is true only where two expressions are equal, or one of several such pairs is; or one that compares
/// two expressions by order.
#[derive(Clone, Debug)]
pub(crate) struct KeyedCondition {
    choices: Vec<Alternative>,
    /// A column that is the same in all rows.
    always: Option<ComparisonSide>,
}

/// Comparisons of the two sides of a join of which at least one is true if the condition is.
struct LinkedComparisons<'c> {
    either: Vec<OrientedComparison<'c>>,
    /// True if the condition is equivalent to the comparisons.
    is_exact: bool,
}

/// A comparison whose operands are in the order of the join's sides.
#[derive(Clone, Copy)]
struct OrientedComparison<'c> {
    left: &'c ComparisonSide,
    right: &'c ComparisonSide,
    by: MatchBy,
}

impl OrientedComparison<'_> {
    /// Returns true if both are lower bounds, or both upper bounds.
    fn same_way(&self, other: &Self) -> bool {
        let is_less =
            |o: &Self| matches!(o.by, MatchBy::Order(Relation::Less | Relation::LessOrEqual));
        is_less(self) == is_less(other)
    }
}

/// The two expressions that a condition compares, where the condition is true exactly if the comparison is.
pub(crate) fn sides(e: &Expression) -> Option<(&Expression, &Expression, MatchBy)> {
    use Expression as E;
    let order = MatchBy::Order;
    let mut e = e;
    // `!(?a != ?b)`
    while let E::Not(inner) = e {
        let E::Not(inner) = &**inner else { return None };
        e = inner;
    }
    match e {
        E::Equal(a, b) => Some((&**a, &**b, MatchBy::Value)),
        E::In(a, list) => match list.as_slice() {
            [b] => Some((&**a, b, MatchBy::Value)),
            _ => None,
        },
        E::SameTerm(a, b) => Some((&**a, &**b, MatchBy::Term)),
        E::Less(a, b) => Some((&**a, &**b, order(Relation::Less))),
        E::LessOrEqual(a, b) => Some((&**a, &**b, order(Relation::LessOrEqual))),
        E::Greater(a, b) => Some((&**a, &**b, order(Relation::Greater))),
        E::GreaterOrEqual(a, b) => Some((&**a, &**b, order(Relation::GreaterOrEqual))),
        _ => None,
    }
}

/// Number of parts of an expression, itself included.
fn size(e: &Expression) -> usize {
    let mut n = 0;
    walk(e, &mut |_| n += 1);
    n
}

/// The condition that compares an expression with a variable.
pub(crate) fn comparison(e: Expression, by: MatchBy, with: Variable) -> Expression {
    use Expression as E;
    let (a, b) = (Arc::new(e), Arc::new(E::Variable(with)));
    match by {
        MatchBy::Term => E::SameTerm(a, b),
        MatchBy::Value => E::Equal(a, b),
        MatchBy::Order(r) => match r {
            Relation::Less => E::Less(a, b),
            Relation::LessOrEqual => E::LessOrEqual(a, b),
            Relation::Greater => E::Greater(a, b),
            Relation::GreaterOrEqual => E::GreaterOrEqual(a, b),
            Relation::Equal => E::Equal(a, b),
            Relation::NotEqual => E::Not(Arc::new(E::Equal(a, b))),
        },
    }
}

/// Slots that an expression of the condition reads.
pub(crate) fn slots_of(e: &Expression, scope: &Expr) -> SlotSet {
    let mut out = SlotSet::default();
    walk(e, &mut |e| {
        if let Expression::Variable(v) | Expression::Bound(v) = e
            && let Some(slot) = scope.slot(v)
        {
            out.insert(slot);
        }
    });
    out
}

/// Slots on the two sides of each comparison or alternative of a condition. Neither side is empty.
pub(crate) fn slots_compared(f: &Expr) -> Vec<(SlotSet, SlotSet)> {
    let mut out = vec![];
    if f.per_row || f.variables.len() > FEW {
        return out;
    }
    let mut add = |(a, b, _): (&Expression, &Expression, MatchBy)| {
        let (a, b) = (slots_of(a, f), slots_of(b, f));
        let same = a.is_within(&b) && b.is_within(&a);
        if !a.is_empty() && !b.is_empty() && !same {
            out.push((a, b));
        }
    };
    if let Some(one) = sides(&f.expression) {
        add(one);
    } else if is_compound(&f.expression) {
        for choice in choices(&f.expression).unwrap_or_default() {
            if scope::is_over() {
                break;
            }
            choice.iter().filter_map(equality).for_each(&mut add);
        }
    }
    out
}

/// The two expressions that a condition equates.
fn equality(e: &Expression) -> Option<(&Expression, &Expression, MatchBy)> {
    sides(e).filter(|s| !matches!(s.2, MatchBy::Order(_)))
}

/// Returns true if the condition may be a key of a join.
pub(crate) fn compares(f: &Expr) -> bool {
    !slots_compared(f).is_empty()
}

/// Variables that conditions anywhere in the tree compare with others by `=`.
pub(crate) fn compared(root: &LogicalNode) -> SlotSet {
    let mut out = SlotSet::default();
    let mut open = vec![root];
    let mut add = |list: &[Arc<Expr>]| {
        for f in list {
            let mut note = |e: &Expression| {
                let Some((a, b, MatchBy::Value)) = sides(e) else {
                    return;
                };
                for e in [a, b] {
                    if let Expression::Variable(v) = e
                        && let Some(slot) = f.slot(v)
                    {
                        out.insert(slot);
                    }
                }
            };
            note(&f.expression);
            if is_compound(&f.expression) && f.variables.len() <= FEW {
                let all = choices(&f.expression).unwrap_or_default();
                all.iter().flatten().for_each(note);
            }
        }
    };
    while let Some(node) = open.pop() {
        match &node.kind {
            NodeKind::Bgp(b) => add(&b.filters),
            NodeKind::Join(list) | NodeKind::Union(list) => open.extend(list),
            NodeKind::LeftJoin {
                left,
                right,
                condition,
            } => {
                add(condition);
                open.extend([&**left, &**right]);
            }
            NodeKind::Minus { left, right } => open.extend([&**left, &**right]),
            NodeKind::Apply { input, body, .. } => open.extend([&**input, &**body]),
            NodeKind::Filter { inner, filters } => {
                add(filters);
                open.push(inner);
            }
            NodeKind::Extend { inner, .. }
            | NodeKind::Group { inner, .. }
            | NodeKind::OrderBy { inner, .. }
            | NodeKind::Distinct { inner, .. }
            | NodeKind::Reduced { inner, .. }
            | NodeKind::Slice { inner, .. }
            | NodeKind::Project(inner) => open.push(inner),
            NodeKind::Graphs(_)
            | NodeKind::HasGraph(_)
            | NodeKind::Path(_)
            | NodeKind::Values { .. }
            | NodeKind::Service(_) => {}
        }
    }
    out
}

/// The condition with a variable replaced by the value that it is bound to, if that makes it a comparison of the two
/// sides of a join. The value must be deterministic and small, since each condition gets a copy.
pub(crate) fn through(f: &Expr, to: Slot, value: &Expr) -> Option<Expr> {
    if f.per_row || value.per_row || !compares(f) {
        return None;
    }
    let none = crate::Functions::new();
    if value.functions != f.functions && value.functions != none && f.functions != none {
        return None;
    }
    if value.base_iri.is_some() && f.base_iri.is_some() && value.base_iri != f.base_iri {
        return None;
    }
    let mut uses = 0;
    let mut fits = size(&value.expression) <= SMALL && size(&f.expression) <= MOST_PARTS;
    let is_to = |v| f.slot(v) == Some(to);
    walk(&f.expression, &mut |e| match e {
        Expression::Variable(v) if is_to(v) => uses += 1,
        // A value is not a variable.
        Expression::Bound(v) if is_to(v) => fits = false,
        _ => {}
    });
    // Names are those of the query; inner scopes may use the same names for other slots.
    let clash = value
        .variables
        .iter()
        .any(|(v, s)| f.slot(v).is_some_and(|of| of != *s));
    if !fits || uses == 0 || uses > USES || clash {
        return None;
    }
    let (name, _) = f.variables.iter().find(|v| v.1 == to)?;
    let expression = replaced(&f.expression, name, &value.expression)?;
    let mut variables: Vec<(Variable, Slot)> =
        f.variables.iter().filter(|v| v.1 != to).cloned().collect();
    for v in &*value.variables {
        if !variables.contains(v) {
            variables.push(v.clone());
        }
    }
    let mut out = Expr::new(
        Arc::new(expression),
        variables.into(),
        f.per_row,
        f.base_iri.clone(),
        f.functions.clone(),
    );
    if value.functions != none {
        out.functions = value.functions.clone();
    }
    if value.base_iri.is_some() {
        out.base_iri.clone_from(&value.base_iri);
    }
    compares(&out).then_some(out)
}

/// The expression with the variable replaced by a value; `None` if the variable does not occur. Recurses.
fn replaced(e: &Expression, variable: &Variable, value: &Expression) -> Option<Expression> {
    if matches!(e, Expression::Variable(v) if v == variable) {
        return Some(value.shared());
    }
    let mut part = |e: &Expression| Ok::<_, std::convert::Infallible>(replaced(e, variable, value));
    map_parts(e, &mut part).ok().flatten()
}

/// Returns true if the expression's values are IRIs, blank nodes, or strings of `xsd:string` or with a language: where
/// both sides of `=` are such terms, they are equal only if they are the same term.
pub(crate) fn is_text(e: &Expression, scope: &Expr, rows: &Built) -> bool {
    match e {
        Expression::NamedNode(_) => true,
        Expression::Variable(v) => scope.slot(v).is_some_and(|s| rows.texts.has(s)),
        Expression::FunctionCall(f, _) => f
            .definition()
            .is_some_and(|d| d.deterministic && d.gives.is_text()),
        _ => false,
    }
}

impl ComparisonSide {
    /// True if the expression can be computed from the rows of one side of a join: slots that the other side, or a part
    /// that is joined `later`, might also bind are certain to be bound in them.
    fn is_of(&self, own: &Built, other: &Built, later: &SlotSet) -> bool {
        let added = |s| other.possible.has(s) || later.has(s);
        self.slots.meets(&own.possible)
            && self.slots.iter().all(|s| own.certain.has(s) || !added(s))
    }
}

impl ComparedPair {
    fn between<'c>(
        &'c self,
        left: &Built,
        right: &Built,
        later: &SlotSet,
    ) -> Option<OrientedComparison<'c>> {
        let (a, b) = (&self.left, &self.right);
        // Otherwise both would be tested before the join.
        let apart = |l: &ComparisonSide, r: &ComparisonSide| {
            !l.slots.is_within(&right.certain) && !r.slots.is_within(&left.certain)
        };
        if a.is_of(left, right, later) && b.is_of(right, left, later) && apart(a, b) {
            return Some(OrientedComparison {
                left: a,
                right: b,
                by: self.by,
            });
        }
        if b.is_of(left, right, later) && a.is_of(right, left, later) && apart(b, a) {
            return Some(OrientedComparison {
                left: b,
                right: a,
                by: flipped(self.by),
            });
        }
        None
    }
}

impl KeyedCondition {
    fn between<'c>(
        &'c self,
        left: &Built,
        right: &Built,
        later: &SlotSet,
    ) -> Option<LinkedComparisons<'c>> {
        let mut out = LinkedComparisons {
            either: vec![],
            is_exact: true,
        };
        let mut equates = false;
        for choice in &self.choices {
            let pair = choice
                .pairs
                .iter()
                .find_map(|p| p.between(left, right, later));
            let one = match pair {
                Some(pair) => {
                    equates = true;
                    out.is_exact &= choice.is_pair;
                    pair
                }
                None => self.on_one_side(choice, left, right, later)?,
            };
            let is_same = |o: &OrientedComparison<'_>| {
                (o.left.key, o.right.key, o.by) == (one.left.key, one.right.key, one.by)
            };
            if !out.either.iter().any(is_same) {
                out.either.push(one);
            }
        }
        equates.then_some(out)
    }

    /// An alternative that reads one side only.
    fn on_one_side<'c>(
        &'c self,
        choice: &'c Alternative,
        left: &Built,
        right: &Built,
        later: &SlotSet,
    ) -> Option<OrientedComparison<'c>> {
        let (whole, always) = (choice.whole.as_ref()?, self.always.as_ref()?);
        let (left, right) = if whole.is_of(left, right, later) {
            (whole, always)
        } else if whole.is_of(right, left, later) {
            (always, whole)
        } else {
            return None;
        };
        Some(OrientedComparison {
            left,
            right,
            by: MatchBy::Term,
        })
    }

    /// True if the comparison can be used for joining two inputs: they have no common slot, or they have one and the
    /// comparison is an equality, which makes the join more selective.
    pub(crate) fn links(&self, left: &Built, right: &Built, later: &SlotSet) -> bool {
        !self.is_order() && self.between(left, right, later).is_some()
    }

    pub(crate) fn is_order(&self) -> bool {
        let mut pairs = self.choices.iter().flat_map(|c| &c.pairs);
        pairs.any(|p| matches!(p.by, MatchBy::Order(_)))
    }
}

/// The comparison with its sides exchanged.
pub(crate) fn flipped(by: MatchBy) -> MatchBy {
    match by {
        MatchBy::Order(r) => MatchBy::Order(match r {
            Relation::Less => Relation::Greater,
            Relation::LessOrEqual => Relation::GreaterOrEqual,
            Relation::Greater => Relation::Less,
            Relation::GreaterOrEqual => Relation::LessOrEqual,
            Relation::Equal | Relation::NotEqual => r,
        }),
        MatchBy::Term | MatchBy::Value => by,
    }
}
