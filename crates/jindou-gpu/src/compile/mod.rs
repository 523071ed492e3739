//! Compilation of a plan for the device: segments are uploaded, constants looked up, columns laid out.

mod any;
mod clip;
mod conditions;
mod group;
mod hull;
mod path;
mod tree;

use crate::buffer::{DeviceBuffer, Packer};
use crate::cache::SegmentCache;
use crate::device::Device;
use crate::index::Catalog;
use crate::pages::{PagedSegment, Pager, Paging};
use crate::params::{self, MAX_COLUMNS, MAX_LISTS};
use crate::ranks::{DeviceRanks, RankTable};
use crate::resident::{ResidentSegment, alone};
use jindou_graph::Graph;
use jindou_graph::segment::{GraphScope, KeyFinder, RankBlock};
use jindou_model::{Direction, Error, PredicateId, Resource, Result};
use jindou_plan::{
    ApplyKind, EdgeList, GraphRef, IdFilter, Operand, Slot, StartSource, Step, StepKind,
};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

pub(crate) use clip::{FarShare, far_share};
pub(crate) use conditions::is_decided_by_ids;
pub(crate) use group::{
    FIRST, GroupPlan, HIGH, LAST, LOW, NUMBER, combinations, plain as number_column,
};
pub(crate) use hull::number_share;
pub(crate) use path::{DevicePath, may_follow, step_edges};
pub(crate) use tree::{WantedRows, compile_tree, may_run};

/// One list of an expansion or check.
pub(crate) struct DeviceList {
    pub segment: Arc<ResidentSegment>,
    pub anchor: Operand,
    /// Start and length in the device's neighbours, if the anchor is a constant.
    pub constant: Option<(u32, u32)>,
    /// The most ids of a list, if that is known.
    pub most: Option<u32>,
    /// True if it is to be cut to the hull of the step's intervals while it is measured.
    pub clips: bool,
    /// True if it is a constant's and has been cut to the hull.
    pub cut: bool,
}

/// Values that start a table.
pub(crate) enum DeviceSource<'a> {
    /// One row without values.
    Unit,
    /// A column in device memory.
    Column { at: u64, rows: u64, owner: Owner },
    /// The ids of intervals.
    Intervals(DeviceWithin),
    /// Keys in intervals.
    Runs { segment: Arc<ResidentSegment> },
    /// Keys in a bitmap; the host's blocks are for cutting.
    Bits {
        segment: Arc<ResidentSegment>,
        blocks: &'a [RankBlock],
    },
}

impl DeviceSource<'_> {
    /// Number of rows that it starts.
    pub fn rows(&self) -> u64 {
        match self {
            Self::Unit => 1,
            Self::Column { rows, .. } => *rows,
            Self::Intervals(w) => w.ids,
            Self::Runs { segment, .. } | Self::Bits { segment, .. } => {
                u64::from(segment.params.key_count)
            }
        }
    }
}

