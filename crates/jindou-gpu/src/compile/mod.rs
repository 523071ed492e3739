//! Compilation of a plan to device steps: uploads segments, looks up constants' lists, and decides which columns each
//! step keeps.

mod any;
mod clip;
mod conditions;
mod group;
mod hull;
mod path;
mod program;
mod tree;

use crate::cache::SegmentCache;
use crate::device::Device;
use crate::pages::{PagedSegment, Pager, Paging, RunningPlan};
use crate::params::{self, MAX_COLUMNS, MAX_LISTS};
use crate::resident::{ResidentSegment, alone};
use jindou_graph::Graph;
use jindou_graph::segment::{GraphScope, KeyFinder};
use jindou_model::{Direction, Error, PredicateId, Resource, Result};
use jindou_plan::{EdgeList, GraphRef, IdFilter, Operand, Slot, StartSource, Step, StepKind};
use std::sync::Arc;

pub(crate) use clip::{FarShare, far_share};
pub(crate) use conditions::is_decided_by_ids;
pub(crate) use group::{
    FIRST, GroupPlan, HIGH, LAST, LOW, NUMBER, combinations, plain as number_column,
};
pub(crate) use hull::number_share;
pub(crate) use path::{DevicePath, may_follow, step_edges};
pub(crate) use program::{
    DeviceList, DeviceSource, DeviceStep, DeviceTop, DeviceWithin, Owner, StepProgram, StepWork,
};
pub(crate) use tree::{WantedRows, compile_tree, may_run};

/// The work of a device step, and its name for the profile. A step of a plan becomes one or several of these.
type CompiledStep<'a> = (StepWork<'a>, String);

struct StepCompiler<'a> {
    device: &'a Arc<Device>,
    cache: &'a SegmentCache,
    snapshot: &'a dyn Graph,
    /// Uploads segments block by block; `None` if segments are uploaded as a whole.
    pager: Option<&'a Pager>,
    segments: Vec<Arc<ResidentSegment>>,
    /// The slot that the first step binds; its ids ascend from row to row, so lookups by it are sequential.
    first: Option<Slot>,
    /// Slots that the steps compiled so far bind.
    bound: Vec<Slot>,
    /// Slots of `bound` that are unbound in some rows, because an OPTIONAL bound them.
    maybe: Vec<Slot>,
    /// Bitmaps over ids that steps fill at run time, by number.
    sets: Vec<params::Bits>,
}

/// The part of a store that a step over these graphs reads; `Unsupported` if the device cannot.
pub(crate) fn scope_of(graph: &GraphRef) -> Result<GraphScope<'_>> {
    match graph {
        GraphRef::Default => Ok(GraphScope::Default),
        GraphRef::Union => Ok(GraphScope::Union),
        _ => Err(Error::Unsupported("chosen graphs on the GPU".into())),
    }
}

impl<'a> StepCompiler<'a> {
    fn new(
        (device, cache): (&'a Arc<Device>, &'a SegmentCache),
        pager: Option<&'a Pager>,
        snapshot: &'a dyn Graph,
    ) -> Self {
        Self {
            device,
            cache,
            snapshot,
            pager,
            segments: Vec::new(),
            first: None,
            bound: Vec::new(),
            maybe: Vec::new(),
            sets: Vec::new(),
        }
    }

