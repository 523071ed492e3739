//! The bucket: an object store, or a directory, with a time limit for each request.
//!
//! Each request runs as a task that holds a permit of its [`Lane`] until the request has really ended. After the time
//! limit the caller gets an unknown outcome, while the task continues; the machine allows for requests that take effect
//! late. So a hanging bucket holds a bounded number of requests, however often they are retried. The object store must
//! end each request eventually; the S3 client does so after about twice the time limit (`s3/client.rs`).

mod anchor;
mod bases;
mod directory;
mod examine;
mod identity;
mod known;
mod list;
mod open;
mod past;
mod probe;
#[cfg(feature = "s3")]
mod s3;
mod shards;
mod staged;
mod survey;

use anchor::Anchor;
pub use bases::{BaseFiles, BaseInBucket, FileInBase, Incoming};
pub use examine::{Examined, Finding};
use identity::IDENTITY;
pub use identity::{Beginning, FirstObject, FoundServer, Identity, Remains, ServerEntry};
pub use known::{read_known, write_known};
pub use shards::ShardInBase;
pub use survey::Survey;

use crate::blocking::blocking;
use crate::machine::{Fetch, Fetched, Name, PutResult};
use bytes::Bytes;
use directory::Directory;
use futures_util::StreamExt;
use object_store::path::Path as Key;
use object_store::{
    GetResult, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
};
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// Limits of requests.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time limit of a request without a body. For a listing: time limit per thousand names.
    pub request: Duration,
    /// Assumed transfer rate in bytes per second, by which the time limit grows with the body's size.
    pub rate: u64,
    /// Limit for the total bytes of bodies that are read concurrently.
    pub bytes: usize,
    /// Size in bytes of the largest object that is read.
    pub largest: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(2),
            rate: 2 << 20,
            bytes: 256 << 20,
            largest: 4 << 30,
        }
    }
}

impl Limits {
    /// The permits for bytes that are being read, one for each KiB.
    fn kib(&self) -> usize {
        self.bytes.div_ceil(KIB).clamp(1, u32::MAX as usize)
    }
}

/// Reason why a request failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// The object does not exist.
    #[error("the object is missing")]
    Missing,
    /// An object that must exist is missing or damaged; the text names it. Retrying does not help.
    #[error("{0}")]
    Lost(String),
    /// The bucket denies the request or does not support it, with the reason.
    #[error("the bucket refuses: {0}")]
    Refused(String),
    /// Unknown outcome: the request may or may not have been executed. The text has the reason.
    #[error("{0}")]
    Unknown(String),
}

impl Failure {
    /// The failure of a request whose answer did not come in time.
    pub(crate) fn late() -> Self {
        Self::Unknown("the bucket does not answer in time".into())
    }
}

/// The content that was read; `None` if the object is missing.
fn if_there<T>(read: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match read {
        Err(Failure::Missing) => Ok(None),
        read => read.map(Some),
    }
}

/// Outcome of a put with create-only semantics.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Put {
    /// This request created the object.
    Created,
    /// The object exists, possibly because of an earlier attempt. This was verified by reading its metadata.
    Exists,
    /// The put failed, or its outcome is unknown.
    Failed(Failure),
}

impl Put {
    /// The outcome as the machine needs it. A denied put counts as unknown, since an earlier attempt may have been
    /// executed.
    pub fn result(&self) -> PutResult {
        match self {
            Self::Created => PutResult::Created,
            Self::Exists => PutResult::Exists,
            Self::Failed(_) => PutResult::Unknown,
        }
    }
}

/// A prefix in an object store, or a directory. Cheap to clone.
#[derive(Clone)]
pub struct Bucket(Arc<Inner>);

struct Inner {
    store: Arc<dyn ObjectStore>,
    prefix: Key,
    /// The directory, if the bucket is one.
    anchor: Option<Arc<Anchor>>,
    limits: Limits,
    lanes: [Arc<Semaphore>; 4],
    bytes: Arc<Semaphore>,
}

/// Classes of requests, each with a limit of its own, so that one class does not wait for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lane {
    Put,
    List,
    Get,
    /// Bases, spans and deletions.
    Bulk,
}

