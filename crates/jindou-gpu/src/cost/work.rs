//! Estimate of the work of a plan's steps on a device, before anything is transferred.

use crate::compile;
use crate::params::{MAX_COLUMNS, MAX_LISTS};
use crate::resident::alone;
use jindou_graph::Graph;
use jindou_graph::segment::{GraphScope, KeyFinder};
use jindou_model::{Direction, PredicateId};
use jindou_plan::{
    ApplyKind, EdgeList, FarEnd, GraphRef, Operand, Operator, Plan, StartSource, Step, StepKind,
};
use rustc_hash::FxHashMap;

/// A segment in any version: predicate and direction.
pub(crate) type SegmentName = (PredicateId, Direction);

/// The planner's nanoseconds for a look-up in a hash table, and for a row for which a part is run.
const DISTINCT_NS: f64 = 10.0;
const APPLY_NS: f64 = 5.0;
/// Assumed share of the rows that pass a FILTER above an exploration.
const UNKNOWN_SHARE: f64 = 0.5;

/// The work of steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkEstimate {
    /// Bytes read and written sequentially.
    pub ordered: f64,
    /// Random sectors of 32 bytes, by the size of the segment that they are in.
    pub sectors: Vec<(f64, f64)>,
    /// Kernels, and fills with zeros.
    pub launches: f64,
    /// Number of times that the host waits for a number.
    pub syncs: f64,
    /// The segments read, with their bytes.
    pub segments: FxHashMap<SegmentName, f64>,
    /// Bytes of rows that leave the device.
    pub leaving: f64,
    /// The planner's nanoseconds for the same work on one core.
    pub cpu_ns: f64,
}

/// Work of a look-up in a segment.
struct LookupWork {
    /// Sectors read to find a key, and then its list's bounds.
    sectors: f64,
    /// Mean number of neighbours of a key.
    degree: f64,
    bytes: f64,
    /// True if every key has one neighbour and there is no patch.
    one: bool,
}

/// Sectors of the last, adjacent probes of a search in a list; earlier probes hit the cache.
fn search(degree: f64) -> f64 {
    1.0 + (degree / 8.0).max(1.0).log2().min(4.0)
}

fn scope_of(graph: &GraphRef) -> Option<GraphScope<'_>> {
    match graph {
        GraphRef::Default => Some(GraphScope::Default),
        GraphRef::Union => Some(GraphScope::Union),
        _ => None,
    }
}

impl WorkEstimate {
    /// The work of all explorations of a plan, as far as the device runs their steps, and of the operators above them
    /// that it supports.
    pub fn of_plan(plan: &Plan, snapshot: &dyn Graph) -> Self {
        let mut work = Self::default();
        let mut open = vec![&plan.root];
        while let Some(op) = open.pop() {
            if let Some(with) = work.tree(op, snapshot) {
                work = with;
                continue;
            }
            if let Operator::Explore(e) = op
                && e.empty.is_none()
            {
                work.exploration(&e.steps, snapshot);
            }
            open.extend(op.inputs());
        }
        work
    }

    /// This work and that of an operator which the device runs together with everything below it; `None` for others.
    fn tree(&self, op: &Operator, snapshot: &dyn Graph) -> Option<Self> {
        let mut work = self.clone();
        match op {
            // Its number leaves the device.
            Operator::Count(c) if c.group.is_empty() && c.counts.len() == 1 => {
                let is_chain = compile::may_run(&c.input);
                let is_distinct = c.counts.iter().all(|c| c.distinct && c.of.is_some());
                if !(is_chain || is_distinct && matches!(*c.input, Operator::Explore(_))) {
                    return None;
                }
                let (rows, _) = work.operator(&c.input, 0.0, snapshot)?;
                if is_distinct {
                    work.distinct(rows, 0.0, snapshot);
                }
                work.leaving += 8.0;
            }
            op if compile::may_run(op) => {
                let (rows, columns) = work.operator(op, 0.0, snapshot)?;
                work.leaving += 4.0 * rows * columns;
            }
            _ => return None,
        }
        Some(work)
    }

