//! A directory for tantivy whose files are in an index's mapped file.

use crate::section;
use jindou_dictionary::index::IndexFile;
use stable_deref_trait::StableDeref;
use std::collections::HashMap;
use std::io;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tantivy::Directory;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    DirectoryLock, FileHandle, Lock, OwnedBytes, WatchCallback, WatchHandle, WritePtr,
};

/// A range of bytes in the section `FILES` of an index's file.
#[derive(Clone)]
struct MappedPart {
    file: Arc<IndexFile>,
    range: Range<usize>,
}

impl Deref for MappedPart {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let all = self.file.bytes(section::FILES);
        all.get(self.range.clone()).unwrap_or(&[])
    }
}

// SAFETY: the bytes are in a mapping that the `Arc` keeps alive at a fixed address; moving this value does not move
// them.
unsafe impl StableDeref for MappedPart {}

jindou_model::debug_format!(MappedPart, |this| "MappedPart({:?})", this.range);

impl FileHandle for MappedPart {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        if range.start > range.end || range.end > self.deref().len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let start = self.range.start;
        Ok(OwnedBytes::new(Self {
            file: Arc::clone(&self.file),
            range: start + range.start..start + range.end,
        }))
    }
}

/// The files of one segment, by name; read-only.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    files: Arc<HashMap<PathBuf, MappedPart>>,
}

impl Packed {
    /// Creates a directory of files given by their names and their ranges in the section `FILES`.
    pub fn new(
        file: &Arc<IndexFile>,
        files: impl Iterator<Item = (PathBuf, Range<usize>)>,
    ) -> Self {
        let part = |range| MappedPart {
            file: Arc::clone(file),
            range,
        };
        Self {
            files: Arc::new(files.map(|(name, range)| (name, part(range))).collect()),
        }
    }

    fn get(&self, path: &Path) -> Result<&MappedPart, OpenReadError> {
        let found = self.files.get(path);
        found.ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_owned()))
    }
}

fn read_only() -> io::Error {
    io::Error::new(
        io::ErrorKind::ReadOnlyFilesystem,
        "a base's index is not written to",
    )
}

impl Directory for Packed {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        Ok(Arc::new(self.get(path)?.clone()))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        Err(DeleteError::IoError {
            io_error: Arc::new(read_only()),
            filepath: path.to_owned(),
        })
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.files.contains_key(path))
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        Err(OpenWriteError::IoError {
            io_error: Arc::new(read_only()),
            filepath: path.to_owned(),
        })
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        Ok(self.get(path)?.to_vec())
    }

    fn atomic_write(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        Err(read_only())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, _: &Lock) -> Result<DirectoryLock, LockError> {
        Err(LockError::IoError(Arc::new(read_only())))
    }

    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}
