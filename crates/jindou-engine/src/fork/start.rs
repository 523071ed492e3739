//! The start rows of an exploration at a shard: those of the data that the shard owns if every shard produces some, or
//! all start rows if only this shard does. Workers get them in pages.

use crate::batch::Batch;
use crate::explore::{Consumer, Halt, Pipeline, QueryContext, StartReader};
use crate::filter::Filters;
use crate::id_test::{IdTest, exact_runs};
use jindou_graph::Graph;
use jindou_model::Result;
use jindou_plan::{Exploration, Slot, StartSource, Step, StepKind};

/// Largest number of ids in a page.
const PAGE: u32 = 1 << 16;

/// The pages of a start that no worker has got yet.
enum StartCursor {
    /// Ranges of ids, `[start, end)`, that the shard owns.
    Runs(Vec<[u32; 2]>),
    /// The shard's keys, from this id on.
    Keys(u32),
    /// All values, from this index on. Their number is `None` until a worker has opened the start
    /// ([`PagedStart::has`]).
    Values(u64, Option<u64>),
    Done,
}

/// The start of an exploration at one shard, divided into pages.
pub(crate) struct PagedStart {
    number: u64,
    cursor: StartCursor,
    source: Option<StartSource>,
    /// Number of pages that workers have got and not reported as processed yet.
    open: usize,
    told: bool,
}

/// One page of the values or keys that an exploration starts from.
pub(crate) enum Page {
    /// Ranges of ids, `[start, end)`.
    Runs(Vec<[u32; 2]>),
    /// Keys that were not tested against the start's condition yet.
    Keys(Vec<u32>),
    /// A range of value indices of a start that one shard produces alone. It may exceed the number of values.
    Values([u64; 2]),
}

/// A start that one shard produces alone, opened by one worker.
pub(crate) struct PagedValues<'a> {
    pipeline: Pipeline<'a>,
    source: StartReader<'a>,
}

impl<'a> PagedValues<'a> {
    /// Opens the start of an exploration that has one step.
    pub fn new(first: &'a Exploration, ctx: &QueryContext<'a>) -> Result<Self> {
        Ok(Self {
            pipeline: Pipeline::new(first, ctx)?,
            source: Pipeline::source(first, ctx),
        })
    }

    /// Upper bound on the number of values.
    pub fn len(&self) -> u64 {
        self.source.len()
    }

    /// Passes the values `from..to` through the first step and its rows to `out`. Returns the number of values and of
    /// rows.
    pub fn give(
        &mut self,
        [from, to]: [u64; 2],
        ctx: &QueryContext<'_>,
        out: &mut dyn Consumer,
    ) -> Result<(u64, u64), Halt> {
        let rows = |p: &Pipeline<'_>| p.stats().first().map_or(0, |s| s.rows_out);
        let to = to.min(self.len());
        let before = rows(&self.pipeline);
        self.pipeline.morsel(ctx, &self.source, from..to, 0, out)?;
        self.pipeline.flush(ctx, 0..0, out)?;
        Ok((to.saturating_sub(from), rows(&self.pipeline) - before))
    }
}

impl PagedStart {
    /// The start of these steps; `alone` if no other shard produces start rows. `number` is that of the request. `None`
    /// if the first step is not a start that this shard can produce.
    pub fn new(graph: &dyn Graph, steps: &[Step], number: u64, alone: bool) -> Option<Self> {
        let StepKind::Start { source, within, .. } = &steps.first()?.kind else {
            return None;
        };
        let sharded = graph.as_sharded()?;
        let cursor = match (source, within) {
            _ if alone => StartCursor::Values(0, None),
            (StartSource::IdFilter, Some(within)) => {
                let runs = exact_runs(within, graph);
                let mut mine = sharded.blocks().parts(sharded.number(), &runs);
                mine.reverse();
                StartCursor::Runs(mine)
            }
            (StartSource::Keys { .. }, _) => StartCursor::Keys(1),
            _ => return None,
        };
        Some(Self {
            number,
            cursor,
            source: Some(source.clone()),
            open: 0,
            told: false,
        })
    }

    /// Returns true while there is another page.
    pub fn has_more(&self) -> bool {
        match self.cursor {
            StartCursor::Done => self.open == 0 && !self.told,
            StartCursor::Values(from, None) => from == 0,
            _ => true,
        }
    }

    /// Sets the total number of values, which the first page's worker knows.
    pub fn has(&mut self, values: u64) {
        if let StartCursor::Values(from, None) = self.cursor {
            self.cursor = if from < values {
                StartCursor::Values(from, Some(values))
            } else {
                StartCursor::Done
            };
        }
    }

