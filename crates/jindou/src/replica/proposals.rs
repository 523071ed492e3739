//! Changes that servers propose by themselves.
//!
//! - Committing a merge by all servers of a sharded store: any server may propose this, and the change takes effect
//!   once. The replaced base is released later.
//! - Freeing the ids of terms that no quad uses: the writer proposes this after each of its own merges. The change's
//!   record names the ids, so it does not matter which servers have merged.

use super::Replica;
use super::request::{self, SentChange, SentOptions};
use super::wait::wait_for;
use crate::database::{Database, DatabaseState};
use crate::update::{UpdateOptions, spawn};
use jindou_model::Result;
use jindou_replicas::{Handle, Request, RequestKey};
use jindou_store::Snapshot;
use std::sync::Weak;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_128;

/// Interval at which a server checks if a merge can be committed, or a base released.
const POLL: Duration = Duration::from_millis(50);

/// Request key of a change that several servers may propose and that takes effect once.
pub(super) fn key(what: &str, base: u64) -> u128 {
    xxh3_128(format!("jindou {what} {base}").as_bytes())
}

/// Starts a thread that proposes changes for as long as the database is open.
///
/// # Errors
/// As [`spawn`].
pub(super) fn propose_after_merges(db: &Database, frees_terms: bool) -> Result<()> {
    let state = std::sync::Arc::downgrade(&db.inner);
    let failure = "no thread for the commits of merges";
    spawn("jindou-commits", failure, move || run(&state, frees_terms)).map(drop)
}

fn run(state: &Weak<DatabaseState>, frees_terms: bool) {
    let mut freed = 0;
    loop {
        std::thread::sleep(POLL);
        let Some(inner) = state.upgrade() else {
            return;
        };
        // A failed proposal is tried again later: another server may have proposed the same change, or use the base
        // already.
        let db = Database { inner };
        let _ = propose(&db);
        let freeing = Freeing::after_merge(&db, &mut freed).filter(|_| frees_terms);
        // Dropped before the wait, so that this thread does not keep the database open.
        drop(db);
        // If this fails, the unused terms are found again after the next merge.
        let _ = freeing.map(Freeing::propose);
    }
}

/// A proposal to free the ids of tail terms that no quad uses.
struct Freeing {
    snapshot: Snapshot,
    handle: Handle<Snapshot>,
}

impl Freeing {
    /// The proposal that the writer makes once after each of its merges, if one is due; `None` on other servers. `of`
    /// holds the number of the base after which the last proposal was made.
    fn after_merge(db: &Database, of: &mut u64) -> Option<Self> {
        let replica = db.replica().filter(|replica| is_writer(replica))?;
        let snapshot = db.inner.writer.published();
        let base = snapshot.base().merged();
        (std::mem::replace(of, base) != base).then(|| Self {
            snapshot,
            handle: replica.handle.clone(),
        })
    }

    fn propose(self) -> Result<()> {
        let asked = SentOptions::of(&UpdateOptions::default())?;
        for part in self.snapshot.unused_terms() {
            let body = request::write(&SentChange::FreeTerms(part), &asked)?;
            let request = Request {
                key: RequestKey(super::random()),
                fingerprint: Default::default(),
            };
            let _ = wait_for(self.handle.update(request, body.into()), None);
        }
        Ok(())
    }
}

fn is_writer(replica: &Replica) -> bool {
    replica
        .writer()
        .is_some_and(|name| *name == *replica.name())
}

/// Proposes the commit of the open merge if that is due.
fn propose(db: &Database) -> Result<()> {
    let Some(replica) = db.replica() else {
        return Ok(());
    };
    replica.folder.release_expired();
    let snapshot = db.inner.writer.published();
    let due = replica.folder.due_commit(&snapshot, is_writer(replica))?;
    if let Some((base, result)) = due {
        let options = UpdateOptions::default();
        replica.send(
            &SentChange::CommitMerge(base, &result),
            &options,
            db.runtime().memory(),
        )?;
    }
    Ok(())
}
