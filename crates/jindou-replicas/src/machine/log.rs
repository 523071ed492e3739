//! The log: which groups are committed, and how a server catches up.

use super::gaps::Asked;
use super::planted;
use super::{
    Bases, FromBucket, Head, Impossible, ListingState, Machine, Pause, Phase, Put, PutState,
    ResponseTime,
};
use crate::machine::event::{Action, Base, Fetch, Fetched, KnownKey, Listing, Outcome, Problem};
use crate::machine::group::{Damage, Group, Record, RequestKey, read_span};
use crate::machine::names::Name;
use crate::machine::settings::Time;
use std::sync::Arc;
use std::time::Duration;

/// Number of concurrent reads of objects.
const FETCHES: usize = 8;
/// First delay after a failed read of an object, and after a failed listing. Repeated failures increase the delay.
pub(super) const FETCH_AGAIN: Duration = Duration::from_millis(200);
const LIST_AGAIN: Duration = Duration::from_millis(50);
/// Largest group number that is accepted. No log reaches this number, and arithmetic on it does not overflow.
pub(super) const LAST: u64 = 1 << 62;
/// Limits for fetched groups that are not committed yet: total bytes, and number of groups.
const FETCHED_BYTES: usize = 64 << 20;
const FETCHED_GROUPS: usize = 4096;
/// Largest number of freshness proofs that are kept until their groups are applied.
const MAX_PROOFS: usize = 64;

/// The group that could be committed next.
enum Candidate {
    None,
    /// An object with the next number exists, but it may not be the first that was created under this name.
    Unvalidated,
    Certain(Arc<Group>),
}

impl Machine {
    /// True if the bucket's response is certain to concern the first object created under a name after `committed`.
    fn concerns_first_object(&self, answer: ResponseTime) -> bool {
        self.has_recent_proof(answer) || answer.listings_started < self.validated_before_listing
    }

    /// True if the latest freshness proof was recent at the time of the bucket's response.
    pub(super) fn has_recent_proof(&self, answer: ResponseTime) -> bool {
        let limit = self.settings.recent();
        (self.fresh_as_of).is_some_and(|at| answer.at.since(at) <= limit)
    }

    /// Commits the groups that can be committed, in order.
    pub(super) fn advance(&mut self) -> Result<(), Impossible> {
        loop {
            let next = self.next();
            if let Some(put) = &self.writing
                && put.group.number != next
            {
                return Err(Impossible("a put of a number that is not the next one"));
            }
            let group = match self.candidate(next) {
                Candidate::Certain(group) => group,
                Candidate::Unvalidated => {
                    self.list_after_responses();
                    return Ok(());
                }
                Candidate::None => return Ok(()),
            };
            let hash = self.hash_of(&group);
            if !self.continues(&group) {
                self.replaced(self.committed);
                return Ok(());
            }
            // If a peer has confirmed this number with this group's writer, that peer has verified the group already.
            let confirmed = self.confirmed.get(&next);
            let checked = confirmed.map(|writer| *writer == group.writer);
            match checked.or_else(|| self.is_continued(hash)) {
                Some(true) => self.commit(group, hash)?,
                Some(false) => {
                    self.replaced(next);
                    return Ok(());
                }
                None => return Ok(()),
            }
        }
    }

    /// The next group, if it is available, and whether it is certain to be in the log.
    fn candidate(&mut self, next: u64) -> Candidate {
        let put = (self.writing.as_ref()).map(|put| (put.group.clone(), put.state));
        // If a peer has confirmed this server's own group, that peer has verified it.
        let own =
            (put.as_ref()).filter(|(group, _)| self.confirmed.get(&next) == Some(&group.writer));
        let found = own
            .map(|(group, _)| group)
            .or_else(|| self.confirmed_group(next));
        if let Some(group) = found {
            return Candidate::Certain(group.clone());
        }
        let mut state = put.as_ref().map(|(_, state)| *state);
        let mut unvalidated = false;
        if let Some(from) = self.fetched.get(&next) {
            let answer = from.answer;
            match &put {
                // The object that was read is this server's own group, so the put has succeeded.
                Some((group, _)) if from.group.writer == group.writer => {
                    self.fetched.remove(&next);
                    if !matches!(state, Some(PutState::Unproven(_))) {
                        self.set_put(PutState::Unproven(answer));
                        state = Some(PutState::Unproven(answer));
                    }
                }
                _ if self.concerns_first_object(answer) => {
                    return Candidate::Certain(from.group.clone());
                }
                _ => unvalidated = true,
            }
        }
        match (put, state) {
            (Some((group, _)), Some(PutState::Unproven(answer))) => {
                match self.concerns_first_object(answer) || planted!(self, NoProof) {
                    true => Candidate::Certain(group),
                    false => Candidate::Unvalidated,
                }
            }
            _ if unvalidated => Candidate::Unvalidated,
            _ => Candidate::None,
        }
    }

