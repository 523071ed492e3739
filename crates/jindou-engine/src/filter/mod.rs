//! Filters on batches of ids. A condition is true, false or an error for a row; rows for which it is true are kept.

mod compare;
mod probed;

use crate::batch::{Batch, OperatorCharge, View};
use crate::eval::EvalContext;
use crate::tree::SlotLayout;
use crate::values::Evaluator;
use compare::IdComparison;
use jindou_dictionary::TermKind;
use jindou_model::scope::worked;
use jindou_model::{FIRST_QUERY_ID, Result, VertexId, term};
use jindou_plan::{Condition, Operand, Slot, TermTest};
use probed::{ProbeRows, Probed};

pub(crate) const FALSE: u8 = 0;
pub(crate) const TRUE: u8 = 1;
pub(crate) const ERROR: u8 = 2;

/// Source of a value. A slot without a column is unbound.
#[derive(Clone, Copy)]
pub(crate) enum ValueSource {
    Column(usize),
    Const(u32),
    Unbound,
}

impl ValueSource {
    pub fn of_slot(slot: Slot, layout: &SlotLayout<'_>) -> Self {
        layout.position_of(slot).map_or(Self::Unbound, Self::Column)
    }

    fn operand(o: Operand, layout: &SlotLayout<'_>) -> Self {
        match o {
            Operand::Const(v) => Self::Const(v),
            Operand::Slot(s) => Self::of_slot(s, layout),
        }
    }

    #[inline]
    pub fn at(self, rows: View<'_>, row: usize) -> u32 {
        match self {
            Self::Column(c) => rows.column(c)[row],
            Self::Const(v) => v,
            Self::Unbound => 0,
        }
    }

    /// Requests the terms of other shards that the wanted rows need: see [`FilterNode::eval`].
    fn prefetch(self, ctx: &EvalContext<'_>, rows: View<'_>, from: usize, out: &[u8]) {
        let wanted = (0..out.len()).filter(|&i| out[i] == TRUE);
        ctx.vocabulary
            .prefetch(wanted.map(|i| self.at(rows, from + i)));
    }
}

