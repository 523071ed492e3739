//! Apply: runs a dependent part (OPTIONAL, EXISTS) for a batch of outer rows at once. Each outer row gets a number in a
//! hidden column, which its inner rows keep. At the end, the number tells to which outer row an inner row belongs.

use super::each::EachSpec;
use super::stage::{
    CountedStage, Link, NewWorker, NextStages, StageSpec, StageStats, StageWorker, finish,
    hand_all, hand_on, push,
};
use crate::batch::{Batch, View, gather, pick};
use crate::compile::{LeafSource, OuterRows, PipelineBuilder, StageInput};
use crate::explore::{Consumer, Flow, Halt, QueryContext, StepStats};
use crate::tree::{SlotLayout, with};
use jindou_model::{Error, Resource, Result};
use jindou_plan::{ApplyKind, FIRST_HIDDEN, Slot, operator};

/// How inner rows are joined to their outer rows.
pub(crate) struct Attach {
    /// Number of columns of outer rows.
    width: usize,
    /// For each further output column, the inner column; `None` if inner rows do not have it.
    new: Vec<Option<usize>>,
    /// Outer and inner column of each slot that both rows have, where an inner row's value may differ from its outer
    /// row's.
    both: Vec<(usize, usize)>,
}

impl Attach {
    /// `output` begins with the outer slots. `read` are slots whose value each inner row takes from its outer row.
    pub fn new(outer: &[Slot], inner: &[Slot], output: &[Slot], read: &[Slot]) -> Self {
        let (inner, read) = (SlotLayout::new(inner), SlotLayout::new(read));
        let of = |s: &Slot| inner.position_of(*s);
        Self {
            width: outer.len(),
            new: output.iter().skip(outer.len()).map(of).collect(),
            both: outer
                .iter()
                .enumerate()
                .filter(|(_, s)| read.position_of(**s).is_none())
                .filter_map(|(o, s)| Some((o, of(s)?)))
                .collect(),
        }
    }

    /// Appends inner rows, each joined to the outer row whose number `numbers` gives, except rows whose values
    /// contradict the outer row's. Sets `kept` to 1 for the inner rows that were appended, and to 0 for the others.
    pub fn append(
        &self,
        out: &mut Batch,
        outer: View<'_>,
        numbers: &[u32],
        inner: View<'_>,
        kept: &mut Vec<u8>,
    ) -> Result<()> {
        let (from, n) = (out.rows, inner.rows);
        kept.clear();
        kept.resize(n, 1);
        out.ensure((from + n).next_power_of_two())?;
        for (c, column) in out.columns.iter_mut().enumerate() {
            let column = &mut column[from..from + n];
            match c.checked_sub(self.width) {
                None => pick(outer.column(c), numbers, column),
                Some(at) => match self.new.get(at).copied().flatten() {
                    Some(i) => column.copy_from_slice(inner.column(i)),
                    None => column.fill(0),
                },
            }
        }
        let mut wrong = 0;
        for &(o, i) in &self.both {
            let Some(column) = out.columns.get_mut(o) else {
                continue;
            };
            let cells = column[from..from + n].iter_mut().zip(inner.column(i));
            for ((o, &v), kept) in cells.zip(kept.iter_mut()) {
                if *o == 0 {
                    *o = v;
                } else if v != 0 && v != *o {
                    *kept = 0;
                    wrong += 1;
                }
            }
        }
        out.rows = from + n;
        if wrong > 0 {
            out.retain(from, kept);
        }
        Ok(())
    }
}

/// Appends the outer rows listed in `index` with unbound inner columns. With `mark` (a flag per outer row, and the ids
/// for flags 0 and 1), the last column gets the id for the row's flag.
pub(crate) fn alone(
    out: &mut Batch,
    outer: View<'_>,
    index: &[u32],
    width: usize,
    mark: Option<(&[u8], [u32; 2])>,
) -> Result<()> {
    let (from, n) = (out.rows, index.len());
    if n == 0 {
        return Ok(());
    }
    out.ensure((from + n).next_power_of_two())?;
    for (c, column) in out.columns.iter_mut().enumerate() {
        let column = &mut column[from..from + n];
        if c < width {
            gather(outer.column(c), index, column);
        } else if let Some((flags, values)) = mark {
            for (o, &i) in column.iter_mut().zip(index) {
                let set = flags[i as usize];
                *o = values[usize::from(set == 1)];
            }
        } else {
            column.fill(0);
        }
    }
    out.rows = from + n;
    Ok(())
}

/// Lists the numbers of the outer rows that the apply outputs without an inner row, depending on which were matched.
pub(crate) fn alone_of(kind: ApplyKind, matched: &[u8], out: &mut Vec<u32>) {
    out.clear();
    let numbers = (0u32..).zip(matched);
    match kind {
        ApplyKind::Inner => {}
        ApplyKind::Left | ApplyKind::Anti => {
            out.extend(numbers.filter(|m| *m.1 == 0).map(|m| m.0));
        }
        ApplyKind::Semi => out.extend(numbers.filter(|m| *m.1 == 1).map(|m| m.0)),
        ApplyKind::Mark(_) => out.extend(numbers.map(|m| m.0)),
    }
}

