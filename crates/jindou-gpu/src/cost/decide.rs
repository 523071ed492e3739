//! The decision about one plan, and its words.

use super::learnt::Correction;
use super::work::SegmentName;
use super::{Shape, milliseconds};
use std::fmt;

/// Factor by which the device must be faster.
const MARGIN: f64 = 1.3;
/// Factor within which a side that never ran such a plan is tried once, although the other is expected to be faster.
const TRIAL: f64 = 1.5;
/// Further runs that are expected of any heavy plan; those that asked for it recently come on top.
const EXPECTED: f64 = 8.0;

/// The two times of a plan.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The device.
    pub device: String,
    /// Seconds on the CPU, with this many threads.
    pub cpu: f64,
    /// The threads of the CPU.
    pub threads: usize,
    /// Seconds of waiting for the device.
    pub wait: f64,
    /// Seconds for transferring missing segments, less the time lost without them so far.
    pub bring: f64,
    /// Bytes of the missing segments.
    pub cold: f64,
    /// Seconds in kernels, launches and waits for counts.
    pub compute: f64,
    /// Seconds for rows that leave the device, and for making terms of them.
    pub back: f64,
    /// The missing segments, with the seconds that each takes.
    pub(crate) missing: Vec<(SegmentName, f64)>,
    /// True if the missing segments fit in the device's memory alongside those that are there.
    pub(crate) has_room: bool,
    /// Seconds of each side without any correction, and without making terms of rows.
    pub(crate) plain: [f64; 2],
    /// Seconds of each side for making terms of rows, and for handing ids to operators.
    pub(crate) decode: [f64; 2],
    /// Factor that runs have shown for that.
    pub(crate) terms: f64,
    /// The part of it, uncorrected, which does not come with rows, and what comes with each row.
    pub(crate) passed: [f64; 2],
    pub(crate) per_row: [f64; 2],
    /// Rows as the planner estimates them.
    pub(crate) rows: f64,
    /// Factors that runs have shown for each side.
    pub(crate) corrections: [Correction; 2],
    /// True for a side that has not run such a plan.
    pub(crate) untried: [bool; 2],
    pub(crate) shape: Shape,
    /// The number of waits for the device before; set by the executor.
    pub(crate) waits: u64,
    /// Recent uses of the plan.
    pub(crate) uses: f64,
}

/// Reason for the place of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reason {
    /// The GPU is expected to be faster.
    Faster,
    /// The GPU is not expected to be faster by the margin.
    NotFaster,
    /// This side has not run such a plan, and the other is expected to be little faster.
    Trial,
    /// This side was slower, but long ago or in few runs, and the time for another one was saved.
    Again,
    /// The GPU would be faster if its segments were there.
    Cold {
        /// Seconds saved by each run.
        saving: f64,
        /// Runs that are expected.
        runs: f64,
    },
}

/// Where a plan runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// True for the GPU.
    pub gpu: bool,
    /// True if the missing segments are brought while the CPU answers.
    pub bring: bool,
    pub(crate) reason: Reason,
}

impl Prediction {
    /// Seconds on the device, from now on.
    #[must_use]
    pub fn gpu(&self) -> f64 {
        self.wait + self.bring + self.compute + self.back
    }

    /// Where the plan runs. Terms are made on the CPU in any case, so no margin is asked for their time.
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

    /// True if the plan goes to the device.
    #[must_use]
    pub fn is_worth_it(&self) -> bool {
        self.decision().gpu
    }

    /// Seconds that the plan would have saved if its segments had been present; 0 if they are not the reason, or come
    /// now.
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

/// Words about a correction.
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
            // A prediction does not say so: that is decided when a plan runs.
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
                        "they are brought meanwhile, since {runs:.0} runs are expected"
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
