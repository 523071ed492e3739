//! Reading a served store's lists.

use super::summary::{SegmentEntry, Summary};
use super::wire;
use crate::transport::{
    ByteRange, Epoch, Moment, Peer, RegionDescriptor, RemoteRegion, Result, TransportError,
};
use jindou_model::{DEFAULT_GRAPH, Direction, PredicateId};
use jindou_store::segment::Scope;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Bytes of one read when summaries are fetched.
const FETCH: u64 = 1 << 20;

/// A store on another server. Shared by all readers of this process; summaries are fetched on first use and
/// kept.
pub struct RemoteStore {
    peer: Arc<dyn Peer>,
    epoch: Epoch,
    directions: [Served; 2],
    memory_limit: u64,
    memory_used: AtomicU64,
}

/// One direction of the served store.
pub(super) struct Served {
    pub(super) file: RemoteRegion,
    summaries: RemoteRegion,
    entries: Vec<SegmentEntry>,
    kept: Vec<Slot>,
}

/// Room for one summary, a cache line: what a lookup of a segment met for the first time misses first.
/// `Some(None)`: over the memory limit, so ask.
#[derive(Default)]
#[repr(align(64))]
struct Slot(OnceLock<Option<Summary>>);

/// A remote store as of one snapshot. Make one a query.
pub struct RemoteSnapshot {
    store: Arc<RemoteStore>,
    number: u32,
    dirty: DirtyKeys,
}

/// The keys that updates touched: one bit decides for 15 of 16 clean keys, the lists for the others. (A patch's
/// own bits would send those to the server.)
#[derive(Default)]
struct DirtyKeys {
    /// One for all segments, so that it is small and in the caches; bit [`Self::bit`].
    bits: Box<[u64]>,
    /// 64 less log2 of the bits.
    shift: u32,
    /// By (direction, predicate), ascending.
    keys: FxHashMap<(u32, u32), Vec<u32>>,
}

impl DirtyKeys {
    fn new(keys: FxHashMap<(u32, u32), Vec<u32>>) -> Self {
        let count: usize = keys.values().map(Vec::len).sum();
        if count == 0 {
            return Self::default();
        }
        let bits = count.saturating_mul(16).next_power_of_two().max(64);
        let shift = 64 - bits.ilog2();
        let mut words = vec![0u64; bits / 64].into_boxed_slice();
        for (&(d, p), keys) in &keys {
            for &k in keys {
                let bit = Self::bit(d, p, k) >> shift;
                // In range: it has as many values as there are bits.
                if let Some(w) = words.get_mut((bit / 64) as usize) {
                    *w |= 1 << (bit % 64);
                }
            }
        }
        Self {
            bits: words,
            shift,
            keys,
        }
    }

    /// A key's bit, in the upper bits.
    #[inline]
    fn bit(direction: u32, predicate: u32, key: u32) -> u64 {
        let segment = u64::from(predicate) << 1 | u64::from(direction);
        // Odd multipliers without a pattern in binary (Fibonacci hashing).
        (u64::from(key) ^ segment.wrapping_mul(0xD6E8_FEB8_6659_FD93))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    #[inline]
    fn contains(&self, direction: u32, predicate: u32, key: u32) -> bool {
        if self.bits.is_empty() {
            return false;
        }
        let bit = Self::bit(direction, predicate, key) >> self.shift;
        let word = self.bits.get((bit / 64) as usize);
        word.is_none_or(|w| w >> (bit % 64) & 1 == 1) && self.listed(direction, predicate, key)
    }

    #[cold]
    fn listed(&self, direction: u32, predicate: u32, key: u32) -> bool {
        let keys = self.keys.get(&(direction, predicate));
        keys.is_some_and(|k| k.binary_search(&key).is_ok())
    }
}

/// The lists that are wanted: those of one triple pattern with one end unknown.
#[derive(Clone, Copy, Debug)]
pub struct Pattern<'a> {
    /// The predicate.
    pub predicate: PredicateId,
    /// Whether keys are subjects (`Out`) or objects.
    pub direction: Direction,
    /// The graphs to look at.
    pub scope: Scope<'a>,
}

/// The cost of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Known to be empty: nothing was sent.
    Empty,
    /// One read.
    OneRead,
    /// A message to the server and its answer.
    Message,
}

