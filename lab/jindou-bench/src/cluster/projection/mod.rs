//! `jindou bench cluster projection`: clusters of more servers than this machine has. All shards of a store are in this process and work in
//! turn; processor time and messages are recorded, and scheduled in virtual time under cores, latency and bandwidth. The schedule is
//! first compared with two real servers.

mod calibrate;
mod cores;
mod figures;
mod record;
mod schedule;
mod trace;

use super::servers::{place, start};
use crate::args::cluster::{BenchClusterProjection, ClusterSetup};
use crate::measure::{median, temporary_folder};
use crate::process::Process;
use crate::replicas::servers::{LOADED, Place, Server, wrong};
use cores::Cores;
use jindou::replica::{Bucket, BucketLimits, SharedLog};
use jindou::{Database, Error, OpenOptions, PlannedQuery, Result, Runtime, Sharding};
use jindou_workloads::queries::lubm::query;
use record::{Recorded, options};
use schedule::{Cost, Fabric, Machines, alone};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The largest error of the schedule of two servers.
const MOST_OFF: f64 = 0.20;
/// Turns in which a query is run on one core and on both, of which the median counts.
const TURNS: usize = 5;
/// Light queries are measured this many times as often as heavy ones.
const LIGHT_TIMES: usize = 20;
const HEAVY: [&str; 4] = ["L1", "L2", "L3", "L7"];
const LIGHT: [&str; 3] = ["L4", "L5", "L6"];

/// The paper's network (OSDI '16, §7.1): adapters of 56 Gb/s at a switch of 40 Gb/s. Half of a small read's 1.56 us (§2.3) is one way; a
/// microsecond of processor time a side is an assumption. Nothing is encrypted.
const PAPER: Fabric = Fabric {
    name: "40 Gb/s InfiniBand, one-sided",
    latency: 780.0,
    byte: 8.0 / 40.0,
    asking: Cost {
        fixed: 1_000.0,
        sent: 0.1,
        received: 0.1,
    },
    serving: Cost {
        fixed: 1_000.0,
        sent: 0.1,
        received: 0.1,
    },
};

/// Ethernet of 100 Gb/s with TLS: the processor's work as measured here, one way of 10 us as an assumption.
fn ethernet(measured: &Fabric) -> Fabric {
    Fabric {
        name: "100 Gb/s Ethernet, TLS",
        latency: 10_000.0,
        byte: 8.0 / 100.0,
        ..*measured
    }
}

fn is_light(name: &str) -> bool {
    LIGHT.contains(&name)
}

pub fn run(a: &BenchClusterProjection) -> Result<ExitCode> {
    let folder = temporary_folder(a.dir.as_deref())?;
    let cut = |shards: u32| -> Result<PathBuf> {
        let to = folder.path().join(format!("cut-{shards}"));
        super::load(&to, a.universities, Some(Sharding::new(shards)))?;
        Ok(to)
    };
    println!(
        "LUBM({}); medians of {} runs, of light queries {}",
        a.universities,
        a.repeat,
        a.repeat * LIGHT_TIMES
    );
    let (fabric, fits) = compare(a)?;
    let networks = [PAPER, ethernet(&fabric)];
    let mut all = Vec::new();
    for &servers in &a.servers {
        let store = cut(servers)?;
        let recorded = Recorded::open(&store)?;
        for (network, fabric) in networks.iter().enumerate() {
            recorded.take_so_long(fabric.round());
            let of = figures::Recordings::make(&recorded, servers as usize, a)?;
            all.push((network, of));
        }
        drop(recorded);
        std::fs::remove_dir_all(&store).map_err(|e| Error::io(&store, e))?;
    }
    for (network, fabric) in networks.into_iter().enumerate() {
        let of: Vec<_> = all.iter().filter(|r| r.0 == network).collect();
        let of: Vec<_> = of.into_iter().map(|r| &r.1).collect();
        println!();
        println!(
            "PROJECTION: {}. One way {:.1} us; a message costs who asks {:.1} us and who answers {:.1} us of processor time",
            fabric.name,
            fabric.latency / 1e3,
            fabric.asking.fixed / 1e3,
            fabric.serving.fixed / 1e3
        );
        figures::figure_15(&of, fabric, a)?;
        figures::figure_18(&of, fabric, a)?;
    }
    Ok(ExitCode::from(if fits { 0 } else { 3 }))
}

