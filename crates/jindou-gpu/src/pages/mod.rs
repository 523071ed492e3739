//! Paging of segments that do not fit in the device's memory together: each has its own address range, of which only
//! some pages are backed by memory (ATC '18 §4.1, §4.2).
//!
//! ```text
//! addresses of a segment   | finder, keys, offsets | neighbours |      reserved once, so that kernels see contiguous arrays
//! blocks                   | 0 | 1 | 2 | 3         | 0 | 1 | 2 | 3 |   parts of both, uploaded and evicted together
//! pages                    mapped before a step that reads the segment, unmapped when others need the memory
//! ```
//!
//! Blocks are uploaded in a queue of their own, concurrently with kernels; a kernel waits only for the blocks of its
//! own step (pipelining). While a step computes, blocks of later steps are uploaded, as far as that evicts no block
//! that an earlier step needs.
//!
//! Paging is used only for plans whose segments do not fit as a whole. Before each step, the missing blocks of its
//! segments are uploaded, and [`policy`] decides which other blocks are evicted. Blocks stay on the device between
//! steps and plans. Three cases are left to the CPU: a step whose own segments do not fit, segments with a patch, and
//! predicate variables.

mod described;
mod policy;
mod segment;
mod transfers;

pub(crate) use described::Described;
pub(crate) use policy::{Block, Policy};
pub(crate) use segment::PagedSegment;
use segment::{Addresses, SegmentVersion};
pub use transfers::Transfers;

use crate::backend::{CopyLane, Mark};
use crate::device::Device;
use crate::resident::{alone, describe, locked};
use jindou_graph::Graph;
use jindou_graph::segment::GraphScope;
use jindou_model::{CancelToken, Direction, Error, PredicateId, Resource, Result};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Share of the device's free memory for blocks; the rest is for tables.
const SHARE: f64 = 0.75;

/// The parts of ATC '18 §4 that are enabled, for measuring the effect of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagingOptions {
    /// True to upload blocks of later steps while one computes.
    pub prefetch: bool,
    /// True if a block has a part of a segment's index and the same part of its neighbours; otherwise blocks have one
    /// or the other.
    pub pairwise: bool,
    /// True to evict blocks that the plan needs latest; otherwise the least recently used ones.
    pub look_ahead: bool,
}

impl Default for PagingOptions {
    fn default() -> Self {
        Self {
            prefetch: true,
            pairwise: true,
            look_ahead: true,
        }
    }
}

/// Queued copies of blocks for which no kernel has been made to wait yet.
struct Copies {
    /// Numbers of the segments that these blocks belong to.
    segments: Vec<u32>,
    /// Marker after these copies.
    mark: Mark,
}

struct PagingState {
    policy: Policy,
    /// Queued copies of blocks, in the order of the queue.
    copies: Vec<Copies>,
    segments: FxHashMap<SegmentVersion, Arc<PagedSegment>>,
    by_number: FxHashMap<u32, Arc<PagedSegment>>,
    next: u32,
}

/// The address of a page, and the slices to copy to it with their offsets in it.
type PagePlace<'g> = (u64, Vec<(usize, &'g [u8])>);

/// Bytes of blocks that were uploaded (`come`) and evicted (`gone`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    pub come: u64,
    pub gone: u64,
    /// Number of blocks uploaded.
    pub blocks: u64,
}

/// The blocks of all paged segments on a device.
pub(crate) struct Pager {
    device: Arc<Device>,
    page: usize,
    pub options: PagingOptions,
    state: Mutex<PagingState>,
    /// Number of running plans that use blocks. Memory is not released meanwhile.
    running: AtomicU64,
}

impl Pager {
    /// Creates a pager; `None` if the device cannot map pages.
    pub fn new(device: &Arc<Device>) -> Option<Self> {
        Some(Self {
            page: device.page()?,
            device: Arc::clone(device),
            options: PagingOptions::default(),
            state: Mutex::new(PagingState {
                policy: Policy::new(0),
                copies: Vec::new(),
                segments: FxHashMap::default(),
                by_number: FxHashMap::default(),
                next: 0,
            }),
            running: AtomicU64::new(0),
        })
    }

    /// Registers a plan. If no other plan is running, also determines how much memory blocks may use from now on.
    pub fn begin(&self) -> Result<RunningPlan<'_>> {
        let mut state = locked(&self.state);
        if self.running.fetch_add(1, Ordering::Relaxed) == 0 {
            // The guard decrements the count if the next calls fail.
            let running = RunningPlan(self);
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
        Ok(RunningPlan(self))
    }

