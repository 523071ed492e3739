//! A query's session with a sharded store: its requests, the data received, and the first failure.

mod terms;

use super::cache::{ListName, SessionCache};
use super::{Lookups, Reply, RequestGraphs, ShardClient, ShardRequest};
use jindou_graph::Graph;
use jindou_graph::ObjectTerms;
use jindou_graph::segment::GraphScope;
use jindou_graph::shard::{
    Blocks, EVERYTHING, FarKey, FoundTerm, List, OtherShards, Traffic, WordSearch,
};
use jindou_graph::statistics::Statistics;
use jindou_model::sync::lock;
use jindou_model::{CancelToken, Direction, Error, MemoryBudget, PredicateId, Result, Watch};
use jindou_store::shard::{OwnData, PAGE};
use jindou_store::{Base, Snapshot};
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// One shard's base and the connections to the other shards, for one query. A failure is permanent: [`Self::check`]
/// returns it from then on, and all data that the query has read is invalid. The next query uses another session.
pub struct ShardSession {
    base: Arc<Base>,
    client: Arc<dyn ShardClient>,
    failed: AtomicBool,
    /// The reason why the session no longer reads: an error of a shard, of the query's token, or of a memory budget.
    failure: Mutex<Option<Error>>,
    /// The query's token, without the objects that it watches, since this session may be one of them.
    cancel: Mutex<CancelToken>,
    pub(super) cache: Mutex<SessionCache>,
    /// True while answers are shared with other sessions ([`OtherShards::share_lookups`]).
    shares_lookups: AtomicBool,
    /// Sets of graphs, by their numbers.
    pub(super) sets: Mutex<Vec<Vec<u32>>>,
    rounds: AtomicU64,
    messages: AtomicU64,
    bytes: AtomicU64,
    reads: AtomicU64,
}

jindou_model::debug_format!(
    ShardSession,
    |this| "Session {{ base: {:?}, traffic: {:?}, .. }}",
    this.base,
    this.traffic()
);

impl Watch for ShardSession {
    fn check(&self) -> Result<()> {
        Self::check(self)?;
        self.base.check_for_faults()
    }
}

impl ShardSession {
    /// Creates a session; `None` if the base is not a shard.
    #[must_use]
    pub fn new(base: Arc<Base>, client: Arc<dyn ShardClient>) -> Option<Self> {
        base.own_data()?;
        Some(Self::over(base, client))
    }

    fn over(base: Arc<Base>, client: Arc<dyn ShardClient>) -> Self {
        Self {
            base,
            client,
            failed: AtomicBool::new(false),
            failure: Mutex::new(None),
            cancel: Mutex::default(),
            cache: Mutex::default(),
            shares_lookups: AtomicBool::new(false),
            sets: Mutex::default(),
            rounds: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        }
    }

