//! The mapped files of a dictionary, and the terms that were added later.

mod strings;
mod table;
mod values;

pub use strings::{StringCursor, Strings};
pub use values::{SortKey, TermKind};

use crate::TagRanges;
use crate::build::{CODED_TAGS, empty};
use crate::format::{
    Bucket, COMPACT_LEX_BYTES, DICTIONARY_FILE, DICTIONARY_MAGIC, MAX_PROBE, Sections, bucket_of,
    compact_bits, dictionary, stored_hash,
};
use crate::value::{NO_LEX, TEMPORAL_GROUPS};
use jindou_model::{NO_VERTEX, Result, VertexId};
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::sync::OnceLock;
use table::{HashTable, LexColumn};

/// A store's dictionary, mapped. Shared by all threads; every access is checked against the bounds
/// of its section, so damaged files give wrong answers or none, but no panic and no endless loop.
#[derive(Debug)]
pub struct Dictionary {
    strings: Strings,
    file: Sections,
    seed: u64,
    /// Number of bits of an id if the hash table and the lex column are compact, else 0.
    bits: u32,
    lex: Range<usize>,
    hash: Range<usize>,
    ranks: Range<usize>,
    numbers: Range<usize>,
    number_lex: Range<usize>,
    instants: [Range<usize>; TEMPORAL_GROUPS as usize],
    duration_lex: Range<usize>,
    /// Lex indexes that have a rank.
    coded: Range<u32>,
    /// Lex indexes of literals that may be of a [`jindou_values::DerivedType`]; computed when first needed.
    derived: OnceLock<[Range<u32>; 3]>,
}

impl Dictionary {
    /// Maps `strings.jd` and `dictionary.jd` of a store directory. O(1), whatever their size.
    ///
    /// # Errors
    /// [`jindou_model::Error::Io`] when a file is missing or unreadable,
    /// [`jindou_model::Error::Damaged`] when one is foreign, newer, truncated or has a damaged head,
    /// or when the two do not belong together.
    pub fn open(dir: &Path) -> Result<Self> {
        let strings = Strings::open(dir)?;
        let path = dir.join(DICTIONARY_FILE);
        Self::over(strings, Sections::open(&path, DICTIONARY_MAGIC)?)
    }

    /// A dictionary without terms, in memory. O(1).
    ///
    /// # Errors
    /// [`jindou_model::Error::Damaged`] if this crate cannot read its own output.
    pub fn empty() -> Result<Self> {
        let [strings, dictionary] = empty()?;
        let file = Sections::from_bytes(&dictionary, DICTIONARY_FILE, DICTIONARY_MAGIC)?;
        Self::over(Strings::from_bytes(&strings)?, file)
    }

    fn over(strings: Strings, file: Sections) -> Result<Self> {
        if file.terms != strings.len() || file.own[1] != strings.file_len() {
            return Err(file.damaged("it belongs to another strings.jd"));
        }
        let bits = file.own[2] as u32;
        if file.own[2] != 0 && bits != compact_bits(strings.len()) {
            return Err(file.damaged("bits of an id"));
        }
        let coded = strings.tag_ranges().span(CODED_TAGS);
        let ids = strings.len() as usize + 1;
        let lex_bytes = match bits {
            0 => ids * 4,
            _ => ids * COMPACT_LEX_BYTES + 1,
        };
        let lex = file.range(dictionary::LEX, |n| n == lex_bytes)?;
        let hash = file.range(dictionary::HASH, |n| n > 0 && n % size_of::<Bucket>() == 0)?;
        let ranks = file.range(dictionary::RANKS, |n| n == coded.len() * 4)?;
        let numbers = file.range(dictionary::NUMBERS, |n| n % 8 == 0 && n / 8 <= coded.len())?;
        let number_lex = file.range(dictionary::NUMBER_LEX, |n| n * 2 == numbers.len())?;
        let mut instants = [const { 0..0 }; TEMPORAL_GROUPS as usize];
        for (place, range) in instants.iter_mut().enumerate() {
            let kind = dictionary::INSTANTS + place as u32;
            if file.has(kind) {
                *range = file.range(kind, |n| n % 16 == 0 && n / 16 <= coded.len())?;
            }
        }
        let mut duration_lex = 0..0;
        if file.has(dictionary::DURATION_LEX) {
            duration_lex = file.range(dictionary::DURATION_LEX, |n| {
                n % 4 == 0 && n / 4 <= coded.len()
            })?;
        }
        strings.advise_random();
        file.advise_random();
        let seed = file.own[0];
        Ok(Self {
            strings,
            file,
            seed,
            bits,
            lex,
            hash,
            ranks,
            numbers,
            number_lex,
            instants,
            duration_lex,
            coded,
            derived: OnceLock::new(),
        })
    }

