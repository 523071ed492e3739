//! Correction factors learned from runs, by shape of plan: ratios of measured to predicted times for the CPU, for the
//! device, and for decoding terms; and ratios of actual to estimated rows.
//!
//! A prediction is multiplied by the mean ratio of earlier runs with the same shape over the same predicates; without
//! such runs, with the same shape over other predicates; without those, by the median over all shapes. Means are of
//! logarithms. The newest run has at least a fifth of the weight, and no single run changes a mean of three or more
//! runs by more than a factor of 4. A first run may include one-time costs, so the second one replaces it if it was
//! faster.
//!
//! The side on which plans of a shape are not executed is [tried again](Learnt::recheck) from time to time, because its
//! ratio may come from an exceptionally slow run.

use super::shape::Shape;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use std::time::Instant;

/// Largest number of entries, where a shape has one with and one without predicates; the least recently used are
/// evicted first.
const MOST: usize = 1024;
/// Smallest weight of the newest run in a mean.
const NEWEST: f64 = 0.2;
/// Largest plausible absolute logarithm of a ratio of times; larger ones are clamped, since they have other causes than
/// the estimate. Estimates of rows may be wrong by more.
const FARTHEST: f64 = 6.0;
const FARTHEST_ROWS: f64 = 16.0;
/// Largest change that one run makes to a logarithmic mean of three runs or more.
const STEP: f64 = 1.4;
/// A median is used only if at least twice this many shapes have runs.
const FEW: usize = 3;
/// Time in seconds after which a use counts half.
const HALF_LIFE: f64 = 600.0;
/// Share of a shape's time that may be spent on trying the other side again. It is halved each time that the other side
/// turns out not to be faster, at most `MOST_HALVINGS` times.
const RECHECKED: f64 = 0.05;
const MOST_HALVINGS: i32 = 6;
/// A side with at least `TRUSTED` runs is assumed to be at best [`DOUBT`] times as fast as its mean says. With fewer
/// runs, the uncorrected estimate is assumed if that is lower.
const TRUSTED: u32 = 3;
const DOUBT: f64 = 2.0;

/// The side that executed a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Cpu,
    Gpu,
}

/// Indices of the means for rows and for decoding terms in [`ShapeRuns::means`]; the indices before them are those of
/// [`Side`].
const ROWS: usize = 2;
const TERMS: usize = 3;
/// Number of means per shape.
const MEANS: usize = 4;

/// Mean logarithm of the ratios of measured to predicted values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Mean {
    log: f64,
    runs: u32,
}

impl Mean {
    /// Adds a sample to the mean, clamped to `-most..=most`. If `quickest` is set and the second sample is lower than
    /// the first, it replaces it.
    fn add(&mut self, log: f64, most: f64, quickest: bool) {
        let log = log.clamp(-most, most);
        if self.runs == 1 && quickest && log < self.log {
            *self = Self { log, runs: 2 };
            return;
        }
        let mut step = log - self.log;
        if self.runs >= 3 {
            step = step.clamp(-STEP, STEP);
        }
        self.runs = self.runs.saturating_add(1);
        self.log += step * (1.0 / f64::from(self.runs)).max(NEWEST);
    }

    /// As a JSON array: `[log, runs]`.
    fn to_json(self) -> Value {
        json!([self.log, self.runs])
    }

    /// Parses a stored mean; `None` if it is implausible.
    fn from_json(v: &Value) -> Option<Self> {
        let log = v.get(0)?.as_f64().filter(|l| l.abs() <= FARTHEST_ROWS)?;
        let runs = u32::try_from(v.get(1)?.as_u64()?).ok()?;
        Some(Self { log, runs })
    }
}

/// Everything that was learned about one shape, with or without predicates.
#[derive(Clone, Debug, Default)]
struct ShapeRuns {
    means: [Mean; MEANS],
    /// True once this side was tried although it had no runs.
    tried: [bool; 2],
    /// Number of recent uses, decaying with time, as of `counted`; not stored.
    uses: f64,
    counted: Option<Instant>,
    /// The side chosen last, the seconds saved up for trying the other side again, and the number of such tries in
    /// which it was not faster; not stored.
    chosen: Option<Side>,
    saved: f64,
    in_vain: i32,
    /// Value of [`Learnt::now`] at the last use.
    last: u64,
}

/// Everything that was learned from a device's runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Learnt {
    shapes: FxHashMap<u64, ShapeRuns>,
    /// Number of uses so far, as a logical clock.
    now: u64,
    /// True if something has changed since the last save.
    pub changed: bool,
}

/// A correction factor, and the number of runs that it comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Correction {
    pub factor: f64,
    /// Number of runs with this shape; 0 if the factor is a median over other shapes.
    pub runs: u32,
}

