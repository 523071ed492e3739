//! Launches of kernels; records their times and bytes by step.

use crate::backend::{Kernel, Mark};
use crate::device::Device;
use crate::profile::{GpuProfile, GpuStep, KernelUse};
use jindou_model::{Error, Resource, Result};
use std::sync::Arc;

/// A launch. Its time is read later, when the host waits for the device anyway.
struct Timed {
    step: usize,
    kernel: Kernel,
    marks: Option<(Mark, Mark)>,
    read: f64,
    written: f64,
}

/// The launches of one run.
pub struct LaunchQueue {
    /// The device.
    pub device: Arc<Device>,
    /// True to measure the time of each kernel.
    timing: bool,
    step: usize,
    launches: Vec<Timed>,
    /// The profile of each step.
    pub steps: Vec<GpuStep>,
}

impl LaunchQueue {
    /// A queue for device steps with these names, each with the number of the plan's step that it belongs to.
    #[must_use]
    pub fn new(device: Arc<Device>, timing: bool, names: Vec<(String, Option<usize>)>) -> Self {
        let steps = names
            .into_iter()
            .map(|(name, plan_step)| GpuStep {
                name,
                plan_step,
                ..GpuStep::default()
            })
            .collect();
        Self {
            device,
            timing,
            step: 0,
            launches: Vec::new(),
            steps,
        }
    }

    /// Counts launches from now on as this step's.
    pub fn at_step(&mut self, step: usize) {
        self.step = step;
    }

    /// The step whose launches are being counted.
    #[must_use]
    pub fn step(&self) -> usize {
        self.step
    }

    /// Launches a kernel that handles `units` rows or units of an expansion, and records the bytes that it must read
    /// and write.
    ///
    /// # Safety
    /// As [`Backend::launch`].
    pub unsafe fn launch<P: bytemuck::NoUninit>(
        &mut self,
        kernel: Kernel,
        units: u64,
        params: &P,
        read: f64,
        written: f64,
    ) -> Result<()> {
        let grid = kernel
            .grid(units)
            .ok_or_else(|| Error::limit(Resource::Device, "a table too long for one kernel"))?;
        if grid == 0 {
            return Ok(());
        }
        let before = if self.timing {
            Some(self.device.mark()?)
        } else {
            None
        };
        // SAFETY: guaranteed by the caller.
        let launched = unsafe { self.device.launch(kernel, grid, bytemuck::bytes_of(params)) };
        let marks = match (before, launched) {
            (None, launched) => launched.map(|()| None),
            (Some(a), launched) => match launched.and_then(|()| self.device.mark()) {
                Ok(b) => Ok(Some((a, b))),
                Err(e) => {
                    self.device.unmark(a);
                    Err(e)
                }
            },
        }?;
        self.launches.push(Timed {
            step: self.step,
            kernel,
            marks,
            read,
            written,
        });
        Ok(())
    }

    /// Adds bytes to the last launch, for kernels whose traffic is known only after they ran.
    pub fn add_bytes(&mut self, read: f64, written: f64) {
        if let Some(launch) = self.last() {
            self.add_bytes_to(launch, read, written);
        }
    }

    /// The number of the last launch; `None` before the first one.
    #[must_use]
    pub fn last(&self) -> Option<usize> {
        self.launches.len().checked_sub(1)
    }

    /// Adds bytes to the launch with this number.
    pub fn add_bytes_to(&mut self, launch: usize, read: f64, written: f64) {
        if let Some(l) = self.launches.get_mut(launch) {
            l.read += read;
            l.written += written;
        }
    }

    /// Adds to the rows that the current step received and produced.
    pub fn rows(&mut self, rows_in: u64, rows_out: u64) {
        self.rows_of(self.step, rows_in, rows_out);
    }

    /// Adds to the rows that a step received and produced.
    pub fn rows_of(&mut self, step: usize, rows_in: u64, rows_out: u64) {
        if let Some(s) = self.steps.get_mut(step) {
            s.rows_in += rows_in;
            s.rows_out += rows_out;
        }
    }

    /// The profile. All launches must be done.
    pub fn finish(mut self) -> Result<GpuProfile> {
        for l in &self.launches {
            let seconds = match &l.marks {
                Some((a, b)) => self.device.between(a, b)?,
                None => 0.0,
            };
            let Some(step) = self.steps.get_mut(l.step) else {
                continue;
            };
            match step.kernels.iter_mut().find(|k| k.kernel == l.kernel) {
                Some(k) => {
                    k.launches += 1;
                    k.seconds += seconds;
                    k.read += l.read;
                    k.written += l.written;
                }
                None => step.kernels.push(KernelUse {
                    kernel: l.kernel,
                    launches: 1,
                    seconds,
                    read: l.read,
                    written: l.written,
                }),
            }
        }
        Ok(GpuProfile {
            device: self.device.name(),
            steps: std::mem::take(&mut self.steps),
            ..GpuProfile::default()
        })
    }
}

impl Drop for LaunchQueue {
    fn drop(&mut self) {
        for (a, b) in self.launches.drain(..).filter_map(|l| l.marks) {
            self.device.unmark(a);
            self.device.unmark(b);
        }
    }
}
