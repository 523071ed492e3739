//! SERVICE: rows from other endpoints.

use super::*;
use rustc_hash::FxHashSet;
use std::fmt::Write;

/// Longest query that is sent to another endpoint, in bytes.
const MAX_TEXT: u64 = 64 << 20;

/// The variable of a SERVICE whose endpoint depends on the rows that it is joined with; `None` for other patterns.
pub(super) fn asks_rows(p: &GraphPattern) -> Option<&Variable> {
    match p {
        GraphPattern::Service {
            name: NamedNodePattern::Variable(v),
            ..
        } => Some(v),
        _ => None,
    }
}

pub(super) fn unbound_endpoint(v: &Variable) -> Reason {
    format!(
        "SERVICE {v} where nothing else in its group binds {v}; bind it there, with VALUES, BIND or a pattern"
    )
}

impl Translator {
    pub(super) fn service(
        &mut self,
        endpoint: ServiceEndpoint,
        inner: &Arc<GraphPattern>,
        silent: bool,
        env: &mut ScopeSlots,
    ) -> Result<LogicalNode, Reason> {
        let mut variables: FxHashSet<&Variable> = FxHashSet::default();
        inner.on_in_scope_variable(|v| {
            variables.insert(v);
        });
        let mut variables: Vec<Variable> = variables.into_iter().cloned().collect();
        variables.sort();
        let slots = variables
            .iter()
            .map(|v| (v.name().clone(), self.variable(v, env)))
            .collect();
        let query = Query::Select {
            dataset: None,
            pattern: Arc::new(GraphPattern::Project {
                inner: Arc::clone(inner),
                variables,
            }),
            base_iri: None,
        };
        // Shared terms are written out at each use, so the text may be much longer than the algebra.
        let len = text_len(&query, MAX_TEXT).ok_or_else(|| {
            format!(
                "a SERVICE whose query has more than {} MiB once its names are expanded; split the query",
                MAX_TEXT >> 20
            )
        })?;
        self.room(len as usize)?;
        let mut text = String::with_capacity(len as usize);
        write!(text, "{query}").map_err(|_| "a SERVICE that cannot be written")?;
        Ok(LogicalNode::service(Service {
            endpoint,
            query: text,
            slots,
            silent,
        }))
    }

    /// Joins each row with the rows of the endpoint that it names (SPARQL 1.1 Federated Query, section 4).
    pub(super) fn service_by_rows(
        &mut self,
        rows: LogicalNode,
        service: &GraphPattern,
        env: &mut ScopeSlots,
        kind: ApplyKind,
    ) -> Result<LogicalNode, Reason> {
        let GraphPattern::Service {
            name: NamedNodePattern::Variable(v),
            inner,
            silent,
        } = service
        else {
            return Err("a part that is not a SERVICE asks for rows".into());
        };
        let slot = self.variable(v, env);
        if !rows.possible.has(slot) {
            return if *silent {
                // Nothing binds the endpoint. That is an error, which SILENT turns into one solution without bindings.
                Ok(rows)
            } else {
                Err(unbound_endpoint(v))
            };
        }
        let body = self.service(ServiceEndpoint::Slot(slot), inner, *silent, env)?;
        Ok(rows.apply(body, kind))
    }
}
