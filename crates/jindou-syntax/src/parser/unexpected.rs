//! Tokens that cannot stand where they stand.

use super::fault::{begins_update, comparison};
use super::{Halt, Parser};
use crate::advice::Place;
use crate::keyword::Keyword as K;
use crate::lexer::{Kind, Token};
use jindou_model::diagnostic::{Diagnostic, DiagnosticKind as D};

impl Parser<'_, '_> {
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
}
