//! What all requests of a server share.

use crate::auth::Tokens;
use crate::jobs::Jobs;
use crate::live::LiveQueries;
use crate::metrics::Metrics;
use crate::options::ServerOptions;
use crate::registry::Registry;
use crate::slots::Slots;
use jindou::{Database, MemoryBudget};
use jindou_scheduler::Admission;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// See the module.
pub(crate) struct Shared {
    pub(crate) db: Database,
    pub(crate) options: ServerOptions,
    pub(crate) tokens: Option<Tokens>,
    pub(crate) live: Arc<LiveQueries>,
    pub(crate) slots: Slots,
    /// Who may wait for a slot.
    pub(crate) admission: Arc<Admission>,
    pub(crate) prepared: Registry,
    /// Queries that may be answered by the runtime's own threads at a time: one fewer than there are threads.
    pub(crate) at_once: Semaphore,
    /// Of all queries together.
    pub(crate) memory: MemoryBudget,
    pub(crate) metrics: Metrics,
    pub(crate) jobs: Jobs,
}
