//! Termination detection for the parts of a query: the coordinator is told twice about each message with rows, once
//! that it was sent and once that it was processed. (This is Mattern's credit scheme with message numbers in place of
//! credit shares, which need no splitting.)
//!
//! A part reports a processed message together with the numbers of the messages that it caused. So while a message is
//! unprocessed, the ledger has at least one number, of it or of a message that led to it, that was sent and not
//! processed. The ledger is therefore balanced only at the end, in whatever order the reports arrive.

use rustc_hash::FxHashMap;

/// The message numbers that were reported once and not yet a second time.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// True for a number that was reported as sent, false for one reported as processed.
    open: FxHashMap<u64, bool>,
}

impl Ledger {
    /// Records a message that was sent.
    pub fn sent(&mut self, number: u64) {
        self.note(number, true);
    }

    /// Records a message that was processed.
    pub fn completed(&mut self, number: u64) {
        self.note(number, false);
    }

    fn note(&mut self, number: u64, sent: bool) {
        if self.open.remove(&number) != Some(!sent) {
            self.open.insert(number, sent);
        }
    }

    /// Approximate bytes held.
    pub fn bytes(&self) -> u64 {
        32 * self.open.len() as u64
    }

    /// Returns true if every message that was sent was processed.
    pub fn is_even(&self) -> bool {
        self.open.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Trees of messages whose reports arrive in any order: balanced exactly at the end.
        #[test]
        fn the_ledger_is_even_only_at_the_end(
            parents in proptest::collection::vec(any::<prop::sample::Index>(), 0..40),
            order in proptest::collection::vec(any::<u32>(), 41),
        ) {
            // Message 0 is known as sent from the beginning; every other message is caused by an earlier one.
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
