//! The side of a driver that requests of clients come from.

use crate::figures::{Figures, FiguresNow};
use jindou_replicas::{Blob, Consistency, Gap, Outcome, Refusal, Request, ServerName, Time};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

/// A query's snapshot and its number.
pub(crate) type ReadReply<S> = oneshot::Sender<Result<(u64, S), Refusal>>;

/// Something that a client or an operator wants.
pub(crate) enum Command<S> {
    /// The permit is for the body's bytes and goes with the answer.
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
    /// The newest published group.
    pub committed: u64,
    /// Reason why a query without further demands would not be answered at once; `None` if it would.
    pub unready: Option<Unready>,
}

/// Reason why a server does not answer queries at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unready {
    /// Connections to the servers in the list are still to come.
    Joining,
    /// The store is being replaced by the newest base.
    Downloading,
    /// For this time neither the log has answered nor another server that knew more; `None`: not since the start.
    CutOff(Option<Duration>),
    /// Groups up to this one are known of and not here yet.
    Behind(u64),
    /// The folder is empty, or too old, and no base of the log is whole, or was uploaded yet; with the object that is missing or
    /// damaged.
    NoBase(String),
    /// The log, with this id epoch, lacks groups that it must have.
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

/// The time until which queries without further demands need not ask the driver. Reading it costs an atomic load and a
/// look at the clock.
#[derive(Clone, Debug, Default)]
pub struct Fresh(Arc<AtomicU64>);

impl Fresh {
    /// True if the published snapshot answers a query that is asked now.
    #[inline]
    pub fn is_now(&self) -> bool {
        crate::clock::now().0 < self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn set(&self, until: Option<Time>) {
        self.0
            .store(until.map_or(0, |time| time.0), Ordering::SeqCst);
    }
}

/// Requests to a driver. When the last one is dropped, the driver ends.
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

/// Bytes that an update counts for at least.
const LEAST: usize = 1024;
/// Commands that wait.
const WAITING: usize = 1024;

/// Ends of what leads to a driver.
pub(crate) struct Inbox<S> {
    pub commands: mpsc::Receiver<Command<S>>,
    pub stop: watch::Receiver<bool>,
    pub fresh: Fresh,
    pub figures: Arc<Figures>,
}

impl<S> Handle<S> {
    /// A handle by which clients' updates take this number of bytes at most.
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

    /// Figures for the operator.
    pub fn figures(&self) -> FiguresNow {
        self.figures.now()
    }

    /// The server that wrote the newest group here; `None` if it is not known.
    pub fn writer(&self) -> Option<ServerName> {
        let writer = self.figures.writer.lock();
        writer.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Until when queries need not ask.
    pub fn fresh(&self) -> &Fresh {
        &self.fresh
    }

    /// Does an update. Waits while others' bodies fill the room. The caller may drop this: the update may be done all the
    /// same, and its key asks again.
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
        // A driver that ends drops what waits.
        answer.await.unwrap_or(Outcome::Unknown)
    }

    /// A snapshot for a query, and its number.
    ///
    /// # Errors
    /// If none is fresh enough, or the driver has ended.
    pub async fn read(&self, consistency: Consistency) -> Result<(u64, S), Refusal> {
        let (reply, answer) = oneshot::channel();
        if (self.commands.send(Command::Read(consistency, reply)).await).is_err() {
            return Err(Refusal::Stale);
        }
        answer.await.unwrap_or(Err(Refusal::Stale))
    }

    /// Tells the others that this server wants to stop, so that they write themselves.
    pub async fn drain(&self) {
        let _ = self.commands.send(Command::Drain).await;
    }

    /// Writes the published snapshot into the local folder. Gives its number; `None` if that failed or is under way.
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

    /// Ends the driver. Updates that wait have an unknown outcome.
    pub fn stop(&self) {
        let _ = self.stop.send(true);
    }
}