    /// Adds the work of an operator and of everything below it, which [`compile::may_run`] has found not to be deep;
    /// returns approximate numbers of its rows and their columns.
    fn operator(&mut self, op: &Operator, outer: f64, snapshot: &dyn Graph) -> Option<(f64, f64)> {
        match op {
            Operator::Explore(e) => {
                let mut rows = 1.0;
                for step in &e.steps {
                    self.step(step, rows, step.rows, snapshot)?;
                    self.cpu_ns += step.cost;
                    rows = step.rows;
                }
                Some((rows, e.steps.last().map_or(0, |s| s.live.len()) as f64))
            }
            Operator::Outer(o) => Some((outer, o.slots.len() as f64)),
            Operator::Steps(s) => {
                let (mut rows, mut columns) = self.operator(&s.input, outer, snapshot)?;
                for step in &s.steps {
                    self.step(step, rows, step.rows, snapshot)?;
                    self.cpu_ns += step.cost;
                    (rows, columns) = (step.rows, step.live.len() as f64);
                }
                Some((rows, columns))
            }
            Operator::Filter(f) => {
                let (rows, columns) = self.operator(&f.input, outer, snapshot)?;
                let kept = rows * UNKNOWN_SHARE;
                self.compact(rows, 4.0, kept, columns);
                self.cpu_ns += rows;
                Some((kept, columns))
            }
            Operator::Reduced(r) => self.operator(&r.input, outer, snapshot),
            Operator::Distinct(d) => {
                let (rows, _) = self.operator(&d.input, outer, snapshot)?;
                self.distinct(rows, 1.0, snapshot);
                Some((rows, 1.0))
            }
            Operator::Slice(s) => {
                let (rows, columns) = self.operator(&s.input, outer, snapshot)?;
                Some((s.limit.map_or(rows, |l| rows.min(l as f64)), columns))
            }
            Operator::Apply(a) => {
                let (rows, columns) = self.operator(&a.input, outer, snapshot)?;
                // Numbers are written, bits cleared.
                self.ordered += 4.0 * rows;
                self.launches += 2.0;
                let (inner, new) = self.operator(&a.inner, rows, snapshot)?;
                self.cpu_ns += APPLY_NS * (rows + inner);
                let found = rows.min(inner);
                let (alone, joined) = match a.kind {
                    ApplyKind::Inner => (0.0, inner),
                    ApplyKind::Left => (rows - found, inner),
                    ApplyKind::Semi => (found, 0.0),
                    ApplyKind::Anti | ApplyKind::Mark(_) => (rows - found, 0.0),
                };
                // Bits are set and read, columns gathered.
                self.ordered += 8.0 * inner + joined * (4.0 + 8.0 * columns);
                self.launches += 2.0;
                self.compact(rows, 4.0, alone, columns);
                Some((alone + joined, columns + new))
            }
            _ => None,
        }
    }

    /// Adds a DISTINCT of one column: each row tests its bit.
    fn distinct(&mut self, rows: f64, columns: f64, snapshot: &dyn Graph) {
        self.compact(rows, 4.0, rows, columns);
        self.launches += 1.0;
        self.sectors
            .push((f64::from(snapshot.dense_ids()) / 8.0, rows));
        self.cpu_ns += DISTINCT_NS * rows;
    }

    /// The work of steps that are known to have made these numbers of rows.
    pub fn of_steps(steps: &[Step], rows: &[u64], snapshot: &dyn Graph) -> Option<Self> {
        let mut work = Self::default();
        let mut before = 1.0;
        for (step, &rows) in steps.iter().zip(rows) {
            work.step(step, before, rows as f64, snapshot)?;
            before = rows as f64;
        }
        Some(work)
    }

