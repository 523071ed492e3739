//! Requests of shards to one another: batches of keys, columns of answers. Plain data, so that a wire can frame it.

use jindou_graph::segment::Scope;
use jindou_graph::shard::{Blocks, Far};
use jindou_model::{CancelToken, Direction, Error, Result};

/// The graphs that a request is about: a [`Scope`] that can be sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Graphs {
    /// The default graph only.
    Default,
    /// One named graph.
    Named(u32),
    /// Every named graph.
    AnyNamed,
    /// The default graph and every named one.
    Union,
    /// Several graphs, ascending; 0 for the default graph.
    Set(Vec<u32>),
}

impl Graphs {
    /// The graphs of a scope.
    #[must_use]
    pub fn from_scope(scope: Scope<'_>) -> Self {
        match scope {
            Scope::Default => Self::Default,
            Scope::Named(g) => Self::Named(g),
            Scope::AnyNamed => Self::AnyNamed,
            Scope::Union => Self::Union,
            Scope::Set(gs) => Self::Set(gs.to_vec()),
        }
    }

    /// The scope of these graphs.
    #[must_use]
    pub fn scope(&self) -> Scope<'_> {
        match self {
            Self::Default => Scope::Default,
            Self::Named(g) => Scope::Named(*g),
            Self::AnyNamed => Scope::AnyNamed,
            Self::Union => Scope::Union,
            Self::Set(gs) => Scope::Set(gs),
        }
    }
}

/// A batch for one shard. Keys and vertices are ids of the whole store that the shard owns; anything else is answered with an
/// error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Neighbour lists of keys: [`Reply::Lists`], or [`Reply::Runs`] of merged ones.
    Lists {
        /// Dense predicate id.
        predicate: u32,
        /// The end that is the key.
        direction: Direction,
        /// Edges of which graphs.
        graphs: Graphs,
        /// Each neighbour once, without its graph; else each (neighbour, graph).
        merged: bool,
        /// Distinct, in any order.
        keys: Vec<u32>,
        /// Neighbours from the first of these ids on and below the second; [`EVERYTHING`](jindou_graph::shard::EVERYTHING) for all.
        within: [u32; 2],
        /// Neighbours after which no further list is begun; the first one is always whole.
        most: u32,
    },
    /// Whether edges are there: [`Reply::There`].
    Contains {
        /// Dense predicate id.
        predicate: u32,
        /// The end that is the key.
        direction: Direction,
        /// Edges of which graphs.
        graphs: Graphs,
        /// One end of each edge.
        keys: Vec<u32>,
        /// The other end of each.
        neighbours: Vec<u32>,
    },
    /// Numbers of edges of keys: [`Reply::Degrees`].
    Degrees {
        /// Dense predicate id.
        predicate: u32,
        /// The end that is the key.
        direction: Direction,
        /// Keys, each once or more.
        keys: Vec<u32>,
    },
    /// The vertices that have an edge: [`Reply::Ids`], ascending.
    Keys {
        /// Dense predicate id.
        predicate: u32,
        /// The end that is the key.
        direction: Direction,
        /// Edges of which graphs.
        graphs: Graphs,
        /// Ids below are left out.
        from: u32,
        /// Ids at most.
        most: u32,
    },
    /// The predicates of vertices: [`Reply::Predicates`].
    Predicates {
        /// Edges that leave or enter.
        direction: Direction,
        /// The vertices.
        vertices: Vec<u32>,
    },
    /// The canonical bytes of terms: [`Reply::Terms`].
    Terms {
        /// Ids of terms, each once or more.
        ids: Vec<u32>,
    },
    /// Ids of terms: [`Reply::Ids`], 0 for a term that the shard does not have.
    Lookup {
        /// Where each term ends in the bytes.
        ends: Vec<u32>,
        /// Canonical bytes, one term after the other.
        bytes: Vec<u8>,
    },
    /// As [`Self::Lookup`], of the few constants of a query: [`Reply::Found`].
    Find {
        /// Where each term ends in the bytes.
        ends: Vec<u32>,
        /// Canonical bytes, one term after the other.
        bytes: Vec<u8>,
    },
    /// The shard's subjects of one graph with a predicate: [`Reply::Ids`], ascending.
    GraphSubjects {
        /// The graph.
        graph: u32,
        /// Dense predicate id.
        predicate: u32,
    },
    /// The predicates of the shard's subjects in one graph: [`Reply::Ids`], ascending.
    GraphPredicates {
        /// The graph.
        graph: u32,
    },
    /// The kind of terms that all of the shard's objects of a predicate belong to: [`Reply::Objects`].
    ObjectTerms {
        /// Dense predicate id.
        predicate: u32,
    },
    /// A message to the part of the shard that runs queries ([`Posts`](jindou_graph::shard::Posts)): [`Reply::Post`].
    Post(Vec<u8>),
}

