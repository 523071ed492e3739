//! Queries: from when on the published snapshot is new enough.

use super::{Look, Machine, Phase, planted};
use crate::event::{Action, Consistency, Refusal};
use crate::settings::Time;
use std::time::Duration;

/// A query that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    read: u64,
    asked: Time,
    /// [`Machine::running`] when it was asked.
    began: Duration,
    /// The published snapshot must be this one or a later one.
    number: u64,
    need: Need,
    /// True if any snapshot will do.
    any: bool,
}

/// Knowledge of the bucket that a query waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Need {
    /// Nothing.
    Nothing,
    /// Some that is recent enough.
    Recent(Listed),
    /// A listing of this number or a later one.
    Look(u64),
}

/// The last listing since a query was asked. One that was begun before and failed says nothing: the process may have been stopped
/// meanwhile, and the bucket be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Listed {
    NotYet,
    /// The bucket cannot be reached: what is known may be older.
    Failed,
    /// The bucket can be reached, so that the groups will come.
    Done,
}

impl Machine {
    pub(super) fn read(&mut self, read: u64, consistency: Consistency) {
        if consistency == Consistency::Any && self.phase == Phase::Following {
            return self.out.push(Action::Serve(read));
        }
        let heard = match planted!(self, HeardIsApplied) {
            true => 0,
            false => self.heard,
        };
        let (number, need) = match consistency {
            Consistency::Any => (0, Need::Nothing),
            Consistency::Default => (heard, Need::Recent(Listed::NotYet)),
            Consistency::AtLeast(number) => (heard.max(number), Need::Recent(Listed::NotYet)),
            Consistency::Strict => {
                let sent = planted!(self, StrictLooksBefore) && self.look != Look::Idle;
                let look = self.looks + u64::from(!sent);
                if self.phase != Phase::Closed && !sent {
                    self.want_look();
                }
                (heard, Need::Look(look))
            }
        };
        self.reads.push(Waiting {
            read,
            asked: self.now,
            began: self.running,
            number,
            need,
            any: consistency == Consistency::Any,
        });
    }

    /// A listing succeeded: no group after `tail` existed when it was begun.
    pub(super) fn looked(&mut self, look: u64, tail: u64) {
        for waiting in &mut self.reads {
            match waiting.need {
                Need::Look(least) if least <= look => {
                    waiting.need = Need::Nothing;
                    waiting.number = waiting.number.max(tail);
                }
                Need::Recent(_) => waiting.need = Need::Recent(Listed::Done),
                _ => {}
            }
        }
    }

    /// A listing that was begun at this time failed.
    pub(super) fn look_failed(&mut self, look: u64, begun: Time) {
        let mut again = false;
        let all = planted!(self, OldListingFails);
        for waiting in &mut self.reads {
            match &mut waiting.need {
                Need::Recent(listed) if all || waiting.asked <= begun => *listed = Listed::Failed,
                Need::Recent(_) => {}
                Need::Look(least) => again |= *least <= look,
                Need::Nothing => {}
            }
        }
        if again && self.look == Look::Idle {
            self.want_look();
        }
    }

    /// Answers the queries that can be answered, and refuses those that have waited for too long.
    pub(super) fn serve(&mut self) {
        if self.reads.is_empty() {
            return;
        }
        let mut look = false;
        let mut reads = std::mem::take(&mut self.reads);
        reads.retain(|waiting| {
            let waited = self.now.since(waiting.asked);
            let blocked = self.gap.filter(|_| self.gap_blocks_reads());
            let there = self.phase == Phase::Following
                && self.committed >= waiting.number
                && (blocked.is_none() || waiting.any);
            let known = match waiting.need {
                Need::Nothing => true,
                Need::Look(_) => false,
                Need::Recent(listed) => {
                    let age = self.settled.map(|at| waiting.asked.since(at));
                    let recent = age.is_some_and(|age| age <= self.settings.find_out);
                    let limit = self.settings.max_staleness;
                    let given_up = match listed {
                        Listed::NotYet => {
                            self.running.saturating_sub(waiting.began) >= self.settings.list_wait
                        }
                        Listed::Failed => true,
                        Listed::Done => false,
                    };
                    look |= !recent && self.last_look < waiting.asked;
                    // What is known now must not be too old now.
                    let allowed = self.settled.is_some_and(|at| self.now.since(at) <= limit);
                    recent || (given_up && allowed)
                }
            };
            if there && known {
                self.out.push(Action::Serve(waiting.read));
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
        if look && self.phase != Phase::Closed && self.look == Look::Idle {
            self.want_look();
        }
    }
}
