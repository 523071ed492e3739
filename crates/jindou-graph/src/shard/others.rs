//! One query's access to the data of other shards.

use super::edges::Presence;
use super::{Blocks, ShardEdges};
use crate::segment::GraphScope;
use crate::statistics::Statistics;
use crate::{ObjectTerms, TermSource};
use jindou_model::{
    CancelToken, Direction, FIRST_TAIL_ID, MemoryBudget, PredicateId, Result, Watch,
};
use std::sync::Arc;
use std::time::Instant;

/// Counts of a query's requests to other shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of waits for replies.
    pub rounds: u64,
    /// Messages to a shard, each with all requests of a round.
    pub messages: u64,
    /// Bytes of requests and replies, and of data that was read.
    pub bytes: u64,
    /// Requests for lists that were read from other servers' memory, without a message.
    pub reads: u64,
}

/// A key of another shard, in the edges of one predicate in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FarKey {
    /// The shard that owns it.
    pub shard: u32,
    /// Dense predicate id.
    pub predicate: u32,
    /// The end that is the key.
    pub direction: Direction,
    /// The id.
    pub key: u32,
}

/// A search for words in the terms of all shards.
#[derive(Clone, Copy, Debug)]
pub struct WordSearch<'a> {
    /// The words, as text.
    pub words: &'a str,
    /// True for IRIs, false for strings.
    pub iris: bool,
    /// The graphs in which a resource has to occur, or a string has to be a label.
    pub scope: GraphScope<'a>,
    /// Dense ids of the predicates whose objects are labels.
    pub labels: &'a [u32],
    /// The end of its time.
    pub end: Instant,
}

/// A term that has the words.
#[derive(Clone, Copy, Debug)]
pub struct FoundTerm<'a> {
    /// The shard that owns it.
    pub shard: u32,
    /// Its id.
    pub id: u32,
    /// Its canonical bytes.
    pub canonical: &'a [u8],
    /// The vertices that a string is a label of; none for an IRI.
    pub subjects: &'a [u32],
}

/// The (neighbour, graph) of a key, sorted.
pub type List = Arc<[(u32, u32)]>;

/// The other shards of a graph, as one query reads them: their bases, without changes by updates, which every shard
/// has for all of them.
///
/// All keys are owned by the shards named with them: [`Sharded`] and the views determine that, row by row, before
/// anything is requested here, a batch at a time. Data that cannot be read appears as an empty list, a 0, or a missing
/// term. From then on [`Watch::check`] permanently returns the error, and everything read is invalid.
pub trait OtherShards: TermSource + Watch {
    /// The same shards for another query, which failures of this one do not affect.
    fn for_new_query(&self) -> Arc<dyn OtherShards>;

    /// Ties reading to a query's token, which limits every wait.
    fn begin(&self, cancel: &CancelToken);

    /// Charges cached data to a query's memory from now on. The first budget counts.
    fn charge_to(&self, memory: &MemoryBudget);

    /// Counts of the requests so far.
    fn traffic(&self) -> Traffic;

    /// The statistics of the whole store.
    fn statistics(&self) -> &Statistics;

    /// Appends the keys of all other shards that have an edge: each shard's ascending.
    fn far_keys(
        &self,
        p: PredicateId,
        direction: Direction,
        scope: GraphScope<'_>,
        out: &mut Vec<u32>,
    );

