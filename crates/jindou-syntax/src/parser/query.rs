//! Queries: the prologue and the four forms.

use super::group::{self, Pattern};
use super::select::{Items, SelectItem, Selection};
use super::triples::{Mode, TriplePart};
use super::{Deep, Parse, Parser, RuleHalt};
use crate::advice::{FaultPlace, nearest};
use crate::algebra::Query;
use crate::algebra::{GraphPattern, QueryDataset};
use crate::algebra::{GroundTerm, NamedNode, TriplePattern, Variable};
use crate::keyword::Keyword as K;
use crate::lexer::{Token, TokenKind};
use jindou_model::diagnostic::DiagnosticKind as D;
use std::sync::Arc;

/// Largest number of IRIs in DESCRIBE for which each gets a variable and a BIND of its own.
const FEW: usize = 32;

impl Parser<'_, '_> {
    /// Parses a whole query. `None` if errors were recorded or a limit was exceeded.
    pub(crate) fn query(&mut self) -> Option<Query> {
        let read = self.query_unit();
        let settled = self.look_at_limits();
        match (read, settled) {
            (Ok(query), Ok(())) if self.faults.is_empty() => Some(query),
            _ => None,
        }
    }

    fn query_unit(&mut self) -> Parse<Query> {
        self.prologue()?;
        self.frames.push(Default::default());
        self.no_aggregate = Some("here");
        let query = match self.kind() {
            TokenKind::Word(K::Select) => self.select()?,
            TokenKind::Word(K::Construct) => self.construct()?,
            TokenKind::Word(K::Describe) => self.describe()?,
            TokenKind::Word(K::Ask) => self.ask()?,
            TokenKind::Word(K::Unknown) => self.misspelt_form()?,
            _ => return Err(self.unexpected(FaultPlace::Query)),
        };
        if !self.is(TokenKind::End) {
            return Err(self.unexpected(FaultPlace::AfterQuery));
        }
        Ok(query)
    }

    /// Reports a word in place of the query's form. A misspelt form is then parsed as the intended one, to find more
    /// errors.
    fn misspelt_form(&mut self) -> Parse<Query> {
        let words = FaultPlace::Query.keywords();
        let meant = nearest(self.slice(self.token), words.iter().map(|k| k.text()));
        let halt = self.unexpected(FaultPlace::Query);
        let misspelt = self.faults.last().is_some_and(|d| d.kind == D::UnknownWord);
        match (halt, meant) {
            (RuleHalt::Fault, Some("SELECT")) if misspelt => self.select(),
            (RuleHalt::Fault, Some("ASK")) if misspelt => self.ask(),
            (halt, _) => Err(halt),
        }
    }

    /// Parses BASE, PREFIX and VERSION.
    pub(super) fn prologue(&mut self) -> Parse<()> {
        loop {
            let read = match self.kind() {
                TokenKind::Word(K::Base) => self.base_declaration(),
                TokenKind::Word(K::Prefix) => self.prefix_declaration(),
                TokenKind::Word(K::Version) => self.version_declaration(),
                _ => return Ok(()),
            };
            match read {
                Err(RuleHalt::Fault) => self.recover_in_prologue()?,
                other => other?,
            }
        }
    }

    fn base_declaration(&mut self) -> Parse<()> {
        self.bump()?;
        let token = self.expect(TokenKind::Iri, FaultPlace::DeclaredIri)?;
        let faults = self.faults.len();
        let base = self.new_base(token)?;
        if faults == self.faults.len() {
            self.base = Some(base);
            self.interned.bases += 1;
        }
        Ok(())
    }

    fn prefix_declaration(&mut self) -> Parse<()> {
        self.bump()?;
        let name = match self.kind() {
            TokenKind::Word(_) | TokenKind::A => {
                let word = self.bump()?;
                self.prefix_without_colon(word);
                self.slice(word)
            }
            _ => {
                let name = self.expect(TokenKind::Namespace, FaultPlace::DeclaredPrefix)?;
                &self.text[name.start..name.end - 1]
            }
        };
        let token = self.expect(TokenKind::Iri, FaultPlace::DeclaredIri)?;
        let iri = self.written(token)?;
        self.room(name.len() + 200)?;
        self.prefixes.declare(name, iri);
        self.interned.prefixes += 1;
        Ok(())
    }

    fn version_declaration(&mut self) -> Parse<()> {
        self.bump()?;
        let text = self.slice(self.token);
        if text.starts_with("\"\"\"") || text.starts_with("'''") {
            return Err(self.unexpected(FaultPlace::Version));
        }
        self.string(FaultPlace::Version)?;
        Ok(())
    }

