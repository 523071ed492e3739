//! Aggregates of the current query. Each is computed once, however often it occurs.

use super::{Deep, Parse, Parser, RuleHalt};
use crate::advice::FaultPlace;
use crate::algebra::Variable;
use crate::algebra::{AggregateExpression, AggregateFunction, Expression};
use crate::keyword::Keyword as K;
use crate::lexer::TokenKind;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Aggregates of one SELECT, CONSTRUCT, …, and the depth of the deepest one's argument.
#[derive(Default)]
pub(crate) struct AggregateFrame {
    pub list: Vec<(Variable, AggregateExpression)>,
    pub depth: u32,
    /// Index in `list` of each aggregate; filled once there are many.
    index: FxHashMap<AggregateExpression, usize>,
}

const MANY: usize = 16;

impl AggregateFrame {
    fn find(&mut self, aggregate: &AggregateExpression) -> Option<&Variable> {
        if self.list.len() < MANY {
            return self.list.iter().find(|a| a.1 == *aggregate).map(|a| &a.0);
        }
        if self.index.is_empty() {
            self.index = (0..)
                .zip(&self.list)
                .map(|(i, a)| (a.1.shared(), i))
                .collect();
        }
        self.index.get(aggregate).map(|i| &self.list[*i].0)
    }

    fn add(&mut self, variable: Variable, aggregate: AggregateExpression) {
        if self.list.len() >= MANY {
            self.index.insert(aggregate.shared(), self.list.len());
        }
        self.list.push((variable, aggregate));
    }
}

impl Parser<'_, '_> {
    /// Parses an aggregate, from its name on.
    pub(super) fn aggregate(&mut self, word: K) -> Parse<Deep<Expression>> {
        let name = self.bump()?;
        if let Some(why) = self.no_aggregate {
            self.misplaced_aggregate(name, word, why);
        }
        let (aggregate, depth) = self.under(Some("inside another aggregate"), false, |p| {
            p.aggregate_arguments(word)
        })?;
        let Some(frame) = self.frames.last_mut() else {
            return Err(RuleHalt::Fault);
        };
        frame.depth = frame.depth.max(depth);
        let variable = match frame.find(&aggregate) {
            Some(v) => v.clone(),
            None => {
                let v = self.fresh_variable();
                if let Some(frame) = self.frames.last_mut() {
                    frame.add(v.clone(), aggregate);
                }
                v
            }
        };
        self.deep(Expression::Variable(variable), 1)
    }

    fn aggregate_arguments(&mut self, word: K) -> Parse<(AggregateExpression, u32)> {
        self.enter()?;
        self.expect(TokenKind::OpenParen, FaultPlace::CallOpen(word))?;
        let distinct = self.eat_word(K::Distinct)?;
        if word == K::Count && self.is(TokenKind::Star) {
            self.bump()?;
            self.close(TokenKind::CloseParen, FaultPlace::AfterArgument)?;
            self.leave();
            return Ok((AggregateExpression::CountSolutions { distinct }, 1));
        }
        let expr = self.expression()?;
        let mut separator = None;
        if word == K::GroupConcat && self.eat(TokenKind::Semicolon)? {
            self.expect_word(K::Separator, FaultPlace::Separator)?;
            self.expect(TokenKind::Equal, FaultPlace::Separator)?;
            separator = Some(self.string(FaultPlace::Separator)?.into());
        }
        self.close(TokenKind::CloseParen, FaultPlace::AfterArgument)?;
        self.leave();
        let name = match word {
            K::Sum => AggregateFunction::Sum,
            K::Min => AggregateFunction::Min,
            K::Max => AggregateFunction::Max,
            K::Avg => AggregateFunction::Avg,
            K::Sample => AggregateFunction::Sample,
            K::GroupConcat => AggregateFunction::GroupConcat { separator },
            _ => AggregateFunction::Count,
        };
        let aggregate = AggregateExpression::FunctionCall {
            name,
            expr: Arc::new(expr.it),
            distinct,
        };
        Ok((aggregate, expr.depth + 1))
    }
}
