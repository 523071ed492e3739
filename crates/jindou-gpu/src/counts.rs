//! Row counts that stay on the device: the kernels of a step read from device memory how many rows the previous step
//! produced, and the host reads the counts of all steps together later. This saves a wait per step.
//!
//! ```text
//! words: checksum | counters, one per counting kernel, cleared 256 at a time | states of prefix sums
//!        └── copied back whenever the host waits ──┘
//! ```
//!
//! For a table whose row count is only on the device, the host knows an upper bound. It determines the memory and the
//! grids of the next step. If the bound is too large for that, the host reads all counts so far.
//!
//! The bound of an expansion is the length of the longest list times the number of rows, or the count of the same step
//! in earlier runs plus a quarter. If the real count exceeds the bound, the step produces nothing; the host notices
//! this when it reads the counts, and repeats the run with a wait for each count. No row leaves the device before that
//! check.

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
/// Constant part of the margin that is added to counts of earlier runs (the other part is a quarter).
const MORE: u64 = 4096;
/// Number of 64-bit words after the counters, for the states of prefix sums.
const STATES: usize = 2048;
/// Number of words before the counters: the checksum.
const BEFORE: usize = 1;
/// Bytes of pinned memory into which the checksum and all counters are copied together.
pub(crate) const NUMBERS: usize = (BEFORE + COUNTERS) * 8;
/// Largest bound in rows up to which the count stays on the device. Up to here, launching some blocks without work
/// takes less time than waiting for the count.
pub(crate) const UNCOUNTED: u64 = 1 << 22;

/// A 64-bit counter on the device that a kernel increments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowCount {
    /// Address of the counter.
    pub at: u64,
    number: usize,
}

/// The precision with which a step needs the number of its outputs.
#[derive(Clone, Copy)]
pub(crate) enum TotalUse {
    /// The exact number, on the host.
    Number,
    /// An upper bound is enough, for reserving memory. Contains the largest possible number, if it is known.
    Room(Option<u64>),
}

/// The use of a count once the host has read it. Steps and launches are given by number.
enum CountUse {
    /// Adds the count to the rows that a step received.
    Received(usize),
    /// Adds the count to the rows that a step produced.
    Made(usize),
    /// Adds bytes to a launch, which reads and writes this many per row.
    Bytes(usize, f64, f64),
    /// Adds the count to the rows of the result.
    Result,
    /// Compares the count with the bound on a step's outputs, before conditions are tested.
    Total(usize),
}

/// The counters of one run on the device, and their values as far as the host has read them.
pub(crate) struct DeviceCounts {
    words: DeviceBuffer,
    /// Number of counters used so far, and of words used for prefix sums.
    used: usize,
    states: usize,
    /// The values that the host has read: that of counter `first_known` and those after it.
    known: Vec<u64>,
    first_known: usize,
    pending: Vec<(RowCount, u64, CountUse)>,
    /// Largest output count of each step in earlier runs of similar programs; 0 for an unknown count.
    expected: Vec<u64>,
    /// Largest output count of each step in this run.
    pub seen: Vec<u64>,
    /// True once a step had more outputs than its bound. The run then fails, and is repeated.
    pub overflowed: bool,
    /// True if row counts may stay on the device; false for a run that waits for each count.
    pub stay: bool,
}

impl DeviceCounts {
    /// Creates counters and a checksum, all 0. `expected` as in the field; `steps` is the number of steps.
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

    /// Address of this many cleared words for a prefix sum; `None` if there are not enough left.
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

