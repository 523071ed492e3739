//! Requests between shards: batches of keys, and columns of answers. They are plain data, so that a protocol can
//! serialise them.

use jindou_graph::segment::GraphScope;
use jindou_graph::shard::{Blocks, Far};
use jindou_model::{CancelToken, Direction, Error, Result};
use std::borrow::Cow;
use std::time::Instant;

/// The graphs of a request: a [`GraphScope`] that can be sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestGraphs {
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

impl RequestGraphs {
    /// The graphs of a scope.
    #[must_use]
    pub fn from_scope(scope: GraphScope<'_>) -> Self {
        match scope {
            GraphScope::Default => Self::Default,
            GraphScope::Named(g) => Self::Named(g),
            GraphScope::AnyNamed => Self::AnyNamed,
            GraphScope::Union => Self::Union,
            GraphScope::Set(gs) => Self::Set(gs.to_vec()),
        }
    }

    /// The scope of these graphs.
    #[must_use]
    pub fn scope(&self) -> GraphScope<'_> {
        match self {
            Self::Default => GraphScope::Default,
            Self::Named(g) => GraphScope::Named(*g),
            Self::AnyNamed => GraphScope::AnyNamed,
            Self::Union => GraphScope::Union,
            Self::Set(gs) => GraphScope::Set(gs),
        }
    }
}

/// A batch of requests to one shard. Keys and vertices are ids of the whole store that the shard owns; others result in
/// an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardRequest {
    /// Neighbour lists of keys: [`Reply::Lists`], or [`Reply::Runs`] of merged ones.
    Lists {
        /// Dense predicate id.
        predicate: u32,
        /// The end of the edges that is the key.
        direction: Direction,
        /// Graphs of the edges.
        graphs: RequestGraphs,
        /// True for each neighbour once, without its graph; false for each (neighbour, graph).
        merged: bool,
        /// Distinct keys in any order.
        keys: Vec<u32>,
        /// Only neighbours from the first of these ids on and below the second;
        /// [`EVERYTHING`](jindou_graph::shard::EVERYTHING) for all.
        within: [u32; 2],
        /// Number of neighbours after which no further list is begun; the first list is always whole.
        most: u32,
    },
    /// Existence of edges: [`Reply::There`].
    Contains {
        /// Dense predicate id.
        predicate: u32,
        /// The end of the edges that is the key.
        direction: Direction,
        /// Graphs of the edges.
        graphs: RequestGraphs,
        /// One end of each edge.
        keys: Vec<u32>,
        /// The other end of each edge.
        neighbours: Vec<u32>,
    },
    /// Numbers of edges of keys: [`Reply::Degrees`].
    Degrees {
        /// Dense predicate id.
        predicate: u32,
        /// The end of the edges that is the key.
        direction: Direction,
        /// Keys, possibly repeated.
        keys: Vec<u32>,
    },
    /// The vertices that have an edge: [`Reply::Ids`], ascending.
    Keys {
        /// Dense predicate id.
        predicate: u32,
        /// The end of the edges that is the key.
        direction: Direction,
        /// Graphs of the edges.
        graphs: RequestGraphs,
        /// Smallest id to return.
        from: u32,
        /// Most ids to return.
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
        /// Ids of terms, possibly repeated.
        ids: Vec<u32>,
    },
    /// Ids of terms: [`Reply::Ids`], 0 for a term that the shard does not have.
    Lookup {
        /// End of each term in the bytes.
        ends: Vec<u32>,
        /// Canonical bytes, one term after the other.
        bytes: Vec<u8>,
    },
    /// As [`Self::Lookup`], for the few constants of a query: [`Reply::Found`].
    Find {
        /// End of each term in the bytes.
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
    /// Asks which kinds of terms a predicate's objects on the shard are: [`Reply::Objects`].
    ObjectTerms {
        /// Dense predicate id.
        predicate: u32,
    },
    /// The shard's own terms that match words, those with few words first: [`Reply::Words`].
    Words {
        /// The words, as text.
        words: Vec<u8>,
        /// True for IRIs, false for strings.
        iris: bool,
        /// The graphs in which a resource has to occur, or a string has to be a label.
        graphs: RequestGraphs,
        /// Dense ids of the predicates whose objects are labels.
        labels: Vec<u32>,
        /// 0, or where the last answer ended.
        from: u64,
        /// Time limit in microseconds.
        micros: u32,
    },
    /// About how often vertices occur: [`Reply::Uses`].
    Uses {
        /// The graphs in which they have to occur.
        graphs: RequestGraphs,
        /// Ids of the vertices.
        vertices: Vec<u32>,
    },
    /// A message to the part of the shard that runs queries ([`Posts`](jindou_graph::shard::Posts)): [`Reply::Post`].
    Post(Vec<u8>),
    /// The shard's result of the last merge: [`Reply::Post`].
    MergeResult,
    /// The summary of a segment of the default graph, for reading its lists: [`Reply::Post`].
    Summary {
        /// Dense predicate id.
        predicate: u32,
        /// The end of the edges that is the key.
        direction: Direction,
    },
}

