//! Deduplication of requests, spans, uploads and trims.

use super::{Machine, Phase, planted};
use crate::machine::event::{Action, Base, KnownKey};
use crate::machine::group::{Group, RequestKey, ServerName};
use crate::machine::settings::Time;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// An executed request.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub number: u64,
    pub fingerprint: u64,
    report: ReportPlace,
}

/// Requests executed in the last minutes, remembered for deduplication.
#[derive(Debug, Default)]
pub(super) struct Keys {
    known: BTreeMap<RequestKey, Known>,
    learned: VecDeque<(Time, RequestKey)>,
    reports: Reports,
}

/// Where a report is.
#[derive(Clone, Copy, Debug)]
struct ReportPlace {
    block: u64,
    start: u32,
    end: u32,
}

/// Reports in blocks, in the order in which they were added, which is mostly the order of their removal. Hundreds of
/// thousands of allocations of their own would each keep a part of the allocator's memory from other uses.
#[derive(Debug, Default)]
struct Reports {
    /// Blocks to which nothing is added any more, with the number of their reports that were not removed.
    full: VecDeque<(Bytes, usize)>,
    /// Number of the first of these blocks.
    first: u64,
    /// The block after them, and the number of its reports that were not removed.
    open: (Vec<u8>, usize),
}

impl Reports {
    fn add(&mut self, report: &[u8]) -> ReportPlace {
        if self.open.0.len() + report.len() > REPORT_BLOCK && !self.open.0.is_empty() {
            let (bytes, count) = std::mem::take(&mut self.open);
            self.full.push_back((bytes.into(), count));
        }
        let (bytes, count) = &mut self.open;
        if bytes.is_empty() {
            bytes.reserve_exact(REPORT_BLOCK.max(report.len()));
        }
        let start = bytes.len() as u32;
        bytes.extend_from_slice(report);
        *count += 1;
        ReportPlace {
            block: self.first + self.full.len() as u64,
            start,
            end: bytes.len() as u32,
        }
    }

    fn get(&self, at: ReportPlace) -> Bytes {
        let range = at.start as usize..at.end as usize;
        match self.full.get((at.block - self.first) as usize) {
            Some((bytes, _)) => bytes.slice(range),
            None => Bytes::copy_from_slice(&self.open.0[range]),
        }
    }

    fn remove(&mut self, at: ReportPlace) {
        match self.full.get_mut((at.block - self.first) as usize) {
            Some((_, count)) => *count -= 1,
            None => self.open.1 -= 1,
        }
        while self.full.front().is_some_and(|(_, count)| *count == 0) {
            self.full.pop_front();
            self.first += 1;
        }
    }
}

impl Keys {
    pub fn get(&self, key: RequestKey) -> Option<&Known> {
        self.known.get(&key)
    }

    /// Remembers a request. Its age counts from this call, not from its execution, so a server that catches up or
    /// starts from a base forgets the request later than the others.
    pub fn remember(&mut self, known: KnownKey, now: Time) {
        let KnownKey {
            key,
            fingerprint,
            number,
            report,
        } = known;
        let known = Known {
            number,
            fingerprint,
            report: self.reports.add(&report),
        };
        match self.known.insert(key, known) {
            Some(before) => self.reports.remove(before.report),
            None => self.learned.push_back((now, key)),
        }
    }

    /// The answer to an executed request.
    pub fn report(&self, known: &Known) -> Bytes {
        self.reports.get(known.report)
    }

    /// Forgets requests older than `keys_for` plus a quarter, which allows for clocks that run at different speeds.
    pub fn expire(&mut self, now: Time, keys_for: Duration) {
        let limit = keys_for + keys_for / 4;
        while let Some((at, key)) = self.learned.front()
            && now.since(*at) > limit
        {
            if let Some(known) = self.known.remove(key) {
                self.reports.remove(known.report);
            }
            self.learned.pop_front();
        }
    }

    fn up_to(&self, number: u64) -> Vec<KnownKey> {
        let known = self
            .known
            .iter()
            .filter(|(_, known)| known.number <= number);
        known
            .map(|(key, known)| KnownKey {
                key: *key,
                fingerprint: known.fingerprint,
                number: known.number,
                report: self.report(known),
            })
            .collect()
    }
}

/// Hashes of the newest consecutive groups.
#[derive(Debug, Default)]
pub(super) struct Hashes {
    /// Number of the newest group.
    last: u64,
    hashes: VecDeque<u64>,
}

impl Hashes {
    /// Drops all hashes and continues after the group `number` with this hash.
    pub fn restart(&mut self, number: u64, hash: u64) {
        self.last = number;
        self.hashes.clear();
        self.hashes.push_back(hash);
    }

    /// Adds the hash of the next group.
    pub fn push(&mut self, hash: u64) {
        if self.hashes.len() == HASHES {
            self.hashes.pop_front();
        }
        self.last += 1;
        self.hashes.push_back(hash);
    }

