//! Groups of datatypes whose values are ordered together.

use jindou_model::term::{BOOLEAN_TAG, NUMERIC_TAGS, TEMPORAL_TAGS};

/// A group of datatypes whose values are compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueGroup {
    /// All numeric datatypes.
    Numeric,
    /// `xsd:boolean`: false has rank 0, true 1.
    Boolean,
    /// A date or time datatype, by its tag's position in `TEMPORAL_TAGS` (0 = `dateTime` … 7 = `gDay`).
    Temporal(u8),
    /// `xsd:duration` and the two types derived from it. Ranks extend the partial order of durations to a total one.
    Duration,
}

/// Number of temporal groups.
pub(crate) const TEMPORAL_GROUPS: u8 = 8;

impl ValueGroup {
    /// The group of a tag; `None` for tags without ranks.
    #[must_use]
    pub fn of_tag(tag: u8) -> Option<Self> {
        if NUMERIC_TAGS.contains(&tag) {
            Some(Self::Numeric)
        } else if tag == BOOLEAN_TAG {
            Some(Self::Boolean)
        } else if TEMPORAL_TAGS.contains(&tag) {
            let place = tag - TEMPORAL_TAGS.start();
            Some(if place < TEMPORAL_GROUPS {
                Self::Temporal(place)
            } else {
                Self::Duration
            })
        } else {
            None
        }
    }
}
