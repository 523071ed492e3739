//! ATC '18's tables 5 and 6 and figures 11 and 12 in milliseconds, alongside the paper's figures. The paper's queries
//! need 2.4 to 5.6 GB on LUBM-2560, on a K40m. Jindou's segments are smaller, so each cap on memory is measured twice:
//! with as many bytes, and with the same share of the bytes that the query needs, so that the same share has to be
//! swapped. A query whose largest step does not fit runs on the CPU, so a third cap is the size of that step.

use crate::figures::{Goal, say_figure, say_wrong};
use crate::lubm::{here, planned};
use crate::transfers::memory_for_blocks;
use crate::{Options, median};
use jindou_gpu::shim::{Shim, ShimOptions};
use jindou_gpu::{Backend, GpuExecutor, GpuOptions, PagingOptions, ResultUse};
use jindou_model::{Error, Result};
use jindou_plan::Plan;
use jindou_store::{Snapshot, open};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Page size of the emulated GPU, small so that little data has many pages.
const SHIM_PAGE: usize = 1 << 10;
/// The paper's caps on GPU memory in gigabytes.
const CAPS: [f64; 3] = [3.0, 6.0, 10.0];
/// Share of the stage's time that is reserved for figure 12.
const MIX: f64 = 0.3;
/// Queries that run at once in figure 12, and the timeout of each of its runs.
const CLIENTS: usize = 4;
const MIX_TIME: Duration = Duration::from_secs(8);
/// Time after which an idle device frees its memory. Long, so that it never does here.
const IDLE: Duration = Duration::from_secs(600);

/// The paper's figures of a query.
struct Paper {
    query: &'static str,
    /// Gigabytes that its segments take.
    wants: f64,
    /// Milliseconds with enough memory (its table 3).
    alone: f64,
    /// Milliseconds with 3 GB (its table 5), when data is swapped per query, per pattern, per block, and per block with
    /// the pipeline; `None` for a query that does not fit.
    steps: [Option<f64>; 4],
    /// Milliseconds on ten servers and LUBM-10240, without and with copies from GPU to GPU (its table 6).
    servers: [f64; 2],
}

const PAPER: [Paper; 4] = [
    Paper {
        query: "L1",
        wants: 3.6,
        alone: 165.0,
        steps: [None, Some(743.0), Some(313.0), Some(295.0)],
        servers: [222.0, 211.0],
    },
    Paper {
        query: "L2",
        wants: 2.4,
        alone: 31.0,
        steps: [Some(284.0), Some(283.0), Some(32.0), Some(31.0)],
        servers: [13.0, 13.0],
    },
    Paper {
        query: "L3",
        wants: 3.6,
        alone: 63.0,
        steps: [None, Some(309.0), Some(62.0), Some(63.0)],
        servers: [22.0, 22.0],
    },
    Paper {
        query: "L7",
        wants: 5.6,
        alone: 100.0,
        steps: [None, Some(893.0), Some(622.0), Some(610.0)],
        servers: [103.0, 98.0],
    },
];
/// The paper's figure 12: geometric means of the queries' medians and 99th percentiles in milliseconds, and megabytes
/// uploaded per second.
const PAPER_MIX: [f64; 3] = [84.5, 93.8, 750.0];

/// A query, its plan, the right answer, and the memory that it needs.
struct Heavy {
    paper: &'static Paper,
    plan: Plan,
    right: (u64, u64),
    /// Bytes of all of its segments; `steps` has those of each step.
    query: u64,
    steps: Vec<u64>,
}

/// Runs that gave the right answer.
#[derive(Default)]
struct Runs {
    ms: Vec<f64>,
    /// Bytes of the blocks that were uploaded in the last run, and the number of times its tables were divided.
    came: u64,
    cuts: u64,
}

struct Stage<'o> {
    o: &'o Options,
    backend: Arc<dyn Backend>,
    snapshot: Snapshot,
    heavy: Vec<Heavy>,
    right: bool,
    left_out: Vec<String>,
}

/// The device; if emulated, with small pages.
fn backend(o: &Options) -> Result<Arc<dyn Backend>> {
    if o.is_shim() {
        return Ok(Arc::new(Shim::open(ShimOptions {
            page: SHIM_PAGE,
            ..ShimOptions::default()
        })?));
    }
    jindou_gpu::open().map_err(Error::Unsupported)
}