    /// Ok if everything read from the files so far is unchanged since they were opened.
    ///
    /// # Errors
    /// [`jindou_model::Error::Damaged`] with the file, once one has shrunk or could not be read.
    #[inline]
    pub fn check_files(&self) -> Result<()> {
        self.strings.check_file()?;
        self.file.check_file()
    }

    /// True if [`Self::check_files`] would succeed. A few instructions per file.
    #[inline]
    #[must_use]
    pub fn are_files_whole(&self) -> bool {
        self.strings.is_whole() && self.file.is_whole()
    }

    /// Number of terms; ids are `1..=len()`.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.strings.len()
    }

    /// True if there are no terms.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }

    /// The terms by lex index.
    #[must_use]
    pub fn strings(&self) -> &Strings {
        &self.strings
    }

    /// Name and size in bytes of each section, for `info`.
    #[must_use]
    pub fn sections(&self) -> Vec<(&'static str, u64)> {
        let (blocks, offsets) = self.strings.section_bytes();
        let instants: usize = self.instants.iter().map(Range::len).sum();
        vec![
            ("strings", blocks),
            ("string offsets", offsets),
            ("lexicographic index", self.lex.len() as u64),
            ("hash table", self.hash.len() as u64),
            ("value ranks", self.ranks.len() as u64),
            (
                "values",
                (self.numbers.len() + self.number_lex.len() + instants + self.duration_lex.len())
                    as u64,
            ),
        ]
    }

    #[inline(always)]
    fn lex_of_id(&self) -> LexColumn<'_> {
        LexColumn {
            bytes: self.file.bytes(&self.lex),
            narrow: self.bits != 0,
        }
    }

    #[inline(always)]
    fn table(&self) -> HashTable<'_> {
        match self.bits {
            0 => HashTable::Wide(self.file.array(&self.hash)),
            bits => HashTable::Compact(self.file.array(&self.hash), bits),
        }
    }

    /// The lex index of a term; `None` for ids that are not in this dictionary. One cache miss.
    #[inline]
    #[must_use]
    pub fn lex(&self, id: VertexId) -> Option<u32> {
        if id.0 == NO_VERTEX {
            return None;
        }
        self.lex_of_id().get(id.0)
    }

    /// Appends the lex index of every id; [`NO_LEX`] if there is none.
    pub fn lex_many(&self, ids: &[u32], out: &mut Vec<u32>) {
        let from = out.len();
        out.resize(from + ids.len(), NO_LEX);
        self.lex_into(ids, &mut out[from..]);
    }

    /// Writes the lex index of every id to the same position in `out`; [`NO_LEX`] if there is none.
    pub fn lex_into(&self, ids: &[u32], out: &mut [u32]) {
        let lex = self.lex_of_id();
        for (i, (&id, out)) in ids.iter().zip(out).enumerate() {
            if let Some(&ahead) = ids.get(i + 16) {
                lex.prefetch(ahead);
            }
            let found = if id == NO_VERTEX { None } else { lex.get(id) };
            *out = found.unwrap_or(NO_LEX);
        }
    }

    /// The lex indexes of the terms with a tag.
    #[must_use]
    pub fn tag_range(&self, tag: u8) -> Range<u32> {
        self.strings.tag_ranges().range(tag)
    }

    /// The lex indexes of the terms whose tag is in an interval, for example `NUMERIC_TAGS`.
    #[must_use]
    pub fn tag_span(&self, tags: RangeInclusive<u8>) -> Range<u32> {
        self.strings.tag_ranges().span(tags)
    }

    /// The intervals of all tags.
    #[must_use]
    pub fn tag_ranges(&self) -> &TagRanges {
        self.strings.tag_ranges()
    }

    /// The id of a term by its canonical bytes; `None` if the store does not have it. Costs about one cache miss if it
    /// is absent (1.6 neighbouring buckets on average, 2.2 when compact), four if it is present: bucket, lex index,
    /// block offset, block. No allocation.
    #[must_use]
    pub fn lookup(&self, canonical: &[u8]) -> Option<VertexId> {
        self.probe(canonical, stored_hash(canonical, self.seed))
            .map(VertexId)
    }

    fn probe(&self, canonical: &[u8], hash: u64) -> Option<u32> {
        let table = self.table();
        let mut at = bucket_of(hash, table.len());
        for _ in 0..MAX_PROBE.min(table.len()) {
            let mut matches = table.matching(at, hash);
            while matches != 0 {
                let id = table.id(at, matches.trailing_zeros());
                matches &= matches - 1;
                if let Some(lex) = self.lex(VertexId(id))
                    && self.strings.is(lex, canonical)
                {
                    return Some(id);
                }
            }
            if !table.may_overflow(at) {
                return None;
            }
            at = if at + 1 == table.len() { 0 } else { at + 1 };
        }
        None
    }

    /// Appends the id of every term, or [`NO_VERTEX`] if the store does not have the term. Cache misses of different
    /// terms overlap, so a term costs several times less than with [`Dictionary::lookup`].
    pub fn lookup_many(&self, terms: &[&[u8]], out: &mut Vec<u32>) {
        const GROUP: usize = 32;
        let table = self.table();
        let lexes = self.lex_of_id();
        for group in terms.chunks(GROUP) {
            let mut hashes = [0; GROUP];
            let mut candidates = [NO_LEX; GROUP];
            for (hash, term) in hashes.iter_mut().zip(group) {
                *hash = stored_hash(term, self.seed);
                table.prefetch(bucket_of(*hash, table.len()));
            }
            for (candidate, &hash) in candidates.iter_mut().zip(&hashes[..group.len()]) {
                let at = bucket_of(hash, table.len());
                let matches = table.matching(at, hash);
                if matches != 0 {
                    *candidate = table.id(at, matches.trailing_zeros());
                    lexes.prefetch(*candidate);
                }
            }
            for candidate in &mut candidates[..group.len()] {
                *candidate = lexes.get(*candidate).unwrap_or(NO_LEX);
                self.strings.prefetch_offset(*candidate);
            }
            for &lex in &candidates[..group.len()] {
                if lex != NO_LEX {
                    self.strings.prefetch_block(lex);
                }
            }
            for (term, &hash) in group.iter().zip(&hashes) {
                out.push(self.probe(term, hash).unwrap_or(NO_VERTEX));
            }
        }
    }

    /// Appends the canonical bytes of a term; false for ids that are not in this dictionary. About three cache misses
    /// and half a block of short copies; no allocation except for `out`.
    pub fn term(&self, id: VertexId, out: &mut Vec<u8>) -> bool {
        self.lex(id).is_some_and(|lex| self.strings.term(lex, out))
    }

    /// As [`Self::term`], with a cursor that is used for this dictionary only. Costs some nanoseconds if the term follows
    /// the cursor's last one in the same block.
    #[inline]
    pub fn term_near(&self, id: VertexId, cursor: &mut StringCursor, out: &mut Vec<u8>) -> bool {
        let term = self.lex(id).and_then(|lex| cursor.seek(&self.strings, lex));
        term.map(|term| out.extend_from_slice(term)).is_some()
    }

    /// Decodes many terms; see [`Decoder`].
    #[must_use]
    pub fn decoder(&self) -> Decoder<'_> {
        Decoder {
            dictionary: self,
            cursor: StringCursor::default(),
        }
    }
}

