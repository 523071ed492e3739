//! A file's pages for those that keep them mapped, and do not read them.

use crate::signal::page_size;
use memmap2::Mmap;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The bytes of a mapping, without its lifetime.
#[derive(Clone, Copy)]
pub(crate) struct MappedBytes(NonNull<[u8]>);

// SAFETY: bytes of a mapping that is only read, which `get` demands to be there.
unsafe impl Send for MappedBytes {}
// SAFETY: as above.
unsafe impl Sync for MappedBytes {}

impl MappedBytes {
    /// The bytes of this mapping. They stay where they are when `map` is moved.
    pub fn of(map: &Mmap) -> Self {
        Self(NonNull::from(&map[..]))
    }

    /// # Safety
    /// The mapping exists for as long as the slice is used.
    #[inline(always)]
    pub unsafe fn get(&self) -> &[u8] {
        // SAFETY: the caller's promise.
        unsafe { self.0.as_ref() }
    }
}

/// A mapping, and whether its file is closed.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub map: Mmap,
    closed: AtomicBool,
}

impl Mapping {
    pub fn new(map: Mmap) -> Arc<Self> {
        let closed = AtomicBool::new(false);
        Arc::new(Self { map, closed })
    }

    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}

/// Pages of a [`MappedFile`](crate::MappedFile), which stay mapped for as long as this lives, even if the file is closed before.
/// For devices that copy from them by themselves. No program may read them through this: once the file is closed, a read of a page that
/// is gone ends the process.
#[derive(Clone, Debug)]
pub struct MappedPages(Arc<Mapping>);

impl MappedPages {
    pub(crate) fn new(mapping: Arc<Mapping>) -> Self {
        Self(mapping)
    }

    /// The beginning of the first page.
    #[must_use]
    pub fn address(&self) -> NonNull<u8> {
        NonNull::from(&self.0.map[..]).cast()
    }

    /// The length of all pages. The last one may be longer than its part of the file.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.map.len().next_multiple_of(page_size())
    }

    /// False once the file is closed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.0.closed.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use crate::MappedFile;

    #[test]
    fn pages_outlive_their_file_and_know_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![7; 5000]).unwrap();
        let file = MappedFile::open(&path).unwrap();
        let pages = file.pages();
        assert_eq!(pages.address().as_ptr().cast_const(), file.as_ptr());
        assert_eq!(pages.address().as_ptr() as usize % 4096, 0);
        assert_eq!((file.len(), pages.bytes() % 4096), (5000, 0));
        assert!(pages.bytes() >= 5000 && pages.is_open());
        drop(file);
        assert!(!pages.is_open());
        // SAFETY: these pages hold the mapping, and the file is as it was.
        assert_eq!(unsafe { pages.address().add(4999).read() }, 7);
    }
}
