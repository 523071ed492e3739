//! The compiled form of a plan: device steps with their segments, columns and constants.

use super::{DevicePath, GroupPlan};
use crate::buffer::{DeviceBuffer, Packer};
use crate::device::Device;
use crate::index::Catalog;
use crate::pages::Paging;
use crate::params;
use crate::ranks::{DeviceRanks, RankTable};
use crate::resident::ResidentSegment;
use jindou_graph::segment::RankBlock;
use jindou_model::{Error, Result};
use jindou_plan::{ApplyKind, Operand, Slot};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// One neighbour list of an expansion or check.
pub(crate) struct DeviceList {
    pub segment: Arc<ResidentSegment>,
    pub anchor: Operand,
    /// If the anchor is a constant: where its list starts in the segment's neighbours on the device, and its length.
    pub constant: Option<(u32, u32)>,
    /// Upper bound on the list's length, if it is known: the segment's longest list, or this list if its key is
    /// constant.
    pub most: Option<u32>,
    /// True if the device clips the list to the hull of the step's intervals when it measures it.
    pub clips: bool,
    /// True if this is a constant's list that was clipped to the hull on the host.
    pub cut: bool,
}

/// The rows that a `Start` or `Cross` step produces.
pub(crate) enum DeviceSource<'a> {
    /// One row without columns.
    Unit,
    /// A column in device memory.
    Column { at: u64, rows: u64, owner: Owner },
    /// All ids of these intervals.
    Intervals(DeviceWithin),
    /// The keys of a segment whose finder is a list of intervals.
    Runs { segment: Arc<ResidentSegment> },
    /// The keys of a segment whose finder is a bitmap; `blocks` is the host's copy, by which the keys are divided into
    /// parts.
    Bits {
        segment: Arc<ResidentSegment>,
        blocks: &'a [RankBlock],
    },
}

impl DeviceSource<'_> {
    /// Number of start rows.
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

