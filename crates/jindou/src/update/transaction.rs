//! Changes on their way to the next snapshot, within a memory budget.

use super::UpdateOptions;
use super::graphs::{TargetGraphs, is_there};
use crate::database::watching;
use crate::runtime::Settled;
use jindou_model::prefixes::PrefixChange;
use jindou_model::term::MAX_TRIPLE_NESTING;
use jindou_model::{CancelToken, Error, MemoryBudget, Resource, Result};
use jindou_store::{Changes, Snapshot};
use std::fmt::Write as _;

/// Temporary memory in bytes for applying a change: the sorted and looked-up quad, its entries in two patches, its
/// record.
const APPLYING: u64 = 160;
/// Bytes for applying changes of a predicate: its patches and its counts.
const PREDICATE: u64 = 900;
/// Copies of the terms' text besides the changes' own: the dictionary's, the record's, and the log's group.
const COPIES: u64 = 3;
/// Memory is charged in steps of this size.
const STEP: u64 = 1 << 16;

/// Bytes needed to apply these changes.
pub(super) fn applying(changes: &Changes) -> u64 {
    changes.len() as u64 * APPLYING
        + changes.predicates() as u64 * PREDICATE
        + changes.text_bytes() as u64 * COPIES
}

/// A transaction that is being evaluated. Dropped, it changes nothing.
pub(crate) struct Transaction {
    snapshot: Snapshot,
    /// Changes recorded but not yet in the snapshot.
    pub(super) changes: Changes,
    /// Record of the difference between the current snapshot and the one with which the transaction began.
    record: Vec<u8>,
    outcome: ChangeCounts,
    begun: bool,
    /// True if the graph that the update refers to had a quad; `None` if it refers to none.
    pub(super) graph_was_there: Option<bool>,
    pub(super) labels: LabelGenerator,
    pub(super) threads: usize,
    pub(super) cancel: CancelToken,
    charge: TransactionCharge,
}

/// A finished snapshot, and its record.
type Made = (Snapshot, Vec<u8>);

/// A state of a transaction in which all recorded changes are applied.
pub(super) struct Savepoint {
    snapshot: Snapshot,
    /// Length of the record at that time.
    record: usize,
    outcome: ChangeCounts,
    begun: bool,
}

impl Savepoint {
    /// Numbers of quads up to this state.
    pub(super) fn outcome(&self) -> ChangeCounts {
        self.outcome
    }
}

/// Numbers of quads that a transaction added and removed.
#[derive(Clone, Copy, Default)]
pub(crate) struct ChangeCounts {
    pub(crate) added: u64,
    pub(crate) removed: u64,
}

impl Transaction {
    pub(super) fn new(
        head: &Snapshot,
        options: &Settled<'_, UpdateOptions>,
        cancel: &CancelToken,
    ) -> Self {
        // Failures to read other shards end this transaction, not the next one.
        let snapshot = head.for_new_query().into_owned();
        if let Some(sharded) = snapshot.as_sharded() {
            sharded.charge_to(&options.memory);
        }
        Self {
            cancel: watching(cancel.clone(), &snapshot),
            snapshot,
            changes: Changes::new(),
            record: Vec::new(),
            outcome: ChangeCounts::default(),
            begun: false,
            graph_was_there: None,
            labels: LabelGenerator::new(),
            threads: options.threads,
            charge: TransactionCharge::new(&options.memory),
        }
    }

    /// The snapshot with all changes so far.
    pub(super) fn current(&mut self) -> Result<Snapshot> {
        self.settle()?;
        Ok(self.snapshot.clone())
    }