enum FilterNode<'a> {
    Same(ValueSource, ValueSource),
    Bound(ValueSource),
    Kind(ValueSource, TermTest),
    Compare(Box<IdComparison<'a>>),
    /// A condition that is put to an index first, and computed for terms that the index does not decide.
    Probed(Box<Probed<'a>>),
    General(Box<Evaluator>),
    Not(Box<FilterNode<'a>>),
    And(Vec<FilterNode<'a>>),
    Or(Vec<FilterNode<'a>>),
}

/// Number of evaluations (rows times conditions) between two checks of the deadline.
const CHECK: usize = 1 << 18;

/// Scratch memory for evaluating a condition and those nested in it. `work` counts evaluations since the last check of
/// the deadline.
struct FilterScratch<'s> {
    space: &'s mut [u8],
    shared: &'s mut SharedScratch,
    work: &'s mut usize,
}

/// Scratch memory that all conditions of a list share, since there may be a hundred thousand conditions.
#[derive(Default)]
struct SharedScratch {
    /// The ids that an index is asked about, and its verdicts.
    probe: ProbeRows,
    /// Canonical bytes of a term.
    bytes: Vec<u8>,
    /// Positions of rows that are computed one by one.
    rest: Vec<usize>,
}

impl SharedScratch {
    /// Bytes for each row of a batch, apart from terms.
    const A_ROW: usize = ProbeRows::A_ROW + size_of::<usize>();
    /// Capacity for terms that is kept for the next batch.
    const KEPT: usize = 1 << 12;

    /// Frees the memory of a long term.
    fn trim(&mut self) {
        if self.bytes.capacity() > Self::KEPT {
            self.bytes = vec![];
        }
    }
}

impl FilterScratch<'_> {
    /// Splits off `n` bytes; nested conditions get the remaining scratch memory.
    fn take(&mut self, n: usize) -> (&mut [u8], FilterScratch<'_>) {
        let (own, space) = self.space.split_at_mut(n);
        let (shared, work) = (&mut *self.shared, &mut *self.work);
        let inside = FilterScratch {
            space,
            shared,
            work,
        };
        (own, inside)
    }
}

impl<'a> FilterNode<'a> {
    fn new(c: &'a Condition, layout: &SlotLayout<'_>, ctx: &EvalContext<'a>) -> Result<Self> {
        /// Work of building a node, in the unit of [`worked`].
        const NODE: usize = 1 << 10;
        worked(NODE)?;
        let all = |list: &'a [Condition]| {
            list.iter()
                .map(|c| Self::new(c, layout, ctx))
                .collect::<Result<Vec<_>>>()
        };
        Ok(match c {
            Condition::Same(a, b) => Self::Same(
                ValueSource::operand(*a, layout),
                ValueSource::operand(*b, layout),
            ),
            Condition::Bound(s) => Self::Bound(ValueSource::of_slot(*s, layout)),
            Condition::Kind(s, test) => Self::Kind(ValueSource::of_slot(*s, layout), *test),
            Condition::Compare(s, relation, right) => {
                // A long number may be compared with many numbers of an index.
                worked(64 * right.len())?;
                let by_value =
                    IdComparison::new(ValueSource::of_slot(*s, layout), *relation, right);
                Probed::over(Self::Compare(Box::new(by_value)), c, layout, ctx)
            }
            Condition::General(g) => {
                let computed = Evaluator::new(g, layout, ctx)?;
                Probed::over(Self::General(Box::new(computed)), c, layout, ctx)
            }
            Condition::Not(c) => Self::Not(Box::new(Self::new(c, layout, ctx)?)),
            Condition::And(list) => Self::And(all(list)?),
            Condition::Or(list) => Self::Or(all(list)?),
        })
    }

    /// Relative cost; costly conditions are evaluated last.
    fn cost(&self) -> u32 {
        match self {
            Self::Same(..) | Self::Bound(_) => 1,
            Self::Kind(..) => 2,
            Self::Probed(_) => 4,
            Self::Compare(_) => 100,
            Self::General(_) => 1000,
            Self::Not(c) => c.cost(),
            Self::And(list) | Self::Or(list) => {
                let costs = list.iter().map(Self::cost);
                costs.fold(0, u32::saturating_add)
            }
        }
    }

    /// Returns true if evaluating it needs [`SharedScratch`].
    fn is_costly(&self) -> bool {
        match self {
            Self::Same(..) | Self::Bound(_) | Self::Kind(..) => false,
            Self::Compare(_) | Self::Probed(_) | Self::General(_) => true,
            Self::Not(c) => c.is_costly(),
            Self::And(list) | Self::Or(list) => list.iter().any(Self::is_costly),
        }
    }

    /// Bytes of [`FilterScratch::space`] that it needs for each row.
    fn scratch(&self) -> usize {
        match self {
            Self::Not(c) => 1 + c.scratch(),
            Self::And(list) | Self::Or(list) => {
                2 + list.iter().map(Self::scratch).max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Evaluates the condition for each row `from + i` whose `out[i]` is `TRUE` on entry (a *wanted* row), and replaces
    /// `out[i]` by the result. Entries of other rows are not changed.
    fn eval(
        &mut self,
        ctx: &EvalContext<'_>,
        rows: View<'_>,
        from: usize,
        out: &mut [u8],
        scratch: &mut FilterScratch<'_>,
    ) -> Result<()> {
        *scratch.work += out.len();
        if *scratch.work >= CHECK {
            *scratch.work = 0;
            ctx.check()?;
        }
        match self {
            Self::Same(a, b) => {
                for (i, o) in out.iter_mut().enumerate().filter(|o| *o.1 == TRUE) {
                    let (x, y) = (a.at(rows, from + i), b.at(rows, from + i));
                    *o = if x == 0 || y == 0 {
                        ERROR
                    } else {
                        u8::from(x == y)
                    };
                }
            }
            Self::Bound(v) => {
                for (i, o) in out.iter_mut().enumerate().filter(|o| *o.1 == TRUE) {
                    *o = u8::from(v.at(rows, from + i) != 0);
                }
            }
            Self::Kind(v, test) => {
                v.prefetch(ctx, rows, from, out);
                for (i, o) in out.iter_mut().enumerate().filter(|o| *o.1 == TRUE) {
                    *o = kind(ctx, v.at(rows, from + i), *test)?;
                }
            }
            Self::Compare(c) => c.eval(ctx, rows, from, out, &mut scratch.shared.bytes)?,
            Self::Probed(p) => p.eval(ctx, rows, from, out, scratch)?,
            Self::General(g) => g.truth(ctx, rows, from, out, &mut scratch.shared.rest)?,
            Self::Not(c) => {
                // Afterwards `out` no longer tells which rows were wanted, so this is copied first.
                let (wanted, mut inside) = scratch.take(out.len());
                wanted.copy_from_slice(out);
                c.eval(ctx, rows, from, out, &mut inside)?;
                for (o, w) in out.iter_mut().zip(wanted) {
                    if *w == TRUE && *o != ERROR {
                        *o ^= 1;
                    }
                }
            }
            Self::And(list) => combine(list, scratch, ctx, rows, from, out, FALSE)?,
            Self::Or(list) => combine(list, scratch, ctx, rows, from, out, TRUE)?,
        }
        Ok(())
    }
}

/// Three-valued AND (`decides` is `FALSE`) or OR (`decides` is `TRUE`): the result of a row is `decides` if a member
/// has that value, otherwise an error if a member is one, otherwise the opposite of `decides`.
fn combine(
    list: &mut [FilterNode<'_>],
    scratch: &mut FilterScratch<'_>,
    ctx: &EvalContext<'_>,
    rows: View<'_>,
    from: usize,
    out: &mut [u8],
    decides: u8,
) -> Result<()> {
    /// Marks a row that the caller does not want.
    const IDLE: u8 = 3;
    let n = out.len();
    let (space, mut inside) = scratch.take(2 * n);
    // The results so far, and the results of one member.
    let (so_far, member) = space.split_at_mut(n);
    for (s, &o) in so_far.iter_mut().zip(&*out) {
        *s = if o == TRUE { decides ^ 1 } else { IDLE };
    }
    for node in list {
        let mut open = 0;
        for (m, s) in member.iter_mut().zip(&*so_far) {
            *m = u8::from(*s != IDLE && *s != decides);
            open |= *m;
        }
        // Every wanted row is decided, so the remaining members cannot change anything.
        if open == 0 {
            break;
        }
        node.eval(ctx, rows, from, member, &mut inside)?;
        for (m, s) in member.iter().zip(so_far.iter_mut()) {
            if *s != IDLE && *s != decides {
                if *m == decides {
                    *s = decides;
                } else if *m == ERROR {
                    *s = ERROR;
                }
            }
        }
    }
    for (o, s) in out.iter_mut().zip(&*so_far) {
        if *s != IDLE {
            *o = *s;
        }
    }
    Ok(())
}

fn kind(ctx: &EvalContext<'_>, id: u32, test: TermTest) -> Result<u8> {
    if id == 0 {
        return Ok(ERROR);
    }
    let kind = term_kind(ctx, id)?;
    Ok(u8::from(match test {
        TermTest::Iri => kind == Some(TermKind::Iri),
        TermTest::Blank => kind == Some(TermKind::Blank),
        TermTest::Literal => kind == Some(TermKind::Literal),
        TermTest::Numeric => is_numeric(ctx, id)?,
    }))
}

/// Canonical bytes of a term that has no value rank, since an update or this query added it.
pub(crate) fn added_term(ctx: &EvalContext<'_>, id: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    if id >= FIRST_QUERY_ID {
        ctx.terms.term(VertexId(id), &mut bytes);
    } else {
        ctx.vocabulary.term(VertexId(id), &mut bytes);
    }
    bytes
}

fn term_kind(ctx: &EvalContext<'_>, id: u32) -> Result<Option<TermKind>> {
    if let Some(ranks) = ctx.vocabulary.ranks_of(id) {
        return Ok(ranks.kind(VertexId(id)));
    }
    let term = added_term(ctx, id);
    worked(term.len())?;
    Ok(term.first().map(|tag| match *tag {
        term::IRI => TermKind::Iri,
        term::BLANK => TermKind::Blank,
        term::TRIPLE => TermKind::Triple,
        _ => TermKind::Literal,
    }))
}

fn is_numeric(ctx: &EvalContext<'_>, id: u32) -> Result<bool> {
    if let Some(ranks) = ctx.vocabulary.ranks_of(id) {
        return Ok(ranks.numeric_rank(VertexId(id)).is_some());
    }
    let term = added_term(ctx, id);
    worked(8 * term.len())?;
    Ok(match term::parts(&term) {
        Some(term::Parts::Coded(lexical, code)) => {
            jindou_values::Number::parse(code, lexical).is_some()
        }
        _ => false,
    })
}

/// The conditions of a step, which must all be true. Boxed, since most steps have no conditions, and steps are moved
/// often while the pipeline is built.
pub(crate) struct Filters<'a>(Option<Box<ConditionList<'a>>>);

impl<'a> Filters<'a> {
    pub fn new(
        conditions: &'a [Condition],
        layout: &[Slot],
        ctx: &EvalContext<'a>,
    ) -> Result<Self> {
        if conditions.is_empty() {
            return Ok(Self(None));
        }
        let list = ConditionList::new(conditions, layout, ctx)?;
        Ok(Self(Some(Box::new(list))))
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Removes the rows from position `from` on for which a condition is not true.
    #[inline]
    pub fn apply(&mut self, ctx: &EvalContext<'_>, batch: &mut Batch, from: usize) -> Result<()> {
        match &mut self.0 {
            Some(list) => list.apply(ctx, batch, from),
            None => Ok(()),
        }
    }
}

/// Conditions that must all be true.
pub(crate) struct ConditionList<'a> {
    nodes: Vec<FilterNode<'a>>,
    keep: Vec<u8>,
    /// See [`FilterScratch`].
    space: Vec<u8>,
    shared: SharedScratch,
    charge: OperatorCharge,
    work: usize,
    /// Bytes of [`FilterScratch::space`] per row, and of all memory per row.
    a_row: usize,
    all_of_a_row: usize,
    /// Number of rows whose memory is charged.
    charged: usize,
}

impl<'a> ConditionList<'a> {
    pub fn new(
        conditions: &'a [Condition],
        layout: &[Slot],
        ctx: &EvalContext<'a>,
    ) -> Result<Self> {
        let layout = SlotLayout::new(layout);
        let mut nodes = conditions
            .iter()
            .map(|c| FilterNode::new(c, &layout, ctx))
            .collect::<Result<Vec<_>>>()?;
        nodes.sort_by_cached_key(FilterNode::cost);
        let a_row = nodes.iter().map(FilterNode::scratch).max().unwrap_or(0);
        let shared = nodes.iter().any(FilterNode::is_costly);
        Ok(Self {
            a_row,
            all_of_a_row: a_row + 1 + if shared { SharedScratch::A_ROW } else { 0 },
            charged: 0,
            nodes,
            keep: vec![],
            space: vec![],
            shared: SharedScratch::default(),
            charge: OperatorCharge::new(ctx.budget),
            work: 0,
        })
    }

    /// Allocates scratch memory for this many rows, and marks all of them as wanted.
    fn ensure(&mut self, rows: usize) -> Result<()> {
        if rows > self.charged {
            self.charge.set(rows.saturating_mul(self.all_of_a_row))?;
            self.charged = rows;
            self.space.resize(rows * self.a_row, FALSE);
        }
        self.keep.clear();
        self.keep.resize(rows, TRUE);
        Ok(())
    }

    /// Removes the rows from position `from` on for which a condition is not true.
    pub fn apply(&mut self, ctx: &EvalContext<'_>, batch: &mut Batch, from: usize) -> Result<()> {
        for at in 0..self.nodes.len() {
            let rows = batch.rows - from;
            if rows == 0 {
                return Ok(());
            }
            self.ensure(rows)?;
            let mut scratch = FilterScratch {
                space: &mut self.space,
                shared: &mut self.shared,
                work: &mut self.work,
            };
            let node = &mut self.nodes[at];
            node.eval(ctx, batch.view(), from, &mut self.keep, &mut scratch)?;
            batch.retain(from, &self.keep);
        }
        self.shared.trim();
        Ok(())
    }

    /// Evaluates all conditions for the rows of a view: `TRUE` for each row that passes.
    pub fn flags(&mut self, ctx: &EvalContext<'_>, rows: View<'_>) -> Result<&[u8]> {
        self.ensure(rows.rows)?;
        let mut scratch = FilterScratch {
            space: &mut self.space,
            shared: &mut self.shared,
            work: &mut self.work,
        };
        for node in &mut self.nodes {
            // Rows that an earlier condition rejected are no longer `TRUE`, so not wanted.
            node.eval(ctx, rows, 0, &mut self.keep, &mut scratch)?;
        }
        self.shared.trim();
        Ok(&self.keep)
    }
}
