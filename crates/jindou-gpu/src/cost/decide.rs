//! The decision whether a plan runs on the CPU or on a device, and its explanation as text.

use super::learnt::Correction;
use super::work::SegmentName;
use super::{Shape, milliseconds};
use std::fmt;

/// Factor by which the device must be faster than the CPU to be chosen.
const MARGIN: f64 = 1.3;
/// A side (CPU or device) on which no plan of this shape has run is tried once if it is predicted to be slower by less
/// than this factor.
const TRIAL: f64 = 1.5;
/// Number of future runs assumed for any heavy plan, in addition to the number of its recent runs.
const EXPECTED: f64 = 8.0;

/// The predicted times of a plan on the CPU and on a device, in seconds. Arrays of two are indexed by
/// [`super::learnt::Side`].
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The device's name.
    pub device: String,
    /// Seconds on the CPU with `threads` threads.
    pub cpu: f64,
    /// Number of CPU threads.
    pub threads: usize,
    /// Seconds of waiting until the device is free.
    pub wait: f64,
    /// Seconds for uploading missing segments, minus the time that earlier runs lost because they were missing. So an
    /// upload is made at the latest when its absence has cost as much as it would.
    pub bring: f64,
    /// Bytes of the missing segments.
    pub cold: f64,
    /// Seconds in kernels, launches and waits for counts.
    pub compute: f64,
    /// Seconds for copying rows back, and for decoding them to terms on the CPU.
    pub back: f64,
    /// The missing segments, with the seconds that each takes.
    pub(crate) missing: Vec<(SegmentName, f64)>,
    /// True if the missing segments fit into the device's free memory.
    pub(crate) has_room: bool,
    /// Seconds of each side without correction factors, and without decoding rows to terms.
    pub(crate) plain: [f64; 2],
    /// Corrected seconds of each side for decoding rows to terms and for passing ids to operators on the CPU.
    pub(crate) decode: [f64; 2],
    /// Learned correction factor of `decode`.
    pub(crate) terms: f64,
    /// The uncorrected parts of `decode`: seconds regardless of the number of rows, and seconds per row.
    pub(crate) passed: [f64; 2],
    pub(crate) per_row: [f64; 2],
    /// The planner's estimate of the number of result rows.
    pub(crate) rows: f64,
    /// Learned correction factor of each side.
    pub(crate) corrections: [Correction; 2],
    /// True for a side on which no plan of this shape has run or was tried.
    pub(crate) untried: [bool; 2],
    pub(crate) shape: Shape,
    /// The device's count of queries that waited for it, read before the run to tell whether another one waited during
    /// it; set by the executor.
    pub(crate) waits: u64,
    /// Number of recent runs of the plan, decaying with time.
    pub(crate) uses: f64,
}

/// Reason for a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reason {
    /// The GPU is expected to be faster.
    Faster,
    /// The GPU is not expected to be faster by the factor [`MARGIN`].
    NotFaster,
    /// No plan of this shape has run on the chosen side, and the other side is predicted to be only a little faster.
    Trial,
    /// The chosen side was slower, but long ago or in few runs, and enough time was saved since to afford another try.
    Again,
    /// The GPU would be faster if the plan's segments were in its memory.
    Cold {
        /// Seconds that each run would save.
        saving: f64,
        /// Number of future runs assumed.
        runs: f64,
    },
}

/// Where a plan is executed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// True for the GPU.
    pub gpu: bool,
    /// True to upload the missing segments in the background while the CPU executes the plan.
    pub bring: bool,
    pub(crate) reason: Reason,
}

impl Prediction {
    /// Predicted seconds on the device, including the wait until it is free.
    #[must_use]
    pub fn gpu(&self) -> f64 {
        self.wait + self.bring + self.compute + self.back
    }