impl<'o> Stage<'o> {
    fn new(o: &'o Options) -> Result<Self> {
        let backend = backend(o)?;
        let snapshot = Snapshot::of_base(open(&o.store)?);
        let counting = GpuExecutor::limited(Arc::clone(&backend), u64::MAX, IDLE);
        let mut heavy = vec![];
        for paper in &PAPER {
            let plan = planned(paper.query, &snapshot)?;
            let (sum, _) = here(&plan, &snapshot, o.threads, 1)?;
            let wants = counting.transfers(&plan, &snapshot, 0)?;
            heavy.push(Heavy {
                paper,
                right: (sum.rows, sum.checksum),
                plan,
                query: wants.query,
                steps: wants.steps,
            });
        }
        Ok(Self {
            o,
            backend,
            snapshot,
            heavy,
            right: true,
            left_out: vec![],
        })
    }

    /// An executor with this much memory (`None`: all of the device's) and these options for blocks.
    fn executor(&self, memory: Option<u64>, paging: PagingOptions) -> GpuExecutor {
        let memory = memory.unwrap_or(u64::MAX);
        GpuExecutor::limited(Arc::clone(&self.backend), memory, IDLE).with_paging(paging)
    }

    /// Memory with which blocks have the same share of the bytes that a query needs as `gb` gigabytes have in the
    /// paper.
    fn part(&self, heavy: &Heavy, gb: f64) -> u64 {
        let bytes = heavy.query as f64 * gb / heavy.paper.wants;
        memory_for_blocks(&*self.backend, bytes as u64)
    }

    /// True if only the time that is reserved for figure 12 is left; then `what` is noted as left out.
    fn is_late(&mut self, what: &str) -> bool {
        let budget = self.o.seconds.unwrap_or(3600.0);
        let is_late = self.o.left().as_secs_f64() <= MIX * budget;
        if is_late {
            self.left_out.push(what.to_owned());
        }
        is_late
    }

    /// If a query is known to have no rows, prints that it reads nothing, so that nothing is swapped, and returns true.
    fn is_empty(&self, what: &str, heavy: usize) -> bool {
        let is_empty = self.heavy[heavy].query == 0;
        if is_empty {
            let more =
                json!({ "query": self.heavy[heavy].paper.query, "place": "known to be empty" });
            say_figure(self.o, what, "ms", None, None, more);
        }
        is_empty
    }

    /// Runs a query warm: twice, then `repeat` times that count. With `cold` the device has no segments before each
    /// run, and all runs count. `None` if the query was left to the CPU.
    fn runs(
        &mut self,
        gpu: &GpuExecutor,
        heavy: usize,
        what: &str,
        cold: bool,
    ) -> Result<Option<Runs>> {
        let Heavy { plan, right, .. } = &self.heavy[heavy];
        let mut runs = Runs::default();
        let warm_up = if cold { 0 } else { 2 };
        for run in 0..self.o.repeat.min(7) + warm_up {
            if run > warm_up && self.o.is_over() {
                break;
            }
            if cold {
                gpu.cache().clear();
            }
            let began = Instant::now();
            let done = gpu.execute(
                plan,
                &self.snapshot,
                ResultUse::Checksum,
                &GpuOptions::default(),
            );
            let ms = began.elapsed().as_secs_f64() * 1e3;
            match done {
                Ok(r) => {
                    let got = (r.rows, r.checksum.unwrap_or(0));
                    if got != *right {
                        self.right = false;
                        say_wrong(what, &format!("{right:?}"), &format!("{got:?}"));
                    }
                    (runs.came, runs.cuts) = (r.profile.paged_in, r.profile.cuts);
                }
                Err(Error::Limit(_) | Error::Unsupported(_)) => return Ok(None),
                Err(e) => return Err(e),
            }
            if run >= warm_up {
                runs.ms.push(ms);
            }
        }
        Ok(Some(runs))
    }

    fn say(&self, what: &str, paper: Option<f64>, runs: Option<&mut Runs>, mut more: Value) {
        let had = runs.map(|r| {
            more["came_mb"] = json!(r.came as f64 / 1e6);
            more["cuts"] = json!(r.cuts);
            more["runs"] = json!(r.ms.len());
            median(&mut r.ms)
        });
        if had.is_none() && more["place"].is_null() {
            more["place"] = json!("left to the CPU");
        }
        say_figure(self.o, what, "ms", paper.map(Goal::AtMost), had, more);
    }

