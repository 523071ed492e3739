//! Row counts that stay on the device: a kernel reads how many rows the previous step produced, and the host reads the
//! counts of all steps together later.
//!
//! ```text
//! words: checksum | counters, one per counting kernel, cleared 256 at a time | states of prefix sums
//!        └── copied back whenever the host waits ──┘
//! ```
//!
//! For a table whose row count only the device knows, the host uses an upper bound, which determines the memory and the
//! grids of the next step. If the bound is too large, the host reads the count, and all others with it.
//!
//! The bound of an expansion is the longest list times the rows, or the count of the same step in earlier runs plus a
//! quarter. If the real count exceeds that, the step produces nothing. The host notices when it reads the count and
//! repeats the run, this time waiting for each count. No row leaves the device before that check.

use crate::backend::Kernel;
use crate::buffer::DeviceBuffer;
use crate::device::Device;
use crate::params::MAX_COLUMNS;
use crate::run::ProgramRun;
use crate::table::DeviceTable;
use jindou_model::{Error, Result};
use std::sync::Arc;

/// Number of counters that are cleared together.
const COUNTERS: usize = 256;
/// Largest number of counters that a step uses.
const A_STEP: usize = 8;
/// Number of outputs that are added to the bound from earlier runs, besides a quarter.
const MORE: u64 = 4096;
/// Words after the counters, for the states of prefix sums.
const STATES: usize = 2048;
/// Words before the counters: the checksum.
const BEFORE: usize = 1;
/// Bytes of host memory for all counts that are copied back together.
pub(crate) const NUMBERS: usize = (BEFORE + COUNTERS) * 8;
/// Largest bound for which the host does not read the count. Up to here, launching blocks without work takes less time
/// than waiting.
pub(crate) const UNCOUNTED: u64 = 1 << 22;

/// A 64-bit count that kernels write.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowCount {
    /// Address.
    pub at: u64,
    number: usize,
}

/// Use of the count of a step's outputs.
#[derive(Clone, Copy)]
pub(crate) enum TotalUse {
    /// The host needs the exact count.
    Number,
    /// An upper bound is sufficient; its value, if there is one.
    Room(Option<u64>),
}

/// Use of a count once the host has read it.
enum CountUse {
    /// Rows that a step received.
    Received(usize),
    /// Rows that a step produced.
    Made(usize),
    /// Bytes that a launch read and wrote for each row.
    Bytes(usize, f64, f64),
    /// Rows of the result.
    Result,
    /// Outputs of a step before its conditions are tested.
    Total(usize),
}

/// Counters on the device, and their values as far as the host has read them.
pub(crate) struct DeviceCounts {
    words: DeviceBuffer,
    /// Number of counters used so far, and of words for prefix sums.
    used: usize,
    states: usize,
    /// The values that the host has read, from this counter on.
    known: Vec<u64>,
    first_known: usize,
    pending: Vec<(RowCount, u64, CountUse)>,
    /// Largest output count of each step in earlier runs of similar programs; 0 if unknown.
    expected: Vec<u64>,
    /// Largest output count of each step in this run.
    pub seen: Vec<u64>,
    /// True once a step had more outputs than its bound, which ends the run.
    pub overflowed: bool,
    /// True if tables may keep their row counts on the device.
    pub stay: bool,
}

impl DeviceCounts {
    /// Creates counters and a checksum, all 0.
    pub fn new(device: &Arc<Device>, stay: bool, expected: Vec<u64>, steps: usize) -> Result<Self> {
        let words = DeviceBuffer::new(device, (BEFORE + COUNTERS + STATES) * 8)?;
        words.clear()?;
        Ok(Self {
            words,
            used: 0,
            states: 0,
            known: Vec::new(),
            first_known: 0,
            pending: Vec::new(),
            seen: vec![0; steps],
            expected,
            overflowed: false,
            stay,
        })
    }

    /// Address of the checksum.
    pub fn checksum(&self) -> u64 {
        self.words.at()
    }

    /// Cleared words for a prefix sum; `None` if there are not enough.
    pub fn states(&mut self, words: u64) -> Option<u64> {
        let end = self.states as u64 + words;
        if end > STATES as u64 {
            return None;
        }
        let at = self.words.at() + (BEFORE + COUNTERS + self.states) as u64 * 8;
        self.states = end as usize;
        Some(at)
    }

    /// True if the next step might need more counters than are left.
    fn is_near_end(&self) -> bool {
        self.used % COUNTERS + A_STEP > COUNTERS
    }

