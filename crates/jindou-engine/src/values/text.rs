//! Functions of strings, language tags and datatypes.

use super::code::{Call, Code};
use super::machine::{Machine, Maybe, Row};
use super::val::{Span, Text, Val};
use crate::explore::Run;
use jindou_model::Result;
use jindou_model::term::{self, Parts};
use jindou_values::Num;
use oxrdf::vocab::{rdf, xsd};

impl Machine {
    /// A simple or language-tagged string's text; `None` for other values.
    pub(super) fn as_text(&mut self, run: &Run<'_>, v: Val) -> Option<Text> {
        match v {
            Val::Text(t) => return Some(t),
            Val::Bool(_) | Val::Num(_) | Val::Time(_) | Val::Duration(_) => return None,
            Val::Id(_) | Val::Term(_) => self.canonical(run, v),
        }
        let held = std::mem::take(&mut self.term);
        let text = match term::parts(&held) {
            Some(Parts::String(s)) => Some(Text {
                text: self.push(s.as_bytes()),
                lang: None,
            }),
            Some(Parts::Lang(s, lang)) => {
                let lang = self.push(lang.as_bytes());
                Some(Text {
                    text: self.push(s.as_bytes()),
                    lang: Some(lang),
                })
            }
            _ => None,
        };
        self.term = held;
        text
    }

    /// The text of a simple string; `None` for other values.
    pub(super) fn simple(&mut self, run: &Run<'_>, v: Val) -> Option<Span> {
        self.as_text(run, v)
            .and_then(|t| t.lang.is_none().then_some(t.text))
    }

    /// Two strings of which the second has no language tag or the first's (SPARQL 1.1 §17.4.3.1.2).
    fn compatible(&mut self, run: &Run<'_>, a: Val, b: Val) -> Option<(Text, Text)> {
        let (a, b) = (self.as_text(run, a)?, self.as_text(run, b)?);
        let fits = match (a.lang, b.lang) {
            (_, None) => true,
            (Some(x), Some(y)) => self.bytes(x) == self.bytes(y),
            (None, Some(_)) => false,
        };
        fits.then_some((a, b))
    }

    pub(super) fn concat(&mut self, run: &Run<'_>, list: &[Code], at: Row<'_>) -> Result<Maybe> {
        let mut parts: Vec<Text> = Vec::with_capacity(list.len());
        for code in list {
            let Some(v) = self.eval(run, code, at)? else {
                return Ok(None);
            };
            let Some(t) = self.as_text(run, v) else {
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
                run.check()?;
            }
            self.room(to - from)?;
            self.arena.extend_from_within(from..to);
        }
        let text = Span {
            start,
            end: self.arena.len() as u32,
        };
        Ok(Some(Val::Text(Text { text, lang })))
    }

    /// Asks the query's memory for this many more bytes of the row's text.
    pub(super) fn room(&mut self, more: usize) -> Result<()> {
        let held = self.arena.len().saturating_add(more);
        if held > MOST {
            return Err(jindou_model::Error::limit(
                jindou_model::Resource::Memory,
                "an expression makes a string of more than 1 GiB",
            ));
        }
        if held > CHARGED && held > self.arena.capacity() {
            // Old and new live together while the arena grows.
            self.charge.set(held * 3)?;
        }
        Ok(())
    }

    /// After a step that made text of at most three times what it was made from: charges it, and looks at the clock if it was
    /// long.
    pub(super) fn grown(&mut self, run: &Run<'_>, before: usize) -> Result<()> {
        if self.arena.len() - before.min(self.arena.len()) > CHARGED {
            run.check()?;
            self.room(0)?;
            self.charge.set(self.arena.capacity() * 3)?;
        }
        Ok(())
    }

