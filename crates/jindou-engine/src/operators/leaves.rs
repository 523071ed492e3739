//! Leaves whose rows exist before the pipeline runs: outer rows, rows of VALUES, answers of other endpoints (SERVICE).

use crate::batch::Batch;
use crate::compile::{LeafSource, OuterRows, PipelineBuilder};
use crate::explore::Halt;
use crate::row_buffer::RowBuffer;
use crate::tree::{common, with};
use jindou_model::term::Parts;
use jindou_model::{CancelToken, Error, FIRST_QUERY_ID, Holder, Invariant, Result, VertexId, term};
use jindou_plan::sparql::Canonical;
use jindou_plan::{Cell, Service, ServiceEndpoint, Slot, extension_of_iri, operator};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Bytes of a term in VALUES from which on its id is cached.
const LONG: usize = 1 << 12;

impl PipelineBuilder<'_, '_> {
    pub(super) fn outer_row(
        &mut self,
        outer: &operator::Outer,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        let slots = &outer.slots;
        match &self.outer {
            OuterRows::One => {
                let outer = self.exec.outer;
                let outer = outer.invariant("outer rows are read inside an apply");
                let there = common(slots, &outer.slots);
                let mut batch = Batch::new(there.len(), self.exec.ctx.budget);
                batch.ensure(1)?;
                batch.rows = 1;
                for (column, slot) in batch.columns.iter_mut().zip(&there) {
                    let at = outer.slots.iter().position(|s| s == slot);
                    let value = at.and_then(|at| outer.values.get(at));
                    if let (Some(c), Some(&v)) = (column.first_mut(), value) {
                        *c = v;
                    }
                }
                self.leaf(LeafSource::Whole(batch), node);
                Ok(there)
            }
            OuterRows::Many(there, number) => {
                let mut kept = common(slots, there);
                let columns = kept
                    .iter()
                    .filter_map(|s| there.iter().position(|t| t == s))
                    .collect();
                kept.push(*number);
                self.leaf(LeafSource::Outer(columns), node);
                Ok(kept)
            }
        }
    }

    pub(super) fn values(
        &mut self,
        values: &operator::Values,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        // If there are no rows, no leaf is added, and operators above add no stages: they may read slots that are
        // missing.
        if !values.rows.is_empty() {
            let held = self.held_values(values.slots.len(), &values.rows)?;
            self.leaf(LeafSource::RowBuffer(held), node);
        }
        Ok(values.slots.clone())
    }

    fn held_values(&self, width: usize, rows: &[Vec<Cell>]) -> Result<RowBuffer> {
        let ctx = &self.exec.ctx;
        let mut held = RowBuffer::new(width, ctx, Holder::Values);
        let mut batch = Batch::new(width, ctx.budget);
        // The parser shares the bytes of a term that the text repeats, so a long one is looked up only once, by its
        // address.
        let mut long: FxHashMap<*const u8, u32> = FxHashMap::default();
        let mut id_of = |t: &Canonical| {
            let resolve = || Ok(ctx.terms.resolve(ctx.vocabulary, t, ctx.budget)?.0);
            if t.len() < LONG {
                return resolve();
            }
            if let Some(known) = long.get(&t.as_ptr()) {
                return Ok(*known);
            }
            ctx.check()?;
            let id = resolve()?;
            long.insert(t.as_ptr(), id);
            Ok::<u32, Error>(id)
        };
        for part in rows.chunks(ctx.batch_rows) {
            ctx.check()?;
            batch.ensure(part.len())?;
            batch.rows = part.len();
            for (c, column) in batch.columns.iter_mut().enumerate() {
                for (o, row) in column.iter_mut().zip(part) {
                    *o = match row.get(c) {
                        None | Some(Cell::Unbound) => 0,
                        Some(Cell::Id(v)) => *v,
                        Some(Cell::Term(t)) => id_of(t)?,
                    };
                }
            }
            held.push(batch.view())?;
        }
        Ok(held)
    }

