//! Cost model that decides whether a plan runs on a device: predicted times there and on the CPU.
//!
//! ```text
//! T_gpu = wait + upload + (Σ steps [ordered / stream + Σ 32 · sectors / random(segment) + launches · t_l + syncs · t_s + host]
//!         + copied-back rows / download) · factor_gpu(shape) + decoding
//! T_cpu = (the planner's nanoseconds for the same steps / speed-up(threads) + overhead per step) · factor_cpu(shape) + decoding
//! ```
//!
//! A plan is executed on the device if `1.3 · T_gpu < T_cpu`. Operators that the CPU executes in both cases are not
//! part of the formulas, but they are part of the measured times and therefore of the factors.
//!
//! - Speeds are those of a [`Calibration`], measured in the background when the device was opened. If
//!   `JINDOU_GPU_CALIBRATION` names a file, they are stored there by device, driver and kernels.
//! - The factors are ratios of measured to predicted times of earlier runs on this machine ([`learnt`]), stored in the
//!   same file.
//! - A plan whose segments are not on the device is executed on the CPU, unless the device is faster even with the
//!   upload. Meanwhile, the segments are uploaded in the background if the runs expected from now on save more time
//!   than the upload takes. If other segments would have to be evicted for them, they are uploaded only after the time
//!   lost without them has reached the time for the upload.

mod calibration;
mod decide;
mod learnt;
mod measure;
#[cfg(any(test, feature = "testing"))]
mod recorded;
mod shape;
mod work;

pub use calibration::Calibration;
pub use decide::{Decision, Prediction};
pub(crate) use learnt::Side;
#[cfg(any(test, feature = "testing"))]
pub use recorded::{Chooser, PlanWork, RowsUse};
pub(crate) use shape::Shape;
pub(crate) use work::{SegmentName, WorkEstimate};

use jindou_model::sync;
use learnt::Learnt;
use rustc_hash::FxHashMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Weight of the newest run in the mean time that a run occupies the device.
const NEWEST: f64 = 0.2;
/// Share of the device's free memory that background uploads may use.
const BACKGROUND: f64 = 0.75;
/// Host work per kernel plus the kernel's minimum time, as a multiple of [`Calibration::launch`].
const LAUNCHES_A_KERNEL: f64 = 2.0;
/// Host work per run, as a multiple of [`Calibration::sync`].
const SYNCS_A_RUN: f64 = 1.5;
/// Seconds, on either side, for a plan that is known to return no rows.
const EMPTY: f64 = 1e-7;
/// Shortest time between two saves to the file.
const SAVE_EVERY: Duration = Duration::from_secs(30);

/// A device's speeds and what was learned from its runs, from which the times of plans are predicted.
pub(crate) struct DeviceModel {
    pub calibration: Calibration,
    state: Mutex<State>,
    /// The file in which learned factors are saved, and the device's identity in it; `None` if they are not saved.
    kept: Option<(PathBuf, String)>,
}

struct State {
    learnt: Learnt,
    /// Mean seconds for which recent queries occupied the device.
    run: f64,
    /// Seconds that plans lost because a segment was not on the device, by epoch and segment.
    lost: FxHashMap<(u64, SegmentName), f64>,
    saved: Instant,
}

/// The state of the device on which a prediction depends.
pub(crate) struct DeviceNow<'a> {
    pub name: String,
    /// Number of queries that wait for the device or run on it.
    pub in_line: u64,
    /// Free bytes of the device's memory.
    pub free: &'a dyn Fn() -> f64,
    pub epoch: u64,
    /// True for segments that are on the device.
    pub is_there: &'a dyn Fn(SegmentName) -> bool,
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.3} ms", seconds * 1e3)
}

impl DeviceModel {
    pub fn new(calibration: Calibration) -> Self {
        Self::with(calibration, Learnt::default(), None)
    }

    /// A model that loads what earlier processes have learned from `file`, and saves there what it learns.
    pub fn kept_in(calibration: Calibration, file: PathBuf, identity: String) -> Self {
        let learnt = calibration::load_runs(&file, &identity);
        Self::with(calibration, learnt, Some((file, identity)))
    }

    fn with(calibration: Calibration, learnt: Learnt, kept: Option<(PathBuf, String)>) -> Self {
        Self {
            calibration,
            state: Mutex::new(State {
                learnt,
                run: 0.0,
                lost: FxHashMap::default(),
                saved: Instant::now(),
            }),
            kept,
        }
    }