    /// All arguments of the call are there.
    pub(super) fn text_call(
        &mut self,
        run: &Run<'_>,
        call: Call,
        first: Val,
        second: Option<Val>,
        third: Option<Val>,
    ) -> Maybe {
        match call {
            Call::Str => self.str_of(run, first),
            Call::Lang => {
                self.canonical(run, first);
                let held = std::mem::take(&mut self.term);
                let lang = match term::parts(&held) {
                    Some(Parts::Lang(_, lang)) => {
                        Some(lang.split_once("--").map_or(lang, |(l, _)| l))
                    }
                    Some(Parts::String(_) | Parts::Coded(..) | Parts::Typed(..)) => Some(""),
                    _ => None,
                };
                let v = lang.map(|l| self.text(l.as_bytes(), None));
                self.term = held;
                v
            }
            Call::Part(n) => {
                self.canonical(run, first);
                let held = std::mem::take(&mut self.term);
                let v = match term::parts(&held) {
                    Some(Parts::Triple(parts)) => {
                        let part = parts[usize::from(n)];
                        Some(match run.vocabulary.lookup(part) {
                            Some(id) => Val::Id(id.0),
                            None => Val::Term(self.push(part)),
                        })
                    }
                    _ => None,
                };
                self.term = held;
                v
            }
            Call::Datatype => {
                self.canonical(run, first);
                let datatype = match term::parts(&self.term)? {
                    Parts::String(_) => xsd::STRING.as_str().to_owned(),
                    Parts::Lang(_, l) if l.contains("--") => {
                        rdf::DIR_LANG_STRING.as_str().to_owned()
                    }
                    Parts::Lang(..) => rdf::LANG_STRING.as_str().to_owned(),
                    Parts::Coded(_, code) => term::datatype_iri(code)?,
                    Parts::Typed(_, iri) => iri.to_owned(),
                    _ => return None,
                };
                let mut bytes = vec![];
                term::push_iri(&datatype, &mut bytes);
                Some(Val::Term(self.push(&bytes)))
            }
            Call::LangMatches => {
                let tag = self.simple(run, first)?;
                let range = self.simple(run, second?)?;
                Some(lang_matches(self.str(tag), self.str(range)).into())
            }
            Call::StrLen => {
                let t = self.as_text(run, first)?;
                let n = self.str(t.text).chars().count() as i64;
                Some(Val::Num(Num::Int(n)))
            }
            Call::Contains => {
                let (a, b) = self.compatible(run, first, second?)?;
                Some(self.str(a.text).contains(self.str(b.text)).into())
            }
            Call::StrStarts => {
                let (a, b) = self.compatible(run, first, second?)?;
                Some(self.bytes(a.text).starts_with(self.bytes(b.text)).into())
            }
            Call::StrEnds => {
                let (a, b) = self.compatible(run, first, second?)?;
                Some(self.bytes(a.text).ends_with(self.bytes(b.text)).into())
            }
            Call::StrBefore => {
                let (a, b) = self.compatible(run, first, second?)?;
                Some(Val::Text(match self.str(a.text).find(self.str(b.text)) {
                    Some(n) => Text {
                        text: Span {
                            start: a.text.start,
                            end: a.text.start + n as u32,
                        },
                        lang: a.lang,
                    },
                    None => EMPTY,
                }))
            }
            Call::StrAfter => {
                let (a, b) = self.compatible(run, first, second?)?;
                Some(Val::Text(match self.str(a.text).find(self.str(b.text)) {
                    Some(n) => Text {
                        text: Span {
                            start: a.text.start + n as u32 + (b.text.end - b.text.start),
                            end: a.text.end,
                        },
                        lang: a.lang,
                    },
                    None => EMPTY,
                }))
            }
            Call::SubStr => {
                let t = self.as_text(run, first)?;
                let start = self.integer(run, second?)?;
                let length = match third {
                    Some(v) => Some(self.integer(run, v)?),
                    None => None,
                };
                let (from, to) = substring(self.str(t.text), start, length)?;
                Some(Val::Text(Text {
                    text: Span {
                        start: t.text.start + from as u32,
                        end: t.text.start + to as u32,
                    },
                    lang: t.lang,
                }))
            }
            Call::UCase | Call::LCase => {
                let t = self.as_text(run, first)?;
                let text = self.str(t.text);
                let changed = if call == Call::UCase {
                    text.to_uppercase()
                } else {
                    text.to_lowercase()
                };
                Some(self.text(changed.as_bytes(), t.lang))
            }
            Call::LangDir => {
                self.canonical(run, first);
                let direction = match term::parts(&self.term)? {
                    Parts::Lang(_, tag) => tag.split_once("--").map_or("", |(_, d)| d),
                    Parts::String(_) | Parts::Coded(..) | Parts::Typed(..) => "",
                    _ => return None,
                };
                let direction = if direction.is_empty() {
                    ""
                } else if direction == "rtl" {
                    "rtl"
                } else {
                    "ltr"
                };
                Some(self.text(direction.as_bytes(), None))
            }
            Call::HasLang => Some((self.tag_of(run, first) == term::LANG).into()),
            Call::HasLangDir => {
                self.canonical(run, first);
                let directed = matches!(
                    term::parts(&self.term),
                    Some(Parts::Lang(_, tag)) if tag.contains("--")
                );
                Some(directed.into())
            }
            Call::IsTriple => Some((self.tag_of(run, first) == term::TRIPLE).into()),
            Call::Concat
            | Call::Abs
            | Call::Ceil
            | Call::Floor
            | Call::Round
            | Call::Time(_)
            | Call::Adjust
            | Call::Encode
            | Call::Hash(_)
            | Call::Make(_) => None,
        }
    }

