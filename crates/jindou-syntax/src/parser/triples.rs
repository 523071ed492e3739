//! Triples in patterns and in templates: property lists, collections, reified triples, annotations.

use super::intern::Word;
use super::{Parse, Parser};
use crate::advice::FaultPlace;
use crate::algebra::{GraphPattern, PropertyPathExpression};
use crate::algebra::{Literal, NamedNodePattern, TermPattern, TriplePattern};
use crate::keyword::Keyword as K;
use crate::lexer::{Token, TokenKind};

use std::sync::Arc;

/// A triple pattern, or a pattern with a path.
#[derive(Debug)]
pub(super) enum TriplePart {
    Triple(TriplePattern),
    Path(TermPattern, PropertyPathExpression, TermPattern),
}

/// The context of triples: a pattern or a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// In WHERE: predicates may be paths.
    Pattern,
    Template,
}

#[derive(Clone)]
enum Verb {
    Simple(NamedNodePattern),
    Path(PropertyPathExpression),
}

struct ParsedObject {
    term: TermPattern,
    reifiers: Vec<TermPattern>,
    at: Token,
}

impl Parser<'_, '_> {
    pub(super) fn starts_subject(&self) -> bool {
        matches!(
            self.kind(),
            TokenKind::Iri
                | TokenKind::Prefixed
                | TokenKind::Namespace
                | TokenKind::Variable
                | TokenKind::Blank
                | TokenKind::String
                | TokenKind::Integer
                | TokenKind::Decimal
                | TokenKind::Double
                | TokenKind::Plus
                | TokenKind::Minus
                | TokenKind::OpenParen
                | TokenKind::OpenBracket
                | TokenKind::OpenReified
                | TokenKind::OpenTriple
                | TokenKind::Word(K::True | K::False)
        )
    }

    fn starts_verb(&self, mode: Mode) -> bool {
        match self.kind() {
            TokenKind::Iri
            | TokenKind::Prefixed
            | TokenKind::Namespace
            | TokenKind::Variable
            | TokenKind::A => true,
            TokenKind::Caret | TokenKind::Bang | TokenKind::OpenParen => mode == Mode::Pattern,
            _ => false,
        }
    }

    /// Parses all triples of one subject.
    pub(super) fn same_subject(&mut self, mode: Mode, out: &mut Vec<TriplePart>) -> Parse<()> {
        match self.kind() {
            TokenKind::OpenReified => {
                let (mut own, mut triples) = (vec![], vec![]);
                let subject = self.reified(&mut own)?;
                if self.starts_verb(mode) {
                    self.properties(&subject, mode, FaultPlace::Verb, out, &mut triples)?;
                }
                out.append(&mut own);
                out.append(&mut triples);
                Ok(())
            }
            kind => {
                let has_triples = match kind {
                    TokenKind::OpenBracket => self.ahead().kind != TokenKind::CloseBracket,
                    TokenKind::OpenParen => self.ahead().kind != TokenKind::CloseParen,
                    _ => false,
                };
                let subject = self.node(mode, out, FaultPlace::Subject)?;
                if has_triples && !self.starts_verb(mode) {
                    return Ok(());
                }
                self.properties_behind(subject, mode, FaultPlace::Verb, out)
            }
        }
    }

    /// Parses predicates and objects of a subject. Triples inside objects go to `nested`, the subject's own to
    /// `triples`.
    fn properties(
        &mut self,
        subject: &TermPattern,
        mode: Mode,
        place: FaultPlace,
        nested: &mut Vec<TriplePart>,
        triples: &mut Vec<TriplePart>,
    ) -> Parse<()> {
        loop {
            let verb = self.verb(mode, place)?;
            loop {
                let object = self.object(mode, nested)?;
                if !self.is(TokenKind::Comma) {
                    self.add(subject.clone(), verb, object, triples)?;
                    break;
                }
                self.add(subject.clone(), verb.clone(), object, triples)?;
                self.bump()?;
            }
            if !self.next_property(mode)? {
                return Ok(());
            }
        }
    }

    /// Skips semicolons; true if another predicate follows them.
    fn next_property(&mut self, mode: Mode) -> Parse<bool> {
        if !self.is(TokenKind::Semicolon) {
            return Ok(false);
        }
        while self.eat(TokenKind::Semicolon)? {}
        Ok(self.starts_verb(mode))
    }

