//! REGEX and REPLACE (XPath F&O 3.1 §5.6). The result of REPLACE is built match by match, so that the query ends as
//! soon as it is too long.

use super::code::{Call, Code};
use super::machine::{BatchRow, Interpreter, Maybe};
use super::patterns::{Patterns, Use, is_plain};
use super::val::{ArenaSpan, ArenaText, Val};
use crate::batch::OperatorCharge;
use crate::eval::EvalContext;
use crate::filter::{ERROR, FALSE, TRUE, ValueSource};
use jindou_model::scope::worked;
use jindou_model::term::{self, Parts};
use jindou_model::{MemoryBudget, Result};
use jindou_values::functions::Scalar;
use jindou_values::pattern::{self, MatcherScratch, PatternReplacement, ReplacementPart};
use jindou_values::simple_text;
use std::sync::Arc;

/// Work that is counted for each match, in addition to its text, in the unit of `worked`.
const MATCH: usize = 64;
/// The work counted for each byte of text grows with the size of the compiled pattern: by one for each multiple of this
/// many bytes.
const PROGRAM: usize = 1 << 12;

/// `REGEX(text, pattern, flags)`.
pub(crate) struct Matches {
    pub text: Code,
    pub pattern: RegexPattern,
}

impl Matches {
    /// If a constant pattern is matched with the text of a column's terms: the column and the pattern, and true for
    /// STR, which has a text for more terms.
    pub fn of_terms(&self) -> Option<(usize, bool, &pattern::Pattern)> {
        let (column, is_str) = match &self.text {
            Code::Var(ValueSource::Column(column)) => (*column, false),
            Code::Call(Call::Scalar(Scalar::Str), of) => match of[..] {
                [Code::Var(ValueSource::Column(column))] => (column, true),
                _ => return None,
            },
            _ => return None,
        };
        match &self.pattern {
            RegexPattern::Fixed(pattern) => Some((column, is_str, pattern)),
            RegexPattern::Computed(..) => None,
        }
    }
}

/// `REPLACE(text, pattern, replacement, flags)`.
pub(crate) struct Replace {
    pub text: Code,
    pub pattern: RegexPattern,
    pub replacement: Code,
}

pub(crate) enum RegexPattern {
    Fixed(Box<pattern::Pattern>),
    /// Pattern and flags differ from row to row. Each combination is compiled once.
    Computed(Code, Option<Code>),
}

/// Memory for searches with patterns that have back-references.
pub(crate) struct Searches {
    scratch: MatcherScratch,
    charge: OperatorCharge,
}

impl Searches {
    pub fn new(budget: &MemoryBudget) -> Self {
        Self {
            scratch: MatcherScratch::default(),
            charge: OperatorCharge::new(budget),
        }
    }

    fn is_match(
        &mut self,
        ctx: &EvalContext<'_>,
        pattern: &pattern::Pattern,
        text: &str,
    ) -> Result<bool> {
        let charge = &mut self.charge;
        let found = pattern.is_match(text, &mut self.scratch, &mut |bytes| {
            ctx.check()?;
            charge.set(bytes)
        })?;
        self.settle();
        Ok(found)
    }

    /// Reduces the charge to the memory that is kept after a search.
    fn settle(&mut self) {
        let kept = self.scratch.bytes();
        if self.charge.bytes() > kept as u64 {
            // This reduces the charge, so it cannot fail.
            _ = self.charge.set(kept);
        }
    }
}

impl Interpreter {
    /// The texts of a pattern and its flags in one row; `None` if one of them is not a plain string.
    fn texts(
        &mut self,
        ctx: &EvalContext<'_>,
        pattern: &Code,
        flags: Option<&Code>,
        at: BatchRow<'_>,
    ) -> Result<Option<(ArenaSpan, Option<ArenaSpan>)>> {
        let Some(pattern) = self.plain(ctx, pattern, at)? else {
            return Ok(None);
        };
        let Some(flags) = flags else {
            return Ok(Some((pattern, None)));
        };
        let flags = self.plain(ctx, flags, at)?;
        Ok(flags.map(|flags| (pattern, Some(flags))))
    }

    /// The compiled pattern with these texts, from the cache.
    fn kept(
        &mut self,
        ctx: &EvalContext<'_>,
        pattern: ArenaSpan,
        flags: Option<ArenaSpan>,
        of_use: Use,
    ) -> Result<Option<Arc<pattern::Pattern>>> {
        // Compiling a pattern takes as long as evaluating many rows.
        ctx.check()?;
        let mut patterns = match self.patterns.take() {
            Some(patterns) => patterns,
            None => Box::new(Patterns::new(ctx.budget)),
        };
        let flags = flags.map_or("", |f| self.str(f));
        let found = patterns
            .get(self.str(pattern), flags, of_use)
            .map(Option::<&_>::cloned);
        self.patterns = Some(patterns);
        found
    }

    pub(super) fn matches(
        &mut self,
        ctx: &EvalContext<'_>,
        regex: &Matches,
        at: BatchRow<'_>,
    ) -> Result<Option<bool>> {
        if let Some((column, is_str, pattern)) = regex.of_terms() {
            let id = at.id(ValueSource::Column(column));
            return Ok(match self.match_term(ctx, (pattern, is_str), id, None)? {
                ERROR => None,
                truth => Some(truth == TRUE),
            });
        }
        let text = match self.eval(ctx, &regex.text, at)? {
            Some(v) => self.as_text(ctx, v),
            None => None,
        };
        let Some(text) = text else { return Ok(None) };
        let (pattern, flags) = match &regex.pattern {
            RegexPattern::Fixed(c) => return self.is_match(ctx, c, text.text).map(Some),
            RegexPattern::Computed(pattern, flags) => {
                match self.texts(ctx, pattern, flags.as_ref(), at)? {
                    Some(texts) => texts,
                    None => return Ok(None),
                }
            }
        };
        if flags.is_none() && is_plain(self.str(pattern)) {
            return Ok(Some(self.str(text.text).contains(self.str(pattern))));
        }
        let compiled = self.kept(ctx, pattern, flags, Use::Match)?;
        compiled
            .map(|c| self.is_match(ctx, &c, text.text))
            .transpose()
    }

