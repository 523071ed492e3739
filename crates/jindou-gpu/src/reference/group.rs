//! Checks of the GROUP BY kernels: counters by number, hash tables of pairs, and the conversion of counters to rows.

use super::{Checker, sorted_rows, wrong};
use crate::backend::Kernel;
use crate::buffer::DeviceBuffer;
use crate::params::{
    self, GroupColumnParams, MAX_GROUP, MAX_TESTED, NO_KEY, OperandParams, RANK_SHIFT, TestedParams,
};
use bytemuck::Zeroable;
use jindou_model::{FIRST_TAIL_ID, Result};
use std::collections::BTreeMap;

/// The number of an id in a column's numbering; `None` for an id outside of it.
fn number(c: &GroupColumnParams, id: u32) -> Option<u64> {
    if id == 0 {
        return Some(0);
    }
    if (c.first..c.first + c.dense).contains(&id) {
        return Some(u64::from(1 + id - c.first));
    }
    let late = id.checked_sub(c.first_tail).filter(|n| *n < c.tail)?;
    Some(u64::from(1 + c.dense + late))
}

fn width(c: &GroupColumnParams) -> u64 {
    u64::from(1 + c.dense + c.tail)
}

/// The columns of a GROUP BY, on the device and on the host.
struct GroupInput {
    by: Vec<GroupColumnParams>,
    ids: Vec<Vec<u32>>,
    bits: Vec<Vec<u32>>,
    tested: TestedParams,
    _held: Vec<DeviceBuffer>,
}

impl GroupInput {
    /// The number of a row's combination; `None` if an id is outside of its column's numbering.
    fn number(&self, row: usize) -> Option<u64> {
        let ids = self.by.iter().zip(&self.ids);
        let of_ids = ids
            .map(|(c, ids)| Some((width(c), number(c, ids[row])?)))
            .try_fold(0, |n, next| next.map(|(w, own)| n * w + own))?;
        let bits = self.bits.iter().enumerate();
        let of_bits = bits.map(|(i, b)| u64::from(b[row] != 0) << i).sum::<u64>();
        Some((of_ids << self.bits.len()) + of_bits)
    }

    fn combinations(&self) -> u64 {
        self.by.iter().map(width).product::<u64>() << self.bits.len()
    }

    fn params(&self) -> [GroupColumnParams; MAX_GROUP] {
        let mut by: [GroupColumnParams; MAX_GROUP] = Zeroable::zeroed();
        by[..self.by.len()].copy_from_slice(&self.by);
        by
    }
}

impl Checker {
    /// Makes random columns. If `misses`, a few ids are outside of the numbering.
    fn group_input(
        &mut self,
        rows: u32,
        columns: usize,
        tests: usize,
        misses: bool,
    ) -> Result<GroupInput> {
        let (mut by, mut ids, mut held) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..columns {
            let (first, dense, tail) = (1 + self.random.below(50), 3 + 20 * i as u32, 4);
            let hot = self.random.below(3) == 0;
            let id = |r: &mut super::XorShift| match r.below(40) {
                0 if misses => first + dense,
                1 if misses => FIRST_TAIL_ID + tail,
                2..4 => 0,
                4..8 => FIRST_TAIL_ID + r.below(tail),
                _ if hot => first,
                _ => first + r.below(dense),
            };
            let column: Vec<u32> = (0..rows).map(|_| id(&mut self.random)).collect();
            let at = self.upload(&column)?;
            by.push(GroupColumnParams {
                operand: OperandParams::column(at.at()),
                first,
                dense,
                first_tail: FIRST_TAIL_ID,
                tail,
            });
            ids.push(column);
            held.push(at);
        }
        let (mut tested, mut bits): (TestedParams, Vec<Vec<u32>>) = (Zeroable::zeroed(), vec![]);
        for to in tested.columns.iter_mut().take(tests) {
            let column = self.column(rows, 3);
            let at = self.upload(&column)?;
            *to = at.at();
            tested.count += 1;
            bits.push(column);
            held.push(at);
        }
        Ok(GroupInput {
            by,
            ids,
            bits,
            tested,
            _held: held,
        })
    }

    pub(super) fn groups(&mut self, rows: u32) -> Result<()> {
        self.group_sums(rows)?;
        self.group_bests(rows)?;
        self.group_slots(rows)?;
        self.group_rows(rows)?;
        self.group_keys(rows)?;
        self.group_ids(rows)
    }

