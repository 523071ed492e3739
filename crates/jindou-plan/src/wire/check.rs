//! Checks that steps may be sent: their parts must be consistent, as `plan.rs` requires, whatever columns the steps are
//! applied to.
//!
//! The engine indexes by the ends of intervals, searches lists of graphs by bisection and relies on lists being
//! present, without further checks. So both sender and receiver check the steps, and each rejects the same ones.

use super::{MAX_CONDITIONS, MAX_DEPTH};
use crate::condition::well_formed;
use crate::slots::{FIRST_HIDDEN, binds, reads};
use crate::{
    Condition, EdgeList, GraphRef, IdFilter, Intervals, Operand, StartSource, Step, StepKind,
};
use jindou_model::{FIRST_QUERY_ID, NO_VERTEX};

/// The reason why steps cannot be sent to another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "step {step}, counted from 0, cannot be sent to another server: {flaw}; run it on the server that planned it"
)]
pub struct Unsendable {
    /// Position of the step, from 0.
    pub step: usize,
    /// Reason.
    pub flaw: Flaw,
}

/// Reasons why a step is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// A [`Condition::General`].
    #[error("it has a condition that only an expression can compute")]
    Expression,
    /// Conditions nested more deeply than [`MAX_DEPTH`].
    #[error("its conditions nest more than {MAX_DEPTH} levels deep")]
    Depth,
    /// More than [`MAX_CONDITIONS`] conditions.
    #[error("there are more than {MAX_CONDITIONS} conditions up to it")]
    Conditions,
    /// A comparison with a constant that value ranks do not order.
    #[error("it compares with a constant that has no order")]
    Constant,
    /// Intervals that are empty, not ascending, not disjoint, or contain ids that no stored term has.
    #[error("its intervals of ids are not ascending, disjoint and of stored terms")]
    Intervals,
    /// Graphs that are not ascending, 0 where a named graph is required, or a graph variable in the first step.
    #[error("its graphs are not ascending, or of the wrong kind")]
    Graphs,
    /// A start without values, or without a slot to bind.
    #[error("its source does not match its bindings")]
    Source,
    /// No neighbour lists, or several of which one binds graphs.
    #[error("it has no list, or binds graphs from one list of several")]
    Lists,
    /// A slot that is bound twice, both bound and read, or reserved for the engine and bound.
    #[error("it binds a slot twice, a slot that it reads, or a slot from {FIRST_HIDDEN} on")]
    Slots,
    /// An estimate that is below 0 or not a number.
    #[error("its estimated rows or cost are not a number of at least 0")]
    Estimate,
    /// A list with 2^32 members or more.
    #[error("it has a list of more than {} members", u32::MAX)]
    Length,
}

type Checked = Result<(), Flaw>;

fn must(holds: bool, flaw: Flaw) -> Checked {
    if holds { Ok(()) } else { Err(flaw) }
}

/// Checks the steps of a message.
pub(super) fn all(steps: &[Step]) -> Result<(), Unsendable> {
    let mut room = MAX_CONDITIONS;
    for (at, step) in steps.iter().enumerate() {
        let checked = length(steps.len()).and_then(|()| one(step, &mut room));
        checked.map_err(|flaw| Unsendable { step: at, flaw })?;
    }
    Ok(())
}

/// Checks a step. `room` is the number of conditions that are still allowed; the step's conditions are deducted.
pub(super) fn one(step: &Step, room: &mut usize) -> Checked {
    kind(&step.kind)?;
    slots(&step.kind)?;
    length(step.live.len())?;
    conditions(&step.filters, 1, room)?;
    // These comparisons are false for NaN.
    must(step.rows >= 0.0 && step.cost >= 0.0, Flaw::Estimate)
}

fn kind(kind: &StepKind) -> Checked {
    match kind {
        StepKind::Start { to, source, within } => {
            let is_unit = matches!(source, StartSource::Unit);
            must(to.is_none() == is_unit, Flaw::Source)?;
            start(source, within.as_ref())
        }
        StepKind::Cross { source, within, .. } => {
            must(!matches!(source, StartSource::Unit), Flaw::Source)?;
            start(source, within.as_ref())
        }
        StepKind::Expand { lists, within, .. } => {
            let binds = |l: &EdgeList| matches!(l.graph, GraphRef::Bind(..));
            let alone = lists.len() == 1 || !lists.iter().any(binds);
            must(!lists.is_empty() && alone, Flaw::Lists)?;
            length(lists.len())?;
            lists.iter().try_for_each(|l| graphs(&l.graph))?;
            within.iter().try_for_each(id_filter)
        }
        StepKind::Check { list, .. } => graphs(&list.graph),
        StepKind::Restrict { within, .. } => id_filter(within),
        StepKind::ExpandAny { graph, .. } | StepKind::ScanAll { graph, .. } => graphs(graph),
    }
}

