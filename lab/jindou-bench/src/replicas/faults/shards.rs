//! Faults of servers that each have some shards: they are killed at moments of a merge, an upload or a download, all that have a
//! shard are killed, and files of a shard are lost or changed.

use super::watch::EVERYWHERE;
use super::{Kind, READ, Shared};
use crate::replicas::client::{Answer, Request};
use crate::replicas::servers::{Moves, PATIENCE, Place, Server, wrong};
use jindou::{Error, Result};
use jindou_model::random::splitmix64;
use jindou_testing::files_below;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest wait for the moment at which a server is killed.
const MOMENT: Duration = Duration::from_secs(30);
/// Time within which a query that needs a shard without a holder is refused, with what a loaded machine adds.
const REFUSED: Duration = Duration::from_secs(4);

/// Starts a merge at a server without waiting for it; one that runs already does as well.
fn start_merge(server: &Server) {
    let mut client = server.client(MOMENT);
    std::thread::spawn(move || client.send(&Request::new("POST", "/admin/merge")));
}

/// Waits until something is true; false if it does not become true in time.
fn waits_until(mut is_true: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !is_true() {
        if begun.elapsed() > MOMENT {
            return false;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    true
}

/// Paths of the files below a folder, as they are at this moment.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    files_below(folder).into_iter().collect()
}

/// One fault. Gives the moment at which it ended.
pub(super) fn fault(
    kind: Kind,
    (i, other): (usize, usize),
    servers: &mut [Server],
    place: &Place,
    shared: &Shared,
    state: &mut u64,
) -> Result<Instant> {
    let mut up_to = |most: u64| splitmix64(state) % most.max(1);
    let held = place.held(i, servers.len())?;
    let shard = held[up_to(held.len() as u64) as usize];
    let store = servers[i].store.clone();
    let mut gone = vec![i];
    match kind {
        Kind::KillMerging => {
            start_merge(&servers[other]);
            std::thread::sleep(Duration::from_millis(up_to(150)));
            kill(&mut servers[i], i, shared);
        }
        Kind::KillMerged => {
            let of_merges = || -> BTreeSet<PathBuf> {
                let mut all = files(&store.join("replica"));
                all.retain(|path| path.extension().is_some_and(|e| e == "merge"));
                all
            };
            let before = of_merges();
            start_merge(&servers[other]);
            if !waits_until(|| of_merges().difference(&before).next().is_some()) {
                println!("     no merge was seen");
            }
            kill(&mut servers[i], i, shared);
        }
        Kind::KillUploading => gone = vec![kill_at_upload(servers, place, shared)?],
        Kind::KillDownloading => {
            kill(&mut servers[i], i, shared);
            servers[i].empty_folder()?;
            servers[i].start()?;
            if !waits_until(|| !files(&store.join("incoming")).is_empty()) {
                println!("     no download was seen");
            }
            servers[i].kill();
        }
        Kind::KillHolders => return kill_holders(shard, servers, place, shared),
        Kind::EmptyShard => {
            kill(&mut servers[i], i, shared);
            let folder = store.join(format!("shard-{shard}"));
            std::fs::remove_dir_all(&folder).map_err(|e| Error::io(&folder, e))?;
            std::fs::create_dir(&folder).map_err(|e| Error::io(&folder, e))?;
        }
        _ => {
            kill(&mut servers[i], i, shared);
            let all = files_below(&store.join(format!("shard-{shard}")));
            let path = &all[up_to(all.len() as u64) as usize];
            let mut bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
            if !bytes.is_empty() {
                let at = up_to(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << up_to(8);
                // Another file, since processes may have mapped this one.
                std::fs::remove_file(path).map_err(|e| Error::io(path, e))?;
                std::fs::write(path, bytes).map_err(|e| Error::io(path, e))?;
            }
        }
    }
    std::thread::sleep(Duration::from_millis(up_to(2000)));
    let begun = Instant::now();
    for i in gone {
        servers[i].start()?;
        servers[i].ready(PATIENCE)?;
        shared.moves[i].add();
    }
    Ok(begun)
}

fn kill(server: &mut Server, i: usize, shared: &Shared) {
    shared.moves[i].add();
    server.kill();
}

/// Merges, and kills the server that uploads a shard when that begins. Gives its number.
fn kill_at_upload(servers: &mut [Server], place: &Place, shared: &Shared) -> Result<usize> {
    let log = place.log_folder().ok_or_else(|| {
        Error::Usage("uploads are watched in a directory alone: leave --log out".into())
    })?;
    let before = files(log);
    start_merge(&servers[0]);
    let mut shard: Option<u32> = None;
    let seen = waits_until(|| {
        let now = files(log);
        shard = now.difference(&before).find_map(|path| {
            // parts/LOG-BASE-START/FILE-PART, where the first 4096 files are none of a shard.
            let (file, _) = path.file_name()?.to_str()?.split_once('-')?;
            let file: u32 = file.parse().ok()?;
            (path.to_str()?.contains("/parts/") && file >= 4096).then(|| file / 4096 - 1)
        });
        shard.is_some()
    });
    if !seen {
        println!("     no upload was seen");
    }
    // The first holder by name uploads it.
    let mut holders = Vec::new();
    for i in 0..servers.len() {
        if place.held(i, servers.len())?.contains(&shard.unwrap_or(0)) {
            holders.push(i);
        }
    }
    holders.sort_by_key(|&i| servers[i].name);
    kill(&mut servers[holders[0]], holders[0], shared);
    Ok(holders[0])
}

/// Asks for what needs all shards until the server is not too busy to begin. Gives when that began, the answer, and its time.
fn refusal(server: &Server) -> Result<(Instant, Answer, Duration)> {
    let (mut client, began) = (server.client(READ), Instant::now());
    loop {
        let asked = Instant::now();
        let answer = client.send(&Request::query(EVERYWHERE, Some("any")));
        let answer = answer.map_err(|e| wrong(format!("{}: {e}", server.name)))?;
        let is_busy = answer.text().contains("urn:jindou:problem:busy");
        if !is_busy || began.elapsed() > MOMENT {
            return Ok((began, answer, asked.elapsed()));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Kills all servers that have a shard: others refuse what needs it, and name it. Then these start again.
fn kill_holders(
    shard: u32,
    servers: &mut [Server],
    place: &Place,
    shared: &Shared,
) -> Result<Instant> {
    let count = servers.len();
    // What the others answer meanwhile is asked here.
    shared.moves.iter().for_each(Moves::add);
    let mut holders = Vec::new();
    for (i, server) in servers.iter_mut().enumerate() {
        if place.held(i, count)?.contains(&shard) {
            server.kill();
            holders.push(i);
        }
    }
    let mut there: BTreeSet<u32> = BTreeSet::new();
    for (i, _) in servers
        .iter()
        .enumerate()
        .filter(|(_, s)| s.process.is_some())
    {
        there.extend(place.held(i, count)?);
    }
    let lost: Vec<u32> = (0..place.shards.unwrap_or(0))
        .filter(|s| !there.contains(s))
        .collect();
    for server in servers.iter().filter(|s| s.process.is_some()) {
        let (began, answer, took) = refusal(server)?;
        let names_it = lost
            .iter()
            .any(|s| answer.text().contains(&format!("shard {s} ")));
        if answer.status != 503 || !names_it || took > REFUSED {
            shared.bad(format!(
                "{} answers {} after {:.2} s, {:.2} s after the first request, without a server that has shards {lost:?}: {}",
                server.name,
                answer.status,
                took.as_secs_f64(),
                began.elapsed().as_secs_f64(),
                answer.text()
            ));
        }
    }
    let begun = Instant::now();
    for &i in &holders {
        servers[i].start()?;
    }
    for &i in &holders {
        servers[i].ready(PATIENCE)?;
    }
    shared.moves.iter().for_each(Moves::add);
    Ok(begun)
}