    /// The next page, which may be empty; `None` if there is none, at least for now.
    pub fn next(&mut self, graph: &dyn Graph) -> Option<Page> {
        let page = match &mut self.cursor {
            StartCursor::Done => {
                // If the start turned out to have no page at all, one worker gets an empty one, to report the start as
                // processed.
                if self.open > 0 || self.told {
                    return None;
                }
                Page::Keys(Vec::new())
            }
            StartCursor::Values(1.., None) => return None,
            StartCursor::Values(from, all) => {
                let start = *from;
                *from += u64::from(PAGE);
                let end = *from;
                if all.is_some_and(|all| end >= all) {
                    self.cursor = StartCursor::Done;
                }
                Page::Values([start, end])
            }
            StartCursor::Runs(runs) => {
                let (mut page, mut room) = (Vec::new(), PAGE);
                while room > 0
                    && let Some([a, b]) = runs.pop()
                {
                    let end = b.min(a.saturating_add(room));
                    room -= end - a;
                    page.push([a, end]);
                    if end < b {
                        runs.push([end, b]);
                    }
                }
                if page.is_empty() {
                    self.cursor = StartCursor::Done;
                    return self.next(graph);
                }
                Page::Runs(page)
            }
            StartCursor::Keys(from) => {
                let Some(StartSource::Keys {
                    predicate,
                    direction,
                    graph: graphs,
                }) = &self.source
                else {
                    return None;
                };
                let scope = graphs.scope()?;
                let mut keys = Vec::new();
                let edges = graph.edges(*predicate, *direction);
                match edges.sharded()?.own_keys(scope, [*from, PAGE], &mut keys) {
                    Some(next) => *from = next,
                    None => self.cursor = StartCursor::Done,
                }
                Page::Keys(keys)
            }
        };
        self.open += 1;
        Some(page)
    }

    /// Records that this many pages were processed and reported. Returns the number of the request for the start rows
    /// once all pages were, and only the first time.
    pub fn did(&mut self, pages: usize) -> Option<u64> {
        self.open -= pages.min(self.open);
        let all = pages > 0 && self.open == 0 && matches!(self.cursor, StartCursor::Done);
        (all && !std::mem::replace(&mut self.told, true)).then_some(self.number)
    }
}

impl Page {
    /// Passes the page through the first step and its rows to `out`. Returns the number of values and of rows.
    pub fn run(
        self,
        step: &Step,
        layout: &[Slot],
        ctx: &QueryContext<'_>,
        to: &mut dyn Consumer,
    ) -> Result<(u64, u64), Halt> {
        let mut batch = Batch::new(layout.len(), ctx.budget);
        let mut filters = Filters::new(&step.filters, layout, ctx)?;
        let (mut values, mut rows) = (0u64, 0u64);
        // `fill` writes `n` ids to the column, if there is one.
        let mut give = |n: usize, fill: &mut dyn FnMut(&mut [u32])| -> Result<(), Halt> {
            ctx.check()?;
            batch.ensure(n)?;
            batch.rows = n;
            if let Some(column) = batch.columns.first_mut().and_then(|c| c.get_mut(..n)) {
                fill(column);
            }
            filters.apply(ctx, &mut batch, 0)?;
            values += n as u64;
            rows += batch.rows as u64;
            if batch.rows > 0 {
                to.batch(batch.view())?;
            }
            Ok(())
        };
        match self {
            Self::Runs(runs) => {
                let mut left: u64 = runs.iter().map(|r| u64::from(r[1] - r[0])).sum();
                let mut ids = runs.into_iter().flat_map(|[a, b]| a..b);
                while left > 0 {
                    let n = left.min(ctx.batch_rows as u64);
                    left -= n;
                    give(n as usize, &mut |column| {
                        for (to, id) in column.iter_mut().zip(&mut ids) {
                            *to = id;
                        }
                    })?;
                }
            }
            Self::Keys(mut keys) => {
                if let StepKind::Start { within, .. } = &step.kind {
                    let test = IdTest::new(within.as_ref(), ctx.snapshot);
                    let kept = test.retain(&mut keys);
                    keys.truncate(kept);
                }
                for part in keys.chunks(ctx.batch_rows) {
                    give(part.len(), &mut |column| column.copy_from_slice(part))?;
                }
            }
            Self::Values(_) => unreachable!("values are read by `PagedValues`"),
        }
        Ok((values, rows))
    }
}