impl Learnt {
    /// The mean at index `of` for this shape over the same predicates, or else over any predicates; `None` without
    /// runs.
    fn mean(&self, shape: &Shape, of: usize) -> Option<Mean> {
        let of_key = |key: u64| self.shapes.get(&key).map(|s| s.means[of]);
        let keys = [shape.exact, shape.general()];
        keys.into_iter().filter_map(of_key).find(|m| m.runs > 0)
    }

    /// The factor for the estimated number of rows; 1 for a shape without runs. The error of an estimate depends on the
    /// predicates, so runs over other predicates are not used.
    pub fn rows(&self, shape: &Shape) -> f64 {
        let own = self.shapes.get(&shape.exact).map(|s| s.means[ROWS]);
        own.map_or(1.0, |m| m.log.exp())
    }

    /// The factor for the time of decoding rows to terms; 1 for a shape without runs that were dominated by decoding.
    pub fn terms(&self, shape: &Shape) -> f64 {
        self.mean(shape, TERMS).map_or(1.0, |m| m.log.exp())
    }

    /// The factor for a predicted time on this side.
    pub fn correction(&self, shape: &Shape, side: Side) -> Correction {
        if let Some(mean) = self.mean(shape, side as usize) {
            return Correction {
                factor: mean.log.exp(),
                runs: mean.runs,
            };
        }
        let all = self.shapes.values().map(|s| s.means[side as usize]);
        let mut logs: Vec<f64> = all.filter(|m| m.runs > 0).map(|m| m.log).collect();
        let middle = logs.len() / 2;
        let log = if logs.len() < 2 * FEW {
            0.0
        } else {
            *logs.select_nth_unstable_by(middle, f64::total_cmp).1
        };
        Correction {
            factor: log.exp(),
            runs: 0,
        }
    }

    fn entry(&mut self, key: u64) -> &mut ShapeRuns {
        if self.shapes.len() >= MOST && !self.shapes.contains_key(&key) {
            // Evicts a quarter at once, so that this is rare.
            let mut last: Vec<u64> = self.shapes.values().map(|s| s.last).collect();
            let oldest = *last.select_nth_unstable(MOST / 4).1;
            self.shapes.retain(|_, s| s.last > oldest);
        }
        self.now += 1;
        let now = self.now;
        let entry = self.shapes.entry(key).or_default();
        entry.last = now;
        entry
    }

    /// Records a run: measured seconds, and predicted seconds without corrections.
    pub fn ran(&mut self, shape: &Shape, side: Side, measured: f64, predicted: f64) {
        self.add(shape, side as usize, measured / predicted);
    }

    /// Records the number of rows that a run returned, and the uncorrected estimate.
    pub fn gave(&mut self, shape: &Shape, rows: f64, estimated: f64) {
        self.add(shape, ROWS, (rows + 1.0) / (estimated + 1.0));
    }

    /// Records the seconds that decoding terms took, and the uncorrected prediction.
    pub fn showed(&mut self, shape: &Shape, measured: f64, predicted: f64) {
        self.add(shape, TERMS, measured / predicted);
    }

    fn add(&mut self, shape: &Shape, of: usize, ratio: f64) {
        if !ratio.is_finite() || ratio <= 0.0 {
            return;
        }
        let most = if of == ROWS { FARTHEST_ROWS } else { FARTHEST };
        for key in [shape.exact, shape.general()] {
            self.entry(key).means[of].add(ratio.ln(), most, of < ROWS);
        }
        self.changed = true;
    }

    /// Records a use of a plan; returns the number of recent ones, including this one.
    pub fn used(&mut self, shape: &Shape) -> f64 {
        let recent = self.uses(shape) + 1.0;
        let entry = self.entry(shape.exact);
        (entry.uses, entry.counted) = (recent, Some(Instant::now()));
        recent
    }

    /// Number of recent uses of a plan, each weighted by its age.
    pub fn uses(&self, shape: &Shape) -> f64 {
        let Some(entry) = self.shapes.get(&shape.exact) else {
            return 0.0;
        };
        let since = entry.counted.map_or(0.0, |t| t.elapsed().as_secs_f64());
        entry.uses * (-since / HALF_LIFE * std::f64::consts::LN_2).exp()
    }

    /// True if this side has neither a run nor a trial of the shape.
    pub fn is_untried(&self, shape: &Shape, side: Side) -> bool {
        let keys = [shape.exact, shape.general()];
        keys.iter().all(|k| {
            self.shapes
                .get(k)
                .is_none_or(|s| s.means[side as usize].runs == 0 && !s.tried[side as usize])
        })
    }

