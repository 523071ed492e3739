//! Queries: they wait until the published snapshot is fresh enough for their consistency.

use super::{ListingState, Machine, Phase, planted};
use crate::machine::event::{Action, Consistency, Refusal};
use crate::machine::settings::Time;
use std::time::Duration;

/// A query that waits for a fresh enough snapshot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    read: u64,
    asked: Time,
    /// [`Machine::running`] at the time when the query arrived.
    running_when_asked: Duration,
    /// Lowest snapshot number from which the query may be answered.
    number: u64,
    need: Need,
    /// True for [`Consistency::Any`].
    any: bool,
}

/// The freshness proof that a query waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Need {
    Nothing,
    /// A recent enough freshness proof.
    Recent(Listed),
    /// The result of the listing with this number, or of a later listing.
    Listing(u64),
}

/// Result of the listings since a query arrived. The failure of a listing that started before the query arrived is
/// ignored: the process may have been suspended in between, and the bucket may be available again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Listed {
    NotYet,
    /// A listing failed, so an older freshness proof is accepted.
    Failed,
    /// A listing succeeded, so the missing groups can be fetched.
    Done,
}

impl Machine {
    pub(super) fn read(&mut self, read: u64, consistency: Consistency) {
        if consistency == Consistency::Any && self.phase == Phase::Following {
            return self.out.push(Action::AnswerRead(read));
        }
        let newest_known = match planted!(self, ReadsIgnoreKnownGroups) {
            true => 0,
            false => self.newest_known,
        };
        let (number, need) = match consistency {
            Consistency::Any => (0, Need::Nothing),
            Consistency::Default => (newest_known, Need::Recent(Listed::NotYet)),
            Consistency::AtLeast(number) => {
                (newest_known.max(number), Need::Recent(Listed::NotYet))
            }
            Consistency::Strict => {
                let sent = planted!(self, StrictUsesEarlierListing)
                    && self.listing_state != ListingState::Idle;
                let listing_id = self.listings_started + u64::from(!sent);
                if self.phase != Phase::Closed && !sent {
                    self.request_listing();
                }
                (newest_known, Need::Listing(listing_id))
            }
        };
        self.reads.push(Waiting {
            read,
            asked: self.now,
            running_when_asked: self.running,
            number,
            need,
            any: consistency == Consistency::Any,
        });
    }

    /// Handles a successful listing with number `listing_id`: no group after `tail` existed when the listing started.
    pub(super) fn listing_succeeded(&mut self, listing_id: u64, tail: u64) {
        for waiting in &mut self.reads {
            match waiting.need {
                Need::Listing(least) if least <= listing_id => {
                    waiting.need = Need::Nothing;
                    waiting.number = waiting.number.max(tail);
                }
                Need::Recent(_) => waiting.need = Need::Recent(Listed::Done),
                _ => {}
            }
        }
    }

    /// Handles the failure of the listing with number `listing_id`, which started at time `begun`.
    pub(super) fn listing_failed(&mut self, listing_id: u64, begun: Time) {
        let mut again = false;
        let all = planted!(self, OldListingFails);
        for waiting in &mut self.reads {
            match &mut waiting.need {
                Need::Recent(listed) if all || waiting.asked <= begun => *listed = Listed::Failed,
                Need::Recent(_) => {}
                Need::Listing(least) => again |= *least <= listing_id,
                Need::Nothing => {}
            }
        }
        if again && self.listing_state == ListingState::Idle {
            self.request_listing();
        }
    }

    /// Answers the queries that are ready, and rejects those that have waited too long.
    pub(super) fn serve(&mut self) {
        if self.reads.is_empty() {
            return;
        }
        let mut wants_listing = false;
        let mut reads = std::mem::take(&mut self.reads);
        reads.retain(|waiting| {
            let waited = self.now.since(waiting.asked);
            let blocked = self.gap.filter(|_| self.gap_blocks_reads());
            let there = self.phase == Phase::Following
                && self.committed >= waiting.number
                && (blocked.is_none() || waiting.any);
            let known = match waiting.need {
                Need::Nothing => true,
                Need::Listing(_) => false,
                Need::Recent(listed) => {
                    let age = self.fresh_as_of.map(|at| waiting.asked.since(at));
                    let recent =
                        age.is_some_and(|age| age <= self.settings.staleness_while_available);
                    let limit = self.settings.max_staleness;
                    let given_up = match listed {
                        Listed::NotYet => {
                            self.running.saturating_sub(waiting.running_when_asked)
                                >= self.settings.list_wait
                        }
                        Listed::Failed => true,
                        Listed::Done => false,
                    };
                    wants_listing |= !recent && self.last_listing < waiting.asked;
                    // The staleness limit applies at the time of the answer, not at that of the request.
                    let allowed = self
                        .fresh_as_of
                        .is_some_and(|at| self.now.since(at) <= limit);
                    recent || (given_up && allowed)
                }
            };
            if there && known {
                self.out.push(Action::AnswerRead(waiting.read));
                return false;
            }
            if let Some(gap) = blocked.filter(|_| self.phase == Phase::Following) {
                let refusal = Refusal::Missing(gap.first);
                self.out.push(Action::Refuse(waiting.read, refusal));
                return false;
            }
            if waited >= self.settings.read_limit {
                let refusal = match known {
                    true => Refusal::Behind,
                    false => Refusal::Stale,
                };
                self.out.push(Action::Refuse(waiting.read, refusal));
                return false;
            }
            true
        });
        self.reads = reads;
        if wants_listing && self.phase != Phase::Closed && self.listing_state == ListingState::Idle
        {
            self.request_listing();
        }
    }
}
