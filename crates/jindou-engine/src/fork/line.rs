//! One worker's steps of a part. Each step is a pipeline of its own. Before each step, rows whose next edges are on
//! another shard are removed and sent there, where that costs less than requesting the edges.

use super::message::{Columns, ShardMode, StepCounts};
use super::route::{
    ByOwner, FarRows, ListsOrRows, ROWS_A_MESSAGE, Route, far_rows, owners, routes,
};
use crate::batch::{Batch, OperatorCharge, View};
use crate::explore::{Consumer, Flow, Pipeline, QueryContext};
use crate::options::StepProfile;
use jindou_graph::shard::Blocks;
use jindou_model::{Holder, Invariant, Result};
use jindou_plan::{Slot, Step, layout_of};

/// Number of rows that are collected before they are passed through a step together.
const ENOUGH_ROWS: usize = crate::options::DEFAULT_BATCH_ROWS / 2;

/// Receiver of the rows that leave a worker's steps.
pub(crate) trait RowDestination {
    /// Receives rows that have passed all steps.
    fn done(&mut self, rows: View<'_>) -> Flow;

    /// Receives rows for another shard, which passes them through the steps from `step` on.
    fn send(&mut self, shard: u32, step: usize, rows: Columns) -> Flow;
}

/// Data shared by all steps.
struct Common<'a> {
    ctx: QueryContext<'a>,
    own: u32,
    blocks: &'a Blocks,
    steps: &'a [Step],
    layouts: &'a [Vec<Slot>],
}

/// A step, and the choice of the shard for each row before it.
struct Hop<'a> {
    /// The step's pipeline; created when the first rows arrive.
    pipeline: Option<Pipeline<'a>>,
    routes: Vec<Route<'a>>,
    choice: ListsOrRows,
    /// The far rows of a batch: those that would go to another shard, for each route.
    far: Vec<FarRows>,
    /// The shard of each row of a batch, by the chosen route.
    owners: Vec<u8>,
    sorted: ByOwner,
    /// Rows that stay at this shard, collected until there are [`ENOUGH_ROWS`].
    stay: Batch,
    /// Rows collected for a message, by destination shard.
    waiting: Vec<Columns>,
    charge: OperatorCharge,
    /// Number of rows that arrived at the step so far.
    seen: u64,
    sent: u64,
    stayed: u64,
    /// Counts at the last call of [`StepLine::news`].
    told: StepCounts,
}

/// The steps of one worker.
pub(crate) struct StepLine<'a> {
    common: Common<'a>,
    hops: Vec<Hop<'a>>,
}

/// The slots of the columns after each step.
pub(crate) fn layouts(steps: &[Step]) -> Vec<Vec<Slot>> {
    let mut all: Vec<Vec<Slot>> = Vec::with_capacity(steps.len());
    for step in steps {
        let before = all.last().map_or(&[][..], Vec::as_slice);
        all.push(layout_of(before, step));
    }
    all
}

impl<'a> StepLine<'a> {
    /// Creates a worker's steps after the first one. A request to another shard takes `round` nanoseconds, and reading
    /// an edge list from it `list`.
    pub fn new(
        steps: &'a [Step],
        layouts: &'a [Vec<Slot>],
        ctx: QueryContext<'a>,
        mode: ShardMode,
        [round, list]: [f64; 2],
    ) -> Result<Self> {
        let sharded = ctx.snapshot.as_sharded();
        let sharded = sharded.invariant("parts run over a sharded store");
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

    /// Processes rows that have passed the steps before `step`, which is not the first step.
    pub fn rows(&mut self, step: usize, rows: View<'_>, out: &mut dyn RowDestination) -> Flow {
        let at = step.saturating_sub(1).min(self.hops.len());
        let hops = &mut self.hops[at..];
        // Rows are not routed again here: the sender chose this shard, and routing them on for the same step might send
        // them in a circle.
        take(hops, &self.common, at, rows, out)
    }

    /// A consumer for the first step's rows.
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

    /// Processes or sends all buffered rows.
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

    /// Counts of each step, except the first, since the last call of this function.
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

/// The steps after a given one, as a consumer of its rows.
struct LaterSteps<'h, 'a> {
    hops: &'h mut [Hop<'a>],
    common: &'h Common<'a>,
    /// Index of `hops[0]` in [`StepLine::hops`]; its step has this index plus one.
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

/// Passes rows through the first of `hops` at this shard, without routing them.
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
    // Small batches are collected first, since the step may request lists from other shards once per batch.
    hop.stay.append(rows)?;
    if hop.stay.rows < ENOUGH_ROWS {
        return Ok(());
    }
    hop.go(common, at, None, after, out)
}

impl<'a> Hop<'a> {
    /// Passes rows through the step, and the resulting rows to the steps `after` it. Without `rows`, processes the rows
    /// collected in `stay`.
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
    /// Moves each row to the buffer of its shard, by the cheapest route: those of this shard to `stay`. Returns false,
    /// having moved nothing, if all rows are to be processed here.
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
        // If more rows have come than were expected, as many again are expected.
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
        self.sorted.sort(&self.owners, self.waiting.len());
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
                // Allocated for as many rows as were just sent.
                let next = to.empty_alike();
                out.send(shard, at + 1, std::mem::replace(to, next))?;
            }
        }
        let waiting = self.waiting.iter().map(Columns::bytes).sum::<u64>();
        self.charge.set(waiting as usize)?;
        Ok(true)
    }
}
