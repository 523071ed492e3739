//! The terms of `strings.jd`, by lex index.

use crate::format::{BLOCK, OFFSET, STRINGS_FILE, STRINGS_MAGIC, Sections, strings};
use crate::{TagRanges, front};
use jindou_model::memory::prefetch_at;
use jindou_model::{Result, term};
use std::cmp::Ordering;
use std::ops::Range;
use std::path::Path;

/// The vocabulary without ids: lex index ↔ canonical bytes. Open it between [`merge_runs`] and [`write_dictionary`]
/// (clustering needs to find `rdf:type`), or get it from a [`Dictionary`].
///
/// [`merge_runs`]: crate::merge_runs
/// [`write_dictionary`]: crate::write_dictionary
/// [`Dictionary`]: crate::Dictionary
#[derive(Debug)]
pub struct Strings {
    file: Sections,
    blocks: Range<usize>,
    offsets: Range<usize>,
    tags: TagRanges,
}

impl Strings {
    /// Maps `strings.jd` of a store directory. O(1).
    ///
    /// # Errors
    /// [`jindou_model::Error::Io`], [`jindou_model::Error::Damaged`] when the file is foreign, newer,
    /// truncated or its head damaged.
    pub fn open(dir: &Path) -> Result<Self> {
        Self::over(Sections::open(&dir.join(STRINGS_FILE), STRINGS_MAGIC)?)
    }

    /// Reads the bytes of a `strings.jd` that is not a file.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::over(Sections::from_bytes(bytes, STRINGS_FILE, STRINGS_MAGIC)?)
    }

    fn over(file: Sections) -> Result<Self> {
        let blocks = file.range(strings::BLOCKS, |_| true)?;
        let count = file.terms.div_ceil(BLOCK) as usize;
        let offsets = file.range(strings::OFFSETS, |len| len == count * OFFSET + 8)?;
        let tags = file.range(strings::TAGS, |len| len == 257 * 4)?;
        let tags = TagRanges::from_starts(file.array(&tags))
            .filter(|t| t.terms() == file.terms)
            .ok_or_else(|| file.damaged("tags"))?;
        Ok(Self {
            file,
            blocks,
            offsets,
            tags,
        })
    }

    /// Ok if everything read from the file so far is unchanged since it was opened.
    ///
    /// # Errors
    /// [`jindou_model::Error::Damaged`] with the file, once it has shrunk or could not be read.
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

    /// Number of terms.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.file.terms
    }

    /// True if there are no terms.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.file.terms == 0
    }

    /// The lex indexes of every tag.
    #[must_use]
    pub fn tag_ranges(&self) -> &TagRanges {
        &self.tags
    }

    /// Bytes of the blocks and of their offsets.
    #[must_use]
    pub(crate) fn section_bytes(&self) -> (u64, u64) {
        (self.blocks.len() as u64, self.offsets.len() as u64)
    }

    pub(crate) fn file_len(&self) -> u64 {
        self.file.file_len()
    }

    pub(crate) fn advise_random(&self) {
        self.file.advise_random();
    }

    #[inline]
    fn offset(&self, block: usize) -> Option<usize> {
        let at = block * OFFSET;
        let word = self
            .file
            .bytes(&self.offsets)
            .get(at..at + 8)?
            .first_chunk::<8>()?;
        Some((u64::from_le_bytes(*word) & ((1 << (8 * OFFSET)) - 1)) as usize)
    }

    #[inline]
    fn block(&self, block: usize) -> Option<&[u8]> {
        let (start, end) = (self.offset(block)?, self.offset(block + 1)?);
        self.file.bytes(&self.blocks).get(start..end)
    }

    /// Prefetches the offset of a term's block.
    #[inline]
    pub(crate) fn prefetch_offset(&self, lex: u32) {
        prefetch_at(
            self.file.bytes(&self.offsets),
            (lex / BLOCK) as usize * OFFSET,
        );
    }

    /// Prefetches the first lines of a term's block.
    #[inline]
    pub(crate) fn prefetch_block(&self, lex: u32) {
        if let Some(at) = self.offset((lex / BLOCK) as usize) {
            let blocks = self.file.bytes(&self.blocks);
            for line in 0..3 {
                prefetch_at(blocks, at + 64 * line);
            }
        }
    }

    /// Appends the canonical bytes of a term; false if there is no such term or its block is damaged (`out` is then
    /// unchanged). At most 16 short copies; two cache misses and those of the block.
    pub fn term(&self, lex: u32, out: &mut Vec<u8>) -> bool {
        let mut cursor = StringCursor::default();
        match cursor.seek(self, lex) {
            Some(term) => {
                out.extend_from_slice(term);
                true
            }
            None => false,
        }
    }

    /// True if the term at `lex` is `canonical`, decided without decoding the term. No allocation.
    #[inline]
    #[must_use]
    pub fn is(&self, lex: u32, canonical: &[u8]) -> bool {
        self.compare(lex, canonical) == Some(Ordering::Equal)
    }

    /// The order of the term at `lex` relative to these bytes; `None` if there is no such term.
    fn compare(&self, lex: u32, canonical: &[u8]) -> Option<Ordering> {
        if lex >= self.len() {
            return None;
        }
        let block = self.block((lex / BLOCK) as usize)?;
        let mut walk = BlockWalk::new(block, canonical)?;
        for _ in 0..lex % BLOCK {
            walk.step()?;
        }
        Some(walk.order())
    }

    /// The lex index of a term; `None` when it is absent. O(log n) block heads.
    #[must_use]
    pub fn find(&self, canonical: &[u8]) -> Option<u32> {
        let at = self.lower_bound(canonical);
        self.is(at, canonical).then_some(at)
    }

    /// The first lex index whose term is not below these bytes; `len()` when all are. O(log n).
    #[must_use]
    pub fn lower_bound(&self, canonical: &[u8]) -> u32 {
        // Finds the last block whose first term is not above the target: the answer is in that block or right after it.
        let (mut low, mut high) = (0, self.len().div_ceil(BLOCK));
        while low < high {
            let middle = low + (high - low) / 2;
            match self.compare(middle * BLOCK, canonical) {
                Some(Ordering::Less) => low = middle + 1,
                _ => high = middle,
            }
        }
        if low == 0 {
            return 0;
        }
        let first = (low - 1) * BLOCK;
        let last = (low.saturating_mul(BLOCK)).min(self.len());
        let Some(mut walk) = self
            .block((low - 1) as usize)
            .and_then(|block| BlockWalk::new(block, canonical))
        else {
            return last;
        };
        for lex in first..last {
            if walk.order() != Ordering::Less {
                return lex;
            }
            if lex + 1 < last && walk.step().is_none() {
                return last;
            }
        }
        last
    }

    /// The different [heads](term::head) of all terms, ascending, each with the lex index of its first term. `None` if
    /// there are more than `most` heads, or if a block of terms is damaged. O(heads × log terms).
    #[must_use]
    pub fn heads(&self, most: usize) -> Option<Vec<(u32, Box<[u8]>)>> {
        let (mut at, mut bytes, mut out) = (0, vec![], vec![]);
        while at < self.len() && out.len() < most {
            bytes.clear();
            self.term(at, &mut bytes).then_some(())?;
            let head = term::head(&bytes)?;
            out.push((at, head.into()));
            let next = match head {
                [tag] => self.tags.range(*tag).end,
                // The 0 byte at the end is the smallest, and 1 comes right after it.
                [parts @ .., _] => self.lower_bound(&[parts, &[1]].concat()),
                [] => at,
            };
            (next > at).then_some(())?;
            at = next;
        }
        (at == self.len()).then_some(out)
    }

    /// Calls `f` with every term of an interval in order; false if a block is damaged or the interval goes beyond the
    /// last term (the calls before were correct). About 10 ns per term.
    pub fn for_each(&self, range: Range<u32>, mut f: impl FnMut(u32, &[u8])) -> bool {
        let mut cursor = StringCursor::default();
        for lex in range {
            match cursor.seek(self, lex) {
                Some(term) => f(lex, term),
                None => return false,
            }
        }
        true
    }
}

