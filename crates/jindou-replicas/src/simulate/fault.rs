//! Injected protocol bugs, which the simulator must detect.

/// A protocol bug that a test injects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// After a put of unknown outcome, the group is put again under the next number.
    NextNumberAfterUnknown,
    /// An update is put without a new evaluation after another server's group took the number it was evaluated for.
    NotEvaluatedAgain,
    /// A successful put counts although the freshness proof is too old.
    NoProof,
    /// Trimming goes up to the newest base instead of the second newest.
    TrimsBelowNewest,
    /// Trimming ignores `keep`.
    TrimsTheYoung,
    /// Requests executed by other servers are not remembered.
    KeysForgotten,
    /// A follower publishes proposed groups.
    ProposedIsRead,
    /// Reads do not wait for the highest group number known to exist.
    HeardIsApplied,
    /// A strict read accepts a listing that was begun before the read.
    StrictLooksBefore,
    /// Updates are acknowledged before the other servers know the group.
    AnsweredUnheard,
    /// A put of unknown outcome is reported as not executed.
    UnknownIsNotDone,
    /// An existing object is assumed to be this server's own.
    ExistsIsOurs,
    /// A heartbeat proves freshness as of its arrival.
    BeatsAreFresh,
    /// A failed listing counts for queries that arrived after it was begun.
    OldListingFails,
    /// The end of a listing's contiguous prefix counts as the end of the log.
    GapIsTheEnd,
    /// Updates are put into a gap.
    WriterTrustsGap,
}

impl Fault {
    /// The fault with this name (as printed by `Debug`).
    pub fn named(name: &str) -> Option<Self> {
        let named = |fault: &Self| format!("{fault:?}") == name;
        Self::ALL.into_iter().find(named)
    }

    /// All faults.
    pub const ALL: [Self; 16] = [
        Self::NextNumberAfterUnknown,
        Self::NotEvaluatedAgain,
        Self::NoProof,
        Self::TrimsBelowNewest,
        Self::TrimsTheYoung,
        Self::KeysForgotten,
        Self::ProposedIsRead,
        Self::HeardIsApplied,
        Self::StrictLooksBefore,
        Self::AnsweredUnheard,
        Self::UnknownIsNotDone,
        Self::ExistsIsOurs,
        Self::BeatsAreFresh,
        Self::OldListingFails,
        Self::GapIsTheEnd,
        Self::WriterTrustsGap,
    ];
}
