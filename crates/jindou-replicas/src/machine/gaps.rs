//! Gaps: groups that must be in the log and cannot be read.
//!
//! Trimming never removes a group after the newest base. So the log must contain every group after that base up to the
//! newest one that any source mentions: a listing, a base, a span, another server, or an entry in `servers/`. A listing
//! that lacks one of these groups shows a gap. While there is a gap, this server neither evaluates nor puts updates,
//! since its group would get the name of the lost one. If this server has not applied the missing group, it also
//! rejects queries that require freshness.
//!
//! A server that follows this log and has applied the missing group writes the group back. A server that was started
//! with data that the log does not contain does not write back, since the bucket may hold another copy of the log; its
//! operator decides.

use super::log::FETCH_AGAIN;
use super::{Machine, Phase, PutState, planted};
use crate::machine::event::{Action, Fetch, Gap, GroupObjectState, Outcome, Problem};
use crate::machine::group::{Damage, Group};
use crate::machine::names::Name;

/// A listing in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Asked {
    pub begun: crate::machine::settings::Time,
    /// The listing starts after this group number.
    pub after: u64,
    /// True if all names after `after` were requested.
    pub all: bool,
    /// The newest group known to exist when the listing started.
    pub known: u64,
}

/// Largest number of missing groups that are written back after one listing.
const AT_ONCE: usize = 64;

/// Ranges of groups that the log or a base contains, as (first number, last number).
struct Coverage(Vec<(u64, u64)>);

impl Coverage {
    /// The last group of the contiguous range that follows `after`.
    fn end(&self, after: u64) -> u64 {
        let mut end = after;
        for (first, last) in &self.0 {
            match *first <= end.saturating_add(1) {
                true => end = end.max(*last),
                false => break,
            }
        }
        end
    }

    fn has(&self, number: u64) -> bool {
        self.0
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&number))
    }
}

impl Machine {
    /// The gap that the last listing or read showed, if any.
    pub fn gap(&self) -> Option<Gap> {
        self.gap
    }

    /// The gap, if queries that require freshness are rejected because of it.
    pub fn gap_that_blocks(&self) -> Option<Gap> {
        self.gap.filter(|_| self.gap_blocks_reads())
    }

    /// True if queries that require freshness are rejected because of a gap.
    pub(super) fn gap_blocks_reads(&self) -> bool {
        (self.gap).is_some_and(|gap| !gap.applied || gap.has_wrong_object() || !self.rooted)
    }

    /// The group number after which the next listing starts, and true if the listing must return all names. The newest
    /// applied group is included if it cannot have been trimmed, so that its loss is noticed.
    pub(super) fn listing_range(&self) -> (u64, bool) {
        let base = self.bases.newest.unwrap_or(0);
        let near = match base < self.committed {
            true => self.committed - 1,
            false => self.committed,
        };
        let audit = self.now >= self.next_audit;
        let all = audit || self.gap.is_some();
        let first = self.gap.map_or(near, |gap| gap.first.saturating_sub(1));
        match audit {
            true => (near.min(base), all),
            false => (near.min(first), all),
        }
    }

    /// Compares a listing with the groups that the log must contain. Returns the newest group that the log contains or
    /// contained; `None` if the store is being replaced by a base, because the base includes groups that are no longer
    /// in the log.
    pub(super) fn check_listing(&mut self, asked: Asked, names: &[Name]) -> Option<u64> {
        let mut groups = Coverage(Vec::with_capacity(names.len()));
        for name in names {
            let (first, last) = match name {
                Name::Group(number) => (*number, *number),
                Name::Span(first, last) => (*first, *last),
                Name::Base(_) => continue,
            };
            if last <= asked.after || last > super::log::LAST {
                continue;
            }
            groups.0.push((first, last));
            if first < last && last > self.committed {
                self.spans.insert((first, last));
            }
        }
        groups.0.sort_unstable();
        let base = self.bases.newest.unwrap_or(0);
        let tail = groups.0.iter().map(|(_, last)| *last).max().unwrap_or(0);
        if planted!(self, GapIsTheEnd) {
            return Some(groups.end(asked.after).max(self.committed));
        }
        let known = tail.max(asked.known).max(base);
        self.note_exists(known);
        let end = groups.end(asked.after);
        // The base may have been uploaded after the groups were listed, and may include groups that the listing lacks.
        let in_base = end.max(self.committed) < base && end < tail.max(asked.known);
        if !self.rooted && asked.after < self.started_at && groups.has(self.started_at) {
            self.rooted = true;
            if self.hashes.get(self.started_at) != 0 {
                self.out.push(Action::Fetch(Fetch::Group(self.started_at)));
                self.fetching.insert(Fetch::Group(self.started_at));
            }
        }
        self.rooted |= self.started_at <= base;
        groups.0.insert(0, (0, base));
        let covered = groups.end(asked.after);
        let gap = (covered < known).then(|| Gap {
            first: covered + 1,
            newest: known,
            applied: covered < self.committed,
            object: GroupObjectState::Missing,
        });
        let gap = gap.or_else(|| self.gap.filter(Gap::has_wrong_object));
        if gap.is_none() && self.now >= self.next_audit && asked.all && asked.after <= base {
            self.next_audit = self.now.after(self.settings.audit_every);
        }
        self.set_gap(gap);
        if gap.is_some_and(|gap| gap.applied) && !self.gap_blocks_reads() {
            let last = self.committed.min(known);
            let lost = (asked.after + 1..=last).filter(|number| !groups.has(*number));
            let lost: Vec<u64> = lost.take(AT_ONCE).collect();
            (self.out).extend(lost.into_iter().map(Action::WriteBack));
        }
        let in_content = |gap: Gap| gap.has_wrong_object() && !gap.applied && gap.first <= base;
        if in_base || self.gap.is_some_and(in_content) {
            self.download();
            return None;
        }
        Some(known)
    }

