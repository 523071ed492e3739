//! Output files of a merge, written through the file layer at a limited rate, until the merge is cancelled.

use jindou_log::{File, Files};
use jindou_model::{CancelToken, Error, Result};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Number of written bytes after which a file is synced: one large sync at the end would delay the small syncs of the
/// log.
const SYNC_EVERY: u64 = 32 << 20;
/// Longest sleep between two checks whether the merge was cancelled.
const NAP: Duration = Duration::from_millis(50);

/// State that all files of a merge share: the file layer, the rate limit, and the cancel token.
pub(super) struct Pace<'a> {
    pub files: &'a dyn Files,
    pub cancel: &'a CancelToken,
    limit: Option<u64>,
    begun: Instant,
    written: AtomicU64,
}

impl<'a> Pace<'a> {
    pub fn new(files: &'a dyn Files, cancel: &'a CancelToken, limit: Option<u64>) -> Self {
        Self {
            files,
            cancel,
            limit: limit.map(|l| l.max(1)),
            begun: Instant::now(),
            written: AtomicU64::new(0),
        }
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn wrote(&self, bytes: u64) -> std::io::Result<()> {
        let all = self.written.fetch_add(bytes, Ordering::Relaxed) + bytes;
        loop {
            self.cancel.check().map_err(std::io::Error::other)?;
            let Some(limit) = self.limit else {
                return Ok(());
            };
            let due = Duration::from_secs_f64(all as f64 / limit as f64);
            match due.checked_sub(self.begun.elapsed()) {
                Some(early) if !early.is_zero() => std::thread::sleep(early.min(NAP)),
                _ => return Ok(()),
            }
        }
    }

    fn wrong(&self, name: &str, e: std::io::Error) -> Error {
        // A cancellation is reported as a write error.
        match self.cancel.check() {
            Err(cancelled) => cancelled,
            Ok(()) => Error::io(self.files.path(name), e),
        }
    }

    /// Writes a file and syncs it; returns its length.
    pub fn create(
        &self,
        name: &str,
        write: impl FnOnce(Out<'_>) -> std::io::Result<Out<'_>>,
    ) -> Result<u64> {
        let wrong = |e| self.wrong(name, e);
        let file = self.files.create(name).map_err(wrong)?;
        let to = PacedFile {
            file,
            at: 0,
            unsynced: 0,
            pace: self,
        };
        let out = write(BufWriter::with_capacity(1 << 20, to)).map_err(wrong)?;
        let mut to = out.into_inner().map_err(|e| wrong(e.into_error()))?;
        to.file.sync().map_err(wrong)?;
        to.file.len().map_err(wrong)
    }

    /// Writes and syncs a small file.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<u64> {
        self.create(name, |mut out| out.write_all(bytes).map(|()| out))
    }

    /// Path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.files.path(name)
    }
}

/// A file that is being written.
pub(super) type Out<'p> = BufWriter<PacedFile<'p>>;

/// A file of a merge: writing to it observes the rate limit.
pub(super) struct PacedFile<'p> {
    file: Box<dyn File>,
    at: u64,
    unsynced: u64,
    pace: &'p Pace<'p>,
}

impl Write for PacedFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write_at(self.at, bytes)?;
        let n = bytes.len() as u64;
        self.at += n;
        self.unsynced += n;
        self.pace.wrote(n)?;
        if self.unsynced >= SYNC_EVERY {
            self.file.sync()?;
            self.unsynced = 0;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Seek for PacedFile<'_> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.at = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::Current(by) => self.at.saturating_add_signed(by),
            SeekFrom::End(by) => self.file.len()?.saturating_add_signed(by),
        };
        Ok(self.at)
    }
}
