//! The sequence of runs that a command makes.

use super::arrivals::Arrivals;
use super::emulate::{self, Plan, Setup};
use super::http;
use super::machine::Neighbour;
use super::outcome::Outcome;
use super::report::{header, print, print_ratios};
use crate::args::mixed::{BenchMixed, Rate, Scheduling};
use crate::obliger::{AdmissionLimits, Options};
use jindou::Result;
use std::sync::Arc;
use std::time::Duration;

/// In open loops light queries that would wait longer are refused.
const MAX_WAIT: Duration = Duration::from_millis(10);

fn options(s: Scheduling, workers: usize, threads: usize, open: bool) -> Options {
    let limits = AdmissionLimits {
        light: 1 << 16,
        heavy: 256,
        // In a closed loop the number of clients bounds the waiting queries.
        light_wait: if open { MAX_WAIT } else { Duration::MAX },
        heavy_wait: Duration::MAX,
        light_workers: workers,
        heavy_workers: threads,
    };
    Options {
        workers,
        policy: s.policy(),
        stuck_after: Duration::from_micros(200),
        spin: Duration::from_micros(50),
        heavy_threads: threads,
        heavy_workers: threads,
        isolate: s.isolates(),
        limits,
    }
}

/// Makes runs and collects their outcomes.
struct Runs<'a> {
    args: &'a BenchMixed,
    setup: &'a Arc<Setup>,
    done: Vec<Outcome>,
}

impl Runs<'_> {
    fn plan(&self, arrivals: Arrivals, heavy_clients: usize) -> Plan {
        Plan {
            arrivals,
            heavy_clients,
            then: None,
            warm_up: self.args.warm_up,
            duration: self.args.duration,
            seed: self.args.seed,
        }
    }

    fn closed(&self) -> Arrivals {
        Arrivals::Closed {
            clients: self.args.clients,
            window: 4,
        }
    }

    fn open(&self, rate: f64) -> Arrivals {
        Arrivals::Open {
            rate,
            clients: self.args.clients,
        }
    }

    /// Makes a run, and returns its index in `done`.
    fn go(&mut self, title: &str, o: &Options, p: &Plan) -> Result<usize> {
        let outcome = emulate::run(self.setup, o, p, None)?;
        Ok(self.keep(title, outcome))
    }

    fn keep(&mut self, title: &str, outcome: Outcome) -> usize {
        print(title, self.setup, &outcome);
        self.done.push(outcome);
        self.done.len() - 1
    }

    fn outcomes(&self, runs: &[usize]) -> Vec<&Outcome> {
        runs.iter().map(|n| &self.done[*n]).collect()
    }

    /// Light queries on one worker, alone or alongside a thread that runs the heavy queries without a scheduler.
    fn one_worker(&mut self, beside_heavy: bool) -> Result<usize> {
        let o = options(Scheduling::Oblige, 1, 1, false);
        let p = self.plan(self.closed(), 0);
        if !beside_heavy {
            return self.go("1 worker, light alone", &o, &p);
        }
        let neighbour = Neighbour::start(self.setup)?;
        let outcome = emulate::run(self.setup, &o, &p, Some(&neighbour))?;
        neighbour.end()?;
        let title = "1 worker, light beside a bare loop of the heavy queries";
        Ok(self.keep(title, outcome))
    }

    /// Open loops whose rates may be multiples of `peak`, the rate of the closed loop.
    fn open_loops(&mut self, workers: usize, peak: f64) -> Result<()> {
        for rate in &self.args.rates {
            let (per_second, name) = match rate {
                Rate::Absolute(n) => (*n, format!("{n:.0}/s")),
                Rate::OfPeak(x) => (peak * x, format!("{x} × peak")),
            };
            for s in &self.args.scheduling {
                let o = options(*s, workers, 1, true);
                let mut p = self.plan(self.open(per_second), 0);
                // An overload is followed by half of the peak rate.
                p.then = (per_second > peak && peak > 0.0).then_some(peak / 2.0);
                self.go(&format!("{workers} workers, {s}, open loop {name}"), &o, &p)?;
            }
        }
        Ok(())
    }

    /// Light queries alongside heavy ones. Each run follows one of a single worker without heavy queries, the baseline.
    fn beside_heavy(&mut self, workers: usize, threads: usize, clients: usize) -> Result<()> {
        let a = self.args;
        let title = format!("{workers} workers, heavy alone on {threads}");
        let o = options(a.scheduling[0], workers, threads, false);
        let heavy = self.go(&title, &o, &self.plan(Arrivals::None, clients))?;
        // With one worker, or if heavy queries may use all workers, there is no core for a fair comparison.
        let fair = workers > threads;
        let (mut alone, mut bare) = (vec![], vec![]);
        let mut beside = vec![vec![]; a.scheduling.len()];
        for _ in 0..a.rounds.max(1) {
            if fair {
                alone.push(self.one_worker(false)?);
                bare.push(self.one_worker(true)?);
            }
            for (s, beside) in a.scheduling.iter().zip(&mut beside) {
                let title = format!("{workers} workers, {s}, light beside heavy on {threads}");
                let o = options(*s, workers, threads, false);
                beside.push(self.go(&title, &o, &self.plan(self.closed(), clients))?);
            }
        }
        for (s, beside) in a.scheduling.iter().zip(&beside).filter(|_| fair) {
            let title = format!("{workers} workers, {s}");
            let (beside, heavy) = (self.outcomes(beside), &self.done[heavy]);
            let than = "one core alone";
            print_ratios(&title, than, &self.outcomes(&alone), &beside, Some(heavy));
            let than = "one core beside a bare loop of the heavy queries";
            print_ratios(&title, than, &self.outcomes(&bare), &beside, None);
        }
        for rate in &a.rates {
            let Rate::Absolute(n) = rate else { continue };
            for s in &a.scheduling {
                let title =
                    format!("{workers} workers, {s}, open loop {n:.0}/s beside heavy on {threads}");
                let o = options(*s, workers, threads, true);
                self.go(&title, &o, &self.plan(self.open(*n), clients))?;
            }
        }
        Ok(())
    }
}

