//! Sources of a variable's first values: index vertices, instances of classes, the edge list of a constant, graphs. A
//! source has a length, and any range of its values can be read, so that each worker takes a morsel.

use super::StepLayout;
use super::lists::{ConstantList, constant_list};
use crate::id_test::{IdTest, exact_runs};
use jindou_graph::segment::{GraphScope, KeyFinder, Segment};
use jindou_graph::{Edges, Graph};
use jindou_model::{DEFAULT_GRAPH, Direction, Invariant, PredicateId, invariant};
use jindou_plan::{GraphRef, Operand, StartSource, intersect};

enum SourceForm<'a> {
    /// One row without columns.
    Unit,
    /// Intervals of ids.
    Runs(Vec<[u32; 2]>),
    /// The values at these ranges of positions in a list.
    Slices(ConstantList<'a>, Vec<[u32; 2]>),
    /// The keys of a segment that pass the test. Values have the numbers of their keys, so reading `n` numbers may
    /// return fewer than `n` values.
    Keys(Segment<'a>, IdTest<'a>),
}

pub(crate) struct StartReader<'a> {
    form: SourceForm<'a>,
    /// Number of values before each run or slice.
    before: Vec<u64>,
    len: u64,
}

impl<'a> StartReader<'a> {
    pub fn new(
        source: &'a StartSource,
        within: Option<&'a jindou_plan::IdFilter>,
        layout: &StepLayout<'a, '_>,
    ) -> Self {
        let tested = || IdTest::new(within, layout.snapshot);
        let form = match source {
            StartSource::Unit => SourceForm::Unit,
            StartSource::IdFilter => {
                let within = within.invariant("a start at intervals has them");
                SourceForm::Runs(exact_runs(within, layout.snapshot))
            }
            StartSource::List(list) => {
                let (v, scope) = match (list.anchor, list.graph.scope()) {
                    (Operand::Const(v), Some(scope)) => (v, scope),
                    _ => unreachable!("a start reads the list of a constant"),
                };
                invariant!(
                    !matches!(list.graph, GraphRef::Bind(..)),
                    "a start at a list binds no graph"
                );
                let view = layout.snapshot.edges(list.predicate, list.direction);
                slices(constant_list(&view, v, scope), &tested())
            }
            StartSource::Keys {
                predicate,
                direction,
                graph,
            } => {
                let scope = graph.scope();
                let scope = scope.invariant("a start at keys has the same graphs for all rows");
                keys(layout.snapshot, *predicate, *direction, scope, tested())
            }
            StartSource::Graphs(only) => {
                let graphs = layout.snapshot.named_graphs();
                let graphs = match only {
                    None => ConstantList::Shared(graphs),
                    Some(only) => {
                        let is_asked = |g: &u32| only.binary_search(g).is_ok();
                        ConstantList::Owned(graphs.iter().copied().filter(is_asked).collect())
                    }
                };
                slices(graphs, &tested())
            }
        };
        let mut len = 0;
        let mut before = Vec::new();
        match &form {
            SourceForm::Unit => len = 1,
            SourceForm::Keys(s, _) => len = u64::from(s.key_count),
            SourceForm::Runs(runs) | SourceForm::Slices(_, runs) => {
                before.reserve(runs.len());
                for r in runs {
                    before.push(len);
                    len += u64::from(r[1] - r[0]);
                }
            }
        }
        Self { form, before, len }
    }

    /// Upper bound on the number of values, since keys are tested only when they are read.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if the source is one row without columns.
    pub fn is_unit(&self) -> bool {
        matches!(self.form, SourceForm::Unit)
    }

