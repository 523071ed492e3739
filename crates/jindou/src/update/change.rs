//! Changes as values: prepared without a lock, then evaluated over a snapshot, here or on the writer of a shared log.

use super::operations::{self, Loaded};
use super::transaction::Transaction;
use super::{GraphName, UpdateOptions, UpdateReport, graphs, target};
use crate::database::{Database, guarded};
use crate::runtime::Settled;
use jindou_model::prefixes::{PrefixChange, PrefixTable};
use jindou_model::{CancelToken, Charge, Result, Scope};
use jindou_parse::SkipReport;
use jindou_plan::{ParsedUpdate, SyntaxOptions, read_update, with_stack};
use jindou_store::{Changes, Snapshot};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A change to a store.
pub(crate) enum Change<'c> {
    /// A SPARQL Update request.
    Update(Cow<'c, str>),
    Quads(QuadChange<'c>),
    /// Removal of all quads of a graph.
    Clear(GraphName),
    SetPrefix(String, String),
    RemovePrefix(String),
}

/// Quads to insert, or to remove.
#[derive(Default)]
pub(crate) struct QuadChange<'c> {
    pub changes: Cow<'c, Changes>,
    /// If set, all earlier quads of this graph are removed first.
    pub replaced: Option<GraphName>,
    /// If set, the report says whether this graph had a quad before.
    pub reported_graph: Option<GraphName>,
    pub prefixes: Vec<PrefixChange>,
    /// Memory charge of the changes, until a transaction is charged for them.
    pub charge: Option<Charge>,
}

impl QuadChange<'_> {
    pub(super) fn run(self, tx: &mut Transaction) -> Result<()> {
        if let Some(graph) = self.reported_graph.as_ref().or(self.replaced.as_ref()) {
            tx.check_graph_exists(&graph.target()?);
        }
        if let Some(graph) = &self.replaced {
            graphs::clear(tx, &graph.target()?)?;
        }
        if !self.prefixes.is_empty() {
            tx.change_prefixes(self.prefixes)?;
        }
        match self.changes {
            Cow::Borrowed(changes) => tx.apply(changes),
            Cow::Owned(mut changes) => {
                // Removals and insertions are applied in one step, so that a quad that existed before and after counts
                // as neither added nor removed.
                changes.put_first(std::mem::take(&mut tx.changes));
                tx.changes = changes;
                drop(self.charge);
                tx.check()
            }
        }
    }
}

/// A change that is ready to be evaluated over a snapshot: its text is parsed, and its documents are read.
pub(crate) struct PreparedChange<'c> {
    step: Step<'c>,
    operations: usize,
    parse_time: Duration,
    skipped: Option<SkipReport>,
}

enum Step<'c> {
    Request(ReadRequest),
    Quads(QuadChange<'c>),
    Clear(GraphName),
    SetPrefix(String, String),
    RemovePrefix(String),
}

impl PreparedChange<'_> {
    /// Adds the parse time and the skipped statements to a report.
    pub(super) fn describe(&self, report: &mut UpdateReport) {
        report.parse_time = self.parse_time;
        report.skipped.clone_from(&self.skipped);
    }

    fn run(self, options: &Settled<'_, UpdateOptions>, tx: &mut Transaction) -> Result<()> {
        // Clearing a named graph that does not exist changes nothing, so its condition is not tested.
        let is_tested = match &self.step {
            Step::Clear(graph) => {
                tx.check_graph_exists(&graph.target()?) || *graph == GraphName::Default
            }
            _ => true,
        };
        if is_tested {
            tx.check_condition(options)?;
        }
        match self.step {
            Step::Request(request) => request.run(options, tx),
            Step::Quads(quads) => quads.run(tx),
            Step::Clear(graph) => graphs::clear(tx, &graph.target()?),
            Step::SetPrefix(name, iri) => Database::set_prefix_in(tx, &name, &iri),
            Step::RemovePrefix(name) => Database::remove_prefix_in(tx, &name),
        }
    }
}

/// The result of a change: the new snapshot and its log record (`made`, `None` if nothing changed), and the report.
pub(crate) struct Changed {
    pub(crate) made: Option<(Snapshot, Vec<u8>)>,
    pub(crate) report: UpdateReport,
}

/// A parsed request, with the documents of its LOADs, that is not executed yet.
pub(super) struct ReadRequest {
    parsed: ParsedUpdate,
    /// Holds the memory charge of the parsed operations.
    _scope: Scope,
    documents: Loaded,
    pub(super) parse_time: Duration,
}

impl ReadRequest {
    pub(super) fn operations(&self) -> usize {
        self.parsed.request.operations.len()
    }

    /// Statements that were skipped in the documents, in the order of the operations.
    fn skipped(&self) -> SkipReport {
        let mut all = SkipReport::default();
        for operation in 0..self.operations() {
            if let Some(Ok(read)) = self.documents.get(&operation) {
                all.add(read.skipped.clone());
            }
        }
        all
    }

    pub(super) fn run(
        self,
        options: &Settled<'_, UpdateOptions>,
        tx: &mut Transaction,
    ) -> Result<()> {
        let (parsed, documents) = (&self.parsed, self.documents);
        with_stack(parsed.depth, || {
            operations::run(&parsed.request, documents, options, tx)
        })?
    }
}

impl Database {
    /// Executes a change in one transaction.
    pub(crate) fn submit(
        &self,
        change: Change<'_>,
        options: &Settled<'_, UpdateOptions>,
        cancel: &CancelToken,
    ) -> Result<UpdateReport> {
        self.inner.check_writable()?;
        self.inner.sink.submit(self, change, options, cancel)
    }

