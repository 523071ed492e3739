//! Figures 15 and 18 of OSDI '16 for servers that are not there.

use super::record::{Recorded, options};
use super::schedule::{Fabric, Machines, Simulation, alone};
use super::trace::Trace;
use super::{HEAVY, LIGHT, LIGHT_TIMES, is_light};
use crate::args::cluster::BenchClusterProjection;
use crate::mixed::arrivals::Random;
use jindou::{Error, Result};
use jindou_workloads::queries::lubm::{Constants, EMULATOR, query};

/// Queries of the mix whose time counts, in one simulation; a quarter as many go before.
const MIXED: usize = 40_000;
/// Times that an instance of the mix is recorded.
const INSTANCE_TIMES: usize = 3;
/// The paper's speed-up of heavy queries from 2 to 6 servers, the least and the most (§7.4).
const PAPER_SPEED_UP: [f64; 2] = [2.46, 3.54];
/// The paper's latency on 6 servers, LUBM-10240 (table 3), milliseconds.
const PAPER_SIX: [(&str, f64); 7] = [
    ("L1", 516.0),
    ("L2", 78.0),
    ("L3", 203.0),
    ("L7", 464.0),
    ("L4", 0.41),
    ("L5", 0.17),
    ("L6", 0.89),
];
/// The paper's queries a second of the mix (§7.5): by servers, and whether they are machines of their own.
const PAPER_MIX: [(usize, f64, &str); 3] = [
    (2, 97_000.0, "2 machines"),
    (6, 269_000.0, "6 machines"),
    (24, 282_000.0, "24 nodes on 6 machines"),
];

