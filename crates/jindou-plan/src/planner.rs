//! The front door: a parsed query and a snapshot in, a plan out.

use crate::build::{Builder, OuterRow};
use crate::cost::OUT;
use crate::resolve::Dataset;
use crate::set::SlotSet;
use crate::{LIGHT_COST, Plan, Slot, Weight, liveness, translate};
use jindou_model::{Error, Result};
use jindou_store::Snapshot;

/// What the caller chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PlanOptions {
    /// Patterns outside GRAPH look at the default graph and all named graphs merged.
    pub union_default: bool,
}

/// How a query will run.
// There is one a query, behind an `Arc`: the size of the smaller variant matters to nobody.
#[expect(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum Planned {
    /// By exploration.
    Native(Plan),
    /// Through `spareval` over the same store; the text says what is not native yet.
    Other(String),
}

/// Plans a query for one snapshot.
///
/// Native is all of SPARQL 1.1 but SERVICE with a variable for its endpoint and aggregates that only an IRI names;
/// triple terms with variables in patterns (SPARQL 1.2) are [`Planned::Other`] too.
///
/// Takes O(slots × edges × beam) estimates for each group of patterns plus, for each variable with several required
/// predicates, the planner's characteristic sets that have one of them; a join of n parts plans O(n²) of them.
///
/// # Errors
/// [`jindou_model::Error::Internal`] when a query that nests deeply gets no thread with a stack for it.
pub fn plan(
    query: &spargebra::Query,
    snapshot: &Snapshot,
    options: &PlanOptions,
) -> Result<Planned> {
    if is_shallow(query) {
        return Ok(plan_here(query, snapshot, options));
    }
    std::thread::scope(|s| {
        std::thread::Builder::new()
            .name("plan".into())
            .stack_size(DEEP_STACK)
            .spawn_scoped(s, || plan_here(query, snapshot, options))
            .map_err(|e| Error::Internal(format!("no thread to plan a deep query: {e}")))?
            .join()
            .map_err(|_| Error::Internal("the planner panicked".into()))
    })
}

/// Levels of algebra that an ordinary thread's stack surely holds; a deeper query gets its own thread.
const PLAIN_DEPTH: usize = 40;
/// Stack of that thread; only touched pages cost memory.
const DEEP_STACK: usize = 512 << 20;

fn is_shallow(query: &spargebra::Query) -> bool {
    use spargebra::Query;
    let (Query::Select { pattern, .. }
    | Query::Ask { pattern, .. }
    | Query::Construct { pattern, .. }
    | Query::Describe { pattern, .. }) = query;
    crate::translate::depth_is_within(pattern, PLAIN_DEPTH)
}

fn plan_here(query: &spargebra::Query, snapshot: &Snapshot, options: &PlanOptions) -> Planned {
    let logical = match translate::of(query) {
        Ok(l) => l,
        Err(reason) => return Planned::Other(reason),
    };
    let dataset = Dataset::of(logical.dataset.as_ref(), snapshot, options);
    let mut builder = Builder {
        snapshot,
        dataset: &dataset,
        slots: logical.slots,
        outer: OuterRow::default(),
        graphs: None,
    };
    let mut built = builder.build(&logical.root);
    let slots = builder.slots;
    if slots.len() > usize::from(Slot::MAX) {
        return Planned::Other("more than 65,535 variables".into());
    }
    let wanted: SlotSet = logical.output.iter().copied().collect();
    liveness::prune(&mut built.op, &wanted);
    let cost = built.cost + built.rows * OUT;
    Planned::Native(Plan {
        form: logical.form,
        slots,
        output: logical.output,
        columns: logical.columns,
        root: built.op,
        cost,
        weight: if cost < LIGHT_COST {
            Weight::Light
        } else {
            Weight::Heavy
        },
        epoch: snapshot.base().epoch(),
        snapshot: snapshot.number(),
    })
}