    /// Ok if all requests so far were answered. Costs one atomic load.
    ///
    /// # Errors
    /// [`Error::Shard`] with the first shard that did not answer; the token's error if it ended a wait. The error is
    /// permanent.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.failed.load(Ordering::Acquire) {
            return Err(self.error());
        }
        Ok(())
    }

    #[cold]
    fn error(&self) -> Error {
        // There is always a reason: it is recorded before `failed` is set.
        lock(&self.failure).as_ref().map_or_else(
            || Error::Internal("a session failed without a reason".into()),
            Error::duplicate,
        )
    }

    fn end(&self, why: Error) {
        lock(&self.failure).get_or_insert(why);
        self.failed.store(true, Ordering::Release);
    }

    pub(super) fn fail(&self, shard: u32, message: String) {
        self.end(Error::shard(shard, message));
    }

    /// Makes the query fail because the received data cannot be charged to it.
    pub(super) fn fail_charge(&self, error: Error) {
        match error {
            Error::Limit(_) | Error::Busy(_) => self.end(error),
            e => self.fail(self.own().number(), e.to_string()),
        }
    }

    /// Makes the query fail because a reply does not match its request.
    pub(super) fn fail_invalid_reply(&self, shard: u32) {
        self.fail(shard, "its answer does not match its request".into());
    }

    /// The data of the session's own shard.
    pub(super) fn own(&self) -> OwnData<'_> {
        // `new` returns `None` if the base is not a shard.
        self.base
            .own_data()
            .expect("the base of a session is a shard")
    }

    pub(super) fn blocks(&self) -> &Blocks {
        self.own().blocks()
    }

    /// Sends requests and returns all replies; returns an empty list if one fails, or the query's token has expired.
    /// Requests must be sorted by shard, so that each shard gets one message.
    pub(super) fn ask(&self, requests: &[(u32, ShardRequest)]) -> Vec<Reply> {
        if requests.is_empty() || self.failed.load(Ordering::Acquire) {
            return Vec::new();
        }
        let cancel = lock(&self.cancel).clone();
        // Needed for shards that answer without a wait: a query over many pages must stop when its time is over.
        if let Err(e) = cancel.check() {
            self.end(failure_of(e, requests[0].0));
            return Vec::new();
        }
        let read = |(shard, request): &(u32, ShardRequest)| {
            let blocks = self.blocks();
            self.client.read(blocks, *shard, request, &cancel)
        };
        let mut found: Vec<Option<Reply>> = requests.iter().map(read).collect();
        let bytes = found.iter().flatten().map(Reply::bytes).sum();
        let count = found.iter().flatten().count();
        if count == 0 {
            return self.send(requests, &cancel);
        }
        self.reads.fetch_add(count as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if count < requests.len() {
            let rest = requests.iter().zip(&found).filter(|(_, f)| f.is_none());
            let rest: Vec<(u32, ShardRequest)> = rest.map(|(r, _)| r.clone()).collect();
            let replies = self.send(&rest, &cancel);
            if replies.is_empty() {
                return replies;
            }
            let missing = found.iter_mut().filter(|f| f.is_none());
            missing.zip(replies).for_each(|(f, r)| *f = Some(r));
        }
        found.into_iter().flatten().collect()
    }

    /// Sends requests (at least one) by message, and returns the replies.
    fn send(&self, requests: &[(u32, ShardRequest)], cancel: &CancelToken) -> Vec<Reply> {
        let sent: u64 = requests.iter().map(|r| r.1.bytes()).sum();
        let messages = requests.chunk_by(|a, b| a.0 == b.0).count();
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.messages.fetch_add(messages as u64, Ordering::Relaxed);
        match self.client.ask(requests, cancel) {
            Ok(replies) if replies.len() == requests.len() => {
                let got: u64 = replies.iter().map(Reply::bytes).sum();
                self.bytes.fetch_add(sent + got, Ordering::Relaxed);
                replies
            }
            Ok(_) => {
                self.fail_invalid_reply(requests[0].0);
                Vec::new()
            }
            Err(e) => {
                self.end(failure_of(e, requests[0].0));
                Vec::new()
            }
        }
    }

    /// Sends the same request to all other shards. Returns the replies with their shards.
    pub(super) fn ask_others(&self, request: &ShardRequest) -> Vec<(u32, Reply)> {
        let own = self.own().number();
        let others = (0..self.blocks().shards()).filter(|&s| s != own);
        let requests: Vec<(u32, ShardRequest)> = others.map(|s| (s, request.clone())).collect();
        let shards = requests.iter().map(|r| r.0);
        shards.zip(self.ask(&requests)).collect()
    }

    /// The answers that sessions share, if this one shares its answers now.
    fn lookups(&self) -> Option<&Lookups> {
        let shares = self.shares_lookups.load(Ordering::Relaxed);
        self.client.lookups().filter(|_| shares)
    }

    /// Appends a cached term of another shard; returns false if the term is not cached.
    fn kept_term(&self, id: u32, out: &mut Vec<u8>) -> bool {
        let cache = lock(&self.cache);
        cache.term(id).map(|t| out.extend_from_slice(t)).is_some()
    }

    /// The list, if it is cached.
    pub(super) fn cached(&self, name: &ListName) -> Option<List> {
        lock(&self.cache).get(name).cloned()
    }

    /// A request for the lists of these keys, which have the predicate, direction and graphs of `name`.
    fn request_for_lists(&self, name: &ListName, keys: Vec<u32>) -> ShardRequest {
        ShardRequest::Lists {
            predicate: name.predicate,
            direction: name.direction,
            graphs: self.graphs_of(name.graphs),
            merged: false,
            keys,
            within: EVERYTHING,
            most: PAGE,
        }
    }

    /// Caches the lists of a reply. Returns their number; `None` if the reply does not match the request.
    fn keep(&self, group: &[(u32, ListName)], reply: Reply) -> Option<usize> {
        let lists = lists_of(reply, group.len())?;
        let done = lists.len();
        self.insert(group, lists);
        Some(done)
    }

    fn add_ids(&self, request: &ShardRequest, out: &mut Vec<u32>) {
        for (shard, reply) in self.ask_others(request) {
            match reply {
                Reply::Ids { ids, more: false } => out.extend(ids),
                _ => self.fail_invalid_reply(shard),
            }
        }
        // The ids consist of a few ascending runs, which a stable sort merges fast.
        out.sort();
        out.dedup();
    }
}