fn start(source: &StartSource, within: Option<&IdFilter>) -> Checked {
    within.map_or(Ok(()), id_filter)?;
    match source {
        StartSource::Unit => must(within.is_none(), Flaw::Source),
        StartSource::IdFilter => must(within.is_some(), Flaw::Source),
        StartSource::List(list) => {
            must(matches!(list.anchor, Operand::Const(_)), Flaw::Source)?;
            known_graphs(&list.graph)
        }
        StartSource::Keys { graph, .. } => known_graphs(graph),
        StartSource::Graphs(None) => Ok(()),
        StartSource::Graphs(Some(list)) => ascending(list, NO_VERTEX + 1),
    }
}

/// Checks graphs that must be the same for all rows.
fn known_graphs(graph: &GraphRef) -> Checked {
    let by_row = matches!(graph, GraphRef::Slot(_) | GraphRef::Bind(..));
    must(!by_row, Flaw::Graphs)?;
    graphs(graph)
}

fn graphs(graph: &GraphRef) -> Checked {
    match graph {
        GraphRef::Named(id) => must(*id != NO_VERTEX, Flaw::Graphs),
        // In a set, 0 is the default graph.
        GraphRef::Set(list) => ascending(list, 0),
        GraphRef::Bind(_, Some(list)) => ascending(list, NO_VERTEX + 1),
        GraphRef::Default
        | GraphRef::AnyNamed
        | GraphRef::Union
        | GraphRef::Slot(_)
        | GraphRef::Bind(_, None) => Ok(()),
    }
}

fn ascending(list: &[u32], least: u32) -> Checked {
    length(list.len())?;
    let from_least = list.first().is_none_or(|&id| id >= least);
    must(from_least && list.is_sorted_by(|a, b| a < b), Flaw::Graphs)
}

fn id_filter(within: &IdFilter) -> Checked {
    intervals(&within.intervals)?;
    length(within.members.len())?;
    for member in &within.members {
        intervals(&member.intervals)?;
        if let Some(touched) = &member.touched {
            known_graphs(&touched.graph)?;
        }
    }
    Ok(())
}

/// Adjacent intervals are allowed.
fn intervals(list: &Intervals) -> Checked {
    length(list.len())?;
    let mut end = NO_VERTEX + 1;
    for &[from, to] in list {
        must(end <= from && from < to, Flaw::Intervals)?;
        end = to;
    }
    must(end <= FIRST_QUERY_ID, Flaw::Intervals)
}

/// Must run after [`kind`], which ensures that the step binds few slots.
fn slots(kind: &StepKind) -> Checked {
    let mut bound = Vec::with_capacity(4);
    let mut apart = true;
    binds(kind, &mut |slot| {
        apart &= slot < FIRST_HIDDEN && !bound.contains(&slot);
        bound.push(slot);
    });
    reads(kind, &mut |slot| apart &= !bound.contains(&slot));
    must(apart, Flaw::Slots)
}

/// Checks conditions. `depth` is 1 for a step's filters and grows with the nesting.
fn conditions(list: &[Condition], depth: usize, room: &mut usize) -> Checked {
    must(list.is_empty() || depth <= MAX_DEPTH, Flaw::Depth)?;
    *room = room.checked_sub(list.len()).ok_or(Flaw::Conditions)?;
    for condition in list {
        match condition {
            Condition::Same(..) | Condition::Kind(..) | Condition::Bound(_) => {}
            Condition::Compare(_, _, constant) => {
                length(constant.len())?;
                must(well_formed(constant), Flaw::Constant)?;
            }
            Condition::And(list) | Condition::Or(list) => conditions(list, depth + 1, room)?,
            Condition::Not(inner) => conditions(std::slice::from_ref(inner), depth + 1, room)?,
            Condition::General(_) => return Err(Flaw::Expression),
        }
    }
    Ok(())
}

fn length(members: usize) -> Checked {
    must(u32::try_from(members).is_ok(), Flaw::Length)
}