    /// Matches a pattern with the text of a term, as [`Matches::of_terms`] describes it; [`ERROR`] if the term has none.
    /// `bytes` are the term's canonical bytes, `None` for a term of the query.
    pub(super) fn match_term(
        &mut self,
        ctx: &EvalContext<'_>,
        (pattern, is_str): (&pattern::Pattern, bool),
        id: u32,
        bytes: Option<&[u8]>,
    ) -> Result<u8> {
        if id == 0 {
            return Ok(ERROR);
        }
        let bytes = match bytes {
            Some(bytes) => bytes,
            None => {
                self.load(ctx, id);
                self.settle(ctx)?;
                &self.term
            }
        };
        worked(bytes.len())?;
        let parts = term::parts(bytes);
        let text = match &parts {
            Some(Parts::String(s) | Parts::Lang(s, _)) => Some(*s),
            Some(Parts::Iri(s) | Parts::Coded(s, _) | Parts::Typed(s, _)) if is_str => Some(*s),
            parts => parts.as_ref().and_then(simple_text),
        };
        Ok(match text {
            None => ERROR,
            Some(text) => match self.searches.is_match(ctx, pattern, text)? {
                true => TRUE,
                false => FALSE,
            },
        })
    }

    fn is_match(
        &mut self,
        ctx: &EvalContext<'_>,
        pattern: &pattern::Pattern,
        text: ArenaSpan,
    ) -> Result<bool> {
        // The text of a damaged store may not be UTF-8.
        let bytes = &self.arena[text.start as usize..text.end as usize];
        let text = std::str::from_utf8(bytes).unwrap_or("");
        self.searches.is_match(ctx, pattern, text)
    }

    pub(super) fn replace(
        &mut self,
        ctx: &EvalContext<'_>,
        replace: &Replace,
        at: BatchRow<'_>,
    ) -> Result<Maybe> {
        let held;
        let compiled = match &replace.pattern {
            RegexPattern::Fixed(compiled) => &**compiled,
            RegexPattern::Computed(pattern, flags) => {
                let Some((pattern, flags)) = self.texts(ctx, pattern, flags.as_ref(), at)? else {
                    return Ok(None);
                };
                held = self.kept(ctx, pattern, flags, Use::Replace)?;
                match &held {
                    Some(compiled) => &**compiled,
                    None => return Ok(None),
                }
            }
        };
        let text = match self.eval(ctx, &replace.text, at)? {
            Some(v) => self.as_text(ctx, v),
            None => None,
        };
        let template = self.plain(ctx, &replace.replacement, at)?;
        let (Some(text), Some(template)) = (text, template) else {
            return Ok(None);
        };
        let template = self.str(template).to_owned();
        let Some(replacement) =
            PatternReplacement::new(&template, compiled.groups(), compiled.is_quoted())
        else {
            return Ok(None);
        };
        let from = self.str(text.text);
        self.copies.set(from.len() + template.len())?;
        let from = self.str(text.text).to_owned();
        let mut places = compiled.places(replacement.groups());
        let mut end = 0;
        let each_byte = 1 + compiled.bytes() / PROGRAM;
        let start = self.arena.len() as u32;
        loop {
            let charge = &mut self.searches.charge;
            let scratch = &mut self.searches.scratch;
            let more = compiled.find(&from, end, &mut places, scratch, &mut |bytes| {
                ctx.check()?;
                charge.set(bytes)
            })?;
            let Some(whole) = more.then(|| places.group(0)).flatten() else {
                break;
            };
            worked(MATCH + each_byte * (whole.1 - end))?;
            let before = &from[end..whole.0];
            let each = |p: &ReplacementPart| match *p {
                ReplacementPart::Text(from, to) => &template[from..to],
                ReplacementPart::Group(n) => {
                    let place = places.group(n);
                    place.map_or("", |(a, b)| &from[a..b])
                }
            };
            let long: usize = replacement.parts().iter().map(|p| each(p).len()).sum();
            self.room(before.len().saturating_add(long))?;
            self.arena.extend_from_slice(before.as_bytes());
            for part in replacement.parts() {
                self.arena.extend_from_slice(each(part).as_bytes());
            }
            end = whole.1;
        }
        self.searches.settle();
        let rest = &from[end..];
        self.room(rest.len())?;
        self.arena.extend_from_slice(rest.as_bytes());
        let end = self.arena.len() as u32;
        Ok(Some(Val::Text(ArenaText {
            text: ArenaSpan { start, end },
            lang: text.lang,
        })))
    }

    /// The text of a plain string; `None` for other values.
    fn plain(
        &mut self,
        ctx: &EvalContext<'_>,
        code: &Code,
        at: BatchRow<'_>,
    ) -> Result<Option<ArenaSpan>> {
        Ok(match self.eval(ctx, code, at)? {
            Some(v) => self.simple(ctx, v),
            None => None,
        })
    }
}
