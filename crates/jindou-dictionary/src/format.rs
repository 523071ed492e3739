//! The container format of both files: a head of 512 bytes, then sections.
//!
//! | bytes | head |
//! |---|---|
//! | 0..8 | magic: `JDSTRNGS` or `JDDICTNR` |
//! | 8..12 | format version, [`VERSION`] |
//! | 12..16 | number of sections |
//! | 16..24 | length of the file |
//! | 24..32 | number of terms |
//! | 32..64 | four numbers of the file's own (see its writer) |
//! | 64.. | per section 24 bytes: kind (`u32`), 0 (`u32`), offset (`u64`), length (`u64`) |
//!
//! All numbers are little-endian. Sections begin at multiples of 64 bytes, with zeros between them, so that a mapped
//! section can be read as an array of its type. There are no checksums here: the store directory has them for all of
//! its files. Instead, every read is checked against the bounds of its section, so that damaged files give wrong or no
//! answers, but never a panic.

use jindou_model::mapped::Bytes;
use jindou_model::{Error, Result, private};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

#[cfg(target_endian = "big")]
compile_error!("the store's files are little-endian and are read in place");

/// The terms in lexicographic order, in a store directory.
pub const STRINGS_FILE: &str = "strings.jd";
/// Ids, hash table and value columns, in a store directory.
pub const DICTIONARY_FILE: &str = "dictionary.jd";

/// Version of the formats of both files.
///
/// 2: ranks are computed by `jindou-values`: equal instants have equal ranks, and derived integers out of range have
/// none.
pub(crate) const VERSION: u32 = 2;
pub(crate) const STRINGS_MAGIC: [u8; 8] = *b"JDSTRNGS";
pub(crate) const DICTIONARY_MAGIC: [u8; 8] = *b"JDDICTNR";

const HEAD: usize = 512;
const TABLE: usize = 64;
const ENTRY: usize = 24;
const MAX_SECTIONS: usize = (HEAD - TABLE) / ENTRY;
/// Alignment of sections in bytes.
const ALIGN: u64 = 64;

/// Number of terms in a front-coded block.
pub(crate) const BLOCK: u32 = 16;
/// Bytes of a block's offset, enough for 1 TiB of strings.
pub(crate) const OFFSET: usize = 5;

/// Numbers of the sections of [`STRINGS_FILE`].
pub(crate) mod strings {
    /// Blocks of 16 terms, one after the other.
    pub(crate) const BLOCKS: u32 = 1;
    /// 5-byte offsets of the blocks in `BLOCKS`, then the end of the last block, then 3 zero bytes.
    pub(crate) const OFFSETS: u32 = 2;
    /// 257 × `u32`; entry `t` is the number of terms with a tag below `t`.
    pub(crate) const TAGS: u32 = 3;
}

/// Numbers of the sections of [`DICTIONARY_FILE`].
pub(crate) mod dictionary {
    /// Lex index by id, from id 0 (unused): `u32`. In a compact dictionary 3 bytes each, and one more byte at the end.
    pub(crate) const LEX: u32 = 1;
    /// Buckets of 64 bytes: canonical bytes → id.
    pub(crate) const HASH: u32 = 2;
    /// `u32` per lex index of the literals with coded datatypes: rank of the value.
    pub(crate) const RANKS: u32 = 3;
    /// `f64` per numeric rank: the nearest double.
    pub(crate) const NUMBERS: u32 = 4;
    /// `u32` per numeric rank: lex index of one literal with this value.
    pub(crate) const NUMBER_LEX: u32 = 5;
    /// `u32` per rank of a duration: lex index of one literal with this value.
    pub(crate) const DURATION_LEX: u32 = 6;
    /// Number of the first section of sorted `i128` instants; the section of a temporal group is `INSTANTS + group`.
    pub(crate) const INSTANTS: u32 = 16;
}

/// Hash of a term in the stored hash table: XXH3 with the seed in the head.
#[inline]
pub(crate) fn stored_hash(bytes: &[u8], seed: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed)
}

/// A bucket of the stored hash table: 12 one-byte fingerprints, 12 ids (0 = empty), and a byte that is 1 if a term of
/// this bucket is stored in the next one.
#[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Bucket {
    pub(crate) prints: [u8; SLOTS],
    pub(crate) overflow: u8,
    pub(crate) zero: [u8; 3],
    pub(crate) ids: [u32; SLOTS],
}

/// Number of entries in a [`Bucket`].
pub(crate) const SLOTS: usize = 12;
/// As [`Bucket`], for ids of at most [`COMPACT_BITS`] bits: each word holds an id in its low bits and a part of the
/// fingerprint in the others; 0 = empty. Slots are filled in order; if all are full, terms may have overflowed to the
/// next bucket.
#[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub(crate) struct CompactBucket(pub(crate) [u32; COMPACT_SLOTS]);

