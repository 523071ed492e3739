//! Conditions that compare an expression over one side of a join with an expression over the other side. The join
//! matches rows by these keys, instead of testing every pair of rows.
//!
//! Examples are `?a = ?b`, `sameTerm(?a, ?b)`, `STR(?a) = STR(?b)`, `?a IN (?b)` and `YEAR(?a) = YEAR(?b)`. An
//! expression other than a variable first becomes a hidden column of its side. A row whose expression is an error or
//! unbound matches nothing, since the comparison would not be true either.
//!
//! Each alternative of a condition (`?a = ?b || ?a = ?c`, `?a IN (?b, ?c)`) is a key of its own. An alternative that
//! reads one side only (`?a = 1` in `?a = ?b || ?a = 1`) becomes a column of this side that is bound to true where the
//! alternative holds; it is matched with a column of the other side that is always true.

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

/// Largest number of variables of a condition that can be a join key.
const FEW: usize = 32;
/// Largest number of parts of a condition in which a variable is replaced by its value ([`through`]).
const MOST_PARTS: usize = 256;
/// Largest number of parts of a value that replaces the variable that BIND binds to it.
const SMALL: usize = 16;
/// Largest number of occurrences of the variable that are replaced.
const USES: usize = 4;

/// One side of a comparison.
#[derive(Clone, Debug)]
pub(crate) struct ComparisonSide {
    value: Expr,
    slots: SlotSet,
    /// The slot of the expression if it is a variable, otherwise the hidden column for its value.
    key: Slot,
    is_variable: bool,
}

/// An equality or an ordering comparison of two expressions, neither of which is constant.
#[derive(Clone, Debug)]
struct ComparedPair {
    left: ComparisonSide,
    right: ComparisonSide,
    by: MatchBy,
}

/// An alternative of a condition.
#[derive(Clone, Debug)]
struct Alternative {
    /// Equalities that must all hold for the alternative to be true. If the whole condition is one comparison, this is
    /// it, also if it compares by order.
    pairs: Vec<ComparedPair>,
    /// The column that is bound exactly where the alternative is true; `None` if the alternative reads no slot, or if
    /// the whole condition is one comparison.
    whole: Option<ComparisonSide>,
    /// True if the alternative is exactly one equality.
    is_pair: bool,
}

/// A condition as alternatives of which at least one is true whenever the condition is. Each alternative can be a join
/// key; if the condition is a single comparison by order, that is the only one.
#[derive(Clone, Debug)]
pub(crate) struct KeyedCondition {
    choices: Vec<Alternative>,
    /// A column that is true in all rows, to be compared with [`Alternative::whole`].
    always: Option<ComparisonSide>,
}

/// Comparisons of the two sides of a join. At least one of them is true for every pair that satisfies the condition.
struct LinkedComparisons<'c> {
    either: Vec<OrientedComparison<'c>>,
    /// True if every pair for which one of them is true also satisfies the condition, which then needs no further test.
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

/// The two expressions that a condition compares, if the condition is nothing but one comparison.
pub(crate) fn sides(e: &Expression) -> Option<(&Expression, &Expression, MatchBy)> {
    use Expression as E;
    let order = MatchBy::Order;
    let mut e = e;
    // A double negation changes nothing; `!` over anything else is not a comparison.
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

/// Slots that an expression reads; `scope` maps its variables to slots.
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

/// For each comparison in a condition that may be a join key, the slots that its two operands read; both are non-empty.
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

/// The two expressions that a condition equates; `None` for other conditions.
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
            NodeKind::LeftJoin {
                condition: filters, ..
            }
            | NodeKind::Filter { filters, .. } => add(filters),
            _ => {}
        }
        node.kind.each_input(|input| open.push(input));
    }
    out
}

/// The condition with variable `to` replaced by the value that it is bound to, if the result may be a join key. The
/// value must be deterministic and small, since it is copied into each condition.
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
        // BOUND needs a variable and cannot take a value.
        Expression::Bound(v) if is_to(v) => fits = false,
        _ => {}
    });
    // Variables are replaced by name, but inner scopes may use the same name for another slot.
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

/// The expression with the variable replaced by a value; `None` if the variable does not occur. Recursive.
fn replaced(e: &Expression, variable: &Variable, value: &Expression) -> Option<Expression> {
    if matches!(e, Expression::Variable(v) if v == variable) {
        return Some(value.shared());
    }
    let mut part = |e: &Expression| Ok::<_, std::convert::Infallible>(replaced(e, variable, value));
    map_parts(e, &mut part).ok().flatten()
}

/// Returns true if the expression's values are IRIs, blank nodes, or strings of type `xsd:string` or with a language
/// tag: two such values are equal only if they are the same term.
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
    /// True if the expression can be computed from the rows `own` of one side of a join. Its slots that the other side,
    /// or a part that is joined `later`, might also bind must be bound in every row of `own`.
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
        // If one side binds all slots of the comparison, it is a filter on that side.
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

    /// The comparison for an alternative that reads only one side: its column is compared with one that is always true.
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

    /// True if the condition contains an equality that can be used for joining the two inputs.
    pub(crate) fn links(&self, left: &Built, right: &Built, later: &SlotSet) -> bool {
        !self.is_order() && self.between(left, right, later).is_some()
    }

    pub(crate) fn is_order(&self) -> bool {
        let mut pairs = self.choices.iter().flat_map(|c| &c.pairs);
        pairs.any(|p| matches!(p.by, MatchBy::Order(_)))
    }
}

/// The comparison for exchanged operands.
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
