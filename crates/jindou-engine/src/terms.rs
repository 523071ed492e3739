//! Terms that a query makes (counts), and decoding of ids.

use jindou_dictionary::{Decoder, DictionaryOverlay};
use jindou_model::{Error, FIRST_QUERY_ID, FIRST_TAIL_ID, NO_VERTEX, Result, VertexId, term};
use jindou_store::Snapshot;
use oxrdf::Term;
use std::sync::{PoisonError, RwLock};

/// The query-local dictionary: ids from `FIRST_QUERY_ID` on. Make one for each query; it must live as long as
/// somebody decodes the query's results.
pub struct QueryTerms {
    overlay: RwLock<DictionaryOverlay>,
}

impl Default for QueryTerms {
    fn default() -> Self {
        Self::new()
    }
}

impl QueryTerms {
    /// Without terms.
    #[must_use]
    pub fn new() -> Self {
        Self {
            overlay: RwLock::new(DictionaryOverlay::query()),
        }
    }

    /// The id of a term, new or known.
    ///
    /// # Errors
    /// When the query has used up all 2^28 query-local ids.
    pub fn insert(&self, canonical: &[u8]) -> Result<VertexId> {
        self.overlay
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(canonical)
    }

    /// The id of an `xsd:integer`.
    ///
    /// # Errors
    /// As [`Self::insert`].
    pub fn integer(&self, n: u64) -> Result<VertexId> {
        let mut bytes = vec![term::FIRST_DATATYPE];
        bytes.extend_from_slice(n.to_string().as_bytes());
        self.insert(&bytes)
    }

    /// Appends a query-local term's canonical bytes; false for an unknown id.
    pub fn term(&self, v: VertexId, out: &mut Vec<u8>) -> bool {
        let overlay = self.overlay.read().unwrap_or_else(PoisonError::into_inner);
        overlay.term(v).map(|t| out.extend_from_slice(t)).is_some()
    }
}

/// Turns ids of results into terms. Keeps the dictionary block decoded last, so ids near each other cost
/// little. One per thread.
pub struct TermDecoder<'a> {
    snapshot: &'a Snapshot,
    terms: &'a QueryTerms,
    decoder: Decoder<'a>,
    scratch: Vec<u8>,
}

impl<'a> TermDecoder<'a> {
    /// For results over this snapshot.
    #[must_use]
    pub fn new(snapshot: &'a Snapshot, terms: &'a QueryTerms) -> Self {
        let decoder = snapshot.base().dictionary().decoder();
        Self {
            snapshot,
            terms,
            decoder,
            scratch: Vec::new(),
        }
    }

    /// Canonical bytes of an id; `None` for 0 (unbound).
    ///
    /// # Errors
    /// For an id that has no term: the store is damaged.
    pub fn canonical(&mut self, id: u32) -> Result<Option<&[u8]>> {
        if id == NO_VERTEX {
            return Ok(None);
        }
        let v = VertexId(id);
        if id < FIRST_TAIL_ID {
            return match self.decoder.term(v) {
                Some(t) => Ok(Some(t)),
                None => Err(no_term(id)),
            };
        }
        self.scratch.clear();
        let found = if id >= FIRST_QUERY_ID {
            self.terms.term(v, &mut self.scratch)
        } else {
            self.snapshot.term(v, &mut self.scratch)
        };
        if found {
            Ok(Some(&self.scratch))
        } else {
            Err(no_term(id))
        }
    }

    /// Fetches what [`Self::canonical`] of these ids will read: some tens of ids, before decoding the first.
    pub fn prefetch(&self, ids: &[u32]) {
        self.decoder.prefetch(ids);
    }

    /// The term of an id; `None` for 0 (unbound).
    ///
    /// # Errors
    /// As [`Self::canonical`].
    pub fn term(&mut self, id: u32) -> Result<Option<Term>> {
        match self.canonical(id)? {
            None => Ok(None),
            Some(bytes) => term::decode(bytes).map(Some).ok_or_else(|| no_term(id)),
        }
    }
}

fn no_term(id: u32) -> Error {
    Error::Store(format!(
        "the dictionary has no readable term for vertex {id}: the store is damaged; `jindou check` says where"
    ))
}
