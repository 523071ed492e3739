//! One query's access to the data of other shards.

use super::edges::Presence;
use super::{Blocks, ShardEdges};
use crate::segment::GraphScope;
use crate::statistics::Statistics;
use crate::{ObjectTerms, TermSource};
use jindou_model::{CancelToken, Direction, MemoryBudget, PredicateId, Result, Watch};
use std::sync::Arc;
use std::time::Instant;

/// Counts of a query's requests to other shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of times that the query waited for replies.
    pub rounds: u64,
    /// Number of messages; each has all requests of one round trip to one shard.
    pub messages: u64,
    /// Bytes of requests and replies, and bytes read directly from other servers' memory.
    pub bytes: u64,
    /// Number of lists that were read directly from other servers' memory, without a message.
    pub reads: u64,
}

/// A key of another shard, in the edges of one predicate in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FarKey {
    /// The shard that owns it.
    pub shard: u32,
    /// Dense predicate id.
    pub predicate: u32,
    /// The direction: the key is the edge's subject for `Out`, its object for `In`.
    pub direction: Direction,
    /// The key's id.
    pub key: u32,
}

/// A search for terms that contain words, on all shards.
#[derive(Clone, Copy, Debug)]
pub struct WordSearch<'a> {
    /// The words that terms must contain, separated as in a text.
    pub words: &'a str,
    /// True to search IRIs, false to search strings.
    pub iris: bool,
    /// The graphs in which an IRI must occur, or a string must be a label.
    pub scope: GraphScope<'a>,
    /// Dense ids of the predicates whose objects are labels.
    pub labels: &'a [u32],
    /// The deadline of the search.
    pub end: Instant,
}

/// A term that contains the words of a [`WordSearch`].
#[derive(Clone, Copy, Debug)]
pub struct FoundTerm<'a> {
    /// The shard that owns the term.
    pub shard: u32,
    /// The term's id.
    pub id: u32,
    /// The term's canonical bytes.
    pub canonical: &'a [u8],
    /// The vertices whose label the string is; empty for an IRI.
    pub subjects: &'a [u32],
}

/// The (neighbour, graph) pairs of a key, sorted.
pub type List = Arc<[(u32, u32)]>;

/// The other shards of a graph, as one query reads them: their bases, without changes by updates, since every shard has
/// the changes of all shards.
///
/// Each key is passed with the shard that owns it: [`Sharded`] and the views look the owners up row by row, and then
/// make one request here per batch. Data that cannot be read appears as an empty list, a 0, or a missing term. From
/// then on [`Watch::check`] returns the error, and everything that the query read is invalid.
pub trait OtherShards: TermSource + Watch {
    /// Access to the same shards for another query, which failures of this query do not affect.
    fn for_new_query(&self) -> Arc<dyn OtherShards>;

    /// Starts a query: its token ends every wait.
    fn begin(&self, cancel: &CancelToken);

    /// Charges cached data to a query's memory budget from now on. Later calls with another budget have no effect.
    fn charge_to(&self, memory: &MemoryBudget);

    /// From now on, [`Self::contains_many`] and lookups of terms use answers to earlier updates over the same base, and
    /// keep theirs for later ones; or no more. For net effects of updates: queries ask for too many edges.
    fn share_lookups(&self, shares: bool);

    /// Counts of the requests so far.
    fn traffic(&self) -> Traffic;

    /// The statistics of the whole store.
    fn statistics(&self) -> &Statistics;

    /// Appends the keys of all other shards that have an edge, shard by shard, each shard's keys ascending.
    fn far_keys(
        &self,
        p: PredicateId,
        direction: Direction,
        scope: GraphScope<'_>,
        out: &mut Vec<u32>,
    );

