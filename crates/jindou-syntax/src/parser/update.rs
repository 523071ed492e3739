//! Updates (SPARQL 1.1 Update).

use super::{Parse, Parser, RuleHalt};
use crate::advice::FaultPlace;
use crate::algebra::GraphUpdateOperation as Op;
use crate::algebra::{
    GraphName, GraphNamePattern, GraphPattern, GraphTarget, GroundQuad, GroundQuadPattern,
    NamedNode, Quad, QuadPattern, QueryDataset, TermPattern, TriplePattern, Variable,
};
use crate::keyword::Keyword as K;
use crate::lexer::{Token, TokenKind};
use crate::options::MOST_FAULTS;
use crate::{CopiedFrom, Operation, Update};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A quad of a template, with the first token of the triples that it belongs to.
struct Written {
    quad: QuadPattern,
    at: Token,
}

impl<'t> Parser<'t, '_> {
    /// Parses a whole request. `None` if errors were recorded or a limit was exceeded.
    pub(crate) fn update(&mut self) -> Option<Update> {
        let mut operations = vec![];
        let read = self.operations(&mut operations);
        let settled = self.look_at_limits();
        match (read, settled) {
            (Ok(()), Ok(())) if self.faults.is_empty() => Some(Update {
                operations,
                base: self.base.clone(),
            }),
            _ => None,
        }
    }

    fn operations(&mut self, list: &mut Vec<Operation>) -> Parse<()> {
        // Labels of blank nodes in INSERT DATA; other INSERT DATA operations must not use them again.
        let mut data: FxHashMap<&'t str, Token> = FxHashMap::default();
        self.no_aggregate = Some("here");
        let before = self.state();
        loop {
            self.prologue()?;
            if self.is(TokenKind::End) {
                return Ok(());
            }
            let first = self.token;
            let at = self.source.place(first.start);
            let whole = matches!(first.kind, TokenKind::Word(K::Add | K::Copy | K::Move));
            let from = list.len();
            let read = self.operation(&mut |operation| {
                list.push(Operation {
                    operation,
                    at,
                    whole_graph: whole,
                    copied_from: None,
                });
            });
            if let (Some(copied_from), Some(first)) = (self.copied_from.take(), list.get_mut(from))
            {
                first.copied_from = Some(copied_from);
            }
            let read = match read {
                Ok(()) if !self.is(TokenKind::Semicolon) && !self.is(TokenKind::End) => {
                    Err(self.unexpected(FaultPlace::AfterOperation))
                }
                other => other,
            };
            match read {
                Err(RuleHalt::Fault) => self.recover_to_operation(&before)?,
                other => other?,
            }
            if matches!(
                list.get(from).map(|o| &o.operation),
                Some(Op::InsertData { .. })
            ) {
                let labels: Vec<_> = self.labels.drain().collect();
                for (label, (_, token, _)) in labels {
                    if let Some(before) = data.insert(label, token) {
                        self.shared_label(label, before, token);
                    }
                }
            }
            self.labels.clear();
            self.block = 0;
            self.scopes.clear();
            if !self.eat(TokenKind::Semicolon)? {
                return Ok(());
            }
        }
    }

    fn operation(&mut self, out: &mut impl FnMut(Op)) -> Parse<()> {
        let TokenKind::Word(word) = self.kind() else {
            return Err(self.unexpected(FaultPlace::Operation));
        };
        match word {
            K::Load => {
                self.bump()?;
                let silent = self.eat_word(K::Silent)?;
                let source = self.expect_iri(FaultPlace::LoadSource)?;
                let destination = if self.eat_word(K::Into)? {
                    GraphName::NamedNode(self.graph_ref()?)
                } else {
                    GraphName::DefaultGraph
                };
                out(Op::Load {
                    silent,
                    source,
                    destination,
                });
            }
            K::Clear | K::Drop => {
                self.bump()?;
                let silent = self.eat_word(K::Silent)?;
                let graph = self.graph_target()?;
                out(if word == K::Clear {
                    Op::Clear { silent, graph }
                } else {
                    Op::Drop { silent, graph }
                });
            }
            K::Create => {
                self.bump()?;
                let silent = self.eat_word(K::Silent)?;
                let graph = self.graph_ref()?;
                out(Op::Create { silent, graph });
            }
            K::Add | K::Copy | K::Move => self.whole_graph(word, out)?,
            K::Insert | K::Delete | K::With => out(self.change()?),
            _ => return Err(self.unexpected(FaultPlace::Operation)),
        }
        Ok(())
    }

    fn whole_graph(&mut self, word: K, out: &mut impl FnMut(Op)) -> Parse<()> {
        self.bump()?;
        let silent = self.eat_word(K::Silent)?;
        let from = self.graph_or_default()?;
        self.expect_word(K::To, FaultPlace::To)?;
        let to = self.graph_or_default()?;
        if from == to {
            return Ok(());
        }
        if let GraphName::NamedNode(graph) = &from {
            self.copied_from = Some(CopiedFrom {
                graph: graph.clone(),
                silent,
            });
        }
        let target = |g: &GraphName| match g {
            GraphName::NamedNode(n) => GraphTarget::NamedNode(n.clone()),
            GraphName::DefaultGraph => GraphTarget::DefaultGraph,
        };
        if word != K::Add {
            out(Op::Drop {
                silent: true,
                graph: target(&to),
            });
        }
        let drop = (word == K::Move).then(|| target(&from));
        out(copied(from, to));
        if let Some(graph) = drop {
            out(Op::Drop { silent, graph });
        }
        Ok(())
    }

    fn graph_ref(&mut self) -> Parse<NamedNode> {
        self.expect_word(K::Graph, FaultPlace::GraphRef)?;
        self.expect_iri(FaultPlace::GraphIri)
    }

    fn graph_target(&mut self) -> Parse<GraphTarget> {
        let target = match self.kind() {
            TokenKind::Word(K::Default) => GraphTarget::DefaultGraph,
            TokenKind::Word(K::Named) => GraphTarget::NamedGraphs,
            TokenKind::Word(K::All) => GraphTarget::AllGraphs,
            TokenKind::Word(K::Graph) => return Ok(GraphTarget::NamedNode(self.graph_ref()?)),
            _ => return Err(self.unexpected(FaultPlace::GraphTarget)),
        };
        self.bump()?;
        Ok(target)
    }

    fn graph_or_default(&mut self) -> Parse<GraphName> {
        if self.eat_word(K::Default)? {
            return Ok(GraphName::DefaultGraph);
        }
        self.eat_word(K::Graph)?;
        Ok(GraphName::NamedNode(
            self.expect_iri(FaultPlace::GraphOrDefault)?,
        ))
    }

    /// Parses INSERT DATA, DELETE DATA, DELETE WHERE, or DELETE and INSERT with a pattern.
    fn change(&mut self) -> Parse<Op> {
        let with = if self.eat_word(K::With)? {
            Some(self.expect_iri(FaultPlace::GraphIri)?)
        } else {
            None
        };
        let (mut delete, mut insert) = (vec![], vec![]);
        if self.eat_word(K::Delete)? {
            if with.is_none() && self.eat_word(K::Data)? {
                let quads = self.quads()?;
                let data = self.each(quads, Self::ground_quad)?;
                return Ok(Op::DeleteData { data });
            }
            if with.is_none() && self.eat_word(K::Where)? {
                return self.delete_where();
            }
            let quads = self.in_own_scope(Self::quads)?;
            delete = self.each(quads, |p, q| p.without_blanks(q))?;
            self.labels.clear();
            if self.eat_word(K::Insert)? {
                insert = self.in_own_scope(Self::quads)?;
            }
        } else {
            self.expect_word(K::Insert, FaultPlace::Change)?;
            if with.is_none() && self.eat_word(K::Data)? {
                let quads = self.quads()?;
                let data = self.each(quads, |p, q| p.data_quad(q, "INSERT DATA"))?;
                return Ok(Op::InsertData { data });
            }
            insert = self.in_own_scope(Self::quads)?;
        }
        self.labels.clear();
        let mut insert: Vec<_> = insert.into_iter().map(|w| w.quad).collect();
        let mut using = self.graphs_behind(K::Using)?;
        self.expect_word(K::Where, FaultPlace::ChangeWhere)?;
        let pattern = Arc::new(self.group(FaultPlace::Where)?.it);
        if let Some(with) = with {
            let named = |g: &mut GraphNamePattern| {
                if *g == GraphNamePattern::DefaultGraph {
                    *g = with.clone().into();
                }
            };
            delete.iter_mut().for_each(|q| named(&mut q.graph_name));
            insert.iter_mut().for_each(|q| named(&mut q.graph_name));
            using.get_or_insert(QueryDataset {
                default: vec![with],
                named: None,
            });
        }
        Ok(Op::DeleteInsert {
            delete,
            insert,
            using,
            pattern,
        })
    }

    fn delete_where(&mut self) -> Parse<Op> {
        let quads = self.quads()?;
        let parts = quads
            .iter()
            .map(|w| {
                let q = &w.quad;
                let bgp = GraphPattern::Bgp {
                    patterns: vec![TriplePattern {
                        subject: q.subject.clone(),
                        predicate: q.predicate.clone(),
                        object: q.object.clone(),
                    }],
                };
                let name = match &q.graph_name {
                    GraphNamePattern::DefaultGraph => return (bgp, 1),
                    GraphNamePattern::NamedNode(n) => n.clone().into(),
                    GraphNamePattern::Variable(v) => v.clone().into(),
                };
                let inner = Arc::new(bgp);
                (GraphPattern::Graph { name, inner }, 2)
            })
            .map(|(it, depth)| super::Deep { it, depth })
            .collect();
        let pattern = super::group::join_in_order(parts);
        let pattern = self.deep(pattern.it, pattern.depth)?;
        let delete = self.each(quads, |p, q| p.without_blanks(q))?;
        Ok(Op::DeleteInsert {
            delete,
            insert: vec![],
            using: None,
            pattern: Arc::new(pattern.it),
        })
    }

    /// Parses `{ quads }`.
    fn quads(&mut self) -> Parse<Vec<Written>> {
        self.enter()?;
        self.expect(TokenKind::OpenBrace, FaultPlace::QuadsOpen)?;
        let mut out = vec![];
        let before = self.state();
        loop {
            let read = if self.starts_subject() {
                self.triples_of(&GraphNamePattern::DefaultGraph, &mut out)
            } else if self.at_word(K::Graph) {
                self.quads_of_graph(&mut out)
            } else if self.is(TokenKind::CloseBrace) || self.is(TokenKind::End) {
                break;
            } else {
                Err(self.unexpected(FaultPlace::Quads))
            };
            match read {
                Err(RuleHalt::Fault) => self.recover(&before)?,
                other => other?,
            }
        }
        self.close(TokenKind::CloseBrace, FaultPlace::Quads)?;
        self.leave();
        Ok(out)
    }

    fn quads_of_graph(&mut self, out: &mut Vec<Written>) -> Parse<()> {
        self.bump()?;
        let name = GraphNamePattern::from(self.graph_name(FaultPlace::GraphName)?);
        self.enter()?;
        self.expect(TokenKind::OpenBrace, FaultPlace::QuadsOpen)?;
        if self.starts_subject() {
            self.triples_of(&name, out)?;
        }
        self.close(TokenKind::CloseBrace, FaultPlace::Template)?;
        self.leave();
        self.eat(TokenKind::Dot)?;
        Ok(())
    }

    fn triples_of(&mut self, graph: &GraphNamePattern, out: &mut Vec<Written>) -> Parse<()> {
        self.template_triples(|at, t| {
            let quad = QuadPattern {
                subject: t.subject,
                predicate: t.predicate,
                object: t.object,
                graph_name: graph.clone(),
            };
            out.push(Written { quad, at });
        })
    }

    fn each<T>(
        &mut self,
        quads: Vec<Written>,
        mut to: impl FnMut(&mut Self, Written) -> Option<T>,
    ) -> Parse<Vec<T>> {
        let mut out = Vec::with_capacity(quads.len());
        for q in quads {
            out.extend(to(self, q));
            if self.faults.len() >= MOST_FAULTS {
                return Err(RuleHalt::Stop);
            }
        }
        Ok(out)
    }

    fn without_blanks(&mut self, w: Written) -> Option<GroundQuadPattern> {
        let at = w.at;
        let read = GroundQuadPattern::try_from(w.quad).ok();
        if read.is_none() {
            self.blank_in_delete(at);
        }
        read
    }

    fn data_quad(&mut self, w: Written, of: &str) -> Option<Quad> {
        let at = w.at;
        let literal = matches!(
            w.quad.subject,
            TermPattern::Literal(_) | TermPattern::Triple(_)
        );
        let read = Quad::try_from(w.quad).ok();
        if read.is_none() {
            self.not_data(at, literal, of);
        }
        read
    }

    fn ground_quad(&mut self, w: Written) -> Option<GroundQuad> {
        let at = w.at;
        let read = GroundQuad::try_from(self.data_quad(w, "DELETE DATA")?).ok();
        if read.is_none() {
            self.blank_in_delete(at);
        }
        read
    }
}

/// The operation that ADD is an abbreviation for (SPARQL 1.1 Update §3.2.5).
fn copied(from: GraphName, to: GraphName) -> Op {
    let v = Variable::new_unchecked;
    let bgp = GraphPattern::Bgp {
        patterns: vec![TriplePattern {
            subject: v("s").into(),
            predicate: v("p").into(),
            object: v("o").into(),
        }],
    };
    Op::DeleteInsert {
        delete: vec![],
        insert: vec![QuadPattern {
            subject: v("s").into(),
            predicate: v("p").into(),
            object: v("o").into(),
            graph_name: to.into(),
        }],
        using: None,
        pattern: Arc::new(match from {
            GraphName::NamedNode(from) => GraphPattern::Graph {
                name: from.into(),
                inner: Arc::new(bgp),
            },
            GraphName::DefaultGraph => bgp,
        }),
    }
}
