//! A store on another server, and the summaries of its segments that were fetched from there.

use super::summary::{SegmentEntry, SegmentSummary};
use super::wire;
use crate::transport::{
    ByteRange, Moment, Peer, RegionDescriptor, RemoteRegion, Result, TransportError,
};
use jindou_model::{Direction, PredicateId};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Bytes per read when summaries are fetched.
const FETCH: u64 = 1 << 20;

/// A store on another server. Shared by all readers of this process; summaries are fetched on first use and
/// kept.
pub struct RemoteStore {
    peer: Arc<dyn Peer>,
    directions: [RemoteSide; 2],
    memory_limit: u64,
    memory_used: AtomicU64,
}

/// One direction of a remote store.
pub(super) struct RemoteSide {
    pub(super) file: RemoteRegion,
    summaries: RemoteRegion,
    entries: Vec<SegmentEntry>,
    kept: Vec<SummarySlot>,
}

/// A cached summary, aligned to a cache line, which is the first cache miss when a new segment is looked up.
/// `Some(None)` means that it exceeds the memory limit, so lists must be requested.
#[derive(Default)]
#[repr(align(64))]
struct SummarySlot(OnceLock<Option<SegmentSummary>>);

pub(super) fn damaged(what: &str) -> TransportError {
    TransportError::Refused(format!("the peer sent a damaged {what}"))
}

impl RemoteStore {
    /// Opens a store by the catalogue that [`Exposed::register`](super::Exposed::register) returned at the peer.
    /// Summaries take at most the bytes that `memory_limit` computes from those of the segment files; lists of further
    /// segments must be requested.
    ///
    /// # Errors
    /// The transport's errors, and an error for a damaged catalogue.
    pub fn of_catalogue(
        peer: Arc<dyn Peer>,
        catalogue: &[u8],
        memory_limit: impl FnOnce(u64) -> u64,
        deadline: Moment,
    ) -> Result<Self> {
        let mut rest = catalogue;
        let predicates = wire::take(&mut rest).ok_or_else(|| damaged("catalogue"))?;
        let mut direction = || {
            let mut region = || {
                let d = RegionDescriptor::decode(&mut rest).ok_or_else(|| damaged("catalogue"))?;
                peer.attach(&d)
            };
            let (file, table, summaries) = (region()?, region()?, region()?);
            if table.len != u64::from(predicates) * size_of::<SegmentEntry>() as u64 {
                return Err(damaged("catalogue"));
            }
            let mut entries = vec![SegmentEntry::default(); predicates as usize];
            fetch(
                &*peer,
                table,
                0,
                bytemuck::cast_slice_mut(&mut entries),
                deadline,
            )?;
            let kept = entries.iter().map(|_| SummarySlot::default()).collect();
            Ok(RemoteSide {
                file,
                summaries,
                entries,
                kept,
            })
        };
        let directions = [direction()?, direction()?];
        let bytes = directions.iter().map(|d| d.file.len);
        Ok(Self {
            peer,
            memory_limit: memory_limit(bytes.sum()),
            directions,
            memory_used: AtomicU64::new(0),
        })
    }

    /// Predicates of the store.
    #[must_use]
    pub fn predicates(&self) -> u32 {
        self.directions[0].entries.len() as u32
    }

    /// The known facts about a predicate's segment, without reading it.
    #[must_use]
    pub fn entry(&self, p: PredicateId, direction: Direction) -> Option<&SegmentEntry> {
        self.directions[direction as usize]
            .entries
            .get(p.0 as usize)
    }

    /// Bytes of the summaries kept at present.
    #[must_use]
    pub fn memory_used(&self) -> u64 {
        self.memory_used.load(Ordering::Relaxed)
    }

    pub(super) fn peer(&self) -> &dyn Peer {
        &*self.peer
    }

    pub(super) fn served(&self, direction: Direction) -> &RemoteSide {
        &self.directions[direction as usize]
    }

    /// The summary of a segment with edges; `None` if it exceeds the memory limit.
    pub(super) fn summary<'a>(
        &'a self,
        served: &'a RemoteSide,
        p: PredicateId,
        deadline: Moment,
    ) -> Result<Option<&'a SegmentSummary>> {
        let (Some(slot), Some(entry)) = (
            served.kept.get(p.0 as usize),
            served.entries.get(p.0 as usize),
        ) else {
            return Ok(None);
        };
        if let Some(kept) = slot.0.get() {
            return Ok(kept.as_ref());
        }
        let bytes = entry.summary_words.saturating_mul(8);
        let used = self.memory_used.fetch_add(bytes, Ordering::Relaxed);
        let fits = entry.finder != 0
            && used.saturating_add(bytes) <= self.memory_limit
            && bytes <= served.summaries.len;
        let made = if fits {
            let mut words = vec![0u64; entry.summary_words as usize].into_boxed_slice();
            let at = entry.summary_at.saturating_mul(8);
            let into = bytemuck::cast_slice_mut(&mut words);
            fetch(&*self.peer, served.summaries, at, into, deadline)
                .and_then(|()| {
                    SegmentSummary::parse(entry, words).ok_or_else(|| damaged("summary"))
                })
                .map(Some)
        } else {
            Ok(None)
        };
        let keep = matches!(made, Ok(Some(_))) && slot.0.get().is_none();
        if !keep {
            self.memory_used.fetch_sub(bytes, Ordering::Relaxed);
        }
        // If two threads fetched it at once, the first result is kept.
        let made = made?;
        Ok(slot.0.get_or_init(|| made).as_ref())
    }
}

fn fetch(
    peer: &dyn Peer,
    region: RemoteRegion,
    at: u64,
    into: &mut [u8],
    deadline: Moment,
) -> Result<()> {
    let mut at = at;
    for part in into.chunks_mut(FETCH as usize) {
        let range = ByteRange {
            offset: at,
            len: part.len() as u32,
        };
        peer.read_many(region, &[range], part, deadline)?;
        at += part.len() as u64;
    }
    Ok(())
}
