//! The pinned ring buffer for large uploads. Several threads fill its pieces from the caller's slices; a piece is
//! queued for the device as soon as it is full, and is reused once its copies are done.
//!
//! ```text
//! slices ─ cut ─► thread ─ fill ─► piece ─ queue ─► device
//!              ─► thread ─ fill ─► piece ─ queue ─►          a piece waits for its own copies only, the oldest first
//! ```
//!
//! One thread copies 5 to 10 GB per second, a link transfers 25 to 55. The driver takes half a millisecond to pin a
//! MiB, so pieces are pinned once and kept: in the background when the device is opened, otherwise when an upload needs
//! them.

use crate::backend::Mark;
use crate::device::{CopyLane, Device, PinnedBlock};
use jindou_model::{CancelToken, Charge, Error, Holder, MemoryBudget, Result, sync};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Default for the largest number of threads that fill the ring, enough to saturate a link.
const MOST_THREADS: usize = 8;
/// Default size of a piece in bytes: small enough that the ring stays in the CPU's cache until the device reads it, and
/// large enough that queueing a copy takes a tenth of its time.
const PIECE: usize = 1 << 20;
/// Pieces per thread: one being filled and one being copied.
const PIECES_A_THREAD: usize = 2;
/// Number of pieces of an upload per additional thread.
const WORTH_A_THREAD: usize = 2;
/// Polling interval of a thread that waits for a piece.
const LOOK: Duration = Duration::from_millis(2);

/// The size of a device's ring, and the threads that fill it.
#[derive(Clone, Debug)]
pub struct RingOptions {
    /// Largest number of threads that fill the ring for one upload; at least one.
    pub threads: usize,
    /// Bytes of a piece.
    pub piece: usize,
    /// Budget that the pinned memory is charged to. If it is exhausted, the ring has fewer pieces.
    pub budget: MemoryBudget,
}

impl Default for RingOptions {
    /// Half of the cores, at most eight.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            threads: (cores / 2).clamp(1, MOST_THREADS),
            piece: PIECE,
            budget: MemoryBudget::unlimited(),
        }
    }
}

impl RingOptions {
    /// Largest number of its pieces.
    #[must_use]
    pub fn pieces(&self) -> usize {
        self.threads.max(1) * PIECES_A_THREAD
    }
}

/// A piece whose copies are queued, and the marker after them if one could be set.
struct Queued {
    block: PinnedBlock,
    mark: Option<Mark>,
}

struct RingState {
    idle: Vec<PinnedBlock>,
    /// Oldest first.
    queued: VecDeque<Queued>,
    /// Number of pieces that exist, including those that threads hold.
    made: usize,
    charge: Charge,
}

/// A device's pinned ring.
pub(crate) struct Ring {
    options: RingOptions,
    state: Mutex<RingState>,
    /// Notified when a thread hands back a piece.
    handed_back: Condvar,
}

/// A slice, and the device address that it is copied to.
pub(crate) type Part<'a> = (u64, &'a [u8]);

/// A device address, and slices with their offsets from it.
pub(crate) type Placed<'a> = (u64, Vec<(usize, &'a [u8])>);

/// Divides parts into pieces.
struct Cutter<'a> {
    parts: &'a [Part<'a>],
    /// Bytes of the first part that were handed out already.
    taken: usize,
}

impl<'a> Cutter<'a> {
    /// Replaces `piece` by the next parts, of at most `most` bytes together.
    fn next(&mut self, most: usize, piece: &mut Vec<Part<'a>>) {
        piece.clear();
        let mut left = most;
        while let (1.., Some(&(to, part))) = (left, self.parts.first()) {
            let rest = &part[self.taken..];
            let n = rest.len().min(left);
            if n > 0 {
                piece.push((to + self.taken as u64, &rest[..n]));
            }
            (left, self.taken) = (left - n, self.taken + n);
            if self.taken == part.len() {
                (self.parts, self.taken) = (&self.parts[1..], 0);
            }
        }
    }
}

impl Ring {
    pub fn new(options: RingOptions) -> Self {
        let options = RingOptions {
            threads: options.threads.max(1),
            piece: options.piece.max(256),
            ..options
        };
        Self {
            state: Mutex::new(RingState {
                idle: Vec::new(),
                queued: VecDeque::new(),
                made: 0,
                charge: Charge::new(Holder::Rest, &options.budget),
            }),
            options,
            handed_back: Condvar::new(),
        }
    }

    /// Uploads of at least this many bytes use the ring.
    pub fn least(&self) -> usize {
        self.options.piece * WORTH_A_THREAD
    }

