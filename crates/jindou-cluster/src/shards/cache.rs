//! One query's cache of data from other shards: lists, edge counts and terms, their size limits, and the memory charged
//! for them.

use super::session::ShardSession;
use super::{Reply, RequestGraphs, ShardRequest};
use jindou_graph::segment::GraphScope;
use jindou_graph::shard::{FarKey, List};
use jindou_model::sync::lock;
use jindou_model::{Charge, Direction, Holder, MemoryBudget, Result};
use rustc_hash::{FxHashMap, FxHashSet};

/// Limit in bytes for cached lists. If it is exceeded, all cached lists are dropped.
const MAX_BYTES: usize = 64 << 20;
/// Limit for the number of keys whose edge counts are cached. If it is exceeded, all counts are dropped.
const MAX_DEGREES: usize = 1 << 16;
/// Estimated overhead in bytes of a cached list, for its name and hash table entry.
const NAME: usize = 96;

/// Graphs of a cached list. Sets of graphs are numbered, so that a name does not contain a copy of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum GraphsName {
    Default,
    Named(u32),
    AnyNamed,
    Union,
    /// A set of graphs, by its index in [`ShardSession::sets`].
    Set(u32),
}

/// Key of a list in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ListName {
    pub predicate: u32,
    pub direction: Direction,
    pub graphs: GraphsName,
    pub key: u32,
}

impl ListName {
    pub fn new(key: FarKey, graphs: GraphsName) -> Self {
        Self {
            predicate: key.predicate,
            direction: key.direction,
            graphs,
            key: key.key,
        }
    }
}

/// Lists, edge counts and terms received so far.
#[derive(Default)]
pub(super) struct SessionCache {
    lists: FxHashMap<ListName, List>,
    bytes: usize,
    degrees: FxHashMap<FarKey, [u64; 2]>,
    /// Vertices all of whose nonzero edge counts are in `degrees`.
    counted: FxHashSet<u32>,
    terms: TermCache,
    /// Memory charge for the lists; `None` until the query's budget is known.
    charge: Option<Charge>,
}

/// Recently fetched terms of other shards.
#[derive(Default)]
struct TermCache {
    places: FxHashMap<u32, [u32; 2]>,
    bytes: Vec<u8>,
    charge: Option<Charge>,
}

/// Limit in bytes for cached terms. If it is exceeded, all terms are dropped.
const MAX_TERM_BYTES: usize = 8 << 20;

impl TermCache {
    /// Caches the terms of these ids. `ends` are the ends of the terms in `bytes`; an unknown term is empty, and not
    /// cached. Returns false if `ends` do not match `ids` or `bytes`.
    fn insert(
        &mut self,
        ids: impl ExactSizeIterator<Item = u32>,
        ends: &[u32],
        bytes: &[u8],
    ) -> bool {
        let from = self.bytes.len() as u32;
        let fits = u32::try_from(self.bytes.len() + bytes.len()).is_ok()
            && ends.len() == ids.len()
            && ends.is_sorted()
            && ends.last().map_or(0, |&e| e as usize) == bytes.len();
        if !fits {
            return false;
        }
        let mut start = from;
        for (id, &end) in ids.zip(ends) {
            if from + end > start {
                self.places.insert(id, [start, from + end]);
            }
            start = from + end;
        }
        self.bytes.extend_from_slice(bytes);
        true
    }

    fn forget(&mut self) {
        self.places = FxHashMap::default();
        self.bytes = Vec::new();
        self.charge = None;
    }
}

impl SessionCache {
    /// The edge counts of a key (default graph, named graphs), if they are cached.
    fn degree(&self, name: &FarKey) -> Option<[u64; 2]> {
        let known = self.degrees.get(name).copied();
        known.or_else(|| self.counted.contains(&name.key).then_some([0, 0]))
    }

    /// Charges the cached terms to the query's budget. If that fails, the terms are dropped, and requested again when
    /// they are needed.
    fn charge_terms(&mut self) {
        let Some(charge) = &self.charge else {
            return;
        };
        let (budget, terms) = (charge.budget().clone(), &mut self.terms);
        let holds = terms.bytes.capacity() + terms.places.capacity() * 24;
        let charge = terms
            .charge
            .get_or_insert_with(|| Charge::new(Holder::Shards, &budget));
        if charge.set(holds as u64).is_err() {
            terms.forget();
        }
    }

    /// Canonical bytes of a term, if cached.
    pub fn term(&self, id: u32) -> Option<&[u8]> {
        let &[from, to] = self.terms.places.get(&id)?;
        self.terms.bytes.get(from as usize..to as usize)
    }

    pub fn get(&self, name: &ListName) -> Option<&List> {
        self.lists.get(name)
    }

    fn forget(&mut self) {
        self.lists = FxHashMap::default();
        // Reducing a charge never fails.
        let _ = self.hold(0);
    }

