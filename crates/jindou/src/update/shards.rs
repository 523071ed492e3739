//! Opening a sharded store, and merging its shards.

use super::durable::{self, Access, OpenOptions, OpenedStore, StoreContents, TRIES};
use super::trust::{Trust, VerificationHandle, Verify, compare};
use crate::runtime::Runtime;
use jindou_cluster::shards::{
    InProcessShards, ShardClient, ShardSession, snapshot_at_shard, snapshot_of_shard,
};
use jindou_engine::{Hub, LocalShards};
use jindou_graph::Graph;
use jindou_graph::shard::{Far, OtherShards};
use jindou_log::StoreLock;
use jindou_model::sync::{read, write};
use jindou_model::{CancelToken, Error, Result};
use jindou_store::directory::{BaseLocation, LOG};
use jindou_store::shard::{Cluster, open_shards_with, shard_folder, tidy_shards};
use jindou_store::{Base, Snapshot};
use std::path::Path;
use std::sync::{Arc, RwLock, Weak};

/// Opens a store directory, sharded or not.
///
/// # Errors
/// As [`durable::open`]; [`Error::Damaged`] for a shard that is missing, damaged, or from another load.
pub(crate) fn open(dir: &Path, options: &OpenOptions) -> Result<OpenedStore> {
    match Cluster::read(dir)? {
        Some(_) => open_shards_at(dir, options, 0, |client| client),
        None => durable::open(dir, options),
    }
}

/// The bases that one merge wrote of the shards in this process, and the client that reads all shards of that merge.
struct ServedBases {
    bases: Vec<Option<Arc<Base>>>,
    client: Weak<dyn ShardClient>,
}

impl ServedBases {
    fn has(&self, base: &Arc<Base>) -> bool {
        let mut bases = self.bases.iter().flatten();
        bases.any(|other| Arc::ptr_eq(base, other))
    }
}

/// The shards of this process, for evaluating parts of queries.
#[derive(Clone, Default)]
struct LocalParts(Arc<RwLock<Vec<ServedBases>>>);

impl LocalShards for LocalParts {
    fn open(
        &self,
        shard: u32,
        state: Option<&dyn Graph>,
        cancel: CancelToken,
    ) -> Result<(Arc<dyn Graph>, CancelToken)> {
        let known = state
            .and_then(Graph::as_any)
            .and_then(|any| any.downcast_ref::<Snapshot>());
        let served = {
            let served = read(&self.0);
            let of = match known {
                Some(snapshot) => served.iter().find(|s| s.has(snapshot.base())),
                None => served.last(),
            };
            of.and_then(|of| Some((of.bases.clone(), of.client.upgrade()?)))
        };
        open_part(shard, state, served, cancel)
    }
}

/// The bases of one merge that are in this process, indexed by shard, and the client that reads all shards of that
/// merge.
type Served = (Vec<Option<Arc<Base>>>, Arc<dyn ShardClient>);

/// Opens a shard in this process for a part of a query. The part reads `state`, or the newest one if `None`. `served`
/// are the bases that `state` uses; `None` if their files are no longer open.
pub(crate) fn open_part(
    shard: u32,
    state: Option<&dyn Graph>,
    served: Option<Served>,
    cancel: CancelToken,
) -> Result<(Arc<dyn Graph>, CancelToken)> {
    let gone = |message: &str| Error::shard(shard, message);
    let (bases, client) = served.ok_or_else(|| gone("its files are no longer open here"))?;
    let base = bases.into_iter().nth(shard as usize).flatten();
    let base = base.ok_or_else(|| gone("it is not on this server"))?;
    let snapshot = snapshot_at_shard(state, base, client)?;
    snapshot.begin(&cancel);
    let cancel = cancel.watching(snapshot.watch());
    Ok((Arc::new(snapshot), cancel))
}

/// The shards of a store in this process. Parts of queries run at them, over the bases of any merge that a snapshot
/// still reads.
pub(crate) struct ShardHost {
    hub: Hub,
    parts: LocalParts,
}

/// Creates a hub that coordinates queries at shard `home`, with the memory and threads of a runtime.
pub(crate) fn shard_hub(parts: Box<dyn LocalShards>, home: u32, runtime: &Runtime) -> Hub {
    let (memory, pool) = (runtime.memory().clone(), Arc::clone(runtime.pool()));
    Hub::new(parts, home, memory, pool, runtime.threads())
}

