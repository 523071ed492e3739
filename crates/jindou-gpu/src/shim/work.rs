//! Work for the shim, done at once or as late as a device may do it.

use crate::backend::Kernel;
use std::collections::VecDeque;
use std::ptr::NonNull;

/// A piece of work, in the order of the queue.
pub(super) enum Work {
    Upload {
        to: u64,
        from: NonNull<u8>,
        bytes: usize,
    },
    Download {
        to: NonNull<u8>,
        from: u64,
        bytes: usize,
    },
    Zero {
        at: u64,
        bytes: usize,
    },
    Copy {
        to: u64,
        from: u64,
        bytes: usize,
    },
    Launch {
        kernel: Kernel,
        grid: u32,
        /// Kernels read their parameters as aligned structs.
        params: Vec<u64>,
    },
    Free {
        at: u64,
        bytes: usize,
    },
}

// SAFETY: the pointers are for who does the work, one at a time.
unsafe impl Send for Work {}

/// Work that waits for somebody who must know that it is done.
#[derive(Default)]
pub(super) struct Delayed {
    waiting: VecDeque<Work>,
    /// Pieces that were ever queued, and that were taken.
    queued: u64,
    taken: u64,
    /// Questions whether a moment has come.
    pub asked: u64,
}

impl Delayed {
    pub fn push(&mut self, work: Work) {
        self.waiting.push_back(work);
        self.queued += 1;
    }

    /// The moment after all work so far.
    pub fn now(&self) -> u64 {
        self.queued
    }

    /// The next piece that must be done before this moment.
    pub fn next_before(&mut self, moment: u64) -> Option<Work> {
        if self.taken >= moment {
            return None;
        }
        let work = self.waiting.pop_front()?;
        self.taken += 1;
        Some(work)
    }
}
