//! GROUP BY and COUNT on the device: the device counts the rows of each distinct combination of values, which is copied
//! back once with its count, and the engine's aggregates continue from there.

use crate::compile::{GroupPlan, WantedRows, number_share};
use crate::execute::{GpuExecutor, GpuOptions, GpuResult, ResultUse};
use crate::steps::{GROUP_GROWTH, ReduceOptions};
use crate::turns::DeviceTurn;
use jindou_engine::{GroupedRows, Sink};
use jindou_graph::Graph;
use jindou_model::{Error, Result};
use jindou_plan::Slot;
use std::time::Instant;

/// Number of rows in a block that is passed to the sink.
const ROWS: usize = 1 << 16;

/// Where the values of a column for the sink come from.
enum Source {
    /// The device's column with this number.
    Column(usize),
    /// This id in all rows.
    Id(u32),
    /// The smallest value in all rows of a combination but the last, which has the largest value, so that MIN and MAX
    /// see both.
    Best,
}

/// Converts the device's rows for the sink: to the columns that it expects, in its order, and a 32-bit count. A count
/// beyond 32 bits becomes several rows.
struct GroupRows<'s> {
    columns: Vec<Source>,
    /// Numbers of the device's columns with the low and high words of the counts.
    words: [usize; 2],
    /// Numbers of the device's columns that hold each group's smallest and largest value.
    best: Option<[usize; 2]>,
    chunk: Vec<Vec<u32>>,
    sink: &'s mut dyn Sink,
}

impl<'s> GroupRows<'s> {
    fn new(plan: &GroupPlan, slots: &[Slot], sink: &'s mut dyn Sink) -> Self {
        let output = plan.output();
        let best = plan.best.as_ref().map(|b| b.0);
        let column = |slot: &Slot| match output.iter().position(|s| s == slot) {
            Some(place) => Source::Column(place),
            None if best == Some(*slot) => Source::Best,
            // Only whether the column is bound matters, so 1 stands for any id.
            None => Source::Id(u32::from(plan.sure.contains(slot))),
        };
        Self {
            columns: slots.iter().map(column).collect(),
            words: [output.len() - 2, output.len() - 1],
            best: best.map(|_| [output.len() - 4, output.len() - 3]),
            chunk: vec![Vec::with_capacity(ROWS); slots.len() + 1],
            sink,
        }
    }

    fn take(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        let broken = || Error::Internal("columns of groups that were not asked for".into());
        let [low, high] = self.words.map(|w| columns.get(w).copied());
        let (low, high) = (low.ok_or_else(broken)?, high.ok_or_else(broken)?);
        for row in 0..rows {
            let number = |words: &[u32]| words.get(row).copied().ok_or_else(broken);
            let column = |c: usize| number(columns.get(c).copied().ok_or_else(broken)?);
            let mut left = u64::from(number(high)?) << 32 | u64::from(number(low)?);
            let (first, last) = match self.best {
                None => (0, 0),
                Some([first, last]) => (column(first)?, column(last)?),
            };
            while left > 0 {
                let is_last = self.best.is_some() && left == 1;
                let most = left - u64::from(self.best.is_some() && !is_last);
                let times = u32::try_from(most).unwrap_or(u32::MAX);
                left -= u64::from(times);
                let Some((counts, ids)) = self.chunk.split_last_mut() else {
                    return Err(broken());
                };
                for (to, source) in ids.iter_mut().zip(&self.columns) {
                    to.push(match source {
                        Source::Column(c) => column(*c)?,
                        Source::Id(id) => *id,
                        Source::Best if is_last => last,
                        Source::Best => first,
                    });
                }
                counts.push(times);
                if counts.len() == ROWS {
                    self.flush()?;
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let rows = self.chunk.last().map_or(0, Vec::len);
        if rows > 0 {
            let columns: Vec<&[u32]> = self.chunk.iter().map(Vec::as_slice).collect();
            self.sink.batch(&columns, rows)?;
            self.chunk.iter_mut().for_each(Vec::clear);
        }
        Ok(())
    }
}

impl GpuExecutor {
    /// The same executor with other thresholds for counting by combination, for tests and measurements.
    #[must_use]
    pub fn with_reduction(mut self, options: ReduceOptions) -> Self {
        self.reduction = options;
        self
    }

    /// Counts rows by combination and passes the combinations to the sink. Returns `None`, before the sink has received
    /// any row, if there are too many of them for the memory or the device does not support the plan.
    ///
    /// # Errors
    /// As [`Self::execute`].
    pub(crate) fn grouped(
        &self,
        rows: &GroupedRows<'_>,
        snapshot: &dyn Graph,
        sink: &mut dyn Sink,
        options: &GpuOptions,
    ) -> Result<Option<GpuResult>> {
        let number =
            |slot: &Slot| number_share(rows.input, *slot, snapshot) >= self.reduction.numbers;
        let best = match rows.extremes.as_slice() {
            [one] if number(one) => Some(*one),
            _ => None,
        };
        let mut turn = self.turns.begin(&options.cancel)?;
        for best in best.map(Some).into_iter().chain([None]) {
            let done = self.grouped_by(rows, best, snapshot, sink, options, &mut turn)?;
            match done {
                Grouped::Done(result) => return Ok(Some(result)),
                Grouped::TooMany => return Ok(None),
                Grouped::Unranked => {}
            }
        }
        Ok(None)
    }

    fn grouped_by(
        &self,
        rows: &GroupedRows<'_>,
        best: Option<Slot>,
        snapshot: &dyn Graph,
        sink: &mut dyn Sink,
        options: &GpuOptions,
        turn: &mut DeviceTurn,
    ) -> Result<Grouped> {
        let began = Instant::now();
        let wanted = WantedRows::Groups {
            ids: &rows.ids,
            tested: &rows.tested,
            best,
        };
        let (program, slots) = self.compile_tree(snapshot, rows.input, wanted)?;
        let Some(plan) = &program.groups else {
            return Err(Error::Internal("a GROUP BY without groups".into()));
        };
        plan.log_slots.set(self.reduction.log_slots);
        if options.profile {
            self.device.wait(&options.cancel)?;
        }
        let bring_seconds = began.elapsed().as_secs_f64();
        loop {
            let mut given = GroupRows::new(plan, &rows.slots(), sink);
            let mut take = |columns: &[&[u32]], n: usize| given.take(columns, n);
            let output = ResultUse::Rows(&mut take);
            let done = self.explore(&program, &slots, output, options, turn);
            let (mut result, closed) = match done {
                Ok(done) => done,
                // `Unsupported` is returned before the first row, so the caller can take another way.
                Err(Error::Unsupported(_)) => return Ok(Grouped::TooMany),
                Err(e) => return Err(e),
            };
            if let Some(e) = closed {
                return Err(e);
            }
            if plan.unranked.get() {
                return Ok(Grouped::Unranked);
            }
            if !plan.full.get() {
                given.flush()?;
                result.profile.bring_seconds = bring_seconds;
                return Ok(Grouped::Done(result));
            }
            plan.log_slots.set(plan.log_slots.get() + GROUP_GROWTH);
        }
    }
}

/// The outcome of one attempt to count by combination.
enum Grouped {
    Done(GpuResult),
    /// Too many distinct combinations for the memory.
    TooMany,
    /// MIN or MAX met a value that is not a number, so ranks do not determine it. Without ranks, the attempt can
    /// succeed.
    Unranked,
}
