//! Terms ↔ ids and the values of terms, for use in loops over rows.

use crate::delta::TailTerms;
use jindou_dictionary::index::{OpenIndexes, Probe, Question};
use jindou_dictionary::{Decoder, Dictionary, StringCursor};
use jindou_model::{FIRST_QUERY_ID, FIRST_TAIL_ID, NO_VERTEX, VertexId};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A source of terms outside this process's dictionary, such as another shard. A call may cost a round trip, so it is
/// made once per batch.
pub trait TermSource: Send + Sync {
    /// Appends the id of every term, given by its canonical bytes, to `out`; [`NO_VERTEX`] for an unknown term.
    fn lookup_many(&self, terms: &[&[u8]], out: &mut Vec<u32>);

    /// Calls `take` with the position in `ids` and the canonical bytes of every id that has a term, in any order.
    fn terms_many(&self, ids: &[u32], take: &mut dyn FnMut(usize, &[u8]));

    /// Requests the terms that later calls will need, if the source keeps terms. Ids may repeat.
    fn prefetch(&self, ids: &[u32]);
}

/// Terms ↔ ids of a graph, and the values of terms. Callers obtain it once per query: if the terms are in this
/// process's dictionary, its methods make no virtual calls.
#[derive(Clone, Copy)]
pub struct Vocabulary<'a>(TermsOrigin<'a>);

#[derive(Clone, Copy)]
enum TermsOrigin<'a> {
    Stored(&'a Dictionary, &'a TailTerms, &'a OpenIndexes),
    Other(&'a dyn TermSource, Option<&'a TailTerms>),
}

/// True if a source has the term with this id. It may have another term of a new id whose text is not elsewhere: the
/// one before the id was freed.
fn is_sourced(tail: &TailTerms, v: VertexId) -> bool {
    v.0 < FIRST_TAIL_ID || tail.is_elsewhere(v)
}

impl<'a> Vocabulary<'a> {
    /// The terms of a dictionary, and the terms that updates added to it.
    #[must_use]
    pub fn stored(
        dictionary: &'a Dictionary,
        indexes: &'a OpenIndexes,
        tail: &'a TailTerms,
    ) -> Self {
        Self(TermsOrigin::Stored(dictionary, tail, indexes))
    }

    /// The terms of a [`TermSource`]. No index contains these terms: conditions are evaluated on each term's content.
    #[must_use]
    pub fn other(source: &'a dyn TermSource) -> Self {
        Self(TermsOrigin::Other(source, None))
    }

    /// As [`Self::other`], with the terms that updates added. The source has the text of those that `tail` has elsewhere,
    /// and possibly other text of ids that were freed since.
    #[must_use]
    pub fn other_with(source: &'a dyn TermSource, tail: &'a TailTerms) -> Self {
        Self(TermsOrigin::Other(source, Some(tail)))
    }

    /// The id of a term, given its canonical bytes.
    #[must_use]
    pub fn lookup(&self, canonical: &[u8]) -> Option<VertexId> {
        match self.0 {
            TermsOrigin::Stored(dictionary, tail, _) => {
                let found = dictionary.lookup(canonical);
                found.or_else(|| tail.lookup(canonical))
            }
            TermsOrigin::Other(source, tail) => {
                if let Some(found) = tail.and_then(|tail| tail.lookup(canonical)) {
                    return Some(found);
                }
                let mut found = Vec::with_capacity(1);
                source.lookup_many(&[canonical], &mut found);
                let found = found.first().copied().filter(|&id| id != NO_VERTEX);
                let found = found.map(VertexId);
                found.filter(|&v| tail.is_none_or(|tail| is_sourced(tail, v)))
            }
        }
    }

