//! Calls of built-in functions.

use super::expression::Expr;
use super::{Parse, Parser};
use crate::advice::FaultPlace;
use crate::algebra::{Expression, Function};
use crate::keyword::Keyword as K;
use crate::lexer::{Token, TokenKind};
use std::sync::Arc;

const STRING: &str = "http://www.w3.org/2001/XMLSchema#string";

/// The function with this name, and the smallest and the largest number of its arguments; `None` for other words.
pub(crate) fn function(word: K) -> Option<(Function, usize, usize)> {
    let function = word.function()?;
    let definition = function.definition()?;
    Some((function, definition.least, definition.most()))
}

pub(crate) fn is_aggregate(word: K) -> bool {
    matches!(
        word,
        K::Count | K::Sum | K::Min | K::Max | K::Avg | K::Sample | K::GroupConcat
    )
}

/// True for a word that begins a call, EXISTS or NOT EXISTS.
pub(crate) fn is_call(word: K) -> bool {
    matches!(
        word,
        K::Exists | K::Not | K::Bound | K::If | K::Coalesce | K::SameTerm
    ) || is_aggregate(word)
        || function(word).is_some()
}

impl Parser<'_, '_> {
    /// Parses a call of a built-in function, an aggregate, EXISTS or NOT EXISTS.
    pub(super) fn built_in(&mut self, word: K) -> Parse<Expr> {
        if is_aggregate(word) {
            return self.aggregate(word);
        }
        if let Some((function, least, most)) = function(word) {
            let name = self.token;
            let (list, depth) = self.arguments(word, least, most)?;
            if self.patterns.is_some() && matches!(word, K::Regex | K::Replace) {
                self.note_pattern(name, word == K::Replace, &list);
            }
            return self.deep(Expression::FunctionCall(function, list), depth + 1);
        }
        match word {
            K::Exists | K::Not => {
                self.bump()?;
                if word == K::Not {
                    self.expect_word(K::Exists, FaultPlace::NotExists)?;
                }
                let p = self.in_own_scope(|p| p.group(FaultPlace::Group))?;
                let e = self.deep(Expression::Exists(Arc::new(p.it)), p.depth + 1)?;
                if word == K::Not { self.not(e) } else { Ok(e) }
            }
            K::Bound => {
                self.bump()?;
                self.expect(TokenKind::OpenParen, FaultPlace::CallOpen(word))?;
                let (id, _) = self.variable(FaultPlace::BoundVariable)?;
                self.close(TokenKind::CloseParen, FaultPlace::AfterArgument)?;
                let v = self.variable_of(id);
                self.deep(Expression::Bound(v), 1)
            }
            K::Coalesce => {
                self.bump()?;
                let (list, depth) =
                    self.under(self.no_aggregate, false, |p| p.expression_list(word))?;
                self.deep(Expression::Coalesce(list), depth + 1)
            }
            K::If => {
                let (list, depth) = self.arguments(word, 3, 3)?;
                let Ok([a, b, c]) = <[Expression; 3]>::try_from(list) else {
                    return self.deep(Expression::Coalesce(vec![]), 1);
                };
                self.deep(
                    Expression::If(Arc::new(a), Arc::new(b), Arc::new(c)),
                    depth + 1,
                )
            }
            K::SameTerm => {
                let (list, depth) = self.arguments(word, 2, 2)?;
                let Ok([a, b]) = <[Expression; 2]>::try_from(list) else {
                    return self.deep(Expression::Coalesce(vec![]), 1);
                };
                self.deep(Expression::SameTerm(Arc::new(a), Arc::new(b)), depth + 1)
            }
            _ => Err(self.unexpected(FaultPlace::Operand)),
        }
    }

    #[cold]
    fn note_pattern(&mut self, name: Token, replaces: bool, list: &[Expression]) {
        let constant = |at: usize| match list.get(at) {
            Some(Expression::Literal(l)) if l.language().is_none() => {
                let is_text = l.datatype() == STRING;
                is_text.then(|| l.value().to_owned())
            }
            _ => None,
        };
        let flags = 2 + usize::from(replaces);
        // If the flags are computed, they may have any value.
        let (Some(pattern), true) = (
            constant(1),
            list.len() <= flags || constant(flags).is_some(),
        ) else {
            return;
        };
        let (line, column) = self.place_of(name);
        let call = crate::PatternCall {
            line,
            column,
            pattern,
            flags: constant(flags).unwrap_or_default(),
            replaces,
            replacement: constant(2).filter(|_| replaces),
        };
        if let Some(calls) = &mut self.patterns {
            calls.push(call);
        }
    }

    /// Parses a function's name and its arguments.
    fn arguments(&mut self, word: K, least: usize, most: usize) -> Parse<(Vec<Expression>, u32)> {
        let name = self.bump()?;
        let (list, depth) = self.expression_list(word)?;
        if !(least..=most).contains(&list.len()) {
            self.wrong_arguments(name, word, list.len(), least, most);
        }
        Ok((list, depth))
    }
}
