//! Writing `dictionary.jd` once clustering has assigned the ids.
//!
//! The four numbers in the file's head that are its own: seed of the hash, length of `strings.jd`, bits of an id if the
//! hash table and the lex column are compact (else 0), 0.

use super::StringsWriter;
use super::values::{ValueColumns, value_columns};
use crate::format::{
    Bucket, COMPACT_LEX_BYTES, CompactBucket, DICTIONARY_FILE, DICTIONARY_MAGIC, MAX_PROBE,
    SectionWriter, bucket_of, compact_bits, compact_entry, dictionary, fingerprint_of, stored_hash,
};
use crate::{Strings, TagRanges};
use jindou_model::memory::{huge_zeroed, prefetch_at};
use jindou_model::{Error, NO_VERTEX, Result};
use std::path::Path;

/// Terms whose buckets are prefetched together.
const GROUP: usize = 32;

/// Writes `dictionary.jd` next to a complete `strings.jd` (not synced). `id_of_lex[lex]` is the id that clustering
/// assigned to the term: a permutation of `1..=n`. With two threads or more the hash table and the value columns are
/// made at the same time.
///
/// Memory in addition to `id_of_lex`: about 11 bytes per term, and 20 more per literal with a value. About 50 ns of CPU
/// time per term.
///
/// # Errors
/// [`Error::Io`], [`Error::Damaged`] when `strings.jd` is missing or damaged, [`Error::Internal`] when
/// `id_of_lex` is not a permutation, [`Error::Limit`].
pub fn write_dictionary(dir: &Path, id_of_lex: &[u32], threads: usize) -> Result<()> {
    let bits = compact_bits(id_of_lex.len() as u32);
    write_with(dir, id_of_lex, threads, bits)
}

/// Writes the file. `bits` is the result of [`compact_bits`], or 0 for a dictionary that is not compact.
fn write_with(dir: &Path, id_of_lex: &[u32], threads: usize, bits: u32) -> Result<()> {
    let strings = Strings::open(dir)?;
    let file = SectionWriter::create(dir.join(DICTIONARY_FILE), DICTIONARY_MAGIC)?;
    write_to(file, &strings, id_of_lex, threads, bits).map(|_| ())
}

/// The bytes of `strings.jd` and `dictionary.jd` without terms.
pub(crate) fn empty() -> Result<[Vec<u8>; 2]> {
    let none = TagRanges::from_counts(&[0; 256]);
    let bytes = StringsWriter::in_memory()?.finish(0, &none)?;
    let file = SectionWriter::in_memory(DICTIONARY_FILE, DICTIONARY_MAGIC)?;
    let dictionary = write_to(file, &Strings::from_bytes(&bytes)?, &[], 1, compact_bits(0))?;
    Ok([bytes, dictionary])
}

fn write_to(
    mut file: SectionWriter,
    strings: &Strings,
    id_of_lex: &[u32],
    threads: usize,
    bits: u32,
) -> Result<Vec<u8>> {
    if strings.len() as usize != id_of_lex.len() {
        return Err(Error::Internal("exactly one id per term is needed".into()));
    }
    let (seed, values) = std::thread::scope(|scope| -> Result<_> {
        let mut values = None;
        let beside = if threads > 1 {
            Some(scope.spawn(|| value_columns(strings)))
        } else {
            None
        };
        write_lex(&mut file, id_of_lex, bits != 0)?;
        let seed = write_hash(&mut file, strings, id_of_lex, bits)?;
        if let Some(thread) = beside {
            values = Some(
                thread
                    .join()
                    .map_err(|_| Error::Internal("cannot build the value columns".into()))??,
            );
        }
        Ok((seed, values))
    })?;
    let values = match values {
        Some(v) => v,
        None => value_columns(strings)?,
    };
    write_values(&mut file, &values)?;
    file.finish(strings.len(), [seed, strings.file_len(), bits.into(), 0])
}

