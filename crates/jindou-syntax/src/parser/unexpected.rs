//! Errors for tokens that are not allowed at their position.

use super::calls::is_call;
use super::{Parser, RuleHalt};
use crate::advice::FaultPlace;
use crate::keyword::Keyword as K;
use crate::lexer::{Token, TokenKind};
use jindou_model::diagnostic::{Diagnostic, DiagnosticKind as D};
use std::ops::Range;

impl Parser<'_, '_> {
    /// Reports that the next token is not allowed here.
    pub(super) fn unexpected(&mut self, place: FaultPlace) -> RuleHalt {
        let token = self.token;
        let expected = place.expected();
        let found = self.said(token);
        let message = format!("found {found}, expected {expected}");
        let d = self.diagnostic(token.range(), D::Unexpected, message);
        let mut d = self.advised(d, token, place);
        d.found.get_or_insert(found);
        d.expected.get_or_insert(expected);
        self.halt(d)
    }

    /// Reports that the closing bracket is missing.
    pub(super) fn unclosed(&mut self, kind: TokenKind, place: FaultPlace) -> RuleHalt {
        let token = self.token;
        let other = matches!(
            token.kind,
            TokenKind::End
                | TokenKind::CloseBrace
                | TokenKind::CloseParen
                | TokenKind::CloseBracket
        ) || matches!(token.kind, TokenKind::Word(_)) && self.begins_other(token);
        let cascade =
            token.kind == TokenKind::End && self.faults.iter().any(|f| f.kind != D::Bracket);
        if cascade {
            return RuleHalt::Fault;
        }
        if let Some(open) = self.open.last()
            && other
            && token.kind != kind
        {
            let bracket = self.slice(open);
            let close = match kind {
                TokenKind::CloseBrace => "}",
                TokenKind::CloseParen => ")",
                TokenKind::CloseBracket => "]",
                TokenKind::CloseAnnotation => "|}",
                _ => ">>",
            };
            let (line, column) = self.place_of(token);
            let before = match token.kind {
                TokenKind::End => "the text ends".to_owned(),
                _ => format!("{} is at line {line}, column {column}", self.said(token)),
            };
            let d = self.diagnostic(
                open.range(),
                D::Bracket,
                format!("this {bracket} is never closed: {before} before its {close}"),
            );
            let at = self.behind;
            let d = self.with(d, format!("write {close} where it ends"), at..at, close);
            return self.halt(d);
        }
        self.unexpected(place)
    }

    fn begins_other(&self, token: Token) -> bool {
        matches!(
            token.kind,
            TokenKind::Word(
                K::Filter
                    | K::Optional
                    | K::Bind
                    | K::Values
                    | K::Graph
                    | K::Minus
                    | K::Service
                    | K::Union
                    | K::Where
                    | K::Order
                    | K::Group
                    | K::Limit
                    | K::Having
            )
        )
    }

    /// The message `d`, or a more specific one if something is known about the token at this position.
    fn advised(&mut self, d: Diagnostic, token: Token, place: FaultPlace) -> Diagnostic {
        if let Some(d) = self
            .advised_comment()
            .or_else(|| self.advised_extension(token, place))
        {
            return d;
        }
        match (token.kind, place) {
            (TokenKind::Bad(bad), _) => return self.bad_token(token, bad),
            (TokenKind::Less, _) => {
                if let Some((range, with)) = self.looks_like_iri(token) {
                    return self.faulty_iri(range, with);
                }
            }
            (TokenKind::Word(word), FaultPlace::Projection | FaultPlace::Where)
                if is_call(word) =>
            {
                return self.bare_call(token);
            }
            _ => {}
        }
        if let Some(d) = self.advised_token(token, place) {
            return d;
        }
        match token.kind {
            TokenKind::Word(word) => self.advised_word(token, word, place).unwrap_or(d),
            _ => d,
        }
    }

    /// The message for a `#` directly after a name, which begins a comment there.
    fn advised_comment(&self) -> Option<Diagnostic> {
        let at = self.behind;
        let is_glued = self.text.as_bytes().get(at) == Some(&b'#')
            && self.text[..at].ends_with(|c: char| c.is_alphanumeric() || c == ':');
        is_glued.then(|| {
            let d = self.diagnostic(
                at..at + 1,
                D::Character,
                "everything after this # is a comment".into(),
            );
            self.with(
                d,
                "write \\# within a name, or the whole IRI between < and >",
                at..at + 1,
                "\\#",
            )
        })
    }

    fn faulty_iri(&mut self, range: Range<usize>, with: String) -> Diagnostic {
        // Skips the tokens inside the IRI, which would be reported as further errors.
        self.ahead = self.ahead.take().filter(|t| t.start >= range.end);
        self.lexer.skip_to(range.end);
        let d = self.diagnostic(
            range.clone(),
            D::Iri,
            "an IRI cannot contain spaces, quotes or braces".into(),
        );
        self.with(d, "write %20 for a space", range, with)
    }
}
