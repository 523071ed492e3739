//! The file layer: the operations on files that the log needs, and their implementation by a real directory.

use crate::end::END;
use jindou_model::private;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A folder of files without subfolders. A backup only lists, reads, puts and removes files, and uses their paths.
///
/// An implementation guarantees what POSIX guarantees, and no more. Written bytes survive a loss of power once
/// [`File::sync`] has returned `Ok`; a created, renamed or removed name does once [`Files::sync_directory`] has. Of
/// bytes that were not synced, any 512-byte sectors may survive; the others read as zeros or are beyond the file's end.
/// After a failed sync, nothing is known about data written since the last successful one, and a later `Ok` says
/// nothing about that data.
pub trait Files: Send + Sync {
    /// Names of all files, in any order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// The first `limit` bytes of a file, or the whole file if it is shorter.
    fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>>;

    /// [`Files::read`] for several files. Storage with high latency reads them concurrently.
    fn read_many(&self, names: &[String], limit: u64) -> Vec<io::Result<Vec<u8>>> {
        names.iter().map(|n| self.read(n, limit)).collect()
    }

    /// Creates an empty file, or truncates an existing one, and opens it for writing.
    fn create(&self, name: &str) -> io::Result<Box<dyn File>>;

    /// Opens an existing file for writing.
    fn open(&self, name: &str) -> io::Result<Box<dyn File>>;

    /// Renames a file, replacing any file with the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes earlier creations, renamings and removals of names durable.
    fn sync_directory(&self) -> io::Result<()>;

    /// Path of a file, for messages.
    fn path(&self, name: &str) -> PathBuf;

    /// The bytes that were last passed to [`Files::set_end`]; `None` if it was never called.
    fn end(&self) -> io::Result<Option<Vec<u8>>> {
        if_found(self.read(END, LONGEST_END))
    }

    /// Stores a few bytes that describe the log's end, outside of the folder if possible. They are durable once this
    /// returns `Ok`; after an error, either the new or the old bytes are stored.
    fn set_end(&self, bytes: &[u8]) -> io::Result<()> {
        self.put(END, bytes)
    }

    /// Location of the bytes of [`Files::set_end`], for messages.
    fn end_path(&self) -> PathBuf {
        self.path(END)
    }

    /// Creates a file with this content, which is durable once this returns `Ok`; after an error, the file exists
    /// either completely or not at all. A directory replaces an existing file of that name. An object store refuses to
    /// with [`io::ErrorKind::AlreadyExists`].
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let temporary = format!("{name}{TEMPORARY}");
        let put = || {
            let mut file = self.create(&temporary)?;
            file.write_at(0, bytes)?;
            file.sync()?;
            drop(file);
            self.rename(&temporary, name)?;
            self.sync_directory()
        };
        let result = put();
        if result.is_err() {
            // Frees the space. If the removal fails, too, the first error is the more useful one.
            let _ = self.remove(&temporary);
        }
        result
    }
}

/// The bytes that were read; `None` if there is no such file.
pub(crate) fn if_found(read: io::Result<Vec<u8>>) -> io::Result<Option<Vec<u8>>> {
    match read {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Name of the copy of the end record that is in the log's folder.
const COPY_OF_END: &str = "end.jd";

/// Longest length in bytes of an end record, which is a text of five short lines.
const LONGEST_END: u64 = 1 << 10;

/// Suffix that [`Files::put`] appends to the name of an incomplete file.
pub(crate) const TEMPORARY: &str = ".tmp";

/// A file that is open for writing, by one writer at a time.
#[allow(clippy::len_without_is_empty)]
pub trait File: Send {
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Writes all of `bytes` from byte `at` on. After an error, any part of them may have been written.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes everything that was written durable, including the length.
    fn sync(&mut self) -> io::Result<()>;

    /// Truncates the file to `length` bytes, or extends it with zeros.
    fn truncate(&mut self, length: u64) -> io::Result<()>;

    /// False if the name no longer refers to this file, because it was removed, replaced or renamed.
    fn in_place(&self) -> io::Result<bool>;
}

/// The directory that contains this path.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if p != Path::new("") => p,
        _ => Path::new("."),
    }
}

/// A directory of a real file system.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// A directory, whether it exists or not.
    pub(crate) fn unchecked(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// The parent directory, and the name of the file in it that contains this log's end record.
    fn place_of_end(&self) -> (Self, String) {
        let name = self.path.file_name().unwrap_or_default();
        (
            Self::unchecked(parent(&self.path)),
            format!("{}-end.jd", name.to_string_lossy()),
        )
    }

    /// An existing directory.
    ///
    /// # Errors
    /// Fails if it does not exist or is not a directory.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        if !std::fs::metadata(&path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { path })
    }

    /// Creates the directory, durably, if it does not exist; its parent must exist.
    ///
    /// # Errors
    /// The file system's errors.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        match private::create_folder(&path) {
            Ok(()) => std::fs::File::open(parent(&path))?.sync_all()?,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
        Self::open(path)
    }
}

impl Files for Directory {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            // Entries that are not files are listed, too: a pipe or link in place of a file must lead to an error when
            // it is read, not count as a missing file.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        use std::io::Read;
        let file = private::open(self.path.join(name))?;
        let length = file.metadata()?.len().min(limit);
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        file.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        let path = self.path.join(name);
        let file = private::create(&path)?;
        Ok(Box::new(RealFile { file, path }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        let path = self.path.join(name);
        let file = private::open_to_write(&path)?;
        Ok(Box::new(RealFile { file, path }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        std::fs::File::open(&self.path)?.sync_all()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn end(&self) -> io::Result<Option<Vec<u8>>> {
        let (folder, name) = self.place_of_end();
        // If the file next to the folder is lost, the copy in the folder is used.
        match if_found(folder.read(&name, LONGEST_END))? {
            Some(end) => Ok(Some(end)),
            None => if_found(self.read(COPY_OF_END, LONGEST_END)),
        }
    }

    fn set_end(&self, bytes: &[u8]) -> io::Result<()> {
        let (folder, name) = self.place_of_end();
        self.put(COPY_OF_END, bytes)?;
        folder.put(&name, bytes)
    }

    fn end_path(&self) -> PathBuf {
        let (folder, name) = self.place_of_end();
        folder.path.join(name)
    }
}

#[derive(Debug)]
struct RealFile {
    file: std::fs::File,
    path: PathBuf,
}

impl File for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn in_place(&self) -> io::Result<bool> {
        let here = self.file.metadata()?;
        match std::fs::metadata(&self.path) {
            Ok(there) => Ok((here.dev(), here.ino()) == (there.dev(), there.ino())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }
}