    fn group_sums(&mut self, rows: u32) -> Result<()> {
        for (columns, tests, lists, misses) in [
            (1, 0, false, false),
            (2, 1, true, false),
            (3, 0, false, true),
            (0, MAX_TESTED, false, false),
            (1, 2, true, true),
            (0, 0, true, false),
        ] {
            let input = self.group_input(rows, columns, tests, misses)?;
            let lengths: Vec<u32> = (0..rows).map(|_| self.random.below(4)).collect();
            let mut prefix = vec![u32::MAX - 9];
            for &n in &lengths {
                prefix.push(prefix[prefix.len() - 1].wrapping_add(n));
            }
            let prefix = self.upload(&prefix)?;
            // Counters do not start at 0, since the kernel must add to them.
            let mut counts: Vec<u64> = (0..input.combinations())
                .map(|_| u64::from(self.random.below(2)) << 31)
                .collect();
            let counts_at = self.upload(&counts)?;
            let missed = self.zeros(4)?;
            let p = params::GroupAddParams {
                by: input.params(),
                tested: input.tested,
                prefix: if lists { prefix.at() } else { 0 },
                counts: counts_at.at(),
                missed: missed.at(),
                rows,
                columns: columns as u32,
            };
            let mut bytes = 4 * (columns + tests) as u64 * u64::from(rows);
            let mut outside = 0;
            for (row, &length) in lengths.iter().enumerate() {
                match input.number(row) {
                    Some(n) => {
                        counts[n as usize] += if lists { u64::from(length) } else { 1 };
                        bytes += if lists { 8 } else { 0 };
                    }
                    None => outside = 1,
                }
            }
            self.launch(Kernel::GroupAdd, u64::from(rows), &p, bytes)?;
            if counts_at.read::<u64>(counts.len())? != counts {
                return Err(wrong("jd_group_add: wrong counters"));
            }
            if missed.read::<u32>(1)? != [outside] {
                return Err(wrong("jd_group_add: ids without a number are not reported"));
            }
        }
        Ok(())
    }

    fn group_bests(&mut self, rows: u32) -> Result<()> {
        for (columns, tests, lists, strings) in [
            (1, 0, false, false),
            (2, 1, true, false),
            (0, 0, true, false),
            (1, 0, false, true),
        ] {
            let input = self.group_input(rows, columns, tests, false)?;
            let lengths: Vec<u32> = (0..rows).map(|_| self.random.below(3)).collect();
            let mut prefix = vec![u32::MAX - 9];
            for &n in &lengths {
                prefix.push(prefix[prefix.len() - 1].wrapping_add(n));
            }
            // One page of ids has numbers, and some of these are equal.
            let ranks: Vec<u32> = (0..1 << RANK_SHIFT)
                .map(|_| self.random.below(400))
                .collect();
            let value = |r: &mut super::XorShift| match r.below(60) {
                0 if strings => r.below(1 << RANK_SHIFT),
                _ => (1 << RANK_SHIFT) + r.below(1 << RANK_SHIFT),
            };
            let values: Vec<u32> = (0..rows).map(|_| value(&mut self.random)).collect();
            let (prefix_at, values_at) = (self.upload(&prefix)?, self.upload(&values)?);
            let (pages_at, ranks_at) = (self.upload(&[NO_KEY, 0])?, self.upload(&ranks)?);
            let size = input.combinations() as usize;
            let (least, most) = (self.zeros(size * 8)?, self.zeros(size * 8)?);
            let unranked = self.zeros(4)?;
            let (mut want, mut without) = (vec![[0u64; 2]; size], 0);
            let mut bytes = (4 * (columns + tests) as u64 + 4) * u64::from(rows);
            for (row, &id) in values.iter().enumerate() {
                let n = input.number(row).unwrap_or(0) as usize;
                bytes += 8 * u64::from(lists);
                if lists && lengths[row] == 0 {
                    continue;
                }
                let Some(place) = id.checked_sub(1 << RANK_SHIFT) else {
                    without = 1;
                    continue;
                };
                bytes += 4;
                let key = u64::from(ranks[place as usize]) << 32 | u64::from(id);
                want[n] = [want[n][0].max(!key), want[n][1].max(key)];
            }
            let p = params::GroupBestParams {
                by: input.params(),
                tested: input.tested,
                prefix: if lists { prefix_at.at() } else { 0 },
                ranks: params::RanksParams {
                    pages: pages_at.at(),
                    ranks: ranks_at.at(),
                    page_count: 2,
                    ..Zeroable::zeroed()
                },
                value: OperandParams::column(values_at.at()),
                least: least.at(),
                most: most.at(),
                unranked: unranked.at(),
                rows,
                columns: columns as u32,
            };
            self.launch(Kernel::GroupBest, u64::from(rows), &p, bytes)?;
            let found = least.read::<u64>(size)?.into_iter();
            let found: Vec<[u64; 2]> = found
                .zip(most.read::<u64>(size)?)
                .map(|(a, b)| [a, b])
                .collect();
            if found != want {
                return Err(wrong("jd_group_best: wrong numbers"));
            }
            if unranked.read::<u32>(1)? != [without] {
                return Err(wrong(
                    "jd_group_best: terms without a rank are not reported",
                ));
            }
            let numbers = self.column(rows, size as u32);
            let numbers_at = self.upload(&numbers)?;
            let (first, last) = (self.room(u64::from(rows))?, self.room(u64::from(rows))?);
            let p = params::GroupEndsParams {
                least: least.at(),
                most: most.at(),
                numbers: numbers_at.at(),
                first: first.at(),
                last: last.at(),
                rows,
                pad: 0,
            };
            self.launch(Kernel::GroupEnds, u64::from(rows), &p, 28 * u64::from(rows))?;
            let ends = |side: usize| -> Vec<u32> {
                let key = |n: &u32| want[*n as usize][side] as u32;
                let ids = numbers.iter().map(key);
                ids.map(|id| if side == 0 { !id } else { id }).collect()
            };
            let n = rows as usize;
            if first.read::<u32>(n)? != ends(0) || last.read::<u32>(n)? != ends(1) {
                return Err(wrong("jd_group_ends: wrong ids"));
            }
        }
        Ok(())
    }