    /// The group with this number, if another server has confirmed that it is in the log, and the group's writer has
    /// sent it.
    pub(super) fn confirmed_group(&self, number: u64) -> Option<&Arc<Group>> {
        let writer = self.confirmed.get(&number)?;
        self.proposed
            .get(&number)
            .filter(|group| group.writer == *writer)
    }

    /// The hash of a candidate for the next group.
    fn hash_of(&self, group: &Arc<Group>) -> u64 {
        match self.fetched.get(&group.number) {
            Some(from) if Arc::ptr_eq(&from.group, group) => from.hash,
            _ => group.hash(self.epoch),
        }
    }

    /// Starts a listing that is newer than the bucket's responses about the next group, unless one is running.
    fn list_after_responses(&mut self) {
        let of_put = match &self.writing {
            Some(Put {
                state: PutState::Unproven(answer),
                ..
            }) => Some(answer.listings_started),
            _ => None,
        };
        let of_group = self
            .fetched
            .get(&self.next())
            .map(|f| f.answer.listings_started);
        let Some(answers) = of_put.max(of_group) else {
            return;
        };
        let wanted = match self.listing_state {
            // A failed listing is repeated after a delay.
            ListingState::Idle => {
                self.listings_started <= answers || self.now.since(self.last_listing) >= FETCH_AGAIN
            }
            ListingState::Sent(_) => self.listings_started <= answers,
            ListingState::Wanted | ListingState::SentAndWanted(_) => false,
        };
        // While groups are being fetched, wait: one listing afterwards covers all of them.
        if wanted && self.fetching.is_empty() {
            self.request_listing();
        }
    }

    /// Commits the next group of the log.
    fn commit(&mut self, group: Arc<Group>, hash: u64) -> Result<(), Impossible> {
        let number = group.number;
        if number != self.next() {
            return Err(Impossible("a group that is not the next one"));
        }
        let put = self.writing.as_ref();
        let own = put.is_some_and(|put| put.group.writer == group.writer);
        let mut again = Vec::new();
        if own {
            self.writing = None;
            if self.pending.is_empty() && self.evaluating.is_empty() {
                self.head = Head::Published;
            }
        } else {
            if self.head != Head::Proposed(group.writer.clone()) {
                again = self.roll_back();
                self.out.push(Action::Apply(group.clone()));
            }
            self.head = match self.pending.is_empty() {
                true => Head::Published,
                // Reached only with an injected fault.
                false => Head::Own,
            };
        }
        // A group that continues the state this process started with proves that the state belongs to this log.
        let before = self.hashes.get(self.committed);
        self.rooted |= before != 0 && group.previous == Some(before);
        self.committed = number;
        self.newest_known = self.newest_known.max(number);
        if (self.gap).is_some_and(|gap| gap.has_wrong_object() && gap.first <= number) {
            self.set_gap(None);
        }
        self.out.push(Action::Publish(number));
        for record in &group.records {
            if own || !planted!(self, RequestsForgotten) {
                let known = KnownKey::of(record, number);
                self.keys.remember(known, self.now);
            }
        }
        self.writer = Some(group.writer.clone());
        self.newest_version = group.version();
        self.hashes.push(hash);
        self.forget_groups();
        self.use_proofs();
        self.note_commit_time();
        let wanted = |record: &Record| self.waiting.contains_key(&record.key);
        if own || group.records.iter().any(wanted) {
            self.tell_committed();
        }
        for record in &group.records {
            self.is_committed(record.key, number);
        }
        self.count_span(&group, own);
        for key in again {
            self.route(key);
        }
        Ok(())
    }

