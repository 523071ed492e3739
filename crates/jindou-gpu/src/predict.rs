//! Decision whether a plan runs on the device, learning from runs, and uploading segments in the background.

use crate::cost::{
    Calibration, Decision, DeviceModel, DeviceNow, Prediction, Shape, Side, WorkEstimate,
};
use crate::execute::GpuExecutor;
use jindou_graph::Graph;
use jindou_graph::segment::GraphScope;
use jindou_model::{CancelToken, Result};
use jindou_plan::Plan;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time limit for measuring a device's speeds.
const BUDGET: Duration = Duration::from_millis(150);
/// Environment variable that names the file in which speeds and learned ratios are stored.
const KEPT_IN: &str = "JINDOU_GPU_CALIBRATION";

/// Starts a thread for work that no query waits for; returns false if the system cannot start one.
fn in_background(name: &str, work: impl FnOnce() + Send + 'static) -> bool {
    let thread = std::thread::Builder::new().name(name.into());
    thread.spawn(work).is_ok()
}

impl GpuExecutor {
    /// Predicts the times of a plan on the device and on the CPU with this many threads. `None` until the device's
    /// speeds are known.
    #[must_use]
    pub fn predict(&self, plan: &Plan, snapshot: &dyn Graph, threads: usize) -> Option<Prediction> {
        let model = self.model.get()?;
        let work = WorkEstimate::of_plan(plan, snapshot);
        let now = DeviceNow {
            name: self.device().name(),
            in_line: self.queries(),
            free: &|| self.device().memory().map_or(0.0, |m| m.0 as f64),
            epoch: snapshot.identity().epoch,
            is_there: &|(p, d)| self.cache().has(snapshot, p, d),
        };
        let mut p = model.predict(&work, Shape::of_plan(plan, snapshot), threads, now);
        p.waits = self.turns.waits();
        Some(p)
    }

    /// Decides where a plan runs. Starts to upload missing segments in the background if the expected runs make that
    /// worthwhile.
    pub fn decide(self: &Arc<Self>, p: &Prediction, snapshot: &dyn Graph) -> Decision {
        let Some(model) = self.model.get() else {
            return p.decision();
        };
        let decision = model.decide(p, snapshot.identity().epoch);
        if decision.bring {
            self.bring_in_background(p, snapshot);
        }
        decision
    }

    /// Uploads the missing segments of a prediction one after the other. Does nothing if an earlier such upload is in
    /// progress.
    fn bring_in_background(self: &Arc<Self>, p: &Prediction, snapshot: &dyn Graph) {
        let Some(snapshot) = snapshot.shared() else {
            return;
        };
        if self.bringing.swap(true, Ordering::AcqRel) {
            return;
        }
        let gpu = Arc::clone(self);
        let names: Vec<_> = p.missing.iter().map(|m| m.0).collect();
        let bring = move || {
            for (predicate, direction) in names {
                let (device, scope) = (gpu.device(), GraphScope::Default);
                // If a segment does not fit or the device fails, the plan that needs the segment will report it.
                let done = gpu
                    .cache()
                    .get(device, &*snapshot, predicate, direction, scope);
                if done.is_err() {
                    break;
                }
            }
            gpu.bringing.store(false, Ordering::Release);
        };
        if !in_background("gpu-segments", bring) {
            self.bringing.store(false, Ordering::Release);
        }
    }

    /// Records a run of a plan, on the device if `there`, otherwise on the CPU: the time from its start to its last
    /// row, and its number of rows.
    pub fn ran(self: &Arc<Self>, p: &Prediction, there: bool, elapsed: Duration, rows: u64) {
        let Some(model) = self.model.get() else {
            return;
        };
        let side = if there { Side::Gpu } else { Side::Cpu };
        let is_shared = self.turns.waits() != p.waits;
        model.ran(p, side, elapsed.as_secs_f64(), rows, is_shared);
        if model.is_due() {
            let gpu = Arc::clone(self);
            in_background("gpu-runs", move || {
                if let Some(model) = gpu.model.get() {
                    model.save();
                }
            });
        }
    }

    /// Reads the device's speeds from the file that `JINDOU_GPU_CALIBRATION` names, or measures them; does nothing if
    /// they are known.
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
                if let Some(file) = &file {
                    // An error is ignored: the speeds are measured again next time.
                    let _ = speeds.save(file, &identity);
                }
                speeds
            }
        };
        let _ = self.model.set(match file {
            Some(file) => DeviceModel::kept_in(speeds, file, identity),
            None => DeviceModel::new(speeds),
        });
        Ok(())
    }

    /// True if the device's speeds are known.
    #[must_use]
    pub fn is_calibrated(&self) -> bool {
        self.model.get().is_some()
    }

    /// As [`Self::calibrate`], on another thread. Plans are not predicted until it is done. Errors are ignored; if the
    /// device is lost, the next plan notices it.
    pub fn calibrate_in_background(self: &Arc<Self>) {
        if self.model.get().is_some() || self.measuring.swap(true, Ordering::AcqRel) {
            return;
        }
        let gpu = Arc::clone(self);
        let done = move || {
            let _ = gpu.calibrate(&CancelToken::new());
            gpu.measuring.store(false, Ordering::Release);
        };
        if !in_background("gpu-speeds", done) {
            self.measuring.store(false, Ordering::Release);
        }
    }
}
