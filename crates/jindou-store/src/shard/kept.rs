//! One query's lists and counts of other shards: their names, how many are kept, and the memory that they are charged to.

use super::session::Session;
use super::{Graphs, Reply, Request};
use crate::segment::Scope;
use jindou_model::sync::lock;
use jindou_model::{Charge, Direction, Error, Holder, MemoryBudget, Result};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Bytes of lists that are kept for the rows of a batch; when there are more, all are forgotten.
const KEPT: usize = 64 << 20;
/// Keys whose numbers of edges are kept; when there are more, all are forgotten.
const KEPT_DEGREES: usize = 1 << 16;
/// Bytes of the name and the place of a list.
const NAME: usize = 96;

/// Names the graphs of a list. Sets of graphs are numbered, so that a name a row is no copy of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum GraphsName {
    Default,
    Named(u32),
    AnyNamed,
    Union,
    /// Its place in [`Session::sets`].
    Set(u32),
}

/// Names a list: predicate, direction, the graphs that were looked at, and the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ListName {
    pub predicate: u32,
    pub direction: Direction,
    pub graphs: GraphsName,
    pub key: u32,
}

/// (neighbour, graph), sorted.
pub(super) type List = Arc<[(u32, u32)]>;

/// Names a key's number of edges: its shard, the predicate, the direction and the key.
pub(super) type DegreeName = (u32, u32, Direction, u32);

/// Lists and counts that were asked for.
#[derive(Default)]
pub(super) struct Kept {
    lists: FxHashMap<ListName, List>,
    bytes: usize,
    degrees: FxHashMap<DegreeName, [u64; 2]>,
    /// Of the bytes of the lists, once it is known who pays.
    charge: Option<Charge>,
}

impl Kept {
    pub fn get(&self, name: &ListName) -> Option<&List> {
        self.lists.get(name)
    }

    fn forget(&mut self) {
        self.lists = FxHashMap::default();
        // Less is never refused.
        let _ = self.hold(0);
    }

