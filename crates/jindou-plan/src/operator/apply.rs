//! Parts that are evaluated for each row of another part: OPTIONAL, EXISTS and the like.

use super::facts::{EachInput, InputRole, OperatorFacts, RowSlots, prune};
use super::{Operator, Walk};
use crate::explain::{ExplainNode, Explainer};
use crate::set::SlotSet;
use crate::{Slot, cost};

/// Kinds of [`Apply`], by the rows that it returns for an outer row and the inner rows found for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyKind {
    /// Returns each inner row, extending the outer row.
    Inner,
    /// Returns each inner row, or, if there is none, the outer row alone (OPTIONAL).
    Left,
    /// Returns the outer row, once, if there is an inner row (EXISTS).
    Semi,
    /// Returns the outer row, once, if there is no inner row (NOT EXISTS, MINUS).
    Anti,
    /// Returns the outer row with `xsd:boolean` in this slot: whether there is an inner row (EXISTS inside an
    /// expression).
    Mark(Slot),
}

impl ApplyKind {
    /// Returns true if an outer row without inner rows is dropped.
    #[must_use]
    pub fn needs_inner(self) -> bool {
        matches!(self, Self::Inner | Self::Semi)
    }

    fn gives_inner(self) -> bool {
        matches!(self, Self::Inner | Self::Left)
    }
}

/// For each row of `input`, evaluates `inner`, which reads the row through [`super::Outer`].
#[derive(Clone, Debug, PartialEq)]
pub struct Apply {
    /// The outer rows.
    pub input: Box<Operator>,
    /// The dependent part. Unless `each_row` is set, it consists of `Outer`, `Steps`, `Path`, `Filter`, `Extend`,
    /// `Union` and `Apply` (whose own input consists of these as well), so that it can run on many outer rows at once.
    pub inner: Box<Operator>,
    /// How the inner rows are used.
    pub kind: ApplyKind,
    /// True if `inner` has operators that process all their rows together (`Group`, `Slice`, `Distinct`, …). The engine
    /// then runs `inner` once per distinct combination of the outer columns that it reads.
    pub each_row: bool,
}

impl Apply {
    /// The slots of its rows, as [`Operator::layout`] gives them.
    #[must_use]
    pub fn slots(&self, outer: &[Slot]) -> Vec<Slot> {
        self.slots_after(self.input.layout(outer))
    }

    /// The slots of its rows, given those of its input.
    #[must_use]
    pub fn slots_after(&self, input: Vec<Slot>) -> Vec<Slot> {
        let mut out = RowSlots::new(input);
        match self.kind {
            ApplyKind::Inner | ApplyKind::Left => out.add_all(self.inner.layout(&out.slots)),
            ApplyKind::Semi | ApplyKind::Anti => {}
            ApplyKind::Mark(to) => out.add(to),
        }
        out.slots
    }
}

/// Columns that the inner part of an `Apply` takes from the outer row.
fn taken(inner: &Operator) -> SlotSet {
    let mut out = SlotSet::default();
    inner.walk(&mut |op| {
        if let Operator::Outer(o) = op {
            o.slots.iter().for_each(|s| out.insert(*s));
        }
        Walk::Independent
    });
    out
}

impl OperatorFacts for Apply {
    fn name(&self) -> &'static str {
        match self.kind {
            ApplyKind::Inner => "apply",
            ApplyKind::Left => "apply, optional",
            ApplyKind::Semi => "apply, exists",
            ApplyKind::Anti => "apply, not exists",
            ApplyKind::Mark(_) => "apply, mark",
        }
    }

    fn each_input<'a>(&'a self, f: &mut EachInput<'_, 'a>) {
        f(InputRole::Streams, &self.input);
        let role = if self.kind.gives_inner() {
            InputRole::Dependent
        } else {
            InputRole::DependentSought
        };
        f(role, &self.inner);
    }

    fn each_input_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Operator)) {
        f(&mut self.input);
        f(&mut self.inner);
    }

    fn binds(&self, f: &mut dyn FnMut(Slot)) {
        if let ApplyKind::Mark(s) = self.kind {
            f(s);
        }
    }

    fn prune(&mut self, wanted: &SlotSet) -> SlotSet {
        let (inner_wanted, compared) = if self.kind.gives_inner() {
            // Slots that both parts bind independently are compared, so both parts must keep them.
            let own = self.inner.bound().minus(&taken(&self.inner));
            let compared = if own.is_empty() {
                own
            } else {
                own.and(&self.input.bound())
            };
            (wanted.or(&compared), compared)
        } else {
            Default::default()
        };
        let used = prune(&mut self.inner, &inner_wanted);
        prune(&mut self.input, &wanted.or(&used).or(&compared))
    }

    fn layout(&self, outer: &[Slot]) -> Vec<Slot> {
        self.slots(outer)
    }

    fn is_never(&self) -> bool {
        self.input.is_never() || (self.kind.needs_inner() && self.inner.is_never())
    }

    fn is_by_row(&self) -> bool {
        true
    }

    fn explain(&self, e: &Explainer<'_>, outer: f64) -> ExplainNode {
        let what = match self.kind {
            ApplyKind::Inner => "for each row".into(),
            ApplyKind::Left => "for each row, if any (OPTIONAL)".into(),
            ApplyKind::Semi => "keep rows with (EXISTS)".into(),
            ApplyKind::Anti => "keep rows without (NOT EXISTS)".into(),
            ApplyKind::Mark(s) => format!("{} = true if there is a match (EXISTS)", e.slot(s)),
        };
        let alone = if self.each_row {
            ", once per outer row"
        } else {
            ""
        };
        let i = e.node(&self.input, outer);
        let b = e.node(&self.inner, if self.each_row { 1.0 } else { i.rows });
        let times = if self.each_row { i.rows.max(1.0) } else { 1.0 };
        let (rows, own) = cost::apply(self.kind, i.rows, b.rows * times);
        ExplainNode {
            text: format!("{what}{alone}"),
            rows,
            cost: i.cost + b.cost * times + own,
            steps: vec![],
            inputs: vec![i, b],
        }
    }
}
