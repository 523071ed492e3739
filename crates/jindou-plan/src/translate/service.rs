//! SERVICE: rows that other endpoints give.

use super::*;

/// The variable of a SERVICE that asks whom the rows beside it name.
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
        "SERVICE {v} where nothing beside it in its group binds {v}; bind it there, with VALUES, BIND or a pattern"
    )
}

impl Translator<'_> {
    pub(super) fn service(
        &mut self,
        endpoint: Endpoint,
        inner: &GraphPattern,
        silent: bool,
        env: &mut Env,
    ) -> Node {
        let mut variables: Vec<Variable> = vec![];
        inner.on_in_scope_variable(|v| {
            if !variables.contains(v) {
                variables.push(v.clone());
            }
        });
        variables.sort();
        let slots = variables
            .iter()
            .map(|v| (v.as_str().to_owned(), self.variable(v, env)))
            .collect();
        let query = Query::Select {
            dataset: None,
            pattern: GraphPattern::Project {
                inner: Box::new(inner.clone()),
                variables,
            },
            base_iri: None,
        };
        Node::service(Service {
            endpoint,
            query: query.to_string(),
            slots,
            silent,
        })
    }

    /// Rows with those that the endpoint they name gives for them (SPARQL 1.1 Federated Query, section 4).
    pub(super) fn service_by_rows(
        &mut self,
        rows: Node,
        service: &GraphPattern,
        env: &mut Env,
        kind: ApplyKind,
    ) -> Result<Node, Reason> {
        let GraphPattern::Service {
            name: NamedNodePattern::Variable(v),
            inner,
            silent,
        } = service
        else {
            return Err("a part that is no SERVICE asks for rows".into());
        };
        let slot = self.variable(v, env);
        if !rows.possible.has(slot) {
            return Err(unbound_endpoint(v));
        }
        let body = self.service(Endpoint::Slot(slot), inner, *silent, env);
        Ok(rows.apply(body, kind))
    }
}
