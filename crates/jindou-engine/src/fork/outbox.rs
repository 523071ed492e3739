//! One worker's news and rows for others, until they are sent.

use super::*;

/// News and rows that one worker has for others.
pub(super) struct Outbox<'p> {
    part: &'p Part,
    /// Rows that went through all steps.
    rows: Columns,
    charge: Charge,
    /// Those that were given already, while they are few.
    known: Option<TupleSet>,
    tuple: Vec<u32>,
    pub(super) completed: Vec<u64>,
    pub(super) spawned: Vec<u64>,
    /// Pages of the start that were worked off.
    pub(super) pages: usize,
    /// Of the first step.
    pub(super) first: crate::options::StepProfile,
    messages: u64,
    bytes: u64,
    given: u64,
    pub(super) time: Duration,
}

impl<'p> Outbox<'p> {
    pub(super) fn new(part: &'p Part) -> Self {
        let width = part.layouts.last().map_or(0, Vec::len);
        Self {
            rows: Columns::default(),
            charge: Charge::new(Holder::Shards, &part.memory),
            known: (part.program.distinct && width > 0).then(|| {
                let share = part.memory.limit() / (KNOWN_SHARE * part.hub.threads as u64);
                TupleSet::new(width, &part.memory.part(share))
            }),
            tuple: Vec::with_capacity(width),
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

    /// True if the coordinator is on another shard.
    fn goes_home(&self) -> bool {
        self.part.shard != self.part.query.home
    }

    pub(super) fn has_news(&self) -> bool {
        !self.completed.is_empty() || self.pages > 0 || self.rows.rows > 0
    }

    /// Tells the coordinator all that is new.
    pub(super) fn tell(&mut self, steps: Vec<StepCounts>, inside: bool) -> Result<()> {
        let first = StepCounts {
            profile: std::mem::take(&mut self.first),
            ..StepCounts::default()
        };
        let counts = Counts {
            steps: std::iter::once(first).chain(steps).collect(),
            messages: std::mem::take(&mut self.messages) + u64::from(self.goes_home()),
            bytes: std::mem::take(&mut self.bytes)
                + u64::from(self.goes_home()) * self.rows.bytes(),
            given: std::mem::take(&mut self.given) + u64::from(self.goes_home()) * self.rows.rows,
            asked: self.part.newly_asked(),
            time: std::mem::take(&mut self.time),
        };
        let report = Report {
            from: self.part.shard,
            completed: std::mem::take(&mut self.completed),
            spawned: std::mem::take(&mut self.spawned),
            rows: std::mem::take(&mut self.rows),
            counts,
        };
        self.charge.set(0)?;
        self.part.report(report, inside)?;
        // The start is worked off when the news of its last page have been told.
        let pages = std::mem::take(&mut self.pages);
        let done = match &mut lock(&self.part.state).start {
            Some(start) => start.did(pages),
            None => None,
        };
        if let Some(number) = done {
            let report = Report {
                from: self.part.shard,
                completed: vec![number],
                ..Report::default()
            };
            self.part.report(report, inside)?;
        }
        Ok(())
    }

    fn push(&mut self, rows: View<'_>) {
        let width = rows.columns.len();
        self.rows.columns.resize_with(width, Vec::new);
        self.rows.rows += rows.rows as u64;
        if self.known.is_none() {
            for (c, to) in self.rows.columns.iter_mut().enumerate() {
                to.extend_from_slice(rows.column(c));
            }
            return;
        }
        for row in 0..rows.rows {
            self.tuple.clear();
            self.tuple.extend((0..width).map(|c| rows.column(c)[row]));
            let new = match self.known.as_mut().map(|known| known.insert(&self.tuple)) {
                Some(Ok((_, new))) => new,
                // A set that could not grow takes no more. Rows that come twice do no harm.
                Some(Err(_)) => {
                    self.known = None;
                    true
                }
                None => true,
            };
            if new {
                for (to, &v) in self.rows.columns.iter_mut().zip(&self.tuple) {
                    to.push(v);
                }
            } else {
                self.rows.rows -= 1;
            }
        }
        if self.known.as_ref().is_some_and(|k| k.len() >= KNOWN) {
            self.known = None;
        }
    }
}

impl Out for Outbox<'_> {
    fn done(&mut self, rows: View<'_>) -> Flow {
        if rows.columns.is_empty() {
            self.rows.rows += rows.rows as u64;
            return Ok(());
        }
        self.push(rows);
        self.charge.set(self.rows.bytes())?;
        if self.rows.rows as usize >= ROWS_A_MESSAGE {
            // Only rows: what they came from is not worked off yet.
            let report = Report {
                from: self.part.shard,
                rows: std::mem::take(&mut self.rows),
                ..Report::default()
            };
            self.messages += u64::from(self.goes_home());
            self.bytes += u64::from(self.goes_home()) * report.rows.bytes();
            self.given += u64::from(self.goes_home()) * report.rows.rows;
            self.charge.set(0)?;
            self.part.report(report, self.part.hub.pool.is_inside())?;
        }
        Ok(())
    }

    fn send(&mut self, shard: u32, step: usize, rows: Columns) -> Flow {
        let number = self.part.hub.number();
        self.spawned.push(number);
        let message = Message::Rows {
            number,
            step: step as u32,
            rows,
        };
        self.messages += 1;
        self.bytes += self.part.post(shard, message)?;
        Ok(())
    }
}
