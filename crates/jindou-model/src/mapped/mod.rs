//! Files mapped read-only. If such a file cannot be read, the result is an error rather than the end of the process.
//!
//! Reading a mapped page that its file no longer has, or that the disk cannot read, raises SIGBUS, which by default
//! ends the process. When the first file is mapped, this module installs a handler (unless [`leave_signal_alone`] was
//! called). The handler looks the address up in a table of mapped files, marks the file as failed, and maps zero pages
//! in place of the missing ones, so that the read continues. Readers must therefore tolerate any content, and call
//! [`MappedFile::check`] before they use what they read: before an answer is complete, before a change is written. A
//! fault at any other address is passed to the previous handler.
//!
//! ```text
//! read ─► SIGBUS ─► table: which file? ─► mark it ─► zero pages over the rest of it ─► the read continues
//!                                    └─► none: the handler before, or the signal's default
//! reader, before its work counts ─► check: marked? its last byte as it was? ─► Error::Damaged names the file
//! ```
//!
//! A file that is truncated inside a page raises no signal, since the system fills the rest of that page with zeros. So
//! a check also reads the last byte of the file that is not zero in the file's last page, and compares it with its
//! original value: if the file is shorter now, either that page is missing, which is a fault, or the byte is zero.
//! Where even a check costs too much, [`any_failed`] tells whether any file has had a fault. A file that was
//! overwritten in place by a file of the same length is detected only where its parts contradict each other and a
//! reader reports it ([`contradicts`]); comparing hashes detects any change (`jindou check`).

mod bytes;
mod signal;
mod table;

pub use bytes::Bytes;
/// The description of a signal that the system passes to handlers, and that [`handle_fault`] takes.
pub use libc::siginfo_t;
pub use signal::{handle_fault, leave_signal_alone};
pub use table::any_failed;

use crate::{Error, Result, private};
use memmap2::Mmap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use table::{Failure, Region};

/// A file mapped read-only, with the length that it had when it was opened.
pub struct MappedFile {
    /// Declared, and so dropped, before `map`: after unmapping, another mapping may get the same addresses.
    region: Region,
    map: Mmap,
    path: PathBuf,
    witness: Witness,
}

/// A byte whose value changes if the file becomes shorter.
#[derive(Clone, Copy)]
struct Witness {
    at: usize,
    value: u8,
}

impl MappedFile {
    /// Maps a whole file. O(1): one page is read.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be opened or mapped, or is empty; [`Error::Damaged`] if it shrinks meanwhile.
    pub fn open(path: &Path) -> Result<Self> {
        signal::install(path)?;
        let io = |e| Error::io(path, e);
        let file = private::open(path).map_err(io)?;
        // SAFETY: the mapping is read-only, and Jindou never changes a store's file in place: files are complete before
        // they are mapped, and are replaced by rename. If another program truncates one, or the disk fails, bytes
        // change to zeros while they are read. In practice this is well defined nevertheless, since the bytes are read
        // as plain integers, and each access is bounds-checked against lengths that are stored outside the mapping.
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

    /// Ok if everything read so far was the content that the file had when it was opened. Must be called after reading
    /// and before the result is used. Takes some nanoseconds.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the file, the cause, and the remedy. Once it has failed, it always fails.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.is_whole() {
            Ok(())
        } else {
            Err(self.failure())
        }
    }

    /// True if [`Self::check`] would succeed. Takes a few instructions.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        // SAFETY: `at` is inside the mapping. The read is volatile, since the byte may change, and reading may raise
        // the signal.
        let value = unsafe { std::ptr::read_volatile(self.map.as_ptr().add(self.witness.at)) };
        if value != self.witness.value {
            self.region.fail();
        }
        // This must follow the read of the witness, whose fault may have marked the region.
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

    /// Tells the system to expect random reads, so that it does not read ahead.
    pub fn advise_random(&self) {
        let _ = self.map.advise(memmap2::Advice::Random);
    }

    /// The path with which the file was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Marks the mapped file that contains these bytes as failed, because its content contradicts itself: for example, a
/// reader has found an offset outside of an array. The reader may continue with any value, since later
/// [checks](MappedFile::check) of the file fail. Does nothing for bytes outside of mapped files.
#[cold]
#[inline(never)]
pub fn contradicts<T>(bytes: &[T]) {
    // An empty slice may have the address of another file's first byte.
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

crate::debug_format!(
    MappedFile,
    |this| "{} ({} bytes)",
    this.path.display(),
    this.map.len()
);
