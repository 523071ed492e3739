//! Numbers of events in a simulation.

use std::fmt;
use std::ops::{Index, IndexMut};

/// A kind of event that is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// Servers, including those that joined later.
    Servers,
    /// Events of all kinds.
    Events,
    /// Groups in the log.
    Groups,
    /// Updates acknowledged.
    Acknowledged,
    /// Queries answered.
    Answered,
    /// Queries refused.
    Refused,
    /// Servers that crashed and restarted.
    Crashes,
    /// Crashes that also lost the disk.
    Emptied,
    /// Servers that were paused.
    Pauses,
    /// Links between two servers that were cut in one direction.
    CutOneWay,
    /// Servers cut off from all others.
    CutOff,
    /// Servers whose links became slow and lossy.
    SlowLinks,
    /// Servers that were cut off from the bucket for some time.
    BucketCut,
    /// Servers whose connection to the bucket became slow and lossy.
    BucketBad,
    /// Servers that joined later.
    Joined,
    /// Servers that left for good.
    Left,
    /// Messages between servers that did not arrive.
    LostMessages,
    /// Requests to the bucket that did not arrive.
    LostRequests,
    /// Requests to the bucket that were executed but whose responses were lost.
    LostAnswers,
    /// Requests to the bucket that arrived after their time limit.
    Late,
    /// Requests answered with 409.
    Conflicts,
    /// Puts that arrived twice.
    Doubled,
    /// Stores that were replaced by a base.
    Downloads,
    /// Names of groups that were trimmed.
    Trimmed,
    /// Groups that the bucket lost.
    Lost,
    /// Gaps that servers have reported.
    Gaps,
    /// Groups that servers were asked to write back.
    WrittenBack,
    /// Bases that servers with shards took into use.
    Merges,
    /// Bases that were released.
    Released,
    /// Shards uploaded.
    ShardsUploaded,
    /// Servers that got another shard.
    Moved,
    /// Requests for data of bases.
    BaseRequests,
    /// Requests for bases that were refused.
    BasesRefused,
    /// Parts of queries.
    Parts,
    /// Queries that were run again.
    RunAgain,
    /// Queries and evaluations that ended without data of a shard.
    Unavailable,
    /// Actions that waited for the files of a merge.
    HeldBack,
}

const ALL: [(Counted, &str); 37] = [
    (Counted::Servers, "servers"),
    (Counted::Events, "events"),
    (Counted::Groups, "groups"),
    (Counted::Acknowledged, "updates acknowledged"),
    (Counted::Answered, "queries answered"),
    (Counted::Refused, "queries refused"),
    (Counted::Crashes, "crashes"),
    (Counted::Emptied, "disks emptied"),
    (Counted::Pauses, "pauses"),
    (Counted::CutOneWay, "links cut in one direction"),
    (Counted::CutOff, "servers cut off from the others"),
    (Counted::SlowLinks, "servers with slow links"),
    (Counted::BucketCut, "servers cut off from the bucket"),
    (Counted::BucketBad, "servers with a slow bucket"),
    (Counted::Joined, "servers that joined later"),
    (Counted::Left, "servers that left"),
    (Counted::LostMessages, "messages lost"),
    (Counted::LostRequests, "requests lost"),
    (Counted::LostAnswers, "answers lost"),
    (Counted::Late, "requests landed late"),
    (Counted::Conflicts, "requests answered with 409"),
    (Counted::Doubled, "puts landed twice"),
    (Counted::Downloads, "bases downloaded"),
    (Counted::Trimmed, "names trimmed"),
    (Counted::Lost, "groups lost"),
    (Counted::Gaps, "gaps reported"),
    (Counted::WrittenBack, "groups to write back"),
    (Counted::Merges, "bases taken into use"),
    (Counted::Released, "bases released"),
    (Counted::ShardsUploaded, "shards uploaded"),
    (Counted::Moved, "shards moved"),
    (Counted::BaseRequests, "requests for bases"),
    (Counted::BasesRefused, "requests for bases refused"),
    (Counted::Parts, "parts of queries"),
    (Counted::RunAgain, "queries run again"),
    (Counted::Unavailable, "queries and updates without a holder"),
    (Counted::HeldBack, "actions that waited for a merge"),
];

/// Number of occurrences of each event, in one or several seeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counts([u64; ALL.len()]);

impl Default for Counts {
    fn default() -> Self {
        Self([0; ALL.len()])
    }
}

impl Counts {
    /// Adds the counts of other seeds.
    pub fn add(&mut self, others: &Self) {
        for (mine, other) in self.0.iter_mut().zip(others.0) {
            *mine += other;
        }
    }
}

impl Index<Counted> for Counts {
    type Output = u64;

    fn index(&self, what: Counted) -> &u64 {
        &self.0[what as usize]
    }
}

impl IndexMut<Counted> for Counts {
    fn index_mut(&mut self, what: Counted) -> &mut u64 {
        &mut self.0[what as usize]
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (what, name)) in ALL.into_iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{} {name}", self[what])?;
        }
        Ok(())
    }
}