/// Two real servers, each on a core of its own, compared with the schedule of them: what a message costs, and whether no query is further off
/// than allowed. This process is the first server.
fn compare(a: &BenchClusterProjection) -> Result<(Fabric, bool)> {
    let setup = ClusterSetup {
        universities: a.universities,
        shards: 2,
        dir: a.dir.clone(),
    };
    let place = place(&setup, 2)?;
    let store = &place.path(LOADED);
    let cores = Cores::of_this_thread()?;
    let numbers = cores.numbers();
    let [first, second, ..] = numbers[..] else {
        return Err(Error::Unsupported("two servers on one core".into()));
    };
    // A process and its threads have the cores of the thread that starts them, and take as many threads.
    cores.only(second)?;
    let mut servers = start(&place, 2, "off")?;
    let other = servers[1].process.as_ref().map_or(0, Process::id);
    servers[0].kill();
    cores.only(first)?;
    let open = OpenOptions::default().with_runtime(Runtime::builder().threads(1).build());
    let db = replace(&place, &servers[0], &open)?;
    reaches(&db)?;
    let fabric = calibrate::calibrate(&db, store, other)?;
    println!(
        "A message and its answer between two processes of a core each, {}: {:.1} us on the way, {:.1} us of processor time of who asks and {:.1} us of who answers; a byte {:.2} ns on the way, {:.2} and {:.2} ns of a message, {:.2} and {:.2} ns of an answer",
        fabric.name,
        2.0 * fabric.latency / 1e3,
        fabric.asking.fixed / 1e3,
        fabric.serving.fixed / 1e3,
        fabric.byte,
        fabric.asking.sent,
        fabric.serving.sent,
        fabric.asking.received,
        fabric.serving.received,
    );
    let recorded = Recorded::open(store)?;
    recorded.take_so_long(fabric.round());
    println!();
    println!(
        "Two servers    rows  rounds  messages        bytes  cpu ms  both cores at work   measured ms (least)  predicted ms (least)   ratio  of the least"
    );
    let machines = Machines {
        servers: 2,
        cores: 1,
        workers: 1,
    };
    let mut fits = true;
    for name in HEAVY.into_iter().chain(LIGHT) {
        let Some(q) = query(name) else { continue };
        let times = a.repeat * if is_light(name) { LIGHT_TIMES } else { 1 };
        let plan = db.plan(q.text, &options())?;
        let traces = recorded.record(&recorded.db.plan(q.text, &options())?, times)?;
        let rows = traces.first().map_or(0, |t| t.rows);
        let measured = measured(&db, &plan, rows, times)?;
        // What takes less than a millisecond is not at work on both cores.
        let shared = match is_light(name) || name == "L3" {
            true => 1.0,
            false => shared(store, &recorded, q.text, (second, fabric.round()), times)?,
        };
        if q.rows(a.universities).is_some_and(|known| known != rows) {
            return Err(Error::external(format!("{name}: {rows} rows")));
        }
        let mut predicted = Vec::with_capacity(traces.len());
        for t in &traces {
            predicted.push(shared * alone(t, fabric, machines)? / 1e6);
        }
        let least = |of: &[f64]| of.iter().copied().fold(f64::INFINITY, f64::min);
        let lowest = [least(&measured), least(&predicted)];
        let work = median(traces.iter().map(|t| t.sums().work as f64 / 1e6));
        let sums = traces.first().map(|t| t.sums()).unwrap_or_default();
        let [measured, predicted] = [measured, predicted].map(median);
        let ratio = predicted / measured;
        fits &= (ratio - 1.0).abs() <= MOST_OFF;
        println!(
            "{name:<10} {rows:>8} {:>7} {:>9} {:>12} {work:>7.2} {shared:>17.2} x {measured:>11.3} ({:>6.3}) {predicted:>12.3} ({:>6.3}) {ratio:>7.2} {:>13.2}",
            sums.rounds,
            sums.messages,
            sums.bytes,
            lowest[0],
            lowest[1],
            lowest[1] / lowest[0],
        );
    }
    println!(
        "{}: within {:.0} % is asked for",
        if fits {
            "All medians fit"
        } else {
            "Not all medians fit"
        },
        MOST_OFF * 100.0
    );
    Ok((fabric, fits))
}