    /// Bytes of memory that blocks may use but do not use yet.
    pub fn unmapped(&self) -> u64 {
        let state = locked(&self.state);
        (state.policy.capacity() - state.policy.pages()) * self.page as u64
    }

    /// Releases all memory of blocks, unless plans are running.
    pub fn clear(&self) {
        let mut state = locked(&self.state);
        if self.running.load(Ordering::Relaxed) == 0 {
            // If waiting for the device fails, the next query will report it.
            let _ = self.empty(&mut state);
        }
    }

    fn empty(&self, state: &mut PagingState) -> Result<()> {
        let all: Vec<Block> = state.policy.blocks().collect();
        if !all.is_empty() {
            self.device.wait_for_all(&CancelToken::new())?;
            for block in all {
                self.unmap(state, block);
            }
        }
        for copies in state.copies.drain(..) {
            self.device.unmark(copies.mark);
        }
        state.segments.clear();
        state.by_number.clear();
        Ok(())
    }

    /// The paged form of a segment, whose addresses are reserved on first use. `Unsupported` if it has a patch or must
    /// be merged from several graphs.
    pub fn segment(
        &self,
        snapshot: &dyn Graph,
        predicate: PredicateId,
        direction: Direction,
        scope: GraphScope<'_>,
    ) -> Result<Arc<PagedSegment>> {
        let view = snapshot.edges(predicate, direction);
        if view.patch().is_some() {
            return Err(Error::Unsupported(
                "updated segments larger than the GPU's memory".into(),
            ));
        }
        let segment = alone(&view, scope)?;
        let name = SegmentVersion {
            epoch: snapshot.identity().epoch,
            predicate,
            direction,
            generation: snapshot.generation_of(predicate),
            union: scope == GraphScope::Union,
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
            pairwise: self.options.pairwise,
        });
        state.next += 1;
        state.by_number.insert(paged.number, Arc::clone(&paged));
        state.segments.insert(name, Arc::clone(&paged));
        Ok(paged)
    }

    /// True if all blocks of these segments, which one step reads, fit at the same time.
    pub fn fit(&self, segments: &[Arc<PagedSegment>]) -> bool {
        let pages: u64 = segments.iter().map(|s| s.index + s.neighbours).sum();
        pages <= locked(&self.state).policy.capacity()
    }

    /// Uploads the missing blocks of these segments, and orders work that is queued later after the copies. `next`
    /// returns the number of steps until this plan reads a segment again; `None` if it does not.
    ///
    /// # Errors
    /// `Limit` if the segments do not fit; errors of the device, and of `cancel` while waiting.
    pub fn page_in(
        &self,
        segments: &[Arc<PagedSegment>],
        next: &dyn Fn(&PagedSegment) -> Option<usize>,
        snapshot: &dyn Graph,
        cancel: &CancelToken,
    ) -> Result<Moved> {
        let mut state = locked(&self.state);
        let wanted = blocks_of(segments);
        let PagingState {
            policy, by_number, ..
        } = &mut *state;
        let ahead = self.options.look_ahead;
        let next = |number: u32| {
            by_number
                .get(&number)
                .filter(|_| ahead)
                .and_then(|s| next(s))
        };
        let Some(change) = policy.want(&wanted, &next) else {
            return Err(Error::limit(
                Resource::Device,
                "a step's segments larger than the GPU's memory",
            ));
        };
        let mut moved = Moved::default();
        let mut waited = Ok(());
        if !change.gone.is_empty() {
            // Kernels that read the evicted blocks may still be running. Even a cancelled query waits for them before
            // the blocks are unmapped.
            let all = || self.device.wait_for_all(&CancelToken::new());
            waited = self
                .device
                .wait_for_all(cancel)
                .or_else(|e| all().and(Err(e)));
            for &block in &change.gone {
                moved.gone += self.unmap(&mut state, block);
            }
        }
        waited.inspect_err(|_| forget(&mut state, &change.come))?;
        moved.come = self.bring_all(&mut state, &change.come, snapshot)?;
        moved.blocks = change.come.len() as u64;
        self.wait_for_copies(&mut state, segments)?;
        Ok(moved)
    }

    /// Uploads blocks of segments that a later step reads, concurrently with kernels, as far as no step needs the
    /// memory. Returns true if all of them are on the device afterwards.
    ///
    /// # Errors
    /// Errors of the device, except that a lack of memory only ends the upload.
    fn bring_early(
        &self,
        segments: &[Arc<PagedSegment>],
        next: &dyn Fn(&PagedSegment) -> Option<usize>,
        snapshot: &dyn Graph,
    ) -> Result<(Moved, bool)> {
        let mut state = locked(&self.state);
        let PagingState {
            policy, by_number, ..
        } = &mut *state;
        let next = |number: u32| by_number.get(&number).and_then(|s| next(s));
        let (change, all) = policy.early(&blocks_of(segments), &next);
        let mut moved = Moved::default();
        // Kernels no longer read the evicted blocks, but some may have been uploaded early for another plan, and their
        // copies may not be done.
        let is_on_its_way =
            |c: &Copies| change.gone.iter().any(|b| c.segments.contains(&b.segment));
        if state.copies.iter().any(is_on_its_way) {
            self.device.wait_for_all(&CancelToken::new())?;
        }
        for &block in &change.gone {
            moved.gone += self.unmap(&mut state, block);
        }
        match self.bring_all(&mut state, &change.come, snapshot) {
            Ok(bytes) => (moved.come, moved.blocks) = (bytes, change.come.len() as u64),
            Err(Error::Limit(_)) => return Ok((moved, false)),
            Err(e) => return Err(e),
        }
        Ok((moved, all))
    }

    /// Maps and uploads blocks; returns their bytes. If one cannot be mapped, those before it are uploaded and the
    /// error is returned; if copying fails, no block is kept.
    fn bring_all(
        &self,
        state: &mut PagingState,
        blocks: &[Block],
        snapshot: &dyn Graph,
    ) -> Result<u64> {
        let (mut bytes, mut there, mut places) = (0, 0, Vec::new());
        let mapped = blocks.iter().try_for_each(|&block| {
            bytes += self.map(state, block, snapshot, &mut places)?;
            there += 1;
            Ok(())
        });
        let (came, missing) = blocks.split_at(there);
        forget(state, missing);
        if !came.is_empty() {
            // SAFETY: the pages are mapped, the slices lie in them, and no kernel has used them since they were mapped.
            let queued = unsafe { self.device.upload_all(&places, CopyLane::Aside) };
            match queued.and_then(|()| self.device.mark_in(CopyLane::Aside)) {
                Ok(mark) => {
                    let mut segments: Vec<u32> = came.iter().map(|b| b.segment).collect();
                    segments.dedup();
                    state.copies.push(Copies { segments, mark });
                }
                Err(e) => {
                    // Copies may be in progress, without a marker to wait for. If the device does not finish them, it
                    // counts as lost.
                    let _ = self.device.wait_for_all(&CancelToken::new());
                    for &block in came {
                        self.unmap(state, block);
                    }
                    return Err(e);
                }
            }
        }
        mapped.map(|()| bytes)
    }

    /// Orders work that is queued from now on after the copies of these segments' blocks.
    fn wait_for_copies(
        &self,
        state: &mut PagingState,
        segments: &[Arc<PagedSegment>],
    ) -> Result<()> {
        let is_of = |c: &Copies| segments.iter().any(|s| c.segments.contains(&s.number));
        let Some(last) = state.copies.iter().rposition(is_of) else {
            return Ok(());
        };
        // Copies complete in order, so the last relevant marker is enough.
        self.device.after(&state.copies[last].mark)?;
        for copies in state.copies.drain(..=last) {
            self.device.unmark(copies.mark);
        }
        Ok(())
    }

    /// Records that all kernels queued so far, which may read blocks, are done.
    pub fn done(&self) {
        locked(&self.state).policy.done();
    }

    /// Unmaps a block; returns its bytes. The policy may have dropped the block already.
    fn unmap(&self, state: &mut PagingState, block: Block) -> u64 {
        state.policy.forget(block);
        let Some(s) = state.by_number.get(&block.segment) else {
            return 0;
        };
        let mut bytes = 0;
        for page in s.pages_of(block.number).into_iter().flatten() {
            let at = s.addresses.at + page * self.page as u64;
            // SAFETY: mapped with this length when the block was uploaded; all work that reads it was waited for, or
            // the device failed.
            unsafe { self.device.unmap_page(at, self.page) };
            bytes += self.page as u64;
        }
        bytes
    }

    /// Maps the pages of a block and adds them, with the slices to copy to them, to `places`; returns their bytes. On
    /// an error, nothing is mapped or added.
    fn map<'g>(
        &self,
        state: &PagingState,
        block: Block,
        snapshot: &'g dyn Graph,
        places: &mut Vec<PagePlace<'g>>,
    ) -> Result<u64> {
        let s = state
            .by_number
            .get(&block.segment)
            .ok_or_else(|| Error::Internal("a block of no segment".into()))?;
        let view = snapshot.edges(s.name.predicate, s.name.direction);
        let segment = alone(&view, s.name.scope())?;
        let described = describe(&segment)?;
        let content = bytemuck::cast_slice::<u32, u8>(segment.neighbours);
        let mut parts = described.parts();
        parts.push(((s.index as usize) * self.page, content));
        let before = places.len();
        let done = s
            .pages_of(block.number)
            .into_iter()
            .flatten()
            .try_for_each(|page| {
                let (from, to) = (page as usize * self.page, (page as usize + 1) * self.page);
                let at = s.addresses.at + from as u64;
                // SAFETY: reserved addresses, and this page of them is not mapped.
                unsafe { self.device.map_page(at, self.page)? };
                let slices = parts
                    .iter()
                    .filter_map(|&(start, part)| {
                        let (a, b) = (start.max(from), (start + part.len()).min(to));
                        (a < b).then(|| (a - from, &part[a - start..b - start]))
                    })
                    .collect();
                places.push((at, slices));
                Ok(())
            });
        if let Err(e) = done {
            for (at, _) in places.drain(before..) {
                // SAFETY: just mapped, and nothing was copied to it.
                unsafe { self.device.unmap_page(at, self.page) };
            }
            return Err(e);
        }
        Ok(((places.len() - before) * self.page) as u64)
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        let state = &mut *locked(&self.state);
        let none = CancelToken::new();
        let _ = self.device.failure().is_some() || self.device.wait_for_all(&none).is_ok();
        for copies in state.copies.drain(..) {
            self.device.unmark(copies.mark);
        }
        let all: Vec<Block> = state.policy.blocks().collect();
        for block in all {
            self.unmap(state, block);
        }
    }
}

