//! Splitting one vocabulary into several: each part is a `strings.jd` of its own, for the shards of a store.

use super::StringsWriter;
use crate::{Strings, TagRanges};
use jindou_model::{Error, Result};
use std::path::PathBuf;

/// The `strings.jd` of one shard while it is written.
struct ShardStrings {
    writer: StringsWriter,
    /// The last term that was written.
    last: Vec<u8>,
    counts: [u32; 256],
    terms: u32,
}

impl ShardStrings {
    fn push(&mut self, term: &[u8]) -> Result<()> {
        let same = self.last.iter().zip(term).take_while(|(a, b)| a == b);
        let shared = same.count();
        self.writer.push(shared, term)?;
        self.last.truncate(shared);
        self.last.extend_from_slice(&term[shared..]);
        self.counts[term.first().copied().unwrap_or(0) as usize] += 1;
        self.terms += 1;
        Ok(())
    }
}

/// Writes `strings.jd` into every folder, in one pass over all terms. For each lex index, `parts_of` calls back once
/// with the number of each folder that gets the term. Terms keep their order. Returns the number of terms in each
/// folder.
///
/// # Errors
/// [`Error::Io`]; [`Error::Limit`]; [`Error::Internal`] when the terms cannot be read back.
pub fn split_strings(
    strings: &Strings,
    folders: &[PathBuf],
    parts_of: impl Fn(u32, &mut dyn FnMut(usize)),
) -> Result<Vec<u32>> {
    let mut parts = Vec::with_capacity(folders.len());
    for folder in folders {
        parts.push(ShardStrings {
            writer: StringsWriter::create(folder)?,
            last: Vec::new(),
            counts: [0; 256],
            terms: 0,
        });
    }
    let mut failed = None;
    let complete = strings.for_each(0..strings.len(), |lex, term| {
        parts_of(lex, &mut |to| {
            if let (Some(part), true) = (parts.get_mut(to), failed.is_none()) {
                failed = part.push(term).err();
            }
        });
    });
    if let Some(e) = failed {
        return Err(e);
    }
    strings.check_file()?;
    if !complete {
        return Err(Error::Internal("strings.jd cannot be read back".into()));
    }
    parts
        .into_iter()
        .map(|p| {
            p.writer
                .finish(p.terms, &TagRanges::from_counts(&p.counts))?;
            Ok(p.terms)
        })
        .collect()
}
