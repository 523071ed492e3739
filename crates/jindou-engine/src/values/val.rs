//! Intermediate values of an expression, and the interface through which functions see the interpreter.

use super::machine::Interpreter;
use crate::eval::EvalContext;
use jindou_model::scope::worked;
use jindou_model::term::{self, Parts};
pub(crate) use jindou_values::functions::{ArenaSpan, ArenaText, Row, Val};
use jindou_values::{Duration, Num, Number, Temporal};

/// An interpreter at one row, for the functions of `jindou-values`.
pub(super) struct AtRow<'m, 'r, 'a> {
    pub machine: &'m mut Interpreter,
    pub ctx: &'r EvalContext<'a>,
}

impl Row for AtRow<'_, '_, '_> {
    #[inline]
    fn text(&mut self, v: Val) -> Option<ArenaText> {
        self.machine.as_text(self.ctx, v)
    }

    #[inline]
    fn bytes(&self, s: ArenaSpan) -> &[u8] {
        self.machine.bytes(s)
    }

    #[inline]
    fn str(&self, s: ArenaSpan) -> &str {
        self.machine.str(s)
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) -> ArenaSpan {
        self.machine.push(bytes)
    }

    #[inline]
    fn worked(&mut self, bytes: usize) -> bool {
        worked(bytes).map_err(|e| self.machine.fail(e)).is_ok()
    }

    #[inline]
    fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> ArenaSpan {
        self.machine.write(write)
    }

    #[inline]
    fn parts(
        &mut self,
        v: Val,
        f: impl FnOnce(&mut Self, Option<Parts<'_>>) -> Option<Val>,
    ) -> Option<Val> {
        self.machine.canonical(self.ctx, v);
        let held = self.machine.take_canonical();
        let value = f(self, term::parts(&held));
        self.machine.put_canonical(held);
        value
    }

    #[inline]
    fn term(&mut self, bytes: &[u8]) -> Val {
        match self.ctx.vocabulary.lookup(bytes) {
            Some(id) => Val::Id(id.0),
            None => Val::Term(self.machine.push(bytes)),
        }
    }

    #[inline]
    fn tag(&mut self, v: Val) -> u8 {
        self.machine.tag_of(self.ctx, v)
    }

    #[inline]
    fn integer(&mut self, v: Val) -> Option<i64> {
        self.machine.integer(self.ctx, v)
    }

    #[inline]
    fn each_number(
        &mut self,
        v: Val,
        small: impl FnOnce(Num) -> Option<Num>,
        any: impl FnOnce(&Number) -> Option<Number>,
    ) -> Option<Val> {
        self.machine.each_number(self.ctx, v, small, any)
    }

    #[inline]
    fn time(&mut self, v: Val) -> Option<Temporal> {
        self.machine.time(self.ctx, v)
    }

    #[inline]
    fn duration(&mut self, v: Val) -> Option<Duration> {
        self.machine.duration(self.ctx, v)
    }
}
