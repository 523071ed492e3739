//! Routing of rows before a step: each row is sent to the shard that owns the edge list that the step reads, unless
//! requesting the list from that shard costs less.

use super::message::ShardMode;
use crate::batch::View;
use jindou_graph::Graph;
use jindou_graph::shard::Blocks;
use jindou_graph::statistics::HeavyKey;
use jindou_model::{Direction, invariant};
use jindou_plan::{EdgeList, IdFilter, Operand, Slot, StartSource, Step, StepKind};

/// Largest number of rows in a message to another part.
pub(crate) const ROWS_A_MESSAGE: usize = 1 << 13;
/// Estimated nanoseconds for sending a row, and for each id in it.
const A_ROW: f64 = 30.0;
const AN_ID: f64 = 3.0;
/// Estimated nanoseconds for requesting an edge list, and for each neighbour in it.
const A_LIST: f64 = 60.0;
const A_NEIGHBOUR: f64 = 6.0;
/// Round trips per message with rows: one to the other part, and one for the report to the coordinator.
const WAITS: f64 = 2.0;

/// A column by which rows can be routed before a step: the owner of the column's id has edge lists that the step reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Route<'g> {
    pub column: usize,
    /// Number of edge lists that the step reads at the owner.
    pub lists: f64,
    /// Mean total length of these lists for one row.
    pub degree: f64,
    /// For each list: the keys with long lists (heavy keys), and the fraction of their neighbours that the step's
    /// condition accepts.
    pub heavy: Vec<(&'g [HeavyKey], f64)>,
}

/// The shards at which an exploration's start rows are produced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Starts {
    /// On every shard, from the data that it owns.
    Everywhere,
    /// On one shard.
    On(u32),
    /// On the coordinator's shard.
    Home,
}

fn size(within: &IdFilter) -> f64 {
    let runs = within.intervals.iter();
    runs.map(|r| f64::from(r[1].saturating_sub(r[0]))).sum()
}

/// Number of keys that have such a list, and number of distinct neighbours in all these lists; both at least 1.
fn ends(graph: &dyn Graph, list: &EdgeList) -> [f64; 2] {
    let s = graph.predicate_statistics(list.predicate);
    let ends = [f64::from(s.subjects.max(1)), f64::from(s.objects.max(1))];
    match list.direction {
        Direction::Out => ends,
        Direction::In => [ends[1], ends[0]],
    }
}

/// Estimated fraction of a list's neighbours that a step's condition accepts, without reading the list.
fn passing(graph: &dyn Graph, list: &EdgeList, within: Option<&IdFilter>) -> f64 {
    let [_, neighbours] = ends(graph, list);
    within.map_or(1.0, |w| (size(w) / neighbours).min(1.0))
}

/// Mean number of accepted neighbours in one key's list.
fn degree(graph: &dyn Graph, list: &EdgeList, within: Option<&IdFilter>) -> f64 {
    let s = graph.predicate_statistics(list.predicate);
    let [keys, _] = ends(graph, list);
    (s.edges + s.named_edges) as f64 / keys * passing(graph, list, within)
}

/// The routes for rows with these columns before a step. Empty if the step reads no edges, or only those of constants.
pub(crate) fn routes<'g>(graph: &'g dyn Graph, layout: &[Slot], step: &Step) -> Vec<Route<'g>> {
    let mut routes: Vec<Route<'g>> = Vec::new();
    let mut reads = |anchor: Operand, degree: f64, heavy: Option<(&'g [HeavyKey], f64)>| {
        let Operand::Slot(slot) = anchor else {
            return;
        };
        let Some(column) = layout.iter().position(|l| *l == slot) else {
            return;
        };
        match routes.iter_mut().find(|r| r.column == column) {
            Some(r) => {
                r.lists += 1.0;
                r.degree += degree;
                r.heavy.extend(heavy);
            }
            None => routes.push(Route {
                column,
                lists: 1.0,
                degree,
                heavy: heavy.into_iter().collect(),
            }),
        }
    };
    let mut read = |list: &EdgeList, within| {
        let heavy = graph
            .statistics()
            .heavy_keys(list.predicate.0, list.direction);
        let heavy = (!heavy.is_empty()).then(|| (heavy, passing(graph, list, within)));
        reads(list.anchor, degree(graph, list, within), heavy);
    };
    match &step.kind {
        StepKind::Expand { lists, within, .. } => {
            for list in lists {
                read(list, within.as_ref());
            }
        }
        StepKind::Check { list, .. } => read(list, None),
        StepKind::ExpandAny { anchor, .. } => reads(*anchor, 8.0, None),
        StepKind::Start { .. }
        | StepKind::Restrict { .. }
        | StepKind::ScanAll { .. }
        | StepKind::Cross { .. } => {}
    }
    routes
}