    /// Writes the values numbered `from..from + out.len()`, as far as they exist. Returns how many were written: fewer
    /// if keys failed the test.
    pub fn read(&self, from: u64, out: &mut [u32], scratch: &mut Vec<u32>) -> usize {
        let want = out
            .len()
            .min(usize::try_from(self.len - from.min(self.len)).unwrap_or(0));
        let out = &mut out[..want];
        match &self.form {
            SourceForm::Unit => want,
            SourceForm::Keys(s, within) => {
                scratch.clear();
                s.keys_into(from as u32, (from + want as u64) as u32, scratch);
                let n = within.retain(scratch).min(want);
                out[..n].copy_from_slice(&scratch[..n]);
                n
            }
            SourceForm::Runs(runs) => {
                self.each_part(runs, from, want, |a, b, w| {
                    for (o, v) in out[w..].iter_mut().zip(a..b) {
                        *o = v;
                    }
                });
                want
            }
            SourceForm::Slices(list, runs) => {
                self.each_part(runs, from, want, |a, b, w| {
                    if let Some(part) = list.get(a as usize..b as usize) {
                        out[w..w + part.len()].copy_from_slice(part);
                    }
                });
                want
            }
        }
    }

    /// Calls `f(start, end, offset)` for the parts of the runs that contain the values `from..from + want`; `offset` is
    /// the number of values before the part.
    fn each_part(
        &self,
        runs: &[[u32; 2]],
        from: u64,
        want: usize,
        mut f: impl FnMut(u32, u32, usize),
    ) {
        let mut at = self
            .before
            .partition_point(|&b| b <= from)
            .saturating_sub(1);
        let mut w = 0;
        while w < want
            && let (Some(&[a, b]), Some(&before)) = (runs.get(at), self.before.get(at))
        {
            let skip = (from + w as u64 - before) as u32;
            let n = (b - a - skip).min((want - w) as u32);
            f(a + skip, a + skip + n, w);
            w += n as usize;
            at += 1;
        }
    }

    /// Bytes of heap memory held.
    pub fn bytes(&self) -> usize {
        let list = match &self.form {
            SourceForm::Slices(ConstantList::Owned(l), _) => l.capacity() * 4,
            _ => 0,
        };
        list + self.before.capacity() * 16
    }
}

/// The parts of a sorted list that pass the test.
fn slices<'a>(list: ConstantList<'a>, within: &IdTest<'_>) -> SourceForm<'a> {
    let all = list.len() as u32;
    let runs = match within {
        IdTest::All => vec![[0, all]],
        IdTest::One(start, width) => {
            vec![[
                list.partition_point(|v| v < start) as u32,
                list.partition_point(|&v| v < start + width) as u32,
            ]]
        }
        IdTest::Many(runs) if runs.len() < list.len() / 8 => runs
            .iter()
            .map(|r| {
                let a = list.partition_point(|&v| v < r[0]);
                let b = list[a..].partition_point(|&v| v < r[1]) + a;
                [a as u32, b as u32]
            })
            .filter(|r| r[0] < r[1])
            .collect(),
        IdTest::Many(_) | IdTest::Except(_) => {
            let kept: Vec<u32> = list
                .iter()
                .copied()
                .filter(|&v| within.contains(v))
                .collect();
            let all = kept.len() as u32;
            return SourceForm::Slices(ConstantList::Owned(kept), vec![[0, all]]);
        }
    };
    SourceForm::Slices(list, runs)
}

