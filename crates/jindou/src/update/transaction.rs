//! Collects the changes of a transaction and applies them to the next snapshot, within a memory budget.

use super::UpdateOptions;
use super::graphs::{TargetGraphs, graph_exists};
use crate::database::watching;
use crate::runtime::Settled;
use jindou_model::prefixes::PrefixChange;
use jindou_model::term::MAX_TRIPLE_NESTING;
use jindou_model::{CancelToken, Charge, Error, Holder, Resource, Result};
use jindou_store::{Changes, Snapshot};
use std::fmt::Write as _;

/// Temporary memory in bytes for applying one change: the sorted quad with its ids, its entries in two patches, and its
/// part of the record.
const APPLYING: u64 = 160;
/// Memory in bytes for each predicate with changes: its patches and its counts.
const PREDICATE: u64 = 900;
/// Copies of the terms' text, in addition to the one in the changes: in the dictionary, the record, and the log's
/// group.
const COPIES: u64 = 3;
/// Memory is charged in multiples of this many bytes.
const STEP: u64 = 1 << 16;

/// Estimated memory in bytes for applying these changes.
pub(super) fn applying(changes: &Changes) -> u64 {
    changes.len() as u64 * APPLYING
        + changes.predicates() as u64 * PREDICATE
        + changes.text_bytes() as u64 * COPIES
}

/// A transaction that is being evaluated. Dropping it changes nothing.
pub(crate) struct Transaction {
    snapshot: Snapshot,
    /// Changes that are recorded but not yet applied to the snapshot.
    pub(super) changes: Changes,
    /// Log record: the difference between the first and the current snapshot of the transaction.
    record: Vec<u8>,
    outcome: ChangeCounts,
    begun: bool,
    /// True if the graph that the update names had a quad before; `None` if the update does not ask.
    pub(super) graph_was_there: Option<bool>,
    pub(super) labels: LabelGenerator,
    pub(super) threads: usize,
    pub(super) cancel: CancelToken,
    charge: Charge,
}

/// The snapshot to publish and its log record.
type Made = (Snapshot, Vec<u8>);

/// A state of a transaction to which it can be rolled back. All recorded changes are applied in it.
pub(super) struct Savepoint {
    snapshot: Snapshot,
    /// Length of the log record in this state.
    record: usize,
    outcome: ChangeCounts,
    begun: bool,
}

impl Savepoint {
    /// Numbers of quads that were added and removed up to this state.
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
        // A snapshot of its own, so that failures to read other shards end this transaction and not later ones.
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
            charge: Charge::new(Holder::Rest, &options.memory),
        }
    }

    /// Applies all recorded changes, and returns the resulting snapshot.
    pub(super) fn current(&mut self) -> Result<Snapshot> {
        self.apply_pending()?;
        Ok(self.snapshot.clone())
    }

    /// The snapshot without the changes that are recorded but not yet applied.
    pub(crate) fn unapplied(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Determines whether the graph that the update names has a quad, for the report.
    pub(super) fn check_graph_exists(&mut self, target: &TargetGraphs) -> bool {
        let there = graph_exists(&self.snapshot, target);
        self.graph_was_there = Some(there);
        there
    }

    /// Ok if the update's precondition holds for the transaction's first snapshot.
    ///
    /// # Errors
    /// [`Error::Precondition`].
    pub(super) fn check_condition(&self, options: &UpdateOptions) -> Result<()> {
        match &options.condition {
            Some(condition) => condition.check(&self.snapshot),
            None => Ok(()),
        }
    }

    /// Charges memory for the changes and for applying them, and checks the deadline. Must be called regularly while
    /// changes are collected; a transaction that exceeds its budget fails here.
    pub(super) fn check(&mut self) -> Result<()> {
        self.check_for(0)
    }

    /// Like [`Self::check`], before `more` additional bytes are allocated.
    pub(super) fn check_for(&mut self, more: u64) -> Result<()> {
        self.cancel.check()?;
        let held = self.changes.bytes() as u64 + applying(&self.changes);
        self.hold(held + self.recorded() + more)
    }

    fn hold(&mut self, bytes: u64) -> Result<()> {
        self.charge.set(bytes.next_multiple_of(STEP))
    }

    /// Memory of the record and of the log's copy of it, in bytes.
    fn recorded(&self) -> u64 {
        2 * self.record.capacity() as u64
    }

    fn apply_pending(&mut self) -> Result<()> {
        if self.changes.is_empty() {
            return Ok(());
        }
        self.check()?;
        let changes = std::mem::take(&mut self.changes);
        self.apply_unchecked(&changes)
    }

    /// Applies changes that were collected by the caller.
    pub(super) fn apply(&mut self, changes: &Changes) -> Result<()> {
        self.apply_pending()?;
        self.hold(self.recorded() + applying(changes))?;
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
        // Changes without effect leave the snapshot and the record as they are.
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
        self.hold(self.recorded())
    }

    /// Changes prefixes. The new snapshot contains all prefix changes of the transaction so far.
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

    /// Creates a savepoint. All recorded changes must have been applied.
    pub(super) fn savepoint(&self) -> Savepoint {
        Savepoint {
            snapshot: self.snapshot.clone(),
            record: self.record.len(),
            outcome: self.outcome,
            begun: self.begun,
        }
    }

    /// Rolls back to a savepoint.
    pub(super) fn roll_back_to(&mut self, mark: Savepoint) {
        self.changes = Changes::new();
        self.snapshot = mark.snapshot.for_new_query().into_owned();
        self.record.truncate(mark.record);
        (self.outcome, self.begun) = (mark.outcome, mark.begun);
        // Lowers the charge, so it cannot fail.
        let _ = self.hold(self.recorded());
    }

    /// Applies all recorded changes to the snapshot. Returns the numbers of quads added and removed so far.
    pub(super) fn apply_all(&mut self) -> Result<ChangeCounts> {
        self.apply_pending()?;
        self.cancel.check()?;
        self.snapshot.check_shards()?;
        Ok(self.outcome)
    }

    /// Applies all recorded changes. Returns the snapshot to publish and its record (`None` if nothing changed), and
    /// the counts.
    pub(super) fn finish(&mut self) -> Result<(Option<Made>, ChangeCounts)> {
        let outcome = self.apply_all()?;
        let record = std::mem::take(&mut self.record);
        // A new snapshot, so that the published one does not keep the data that this transaction fetched from other
        // shards.
        let next = || self.snapshot.for_new_query().into_owned();
        let made = self.begun.then(|| (next(), record));
        Ok((made, outcome))
    }
}

/// Generator of unused blank node labels.
pub(super) struct LabelGenerator {
    /// Random prefix that no label in the store has.
    prefix: String,
    next: u64,
}

impl LabelGenerator {
    pub(super) fn new() -> Self {
        // The label of a new `BlankNode` is a random hexadecimal number that begins with a letter.
        let random = oxrdf::BlankNode::default();
        let mut prefix = random.as_str().to_owned();
        prefix.truncate(16);
        prefix.push('x');
        Self { prefix, next: 0 }
    }

    /// Appends the canonical bytes of a blank node that is neither in the snapshot nor was created by an earlier call.
    /// In a sharded store only the tail is checked; the prefix's 64 random bits make collisions with other terms
    /// improbable.
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

    /// A number for the blank node labels of one document ([`jindou_parse::SourcesBuilder::documents_from`]).
    pub(super) fn document(&mut self) -> u64 {
        let digits = self.prefix.get(..16).unwrap_or_default();
        self.next += 1;
        u64::from_str_radix(digits, 16)
            .unwrap_or(0)
            .wrapping_add(self.next)
    }
}
