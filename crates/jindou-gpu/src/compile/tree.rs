//! Compilation of a chain of operators down to one exploration. The device steps of each operator continue with the
//! rows of the operator below it.
//!
//! ```text
//! operator            steps
//! Filter              conditions that ids or value ranks decide
//! Apply               number the rows │ the inner part's steps │ note which rows had any │ go on with
//!                       those that had (EXISTS), had none (NOT EXISTS, MINUS), or both, put together (OPTIONAL)
//! Steps               steps
//! Distinct            the first row of each id, by a bitmap over all ids
//! Reduced             nothing
//! Path                each row with each node that the path leads to
//! ```
//!
//! A step keeps only the columns that later steps or the result read.

use super::{
    CompiledStep, DeviceStep, DeviceTop, DeviceWithin, GroupPlan, StepCompiler, StepProgram,
    StepWork, conditions, may_follow,
};
use crate::cache::SegmentCache;
use crate::device::Device;
use crate::pages::Pager;
use crate::params::{self, MAX_COLUMNS};
use crate::ranks::tail_of;
use jindou_engine::Top;
use jindou_graph::Graph;
use jindou_model::{Error, FIRST_TAIL_ID, Result};
use jindou_plan::operator::Apply;
use jindou_plan::{ApplyKind, Condition, FIRST_HIDDEN, Operator, Slot};
use std::sync::Arc;

/// Largest depth of nested operators.
const MAX_DEPTH: usize = 64;
/// Number of the plan's step for device steps that belong to an operator instead.
const NO_STEP: usize = usize::MAX;
/// The interval of all ids but 0, which stands for unbound.
const BOUND: [u32; 2] = [1, u32::MAX];
/// The interval that contains only 0, the id of an unbound value.
const UNBOUND: [u32; 2] = [0, 1];

fn unsupported(what: &str) -> Error {
    Error::Unsupported(format!("{what} on the GPU"))
}

/// True if the device may be able to execute an operator together with everything below it, judged by the kinds of
/// operators alone. False for a plain exploration. O(operators).
pub(crate) fn may_run(op: &Operator) -> bool {
    let mut open = vec![(op, false, 0)];
    let mut explores = false;
    while let Some((op, inner, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            return false;
        }
        let below = match op {
            Operator::Explore(e) => {
                explores |= !inner && e.empty.is_none();
                continue;
            }
            Operator::Outer(_) if inner => continue,
            Operator::Filter(f) if is_decided(&f.condition) => &f.input,
            Operator::Steps(s) => &s.input,
            Operator::Path(p) if may_follow(p) => &p.input,
            Operator::Reduced(r) if !inner => &r.input,
            Operator::Distinct(d) if !inner && d.slots.len() == 1 => &d.input,
            Operator::Slice(s) if depth == 0 => &s.input,
            Operator::Apply(a) if !a.each_row && !matches!(a.kind, ApplyKind::Mark(_)) => {
                open.push((&a.inner, true, depth + 1));
                &a.input
            }
            _ => return false,
        };
        open.push((below, inner, depth + 1));
    }
    explores && !matches!(op, Operator::Explore(_))
}

/// True for conditions of a FILTER that the device can test.
fn is_decided(c: &Condition) -> bool {
    match c {
        Condition::And(all) => all.iter().all(is_decided),
        Condition::Not(c) if matches!(**c, Condition::Bound(_)) => true,
        c => conditions::is_decided_by_ids(c),
    }
}

/// True if any part of a condition is `BOUND(?x)`.
fn asks_for_bound(c: &Condition) -> bool {
    match c {
        Condition::Bound(_) => true,
        Condition::And(all) | Condition::Or(all) => all.iter().any(asks_for_bound),
        Condition::Not(c) => asks_for_bound(c),
        _ => false,
    }
}

