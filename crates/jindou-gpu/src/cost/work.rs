//! Estimate of the work of a plan's steps on a device, before anything is transferred, and on the CPU.
//!
//! The time of kernels beyond moving their bytes was measured on an H200 on 26 November 2026 (`bench/gpu.sh`, stage
//! `floors`: 21 kernels over 16.8 million rows). It is expressed as additional sequential bytes.

use crate::compile::{self, FarShare, far_share};
use crate::counts::UNCOUNTED;
use crate::executor::grouped;
use crate::params::{MAX_COLUMNS, MAX_LISTS};
use crate::resident::alone;
use crate::steps::ReduceOptions;
use jindou_engine::GroupedRows;
use jindou_graph::Graph;
use jindou_graph::segment::{GraphScope, KeyFinder};
use jindou_model::{Direction, PredicateId};
use jindou_plan::{
    ApplyKind, EdgeList, FarEnd, Form, GraphRef, LIGHT_COST, Operand, Operator, Plan, Slot,
    StartSource, Step, StepKind,
};
use rustc_hash::FxHashMap;

/// A segment in any version: predicate and direction.
pub(crate) type SegmentName = (PredicateId, Direction);

/// The planner's nanoseconds for a hash-table lookup, and for a row that a sub-plan is run for.
const DISTINCT_NS: f64 = 10.0;
const APPLY_NS: f64 = 5.0;
/// The planner's nanoseconds for a node that a path visits, and the assumed length of the longest path.
const PATH_NS: f64 = 20.0;
const LEVELS: f64 = 10.0;
/// The planner's nanoseconds for a row that ORDER BY with LIMIT compares.
const SORT_NS: f64 = 4.0;
/// The planner's nanoseconds for a row that is grouped.
const GROUP_NS: f64 = 10.0;
/// Ratio of the time of filtering kernels to the time for copying the bytes that they move.
const FILTERING: f64 = 1.6;
/// The same ratio for kernels that measure lists and produce rows from them.
const EXPANDING: f64 = 2.7;
/// Cost of searching other lists for an id of one list, in copied bytes: some 16 picoseconds of instructions. (19 were
/// measured with eight rows per thread, and four take 0.83 of that.)
const CANDIDATE: f64 = 66.0;
/// Bytes per row read from a segment whose keys come in order.
const IN_ORDER: f64 = 8.0;

/// Seconds on the CPU per plan, additionally with more than one thread, and per step.
const CPU_PLAN: f64 = 0.3e-6;
const CPU_THREADS: f64 = 1e-6;
const CPU_STEP: f64 = 0.5e-6;
/// Time that each additional thread of a heavy plan adds to all, since they share memory. On 16 cores, LUBM's heavy
/// queries are 9 to 10 times as fast as on one.
const CONTENTION: f64 = 0.045;
/// Seconds for decoding an id to a term's text.
const CELL: f64 = 40e-9;
/// Share of that time which operators take for an id of a row that is copied back.
const OPERATED: f64 = 0.25;

/// Assumed share of the rows that pass a FILTER above an exploration.
const UNKNOWN_SHARE: f64 = 0.5;

/// The estimated work of steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkEstimate {
    /// Bytes read and written sequentially, weighted by the kernels' speed.
    pub ordered: f64,
    /// Random sectors of 32 bytes, by the size of the segment that they are in.
    pub sectors: Vec<(f64, f64)>,
    /// Kernels, and fills with zeros.
    pub launches: f64,
    /// The kernels among them.
    pub kernels: f64,
    /// Number of times that the host waits for a count.
    pub syncs: f64,
    /// The segments read, with their bytes.
    pub segments: FxHashMap<SegmentName, f64>,
    /// Bytes of rows that are copied back.
    pub leaving: f64,
    /// The plan's rows, if its last operator is executed on the device.
    pub rows: f64,
    /// Number of columns of these rows that are decoded to terms.
    pub columns: f64,
    /// Ids that are copied back for operators on the CPU.
    pub passed: f64,
    /// Number of threads that consume a device's rows, if not all; for runs recorded when it was one.
    pub takers: Option<usize>,
    /// Number of steps.
    pub steps: f64,
    /// The planner's nanoseconds for the same work on one core.
    pub cpu_ns: f64,
    /// The column whose ids ascend from row to row.
    pub in_order: Option<Slot>,
}

