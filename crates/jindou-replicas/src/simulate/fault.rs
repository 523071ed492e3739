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
    RequestsForgotten,
    /// A follower publishes groups that are only proposed.
    ProposedIsRead,
    /// Reads do not wait for the highest group number known to exist.
    ReadsIgnoreKnownGroups,
    /// A strict read accepts a listing that started before the read.
    StrictUsesEarlierListing,
    /// Updates are acknowledged before the other servers have acknowledged the group.
    AcknowledgedUnconfirmed,
    /// A put with unknown outcome is reported as not executed.
    UnknownIsNotDone,
    /// An existing object is assumed to be this server's own.
    ExistsIsOurs,
    /// A heartbeat proves freshness as of its arrival.
    HeartbeatFreshOnArrival,
    /// A failed listing counts for queries that arrived after the listing started.
    OldListingFails,
    /// The end of the contiguous prefix of a listing is taken for the end of the log.
    GapIsTheEnd,
    /// Updates are put although the log has a gap.
    WriterTrustsGap,
    /// A holder answers from its newest base, whatever base the request names.
    AnsweredFromNewest,
    /// A part of a query runs at the server's own newest snapshot.
    PartsReadNewest,
    /// A part of a query finds a snapshot that is not published.
    HeadIsRead,
    /// Lookups for evaluations are kept when the base is replaced that they are about.
    LookupsKept,
    /// A server merges its newest snapshot instead of the one that started the merge.
    MergesOwnSnapshot,
    /// A merge is committed before all holders have its files, and those without them read the old ones.
    CommittedTooEarly,
    /// A base is released as soon as it is replaced.
    ReleasedInUse,
    /// A server that starts while a merge is open does not upload its shards once that is committed.
    UploadForgotten,
    /// The rows of a shard lack those of keys that its base does not have.
    NewKeysLost,
    /// A base's document names the newest uploads of its shards.
    DocumentOfTwoBases,
    /// A query that is run again keeps rows of its first run.
    RowsOfFirstRun,
    /// The statistics of a merge are those of one shard.
    StatisticsOfOneShard,
    /// Terms of ids are those that the server has published last, so an id is reused while an older snapshot is read.
    ReusedWhileRead,
    /// A server that opens a base does not reuse the ids that were free in it.
    FreeListDiffers,
}

impl Fault {
    /// The fault with this name (as printed by `Debug`).
    pub fn named(name: &str) -> Option<Self> {
        let named = |fault: &Self| format!("{fault:?}") == name;
        let mut all = Self::ALL.into_iter().chain(Self::OF_SHARDS);
        all.find(named)
    }

    /// The faults of servers that each have some shards.
    pub const OF_SHARDS: [Self; 14] = [
        Self::AnsweredFromNewest,
        Self::PartsReadNewest,
        Self::HeadIsRead,
        Self::LookupsKept,
        Self::MergesOwnSnapshot,
        Self::CommittedTooEarly,
        Self::ReleasedInUse,
        Self::UploadForgotten,
        Self::NewKeysLost,
        Self::DocumentOfTwoBases,
        Self::RowsOfFirstRun,
        Self::StatisticsOfOneShard,
        Self::ReusedWhileRead,
        Self::FreeListDiffers,
    ];

    /// The faults of servers that have the whole store.
    pub const ALL: [Self; 16] = [
        Self::NextNumberAfterUnknown,
        Self::NotEvaluatedAgain,
        Self::NoProof,
        Self::TrimsBelowNewest,
        Self::TrimsTheYoung,
        Self::RequestsForgotten,
        Self::ProposedIsRead,
        Self::ReadsIgnoreKnownGroups,
        Self::StrictUsesEarlierListing,
        Self::AcknowledgedUnconfirmed,
        Self::UnknownIsNotDone,
        Self::ExistsIsOurs,
        Self::HeartbeatFreshOnArrival,
        Self::OldListingFails,
        Self::GapIsTheEnd,
        Self::WriterTrustsGap,
    ];
}
