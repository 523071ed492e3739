//! The selection of SELECT, and the modifiers after WHERE.

mod solution;

use super::expression::Expr;
use super::group::Pattern;
use super::{Parse, Parser};
use crate::advice::FaultPlace;
use crate::algebra::Variable;
use crate::algebra::{Expression, OrderExpression};
use crate::keyword::Keyword as K;
use crate::lexer::{Token, TokenKind};
use rustc_hash::FxHashSet;
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicates {
    Keep,
    Distinct,
    Reduced,
}

/// The selected items of a query, and whether duplicates are removed.
pub(super) struct Selection {
    pub duplicates: Duplicates,
    pub items: Items,
}

impl Selection {
    /// A selection that keeps duplicates.
    pub(super) fn of(items: Items) -> Self {
        Self {
            duplicates: Duplicates::Keep,
            items,
        }
    }
}

pub(super) enum Items {
    /// `SELECT *`, with the token of the `*`.
    Star(Token),
    /// All variables, for query forms other than SELECT.
    Everything,
    List(Vec<SelectItem>),
}

pub(super) struct SelectItem {
    id: u32,
    at: Token,
    expression: Option<Expr>,
    /// Variables of the expression that must be grouped, as a range of [`Parser::noted`].
    noted: Range<usize>,
}

impl SelectItem {
    pub(super) fn variable(id: u32, at: Token) -> Self {
        Self {
            id,
            at,
            expression: None,
            noted: 0..0,
        }
    }
}

#[derive(Default)]
pub(super) struct Modifiers {
    group: Option<SelectGroup>,
    having: Option<Expr>,
    order: Option<(Vec<OrderExpression>, u32)>,
    limit: Option<usize>,
    offset: Option<usize>,
    values: Option<Pattern>,
}

#[derive(Default)]
struct SelectGroup {
    variables: Vec<Variable>,
    ids: Vec<u32>,
    binds: Vec<(Expr, Variable)>,
    /// Variables that were in scope before the grouping.
    before: Vec<u32>,
}

impl Parser<'_, '_> {
    /// Parses SELECT and its selection.
    pub(super) fn select_clause(&mut self) -> Parse<Selection> {
        self.bump()?;
        let duplicates = match self.kind() {
            TokenKind::Word(K::Distinct) => Duplicates::Distinct,
            TokenKind::Word(K::Reduced) => Duplicates::Reduced,
            _ => Duplicates::Keep,
        };
        if duplicates != Duplicates::Keep {
            self.bump()?;
        }
        if self.is(TokenKind::Star) {
            let star = self.bump()?;
            return Ok(Selection {
                duplicates,
                items: Items::Star(star),
            });
        }
        let mut items = vec![];
        loop {
            match self.kind() {
                TokenKind::Variable => {
                    let (id, at) = self.variable(FaultPlace::Projection)?;
                    items.push(SelectItem::variable(id, at));
                }
                TokenKind::OpenParen => items.push(self.select_expression()?),
                TokenKind::Comma if !items.is_empty() => {
                    self.comma_in_select();
                    self.bump()?;
                    continue;
                }
                _ if items.is_empty() => return Err(self.unexpected(FaultPlace::Projection)),
                _ => break,
            }
        }
        Ok(Selection {
            duplicates,
            items: Items::List(items),
        })
    }

    fn select_expression(&mut self) -> Parse<SelectItem> {
        self.enter()?;
        self.bump()?;
        let from = self.noted.len();
        let e = self.under(None, true, Self::expression)?;
        self.expect_word(K::As, FaultPlace::As)?;
        let (id, at) = self.as_variable()?;
        Ok(SelectItem {
            id,
            at,
            expression: Some(e),
            noted: from..self.noted.len(),
        })
    }

