//! Temporary files of queries that need more memory than they may use.
//!
//! A file is unlinked when it is created, so none remains even if the process is killed. Its space is freed when the
//! last [`TempFile`] is dropped.

use crate::budget::size;
use crate::machine::free_space;
use crate::{Error, Limit, Resource, Result};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Counts the bytes of all queries' temporary files, which share a limit.
#[derive(Debug, Default)]
pub struct TempSpace {
    /// Set when the first file is created, if no limit was given.
    limit: OnceLock<u64>,
    used: AtomicU64,
    written: AtomicU64,
}

impl TempSpace {
    /// A limit in bytes; with `None`, half of the space that is free when the first file is created.
    #[must_use]
    pub fn new(limit: Option<u64>) -> Self {
        let space = Self::default();
        if let Some(limit) = limit {
            let _ = space.limit.set(limit);
        }
        space
    }

    /// Bytes of the files that exist now.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes written so far, also to files that no longer exist.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}

/// The temporary files that one query may create. Cheap to clone, usable from every thread.
#[derive(Clone, Debug)]
pub struct QueryTemp {
    inner: Arc<QueryTempState>,
}

#[derive(Debug)]
struct QueryTempState {
    space: Arc<TempSpace>,
    folder: Arc<Path>,
    limit: u64,
    used: AtomicU64,
    written: AtomicU64,
}

impl QueryTemp {
    /// Files in `folder` of at most `limit` bytes together, which also count towards the limit of `space`.
    #[must_use]
    pub fn new(space: Arc<TempSpace>, folder: Arc<Path>, limit: u64) -> Self {
        Self {
            inner: Arc::new(QueryTempState {
                space,
                folder,
                limit,
                used: AtomicU64::new(0),
                written: AtomicU64::new(0),
            }),
        }
    }

    /// Bytes written so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.inner.written.load(Ordering::Relaxed)
    }

    /// Creates an empty file.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder is missing or cannot be written.
    pub fn file(&self) -> Result<TempFile> {
        let folder = &self.inner.folder;
        let file = tempfile::tempfile_in(folder).map_err(|e| self.failed("created", &e))?;
        let space = &self.inner.space.limit;
        space.get_or_init(|| free_space(folder) / 2);
        Ok(TempFile {
            file,
            end: AtomicU64::new(0),
            temp: self.clone(),
        })
    }

    #[cold]
    fn failed(&self, what: &str, e: &io::Error) -> Error {
        let message = format!("a temporary file of a query cannot be {what}: {e}");
        Error::io(&*self.inner.folder, io::Error::new(e.kind(), message))
    }

    /// Counts `bytes` more, unless they exceed a limit.
    fn take(&self, bytes: u64) -> Result<()> {
        let (state, space) = (&*self.inner, &*self.inner.space);
        let all = space.limit.get().copied().unwrap_or(u64::MAX);
        if state.used.fetch_add(bytes, Ordering::Relaxed) + bytes > state.limit {
            state.used.fetch_sub(bytes, Ordering::Relaxed);
            let message = format!(
                "the limit of {} for temporary files of a query is reached",
                size(state.limit)
            );
            let limit = Limit::new(Resource::Disk, message).of(state.limit);
            return Err(Error::Limit(limit));
        }
        if space.used.fetch_add(bytes, Ordering::Relaxed) + bytes > all {
            self.give_back(bytes);
            let message = format!(
                "the temporary files of all queries reached their limit of {}",
                size(all)
            );
            let limit = Limit::new(Resource::Disk, message).of(all);
            // A query that does not fit alone will not fit later either.
            return Err(match state.used.load(Ordering::Relaxed) + bytes > all {
                true => Error::Limit(limit),
                false => Error::Busy(limit),
            });
        }
        state.written.fetch_add(bytes, Ordering::Relaxed);
        space.written.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        self.inner.used.fetch_sub(bytes, Ordering::Relaxed);
        self.inner.space.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A temporary file that only grows. Several threads may append to it and read it.
#[derive(Debug)]
pub struct TempFile {
    file: File,
    end: AtomicU64,
    temp: QueryTemp,
}

impl TempFile {
    /// Appends bytes and returns their position. Callers collect some 64 KiB, since each call is a system call.
    ///
    /// # Errors
    /// [`Error::Io`] if they cannot be written (the disk is full); [`Error::Limit`] or [`Error::Busy`] at a limit.
    pub fn append(&self, bytes: &[u8]) -> Result<u64> {
        self.temp.take(bytes.len() as u64)?;
        let at = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        match self.file.write_all_at(bytes, at) {
            Ok(()) => Ok(at),
            Err(e) => Err(self.temp.failed("written", &e)),
        }
    }

    /// As [`Self::append`], for ids.
    ///
    /// # Errors
    /// Those of [`Self::append`].
    pub fn append_ids(&self, ids: &[u32]) -> Result<u64> {
        self.append(bytemuck::cast_slice(ids))
    }

    /// As [`Self::read`], for ids.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub fn read_ids(&self, to: &mut [u32], at: u64) -> Result<()> {
        self.read(bytemuck::cast_slice_mut(to), at)
    }

    /// Position of the next byte that is appended.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Reads bytes that were appended.
    ///
    /// # Errors
    /// [`Error::Io`] if the disk fails, or if something has truncated the file.
    pub fn read(&self, to: &mut [u8], at: u64) -> Result<()> {
        self.file
            .read_exact_at(to, at)
            .map_err(|e| self.temp.failed("read", &e))
    }

    /// Removes the bytes from position `len` on, as a failing disk would.
    ///
    /// # Errors
    /// Those of the system.
    #[doc(hidden)]
    pub fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        self.temp.give_back(*self.end.get_mut());
    }
}

