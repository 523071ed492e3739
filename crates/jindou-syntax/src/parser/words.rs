//! Messages for words and characters that are not part of SPARQL.

use super::fault::shortened;
use super::{Parser, RuleHalt};
use crate::advice::{FaultPlace, TAGGED_PREDICATE, extension_of_word, foreign, nearest};
use crate::keyword::Keyword as K;
use crate::lexer::{BadToken, Token, TokenKind};
use jindou_model::diagnostic::{Diagnostic, DiagnosticKind as D};
use std::ops::Range;

/// Characters that are not part of SPARQL, with a message, a remedy, and the text that replaces the character.
#[rustfmt::skip]
static CHARACTERS: &[(&str, &str, &str, &str)] = &[
    ("“”„«»″", "{c} is not a quotation mark in SPARQL", "write \"", "\""),
    ("‘’‚′`", "{c} is not a quotation mark in SPARQL", "write '", "'"),
    ("&", "SPARQL writes 'and' as &&", "write &&", "&&"),
    ("$", "a variable's name must follow its $ directly", "write $name or ?name", ""),
    ("@", "a language tag must follow its @ directly", "write \"text\"@en", ""),
    ("%", "% is only allowed in prefixed names, before two hexadecimal digits",
        "SPARQL has no remainder operator: write ?a - ?b * FLOOR(?a / ?b)", ""),
    ("\\", "a backslash is only allowed in strings, and before punctuation in prefixed names", "", ""),
    ("\u{a0}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\u{200a}\u{200b}\u{202f}\u{3000}",
        "this is not an ordinary space", "write a plain space", " "),
    ("–—−", "{c} is not a minus sign in SPARQL", "write -", "-"),
    ("≤", "write <=", "write <=", "<="),
    ("≥", "write >=", "write >=", ">="),
    ("≠", "write !=", "write !=", "!="),
];

/// HTML entities of characters that SPARQL uses, without their ampersand.
const ENTITIES: &[(&str, &str)] = &[
    ("lt;", "<"),
    ("gt;", ">"),
    ("amp;", "&"),
    ("quot;", "\""),
    ("#39;", "'"),
    ("nbsp;", " "),
];

/// If the word consists of a keyword that is allowed here and another keyword, both with a space between them.
fn keywords_apart(word: &str, place: FaultPlace) -> Option<String> {
    place.keywords().iter().find_map(|keyword| {
        let (first, rest) = word.split_at_checked(keyword.text().len())?;
        let are_keywords = first.eq_ignore_ascii_case(keyword.text())
            && K::from_word(rest.as_bytes()) != K::Unknown;
        are_keywords.then(|| format!("{} {}", keyword.text(), rest.to_ascii_uppercase()))
    })
}

impl Parser<'_, '_> {
    /// The message for a token with which an extension of another engine begins.
    pub(super) fn advised_extension(
        &mut self,
        token: Token,
        place: FaultPlace,
    ) -> Option<Diagnostic> {
        let text = self.slice(token);
        let extension = match token.kind {
            TokenKind::Language if place == FaultPlace::Object && self.behind == token.start => {
                &TAGGED_PREDICATE
            }
            TokenKind::Word(_) => extension_of_word(text, place)?,
            _ => return None,
        };
        // OPTION without a bracket is a misspelt OPTIONAL.
        let is_option = text.eq_ignore_ascii_case("OPTION");
        if is_option && self.ahead().kind != TokenKind::OpenParen {
            return None;
        }
        Some(self.extension(token.range(), extension))
    }