/// Owner that keeps a column's memory alive.
#[derive(Clone)]
pub(crate) enum Owner {
    Segment(#[allow(dead_code)] Arc<ResidentSegment>),
    Buffer(#[allow(dead_code)] Arc<DeviceBuffer>),
}

/// Intervals in device memory.
#[derive(Clone)]
pub(crate) struct DeviceWithin {
    pub params: crate::params::Within,
    /// Number of ids before each interval, for starts.
    pub before: u64,
    pub ids: u64,
    /// The beginning of the first interval and the end of the last one.
    pub hull: [u32; 2],
    _owner: Option<Arc<DeviceBuffer>>,
}

impl DeviceWithin {
    /// Every id.
    pub fn every(device: &Arc<Device>) -> Result<Self> {
        Self::new(device, None, false)
    }

    /// An empty list of intervals means "no id", a missing one "every id".
    fn new(device: &Arc<Device>, intervals: Option<&[[u32; 2]]>, start: bool) -> Result<Self> {
        let mut params: crate::params::Within = bytemuck::Zeroable::zeroed();
        let (mut before, mut ids, mut owner) = (0, 0, None);
        let mut hull = [0, u32::MAX];
        if let Some(list) = intervals {
            // Kernels need at least one interval to refuse everything.
            let list: &[[u32; 2]] = if list.is_empty() { &[[0, 0]] } else { list };
            let mut starts: Vec<u64> = Vec::with_capacity(list.len());
            for &[a, b] in list {
                starts.push(ids);
                ids += u64::from(b.saturating_sub(a));
            }
            params.count = list.len() as u32;
            hull = [list[0][0], list[list.len() - 1][1]];
            params.start = list[0][0];
            params.end = list[0][1];
            // A test of one interval only needs the parameters.
            if list.len() > 1 || start {
                let mut packed = Packer::default();
                let (table, firsts) = (packed.add(list), packed.add(&starts));
                let buffer = packed.finish(device)?;
                params.table = table.in_buffer(buffer.as_ref());
                before = firsts.in_buffer(buffer.as_ref());
                owner = buffer.map(Arc::new);
            }
        }
        Ok(Self {
            params,
            before,
            ids,
            hull,
            _owner: owner,
        })
    }
}

/// The work of one device step.
pub(crate) enum StepWork<'a> {
    Start {
        to: Option<Slot>,
        source: DeviceSource<'a>,
    },
    Cross {
        to: Slot,
        source: DeviceSource<'a>,
    },
    Expand {
        to: Slot,
        lists: Vec<DeviceList>,
        within: DeviceWithin,
    },
    Check {
        list: DeviceList,
        other: Operand,
    },
    Restrict {
        slot: Slot,
        within: DeviceWithin,
    },
    /// Keeps rows whose operands are the same id, or are not.
    Same {
        left: Operand,
        right: Operand,
        negate: bool,
    },
    /// As `Expand` along one list, for the predicate in a column.
    ExpandAny {
        to: Slot,
        anchor: Operand,
        predicate: Slot,
        catalog: Arc<Catalog>,
    },
    /// As `Check`, for the predicate in a column.
    CheckAny {
        anchor: Operand,
        predicate: Slot,
        other: Operand,
        catalog: Arc<Catalog>,
    },
    /// Keeps rows whose number satisfies a comparison.
    Compare {
        slot: Slot,
        ranks: DeviceRanks,
    },
    /// Keeps rows whose id no earlier row had, according to the set with this number.
    Distinct {
        slot: Slot,
        set: usize,
    },
    /// Runs the steps up to `end` for each row, and treats the row according to the outcome.
    Apply {
        kind: ApplyKind,
        end: usize,
        /// The column for the rows' numbers, and the interval of all numbers.
        number: Slot,
        numbers: DeviceWithin,
        /// The columns that these steps read, and those that they add.
        reads: Vec<Slot>,
        new: Vec<Slot>,
    },
    /// The end of such steps.
    EndApply {
        begin: usize,
    },
    /// Combines rows with the nodes that a path from one node leads to, or keeps those whose node is one.
    Path(DevicePath),
    /// Keeps the rows that may be among the first ones in an order.
    Top(DeviceTop),
    /// Counts equal rows; always the last step.
    Group {
        ids: Vec<Slot>,
        tested: Vec<Slot>,
    },
}

impl StepWork<'_> {
    /// The slot that it binds.
    fn binds(&self) -> Option<Slot> {
        match self {
            Self::Start { to, .. } => *to,
            Self::Cross { to, .. } | Self::Expand { to, .. } | Self::ExpandAny { to, .. } => {
                Some(*to)
            }
            Self::Path(path) => (!path.is_test).then_some(path.slot),
            _ => None,
        }
    }

    /// The segments that it reads.
    pub fn segments(&self) -> Vec<&Arc<ResidentSegment>> {
        match self {
            Self::Start { source, .. } | Self::Cross { source, .. } => match source {
                DeviceSource::Column {
                    owner: Owner::Segment(s),
                    ..
                }
                | DeviceSource::Runs { segment: s }
                | DeviceSource::Bits { segment: s, .. } => vec![s],
                _ => Vec::new(),
            },
            Self::Expand { lists, .. } => lists.iter().map(|l| &l.segment).collect(),
            Self::Check { list, .. } => vec![&list.segment],
            Self::Path(path) => path.lists.iter().map(|l| &l.segment).collect(),
            _ => Vec::new(),
        }
    }