    fn group_slots(&mut self, rows: u32) -> Result<()> {
        for (different, tests, log_slots) in [
            (rows / 4 + 2, 0, 14),
            (3, 2, 6),
            (rows + 5, 0, 7),
            (u32::MAX - 1, 0, 14),
        ] {
            let (left, right) = (self.column(rows, different), self.column(rows, 5));
            let input = self.group_input(rows, 0, tests, false)?;
            let (left_at, right_at) = (self.upload(&left)?, self.upload(&right)?);
            let keys = self.zeros(8 << log_slots)?;
            let (out, full) = (self.room(u64::from(rows))?, self.zeros(4)?);
            let p = params::GroupSlotsParams {
                left: OperandParams::column(left_at.at()),
                right: OperandParams::column(right_at.at()),
                tested: input.tested,
                keys: keys.at(),
                out: out.at(),
                full: full.at(),
                rows,
                log_slots,
            };
            let read = 1 + tests.max(1) as u64;
            let pair = |row: usize| {
                let right = match tests {
                    0 => right[row],
                    _ => input.number(row).unwrap_or(0) as u32,
                };
                (u64::from(left[row]) << 32 | u64::from(right)) + 1
            };
            self.launch(
                Kernel::GroupSlots,
                u64::from(rows),
                &p,
                (4 * read + 4) * u64::from(rows),
            )?;
            let (keys, out) = (
                keys.read::<u64>(1 << log_slots)?,
                out.read::<u32>(rows as usize)?,
            );
            let full = full.read::<u32>(1)?[0] != 0;
            let mut of_pair = BTreeMap::new();
            for (row, &slot) in out.iter().enumerate() {
                if slot == NO_KEY && full {
                    continue;
                }
                let found = keys.get(slot as usize).copied();
                if found != Some(pair(row)) || *of_pair.entry(pair(row)).or_insert(slot) != slot {
                    return Err(wrong(format!(
                        "jd_group_slots: row {row} is in slot {slot}"
                    )));
                }
            }
            let occupied = keys.iter().filter(|&&k| k != 0).count();
            if !full && occupied != of_pair.len() {
                return Err(wrong("jd_group_slots: keys that no row has"));
            }
            if full != (out.contains(&NO_KEY)) {
                return Err(wrong("jd_group_slots: a full table is not reported"));
            }
        }
        Ok(())
    }

