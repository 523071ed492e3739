//! Files that stay mapped, pinned so that the device copies from them by itself.
//!
//! ```text
//! part ─ in a pinned file ─► device            at the link's speed: 53 of 55 GB a second on an H200
//!      ─ elsewhere ─► ring ─► device           what the host's threads copy: some 33
//! ```
//!
//! Pinning takes twice as long as copying, so it is done in the background, before data is needed.

use crate::backend::{Backend, Mark};
use crate::device::{CopyLane, Device};
use crate::ring::Part;
use jindou_mapped::MappedPages;
use jindou_model::{CancelToken, Error, Result, sync};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that are pinned at a time: a page fault of another thread waits for one of these.
const BLOCK: usize = 64 << 20;

/// A file, pinned in blocks.
pub(crate) struct PinnedFile {
    backend: Arc<dyn Backend>,
    pages: MappedPages,
    /// Number of bytes from its beginning that are pinned.
    pinned: usize,
}

impl PinnedFile {
    /// # Errors
    /// As [`Device::pin_files`]; nothing stays pinned then.
    fn new(device: &Device, pages: MappedPages, cancel: &CancelToken) -> Result<Self> {
        let mut file = Self {
            backend: Arc::clone(device.backend()),
            pages,
            pinned: 0,
        };
        while file.pinned < file.pages.bytes() {
            cancel.check()?;
            let (at, bytes) = file.block(file.pinned);
            // SAFETY: whole pages, which `pages` keeps mapped; `drop` releases them before.
            unsafe { file.backend.register(at, bytes)? };
            file.pinned += bytes;
        }
        Ok(file)
    }

    /// Beginning and length of the block that begins at this offset.
    fn block(&self, offset: usize) -> (NonNull<u8>, usize) {
        let bytes = BLOCK.min(self.pages.bytes() - offset);
        // SAFETY: `offset` lies inside of the mapping.
        (unsafe { self.pages.address().add(offset) }, bytes)
    }

    fn address(&self) -> usize {
        self.pages.address().addr().get()
    }
}

impl Drop for PinnedFile {
    fn drop(&mut self) {
        for offset in (0..self.pinned).step_by(BLOCK) {
            // SAFETY: registered in `new`. What copies from it holds it until the copies are done, or the device is lost.
            unsafe { self.backend.unregister(self.block(offset).0) };
        }
    }
}

/// Pinned files, by address.
type Files = Arc<Vec<Arc<PinnedFile>>>;

/// Copies that may be on their way, and the moment when they are done, if that could be marked.
struct Copies {
    mark: Option<Mark>,
    _of: Files,
}

/// The pinned files of a device.
#[derive(Default)]
pub(crate) struct PinnedFiles {
    files: Mutex<Files>,
    copies: Mutex<Vec<Copies>>,
    /// Held by the thread that pins. True once that was refused, and is not tried again.
    refused: Mutex<bool>,
}

/// The first bytes of a slice.
enum First {
    /// As many of them lie in one block of a pinned file.
    Pinned(usize),
    /// As many of them lie in none.
    Other(usize),
}

fn first(files: &[Arc<PinnedFile>], slice: &[u8]) -> First {
    let at = slice.as_ptr().addr();
    let next = files.partition_point(|file| file.address() <= at);
    let before = next.checked_sub(1).and_then(|i| files.get(i));
    if let Some(file) = before
        && let offset = at - file.address()
        && offset < file.pinned
    {
        let block_end = (offset / BLOCK * BLOCK + BLOCK).min(file.pinned);
        return First::Pinned(slice.len().min(block_end - offset));
    }
    let until = files.get(next).map_or(usize::MAX, |f| f.address() - at);
    First::Other(slice.len().min(until))
}

