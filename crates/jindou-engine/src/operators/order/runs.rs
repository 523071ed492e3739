//! Sorted rows in temporary files. A *run* is what a worker sorted at a time: its rows of ids in one file, and the
//! values of its computed keys in another.

use super::rows::FlatRows;
use crate::batch::OperatorCharge;
use jindou_model::{Holder, MemoryBudget, QueryTemp, Result, TempFile};
use std::ops::Range;
use std::sync::Arc;

/// Bytes that are written by one call, and at most read by one.
pub(super) const CALL: usize = 1 << 16;
/// Bytes of a value's number and length in a file.
const HEADER: usize = 12;
/// Bytes of values from which on a block of rows is full.
const BLOCK_VALUES: usize = 1 << 16;

/// The files of one worker's runs.
pub(super) struct RunFiles {
    ids: TempFile,
    /// Only if there are computed keys.
    values: Option<TempFile>,
}

impl RunFiles {
    pub fn new(temp: &QueryTemp, has_values: bool) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            ids: temp.file()?,
            values: has_values.then(|| temp.file()).transpose()?,
        }))
    }

    fn end_of_values(&self) -> u64 {
        self.values.as_ref().map_or(0, TempFile::end)
    }
}

/// Sorted rows in files.
pub(super) struct Run {
    files: Arc<RunFiles>,
    pub rows: u64,
    /// Position of the rows' ids.
    ids: u64,
    pub values: Range<u64>,
}

/// Writes one run. The files get no other bytes meanwhile.
pub(super) struct RunWriter {
    run: Run,
    ids: Vec<u32>,
    values: Vec<u8>,
}

impl RunWriter {
    pub fn new(files: &Arc<RunFiles>) -> Self {
        let values = files.end_of_values();
        Self {
            run: Run {
                rows: 0,
                ids: files.ids.end(),
                values: values..values,
                files: Arc::clone(files),
            },
            ids: Vec::with_capacity(CALL / 4),
            values: Vec::new(),
        }
    }

    #[inline]
    pub fn push(&mut self, rows: &FlatRows, row: u32) -> Result<()> {
        let ids = rows.row(row);
        if self.ids.len() + ids.len() > self.ids.capacity() {
            self.flush()?;
        }
        self.ids.extend_from_slice(ids);
        self.run.rows += 1;
        for column in &rows.values {
            let (number, content) = column.value(row);
            self.values.extend_from_slice(&number.to_ne_bytes());
            let length = content.len() as u32;
            self.values.extend_from_slice(&length.to_ne_bytes());
            self.values.extend_from_slice(content);
            if self.values.len() >= CALL {
                self.flush()?;
            }
        }
        Ok(())
    }

    #[cold]
    fn flush(&mut self) -> Result<()> {
        let files = &self.run.files;
        if !self.ids.is_empty() {
            files.ids.append_ids(&self.ids)?;
            self.ids.clear();
        }
        if let Some(file) = &files.values {
            file.append(&self.values)?;
            self.values.clear();
            self.values.shrink_to(4 * CALL);
        }
        Ok(())
    }

    pub fn finish(mut self) -> Result<Run> {
        self.flush()?;
        self.run.values.end = self.run.files.end_of_values();
        Ok(self.run)
    }
}

/// Reads a run in order, block by block.
pub(super) struct RunReader {
    run: Run,
    /// Number of rows read so far.
    read: u64,
    /// Bytes of values that were read from the file, and the position of the next one in them.
    values: Vec<u8>,
    at: usize,
    /// Bytes of values that are read by one call.
    call: usize,
    _charge: OperatorCharge,
}

impl RunReader {
    /// `call`: bytes of values that are read by one call.
    pub fn new(run: Run, call: usize, budget: &MemoryBudget) -> Result<Self> {
        let mut charge = OperatorCharge::for_holder(Holder::OrderBy, budget);
        charge.set(match run.files.values {
            Some(_) => 2 * call,
            None => 0,
        })?;
        Ok(Self {
            run,
            read: 0,
            values: Vec::new(),
            at: 0,
            call,
            _charge: charge,
        })
    }

    /// Replaces `rows` by the next block of at most `most` rows. False if there are no more.
    pub fn next(&mut self, rows: &mut FlatRows, most: usize) -> Result<bool> {
        let left = usize::try_from(self.run.rows - self.read).unwrap_or(usize::MAX);
        let mut n = most.min(left);
        rows.clear();
        rows.reserve(n)?;
        if !rows.values.is_empty() {
            let mut bytes = 0;
            for row in 0..n {
                for column in 0..rows.values.len() {
                    let header = self.bytes(HEADER)?;
                    let (number, length) = header.split_at(8);
                    let number = u64::from_ne_bytes(number.try_into().unwrap_or_default());
                    let length = u32::from_ne_bytes(length.try_into().unwrap_or_default());
                    let content = self.bytes(length as usize)?;
                    bytes += HEADER + content.len();
                    rows.values[column].push(number, content)?;
                }
                if bytes >= BLOCK_VALUES {
                    n = row + 1;
                    break;
                }
            }
        }
        let at = self.run.ids + self.read * 4 * rows.row_ids() as u64;
        self.run.files.ids.read_ids(rows.take_rows(n), at)?;
        self.read += n as u64;
        Ok(n > 0)
    }

    /// The next bytes of values.
    #[inline]
    fn bytes(&mut self, n: usize) -> Result<&[u8]> {
        if self.values.len() - self.at < n {
            self.fetch(n)?;
        }
        self.at += n;
        Ok(&self.values[self.at - n..self.at])
    }

    #[cold]
    fn fetch(&mut self, n: usize) -> Result<()> {
        self.values.drain(..self.at);
        self.at = 0;
        let had = self.values.len();
        let left = self.run.values.end - self.run.values.start;
        // A run that is shorter than its rows say would be a bug; reading past its end then fails.
        let more = (self.call as u64).min(left).max((n - had) as u64) as usize;
        self.values.shrink_to(2 * self.call);
        self.values.resize(had + more, 0);
        if let Some(file) = &self.run.files.values {
            file.read(&mut self.values[had..], self.run.values.start)?;
        }
        self.run.values.start += more as u64;
        Ok(())
    }
}
