//! The pipeline of one worker.

use super::any::ExpandAny;
use super::check::{Check, Restrict};
use super::expand::Expand;
use super::scan::ScanAll;
use super::{Consumer, Emit, Flow, Plumb, Run, Source};
use crate::batch::{Batch, Charge, View};
use crate::filter::Filters;
use jindou_model::{Error, Result};
use jindou_plan::{Condition, Exploration, FarEnd, GraphRef, PredicateRef, Slot, Step, StepKind};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Rows that an output has room for at first: light queries never touch more.
const FIRST_ROOM: usize = 64;
/// How much larger each batch is than the one before it, from `Run::first_batch` to `Run::batch_rows`.
const FASTER: usize = 4;

/// What a step did, in one worker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StepStats {
    pub rows_in: u64,
    pub rows_out: u64,
    pub time: Duration,
    pub touched: u64,
    pub written: u64,
}

/// Boxed where large: a state of a few hundred bytes, made once a query.
enum Op<'a> {
    Expand(Box<Expand<'a>>),
    Check(Box<Check<'a>>),
    Restrict(Restrict<'a>),
    Any(Box<ExpandAny<'a>>),
    Scan(Box<ScanAll<'a>>),
    Cross(Box<Cross<'a>>),
}

/// A product with a source.
struct Cross<'a> {
    source: Source<'a>,
    to: Option<usize>,
    row: usize,
    place: u64,
    scratch: Vec<u32>,
}

impl Cross<'_> {
    fn fill(&mut self, run: &Run<'_>, input: View<'_>, out: &mut Emit<'_>) -> Result<bool> {
        let (to, index, rows) = out.columns(self.to);
        run.check()?;
        while self.row < input.rows {
            while self.place < self.source.len() {
                let room = to.len() - *rows;
                if room == 0 {
                    return Ok(true);
                }
                let n = self
                    .source
                    .read(self.place, &mut to[*rows..], &mut self.scratch);
                index[*rows..*rows + n].fill(self.row as u32);
                *rows += n;
                self.place += room as u64;
            }
            self.row += 1;
            self.place = 0;
        }
        Ok(false)
    }
}

struct StepState<'a> {
    op: Op<'a>,
    /// (input column, output column) of slots that stay.
    carry: Vec<(usize, usize)>,
    filters: Filters<'a>,
    out: Batch,
    index: Vec<u32>,
    spare: Vec<u32>,
    /// Rows of an output without columns.
    bare: usize,
    /// Rows that are handed on at once.
    pace: usize,
    charge: Charge,
    stats: StepStats,
}

impl<'a> StepState<'a> {
    fn new(step: &'a Step, plumb: &Plumb<'a>, run: &Run<'a>) -> Result<Self> {
        let op = match &step.kind {
            StepKind::Start { .. } => {
                return Err(Error::Internal(
                    "the plan has a start that is not first".into(),
                ));
            }
            StepKind::Expand { to, lists, within } => {
                let to = plumb.output(*to);
                Op::Expand(Box::new(Expand::new(to, lists, within.as_ref(), plumb)?))
            }
            StepKind::Check { list, other } => {
                Op::Check(Box::new(Check::new(list, *other, plumb)?))
            }
            StepKind::Restrict { slot, within } => {
                Op::Restrict(Restrict::new(plumb.column(*slot)?, within, plumb))
            }
            StepKind::ExpandAny {
                anchor,
                direction,
                predicate,
                far,
                graph,
            } => Op::Any(Box::new(ExpandAny::new(
                *anchor, *direction, *predicate, *far, graph, plumb,
            )?)),
            StepKind::ScanAll {
                subject,
                predicate,
                object,
                graph,
            } => Op::Scan(Box::new(ScanAll::new(
                *subject, *predicate, *object, graph, plumb,
            )?)),
            StepKind::Cross { to, source, within } => Op::Cross(Box::new(Cross {
                source: Source::new(source, within.as_ref(), plumb)?,
                to: plumb.output(*to),
                row: 0,
                place: 0,
                scratch: vec![],
            })),
        };
        let carry = plumb
            .output
            .iter()
            .enumerate()
            .filter_map(|(o, s)| Some((plumb.input.iter().position(|i| i == s)?, o)))
            .collect();
        Ok(Self {
            op,
            carry,
            filters: Filters::new(&step.filters, &plumb.output, run)?,
            out: Batch::new(plumb.output.len(), run.budget),
            index: vec![],
            spare: vec![],
            bare: 0,
            pace: run.first_batch,
            charge: Charge::new(run.budget),
            stats: StepStats::default(),
        })
    }

    fn begin(&mut self, input: View<'_>) {
        match &mut self.op {
            Op::Expand(o) => o.begin(input),
            Op::Check(o) => o.begin(input),
            Op::Restrict(o) => o.begin(),
            Op::Any(o) => o.begin(),
            Op::Scan(o) => o.begin(),
            Op::Cross(o) => (o.row, o.place) = (0, 0),
        }
    }

    fn grow(&mut self, room: usize) -> Result<()> {
        if room > self.index.len() {
            self.out.ensure(room)?;
            self.index.resize(room, 0);
            self.spare.resize(room, 0);
        }
        let op = match &self.op {
            Op::Expand(o) => o.bytes(),
            Op::Check(o) => o.bytes(),
            Op::Restrict(_) => 0,
            Op::Any(o) => o.bytes(),
            Op::Scan(o) => o.bytes(),
            Op::Cross(o) => o.source.bytes() + o.scratch.capacity() * 4,
        };
        self.charge.set(self.index.len() * 8 + op)
    }

    /// Appends output rows, gathered and filtered. True if the output is full and the input not done.
    fn fill(&mut self, run: &Run<'_>, input: View<'_>) -> Result<bool> {
        let from = self.out.rows;
        let (batch, index, spare) = (&mut self.out, &mut self.index, &mut self.spare);
        let mut emit = Emit {
            batch,
            index,
            spare,
        };
        let more = match &mut self.op {
            Op::Expand(o) => o.fill(run, input, &mut emit)?,
            Op::Check(o) => o.fill(run, input, &mut emit)?,
            Op::Restrict(o) => o.fill(input, &mut emit),
            Op::Any(o) => o.fill(run, input, &mut emit)?,
            Op::Scan(o) => o.fill(run, input, &mut emit)?,
            Op::Cross(o) => o.fill(run, input, &mut emit)?,
        };
        let rows = self.out.rows;
        if rows > from {
            let index = self.index.get(from..rows).unwrap_or(&[]);
            for &(i, o) in &self.carry {
                self.out.gather(o, from, input.column(i), index);
            }
            self.filters.apply(run, &mut self.out, from)?;
        }
        if self.out.columns.is_empty() {
            self.bare += self.out.rows;
            self.out.rows = 0;
        }
        Ok(more)
    }

    /// The rows of a whole batch when only their number matters and it is cheap to know.
    fn count(&mut self, input: View<'_>) -> bool {
        if self.out.columns.is_empty()
            && self.filters.is_empty()
            && let Op::Expand(o) = &mut self.op
            && let Some(n) = o.count(input)
        {
            self.bare += n;
            return true;
        }
        false
    }

    fn ready(&self) -> usize {
        self.out.rows + self.bare
    }

    fn touched(&self) -> u64 {
        match &self.op {
            Op::Expand(o) => o.touched,
            Op::Check(o) => o.touched,
            Op::Any(o) => o.touched,
            Op::Scan(o) => o.touched,
            Op::Restrict(_) | Op::Cross(_) => 0,
        }
    }
}

/// Calls `f` with every slot that a step binds.
fn binds(kind: &StepKind, f: &mut dyn FnMut(Slot)) {
    let graph_slot = |g: &GraphRef, f: &mut dyn FnMut(Slot)| {
        if let GraphRef::Bind(s, _) = g {
            f(*s);
        }
    };
    match kind {
        StepKind::Start { to, .. } => to.iter().for_each(|s| f(*s)),
        StepKind::Expand { to, lists, .. } => {
            f(*to);
            lists.iter().for_each(|l| graph_slot(&l.graph, f));
        }
        StepKind::Check { list, .. } => graph_slot(&list.graph, f),
        StepKind::Restrict { .. } => {}
        StepKind::ExpandAny {
            predicate,
            far,
            graph,
            ..
        } => {
            if let PredicateRef::Bind(s) = predicate {
                f(*s);
            }
            if let FarEnd::Bind(s) = far {
                f(*s);
            }
            graph_slot(graph, f);
        }
        StepKind::ScanAll {
            subject,
            predicate,
            object,
            graph,
        } => {
            f(*subject);
            f(*object);
            if let PredicateRef::Bind(s) = predicate {
                f(*s);
            }
            graph_slot(graph, f);
        }
        StepKind::Cross { to, .. } => f(*to),
    }
}

/// Slots from here on are the engine's own: row numbers of the rows that an `Apply` works on.
pub(crate) const FIRST_HIDDEN: Slot = 0xFF00;

/// The columns after steps that go on from rows with these columns.
pub(crate) fn layout_after(slots: &[Slot], steps: &[Step]) -> Vec<Slot> {
    steps
        .iter()
        .fold(slots.to_vec(), |before, step| layout(&before, step))
}

/// The columns after a step: what is bound and still needed, by its filters or later.
pub(crate) fn layout(before: &[Slot], step: &Step) -> Vec<Slot> {
    let mut filter_slots = Vec::new();
    for c in &step.filters {
        condition_slots(c, &mut filter_slots);
    }
    let mut out: Vec<Slot> = Vec::with_capacity(before.len() + 3);
    let mut add = |s: Slot| {
        let needed = step.live.contains(&s) || filter_slots.contains(&s) || s >= FIRST_HIDDEN;
        if needed && !out.contains(&s) {
            out.push(s);
        }
    };
    before.iter().copied().for_each(&mut add);
    binds(&step.kind, &mut add);
    out
}

/// Appends the slots that a condition reads.
pub(crate) fn condition_slots(c: &Condition, out: &mut Vec<Slot>) {
    use jindou_plan::Operand;
    match c {
        Condition::Same(a, b) => {
            for o in [a, b] {
                if let Operand::Slot(s) = o {
                    out.push(*s);
                }
            }
        }
        Condition::Compare(s, ..) | Condition::Kind(s, _) | Condition::Bound(s) => out.push(*s),
        Condition::And(list) | Condition::Or(list) => {
            list.iter().for_each(|c| condition_slots(c, out));
        }
        Condition::Not(c) => condition_slots(c, out),
        Condition::General(g) => out.extend(g.variables.iter().map(|v| v.1)),
    }
}

/// One worker's steps.
pub(crate) struct Pipeline<'a> {
    start: Batch,
    /// Rows that are carried to the end before more are taken at once.
    look: usize,
    start_filters: Filters<'a>,
    start_stats: StepStats,
    steps: Vec<StepState<'a>>,
    layouts: Vec<Vec<Slot>>,
    spare: Vec<u32>,
    scratch: Vec<u32>,
}

impl<'a> Pipeline<'a> {
    /// The source of step 0, shared by all workers.
    pub fn source(exploration: &'a Exploration, run: &Run<'a>) -> Result<Source<'a>> {
        let plumb = Plumb {
            snapshot: run.snapshot,
            input: vec![],
            output: vec![],
        };
        match exploration.steps.first().map(|s| &s.kind) {
            Some(StepKind::Start { source, within, .. }) => {
                Source::new(source, within.as_ref(), &plumb)
            }
            _ => Err(Error::Internal(
                "the plan does not begin with a start".into(),
            )),
        }
    }

    pub fn new(exploration: &'a Exploration, run: &Run<'a>) -> Result<Self> {
        let mut layouts: Vec<Vec<Slot>> = Vec::with_capacity(exploration.steps.len());
        let mut steps = Vec::with_capacity(exploration.steps.len());
        let mut start_filters = None;
        for (i, step) in exploration.steps.iter().enumerate() {
            let input = layouts.last().cloned().unwrap_or_default();
            let output = layout(&input, step);
            if i == 0 {
                start_filters = Some(Filters::new(&step.filters, &output, run)?);
            } else {
                let plumb = Plumb {
                    snapshot: run.snapshot,
                    input,
                    output: output.clone(),
                };
                steps.push(StepState::new(step, &plumb, run)?);
            }
            layouts.push(output);
        }
        let Some(start_filters) = start_filters else {
            return Err(Error::Internal("the plan has no steps".into()));
        };
        Ok(Self {
            start: Batch::new(layouts[0].len(), run.budget),
            look: run.first_batch,
            start_filters,
            start_stats: StepStats::default(),
            steps,
            layouts,
            spare: vec![],
            scratch: vec![],
        })
    }

    /// Steps that go on from rows with these columns; there is no start. Slots from [`FIRST_HIDDEN`] on stay whether or
    /// not a step calls them live.
    pub fn after(slots: &[Slot], steps: &'a [Step], run: &Run<'a>) -> Result<Self> {
        let mut layouts = vec![slots.to_vec()];
        let mut states = Vec::with_capacity(steps.len());
        for step in steps {
            let input = layouts.last().cloned().unwrap_or_default();
            let output = layout(&input, step);
            let plumb = Plumb {
                snapshot: run.snapshot,
                input,
                output: output.clone(),
            };
            states.push(StepState::new(step, &plumb, run)?);
            layouts.push(output);
        }
        Ok(Self {
            start: Batch::new(0, run.budget),
            look: run.first_batch,
            start_filters: Filters::new(&[], &[], run)?,
            start_stats: StepStats::default(),
            steps: states,
            layouts,
            spare: vec![],
            scratch: vec![],
        })
    }

    /// Slots of the columns that reach the consumer.
    pub fn layout(&self) -> &[Slot] {
        self.layouts.last().map_or(&[], Vec::as_slice)
    }

    /// Slots after step `at`.
    pub fn layout_after(&self, at: usize) -> &[Slot] {
        self.layouts.get(at).map_or(&[], Vec::as_slice)
    }

    /// Number of steps after the start.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// True if the whole exploration is one scan of everything: then predicates are the morsels.
    pub fn is_scan(&self) -> bool {
        self.layouts.first().is_some_and(Vec::is_empty)
            && matches!(self.steps.first().map(|s| &s.op), Some(Op::Scan(_)))
    }

    /// Limits a scan to some predicates.
    pub fn scan_only(&mut self, predicates: Range<u32>) {
        if let Some(StepState {
            op: Op::Scan(s), ..
        }) = self.steps.first_mut()
        {
            s.only = predicates;
        }
    }

    /// Runs the source's values `from .. to` through steps `.. until` (0 = the start alone).
    pub fn morsel(
        &mut self,
        run: &Run<'_>,
        source: &Source<'_>,
        range: Range<u64>,
        until: usize,
        end: &mut dyn Consumer,
    ) -> Flow {
        let mut at = range.start;
        while at < range.end {
            run.check()?;
            let n = (range.end - at).min(self.look as u64) as usize;
            let clock = run.profile.then(Instant::now);
            let written = if self.start.columns.is_empty() {
                self.spare.resize(n, 0);
                source.read(at, &mut self.spare, &mut self.scratch)
            } else {
                self.start.ensure(n)?;
                source.read(at, &mut self.start.columns[0][..n], &mut self.scratch)
            };
            self.start.rows = written;
            if written > 0 {
                self.start_filters.apply(run, &mut self.start, 0)?;
            }
            self.start_stats.rows_in += n as u64;
            self.start_stats.rows_out += self.start.rows as u64;
            self.start_stats.touched += 4 * n as u64;
            if let Some(c) = clock {
                self.start_stats.time += c.elapsed();
            }
            if self.start.rows > 0 {
                let steps = self.steps.get_mut(..until).unwrap_or(&mut []);
                push(steps, run, self.start.view(), end)?;
            }
            self.look_further(run, 0..until, end)?;
            at += n as u64;
        }
        Ok(())
    }

    /// Runs rows (columns as after step `from`) through steps `from + 1 ..`.
    pub fn rows(
        &mut self,
        run: &Run<'_>,
        rows: View<'_>,
        steps: Range<usize>,
        end: &mut dyn Consumer,
    ) -> Flow {
        push(
            self.steps.get_mut(steps.clone()).unwrap_or(&mut []),
            run,
            rows,
            end,
        )?;
        self.look_further(run, steps, end)
    }

    /// While batches are still small, what there is goes to the end; the next time it is more.
    fn look_further(&mut self, run: &Run<'_>, steps: Range<usize>, end: &mut dyn Consumer) -> Flow {
        if self.look < run.batch_rows {
            self.look = (self.look * FASTER).min(run.batch_rows);
            self.flush(run, steps, end)?;
        }
        Ok(())
    }

    /// Pushes on what steps still hold.
    pub fn flush(&mut self, run: &Run<'_>, steps: Range<usize>, end: &mut dyn Consumer) -> Flow {
        let mut rest = self.steps.get_mut(steps).unwrap_or(&mut []);
        while let Some((step, after)) = rest.split_first_mut() {
            hand_on(step, after, run, end)?;
            rest = after;
        }
        Ok(())
    }

    /// Forgets the rows that steps still hold.
    pub fn clear(&mut self) {
        for step in &mut self.steps {
            step.out.rows = 0;
            step.bare = 0;
        }
    }

    /// What each step did, the start first.
    pub fn stats(&self) -> Vec<StepStats> {
        std::iter::once(self.start_stats)
            .chain(self.steps.iter().map(|s| StepStats {
                touched: s.touched(),
                ..s.stats
            }))
            .zip(&self.layouts)
            .map(|(s, columns)| StepStats {
                written: 4 * s.rows_out * columns.len() as u64,
                ..s
            })
            .collect()
    }
}

