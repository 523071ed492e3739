//! Groups of patterns: `{ … }`.

use super::expression::Expr;
use super::triples::{Mode, TriplePart, joined};
use super::{Deep, Parse, Parser, RuleHalt};
use crate::advice::FaultPlace;
use crate::algebra::NamedNodePattern;
use crate::algebra::{Expression, GraphPattern};
use crate::balance::balance;
use crate::keyword::Keyword as K;
use crate::lexer::TokenKind;
use std::sync::Arc;

pub(super) type Pattern = Deep<GraphPattern>;

/// A pattern with one solution, which has no variables.
pub(super) fn unit() -> Pattern {
    Deep {
        it: GraphPattern::default(),
        depth: 1,
    }
}

fn is_unit(p: &GraphPattern) -> bool {
    matches!(p, GraphPattern::Bgp { patterns } if patterns.is_empty())
}

/// Patterns to be joined. Basic graph patterns are merged as long as the run contains nothing else.
struct PatternRun {
    parts: Vec<Pattern>,
}

impl PatternRun {
    fn push(&mut self, p: Pattern) {
        if is_unit(&p.it) {
            return;
        }
        if let [only] = &mut self.parts[..] {
            let mut p = p;
            match (&mut only.it, &mut p.it) {
                (GraphPattern::Bgp { patterns }, _) if patterns.is_empty() => *only = p,
                (GraphPattern::Bgp { patterns }, GraphPattern::Bgp { patterns: more }) => {
                    patterns.append(more);
                }
                _ => self.parts.push(p),
            }
        } else {
            self.parts.push(p);
        }
    }
}

/// The join of two patterns; basic graph patterns are merged.
pub(super) fn join(a: Pattern, b: Pattern) -> Pattern {
    let mut run = PatternRun { parts: vec![a] };
    run.push(b);
    join_all(run.parts)
}

fn join_all(parts: Vec<Pattern>) -> Pattern {
    balance(parts, |a, b| Deep {
        depth: a.depth.max(b.depth) + 1,
        it: GraphPattern::Join {
            left: Arc::new(a.it),
            right: Arc::new(b.it),
        },
    })
    .unwrap_or_else(unit)
}

impl Parser<'_, '_> {
    /// Parses a group. Its filters become the outermost operators.
    pub(super) fn group(&mut self, place: FaultPlace) -> Parse<Pattern> {
        let (p, filter) = self.group_with_filter(place)?;
        match filter {
            None => Ok(p),
            Some(filter) => self.filtered(p, filter),
        }
    }

    pub(super) fn filtered(&mut self, p: Pattern, filter: Expr) -> Parse<Pattern> {
        let depth = p.depth.max(filter.depth) + 1;
        let inner = Arc::new(p.it);
        self.deep(
            GraphPattern::Filter {
                expr: Arc::new(filter.it),
                inner,
            },
            depth,
        )
    }

    /// Parses a group and returns its filters separately, since OPTIONAL uses them as its condition.
    fn group_with_filter(&mut self, place: FaultPlace) -> Parse<(Pattern, Option<Expr>)> {
        self.enter()?;
        self.expect(TokenKind::OpenBrace, place)?;
        self.block += 1;
        let before = (
            self.no_aggregate.replace("in a pattern"),
            std::mem::replace(&mut self.noting, false),
        );
        let out = if self.at_word(K::Select) {
            (self.sub_select()?, None)
        } else {
            self.body()?
        };
        (self.no_aggregate, self.noting) = before;
        self.close(TokenKind::CloseBrace, FaultPlace::GroupBody)?;
        self.block += 1;
        self.leave();
        Ok(out)
    }

