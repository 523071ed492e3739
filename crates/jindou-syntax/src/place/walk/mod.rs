//! Conversion of tokens to triple patterns, with a stack of the open groups.

mod words;

use super::path::PartialPath;
use super::{CursorPlace, Pattern, Slot};
use crate::keyword::Keyword;
use crate::lexer::{Token, TokenKind};

/// The bracket that opened a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpeningBracket {
    /// No bracket: the outermost level of the text.
    Top,
    Brace,
    Bracket,
    Paren,
    Annotation,
}

/// The construct of a group to which the next token belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupPart {
    Subject,
    Predicate,
    Object,
    /// An expression, or the keys of ORDER BY.
    Expression,
    /// The list of SELECT.
    Projection,
    /// Variables of VALUES.
    Columns,
    /// The rows of VALUES.
    Data,
    GraphName,
    ServiceName,
    PrefixName,
    PrefixIri,
    BaseIri,
    /// A keyword or a bracket.
    Word,
}

#[derive(Debug)]
struct OpenGroup {
    sign: OpeningBracket,
    part: GroupPart,
    subject: Option<String>,
    path: PartialPath,
    /// True if the predicate has no object yet.
    fresh: bool,
    /// True if the last object is a string, which may be followed by a language tag or a datatype.
    literal: bool,
    /// True directly after `^^`.
    datatype: bool,
    graph: Option<String>,
    /// True if the group is evaluated by another endpoint.
    foreign: bool,
    /// True if the group is a template, whose triples are created rather than matched.
    template: bool,
    /// True if the group is a sub-query, whose variables differ from those of the same name around it.
    own: bool,
    /// True if the cursor is inside the group.
    around: bool,
    patterns: Vec<Pattern>,
}

/// State after the tokens read so far.
pub(super) struct PlaceWalk<'t> {
    text: &'t str,
    stack: Vec<OpenGroup>,
    /// Patterns of groups that contain the cursor and have ended since.
    ended: Vec<Pattern>,
    prefixes: Vec<(String, String)>,
    prefix: String,
    base: Option<String>,
    dataset: [Vec<String>; 2],
    from: Option<bool>,
    hidden: String,
    invented: usize,
    /// The graph of the group that will be opened next.
    graph: Option<String>,
    service: bool,
    template: bool,
    values: bool,
    /// Nesting depth of `<<` at this point; 0 outside.
    terms: usize,
}

impl<'t> PlaceWalk<'t> {
    pub(super) fn new(text: &'t str, hidden: String) -> Self {
        let mut walk = Self {
            text,
            stack: Vec::new(),
            ended: Vec::new(),
            prefixes: Vec::new(),
            prefix: String::new(),
            base: None,
            dataset: Default::default(),
            from: None,
            hidden,
            invented: 0,
            graph: None,
            service: false,
            template: false,
            values: false,
            terms: 0,
        };
        walk.open(OpeningBracket::Top, GroupPart::Word, None);
        walk
    }

    fn open(&mut self, sign: OpeningBracket, part: GroupPart, subject: Option<String>) {
        let around = self.stack.last();
        let brace = sign == OpeningBracket::Brace;
        let graph = if brace { self.graph.take() } else { None };
        let group = OpenGroup {
            sign,
            part,
            subject,
            path: PartialPath::default(),
            fresh: false,
            literal: false,
            datatype: false,
            graph: graph.or_else(|| around.and_then(|g| g.graph.clone())),
            foreign: around.is_some_and(|g| g.foreign) || brace && self.service,
            template: around.is_some_and(|g| g.template) || brace && self.template,
            own: false,
            around: false,
            patterns: Vec::new(),
        };
        if brace {
            (self.service, self.template) = (false, false);
        }
        self.stack.push(group);
    }

    /// Ends the innermost group.
    fn leave(&mut self) {
        if self.stack.len() > 1
            && let Some(mut group) = self.stack.pop()
            && group.around
        {
            self.ended.append(&mut group.patterns);
            if group.own {
                // Patterns outside a sub-query do not restrict its variables.
                self.stack.iter_mut().for_each(|g| g.around = false);
            }
        }
    }

    /// Ends all groups up to and including the innermost one that was opened by this bracket. False if there is none
    /// inside the innermost braces.
    fn close(&mut self, sign: OpeningBracket) -> bool {
        let found = self.stack.iter().rposition(|g| {
            g.sign == sign || g.sign == OpeningBracket::Brace || g.sign == OpeningBracket::Top
        });
        let Some(at) = found.filter(|&at| self.stack[at].sign == sign && at > 0) else {
            return false;
        };
        while self.stack.len() > at {
            self.leave();
        }
        true
    }

