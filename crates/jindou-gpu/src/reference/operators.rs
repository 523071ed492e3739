//! Checks of the kernels for operators above patterns: comparisons by rank, bitmaps of ids and of rows, and gathering
//! of columns by row number.

use super::{Checker, wrong};
use crate::backend::Kernel;
use crate::params::{self, ColumnsParams, NO_KEY, OperandParams, RANK_SHIFT};
use jindou_model::{FIRST_TAIL_ID, Result};
use std::collections::BTreeSet;

/// Number of ids in a page of ranks.
const PAGE: u32 = 1 << RANK_SHIFT;

/// The bit of an id in a bitmap; `None` for an id outside of it.
fn bit_of(b: &params::Bits, id: u32) -> Option<usize> {
    if id < b.dense {
        return Some(id as usize);
    }
    let late = id.checked_sub(b.first_tail)?;
    (late < b.tail).then(|| (b.dense + late) as usize)
}

fn is_set(words: &[u32], bit: Option<usize>) -> bool {
    bit.is_some_and(|b| words[b / 32] >> (b % 32) & 1 == 1)
}

impl Checker {
    /// Random ids: most are below `dense`, some are of the tail, and a few are in neither range.
    fn ids(&mut self, rows: u32, dense: u32, tail: u32) -> Vec<u32> {
        let id = |r: &mut super::XorShift| match r.below(40) {
            0 => dense + r.below(50),
            1 => FIRST_TAIL_ID + tail + r.below(50),
            2..12 => FIRST_TAIL_ID + r.below(tail),
            _ => r.below(dense),
        };
        (0..rows).map(|_| id(&mut self.random)).collect()
    }

    /// A bitmap for these ids, in which a third of the bits are set.
    fn set(&mut self, dense: u32, tail: u32) -> (params::Bits, Vec<u32>) {
        let words = (dense + tail).div_ceil(32);
        let words = (0..words)
            .map(|_| (0..32).fold(0, |w, b| w | u32::from(self.random.below(3) == 0) << b))
            .collect();
        let bits = params::Bits {
            words: 0,
            dense,
            first_tail: FIRST_TAIL_ID,
            tail,
            pad: 0,
        };
        (bits, words)
    }

    pub(super) fn operators(&mut self, rows: u32) -> Result<()> {
        self.comparisons(rows)?;
        self.marks(rows)?;
        self.tests(rows)?;
        self.distinct_ids(rows)?;
        self.gathers(rows)
    }

    fn comparisons(&mut self, rows: u32) -> Result<()> {
        for (start, end, pages) in [(10, 200, 4), (0, 300, 1), (250, 251, 6), (7, 7, 3)] {
            // Every other page has numbers: half of its ids.
            let (mut table, mut ranks): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
            for page in 0..pages {
                if page % 2 == 1 {
                    table.push(NO_KEY);
                    continue;
                }
                table.push(ranks.len() as u32 / PAGE);
                ranks.extend((0..PAGE).map(|_| match self.random.below(2) {
                    0 => NO_KEY,
                    _ => self.random.below(300),
                }));
            }
            let tail = 70u32;
            let late: Vec<u32> = (0..tail.div_ceil(32))
                .map(|_| self.random.below(u32::MAX))
                .collect();
            let (page_at, rank_at) = (self.upload(&table)?, self.upload(&ranks)?);
            let late_at = self.upload(&late)?;
            let ids = self.ids(rows, pages * PAGE + 500, tail);
            let page = |id: u32| table.get((id / PAGE) as usize).copied().unwrap_or(NO_KEY);
            let keep = |i: usize| {
                let id = ids[i];
                if let Some(n) = id.checked_sub(FIRST_TAIL_ID) {
                    return n < tail && late[n as usize / 32] >> (n % 32) & 1 == 1;
                }
                let rank = match page(id) {
                    NO_KEY => NO_KEY,
                    p => ranks[(p * PAGE + id % PAGE) as usize],
                };
                (start..end).contains(&rank)
            };
            let looked = ids.iter().filter(|&&id| page(id) != NO_KEY).count() as u64;
            let bytes = 4 * u64::from(rows) + 4 * looked;
            let extra = self.column(rows, 1 << 30);
            let carried = self.carried(vec![ids.clone(), extra], u64::from(rows))?;
            let operand = OperandParams::column(carried.at(0));
            let ranks = params::RanksParams {
                pages: page_at.at(),
                ranks: rank_at.at(),
                tail_bits: late_at.at(),
                page_count: pages,
                start,
                end,
                first_tail: FIRST_TAIL_ID,
                tail,
                pad: 0,
            };
            self.compacts(Kernel::Compare, &carried, rows, keep, bytes, |compact| {
                params::CompareParams {
                    compact,
                    operand,
                    ranks,
                }
            })?;
        }
        Ok(())
    }

