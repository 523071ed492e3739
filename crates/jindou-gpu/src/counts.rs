//! Numbers of rows that stay on the device: a kernel reads how many rows the step before made, and the host learns it
//! later, for all steps at once.
//!
//! ```text
//! words: checksum | counters, one for each kernel that counts, cleared 256 at a time | states of scans
//!        └── copied back whenever the host waits ──┘
//! ```
//!
//! A table whose rows the device alone knows has a bound instead, by which the next step's memory and grids are sized.
//! Where that is too large, the host asks for the number, and learns all others with it.
//!
//! The bound of an expansion is the longest list times the rows, or what the same steps made in earlier runs and a quarter
//! more. If it is more this time, the step makes nothing, the host sees so when it learns the number, and the run begins
//! again, with waits. Rows leave the device after that.

use crate::backend::Kernel;
use crate::buffer::DeviceBuffer;
use crate::device::Device;
use crate::params::MAX_COLUMNS;
use crate::run::ProgramRun;
use crate::table::DeviceTable;
use jindou_model::{Error, Result};
use std::sync::Arc;

/// Number of counters that are cleared at once.
const COUNTERS: usize = 256;
/// Most counters that a step uses.
const A_STEP: usize = 8;
/// Outputs for which there is room besides a quarter more than there were.
const MORE: u64 = 4096;
/// Words for the states of scans, after the counters.
const STATES: usize = 2048;
/// Words before the counters: the checksum.
const BEFORE: usize = 1;
/// Bytes of host memory for all numbers that are copied back at once.
pub(crate) const NUMBERS: usize = (BEFORE + COUNTERS) * 8;
/// Most rows of a table that the host does not count: to launch as many blocks in vain takes less than to wait.
pub(crate) const UNCOUNTED: u64 = 1 << 22;

/// A number that kernels write, 64 bits wide.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowCount {
    /// Address.
    pub at: u64,
    number: usize,
}

/// The use of the number of a step's outputs.
#[derive(Clone, Copy)]
pub(crate) enum TotalUse {
    /// The host has to know it.
    Number,
    /// Room for them will do: for the most that there can be, if that is known.
    Room(Option<u64>),
}

/// The use of a number once it is known.
enum CountUse {
    /// Rows that a step received.
    Received(usize),
    /// Rows that it made.
    Made(usize),
    /// Bytes that a launch read and wrote for each.
    Bytes(usize, f64, f64),
    /// Rows of the result.
    Result,
    /// Outputs of a step before any test.
    Total(usize),
}

/// Counters on the device, and what the host knows of them.
pub(crate) struct DeviceCounts {
    words: DeviceBuffer,
    /// Counters ever used, and states of the scans.
    used: usize,
    states: usize,
    /// The values of counters when the host last waited, from this number on.
    known: Vec<u64>,
    first_known: usize,
    pending: Vec<(RowCount, u64, CountUse)>,
    /// The most outputs that each step had in earlier runs of such programs; 0 where that is not known.
    expected: Vec<u64>,
    /// The most that each step had in this run.
    pub seen: Vec<u64>,
    /// True once a step had more outputs than there was room for, which ends the run.
    pub overflowed: bool,
    /// True if tables may keep their numbers on the device.
    pub stay: bool,
}

impl DeviceCounts {
    /// Counters that are 0, and so is the checksum.
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

    /// Words of 0 for a scan; `None` if there are not as many.
    pub fn states(&mut self, words: u64) -> Option<u64> {
        let end = self.states as u64 + words;
        if end > STATES as u64 {
            return None;
        }
        let at = self.words.at() + (BEFORE + COUNTERS + self.states) as u64 * 8;
        self.states = end as usize;
        Some(at)
    }

    /// True if the next step could run into the end of the counters.
    fn is_near_end(&self) -> bool {
        self.used % COUNTERS + A_STEP > COUNTERS
    }

    /// Room for as many outputs as a step is expected to have.
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

    /// The value of the present counter, after all work so far.
    pub(crate) fn read_counter(&mut self) -> Result<u32> {
        Ok(self.read_count(self.counter)? as u32)
    }

    /// Copies the counters that the host does not know back and waits, for all kernels so far. Counts that were pending
    /// are made use of.
    pub(crate) fn learn(&mut self) -> Result<()> {
        self.learn_from(false).map(|_| ())
    }

    /// The same with the checksum.
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

    /// True if something waits for a number.
    pub(crate) fn has_pending(&self) -> bool {
        !self.counts.pending.is_empty()
    }

    /// The value of a counter, after all work so far.
    pub(crate) fn read_count(&mut self, count: RowCount) -> Result<u64> {
        self.learn()?;
        Ok(self.counts.known(count).unwrap_or_default())
    }

    /// The table with its number of rows, if the host has learnt it since.
    pub(crate) fn known(&self, mut table: DeviceTable) -> DeviceTable {
        if let Some(n) = table.count.and_then(|c| self.counts.known(c)) {
            table.rows = n.min(u64::from(table.rows)) as u32;
            table.count = None;
        }
        table
    }

    /// The table with its number of rows, which the host asks for if it must.
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

    /// The table as a step that begins with it may have it: with its number of rows if the step wants that, if its bound
    /// is large, or if the counters are used up.
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

    /// Says if a table of at most this many rows may keep its number on the device.
    pub(crate) fn may_stay(&self, rows: u64) -> bool {
        self.counts.stay && rows <= UNCOUNTED
    }

    /// The number of the present step's outputs, which the present counter has, or room for them together with that
    /// counter, so that it may stay on the device: the most that there can be, or what earlier runs had. Should it be
    /// more, the run begins again, so that nothing of it may have left the device by then.
    pub(crate) fn counted_or_bound(&mut self, wanted: TotalUse) -> Result<(u64, Option<RowCount>)> {
        let step = self.queue.step();
        let nothing_left = self.rows == 0 || !self.output.leaves();
        let expected = self.counts.expected(step).filter(|_| nothing_left);
        let room = match wanted {
            TotalUse::Number => None,
            TotalUse::Room(most) => most.into_iter().chain(expected).min(),
        };
        // With as many columns as a table can have, all of them fit twice.
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

    /// Starts a kernel over a table, which reads and writes this many bytes for each of its rows.
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

    /// Counts the rows that a step received.
    pub(crate) fn received(&mut self, step: usize, table: &DeviceTable) {
        self.when_known(table, CountUse::Received(step));
    }

    /// Counts the rows that a step made.
    pub(crate) fn made(&mut self, step: usize, table: &DeviceTable) {
        self.when_known(table, CountUse::Made(step));
    }

    /// Adds bytes for each row of a table to the last launch.
    pub(crate) fn add_row_bytes(&mut self, table: &DeviceTable, read: f64, written: f64) {
        if let Some(launch) = self.queue.last() {
            self.when_known(table, CountUse::Bytes(launch, read, written));
        }
    }

    /// Counts the rows of a result.
    pub(crate) fn results(&mut self, table: &DeviceTable) {
        self.when_known(table, CountUse::Result);
    }
}