/// Reads the terms of a block in order, and compares each with given bytes without decoding it.
struct BlockWalk<'a> {
    block: &'a [u8],
    at: usize,
    target: &'a [u8],
    /// Length of the common prefix of the current term and the target.
    matched: usize,
    len: usize,
    /// Order of the current term relative to the target, decided by the first difference after the prefix.
    order: Ordering,
}

impl<'a> BlockWalk<'a> {
    #[inline]
    fn new(block: &'a [u8], target: &'a [u8]) -> Option<Self> {
        let mut at = 0;
        let len = front::read(block, &mut at)? as usize;
        let head = block.get(at..at + len)?;
        let mut walk = Self {
            block,
            at: at + len,
            target,
            matched: 0,
            len,
            order: Ordering::Equal,
        };
        walk.matched = front::common_prefix(head, target, 0);
        walk.order = head.get(walk.matched).cmp(&target.get(walk.matched));
        Some(walk)
    }

    #[inline]
    fn step(&mut self) -> Option<()> {
        let shared = front::read(self.block, &mut self.at)? as usize;
        let len = front::read(self.block, &mut self.at)? as usize;
        let rest = self.block.get(self.at..self.at + len)?;
        if shared > self.len {
            return None;
        }
        self.at += len;
        self.len = shared + len;
        // If a term shares a longer prefix with its predecessor than the predecessor does with the target, it differs
        // from the target in the same way as its predecessor.
        if shared <= self.matched {
            let n = front::common_prefix(rest, &self.target[shared..], 0);
            self.matched = shared + n;
            self.order = rest.get(n).cmp(&self.target.get(self.matched));
        }
        Some(())
    }

    #[inline]
    fn order(&self) -> Ordering {
        self.order
    }
}

