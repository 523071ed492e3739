//! A server under attack: a process that serves a small store with changes in its log, and the memory, processor time
//! and threads that the system reports for it.

use crate::volley::GRACE;
use jindou_testing::attack::data;
use jindou_testing::{Served, copy_folder};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The token that clients of the server send.
pub const TOKEN: &str = "attack-token-that-may-write";

/// Limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Memory limit of all queries together, in bytes.
    pub memory: u64,
    /// Memory limit of one query, in bytes.
    pub query_memory: u64,
    pub timeout: Duration,
    /// Further arguments of the server.
    pub more: &'static [&'static str],
}

/// Memory that the process may use in addition to `--memory`: for the program itself, its threads' stacks, the store,
/// buffers of sockets, and the body of a request that is being received.
const BESIDE: u64 = 96 << 20;

impl Setting {
    /// Maximum memory that the process may use.
    pub fn most(&self) -> u64 {
        self.memory + self.memory / 10 + BESIDE
    }
}

/// A store of which each server gets a copy.
pub struct Template(tempfile::TempDir);

fn program() -> PathBuf {
    std::env::var_os("JINDOU_BIN")
        .map_or_else(|| env!("CARGO_BIN_EXE_jindou").into(), PathBuf::from)
}

fn run(arguments: &[&str], paths: &[&Path]) {
    let done = Command::new(program())
        .args(arguments)
        .args(paths)
        .stdout(Stdio::null())
        .status()
        .expect("the program");
    assert!(done.success(), "{arguments:?} failed");
}

impl Template {
    /// A store with statements about this many subjects, some of which are changed in its log.
    pub fn new(subjects: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("data.nq"), data(subjects)).expect("data");
        run(
            &["load", "--quiet", "--store"],
            &[&at("store"), &at("data.nq")],
        );
        let tail =
            "INSERT { ?s <http://e/p1> ?n . GRAPH <http://e/g1> { ?s <http://e/p9> \"new\" } }
            WHERE { ?s <http://e/n> ?n FILTER(?n < 1000) } ;
            DELETE { ?s <http://e/t> ?t } WHERE { ?s <http://e/n> 7 ; <http://e/t> ?t }";
        std::fs::write(at("tail.ru"), tail).expect("an update");
        run(
            &["update", "--store"],
            &[&at("store"), Path::new("--file"), &at("tail.ru")],
        );
        Self(folder)
    }
}

pub struct Server {
    served: Served,
    folder: tempfile::TempDir,
    /// Resident memory before the first request.
    pub at_rest: u64,
}

impl Deref for Server {
    type Target = Served;

    fn deref(&self) -> &Served {
        &self.served
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut Served {
        &mut self.served
    }
}

impl Server {
    pub fn start(template: &Template, setting: &Setting) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        copy_folder(&template.0.path().join("store"), &at("store"));
        std::fs::write(at("tokens"), format!("write {TOKEN}\n")).expect("a file of tokens");
        private(&at("tokens"));
        let errors = std::fs::File::create(at("errors")).expect("a file for messages");
        let mut command = Command::new(program());
        command
            .args([
                "serve",
                "--port",
                "0",
                "--log-level",
                "error",
                "--merge",
                "off",
            ])
            .args(["--service-allow", "127.0.0.1:9"])
            .args(["--memory", &setting.memory.to_string()])
            .args(["--query-memory", &setting.query_memory.to_string()])
            .args(["--grace", &format!("{}s", GRACE.as_secs())])
            .args(["--timeout", &format!("{}ms", setting.timeout.as_millis())])
            .args([
                "--max-timeout",
                &format!("{}ms", setting.timeout.as_millis()),
            ])
            .args(setting.more)
            .arg("--token-file")
            .arg(at("tokens"))
            .arg("--store")
            .arg(at("store"))
            .stderr(errors);
        let said = || std::fs::read_to_string(folder.path().join("errors"));
        let served = Served::try_start(&mut command);
        let served = served.unwrap_or_else(|e| panic!("{e}: {:?}", said()));
        // If the system runs out of memory in spite of the limits, it should kill this process rather than another.
        let _ = std::fs::write(format!("/proc/{}/oom_score_adj", served.child.id()), "1000");
        Self {
            at_rest: served.resident(),
            served,
            folder,
        }
    }

    /// Processor time of all threads.
    pub fn cpu(&self) -> Duration {
        let text = self.proc("stat");
        // The fields begin after the program's name, which is in parentheses and may contain any character.
        let fields = text.rsplit_once(") ").map_or("", |t| t.1);
        let ticks = fields.split(' ').skip(11).take(2);
        let ticks: u64 = ticks.filter_map(|t| t.parse::<u64>().ok()).sum();
        // Linux reports processor time in hundredths of a second.
        Duration::from_millis(ticks * 10)
    }

    /// True if at least one of the process's threads computes or waits for a core.
    pub fn is_busy(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let Ok(tasks) = tasks else { return false };
        tasks.flatten().any(|task| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            let state = stat.rsplit_once(") ").map_or("", |t| t.1);
            state.starts_with('R') || state.starts_with('D')
        })
    }

    /// Sends SIGTERM to the process.
    pub fn terminate(&self) {
        // SAFETY: sends a signal to a child that has not been waited for, so that the number is still its own.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
    }

    /// Messages on standard error.
    pub fn errors(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("errors")).unwrap_or_default()
    }
}

fn private(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let _ = std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600));
}

/// A thread that only sleeps, to measure how long this machine delays threads.
pub struct Machine {
    worst: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl Machine {
    pub fn watch() -> Self {
        let worst = std::sync::Arc::<std::sync::atomic::AtomicU64>::default();
        let seen = worst.clone();
        std::thread::spawn(move || {
            loop {
                let begun = Instant::now();
                std::thread::sleep(Duration::from_millis(10));
                let late = begun.elapsed().saturating_sub(Duration::from_millis(10));
                seen.fetch_max(
                    late.as_millis() as u64,
                    std::sync::atomic::Ordering::Relaxed,
                );
            }
        });
        Self { worst }
    }

    /// The longest delay of the thread since the last call.
    pub fn late(&self) -> Duration {
        Duration::from_millis(self.worst.swap(0, std::sync::atomic::Ordering::Relaxed))
    }
}
