//! The local directory of a server that holds some shards of a store that follows a shared log. The other shards are on
//! other servers, which merge at the same snapshot.
//!
//! ```text
//! merge started (record)    ─► each server writes the segments of its shards, and announces the results
//!                           ─► with the results of all shards it completes the new base, and serves it too
//! merge committed (record)  ─► proposed by the writer once the base is complete everywhere; later snapshots use it
//! ```
//!
//! The committed record contains the results of all shards, so that a server that was away can complete its base with
//! them.

mod held;
mod merge;
mod receive;

pub use held::{HeldShards, shards_in};

use super::application::{DueCommit, LogFolder};
use super::folder::{IncomingFiles, OpenFiles};
use super::notes::Notes;
use super::parts::Parts;
use super::{OperatorLog, SharedLog};
use crate::runtime::Runtime;
use crate::update::{OpenOptions, Trust, VerificationHandle, Verify, shard_hub};
use jindou_cluster::servers::{Members, ShardBases, ShardFigures};
use jindou_cluster::shards::{ShardClient, ShardSession, snapshot_of_shard};
use jindou_dictionary::index::Indexes;
use jindou_engine::Hub;
use jindou_graph::shard::{Far, OtherShards};
use jindou_log::StoreLock;
use jindou_model::{CancelToken, Error, Invariant, Result, private, sync};
use jindou_replicas::{Base as LogBase, now};
use jindou_replicas::{BaseFiles, HeldBases, Incoming, Local, ShardFiles};
use jindou_store::directory::{BaseLocation, MANIFEST, Manifest, ManifestState, verify};
use jindou_store::shard::{
    CLUSTER, Cluster, manifest_of, open_shards_with, shard_folder, tidy_shards,
};
use jindou_store::{Base, MergeCommitted, MergeOptions, MergePlan, MergeReport, Merging, Snapshot};
use merge::result_to_bytes;
use receive::{INCOMING, ReceivedShards};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// A store directory with some shards of a store.
pub(super) struct ShardFolder {
    dir: PathBuf,
    notes: Notes,
    /// The operator's choice of the shards to hold.
    shards: HeldShards,
    /// True if this server has an address at which others can reach it.
    has_address: bool,
    indexes: Indexes,
    verify: Verify,
    merge: MergeOptions,
    /// Longest time for which a base is kept after a merge replaced it.
    keep_replaced_bases: Duration,
    members: Members,
    parts: Parts,
    hub: Hub,
    /// Connections to the other servers' shards. Stored here because the hub has only a weak reference.
    _far: Arc<dyn Far>,
    /// Receives messages for the operator.
    report: OperatorLog,
    /// Cancels waits when the server stops.
    stop: CancelToken,
    _lock: StoreLock,
    state: Mutex<State>,
    /// Notified when the state changes.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Numbers of the shards that this server serves, ascending.
    held: Vec<u32>,
    /// Total bytes of the files that were verified when the store was opened.
    verified: u64,
    /// The newest base that is complete on this server, and the last group that the base contains.
    newest: Option<(Arc<Base>, u64)>,
    /// Id epoch of the log.
    log: Option<u64>,
    /// Last group of a base that was committed since [`LogFolder::committed_merge`] was last called.
    committed_group: Option<u64>,
    /// The merge that is complete on this server but not committed, with the connections from its base to the other
    /// shards.
    done: Option<(Arc<Merging>, Arc<dyn OtherShards>)>,
    /// Decides when bases are committed, uploaded and released.
    bases: HeldBases,
    /// Results of all shards of the last committed merge, from the log.
    committed: Option<MergeCommitted>,
    /// Report of the last merge on this server.
    report: MergeReport,
    /// Reason why the last merge failed on this server, if that lasts.
    failed: Option<String>,
}

