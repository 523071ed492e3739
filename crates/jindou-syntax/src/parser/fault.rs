//! Recording of errors.

use super::{Parser, RuleHalt};
use crate::keyword::Keyword as K;
use crate::lexer::{BadToken, Token, TokenKind};
use crate::options::MOST_FAULTS;
use jindou_model::diagnostic::{Diagnostic, DiagnosticKind as D, place};
use std::ops::Range;

/// Longest quotation of the text in a message, in characters.
const SHOWN: usize = 40;

pub(super) fn shortened(text: &str) -> String {
    let mut out = String::new();
    for (n, c) in text.chars().enumerate() {
        if n == SHOWN {
            out.push('…');
            break;
        }
        if c.is_control() {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

impl<'t> Parser<'t, '_> {
    // --- recording ---

    pub(super) fn diagnostic(&self, range: Range<usize>, kind: D, message: String) -> Diagnostic {
        let range = self.source.range(range);
        // Errors that are not reported get no line and excerpt, which take time: a text may contain a million of them.
        if self.last_fault == Some(range.start) || self.faults.len() >= MOST_FAULTS {
            return Diagnostic::unplaced(range, kind, message);
        }
        Diagnostic::new(self.source.original, range, kind, message)
    }

    /// Records an error, unless the previous one was at the same position or there are too many.
    pub(super) fn fault(&mut self, d: Diagnostic) {
        if self.last_fault == Some(d.start) || self.faults.len() >= MOST_FAULTS {
            return;
        }
        self.last_fault = Some(d.start);
        self.faults.push(d);
    }

    /// Records an error with a remedy.
    pub(super) fn report(
        &mut self,
        range: Range<usize>,
        kind: D,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let d = self.diagnostic(range, kind, message.into());
        self.fault(d.suggest(remedy));
    }

    /// Records an error after which the current rule cannot continue.
    pub(super) fn halt(&mut self, d: Diagnostic) -> RuleHalt {
        self.fault(d);
        if self.faults.len() >= MOST_FAULTS {
            RuleHalt::Stop
        } else {
            RuleHalt::Fault
        }
    }

    /// The recorded errors, and the error of a limit that was exceeded, if any.
    pub(crate) fn outcome(self) -> (Vec<Diagnostic>, Option<jindou_model::Error>) {
        (self.faults, self.stopped)
    }

    pub(super) fn with(
        &self,
        d: Diagnostic,
        text: impl Into<String>,
        range: Range<usize>,
        with: impl Into<String>,
    ) -> Diagnostic {
        let range = self.source.range(range);
        d.replace(text, range, with)
    }

    /// A token as described in a message.
    pub(super) fn said(&self, token: Token) -> String {
        let text = shortened(self.slice(token));
        match token.kind {
            TokenKind::End => "the end of the text".into(),
            TokenKind::Iri => format!("the IRI {text}"),
            TokenKind::Prefixed => format!("the name {text}"),
            TokenKind::Namespace => format!("the prefix {text}"),
            TokenKind::Blank => format!("the blank node {text}"),
            TokenKind::Variable => format!("the variable {text}"),
            TokenKind::String => format!("the string {text}"),
            TokenKind::Language => format!("the language tag {text}"),
            kind if kind.is_number() => format!("the number {text}"),
            TokenKind::Word(K::Unknown) => format!("the word {text}"),
            TokenKind::A => "the word a".into(),
            TokenKind::Word(_) => text,
            TokenKind::Bad(BadToken::Character) => format!("the character {text}"),
            _ => format!("'{text}'"),
        }
    }

    pub(super) fn place_of(&self, token: Token) -> (u64, u64) {
        place(self.source.original, self.source.place(token.start))
    }
}

pub(super) fn comparison(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Equal
            | TokenKind::NotEqual
            | TokenKind::Less
            | TokenKind::LessOrEqual
            | TokenKind::Greater
            | TokenKind::GreaterOrEqual
            | TokenKind::Word(K::In | K::Not)
    )
}

pub(crate) fn begins_update(word: K) -> bool {
    matches!(
        word,
        K::Insert
            | K::Delete
            | K::Load
            | K::Clear
            | K::Create
            | K::Drop
            | K::Copy
            | K::Move
            | K::Add
            | K::With
    )
}
