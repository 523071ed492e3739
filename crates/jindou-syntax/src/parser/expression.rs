//! Expressions, by precedence climbing. Brackets need three stack frames per level, chains of operators none.

use super::fault::comparison;
use super::intern::Suffix;
use super::{Deep, Parse, Parser};
use crate::advice::FaultPlace;
use crate::algebra::{Expression, Function};
use crate::algebra::{Literal, NamedNode};
use crate::balance::balance;
use crate::keyword::Keyword as K;
use crate::lexer::{Token, TokenKind};
use jindou_model::term;
use oxrdf::vocab::xsd;
use std::sync::Arc;

pub(super) type Expr = Deep<Expression>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Or = 1,
    And,
    Comparison,
    Sum,
    Product,
}

fn level(kind: TokenKind) -> Option<Level> {
    Some(match kind {
        TokenKind::Or => Level::Or,
        TokenKind::And => Level::And,
        kind if comparison(kind) => Level::Comparison,
        TokenKind::Plus | TokenKind::Minus => Level::Sum,
        TokenKind::Star | TokenKind::Slash => Level::Product,
        _ => return None,
    })
}

impl Parser<'_, '_> {
    pub(super) fn expression(&mut self) -> Parse<Expr> {
        self.binary(Level::Or)
    }

    /// Parses operands joined by operators with at least this precedence.
    fn binary(&mut self, least: Level) -> Parse<Expr> {
        let mut left = self.unary()?;
        while let Some(level) = level(self.kind()) {
            if (level as u8) < least as u8 {
                break;
            }
            left = match level {
                Level::Or => self.chain(left, TokenKind::Or, Level::And, Expression::Or)?,
                Level::And => {
                    self.chain(left, TokenKind::And, Level::Comparison, Expression::And)?
                }
                Level::Comparison => self.comparison(left)?,
                Level::Sum => {
                    let plus = self.bump()?.kind == TokenKind::Plus;
                    let right = self.binary(Level::Product)?;
                    let to = if plus {
                        Expression::Add
                    } else {
                        Expression::Subtract
                    };
                    self.both(left, right, to)?
                }
                Level::Product => {
                    let times = self.bump()?.kind == TokenKind::Star;
                    let right = self.unary()?;
                    let to = if times {
                        Expression::Multiply
                    } else {
                        Expression::Divide
                    };
                    self.both(left, right, to)?
                }
            };
        }
        Ok(left)
    }

    fn both(
        &mut self,
        left: Expr,
        right: Expr,
        to: fn(Arc<Expression>, Arc<Expression>) -> Expression,
    ) -> Parse<Expr> {
        let depth = left.depth.max(right.depth) + 1;
        self.deep(to(Arc::new(left.it), Arc::new(right.it)), depth)
    }

    /// Parses the rest of `a || b || c …` or `a && b && c …`, after its first operand.
    fn chain(
        &mut self,
        first: Expr,
        operator: TokenKind,
        next: Level,
        to: fn(Arc<Expression>, Arc<Expression>) -> Expression,
    ) -> Parse<Expr> {
        let mut parts = vec![first];
        while self.eat(operator)? {
            parts.push(self.binary(next)?);
        }
        self.joined(parts, to)
    }

    /// Joins conditions by an associative operator. There must be at least one.
    pub(super) fn joined(
        &mut self,
        parts: Vec<Expr>,
        to: fn(Arc<Expression>, Arc<Expression>) -> Expression,
    ) -> Parse<Expr> {
        let all = balance(parts, |a, b| Deep {
            depth: a.depth.max(b.depth) + 1,
            it: to(Arc::new(a.it), Arc::new(b.it)),
        });
        match all {
            Some(e) => self.deep(e.it, e.depth),
            None => self.deep(Expression::Coalesce(vec![]), 1),
        }
    }

    fn comparison(&mut self, left: Expr) -> Parse<Expr> {
        let operator = self.bump()?.kind;
        let compared = match operator {
            TokenKind::Word(word) => {
                if word == K::Not {
                    self.expect_word(K::In, FaultPlace::NotIn)?;
                }
                let (list, depth) = self.expression_list(K::In)?;
                let depth = depth.max(left.depth) + 1;
                let is_in = self.deep(Expression::In(Arc::new(left.it), list), depth)?;
                if word == K::Not {
                    self.not(is_in)?
                } else {
                    is_in
                }
            }
            _ => {
                let right = self.binary(Level::Sum)?;
                let to = match operator {
                    TokenKind::Less => Expression::Less,
                    TokenKind::LessOrEqual => Expression::LessOrEqual,
                    TokenKind::Greater => Expression::Greater,
                    TokenKind::GreaterOrEqual => Expression::GreaterOrEqual,
                    _ => Expression::Equal,
                };
                let compared = self.both(left, right, to)?;
                if operator == TokenKind::NotEqual {
                    self.not(compared)?
                } else {
                    compared
                }
            }
        };
        if comparison(self.kind()) {
            return Err(self.unexpected(FaultPlace::AfterComparison));
        }
        Ok(compared)
    }

