//! Calls to other endpoints.

use super::facts::OperatorFacts;
use crate::explain::{ExplainNode, Explainer};
use crate::set::SlotSet;
use crate::weigh::PIECE;
use crate::{Slot, cost, show};
use jindou_syntax::algebra::{NamedNode, Text};

/// Longest IRI of an endpoint, in bytes, that EXPLAIN shows in full.
const LONGEST_SHOWN: usize = 200;

/// The endpoint that SERVICE asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceEndpoint {
    /// The endpoint with this IRI.
    Iri(NamedNode),
    /// The endpoint whose IRI the outer row has in this slot. Only inside the `inner` of a [`super::Apply`] with
    /// `each_row`, which makes one call per distinct endpoint.
    Slot(Slot),
}

/// A call to another endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// The endpoint.
    pub endpoint: ServiceEndpoint,
    /// The query to send: a SELECT whose columns are named like `slots`.
    pub query: String,
    /// Variable and slot of each column.
    pub slots: Vec<(Text, Slot)>,
    /// True for SILENT: one empty row instead of an error.
    pub silent: bool,
}

impl OperatorFacts for Service {
    fn name(&self) -> &'static str {
        "service"
    }

    fn binds(&self, f: &mut dyn FnMut(Slot)) {
        self.slots.iter().for_each(|s| f(s.1));
    }

    fn outer_slots(&self) -> Vec<Slot> {
        match self.endpoint {
            ServiceEndpoint::Iri(_) => vec![],
            ServiceEndpoint::Slot(slot) => vec![slot],
        }
    }

    fn prune(&mut self, _wanted: &SlotSet) -> SlotSet {
        self.outer_slots().into_iter().collect()
    }

    fn own_bytes(&self, held: &mut crate::weigh::CountedTexts) -> u64 {
        let names = self
            .slots
            .iter()
            .map(|s| held.bytes(s.0.as_bytes()) + PIECE);
        self.query.capacity() as u64 + names.sum::<u64>()
    }

    fn explain(&self, e: &Explainer<'_>, _outer: f64) -> ExplainNode {
        let silent = if self.silent { " silently" } else { "" };
        let endpoint = match &self.endpoint {
            // IRIs of endpoints are not shortened like other IRIs, since the host matters.
            ServiceEndpoint::Iri(iri) if iri.as_str().len() <= LONGEST_SHOWN => iri.to_string(),
            ServiceEndpoint::Iri(iri) => show::term(&iri.canonical()),
            ServiceEndpoint::Slot(slot) => format!("the endpoint in {}", e.slot(*slot)),
        };
        ExplainNode::leaf(format!("ask {endpoint}{silent}"), 1_000.0, cost::SERVICE)
    }
}