    /// True if the groups that this server has applied are known to belong to this log.
    pub fn may_write_back(&self) -> bool {
        let other = self
            .gap
            .is_some_and(|gap| gap.object == GroupObjectState::Replaced);
        self.phase == Phase::Following && self.rooted && !other
    }

    /// Records the current gap, and reports a new one.
    pub(super) fn set_gap(&mut self, gap: Option<Gap>) {
        if self.gap == gap {
            return;
        }
        let is_new = match (self.gap, gap) {
            (Some(before), Some(now)) => (before.first, before.object) != (now.first, now.object),
            (None, Some(_)) => true,
            (_, None) => false,
        };
        self.gap = gap;
        if let Some(gap) = gap.filter(|_| is_new) {
            self.out.push(Action::Report(Problem::Gap(gap)));
        }
    }

    /// True if the group's `previous` hash is that of the newest applied group, or one of the two is unknown.
    pub(super) fn continues(&self, group: &Group) -> bool {
        let hash = self.hashes.get(self.committed);
        group
            .previous
            .is_none_or(|previous| previous == 0 || hash == 0 || previous == hash)
    }

    /// True if the log's group after the next one names `hash` as its predecessor, or if there is no such group. `hash`
    /// is the hash of the candidate for the next group. `None` while this is unknown.
    pub(super) fn is_continued(&self, hash: u64) -> Option<bool> {
        let next = self.next();
        if planted!(self, WriterTrustsGap) {
            return Some(true);
        }
        if self.newest_known <= next || self.gap.is_some_and(|gap| gap.first == next + 1) {
            return Some(true);
        }
        let fetched = self.fetched.get(&(next + 1)).map(|from| &from.group);
        let previous = self.confirmed_group(next + 1).or(fetched)?.previous;
        Some(previous.is_none_or(|previous| previous == 0 || previous == hash))
    }

    /// Records a gap: the group after `number` names another predecessor than the log's group `number`.
    pub(super) fn replaced(&mut self, number: u64) {
        self.set_gap(Some(Gap {
            first: number,
            newest: self.newest_known,
            applied: number <= self.committed,
            object: GroupObjectState::Replaced,
        }));
        // It is unknown which of the two objects is wrong. A span contains the groups as their writers applied them.
        for number in [number, number.saturating_add(1)] {
            self.fetched.remove(&number);
            self.absent.insert(number);
        }
        // Object `number` may be this server's own put, created under a name that was free again because the group had
        // been lost or trimmed. So check whether another object has the name.
        if let Some(put) = &self.writing
            && matches!(put.state, PutState::Unproven(_))
        {
            self.set_put(PutState::NameExists);
        }
        self.fetch_pause.begin(self.now, FETCH_AGAIN * 10);
    }

    /// Records that the object of an unapplied group is damaged. A span may contain a copy of the group.
    pub(super) fn damaged(&mut self, number: u64, damage: Damage) {
        self.absent.insert(number);
        // Of several gaps, only the first is recorded.
        if self.gap.is_none_or(|gap| gap.first >= number) {
            self.set_gap(Some(Gap {
                first: number,
                newest: self.newest_known,
                applied: false,
                object: GroupObjectState::Damaged(damage),
            }));
        }
        self.request_listing();
    }

    /// Compares the last group that this process started with to the log's group with the same number.
    pub(super) fn compare_start(&mut self, groups: &[Group]) {
        let own = self.hashes.get(self.started_at);
        let there = groups.iter().find(|group| group.number == self.started_at);
        if let Some(group) = there.filter(|_| own != 0)
            && group.hash(self.epoch) != own
        {
            self.replaced(self.started_at);
        }
    }

    /// Rejects the updates queued for evaluation here while the log has a gap.
    pub(super) fn refuse_updates(&mut self) {
        let Some(gap) = self.gap else {
            return;
        };
        let keys: Vec<_> = self.queue.drain(..).collect();
        for key in keys {
            match self.target().is_some() {
                true => self.route(key),
                false => self.refused(key, Outcome::Missing(gap.first), 0),
            }
        }
    }

    /// True if an audit is due: a listing of all groups after the newest base, which finds gaps.
    pub(super) fn audit_is_due(&self) -> bool {
        self.phase == Phase::Following && (self.gap.is_some() || self.now >= self.next_audit)
    }
}
