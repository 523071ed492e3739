//! Programs that are started, watched and ended: memory over a process tree, output kept for errors.

use crate::engine::Memory;
use crate::{Error, Result};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks at a process tree: short compared with a load, and a look costs some 50 µs.
const LOOK: Duration = Duration::from_millis(50);
/// While queries are timed, looks must not take a core from the engine.
const RARE_LOOK: Duration = Duration::from_millis(1000);

/// A program that runs, in a process group of its own. Dropping it ends it; so does the end of this process.
#[derive(Debug)]
pub struct Running {
    child: Arc<Mutex<Child>>,
    pid: u32,
    program: String,
    log: PathBuf,
    watch: Arc<Watch>,
    watcher: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Watch {
    stop: AtomicBool,
    resident: AtomicU64,
    own: AtomicU64,
}

impl Watch {
    fn look(&self, pid: u32) {
        let m = tree_memory(pid);
        self.resident.fetch_max(m.resident, Ordering::Relaxed);
        self.own.fetch_max(m.own, Ordering::Relaxed);
    }
}

impl Running {
    /// Starts `command` with its output in the file `log`, unless the command says otherwise.
    pub fn start(command: &mut Command, log: &Path, how_often: Duration) -> Result<Self> {
        let out = File::create(log).map_err(|e| Error::io(log, e))?;
        let err = out.try_clone().map_err(|e| Error::io(log, e))?;
        command.stdout(out).stderr(err).stdin(Stdio::null());
        Self::start_as_is(command, log, how_often)
    }

