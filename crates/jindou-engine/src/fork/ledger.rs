//! When a query's parts are done: numbers of messages with rows, of which each was sent by someone and is worked off by someone
//! (after Mattern's credit, but with a name in place of a share, which needs no splitting).
//!
//! A part tells that a message is worked off together with the numbers of those that came of it. So while something is under way, the
//! message from which it came is known as sent and not as worked off, or one before it is: the ledger is even only at the end,
//! whatever order the news come in.

use rustc_hash::FxHashMap;

/// The numbers that were told of once.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// True for a number that was sent, false for one that was worked off.
    open: FxHashMap<u64, bool>,
}

impl Ledger {
    /// Notes a message that was sent.
    pub fn sent(&mut self, number: u64) {
        self.note(number, true);
    }

    /// Notes a message that was worked off.
    pub fn completed(&mut self, number: u64) {
        self.note(number, false);
    }

    fn note(&mut self, number: u64, sent: bool) {
        if self.open.remove(&number) != Some(!sent) {
            self.open.insert(number, sent);
        }
    }

    /// Bytes that it takes, about.
    pub fn bytes(&self) -> u64 {
        32 * self.open.len() as u64
    }

    /// True if every message that was sent was worked off.
    pub fn is_even(&self) -> bool {
        self.open.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Trees of messages, whose news arrive in any order: even exactly at the end.
        #[test]
        fn the_ledger_is_even_only_at_the_end(
            parents in proptest::collection::vec(any::<prop::sample::Index>(), 0..40),
            order in proptest::collection::vec(any::<u32>(), 41),
        ) {
            // Message 0 is known as sent from the beginning; each other one came of an earlier one.
            let mut children = vec![Vec::new(); parents.len() + 1];
            for (i, parent) in parents.iter().enumerate() {
                children[parent.index(i + 1)].push(i as u64 + 1);
            }
            let mut news: Vec<usize> = (0..children.len()).collect();
            news.sort_by_key(|&i| order[i]);
            let mut ledger = Ledger::default();
            ledger.sent(0);
            for i in news {
                prop_assert!(!ledger.is_even());
                ledger.completed(i as u64);
                children[i].iter().for_each(|&c| ledger.sent(c));
            }
            prop_assert!(ledger.is_even());
        }
    }
}
