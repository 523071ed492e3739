//! Tokens that are not allowed in their place.

use super::fault::{begins_update, comparison};
use super::{Parser, RuleHalt};
use crate::advice::FaultPlace;
use crate::keyword::Keyword as K;
use crate::lexer::{Token, TokenKind};
use jindou_model::diagnostic::{Diagnostic, DiagnosticKind as D};

impl Parser<'_, '_> {
    /// Reports that the next token is not allowed here.
    pub(super) fn unexpected(&mut self, place: FaultPlace) -> RuleHalt {
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

    /// Reports that the closing bracket is missing.
    pub(super) fn unclosed(&mut self, kind: TokenKind, place: FaultPlace) -> RuleHalt {
        let token = self.token;
        let other = matches!(
            token.kind,
            TokenKind::End
                | TokenKind::CloseBrace
                | TokenKind::CloseParen
                | TokenKind::CloseBracket
        ) || matches!(token.kind, TokenKind::Word(_)) && self.begins_other(token);
        let cascade =
            token.kind == TokenKind::End && self.faults.iter().any(|f| f.kind != D::Bracket);
        if cascade {
            return RuleHalt::Fault;
        }
        if let Some(open) = self.open.last()
            && other
            && token.kind != kind
        {
            let bracket = self.slice(open);
            let close = match kind {
                TokenKind::CloseBrace => "}",
                TokenKind::CloseParen => ")",
                TokenKind::CloseBracket => "]",
                TokenKind::CloseAnnotation => "|}",
                _ => ">>",
            };
            let (line, column) = self.place_of(token);
            let before = match token.kind {
                TokenKind::End => "the text ends".to_owned(),
                _ => format!("{} is at line {line}, column {column}", self.said(token)),
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
            TokenKind::Word(
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

    /// The plain message, extended by the known facts about the token at its place.
    #[allow(clippy::too_many_lines)]
    fn advised(&mut self, d: Diagnostic, token: Token, place: FaultPlace) -> Diagnostic {
        let text = self.slice(token);
        let new =
            |p: &Self, kind, message: &str| p.diagnostic(token.range(), kind, message.to_owned());
        // A # directly after a name begins a comment.
        if self.text.as_bytes().get(self.behind) == Some(&b'#')
            && self.behind > 0
            && !self.text.as_bytes()[self.behind - 1].is_ascii_whitespace()
            && self.text[..self.behind].ends_with(|c: char| c.is_alphanumeric() || c == ':')
        {
            let at = self.behind;
            let d = self.diagnostic(
                at..at + 1,
                D::Character,
                "everything after this # is a comment".into(),
            );
            return self.with(
                d,
                "write \\# within a name, or the whole IRI between < and >",
                at..at + 1,
                "\\#",
            );
        }
        if let Some(d) = self.advised_extension(token, place) {
            return d;
        }
        match (token.kind, place) {
            (TokenKind::Bad(bad), _) => return self.bad_token(token, bad),
            (TokenKind::Less, _) if self.looks_like_iri(token).is_some() => {
                let (range, with) = self.looks_like_iri(token).unwrap_or_default();
                // Tokens inside it would be reported as another error.
                self.ahead = self.ahead.take().filter(|t| t.start >= range.end);
                self.lexer.skip_to(range.end);
                let d = self.diagnostic(
                    range.clone(),
                    D::Iri,
                    "an IRI cannot contain spaces, quotes or braces".into(),
                );
                return self.with(d, "write %20 for a space", range, with);
            }
            (TokenKind::Word(word), FaultPlace::Query) if begins_update(word) => {
                return new(
                    self,
                    D::UpdateNotQuery,
                    "this is an update, but a query is expected here",
                );
            }
            (
                TokenKind::Word(word @ (K::Select | K::Ask | K::Construct | K::Describe)),
                FaultPlace::Operation,
            ) => {
                let _ = word;
                return new(
                    self,
                    D::QueryNotUpdate,
                    "this is a query, but an update is expected here",
                );
            }
            (TokenKind::End, FaultPlace::Query) => {
                return new(self, D::Empty, "the text has no query")
                    .suggest("a query looks like SELECT * WHERE { ?s ?p ?o } LIMIT 10");
            }
            (TokenKind::Language, FaultPlace::Query | FaultPlace::Operation)
                if matches!(text, "@prefix" | "@base") =>
            {
                let word = text[1..].to_ascii_uppercase();
                let d = new(
                    self,
                    D::NotSparql,
                    "SPARQL declarations have no @ and do not end with a dot",
                );
                return self.with(d, format!("write {word}"), token.range(), word);
            }
            (TokenKind::Dot | TokenKind::Semicolon, FaultPlace::Query | FaultPlace::Operation)
                if self.behind > 0 =>
            {
                let d = new(
                    self,
                    D::Unexpected,
                    "a declaration ends without a dot or semicolon",
                );
                return self.with(d, "remove it", token.range(), "");
            }
            (TokenKind::Semicolon, FaultPlace::AfterQuery) => {
                let d = new(self, D::Unexpected, "a query ends without a semicolon");
                return self.with(d, "remove the semicolon", token.range(), "");
            }
            (TokenKind::CloseBrace, FaultPlace::AfterQuery | FaultPlace::AfterOperation) => {
                let d = new(self, D::Bracket, "this } has no {");
                return self.with(
                    d,
                    "remove it, or open the group that it closes",
                    token.range(),
                    "",
                );
            }
            (
                TokenKind::CloseParen,
                FaultPlace::GroupBody | FaultPlace::AfterTriples | FaultPlace::Where,
            ) => {
                let d = new(self, D::Bracket, "this ) has no (");
                return self.with(d, "remove it, or open what it closes", token.range(), "");
            }
            (
                TokenKind::Word(K::Select | K::Ask | K::Construct | K::Describe),
                FaultPlace::AfterQuery,
            ) => {
                return new(
                    self,
                    D::Unexpected,
                    "a second query begins here; only one is allowed at a time",
                )
                .suggest("send them one after the other");
            }
            (TokenKind::Word(word), FaultPlace::AfterQuery) if begins_update(word) => {
                return new(self, D::Unexpected, "an update begins after the query")
                    .suggest("send them one after the other");
            }
            (TokenKind::OpenBrace, FaultPlace::Projection) => {
                let d = new(self, D::Unexpected, "SELECT needs a list of variables");
                let at = token.start;
                return self.with(d, "write * for all variables", at..at, "* ");
            }
            (TokenKind::Word(K::Where | K::From), FaultPlace::Projection) => {
                let d = new(self, D::Unexpected, "SELECT needs a list of variables");
                let at = token.start;
                return self.with(d, "write * for all variables", at..at, "* ");
            }
            (TokenKind::Word(word), FaultPlace::Projection | FaultPlace::Where)
                if super::calls::is_call(word) =>
            {
                return self.bare_call(token);
            }
            (TokenKind::Word(K::As), FaultPlace::Where) => {
                let d = new(
                    self,
                    D::Unexpected,
                    "a value with a name must be in brackets",
                );
                return d.suggest("write SELECT (?x AS ?name)");
            }
            (TokenKind::Comma, FaultPlace::Where | FaultPlace::Projection) => {
                let d = new(
                    self,
                    D::Unexpected,
                    "SELECT lists its variables without commas",
                );
                return self.with(d, "remove the comma", token.range(), "");
            }
            (TokenKind::Semicolon | TokenKind::Dot, FaultPlace::Where) => {
                return new(self, D::Unexpected, "a pattern in braces is missing")
                    .suggest("write WHERE { ?s ?p ?o }");
            }
            (TokenKind::End, FaultPlace::Where | FaultPlace::SubWhere) => {
                return new(
                    self,
                    D::Unexpected,
                    "the text ends where WHERE { … } should be",
                )
                .suggest("write WHERE { ?s ?p ?o }");
            }
            (_, FaultPlace::Where) if self.starts_subject() => {
                let d = new(self, D::Bracket, "the pattern must be in braces");
                let at = token.start;
                return self.with(d, "write { before it and } after it", at..at, "{ ");
            }
            (
                TokenKind::Word(K::Limit | K::Offset | K::Order | K::Group | K::Having),
                FaultPlace::GroupBody,
            ) => {
                return new(
                    self,
                    D::Order,
                    &format!(
                        "{} is after the closing }} of WHERE",
                        text.to_ascii_uppercase()
                    ),
                )
                .suggest("move it after the }, or put its part into braces with its own SELECT");
            }
            (TokenKind::Word(K::Not | K::Exists), FaultPlace::GroupBody) => {
                let d = new(self, D::Unexpected, "a condition needs FILTER before it");
                let at = token.start;
                return self.with(d, "write FILTER before it", at..at, "FILTER ");
            }
            (TokenKind::Word(K::Union), FaultPlace::GroupBody) => {
                return new(
                    self,
                    D::Unexpected,
                    "UNION must be between two groups in braces",
                )
                .suggest("write { … } UNION { … }");
            }
            (TokenKind::Word(K::Select), FaultPlace::GroupBody) => {
                let d = new(
                    self,
                    D::Unexpected,
                    "a SELECT within a pattern needs its own braces",
                );
                let at = token.start;
                return self.with(d, "write { SELECT … }", at..at, "{ ");
            }
            (TokenKind::Word(word), FaultPlace::GroupBody) if super::calls::is_call(word) => {
                return new(
                    self,
                    D::Unexpected,
                    "an expression must be in FILTER or BIND",
                )
                .suggest("write FILTER(…) for a condition, or BIND(… AS ?x) for a value");
            }
            (TokenKind::Semicolon, FaultPlace::GroupBody | FaultPlace::Template) => {
                return new(
                    self,
                    D::Unexpected,
                    "a semicolon must be between an object and the next predicate",
                )
                .suggest("end triples with a dot");
            }
            (TokenKind::Dot, FaultPlace::GroupBody) => {
                let d = new(self, D::Unexpected, "this dot does not follow a triple");
                return self.with(d, "remove it", token.range(), "");
            }
            (
                TokenKind::Equal
                | TokenKind::NotEqual
                | TokenKind::Greater
                | TokenKind::GreaterOrEqual
                | TokenKind::Less
                | TokenKind::LessOrEqual,
                FaultPlace::Verb | FaultPlace::GroupBody | FaultPlace::AfterTriples,
            ) => {
                return new(self, D::Unexpected, "a comparison must be in FILTER")
                    .suggest("write FILTER(?x = 1) for a condition, or BIND(1 AS ?x) for a value");
            }
            (
                TokenKind::Minus,
                FaultPlace::Verb
                | FaultPlace::AfterTriples
                | FaultPlace::Object
                | FaultPlace::Where,
            ) if self.behind == token.start => {
                return new(
                    self,
                    D::Character,
                    "a variable's name can only have letters, digits and _",
                )
                .suggest("write _ for -");
            }
            (TokenKind::Question, _) => {
                return new(
                    self,
                    D::Character,
                    "a variable's name must follow its ? directly",
                )
                .suggest("write ?name");
            }
            (TokenKind::Dot | TokenKind::CloseBrace, FaultPlace::Verb) => {
                return new(
                    self,
                    D::Unexpected,
                    "a triple is a subject, a predicate and an object; here is only the subject",
                )
                .suggest("write the predicate and the object after it");
            }
            (
                TokenKind::Dot | TokenKind::CloseBrace | TokenKind::Semicolon | TokenKind::Comma,
                FaultPlace::Object,
            ) => {
                return new(self, D::Unexpected, "the triple has no object")
                    .suggest("write a variable, an IRI or a literal after the predicate");
            }
            (
                TokenKind::String | TokenKind::Integer | TokenKind::Decimal | TokenKind::Double,
                FaultPlace::Verb | FaultPlace::VerbOfTemplate,
            ) => {
                return new(self, D::Unexpected, "a literal cannot be a predicate")
                    .suggest("a predicate is an IRI, a prefixed name, a variable, or a");
            }
            (
                TokenKind::Blank | TokenKind::OpenBracket,
                FaultPlace::Verb | FaultPlace::VerbOfTemplate,
            ) => {
                return new(self, D::BlankNode, "a blank node cannot be a predicate")
                    .suggest("write a variable");
            }
            (TokenKind::Equal, FaultPlace::Operand) if self.double(token, b'=') => {
                let d = self.diagnostic(
                    token.start - 1..token.end,
                    D::Unexpected,
                    "equality is a single =".into(),
                );
                return self.with(d, "write =", token.start - 1..token.end, "=");
            }
            (TokenKind::Greater, FaultPlace::Operand) if self.double(token, b'<') => {
                let d = self.diagnostic(
                    token.start - 1..token.end,
                    D::Unexpected,
                    "SPARQL writes 'not equal' as !=".into(),
                );
                return self.with(d, "write !=", token.start - 1..token.end, "!=");
            }
            (TokenKind::Greater | TokenKind::Less, FaultPlace::Operand)
                if self.double(token, b'=') =>
            {
                let right = if token.kind == TokenKind::Less {
                    "<="
                } else {
                    ">="
                };
                let d = self.diagnostic(
                    token.start - 1..token.end,
                    D::Unexpected,
                    format!("write {right}"),
                );
                return self.with(
                    d,
                    format!("write {right}"),
                    token.start - 1..token.end,
                    right,
                );
            }
            (TokenKind::Iri, FaultPlace::AfterOperand | FaultPlace::AfterArgument)
                if text == "<>" =>
            {
                let d = new(self, D::Unexpected, "SPARQL writes 'not equal' as !=");
                return self.with(d, "write !=", token.range(), "!=");
            }
            (TokenKind::CloseParen, FaultPlace::As) => {
                let d = new(self, D::Unexpected, "the value has no name");
                let at = token.start;
                return self.with(d, "write (… AS ?name)", at..at, " AS ?name");
            }
            (_, FaultPlace::Direction(word)) if token.kind != TokenKind::Variable => {
                let word = word.text();
                return new(
                    self,
                    D::Unexpected,
                    &format!("{word} comes before its expression, which needs brackets"),
                )
                .suggest(format!("write ORDER BY {word}(?x)"));
            }
            (TokenKind::Word(word), FaultPlace::AfterOperation) if begins_update(word) => {
                let d = new(self, D::Unexpected, "updates are separated by semicolons");
                let at = self.behind;
                return self.with(d, "write one after the first", at..at, " ;");
            }
            (
                TokenKind::Pipe,
                FaultPlace::AfterOperand | FaultPlace::AfterArgument | FaultPlace::AfterComparison,
            ) => {
                let d = new(self, D::Unexpected, "SPARQL writes 'or' as ||");
                return self.with(d, "write ||", token.range(), "||");
            }
            (TokenKind::Comma, FaultPlace::AfterOperand) => {
                return new(
                    self,
                    D::Unexpected,
                    "brackets can only have one expression here",
                )
                .suggest("join conditions with && or ||");
            }
            (_, FaultPlace::AfterComparison) if comparison(token.kind) => {
                return new(self, D::Unexpected, "comparisons cannot be chained")
                    .suggest("write ?a < ?b && ?b < ?c");
            }
            (TokenKind::OpenBrace, FaultPlace::Operand | FaultPlace::Filter) => {
                let d = new(
                    self,
                    D::Unexpected,
                    "a pattern is a condition only after EXISTS or NOT EXISTS",
                );
                let at = token.start;
                return self.with(d, "write EXISTS before it", at..at, "EXISTS ");
            }
            (TokenKind::Word(K::Select), FaultPlace::Operand) => {
                return new(self, D::NotSparql, "a SELECT cannot be a value in SPARQL")
                    .suggest("put { SELECT … } into the pattern and use its variable here");
            }
            (TokenKind::CloseParen, FaultPlace::Operand) => {
                return new(self, D::Unexpected, "a value is missing before this )")
                    .suggest("write a variable, a literal or a call");
            }
            (TokenKind::Star, FaultPlace::Operand) => {
                return new(
                    self,
                    D::Unexpected,
                    "* is only allowed in COUNT(*) and after SELECT",
                )
                .suggest("name the variable");
            }
            (TokenKind::Variable | TokenKind::Bang | TokenKind::String, FaultPlace::Filter) => {
                let d = new(
                    self,
                    D::Bracket,
                    "the condition of FILTER must be in brackets",
                );
                let at = token.start;
                return self.with(d, "write FILTER( before it and ) after it", at..at, "(");
            }
            (TokenKind::Variable, FaultPlace::Direction(word)) => {
                let name = text;
                let word = word.text();
                let d = new(
                    self,
                    D::Bracket,
                    &format!("the expression after {word} must be in brackets"),
                );
                return self.with(
                    d,
                    format!("write {word}({name})"),
                    token.range(),
                    format!("({name})"),
                );
            }
            (TokenKind::Comma, FaultPlace::AfterQuery) => {
                return new(self, D::Unexpected, "no commas are allowed here").suggest("write LIMIT 10 OFFSET 20, and separate grouping or ordering expressions with spaces");
            }
            (TokenKind::Word(K::Asc | K::Desc), FaultPlace::AfterQuery) => {
                let word = text.to_ascii_uppercase();
                return new(
                    self,
                    D::Unexpected,
                    &format!("{word} comes before its expression"),
                )
                .suggest(format!("write ORDER BY {word}(?x)"));
            }
            (
                TokenKind::Prefixed | TokenKind::Namespace,
                FaultPlace::DatasetGraph | FaultPlace::DeclaredIri,
            ) => {
                return new(self, D::Unexpected, "the IRI must be between < and > here")
                    .suggest("write <http://…>");
            }
            (TokenKind::Word(_) | TokenKind::String, FaultPlace::DeclaredIri) => {
                return new(self, D::Iri, "the IRI must be between < and >")
                    .suggest("write PREFIX ex: <http://example.org/>");
            }
            (TokenKind::Prefixed, FaultPlace::DeclaredPrefix) => {
                return new(
                    self,
                    D::Unexpected,
                    "a prefix is declared with a colon and an IRI",
                )
                .suggest("write PREFIX ex: <http://example.org/>");
            }
            (TokenKind::Variable, FaultPlace::Number(word)) => {
                return new(
                    self,
                    D::Number,
                    &format!("{} needs a number, not a variable", word.text()),
                )
                .suggest(format!("write {} 10", word.text()));
            }
            (TokenKind::Minus, FaultPlace::Number(word)) => {
                return new(
                    self,
                    D::Number,
                    &format!("{} cannot be negative", word.text()),
                );
            }
            (TokenKind::Word(K::Into), FaultPlace::QuadsOpen) => {
                return new(self, D::NotSparql, "SPARQL has no INSERT INTO")
                    .suggest("write INSERT DATA { GRAPH <g> { … } }");
            }
            (TokenKind::Word(K::From), FaultPlace::QuadsOpen) => {
                return new(self, D::NotSparql, "SPARQL has no DELETE FROM")
                    .suggest("write DELETE WHERE { GRAPH <g> { … } }");
            }
            (TokenKind::Variable, FaultPlace::DataValue) => {
                return new(
                    self,
                    D::NotConstant,
                    "VALUES takes constants, not variables",
                )
                .suggest("write UNDEF for no value");
            }
            (TokenKind::Blank, FaultPlace::DataValue) => {
                return new(self, D::BlankNode, "VALUES cannot have blank nodes");
            }
            (
                TokenKind::Comma,
                FaultPlace::DataValue
                | FaultPlace::Row
                | FaultPlace::ValuesVariables
                | FaultPlace::Member
                | FaultPlace::OrderCondition
                | FaultPlace::GroupCondition,
            ) => {
                let d = new(self, D::Unexpected, "no commas are allowed here");
                return self.with(d, "remove the comma", token.range(), "");
            }
            (TokenKind::Word(_) | TokenKind::A | TokenKind::Prefixed, FaultPlace::AsVariable) => {
                let name = text.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
                let d = new(self, D::Unexpected, "AS needs a variable");
                return self.with(
                    d,
                    format!("write ?{name}"),
                    token.range(),
                    format!("?{name}"),
                );
            }
            _ => {}
        }
        if let TokenKind::Word(word) = token.kind {
            return self.advised_word(d, token, word, place);
        }
        d
    }
}
