//! Memory in which segments and indexes are stored.

use jindou_model::mapped::MappedFile;
use jindou_model::{Error, Result};
use std::path::Path;

/// A file mapped read-only, or a buffer on the heap; both 8-byte aligned.
#[derive(Debug)]
pub enum Bytes {
    /// A mapped file.
    Map(MappedFile),
    /// Heap memory and its length in bytes.
    Heap(Vec<u64>, usize),
}

impl Bytes {
    /// Maps a file.
    pub fn map(path: &Path) -> Result<Self> {
        let len = std::fs::metadata(path)
            .map_err(|e| Error::io(path, e))?
            .len();
        if len == 0 {
            return Ok(Self::Heap(Vec::new(), 0));
        }
        MappedFile::open(path).map(Self::Map)
    }

    /// Checks that the file still had its original content whenever it was read. Must be called before results computed
    /// from the file are used.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the file, once it has shrunk or could not be read.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Map(map) => map.check(),
            Self::Heap(..) => Ok(()),
        }
    }

    /// Returns true if [`Self::check`] succeeds. A few instructions.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        match self {
            Self::Map(map) => map.is_whole(),
            Self::Heap(..) => true,
        }
    }

    /// Path of the file, if it is mapped.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Map(map) => Some(map.path()),
            Self::Heap(..) => None,
        }
    }

    /// A copy on the heap.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Self::Heap(words, bytes.len())
    }

    /// The content.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Map(m) => m,
            Self::Heap(v, len) => &bytemuck::cast_slice::<u64, u8>(v)[..*len],
        }
    }

    /// `count` values of `T` at byte `at`; `None` if they are out of bounds or not aligned.
    #[must_use]
    pub fn array<T: bytemuck::Pod>(&self, at: u64, count: u64) -> Option<&[T]> {
        let size = count.checked_mul(size_of::<T>() as u64)?;
        let end = at.checked_add(size)?;
        let slice = self
            .as_slice()
            .get(usize::try_from(at).ok()?..usize::try_from(end).ok()?)?;
        bytemuck::try_cast_slice(slice).ok()
    }
}