/// Decodes terms into one buffer. If the next term is a later one of the same block, decoding continues from the
/// current position; so ids in lexicographic order cost some nanoseconds each.
#[derive(Debug)]
pub struct Decoder<'a> {
    dictionary: &'a Dictionary,
    cursor: StringCursor,
}

impl Decoder<'_> {
    /// The canonical bytes of a term; `None` for ids that are not in this dictionary.
    #[inline(always)]
    pub fn term(&mut self, id: VertexId) -> Option<&[u8]> {
        let lex = self.dictionary.lex(id)?;
        self.cursor.seek(&self.dictionary.strings, lex)
    }

    /// Prefetches the memory that [`Decoder::term`] will read for these ids: call it some tens of ids ahead.
    pub fn prefetch(&self, ids: &[u32]) {
        let lexes = self.dictionary.lex_of_id();
        for &id in ids {
            lexes.prefetch(id);
        }
        let strings = &self.dictionary.strings;
        let mut found = [0; 64];
        for some in ids.chunks(found.len()) {
            let mut n = 0;
            for lex in some.iter().filter_map(|&id| lexes.get(id)) {
                found[n] = lex;
                n += 1;
                strings.prefetch_offset(lex);
            }
            for &lex in &found[..n] {
                strings.prefetch_block(lex);
            }
        }
    }
}
