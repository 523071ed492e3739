//! Values while an expression is computed, and the machine at a row as functions see it.

use super::machine::Machine;
use crate::explore::Run;
use jindou_model::term::{self, Parts};
pub(crate) use jindou_values::functions::{Row, Span, Text, Val};
use jindou_values::{Duration, Num, Number, Temporal};

/// A machine at a row of a run.
pub(super) struct AtRow<'m, 'r, 'a> {
    pub machine: &'m mut Machine,
    pub run: &'r Run<'a>,
}

impl Row for AtRow<'_, '_, '_> {
    #[inline]
    fn text(&mut self, v: Val) -> Option<Text> {
        self.machine.as_text(self.run, v)
    }

    #[inline]
    fn bytes(&self, s: Span) -> &[u8] {
        self.machine.bytes(s)
    }

    #[inline]
    fn str(&self, s: Span) -> &str {
        self.machine.str(s)
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) -> Span {
        self.machine.push(bytes)
    }

    #[inline]
    fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Span {
        self.machine.write(write)
    }

    #[inline]
    fn parts(
        &mut self,
        v: Val,
        f: impl FnOnce(&mut Self, Option<Parts<'_>>) -> Option<Val>,
    ) -> Option<Val> {
        self.machine.canonical(self.run, v);
        let held = self.machine.take_canonical();
        let value = f(self, term::parts(&held));
        self.machine.put_canonical(held);
        value
    }

    #[inline]
    fn term(&mut self, bytes: &[u8]) -> Val {
        match self.run.vocabulary.lookup(bytes) {
            Some(id) => Val::Id(id.0),
            None => Val::Term(self.machine.push(bytes)),
        }
    }

    #[inline]
    fn tag(&mut self, v: Val) -> u8 {
        self.machine.tag_of(self.run, v)
    }

    #[inline]
    fn integer(&mut self, v: Val) -> Option<i64> {
        self.machine.integer(self.run, v)
    }

    #[inline]
    fn each_number(
        &mut self,
        v: Val,
        small: impl FnOnce(Num) -> Option<Num>,
        any: impl FnOnce(&Number) -> Option<Number>,
    ) -> Option<Val> {
        self.machine.each_number(self.run, v, small, any)
    }

    #[inline]
    fn time(&mut self, v: Val) -> Option<Temporal> {
        self.machine.time(self.run, v)
    }

    #[inline]
    fn duration(&mut self, v: Val) -> Option<Duration> {
        self.machine.duration(self.run, v)
    }
}
