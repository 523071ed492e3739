//! `jindou bench cluster updates merge`: many changes are merged at all servers under a load of queries and updates.

use super::outcome;
use crate::args::updates::UpdatesMerge;
use crate::replicas::client::{Client, Request};
use crate::replicas::lubm::wrong_rows;
use crate::replicas::roll::under_load;
use crate::replicas::servers::{Place, Server};
use jindou::Result;
use jindou_workloads::lubm::Lubm;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Longest wait for a merge.
pub(super) const MERGE: Duration = Duration::from_secs(600);
/// Time in which all servers come to the new base.
const SETTLE: Duration = Duration::from_secs(20);
/// Quads of one request.
const BATCH: u64 = 10_000;

/// Inserts quads on vertices that the store has and on new ones.
pub(super) fn change(client: &mut Client, changes: u64) -> Result<()> {
    let mut n = 0;
    while n < changes {
        let mut body = String::new();
        for n in n..(n + BATCH).min(changes) {
            let at = n * 7919 % changes;
            let _ = match n % 2 {
                0 => writeln!(
                    body,
                    "<http://e/m{at}> <http://e/p{}> <http://e/m{}> .",
                    n % 10,
                    n / 2
                ),
                _ => writeln!(
                    body,
                    "<http://www.Department{}.University0.edu> <http://e/of> <http://e/m{at}> .",
                    n % 15
                ),
            };
        }
        let request = Request::new("POST", "/store").body("application/n-quads", body);
        client.succeed(&request)?;
        n += BATCH;
    }
    Ok(())
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|e| e.file_name().into_string().ok())
        .collect()
}

/// Files of a shard that differ between two servers that have it.
fn differences(place: &Place, servers: &[Server], shards: u32) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for shard in 0..shards {
        let mut first: Option<&Server> = None;
        for (i, server) in servers.iter().enumerate() {
            if !place.held(i, servers.len())?.contains(&shard) {
                continue;
            }
            let Some(first) = first else {
                first = Some(server);
                continue;
            };
            let [a, b] = [first, server].map(|s| s.store.join(format!("shard-{shard}")));
            let (of_a, of_b) = (names(&a), names(&b));
            for name in of_a.union(&of_b) {
                let read = |folder: &Path| std::fs::read(folder.join(name)).ok();
                if read(&a) != read(&b) {
                    let (x, y) = (first.name, server.name);
                    all.push(format!("shard {shard}: {name} differs between {x} and {y}"));
                }
            }
        }
    }
    Ok(all)
}

/// Status 3 if a request failed, an answer was wrong, or copies differ.
pub fn run(a: &UpdatesMerge) -> Result<ExitCode> {
    let place = Place::new(&a.setup)?;
    place.load_log(&Lubm::new(a.universities, 0))?;
    // This command merges, and nothing else does.
    let more = ["--merge-at".into(), "1000000000".into()];
    let servers = place.replicas(a.setup.servers, &more)?;
    let begun = Instant::now();
    change(&mut servers[0].client(MERGE), a.changes)?;
    let changed = begun.elapsed();
    let addresses: Vec<_> = servers.iter().map(|s| s.address.clone()).collect();
    let mut said = String::new();
    let load = under_load(&addresses, (a.queries, a.updates), || {
        let merge = Request::new("POST", "/admin/merge");
        said = servers[0].client(MERGE).succeed(&merge)?.text();
        Ok(())
    })?;
    let settled = Instant::now();
    let mut mistakes = differences(&place, &servers, place.shards.unwrap_or(0))?;
    while !mistakes.is_empty() && settled.elapsed() < SETTLE {
        std::thread::sleep(Duration::from_millis(200));
        mistakes = differences(&place, &servers, place.shards.unwrap_or(0))?;
    }
    let differ = mistakes.len();
    if load.failed > 0 {
        mistakes.push(format!("{} requests failed", load.failed));
    }
    for server in &servers {
        mistakes.extend(wrong_rows(server, a.universities));
    }
    println!(
        "{} changes in {:.1} s, merged: {}",
        a.changes,
        changed.as_secs_f64(),
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    );
    println!(
        "an update waited for at most {:.2} s (bound: 0.20); {differ} files of copies differ",
        load.longest_update.as_secs_f64(),
    );
    Ok(outcome(&mistakes))
}