    pub(super) fn str_of(&mut self, run: &Run<'_>, v: Val) -> Maybe {
        if let Val::Text(t) = v {
            return Some(Val::Text(Text {
                text: t.text,
                lang: None,
            }));
        }
        self.canonical(run, v);
        let held = std::mem::take(&mut self.term);
        let text = match term::parts(&held) {
            Some(
                Parts::Iri(s)
                | Parts::String(s)
                | Parts::Lang(s, _)
                | Parts::Coded(s, _)
                | Parts::Typed(s, _),
            ) => Some(self.text(s.as_bytes(), None)),
            _ => None,
        };
        self.term = held;
        text
    }
}

/// Text of a row beyond which the query's memory is asked for it.
const CHARGED: usize = 1 << 20;
/// Longest text of a row.
const MOST: usize = 1 << 30;

const EMPTY: Text = Text {
    text: Span { start: 0, end: 0 },
    lang: None,
};

/// Basic filtering of language tags (RFC 4647 §3.3.1).
fn lang_matches(tag: &str, range: &str) -> bool {
    if range == "*" {
        return !tag.is_empty();
    }
    let mut parts = tag.split('-');
    range
        .split('-')
        .all(|r| parts.next().is_some_and(|t| t.eq_ignore_ascii_case(r)))
}

/// Byte range of the characters from `start` (the first is 1), `length` of them.
fn substring(text: &str, start: i64, length: Option<i64>) -> Option<(usize, usize)> {
    let start = start.checked_sub(1)?;
    let end = match length {
        Some(l) => start.checked_add(l)?,
        None => i64::MAX,
    };
    let place = |n: i64| {
        let n = usize::try_from(n.max(0)).unwrap_or(usize::MAX);
        text.char_indices().nth(n).map_or(text.len(), |(at, _)| at)
    };
    let from = place(start);
    Some((from, place(end).max(from)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substrings_count_characters_from_one() {
        let sub = |s: &'static str, a, b| substring(s, a, b).map(|(x, y)| &s[x..y]);
        assert_eq!(sub("motor car", 6, None), Some(" car"));
        assert_eq!(sub("metadata", 4, Some(3)), Some("ada"));
        assert_eq!(sub("12345", 0, Some(3)), Some("12"));
        assert_eq!(sub("12345", 5, Some(-3)), Some(""));
        assert_eq!(sub("12345", -3, Some(5)), Some("1"));
        assert_eq!(sub("", 1, Some(3)), Some(""));
        assert_eq!(sub("aé日z", 2, Some(2)), Some("é日"));
    }

    #[test]
    fn language_ranges() {
        assert!(lang_matches("en-GB", "en"));
        assert!(lang_matches("en", "EN"));
        assert!(!lang_matches("en", "en-GB"));
        assert!(lang_matches("de", "*"));
        assert!(!lang_matches("", "*"));
        assert!(!lang_matches("", "en"));
    }
}