jindou_model::debug_format!(Bucket, |this| "Bucket({}/{})", this.0.store, this.0.prefix);

impl Bucket {
    /// A bucket that consists of the objects whose names begin with `prefix` and a slash.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str, limits: Limits) -> Self {
        Self::of(store, prefix, None, limits)
    }

    /// A bucket in a directory, which is created if it is missing. Files and their folders are synced before a put
    /// succeeds. Empty subfolders are removed and created again; the directory itself is created only by this call.
    ///
    /// # Errors
    /// If it cannot be created or opened.
    pub fn directory(path: &Path, limits: Limits) -> std::io::Result<Self> {
        // Another server may create the directory at the same time.
        if !path.is_dir()
            && let Err(e) = jindou_model::private::create_folder(path)
            && !path.is_dir()
        {
            return Err(e);
        }
        let store = Arc::new(Directory::open(path)?);
        Ok(Self::over_folder(store, path, limits))
    }

    /// A directory accessed through the caller's object store, for example one that counts requests or injects
    /// failures.
    pub fn over_folder(store: Arc<dyn ObjectStore>, folder: &Path, limits: Limits) -> Self {
        Self::of(store, "", Some(folder), limits)
    }

    /// The same bucket accessed through the caller's wrapper of the object store, for example one that counts requests
    /// or injects failures.
    #[must_use]
    pub fn wrapped(&self, wrap: impl FnOnce(Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore>) -> Self {
        let store = wrap(self.0.store.clone());
        let limits = self.0.limits.clone();
        Self::of(store, self.0.prefix.as_ref(), self.folder(), limits)
    }

    fn of(
        store: Arc<dyn ObjectStore>,
        prefix: &str,
        folder: Option<&Path>,
        limits: Limits,
    ) -> Self {
        let lane = |permits| Arc::new(Semaphore::new(permits));
        Self(Arc::new(Inner {
            store,
            prefix: Key::from(prefix),
            anchor: folder.map(Anchor::new),
            bytes: lane(limits.kib()),
            limits,
            // Enough for the concurrent requests of the machine and some earlier ones that hang.
            lanes: [lane(8), lane(4), lane(16), lane(8)],
        }))
    }

    /// The directory, if the bucket is one.
    fn folder(&self) -> Option<&Path> {
        self.0.anchor.as_ref().map(|anchor| anchor.folder())
    }

    /// Minimum interval between two writes of an entry in `servers/` that only update its newest group. Shorter in a
    /// directory, where writes cost nothing.
    pub(crate) fn entry_interval(&self) -> Duration {
        match self.folder() {
            Some(_) => Duration::from_secs(5),
            None => Duration::from_secs(60),
        }
    }

    /// Interval between two listings of all groups.
    pub(crate) fn audit_every(&self, at_most: Duration) -> Duration {
        match self.folder() {
            Some(_) => at_most.min(Duration::from_secs(60)),
            None => at_most,
        }
    }

    fn key(&self, name: &str) -> Key {
        // Join part by part, so that the slashes in a name separate parts of the key.
        (name.split('/')).fold(self.0.prefix.clone(), |key, part| key.join(part))
    }

    /// Converts a key of the object store to an object name; `None` if the key is outside of this bucket.
    fn name(&self, key: &Key) -> Option<String> {
        let parts: Vec<_> = key.prefix_match(&self.0.prefix)?.collect();
        let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
        Some(parts.join("/"))
    }

    fn time_for(&self, bytes: u64) -> Duration {
        let rate = self.0.limits.rate.max(1);
        self.0.limits.request + Duration::from_secs_f64(bytes as f64 / rate as f64)
    }

    async fn permit(&self, lane: Lane, end: Instant) -> Result<OwnedSemaphorePermit, Failure> {
        let lane = self.0.lanes[lane as usize].clone();
        match timeout_at(end, lane.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Failure::Unknown(
                "too many requests to the bucket wait for answers".into(),
            )),
        }
    }

    /// Runs a request as a task that holds the permit. Returns the permit with the result if the request ends in time.
    async fn within<T: Send + 'static, P: Send + 'static>(
        &self,
        end: Instant,
        permit: P,
        request: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<(T, P), Failure> {
        let anchor = self.0.anchor.clone();
        let request = async move {
            let Some(anchor) = anchor else {
                return request.await;
            };
            // The directory's identity is checked before and after the request: a request that was executed in another
            // directory does not count.
            anchor.clone().is_there().await?;
            let done = request.await;
            anchor.is_there().await?;
            done
        };
        let task = tokio::spawn(async move { (request.await, permit) });
        match timeout_at(end, task).await {
            Ok(Ok((result, permit))) => Ok((result.map_err(|e| failure(&e))?, permit)),
            Ok(Err(_)) => Err(Failure::Unknown("the request was dropped".into())),
            Err(_) => Err(Failure::late()),
        }
    }

    /// Creates an object with a create-only put.
    pub async fn create(&self, name: &str, bytes: Bytes) -> Put {
        self.create_in(Lane::Put, name, bytes).await
    }

    async fn create_in(&self, lane: Lane, name: &str, bytes: Bytes) -> Put {
        let end = Instant::now() + self.time_for(bytes.len() as u64);
        let permit = match self.permit(lane, end).await {
            Ok(permit) => permit,
            Err(failure) => return Put::Failed(failure),
        };
        let (store, key) = (self.0.store.clone(), self.key(name));
        let request = async move {
            let options = PutOptions::from(PutMode::Create);
            match store.put_opts(&key, PutPayload::from(bytes), options).await {
                Ok(_) => Ok(true),
                // `object_store` returns these errors also for status 409, after which the object may not exist. So
                // check.
                Err(
                    object_store::Error::AlreadyExists { .. }
                    | object_store::Error::Precondition { .. },
                ) => store.head(&key).await.map(|_| false),
                Err(e) => Err(e),
            }
        };
        match self.within(end, permit, request).await {
            Ok((true, _)) => Put::Created,
            // An earlier attempt may have created the name and failed before syncing it. So sync before reporting that
            // it exists.
            Ok((false, permit)) => match self.sync(name, end, permit).await {
                Ok(()) => Put::Exists,
                Err(failure) => Put::Failed(failure),
            },
            Err(Failure::Missing) => Put::Failed(Failure::Unknown("a conflict".into())),
            Err(failure) => Put::Failed(failure),
        }
    }

    /// Syncs a file in a directory, where an object can be read before it is durable.
    async fn sync(
        &self,
        name: &str,
        end: Instant,
        permit: OwnedSemaphorePermit,
    ) -> Result<(), Failure> {
        let Some(folder) = self.folder() else {
            return Ok(());
        };
        let path = match name.rsplit_once('/') {
            Some((parent, _)) => folder.join(parent),
            None => folder.to_owned(),
        };
        let sync = async move {
            let work = move || std::fs::File::open(path)?.sync_all();
            blocking(work).await.map_err(generic)
        };
        self.within(end, permit, sync).await.map(|_| ())
    }

    /// Puts an object, replacing any existing one.
    pub async fn replace(&self, name: &str, bytes: Bytes) -> Result<(), Failure> {
        let end = Instant::now() + self.time_for(bytes.len() as u64);
        let permit = self.permit(Lane::Put, end).await?;
        let (store, key) = (self.0.store.clone(), self.key(name));
        let request = async move { store.put(&key, PutPayload::from(bytes)).await.map(|_| ()) };
        self.within(end, permit, request).await.map(|_| ())
    }

    /// Reads an object.
    pub async fn get(&self, name: &str) -> Result<Bytes, Failure> {
        Ok(self.get_in(Lane::Get, name).await?.0)
    }

    async fn get_in(&self, lane: Lane, name: &str) -> Result<(Bytes, ObjectMeta), Failure> {
        let end = Instant::now() + self.0.limits.request;
        let permit = self.permit(lane, end).await?;
        let (store, key) = (self.0.store.clone(), self.key(name));
        let head = async move { store.get(&key).await };
        let (got, permit): (GetResult, _) = self.within(end, permit, head).await?;
        let meta = got.meta.clone();
        if meta.size > self.0.limits.largest {
            return Err(Failure::Refused(format!(
                "{name} has {} bytes, which is more than an object of a log has",
                meta.size
            )));
        }
        let end = Instant::now() + self.time_for(meta.size);
        let share = (meta.size as usize)
            .div_ceil(KIB)
            .clamp(1, self.0.limits.kib()) as u32;
        let Ok(Ok(share)) = timeout_at(end, self.0.bytes.clone().acquire_many_owned(share)).await
        else {
            return Err(Failure::Unknown("too many bytes are being read".into()));
        };
        let body = async move { got.bytes().await };
        let (bytes, (permit, _)) = self.within(end, (permit, share), body).await?;
        self.sync(name, end, permit).await?;
        Ok((bytes, meta))
    }

    /// Reads a group or span.
    pub async fn fetch(&self, epoch: u64, fetch: Fetch) -> Result<Fetched, Failure> {
        let name = match fetch {
            Fetch::Group(number) => Name::Group(number),
            Fetch::Span(first, last) => Name::Span(first, last),
        };
        let bytes = if_there(self.get(&name.text(epoch)).await)?;
        Ok(bytes.map_or(Fetched::Missing, |bytes| {
            Fetched::Bytes(bytes.as_ref().into())
        }))
    }

    /// Deletes groups and spans that end at or before `number`, in ascending order, in batches of a thousand.
    pub async fn trim(&self, epoch: u64, number: u64) -> Result<(), Failure> {
        for folder in ["log", "span"] {
            let (mut names, _) = self.parsed(epoch, folder, None, usize::MAX).await?;
            names.retain(|name| match name {
                Name::Group(n) | Name::Span(_, n) => *n <= number,
                Name::Base(_) => false,
            });
            names.sort_unstable();
            let names: Vec<String> = names.into_iter().map(|name| name.text(epoch)).collect();
            self.delete(&names).await?;
        }
        self.remove_staged().await
    }

    /// Deletes objects in the given order, in batches of a thousand. Missing objects are ignored.
    async fn delete(&self, names: &[String]) -> Result<(), Failure> {
        for names in names.chunks(PAGE) {
            let end = Instant::now() + self.0.limits.request * 10;
            let permit = self.permit(Lane::Bulk, end).await?;
            let keys: Vec<_> = names.iter().map(|name| Ok(self.key(name))).collect();
            let store = self.0.store.clone();
            let request = async move {
                let mut deleted = store.delete_stream(futures_util::stream::iter(keys).boxed());
                while let Some(result) = deleted.next().await {
                    match result {
                        Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                        // In a batch deletion, some S3 servers report a missing object only in the error's text.
                        Err(e) if e.to_string().contains("NoSuchKey") => {}
                        Err(e) => return Err(e),
                    }
                }
                Ok(())
            };
            self.within(end, permit, request).await.map(|_| ())?;
        }
        Ok(())
    }

    /// Creates a span.
    pub async fn create_span(&self, epoch: u64, first: u64, last: u64, bytes: Bytes) -> Put {
        let name = Name::Span(first, last).text(epoch);
        self.create_in(Lane::Bulk, &name, bytes).await
    }
}

