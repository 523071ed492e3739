//! The oracle: checks the four guarantees. Its input are the requests, the answers, and the first object of each name
//! in the bucket.

use super::shards::{is_nothing, is_proposal_record};
use super::state::{State, fingerprint};
use super::world::{EPOCH, MS};
use crate::machine::event::Consistency;
use crate::machine::group::{Blob, Group, Record, RequestKey};
use std::collections::{BTreeMap, BTreeSet};

/// An answer to an update.
#[derive(Clone, Debug)]
pub struct Ack {
    /// The time of the answer.
    pub time: u64,
    /// Key of the request.
    pub key: RequestKey,
    /// Number of the group, fingerprint, and answer; `None` if the update was rejected.
    pub done: Option<(u64, u64, Blob)>,
    /// True if all servers and connections had been without faults for 3 s, so that every server must have known the
    /// group.
    pub calm: bool,
}

/// An answer to a query.
#[derive(Clone, Copy, Debug)]
pub struct ReadAnswer {
    /// Index of the server that answered.
    pub server: usize,
    /// Random number of the server's process.
    pub start: u64,
    /// The time when the query arrived.
    pub asked: u64,
    /// The time of the answer.
    pub time: u64,
    /// The required consistency.
    pub consistency: Consistency,
    /// Number of the snapshot from which the query was answered.
    pub number: u64,
    /// Hash of the snapshot's content.
    pub digest: u64,
    /// True if the server's connection to the bucket had been without faults for 5 s.
    pub bucket: bool,
}

/// A run as seen by the clients and the bucket.
#[derive(Debug, Default)]
pub struct History {
    /// Answers to updates, in order.
    pub acks: Vec<Ack>,
    /// Answers to queries, in order.
    pub reads: Vec<ReadAnswer>,
    /// The first object created under each name, with its creation time.
    pub log: BTreeMap<u64, (Blob, u64)>,
    /// Final state of each server: its index, snapshot number and digest of the content.
    pub ends: Vec<(usize, u64, u64)>,
}

impl History {
    /// The newest group that was acknowledged to a client.
    pub(super) fn newest_done(&self) -> u64 {
        let done = self.acks.iter().rev().find_map(|ack| ack.done.as_ref());
        done.map_or(0, |(number, ..)| *number)
    }
}

/// Staleness limit in microseconds while the bucket is available: 3.5 s of a clock that is 5 % slow.
const FIND_OUT: u64 = 3_750 * MS;
/// Staleness limit in microseconds otherwise: 10 s of a clock that is 5 % slow.
const STALE: u64 = 10_700 * MS;

/// The snapshots of the log, by number: digest of the content, and creation time.
struct Snapshots {
    digests: Vec<(u64, u64)>,
    done: BTreeMap<RequestKey, (u64, u64, Blob)>,
}

/// Checks the history of a run against the guarantees.
///
/// # Errors
/// The first violated guarantee.
pub fn judge(history: &History) -> Result<(), String> {
    let snapshots = replay(history)?;
    for ack in &history.acks {
        let there = snapshots.done.get(&ack.key);
        match (&ack.done, there) {
            (Some(done), Some(there)) if done == there => {}
            (None, None) => {}
            (Some((number, ..)), None) => {
                return Err(format!(
                    "1: {:?}, acknowledged in {number}, is lost",
                    ack.key
                ));
            }
            (None, Some((number, ..))) => {
                return Err(format!(
                    "1: {:?}, reported as not done, is in {number}",
                    ack.key
                ));
            }
            (Some((number, ..)), Some((there, ..))) => {
                return Err(format!(
                    "1: {:?}: reported as {number}, is in {there}, or another report or fingerprint",
                    ack.key
                ));
            }
        }
    }
    for read in &history.reads {
        match snapshots.digests.get(read.number as usize) {
            Some((digest, created)) if *digest == read.digest && *created <= read.time => {}
            Some((_, created)) if *created > read.time => {
                return Err(format!("2: {read:?} sees a group that was not in the log"));
            }
            _ => return Err(format!("2: {read:?} is not a prefix of the log")),
        }
    }
    for (server, number, digest) in &history.ends {
        if snapshots
            .digests
            .get(*number as usize)
            .is_none_or(|(d, _)| d != digest)
        {
            return Err(format!(
                "2: the store of {server} at {number} is not a prefix of the log"
            ));
        }
    }
    fresh(history)
}

