//! Intermediate data of a load: bytes that are appended once and read back in order. They are in memory while a budget
//! allows it, and in files after that. Used for sorted runs of terms and of triples.

use crate::{Error, MemoryBudget, Resource, Result};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Size in bytes of a memory chunk, a file write and a reader's buffer.
const CHUNK: usize = 1 << 20;

/// Destination of spilled data: a folder for files and a budget for memory. Cheap to clone, usable from every thread.
/// Files are unlinked as soon as they are created, so none remains even if the process is killed; their space is freed
/// when the last [`Spill`] or reader is dropped.
#[derive(Clone, Debug)]
pub struct SpillDir {
    inner: Arc<SpillState>,
}

#[derive(Debug)]
struct SpillState {
    parent: Option<PathBuf>,
    budget: MemoryBudget,
}

impl SpillDir {
    /// Spills into memory charged to `budget`, and into files in `parent` when the budget refuses.
    ///
    /// # Errors
    /// [`Error::Io`] when `parent` cannot be written.
    pub fn new(parent: &Path, budget: MemoryBudget) -> Result<Self> {
        tempfile::tempfile_in(parent).map_err(|e| Error::io(parent, e))?;
        Ok(Self {
            inner: Arc::new(SpillState {
                parent: Some(parent.to_owned()),
                budget,
            }),
        })
    }

    /// Spills into memory only, without a limit.
    #[must_use]
    pub fn in_memory() -> Self {
        Self {
            inner: Arc::new(SpillState {
                parent: None,
                budget: MemoryBudget::unlimited(),
            }),
        }
    }

    /// Begins a new spill.
    #[must_use]
    pub fn writer(&self) -> SpillWriter {
        SpillWriter {
            dir: self.clone(),
            buffer: Vec::new(),
            chunks: Vec::new(),
            file: None,
            len: 0,
        }
    }

    fn path(&self) -> PathBuf {
        self.inner.parent.clone().unwrap_or_default()
    }
}

/// A chunk of memory that releases its charge on drop.
#[derive(Debug)]
struct ChargedChunk {
    bytes: Vec<u8>,
    dir: SpillDir,
}

impl Drop for ChargedChunk {
    fn drop(&mut self) {
        self.dir.inner.budget.release(CHUNK as u64);
    }
}

/// Accepts bytes; see [`SpillDir::writer`].
#[derive(Debug)]
pub struct SpillWriter {
    dir: SpillDir,
    buffer: Vec<u8>,
    chunks: Vec<ChargedChunk>,
    file: Option<File>,
    len: u64,
}

impl SpillWriter {
    /// Appends bytes. Each full MiB is moved to a memory chunk or written to the file; amortised one copy.
    ///
    /// # Errors
    /// [`Error::Io`] when a file cannot be created or written (the disk is full), [`Error::Limit`] when the memory
    /// budget is used up and there is no folder to spill to.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(CHUNK);
        }
        self.len += bytes.len() as u64;
        if self.buffer.len() + bytes.len() <= CHUNK {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.append_slow(bytes)
    }

    #[cold]
    fn append_slow(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let room = CHUNK - self.buffer.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() == CHUNK {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Bytes appended so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if nothing has been appended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if self.file.is_none() {
            if self.dir.inner.budget.try_charge(CHUNK as u64) {
                let bytes = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK));
                self.chunks.push(ChargedChunk {
                    bytes,
                    dir: self.dir.clone(),
                });
                return Ok(());
            }
            let Some(parent) = &self.dir.inner.parent else {
                return Err(Error::limit(
                    Resource::Memory,
                    "memory for intermediate data is exhausted and no folder is set to spill to",
                ));
            };
            let file = tempfile::tempfile_in(parent).map_err(|e| Error::io(parent, e))?;
            self.file = Some(file);
            for chunk in std::mem::take(&mut self.chunks) {
                self.write_file(&chunk.bytes)?;
            }
        }
        let buffer = std::mem::take(&mut self.buffer);
        self.write_file(&buffer)?;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }

    fn write_file(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.file {
            Some(f) => f
                .write_all(bytes)
                .map_err(|e| Error::io(self.dir.path(), e)),
            None => Err(Error::Internal("spilled data has no file".into())),
        }
    }

    /// Completes the spill.
    ///
    /// # Errors
    /// As [`SpillWriter::append`].
    pub fn finish(mut self) -> Result<Spill> {
        if self.file.is_none() && self.chunks.is_empty() {
            // Frees the rest of the chunk that a small spill does not use.
            self.buffer.shrink_to_fit();
        }
        self.flush()?;
        let data = match self.file {
            Some(file) => SpillData::File(Arc::new(file)),
            None => SpillData::Memory(self.chunks.into_iter().map(Arc::new).collect()),
        };
        Ok(Spill {
            data,
            len: self.len,
            dir: self.dir,
        })
    }
}

#[derive(Clone, Debug)]
enum SpillData {
    Memory(VecDeque<Arc<ChargedChunk>>),
    File(Arc<File>),
}

/// Completed intermediate data.
#[derive(Debug)]
pub struct Spill {
    data: SpillData,
    len: u64,
    dir: SpillDir,
}

impl Spill {
    /// Number of bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True if the data went to a file.
    #[must_use]
    pub fn on_disk(&self) -> bool {
        matches!(self.data, SpillData::File(_))
    }

