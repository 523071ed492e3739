//! The interface to the store.

use crate::bucket::{BaseFiles, Failure, Incoming};
use crate::machine::{Base, Blob, Group, Problem, RequestKey};
use crate::peers::PeerProblem;
use jindou_model::CancelToken;
use std::io;
use std::sync::Arc;

/// A store that follows a log. Snapshots are immutable. The driver keeps the published snapshot, the head, and the
/// snapshots between them; it drops the latter two when the head is rolled back. Methods are called on threads that
/// may block, except those that are marked as called by the driver's event loop, which must not take long.
pub trait Application: Send + Sync + 'static {
    /// A snapshot of the store; cheap to clone.
    type Snapshot: Clone + Send + Sync + 'static;

    /// Opens the local store.
    ///
    /// # Errors
    /// If a store exists and cannot be opened.
    fn open(&self) -> io::Result<Local<Self::Snapshot>>;

    /// Creates an empty store in an empty folder. `log` identifies a log that begins with the empty store, by that
    /// store's id epoch; the folder follows that log from now on. `None` if a base will be received into the folder.
    ///
    /// # Errors
    /// If the store cannot be created.
    fn empty(&self, log: Option<u64>) -> io::Result<Self::Snapshot>;

    /// Records in the folder that its store, opened as [`Local::Other`], is the state before the first group of this
    /// log.
    ///
    /// # Errors
    /// If the record cannot be written.
    fn follow(&self, log: u64) -> io::Result<()>;

    /// Evaluates an update on a snapshot. Must check `cancel` regularly: if the head is rolled back meanwhile, the
    /// result is dropped.
    fn evaluate(
        &self,
        head: &Self::Snapshot,
        key: RequestKey,
        body: &Blob,
        cancel: &CancelToken,
    ) -> Evaluated<Self::Snapshot>;

    /// Prepares the evaluation of several updates that follow one another, of which the first is on `head`: for requests
    /// to other processes that can be made together.
    fn prefetch(&self, head: &Self::Snapshot, bodies: &[Blob], cancel: &CancelToken) {
        let _ = (head, bodies, cancel);
    }

    /// Applies another server's group to a snapshot.
    ///
    /// # Errors
    /// If the group does not match the snapshot, or memory or disk space is exhausted; the server must stop.
    fn apply(&self, head: &Self::Snapshot, group: &Group) -> io::Result<Self::Snapshot>;

    /// Makes the snapshot visible to queries. Called by the event loop.
    fn publish(&self, number: u64, snapshot: &Self::Snapshot);

    /// Writes a snapshot, together with the request keys remembered in `base`, into the local folder.
    ///
    /// # Errors
    /// If the snapshot cannot be written; the local store is then unchanged.
    fn save(&self, base: &Base, snapshot: &Self::Snapshot) -> io::Result<()>;

    /// True if all servers must merge the snapshot after this group. Called by the event loop before the group is
    /// applied.
    fn starts_merge(&self, _: &Group) -> bool {
        false
    }

    /// Merges the snapshot after a group for which [`Self::starts_merge`] is true, together with the remembered request
    /// keys. Called once the group is published. Returns when the merge is complete on this server.
    ///
    /// # Errors
    /// If the merge failed; the local store is then unchanged.
    fn merge(&self, _: &Base, _: &Self::Snapshot) -> io::Result<()> {
        Ok(())
    }

    /// Returns the same state based on the files that the last [`Self::save`] wrote, so that the memory of saved data
    /// is released. Cheap if the snapshot already uses these files.
    ///
    /// # Errors
    /// If the files do not match; the server must stop.
    fn rebase(&self, snapshot: &Self::Snapshot) -> io::Result<Self::Snapshot>;

    /// The files of the local store; `None` if the store's last group is not `number`.
    ///
    /// # Errors
    /// If the files cannot be opened.
    fn files(&self, number: u64) -> io::Result<Option<Arc<dyn BaseFiles>>>;

    /// Numbers of the shards that this server holds, for its entry in the list of servers. Called by the event loop.
    fn shards(&self) -> Vec<u32> {
        Vec::new()
    }

    /// The files of the shards of base `number` that this server should upload now; `None` if the store has no shards,
    /// or has another base by now.
    ///
    /// # Errors
    /// If the files cannot be opened.
    fn shard_files(&self, _: u64) -> io::Result<Option<ShardFiles>> {
        Ok(None)
    }

    /// Starts a merge by all servers of a sharded store, and waits until it is committed.
    ///
    /// # Errors
    /// If the merge failed here, or could not be started.
    fn merge_everywhere(&self) -> io::Result<()> {
        Ok(())
    }

    /// Last group in the base of a merge by all servers that was committed since the last call; `None` if no merge was.
    /// Called by the event loop.
    fn committed_merge(&self) -> Option<u64> {
        None
    }

    /// Starts to receive the store of a log.
    ///
    /// # Errors
    /// If the files cannot be created.
    fn receive(&self, log: u64) -> io::Result<Box<dyn Incoming<Self::Snapshot>>>;

    /// Encodes the answer to an update whose evaluation failed with this error because of a bug.
    fn failed(&self, error: &jindou_model::Error) -> Blob;

    /// Reports something to the operator. Called by the event loop.
    fn report(&self, report: Report);
}

/// Shards, each with its files.
pub type ShardFiles = Vec<(u32, Arc<dyn BaseFiles>)>;

/// State of the local folder.
#[derive(Clone, Debug)]
pub enum Local<S> {
    /// The folder is empty.
    Empty,
    /// A store that follows no log.
    Other {
        /// The id epoch of the store's load; `None` if the store was changed since.
        loaded: Option<u64>,
        /// Id epoch that identifies the log that is created from this store if no log exists; the same at each start.
        begins: u64,
        /// The store's content.
        snapshot: S,
    },
    /// A store that follows a log.
    Following {
        /// Identifies the log: the id epoch of the store with which it began.
        log: u64,
        /// The last group that the store contains, and the remembered request keys.
        base: Base,
        /// The store's content.
        snapshot: S,
    },
}

/// The result of an evaluation.
#[derive(Clone, Debug)]
pub enum Evaluated<S> {
    /// The update was evaluated. It may have changed nothing.
    Record {
        /// The snapshot with the changes applied.
        snapshot: S,
        /// The encoded changes.
        bytes: Blob,
        /// The answer to the client.
        report: Blob,
    },
    /// The evaluation failed, and the failure is not recorded in the log. Contains the encoded answer.
    Refused(Blob),
}

/// A message for the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Report {
    /// A problem that the machine reported, and the log's id epoch.
    Problem(Problem, u64),
    /// A failed request to the bucket, and its purpose.
    Bucket(&'static str, Failure),
    /// Requests to the bucket succeed again.
    BucketBack,
    /// The local store cannot be written.
    Disk(String),
    /// The server waits for the first upload of the store with this name before it starts.
    Waiting(String),
    /// A base cannot be used, with the reason.
    Base(String),
    /// A problem with other servers.
    Peer(PeerProblem),
    /// A group that the log had lost was restored as the object with this name.
    WrittenBack(String),
}
