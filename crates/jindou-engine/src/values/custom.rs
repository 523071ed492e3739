//! Functions that the application registered.

use super::code::Code;
use super::machine::{BatchRow, Interpreter, Maybe};
use super::val::Val;
use crate::eval::EvalContext;
use jindou_model::{Error, Result, term};
use jindou_plan::{Argument, Function, MAX_ARGUMENTS};
use oxrdf::Term;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A call of a registered function.
pub(crate) struct Custom {
    pub iri: String,
    pub function: Arc<dyn Function>,
    pub arguments: Vec<Code>,
}

impl Custom {
    /// Calls the function. If it panics, only the query fails.
    fn value(&self, arguments: &[Option<Argument<'_>>]) -> Result<Option<Term>> {
        catch_unwind(AssertUnwindSafe(|| self.function.call(arguments))).map_err(|panic| {
            let said = panic
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
                .unwrap_or("no reason given");
            Error::external(format!(
                "the registered function <{}> panicked: {said}",
                self.iri
            ))
        })
    }
}

impl Interpreter {
    /// Calls a registered function. Nothing is allocated here, only by the function itself.
    pub(super) fn custom(
        &mut self,
        ctx: &EvalContext<'_>,
        call: &Custom,
        at: BatchRow<'_>,
    ) -> Result<Maybe> {
        let before = self.arena.len();
        let mut spans = [None; MAX_ARGUMENTS];
        for (span, code) in spans.iter_mut().zip(&call.arguments) {
            if let Some(v) = self.eval(ctx, code, at)? {
                self.canonical(ctx, v);
                let Val::Term(s) = self.held_term() else {
                    continue;
                };
                *span = Some(s);
            }
        }
        let mut arguments = [None; MAX_ARGUMENTS];
        for (argument, span) in arguments.iter_mut().zip(spans) {
            *argument = span.map(|s| Argument::new(self.bytes(s)));
        }
        let given = call.arguments.len().min(MAX_ARGUMENTS);
        let Some(value) = call.value(&arguments[..given])? else {
            return Ok(None);
        };
        self.term.clear();
        term::push_term(&value, &mut self.term);
        if matches!(value, Term::Triple(_)) && term::decode(&self.term).is_none() {
            // The function returned a triple term that is nested deeper than terms may be.
            return Ok(None);
        }
        let value = self.held_term();
        self.grown(ctx, before)?;
        Ok(Some(value))
    }
}