    /// The IRI of the endpoint that a SERVICE calls for the current outer row.
    fn endpoint<'s>(&self, service: &'s Service) -> Result<Cow<'s, str>> {
        let slot = match &service.endpoint {
            ServiceEndpoint::Iri(iri) => return Ok(Cow::Borrowed(iri.as_str())),
            ServiceEndpoint::Slot(slot) => slot,
        };
        let row = self.exec.outer;
        let row = row.invariant("SERVICE with a variable is in a correlated part");
        let at = row.slots.iter().position(|s| s == slot);
        let id = at
            .and_then(|at| row.values.get(at))
            .copied()
            .filter(|id| *id != 0)
            .ok_or_else(|| {
                Error::Query(
                    "SERVICE with a variable: a solution before it leaves the variable unbound"
                        .into(),
                )
            })?;
        let (ctx, mut bytes) = (&self.exec.ctx, vec![]);
        if id >= FIRST_QUERY_ID {
            ctx.terms.term(VertexId(id), &mut bytes);
        } else {
            ctx.vocabulary.term(VertexId(id), &mut bytes);
        }
        match term::parts(&bytes) {
            Some(Parts::Iri(iri)) => Ok(Cow::Owned(iri.to_owned())),
            _ => {
                let what = term::decode(&bytes).map_or("nothing".into(), |t| t.to_string());
                Err(Error::Query(format!(
                    "SERVICE with a variable: a solution before it binds the variable to {what}, which is not an IRI"
                )))
            }
        }
    }

    pub(super) fn service(&mut self, service: &Service, node: usize) -> Result<Vec<Slot>, Halt> {
        let (held, slots) = self.called(service)?;
        // Without rows there is no leaf, as in `values`.
        if held.rows() > 0 {
            self.leaf(LeafSource::RowBuffer(held), node);
        }
        Ok(slots)
    }

    fn called(&self, service: &Service) -> Result<(RowBuffer, Vec<Slot>)> {
        let ctx = &self.exec.ctx;
        let slots = with(vec![], service.slots.iter().map(|s| s.1));
        let call = || {
            let endpoint = &*self.endpoint(service)?;
            if let Some(extension) = extension_of_iri(endpoint) {
                let message = format!("{}; {}", extension.message(), extension.instead);
                return Err(Error::service(endpoint, message));
            }
            let Some(caller) = ctx.service else {
                return Err(Error::Service {
                    endpoint: endpoint.to_owned(),
                    message: "calls to other endpoints are not allowed here".into(),
                    allowed: false,
                });
            };
            let mut held = RowBuffer::new(slots.len(), ctx, Holder::Service);
            let mut batch = Batch::new(slots.len(), ctx.budget);
            batch.ensure(ctx.batch_rows)?;
            let names: Vec<&str> = service.slots.iter().map(|s| s.0.as_str()).collect();
            let cancel: &CancelToken = ctx.cancel;
            caller.call(endpoint, &service.query, &names, cancel, &mut |row| {
                let at = batch.rows;
                for ((_, slot), cell) in service.slots.iter().zip(row) {
                    let column = slots.iter().position(|s| s == slot);
                    if let Some(c) = column.and_then(|c| batch.columns.get_mut(c)) {
                        c[at] = match cell {
                            None => 0,
                            Some(t) => ctx.terms.resolve(ctx.vocabulary, t, ctx.budget)?.0,
                        };
                    }
                }
                batch.rows += 1;
                if batch.rows == ctx.batch_rows {
                    ctx.check()?;
                    held.push(batch.view())?;
                    batch.rows = 0;
                }
                Ok(())
            })?;
            held.push(batch.view())?;
            Ok(held)
        };
        match call() {
            Ok(held) => Ok((held, slots)),
            // Reaching the query's own limits is not a failure of the endpoint, so SILENT does not hide it.
            Err(
                e @ (Error::Cancelled
                | Error::Timeout(_)
                | Error::Limit(_)
                | Error::Busy(_)
                | Error::Internal(_)),
            ) => Err(e),
            Err(_) if service.silent => {
                let mut held = RowBuffer::new(0, ctx, Holder::Service);
                held.push(crate::batch::View {
                    columns: &[],
                    rows: 1,
                })?;
                Ok((held, vec![]))
            }
            Err(e) => Err(e),
        }
    }

    /// The id of an `xsd:boolean`.
    pub(super) fn boolean(&self, lexical: &str) -> Result<u32> {
        let ctx = &self.exec.ctx;
        let mut bytes = vec![term::BOOLEAN_TAG];
        bytes.extend_from_slice(lexical.as_bytes());
        Ok(ctx.terms.resolve(ctx.vocabulary, &bytes, ctx.budget)?.0)
    }
}
