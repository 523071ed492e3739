//! Programs: plans in the form that a device executes, as steps with their segments, columns and constants.

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

/// One list of an expansion or check.
pub(crate) struct DeviceList {
    pub segment: Arc<ResidentSegment>,
    pub anchor: Operand,
    /// Start and length in the device's neighbours, if the anchor is a constant.
    pub constant: Option<(u32, u32)>,
    /// Length of the longest list, if it is known.
    pub most: Option<u32>,
    /// True if it is clipped to the hull of the step's intervals while it is measured.
    pub clips: bool,
    /// True if it is a constant's list that was clipped to the hull.
    pub cut: bool,
}

/// The start rows of a table.
pub(crate) enum DeviceSource<'a> {
    /// One row without columns.
    Unit,
    /// A column in device memory.
    Column { at: u64, rows: u64, owner: Owner },
    /// The ids of intervals.
    Intervals(DeviceWithin),
    /// Keys in intervals.
    Runs { segment: Arc<ResidentSegment> },
    /// Keys in a bitmap, with the host's copy of its blocks for dividing it into parts.
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
    pub(super) fn new(
        device: &Arc<Device>,
        intervals: Option<&[[u32; 2]]>,
        start: bool,
    ) -> Result<Self> {
        let mut params: crate::params::Within = bytemuck::Zeroable::zeroed();
        let (mut before, mut ids, mut owner) = (0, 0, None);
        let mut hull = [0, u32::MAX];
        if let Some(list) = intervals {
            // Kernels need at least one interval to reject everything.
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
    /// Keeps rows whose id occurs in no earlier row, according to the set with this number.
    Distinct {
        slot: Slot,
        set: usize,
    },
    /// Executes the steps up to `end` for each row, and treats the row according to the outcome.
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

/// An ORDER BY with LIMIT.
pub(crate) struct DeviceTop {
    pub slot: Slot,
    pub is_descending: bool,
    /// Number of rows needed.
    pub most: u64,
    /// The first number above all ranks.
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

    /// A hash that programs with the same steps over the same segments share, whatever their constants.
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
