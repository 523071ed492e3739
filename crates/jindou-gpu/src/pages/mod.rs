//! Segments larger than the device's memory together: each has addresses of its own, of which only some are backed by
//! memory (ATC '18 §4.1, §4.2).
//!
//! ```text
//! addresses of a segment   | finder, keys, offsets | neighbours |      reserved once, so that kernels see arrays as ever
//! blocks                   | 0 | 1 | 2 | 3         | 0 | 1 | 2 | 3 |   a part of either, which come and go together
//! pages                    mapped before a step that reads the segment, unmapped when others need the room
//! ```
//!
//! A plan comes here only where its segments do not fit whole. Before each step, the blocks of the segments that it reads are
//! brought as far as they are missing; [`policy`] says which others go for that. Blocks stay between steps and plans. A step whose own segments
//! do not fit, a segment with a patch and predicate variables are left to the CPU.

mod policy;

pub(crate) use policy::{Block, Policy};

use crate::device::{ALIGN, Device};
use crate::params;
use crate::resident::{alone, describe, locked};
use jindou_model::{CancelToken, Direction, Error, PredicateId, Resource, Result};
use jindou_store::Graph;
use jindou_store::segment::Scope;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Part of the memory that blocks may take; the rest is for tables.
const SHARE: f64 = 0.75;

/// The segment, at one generation, that blocks belong to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Name {
    epoch: u64,
    predicate: PredicateId,
    direction: Direction,
    generation: u32,
    union: bool,
}

impl Name {
    fn scope(&self) -> Scope<'static> {
        if self.union {
            Scope::Union
        } else {
            Scope::Default
        }
    }
}

/// Reserved addresses. No page is mapped in them when they go.
struct Addresses {
    device: Arc<Device>,
    at: u64,
    bytes: usize,
}

impl Drop for Addresses {
    fn drop(&mut self) {
        // SAFETY: reserved with this length, once; whoever mapped pages unmapped them.
        unsafe { self.device.unreserve(self.at, self.bytes) };
    }
}

/// A segment of which some blocks are in the device's memory.
pub(crate) struct PagedSegment {
    number: u32,
    name: Name,
    /// As kernels get it.
    pub params: params::Segment,
    addresses: Addresses,
    /// Pages of the index, which come first, and of the neighbours.
    index: u64,
    neighbours: u64,
    page: usize,
}

impl PagedSegment {
    fn blocks(&self) -> u64 {
        self.index.max(self.neighbours)
    }

    /// The pages of a block: of the index, and of the neighbours.
    fn pages_of(&self, number: u32) -> [Range<u64>; 2] {
        let (n, all) = (u64::from(number), self.blocks());
        let part = |pages: u64| n * pages / all..(n + 1) * pages / all;
        let neighbours = part(self.neighbours);
        [
            part(self.index),
            self.index + neighbours.start..self.index + neighbours.end,
        ]
    }

    fn page_count(&self, number: u32) -> u64 {
        self.pages_of(number).map(|r| r.end - r.start).iter().sum()
    }

    /// Addresses that its blocks take, mapped or not.
    pub fn bytes(&self) -> u64 {
        (self.index + self.neighbours) * self.page as u64
    }
}

struct State {
    policy: Policy,
    segments: FxHashMap<Name, Arc<PagedSegment>>,
    by_number: FxHashMap<u32, Arc<PagedSegment>>,
    next: u32,
}

/// Bytes that came to the device and that went from it, for blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    pub come: u64,
    pub gone: u64,
}

/// The blocks of all segments on a device.
pub(crate) struct Pager {
    device: Arc<Device>,
    page: usize,
    state: Mutex<State>,
    /// Plans that run over blocks.
    running: AtomicU64,
}

impl Pager {
    /// `None` for a device that maps no pages.
    pub fn new(device: &Arc<Device>) -> Option<Self> {
        Some(Self {
            page: device.page()?,
            device: Arc::clone(device),
            state: Mutex::new(State {
                policy: Policy::new(0),
                segments: FxHashMap::default(),
                by_number: FxHashMap::default(),
                next: 0,
            }),
            running: AtomicU64::new(0),
        })
    }