    /// Slots that it reads besides those that it carries.
    fn needs(&self) -> Vec<Slot> {
        let mut out = Vec::new();
        let mut operand = |o: &Operand| {
            if let Operand::Slot(s) = o {
                out.push(*s);
            }
        };
        match self {
            Self::Start { .. } | Self::Cross { .. } => {}
            Self::Expand { lists, .. } => lists.iter().for_each(|l| operand(&l.anchor)),
            Self::Check { list, other } => [list.anchor, *other].iter().for_each(operand),
            Self::Restrict { slot, .. }
            | Self::Compare { slot, .. }
            | Self::Distinct { slot, .. } => out.push(*slot),
            Self::Path(path) => out.extend(path.is_test.then_some(path.slot)),
            Self::Top(top) => out.push(top.slot),
            Self::Group { ids, tested } => out.extend(ids.iter().chain(tested)),
            // The slots that their steps read belong to those steps.
            Self::Apply { .. } | Self::EndApply { .. } => {}
            Self::Same { left, right, .. } => [left, right].into_iter().for_each(operand),
            Self::ExpandAny {
                anchor, predicate, ..
            } => {
                operand(anchor);
                out.push(*predicate);
            }
            Self::CheckAny {
                anchor,
                predicate,
                other,
                ..
            } => {
                operand(anchor);
                operand(other);
                out.push(*predicate);
            }
        }
        out
    }
}

/// The order whose first rows are wanted.
pub(crate) struct DeviceTop {
    pub slot: Slot,
    pub is_descending: bool,
    /// Number of wanted rows.
    pub most: u64,
    /// The number above all ranks.
    pub last: u32,
    pub ranks: Arc<RankTable>,
}

/// A device step and the slots that it keeps.
pub(crate) struct DeviceStep<'a> {
    pub work: StepWork<'a>,
    pub keep: Vec<Slot>,
    pub name: String,
    /// Number of the plan's step of which it is a part.
    pub plan_step: usize,
}

/// The first steps of an exploration, compiled.
pub(crate) struct StepProgram<'a> {
    pub steps: Vec<DeviceStep<'a>>,
    pub segment_bytes: u64,
    /// Number of plan steps that it covers.
    pub covered: usize,
    /// Reason why it ends before the plan does.
    pub stopped: Option<Error>,
    /// True if the program ends because segments do not fit in the memory.
    pub is_short: bool,
    /// The blocks that steps read, if segments are paged.
    pub paging: Option<Paging<'a>>,
    /// Sets of ids that steps fill, without their memory.
    pub sets: Vec<params::Bits>,
    /// Number of result rows to skip, and most rows to return.
    pub slice: (u64, Option<u64>),
    /// The combinations that its last step counts.
    pub groups: Option<GroupPlan>,
}

impl StepProgram<'_> {
    /// All result rows: no offset and no limit.
    pub const ALL: (u64, Option<u64>) = (0, None);

    /// A number that programs with the same steps over the same segments share, whatever their constants.
    pub fn likeness(&self) -> u64 {
        let mut hash = FxHasher::default();
        for step in &self.steps {
            step.name.hash(&mut hash);
            step.keep.hash(&mut hash);
            for s in step.work.segments() {
                (s.params.neighbours, s.params.dirty, s.params.edges).hash(&mut hash);
            }
        }
        hash.finish()
    }

    /// Returns an error unless the program covers the whole plan.
    pub fn whole(self) -> Result<Self> {
        match self.stopped {
            Some(why) => Err(why),
            None => Ok(self),
        }
    }
}

/// A part of a plan's step, and its name for the profile.
type CompiledStep<'a> = (StepWork<'a>, String);

struct StepCompiler<'a> {
    device: &'a Arc<Device>,
    cache: &'a SegmentCache,
    snapshot: &'a dyn Graph,
    /// The pager, if segments are paged.
    pager: Option<&'a Pager>,
    segments: Vec<Arc<ResidentSegment>>,
    /// The slot from which the rows begin: its ids ascend from row to row.
    first: Option<Slot>,
    /// Slots that some step so far binds.
    bound: Vec<Slot>,
    /// Slots of `bound` that are unbound in some rows.
    maybe: Vec<Slot>,
    /// Sets of ids that steps fill.
    sets: Vec<params::Bits>,
}