/// Work of a lookup in a segment.
struct LookupWork {
    /// Sectors read for finding a key, and for its list's bounds.
    sectors: f64,
    /// Mean number of neighbours of a key.
    degree: f64,
    bytes: f64,
    /// True if every key has one neighbour and there is no patch.
    one: bool,
    /// True if lists are clipped to the hull of a condition's intervals; true if all neighbours satisfy the condition.
    is_cut: bool,
    is_void: bool,
}

impl LookupWork {
    /// Accounts for clipping lists to a condition: the shorter lists, and the cost of clipping.
    fn cut(
        &mut self,
        list: &EdgeList,
        intervals: Option<&[[u32; 2]]>,
        in_order: Option<Slot>,
        snapshot: &dyn Graph,
    ) {
        let (Some(intervals), Some(scope)) = (intervals, scope_of(&list.graph)) else {
            return;
        };
        let share = far_share(list.predicate, list.direction, scope, intervals, snapshot);
        self.is_void = share.is_some_and(|s| s.is_all);
        let in_order = matches!(list.anchor, Operand::Slot(s) if in_order == Some(s));
        let by_device = FarShare::pays(share, self.degree, in_order) && !self.is_void;
        self.is_cut = by_device || matches!(list.anchor, Operand::Const(_));
        if by_device {
            // The ends of the list, and a search for the bound inside it.
            self.sectors += 1.0 + search(self.degree);
        }
        if self.is_cut {
            self.degree *= share.map_or(1.0, |s| s.inside);
        }
    }
}

/// Sectors of the last, adjacent probes of a search in a list; earlier probes hit the cache.
fn search(degree: f64) -> f64 {
    1.0 + (degree / 8.0).max(1.0).log2().min(4.0)
}

/// True for an expansion of which a COUNT only sums the lengths of lists.
fn is_lengths(step: &Step) -> bool {
    let one = match &step.kind {
        StepKind::Expand { lists, within, .. } => lists.len() == 1 && within.is_none(),
        StepKind::ExpandAny { far, .. } => matches!(far, FarEnd::Bind(_)),
        _ => false,
    };
    one && step.filters.is_empty()
}

fn scope_of(graph: &GraphRef) -> Option<GraphScope<'_>> {
    match graph {
        GraphRef::Default => Some(GraphScope::Default),
        GraphRef::Union => Some(GraphScope::Union),
        _ => None,
    }
}

impl WorkEstimate {
    /// The work of all explorations of a plan, for the steps that the device can execute, and of the supported
    /// operators above them.
    pub fn of_plan(plan: &Plan, snapshot: &dyn Graph) -> Self {
        let mut work = Self::default();
        let mut open = vec![(&plan.root, false, None)];
        while let Some((op, is_counted, top)) = open.pop() {
            let before = work.leaving;
            let is_root = std::ptr::eq(op, &plan.root);
            let there = match (work.tree(op, snapshot), op) {
                (Some(with), _) => {
                    work = with;
                    true
                }
                (None, Operator::Explore(e)) if e.empty.is_none() => {
                    work.exploration(&e.steps, is_counted, snapshot);
                    true
                }
                _ => false,
            };
            if there {
                if let Some(first) = top {
                    work.first_rows(op, first, work.leaving - before, snapshot);
                }
                let ids = (work.leaving - before) / 4.0;
                if !is_root {
                    work.passed += ids;
                } else if matches!(plan.form, Form::Select) && !plan.output.is_empty() {
                    work.columns = plan.output.len() as f64;
                    work.rows = ids / work.columns;
                }
                continue;
            }
            let counts = matches!(op, Operator::Count(c) if c.group.is_empty()
                && c.counts.iter().all(|c| !c.distinct));
            // ORDER BY with LIMIT applies to the rows of the operator directly below it.
            let first = match op {
                Operator::Slice(s) => match (&*s.input, s.limit) {
                    (Operator::OrderBy(o), Some(limit)) => {
                        let most = s.offset.saturating_add(limit) as f64;
                        o.keys.first().map(|key| (key.0, most))
                    }
                    _ => None,
                },
                Operator::OrderBy(_) => top,
                _ => None,
            };
            open.extend(op.inputs().into_iter().map(|i| (i, counts, first)));
        }
        work
    }

