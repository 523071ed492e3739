//! Files mapped read-only whose failure is an error and no signal.
//!
//! A read of a mapped page that its file no longer has, or that the disk cannot give, raises SIGBUS, which ends the process.
//! Here the first file that is mapped installs a handler for it ([`leave_signal_alone`] says otherwise). The handler looks the
//! address up in a table of mapped files, marks the file as failed, and puts zero pages in its place, so that the read goes on.
//! Readers of such a file must therefore tolerate any content, and ask [`MappedFile::check`] before anything that was read
//! counts: before an answer is complete, before a change is written. A fault elsewhere goes to the handler that was there
//! before.
//!
//! ```text
//! read ─► SIGBUS ─► table: which file? ─► mark it ─► zero pages over the rest of it ─► the read goes on
//!                                    └─► none: the handler before, or the signal's default
//! reader, before its work counts ─► check: marked? its last byte as it was? ─► Error::Damaged names the file
//! ```
//!
//! A file that is cut inside a page raises no signal: the system fills that page with zeros. So a check also reads the last byte
//! that is not zero of the file's last page, and compares it with what it was: a file that is shorter now either lacks that
//! page, which is a fault, or has a zero there. Where a check must cost nothing, [`any_failed`] says whether there was a fault
//! at all. A file that was overwritten in place with as many bytes is noticed where its parts contradict each other and a reader
//! says so ([`contradicts`]); comparing hashes notices any change (`jindou check`).

mod signal;
mod table;

/// Description of a signal, as the system gives it to handlers and [`handle_fault`] takes it.
pub use libc::siginfo_t;
pub use signal::{handle_fault, leave_signal_alone};
pub use table::any_failed;

use crate::{Error, Result, private};
use memmap2::Mmap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use table::{Failure, Region};

/// A file mapped read-only, as long as it was when it was opened.
pub struct MappedFile {
    /// Dropped first, so that no address of another mapping passes for one of this file.
    region: Region,
    map: Mmap,
    path: PathBuf,
    witness: Witness,
}

/// A byte that is not what it was once the file is shorter.
#[derive(Clone, Copy)]
struct Witness {
    at: usize,
    value: u8,
}

impl MappedFile {
    /// Maps a file whole. O(1): one page is read.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be opened or mapped, or is empty; [`Error::Damaged`] when it shrinks meanwhile.
    pub fn open(path: &Path) -> Result<Self> {
        signal::install(path)?;
        let io = |e| Error::io(path, e);
        let file = private::open(path).map_err(io)?;
        // SAFETY: the mapping is read-only, and the files of a store are never changed in place by its own programs: they are
        // complete before they are mapped, and replaced by rename. Where something else cuts one, or the disk fails, the
        // bytes change to zeros under their readers. That those are plain integers, and that each access is
        // bounds-checked against lengths that lie outside the mapping, is what keeps this defined in practice.
        let map = unsafe { Mmap::map(&file) }.map_err(io)?;
        if map.is_empty() {
            return Err(io(std::io::Error::other("the file is empty")));
        }
        let region = Region::new(&map);
        let last_page = (map.len() - 1) / signal::page_size() * signal::page_size();
        let end = &map[last_page..];
        let at = end.iter().rposition(|b| *b != 0).unwrap_or(0);
        let witness = Witness {
            at: last_page + at,
            value: end[at],
        };
        let opened = Self {
            region,
            map,
            path: path.to_owned(),
            witness,
        };
        opened.check()?;
        Ok(opened)
    }

    /// Ok if everything read so far is the file's content when it was opened. Must be called before data that was read
    /// is used. Takes some nanoseconds.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the file, what happened to it, and what to do; permanent once it has failed.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.is_whole() {
            Ok(())
        } else {
            Err(self.failure())
        }
    }

    /// True if [`Self::check`] has nothing to say. A few instructions.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        // SAFETY: `at` is inside the mapping. Volatile, since the byte may change, and the read may raise the signal.
        let value = unsafe { std::ptr::read_volatile(self.map.as_ptr().add(self.witness.at)) };
        if value != self.witness.value {
            self.region.fail();
        }
        // After the read of the witness, which may have marked the region on this thread.
        !self.region.has_failed()
    }

    #[cold]
    fn failure(&self) -> Error {
        let had = self.map.len() as u64;
        let what: String = match std::fs::metadata(&self.path) {
            Ok(m) if m.len() < had => {
                format!(
                    "the file has shrunk from {had} to {} bytes while it was open",
                    m.len()
                )
            }
            _ if self.region.contradicts() => {
                "parts of the file contradict each other: it has changed since it was written, or is damaged".into()
            }
            _ => "the file could not be read while it was open: the disk failed, or the file was truncated for a time".into(),
        };
        let remedy = "discard everything read from it since: put the file back as it was, or restore the store from a backup, \
            and open it again";
        Error::damaged(&self.path, format!("{what}; {remedy}"))
    }

    /// Tells the system that reads will be random.
    pub fn advise_random(&self) {
        let _ = self.map.advise(memmap2::Advice::Random);
    }

    /// The file's name.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Marks the mapped file that these bytes are in as failed, because its content contradicts itself: a reader that finds
/// a position outside of its array calls this, and goes on with whatever it has. Later [checks](MappedFile::check) of
/// the file fail. Does nothing for bytes that are in no mapped file.
#[cold]
#[inline(never)]
pub fn contradicts<T>(bytes: &[T]) {
    // The end of a file may be the start of another one.
    if size_of_val(bytes) > 0 {
        table::fail_at(bytes.as_ptr().addr(), Failure::Contradiction);
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl std::fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes)", self.path.display(), self.map.len())
    }
}