    fn invent(&mut self) -> String {
        self.invented += 1;
        format!("?{}{}", self.hidden, self.invented)
    }

    fn top(&mut self) -> &mut OpenGroup {
        if self.stack.is_empty() {
            self.open(OpeningBracket::Top, GroupPart::Word, None);
        }
        let last = self.stack.len() - 1;
        &mut self.stack[last]
    }

    pub(super) fn token(&mut self, token: Token) {
        let text = self.text.get(token.range()).unwrap_or_default();
        if self.terms > 0 && self.in_term(token.kind) {
            return;
        }
        match token.kind {
            TokenKind::OpenBrace => self.brace(),
            TokenKind::CloseBrace => {
                if self.close(OpeningBracket::Brace) {
                    let group = self.top();
                    group.part = match group.sign {
                        OpeningBracket::Top => GroupPart::Word,
                        OpeningBracket::Paren => GroupPart::Expression,
                        _ => GroupPart::Subject,
                    };
                }
            }
            TokenKind::OpenAnnotation => {
                self.open(OpeningBracket::Annotation, GroupPart::Predicate, None)
            }
            TokenKind::CloseAnnotation => {
                self.close(OpeningBracket::Annotation);
            }
            TokenKind::OpenReified | TokenKind::OpenTriple => self.terms = 1,
            _ => self.within(token, text),
        }
    }

    /// Processes a token inside `<< … >>`. False if the token shows that the closing bracket was forgotten.
    fn in_term(&mut self, kind: TokenKind) -> bool {
        match kind {
            TokenKind::OpenReified | TokenKind::OpenTriple => self.terms += 1,
            TokenKind::CloseReified => {
                self.terms -= 1;
                if self.terms == 0 {
                    let node = self.invent();
                    self.term(TokenKind::Blank, &node);
                }
            }
            TokenKind::OpenBrace | TokenKind::CloseBrace => {
                self.terms = 0;
                return false;
            }
            _ => {}
        }
        true
    }

    fn brace(&mut self) {
        let values = std::mem::take(&mut self.values);
        let part = if values {
            GroupPart::Data
        } else {
            GroupPart::Subject
        };
        self.open(OpeningBracket::Brace, part, None);
    }

    fn within(&mut self, token: Token, text: &str) {
        if let TokenKind::Word(word) = token.kind
            && self.word(word)
        {
            return;
        }
        let group = self.top();
        match group.part {
            GroupPart::Subject | GroupPart::Predicate | GroupPart::Object => {
                self.triple(token, text)
            }
            GroupPart::PrefixName => {
                if token.kind == TokenKind::Namespace {
                    text.trim_end_matches(':').clone_into(&mut self.prefix);
                    self.top().part = GroupPart::PrefixIri;
                }
            }
            GroupPart::PrefixIri | GroupPart::BaseIri => {
                let is_base = group.part == GroupPart::BaseIri;
                group.part = GroupPart::Word;
                if token.kind == TokenKind::Iri {
                    let iri = text.trim_matches(['<', '>']).to_owned();
                    if is_base {
                        self.base = Some(iri);
                    } else {
                        let prefix = std::mem::take(&mut self.prefix);
                        self.prefixes.push((prefix, iri));
                    }
                }
            }
            GroupPart::GraphName | GroupPart::ServiceName => {
                if token.kind.is_iri() || token.kind == TokenKind::Variable {
                    if group.part == GroupPart::GraphName {
                        let name = named(token.kind, text);
                        match self.from.take() {
                            Some(is_named) => self.dataset[usize::from(is_named)].push(name),
                            None => self.graph = Some(name),
                        }
                    }
                    self.top().part = GroupPart::Word;
                }
            }
            _ => self.other(token),
        }
    }

    /// Processes a token that does not belong to a triple.
    fn other(&mut self, token: Token) {
        let part = self.top().part;
        match token.kind {
            TokenKind::OpenParen => {
                let inner = match part {
                    GroupPart::Columns | GroupPart::Data => part,
                    _ => GroupPart::Expression,
                };
                self.open(OpeningBracket::Paren, inner, None);
            }
            TokenKind::CloseParen if self.close(OpeningBracket::Paren) => {
                let group = self.top();
                // The bracket may end a FILTER or a BIND of the group; other brackets in expressions end nothing.
                if group.sign == OpeningBracket::Brace && group.part == GroupPart::Expression {
                    group.part = GroupPart::Subject;
                }
            }
            TokenKind::Dot => {
                let group = self.top();
                if group.sign == OpeningBracket::Brace && group.part != GroupPart::Data {
                    group.part = GroupPart::Subject;
                }
            }
            TokenKind::Semicolon if self.top().sign == OpeningBracket::Top => {
                self.top().part = GroupPart::Word
            }
            TokenKind::CloseBracket => {
                self.close(OpeningBracket::Bracket);
            }
            _ => {}
        }
    }