/// A snapshot over one shard's base and the connections to the others. It reads the whole store, without updates.
///
/// # Errors
/// [`Error::Usage`] if the base is not a shard.
pub fn snapshot_of_shard(base: Arc<Base>, client: Arc<dyn ShardClient>) -> Result<Snapshot> {
    let session = ShardSession::new(Arc::clone(&base), client)
        .ok_or_else(|| Error::Usage("the store is not sharded".into()))?;
    Snapshot::of_shard(base, Arc::new(session))
}

/// A snapshot for the part of a query at one shard. It reads the state of `state`, which is a snapshot of another
/// shard, or the base without updates if `state` is `None`.
///
/// # Errors
/// [`Error::Usage`] if the base is not a shard.
pub fn snapshot_at_shard(
    state: Option<&dyn Graph>,
    base: Arc<Base>,
    client: Arc<dyn ShardClient>,
) -> Result<Snapshot> {
    let state = state.and_then(Graph::as_any);
    match state.and_then(<dyn Any>::downcast_ref::<Snapshot>) {
        None => snapshot_of_shard(base, client),
        Some(state) => {
            let session = ShardSession::over(Arc::clone(&base), client);
            state.at_shard(base, Arc::new(session))
        }
    }
}

/// Converts the error of a round. Errors without a shard are attributed to `shard`.
fn failure_of(error: Error, shard: u32) -> Error {
    match error {
        Error::Shard { .. } | Error::Cancelled | Error::Timeout(_) => error,
        e => Error::shard(shard, e.to_string()),
    }
}

/// The lists of a reply to a request for `keys` lists. The reply must contain at least one of them; `None` if it is
/// invalid.
fn lists_of(reply: Reply, keys: usize) -> Option<Vec<List>> {
    let Reply::Lists {
        ends,
        neighbours,
        graphs,
    } = reply
    else {
        return None;
    };
    if ends.is_empty() || ends.len() > keys || graphs.len() != neighbours.len() {
        return None;
    }
    let mut start = 0;
    let list = |&end: &u32| {
        let range = start as usize..end as usize;
        start = end;
        let list = neighbours.get(range.clone())?.iter().copied();
        Some(list.zip(graphs.get(range)?.iter().copied()).collect())
    };
    ends.iter().map(list).collect()
}

impl OtherShards for ShardSession {
    fn for_new_query(&self) -> Arc<dyn OtherShards> {
        Arc::new(Self::over(Arc::clone(&self.base), Arc::clone(&self.client)))
    }

    fn begin(&self, cancel: &CancelToken) {
        *lock(&self.cancel) = cancel.unwatched();
    }

    fn charge_to(&self, memory: &MemoryBudget) {
        self.charge_kept(memory);
    }