    fn exploration(&mut self, steps: &[Step], snapshot: &dyn Graph) {
        let (mut rows, mut columns, mut covered) = (1.0, 0, 0);
        for step in steps {
            let before = self.clone();
            if self.step(step, rows, step.rows, snapshot).is_none() {
                *self = before;
                break;
            }
            (rows, columns) = (step.rows, step.live.len());
            self.cpu_ns += step.cost;
            covered += 1;
        }
        // A start alone is not run there, and has no result.
        if covered > 0 {
            self.leaving += 4.0 * rows * columns as f64;
        }
    }

    fn lookup(
        &mut self,
        predicate: PredicateId,
        direction: Direction,
        scope: GraphScope<'_>,
        snapshot: &dyn Graph,
    ) -> Option<LookupWork> {
        let view = snapshot.edges(predicate, direction);
        let s = alone(&view, scope).ok()?;
        let keys = f64::from(s.key_count);
        let (sectors, finder) = match s.finder {
            KeyFinder::Empty => (0.0, 0.0),
            KeyFinder::Intervals(runs) => (0.0, 12.0 * runs.len() as f64),
            KeyFinder::Bitmap { blocks, .. } => (1.0, 16.0 * blocks.len() as f64),
            KeyFinder::Directory { buckets, .. } => (3.0, 4.0 * buckets.len() as f64 + 4.0 * keys),
            // The device gets a directory of the keys.
            KeyFinder::FoldedBitmap { .. } | KeyFinder::FoldedDirectory { .. } => (3.0, 8.0 * keys),
        };
        let (bounds, offsets) = match s.offsets {
            Some(o) => (1.0, 4.0 * o.len() as f64),
            None => (0.0, 0.0),
        };
        // With a patch, the word that marks patched keys is read as well.
        let patch = f64::from(u8::from(view.patch().is_some()));
        let edges = s.neighbours.len() as f64;
        let bytes = finder + offsets + 4.0 * edges;
        self.segments.insert((predicate, direction), bytes);
        Some(LookupWork {
            sectors: sectors + bounds + patch,
            degree: edges / keys.max(1.0),
            bytes,
            one: s.offsets.is_none() && view.patch().is_none(),
        })
    }

    fn list(&mut self, list: &EdgeList, snapshot: &dyn Graph) -> Option<LookupWork> {
        self.lookup(
            list.predicate,
            list.direction,
            scope_of(&list.graph)?,
            snapshot,
        )
    }

    /// Adds a kernel that filters rows by the data that it reads for each.
    fn compact(&mut self, rows: f64, read: f64, kept: f64, columns: f64) {
        self.ordered += rows * read + 8.0 * kept * columns;
        self.launches += 1.0;
        self.syncs += 1.0;
    }

    fn source(&mut self, source: &StartSource, rows: f64, snapshot: &dyn Graph) -> Option<()> {
        match source {
            StartSource::Unit => {}
            StartSource::IdFilter => {
                self.launches += 1.0;
                self.ordered += 4.0 * rows;
            }
            StartSource::List(list) => {
                self.list(list, snapshot)?;
            }
            StartSource::Keys {
                predicate,
                direction,
                graph,
            } => {
                self.lookup(*predicate, *direction, scope_of(graph)?, snapshot)?;
                self.launches += 1.0;
                self.ordered += 4.0 * rows;
            }
            StartSource::Graphs(_) => return None,
        }
        Some(())
    }

    /// Adds the measuring and expansion of lists, with `outputs` before any test.
    fn expansion(&mut self, rows: f64, outputs: f64, made: f64, columns: f64) {
        // Anchor, start and prefix are written, and both are read; ids are read and written with the carried columns.
        self.ordered +=
            rows * (4.0 + 8.0 + 8.0 + 4.0 * columns) + 4.0 * outputs + made * (4.0 + 4.0 * columns);
        // The scan's state is cleared, lists are measured, rows made.
        self.launches += 3.0;
        self.syncs += 1.0;
    }

