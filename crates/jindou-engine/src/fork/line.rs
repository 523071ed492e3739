//! One worker's way through the steps of a part: each step is a pipeline of its own, and before each step the rows
//! whose next edges are on another shard are taken out.

use super::message::{Columns, ShardMode, StepCounts};
use super::route::{
    ByOwner, FarRows, ListsOrRows, ROWS_A_MESSAGE, Route, far_rows, owners, routes,
};
use crate::batch::{Batch, OperatorCharge, View};
use crate::explore::{Consumer, Flow, Pipeline, QueryContext};
use crate::options::StepProfile;
use jindou_graph::shard::Blocks;
use jindou_model::{Error, Holder, Result};
use jindou_plan::{Slot, Step, layout_of};

/// Number of rows that are run through a step at once, where there are this many.
const ENOUGH_ROWS: usize = crate::options::DEFAULT_BATCH_ROWS / 2;

/// Destination of a line's rows.
pub(crate) trait RowDestination {
    /// Takes rows that went through all steps.
    fn done(&mut self, rows: View<'_>) -> Flow;

    /// Takes rows for another shard, which continue at `step`.
    fn send(&mut self, shard: u32, step: usize, rows: Columns) -> Flow;
}

/// Data that all steps of a line share.
struct Common<'a> {
    ctx: QueryContext<'a>,
    own: u32,
    blocks: &'a Blocks,
    steps: &'a [Step],
    layouts: &'a [Vec<Slot>],
}

/// A step with the routing before it.
struct Hop<'a> {
    /// Created when the first rows arrive.
    pipeline: Option<Pipeline<'a>>,
    routes: Vec<Route<'a>>,
    choice: ListsOrRows,
    /// By route, for a batch.
    far: Vec<FarRows>,
    /// Decision for a batch's rows, by the chosen route.
    owners: Vec<u8>,
    sorted: ByOwner,
    /// Rows that stay, until there are enough of them.
    stay: Batch,
    /// By shard: rows waiting for a full message.
    waiting: Vec<Columns>,
    charge: OperatorCharge,
    /// Number of rows that arrived, wherever they went.
    seen: u64,
    sent: u64,
    stayed: u64,
    /// Counts already reported.
    told: StepCounts,
}

/// One worker's steps.
pub(crate) struct StepLine<'a> {
    common: Common<'a>,
    hops: Vec<Hop<'a>>,
}

/// The columns after each step.
pub(crate) fn layouts(steps: &[Step]) -> Vec<Vec<Slot>> {
    let mut all: Vec<Vec<Slot>> = Vec::with_capacity(steps.len());
    for step in steps {
        let before = all.last().map_or(&[][..], Vec::as_slice);
        all.push(layout_of(before, step));
    }
    all
}

impl<'a> StepLine<'a> {
    /// Creates the steps after the first one. A request to another shard takes `round` nanoseconds, and getting a list
    /// from it `list`.
    pub fn new(
        steps: &'a [Step],
        layouts: &'a [Vec<Slot>],
        ctx: QueryContext<'a>,
        mode: ShardMode,
        [round, list]: [f64; 2],
    ) -> Result<Self> {
        let sharded = ctx
            .snapshot
            .as_sharded()
            .ok_or_else(|| Error::Internal("a part of a query for an unsharded store".into()))?;
        let (own, blocks) = (sharded.number(), sharded.blocks());
        let shards = f64::from(blocks.shards());
        let hops = steps.windows(2).zip(layouts);
        let hops = hops.map(|(two, layout)| Hop {
            pipeline: None,
            routes: routes(ctx.snapshot, layout, &two[1]),
            choice: ListsOrRows {
                mode,
                round,
                list,
                expected: two[0].rows / shards,
                elsewhere: 1.0 - 1.0 / shards,
            },
            owners: Vec::new(),
            far: Vec::new(),
            sorted: ByOwner::default(),
            stay: Batch::new(layout.len(), ctx.budget),
            waiting: Vec::new(),
            charge: OperatorCharge::for_holder(Holder::Shards, ctx.budget),
            seen: 0,
            sent: 0,
            stayed: 0,
            told: StepCounts::default(),
        });
        Ok(Self {
            hops: hops.collect(),
            common: Common {
                ctx,
                own,
                blocks,
                steps,
                layouts,
            },
        })
    }