    fn group_rows(&mut self, rows: u32) -> Result<()> {
        for begin in [0, 37] {
            let counts: Vec<u64> = (0..begin + rows)
                .map(|_| match self.random.below(3) {
                    0 => 0,
                    1 => u64::from(1 + self.random.below(9)),
                    _ => u64::from(self.random.below(9)) << 32 | 7,
                })
                .collect();
            let counts_at = self.upload(&counts)?;
            let columns = [
                self.room(u64::from(rows))?,
                self.room(u64::from(rows))?,
                self.room(u64::from(rows))?,
            ];
            let counter = self.zeros(4)?;
            let p = params::GroupRowsParams {
                counts: counts_at.at(),
                counter: counter.at(),
                number: columns[0].at(),
                low: columns[1].at(),
                high: columns[2].at(),
                begin,
                rows,
            };
            let kept = counts.iter().enumerate().skip(begin as usize);
            let mut want: Vec<Vec<u32>> = kept
                .filter(|(_, n)| **n != 0)
                .map(|(i, &n)| vec![i as u32, n as u32, (n >> 32) as u32])
                .collect();
            want.sort_unstable();
            let bytes = 8 * u64::from(rows) + 12 * want.len() as u64;
            self.launch(Kernel::GroupRows, u64::from(rows), &p, bytes)?;
            let n = counter.read::<u32>(1)?[0] as usize;
            let got = columns
                .iter()
                .map(|c| c.read::<u32>(n))
                .collect::<Result<Vec<_>>>()?;
            if n != want.len() || sorted_rows(&got) != want {
                return Err(wrong("jd_group_rows: wrong rows"));
            }
        }
        Ok(())
    }

    fn group_keys(&mut self, rows: u32) -> Result<()> {
        let keys: Vec<u64> = (0..500)
            .map(|_| {
                let pair = [self.random.below(3), self.random.below(u32::MAX)];
                (u64::from(pair[0]) << 32 | u64::from(pair[1])) + 1
            })
            .collect();
        let slots = self.column(rows, 500);
        let (keys_at, slots_at) = (self.upload(&keys)?, self.upload(&slots)?);
        let (left, right) = (self.room(u64::from(rows))?, self.room(u64::from(rows))?);
        let p = params::GroupKeysParams {
            keys: keys_at.at(),
            slots: slots_at.at(),
            left: left.at(),
            right: right.at(),
            rows,
            pad: 0,
        };
        self.launch(Kernel::GroupKeys, u64::from(rows), &p, 20 * u64::from(rows))?;
        let pairs = left.read::<u32>(rows as usize)?.into_iter();
        let mut pairs = pairs.zip(right.read::<u32>(rows as usize)?).zip(&slots);
        if pairs.any(|((l, r), &s)| (u64::from(l) << 32 | u64::from(r)) + 1 != keys[s as usize]) {
            return Err(wrong("jd_group_keys: wrong pairs"));
        }
        Ok(())
    }

    fn group_ids(&mut self, rows: u32) -> Result<()> {
        for (columns, tests) in [(1, 0), (3, 2), (0, 3), (2, 1)] {
            let input = self.group_input(rows, columns, tests, false)?;
            let numbers: Vec<u32> = (0..rows as usize)
                .map(|row| input.number(row).map_or(0, |n| n as u32))
                .collect();
            let numbers_at = self.upload(&numbers)?;
            let mut p: params::GroupIdsParams = Zeroable::zeroed();
            (p.by, p.numbers, p.rows) = (input.params(), numbers_at.at(), rows);
            (p.columns, p.tests) = (columns as u32, tests as u32);
            let mut held = Vec::new();
            let all = p.out.iter_mut().take(columns);
            for to in all.chain(p.tested.iter_mut().take(tests)) {
                let at = self.room(u64::from(rows))?;
                *to = at.at();
                held.push(at);
            }
            let bytes = 4 * u64::from(rows) * (1 + columns + tests) as u64;
            self.launch(Kernel::GroupIds, u64::from(rows), &p, bytes)?;
            let bits = input.bits.iter();
            let bits = bits.map(|b| b.iter().map(|&v| u32::from(v != 0)).collect());
            let want: Vec<Vec<u32>> = input.ids.iter().cloned().chain(bits).collect();
            for (want, got) in want.iter().zip(&held) {
                if got.read::<u32>(rows as usize)? != *want {
                    return Err(wrong("jd_group_ids: wrong columns"));
                }
            }
        }
        Ok(())
    }
}
