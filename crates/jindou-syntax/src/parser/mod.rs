//! Recursive descent over tokens. An error is recorded and unwinds to the next rule that can continue after it. If
//! there were errors, the algebra is discarded.

mod advised;
mod aggregates;
mod calls;
mod expression;
mod fault;
mod group;
mod intern;
mod iri;
mod path;
mod query;
mod record;
mod recover;
mod rules;
mod scope;
mod select;
mod terms;
mod triples;
mod unexpected;
mod update;
mod values;
mod words;

use crate::advice::FaultPlace;
use crate::algebra::{BaseIri, BlankNode, Variable};
use crate::keyword::Keyword;
use crate::lexer::{Lexer, Token, TokenKind};
use crate::options::{MOST_DEPTH, MOST_FAULTS, MOST_NESTING, ParserOptions};
use crate::source::ParserText;
use aggregates::AggregateFrame;
use intern::Interned;
use iri::QueryPrefixes;
use jindou_model::term::MAX_TRIPLE_NESTING;
use jindou_model::{Diagnostic, Error, Resource, scope as limits};
use oxiri::Iri;
use rustc_hash::{FxHashMap, FxHashSet};
use scope::Scopes;

/// Reason why a rule did not complete. The parser has recorded the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleHalt {
    /// An error in the text; parsing may continue at a later position.
    Fault,
    /// A limit was exceeded, or there were too many errors.
    Stop,
}

pub(crate) type Parse<T> = Result<T, RuleHalt>;

/// A part of the algebra, and its depth.
#[derive(Debug)]
pub(crate) struct Deep<T> {
    pub it: T,
    pub depth: u32,
}

/// Size in bytes of a part from which memory for it is checked before it is allocated.
const LARGE: usize = 1 << 16;
/// Number of tokens between two checks of the clock.
const BETWEEN: u32 = 512;

pub(crate) struct Parser<'t, 'o> {
    text: &'t str,
    source: &'t ParserText<'t>,
    options: &'o ParserOptions,
    lexer: Lexer<'t>,
    /// The next token, and the one after it if the parser has looked ahead.
    token: Token,
    ahead: Option<Token>,
    /// End of the last token that was read.
    behind: usize,
    /// Open brackets with their tokens.
    open: OpenBrackets,
    nesting: u32,
    /// Number of open triple terms.
    triples: usize,
    tokens: u32,

    base: Option<BaseIri>,
    prefixes: QueryPrefixes<'t>,
    interned: Interned<'t>,
    scopes: Scopes,
    names: FxHashMap<&'t str, u32>,
    variables: Vec<Variable>,
    /// Labels of blank nodes, each with the basic graph pattern that uses it, its token, and the node.
    labels: FxHashMap<&'t str, (u32, Token, BlankNode)>,
    block: u32,
    blank: Option<u128>,
    stem: Option<String>,
    generated: u32,
    frames: Vec<AggregateFrame>,
    /// Description of the position if aggregates are not allowed here, for the message.
    no_aggregate: Option<&'static str>,
    /// The graph that the current ADD, COPY or MOVE reads.
    copied_from: Option<crate::CopiedFrom>,
    /// Variables of the current expression that must be grouped, with their tokens.
    noted: Vec<(u32, Token)>,
    noting: bool,

    /// Calls of REGEX and REPLACE with constant patterns, if requested.
    pub(crate) patterns: Option<Vec<crate::PatternCall>>,
    /// Positions of parts of the query, if requested.
    pub(crate) recorder: Option<Box<record::Recorder>>,
    faults: Vec<Diagnostic>,
    last_fault: Option<usize>,
    /// Cache of [`Self::variable_after`]: the start of the statement that was last searched for a variable, and the
    /// result.
    variable_after: Option<(usize, Option<Token>)>,
    /// Position at which parsing continued after the last error.
    recovered: Option<usize>,
    stopped: Option<Error>,
}

/// Open brackets.
#[derive(Default)]
pub(crate) struct OpenBrackets {
    list: Vec<Token>,
    /// Indexes in `list` of the open braces.
    braces: Vec<usize>,
}

impl OpenBrackets {
    fn push(&mut self, token: Token) {
        if token.kind == TokenKind::OpenBrace {
            self.braces.push(self.list.len());
        }
        self.list.push(token);
    }

    fn truncate(&mut self, to: usize) {
        self.list.truncate(to);
        while self.braces.last().is_some_and(|b| *b >= to) {
            self.braces.pop();
        }
    }

    fn pop(&mut self) {
        self.truncate(self.list.len().saturating_sub(1));
    }

    fn last(&self) -> Option<Token> {
        self.list.last().copied()
    }

    fn len(&self) -> usize {
        self.list.len()
    }