fn scope_of(graph: &GraphRef) -> Result<GraphScope<'_>> {
    match graph {
        GraphRef::Default => Ok(GraphScope::Default),
        GraphRef::Union => Ok(GraphScope::Union),
        _ => Err(Error::Unsupported("chosen graphs on the GPU".into())),
    }
}

impl<'a> StepCompiler<'a> {
    /// The segment of a predicate: uploaded as a whole, or only its addresses.
    fn segment(
        &mut self,
        predicate: PredicateId,
        direction: Direction,
        scope: GraphScope<'_>,
    ) -> Result<Arc<ResidentSegment>> {
        let segment = match self.pager {
            Some(pager) => {
                let pages = pager.segment(self.snapshot, predicate, direction, scope)?;
                Arc::new(ResidentSegment::paged(pages))
            }
            None => self
                .cache
                .get(self.device, self.snapshot, predicate, direction, scope)?,
        };
        self.segments.push(Arc::clone(&segment));
        Ok(segment)
    }

    fn list(&mut self, list: &EdgeList) -> Result<DeviceList> {
        let scope = scope_of(&list.graph)?;
        let segment = self.segment(list.predicate, list.direction, scope)?;
        let view = self.snapshot.edges(list.predicate, list.direction);
        let stored = alone(&view, scope)?;
        let (constant, most) = match list.anchor {
            Operand::Slot(_) => (None, segment.most_neighbours(&stored)),
            Operand::Const(v) => {
                let range = segment.range_of(&stored, v);
                (Some(range), Some(range.1))
            }
        };
        Ok(DeviceList {
            segment,
            anchor: list.anchor,
            constant,
            most,
            clips: false,
            cut: false,
        })
    }

    /// Returns an error if the blocks that a step reads do not fit together.
    fn fits(&self, steps: &[DeviceStep<'_>]) -> Result<()> {
        let fits = |pager: &Pager| steps.iter().all(|s| pager.fit(&pages_of(s)));
        if self.pager.is_none_or(fits) {
            return Ok(());
        }
        Err(Error::limit(
            Resource::Device,
            "a step's segments are larger than what blocks may take",
        ))
    }

    /// The condition in device memory.
    fn within(&self, within: Option<&IdFilter>, start: bool) -> Result<DeviceWithin> {
        let ids = within.map(|w| intervals_of(w, self.snapshot));
        DeviceWithin::new(self.device, ids.as_deref(), start)
    }

    fn source(
        &mut self,
        source: &StartSource,
        within: Option<&IdFilter>,
    ) -> Result<DeviceSource<'a>> {
        Ok(match source {
            StartSource::Unit => DeviceSource::Unit,
            StartSource::IdFilter => DeviceSource::Intervals(self.within(
                Some(within.ok_or_else(|| Error::Internal("a start without intervals".into()))?),
                true,
            )?),
            StartSource::List(list) => {
                let list = self.list(list)?;
                let Some((start, length)) = list.constant else {
                    return Err(Error::Internal(
                        "a start from a list without a constant".into(),
                    ));
                };
                DeviceSource::Column {
                    at: list.segment.params.neighbours + u64::from(start) * 4,
                    rows: u64::from(length),
                    owner: Owner::Segment(list.segment),
                }
            }
            StartSource::Keys {
                predicate,
                direction,
                graph,
            } => {
                let scope = scope_of(graph)?;
                let segment = self.segment(*predicate, *direction, scope)?;
                let view = self.snapshot.edges(*predicate, *direction);
                if !segment.is_plain() {
                    let base = alone(&view, scope)?;
                    let (keys, rows) = segment.patched_keys(self.device, &base)?;
                    return Ok(DeviceSource::Column {
                        at: keys.at(),
                        rows: u64::from(rows),
                        owner: Owner::Buffer(keys),
                    });
                }
                match alone(&view, scope)?.finder {
                    KeyFinder::Empty => DeviceSource::Column {
                        at: 0,
                        rows: 0,
                        owner: Owner::Segment(segment),
                    },
                    KeyFinder::Intervals(_) => DeviceSource::Runs { segment },
                    KeyFinder::Bitmap { blocks, .. } => DeviceSource::Bits { segment, blocks },
                    // The device has a directory for folded ones.
                    KeyFinder::Directory { .. }
                    | KeyFinder::FoldedBitmap { .. }
                    | KeyFinder::FoldedDirectory { .. } => DeviceSource::Column {
                        at: segment.params.keys,
                        rows: u64::from(segment.params.key_count),
                        owner: Owner::Segment(segment),
                    },
                }
            }
            StartSource::Graphs(_) => {
                return Err(Error::Unsupported("graph variables on the GPU".into()));
            }
        })
    }

