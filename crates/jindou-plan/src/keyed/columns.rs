//! Joins by keys: adds the columns that conditions compare, and plans the join on them.

use super::choices::{choices, conjunction};
use super::{
    Alternative, ComparedPair, ComparisonSide, KeyedCondition, LinkedComparisons,
    OrientedComparison, compares, equality, is_text, sides, size, slots_of,
};
use crate::build::{Built, JoinMatches, PlanBuilder, match_join};
use crate::expression::Expr;
use crate::operator::{Match, MatchBy};
use crate::set::SlotSet;
use crate::{JoinKind, Slot};
use jindou_syntax::algebra::{Expression, Literal};
use std::sync::Arc;

/// Largest number of comparisons that become join keys; other conditions are tested on pairs of rows.
const MOST: usize = 64;
/// Number of slots from which no key columns are added. Plans that are tried and rejected use up slots, too.
const MOST_SLOTS: Slot = 1 << 15;
/// Number of rows that each side must have for a join by `<`, whose right side is sorted.
const SORTED: f64 = 4.0;
/// Largest expression, in parts, whose text becomes the name of its column.
const NAMED: usize = 12;

impl PlanBuilder<'_> {
    /// For each condition, its form as a join key; `None` if it has no such form.
    pub(crate) fn comparisons(&mut self, conditions: &[Arc<Expr>]) -> Vec<Option<KeyedCondition>> {
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
                    let choice = Alternative {
                        pairs: vec![self.pair(sides, f, &mut known)?],
                        whole: None,
                        is_pair: true,
                    };
                    return Some(KeyedCondition {
                        choices: vec![choice],
                        always: None,
                    });
                }
                self.choices(f, &mut known)
            })
            .collect()
    }

    /// The condition as alternatives that can be join keys. `known` lists the expressions that have columns already.
    fn choices(&mut self, f: &Expr, known: &mut Vec<ComparisonSide>) -> Option<KeyedCondition> {
        let mut out = KeyedCondition {
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
            // Which side binds the alternative's slots is known only when two inputs are joined, so every alternative
            // gets a column.
            let condition = conjunction(&parts)?;
            let whole = if slots_of(&condition, f).is_empty() {
                None
            } else {
                let yes = Arc::new(Expression::Literal(Literal::from(true)));
                let error = Arc::new(Expression::Coalesce(vec![]));
                let bound = Expression::If(Arc::new(condition), yes, error);
                Some(self.side(&bound, f, known)?)
            };
            out.choices.push(Alternative {
                pairs,
                whole,
                is_pair,
            });
        }
        let yes = Expression::Literal(Literal::from(true));
        out.always = Some(self.side(&yes, f, known)?);
        Some(out)
    }

    /// A new slot for a join key; `None` if few slots are left, which other operators may need.
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
        known: &mut Vec<ComparisonSide>,
    ) -> Option<ComparedPair> {
        Some(ComparedPair {
            left: self.side(a, scope, known)?,
            right: self.side(b, scope, known)?,
            by,
        })
    }

    /// A side of a comparison. Equal expressions share one column.
    fn side(
        &mut self,
        e: &Expression,
        scope: &Expr,
        known: &mut Vec<ComparisonSide>,
    ) -> Option<ComparisonSide> {
        let slots = slots_of(e, scope);
        let value = scope.only(e);
        if let Expression::Variable(v) = e {
            let key = scope.slot(v)?;
            return Some(ComparisonSide {
                value,
                slots,
                key,
                is_variable: true,
            });
        }
        let is_same = |s: &&ComparisonSide| {
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
        let side = ComparisonSide {
            value,
            slots,
            key,
            is_variable: false,
        };
        known.push(side.clone());
        Some(side)
    }

    /// Joins two inputs by those comparisons that relate them, and returns the positions of the comparisons that need
    /// no further test. `None` if no comparison relates the inputs. `later`: slots that parts joined afterwards may
    /// bind.
    pub(crate) fn matched<'c>(
        &mut self,
        left: &Built,
        right: &Built,
        kind: JoinKind,
        later: &SlotSet,
        comparisons: impl Iterator<Item = Option<&'c KeyedCondition>>,
    ) -> Option<(Built, Vec<usize>)> {
        let linked: Vec<(usize, LinkedComparisons<'c>)> = comparisons
            .enumerate()
            .filter_map(|(i, c)| Some((i, c?.between(left, right, later)?)))
            .collect();
        let (single, several): (Vec<_>, Vec<_>) =
            linked.into_iter().partition(|l| l.1.either.len() == 1);
        let mut between: Vec<(Option<usize>, OrientedComparison<'c>)> = single
            .into_iter()
            .filter_map(|(i, l)| Some((l.is_exact.then_some(i), *l.either.first()?)))
            .collect();
        let is_order = |o: &OrientedComparison<'_>| matches!(o.by, MatchBy::Order(_));
        let equal = between.iter().any(|b| !is_order(&b.1));
        let fewest = several.into_iter().min_by_key(|l| l.1.either.len());
        if let (false, Some((i, linked))) = (equal, fewest) {
            let (l, r, mut either) = self.with_keys(left, right, linked.either);
            // The engine must not return a pair twice, so it tests each pair on the alternatives before the one that
            // found it. Comparing terms is cheaper than comparing values.
            either.sort_by_key(|m| m.by != MatchBy::Term);
            let matches = JoinMatches {
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
            // The right side is sorted by one column, which a second comparison may bound from the other direction.
            let bounds =
                |o: &OrientedComparison<'_>| o.right.key == first.right.key && !o.same_way(&first);
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
        let matches = JoinMatches {
            all,
            either: vec![],
        };
        let used = used.into_iter().flatten().collect();
        Some((match_join(l, r, kind, matches, None), used))
    }

    /// Adds the compared columns to both inputs; also returns the comparisons, without duplicates.
    fn with_keys(
        &mut self,
        left: &Built,
        right: &Built,
        between: Vec<OrientedComparison<'_>>,
    ) -> (Built, Built, Vec<Match>) {
        let (mut l, mut r) = (left.clone(), right.clone());
        let mut matches: Vec<Match> = vec![];
        for o in between {
            let text = is_text(&o.left.value.expression, &o.left.value, &l)
                && is_text(&o.right.value.expression, &o.right.value, &r);
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

    fn with_key(&mut self, rows: Built, side: &ComparisonSide) -> Built {
        if side.is_variable || rows.possible.has(side.key) {
            return rows;
        }
        self.extend(rows, side.key, &side.value)
    }
}
