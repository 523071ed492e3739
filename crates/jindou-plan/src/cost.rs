//! What operators above the exploration cost, in nanoseconds a row of one core, and how many rows they leave.

/// A row handed on.
pub(crate) const OUT: f64 = 1.0;
/// A row put into a hash table, one looked up in it, one added to its group.
pub(crate) const HASH_BUILD: f64 = 15.0;
pub(crate) const HASH_PROBE: f64 = 10.0;
pub(crate) const GROUP: f64 = 10.0;
/// One comparison in a sort.
pub(crate) const SORT: f64 = 4.0;
/// An expression on decoded terms.
pub(crate) const EXPRESSION: f64 = 100.0;
/// One vertex that a path's search visits.
pub(crate) const PATH: f64 = 20.0;
/// A call to another endpoint.
pub(crate) const SERVICE: f64 = 50e6;

/// Rows of a join on so many keys: each row of the larger side is taken to find the rows of the smaller that an
/// even spread over its distinct values gives.
pub(crate) fn joined(left: f64, right: f64, keys: usize) -> f64 {
    if keys == 0 {
        return left * right;
    }
    let (small, large) = if left < right {
        (left, right)
    } else {
        (right, left)
    };
    // A key of the small side is rarely unique there: half of its digits are.
    large * small / small.powf(0.75).max(1.0) * 0.5_f64.powi(keys as i32 - 1)
}