/// Number of names per page of a listing, and per batch of a deletion.
const PAGE: usize = 1000;
const KIB: usize = 1024;

fn generic(e: impl std::error::Error + Send + Sync + 'static) -> object_store::Error {
    object_store::Error::Generic {
        store: "directory",
        source: Box::new(e),
    }
}

fn failure(e: &object_store::Error) -> Failure {
    use object_store::Error as E;
    #[cfg(feature = "s3")]
    if let Some(failure) = s3::failure(e) {
        return failure;
    }
    match e {
        E::NotFound { .. } => Failure::Missing,
        E::PermissionDenied { .. }
        | E::Unauthenticated { .. }
        | E::NotSupported { .. }
        | E::NotImplemented { .. } => Failure::Refused(e.to_string()),
        _ => {
            // For directories, `object_store` wraps errors of the operating system, so look for their kind in the chain
            // of causes.
            let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(e);
            while let Some(e) = cause {
                if let Some(io) = e.downcast_ref::<std::io::Error>()
                    && matches!(
                        io.kind(),
                        std::io::ErrorKind::PermissionDenied
                            | std::io::ErrorKind::ReadOnlyFilesystem
                    )
                {
                    return Failure::Refused(e.to_string());
                }
                cause = e.source();
            }
            Failure::Unknown(e.to_string())
        }
    }
}
