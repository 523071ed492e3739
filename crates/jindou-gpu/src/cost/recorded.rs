//! The cost model without a device: decisions from given speeds and recorded work, for tests and benchmarks.

use super::{Calibration, Decision, DeviceModel, DeviceNow, Prediction, Shape, Side, WorkEstimate};
use jindou_graph::Graph;
use jindou_model::{Direction, PredicateId};
use jindou_plan::Plan;
use serde_json::{Value, json};

/// The estimated work of a plan, and its shape.
#[derive(Clone, Debug)]
pub struct PlanWork {
    work: WorkEstimate,
    shape: Shape,
}

/// The use that is made of a plan's result rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsUse {
    /// Only the number of rows is copied back.
    Counted,
    /// As `Counted`, and a checksum is computed on the device.
    Summed,
    /// Rows are copied back as ids.
    Sent,
    /// Rows are copied back and decoded to terms.
    Shown,
}

impl PlanWork {
    /// The work of a plan.
    #[must_use]
    pub fn of_plan(plan: &Plan, snapshot: &dyn Graph) -> Self {
        Self {
            work: WorkEstimate::of_plan(plan, snapshot),
            shape: Shape::of_plan(plan, snapshot),
        }
    }

    /// A copy of this work whose rows are used in this way.
    #[must_use]
    pub fn with_use(&self, rows: RowsUse) -> Self {
        let mut out = self.clone();
        let w = &mut out.work;
        let name = match rows {
            RowsUse::Counted => Some("count"),
            RowsUse::Summed => Some("sum"),
            RowsUse::Sent => Some("sent"),
            RowsUse::Shown => None,
        };
        if let Some(name) = name {
            (w.rows, w.columns) = (0.0, 0.0);
            if !out.shape.text.starts_with("count") {
                out.shape = out.shape.inside(name);
            }
        }
        if matches!(rows, RowsUse::Counted | RowsUse::Summed) {
            w.leaving = 0.0;
        }
        // A checksum takes a launch to clear it, a launch to compute it, and a read by the host.
        if rows == RowsUse::Summed && !w.is_empty() {
            w.launches += 2.0;
            w.kernels += 1.0;
            w.syncs += 1.0;
        }
        out
    }

    /// The same work if this many CPU threads process the rows from the device, instead of all threads.
    #[must_use]
    pub fn taken_by(mut self, threads: usize) -> Self {
        self.work.takers = Some(threads);
        self
    }

    /// The shape as text: operators and steps without constants and predicates.
    #[must_use]
    pub fn shape(&self) -> &str {
        &self.shape.text
    }

    /// The planner's estimate of the time on one core, in nanoseconds.
    #[must_use]
    pub fn nanoseconds(&self) -> f64 {
        self.work.cpu_ns
    }

    /// Bytes of the segments that it reads.
    #[must_use]
    pub fn segment_bytes(&self) -> f64 {
        self.work.segments.values().sum()
    }

    /// JSON form of the work.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let w = &self.work;
        let sectors: Vec<Value> = w.sectors.iter().map(|s| json!([s.0, s.1])).collect();
        json!({
            "shape": self.shape.text, "ordered": w.ordered, "sectors": sectors, "launches": w.launches,
            "kernels": w.kernels, "syncs": w.syncs, "segments": self.segment_bytes(), "leaving": w.leaving,
            "rows": w.rows, "columns": w.columns, "passed": w.passed, "steps": w.steps, "cpu_ns": w.cpu_ns,
        })
    }

    /// Parses the JSON form of the work of the query called `name`; `None` unless every figure is present.
    #[must_use]
    pub fn from_json(v: &Value, name: &str) -> Option<Self> {
        let number = |v: &Value| v.as_f64().filter(|n| n.is_finite() && *n >= 0.0);
        let figure = |name: &str| number(v.get(name)?);
        let mut sectors = Vec::new();
        for pair in v.get("sectors")?.as_array()? {
            sectors.push((number(pair.get(0)?)?, number(pair.get(1)?)?));
        }
        let all = (PredicateId(0), Direction::Out);
        Some(Self {
            work: WorkEstimate {
                ordered: figure("ordered")?,
                sectors,
                launches: figure("launches")?,
                kernels: figure("kernels")?,
                syncs: figure("syncs")?,
                segments: [(all, figure("segments")?)].into_iter().collect(),
                leaving: figure("leaving")?,
                rows: figure("rows")?,
                columns: figure("columns")?,
                passed: figure("passed")?,
                takers: None,
                steps: figure("steps")?,
                cpu_ns: figure("cpu_ns")?,
                in_order: None,
            },
            shape: Shape::recorded(v.get("shape")?.as_str()?, name),
        })
    }
}

/// Decides about plans for a device that only its speeds describe.
pub struct Chooser {
    model: DeviceModel,
}

impl Chooser {
    /// A chooser for a device with these speeds.
    #[must_use]
    pub fn new(speeds: Calibration) -> Self {
        Self {
            model: DeviceModel::new(speeds),
        }
    }

    /// The predicted times of a plan; `warm` if its segments are on the device.
    #[must_use]
    pub fn predict(&self, plan: &PlanWork, threads: usize, warm: bool) -> Prediction {
        let now = DeviceNow {
            name: "a GPU of these speeds".into(),
            in_line: 0,
            free: &|| f64::MAX,
            epoch: 0,
            is_there: &|_| warm,
        };
        self.model
            .predict(&plan.work, plan.shape.clone(), threads, now)
    }

    /// Decides about a plan that is executed now.
    pub fn decide(&self, p: &Prediction) -> Decision {
        self.model.decide(p, 0)
    }

    /// Records a run in seconds with its rows, on the device or on the CPU.
    pub fn ran(&self, p: &Prediction, there: bool, seconds: f64, rows: u64) {
        let side = if there { Side::Gpu } else { Side::Cpu };
        self.model.ran(p, side, seconds, rows, false);
    }
}
