//! The rows and reports that one worker has buffered.

use super::*;
use crate::fork::beyond::OrderedRuns;
use jindou_graph::TermDecoding;

/// Reports and rows that one worker has not sent yet.
pub(super) struct Outbox<'p> {
    part: &'p QueryPart,
    /// Buffered rows that have passed all steps.
    rows: Columns,
    charge: Charge,
    /// The distinct rows that were sent or counted; `None` if duplicates are sent.
    known: Option<TupleSet>,
    /// If duplicates are counted: the count of each row of `known`, by its position there.
    numbers: Vec<u32>,
    /// Number of rows counted since `known` was last cleared.
    counted: u64,
    /// Memory budget of `known`: this worker's share.
    share: MemoryBudget,
    tuple: Vec<u32>,
    /// Present if the query needs only the first rows in some order.
    sieve: Option<Sieve>,
    terms: TermDecoding<'p>,
    runs: OrderedRuns<'p>,
    /// Number of leading `rows` that have passed the sieve.
    sifted: usize,
    held: u64,
    pub(super) completed: Vec<u64>,
    pub(super) spawned: Vec<u64>,
    /// Number of processed pages of start rows.
    pub(super) pages: usize,
    /// Counts of the first step since the last report.
    pub(super) first: crate::options::StepProfile,
    messages: u64,
    bytes: u64,
    given: u64,
    pub(super) time: Duration,
}

impl<'p> Outbox<'p> {
    pub(super) fn new(part: &'p QueryPart) -> Self {
        let width = part.layouts.last().map_or(0, Vec::len);
        let share = part.memory.limit() / (KNOWN_SHARE * part.hub.threads as u64);
        let share = part.memory.part(share);
        let merges = part.program.repeats != Repeats::Each && width > 0;
        Self {
            rows: Columns::default(),
            charge: Charge::new(Holder::Shards, &part.memory),
            known: merges.then(|| TupleSet::new(width, &share)),
            numbers: Vec::new(),
            counted: 0,
            share,
            tuple: Vec::with_capacity(width),
            sieve: part.sieves.as_ref().filter(|_| !merges).map(Sieves::take),
            terms: part.graph.vocabulary().decoding(),
            runs: OrderedRuns::of_graph(&*part.graph),
            sifted: 0,
            held: 0,
            completed: Vec::new(),
            spawned: Vec::new(),
            pages: 0,
            first: crate::options::StepProfile::default(),
            messages: 0,
            bytes: 0,
            given: 0,
            time: Duration::ZERO,
            part,
        }
    }

    /// Returns true if the coordinator is on another shard, so that rows for it cost traffic.
    fn goes_home(&self) -> bool {
        self.part.shard != self.part.query.home
    }

    pub(super) fn has_news(&self) -> bool {
        !self.completed.is_empty()
            || self.pages > 0
            || self.rows.rows > 0
            || !self.numbers.is_empty()
    }

    /// Reports everything new to the coordinator, with the counts `steps` of the steps after the first.
    pub(super) fn tell(&mut self, steps: Vec<StepCounts>, inside: bool) -> Result<()> {
        self.give_counted()?;
        self.sift();
        let first = StepCounts {
            profile: std::mem::take(&mut self.first),
            ..StepCounts::default()
        };
        let counts = PartCounts {
            steps: std::iter::once(first).chain(steps).collect(),
            messages: std::mem::take(&mut self.messages) + u64::from(self.goes_home()),
            bytes: std::mem::take(&mut self.bytes)
                + u64::from(self.goes_home()) * self.rows.bytes(),
            given: std::mem::take(&mut self.given) + u64::from(self.goes_home()) * self.rows.rows,
            held: std::mem::take(&mut self.held),
            asked: self.part.newly_asked(),
            time: std::mem::take(&mut self.time),
        };
        let report = PartReport {
            from: self.part.shard,
            completed: std::mem::take(&mut self.completed),
            spawned: std::mem::take(&mut self.spawned),
            rows: std::mem::take(&mut self.rows),
            counts,
        };
        self.sifted = 0;
        self.charge.set(0)?;
        self.part.report(report, inside)?;
        // The request for start rows counts as processed when the last page of them was reported.
        let pages = std::mem::take(&mut self.pages);
        let done = match &mut lock(&self.part.state).start {
            Some(start) => start.did(pages),
            None => None,
        };
        if let Some(number) = done {
            let report = PartReport {
                from: self.part.shard,
                completed: vec![number],
                ..PartReport::default()
            };
            self.part.report(report, inside)?;
        }
        Ok(())
    }

    fn counts(&self) -> bool {
        self.part.program.repeats == Repeats::Counted
    }

    /// Adds finished rows that have columns.
    fn push(&mut self, rows: View<'_>) -> Result<()> {
        match &self.known {
            Some(_) if self.counts() => self.count(rows),
            Some(_) => {
                self.push_new(rows);
                Ok(())
            }
            None => {
                self.push_all(rows);
                Ok(())
            }
        }
    }

    /// Adds rows, including duplicates.
    fn push_all(&mut self, rows: View<'_>) {
        let width = rows.columns.len();
        let counts = self.counts();
        let columns = width + usize::from(counts);
        self.rows.columns.resize_with(columns, Vec::new);
        self.rows.rows += rows.rows as u64;
        for (c, to) in self.rows.columns.iter_mut().take(width).enumerate() {
            to.extend_from_slice(rows.column(c));
        }
        if counts && let Some(numbers) = self.rows.columns.last_mut() {
            numbers.resize(numbers.len() + rows.rows, 1);
        }
    }