    fn select(&mut self) -> Parse<Query> {
        let selection = match self.select_clause() {
            Err(RuleHalt::Fault) => {
                // The selection is unknown, but WHERE can still be checked.
                self.recover_to_where()?;
                self.scopes.clear();
                self.frames.truncate(1);
                (self.nesting, self.triples) = (0, 0);
                (self.no_aggregate, self.noting) = (Some("here"), false);
                Selection::of(Items::Everything)
            }
            other => other?,
        };
        let dataset = self.graphs_behind(K::From)?;
        self.eat_word(K::Where)?;
        let p = self.whole_group()?;
        let (p, _) = self.solution(selection, p)?;
        Ok(Query::Select {
            dataset,
            pattern: Arc::new(p.it),
            base_iri: self.base.clone(),
        })
    }

    /// Parses the group of the whole query.
    fn whole_group(&mut self) -> Parse<Pattern> {
        let start = self.token.start;
        let p = self.group(FaultPlace::Where)?;
        self.record_body(start);
        Ok(p)
    }

    fn everything(&mut self, p: Pattern) -> Parse<Arc<GraphPattern>> {
        let everything = Selection::of(Items::Everything);
        Ok(Arc::new(self.solution(everything, p)?.0.it))
    }

    fn ask(&mut self) -> Parse<Query> {
        self.bump()?;
        let dataset = self.graphs_behind(K::From)?;
        self.eat_word(K::Where)?;
        let p = self.whole_group()?;
        Ok(Query::Ask {
            dataset,
            pattern: self.everything(p)?,
            base_iri: self.base.clone(),
        })
    }

    fn construct(&mut self) -> Parse<Query> {
        self.bump()?;
        if self.is(TokenKind::OpenBrace) {
            let template = self.in_own_scope(|p| p.template(TokenKind::CloseBrace))?;
            self.labels.clear();
            let dataset = self.graphs_behind(K::From)?;
            self.eat_word(K::Where)?;
            let p = self.whole_group()?;
            return Ok(Query::Construct {
                template: template.into(),
                dataset,
                pattern: self.everything(p)?,
                base_iri: self.base.clone(),
            });
        }
        let dataset = self.graphs_behind(K::From)?;
        self.expect_word(K::Where, FaultPlace::ConstructWhere)?;
        if !self.is(TokenKind::OpenBrace) {
            return Err(self.unexpected(FaultPlace::ConstructWhere));
        }
        let template = self.template(TokenKind::CloseBrace)?;
        let patterns = template.clone();
        let p = Deep {
            it: GraphPattern::Bgp { patterns },
            depth: 2,
        };
        Ok(Query::Construct {
            template: template.into(),
            dataset,
            pattern: self.everything(p)?,
            base_iri: self.base.clone(),
        })
    }

    /// Parses a construct whose variables are not in scope outside.
    pub(super) fn in_own_scope<T>(&mut self, read: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        let outer = self.scopes.enter();
        let out = read(self)?;
        self.scopes.forget_all(outer);
        Ok(out)
    }

    /// Reads `{ triples }`.
    fn template(&mut self, close: TokenKind) -> Parse<Vec<TriplePattern>> {
        self.enter()?;
        self.bump()?;
        let mut triples = vec![];
        self.template_triples(|_, t| triples.push(t))?;
        if let Some(halt) = self.clause_in_template() {
            return Err(halt);
        }
        self.close(close, FaultPlace::Template)?;
        self.leave();
        Ok(triples)
    }

    /// Parses triples separated by dots, up to the first token that cannot begin one. A dot after the last one is
    /// optional. `each` gets each triple, and the first token of those of its subject.
    pub(super) fn template_triples(
        &mut self,
        mut each: impl FnMut(Token, TriplePattern),
    ) -> Parse<()> {
        let before = self.state();
        let mut parts = vec![];
        while self.starts_subject() {
            let at = self.token;
            let read = self.same_subject(Mode::Template, &mut parts);
            let read = match read {
                Ok(()) if self.starts_subject() => Err(self.missing_dot()),
                other => other,
            };
            for part in parts.drain(..) {
                if let TriplePart::Triple(t) = part {
                    each(at, t);
                }
            }
            match read {
                Ok(()) => {
                    if !self.eat(TokenKind::Dot)? {
                        return Ok(());
                    }
                }
                Err(RuleHalt::Fault) => self.recover(&before)?,
                Err(stop) => return Err(stop),
            }
        }
        Ok(())
    }

