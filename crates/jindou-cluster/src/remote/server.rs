//! Serving a store's lists: the memory that readers read, and answers for what they cannot.

use super::exposed::Exposed;
use super::files::StoreFiles;
use super::wire;
use crate::transport::{Epoch, MAX_MESSAGE, Message, Result, Transport, TransportError};
use jindou_model::{Direction, PredicateId};
use jindou_store::Snapshot;
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

/// Snapshots that readers may still be on.
const KEPT: usize = 64;

/// Serves one store over a transport until the transport is closed.
pub struct StoreServer {
    transport: Arc<dyn Transport>,
    exposed: Exposed,
    shared: Arc<Shared>,
}

struct Shared {
    /// The newest snapshots, oldest first: readers of those before the last still ask for lists.
    snapshots: RwLock<VecDeque<Snapshot>>,
    /// The reply to OPEN, and the regions it names.
    catalogue: RwLock<(Vec<u8>, Vec<u64>)>,
}

/// Regions of a past epoch. Readers may still read them until the longest deadline given out under that
/// epoch has passed; then [`Self::release`].
#[must_use = "regions stay registered until they are released"]
pub struct Retired {
    transport: Arc<dyn Transport>,
    regions: Vec<u64>,
}

impl Retired {
    /// Takes the regions back.
    pub fn release(self) -> Result<()> {
        self.regions
            .iter()
            .try_for_each(|&r| self.transport.release(r))
    }
}

impl StoreServer {
    /// Registers the files, summarises them (O(keys), about a second for 50 million) and answers readers
    /// from here on. `files` must be those that `snapshot` was opened from.
    pub fn start(
        transport: Arc<dyn Transport>,
        files: Arc<StoreFiles>,
        snapshot: Snapshot,
    ) -> Result<Self> {
        if snapshot.base().merged() > 0 {
            return Err(TransportError::Refused(
                "changes were merged into the store, and readers know the load's segments only: load it anew"
                    .to_owned(),
            ));
        }
        let base = snapshot.statistics().predicates.len();
        let same = |d| files.file(d).records().len() == base;
        if ![Direction::Out, Direction::In].into_iter().all(same) {
            return Err(TransportError::Refused(
                "the files are another store's".to_owned(),
            ));
        }
        let named = |p| {
            let view = snapshot.edges(PredicateId(p), Direction::Out);
            view.named().edge_count()
        };
        let named: Vec<u64> = (0..snapshot.predicate_count()).map(named).collect();
        let shared = Arc::new(Shared {
            snapshots: RwLock::new(VecDeque::from([snapshot])),
            catalogue: RwLock::default(),
        });
        let server = Self {
            transport,
            exposed: Exposed::new(files, &named),
            shared,
        };
        server.publish_regions()?;
        let s = Arc::clone(&server.shared);
        let open = move |_: &Message<'_>, reply: &mut Vec<u8>| {
            reply.extend_from_slice(&s.catalogue.read().unwrap_or_else(PoisonError::into_inner).0);
            Ok(())
        };
        server.transport.handle(wire::OPEN, Arc::new(open))?;
        let s = Arc::clone(&server.shared);
        let dirty = move |_: &Message<'_>, reply: &mut Vec<u8>| match s.newest().first() {
            Some(snapshot) => dirty(snapshot, reply),
            None => Err("there is no snapshot".to_owned()),
        };
        server.transport.handle(wire::DIRTY, Arc::new(dirty))?;
        let s = Arc::clone(&server.shared);
        let lists = move |m: &Message<'_>, reply: &mut Vec<u8>| {
            lists(&s.newest(), m.payload, reply).unwrap_or(Err("a damaged request".to_owned()))
        };
        server.transport.handle(wire::LISTS, Arc::new(lists))?;
        Ok(server)
    }

    /// Bytes of all summaries: what a reader keeps that uses every segment.
    #[must_use]
    pub fn summary_bytes(&self) -> u64 {
        self.exposed.summary_bytes()
    }

    /// Serves a later snapshot of the same base. Readers see it when they ask for a snapshot.
    pub fn publish(&self, snapshot: Snapshot) {
        let mut kept = self
            .shared
            .snapshots
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        kept.push_back(snapshot);
        if kept.len() > KEPT {
            kept.pop_front();
        }
    }

    /// Steps to a later placement epoch: readers of the old one are refused and must open again.
    pub fn advance(&self, epoch: Epoch) -> Result<Retired> {
        self.transport.advance(epoch)?;
        let regions = self.publish_regions()?;
        Ok(Retired {
            transport: Arc::clone(&self.transport),
            regions,
        })
    }

    /// Registers all regions in the transport's present epoch; gives the earlier ones.
    fn publish_regions(&self) -> Result<Vec<u64>> {
        let published = self.exposed.register(&*self.transport)?;
        let mut catalogue = self
            .shared
            .catalogue
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::replace(&mut *catalogue, published).1)
    }
}

impl Shared {
    /// Clones of the kept snapshots, the newest first. They share all that is large.
    fn newest(&self) -> Vec<Snapshot> {
        let kept = self
            .snapshots
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        kept.iter().rev().cloned().collect()
    }
}

fn dirty(source: &Snapshot, reply: &mut Vec<u8>) -> std::result::Result<(), String> {
    wire::put(reply, source.number());
    let count_at = reply.len();
    wire::put(reply, 0);
    let mut count = 0u32;
    for p in 0..source.predicate_count() {
        for d in [Direction::Out, Direction::In] {
            let Some(patch) = source.edges(PredicateId(p), d).patch else {
                continue;
            };
            let keys = patch.keys();
            for n in [d as u32, p, keys.len() as u32] {
                wire::put(reply, n);
            }
            reply.extend_from_slice(bytemuck::cast_slice(&keys));
            count += 1;
            if reply.len() > MAX_MESSAGE {
                return Err("the patches are too large to read over; merge them first".to_owned());
            }
        }
    }
    if let Some(slot) = reply.get_mut(count_at..count_at + 4) {
        slot.copy_from_slice(&count.to_le_bytes());
    }
    Ok(())
}

/// `None` for a damaged request.
fn lists(
    newest: &[Snapshot],
    mut request: &[u8],
    reply: &mut Vec<u8>,
) -> Option<std::result::Result<(), String>> {
    let r = &mut request;
    let number = wire::take(r)?;
    let direction = wire::direction(wire::take(r)?)?;
    let predicate = PredicateId(wire::take(r)?);
    let mut graphs = Vec::new();
    let scope = wire::take_scope(r, &mut graphs)?;
    let mut skip = wire::take(r)? as usize;
    let Some(source) = newest.iter().find(|s| s.number() == number) else {
        let [first, last] = [newest.last(), newest.first()].map(|s| s.map_or(0, Snapshot::number));
        return Some(Err(format!(
            "snapshot {number} is not here; from {first} to {last} are"
        )));
    };
    let view = source.edges(predicate, direction);
    let mut scratch = Vec::new();
    let mut room = wire::LISTS_VALUES;
    while let Some(key) = wire::take(r) {
        let list = view.read(key, scope, &mut scratch);
        let list = list.get(skip..).unwrap_or(&[]);
        skip = 0;
        let sent = list.get(..room.min(list.len())).unwrap_or(&[]);
        wire::put(reply, u32::from(sent.len() < list.len()));
        wire::put(reply, sent.len() as u32);
        reply.extend_from_slice(bytemuck::cast_slice(sent));
        room -= sent.len();
        if room == 0 {
            break;
        }
    }
    Some(Ok(()))
}