    /// Parses a change's text and reads its documents, before the right to write is acquired, so that neither delays
    /// other writers.
    ///
    /// # Errors
    /// Errors in the text. A failure to read a document is reported when the change is evaluated.
    pub(crate) fn prepare_change<'c>(
        change: Change<'c>,
        options: &Settled<'_, UpdateOptions>,
        prefixes: &Arc<PrefixTable>,
        cancel: &CancelToken,
    ) -> Result<PreparedChange<'c>> {
        let step = match change {
            Change::Update(text) => {
                let request = Self::read_request(&text, options, prefixes, cancel)?;
                return Ok(PreparedChange {
                    operations: request.operations(),
                    parse_time: request.parse_time,
                    skipped: options.lenient.then(|| request.skipped()),
                    step: Step::Request(request),
                });
            }
            Change::Quads(quads) => Step::Quads(quads),
            Change::Clear(graph) => Step::Clear(graph),
            Change::SetPrefix(name, iri) => Step::SetPrefix(name, iri),
            Change::RemovePrefix(name) => Step::RemovePrefix(name),
        };
        Ok(PreparedChange {
            step,
            operations: 1,
            parse_time: Duration::ZERO,
            skipped: None,
        })
    }

    /// The quads that a change names itself, with terms as bytes; none of a change that derives them from the store.
    ///
    /// # Errors
    /// Those of the change.
    #[cfg(feature = "replicas")]
    pub(crate) fn named_quads(
        head: &Snapshot,
        change: Change<'_>,
        options: &Settled<'_, UpdateOptions>,
        cancel: &CancelToken,
    ) -> Result<Changes> {
        use jindou_plan::sparql::GraphUpdateOperation as Op;
        let text = match change {
            Change::Update(text) => text,
            Change::Quads(quads) => return Ok(quads.changes.into_owned()),
            Change::Clear(_) | Change::SetPrefix(..) | Change::RemovePrefix(_) => {
                return Ok(Changes::new());
            }
        };
        let (parsed, _scope) = Self::parse_request(&text, options, head.prefixes(), cancel)?;
        let mut operations = parsed.request.operations.iter();
        if !operations.all(|o| matches!(o.operation, Op::InsertData { .. } | Op::DeleteData { .. }))
        {
            return Ok(Changes::new());
        }
        let mut tx = Transaction::new(head, options, cancel);
        with_stack(parsed.depth, || {
            operations::run(&parsed.request, Loaded::default(), options, &mut tx)
        })??;
        Ok(tx.changes)
    }

    /// Evaluates a change over a snapshot.
    ///
    /// # Errors
    /// Those of the change.
    pub(crate) fn evaluate(
        &self,
        head: &Snapshot,
        change: PreparedChange<'_>,
        options: &Settled<'_, UpdateOptions>,
        cancel: &CancelToken,
    ) -> Result<Changed> {
        let begun = Instant::now();
        let mut report = UpdateReport {
            operations: change.operations,
            ..UpdateReport::default()
        };
        change.describe(&mut report);
        let mut tx = Transaction::new(head, options, cancel);
        // Errors in the store's files are detected here, before anything is written, because the record repeats what
        // was read from them.
        let made = self.inner.computed_from(head, || {
            change.run(options, &mut tx)?;
            let (made, counts) = tx.finish()?;
            (report.added, report.removed) = (counts.added, counts.removed);
            report.graph_was_there = tx.graph_was_there;
            let now = made.as_ref().map_or(head, |(snapshot, _)| snapshot);
            report.revision = options.revision_after(now)?;
            options.with_request_key(made, head, &report)
        })?;
        report.run_time = begun.elapsed();
        Ok(Changed { made, report })
    }

    pub(crate) fn parse_request(
        text: &str,
        options: &Settled<'_, UpdateOptions>,
        prefixes: &Arc<PrefixTable>,
        cancel: &CancelToken,
    ) -> Result<(ParsedUpdate, Scope)> {
        let syntax = SyntaxOptions {
            common_prefixes: options.common_prefixes,
            calls: Some(Arc::new(options.functions.clone())),
            prefixes: options.prefixes.clone(),
            table: options.store_prefixes.then(|| Arc::clone(prefixes)),
            ..SyntaxOptions::under(options.base.as_deref())
        };
        let scope = Scope::for_text(text.len(), &options.memory, cancel)?;
        let parsed = guarded(|| {
            scope.try_run(|| {
                let mut parsed = read_update(text, &syntax)?;
                if let Some(only) = &options.only {
                    let depth = parsed.depth;
                    with_stack(depth, || target::restrict(&mut parsed.request, only))??;
                }
                Ok(parsed)
            })
        })?;
        Ok((parsed, scope))
    }

    /// Parses a request and reads the documents of its LOADs.
    pub(super) fn read_request(
        text: &str,
        options: &Settled<'_, UpdateOptions>,
        prefixes: &Arc<PrefixTable>,
        cancel: &CancelToken,
    ) -> Result<ReadRequest> {
        let started = Instant::now();
        let (parsed, scope) = Self::parse_request(text, options, prefixes, cancel)?;
        let parse_time = started.elapsed();
        let documents =
            guarded(|| Ok(operations::read_documents(&parsed.request, options, cancel)))?;
        Ok(ReadRequest {
            parsed,
            _scope: scope,
            documents,
            parse_time,
        })
    }
}
