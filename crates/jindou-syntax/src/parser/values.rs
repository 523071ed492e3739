//! Inline data: VALUES.

use super::group::Pattern;
use super::intern::Word;
use super::{Deep, Parse, Parser};
use crate::advice::Place;
use crate::algebra::GraphPattern;
use crate::algebra::{GroundTerm, GroundTriple, Variable};
use crate::keyword::Keyword as K;
use crate::lexer::Kind;
use rustc_hash::FxHashSet;

impl Parser<'_, '_> {
    /// Reads what stands after VALUES.
    pub(super) fn data_block(&mut self) -> Parse<Pattern> {
        let (variables, bindings) = if self.is(Kind::Variable) {
            let (id, _) = self.variable(Place::ValuesVariables)?;
            let variables = vec![self.valued(id)];
            self.enter()?;
            self.expect(Kind::OpenBrace, Place::ValuesOpen)?;
            let mut bindings = vec![];
            while !self.is(Kind::CloseBrace) {
                let value = self.data_value()?;
                bindings.push(vec![value]);
            }
            (variables, bindings)
        } else {
            self.rows()?
        };
        self.close(Kind::CloseBrace, Place::DataValue)?;
        self.leave();
        Ok(Deep {
            it: GraphPattern::Values {
                variables,
                bindings,
            },
            depth: 1,
        })
    }

    fn valued(&mut self, id: u32) -> Variable {
        self.scopes.see(id);
        self.scopes.define(id);
        self.variable_of(id)
    }

    #[allow(clippy::type_complexity)]
    fn rows(&mut self) -> Parse<(Vec<Variable>, Vec<Vec<Option<GroundTerm>>>)> {
        self.expect(Kind::OpenParen, Place::ValuesVariables)?;
        let mut variables = vec![];
        let mut ids = FxHashSet::default();
        while self.is(Kind::Variable) {
            let (id, token) = self.variable(Place::ValuesVariables)?;
            if !ids.insert(id) {
                self.twice_in_values(token);
            }
            variables.push(self.valued(id));
        }
        self.close(Kind::CloseParen, Place::ValuesVariables)?;
        self.enter()?;
        self.expect(Kind::OpenBrace, Place::ValuesOpen)?;
        let mut bindings = vec![];
        while !self.is(Kind::CloseBrace) {
            let open = self.expect(Kind::OpenParen, Place::Row)?;
            let mut row = Vec::with_capacity(variables.len().min(64));
            while !self.is(Kind::CloseParen) {
                let value = self.data_value()?;
                row.push(value);
            }
            let close = self.close(Kind::CloseParen, Place::DataValue)?;
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
            Kind::Iri | Kind::Prefixed | Kind::Namespace => self.iri()?.into(),
            Kind::String
            | Kind::Integer
            | Kind::Decimal
            | Kind::Double
            | Kind::Word(K::True | K::False) => self.any_literal()?.into(),
            Kind::Plus | Kind::Minus if self.is_signed_number() => self.any_literal()?.into(),
            Kind::OpenTriple => {
                self.enter()?;
                self.bump()?;
                let subject = self.expect_iri(Place::TripleSubjectData)?;
                let predicate = if self.eat(Kind::A)? {
                    self.word(Word::Type)
                } else {
                    self.expect_iri(Place::TriplePredicateData)?
                };
                let object = self.ground_term()?;
                self.close_triple()?;
                self.leave();
                GroundTriple {
                    subject,
                    predicate,
                    object,
                }
                .into()
            }
            _ => return Err(self.unexpected(Place::DataValue)),
        })
    }
}