    /// Fetches the lists that [`Self::list`], [`Self::contains`] and [`Self::append_lists`] will need, in one round
    /// trip unless they are very long. `lists` may contain duplicates.
    fn fetch(&self, lists: &[(FarKey, GraphScope<'_>)]);

    /// The list of a key: from the cache if it was fetched, otherwise requested individually.
    fn list(&self, of: FarKey, scope: GraphScope<'_>) -> List;

    /// Returns true if an edge is in one of the scope's graphs.
    fn contains(&self, of: FarKey, neighbour: u32, scope: GraphScope<'_>) -> bool;

    /// Tests, in one round trip, which edges exist in the graphs of their scopes. The last field of an edge is its
    /// position in `there`, which must be false before the call.
    fn contains_many(&self, edges: &[(FarKey, u32, GraphScope<'_>, usize)], there: &mut [bool]);

    /// Appends the neighbours, each once, of distinct keys of one predicate in one direction to `more`, in few round
    /// trips. Returns the range of each key's list; `[1, 0]` for lists that did not fit into
    /// [`MAX_APPENDED`](super::MAX_APPENDED) ids. Neighbours outside the half-open interval in `within` may be missing.
    fn append_lists(
        &self,
        keys: &[FarKey],
        within: (GraphScope<'_>, [u32; 2]),
        more: &mut Vec<u32>,
    ) -> Vec<[u32; 2]>;

    /// Fetches the numbers of edges that [`Self::degrees`] will need, in one round trip. `keys` may contain duplicates.
    fn fetch_degrees(&self, keys: &[FarKey]);

    /// Numbers of edges of a key in the default graph and in named graphs: from the cache if they were fetched,
    /// otherwise requested individually.
    fn degrees(&self, of: FarKey) -> [u64; 2];

    /// Fetches the terms that [`TermSource`] will need, in one round trip, each given by the shard that owns it and its
    /// id. `ids` may contain duplicates.
    fn fetch_terms(&self, ids: &[(u32, u32)]);

    /// Caches terms that another shard sent with its answer: for each id in `ids` that this shard owns, one term in
    /// `bytes`, which ends at the position in `ends`. Terms that do not match their ids are ignored.
    fn keep_terms(&self, shard: u32, ids: &[u32], ends: &[u32], bytes: &[u8]);

    /// Sets `out` to the subjects in one graph that have the predicate, of all shards, ascending.
    fn graph_subjects(&self, graph: u32, predicate: PredicateId, out: &mut Vec<u32>);

    /// The predicates that occur in one graph on all shards, ascending.
    fn graph_predicates(&self, graph: u32) -> Vec<u32>;

    /// The most specific kind of terms that includes all objects of a predicate on all shards.
    fn object_terms(&self, p: PredicateId) -> ObjectTerms;

    /// Calls `take` with terms that contain the words. If it returns false, the search goes on with the next shard. A
    /// shard with a word index returns terms that have few other words first, in one round trip; another shard scans
    /// its terms and needs a round trip per 20 ms of scanning. Returns true if all matching terms were found.
    fn search_words(
        &self,
        asked: &WordSearch<'_>,
        take: &mut dyn FnMut(FoundTerm<'_>) -> bool,
    ) -> bool;

    /// Approximate number of occurrences of each vertex in all graphs, in one round trip; `None` for vertices that do
    /// not occur in the scope.
    fn uses(&self, vertices: &[u32], scope: GraphScope<'_>) -> Vec<Option<u64>>;

    /// Returns true if all shards of this process have a word index.
    fn has_word_index(&self) -> bool;

    /// Prepares the first search on the shards of this process, which would otherwise wait for this work, until `stop`
    /// returns true. Returns true once everything is prepared.
    fn prepare_search(&self, stop: &mut dyn FnMut() -> bool) -> bool;
}

/// One shard's number, and one query's access to the other shards.
#[derive(Clone, Debug)]
pub struct Sharded {
    number: u32,
    blocks: Arc<Blocks>,
    others: Arc<dyn OtherShards>,
}

impl Sharded {
    /// Creates a query's access to other shards for shard `number` of a store with these blocks.
    #[must_use]
    pub fn new(number: u32, blocks: Arc<Blocks>, others: Arc<dyn OtherShards>) -> Self {
        Self {
            number,
            blocks,
            others,
        }
    }

    /// The same shard's access for another query.
    #[must_use]
    pub fn for_new_query(&self) -> Self {
        Self {
            others: self.others.for_new_query(),
            ..self.clone()
        }
    }

    /// The number of this shard.
    #[inline]
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The block table, which has the owners of ids.
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

    /// Checks that all requests to other shards so far were answered. Callers must check before they use data that was
    /// read.
    ///
    /// # Errors
    /// [`Error::Shard`](jindou_model::Error::Shard) with the first shard that did not answer; the errors of the query's
    /// own time and memory limits.
    pub fn check(&self) -> Result<()> {
        self.others.check()
    }

    /// As [`OtherShards::charge_to`].
    pub fn charge_to(&self, memory: &MemoryBudget) {
        self.others.charge_to(memory);
    }

    /// As [`OtherShards::share_lookups`].
    pub fn share_lookups(&self, shares: bool) {
        self.others.share_lookups(shares);
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

    /// Tests for edges, given by key and neighbour, whether they exist in the graphs of their scope: in one round trip,
    /// or in two if several graphs are read and the patch removed an edge from some of them. `there[i]` becomes the
    /// result for edge `i`.
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

    /// The shard that owns an id; `None` if it is this shard, or the base does not contain the id.
    #[inline]
    fn other_owner(&self, id: u32) -> Option<u32> {
        let owner = u32::from(self.blocks.owner(id)?);
        (owner != self.number).then_some(owner)
    }

    /// The key for requests to other shards; `None` if this shard owns it, or the base does not contain it.
    #[inline]
    pub(super) fn far_key(&self, predicate: u32, direction: Direction, key: u32) -> Option<FarKey> {
        Some(FarKey {
            shard: self.other_owner(key)?,
            predicate,
            direction,
            key,
        })
    }

    /// Fetches lists of several predicates that [`Edges::read`](crate::Edges::read) and similar methods will need, in
    /// one round trip; called before the loop over a batch.
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
    /// [`Edges::named_degree`](crate::Edges::named_degree) will need, in one round trip.
    pub fn fetch_degrees(&self, of: impl Iterator<Item = (PredicateId, Direction, u32)>) {
        let far: Vec<_> = of
            .filter_map(|(p, d, key)| self.far_key(p.0, d, key))
            .collect();
        self.others.fetch_degrees(&far);
    }

    /// Fetches the terms that [`TermDecoding::term`](crate::TermDecoding::term) will need for a batch of rows, in one
    /// round trip.
    pub fn fetch_terms(&self, ids: impl Iterator<Item = u32>) {
        // Of the terms that updates added, owners have those that are merged.
        let far: Vec<_> = ids
            .filter_map(|id| Some((self.other_owner(id)?, id)))
            .collect();
        self.others.fetch_terms(&far);
    }
}
