//! The file layer: what the log asks of a disk, and real directories that give it.

use crate::end::END;
use jindou_model::private;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A flat folder of files by name.
///
/// An implementation promises what POSIX does, and no more: written bytes survive the loss of power once [`File::sync`] has
/// returned `Ok`; the creation, renaming or removal of a name does once [`Files::sync_directory`] has. Bytes that were not
/// synced may survive whole, in part and in any order of their 512-byte sectors; sectors that did not survive read as zeros
/// or lie beyond the file's end. After a failed sync nothing is known of what was written since the last good one, and a
/// later `Ok` says nothing about it.
pub trait Files: Send + Sync {
    /// Names of all files, in any order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// The first `limit` bytes of a file, or all if it has fewer.
    fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>>;

    /// [`Files::read`] of several files; a store with a slow way to it asks for them side by side.
    fn read_many(&self, names: &[String], limit: u64) -> Vec<io::Result<Vec<u8>>> {
        names.iter().map(|n| self.read(n, limit)).collect()
    }

    /// A file's length in bytes.
    fn len(&self, name: &str) -> io::Result<u64>;

    /// Makes an empty file, or empties the one that is there, and opens it.
    fn create(&self, name: &str) -> io::Result<Box<dyn File>>;

    /// Opens a file that is there for writing.
    fn open(&self, name: &str) -> io::Result<Box<dyn File>>;

    /// Gives a file another name, replacing what had that name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes names durable that were created, renamed or removed before.
    fn sync_directory(&self) -> io::Result<()>;

    /// Where a file is, for messages.
    fn path(&self, name: &str) -> PathBuf;

    /// The bytes that [`Files::set_end`] was given last; `None` if it was never called. A store of objects keeps none:
    /// nothing can be replaced there.
    fn end(&self) -> io::Result<Option<Vec<u8>>> {
        if !self.appends() {
            return Ok(None);
        }
        match self.read(END, LONGEST_END) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    /// Keeps a few bytes that say where the log ends, outside of the folder where that is possible; durable when it returns
    /// `Ok`. After an error they may be either those given or those before.
    fn set_end(&self, bytes: &[u8]) -> io::Result<()> {
        match self.appends() {
            true => self.put(END, bytes),
            false => Ok(()),
        }
    }

    /// Where [`Files::set_end`] keeps them, for messages.
    fn end_path(&self) -> PathBuf {
        self.path(END)
    }

    /// True if files can be written to after [`Files::put`]; false for a store of immutable objects, where only
    /// `list`, `read`, `len`, `put` and `remove` work.
    fn appends(&self) -> bool {
        true
    }

    /// Makes a file with this content, durable when it returns `Ok`; after an error the file is there whole or not
    /// at all. A directory replaces a file of that name; a store of objects refuses with
    /// [`io::ErrorKind::AlreadyExists`], since there nothing else keeps two writers apart.
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
            // Room matters more than the reason why this one fails, too.
            let _ = self.remove(&temporary);
        }
        result
    }
}

/// A text of five short lines; more is not one.
const LONGEST_END: u64 = 1 << 10;

/// Suffix that [`Files::put`] appends to the name of a file that is not whole yet.
pub(crate) const TEMPORARY: &str = ".tmp";

/// A file that is open for writing. Not shared: one writer at a time.
#[allow(clippy::len_without_is_empty)]
pub trait File: Send {
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Writes all of `bytes` from byte `at` on. After an error any part of them may have been written.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes everything durable that was written before, and the length.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file to `length` bytes, or fills it up with zeros.
    fn truncate(&mut self, length: u64) -> io::Result<()>;

    /// False if the name no longer leads to this file: someone removed, replaced or moved it.
    fn in_place(&self) -> io::Result<bool>;
}

/// A directory of a real file system.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Uses a directory that may not be there.
    pub(crate) fn unchecked(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// The folder that this one is in, and the name in it of the file that says where a log in this one ends.
    fn place_of_end(&self) -> (Self, String) {
        let parent = match self.path.parent() {
            Some(p) if p != Path::new("") => p,
            _ => Path::new("."),
        };
        let name = self.path.file_name().unwrap_or_default();
        (
            Self::unchecked(parent),
            format!("{}-end.jd", name.to_string_lossy()),
        )
    }

    /// Uses a directory that is there.
    ///
    /// # Errors
    /// If it is not, or is not a directory.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        if !std::fs::metadata(&path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { path })
    }

    /// Makes the directory, durably, if it is not there; its parent must be.
    ///
    /// # Errors
    /// As the file system says.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        match private::create_folder(&path) {
            Ok(()) => {
                let parent = match path.parent() {
                    Some(p) if p != Path::new("") => p,
                    _ => Path::new("."),
                };
                std::fs::File::open(parent)?.sync_all()?;
            }
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
            // Whatever it is: a pipe or a link in a file's place is an error where it is read, not a file that is missing.
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

    fn len(&self, name: &str) -> io::Result<u64> {
        Ok(std::fs::metadata(self.path.join(name))?.len())
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
        match folder.read(&name, LONGEST_END) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn set_end(&self, bytes: &[u8]) -> io::Result<()> {
        let (folder, name) = self.place_of_end();
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