/// Replays the log. Checks that the log has no gaps, that each request occurs once, and that each record equals the
/// result of evaluating its request at that point.
fn replay(history: &History) -> Result<Snapshots, String> {
    let mut state = State::default();
    let mut digests = vec![(state.digest(), 0)];
    let (mut done, mut proposals) = (BTreeMap::new(), BTreeSet::new());
    for (number, (bytes, created)) in &history.log {
        if *number != digests.len() as u64 {
            return Err(format!(
                "1: the log has {number} after {}",
                digests.len() - 1
            ));
        }
        let group = Group::read(EPOCH, bytes).map_err(|e| format!("group {number}: {e}"))?;
        for record in group.records {
            // What servers proposed for their shards changes no register, and takes effect once.
            if is_proposal_record(&record.bytes) {
                state.apply(&record);
                if !is_nothing(&record.bytes) && !proposals.insert(record.key) {
                    return Err(format!("1: {:?} in {number} is done twice", record.key));
                }
                continue;
            }
            // A record contains the register and the length of the request's body.
            let mut body = vec![0; record.bytes.len().saturating_sub(9)];
            if let (Some(place), Some(register)) = (body.first_mut(), record.bytes.first()) {
                *place = *register;
            }
            let evaluated = state.evaluate(record.key, &body).map(|evaluated| Record {
                fingerprint: match group.previous {
                    None => 0,
                    Some(_) => fingerprint(record.key),
                },
                ..evaluated
            });
            if evaluated.as_ref() != Some(&record) {
                return Err(format!(
                    "2: {:?} in {number} was evaluated on another state",
                    record.key
                ));
            }
            state.apply(&record);
            let told = (*number, record.fingerprint, record.report);
            if let Some((first, ..)) = done.insert(record.key, told) {
                return Err(format!(
                    "1: {:?} is done twice, in {first} and {number}",
                    record.key
                ));
            }
        }
        digests.push((state.digest(), *created));
    }
    Ok(Snapshots { digests, done })
}

/// Checks the guarantees on freshness (3 and 4).
fn fresh(history: &History) -> Result<(), String> {
    // For each acknowledgement, the newest group acknowledged until then: among all acknowledgements, and among those
    // that were made without faults (`calm`).
    let mut all: Vec<(u64, u64)> = vec![(0, 0)];
    let mut calm: Vec<(u64, u64)> = vec![(0, 0)];
    let add = |list: &mut Vec<(u64, u64)>, time: u64, number: u64| {
        let newest = list.last().map_or(0, |(_, newest)| *newest);
        list.push((time, newest.max(number)));
    };
    for ack in &history.acks {
        if let Some((number, ..)) = &ack.done {
            add(&mut all, ack.time, *number);
            if ack.calm {
                add(&mut calm, ack.time, *number);
            }
        }
    }
    // The newest group in a list strictly before a time.
    let before = |list: &[(u64, u64)], time: u64| {
        let end = list.partition_point(|(at, _)| *at < time);
        end.checked_sub(1).map_or(0, |at| list[at].1)
    };
    let mut strict: Vec<(u64, u64)> = vec![(0, 0)];
    let mut published: BTreeMap<(usize, u64), u64> = BTreeMap::new();
    for read in &history.reads {
        let last = published.entry((read.server, read.start)).or_default();
        if read.number < *last {
            return Err(format!(
                "2: {read:?} is behind {last}, which this server had shown"
            ));
        }
        *last = read.number;
        let demand = |number: u64, why: &str| match read.number < number {
            true => Err(format!("{why}: {read:?}, where {number} was acknowledged")),
            false => Ok(()),
        };
        if let Consistency::Default | Consistency::AtLeast(_) = read.consistency {
            demand(before(&calm, read.asked), "3, reached")?;
            if read.bucket {
                demand(
                    before(&all, read.asked.saturating_sub(FIND_OUT)),
                    "3, within 3.5 s",
                )?;
            }
            demand(
                before(&all, read.asked.saturating_sub(STALE)),
                "3, within 10 s",
            )?;
        }
        match read.consistency {
            Consistency::AtLeast(number) => demand(number, "4, at-least")?,
            Consistency::Strict => {
                demand(before(&all, read.asked), "4, strict")?;
                demand(before(&strict, read.asked), "4, strict after strict")?;
                add(&mut strict, read.time, read.number);
            }
            _ => {}
        }
    }
    Ok(())
}
