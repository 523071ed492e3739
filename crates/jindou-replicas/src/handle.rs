//! The handle through which clients send requests to a driver.

use crate::figures::{Figures, FiguresNow};
use crate::machine::{Blob, Consistency, Gap, Outcome, Refusal, Request, ServerName, Time};
use jindou_model::sync;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

/// Channel for the snapshot that answers a query, and its number.
pub(crate) type ReadReply<S> = oneshot::Sender<Result<(u64, S), Refusal>>;

/// A request of a client or an operator.
pub(crate) enum Command<S> {
    /// An update. The permit covers the body's bytes and is released with the answer.
    Update(
        Request,
        Blob,
        oneshot::Sender<Outcome>,
        OwnedSemaphorePermit,
    ),
    Read(Consistency, ReadReply<S>),
    Drain,
    Save(oneshot::Sender<Option<u64>>),
    Status(oneshot::Sender<Status>),
}

/// A driver's state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// Number of the newest published group.
    pub committed: u64,
    /// Reason why a query with the default consistency would have to wait; `None` if it would be answered at once.
    pub unready: Option<Unready>,
}

/// Reason why a server does not answer queries immediately.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unready {
    /// Connections to the listed servers are still being established.
    Joining,
    /// The store is being replaced by the newest base.
    Downloading,
    /// Time for which neither the bucket nor another server has confirmed freshness; `None` if none has since the
    /// start.
    CutOff(Option<Duration>),
    /// Groups up to this number exist and are not applied yet.
    Behind(u64),
    /// The folder is empty or too old, and the log has no complete base to fill it from. Contains the name of the
    /// missing or damaged object.
    NoBase(String),
    /// The log has a gap. Contains the log's id epoch.
    Gap(Gap, u64),
}

impl std::fmt::Display for Unready {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Joining => f.write_str(
                "the server was started just now, and waits for connections to the others",
            ),
            Self::Downloading => {
                f.write_str("the store is being downloaded from the log's newest base")
            }
            Self::CutOff(None) => f.write_str("the log has not answered since the server's start"),
            Self::CutOff(Some(age)) => write!(
                f,
                "neither the log nor another server that reaches it has answered for {} s",
                age.as_secs()
            ),
            Self::NoBase(why) => write!(
                f,
                "the store cannot be downloaded from the log: {why}. Run \"jindou cluster repair --log PLACE\", which says what \
                 can be done"
            ),
            Self::Gap(gap, epoch) => write!(
                f,
                "{}: run \"jindou cluster repair --log PLACE\", which says what can be done",
                gap.text(*epoch)
            ),
            Self::Behind(number) => {
                write!(
                    f,
                    "updates up to snapshot {number} are still to be read from the log"
                )
            }
        }
    }
}

/// The time until which the published snapshot may answer queries with the default consistency without asking the
/// driver. Checking it costs an atomic load and a read of the clock.
#[derive(Clone, Debug, Default)]
pub struct Fresh(Arc<AtomicU64>);

impl Fresh {
    /// True if the published snapshot may answer a query that arrives now.
    #[inline]
    pub fn is_now(&self) -> bool {
        crate::clock::now().0 < self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn set(&self, until: Option<Time>) {
        self.0
            .store(until.map_or(0, |time| time.0), Ordering::SeqCst);
    }
}

/// A handle for requests to a driver. The driver ends when the last handle is dropped.
pub struct Handle<S> {
    commands: mpsc::Sender<Command<S>>,
    bytes: Arc<Semaphore>,
    most: usize,
    fresh: Fresh,
    figures: Arc<Figures>,
    stop: Arc<watch::Sender<bool>>,
}

impl<S> Clone for Handle<S> {
    fn clone(&self) -> Self {
        Self {
            commands: self.commands.clone(),
            bytes: self.bytes.clone(),
            most: self.most,
            fresh: self.fresh.clone(),
            figures: self.figures.clone(),
            stop: self.stop.clone(),
        }
    }
}

impl<S> std::fmt::Debug for Handle<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("Handle")
    }
}

