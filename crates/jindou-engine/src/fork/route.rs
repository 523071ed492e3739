//! Where rows go before a step: to the shard that owns the key of the list that the step reads, or nowhere, if it costs less to ask
//! that shard for the list.

use super::message::ShardMode;
use crate::batch::View;
use jindou_model::Direction;
use jindou_plan::{EdgeList, Operand, Slot, StartSource, Step, StepKind, layout_of};
use jindou_store::Graph;
use jindou_store::shard::Blocks;

/// Rows of a message to another part, where there are so many.
pub(crate) const ROWS_A_MESSAGE: usize = 1 << 13;
/// Nanoseconds that it costs to send a row, and to send an id of it.
const A_ROW: f64 = 30.0;
const AN_ID: f64 = 3.0;
/// Nanoseconds that it costs to ask for a list, and for each neighbour in it.
const A_LIST: f64 = 60.0;
const A_NEIGHBOUR: f64 = 6.0;
/// Waits for another server that a message with rows costs: its own, and that of the report that follows.
const WAITS: f64 = 2.0;

/// The data that decides where rows go before a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Route {
    /// Nowhere: the step reads no shard's edges, or only those of constants.
    Stay,
    /// To the owner of the id in this column.
    Column {
        column: usize,
        /// Mean length of the lists that the step reads there.
        degree: f64,
    },
}

/// Where an exploration's first rows are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Starts {
    /// On every shard, of what it owns.
    Everywhere,
    /// On this one alone.
    On(u32),
    /// Where the query was asked.
    Home,
}

fn degree(graph: &dyn Graph, list: &EdgeList) -> f64 {
    let s = graph.predicate_statistics(list.predicate);
    let keys = match list.direction {
        Direction::Out => s.subjects,
        Direction::In => s.objects,
    };
    (s.edges + s.named_edges) as f64 / f64::from(keys.max(1))
}

/// Different ids that a slot has after some steps, as estimated: as many as there were rows when it was bound, or are now.
fn distinct(steps: &[Step], slot: Slot) -> f64 {
    let bound = steps.iter().position(|s| layout_of(&[], s).contains(&slot));
    let since = steps.get(bound.unwrap_or(0)..).unwrap_or(&[]);
    since.iter().map(|s| s.rows).fold(f64::INFINITY, f64::min)
}

/// The route of rows before a step, with their columns and the steps that they have gone through. Of several lists to intersect, those that
/// would be most to ask for decide; the others are asked for.
pub(crate) fn route(graph: &dyn Graph, layout: &[Slot], before: &[Step], step: &Step) -> Route {
    let column = |o: Operand| match o {
        Operand::Slot(s) => layout.iter().position(|l| *l == s),
        Operand::Const(_) => None,
    };
    let by = |list: &EdgeList| Some((column(list.anchor)?, degree(graph, list)));
    let all_of = |list: &EdgeList| match list.anchor {
        Operand::Slot(s) => distinct(before, s) * degree(graph, list),
        Operand::Const(_) => 0.0,
    };
    let found = match &step.kind {
        StepKind::Expand { lists, .. } => {
            let all = lists.iter().filter(|l| by(l).is_some());
            let most = all.max_by(|a, b| all_of(a).total_cmp(&all_of(b)));
            most.and_then(by)
        }
        StepKind::Check { list, .. } => by(list),
        StepKind::ExpandAny { anchor, .. } => column(*anchor).map(|c| (c, 8.0)),
        StepKind::Start { .. }
        | StepKind::Restrict { .. }
        | StepKind::ScanAll { .. }
        | StepKind::Cross { .. } => None,
    };
    found.map_or(Route::Stay, |(column, degree)| Route::Column {
        column,
        degree,
    })
}

/// The constant whose list a step reads, if it reads no other's.
fn constant(step: &Step) -> Option<u32> {
    let of = |o: Operand| match o {
        Operand::Const(v) => Some(v),
        Operand::Slot(_) => None,
    };
    match &step.kind {
        StepKind::Expand { lists, .. } => lists.iter().find_map(|l| of(l.anchor)),
        StepKind::Check { list, .. } => of(list.anchor),
        StepKind::ExpandAny { anchor, .. } => of(*anchor),
        _ => None,
    }
}

/// Where the first rows of these steps are made; `None` if no shard but this one can make them.
pub(crate) fn starts(blocks: &Blocks, steps: &[Step]) -> Option<Starts> {
    let owner = |v: u32| blocks.place(v).map(|p| Starts::On(p.shard));
    let StepKind::Start { source, within, .. } = &steps.first()?.kind else {
        return None;
    };
    // Ids that updates touched are known to one server only.
    let exact = within.as_ref().is_none_or(|w| w.members.is_empty());
    match source {
        StartSource::IdFilter | StartSource::Keys { .. } => exact.then_some(Starts::Everywhere),
        StartSource::List(list) => match list.anchor {
            Operand::Const(v) => Some(owner(v).unwrap_or(Starts::Home)),
            Operand::Slot(_) => None,
        },
        StartSource::Unit => {
            let at = steps.get(1).and_then(constant).and_then(owner);
            Some(at.unwrap_or(Starts::Home))
        }
        StartSource::Graphs(_) => Some(Starts::Home),
    }
}