/// Specification of an apply stage.
pub(crate) struct ApplySpec<'a> {
    pub kind: ApplyKind,
    /// The stages of the inner part.
    pub links: Vec<Link<'a>>,
    /// For each leaf at which outer rows enter the inner part: the outer columns it gets (the row number follows), and
    /// the stage that it leads to.
    pub leaves: Vec<(Vec<usize>, StageInput)>,
    /// Column of the row number in inner rows.
    pub number: usize,
    pub attach: Attach,
    /// Numbers of columns of outer rows and of the output.
    pub widths: (usize, usize),
    /// Ids of `false` and `true`, for `ApplyKind::Mark`.
    pub booleans: [u32; 2],
}

impl<'a> PipelineBuilder<'_, 'a> {
    pub(super) fn apply(
        &mut self,
        op: &'a operator::Apply,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        let operator::Apply {
            input,
            inner,
            kind,
            each_row,
        } = op;
        let (kind, input_node) = (*kind, node + 1);
        let inner_node = self.exec.nodes.after(input_node);
        if kind.needs_inner() && inner.is_never() {
            // There are no rows. The slots are those that operators above expect.
            return Ok(op.slots(self.outer_slots()));
        }
        let mut outer = self.op(input, input_node)?;
        if self.open.is_empty() {
            // There are no outer rows, so the inner part is not built: it may read slots that the missing rows would
            // have had.
            return Ok(op.slots_after(outer));
        }
        let booleans = match kind {
            ApplyKind::Mark(to) => {
                outer = self.without(to, outer, node);
                [self.boolean("false")?, self.boolean("true")?]
            }
            _ => [0; 2],
        };
        let output = |inner: &[Slot]| match kind {
            ApplyKind::Inner | ApplyKind::Left => {
                let new = inner.iter().copied().filter(|s| *s < FIRST_HIDDEN);
                with(outer.clone(), new)
            }
            ApplyKind::Semi | ApplyKind::Anti => outer.clone(),
            ApplyKind::Mark(to) => with(outer.clone(), [to]),
        };
        if *each_row || !inner.is_row_wise() {
            let output = output(&inner.layout(&outer));
            let reads = inner
                .outer_slots()
                .into_iter()
                .filter_map(|s| Some((s, outer.iter().position(|o| *o == s)?)))
                .collect();
            let spec = EachSpec {
                kind,
                inner,
                node: inner_node,
                exec: *self.exec,
                outer: outer.clone(),
                output: output.clone(),
                reads,
                booleans,
            };
            self.link(spec, &outer, node);
            return Ok(output);
        }
        let number = self.hidden_slot()?;
        let mut builder = PipelineBuilder {
            outer: OuterRows::Many(outer.clone(), number),
            level: self.level + 1,
            ..PipelineBuilder::new(self.exec)
        };
        let inner_slots = builder.op(inner, inner_node)?;
        let leaves: Vec<(Vec<usize>, StageInput)> = builder
            .leaves
            .into_iter()
            .filter_map(|l| match l.source {
                LeafSource::Outer(columns) => Some((columns, l.first)),
                _ => None,
            })
            .collect();
        // Slots that every inner row takes from its outer row, and from nothing else, cannot contradict the outer row.
        let made = inner.made_slots();
        let read: Vec<Slot> = outer
            .iter()
            .enumerate()
            .filter(|(c, s)| !made.contains(s) && leaves.iter().all(|l| l.0.contains(c)))
            .map(|(_, s)| *s)
            .collect();
        let output = output(&inner_slots);
        let spec = ApplySpec {
            kind,
            links: builder.links,
            leaves,
            // If the inner part has no leaf, there are no inner rows, and this column is not read.
            number: inner_slots.iter().position(|s| *s == number).unwrap_or(0),
            attach: Attach::new(&outer, &inner_slots, &output, &read),
            widths: (outer.len(), output.len()),
            booleans,
        };
        self.link(spec, &outer, node);
        Ok(output)
    }

    /// The hidden slot with the numbers of outer rows, for an apply at this nesting level.
    fn hidden_slot(&self) -> Result<Slot> {
        let slot = FIRST_HIDDEN.checked_add(self.level);
        slot.filter(|_| self.level < 255).ok_or_else(|| {
            Error::limit(
                Resource::Form,
                "the query nests OPTIONAL and EXISTS deeper than 255 levels",
            )
        })
    }
}

impl StageSpec for ApplySpec<'_> {
    fn work<'w>(&'w self, _input: &'w [Slot], ctx: &QueryContext<'w>) -> NewWorker<'w> {
        Ok(Box::new(ApplyStage::new(self, ctx)?))
    }
}