/// The answer to a [`ShardRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Lists for as many of the keys as fitted into the reply, in their order.
    Lists {
        /// End of each list.
        ends: Vec<u32>,
        /// Sorted in each list.
        neighbours: Vec<u32>,
        /// The graph of each neighbour; empty if the lists were merged.
        graphs: Vec<u32>,
    },
    /// Merged lists with mostly consecutive neighbours, for as many of the keys as fitted into the reply, in their
    /// order.
    Runs {
        /// End of each list's runs.
        ends: Vec<u32>,
        /// The first id of a run, and how many follow consecutively; ascending in each list.
        runs: Vec<[u32; 2]>,
    },
    /// 1 for each edge that exists, else 0.
    There(Vec<u8>),
    /// Numbers of edges of each key.
    Degrees {
        /// Edges in the default graph.
        default: Vec<u64>,
        /// Edges in named graphs, each counted once per graph.
        named: Vec<u64>,
    },
    /// Ids, or dense predicate ids.
    Ids {
        /// The ids.
        ids: Vec<u32>,
        /// True if there are more ids after the last one.
        more: bool,
    },
    /// Ids, 0 for a term that the shard does not have, and the edge counts of those that it owns.
    Found {
        /// The id of each term.
        ids: Vec<u32>,
        /// End of each term's edges; equal to the previous end if they were not counted.
        ends: Vec<u32>,
        /// Twice the dense predicate id, plus 1 for incoming edges.
        predicates: Vec<u32>,
        /// Edges in the default graph.
        default: Vec<u64>,
        /// Edges in named graphs, each counted once per graph.
        named: Vec<u64>,
    },
    /// Dense predicate ids of each vertex.
    Predicates {
        /// End of each vertex's list.
        ends: Vec<u32>,
        /// Ascending in each list.
        predicates: Vec<u32>,
    },
    /// Terms of ids.
    Terms {
        /// End of each term; only an unknown term is empty.
        ends: Vec<u32>,
        /// Canonical bytes, one term after the other.
        bytes: Vec<u8>,
    },
    /// 0: anything; 1: IRIs, blank nodes and plain texts; 2: IRIs and blank nodes.
    Objects(u8),
    /// Terms that have the words.
    Words {
        /// The id of each term.
        ids: Vec<u32>,
        /// End of each term.
        ends: Vec<u32>,
        /// Canonical bytes, one term after the other.
        bytes: Vec<u8>,
        /// End of each term's subjects.
        subject_ends: Vec<u32>,
        /// The vertices that a string is a label of; none for an IRI.
        subjects: Vec<u32>,
        /// True if terms or subjects were left out.
        cut: bool,
        /// True if the search was interrupted before all terms were examined, to let other requests proceed.
        more: bool,
        /// Position at which to continue.
        next: u64,
    },
    /// How often vertices occur.
    Uses {
        /// 1 for each vertex that occurs in the graphs, else 0.
        seen: Vec<u8>,
        /// About how often each occurs in all graphs.
        uses: Vec<u64>,
    },
    /// The receiver's answer to a message.
    Post(Vec<u8>),
}

impl ShardRequest {
    /// Bytes of the columns, for statistics.
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
            Self::Words { words, labels, .. } => words.len() + 4 * labels.len(),
            Self::Uses { vertices, .. } => 4 * vertices.len(),
            Self::Post(bytes) => bytes.len(),
            Self::Keys { .. }
            | Self::GraphSubjects { .. }
            | Self::GraphPredicates { .. }
            | Self::ObjectTerms { .. }
            | Self::MergeResult
            | Self::Summary { .. } => 0,
        };
        (HEAD + columns) as u64
    }
}

