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
use jindou::MemoryBudget;
use std::sync::{Arc, RwLock};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

/// The limits, and all that is counted or listed. The database is behind [`crate::admission::admit`].
pub(crate) struct AppState {
    pub(crate) upkeep: Upkeep,
    pub(crate) options: ServerOptions,
    pub(crate) tokens: Option<Keyring>,
    /// Replaced when the files are read again.
    pub(crate) tls: Option<RwLock<TlsAcceptor>>,
    /// How far a shutdown is.
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) live: Arc<Queries>,
    pub(crate) slots: Slots,
    /// Decides which queries may wait for a slot.
    pub(crate) admission: Arc<Admission>,
    pub(crate) prepared: Registry,
    /// Queries that may be answered by the runtime's own threads at a time: one fewer than there are threads.
    pub(crate) inline: Semaphore,
    /// Of all queries together.
    pub(crate) memory: MemoryBudget,
    pub(crate) metrics: Metrics,
    pub(crate) jobs: Jobs,
}
