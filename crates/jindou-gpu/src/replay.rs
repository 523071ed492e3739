//! Recorded runs, and what the cost model would have predicted and chosen before each. `tests/recorded/` has runs of an
//! H200.
//!
//! Each line of a file of records is a JSON object: `{"work": …}` is the work of a query at a scale, `{"ms": …}` is a
//! run of it, and others are comments. `"takers"` is the number of threads that consumed the device's rows in a run;
//! without it, that was one, as in the runs of the H200.

use crate::cost::{Calibration, Chooser, PlanWork, RowsUse};
use jindou_plan::LIGHT_COST;
use rustc_hash::FxHashMap;
use serde_json::Value;

/// Milliseconds that a query over HTTP takes in addition to its execution: for the request, planning, and the response.
const SERVED_MS: f64 = 0.3;
/// Factor by which recorded times must differ for the choice to matter.
const MATTERS: f64 = 1.5;

/// A recorded run.
#[derive(Clone, Debug)]
pub struct RecordedRun {
    /// The query's name.
    pub query: String,
    /// The scale of the data: LUBM universities.
    pub universities: u32,
    /// Name of the measurement that it belongs to.
    pub stage: String,
    /// True for a run on the device.
    pub there: bool,
    /// Number of CPU threads.
    pub threads: usize,
    /// How the rows were used.
    pub rows: RowsUse,
    /// The recorded time in milliseconds.
    pub ms: f64,
    /// Number of result rows.
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

/// The runs that the model has learned from before it predicts a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// No runs: the prediction uses the calibration only.
    Calibration,
    /// The runs of all other queries.
    OtherQueries,
    /// The runs of all other queries, and of this query at other scales.
    OtherScales,
    /// All runs except those of this query, at this scale, on the device.
    Here,
    /// All runs, including the predicted one.
    All,
}

impl Knowledge {
    /// All kinds, from the least to the most knowledge.
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

/// The choice that the model would have made between two recorded runs of a query.
#[derive(Clone, Debug)]
pub struct JudgedChoice {
    /// Numbers of the run on the CPU and of the run on the device in [`Records::runs`].
    pub runs: [usize; 2],
    /// The predicted milliseconds on the CPU and on the device.
    pub predicted: [f64; 2],
    /// True if the device would have been chosen.
    pub there: bool,
    /// True if the slower side was chosen although the choice matters.
    pub is_wrong: bool,
    /// True if the recorded times differ by at least a factor of 1.5.
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
    /// The first line that is not a record.
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

    /// The work of a run, with the number of threads that consumed its rows when it was recorded.
    fn work(&self, run: &RecordedRun) -> Option<PlanWork> {
        Some(self.work_of(run)?.taken_by(run.takers))
    }

    /// The work of a run, with as many threads consuming its rows as today's executor uses.
    #[must_use]
    pub fn work_of(&self, run: &RecordedRun) -> Option<PlanWork> {
        let of = |w: &&(String, u32, PlanWork)| w.0 == run.query && w.1 == run.universities;
        Some(self.works.iter().find(of)?.2.with_use(run.rows))
    }

    /// A model that has learned from the runs that `knows` allows, to predict a run of this query at this scale.
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

    /// The predicted milliseconds of each run; `None` for runs whose work is not recorded.
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

    /// The choices for all pairs of runs on the device and on the CPU with the same query, data, measurement and use of
    /// rows. The segments are assumed to be on the device.
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
