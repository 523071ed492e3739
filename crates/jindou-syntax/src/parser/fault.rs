//! Faults, written down with their remedies.

use super::{Halt, Parser};
use crate::advice::{Place, foreign, nearest};
use crate::keyword::Keyword as K;
use crate::lexer::{Bad, Kind, Token};
use crate::prefixes::{COMMON_PREFIXES, common};
use jindou_model::diagnostic::{Diagnostic, DiagnosticKind as D, place};
use std::ops::Range;

/// Longest piece of the text that a message repeats, in characters.
const SHOWN: usize = 40;

fn shortened(text: &str) -> String {
    let mut out = String::new();
    for (n, c) in text.chars().enumerate() {
        if n == SHOWN {
            out.push('…');
            break;
        }
        if c.is_control() {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

impl<'t> Parser<'t, '_> {
    // --- writing down ---

    pub(super) fn diagnostic(&self, range: Range<usize>, kind: D, message: String) -> Diagnostic {
        // Those behind the last that is reported are not worth a look at the text.
        let (text, range) = if self.faults.len() < self.options.most_faults {
            (self.source.original, self.source.range(range))
        } else {
            ("", 0..0)
        };
        Diagnostic::new(text, range, kind, message)
    }

    /// Writes a fault down, unless one at the same place was.
    pub(super) fn fault(&mut self, d: Diagnostic) {
        if self.last_fault == Some(d.start) || self.faults.len() >= self.options.most_faults {
            return;
        }
        self.last_fault = Some(d.start);
        self.faults.push(d);
    }

    /// Writes a fault down that ends a rule.
    fn halt(&mut self, d: Diagnostic) -> Halt {
        self.fault(d);
        if self.faults.len() >= self.options.most_faults {
            Halt::Stop
        } else {
            Halt::Fault
        }
    }

    /// The faults and the limit that were met.
    pub(crate) fn outcome(self) -> (Vec<Diagnostic>, Option<jindou_model::Error>) {
        (self.faults, self.stopped)
    }

    fn with(
        &self,
        d: Diagnostic,
        text: impl Into<String>,
        range: Range<usize>,
        with: impl Into<String>,
    ) -> Diagnostic {
        let range = self.source.range(range);
        d.replace(text, range, with)
    }

    /// A token as a person would say it.
    fn said(&self, token: Token) -> String {
        let text = shortened(self.slice(token));
        match token.kind {
            Kind::End => "the end of the text".into(),
            Kind::Iri => format!("the IRI {text}"),
            Kind::Prefixed => format!("the name {text}"),
            Kind::Namespace => format!("the prefix {text}"),
            Kind::Blank => format!("the blank node {text}"),
            Kind::Variable => format!("the variable {text}"),
            Kind::String => format!("the string {text}"),
            Kind::Language => format!("the language tag {text}"),
            Kind::Integer | Kind::Decimal | Kind::Double => format!("the number {text}"),
            Kind::Word(K::Unknown) => format!("the word {text}"),
            Kind::A => "the word a".into(),
            Kind::Word(_) => text,
            Kind::Bad(Bad::Character) => format!("the character {text}"),
            _ => format!("'{text}'"),
        }
    }

    fn place_of(&self, token: Token) -> (u64, u64) {
        place(self.source.original, self.source.place(token.start))
    }

    // --- unexpected tokens ---

    /// The next token cannot stand here.
    pub(super) fn unexpected(&mut self, place: Place) -> Halt {
        let token = self.token;
        let expected = place.expected();
        let found = self.said(token);
        let message = format!("found {found}, expected {expected}");
        let d = self.diagnostic(token.range(), D::Unexpected, message);
        let mut d = self.advised(d, token, place);
        d.found.get_or_insert(found);
        d.expected.get_or_insert(expected);
        self.halt(d)
    }

    /// The closing bracket is missing.
    pub(super) fn unclosed(&mut self, kind: Kind, place: Place) -> Halt {
        let token = self.token;
        let other = matches!(
            token.kind,
            Kind::End | Kind::CloseBrace | Kind::CloseParen | Kind::CloseBracket
        ) || matches!(token.kind, Kind::Word(_)) && self.begins_other(token);
        let cascade = token.kind == Kind::End && self.faults.iter().any(|f| f.kind != D::Bracket);
        if cascade {
            return Halt::Fault;
        }
        if let Some(open) = self.open.last()
            && other
            && token.kind != kind
        {
            let bracket = self.slice(open);
            let close = match kind {
                Kind::CloseBrace => "}",
                Kind::CloseParen => ")",
                Kind::CloseBracket => "]",
                Kind::CloseAnnotation => "|}",
                _ => ">>",
            };
            let (line, column) = self.place_of(token);
            let before = match token.kind {
                Kind::End => "the text ends".to_owned(),
                _ => format!("{} comes at line {line}, column {column}", self.said(token)),
            };
            let d = self.diagnostic(
                open.range(),
                D::Bracket,
                format!("this {bracket} is never closed: {before} before its {close}"),
            );
            let at = self.behind;
            let d = self.with(d, format!("write {close} where it ends"), at..at, close);
            return self.halt(d);
        }
        self.unexpected(place)
    }

    fn begins_other(&self, token: Token) -> bool {
        matches!(
            token.kind,
            Kind::Word(
                K::Filter
                    | K::Optional
                    | K::Bind
                    | K::Values
                    | K::Graph
                    | K::Minus
                    | K::Service
                    | K::Union
                    | K::Where
                    | K::Order
                    | K::Group
                    | K::Limit
                    | K::Having
            )
        )
    }

    /// The plain message with what is known of the token at the place.
    #[allow(clippy::too_many_lines)]
    fn advised(&mut self, d: Diagnostic, token: Token, place: Place) -> Diagnostic {
        let text = self.slice(token);
        let new =
            |p: &Self, kind, message: &str| p.diagnostic(token.range(), kind, message.to_owned());
        // A # directly behind a name begins a comment.
        if self.text.as_bytes().get(self.behind) == Some(&b'#')
            && self.behind > 0
            && !self.text.as_bytes()[self.behind - 1].is_ascii_whitespace()
            && self.text[..self.behind].ends_with(|c: char| c.is_alphanumeric() || c == ':')
        {
            let at = self.behind;
            let d = self.diagnostic(
                at..at + 1,
                D::Character,
                "from this # on, the line is a comment".into(),
            );
            return self.with(
                d,
                "within a name, write \\# , or write the IRI out between < and >",
                at..at + 1,
                "\\#",
            );
        }
        match (token.kind, place) {
            (Kind::Bad(bad), _) => return self.bad_token(token, bad),
            (Kind::Less, _) if self.looks_like_iri(token).is_some() => {
                let (range, with) = self.looks_like_iri(token).unwrap_or_default();
                let d = self.diagnostic(
                    range.clone(),
                    D::Iri,
                    "an IRI holds no spaces, quotes or braces".into(),
                );
                return self.with(d, "write %20 for a space", range, with);
            }
            (Kind::Word(word), Place::Query) if begins_update(word) => {
                return new(
                    self,
                    D::UpdateNotQuery,
                    "this is an update, and a query is read here",
                );
            }
            (
                Kind::Word(word @ (K::Select | K::Ask | K::Construct | K::Describe)),
                Place::Operation,
            ) => {
                let _ = word;
                return new(
                    self,
                    D::QueryNotUpdate,
                    "this is a query, and an update is read here",
                );
            }
            (Kind::End, Place::Query) => {
                return new(self, D::Empty, "the text holds no query")
                    .suggest("a query looks like SELECT * WHERE { ?s ?p ?o } LIMIT 10");
            }
            (Kind::Language, Place::Query | Place::Operation)
                if matches!(text, "@prefix" | "@base") =>
            {
                let word = text[1..].to_ascii_uppercase();
                let d = new(
                    self,
                    D::NotSparql,
                    "declarations of SPARQL have no @, and no dot at their end",
                );
                return self.with(d, format!("write {word}"), token.range(), word);
            }
            (Kind::Dot | Kind::Semicolon, Place::Query | Place::Operation) if self.behind > 0 => {
                let d = new(
                    self,
                    D::Unexpected,
                    "a declaration ends without a dot or semicolon",
                );
                return self.with(d, "leave it away", token.range(), "");
            }
            (Kind::Semicolon, Place::AfterQuery) => {
                let d = new(self, D::Unexpected, "a query ends without a semicolon");
                return self.with(d, "leave the semicolon away", token.range(), "");
            }
            (Kind::CloseBrace, Place::AfterQuery | Place::AfterOperation) => {
                let d = new(self, D::Bracket, "this } has no {");
                return self.with(
                    d,
                    "leave it away, or open the group that it closes",
                    token.range(),
                    "",
                );
            }
            (Kind::CloseParen, Place::GroupBody | Place::AfterTriples | Place::Where) => {
                let d = new(self, D::Bracket, "this ) has no (");
                return self.with(
                    d,
                    "leave it away, or open what it closes",
                    token.range(),
                    "",
                );
            }
            (Kind::Word(K::Select | K::Ask | K::Construct | K::Describe), Place::AfterQuery) => {
                return new(
                    self,
                    D::Unexpected,
                    "a second query begins here; one is read at a time",
                )
                .suggest("send them one after the other");
            }
            (Kind::Word(word), Place::AfterQuery) if begins_update(word) => {
                return new(self, D::Unexpected, "an update begins behind the query")
                    .suggest("send them one after the other");
            }
            (Kind::OpenBrace, Place::Projection) => {
                let d = new(self, D::Unexpected, "SELECT does not say what it chooses");
                let at = token.start;
                return self.with(d, "write * for all variables", at..at, "* ");
            }
            (Kind::Word(K::Where | K::From), Place::Projection) => {
                let d = new(self, D::Unexpected, "SELECT does not say what it chooses");
                let at = token.start;
                return self.with(d, "write * for all variables", at..at, "* ");
            }
            (Kind::Word(word), Place::Projection | Place::Where) if super::calls::is_call(word) => {
                return self.bare_call(token);
            }
            (Kind::Word(K::As), Place::Where) => {
                let d = new(
                    self,
                    D::Unexpected,
                    "a value with a name stands in brackets",
                );
                return d.suggest("write SELECT (?x AS ?name)");
            }
            (Kind::Comma, Place::Where | Place::Projection) => {
                let d = new(
                    self,
                    D::Unexpected,
                    "what SELECT chooses is written without commas",
                );
                return self.with(d, "leave the comma away", token.range(), "");
            }
            (Kind::Semicolon | Kind::Dot, Place::Where) => {
                return new(self, D::Unexpected, "a pattern in braces is missing")
                    .suggest("write WHERE { ?s ?p ?o }");
            }
            (Kind::End, Place::Where | Place::SubWhere) => {
                return new(
                    self,
                    D::Unexpected,
                    "the text ends where WHERE { … } should stand",
                )
                .suggest("write WHERE { ?s ?p ?o }");
            }
            (_, Place::Where) if self.starts_subject() => {
                let d = new(self, D::Bracket, "the pattern stands in braces");
                let at = token.start;
                return self.with(d, "write { before it and } behind it", at..at, "{ ");
            }
            (
                Kind::Word(K::Limit | K::Offset | K::Order | K::Group | K::Having),
                Place::GroupBody,
            ) => {
                return new(self, D::Order, &format!("{} stands behind the closing }} of WHERE", text.to_ascii_uppercase()))
                    .suggest("move it behind the }, or put the part with it into braces with a SELECT of its own");
            }
            (Kind::Word(K::Not | K::Exists), Place::GroupBody) => {
                let d = new(self, D::Unexpected, "a condition stands behind FILTER");
                let at = token.start;
                return self.with(d, "write FILTER before it", at..at, "FILTER ");
            }
            (Kind::Word(K::Union), Place::GroupBody) => {
                return new(
                    self,
                    D::Unexpected,
                    "UNION stands between two groups in braces",
                )
                .suggest("write { … } UNION { … }");
            }
            (Kind::Word(K::Select), Place::GroupBody) => {
                let d = new(
                    self,
                    D::Unexpected,
                    "a SELECT within a pattern stands in braces of its own",
                );
                let at = token.start;
                return self.with(d, "write { SELECT … }", at..at, "{ ");
            }
            (Kind::Word(word), Place::GroupBody) if super::calls::is_call(word) => {
                return new(
                    self,
                    D::Unexpected,
                    "an expression stands behind FILTER or in BIND",
                )
                .suggest("write FILTER(…) for a condition, or BIND(… AS ?x) for a value");
            }
            (Kind::Semicolon, Place::GroupBody | Place::Template) => {
                return new(
                    self,
                    D::Unexpected,
                    "a semicolon stands behind an object and before the next predicate",
                )
                .suggest("end triples with a dot");
            }
            (Kind::Dot, Place::GroupBody) => {
                let d = new(self, D::Unexpected, "this dot stands behind no triple");
                return self.with(d, "leave it away", token.range(), "");
            }
            (
                Kind::Equal
                | Kind::NotEqual
                | Kind::Greater
                | Kind::GreaterOrEqual
                | Kind::Less
                | Kind::LessOrEqual,
                Place::Verb | Place::GroupBody | Place::AfterTriples,
            ) => {
                return new(self, D::Unexpected, "a comparison stands in FILTER")
                    .suggest("write FILTER(?x = 1) for a condition, or BIND(1 AS ?x) for a value");
            }
            (Kind::Minus, Place::Verb | Place::AfterTriples | Place::Object | Place::Where)
                if self.behind == token.start =>
            {
                return new(
                    self,
                    D::Character,
                    "a variable's name holds letters, digits and _ only",
                )
                .suggest("write _ for -");
            }
            (Kind::Question, _) => {
                return new(
                    self,
                    D::Character,
                    "a variable's name follows its ? directly",
                )
                .suggest("write ?name");
            }
            (Kind::Dot | Kind::CloseBrace, Place::Verb) => {
                return new(self, D::Unexpected, "a triple is a subject, a predicate and an object; here only the subject stands")
                    .suggest("write the predicate and the object behind it");
            }
            (Kind::Dot | Kind::CloseBrace | Kind::Semicolon | Kind::Comma, Place::Object) => {
                return new(self, D::Unexpected, "the triple has no object")
                    .suggest("write a variable, an IRI or a literal behind the predicate");
            }
            (
                Kind::String | Kind::Integer | Kind::Decimal | Kind::Double,
                Place::Verb | Place::VerbOfTemplate,
            ) => {
                return new(self, D::Unexpected, "a literal is no predicate")
                    .suggest("a predicate is an IRI, a prefixed name, a variable, or a");
            }
            (Kind::Blank | Kind::OpenBracket, Place::Verb | Place::VerbOfTemplate) => {
                return new(self, D::BlankNode, "a blank node is no predicate")
                    .suggest("write a variable");
            }
            (Kind::Equal, Place::Operand) if self.double(token, b'=') => {
                let d = self.diagnostic(
                    token.start - 1..token.end,
                    D::Unexpected,
                    "equality is a single =".into(),
                );
                return self.with(d, "write =", token.start - 1..token.end, "=");
            }
            (Kind::Greater, Place::Operand) if self.double(token, b'<') => {
                let d = self.diagnostic(
                    token.start - 1..token.end,
                    D::Unexpected,
                    "SPARQL writes 'not equal' as !=".into(),
                );
                return self.with(d, "write !=", token.start - 1..token.end, "!=");
            }
            (Kind::Greater | Kind::Less, Place::Operand) if self.double(token, b'=') => {
                let right = if token.kind == Kind::Less { "<=" } else { ">=" };
                let d = self.diagnostic(
                    token.start - 1..token.end,
                    D::Unexpected,
                    format!("the sign is {right}"),
                );
                return self.with(
                    d,
                    format!("write {right}"),
                    token.start - 1..token.end,
                    right,
                );
            }
            (Kind::Iri, Place::AfterOperand | Place::AfterArgument) if text == "<>" => {
                let d = new(self, D::Unexpected, "SPARQL writes 'not equal' as !=");
                return self.with(d, "write !=", token.range(), "!=");
            }
            (Kind::CloseParen, Place::As) => {
                let d = new(self, D::Unexpected, "the value has no name");
                let at = token.start;
                return self.with(d, "write (… AS ?name)", at..at, " AS ?name");
            }
            (_, Place::Direction(word)) if token.kind != Kind::Variable => {
                let word = word.text();
                return new(
                    self,
                    D::Unexpected,
                    &format!("{word} stands before what it orders by, in brackets"),
                )
                .suggest(format!("write ORDER BY {word}(?x)"));
            }
            (Kind::Word(word), Place::AfterOperation) if begins_update(word) => {
                let d = new(
                    self,
                    D::Unexpected,
                    "a semicolon stands between two updates",
                );
                let at = self.behind;
                return self.with(d, "write it behind the first", at..at, " ;");
            }
            (Kind::Pipe, Place::AfterOperand | Place::AfterArgument | Place::AfterComparison) => {
                let d = new(self, D::Unexpected, "SPARQL writes 'or' as ||");
                return self.with(d, "write ||", token.range(), "||");
            }
            (Kind::Comma, Place::AfterOperand) => {
                return new(self, D::Unexpected, "brackets hold one expression here")
                    .suggest("join conditions with && or ||");
            }
            (_, Place::AfterComparison) if comparison(token.kind) => {
                return new(self, D::Unexpected, "comparisons do not chain")
                    .suggest("write ?a < ?b && ?b < ?c");
            }
            (Kind::OpenBrace, Place::Operand | Place::Filter) => {
                let d = new(
                    self,
                    D::Unexpected,
                    "a pattern is a condition behind EXISTS or NOT EXISTS only",
                );
                let at = token.start;
                return self.with(d, "write EXISTS before it", at..at, "EXISTS ");
            }
            (Kind::Word(K::Select), Place::Operand) => {
                return new(self, D::NotSparql, "a SELECT is no value in SPARQL")
                    .suggest("put { SELECT … } into the pattern, and use its variable here");
            }
            (Kind::CloseParen, Place::Operand) => {
                return new(self, D::Unexpected, "a value is missing before this )")
                    .suggest("write a variable, a literal or a call");
            }
            (Kind::Star, Place::Operand) => {
                return new(
                    self,
                    D::Unexpected,
                    "* stands in COUNT(*) and behind SELECT only",
                )
                .suggest("name the variable");
            }
            (Kind::Variable | Kind::Bang | Kind::String, Place::Filter) => {
                let d = new(
                    self,
                    D::Bracket,
                    "the condition of FILTER stands in brackets",
                );
                let at = token.start;
                return self.with(d, "write FILTER( before it and ) behind it", at..at, "(");
            }
            (Kind::Variable, Place::Direction(word)) => {
                let name = text;
                let word = word.text();
                let d = new(
                    self,
                    D::Bracket,
                    &format!("what {word} orders by stands in brackets behind it"),
                );
                return self.with(
                    d,
                    format!("write {word}({name})"),
                    token.range(),
                    format!("({name})"),
                );
            }
            (Kind::Comma, Place::AfterQuery) => {
                return new(self, D::Unexpected, "this is written without commas").suggest("write LIMIT 10 OFFSET 20, and what is ordered or grouped by with spaces between");
            }
            (Kind::Word(K::Asc | K::Desc), Place::AfterQuery) => {
                let word = text.to_ascii_uppercase();
                return new(
                    self,
                    D::Unexpected,
                    &format!("{word} stands before what it orders by"),
                )
                .suggest(format!("write ORDER BY {word}(?x)"));
            }
            (Kind::Prefixed | Kind::Namespace, Place::DatasetGraph | Place::DeclaredIri) => {
                return new(self, D::Unexpected, "the IRI stands between < and > here")
                    .suggest("write <http://…>");
            }
            (Kind::Word(_) | Kind::String, Place::DeclaredIri) => {
                return new(self, D::Iri, "the IRI stands between < and >")
                    .suggest("write PREFIX ex: <http://example.org/>");
            }
            (Kind::Prefixed, Place::DeclaredPrefix) => {
                return new(
                    self,
                    D::Unexpected,
                    "a prefix is declared with its colon and an IRI",
                )
                .suggest("write PREFIX ex: <http://example.org/>");
            }
            (Kind::Variable, Place::Number(word)) => {
                return new(
                    self,
                    D::Number,
                    &format!("{} needs a number, not a variable", word.text()),
                )
                .suggest(format!("write {} 10", word.text()));
            }
            (Kind::Minus, Place::Number(word)) => {
                return new(
                    self,
                    D::Number,
                    &format!("{} cannot be negative", word.text()),
                );
            }
            (Kind::Word(K::Into), Place::QuadsOpen) => {
                return new(self, D::NotSparql, "SPARQL has no INSERT INTO")
                    .suggest("write INSERT DATA { GRAPH <g> { … } }");
            }
            (Kind::Word(K::From), Place::QuadsOpen) => {
                return new(self, D::NotSparql, "SPARQL has no DELETE FROM")
                    .suggest("write DELETE WHERE { GRAPH <g> { … } }");
            }
            (Kind::Variable, Place::DataValue) => {
                return new(self, D::NotConstant, "VALUES holds constants, no variables")
                    .suggest("write UNDEF for no value");
            }
            (Kind::Blank, Place::DataValue) => {
                return new(self, D::BlankNode, "VALUES holds no blank nodes");
            }
            (
                Kind::Comma,
                Place::DataValue
                | Place::Row
                | Place::ValuesVariables
                | Place::Member
                | Place::OrderCondition
                | Place::GroupCondition,
            ) => {
                let d = new(self, D::Unexpected, "this is written without commas");
                return self.with(d, "leave the comma away", token.range(), "");
            }
            (Kind::Word(_) | Kind::A | Kind::Prefixed, Place::AsVariable) => {
                let name = text.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
                let d = new(self, D::Unexpected, "behind AS stands a variable");
                return self.with(
                    d,
                    format!("write ?{name}"),
                    token.range(),
                    format!("?{name}"),
                );
            }
            _ => {}
        }
        if let Kind::Word(word) = token.kind {
            return self.advised_word(d, token, word, place);
        }
        d
    }

    /// A word that cannot stand here.
    fn advised_word(&mut self, d: Diagnostic, token: Token, word: K, place: Place) -> Diagnostic {
        let text = self.slice(token);
        if let Some((message, remedy)) = foreign(text, place) {
            let d = self.diagnostic(token.range(), D::NotSparql, message.to_owned());
            return if remedy.contains([' ', '?']) {
                d.suggest(remedy)
            } else {
                self.with(d, format!("write {remedy}"), token.range(), remedy)
            };
        }
        if word != K::Unknown {
            return d;
        }
        let shown = shortened(text);
        let meant = nearest(text, place.keywords().iter().map(|k| k.text()));
        if let Some(meant) = meant {
            let d = self.diagnostic(
                token.range(),
                D::UnknownWord,
                format!("{shown} is no keyword"),
            );
            return self.with(d, format!("{meant} was meant?"), token.range(), meant);
        }
        // Two keywords written as one.
        for keyword in place.keywords() {
            let rest = text
                .len()
                .checked_sub(keyword.text().len())
                .and_then(|_| text.get(keyword.text().len()..));
            if let Some(rest) = rest
                && text.is_char_boundary(keyword.text().len())
                && text[..keyword.text().len()].eq_ignore_ascii_case(keyword.text())
                && K::of(rest.as_bytes()) != K::Unknown
            {
                let apart = format!("{} {}", keyword.text(), rest.to_ascii_uppercase());
                let d = self.diagnostic(
                    token.range(),
                    D::UnknownWord,
                    format!("{shown} is no keyword"),
                );
                return self.with(d, format!("{apart} was meant?"), token.range(), apart);
            }
        }
        let called = self.ahead().kind == Kind::OpenParen;
        match place {
            Place::Operand
            | Place::Filter
            | Place::Projection
            | Place::Having
            | Place::OrderCondition
            | Place::GroupCondition
                if called =>
            {
                let d = self.diagnostic(
                    token.range(),
                    D::UnknownWord,
                    format!("SPARQL has no function {shown}"),
                );
                let functions = K::ALL
                    .iter()
                    .filter(|k| super::calls::is_call(k.0))
                    .map(|k| k.1);
                let longer = |name: &&str| {
                    name.len() >= 4
                        && text
                            .get(..name.len())
                            .is_some_and(|t| t.eq_ignore_ascii_case(name))
                };
                match nearest(text, functions.clone())
                    .or_else(|| functions.filter(longer).max_by_key(|n| n.len()))
                {
                    Some(meant) => {
                        self.with(d, format!("{meant} was meant?"), token.range(), meant)
                    }
                    None => d.suggest("functions of other names are called by their IRI"),
                }
            }
            Place::Operand
            | Place::Object
            | Place::DataValue
            | Place::AfterOperand
            | Place::AfterArgument
            | Place::Subject
            | Place::Verb
            | Place::VerbOfTemplate
            | Place::Member
            | Place::PartOfTriple
            | Place::Filter => {
                let d = self.diagnostic(
                    token.range(),
                    D::UnknownWord,
                    format!("{shown} alone is neither a value nor a keyword"),
                );
                if matches!(place, Place::AfterOperand | Place::AfterArgument) {
                    d.suggest("between values stands an operator, like =, && or +")
                } else if matches!(place, Place::Verb | Place::VerbOfTemplate | Place::Subject) {
                    d.suggest(format!("write a prefix and a colon before it (ex:{shown}), or ?{shown} for a variable"))
                } else {
                    d.suggest(format!("write \"{shown}\" for a text, ?{shown} for a variable, or a prefix and a colon before it (ex:{shown})"))
                }
            }
            _ => d,
        }
    }

    /// The sign directly before the token.
    fn double(&self, token: Token, before: u8) -> bool {
        self.behind == token.start && self.text.as_bytes()[token.start - 1] == before
    }

    /// The text from `<` to the next `>` of the line, if it looks like an IRI with a fault in it; and it without spaces.
    fn looks_like_iri(&self, token: Token) -> Option<(Range<usize>, String)> {
        let rest = &self.text.as_bytes()[token.end..];
        let rest = &rest[..rest.len().min(2_000)];
        let end = rest.iter().position(|b| matches!(b, b'>' | b'\n' | b'<'))?;
        if rest[end] != b'>' {
            return None;
        }
        let inside = &self.text[token.end..token.end + end];
        let scheme = inside.split(':').next()?;
        let like = inside.contains(':')
            && !scheme.is_empty()
            && scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
        like.then(|| {
            (
                token.start..token.end + end + 1,
                format!("<{}>", inside.trim().replace(' ', "%20")),
            )
        })
    }

    fn bad_token(&self, token: Token, bad: Bad) -> Diagnostic {
        let text = self.slice(token);
        let new = |kind, message: String| self.diagnostic(token.range(), kind, message);
        match bad {
            Bad::String => {
                let open = token.start..token.start + 1;
                let quote = &text[..1];
                self.diagnostic(open, D::String, format!("this {quote} begins a string that does not end on its line"))
                    .suggest(format!("write {quote} at its end, or {quote}{quote}{quote} around a text of several lines"))
            }
            Bad::Label => new(
                D::BlankNode,
                "a blank node's label follows _: directly".into(),
            )
            .suggest("write _:name, or []"),
            Bad::Escape => new(D::Character, "this is no escape of a character".into()).suggest(
                "write \\u and four, or \\U and eight hexadecimal digits, in a string or an IRI",
            ),
            Bad::Character => self.bad_character(token),
        }
    }

    fn bad_character(&self, token: Token) -> Diagnostic {
        let text = self.slice(token);
        let c = text.chars().next().unwrap_or(' ');
        let new = |message: &str| self.diagnostic(token.range(), D::Character, message.to_owned());
        match c {
            '“' | '”' | '„' | '«' | '»' | '″' => self.with(
                new(&format!("{c} is no quotation mark of SPARQL")),
                "write \"",
                token.range(),
                "\"",
            ),
            '‘' | '’' | '‚' | '′' | '`' => self.with(
                new(&format!("{c} is no quotation mark of SPARQL")),
                "write '",
                token.range(),
                "'",
            ),
            '&' => {
                let rest = &self.text[token.end..];
                for (name, sign) in [
                    ("lt;", "<"),
                    ("gt;", ">"),
                    ("amp;", "&"),
                    ("quot;", "\""),
                    ("#39;", "'"),
                    ("nbsp;", " "),
                ] {
                    if rest.starts_with(name) {
                        let range = token.start..token.end + name.len();
                        let d = self.diagnostic(
                            range.clone(),
                            D::Character,
                            format!("&{name} is HTML for {sign}"),
                        );
                        return self.with(d, format!("write {sign}"), range, sign);
                    }
                }
                self.with(
                    new("SPARQL writes 'and' as &&"),
                    "write &&",
                    token.range(),
                    "&&",
                )
            }
            '$' => new("a variable's name follows its $ directly").suggest("write $name or ?name"),
            '@' => new("a language tag follows its @ directly").suggest("write \"text\"@en"),
            '%' => new("% stands in prefixed names only, before two hexadecimal digits")
                .suggest("SPARQL has no remainder: write ?a - ?b * FLOOR(?a / ?b)"),
            '\\' => new("a backslash stands in strings, and before signs in prefixed names"),
            '\u{a0}' | '\u{2000}'..='\u{200b}' | '\u{202f}' | '\u{3000}' => self.with(
                new("this is no ordinary space"),
                "write a plain space",
                token.range(),
                " ",
            ),
            '–' | '—' | '−' => self.with(
                new(&format!("{c} is no minus sign of SPARQL")),
                "write -",
                token.range(),
                "-",
            ),
            '≤' => self.with(new("the sign is <="), "write <=", token.range(), "<="),
            '≥' => self.with(new("the sign is >="), "write >=", token.range(), ">="),
            '≠' => self.with(new("the sign is !="), "write !=", token.range(), "!="),
            c if c.is_control() => new("a control character stands here").suggest("leave it away"),
            c => new(&format!("{c} is no sign of SPARQL")),
        }
    }

    /// A call where its brackets and name are missing: `SELECT COUNT(?x)`.
    fn bare_call(&self, token: Token) -> Diagnostic {
        let word = self.slice(token);
        let mut lexer = self.lexer.clone();
        lexer.go_on_from(token.end);
        let (mut depth, mut end, mut variable) = (0usize, None, None);
        for _ in 0..100 {
            let t = lexer.next();
            match t.kind {
                Kind::OpenParen => depth += 1,
                Kind::CloseParen => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        end = Some(t.end);
                        break;
                    }
                }
                Kind::Variable => variable = variable.or(Some(t)),
                Kind::OpenBrace | Kind::End => break,
                _ => {}
            }
        }
        let end = end.unwrap_or(token.end);
        let d = self.diagnostic(
            token.start..end,
            D::Aggregate,
            "an expression of SELECT stands in brackets with a name".into(),
        );
        // The name that is there already, or one that tells what it is.
        let named = lexer.next();
        let (range, name) = if named.kind == Kind::Word(K::As) {
            let name = lexer.next();
            (
                token.start..name.end,
                self.slice(name).trim_start_matches(['?', '$']).to_owned(),
            )
        } else {
            let of = variable.map_or("all", |v| &self.text[v.start + 1..v.end]);
            (
                token.start..end,
                format!("{}_{of}", word.to_ascii_lowercase()),
            )
        };
        let with = format!("({} AS ?{name})", &self.text[token.start..end]);
        let shown = shortened(&with);
        self.with(d, format!("write {shown}"), range, with)
    }

    /// A triple begins behind another without a dot between.
    pub(super) fn missing_dot(&mut self) -> Halt {
        let token = self.token;
        let at = self.behind;
        if token.kind == Kind::Minus && at == token.start {
            return self.unexpected(Place::AfterTriples);
        }
        let d = self.diagnostic(
            token.range(),
            D::MissingDot,
            format!(
                "{} begins a new triple, and the one before it has no dot at its end",
                self.said(token)
            ),
        );
        let d = self.with(d, "write a dot between them", at..at, " .");
        self.halt(d)
    }

    // --- what is wrong beyond the grammar ---

    /// A prefix is declared without its colon.
    pub(super) fn prefix_without_colon(&mut self, token: Token) {
        let d = self.diagnostic(
            token.range(),
            D::Unexpected,
            "a prefix ends with a colon".into(),
        );
        let at = token.end;
        let d = self.with(d, format!("write {}:", self.slice(token)), at..at, ":");
        self.fault(d);
    }

    pub(super) fn comma_in_select(&mut self) {
        let token = self.token;
        let d = self.diagnostic(
            token.range(),
            D::Unexpected,
            "what SELECT chooses is written without commas".into(),
        );
        let d = self.with(d, "leave the comma away", token.range(), "");
        self.fault(d);
    }

    pub(super) fn shared_label(&mut self, label: &str, before: Token, token: Token) {
        let (line, _) = self.place_of(before);
        let d = self
            .diagnostic(
                token.range(),
                D::BlankNode,
                format!(
                    "the blank node _:{} stands in another group or update already, at line {line}",
                    shortened(label)
                ),
            )
            .suggest(
                "a label is good for one group; use a variable to say that two nodes are the same",
            );
        self.fault(d);
    }

    pub(super) fn misplaced_aggregate(&mut self, token: Token, word: K, why: &str) {
        let word = word.text();
        let d = self.diagnostic(
            token.range(),
            D::Aggregate,
            format!("the aggregate {word} cannot stand {why}"),
        );
        let d = match why {
            "inside of another aggregate" => {
                d.suggest("compute the inner one in { SELECT … } first")
            }
            _ => d.suggest(
                "aggregates stand in SELECT, HAVING and ORDER BY; a condition on one is HAVING (…)",
            ),
        };
        self.fault(d);
    }

    pub(super) fn wrong_arguments(
        &mut self,
        name: Token,
        word: K,
        given: usize,
        least: usize,
        most: usize,
    ) {
        let count = |n: usize| match n {
            0 => "no argument".to_owned(),
            1 => "one argument".to_owned(),
            n => format!("{n} arguments"),
        };
        let takes = match (least, most) {
            (a, b) if a == b => count(a),
            (a, b) => format!("{a} to {}", count(b)),
        };
        let d = self.diagnostic(
            name.start..self.behind,
            D::Arguments,
            format!(
                "{} takes {takes}, and {given} {} given",
                word.text(),
                if given == 1 { "is" } else { "are" }
            ),
        );
        self.fault(d);
    }

    pub(super) fn bad_escape(&mut self, range: Range<usize>, letter: Option<char>) {
        let d = match letter {
            Some('u' | 'U') => self
                .diagnostic(range, D::Character, "this escape is no character".into())
                .suggest(
                    "write \\u and four, or \\U and eight hexadecimal digits, and no surrogates",
                ),
            _ => {
                let text = shortened(&self.text[range.clone()]);
                let d =
                    self.diagnostic(range.clone(), D::Character, format!("{text} is no escape"));
                let at = range.start;
                self.with(
                    d,
                    "write \\\\ for a backslash; others are \\t \\n \\r \\b \\f \\\" \\'",
                    at..at,
                    "\\",
                )
            }
        };
        self.fault(d);
    }

    pub(super) fn unknown_prefix(&mut self, token: Token, name: &str) {
        let shown = shortened(name);
        let range = token.start..token.start + name.len() + 1;
        let mut d = self.diagnostic(
            range.clone(),
            D::UnknownPrefix,
            format!("the prefix {shown}: is not declared"),
        );
        let known = common(name).or_else(|| common(&name.to_ascii_lowercase()));
        let others: Vec<&str> = self
            .prefixes
            .names()
            .chain(self.options.prefixes.iter().map(|p| p.0.as_str()))
            .collect();
        if let Some(iri) = known {
            let line = format!("PREFIX {name}: <{iri}>");
            d = self.with(
                d,
                format!("did you mean {line}?"),
                0..0,
                format!("{line}\n"),
            );
        } else if let Some(other) = nearest(name, others.iter().copied()) {
            d = self.with(
                d,
                format!("{other}: was meant?"),
                range,
                format!("{other}:"),
            );
        } else if let Some((other, iri)) =
            nearest(name, COMMON_PREFIXES.iter().map(|p| p.0)).and_then(|n| Some((n, common(n)?)))
        {
            d = self.with(
                d,
                format!("{other}: was meant? It is declared by PREFIX {other}: <{iri}>"),
                range,
                format!("{other}:"),
            );
        } else {
            d = d.suggest(format!(
                "declare it at the beginning: PREFIX {shown}: <http://…>"
            ));
        }
        self.fault(d);
    }

    pub(super) fn bad_iri(&mut self, token: Token, iri: &str, why: &str) {
        let shown = shortened(iri);
        let relative = !iri.contains(':') || why.contains("scheme");
        let d = if relative && self.base.is_none() {
            self.diagnostic(
                token.range(),
                D::Iri,
                format!("the IRI <{shown}> is relative, and there is no base"),
            )
            .suggest(
                "write the whole IRI with its scheme, like <http://…>, or declare BASE <http://…>",
            )
        } else {
            self.diagnostic(
                token.range(),
                D::Iri,
                format!("<{shown}> is no IRI: {}", super::terms::decapitalised(why)),
            )
        };
        self.fault(d);
    }

    pub(super) fn annotated_path(&mut self, at: Token) -> Halt {
        let d = self
            .diagnostic(
                at.range(),
                D::NotSparql,
                "a triple with a path as its predicate cannot be annotated".into(),
            )
            .suggest("annotate a triple with a plain predicate");
        self.halt(d)
    }

    pub(super) fn redefined(&mut self, token: Token, by: &str) {
        let name = self.slice(token);
        let d = self
            .diagnostic(
                token.range(),
                D::Redefined,
                format!(
                    "{} has a value already, and {by} cannot give it another",
                    shortened(name)
                ),
            )
            .suggest("choose another name");
        self.fault(d);
    }

    pub(super) fn redefined_in_lateral(&mut self, token: Token, v: u32) {
        let name = self.variables[v as usize].to_string();
        let d = self.diagnostic(
            token.range(),
            D::Redefined,
            format!("{name} has a value already, and LATERAL cannot give it another"),
        );
        self.fault(d.suggest("choose another name"));
    }

    pub(super) fn chosen_twice(&mut self, token: Token) {
        let name = shortened(self.slice(token));
        let d = self.diagnostic(
            token.range(),
            D::Redefined,
            format!("{name} is chosen twice"),
        );
        self.fault(d.suggest("leave one away"));
    }

    pub(super) fn star_of_groups(&mut self, star: Token) {
        let d = self.diagnostic(
            star.range(),
            D::NotGrouped,
            "SELECT * cannot stand with GROUP BY".into(),
        );
        self.fault(d.suggest("name what is grouped by and the aggregates"));
    }

    pub(super) fn not_grouped(&mut self, token: Token) {
        // What a fault left out would be missed here.
        if !self.faults.iter().all(|f| f.kind == D::NotGrouped) {
            return;
        }
        let name = shortened(self.slice(token));
        let d = self
            .diagnostic(
                token.range(),
                D::NotGrouped,
                format!("{name} is neither grouped nor aggregated"),
            )
            .suggest(format!(
                "add {name} to GROUP BY, or choose one value of the group: (SAMPLE({name}) AS …)"
            ));
        self.fault(d);
    }

    pub(super) fn twice_in_values(&mut self, token: Token) {
        let name = shortened(self.slice(token));
        let d = self.diagnostic(
            token.range(),
            D::Values,
            format!("{name} stands twice in VALUES"),
        );
        self.fault(d.suggest("leave one away"));
    }

    pub(super) fn wrong_row(&mut self, range: Range<usize>, given: usize, wanted: usize) {
        let s = if wanted == 1 { "" } else { "s" };
        let are = if given == 1 { "is" } else { "are" };
        let d = self.diagnostic(
            range,
            D::Values,
            format!("this row should have {wanted} value{s}, one for each variable, and {given} {are} given"),
        );
        self.fault(d.suggest("write UNDEF where there is no value"));
    }

    pub(super) fn disorder(&mut self, token: Token, word: K, before: K) {
        let name = |k: K| match k {
            K::Group => "GROUP BY",
            K::Order => "ORDER BY",
            k => k.text(),
        };
        let d = self
            .diagnostic(
                token.range(),
                D::Order,
                format!("{} stands before {}", name(word), name(before)),
            )
            .suggest("the order is WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET, VALUES");
        self.fault(d);
    }

    pub(super) fn too_large(&mut self, token: Token, word: K) {
        let d = self.diagnostic(
            token.range(),
            D::Number,
            format!("the number of {} is too large", word.text()),
        );
        self.fault(d);
    }

    pub(super) fn blank_in_delete(&mut self, at: Token) {
        let d = self
            .diagnostic(
                at.range(),
                D::BlankNode,
                "what is deleted cannot hold blank nodes".into(),
            )
            .suggest("use a variable: DELETE { ?x … } WHERE { ?x … }");
        self.fault(d);
    }

    pub(super) fn not_data(&mut self, at: Token, literal: bool, verb: &str) {
        let d = if literal {
            self.diagnostic(
                at.range(),
                D::NotConstant,
                "the subject of a triple is an IRI or a blank node".into(),
            )
        } else {
            self.diagnostic(
                at.range(),
                D::NotConstant,
                format!("{verb} holds constants, no variables"),
            )
            .suggest(format!(
                "write {} {{ … }} WHERE {{ … }} to use variables",
                &verb[..6]
            ))
        };
        self.fault(d);
    }
}

fn comparison(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Equal
            | Kind::NotEqual
            | Kind::Less
            | Kind::LessOrEqual
            | Kind::Greater
            | Kind::GreaterOrEqual
            | Kind::Word(K::In | K::Not)
    )
}

pub(crate) fn begins_update(word: K) -> bool {
    matches!(
        word,
        K::Insert
            | K::Delete
            | K::Load
            | K::Clear
            | K::Create
            | K::Drop
            | K::Copy
            | K::Move
            | K::Add
            | K::With
    )
}
