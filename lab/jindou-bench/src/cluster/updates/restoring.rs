//! `jindou bench cluster updates restore`: all servers lose their folders, and everything that was acknowledged comes back; a
//! moment of the past becomes a store in shards of its own.

use super::moving::wait_for_base;
use super::outcome;
use crate::args::updates::UpdatesRestore;
use crate::replicas::client::{Client, Request};
use crate::replicas::servers::{PATIENCE, Place, Server};
use jindou::{CancelToken, Database, Progress, RestoreTo, Result};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longest wait for an answer.
const LIMIT: Duration = Duration::from_secs(60);
/// Time on both sides of the moment, so that the clock tells the updates apart.
const APART: Duration = Duration::from_millis(1100);

/// Updates at all servers in turn, and a merge at half of them.
fn change(servers: &[Server], numbers: std::ops::Range<u64>) -> Result<()> {
    let mut clients: Vec<Client> = servers.iter().map(|s| s.client(LIMIT)).collect();
    let middle = u64::midpoint(numbers.start, numbers.end);
    for n in numbers {
        let i = n as usize % clients.len();
        let text = format!(
            "DELETE {{ <http://e/last> <http://e/n> ?n }} INSERT {{ <http://e/last> <http://e/n> {n} . <http://e/s{n}> a <http://e/C{}> ; <http://e/of> <http://e/s{}> }} WHERE {{ OPTIONAL {{ <http://e/last> <http://e/n> ?n }} }}",
            n % 5,
            n / 2
        );
        clients[i].succeed(&Request::update(text))?;
        if n == middle {
            clients[i].succeed(&Request::new("POST", "/admin/merge"))?;
        }
    }
    Ok(())
}

/// All quads at a server, sorted.
fn dump(server: &Server) -> Result<Vec<String>> {
    let request = Request::new("GET", "/store").with("Accept", "application/n-quads");
    let text = server.client(LIMIT).succeed(&request)?.text();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    Ok(lines)
}

/// Status 3 if something did not come back.
pub fn run(a: &UpdatesRestore) -> Result<ExitCode> {
    let place = Place::new(&a.setup)?;
    let mut servers = place.replicas(a.setup.servers, &[])?;
    wait_for_base(&place)?;
    change(&servers, 0..a.updates)?;
    let then = dump(&servers[0])?;
    std::thread::sleep(APART);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let moment = now.map_or(0, |now| now.as_micros() as u64);
    std::thread::sleep(APART);
    change(&servers, a.updates..2 * a.updates)?;
    let last = dump(&servers[0])?;
    let mut mistakes = Vec::new();
    for server in &mut servers {
        server.kill();
        server.empty_folder()?;
    }
    let begun = Instant::now();
    for server in &mut servers {
        server.start()?;
    }
    for server in &mut servers {
        server.ready(PATIENCE)?;
        let got = dump(server)?;
        if got != last {
            let (name, got, want) = (server.name, got.len(), last.len());
            mistakes.push(format!(
                "{name} has {got} quads instead of {want}, or others"
            ));
        }
    }
    let back = begun.elapsed();
    let begun = Instant::now();
    jindou::replica::restore(
        &place.log,
        place.path("restored"),
        RestoreTo::Time(moment),
        &CancelToken::new(),
        &Progress::default(),
    )?;
    let restored = begun.elapsed();
    if !Database::open(place.path("restored"))?.is_sharded() {
        mistakes.push("the restored store is not sharded".into());
    }
    let server = place.alone("restored", &[])?;
    let got = dump(&server)?;
    if got != then {
        let (got, want) = (got.len(), then.len());
        mistakes.push(format!(
            "the restored store has {got} quads instead of {want}, or others"
        ));
    }
    println!(
        "{} quads came back to {} servers with empty folders in {:.2} s; the store of the moment after {} updates, {} quads, was restored in {:.2} s",
        last.len(),
        servers.len(),
        back.as_secs_f64(),
        a.updates,
        then.len(),
        restored.as_secs_f64()
    );
    Ok(outcome(&mistakes))
}
