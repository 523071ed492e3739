//! The front door: a parsed query and a snapshot in, a plan out.

use crate::emit::Emitter;
use crate::logical::{self, Logical};
use crate::model::Model;
use crate::{Exploration, Form, LIGHT_COST, Operator, Plan, Slot, Weight, resolve, search};
use jindou_model::Result;
use jindou_store::Snapshot;

/// What the caller chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PlanOptions {
    /// Patterns outside GRAPH look at the default graph and all named graphs merged.
    pub union_default: bool,
}

/// How a query will run.
#[derive(Clone, Debug, PartialEq)]
pub enum Planned {
    /// By exploration.
    Native(Plan),
    /// Through `spareval` over the same store; the text says what is not native yet.
    Other(String),
}

/// Plans a query for one snapshot.
///
/// Native are SELECT and ASK over one group of triple patterns (joined groups, GRAPH, FROM, variable predicates,
/// FILTER without EXISTS and without functions whose value is not a function of the row), with DISTINCT, REDUCED,
/// ORDER BY variables, LIMIT, OFFSET, COUNT and GROUP BY variables. Everything else is [`Planned::Other`].
///
/// Takes O(slots × edges × beam) estimates plus, for each variable with several required predicates, the planner's
/// characteristic sets that have one of them.
///
/// # Errors
/// None today; the signature leaves room for limits.
pub fn plan(
    query: &spargebra::Query,
    snapshot: &Snapshot,
    options: &PlanOptions,
) -> Result<Planned> {
    let logical = match logical::of(query) {
        Ok(l) => l,
        Err(reason) => return Ok(Planned::Other(reason)),
    };
    let resolved = match resolve::resolve(&logical, snapshot, options) {
        Ok(r) => r,
        Err(reason) => return Ok(Planned::Other(reason)),
    };
    let resolved = match resolved {
        Ok(r) => r,
        Err(why) => return Ok(Planned::Native(finish(&logical, snapshot, nothing(why)))),
    };
    let stars = match resolve::stars(&resolved, snapshot, &logical.slots) {
        Ok(s) => s,
        Err(why) => return Ok(Planned::Native(finish(&logical, snapshot, nothing(why)))),
    };
    let model = Model::new(&resolved, snapshot, stars);
    let mut need = model.masks.iter().fold(0u128, |a, m| a | m);
    for slot in resolved
        .any_graph
        .iter()
        .chain(resolved.classes.iter().map(|c| &c.0))
    {
        need |= 1 << slot;
    }
    let moves = search::order(&model, need);
    let mut slots = logical.slots.clone();
    let mut emitter = Emitter::new(&model, snapshot, &mut slots);
    let (rows, cost) = emitter.run(&moves);
    let wanted = wanted(&logical) & need;
    emitter.liveness(wanted);
    let steps = emitter.steps;
    if slots.len() > 128 {
        return Ok(Planned::Other("too many variables".into()));
    }
    let found = Found {
        exploration: Exploration { steps, empty: None },
        slots,
        bound: need,
        rows,
        cost,
    };
    Ok(Planned::Native(finish(&logical, snapshot, found)))
}

struct Found {
    exploration: Exploration,
    slots: Vec<String>,
    /// Slots that the exploration binds.
    bound: u128,
    rows: f64,
    cost: f64,
}

fn nothing(why: String) -> Found {
    let exploration = Exploration {
        steps: vec![],
        empty: Some(why),
    };
    Found {
        exploration,
        slots: vec![],
        bound: 0,
        rows: 0.0,
        cost: 0.0,
    }
}

/// Slots that are read above the exploration.
fn wanted(logical: &Logical) -> u128 {
    let mut mask = 0u128;
    let mut want = |s: &Slot| mask |= 1 << s;
    match &logical.group {
        Some((by, counts)) => {
            by.iter().for_each(&mut want);
            for c in counts {
                c.of.iter().for_each(&mut want);
                c.row.iter().for_each(&mut want);
            }
        }
        None => {
            logical.output.iter().for_each(&mut want);
            logical.order.iter().map(|o| &o.0).for_each(&mut want);
        }
    }
    mask
}

fn finish(logical: &Logical, snapshot: &Snapshot, found: Found) -> Plan {
    /// Nanoseconds a row: a hash table's probe, a comparison in a sort, a row handed out.
    const HASH: f64 = 10.0;
    const SORT: f64 = 4.0;
    const OUT: f64 = 1.0;
    let Found {
        exploration,
        mut slots,
        bound,
        mut rows,
        mut cost,
    } = found;
    if slots.is_empty() {
        slots.clone_from(&logical.slots);
    }
    let empty = exploration.empty.is_some();
    let mut root = Operator::Explore(exploration);
    let mut visible = bound;
    if let Some((group, counts)) = &logical.group {
        cost += rows
            * if group.is_empty() && counts.iter().all(|c| !c.distinct) {
                OUT
            } else {
                HASH
            };
        rows = if group.is_empty() { 1.0 } else { rows.sqrt() };
        visible = 0;
        for s in group.iter().chain(counts.iter().map(|c| &c.to)) {
            visible |= 1 << s;
        }
        root = Operator::Count {
            input: Box::new(root),
            group: group.clone(),
            counts: counts.clone(),
        };
    }
    let mut blocking = logical.group.is_some();
    if logical.distinct {
        let mut by: Vec<Slot> = vec![];
        for &s in &logical.output {
            if (visible >> s & 1 == 1 || empty) && !by.contains(&s) {
                by.push(s);
            }
        }
        cost += rows * HASH;
        root = Operator::Distinct(Box::new(root), by);
    }
    if !logical.order.is_empty() {
        cost += rows * SORT * (2.0 + rows).log2();
        blocking = true;
        root = Operator::OrderBy(Box::new(root), logical.order.clone());
    }
    let mut slice = logical.slice;
    if logical.ask {
        // One row is an answer.
        let (offset, limit) = slice.unwrap_or((0, None));
        slice = Some((offset, Some(limit.map_or(1, |l| l.min(1)))));
    }
    if let Some((offset, limit)) = slice {
        if let (Some(limit), false) = (limit, blocking) {
            // The pipeline stops when it has enough.
            let share = (offset.saturating_add(limit) as f64 / rows.max(1.0)).min(1.0);
            cost *= share;
            rows *= share;
        }
        root = Operator::Slice {
            input: Box::new(root),
            offset,
            limit,
        };
    }
    cost += rows * OUT;
    Plan {
        form: if logical.ask { Form::Ask } else { Form::Select },
        slots,
        output: logical.output.clone(),
        root,
        cost,
        weight: if cost < LIGHT_COST {
            Weight::Light
        } else {
            Weight::Heavy
        },
        epoch: snapshot.base().epoch(),
        snapshot: snapshot.number(),
    }
}
