//! The decision about one plan, and its description.

use super::learnt::Correction;
use super::work::SegmentName;
use super::{Shape, milliseconds};
use std::fmt;

/// Factor by which the device must be faster.
const MARGIN: f64 = 1.3;
/// A side that never executed such a plan is tried once if it is expected to be slower by less than this factor.
const TRIAL: f64 = 1.5;
/// Number of further runs expected of any heavy plan, in addition to the recent ones.
const EXPECTED: f64 = 8.0;

/// The predicted times of a plan on both sides.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The device.
    pub device: String,
    /// Seconds on the CPU, with this many threads.
    pub cpu: f64,
    /// The threads of the CPU.
    pub threads: usize,
    /// Seconds of waiting until the device is free.
    pub wait: f64,
    /// Seconds for transferring missing segments, minus the time lost without them so far.
    pub bring: f64,
    /// Bytes of the missing segments.
    pub cold: f64,
    /// Seconds in kernels, launches and waits for counts.
    pub compute: f64,
    /// Seconds for copying rows back and decoding them to terms.
    pub back: f64,
    /// The missing segments, with the seconds that each takes.
    pub(crate) missing: Vec<(SegmentName, f64)>,
    /// True if the missing segments fit into the device's free memory.
    pub(crate) has_room: bool,
    /// Seconds of each side without corrections, and without decoding rows to terms.
    pub(crate) plain: [f64; 2],
    /// Seconds of each side for decoding rows to terms, and for passing ids to operators.
    pub(crate) decode: [f64; 2],
    /// Learned correction factor of `decode`.
    pub(crate) terms: f64,
    /// The uncorrected parts of `decode`: the part that does not depend on the rows, and the seconds per row.
    pub(crate) passed: [f64; 2],
    pub(crate) per_row: [f64; 2],
    /// The planner's estimate of the rows.
    pub(crate) rows: f64,
    /// Learned correction factor of each side.
    pub(crate) corrections: [Correction; 2],
    /// True for a side that never executed such a plan.
    pub(crate) untried: [bool; 2],
    pub(crate) shape: Shape,
    /// The device's count of waits before the run; set by the executor.
    pub(crate) waits: u64,
    /// Recent uses of the plan.
    pub(crate) uses: f64,
}

/// Reason for a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reason {
    /// The GPU is expected to be faster.
    Faster,
    /// The GPU is not expected to be faster by the margin.
    NotFaster,
    /// This side never executed such a plan, and the other one is expected to be only a little faster.
    Trial,
    /// This side was slower, but long ago or in few runs, and enough time was saved for another try.
    Again,
    /// The GPU would be faster if the plan's segments were in its memory.
    Cold {
        /// Seconds that each run would save.
        saving: f64,
        /// Number of expected runs.
        runs: f64,
    },
}

/// Where a plan is executed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// True for the GPU.
    pub gpu: bool,
    /// True if the missing segments are uploaded while the CPU executes the plan.
    pub bring: bool,
    pub(crate) reason: Reason,
}

impl Prediction {
    /// Predicted seconds on the device, starting now.
    #[must_use]
    pub fn gpu(&self) -> f64 {
        self.wait + self.bring + self.compute + self.back
    }

    /// Decides where the plan is executed. Terms are decoded on the CPU in either case, so the margin does not apply to
    /// their time.
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

    /// Seconds that the plan loses because its segments are missing; 0 if that is not the reason, or if they are
    /// uploaded now.
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

/// Describes a correction.
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
                f.write_str("the GPU, to measure once what such a plan takes there")
            }
            Reason::Trial => f.write_str("the CPU, to measure once what such a plan takes here"),
            // Never part of a prediction, since this is decided when a plan is executed.
            Reason::Again => f.write_str("the other one, to measure again what such a plan takes"),
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
