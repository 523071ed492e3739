//! The columns that a join matches by, and the join.

use super::choices::{choices, conjunction};
use super::{
    Choice, Comparison, Linked, Oriented, Pair, Side, compares, equality, is_text, sides, size,
    slots_of,
};
use crate::build::{Builder, Built, Matches, match_join};
use crate::expression::Expr;
use crate::operator::{Match, MatchBy};
use crate::set::SlotSet;
use crate::{JoinKind, Slot};
use jindou_syntax::algebra::{Expression, Literal};
use std::sync::Arc;

/// Comparisons of a list of conditions that are looked at; more are tested on pairs.
const MOST: usize = 64;
/// Slots up to which columns are added: plans that are tried and given up take some, too.
const MOST_SLOTS: Slot = 1 << 15;
/// Rows on each side from which on the held side is sorted for `<`.
const SORTED: f64 = 4.0;
/// Parts of an expression that its column is named after.
const NAMED: usize = 12;

impl Builder<'_> {
    /// The comparisons among conditions, at the places of these.
    pub(crate) fn comparisons(&mut self, conditions: &[Arc<Expr>]) -> Vec<Option<Comparison>> {
        let mut found = 0;
        let mut known = vec![];
        conditions
            .iter()
            .map(|f| {
                if found >= MOST || !compares(f) {
                    return None;
                }
                found += 1;
                if let Some(sides) = sides(&f.expression) {
                    let choice = Choice {
                        pairs: vec![self.pair(sides, f, &mut known)?],
                        whole: None,
                        is_pair: true,
                    };
                    return Some(Comparison {
                        choices: vec![choice],
                        always: None,
                    });
                }
                self.choices(f, &mut known)
            })
            .collect()
    }

    /// The condition as alternatives.
    fn choices(&mut self, f: &Expr, known: &mut Vec<Side>) -> Option<Comparison> {
        let mut out = Comparison {
            choices: vec![],
            always: None,
        };
        for parts in choices(&f.expression)? {
            let mut pairs = vec![];
            for sides in parts.iter().filter_map(equality) {
                let is_constant = |e| slots_of(e, f).is_empty();
                if !is_constant(sides.0) && !is_constant(sides.1) {
                    pairs.push(self.pair(sides, f, known)?);
                }
            }
            let is_pair = pairs.len() == 1 && parts.len() == 1;
            // Where the sides are is known when two inputs are joined.
            let condition = conjunction(&parts)?;
            let whole = if slots_of(&condition, f).is_empty() {
                None
            } else {
                let yes = Arc::new(Expression::Literal(Literal::from(true)));
                let error = Arc::new(Expression::Coalesce(vec![]));
                let bound = Expression::If(Arc::new(condition), yes, error);
                Some(self.side(&bound, f, known)?)
            };
            out.choices.push(Choice {
                pairs,
                whole,
                is_pair,
            });
        }
        let yes = Expression::Literal(Literal::from(true));
        out.always = Some(self.side(&yes, f, known)?);
        Some(out)
    }

    /// A slot for a column that a join matches by; `None` if there are so many slots that others may need what is left.
    pub(crate) fn key(&mut self, name: impl FnOnce(Slot) -> String) -> Option<Slot> {
        let key = Slot::try_from(self.slots.len()).ok()?;
        if key >= MOST_SLOTS {
            return None;
        }
        self.slots.push(name(key));
        Some(key)
    }

    fn pair(
        &mut self,
        (a, b, by): (&Expression, &Expression, MatchBy),
        scope: &Expr,
        known: &mut Vec<Side>,
    ) -> Option<Pair> {
        Some(Pair {
            left: self.side(a, scope, known)?,
            right: self.side(b, scope, known)?,
            by,
        })
    }

    /// A side of a comparison. An expression that several have is one column.
    fn side(&mut self, e: &Expression, scope: &Expr, known: &mut Vec<Side>) -> Option<Side> {
        let slots = slots_of(e, scope);
        let value = scope.only(e);
        if let Expression::Variable(v) = e {
            let key = scope.slot(v)?;
            return Some(Side {
                value,
                slots,
                key,
                is_variable: true,
            });
        }
        let is_same = |s: &&Side| {
            s.value.expression == value.expression
                && s.value.variables == value.variables
                && s.value.base_iri == value.base_iri
                && s.value.functions == value.functions
        };
        if let Some(side) = known.iter().find(is_same) {
            return Some(side.clone());
        }
        let name = |key: Slot| match size(e) {
            n if n <= NAMED => format!("key {e}"),
            _ => format!("key {key}"),
        };
        let key = self.key(name)?;
        let side = Side {
            value,
            slots,
            key,
            is_variable: false,
        };
        known.push(side.clone());
        Some(side)
    }

    /// The join of two inputs by those of the comparisons that are between them; the places of those that need no test any more
    /// come with it. `None` if there are none. `later` are the slots that parts may bind which are joined with them.
    pub(crate) fn matched<'c>(
        &mut self,
        left: &Built,
        right: &Built,
        kind: JoinKind,
        later: &SlotSet,
        comparisons: impl Iterator<Item = Option<&'c Comparison>>,
    ) -> Option<(Built, Vec<usize>)> {
        let linked: Vec<(usize, Linked<'c>)> = comparisons
            .enumerate()
            .filter_map(|(i, c)| Some((i, c?.between(left, right, later)?)))
            .collect();
        let (single, several): (Vec<_>, Vec<_>) =
            linked.into_iter().partition(|l| l.1.either.len() == 1);
        let mut between: Vec<(Option<usize>, Oriented<'c>)> = single
            .into_iter()
            .filter_map(|(i, l)| Some((l.is_exact.then_some(i), *l.either.first()?)))
            .collect();
        let is_order = |o: &Oriented<'_>| matches!(o.by, MatchBy::Order(_));
        let equal = between.iter().any(|b| !is_order(&b.1));
        let fewest = several.into_iter().min_by_key(|l| l.1.either.len());
        if let (false, Some((i, linked))) = (equal, fewest) {
            let (l, r, mut either) = self.with_keys(left, right, linked.either);
            // Pairs are looked for among those of the alternatives before, which is less ado for terms than for values.
            either.sort_by_key(|m| m.by != MatchBy::Term);
            let matches = Matches {
                all: vec![],
                either,
            };
            let used = linked.is_exact.then_some(i).into_iter().collect();
            return Some((match_join(l, r, kind, matches, None), used));
        }
        let large = left.rows >= SORTED && right.rows >= SORTED;
        if equal || !large || left.possible.meets(&right.possible) {
            between.retain(|b| !is_order(&b.1));
        } else if let Some(&(_, first)) = between.first() {
            // One column is sorted. It may have another bound.
            let bounds = |o: &Oriented<'_>| o.right.key == first.right.key && !o.same_way(&first);
            let second = between.iter().position(|b| bounds(&b.1));
            between = [Some(0), second]
                .into_iter()
                .flatten()
                .filter_map(|i| between.get(i).copied())
                .collect();
        }
        if between.is_empty() {
            return None;
        }
        let (used, all): (Vec<_>, Vec<_>) = between.into_iter().unzip();
        let (l, r, all) = self.with_keys(left, right, all);
        let matches = Matches {
            all,
            either: vec![],
        };
        let used = used.into_iter().flatten().collect();
        Some((match_join(l, r, kind, matches, None), used))
    }

    /// Both inputs with the columns that these compare, and the comparisons, each once.
    fn with_keys(
        &mut self,
        left: &Built,
        right: &Built,
        between: Vec<Oriented<'_>>,
    ) -> (Built, Built, Vec<Match>) {
        let (mut l, mut r) = (left.clone(), right.clone());
        let mut matches: Vec<Match> = vec![];
        for o in between {
            let text = is_text(&o.left.value.expression, &o.left.value, &l)
                || is_text(&o.right.value.expression, &o.right.value, &r);
            let by = match o.by {
                MatchBy::Value if text => MatchBy::Term,
                by => by,
            };
            l = self.with_key(l, o.left);
            r = self.with_key(r, o.right);
            let one = Match {
                left: o.left.key,
                right: o.right.key,
                by,
            };
            if !matches.contains(&one) {
                matches.push(one);
            }
        }
        (l, r, matches)
    }

    fn with_key(&mut self, rows: Built, side: &Side) -> Built {
        if side.is_variable || rows.possible.has(side.key) {
            return rows;
        }
        self.extend(rows, side.key, &side.value)
    }
}
