//! Exact counts of keys, edges and vertices: from segments, characteristic sets and the edits since the last merge,
//! without reading neighbour lists. Each function returns `None` where its count would need more than that.

mod by_kind;

pub use by_kind::{KindCount, KindCounter};

use crate::segment::{EdgeView, KeyChange, KeyRows, NO_KEY, Patch, distinct_keys};
use crate::sets::SetRun;
use crate::{Edges, Graph};
use jindou_model::{Direction, PredicateId, VertexId, scope};

/// Largest number of edits that a count considers: some milliseconds.
const MOST_EDITS: usize = 1 << 16;
/// Largest number of runs of characteristic sets that a count reads.
const MOST_RUNS: usize = 1 << 20;
/// Largest number of ranges and members that a count of a class looks up.
const MOST_LOOKUPS: usize = 1 << 17;

/// The graphs whose edges are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedGraphs {
    /// The default graph.
    pub default: bool,
    /// All named graphs.
    pub named: bool,
}

impl CountedGraphs {
    /// The changes of a patch in these graphs; `None` if there are too many edits.
    fn changes(self, patch: Option<&Patch>) -> Option<Vec<KeyChange>> {
        match patch {
            None => Some(vec![]),
            Some(patch) if patch.len() > MOST_EDITS => None,
            Some(patch) => Some(patch.key_changes(self.default, self.named)),
        }
    }
}

impl KeyChange {
    /// 1 if the key has edges only since the change, -1 if it has none since, otherwise 0. `base` returns its number of
    /// edges before.
    fn gained(self, base: impl FnOnce() -> u64) -> i64 {
        match (self.added, self.removed) {
            (0, 0) => 0,
            (_, 0) => i64::from(base() == 0),
            (0, removed) => -i64::from(base() <= removed),
            _ => 0,
        }
    }
}

fn total(base: u64, change: i64) -> u64 {
    base.saturating_add_signed(change)
}

impl EdgeView<'_> {
    /// Numbers of keys of the two segments that are counted.
    fn counted_keys(&self, of: CountedGraphs) -> [u32; 2] {
        let [default, named] = self.key_counts();
        [default * u32::from(of.default), named * u32::from(of.named)]
    }

    /// Number of edges of a key without the patch.
    fn degree_of_base(&self, key: u32, of: CountedGraphs) -> u64 {
        let [default, named] = self.counted_keys(of);
        let mut n = 0;
        if default > 0 {
            n += self.default.neighbours_of(key).len() as u64;
        }
        if named > 0 {
            n += self.named.edges_of(key).len() as u64;
        }
        n
    }

    /// True if the key has an edge without the patch.
    fn is_key_of_base(&self, key: u32, of: CountedGraphs) -> bool {
        let [default, named] = self.counted_keys(of);
        default > 0 && self.default.finder.find(key) != NO_KEY
            || named > 0 && self.named.finder.find(key) != NO_KEY
    }

    /// Number of keys without the patch.
    fn keys_of_base(&self, of: CountedGraphs) -> Option<u64> {
        match self.counted_keys(of) {
            [n, 0] | [0, n] => Some(u64::from(n)),
            [default, named] => {
                distinct_keys(&[(self.default.finder, default), (self.named.finder, named)])
            }
        }
    }
}

impl Edges<'_> {
    /// Number of keys that have an edge in the graphs. O(1), plus O(edits log keys) with a patch, plus O(keys / 64) for
    /// a predicate with edges in the default graph and in named graphs, if both are counted.
    #[must_use]
    pub fn exact_keys(&self, of: CountedGraphs) -> Option<u64> {
        let base = match self {
            Self::Here(view) => view.keys_of_base(of)?,
            // The counts of both kinds of graphs are exact only for a predicate with edges in one kind.
            Self::Sharded(edges) => match (edges.key_counts(), edges.has_no_named()) {
                ([n, _], true) if of.default => u64::from(n),
                ([n, _], false) if of.default && !of.named => u64::from(n),
                ([0, n], false) if of.named => u64::from(n),
                (_, false) if of.named => return None,
                _ => 0,
            },
        };
        let changes = of.changes(self.patch())?;
        if self.is_sharded() {
            let keys: Vec<u32> = changes.iter().map(|c| c.key).collect();
            self.fetch_degrees(&keys);
        }
        let gained = changes
            .iter()
            .map(|c| c.gained(|| self.degree_before(*c, of)));
        Some(total(base, gained.sum()))
    }

    /// Number of edges of a key before a change.
    fn degree_before(&self, change: KeyChange, of: CountedGraphs) -> u64 {
        let now = match self {
            Self::Here(view) => return view.degree_of_base(change.key, of),
            Self::Sharded(_) => {
                let default = u64::from(of.default) * self.default_degree(change.key);
                default + u64::from(of.named) * self.named_degree(change.key)
            }
        };
        (now + change.removed).saturating_sub(change.added)
    }
}