/// The queries of one number of servers, over one network.
pub struct Recordings {
    servers: usize,
    single: Vec<(&'static str, Trace)>,
    /// By template of the mix.
    mix: Vec<Vec<Trace>>,
}

impl Recordings {
    pub fn make(recorded: &Recorded, servers: usize, a: &BenchClusterProjection) -> Result<Self> {
        let mut single = Vec::new();
        for name in HEAVY.into_iter().chain(LIGHT) {
            let Some(q) = query(name) else { continue };
            let times = a.repeat * if is_light(name) { LIGHT_TIMES } else { 1 };
            let plan = recorded.db.plan(q.text, &options())?;
            let trace = recorded.median(&plan, times)?;
            if q.rows(a.universities).is_some_and(|n| n != trace.rows) {
                return Err(Error::external(format!("{name}: {} rows", trace.rows)));
            }
            single.push((name, trace));
        }
        let mut mix = Vec::new();
        let mut constants = Constants::new(a.universities, 0, 1);
        for template in EMULATOR {
            let mut traces = Vec::new();
            for _ in 0..a.instances {
                if let Some(constant) = constants.draw(template.class) {
                    let plan = recorded.db.plan(&template.with(&constant), &options())?;
                    traces.push(recorded.median(&plan, INSTANCE_TIMES)?);
                }
            }
            mix.push(traces);
        }
        Ok(Self {
            servers,
            single,
            mix,
        })
    }
}

/// Latency by number of servers.
pub fn figure_15(all: &[&Recordings], fabric: Fabric, a: &BenchClusterProjection) -> Result<()> {
    println!();
    println!(
        "Figure 15, ms (times as fast as the fewest servers); {} cores a server, as many threads a part",
        a.cores
    );
    print!("servers");
    let names = all.first().map_or(Vec::new(), |r| {
        r.single.iter().map(|s| s.0).collect::<Vec<_>>()
    });
    for name in &names {
        print!(" {name:>16}");
    }
    println!();
    let mut first = Vec::new();
    for r in all {
        print!("{:>7}", r.servers);
        let machines = Machines {
            servers: r.servers,
            cores: a.cores,
            workers: a.cores,
        };
        for (i, (_, trace)) in r.single.iter().enumerate() {
            let time = alone(trace, fabric, machines)? / 1e6;
            if first.len() <= i {
                first.push(time);
            }
            print!(" {:>16}", format!("{time:.3} ({:.2})", first[i] / time));
        }
        println!();
    }
    print!("paper 6");
    for name in &names {
        let known = PAPER_SIX.iter().find(|p| p.0 == *name);
        print!(" {:>16}", known.map_or(String::new(), |p| p.1.to_string()));
    }
    println!();
    println!(
        "Paper, LUBM-10240: from 2 to 6 servers L1, L2, L3 and L7 become {} to {} times as fast, L4 to L6 stay as they are (text; the plot's points were not at hand)",
        PAPER_SPEED_UP[0], PAPER_SPEED_UP[1]
    );
    Ok(())
}

/// Throughput of the mix by number of servers.
pub fn figure_18(all: &[&Recordings], fabric: Fabric, a: &BenchClusterProjection) -> Result<()> {
    println!();
    println!(
        "Figures 17 and 18, the mix of L4 to L6 and A1 to A3 by the reciprocal of their latency, plans made; {} cores and {} clients a server",
        a.workers, a.clients
    );
    println!(
        "servers   queries/s  speed-up   median us       p99 us  cpu us a query  cores busy   paper queries/s"
    );
    let mut first = None;
    for r in all {
        let machines = Machines {
            servers: r.servers,
            cores: a.workers,
            workers: 1,
        };
        let mut mix = mixed(r, fabric, machines, a.clients)?;
        mix.times.sort_unstable();
        let at = |p: f64| mix.times[((mix.times.len() - 1) as f64 * p) as usize] as f64 / 1e3;
        let first = *first.get_or_insert(mix.throughput);
        let paper = PAPER_MIX.iter().find(|p| p.0 == r.servers);
        println!(
            "{:>7} {:>11.0} {:>9.2} {:>11.1} {:>12.1} {:>15.1} {:>10.0}%   {}",
            r.servers,
            mix.throughput,
            mix.throughput / first,
            at(0.5),
            at(0.99),
            mix.work / 1e3,
            100.0 * mix.throughput * mix.work / 1e9 / (r.servers * a.workers) as f64,
            paper.map_or(String::new(), |p| format!("{:.0}, {}", p.1, p.2)),
        );
    }
    println!(
        "Paper, LUBM-10240: 97,000 queries/s of 2 machines, 269,000 of 6, 282,000 of 24 nodes that share 6 machines; on 6 machines median 800 us and p99 5,900 us (text; the plots' other points were not at hand)"
    );
    Ok(())
}

/// A mix that ran.
struct Mix {
    /// Queries a second.
    throughput: f64,
    /// Nanoseconds of each query.
    times: Vec<u64>,
    /// Nanoseconds of processor time of a query, messages included.
    work: f64,
}

/// Clients that ask one query after another.
fn mixed(r: &Recordings, fabric: Fabric, machines: Machines, clients: usize) -> Result<Mix> {
    let mut weights = Vec::new();
    for traces in &r.mix {
        let mut sum = 0.0;
        for t in traces {
            sum += alone(t, fabric, machines)?;
        }
        weights.push(traces.len() as f64 / f64::max(sum, 1.0));
    }
    let sum: f64 = weights.iter().sum();
    let mut random = Random::new(r.servers as u64);
    let mut draw = || -> Result<&Trace> {
        let mut at = random.unit() * sum;
        let class = weights.iter().position(|w| {
            at -= w;
            at <= 0.0
        });
        let of = &r.mix[class.unwrap_or(0)];
        let one = of.get(random.below(of.len().max(1)));
        one.ok_or_else(|| Error::external("a mix without instances"))
    };
    let mut simulation = Simulation::new(fabric, machines);
    let server = |client: usize| client % machines.servers;
    for client in 0..clients * machines.servers {
        simulation.ask(client, server(client), draw()?);
    }
    // The first queries start all at once, so they do not count.
    let (mut begin, mut end, mut worked) = (0, 0, 0);
    let mut times = Vec::with_capacity(MIXED);
    for i in 0..MIXED + MIXED / 4 {
        let ended = simulation.next_ended();
        let ended = ended.ok_or_else(|| Error::Internal("a recorded query never ends".into()))?;
        if i == MIXED / 4 {
            (begin, worked) = (ended.ended, simulation.worked());
        } else if i > MIXED / 4 {
            times.push(ended.ended - ended.began);
            end = ended.ended;
        }
        simulation.ask(ended.client, server(ended.client), draw()?);
    }
    let count = times.len() as f64;
    Ok(Mix {
        throughput: count / (end - begin) as f64 * 1e9,
        work: (simulation.worked() - worked) as f64 / count,
        times,
    })
}
