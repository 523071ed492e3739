//! The profile of a query that was run with measurements, as a tree for programs and as text for people.

use jindou_engine::{NodeProfile, Profile, StepProfile};
use jindou_plan::{Operator, Plan};
use std::fmt::Write as _;
use std::time::Duration;

/// One node of a measured plan; its inputs are its children.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ProfileNode {
    /// Name of the node: `result`, `join`, `step 2`, ….
    pub name: String,
    /// Where the node ran: `cpu`, or the name of a device.
    pub place: String,
    /// Number of input rows; `None` if they were not counted.
    pub rows_in: Option<u64>,
    /// Number of output rows.
    pub rows_out: Option<u64>,
    /// Time in the node alone, summed over threads.
    pub time: Option<Duration>,
    /// Number of bytes read, estimated.
    pub bytes: Option<u64>,
    /// Number of bytes of tables written, estimated.
    pub written: Option<u64>,
    /// Largest number of bytes that the node's tables took at any time.
    pub held: Option<u64>,
    /// The node's inputs.
    pub inputs: Vec<ProfileNode>,
}

impl ProfileNode {
    /// The root node, for the whole query, with the measured plan as its input.
    pub(crate) fn result(place: &str, rows: u64, input: Option<ProfileNode>) -> Self {
        Self {
            name: "result".into(),
            place: place.into(),
            rows_out: Some(rows),
            inputs: input.into_iter().collect(),
            ..Self::default()
        }
    }

    /// The profile of a query that is still running, without values that are known only at the end.
    pub(crate) fn so_far(mut self) -> Self {
        self.bytes = None;
        self.written = None;
        self.held = None;
        let inputs = std::mem::take(&mut self.inputs);
        self.inputs = inputs.into_iter().map(Self::so_far).collect();
        self
    }

    /// The profile of a plan, from the measurements of its run.
    pub(crate) fn from_profile(plan: &Plan, profile: &Profile) -> Self {
        let place = match profile.offloaded() {
            Some((place, _)) => place,
            None => "cpu",
        };
        let mut next = 0;
        let tree = node(&plan.root, &profile.nodes, &mut next);
        Self::result(place, profile.rows, Some(tree))
    }

    /// The profile as text: one line per node, followed by its inputs, indented.
    pub(crate) fn text(&self, profile: &Profile) -> String {
        let mut out = format!(
            "{:<40} {:>12} {:>12} {:>14} {:>14} {:>12} {:>9}  where\n",
            "operator", "rows in", "rows out", "bytes read", "bytes written", "bytes held", "ms"
        );
        let mut open: Vec<(&Self, usize)> = self.inputs.iter().map(|i| (i, 0)).collect();
        while let Some((n, depth)) = open.pop() {
            let count = |v: Option<u64>| v.map_or("-".into(), |v| v.to_string());
            // The indentation is limited, so that the names of deeply nested nodes fit the column.
            let name = format!("{}{}", "  ".repeat(depth.min(10)), n.name);
            let ms = n
                .time
                .map_or("-".into(), |t| format!("{:.3}", t.as_secs_f64() * 1e3));
            let _ = writeln!(
                out,
                "{name:<40} {:>12} {:>12} {:>14} {:>14} {:>12} {ms:>9}  {}",
                count(n.rows_in),
                count(n.rows_out),
                count(n.bytes),
                count(n.written),
                count(n.held),
                n.place
            );
            open.extend(n.inputs.iter().rev().map(|i| (i, depth + 1)));
        }
        let _ = writeln!(
            out,
            "{} row{} in {:.3} ms on {} thread{} (times are summed over threads)",
            profile.rows,
            if profile.rows == 1 { "" } else { "s" },
            profile.elapsed.as_secs_f64() * 1e3,
            profile.threads,
            if profile.threads == 1 { "" } else { "s" }
        );
        out
    }
}

/// Depth at which a displayed plan is truncated, since this code is recursive. The engine executes deeper plans on a
/// larger stack.
const DEEPEST: usize = 500;

fn node(op: &Operator, nodes: &[NodeProfile], next: &mut usize) -> ProfileNode {
    node_at(op, nodes, next, 0)
}

fn node_at(op: &Operator, nodes: &[NodeProfile], next: &mut usize, depth: usize) -> ProfileNode {
    let nothing = NodeProfile::default();
    let p = nodes.get(*next).unwrap_or(&nothing);
    *next += 1;
    let (place, there) = p
        .there
        .as_ref()
        .map_or(("cpu", 0), |(place, n)| (place.as_str(), *n));
    let mut out = ProfileNode {
        name: op.name().into(),
        place: if there == 0 || there == p.steps.len() {
            place.into()
        } else {
            format!("{place}, then cpu")
        },
        rows_in: Some(p.rows_in),
        rows_out: Some(p.rows_out),
        time: Some(p.time),
        held: Some(p.held),
        ..ProfileNode::default()
    };
    if !p.steps.is_empty() {
        out.bytes = Some(p.steps.iter().map(|s| s.bytes).sum());
        out.written = Some(p.steps.iter().map(|s| s.written).sum());
        out.inputs.extend(steps(place, there, &p.steps));
    }
    if depth < DEEPEST {
        for input in op.inputs() {
            out.inputs.push(node_at(input, nodes, next, depth + 1));
        }
    }
    out
}

/// The nodes of an exploration's steps, each of which is the input of the next. The first `there` steps ran at `place`,
/// the others on the CPU.
fn steps(place: &str, there: usize, steps: &[StepProfile]) -> Option<ProfileNode> {
    let mut below = None;
    for (i, s) in steps.iter().enumerate() {
        below = Some(ProfileNode {
            name: format!("step {i}"),
            place: if i < there { place } else { "cpu" }.into(),
            rows_in: Some(s.rows_in),
            rows_out: Some(s.rows_out),
            time: Some(s.time),
            bytes: Some(s.bytes),
            written: Some(s.written),
            held: None,
            inputs: below.into_iter().collect(),
        });
    }
    below
}