/// The part of an operator's rows that the caller needs.
#[derive(Clone, Copy)]
pub(crate) enum WantedRows<'a> {
    /// Some columns of all rows.
    Columns(&'a [Slot]),
    /// Some columns of rows that include the first ones in an order.
    First(&'a [Slot], Top),
    /// The number of rows.
    Number,
    /// The number of rows in which a slot is bound.
    Bound(Slot),
    /// The number of distinct ids in a slot, unbound not counted.
    Different(Slot),
    /// Each combination of ids in the slots `ids`, and of the slots `tested` being bound or not, with the number of its
    /// rows.
    Groups {
        ids: &'a [Slot],
        tested: &'a [Slot],
        /// A slot of which only the smallest and largest values in each combination are needed.
        best: Option<Slot>,
    },
}

impl<'a> StepCompiler<'a> {
    /// Appends the steps of an operator and of everything below it; returns the slots of its rows. `outer` are the
    /// slots of the outer rows if the operator is the inner part of an `Apply`.
    fn operator(
        &mut self,
        op: &Operator,
        outer: Option<&[Slot]>,
        level: u16,
        out: &mut Vec<DeviceStep<'a>>,
    ) -> Result<Vec<Slot>> {
        if usize::from(level) > MAX_DEPTH {
            return Err(unsupported("operators nested this deep"));
        }
        let common = |wanted: &[Slot], there: &[Slot]| -> Vec<Slot> {
            wanted
                .iter()
                .copied()
                .filter(|s| there.contains(s))
                .collect()
        };
        let level = level + 1;
        match op {
            Operator::Explore(e) if outer.is_none() && e.empty.is_none() => {
                for (number, step) in e.steps.iter().enumerate() {
                    self.step(step, number, true, out)?;
                }
            }
            Operator::Outer(o) => {
                let outer = outer.ok_or_else(|| unsupported("an outer row"))?;
                return Ok(common(&o.slots, outer));
            }
            Operator::Steps(s) => {
                self.operator(&s.input, outer, level, out)?;
                let from = out.len();
                for step in &s.steps {
                    self.step(step, NO_STEP, true, out)?;
                }
                let reads = out[from..].iter().flat_map(|s| s.work.needs());
                if reads.into_iter().any(|s| self.maybe.contains(&s)) {
                    return Err(unsupported("a step from a variable that may be unbound"));
                }
            }
            Operator::Filter(f) => {
                self.operator(&f.input, outer, level, out)?;
                let mut parts = Vec::new();
                self.filter(&f.condition, &mut parts)?;
                out.extend(parts.into_iter().map(of_operator));
            }
            Operator::Reduced(r) => {
                self.operator(&r.input, outer, level, out)?;
            }
            Operator::Distinct(d) => {
                let below = self.operator(&d.input, outer, level, out)?;
                match common(&d.slots, &below).as_slice() {
                    &[slot] if d.slots.len() == 1 => out.push(self.distinct(slot)),
                    _ => return Err(unsupported("DISTINCT of several variables")),
                }
            }
            Operator::Apply(a) => {
                self.apply(a, outer, level, out)?;
            }
            Operator::Path(p) => {
                self.operator(&p.input, outer, level, out)?;
                self.path(p, out)?;
            }
            _ => return Err(unsupported("an operator")),
        }
        Ok(op.layout(outer.unwrap_or_default()))
    }

    /// Adds a bitmap over all ids; returns its number.
    pub(super) fn set(&mut self) -> usize {
        self.sets.push(params::Bits {
            words: 0,
            dense: self.snapshot.dense_ids().saturating_add(1),
            first_tail: FIRST_TAIL_ID,
            tail: tail_of(self.snapshot),
            pad: 0,
        });
        self.sets.len() - 1
    }

    /// The step of a DISTINCT of one variable.
    fn distinct(&mut self, slot: Slot) -> DeviceStep<'a> {
        let set = self.set();
        of_operator((
            StepWork::Distinct { slot, set },
            format!("distinct ?{slot}"),
        ))
    }

    fn apply(
        &mut self,
        a: &Apply,
        outer: Option<&[Slot]>,
        level: u16,
        out: &mut Vec<DeviceStep<'a>>,
    ) -> Result<()> {
        let gives = matches!(a.kind, ApplyKind::Inner | ApplyKind::Left);
        if a.each_row || matches!(a.kind, ApplyKind::Mark(_)) || a.inner.is_never() {
            return Err(unsupported("a part that runs for each row by itself"));
        }
        let rows = self.operator(&a.input, outer, level, out)?;
        let begin = out.len();
        let (bound, maybe) = (self.bound.clone(), self.maybe.clone());
        out.push(of_operator((
            StepWork::Apply {
                kind: a.kind,
                end: 0,
                number: FIRST_HIDDEN + level,
                numbers: DeviceWithin::new(self.device, Some(&[[0, u32::MAX]]), true)?,
                reads: Vec::new(),
                new: Vec::new(),
            },
            a.kind_name().into(),
        )));
        let inner = self.operator(&a.inner, Some(&rows), level, out)?;
        let made = out[begin + 1..].iter().filter_map(|s| s.work.binds());
        if made.into_iter().any(|s| rows.contains(&s)) {
            // Both sides bind the slot, so its values would have to be compared.
            return Err(unsupported(
                "a variable that both parts of an OPTIONAL bind",
            ));
        }
        let end = out.len();
        out.push(of_operator((
            StepWork::EndApply { begin },
            format!("{}: its rows", a.kind_name()),
        )));
        let made: Vec<Slot> = inner
            .into_iter()
            .filter(|s| gives && !rows.contains(s))
            .collect();
        let inside = std::mem::replace(&mut self.maybe, maybe);
        self.bound = bound;
        self.bound.extend(&made);
        let unsure = |s: &Slot| a.kind == ApplyKind::Left || inside.contains(s);
        self.maybe.extend(made.iter().copied().filter(unsure));
        if let Some(DeviceStep {
            work: StepWork::Apply { end: to, new, .. },
            ..
        }) = out.get_mut(begin)
        {
            (*to, *new) = (end, made);
        }
        Ok(())
    }

    /// Appends the device steps of a FILTER above an exploration. Its slots may be unbound, unlike those of conditions
    /// inside an exploration.
    fn filter(&mut self, c: &Condition, out: &mut Vec<CompiledStep<'a>>) -> Result<()> {
        if let Condition::And(all) = c {
            return all.iter().try_for_each(|c| self.filter(c, out));
        }
        let mut slots = Vec::new();
        conditions::slots(c, &mut slots);
        if slots.iter().any(|s| !self.bound.contains(s)) {
            return Err(unsupported("a filter on an unbound variable"));
        }
        slots.retain(|s| self.maybe.contains(s));
        match c {
            Condition::Bound(_) => {}
            Condition::Not(inner) if matches!(**inner, Condition::Bound(_)) => {
                let mut of = Vec::new();
                conditions::slots(c, &mut of);
                let ids: &[[u32; 2]] = if slots.is_empty() { &[] } else { &[UNBOUND] };
                for slot in of {
                    out.push(self.restrict(slot, ids)?);
                }
                return Ok(());
            }
            c if !slots.is_empty() && asks_for_bound(c) => {
                return Err(unsupported(
                    "a filter that asks in part whether a variable is bound",
                ));
            }
            _ => {}
        }
        // The condition is an error if a slot is unbound, so such rows are dropped.
        for slot in slots {
            out.push(self.restrict(slot, &[BOUND])?);
        }
        self.condition(c, out)
    }

    /// Compiles an ORDER BY; an error if the store has no numbers.
    fn top(&self, top: Top) -> Result<DeviceTop> {
        let ranks = (self.cache).ranks_of(self.device, self.snapshot)?;
        let last = ranks.last();
        if last == 0 || last >= 1 << 31 || top.most > u64::from(u32::MAX >> 1) {
            return Err(unsupported("an order without numbers"));
        }
        Ok(DeviceTop {
            slot: top.slot,
            is_descending: top.is_descending,
            most: top.most,
            last,
            ranks,
        })
    }

    fn restrict(&self, slot: Slot, ids: &[[u32; 2]]) -> Result<CompiledStep<'a>> {
        let within = DeviceWithin::new(self.device, Some(ids), false)?;
        Ok((
            StepWork::Restrict { slot, within },
            format!("restrict ?{slot}"),
        ))
    }

    /// Appends the steps that reduce the rows to the part that is wanted; returns the columns that are copied back.
    fn wanted(
        &mut self,
        wanted: WantedRows<'_>,
        rows: &[Slot],
        out: &mut Vec<DeviceStep<'a>>,
    ) -> Result<Vec<Slot>> {
        let slot = match wanted {
            WantedRows::Columns(slots) => return Ok(slots.to_vec()),
            WantedRows::First(slots, top) => {
                if !rows.contains(&top.slot) {
                    return Err(unsupported("the order of an unbound variable"));
                }
                let top = self.top(top)?;
                out.push(of_operator((StepWork::Top(top), "first rows".into())));
                return Ok(slots.to_vec());
            }
            WantedRows::Number | WantedRows::Groups { .. } => return Ok(Vec::new()),
            WantedRows::Bound(slot) | WantedRows::Different(slot) => slot,
        };
        if !rows.contains(&slot) {
            return Err(unsupported("a count of an unbound variable"));
        }
        if self.maybe.contains(&slot) {
            out.push(of_operator(self.restrict(slot, &[BOUND])?));
        }
        if matches!(wanted, WantedRows::Different(_)) {
            let distinct = self.distinct(slot);
            out.push(distinct);
        }
        Ok(Vec::new())
    }
}