    /// Appends the parts of the plan's step with this number. Columns that only its conditions read stay if
    /// `keep_tested`, as they do on the CPU.
    fn step(
        &mut self,
        step: &Step,
        number: usize,
        keep_tested: bool,
        out: &mut Vec<DeviceStep<'a>>,
    ) -> Result<()> {
        let mut extra = None;
        let mut works: Vec<CompiledStep<'a>> = Vec::new();
        let (work, name) = match &step.kind {
            StepKind::Start { to, source, within } => {
                self.first = *to;
                if !matches!(source, StartSource::IdFilter) {
                    extra = to.zip(within.as_ref());
                }
                let name = format!("start {}", source_name(source));
                (
                    StepWork::Start {
                        to: *to,
                        source: self.source(source, within.as_ref())?,
                    },
                    name,
                )
            }
            StepKind::Cross { to, source, within } => {
                if !matches!(source, StartSource::IdFilter) {
                    extra = within.as_ref().map(|w| (*to, w));
                }
                let name = format!("cross {}", source_name(source));
                (
                    StepWork::Cross {
                        to: *to,
                        source: self.source(source, within.as_ref())?,
                    },
                    name,
                )
            }
            StepKind::Expand { to, lists, within } => {
                if lists.is_empty() || lists.len() > MAX_LISTS {
                    return Err(Error::Unsupported(format!(
                        "{} lists at once on the GPU",
                        lists.len()
                    )));
                }
                let name = format!("expand ?{to} along {} list(s)", lists.len());
                let (lists, within) = self.clipped(lists, within.as_ref())?;
                (
                    StepWork::Expand {
                        to: *to,
                        lists,
                        within,
                    },
                    name,
                )
            }
            StepKind::Check { list, other } => (
                StepWork::Check {
                    list: self.list(list)?,
                    other: *other,
                },
                "check".into(),
            ),
            StepKind::Restrict { slot, within } => (
                StepWork::Restrict {
                    slot: *slot,
                    within: self.within(Some(within), false)?,
                },
                format!("restrict ?{slot}"),
            ),
            StepKind::ExpandAny { .. } | StepKind::ScanAll { .. } => self.any(step, &mut works)?,
        };
        works.push((work, name));
        if let Some((slot, within)) = extra {
            let within = self.within(Some(within), false)?;
            works.push((
                StepWork::Restrict { slot, within },
                format!("restrict ?{slot}"),
            ));
        }
        self.bound.extend(works.iter().filter_map(|w| w.0.binds()));
        let mut tested = Vec::new();
        for c in &step.filters {
            self.condition(c, &mut works)?;
            conditions::slots(c, &mut tested);
        }
        let surely = |s: &Slot| self.bound.contains(s) && !self.maybe.contains(s);
        if !tested.iter().all(surely) {
            return Err(Error::Unsupported(
                "a filter on an unbound variable on the GPU".into(),
            ));
        }
        // Later parts of this step need their slots until they have run.
        let mut keep: Vec<Slot> = step.live.clone();
        if keep_tested {
            keep.append(&mut tested);
        }
        let first = out.len();
        for (work, name) in works.into_iter().rev() {
            let needs = work.needs();
            out.push(DeviceStep {
                work,
                keep: keep.clone(),
                name,
                plan_step: number,
            });
            for s in needs {
                if !keep.contains(&s) {
                    keep.push(s);
                }
            }
        }
        out[first..].reverse();
        if out[first..].iter().any(|s| s.keep.len() > MAX_COLUMNS) {
            return Err(Error::Unsupported(format!(
                "more than {MAX_COLUMNS} variables on the GPU"
            )));
        }
        Ok(())
    }
}