    /// Processes a token of a triple.
    fn triple(&mut self, token: Token, text: &str) {
        let group = self.top();
        let sign = group.sign;
        if group.part == GroupPart::Predicate && group.path.sign(token.kind, text) {
            if group.path.is_done() {
                group.part = GroupPart::Object;
                group.fresh = true;
            }
            return;
        }
        // In `a/b` and `a*` the path continues, but in `a +5` a number follows.
        let number = matches!(token.kind, TokenKind::Plus | TokenKind::Minus)
            && self
                .text
                .as_bytes()
                .get(token.end)
                .is_some_and(u8::is_ascii_digit);
        let group = self.top();
        let goes_on = group.part == GroupPart::Object && group.fresh && !number;
        if goes_on && token.kind != TokenKind::OpenParen && group.path.sign(token.kind, text) {
            if !group.path.is_done() {
                group.part = GroupPart::Predicate;
            }
            return;
        }
        match token.kind {
            TokenKind::Dot => {
                self.close_open_brackets();
                let group = self.top();
                if matches!(group.sign, OpeningBracket::Brace | OpeningBracket::Top) {
                    group.part = GroupPart::Subject;
                }
            }
            TokenKind::Semicolon => {
                if sign == OpeningBracket::Paren {
                    return;
                }
                let group = self.top();
                group.part = GroupPart::Predicate;
                group.path = PartialPath::default();
                group.fresh = false;
            }
            TokenKind::Comma => {
                let group = self.top();
                if group.part == GroupPart::Object {
                    group.fresh = false;
                }
            }
            TokenKind::OpenBracket => {
                let node = self.invent();
                self.term(TokenKind::Blank, &node);
                self.open(OpeningBracket::Bracket, GroupPart::Predicate, Some(node));
            }
            TokenKind::CloseBracket => {
                self.close(OpeningBracket::Bracket);
            }
            TokenKind::OpenParen => {
                let node = self.invent();
                self.term(TokenKind::Blank, &node);
                self.open(OpeningBracket::Paren, GroupPart::Object, None);
            }
            TokenKind::CloseParen => {
                self.close(OpeningBracket::Paren);
            }
            TokenKind::DoubleCaret => {
                let group = self.top();
                group.datatype = group.literal;
            }
            TokenKind::Language => {
                let group = self.top();
                if std::mem::take(&mut group.literal)
                    && let Some(last) = group.patterns.last_mut()
                {
                    last.object.push_str(text);
                }
            }
            TokenKind::Blank => {
                let label: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
                let node = format!("?{}b{label}", self.hidden);
                self.term(TokenKind::Blank, &node);
            }
            TokenKind::Variable => {
                self.term(TokenKind::Variable, &named(TokenKind::Variable, text))
            }
            TokenKind::A
            | TokenKind::Iri
            | TokenKind::Prefixed
            | TokenKind::Namespace
            | TokenKind::String
            | TokenKind::Integer
            | TokenKind::Decimal
            | TokenKind::Double
            | TokenKind::Word(_) => self.term(token.kind, text),
            _ => {}
        }
    }

    /// Closes brackets whose closing bracket was forgotten: a dot cannot occur inside `[` or `(`.
    fn close_open_brackets(&mut self) {
        while self.stack.len() > 1
            && matches!(
                self.top().sign,
                OpeningBracket::Bracket | OpeningBracket::Paren | OpeningBracket::Annotation
            )
        {
            self.leave();
        }
    }

    /// Processes a term of a triple.
    fn term(&mut self, kind: TokenKind, text: &str) {
        let group = self.top();
        if std::mem::take(&mut group.datatype) {
            if let Some(last) = group.patterns.last_mut() {
                last.object.push_str("^^");
                last.object.push_str(text);
            }
            group.literal = false;
            return;
        }
        group.literal = false;
        match group.part {
            GroupPart::Subject => {
                group.subject = Some(text.to_owned());
                group.path = PartialPath::default();
                group.part = GroupPart::Predicate;
            }
            GroupPart::Predicate => {
                group.path.name(kind, text);
                if group.path.is_done() {
                    group.part = GroupPart::Object;
                    group.fresh = true;
                }
            }
            GroupPart::Object if group.sign != OpeningBracket::Paren => {
                group.fresh = false;
                if let Some(subject) = &group.subject
                    && group.path.is_done()
                    && !group.template
                {
                    let pattern = Pattern {
                        subject: subject.clone(),
                        predicate: group.path.text(),
                        object: text.to_owned(),
                        graph: group.graph.clone(),
                    };
                    group.patterns.push(pattern);
                    group.literal = kind == TokenKind::String;
                }
            }
            _ => {}
        }
    }