    /// Parses something with other values of `no_aggregate` and `noting`.
    pub(super) fn under<T>(
        &mut self,
        no_aggregate: Option<&'static str>,
        noting: bool,
        read: impl FnOnce(&mut Self) -> Parse<T>,
    ) -> Parse<T> {
        let before = (self.no_aggregate, self.noting);
        (self.no_aggregate, self.noting) = (no_aggregate, noting);
        let read = read(self);
        (self.no_aggregate, self.noting) = before;
        read
    }

    /// Parses the variable after AS, and the bracket after it.
    pub(super) fn as_variable(&mut self) -> Parse<(u32, Token)> {
        let variable = self.variable(FaultPlace::AsVariable)?;
        self.close(TokenKind::CloseParen, FaultPlace::AfterAs)?;
        self.leave();
        Ok(variable)
    }

    /// Parses a SELECT inside a group.
    pub(super) fn sub_select(&mut self) -> Parse<Pattern> {
        let outer = self.scopes.enter();
        let noted = self.noted.len();
        self.frames.push(Default::default());
        let selection = self.select_clause()?;
        if self.at_word(K::From) {
            return Err(self.unexpected(FaultPlace::SubWhere));
        }
        self.eat_word(K::Where)?;
        let p = self.group(FaultPlace::Where)?;
        let (p, projected) = self.solution(selection, p)?;
        self.noted.truncate(noted);
        let kept: FxHashSet<u32> = projected.iter().copied().collect();
        self.scopes.keep_defined(outer, |v| kept.contains(&v));
        self.scopes.forget(outer);
        for v in projected {
            self.scopes.see(v);
        }
        Ok(p)
    }

    /// Parses the modifiers after WHERE and builds the algebra of the query; also returns the selected variables.
    pub(super) fn solution(
        &mut self,
        selection: Selection,
        p: Pattern,
    ) -> Parse<(Pattern, Vec<u32>)> {
        let modifiers = self.modifiers()?;
        self.build(selection, p, modifiers)
    }

    fn modifiers(&mut self) -> Parse<Modifiers> {
        let mut all = Modifiers::default();
        // The last clause and its position in the required order: GROUP BY, HAVING, ORDER BY, LIMIT and OFFSET, VALUES.
        let mut last = (0, K::Where);
        while let TokenKind::Word(word) = self.kind() {
            let rank = match word {
                K::Group => 1,
                K::Having => 2,
                K::Order => 3,
                K::Limit | K::Offset => 4,
                K::Values => 5,
                _ => break,
            };
            if rank < last.0 {
                self.disorder(self.token, word, last.1);
            }
            let again = match word {
                K::Group => all.group.is_some(),
                K::Having => all.having.is_some(),
                K::Order => all.order.is_some(),
                K::Limit => all.limit.is_some(),
                K::Offset => all.offset.is_some(),
                _ => all.values.is_some(),
            };
            if again {
                return Err(self.unexpected(FaultPlace::AfterQuery));
            }
            last = (rank.max(last.0), word);
            self.bump()?;
            match word {
                K::Group => {
                    self.expect_word(K::By, FaultPlace::By(K::Group))?;
                    all.group =
                        Some(self.under(Some("in GROUP BY"), self.noting, Self::group_by)?);
                }
                K::Having => all.having = Some(self.under(None, self.noting, Self::having)?),
                K::Order => {
                    self.expect_word(K::By, FaultPlace::By(K::Order))?;
                    all.order = Some(self.under(None, self.noting, Self::order_by)?);
                }
                K::Limit => all.limit = Some(self.whole_number(K::Limit)?),
                K::Offset => all.offset = Some(self.whole_number(K::Offset)?),
                _ => {
                    self.group_scope(&mut all);
                    all.values = Some(self.data_block()?);
                }
            }
        }
        if all.values.is_none() {
            self.group_scope(&mut all);
        }
        Ok(all)
    }

    /// In a grouped query, removes all variables but the grouping ones from the scope.
    fn group_scope(&mut self, all: &mut Modifiers) {
        let aggregates = self.frames.last().is_some_and(|f| !f.list.is_empty());
        if all.group.is_none() && aggregates {
            all.group = Some(SelectGroup::default());
        }
        if let Some(group) = &mut all.group {
            group.before = self.scopes.all();
            self.scopes.clear();
            for v in &group.ids {
                self.scopes.see(*v);
            }
        }
    }

