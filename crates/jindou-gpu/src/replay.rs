//! Recorded runs, and the predictions and choices that would have been made before each. `tests/recorded/` has the runs
//! of an H200.
//!
//! A line of a file of records is a JSON object: `{"work": …}` for the work of a query at a scale, `{"ms": …}` for a
//! run of it. Other objects are comments. A run has `"takers"`, the number of threads that consumed the device's rows,
//! if it was not one. When the H200's runs were recorded it was one, and they are predicted accordingly.

use crate::cost::{Calibration, Chooser, PlanWork, RowsUse};
use jindou_plan::LIGHT_COST;
use rustc_hash::FxHashMap;
use serde_json::Value;

/// Milliseconds that a query over HTTP takes in addition to its execution: request, planning, answer.
const SERVED_MS: f64 = 0.3;
/// A choice must be right if the recorded times differ by at least this factor.
const MATTERS: f64 = 1.5;

/// A recorded run.
#[derive(Clone, Debug)]
pub struct RecordedRun {
    /// The query's name.
    pub query: String,
    /// The scale of its data.
    pub universities: u32,
    /// The measurement that it belongs to.
    pub stage: String,
    /// True for a run on the device.
    pub there: bool,
    /// Number of CPU threads.
    pub threads: usize,
    /// How the rows were used.
    pub rows: RowsUse,
    /// The recorded time.
    pub ms: f64,
    /// Number of rows of the answer.
    pub gave: u64,
    /// Number of threads that consumed the device's rows.
    pub takers: usize,
}

/// Recorded runs, and the work of their queries.
#[derive(Clone, Debug, Default)]
pub struct Records {
    works: Vec<(String, u32, PlanWork)>,
    /// The runs.
    pub runs: Vec<RecordedRun>,
}

/// The runs that the model has learned from before a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// None; only the calibration.
    Calibration,
    /// The runs of all other queries.
    OtherQueries,
    /// The runs of all other queries, and of this query at other scales.
    OtherScales,
    /// All runs except those of this query on the device.
    Here,
    /// All runs, including the predicted one.
    All,
}

impl Knowledge {
    /// All kinds, from the least to the most.
    pub const ALL: [Self; 5] = [
        Self::Calibration,
        Self::OtherQueries,
        Self::OtherScales,
        Self::Here,
        Self::All,
    ];

    fn has(self, run: &RecordedRun, query: &str, universities: u32) -> bool {
        match self {
            Self::Calibration => false,
            Self::OtherQueries => run.query != query,
            Self::OtherScales => run.query != query || run.universities != universities,
            Self::Here => run.query != query || !run.there,
            Self::All => true,
        }
    }
}

/// The choice between two recorded runs of a query.
#[derive(Clone, Debug)]
pub struct JudgedChoice {
    /// Number of the CPU's run, and of the device's.
    pub runs: [usize; 2],
    /// The predicted milliseconds.
    pub predicted: [f64; 2],
    /// True if the device would have been chosen.
    pub there: bool,
    /// True if the slower side was chosen and the difference matters.
    pub is_wrong: bool,
    /// True if the recorded times differ so much that the choice matters.
    pub matters: bool,
}

fn rows_use(name: &str) -> Option<RowsUse> {
    Some(match name {
        "counted" => RowsUse::Counted,
        "summed" => RowsUse::Summed,
        "sent" => RowsUse::Sent,
        "shown" => RowsUse::Shown,
        _ => return None,
    })
}

impl RecordedRun {
    fn of(v: &Value) -> Option<Self> {
        Some(Self {
            query: v.get("query")?.as_str()?.into(),
            universities: v.get("universities")?.as_u64()?.try_into().ok()?,
            stage: v.get("stage")?.as_str()?.into(),
            there: v.get("on")?.as_str()? == "gpu",
            threads: v.get("threads")?.as_u64()?.try_into().ok()?,
            rows: rows_use(v.get("rows")?.as_str()?)?,
            ms: v.get("ms")?.as_f64().filter(|ms| *ms > 0.0)?,
            gave: v.get("gave")?.as_u64()?,
            takers: match v.get("takers") {
                Some(n) => n.as_u64()?.try_into().ok()?,
                None => 1,
            },
        })
    }

    fn beside(&self) -> f64 {
        if self.stage == "served" {
            SERVED_MS
        } else {
            0.0
        }
    }
}