    /// Index of the innermost open brace, if it is at least `level`.
    fn brace(&self, level: usize) -> Option<usize> {
        self.braces.last().copied().filter(|b| *b >= level)
    }
}

impl<'t, 'o> Parser<'t, 'o> {
    pub(crate) fn new(source: &'t ParserText<'t>, options: &'o ParserOptions) -> Self {
        let text = source.text();
        let mut lexer = Lexer::new(text);
        let token = lexer.next();
        Self {
            text,
            source,
            options,
            lexer,
            token,
            ahead: None,
            behind: 0,
            open: OpenBrackets::default(),
            nesting: 0,
            triples: 0,
            tokens: 0,
            base: options
                .base
                .as_ref()
                .map(|base| Iri::parse_unchecked(base.as_str().into())),
            prefixes: QueryPrefixes::default(),
            interned: Interned::default(),
            scopes: Scopes::default(),
            names: FxHashMap::with_capacity_and_hasher(14, Default::default()),
            variables: Vec::with_capacity(14),
            labels: FxHashMap::default(),
            block: 0,
            blank: None,
            stem: None,
            generated: 0,
            frames: vec![],
            no_aggregate: None,
            copied_from: None,
            noted: vec![],
            noting: false,
            patterns: None,
            recorder: None,
            faults: vec![],
            last_fault: None,
            variable_after: None,
            recovered: None,
            stopped: None,
        }
    }

    // --- tokens ---

    fn kind(&self) -> TokenKind {
        self.token.kind
    }

    fn is(&self, kind: TokenKind) -> bool {
        self.token.kind == kind
    }

    fn at_word(&self, word: Keyword) -> bool {
        self.token.kind == TokenKind::Word(word)
    }