/// Lists of several keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// The cost of each key.
    pub accesses: Vec<Access>,
    /// Where each list ends in `values`.
    pub ends: Vec<usize>,
    /// All lists, one behind the other.
    pub values: Vec<u32>,
}

impl Lists {
    /// The `i`th list; empty behind the last.
    #[must_use]
    pub fn list(&self, i: usize) -> &[u32] {
        let start = i
            .checked_sub(1)
            .and_then(|i| self.ends.get(i))
            .copied()
            .unwrap_or(0);
        let end = self.ends.get(i).copied().unwrap_or(start);
        self.values.get(start..end).unwrap_or(&[])
    }

    fn clear(&mut self) {
        self.accesses.clear();
        self.ends.clear();
        self.values.clear();
    }
}

/// How lists of a segment are to be had.
enum Route<'a> {
    /// No lists at all.
    Nowhere,
    /// By reading where the summary says.
    At(&'a Summary),
    /// By message.
    Ask,
}

pub(super) fn damaged(what: &str) -> TransportError {
    TransportError::Refused(format!("the peer sent a damaged {what}"))
}

impl RemoteStore {
    /// Opens the store that `peer` serves in `epoch`. Summaries take at most `memory_limit` bytes here; keys of
    /// segments beyond that cost a message each.
    pub fn open(
        peer: Arc<dyn Peer>,
        epoch: Epoch,
        memory_limit: u64,
        deadline: Moment,
    ) -> Result<Arc<Self>> {
        let mut reply = Vec::new();
        peer.call(wire::OPEN, epoch, &[], &mut reply, deadline)?;
        Self::of_catalogue(peer, epoch, &reply, |_| memory_limit, deadline).map(Arc::new)
    }

    /// As [`Self::open`], with what [`Exposed::register`](super::Exposed::register) gave on the other side, and no message. The memory limit
    /// may depend on the bytes of the segment files.
    pub fn of_catalogue(
        peer: Arc<dyn Peer>,
        epoch: Epoch,
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
            let kept = entries.iter().map(|_| Slot::default()).collect();
            Ok(Served {
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
            epoch,
            memory_limit: memory_limit(bytes.sum()),
            directions,
            memory_used: AtomicU64::new(0),
        })
    }

    /// The newest snapshot there, with its dirty keys: one message.
    pub fn snapshot(self: &Arc<Self>, deadline: Moment) -> Result<RemoteSnapshot> {
        let mut reply = Vec::new();
        self.peer
            .call(wire::DIRTY, self.epoch, &[], &mut reply, deadline)?;
        let mut rest = &reply[..];
        let mut number = || wire::take(&mut rest);
        let (Some(snapshot), Some(count)) = (number(), number()) else {
            return Err(damaged("list of patches"));
        };
        let mut dirty = FxHashMap::default();
        for _ in 0..count {
            let mut one = || {
                let (d, p) = (wire::take(&mut rest)?, wire::take(&mut rest)?);
                let n = wire::take(&mut rest)?;
                let mut keys = Vec::new();
                wire::take_many(&mut rest, n, &mut keys)?;
                keys.is_sorted().then_some(((d, p), keys))
            };
            let (at, keys) = one().ok_or_else(|| damaged("list of patches"))?;
            dirty.insert(at, keys);
        }
        Ok(RemoteSnapshot {
            store: Arc::clone(self),
            number: snapshot,
            dirty: DirtyKeys::new(dirty),
        })
    }

    /// Predicates of the store.
    #[must_use]
    pub fn predicates(&self) -> u32 {
        self.directions[0].entries.len() as u32
    }

    /// The facts about a predicate's segment that are known without reading it.
    #[must_use]
    pub fn entry(&self, p: PredicateId, direction: Direction) -> Option<&SegmentEntry> {
        self.directions[direction as usize]
            .entries
            .get(p.0 as usize)
    }

    /// Bytes of summaries kept now.
    #[must_use]
    pub fn memory_used(&self) -> u64 {
        self.memory_used.load(Ordering::Relaxed)
    }

    /// Where a vertex' list lies, for those who measure: byte offset in the segment file, neighbours, and the
    /// region.
    pub fn locate(
        &self,
        p: PredicateId,
        direction: Direction,
        key: u32,
        deadline: Moment,
    ) -> Result<Option<(RemoteRegion, u64, u32)>> {
        let served = &self.directions[direction as usize];
        let summary = self.summary(served, p, deadline)?;
        Ok(summary
            .and_then(|s| s.locate(key))
            .map(|(at, n)| (served.file, at, n)))
    }