    /// Rolls the head back to the published snapshot. Returns the requests that were evaluated on the head and must be
    /// evaluated again.
    pub(super) fn roll_back(&mut self) -> Vec<RequestKey> {
        if self.head == Head::Published {
            return Vec::new();
        }
        if planted!(self, NotEvaluatedAgain)
            && let Some(put) = self.writing.take()
        {
            // With the injected fault, evaluated records are kept and put under the next number.
            for record in put.group.records.iter().rev() {
                self.pending.push_front((record.key, record.clone()));
            }
            self.head = Head::Own;
            self.out.push(Action::Rollback);
            return Vec::new();
        }
        self.out.push(Action::Rollback);
        self.head = Head::Published;
        self.keys_in_progress.clear();
        let mut keys = Vec::new();
        if let Some(put) = self.writing.take() {
            keys.extend(put.group.records.iter().map(|r| r.key));
        }
        keys.extend(self.pending.drain(..).map(|(key, _)| key));
        keys.extend(self.evaluating.drain(..).map(|(_, request)| request.key));
        keys
    }

    /// Applies another server's proposed group for the next number to the head, unless this server has evaluated
    /// updates on the head.
    pub(super) fn apply_proposed(&mut self) {
        if self.head == Head::Published
            && let Some(group) = self.proposed.get(&self.next())
        {
            self.head = Head::Proposed(group.writer.clone());
            self.out.push(Action::Apply(group.clone()));
            if planted!(self, ProposedIsRead) {
                self.out.push(Action::Publish(group.number));
            }
        }
    }

    /// Records that a group with this number exists.
    pub(super) fn note_exists(&mut self, number: u64) {
        if number <= LAST {
            self.newest_known = self.newest_known.max(number);
        }
    }

    /// Records a freshness proof: no group after `number` existed at time `at`.
    pub(super) fn add_proof(&mut self, at: Time, number: u64) {
        if number > LAST {
            return;
        }
        self.note_exists(number);
        // An earlier process of this server may have known of later groups than this process, and may have acknowledged
        // updates because it knew of them. So proofs from before the start do not count.
        if at < self.began {
            return;
        }
        // Proofs are kept in ascending order of time. An older proof for a later group adds no information.
        if self
            .freshness_proofs
            .back()
            .is_some_and(|(last, _)| *last >= at)
        {
            if number <= self.committed {
                self.fresh_as_of = self.fresh_as_of.max(Some(at));
            }
            return;
        }
        if self.freshness_proofs.len() == MAX_PROOFS {
            self.freshness_proofs.pop_back();
        }
        self.freshness_proofs.push_back((at, number));
        self.use_proofs();
    }

    fn use_proofs(&mut self) {
        let committed = self.committed;
        self.freshness_proofs.retain(|(at, number)| {
            if *number <= committed {
                self.fresh_as_of = self.fresh_as_of.max(Some(*at));
            }
            *number > committed
        });
    }

    /// Time of the latest freshness proof, for any group number.
    pub(super) fn newest_proof(&self) -> Option<Time> {
        self.fresh_as_of
            .max(self.freshness_proofs.back().map(|(at, _)| *at))
    }

    /// Requests a listing. The listing starts now, or after the running one, or after the delay that follows a failure.
    pub(super) fn request_listing(&mut self) {
        self.listing_state = match self.listing_state {
            ListingState::Idle | ListingState::Wanted if !self.listing_pause.is_over(self.now) => {
                ListingState::Wanted
            }
            ListingState::Idle | ListingState::Wanted => {
                self.listings_started += 1;
                self.last_listing = self.now;
                let (after, all) = self.listing_range();
                self.out.push(Action::List {
                    listing_id: self.listings_started,
                    after,
                    all,
                });
                ListingState::Sent(Asked {
                    begun: self.now,
                    after,
                    all,
                    known: self.newest_known,
                })
            }
            ListingState::Sent(asked) | ListingState::SentAndWanted(asked) => {
                ListingState::SentAndWanted(asked)
            }
        };
    }

    /// Requests a listing if the freshness proof is too old.
    pub(super) fn list_if_due(&mut self) {
        let writer = self
            .writer
            .as_ref()
            .is_none_or(|a| a.server == self.me.server);
        let limit = match writer {
            true => self.settings.prove_every,
            false => self.settings.list_after,
        };
        let old = (self.newest_proof()).is_none_or(|at| self.now.since(at) >= limit);
        let pause = self.now.since(self.last_listing) >= self.settings.list_every;
        let due = old || self.audit_is_due();
        if due && pause && self.listing_state == ListingState::Idle && self.phase != Phase::Closed {
            self.request_listing();
        }
    }

