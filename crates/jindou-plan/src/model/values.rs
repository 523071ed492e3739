//! Values that the slots of a group may have, to try comparisons on.

use crate::resolve::{Node, Predicate, Resolved};
use crate::{Slot, ask, sample};
use jindou_dictionary::index::Question;
use jindou_graph::Graph;
use jindou_model::Direction;

/// Largest number of comparisons that are tried for a group; the shares of others are guessed.
const MOST_TRIED: usize = 64;

/// Some values of each slot that is compared, read when first asked for.
pub(super) struct Values<'a> {
    resolved: &'a Resolved,
    graph: &'a dyn Graph,
    read: Vec<(Slot, Vec<u32>)>,
    tried: usize,
}

impl<'a> Values<'a> {
    pub fn new(resolved: &'a Resolved, graph: &'a dyn Graph) -> Self {
        Self {
            resolved,
            graph,
            read: vec![],
            tried: 0,
        }
    }

    /// The estimated share of a slot's values for which a comparison holds; `None` if nothing is known of them.
    pub fn share(&mut self, slot: Slot, question: &Question<'_>) -> Option<f64> {
        self.tried += 1;
        if self.tried > MOST_TRIED {
            return None;
        }
        let at = match self.read.iter().position(|(s, _)| *s == slot) {
            Some(at) => at,
            None => {
                self.read.push((slot, self.of(slot)));
                self.read.len() - 1
            }
        };
        ask::share(question, &self.read[at].1, self.graph)
    }

    /// Objects in the base of the first edge with a known predicate that ends in the slot.
    fn of(&self, slot: Slot) -> Vec<u32> {
        let named = self.resolved.named.as_deref();
        let values = self.resolved.edges.iter().find_map(|e| {
            let (Predicate::Known(p), true) = (e.predicate, e.object == Node::Slot(slot)) else {
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
