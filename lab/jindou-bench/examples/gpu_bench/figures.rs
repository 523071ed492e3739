//! Output lines of one measured figure each: the goal, the measured value, and whether the goal is met.

use crate::{Options, say};
use serde_json::{Value, json};

/// Bound that a figure should meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

impl Goal {
    fn is_met(self, had: f64) -> bool {
        match self {
            Self::AtMost(most) => had <= most,
            Self::AtLeast(least) => had >= least,
        }
    }

    fn to_json(self) -> Value {
        match self {
            Self::AtMost(most) => json!({ "at_most": most }),
            Self::AtLeast(least) => json!({ "at_least": least }),
        }
    }
}

/// Prints a figure's measured value `had` next to its goal `wanted`, with `null` for a missing one. `met` is `null`
/// without a goal or a value, and on the CPU emulation of a GPU (the shim), whose times mean nothing. The fields of the
/// object `more` are printed, too.
pub fn say_figure(
    o: &Options,
    of: &str,
    unit: &str,
    wanted: Option<Goal>,
    had: Option<f64>,
    more: Value,
) {
    let met = match (wanted, had) {
        (Some(wanted), Some(had)) if !o.is_shim() => Some(wanted.is_met(had)),
        _ => None,
    };
    let mut line = json!({
        "of": of, "unit": unit, "wanted": wanted.map(Goal::to_json), "had": had, "met": met,
    });
    if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
        line.extend(more);
    }
    say(line);
}

/// Prints that an answer is wrong, which makes the stage fail.
pub fn say_wrong(of: &str, wanted: &str, had: &str) {
    say(json!({ "of": of, "wanted": wanted, "had": had, "wrong": true }));
}