    /// True if there is nothing to do on either side.
    pub fn is_empty(&self) -> bool {
        self.launches == 0.0 && self.steps == 0.0
    }

    /// Speed-up of this many threads over one.
    fn speed_up(&self, threads: usize) -> f64 {
        if self.cpu_ns < LIGHT_COST {
            return 1.0;
        }
        let n = threads.max(1) as f64;
        n / (1.0 + CONTENTION * (n - 1.0))
    }

    /// Seconds on the CPU with this many threads.
    pub fn cpu(&self, threads: usize) -> f64 {
        let more = if threads > 1 { CPU_THREADS } else { 0.0 };
        CPU_PLAN + more + CPU_STEP * self.steps + self.cpu_ns * 1e-9 / self.speed_up(threads)
    }

    /// Seconds for processing the resulting ids if there are this many rows, after execution on the CPU and on a
    /// device. All threads do it, wherever the rows come from.
    pub fn decode(&self, threads: usize, rows: f64) -> [f64; 2] {
        let one = CELL * (rows * self.columns + OPERATED * self.passed);
        let takers = self.takers.unwrap_or(threads);
        [threads, takers].map(|n| one / self.speed_up(n))
    }

    /// This work plus that of an operator which the device executes together with everything below it; `None` for
    /// others.
    fn tree(&self, op: &Operator, snapshot: &dyn Graph) -> Option<Self> {
        let mut work = self.clone();
        if let Some(rows) = grouped(op) {
            work.groups(&rows, snapshot)?;
            return Some(work);
        }
        match op {
            // Only its count is copied back.
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
        // The wait for the result's rows.
        work.syncs += 1.0;
        Some(work)
    }

    /// Adds the work of an operator and of everything below it, which [`compile::may_run`] has found not to be deep.
    /// Returns the approximate numbers of its rows and columns.
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
            Operator::Path(p) => {
                let (rows, columns) = self.operator(&p.input, outer, snapshot)?;
                for (predicate, direction) in compile::step_edges(p) {
                    let look = self.lookup(predicate, direction, scope_of(&p.graph)?, snapshot)?;
                    self.sectors
                        .push((look.bytes, p.visited * (look.sectors + 1.0)));
                }
                // The number of levels is unknown. Each one measures and produces rows, and keeps new nodes.
                self.ordered += 8.0 * EXPANDING * p.visited;
                self.launches += 5.0 * LEVELS;
                self.kernels += 3.0 * LEVELS;
                self.syncs += 3.0 * LEVELS;
                self.distinct(p.visited, 1.0, snapshot);
                self.expansion(rows, rows * p.each, rows * p.each, columns);
                self.cpu_ns += PATH_NS * p.visited * rows;
                Some((rows * p.each, columns + p.new_slots().len() as f64))
            }
            Operator::Apply(a) => {
                let (rows, columns) = self.operator(&a.input, outer, snapshot)?;
                // Row numbers are written, bits cleared.
                self.ordered += 4.0 * rows;
                self.launches += 2.0;
                self.kernels += 1.0;
                self.in_order = None;
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
                self.kernels += 2.0;
                self.in_order = None;
                self.compact(rows, 4.0, alone, columns);
                Some((alone + joined, columns + new))
            }
            _ => None,
        }
    }

    /// Adds a GROUP BY or COUNT that is counted by combination, and everything below it.
    fn groups(&mut self, grouped: &GroupedRows<'_>, snapshot: &dyn Graph) -> Option<()> {
        let (rows, _) = self.operator(grouped.input, 0.0, snapshot)?;
        let columns = grouped.ids.len() as f64;
        let possible = compile::combinations(grouped.input, &grouped.ids, snapshot);
        let found = rows.min(possible);
        let limits = ReduceOptions::default();
        let dense = limits.most_dense as f64 + limits.dense_a_row as f64 * rows;
        self.ordered += FILTERING * 4.0 * rows * (columns + grouped.tested.len() as f64);
        let (counters, tables) = match possible <= dense {
            true => (possible, 0.0),
            // Slots are written and read again; half of them are in use.
            false => (2.0 * found, (columns - 1.0).max(1.0)),
        };
        self.ordered += FILTERING * 8.0 * rows * tables;
        self.sectors.push((8.0 * counters, rows * (1.0 + tables)));
        // Counters are cleared and read, and the distinct combinations are written.
        self.ordered += 8.0 * counters * (2.0 + tables) + 12.0 * found * (columns + 2.0);
        self.launches += 5.0 + 3.0 * tables;
        self.kernels += 3.0 + 2.0 * tables;
        self.syncs += 2.0;
        self.leaving += 4.0 * found * (columns + 2.0);
        self.cpu_ns += GROUP_NS * rows;
        Some(())
    }

    /// Adds the search for the first rows in an order, and subtracts the bytes of rows that need not be copied back.
    fn first_rows(
        &mut self,
        op: &Operator,
        (slot, most): (Slot, f64),
        leaving: f64,
        snapshot: &dyn Graph,
    ) {
        let slots = op.layout(&[]);
        let columns = slots.len() as f64;
        let rows = leaving / 4.0 / columns.max(1.0);
        let numbers = compile::number_share(op, slot, snapshot);
        if !slots.contains(&slot) || numbers == 0.0 || rows <= most {
            return;
        }
        self.ordered += FILTERING * rows * (8.0 + 4.0 + 8.0 + 4.0);
        self.sectors
            .push((4.0 * f64::from(snapshot.dense_ids()), rows));
        self.launches += 6.0;
        self.kernels += 6.0;
        self.syncs += 1.0;
        let stays = (rows * (1.0 - numbers) + most).min(rows);
        self.leaving -= leaving * (1.0 - stays / rows.max(1.0));
        self.cpu_ns += SORT_NS * rows;
    }

    /// Adds a DISTINCT of one column: each row tests its bit.
    fn distinct(&mut self, rows: f64, columns: f64, snapshot: &dyn Graph) {
        self.compact(rows, 4.0, rows, columns);
        self.launches += 1.0;
        self.sectors
            .push((f64::from(snapshot.dense_ids()) / 8.0, rows));
        self.cpu_ns += DISTINCT_NS * rows;
    }

    /// The bytes of the segments that steps read; `None` if the device cannot execute all of the steps.
    pub fn segment_bytes(steps: &[Step], snapshot: &dyn Graph) -> Option<f64> {
        let mut work = Self::default();
        for step in steps {
            work.step(step, 0.0, 0.0, snapshot)?;
        }
        Some(work.segments.values().sum())
    }

    fn exploration(&mut self, steps: &[Step], is_counted: bool, snapshot: &dyn Graph) {
        let (mut rows, mut columns, mut covered) = (1.0, 0, 0);
        for (i, step) in steps.iter().enumerate() {
            let before = self.clone();
            // If only the number of rows matters, the last step sums lengths.
            let lengths = is_counted && i + 1 == steps.len() && is_lengths(step);
            let made = if lengths { 0.0 } else { step.rows };
            if self.step(step, rows, made, snapshot).is_none() {
                *self = before;
                break;
            }
            (rows, columns) = (step.rows, step.live.len());
            self.cpu_ns += step.cost;
            covered += 1;
        }
        // A start alone is not executed there, and has no result.
        self.syncs += f64::from(u8::from(covered > 0));
        if covered > 0 && !is_counted {
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
        // With a patch, the bits of changed keys are read as well.
        let patch = f64::from(u8::from(view.patch().is_some()));
        let edges = s.neighbours.len() as f64;
        let bytes = finder + offsets + 4.0 * edges;
        self.segments.insert((predicate, direction), bytes);
        Some(LookupWork {
            sectors: sectors + bounds + patch,
            degree: edges / keys.max(1.0),
            bytes,
            one: s.offsets.is_none() && view.patch().is_none(),
            is_cut: false,
            is_void: false,
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
        self.ordered += FILTERING * (rows * read + 8.0 * kept * columns);
        self.launches += 1.0;
        self.kernels += 1.0;
        self.counted(rows);
    }

    /// Adds the wait for the count of at most this many rows, unless it stays on the device.
    fn counted(&mut self, rows: f64) {
        self.syncs += f64::from(u8::from(rows > UNCOUNTED as f64));
    }

    fn source(&mut self, source: &StartSource, rows: f64, snapshot: &dyn Graph) -> Option<()> {
        match source {
            StartSource::Unit => {}
            StartSource::IdFilter => {
                self.launches += 1.0;
                self.kernels += 1.0;
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
                self.kernels += 1.0;
                self.ordered += 4.0 * rows;
            }
            StartSource::Graphs(_) => return None,
        }
        Some(())
    }

    /// Adds the measuring and expansion of lists, with `outputs` before the conditions are tested.
    fn expansion(&mut self, rows: f64, outputs: f64, made: f64, columns: f64) {
        // Anchor, start and prefix are written, and both are read; ids are read and written with the carried columns.
        let read = rows * (4.0 + 8.0 + 8.0 + 4.0 * columns);
        self.ordered += EXPANDING * (read + 4.0 * outputs + made * (4.0 + 4.0 * columns));
        // One kernel measures lists and one produces rows; the state of a long prefix sum is cleared. Usually the host
        // reads the count.
        self.launches += 2.0 + f64::from(u8::from(rows > UNCOUNTED as f64));
        self.kernels += 2.0;
        self.syncs += 1.0;
    }

    /// Adds reads of the segments of all predicates, with a mean of `sectors` per row.
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

    /// Adds the sectors that rows read from a segment by this key.
    fn read(&mut self, anchor: Operand, look: &LookupWork, rows: f64, sectors: f64) {
        match anchor {
            Operand::Const(_) => {}
            Operand::Slot(slot) if self.in_order == Some(slot) => self.ordered += rows * IN_ORDER,
            Operand::Slot(_) => self.sectors.push((look.bytes, rows * sectors)),
        }
    }

    /// Adds a step over `rows` rows that produces `made`; `None` if the device cannot execute it.
    fn step(&mut self, step: &Step, rows: f64, made: f64, snapshot: &dyn Graph) -> Option<()> {
        let columns = step.live.len() as f64;
        if step.live.len() > MAX_COLUMNS {
            return None;
        }
        self.steps += 1.0;
        match &step.kind {
            StepKind::Start { to, source, within } => {
                self.source(source, made, snapshot)?;
                self.in_order = *to;
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
                let intervals = within.as_ref().map(|w| w.of_terms(snapshot));
                let mut looks = Vec::new();
                for list in lists {
                    let mut look = self.list(list, snapshot)?;
                    look.cut(list, intervals.as_deref(), self.in_order, snapshot);
                    looks.push((look, list.anchor));
                }
                match looks.as_slice() {
                    [(look, anchor @ Operand::Slot(_))] if look.one => {
                        self.read(*anchor, look, rows, look.sectors + 1.0);
                        self.compact(rows, 4.0, made, columns);
                    }
                    [(look, anchor)] => {
                        let tests = match &intervals {
                            Some(w) => !look.is_void && (w.len() > 1 || !look.is_cut),
                            None => false,
                        };
                        let outputs = if tests {
                            (rows * look.degree).max(made)
                        } else {
                            made
                        };
                        // Lists are not aligned to sectors.
                        self.read(*anchor, look, rows, look.sectors + 1.0);
                        self.expansion(rows, outputs, made, columns);
                        self.counted(if tests { outputs } else { 0.0 });
                    }
                    many => {
                        let shortest = many.iter().map(|l| l.0.degree).fold(f64::MAX, f64::min);
                        let candidates = (rows * shortest).max(made);
                        for (look, anchor) in many {
                            self.read(*anchor, look, rows, look.sectors + 1.0);
                        }
                        self.expansion(rows, 0.0, made, columns);
                        self.ordered += CANDIDATE * candidates + 8.0 * rows * many.len() as f64;
                        self.counted(candidates);
                    }
                }
            }
            StepKind::Check { list, .. } => {
                let look = self.list(list, snapshot)?;
                let sectors = look.sectors + search(look.degree);
                self.read(list.anchor, &look, rows, sectors);
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
