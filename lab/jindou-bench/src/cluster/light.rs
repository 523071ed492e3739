//! `jindou bench cluster light`: light queries over HTTP, of one server over the uncut store and of two over its shards, which ask one
//! another over TLS on loopback, over shared memory, or two and two over both. Each answer is compared with the other side's.

use super::counting::counted;
use super::servers::{Servers, alone};
use super::stores;
use crate::args::cluster::BenchClusterLight;
use crate::measure::Times;
use jindou::results::Collector;
use jindou::{Error, OpenOptions, QueryOptions, Result};
use jindou_peers::http::Endpoint;
use jindou_workloads::queries::lubm::query;
use std::process::ExitCode;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

pub fn run(a: &BenchClusterLight) -> Result<ExitCode> {
    let failed = |name: &str, e: &dyn std::fmt::Display| Error::external(format!("{name}: {e}"));
    let stores = stores(&a.setup)?;
    let cut = (0..a.setup.shards)
        .map(|home| counted(&stores.cut, home, &OpenOptions::default()))
        .collect::<Result<Vec<_>>>()?;
    let (_whole, url) = alone(&stores.whole)?;
    let mut one = Endpoint::new(url, &[]);
    let clusters = a
        .fabric
        .iter()
        .map(|f| Servers::start(&stores.cut, stores.folder.path(), 2, false, f.name()))
        .collect::<Result<Vec<_>>>()?;
    let mut all: Vec<Vec<Endpoint>> = clusters
        .iter()
        .map(|c| c.known.iter().map(|k| Endpoint::new(&k.2, &[])).collect())
        .collect();
    println!(
        "LUBM({}), {} shards; medians of {} over HTTP, microseconds; rounds, messages and bytes with every shard on a server of its own, the most of any that is asked: of a query that is new, and of one whose plan is known",
        a.setup.universities, a.setup.shards, a.repeat
    );
    println!(
        "query  fabric    rows  one server  two servers   ratio         rounds     messages          bytes"
    );
    // Of one server, then of each fabric.
    let mut sums = vec![0.0; 1 + all.len()];
    for name in ["L4", "L5", "L6"] {
        let q = query(name).ok_or_else(|| failed(name, &"no such query"))?;
        let want = one.check(q.text, LIMIT).map_err(|e| failed(name, &e))?;
        for server in all.iter_mut().flatten() {
            let got = server.check(q.text, LIMIT).map_err(|e| failed(name, &e))?;
            if got != want {
                println!("{name}: {got:?} from two servers, {want:?} from one");
                return Ok(ExitCode::from(3));
            }
        }
        let options = QueryOptions::default();
        // The first time nothing is known of the query, later its plan is.
        let mut most = [[0; 3]; 2];
        for (far, db) in &cut {
            for most in &mut most {
                far.take();
                let mut answer = Collector::new(db.runtime().memory().clone());
                db.run(q.text, &options, &mut answer)?;
                let ran = far.take();
                *most = std::array::from_fn(|i| ran[i].max(most[i]));
            }
        }
        let mut times = vec![Vec::new(); sums.len()];
        // In turn, so that the machine's moods hit all alike.
        for i in 0..a.repeat {
            let others = all.iter_mut().map(|two| &mut two[i % 2]);
            for (endpoint, times) in [&mut one].into_iter().chain(others).zip(&mut times) {
                let timed = endpoint.time(q.text, LIMIT).map_err(|e| failed(name, &e))?;
                times.push(Duration::from_secs_f64(timed.seconds));
            }
        }
        for (sum, times) in sums.iter_mut().zip(&times) {
            *sum += times.iter().sum::<Duration>().as_secs_f64();
        }
        let mut medians = times.into_iter().map(|t| Times::new(t).median() * 1e3);
        let alone = medians.next().unwrap_or_default();
        for (fabric, two) in a.fabric.iter().zip(medians) {
            println!(
                "{name:<6} {:<6} {:>7} {:>11.0} {:>12.0} {:>7.2} {:>14} {:>12} {:>14}",
                fabric.name(),
                want.rows,
                alone,
                two,
                two / alone,
                format!("{} / {}", most[0][0], most[1][0]),
                format!("{} / {}", most[0][1], most[1][1]),
                format!("{} / {}", most[0][2], most[1][2]),
            );
        }
    }
    let asked = 3.0 * a.repeat as f64;
    println!(
        "one client, L4 to L6 in turn: {:.0} answers/s from one server",
        asked / sums[0]
    );
    for (fabric, sum) in a.fabric.iter().zip(&sums[1..]) {
        println!("{:.0} from two over {}", asked / sum, fabric.name());
    }
    Ok(ExitCode::SUCCESS)
}
