//! A base on another server, and the summaries of its segments that were received from there.

use super::summary::{SegmentEntry, SegmentSummary};
use crate::transport::{Link, RegionDescriptor, RemoteRegion, Result, TransportError};
use jindou_model::sync::{read, write};
use jindou_model::{Direction, PredicateId};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// Requests the summary of a segment from the peer; the reply is passed to [`RemoteStore::put`].
type Want = Box<dyn Fn(PredicateId, Direction) + Send + Sync>;

/// The default graph's segments of a base on another server. Shared by all readers of this process. Summaries are
/// requested on first use and kept.
pub struct RemoteStore {
    link: Arc<dyn Link>,
    /// The regions of the segment files, by direction and number.
    files: [Vec<RemoteRegion>; 2],
    memory_limit: u64,
    memory_used: AtomicU64,
    known: RwLock<KnownSegments>,
    want: Want,
}

/// Segments by dense predicate id and direction; `None` if the summary was requested and has not arrived.
type KnownSegments = FxHashMap<(u32, u8), Option<Arc<RemoteSegment>>>;

/// A segment of the remote base.
pub(super) struct RemoteSegment {
    pub entry: SegmentEntry,
    /// `None` if the segment has no summary, or the summary exceeds the memory limit. Then lists are requested by
    /// message.
    pub summary: Option<SegmentSummary>,
}

pub(super) fn damaged(what: &str) -> TransportError {
    TransportError::Refused(format!("the peer sent a damaged {what}"))
}

impl RemoteStore {
    /// Opens a base with the catalogue that [`expose`](super::expose) returned at the peer. `memory_limit` computes the
    /// memory limit for summaries, in bytes, from the total bytes of the segment files. Lists of segments beyond this
    /// limit are requested by message.
    ///
    /// # Errors
    /// The transport's errors, and an error for a damaged catalogue.
    pub fn open(
        link: Arc<dyn Link>,
        catalogue: &[u8],
        memory_limit: impl FnOnce(u64) -> u64,
        want: Want,
    ) -> Result<Self> {
        let (count, mut rest) = catalogue
            .split_first_chunk()
            .ok_or_else(|| damaged("catalogue"))?;
        let count = u32::from_le_bytes(*count);
        let mut direction = || -> Result<Vec<RemoteRegion>> {
            let region = |_| {
                let found =
                    RegionDescriptor::decode(&mut rest).ok_or_else(|| damaged("catalogue"))?;
                link.attach(&found)
            };
            (0..count).map(region).collect()
        };
        let files = [direction()?, direction()?];
        if !rest.is_empty() {
            return Err(damaged("catalogue"));
        }
        let bytes = files.iter().flatten().map(|f| f.len).sum();
        Ok(Self {
            link,
            files,
            memory_limit: memory_limit(bytes),
            memory_used: AtomicU64::new(0),
            known: RwLock::default(),
            want,
        })
    }

    /// Adds a summary that [`summarise`](super::summary::summarise) encoded at the peer. Returns false if the bytes are
    /// invalid.
    pub fn put(&self, p: PredicateId, direction: Direction, bytes: &[u8]) -> bool {
        let files = self.files[direction as usize].len();
        let Some((entry, words)) =
            SegmentEntry::parse(bytes).filter(|e| (e.0.file as usize) < files)
        else {
            return false;
        };
        let size = 8 * words.len() as u64;
        let used = self.memory_used.fetch_add(size, Ordering::Relaxed);
        let fits = entry.finder != 0 && used.saturating_add(size) <= self.memory_limit;
        let summary = match fits {
            true => SegmentSummary::parse(&entry, words),
            false => None,
        };
        if fits && summary.is_none() {
            self.memory_used.fetch_sub(size, Ordering::Relaxed);
            return false;
        }
        if !fits {
            self.memory_used.fetch_sub(size, Ordering::Relaxed);
        }
        let found = Arc::new(RemoteSegment { entry, summary });
        write(&self.known).insert((p.0, direction as u8), Some(found));
        true
    }

    /// The segment, if its summary has arrived; otherwise `None`, and the summary is requested.
    pub(super) fn segment(
        &self,
        p: PredicateId,
        direction: Direction,
    ) -> Option<Arc<RemoteSegment>> {
        let key = (p.0, direction as u8);
        if let Some(known) = read(&self.known).get(&key) {
            return known.clone();
        }
        let is_new = write(&self.known).insert(key, None).is_none();
        if is_new {
            (self.want)(p, direction);
        }
        None
    }

    /// Total bytes of the summaries that are kept at present.
    #[must_use]
    pub fn memory_used(&self) -> u64 {
        self.memory_used.load(Ordering::Relaxed)
    }

    pub(super) fn link(&self) -> &dyn Link {
        &*self.link
    }

    pub(super) fn file(&self, number: u32, direction: Direction) -> Option<RemoteRegion> {
        self.files[direction as usize].get(number as usize).copied()
    }
}

impl Drop for RemoteStore {
    fn drop(&mut self) {
        self.link.close();
    }
}