    pub(super) fn listed(&mut self, listing_id: u64, listing: Option<Listing>) {
        let (asked, wanted) = match self.listing_state {
            ListingState::Sent(asked) if listing_id == self.listings_started => (asked, false),
            ListingState::SentAndWanted(asked) if listing_id == self.listings_started => {
                (asked, true)
            }
            _ => return,
        };
        self.listing_state = ListingState::Idle;
        match listing {
            Some(listing) => {
                self.listing_pause = Pause::default();
                self.learn_listing(listing_id, asked, &listing);
            }
            None => {
                self.listing_pause.begin(self.now, LIST_AGAIN);
                self.listing_failed(listing_id, asked.begun);
            }
        }
        if wanted {
            self.request_listing();
        }
    }

    fn learn_listing(&mut self, listing_id: u64, asked: Asked, listing: &Listing) {
        let epoch = self.epoch;
        let names = |of: &[String]| -> Vec<Name> {
            let names = of.iter().filter_map(|text| Name::parse(epoch, text));
            names.collect()
        };
        let mut bases: Vec<u64> = (names(&listing.bases).into_iter())
            .filter_map(|name| match name {
                Name::Base(number) => Some(number).filter(|number| *number <= LAST),
                _ => None,
            })
            .collect();
        bases.sort_unstable_by(|a, b| b.cmp(a));
        bases.dedup();
        self.bases = Bases {
            newest: bases.first().copied(),
            second: bases.get(1).copied(),
        };
        match self.phase {
            Phase::Empty if self.bases.newest.is_some() => return self.download(),
            Phase::Empty if self.needs_base => return,
            Phase::Empty => {
                self.start_from(Base::default());
                self.phase = Phase::Following;
            }
            Phase::Following => {}
            Phase::Closed | Phase::Downloading | Phase::DownloadFailed => return,
        }
        let limit = self.settings.proof();
        let stale = self.fresh_as_of.is_none_or(|at| self.now.since(at) > limit);
        let second = self.bases.second;
        if stale && second.is_some_and(|second| second > self.committed) {
            return self.download();
        }
        if let Some(tail) = self.check_listing(asked, &names(&listing.log)) {
            self.validated_before_listing = listing_id;
            if !self.gap_blocks_reads() {
                self.add_proof(asked.begun, tail);
                self.listing_succeeded(listing_id, tail);
            }
        }
    }

    /// Fetches groups after `committed` from the bucket.
    pub(super) fn fetch(&mut self) {
        if !self.fetch_pause.is_over(self.now) {
            return;
        }
        // After a failure, a single request tests whether the bucket is reachable.
        let most = match self.fetch_pause.length.is_zero() {
            true => FETCHES,
            false => 1,
        };
        let held: usize = self.fetched.values().map(|from| from.group.size()).sum();
        let mut number = self.next();
        // A group can be committed only once its successor was fetched, so at least two groups must be fetched, however
        // large.
        let last = match held > FETCHED_BYTES || self.fetched.len() > FETCHED_GROUPS {
            true => number.saturating_add(1),
            false => u64::MAX - 1,
        };
        let last = match self.gap {
            Some(gap) if !gap.has_wrong_object() && !gap.applied => {
                last.min(gap.first.saturating_sub(1))
            }
            _ => last,
        };
        while number <= self.newest_known.min(last) && self.fetching.len() < most {
            if self.confirmed_group(number).is_some() || self.fetched.contains_key(&number) {
                number += 1;
                continue;
            }
            let mut span = self.spans.range(..=(number, u64::MAX)).next_back().copied();
            // For a single group, its own object is smaller than the span.
            span = span.filter(|(_, last)| number < *last);
            if span.is_none() && self.absent.contains(&number) {
                let has = |span: &&(u64, u64)| (span.0..=span.1).contains(&number);
                span = self.spans.iter().find(has).copied();
            }
            let (fetch, last) = match span {
                Some((first, last)) => (Fetch::Span(first, last), last),
                None => (Fetch::Group(number), number),
            };
            if self.fetching.insert(fetch) {
                self.out.push(Action::Fetch(fetch));
            }
            number = last.saturating_add(1);
        }
    }

