//! `jindou bench cluster updates move`: a server with an empty folder takes over two shards, and the first one ends.

use super::outcome;
use crate::args::updates::UpdatesMove;
use crate::measure::{bytes_in, copy};
use crate::replicas::lubm::wrong_rows;
use crate::replicas::roll::{end, under_load};
use crate::replicas::servers::{LOADED, PATIENCE, Place, wrong};
use jindou::{Error, Result};
use jindou_workloads::lubm::Lubm;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Time between the events.
const PAUSE: Duration = Duration::from_secs(3);
/// Number of shards that move.
const MOVED: usize = 2;

/// Waits until the log has all shards of the loaded store.
pub(super) fn wait_for_base(place: &Place) -> Result<()> {
    let begun = Instant::now();
    loop {
        let contents = jindou::replica::inspect(&place.log).map_err(wrong)?;
        if !contents.bases.is_empty() {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            return Err(wrong("the store is not in the log"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Status 3 if a request failed or an answer was wrong.
pub fn run(a: &UpdatesMove) -> Result<ExitCode> {
    let place = Place::new(&a.setup)?;
    place.load_log(&Lubm::new(a.universities, 0))?;
    let count = a.setup.servers;
    let mut servers = place.replicas(count, &[])?;
    wait_for_base(&place)?;
    let moved: Vec<u32> = place.held(0, count)?.into_iter().take(MOVED).collect();
    let names: Vec<String> = moved.iter().map(u32::to_string).collect();
    let folder = |shard: &u32| format!("shard-{shard}");
    let begun = Instant::now();
    for name in moved.iter().map(folder) {
        let (from, to) = (
            place.path(LOADED).join(&name),
            place.path("copied").join(&name),
        );
        copy(&from, &to).map_err(|e| Error::io(&to, e))?;
    }
    let copied = begun.elapsed();
    let mut held: Vec<Vec<u32>> = Vec::new();
    for i in 0..count {
        held.push(place.held(i, count)?);
    }
    held.push(moved);
    servers.push(place.replica(count, &["--shards".into(), names.join(",")])?);
    let addresses: Vec<_> = servers.iter().map(|s| s.address.clone()).collect();
    let mut served = Duration::ZERO;
    let load = under_load(&addresses, (a.queries, a.updates), || {
        let begun = Instant::now();
        servers[count].start()?;
        servers[count].ready(PATIENCE)?;
        served = begun.elapsed();
        std::thread::sleep(PAUSE);
        end(&mut servers[0]);
        std::thread::sleep(PAUSE);
        Ok(())
    })?;
    let mut mistakes = Vec::new();
    if load.failed > 0 {
        mistakes.push(format!("{} requests failed", load.failed));
    }
    for server in &servers[1..] {
        mistakes.extend(wrong_rows(server, a.universities));
    }
    let of = |shards: &[u32]| -> u64 {
        let loaded = shards
            .iter()
            .map(|s| bytes_in(&place.path(LOADED).join(folder(s))));
        loaded.sum()
    };
    println!(
        "shards {} of {:.1} MB served after {:.2} s, {:.2} times the {:.2} s of copying them (bound: 1.5)",
        names.join(" and "),
        of(&held[count]) as f64 / 1e6,
        served.as_secs_f64(),
        served.as_secs_f64() / copied.as_secs_f64(),
        copied.as_secs_f64()
    );
    for (server, held) in servers.iter().zip(&held) {
        println!(
            "folder of {}: {:.3} times its shards (bound: 1.1)",
            server.name,
            bytes_in(&server.store) as f64 / of(held) as f64
        );
    }
    Ok(outcome(&mistakes))
}