/// The constant whose list a step reads, if it reads only that list; otherwise `None`.
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

/// Where the start rows of these steps are produced; `None` if only this shard can produce them.
pub(crate) fn starts(blocks: &Blocks, steps: &[Step]) -> Option<Starts> {
    let owner = |v: u32| blocks.place(v).map(|p| Starts::On(p.shard));
    let StepKind::Start { source, .. } = &steps.first()?.kind else {
        return None;
    };
    match source {
        StartSource::IdFilter | StartSource::Keys { .. } => Some(Starts::Everywhere),
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

/// True if other shards can execute the step.
pub(crate) fn is_forkable(step: &Step) -> bool {
    !matches!(step.kind, StepKind::ScanAll { .. } | StepKind::Cross { .. })
        && jindou_plan::wire::is_sendable(step)
}

/// Round trips of a query that is executed in parts, besides those for its rows: begin, start, report and end.
const ROUNDS_OF_PARTS: f64 = 4.0;
/// Nanoseconds for creating a part's threads and tables.
const A_PART: f64 = 50_000.0;

/// Estimated nanoseconds of an exploration in two ways: executed here, requesting lists from other shards, and executed
/// in parts at all shards. A round trip to another server takes `round`, and reading a list from it `reading`.
pub(crate) fn costs(
    graph: &dyn Graph,
    shards: u32,
    steps: &[Step],
    [round, reading]: [f64; 2],
) -> [f64; 2] {
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
        let (lists, within): (Vec<&EdgeList>, _) = match &two[1].kind {
            StepKind::Expand { lists, within, .. } => (lists.iter().collect(), within.as_ref()),
            StepKind::Check { list, .. } => (vec![list], None),
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
            here +=
                reading + far * two[0].rows * (A_LIST + A_NEIGHBOUR * degree(graph, list, within));
        }
    }
    [
        here,
        ROUNDS_OF_PARTS * round + shards * A_PART + work / shards,
    ]
}

/// Chooses between sending rows and requesting edge lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListsOrRows {
    pub mode: ShardMode,
    /// Nanoseconds of a request to another server and its answer.
    pub round: f64,
    /// Nanoseconds for reading a list of another server: a round trip, or less if its memory can be read directly.
    pub list: f64,
    /// Expected number of rows that arrive at the step on one shard.
    pub expected: f64,
    /// Estimated fraction of ids that other shards own.
    pub elsewhere: f64,
}

/// Statistics of the far rows of a batch: those that a route would send to another shard.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FarRows {
    pub rows: usize,
    /// Number of keys of the far rows; consecutive equal keys count once.
    pub keys: usize,
    /// Number of keys of all rows of the batch, counted in the same way.
    pub all_keys: usize,
    /// Number of shards that own the far rows' keys.
    pub owners: usize,
    /// Number of neighbours of those keys of the far rows that are heavy.
    pub heavy: f64,
}