    fn share_lookups(&self, shares: bool) {
        self.shares_lookups.store(shares, Ordering::Relaxed);
    }

    fn traffic(&self) -> Traffic {
        Traffic {
            rounds: self.rounds.load(Ordering::Relaxed),
            messages: self.messages.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            reads: self.reads.load(Ordering::Relaxed),
        }
    }

    fn statistics(&self) -> &Statistics {
        self.base.statistics()
    }

    fn far_keys(
        &self,
        p: PredicateId,
        direction: Direction,
        scope: GraphScope<'_>,
        out: &mut Vec<u32>,
    ) {
        let own = self.own().number();
        let request = |shard: u32, from: u32| {
            let request = ShardRequest::Keys {
                predicate: p.0,
                direction,
                graphs: RequestGraphs::from_scope(scope),
                from,
                most: PAGE,
            };
            (shard, request)
        };
        let others = (0..self.blocks().shards()).filter(|&s| s != own);
        let mut requests: Vec<(u32, ShardRequest)> = others.map(|s| request(s, 0)).collect();
        while !requests.is_empty() {
            let replies = self.ask(&requests);
            let mut rest = Vec::new();
            for ((shard, asked), reply) in requests.iter().zip(replies) {
                let ShardRequest::Keys { from, .. } = asked else {
                    continue;
                };
                // Each page must come after the previous one, so that a shard cannot send pages forever.
                let Reply::Ids { ids, more } = reply else {
                    self.fail_invalid_reply(*shard);
                    return;
                };
                let fits = ids.first().is_none_or(|first| first >= from);
                if !fits || !ids.is_sorted() || ids.len() > PAGE as usize {
                    self.fail_invalid_reply(*shard);
                    return;
                }
                match ids.last().map(|last| last.checked_add(1)) {
                    Some(Some(next)) if more => rest.push(request(*shard, next)),
                    _ if more => self.fail_invalid_reply(*shard),
                    _ => {}
                }
                out.extend(ids);
            }
            requests = rest;
        }
    }