/// Number of vertices that have an edge of one of some predicates in a direction. O(runs of characteristic sets) for the
/// segments of a load, O(predicates log keys) to O(predicates × vertices / 64) for those of a merge; plus O(edits log
/// edits).
#[must_use]
pub fn vertices_with_edges(
    graph: &dyn Graph,
    predicates: &[PredicateId],
    direction: Direction,
    of: CountedGraphs,
) -> Option<u64> {
    let views = Views::new(graph, predicates, direction, of)?;
    let mut n = 0;
    let mut count = |[start, end]: [u32; 2]| n += u64::from(end.saturating_sub(start));
    let base = match views.by_sets(graph, predicates, direction, &mut count) {
        Some(()) => n,
        None => views.by_finders()?,
    };
    let mut gained = 0;
    views.gained(graph, direction, &mut |_, more| gained += more)?;
    Some(total(base, gained))
}

/// Edges of the counted predicates, by dense predicate id.
struct Views<'a> {
    of: CountedGraphs,
    views: Vec<Option<EdgeView<'a>>>,
}

/// Conclusion from a characteristic set about its vertices.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SetVerdict {
    /// Each vertex has a counted edge.
    Counted,
    /// No vertex has a counted edge.
    Other,
    /// Each counted predicate in the set also has edges in graphs that are not counted.
    Unknown,
}

impl<'a> Views<'a> {
    fn new(
        graph: &'a dyn Graph,
        predicates: &[PredicateId],
        direction: Direction,
        of: CountedGraphs,
    ) -> Option<Self> {
        if graph.is_sharded() {
            return None;
        }
        let mut views: Vec<Option<EdgeView<'_>>> = vec![None; graph.predicate_count() as usize];
        for p in predicates {
            let view = graph.edges(*p, direction).here().copied()?;
            *views.get_mut(p.0 as usize)? = Some(view);
        }
        Some(Self { of, views })
    }

    fn get(&self, p: u32) -> Option<&EdgeView<'a>> {
        self.views.get(p as usize)?.as_ref()
    }

    /// Calls `count` with intervals of ids of the vertices without edits, by their characteristic sets, which are those
    /// of the load's segments.
    fn by_sets(
        &self,
        graph: &dyn Graph,
        predicates: &[PredicateId],
        direction: Direction,
        count: &mut dyn FnMut([u32; 2]),
    ) -> Option<()> {
        let sets = graph.predicates().sets();
        let is_merged = |p: &PredicateId| graph.generation_of(*p) > 0;
        if sets.runs.len() > MOST_RUNS || predicates.iter().any(is_merged) {
            return None;
        }
        let everywhere = CountedGraphs {
            default: true,
            named: true,
        };
        let verdicts: Vec<SetVerdict> = self
            .views
            .iter()
            .map(|view| {
                let Some(view) = view else {
                    return SetVerdict::Other;
                };
                let counted = view.counted_keys(self.of);
                if counted == [0, 0] {
                    SetVerdict::Other
                } else if counted == view.counted_keys(everywhere) {
                    SetVerdict::Counted
                } else {
                    SetVerdict::Unknown
                }
            })
            .collect();
        let verdict = |set: u32| {
            let mut found = SetVerdict::Other;
            for p in sets.list(set) {
                match verdicts.get(*p as usize) {
                    Some(SetVerdict::Counted) => return SetVerdict::Counted,
                    Some(SetVerdict::Unknown) => found = SetVerdict::Unknown,
                    Some(SetVerdict::Other) | None => {}
                }
            }
            found
        };
        let mut known: Vec<Option<SetVerdict>> = vec![None; sets.offsets.len()];
        let ends = sets.runs.iter().skip(1).map(|r| r.start);
        let last = graph.dense_ids().saturating_add(1);
        for (run, end) in sets.runs.iter().zip(ends.chain([last])) {
            let set = set_of(run, direction);
            let verdict = match known.get_mut(set as usize) {
                Some(known) => *known.get_or_insert_with(|| verdict(set)),
                None => verdict(set),
            };
            match verdict {
                SetVerdict::Counted => count([run.start, end]),
                SetVerdict::Other => {}
                SetVerdict::Unknown => return None,
            }
        }
        Some(())
    }

    /// Number of vertices without edits, by the keys of the segments.
    fn by_finders(&self) -> Option<u64> {
        let mut finders = vec![];
        for view in self.views.iter().flatten() {
            let [default, named] = view.counted_keys(self.of);
            finders.push((view.default.finder, default));
            finders.push((view.named.finder, named));
        }
        finders.retain(|f| f.1 > 0);
        distinct_keys(&finders)
    }

    /// Calls `count` with 1 for each vertex that has an edge only since the edits, and with -1 for each that has none
    /// since.
    fn gained(
        &self,
        graph: &dyn Graph,
        direction: Direction,
        count: &mut dyn FnMut(u32, i64),
    ) -> Option<()> {
        let (mut changes, mut edits) = (vec![], 0);
        for (p, view) in (0u32..).zip(&self.views) {
            let Some(view) = view else { continue };
            edits += view.patch.map_or(0, Patch::len);
            if edits > MOST_EDITS {
                return None;
            }
            let of_one = self.of.changes(view.patch)?;
            changes.extend(of_one.into_iter().map(|c| (c.key, p, c)));
        }
        changes.sort_unstable_by_key(|c| (c.0, c.1));
        let predicates = graph.predicates();
        for of_one in changes.chunk_by(|a, b| a.0 == b.0) {
            let Some(&(v, ..)) = of_one.first() else {
                continue;
            };
            let mut had = of_one.iter().any(|c| c.2.removed > 0);
            let mut has = of_one.iter().any(|c| c.2.added > 0);
            let changed = of_one.iter().map(|c| c.1);
            let list = predicates.of_vertex(v, direction);
            for p in list.iter().copied().chain(changed) {
                if had && has {
                    break;
                }
                let Some(view) = self.get(p) else { continue };
                match of_one.iter().find(|c| c.1 == p) {
                    None => {
                        let is_key = view.is_key_of_base(v, self.of);
                        (had, has) = (had || is_key, has || is_key);
                    }
                    Some((.., change)) => {
                        let base = view.degree_of_base(v, self.of);
                        had |= base > 0;
                        has |= base + change.added > change.removed;
                    }
                }
            }
            if has != had {
                count(v, if has { 1 } else { -1 });
            }
        }
        Some(())
    }
}

