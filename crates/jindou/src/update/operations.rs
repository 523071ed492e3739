//! The operations of a request.

use super::UpdateOptions;
use super::documents::{self, GatheredQuads};
use super::graphs::{self, TargetGraphs};
use super::template::{self, TemplateQuads};
use super::transaction::Transaction;
use crate::blank_nodes;
use crate::runtime::{Computing, Settled};
use jindou_engine::{ExecOptions, QueryTerms, execute_streaming};
use jindou_model::{CancelToken, Error, Holder, Invariant, Result, Scope, term};
use jindou_plan::sparql::{
    BlankNode, GraphName, GraphPattern, GraphUpdateOperation as Op, GroundQuad, GroundQuadPattern,
    Quad, QuadPattern, Query, QueryDataset, Term, Variable,
};
use jindou_plan::{Parsed, PlanOptions, UpdateOperation, UpdateRequest, Weight};
use jindou_store::ChangeTerm;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Number of quads between two checks of the deadline and the memory budget.
const CHECK_EVERY: usize = 1 << 12;
/// Bytes of terms after which deadline and memory budget are checked as well.
const CHECK_EVERY_BYTES: usize = 8 << 20;

/// Documents of LOAD operations, by the operation's number in the request.
pub(super) type Loaded = FxHashMap<usize, Result<GatheredQuads>>;

/// Reads the documents of a request's LOADs before the transaction begins, so that a slow parser or server does not
/// delay other writers. A failure is reported when its operation is executed; unless that operation is SILENT, no
/// further documents are read.
pub(super) fn read_documents(
    request: &UpdateRequest,
    options: &Settled<'_, UpdateOptions>,
    cancel: &CancelToken,
) -> Loaded {
    let mut loaded = Loaded::default();
    for (number, operation) in request.operations.iter().enumerate() {
        let Op::Load {
            silent,
            source,
            destination,
        } = &operation.operation
        else {
            continue;
        };
        let into = match destination {
            GraphName::NamedNode(n) => Some(n.as_str()),
            GraphName::DefaultGraph => None,
        };
        let read = documents::load(source.as_str(), into, options, cancel);
        let failed = read.is_err() && !silent;
        loaded.insert(number, read);
        if failed {
            break;
        }
    }
    loaded
}

/// Executes a request's operations in order, each over the results of the previous ones.
///
/// # Errors
/// The error of the first operation that fails, with the operation's position in the request.
pub(super) fn run(
    request: &UpdateRequest,
    mut loaded: Loaded,
    options: &Settled<'_, UpdateOptions>,
    tx: &mut Transaction,
) -> Result<()> {
    let using = match &options.using {
        Some(choice) => Some(choice.dataset()?),
        None => None,
    };
    if using.is_some()
        && let Some(o) = request
            .operations
            .iter()
            .find(|o| matches!(&o.operation, Op::DeleteInsert { using, .. } if using.is_some()))
    {
        let (line, column) = o.at;
        return Err(Error::Query(format!(
            "error at {line}:{column}: the operation has USING or WITH, and the request also names a dataset; use only one of them"
        )));
    }
    let several = request.operations.len() > 1;
    for (number, operation) in request.operations.iter().enumerate() {
        let one = Evaluation {
            operation,
            request,
            options,
            using: using.as_ref(),
        };
        one.run(loaded.remove(&number), tx)
            .map_err(|e| if several { placed(e, operation.at) } else { e })?;
    }
    Ok(())
}

/// Adds an operation's position to an error.
fn placed(e: Error, (line, column): (usize, usize)) -> Error {
    let told = |m: &str| format!("operation at line {line}, column {column}: {m}");
    let at = |m: String| told(&m);
    match e {
        Error::Query(m) => Error::Query(at(m)),
        Error::Unsupported(m) => Error::Unsupported(at(m)),
        Error::Limit(m) => Error::Limit(m.told(told)),
        Error::Busy(m) => Error::Busy(m.told(told)),
        Error::Conflict(m) => Error::Conflict(at(m)),
        other => other,
    }
}

