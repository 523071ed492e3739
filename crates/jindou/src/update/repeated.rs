//! Idempotency of requests with a key: each is executed once, however often it is sent.

use super::{UpdateOptions, UpdateReport, micros};
use jindou_model::{Error, Result};
use jindou_store::{DoneRequest, Snapshot};
use std::time::SystemTime;
use xxhash_rust::xxh3::xxh3_128;

impl UpdateOptions {
    /// The request's key as a 128-bit hash.
    pub(crate) fn request_key(&self) -> Option<u128> {
        self.key.as_ref().map(|key| xxh3_128(key.as_bytes()))
    }

    /// Ok if the fingerprint matches this request's, so that both are the same request.
    ///
    /// # Errors
    /// [`Error::KeyReused`].
    pub(crate) fn is_same_request(&self, fingerprint: u64) -> Result<()> {
        if fingerprint == self.fingerprint || [fingerprint, self.fingerprint].contains(&0) {
            return Ok(());
        }
        Err(Error::KeyReused(
            "this key came with another request in the last minutes, so this one was not done; give each request a key of its own, and send the same request again only with the same key".into(),
        ))
    }

    /// The report of an earlier execution, if `head` contains this request's key; `None` if the request must be
    /// executed.
    ///
    /// # Errors
    /// [`Error::KeyReused`] if the key belongs to another request.
    pub(super) fn earlier_report(&self, head: &Snapshot) -> Result<Option<UpdateReport>> {
        let now = micros(SystemTime::now());
        let known = self.request_key().and_then(|key| head.request(key));
        let Some(done) = known.filter(|done| done.is_recent(now)) else {
            return Ok(None);
        };
        self.is_same_request(done.fingerprint)?;
        Ok(Some(UpdateReport {
            snapshot: done.snapshot,
            operations: usize::try_from(done.operations).unwrap_or(usize::MAX),
            added: done.added,
            removed: done.removed,
            graph_was_there: done.graph_was_there,
            revision: done.revision,
            ..UpdateReport::default()
        }))
    }

    /// Adds the request's key and outcome to the result of a transaction over `head`, if the request has a key.
    pub(super) fn with_request_key(
        &self,
        made: Option<(Snapshot, Vec<u8>)>,
        head: &Snapshot,
        report: &UpdateReport,
    ) -> Result<Option<(Snapshot, Vec<u8>)>> {
        let Some(key) = self.request_key() else {
            return Ok(made);
        };
        let done = DoneRequest {
            key,
            fingerprint: self.fingerprint,
            time: micros(SystemTime::now()),
            operations: report.operations as u64,
            added: report.added,
            removed: report.removed,
            graph_was_there: report.graph_was_there,
            revision: report.revision,
            ..DoneRequest::default()
        };
        let begun = made.is_some();
        let (snapshot, mut record) = made.unwrap_or_else(|| (head.clone(), Vec::new()));
        let (snapshot, mut part) = snapshot.apply_request(&done, begun)?;
        record.append(&mut part);
        Ok(Some((snapshot, record)))
    }
}
