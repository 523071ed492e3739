//! `jindou cluster`.

use super::counted;
use crate::args::{ClusterCommand, StartCluster};
use crate::remote;
use crate::say::say;
use jindou::replica::{HeldShards, LogBeginning, LogServer, Repair, shards_in};
use jindou::{Database, Error, Result};
use jindou_model::units::grouped;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time for servers to end on their own.
const GRACE: Duration = Duration::from_secs(10);

pub fn run(a: &ClusterCommand) -> Result<ExitCode> {
    match a {
        ClusterCommand::Start(a) => start(a),
        ClusterCommand::Status { log } => status(log),
        ClusterCommand::Begin {
            store,
            log,
            no_upload,
        } => {
            say!("{}", jindou::replica::begin_log(log, store, !no_upload)?);
            Ok(ExitCode::SUCCESS)
        }
        ClusterCommand::Repair {
            log,
            write_log_json,
            from_store,
            give_up_after,
        } => repair(log, *write_log_json, from_store.as_deref(), *give_up_after),
        ClusterCommand::Drain { url, wait, token } => {
            remote::drain(url, *wait, token.as_deref())?;
            say!(
                "{url} is no longer ready, and shuts down in {} s",
                wait.as_secs()
            );
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn wrong(message: impl Into<String>) -> Error {
    Error::Usage(message.into())
}

/// Ports for clients and for peers.
fn ports(first: u16, servers: usize) -> Result<Vec<u16>> {
    if first != 0 {
        let port =
            |i| u16::try_from(usize::from(first) + i).map_err(|_| wrong("--port is too high"));
        return (0..2 * servers).map(port).collect();
    }
    // They are below the ports that systems use for outgoing connections: one of those could be the local end of a
    // connection before its server listens. Commands that run side by side start at different ports.
    let begin = std::process::id().wrapping_mul(7919) % 20_000;
    let free: Vec<u16> = (0..20_000)
        .map(|step| 12_000 + ((begin + step) % 20_000) as u16)
        .filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .take(2 * servers)
        .collect();
    if free.len() < 2 * servers {
        return Err(wrong(
            "no free ports from 12000 to 31999; choose the first one with --port",
        ));
    }
    Ok(free)
}

/// Server processes that are ended together with this process.
struct ServerProcesses(Vec<(String, Child)>);

impl ServerProcesses {
    fn stop(&mut self) {
        for (_, child) in &self.0 {
            // SAFETY: the call takes no memory, and a child that was not waited for keeps its number.
            unsafe {
                libc::kill(child.id() as libc::pid_t, libc::SIGTERM);
            }
        }
        let until = Instant::now() + GRACE;
        for (_, child) in &mut self.0 {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        self.0.clear();
    }
}

impl Drop for ServerProcesses {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts servers that keep one store over a log.
fn start(a: &StartCluster) -> Result<ExitCode> {
    if !(1..=NAMES.len()).contains(&a.servers) {
        return Err(wrong(format!("use 1 to {} servers", NAMES.len())));
    }
    let names = &NAMES[..a.servers];
    let program = std::env::current_exe().map_err(|e| Error::io("jindou", e))?;
    let parts = parts(a)?;
    fs::create_dir_all(&a.store).map_err(|e| Error::io(&a.store, e))?;
    let folder = |name: &str| match parts {
        Some(_) => a.store.join("servers").join(name),
        None => a.store.join(name),
    };
    let has_store = |name: &&&str| {
        let entries = fs::read_dir(folder(name));
        entries.is_ok_and(|mut entries| entries.next().is_some())
    };
    let loaded = match parts {
        Some(_) => Some(a.store.clone()),
        None => names.iter().find(has_store).map(|name| folder(name)),
    };
    if let Some(loaded) = loaded
        && !Database::is_copy_of_log(&loaded)
        && jindou::replica::inspect(&a.log).is_err()
    {
        say!("{}", jindou::replica::begin_log(&a.log, &loaded, true)?);
    }
    let ports = ports(a.port, a.servers)?;
    let (http, peers) = ports.split_at(a.servers);
    let stop = stop_on_signal()?;
    let mut running = ServerProcesses(Vec::new());
    for (number, ((name, http), peer)) in names.iter().zip(http).zip(peers).enumerate() {
        let mut serve = Command::new(&program);
        serve.arg("serve");
        if let Some(parts) = &parts {
            link_shards(&a.store, &folder(name), &parts[number])?;
            serve.args(["--part", &format!("{number}/{}", a.servers)]);
            serve.args(["--replicas", &a.replicas.to_string()]);
        }
        let child = serve
            .arg("--store")
            .arg(folder(name))
            .args(["--log", &a.log, "--name", name, "--writable"])
            .args(["--peer-address", &format!("127.0.0.1:{peer}")])
            .args(["--port", &http.to_string()])
            .spawn()
            .map_err(|e| Error::io(&program, e))?;
        say!(
            "{name}: http://127.0.0.1:{http}/query, process {}, store {}",
            child.id(),
            folder(name).display()
        );
        running.0.push(((*name).to_owned(), child));
    }
    watch(running, &stop)
}

/// The shards of each server; `None` for a store without shards.
fn parts(a: &StartCluster) -> Result<Option<Vec<Vec<u32>>>> {
    let Some(shards) = shards_in(&a.store)? else {
        return match a.replicas {
            1 => Ok(None),
            _ => Err(wrong(
                "--replicas is for stores that were loaded with --shards; each server of another store has all of it",
            )),
        };
    };
    let of = a.servers as u32;
    let part = |number| {
        let part = HeldShards::Part {
            number,
            of,
            replicas: a.replicas,
        };
        part.among(shards)
    };
    (0..of).map(part).collect::<Result<_>>().map(Some)
}

/// Gives a server its shards of a loaded store, in a folder of its own. A store's files never change after they are
/// written, so they are hard-linked, not copied. A folder that already has a store is left as it is.
fn link_shards(store: &Path, own: &Path, shards: &[u32]) -> Result<()> {
    const CLUSTER: &str = "cluster.jd";
    if own.join(CLUSTER).exists() {
        return Ok(());
    }
    let link = |from: &Path, to: &Path| match fs::hard_link(from, to) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => fs::copy(from, to).map(|_| ()),
        _ => Ok(()),
    };
    let linked = || -> std::io::Result<()> {
        for shard in shards {
            let name = format!("shard-{shard}");
            fs::create_dir_all(own.join(&name))?;
            for entry in fs::read_dir(store.join(&name))? {
                let file = entry?.file_name();
                link(&store.join(&name).join(&file), &own.join(&name).join(&file))?;
            }
        }
        // By this file a store that was changed since its load is known to be the log's.
        let begins = Path::new("replica").join("begins");
        if store.join(&begins).exists() {
            fs::create_dir_all(own.join("replica"))?;
            link(&store.join(&begins), &own.join(&begins))?;
        }
        fs::copy(store.join(CLUSTER), own.join(CLUSTER)).map(|_| ())
    };
    linked().map_err(|e| Error::io(own, e))
}

/// Names of servers over a log.
const NAMES: [&str; 9] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
];

/// Shows the servers and the state of a log, as its bucket has them.
fn status(place: &str) -> Result<ExitCode> {
    let state = jindou::replica::inspect(place).map_err(wrong)?;
    let began = match state.beginning {
        LogBeginning::Empty => "the empty store",
        _ => "the store of its first server",
    };
    let begun = state.begun.map(when).unwrap_or_default();
    say!("log {:016x}: begun {begun} with {began}", state.log);
    match &state.newest_by {
        Some((name, written)) => say!(
            "newest group: {}, by {name}, {}",
            state.newest,
            when(*written)
        ),
        None if state.newest == 0 => say!("newest group: none yet"),
        None => say!("newest group: {}, in a base", state.newest),
    }
    say!("groups not in spans: {}", state.groups);
    if !state.missing.is_empty() {
        say!(
            "missing: {}; the log had groups up to {}. Run \"jindou cluster repair --log {place}\"",
            counted_names(&state.missing),
            state.known
        );
    }
    for base in &state.bases {
        let written = base.written.map(when).unwrap_or_default();
        let bytes = base.bytes.map_or_else(
            || "its document cannot be read".to_owned(),
            |bytes| format!("{} bytes", grouped(bytes)),
        );
        let since = state.newest.saturating_sub(base.number);
        say!(
            "base {}: {bytes}, {written}; {} since",
            base.number,
            counted(since, "group")
        );
    }
    match (state.bases.is_empty(), state.beginning) {
        (false, _) => {}
        (true, LogBeginning::Empty) => say!("bases: none yet; all groups are read at a start"),
        (true, _) if state.without_base => say!(
            "bases: none, since the log was begun without an upload; an empty folder cannot be filled: copy the store, or the server's \
             shards, into it"
        ),
        (true, _) => say!(
            "bases: none yet; servers with empty folders wait until the first server has uploaded its store"
        ),
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| u64::try_from(now.as_micros()).unwrap_or(0));
    for server in &state.servers {
        let at = match server.addresses.first() {
            Some(address) => format!("at {address}"),
            None => "follows the log alone".to_owned(),
        };
        let age = Duration::from_micros(now.saturating_sub(server.written));
        let state = match (server.counts, age > ENTRY) {
            (false, _) => ": gone; the others do not count it",
            (true, true) => ": it is late, so it has ended or does not reach the log",
            (true, false) => "",
        };
        let shards = match server.shards.as_slice() {
            [] => String::new(),
            shards => format!(", shards {}", listed(shards)),
        };
        say!(
            "{}: {at}{shards}, entry written {} s ago{state}",
            server.name,
            age.as_secs()
        );
    }
    let shards = state.bases.last().map_or(0, |base| base.shards);
    say_holders(shards, &state.servers);
    say!(
        "A server writes its entry every ten minutes. Ask its own /ready whether it runs and is up to date."
    );
    Ok(ExitCode::SUCCESS)
}

fn listed(shards: &[u32]) -> String {
    let all = shards.iter().map(u32::to_string);
    all.collect::<Vec<_>>().join(", ")
}

/// Says which shards are lost with one more server.
fn say_holders(shards: u32, servers: &[LogServer]) {
    let mut holders: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    holders.extend((0..shards).map(|shard| (shard, Vec::new())));
    for server in servers {
        for shard in &server.shards {
            let of = holders.entry(*shard).or_default();
            of.extend(server.counts.then_some(&*server.name));
        }
    }
    for (shard, names) in &holders {
        match names[..] {
            [] => say!("shard {shard}: at no server; queries that need it are refused"),
            [name] => {
                say!(
                    "shard {shard}: at {name} alone; without it, queries that need it are refused"
                );
            }
            _ => {}
        }
    }
    if let Some(fewest) = holders.values().map(Vec::len).min().filter(|n| *n > 1) {
        say!("each shard is at {fewest} servers or more");
    }
}

/// The first names of a list, and how many more there are.
fn counted_names(names: &[String]) -> String {
    let first = names.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    match names.len() {
        0..=3 => first,
        more => format!("{first} and {} more", more - 3),
    }
}

/// Says what a log lacks, or repairs it.
fn repair(
    place: &str,
    write_log_json: bool,
    from_store: Option<&Path>,
    give_up_after: Option<u64>,
) -> Result<ExitCode> {
    let how = match (write_log_json, from_store, give_up_after) {
        (true, ..) => Some(Repair::FirstObject),
        (_, Some(store), _) => Some(Repair::From(store)),
        (.., Some(number)) => Some(Repair::GiveUpAfter(number)),
        _ => None,
    };
    if let Some(how) = how {
        say!("{}", jindou::replica::repair(place, how)?);
        return Ok(ExitCode::SUCCESS);
    }
    let found = jindou::replica::diagnose(place)?;
    if found.findings.is_empty() {
        say!(
            "the log is whole: every group up to {} can be read",
            found.newest
        );
        return Ok(ExitCode::SUCCESS);
    }
    for finding in &found.findings {
        say!("{finding}");
    }
    if found.first_object {
        say!("To write log.json again: jindou cluster repair --log {place} --write-log-json");
        return Ok(ExitCode::FAILURE);
    }
    let Some(last) = found.whole_up_to else {
        say!(
            "No update needs to be given up: every group up to {} can be read.",
            found.newest
        );
        say!(
            "To upload the store that a server's folder has as a new base: jindou cluster repair --log {place} --from-store DIR"
        );
        return Ok(ExitCode::FAILURE);
    };
    say!(
        "The log had groups up to {}. Servers that knew of those that cannot be read: {}.",
        found.newest,
        match found.servers.is_empty() {
            true => "none".to_owned(),
            false => found.servers.join(", "),
        }
    );
    say!(
        "A server that runs and has applied them writes missing ones back by itself, within ten minutes. If one has ended, its \
         folder may have them: jindou cluster repair --log {place} --from-store DIR"
    );
    say!("To give them up with all updates after them, stop the servers and run");
    say!("  jindou cluster repair --log {place} --give-up-after {last}");
    say!("These would be given up:");
    for group in &found.given_up {
        say!("  {group}");
    }
    Ok(ExitCode::FAILURE)
}

/// A time of the log's own, as people read it.
fn when(micros: u64) -> String {
    // Whole seconds: S3 knows no others.
    jindou::time_text(micros - micros % 1_000_000)
}

/// Age at which a server's entry should have been written again.
const ENTRY: Duration = Duration::from_secs(11 * 60);

/// Set at Ctrl-C or SIGTERM.
fn stop_on_signal() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    ctrlc::set_handler(move || told.store(true, Ordering::SeqCst))
        .map_err(|e| wrong(format!("cannot handle Ctrl-C: {e}")))?;
    Ok(stop)
}

/// Waits for the end of all servers, or of this command.
fn watch(mut running: ServerProcesses, stop: &AtomicBool) -> Result<ExitCode> {
    while !stop.load(Ordering::SeqCst) && !running.0.is_empty() {
        running
            .0
            .retain_mut(|(name, child)| match child.try_wait() {
                Ok(None) => true,
                Ok(Some(status)) => {
                    eprintln!("jindou: server {name} ended: {status}");
                    false
                }
                Err(_) => false,
            });
        std::thread::sleep(Duration::from_millis(50));
    }
    let ended = !stop.load(Ordering::SeqCst);
    running.stop();
    Ok(if ended {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