    /// Parses predicates and objects. Triples inside objects come before the subject's own in `out`; as long as there
    /// are none inside, the subject's own are added directly.
    fn properties_behind(
        &mut self,
        subject: TermPattern,
        mode: Mode,
        place: FaultPlace,
        out: &mut Vec<TriplePart>,
    ) -> Parse<()> {
        let from = out.len();
        let mut triples = vec![];
        let mut late = false;
        loop {
            let verb = self.verb(mode, place)?;
            loop {
                let before = out.len();
                let object = self.object(mode, out)?;
                if !late && out.len() > before {
                    late = true;
                    triples = out.drain(from..before).collect();
                }
                if self.eat(TokenKind::Comma)? {
                    let to = if late { &mut triples } else { &mut *out };
                    self.add(subject.clone(), verb.clone(), object, to)?;
                    continue;
                }
                let more = self.next_property(mode)?;
                let to = if late { &mut triples } else { &mut *out };
                if !more {
                    self.add(subject, verb, object, to)?;
                    out.append(&mut triples);
                    return Ok(());
                }
                self.add(subject.clone(), verb, object, to)?;
                break;
            }
        }
    }

    fn verb(&mut self, mode: Mode, place: FaultPlace) -> Parse<Verb> {
        self.record_verb();
        match self.kind() {
            TokenKind::Variable => {
                let (id, _) = self.variable(place)?;
                self.scopes.see(id);
                Ok(Verb::Simple(self.variable_of(id).into()))
            }
            _ if mode == Mode::Template => Ok(Verb::Simple(self.verb_of_template()?)),
            _ if self.starts_verb(mode) => Ok(match self.path()? {
                PropertyPathExpression::NamedNode(n) => Verb::Simple(n.into()),
                path => Verb::Path(path),
            }),
            _ => Err(self.unexpected(place)),
        }
    }

    /// Parses a variable, an IRI or `a`.
    pub(super) fn verb_of_template(&mut self) -> Parse<NamedNodePattern> {
        match self.kind() {
            TokenKind::Variable => {
                let (id, _) = self.variable(FaultPlace::VerbOfTemplate)?;
                self.scopes.see(id);
                Ok(self.variable_of(id).into())
            }
            _ => Ok(self.iri_or_a(FaultPlace::VerbOfTemplate)?.into()),
        }
    }

    fn object(&mut self, mode: Mode, out: &mut Vec<TriplePart>) -> Parse<ParsedObject> {
        let at = self.token;
        let term = self.node(mode, out, FaultPlace::Object)?;
        let mut object = ParsedObject {
            term,
            reifiers: vec![],
            at,
        };
        loop {
            match self.kind() {
                TokenKind::Tilde => {
                    let reifier = self.reifier()?;
                    if self.is(TokenKind::OpenAnnotation) {
                        self.annotation(mode, &reifier, out)?;
                    }
                    object.reifiers.push(reifier);
                }
                TokenKind::OpenAnnotation => {
                    let reifier = self.fresh_blank().into();
                    self.annotation(mode, &reifier, out)?;
                    object.reifiers.push(reifier);
                }
                _ => return Ok(object),
            }
        }
    }

    /// Parses `{| … |}`.
    fn annotation(&mut self, mode: Mode, of: &TermPattern, out: &mut Vec<TriplePart>) -> Parse<()> {
        self.enter()?;
        self.bump()?;
        let mut inner = vec![];
        self.properties(of, mode, FaultPlace::Verb, &mut inner, out)?;
        self.close(TokenKind::CloseAnnotation, FaultPlace::AnnotationClose)?;
        self.leave();
        out.append(&mut inner);
        Ok(())
    }

    /// Parses `~ name`.
    fn reifier(&mut self) -> Parse<TermPattern> {
        self.bump()?;
        Ok(match self.kind() {
            TokenKind::Variable
            | TokenKind::Blank
            | TokenKind::Iri
            | TokenKind::Prefixed
            | TokenKind::Namespace => self.term(FaultPlace::Object)?,
            TokenKind::OpenBracket if self.ahead().kind == TokenKind::CloseBracket => {
                self.term(FaultPlace::Object)?
            }
            _ => self.fresh_blank().into(),
        })
    }

    /// Parses a term, a collection, a reified triple, or a blank node with its properties.
    fn node(
        &mut self,
        mode: Mode,
        out: &mut Vec<TriplePart>,
        place: FaultPlace,
    ) -> Parse<TermPattern> {
        match self.kind() {
            TokenKind::OpenReified => self.reified(out),
            TokenKind::OpenBracket if self.ahead().kind != TokenKind::CloseBracket => {
                self.blank_list(mode, out)
            }
            TokenKind::OpenParen if self.ahead().kind != TokenKind::CloseParen => {
                self.collection(mode, out)
            }
            _ => self.term(place),
        }
    }

    /// Parses `[ p o ]`.
    fn blank_list(&mut self, mode: Mode, out: &mut Vec<TriplePart>) -> Parse<TermPattern> {
        self.enter()?;
        self.bump()?;
        let node = TermPattern::from(self.fresh_blank());
        self.properties_behind(node.clone(), mode, FaultPlace::VerbOfBlank, out)?;
        self.close(TokenKind::CloseBracket, FaultPlace::BlankClose)?;
        self.leave();
        Ok(node)
    }