    /// Table 5: the gain of each mechanism with 3 GB.
    fn table_5(&mut self, heavy: usize) -> Result<()> {
        let Heavy {
            paper,
            query,
            ref steps,
            ..
        } = self.heavy[heavy];
        let largest = steps.iter().copied().max().unwrap_or(0);
        let every: u64 = steps.iter().sum();
        let name = paper.query;
        let memory = self.part(&self.heavy[heavy], CAPS[0]);
        let what = format!("table 5, {name}");
        if self.is_late(&what) || self.is_empty(&what, heavy) {
            return Ok(());
        }
        let blocks = (query as f64 * CAPS[0] / paper.wants) as u64;
        let more = json!({ "table": 5, "query": name, "wants_mb": query as f64 / 1e6, "memory_mb": memory as f64 / 1e6 });
        // Upload of all segments before the query, of which none stays on the device.
        let all = self.executor(None, PagingOptions::default());
        let cold = self.runs(&all, heavy, &what, true)?;
        let warm = self.runs(&all, heavy, &what, false)?;
        let (Some(mut cold), Some(mut warm)) = (cold, warm) else {
            self.say(&what, None, None, more);
            return Ok(());
        };
        let (cold_ms, warm_ms) = (median(&mut cold.ms), median(&mut warm.ms));
        let fits = query <= blocks;
        let mut whole = more.clone();
        if !fits {
            whole["place"] = json!("does not fit");
        }
        self.say(
            &format!("{what}, per query"),
            paper.steps[0],
            Some(&mut cold).filter(|_| fits),
            whole,
        );
        // Jindou cannot swap per pattern. Its time is computed: the bytes of each step's segments at the measured rate
        // of uploads, plus the time of the steps.
        let pattern = warm_ms + (cold_ms - warm_ms).max(0.0) * every as f64 / query.max(1) as f64;
        let mut computed = more.clone();
        computed["computed"] = json!(true);
        let goal = paper.steps[1].map(Goal::AtMost);
        let had = (largest <= blocks).then_some(pattern);
        if had.is_none() {
            computed["place"] = json!("does not fit");
        }
        say_figure(
            self.o,
            &format!("{what}, per pattern"),
            "ms",
            goal,
            had,
            computed,
        );
        for (i, prefetch) in [(2, false), (3, true)] {
            let options = PagingOptions {
                prefetch,
                ..PagingOptions::default()
            };
            let gpu = self.executor(Some(memory), options);
            let how = if prefetch { "pipeline" } else { "per block" };
            let mut runs = self.runs(&gpu, heavy, &what, false)?;
            self.say(
                &format!("{what}, {how}"),
                paper.steps[i],
                runs.as_mut(),
                more.clone(),
            );
        }
        Ok(())
    }

    /// The time with memory for the largest step only, so that blocks are evicted and uploaded between the steps.
    fn least(&mut self, heavy: usize) -> Result<()> {
        let Heavy {
            paper,
            query,
            ref steps,
            ..
        } = self.heavy[heavy];
        let name = paper.query;
        let largest = steps.iter().copied().max().unwrap_or(0);
        let what = format!("figure 11, {name}, memory for its largest step");
        if self.is_late(&what) {
            return Ok(());
        }
        let memory = memory_for_blocks(&*self.backend, largest);
        let gpu = self.executor(Some(memory), PagingOptions::default());
        let mut runs = self.runs(&gpu, heavy, &what, false)?;
        let more = json!({
            "figure": 11, "query": name, "wants_mb": query as f64 / 1e6, "step_mb": largest as f64 / 1e6,
            "memory": memory,
        });
        self.say(&what, paper.steps[3], runs.as_mut(), more);
        Ok(())
    }

