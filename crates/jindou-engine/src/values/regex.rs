//! REGEX and REPLACE (XPath F&O 3.1 §5.6). A replacement is made match by match: a result that grows too long ends the query while
//! it is made.

use super::code::Code;
use super::machine::{Machine, Maybe, Row};
use super::val::{Span, Text, Val};
use crate::batch::Charge;
use crate::explore::Run;
use jindou_model::Result;
use regex::{Captures, Regex, RegexBuilder};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Matches between two looks at the clock.
const CHECK: usize = 1 << 12;
/// Memory that one pattern's automaton may take.
const REGEX_SIZE: usize = 1_000_000;
/// Compiled patterns that are kept; beyond, all are forgotten.
const PATTERNS: usize = 64;
/// What a compiled pattern is charged, beside its text: most take less.
const PATTERN_BYTES: usize = 1 << 15;

/// A pattern, and whether the replacement is meant literally (flag `q`).
pub(crate) struct Compiled {
    regex: Regex,
    literal: bool,
    /// It matches the empty text, so that REPLACE is an error (FORX0003).
    empty: bool,
}

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

/// Compiled patterns by text and flags; `None` for what is no pattern.
pub(crate) struct Patterns {
    known: FxHashMap<(String, String), Option<Arc<Compiled>>>,
    held: usize,
    charge: Charge,
}

impl Patterns {
    pub fn new(run: &Run<'_>) -> Self {
        Self {
            known: FxHashMap::default(),
            held: 0,
            charge: Charge::new(run.budget),
        }
    }

    fn get(&mut self, pattern: &str, flags: &str) -> Result<Option<Arc<Compiled>>> {
        let key = (pattern.to_owned(), flags.to_owned());
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        if self.known.len() >= PATTERNS {
            self.known.clear();
            self.held = 0;
        }
        self.held += PATTERN_BYTES + 2 * (pattern.len() + flags.len());
        self.charge.set(self.held)?;
        let compiled = compiled(pattern, flags).map(Arc::new);
        self.known.insert(key, compiled.clone());
        Ok(compiled)
    }
}

/// A pattern with SPARQL's flags; linear in the text whatever the pattern. `None` for what is no pattern.
pub(crate) fn compiled(pattern: &str, flags: &str) -> Option<Compiled> {
    let literal = flags.contains('q');
    let escaped;
    let pattern = if literal {
        escaped = regex::escape(pattern);
        &escaped
    } else {
        pattern
    };
    let mut b = RegexBuilder::new(pattern);
    b.size_limit(REGEX_SIZE);
    for flag in flags.chars() {
        match flag {
            'i' => b.case_insensitive(true),
            // Without meaning for a literal pattern.
            's' | 'm' | 'x' if literal => &mut b,
            's' => b.dot_matches_new_line(true),
            'm' => b.multi_line(true),
            'x' => b.ignore_whitespace(true),
            'q' => &mut b,
            _ => return None,
        };
    }
    let regex = b.build().ok()?;
    let empty = regex.is_match("");
    Some(Compiled {
        regex,
        literal,
        empty,
    })
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
    fn compiled<'p>(
        &mut self,
        run: &Run<'_>,
        pattern: &'p Pattern,
        at: Row<'_>,
        held: &'p mut Option<Arc<Compiled>>,
    ) -> Result<Option<&'p Compiled>> {
        let (pattern, flags) = match pattern {
            Pattern::Fixed(compiled) => return Ok(Some(&**compiled)),
            Pattern::Computed(pattern, flags) => (pattern, flags),
        };
        let Some(pattern) = self.plain(run, pattern, at)? else {
            return Ok(None);
        };
        let flags = match flags {
            Some(flags) => match self.plain(run, flags, at)? {
                Some(flags) => Some(flags),
                None => return Ok(None),
            },
            None => None,
        };
        // The arena stays as it is while the patterns are asked.
        let arena = std::mem::take(&mut self.arena);
        let text = |s: Span| {
            let bytes = arena.get(s.start as usize..s.end as usize).unwrap_or(&[]);
            std::str::from_utf8(bytes).unwrap_or("")
        };
        let found = self.patterns.get(text(pattern), flags.map_or("", text));
        self.arena = arena;
        *held = found?;
        Ok(held.as_deref())
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
        let mut held = None;
        let compiled = self.compiled(run, &regex.pattern, at, &mut held)?;
        Ok(compiled.map(|c| c.regex.is_match(self.str(text.text))))
    }

    pub(super) fn replace(
        &mut self,
        run: &Run<'_>,
        replace: &Replace,
        at: Row<'_>,
    ) -> Result<Maybe> {
        let mut held = None;
        let Some(compiled) = self.compiled(run, &replace.pattern, at, &mut held)? else {
            return Ok(None);
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
