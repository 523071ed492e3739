//! State that all requests of a server share.

use crate::admission::limits::Admission;
use crate::admission::{Queries, Upkeep};
use crate::auth::Keyring;
use crate::jobs::Jobs;
use crate::listen::Phase;
use crate::metrics::Metrics;
use crate::options::ServerOptions;
use crate::registry::Registry;
use crate::slots::Slots;
use crate::slow::SlowQueries;
use jindou::{MemoryBudget, QueryOptions, Warm, Warming};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

/// Options, limits, and everything that is counted or listed. The database can be reached only through
/// [`crate::admission::admit`].
pub(crate) struct AppState {
    pub(crate) upkeep: Upkeep,
    pub(crate) options: ServerOptions,
    /// The options of every query, without its limits.
    pub(crate) query_options: QueryOptions,
    pub(crate) tokens: Option<Keyring>,
    /// TLS settings; replaced when the certificate files are reloaded.
    pub(crate) tls: Option<RwLock<TlsAcceptor>>,
    /// Progress of a shutdown.
    pub(crate) phase: watch::Sender<Phase>,
    /// True once the server is being taken out of service (`/admin/drain`).
    pub(crate) draining: AtomicBool,
    pub(crate) live: Arc<Queries>,
    pub(crate) slow: SlowQueries,
    pub(crate) slots: Slots,
    /// Decides which queries may wait for a slot.
    pub(crate) admission: Arc<Admission>,
    pub(crate) prepared: Registry,
    /// Permits for queries that network threads answer themselves: one fewer than there are network threads.
    pub(crate) inline: Semaphore,
    /// The budget of all queries together.
    pub(crate) memory: MemoryBudget,
    pub(crate) metrics: Metrics,
    pub(crate) jobs: Jobs,
    /// Reads the store's files into memory in the background, if the options say so.
    pub(crate) warming: Option<Warming>,
}

impl AppState {
    /// Makes `/ready` report that the server is draining. Returns false if it did so already.
    pub(crate) fn drain(&self) -> bool {
        !self.draining.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Stops listening; a second call cancels running work.
    pub(crate) fn shut_down(&self) {
        self.phase.send_modify(|p| {
            *p = match p {
                Phase::Serving => Phase::Draining,
                _ => Phase::Stopping,
            }
        });
    }

    /// A text that says how much of the store's files has been read, if `/ready` must wait for that; otherwise `None`.
    pub(crate) fn unread(&self) -> Option<String> {
        let warming = self.warming.as_ref()?;
        if self.options.warm != Warm::BeforeReady || warming.is_done() {
            return None;
        }
        let (read, wanted) = warming.progress();
        Some(format!(
            "the store is being read into memory: {} of {} MB; queries are answered, but slowly",
            read / 1_000_000,
            wanted / 1_000_000
        ))
    }
}