/// Each update counts as at least this many bytes towards the memory limit.
const LEAST: usize = 1024;
/// Capacity of the command queue.
const WAITING: usize = 1024;

/// The receiving ends of a handle's channels.
pub(crate) struct Inbox<S> {
    pub commands: mpsc::Receiver<Command<S>>,
    pub stop: watch::Receiver<bool>,
    pub fresh: Fresh,
    pub figures: Arc<Figures>,
}

impl<S> Handle<S> {
    /// Creates a handle. `bytes` limits the total size of the bodies of pending updates.
    pub(crate) fn new(bytes: usize) -> (Self, Inbox<S>) {
        let (sender, commands) = mpsc::channel(WAITING);
        let (stop, stopped) = watch::channel(false);
        let most = bytes.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        let fresh = Fresh::default();
        let figures = Arc::<Figures>::default();
        let handle = Self {
            fresh: fresh.clone(),
            figures: figures.clone(),
            commands: sender,
            bytes: Arc::new(Semaphore::new(most)),
            most,
            stop: Arc::new(stop),
        };
        let stop = stopped;
        let inbox = Inbox {
            commands,
            stop,
            fresh,
            figures,
        };
        (handle, inbox)
    }

    /// The current metrics.
    pub fn figures(&self) -> FiguresNow {
        self.figures.now()
    }

    /// The server that wrote the newest committed group; `None` if it is unknown.
    pub fn writer(&self) -> Option<ServerName> {
        sync::lock(&self.figures.writer).clone()
    }

    /// Time until which queries may bypass the driver.
    pub fn fresh(&self) -> &Fresh {
        &self.fresh
    }

    /// Executes an update. Waits while pending updates use the whole memory limit. If the caller drops the future, the
    /// update may still be executed; a retry with the same key returns its outcome.
    pub async fn update(&self, request: impl Into<Request>, body: Blob) -> Outcome {
        let request = request.into();
        if body.len() > self.most {
            let why = format!(
                "the update has {} MiB, and at most {} can go through the log",
                body.len().div_ceil(1 << 20),
                self.most >> 20
            );
            return Outcome::Refused(why.into_bytes().into());
        }
        let size = body.len().max(LEAST.min(self.most)) as u32;
        let Ok(permit) = self.bytes.clone().acquire_many_owned(size).await else {
            return Outcome::Unknown;
        };
        let (reply, answer) = oneshot::channel();
        let command = Command::Update(request, body, reply, permit);
        if self.commands.send(command).await.is_err() {
            return Outcome::Unknown;
        }
        // When the driver ends, it drops the reply channels of pending requests.
        answer.await.unwrap_or(Outcome::Unknown)
    }

    /// Returns a snapshot that satisfies the required consistency, and its number.
    ///
    /// # Errors
    /// If no snapshot is fresh enough, or the driver has ended.
    pub async fn read(&self, consistency: Consistency) -> Result<(u64, S), Refusal> {
        let (reply, answer) = oneshot::channel();
        if (self.commands.send(Command::Read(consistency, reply)).await).is_err() {
            return Err(Refusal::Stale);
        }
        answer.await.unwrap_or(Err(Refusal::Stale))
    }

    /// Announces to the other servers that this one is stopping, so that another server becomes the writer.
    pub async fn drain(&self) {
        let _ = self.commands.send(Command::Drain).await;
    }

    /// Saves the published snapshot in the local folder and returns its number; `None` if that failed or a save is
    /// already running.
    pub async fn save(&self) -> Option<u64> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Save(reply)).await.ok()?;
        answer.await.ok().flatten()
    }

    /// The driver's state; `None` once it has ended.
    pub async fn status(&self) -> Option<Status> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Status(reply)).await.ok()?;
        answer.await.ok()
    }

    /// Ends the driver. Pending updates get an unknown outcome.
    pub fn stop(&self) {
        let _ = self.stop.send(true);
    }
}