/// Makes the runs within the process.
pub fn all(a: &BenchMixed, setup: &Arc<Setup>) -> Result<()> {
    header(setup);
    let mut runs = Runs {
        args: a,
        setup,
        done: vec![],
    };
    let heavy = if setup.heavy.is_empty() || a.freely {
        0
    } else {
        a.heavy_clients
    };
    for &workers in &a.workers {
        if !a.only_heavy {
            let mut peak: f64 = 0.0;
            for s in &a.scheduling {
                for &threads in a
                    .mt_threshold
                    .iter()
                    .take(if a.freely { usize::MAX } else { 1 })
                {
                    // Without heavy queries the number of their threads makes no difference.
                    let threads = threads.min(workers);
                    let o = options(*s, workers, threads, false);
                    let title = match a.freely {
                        true => format!("{workers} workers, {s}, light and heavy on {threads}"),
                        false => format!("{workers} workers, {s}, light alone"),
                    };
                    let at = runs.go(&title, &o, &runs.plan(runs.closed(), 0))?;
                    peak = peak.max(runs.done[at].light_rate());
                }
            }
            runs.open_loops(workers, peak)?;
        }
        if heavy > 0 {
            for &threads in &a.mt_threshold {
                runs.beside_heavy(workers, threads.min(workers), heavy)?;
            }
        }
    }
    Ok(())
}

/// The light mix over HTTP, alone and alongside heavy queries: one query per request, then batches or pipelined
/// requests if asked for.
pub fn over_http(a: &BenchMixed, setup: &Arc<Setup>) -> Result<()> {
    let mut ways = vec![("one a request".to_owned(), 1, 1)];
    if a.pipeline > 1 {
        ways.push((format!("{} pipelined", a.pipeline), 1, a.pipeline));
    }
    if a.batch > 1 {
        ways.push((format!("{} a batch", a.batch), a.batch, 1));
    }
    header(setup);
    for (name, batch, pipeline) in ways {
        let travel = http::Travel { batch, pipeline };
        let go = |title: &str, arrivals, heavy_clients| -> Result<f64> {
            let options = jindou_server::ServerOptions::default()
                .with_port(0)
                .with_slow_query(None)
                .with_light_wait(match arrivals {
                    Arrivals::Open { .. } => MAX_WAIT,
                    _ => jindou_server::ServerOptions::default().light_wait,
                });
            let plan = Plan {
                arrivals,
                heavy_clients,
                then: None,
                warm_up: a.warm_up,
                duration: a.duration,
                seed: a.seed,
            };
            let outcome = http::run(setup, options, travel, &plan)?;
            print(title, setup, &outcome);
            Ok(outcome.light_rate())
        };
        let clients = a.clients;
        let closed = Arrivals::Closed { clients, window: 1 };
        let mut peak = 0.0;
        let alone = (!a.only_heavy).then_some(0);
        let beside = (!setup.heavy.is_empty()).then_some(a.heavy_clients);
        for heavy in alone.into_iter().chain(beside) {
            let title = match heavy {
                0 => format!("HTTP, {clients} clients, {name}"),
                n => format!("HTTP, {clients} clients, {name}, beside heavy queries of {n}"),
            };
            // Rates of open loops are relative to the first closed loop's rate.
            let reached = go(&title, closed, heavy)?;
            if peak == 0.0 {
                peak = reached;
            }
            for rate in &a.rates {
                let rate = match rate {
                    Rate::Absolute(n) => *n,
                    Rate::OfPeak(x) => peak * x,
                };
                let title = format!("{title}, open loop {rate:.0}/s");
                go(&title, Arrivals::Open { rate, clients }, heavy)?;
            }
        }
    }
    Ok(())
}