impl Records {
    /// Parses a file of records.
    ///
    /// # Errors
    /// The line that is not a record.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut out = Self::default();
        for line in text.lines().filter(|l| !l.trim().is_empty()) {
            let wrong = || format!("not a record: {line}");
            let v: Value = serde_json::from_str(line).map_err(|_| wrong())?;
            if let Some(work) = v.get("work") {
                let query = v.get("query").and_then(Value::as_str).ok_or_else(wrong)?;
                let scale = v.get("universities").and_then(Value::as_u64);
                let scale = scale
                    .and_then(|n| u32::try_from(n).ok())
                    .ok_or_else(wrong)?;
                let name = format!("{query}@{scale}");
                let work = PlanWork::from_json(work, &name).ok_or_else(wrong)?;
                out.works.push((query.into(), scale, work));
            } else if v.get("ms").is_some() {
                out.runs.push(RecordedRun::of(&v).ok_or_else(wrong)?);
            }
        }
        Ok(out)
    }

    /// The work of a run, as it was executed then.
    fn work(&self, run: &RecordedRun) -> Option<PlanWork> {
        Some(self.work_of(run)?.taken_by(run.takers))
    }

    /// The work of a run, as it would be executed now.
    #[must_use]
    pub fn work_of(&self, run: &RecordedRun) -> Option<PlanWork> {
        let of = |w: &&(String, u32, PlanWork)| w.0 == run.query && w.1 == run.universities;
        Some(self.works.iter().find(of)?.2.with_use(run.rows))
    }

    /// A model that has learned the runs that `knows` allows before a run of this query.
    fn chooser(
        &self,
        speeds: &Calibration,
        knows: Knowledge,
        query: &str,
        universities: u32,
    ) -> Chooser {
        let chooser = Chooser::new(speeds.clone());
        for run in &self.runs {
            if knows.has(run, query, universities)
                && let Some(work) = self.work(run)
            {
                let p = chooser.predict(&work, run.threads, true);
                let seconds = (run.ms - run.beside()).max(run.ms / 8.0) / 1e3;
                chooser.ran(&p, run.there, seconds, run.gave);
            }
        }
        chooser
    }

    /// The predicted milliseconds of each run whose work is known; `None` for others.
    #[must_use]
    pub fn predict(&self, speeds: &Calibration, knows: Knowledge) -> Vec<Option<f64>> {
        let mut choosers = FxHashMap::default();
        let predicted = self.runs.iter().map(|run| {
            let (query, scale) = (run.query.as_str(), run.universities);
            let chooser = choosers
                .entry((query, scale))
                .or_insert_with(|| self.chooser(speeds, knows, query, scale));
            let p = chooser.predict(&self.work(run)?, run.threads, true);
            let seconds = if run.there { p.gpu() } else { p.cpu };
            Some(seconds * 1e3 + run.beside())
        });
        predicted.collect()
    }

    /// The choice for each pair of runs, one on the device and one on the CPU, of the same query, data, measurement and
    /// use of rows. The segments are assumed to be on the device.
    #[must_use]
    pub fn choose(&self, speeds: &Calibration, knows: Knowledge) -> Vec<JudgedChoice> {
        let (mut out, mut choosers) = (Vec::new(), FxHashMap::default());
        for (there, gpu) in self.runs.iter().enumerate().filter(|(_, r)| r.there) {
            let Some(work) = self.work(gpu).filter(|w| w.nanoseconds() > 0.0) else {
                continue;
            };
            let (query, scale) = (gpu.query.as_str(), gpu.universities);
            let chooser = choosers
                .entry((query, scale))
                .or_insert_with(|| self.chooser(speeds, knows, query, scale));
            let alike = self.runs.iter().enumerate().filter(|(_, r)| {
                !r.there
                    && (&r.query, r.universities, &r.stage)
                        == (&gpu.query, gpu.universities, &gpu.stage)
                    && r.rows == gpu.rows
            });
            for (here, cpu) in alike {
                let p = chooser.predict(&work, cpu.threads, true);
                let is_there = work.nanoseconds() >= LIGHT_COST && p.is_worth_it();
                let faster_there = gpu.ms < cpu.ms;
                let matters = gpu.ms.max(cpu.ms) > MATTERS * gpu.ms.min(cpu.ms);
                out.push(JudgedChoice {
                    runs: [here, there],
                    predicted: [p.cpu * 1e3, p.gpu() * 1e3],
                    there: is_there,
                    is_wrong: matters && is_there != faster_there,
                    matters,
                });
            }
        }
        out
    }
}
