//! `jindou bench cluster light`: light queries over HTTP, of one server over the uncut store and of two with its shards, which ask one
//! another over TLS on loopback, and may read each other's memory. Each answer is compared with the other side's.

use super::counting::counted;
use super::servers::{alone, place, start};
use crate::args::cluster::BenchClusterLight;
use crate::measure::Times;
use crate::replicas::servers::{LOADED, Server};
use jindou::results::Collector;
use jindou::{Error, OpenOptions, QueryOptions, Result};
use jindou_peers::http::Endpoint;
use jindou_workloads::queries::lubm::query;
use std::process::ExitCode;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

pub fn run(a: &BenchClusterLight) -> Result<ExitCode> {
    let failed = |name: &str, e: &dyn std::fmt::Display| Error::external(format!("{name}: {e}"));
    let place = place(&a.setup, 2)?;
    let cut = (0..a.setup.shards)
        .map(|home| counted(&place.path(LOADED), home, &OpenOptions::default()))
        .collect::<Result<Vec<_>>>()?;
    let whole = alone(&place, &a.setup)?;
    let mut one = Endpoint::new(whole.url(), &[]);
    let servers = start(&place, 2, &a.peer_reads)?;
    let urls = servers.iter().map(Server::url);
    let mut two: Vec<Endpoint> = urls.map(|url| Endpoint::new(url, &[])).collect();
    println!(
        "LUBM({}), {} shards; medians of {} over HTTP, microseconds; rounds, messages and bytes with every shard on a server of its own, the most of any that is asked: of a query that is new, and of one whose plan is known",
        a.setup.universities, a.setup.shards, a.repeat
    );
    println!(
        "query     rows  one server  two servers   ratio         rounds     messages          bytes"
    );
    let mut sums = [0.0; 2];
    for name in ["L4", "L5", "L6"] {
        let q = query(name).ok_or_else(|| failed(name, &"no such query"))?;
        let want = one.check(q.text, LIMIT).map_err(|e| failed(name, &e))?;
        for server in &mut two {
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
        let mut times = [Vec::new(), Vec::new()];
        // In turn, so that the machine's moods hit all alike.
        for i in 0..a.repeat {
            for (endpoint, times) in [&mut one, &mut two[i % 2]].into_iter().zip(&mut times) {
                let timed = endpoint.time(q.text, LIMIT).map_err(|e| failed(name, &e))?;
                times.push(Duration::from_secs_f64(timed.seconds));
            }
        }
        for (sum, times) in sums.iter_mut().zip(&times) {
            *sum += times.iter().sum::<Duration>().as_secs_f64();
        }
        let [alone, two] = times.map(|t| Times::new(t).median() * 1e3);
        println!(
            "{name:<6} {:>7} {alone:>11.0} {two:>12.0} {:>7.2} {:>14} {:>12} {:>14}",
            want.rows,
            two / alone,
            format!("{} / {}", most[0][0], most[1][0]),
            format!("{} / {}", most[0][1], most[1][1]),
            format!("{} / {}", most[0][2], most[1][2]),
        );
    }
    let asked = 3.0 * a.repeat as f64;
    println!(
        "one client, L4 to L6 in turn: {:.0} answers/s from one server, {:.0} from two",
        asked / sums[0],
        asked / sums[1]
    );
    Ok(ExitCode::SUCCESS)
}