    /// The program of these steps, which ends early if `stopped` says why. `running` is what [`Pager::begin`] returned.
    fn program(
        mut self,
        steps: Vec<DeviceStep<'a>>,
        covered: usize,
        stopped: Option<Error>,
        running: Option<RunningPlan<'a>>,
    ) -> StepProgram<'a> {
        self.segments.sort_by_key(|s| Arc::as_ptr(s) as usize);
        self.segments.dedup_by_key(|s| Arc::as_ptr(s) as usize);
        let paging = self.pager.zip(running).map(|(pager, running)| Paging {
            pager,
            snapshot: self.snapshot,
            steps: steps.iter().map(pages_of).collect(),
            _running: running,
        });
        StepProgram {
            steps,
            segment_bytes: self.segments.iter().map(|s| s.bytes()).sum(),
            covered,
            stopped,
            is_short: false,
            paging,
            sets: self.sets,
            slice: StepProgram::ALL,
            groups: None,
        }
    }

    /// The segment of a predicate. Uploads it unless there is a pager, which then only reserves its addresses.
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

    /// Returns an error if the paged segments that one step reads do not fit into the device's memory together.
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

    /// A condition's intervals in device memory. With `start`, also the number of ids before each, for a step that
    /// produces rows from them.
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
                    // The device gets folded directories and bitmaps converted to directories.
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

    /// Appends the device steps of the plan's step `number`. If `keep_tested`, columns that only its conditions read
    /// are kept, as the CPU keeps them.
    fn step(
        &mut self,
        step: &Step,
        number: usize,
        keep_tested: bool,
        out: &mut Vec<DeviceStep<'a>>,
    ) -> Result<()> {
        let mut works: Vec<CompiledStep<'a>> = Vec::new();
        self.compile_kind(step, &mut works)?;
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
        let mut keep: Vec<Slot> = step.live.clone();
        if keep_tested {
            keep.append(&mut tested);
        }
        append_parts(works, keep, number, out)
    }

    /// Appends the device steps of a step without its conditions.
    fn compile_kind(&mut self, step: &Step, works: &mut Vec<CompiledStep<'a>>) -> Result<()> {
        let mut extra = None;
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
            StepKind::ExpandAny { .. } | StepKind::ScanAll { .. } => self.any(step, works)?,
        };
        works.push((work, name));
        if let Some((slot, within)) = extra {
            let within = self.within(Some(within), false)?;
            works.push((
                StepWork::Restrict { slot, within },
                format!("restrict ?{slot}"),
            ));
        }
        Ok(())
    }
}

/// Appends device steps that belong to the plan's step `number`. Each keeps the columns in `keep`, and those that later
/// ones among them read.
fn append_parts<'a>(
    works: Vec<CompiledStep<'a>>,
    mut keep: Vec<Slot>,
    number: usize,
    out: &mut Vec<DeviceStep<'a>>,
) -> Result<()> {
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

/// The exact intervals of a condition, whether or not updates added terms.
fn intervals_of(within: &IdFilter, snapshot: &dyn Graph) -> Vec<[u32; 2]> {
    if within.is_exact() {
        within.of_terms(snapshot).into_owned()
    } else {
        within.exact(snapshot)
    }
}

/// The paged segments that a step reads, without duplicates.
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

/// Compiles as many of the first steps as the device can execute, possibly none, and uploads the data that they read.
/// The first step must be a start. With a pager, nothing is uploaded here; segments are uploaded in blocks before each
/// step runs.
///
/// # Errors
/// Errors for which the device cannot execute anything, such as those of a broken driver; `Internal` for a malformed
/// plan.
/// plan.
pub(crate) fn compile<'a>(
    (device, cache): (&'a Arc<Device>, &'a SegmentCache),
    pager: Option<&'a Pager>,
    snapshot: &'a dyn Graph,
    plan: &[Step],
    keep_tested: bool,
) -> Result<StepProgram<'a>> {
    let running = pager.map(Pager::begin).transpose()?;
    let mut c = StepCompiler::new((device, cache), pager, snapshot);
    let (mut steps, mut covered, mut stopped, mut is_short) = (Vec::new(), 0, None, false);
    for (number, s) in plan.iter().enumerate() {
        let before = steps.len();
        let made = c.step(s, number, keep_tested, &mut steps);
        match made.and_then(|()| c.fits(&steps[before..])) {
            Ok(()) => covered += 1,
            Err(why @ (Error::Unsupported(_) | Error::Limit(_))) => {
                steps.truncate(before);
                is_short = matches!(why, Error::Limit(_));
                // If segments do not fit, the plan is left to the CPU rather than failed.
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
    let program = c.program(steps, covered, stopped, running);
    Ok(StepProgram {
        is_short,
        ..program
    })
}