    /// Figure 11: the time by memory. Also table 6, whose goals apply only to LUBM-10240, ten times the paper's usual
    /// data.
    fn figure_11(&mut self, heavy: usize) -> Result<()> {
        let paper = self.heavy[heavy].paper;
        let name = paper.query;
        if self.is_empty(&format!("figure 11 and table 6, {name}"), heavy) {
            return Ok(());
        }
        self.least(heavy)?;
        for gb in CAPS.into_iter().map(Some).chain([None]) {
            for is_part in [false, true] {
                let what = match (gb, is_part) {
                    (Some(gb), false) => format!("figure 11, {name}, {gb} GB"),
                    (Some(gb), true) => format!("figure 11, {name}, {gb} GB in proportion"),
                    (None, false) => format!("figure 11, {name}, all memory"),
                    (None, true) => continue,
                };
                if self.is_late(&what) {
                    continue;
                }
                let memory = match (gb, is_part) {
                    (Some(gb), true) => Some(self.part(&self.heavy[heavy], gb)),
                    (Some(gb), false) => Some((gb * 1e9) as u64),
                    (None, _) => None,
                };
                // For other caps the paper has only a curve, so the goal is its time with less memory.
                let goal = match gb {
                    Some(gb) if gb < paper.wants + 1.0 => paper.steps[3],
                    _ => Some(paper.alone),
                };
                let gpu = self.executor(memory, PagingOptions::default());
                let mut runs = self.runs(&gpu, heavy, &what, false)?;
                let more = json!({ "figure": 11, "query": name, "gb": gb, "in_proportion": is_part, "memory": memory });
                self.say(&what, goal, runs.as_mut(), more);
            }
        }
        let what = format!("table 6, {name}");
        if self.is_late(&what) {
            return Ok(());
        }
        // In the paper, servers exchange intermediate rows; here they stay on one GPU, and at most the answer crosses
        // the link.
        let is_theirs = self.o.universities == 10_240;
        let gpu = self.executor(None, PagingOptions::default());
        let mut more = json!({ "table": 6, "query": name, "universities": self.o.universities, "paper_ms": paper.servers });
        if !is_theirs {
            more["needs"] = json!("LUBM-10240: bench/gpu.sh queries 10240");
        }
        let mut runs = self.runs(&gpu, heavy, &what, false)?;
        let goal = is_theirs.then_some(paper.servers[1]);
        self.say(
            &format!("{what}, rows stay on the card"),
            goal,
            runs.as_mut(),
            more.clone(),
        );
        let (mut ms, mut rows) = (vec![], 0);
        for _ in 0..self.o.repeat.min(7) + 1 {
            rows = 0;
            let mut sink = |_: &[&[u32]], n: usize| {
                rows += n as u64;
                Ok(())
            };
            let (plan, output) = (&self.heavy[heavy].plan, ResultUse::Rows(&mut sink));
            let began = Instant::now();
            gpu.execute(plan, &self.snapshot, output, &GpuOptions::default())?;
            ms.push(began.elapsed().as_secs_f64() * 1e3);
        }
        let had = median(&mut ms[1..]);
        more["rows"] = json!(rows);
        let goal = is_theirs.then_some(Goal::AtMost(paper.servers[0]));
        say_figure(
            self.o,
            &format!("{what}, rows cross the link"),
            "ms",
            goal,
            Some(had),
            more,
        );
        Ok(())
    }

    /// Figure 12: a mix of the four queries with 10 GB.
    fn figure_12(&mut self, is_part: bool, time: Duration) -> Result<()> {
        let gb = CAPS[2];
        let wanted: u64 = self.heavy.iter().map(|h| h.query).sum();
        let papers: f64 = self.heavy.iter().map(|h| h.paper.wants).sum();
        let memory = match is_part {
            true => memory_for_blocks(&*self.backend, (wanted as f64 * gb / papers) as u64),
            false => (gb * 1e9) as u64,
        };
        let how = if is_part { " in proportion" } else { "" };
        let what = format!("figure 12, {gb} GB{how}");
        let gpu = self.executor(Some(memory), PagingOptions::default());
        // The queries that run with this memory at all.
        let mut runs_there = vec![];
        for i in 0..self.heavy.len() {
            if self.runs(&gpu, i, &what, false)?.is_some() {
                runs_there.push(i);
            }
        }
        if runs_there.is_empty() {
            say_figure(
                self.o,
                &what,
                "ms",
                None,
                None,
                json!({ "figure": 12, "place": "left to the CPU" }),
            );
            return Ok(());
        }
        let mix = self.mix(&gpu, &runs_there, time)?;
        if mix.wrong > 0 {
            self.right = false;
            say_wrong(
                &what,
                "the CPU's rows and checksums",
                &format!("{} others", mix.wrong),
            );
        }
        let means = self.say_latencies(&what, &mix.seen);
        let more = json!({
            "figure": 12, "memory": memory, "in_proportion": is_part, "clients": CLIENTS, "seconds": mix.seconds,
            "a_second": mix.seen.len() as f64 / mix.seconds, "refused": mix.refused,
            "came_mb_a_second": mix.came as f64 / 1e6 / mix.seconds, "paper_mb_a_second": PAPER_MIX[2],
        });
        for (i, which) in ["medians", "99th percentiles"].into_iter().enumerate() {
            let of = format!("{what}, geometric mean of {which}");
            let goal = Some(Goal::AtMost(PAPER_MIX[i]));
            say_figure(self.o, &of, "ms", goal, means[i], more.clone());
        }
        Ok(())
    }