/// Adds the quads of a LOAD's document to the transaction. With `silent`, a document that could not be read is ignored.
fn load(silent: bool, loaded: Option<Result<GatheredQuads>>, tx: &mut Transaction) -> Result<()> {
    match loaded.invariant("each document of a LOAD was read") {
        Ok(quads) => quads.add_to(tx),
        Err(
            Error::Document { .. }
            | Error::Syntax { .. }
            | Error::Io { .. }
            | Error::Unsupported(_)
            | Error::Conflict(_),
        ) if silent => Ok(()),
        Err(e) => Err(e),
    }
}

struct Evaluation<'a> {
    operation: &'a UpdateOperation,
    request: &'a UpdateRequest,
    options: &'a Settled<'a, UpdateOptions>,
    using: Option<&'a QueryDataset>,
}

impl Evaluation<'_> {
    fn run(&self, loaded: Option<Result<GatheredQuads>>, tx: &mut Transaction) -> Result<()> {
        tx.cancel.check()?;
        if let Some(from) = &self.operation.copied_from
            && !graphs::graph_exists(&tx.current()?, &TargetGraphs::named(&from.graph))
        {
            // The standard allows an error here (
            // 3.2.3). Nothing is changed, because a misspelt graph name must not empty another graph.
            if from.silent {
                return Ok(());
            }
            return Err(Error::Conflict(format!(
                "the graph {} does not exist, so there is nothing to add, copy or move; with SILENT this is not an error and changes nothing",
                from.graph
            )));
        }
        match &self.operation.operation {
            Op::InsertData { data } => insert_data(data, tx),
            Op::DeleteData { data } => delete_data(data, tx),
            Op::DeleteInsert {
                delete,
                insert,
                using,
                pattern,
            } => self.delete_insert(delete, insert, using.as_ref(), pattern, tx),
            Op::Load { silent, .. } => load(*silent, loaded, tx),
            // The store has no empty graphs: a graph without quads does not exist, and clearing it is not an error (
            // 3.1.3).
            Op::Clear { graph, .. } | Op::Drop { graph, .. } => graphs::clear(tx, &graph.into()),
            Op::Create { silent, graph } => {
                if !silent && graphs::graph_exists(&tx.current()?, &TargetGraphs::named(graph)) {
                    return Err(Error::Conflict(format!(
                        "the graph {graph} already exists; CREATE SILENT ignores this"
                    )));
                }
                Ok(())
            }
        }
    }

    fn delete_insert(
        &self,
        delete: &[GroundQuadPattern],
        insert: &[QuadPattern],
        using: Option<&QueryDataset>,
        pattern: &Arc<GraphPattern>,
        tx: &mut Transaction,
    ) -> Result<()> {
        let snapshot = tx.current()?;
        let options = self.options;
        let whole = self.operation.whole_graph;
        let union_default = options
            .union_default
            .unwrap_or(snapshot.base().union_default());
        let plan_options = PlanOptions {
            union_default: union_default && !whole,
            functions: options.functions.clone(),
            ..PlanOptions::default()
        };
        let scope = Scope::new(Holder::Text, &options.memory, &tx.cancel);
        let ((delete, insert, variables, plan), _charge) = scope.make(|| {
            let mut variables: Vec<Variable> = Vec::new();
            let delete = TemplateQuads::to_delete(delete, &snapshot, &mut variables);
            let insert = TemplateQuads::to_insert(insert, &snapshot, &mut variables);
            let mut query = Query::Select {
                dataset: using.or(self.using.filter(|_| !whole)).cloned(),
                pattern: Arc::new(GraphPattern::Project {
                    inner: Arc::clone(pattern),
                    variables: variables.clone(),
                }),
                base_iri: self.request.base.clone(),
            };
            // Has no effect on a pattern without BNODE.
            blank_nodes::of_each_solution(&mut query);
            let query = Parsed::from_query(query)?;
            let plan = jindou_plan::plan(&query, &snapshot, &plan_options)?;
            Ok((delete, insert, variables, plan))
        })?;
        let exec = ExecOptions {
            threads: options.threads,
            cancel: tx.cancel.clone(),
            memory: options.memory.clone(),
            service: options.service.clone(),
            pool: Some(Arc::clone(options.pool)),
            ..ExecOptions::default()
        };
        // Start at once, without queueing for a slot: other updates wait for this one to end.
        let _place = match plan.weight {
            Weight::Light => Computing::light(),
            Weight::Heavy => Computing::at_once(options.runtime.workers()),
        };
        let terms = QueryTerms::new();
        let templates = template::Templates {
            delete: &delete,
            insert: &insert,
            variables: &variables,
        };
        let mut rows = template::TemplateRows::new(
            &templates,
            &plan.columns,
            &snapshot,
            &terms,
            &options.memory,
            tx,
        );
        execute_streaming(&plan, &snapshot, &exec, &terms, &mut rows)?;
        rows.finish()
    }
}

