//! Requests to shards and replies: batches of keys, and columns of results. They are plain data, so that they can be
//! serialised.

use super::Lookups;
use jindou_graph::segment::GraphScope;
use jindou_graph::shard::{Blocks, Far};
use jindou_model::{CancelToken, Direction, Error, Result};
use std::borrow::Cow;
use std::time::Instant;

/// The graphs of a request: an owned form of [`GraphScope`].
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
    /// Several graphs, ascending; 0 stands for the default graph.
    Set(Vec<u32>),
}

impl RequestGraphs {
    /// Converts a scope.
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

    /// The scope that these graphs stand for.
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

/// A batch of requests to one shard. Keys and vertices are ids in the numbering of the whole store. The shard must own
/// them, otherwise it replies with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardRequest {
    /// Neighbour lists of keys. Reply: [`Reply::Lists`], or [`Reply::Runs`] if `merged`.
    Lists {
        /// Dense predicate id.
        predicate: u32,
        /// Direction of the edges from the key: `Out` if the key is the subject, `In` if it is the object.
        direction: Direction,
        /// Graphs of the edges.
        graphs: RequestGraphs,
        /// True for each neighbour once, without its graphs; false for pairs (neighbour, graph).
        merged: bool,
        /// Distinct keys in any order.
        keys: Vec<u32>,
        /// Half-open interval of the neighbours to return; [`EVERYTHING`](jindou_graph::shard::EVERYTHING) for all.
        within: [u32; 2],
        /// Limit for the number of neighbours: no further list is started that would exceed it. The first list is
        /// always complete.
        most: u32,
    },
    /// Existence of edges. Reply: [`Reply::There`].
    Contains {
        /// Dense predicate id.
        predicate: u32,
        /// Direction of the edges from the key: `Out` if the key is the subject, `In` if it is the object.
        direction: Direction,
        /// Graphs of the edges.
        graphs: RequestGraphs,
        /// The key of each edge.
        keys: Vec<u32>,
        /// The neighbour of each edge.
        neighbours: Vec<u32>,
    },
    /// Edge counts of keys. Reply: [`Reply::Degrees`].
    Degrees {
        /// Dense predicate id.
        predicate: u32,
        /// Direction of the edges from the key: `Out` if the key is the subject, `In` if it is the object.
        direction: Direction,
        /// Keys, possibly repeated.
        keys: Vec<u32>,
    },
    /// The vertices that are keys of the predicate. Reply: [`Reply::Ids`], ascending.
    Keys {
        /// Dense predicate id.
        predicate: u32,
        /// Direction of the edges from the key: `Out` if the key is the subject, `In` if it is the object.
        direction: Direction,
        /// Graphs of the edges.
        graphs: RequestGraphs,
        /// Smallest id to return.
        from: u32,
        /// Largest number of ids to return.
        most: u32,
    },
    /// The predicates of vertices. Reply: [`Reply::Predicates`].
    Predicates {
        /// Direction of the edges: `Out` if they leave the vertices, `In` if they enter them.
        direction: Direction,
        /// The vertices.
        vertices: Vec<u32>,
    },
    /// The canonical bytes of terms. Reply: [`Reply::Terms`].
    Terms {
        /// Ids of terms, possibly repeated.
        ids: Vec<u32>,
    },
    /// Ids of terms. Reply: [`Reply::Ids`], with 0 for a term that the shard does not have.
    Lookup {
        /// End of each term in `bytes`.
        ends: Vec<u32>,
        /// Canonical bytes of the terms, concatenated.
        bytes: Vec<u8>,
    },
    /// As [`Self::Lookup`], for the few constants of a query. Reply: [`Reply::Found`].
    Find {
        /// End of each term in `bytes`.
        ends: Vec<u32>,
        /// Canonical bytes of the terms, concatenated.
        bytes: Vec<u8>,
    },
    /// The shard's subjects that have the predicate in one graph. Reply: [`Reply::Ids`], ascending.
    GraphSubjects {
        /// Id of the graph.
        graph: u32,
        /// Dense predicate id.
        predicate: u32,
    },
    /// The predicates of the shard's subjects in one graph. Reply: [`Reply::Ids`], ascending.
    GraphPredicates {
        /// Id of the graph.
        graph: u32,
    },
    /// The kinds of terms that are objects of a predicate on the shard. Reply: [`Reply::Objects`].
    ObjectTerms {
        /// Dense predicate id.
        predicate: u32,
    },
    /// The shard's own terms that match words, those with few words first. Reply: [`Reply::Words`].
    Words {
        /// The words, as UTF-8 text.
        words: Vec<u8>,
        /// True to search IRIs, false to search strings.
        iris: bool,
        /// Graphs in which an IRI must occur, or a string must be a label.
        graphs: RequestGraphs,
        /// Dense ids of the predicates whose objects are labels.
        labels: Vec<u32>,
        /// Position at which the search continues: 0, or `next` of the last reply.
        from: u64,
        /// Time limit in microseconds.
        micros: u32,
    },
    /// Approximate numbers of occurrences of vertices. Reply: [`Reply::Uses`].
    Uses {
        /// Graphs in which the vertices must occur.
        graphs: RequestGraphs,
        /// Ids of the vertices.
        vertices: Vec<u32>,
    },
    /// A message to the service that evaluates parts of queries ([`Posts`](jindou_graph::shard::Posts)). Reply:
    /// [`Reply::Post`].
    Post(Vec<u8>),
    /// The shard's result of the last merge. Reply: [`Reply::Post`].
    MergeResult,
    /// The summary of a segment (default graph), with which its lists can be read from memory. Reply: [`Reply::Post`].
    Summary {
        /// Dense predicate id.
        predicate: u32,
        /// Direction of the edges from the key: `Out` if the key is the subject, `In` if it is the object.
        direction: Direction,
    },
}