/// Pushes a batch through steps. Steps keep small outputs until more rows come; see `Pipeline::flush`.
fn push(
    steps: &mut [StepState<'_>],
    run: &Run<'_>,
    input: View<'_>,
    end: &mut dyn Consumer,
) -> Flow {
    let Some((step, rest)) = steps.split_first_mut() else {
        return end.batch(input);
    };
    if input.columns.is_empty() && input.rows > run.batch_rows {
        let mut left = input.rows;
        while left > 0 {
            let rows = left.min(run.batch_rows);
            left -= rows;
            push_one(step, rest, run, View { columns: &[], rows }, end)?;
        }
        return Ok(());
    }
    push_one(step, rest, run, input, end)
}

fn push_one(
    step: &mut StepState<'_>,
    rest: &mut [StepState<'_>],
    run: &Run<'_>,
    input: View<'_>,
    end: &mut dyn Consumer,
) -> Flow {
    let mut cap = 2 * step.pace;
    step.stats.rows_in += input.rows as u64;
    let mut clock = run.profile.then(Instant::now);
    step.begin(input);
    step.grow(cap.min(FIRST_ROOM.max(input.rows)))?;
    if step.count(input) {
        // Counts have no room to fill, but whoever wants few rows must hear of them.
        if step.ready() >= step.pace {
            run.check()?;
            return hand_on(step, rest, run, end);
        }
        return Ok(());
    }
    loop {
        let more = step.fill(run, input)?;
        let full = more && step.out.room() >= cap;
        if full || step.ready() >= step.pace {
            if let Some(c) = clock {
                step.stats.time += c.elapsed();
            }
            run.check()?;
            hand_on(step, rest, run, end)?;
            cap = 2 * step.pace;
            clock = run.profile.then(Instant::now);
        } else if more {
            step.grow(cap.min(step.out.room() * 4))?;
        }
        if !more {
            break;
        }
    }
    if let Some(c) = clock {
        step.stats.time += c.elapsed();
    }
    Ok(())
}

/// Pushes a step's output on and empties it.
fn hand_on(
    step: &mut StepState<'_>,
    rest: &mut [StepState<'_>],
    run: &Run<'_>,
    end: &mut dyn Consumer,
) -> Flow {
    let rows = step.ready();
    if rows == 0 {
        return Ok(());
    }
    step.stats.rows_out += rows as u64;
    step.pace = (step.pace * FASTER).min(run.batch_rows);
    let view = View {
        columns: &step.out.columns,
        rows,
    };
    let flow = push(rest, run, view, end);
    step.out.rows = 0;
    step.bare = 0;
    flow
}
