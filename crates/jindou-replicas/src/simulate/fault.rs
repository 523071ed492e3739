//! Injected protocol bugs, which the simulator must detect.

/// A protocol bug that a test injects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// After a put with unknown outcome, the group is put again under the next number.
    NextNumberAfterUnknown,
    /// An update is put without being evaluated again after another server's group took the number for which it was
    /// evaluated.
    NotEvaluatedAgain,
    /// A successful put counts although the latest freshness proof is too old.
    NoProof,
    /// Trimming goes up to the newest base instead of the second newest.
    TrimsBelowNewest,
    /// Trimming ignores `keep`.
    TrimsTheYoung,
    /// Requests that other servers executed are not remembered.
    KeysForgotten,
    /// A follower publishes groups that are only proposed.
    ProposedIsRead,
    /// Reads do not wait for the highest group number known to exist.
    HeardIsApplied,
    /// A strict read accepts a listing that started before the read.
    StrictLooksBefore,
    /// Updates are acknowledged before the other servers have acknowledged the group.
    AnsweredUnheard,
    /// A put with unknown outcome is reported as not executed.
    UnknownIsNotDone,
    /// An existing object is assumed to be this server's own.
    ExistsIsOurs,
    /// A heartbeat proves freshness as of its arrival.
    BeatsAreFresh,
    /// A failed listing counts for queries that arrived after the listing started.
    OldListingFails,
    /// The end of the contiguous prefix of a listing is taken for the end of the log.
    GapIsTheEnd,
    /// Updates are put although the log has a gap.
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
