//! Estimate of the work of a plan: what its steps would take on a device with all segments there, and on the CPU.
//!
//! Kernels take longer than moving their bytes. This was measured on an H200 on 26 November 2026 (`bench/gpu.sh`, stage
//! `floors`: 21 kernels over 16.8 million rows), and is expressed as additional sequential bytes.

mod steps;

use crate::compile;
use crate::counts::UNCOUNTED;
use crate::executor::grouped;
use crate::steps::ReduceOptions;
use jindou_engine::GroupedRows;
use jindou_graph::Graph;
use jindou_graph::segment::GraphScope;
use jindou_model::{Direction, PredicateId};
use jindou_plan::{
    ApplyKind, FarEnd, Form, GraphRef, LIGHT_COST, Operator, Plan, Slot, Step, StepKind,
};
use rustc_hash::FxHashMap;

/// A segment, in whatever version: predicate and direction.
pub(crate) type SegmentName = (PredicateId, Direction);

/// CPU nanoseconds, as the planner counts them, for a lookup in a hash table and for a row that enters or leaves a
/// sub-plan.
const DISTINCT_NS: f64 = 10.0;
const APPLY_NS: f64 = 5.0;
/// CPU nanoseconds for a node that a property path visits, and the assumed number of repetitions of a path.
const PATH_NS: f64 = 20.0;
const LEVELS: f64 = 10.0;
/// CPU nanoseconds for a row that ORDER BY with LIMIT compares.
const SORT_NS: f64 = 4.0;
/// CPU nanoseconds for a row that is grouped.
const GROUP_NS: f64 = 10.0;
/// Time of filtering kernels relative to copying the bytes that they move.
const FILTERING: f64 = 1.6;
/// Factor of the same kind for kernels that measure lists and produce rows from them.
const EXPANDING: f64 = 2.7;

/// Seconds on the CPU: per plan, per plan with more than one thread, and per step.
const CPU_PLAN: f64 = 0.3e-6;
const CPU_THREADS: f64 = 1e-6;
const CPU_STEP: f64 = 0.5e-6;
/// Slow-down of all threads of a heavy plan per additional thread, since they share memory bandwidth. On 16 cores,
/// LUBM's heavy queries are 9 to 10 times as fast as on one.
const CONTENTION: f64 = 0.045;
/// CPU seconds for decoding an id to a term's text.
const CELL: f64 = 40e-9;
/// Time for passing an id that is copied back to an operator on the CPU, as a share of [`CELL`].
const OPERATED: f64 = 0.25;

/// Assumed share of the rows that pass a FILTER above an exploration.
const UNKNOWN_SHARE: f64 = 0.5;

/// The estimated work of a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkEstimate {
    /// Bytes read and written sequentially, each kernel's weighted by its slow-down ([`FILTERING`], [`EXPANDING`]).
    pub ordered: f64,
    /// Random reads: pairs of the size in bytes of the segment read from, and the number of sectors of 32 bytes.
    pub sectors: Vec<(f64, f64)>,
    /// Number of kernels and of fills with zeros.
    pub launches: f64,
    /// Number of kernels.
    pub kernels: f64,
    /// Number of times that the host waits for the device.
    pub syncs: f64,
    /// The segments that are read, with their sizes in bytes.
    pub segments: FxHashMap<SegmentName, f64>,
    /// Bytes of rows that are copied back.
    pub leaving: f64,
    /// Number of result rows, if the device executes the plan's last operator; otherwise 0.
    pub rows: f64,
    /// Number of columns of these rows, all of which are decoded to terms.
    pub columns: f64,
    /// Number of ids that are copied back for operators on the CPU.
    pub passed: f64,
    /// Number of CPU threads that process the rows from the device, if not all: runs that were recorded by older
    /// versions used one.
    pub takers: Option<usize>,
    /// Number of steps.
    pub steps: f64,
    /// The planner's nanoseconds for the same work on one core.
    pub cpu_ns: f64,
    /// The column whose ids ascend from row to row, so that lookups by it are sequential.
    pub in_order: Option<Slot>,
}

