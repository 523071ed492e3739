//! Properties of operators that the planner and the engine ask for. Each has a default here that fits most operators;
//! an operator's own file overrides the others.

use super::Operator;
use crate::Slot;
use crate::explain::{ExplainNode, Explainer};
use crate::set::SlotSet;
use crate::slots::{binds, layout_of, reads};
use crate::{Step, condition};
use jindou_model::scope;

/// How an operator uses an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputRole {
    /// Rows pass through the operator one by one; its rows have the input's columns.
    Streams,
    /// Rows are stored in memory, and their columns are added to those of other inputs.
    Held,
    /// Rows are stored in memory for lookups only; their columns are not passed on.
    Sought,
    /// The input is evaluated for rows of the previous input, and its columns are added.
    Dependent,
    /// The input is evaluated for rows of the previous input, and only whether it has rows matters.
    DependentSought,
}

impl InputRole {
    /// Returns true if the input's columns are among the operator's.
    #[must_use]
    pub fn gives_columns(self) -> bool {
        matches!(self, Self::Streams | Self::Held | Self::Dependent)
    }

    /// Returns true if the input is evaluated for rows of the previous input.
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
    /// Rows are returned in the order of the input.
    Keeps,
    /// Rows are returned in any order.
    Loses,
}

/// Callback for each id. The flag is true if the id can be replaced by another one in a finished plan (an operand);
/// false if the planner has drawn conclusions from the value (graphs, intervals, inline data).
pub(crate) type EachId<'f> = dyn FnMut(&mut u32, bool) + 'f;

/// Callback for each input and its role.
pub(crate) type EachInput<'f, 'a> = dyn FnMut(InputRole, &'a Operator) + 'f;

/// Properties of an operator, defined in its own file. The defaults fit an operator that processes rows one at a time.
pub(crate) trait OperatorFacts {
    /// Name in profiles.
    fn name(&self) -> &'static str;

    /// Calls `f` with each input, in the order of the profile.
    fn each_input<'a>(&'a self, _f: &mut EachInput<'_, 'a>) {}

    /// As [`Self::each_input`], with mutable inputs.
    fn each_input_mut<'a>(&'a mut self, _f: &mut dyn FnMut(&'a mut Operator)) {}

    /// Calls `f` with the slots that the operator itself binds, in the order of the columns that it adds.
    fn binds(&self, _f: &mut dyn FnMut(Slot)) {}

    /// Outer slots that the operator itself reads; only operators inside an `Apply` have any.
    fn outer_slots(&self) -> Vec<Slot> {
        vec![]
    }

    /// Removes columns that nothing reads, in this operator and its inputs. `wanted` are the slots that operators above
    /// read. Returns the outer slots that the operator and its inputs read.
    fn prune(&mut self, wanted: &SlotSet) -> SlotSet;

    /// Returns true if its rows equal those of its first input in the columns `wanted`, so that the operator can be
    /// removed.
    fn is_unread(&self, _wanted: &SlotSet) -> bool {
        false
    }

    /// The slots of its rows, as far as the planner knows them.
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

    /// Slots of its rows, in the order of the engine's columns. `outer` are the slots of the rows of the nearest
    /// enclosing `Apply`.
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

    /// Returns true if the planner has proved that the operator itself never returns rows, whatever its inputs are.
    fn is_never_by_itself(&self) -> bool {
        false
    }

    /// Returns true if the planner has proved that the operator with its inputs never returns rows.
    fn is_never(&self) -> bool {
        let mut never = self.is_never_by_itself();
        self.each_input(&mut |role, i| never |= role == InputRole::Streams && i.is_never());
        never
    }

    /// Returns true if each of its rows depends on one row of its streaming inputs only. Inside an `Apply`, it can then
    /// process the rows of many outer rows together.
    fn is_by_row(&self) -> bool {
        false
    }

    /// Returns true if it returns rows before it has read all input rows.
    fn streams(&self) -> bool {
        true
    }

    /// Its effect on the order of rows.
    fn order(&self) -> Order {
        Order::Loses
    }

    /// Returns true if it reads edges of the store.
    fn explores(&self) -> bool {
        false
    }

    /// Calls `f` with its own ids, always in the same order.
    fn each_id(&mut self, _f: &mut EachId<'_>) {}

    /// Approximate heap bytes of the operator itself, without its inputs.
    fn own_bytes(&self, _: &mut crate::weigh::CountedTexts) -> u64 {
        0
    }

    /// The operator and its inputs as text; `outer` is the estimated number of rows of the `Apply` around it.
    fn explain(&self, e: &Explainer<'_>, outer: f64) -> ExplainNode;
}

/// Removes columns that nothing reads below an operator. `wanted` are the slots of its rows that are read above.
/// Returns the outer slots that it reads.
pub(crate) fn prune(op: &mut Operator, wanted: &SlotSet) -> SlotSet {
    if scope::is_over() {
        return SlotSet::default();
    }
    while op.facts().is_unread(wanted) {
        op.leave_out();
    }
    op.facts_mut().prune(wanted)
}

/// Sets [`Step::live`] of each step. `there` are the columns of the rows that the steps extend.
pub(super) fn steps_needed(list: &mut [Step], wanted: &SlotSet, mut there: SlotSet) {
    // Slots that steps bind, each with the position of the first step that binds it.
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
    /// The same slots as a set; filled once there are many.
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

/// The slots of `wanted` that are in `there`, each once, in the order of `wanted`.
pub(super) fn common(wanted: &[Slot], there: &[Slot]) -> Vec<Slot> {
    let there: SlotSet = there.iter().copied().collect();
    let mut out = RowSlots::default();
    let common = wanted.iter().copied().filter(|s| there.has(*s));
    common.for_each(|s| out.add(s));
    out.slots
}

/// The columns after the steps, in order; incomplete if the scope's time is over.
pub(super) fn after(before: Vec<Slot>, steps: &[Step]) -> Vec<Slot> {
    let going = steps.iter().take_while(|_| !scope::is_over());
    going.fold(before, |b, s| layout_of(&b, s))
}
