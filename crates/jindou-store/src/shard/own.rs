//! One shard's own data, read by ids of the whole store.

use super::ShardInfo;
use crate::base::Base;
use jindou_graph::delta::{BaseSets, TailTerms};
use jindou_graph::segment::GraphScope;
use jindou_graph::sets::CharacteristicSets;
use jindou_graph::shard::{Blocks, LocalKey, OwnEdges};
use jindou_model::{Direction, NO_VERTEX, PredicateId, VertexId};
use std::borrow::Cow;
use std::sync::Arc;

/// Largest number of keys in one page.
pub const PAGE: u32 = 1 << 20;

/// The data of one shard: edges of the vertices that it owns, and the terms that it has. Read from the base, so changes
/// by updates are not included.
#[derive(Clone, Copy, Debug)]
pub struct OwnData<'a> {
    base: &'a Base,
    shard: &'a ShardInfo,
}

impl Base {
    /// The data of this shard; `None` for an unsharded store.
    #[must_use]
    pub fn own_data(&self) -> Option<OwnData<'_>> {
        let shard = self.shard.as_deref()?;
        Some(OwnData { base: self, shard })
    }
}

impl<'a> OwnData<'a> {
    /// The shard's number.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.shard.number
    }

    /// The block table, which assigns ids to shards.
    #[must_use]
    pub fn blocks(&self) -> &'a Arc<Blocks> {
        &self.shard.blocks
    }

    /// The edges of a predicate, under the shard's own keys.
    #[must_use]
    pub fn edges(&self, p: PredicateId, direction: Direction) -> OwnEdges<'a> {
        let d = direction as usize;
        OwnEdges::new(
            self.base.default_segment(p.0, d),
            self.base.named_segment(p.0, d),
            (self.shard.number, &self.shard.blocks),
        )
    }

    /// The key of an id that the shard owns; `None` for other ids.
    #[must_use]
    pub fn key(&self, id: u32) -> Option<LocalKey> {
        self.shard.key(id)
    }

    /// The id of the term with this number in the shard's dictionary, which its indexes of terms use; 0 if there is
    /// none.
    #[must_use]
    pub fn id_of_number(&self, number: u32) -> u32 {
        self.shard.term_id(number)
    }

    /// The dense id of a predicate, given its term's id.
    #[must_use]
    pub fn predicate_of(&self, id: u32) -> Option<PredicateId> {
        self.base.predicate_of.get(&id).copied().map(PredicateId)
    }

    /// The characteristic sets of the whole store, by id.
    #[must_use]
    pub fn sets(&self) -> CharacteristicSets<'a> {
        self.base.index.sets()
    }

    /// The predicates of a vertex in the base, ascending, and possibly some that it had.
    #[must_use]
    pub fn predicates_of(&self, id: u32, direction: Direction) -> Cow<'a, [u32]> {
        let sets = BaseSets {
            sets: self.sets(),
            vertices: self.base.vertices(),
        };
        self.base.merged.touched.predicates_of(sets, id, direction)
    }

    /// True if the shard has the term with this id.
    #[must_use]
    pub fn has_term(&self, id: u32) -> bool {
        self.shard.term_number(id).is_some() || self.merged_term(id).is_some()
    }

    /// Appends a term's canonical bytes; false if the shard does not have it.
    pub fn term(&self, id: u32, out: &mut Vec<u8>) -> bool {
        if let Some(term) = self.merged_term(id) {
            out.extend_from_slice(term);
            return true;
        }
        let number = self.shard.term_number(id);
        number.is_some_and(|n| self.base.dictionary.term(VertexId(n), out))
    }

    /// Appends the id of each term, or 0 for a term that the shard does not have.
    pub fn lookup(&self, terms: &[&[u8]], out: &mut Vec<u32>) {
        let from = out.len();
        self.base.dictionary.lookup_many(terms, out);
        for (n, term) in out[from..].iter_mut().zip(terms) {
            *n = self.shard.term_id(*n);
            if *n == NO_VERTEX {
                let merged = self.base.merged.tail.lookup(term);
                *n = merged.map_or(NO_VERTEX, |v| v.0);
            }
        }
    }

    /// The terms that updates added and the base contains. The text of some is elsewhere.
    #[must_use]
    pub fn merged_terms(&self) -> &'a TailTerms {
        &self.base.merged.tail
    }

    fn merged_term(&self, id: u32) -> Option<&'a [u8]> {
        self.base.merged.tail.term(VertexId(id))
    }

    /// Appends the ids of the shard's keys of a predicate in some graphs, ascending, beginning at `from`; at most
    /// `most`, and at most [`PAGE`]. Returns true if there are more.
    pub fn keys(
        &self,
        p: PredicateId,
        direction: Direction,
        scope: GraphScope<'_>,
        [from, most]: [u32; 2],
        out: &mut Vec<u32>,
    ) -> bool {
        let most = most.clamp(1, PAGE) as usize;
        let start = out.len();
        // One more key is read, to find out whether there is another page.
        self.edges(p, direction)
            .keys_page(scope, from, most + 1, out);
        let more = out.len() - start > most;
        out.truncate(start + most);
        more
    }

    /// Appends the shard's subjects of one graph with a predicate, ascending.
    pub fn graph_subjects(&self, graph: u32, predicate: PredicateId, out: &mut Vec<u32>) {
        self.base.graph_subjects(graph, predicate, out);
    }

    /// The predicates of the shard's subjects in one graph, ascending.
    #[must_use]
    pub fn graph_predicates(&self, graph: u32) -> Vec<u32> {
        let mut out = self.base.graph_predicates(graph);
        out.sort_unstable();
        out.dedup();
        out
    }
}
