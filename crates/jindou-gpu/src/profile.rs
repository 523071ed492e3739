//! The cost of a plan on the device, step by step.

use crate::backend::Kernel;

/// One step of a plan on the device.
#[derive(Clone, Debug, Default)]
pub struct GpuStep {
    /// The work of the step, in words.
    pub name: String,
    /// Number of the plan's step that it is part of; `None` for what is done with the result.
    pub plan_step: Option<usize>,
    /// Rows it got.
    pub rows_in: u64,
    /// Rows it made.
    pub rows_out: u64,
    /// The kernels of the step.
    pub kernels: Vec<KernelUse>,
}

/// All launches of one kernel in one step.
#[derive(Clone, Debug)]
pub struct KernelUse {
    /// The kernel.
    pub kernel: Kernel,
    /// How often.
    pub launches: u64,
    /// Seconds on the device.
    pub seconds: f64,
    /// Bytes it must read: every input once, as its comment says.
    pub read: f64,
    /// Bytes it must write: every output once.
    pub written: f64,
}

impl KernelUse {
    /// Bytes it must move.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.read + self.written
    }
}

impl GpuStep {
    /// Seconds on the device.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.kernels.iter().map(|k| k.seconds).sum()
    }

    /// Bytes it must move.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.kernels.iter().map(KernelUse::bytes).sum()
    }
}

/// A whole plan. Times are measured only if asked for; rows always.
#[derive(Clone, Debug, Default)]
pub struct GpuProfile {
    /// The device.
    pub device: String,
    /// In order; filters of a step are steps of their own here.
    pub steps: Vec<GpuStep>,
    /// Strips that tables were cut into, less one for each step: 0 when everything fitted at once.
    pub cuts: u64,
    /// Seconds from the first kernel to the last result, measured on the host.
    pub seconds: f64,
    /// Seconds of these in which others had the device, or the rows' reader took them.
    pub away_seconds: f64,
    /// Seconds that segments took to bring.
    pub bring_seconds: f64,
    /// Bytes of segments' blocks that came during the run, and that went, where the segments do not fit whole.
    pub paged_in: u64,
    /// See [`Self::paged_in`].
    pub paged_out: u64,
    /// The most device memory that tables took at a time.
    pub table_bytes: u64,
    /// Device memory of the segments that the plan reads.
    pub segment_bytes: u64,
}

impl GpuProfile {
    /// Lines for `--profile`; `bandwidth` in bytes a second gives each step's time over its byte floor.
    #[must_use]
    pub fn table(&self, bandwidth: Option<f64>) -> String {
        use std::fmt::Write;
        let mut out = format!("{} ({} cuts)\n", self.device, self.cuts);
        for s in &self.steps {
            let _ = writeln!(
                out,
                "  {:<34} {:>12} -> {:>12}",
                s.name, s.rows_in, s.rows_out
            );
            for k in &s.kernels {
                let _ = write!(
                    out,
                    "      {:<20} {:>4} x {:>9.1} us {:>9.2} MB",
                    k.kernel.symbol(),
                    k.launches,
                    k.seconds * 1e6,
                    k.bytes() / 1e6
                );
                if let Some(b) = bandwidth {
                    let floor = k.bytes() / b;
                    let _ = write!(out, " {:>6.2} x floor", k.seconds / floor.max(1e-12));
                }
                out.push('\n');
            }
        }
        out
    }
}