    /// Begins a plan: if no other one runs, sets how much of the memory blocks may take from now on.
    pub fn begin(&self) -> Result<Running<'_>> {
        let mut state = locked(&self.state);
        if self.running.fetch_add(1, Ordering::Relaxed) == 0 {
            // Counted down where that fails.
            let running = Running(self);
            let (free, _) = self.device.memory()?;
            let all = free + state.policy.pages() * self.page as u64;
            let capacity = (all as f64 * SHARE) as u64 / self.page as u64;
            if capacity != state.policy.capacity() {
                self.empty(&mut state)?;
                state.policy = Policy::new(capacity);
            }
            drop(state);
            return Ok(running);
        }
        drop(state);
        Ok(Running(self))
    }

    /// Memory that blocks may take and do not yet.
    pub fn unmapped(&self) -> u64 {
        let state = locked(&self.state);
        (state.policy.capacity() - state.policy.pages()) * self.page as u64
    }

    /// Gives all memory back, unless plans run over it.
    pub fn clear(&self) {
        let mut state = locked(&self.state);
        if self.running.load(Ordering::Relaxed) == 0 {
            // A device that fails to wait says so to the next query.
            let _ = self.empty(&mut state);
        }
    }

    fn empty(&self, state: &mut State) -> Result<()> {
        let all: Vec<Block> = state.policy.blocks().collect();
        if !all.is_empty() {
            self.device.sync()?;
            for block in all {
                self.unmap(state, block);
            }
        }
        state.segments.clear();
        state.by_number.clear();
        Ok(())
    }

    /// The addresses of a segment, reserved if it has none. `Unsupported` where blocks cannot hold it.
    pub fn segment(
        &self,
        snapshot: &dyn Graph,
        predicate: PredicateId,
        direction: Direction,
        scope: Scope<'_>,
    ) -> Result<Arc<PagedSegment>> {
        let view = snapshot.edges(predicate, direction);
        if view.patch.is_some() {
            return Err(Error::Unsupported(
                "updated segments larger than the GPU's memory".into(),
            ));
        }
        let segment = alone(&view, scope)?;
        let name = Name {
            epoch: snapshot.identity().epoch,
            predicate,
            direction,
            generation: snapshot.generation_of(predicate),
            union: scope == Scope::Union,
        };
        let mut state = locked(&self.state);
        if let Some(s) = state.segments.get(&name) {
            return Ok(Arc::clone(s));
        }
        let described = describe(&segment)?;
        if described.is_made {
            return Err(Error::Unsupported(
                "a segment of folded keys larger than the GPU's memory".into(),
            ));
        }
        let page = self.page;
        let index = described.index_bytes().div_ceil(page);
        let neighbours = (segment.neighbours.len() * 4).div_ceil(page);
        let bytes = (index + neighbours).max(1) * page;
        let addresses = Addresses {
            at: self.device.reserve(bytes)?,
            device: Arc::clone(&self.device),
            bytes,
        };
        let first = addresses.at + (index * page) as u64;
        let paged = Arc::new(PagedSegment {
            number: state.next,
            name,
            params: described.at(addresses.at, first),
            addresses,
            index: index as u64,
            neighbours: neighbours as u64,
            page,
        });
        state.next += 1;
        state.by_number.insert(paged.number, Arc::clone(&paged));
        state.segments.insert(name, Arc::clone(&paged));
        Ok(paged)
    }

    /// True if a step that reads these segments can have them all.
    pub fn fit(&self, segments: &[Arc<PagedSegment>]) -> bool {
        let pages: u64 = segments.iter().map(|s| s.index + s.neighbours).sum();
        pages <= locked(&self.state).policy.capacity()
    }

    /// Brings the blocks of these segments that are missing. `next`: after how many steps of this plan a segment is read again.
    ///
    /// # Errors
    /// `Limit` if they do not fit, those of the device, and of `cancel` while it is waited for.
    pub fn page_in(
        &self,
        segments: &[Arc<PagedSegment>],
        next: &dyn Fn(&PagedSegment) -> Option<usize>,
        snapshot: &dyn Graph,
        cancel: &CancelToken,
    ) -> Result<Moved> {
        let mut state = locked(&self.state);
        let mut wanted = Vec::new();
        for s in segments {
            wanted.extend((0..s.blocks() as u32).map(|number| {
                let block = Block {
                    segment: s.number,
                    number,
                };
                (block, s.page_count(number))
            }));
        }
        let State {
            policy, by_number, ..
        } = &mut *state;
        let next = |number: u32| by_number.get(&number).and_then(|s| next(s));
        let Some(change) = policy.want(&wanted, &next) else {
            return Err(Error::limit(
                Resource::Device,
                "a step's segments larger than the GPU's memory",
            ));
        };
        let mut moved = Moved::default();
        let mut waited = Ok(());
        if !change.gone.is_empty() {
            // Kernels that read them may still run. Whoever is cancelled waits for them too: the blocks are to go.
            waited = self
                .device
                .wait(cancel)
                .or_else(|e| self.device.sync().and(Err(e)));
            for &block in &change.gone {
                moved.gone += self.unmap(&mut state, block);
            }
        }
        let mut there = 0;
        let done = waited.and_then(|()| {
            change.come.iter().try_for_each(|&block| {
                moved.come += self.bring(&state, block, snapshot)?;
                there += 1;
                Ok(())
            })
        });
        if done.is_err() {
            for &block in change.come.get(there..).unwrap_or_default() {
                state.policy.forget(block);
            }
        }
        done.map(|()| moved)
    }

    /// Unmaps a block; its bytes. The policy need not know it any more.
    fn unmap(&self, state: &mut State, block: Block) -> u64 {
        state.policy.forget(block);
        let Some(s) = state.by_number.get(&block.segment) else {
            return 0;
        };
        let mut bytes = 0;
        for page in s.pages_of(block.number).into_iter().flatten() {
            let at = s.addresses.at + page * self.page as u64;
            // SAFETY: mapped when the block came, with this length; all work that reads it was waited for, or the device failed.
            unsafe { self.device.unmap_page(at, self.page) };
            bytes += self.page as u64;
        }
        bytes
    }

    /// Maps a block and copies its content there; its bytes. If that fails, nothing is mapped.
    fn bring(&self, state: &State, block: Block, snapshot: &dyn Graph) -> Result<u64> {
        let s = state
            .by_number
            .get(&block.segment)
            .ok_or_else(|| Error::Internal("a block of no segment".into()))?;
        let view = snapshot.edges(s.name.predicate, s.name.direction);
        let segment = alone(&view, s.name.scope())?;
        let described = describe(&segment)?;
        let mut mapped = Vec::new();
        let content = bytemuck::cast_slice::<u32, u8>(segment.neighbours);
        let mut parts = described.parts();
        parts.push(((s.index as usize) * self.page, content));
        let done = s
            .pages_of(block.number)
            .into_iter()
            .flatten()
            .try_for_each(|page| {
                let (from, to) = (page as usize * self.page, (page as usize + 1) * self.page);
                let at = s.addresses.at + from as u64;
                // SAFETY: reserved addresses, of which this page is not mapped.
                unsafe { self.device.map_page(at, self.page)? };
                mapped.push(at);
                let slices: Vec<(usize, &[u8])> = parts
                    .iter()
                    .filter_map(|&(start, part)| {
                        let (a, b) = (start.max(from), (start + part.len()).min(to));
                        (a < b).then(|| (a - from, &part[a - start..b - start]))
                    })
                    .collect();
                // SAFETY: the page is mapped, and the slices lie in it.
                unsafe { self.device.upload_packed(at, &slices) }
            });
        if let Err(e) = done {
            // Copies to the pages before it may be under way; a device that does not finish them is lost.
            let _ = self.device.sync();
            for at in mapped {
                // SAFETY: just mapped, and nobody reads there.
                unsafe { self.device.unmap_page(at, self.page) };
            }
            return Err(e);
        }
        Ok((mapped.len() * self.page) as u64)
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        let state = &mut *locked(&self.state);
        let _ = self.device.failure().is_some() || self.device.sync().is_ok();
        let all: Vec<Block> = state.policy.blocks().collect();
        for block in all {
            self.unmap(state, block);
        }
    }
}