    /// Fetches lists that [`Self::list`], [`Self::contains`] and [`Self::lay`] will need, in one round if they are not
    /// too long. They may repeat.
    fn fetch(&self, lists: &[(FarKey, GraphScope<'_>)]);

    /// A list: cached, or requested individually.
    fn list(&self, of: FarKey, scope: GraphScope<'_>) -> List;

    /// Returns true if an edge exists.
    fn contains(&self, of: FarKey, neighbour: u32, scope: GraphScope<'_>) -> bool;

    /// Tests which edges exist in the graphs next to them, in one round: each with its position in `there`, which is
    /// false beforehand.
    fn contains_many(&self, edges: &[(FarKey, u32, GraphScope<'_>, usize)], there: &mut [bool]);

    /// Appends the merged lists of distinct keys of one predicate in one direction to `more`, in few round trips.
    /// Returns the range of each, `[1, 0]` for those that did not fit into [`MOST_LAID`](super::MOST_LAID) ids.
    /// Neighbours outside the half-open interval may be missing.
    fn lay(
        &self,
        keys: &[FarKey],
        within: (GraphScope<'_>, [u32; 2]),
        more: &mut Vec<u32>,
    ) -> Vec<[u32; 2]>;

    /// Fetches numbers of edges that [`Self::degrees`] will need, in one round. They may repeat.
    fn fetch_degrees(&self, keys: &[FarKey]);

    /// Numbers of edges of a key in the default graph and in named ones: cached, or requested individually.
    fn degrees(&self, of: FarKey) -> [u64; 2];

    /// Fetches terms that [`TermSource`] will need, each with the shard that owns its id, in one round. They may
    /// repeat.
    fn fetch_terms(&self, ids: &[(u32, u32)]);

    /// Caches terms that another shard sent with its answer: one term for each of its own ids, with the end of each in
    /// the bytes. Terms that do not match their ids are ignored.
    fn keep_terms(&self, shard: u32, ids: &[u32], ends: &[u32], bytes: &[u8]);

    /// Sets `out` to the subjects of one graph with a predicate on all shards, ascending.
    fn graph_subjects(&self, graph: u32, predicate: PredicateId, out: &mut Vec<u32>);

    /// The predicates that occur in one graph on all shards, ascending.
    fn graph_predicates(&self, graph: u32) -> Vec<u32>;

    /// Kind of terms that the objects of a predicate on all shards belong to.
    fn object_terms(&self, p: PredicateId) -> ObjectTerms;

    /// Calls `take` with terms that match the words, for each shard until it returns false; a shard with an index of
    /// words returns those with few words first. Needs a round trip for each fiftieth of a second that a shard scans
    /// terms, and one for shards with an index. Returns true if those were all.
    fn search_words(
        &self,
        asked: &WordSearch<'_>,
        take: &mut dyn FnMut(FoundTerm<'_>) -> bool,
    ) -> bool;

    /// Approximate number of occurrences of vertices in all graphs, in one round trip; `None` for those that do not
    /// occur in the scope.
    fn uses(&self, vertices: &[u32], scope: GraphScope<'_>) -> Vec<Option<u64>>;

    /// True if all shards of this process have an index of words.
    fn has_word_index(&self) -> bool;

    /// Lets the shards of this process do the work that their first search would wait for, until `stop` returns true.
    /// Returns true once nothing is left to do.
    fn prepare_search(&self, stop: &mut dyn FnMut() -> bool) -> bool;
}

/// One shard's number, and access to the others for one query.
#[derive(Clone, Debug)]
pub struct Sharded {
    number: u32,
    blocks: Arc<Blocks>,
    others: Arc<dyn OtherShards>,
}

impl Sharded {
    /// Creates the access of the shard with this number, for a store with these blocks.
    #[must_use]
    pub fn new(number: u32, blocks: Arc<Blocks>, others: Arc<dyn OtherShards>) -> Self {
        Self {
            number,
            blocks,
            others,
        }
    }

    /// The same shard for another query.
    #[must_use]
    pub fn for_new_query(&self) -> Self {
        Self {
            others: self.others.for_new_query(),
            ..self.clone()
        }
    }

    /// The number of the shard.
    #[inline]
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The table of the ids' owners.
    #[inline]
    #[must_use]
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// The other shards, as this query reads them.
    #[must_use]
    pub fn others(&self) -> &Arc<dyn OtherShards> {
        &self.others
    }

    /// Checks that all requests to other shards so far were answered. Must be called before data that was read is used.
    ///
    /// # Errors
    /// [`Error::Shard`](jindou_model::Error::Shard) with the first shard that did not answer; the query's own limits.
    pub fn check(&self) -> Result<()> {
        self.others.check()
    }

    /// As [`OtherShards::charge_to`].
    pub fn charge_to(&self, memory: &MemoryBudget) {
        self.others.charge_to(memory);
    }

    /// As [`OtherShards::traffic`].
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.others.traffic()
    }

    /// Returns true if this shard owns an id.
    #[inline]
    #[must_use]
    pub fn owns(&self, id: u32) -> bool {
        self.blocks
            .owner(id)
            .is_some_and(|owner| u32::from(owner) == self.number)
    }

    /// Tests which edges exist, given by key and neighbour, each in the graphs of its scope: in one round, or two where
    /// several graphs are read and edits removed an edge from some. `there[i]` is the result for the `i`th.
    pub fn contain<'e>(
        &self,
        edges: impl Iterator<Item = (&'e ShardEdges<'e>, [u32; 2], GraphScope<'e>)>,
        there: &mut Vec<bool>,
    ) {
        there.clear();
        let (mut others, mut late) = (Vec::new(), Vec::new());
        for (i, (edges, [key, neighbour], scope)) in edges.enumerate() {
            there.push(match edges.presence(key, neighbour, scope) {
                Presence::Known(known) => known,
                Presence::Far(of) => {
                    others.push((of, neighbour, scope, i));
                    false
                }
                Presence::InSomeGraphs => {
                    late.push((i, edges, [key, neighbour], scope));
                    false
                }
            });
        }
        self.others.contains_many(&others, there);
        let list = |&(_, edges, [key, _], scope): &(usize, &ShardEdges<'e>, [u32; 2], _)| {
            (PredicateId(edges.predicate), edges.direction, key, scope)
        };
        self.fetch(late.iter().map(list));
        for (i, edges, [key, neighbour], scope) in late {
            there[i] = edges.contains(key, neighbour, scope);
        }
    }

    /// The shard that owns an id, if it is another one.
    #[inline]
    fn other_owner(&self, id: u32) -> Option<u32> {
        let owner = u32::from(self.blocks.owner(id)?);
        (owner != self.number).then_some(owner)
    }

    /// A key, if another shard owns it.
    #[inline]
    pub(super) fn far_key(&self, predicate: u32, direction: Direction, key: u32) -> Option<FarKey> {
        Some(FarKey {
            shard: self.other_owner(key)?,
            predicate,
            direction,
            key,
        })
    }

    /// Fetches the lists of several predicates that [`Edges::read`](crate::Edges::read) and similar methods will need,
    /// in one round: to be called before the loop over a batch.
    pub fn fetch<'s>(
        &self,
        lists: impl Iterator<Item = (PredicateId, Direction, u32, GraphScope<'s>)>,
    ) {
        let far: Vec<_> = lists
            .filter_map(|(p, d, key, scope)| Some((self.far_key(p.0, d, key)?, scope)))
            .collect();
        self.others.fetch(&far);
    }

    /// Fetches the numbers of edges that [`Edges::default_degree`](crate::Edges::default_degree) and
    /// [`Edges::named_degree`](crate::Edges::named_degree) will need, in one round.
    pub fn fetch_degrees(&self, of: impl Iterator<Item = (PredicateId, Direction, u32)>) {
        let far: Vec<_> = of
            .filter_map(|(p, d, key)| self.far_key(p.0, d, key))
            .collect();
        self.others.fetch_degrees(&far);
    }

    /// Fetches terms that [`TermDecoding::term`](crate::TermDecoding::term) will need for a batch of rows, in one
    /// round.
    pub fn fetch_terms(&self, ids: impl Iterator<Item = u32>) {
        // Every shard has the terms that updates added.
        let far: Vec<_> = ids
            .filter(|&id| id < FIRST_TAIL_ID)
            .filter_map(|id| Some((self.other_owner(id)?, id)))
            .collect();
        self.others.fetch_terms(&far);
    }
}