    /// Appends the id of every term to `out`; [`NO_VERTEX`] for an unknown term. In a local dictionary the cache misses
    /// of different lookups overlap; a [`TermSource`] gets one request for all terms.
    pub fn lookup_many(&self, terms: &[&[u8]], out: &mut Vec<u32>) {
        let from = out.len();
        match self.0 {
            TermsOrigin::Stored(dictionary, tail, _) => {
                dictionary.lookup_many(terms, out);
                for (id, term) in out[from..].iter_mut().zip(terms) {
                    if *id == NO_VERTEX {
                        *id = tail.lookup(term).map_or(NO_VERTEX, |v| v.0);
                    }
                }
            }
            TermsOrigin::Other(source, tail) => {
                let Some(tail) = tail.filter(|tail| !tail.is_empty()) else {
                    source.lookup_many(terms, out);
                    return;
                };
                let known = |term: &&[u8]| tail.lookup(term).map_or(NO_VERTEX, |v| v.0);
                out.extend(terms.iter().map(known));
                let ids = out[from..].iter_mut().zip(terms);
                let (slots, others): (Vec<_>, Vec<_>) =
                    ids.filter(|(id, _)| **id == NO_VERTEX).unzip();
                let mut found = Vec::with_capacity(others.len());
                source.lookup_many(&others, &mut found);
                for (to, id) in slots.into_iter().zip(found) {
                    if is_sourced(tail, VertexId(id)) {
                        *to = id;
                    }
                }
            }
        }
    }

    /// Appends the canonical bytes of a term to `out`; returns false for an unknown id.
    pub fn term(&self, v: VertexId, out: &mut Vec<u8>) -> bool {
        match self.0 {
            TermsOrigin::Stored(dictionary, tail, _) => {
                if v.0 >= FIRST_TAIL_ID {
                    let term = tail.term(v);
                    term.map(|t| out.extend_from_slice(t)).is_some()
                } else {
                    dictionary.term(v, out)
                }
            }
            TermsOrigin::Other(_, Some(tail)) if !is_sourced(tail, v) => {
                let term = tail.term(v);
                term.map(|t| out.extend_from_slice(t)).is_some()
            }
            TermsOrigin::Other(source, _) => {
                let mut found = false;
                source.terms_many(&[v.0], &mut |_, term| {
                    found = true;
                    out.extend_from_slice(term);
                });
                found
            }
        }
    }

    /// Requests the terms that [`Self::term`] will need for a batch of rows in one round trip, if they are not in this
    /// process. Ids may repeat, and be 0.
    pub fn prefetch(&self, ids: impl Iterator<Item = u32>) {
        let TermsOrigin::Other(source, tail) = self.0 else {
            return;
        };
        let is_elsewhere = |&id: &u32| match id {
            NO_VERTEX => false,
            1..FIRST_TAIL_ID => true,
            FIRST_TAIL_ID..FIRST_QUERY_ID => tail.is_none_or(|t| t.is_elsewhere(VertexId(id))),
            FIRST_QUERY_ID.. => false,
        };
        let ids: Vec<u32> = ids.filter(is_elsewhere).collect();
        if !ids.is_empty() {
            source.prefetch(&ids);
        }
    }

    /// As [`Self::term`], with a cursor that is used for this vocabulary only: decoding terms of a local dictionary in
    /// the order of their bytes reads each of its blocks once.
    #[inline]
    pub fn term_near(&self, v: VertexId, cursor: &mut StringCursor, out: &mut Vec<u8>) -> bool {
        match self.ranks_of(v.0) {
            Some(dictionary) => dictionary.term_near(v, cursor, out),
            None => self.term(v, out),
        }
    }

    /// End of the ids that have value ranks: [`Self::ranks`] has the rank of every smaller vertex id. 1 if the graph
    /// has no ranks.
    #[inline]
    #[must_use]
    pub fn ranked_end(&self) -> u32 {
        match self.0 {
            TermsOrigin::Stored(..) => FIRST_TAIL_ID,
            TermsOrigin::Other(..) => NO_VERTEX + 1,
        }
    }