    fn body(&mut self) -> Parse<(Pattern, Option<Expr>)> {
        let before = self.state();
        let mut run = PatternRun {
            parts: vec![unit()],
        };
        let mut filters = vec![];
        // True if triples may follow here, and if a dot may.
        let (mut triples_may, mut dot_may) = (true, false);
        let mut block: Vec<TriplePart> = vec![];
        loop {
            let read = match self.kind() {
                TokenKind::CloseBrace | TokenKind::End => break,
                TokenKind::Dot if dot_may => {
                    (triples_may, dot_may) = (true, false);
                    self.bump().map(|_| ())
                }
                _ if self.starts_subject() => {
                    if triples_may {
                        (triples_may, dot_may) = (false, true);
                        self.same_subject(Mode::Pattern, &mut block)
                    } else {
                        Err(self.missing_dot())
                    }
                }
                TokenKind::OpenBrace | TokenKind::Word(_) => {
                    (triples_may, dot_may) = (true, true);
                    self.flush(&mut block, &mut run)
                        .and_then(|()| self.clause(&mut run, &mut filters))
                }
                _ => Err(self.unexpected(if triples_may {
                    FaultPlace::GroupBody
                } else {
                    FaultPlace::AfterTriples
                })),
            };
            match read {
                Ok(()) => {}
                Err(RuleHalt::Fault) => {
                    self.recover(&before)?;
                    (triples_may, dot_may) = (true, false);
                }
                Err(stop) => return Err(stop),
            }
        }
        self.flush(&mut block, &mut run)?;
        let filter = match filters.is_empty() {
            true => None,
            false => Some(self.joined(filters, Expression::And)?),
        };
        let p = self.so_far(&mut run)?;
        Ok((p, filter))
    }

    fn flush(&mut self, block: &mut Vec<TriplePart>, run: &mut PatternRun) -> Parse<()> {
        if !block.is_empty() {
            let parts = joined(std::mem::take(block));
            let p = join_all(parts.into_iter().map(|it| Deep { it, depth: 2 }).collect());
            run.push(self.deep(p.it, p.depth)?);
        }
        Ok(())
    }

    /// Takes the run as one joined pattern, as the input of an operator such as OPTIONAL.
    fn so_far(&mut self, run: &mut PatternRun) -> Parse<Pattern> {
        let p = join_all(std::mem::take(&mut run.parts));
        self.deep(p.it, p.depth)
    }

    /// Makes the run and a pattern after it the inputs of an operator.
    fn behind_run(
        &mut self,
        run: &mut PatternRun,
        right: Pattern,
        to: fn(Arc<GraphPattern>, Arc<GraphPattern>) -> GraphPattern,
    ) -> Parse<()> {
        let left = self.so_far(run)?;
        let depth = left.depth.max(right.depth) + 1;
        run.parts = vec![self.deep(to(Arc::new(left.it), Arc::new(right.it)), depth)?];
        Ok(())
    }

    /// Parses an element of a group other than triples.
    fn clause(&mut self, run: &mut PatternRun, filters: &mut Vec<Expr>) -> Parse<()> {
        let TokenKind::Word(word) = self.kind() else {
            let p = self.union()?;
            run.push(p);
            return Ok(());
        };
        match word {
            K::Filter => {
                let at = self.bump()?;
                let e = self.constraint(FaultPlace::Filter)?;
                self.record_filter(at.start, &e);
                filters.push(e);
            }
            K::Optional => {
                self.bump()?;
                let outer = self.scopes.enter();
                let (right, filter) = self.group_with_filter(FaultPlace::Group)?;
                self.scopes.merge(outer);
                let left = self.so_far(run)?;
                let depth = left
                    .depth
                    .max(right.depth)
                    .max(filter.as_ref().map_or(0, |f| f.depth));
                let it = GraphPattern::LeftJoin {
                    left: Arc::new(left.it),
                    right: Arc::new(right.it),
                    expression: filter.map(|f| Arc::new(f.it)),
                };
                run.parts = vec![self.deep(it, depth + 1)?];
            }
            K::Minus => {
                self.bump()?;
                let outer = self.scopes.enter();
                let right = self.group(FaultPlace::Group)?;
                self.scopes.forget(outer);
                self.behind_run(run, right, |left, right| GraphPattern::Minus {
                    left,
                    right,
                })?;
            }
            K::Lateral => {
                let at = self.bump()?;
                let outer = self.scopes.enter();
                let right = self.group(FaultPlace::Group)?;
                if let Some(v) = self.scopes.clash(outer) {
                    self.redefined_in_lateral(at, v);
                }
                self.scopes.merge(outer);
                self.behind_run(run, right, |left, right| GraphPattern::Lateral {
                    left,
                    right,
                })?;
            }
            K::Graph => {
                self.bump()?;
                let name = self.graph_name(FaultPlace::GraphName)?;
                if let NamedNodePattern::Variable(v) = &name
                    && let Some(id) = self.names.get(v.as_str())
                {
                    self.scopes.see(*id);
                }
                let p = self.inner_group()?;
                let inner = Arc::new(p.it);
                let p = self.deep(GraphPattern::Graph { name, inner }, p.depth + 1)?;
                run.push(p);
            }
            K::Service => {
                self.bump()?;
                let silent = self.eat_word(K::Silent)?;
                let name = self.graph_name(FaultPlace::ServiceName)?;
                let p = self.inner_group()?;
                let it = GraphPattern::Service {
                    name,
                    inner: Arc::new(p.it),
                    silent,
                };
                let p = self.deep(it, p.depth + 1)?;
                run.push(p);
            }
            K::Bind => self.bind(run)?,
            K::Values => {
                self.bump()?;
                let p = self.data_block()?;
                run.push(p);
            }
            _ => return Err(self.unexpected(FaultPlace::GroupBody)),
        }
        Ok(())
    }