    fn marks(&mut self, rows: u32) -> Result<()> {
        for (dense, tail, lists) in [(rows / 8 + 40, 50, false), (rows + 7, 1, true)] {
            let (mut bits, mut words) = self.set(dense, tail);
            let ids = self.ids(rows, dense, tail);
            let lengths: Vec<u32> = ids.iter().map(|_| self.random.below(3)).collect();
            let mut prefix = vec![u32::MAX - 4];
            for &n in &lengths {
                prefix.push(prefix[prefix.len() - 1].wrapping_add(n));
            }
            let (set, column) = (self.upload(&words)?, self.upload(&ids)?);
            let prefix = self.upload(&prefix)?;
            bits.words = set.at();
            let p = params::MarkParams {
                bits,
                operand: OperandParams::column(column.at()),
                prefix: if lists { prefix.at() } else { 0 },
                rows,
                pad: 0,
            };
            let mut bytes = if lists { 12 } else { 4 } * u64::from(rows);
            for (&id, &n) in ids.iter().zip(&lengths) {
                if let Some(b) = bit_of(&bits, id).filter(|_| !lists || n > 0) {
                    words[b / 32] |= 1 << (b % 32);
                    bytes += 4;
                }
            }
            self.launch(Kernel::Mark, u64::from(rows), &p, bytes)?;
            if set.read::<u32>(words.len())? != words {
                return Err(wrong("jd_mark: wrong bits"));
            }
        }
        Ok(())
    }

    fn tests(&mut self, rows: u32) -> Result<()> {
        for (want, first) in [(0, None), (1, None), (0, Some(0)), (1, Some(45))] {
            let (dense, tail) = match first {
                None => (rows / 2 + 40, 50),
                Some(first) => (first + rows, 0),
            };
            let (mut bits, words) = self.set(dense, tail);
            let set = self.upload(&words)?;
            bits.words = set.at();
            let ids = self.ids(rows, dense, tail.max(1));
            let bit = |i: usize| match first {
                None => bit_of(&bits, ids[i]),
                Some(first) => Some(first as usize + i),
            };
            let keep = |i: usize| is_set(&words, bit(i)) == (want == 1);
            let looked = (0..rows as usize).filter(|&i| bit(i).is_some()).count() as u64;
            let bytes = 4 * looked
                + if first.is_none() {
                    4 * u64::from(rows)
                } else {
                    0
                };
            let carried = self.carried(vec![ids.clone()], u64::from(rows))?;
            let operand = OperandParams::column(carried.at(0));
            self.compacts(Kernel::Test, &carried, rows, keep, bytes, |compact| {
                params::TestParams {
                    compact,
                    bits,
                    operand,
                    want,
                    by_row: u32::from(first.is_some()),
                    first: first.unwrap_or(0),
                    pad: 0,
                }
            })?;
        }
        Ok(())
    }

    fn distinct_ids(&mut self, rows: u32) -> Result<()> {
        for (dense, tail) in [(rows / 8 + 40, 50), (5, 1), (rows * 4 + 64, 30)] {
            let (mut bits, words) = self.set(dense, tail);
            let set = self.upload(&words)?;
            bits.words = set.at();
            let ids = self.ids(rows, dense, tail);
            let looked = ids
                .iter()
                .filter(|&&id| bit_of(&bits, id).is_some())
                .count() as u64;
            let mut seen = BTreeSet::new();
            // Any one of several equal ids may be kept; only the id is compared.
            let kept: Vec<bool> = ids
                .iter()
                .map(|&id| {
                    let bit = bit_of(&bits, id);
                    bit.is_some() && !is_set(&words, bit) && seen.insert(id)
                })
                .collect();
            let bytes = 4 * u64::from(rows) + 4 * looked;
            let carried = self.carried(vec![ids.clone()], u64::from(rows))?;
            let operand = OperandParams::column(carried.at(0));
            self.compacts(
                Kernel::Distinct,
                &carried,
                rows,
                |i| kept[i],
                bytes,
                |compact| params::DistinctParams {
                    compact,
                    bits,
                    operand,
                },
            )?;
            let mut after = words;
            for &id in &ids {
                if let Some(b) = bit_of(&bits, id) {
                    after[b / 32] |= 1 << (b % 32);
                }
            }
            if set.read::<u32>(after.len())? != after {
                return Err(wrong("jd_distinct: wrong bits"));
            }
        }
        Ok(())
    }

    fn gathers(&mut self, rows: u32) -> Result<()> {
        for width in [1, 3] {
            let outer = rows / 3 + 5;
            let columns: Vec<Vec<u32>> = (0..width).map(|_| self.column(outer, 1 << 30)).collect();
            let index = self.column(rows, outer);
            let from = columns
                .iter()
                .map(|c| self.upload(c))
                .collect::<Result<Vec<_>>>()?;
            let to = columns
                .iter()
                .map(|_| self.room(u64::from(rows)))
                .collect::<Result<Vec<_>>>()?;
            let index_at = self.upload(&index)?;
            let mut c: ColumnsParams = bytemuck::Zeroable::zeroed();
            c.count = width;
            for (i, (from, to)) in from.iter().zip(&to).enumerate() {
                (c.from[i], c.to[i]) = (from.at(), to.at());
            }
            let p = params::GatherParams {
                columns: c,
                index: index_at.at(),
                rows,
                pad: 0,
            };
            let bytes = u64::from(rows) * u64::from(4 + 8 * width);
            self.launch(Kernel::Gather, u64::from(rows), &p, bytes)?;
            for (column, to) in columns.iter().zip(&to) {
                let want: Vec<u32> = index.iter().map(|&i| column[i as usize]).collect();
                if to.read::<u32>(rows as usize)? != want {
                    return Err(wrong("jd_gather: wrong values"));
                }
            }
        }
        Ok(())
    }
}