fn graph_name(name: &GraphName, to: &mut Vec<u8>) {
    if let GraphName::NamedNode(n) = name {
        term::push_iri(n.as_str(), to);
    }
}

/// Canonical bytes of a quad's four terms, concatenated; the graph is empty for the default graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Encoded {
    pub(super) bytes: Vec<u8>,
    pub(super) ends: [usize; 4],
}

impl Encoded {
    pub(super) fn terms(&self) -> ([ChangeTerm<'_>; 3], Option<ChangeTerm<'_>>) {
        let part = |i: usize| {
            let from = if i == 0 { 0 } else { self.ends[i - 1] };
            &self.bytes[from..self.ends[i]]
        };
        let graph = part(3);
        (
            [0, 1, 2].map(|i| ChangeTerm::Bytes(part(i))),
            (!graph.is_empty()).then_some(ChangeTerm::Bytes(graph)),
        )
    }
}

fn delete_data(data: &[GroundQuad], tx: &mut Transaction) -> Result<()> {
    let mut quad = Encoded::default();
    let mut bytes = 0;
    for (i, q) in data.iter().enumerate() {
        quad.bytes.clear();
        term::push_iri(q.subject.as_str(), &mut quad.bytes);
        quad.ends[0] = quad.bytes.len();
        term::push_iri(q.predicate.as_str(), &mut quad.bytes);
        quad.ends[1] = quad.bytes.len();
        q.object.push(&mut quad.bytes);
        quad.ends[2] = quad.bytes.len();
        graph_name(&q.graph_name, &mut quad.bytes);
        quad.ends[3] = quad.bytes.len();
        let ([s, p, o], g) = quad.terms();
        tx.changes.remove(s, p, o, g);
        bytes += quad.bytes.len();
        if i % CHECK_EVERY == CHECK_EVERY - 1 || bytes >= CHECK_EVERY_BYTES {
            bytes = 0;
            tx.check()?;
        }
    }
    Ok(())
}

fn insert_data(data: &[Quad], tx: &mut Transaction) -> Result<()> {
    let mut quad = Encoded::default();
    let mut bytes = 0;
    let mut blanks = FxHashMap::default();
    let snapshot = tx.unapplied().clone();
    for (i, q) in data.iter().enumerate() {
        quad.bytes.clear();
        let subject: Term = q.subject.clone().into();
        let mut fresh = |label: &BlankNode, out: &mut Vec<u8>| {
            let bytes = blanks.entry(label.clone()).or_insert_with(|| {
                let mut bytes = Vec::new();
                tx.labels.push(&snapshot, &mut bytes);
                bytes
            });
            out.extend_from_slice(bytes);
        };
        template::push_renamed(&subject, &mut fresh, &mut quad.bytes);
        quad.ends[0] = quad.bytes.len();
        term::push_iri(q.predicate.as_str(), &mut quad.bytes);
        quad.ends[1] = quad.bytes.len();
        template::push_renamed(&q.object, &mut fresh, &mut quad.bytes);
        quad.ends[2] = quad.bytes.len();
        graph_name(&q.graph_name, &mut quad.bytes);
        quad.ends[3] = quad.bytes.len();
        let ([s, p, o], g) = quad.terms();
        tx.changes.insert(s, p, o, g);
        bytes += quad.bytes.len();
        if i % CHECK_EVERY == CHECK_EVERY - 1 || bytes >= CHECK_EVERY_BYTES {
            bytes = 0;
            tx.check()?;
        }
    }
    Ok(())
}
