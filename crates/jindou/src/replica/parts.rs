//! Snapshots that other servers' queries may read at this server: the ones published last, by number. Equal numbers
//! mean equal contents at all servers.

use crate::update::open_part;
use jindou_cluster::servers::Members;
use jindou_engine::LocalShards;
use jindou_graph::Graph;
use jindou_model::{CancelToken, Error, Result, sync};
use jindou_store::Snapshot;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time for which a snapshot is kept after a newer one was published.
const KEPT: Duration = Duration::from_secs(2);

/// Published snapshots, oldest first, each with the time at which a newer one replaced it.
type Published = VecDeque<(Snapshot, Option<Instant>)>;

/// The service that evaluates parts of other servers' queries at this server's shards.
#[derive(Clone)]
pub(super) struct Parts {
    members: Members,
    published: Arc<Mutex<Published>>,
}

impl Parts {
    pub(super) fn new(members: Members) -> Self {
        Self {
            members,
            published: Arc::default(),
        }
    }

    /// Lets queries of other servers read this snapshot from now on.
    pub(super) fn publish(&self, snapshot: &Snapshot) {
        let now = Instant::now();
        let mut all = sync::lock(&self.published);
        if let Some((last, until)) = all.back_mut() {
            if last.number() == snapshot.number()
                && last.base().number() == snapshot.base().number()
            {
                return;
            }
            *until = Some(now);
        }
        all.push_back((snapshot.clone(), None));
        drop(all);
        self.forget_old();
    }

    /// Drops snapshots that were replaced more than [`KEPT`] ago, because they keep their bases in use.
    pub(super) fn forget_old(&self) {
        let is_kept = |at: &Option<Instant>| at.is_none_or(|at| at.elapsed() < KEPT);
        let mut all = sync::lock(&self.published);
        while all.front().is_some_and(|(_, replaced)| !is_kept(replaced)) {
            all.pop_front();
        }
    }
}

impl LocalShards for Parts {
    fn open(
        &self,
        shard: u32,
        state: Option<&dyn Graph>,
        cancel: CancelToken,
    ) -> Result<(Arc<dyn Graph>, CancelToken)> {
        let newest = sync::lock(&self.published).back().map(|(s, _)| s.clone());
        let state = match state.and_then(Graph::as_any) {
            Some(any) => any.downcast_ref::<Snapshot>().cloned(),
            None => newest,
        };
        let state = state.ok_or_else(|| Error::shard(shard, "the store is not open yet"))?;
        let number = state.base().number();
        let bases = self.members.bases(number);
        let served = bases.map(|bases| (bases.to_vec(), self.members.client(number)));
        open_part(shard, Some(&state), served, cancel)
    }

    fn name_of(&self, graph: &dyn Graph) -> Option<u64> {
        let snapshot = graph.as_any()?.downcast_ref::<Snapshot>()?;
        let all = sync::lock(&self.published);
        // Speculative snapshots of the writer exist at no other server, and may be rolled back.
        let same = |s: &Snapshot| {
            let of = |s: &Snapshot| (s.number(), s.version(), s.base().number());
            of(s) == of(snapshot)
        };
        let is_published = all.iter().any(|(s, _)| same(s));
        is_published.then(|| snapshot.number())
    }

    fn state(&self, name: u64) -> Option<Arc<dyn Graph>> {
        let all = sync::lock(&self.published);
        let found = all.iter().rev().find(|(s, _)| s.number() == name);
        found.map(|(s, _)| Arc::new(s.clone()) as Arc<dyn Graph>)
    }
}
