//! Estimated work of each step of an exploration.

use super::{EXPANDING, WorkEstimate, scope_of};
use crate::compile::{self, FarShare, far_share};
use crate::counts::UNCOUNTED;
use crate::params::{MAX_COLUMNS, MAX_LISTS};
use crate::resident::alone;
use jindou_graph::Graph;
use jindou_graph::segment::{GraphScope, KeyFinder};
use jindou_model::{Direction, PredicateId};
use jindou_plan::{EdgeList, FarEnd, GraphRef, Operand, Slot, StartSource, Step, StepKind};

/// Cost of searching the other lists of an intersection for one id, as an equivalent number of copied bytes: some 16
/// picoseconds. (19 were measured with eight rows per thread; four rows per thread, as now, take 0.83 of that.)
const CANDIDATE: f64 = 66.0;
/// Bytes read per row from a segment whose keys come in order.
const IN_ORDER: f64 = 8.0;

/// The cost of lookups in a segment.
pub(super) struct LookupWork {
    /// Number of sectors read to find a key and the bounds of its list.
    pub(super) sectors: f64,
    /// Mean number of neighbours of a key.
    pub(super) degree: f64,
    pub(super) bytes: f64,
    /// True if every key has one neighbour and there is no patch.
    pub(super) one: bool,
    /// True if the device clips lists to the hull of a condition's intervals; and true if all neighbours satisfy the
    /// condition, so that nothing is tested.
    pub(super) is_cut: bool,
    pub(super) is_void: bool,
}

impl LookupWork {
    /// Accounts for a condition on the neighbours: lists become shorter, and clipping has a cost.
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
            // Clipping reads both ends of the list and searches for one bound.
            self.sectors += 1.0 + search(self.degree);
        }
        if self.is_cut {
            self.degree *= share.map_or(1.0, |s| s.inside);
        }
    }
}

/// Number of sectors that a binary search in a list reads; its first probes are usually in the cache.
fn search(degree: f64) -> f64 {
    1.0 + (degree / 8.0).max(1.0).log2().min(4.0)
}

impl WorkEstimate {
    pub(super) fn lookup(
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
            // The device gets these finders converted to directories.
            KeyFinder::FoldedBitmap { .. } | KeyFinder::FoldedDirectory { .. } => (3.0, 8.0 * keys),
        };
        let (bounds, offsets) = match s.offsets {
            Some(o) => (1.0, 4.0 * o.len() as f64),
            None => (0.0, 0.0),
        };
        // With a patch, a lookup also reads the bitmap of changed keys.
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

    /// Adds an expansion of `rows` rows to `outputs` rows, of which `made` pass the conditions.
    pub(super) fn expansion(&mut self, rows: f64, outputs: f64, made: f64, columns: f64) {
        // The anchor, list start and prefix sum of each row are written; start and prefix are read again. Ids and
        // carried columns are read and written.
        let read = rows * (4.0 + 8.0 + 8.0 + 4.0 * columns);
        self.ordered += EXPANDING * (read + 4.0 * outputs + made * (4.0 + 4.0 * columns));
        // One kernel measures lists and one produces rows; for a long prefix sum, its state is cleared first. Usually
        // the host reads the count.
        self.launches += 2.0 + f64::from(u8::from(rows > UNCOUNTED as f64));
        self.kernels += 2.0;
        self.syncs += 1.0;
    }

    /// Adds an expansion over the segments of all predicates, with a mean number of sectors per lookup.
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
        // The first expansion produces the predicates of each vertex, the second one their neighbours.
        self.expansion(rows, made, made, columns);
        self.expansion(made, made, made, columns);
        self.sectors.push((bytes, rows * 3.0 + made * (mean + 1.0)));
        Some(())
    }

    /// Adds the sectors that `rows` lookups read from a segment: none for a constant, few if keys come in order.
    fn read(&mut self, anchor: Operand, look: &LookupWork, rows: f64, sectors: f64) {
        match anchor {
            Operand::Const(_) => {}
            Operand::Slot(slot) if self.in_order == Some(slot) => self.ordered += rows * IN_ORDER,
            Operand::Slot(_) => self.sectors.push((look.bytes, rows * sectors)),
        }
    }

    /// Adds a step over `rows` rows that produces `made`; `None` if the device cannot execute it.
    pub(super) fn step(
        &mut self,
        step: &Step,
        rows: f64,
        made: f64,
        snapshot: &dyn Graph,
    ) -> Option<()> {
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
                        // A list starts anywhere in a sector, so on average it touches one more.
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