    /// Parses `( a b … )`. The triples of the last member come first in `out`.
    fn collection(&mut self, mode: Mode, out: &mut Vec<TriplePart>) -> Parse<TermPattern> {
        self.enter()?;
        self.bump()?;
        let mut members = vec![];
        while !self.is(TokenKind::CloseParen) {
            let mut inner = vec![];
            let member = self.node(mode, &mut inner, FaultPlace::Member)?;
            members.push((member, inner));
        }
        self.close(TokenKind::CloseParen, FaultPlace::Member)?;
        self.leave();
        let mut rest = TermPattern::from(self.word(Word::Nil));
        for (member, mut inner) in members.into_iter().rev() {
            let node = TermPattern::from(self.fresh_blank());
            self.look()?;
            for (word, object) in [(Word::First, member), (Word::Rest, rest)] {
                out.push(TriplePart::Triple(TriplePattern {
                    subject: node.clone(),
                    predicate: self.word(word).into(),
                    object,
                }));
            }
            rest = node;
            out.append(&mut inner);
        }
        Ok(rest)
    }

    /// Parses `<< s p o ~ r >>`; returns the reifier.
    fn reified(&mut self, out: &mut Vec<TriplePart>) -> Parse<TermPattern> {
        self.enter()?;
        self.bump()?;
        let mut inner = vec![];
        let subject = self.part_of_reified(&mut inner)?;
        let predicate = self.verb_of_template()?;
        let object = self.part_of_reified(&mut inner)?;
        let reifier = if self.is(TokenKind::Tilde) {
            self.reifier()?
        } else {
            self.fresh_blank().into()
        };
        self.close(TokenKind::CloseReified, FaultPlace::ReifiedClose)?;
        self.leave();
        let triple = TriplePattern {
            subject,
            predicate,
            object,
        };
        let triple = Arc::new(triple);
        out.push(self.reifies(reifier.clone(), &triple));
        out.append(&mut inner);
        Ok(reifier)
    }

    fn part_of_reified(&mut self, out: &mut Vec<TriplePart>) -> Parse<TermPattern> {
        match self.kind() {
            TokenKind::OpenReified => self.reified(out),
            TokenKind::OpenParen => Err(self.unexpected(FaultPlace::PartOfTriple)),
            TokenKind::OpenBracket if self.ahead().kind != TokenKind::CloseBracket => {
                Err(self.unexpected(FaultPlace::PartOfTriple))
            }
            _ => self.term(FaultPlace::PartOfTriple),
        }
    }

    fn reifies(&mut self, reifier: TermPattern, triple: &Arc<TriplePattern>) -> TriplePart {
        TriplePart::Triple(TriplePattern {
            subject: reifier,
            predicate: self.word(Word::Reifies).into(),
            object: TermPattern::Triple(Arc::clone(triple)),
        })
    }

    /// Parses `<<( s p o )>>`.
    fn triple_term(&mut self) -> Parse<TermPattern> {
        self.enter_triple()?;
        self.bump()?;
        let part = |p: &mut Self| match p.kind() {
            TokenKind::OpenParen => Err(p.unexpected(FaultPlace::PartOfTriple)),
            _ => p.term(FaultPlace::PartOfTriple),
        };
        let subject = part(self)?;
        let predicate = self.verb_of_template()?;
        let object = part(self)?;
        self.close_triple()?;
        self.leave_triple();
        Ok(TriplePattern {
            subject,
            predicate,
            object,
        }
        .into())
    }

    /// Parses `)>>`.
    pub(super) fn close_triple(&mut self) -> Parse<()> {
        let end = self.token.end;
        if !self.is(TokenKind::CloseParen) || self.ahead().kind != TokenKind::CloseReified {
            return Err(self.unclosed(TokenKind::CloseParen, FaultPlace::TripleClose));
        }
        if self.ahead().start != end {
            return Err(self.unexpected(FaultPlace::TripleClose));
        }
        // The opening `<<(` is a single token, so only one of the two closing tokens matches an open bracket.
        self.lone_bump()?;
        self.bump()?;
        Ok(())
    }