struct ApplyStage<'a> {
    spec: &'a ApplySpec<'a>,
    inner: Vec<CountedStage<'a>>,
    feed: Vec<Batch>,
    matched: Vec<u8>,
    out: Batch,
    index: Vec<u32>,
    kept: Vec<u8>,
}

impl<'a> ApplyStage<'a> {
    fn new(spec: &'a ApplySpec<'a>, ctx: &QueryContext<'a>) -> Result<Self> {
        Ok(Self {
            spec,
            inner: spec
                .links
                .iter()
                .map(|l| CountedStage::new(l, ctx))
                .collect::<Result<_>>()?,
            feed: spec
                .leaves
                .iter()
                .map(|l| Batch::new(l.0.len() + 1, ctx.budget))
                .collect(),
            matched: vec![],
            out: Batch::new(spec.widths.1, ctx.budget),
            index: vec![],
            kept: vec![],
        })
    }
}

impl StageWorker for ApplyStage<'_> {
    fn batch(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        let spec = self.spec;
        self.matched.clear();
        self.matched.resize(rows.rows, 0);
        self.inner.iter_mut().for_each(CountedStage::clear);
        let mut end = CollectInner {
            spec,
            outer: rows,
            matched: &mut self.matched,
            open: rows.rows,
            enough: false,
            out: &mut self.out,
            kept: &mut self.kept,
            ctx,
            rest: &mut *rest,
        };
        match feed(&mut self.inner, &mut self.feed, spec, ctx, rows, &mut end) {
            Err(Halt::Stop) if end.enough => {}
            other => other?,
        }
        let mut index = std::mem::take(&mut self.index);
        alone_of(spec.kind, &self.matched, &mut index);
        let mark = Some((&self.matched[..], spec.booleans))
            .filter(|_| matches!(spec.kind, ApplyKind::Mark(_)));
        alone(&mut self.out, rows, &index, spec.widths.0, mark)?;
        self.index = index;
        hand_on(&mut self.out, ctx, rest)
    }

    fn finish(&mut self, _run: &QueryContext<'_>, rest: &mut NextStages<'_, '_, '_>) -> Flow {
        hand_all(&mut self.out, rest)
    }

    fn clear(&mut self) {
        self.out.rows = 0;
        self.inner.iter_mut().for_each(CountedStage::clear);
    }

    fn inside(&self, each: &mut dyn FnMut(usize, &StageStats, &[StepStats])) {
        for stage in &self.inner {
            stage.inside(each);
        }
    }
}

/// Passes a batch of outer rows through the inner stages.
fn feed(
    inner: &mut [CountedStage<'_>],
    batches: &mut [Batch],
    spec: &ApplySpec<'_>,
    ctx: &QueryContext<'_>,
    rows: View<'_>,
    end: &mut CollectInner<'_, '_, '_>,
) -> Flow {
    for ((columns, first), batch) in spec.leaves.iter().zip(batches) {
        ctx.check()?;
        batch.ensure(rows.rows)?;
        batch.rows = rows.rows;
        if let Some((numbers, cells)) = batch.columns.split_last_mut() {
            for (o, &c) in cells.iter_mut().zip(columns) {
                o[..rows.rows].copy_from_slice(rows.column(c));
            }
            for (o, n) in numbers[..rows.rows].iter_mut().zip(0u32..) {
                *o = n;
            }
        }
        push(inner, 0, *first, ctx, batch.view(), end)?;
    }
    for at in 0..inner.len() {
        finish(inner, at, ctx, end)?;
    }
    Ok(())
}

/// Collects the inner rows of a batch of outer rows.
struct CollectInner<'x, 'r, 'p> {
    spec: &'x ApplySpec<'p>,
    outer: View<'x>,
    matched: &'x mut [u8],
    /// Number of outer rows that have no inner row so far.
    open: usize,
    /// True once every outer row has an inner row and no more are needed.
    enough: bool,
    out: &'x mut Batch,
    kept: &'x mut Vec<u8>,
    ctx: &'x QueryContext<'r>,
    rest: &'x mut dyn Consumer,
}

impl Consumer for CollectInner<'_, '_, '_> {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        let numbers = rows.column(self.spec.number);
        if matches!(self.spec.kind, ApplyKind::Inner | ApplyKind::Left) {
            let outer = self.outer;
            self.spec
                .attach
                .append(self.out, outer, numbers, rows, self.kept)?;
            for (&n, &kept) in numbers.iter().zip(&*self.kept) {
                if let Some(m) = self.matched.get_mut(n as usize) {
                    *m |= kept;
                }
            }
            return hand_on(self.out, self.ctx, self.rest);
        }
        for &n in numbers {
            if let Some(m) = self.matched.get_mut(n as usize) {
                self.open -= usize::from(*m == 0);
                *m = 1;
            }
        }
        if self.open == 0 {
            self.enough = true;
            return Err(Halt::Stop);
        }
        Ok(())
    }
}