/// All blocks of these segments, each with its number of pages.
fn blocks_of(segments: &[Arc<PagedSegment>]) -> Vec<(Block, u64)> {
    let of = |s: &Arc<PagedSegment>| {
        let s = Arc::clone(s);
        (0..s.blocks() as u32).map(move |number| {
            let block = Block {
                segment: s.number,
                number,
            };
            (block, s.page_count(number))
        })
    };
    segments.iter().flat_map(of).collect()
}

/// Tells the policy that blocks could not be uploaded.
fn forget(state: &mut PagingState, blocks: &[Block]) {
    for &block in blocks {
        state.policy.forget(block);
    }
}

/// Guard of a running plan that uses blocks.
pub(crate) struct RunningPlan<'p>(&'p Pager);

impl Drop for RunningPlan<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The paged segments that each step of a program reads.
pub(crate) struct Paging<'a> {
    pub pager: &'a Pager,
    pub snapshot: &'a dyn Graph,
    pub steps: Vec<Vec<Arc<PagedSegment>>>,
    pub _running: RunningPlan<'a>,
}

impl Paging<'_> {
    /// Number of steps that follow `step` before one that reads the segment; `None` if no such step follows.
    fn next(&self, step: usize, of: &PagedSegment) -> Option<usize> {
        let reads = |s: &Vec<Arc<PagedSegment>>| s.iter().any(|o| o.number == of.number);
        self.steps.get(step + 1..)?.iter().position(reads)
    }

    /// Uploads the missing blocks that a step reads.
    pub fn page_in(&self, step: usize, cancel: &CancelToken) -> Result<Moved> {
        let Some(segments) = self.steps.get(step).filter(|s| !s.is_empty()) else {
            return Ok(Moved::default());
        };
        let next = |s: &PagedSegment| self.next(step, s);
        self.pager.page_in(segments, &next, self.snapshot, cancel)
    }

    /// Uploads blocks that the steps after this one read, while its kernels run.
    pub fn ahead(&self, step: usize) -> Result<Moved> {
        let mut moved = Moved::default();
        if !self.pager.options.prefetch {
            return Ok(moved);
        }
        let after = self.steps.get(step + 1..).unwrap_or_default();
        for segments in after.iter().filter(|s| !s.is_empty()) {
            // The current step will run again if there are more strips, so its own blocks count as needed next.
            let here = |s: &PagedSegment| self.steps[step].iter().any(|o| o.number == s.number);
            let next = |s: &PagedSegment| match here(s) {
                true => Some(0),
                false => self.next(step, s),
            };
            let (came, all) = self.pager.bring_early(segments, &next, self.snapshot)?;
            moved.come += came.come;
            moved.gone += came.gone;
            moved.blocks += came.blocks;
            if !all {
                break;
            }
        }
        Ok(moved)
    }
}
