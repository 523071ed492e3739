//! Literals and numbers.

use super::{Parse, Parser};
use crate::advice::Place;
use crate::lexer::{Kind, Token};
use jindou_model::DiagnosticKind as D;
use oxilangtag::LanguageTag;
use oxrdf::BaseDirection;
use oxrdf::vocab::xsd;
use spargebra::term::Literal;

/// Bytes that a literal takes, without its text.
const LITERAL: usize = 120;

impl Parser<'_, '_> {
    /// Reads a string with its language or datatype.
    pub(super) fn literal(&mut self) -> Parse<Literal> {
        let value = self.string(Place::Operand)?;
        match self.kind() {
            Kind::DoubleCaret => {
                self.bump()?;
                match self.kind() {
                    Kind::Iri | Kind::Prefixed | Kind::Namespace => {
                        let datatype = self.iri()?;
                        Ok(Literal::new_typed_literal(value, datatype))
                    }
                    _ => Err(self.unexpected(Place::Datatype)),
                }
            }
            Kind::Language => {
                let token = self.bump()?;
                Ok(self.tagged(value, token))
            }
            _ => Ok(Literal::new_simple_literal(value)),
        }
    }

    fn tagged(&mut self, value: String, token: Token) -> Literal {
        let tag = &self.text[token.start + 1..token.end];
        let (language, direction) = match tag.split_once("--") {
            Some((language, direction)) => (language, Some(direction)),
            None => (tag, None),
        };
        let direction = match direction {
            None => None,
            Some("ltr") => Some(BaseDirection::Ltr),
            Some("rtl") => Some(BaseDirection::Rtl),
            Some(other) => {
                let end = token.end;
                let d = self
                    .diagnostic(
                        end - other.len()..end,
                        D::Language,
                        format!("'{other}' is no direction of writing"),
                    )
                    .suggest(
                        "a language's direction is --ltr (left to right) or --rtl (right to left)",
                    );
                self.fault(d);
                None
            }
        };
        self.spend(language.len() + 16);
        let language = match LanguageTag::parse(language.to_ascii_lowercase()) {
            Ok(language) => language.into_inner(),
            Err(why) => {
                let d = self
                    .diagnostic(
                        token.range(),
                        D::Language,
                        format!(
                            "@{language} is no language tag: {}",
                            decapitalised(&why.to_string())
                        ),
                    )
                    .suggest("a language tag looks like @en or @pt-BR (BCP 47)");
                self.fault(d);
                String::from("en")
            }
        };
        match direction {
            Some(d) => {
                Literal::new_directional_language_tagged_literal_unchecked(value, language, d)
            }
            None => Literal::new_language_tagged_literal_unchecked(value, language),
        }
    }

    /// Reads a string; without its quotes, and escapes replaced.
    pub(super) fn string(&mut self, place: Place) -> Parse<String> {
        let token = self.expect(Kind::String, place)?;
        self.spend(LITERAL + token.end - token.start);
        let text = self.slice(token);
        let quotes = match &text.as_bytes()[..3.min(text.len())] {
            [a, b, c] if a == b && b == c && text.len() >= 6 => 3,
            _ => 1,
        };
        let inside = &text[quotes..text.len() - quotes];
        if memchr::memchr(b'\\', inside.as_bytes()).is_none() {
            return Ok(inside.to_owned());
        }
        Ok(self.unescaped(inside, token.start + quotes, true))
    }

    /// The text with its escapes replaced; `at` is its place. Faults are written down.
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

    /// True at a sign with a number directly behind it.
    pub(super) fn is_signed_number(&mut self) -> bool {
        let sign = self.token;
        let next = self.ahead();
        next.start == sign.end && matches!(next.kind, Kind::Integer | Kind::Decimal | Kind::Double)
    }

    pub(super) fn signed_number(&mut self) -> Parse<Literal> {
        let sign = self.bump()?;
        self.number(Some(sign))
    }

    /// Reads a number, behind its sign.
    pub(super) fn number(&mut self, sign: Option<Token>) -> Parse<Literal> {
        let token = self.bump()?;
        let from = sign.map_or(token.start, |s| s.start);
        let datatype = match token.kind {
            Kind::Integer => xsd::INTEGER,
            Kind::Decimal => xsd::DECIMAL,
            _ => xsd::DOUBLE,
        };
        self.spend(LITERAL + 40 + token.end - from);
        Ok(Literal::new_typed_literal(
            &self.text[from..token.end],
            datatype,
        ))
    }
}

pub(super) fn decapitalised(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}
