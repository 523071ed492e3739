//! Finding the position from which to continue after an error.

use super::fault::begins_update;
use super::{Parse, Parser, RuleHalt};
use crate::keyword::Keyword as K;
use crate::lexer::{Token, TokenKind};

/// State of the parser at the start of a rule that can continue after an error.
pub(super) struct RecoveryPoint {
    open: usize,
    nesting: u32,
    triples: usize,
    frames: usize,
    outer: super::scope::OuterScope,
    no_aggregate: Option<&'static str>,
    noting: bool,
}

/// True for words with which a clause of a group begins.
fn begins_clause(word: K) -> bool {
    matches!(
        word,
        K::Filter
            | K::Optional
            | K::Bind
            | K::Values
            | K::Graph
            | K::Minus
            | K::Service
            | K::Lateral
    )
}

impl Parser<'_, '_> {
    pub(super) fn state(&mut self) -> RecoveryPoint {
        RecoveryPoint {
            open: self.open.len(),
            nesting: self.nesting,
            triples: self.triples,
            frames: self.frames.len(),
            outer: self.scopes.here(),
            no_aggregate: self.no_aggregate,
            noting: self.noting,
        }
    }

    fn restore(&mut self, state: &RecoveryPoint) {
        self.nesting = state.nesting;
        self.triples = state.triples;
        self.frames.truncate(state.frames);
        self.scopes.merge(state.outer);
        self.no_aggregate = state.no_aggregate;
        self.noting = state.noting;
    }

    /// Reads a token without adding it to, or removing it from, the open brackets.
    pub(super) fn lone_bump(&mut self) -> Parse<Token> {
        let open = std::mem::take(&mut self.open);
        let token = self.bump();
        self.open = open;
        token
    }

    /// Skips a token. A closing bracket also closes the open brackets that it matches, but none below index `level`.
    fn skip(&mut self, level: usize) -> Parse<()> {
        let opener = match self.kind() {
            TokenKind::CloseBrace => TokenKind::OpenBrace,
            TokenKind::CloseParen => TokenKind::OpenParen,
            TokenKind::CloseBracket => TokenKind::OpenBracket,
            TokenKind::CloseAnnotation => TokenKind::OpenAnnotation,
            TokenKind::CloseReified => TokenKind::OpenReified,
            _ => {
                self.bump()?;
                return Ok(());
            }
        };
        let matching = match opener {
            // A closing brace also closes all brackets that were opened inside the braces.
            TokenKind::OpenBrace => self.open.brace(level),
            _ => {
                let innermost = self.open.last().is_some_and(|t| t.kind == opener);
                (innermost && self.open.len() > level).then(|| self.open.len() - 1)
            }
        };
        if let Some(n) = matching {
            self.open.truncate(n);
        }
        self.lone_bump()?;
        Ok(())
    }

    /// Skips to the start of the group's next triple or clause, or to the group's end.
    pub(super) fn recover(&mut self, state: &RecoveryPoint) -> Parse<()> {
        self.restore(state);
        let level = state.open;
        if self.recovered == Some(self.token.start) && !self.is(TokenKind::CloseBrace) {
            self.skip(level)?;
        }
        loop {
            let inside = self.open.len() > level;
            let braces = self.open.brace(level).is_some();
            match self.kind() {
                TokenKind::End => break,
                TokenKind::Dot if !inside => {
                    self.bump()?;
                    break;
                }
                TokenKind::CloseBrace if !braces => break,
                TokenKind::Word(word) if begins_clause(word) && !braces => break,
                _ => self.skip(level)?,
            }
        }
        self.open.truncate(level);
        self.recovered = Some(self.token.start);
        Ok(())
    }

    pub(super) fn recover_in_prologue(&mut self) -> Parse<()> {
        loop {
            match self.kind() {
                TokenKind::Word(K::Base | K::Prefix | K::Version) => return Ok(()),
                TokenKind::Word(K::Select | K::Ask | K::Construct | K::Describe) => return Ok(()),
                TokenKind::Word(word) if begins_update(word) => return Ok(()),
                TokenKind::End | TokenKind::OpenBrace => return Err(RuleHalt::Stop),
                _ => self.bump()?,
            };
        }
    }

    /// Skips everything before WHERE or the brace that opens its group.
    pub(super) fn recover_to_where(&mut self) -> Parse<()> {
        loop {
            match self.kind() {
                TokenKind::Word(K::Where | K::From) | TokenKind::OpenBrace => break,
                TokenKind::End => return Err(RuleHalt::Stop),
                _ => self.skip(0)?,
            }
        }
        self.open = Default::default();
        Ok(())
    }

    /// Skips to the semicolon after an operation of an update, or to the end.
    pub(super) fn recover_to_operation(&mut self, state: &RecoveryPoint) -> Parse<()> {
        self.restore(state);
        while !(self.is(TokenKind::End) || self.is(TokenKind::Semicolon) && self.open.len() == 0) {
            self.skip(0)?;
        }
        self.open = Default::default();
        Ok(())
    }
}
