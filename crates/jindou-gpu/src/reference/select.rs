//! Checks of the kernels that find the first rows in an order.

use super::{Checker, wrong};
use crate::backend::Kernel;
use crate::params::{self, BIN_BITS, BINS, NO_KEY, OperandParams, RANK_SHIFT, SortState};
use bytemuck::Zeroable;
use jindou_dictionary::NAN_RANK;
use jindou_model::{FIRST_TAIL_ID, Result};

/// Number of ids in a page of ranks.
const PAGE: u32 = 1 << RANK_SHIFT;

impl Checker {
    pub(super) fn first_rows(&mut self, rows: u32) -> Result<()> {
        self.sort_keys(rows)?;
        self.sort_picks(rows)
    }

    fn sort_keys(&mut self, rows: u32) -> Result<()> {
        for (descending, last) in [(false, 300), (true, 300), (true, 1)] {
            let (mut table, mut ranks): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
            for page in 0..5 {
                if page % 2 == 1 {
                    table.push(NO_KEY);
                    continue;
                }
                table.push(ranks.len() as u32 / PAGE);
                ranks.extend((0..PAGE).map(|_| match self.random.below(8) {
                    0 => NO_KEY,
                    1 => NAN_RANK,
                    _ => self.random.below(last),
                }));
            }
            let id = |r: &mut super::XorShift| match r.below(9) {
                0 => FIRST_TAIL_ID + r.below(50),
                _ => r.below(5 * PAGE + 100),
            };
            let ids: Vec<u32> = (0..rows).map(|_| id(&mut self.random)).collect();
            let page = |id: u32| table.get((id / PAGE) as usize).copied().unwrap_or(NO_KEY);
            let key = |&id: &u32| {
                let rank = match page(id) {
                    NO_KEY => NO_KEY,
                    p => ranks[(p * PAGE + id % PAGE) as usize],
                };
                match (rank, descending) {
                    (NO_KEY, _) => NO_KEY,
                    (rank, false) => rank.min(last),
                    (rank, true) => last - rank.min(last),
                }
            };
            let want: Vec<u32> = ids.iter().map(key).collect();
            let looked = ids.iter().filter(|&&id| page(id) != NO_KEY).count() as u64;
            let (page_at, rank_at) = (self.upload(&table)?, self.upload(&ranks)?);
            let (column, out) = (self.upload(&ids)?, self.room(u64::from(rows))?);
            let p = params::SortKeysParams {
                ranks: params::RanksParams {
                    pages: page_at.at(),
                    ranks: rank_at.at(),
                    page_count: table.len() as u32,
                    ..Zeroable::zeroed()
                },
                operand: OperandParams::column(column.at()),
                out: out.at(),
                rows,
                last,
                descending: u32::from(descending),
                pad: 0,
            };
            let bytes = 8 * u64::from(rows) + 4 * looked;
            self.launch(Kernel::SortKeys, u64::from(rows), &p, bytes)?;
            if out.read::<u32>(rows as usize)? != want {
                return Err(wrong("jd_sort_keys: wrong keys"));
            }
        }
        Ok(())
    }

    /// Checks the radix search over keys, with a bound from an earlier table, and which rows are then kept.
    fn sort_picks(&mut self, rows: u32) -> Result<()> {
        for (bits, most, bound, unranked) in [
            (5, rows / 3 + 1, NO_KEY, 9),
            (11, 1, NO_KEY, 3),
            (20, rows / 9 + 1, 1 << 19, 4),
            (23, 5, NO_KEY, 50),
            // From here on, the digits are spread over all threads.
            (11, rows / 5 * 3 + 1, NO_KEY, 9),
            (22, rows / 3 * 2 + 1, NO_KEY, 40),
            (12, rows, NO_KEY, 2),
            (20, 1 + rows / 2, 7000, 1000),
        ] {
            let key = |r: &mut super::XorShift| match r.below(unranked) {
                0 => NO_KEY,
                // Some keys are small, so that digits repeat.
                1 => r.below(40),
                _ => r.below(1 << bits),
            };
            let keys: Vec<u32> = (0..rows).map(|_| key(&mut self.random)).collect();
            let keys_at = self.upload(&keys)?;
            let state = SortState {
                threshold: bound,
                prefix: 0,
                wanted: most,
                pad: 0,
                bins: [0; BINS as usize],
            };
            let state_at = self.upload(bytemuck::bytes_of(&state))?;
            let mut sorted: Vec<u32> = keys
                .iter()
                .copied()
                .filter(|&k| k != NO_KEY && k <= bound)
                .collect();
            sorted.sort_unstable();
            let found = sorted.get(most as usize - 1).copied().unwrap_or(bound);
            let threshold = found.min(bound);
            for digit in (0..u32::div_ceil(bits, BIN_BITS)).rev() {
                let p = params::SortBinsParams {
                    keys: keys_at.at(),
                    state: state_at.at(),
                    rows,
                    shift: digit * BIN_BITS,
                };
                self.launch(Kernel::SortBins, u64::from(rows), &p, 4 * u64::from(rows))?;
                let p = params::SortPickParams {
                    state: state_at.at(),
                    last: u32::from(digit == 0),
                    most,
                };
                let lowered = 4 * u64::from(digit == 0 && threshold < bound);
                let bytes = 4 * u64::from(BINS) + 8 + lowered;
                self.launch(Kernel::SortPick, 1, &p, bytes)?;
            }
            let after: SortState =
                bytemuck::pod_read_unaligned(&state_at.read::<u8>(size_of::<SortState>())?);
            if after.threshold != threshold {
                return Err(wrong(format!(
                    "jd_sort_pick: {} is the bound, not {threshold}",
                    after.threshold
                )));
            }
            if (after.prefix, after.wanted) != (0, most) || after.bins.iter().any(|&n| n != 0) {
                return Err(wrong("jd_sort_pick: not ready for the next table"));
            }
            let carried = self.carried(vec![keys.clone()], u64::from(rows))?;
            let keys_of = carried.at(0);
            self.compacts(
                Kernel::SortKeep,
                &carried,
                rows,
                |i| keys[i] == NO_KEY || keys[i] <= threshold,
                4 * u64::from(rows),
                |compact| params::SortKeepParams {
                    compact,
                    keys: keys_of,
                    state: state_at.at(),
                },
            )?;
        }
        Ok(())
    }
}