    fn group_by(&mut self) -> Parse<SelectGroup> {
        let mut group = SelectGroup::default();
        let mut grouped = FxHashSet::default();
        loop {
            let e = match self.kind() {
                TokenKind::Variable => {
                    let (id, _) = self.variable(FaultPlace::GroupCondition)?;
                    group.variables.push(self.variable_of(id));
                    group.ids.push(id);
                    grouped.insert(id);
                    continue;
                }
                TokenKind::OpenParen => {
                    self.enter()?;
                    self.bump()?;
                    let e = self.expression()?;
                    if self.eat_word(K::As)? {
                        let (id, at) = self.as_variable()?;
                        if self.scopes.contains(id) || grouped.contains(&id) {
                            self.redefined(at, "GROUP BY");
                        }
                        let v = self.defined(id);
                        group.variables.push(v.clone());
                        group.ids.push(id);
                        grouped.insert(id);
                        group.binds.push((e, v));
                        continue;
                    }
                    self.close(TokenKind::CloseParen, FaultPlace::AfterOperand)?;
                    self.leave();
                    e
                }
                _ if self.starts_constraint() => self.constraint(FaultPlace::GroupCondition)?,
                _ if group.variables.is_empty() => {
                    return Err(self.unexpected(FaultPlace::GroupCondition));
                }
                _ => return Ok(group),
            };
            match &e.it {
                Expression::Variable(v) => {
                    if let Some(id) = self.names.get(v.as_str()) {
                        group.ids.push(*id);
                        grouped.insert(*id);
                    }
                    group.variables.push(v.clone());
                }
                _ => {
                    let v = self.fresh_variable();
                    group.variables.push(v.clone());
                    group.binds.push((e, v));
                }
            }
        }
    }

    fn having(&mut self) -> Parse<Expr> {
        let mut all = vec![self.constraint(FaultPlace::Having)?];
        while self.starts_constraint() {
            all.push(self.constraint(FaultPlace::Having)?);
        }
        self.joined(all, Expression::And)
    }

    fn starts_constraint(&self) -> bool {
        match self.kind() {
            TokenKind::OpenParen => true,
            TokenKind::Word(word) => super::calls::is_call(word),
            kind => kind.is_iri(),
        }
    }

    fn order_by(&mut self) -> Parse<(Vec<OrderExpression>, u32)> {
        let mut list = vec![];
        let mut depth = 0;
        loop {
            let to = match self.kind() {
                TokenKind::Word(K::Desc) => OrderExpression::Desc,
                _ => OrderExpression::Asc,
            };
            let e = match self.kind() {
                TokenKind::Word(word @ (K::Asc | K::Desc)) => {
                    self.bump()?;
                    if !self.is(TokenKind::OpenParen) {
                        return Err(self.unexpected(FaultPlace::Direction(word)));
                    }
                    self.bracketed()?
                }
                TokenKind::Variable => {
                    let (id, _) = self.variable(FaultPlace::OrderCondition)?;
                    let v = self.variable_of(id);
                    self.deep(Expression::from(v), 1)?
                }
                _ if self.starts_constraint() => self.constraint(FaultPlace::OrderCondition)?,
                _ if list.is_empty() => return Err(self.unexpected(FaultPlace::OrderCondition)),
                _ => return Ok((list, depth)),
            };
            depth = depth.max(e.depth);
            list.push(to(Arc::new(e.it)));
        }
    }

    fn whole_number(&mut self, word: K) -> Parse<usize> {
        let token = self.expect(TokenKind::Integer, FaultPlace::Number(word))?;
        match self.slice(token).parse() {
            Ok(n) => Ok(n),
            Err(_) => {
                self.too_large(token, word);
                Ok(0)
            }
        }
    }
}
