//! Traversals of a tree of operators. They are iterative unless their comment says otherwise.

use super::{InputRole, Operator, Order, Outer};
use crate::set::SlotSet;
use crate::{Exploration, Slot};

/// How a walk continues after a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// Visits all of the node's inputs.
    Into,
    /// Visits those inputs that do not depend on rows of other inputs.
    Independent,
    /// Skips the node's inputs.
    Past,
}

impl Operator {
    /// An operator without inputs that takes no memory: a placeholder where an operator was removed.
    #[must_use]
    pub const fn nothing() -> Self {
        Self::Outer(Outer { slots: vec![] })
    }

    /// Removes and returns the operator, leaving [`Self::nothing`].
    #[must_use]
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::nothing())
    }

    /// Replaces the operator by its first input.
    pub(crate) fn leave_out(&mut self) {
        let mut first = None;
        self.each_input_mut(&mut |i| {
            if first.is_none() {
                first = Some(i.take());
            }
        });
        *self = first.unwrap_or(Self::nothing());
    }

    /// The operators whose rows this one reads, in the order of the profile.
    #[must_use]
    pub fn inputs(&self) -> Vec<&Self> {
        let mut out = vec![];
        self.each_input(&mut |_, i| out.push(i));
        out
    }

    /// Calls `f` with each input and its role, in the order of the profile.
    pub fn each_input<'a>(&'a self, f: &mut dyn FnMut(InputRole, &'a Self)) {
        self.facts().each_input(f);
    }

    /// As [`Self::each_input`], with mutable inputs.
    pub fn each_input_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Self)) {
        self.facts_mut().each_input_mut(f);
    }

    /// Calls `f` with the operator and those below it in preorder; `f` decides how the walk continues. O(operators).
    pub fn walk<'a>(&'a self, f: &mut dyn FnMut(&'a Self) -> Walk) {
        let (mut next, mut open) = (Some(self), vec![]);
        while let Some(op) = next {
            let on = f(op);
            let first = open.len();
            if on != Walk::Past {
                op.each_input(&mut |role, i| {
                    if on == Walk::Into || !role.is_dependent() {
                        open.push(i);
                    }
                });
            }
            open[first..].reverse();
            next = open.pop();
        }
    }

    /// Calls `f` with the operator and everything below it in preorder. The inputs that are visited are those that an
    /// operator has after `f` changed it. O(operators).
    pub fn walk_mut(&mut self, f: &mut dyn FnMut(&mut Self)) {
        let (mut next, mut open) = (Some(self), vec![]);
        while let Some(op) = next {
            f(op);
            let first = open.len();
            op.each_input_mut(&mut |i| open.push(i));
            open[first..].reverse();
            next = open.pop();
        }
    }

    /// Drops the operator and everything below it without recursion, leaving [`Self::nothing`]: a chain of operators
    /// may be too long for recursive drops.
    pub fn dismantle(&mut self) {
        let (mut next, mut open) = (Some(self.take()), vec![]);
        while let Some(mut op) = next {
            op.each_input_mut(&mut |i| open.push(i.take()));
            next = open.pop();
        }
    }

    /// Name in profiles: the kind of operator, in one or two words.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.facts().name()
    }

    /// Slots that the operator binds by itself.
    pub(crate) fn binds(&self, f: &mut dyn FnMut(Slot)) {
        self.facts().binds(f);
    }

    /// Slots that the operator or one below it binds. O(operators).
    pub(crate) fn bound(&self) -> SlotSet {
        let mut out = SlotSet::default();
        self.walk(&mut |op| {
            op.binds(&mut |s| out.insert(s));
            Walk::Into
        });
        out
    }

    /// The outer columns that the inner part of an `Apply` reads, each once, in ascending order. O(operators).
    #[must_use]
    pub fn outer_slots(&self) -> Vec<Slot> {
        let mut out: Vec<Slot> = Vec::new();
        self.walk(&mut |op| {
            out.extend(op.facts().outer_slots());
            Walk::Independent
        });
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Slots that leaves inside the inner part of an `Apply` bind independently of the outer row. If such a slot is
    /// unbound in the outer row, the leaf's value is used. O(operators × columns).
    #[must_use]
    pub fn made_slots(&self) -> Vec<Slot> {
        let mut out: Vec<Slot> = Vec::new();
        let mut open = vec![self];
        while let Some(op) = open.pop() {
            let mut leaf = true;
            op.each_input(&mut |role, i| {
                leaf = false;
                if role != InputRole::DependentSought {
                    open.push(i);
                }
            });
            if leaf && !matches!(op, Self::Outer(_)) {
                out.extend(op.layout(&[]));
            }
        }
        out
    }

    /// The columns of the operator's rows, as far as the planner knows them. Recursive.
    pub(crate) fn columns(&self) -> SlotSet {
        self.facts().columns()
    }

    /// Slots of the operator's rows, in the order of the engine's columns. `outer` are the slots of the rows of the
    /// nearest enclosing `Apply`. Recursive.
    #[must_use]
    pub fn layout(&self, outer: &[Slot]) -> Vec<Slot> {
        self.facts().layout(outer)
    }

    /// Returns true if the planner has proved that the operator returns no rows for any outer row. Then the columns
    /// that operators above read may be missing. Recursive.
    #[must_use]
    pub fn is_never(&self) -> bool {
        self.facts().is_never()
    }

    /// True if the inner part of an `Apply` can process many outer rows together, since each of its rows depends on a
    /// single outer row.
    #[must_use]
    pub fn is_row_wise(&self) -> bool {
        let mut all = true;
        self.walk(&mut |op| {
            let facts = op.facts();
            if !all || facts.is_never_by_itself() {
                return Walk::Past;
            }
            all &= facts.is_by_row();
            Walk::Independent
        });
        all
    }

    /// True if the operator returns rows before it has consumed all of its input.
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        let mut open = vec![self];
        while let Some(op) = open.pop() {
            if !op.facts().streams() {
                return false;
            }
            op.each_input(&mut |role, i| {
                if role == InputRole::Streams {
                    open.push(i);
                }
            });
        }
        true
    }

    /// Returns true if the operator's rows have a defined order.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        let mut at = Some(self);
        while let Some(op) = at {
            match op.facts().order() {
                Order::Makes => return true,
                Order::Loses => return false,
                Order::Keeps => at = op.inputs().first().copied(),
            }
        }
        false
    }

    /// The only exploration of a plan that is a chain of operators with one input each; `None` for other plans.
    #[must_use]
    pub fn exploration(&self) -> Option<&Exploration> {
        let mut at = self;
        loop {
            if let Self::Explore(e) = at {
                return Some(e);
            }
            match (at.inputs().as_slice(), at.facts().explores()) {
                (&[below], false) => at = below,
                _ => return None,
            }
        }
    }
}
