//! The store, as the driver uses it.

use crate::bucket::{BaseFiles, Failure, Incoming};
use crate::peers::PeerProblem;
use jindou_model::CancelToken;
use jindou_replicas::{Base, Blob, Group, Problem, RequestKey};
use std::io;
use std::sync::Arc;

/// A store that follows a log. Snapshots are immutable, so that the driver keeps published ones, the head, and those
/// between by itself, and drops them when the head falls back. All calls come from threads that may block.
pub trait Application: Send + Sync + 'static {
    /// A state of the store; cheap to clone.
    type Snapshot: Clone + Send + Sync + 'static;

    /// Opens the local store.
    ///
    /// # Errors
    /// If it is there and cannot be opened.
    fn open(&self) -> io::Result<Local<Self::Snapshot>>;

    /// The empty store, for an empty folder. `log` is the log that begins with it, and which the folder follows from now
    /// on; without one, the store will be received.
    ///
    /// # Errors
    /// If it cannot be made.
    fn empty(&self, log: Option<u64>) -> io::Result<Self::Snapshot>;

    /// Notes in the folder that its store, which was opened as [`Local::Other`], is that of this log's number 0.
    ///
    /// # Errors
    /// If that cannot be written.
    fn follow(&self, log: u64) -> io::Result<()>;

    /// Evaluates an update on a snapshot. Looks at `cancel`: the head may fall meanwhile, and the result is dropped then.
    fn evaluate(
        &self,
        head: &Self::Snapshot,
        key: RequestKey,
        body: &Blob,
        cancel: &CancelToken,
    ) -> Evaluated<Self::Snapshot>;

    /// The snapshot after a group that another server made.
    ///
    /// # Errors
    /// If the group does not fit, or there is no room for it; the server must stop.
    fn lay(&self, head: &Self::Snapshot, group: &Group) -> io::Result<Self::Snapshot>;

    /// Makes the snapshot the one that queries see. Must not take long.
    fn publish(&self, number: u64, snapshot: &Self::Snapshot);

    /// Writes a snapshot with the requests that it knows into the local folder, so that the store opens with both.
    ///
    /// # Errors
    /// If it cannot be written; the local store is then as it was.
    fn save(&self, base: &Base, snapshot: &Self::Snapshot) -> io::Result<()>;

    /// The same state over the files that the last [`Self::save`] wrote, so that memory which it saved is released.
    /// Cheap where that is so already.
    ///
    /// # Errors
    /// If the files do not fit; the server must stop.
    fn over_saved(&self, snapshot: &Self::Snapshot) -> io::Result<Self::Snapshot>;

    /// The files of the local store, if it is of this number.
    ///
    /// # Errors
    /// If they cannot be opened.
    fn files(&self, number: u64) -> io::Result<Option<Arc<dyn BaseFiles>>>;

    /// Begins to receive the store of a log.
    ///
    /// # Errors
    /// If there is no place for it.
    fn receive(&self, log: u64) -> io::Result<Box<dyn Incoming<Self::Snapshot>>>;

    /// The report of an update whose evaluation ended with this error, which is a mistake in the program.
    fn failed(&self, error: &jindou_model::Error) -> Blob;

    /// Tells the operator. Must not take long.
    fn report(&self, report: Report);
}

/// The local folder.
#[derive(Clone, Debug)]
pub enum Local<S> {
    /// Nothing is in it.
    Empty,
    /// A store that follows no log.
    Other {
        /// The id epoch of its load; `None` if it has been changed since.
        loaded: Option<u64>,
        /// The log that it begins if there is none: the same at each start.
        begins: u64,
        /// Its state.
        snapshot: S,
    },
    /// A store that follows a log.
    Following {
        /// The log.
        log: u64,
        /// The newest group in it, and the requests that it knows.
        base: Base,
        /// Its state.
        snapshot: S,
    },
}

/// The result of an evaluation.
#[derive(Clone, Debug)]
pub enum Evaluated<S> {
    /// Changes, possibly without any.
    Record {
        /// The snapshot with them.
        snapshot: S,
        /// The changes.
        bytes: Blob,
        /// The answer.
        report: Blob,
    },
    /// Refused for reasons that are not in the data.
    Refused(Blob),
}

/// Something that an operator must be told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Report {
    /// The machine's, about the log with this id epoch.
    Problem(Problem, u64),
    /// A request to the bucket that failed, and what for.
    Bucket(&'static str, Failure),
    /// The requests that failed before succeed again.
    BucketBack,
    /// The local store cannot be written.
    Disk(String),
    /// The start waits for the first upload of the store, which has this name.
    Waiting(String),
    /// A base cannot be used, for this reason.
    Base(String),
    /// Something about other servers.
    Peer(PeerProblem),
    /// A group that the log had lost was written again, under this name.
    WrittenBack(String),
}