    fn hold(&mut self, bytes: usize) -> Result<()> {
        if let Some(charge) = &mut self.charge {
            charge.set(bytes as u64)?;
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Keeps a list, and forgets the others where there is no room for all.
    fn insert(&mut self, name: ListName, list: List) -> Result<()> {
        let bytes = list.len() * size_of::<(u32, u32)>() + NAME;
        if self.bytes + bytes > KEPT || self.hold(self.bytes + bytes).is_err() {
            self.forget();
            self.hold(bytes)?;
        }
        self.lists.insert(name, list);
        Ok(())
    }
}

/// Names graphs row by row: a set that comes again is not looked for again.
pub(super) struct Naming<'a, 's> {
    session: &'a Session,
    last: Option<(&'s [u32], GraphsName)>,
}

impl<'s> Naming<'_, 's> {
    pub fn name(&mut self, scope: Scope<'s>) -> GraphsName {
        let Scope::Set(set) = scope else {
            return self.session.graphs_name(scope);
        };
        match self.last {
            // Both are borrowed for as long as this is, so one place is one set.
            Some((known, name)) if std::ptr::eq(known, set) => name,
            _ => {
                let name = self.session.graphs_name(scope);
                self.last = Some((set, name));
                name
            }
        }
    }
}

impl Session {
    /// Charges the lists that are kept to a query's memory from now on. The first budget counts.
    pub fn charge_to(&self, memory: &MemoryBudget) {
        let mut kept = lock(&self.kept);
        if kept.charge.is_none() {
            kept.charge = Some(Charge::new(Holder::Shards, memory));
            let bytes = kept.bytes;
            if kept.hold(bytes).is_err() {
                kept.forget();
            }
        }
    }

    pub(super) fn naming<'s>(&self) -> Naming<'_, 's> {
        Naming {
            session: self,
            last: None,
        }
    }

    pub(super) fn graphs_name(&self, scope: Scope<'_>) -> GraphsName {
        match scope {
            Scope::Default => GraphsName::Default,
            Scope::Named(g) => GraphsName::Named(g),
            Scope::AnyNamed => GraphsName::AnyNamed,
            Scope::Union => GraphsName::Union,
            Scope::Set(set) => {
                let mut sets = lock(&self.sets);
                let known = sets.iter().position(|s| s[..] == *set);
                GraphsName::Set(known.unwrap_or_else(|| {
                    sets.push(set.to_vec());
                    sets.len() - 1
                }) as u32)
            }
        }
    }

    /// The graphs of a name, to be sent.
    pub(super) fn graphs_of(&self, name: GraphsName) -> Graphs {
        match name {
            GraphsName::Default => Graphs::Default,
            GraphsName::Named(g) => Graphs::Named(g),
            GraphsName::AnyNamed => Graphs::AnyNamed,
            GraphsName::Union => Graphs::Union,
            GraphsName::Set(at) => {
                let sets = lock(&self.sets);
                Graphs::Set(sets.get(at as usize).cloned().unwrap_or_default())
            }
        }
    }

    /// Keeps lists of other shards. A list that does not fit into the query's memory alone ends the query.
    pub(super) fn insert(&self, group: &[(u32, ListName)], lists: Vec<List>) {
        let mut kept = lock(&self.kept);
        for ((_, name), list) in group.iter().zip(lists) {
            match kept.insert(*name, list) {
                Ok(()) => {}
                Err(Error::Limit(limit)) => return self.exceed(limit, false),
                Err(Error::Busy(limit)) => return self.exceed(limit, true),
                Err(e) => return self.fail(self.shard().number, e.to_string()),
            }
        }
    }

    /// Fetches the numbers of edges that are not here and not kept, in one round; they may repeat.
    pub(crate) fn fetch_degrees(&self, of: impl Iterator<Item = (u32, Direction, u32)>) {
        let own = self.shard().number;
        let mut wanted: Vec<DegreeName> = {
            let kept = lock(&self.kept);
            let far = of.filter_map(|(predicate, direction, key)| {
                let place = self.shard().blocks.place(key)?;
                let name = (place.shard, predicate, direction, key);
                (place.shard != own && !kept.degrees.contains_key(&name)).then_some(name)
            });
            far.collect()
        };
        wanted.sort_unstable();
        wanted.dedup();
        self.ask_degrees(&wanted);
    }

    /// Edges of a key of another shard, in the default graph and in named ones: kept, or asked for. Zeros if that fails.
    pub(super) fn degrees(&self, name: DegreeName) -> [u64; 2] {
        if let Some(known) = lock(&self.kept).degrees.get(&name) {
            return *known;
        }
        let found = self.ask_degrees(&[name]);
        found.first().copied().unwrap_or_default()
    }

    /// The numbers of edges of sorted keys, which are then kept; fewer if a shard fails.
    fn ask_degrees(&self, wanted: &[DegreeName]) -> Vec<[u64; 2]> {
        let same = |a: &DegreeName, b: &DegreeName| (a.0, a.1, a.2) == (b.0, b.1, b.2);
        let request = |group: &[DegreeName]| {
            let (shard, predicate, direction, _) = group[0];
            let request = Request::Degrees {
                predicate,
                direction,
                keys: group.iter().map(|n| n.3).collect(),
            };
            (shard, request)
        };
        let requests: Vec<(u32, Request)> = wanted.chunk_by(same).map(request).collect();
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
                    self.unfit(group[0].0);
                    return all;
                }
            }
        }
        let mut kept = lock(&self.kept);
        if kept.degrees.len() + all.len() > KEPT_DEGREES {
            kept.degrees = FxHashMap::default();
        }
        if all.len() <= KEPT_DEGREES {
            let named = wanted.iter().copied().zip(all.iter().copied());
            kept.degrees.extend(named);
        }
        all
    }
}
