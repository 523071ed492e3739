//! Changes on their way to the next snapshot, within a memory budget.

use super::UpdateOptions;
use crate::runtime::Settled;
use jindou_model::prefixes::PrefixChange;
use jindou_model::{CancelToken, MemoryBudget, Result};
use jindou_store::{Changes, Snapshot};
use std::fmt::Write as _;

/// Bytes that applying takes for each change while it does: the quad sorted and looked up, its place in two patches, its record.
const APPLYING: u64 = 160;
/// Bytes that it takes for each predicate: its patches, its counts.
const PREDICATE: u64 = 900;
/// Memory is charged in steps of this size.
const STEP: u64 = 1 << 16;

/// Bytes that applying these changes takes.
pub(super) fn applying(changes: &Changes) -> u64 {
    changes.len() as u64 * APPLYING + changes.predicates() as u64 * PREDICATE
}

/// A transaction that is evaluated. Dropped, it changes nothing.
pub(crate) struct Transaction {
    snapshot: Snapshot,
    /// Asked for, and not in the snapshot yet.
    pub(super) changes: Changes,
    /// Of all that is in the snapshot and not in the one that the transaction began with.
    record: Vec<u8>,
    outcome: Outcome,
    begun: bool,
    pub(super) labels: Labels,
    pub(super) threads: usize,
    pub(super) cancel: CancelToken,
    charge: Charge,
}

/// A snapshot that is ready, and its record.
type Made = (Snapshot, Vec<u8>);

/// A state of a transaction, with all that was asked for applied.
pub(super) struct Mark {
    snapshot: Snapshot,
    /// Bytes of the record then.
    record: usize,
    outcome: Outcome,
    begun: bool,
}

impl Mark {
    /// Numbers of quads until then.
    pub(super) fn outcome(&self) -> Outcome {
        self.outcome
    }
}

/// Numbers of quads that a transaction added and removed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Outcome {
    pub(super) added: u64,
    pub(super) removed: u64,
}

impl Transaction {
    pub(super) fn new(
        head: &Snapshot,
        options: &Settled<'_, UpdateOptions>,
        cancel: &CancelToken,
    ) -> Self {
        Self {
            snapshot: head.clone(),
            changes: Changes::new(),
            record: Vec::new(),
            outcome: Outcome::default(),
            begun: false,
            labels: Labels::new(),
            threads: options.threads,
            cancel: cancel.clone(),
            charge: Charge::new(&options.memory),
        }
    }

    /// The snapshot with everything so far in it.
    pub(super) fn current(&mut self) -> Result<Snapshot> {
        self.settle()?;
        Ok(self.snapshot.clone())
    }

    /// The snapshot without the changes that are only asked for.
    pub(crate) fn unsettled(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Charges what the changes hold and will need to be applied, and looks at the clock. To be called now and then while
    /// changes are collected: a transaction that does not fit ends here.
    pub(super) fn check(&mut self) -> Result<()> {
        self.cancel.check()?;
        let held = self.changes.bytes() as u64 + applying(&self.changes);
        self.charge.set(held + self.record.capacity() as u64)
    }

    fn settle(&mut self) -> Result<()> {
        if self.changes.is_empty() {
            return Ok(());
        }
        self.check()?;
        let changes = std::mem::take(&mut self.changes);
        self.apply_unchecked(&changes)
    }

    /// Applies changes that something else collected.
    pub(super) fn apply(&mut self, changes: &Changes) -> Result<()> {
        self.settle()?;
        self.charge
            .set(self.record.capacity() as u64 + applying(changes))?;
        self.cancel.check()?;
        self.apply_unchecked(changes)
    }

    fn apply_unchecked(&mut self, changes: &Changes) -> Result<()> {
        let (threads, cancel) = (self.threads, &self.cancel);
        let mut applied = self
            .snapshot
            .apply_while(changes, threads, self.begun, cancel)?;
        // What changes nothing leaves no trace.
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
        self.charge.set(self.record.capacity() as u64)
    }

    /// Changes prefixes; those of the snapshot are of the transaction so far.
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

    /// A place to go back to. To be taken when nothing is asked for that is not in the snapshot.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            snapshot: self.snapshot.clone(),
            record: self.record.len(),
            outcome: self.outcome,
            begun: self.begun,
        }
    }

    /// Undoes everything since a mark.
    pub(super) fn back_to(&mut self, mark: Mark) {
        self.changes = Changes::new();
        self.snapshot = mark.snapshot;
        self.record.truncate(mark.record);
        (self.outcome, self.begun) = (mark.outcome, mark.begun);
        // Less than what was charged for it until now, so it is not a refusal.
        let _ = self.charge.set(self.record.capacity() as u64);
    }

    /// Puts everything that was asked for into the snapshot; gives the numbers so far.
    pub(super) fn settled(&mut self) -> Result<Outcome> {
        self.settle()?;
        self.cancel.check()?;
        Ok(self.outcome)
    }

    /// The snapshot to publish and its record; `None` when nothing changed.
    pub(super) fn finish(&mut self) -> Result<(Option<Made>, Outcome)> {
        self.settle()?;
        self.cancel.check()?;
        let record = std::mem::take(&mut self.record);
        let made = self.begun.then(|| (self.snapshot.clone(), record));
        Ok((made, self.outcome))
    }
}

/// Unused labels of blank nodes.
pub(super) struct Labels {
    /// Random: no text that anyone wrote before has it.
    prefix: String,
    next: u64,
}

impl Labels {
    pub(super) fn new() -> Self {
        // A random number in hexadecimal digits that begins with a letter.
        let random = oxrdf::BlankNode::default();
        let mut prefix = random.as_str().to_owned();
        prefix.truncate(16);
        prefix.push('x');
        Self { prefix, next: 0 }
    }

    /// Appends the canonical bytes of a blank node that the snapshot does not have, and no other call gave.
    pub(super) fn push(&mut self, snapshot: &Snapshot, out: &mut Vec<u8>) {
        let from = out.len();
        let mut label = String::with_capacity(32);
        loop {
            label.clear();
            // Writing to a String cannot fail.
            let _ = write!(label, "{}{:x}", self.prefix, self.next);
            self.next += 1;
            jindou_model::term::push_blank(&label, out);
            if snapshot.lookup(&out[from..]).is_none() {
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

/// Bytes taken from a budget, given back at the end.
struct Charge {
    budget: MemoryBudget,
    held: u64,
}

impl Charge {
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

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.release(self.held);
    }
}
