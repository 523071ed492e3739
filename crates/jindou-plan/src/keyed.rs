//! Conditions that compare the two sides of a join, each side by an expression over its own rows: keys to match by, in place of a
//! test of every pair.
//!
//! `?a = ?b`, `sameTerm(?a, ?b)`, `STR(?a) = STR(?b)`, `?a IN (?b)`, `YEAR(?a) = YEAR(?b)` and their like. An expression that is
//! not a variable becomes a hidden column of its side first. A row whose expression is an error, or unbound, matches nothing,
//! as the comparison would not be true with it.
//!
//! Of alternatives (`?a = ?b || ?a = ?c`, `?a IN (?b, ?c)`) each is a key of its own. One that reads one side only
//! (`?a = ?b || ?a = 1`) becomes a column that is bound where it is true, and matches every row of the other side.

mod choices;
mod columns;

use crate::build::Built;
use crate::expression::{Expr, map_parts, walk};
use crate::logical::{Kind, Node};
use crate::operator::MatchBy;
use crate::set::SlotSet;
use crate::{Relation, Slot};
use choices::{choices, is_compound};
use jindou_syntax::algebra::{Expression, Variable};
use std::sync::Arc;

/// Variables of a condition that is looked at.
const FEW: usize = 32;
/// Parts of a condition in which a value is put in the place of a variable.
const MOST_PARTS: usize = 256;
/// Parts of a value that is put in place of the variable it is bound to.
const SMALL: usize = 16;
/// Places in which it is put.
const USES: usize = 4;

/// One side of a comparison.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    value: Expr,
    slots: SlotSet,
    /// The variable's slot, or the column that the value gets.
    key: Slot,
    is_variable: bool,
}

/// An equality, or a comparison by order, of two expressions, neither of them constant.
#[derive(Clone, Debug)]
struct Pair {
    left: Side,
    right: Side,
    by: MatchBy,
}

/// An alternative of a condition.
#[derive(Clone, Debug)]
struct Choice {
    /// Equalities without which it is not true; of a condition that is nothing but one comparison, that one.
    pairs: Vec<Pair>,
    /// The column that is bound where it is true.
    whole: Option<Side>,
    /// Nothing but the one equality makes it true.
    is_pair: bool,
}

/// A condition that is only true where two expressions are equal, or one of several such pairs; or one that compares two by order.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    choices: Vec<Choice>,
    /// A column that is the same in all rows.
    always: Option<Side>,
}

/// Comparisons of the two sides of a join one of which must be true where a condition is.
struct Linked<'c> {
    either: Vec<Oriented<'c>>,
    /// True if the condition says nothing else.
    is_exact: bool,
}

/// A comparison whose sides are those of a join, in this order.
#[derive(Clone, Copy)]
struct Oriented<'c> {
    left: &'c Side,
    right: &'c Side,
    by: MatchBy,
}

impl Oriented<'_> {
    /// True if both are bounds from below, or both from above.
    fn same_way(&self, other: &Self) -> bool {
        let is_less =
            |o: &Self| matches!(o.by, MatchBy::Order(Relation::Less | Relation::LessOrEqual));
        is_less(self) == is_less(other)
    }
}

/// The two expressions that a condition compares, where nothing but the comparison being true makes the condition true.
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

/// Parts of an expression, itself included.
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

/// The slots that an expression of the condition reads.
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

/// The slots on the two sides of each comparison that a condition is, or of those of its alternatives. Each side has some.
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
            choice.iter().filter_map(equality).for_each(&mut add);
        }
    }
    out
}

/// The two expressions that a condition equates.
fn equality(e: &Expression) -> Option<(&Expression, &Expression, MatchBy)> {
    sides(e).filter(|s| !matches!(s.2, MatchBy::Order(_)))
}

/// True if the condition may be a key of a join.
pub(crate) fn compares(f: &Expr) -> bool {
    !slots_compared(f).is_empty()
}

/// Variables that conditions somewhere in the tree compare by `=` with others.
pub(crate) fn compared(root: &Node) -> SlotSet {
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
            Kind::Bgp(b) => add(&b.filters),
            Kind::Join(list) | Kind::Union(list) => open.extend(list),
            Kind::LeftJoin {
                left,
                right,
                condition,
            } => {
                add(condition);
                open.extend([&**left, &**right]);
            }
            Kind::Minus { left, right } => open.extend([&**left, &**right]),
            Kind::Apply { input, body, .. } => open.extend([&**input, &**body]),
            Kind::Filter { inner, filters } => {
                add(filters);
                open.push(inner);
            }
            Kind::Extend { inner, .. }
            | Kind::Group { inner, .. }
            | Kind::OrderBy { inner, .. }
            | Kind::Distinct { inner, .. }
            | Kind::Reduced { inner, .. }
            | Kind::Slice { inner, .. }
            | Kind::Project(inner) => open.push(inner),
            Kind::Graphs(_)
            | Kind::HasGraph(_)
            | Kind::Path(_)
            | Kind::Values { .. }
            | Kind::Service(_) => {}
        }
    }
    out
}