    /// Parses a term other than a collection or a node with properties.
    pub(super) fn term(&mut self, place: FaultPlace) -> Parse<TermPattern> {
        Ok(match self.kind() {
            TokenKind::Variable => {
                let (id, _) = self.variable(place)?;
                self.scopes.see(id);
                self.variable_of(id).into()
            }
            TokenKind::Blank => self.labelled()?.into(),
            kind if kind.is_iri() => self.iri()?.into(),
            _ if self.starts_literal() => self.any_literal()?.into(),
            TokenKind::OpenTriple => self.triple_term()?,
            TokenKind::OpenBracket if self.ahead().kind == TokenKind::CloseBracket => {
                self.bump()?;
                self.bump()?;
                self.fresh_blank().into()
            }
            TokenKind::OpenParen if self.ahead().kind == TokenKind::CloseParen => {
                self.bump()?;
                self.bump()?;
                self.word(Word::Nil).into()
            }
            _ => return Err(self.unexpected(place)),
        })
    }

    /// True before a string, a truth value, or a number with or without a sign.
    pub(super) fn starts_literal(&mut self) -> bool {
        match self.kind() {
            TokenKind::String | TokenKind::Word(K::True | K::False) => true,
            TokenKind::Plus | TokenKind::Minus => self.is_signed_number(),
            kind => kind.is_number(),
        }
    }

    /// Parses a string, number or truth value, and records its position.
    pub(super) fn any_literal(&mut self) -> Parse<Literal> {
        let start = self.token.start;
        let literal = match self.kind() {
            TokenKind::String => self.literal()?,
            TokenKind::Plus | TokenKind::Minus => self.signed_number()?,
            TokenKind::Word(_) => self.boolean()?,
            _ => self.number(None)?,
        };
        self.record_term(start, || literal.clone().into());
        Ok(literal)
    }

    fn add(
        &mut self,
        subject: TermPattern,
        verb: Verb,
        object: ParsedObject,
        out: &mut Vec<TriplePart>,
    ) -> Parse<()> {
        self.record_object(object.at);
        match verb {
            Verb::Simple(predicate) => {
                let triple = TriplePattern {
                    subject,
                    predicate,
                    object: object.term,
                };
                self.add_triple(triple, object.reifiers, out)?;
            }
            Verb::Path(path) => self.add_path(subject, &path, object, out)?,
        }
        Ok(())
    }

    fn add_triple(
        &mut self,
        triple: TriplePattern,
        reifiers: Vec<TermPattern>,
        out: &mut Vec<TriplePart>,
    ) -> Parse<()> {
        if !reifiers.is_empty() {
            let shared = Arc::new(triple.clone());
            for reifier in reifiers {
                let part = self.reifies(reifier, &shared);
                out.push(part);
                self.look()?;
            }
        }
        let part = TriplePart::Triple(triple);
        self.record_part(&part);
        out.push(part);
        Ok(())
    }

    /// Adds a pattern with a path. Parts without alternatives and repetitions become triple patterns. Recursive.
    fn add_path(
        &mut self,
        subject: TermPattern,
        path: &PropertyPathExpression,
        object: ParsedObject,
        out: &mut Vec<TriplePart>,
    ) -> Parse<()> {
        use PropertyPathExpression as P;
        match path {
            P::NamedNode(p) => {
                // A long sequence of single predicates adds many patterns at once, so limits are checked for each.
                self.look()?;
                let triple = TriplePattern {
                    subject,
                    predicate: p.clone().into(),
                    object: object.term,
                };
                self.add_triple(triple, object.reifiers, out)?;
            }
            P::Reverse(p) => {
                let turned = ParsedObject {
                    term: subject,
                    ..object
                };
                return self.add_path(object.term, p, turned, out);
            }
            _ if !object.reifiers.is_empty() => {
                return Err(self.annotated_path(object.at));
            }
            P::Sequence(a, b) => {
                let middle = TermPattern::from(self.fresh_blank());
                let to = |term, at| ParsedObject {
                    term,
                    reifiers: vec![],
                    at,
                };
                self.add_path(subject, a, to(middle.clone(), object.at), out)?;
                self.add_path(middle, b, to(object.term, object.at), out)?;
            }
            path => {
                let part = TriplePart::Path(subject, path.clone(), object.term);
                self.record_part(&part);
                out.push(part);
            }
        }
        Ok(())
    }
}

/// Groups adjacent triples into basic graph patterns, in the order of the parts.
pub(super) fn joined(parts: Vec<TriplePart>) -> Vec<GraphPattern> {
    let mut triples = Vec::with_capacity(parts.len());
    let mut out = vec![];
    for part in parts {
        match part {
            TriplePart::Triple(t) => triples.push(t),
            TriplePart::Path(subject, path, object) => {
                if !triples.is_empty() {
                    out.push(GraphPattern::Bgp {
                        patterns: std::mem::take(&mut triples),
                    });
                }
                out.push(GraphPattern::Path {
                    subject,
                    path,
                    object,
                });
            }
        }
    }
    if !triples.is_empty() {
        out.push(GraphPattern::Bgp { patterns: triples });
    }
    out
}