/// The owner of a column's memory, referenced to keep it alive.
#[derive(Clone)]
pub(crate) enum Owner {
    Segment(#[allow(dead_code)] Arc<ResidentSegment>),
    Buffer(#[allow(dead_code)] Arc<DeviceBuffer>),
}

/// A set of ids as intervals in device memory.
#[derive(Clone)]
pub(crate) struct DeviceWithin {
    pub params: crate::params::Within,
    /// Address of the number of ids before each interval, for steps that produce rows from them; 0 otherwise.
    pub before: u64,
    pub ids: u64,
    /// The beginning of the first interval and the end of the last one.
    pub hull: [u32; 2],
    _owner: Option<Arc<DeviceBuffer>>,
}

impl DeviceWithin {
    /// The set of all ids.
    pub fn every(device: &Arc<Device>) -> Result<Self> {
        Self::new(device, None, false)
    }

    /// `None` stands for all ids, an empty list for no id. With `start`, the intervals can also produce rows.
    pub(super) fn new(
        device: &Arc<Device>,
        intervals: Option<&[[u32; 2]]>,
        start: bool,
    ) -> Result<Self> {
        let mut params: crate::params::Within = bytemuck::Zeroable::zeroed();
        let (mut before, mut ids, mut owner) = (0, 0, None);
        let mut hull = [0, u32::MAX];
        if let Some(list) = intervals {
            // Kernels take zero intervals to mean "every id", so "no id" is one empty interval.
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
            // A test of one interval needs only the kernel's parameters, no table.
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

/// The kind of a device step, with its operands.
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
    /// Keeps rows in which both operands are the same id; with `negate`, those in which they differ.
    Same {
        left: Operand,
        right: Operand,
        negate: bool,
    },
    /// As `Expand` along one list, except that each row reads the segment of the predicate in its column `predicate`.
    ExpandAny {
        to: Slot,
        anchor: Operand,
        predicate: Slot,
        catalog: Arc<Catalog>,
    },
    /// As `Check`, except that each row reads the segment of the predicate in its column `predicate`.
    CheckAny {
        anchor: Operand,
        predicate: Slot,
        other: Operand,
        catalog: Arc<Catalog>,
    },
    /// Keeps rows in which the number in a column satisfies a comparison.
    Compare {
        slot: Slot,
        ranks: DeviceRanks,
    },
    /// Keeps rows whose id in `slot` no earlier row had. The bitmap `set` records the ids so far.
    Distinct {
        slot: Slot,
        set: usize,
    },
    /// Executes the steps up to the `EndApply` at `end` on all rows together, and keeps, drops or extends each row
    /// depending on whether it led to any row there (EXISTS, OPTIONAL, …).
    Apply {
        kind: ApplyKind,
        end: usize,
        /// The column that numbers the outer rows, and the interval of all numbers.
        number: Slot,
        numbers: DeviceWithin,
        /// The columns that the inner steps read, and those that they add.
        reads: Vec<Slot>,
        new: Vec<Slot>,
    },
    /// The end of the inner steps of the `Apply` at `begin`.
    EndApply {
        begin: usize,
    },
    /// Follows a property path from its constant end: extends each row by every reachable node, or keeps the rows whose
    /// node is reachable.
    Path(DevicePath),
    /// Keeps the rows that may be among the first ones of an ORDER BY with LIMIT.
    Top(DeviceTop),
    /// Counts rows by combination of columns; always the last step.
    Group {
        ids: Vec<Slot>,
        tested: Vec<Slot>,
    },
}

impl StepWork<'_> {
    /// The slot that the step binds, if it binds one.
    pub(super) fn binds(&self) -> Option<Slot> {
        match self {
            Self::Start { to, .. } => *to,
            Self::Cross { to, .. } | Self::Expand { to, .. } | Self::ExpandAny { to, .. } => {
                Some(*to)
            }
            Self::Path(path) => (!path.is_test).then_some(path.slot),
            _ => None,
        }
    }

    /// The segments that the step reads.
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

    /// Slots that the step reads, apart from the columns that it merely copies to its output.
    pub(super) fn needs(&self) -> Vec<Slot> {
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
            // The slots that inner steps read are counted for those steps.
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

/// The first rows of an ORDER BY.
pub(crate) struct DeviceTop {
    pub slot: Slot,
    pub is_descending: bool,
    /// Number of rows needed: offset plus limit.
    pub most: u64,
    /// One more than the largest rank of a number.
    pub last: u32,
    pub ranks: Arc<RankTable>,
}

/// A device step, and the slots whose columns it keeps.
pub(crate) struct DeviceStep<'a> {
    pub work: StepWork<'a>,
    pub keep: Vec<Slot>,
    pub name: String,
    /// Number of the plan's step that it belongs to; `usize::MAX` if it belongs to an operator above the exploration.
    pub plan_step: usize,
}

/// A compiled plan, or the first steps of it that the device can execute.
pub(crate) struct StepProgram<'a> {
    pub steps: Vec<DeviceStep<'a>>,
    pub segment_bytes: u64,
    /// Number of the plan's steps that it covers.
    pub covered: usize,
    /// Reason why it ends before the plan does; `None` if it covers all of it.
    pub stopped: Option<Error>,
    /// True if it ends early because segments do not fit in the device's memory.
    pub is_short: bool,
    /// The segments that each step reads, if they are uploaded in blocks.
    pub paging: Option<Paging<'a>>,
    /// Bitmaps over ids that steps fill, whose memory each run allocates.
    pub sets: Vec<params::Bits>,
    /// Number of result rows to skip, and the largest number to return (`None`: all).
    pub slice: (u64, Option<u64>),
    /// If its last step is a GROUP BY: the combinations that it counts.
    pub groups: Option<GroupPlan>,
}

impl StepProgram<'_> {
    /// All result rows: nothing skipped, no limit.
    pub const ALL: (u64, Option<u64>) = (0, None);

    /// A hash of the steps and the segments that they read, without constants. Programs with the same hash are expected
    /// to have similar row counts.
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
