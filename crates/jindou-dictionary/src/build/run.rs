//! Runs: the sorted terms of one interner, front-coded:
//! `[common prefix with the previous term: varint][length of the rest: varint][rest]`.

use crate::front;
use jindou_model::spill::{Spill, SpillDir, SpillReader, SpillWriter};
use jindou_model::{Error, Result};

/// The sorted, distinct terms of one closed interner.
#[derive(Debug)]
pub struct TermRun {
    spill: Spill,
    terms: u32,
}

/// Result of [`Interner::close`](crate::Interner::close).
#[derive(Debug)]
pub struct ClosedRun {
    /// The terms.
    pub run: TermRun,
    /// `position[local id]` = index of the term in the run's order.
    pub position: Vec<u32>,
}

impl TermRun {
    /// Number of terms.
    #[must_use]
    pub fn terms(&self) -> u32 {
        self.terms
    }

    /// Bytes in memory or on disk.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.spill.len()
    }

    /// True when the run is in a file.
    #[must_use]
    pub fn on_disk(&self) -> bool {
        self.spill.on_disk()
    }

    /// Reads the terms in order, and releases the run's memory as it is read.
    pub(crate) fn into_reader(self) -> RunReader {
        RunReader {
            spill: self.spill.into_reader(),
            left: self.terms,
            term: Vec::new(),
        }
    }
}

pub(crate) struct RunWriter {
    spill: SpillWriter,
    buffer: Vec<u8>,
    terms: u32,
}

impl RunWriter {
    pub(crate) fn new(spill: &SpillDir) -> Self {
        Self {
            spill: spill.writer(),
            buffer: Vec::with_capacity(1 << 16),
            terms: 0,
        }
    }

    /// Appends a term, which must be greater than the one before.
    pub(crate) fn push(&mut self, previous: &[u8], term: &[u8]) -> Result<()> {
        let shared = front::common_prefix(previous, term, 0);
        let rest = &term[shared..];
        front::push(shared as u32, &mut self.buffer);
        front::push(rest.len() as u32, &mut self.buffer);
        self.buffer.extend_from_slice(rest);
        self.terms += 1;
        if self.buffer.len() >= 1 << 15 {
            self.spill.append(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<TermRun> {
        self.spill.append(&self.buffer)?;
        Ok(TermRun {
            spill: self.spill.finish()?,
            terms: self.terms,
        })
    }
}

/// Reads a run in order, decoding into one buffer.
pub(crate) struct RunReader {
    spill: SpillReader,
    left: u32,
    term: Vec<u8>,
}

fn damaged() -> Error {
    Error::Internal("a sorted run ends inside a term".into())
}

impl RunReader {
    /// The current term; empty before the first [`RunReader::next`].
    #[inline(always)]
    pub(crate) fn term(&self) -> &[u8] {
        &self.term
    }

    /// Moves to the next term and returns the length of the prefix that it shares with the previous term; `None` at the
    /// end.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<usize>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let here = self.spill.available();
        let mut at = 0;
        if let (Some(shared), Some(rest)) = (front::read(here, &mut at), front::read(here, &mut at))
            && let Some(bytes) = here.get(at..at + rest as usize)
        {
            self.term.truncate(shared as usize);
            self.term.extend_from_slice(bytes);
            self.spill.consume(at + rest as usize);
            return Ok(Some(shared as usize));
        }
        self.next_over_the_edge().map(Some)
    }

    /// As `next`, for a record that may continue after the end of the buffer.
    #[cold]
    fn next_over_the_edge(&mut self) -> Result<usize> {
        let shared = self.varint()? as usize;
        let rest = self.varint()? as usize;
        if shared > self.term.len() || rest as u64 > self.spill.remaining() {
            return Err(damaged());
        }
        self.term.resize(shared + rest, 0);
        if rest > 0 && !self.spill.read_exact(&mut self.term[shared..])? {
            return Err(damaged());
        }
        Ok(shared)
    }

    fn varint(&mut self) -> Result<u32> {
        let mut bytes = [0; 5];
        for n in 0..5 {
            if !self.spill.read_exact(&mut bytes[n..=n])? {
                return Err(damaged());
            }
            if bytes[n] < 0x80 {
                return front::read(&bytes[..=n], &mut 0).ok_or_else(damaged);
            }
        }
        Err(damaged())
    }
}
