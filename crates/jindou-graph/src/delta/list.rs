//! A growing array whose versions share chunks.

use std::sync::Arc;

/// Values per chunk.
const CHUNK: usize = 64;

/// A growing array whose versions share chunks. Cloning is O(1). A change copies one chunk, and the pointers to all
/// chunks.
#[derive(Clone, Debug)]
pub struct CowVec<T> {
    chunks: Arc<Vec<Arc<Vec<T>>>>,
    len: usize,
}

impl<T> Default for CowVec<T> {
    fn default() -> Self {
        Self {
            chunks: Arc::default(),
            len: 0,
        }
    }
}

impl<T: Clone> CowVec<T> {
    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value at an index. O(1).
    #[inline]
    #[must_use]
    pub fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / CHUNK)?.get(at % CHUNK)
    }

    /// Appends a value.
    pub fn push(&mut self, value: T) {
        let chunks = Arc::make_mut(&mut self.chunks);
        if self.len.is_multiple_of(CHUNK) {
            chunks.push(Arc::default());
        }
        if let Some(last) = chunks.last_mut() {
            Arc::make_mut(last).push(value);
            self.len += 1;
        }
    }

    /// The values, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|c| c.iter())
    }
}

impl<T: Clone + Default> CowVec<T> {
    /// Sets the value at an index; the array grows with default values if needed.
    pub fn set(&mut self, at: usize, value: T) {
        while self.len <= at {
            self.push(T::default());
        }
        if let Some(chunk) = Arc::make_mut(&mut self.chunks).get_mut(at / CHUNK)
            && let Some(slot) = Arc::make_mut(chunk).get_mut(at % CHUNK)
        {
            *slot = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_versions_keep_their_values() {
        let mut v: CowVec<u32> = CowVec::default();
        for i in 0..150 {
            v.push(i);
        }
        let old = v.clone();
        v.set(70, 1000);
        v.set(200, 7);
        assert_eq!((old.len(), v.len()), (150, 201));
        assert_eq!((old.get(70), v.get(70)), (Some(&70), Some(&1000)));
        assert_eq!(
            (v.get(199), v.get(200), v.get(201)),
            (Some(&0), Some(&7), None)
        );
        assert!(old.iter().copied().eq(0..150));
    }
}
