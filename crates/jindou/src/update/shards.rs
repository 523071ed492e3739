//! Opening a sharded store.

use super::durable::{self, Access, OpenOptions, OpenedStore};
use super::trust::{Held, Trust, Verify, compare};
use super::writer::Writer;
use jindou_cluster::shards::{NearShards, ShardClient, snapshot_at_shard, snapshot_of_shard};
use jindou_engine::{Hub, LocalShards};
use jindou_graph::Graph;
use jindou_graph::shard::Far;
use jindou_model::{CancelToken, Error, Result};
use jindou_store::Base;
use jindou_store::shard::{Cluster, open_shards_with, shard_folder};
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

/// Opens a store directory, sharded or not.
///
/// # Errors
/// As [`durable::open`]; [`Error::Damaged`] for a shard that is missing, damaged or of another load.
pub(crate) fn open(dir: &Path, options: &OpenOptions) -> Result<OpenedStore> {
    match Cluster::read(dir)? {
        Some(cluster) => open_shards_of(dir, &cluster, options),
        None => durable::open(dir, options),
    }
}

/// The shards of this process, as parts of queries read them.
#[derive(Clone)]
struct LocalParts {
    bases: Arc<Vec<Option<Arc<Base>>>>,
    client: Arc<OnceLock<Weak<dyn ShardClient>>>,
}

impl LocalShards for LocalParts {
    fn open(
        &self,
        shard: u32,
        state: Option<&dyn Graph>,
        cancel: CancelToken,
    ) -> Result<(Arc<dyn Graph>, CancelToken)> {
        let gone = |message: &str| Error::Shard {
            shard,
            message: message.into(),
        };
        let base = self.bases.get(shard as usize).and_then(Option::as_ref);
        let base = base.ok_or_else(|| gone("it is not on this server"))?;
        let client = self.client.get().and_then(Weak::upgrade);
        let client = client.ok_or_else(|| gone("the store is being closed"))?;
        let snapshot = snapshot_at_shard(state, Arc::clone(base), client)?;
        snapshot.begin(&cancel);
        let cancel = cancel.watching(snapshot.watch());
        Ok((Arc::new(snapshot), cancel))
    }
}

/// A hub, and the local shards, which must be told how to reach the others once that is known.
pub(crate) struct NewHub(pub Hub, LocalParts);

impl NewHub {
    /// Sets the client through which other shards are reached.
    pub(crate) fn connect(&self, client: &Arc<dyn ShardClient>) {
        let _ = self.1.client.set(Arc::downgrade(client));
        let far: Arc<dyn Far> = Arc::clone(client) as _;
        self.0.connect(&far);
    }
}

/// A hub over the shards of this process, with queries asked at shard `home`.
pub(crate) fn hub_of(bases: Vec<Option<Arc<Base>>>, home: u32, options: &OpenOptions) -> NewHub {
    let local = LocalParts {
        bases: Arc::new(bases),
        client: Arc::default(),
    };
    let runtime = options.runtime.clone().unwrap_or_default();
    let hub = Hub::new(
        Box::new(local.clone()),
        home,
        runtime.memory().clone(),
        Arc::clone(runtime.pool()),
        runtime.threads(),
    );
    NewHub(hub, local)
}

/// Opens all shards of a store in this process, to be read.
fn open_shards_of(dir: &Path, cluster: &Cluster, options: &OpenOptions) -> Result<OpenedStore> {
    open_shards_at(dir, cluster, options, 0, |client| client)
}

/// Opens all shards of a store in this process, with queries asked at shard `home`. `through` receives the direct
/// client between them, and returns the client to use.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_shards_at(
    dir: &Path,
    cluster: &Cluster,
    options: &OpenOptions,
    home: u32,
    through: impl FnOnce(Arc<dyn ShardClient>) -> Arc<dyn ShardClient>,
) -> Result<OpenedStore> {
    const WHY: &str = "a sharded store cannot be updated yet";
    if options.access == Access::Write {
        return Err(Error::Unsupported(WHY.into()));
    }
    let shards = NearShards::new(open_shards_with(dir, cluster, &options.indexes)?);
    let mut verified = Held(Arc::default());
    // A later request then finds it done.
    if options.verify != Verify::Off {
        let mut bytes = 0;
        for (s, base) in (0..).zip(shards.shards()) {
            bytes += compare(&dir.join(shard_folder(s)), base, None, &|| false)?;
        }
        verified = Held(Trust::of_verified(bytes));
    }
    let base = shards.shards().get(home as usize).ok_or_else(|| {
        Error::Usage(format!(
            "the store at {} has no shard {home}",
            dir.display()
        ))
    })?;
    let base = Arc::clone(base);
    let bases = shards.shards().iter().cloned().map(Some).collect();
    let hub = hub_of(bases, home, options);
    let client = through(Arc::new(shards.with_posts(Arc::new(hub.0.clone()))));
    hub.connect(&client);
    let snapshot = snapshot_of_shard(base, client)?;
    Ok(OpenedStore {
        hub: Some(hub.0),
        writer: Writer::new(snapshot, Err(WHY.into())),
        recovery: None,
        disk: None,
        reader: None,
        trust: verified,
    })
}
