//! The segment files of a store directory, for readers on other servers.

use crate::transport::Memory;
use jindou_model::{Direction, Result};
use jindou_store::directory::{Bytes, SEGMENTS_IN, SEGMENTS_OUT, SegmentFile};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The default graph's files, mapped a second time (sharing the pages with the store's own mapping): the memory that
/// other servers read, and the positions of arrays in it.
#[derive(Debug)]
pub struct StoreFiles {
    files: [SegmentFile; 2],
    paths: [PathBuf; 2],
}

impl StoreFiles {
    /// Maps the files of a store directory. An error if one is missing, foreign, of a newer version or truncated.
    pub fn open(directory: &Path) -> Result<Arc<Self>> {
        let paths = [SEGMENTS_OUT, SEGMENTS_IN].map(|name| directory.join(name));
        let open = |path: &Path| SegmentFile::open(Bytes::map(path)?, &path.display().to_string());
        Ok(Arc::new(Self {
            files: [open(&paths[0])?, open(&paths[1])?],
            paths,
        }))
    }

    /// The file of one direction.
    #[must_use]
    pub fn file(&self, direction: Direction) -> &SegmentFile {
        &self.files[direction as usize]
    }

    /// The bytes of one file as memory that can be registered.
    pub(super) fn memory(self: &Arc<Self>, direction: Direction) -> Arc<dyn Memory> {
        Arc::new(FileMemory(Arc::clone(self), direction))
    }
}

struct FileMemory(Arc<StoreFiles>, Direction);

// SAFETY: a mapping of a file that is never written again once it was renamed into place; the `Arc` keeps it mapped.
unsafe impl Memory for FileMemory {
    fn bytes(&self) -> &[u8] {
        self.0.file(self.1).bytes()
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.0.paths[self.1 as usize])
    }
}
