//! Inline data.

use super::facts::{EachId, OperatorFacts};
use crate::explain::{ExplainNode, Explainer};
use crate::set::SlotSet;
use crate::{Slot, weigh};
use jindou_syntax::algebra::Canonical;

/// A value of inline data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// UNDEF.
    Unbound,
    /// A vertex of the store.
    Id(u32),
    /// A term that the store lacks, in canonical bytes; the engine gives it a query-local id.
    Term(Canonical),
}

/// Inline data: rows with one cell per slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// The slots of the columns.
    pub slots: Vec<Slot>,
    /// Rows.
    pub rows: Vec<Vec<Cell>>,
}

impl OperatorFacts for Values {
    fn name(&self) -> &'static str {
        "values"
    }

    fn binds(&self, f: &mut dyn FnMut(Slot)) {
        self.slots.iter().for_each(|s| f(*s));
    }

    fn prune(&mut self, _wanted: &SlotSet) -> SlotSet {
        SlotSet::default()
    }

    fn layout(&self, _outer: &[Slot]) -> Vec<Slot> {
        self.slots.clone()
    }

    fn is_never_by_itself(&self) -> bool {
        self.rows.is_empty()
    }

    fn each_id(&mut self, f: &mut EachId<'_>) {
        for cell in self.rows.iter_mut().flatten() {
            if let Cell::Id(id) = cell {
                f(id, false);
            }
        }
    }

    fn own_bytes(&self, held: &mut crate::weigh::CountedTexts) -> u64 {
        let row = |r: &Vec<Cell>| {
            let terms = r.iter().map(|c| match c {
                Cell::Term(t) => held.canonical(t),
                Cell::Unbound | Cell::Id(_) => 0,
            });
            weigh::list::<Cell>(r.capacity()) + terms.sum::<u64>()
        };
        weigh::list::<Slot>(self.slots.len())
            + weigh::list::<Vec<Cell>>(self.rows.capacity())
            + self.rows.iter().map(row).sum::<u64>()
    }

    fn explain(&self, e: &Explainer<'_>, _outer: f64) -> ExplainNode {
        let n = self.rows.len();
        let plural = if n == 1 { "" } else { "s" };
        let text = format!("values {}: {n} row{plural}", e.slots(&self.slots));
        ExplainNode::leaf(text, n as f64, n as f64)
    }
}