/// Checks that a folder is suitable for temporary files: it exists, can be written, and is not in memory.
///
/// # Errors
/// [`Error::Usage`] for a memory file system, [`Error::Io`] if no file can be created.
pub fn check_folder(folder: &Path) -> Result<()> {
    if is_in_memory(folder) {
        return Err(Error::Usage(format!(
            "{}: temporary files on a memory file system would use the memory that they are to save; name a folder on a disk",
            folder.display()
        )));
    }
    tempfile::tempfile_in(folder).map_err(|e| Error::io(folder, e))?;
    Ok(())
}

/// True if a folder is on a file system that keeps files in memory (tmpfs, ramfs).
#[must_use]
pub fn is_in_memory(folder: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::ffi::OsStrExt;
        const RAMFS: u64 = 0x8584_58F6;
        let Ok(path) = std::ffi::CString::new(folder.as_os_str().as_bytes()) else {
            return false;
        };
        let mut found = std::mem::MaybeUninit::<libc::statfs>::zeroed();
        // SAFETY: `path` is a terminated string and `found` has room for the answer.
        if unsafe { libc::statfs(path.as_ptr(), found.as_mut_ptr()) } != 0 {
            return false;
        }
        // SAFETY: the call succeeded and filled it.
        let kind = unsafe { found.assume_init() }.f_type as u64;
        kind & 0xFFFF_FFFF == RAMFS || kind == libc::TMPFS_MAGIC as u64
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = folder;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temp(limit: u64, all: u64, folder: &Path) -> (Arc<TempSpace>, QueryTemp) {
        let space = Arc::new(TempSpace::new(Some(all)));
        let temp = QueryTemp::new(Arc::clone(&space), folder.into(), limit);
        (space, temp)
    }

    #[test]
    fn bytes_come_back_and_are_counted_until_the_file_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let (space, temp) = temp(10, 15, folder.path());
        let file = temp.file().unwrap();
        assert_eq!(file.append(b"abcd").unwrap(), 0);
        assert_eq!(file.append(b"efg").unwrap(), 4);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let mut read = [0; 5];
        file.read(&mut read, 1).unwrap();
        assert_eq!(&read, b"bcdef");
        let own = file.append(b"1234").unwrap_err();
        assert!(matches!(&own, Error::Limit(l) if l.resource == Resource::Disk));
        let other = QueryTemp::new(Arc::clone(&space), folder.path().into(), 100);
        let second = other.file().unwrap();
        second.append(b"12345678").unwrap();
        assert!(matches!(second.append(b"9"), Err(Error::Busy(_))));
        drop(file);
        assert!(matches!(second.append(b"12345678"), Err(Error::Limit(_))));
        second.append(b"9").unwrap();
        assert_eq!((space.used(), space.written(), temp.written()), (9, 16, 7));
        drop(second);
        assert_eq!(space.used(), 0);
    }

    #[test]
    fn failures_name_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (_, temp) = temp(1 << 20, 1 << 20, folder.path());
        let file = temp.file().unwrap();
        file.append(&[1; 100]).unwrap();
        file.truncate(50).unwrap();
        let e = file.read(&mut [0; 100], 0).unwrap_err().to_string();
        assert!(e.contains("cannot be read") && e.contains(&*folder.path().to_string_lossy()));
        let path = folder.path().to_owned();
        drop(folder);
        let e = temp.file().unwrap_err().to_string();
        assert!(e.contains("cannot be created"), "{e}");
        assert!(check_folder(&path).is_err());
        #[cfg(target_os = "linux")]
        if is_in_memory(Path::new("/dev/shm")) {
            let e = check_folder(Path::new("/dev/shm")).unwrap_err();
            assert!(e.to_string().contains("memory file system"), "{e}");
        }
    }
}