/// True for an expansion whose rows a COUNT does not need, since it can sum the lengths of the lists.
fn is_lengths(step: &Step) -> bool {
    let one = match &step.kind {
        StepKind::Expand { lists, within, .. } => lists.len() == 1 && within.is_none(),
        StepKind::ExpandAny { far, .. } => matches!(far, FarEnd::Bind(_)),
        _ => false,
    };
    one && step.filters.is_empty()
}

fn scope_of(graph: &GraphRef) -> Option<GraphScope<'_>> {
    compile::scope_of(graph).ok()
}

impl WorkEstimate {
    /// The work of all explorations of a plan, as far as the device can execute their steps, and of the operators above
    /// them that it supports.
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

    /// True for a plan without work on either side.
    pub fn is_empty(&self) -> bool {
        self.launches == 0.0 && self.steps == 0.0
    }

    /// Factor by which this many threads are faster than one; 1 for light plans.
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

    /// Seconds for decoding terms and passing ids on if there are this many rows: after execution on the CPU, and after
    /// execution on a device.
    pub fn decode(&self, threads: usize, rows: f64) -> [f64; 2] {
        let one = CELL * (rows * self.columns + OPERATED * self.passed);
        let takers = self.takers.unwrap_or(threads);
        [threads, takers].map(|n| one / self.speed_up(n))
    }

    /// This work plus that of `op` and everything below it, if the device executes all of it; `None` if it does not.
    fn tree(&self, op: &Operator, snapshot: &dyn Graph) -> Option<Self> {
        let mut work = self.clone();
        if let Some(rows) = grouped(op) {
            work.groups(&rows, snapshot)?;
            return Some(work);
        }
        match op {
            // Only the count is copied back.
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
        // The host waits once for the result's rows.
        work.syncs += 1.0;
        Some(work)
    }

    /// Adds the work of an operator and of everything below it. [`compile::may_run`] has limited the depth of the
    /// recursion. Returns the estimated numbers of its rows and columns.
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
                // The number of repetitions is unknown. Each one measures and expands lists, and keeps the nodes that
                // are new.
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
                // The outer rows are numbered, and the bitmap of numbers is cleared.
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
                // The bitmap is filled and read, and outer columns are gathered for the inner rows.
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

    /// Adds a GROUP BY or COUNT that the device counts by combination, and everything below it.
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
            // Twice as many hash slots as combinations are written, and read later.
            false => (2.0 * found, (columns - 1.0).max(1.0)),
        };
        self.ordered += FILTERING * 8.0 * rows * tables;
        self.sectors.push((8.0 * counters, rows * (1.0 + tables)));
        // Counters are cleared and read, and the combinations found are written.
        self.ordered += 8.0 * counters * (2.0 + tables) + 12.0 * found * (columns + 2.0);
        self.launches += 5.0 + 3.0 * tables;
        self.kernels += 3.0 + 2.0 * tables;
        self.syncs += 2.0;
        self.leaving += 4.0 * found * (columns + 2.0);
        self.cpu_ns += GROUP_NS * rows;
        Some(())
    }

    /// Adds the search for the first rows in an order, and subtracts the bytes of the other rows, which are not copied
    /// back.
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

    /// Adds a DISTINCT of one column, which tests a bit for each row.
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
        // A start without further steps is left to the CPU, so it copies nothing back.
        self.syncs += f64::from(u8::from(covered > 0));
        if covered > 0 && !is_counted {
            self.leaving += 4.0 * rows * columns as f64;
        }
    }

    /// Adds a kernel that filters `rows` rows, reads `read` bytes for each, and keeps `kept` rows of `columns` columns.
    fn compact(&mut self, rows: f64, read: f64, kept: f64, columns: f64) {
        self.ordered += FILTERING * (rows * read + 8.0 * kept * columns);
        self.launches += 1.0;
        self.kernels += 1.0;
        self.counted(rows);
    }

    /// Adds a wait for a row count, unless there are at most [`UNCOUNTED`] rows, whose count stays on the device.
    fn counted(&mut self, rows: f64) {
        self.syncs += f64::from(u8::from(rows > UNCOUNTED as f64));
    }
}
