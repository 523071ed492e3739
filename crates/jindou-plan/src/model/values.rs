//! Sample values of slots, on which comparisons are tried to estimate their selectivity.

use crate::resolve::{Resolved, ResolvedPredicate, ResolvedTerm};
use crate::{Slot, ask, sample};
use jindou_dictionary::index::Question;
use jindou_graph::Graph;
use jindou_model::Direction;

/// Largest number of comparisons per group of patterns whose share is measured; others get a default estimate.
const MOST_TRIED: usize = 64;

/// Sample values of the slots that comparisons read, each read when first needed.
pub(super) struct SampleValues<'a> {
    resolved: &'a Resolved,
    graph: &'a dyn Graph,
    read: Vec<(Slot, Vec<u32>)>,
    tried: usize,
}

impl<'a> SampleValues<'a> {
    pub fn new(resolved: &'a Resolved, graph: &'a dyn Graph) -> Self {
        Self {
            resolved,
            graph,
            read: vec![],
            tried: 0,
        }
    }

    /// Estimated share of a slot's values for which a comparison holds; `None` if there are no sample values, or no
    /// index can answer.
    pub fn share(&mut self, slot: Slot, question: &Question<'_>) -> Option<f64> {
        self.tried += 1;
        if self.tried > MOST_TRIED {
            return None;
        }
        let at = match self.read.iter().position(|(s, _)| *s == slot) {
            Some(at) => at,
            None => {
                self.read.push((slot, self.read_values(slot)));
                self.read.len() - 1
            }
        };
        ask::share(question, &self.read[at].1, self.graph)
    }

    /// A sample of the base's objects of the first edge with a known predicate that has the slot as its object.
    fn read_values(&self, slot: Slot) -> Vec<u32> {
        let named = self.resolved.named.as_deref();
        let values = self.resolved.edges.iter().find_map(|e| {
            let (ResolvedPredicate::Known(p), true) =
                (e.predicate, e.object == ResolvedTerm::Slot(slot))
            else {
                return None;
            };
            let read = e.graph_ref(named);
            let (view, scope) = (self.graph.edges(p, Direction::Out), read.scope()?);
            let segment = view
                .plain(scope)
                .or_else(|| view.plain_but_dirty(scope).map(|x| x.0))?;
            Some(sample::values(&segment))
        });
        values.unwrap_or_default()
    }
}
