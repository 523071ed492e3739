//! Costs of the operators above explorations, in nanoseconds of one core per row, and the number of rows that they are
//! estimated to return.

use crate::{ApplyKind, Condition, JoinKind, Match, MatchBy};

/// Passing a row on to the next operator.
pub(crate) const OUT: f64 = 1.0;
/// Inserting a row into a hash table, looking up a row, and adding a row to its group.
pub(crate) const HASH_BUILD: f64 = 15.0;
pub(crate) const HASH_PROBE: f64 = 10.0;
pub(crate) const GROUP: f64 = 10.0;
/// Looking up the value of a row's term.
pub(crate) const VALUE: f64 = 15.0;
/// One comparison in a sort.
pub(crate) const SORT: f64 = 4.0;
/// Evaluating an expression on decoded terms.
pub(crate) const EXPRESSION: f64 = 100.0;
/// One vertex visited by a path's search.
pub(crate) const PATH: f64 = 20.0;
/// A call to another endpoint.
pub(crate) const SERVICE: f64 = 50e6;

/// Estimated rows of a join on this many keys. Each row of the larger side is assumed to match an average number of
/// rows of the smaller side, which is evenly spread over its distinct values.
pub(crate) fn joined(left: f64, right: f64, keys: usize) -> f64 {
    if keys == 0 {
        return left * right;
    }
    let (small, large) = if left < right {
        (left, right)
    } else {
        (right, left)
    };
    // Keys of the smaller side are assumed to have small^0.75 distinct values; each further key halves the result.
    large * small / small.powf(0.75).max(1.0) * 0.5_f64.powi(keys as i32 - 1)
}

/// Assumed share of pairs for which `<` or a similar comparison is true.
const IN_ORDER: f64 = 0.33;

/// Rows of a join, and its cost without its inputs. Rows match if they agree on `shared` slots, satisfy all `matches`,
/// and, unless `either` is 0, satisfy at least one of `either` comparisons. The right side is stored.
pub(crate) fn matching(
    kind: JoinKind,
    left: f64,
    right: f64,
    shared: usize,
    (matches, either): (&[Match], usize),
) -> (f64, f64) {
    let is_order = |m: &&Match| matches!(m.by, MatchBy::Order(_));
    let orders = matches.iter().filter(is_order).count();
    let keys = shared + matches.len() - orders + either.min(1);
    let share = IN_ORDER.powi(orders as i32);
    // Each of the alternative comparisons has a hash table of its own.
    let tables = either.max(1) as f64;
    let matched = joined(left, right, keys) * share * tables;
    let by_value = either > 0 || matches.iter().any(|m| m.by != MatchBy::Term);
    let mut own = (right * HASH_BUILD + left * HASH_PROBE) * tables;
    if keys == 0 && orders == 0 {
        own = right * HASH_BUILD + left * OUT;
    }
    if by_value {
        own += (left + right) * VALUE * tables;
    }
    if orders > 0 {
        own += right * SORT * (2.0 + right).log2();
    }
    let found = match kind {
        // The search for a row's partners ends at the first one.
        JoinKind::Semi | JoinKind::Anti | JoinKind::Mark(_) if keys == 0 => matched.min(left),
        _ => matched,
    };
    (survivors(kind, left, matched), own + found * OUT * 4.0)
}

/// Rows of a join in which this many pairs match.
fn survivors(kind: JoinKind, left: f64, matched: f64) -> f64 {
    match kind {
        JoinKind::Inner => matched,
        JoinKind::Left => matched.max(left),
        JoinKind::Semi => left.min(matched),
        JoinKind::Anti | JoinKind::Minus => (left - matched).max(left * 0.05),
        JoinKind::Mark(_) => left,
    }
}

/// Rows of an `Apply`, and its cost without its inputs; the inner part finds `found` rows for all outer rows together.
pub(crate) fn apply(kind: ApplyKind, outer: f64, found: f64) -> (f64, f64) {
    let rows = match kind {
        ApplyKind::Inner => found,
        ApplyKind::Left => found.max(outer),
        ApplyKind::Semi => outer.min(found),
        ApplyKind::Anti => (outer - found).max(outer * 0.05),
        ApplyKind::Mark(_) => outer,
    };
    (rows, (outer + found) * OUT * 4.0)
}

/// Number of groups that this many rows form.
pub(crate) fn groups(rows: f64, keys: usize) -> f64 {
    if keys == 0 { 1.0 } else { rows.sqrt() }
}

/// Cost of a condition for one row.
pub(crate) fn condition(c: &Condition) -> f64 {
    match c {
        Condition::General(g) => 2.0 * OUT + (EXPRESSION - 2.0 * OUT) * g.costly_share(),
        Condition::And(list) | Condition::Or(list) => list.iter().map(condition).sum(),
        Condition::Not(c) => condition(c),
        _ => 2.0 * OUT,
    }
}