    /// True if the side that was not chosen should execute the plan nevertheless, to measure it again: it may in fact
    /// be faster (see [`DOUBT`]), and enough time was saved up to pay for one run on it. `seconds` are the predictions
    /// for the chosen side and for the other one; `plain` is the other side's uncorrected prediction.
    pub fn recheck(&mut self, shape: &Shape, chosen: Side, seconds: [f64; 2], plain: f64) -> bool {
        let other = match chosen {
            Side::Cpu => Side::Gpu,
            Side::Gpu => Side::Cpu,
        };
        let [here, there] = seconds;
        let at_best = match self.mean(shape, other as usize) {
            None => return false,
            Some(mean) if mean.runs < TRUSTED => plain.min(there / DOUBT),
            Some(_) => there / DOUBT,
        };
        let entry = self.entry(shape.exact);
        if entry.chosen.replace(chosen) != Some(chosen) {
            (entry.saved, entry.in_vain) = (0.0, 0);
        }
        if at_best >= here {
            return false;
        }
        entry.saved += RECHECKED * here * 0.5f64.powi(entry.in_vain);
        if entry.saved < there {
            return false;
        }
        entry.saved = 0.0;
        entry.in_vain = (entry.in_vain + 1).min(MOST_HALVINGS);
        true
    }

    /// Records that a side without runs is being tried, so that it is tried only once.
    pub fn trying(&mut self, shape: &Shape, side: Side) {
        for key in [shape.exact, shape.general()] {
            self.entry(key).tried[side as usize] = true;
        }
    }

    /// JSON form: for each shape its hash and `[log, runs]` for CPU, GPU, rows and terms, the most recently used last.
    pub fn to_json(&self) -> Value {
        let mut all: Vec<_> = self.shapes.iter().collect();
        all.retain(|(_, s)| s.means.iter().any(|m| m.runs > 0));
        all.sort_unstable_by_key(|(_, s)| s.last);
        let lines = all.into_iter().map(|(key, s)| {
            let hash = json!(format!("{key:016x}"));
            let means = s.means.map(Mean::to_json);
            Value::Array(std::iter::once(hash).chain(means).collect())
        });
        Value::Array(lines.collect())
    }

    /// Parses the plausible entries of this form and ignores everything else.
    pub fn from_json(v: &Value) -> Self {
        let mut out = Self::default();
        let rows = v.as_array().map_or(&[][..], Vec::as_slice);
        for row in rows.iter().rev().take(MOST).rev() {
            let key = row.get(0).and_then(Value::as_str);
            let key = key.and_then(|k| u64::from_str_radix(k, 16).ok());
            let means: Option<Vec<Mean>> = (1..=MEANS)
                .map(|i| row.get(i).and_then(Mean::from_json))
                .collect();
            if let (Some(key), Some(means)) = (key, means.and_then(|m| m.try_into().ok())) {
                out.entry(key).means = means;
            }
        }
        out
    }
}

/// The key in a device's JSON object under which the learned ratios are stored.
pub(super) const MEMBER: &str = "runs";