    /// Uncorrected seconds on the device if all segments have been uploaded.
    fn plain(&self, work: &WorkEstimate) -> f64 {
        let c = &self.calibration;
        if work.is_empty() {
            return EMPTY;
        }
        let sectors = work
            .sectors
            .iter()
            .map(|&(size, n)| 32.0 * n / c.random_in(size));
        let launches = work.launches + LAUNCHES_A_KERNEL * work.kernels;
        let waits = work.syncs + SYNCS_A_RUN;
        work.ordered / c.stream + sectors.sum::<f64>() + launches * c.launch + waits * c.sync
    }

    /// Seconds for copying the rows back, if there are `more` times as many as estimated.
    fn back(&self, work: &WorkEstimate, more: f64) -> f64 {
        if work.leaving > 0.0 {
            let more = if work.rows > 0.0 { more } else { 1.0 };
            return self.calibration.sync + more * work.leaving / self.calibration.download;
        }
        0.0
    }

    /// Predicts the times of a plan of this work and shape on the device and on `threads` CPU threads.
    pub fn predict(
        &self,
        work: &WorkEstimate,
        shape: Shape,
        threads: usize,
        now: DeviceNow<'_>,
    ) -> Prediction {
        let state = sync::lock(&self.state);
        let threads = threads.max(1);
        let here = if work.is_empty() {
            EMPTY
        } else {
            work.cpu(threads)
        };
        let more = state.learnt.rows(&shape);
        let (there, back) = (self.plain(work), self.back(work, more));
        let corrections = [Side::Cpu, Side::Gpu].map(|s| state.learnt.correction(&shape, s));
        let [decode, per_row] = [work.rows * more, 1.0].map(|rows| work.decode(threads, rows));
        let passed = work.decode(threads, 0.0);
        let terms = state.learnt.terms(&shape);
        let decode = decode.map(|seconds| seconds * terms);
        let mut p = Prediction {
            device: now.name,
            cpu: here * corrections[0].factor + decode[0],
            threads,
            wait: now.in_line as f64 * state.run,
            bring: 0.0,
            cold: 0.0,
            compute: there * corrections[1].factor,
            back: back * corrections[1].factor + decode[1],
            missing: Vec::new(),
            has_room: true,
            plain: [here, there + back],
            decode,
            terms,
            passed,
            per_row: [per_row[0] - passed[0], per_row[1] - passed[1]],
            rows: work.rows,
            corrections,
            untried: [Side::Cpu, Side::Gpu]
                .map(|s| !work.is_empty() && state.learnt.is_untried(&shape, s)),
            uses: state.learnt.uses(&shape),
            shape,
            waits: 0,
        };
        for (&segment, &bytes) in &work.segments {
            if bytes > 0.0 && !(now.is_there)(segment) {
                let seconds = bytes / self.calibration.upload;
                let lost = state.lost.get(&(now.epoch, segment)).copied();
                p.bring += (seconds - lost.unwrap_or(0.0)).max(0.0);
                p.cold += bytes;
                p.missing.push((segment, seconds));
            }
        }
        p.has_room = p.cold == 0.0 || p.cold <= BACKGROUND * (now.free)();
        p
    }

    /// Decides where a plan runs and counts its use. If the CPU is chosen because segments are missing that are not
    /// being uploaded now, the lost time is added to those segments, in proportion to their upload times. From time to
    /// time, the side predicted to be slower is chosen to measure it again.
    pub fn decide(&self, p: &Prediction, epoch: u64) -> Decision {
        let mut decision = p.decision();
        let (lost, all) = (p.lost(), p.missing.iter().map(|m| m.1).sum::<f64>());
        let mut state = sync::lock(&self.state);
        state.learnt.used(&p.shape);
        if decision.reason == decide::Reason::Trial {
            let side = if decision.gpu { Side::Gpu } else { Side::Cpu };
            state.learnt.trying(&p.shape, side);
        } else if p.missing.is_empty() && p.wait == 0.0 {
            let times = [p.cpu, p.gpu()];
            let plain = [0, 1].map(|side| p.plain[side] + p.decode[side]);
            let (chosen, other) = match decision.gpu {
                true => (Side::Gpu, Side::Cpu),
                false => (Side::Cpu, Side::Gpu),
            };
            let seconds = [chosen, other].map(|s| times[s as usize]);
            if state
                .learnt
                .recheck(&p.shape, chosen, seconds, plain[other as usize])
            {
                decision.gpu = !decision.gpu;
                decision.reason = decide::Reason::Again;
            }
        }
        if lost > 0.0 && all > 0.0 {
            // The ids of predicates have another meaning in another epoch, so those entries are dropped.
            state.lost.retain(|(e, _), _| *e == epoch);
            for &(segment, seconds) in &p.missing {
                *state.lost.entry((epoch, segment)).or_default() += lost * seconds / all;
            }
        }
        decision
    }