    /// Adds the rows that were not added before.
    fn push_new(&mut self, rows: View<'_>) {
        let width = rows.columns.len();
        self.rows.columns.resize_with(width, Vec::new);
        for row in 0..rows.rows {
            self.tuple.clear();
            self.tuple.extend((0..width).map(|c| rows.column(c)[row]));
            let new = match self.known.as_mut().map(|known| known.insert(&self.tuple)) {
                Some(Ok((_, new))) => new,
                // The set cannot grow any further. From here on duplicates are sent, which the coordinator accepts.
                Some(Err(_)) => {
                    self.known = None;
                    true
                }
                None => true,
            };
            if new {
                self.rows.rows += 1;
                for (to, &v) in self.rows.columns.iter_mut().zip(&self.tuple) {
                    to.push(v);
                }
            }
        }
        if self.known.as_ref().is_some_and(|k| k.len() >= KNOWN) {
            self.known = None;
        }
    }

    /// Counts rows by their content instead of adding them.
    fn count(&mut self, rows: View<'_>) -> Result<()> {
        let width = rows.columns.len();
        for row in 0..rows.rows {
            self.tuple.clear();
            self.tuple.extend((0..width).map(|c| rows.column(c)[row]));
            let Some(known) = &mut self.known else {
                self.push_one(1);
                continue;
            };
            let full = match known.insert(&self.tuple) {
                Ok((at, _)) => {
                    let at = at as usize;
                    if at >= self.numbers.len() {
                        self.numbers.resize(at + 1, 0);
                    }
                    let number = &mut self.numbers[at];
                    if *number == u32::MAX {
                        *number = 0;
                        self.push_one(u32::MAX);
                    }
                    self.numbers[at] += 1;
                    self.counted += 1;
                    self.numbers.len() >= COUNTED
                }
                // The set cannot grow, and may or may not contain the row. The row is sent by itself; then the counted
                // rows are output, and counting starts again.
                Err(_) => {
                    self.push_one(1);
                    true
                }
            };
            if full {
                self.give_counted()?;
            }
        }
        Ok(())
    }

    /// Adds the row in `tuple` with `number` as its count.
    fn push_one(&mut self, number: u32) {
        self.rows
            .columns
            .resize_with(self.tuple.len() + 1, Vec::new);
        self.rows.rows += 1;
        let values = self.tuple.iter().chain([&number]);
        for (to, &v) in self.rows.columns.iter_mut().zip(values) {
            to.push(v);
        }
    }

    /// Outputs the counted rows and starts counting again; stops counting if that hardly reduced the number of rows.
    fn give_counted(&mut self) -> Result<()> {
        if self.numbers.is_empty() {
            return Ok(());
        }
        let numbers = std::mem::take(&mut self.numbers);
        let counted = std::mem::take(&mut self.counted);
        let width = self.part.layouts.last().map_or(0, Vec::len);
        let Some(known) = self.known.take() else {
            return Ok(());
        };
        for (tuple, &number) in known.tuples().zip(&numbers) {
            // An entry whose insertion failed has count 0.
            if number == 0 {
                continue;
            }
            self.tuple.clear();
            self.tuple.extend_from_slice(tuple);
            self.push_one(number);
            if self.rows.rows as usize >= ROWS_A_MESSAGE {
                self.give()?;
            }
        }
        self.charge.set(self.rows.bytes())?;
        if numbers.len() < COUNTED || counted >= 2 * numbers.len() as u64 {
            drop(known);
            self.known = Some(TupleSet::new(width, &self.share));
        }
        Ok(())
    }

    /// Removes the rows that the query does not need.
    fn sift(&mut self) {
        if let (Some(sieve), Some(all)) = (&mut self.sieve, &self.part.sieves) {
            let terms = (&mut self.terms, &self.runs);
            self.held += sieve.sift(&mut self.rows, self.sifted, terms, all);
            self.sifted = self.rows.rows as usize;
        }
    }

    /// Sends the buffered rows alone. The messages that they result from are reported as processed later.
    fn give(&mut self) -> Result<()> {
        let report = PartReport {
            from: self.part.shard,
            rows: std::mem::take(&mut self.rows),
            ..PartReport::default()
        };
        self.messages += u64::from(self.goes_home());
        self.bytes += u64::from(self.goes_home()) * report.rows.bytes();
        self.given += u64::from(self.goes_home()) * report.rows.rows;
        self.sifted = 0;
        self.charge.set(0)?;
        self.part.report(report, self.part.hub.pool.is_inside())
    }
}

impl Drop for Outbox<'_> {
    fn drop(&mut self) {
        // The next worker to start continues with this sieve and the rows that it remembers.
        if let (Some(sieve), Some(all)) = (self.sieve.take(), &self.part.sieves) {
            all.give_back(sieve);
        }
    }
}

impl RowDestination for Outbox<'_> {
    fn done(&mut self, rows: View<'_>) -> Flow {
        if rows.columns.is_empty() {
            self.rows.rows += rows.rows as u64;
            return Ok(());
        }
        self.push(rows)?;
        self.charge.set(self.rows.bytes())?;
        if self.rows.rows as usize >= self.sifted + ROWS_A_MESSAGE {
            self.sift();
        }
        // Without a sieve, or once all rows have passed it, full messages are sent at once; other rows wait for
        // [`Self::sift`].
        let is_sifted = self.sieve.is_none() || self.sifted == self.rows.rows as usize;
        if is_sifted && self.rows.rows as usize >= ROWS_A_MESSAGE {
            self.give()?;
        }
        Ok(())
    }

    fn send(&mut self, shard: u32, step: usize, rows: Columns) -> Flow {
        let number = self.part.hub.number();
        self.spawned.push(number);
        let message = PartMessage::Rows {
            number,
            step: step as u32,
            rows,
        };
        self.messages += 1;
        self.bytes += self.part.post(shard, message)?;
        Ok(())
    }
}
