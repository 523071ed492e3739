//! Kills `jindou serve` (SIGKILL) while clients write and the store's files are rewritten. Afterwards every
//! acknowledged transaction must be in the store, every other one completely or not at all, and no file may be damaged.

mod client;

use client::{Client, Http, PARTS, Rng};
use jindou::{Access, BackupTarget, Database, LoadOptions, OpenOptions, Progress};
use jindou_parse::{Format, Sources};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Routes that rewrite or copy the store's files. A route that the server does not have is ignored.
const ROUTES: [&str; 3] = [
    "/admin/recluster?memory=33554432",
    "/admin/backup",
    "/admin/merge",
];

/// Commands that do the same without a server.
const COMMANDS: [&[&str]; 2] = [
    &["recluster", "--quiet", "--memory", "32M", "--threads", "2"],
    &["backup", "--to", "BACKUPS"],
];

const CLIENTS: u64 = 4;

/// Counts of the situations that the kills have hit.
#[derive(Debug, Default)]
struct Seen {
    acknowledged: u64,
    /// Kills with an unfinished new base, or an old base that was not removed yet.
    between_bases: u64,
    reclustered: u64,
    /// Kills of a server before it said that it was ready.
    in_recovery: u64,
    /// Kills of a command.
    in_command: u64,
    /// Backups that were restored and checked.
    restored: u64,
    /// Requests to [`ROUTES`], by route and status.
    answers: BTreeMap<(String, u16), u64>,
}

struct World {
    _folder: tempfile::TempDir,
    store: PathBuf,
    backups: PathBuf,
    clients: Vec<Client>,
    rng: Rng,
    seen: Seen,
}

fn jindou() -> Command {
    Command::new(env!("CARGO_BIN_EXE_jindou"))
}

impl World {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        let lines = (0..3000).map(|i| {
            format!(
                "<http://b/{i}> <http://b/p{}> <http://b/{}> .\n",
                i % 9,
                i / 3
            )
        });
        let text: String = lines.collect();
        let sources = Sources::builder()
            .text("base.nt", text.into_bytes(), Format::NTriples)
            .build()
            .unwrap();
        let options = LoadOptions::default().with_threads(1).with_memory(64 << 20);
        Database::load(&store, &sources, &options, &Progress::default()).unwrap();
        Self {
            store,
            backups: folder.path().join("backups"),
            _folder: folder,
            clients: (0..CLIENTS).map(Client::new).collect(),
            rng: Rng(seed),
            seen: Seen::default(),
        }
    }

    fn serve(&mut self) -> (Child, BufReader<std::process::ChildStdout>) {
        let durability = ["batch", "interval=20", "none"][self.rng.below(3) as usize];
        let mut child = jindou()
            .args(["serve", "--writable", "--port", "0", "--threads", "2"])
            .args(["--memory", "512M", "--log-level", "error"])
            .args(["--durability", durability, "--store"])
            .arg(&self.store)
            .arg("--backup-to")
            .arg(&self.backups)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        (child, out)
    }

    /// Starts a server, clients and work on the store's files, and kills the server at a random time.
    fn round(&mut self) {
        if self.rng.below(8) == 0 {
            self.command();
        }
        let (mut child, mut out) = self.serve();
        if self.rng.below(8) == 0 {
            std::thread::sleep(self.rng.millis(0, 40));
            end(&mut child);
            self.seen.in_recovery += 1;
            return;
        }
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let Some(address) = line
            .split("http://")
            .nth(1)
            .and_then(|l| l.split('/').next())
        else {
            end(&mut child);
            panic!("the server did not start: {line}");
        };
        let time = self.rng.millis(5, 300);
        // Requests no, one or several routes one after the other.
        let mut works = Vec::new();
        while self.rng.below(3) > 0 && works.len() < 4 {
            let route = ROUTES[self.rng.below(ROUTES.len() as u64) as usize];
            works.push((self.rng.millis(0, 80), route));
        }
        let seeds: Vec<Rng> = (0..CLIENTS).map(|_| Rng(self.rng.next())).collect();
        let answers = std::thread::scope(|scope| {
            for (client, rng) in self.clients.iter_mut().zip(seeds) {
                scope.spawn(move || client.write(address, rng));
            }
            let worker = scope.spawn(move || {
                let mut answers = Vec::new();
                for (wait, route) in works {
                    std::thread::sleep(wait);
                    if let Some(mut http) = Http::connect(address)
                        && let Some((status, _)) = http.post(route, "")
                    {
                        answers.push((route, status));
                    }
                }
                answers
            });
            std::thread::sleep(time);
            end(&mut child);
            worker.join().unwrap()
        });
        for (route, status) in answers {
            let route = route.split('?').next().unwrap().to_owned();
            assert!(
                matches!(status, 200 | 202 | 404 | 409),
                "{status} from {route}"
            );
            *self.seen.answers.entry((route, status)).or_default() += 1;
        }
    }

    /// Starts one of [`COMMANDS`], and kills it unless it has ended before.
    fn command(&mut self) {
        let args = COMMANDS[self.rng.below(COMMANDS.len() as u64) as usize];
        let mut child = jindou()
            .args(args.iter().map(|a| match *a {
                "BACKUPS" => self.backups.as_os_str(),
                other => other.as_ref(),
            }))
            .arg("--store")
            .arg(&self.store)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(self.rng.millis(0, 150));
        end(&mut child);
        self.seen.in_command += 1;
    }

    /// The quads of each client in the store: for each number, a bit for each part.
    fn found(&self, db: &Database) -> Vec<BTreeMap<u64, u32>> {
        let mut found = vec![BTreeMap::new(); CLIENTS as usize];
        for part in 0..PARTS {
            let text = match part {
                3 => format!("SELECT ?s {{ GRAPH ?g {{ ?s <http://e/part{part}> ?o }} }}"),
                _ => format!("SELECT ?s {{ ?s <http://e/part{part}> ?o }}"),
            };
            for row in db.query(&text).unwrap().solutions() {
                let name = row[0].as_ref().unwrap().to_string();
                let mut words = name.trim_matches(['<', '>']).rsplit('/');
                let n: u64 = words.next().unwrap().parse().unwrap();
                let c: usize = words.next().unwrap().parse().unwrap();
                let parts: &mut u32 = found[c].entry(n).or_default();
                assert_eq!(
                    *parts & 1 << part,
                    0,
                    "part {part} of {name} is there twice"
                );
                *parts |= 1 << part;
            }
        }
        found
    }

    /// Opens the store, read-only or for writing at random, and compares it with the clients' expectations.
    fn verify(&mut self, round: u64) {
        let names: Vec<String> = std::fs::read_dir(&self.store)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        let bases = names.iter().filter(|n| n.starts_with("base-")).count();
        let in_root = names.iter().any(|n| n == "manifest.jd");
        self.seen.between_bases += u64::from(bases + usize::from(in_root) > 1);
        let report = Database::check(&self.store).unwrap();
        assert!(
            report.is_sound(),
            "round {round}: {:?}; {names:?}",
            report.damages
        );
        let access = match self.rng.below(2) {
            0 => Access::Read,
            _ => Access::Write,
        };
        let options = OpenOptions::default().with_access(access);
        let db = Database::open_with(&self.store, &options)
            .unwrap_or_else(|e| panic!("round {round}: {e}; {names:?}"));
        let found = self.found(&db);
        for (client, found) in self.clients.iter_mut().zip(&found) {
            if let Err(e) = client.settle(found) {
                panic!("round {round}: {e}\n{names:?}\n{:?}", db.recovery());
            }
        }
        assert_eq!(
            db.snapshot().quads(),
            3000 + u64::from(PARTS)
                * self
                    .clients
                    .iter()
                    .map(|c| c.live.len() as u64)
                    .sum::<u64>()
        );
        drop(db);
        if access == Access::Write {
            let left = std::fs::read_dir(&self.store).unwrap().filter(|e| {
                let name = e.as_ref().unwrap().file_name();
                name.to_string_lossy().starts_with("base-") || name == "manifest.jd"
            });
            assert_eq!(left.count(), 1, "an old base stays");
        }
        self.seen.reclustered = number(&self.store);
    }
}

