//! Decision if a plan is worth a device: the predicted times there and on the CPU.
//!
//! ```text
//! T_gpu = wait + bring + Σ steps [ (ordered / stream + Σ 32 · sectors / random(segment)) · factor + launches · t_l + syncs · t_s ]
//!         + rows that leave / download
//! T_cpu = the planner's nanoseconds for the same steps / threads
//! ```
//!
//! A plan goes to the device if `1.3 · T_gpu < T_cpu`. Costs that both have (operators above, decoding of rows) are in
//! neither.
//!
//! - Speeds are those of a [`Calibration`], measured in the background when the first heavy plan asks for it, which
//!   runs on the CPU meanwhile. If `JINDOU_GPU_CALIBRATION` names a file, they are stored there, by device, driver and
//!   kernels.
//! - `bring` is the transfer of missing segments, less the time that plans refused for that reason alone would have
//!   saved: a segment is transferred when the time lost without it reaches the time of its transfer.
//! - `factor` follows the ratio of measured to predicted times of runs.

mod calibration;
mod measure;
mod work;

pub use calibration::Calibration;
pub(crate) use work::{SegmentName, WorkEstimate};

use jindou_model::sync;
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::Mutex;

/// Factor by which the device must be faster.
const MARGIN: f64 = 1.3;
/// Weight of the newest run in the moving average.
const NEWEST: f64 = 0.2;
/// Bounds of the factor: beyond them, the prediction is wrong for other reasons than the kernels.
const FACTORS: (f64, f64) = (0.1, 10.0);

/// A device's speeds and its runs so far, from which the costs of future plans are predicted.
pub(crate) struct DeviceModel {
    pub calibration: Calibration,
    learnt: Mutex<Learnt>,
}

#[derive(Default)]
struct Learnt {
    /// Logarithm of the ratio of measured to predicted times.
    factor: f64,
    /// Mean seconds for which recent queries occupied the device.
    run: f64,
    /// Seconds that plans lost because a segment was missing, by epoch and segment.
    lost: FxHashMap<(u64, SegmentName), f64>,
}

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
    /// Seconds for rows that leave the device.
    pub back: f64,
    /// The missing segments, with the seconds that each takes.
    pub(crate) missing: Vec<(SegmentName, f64)>,
}

impl Prediction {
    /// Seconds on the device, from now on.
    #[must_use]
    pub fn gpu(&self) -> f64 {
        self.wait + self.bring + self.compute + self.back
    }

    /// True if the plan goes to the device.
    #[must_use]
    pub fn is_worth_it(&self) -> bool {
        MARGIN * self.gpu() < self.cpu
    }

    /// Seconds that the plan would have saved if its segments had been present; 0 if they are not the reason.
    fn lost(&self) -> f64 {
        let warm = self.gpu() - self.bring;
        if self.is_worth_it() || MARGIN * warm >= self.cpu {
            return 0.0;
        }
        self.cpu - warm
    }
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.3} ms", seconds * 1e3)
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.threads == 1 { "" } else { "s" };
        writeln!(
            f,
            "cpu: about {} for its graph patterns on {} thread{plural}",
            milliseconds(self.cpu),
            self.threads
        )?;
        write!(
            f,
            "gpu: about {} on {} ({} in line, {} to bring {:.1} MB, {} computing, {} for rows back): {}",
            milliseconds(self.gpu()),
            self.device,
            milliseconds(self.wait),
            milliseconds(self.bring),
            self.cold / 1e6,
            milliseconds(self.compute),
            milliseconds(self.back),
            if self.is_worth_it() {
                "the GPU"
            } else {
                "the CPU"
            }
        )
    }
}

impl DeviceModel {
    pub fn new(calibration: Calibration) -> Self {
        Self {
            calibration,
            learnt: Mutex::default(),
        }
    }

    /// Seconds in kernels according to the calibration alone, and in launches and waits.
    fn parts(&self, work: &WorkEstimate) -> (f64, f64) {
        let c = &self.calibration;
        let sectors = work
            .sectors
            .iter()
            .map(|&(size, n)| 32.0 * n / c.random_in(size));
        let kernels = work.ordered / c.stream + sectors.sum::<f64>();
        (kernels, work.launches * c.launch + work.syncs * c.sync)
    }

    /// The predicted times of work, with this many queries in line; `is_there` says which segments are on the device.
    pub fn predict(
        &self,
        device: String,
        work: &WorkEstimate,
        threads: usize,
        in_line: u64,
        epoch: u64,
        is_there: &dyn Fn(SegmentName) -> bool,
    ) -> Prediction {
        let learnt = sync::lock(&self.learnt);
        let (kernels, asked) = self.parts(work);
        let mut p = Prediction {
            device,
            cpu: work.cpu_ns * 1e-9 / threads.max(1) as f64,
            threads: threads.max(1),
            wait: in_line as f64 * learnt.run,
            bring: 0.0,
            cold: 0.0,
            compute: kernels * learnt.factor.exp() + asked,
            back: work.leaving / self.calibration.download,
            missing: Vec::new(),
        };
        for (&segment, &bytes) in &work.segments {
            if bytes > 0.0 && !is_there(segment) {
                let seconds = bytes / self.calibration.upload;
                let lost = learnt.lost.get(&(epoch, segment)).copied().unwrap_or(0.0);
                p.bring += (seconds - lost).max(0.0);
                p.cold += bytes;
                p.missing.push((segment, seconds));
            }
        }
        p
    }