impl ShardHost {
    /// Creates a host without bases, whose queries are coordinated at shard `home`.
    pub(crate) fn new(home: u32, options: &OpenOptions) -> Self {
        let parts = LocalParts::default();
        let runtime = options.runtime.clone().unwrap_or_default();
        let hub = shard_hub(Box::new(parts.clone()), home, &runtime);
        Self { hub, parts }
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Serves these bases in addition to earlier ones. Their queries reach other shards through the client.
    pub(crate) fn serve(&self, bases: Vec<Option<Arc<Base>>>, client: &Arc<dyn ShardClient>) {
        let mut served = write(&self.parts.0);
        // The bases of a dropped client have no readers.
        served.retain(|s| s.client.strong_count() > 0);
        served.push(ServedBases {
            bases,
            client: Arc::downgrade(client),
        });
        let far: Arc<dyn Far> = Arc::clone(client) as _;
        self.hub.connect(&far);
    }

    /// Serves the bases of all shards, which are all in this process. `through` maps the direct client between them to
    /// the client to use.
    fn serve_all(
        &self,
        bases: &[Arc<Base>],
        through: impl FnOnce(Arc<dyn ShardClient>) -> Arc<dyn ShardClient>,
    ) -> Arc<dyn ShardClient> {
        let near = InProcessShards::new(bases.to_vec()).with_posts(Arc::new(self.hub.clone()));
        let client = through(Arc::new(near));
        self.serve(bases.iter().cloned().map(Some).collect(), &client);
        client
    }

    /// Serves the bases that a merge wrote. Returns the access from the base `own` to the other shards.
    ///
    /// # Errors
    /// [`Error::Internal`] if the base is not a shard.
    pub(crate) fn serve_merged(
        &self,
        bases: &[Option<Arc<Base>>],
        own: &Arc<Base>,
    ) -> Result<Arc<dyn OtherShards>> {
        let bases: Vec<Arc<Base>> = bases.iter().flatten().cloned().collect();
        let client = self.serve_all(&bases, |client| client);
        let session = ShardSession::new(Arc::clone(own), client);
        let session = session.ok_or_else(|| Error::Internal("a merge made no shard".into()))?;
        Ok(Arc::new(session))
    }

    /// Number of the store's shards.
    pub(crate) fn shards(&self) -> u32 {
        read(&self.parts.0)
            .last()
            .map_or(0, |s| s.bases.len() as u32)
    }

    /// The bases that a snapshot reads of the shards in this process, indexed by shard.
    pub(crate) fn bases_of(&self, snapshot: &Snapshot) -> Vec<Option<Arc<Base>>> {
        let served = read(&self.parts.0);
        let of = served.iter().find(|s| s.has(snapshot.base()));
        of.map(|s| s.bases.clone()).unwrap_or_default()
    }
}

/// Opens all shards of a store in this process; queries are coordinated at shard `home`. `through` maps the direct
/// client between them to the client to use.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_shards_at(
    dir: &Path,
    options: &OpenOptions,
    home: u32,
    through: impl FnOnce(Arc<dyn ShardClient>) -> Arc<dyn ShardClient>,
) -> Result<OpenedStore> {
    let lock = match options.access {
        Access::Read => Err("the database was opened read-only".to_owned()),
        Access::Any => StoreLock::acquire(dir).map_err(|e| e.to_string()),
        Access::Write => Ok(StoreLock::acquire(dir)?),
    };
    let host = ShardHost::new(home, options);
    let opened = match lock {
        Ok(lock) => {
            let cluster = cluster_of(dir)?;
            tidy_shards(dir, &cluster, &all_of(&cluster))?;
            let (head, trust) = bases(dir, &cluster, options, &host, home, through)?;
            durable::with_log(dir, lock, BaseLocation::find(dir)?, head, trust, options)?
        }
        Err(why) => read_shards(dir, options, &host, home, through)?.into_store(why, None),
    };
    Ok(OpenedStore {
        shards: Some(host),
        ..opened
    })
}

fn cluster_of(dir: &Path) -> Result<Cluster> {
    let cluster = Cluster::read(dir)?;
    cluster.ok_or_else(|| Error::not_a_store(dir, "the store is not sharded"))
}

fn all_of(cluster: &Cluster) -> Vec<u32> {
    (0..cluster.shards).collect()
}

/// Opens the bases that `cluster.jd` describes.
fn bases(
    dir: &Path,
    cluster: &Cluster,
    options: &OpenOptions,
    host: &ShardHost,
    home: u32,
    through: impl FnOnce(Arc<dyn ShardClient>) -> Arc<dyn ShardClient>,
) -> Result<(Snapshot, VerificationHandle)> {
    let bases = open_shards_with(dir, cluster, &all_of(cluster), &options.indexes)?;
    let bases: Vec<Arc<Base>> = bases.into_iter().flatten().collect();
    let mut verified = VerificationHandle(Arc::default());
    // All files are verified now, so a later check in the background is not needed.
    if options.verify != Verify::Off {
        let mut bytes = 0;
        for (s, base) in (0..).zip(&bases) {
            bytes += compare(&dir.join(shard_folder(s)), base, None, &|| false)?;
        }
        verified = VerificationHandle(Trust::of_verified(bytes));
    }
    let own = bases.get(home as usize).cloned();
    let own = own.ok_or_else(|| {
        let what = format!("the store at {} has no shard {home}", dir.display());
        Error::Usage(what)
    })?;
    let client = host.serve_all(&bases, through);
    Ok((snapshot_of_shard(own, client)?, verified))
}

/// Reads the present state of a sharded store that another process may be changing.
fn read_shards(
    dir: &Path,
    options: &OpenOptions,
    host: &ShardHost,
    home: u32,
    through: impl FnOnce(Arc<dyn ShardClient>) -> Arc<dyn ShardClient>,
) -> Result<StoreContents> {
    let mut through = Some(through);
    let mut tried = 0;
    loop {
        tried += 1;
        let cluster = cluster_of(dir)?;
        let through = |client| match through.take() {
            Some(through) => through(client),
            None => client,
        };
        let read = bases(dir, &cluster, options, host, home, through).and_then(|(head, trust)| {
            let mut contents = StoreContents::of_base(head, trust);
            contents.read_log(&dir.join(LOG))?;
            Ok(contents)
        });
        // Try again if another process has merged meanwhile and removed files that were needed.
        match read {
            Err(_) if tried < TRIES && cluster_of(dir)? != cluster => {}
            read => return read,
        }
    }
}
