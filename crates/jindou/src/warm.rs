//! Reading a store's files into memory while queries run already.

use crate::Database;
use jindou_model::{CancelToken, Error, Machine, Result, machine, sync};
use jindou_store::{Snapshot, WarmProgress, warm};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// When a server reads its store's files into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warm {
    /// Never: queries wait for the disk, page by page.
    None,
    /// While queries are answered.
    #[default]
    Background,
    /// As [`Self::Background`], but the server says that it is ready only when that is done.
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

/// Time between two writings of how often segments are asked for.
const KEEP: Duration = Duration::from_secs(600);
/// Time between two looks for files to pin for a GPU: those of a merge, or of the store once a GPU is open.
const LOOK: Duration = Duration::from_secs(2);

/// The reading of a store's files in the background, the counts of what queries ask for, and the files that are pinned for a GPU. Keeps the
/// database open, and ends when it is dropped.
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
    /// Ends the pinning of files.
    cancel: CancelToken,
}

impl Shared {
    fn has_ended(&self) -> bool {
        *sync::lock(&self.ended)
    }

    /// Waits for the end, for some time at most. True if it has come.
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
    /// Bytes that have been read, and that are to be read.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let progress = &self.shared.progress;
        (
            progress.read.load(Ordering::Relaxed),
            progress.wanted.load(Ordering::Relaxed),
        )
    }

    /// True if everything that memory has room for has been read, or reading has failed.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.shared.done.load(Ordering::Acquire)
    }
}

impl Drop for Warming {
    fn drop(&mut self) {
        *sync::lock(&self.shared.ended) = true;
        self.shared.cancel.cancel();
        self.shared.end.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A part of keeping a store warm that has failed. The rest goes on.
#[derive(Debug)]
#[non_exhaustive]
pub enum WarmFailure {
    /// Reading has ended early. Queries meet the same failure where it concerns them.
    Reading(Error),
    /// Files are not pinned for a GPU, or not all for which there is room: threads copy from them, more slowly.
    Pinning(Error),
}

impl std::fmt::Display for WarmFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Reading(e) => write!(f, "the store is not read into memory as a whole: {e}"),
            Self::Pinning(e) => write!(f, "the store's files are not pinned for the GPU: {e}"),
        }
    }
}

impl Database {
    /// Reads the store's files into the system's page cache on a thread of its own, in the order in which queries need them, as far as
    /// memory has room; then keeps in the store's folder, every ten minutes and at the end, how often each segment was asked for,
    /// which is that order after the next start. If everything was read, it also pins the files of segments for a GPU that is open, as many as
    /// [`RuntimeBuilder::gpu_pinned`](crate::RuntimeBuilder::gpu_pinned) says, until it ends. `failed` is told of each failure, of repeated
    /// ones once.
    ///
    /// # Errors
    /// [`Error::Io`] if no thread can be started.
    pub fn warm(&self, mut failed: impl FnMut(&WarmFailure) + Send + 'static) -> Result<Warming> {
        let shared = Arc::new(Shared::default());
        let (db, told) = (self.clone(), Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name("jindou-warm".into())
            .spawn(move || {
                let read = match read(&db.snapshot(), &told) {
                    // The base was merged or replaced meanwhile, and its files were removed: the new ones were just written.
                    Err(Error::Io { source, .. })
                        if source.kind() == std::io::ErrorKind::NotFound =>
                    {
                        Ok(true)
                    }
                    read => read,
                };
                let pins = db.runtime().devices().pins_files();
                let is_all = match read {
                    Ok(is_all) => {
                        if pins && !is_all {
                            let why = "memory has no room for the whole store";
                            failed(&WarmFailure::Pinning(Error::Unsupported(why.into())));
                        }
                        is_all
                    }
                    Err(Error::Cancelled) => false,
                    Err(e) => {
                        failed(&WarmFailure::Reading(e));
                        false
                    }
                };
                told.done.store(true, Ordering::Release);
                if pins && is_all {
                    stay_pinned(&db, &told, &mut failed);
                } else {
                    while !told.wait(KEEP) {
                        keep_use(&db);
                    }
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

/// Keeps how often segments were asked for. A folder that cannot be written has no counts for the next start, which is only slower.
fn keep_use(db: &Database) {
    let _ = db.snapshot().base().keep_segment_use();
}

/// Pins files for a GPU that is open, and those of merges after them, until the end.
fn stay_pinned(db: &Database, told: &Shared, failed: &mut dyn FnMut(&WarmFailure)) {
    machine::read_as_others();
    let devices = db.runtime().devices();
    let mut kept = Instant::now();
    let mut failed_at: Option<Instant> = None;
    let mut said = String::new();
    loop {
        if failed_at.is_none_or(|at| at.elapsed() >= KEEP) {
            failed_at = match devices.pin_files(|| db.snapshot(), &told.cancel) {
                Ok(()) => None,
                Err(Error::Cancelled) => Some(Instant::now()),
                Err(e) => {
                    let failure = WarmFailure::Pinning(e);
                    let text = failure.to_string();
                    if said != text {
                        failed(&failure);
                        said = text;
                    }
                    Some(Instant::now())
                }
            };
        }
        if told.wait(LOOK) {
            break;
        }
        if kept.elapsed() >= KEEP {
            kept = Instant::now();
            keep_use(db);
        }
    }
    devices.release_files(&db.snapshot());
}

/// Reads a snapshot's files. True if that was all of them.
fn read(snapshot: &Snapshot, shared: &Shared) -> Result<bool> {
    machine::read_after_others();
    let parts = snapshot.base().warm_parts();
    let all: u64 = parts
        .iter()
        .map(|part| part.bytes.end - part.bytes.start)
        .sum();
    let room = room();
    warm(&parts, room, &shared.progress, &|| shared.has_ended())?;
    Ok(all <= room)
}

/// Bytes of memory that files may take: nine tenths of those that are free or hold files already.
fn room() -> u64 {
    let machine = Machine::read();
    machine.available() / 10 * 9
}