    /// The position after the tokens read so far. Its patterns are not complete: [`Self::patterns`] returns the others.
    pub(super) fn place(&mut self, from: usize) -> CursorPlace {
        let foreign = self.stack.iter().any(|g| g.foreign);
        let in_term = self.terms > 0;
        let group = self.top();
        let mut slot = match group.part {
            GroupPart::Subject => Slot::Subject,
            GroupPart::Predicate if group.path.wants_operand() => Slot::Predicate,
            GroupPart::Predicate => Slot::Nothing,
            GroupPart::Object => Slot::Object,
            GroupPart::Expression => Slot::Expression,
            GroupPart::Projection | GroupPart::Columns => Slot::Variable,
            GroupPart::GraphName => Slot::Graph,
            GroupPart::PrefixName => Slot::Prefix,
            GroupPart::Word => Slot::Keyword,
            GroupPart::Data
            | GroupPart::ServiceName
            | GroupPart::PrefixIri
            | GroupPart::BaseIri => Slot::Nothing,
        };
        if foreign || in_term {
            slot = Slot::Nothing;
        }
        let mut subject = group
            .subject
            .clone()
            .filter(|_| group.sign != OpeningBracket::Paren);
        let predicate =
            (slot == Slot::Object && group.sign != OpeningBracket::Paren && subject.is_some())
                .then(|| group.path.text());
        let graph = group.graph.clone();
        let (steps, inverse) = match slot {
            Slot::Predicate => group.path.so_far(),
            _ => (None, false),
        };
        let template = group.template;
        let mut patterns = Vec::new();
        if let (Some(steps), Some(from)) = (steps, &subject) {
            let node = self.invent();
            if !template {
                patterns.push(Pattern {
                    subject: from.clone(),
                    predicate: steps,
                    object: node.clone(),
                    graph: graph.clone(),
                });
            }
            subject = Some(node);
        }
        for group in &mut self.stack {
            group.around = true;
        }
        CursorPlace {
            slot,
            from,
            subject,
            predicate,
            inverse,
            graph,
            patterns,
            prefixes: self.prefixes.clone(),
            base: self.base.clone(),
            dataset: self.dataset.clone(),
            variables: Vec::new(),
        }
    }

    /// Reads the tokens after the cursor, except for the rest of the triple at the cursor.
    pub(super) fn go_on(&mut self, text: &'t str, tokens: &[Token]) {
        let mut depth = 0usize;
        let end = tokens.iter().position(|t| {
            match t.kind {
                TokenKind::OpenBrace | TokenKind::OpenBracket | TokenKind::OpenParen => depth += 1,
                TokenKind::CloseBrace | TokenKind::CloseBracket | TokenKind::CloseParen
                    if depth > 0 =>
                {
                    depth -= 1
                }
                TokenKind::CloseBrace
                | TokenKind::CloseBracket
                | TokenKind::Dot
                | TokenKind::Semicolon => {
                    return depth == 0;
                }
                // Another clause of the group, before which the dot is missing.
                TokenKind::Word(
                    Keyword::Filter
                    | Keyword::Optional
                    | Keyword::Bind
                    | Keyword::Minus
                    | Keyword::Values
                    | Keyword::Graph
                    | Keyword::Service,
                ) => return depth == 0,
                _ => {}
            }
            false
        });
        self.text = text;
        for &token in tokens
            .get(end.unwrap_or(tokens.len())..)
            .unwrap_or_default()
        {
            self.token(token);
        }
    }

    /// Patterns of the groups that contain the cursor, up to the innermost one that is a sub-query.
    pub(super) fn patterns(mut self) -> Vec<Pattern> {
        let from = self
            .stack
            .iter()
            .rposition(|g| g.around && g.own)
            .unwrap_or(0);
        let mut all = self.ended;
        for group in self.stack.drain(from..).filter(|g| g.around) {
            all.extend(group.patterns);
        }
        all
    }
}

/// A term in SPARQL syntax, with `?` for variables.
fn named(kind: TokenKind, text: &str) -> String {
    match kind {
        TokenKind::Variable => format!("?{}", text.get(1..).unwrap_or_default()),
        _ => text.to_owned(),
    }
}