    pub(super) fn got(&mut self, fetch: Fetch, fetched: Fetched) {
        if !self.fetching.remove(&fetch) {
            return;
        }
        let groups = match (fetched, fetch) {
            (Fetched::Unknown, _) => {
                self.fetch_pause.begin(self.now, FETCH_AGAIN);
                return;
            }
            (Fetched::Missing, Fetch::Span(first, last)) => {
                self.spans.remove(&(first, last));
                return;
            }
            (Fetched::Missing, Fetch::Group(number)) => {
                self.fetch_pause.begin(self.now, FETCH_AGAIN);
                if number > self.committed {
                    self.absent.insert(number);
                    // The group is known to exist, so its object was trimmed or lost. From now on, responses must be
                    // validated by a new listing.
                    self.fresh_as_of = None;
                    self.request_listing();
                }
                return;
            }
            (Fetched::Bytes(bytes), Fetch::Group(number)) => Group::read(self.epoch, &bytes)
                .and_then(|group| match group.number == number {
                    true => Ok(vec![group]),
                    false => Err(Damage::Number),
                }),
            (Fetched::Bytes(bytes), Fetch::Span(first, last)) => read_span(self.epoch, &bytes)
                .and_then(
                    |groups| match groups.iter().map(|g| g.number).eq(first..=last) {
                        true => Ok(groups),
                        false => Err(Damage::Number),
                    },
                ),
        };
        match groups {
            Ok(groups) => {
                self.fetch_pause = Pause::default();
                let answer = self.response_time();
                self.compare_start(&groups);
                for group in groups.into_iter().filter(|g| g.number > self.committed) {
                    let hash = group.hash(self.epoch);
                    let group = Arc::new(group);
                    let from = FromBucket {
                        group: group.clone(),
                        hash,
                        answer,
                    };
                    self.fetched.insert(group.number, from);
                }
            }
            Err(damage) => {
                self.fetch_pause.begin(self.now, FETCH_AGAIN * 10);
                match (fetch, damage) {
                    // A damaged group may be available in a span. A group of a newer version is not damaged.
                    (Fetch::Group(number), damage)
                        if number > self.committed && !matches!(damage, Damage::Version(_)) =>
                    {
                        self.damaged(number, damage);
                    }
                    _ => (self.out).push(Action::Report(Problem::Damaged(fetch, damage))),
                }
                if let Fetch::Span(first, last) = fetch {
                    self.spans.remove(&(first, last));
                }
            }
        }
    }

    /// Replaces the store by the newest base. All pending updates get an unknown outcome, because the trimmed part of
    /// the log may have contained them, and the base remembers only the newest requests.
    pub(super) fn download(&mut self) {
        if self.phase == Phase::Downloading {
            return;
        }
        let _ = self.roll_back();
        self.phase = Phase::Downloading;
        self.fresh_as_of = None;
        self.queue.clear();
        self.unacknowledged.clear();
        let keys: Vec<_> = self.waiting.keys().copied().collect();
        for key in keys {
            self.finish(key, Outcome::Unknown);
        }
        self.out.push(Action::Download);
    }

    pub(super) fn downloaded(&mut self, base: Option<Base>) {
        if self.phase != Phase::Downloading {
            return;
        }
        match base {
            Some(base) if (self.committed..=LAST).contains(&base.number) => {
                (self.phase, self.empty) = (Phase::Following, false);
                if planted!(self, RequestsForgotten) {
                    self.start_from(Base {
                        keys: Vec::new(),
                        ..base
                    });
                } else {
                    self.start_from(base);
                }
                // The base certainly belongs to this log. The object of the base's last group may not: a late put may
                // have created it under the name of a lost group.
                self.rooted = true;
                self.request_listing();
            }
            _ => self.phase = Phase::DownloadFailed,
        }
    }

    /// Handles [`crate::Event::NoBase`]: continues with the store as it was.
    pub(super) fn no_base(&mut self) {
        if self.phase != Phase::Downloading {
            return;
        }
        self.phase = match self.empty {
            true => Phase::Empty,
            false => Phase::Following,
        };
        self.request_listing();
    }
}
