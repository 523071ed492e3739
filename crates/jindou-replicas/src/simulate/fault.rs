//! Faults that are planted, to see that the simulator finds them.

/// A mistake that tests plant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// After a put of unknown outcome, the group is put under the next number.
    NextNumberAfterUnknown,
    /// An update evaluated before another's group got the number is put after that as it is.
    NotEvaluatedAgain,
    /// A put counts although its proof is old.
    NoProof,
    /// Trimming goes up to the newest base.
    TrimsBelowNewest,
    /// Trimming does not wait for `keep`.
    TrimsTheYoung,
    /// Requests that others did are not remembered.
    KeysForgotten,
    /// A follower publishes what is proposed.
    ProposedIsRead,
    /// Reads do not wait for what was heard of.
    HeardIsApplied,
    /// A strict read takes a listing that was begun before it.
    StrictLooksBefore,
    /// Clients are answered before others have heard.
    AnsweredUnheard,
    /// A put of unknown outcome is told as not done.
    UnknownIsNotDone,
    /// A name that is taken is taken for this server's own put.
    ExistsIsOurs,
    /// A beat counts as of its arrival.
    BeatsAreFresh,
    /// A listing that fails counts as tried for queries that were asked after it was begun.
    OldListingFails,
    /// A gap in a listing counts as the end of the log.
    GapIsTheEnd,
    /// Updates are put into a gap.
    WriterTrustsGap,
}

impl Fault {
    /// The fault of this name, as its `Debug` has it.
    pub fn named(name: &str) -> Option<Self> {
        let named = |fault: &Self| format!("{fault:?}") == name;
        Self::ALL.into_iter().find(named)
    }

    /// All of them.
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
