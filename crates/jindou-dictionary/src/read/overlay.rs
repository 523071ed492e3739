//! Terms that the files do not have: brought by updates, or made by one query.

use jindou_model::{Error, FIRST_QUERY_ID, FIRST_TAIL_ID, Resource, Result, VertexId};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// An append-only dictionary in memory whose ids lie above those of a [`Dictionary`]. Owned by one
/// writer; readers take a clone of what they need or share it behind a lock. A term belongs in one
/// only when the dictionary below does not have it: look there first.
///
/// [`Dictionary`]: crate::Dictionary
#[derive(Clone, Debug)]
pub struct DictionaryOverlay {
    first: u32,
    end: u32,
    terms: Vec<Arc<[u8]>>,
    ids: FxHashMap<Arc<[u8]>, u32>,
}

impl DictionaryOverlay {
    /// For terms that updates bring: ids from [`FIRST_TAIL_ID`] on.
    #[must_use]
    pub fn tail() -> Self {
        Self::new(FIRST_TAIL_ID, FIRST_QUERY_ID)
    }

    /// For terms that one query makes: ids from [`FIRST_QUERY_ID`] on.
    #[must_use]
    pub fn query() -> Self {
        Self::new(FIRST_QUERY_ID, u32::MAX)
    }

    fn new(first: u32, end: u32) -> Self {
        Self {
            first,
            end,
            terms: Vec::new(),
            ids: FxHashMap::default(),
        }
    }

    /// The id of a term, given out now if it is new.
    ///
    /// # Errors
    /// [`Error::Limit`] when the range of ids is used up.
    pub fn insert(&mut self, canonical: &[u8]) -> Result<VertexId> {
        if let Some(&id) = self.ids.get(canonical) {
            return Ok(VertexId(id));
        }
        let id = self.first as u64 + self.terms.len() as u64;
        if id >= u64::from(self.end) {
            let message = if self.first == FIRST_TAIL_ID {
                "updates have used up the ids of new terms; recluster the store"
            } else {
                "the query creates too many distinct terms"
            };
            return Err(Error::limit(Resource::Numbers, message));
        }
        let term: Arc<[u8]> = canonical.into();
        self.terms.push(Arc::clone(&term));
        self.ids.insert(term, id as u32);
        Ok(VertexId(id as u32))
    }

    /// The id of a term that is in here.
    #[must_use]
    pub fn lookup(&self, canonical: &[u8]) -> Option<VertexId> {
        self.ids.get(canonical).map(|&id| VertexId(id))
    }

    /// The canonical bytes of an id that was given out here.
    #[must_use]
    pub fn term(&self, id: VertexId) -> Option<&[u8]> {
        let at = id.0.checked_sub(self.first)?;
        self.terms.get(at as usize).map(|t| &**t)
    }

    /// Whether an id lies in this overlay's range.
    #[inline]
    #[must_use]
    pub fn owns(&self, id: VertexId) -> bool {
        (self.first..self.end).contains(&id.0)
    }

    /// Number of terms.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.terms.len() as u32
    }

    /// True without a term.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_lie_in_their_range_and_stay() {
        for (mut o, first) in [
            (DictionaryOverlay::tail(), FIRST_TAIL_ID),
            (DictionaryOverlay::query(), FIRST_QUERY_ID),
        ] {
            let a = o.insert(b"<a").unwrap();
            let b = o.insert(b"\"b").unwrap();
            assert_eq!((a, b), (VertexId(first), VertexId(first + 1)));
            assert_eq!(o.insert(b"<a").unwrap(), a);
            assert_eq!(o.lookup(b"\"b"), Some(b));
            assert_eq!(o.lookup(b"<b"), None);
            assert_eq!(o.term(b), Some(&b"\"b"[..]));
            assert_eq!(o.term(VertexId(first + 2)), None);
            assert_eq!(o.term(VertexId(1)), None);
            assert!(o.owns(a) && !o.owns(VertexId(first - 1)));
            assert_eq!(o.len(), 2);
        }
    }

    #[test]
    fn a_full_range_is_a_clear_error() {
        let mut o = DictionaryOverlay::new(5, 6);
        o.insert(b"<a").unwrap();
        assert!(matches!(o.insert(b"<b"), Err(Error::Limit(_))));
        assert!(o.insert(b"<a").is_ok());
    }
}