    /// Starts `command` with its streams as they are set.
    pub fn start_as_is(command: &mut Command, log: &Path, how_often: Duration) -> Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        command.process_group(0);
        let parent = std::process::id();
        // SAFETY: between fork and exec only `prctl`, `getppid` and `_exit` are called, which are async-signal-safe;
        // nothing is allocated and no lock is taken.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // The parent may have gone before the line above.
                if libc::getppid() as u32 != parent {
                    libc::_exit(1);
                }
                Ok(())
            });
        }
        let child = command.spawn().map_err(|e| Error::io(&program, e))?;
        let pid = child.id();
        let watch = Arc::new(Watch::default());
        let seen = Arc::clone(&watch);
        let watcher = std::thread::spawn(move || {
            while !seen.stop.load(Ordering::Relaxed) {
                seen.look(pid);
                std::thread::park_timeout(how_often);
            }
        });
        Ok(Self {
            child: Arc::new(Mutex::new(child)),
            pid,
            program,
            log: log.to_owned(),
            watch,
            watcher: Some(watcher),
        })
    }

    /// A server: looked at rarely.
    pub fn server(command: &mut Command, log: &Path) -> Result<Self> {
        Self::start(command, log, RARE_LOOK)
    }

    /// The process, to take its streams from or to end it from another thread.
    pub fn child(&self) -> &Arc<Mutex<Child>> {
        &self.child
    }

    /// True if it still runs.
    pub fn alive(&self) -> bool {
        matches!(lock(&self.child).try_wait(), Ok(None))
    }

    /// The most memory seen so far.
    pub fn memory(&self) -> Memory {
        self.watch.look(self.pid);
        Memory {
            resident: self.watch.resident.load(Ordering::Relaxed),
            own: self.watch.own.load(Ordering::Relaxed),
        }
    }

    /// An error with what the program said last.
    pub fn error(&self, what: &str) -> Error {
        Error::Program {
            program: self.program.clone(),
            status: what.to_owned(),
            said: last_lines(&self.log),
        }
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Result<Memory> {
        let status = loop {
            match lock(&self.child).try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(e) => return Err(Error::io(&self.program, e)),
            }
            // Short compared with any load that is worth timing.
            std::thread::sleep(Duration::from_millis(2));
        };
        let memory = Memory {
            resident: self.watch.resident.load(Ordering::Relaxed),
            own: self.watch.own.load(Ordering::Relaxed),
        };
        self.end();
        if status.success() {
            Ok(memory)
        } else {
            Err(self.error(&status.to_string()))
        }
    }

    /// Asks it to end (SIGTERM), and ends it after `patience`.
    pub fn terminate(mut self, patience: Duration) {
        self.signal(libc::SIGTERM);
        let end = Instant::now() + patience;
        while self.alive() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.end();
    }

    /// Ends it at once.
    pub fn kill(mut self) {
        self.end();
    }

    fn signal(&self, signal: i32) {
        let mut child = lock(&self.child);
        // A child that was waited for may have given its id to another process.
        if let Ok(None) = child.try_wait() {
            // SAFETY: a plain system call; the id is that of our own child, which has not been waited for.
            unsafe {
                libc::kill(-(self.pid as i32), signal);
            }
        }
    }

    fn end(&mut self) {
        self.signal(libc::SIGKILL);
        let _ = lock(&self.child).wait();
        self.watch.stop.store(true, Ordering::Relaxed);
        if let Some(w) = self.watcher.take() {
            w.thread().unpark();
            let _ = w.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// A child is plain data: a thread that panicked while holding it left nothing half done.
pub fn lock<T>(m: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a program to its end: seconds and peak memory of its process tree.
pub fn run_to_end(command: &mut Command, log: &Path) -> Result<(f64, Memory)> {
    let start = Instant::now();
    let memory = Running::start(command, log, LOOK)?.wait()?;
    Ok((start.elapsed().as_secs_f64(), memory))
}

fn last_lines(log: &Path) -> String {
    let text = tail(log, 4096).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let said = lines[lines.len().saturating_sub(6)..].join(" | ");
    if said.is_empty() {
        format!("it said nothing; see {}", log.display())
    } else {
        said
    }
}

fn tail(path: &Path, bytes: u64) -> std::io::Result<String> {
    let mut f = File::open(path)?;
    let length = f.metadata()?.len();
    f.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
    let mut out = Vec::new();
    f.read_to_end(&mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Memory of a process and all that descend from it, now; of each the kernel's own high-water mark where that is more.
fn tree_memory(pid: u32) -> Memory {
    let mut all = Memory::default();
    let mut open = vec![pid];
    // A tree of these programs has a handful of processes; the bound is against a loop through reused ids.
    for _ in 0..256 {
        let Some(pid) = open.pop() else { break };
        let m = memory_of(&format!("/proc/{pid}/status"), "VmHWM:");
        all.resident += m.resident;
        all.own += m.own;
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            open.extend(
                children
                    .split_whitespace()
                    .filter_map(|c| c.parse::<u32>().ok()),
            );
        }
    }
    all
}

fn memory_of(status: &str, resident: &str) -> Memory {
    let status = fs::read_to_string(status).unwrap_or_default();
    let field = |name: &str| {
        status
            .lines()
            .find_map(|l| l.strip_prefix(name))
            .and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok())
            .unwrap_or(0)
            << 10
    };
    Memory {
        resident: field(resident),
        own: field("RssAnon:"),
    }
}

/// This process's memory now.
pub fn own_memory() -> Memory {
    memory_of("/proc/self/status", "VmRSS:")
}

/// Bytes of the blocks that a file or folder takes on disk.
pub fn disk_usage(path: &Path) -> u64 {
    let Ok(meta) = fs::symlink_metadata(path) else {
        return 0;
    };
    let own = meta.blocks() * 512;
    if !meta.is_dir() {
        return own;
    }
    let inside: u64 = fs::read_dir(path)
        .map(|d| d.flatten().map(|e| disk_usage(&e.path())).sum())
        .unwrap_or(0);
    own + inside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_timed_and_its_memory_seen() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let (seconds, memory) =
            run_to_end(Command::new("sh").args(["-c", "sleep 0.3; true"]), &log).unwrap();
        assert!((0.3..60.0).contains(&seconds), "{seconds}");
        assert!(memory.resident > 100 << 10, "{memory:?}");
    }

    #[test]
    fn a_failure_tells_what_was_said() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let e = run_to_end(
            Command::new("sh").args(["-c", "echo out of luck >&2; exit 7"]),
            &log,
        )
        .unwrap_err()
        .to_string();
        assert!(e.contains("out of luck") && e.contains('7'), "{e}");
        assert!(run_to_end(&mut Command::new("/nonexistent/program"), &log).is_err());
    }

    #[test]
    fn dropping_ends_the_whole_group() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let r = Running::server(
            Command::new("sh").args(["-c", "sleep 1000 & echo $!; wait"]),
            &log,
        )
        .unwrap();
        let inner = loop {
            let said = fs::read_to_string(&log).unwrap();
            if said.ends_with('\n') {
                break said.trim().to_owned();
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(r.alive());
        drop(r);
        // Gone, or a zombie until its new parent has waited for it.
        let state = |pid: &str| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        for _ in 0..200 {
            let s = state(&inner);
            if s.is_empty() || s.contains(") Z ") {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the grandchild still runs: {}", state(&inner));
    }

    #[test]
    fn disk_usage_counts_blocks() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), vec![1; 100_000]).unwrap();
        let used = disk_usage(dir.path());
        assert!((98_304..200_000).contains(&used), "{used}");
    }
}
