//! What a measured query reports, as a tree that programs read. The text for people is [`crate::QueryReport::profile`].

use jindou_engine::StepProfile;
use std::time::Duration;

/// One node of a measured plan; its inputs are below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfileNode {
    /// What it is: `result`, `step 2`, ….
    pub name: String,
    /// Where it ran: `cpu`, a device's name, `spareval`.
    pub place: String,
    /// Rows that came in; `None` where nobody counted.
    pub rows_in: Option<u64>,
    /// Rows that went out.
    pub rows_out: Option<u64>,
    /// Time in the node alone, summed over threads.
    pub time: Option<Duration>,
    /// Estimate of bytes read.
    pub bytes: Option<u64>,
    /// Its inputs.
    pub inputs: Vec<ProfileNode>,
}

impl ProfileNode {
    /// The whole query, over what is known of its parts.
    pub(crate) fn result(place: &str, rows: u64, input: Option<ProfileNode>) -> Self {
        Self {
            name: "result".into(),
            place: place.into(),
            rows_out: Some(rows),
            inputs: input.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Exploration steps, each the input of the next.
    pub(crate) fn steps(place: &str, steps: &[StepProfile]) -> Option<Self> {
        let mut below = None;
        for (i, s) in steps.iter().enumerate() {
            below = Some(Self {
                name: format!("step {i}"),
                place: place.into(),
                rows_in: Some(s.rows_in),
                rows_out: Some(s.rows_out),
                time: Some(s.time),
                bytes: Some(s.bytes),
                inputs: below.into_iter().collect(),
            });
        }
        below
    }
}
