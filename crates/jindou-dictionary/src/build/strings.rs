//! Writing `strings.jd`: blocks of 16 terms, the first whole (`[length][bytes]`), the others as
//! `[shared][length of the rest][rest]`.

use crate::format::{BLOCK, OFFSET, STRINGS_FILE, STRINGS_MAGIC, SectionWriter, strings};
use crate::{TagRanges, front};
use jindou_model::{Error, Resource, Result};
use std::path::Path;

/// Accepts the merged terms in order.
#[derive(Debug)]
pub struct StringsWriter {
    file: SectionWriter,
    buffer: Vec<u8>,
    offsets: Vec<u8>,
    /// Bytes of blocks that were written to the file, before those in `buffer`.
    flushed: u64,
    terms: u32,
}

impl StringsWriter {
    /// Creates `strings.jd` in a store directory.
    ///
    /// # Errors
    /// [`Error::Io`], also when the file exists already.
    pub fn create(dir: &Path) -> Result<Self> {
        Self::over(SectionWriter::create(
            dir.join(STRINGS_FILE),
            STRINGS_MAGIC,
        )?)
    }

    /// Writes the content of a `strings.jd` to memory.
    pub(crate) fn in_memory() -> Result<Self> {
        Self::over(SectionWriter::in_memory(STRINGS_FILE, STRINGS_MAGIC)?)
    }

    fn over(mut file: SectionWriter) -> Result<Self> {
        file.begin(strings::BLOCKS)?;
        Ok(Self {
            file,
            buffer: Vec::new(),
            offsets: Vec::new(),
            flushed: 0,
            terms: 0,
        })
    }

    /// Appends a term that shares its first `shared` bytes with the previous term.
    #[inline]
    pub(crate) fn push(&mut self, shared: usize, term: &[u8]) -> Result<()> {
        if self.terms.is_multiple_of(BLOCK) {
            self.begin_block()?;
            front::push(term.len() as u32, &mut self.buffer);
            self.buffer.extend_from_slice(term);
        } else {
            let rest = &term[shared..];
            front::push(shared as u32, &mut self.buffer);
            front::push(rest.len() as u32, &mut self.buffer);
            self.buffer.extend_from_slice(rest);
        }
        self.terms += 1;
        Ok(())
    }

    #[inline]
    fn begin_block(&mut self) -> Result<()> {
        if self.buffer.len() >= 1 << 18 {
            self.file.write(&self.buffer)?;
            self.flushed += self.buffer.len() as u64;
            self.buffer.clear();
        }
        let at = self.flushed + self.buffer.len() as u64;
        self.offsets.extend_from_slice(&at.to_le_bytes()[..OFFSET]);
        Ok(())
    }

    /// Completes the file. Returns its bytes if it is in memory.
    pub(crate) fn finish(mut self, terms: u32, tags: &TagRanges) -> Result<Vec<u8>> {
        self.file.write(&self.buffer)?;
        let end = self.flushed + self.buffer.len() as u64;
        if end >= 1 << (8 * OFFSET) {
            return Err(Error::limit(
                Resource::Numbers,
                "the terms take more than 1 TiB",
            ));
        }
        self.offsets.extend_from_slice(&end.to_le_bytes());
        self.file.begin(strings::OFFSETS)?;
        self.file.write(&self.offsets)?;
        self.file.begin(strings::TAGS)?;
        self.file.write(bytemuck::cast_slice(tags.starts()))?;
        self.file.finish(terms, [0; 4])
    }
}