    /// The snapshot without the changes that are only recorded.
    pub(crate) fn unsettled(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Finds out whether the graph that the update is about has a quad.
    pub(super) fn look_for(&mut self, target: &TargetGraphs) -> bool {
        let there = is_there(&self.snapshot, target);
        self.graph_was_there = Some(there);
        there
    }

    /// Ok if the update's condition holds for the transaction's first snapshot.
    ///
    /// # Errors
    /// [`Error::Precondition`].
    pub(super) fn meets(&self, options: &UpdateOptions) -> Result<()> {
        match &options.condition {
            Some(condition) => condition.check(&self.snapshot),
            None => Ok(()),
        }
    }

    /// Charges memory for the changes and for applying them, and checks the clock. Call it now and then while changes
    /// are collected: a transaction that does not fit ends here.
    pub(super) fn check(&mut self) -> Result<()> {
        self.check_for(0)
    }

    /// As [`Self::check`], before this many additional bytes are allocated.
    pub(super) fn check_for(&mut self, more: u64) -> Result<()> {
        self.cancel.check()?;
        let held = self.changes.bytes() as u64 + applying(&self.changes);
        self.charge.set(held + self.recorded() + more)
    }

    /// Bytes of the record, and of the log's copy of it.
    fn recorded(&self) -> u64 {
        2 * self.record.capacity() as u64
    }

    fn settle(&mut self) -> Result<()> {
        if self.changes.is_empty() {
            return Ok(());
        }
        self.check()?;
        let changes = std::mem::take(&mut self.changes);
        self.apply_unchecked(&changes)
    }

    /// Applies changes that were collected elsewhere.
    pub(super) fn apply(&mut self, changes: &Changes) -> Result<()> {
        self.settle()?;
        self.charge.set(self.recorded() + applying(changes))?;
        self.cancel.check()?;
        self.apply_unchecked(changes)
    }

    fn apply_unchecked(&mut self, changes: &Changes) -> Result<()> {
        if changes.nesting() > MAX_TRIPLE_NESTING {
            return Err(Error::limit(
                Resource::Form,
                format!(
                    "a triple term nests {} levels deep, and at most {MAX_TRIPLE_NESTING} can be stored",
                    changes.nesting()
                ),
            ));
        }
        let (threads, cancel) = (self.threads, &self.cancel);
        let mut applied = self
            .snapshot
            .apply_while(changes, threads, self.begun, cancel)?;
        // Changes without effect leave no trace.
        if applied.added + applied.removed > 0 {
            self.begun = true;
            self.snapshot = applied.snapshot;
            if self.record.is_empty() {
                self.record = applied.record;
            } else {
                self.record.append(&mut applied.record);
            }
            self.outcome.added += applied.added;
            self.outcome.removed += applied.removed;
        }
        self.charge.set(self.recorded())
    }

    /// Changes prefixes; the snapshot has those of the transaction so far.
    pub(crate) fn change_prefixes(
        &mut self,
        changes: impl IntoIterator<Item = PrefixChange>,
    ) -> Result<()> {
        if let Some((snapshot, mut record)) = self.snapshot.apply_prefixes(changes, self.begun)? {
            self.begun = true;
            self.snapshot = snapshot;
            self.record.append(&mut record);
        }
        self.check()
    }

    /// A point to which the transaction can go back. All recorded changes must have been applied.
    pub(super) fn mark(&self) -> Savepoint {
        Savepoint {
            snapshot: self.snapshot.clone(),
            record: self.record.len(),
            outcome: self.outcome,
            begun: self.begun,
        }
    }

    /// Undoes everything since a mark.
    pub(super) fn back_to(&mut self, mark: Savepoint) {
        self.changes = Changes::new();
        self.snapshot = mark.snapshot.for_new_query().into_owned();
        self.record.truncate(mark.record);
        (self.outcome, self.begun) = (mark.outcome, mark.begun);
        // This is less than the charge so far, so it cannot be refused.
        let _ = self.charge.set(self.recorded());
    }

    /// Applies all recorded changes to the snapshot; returns the numbers so far.
    pub(super) fn settled(&mut self) -> Result<ChangeCounts> {
        self.settle()?;
        self.cancel.check()?;
        self.snapshot.check_shards()?;
        Ok(self.outcome)
    }

    /// The snapshot to publish and its record; `None` if nothing changed.
    pub(super) fn finish(&mut self) -> Result<(Option<Made>, ChangeCounts)> {
        self.settle()?;
        self.cancel.check()?;
        self.snapshot.check_shards()?;
        let record = std::mem::take(&mut self.record);
        // Without what this transaction fetched from other shards.
        let next = || self.snapshot.for_new_query().into_owned();
        let made = self.begun.then(|| (next(), record));
        Ok((made, self.outcome))
    }
}

/// Generator of unused labels for blank nodes.
pub(super) struct LabelGenerator {
    /// Random prefix, which no text written before contains.
    prefix: String,
    next: u64,
}

impl LabelGenerator {
    pub(super) fn new() -> Self {
        // A random number in hexadecimal digits that begins with a letter.
        let random = oxrdf::BlankNode::default();
        let mut prefix = random.as_str().to_owned();
        prefix.truncate(16);
        prefix.push('x');
        Self { prefix, next: 0 }
    }

    /// Appends the canonical bytes of a blank node that the snapshot does not have, and that no other call has
    /// returned. The dictionaries of other shards are not asked: the 64 random bits of the prefix have to suffice.
    pub(super) fn push(&mut self, snapshot: &Snapshot, out: &mut Vec<u8>) {
        let from = out.len();
        let mut label = String::with_capacity(32);
        loop {
            label.clear();
            // Writing to a String cannot fail.
            let _ = write!(label, "{}{:x}", self.prefix, self.next);
            self.next += 1;
            jindou_model::term::push_blank(&label, out);
            let known = match snapshot.as_sharded() {
                Some(_) => snapshot.tail().lookup(&out[from..]),
                None => snapshot.lookup(&out[from..]),
            };
            if known.is_none() {
                return;
            }
            out.truncate(from);
        }
    }

    /// A number for the labels of a document's blank nodes ([`jindou_parse::SourcesBuilder::documents_from`]).
    pub(super) fn document(&mut self) -> u64 {
        let digits = self.prefix.get(..16).unwrap_or_default();
        self.next += 1;
        u64::from_str_radix(digits, 16)
            .unwrap_or(0)
            .wrapping_add(self.next)
    }
}

/// Bytes taken from a budget, released on drop.
struct TransactionCharge {
    budget: MemoryBudget,
    held: u64,
}

impl TransactionCharge {
    fn new(budget: &MemoryBudget) -> Self {
        Self {
            budget: budget.clone(),
            held: 0,
        }
    }

    fn set(&mut self, bytes: u64) -> Result<()> {
        let want = bytes.next_multiple_of(STEP);
        if want > self.held {
            self.budget.charge(want - self.held)?;
        } else {
            self.budget.release(self.held - want);
        }
        self.held = want;
        Ok(())
    }
}

impl Drop for TransactionCharge {
    fn drop(&mut self) {
        self.budget.release(self.held);
    }
}
