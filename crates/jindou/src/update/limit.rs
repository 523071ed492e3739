//! Limit for the memory of unmerged changes: at the limit a merge is due, and at twice the limit updates wait for a
//! merge.

use jindou_model::units::grouped;
use jindou_model::{CancelToken, Error, Limit, Resource, Result, sync};
use jindou_store::Snapshot;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Measuring visits all changes, so it may take at most 1/SHARE of the time; meanwhile the last measurement is used.
const SHARE: u32 = 20;
/// Interval at which a waiting update checks again.
const POLL: Duration = Duration::from_millis(20);
/// Longest wait for an update without a time limit.
const UNLIMITED: Duration = Duration::from_secs(60);

/// A database's limit for unmerged changes, and the last measurement of their memory.
#[derive(Debug, Default)]
pub(crate) struct ChangesLimit {
    /// Limit in bytes; `None` means unlimited.
    limit: Option<u64>,
    measured: Mutex<Option<Measured>>,
}

#[derive(Debug)]
struct Measured {
    /// Number of the base that the measured changes apply to.
    base: u64,
    bytes: u64,
    at: Instant,
    took: Duration,
}

impl ChangesLimit {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self {
            limit,
            measured: Mutex::default(),
        }
    }

    /// The limit in bytes; `None` means unlimited.
    pub(crate) fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Memory of a snapshot's unmerged changes in bytes. May be the measurement of another recent snapshot over the
    /// same base.
    pub(crate) fn bytes(&self, snapshot: &Snapshot) -> u64 {
        let base = snapshot.base().number();
        let mut last = sync::lock(&self.measured);
        if let Some(last) = &*last
            && last.base == base
            && last.at.elapsed() < last.took * SHARE
        {
            return last.bytes;
        }
        let begun = Instant::now();
        let bytes = snapshot.unmerged_bytes() as u64;
        *last = Some(Measured {
            base,
            bytes,
            at: Instant::now(),
            took: begun.elapsed(),
        });
        bytes
    }

    /// True if the unmerged changes are large enough for a merge.
    pub(crate) fn is_reached(&self, snapshot: &Snapshot) -> bool {
        self.limit
            .is_some_and(|limit| self.bytes(snapshot) >= limit)
    }

    /// Ok if further changes are allowed: the unmerged changes take less than twice the limit.
    ///
    /// # Errors
    /// [`Error::Busy`] for [`Resource::Changes`].
    pub(crate) fn check(&self, snapshot: &Snapshot) -> Result<()> {
        let Some(limit) = self.limit else {
            return Ok(());
        };
        let most = limit.saturating_mul(2);
        let bytes = self.bytes(snapshot);
        if bytes < most {
            return Ok(());
        }
        let why = format!(
            "the update was not made: changes since the last merge take {} bytes, twice the {} of --changes-memory or more, and \
             the merge that frees them has not ended (GET /admin/merge shows it)",
            grouped(bytes),
            grouped(limit)
        );
        Err(Error::Busy(Limit::new(Resource::Changes, why).of(most)))
    }

    /// Waits until further changes are allowed, at most until the token's deadline.
    ///
    /// # Errors
    /// Those of [`Self::check`]; [`Error::Cancelled`].
    pub(crate) fn wait(&self, snapshot: impl Fn() -> Snapshot, cancel: &CancelToken) -> Result<()> {
        if self.limit.is_none() {
            return Ok(());
        }
        let begun = Instant::now();
        while let Err(full) = self.check(&snapshot()) {
            pause(full, begun, cancel)?;
        }
        Ok(())
    }
}

/// Pauses an update that has waited since `begun` because of the limit.
///
/// # Errors
/// `full` once the update's deadline has passed; [`Error::Cancelled`].
pub(crate) fn pause(full: Error, begun: Instant, cancel: &CancelToken) -> Result<()> {
    match cancel.check() {
        Err(Error::Timeout(_)) => return Err(full),
        checked => checked?,
    }
    if cancel.left().is_none() && begun.elapsed() >= UNLIMITED {
        return Err(full);
    }
    std::thread::sleep(POLL);
    Ok(())
}
