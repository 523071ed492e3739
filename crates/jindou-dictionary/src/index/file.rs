//! The file of an index, for writing and for reading, and the terms from which an index is built.

use crate::format::{SectionWriter, Sections};
use crate::{Strings, TagRanges};
use jindou_model::{CancelToken, Error, MemoryBudget, Result, VertexId};
use std::ops::Range;
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"JDVINDEX";
/// Number of terms between two checks for cancellation.
const CHECK: u32 = 4096;

/// All terms of a base that is being made, for building indexes.
pub struct Terms<'a> {
    pub(super) strings: &'a Strings,
    pub(super) id_of_lex: &'a [u32],
    pub(super) folder: &'a Path,
    pub(super) memory: MemoryBudget,
    pub(super) cancel: &'a CancelToken,
}

impl Terms<'_> {
    /// Number of terms.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.strings.len()
    }

    /// True if there are no terms.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }

    /// The lex indexes by tag: the terms of each datatype are an interval.
    #[must_use]
    pub fn tag_ranges(&self) -> &TagRanges {
        self.strings.tag_ranges()
    }

    /// Calls `f` with id and canonical bytes of the terms with these lex indexes, in the order of their bytes. About 10
    /// ns per term; may be called again.
    ///
    /// # Errors
    /// The first error of `f`; `Cancelled`; [`Error::Damaged`] if `strings.jd` cannot be read.
    pub fn for_each(
        &self,
        range: Range<u32>,
        mut f: impl FnMut(VertexId, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut from = range.start;
        while from < range.end {
            self.cancel.check()?;
            let to = from.saturating_add(CHECK).min(range.end);
            let mut failed = None;
            let whole = self.strings.for_each(from..to, |lex, term| {
                if failed.is_none() {
                    let id = self.id_of_lex.get(lex as usize).copied().unwrap_or(0);
                    failed = f(VertexId(id), term).err();
                }
            });
            if let Some(e) = failed {
                return Err(e);
            }
            self.strings.check_file()?;
            if !whole {
                return Err(Error::Internal("strings.jd cannot be read back".into()));
            }
            from = to;
        }
        Ok(())
    }

    /// The memory that building may use, which excludes what the load itself uses. Data beyond this limit goes through
    /// files ([`crate::spill`]).
    #[must_use]
    pub fn memory(&self) -> &MemoryBudget {
        &self.memory
    }

    /// The folder of the store that is being made, for unnamed temporary files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder
    }

    /// Ok unless the load was cancelled.
    ///
    /// # Errors
    /// `Cancelled`.
    pub fn check(&self) -> Result<()> {
        self.cancel.check()
    }
}

/// An index's file while it is written: numbered sections, one after the other.
pub struct IndexWriter {
    file: SectionWriter,
    version: u32,
}

impl IndexWriter {
    pub(super) fn create(path: PathBuf, version: u32) -> Result<Self> {
        let file = SectionWriter::create(path, MAGIC)?;
        Ok(Self { file, version })
    }

    /// Begins a section, at a multiple of 64 bytes, which ends the one before. At most 16 sections.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn begin(&mut self, section: u32) -> Result<()> {
        self.file.begin(section)
    }

    /// Appends to the section.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write(bytes)
    }

    /// Appends numbers.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write_u32s(&mut self, numbers: &[u32]) -> Result<()> {
        self.file.write(bytemuck::cast_slice(numbers))
    }

    /// Appends numbers.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write_u64s(&mut self, numbers: &[u64]) -> Result<()> {
        self.file.write(bytemuck::cast_slice(numbers))
    }

    pub(super) fn finish(self, strings: &Strings) -> Result<()> {
        let own = [self.version.into(), strings.file_len(), 0, 0];
        self.file.finish(strings.len(), own).map(drop)
    }
}

/// A mapped index file. Reads stay within its bounds, but may return arbitrary content.
#[derive(Debug)]
pub struct IndexFile {
    file: Sections,
}

impl IndexFile {
    /// Opens an index file; `None` if it is of another version.
    pub(super) fn open(path: &Path, version: u32, strings: &Strings) -> Result<Option<Self>> {
        let file = Sections::open(path, MAGIC)?;
        if file.own[0] != u64::from(version) {
            return Ok(None);
        }
        if file.terms != strings.len() || file.own[1] != strings.file_len() {
            return Err(file.damaged("it belongs to another strings.jd"));
        }
        file.advise_random();
        Ok(Some(Self { file }))
    }

    fn range(&self, section: u32) -> Range<usize> {
        self.file.range(section, |_| true).unwrap_or(0..0)
    }

    /// A section; empty if there is none with this number.
    #[must_use]
    pub fn bytes(&self, section: u32) -> &[u8] {
        self.file.bytes(&self.range(section))
    }

    /// A section as numbers; empty if its length does not fit.
    #[must_use]
    pub fn u32s(&self, section: u32) -> &[u32] {
        self.file.array(&self.range(section))
    }

    /// A section as numbers; empty if its length does not fit.
    #[must_use]
    pub fn u64s(&self, section: u32) -> &[u64] {
        self.file.array(&self.range(section))
    }

    /// Its length in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.file.file_len()
    }

    /// Ok if everything read so far is unchanged since the file was opened.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the file, once it has shrunk or could not be read.
    #[inline]
    pub fn check_file(&self) -> Result<()> {
        self.file.check_file()
    }

    /// True if [`Self::check_file`] would succeed. A few instructions.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.file.is_whole()
    }

    /// An error that reports damage in this file.
    #[must_use]
    pub fn damaged(&self, what: &str) -> Error {
        self.file.damaged(what)
    }
}
