//! Properties of operators that planner and engine ask for. Each has a default here that fits most operators; an
//! operator's own file overrides those that differ.

use super::Operator;
use crate::Slot;
use crate::explain::{ExplainNode, Explainer};
use crate::set::SlotSet;
use crate::slots::{binds, layout_of, reads};
use crate::{Step, condition};
use jindou_model::scope;

/// Roles of an operator's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputRole {
    /// Rows stream through the operator; its rows have their columns.
    Streams,
    /// Rows are held in memory, and their columns are added.
    Held,
    /// Rows are held in memory for lookups only; their columns are not passed on.
    Sought,
    /// Rows depend on those of the previous input, and their columns are added.
    Dependent,
    /// Rows depend on those of the previous input, and only their existence matters.
    DependentSought,
}

impl InputRole {
    /// Returns true if the input's columns are among the operator's.
    #[must_use]
    pub fn gives_columns(self) -> bool {
        matches!(self, Self::Streams | Self::Held | Self::Dependent)
    }

    /// Returns true if the input reads the rows of the previous one.
    #[must_use]
    pub fn is_dependent(self) -> bool {
        matches!(self, Self::Dependent | Self::DependentSought)
    }
}

/// Effect of an operator on the order of its input's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The operator establishes an order.
    Makes,
    /// Rows keep their input order.
    Keeps,
    /// Rows are returned in any order.
    Loses,
}

/// Callback for each id. The flag is true if the id is an operand, whose meaning does not depend on its value; false
/// where the planner has drawn conclusions from the value (graphs, intervals, inline data).
pub(crate) type EachId<'f> = dyn FnMut(&mut u32, bool) + 'f;

