//! Prepared queries that clients refer to by id.

use crate::admission::Admitted;
use jindou::{Error, PlannedQuery, PreparedQuery, QueryOptions, Resource, Result, Session, Value};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Largest number of prepared queries, and largest total bytes of their texts, algebra and plans. These bytes are also
/// charged to the memory of all queries.
const MOST: usize = 4096;
const MOST_BYTES: u64 = 32 << 20;

/// A prepared query. Planning and running it require an [`Admitted`] query; its other properties do not.
#[derive(Clone)]
pub(crate) struct RegisteredQuery(PreparedQuery);

impl RegisteredQuery {
    pub(crate) fn text(&self) -> &str {
        self.0.text()
    }

    /// The parameters' names, in the order in which values must be given.
    pub(crate) fn parameters(&self) -> &[String] {
        self.0.parameters()
    }

    pub(crate) fn is_planned(&self) -> bool {
        self.0.is_planned()
    }

    /// True if a run need not wait for planning: see [`PreparedQuery::is_current`].
    pub(crate) fn is_current(&self) -> bool {
        self.0.is_current()
    }

    pub(crate) fn is_light(&self) -> Option<bool> {
        self.0.is_light()
    }

    /// Plans the query with these values.
    pub(crate) fn plan(
        &self,
        _: &Admitted,
        values: &[Value<'_>],
        options: &QueryOptions,
    ) -> Result<PlannedQuery> {
        self.0.plan(values, options)
    }

    /// A session for running the query on one thread.
    pub(crate) fn session(&self, _: &Admitted) -> Session {
        self.0.session()
    }
}

/// Prepared queries, by a hash of their text and parameters. The least recently used ones are evicted.
#[derive(Default)]
pub(crate) struct Registry {
    inner: Mutex<RegistryState>,
}

#[derive(Default)]
struct RegistryState {
    by_id: FxHashMap<u64, (RegisteredQuery, u64, u64)>,
    by_use: BTreeMap<u64, u64>,
    clock: u64,
    bytes: u64,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id for this text and these parameters, and the prepared query if there is one. The id is the same on all
    /// servers and at any time, unless another query has the same hash.
    pub(crate) fn find(&self, text: &str, parameters: &[String]) -> (u64, Option<RegisteredQuery>) {
        let mut hasher = DefaultHasher::new();
        (text, parameters).hash(&mut hasher);
        let mut id = hasher.finish();
        while let Some(found) = self.get(id) {
            if found.text() == text && found.parameters() == parameters {
                return (id, Some(found));
            }
            id = id.wrapping_add(1);
        }
        (id, None)
    }

    /// The prepared query with this text and these parameters; prepares it if there is none.
    pub(crate) fn prepare(
        &self,
        admitted: &Admitted,
        text: &str,
        parameters: &[String],
        options: &QueryOptions,
    ) -> Result<(u64, RegisteredQuery)> {
        let id = match self.find(text, parameters) {
            (id, Some(found)) if found.0.has_present_prefixes() => return Ok((id, found)),
            (id, _) => id,
        };
        let prepared = Self::once(admitted, text, parameters, options)?;
        let bytes = prepared.0.bytes();
        if bytes > MOST_BYTES / 4 {
            return Err(Error::limit(
                Resource::Form,
                format!(
                    "the prepared query takes {bytes} bytes, more than the {} allowed: send it as a query",
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
        // Evicted queries are dropped after the lock is released.
        drop(inner);
        drop(gone);
        Ok((id, prepared))
    }

    /// Prepares a query without registering it.
    pub(crate) fn once(
        admitted: &Admitted,
        text: &str,
        parameters: &[String],
        options: &QueryOptions,
    ) -> Result<RegisteredQuery> {
        let prepared = admitted.db().prepare(text, parameters, options)?;
        Ok(RegisteredQuery(prepared))
    }

    /// The prepared query with this id; `None` if it does not exist or was evicted. O(log queries).
    pub(crate) fn get(&self, id: u64) -> Option<RegisteredQuery> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let (prepared, stamp, _) = inner.by_id.get_mut(&id)?;
        inner.by_use.remove(stamp);
        inner.clock += 1;
        *stamp = inner.clock;
        inner.by_use.insert(inner.clock, id);
        Some(prepared.clone())
    }

    /// Number of registered queries.
    pub(crate) fn len(&self) -> usize {
        self.lock().by_id.len()
    }
}
