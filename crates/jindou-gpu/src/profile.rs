//! The cost of a plan on the device, step by step.

use crate::backend::Kernel;

/// One step of a plan on the device.
#[derive(Clone, Debug, Default)]
pub struct GpuStep {
    /// Description of the step's work.
    pub name: String,
    /// Number of the plan's step of which it is a part; `None` for work on the result.
    pub plan_step: Option<usize>,
    /// Rows received.
    pub rows_in: u64,
    /// Rows made.
    pub rows_out: u64,
    /// The kernels of the step.
    pub kernels: Vec<KernelUse>,
}

/// All launches of one kernel in one step.
#[derive(Clone, Debug)]
pub struct KernelUse {
    /// The kernel.
    pub kernel: Kernel,
    /// Number of launches.
    pub launches: u64,
    /// Seconds on the device.
    pub seconds: f64,
    /// Bytes that it must read: every input once, as its comment says.
    pub read: f64,
    /// Bytes that it must write: every output once.
    pub written: f64,
}

impl KernelUse {
    /// Bytes that it must move.
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

    /// Bytes that it must move.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.kernels.iter().map(KernelUse::bytes).sum()
    }
}

/// A whole plan. Times are measured only on request; rows always.
#[derive(Clone, Debug, Default)]
pub struct GpuProfile {
    /// The device.
    pub device: String,
    /// The steps in order; filters of a step are steps of their own here.
    pub steps: Vec<GpuStep>,
    /// Number of strips into which tables were cut, less one for each step: 0 if everything fitted at once.
    pub cuts: u64,
    /// Seconds from the first kernel to the last result, measured on the host.
    pub seconds: f64,
    /// The part of these seconds in which others had the device, or the rows' reader was busy.
    pub away_seconds: f64,
    /// Seconds for uploading segments.
    pub bring_seconds: f64,
    /// Bytes of segments' blocks that were uploaded and removed during the run, if the segments do not fit whole.
    pub paged_in: u64,
    /// See [`Self::paged_in`].
    pub paged_out: u64,
    /// The most device memory that tables took at any time.
    pub table_bytes: u64,
    /// Device memory of the segments that the plan reads.
    pub segment_bytes: u64,
}

impl GpuProfile {
    /// Lines for `--profile`; with `bandwidth` in bytes per second, each step's time relative to its byte floor.
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
