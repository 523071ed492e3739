//! Property paths.

use super::intern::Word;
use super::{Parse, Parser};
use crate::advice::FaultPlace;
use crate::algebra::NamedNode;
use crate::algebra::PropertyPathExpression as Path;
use crate::balance::balance;
use crate::lexer::TokenKind;
use std::sync::Arc;

impl Parser<'_, '_> {
    pub(super) fn path(&mut self) -> Parse<Path> {
        let first = self.path_sequence()?;
        if !self.is(TokenKind::Pipe) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.eat(TokenKind::Pipe)? {
            parts.push(self.path_sequence()?);
        }
        Ok(joined(parts, Path::Alternative))
    }

    fn path_sequence(&mut self) -> Parse<Path> {
        let first = self.path_step()?;
        if !self.is(TokenKind::Slash) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.eat(TokenKind::Slash)? {
            parts.push(self.path_step()?);
        }
        Ok(joined(parts, Path::Sequence))
    }

    fn path_step(&mut self) -> Parse<Path> {
        let inverse = self.eat(TokenKind::Caret)?;
        let start = self.token.start;
        let step = self.path_primary()?;
        if self.is(TokenKind::OpenBrace)
            && let Some(halt) = self.repeated_path(start)
        {
            return Err(halt);
        }
        let step = match self.kind() {
            TokenKind::Question => {
                self.bump()?;
                Path::ZeroOrOne(Arc::new(step))
            }
            TokenKind::Star => {
                self.bump()?;
                Path::ZeroOrMore(Arc::new(step))
            }
            TokenKind::Plus => {
                self.bump()?;
                Path::OneOrMore(Arc::new(step))
            }
            _ => step,
        };
        Ok(if inverse {
            Path::Reverse(Arc::new(step))
        } else {
            step
        })
    }

    fn path_primary(&mut self) -> Parse<Path> {
        match self.kind() {
            TokenKind::Iri | TokenKind::Prefixed | TokenKind::Namespace => Ok(self.iri()?.into()),
            TokenKind::A => {
                self.bump()?;
                Ok(self.word(Word::Type).into())
            }
            TokenKind::OpenParen => {
                self.enter()?;
                self.bump()?;
                let path = self.path()?;
                self.close(TokenKind::CloseParen, FaultPlace::PathClose)?;
                self.leave();
                Ok(path)
            }
            TokenKind::Bang => {
                self.bump()?;
                self.negated()
            }
            _ => Err(self.unexpected(FaultPlace::PathStep)),
        }
    }

    /// Parses the set of properties after `!`.
    fn negated(&mut self) -> Parse<Path> {
        let (mut direct, mut inverse) = (vec![], vec![]);
        if self.eat(TokenKind::OpenParen)? {
            loop {
                let (is_inverse, iri) = self.negated_one()?;
                if is_inverse {
                    &mut inverse
                } else {
                    &mut direct
                }
                .push(iri);
                if !self.eat(TokenKind::Pipe)? {
                    break;
                }
            }
            self.close(TokenKind::CloseParen, FaultPlace::NegatedClose)?;
        } else {
            let (is_inverse, iri) = self.negated_one()?;
            if is_inverse {
                &mut inverse
            } else {
                &mut direct
            }
            .push(iri);
        }
        let set = |list: Vec<NamedNode>| Path::NegatedPropertySet(list.into());
        let backwards = |list| Path::Reverse(Arc::new(set(list)));
        Ok(match (direct.is_empty(), inverse.is_empty()) {
            (_, true) => set(direct),
            (true, false) => backwards(inverse),
            (false, false) => {
                Path::Alternative(Arc::new(set(direct)), Arc::new(backwards(inverse)))
            }
        })
    }

    fn negated_one(&mut self) -> Parse<(bool, NamedNode)> {
        let inverse = self.eat(TokenKind::Caret)?;
        let iri = match self.kind() {
            TokenKind::A => {
                self.bump()?;
                self.word(Word::Type)
            }
            _ => self.expect_iri(FaultPlace::NegatedStep)?,
        };
        Ok((inverse, iri))
    }
}

fn joined(parts: Vec<Path>, to: fn(Arc<Path>, Arc<Path>) -> Path) -> Path {
    balance(parts, |a, b| to(Arc::new(a), Arc::new(b)))
        .unwrap_or_else(|| Path::NegatedPropertySet(Arc::new([])))
}