fn set_of(run: &SetRun, direction: Direction) -> u32 {
    match direction {
        Direction::Out => run.out_set,
        Direction::In => run.in_set,
    }
}

/// Counts of a class in the default graph.
#[derive(Clone, Debug, Default)]
pub struct ClassCounts {
    /// Number of members.
    pub members: u64,
    /// By dense predicate id: the number of members that have the predicate, and the number of their edges.
    pub predicates: Vec<[u64; 2]>,
}

/// Counts of the edges that leave (`Out`) or enter (`In`) the members of a class in the default graph; `typing` is
/// `rdf:type`. O(predicates × (intervals of the class + edits of its members) × log keys + edits).
#[must_use]
pub fn class_counts(
    graph: &dyn Graph,
    typing: PredicateId,
    class: VertexId,
    direction: Direction,
) -> Option<ClassCounts> {
    let types = graph.edges(typing, Direction::In).here().copied()?;
    // The intervals of a class cover all graphs together.
    if !types.has_no_named() {
        return None;
    }
    let intervals: &[[u32; 2]] = match types.default.finder.find(class.0) {
        NO_KEY => &[],
        _ => graph.class_intervals(class)?,
    };
    let (mut came, mut left): (Vec<u32>, Vec<u32>) = (vec![], vec![]);
    if let Some(patch) = types.patch {
        let (added, removed) = patch.edits_of(class.0);
        came.extend(added.flatten().map(|&e| e as u32));
        left.extend(removed.flatten().map(|&e| e as u32));
    }
    let each = intervals.len() + came.len() + left.len();
    if each.saturating_mul(graph.predicate_count() as usize) > MOST_LOOKUPS {
        return None;
    }
    let lengths = intervals
        .iter()
        .map(|r| u64::from(r[1].saturating_sub(r[0])));
    let mut out = ClassCounts {
        members: (lengths.sum::<u64>() + came.len() as u64).saturating_sub(left.len() as u64),
        predicates: vec![],
    };
    let mut edits = 0;
    for p in 0..graph.predicate_count() {
        let view = graph.edges(PredicateId(p), direction).here().copied()?;
        edits += view.patch.map_or(0, Patch::len);
        if edits > MOST_EDITS || scope::is_over() {
            return None;
        }
        let of_class = of_members(&view, intervals, [&came, &left])?;
        out.predicates.push(of_class);
    }
    Some(out)
}

/// Numbers of keys and edges of the members of a class in the default graph. The members are the vertices in
/// `intervals` with those in `came`, without those in `left`.
fn of_members(
    view: &EdgeView<'_>,
    intervals: &[[u32; 2]],
    [came, left]: [&[u32]; 2],
) -> Option<[u64; 2]> {
    let default = CountedGraphs {
        default: true,
        named: false,
    };
    let (mut keys, mut edges) = (0i64, 0i64);
    for r in intervals {
        let [more_keys, more_edges] = view.default.count_between(*r);
        keys += more_keys as i64;
        edges += more_edges as i64;
    }
    if !intervals.is_empty() {
        for change in default.changes(view.patch)? {
            let at = intervals.partition_point(|r| r[1] <= change.key);
            if intervals.get(at).is_some_and(|r| r[0] <= change.key) {
                keys += change.gained(|| view.degree_of_base(change.key, default));
                edges += change.added as i64 - change.removed as i64;
            }
        }
    }
    for (list, sign) in [(came, 1), (left, -1)] {
        for v in list {
            let degree = view.default_degree(*v) as i64;
            keys += sign * i64::from(degree > 0);
            edges += sign * degree;
        }
    }
    Some([keys, edges].map(|n| u64::try_from(n).unwrap_or(0)))
}