    pub(super) fn peer(&self) -> &dyn Peer {
        &*self.peer
    }

    pub(super) fn served(&self, direction: Direction) -> &Served {
        &self.directions[direction as usize]
    }

    /// The summary of a segment with edges; `None` if it is over the memory limit.
    pub(super) fn summary<'a>(
        &'a self,
        served: &'a Served,
        p: PredicateId,
        deadline: Moment,
    ) -> Result<Option<&'a Summary>> {
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
                .and_then(|()| Summary::parse(entry, words).ok_or_else(|| damaged("summary")))
                .map(Some)
        } else {
            Ok(None)
        };
        let keep = matches!(made, Ok(Some(_))) && slot.0.get().is_none();
        if !keep {
            self.memory_used.fetch_sub(bytes, Ordering::Relaxed);
        }
        // When two threads came at once, the first one's stays.
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

/// True if a pattern of `scope` looks at named graphs.
fn sees_named(scope: Scope<'_>) -> bool {
    match scope {
        Scope::Default => false,
        Scope::Set(graphs) => graphs.iter().any(|&g| g != DEFAULT_GRAPH),
        Scope::Named(_) | Scope::AnyNamed | Scope::Union => true,
    }
}

impl RemoteSnapshot {
    /// The snapshot's number.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<RemoteStore> {
        &self.store
    }

    /// True if an update touched the key, which then costs a message.
    #[inline]
    #[must_use]
    pub fn is_dirty(&self, p: PredicateId, direction: Direction, key: u32) -> bool {
        self.dirty.contains(direction as u32, p.0, key)
    }

    /// How the clean keys of a segment are to be had.
    fn segment(&self, pattern: Pattern<'_>, deadline: Moment) -> Result<Route<'_>> {
        let served = &self.store.directions[pattern.direction as usize];
        let at = pattern.predicate.0 as usize;
        // Almost always; without a look at the table of contents, which would be one more cache miss.
        if let (Scope::Default, Some(slot)) = (pattern.scope, served.kept.get(at))
            && let Some(Some(summary)) = slot.0.get()
        {
            return Ok(Route::At(summary));
        }
        let Some(entry) = served.entries.get(at) else {
            return Ok(Route::Nowhere);
        };
        if entry.named_edges > 0 && sees_named(pattern.scope) {
            return Ok(Route::Ask);
        }
        if entry.edges == 0 || !pattern.scope.sees(DEFAULT_GRAPH) {
            return Ok(Route::Nowhere);
        }
        Ok(self
            .store
            .summary(served, pattern.predicate, deadline)?
            .map_or(Route::Ask, Route::At))
    }

    /// The neighbours of one key into `out` (cleared first): ascending, each once.
    pub fn neighbours(
        &self,
        pattern: Pattern<'_>,
        key: u32,
        out: &mut Vec<u32>,
        deadline: Moment,
    ) -> Result<Access> {
        out.clear();
        let route = if self.is_dirty(pattern.predicate, pattern.direction, key) {
            Route::Ask
        } else {
            self.segment(pattern, deadline)?
        };
        let place = match route {
            Route::Nowhere => None,
            Route::At(summary) => {
                let region = self.store.directions[pattern.direction as usize].file;
                let peer = &self.store.peer;
                summary.locate_near(key, |at| peer.expect(region, at))
            }
            Route::Ask => {
                let mut lists = Lists::default();
                self.ask(pattern, &[key], &mut lists, deadline)?;
                *out = lists.values;
                return Ok(Access::Message);
            }
        };
        let Some((offset, n)) = place else {
            return Ok(Access::Empty);
        };
        out.resize(n as usize, 0);
        self.read(
            pattern.direction,
            offset,
            bytemuck::cast_slice_mut(out),
            deadline,
        )?;
        Ok(Access::OneRead)
    }

    fn read(&self, d: Direction, offset: u64, into: &mut [u8], deadline: Moment) -> Result<()> {
        let region = self.store.directions[d as usize].file;
        match u32::try_from(into.len()) {
            Ok(len) => {
                self.store
                    .peer
                    .read_many(region, &[ByteRange { offset, len }], into, deadline)
            }
            Err(_) => fetch(&*self.store.peer, region, offset, into, deadline),
        }
    }

    /// The neighbours of several keys: all clean ones in one `read_many`, all others in one message (more
    /// when lists are long).
    pub fn neighbours_many(
        &self,
        pattern: Pattern<'_>,
        keys: &[u32],
        out: &mut Lists,
        deadline: Moment,
    ) -> Result<()> {
        out.clear();
        let mut located = Vec::with_capacity(keys.len());
        match self.segment(pattern, deadline)? {
            Route::Nowhere => located.resize(keys.len(), None),
            Route::Ask => {}
            Route::At(summary) => summary.locate_many(keys, &mut located),
        }
        let mut ranges = Vec::with_capacity(keys.len());
        let mut asked = Vec::new();
        let mut total = 0;
        for (i, &key) in keys.iter().enumerate() {
            let place = match located.get(i) {
                Some(place) if !self.is_dirty(pattern.predicate, pattern.direction, key) => *place,
                _ => Some((0, u32::MAX)),
            };
            out.accesses.push(match place {
                None => Access::Empty,
                Some((offset, n)) => match n.checked_mul(4) {
                    Some(len) => {
                        ranges.push(ByteRange { offset, len });
                        total += n as usize;
                        Access::OneRead
                    }
                    // Not to be read, or four gigabytes in one list, which goes piece by piece.
                    None => {
                        asked.push(key);
                        Access::Message
                    }
                },
            });
        }
        let region = self.store.directions[pattern.direction as usize].file;
        out.values.resize(total, 0);
        if !ranges.is_empty() {
            let into = bytemuck::cast_slice_mut(&mut out.values);
            self.store.peer.read_many(region, &ranges, into, deadline)?;
        }
        let mut answers = Lists::default();
        if !asked.is_empty() {
            self.ask(pattern, &asked, &mut answers, deadline)?;
        }
        let mut lens = ranges.iter().map(|r| r.len as usize / 4);
        if asked.is_empty() {
            let mut end = 0;
            out.ends.extend(out.accesses.iter().map(|a| {
                end += if *a == Access::OneRead {
                    lens.next().unwrap_or(0)
                } else {
                    0
                };
                end
            }));
            return Ok(());
        }
        // Clean lists and answers take turns in the keys' order.
        let clean = std::mem::take(&mut out.values);
        let (mut at, mut answer) = (0, 0);
        for a in out.accesses.iter() {
            match a {
                Access::Empty => {}
                Access::OneRead => {
                    let end = at + lens.next().unwrap_or(0);
                    out.values
                        .extend_from_slice(clean.get(at..end).unwrap_or(&[]));
                    at = end;
                }
                Access::Message => {
                    out.values.extend_from_slice(answers.list(answer));
                    answer += 1;
                }
            }
            out.ends.push(out.values.len());
        }
        Ok(())
    }

    /// Lists by message, as the server sees them at this snapshot.
    fn ask(
        &self,
        pattern: Pattern<'_>,
        keys: &[u32],
        out: &mut Lists,
        deadline: Moment,
    ) -> Result<()> {
        let mut skip = 0u32;
        let mut rest = keys;
        let (mut request, mut reply) = (Vec::new(), Vec::new());
        while !rest.is_empty() {
            request.clear();
            for n in [self.number, pattern.direction as u32, pattern.predicate.0] {
                wire::put(&mut request, n);
            }
            wire::put_scope(&mut request, pattern.scope);
            wire::put(&mut request, skip);
            rest.iter().for_each(|&k| wire::put(&mut request, k));
            reply.clear();
            let store = &self.store;
            store
                .peer
                .call(wire::LISTS, store.epoch, &request, &mut reply, deadline)?;
            let mut answer = &reply[..];
            let before = (rest.len(), skip);
            while let (Some(more), Some(n)) = (wire::take(&mut answer), wire::take(&mut answer)) {
                if rest.is_empty() || wire::take_many(&mut answer, n, &mut out.values).is_none() {
                    return Err(damaged("list"));
                }
                if more == 0 {
                    out.ends.push(out.values.len());
                    rest = rest.get(1..).unwrap_or(&[]);
                    skip = 0;
                } else {
                    skip += n;
                }
            }
            if (rest.len(), skip) == before {
                return Err(damaged("list"));
            }
        }
        Ok(())
    }
}