/// Callback for each input and its role.
pub(crate) type EachInput<'f, 'a> = dyn FnMut(InputRole, &'a Operator) + 'f;

/// Properties of an operator that its own file defines. Methods without a default must be given; the defaults of the
/// others fit an operator that takes one row at a time.
pub(crate) trait OperatorFacts {
    /// Name in profiles.
    fn name(&self) -> &'static str;

    /// Calls `f` with each input, in the order of the profile.
    fn each_input<'a>(&'a self, _f: &mut EachInput<'_, 'a>) {}

    /// As [`Self::each_input`], for changing the inputs.
    fn each_input_mut<'a>(&'a mut self, _f: &mut dyn FnMut(&'a mut Operator)) {}

    /// Calls `f` with the slots that the operator itself binds, in the order of the columns that it adds.
    fn binds(&self, _f: &mut dyn FnMut(Slot)) {}

    /// Outer slots that the operator itself reads; only operators inside an `Apply` have any.
    fn outer_slots(&self) -> Vec<Slot> {
        vec![]
    }

    /// Removes columns that nothing reads, given the slots that are read above: tells each input which of its slots are
    /// read. Returns the outer slots that the operator and its inputs read.
    fn prune(&mut self, wanted: &SlotSet) -> SlotSet;

    /// Returns true if its rows equal its input's in the columns `wanted`: then the operator is removed.
    fn is_unread(&self, _wanted: &SlotSet) -> bool {
        false
    }

    /// The slots that its rows have, as the planner knows them.
    fn columns(&self) -> SlotSet {
        let mut out = SlotSet::default();
        self.each_input(&mut |role, i| {
            if role.gives_columns() {
                out.add(&i.columns());
            }
        });
        self.binds(&mut |s| out.insert(s));
        out
    }

    /// Slots of its rows, in the order of the engine's columns. `outer` has those of the rows of the nearest enclosing
    /// `Apply`.
    fn layout(&self, outer: &[Slot]) -> Vec<Slot> {
        let mut out = RowSlots::default();
        self.each_input(&mut |role, i| {
            if role.gives_columns() {
                out.add_all(i.layout(outer));
            }
        });
        self.binds(&mut |s| out.add(s));
        out.slots
    }

    /// Returns true if the planner has proved that it has no rows, whatever its inputs and its outer row are.
    fn is_never_by_itself(&self) -> bool {
        false
    }

    /// Returns true if the planner has proved that it has no rows, whatever its outer row is.
    fn is_never(&self) -> bool {
        let mut never = self.is_never_by_itself();
        self.each_input(&mut |role, i| never |= role == InputRole::Streams && i.is_never());
        never
    }

    /// Returns true if each of its rows comes from one row of its streaming inputs, so that it can run for many outer
    /// rows at once.
    fn is_by_row(&self) -> bool {
        false
    }

    /// Returns true if it emits rows before all input rows have arrived.
    fn streams(&self) -> bool {
        true
    }

    /// Effect on the order of rows.
    fn order(&self) -> Order {
        Order::Loses
    }

    /// Returns true if it reads the store.
    fn explores(&self) -> bool {
        false
    }

    /// Calls `f` with its own ids, always in the same order.
    fn each_id(&mut self, _f: &mut EachId<'_>) {}

    /// Approximate bytes on the heap that belong to the operator itself, without its inputs.
    fn own_bytes(&self, _: &mut crate::weigh::CountedTexts) -> u64 {
        0
    }

    /// The operator and its inputs for EXPLAIN. `outer`: rows of the `Apply` around it.
    fn explain(&self, e: &Explainer<'_>, outer: f64) -> ExplainNode;
}

/// Removes columns that nothing reads from an operator whose slots `wanted` are read. Returns the outer slots that it
/// reads.
pub(crate) fn prune(op: &mut Operator, wanted: &SlotSet) -> SlotSet {
    if scope::is_over() {
        return SlotSet::default();
    }
    while op.facts().is_unread(wanted) {
        op.leave_out();
    }
    op.facts_mut().prune(wanted)
}

/// Fills `live` from the last step to the first. `there` are the columns of the rows that the steps extend.
pub(super) fn steps_needed(list: &mut [Step], wanted: &SlotSet, mut there: SlotSet) {
    // Slots that steps bind, each with the first step that does.
    let mut firsts: Vec<(usize, Slot)> = Vec::with_capacity(list.len() + 1);
    for (at, step) in list.iter().enumerate() {
        binds(&step.kind, &mut |s| {
            if !there.has(s) {
                there.insert(s);
                firsts.push((at, s));
            }
        });
    }
    let mut needed = wanted.and(&there);
    for (at, step) in list.iter_mut().enumerate().rev() {
        if scope::is_over() {
            break;
        }
        step.live = needed.to_vec();
        need_before(step, &mut needed);
        while let Some((_, s)) = firsts.pop_if(|(first, _)| *first == at) {
            there.remove(s);
        }
        needed = needed.and(&there);
    }
}

/// Turns the slots needed after a step into those needed before it.
fn need_before(step: &Step, needed: &mut SlotSet) {
    for c in &step.filters {
        condition::add_slots(c, needed);
    }
    binds(&step.kind, &mut |s| needed.remove(s));
    reads(&step.kind, &mut |s| needed.insert(s));
}

/// The slots that steps need from the rows that they extend.
pub(super) fn needed_before(list: &[Step], wanted: &SlotSet) -> SlotSet {
    let mut needed = wanted.clone();
    list.iter()
        .rev()
        .for_each(|step| need_before(step, &mut needed));
    needed
}

/// The slots of a row, each once, in the order of its columns.
#[derive(Default)]
pub(super) struct RowSlots {
    pub slots: Vec<Slot>,
    /// The same slots as a set, once there are many.
    seen: Option<SlotSet>,
}

impl RowSlots {
    /// Number of slots up to which the list is searched.
    const SHORT: usize = 64;

    /// Creates a row with these slots, which must be distinct.
    pub fn new(slots: Vec<Slot>) -> Self {
        Self { slots, seen: None }
    }

    pub fn add(&mut self, slot: Slot) {
        let is_new = if self.slots.len() <= Self::SHORT {
            !self.slots.contains(&slot)
        } else {
            let all = || self.slots.iter().copied().collect();
            let seen = self.seen.get_or_insert_with(all);
            let is_new = !seen.has(slot);
            seen.insert(slot);
            is_new
        };
        if is_new {
            self.slots.push(slot);
        }
    }

    /// Adds the slots of a row, which must be distinct.
    pub fn add_all(&mut self, slots: Vec<Slot>) {
        if self.slots.is_empty() {
            *self = Self::new(slots);
        } else {
            slots.into_iter().for_each(|s| self.add(s));
        }
    }
}

/// The slots of `wanted` that `there` has, each once, in the order of `wanted`.
pub(super) fn common(wanted: &[Slot], there: &[Slot]) -> Vec<Slot> {
    let there: SlotSet = there.iter().copied().collect();
    let mut out = RowSlots::default();
    let common = wanted.iter().copied().filter(|s| there.has(*s));
    common.for_each(|s| out.add(s));
    out.slots
}

/// The columns after steps, in order; incomplete once the planning is over.
pub(super) fn after(before: Vec<Slot>, steps: &[Step]) -> Vec<Slot> {
    let going = steps.iter().take_while(|_| !scope::is_over());
    going.fold(before, |b, s| layout_of(&b, s))
}