/// True if other shards can run the step.
pub(crate) fn is_forkable(step: &Step) -> bool {
    !matches!(step.kind, StepKind::ScanAll { .. } | StepKind::Cross { .. })
        && jindou_plan::wire::is_sendable(step)
}

/// Rounds of a query that has parts, besides those of its rows: it is begun and started, and its parts report and end.
const ROUNDS_OF_PARTS: f64 = 4.0;
/// Nanoseconds of a part's threads and tables.
const A_PART: f64 = 50_000.0;

/// True if an exploration costs less in parts at all shards than here, where the lists of others are asked for.
pub(crate) fn forks(graph: &dyn Graph, shards: u32, steps: &[Step], round: f64) -> bool {
    let shards = f64::from(shards);
    let far = 1.0 - 1.0 / shards;
    let work: f64 = steps.iter().map(|s| s.cost).sum();
    let mut here = work;
    if let Some(first) = steps.first()
        && matches!(
            &first.kind,
            StepKind::Start {
                source: StartSource::Keys { .. },
                ..
            }
        )
    {
        here += round + far * first.rows * A_NEIGHBOUR;
    }
    for two in steps.windows(2) {
        let lists: Vec<&EdgeList> = match &two[1].kind {
            StepKind::Expand { lists, .. } => lists.iter().collect(),
            StepKind::Check { list, .. } => vec![list],
            StepKind::ExpandAny { .. } => {
                here += round + far * two[0].rows * A_LIST;
                continue;
            }
            _ => continue,
        };
        let slots = lists
            .iter()
            .filter(|l| matches!(l.anchor, Operand::Slot(_)));
        for list in slots {
            here += round + far * two[0].rows * (A_LIST + A_NEIGHBOUR * degree(graph, list));
        }
    }
    here > ROUNDS_OF_PARTS * round + shards * A_PART + work / shards
}

/// The choice between sending rows and asking for lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub mode: ShardMode,
    /// Nanoseconds of a request to another server and its answer.
    pub round: f64,
    /// Rows that the step is estimated to get on one shard.
    pub expected: f64,
}

/// The far rows of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FarRows {
    pub rows: usize,
    /// Keys, each once where equal ones follow one another.
    pub keys: usize,
    /// Shards that own them.
    pub owners: usize,
}

impl Choice {
    /// True if rows are sent: of a batch of `rows` with so many columns, those whose keys are far.
    pub fn sends(&self, rows: usize, width: usize, degree: f64, far: FarRows) -> bool {
        match self.mode {
            ShardMode::InPlace => false,
            ShardMode::Fork => true,
            ShardMode::Dynamic => {
                let (asked, sent) = self.costs(rows, width, degree, far);
                sent < asked
            }
        }
    }

    /// Nanoseconds that asking costs, and that sending costs.
    pub fn costs(&self, rows: usize, width: usize, degree: f64, far: FarRows) -> (f64, f64) {
        let asked = self.round + far.keys as f64 * (A_LIST + A_NEIGHBOUR * degree);
        let far_rows = far.rows as f64;
        // A message is shared by all rows that go the same way before it is full.
        let to_come = self.expected * far_rows / rows.max(1) as f64;
        let together = to_come.max(far_rows) / far.owners.max(1) as f64;
        let messages = far_rows / together.clamp(1.0, ROWS_A_MESSAGE as f64);
        let sent = far_rows * (A_ROW + AN_ID * width as f64) + messages * WAITS * self.round;
        (asked, sent)
    }
}

/// The owners of a column's ids, one a row; rows whose ids no shard owns stay. Counts the rows of others than `own`.
pub(crate) fn owners(
    blocks: &Blocks,
    own: u32,
    rows: View<'_>,
    column: usize,
    out: &mut Vec<u8>,
) -> FarRows {
    out.clear();
    let mut far = FarRows::default();
    let mut seen = [0u64; 4];
    let mut last = None;
    for &v in rows.column(column) {
        let owner = blocks.place(v).map_or(own, |p| p.shard) as u8;
        if u32::from(owner) != own {
            far.rows += 1;
            seen[usize::from(owner >> 6)] |= 1 << (owner & 63);
            if last != Some(v) {
                far.keys += 1;
                last = Some(v);
            }
        }
        out.push(owner);
    }
    far.owners = seen.iter().map(|w| w.count_ones() as usize).sum();
    far
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Many far rows of a heavy query are sent; a few rows of a light one never are, whatever a round costs.
    #[test]
    fn the_cheaper_way_is_chosen() {
        let choice = |round, expected| Choice {
            mode: ShardMode::Dynamic,
            round,
            expected,
        };
        let far = |rows| FarRows {
            rows,
            keys: rows,
            owners: 1,
        };
        assert!(choice(100_000.0, 1e6).sends(2048, 3, 1.0, far(245)));
        assert!(!choice(100_000.0, 10.0).sends(10, 2, 1.0, far(5)));
        assert!(!choice(1_000.0, 10.0).sends(10, 2, 1.0, far(5)));
        // Long lists are not asked for.
        assert!(choice(1_000.0, 1e6).sends(2048, 3, 1000.0, far(245)));
        // The mode decides where it is given.
        for (mode, sends) in [(ShardMode::Fork, true), (ShardMode::InPlace, false)] {
            let fixed = Choice {
                mode,
                ..choice(1.0, 1.0)
            };
            assert_eq!(fixed.sends(10, 2, 1.0, far(5)), sends);
        }
    }
}
