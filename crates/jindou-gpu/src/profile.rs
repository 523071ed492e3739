//! The measured cost of a plan on the device, by step.

use crate::backend::Kernel;

/// One device step of a plan.
#[derive(Clone, Debug, Default)]
pub struct GpuStep {
    /// Description of the step's work.
    pub name: String,
    /// Number of the plan's step that it belongs to; `None` for work on the result.
    pub plan_step: Option<usize>,
    /// Rows received.
    pub rows_in: u64,
    /// Rows produced.
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
    /// Bytes that the kernel must read: every input once, as the comment of the kernel states.
    pub read: f64,
    /// Bytes that the kernel must write: every output once.
    pub written: f64,
}

impl KernelUse {
    /// Bytes that the kernels must read and write.
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

    /// Bytes that the kernels must read and write.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.kernels.iter().map(KernelUse::bytes).sum()
    }
}

/// The profile of a plan. Kernels' times are measured only on request, rows always.
#[derive(Clone, Debug, Default)]
pub struct GpuProfile {
    /// Name of the device.
    pub device: String,
    /// The device steps in order. The conditions of a plan's step are device steps of their own.
    pub steps: Vec<GpuStep>,
    /// Number of strips into which tables were divided, minus one for each step; 0 if no table was divided.
    pub cuts: u64,
    /// Seconds from the first kernel to the last result, measured on the host.
    pub seconds: f64,
    /// The part of `seconds` in which other queries used the device, or in which the consumer of the rows was busy.
    pub away_seconds: f64,
    /// Seconds for uploading segments before the first kernel.
    pub bring_seconds: f64,
    /// Bytes of segments' blocks that were uploaded during the run; 0 unless segments are paged.
    pub paged_in: u64,
    /// Bytes of blocks that were evicted during the run.
    pub paged_out: u64,
    /// Largest device memory in bytes that tables took at any time.
    pub table_bytes: u64,
    /// Device memory in bytes of the segments that the plan reads.
    pub segment_bytes: u64,
}

impl GpuProfile {
    /// The profile as text, for `--profile`. With `bandwidth` in bytes per second, also shows how many times as long
    /// each step took as moving its bytes takes.
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
