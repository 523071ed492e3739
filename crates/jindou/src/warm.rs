//! Reads a store's files into memory while queries are already running.

use crate::Database;
use jindou_model::{Error, Machine, Result, machine, sync};
use jindou_store::{Snapshot, WarmProgress, warm};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// When a server reads its store's files into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warm {
    /// Never: queries read pages from the disk when they need them.
    None,
    /// In the background, while queries are answered.
    #[default]
    Background,
    /// As [`Self::Background`], but the server reports that it is ready only when the files have been read.
    BeforeReady,
}

impl std::str::FromStr for Warm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "background" => Ok(Self::Background),
            "before-ready" => Ok(Self::BeforeReady),
            _ => Err(format!(
                "'{text}' is not one of none, background and before-ready"
            )),
        }
    }
}

/// Time after which the use counts of segments are saved again.
const KEEP: Duration = Duration::from_secs(600);

/// Handle of the thread that reads a store's files and saves how often queries use each segment. The thread holds the
/// database open, and ends when this is dropped.
#[derive(Debug)]
pub struct Warming {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    progress: WarmProgress,
    done: AtomicBool,
    ended: Mutex<bool>,
    end: Condvar,
}

impl Shared {
    fn has_ended(&self) -> bool {
        *sync::lock(&self.ended)
    }

    /// Waits at most `time` until the handle is dropped. Returns true if it was dropped.
    fn wait(&self, time: Duration) -> bool {
        let ended = sync::lock(&self.ended);
        let ended = self.end.wait_timeout_while(ended, time, |ended| !*ended);
        match ended {
            Ok((ended, _)) => *ended,
            Err(_) => true,
        }
    }
}

impl Warming {
    /// Number of bytes that have been read, and of all bytes to read.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let progress = &self.shared.progress;
        (
            progress.read.load(Ordering::Relaxed),
            progress.wanted.load(Ordering::Relaxed),
        )
    }

    /// True if all files that fit into memory were read, or if reading has failed.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.shared.done.load(Ordering::Acquire)
    }
}

impl Drop for Warming {
    fn drop(&mut self) {
        *sync::lock(&self.shared.ended) = true;
        self.shared.end.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Database {
    /// Reads the store's files into the page cache on a thread of its own, as far as memory allows, the most used parts
    /// first. Afterwards saves the use counts of segments in the store's folder, every ten minutes and at the end; they
    /// determine the order of reading after the next start. `failed` is called if reading ends early; queries that need
    /// the same data report the same failure.
    ///
    /// # Errors
    /// [`Error::Io`] if no thread can be started.
    pub fn warm(&self, failed: impl FnOnce(&Error) + Send + 'static) -> Result<Warming> {
        let shared = Arc::new(Shared::default());
        let (db, told) = (self.clone(), Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name("jindou-warm".into())
            .spawn(move || {
                match read(&db.snapshot(), &told) {
                    Ok(()) | Err(Error::Cancelled) => {}
                    // A merge has replaced and removed the files. Its new files were just written, so they are in
                    // memory.
                    Err(Error::Io { source, .. })
                        if source.kind() == std::io::ErrorKind::NotFound => {}
                    Err(e) => failed(&e),
                }
                told.done.store(true, Ordering::Release);
                while !told.wait(KEEP) {
                    keep_use(&db);
                }
                keep_use(&db);
            })
            .map_err(|e| Error::io("a thread that reads the store's files", e))?;
        Ok(Warming {
            shared,
            thread: Some(thread),
        })
    }
}

/// Saves the use counts of segments. Errors are ignored, since the counts only affect the order of reading after the
/// next start.
fn keep_use(db: &Database) {
    let _ = db.snapshot().base().keep_segment_use();
}

/// Reads a snapshot's files, as far as memory allows.
fn read(snapshot: &Snapshot, shared: &Shared) -> Result<()> {
    machine::read_after_others();
    let parts = snapshot.base().warm_parts();
    warm(&parts, room(), &shared.progress, &|| shared.has_ended()).map(drop)
}

/// Bytes of memory that files may use: nine tenths of the memory that is free or already used by the page cache.
fn room() -> u64 {
    let machine = Machine::read();
    machine.available() / 10 * 9
}
