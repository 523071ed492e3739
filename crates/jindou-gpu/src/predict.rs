//! Predictions by a device's model, and what it learns from runs.

use crate::cost::{Calibration, DeviceModel, Prediction, WorkEstimate};
use crate::execute::{GpuExecutor, GpuResult};
use jindou_graph::Graph;
use jindou_model::{CancelToken, Result};
use jindou_plan::{Plan, Step};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Longest time for measuring a device.
const BUDGET: Duration = Duration::from_millis(150);
/// The environment variable that names the file in which speeds are stored.
const KEPT_IN: &str = "JINDOU_GPU_CALIBRATION";

impl GpuExecutor {
    /// The times of a plan here and on the CPU with this many threads; `None` until the device's speeds are known.
    #[must_use]
    pub fn predict(&self, plan: &Plan, snapshot: &dyn Graph, threads: usize) -> Option<Prediction> {
        let model = self.model.get()?;
        let work = WorkEstimate::of_plan(plan, snapshot);
        let is_there = |(p, d)| self.cache().has(snapshot, p, d);
        let epoch = snapshot.identity().epoch;
        let name = self.device().name();
        Some(model.predict(name, &work, threads, self.queries(), epoch, &is_there))
    }

    /// Records that a plan ran on the CPU because of this prediction.
    pub fn refused(&self, prediction: &Prediction, snapshot: &dyn Graph) {
        if let Some(model) = self.model.get() {
            model.refused(prediction, snapshot.identity().epoch);
        }
    }

    /// Records the duration of a run that began at a plan's start, and whose rows left the device in this many columns.
    pub(crate) fn learn(
        &self,
        steps: &[Step],
        result: &GpuResult,
        columns: usize,
        snapshot: &dyn Graph,
    ) {
        let Some(model) = self.model.get() else {
            return;
        };
        let p = &result.profile;
        // A run that was cut did the work of its steps in parts, with more launches and waits than their numbers show;
        // and uploading blocks takes time.
        if p.cuts > 0 || p.paged_in > 0 {
            return;
        }
        let rows: Vec<u64> = p
            .by_plan_step(steps.len())
            .iter()
            .map(|s| s.rows_out)
            .collect();
        if let Some(mut work) = WorkEstimate::of_steps(steps, &rows, snapshot) {
            work.leaving = 4.0 * columns as f64 * result.rows as f64;
            model.ran(&work, (p.seconds - p.away_seconds).max(0.0));
        }
    }

    /// Measures the device's speeds unless they are known, or reads them from the file that `JINDOU_GPU_CALIBRATION`
    /// names.
    ///
    /// # Errors
    /// Errors of the device, and of `cancel`.
    pub fn calibrate(&self, cancel: &CancelToken) -> Result<()> {
        if self.model.get().is_some() {
            return Ok(());
        }
        let file = std::env::var_os(KEPT_IN).map(PathBuf::from);
        let identity = self.device().identity();
        let kept = file.as_ref().and_then(|f| Calibration::load(f, &identity));
        let speeds = match kept {
            Some(speeds) => speeds,
            None => {
                let _turn = self.turns.begin(cancel)?;
                let speeds = Calibration::measure(self.device(), BUDGET, cancel)?;
                if let Some(file) = file {
                    // If they cannot be stored, they are measured again next time.
                    let _ = speeds.save(&file, &identity);
                }
                speeds
            }
        };
        let _ = self.model.set(DeviceModel::new(speeds));
        Ok(())
    }

    /// [`Self::calibrate`] without waiting: until it is done, nothing is predicted. If the device fails meanwhile, the
    /// next plan checks it again and finds out if it is lost.
    pub fn calibrate_in_background(self: &Arc<Self>) {
        if self.model.get().is_some() || self.measuring.swap(true, Ordering::AcqRel) {
            return;
        }
        let gpu = Arc::clone(self);
        let done = move || {
            let _ = gpu.calibrate(&CancelToken::new());
            gpu.measuring.store(false, Ordering::Release);
        };
        let thread = std::thread::Builder::new().name("gpu-speeds".into());
        if thread.spawn(done).is_err() {
            self.measuring.store(false, Ordering::Release);
        }
    }
}