    /// Records a run on one side: the seconds from its start to its last row, and its rows. If more than half of the
    /// time was probably spent on decoding terms, the run updates the factor for decoding instead of the side's factor.
    /// Runs on the device that uploaded segments or shared it with another query (`is_shared`) update only the factor
    /// for rows.
    pub fn ran(&self, p: &Prediction, side: Side, seconds: f64, rows: u64, is_shared: bool) {
        let at = side as usize;
        let decode = p.passed[at] + p.per_row[at] * rows as f64;
        let mut state = sync::lock(&self.state);
        if p.rows > 0.0 {
            state.learnt.gave(&p.shape, rows as f64, p.rows);
        }
        if side == Side::Gpu && (is_shared || p.wait > 0.0 || p.bring > 0.0) {
            return;
        }
        if decode * p.terms <= seconds / 2.0 {
            let alone = seconds - decode * p.terms;
            state.learnt.ran(&p.shape, side, alone, p.plain[at]);
        } else if p.rows > 0.0 {
            let alone = p.plain[at] * p.corrections[at].factor;
            state.learnt.showed(&p.shape, seconds - alone, decode);
        }
    }

    /// Records for how many seconds a run occupied the device.
    pub fn occupied(&self, seconds: f64) {
        let mut state = sync::lock(&self.state);
        state.run += NEWEST * (seconds - state.run);
    }

    /// True if something was learned that should be saved now. After that, returns false for some time.
    pub fn is_due(&self) -> bool {
        let mut state = sync::lock(&self.state);
        let due = self.kept.is_some() && state.learnt.changed && state.saved.elapsed() > SAVE_EVERY;
        if due {
            state.saved = Instant::now();
        }
        due
    }

    /// Saves what was learned. Errors are ignored: the next process then starts without it.
    pub fn save(&self) {
        let Some((file, identity)) = &self.kept else {
            return;
        };
        let learnt = {
            let mut state = sync::lock(&self.state);
            if !std::mem::take(&mut state.learnt.changed) {
                return;
            }
            state.learnt.clone()
        };
        let _ = calibration::save_runs(file, identity, &learnt);
    }
}

