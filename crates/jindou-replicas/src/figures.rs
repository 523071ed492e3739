//! Metrics of a driver, readable by any thread.

use crate::machine::{ServerName, Time};
use jindou_model::sync;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Metrics that the driver updates.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub committed: AtomicU64,
    pub newest_known: AtomicU64,
    /// Time of the latest freshness proof for the newest committed group, in microseconds; 0 before the first.
    pub fresh_as_of: AtomicU64,
    pub writes: AtomicU64,
    /// The server that wrote the newest committed group.
    pub writer: Mutex<Option<ServerName>>,
    pub puts: AtomicU64,
    pub put_micros: AtomicU64,
    pub failed: AtomicU64,
    pub lost: AtomicU64,
    pub listings: AtomicU64,
    pub listed: AtomicU64,
    pub in_contact: AtomicU64,
    /// The other servers in the bucket's list, with the time of the latest message from each, and the newest group that it
    /// has acknowledged.
    pub others: Mutex<Vec<(ServerName, Option<Time>, u64)>>,
}

/// Another server in the bucket's list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtherServer {
    /// Its name.
    pub name: ServerName,
    /// Time since its latest message; `None` before the first.
    pub silent: Option<Duration>,
    /// The newest group that it has acknowledged.
    pub newest_known: u64,
}

/// Values of a driver's metrics at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FiguresNow {
    /// Number of the newest published group.
    pub committed: u64,
    /// The highest group number known to exist.
    pub newest_known: u64,
    /// Age of the latest proof that no later group existed; `None` before the first proof.
    pub age: Option<Duration>,
    /// True if this server wrote the newest committed group.
    pub writes: bool,
    /// Number of completed puts of groups.
    pub puts: u64,
    /// Total time of the completed puts of groups.
    pub put_time: Duration,
    /// Requests to the bucket that failed or whose outcome is unknown.
    pub failed: u64,
    /// Number of rollbacks of speculative state. Most of them are lost puts: another server had already created the
    /// group with that number.
    pub lost: u64,
    /// Number of completed listings.
    pub listings: u64,
    /// Number of servers with a current entry in the bucket, including this one.
    pub listed: u64,
    /// Number of other servers that acknowledgements wait for.
    pub in_contact: u64,
    /// The other servers in the bucket's list.
    pub others: Vec<OtherServer>,
}

impl Figures {
    pub fn set_writer(&self, writer: Option<&ServerName>) {
        let mut known = sync::lock(&self.writer);
        if known.as_ref() != writer {
            *known = writer.cloned();
        }
    }

    pub fn set_others<'a>(&self, all: impl Iterator<Item = (&'a ServerName, Option<Time>, u64)>) {
        let mut others = sync::lock(&self.others);
        others.clear();
        others.extend(all.map(|(name, last, newest)| (name.clone(), last, newest)));
    }

    pub fn now(&self) -> FiguresNow {
        let now = crate::clock::now();
        let other = |(name, last, newest_known): &(ServerName, Option<Time>, u64)| OtherServer {
            name: name.clone(),
            silent: last.map(|last| now.since(last)),
            newest_known: *newest_known,
        };
        let fresh_as_of = self.fresh_as_of.load(Relaxed);
        FiguresNow {
            committed: self.committed.load(Relaxed),
            newest_known: self.newest_known.load(Relaxed),
            age: (fresh_as_of > 0).then(|| now.since(Time(fresh_as_of))),
            writes: self.writes.load(Relaxed) == 1,
            puts: self.puts.load(Relaxed),
            put_time: Duration::from_micros(self.put_micros.load(Relaxed)),
            failed: self.failed.load(Relaxed),
            lost: self.lost.load(Relaxed),
            listings: self.listings.load(Relaxed),
            listed: self.listed.load(Relaxed),
            in_contact: self.in_contact.load(Relaxed),
            others: sync::lock(&self.others).iter().map(other).collect(),
        }
    }
}
