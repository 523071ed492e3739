//! Property paths.

use super::{Parse, Parser};
use crate::advice::FaultPlace;
use crate::algebra::NamedNode;
use crate::algebra::PropertyPathExpression as Path;
use crate::balance::balance;
use crate::lexer::TokenKind;
use std::sync::Arc;

impl Parser<'_, '_> {
    pub(super) fn path(&mut self) -> Parse<Path> {
        let sequence =
            |p: &mut Self| p.joined_paths(TokenKind::Slash, Self::path_step, Path::Sequence);
        self.joined_paths(TokenKind::Pipe, sequence, Path::Alternative)
    }

    /// Parses paths with an operator between them.
    fn joined_paths(
        &mut self,
        operator: TokenKind,
        read: impl Fn(&mut Self) -> Parse<Path>,
        to: fn(Arc<Path>, Arc<Path>) -> Path,
    ) -> Parse<Path> {
        let first = read(self)?;
        if !self.is(operator) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.eat(operator)? {
            parts.push(read(self)?);
        }
        Ok(balance(parts, |a, b| to(Arc::new(a), Arc::new(b)))
            .unwrap_or_else(|| Path::NegatedPropertySet(Arc::new([]))))
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
            _ => Ok(self.iri_or_a(FaultPlace::PathStep)?.into()),
        }
    }

    /// Parses the set of properties after `!`.
    fn negated(&mut self) -> Parse<Path> {
        let (mut direct, mut inverse) = (vec![], vec![]);
        let bracketed = self.eat(TokenKind::OpenParen)?;
        loop {
            let to = if self.eat(TokenKind::Caret)? {
                &mut inverse
            } else {
                &mut direct
            };
            to.push(self.iri_or_a(FaultPlace::NegatedStep)?);
            if !bracketed || !self.eat(TokenKind::Pipe)? {
                break;
            }
        }
        if bracketed {
            self.close(TokenKind::CloseParen, FaultPlace::NegatedClose)?;
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
}