    pub(super) fn not(&mut self, e: Expr) -> Parse<Expr> {
        self.deep(Expression::Not(Arc::new(e.it)), e.depth + 1)
    }

    fn unary(&mut self) -> Parse<Expr> {
        let mut nots = 0;
        while self.eat(TokenKind::Bang)? {
            nots += 1;
        }
        let mut e = match self.kind() {
            // A sign directly before a number is part of the literal and of its lexical form.
            sign @ (TokenKind::Plus | TokenKind::Minus) if !self.is_signed_number() => {
                self.bump()?;
                let e = self.primary()?;
                let to = if sign == TokenKind::Plus {
                    Expression::UnaryPlus
                } else {
                    Expression::UnaryMinus
                };
                self.deep(to(Arc::new(e.it)), e.depth + 1)?
            }
            _ => self.primary()?,
        };
        for _ in 0..nots {
            e = self.not(e)?;
        }
        Ok(e)
    }

    fn primary(&mut self) -> Parse<Expr> {
        match self.kind() {
            TokenKind::OpenParen => self.bracketed(),
            kind if kind.is_iri() => {
                let name = self.token;
                let iri = self.iri()?;
                if self.is(TokenKind::OpenParen) {
                    return self.custom_call(name, iri);
                }
                self.deep(iri.into(), 1)
            }
            TokenKind::Variable => {
                let (id, token) = self.variable(FaultPlace::Operand)?;
                if self.noting {
                    self.noted.push((id, token));
                }
                let v = self.variable_of(id);
                self.deep(v.into(), 1)
            }
            _ if self.starts_literal() => {
                let literal = self.any_literal()?;
                self.deep(literal.into(), 1)
            }
            TokenKind::OpenTriple => self.triple_expression(),
            TokenKind::Word(word) => self.built_in(word),
            _ => Err(self.unexpected(FaultPlace::Operand)),
        }
    }

    pub(super) fn boolean(&mut self) -> Parse<Literal> {
        let value = if self.bump()?.kind == TokenKind::Word(K::True) {
            "true"
        } else {
            "false"
        };
        let key = (value, Suffix::Nothing);
        if let Some(known) = self.known_literal(&key) {
            return Ok(known);
        }
        self.intern_literal(key, value.len(), |out| {
            term::push_typed(value, xsd::BOOLEAN.as_str(), out);
        })
    }

    /// Parses `( expression )`.
    pub(super) fn bracketed(&mut self) -> Parse<Expr> {
        self.enter()?;
        self.expect(TokenKind::OpenParen, FaultPlace::Bracketed)?;
        let e = self.expression()?;
        self.close(TokenKind::CloseParen, FaultPlace::AfterOperand)?;
        self.leave();
        Ok(e)
    }

    /// Parses the arguments of a function named by an IRI, whose name has already been read.
    pub(super) fn custom_call(&mut self, name: Token, iri: NamedNode) -> Parse<Expr> {
        let (arguments, depth) = self.expression_list(K::Unknown)?;
        self.check_call(name, iri.as_str(), arguments.len());
        self.deep(
            Expression::FunctionCall(Function::Custom(iri), arguments),
            depth + 1,
        )
    }

    /// Parses `()` or `(a, b, …)`; also returns the depth of the deepest argument.
    pub(super) fn expression_list(&mut self, of: K) -> Parse<(Vec<Expression>, u32)> {
        self.enter()?;
        self.expect(TokenKind::OpenParen, FaultPlace::CallOpen(of))?;
        let mut list = vec![];
        let mut depth = 0;
        if !self.is(TokenKind::CloseParen) {
            loop {
                let e = self.expression()?;
                depth = depth.max(e.depth);
                list.push(e.it);
                if !self.eat(TokenKind::Comma)? {
                    break;
                }
            }
        }
        self.close(TokenKind::CloseParen, FaultPlace::AfterArgument)?;
        self.leave();
        Ok((list, depth))
    }

    /// Parses `<<( s p o )>>` as a value.
    fn triple_expression(&mut self) -> Parse<Expr> {
        self.enter_triple()?;
        self.bump()?;
        if !self.is_iri() && !self.is(TokenKind::Variable) {
            return Err(self.unexpected(FaultPlace::TripleSubject));
        }
        let subject = self.triple_value()?;
        let predicate = if self.is(TokenKind::Variable) {
            self.triple_value()?.it
        } else {
            self.iri_or_a(FaultPlace::VerbOfTemplate)?.into()
        };
        let object = self.triple_value()?;
        self.close_triple()?;
        self.leave_triple();
        let depth = object.depth + 1;
        let parts = vec![subject.it, predicate, object.it];
        self.deep(Expression::FunctionCall(Function::Triple, parts), depth)
    }

    fn triple_value(&mut self) -> Parse<Expr> {
        match self.kind() {
            TokenKind::OpenTriple | TokenKind::Variable => self.primary(),
            _ if self.starts_literal() => self.primary(),
            _ => {
                let iri = self.expect_iri(FaultPlace::TripleObject)?;
                self.deep(iri.into(), 1)
            }
        }
    }
}