impl Drop for DeviceModel {
    fn drop(&mut self) {
        self.save();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jindou_model::{Direction, PredicateId};

    const A: SegmentName = (PredicateId(1), Direction::Out);
    const B: SegmentName = (PredicateId(2), Direction::In);
    const FREE: f64 = 1e11;

    /// A heavy query: 100 MB read sequentially, 10 M lookups in a segment of 400 MB, 50 ms on one core.
    fn heavy() -> WorkEstimate {
        WorkEstimate {
            ordered: 1e8,
            sectors: vec![(4e8, 1e7)],
            launches: 10.0,
            kernels: 8.0,
            syncs: 4.0,
            segments: [(A, 4e8), (B, 1e6)].into_iter().collect(),
            leaving: 1e6,
            rows: 0.0,
            columns: 0.0,
            passed: 0.0,
            takers: None,
            steps: 4.0,
            cpu_ns: 50e6,
            in_order: None,
        }
    }

    fn slow() -> Calibration {
        Calibration {
            stream: 50e9,
            random: vec![(30e6, 20e9), (1e9, 4e9)],
            launch: 10e-6,
            sync: 60e-6,
            upload: 2e9,
            download: 3e9,
        }
    }

    fn shape() -> Shape {
        Shape::recorded("keys expand;", "a query")
    }

    fn predict_in(
        m: &DeviceModel,
        work: &WorkEstimate,
        threads: usize,
        there: &dyn Fn(SegmentName) -> bool,
        (epoch, free, in_line): (u64, f64, u64),
    ) -> Prediction {
        let now = DeviceNow {
            name: "a card".into(),
            in_line,
            free: &|| free,
            epoch,
            is_there: there,
        };
        m.predict(work, shape(), threads, now)
    }

    fn predict(m: &DeviceModel, work: &WorkEstimate, threads: usize, there: bool) -> Prediction {
        predict_in(m, work, threads, &|_| there, (7, FREE, 0))
    }

    #[test]
    fn the_times_are_those_of_the_formula() {
        let m = DeviceModel::new(slow());
        let p = predict_in(&m, &heavy(), 2, &|s| s == A, (7, FREE, 3));
        // 100 MB at 50 GB/s; 320 MB at the interpolated speed between 30 MB and 1 GB; 26 launches, 5.5 waits.
        let share = (4e8f64 / 30e6).ln() / (1e9f64 / 30e6).ln();
        let kernels = 1e8 / 50e9 + 3.2e8 / (20e9 - 16e9 * share);
        assert!((p.compute - (kernels + 26e-5 + 33e-5)).abs() < 1e-9, "{p}");
        assert!((p.cpu - (0.025 * 1.045 + 3.3e-6)).abs() < 1e-9, "{p}");
        assert_eq!((p.cold, p.wait), (1e6, 0.0));
        assert!((p.bring - 1e6 / 2e9).abs() < 1e-12);
        assert!((p.back - (60e-6 + 1e6 / 3e9)).abs() < 1e-12);
        // Terms of 1000 cells are decoded by 2 threads, on either side.
        let decoded = WorkEstimate {
            rows: 500.0,
            columns: 2.0,
            ..heavy()
        };
        let with = predict_in(&m, &decoded, 2, &|s| s == A, (7, FREE, 3));
        assert!((with.back - p.back - 20.9e-6).abs() < 1e-9, "{with}");
        assert!((with.cpu - p.cpu - 20.9e-6).abs() < 1e-9, "{with}");
        let nothing = predict(&m, &WorkEstimate::default(), 2, true);
        assert!(nothing.cpu == EMPTY && !nothing.is_worth_it(), "{nothing}");
    }

    #[test]
    fn a_fast_card_takes_what_a_slow_one_leaves_to_the_cpu() {
        let (fast, slow) = (
            DeviceModel::new(Calibration::h200()),
            DeviceModel::new(slow()),
        );
        assert!(predict(&fast, &heavy(), 2, true).is_worth_it());
        assert!(!predict(&slow, &heavy(), 2, true).is_worth_it());
        // A light query costs an H200 more than the CPU, because of waiting for counts.
        let light = WorkEstimate {
            ordered: 1e5,
            sectors: vec![(4e8, 1e3)],
            leaving: 100.0,
            cpu_ns: 50e3,
            ..heavy()
        };
        assert!(!predict(&fast, &light, 2, true).is_worth_it());
        // With an infinitely fast card, every plan is worth it.
        assert!(
            predict(&DeviceModel::new(Calibration::ideal()), &light, 1000, false).is_worth_it()
        );
        let text = predict(&fast, &heavy(), 2, true).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "cpu: about 26.128 ms on 2 threads");
        assert!(lines[1].starts_with("gpu: about "), "{text}");
        assert!(lines[2].starts_with("chosen: the GPU, "), "{text}");
        let text = predict(&slow, &heavy(), 2, true).to_string();
        assert!(text.contains("\nchosen: the CPU, since "), "{text}");
    }

    /// Segments whose upload takes as long as several runs are uploaded in the background at once. If the device's
    /// memory is full, they are uploaded after their absence has cost as much time as the upload takes; and never if
    /// the upload does not pay off.
    #[test]
    fn segments_are_brought_by_expected_use() {
        let m = DeviceModel::new(Calibration::h200());
        let p = predict(&m, &heavy(), 2, false);
        let decision = m.decide(&p, 7);
        assert!(!decision.gpu && decision.bring, "{p}");
        assert!(
            p.to_string()
                .contains("they are being uploaded in the background, since 8 runs")
        );
        // Each use raises the number of expected runs by one, from eight.
        m.decide(&p, 7);
        let p = predict(&m, &heavy(), 2, false);
        assert!(p.to_string().contains("since 10 runs"), "{p}");
        assert!(
            !predict(&DeviceModel::new(slow()), &heavy(), 2, false)
                .decision()
                .bring
        );
        // Uploading 60 GB takes six seconds, more than the expected runs save.
        let large = WorkEstimate {
            segments: [(A, 60e9)].into_iter().collect(),
            ..heavy()
        };
        let p = predict(&m, &large, 2, false);
        assert!(!p.is_worth_it() && !p.decision().bring, "{p}");
        // Run on the GPU if it is predicted to be faster for this execution, upload included.
        let small = WorkEstimate {
            segments: [(A, 4e7)].into_iter().collect(),
            ..heavy()
        };
        assert!(predict(&m, &small, 2, false).is_worth_it());
        // The device's memory is full.
        let m = DeviceModel::new(Calibration::h200());
        let (mut refused, mut lost) = (0, 0.0);
        let bring = 4.01e8 / 10e9;
        loop {
            let p = predict_in(&m, &heavy(), 2, &|_| false, (7, 4e8, 0));
            if p.is_worth_it() {
                break;
            }
            lost += p.lost();
            assert!(!m.decide(&p, 7).bring);
            refused += 1;
            assert!(refused < 100);
        }
        // The transfer takes 40 ms, and each run on the CPU loses some 25 ms, so the plan moves to the GPU once the
        // rest of the transfer takes less than a run gains.
        assert!(
            refused >= 1 && lost < bring + 0.026,
            "{refused} refused, {lost} s lost"
        );
        // Losses of another epoch do not count.
        assert!(!predict_in(&m, &heavy(), 2, &|_| false, (8, 4e8, 0)).is_worth_it());
    }

