//! Numbers of events in a simulation.

use std::fmt;
use std::ops::{Index, IndexMut};

/// Defines [`Counted`] and the texts of its variants, which also document them.
macro_rules! counted {
    ($($(#[$more:meta])* $name:ident $text:literal,)+) => {
        /// A kind of event that is counted.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Counted {
            $(#[doc = $text] $(#[$more])* $name,)+
        }

        const ALL: &[(Counted, &str)] = &[$((Counted::$name, $text),)+];
    };
}

counted! {
    /// Servers, including those that joined later.
    Servers "servers",
    Events "events",
    Groups "groups",
    Acknowledged "updates acknowledged",
    Answered "queries answered",
    Refused "queries refused",
    /// Servers that crashed and restarted.
    Crashes "crashes",
    /// Crashes that also lost the disk.
    Emptied "disks emptied",
    Pauses "pauses",
    CutOneWay "links cut in one direction",
    /// Servers cut off from all others.
    CutOff "servers cut off from the others",
    SlowLinks "servers with slow links",
    /// Servers that were cut off from the bucket for some time.
    BucketCut "servers cut off from the bucket",
    /// Servers whose connection to the bucket became slow and lossy.
    BucketBad "servers with a slow bucket",
    Joined "servers that joined later",
    Left "servers that left",
    /// Messages between servers that did not arrive.
    LostMessages "messages lost",
    /// Requests to the bucket that did not arrive.
    LostRequests "requests lost",
    /// Requests to the bucket that were executed but whose responses were lost.
    LostAnswers "answers lost",
    /// Requests to the bucket that arrived after their time limit.
    Late "requests landed late",
    Conflicts "requests answered with 409",
    /// Puts that arrived twice.
    Doubled "puts landed twice",
    /// Stores that were replaced by a base.
    Downloads "bases downloaded",
    Trimmed "names trimmed",
    Lost "groups lost",
    /// Gaps that servers have reported.
    Gaps "gaps reported",
    /// Groups that servers were asked to write back.
    WrittenBack "groups to write back",
    /// Bases that servers with shards took into use.
    Merges "bases taken into use",
    Released "bases released",
    ShardsUploaded "shards uploaded",
    Moved "shards moved",
    BaseRequests "requests for bases",
    /// Requests for bases that were refused.
    BasesRefused "requests for bases refused",
    Parts "parts of queries",
    RunAgain "queries run again",
    /// Queries and evaluations that ended without data of a shard.
    Unavailable "queries and updates without a holder",
    /// Actions that waited for the files of a merge.
    HeldBack "actions that waited for a merge",
}

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
        for (i, &(what, name)) in ALL.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{} {name}", self[what])?;
        }
        Ok(())
    }
}