impl PinnedFiles {
    /// Queues copies of those parts that lie in pinned files, and returns the others; `None` if that is all of them. Returns before the
    /// device has them.
    ///
    /// # Safety
    /// Each part's place is live device memory of that length, and no two overlap. Aside, no work that is not known to be done
    /// touches it.
    pub unsafe fn upload<'a>(
        &self,
        device: &Device,
        parts: &[Part<'a>],
        lane: CopyLane,
    ) -> Result<Option<Vec<Part<'a>>>> {
        let files = Arc::clone(&sync::lock(&self.files));
        if files.is_empty() {
            return Ok(None);
        }
        let mut others = Vec::new();
        let mut queued = false;
        let mut queue = || {
            for &(mut to, mut part) in parts {
                while !part.is_empty() {
                    let n = match first(&files, part) {
                        First::Pinned(n) => {
                            queued = true;
                            // SAFETY: pinned pages, which are never written; they stay so until the mark below, since `files` is
                            // kept until then. The caller vouches for the device's memory.
                            unsafe {
                                device.queue_upload(to, NonNull::from(part).cast(), n, lane)?;
                            }
                            n
                        }
                        First::Other(n) => {
                            others.push((to, &part[..n]));
                            n
                        }
                    };
                    (to, part) = (to + n as u64, &part[n..]);
                }
            }
            Ok(())
        };
        let outcome: Result<()> = queue();
        if queued {
            let (mark, marked) = match device.mark_in(lane) {
                Ok(mark) => (Some(mark), Ok(())),
                Err(e) => (None, Err(e)),
            };
            sync::lock(&self.copies).push(Copies { mark, _of: files });
            outcome?;
            marked?;
        }
        Ok(Some(others))
    }

    /// Forgets copies that are done.
    fn reclaim(&self, device: &Device) -> Result<()> {
        let open = std::mem::take(&mut *sync::lock(&self.copies));
        // One that has no mark was followed by a failure.
        if open.iter().any(|copies| copies.mark.is_none()) {
            device.wait_for_all(&CancelToken::new())?;
        }
        let mut left = Vec::new();
        for copies in open {
            match copies.mark {
                Some(mark) if matches!(device.reached(&mark), Ok(true)) => device.unmark(mark),
                Some(_) => left.push(copies),
                None => {}
            }
        }
        sync::lock(&self.copies).append(&mut left);
        Ok(())
    }

    /// As [`Device::pin_files`].
    pub fn pin(
        &self,
        device: &Device,
        wanted: Vec<MappedPages>,
        room: u64,
        cancel: &CancelToken,
    ) -> Result<u64> {
        let mut refused = sync::lock(&self.refused);
        self.reclaim(device)?;
        let mut files = Vec::clone(&sync::lock(&self.files));
        let wanted: Vec<MappedPages> = wanted
            .into_iter()
            .filter(|pages| {
                let at = pages.address().addr().get();
                files.iter().all(|file| file.address() != at)
            })
            .collect();
        files.retain(|file| file.pages.is_open());
        let bytes = |files: &[Arc<PinnedFile>]| files.iter().map(|f| f.pinned as u64).sum::<u64>();
        let mut pinned = Ok(());
        for pages in wanted {
            if *refused {
                break;
            }
            if bytes(&files) + pages.bytes() as u64 > room {
                continue;
            }
            match PinnedFile::new(device, pages, cancel) {
                Ok(file) => {
                    let place = files.partition_point(|f| f.address() < file.address());
                    files.insert(place, Arc::new(file));
                }
                Err(e) => {
                    *refused = !matches!(e, Error::Cancelled);
                    pinned = Err(e);
                    break;
                }
            }
        }
        let there = bytes(&files);
        *sync::lock(&self.files) = Arc::new(files);
        pinned.map(|()| there)
    }

    /// Takes all files, and the marks of copies, when nothing is copied any more, or never again.
    pub fn take_all(&mut self) -> (Files, Vec<Mark>) {
        let copies = self
            .copies
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let marks = copies.drain(..).filter_map(|copies| copies.mark).collect();
        let files = self.files.get_mut().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(files), marks)
    }
}