/// Writes the section `LEX`: the inverse of `id_of_lex`.
fn write_lex(file: &mut SectionWriter, id_of_lex: &[u32], narrow: bool) -> Result<()> {
    const FREE: u32 = u32::MAX;
    let mut lex_of_id = vec![FREE; id_of_lex.len() + 1];
    for (lex, &id) in id_of_lex.iter().enumerate() {
        match lex_of_id.get_mut(id as usize) {
            Some(slot) if *slot == FREE && id != NO_VERTEX => *slot = lex as u32,
            _ => {
                return Err(Error::Internal(format!(
                    "id {id} is given twice or out of range"
                )));
            }
        }
    }
    lex_of_id[0] = 0;
    file.begin(dictionary::LEX)?;
    if !narrow {
        return file.write(bytemuck::cast_slice(&lex_of_id));
    }
    let mut narrow = Vec::with_capacity(COMPACT_LEX_BYTES << 16);
    for part in lex_of_id.chunks(1 << 16) {
        narrow.clear();
        for lex in part {
            narrow.extend_from_slice(&lex.to_le_bytes()[..COMPACT_LEX_BYTES]);
        }
        file.write(&narrow)?;
    }
    // Padding, so that the last index can be read as part of 4 bytes.
    file.write(&[0])
}

/// A bucket of the hash table, compact or not.
trait BucketEntry: bytemuck::Pod + Clone {
    /// Average number of entries in a bucket.
    const FILL: f64;
    /// Adds an entry; false if the bucket is full, which is recorded as an overflow to the next bucket. `bits` is the
    /// number of bits of an id.
    fn put(&mut self, hash: u64, id: u32, bits: u32) -> bool;
}

impl BucketEntry for Bucket {
    /// 80 % of 12 entries.
    const FILL: f64 = 9.6;

    #[inline]
    fn put(&mut self, hash: u64, id: u32, _: u32) -> bool {
        match self.ids.iter().position(|&i| i == NO_VERTEX) {
            Some(slot) => {
                self.ids[slot] = id;
                self.prints[slot] = fingerprint_of(hash);
                true
            }
            None => {
                self.overflow = 1;
                false
            }
        }
    }
}

impl BucketEntry for CompactBucket {
    /// 85 % of 16 entries. Two buckets in five are full then, and a lookup of an absent term visits 2.2 neighbouring
    /// buckets on average (simulated; they are fetched together).
    const FILL: f64 = 13.6;

    #[inline]
    fn put(&mut self, hash: u64, id: u32, bits: u32) -> bool {
        match self.0.iter().position(|&e| e == 0) {
            Some(slot) => {
                self.0[slot] = compact_entry(hash, id, bits);
                true
            }
            None => false,
        }
    }
}

/// Writes the section `HASH`; returns its seed.
fn write_hash(
    file: &mut SectionWriter,
    strings: &Strings,
    id_of_lex: &[u32],
    bits: u32,
) -> Result<u64> {
    match bits {
        0 => write_table::<Bucket>(file, strings, id_of_lex, 0),
        bits => write_table::<CompactBucket>(file, strings, id_of_lex, bits),
    }
}

fn write_table<B: BucketEntry>(
    file: &mut SectionWriter,
    strings: &Strings,
    id_of_lex: &[u32],
    bits: u32,
) -> Result<u64> {
    for seed in 0..64 {
        if let Some(table) = hash_table::<B>(strings, id_of_lex, bits, seed)? {
            file.begin(dictionary::HASH)?;
            file.write(bytemuck::cast_slice(&table))?;
            return Ok(seed);
        }
    }
    Err(Error::Internal(
        "no seed spreads the terms over the hash table".into(),
    ))
}

