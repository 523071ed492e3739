//! Writing `dictionary.jd` once clustering has given the ids.
//!
//! The head's own numbers: seed of the hash, length of `strings.jd`, 0, 0.

use super::values::{ValueColumns, value_columns};
use crate::Strings;
use crate::format::{
    Bucket, DICTIONARY_FILE, DICTIONARY_MAGIC, MAX_PROBE, SLOTS, SectionWriter, bucket_of,
    dictionary, print_of, stored_hash,
};
use crate::memory::{huge_zeroed, prefetch_at};
use jindou_model::{Error, NO_VERTEX, Result};
use std::path::Path;

/// Terms whose buckets are prefetched together.
const GROUP: usize = 32;
/// Entries a bucket holds on average, of its 12: 80 %.
const FILL: f64 = 9.6;

/// Writes `dictionary.jd` beside a complete `strings.jd` (not synced). `id_of_lex[lex]` is the id
/// that clustering gave the term: a permutation of `1..=n`. With two threads or more the hash table
/// and the value columns are made at the same time.
///
/// Memory besides `id_of_lex`: about 11 bytes a term, 20 more a literal with a value. About 50 ns of
/// CPU time a term.
///
/// # Errors
/// [`Error::Io`], [`Error::Store`] when `strings.jd` is missing or damaged, [`Error::Internal`] when
/// `id_of_lex` is not a permutation, [`Error::Limit`].
pub fn write_dictionary(dir: &Path, id_of_lex: &[u32], threads: usize) -> Result<()> {
    let strings = Strings::open(dir)?;
    if strings.len() as usize != id_of_lex.len() {
        return Err(Error::Internal(
            "an id for every term is needed, and none besides".into(),
        ));
    }
    let mut file = SectionWriter::create(dir.join(DICTIONARY_FILE), DICTIONARY_MAGIC)?;
    let (seed, values) = std::thread::scope(|scope| -> Result<_> {
        let mut values = None;
        let beside = if threads > 1 {
            Some(scope.spawn(|| value_columns(&strings)))
        } else {
            None
        };
        write_lex(&mut file, id_of_lex)?;
        let seed = write_hash(&mut file, &strings, id_of_lex)?;
        if let Some(thread) = beside {
            values = Some(
                thread
                    .join()
                    .map_err(|_| Error::Internal("making value columns failed".into()))??,
            );
        }
        Ok((seed, values))
    })?;
    let values = match values {
        Some(v) => v,
        None => value_columns(&strings)?,
    };
    write_values(&mut file, &values)?;
    file.finish(strings.len(), [seed, strings.file_len(), 0, 0])
}

/// The section `LEX`: the inverse of `id_of_lex`.
fn write_lex(file: &mut SectionWriter, id_of_lex: &[u32]) -> Result<()> {
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
    file.write(bytemuck::cast_slice(&lex_of_id))
}

/// The section `HASH`; returns its seed.
fn write_hash(file: &mut SectionWriter, strings: &Strings, id_of_lex: &[u32]) -> Result<u64> {
    for seed in 0..64 {
        if let Some(table) = hash_table(strings, id_of_lex, seed)? {
            file.begin(dictionary::HASH)?;
            file.write(bytemuck::cast_slice(&table))?;
            return Ok(seed);
        }
    }
    Err(Error::Internal(
        "no seed spreads the terms over the hash table".into(),
    ))
}

/// The table, or `None` when some term would lie more than `MAX_PROBE` buckets from its place.
fn hash_table(strings: &Strings, id_of_lex: &[u32], seed: u64) -> Result<Option<Vec<Bucket>>> {
    let buckets = ((id_of_lex.len() as f64 / FILL).ceil() as usize).max(1);
    let mut table: Vec<Bucket> = huge_zeroed(buckets);
    let mut group = [(0u64, 0u32); GROUP];
    let mut pending = 0;
    let mut spread = true;
    let complete = strings.for_each(0..strings.len(), |lex, term| {
        let hash = stored_hash(term, seed);
        prefetch_at(&table, bucket_of(hash, buckets));
        group[pending] = (hash, id_of_lex[lex as usize]);
        pending += 1;
        if pending == GROUP {
            spread &= group.iter().all(|&(hash, id)| insert(&mut table, hash, id));
            pending = 0;
        }
    });
    if !complete {
        return Err(Error::Internal("strings.jd cannot be read back".into()));
    }
    spread &= group[..pending]
        .iter()
        .all(|&(hash, id)| insert(&mut table, hash, id));
    Ok(spread.then_some(table))
}

#[inline]
fn insert(table: &mut [Bucket], hash: u64, id: u32) -> bool {
    let mut at = bucket_of(hash, table.len());
    for _ in 0..MAX_PROBE.min(table.len()) {
        let bucket = &mut table[at];
        if let Some(slot) = (0..SLOTS).find(|&s| bucket.ids[s] == NO_VERTEX) {
            bucket.ids[slot] = id;
            bucket.prints[slot] = print_of(hash);
            return true;
        }
        bucket.overflow = 1;
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
    for (place, instants) in values.instants.iter().enumerate() {
        if !instants.is_empty() {
            file.begin(dictionary::INSTANTS + place as u32)?;
            file.write(bytemuck::cast_slice(instants))?;
        }
    }
    Ok(())
}