/// The factor by which the work of a query grows while another core does the same: two cores of one machine share memory, and may share caches
/// and more, which two machines do not.
fn shared(
    store: &Path,
    recorded: &Recorded,
    text: &str,
    (core, round): (usize, f64),
    times: usize,
) -> Result<f64> {
    let work = |of: &Recorded| -> Result<f64> {
        let plan = of.db.plan(text, &options())?;
        let traces = of.record(&plan, times)?;
        Ok(median(traces.iter().map(|t| t.sums().work as f64)))
    };
    // In turns: the machine may become slower or faster meanwhile.
    let (is_wanted, is_busy) = (AtomicBool::new(false), AtomicBool::new(false));
    let done = AtomicBool::new(false);
    let ratios = std::thread::scope(|s| {
        let other = s.spawn(|| -> Result<()> {
            let cores = Cores::of_this_thread()?;
            cores.only(core)?;
            let recorded = Recorded::open(store)?;
            recorded.take_so_long(round);
            while !done.load(Ordering::SeqCst) {
                if is_wanted.load(Ordering::SeqCst) {
                    work(&recorded)?;
                    is_busy.store(true, Ordering::SeqCst);
                } else {
                    is_busy.store(false, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            Ok(())
        });
        let when = |busy: bool| {
            is_wanted.store(busy, Ordering::SeqCst);
            while is_busy.load(Ordering::SeqCst) != busy && !other.is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
            work(recorded)
        };
        let turn = |_| Ok(when(true)? / when(false)?);
        let ratios: Result<Vec<f64>> = (0..TURNS).map(turn).collect();
        done.store(true, Ordering::SeqCst);
        let ended = other.join();
        ended.map_err(|_| Error::Internal("a thread panicked".into()))??;
        ratios
    })?;
    Ok(median(ratios).max(1.0))
}

/// Opens a server in this process, in place of one that was killed.
fn replace(place: &Place, server: &Server, options: &OpenOptions) -> Result<Database> {
    let bucket = Bucket::open(&place.log, BucketLimits::default()).map_err(wrong)?;
    let mut log = SharedLog::new(bucket, server.name);
    log.peer_address = Some(server.peers.clone());
    Database::open_with(&server.store, &options.clone().with_log(log))
}

/// Waits until a query that needs both servers is answered.
fn reaches(db: &Database) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        match db.query("SELECT * { <http://nowhere.example/> ?p ?o }") {
            Ok(_) => return Ok(()),
            Err(e) if Instant::now() > until => return Err(e),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Milliseconds of each run of a plan but the first ones.
fn measured(db: &Database, plan: &PlannedQuery, rows: u64, times: usize) -> Result<Vec<f64>> {
    let mut all = Vec::with_capacity(times);
    let warm = 2;
    for i in 0..times.max(1) + warm {
        let begun = Instant::now();
        let found = db.checksum(plan, &options())?.rows;
        if i >= warm {
            all.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        if found != rows {
            return Err(Error::external(format!("{found} rows, not {rows}")));
        }
    }
    Ok(all)
}
