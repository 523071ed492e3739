//! Access to the database: everything that parses, plans, explores or changes data must be admitted here.
//!
//! [`Queries`] owns the database, and a request gets it only through an [`Admitted`] query. That query is listed at
//! `/admin/queries`, counts towards the limits of the server and of its client, and has a time limit and a memory
//! budget. It is cancelled by DELETE, by a shutdown, and, through its [`ClientWatch`], when its client disconnects.
//! Maintenance of the store needs no query, and uses [`Upkeep`].

pub mod limits;

use crate::live::{CancelCause, LiveQuery, NewQuery};
use crate::problem::Problem;
use crate::run::Connection;
use crate::shared::AppState;
use jindou::complete::{Completer, Completion};
use jindou::{
    BackupReport, BackupTarget, CancelToken, Database, MergeOptions, MergeReport, Progress,
    ReclusterOptions, ReclusterReport, Result, Snapshot, WORTH_TRIMMING,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The admitted queries, whose number is limited, and the database that they read.
pub(crate) struct Queries {
    inner: Mutex<AdmissionState>,
    most: usize,
    /// Largest number of queries of one client.
    most_each: usize,
    /// Notified when the last query ends.
    idle: Notify,
    db: Database,
    completer: Completer,
}

#[derive(Default)]
struct AdmissionState {
    queries: BTreeMap<u64, Arc<LiveQuery>>,
    /// Number of queries of each client that has any.
    shares: FxHashMap<u64, usize>,
    last: u64,
}

/// Reason why a query was not admitted.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(crate) enum Crowded {
    #[error("this server already has {0} queries and updates, its maximum; try again")]
    All(usize),
    #[error(
        "you already have {0} queries and updates here, the maximum for one client; read or cancel some of them"
    )]
    Share(usize),
}

/// An admitted query, and its access to the database. The query is listed until this is dropped.
pub(crate) struct Admitted {
    all: Arc<Queries>,
    pub(crate) query: Arc<LiveQuery>,
}

impl Admitted {
    /// The database. Code that uses it must pass on the query's token, time limit and memory budget.
    pub(crate) fn db(&self) -> &Database {
        &self.all.db
    }

    /// Completes an unfinished query text.
    pub(crate) fn complete(&self, asked: &jindou::complete::Request<'_>) -> Result<Completion> {
        self.all.completer.complete(asked)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut inner = self.all.lock();
        inner.queries.remove(&self.query.id);
        if let Some(n) = inner.shares.get_mut(&self.query.sharer) {
            *n -= 1;
            if *n == 0 {
                inner.shares.remove(&self.query.sharer);
            }
        }
        if inner.queries.is_empty() {
            self.all.idle.notify_waiters();
        }
        drop(inner);
        if self.query.memory.peak() >= WORTH_TRIMMING {
            jindou::trim();
        }
    }
}

impl Queries {
    /// Admits at most `most` queries at the same time, at most `most_each` of them from one client.
    pub(crate) fn new(db: Database, most: usize, most_each: usize) -> Self {
        Self {
            inner: Mutex::default(),
            most,
            most_each,
            idle: Notify::new(),
            completer: Completer::new(db.clone()),
            db,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, AdmissionState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a query.
    ///
    /// # Errors
    /// When there are too many queries, in total or from this client.
    pub(crate) fn admit(self: &Arc<Self>, new: NewQuery<'_>) -> Result<Admitted, Crowded> {
        let mut guard = self.lock();
        let inner = &mut *guard;
        if inner.queries.len() >= self.most {
            return Err(Crowded::All(self.most));
        }
        let share = inner.shares.entry(new.sharer).or_default();
        if *share >= self.most_each {
            return Err(Crowded::Share(self.most_each));
        }
        *share += 1;
        inner.last += 1;
        let query = Arc::new(LiveQuery::new(inner.last, new));
        inner.queries.insert(query.id, Arc::clone(&query));
        Ok(Admitted {
            all: Arc::clone(self),
            query,
        })
    }

    /// The admitted queries, oldest first.
    pub(crate) fn list(&self) -> Vec<Arc<LiveQuery>> {
        self.lock().queries.values().cloned().collect()
    }

    /// Number of admitted queries.
    pub(crate) fn len(&self) -> usize {
        self.lock().queries.len()
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<LiveQuery>> {
        self.lock().queries.get(&id).cloned()
    }

    /// Completes when no query is admitted any more.
    pub(crate) async fn drained(&self) {
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            idle.as_mut().enable();
            if self.lock().queries.is_empty() {
                return;
            }
            idle.await;
        }
    }
}

/// A request for admission.
pub(crate) struct AdmissionRequest<'a> {
    /// The text shown in lists and logs.
    pub(crate) text: &'a str,
    /// The time limit that the request asks for, if any.
    pub(crate) timeout: Option<Duration>,
    /// Memory limit in bytes, if it is lower than the usual one of a query.
    pub(crate) memory: Option<u64>,
}

impl<'a> AdmissionRequest<'a> {
    /// A request with the usual memory limit of a query.
    pub(crate) fn new(text: &'a str, timeout: Option<Duration>) -> Self {
        Self {
            text,
            timeout,
            memory: None,
        }
    }
}

/// Admits a request's query with the server's limits.
///
/// # Errors
/// 503 if there are too many queries, in total or from this client.
pub(crate) fn admit(
    shared: &AppState,
    connection: &Connection,
    asked: &AdmissionRequest<'_>,
) -> Result<Admitted, Problem> {
    let options = &shared.options;
    let memory = asked.memory.unwrap_or(u64::MAX).min(options.query_memory);
    let newcomer = NewQuery {
        text: asked.text,
        client: Arc::clone(&connection.peer),
        owner: connection.caller.owner,
        sharer: connection.caller.owner.unwrap_or(connection.client),
        limit: asked
            .timeout
            .unwrap_or(options.timeout)
            .min(options.max_timeout),
        memory: shared.memory.modest_part(memory),
    };
    shared.live.admit(newcomer).map_err(|crowded| {
        shared.metrics.refused.inc();
        Problem::busy(crowded.to_string())
    })
}

/// Cancels a query when it is dropped before the answer is ready, that is, when the client has disconnected.
pub(crate) struct ClientWatch(Option<Arc<LiveQuery>>);

impl ClientWatch {
    pub(crate) fn new(query: &Arc<LiveQuery>) -> Self {
        Self(Some(Arc::clone(query)))
    }

