//! The ring of pinned pieces for large uploads. Several threads copy the caller's slices into pieces; a full piece is
//! queued for the device at once, and is reused after its copies are done.
//!
//! ```text
//! slices ─ cut ─► thread ─ fill ─► piece ─ queue ─► device
//!              ─► thread ─ fill ─► piece ─ queue ─►          a piece waits for its own copies only, the oldest first
//! ```
//!
//! One thread copies 5 to 10 GB per second, while a link transfers 25 to 55, so several threads fill the ring. Pinning
//! takes half a millisecond per MiB, so pieces are pinned once and kept: in the background when the device is opened,
//! or else when an upload first needs them.

use crate::backend::{CopyLane, Mark};
use crate::device::{Device, PinnedBlock};
use jindou_model::{CancelToken, Charge, Error, Holder, MemoryBudget, Result, sync};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Default for the largest number of threads that fill the ring: enough to saturate a link.
const MOST_THREADS: usize = 8;
/// Default size of a piece in bytes: small enough that the device reads it while it is in the CPU's cache, and large
/// enough that queueing a copy takes only a tenth of the copy's time.
const PIECE: usize = 1 << 20;
/// Pieces per thread: one is filled while the other is copied.
const PIECES_A_THREAD: usize = 2;
/// An upload uses one more thread for this many pieces.
const WORTH_A_THREAD: usize = 2;
/// Interval at which a thread that waits for a piece checks again.
const LOOK: Duration = Duration::from_millis(2);

/// The size of a device's ring, and the threads that fill it.
#[derive(Clone, Debug)]
pub struct RingOptions {
    /// Largest number of threads that fill the ring for one upload; at least one.
    pub threads: usize,
    /// Size of a piece in bytes.
    pub piece: usize,
    /// The budget to which the pinned memory is charged. If it is exhausted, the ring has fewer pieces.
    pub budget: MemoryBudget,
}

impl Default for RingOptions {
    /// As many threads as half of the cores, at most eight.
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
    /// Largest number of pieces.
    #[must_use]
    pub fn pieces(&self) -> usize {
        self.threads.max(1) * PIECES_A_THREAD
    }
}

/// A piece whose copies are queued, and the marker after them; `None` if setting it failed.
struct Queued {
    block: PinnedBlock,
    mark: Option<Mark>,
}

struct RingState {
    idle: Vec<PinnedBlock>,
    /// Pieces whose copies are queued, the oldest first.
    queued: VecDeque<Queued>,
    /// Number of pieces that exist, including those that threads are filling.
    made: usize,
    charge: Charge,
}

/// A device's pinned ring.
pub(crate) struct Ring {
    options: RingOptions,
    state: Mutex<RingState>,
    /// Notified when a thread returns a piece.
    handed_back: Condvar,
}

/// A slice, and the device address that it is copied to.
pub(crate) type Part<'a> = (u64, &'a [u8]);

/// A device address, and slices with their offsets from it in bytes.
pub(crate) type Placed<'a> = (u64, Vec<(usize, &'a [u8])>);

/// Divides slices into pieces.
struct Cutter<'a> {
    parts: &'a [Part<'a>],
    /// Number of bytes of the first slice that earlier pieces contain.
    taken: usize,
}

impl<'a> Cutter<'a> {
    /// Fills `piece` with the next slices, or parts of slices, of at most `most` bytes in total.
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

    /// The smallest size in bytes of an upload that uses the ring.
    pub fn least(&self) -> usize {
        self.options.piece * WORTH_A_THREAD
    }

    fn state(&self) -> MutexGuard<'_, RingState> {
        sync::lock(&self.state)
    }

    /// Pins all pieces that do not exist yet.
    pub fn prepare(&self, device: &Device) -> Result<()> {
        while let Some(block) = self.make(device)? {
            self.state().idle.push(block);
            self.handed_back.notify_one();
        }
        Ok(())
    }

    /// True if there is a piece, or the budget allows one.
    pub fn is_usable(&self) -> bool {
        self.state().made > 0 || self.options.budget.has_room(self.options.piece as u64)
    }

    /// Pins a new piece; `None` if the ring is complete or, while it has at least one piece, no memory is left.
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
                // Reducing a charge cannot fail.
                let _ = state.charge.set(left);
            })
        });
        match pinned {
            // A ring with fewer pieces is slower, but it works.
            Err(Error::Limit(_)) if self.state().made > 0 => Ok(None),
            pinned => pinned.map(Some),
        }
    }

    /// A piece to fill: an idle one, otherwise a new one, otherwise the one whose copies were queued first, after these
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
            // Other threads are filling all pieces. They will queue them, or fail and return them.
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

    /// Waits until the copies of a piece are done.
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

    /// Copies all slices to pinned memory and queues their copies to the device. Returns before the device has them.
    ///
    /// # Safety
    /// The destination of each slice is live device memory of its length, and no two overlap. In [`CopyLane::Aside`],
    /// no work touches that memory unless it is known to be done.
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
                // SAFETY: guaranteed by the caller; the cutter gives each byte to one thread only.
                if let Err(e) = unsafe { self.fill(device, &piece, lane) } {
                    failed.store(true, Ordering::Relaxed);
                    let mut outcome = sync::lock(&outcome);
                    // The first error is kept, since later ones are its consequences.
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
                // If the system cannot start a thread, those that run do its work.
                let thread = std::thread::Builder::new().name("gpu-upload".into());
                if thread.spawn_scoped(scope, fill).is_err() {
                    break;
                }
            }
            fill();
        });
        outcome.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies slices, of at most the size of a piece, into a piece, and queues its copies to the device.
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
                // SAFETY: the piece has room for the slice, only this thread has it, and no copy reads it. The caller
                // promises that the device memory is valid; the piece is not written to again until the mark below was
                // waited for.
                unsafe {
                    let from = block.at.add(at);
                    from.copy_from_nonoverlapping(NonNull::from(part).cast(), part.len());
                    device.upload(to, from, part.len(), lane)?;
                }
                at += part.len();
            }
            device.mark_in(lane)
        };
        let (mark, outcome) = match queue() {
            Ok(mark) => (Some(mark), Ok(())),
            // Some of the piece's copies may be in progress without a marker after them, so its next use waits for the
            // device.
            Err(e) => (None, Err(e)),
        };
        self.hand_back(Queued { block, mark });
        outcome
    }

    /// Takes all pieces, and the markers of those that were queued. All copies must be done, or the device be lost.
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
