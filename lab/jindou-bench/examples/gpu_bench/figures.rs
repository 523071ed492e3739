//! Lines of one figure each: what is wanted, what is had, and whether that is enough.

use crate::{Options, say};
use serde_json::{Value, json};

/// Bound that a figure should keep.
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

/// Says what is had of a figure, next to what is wanted: `null` where nothing is. `met` is `null` too without a goal or
/// a figure, and on the shim, whose times mean nothing. `more` is an object whose fields are said as well.
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

/// Says that an answer is another than it should be: the stage has failed.
pub fn say_wrong(of: &str, wanted: &str, had: &str) {
    say(json!({ "of": of, "wanted": wanted, "had": had, "wrong": true }));
}