    #[test]
    fn predictions_follow_what_was_measured_on_both_sides() {
        let m = DeviceModel::new(Calibration::h200());
        let before = predict(&m, &heavy(), 2, true);
        for _ in 0..40 {
            m.ran(&before, Side::Gpu, 4.0 * before.gpu(), 1, false);
            m.ran(&before, Side::Cpu, 0.5 * before.cpu, 1, false);
            m.occupied(4.0 * before.gpu());
        }
        let after = predict(&m, &heavy(), 2, true);
        assert!((after.gpu() / before.gpu() - 4.0).abs() < 0.01, "{after}");
        assert!((after.cpu / before.cpu - 0.5).abs() < 0.01, "{after}");
        let text = after.to_string();
        assert!(
            text.contains("0.50 times the estimate, by 40 runs"),
            "{text}"
        );
        // Each waiting query is assumed to take as long as earlier ones.
        let p = predict_in(&m, &heavy(), 2, &|_| true, (7, FREE, 2));
        assert!((p.wait / (8.0 * before.gpu()) - 1.0).abs() < 0.01, "{p}");
        // Cold runs, and those dominated by decoding terms, do not change the factor.
        let cold = predict(&m, &heavy(), 2, false);
        m.ran(&cold, Side::Gpu, 1.0, 1, false);
        m.ran(&p, Side::Gpu, 1.0, 1, false);
        // Runs during which another query waited do not change the factor, either.
        m.ran(&before, Side::Gpu, 1.0, 1, true);
        let terms = WorkEstimate {
            rows: 1e4,
            columns: 1.0,
            ..heavy()
        };
        let few = predict(&m, &terms, 2, true);
        m.ran(&few, Side::Cpu, 10.0, 1_000_000_000, false);
        // The number of rows is learned, however: copying them over the link takes time.
        let many = predict(&m, &terms, 2, true);
        assert!(many.is_worth_it() != few.is_worth_it(), "{few}\n{many}");
        let again = predict(&m, &heavy(), 2, true);
        assert_eq!((again.gpu(), again.cpu), (after.gpu(), after.cpu));
    }

    /// A side that never executed such a plan is tried once if the estimates are close.
    #[test]
    fn what_is_nearly_as_fast_is_tried_once() {
        let m = DeviceModel::new(Calibration::h200());
        let near = |times: f64| {
            let there = predict(&m, &heavy(), 1, true).gpu();
            WorkEstimate {
                cpu_ns: times * there * 1e9,
                ..heavy()
            }
        };
        // As fast as the CPU: the GPU is tried once.
        let p = predict(&m, &near(1.0), 1, true);
        let decision = m.decide(&p, 7);
        assert!(
            decision.gpu && p.to_string().contains("the GPU, to measure once how long"),
            "{p}"
        );
        assert!(!m.decide(&predict(&m, &near(1.0), 1, true), 7).gpu);
        // A little faster: the CPU is tried once.
        let p = predict(&m, &near(1.4), 1, true);
        assert!(
            !m.decide(&p, 7).gpu && p.to_string().contains("the CPU, to measure once how long"),
            "{p}"
        );
        assert!(m.decide(&predict(&m, &near(1.4), 1, true), 7).gpu);
        // Much slower or faster: no trial.
        let m = DeviceModel::new(Calibration::h200());
        assert!(!predict(&m, &near(0.5), 1, true).is_worth_it());
        assert!(predict(&m, &near(2.0), 1, true).is_worth_it());
    }

    #[test]
    fn what_was_learnt_is_there_in_the_next_process() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("calibration.json");
        let model = || DeviceModel::kept_in(slow(), file.clone(), "a card".into());
        let m = model();
        assert!(!m.is_due());
        let p = predict(&m, &heavy(), 2, true);
        m.ran(&p, Side::Cpu, 3.0 * p.cpu, 1, false);
        drop(m);
        let again = predict(&model(), &heavy(), 2, true);
        assert!((again.cpu / p.cpu - 3.0).abs() < 1e-6, "{again}");
        std::fs::write(&file, "{").unwrap();
        assert_eq!(predict(&model(), &heavy(), 2, true).cpu, p.cpu);
    }
}