fn keys<'a>(
    snapshot: &'a dyn Graph,
    predicate: PredicateId,
    direction: Direction,
    scope: GraphScope<'_>,
    within: IdTest<'a>,
) -> SourceForm<'a> {
    let view = snapshot.edges(predicate, direction);
    match view.plain(scope) {
        Some(s) => match s.finder {
            KeyFinder::Empty => SourceForm::Runs(vec![]),
            KeyFinder::Intervals(runs) if !matches!(within, IdTest::Except(_)) => {
                let runs: Vec<[u32; 2]> = runs
                    .iter()
                    .map(|r| [r.start, r.end])
                    .filter(|r| r[0] < r[1])
                    .collect();
                SourceForm::Runs(match within.runs() {
                    Some(w) => intersect(&runs, &w),
                    None => runs,
                })
            }
            KeyFinder::Directory { keys, .. } | KeyFinder::FoldedDirectory { keys, .. } => {
                slices(ConstantList::Borrowed(keys), &within)
            }
            KeyFinder::Bitmap { .. } | KeyFinder::FoldedBitmap { .. } | KeyFinder::Intervals(_) => {
                SourceForm::Keys(s, within)
            }
        },
        None => {
            if let Some(few) = few(&view, scope, &within) {
                let all = few.len() as u32;
                return SourceForm::Slices(ConstantList::Owned(few), vec![[0, all]]);
            }
            if let Some(kept) = view.shared_keys(scope) {
                return slices(ConstantList::Shared(kept), &within);
            }
            let mut keys = Vec::new();
            graph_keys(snapshot, predicate, direction, scope, &mut keys);
            keys.retain(|&v| within.contains(v));
            view.retain_with_edges(scope, &mut keys);
            let all = keys.len() as u32;
            SourceForm::Slices(ConstantList::Owned(keys), vec![[0, all]])
        }
    }
}

/// The keys that pass the test, found by looking up each id; `None` if listing all keys is cheaper, since many ids
/// pass.
fn few(view: &Edges<'_>, scope: GraphScope<'_>, within: &IdTest<'_>) -> Option<Vec<u32>> {
    /// Number of keys that can be listed in the time of one lookup.
    const EACH: u64 = 8;
    let runs = within.runs()?;
    let ids: u64 = runs.iter().map(|r| u64::from(r[1] - r[0])).sum();
    let patch = view.patch().map_or(0, |p| u64::from(p.more_keys()));
    let keys: u64 = view.key_counts().map(u64::from).iter().sum();
    // On a sharded store, all keys are requested in one round instead.
    if ids * EACH > keys + patch || view.is_sharded() {
        return None;
    }
    let mut scratch = Vec::new();
    let all = runs.iter().flat_map(|r| r[0]..r[1]);
    Some(
        all.filter(|&v| !view.read(v, scope, &mut scratch).is_empty())
            .collect(),
    )
}

/// Approximate number of keys that a predicate has in named graphs, including those that a patch adds.
fn named_keys(view: &Edges<'_>) -> u64 {
    let more = view.patch().map_or(0, |p| p.more_keys());
    u64::from(view.key_counts()[1]) + u64::from(more)
}

/// True if the default graph is among these graphs, which ascend.
pub(crate) fn scope_has_default(graphs: &[u32]) -> bool {
    graphs.first() == Some(&DEFAULT_GRAPH)
}

/// Appends vertices that may be keys of a predicate in `scope` (possibly too many), ascending. Chosen named graphs are
/// read through their index vertices, unless the predicate has fewer keys in named graphs than there are chosen graphs.
pub(crate) fn graph_keys(
    snapshot: &dyn Graph,
    predicate: PredicateId,
    direction: Direction,
    scope: GraphScope<'_>,
    out: &mut Vec<u32>,
) {
    let view = snapshot.edges(predicate, direction);
    if view.is_sharded() {
        // Each shard reads the part of the graphs that it owns.
        view.candidate_keys(scope, out);
        return;
    }
    let one;
    let graphs = match scope {
        GraphScope::Named(g) => {
            one = [g];
            &one[..]
        }
        GraphScope::Set(gs) if !scope_has_default(gs) && gs.len() as u64 <= named_keys(&view) => gs,
        _ => {
            view.candidate_keys(scope, out);
            return;
        }
    };
    let out_view = snapshot.edges(predicate, Direction::Out);
    let mut subjects = Vec::new();
    for &g in graphs {
        snapshot.graph_subjects(g, predicate, &mut subjects);
        match direction {
            Direction::Out => out.extend_from_slice(&subjects),
            Direction::In => {
                for &s in &subjects {
                    out_view.for_each(s, GraphScope::Named(g), |o, _| out.push(o));
                }
            }
        }
    }
    out.sort_unstable();
    out.dedup();
}