impl ShardFolder {
    /// Locks the directory and chooses the shards in it that this server holds.
    ///
    /// # Errors
    /// [`Error::InUse`]; those of [`HeldShards::resolve`]; [`Error::Io`].
    pub(super) fn open_locked(
        dir: &Path,
        (log, merge): (&SharedLog, MergeOptions),
        (options, runtime): (&OpenOptions, &Runtime),
        members: Members,
    ) -> Result<Self> {
        let shards = &log.shards;
        if !dir.exists() {
            private::create_folder(dir).map_err(|e| Error::io(dir, e))?;
        }
        let cluster = Cluster::read(dir)?;
        let held = cluster.map(|cluster| shards.resolve(dir, &cluster));
        let held = held.transpose()?.unwrap_or_default();
        let home = held.first().copied().or_else(|| shards.first());
        let home = home.ok_or_else(|| Error::Usage("this server would have no shard".into()))?;
        let parts = Parts::new(members.clone());
        let hub = shard_hub(Box::new(parts.clone()), home, runtime);
        let far = members.far();
        hub.connect(&far);
        members.run_parts(Arc::new(hub.clone()));
        Ok(Self {
            _lock: StoreLock::acquire(dir)?,
            dir: dir.to_owned(),
            notes: Notes::of(dir),
            shards: shards.clone(),
            has_address: log.peer_address.is_some(),
            indexes: options.indexes.clone(),
            verify: options.verify,
            merge,
            keep_replaced_bases: log.keep_replaced_bases,
            members,
            parts,
            hub,
            _far: far,
            report: Arc::clone(&log.report),
            stop: CancelToken::new(),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Rejects the folder of a shard that belongs to another load.
    ///
    /// # Errors
    /// [`Error::Usage`].
    fn refuse_foreign(&self, cluster: &Cluster, shard: u32) -> Result<()> {
        let folder = self.dir.join(shard_folder(shard));
        match Manifest::read(&folder) {
            Ok(ManifestState::Store(of)) if of.epoch != cluster.epoch => {
                Err(Error::Usage(format!(
                    "{} is of another load than {CLUSTER} next to it, and nothing was changed: remove the folder, and the server \
                 receives the shard from the log",
                    folder.display()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Verifies the files of the shards against their hashes, if `verify` asks for that. Returns their total bytes.
    ///
    /// # Errors
    /// [`Error::Damaged`]; [`Error::Io`].
    fn compare(&self, cluster: &Cluster, held: &[u32]) -> Result<u64> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let one = |&shard: &u32| {
            let manifest = manifest_of(&self.dir, cluster, shard)?;
            match self.verify {
                Verify::Off => Ok(0),
                _ => {
                    let folder = self.dir.join(shard_folder(shard));
                    verify(&folder, &manifest, None, threads, &|| {
                        self.stop.is_cancelled()
                    })
                }
            }
        };
        held.iter().map(one).sum()
    }

    /// True if the store follows a log, so that damaged shards can be received from there again.
    fn has_note(&self, cluster: &Cluster) -> Result<bool> {
        let place = BaseLocation::find(&self.dir)?.number();
        Ok(self.notes.read(place, cluster.merged)?.is_some())
    }

    /// Number of the last group in the newest base.
    fn group_of_newest(&self) -> Option<u64> {
        self.state().newest.as_ref().map(|(_, group)| *group)
    }

    /// Opens and serves the base that `cluster.jd` describes. Returns also the base's note.
    fn open_base(
        &self,
        cluster: &Cluster,
        held: Vec<u32>,
    ) -> Result<(Option<(u64, LogBase)>, Snapshot)> {
        tidy_shards(&self.dir, cluster, &held)?;
        let bases = open_shards_with(&self.dir, cluster, &held, &self.indexes)?;
        let place = BaseLocation::find(&self.dir)?.number();
        let note = self.notes.read(place, cluster.merged)?;
        let group = note.as_ref().map_or(0, |(_, base)| base.number);
        self.notes.set_shards(cluster.epoch, &held)?;
        self.state().held = held;
        let own = self.serve(Arc::new(bases), cluster.merged, group);
        let results = self.read_results(cluster.merged)?;
        let bytes = results.iter().map(|(s, r)| (*s, result_to_bytes(r)));
        self.members.set_written(cluster.merged, bytes.collect());
        let snapshot = snapshot_of_shard(own, self.members.client(cluster.merged))?;
        if let Some((log, _)) = &note {
            self.state().log = Some(*log);
        }
        Ok((note, snapshot))
    }

    fn cluster(&self) -> Result<Cluster> {
        let cluster = Cluster::read(&self.dir)?;
        cluster.ok_or_else(|| Error::not_a_store(&self.dir, "not a sharded store"))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        sync::lock(&self.state)
    }

    /// The connections from this server's shards to the other shards of a base.
    fn others(&self, base: &Arc<Base>) -> Result<Arc<dyn OtherShards>> {
        let client = self.members.client(base.number());
        let session = ShardSession::new(Arc::clone(base), client);
        let session = session.ok_or_else(|| Error::Internal("a base is no shard".into()))?;
        Ok(Arc::new(session))
    }

    /// Serves a complete base to this server's queries and to other servers, and sets it as the newest base.
    fn serve(&self, bases: ShardBases, number: u64, group: u64) -> Arc<Base> {
        let own = bases.iter().flatten().next().cloned();
        let own = own.invariant("a server of shards has at least one");
        self.members.serve(number, bases);
        self.state().newest = Some((Arc::clone(&own), group));
        own
    }
}

/// Opens the files of a shard in a store directory.
///
/// # Errors
/// Those of [`manifest_of`]; [`Error::Io`].
pub(super) fn files_of_shard(
    dir: &Path,
    cluster: &Cluster,
    shard: u32,
) -> Result<Arc<dyn BaseFiles>> {
    let mut names = manifest_of(dir, cluster, shard)?.names();
    // After a crash, the manifest may still have the name it was written under (`NEXT_MANIFEST`).
    names.insert(MANIFEST.to_owned());
    let folder = dir.join(shard_folder(shard));
    Ok(Arc::new(OpenFiles::open(&folder, names, 0)?))
}

/// Checks that a server that holds the shards `held` of `count` can be reached by the others.
///
/// # Errors
/// [`Error::Usage`] if the server lacks shards and has no address.
pub(super) fn check_address(count: u32, held: &[u32], has_address: bool) -> Result<()> {
    match has_address || held.len() == count as usize {
        true => Ok(()),
        false => Err(Error::Usage(format!(
            "this server has {} of the store's {count} shards, and needs an address at which the servers with the others reach it \
             (--peer-address HOST:PORT)",
            held.len()
        ))),
    }
}

impl LogFolder for ShardFolder {
    fn held(&self) -> Vec<u32> {
        self.state().held.clone()
    }

    fn open(&self) -> Result<Local<Snapshot>> {
        let Some(cluster) = Cluster::read(&self.dir)? else {
            return Ok(Local::Empty);
        };
        let held = self.shards.resolve(&self.dir, &cluster)?;
        check_address(cluster.shards, &held, self.has_address)?;
        for &shard in &held {
            self.refuse_foreign(&cluster, shard)?;
        }
        // If a held shard is missing, damaged, or not of the same merge as the others, all held shards are received
        // again, so that all are of the same base.
        let has = |shard: &u32| manifest_of(&self.dir, &cluster, *shard).is_ok();
        if !held.iter().all(has) {
            return Ok(Local::Empty);
        }
        match self.compare(&cluster, &held) {
            Ok(bytes) => self.state().verified = bytes,
            Err(e @ Error::Damaged { .. }) if self.has_note(&cluster)? => {
                (self.report)(&format!("{e}; this server downloads its shards again"));
                return Ok(Local::Empty);
            }
            Err(e) => return Err(e),
        }
        let (group, snapshot) = self.open_base(&cluster, held)?;
        Ok(match group {
            Some((log, base)) => Local::Following {
                log,
                snapshot: snapshot.at_group(base.number),
                base,
            },
            None => Local::Other {
                loaded: (cluster.merged == 0).then_some(cluster.epoch),
                begins: self.notes.id_of_new_log()?,
                snapshot: snapshot.without_open_merge(),
            },
        })
    }

    fn empty(&self, _: Option<u64>) -> Result<Snapshot> {
        // No query reads this snapshot: the server is not ready before it has received its shards.
        Ok(Snapshot::of_base(Base::empty(
            super::random() as u64,
            false,
        )?))
    }

    fn files(&self, number: u64) -> Result<Option<Arc<dyn BaseFiles>>> {
        if self.group_of_newest() != Some(number) {
            return Ok(None);
        }
        let shards = self.cluster()?.shards;
        let files = OpenFiles::open(&self.dir, [CLUSTER.to_owned()], shards)?;
        Ok(Some(Arc::new(files)))
    }

    fn shard_files(&self, number: u64) -> Result<Option<ShardFiles>> {
        if self.group_of_newest() != Some(number) {
            return Ok(None);
        }
        let cluster = self.cluster()?;
        let mut all: ShardFiles = Vec::new();
        for shard in self
            .held()
            .into_iter()
            .filter(|s| self.members.is_first(*s))
        {
            all.push((shard, files_of_shard(&self.dir, &cluster, shard)?));
        }
        Ok(Some(all))
    }

    fn committed_merge(&self) -> Option<u64> {
        self.state().committed_group.take()
    }

    fn receive(self: Arc<Self>, log: u64) -> Result<Box<dyn Incoming<Snapshot>>> {
        let folder = self.dir.join(INCOMING);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|e| Error::io(&folder, e))?;
        }
        private::create_folder(&folder).map_err(|e| Error::io(&folder, e))?;
        Ok(Box::new(ReceivedShards {
            into: self,
            log,
            files: IncomingFiles::into(folder),
        }))
    }

    fn follow(&self, log: u64) -> Result<()> {
        let place = BaseLocation::find(&self.dir)?.number();
        let merged = self.cluster()?.merged;
        self.notes
            .write(place, merged, (log, &LogBase::default()))?;
        self.state().log = Some(log);
        Ok(())
    }

    fn replay(&self, head: &Snapshot, record: &[u8]) -> Result<Snapshot> {
        match MergeCommitted::of_record(record)? {
            Some(committed) => Ok(self.commit(head, &committed, true)?.0),
            None => head.replay(record),
        }
    }

    fn starts_merge(&self, record: &[u8]) -> bool {
        Snapshot::starts_merge(record)
    }

    fn merge(&self, contained: &LogBase, snapshot: &Snapshot) -> Result<()> {
        let newest = self.state().newest.clone();
        if newest.is_some_and(|(base, _)| base.number() >= snapshot.number()) {
            return Ok(());
        }
        self.state().failed = None;
        let written = self.write_base(contained, snapshot);
        // The merge is tried again: a disk that was full may have room then. Other failures last.
        if let Err(e) = &written
            && !matches!(e, Error::Io { .. })
        {
            self.state().failed = Some(e.to_string());
        }
        self.changed.notify_all();
        written
    }

    fn start_merge(&self, head: &Snapshot, base: u64) -> Result<(Snapshot, Vec<u8>)> {
        if head.base().number() != base {
            return Err(Error::Conflict("the store was merged meanwhile".into()));
        }
        let plan = MergePlan::next(head.base(), self.merge.generations);
        let started = head.start_merge(plan)?;
        started.ok_or_else(|| {
            Error::Conflict("another merge is in progress; try again when it is done".into())
        })
    }

    fn commit_merge(&self, head: &Snapshot, bytes: &[u8]) -> Result<(Snapshot, Vec<u8>)> {
        let committed = MergeCommitted::of_record(bytes)?
            .ok_or_else(|| Error::Internal("the commit of a merge cannot be read".into()))?;
        self.commit(head, &committed, false)
    }

    fn due_commit(&self, snapshot: &Snapshot, is_writer: bool) -> Result<Option<DueCommit>> {
        let Some((base, _)) = self.state().newest.clone() else {
            return Ok(None);
        };
        let number = base.number();
        let is_open = snapshot
            .open_merge()
            .is_some_and(|open| open.started <= base.number());
        if !is_open {
            return Ok(None);
        }
        let due = self.result_of_merge(number, is_writer)?;
        Ok(due.map(|committed| (number, committed.to_record(number))))
    }

    fn published(&self, snapshot: &Snapshot) {
        self.parts.publish(snapshot);
        let mut state = self.state();
        let base = snapshot.base().number();
        let open = snapshot.open_merge().map(|open| open.started);
        if !state.bases.published(base, open) {
            return;
        }
        let newest = state.newest.as_ref().filter(|(b, _)| b.number() == base);
        // Set also after a restart: the server may have stopped before it uploaded its shards.
        state.committed_group = newest.map(|(_, group)| *group);
        let is_over = |merging: &Merging| merging.base().number() == base;
        if state
            .done
            .take_if(|(merging, _)| is_over(merging))
            .is_some()
        {
            state.committed = None;
        }
    }

    fn release_expired(&self) {
        self.parts.forget_old();
        let (in_use, served) = (self.members.oldest_in_use(), self.members.served());
        let served = (served, in_use);
        let released = (self.state().bases).due(served, self.keep_replaced_bases, now());
        for base in released {
            self.members.release(base);
        }
    }

    fn shard_figures(&self) -> Vec<ShardFigures> {
        self.members.figures()
    }

    fn hub(&self) -> Option<Hub> {
        Some(self.hub.clone())
    }

    fn client(&self) -> Option<Arc<dyn ShardClient>> {
        let newest = self.state().newest.clone();
        newest.map(|(base, _)| self.members.client(base.number()))
    }

    fn trust(&self, verify: Verify, _: &Snapshot) -> Result<VerificationHandle> {
        Ok(match verify {
            Verify::Off => VerificationHandle(Arc::default()),
            _ => VerificationHandle(Trust::of_verified(self.state().verified)),
        })
    }

    fn last_merge(&self) -> MergeReport {
        self.state().report.clone()
    }

    fn stop(&self) {
        self.stop.cancel();
    }
}