impl World {
    /// Restores the newest backup, after a first attempt was killed. It must contain only complete transactions and no
    /// damage.
    fn restore(&mut self) {
        let target = BackupTarget::folder(self.backups.to_str().unwrap()).unwrap();
        let all = target.list().unwrap();
        if all.is_empty() {
            return;
        }
        assert!(all.iter().all(Result::is_ok), "{all:?}");
        let place = self.backups.with_extension("restored");
        let command = || {
            let mut command = jindou();
            command.args(["restore", "--from"]).arg(&self.backups);
            command.arg("--store").arg(&place).stdout(Stdio::null());
            command
        };
        let mut child = command().stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(self.rng.millis(0, 40));
        end(&mut child);
        if place.exists() {
            std::fs::remove_dir_all(&place).unwrap();
        }
        assert!(command().status().unwrap().success());
        let report = Database::check(&place).unwrap();
        assert!(report.is_sound(), "{:?}", report.damages);
        let db = Database::open(&place).unwrap();
        for (client, found) in self.found(&db).iter().enumerate() {
            for (n, parts) in found {
                assert_eq!(*parts, (1 << PARTS) - 1, "number {n} of client {client}");
            }
        }
        drop(db);
        std::fs::remove_dir_all(&place).unwrap();
        self.seen.restored += 1;
        // Sometimes the backups are deleted, so that first backups, which copy everything, are interrupted as well.
        if self.rng.below(3) == 0 {
            std::fs::remove_dir_all(&self.backups).unwrap();
        }
    }
}

fn number(store: &Path) -> u64 {
    std::fs::read_to_string(store.join("current.jd"))
        .ok()
        .and_then(|t| t.lines().nth(1)?.strip_prefix("base ")?.parse().ok())
        .unwrap_or(0)
}

/// Kills a process with SIGKILL.
fn end(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn rounds(n: u64, seed: u64) -> Seen {
    let begun = Instant::now();
    let mut world = World::new(seed);
    for round in 0..n {
        world.round();
        world.verify(round);
        if round % 10 == 3 {
            world.restore();
        }
        world.seen.acknowledged = world.clients.iter().map(|c| c.acknowledged).sum();
        if round % 50 == 49 {
            println!(
                "{} rounds in {:.0?}: {:?}",
                round + 1,
                begun.elapsed(),
                world.seen
            );
        }
    }
    world.seen
}

#[test]
fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let seen = rounds(5, 7);
    assert!(seen.acknowledged > 0, "{seen:?}");
}

/// The whole test. `JINDOU_ROUNDS` sets the number of kills (1,000 by default), `JINDOU_SEED` the seed of the random
/// numbers.
#[test]
#[ignore = "long: some 10 minutes"]
fn a_thousand_kills() {
    let n = jindou_testing::from_environment("JINDOU_ROUNDS", 1000);
    let seen = rounds(n, jindou_testing::from_environment("JINDOU_SEED", 1));
    println!("{n} rounds: {seen:?}");
    assert!(seen.acknowledged > n && seen.reclustered > 0, "{seen:?}");
    if n >= 100 {
        let all = [
            seen.between_bases,
            seen.in_recovery,
            seen.in_command,
            seen.restored,
        ];
        assert!(all.iter().all(|&s| s > 0), "{seen:?}");
    }
}
