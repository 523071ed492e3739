//! The index of terms that updates added: blocks of terms, each with segments in memory.

use crate::open::BATCH;
use crate::segment::{SegmentMaker, WordSegment};
use crate::{Folder, SearchedTerms, WordQuery, caught, count, folded};
use jindou_model::{Charge, Holder, MemoryBudget, Result};
use std::sync::Arc;

/// Number of terms in a block. Each search also scans the last terms, which do not fill a block yet.
pub const BLOCK: u32 = 1 << 13;
/// Number of blocks that are merged into a large one.
const BLOCKS: u32 = 8;
/// Temporary memory in bytes per term for building a block.
const WHILE_MAKING: u64 = 600;

/// An indexed range of consecutive terms.
struct TermBlock {
    /// Number of the first term, and the number after the last one.
    terms: [u32; 2],
    /// Segments for literals and for IRIs, with the ids of their documents; `None` if there are no such terms.
    kinds: [Option<(WordSegment, Vec<u32>)>; 2],
    _charge: Charge,
}

/// An index for a growing list of terms. It is immutable and cheap to clone; [`Self::grown`] returns one with a further
/// block.
#[derive(Clone, Default)]
pub struct Growing {
    blocks: Arc<Vec<Arc<TermBlock>>>,
}

jindou_model::debug_format!(Growing, |this| "Growing({} terms)", this.len());

impl TermBlock {
    /// Builds a block of the terms in a range; `term` returns the canonical bytes of a term by its number.
    fn new<'t>(
        terms: [u32; 2],
        first_id: u32,
        term: &dyn Fn(u32) -> Option<&'t [u8]>,
        memory: &MemoryBudget,
    ) -> Result<Self> {
        let mut charge = Charge::new(Holder::Rest, memory);
        charge.set(u64::from(terms[1] - terms[0]) * WHILE_MAKING)?;
        let (mut folder, mut text) = (Folder::default(), String::new());
        let mut all: [Vec<(usize, u32, String)>; 2] = [vec![], vec![]];
        for n in terms[0]..terms[1] {
            let Some(canonical) = term(n) else { continue };
            if let Some(kind) = folded(canonical, &mut folder, &mut text) {
                all[kind as usize].push((count(&text), n, text.clone()));
            }
        }
        let mut bytes = 0;
        let mut make = |mut texts: Vec<(usize, u32, String)>| {
            if texts.is_empty() {
                return Ok(None);
            }
            texts.sort_by_key(|t| (t.0, t.1));
            let mut maker = SegmentMaker::new(1 << 20)?;
            for (_, n, text) in &texts {
                maker.add(first_id + n, text)?;
            }
            let mut made = maker.finish()?;
            let segment = WordSegment::of(&made)?;
            made.ids.shrink_to_fit();
            bytes += made.directory.total_mem_usage() + 4 * made.ids.len() + 4096;
            Ok(Some((segment, made.ids)))
        };
        let [literals, iris] = all;
        let kinds = [make(literals)?, make(iris)?];
        charge.set(bytes as u64)?;
        Ok(Self {
            terms,
            kinds,
            _charge: charge,
        })
    }
}

impl Growing {
    /// Number of indexed terms; these are the terms with smaller numbers.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.blocks.last().map_or(0, |b| b.terms[1])
    }

    /// True if no term is indexed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The ranges of numbers of its blocks, ascending and adjacent.
    pub fn ranges(&self) -> impl DoubleEndedIterator<Item = [u32; 2]> {
        self.blocks.iter().map(|b| b.terms)
    }

    /// This index with the block of this range made again. `term` and `first_id` are as for [`Self::grown`].
    ///
    /// # Errors
    /// `Limit` if there is not enough memory.
    pub fn with_block_of<'t>(
        &self,
        range: [u32; 2],
        first_id: u32,
        term: &dyn Fn(u32) -> Option<&'t [u8]>,
        memory: &MemoryBudget,
    ) -> Result<Self> {
        let mut blocks = self.blocks.to_vec();
        if let Some(block) = blocks.iter_mut().find(|b| b.terms == range) {
            *block = Arc::new(Self::block(range, first_id, term, memory)?);
        }
        Ok(Self {
            blocks: Arc::new(blocks),
        })
    }

    /// This index extended by one block; `None` if `all` terms do not fill a further block. `term` returns the
    /// canonical bytes of a term by its number; its id is that number plus `first_id`. Takes some tens of milliseconds;
    /// every eighth time some hundred.
    ///
    /// # Errors
    /// `Limit` if there is not enough memory.
    pub fn grown<'t>(
        &self,
        all: u32,
        first_id: u32,
        term: &dyn Fn(u32) -> Option<&'t [u8]>,
        memory: &MemoryBudget,
    ) -> Result<Option<Self>> {
        let from = self.len();
        let to = from.saturating_add(BLOCK);
        if to > all {
            return Ok(None);
        }
        let mut blocks = self.blocks.to_vec();
        let begin = to - BLOCKS.min(to / BLOCK) * BLOCK;
        let is_row = to.is_multiple_of(BLOCK * BLOCKS);
        let row = is_row.then(|| Self::block([begin, to], first_id, term, memory));
        match row {
            Some(Ok(row)) => {
                blocks.retain(|b| b.terms[1] <= begin);
                blocks.push(Arc::new(row));
            }
            // If the memory does not suffice for a large block, small ones are kept instead, with the same results.
            _ => blocks.push(Arc::new(Self::block([from, to], first_id, term, memory)?)),
        }
        Ok(Some(Self {
            blocks: Arc::new(blocks),
        }))
    }

    fn block<'t>(
        terms: [u32; 2],
        first_id: u32,
        term: &dyn Fn(u32) -> Option<&'t [u8]>,
        memory: &MemoryBudget,
    ) -> Result<TermBlock> {
        caught(|| TermBlock::new(terms, first_id, term, memory))
    }

    /// As [`OpenText::search`](crate::OpenText::search), for the indexed terms.
    ///
    /// # Errors
    /// [`Error::Internal`](jindou_model::Error::Internal).
    pub fn search(
        &self,
        asked: &WordQuery,
        kind: SearchedTerms,
        stop: &mut dyn FnMut() -> bool,
        f: &mut dyn FnMut(u32) -> bool,
    ) -> Result<bool> {
        let mut complete = true;
        for whole in [true, false] {
            for block in self.blocks.iter() {
                let Some((segment, ids)) = &block.kinds[kind as usize] else {
                    continue;
                };
                let Some(mut walk) = caught(|| segment.walk(asked, whole, stop))? else {
                    continue;
                };
                let mut batch = Vec::with_capacity(BATCH);
                loop {
                    batch.clear();
                    let more = caught(|| walk.fill(ids, &mut batch, stop))?;
                    for &id in &batch {
                        if !f(id) {
                            return Ok(false);
                        }
                    }
                    if !more {
                        break;
                    }
                }
                complete &= !walk.cut;
            }
        }
        Ok(complete)
    }
}
