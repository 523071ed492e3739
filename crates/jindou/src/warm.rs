//! Reads a store's files into memory while queries are already running.

use crate::Database;
use crate::update::{Background, Stop};
use jindou_model::{Error, Machine, Result, machine};
use jindou_store::{Snapshot, WarmProgress, warm};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    _background: Background,
}

#[derive(Debug, Default)]
struct Shared {
    progress: WarmProgress,
    done: AtomicBool,
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

impl Database {
    /// Reads the store's files into the page cache on a thread of its own, as far as memory allows, the most used parts
    /// first. Afterwards saves the use counts of segments in the store's folder, every ten minutes and at the end; they
    /// determine the order of reading after the next start. `failed` is called if reading ends early; queries that need
    /// the same data report the same failure.
    ///
    /// # Errors
    /// [`Error::Limit`] if no thread can be started.
    pub fn warm(&self, failed: impl FnOnce(&Error) + Send + 'static) -> Result<Warming> {
        let shared = Arc::new(Shared::default());
        let (db, told) = (self.clone(), Arc::clone(&shared));
        let work = move |stop: &Stop| {
            match read(&db.snapshot(), &told.progress, stop) {
                Ok(()) | Err(Error::Cancelled) => {}
                // A merge has replaced and removed the files. Its new files were just written, so they are in memory.
                Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => failed(&e),
            }
            told.done.store(true, Ordering::Release);
            while !stop.wait(KEEP) {
                keep_use(&db);
            }
            keep_use(&db);
        };
        let failure = "cannot start a thread that reads the store's files";
        Ok(Warming {
            shared,
            _background: Background::start("jindou-warm", failure, work)?,
        })
    }
}

/// Saves the use counts of segments. Errors are ignored, since the counts only affect the order of reading after the
/// next start.
fn keep_use(db: &Database) {
    let _ = db.snapshot().base().keep_segment_use();
}

/// Reads a snapshot's files, as far as memory allows.
fn read(snapshot: &Snapshot, progress: &WarmProgress, stop: &Stop) -> Result<()> {
    machine::read_after_others();
    let parts = snapshot.base().warm_parts();
    let has_ended = || stop.wait(Duration::ZERO);
    warm(&parts, room(), progress, &has_ended).map(drop)
}

/// Bytes of memory that files may use: nine tenths of the memory that is free or already used by the page cache.
fn room() -> u64 {
    let machine = Machine::read();
    machine.available() / 10 * 9
}