    fn describe(&mut self) -> Parse<Query> {
        self.bump()?;
        let mut iris = vec![];
        let mut items = vec![];
        let star = self.eat(TokenKind::Star)?;
        loop {
            match self.kind() {
                _ if star => break,
                TokenKind::Variable => {
                    let (id, at) = self.variable(FaultPlace::Described)?;
                    items.push(SelectItem::variable(id, at));
                }
                _ if self.is_iri() => iris.push((items.len(), self.iri()?)),
                _ if iris.is_empty() && items.is_empty() => {
                    return Err(self.unexpected(FaultPlace::Described));
                }
                _ => break,
            }
        }
        let dataset = self.graphs_behind(K::From)?;
        let there = self.eat_word(K::Where)? || self.is(TokenKind::OpenBrace);
        let p = if there {
            self.whole_group()?
        } else {
            group::unit()
        };
        let items = if star {
            Items::Everything
        } else {
            Items::List(items)
        };
        let (p, _) = self.solution(Selection::of(items), p)?;
        Ok(Query::Describe {
            dataset,
            pattern: Arc::new(self.described(p.it, iris)),
            base_iri: self.base.clone(),
        })
    }

    /// Adds IRIs to the resources that a DESCRIBE query describes. Each IRI comes with the number of variables before
    /// it.
    fn described(&mut self, p: GraphPattern, iris: Vec<(usize, NamedNode)>) -> GraphPattern {
        if iris.is_empty() {
            return p;
        }
        // The IRIs are bound below the projection, which may be inside a slice.
        if let GraphPattern::Slice {
            inner,
            start,
            length,
        } = &p
        {
            return GraphPattern::Slice {
                inner: Arc::new(self.chosen(inner, iris)),
                start: *start,
                length: *length,
            };
        }
        self.chosen(&Arc::new(p), iris)
    }

    fn chosen(&mut self, p: &Arc<GraphPattern>, iris: Vec<(usize, NamedNode)>) -> GraphPattern {
        let unit = Arc::default();
        let (inner, variables) = match &**p {
            GraphPattern::Project { inner, variables } => (inner, &variables[..]),
            // Not reached: `solution` always adds a projection.
            _ => (&unit, &[][..]),
        };
        let (order, mut p) = match &**inner {
            GraphPattern::OrderBy { inner, expression } => (Some(expression), Arc::clone(inner)),
            _ => (None, Arc::clone(inner)),
        };
        let mut all: Vec<Variable> = Vec::with_capacity(variables.len() + iris.len());
        let mut known = variables.iter().cloned();
        let mut taken = 0;
        let mut values = (vec![], vec![]);
        let many = iris.len() > FEW;
        for (before, iri) in iris {
            all.extend(known.by_ref().take(before - taken));
            taken = before;
            let v = self.fresh_variable();
            all.push(v.clone());
            if many {
                values.0.push(v);
                values.1.push(Some(GroundTerm::from(iri)));
            } else {
                p = Arc::new(GraphPattern::Extend {
                    inner: p,
                    variable: v,
                    expression: Arc::new(iri.into()),
                });
            }
        }
        all.extend(known);
        if many {
            let values = GraphPattern::Values {
                variables: values.0,
                bindings: vec![values.1],
            };
            let is_unit = matches!(&*p, GraphPattern::Bgp { patterns } if patterns.is_empty());
            p = Arc::new(if is_unit {
                values
            } else {
                GraphPattern::Join {
                    left: p,
                    right: Arc::new(values),
                }
            });
        }
        if let Some(keys) = order {
            let expression = keys.iter().map(|k| k.with(Arc::clone(k.expression())));
            p = Arc::new(GraphPattern::OrderBy {
                expression: expression.collect(),
                inner: p,
            });
        }
        GraphPattern::Project {
            inner: p,
            variables: all,
        }
    }

    /// Parses clauses of FROM or USING (`word`), as often as they occur. `None` if there are none.
    pub(super) fn graphs_behind(&mut self, word: K) -> Parse<Option<QueryDataset>> {
        let (mut default, mut named) = (vec![], vec![]);
        while self.eat_word(word)? {
            let to = if self.eat_word(K::Named)? {
                &mut named
            } else {
                &mut default
            };
            to.push(self.expect_iri(FaultPlace::DatasetGraph)?);
        }
        Ok(
            (!default.is_empty() || !named.is_empty()).then_some(QueryDataset {
                default,
                named: Some(named),
            }),
        )
    }
}