/// The answer to a [`ShardRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Neighbour lists of the first keys of the request, as many as fit into the reply.
    Lists {
        /// End of each list in `neighbours`.
        ends: Vec<u32>,
        /// The neighbours, sorted in each list.
        neighbours: Vec<u32>,
        /// The graph of each neighbour; empty if the lists were merged.
        graphs: Vec<u32>,
    },
    /// As [`Self::Lists`], for merged lists whose neighbours are mostly consecutive.
    Runs {
        /// End of each list's runs in `runs`.
        ends: Vec<u32>,
        /// The first id of each run, and the number of consecutive ids that follow; ascending in each list.
        runs: Vec<[u32; 2]>,
    },
    /// 1 for each edge that exists, 0 for the others.
    There(Vec<u8>),
    /// Edge counts of each key.
    Degrees {
        /// Edges in the default graph.
        default: Vec<u64>,
        /// Edges in named graphs, each counted once per graph.
        named: Vec<u64>,
    },
    /// Ids of vertices or terms, or dense predicate ids.
    Ids {
        /// The ids.
        ids: Vec<u32>,
        /// True if there are more ids after the last one.
        more: bool,
    },
    /// Ids of terms, and edge counts of those that the shard owns.
    Found {
        /// The id of each term; 0 for a term that the shard does not have.
        ids: Vec<u32>,
        /// End of each term's edge counts in the following columns; equal to the previous end if the edges were not
        /// counted.
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
        /// End of each vertex's predicates in `predicates`.
        ends: Vec<u32>,
        /// The predicate ids, ascending for each vertex.
        predicates: Vec<u32>,
    },
    /// Canonical bytes of terms.
    Terms {
        /// End of each term in `bytes`. A term is empty only if it is unknown.
        ends: Vec<u32>,
        /// Canonical bytes of the terms, concatenated.
        bytes: Vec<u8>,
    },
    /// Kinds of objects. 0: any terms; 1: IRIs, blank nodes and plain strings; 2: IRIs and blank nodes.
    Objects(u8),
    /// Terms that match the words.
    Words {
        /// The id of each term.
        ids: Vec<u32>,
        /// End of each term in `bytes`.
        ends: Vec<u32>,
        /// Canonical bytes of the terms, concatenated.
        bytes: Vec<u8>,
        /// End of each term's subjects in `subjects`.
        subject_ends: Vec<u32>,
        /// The vertices that have the string as a label; empty for an IRI.
        subjects: Vec<u32>,
        /// True if some terms or subjects were left out.
        cut: bool,
        /// True if the search was interrupted before all terms were examined, so that other requests can proceed.
        more: bool,
        /// Position at which an interrupted search continues.
        next: u64,
    },
    /// Occurrences of vertices.
    Uses {
        /// 1 for each vertex that occurs in the requested graphs, 0 for the others.
        seen: Vec<u8>,
        /// Approximate number of occurrences of each vertex in all graphs.
        uses: Vec<u64>,
    },
    /// The encoded answer to a message.
    Post(Vec<u8>),
}

