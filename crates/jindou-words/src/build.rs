//! From texts to lists by word: pairs of word and id are sorted in parts of what memory there is, and the parts are merged.

use super::{MAX_TEXT, each_word, section};
use jindou_dictionary::index::{IndexWriter, Terms};
use jindou_dictionary::spill::{Spill, SpillDir, SpillReader, SpillWriter};
use jindou_model::term::{self, LANG, Parts, STRING};
use jindou_model::{Charge, Holder, MemoryBudget, Result};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Parts that are merged at once: each is read through a mebibyte.
const MOST_PARTS: usize = 6;
/// Memory that merging takes, and a part of it that is sorted at a time at most.
const FOR_MERGING: u64 = 11 << 20;
const MOST_SORTED: u64 = 64 << 20;

/// A word's bytes, and the id of a text that has it.
type Pair = (Vec<u8>, u32);

pub(super) fn build(terms: &Terms<'_>, file: &mut IndexWriter) -> Result<()> {
    let memory = terms.memory();
    let mut charge = Charge::new(Holder::Rest, memory);
    charge.set(FOR_MERGING)?;
    let room = memory.limit().saturating_sub(memory.used()) / 2;
    let room = room.min(MOST_SORTED);
    charge.add(room)?;
    // What is not in memory is in files, whatever their size.
    let spill = SpillDir::new(terms.folder(), MemoryBudget::new(0))?;
    let mut sorter = Sorter {
        terms,
        spill: &spill,
        text: vec![],
        pairs: vec![],
        room: room as usize,
        parts: vec![],
    };
    let mut long = spill.writer();
    for tag in [STRING, LANG] {
        terms.for_each(terms.tag_ranges().range(tag), |id, canonical| {
            let text = match term::parts(canonical) {
                Some(Parts::String(s) | Parts::Lang(s, _)) => s,
                _ => return Ok(()),
            };
            if text.len() > MAX_TEXT {
                return long.append(&id.0.to_le_bytes());
            }
            let mut added = Ok(());
            each_word(text, |word| {
                if added.is_ok() {
                    added = sorter.add(word, id.0);
                }
            });
            added
        })?;
    }
    let parts = sorter.finish()?;
    let [mut words, mut ends, mut list_ends, mut lists] = [(); 4].map(|()| spill.writer());
    let mut last: Option<Pair> = None;
    merge(terms, parts, |word, id| {
        match &mut last {
            Some((w, i)) if w == word => {
                // A word may be in a text more than once.
                if *i == id {
                    return Ok(());
                }
                *i = id;
            }
            _ => {
                if last.is_some() {
                    list_ends.append(&(lists.len() / 4).to_le_bytes())?;
                }
                words.append(word)?;
                ends.append(&words.len().to_le_bytes())?;
                last = Some((word.to_vec(), id));
            }
        }
        lists.append(&id.to_le_bytes())
    })?;
    if last.is_some() {
        list_ends.append(&(lists.len() / 4).to_le_bytes())?;
    }
    for (number, part) in [
        (section::WORDS, words),
        (section::ENDS, ends),
        (section::LIST_ENDS, list_ends),
        (section::LISTS, lists),
    ] {
        copy(number, part.finish()?, file)?;
    }
    // Strings come before texts with a language, and ids are in another order than texts.
    let mut ids = vec![];
    let mut reader = long.finish()?.into_reader();
    let mut id = [0; 4];
    while reader.read_exact(&mut id)? {
        charge.add(4)?;
        ids.push(u32::from_le_bytes(id));
    }
    ids.sort_unstable();
    file.begin(section::LONG)?;
    file.write_u32s(&ids)
}

fn copy(number: u32, from: Spill, file: &mut IndexWriter) -> Result<()> {
    file.begin(number)?;
    let mut reader = from.into_reader();
    loop {
        let here = reader.fill()?;
        if here.is_empty() {
            return Ok(());
        }
        file.write(here)?;
        let n = here.len();
        reader.consume(n);
    }
}

/// Sorts pairs, as many at a time as there is room for.
struct Sorter<'a> {
    terms: &'a Terms<'a>,
    spill: &'a SpillDir,
    text: Vec<u8>,
    /// Where a word starts in `text`, its length, and the text's id.
    pairs: Vec<(u32, u8, u32)>,
    room: usize,
    parts: Vec<Spill>,
}

impl Sorter<'_> {
    fn add(&mut self, word: &str, id: u32) -> Result<()> {
        let taken = self.text.len() + word.len() + (self.pairs.len() + 1) * 12;
        // Vectors may have grown to twice what is in them.
        if taken > self.room / 2 && !self.pairs.is_empty() {
            self.close()?;
        }
        self.pairs
            .push((self.text.len() as u32, word.len() as u8, id));
        self.text.extend_from_slice(word.as_bytes());
        Ok(())
    }

    /// Makes a sorted part of what there is.
    fn close(&mut self) -> Result<()> {
        let text = &self.text;
        let word = |p: &(u32, u8, u32)| &text[p.0 as usize..][..usize::from(p.1)];
        self.pairs
            .sort_unstable_by(|a, b| word(a).cmp(word(b)).then(a.2.cmp(&b.2)));
        let mut out = self.spill.writer();
        for p in &self.pairs {
            append(&mut out, word(p), p.2)?;
        }
        self.text.clear();
        self.pairs.clear();
        self.parts.push(out.finish()?);
        if self.parts.len() == MOST_PARTS {
            let mut out = self.spill.writer();
            let parts = std::mem::take(&mut self.parts);
            merge(self.terms, parts, |word, id| append(&mut out, word, id))?;
            self.parts.push(out.finish()?);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<Spill>> {
        self.close()?;
        Ok(self.parts)
    }
}

fn append(out: &mut SpillWriter, word: &[u8], id: u32) -> Result<()> {
    out.append(&[word.len() as u8])?;
    out.append(word)?;
    out.append(&id.to_le_bytes())
}

fn next(from: &mut SpillReader) -> Result<Option<Pair>> {
    let mut length = [0];
    if !from.read_exact(&mut length)? {
        return Ok(None);
    }
    let (mut word, mut id) = (vec![0; length[0].into()], [0; 4]);
    from.read_exact(&mut word)?;
    from.read_exact(&mut id)?;
    Ok(Some((word, u32::from_le_bytes(id))))
}

/// Calls `f` with the pairs of all parts in order.
fn merge(
    terms: &Terms<'_>,
    parts: Vec<Spill>,
    mut f: impl FnMut(&[u8], u32) -> Result<()>,
) -> Result<()> {
    /// Pairs between two looks at whether the load goes on.
    const CHECK: usize = 4096;
    let mut readers: Vec<SpillReader> = parts.into_iter().map(Spill::into_reader).collect();
    let mut open = BinaryHeap::new();
    for (i, reader) in readers.iter_mut().enumerate() {
        open.extend(next(reader)?.map(|pair| Reverse((pair, i))));
    }
    let mut done = 0;
    while let Some(Reverse((pair, i))) = open.pop() {
        if done % CHECK == 0 {
            terms.check()?;
        }
        done += 1;
        f(&pair.0, pair.1)?;
        open.extend(next(&mut readers[i])?.map(|pair| Reverse((pair, i))));
    }
    Ok(())
}