    /// Runs rows that have gone through the steps before `step`, which is not the first.
    pub fn rows(&mut self, step: usize, rows: View<'_>, out: &mut dyn RowDestination) -> Flow {
        let at = step.saturating_sub(1).min(self.hops.len());
        let hops = &mut self.hops[at..];
        // The sender chose this shard: sent on for the same step, the rows might go round in a circle.
        take(hops, &self.common, at, rows, out)
    }

    /// Takes over the first step's rows.
    pub fn after_start<'l>(
        &'l mut self,
        out: &'l mut dyn RowDestination,
    ) -> impl Consumer + use<'l, 'a> {
        LaterSteps {
            hops: &mut self.hops,
            common: &self.common,
            at: 0,
            out,
        }
    }

    /// Passes on all rows that are held back.
    pub fn flush(&mut self, out: &mut dyn RowDestination) -> Flow {
        let common = &self.common;
        let mut rest = self.hops.as_mut_slice();
        let mut at = 0;
        while let Some((hop, after)) = rest.split_first_mut() {
            hop.go(common, at, None, after, out)?;
            if let Some(pipeline) = &mut hop.pipeline {
                let mut rest = LaterSteps {
                    hops: after,
                    common,
                    at: at + 1,
                    out,
                };
                pipeline.flush(&common.ctx, 0..1, &mut rest)?;
            }
            for (shard, rows) in (0..).zip(&mut hop.waiting) {
                if rows.rows > 0 {
                    out.send(shard, at + 1, std::mem::take(rows))?;
                }
            }
            hop.charge.set(0)?;
            rest = after;
            at += 1;
        }
        Ok(())
    }

    /// Counts of each step since the last call, without the first step.
    pub fn news(&mut self) -> Vec<StepCounts> {
        let each = self.hops.iter_mut().map(|hop| {
            let stats = hop
                .pipeline
                .as_ref()
                .and_then(|p| p.stats().get(1).copied());
            let stats = stats.unwrap_or_default();
            let now = StepCounts {
                profile: StepProfile {
                    rows_in: stats.rows_in,
                    rows_out: stats.rows_out,
                    time: stats.time,
                    bytes: stats.touched,
                    written: stats.written,
                },
                sent: hop.sent,
                stayed: hop.stayed,
            };
            let before = std::mem::replace(&mut hop.told, now);
            difference(&now, &before)
        });
        each.collect()
    }
}

fn difference(now: &StepCounts, before: &StepCounts) -> StepCounts {
    let (a, b) = (&now.profile, &before.profile);
    StepCounts {
        profile: StepProfile {
            rows_in: a.rows_in - b.rows_in,
            rows_out: a.rows_out - b.rows_out,
            time: a.time.saturating_sub(b.time),
            bytes: a.bytes - b.bytes,
            written: a.written - b.written,
        },
        sent: now.sent - before.sent,
        stayed: now.stayed - before.stayed,
    }
}

/// The steps after one, which take its rows.
struct LaterSteps<'h, 'a> {
    hops: &'h mut [Hop<'a>],
    common: &'h Common<'a>,
    /// Number of the first of `hops`.
    at: usize,
    out: &'h mut dyn RowDestination,
}

impl Consumer for LaterSteps<'_, '_> {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        feed(self.hops, self.common, self.at, rows, self.out)
    }
}

fn feed<'a>(
    hops: &mut [Hop<'a>],
    common: &Common<'a>,
    at: usize,
    rows: View<'_>,
    out: &mut dyn RowDestination,
) -> Flow {
    let Some((hop, after)) = hops.split_first_mut() else {
        return out.done(rows);
    };
    if !hop.part(common, at, rows, out)? {
        return take(hops, common, at, rows, out);
    }
    if hop.stay.rows < ENOUGH_ROWS {
        return Ok(());
    }
    hop.go(common, at, None, after, out)
}