    /// The bound on a step's outputs by earlier runs; `None` without such runs.
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
    /// Address of the next counter, which is 0.
    pub(crate) fn next_counter(&mut self) -> Result<u64> {
        let place = self.counts.used % COUNTERS;
        if place == 0 && self.counts.used > 0 {
            if !self.counts.pending.is_empty() {
                self.learn()?;
            }
            // The host has read all earlier counters, or only kernels queued before this clearing use them.
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

    /// Waits for the work so far and reads the current counter.
    pub(crate) fn read_counter(&mut self) -> Result<u32> {
        Ok(self.read_count(self.counter)? as u32)
    }

    /// Waits for the work so far, reads the counters that the host does not know, and handles the pending uses of
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
        // Words that are not copied: the counters that are known already, and the checksum unless it is wanted.
        let before = if checksum { 0 } else { BEFORE + c.known.len() };
        let words = BEFORE + c.used - first - before;
        let from = c.words.at() + before as u64 * 8;
        // SAFETY: the range ends at the last counter in use.
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
            self.use_count(of, n.min(most));
        }
        if self.counts.overflowed {
            return Err(Error::Internal("more rows than expected".into()));
        }
        Ok(sum)
    }

    /// True if a count has yet to be read and used.
    pub(crate) fn has_pending(&self) -> bool {
        !self.counts.pending.is_empty()
    }

    /// Waits for the work so far and reads a count.
    pub(crate) fn read_count(&mut self, count: RowCount) -> Result<u64> {
        self.learn()?;
        Ok(self.counts.known(count).unwrap_or_default())
    }

    /// The table with its exact row count, if the host has read that count in the meantime.
    pub(crate) fn known(&self, mut table: DeviceTable) -> DeviceTable {
        if let Some(n) = table.count.and_then(|c| self.counts.known(c)) {
            table.rows = n.min(u64::from(table.rows)) as u32;
            table.count = None;
        }
        table
    }

    /// The table with its exact row count. Waits for it if necessary.
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

    /// Prepares the table that a step begins with. Reads the exact row count if `is_wanted`, if a table of the bound's
    /// size would take much of the memory, or if there are too few counters left.
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

    /// True if the count of a table of at most this many rows may stay on the device.
    pub(crate) fn may_stay(&self, rows: u64) -> bool {
        self.counts.stay && rows <= UNCOUNTED
    }

    /// The number of outputs of the current step, on which the current counter counts: the exact number and `None`, or
    /// an upper bound and the counter, whose value then stays on the device. The bound is the largest possible number,
    /// or comes from earlier runs. If it turns out to be too small, the run is repeated, so bounds from earlier runs
    /// are used only while no row has left the device.
    pub(crate) fn counted_or_bound(&mut self, wanted: TotalUse) -> Result<(u64, Option<RowCount>)> {
        let step = self.queue.step();
        let nothing_left = self.rows == 0 || !self.output.leaves();
        let expected = self.counts.expected(step).filter(|_| nothing_left);
        let room = match wanted {
            TotalUse::Number => None,
            TotalUse::Room(most) => most.into_iter().chain(expected).min(),
        };
        // Two tables of this many rows, with the largest number of columns, must fit in the memory.
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

    /// Launches a kernel over a table, and records that it reads and writes this many bytes for each row.
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
        // SAFETY: guaranteed by the caller.
        unsafe { self.queue.launch(kernel, units, params, 0.0, 0.0)? };
        self.add_row_bytes(table, read, written);
        Ok(())
    }

    fn when_known(&mut self, table: &DeviceTable, of: CountUse) {
        match table.count {
            Some(count) => self.counts.pending.push((count, u64::from(table.rows), of)),
            None => self.use_count(of, u64::from(table.rows)),
        }
    }

    fn use_count(&mut self, of: CountUse, n: u64) {
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

    /// Records the number of rows that a step received, now or once it is known.
    pub(crate) fn received(&mut self, step: usize, table: &DeviceTable) {
        self.when_known(table, CountUse::Received(step));
    }

    /// Records the number of rows that a step produced.
    pub(crate) fn made(&mut self, step: usize, table: &DeviceTable) {
        self.when_known(table, CountUse::Made(step));
    }

    /// Adds bytes for each row of a table to the profile of the last launch.
    pub(crate) fn add_row_bytes(&mut self, table: &DeviceTable, read: f64, written: f64) {
        if let Some(launch) = self.queue.last() {
            self.when_known(table, CountUse::Bytes(launch, read, written));
        }
    }

    /// Adds the rows of a table to the number of result rows.
    pub(crate) fn results(&mut self, table: &DeviceTable) {
        self.when_known(table, CountUse::Result);
    }
}
