//! Comparisons such as `?x < constant` that compute the values of terms, for terms that no index decides.

use super::{ERROR, FALSE, TRUE, ValueSource};
use crate::batch::View;
use crate::eval::EvalContext;
use crate::values::holds;
use jindou_model::scope::worked;
use jindou_model::{FIRST_QUERY_ID, Invariant, Result, VertexId};
use jindou_plan::Relation;
use jindou_values::{equal_values, order, value};

/// Number of rows between two checks of the deadline.
const CHECK: usize = 256;

pub(crate) struct IdComparison<'a> {
    value: ValueSource,
    relation: Relation,
    /// The constant's canonical bytes, and its value.
    constant: (&'a [u8], jindou_values::Value<'a>),
}

impl<'a> IdComparison<'a> {
    pub fn new(value: ValueSource, relation: Relation, bytes: &'a [u8]) -> Self {
        let constant = jindou_values::value(bytes).invariant("a plan's constant is a term");
        Self {
            value,
            relation,
            constant: (bytes, constant),
        }
    }

    fn truth(&self, ctx: &EvalContext<'_>, id: u32, term: &mut Vec<u8>) -> u8 {
        term.clear();
        let v = VertexId(id);
        if id >= FIRST_QUERY_ID {
            ctx.terms.term(v, term);
        } else {
            ctx.vocabulary.term(v, term);
        }
        let Some(own) = value(term) else {
            return ERROR;
        };
        let (bytes, constant) = &self.constant;
        let truth = match self.relation {
            Relation::Equal => equal_values(term, &own, bytes, constant),
            Relation::NotEqual => equal_values(term, &own, bytes, constant).map(|e| !e),
            relation => {
                order(&own, constant).map(|order| order.is_some_and(|o| holds(relation, o)))
            }
        };
        match truth {
            Some(true) => TRUE,
            Some(false) => FALSE,
            None => ERROR,
        }
    }

    /// As [`super::FilterNode::eval`]; `term` is a buffer for a term's bytes.
    pub fn eval(
        &self,
        ctx: &EvalContext<'_>,
        rows: View<'_>,
        from: usize,
        out: &mut [u8],
        term: &mut Vec<u8>,
    ) -> Result<()> {
        self.value.prefetch(ctx, rows, from, out);
        for (i, o) in out.iter_mut().enumerate() {
            if *o == TRUE {
                if i % CHECK == 0 {
                    ctx.check()?;
                }
                *o = self.truth(ctx, self.value.at(rows, from + i), term);
                worked(term.len())?;
            }
        }
        Ok(())
    }
}