    /// The message for a word that is not allowed here.
    pub(super) fn advised_word(
        &mut self,
        token: Token,
        word: K,
        place: FaultPlace,
    ) -> Option<Diagnostic> {
        let text = self.slice(token);
        if let Some((message, remedy)) = foreign(text, place) {
            let d = self.diagnostic(token.range(), D::NotSparql, message.to_owned());
            return Some(if remedy.contains([' ', '?']) {
                d.suggest(remedy)
            } else {
                self.with(d, format!("write {remedy}"), token.range(), remedy)
            });
        }
        if word != K::Unknown {
            return None;
        }
        let meant = nearest(text, place.keywords().iter().map(|k| k.text()))
            .map(str::to_owned)
            .or_else(|| keywords_apart(text, place));
        if let Some(meant) = meant {
            let message = format!("unknown keyword {}", shortened(text));
            let d = self.diagnostic(token.range(), D::UnknownWord, message);
            return Some(self.with(d, format!("did you mean {meant}?"), token.range(), meant));
        }
        let calls = matches!(
            place,
            FaultPlace::Operand
                | FaultPlace::Filter
                | FaultPlace::Projection
                | FaultPlace::Having
                | FaultPlace::OrderCondition
                | FaultPlace::GroupCondition
        );
        if calls && self.ahead().kind == TokenKind::OpenParen {
            return Some(self.unknown_function(token));
        }
        self.word_as_value(token, place)
    }

    fn unknown_function(&self, token: Token) -> Diagnostic {
        let text = self.slice(token);
        let message = format!("SPARQL has no function {}", shortened(text));
        let d = self.diagnostic(token.range(), D::UnknownWord, message);
        let functions = K::ALL
            .iter()
            .filter(|k| super::calls::is_call(k.0))
            .map(|k| k.1);
        let longer = |name: &&str| {
            name.len() >= 4
                && text
                    .get(..name.len())
                    .is_some_and(|t| t.eq_ignore_ascii_case(name))
        };
        let meant = nearest(text, functions.clone())
            .or_else(|| functions.filter(longer).max_by_key(|n| n.len()));
        match meant {
            Some(meant) => self.with(d, format!("did you mean {meant}?"), token.range(), meant),
            None => d.suggest("call other functions by their IRI"),
        }
    }

    /// The message for an unknown word where a term or an operator is expected.
    fn word_as_value(&self, token: Token, place: FaultPlace) -> Option<Diagnostic> {
        let shown = shortened(self.slice(token));
        let remedy = match place {
            FaultPlace::AfterOperand | FaultPlace::AfterArgument => {
                "values need an operator between them, like =, && or +".to_owned()
            }
            FaultPlace::Verb | FaultPlace::VerbOfTemplate | FaultPlace::Subject => {
                format!(
                    "write a prefix and a colon before it (ex:{shown}), or ?{shown} for a variable"
                )
            }
            FaultPlace::Operand
            | FaultPlace::Object
            | FaultPlace::DataValue
            | FaultPlace::Member
            | FaultPlace::PartOfTriple
            | FaultPlace::Filter => format!(
                "write \"{shown}\" for a string, ?{shown} for a variable, or a prefix and a colon before it (ex:{shown})"
            ),
            _ => return None,
        };
        let message = format!("{shown} alone is neither a value nor a keyword");
        Some(
            self.diagnostic(token.range(), D::UnknownWord, message)
                .suggest(remedy),
        )
    }

    /// True if the character directly before the token is `before`.
    pub(super) fn double(&self, token: Token, before: u8) -> bool {
        self.behind == token.start && self.text.as_bytes()[token.start - 1] == before
    }

    /// If the text from `<` to the next `>` of the line looks like an invalid IRI: its range, and the IRI without
    /// spaces.
    pub(super) fn looks_like_iri(&self, token: Token) -> Option<(Range<usize>, String)> {
        let rest = &self.text.as_bytes()[token.end..];
        let rest = &rest[..rest.len().min(2_000)];
        let end = rest.iter().position(|b| matches!(b, b'>' | b'\n' | b'<'))?;
        if rest[end] != b'>' {
            return None;
        }
        let inside = &self.text[token.end..token.end + end];
        let scheme = inside.split(':').next()?;
        let like = inside.contains(':')
            && !scheme.is_empty()
            && scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
        like.then(|| {
            (
                token.start..token.end + end + 1,
                format!("<{}>", inside.trim().replace(' ', "%20")),
            )
        })
    }