    /// Adds access to the segments of all predicates, each read at an average of `sectors` per row.
    fn any(
        &mut self,
        direction: Direction,
        graph: &GraphRef,
        rows: f64,
        made: f64,
        columns: f64,
        snapshot: &dyn Graph,
    ) -> Option<()> {
        let scope = scope_of(graph)?;
        let (mut bytes, mut sectors) = (0.0, 0.0);
        let count = snapshot.predicate_count();
        for p in 0..count {
            let look = self.lookup(PredicateId(p), direction, scope, snapshot)?;
            bytes += look.bytes;
            sectors += look.sectors;
        }
        let mean = sectors / f64::from(count.max(1));
        // First the predicates of each vertex, then their lists.
        self.expansion(rows, made, made, columns);
        self.expansion(made, made, made, columns);
        self.sectors.push((bytes, rows * 3.0 + made * (mean + 1.0)));
        Some(())
    }

    /// Adds a step over `rows` rows that makes `made`; `None` if the device does not run it.
    fn step(&mut self, step: &Step, rows: f64, made: f64, snapshot: &dyn Graph) -> Option<()> {
        let columns = step.live.len() as f64;
        if step.live.len() > MAX_COLUMNS {
            return None;
        }
        match &step.kind {
            StepKind::Start { to, source, within } => {
                self.source(source, made, snapshot)?;
                if to.is_some() && within.is_some() && !matches!(source, StartSource::IdFilter) {
                    self.compact(made, 4.0, made, columns);
                }
            }
            StepKind::Cross { source, .. } => {
                self.source(source, made / rows.max(1.0), snapshot)?;
                self.expansion(rows, made, made, columns);
            }
            StepKind::Expand { lists, within, .. } => {
                if lists.is_empty() || lists.len() > MAX_LISTS {
                    return None;
                }
                let mut looks = Vec::new();
                for list in lists {
                    let look = self.list(list, snapshot)?;
                    let constant = matches!(list.anchor, Operand::Const(_));
                    if !constant {
                        self.sectors.push((look.bytes, rows * look.sectors));
                    }
                    looks.push((look, constant));
                }
                match looks.as_slice() {
                    [(look, false)] if look.one => {
                        self.sectors.push((look.bytes, rows));
                        self.compact(rows, 4.0, made, columns);
                    }
                    [(look, constant)] => {
                        let outputs = if within.is_some() {
                            (rows * look.degree).max(made)
                        } else {
                            made
                        };
                        if !constant {
                            // Lists begin anywhere.
                            self.sectors.push((look.bytes, rows));
                        }
                        self.expansion(rows, outputs, made, columns);
                        self.syncs += f64::from(u8::from(within.is_some()));
                    }
                    many => {
                        let shortest = many.iter().map(|l| l.0.degree).fold(f64::MAX, f64::min);
                        let candidates = (rows * shortest).max(made);
                        for (look, _) in many {
                            self.sectors.push((
                                look.bytes,
                                candidates * search(look.degree) / many.len() as f64,
                            ));
                        }
                        self.expansion(rows, candidates, made, columns);
                        self.ordered += 8.0 * rows * many.len() as f64;
                        self.syncs += 1.0;
                    }
                }
            }
            StepKind::Check { list, .. } => {
                let look = self.list(list, snapshot)?;
                self.sectors
                    .push((look.bytes, rows * (look.sectors + search(look.degree))));
                self.compact(rows, 8.0, made, columns);
            }
            StepKind::Restrict { .. } => self.compact(rows, 4.0, made, columns),
            StepKind::ExpandAny {
                direction,
                far,
                graph,
                ..
            } => {
                let found = match far {
                    FarEnd::Bind(_) => made,
                    FarEnd::Known(_) => made.max(rows),
                };
                self.any(*direction, graph, rows, found, columns, snapshot)?;
            }
            StepKind::ScanAll { graph, .. } => {
                self.any(Direction::Out, graph, rows, made, columns, snapshot)?;
            }
        }
        for filter in &step.filters {
            if !compile::is_decided_by_ids(filter) {
                return None;
            }
            self.compact(made, 4.0, made, columns);
        }
        Some(())
    }
}