    fn state(&self) -> MutexGuard<'_, RingState> {
        sync::lock(&self.state)
    }

    /// Allocates all missing pieces.
    pub fn prepare(&self, device: &Device) -> Result<()> {
        while let Some(block) = self.make(device)? {
            self.state().idle.push(block);
            self.handed_back.notify_one();
        }
        Ok(())
    }

    /// True if there is a piece, or one may be allocated.
    pub fn is_usable(&self) -> bool {
        self.state().made > 0 || self.options.budget.has_room(self.options.piece as u64)
    }

    /// Allocates a piece; `None` if the ring is complete, or the memory is exhausted.
    fn make(&self, device: &Device) -> Result<Option<PinnedBlock>> {
        let bytes = self.options.piece;
        let mut state = self.state();
        if state.made >= self.options.pieces() {
            return Ok(None);
        }
        let charged = state.charge.add(bytes as u64);
        state.made += usize::from(charged.is_ok());
        drop(state);
        let pinned = charged.and_then(|()| {
            device.pin(bytes).inspect_err(|_| {
                let mut state = self.state();
                state.made -= 1;
                let left = state.charge.bytes().saturating_sub(bytes as u64);
                // Reducing a charge never fails.
                let _ = state.charge.set(left);
            })
        });
        match pinned {
            // A ring with fewer pieces is slower, but works.
            Err(Error::Limit(_)) if self.state().made > 0 => Ok(None),
            pinned => pinned.map(Some),
        }
    }

    /// A piece to fill: an idle one, otherwise a new one, otherwise the one whose copies were queued first, once they
    /// are done.
    fn take(&self, device: &Device) -> Result<PinnedBlock> {
        let mut state = self.state();
        loop {
            if let Some(block) = state.idle.pop() {
                return Ok(block);
            }
            if let Some(oldest) = state.queued.pop_front() {
                drop(state);
                return self.reclaim(device, oldest);
            }
            drop(state);
            if let Some(block) = self.make(device)? {
                return Ok(block);
            }
            // Other threads hold all pieces. They will queue them, or fail and return them.
            state = self.state();
            if state.idle.is_empty() && state.queued.is_empty() {
                state = self
                    .handed_back
                    .wait_timeout(state, LOOK)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
            }
        }
    }

    /// Waits until a piece's copies are done.
    fn reclaim(&self, device: &Device, queued: Queued) -> Result<PinnedBlock> {
        let none = CancelToken::new();
        let waited = match &queued.mark {
            Some(mark) => device.wait_for(mark, &none),
            None => device.wait_for_all(&none),
        };
        if let Err(e) = waited {
            self.hand_back(queued);
            return Err(e);
        }
        if let Some(mark) = queued.mark {
            device.unmark(mark);
        }
        Ok(queued.block)
    }

    fn hand_back(&self, queued: Queued) {
        self.state().queued.push_back(queued);
        self.handed_back.notify_one();
    }

    /// Queues copies of all parts. Returns before the device has them.
    ///
    /// # Safety
    /// Each part's place is live device memory of that length, and no two overlap. In the second queue, no work that is
    /// not known to be done touches it.
    pub unsafe fn upload(&self, device: &Device, parts: &[Part<'_>], lane: CopyLane) -> Result<()> {
        let bytes: usize = parts.iter().map(|p| p.1.len()).sum();
        let cutter = Mutex::new(Cutter { parts, taken: 0 });
        let failed = AtomicBool::new(false);
        let outcome: Mutex<Result<()>> = Mutex::new(Ok(()));
        let fill = || {
            let mut piece = Vec::new();
            while !failed.load(Ordering::Relaxed) {
                sync::lock(&cutter).next(self.options.piece, &mut piece);
                if piece.is_empty() {
                    return;
                }
                // SAFETY: the caller's promise; the cutter gives each byte to one thread.
                if let Err(e) = unsafe { self.fill(device, &piece, lane) } {
                    failed.store(true, Ordering::Relaxed);
                    let mut outcome = sync::lock(&outcome);
                    // The first failure tells more than what followed from it.
                    if outcome.is_ok() {
                        *outcome = Err(e);
                    }
                }
            }
        };
        let worth = bytes / (self.options.piece * WORTH_A_THREAD);
        let threads = worth.clamp(1, self.options.threads);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // If the system cannot start a thread, the others do its work.
                let thread = std::thread::Builder::new().name("gpu-upload".into());
                if thread.spawn_scoped(scope, fill).is_err() {
                    break;
                }
            }
            fill();
        });
        outcome.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies parts, no more than a piece's worth, into a piece, and queues its copies.
    ///
    /// # Safety
    /// As [`Self::upload`].
    unsafe fn fill(&self, device: &Device, parts: &[Part<'_>], lane: CopyLane) -> Result<()> {
        let block = self.take(device)?;
        let mut at = 0;
        let mut queue = || {
            for &(to, part) in parts {
                if at + part.len() > block.bytes {
                    return Err(Error::Internal("more than a piece of the ring".into()));
                }
                // SAFETY: the piece has room for the part, is this thread's alone, and no copy reads it. The caller vouches
                // for the device's memory; the piece is not written to again until the mark below has been waited for.
                unsafe {
                    let from = block.at.add(at);
                    from.copy_from_nonoverlapping(NonNull::from(part).cast(), part.len());
                    device.queue_upload(to, from, part.len(), lane)?;
                }
                at += part.len();
            }
            device.mark_in(lane)
        };
        let (mark, outcome) = match queue() {
            Ok(mark) => (Some(mark), Ok(())),
            // Some of its copies may be on their way.
            Err(e) => (None, Err(e)),
        };
        self.hand_back(Queued { block, mark });
        outcome
    }

    /// Takes all pieces, and the marks of those that were queued, when nothing is copied any more, or never again.
    pub fn take_all(&mut self) -> (Vec<PinnedBlock>, Vec<Mark>) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (mut blocks, mut marks) = (std::mem::take(&mut state.idle), Vec::new());
        for queued in state.queued.drain(..) {
            blocks.push(queued.block);
            marks.extend(queued.mark);
        }
        (blocks, marks)
    }
}
