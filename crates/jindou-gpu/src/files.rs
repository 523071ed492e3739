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
    /// Pins a file.
    ///
    /// # Errors
    /// As [`Device::pin_files`]; nothing of it stays pinned then.
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
    /// Held by the thread that pins. True once the system or the card has refused that.
    refused: Mutex<bool>,
}

/// Length of the part of a slice that is copied in one piece.
enum First {
    /// A part that lies in one block of a pinned file.
    Pinned(usize),
    /// A part that lies in no pinned file.
    Other(usize),
}

/// The beginning of a slice that is copied in one piece.
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
    /// Queues copies of those parts that lie in pinned files, and returns the others; `None` if no file is pinned. Returns before the
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
        self.forget_done(device);
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

    /// Forgets copies that are known to be done, without waiting.
    fn forget_done(&self, device: &Device) {
        let mut done = Vec::new();
        let mut copies = sync::lock(&self.copies);
        let mut i = 0;
        while let Some(one) = copies.get(i) {
            match &one.mark {
                Some(mark) if matches!(device.reached(mark), Ok(true)) => {
                    done.push(copies.swap_remove(i));
                }
                _ => i += 1,
            }
        }
        drop(copies);
        // The last of a file's copies releases it, which takes a while.
        for mark in done.into_iter().filter_map(|one| one.mark) {
            device.unmark(mark);
        }
    }

    /// Forgets copies that are done. Waits for those that could not be marked.
    fn reclaim(&self, device: &Device, cancel: &CancelToken) -> Result<()> {
        self.forget_done(device);
        let mut copies = sync::lock(&self.copies);
        let unmarked: Vec<Copies> = copies.extract_if(.., |one| one.mark.is_none()).collect();
        drop(copies);
        if unmarked.is_empty() {
            return Ok(());
        }
        device.wait_for_all(cancel).inspect_err(|_| {
            // They may be on their way still.
            sync::lock(&self.copies).extend(unmarked);
        })
    }

    /// Puts other files in place of those that are pinned.
    fn replace(&self, files: Vec<Arc<PinnedFile>>) {
        let before = std::mem::replace(&mut *sync::lock(&self.files), Arc::new(files));
        // After the lock: releasing takes a while.
        drop(before);
    }

    /// As [`Device::pin_files`].
    pub fn pin(
        &self,
        device: &Device,
        wanted: Vec<MappedPages>,
        room: u64,
        cancel: &CancelToken,
    ) -> Result<u64> {
        let bytes = |files: &[Arc<PinnedFile>]| files.iter().map(|f| f.pinned as u64).sum::<u64>();
        let Ok(mut refused) = self.refused.try_lock() else {
            return Ok(bytes(&sync::lock(&self.files)));
        };
        self.reclaim(device, cancel)?;
        let mut files = Vec::clone(&sync::lock(&self.files));
        files.retain(|file| file.pages.is_open());
        let mut pinned = Ok(());
        for pages in wanted {
            let at = pages.address().addr().get();
            let is_there = files.iter().any(|file| file.address() == at);
            if *refused || is_there || bytes(&files) + pages.bytes() as u64 > room {
                continue;
            }
            match PinnedFile::new(device, pages, cancel) {
                Ok(file) => {
                    let place = files.partition_point(|f| f.address() < at);
                    files.insert(place, Arc::new(file));
                }
                Err(e) => {
                    *refused = matches!(e, Error::Unsupported(_));
                    pinned = Err(e);
                    break;
                }
            }
        }
        let there = bytes(&files);
        self.replace(files);
        pinned.map(|()| there)
    }

    /// As [`Device::release_files`].
    pub fn release(&self, device: &Device, which: Option<&[MappedPages]>) {
        let _pinning = sync::lock(&self.refused);
        let mut files = Vec::clone(&sync::lock(&self.files));
        files.retain(|file| {
            let is_it = |pages: &MappedPages| pages.address() == file.pages.address();
            which.is_some_and(|which| !which.iter().any(is_it))
        });
        self.replace(files);
        self.forget_done(device);
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
