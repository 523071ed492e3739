//! Queued work of the shim, which is executed at once, or as late as a GPU might execute it.

use crate::backend::{CopyLane, Kernel};
use std::collections::VecDeque;
use std::ptr::NonNull;

/// An entry of a queue.
pub(super) enum DeviceWork {
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
        /// The parameter struct as words, so that it is aligned.
        params: Vec<u64>,
    },
    Free {
        at: u64,
        bytes: usize,
    },
    /// The work after this entry waits for a marker of the other queue.
    After {
        moment: u64,
    },
}

// SAFETY: only one thread at a time uses the pointers.
unsafe impl Send for DeviceWork {}

/// The bit of a marker that says that it belongs to the second queue. The other bits are a position in the queue.
const ASIDE: u64 = 1 << 63;

/// The queue that a marker belongs to.
pub(super) fn lane_of(moment: u64) -> CopyLane {
    if moment & ASIDE == 0 {
        CopyLane::Ordered
    } else {
        CopyLane::Aside
    }
}

#[derive(Default)]
struct WorkQueue {
    /// Entries that are yet to be executed, each with the simulated time at which it was queued.
    waiting: VecDeque<(DeviceWork, f64)>,
    /// Number of entries queued so far, and number of those executed.
    queued: u64,
    taken: u64,
}

/// Work that is delayed until the host waits for it.
#[derive(Default)]
pub(super) struct Delayed {
    queues: [WorkQueue; 2],
    /// Number of times that the host asked if a marker was reached.
    pub asked: u64,
    /// Number of times that work was ordered after a marker.
    pub ordered: u64,
}

impl Delayed {
    pub fn push(&mut self, lane: CopyLane, work: DeviceWork, now: f64) {
        let queue = &mut self.queues[lane as usize];
        queue.waiting.push_back((work, now));
        queue.queued += 1;
    }

    /// The marker after everything that was queued so far in a queue.
    pub fn now(&self, lane: CopyLane) -> u64 {
        let at = self.queues[lane as usize].queued;
        match lane {
            CopyLane::Ordered => at,
            CopyLane::Aside => at | ASIDE,
        }
    }

    /// Takes the next entry before this marker from the marker's queue; `None` if there is none.
    pub fn next_before(&mut self, moment: u64) -> Option<(DeviceWork, f64)> {
        let queue = &mut self.queues[lane_of(moment) as usize];
        if queue.taken >= moment & !ASIDE {
            return None;
        }
        let work = queue.waiting.pop_front()?;
        queue.taken += 1;
        Some(work)
    }

    /// True if some work before a marker is not done.
    pub fn is_open(&self, moment: u64) -> bool {
        self.queues[lane_of(moment) as usize].taken < moment & !ASIDE
    }

    /// Takes the next entry of any queue.
    pub fn next(&mut self) -> Option<DeviceWork> {
        let [ordered, aside] = &mut self.queues;
        let next = aside
            .waiting
            .pop_front()
            .or_else(|| ordered.waiting.pop_front());
        next.map(|w| w.0)
    }
}

/// Speeds of a simulated device, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speeds {
    /// Bytes per second over the link between host and device.
    pub link: f64,
    /// Bytes per second that kernels read and write.
    pub memory: f64,
}

/// Seconds that any launch or copy takes, however few bytes it moves.
const START: f64 = 3e-6;

/// Times of a simulated device, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// Seconds in which copies to the device were in progress.
    pub copying: f64,
    /// Seconds in which kernels ran.
    pub computing: f64,
    /// Seconds in which both a copy and a kernel were in progress.
    pub both: f64,
    /// Seconds from the start of the first work to the end of the last.
    pub all: f64,
}

/// The simulated time of a device. An entry starts when the one before it in its queue has ended and the host has
/// queued it.
#[derive(Default)]
pub(super) struct DeviceClock {
    /// The host's simulated time, which advances when the host waits.
    pub host: f64,
    /// The time at which the last executed entry of each queue ends.
    free: [f64; 2],
    /// The times at which the entries of the second queue ended, by position.
    aside: Vec<f64>,
    copies: Vec<(f64, f64)>,
    kernels: Vec<(f64, f64)>,
}

impl DeviceClock {
    fn take(&mut self, lane: CopyLane, queued: f64, seconds: f64) -> (f64, f64) {
        let free = &mut self.free[lane as usize];
        let from = free.max(queued);
        *free = from + seconds;
        (from, *free)
    }

    pub fn copied(&mut self, lane: CopyLane, queued: f64, bytes: usize, speeds: Speeds) {
        let span = self.take(lane, queued, START + bytes as f64 / speeds.link);
        self.copies.push(span);
        if lane == CopyLane::Aside {
            self.aside.push(span.1);
        }
    }

    pub fn ran(&mut self, queued: f64, bytes: u64, speeds: Speeds) {
        let span = self.take(
            CopyLane::Ordered,
            queued,
            START + bytes as f64 / speeds.memory,
        );
        self.kernels.push(span);
    }

    /// Delays the first queue until this marker of the second queue.
    pub fn after(&mut self, moment: u64) {
        let at = self.at(moment);
        let free = &mut self.free[CopyLane::Ordered as usize];
        *free = free.max(at);
    }

    fn at(&self, moment: u64) -> f64 {
        match lane_of(moment) {
            CopyLane::Ordered => self.free[CopyLane::Ordered as usize],
            CopyLane::Aside => match (moment & !ASIDE) as usize {
                0 => 0.0,
                n => self.aside.get(n - 1).copied().unwrap_or(0.0),
            },
        }
    }

    /// Records that the host waited for a marker.
    pub fn waited(&mut self, moment: u64) {
        self.host = self.host.max(self.at(moment));
    }

    /// The times since the last call of this function.
    pub fn times(&mut self) -> Times {
        let (copies, kernels) = (joined(&mut self.copies), joined(&mut self.kernels));
        let sum = |spans: &[(f64, f64)]| spans.iter().map(|s| s.1 - s.0).sum();
        let mut both = 0.0;
        for &(a, b) in &copies {
            for &(c, d) in &kernels {
                both += (b.min(d) - a.max(c)).max(0.0);
            }
        }
        let ends = || copies.iter().chain(&kernels);
        let first = ends().map(|s| s.0).fold(f64::INFINITY, f64::min);
        let last = ends().map(|s| s.1).fold(0.0, f64::max);
        Times {
            copying: sum(&copies),
            computing: sum(&kernels),
            both,
            all: (last - first).max(0.0),
        }
    }
}

/// Merges overlapping and adjacent spans of time.
fn joined(spans: &mut Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let mut all = std::mem::take(spans);
    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut out: Vec<(f64, f64)> = Vec::new();
    for (from, to) in all {
        match out.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => out.push((from, to)),
        }
    }
    out
}