/// Stores the learned ratios in a device's JSON object.
pub(super) fn store(into: &mut Map<String, Value>, learnt: &Learnt) {
    into.insert(MEMBER.into(), learnt.to_json());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(n: u32) -> Shape {
        Shape::recorded(&format!("keys expand{n};"), "a query")
    }

    #[test]
    fn the_nearest_runs_correct_a_prediction() {
        let mut l = Learnt::default();
        let (seen, alike) = (shape(1), Shape::recorded(&shape(1).text, "another"));
        assert_eq!(
            l.correction(&seen, Side::Cpu),
            Correction {
                factor: 1.0,
                runs: 0
            }
        );
        l.ran(&seen, Side::Cpu, 3.0, 1.0);
        assert!((l.correction(&seen, Side::Cpu).factor - 3.0).abs() < 1e-9);
        assert!((l.correction(&alike, Side::Cpu).factor - 3.0).abs() < 1e-9);
        assert_eq!(l.correction(&seen, Side::Gpu).runs, 0);
        // Plans over other predicates have their own mean as soon as one has run.
        l.ran(&alike, Side::Cpu, 0.5, 1.0);
        assert!((l.correction(&alike, Side::Cpu).factor - 0.5).abs() < 1e-9);
        assert!((l.correction(&seen, Side::Cpu).factor - 3.0).abs() < 1e-9);
        // A shape without runs gets the median of many.
        assert_eq!(l.correction(&shape(2), Side::Cpu).factor, 1.0);
        for n in 10..20 {
            l.ran(&shape(n), Side::Cpu, 2.0, 1.0);
        }
        let median = l.correction(&shape(2), Side::Cpu);
        assert!((median.factor - 2.0).abs() < 1e-9 && median.runs == 0);
    }

    #[test]
    fn one_wild_time_moves_little_and_nonsense_nothing() {
        let (mut l, s) = (Learnt::default(), shape(1));
        (0..20).for_each(|_| l.ran(&s, Side::Gpu, 1.0, 1.0));
        l.ran(&s, Side::Gpu, 1e9, 1.0);
        assert!(l.correction(&s, Side::Gpu).factor < 1.4);
        for (measured, predicted) in [(0.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0), (-1.0, 1.0)] {
            l.ran(&s, Side::Gpu, measured, predicted);
        }
        assert_eq!(l.correction(&s, Side::Gpu).runs, 21);
        (0..40).for_each(|_| l.ran(&s, Side::Gpu, 4.0, 1.0));
        assert!((l.correction(&s, Side::Gpu).factor - 4.0).abs() < 0.1);
    }

    #[test]
    fn a_side_is_tried_once() {
        let (mut l, s) = (Learnt::default(), shape(1));
        assert!(l.is_untried(&s, Side::Gpu));
        l.trying(&s, Side::Gpu);
        assert!(!l.is_untried(&s, Side::Gpu) && l.is_untried(&s, Side::Cpu));
        l.ran(&s, Side::Cpu, 1.0, 1.0);
        assert!(!l.is_untried(&s, Side::Cpu));
        assert_eq!((l.uses(&s), l.used(&s)), (0.0, 1.0));
        assert!((l.used(&s) - 2.0).abs() < 0.01);
    }

    /// One slow run of a side must not rule it out for ever, and trying a slower side again must cost little.
    #[test]
    fn the_other_side_is_asked_again() {
        let (mut l, s) = (Learnt::default(), shape(1));
        let asked = |l: &mut Learnt, runs: usize, there: f64, plain: f64| {
            let asked = (0..runs).filter(|_| l.recheck(&s, Side::Cpu, [1.0, there], plain));
            asked.count()
        };
        // `recheck` does not choose a side without runs; trials do that.
        assert_eq!(asked(&mut l, 1000, 0.5, 0.5), 0);
        // One run took a hundred times as long as estimated.
        l.ran(&s, Side::Gpu, 50.0, 0.5);
        assert_eq!(asked(&mut l, 999, 50.0, 0.5), 0);
        assert_eq!(asked(&mut l, 2, 50.0, 0.5), 1);
        // The next one takes the usual time.
        l.ran(&s, Side::Gpu, 0.6, 0.5);
        assert!((l.correction(&s, Side::Gpu).factor - 1.2).abs() < 1e-9);
        // After the other side was chosen, the saved time starts from zero.
        assert!(!l.recheck(&s, Side::Gpu, [0.6, 1.0], 1.0));
        // A side that is known to be three times slower is not tried; one that is 1.5 times slower is tried more and
        // more rarely.
        (0..9).for_each(|_| l.ran(&s, Side::Gpu, 3.0, 0.5));
        assert_eq!(asked(&mut l, 10_000, 3.0, 0.5), 0);
        let first = asked(&mut l, 1000, 1.5, 0.5);
        let later = asked(&mut l, 1000, 1.5, 0.5);
        assert!(
            (4..=8).contains(&first) && later < first,
            "{first}, {later}"
        );
    }

    #[test]
    fn documents_keep_what_was_learnt_and_nothing_that_is_none() {
        let mut l = Learnt::default();
        for n in 0..5000 {
            l.ran(&shape(n), Side::Cpu, 2.0, 1.0);
            l.ran(&shape(n), Side::Gpu, 0.5, 1.0);
            l.gave(&shape(n), 99.0, 9.0);
        }
        assert!(l.shapes.len() <= MOST);
        let again = Learnt::from_json(&l.to_json());
        let last = shape(4999);
        assert_eq!(
            again.correction(&last, Side::Gpu),
            l.correction(&last, Side::Gpu)
        );
        assert!((again.rows(&last) - 10.0).abs() < 1e-9 && again.rows(&shape(9999)) == 1.0);
        assert_eq!(again.shapes.len(), l.shapes.len());
        assert!(!again.changed);
        // Of a longer document, the most recent entries are read.
        let rows: Vec<Value> = (0..10_000u64)
            .map(|n| json!([format!("{n:x}"), [0.5, 1], [0.0, 0], [0.0, 0], [0, 0]]))
            .collect();
        let long = Learnt::from_json(&Value::Array(rows));
        assert!(long.shapes.len() <= MOST && long.shapes.contains_key(&9999));
        for damaged in [
            json!(null),
            json!({"a": 1}),
            json!([1, "x", [], ["zz", [0, 1], [0, 1], [0, 1], [0, 1]]]),
            json!([["1", [99.0, 1], [0, 1], [0, 1], [0, 1]]]),
            json!([["2", ["x", 1], [0, 1], [0, 1], [0, 1]]]),
            json!([
                ["3", [0.1, -1], [0, 1], [0, 1], [0, 1]],
                ["4", [0.1, 1], [0.1, 1], [0, 1]]
            ]),
        ] {
            assert!(Learnt::from_json(&damaged).shapes.is_empty(), "{damaged}");
        }
    }
}