impl ShardRequest {
    /// Approximate size of the columns in bytes, for statistics.
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
    /// Approximate size of the columns in bytes, for statistics.
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

/// Time limits for the searches in one message, which are executed one after another. Each search gets an equal share
/// of the remaining time.
pub struct SearchTurns {
    begun: Instant,
    left: u32,
}

impl SearchTurns {
    /// Starts the time for the searches among a message's requests.
    pub fn new<'r>(requests: impl Iterator<Item = &'r ShardRequest>) -> Self {
        let searches = requests.filter(|r| matches!(r, ShardRequest::Words { .. }));
        Self {
            begun: Instant::now(),
            left: searches.count() as u32,
        }
    }

    /// The request with its share of the remaining time, if it is a search; other requests are unchanged.
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

/// The client with which a query reads the other shards of a store: sends requests, and the messages of [`Far`].
pub trait ShardClient: Far {
    /// Sends every request to its shard, and waits for all replies, which are returned in the order of the requests.
    /// All requests for one shard are sent in one message. The content of replies is not verified: the caller must
    /// check that they match the requests. The wait ends at the latest when the query's token expires, or earlier if a
    /// shard stops responding.
    ///
    /// # Errors
    /// [`Error::Shard`] with the first shard that did not answer, and the reason; [`Error::Cancelled`] and
    /// [`Error::Timeout`] from the token.
    fn ask(&self, requests: &[(u32, ShardRequest)], cancel: &CancelToken) -> Result<Vec<Reply>>;

    /// Answers a request by reading the shard's memory directly, if that is possible and faster than a message;
    /// otherwise `None`. `blocks` are those of the store.
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

    /// Answers about the client's base that are kept beyond a query; `None` where requests cost no messages.
    fn lookups(&self) -> Option<&Lookups> {
        None
    }

    /// True if all shards of this process have a word index.
    fn has_word_index(&self) -> bool {
        false
    }

    /// Does the work that the first search at this process's shards would wait for, until `stop` returns true. Returns
    /// true once no such work is left.
    fn prepare_search(&self, stop: &mut dyn FnMut() -> bool) -> bool {
        let _ = stop;
        true
    }
}

/// Implements [`Far::post`] with [`ShardClient::ask`], for any client.
///
/// # Errors
/// As [`ShardClient::ask`]; [`Error::Shard`] for a reply of the wrong kind.
pub fn post(
    client: &impl ShardClient,
    messages: Vec<(u32, Vec<u8>)>,
    cancel: &CancelToken,
) -> Result<Vec<Vec<u8>>> {
    post_through(messages, |requests| client.ask(requests, cancel))
}

/// As [`post`], with a function instead of [`ShardClient::ask`].
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
    let fail_invalid_reply = |shard| Error::shard(shard, "its answer does not match its request");
    let replies = ask(&requests)?;
    if replies.len() != requests.len() {
        return Err(fail_invalid_reply(first));
    }
    let answer = |((shard, _), reply): (&(u32, ShardRequest), Reply)| match reply {
        Reply::Post(answer) => Ok(answer),
        _ => Err(fail_invalid_reply(*shard)),
    };
    requests.iter().zip(replies).map(answer).collect()
}