    fn fetch(&self, lists: &[(FarKey, GraphScope<'_>)]) {
        let mut wanted: Vec<(u32, ListName)> = Vec::new();
        {
            let mut naming = self.naming();
            let names = lists
                .iter()
                .map(|&(of, scope)| (of.shard, ListName::new(of, naming.name(scope))));
            // Determine all names before `cache` is locked, since numbering sets of graphs takes another lock.
            let names: Vec<(u32, ListName)> = names.collect();
            let cache = lock(&self.cache);
            wanted.extend(names.into_iter().filter(|n| cache.get(&n.1).is_none()));
        }
        wanted.sort_unstable();
        wanted.dedup();
        while !wanted.is_empty() {
            let same = |a: &(u32, ListName), b: &(u32, ListName)| {
                (a.0, a.1.predicate, a.1.direction) == (b.0, b.1.predicate, b.1.direction)
                    && a.1.graphs == b.1.graphs
            };
            let groups: Vec<&[(u32, ListName)]> = wanted.chunk_by(same).collect();
            let requests: Vec<(u32, ShardRequest)> = groups
                .iter()
                .map(|group| {
                    let (shard, first) = &group[0];
                    let keys = group.iter().map(|g| g.1.key).collect();
                    (*shard, self.request_for_lists(first, keys))
                })
                .collect();
            let replies = self.ask(&requests);
            if replies.is_empty() {
                return;
            }
            let mut rest = Vec::new();
            for (group, reply) in groups.into_iter().zip(replies) {
                let Some(done) = self.keep(group, reply) else {
                    self.fail_invalid_reply(group[0].0);
                    return;
                };
                rest.extend_from_slice(&group[done..]);
            }
            wanted = rest;
        }
    }

    /// From the cache, or requested alone. Empty if the request fails.
    fn list(&self, of: FarKey, scope: GraphScope<'_>) -> List {
        let (shard, name) = (of.shard, ListName::new(of, self.graphs_name(scope)));
        if let Some(list) = self.cached(&name) {
            return list;
        }
        let request = self.request_for_lists(&name, vec![name.key]);
        let Some(reply) = self.ask(&[(shard, request)]).pop() else {
            return List::default();
        };
        let group = [(shard, name)];
        let found = lists_of(reply, 1).and_then(|mut lists| lists.pop());
        let Some(list) = found else {
            self.fail_invalid_reply(shard);
            return List::default();
        };
        self.insert(&group, vec![Arc::clone(&list)]);
        list
    }

    fn contains(&self, of: FarKey, neighbour: u32, scope: GraphScope<'_>) -> bool {
        if let Some(list) = self.cached(&ListName::new(of, self.graphs_name(scope))) {
            let at = list.partition_point(|e| e.0 < neighbour);
            return list.get(at).is_some_and(|e| e.0 == neighbour);
        }
        let mut there = [false];
        self.contains_many(&[(of, neighbour, scope, 0)], &mut there);
        there[0]
    }

    fn contains_many(&self, edges: &[(FarKey, u32, GraphScope<'_>, usize)], there: &mut [bool]) {
        let Some(lookups) = self.lookups() else {
            return self.ask_edges(edges, there);
        };
        let unknown = lookups.fill_edges(edges, there);
        self.ask_edges(&unknown, there);
        if self.check().is_ok() {
            lookups.keep_edges(&unknown, there);
        }
    }

    fn append_lists(
        &self,
        keys: &[FarKey],
        within: (GraphScope<'_>, [u32; 2]),
        more: &mut Vec<u32>,
    ) -> Vec<[u32; 2]> {
        self.request_lists(keys, within, more)
    }

    fn fetch_degrees(&self, keys: &[FarKey]) {
        self.fetch_numbers(keys);
    }

    fn degrees(&self, of: FarKey) -> [u64; 2] {
        self.edge_counts(of)
    }

    fn fetch_terms(&self, ids: &[(u32, u32)]) {
        self.fetch_missing_terms(ids);
    }

    fn keep_terms(&self, shard: u32, ids: &[u32], ends: &[u32], bytes: &[u8]) {
        self.keep_sent_terms(shard, ids, ends, bytes);
    }

    fn graph_subjects(&self, graph: u32, p: PredicateId, out: &mut Vec<u32>) {
        out.clear();
        self.own().graph_subjects(graph, p, out);
        let predicate = p.0;
        self.add_ids(&ShardRequest::GraphSubjects { graph, predicate }, out);
    }

    fn graph_predicates(&self, graph: u32) -> Vec<u32> {
        let mut out = self.own().graph_predicates(graph);
        self.add_ids(&ShardRequest::GraphPredicates { graph }, &mut out);
        out
    }

    fn object_terms(&self, p: PredicateId) -> ObjectTerms {
        let mut all = self.base.object_terms(p);
        let request = ShardRequest::ObjectTerms { predicate: p.0 };
        for (shard, reply) in self.ask_others(&request) {
            all = all.min(match reply {
                Reply::Objects(0) => ObjectTerms::Any,
                Reply::Objects(1) => ObjectTerms::Texts,
                Reply::Objects(2) => ObjectTerms::Resources,
                _ => {
                    self.fail_invalid_reply(shard);
                    ObjectTerms::Any
                }
            });
        }
        all
    }

    fn search_words(
        &self,
        asked: &WordSearch<'_>,
        take: &mut dyn FnMut(FoundTerm<'_>) -> bool,
    ) -> bool {
        self.find_words(asked, take)
    }

    fn uses(&self, vertices: &[u32], scope: GraphScope<'_>) -> Vec<Option<u64>> {
        self.count_uses(vertices, scope)
    }

    fn has_word_index(&self) -> bool {
        self.client.has_word_index()
    }

    fn prepare_search(&self, stop: &mut dyn FnMut() -> bool) -> bool {
        self.client.prepare_search(stop)
    }
}
