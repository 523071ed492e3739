//! REPLACE, match by match: a result that grows too long ends the query while it is made.

use super::code::Code;
use super::machine::{Machine, Maybe, Row};
use super::val::{Text, Val};
use crate::explore::Run;
use jindou_model::Result;
use regex::Regex;

/// Matches between two looks at the clock.
const CHECK: usize = 1 << 12;

/// `REPLACE(text, pattern, replacement, flags)`.
pub(crate) struct Replace {
    pub text: Code,
    pub pattern: Pattern,
    pub replacement: Code,
}

pub(crate) enum Pattern {
    Fixed(Box<Regex>),
    /// Pattern and flags.
    Computed(Code, Code),
}

impl Machine {
    pub(super) fn replace(
        &mut self,
        run: &Run<'_>,
        replace: &Replace,
        at: Row<'_>,
    ) -> Result<Maybe> {
        let computed;
        let regex = match &replace.pattern {
            Pattern::Fixed(regex) => &**regex,
            Pattern::Computed(pattern, flags) => {
                let Some((pattern, flags)) = self.pattern(run, pattern, flags, at)? else {
                    return Ok(None);
                };
                let mut patterns = std::mem::take(&mut self.patterns);
                let regex = match &mut patterns {
                    Some(p) => p.get(self.str(pattern), self.str(flags)),
                    None => Ok(None),
                }
                .map(|r| r.cloned());
                self.patterns = patterns;
                match regex? {
                    Some(regex) => {
                        computed = regex;
                        &computed
                    }
                    None => return Ok(None),
                }
            }
        };
        let text = match self.eval(run, &replace.text, at)? {
            Some(v) => self.as_text(run, v),
            None => None,
        };
        let (Some(text), Some(template)) = (text, self.plain(run, &replace.replacement, at)?)
        else {
            return Ok(None);
        };
        // A match's text comes in at most so often.
        let copies = template.bytes().filter(|b| *b == b'$').count();
        let from = self.str(text.text).to_owned();
        let (mut end, mut part) = (0, String::new());
        let start = self.arena.len() as u32;
        for (i, found) in regex.captures_iter(&from).enumerate() {
            if i % CHECK == 0 {
                run.check()?;
            }
            let Some(whole) = found.get(0) else { continue };
            let before = from.get(end..whole.start()).unwrap_or("");
            let most = template
                .len()
                .saturating_add(copies.saturating_mul(whole.len()));
            self.room(before.len().saturating_add(most))?;
            part.clear();
            found.expand(&template, &mut part);
            self.arena.extend_from_slice(before.as_bytes());
            self.arena.extend_from_slice(part.as_bytes());
            end = whole.end();
        }
        let rest = from.get(end..).unwrap_or("");
        self.room(rest.len())?;
        self.arena.extend_from_slice(rest.as_bytes());
        let end = self.arena.len() as u32;
        let result = super::val::Span { start, end };
        Ok(Some(Val::Text(Text {
            text: result,
            lang: text.lang,
        })))
    }

    /// The text of a plain string; `None` for anything else.
    fn plain(&mut self, run: &Run<'_>, code: &Code, at: Row<'_>) -> Result<Option<String>> {
        let text = match self.eval(run, code, at)? {
            Some(v) => self.as_text(run, v),
            None => None,
        };
        Ok(text
            .filter(|t| t.lang.is_none())
            .map(|t| self.str(t.text).to_owned()))
    }
}