/// Number of entries in a [`CompactBucket`].
pub(crate) const COMPACT_SLOTS: usize = 16;
/// Most bits of an id in a compact dictionary. With more bits, fewer than 8 would remain for the fingerprint, and
/// lookups would read many strings that differ.
pub(crate) const COMPACT_BITS: u32 = 24;
/// Bytes per lex index in a compact dictionary.
pub(crate) const COMPACT_LEX_BYTES: usize = 3;

/// Number of bits of an id if a dictionary of this many terms is compact, else 0; stored as the third of the file's own
/// numbers.
pub(crate) fn compact_bits(terms: u32) -> u32 {
    let bits = u32::BITS - terms.leading_zeros();
    if bits <= COMPACT_BITS { bits } else { 0 }
}

/// The word of a [`CompactBucket`] for an id of `bits` bits.
#[inline(always)]
pub(crate) fn compact_entry(hash: u64, id: u32, bits: u32) -> u32 {
    (hash as u32) << bits | id
}

/// Most buckets that a lookup may visit; a table that would need more is built again with another seed.
pub(crate) const MAX_PROBE: usize = 256;

/// The number of the bucket for a hash, in a table of this many buckets.
#[inline(always)]
pub(crate) fn bucket_of(hash: u64, buckets: usize) -> usize {
    ((u128::from(hash) * buckets as u128) >> 64) as usize
}

/// The fingerprint of a hash: its low bits, since the bucket is derived from the high ones.
#[inline(always)]
pub(crate) fn fingerprint_of(hash: u64) -> u8 {
    hash as u8
}

/// Writes a file of sections.
#[derive(Debug)]
pub(crate) struct SectionWriter {
    /// The file; `None` if all sections stay in the buffer.
    file: Option<File>,
    path: PathBuf,
    buffer: Vec<u8>,
    /// Position in the file: bytes written or buffered so far.
    at: u64,
    sections: Vec<(u32, u64, u64)>,
    magic: [u8; 8],
}

const BUFFER: usize = 1 << 20;

impl SectionWriter {
    /// Creates the file, which must not exist.
    pub(crate) fn create(path: PathBuf, magic: [u8; 8]) -> Result<Self> {
        let file = private::create_new(&path).map_err(|e| Error::io(&path, e))?;
        Self::over(Some(file), path, magic)
    }

    /// Writes the content of a file to memory; `name` is for errors.
    pub(crate) fn in_memory(name: &str, magic: [u8; 8]) -> Result<Self> {
        Self::over(None, name.into(), magic)
    }

    fn over(file: Option<File>, path: PathBuf, magic: [u8; 8]) -> Result<Self> {
        let mut w = Self {
            file,
            path,
            buffer: Vec::new(),
            at: 0,
            sections: Vec::new(),
            magic,
        };
        w.write(&[0; HEAD])?;
        Ok(w)
    }

    /// Begins a section and ends the previous one.
    pub(crate) fn begin(&mut self, kind: u32) -> Result<()> {
        self.end();
        let padding = self.at.next_multiple_of(ALIGN) - self.at;
        self.write(&[0; ALIGN as usize][..padding as usize])?;
        self.sections.push((kind, self.at, 0));
        Ok(())
    }

    fn end(&mut self) {
        if let Some((_, start, len)) = self.sections.last_mut()
            && *len == 0
        {
            *len = self.at - *start;
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.at += bytes.len() as u64;
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
            if let Some(file) = &mut self.file
                && bytes.len() > BUFFER / 2
            {
                return file.write_all(bytes).map_err(|e| Error::io(&self.path, e));
            }
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(&self.buffer)
                .map_err(|e| Error::io(&self.path, e))?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Completes the file and returns its bytes if it is in memory. Does not sync: the caller that commits the store
    /// directory does.
    pub(crate) fn finish(mut self, terms: u32, own: [u64; 4]) -> Result<Vec<u8>> {
        self.end();
        self.flush()?;
        if self.sections.len() > MAX_SECTIONS {
            return Err(Error::Internal("too many sections".into()));
        }
        let mut head = Vec::with_capacity(HEAD);
        head.extend_from_slice(&self.magic);
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&(self.sections.len() as u32).to_le_bytes());
        head.extend_from_slice(&self.at.to_le_bytes());
        head.extend_from_slice(&u64::from(terms).to_le_bytes());
        for number in own {
            head.extend_from_slice(&number.to_le_bytes());
        }
        for (kind, start, len) in &self.sections {
            head.extend_from_slice(&u64::from(*kind).to_le_bytes());
            head.extend_from_slice(&start.to_le_bytes());
            head.extend_from_slice(&len.to_le_bytes());
        }
        match &mut self.file {
            Some(file) => file
                .seek(SeekFrom::Start(0))
                .and_then(|_| file.write_all(&head))
                .map_err(|e| Error::io(&self.path, e))?,
            None => self.buffer[..head.len()].copy_from_slice(&head),
        }
        Ok(self.buffer)
    }
}

/// A mapped file of sections.
#[derive(Debug)]
pub(crate) struct Sections {
    map: Bytes,
    path: PathBuf,
    pub(crate) terms: u32,
    /// The four numbers in the head that each file defines for itself.
    pub(crate) own: [u64; 4],
    table: Vec<(u32, Range<usize>)>,
}

impl Sections {
    /// Maps a file and checks its head.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be read, [`Error::Version`], [`Error::Damaged`] when it is of another kind,
    /// truncated or has a damaged head.
    pub(crate) fn open(path: &Path, magic: [u8; 8]) -> Result<Self> {
        Self::over(Bytes::map(path)?, path, magic)
    }