    fn slice(&self, token: Token) -> &'t str {
        &self.text[token.start..token.end]
    }

    /// The token after the next one.
    fn ahead(&mut self) -> Token {
        if let Some(t) = self.ahead {
            return t;
        }
        let t = self.lexer.next();
        self.ahead = Some(t);
        t
    }

    /// Reads the next token.
    fn bump(&mut self) -> Parse<Token> {
        let token = self.token;
        match token.kind {
            TokenKind::OpenBrace
            | TokenKind::OpenParen
            | TokenKind::OpenBracket
            | TokenKind::OpenAnnotation
            | TokenKind::OpenReified
            | TokenKind::OpenTriple => self.open.push(token),
            TokenKind::CloseBrace
            | TokenKind::CloseParen
            | TokenKind::CloseBracket
            | TokenKind::CloseAnnotation
            | TokenKind::CloseReified => self.open.pop(),
            _ => {}
        }
        self.behind = token.end;
        self.token = match self.ahead.take() {
            Some(t) => t,
            None => self.lexer.next(),
        };
        self.tokens += 1;
        if self.faults.len() >= MOST_FAULTS {
            return Err(RuleHalt::Stop);
        }
        if self.tokens >= BETWEEN || limits::was_over() {
            self.look_at_limits()?;
        }
        Ok(token)
    }

    /// Stops parsing if no memory is left, or if the clock, when it was last read, was past the deadline.
    fn look(&mut self) -> Parse<()> {
        if limits::was_over() {
            self.look_at_limits()?;
        }
        Ok(())
    }

    /// Checks that memory for a part is available before it is allocated, if the part is large.
    fn room(&mut self, bytes: usize) -> Parse<()> {
        if bytes >= LARGE {
            return limits::look_for(bytes as u64).map_err(|e| self.stop(e));
        }
        self.look()
    }

    /// Stops parsing if its memory or time is used up. Reads the clock.
    #[cold]
    fn look_at_limits(&mut self) -> Parse<()> {
        self.tokens = 0;
        limits::look().map_err(|e| self.stop(e))
    }

    fn stop(&mut self, error: Error) -> RuleHalt {
        self.stopped.get_or_insert(error);
        RuleHalt::Stop
    }

    fn eat(&mut self, kind: TokenKind) -> Parse<bool> {
        let there = self.is(kind);
        if there {
            self.bump()?;
        }
        Ok(there)
    }

    fn eat_word(&mut self, word: Keyword) -> Parse<bool> {
        self.eat(TokenKind::Word(word))
    }

    fn expect(&mut self, kind: TokenKind, place: FaultPlace) -> Parse<Token> {
        if self.is(kind) {
            self.bump()
        } else {
            Err(self.unexpected(place))
        }
    }

    fn expect_word(&mut self, word: Keyword, place: FaultPlace) -> Parse<Token> {
        self.expect(TokenKind::Word(word), place)
    }

    /// Reads a closing bracket.
    fn close(&mut self, kind: TokenKind, place: FaultPlace) -> Parse<Token> {
        if self.is(kind) {
            return self.bump();
        }
        Err(self.unclosed(kind, place))
    }

    // --- depth ---

    /// Counts a level of nesting; [`Self::leave`] ends it.
    fn enter(&mut self) -> Parse<()> {
        self.nesting += 1;
        if self.nesting > MOST_NESTING {
            let at = self.told_place(self.token);
            let most = MOST_NESTING;
            return Err(self.stop(Error::limit(Resource::Form, format!(
                "{at}: brackets and calls nest more than {most} levels deep; bind inner parts to variables, or split the query"
            ))));
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.nesting -= 1;
    }

    /// Counts a level of triple terms; [`Self::leave_triple`] ends it.
    fn enter_triple(&mut self) -> Parse<()> {
        self.enter()?;
        self.triples += 1;
        if self.triples > MAX_TRIPLE_NESTING {
            let at = self.told_place(self.token);
            return Err(self.stop(Error::limit(
                Resource::Form,
                format!("{at}: triple terms nest more than {MAX_TRIPLE_NESTING} levels deep"),
            )));
        }
        Ok(())
    }

    fn leave_triple(&mut self) {
        self.triples -= 1;
        self.leave();
    }

    /// Wraps a part of the algebra with its depth; an error if it is too deep.
    fn deep<T>(&mut self, it: T, depth: u32) -> Parse<Deep<T>> {
        if depth > MOST_DEPTH {
            let at = self.told_place(self.token);
            let most = MOST_DEPTH;
            return Err(self.stop(Error::limit(Resource::Form, format!(
                "{at}: more than {most} operators in a row; group them with brackets, or split the query"
            ))));
        }
        Ok(Deep { it, depth })
    }

    fn told_place(&self, token: Token) -> String {
        let at = self.source.place(token.start);
        let (line, column) = jindou_model::diagnostic::place(self.source.original, at);
        format!("line {line}, column {column}")
    }

    // --- names ---

    fn variable_id(&mut self, token: Token) -> u32 {
        let name = &self.text[token.start + 1..token.end];
        let next = self.variables.len() as u32;
        let id = *self.names.entry(name).or_insert(next);
        if id == next {
            self.variables.push(Variable::new_unchecked(name));
            self.scopes.grow();
        }
        id
    }

    fn variable_of(&self, id: u32) -> Variable {
        self.variables[id as usize].clone()
    }

    /// Reads a variable.
    fn variable(&mut self, place: FaultPlace) -> Parse<(u32, Token)> {
        let token = self.expect(TokenKind::Variable, place)?;
        Ok((self.variable_id(token), token))
    }

    /// A variable whose name does not occur in the text.
    fn fresh_variable(&mut self) -> Variable {
        let text = self.text;
        let stem = self.stem.get_or_insert_with(|| free_stem(text));
        self.generated += 1;
        Variable::new_unchecked(format!("{stem}{}", self.generated))
    }

    /// A blank node whose label differs from that of all other blank nodes.
    fn fresh_blank(&mut self) -> BlankNode {
        let next = match self.blank {
            Some(last) => last.wrapping_add(1),
            None => {
                // The first one is random, and later ones count from it.
                let random = oxrdf::BlankNode::default();
                u128::from_str_radix(random.as_str(), 16).unwrap_or_default()
            }
        };
        self.blank = Some(next);
        BlankNode::new_from_unique_id(next)
    }

    /// Reads a blank node with a label.
    fn labelled(&mut self) -> Parse<BlankNode> {
        let token = self.bump()?;
        let label = &self.text[token.start + 2..token.end];
        let block = self.block;
        if let Some((there, before, node)) = self.labels.get(label) {
            let (there, before, node) = (*there, *before, node.clone());
            if there != block {
                self.shared_label(label, before, token);
            }
            return Ok(node);
        }
        self.room(160 + label.len())?;
        let node = BlankNode::new_unchecked(label);
        self.labels.insert(label, (block, token, node.clone()));
        Ok(node)
    }
}

/// A prefix for variable names that does not occur in the text. O(text).
fn free_stem(text: &str) -> String {
    const STEM: &str = "_gen";
    let text = text.as_bytes();
    // Numbers that directly follow the stem in the text.
    let mut taken = FxHashSet::default();
    let mut any = false;
    for at in memchr::memmem::find_iter(text, STEM) {
        any = true;
        let behind = &text[at + STEM.len()..];
        let digits = behind.iter().take(10).take_while(|b| b.is_ascii_digit());
        let digits = &behind[..digits.count()];
        if let Some(n) = std::str::from_utf8(digits)
            .ok()
            .and_then(|d| d.parse::<u64>().ok())
        {
            taken.insert(n);
        }
    }
    if !any {
        return STEM.to_owned();
    }
    let free = (0..).find(|n| !taken.contains(n)).unwrap_or(u64::MAX);
    format!("{STEM}{free}_")
}
