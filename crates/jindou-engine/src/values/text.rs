//! The texts of strings, CONCAT, and the memory for texts.

use super::code::Code;
use super::machine::{BatchRow, Interpreter, Maybe};
use super::val::{ArenaSpan, ArenaText, Val};
use crate::eval::EvalContext;
use jindou_model::Result;
use jindou_model::term::{self, Parts};
use jindou_values::simple_text;

impl Interpreter {
    /// The text of a string with or without a language tag; `None` for other values.
    pub(super) fn as_text(&mut self, ctx: &EvalContext<'_>, v: Val) -> Option<ArenaText> {
        match v {
            Val::Text(t) => return Some(t),
            Val::Bool(_) | Val::Num(_) | Val::Time(_) | Val::Duration(_) => return None,
            Val::Id(_) | Val::Term(_) => self.canonical(ctx, v),
        }
        let held = std::mem::take(&mut self.term);
        let text = match term::parts(&held) {
            Some(Parts::Lang(s, lang)) => {
                let lang = self.push(lang.as_bytes());
                Some(ArenaText {
                    text: self.push(s.as_bytes()),
                    lang: Some(lang),
                })
            }
            parts => parts.as_ref().and_then(simple_text).map(|s| ArenaText {
                text: self.push(s.as_bytes()),
                lang: None,
            }),
        };
        self.term = held;
        text
    }

    /// The text of a string without a language tag; `None` for other values.
    pub(super) fn simple(&mut self, ctx: &EvalContext<'_>, v: Val) -> Option<ArenaSpan> {
        self.as_text(ctx, v)
            .and_then(|t| t.lang.is_none().then_some(t.text))
    }

    pub(super) fn concat(
        &mut self,
        ctx: &EvalContext<'_>,
        list: &[Code],
        at: BatchRow<'_>,
    ) -> Result<Maybe> {
        let mut parts: Vec<ArenaText> = Vec::with_capacity(list.len());
        for code in list {
            let Some(v) = self.eval(ctx, code, at)? else {
                return Ok(None);
            };
            let Some(t) = self.as_text(ctx, v) else {
                return Ok(None);
            };
            parts.push(t);
        }
        let lang = parts.first().and_then(|p| p.lang).filter(|&first| {
            parts
                .iter()
                .all(|p| p.lang.is_some_and(|l| self.bytes(l) == self.bytes(first)))
        });
        let start = self.arena.len() as u32;
        for p in parts {
            let (from, to) = (p.text.start as usize, p.text.end as usize);
            if to - from > CHARGED {
                ctx.check()?;
            }
            self.room(to - from)?;
            self.arena.extend_from_within(from..to);
        }
        let text = ArenaSpan {
            start,
            end: self.arena.len() as u32,
        };
        Ok(Some(Val::Text(ArenaText { text, lang })))
    }

    /// Charges this many more bytes of text in the row.
    pub(super) fn room(&mut self, more: usize) -> Result<()> {
        let held = self.arena.len().saturating_add(more);
        if held > MOST {
            return Err(jindou_model::Error::limit(
                jindou_model::Resource::Memory,
                "an expression makes a string of more than 1 GiB",
            ));
        }
        if held > CHARGED && held > self.arena.capacity() {
            // While the arena grows, the old and the new memory exist together.
            self.charge.set(held * 3)?;
        }
        Ok(())
    }

    /// Called after an operation whose result is at most three times as long as its input. If the result is long,
    /// charges it and checks the deadline.
    pub(super) fn grown(&mut self, ctx: &EvalContext<'_>, before: usize) -> Result<()> {
        if self.arena.len() - before.min(self.arena.len()) > CHARGED {
            ctx.check()?;
            self.room(0)?;
            self.charge.set(self.arena.capacity() * 3)?;
        }
        Ok(())
    }
}

/// Length in bytes from which on a row's text is charged.
const CHARGED: usize = 1 << 20;
/// Largest length in bytes of a row's text.
const MOST: usize = 1 << 30;