    /// Ends the watch, since the answer is ready.
    pub(crate) fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for ClientWatch {
    fn drop(&mut self) {
        if let Some(query) = &self.0 {
            query.cancel(CancelCause::ClientGone);
        }
    }
}

/// The database for maintenance. Nothing here parses a client's text, plans or explores.
pub(crate) struct Upkeep {
    db: Database,
}

/// Numbers about the data, for metrics.
pub(crate) struct DataFigures {
    pub(crate) snapshot: u64,
    pub(crate) edits: u64,
    pub(crate) bytes: u64,
    pub(crate) plans: u64,
}

impl Upkeep {
    pub(crate) fn new(db: Database) -> Self {
        Self { db }
    }

    /// This server's replica of the store, if the store has a shared log.
    pub(crate) fn replica(&self) -> Option<&jindou::replica::Replica> {
        self.db.replica()
    }

    /// The published snapshot.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.db.snapshot()
    }

    /// The number of the published snapshot.
    pub(crate) fn snapshot_number(&self) -> u64 {
        self.db.snapshot_number()
    }

    pub(crate) fn numbers(&self) -> DataFigures {
        let snapshot = self.db.snapshot();
        DataFigures {
            snapshot: self.db.snapshot_number(),
            edits: snapshot.edit_count(),
            bytes: snapshot.delta_bytes() as u64,
            plans: self.db.cached_plans() as u64,
        }
    }

    /// The space of queries' temporary files.
    pub(crate) fn temp(&self) -> &jindou::TempSpace {
        self.db.runtime().temp()
    }

    /// Returns an error if damaged files prevent queries from being answered.
    pub(crate) fn check_trust(&self) -> Result<()> {
        self.db.trust().check()
    }

    /// Returns an error if the store cannot be updated.
    pub(crate) fn is_writable(&self) -> Result<()> {
        self.db.is_writable()
    }

    pub(crate) fn probe_log(&self) -> Result<()> {
        self.db.probe_log()
    }

    pub(crate) fn log_status(&self) -> Option<jindou::LogStatus> {
        self.db.log_status()
    }

    pub(crate) fn merge_status(&self) -> Option<jindou::MergeStatus> {
        self.db.merge_status()
    }

    pub(crate) fn merge(&self, options: &MergeOptions, progress: &Progress) -> Result<MergeReport> {
        self.db.merge(options, progress)
    }

    pub(crate) fn may_recluster(&self) -> Result<()> {
        self.db.may_recluster()
    }

    pub(crate) fn recluster(
        &self,
        options: &ReclusterOptions,
        progress: &Progress,
    ) -> Result<ReclusterReport> {
        self.db.recluster(options, progress)
    }

    pub(crate) fn backup(
        &self,
        target: &BackupTarget,
        cancel: &CancelToken,
        progress: &Progress,
    ) -> Result<BackupReport> {
        self.db.backup(target, cancel, progress)
    }
}
