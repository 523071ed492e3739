//! Snapshots of a sharded store, seen from one of its shards.

use super::{Delta, Snapshot};
use crate::base::Base;
use jindou_graph::segment::{GraphScope, Patch};
use jindou_graph::shard::{OtherShards, ShardEdges, Sharded};
use jindou_model::{Direction, Error, PredicateId, Result};
use std::sync::Arc;

impl Snapshot {
    /// The snapshot of a whole store, from the base of one shard and access to the others.
    ///
    /// # Errors
    /// [`Error::Usage`](jindou_model::Error::Usage) if the base is not a shard.
    pub fn of_shard(base: Arc<Base>, others: Arc<dyn OtherShards>) -> Result<Self> {
        let own = base
            .own_data()
            .ok_or_else(|| Error::Usage("the store is not sharded".into()))?;
        let sharded = Sharded::new(own.number(), Arc::clone(own.blocks()), others);
        Ok(Self {
            sharded: Some(sharded),
            ..Self::of_base(base)
        })
    }

    /// The same snapshot, seen from another shard with this base: for the part of a query that runs there.
    ///
    /// # Errors
    /// [`Error::Usage`] if the base is not a shard.
    pub fn at_shard(&self, base: Arc<Base>, others: Arc<dyn OtherShards>) -> Result<Self> {
        let seen = Self::of_shard(base, others)?;
        Ok(Self {
            base: seen.base,
            sharded: seen.sharded,
            ..self.clone()
        })
    }

    /// The same content over another base; `others` gives access to the other shards of that base.
    ///
    /// # Errors
    /// [`Error::Internal`] if one of the bases is a shard and the other is not.
    pub(crate) fn with_base(
        &self,
        base: Arc<Base>,
        others: Option<Arc<dyn OtherShards>>,
        delta: Delta,
    ) -> Result<Self> {
        let sharded = match (base.own_data(), others) {
            (None, None) => None,
            (Some(own), Some(others)) => {
                let blocks = Arc::clone(own.blocks());
                Some(Sharded::new(own.number(), blocks, others))
            }
            _ => {
                let what = "a shard's snapshot needs access to the other shards";
                return Err(Error::Internal(what.into()));
            }
        };
        let version = base.next_version();
        Ok(Self {
            base,
            number: self.number,
            group: self.group,
            version,
            shape: version,
            delta: Arc::new(delta),
            sharded,
            named_graphs: Arc::default(),
            prefixes: Arc::clone(&self.prefixes),
            new_ids: self.new_ids,
        })
    }

    pub(super) fn shard_edges<'s>(
        &'s self,
        sharded: &'s Sharded,
        p: PredicateId,
        direction: Direction,
        patch: Option<&'s Arc<Patch>>,
    ) -> ShardEdges<'s> {
        let segments = self.base.segments(p.0, direction);
        ShardEdges::new(segments, patch.map(|p| &**p), sharded, (p, direction))
    }

    /// True for each quad `[graph, dense predicate, subject, object]` that exists. Fastest if they ascend; in a sharded
    /// store they take one round of requests.
    pub(crate) fn contain(&self, quads: &[[u32; 4]]) -> Vec<bool> {
        let groups = quads.chunk_by(|a, b| a[..2] == b[..2]);
        let edges = |p: u32| self.edges(PredicateId(p), Direction::Out);
        let Some(sharded) = &self.sharded else {
            let there = |group: &[[u32; 4]]| {
                let (view, scope) = (edges(group[0][1]), GraphScope::of(group[0][0]));
                let one = |&[_, _, s, o]: &[u32; 4]| view.contains(s, o, scope);
                group.iter().map(one).collect::<Vec<bool>>()
            };
            return groups.flat_map(there).collect();
        };
        let views: Vec<_> = groups.map(|group| (edges(group[0][1]), group)).collect();
        let each = views.iter().flat_map(|(view, group)| {
            let scope = GraphScope::of(group[0][0]);
            let ends = group.iter().map(|&[_, _, s, o]| [s, o]);
            ends.filter_map(move |ends| Some((view.sharded()?, ends, scope)))
        });
        let mut there = Vec::with_capacity(quads.len());
        sharded.contain(each, &mut there);
        there
    }
}
