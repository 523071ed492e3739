//! Chains of an associative operator as balanced trees.

/// Number of parts up to which a chain becomes a left-deep tree, as in `spargebra`, which makes EXPLAIN more readable.
const LEANING: usize = 32;

/// Joins all parts in their order; `None` for an empty list. With many parts, the depth of the tree is logarithmic in
/// their number.
pub(crate) fn balance<T>(parts: Vec<T>, mut join: impl FnMut(T, T) -> T) -> Option<T> {
    if parts.len() <= LEANING {
        return parts.into_iter().reduce(join);
    }
    let mut parts = parts;
    while parts.len() > 1 {
        let mut next = Vec::with_capacity(parts.len().div_ceil(2));
        let mut rest = parts.into_iter();
        while let Some(a) = rest.next() {
            next.push(match rest.next() {
                Some(b) => join(a, b),
                None => a,
            });
        }
        parts = next;
    }
    parts.pop()
}

#[cfg(test)]
mod tests {
    use super::balance;

    #[test]
    fn order_is_kept_and_depth_is_small() {
        for n in [0usize, 1, 2, 32, 33, 100, 1000] {
            let parts: Vec<_> = (0..n).map(|i| (vec![i], 0)).collect();
            let all = balance(parts, |(mut a, d), (b, e): (Vec<usize>, usize)| {
                a.extend(b);
                (a, d.max(e) + 1)
            });
            let (list, depth) = all.unwrap_or_default();
            assert_eq!(list, (0..n).collect::<Vec<_>>());
            assert!(depth <= if n <= 32 { 31 } else { 10 }, "{n}: {depth}");
        }
    }
}