impl Reply {
    /// Bytes of the columns, for statistics.
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
            Self::Words {
                ids,
                ends,
                bytes,
                subject_ends,
                subjects,
                ..
            } => {
                4 * (ids.len() + ends.len() + subject_ends.len() + subjects.len())
                    + bytes.len()
                    + 10
            }
            Self::Uses { seen, uses } => seen.len() + 8 * uses.len(),
            Self::Post(bytes) => bytes.len(),
        };
        columns as u64
    }
}

/// Time limit of one message's searches, which are executed one after the other: each gets an equal share of the
/// remaining time.
pub struct SearchTurns {
    begun: Instant,
    left: u32,
}

impl SearchTurns {
    /// The turns of a message's requests, from now on.
    pub fn new<'r>(requests: impl Iterator<Item = &'r ShardRequest>) -> Self {
        let searches = requests.filter(|r| matches!(r, ShardRequest::Words { .. }));
        Self {
            begun: Instant::now(),
            left: searches.count() as u32,
        }
    }

    /// The next request, with its part of the time.
    pub fn next<'r>(&mut self, request: &'r ShardRequest) -> Cow<'r, ShardRequest> {
        let ShardRequest::Words { micros, .. } = request else {
            return Cow::Borrowed(request);
        };
        let gone = u32::try_from(self.begun.elapsed().as_micros()).unwrap_or(u32::MAX);
        let part = micros.saturating_sub(gone) / self.left.max(1);
        self.left = self.left.saturating_sub(1);
        let mut own = request.clone();
        if let ShardRequest::Words { micros, .. } = &mut own {
            *micros = part;
        }
        Cow::Owned(own)
    }
}

/// The client for the other shards of a store: requests for their data, and [`Far`]'s messages.
pub trait ShardClient: Far {
    /// Sends every request to its shard, and waits for all replies, which are returned in the order of the requests.
    /// Requests for one shard are one message. Replies are not trusted: the caller checks that they fit. The wait ends
    /// when the query's token says so; a shard that goes silent ends it sooner.
    ///
    /// # Errors
    /// [`Error::Shard`] with the first shard that did not answer, and the reason; the token's [`Error::Cancelled`] and
    /// [`Error::Timeout`].
    fn ask(&self, requests: &[(u32, ShardRequest)], cancel: &CancelToken) -> Result<Vec<Reply>>;

    /// Answers a request by reading the shard's memory directly, if that is possible and faster. `None` if a message
    /// must be sent. `blocks` are the store's.
    fn read(
        &self,
        blocks: &Blocks,
        shard: u32,
        request: &ShardRequest,
        cancel: &CancelToken,
    ) -> Option<Reply> {
        let _ = (blocks, shard, request, cancel);
        None
    }

    /// True if all shards of this process have an index of words.
    fn has_word_index(&self) -> bool {
        false
    }

    /// Lets the shards of this process do the work that their first search would wait for, until `stop` returns true.
    /// Returns true once nothing is left to do.
    fn prepare_search(&self, stop: &mut dyn FnMut() -> bool) -> bool {
        let _ = stop;
        true
    }
}

/// [`Far::post`] in terms of [`ShardClient::ask`], for every client.
///
/// # Errors
/// As [`ShardClient::ask`]; [`Error::Shard`] for replies that do not answer a message.
pub fn post(
    client: &impl ShardClient,
    messages: Vec<(u32, Vec<u8>)>,
    cancel: &CancelToken,
) -> Result<Vec<Vec<u8>>> {
    post_through(messages, |requests| client.ask(requests, cancel))
}

/// As [`post`], through a function in place of [`ShardClient::ask`].
///
/// # Errors
/// As [`post`].
pub(crate) fn post_through(
    messages: Vec<(u32, Vec<u8>)>,
    ask: impl FnOnce(&[(u32, ShardRequest)]) -> Result<Vec<Reply>>,
) -> Result<Vec<Vec<u8>>> {
    let requests: Vec<(u32, ShardRequest)> = messages
        .into_iter()
        .map(|(shard, message)| (shard, ShardRequest::Post(message)))
        .collect();
    let Some(&(first, _)) = requests.first() else {
        return Ok(Vec::new());
    };
    let unfit = |shard| Error::Shard {
        shard,
        message: "its answer does not match its request".into(),
    };
    let replies = ask(&requests)?;
    if replies.len() != requests.len() {
        return Err(unfit(first));
    }
    let answer = |((shard, _), reply): (&(u32, ShardRequest), Reply)| match reply {
        Reply::Post(answer) => Ok(answer),
        _ => Err(unfit(*shard)),
    };
    requests.iter().zip(replies).map(answer).collect()
}