    /// Reads from the start; can be called again, also from several threads.
    #[must_use]
    pub fn reader(&self) -> SpillReader {
        let (data, len, dir) = (self.data.clone(), self.len, self.dir.clone());
        Self { data, len, dir }.into_reader()
    }

    /// Reads from the start and releases every memory chunk once it is read.
    #[must_use]
    pub fn into_reader(self) -> SpillReader {
        SpillReader {
            data: self.data,
            buffer: Vec::new(),
            at: 0,
            end: 0,
            fetched: 0,
            len: self.len,
            dir: self.dir,
        }
    }
}

/// Reads a [`Spill`] in order. A file is read through a buffer of 1 MiB; chunks in memory are read in place.
#[derive(Debug)]
pub struct SpillReader {
    /// Chunks not yet released, beginning with the current one, or the file.
    data: SpillData,
    /// Buffer for a file; empty for memory.
    buffer: Vec<u8>,
    /// Position of the next byte in the current chunk or buffer.
    at: usize,
    /// End of the current chunk or buffer; 0 before the first one was fetched.
    end: usize,
    /// Position in the spill of the end of the current chunk or buffer.
    fetched: u64,
    len: u64,
    dir: SpillDir,
}

impl SpillReader {
    /// The next bytes that can be read without fetching more; fetches the next chunk if there are none. Empty only at
    /// the end of the data. Does not advance.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be read.
    pub fn fill(&mut self) -> Result<&[u8]> {
        if self.at == self.end && self.fetched < self.len {
            self.fetch()?;
        }
        Ok(self.available())
    }

    /// The next bytes that can be read, without fetching more; may be empty before the end of the data.
    #[inline]
    #[must_use]
    pub fn available(&self) -> &[u8] {
        let bytes = match &self.data {
            SpillData::Memory(chunks) => match chunks.front() {
                Some(chunk) => &chunk.bytes,
                None => return &[],
            },
            SpillData::File(_) => &self.buffer,
        };
        &bytes[self.at..self.end]
    }

    fn fetch(&mut self) -> Result<()> {
        match &mut self.data {
            SpillData::Memory(chunks) => {
                if self.fetched > 0 {
                    chunks.pop_front();
                }
                self.end = chunks.front().map_or(0, |c| c.bytes.len());
            }
            SpillData::File(file) => {
                let n = (self.len - self.fetched).min(CHUNK as u64) as usize;
                self.buffer.resize(n, 0);
                file.read_exact_at(&mut self.buffer, self.fetched)
                    .map_err(|e| Error::io(self.dir.path(), e))?;
                self.end = n;
            }
        }
        self.at = 0;
        self.fetched += self.end as u64;
        Ok(())
    }

    /// Advances by `n` of the available bytes, or past all of them if there are fewer.
    #[inline]
    pub fn consume(&mut self, n: usize) {
        self.at = (self.at + n).min(self.end);
    }

    /// Bytes not yet consumed.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.len - self.fetched + (self.end - self.at) as u64
    }

    /// Fills `out`; false if no bytes are left.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be read, [`Error::Internal`] when the data ends inside `out`.
    pub fn read_exact(&mut self, out: &mut [u8]) -> Result<bool> {
        let mut done = 0;
        while done < out.len() {
            let here = self.fill()?;
            if here.is_empty() {
                if done == 0 {
                    return Ok(false);
                }
                return Err(Error::Internal(
                    "intermediate data ends inside a record".into(),
                ));
            }
            let n = here.len().min(out.len() - done);
            out[done..done + n].copy_from_slice(&here[..n]);
            done += n;
            self.consume(n);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(dir: &SpillDir, expect_disk: bool, n: usize) {
        let data: Vec<u8> = (0..n).map(|i| (i * 7 + i / 251) as u8).collect();
        let mut w = dir.writer();
        for part in data.chunks(100_003) {
            w.append(part).unwrap();
        }
        let s = w.finish().unwrap();
        assert_eq!((s.len(), s.on_disk()), (n as u64, expect_disk));
        let mut out = vec![0; n];
        assert!(s.reader().read_exact(&mut out).unwrap());
        assert_eq!(out, data);
        let mut r = s.into_reader();
        let mut again = vec![];
        loop {
            let here = r.fill().unwrap();
            if here.is_empty() {
                break;
            }
            let take = here.len().min(777_777);
            again.extend_from_slice(&here[..take]);
            r.consume(take);
        }
        assert_eq!(again, data);
        assert!(!r.read_exact(&mut [0]).unwrap());
    }

    #[test]
    fn bytes_come_back_from_memory_and_from_files() {
        check(&SpillDir::in_memory(), false, 1);
        check(&SpillDir::in_memory(), false, 3 * CHUNK);
        check(&SpillDir::in_memory(), false, 5 * CHUNK / 2);
        let tmp = tempfile::tempdir().unwrap();
        let budget = MemoryBudget::new(2 * CHUNK as u64);
        let dir = SpillDir::new(tmp.path(), budget.clone()).unwrap();
        check(&dir, true, 7 * CHUNK / 2);
        check(&dir, false, 2 * CHUNK);
        assert_eq!(budget.used(), 0);
        assert_eq!(std::fs::read_dir(tmp.path()).unwrap().count(), 0);
    }
}