    /// Records that a plan ran on the CPU: its loss is distributed over the missing segments in proportion.
    pub fn refused(&self, p: &Prediction, epoch: u64) {
        let (lost, all) = (p.lost(), p.missing.iter().map(|m| m.1).sum::<f64>());
        if lost <= 0.0 || all <= 0.0 {
            return;
        }
        let mut learnt = sync::lock(&self.learnt);
        // Another load's segments have other names.
        learnt.lost.retain(|(e, _), _| *e == epoch);
        for &(segment, seconds) in &p.missing {
            *learnt.lost.entry((epoch, segment)).or_default() += lost * seconds / all;
        }
    }

    /// Records the duration of a run that did this work, without the transfers of segments.
    pub fn ran(&self, work: &WorkEstimate, seconds: f64) {
        let (kernels, asked) = self.parts(work);
        let mut learnt = sync::lock(&self.learnt);
        learnt.run += NEWEST * (seconds - learnt.run);
        let back = work.leaving / self.calibration.download;
        // If kernels are the smaller part, the error of the rest would be attributed to them.
        if kernels > asked + back && kernels.is_finite() {
            let (least, most) = FACTORS;
            let ratio = ((seconds - asked - back) / kernels).clamp(least, most).ln();
            learnt.factor += NEWEST * (ratio - learnt.factor);
        }
    }

    /// The learnt ratio of measured to predicted times.
    #[cfg(test)]
    fn factor(&self) -> f64 {
        sync::lock(&self.learnt).factor.exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jindou_model::{Direction, PredicateId};

    const A: SegmentName = (PredicateId(1), Direction::Out);
    const B: SegmentName = (PredicateId(2), Direction::In);

    /// A heavy query: 100 MB sequentially, 10 M look-ups in a segment of 400 MB, 50 ms on one core.
    fn heavy() -> WorkEstimate {
        WorkEstimate {
            ordered: 1e8,
            sectors: vec![(4e8, 1e7)],
            launches: 10.0,
            syncs: 4.0,
            segments: [(A, 4e8), (B, 1e6)].into_iter().collect(),
            leaving: 1e6,
            cpu_ns: 50e6,
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

    fn predict(m: &DeviceModel, work: &WorkEstimate, threads: usize, there: bool) -> Prediction {
        m.predict("a card".into(), work, threads, 0, 7, &|_| there)
    }

    #[test]
    fn the_times_are_those_of_the_formula() {
        let m = DeviceModel::new(slow());
        let p = m.predict("a card".into(), &heavy(), 2, 3, 7, &|s| s == A);
        // 100 MB at 50 GB/s; 320 MB at the interpolated speed between 30 MB and 1 GB.
        let share = (4e8f64 / 30e6).ln() / (1e9f64 / 30e6).ln();
        let kernels = 1e8 / 50e9 + 3.2e8 / (20e9 - 16e9 * share);
        assert!((p.compute - (kernels + 1e-4 + 2.4e-4)).abs() < 1e-9, "{p}");
        assert_eq!((p.cpu, p.cold, p.wait), (0.025, 1e6, 0.0));
        assert!((p.bring - 1e6 / 2e9).abs() < 1e-12);
        assert!((p.back - 1e6 / 3e9).abs() < 1e-12);
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
            cpu_ns: 100e3,
            ..heavy()
        };
        assert!(!predict(&fast, &light, 2, true).is_worth_it());
        // With more cores, fewer queries are worth a GPU; with an infinitely fast card, all are.
        assert!(!predict(&fast, &heavy(), 1000, true).is_worth_it());
        assert!(
            predict(&DeviceModel::new(Calibration::ideal()), &light, 1000, false).is_worth_it()
        );
        let text = predict(&fast, &heavy(), 2, true).to_string();
        assert!(
            text.starts_with(
                "cpu: about 25.000 ms for its graph patterns on 2 threads\ngpu: about "
            ),
            "{text}"
        );
        assert!(text.ends_with(": the GPU"), "{text}");
    }

    #[test]
    fn segments_are_brought_when_plans_lost_as_much_without_them() {
        let m = DeviceModel::new(Calibration::h200());
        let (mut refused, mut lost) = (0, 0.0);
        let bring = 4.01e8 / 10e9;
        loop {
            let p = predict(&m, &heavy(), 2, false);
            if p.is_worth_it() {
                break;
            }
            lost += p.lost();
            m.refused(&p, 7);
            refused += 1;
            assert!(refused < 100);
        }
        // 40 ms for the transfer, some 24 ms saved by each query: the rest must become less than the query's own gain.
        assert!(
            refused >= 1 && lost < bring + 0.025,
            "{refused} refused, {lost} s lost"
        );
        // Another load's segments start from zero, and a plan without a gain does not count.
        assert!(
            !m.predict(String::new(), &heavy(), 2, 0, 8, &|_| false)
                .is_worth_it()
        );
        let m = DeviceModel::new(slow());
        let p = predict(&m, &heavy(), 2, false);
        m.refused(&p, 7);
        assert_eq!(predict(&m, &heavy(), 2, false).bring, p.bring);
    }

    #[test]
    fn predictions_follow_what_was_measured() {
        let m = DeviceModel::new(Calibration::h200());
        let before = predict(&m, &heavy(), 2, true);
        for _ in 0..40 {
            m.ran(&heavy(), 4.0 * before.compute);
        }
        let after = predict(&m, &heavy(), 2, true);
        assert!(
            (after.compute / before.compute - 4.0).abs() < 0.2,
            "{before}\n{after}"
        );
        assert!(m.factor() > 3.5 && m.factor() < 5.0);
        // Each query in line takes as long as those before it.
        let p = m.predict(String::new(), &heavy(), 2, 2, 7, &|_| true);
        assert!((p.wait / (8.0 * before.compute) - 1.0).abs() < 0.01, "{p}");
        // Extreme times have no more effect than these bounds.
        for _ in 0..100 {
            m.ran(&heavy(), 1e6);
        }
        assert!(m.factor() <= 10.0 + 1e-9);
    }
}
