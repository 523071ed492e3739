//! Changes as values, which are evaluated over any snapshot: those of a store with a shared log, whose changes may come from
//! other servers.

use super::transaction::Transaction;
use super::{GraphName, UpdateOptions, UpdateReport, graphs};
use crate::database::{Database, watching};
use jindou_model::prefixes::PrefixChange;
use jindou_model::{Error, Result};
use jindou_store::{Changes, Snapshot};
use std::time::Instant;

/// A change to a store.
pub(crate) enum Change {
    /// An update request.
    Update(String),
    /// Quads to insert, or to remove.
    Quads {
        changes: Changes,
        /// The graph whose previous content is deleted.
        replaced: Option<GraphName>,
        /// The graph whose existence is reported.
        watched: Option<GraphName>,
        prefixes: Vec<PrefixChange>,
    },
    /// All quads of a graph go.
    Clear(GraphName),
    SetPrefix(String, String),
    RemovePrefix(String),
    /// The record of a transaction that was evaluated over the snapshot of this number.
    Record {
        after: u64,
        record: Vec<u8>,
        added: u64,
        removed: u64,
    },
}

/// The result of a change: the next snapshot and its record, unless nothing changed.
pub(crate) struct Changed {
    pub(crate) made: Option<(Snapshot, Vec<u8>)>,
    pub(crate) report: UpdateReport,
}

impl Database {
    /// Evaluates a change over a snapshot.
    ///
    /// # Errors
    /// Those of the change.
    pub(crate) fn evaluate(
        &self,
        head: &Snapshot,
        change: Change,
        options: &UpdateOptions,
    ) -> Result<Changed> {
        let options = &self.inner.runtime.settle_update(options);
        let cancel = options.token();
        let begun = Instant::now();
        let mut report = UpdateReport {
            operations: 1,
            ..UpdateReport::default()
        };
        let mut read = None;
        match &change {
            Change::Update(text) => {
                let request = Self::read_request(text, options, head.prefixes(), &cancel)?;
                report.operations = request.operations();
                report.parse_time = begun.elapsed();
                report.skipped = options.lenient.then(|| request.skipped());
                read = Some(request);
            }
            Change::Record {
                after,
                record,
                added,
                removed,
            } => {
                let fits = head.number() == *after;
                let snapshot = fits.then(|| head.replay(record).ok()).flatten();
                let snapshot = snapshot.ok_or_else(|| {
                    Error::Conflict(
                        "the store was changed after the transaction had begun; nothing was changed: begin again".into(),
                    )
                })?;
                (report.added, report.removed) = (*added, *removed);
                let made = Some((snapshot, record.clone()));
                return Ok(Changed { made, report });
            }
            _ => {}
        }
        let mut tx = Transaction::new(head, options, &watching(cancel, head));
        let (made, counts) = self.inner.made_of(head, || {
            if !matches!(change, Change::Clear(_)) {
                tx.meets(options)?;
            }
            match change {
                Change::Update(_) | Change::Record { .. } => {
                    if let Some(read) = read {
                        read.run(options, &mut tx)?;
                    }
                }
                Change::Quads {
                    mut changes,
                    replaced,
                    watched,
                    prefixes,
                } => {
                    if let Some(graph) = watched.as_ref().or(replaced.as_ref()) {
                        tx.look_for(&graph.target()?);
                    }
                    if let Some(graph) = &replaced {
                        graphs::clear(&mut tx, &graph.target()?)?;
                    }
                    if !prefixes.is_empty() {
                        tx.change_prefixes(prefixes)?;
                    }
                    // With what goes, so that a quad that is there before and after counts as neither.
                    changes.put_first(std::mem::take(&mut tx.changes));
                    tx.apply(&changes)?;
                }
                Change::Clear(graph) => {
                    let target = graph.target()?;
                    if tx.look_for(&target) || graph == GraphName::Default {
                        tx.meets(options)?;
                    }
                    graphs::clear(&mut tx, &target)?;
                }
                Change::SetPrefix(name, iri) => Self::set_prefix_in(&mut tx, &name, &iri)?,
                Change::RemovePrefix(name) => Self::remove_prefix_in(&mut tx, &name)?,
            }
            tx.finish()
        })?;
        (report.added, report.removed) = (counts.added, counts.removed);
        report.graph_was_there = tx.graph_was_there;
        let now = made.as_ref().map_or(head, |(snapshot, _)| snapshot);
        report.revision = options.revision_after(now)?;
        report.run_time = begun.elapsed().saturating_sub(report.parse_time);
        Ok(Changed { made, report })
    }
}