    fn hold(&mut self, bytes: usize) -> Result<()> {
        if let Some(charge) = &mut self.charge {
            charge.set(bytes as u64)?;
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Caches a list. If the limit or the budget is exceeded, all other lists are dropped first.
    fn insert(&mut self, name: ListName, list: List) -> Result<()> {
        let bytes = list.len() * size_of::<(u32, u32)>() + NAME;
        if self.bytes + bytes > MAX_BYTES || self.hold(self.bytes + bytes).is_err() {
            self.forget();
            self.hold(bytes)?;
        }
        self.lists.insert(name, list);
        Ok(())
    }
}

/// Determines the names of graphs for consecutive rows. If a row has the same set as the previous one, the set is not
/// looked up again.
pub(super) struct Naming<'a, 's> {
    session: &'a ShardSession,
    last: Option<(&'s [u32], GraphsName)>,
}

impl<'s> Naming<'_, 's> {
    pub fn name(&mut self, scope: GraphScope<'s>) -> GraphsName {
        let GraphScope::Set(set) = scope else {
            return self.session.graphs_name(scope);
        };
        match self.last {
            // Both are borrowed for the lifetime of this value, so equal addresses mean equal sets.
            Some((known, name)) if std::ptr::eq(known, set) => name,
            _ => {
                let name = self.session.graphs_name(scope);
                self.last = Some((set, name));
                name
            }
        }
    }
}

impl ShardSession {
    /// Charges the cache to a query's budget from now on. Later calls with another budget have no effect.
    pub(super) fn charge_kept(&self, memory: &MemoryBudget) {
        let mut cache = lock(&self.cache);
        if cache.charge.is_none() {
            cache.charge = Some(Charge::new(Holder::Shards, memory));
            let bytes = cache.bytes;
            if cache.hold(bytes).is_err() {
                cache.forget();
            }
        }
    }

    /// Charges this many bytes to the query until the returned charge is dropped. If the budget is exceeded, the query
    /// fails. `None` while the budget is not known.
    pub(super) fn charge_now(&self, bytes: u64) -> Option<Charge> {
        let cache = lock(&self.cache);
        let budget = cache.charge.as_ref()?.budget().clone();
        drop(cache);
        let mut charge = Charge::new(Holder::Shards, &budget);
        if let Err(e) = charge.set(bytes) {
            self.fail_charge(e);
        }
        Some(charge)
    }

    pub(super) fn naming<'s>(&self) -> Naming<'_, 's> {
        Naming {
            session: self,
            last: None,
        }
    }

    pub(super) fn graphs_name(&self, scope: GraphScope<'_>) -> GraphsName {
        match scope {
            GraphScope::Default => GraphsName::Default,
            GraphScope::Named(g) => GraphsName::Named(g),
            GraphScope::AnyNamed => GraphsName::AnyNamed,
            GraphScope::Union => GraphsName::Union,
            GraphScope::Set(set) => {
                let mut sets = lock(&self.sets);
                let known = sets.iter().position(|s| s[..] == *set);
                GraphsName::Set(known.unwrap_or_else(|| {
                    sets.push(set.to_vec());
                    sets.len() - 1
                }) as u32)
            }
        }
    }

    /// Converts a name to the graphs of a request.
    pub(super) fn graphs_of(&self, name: GraphsName) -> RequestGraphs {
        match name {
            GraphsName::Default => RequestGraphs::Default,
            GraphsName::Named(g) => RequestGraphs::Named(g),
            GraphsName::AnyNamed => RequestGraphs::AnyNamed,
            GraphsName::Union => RequestGraphs::Union,
            GraphsName::Set(at) => {
                let sets = lock(&self.sets);
                RequestGraphs::Set(sets.get(at as usize).cloned().unwrap_or_default())
            }
        }
    }

    /// Caches lists of other shards. If a single list exceeds the query's budget, the query fails.
    pub(super) fn insert(&self, group: &[(u32, ListName)], lists: Vec<List>) {
        let mut cache = lock(&self.cache);
        for ((_, name), list) in group.iter().zip(lists) {
            if let Err(e) = cache.insert(*name, list) {
                return self.fail_charge(e);
            }
        }
    }

    /// Fetches the edge counts that are not cached, in one round. `of` may contain duplicates.
    pub(super) fn fetch_numbers(&self, of: &[FarKey]) {
        let mut wanted: Vec<FarKey> = {
            let cache = lock(&self.cache);
            let missing = of.iter().filter(|name| cache.degree(name).is_none());
            missing.copied().collect()
        };
        wanted.sort_unstable();
        wanted.dedup();
        self.ask_degrees(&wanted);
    }

    /// Caches the edge counts of a vertex of another shard. `edges` must contain all of them.
    pub(super) fn cache_counts(
        &self,
        shard: u32,
        id: u32,
        edges: impl Iterator<Item = (u32, [u64; 2])>,
    ) {
        let mut cache = lock(&self.cache);
        if cache.degrees.len() > MAX_DEGREES {
            cache.degrees = FxHashMap::default();
            cache.counted = FxHashSet::default();
        }
        for (name, numbers) in edges {
            let direction = match name & 1 {
                0 => Direction::Out,
                _ => Direction::In,
            };
            let of = FarKey {
                shard,
                predicate: name >> 1,
                direction,
                key: id,
            };
            cache.degrees.insert(of, numbers);
        }
        cache.counted.insert(id);
    }

    /// Fetches terms of other shards that are neither local nor cached, in one round. `ids` are pairs of shard and id,
    /// and may contain duplicates.
    pub(super) fn fetch_missing_terms(&self, ids: &[(u32, u32)]) {
        let here = self.own();
        let mut far: Vec<(u32, u32)> = {
            let cache = lock(&self.cache);
            let missing = |of: &&(u32, u32)| cache.term(of.1).is_none() && !here.has_term(of.1);
            ids.iter().filter(missing).copied().collect()
        };
        far.sort_unstable();
        far.dedup();
        let groups: Vec<&[(u32, u32)]> = far.chunk_by(|a, b| a.0 == b.0).collect();
        let request = |group: &&[(u32, u32)]| {
            let ids = group.iter().map(|g| g.1).collect();
            (group[0].0, ShardRequest::Terms { ids })
        };
        let requests: Vec<(u32, ShardRequest)> = groups.iter().map(request).collect();
        let replies = self.ask(&requests);
        let mut guard = lock(&self.cache);
        let cache = &mut *guard;
        let terms = &mut cache.terms;
        if terms.bytes.len() > MAX_TERM_BYTES {
            terms.forget();
        }
        for (group, reply) in groups.into_iter().zip(replies) {
            let Reply::Terms { ends, bytes } = reply else {
                self.fail_invalid_reply(group[0].0);
                return;
            };
            if !terms.insert(group.iter().map(|g| g.1), &ends, &bytes) {
                self.fail_invalid_reply(group[0].0);
                return;
            }
        }
        cache.charge_terms();
    }

    /// Caches terms that a shard sent without a request. They are ignored if an id does not belong to that shard.
    pub(super) fn keep_sent_terms(&self, shard: u32, ids: &[u32], ends: &[u32], bytes: &[u8]) {
        let blocks = self.blocks();
        let owns = |&id: &u32| blocks.place(id).is_some_and(|p| p.shard == shard);
        if !ids.iter().all(owns) || ends.len() != ids.len() {
            return;
        }
        let mut cache = lock(&self.cache);
        if cache.terms.bytes.len() > MAX_TERM_BYTES {
            cache.terms.forget();
        }
        // Terms that cannot be cached are requested later.
        let _ = cache.terms.insert(ids.iter().copied(), ends, bytes);
        cache.charge_terms();
    }

    /// The edge counts of a key of another shard, in the default graph and in named graphs: from the cache, or
    /// requested. Zeros if the request fails.
    pub(super) fn edge_counts(&self, name: FarKey) -> [u64; 2] {
        if let Some(known) = lock(&self.cache).degree(&name) {
            return known;
        }
        let found = self.ask_degrees(&[name]);
        found.first().copied().unwrap_or_default()
    }

    /// Requests the edge counts of sorted keys and caches them. Returns fewer counts if a shard fails.
    fn ask_degrees(&self, wanted: &[FarKey]) -> Vec<[u64; 2]> {
        let same = |a: &FarKey, b: &FarKey| {
            (a.shard, a.predicate, a.direction) == (b.shard, b.predicate, b.direction)
        };
        let request = |group: &[FarKey]| {
            let request = ShardRequest::Degrees {
                predicate: group[0].predicate,
                direction: group[0].direction,
                keys: group.iter().map(|n| n.key).collect(),
            };
            (group[0].shard, request)
        };
        let requests: Vec<(u32, ShardRequest)> = wanted.chunk_by(same).map(request).collect();
        let replies = self.ask(&requests);
        let mut all = Vec::with_capacity(wanted.len());
        for (group, reply) in wanted.chunk_by(same).zip(replies) {
            match reply {
                Reply::Degrees { default, named }
                    if (default.len(), named.len()) == (group.len(), group.len()) =>
                {
                    all.extend(default.into_iter().zip(named).map(|(d, n)| [d, n]));
                }
                _ => {
                    self.fail_invalid_reply(group[0].shard);
                    return all;
                }
            }
        }
        let mut cache = lock(&self.cache);
        if cache.degrees.len() + all.len() > MAX_DEGREES {
            cache.degrees = FxHashMap::default();
            cache.counted = FxHashSet::default();
        }
        if all.len() <= MAX_DEGREES {
            let named = wanted.iter().copied().zip(all.iter().copied());
            cache.degrees.extend(named);
        }
        all
    }
}