/// Rows that go through the first step here.
fn take<'a>(
    hops: &mut [Hop<'a>],
    common: &Common<'a>,
    at: usize,
    rows: View<'_>,
    out: &mut dyn RowDestination,
) -> Flow {
    let Some((hop, after)) = hops.split_first_mut() else {
        return out.done(rows);
    };
    if rows.columns.is_empty() || rows.rows >= ENOUGH_ROWS {
        return hop.go(common, at, Some(rows), after, out);
    }
    // A few rows wait for others: the step may ask other shards for lists, once per batch.
    hop.stay.append(rows)?;
    if hop.stay.rows < ENOUGH_ROWS {
        return Ok(());
    }
    hop.go(common, at, None, after, out)
}

impl<'a> Hop<'a> {
    /// Runs rows through the step and passes the results to the steps after it; without rows, those that wait.
    fn go(
        &mut self,
        common: &Common<'a>,
        at: usize,
        rows: Option<View<'_>>,
        after: &mut [Hop<'a>],
        out: &mut dyn RowDestination,
    ) -> Flow {
        let hop = self;
        let waited = rows.is_none();
        let stay = rows.unwrap_or(hop.stay.view());
        if stay.rows == 0 {
            return Ok(());
        }
        let pipeline = match &mut hop.pipeline {
            Some(p) => p,
            none => {
                let layout = &common.layouts[at];
                let step = &common.steps[at + 1..at + 2];
                none.insert(Pipeline::after(layout, step, &common.ctx)?)
            }
        };
        let mut rest = LaterSteps {
            hops: after,
            common,
            at: at + 1,
            out,
        };
        let flow = pipeline.rows(&common.ctx, stay, 0..1, &mut rest);
        if waited {
            hop.stay.rows = 0;
        }
        flow
    }
}

impl Hop<'_> {
    /// Takes out the rows that are sent elsewhere. Returns true if there were any: then the others wait in `stay`.
    fn part(
        &mut self,
        common: &Common<'_>,
        at: usize,
        rows: View<'_>,
        out: &mut dyn RowDestination,
    ) -> Result<bool, crate::explore::Halt> {
        if self.choice.mode == ShardMode::InPlace {
            return Ok(false);
        }
        let (blocks, own) = (common.blocks, common.own);
        let far = |route: &Route<'_>| far_rows(blocks, own, rows, route);
        self.far.clear();
        self.far.extend(self.routes.iter().map(far));
        // Where more rows came than expected, the same number is expected to come again.
        self.seen += rows.rows as u64;
        self.choice.expected = self.choice.expected.max(self.seen as f64);
        let width = rows.columns.len();
        let chosen = match (self.choice.mode, self.routes.len()) {
            (ShardMode::Fork, 1) => Some(0),
            _ => self
                .choice
                .choose(rows.rows, width, &self.routes, &self.far),
        };
        let Some(route) = chosen.and_then(|at| self.routes.get(at)) else {
            let most = self.far.iter().map(|f| f.rows).max();
            self.stayed += most.unwrap_or(0) as u64;
            return Ok(false);
        };
        let far = owners(blocks, own, rows, route.column, &mut self.owners);
        if far == 0 {
            return Ok(false);
        }
        self.sent += far as u64;
        self.waiting
            .resize_with(common.blocks.shards() as usize, Columns::default);
        self.sorted.sort(&self.owners, self.waiting.len())?;
        for (shard, to) in (0..).zip(&mut self.waiting) {
            let index = self.sorted.of_shard(shard);
            if index.is_empty() {
                continue;
            }
            if shard == common.own {
                let kept = self.stay.rows;
                self.stay.ensure((kept + index.len()).next_power_of_two())?;
                for c in 0..rows.columns.len() {
                    self.stay.gather(c, kept, rows.column(c), index);
                }
                self.stay.rows = kept + index.len();
                continue;
            }
            to.gather(rows, index);
            if to.rows as usize >= ROWS_A_MESSAGE {
                // The same number is expected to come again.
                let next = to.empty_alike();
                out.send(shard, at + 1, std::mem::replace(to, next))?;
            }
        }
        let waiting = self.waiting.iter().map(Columns::bytes).sum::<u64>();
        self.charge.set(waiting as usize)?;
        Ok(true)
    }
}
