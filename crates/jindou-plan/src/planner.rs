//! Entry point: plans a parsed query for a snapshot.

use crate::build::{OuterSlots, PlanBuilder, Reaches};
use crate::cost::OUT;
use crate::operator::prune;
use crate::resolve::Dataset;
use crate::set::SlotSet;
use crate::validity::WatchedSnapshot;
use crate::{Form, Functions, LIGHT_COST, Plan, Slot, Weight, keyed, semi, translate};
use jindou_graph::Graph;
use jindou_model::{Error, Resource, Result, scope};
use jindou_syntax::algebra::Query;
use std::panic::resume_unwind;

/// Options that the caller chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PlanOptions {
    /// True if patterns outside GRAPH read the union of the default graph and all named graphs.
    pub union_default: bool,
    /// Functions that the query may call by IRI.
    pub functions: Functions,
    /// Version of the store's prefixes with which the query was parsed; part of the plan cache's key.
    pub prefixes: u64,
}

/// Plans a query for one snapshot, within the limits of the [scope] that the thread is inside: all of SPARQL 1.1, and
/// the triple terms of 1.2.
///
/// For each group of patterns, needs O(slots × edges × beam width) estimates. For each variable with several required
/// predicates, also reads those of the planner's characteristic sets that contain one of them. For a join of n parts,
/// makes O(n²) plans of parts.
///
/// # Errors [`Error::Query`] for a function that is neither a cast nor among the options' functions, for wrong
/// arguments of a function, and for an aggregate that SPARQL does not define. [`Error::Unsupported`] for a SERVICE
/// whose variable nothing before it binds, and for more than 65,535 variables. [`Error::Limit`] if a deeply nested
/// query needs a thread with a large stack, and the system cannot start it. The errors of [`scope::look`].
pub fn plan(query: &Query, snapshot: &dyn Graph, options: &PlanOptions) -> Result<Plan> {
    plan_over(query, snapshot, options, false)
}

/// As [`plan`]; with `parameters`, the query may contain placeholders of parameters.
pub(crate) fn plan_over(
    query: &Query,
    snapshot: &dyn Graph,
    options: &PlanOptions,
    parameters: bool,
) -> Result<Plan> {
    let here = || {
        let (plan, bytes) = scope::measure(|| plan_here(query, snapshot, options, parameters));
        let mut plan = plan?;
        plan.bytes = bytes;
        Ok(plan)
    };
    if is_shallow(query) {
        return here();
    }
    std::thread::scope(|s| {
        std::thread::Builder::new()
            .name("plan".into())
            .stack_size(DEEP_STACK)
            .spawn_scoped(s, scope::carry(here))
            .map_err(|e| {
                Error::limit(
                    Resource::Threads,
                    format!("cannot start a thread to plan a deeply nested query: {e}"),
                )
            })?
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Levels of algebra that fit on an ordinary thread's stack; a deeper query is planned on a thread of its own.
const PLAIN_DEPTH: usize = 40;
/// Stack size of that thread; the system allocates only pages that are written to.
const DEEP_STACK: usize = 512 << 20;

/// Cost of a triple of a template, roughly in nanoseconds of one core: building its terms, checking for duplicates, and
/// writing.
const TRIPLE: f64 = 400.0;

fn is_shallow(query: &Query) -> bool {
    crate::algebra::depth_is_within(query.pattern(), PLAIN_DEPTH)
}

fn plan_here(
    query: &Query,
    snapshot: &dyn Graph,
    options: &PlanOptions,
    parameters: bool,
) -> Result<Plan> {
    scope::look()?;
    let logical = translate::translate(query, &options.functions)?;
    let watched = if parameters {
        WatchedSnapshot::with_parameters(snapshot)
    } else {
        WatchedSnapshot::new(snapshot)
    };
    let dataset = Dataset::resolve(logical.dataset.as_ref(), &watched, options);
    let mut builder = PlanBuilder {
        snapshot: &watched,
        dataset: &dataset,
        slots: logical.slots,
        outer: OuterSlots::default(),
        constants: SlotSet::default(),
        reaches: Reaches::default(),
        graphs: None,
        tries: PlanBuilder::tries_for(&logical.root),
        compared: keyed::compared(&logical.root),
    };
    let mut built = match logical.form {
        Form::Select => builder.build_in_order(&logical.root),
        _ => builder.build(&logical.root),
    };
    scope::look()?;
    let slots = builder.slots;
    if slots.len() > usize::from(Slot::MAX) {
        return Err(Error::Unsupported("more than 65,535 variables".into()));
    }
    let wanted: SlotSet = logical.output.iter().copied().collect();
    prune(&mut built.op, &wanted);
    if semi::reduce(&mut built.op, &wanted) {
        prune(&mut built.op, &wanted);
    }
    scope::look()?;
    let made = match &logical.form {
        Form::Construct(template) => template.len() as f64 * TRIPLE,
        _ => 0.0,
    };
    let cost = built.cost + built.rows * (OUT + made);
    Ok(Plan {
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
        validity: watched.validity(),
        bytes: 0,
    })
}