impl ListsOrRows {
    /// Chooses the route for a batch of `rows` rows with `width` columns; `far` has each route's statistics. `None` if
    /// all rows stay here and lists are requested. If the step intersects several lists, those that the chosen owner
    /// does not have are requested in any case.
    pub fn choose(
        &self,
        rows: usize,
        width: usize,
        routes: &[Route<'_>],
        far: &[FarRows],
    ) -> Option<usize> {
        if self.mode == ShardMode::InPlace || far.iter().all(|f| f.rows == 0) {
            return None;
        }
        let near = far.iter().any(|f| f.rows == 0);
        if self.mode == ShardMode::Fork && near {
            return None;
        }
        // Cost of requesting lists. A heavy key's list is requested as a whole, even if the step's condition rejects
        // most of it.
        let asked = |route: &Route<'_>, keys: f64, heavy: f64| match keys {
            0.0 => 0.0,
            _ => {
                let lists = keys * (A_LIST * route.lists + A_NEIGHBOUR * route.degree);
                self.list + lists + A_NEIGHBOUR * heavy
            }
        };
        let each = || routes.iter().zip(far);
        let others = |at: usize| -> f64 {
            let others = each().enumerate().filter(|(i, _)| *i != at);
            others
                .map(|(_, (r, f))| asked(r, f.all_keys as f64 * self.elsewhere, f.heavy))
                .sum()
        };
        let send = |(at, (_, f)): (usize, (&Route<'_>, &FarRows))| {
            (at, self.send(rows, width, *f) + others(at))
        };
        let (at, cost) = each()
            .enumerate()
            .filter(|(_, (_, f))| f.rows > 0)
            .map(send)
            .min_by(|a, b| a.1.total_cmp(&b.1))?;
        let stay: f64 = each().map(|(r, f)| asked(r, f.keys as f64, f.heavy)).sum();
        (self.mode == ShardMode::Fork || cost < stay).then_some(at)
    }

    /// Estimated nanoseconds for sending the far rows of a batch.
    fn send(&self, rows: usize, width: usize, far: FarRows) -> f64 {
        let far_rows = far.rows as f64;
        // A message's cost is shared by all rows to the same destination that arrive before it is full.
        let to_come = self.expected * far_rows / rows.max(1) as f64;
        let together = to_come.max(far_rows) / far.owners.max(1) as f64;
        let messages = far_rows / together.clamp(1.0, ROWS_A_MESSAGE as f64);
        far_rows * (A_ROW + AN_ID * width as f64) + messages * WAITS * self.round
    }
}

/// Writes the owner of each row's id to `out`, and `own` for ids that no shard owns. Returns the number of rows of
/// other owners than `own`.
pub(crate) fn owners(
    blocks: &Blocks,
    own: u32,
    rows: View<'_>,
    column: usize,
    out: &mut Vec<u8>,
) -> usize {
    let own = own as u8;
    out.clear();
    let ids = rows.column(column).iter();
    out.extend(ids.map(|&v| blocks.owner(v).unwrap_or(own)));
    out.iter().map(|&o| usize::from(o != own)).sum()
}

/// Size of the sample for [`far_rows`]: this many groups, of this many consecutive rows each.
const RUNS: usize = 16;
const RUN: usize = 16;

/// Estimates the far rows of a batch for one route, from a sample.
pub(crate) fn far_rows(blocks: &Blocks, own: u32, rows: View<'_>, route: &Route<'_>) -> FarRows {
    let ids = rows.column(route.column);
    let mut far = FarRows::default();
    let mut seen = [0u64; 4];
    let mut looked = 0;
    let mut last = None;
    for part in ids.chunks(ids.len().div_ceil(RUNS).max(RUN)) {
        for &v in part.iter().take(RUN) {
            let new = last.replace(v) != Some(v);
            looked += 1;
            far.all_keys += usize::from(new);
            if let Some(owner) = blocks.owner(v).filter(|&o| u32::from(o) != own) {
                far.rows += 1;
                far.keys += usize::from(new);
                if new && !route.heavy.is_empty() {
                    far.heavy += neighbours_of(v, &route.heavy);
                }
                seen[usize::from(owner >> 6)] |= 1 << (owner & 63);
            }
        }
    }
    far.owners = seen.iter().map(|w| w.count_ones() as usize).sum();
    for n in [&mut far.rows, &mut far.keys, &mut far.all_keys] {
        *n = *n * ids.len() / looked.max(1);
    }
    far.heavy *= ids.len() as f64 / looked.max(1) as f64;
    far
}

/// Total number of a key's neighbours in those lists in which the key is heavy.
fn neighbours_of(v: u32, heavy: &[(&[HeavyKey], f64)]) -> f64 {
    let one = |&(keys, passing): &(&[HeavyKey], f64)| {
        let at = keys.binary_search_by_key(&v, |h| h.key).ok()?;
        Some(f64::from(keys.get(at)?.edges) * passing)
    };
    heavy.iter().filter_map(one).sum()
}

/// Row numbers, sorted by the shards that own the rows.
#[derive(Debug, Default)]
pub(crate) struct ByOwner {
    rows: Vec<u32>,
    /// For each shard, the end of its row numbers in `rows`.
    ends: Vec<u32>,
}

impl ByOwner {
    /// Sorts the rows by `owners`. Rows of one shard keep their order.
    pub fn sort(&mut self, owners: &[u8], shards: usize) {
        self.ends.clear();
        self.ends.resize(shards, 0);
        self.rows.clear();
        self.rows.resize(owners.len(), 0);
        let mut counts = [0u32; 256];
        for &o in owners {
            counts[usize::from(o)] += 1;
        }
        let others = &counts[shards..];
        invariant!(
            others.iter().all(|&n| n == 0),
            "each row's owner is a shard"
        );
        let mut sum = 0;
        for (next, n) in self.ends.iter_mut().zip(counts) {
            *next = sum;
            sum += n;
        }
        for (row, &o) in (0..).zip(owners) {
            let next = &mut self.ends[usize::from(o)];
            self.rows[*next as usize] = row;
            *next += 1;
        }
    }