    /// Decides where the plan is executed. Terms are decoded on the CPU in both cases, so the margin is not applied to
    /// the time for decoding.
    #[must_use]
    pub fn decision(&self) -> Decision {
        let (gpu, warm) = (self.gpu(), self.gpu() - self.bring);
        let [untried_here, untried_there] = self.untried;
        let [shown_here, shown_there] = self.decode;
        let with_margin = |seconds: f64| MARGIN * (seconds - shown_there) + shown_there;
        let (alone, alone_there) = (self.cpu - shown_here, warm - shown_there);
        let decided = |gpu, reason| Decision {
            gpu,
            bring: false,
            reason,
        };
        if with_margin(gpu) < self.cpu {
            if untried_here && alone < TRIAL * (gpu - shown_there) {
                return decided(false, Reason::Trial);
            }
            return decided(true, Reason::Faster);
        }
        if with_margin(warm) < self.cpu {
            let (saving, runs) = (self.cpu - warm, EXPECTED + self.uses);
            let all: f64 = self.missing.iter().map(|m| m.1).sum();
            return Decision {
                gpu: false,
                bring: self.has_room && saving * runs > all,
                reason: Reason::Cold { saving, runs },
            };
        }
        let is_near = alone_there < TRIAL * alone && warm < TRIAL * self.cpu;
        if untried_there && self.missing.is_empty() && is_near {
            return decided(true, Reason::Trial);
        }
        decided(false, Reason::NotFaster)
    }

    /// True if the plan is executed on the device.
    #[must_use]
    pub fn is_worth_it(&self) -> bool {
        self.decision().gpu
    }

    /// Seconds that this run loses because segments are missing on the device; 0 if the CPU is chosen for another
    /// reason, or if the segments are uploaded now.
    pub(crate) fn lost(&self) -> f64 {
        match self.decision() {
            Decision {
                bring: false,
                reason: Reason::Cold { saving, .. },
                ..
            } => saving,
            _ => 0.0,
        }
    }
}

/// Writes a correction factor and its origin; nothing if there is none.
fn corrected(f: &mut fmt::Formatter<'_>, c: Correction) -> fmt::Result {
    match c.runs {
        0 if c.factor == 1.0 => Ok(()),
        0 => write!(
            f,
            "; {:.2} times the estimate, by plans of other shapes",
            c.factor
        ),
        1 => write!(f, "; {:.2} times the estimate, by 1 run", c.factor),
        n => write!(f, "; {:.2} times the estimate, by {n} runs", c.factor),
    }
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.threads == 1 { "" } else { "s" };
        write!(
            f,
            "cpu: about {} on {} thread{plural}",
            milliseconds(self.cpu),
            self.threads
        )?;
        let [here, there] = self.corrections;
        corrected(f, here)?;
        write!(
            f,
            "\ngpu: about {} on {} ({} in line, {} to bring {:.1} MB, {} computing, {} for rows back)",
            milliseconds(self.gpu()),
            self.device,
            milliseconds(self.wait),
            milliseconds(self.bring),
            self.cold / 1e6,
            milliseconds(self.compute),
            milliseconds(self.back),
        )?;
        corrected(f, there)?;
        let decision = self.decision();
        f.write_str("\nchosen: ")?;
        match decision.reason {
            Reason::Faster => write!(f, "the GPU, {:.1} times as fast", self.cpu / self.gpu()),
            Reason::NotFaster => write!(
                f,
                "the CPU, since the GPU would have to be {MARGIN} times as fast"
            ),
            Reason::Trial if decision.gpu => {
                f.write_str("the GPU, to measure once how long such a plan takes on it")
            }
            Reason::Trial => {
                f.write_str("the CPU, to measure once how long such a plan takes on it")
            }
            // No prediction has this reason; `DeviceModel::decide` sets it when a plan is executed.
            Reason::Again => write!(
                f,
                "the {}, to measure again how long such a plan takes on it",
                if decision.gpu { "GPU" } else { "CPU" }
            ),
            Reason::Cold { saving, runs } => {
                write!(
                    f,
                    "the CPU, until the segments are on the GPU, which saves {} a run; ",
                    milliseconds(saving)
                )?;
                if decision.bring {
                    write!(
                        f,
                        "they are being uploaded in the background, since {runs:.0} runs are expected"
                    )
                } else if self.has_room {
                    write!(f, "{runs:.0} expected runs are too few to bring them")
                } else {
                    f.write_str("others would have to leave for them")
                }
            }
        }
    }
}