/// The condition with the value in place of the variable that it is bound to, where that makes a comparison of two sides of a
/// join of it. The value must not vary, and is small: each condition gets a copy.
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
    // Names are those of the query, where inner scopes may have the same ones for other slots.
    let clash = value
        .variables
        .iter()
        .any(|(v, s)| f.slot(v).is_some_and(|of| of != *s));
    if !fits || uses == 0 || uses > USES || clash {
        return None;
    }
    let (name, _) = f.variables.iter().find(|v| v.1 == to)?;
    let expression = replaced(&f.expression, name, &value.expression)?;
    let mut out = f.clone();
    let mut variables: Vec<(Variable, Slot)> =
        f.variables.iter().filter(|v| v.1 != to).cloned().collect();
    for v in &*value.variables {
        if !variables.contains(v) {
            variables.push(v.clone());
        }
    }
    out.expression = Arc::new(expression);
    out.variables = variables.into();
    if value.functions != none {
        out.functions = value.functions.clone();
    }
    if value.base_iri.is_some() {
        out.base_iri.clone_from(&value.base_iri);
    }
    compares(&out).then_some(out)
}

/// The expression with a value in the place of a variable; `None` if it does not have it. Recurses.
fn replaced(e: &Expression, variable: &Variable, value: &Expression) -> Option<Expression> {
    if matches!(e, Expression::Variable(v) if v == variable) {
        return Some(value.shared());
    }
    let mut part = |e: &Expression| Ok::<_, std::convert::Infallible>(replaced(e, variable, value));
    map_parts(e, &mut part).ok().flatten()
}

/// True if the expression's values are IRIs, blank nodes or strings, with a language or without, which are equal to nothing but
/// themselves.
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

impl Side {
    /// True if the expression can be computed from the rows of one side of a join: what the other side could add, or a part that
    /// is joined `later`, they surely have themselves.
    fn is_of(&self, own: &Built, other: &Built, later: &SlotSet) -> bool {
        let added = |s| other.possible.has(s) || later.has(s);
        self.slots.meets(&own.possible)
            && self.slots.iter().all(|s| own.certain.has(s) || !added(s))
    }
}

impl Pair {
    fn between<'c>(&'c self, left: &Built, right: &Built, later: &SlotSet) -> Option<Oriented<'c>> {
        let (a, b) = (&self.left, &self.right);
        // In one place both would be tested before.
        let apart = |l: &Side, r: &Side| {
            !l.slots.is_within(&right.certain) && !r.slots.is_within(&left.certain)
        };
        if a.is_of(left, right, later) && b.is_of(right, left, later) && apart(a, b) {
            return Some(Oriented {
                left: a,
                right: b,
                by: self.by,
            });
        }
        if b.is_of(left, right, later) && a.is_of(right, left, later) && apart(b, a) {
            return Some(Oriented {
                left: b,
                right: a,
                by: flipped(self.by),
            });
        }
        None
    }
}

impl Comparison {
    fn between<'c>(&'c self, left: &Built, right: &Built, later: &SlotSet) -> Option<Linked<'c>> {
        let mut out = Linked {
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
            let is_same = |o: &Oriented<'_>| {
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
        choice: &'c Choice,
        left: &Built,
        right: &Built,
        later: &SlotSet,
    ) -> Option<Oriented<'c>> {
        let (whole, always) = (choice.whole.as_ref()?, self.always.as_ref()?);
        let (left, right) = if whole.is_of(left, right, later) {
            (whole, always)
        } else if whole.is_of(right, left, later) {
            (always, whole)
        } else {
            return None;
        };
        Some(Oriented {
            left,
            right,
            by: MatchBy::Term,
        })
    }

    /// True if it connects the rows of two inputs that have no slot in common, or more closely those that have: by equality.
    pub(crate) fn links(&self, left: &Built, right: &Built, later: &SlotSet) -> bool {
        !self.is_order() && self.between(left, right, later).is_some()
    }

    pub(crate) fn is_order(&self) -> bool {
        let mut pairs = self.choices.iter().flat_map(|c| &c.pairs);
        pairs.any(|p| matches!(p.by, MatchBy::Order(_)))
    }
}

/// The comparison of the second with the first.
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