    /// As [`Self::open`], for bytes in memory; errors call them `name`.
    pub(crate) fn from_bytes(bytes: &[u8], name: &str, magic: [u8; 8]) -> Result<Self> {
        Self::over(Bytes::copy_of(bytes), Path::new(name), magic)
    }

    fn over(map: Bytes, path: &Path, magic: [u8; 8]) -> Result<Self> {
        let all = map.as_slice();
        if all.len() < HEAD {
            return Err(bad(path, "shorter than its header"));
        }
        let number = |at: usize| {
            all.get(at..at + 8)
                .and_then(|b| b.try_into().ok())
                .map_or(0, u64::from_le_bytes)
        };
        if all[..8] != magic {
            return Err(bad(path, "not a file of a Jindou dictionary"));
        }
        let (version, sections) = (number(8) as u32, (number(8) >> 32) as usize);
        if version != VERSION {
            return Err(Error::Version {
                file: path.to_owned(),
                found: version.into(),
                supported: VERSION.into(),
            });
        }
        if number(16) != all.len() as u64 {
            return Err(bad(path, "truncated or appended to"));
        }
        let terms = u32::try_from(number(24)).map_err(|_| bad(path, "damaged (terms)"))?;
        if sections > MAX_SECTIONS {
            return Err(bad(path, "damaged (section table)"));
        }
        let mut table = Vec::new();
        for i in 0..sections {
            let at = TABLE + i * ENTRY;
            let (start, len) = (number(at + 8), number(at + 16));
            let end = start.checked_add(len).filter(|&e| e <= all.len() as u64);
            match (u32::try_from(number(at)), end) {
                (Ok(kind), Some(end)) if start % ALIGN == 0 => {
                    table.push((kind, start as usize..end as usize));
                }
                _ => return Err(bad(path, "damaged (section table)")),
            }
        }
        let own = [32, 40, 48, 56].map(number);
        Ok(Self {
            terms,
            own,
            table,
            path: path.to_owned(),
            map,
        })
    }

    /// Ok if everything read so far is unchanged since the file was opened.
    ///
    /// # Errors
    /// As [`jindou_model::mapped::MappedFile::check`].
    #[inline]
    pub(crate) fn check_file(&self) -> Result<()> {
        self.map.check()
    }

    /// True if [`Self::check_file`] would succeed. A few instructions.
    #[inline]
    #[must_use]
    pub(crate) fn is_whole(&self) -> bool {
        self.map.is_whole()
    }

    /// Range of a section; [`Error::Damaged`] when the section is missing or `len` is false for its length.
    pub(crate) fn range(&self, kind: u32, len: impl Fn(usize) -> bool) -> Result<Range<usize>> {
        match self.table.iter().find(|(k, _)| *k == kind) {
            Some((_, r)) if len(r.len()) => Ok(r.clone()),
            Some(_) => Err(bad(
                &self.path,
                &format!("damaged (length of section {kind})"),
            )),
            None => Err(bad(&self.path, &format!("damaged (no section {kind})"))),
        }
    }

    pub(crate) fn has(&self, kind: u32) -> bool {
        self.table.iter().any(|(k, _)| *k == kind)
    }

    /// A section that was checked by [`Sections::range`].
    #[inline(always)]
    pub(crate) fn bytes(&self, range: &Range<usize>) -> &[u8] {
        &self.map.as_slice()[range.clone()]
    }

    /// A section as an array. Empty when the section's length does not fit the type (which `range` rules out).
    #[inline(always)]
    pub(crate) fn array<T: bytemuck::Pod>(&self, range: &Range<usize>) -> &[T] {
        bytemuck::try_cast_slice(self.bytes(range)).unwrap_or(&[])
    }

    pub(crate) fn damaged(&self, what: &str) -> Error {
        bad(&self.path, &format!("damaged ({what})"))
    }

    /// Tells the kernel that reads will be random.
    pub(crate) fn advise_random(&self) {
        self.map.advise_random();
    }

    /// Length of the file.
    pub(crate) fn file_len(&self) -> u64 {
        self.map.as_slice().len() as u64
    }
}

fn bad(path: &Path, what: &str) -> Error {
    Error::damaged(path, what)
}