/// A plan that runs over blocks.
pub(crate) struct Running<'p>(&'p Pager);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The segments of each step of a program, which are brought before it runs.
pub(crate) struct Paging<'a> {
    pub pager: &'a Pager,
    pub snapshot: &'a dyn Graph,
    pub steps: Vec<Vec<Arc<PagedSegment>>>,
    pub _running: Running<'a>,
}

impl Paging<'_> {
    /// Brings what a step reads.
    pub fn page_in(&self, step: usize, cancel: &CancelToken) -> Result<Moved> {
        let Some(segments) = self.steps.get(step).filter(|s| !s.is_empty()) else {
            return Ok(Moved::default());
        };
        let after = &self.steps[step + 1..];
        let next = |s: &PagedSegment| {
            let reads = |of: &Vec<Arc<PagedSegment>>| of.iter().any(|o| o.number == s.number);
            after.iter().position(reads)
        };
        self.pager.page_in(segments, &next, self.snapshot, cancel)
    }
}

/// The arrays of a segment as a device gets them, and where they will lie.
pub(crate) struct Described<'a> {
    /// Addresses are missing.
    pub params: params::Segment,
    pub table: &'a [u8],
    pub keys: &'a [u32],
    pub offsets: &'a [u32],
    /// The arrays were made for the device: the store has others.
    pub is_made: bool,
}

impl<'a> Described<'a> {
    fn places(&self) -> [usize; 4] {
        let keys = self.table.len().next_multiple_of(ALIGN);
        let offsets = (keys + size_of_val(self.keys)).next_multiple_of(ALIGN);
        let end = (offsets + size_of_val(self.offsets)).next_multiple_of(ALIGN);
        [0, keys, offsets, end]
    }

    /// Bytes of finder, keys and offsets together.
    pub fn index_bytes(&self) -> usize {
        self.places()[3]
    }

    /// Those arrays with their places.
    pub fn parts(&self) -> Vec<(usize, &'a [u8])> {
        let [table, keys, offsets, _] = self.places();
        vec![
            (table, self.table),
            (keys, bytemuck::cast_slice(self.keys)),
            (offsets, bytemuck::cast_slice(self.offsets)),
        ]
    }

    /// The parameters for arrays that lie there; 0 for an empty one.
    pub fn at(&self, index: u64, neighbours: u64) -> params::Segment {
        let mut p = self.params;
        let [table, keys, offsets, _] = self.places();
        let place = |at: usize, bytes: usize| if bytes == 0 { 0 } else { index + at as u64 };
        p.table = place(table, self.table.len());
        p.keys = place(keys, self.keys.len());
        p.offsets = place(offsets, self.offsets.len());
        p.neighbours = if p.edges == 0 { 0 } else { neighbours };
        p
    }
}
