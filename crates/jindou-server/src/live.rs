//! An admitted query: its limits, its state, and its cancellation.

use jindou::{CancelToken, Error, MemoryBudget, QueryWatch, Result};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// Longest part of a query's text that lists and logs show, in bytes.
const SHOWN: usize = 4096;

/// Current state of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum QueryState {
    /// Waiting for a slot in which to compute.
    Queued,
    /// Computing.
    Running,
    /// Waiting for its reader to take data.
    Sending,
    /// Waiting until the published snapshot is fresh enough for the request.
    Behind,
}

impl QueryState {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Sending => "waiting for its reader",
            Self::Behind => "waiting for the shared log",
        }
    }
}

/// Reason why a query was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CancelCause {
    /// The client closed its connection.
    ClientGone,
    /// A client cancelled it at the admin route.
    Admin,
    /// The server is shutting down.
    Shutdown,
}

/// Description of a new query.
pub(crate) struct NewQuery<'a> {
    pub(crate) text: &'a str,
    pub(crate) client: Arc<str>,
    pub(crate) owner: Option<u64>,
    /// See [`LiveQuery::sharer`].
    pub(crate) sharer: u64,
    pub(crate) limit: Duration,
    pub(crate) memory: MemoryBudget,
}

/// An admitted query that has not ended.
pub(crate) struct LiveQuery {
    pub(crate) id: u64,
    /// The text when the query was admitted, truncated.
    text: String,
    /// The text that was received later, in the body, truncated.
    body_text: OnceLock<String>,
    /// Address from which the request came.
    pub(crate) client: Arc<str>,
    /// Number that identifies the request's token; `None` without one.
    pub(crate) owner: Option<u64>,
    pub(crate) started: Instant,
    /// Time limit in microseconds. May change after admission, since a form's own limit is known only when it has
    /// arrived.
    limit: AtomicU64,
    pub(crate) memory: MemoryBudget,
    pub(crate) rows: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) light: OnceLock<bool>,
    /// Number of the snapshot that the query reads, for a store with a shared log.
    pub(crate) snapshot: OnceLock<u64>,
    /// Progress of the query's steps, if it is profiled or watched.
    pub(crate) watch: OnceLock<QueryWatch>,
    /// The tag that the client has given the query to find it in the list.
    pub(crate) tag: OnceLock<String>,
    state: AtomicU8,
    /// True if the query has waited for its reader at any time.
    waited: AtomicBool,
    /// Number that identifies the client in whose share the query counts.
    pub(crate) sharer: u64,
    cancel: CancelToken,
    cause: OnceLock<CancelCause>,
    stop: Notify,
    runtime: Handle,
}

impl LiveQuery {
    /// A new query, in the state [`QueryState::Queued`]. Must be called inside the Tokio runtime.
    pub(crate) fn new(id: u64, new: NewQuery<'_>) -> Self {
        Self {
            id,
            text: shortened(new.text),
            body_text: OnceLock::new(),
            client: new.client,
            owner: new.owner,
            started: Instant::now(),
            limit: AtomicU64::new(micros(new.limit)),
            memory: new.memory,
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            light: OnceLock::new(),
            snapshot: OnceLock::new(),
            watch: OnceLock::new(),
            tag: OnceLock::new(),
            state: AtomicU8::new(QueryState::Queued as u8),
            waited: AtomicBool::new(false),
            sharer: new.sharer,
            cancel: CancelToken::new(),
            cause: OnceLock::new(),
            stop: Notify::new(),
            runtime: Handle::current(),
        }
    }

    /// The JSON document that describes the query in lists.
    pub(crate) fn document(&self) -> Value {
        json!({
            "id": self.id, "query": self.text(), "client": &*self.client, "state": self.state().name(),
            "class": self.light.get().map(|light| if *light { "light" } else { "heavy" }),
            "seconds": self.started.elapsed().as_secs_f64(), "timeout": self.limit().as_secs_f64(),
            "rows": self.rows.load(Ordering::Relaxed), "bytes": self.bytes.load(Ordering::Relaxed),
            "memory": self.memory.used(), "tag": self.tag.get(),
        })
    }

    /// The text, truncated.
    pub(crate) fn text(&self) -> &str {
        self.body_text.get().unwrap_or(&self.text)
    }

    /// Sets the text that lists and logs show from now on.
    pub(crate) fn show(&self, text: &str) {
        let _ = self.body_text.set(shortened(text));
    }

    /// Cancels the query. If it is cancelled again, the first cause stays.
    pub(crate) fn cancel(&self, cause: CancelCause) {
        let _ = self.cause.set(cause);
        self.cancel.cancel();
        self.stop.notify_one();
    }

    pub(crate) fn cause(&self) -> Option<CancelCause> {
        self.cause.get().copied()
    }

    /// The cancel token of the query.
    pub(crate) fn token(&self) -> CancelToken {
        self.cancel.clone()
    }

    /// The time limit.
    pub(crate) fn limit(&self) -> Duration {
        Duration::from_micros(self.limit.load(Ordering::Relaxed))
    }

    pub(crate) fn set_limit(&self, limit: Duration) {
        self.limit.store(micros(limit), Ordering::Relaxed);
    }

    /// Time left before the query's time limit.
    pub(crate) fn left(&self) -> Duration {
        self.limit().saturating_sub(self.started.elapsed())
    }

    pub(crate) fn state(&self) -> QueryState {
        match self.state.load(Ordering::Relaxed) {
            0 => QueryState::Queued,
            1 => QueryState::Running,
            3 => QueryState::Behind,
            _ => QueryState::Sending,
        }
    }

    /// True if the query has waited for its reader, so that its elapsed time is not its computing time.
    pub(crate) fn has_waited(&self) -> bool {
        self.waited.load(Ordering::Relaxed)
    }

    pub(crate) fn set_state(&self, state: QueryState) {
        if state == QueryState::Sending {
            self.waited.store(true, Ordering::Relaxed);
        }
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// Returns an error if the query was cancelled or its time is over.
    pub(crate) fn check(&self) -> Result<()> {
        if self.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if self.left().is_zero() {
            return Err(Error::Timeout(self.limit()));
        }
        Ok(())
    }

    /// Blocks this thread until the future completes, or returns an error when the query's time is over or it is
    /// cancelled. Must never be called on a network thread.
    pub(crate) fn wait_for<T>(&self, future: impl Future<Output = T>) -> Result<T> {
        self.runtime.block_on(self.until(future))
    }

    /// Waits until the future completes, or returns an error when the query's time is over or it is cancelled.
    pub(crate) async fn until<T>(&self, future: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            biased;
            () = self.stop.notified() => {
                // The notification is stored again for another part of the query that may wait later.
                self.stop.notify_one();
                Err(Error::Cancelled)
            }
            done = future => Ok(done),
            () = tokio::time::sleep(self.left()) => Err(Error::Timeout(self.limit())),
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn shortened(text: &str) -> String {
    shown(text).into_owned()
}

/// The part of a client's text that lists and logs show. It must be passed to `tracing` as a string and not through
/// `Display`, so that it is quoted and control characters are escaped.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if text.len() <= SHOWN {
        return text.into();
    }
    let at = (0..=SHOWN).rev().find(|&i| text.is_char_boundary(i));
    format!("{}…", &text[..at.unwrap_or(0)]).into()
}