/// Suffixes up to this length are copied with this fixed length.
const SHORT: usize = 16;
/// In blocks of at least this many bytes, only the bytes of the requested term are copied.
const LONG_BLOCK: usize = 1 << 14;

/// Decodes terms. If the next term is in the same block, decoding continues from the current one.
#[derive(Debug, Default)]
pub struct StringCursor {
    term: Vec<u8>,
    /// 1 + the lex index of `term`; 0 before the first term, and in a long block.
    next: u32,
    /// 1 + the lex index of `term` in a long block; otherwise 0.
    long: u32,
    /// Offset of the next record in `BLOCKS`.
    at: usize,
    end: usize,
}

impl StringCursor {
    /// Capacity in bytes of the cursor's copy of its last term.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.term.capacity()
    }

    /// The canonical bytes of a term; `None` if there is none or its block is damaged.
    // Inlined, since the calls per term would be a tenth of the cost of decoding one.
    #[inline(always)]
    pub(crate) fn seek(&mut self, strings: &Strings, lex: u32) -> Option<&[u8]> {
        if lex >= strings.len() {
            return None;
        }
        let forward =
            self.next > 0 && lex / BLOCK == (self.next - 1) / BLOCK && lex + 1 >= self.next;
        if !forward {
            if self.long == lex + 1 {
                return Some(&self.term);
            }
            if !self.head(strings, lex / BLOCK) {
                self.next = 0;
                return None;
            }
            if self.end - self.at >= LONG_BLOCK {
                return self.seek_long(strings, lex);
            }
        }
        let blocks = strings.file.bytes(&strings.blocks);
        let block = blocks.get(..self.end)?;
        while self.next <= lex {
            if self.step(block).is_none() {
                self.next = 0;
                return None;
            }
        }
        Some(&self.term)
    }

    fn head(&mut self, strings: &Strings, block: u32) -> bool {
        let (Some(start), Some(end)) = (
            strings.offset(block as usize),
            strings.offset(block as usize + 1),
        ) else {
            return false;
        };
        let Some(bytes) = strings.file.bytes(&strings.blocks).get(start..end) else {
            return false;
        };
        let mut at = 0;
        let Some(head) =
            front::read(bytes, &mut at).and_then(|len| bytes.get(at..at + len as usize))
        else {
            return false;
        };
        self.term.clear();
        self.term.extend_from_slice(head);
        self.at = start + at + head.len();
        self.end = end;
        self.next = block * BLOCK + 1;
        self.long = 0;
        true
    }

    /// The term at `lex` of a long block whose first term was read.
    #[cold]
    fn seek_long(&mut self, strings: &Strings, lex: u32) -> Option<&[u8]> {
        let blocks = strings.file.bytes(&strings.blocks);
        let block = blocks.get(..self.end)?;
        let found = self.next > lex || self.leap(block, lex).is_some();
        self.next = 0;
        self.long = if found { lex + 1 } else { 0 };
        found.then_some(&self.term)
    }

    /// Skips to the term at `lex`, some terms ahead, without decoding those in between: of each, only the bytes that
    /// the requested term shares are copied.
    fn leap(&mut self, block: &[u8], lex: u32) -> Option<()> {
        // For each record: the number of bytes that it shares with the previous one, and the position of its other
        // bytes.
        let mut records = [(0, 0); BLOCK as usize];
        let records = records.get_mut(..(lex + 1 - self.next) as usize)?;
        let (mut at, mut len) = (self.at, self.term.len());
        for record in records.iter_mut() {
            let shared = front::read(block, &mut at)? as usize;
            let own = front::read(block, &mut at)? as usize;
            *record = (shared, at);
            at += own;
            if shared > len || at > block.len() {
                return None;
            }
            len = shared + own;
        }
        let mut ends = [0; BLOCK as usize];
        let mut end = len;
        for (n, (shared, _)) in records.iter().enumerate().rev() {
            ends[n] = end;
            end = end.min(*shared);
        }
        self.term.truncate(end);
        self.term.reserve_exact(len - end);
        for ((shared, from), end) in records.iter().zip(ends) {
            if *shared < end {
                self.term
                    .extend_from_slice(block.get(*from..from + end - shared)?);
            }
        }
        (self.at, self.next) = (at, lex + 1);
        Some(())
    }

    #[inline(always)]
    fn step(&mut self, block: &[u8]) -> Option<()> {
        let shared = front::read(block, &mut self.at)? as usize;
        let len = front::read(block, &mut self.at)? as usize;
        let (from, end) = (self.at, self.at + len);
        if shared > self.term.len() || end > block.len() {
            return None;
        }
        self.at = end;
        self.term.truncate(shared);
        // Most suffixes are short. Copying a fixed number of bytes and truncating takes a few instructions, whereas
        // copying the exact number is a call.
        match block[from..].first_chunk::<SHORT>() {
            Some(rest) if len <= SHORT => {
                self.term.extend_from_slice(rest);
                self.term.truncate(shared + len);
            }
            _ => self.term.extend_from_slice(&block[from..end]),
        }
        self.next += 1;
        Some(())
    }
}