    /// Runs these queries from several clients for some time.
    fn mix(&self, gpu: &GpuExecutor, queries: &[usize], time: Duration) -> Result<Mix> {
        let (came, wrong) = (AtomicU64::new(0), AtomicU64::new(0));
        let refused = AtomicU64::new(0);
        let began = Instant::now();
        let client = |number: usize| -> Result<Vec<(usize, f64)>> {
            let mut seen = vec![];
            let mut next = number;
            while began.elapsed() < time {
                let i = queries[next % queries.len()];
                // Each client asks the queries in an order of its own.
                next += 1 + number % 3;
                let Heavy { plan, right, .. } = &self.heavy[i];
                let options = GpuOptions::default();
                let asked = Instant::now();
                match gpu.execute(plan, &self.snapshot, ResultUse::Checksum, &options) {
                    Ok(r) => {
                        seen.push((i, asked.elapsed().as_secs_f64() * 1e3));
                        came.fetch_add(r.profile.paged_in, Ordering::Relaxed);
                        let is_wrong = (r.rows, r.checksum) != (right.0, Some(right.1));
                        wrong.fetch_add(u64::from(is_wrong), Ordering::Relaxed);
                    }
                    // Other queries hold the memory.
                    Err(Error::Limit(_) | Error::Unsupported(_)) => {
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(e) => return Err(e),
                }
            }
            Ok(seen)
        };
        let client = &client;
        let seen: Vec<(usize, f64)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..CLIENTS)
                .map(|n| scope.spawn(move || client(n)))
                .collect();
            let seen: Result<Vec<_>> = threads
                .into_iter()
                .map(|t| {
                    t.join()
                        .unwrap_or_else(|_| Err(Error::Internal("a client panicked".into())))
                })
                .collect();
            seen.map(|s| s.concat())
        })?;
        Ok(Mix {
            seen,
            seconds: began.elapsed().as_secs_f64(),
            came: came.into_inner(),
            wrong: wrong.into_inner(),
            refused: refused.into_inner(),
        })
    }

    /// Prints each query's latencies, and returns the geometric means of the medians and of the 99th percentiles.
    fn say_latencies(&self, what: &str, seen: &[(usize, f64)]) -> [Option<f64>; 2] {
        let (mut logs, mut queries) = ([0.0; 2], 0.0);
        for i in 0..self.heavy.len() {
            let mut ms: Vec<f64> = seen.iter().filter(|s| s.0 == i).map(|s| s.1).collect();
            ms.sort_unstable_by(f64::total_cmp);
            let at = |q: f64| ms.get(((ms.len() - 1) as f64 * q) as usize).copied();
            if ms.is_empty() {
                continue;
            }
            let cdf: Vec<Option<f64>> = (0..=10).map(|d| at(f64::from(d) / 10.0)).collect();
            let (median, last) = (at(0.5).unwrap_or(0.0), at(0.99).unwrap_or(0.0));
            logs[0] += median.max(1e-6).ln();
            logs[1] += last.max(1e-6).ln();
            queries += 1.0;
            let name = self.heavy[i].paper.query;
            let more = json!({ "figure": 12, "query": name, "runs": ms.len(), "p99_ms": last, "deciles_ms": cdf });
            say_figure(
                self.o,
                &format!("{what}, {name}, median"),
                "ms",
                None,
                Some(median),
                more,
            );
        }
        logs.map(|log: f64| (queries > 0.0).then(|| (log / queries).exp()))
    }
}

/// Results that the clients of a mix saw.
struct Mix {
    /// The query and the milliseconds of each run.
    seen: Vec<(usize, f64)>,
    seconds: f64,
    /// Bytes uploaded to the device.
    came: u64,
    wrong: u64,
    refused: u64,
}

pub fn measure(o: &Options) -> Result<bool> {
    let mut stage = Stage::new(o)?;
    for heavy in 0..stage.heavy.len() {
        stage.table_5(heavy)?;
    }
    for heavy in 0..stage.heavy.len() {
        stage.figure_11(heavy)?;
    }
    for (is_part, share) in [(false, 2), (true, 1)] {
        let time = (o.left() / 2 / share).min(MIX_TIME);
        if o.is_over() {
            let how = if is_part { " in proportion" } else { "" };
            stage.left_out.push(format!("figure 12{how}"));
            continue;
        }
        stage.figure_12(is_part, time)?;
    }
    o.say_left_out(&stage.left_out);
    Ok(stage.right)
}