    /// The dictionary with the value ranks of terms, if the graph has any.
    #[inline]
    #[must_use]
    pub fn ranks(&self) -> Option<&'a Dictionary> {
        match self.0 {
            TermsOrigin::Stored(dictionary, ..) => Some(dictionary),
            TermsOrigin::Other(..) => None,
        }
    }

    /// The dictionary that has the value rank of this id, if the id has a rank.
    #[inline]
    #[must_use]
    pub fn ranks_of(&self, id: u32) -> Option<&'a Dictionary> {
        self.ranks().filter(|_| id < FIRST_TAIL_ID)
    }

    /// The answer of the first index of the graph's terms that can answer a question; `None` if no index can. Its
    /// verdicts are only about ids below [`FIRST_TAIL_ID`].
    #[must_use]
    pub fn probe(&self, question: &Question<'_>) -> Option<Box<dyn Probe + 'a>> {
        match self.0 {
            TermsOrigin::Stored(dictionary, _, indexes) => indexes.probe(question, dictionary),
            TermsOrigin::Other(..) => None,
        }
    }

    /// Returns true if there are indexes other than the value ranks, which list no ids.
    #[inline]
    #[must_use]
    pub fn has_indexes(&self) -> bool {
        match self.0 {
            TermsOrigin::Stored(_, _, indexes) => !indexes.are_ranks_alone(),
            TermsOrigin::Other(..) => false,
        }
    }

    /// A decoder for many terms.
    #[must_use]
    pub fn decoding(&self) -> TermDecoding<'a> {
        TermDecoding(match self.0 {
            TermsOrigin::Stored(dictionary, tail, _) => {
                Decoding::Stored(dictionary.decoder(), tail)
            }
            TermsOrigin::Other(source, tail) => Decoding::Other(
                FetchedTerms {
                    source,
                    bytes: Vec::new(),
                    places: FxHashMap::default(),
                },
                tail,
            ),
        })
    }
}

/// Decodes terms of a [`Vocabulary`]. Decoding ids close to each other is cheap; terms of a [`TermSource`] are fetched
/// in batches.
pub struct TermDecoding<'a>(Decoding<'a>);

enum Decoding<'a> {
    Stored(Decoder<'a>, &'a TailTerms),
    Other(FetchedTerms<'a>, Option<&'a TailTerms>),
}

/// The terms of the last batch that was fetched from a [`TermSource`].
struct FetchedTerms<'a> {
    source: &'a dyn TermSource,
    bytes: Vec<u8>,
    places: FxHashMap<u32, Range<usize>>,
}

impl FetchedTerms<'_> {
    #[inline(never)]
    fn term(&mut self, id: VertexId) -> Option<&[u8]> {
        if !self.places.contains_key(&id.0) {
            self.fetch(&[id.0]);
        }
        let place = self.places.get(&id.0)?.clone();
        self.bytes.get(place).filter(|term| !term.is_empty())
    }

    fn fetch(&mut self, ids: &[u32]) {
        let (bytes, places) = (&mut self.bytes, &mut self.places);
        bytes.clear();
        places.clear();
        // An id without a term gets the empty range, so that it is not requested again: no term is empty.
        places.extend(ids.iter().map(|&id| (id, 0..0)));
        self.source.terms_many(ids, &mut |at, term| {
            let start = bytes.len();
            bytes.extend_from_slice(term);
            if let Some(&id) = ids.get(at) {
                places.insert(id, start..bytes.len());
            }
        });
    }
}

impl TermDecoding<'_> {
    /// The canonical bytes of a term; `None` for unknown ids.
    // Only the code that nearly all ids need is inlined: a function call costs a tenth of decoding a term.
    #[inline(always)]
    pub fn term(&mut self, id: VertexId) -> Option<&[u8]> {
        if id.0 >= FIRST_TAIL_ID {
            return self.tail_term(id);
        }
        match &mut self.0 {
            Decoding::Stored(decoder, _) => decoder.term(id),
            Decoding::Other(fetched, _) => fetched.term(id),
        }
    }

    /// [`Self::term`] of an id from [`FIRST_TAIL_ID`] on.
    #[cold]
    #[inline(never)]
    fn tail_term(&mut self, id: VertexId) -> Option<&[u8]> {
        match &mut self.0 {
            Decoding::Stored(_, tail) => tail.term(id),
            Decoding::Other(_, Some(tail)) if !is_sourced(tail, id) => tail.term(id),
            Decoding::Other(fetched, _) => fetched.term(id),
        }
    }

    /// Prefetches the data that [`Self::term`] will need for these ids, and discards data that was fetched before.
    /// Called with some tens of ids, before decoding the first.
    #[inline]
    pub fn prefetch(&mut self, ids: &[u32]) {
        match &mut self.0 {
            Decoding::Stored(decoder, _) => decoder.prefetch(ids),
            Decoding::Other(fetched, None) => fetched.fetch(ids),
            Decoding::Other(fetched, Some(tail)) => {
                let ids = ids.iter().copied();
                let asked: Vec<u32> = ids.filter(|&id| is_sourced(tail, VertexId(id))).collect();
                fetched.fetch(&asked);
            }
        }
    }
}
