//! REGEX and REPLACE (XPath F&O 3.1 §5.6). A replacement is made match by match: a result that grows too long ends the query while
//! it is made.

use super::code::Code;
use super::machine::{Machine, Maybe, Row};
use super::patterns::{Compiled, Patterns, is_plain};
use super::val::{Span, Text, Val};
use crate::explore::Run;
use jindou_model::Result;
use regex::Captures;
use std::sync::Arc;

/// Matches between two looks at the clock.
const CHECK: usize = 1 << 12;

/// `REGEX(text, pattern, flags)`.
pub(crate) struct Matches {
    pub text: Code,
    pub pattern: Pattern,
}

/// `REPLACE(text, pattern, replacement, flags)`.
pub(crate) struct Replace {
    pub text: Code,
    pub pattern: Pattern,
    pub replacement: Code,
}

pub(crate) enum Pattern {
    Fixed(Box<Compiled>),
    /// Pattern, and flags if there are any: each two are compiled once.
    Computed(Code, Option<Code>),
}

/// A part of a replacement.
enum Part {
    /// Bytes `from .. to` of it.
    Text(usize, usize),
    Group(usize),
}

/// The parts of a replacement: `$n` stands for a group and takes as many digits as there are groups for, `\` stands before `\` and
/// `$`. `None` for others (FORX0004).
fn parts(template: &str, groups: usize, literal: bool) -> Option<Vec<Part>> {
    if literal {
        return Some(vec![Part::Text(0, template.len())]);
    }
    let bytes = template.as_bytes();
    let (mut out, mut from, mut at) = (vec![], 0, 0);
    while let Some(&b) = bytes.get(at) {
        if b != b'\\' && b != b'$' {
            at += 1;
            continue;
        }
        if at > from {
            out.push(Part::Text(from, at));
        }
        let next = *bytes.get(at + 1)?;
        if b == b'\\' {
            if next != b'\\' && next != b'$' {
                return None;
            }
            // The text goes on with what the backslash stands before.
            from = at + 1;
            at += 2;
            continue;
        }
        let digit = |at: usize| {
            let d = bytes.get(at).filter(|b| b.is_ascii_digit())?;
            Some(usize::from(d - b'0'))
        };
        let mut group = digit(at + 1)?;
        at += 2;
        while let Some(d) = digit(at)
            && group * 10 + d <= groups
        {
            group = group * 10 + d;
            at += 1;
        }
        out.push(Part::Group(group));
        from = at;
    }
    if at > from {
        out.push(Part::Text(from, at));
    }
    Some(out)
}

impl Machine {
    /// The texts of a computed pattern and its flags; `None` if one of them is no plain string.
    fn texts(
        &mut self,
        run: &Run<'_>,
        pattern: &Code,
        flags: Option<&Code>,
        at: Row<'_>,
    ) -> Result<Option<(Span, Option<Span>)>> {
        let Some(pattern) = self.plain(run, pattern, at)? else {
            return Ok(None);
        };
        let Some(flags) = flags else {
            return Ok(Some((pattern, None)));
        };
        let flags = self.plain(run, flags, at)?;
        Ok(flags.map(|flags| (pattern, Some(flags))))
    }

    /// The compiled pattern of these texts.
    fn kept(
        &mut self,
        run: &Run<'_>,
        pattern: Span,
        flags: Option<Span>,
    ) -> Result<Option<Arc<Compiled>>> {
        // A new pattern takes as long to compile as many rows.
        run.check()?;
        let mut patterns = match self.patterns.take() {
            Some(patterns) => patterns,
            None => Box::new(Patterns::new(run.budget)),
        };
        let flags = flags.map_or("", |f| self.str(f));
        let found = patterns
            .get(self.str(pattern), flags)
            .map(Option::<&_>::cloned);
        self.patterns = Some(patterns);
        found
    }

    pub(super) fn matches(
        &mut self,
        run: &Run<'_>,
        regex: &Matches,
        at: Row<'_>,
    ) -> Result<Option<bool>> {
        let text = match self.eval(run, &regex.text, at)? {
            Some(v) => self.as_text(run, v),
            None => None,
        };
        let Some(text) = text else { return Ok(None) };
        let (pattern, flags) = match &regex.pattern {
            Pattern::Fixed(c) => return Ok(Some(c.regex.is_match(self.str(text.text)))),
            Pattern::Computed(pattern, flags) => {
                match self.texts(run, pattern, flags.as_ref(), at)? {
                    Some(texts) => texts,
                    None => return Ok(None),
                }
            }
        };
        if flags.is_none() && is_plain(self.str(pattern)) {
            return Ok(Some(self.str(text.text).contains(self.str(pattern))));
        }
        let compiled = self.kept(run, pattern, flags)?;
        Ok(compiled.map(|c| c.regex.is_match(self.str(text.text))))
    }

    pub(super) fn replace(
        &mut self,
        run: &Run<'_>,
        replace: &Replace,
        at: Row<'_>,
    ) -> Result<Maybe> {
        let held;
        let compiled = match &replace.pattern {
            Pattern::Fixed(compiled) => &**compiled,
            Pattern::Computed(pattern, flags) => {
                let Some((pattern, flags)) = self.texts(run, pattern, flags.as_ref(), at)? else {
                    return Ok(None);
                };
                held = self.kept(run, pattern, flags)?;
                match &held {
                    Some(compiled) => &**compiled,
                    None => return Ok(None),
                }
            }
        };
        let text = match self.eval(run, &replace.text, at)? {
            Some(v) => self.as_text(run, v),
            None => None,
        };
        let template = self.plain(run, &replace.replacement, at)?;
        let (Some(text), Some(template)) = (text, template) else {
            return Ok(None);
        };
        let template = self.str(template).to_owned();
        let groups = compiled.regex.captures_len() - 1;
        let Some(parts) = parts(&template, groups, compiled.literal) else {
            return Ok(None);
        };
        if compiled.empty {
            return Ok(None);
        }
        let from = self.str(text.text).to_owned();
        let mut end = 0;
        let start = self.arena.len() as u32;
        for (i, found) in compiled.regex.captures_iter(&from).enumerate() {
            if i % CHECK == 0 {
                run.check()?;
            }
            let Some(whole) = found.get(0) else { continue };
            let before = from.get(end..whole.start()).unwrap_or("");
            let each = |p: &Part| piece(p, &template, &found);
            let long: usize = parts.iter().map(|p| each(p).len()).sum();
            self.room(before.len().saturating_add(long))?;
            self.arena.extend_from_slice(before.as_bytes());
            for part in &parts {
                self.arena.extend_from_slice(each(part).as_bytes());
            }
            end = whole.end();
        }
        let rest = from.get(end..).unwrap_or("");
        self.room(rest.len())?;
        self.arena.extend_from_slice(rest.as_bytes());
        let end = self.arena.len() as u32;
        Ok(Some(Val::Text(Text {
            text: Span { start, end },
            lang: text.lang,
        })))
    }

    /// The text of a plain string; `None` for anything else.
    fn plain(&mut self, run: &Run<'_>, code: &Code, at: Row<'_>) -> Result<Option<Span>> {
        Ok(match self.eval(run, code, at)? {
            Some(v) => self.simple(run, v),
            None => None,
        })
    }
}

fn piece<'t>(part: &Part, template: &'t str, found: &Captures<'t>) -> &'t str {
    match part {
        Part::Text(from, to) => template.get(*from..*to).unwrap_or(""),
        Part::Group(n) => found.get(*n).map_or("", |m| m.as_str()),
    }
}
