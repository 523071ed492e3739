//! Memory in which the sections of files are read.

use super::MappedFile;
use crate::{Error, Result};
use std::path::Path;

/// A cache line, to which sections are aligned.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct CacheLine([u8; 64]);

/// A file mapped read-only, or a buffer on the heap; both aligned to a cache line.
pub struct Bytes(Held);

enum Held {
    Map(MappedFile),
    /// Heap memory and its length in bytes.
    Heap(Vec<CacheLine>, usize),
}

impl Bytes {
    /// Maps a file.
    ///
    /// # Errors
    /// As [`MappedFile::open`], except that the file may be empty.
    pub fn map(path: &Path) -> Result<Self> {
        let found = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
        if found.len() == 0 {
            return Ok(Self::copy_of(&[]));
        }
        Ok(Self(Held::Map(MappedFile::open(path)?)))
    }

    /// A copy on the heap.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut lines = vec![CacheLine([0; 64]); bytes.len().div_ceil(64)];
        bytemuck::cast_slice_mut::<_, u8>(&mut lines)[..bytes.len()].copy_from_slice(bytes);
        Self(Held::Heap(lines, bytes.len()))
    }

    fn mapped(&self) -> Option<&MappedFile> {
        match &self.0 {
            Held::Map(map) => Some(map),
            Held::Heap(..) => None,
        }
    }

    /// Checks that the file still had its original content whenever it was read. Must be called before results computed
    /// from the file are used.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the file, once it has shrunk or could not be read.
    #[inline]
    pub fn check(&self) -> Result<()> {
        self.mapped().map_or(Ok(()), MappedFile::check)
    }

    /// Returns true if [`Self::check`] succeeds. A few instructions.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.mapped().is_none_or(MappedFile::is_whole)
    }

    /// Tells the system to expect random reads, so that it does not read ahead.
    pub fn advise_random(&self) {
        if let Some(map) = self.mapped() {
            map.advise_random();
        }
    }

    /// Path of the file, if it is mapped.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.mapped().map(MappedFile::path)
    }

    /// The content.
    #[inline(always)]
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Held::Map(map) => map,
            Held::Heap(lines, len) => &bytemuck::cast_slice(lines)[..*len],
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

crate::debug_format!(Bytes, |this| "{} bytes", this.as_slice().len());
