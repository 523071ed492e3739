//! The commit of a merge by all servers of a sharded store: any of them may propose it, and it takes effect once.

use super::request::SentChange;
use crate::database::{Database, DatabaseState};
use crate::update::UpdateOptions;
use jindou_model::{Error, Resource, Result};
use std::sync::Weak;
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::xxh3_128;

/// Interval at which a server looks if a merge can be committed.
const LOOK: Duration = Duration::from_millis(50);
/// Time for which the others leave the proposal to the writer.
const WRITER_FIRST: Duration = Duration::from_secs(2);

/// Key of a request that several servers make and that takes effect once.
pub(super) fn key(what: &str, base: u64) -> u128 {
    xxh3_128(format!("jindou {what} {base}").as_bytes())
}

/// Starts a thread that proposes commits for as long as the database is open.
///
/// # Errors
/// [`Error::Limit`] without a thread.
pub(super) fn propose_commits(db: &Database) -> Result<()> {
    let state = std::sync::Arc::downgrade(&db.inner);
    let thread = std::thread::Builder::new().name("jindou-commits".into());
    let spawned = thread.spawn(move || run(&state));
    spawned.map(drop).map_err(|e| {
        Error::limit(
            Resource::Threads,
            format!("no thread for the commits of merges: {e}"),
        )
    })
}

fn run(state: &Weak<DatabaseState>) {
    let mut seen = None;
    loop {
        std::thread::sleep(LOOK);
        let Some(inner) = state.upgrade() else {
            return;
        };
        // What fails is tried again: another server may have proposed it, or have it in use already.
        let _ = propose(&Database { inner }, &mut seen);
    }
}

/// Proposes the commit of the open merge if it is due.
fn propose(db: &Database, seen: &mut Option<Instant>) -> Result<()> {
    let Some(replica) = db.replica() else {
        return Ok(());
    };
    let snapshot = db.inner.writer.published();
    let due = replica.folder.due_commit(&snapshot, seen)?;
    let Some((base, result)) = due else {
        return Ok(());
    };
    let is_writer = replica
        .writer()
        .is_some_and(|name| *name == *replica.name());
    if is_writer || seen.is_some_and(|since| since.elapsed() > WRITER_FIRST) {
        let options = UpdateOptions::default();
        replica.send(
            &SentChange::CommitMerge(base, &result),
            &options,
            db.runtime().memory(),
        )?;
    }
    Ok(())
}