    /// Parses a group whose variables are also in scope of the surrounding group.
    fn inner_group(&mut self) -> Parse<Pattern> {
        let outer = self.scopes.enter();
        let p = self.group(FaultPlace::Group)?;
        self.scopes.merge(outer);
        Ok(p)
    }

    fn union(&mut self) -> Parse<Pattern> {
        let first = self.inner_group()?;
        if !self.at_word(K::Union) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.eat_word(K::Union)? {
            parts.push(self.inner_group()?);
        }
        let p = balance(parts, |a, b| Deep {
            depth: a.depth.max(b.depth) + 1,
            it: GraphPattern::Union {
                left: Arc::new(a.it),
                right: Arc::new(b.it),
            },
        })
        .unwrap_or_else(unit);
        self.deep(p.it, p.depth)
    }

    fn bind(&mut self, run: &mut PatternRun) -> Parse<()> {
        self.bump()?;
        self.enter()?;
        self.expect(TokenKind::OpenParen, FaultPlace::BindOpen)?;
        let e = self.expression()?;
        self.expect_word(K::As, FaultPlace::As)?;
        let (id, token) = self.as_variable()?;
        if self.scopes.contains(id) {
            self.redefined(token, "BIND");
        }
        let variable = self.defined(id);
        let inner = self.so_far(run)?;
        let extended = self.extend(inner, variable, e)?;
        run.parts = vec![extended];
        Ok(())
    }

    pub(super) fn extend(
        &mut self,
        p: Pattern,
        variable: crate::algebra::Variable,
        e: Expr,
    ) -> Parse<Pattern> {
        let depth = p.depth.max(e.depth) + 1;
        let it = GraphPattern::Extend {
            inner: Arc::new(p.it),
            variable,
            expression: Arc::new(e.it),
        };
        self.deep(it, depth)
    }

    /// Parses a variable or an IRI, without adding the variable to the scope.
    pub(super) fn graph_name(&mut self, place: FaultPlace) -> Parse<NamedNodePattern> {
        if self.is(TokenKind::Variable) {
            let (id, _) = self.variable(place)?;
            return Ok(self.variable_of(id).into());
        }
        Ok(self.expect_iri(place)?.into())
    }

    /// Parses a condition: an expression in brackets, or a call.
    pub(super) fn constraint(&mut self, place: FaultPlace) -> Parse<Expr> {
        match self.kind() {
            TokenKind::OpenParen => self.bracketed(),
            kind if kind.is_iri() => {
                let name = self.token;
                let iri = self.iri()?;
                if !self.is(TokenKind::OpenParen) {
                    return Err(self.unexpected(FaultPlace::CallOpen(K::Unknown)));
                }
                self.custom_call(name, iri)
            }
            TokenKind::Word(word) if super::calls::is_call(word) => self.built_in(word),
            _ => Err(self.unexpected(place)),
        }
    }
}

/// Joins patterns in their order; basic graph patterns at the beginning are merged.
pub(super) fn join_in_order(parts: Vec<Pattern>) -> Pattern {
    let mut run = PatternRun {
        parts: vec![unit()],
    };
    for p in parts {
        run.push(p);
    }
    join_all(run.parts)
}
