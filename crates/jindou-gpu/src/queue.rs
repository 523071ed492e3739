//! Launching kernels and keeping their times and bytes by step.

use crate::backend::{Backend, Kernel, Mark};
use crate::params::TILE;
use crate::profile::{GpuProfile, GpuStep, KernelUse};
use jindou_model::{Error, Result};
use std::sync::Arc;

/// One launch whose time is read later, when the queue is idle anyway.
struct Timed {
    step: usize,
    kernel: Kernel,
    marks: Option<(Mark, Mark)>,
    read: f64,
    written: f64,
}

/// See the module. One plan's queue.
pub struct Queue {
    /// The device.
    pub backend: Arc<dyn Backend>,
    timing: bool,
    step: usize,
    launches: Vec<Timed>,
    /// By step.
    pub steps: Vec<GpuStep>,
}

impl Queue {
    /// A queue for steps of these names, each part of a plan's step of that number.
    #[must_use]
    pub fn new(
        backend: Arc<dyn Backend>,
        timing: bool,
        names: Vec<(String, Option<usize>)>,
    ) -> Self {
        let steps = names
            .into_iter()
            .map(|(name, plan_step)| GpuStep {
                name,
                plan_step,
                ..GpuStep::default()
            })
            .collect();
        Self {
            backend,
            timing,
            step: 0,
            launches: Vec::new(),
            steps,
        }
    }

    /// Launches from here on belong to this step.
    pub fn at_step(&mut self, step: usize) {
        self.step = step;
    }

    /// Starts a kernel that handles `units` in tiles and must read and write so many bytes.
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
        let grid = u32::try_from(units.div_ceil(TILE))
            .ok()
            .filter(|&g| g <= i32::MAX as u32)
            .ok_or_else(|| Error::Limit("a table too long for one kernel".into()))?;
        if grid == 0 {
            return Ok(());
        }
        let before = if self.timing {
            Some(self.backend.mark()?)
        } else {
            None
        };
        // SAFETY: the caller's promise.
        unsafe {
            self.backend
                .launch(kernel, grid, bytemuck::bytes_of(params))?
        };
        let marks = match before {
            Some(a) => Some((a, self.backend.mark()?)),
            None => None,
        };
        self.launches.push(Timed {
            step: self.step,
            kernel,
            marks,
            read,
            written,
        });
        Ok(())
    }

    /// Adds to the last launch's bytes what only its result told.
    pub fn add_bytes(&mut self, read: f64, written: f64) {
        if let Some(l) = self.launches.last_mut() {
            l.read += read;
            l.written += written;
        }
    }

    /// Counts rows that went through the current step.
    pub fn rows(&mut self, rows_in: u64, rows_out: u64) {
        if let Some(s) = self.steps.get_mut(self.step) {
            s.rows_in += rows_in;
            s.rows_out += rows_out;
        }
    }

    /// The profile so far. Waits for all launches.
    pub fn finish(mut self) -> Result<GpuProfile> {
        for l in self.launches {
            let seconds = match l.marks {
                Some((a, b)) => self.backend.between(a, b)?,
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
            device: self.backend.name(),
            steps: self.steps,
            ..GpuProfile::default()
        })
    }
}
