//! Literals and numbers.

use super::intern::Suffix;
use super::{Parse, Parser};
use crate::advice::FaultPlace;
use crate::algebra::Literal;
use crate::lexer::{Token, TokenKind};
use jindou_model::{DiagnosticKind as D, term};
use oxilangtag::LanguageTag;
use oxrdf::vocab::xsd;
use std::borrow::Cow;

impl<'t> Parser<'t, '_> {
    /// Parses a string with its language tag or datatype, if any.
    pub(super) fn literal(&mut self) -> Parse<Literal> {
        let token = self.expect(TokenKind::String, FaultPlace::Operand)?;
        let mut language = None;
        let suffix = match self.kind() {
            TokenKind::DoubleCaret => {
                self.bump()?;
                Suffix::Datatype(self.expect_iri(FaultPlace::Datatype)?)
            }
            TokenKind::Language => {
                let token = self.bump()?;
                language = Some(token);
                Suffix::Language(self.slice(token))
            }
            _ => Suffix::Nothing,
        };
        let key = (self.slice(token), suffix);
        if let Some(known) = self.known_literal(&key) {
            return Ok(known);
        }
        let faults = self.faults.len();
        let value = self.string_of(token)?;
        let tag = match language {
            Some(token) => self.tag(token)?,
            None => String::new(),
        };
        if self.faults.len() > faults {
            return Ok(Literal::new_simple_literal(""));
        }
        let datatype = match &key.1 {
            Suffix::Datatype(iri) => Some(iri.clone()),
            Suffix::Nothing | Suffix::Language(_) => None,
        };
        let suffix = datatype.as_ref().map_or(tag.len(), |d| d.as_str().len());
        self.intern_literal(key, value.len() + suffix, |out| {
            if let Some(datatype) = &datatype {
                term::push_typed(&value, datatype.as_str(), out);
            } else if language.is_some() {
                term::push_lang(&value, &tag, out);
            } else {
                term::push_typed(&value, xsd::STRING.as_str(), out);
            }
        })
    }

    /// Parses a language tag; returns it in lower case, with its base direction.
    fn tag(&mut self, token: Token) -> Parse<String> {
        let tag = &self.text[token.start + 1..token.end];
        let (language, direction) = match tag.split_once("--") {
            Some((language, direction)) => (language, Some(direction)),
            None => (tag, None),
        };
        let direction = match direction {
            None => "",
            Some("ltr") => "--ltr",
            Some("rtl") => "--rtl",
            Some(other) => {
                let end = token.end;
                let message = format!("'{other}' is not a base direction");
                let remedy = "write --ltr (left to right) or --rtl (right to left)";
                self.report(end - other.len()..end, D::Language, message, remedy);
                ""
            }
        };
        self.room(language.len() + 16)?;
        let mut tag = match LanguageTag::parse(language.to_ascii_lowercase()) {
            Ok(language) => language.into_inner(),
            Err(why) => {
                let why = decapitalised(&why.to_string());
                let message = format!("@{language} is not a language tag: {why}");
                let remedy = "a language tag looks like @en or @pt-BR (BCP 47)";
                self.report(token.range(), D::Language, message, remedy);
                String::from("en")
            }
        };
        tag.push_str(direction);
        Ok(tag)
    }

    /// Parses a string; returns its content with escapes replaced.
    pub(super) fn string(&mut self, place: FaultPlace) -> Parse<String> {
        let token = self.expect(TokenKind::String, place)?;
        self.room(token.end - token.start)?;
        Ok(self.string_of(token)?.into_owned())
    }

    fn string_of(&mut self, token: Token) -> Parse<Cow<'t, str>> {
        let text = self.slice(token);
        let quotes = match &text.as_bytes()[..3.min(text.len())] {
            [a, b, c] if a == b && b == c && text.len() >= 6 => 3,
            _ => 1,
        };
        let inside = &text[quotes..text.len() - quotes];
        if memchr::memchr(b'\\', inside.as_bytes()).is_none() {
            return Ok(Cow::Borrowed(inside));
        }
        self.room(inside.len())?;
        Ok(Cow::Owned(self.unescaped(
            inside,
            token.start + quotes,
            true,
        )))
    }

    /// The text with its escapes replaced; `at` is its offset. Errors are recorded.
    pub(super) fn unescaped(&mut self, inside: &str, at: usize, all: bool) -> String {
        let mut out = String::with_capacity(inside.len());
        let mut done = 0;
        while let Some(n) = memchr::memchr(b'\\', &inside.as_bytes()[done..]) {
            let from = done + n;
            out.push_str(&inside[done..from]);
            let letter = inside[from + 1..].chars().next();
            let (c, len) = match letter {
                Some('t') if all => (Some('\t'), 2),
                Some('b') if all => (Some('\u{8}'), 2),
                Some('n') if all => (Some('\n'), 2),
                Some('r') if all => (Some('\r'), 2),
                Some('f') if all => (Some('\u{c}'), 2),
                Some(c @ ('"' | '\'' | '\\')) if all => (Some(c), 2),
                Some(u @ ('u' | 'U')) => {
                    let digits = if u == 'u' { 4 } else { 8 };
                    let c = inside
                        .get(from + 2..from + 2 + digits)
                        .filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
                        .and_then(|hex| u32::from_str_radix(hex, 16).ok())
                        .and_then(char::from_u32);
                    (c, 2 + if c.is_some() { digits } else { 0 })
                }
                Some(c) => (None, 1 + c.len_utf8()),
                None => (None, 1),
            };
            match c {
                Some(c) => out.push(c),
                None => self.bad_escape(at + from..at + from + len, letter),
            }
            done = from + len;
        }
        out.push_str(&inside[done..]);
        out
    }

    /// True if the next token is a sign directly before a number.
    pub(super) fn is_signed_number(&mut self) -> bool {
        let sign = self.token;
        let next = self.ahead();
        next.start == sign.end && next.kind.is_number()
    }

    pub(super) fn signed_number(&mut self) -> Parse<Literal> {
        let sign = self.bump()?;
        self.number(Some(sign))
    }

    /// Parses a number; `sign` is the token before it that belongs to it.
    pub(super) fn number(&mut self, sign: Option<Token>) -> Parse<Literal> {
        let token = self.bump()?;
        let from = sign.map_or(token.start, |s| s.start);
        let datatype = match token.kind {
            TokenKind::Integer => xsd::INTEGER,
            TokenKind::Decimal => xsd::DECIMAL,
            _ => xsd::DOUBLE,
        };
        let text = &self.text[from..token.end];
        let key = (text, Suffix::Nothing);
        if let Some(known) = self.known_literal(&key) {
            return Ok(known);
        }
        self.intern_literal(key, text.len(), |out| {
            term::push_typed(text, datatype.as_str(), out);
        })
    }
}

pub(super) fn decapitalised(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}
