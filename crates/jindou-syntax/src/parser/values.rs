//! Inline data: VALUES.

use super::group::Pattern;
use super::{Deep, Parse, Parser};
use crate::advice::FaultPlace;
use crate::algebra::GraphPattern;
use crate::algebra::{GroundTerm, GroundTriple, Variable};
use crate::keyword::Keyword as K;
use crate::lexer::TokenKind;
use rustc_hash::FxHashSet;

impl Parser<'_, '_> {
    /// Parses the data after VALUES.
    pub(super) fn data_block(&mut self) -> Parse<Pattern> {
        let (variables, bindings) = if self.is(TokenKind::Variable) {
            let (id, _) = self.variable(FaultPlace::ValuesVariables)?;
            let variables = vec![self.defined(id)];
            self.enter()?;
            self.expect(TokenKind::OpenBrace, FaultPlace::ValuesOpen)?;
            let mut bindings = vec![];
            while !self.is(TokenKind::CloseBrace) {
                let value = self.data_value()?;
                bindings.push(vec![value]);
            }
            (variables, bindings)
        } else {
            self.rows()?
        };
        self.close(TokenKind::CloseBrace, FaultPlace::DataValue)?;
        self.leave();
        Ok(Deep {
            it: GraphPattern::Values {
                variables,
                bindings,
            },
            depth: 1,
        })
    }

    /// Puts a variable that VALUES, BIND or GROUP BY defines into scope.
    pub(super) fn defined(&mut self, id: u32) -> Variable {
        self.scopes.see(id);
        self.scopes.define(id);
        self.variable_of(id)
    }

    #[allow(clippy::type_complexity)]
    fn rows(&mut self) -> Parse<(Vec<Variable>, Vec<Vec<Option<GroundTerm>>>)> {
        self.expect(TokenKind::OpenParen, FaultPlace::ValuesVariables)?;
        let mut variables = vec![];
        let mut ids = FxHashSet::default();
        while self.is(TokenKind::Variable) {
            let (id, token) = self.variable(FaultPlace::ValuesVariables)?;
            if !ids.insert(id) {
                self.twice_in_values(token);
            }
            variables.push(self.defined(id));
        }
        self.close(TokenKind::CloseParen, FaultPlace::ValuesVariables)?;
        self.enter()?;
        self.expect(TokenKind::OpenBrace, FaultPlace::ValuesOpen)?;
        let mut bindings = vec![];
        while !self.is(TokenKind::CloseBrace) {
            let open = self.expect(TokenKind::OpenParen, FaultPlace::Row)?;
            let mut row = Vec::with_capacity(variables.len().min(64));
            while !self.is(TokenKind::CloseParen) {
                let value = self.data_value()?;
                row.push(value);
            }
            let close = self.close(TokenKind::CloseParen, FaultPlace::DataValue)?;
            if row.len() != variables.len() {
                self.wrong_row(open.start..close.end, row.len(), variables.len());
            }
            bindings.push(row);
        }
        Ok((variables, bindings))
    }

    fn data_value(&mut self) -> Parse<Option<GroundTerm>> {
        if self.eat_word(K::Undef)? {
            return Ok(None);
        }
        Ok(Some(self.ground_term()?))
    }

    fn ground_term(&mut self) -> Parse<GroundTerm> {
        Ok(match self.kind() {
            kind if kind.is_iri() => self.iri()?.into(),
            _ if self.starts_literal() => self.any_literal()?.into(),
            TokenKind::OpenTriple => {
                self.enter_triple()?;
                self.bump()?;
                let subject = self.expect_iri(FaultPlace::TripleSubjectData)?;
                let predicate = self.iri_or_a(FaultPlace::TriplePredicateData)?;
                let object = self.ground_term()?;
                self.close_triple()?;
                self.leave_triple();
                GroundTriple {
                    subject,
                    predicate,
                    object,
                }
                .into()
            }
            _ => return Err(self.unexpected(FaultPlace::DataValue)),
        })
    }
}