pub(super) fn of_operator<'a>((work, name): CompiledStep<'a>) -> DeviceStep<'a> {
    DeviceStep {
        work,
        keep: Vec::new(),
        name,
        plan_step: NO_STEP,
    }
}

fn add(to: &mut Vec<Slot>, slots: impl IntoIterator<Item = Slot>) {
    for s in slots {
        if !to.contains(&s) {
            to.push(s);
        }
    }
}

/// Sets the columns that each step keeps: those that later steps or the result read. Goes through the steps backwards.
fn keep(steps: &mut [DeviceStep<'_>], output: &[Slot]) {
    let mut needed: Vec<Slot> = Vec::new();
    add(&mut needed, output.iter().copied());
    // For each enclosing `Apply` whose inner steps are being visited: the slots needed after it.
    let mut around: Vec<Vec<Slot>> = Vec::new();
    for k in (0..steps.len()).rev() {
        if let StepWork::EndApply { begin } = steps[k].work {
            let mut inner = Vec::new();
            if let Some(StepWork::Apply { number, new, .. }) = steps.get(begin).map(|s| &s.work) {
                inner.extend(new.iter().copied().filter(|s| needed.contains(s)));
                inner.push(*number);
                needed.retain(|s| !new.contains(s));
            }
            steps[k].keep.clone_from(&inner);
            around.push(std::mem::replace(&mut needed, inner));
            continue;
        }
        let step = &mut steps[k];
        if let StepWork::Apply { number, reads, .. } = &mut step.work {
            let after = around.pop().unwrap_or_default();
            needed.retain(|s| s != number);
            reads.clone_from(&needed);
            add(&mut needed, after.iter().copied());
            step.keep = after;
            continue;
        }
        step.keep.clone_from(&needed);
        if let Some(bound) = step.work.binds() {
            needed.retain(|s| *s != bound);
        }
        let needs = step.work.needs();
        add(&mut needed, needs);
    }
}

/// As [`super::compile`], for an operator and everything below it.
///
/// # Errors
/// `Unsupported` if the device cannot execute all of it; otherwise as [`super::compile`]. If segments do not fit,
/// returns a program whose `is_short` is true.
pub(crate) fn compile_tree<'a>(
    (device, cache): (&'a Arc<Device>, &'a SegmentCache),
    pager: Option<&'a Pager>,
    snapshot: &'a dyn Graph,
    op: &Operator,
    wanted: WantedRows<'_>,
) -> Result<(StepProgram<'a>, Vec<Slot>)> {
    if !may_run(op) && !matches!(op, Operator::Explore(_)) {
        return Err(unsupported("operators above the patterns"));
    }
    let running = pager.map(Pager::begin).transpose()?;
    let mut c = StepCompiler::new((device, cache), pager, snapshot);
    let (mut steps, mut groups) = (Vec::new(), None);
    let made = c
        .operator(op, None, 0, &mut steps)
        .and_then(|rows| match wanted {
            WantedRows::Groups { ids, tested, best } => {
                groups = Some(c.groups(op, (ids, tested, best), &rows, &mut steps)?);
                Ok(Vec::new())
            }
            wanted => c.wanted(wanted, &rows, &mut steps),
        })
        .and_then(|output| c.fits(&steps).map(|()| output));
    let (output, stopped) = match made {
        Ok(output) => (output, None),
        Err(Error::Limit(why)) => {
            let why = format!("segments larger than the GPU's memory ({why})");
            (Vec::new(), Some(Error::Unsupported(why)))
        }
        Err(e) => return Err(e),
    };
    keep(&mut steps, &output);
    let widest = steps.iter().map(|s| s.keep.len() + 1).max().unwrap_or(0);
    if widest > MAX_COLUMNS {
        return Err(Error::Unsupported(format!(
            "more than {MAX_COLUMNS} variables on the GPU"
        )));
    }
    let is_short = stopped.is_some();
    let program = StepProgram {
        is_short,
        groups,
        ..c.program(steps, usize::from(!is_short), stopped, running)
    };
    let output = program.groups.as_ref().map_or(output, GroupPlan::output);
    Ok((program, output))
}

/// The name of an [`Apply`]'s kind, for profiles.
trait KindName {
    fn kind_name(&self) -> &'static str;
}

impl KindName for Apply {
    fn kind_name(&self) -> &'static str {
        match self.kind {
            ApplyKind::Inner => "for each row",
            ApplyKind::Left => "optional",
            ApplyKind::Semi => "exists",
            ApplyKind::Anti | ApplyKind::Mark(_) => "not exists",
        }
    }
}