/// The answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Lists, for as many of the keys as there was room for, in their order.
    Lists {
        /// Where each list ends.
        ends: Vec<u32>,
        /// Sorted in each list.
        neighbours: Vec<u32>,
        /// The graph of each neighbour; empty if they were merged.
        graphs: Vec<u32>,
    },
    /// Merged lists whose neighbours mostly follow one another, for as many of the keys as there was room for, in their order.
    Runs {
        /// Where the runs of each list end.
        ends: Vec<u32>,
        /// The first id, and how many follow one another from it on; ascending in each list.
        runs: Vec<[u32; 2]>,
    },
    /// 1 for each edge that is there, else 0.
    There(Vec<u8>),
    /// Edges of each key.
    Degrees {
        /// In the default graph.
        default: Vec<u64>,
        /// In named graphs, an edge once for each graph.
        named: Vec<u64>,
    },
    /// Ids, or dense predicate ids.
    Ids {
        /// The ids.
        ids: Vec<u32>,
        /// Whether there are more, from the last one on.
        more: bool,
    },
    /// Ids, 0 for a term that the shard does not have, and the numbers of edges of those that it owns.
    Found {
        /// Of each term.
        ids: Vec<u32>,
        /// Where the edges of each term end; as for the term before where they were not counted.
        ends: Vec<u32>,
        /// Twice the dense predicate id, and 1 for edges that enter.
        predicates: Vec<u32>,
        /// Edges in the default graph.
        default: Vec<u64>,
        /// In named graphs, an edge once for each graph.
        named: Vec<u64>,
    },
    /// Dense predicate ids of each vertex.
    Predicates {
        /// Where each vertex' list ends.
        ends: Vec<u32>,
        /// Ascending in each list.
        predicates: Vec<u32>,
    },
    /// Terms of ids.
    Terms {
        /// Where each term ends; an unknown one, and no other, is empty.
        ends: Vec<u32>,
        /// Canonical bytes, one term after the other.
        bytes: Vec<u8>,
    },
    /// 0 anything, 1 IRIs, blank nodes and plain texts, 2 IRIs and blank nodes.
    Objects(u8),
    /// The receiver's answer to a message.
    Post(Vec<u8>),
}

impl Request {
    /// Bytes of the columns, for counting.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        const HEAD: usize = 16;
        let columns = match self {
            Self::Lists { keys, .. } => 4 * keys.len() + 8,
            Self::Degrees { keys, .. } => 4 * keys.len(),
            Self::Contains {
                keys, neighbours, ..
            } => 4 * (keys.len() + neighbours.len()),
            Self::Predicates { vertices: ids, .. } | Self::Terms { ids } => 4 * ids.len(),
            Self::Lookup { ends, bytes } | Self::Find { ends, bytes } => {
                4 * ends.len() + bytes.len()
            }
            Self::Post(bytes) => bytes.len(),
            Self::Keys { .. }
            | Self::GraphSubjects { .. }
            | Self::GraphPredicates { .. }
            | Self::ObjectTerms { .. } => 0,
        };
        (HEAD + columns) as u64
    }
}

impl Reply {
    /// Bytes of the columns, for counting.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let columns = match self {
            Self::Lists {
                ends,
                neighbours,
                graphs,
            } => 4 * (ends.len() + neighbours.len() + graphs.len()),
            Self::Runs { ends, runs } => 4 * ends.len() + 8 * runs.len(),
            Self::There(there) => there.len(),
            Self::Degrees { default, named } => 8 * (default.len() + named.len()),
            Self::Ids { ids, .. } => 4 * ids.len(),
            Self::Found {
                ids,
                ends,
                predicates,
                default,
                named,
            } => {
                4 * (ids.len() + ends.len() + predicates.len()) + 8 * (default.len() + named.len())
            }
            Self::Predicates { ends, predicates } => 4 * (ends.len() + predicates.len()),
            Self::Terms { ends, bytes } => 4 * ends.len() + bytes.len(),
            Self::Objects(_) => 1,
            Self::Post(bytes) => bytes.len(),
        };
        columns as u64
    }
}

/// The client of the other shards of a store: requests for their data, and [`Far`]'s messages.
pub trait ShardClient: Far {
    /// Sends every request to its shard, and waits for all replies, which come in the order of the requests. Requests for one
    /// shard are one message. What comes back is not trusted: whoever asked looks whether it fits. The wait ends when the query's
    /// token says so; a shard that goes silent ends it sooner.
    ///
    /// # Errors
    /// [`Error::Shard`] with the first shard that did not answer, and why; the token's [`Error::Cancelled`] and [`Error::Timeout`].
    fn ask(&self, requests: &[(u32, Request)], cancel: &CancelToken) -> Result<Vec<Reply>>;

    /// The reply to a request, without asking the shard for it: where its memory can be read from here, and that is quicker. `None` where
    /// it has to be asked. `blocks` are the store's.
    fn read(
        &self,
        blocks: &Blocks,
        shard: u32,
        request: &Request,
        cancel: &CancelToken,
    ) -> Option<Reply> {
        let _ = (blocks, shard, request, cancel);
        None
    }
}

/// [`Far::post`] by way of [`ShardClient::ask`], as every client has it.
///
/// # Errors
/// As [`ShardClient::ask`]; [`Error::Shard`] for replies that answer no message.
pub fn post(
    client: &impl ShardClient,
    messages: Vec<(u32, Vec<u8>)>,
    cancel: &CancelToken,
) -> Result<Vec<Vec<u8>>> {
    let requests: Vec<(u32, Request)> = messages
        .into_iter()
        .map(|(shard, message)| (shard, Request::Post(message)))
        .collect();
    let Some(&(first, _)) = requests.first() else {
        return Ok(Vec::new());
    };
    let unfit = |shard| Error::Shard {
        shard,
        message: "its answer does not match its request".into(),
    };
    let replies = client.ask(&requests, cancel)?;
    if replies.len() != requests.len() {
        return Err(unfit(first));
    }
    let answer = |((shard, _), reply): (&(u32, Request), Reply)| match reply {
        Reply::Post(answer) => Ok(answer),
        _ => Err(unfit(*shard)),
    };
    requests.iter().zip(replies).map(answer).collect()
}
