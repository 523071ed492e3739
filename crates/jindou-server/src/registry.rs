//! Prepared queries that clients may name.

use jindou::{Database, Error, PreparedQuery, QueryOptions, Resource, Result};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Queries kept, and bytes of them together: texts, algebra and plans, which all queries' memory is charged as well.
const MOST: usize = 4096;
const MOST_BYTES: u64 = 32 << 20;

/// Prepared queries by the hash of text and parameters; the least recently used go when there is no room.
#[derive(Default)]
pub(crate) struct Registry {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    by_id: FxHashMap<u64, (PreparedQuery, u64, u64)>,
    by_use: BTreeMap<u64, u64>,
    clock: u64,
    bytes: u64,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The query with this text and these parameters, prepared now if it is not there. Its id is the same wherever and
    /// whenever the same is prepared, unless another query has that hash.
    pub(crate) fn prepare(
        &self,
        db: &Database,
        text: &str,
        parameters: &[String],
        options: &QueryOptions,
    ) -> Result<(u64, PreparedQuery)> {
        let mut hasher = DefaultHasher::new();
        (text, parameters).hash(&mut hasher);
        let mut id = hasher.finish();
        let same = |p: &PreparedQuery| p.text() == text && p.parameters() == parameters;
        while let Some(found) = self.get(id) {
            if same(&found) {
                return Ok((id, found));
            }
            id = id.wrapping_add(1);
        }
        let prepared = db.prepare(text, parameters, options)?;
        let bytes = prepared.bytes();
        if bytes > MOST_BYTES / 4 {
            return Err(Error::limit(
                Resource::Form,
                format!(
                    "the prepared query takes {bytes} bytes; at most {} are kept for one: send it as a query",
                    MOST_BYTES / 4
                ),
            ));
        }
        let mut gone = vec![];
        let mut inner = self.lock();
        inner.clock += 1;
        let now = inner.clock;
        inner.bytes += bytes;
        inner.by_use.insert(now, id);
        if let Some((old, stamp, bytes)) = inner.by_id.insert(id, (prepared.clone(), now, bytes)) {
            inner.bytes -= bytes;
            inner.by_use.remove(&stamp);
            gone.push(old);
        }
        while inner.by_id.len() > MOST || inner.bytes > MOST_BYTES {
            let Some((_, oldest)) = inner.by_use.pop_first() else {
                break;
            };
            if let Some((old, _, bytes)) = inner.by_id.remove(&oldest) {
                inner.bytes -= bytes;
                gone.push(old);
            }
        }
        // They end when nobody waits for the lock.
        drop(inner);
        drop(gone);
        Ok((id, prepared))
    }

    /// The query with this id. O(log queries).
    pub(crate) fn get(&self, id: u64) -> Option<PreparedQuery> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let (prepared, stamp, _) = inner.by_id.get_mut(&id)?;
        inner.by_use.remove(stamp);
        inner.clock += 1;
        *stamp = inner.clock;
        inner.by_use.insert(inner.clock, id);
        Some(prepared.clone())
    }

    /// Queries kept.
    pub(crate) fn len(&self) -> usize {
        self.lock().by_id.len()
    }
}