/// The exact intervals of a condition, regardless of updates.
fn intervals_of(within: &IdFilter, snapshot: &dyn Graph) -> Vec<[u32; 2]> {
    if within.is_exact() {
        within.of_terms(snapshot).into_owned()
    } else {
        within.exact(snapshot)
    }
}

/// The paged segments of a step, without duplicates.
fn pages_of(step: &DeviceStep<'_>) -> Vec<Arc<PagedSegment>> {
    let mut pages: Vec<Arc<PagedSegment>> = step
        .work
        .segments()
        .into_iter()
        .filter_map(|s| s.pages().cloned())
        .collect();
    pages.sort_unstable_by_key(|p| Arc::as_ptr(p) as usize);
    pages.dedup_by_key(|p| Arc::as_ptr(p) as usize);
    pages
}

fn source_name(source: &StartSource) -> &'static str {
    match source {
        StartSource::Unit => "from nothing",
        StartSource::IdFilter => "from intervals",
        StartSource::List(_) => "from a list",
        StartSource::Keys { .. } => "from keys",
        StartSource::Graphs(_) => "from graphs",
    }
}

/// Uploads the data for the first steps and lays it out: as many steps as the device runs, possibly none. The first
/// step must be a start. With a pager, segments are uploaded in blocks before each step instead.
///
/// # Errors
/// Errors that keep the device from running anything, such as those of a broken driver; `Internal` for a malformed
/// plan.
pub(crate) fn compile<'a>(
    (device, cache): (&'a Arc<Device>, &'a SegmentCache),
    pager: Option<&'a Pager>,
    snapshot: &'a dyn Graph,
    plan: &[Step],
    keep_tested: bool,
) -> Result<StepProgram<'a>> {
    let running = pager.map(Pager::begin).transpose()?;
    let mut c = StepCompiler {
        device,
        cache,
        snapshot,
        pager,
        segments: Vec::new(),
        first: None,
        bound: Vec::new(),
        maybe: Vec::new(),
        sets: Vec::new(),
    };
    let (mut steps, mut covered, mut stopped, mut is_short) = (Vec::new(), 0, None, false);
    for (number, s) in plan.iter().enumerate() {
        let before = steps.len();
        let made = c.step(s, number, keep_tested, &mut steps);
        match made.and_then(|()| c.fits(&steps[before..])) {
            Ok(()) => covered += 1,
            Err(why @ (Error::Unsupported(_) | Error::Limit(_))) => {
                steps.truncate(before);
                is_short = matches!(why, Error::Limit(_));
                // Segments that do not fit are a reason to leave the plan to the CPU, not to fail.
                stopped = Some(match why {
                    Error::Limit(why) => Error::Unsupported(format!(
                        "segments larger than the GPU's memory (step {number}: {why})"
                    )),
                    other => other,
                });
                break;
            }
            Err(e) => return Err(e),
        }
    }
    let starts = matches!(steps.first().map(|s| &s.work), Some(StepWork::Start { .. }));
    if covered > 0 && !starts {
        return Err(Error::Internal(
            "a plan that does not begin with a start".into(),
        ));
    }
    c.segments.sort_by_key(|s| Arc::as_ptr(s) as usize);
    c.segments.dedup_by_key(|s| Arc::as_ptr(s) as usize);
    let segment_bytes = c.segments.iter().map(|s| s.bytes()).sum();
    let paging = pager.zip(running).map(|(pager, running)| Paging {
        pager,
        snapshot,
        steps: steps.iter().map(pages_of).collect(),
        _running: running,
    });
    Ok(StepProgram {
        steps,
        segment_bytes,
        covered,
        stopped,
        is_short,
        paging,
        sets: Vec::new(),
        slice: StepProgram::ALL,
        groups: None,
    })
}