    /// The expected upper bound on a step's outputs.
    fn expected(&self, step: usize) -> Option<u64> {
        let most = *self.expected.get(step)?;
        (most > 0).then(|| most + most / 4 + MORE)
    }

    fn saw(&mut self, step: usize, outputs: u64) {
        if let Some(most) = self.seen.get_mut(step) {
            *most = outputs.max(*most);
        }
    }

    fn known(&self, count: RowCount) -> Option<u64> {
        let at = count.number.checked_sub(self.first_known)?;
        self.known.get(at).copied()
    }
}

impl ProgramRun<'_, '_, '_> {
    /// Address of a counter that is 0, for the next kernel.
    pub(crate) fn next_counter(&mut self) -> Result<u64> {
        let place = self.counts.used % COUNTERS;
        if place == 0 && self.counts.used > 0 {
            if !self.counts.pending.is_empty() {
                self.learn()?;
            }
            // All earlier ones have been read, or belong to kernels queued before this.
            let c = &self.counts;
            // SAFETY: the counters lie inside of the words.
            unsafe {
                let at = c.words.at() + BEFORE as u64 * 8;
                self.queue.device.zero(at, COUNTERS * 8)?;
            }
        }
        let number = self.counts.used;
        self.counts.used += 1;
        let at = self.counts.words.at() + (BEFORE + place) as u64 * 8;
        self.counter = RowCount { at, number };
        Ok(at)
    }

    /// Reads the current counter, after all work so far.
    pub(crate) fn read_counter(&mut self) -> Result<u32> {
        Ok(self.read_count(self.counter)? as u32)
    }

    /// Waits for all kernels so far and reads the counters that the host does not know. Processes the pending uses of
    /// counts.
    pub(crate) fn learn(&mut self) -> Result<()> {
        self.learn_from(false).map(|_| ())
    }

    /// As [`Self::learn`]; also reads the checksum.
    pub(crate) fn learn_checksum(&mut self) -> Result<u64> {
        self.learn_from(true)
    }

    fn learn_from(&mut self, checksum: bool) -> Result<u64> {
        let c = &mut self.counts;
        let first = c.used.saturating_sub(1) / COUNTERS * COUNTERS;
        if c.first_known != first {
            (c.first_known, c.known) = (first, Vec::new());
        }
        // What lies before the first unknown counter: known ones, or those and the checksum.
        let before = if checksum { 0 } else { BEFORE + c.known.len() };
        let words = BEFORE + c.used - first - before;
        let from = c.words.at() + before as u64 * 8;
        // SAFETY: words up to the last counter that is used.
        unsafe { self.words.download(0, from, words * 8)? };
        self.wait_for_words()?;
        let c = &mut self.counts;
        let back: &[u64] = bytemuck::cast_slice(&self.words.bytes()[..words * 8]);
        let sum = back.first().copied().unwrap_or_default();
        if checksum {
            c.known = back[BEFORE..].to_vec();
        } else {
            c.known.extend_from_slice(back);
        }
        for (count, most, of) in std::mem::take(&mut self.counts.pending) {
            let n = self.counts.known(count).unwrap_or_default();
            if let CountUse::Total(step) = of {
                self.counts.saw(step, n);
                self.counts.overflowed |= n > most;
            }
            let n = n.min(most);
            match of {
                CountUse::Total(_) => {}
                CountUse::Received(step) => self.queue.rows_of(step, n, 0),
                CountUse::Made(step) => self.queue.rows_of(step, 0, n),
                CountUse::Bytes(launch, read, written) => {
                    let n = n as f64;
                    self.queue.add_bytes_to(launch, n * read, n * written);
                }
                CountUse::Result => self.rows += n,
            }
        }
        if self.counts.overflowed {
            return Err(Error::Internal("more rows than expected".into()));
        }
        Ok(sum)
    }

    /// True if a use of a count is pending.
    pub(crate) fn has_pending(&self) -> bool {
        !self.counts.pending.is_empty()
    }

    /// Reads a count, after all work so far.
    pub(crate) fn read_count(&mut self, count: RowCount) -> Result<u64> {
        self.learn()?;
        Ok(self.counts.known(count).unwrap_or_default())
    }

    /// The table with its exact row count, if the host has read it since.
    pub(crate) fn known(&self, mut table: DeviceTable) -> DeviceTable {
        if let Some(n) = table.count.and_then(|c| self.counts.known(c)) {
            table.rows = n.min(u64::from(table.rows)) as u32;
            table.count = None;
        }
        table
    }

    /// The table with its exact row count, which is read if necessary.
    pub(crate) fn settled(&mut self, table: DeviceTable) -> Result<DeviceTable> {
        let table = self.known(table);
        match table.count {
            None => Ok(table),
            Some(_) => {
                self.learn()?;
                Ok(self.known(table))
            }
        }
    }

    /// Prepares a table for a step that begins with it: reads the exact row count if the step needs it, if the bound is
    /// large, or if the counters are used up.
    pub(crate) fn before_step(
        &mut self,
        table: DeviceTable,
        is_wanted: bool,
    ) -> Result<DeviceTable> {
        let table = self.known(table);
        if self.counts.is_near_end() {
            let table = self.settled(table)?;
            self.counts.used = self.counts.used.next_multiple_of(COUNTERS);
            return Ok(table);
        }
        let bytes = u64::from(table.rows) * 4 * (table.columns.len() as u64 + 1);
        if is_wanted || bytes > self.memory.left() / 8 {
            return self.settled(table);
        }
        Ok(table)
    }

    /// True if a table of at most this many rows may keep its row count on the device.
    pub(crate) fn may_stay(&self, rows: u64) -> bool {
        self.counts.stay && rows <= UNCOUNTED
    }

    /// The exact output count of the current step, read from the current counter; or an upper bound with that counter,
    /// so that the count stays on the device. The bound is the possible maximum, or comes from earlier runs. If the
    /// bound turns out to be too small, the run is repeated, so no row may have left the device by then.
    pub(crate) fn counted_or_bound(&mut self, wanted: TotalUse) -> Result<(u64, Option<RowCount>)> {
        let step = self.queue.step();
        let nothing_left = self.rows == 0 || !self.output.leaves();
        let expected = self.counts.expected(step).filter(|_| nothing_left);
        let room = match wanted {
            TotalUse::Number => None,
            TotalUse::Room(most) => most.into_iter().chain(expected).min(),
        };
        // Two tables of that size, with the largest number of columns, must fit.
        let fits = |&m: &u64| self.may_stay(m) && m * 8 * MAX_COLUMNS as u64 <= self.memory.left();
        let count = self.counter;
        if let Some(room) = room.filter(fits) {
            self.counts
                .pending
                .push((count, room, CountUse::Total(step)));
            return Ok((room, Some(count)));
        }
        let outputs = self.read_count(count)?;
        self.counts.saw(step, outputs);
        Ok((outputs, None))
    }

    /// Launches a kernel over a table, which reads and writes this many bytes for each row.
    ///
    /// # Safety
    /// As [`crate::Backend::launch`].
    pub(crate) unsafe fn launch_over<P: bytemuck::NoUninit>(
        &mut self,
        kernel: Kernel,
        table: &DeviceTable,
        params: &P,
        (read, written): (f64, f64),
    ) -> Result<()> {
        let units = u64::from(table.rows);
        // SAFETY: the caller's promise.
        unsafe { self.queue.launch(kernel, units, params, 0.0, 0.0)? };
        self.add_row_bytes(table, read, written);
        Ok(())
    }

    fn when_known(&mut self, table: &DeviceTable, of: CountUse) {
        match table.count {
            Some(count) => self.counts.pending.push((count, u64::from(table.rows), of)),
            None => {
                let n = u64::from(table.rows);
                match of {
                    CountUse::Received(step) => self.queue.rows_of(step, n, 0),
                    CountUse::Made(step) => self.queue.rows_of(step, 0, n),
                    CountUse::Bytes(launch, read, written) => {
                        let n = n as f64;
                        self.queue.add_bytes_to(launch, n * read, n * written);
                    }
                    CountUse::Result => self.rows += n,
                    CountUse::Total(_) => {}
                }
            }
        }
    }

    /// Records the rows that a step received.
    pub(crate) fn received(&mut self, step: usize, table: &DeviceTable) {
        self.when_known(table, CountUse::Received(step));
    }

    /// Records the rows that a step produced.
    pub(crate) fn made(&mut self, step: usize, table: &DeviceTable) {
        self.when_known(table, CountUse::Made(step));
    }

    /// Adds bytes for each row of a table to the last launch.
    pub(crate) fn add_row_bytes(&mut self, table: &DeviceTable, read: f64, written: f64) {
        if let Some(launch) = self.queue.last() {
            self.when_known(table, CountUse::Bytes(launch, read, written));
        }
    }

    /// Records the rows of a result.
    pub(crate) fn results(&mut self, table: &DeviceTable) {
        self.when_known(table, CountUse::Result);
    }
}