    pub(super) fn bad_token(&self, token: Token, bad: BadToken) -> Diagnostic {
        let text = self.slice(token);
        let new = |kind, message: String| self.diagnostic(token.range(), kind, message);
        match bad {
            BadToken::String => {
                let open = token.start..token.start + 1;
                let quote = &text[..1];
                self.diagnostic(open, D::String, format!("this {quote} begins a string that does not end on its line"))
                    .suggest(format!("write {quote} at its end, or {quote}{quote}{quote} around a string of several lines"))
            }
            BadToken::Label => new(
                D::BlankNode,
                "a blank node's label must follow _: directly".into(),
            )
            .suggest("write _:name, or []"),
            BadToken::Escape => new(D::Character, "this is not a valid escape".into()).suggest(
                "write \\u and four, or \\U and eight hexadecimal digits, in a string or an IRI",
            ),
            BadToken::Character => self.bad_character(token),
        }
    }

    fn bad_character(&self, token: Token) -> Diagnostic {
        let rest = &self.text[token.end..];
        let entity = ENTITIES.iter().find(|(name, _)| rest.starts_with(name));
        let c = self.slice(token).chars().next().unwrap_or(' ');
        if c == '&'
            && let Some((name, sign)) = entity
        {
            let range = token.start..token.end + name.len();
            let message = format!("&{name} is HTML for {sign}");
            let d = self.diagnostic(range.clone(), D::Character, message);
            return self.with(d, format!("write {sign}"), range, *sign);
        }
        let new = |message| self.diagnostic(token.range(), D::Character, message);
        let Some((_, message, remedy, with)) = CHARACTERS.iter().find(|row| row.0.contains(c))
        else {
            return if c.is_control() {
                new("this is a control character".to_owned()).suggest("remove it")
            } else {
                new(format!("{c} is not a SPARQL symbol"))
            };
        };
        let d = new(message.replace("{c}", c.encode_utf8(&mut [0; 4])));
        match (*remedy, *with) {
            ("", _) => d,
            (remedy, "") => d.suggest(remedy),
            (remedy, with) => self.with(d, remedy, token.range(), with),
        }
    }

    /// The message for a call in SELECT without brackets around it and a name: `SELECT COUNT(?x)`.
    pub(super) fn bare_call(&self, token: Token) -> Diagnostic {
        let word = self.slice(token);
        let mut lexer = self.lexer.clone();
        lexer.go_on_from(token.end);
        let (mut depth, mut end, mut variable) = (0usize, None, None);
        for _ in 0..100 {
            let t = lexer.next();
            match t.kind {
                TokenKind::OpenParen => depth += 1,
                TokenKind::CloseParen => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        end = Some(t.end);
                        break;
                    }
                }
                TokenKind::Variable => variable = variable.or(Some(t)),
                TokenKind::OpenBrace | TokenKind::End => break,
                _ => {}
            }
        }
        let end = end.unwrap_or(token.end);
        let d = self.diagnostic(
            token.start..end,
            D::Aggregate,
            "an expression in SELECT needs brackets and a name".into(),
        );
        // The name that follows the call, or a generated one.
        let named = lexer.next();
        let (range, name) = if named.kind == TokenKind::Word(K::As) {
            let name = lexer.next();
            (
                token.start..name.end,
                self.slice(name).trim_start_matches(['?', '$']).to_owned(),
            )
        } else {
            let of = variable.map_or("all", |v| &self.text[v.start + 1..v.end]);
            (
                token.start..end,
                format!("{}_{of}", word.to_ascii_lowercase()),
            )
        };
        let with = format!("({} AS ?{name})", &self.text[token.start..end]);
        let shown = shortened(&with);
        self.with(d, format!("write {shown}"), range, with)
    }

    /// Reports that there is no dot between two triples.
    pub(super) fn missing_dot(&mut self) -> RuleHalt {
        let token = self.token;
        let at = self.behind;
        if token.kind == TokenKind::Minus && at == token.start {
            return self.unexpected(FaultPlace::AfterTriples);
        }
        let d = self.diagnostic(
            token.range(),
            D::MissingDot,
            format!(
                "{} begins a new triple, but the one before it does not end with a dot",
                self.said(token)
            ),
        );
        let d = self.with(d, "write a dot between them", at..at, " .");
        self.halt(d)
    }
}