/// The hash table, or `None` if some term would be more than `MAX_PROBE` buckets after the bucket of its hash.
fn hash_table<B: BucketEntry>(
    strings: &Strings,
    id_of_lex: &[u32],
    bits: u32,
    seed: u64,
) -> Result<Option<Vec<B>>> {
    let buckets = ((id_of_lex.len() as f64 / B::FILL).ceil() as usize).max(1);
    let mut table: Vec<B> = huge_zeroed(buckets);
    let mut group = [(0u64, 0u32); GROUP];
    let mut pending = 0;
    let mut spread = true;
    let complete = strings.for_each(0..strings.len(), |lex, term| {
        let hash = stored_hash(term, seed);
        prefetch_at(&table, bucket_of(hash, buckets));
        group[pending] = (hash, id_of_lex[lex as usize]);
        pending += 1;
        if pending == GROUP {
            let mut each = group.iter();
            spread &= each.all(|&(hash, id)| insert(&mut table, hash, id, bits));
            pending = 0;
        }
    });
    if !complete {
        return Err(Error::Internal("strings.jd cannot be read back".into()));
    }
    spread &= group[..pending]
        .iter()
        .all(|&(hash, id)| insert(&mut table, hash, id, bits));
    Ok(spread.then_some(table))
}

#[inline]
fn insert<B: BucketEntry>(table: &mut [B], hash: u64, id: u32, bits: u32) -> bool {
    let mut at = bucket_of(hash, table.len());
    for _ in 0..MAX_PROBE.min(table.len()) {
        if table[at].put(hash, id, bits) {
            return true;
        }
        at = if at + 1 == table.len() { 0 } else { at + 1 };
    }
    false
}

fn write_values(file: &mut SectionWriter, values: &ValueColumns) -> Result<()> {
    file.begin(dictionary::RANKS)?;
    file.write(bytemuck::cast_slice(&values.ranks))?;
    file.begin(dictionary::NUMBERS)?;
    file.write(bytemuck::cast_slice(&values.numbers))?;
    file.begin(dictionary::NUMBER_LEX)?;
    file.write(bytemuck::cast_slice(&values.number_lex))?;
    if !values.duration_lex.is_empty() {
        file.begin(dictionary::DURATION_LEX)?;
        file.write(bytemuck::cast_slice(&values.duration_lex))?;
    }
    for (place, instants) in values.instants.iter().enumerate() {
        if !instants.is_empty() {
            file.begin(dictionary::INSTANTS + place as u32)?;
            file.write(bytemuck::cast_slice(instants))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::StringsWriter;
    use crate::{Dictionary, TagRanges};
    use jindou_model::VertexId;

    /// A dictionary that is too large for compact buckets takes too long for a test, so both kinds are built from the
    /// same terms.
    #[test]
    fn both_kinds_of_tables_find_the_same() {
        let terms: Vec<Vec<u8>> = (0..5000)
            .map(|i| format!("<http://e/{i:05}").into_bytes())
            .collect();
        // Multiplication by an odd number permutes the numbers below a power of two; the other ids stay as they are.
        let ids: Vec<u32> = (0..5000u32)
            .map(|i| {
                if i < 4096 {
                    (i * 1235) % 4096 + 1
                } else {
                    i + 1
                }
            })
            .collect();
        for bits in [compact_bits(5000), 0] {
            let tmp = tempfile::tempdir().unwrap();
            let mut w = StringsWriter::create(tmp.path()).unwrap();
            let mut starts = [0; 257];
            starts[usize::from(b'<') + 1..].fill(5000);
            for t in &terms {
                w.push(0, t).unwrap();
            }
            w.finish(5000, &TagRanges::from_starts(&starts).unwrap())
                .unwrap();
            write_with(tmp.path(), &ids, 1, bits).unwrap();
            let d = Dictionary::open(tmp.path()).unwrap();
            let asked: Vec<&[u8]> = terms
                .iter()
                .map(Vec::as_slice)
                .chain([&b"<http://f"[..]])
                .collect();
            let mut found = vec![];
            d.lookup_many(&asked, &mut found);
            let mut want = ids.clone();
            want.push(NO_VERTEX);
            assert_eq!(found, want);
            for (lex, &id) in (0..).zip(&ids) {
                assert_eq!(d.lookup(&terms[lex as usize]), Some(VertexId(id)));
                assert_eq!(d.lex(VertexId(id)), Some(lex));
            }
            assert_eq!(d.lex(VertexId(5001)), None);
            assert!((0..9000).all(|i| d.lookup(format!("<http://g/{i}").as_bytes()).is_none()));
        }
    }
}
