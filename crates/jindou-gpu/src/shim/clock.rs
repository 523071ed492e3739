//! The time that one query at a time would take on a card, from its calls, as they were counted, and the time of each, as it
//! was measured.
//!
//! Numbers of launches, waits, bytes and candidates are counts of the program that runs. Times are a model: the time of
//! each is a figure of a card, what the host does in between takes none, and neither a memory's latencies beyond a
//! constant nor registers, caches and empty blocks show.

use super::KernelCounts;
use crate::backend::Kernel;

/// A call of the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HostCall {
    /// A kernel was queued.
    Kernel(Kernel, KernelCounts),
    /// This many bytes were cleared or copied inside of the device.
    Moved(usize),
    /// This many bytes were copied over the link.
    Link(usize),
    /// A number or a few were copied back, of which the first is part of the next wait.
    Numbers,
    /// The host waited for all work so far.
    Waited,
}

/// Figures of a card.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Seconds that the host takes for one more launch, fill or copy.
    pub launch: f64,
    /// Seconds for copying a number back and waiting for it.
    pub sync: f64,
    /// Bytes per second in order.
    pub stream: f64,
    /// Bytes per second over the link to the host.
    pub link: f64,
    /// Time of kernels that filter over that of copying the bytes that they move.
    pub filtering: f64,
    /// The same of kernels that measure lists or make rows of them.
    pub expanding: f64,
    /// Seconds for each candidate of an intersection.
    pub candidate: f64,
    /// Seconds that a kernel with look-ups takes however few rows there are.
    pub latency: f64,
}

/// Bytes of copies to the host that are numbers.
const NUMBERS: usize = 4096;

impl HostCall {
    /// A copy to the host.
    pub(super) fn back(bytes: usize) -> Self {
        if bytes > NUMBERS {
            Self::Link(bytes)
        } else {
            Self::Numbers
        }
    }
}

impl Figures {
    /// Figures of an H200, measured on 26 November 2026: launches and waits of its calibration; kernels over their bytes as in
    /// `cost`; candidates of L1 and L7 over LUBM-2560 (191 µs for 10.5 million, 100 for 5.2), times what four rows a thread
    /// took of eight (821 of 991 µs). Latencies are those of kernels with few rows, less what a kernel without any took.
    pub const H200: Self = Self {
        launch: 3.12e-6,
        sync: 8.68e-6,
        stream: 4.09e12,
        link: 55e9,
        filtering: 1.6,
        expanding: 2.7,
        candidate: 19.0e-12 * 821.0 / 991.0,
        latency: 2.5e-6,
    };

    /// Seconds of a kernel beyond those of its launch.
    #[must_use]
    pub fn kernel(&self, kernel: Kernel, counts: &KernelCounts) -> f64 {
        let copied = |bytes: u64| bytes as f64 / self.stream;
        match kernel {
            Kernel::Intersect => {
                // What is read of lists is part of what a candidate takes.
                let ordered = copied(counts.streamed + counts.written);
                let walked = counts.candidates as f64 * self.candidate;
                self.latency + self.expanding * ordered + walked
            }
            Kernel::Measure
            | Kernel::MeasureMany
            | Kernel::MeasureCut
            | Kernel::MeasureAny
            | Kernel::Expand
            | Kernel::ExpandWithin
            | Kernel::ExpandAny => self.latency + self.expanding * copied(counts.total()),
            Kernel::StartIntervals | Kernel::StartRuns | Kernel::StartBits | Kernel::Checksum => {
                self.filtering * copied(counts.total())
            }
            _ => self.latency + self.filtering * copied(counts.total()),
        }
    }

    /// Seconds of the host for these calls: the device works on what was queued before meanwhile.
    #[must_use]
    pub fn seconds(&self, calls: &[HostCall]) -> f64 {
        let (mut host, mut device, mut numbers) = (0.0f64, 0.0f64, 0);
        for call in calls {
            let work = match call {
                HostCall::Kernel(kernel, counts) => self.kernel(*kernel, counts),
                HostCall::Moved(bytes) => *bytes as f64 / self.stream,
                HostCall::Link(bytes) => *bytes as f64 / self.link,
                HostCall::Numbers if numbers > 0 => 0.0,
                HostCall::Numbers => {
                    numbers += 1;
                    continue;
                }
                HostCall::Waited => {
                    host = host.max(device) + self.sync;
                    numbers = 0;
                    continue;
                }
            };
            host += self.launch;
            device = device.max(host) + work;
        }
        host
    }
}
