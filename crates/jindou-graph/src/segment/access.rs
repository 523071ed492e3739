//! Construction of views, and counts and keys that need no lists.

use super::view::{EdgeView, GraphScope};
use super::{NamedSegment, Patch, Segment};
use jindou_model::DEFAULT_GRAPH;

impl<'a> EdgeView<'a> {
    /// Creates a view of edges of the default graph, edges of named graphs, and a patch of both.
    #[inline]
    #[must_use]
    pub fn new(default: Segment<'a>, named: NamedSegment<'a>, patch: Option<&'a Patch>) -> Self {
        Self {
            default,
            named,
            patch,
        }
    }

    /// Numbers of keys of the default graph's segment and of the named graphs' segment. Keys that a patch added do not
    /// count. O(1).
    #[must_use]
    pub fn key_counts(&self) -> [u32; 2] {
        [self.default.key_count, self.named.key_count]
    }

    /// Appends the key at the relative position `share` (0 to 1) among the keys of the default graph's segment or, if
    /// this is empty, of the named graphs' segment.
    pub fn some_key(&self, share: f64, out: &mut Vec<u32>) {
        let count = match self.default.key_count {
            0 => self.named.key_count,
            n => n,
        };
        let at = (share * f64::from(count)) as u32;
        if self.default.key_count > 0 {
            self.default.keys_into(at, at.saturating_add(1), out);
        } else {
            self.named.keys_into(at, at.saturating_add(1), out);
        }
    }

    /// Returns true if no named graph has an edge in a segment.
    #[must_use]
    pub fn has_no_named(&self) -> bool {
        self.named.is_empty()
    }

    /// Appends the keys of a view without a patch that have an edge in `scope`.
    pub(crate) fn keys_with_edges(&self, scope: GraphScope<'_>, out: &mut Vec<u32>) {
        let start = out.len();
        self.candidate_keys(scope, out);
        // Unless some named graphs are selected, every candidate has an edge.
        if self.plain(scope).is_some() || matches!(scope, GraphScope::Union | GraphScope::AnyNamed)
        {
            return;
        }
        let mut scratch = Vec::new();
        let mut write = start;
        for i in start..out.len() {
            let key = out[i];
            out[write] = key;
            write += usize::from(!self.read(key, scope, &mut scratch).is_empty());
        }
        out.truncate(write);
    }

    /// Appends the first `most` keys of [`Self::keys_with_edges`] for which `is_before` is false. `is_before` must be
    /// true for a prefix of the ascending keys: those before the page. O(log keys + keys of the page), and also the
    /// lists of these keys if only some named graphs are visible.
    pub(crate) fn keys_page(
        &self,
        scope: GraphScope<'_>,
        is_before: impl Fn(u32) -> bool,
        most: usize,
        out: &mut Vec<u32>,
    ) {
        let most_out = out.len() + most;
        let (default, named) = (self.default, self.named);
        let ends = [
            default.key_count * u32::from(scope.sees(DEFAULT_GRAPH)),
            named.key_count * u32::from(scope.sees_named()),
        ];
        let mut at = [
            first_number(
                ends[0],
                |n, key| default.keys_into(n, n + 1, key),
                &is_before,
            ),
            first_number(ends[1], |n, key| named.keys_into(n, n + 1, key), &is_before),
        ];
        let all_have = self.plain(scope).is_some()
            || matches!(scope, GraphScope::Union | GraphScope::AnyNamed);
        let (mut a, mut b, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
        while out.len() < most_out {
            // The next `wanted` keys are among the next `wanted` of each of the two segments.
            let wanted = (most_out - out.len()).min(u32::MAX as usize) as u32;
            a.clear();
            b.clear();
            default.keys_into(at[0], at[0].saturating_add(wanted).min(ends[0]), &mut a);
            named.keys_into(at[1], at[1].saturating_add(wanted).min(ends[1]), &mut b);
            let (mut i, mut j) = (0, 0);
            for _ in 0..wanted {
                let key = match (a.get(i), b.get(j)) {
                    (Some(&x), Some(&y)) => x.min(y),
                    (Some(&x), None) | (None, Some(&x)) => x,
                    (None, None) => break,
                };
                i += usize::from(a.get(i) == Some(&key));
                j += usize::from(b.get(j) == Some(&key));
                if all_have || !self.read(key, scope, &mut scratch).is_empty() {
                    out.push(key);
                }
            }
            if i + j == 0 {
                break;
            }
            at = [at[0] + i as u32, at[1] + j as u32];
        }
    }
}

/// The number of the first of `keys` keys for which `is_before` is false.
fn first_number(
    keys: u32,
    read: impl Fn(u32, &mut Vec<u32>),
    is_before: impl Fn(u32) -> bool,
) -> u32 {
    let (mut from, mut to, mut key) = (0, keys, Vec::with_capacity(1));
    while from < to {
        let middle = from + (to - from) / 2;
        key.clear();
        read(middle, &mut key);
        if key.first().is_some_and(|&k| is_before(k)) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}
