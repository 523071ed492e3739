//! Binding of queries to servers and snapshots, where several servers hold a shard and their data changes.

use super::*;

impl HubState {
    /// The connections of a query to other shards: those of the servers it is bound to, otherwise those of this
    /// process.
    pub(super) fn far_of(&self, query: QueryName, shard: u32) -> Result<Arc<dyn Far>> {
        let bound = lock(&self.bound).get(&query.number).cloned();
        let far = bound.or_else(|| self.far());
        far.ok_or_else(|| Error::shard(shard, "the connection to other shards is closed"))
    }

    /// Binds a query that this process coordinates to one server per shard. Returns the encoded choice of servers for
    /// the parts; empty if each shard is at one server only.
    pub(super) fn bind(&self, query: QueryName) -> Result<Vec<u8>> {
        let far = self.far_of(query, query.home)?;
        let Some((far, chosen)) = far.bind(None)? else {
            return Ok(Vec::new());
        };
        lock(&self.bound).insert(query.number, far);
        Ok(chosen)
    }

    /// Binds a query to the servers that its coordinator chose, given as [`Self::bind`] encoded them.
    pub(super) fn adopt(&self, query: QueryName, chosen: &[u8]) -> Result<()> {
        if chosen.is_empty() || lock(&self.bound).contains_key(&query.number) {
            return Ok(());
        }
        let far = self.far_of(query, query.home)?;
        if let Some((far, _)) = far.bind(Some(chosen))? {
            lock(&self.bound).insert(query.number, far);
        }
        Ok(())
    }

    /// Forgets a query's servers once this process neither coordinates it nor has a part of it.
    pub(super) fn unbind(&self, query: QueryName) {
        let mut bound = lock(&self.bound);
        if !bound.contains_key(&query.number) || self.gathering(query).is_some() {
            return;
        }
        let parts = lock(&self.parts);
        if parts.open.keys().all(|(of, _)| *of != query) {
            bound.remove(&query.number);
        }
    }

    /// Opens a shard with the snapshot that the coordinator named; `None` if this server does not have it (yet, or no
    /// longer) and the query was bound to servers, so that it is declined rather than failed.
    pub(super) fn open(
        &self,
        shard: u32,
        program: &PartProgram,
        cancel: CancelToken,
    ) -> Result<Option<(Arc<dyn Graph>, CancelToken)>> {
        let kept = lock(&self.kept)
            .get(&program.state)
            .map(|k| Arc::clone(&k.graph));
        let state = kept.or_else(|| self.shards.state(program.state));
        if state.is_none() && !program.servers.is_empty() {
            return Ok(None);
        }
        if state.is_none() && program.state != 0 {
            let what = "it does not have the snapshot that the query reads";
            return Err(Error::shard(shard, what));
        }
        self.shards.open(shard, state.as_deref(), cancel).map(Some)
    }
}
