//! Counts by kind of term: IRIs, blank nodes, triple terms, and literals by datatype and language.

use super::{CountedGraphs, MOST_EDITS, Views};
use crate::kinds::TermKinds;
use crate::segment::KeyRows;
use crate::{Graph, TermDecoding};
use jindou_model::{Direction, FIRST_TAIL_ID, PredicateId, VertexId, term};
use rustc_hash::FxHashMap;

/// Largest number of intervals of ids in which one [`KindCounter`] counts: some tens of milliseconds.
const MOST_STEPS: usize = 1 << 20;

/// Counts of the edges whose key is of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindCount {
    /// A term of the kind.
    pub example: VertexId,
    /// Number of keys with edges.
    pub keys: u64,
    /// Number of edges.
    pub edges: u64,
}

/// Counts a graph's edges and vertices by kind of term.
pub struct KindCounter<'g> {
    graph: &'g dyn Graph,
    of: CountedGraphs,
    kinds: &'g TermKinds,
    terms: TermDecoding<'g>,
    /// Numbers of the kinds that only updates added.
    more: FxHashMap<Box<[u8]>, u32>,
    /// A term of each kind.
    examples: Vec<u32>,
    steps: usize,
}

impl<'g> KindCounter<'g> {
    /// `None` if the graph does not know the kinds of its terms.
    #[must_use]
    pub fn new(graph: &'g dyn Graph, of: CountedGraphs) -> Option<Self> {
        let kinds = graph.term_kinds()?;
        Some(Self {
            graph,
            of,
            kinds,
            terms: graph.vocabulary().decoding(),
            more: FxHashMap::default(),
            examples: kinds.examples().to_vec(),
            steps: 0,
        })
    }

    /// The kind of a term.
    fn kind(&mut self, id: u32) -> Option<usize> {
        if let Some(kind) = self.kinds.of(id) {
            return Some(kind as usize);
        }
        let head = term::head(self.terms.term(VertexId(id))?)?;
        let known = self
            .kinds
            .numbered(head)
            .or_else(|| self.more.get(head).copied());
        let kind = known.unwrap_or_else(|| {
            let new = self.examples.len() as u32;
            self.more.insert(head.into(), new);
            self.examples.push(id);
            new
        });
        Some(kind as usize)
    }

    /// Counts of a predicate's edges by the kind of their subjects (`Out`) or objects (`In`), of kinds with edges.
    /// O(runs of kinds among the keys × log keys + keys in the tail + edits). `None` also for a predicate with edges in
    /// the default graph and in named graphs before the edits, if both are counted.
    pub fn of_predicate(&mut self, p: PredicateId, direction: Direction) -> Option<Vec<KindCount>> {
        let view = self.graph.edges(p, direction).here().copied()?;
        let mut counts = KindNumbers::default();
        match view.counted_keys(self.of) {
            [0, 0] => {}
            [_, 0] => self.count_segment(&view.default, &mut counts)?,
            [0, _] => self.count_segment(&view.named, &mut counts)?,
            _ => return None,
        }
        for change in self.of.changes(view.patch)? {
            let gained = change.gained(|| view.degree_of_base(change.key, self.of));
            let edges = change.added as i64 - change.removed as i64;
            counts.add(self.kind(change.key)?, [gained, edges]);
        }
        let counts = counts.0.iter().zip(&self.examples);
        let counts = counts.filter(|([_, edges], _)| *edges > 0);
        let count = |(n, example): (&[i64; 2], &u32)| {
            let [keys, edges] = n.map(|n| u64::try_from(n).unwrap_or(0));
            KindCount {
                example: VertexId(*example),
                keys,
                edges,
            }
        };
        Some(counts.map(count).collect())
    }

    fn count_segment(&mut self, segment: &impl KeyRows, counts: &mut KindNumbers) -> Option<()> {
        let runs = self.kinds.runs().len();
        let all = segment.count_between(self.kinds.interval(0, runs));
        self.count_runs(segment, [0, runs], all, counts)?;
        let tail = segment.finder().rank(FIRST_TAIL_ID);
        let mut keys = vec![];
        if segment.key_count().saturating_sub(tail) as usize > MOST_EDITS {
            return None;
        }
        let (finder, count) = (segment.finder(), segment.key_count());
        finder.keys_into(tail, count, &mut keys);
        for (k, key) in (tail..).zip(keys) {
            let edges = segment.range_of(k);
            let edges = edges.end.saturating_sub(edges.start);
            counts.add(self.kind(key)?, [1, edges as i64]);
        }
        Some(())
    }

    /// Adds the counts of the keys in some consecutive runs. `all` are the numbers of their keys and edges.
    fn count_runs(
        &mut self,
        segment: &impl KeyRows,
        [from, to]: [usize; 2],
        all: [u64; 2],
        counts: &mut KindNumbers,
    ) -> Option<()> {
        self.steps += 1;
        if all[0] == 0 || self.steps > MOST_STEPS {
            return (all[0] == 0).then_some(());
        }
        if to - from == 1 {
            let kind = self.kinds.runs().get(from)?.kind;
            counts.add(kind as usize, all.map(|n| n as i64));
            return Some(());
        }
        let middle = usize::midpoint(from, to);
        let first = segment.count_between(self.kinds.interval(from, middle));
        let second = [0, 1].map(|i| all[i].saturating_sub(first[i]));
        self.count_runs(segment, [from, middle], first, counts)?;
        self.count_runs(segment, [middle, to], second, counts)
    }

    /// Numbers of vertices that have an edge of one of some predicates in a direction, by kind, with a term of the
    /// kind. `None` also for the segments of a merge.
    pub fn vertices(
        &mut self,
        predicates: &[PredicateId],
        direction: Direction,
    ) -> Option<Vec<(VertexId, u64)>> {
        let views = Views::new(self.graph, predicates, direction, self.of)?;
        let mut counts = KindNumbers::default();
        views.by_sets(self.graph, predicates, direction, &mut |[start, end]| {
            self.count_interval(start, end, &mut counts);
        })?;
        let mut changes = vec![];
        views.gained(self.graph, direction, &mut |v, gained| {
            changes.push((v, gained))
        })?;
        for (v, gained) in changes {
            counts.add(self.kind(v)?, [gained, 0]);
        }
        let counts = counts.0.iter().zip(&self.examples);
        let counts = counts.map(|([n, _], example)| (VertexId(*example), *n));
        let counts = counts.filter_map(|(v, n)| Some((v, u64::try_from(n).ok()?)));
        Some(counts.filter(|x| x.1 > 0).collect())
    }

    /// Adds the ids `start..end`.
    fn count_interval(&self, start: u32, end: u32, counts: &mut KindNumbers) {
        let runs = self.kinds.runs();
        let first = runs.partition_point(|r| r.start <= start).saturating_sub(1);
        for (at, run) in runs.iter().enumerate().skip(first) {
            let [from, to] = self.kinds.interval(at, at + 1);
            if from >= end {
                break;
            }
            let inside = to.min(end).saturating_sub(from.max(start));
            counts.add(run.kind as usize, [i64::from(inside), 0]);
        }
    }
}

/// Numbers of keys and edges by kind.
#[derive(Default)]
struct KindNumbers(Vec<[i64; 2]>);

impl KindNumbers {
    fn add(&mut self, kind: usize, [keys, edges]: [i64; 2]) {
        if kind >= self.0.len() {
            self.0.resize(kind + 1, [0; 2]);
        }
        if let Some(n) = self.0.get_mut(kind) {
            n[0] += keys;
            n[1] += edges;
        }
    }
}