    /// The hash of a group; 0 if it is not remembered.
    pub fn get(&self, number: u64) -> u64 {
        let back = self.last.checked_sub(number).map(usize::try_from);
        let at = match back {
            Some(Ok(back)) => self.hashes.len().checked_sub(back.saturating_add(1)),
            _ => None,
        };
        at.and_then(|at| self.hashes.get(at)).copied().unwrap_or(0)
    }
}

impl Machine {
    /// Describes the base that ends with group `number`, with the request keys to store with it on disk and in the
    /// bucket.
    pub fn base(&self, number: u64) -> Base {
        Base {
            number,
            hash: self.hashes.get(number),
            keys: self.keys.up_to(number),
        }
    }

    /// True if this server should upload bases and trim: it is the first by name of the live servers without the
    /// writer, or the only server. It is harmless if two servers believe this.
    fn should_upload(&self) -> bool {
        let writer = self.writer.as_ref().map(|a| &a.server);
        let mut living = (self.peers.iter())
            .filter(|(_, peer)| self.is_alive(peer))
            .map(|(name, _)| name);
        let free = |name: &ServerName| Some(name) != writer;
        match living.clone().next() {
            None => true,
            Some(_) if !free(&self.me.server) => false,
            Some(_) => !living.any(|name| free(name) && *name < self.me.server),
        }
    }

    pub(super) fn merged(&mut self, number: u64) {
        let new = self.bases.newest.is_none_or(|newest| newest < number);
        if self.phase == Phase::Following
            && self.fresh_as_of.is_some()
            && new
            && self.should_upload()
        {
            let base = self.base(number);
            self.out.push(Action::Upload(base));
        }
    }

    /// Records the current time with `committed`, for trimming.
    pub(super) fn note_commit_time(&mut self) {
        let pause = self.settings.keep / COMMIT_TIMES;
        if (self.commit_times.back()).is_none_or(|(at, _)| self.now.since(*at) >= pause) {
            self.commit_times.push_back((self.now, self.committed));
        }
    }

    /// Trims groups that the second newest base contains and that this process has known for at least `keep`. That age
    /// is measured by this process's clock only, never compared with the bucket's. The newest group is never trimmed,
    /// because the newest base is a later one than the second newest.
    pub(super) fn trim(&mut self) {
        let mut old = None;
        while let Some((at, number)) = self.commit_times.front().copied()
            && (self.now.since(at) >= self.settings.keep || planted!(self, TrimsTheYoung))
        {
            old = Some(number);
            self.commit_times.pop_front();
        }
        if let Some(number) = old {
            self.trimmable = number;
        }
        let base = match planted!(self, TrimsBelowNewest) {
            true => self.bases.newest,
            false => self.bases.second,
        };
        let number = base.unwrap_or(0).min(self.trimmable);
        if number > self.trimmed && self.phase == Phase::Following && self.should_upload() {
            self.trimmed = number;
            self.out.push(Action::Trim(number));
        }
    }

    /// Counts a group towards the next span. When the span is full, the writer of its last group writes the span.
    /// Servers may start counting at different groups, so spans can overlap.
    pub(super) fn count_span(&mut self, group: &Group, own: bool) {
        self.span.1 += group.size();
        let first = self.span.0;
        let full = group.number.saturating_sub(first) + 1 >= self.settings.span_groups
            || self.span.1 >= self.settings.span_bytes;
        if full || group.number.is_multiple_of(self.settings.span_groups) {
            self.span = (group.number.saturating_add(1), 0);
            if own && first < group.number {
                self.out.push(Action::Span(first, group.number));
            }
        }
    }
}

/// Bytes of a block of reports.
const REPORT_BLOCK: usize = 1 << 16;
/// Number of pairs (time, `committed`) that are remembered within `keep`.
const COMMIT_TIMES: u32 = 32;
/// Number of groups whose hashes are remembered: more than can be committed but not yet applied.
const HASHES: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn known(key: u128, number: u64, report: &[u8]) -> KnownKey {
        KnownKey {
            key: RequestKey(key),
            fingerprint: 0,
            number,
            report: Bytes::copy_from_slice(report),
        }
    }

    #[test]
    fn reports_are_found_until_their_requests_are_forgotten() {
        let mut keys = Keys::default();
        let report = |n: u64| vec![n as u8; (n as usize * 37) % 500];
        for n in 0..10_000u64 {
            keys.remember(known(n.into(), n, &report(n)), Time(n));
            // Learned again, as after a start from a base.
            keys.remember(known((n / 2).into(), n, &report(n)), Time(n));
            keys.expire(Time(n), Duration::from_micros(800));
            assert!(keys.known.len() <= 2004 && keys.learned.len() == keys.known.len());
            let reports = keys.reports.full.iter().map(|(_, count)| count);
            let reports = reports.sum::<usize>() + keys.reports.open.1;
            assert_eq!(reports, keys.known.len());
        }
        assert!(keys.reports.full.len() < 20);
        let all = keys.up_to(u64::MAX);
        assert!(
            all.iter()
                .all(|known| *known.report == report(known.number))
        );
        assert_eq!(all.len(), keys.known.len());
        keys.expire(Time(1 << 40), Duration::ZERO);
        assert!(keys.reports.full.is_empty() && keys.reports.open.1 == 0);
    }
}
