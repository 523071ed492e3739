//! Compilation of property paths `p+` and `p*` of which one end is a constant.

use super::tree::of_operator;
use super::{DeviceList, DeviceStep, StepCompiler, StepWork, scope_of};
use crate::steps::NODE;
use jindou_model::{Direction, Error, FIRST_TAIL_ID, PredicateId, Result};
use jindou_plan::operator::{FollowPath, Path};
use jindou_plan::{FarEnd, Operand, Slot};

/// A path with one known end.
pub(crate) struct DevicePath {
    /// The constant end.
    pub from: u32,
    /// The edges that one repetition of the path may follow.
    pub lists: Vec<DeviceList>,
    /// True if the empty path counts (`p*`).
    pub zero: bool,
    /// The column of the other end: added with the reachable nodes, or existing and tested.
    pub slot: Slot,
    /// True if the column exists already, so that its nodes are tested for being reachable.
    pub is_test: bool,
    /// Number of the bitmap of the nodes reached so far.
    pub set: usize,
}

/// The constant end's id, the slot of the other end, whether that slot is already bound, and whether the path is
/// followed backwards. `None` if neither end is a constant.
fn ends(p: &FollowPath) -> Option<(u32, Slot, bool, bool)> {
    let (from, to, back) = match (p.subject, p.object) {
        (FarEnd::Known(Operand::Const(v)), to) => (v, to, false),
        (to, FarEnd::Known(Operand::Const(v))) => (v, to, true),
        _ => return None,
    };
    match to {
        FarEnd::Bind(slot) => Some((from, slot, false, back)),
        FarEnd::Known(Operand::Slot(slot)) => Some((from, slot, true, back)),
        FarEnd::Known(Operand::Const(_)) => None,
    }
}

/// Collects the edges that one repetition of a path may follow, each with its direction; `None` if a repetition can be
/// longer than one edge.
fn edges(path: &Path, back: bool, out: &mut Vec<(PredicateId, Direction)>) -> Option<()> {
    let (mut open, direction) = (vec![(path, back)], [Direction::Out, Direction::In]);
    while let Some((path, back)) = open.pop() {
        match path {
            Path::Predicate(Some(p)) => out.push((*p, direction[usize::from(back)])),
            // A predicate that the store does not have: no edges.
            Path::Predicate(None) => {}
            Path::Inverse(p) => open.push((p, !back)),
            Path::Alternative(all) => open.extend(all.iter().map(|p| (p, back))),
            _ => return None,
        }
    }
    Some(())
}

/// The repeated part of a path, and whether the empty path counts; `None` for paths without a repetition at the top.
fn repeated(path: &Path) -> Option<(&Path, bool)> {
    match path {
        Path::OneOrMore(p) => Some((p, false)),
        Path::ZeroOrMore(p) => Some((p, true)),
        _ => None,
    }
}

/// True for paths that the device may be able to follow, judged without a snapshot.
pub(crate) fn may_follow(p: &FollowPath) -> bool {
    let one = repeated(&p.path).and_then(|(path, _)| edges(path, false, &mut Vec::new()));
    !p.nodes && ends(p).is_some() && one.is_some()
}

/// The edges of one repetition of the path, each with the direction in which it leaves the constant end.
pub(crate) fn step_edges(p: &FollowPath) -> Vec<(PredicateId, Direction)> {
    let mut out = Vec::new();
    if let (Some((path, _)), Some((.., back))) = (repeated(&p.path), ends(p)) {
        let _ = edges(path, back, &mut out);
    }
    out
}

impl<'a> StepCompiler<'a> {
    /// Appends the step that follows a path for each row of its input.
    pub(super) fn path(&mut self, p: &FollowPath, out: &mut Vec<DeviceStep<'a>>) -> Result<()> {
        let unsupported = |what: &str| Error::Unsupported(format!("{what} on the GPU"));
        let found = repeated(&p.path).zip(ends(p)).filter(|_| !p.nodes);
        let Some(((_, zero), (from, slot, is_test, _))) = found else {
            return Err(unsupported("this property path"));
        };
        if is_test && (!self.bound.contains(&slot) || self.maybe.contains(&slot)) {
            return Err(unsupported("a path from a variable that may be unbound"));
        }
        if from > self.snapshot.dense_ids() && from < FIRST_TAIL_ID {
            return Err(unsupported("a path from an unknown node"));
        }
        let scope = scope_of(&p.graph)?;
        let mut lists = Vec::new();
        for (predicate, direction) in step_edges(p) {
            lists.push(DeviceList {
                segment: self.segment(predicate, direction, scope)?,
                anchor: Operand::Slot(NODE),
                constant: None,
                most: None,
                clips: false,
                cut: false,
            });
        }
        let set = self.set();
        if !is_test {
            self.bound.push(slot);
        }
        out.push(of_operator((
            StepWork::Path(DevicePath {
                from,
                lists,
                zero,
                slot,
                is_test,
                set,
            }),
            format!("path to ?{slot}"),
        )));
        Ok(())
    }
}
