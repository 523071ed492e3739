//! A file of numbered sections.
//!
//! ```text
//! 0   magic     8 bytes, by kind of file
//! 8   version   u32
//! 12  sections  u32 = n
//! 16  table     n × { number u32, zero u32, offset u64, length u64 }   (offset from 0, multiple of 64)
//!     ...       sections, zero-padded to 64 bytes
//! ```

use super::Bytes;
use jindou_model::mapped::contradicts;
use jindou_model::{Error, Invariant, Result};
use std::io::{Seek, SeekFrom, Write};

/// Version of every file in a store directory. A store of another version is refused, and the error names both versions.
pub const FORMAT_VERSION: u32 = 1;

/// Alignment of sections in bytes: a cache line, so that a small array is not in two lines needlessly.
const ALIGN: u64 = 64;
const ENTRY: u64 = 24;
/// Largest number of sections that is accepted, more than any file has: limits the memory for a damaged header.
const MAX_SECTIONS: u32 = 64;

/// An opened section file.
#[derive(Debug)]
pub struct SectionFile {
    bytes: Bytes,
    table: Vec<(u32, u64, u64)>,
}

impl SectionFile {
    /// Reads the header; `name` is used in errors.
    pub fn open(bytes: Bytes, magic: &[u8; 8], name: &str) -> Result<Self> {
        let damaged = |what: &str| {
            Error::damaged(
                name,
                format!("damaged ({what}); run `jindou check`, then load the store again"),
            )
        };
        let all = bytes.as_slice();
        if all.get(..8) != Some(magic) {
            return Err(damaged("not a file of this kind, or truncated"));
        }
        let word = |at: usize| {
            all.get(at..at + 4)
                .and_then(|b| b.first_chunk::<4>())
                .map(|b| u32::from_le_bytes(*b))
        };
        let version = word(8).ok_or_else(|| damaged("truncated header"))?;
        if version != FORMAT_VERSION {
            return Err(Error::Version {
                file: name.into(),
                found: version.into(),
                supported: FORMAT_VERSION.into(),
            });
        }
        let count = word(12)
            .filter(|&n| n <= MAX_SECTIONS)
            .ok_or_else(|| damaged("section count"))?;
        let mut table = Vec::with_capacity(count as usize);
        for i in 0..u64::from(count) {
            let entry: &[u64] = bytes
                .array(16 + i * ENTRY, 3)
                .ok_or_else(|| damaged("truncated section table"))?;
            let (number, offset, len) = (entry[0] as u32, entry[1], entry[2]);
            if !offset.is_multiple_of(ALIGN) {
                return Err(damaged(&format!(
                    "section {number} does not start at a multiple of {ALIGN}"
                )));
            }
            if offset
                .checked_add(len)
                .is_none_or(|end| end > all.len() as u64)
            {
                return Err(damaged(&format!(
                    "section {number} ends after the end of the file"
                )));
            }
            table.push((number, offset, len));
        }
        Ok(Self { bytes, table })
    }

    /// A section as an array; empty if there is no such section. A length that does not fit `T` marks the file as
    /// damaged, so that the query that reads it fails.
    #[inline]
    #[must_use]
    pub fn array<T: bytemuck::Pod>(&self, number: u32) -> &[T] {
        let Some((at, len)) = self.place(number) else {
            return &[];
        };
        let size = size_of::<T>() as u64;
        if !len.is_multiple_of(size) {
            contradicts(self.bytes.as_slice());
        }
        let array = self.bytes.array(at, len / size);
        array.invariant("sections are inside the file, and aligned")
    }

    /// Offset and length of a section.
    #[must_use]
    pub fn place(&self, number: u32) -> Option<(u64, u64)> {
        self.table
            .iter()
            .find(|s| s.0 == number)
            .map(|s| (s.1, s.2))
    }

    /// As [`Bytes::check`].
    #[inline]
    pub fn check_file(&self) -> Result<()> {
        self.bytes.check()
    }

    /// Returns true if [`Self::check_file`] succeeds. A few instructions.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.bytes.is_whole()
    }

    /// The whole file.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

/// Writes a section file front to back; the table is filled in at the end.
pub struct SectionWriter<W: Write + Seek> {
    out: W,
    at: u64,
    magic: [u8; 8],
    capacity: u32,
    table: Vec<(u32, u64, u64)>,
}

impl<W: Write + Seek> SectionWriter<W> {
    /// Starts a file for at most `capacity` sections.
    pub fn new(mut out: W, magic: [u8; 8], capacity: u32) -> std::io::Result<Self> {
        let header = (16 + u64::from(capacity) * ENTRY).next_multiple_of(ALIGN);
        out.write_all(&vec![0; header as usize])?;
        Ok(Self {
            out,
            at: header,
            magic,
            capacity,
            table: Vec::new(),
        })
    }

    /// Starts a section, which contains everything written until [`Self::end`].
    pub fn begin(&mut self, number: u32) -> std::io::Result<()> {
        self.pad(ALIGN)?;
        debug_assert!((self.table.len() as u32) < self.capacity);
        self.table.push((number, self.at, 0));
        Ok(())
    }

    /// Pads with zeros to a multiple of `align` from the start of the file; returns the offset.
    pub fn pad(&mut self, align: u64) -> std::io::Result<u64> {
        let to = self.at.next_multiple_of(align);
        self.out.write_all(&[0; 64][..(to - self.at) as usize])?;
        self.at = to;
        Ok(to)
    }

    /// Writes bytes; returns their offset in the file.
    pub fn write(&mut self, bytes: &[u8]) -> std::io::Result<u64> {
        let at = self.at;
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(at)
    }

    /// Ends the section.
    pub fn end(&mut self) {
        if let Some(s) = self.table.last_mut() {
            s.2 = self.at - s.1;
        }
    }

    /// Writes an array as a whole section.
    pub fn section<T: bytemuck::NoUninit>(
        &mut self,
        number: u32,
        values: &[T],
    ) -> std::io::Result<()> {
        self.begin(number)?;
        self.write(bytemuck::cast_slice(values))?;
        self.end();
        Ok(())
    }

    /// Writes header and table; flushes and returns the file.
    pub fn finish(mut self) -> std::io::Result<W> {
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&self.magic)?;
        self.out.write_all(&FORMAT_VERSION.to_le_bytes())?;
        self.out
            .write_all(&(self.table.len() as u32).to_le_bytes())?;
        for (number, at, len) in &self.table {
            self.out.write_all(&u64::from(*number).to_le_bytes())?;
            self.out.write_all(&at.to_le_bytes())?;
            self.out.write_all(&len.to_le_bytes())?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}