    /// The rows of a shard, ascending.
    pub fn of_shard(&self, shard: u32) -> &[u32] {
        let shard = shard as usize;
        let end = |s: usize| self.ends[s] as usize;
        let from = shard.checked_sub(1).map_or(0, end);
        &self.rows[from..end(shard)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_by_owner() {
        let mut by = ByOwner::default();
        by.sort(&[2, 0, 2, 2, 0], 4);
        let of = |shard| by.of_shard(shard).to_vec();
        assert_eq!(
            [of(0), of(1), of(2), of(3)],
            [vec![1, 4], vec![], vec![0, 2, 3], vec![]]
        );
        by.sort(&[1], 2);
        assert_eq!((by.of_shard(0), by.of_shard(1)), (&[][..], &[0][..]));
    }

    #[test]
    #[should_panic(expected = "each row's owner is a shard")]
    fn an_owner_that_is_no_shard_is_a_bug() {
        ByOwner::default().sort(&[0, 3], 3);
    }

    /// A heavy query's many far rows are sent; a light query's few rows are never sent, however expensive a round trip
    /// is.
    #[test]
    fn the_cheaper_way_is_chosen() {
        let choice = |round, expected| ListsOrRows {
            mode: ShardMode::Dynamic,
            round,
            expected,
            list: round,
            elsewhere: 0.5,
        };
        let far = |rows| FarRows {
            rows,
            keys: rows,
            all_keys: rows,
            owners: 1,
            heavy: 0.0,
        };
        let route = |column, degree| Route {
            column,
            lists: 1.0,
            degree,
            ..Route::default()
        };
        let sends = |choice: ListsOrRows, rows, width, degree, n| {
            let at = choice.choose(rows, width, &[route(0, degree)], &[far(n)]);
            at.is_some()
        };
        assert!(sends(choice(100_000.0, 1e6), 2048, 3, 1.0, 245));
        assert!(!sends(choice(100_000.0, 10.0), 10, 2, 1.0, 5));
        assert!(!sends(choice(1_000.0, 10.0), 10, 2, 1.0, 5));
        // If the lists are long, the rows are sent.
        assert!(sends(choice(1_000.0, 1e6), 2048, 3, 1000.0, 245));
        // Also if only one of few keys has a long list.
        let heavy = FarRows {
            heavy: 1e6,
            ..far(5)
        };
        let chosen = |far| choice(100_000.0, 10.0).choose(10, 2, &[route(0, 1.0)], &[far]);
        assert_eq!([chosen(far(5)), chosen(heavy)], [None, Some(0)]);
        // A mode other than `Dynamic` decides by itself.
        for (mode, expected) in [(ShardMode::Fork, true), (ShardMode::InPlace, false)] {
            let fixed = ListsOrRows {
                mode,
                ..choice(1.0, 1.0)
            };
            assert_eq!(sends(fixed, 10, 2, 1.0, 5), expected);
        }
    }

    /// Rows go to the owners of the list that costs more to request. First it is the longer list, at few keys; then,
    /// with lists of equal length, that with more keys.
    #[test]
    fn rows_go_to_the_list_that_is_most_to_ask_for() {
        let route = |column| Route {
            column,
            lists: 1.0,
            degree: 500.0,
            ..Route::default()
        };
        let far = |rows, keys| FarRows {
            rows,
            keys,
            all_keys: keys,
            owners: 5,
            heavy: 0.0,
        };
        for mode in [ShardMode::Fork, ShardMode::Dynamic] {
            let choice = ListsOrRows {
                mode,
                round: 100_000.0,
                list: 100_000.0,
                expected: 1e5,
                elsewhere: 0.8,
            };
            let routes = [route(0), route(1)];
            let to = |a, b| choice.choose(2048, 2, &routes, &[a, b]);
            assert_eq!(to(far(1600, 80), far(1600, 1600)), Some(1));
            assert_eq!(to(far(1600, 1600), far(1600, 80)), Some(0));
            // If the rows already are where one list is, they are not sent for the other list's small saving.
            let near = FarRows {
                all_keys: 2048,
                ..FarRows::default()
            };
            assert_eq!(to(far(1600, 3), near), None);
        }
    }
}
