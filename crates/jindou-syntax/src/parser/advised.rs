//! Messages for tokens at positions where they are not allowed, as data.

use super::Parser;
use super::calls::is_call;
use super::fault::{begins_update, comparison};
use crate::advice::FaultPlace as P;
use crate::keyword::Keyword as K;
use crate::lexer::{Token, TokenKind as T};
use jindou_model::diagnostic::{Diagnostic, DiagnosticKind as D};

type Condition = fn(&Parser<'_, '_>, Token) -> bool;

/// A message for some tokens at some positions. Its texts may contain the token as `{text}`, as `{name}` (from its
/// first letter on) or as `{NAME}` (in upper case), and the keyword before the position as `{word}`.
struct Advice {
    /// The tokens; empty for all.
    tokens: &'static [T],
    /// The positions; empty for all.
    places: &'static [P],
    condition: Option<Condition>,
    kind: D,
    message: &'static str,
    remedy: Option<&'static str>,
    edit: Edit,
}

/// The change of the text that the message suggests.
#[derive(Clone, Copy)]
enum Edit {
    None,
    /// Replaces the token.
    Replace(&'static str),
    /// Replaces the token and the sign directly before it, which the message is about, too.
    ReplacePair(&'static str),
    /// Inserts the text before the token.
    Before(&'static str),
    /// Inserts the text after the previous token.
    AfterPrevious(&'static str),
}

const fn advice(
    tokens: &'static [T],
    places: &'static [P],
    kind: D,
    message: &'static str,
) -> Advice {
    Advice {
        tokens,
        places,
        condition: None,
        kind,
        message,
        remedy: None,
        edit: Edit::None,
    }
}

impl Advice {
    const fn when(mut self, condition: Condition) -> Self {
        self.condition = Some(condition);
        self
    }

    const fn remedy(mut self, text: &'static str) -> Self {
        self.remedy = Some(text);
        self
    }

    const fn edit(mut self, text: &'static str, edit: Edit) -> Self {
        self.edit = edit;
        self.remedy(text)
    }

    fn fits(&self, parser: &Parser<'_, '_>, token: Token, place: P) -> bool {
        (self.places.is_empty() || self.places.contains(&place))
            && (self.tokens.is_empty() || self.tokens.contains(&token.kind))
            && self.condition.is_none_or(|holds| holds(parser, token))
    }
}

const DIRECTION: &[P] = &[P::Direction(K::Asc), P::Direction(K::Desc)];
const NUMBER: &[P] = &[P::Number(K::Limit), P::Number(K::Offset)];
const VERBS: &[P] = &[P::Verb, P::VerbOfTemplate];
const QUERY_FORMS: &[T] = &[
    T::Word(K::Select),
    T::Word(K::Ask),
    T::Word(K::Construct),
    T::Word(K::Describe),
];

/// The messages. The first matching row counts.
#[rustfmt::skip]
static ADVICE: &[Advice] = &[
    advice(&[], &[P::Query], D::UpdateNotQuery, "this is an update, but a query is expected here")
        .when(starts_update),
    advice(QUERY_FORMS, &[P::Operation], D::QueryNotUpdate, "this is a query, but an update is expected here"),
    advice(&[T::End], &[P::Query], D::Empty, "the text has no query")
        .remedy("a query looks like SELECT * WHERE { ?s ?p ?o } LIMIT 10"),
    advice(&[T::Language], &[P::Query, P::Operation], D::NotSparql, "SPARQL declarations have no @ and do not end with a dot")
        .when(|p, t| matches!(p.slice(t), "@prefix" | "@base"))
        .edit("write {NAME}", Edit::Replace("{NAME}")),
    advice(&[T::Dot, T::Semicolon], &[P::Query, P::Operation], D::Unexpected, "a declaration ends without a dot or semicolon")
        .when(|p, _| p.behind > 0)
        .edit("remove it", Edit::Replace("")),
    advice(&[T::Semicolon], &[P::AfterQuery], D::Unexpected, "a query ends without a semicolon")
        .edit("remove the semicolon", Edit::Replace("")),
    advice(&[T::CloseBrace], &[P::AfterQuery, P::AfterOperation], D::Bracket, "this } has no {")
        .edit("remove it, or open the group that it closes", Edit::Replace("")),
    advice(&[T::CloseParen], &[P::GroupBody, P::AfterTriples, P::Where], D::Bracket, "this ) has no (")
        .edit("remove it, or open what it closes", Edit::Replace("")),
    advice(QUERY_FORMS, &[P::AfterQuery], D::Unexpected, "a second query begins here; only one is allowed at a time")
        .remedy("send them one after the other"),
    advice(&[], &[P::AfterQuery], D::Unexpected, "an update begins after the query")
        .when(starts_update)
        .remedy("send them one after the other"),
    advice(&[T::OpenBrace, T::Word(K::Where), T::Word(K::From)], &[P::Projection], D::Unexpected, "SELECT needs a list of variables")
        .edit("write * for all variables", Edit::Before("* ")),
    advice(&[T::Word(K::As)], &[P::Where], D::Unexpected, "a value with a name must be in brackets")
        .remedy("write SELECT (?x AS ?name)"),
    advice(&[T::Comma], &[P::Where, P::Projection], D::Unexpected, "SELECT lists its variables without commas")
        .edit("remove the comma", Edit::Replace("")),
    advice(&[T::Semicolon, T::Dot], &[P::Where], D::Unexpected, "a pattern in braces is missing")
        .remedy("write WHERE { ?s ?p ?o }"),
    advice(&[T::End], &[P::Where, P::SubWhere], D::Unexpected, "the text ends where WHERE { … } should be")
        .remedy("write WHERE { ?s ?p ?o }"),
    advice(&[], &[P::Where], D::Bracket, "the pattern must be in braces")
        .when(|p, _| p.starts_subject())
        .edit("write { before it and } after it", Edit::Before("{ ")),
    advice(
        &[T::Word(K::Limit), T::Word(K::Offset), T::Word(K::Order), T::Word(K::Group), T::Word(K::Having)],
        &[P::GroupBody], D::Order, "{NAME} is after the closing } of WHERE")
        .remedy("move it after the }, or write a sub-select with it in braces of its own"),
    advice(&[T::Word(K::Not), T::Word(K::Exists)], &[P::GroupBody], D::Unexpected, "a condition needs FILTER before it")
        .edit("write FILTER before it", Edit::Before("FILTER ")),
    advice(&[T::Word(K::Union)], &[P::GroupBody], D::Unexpected, "UNION must be between two groups in braces")
        .remedy("write { … } UNION { … }"),
    advice(&[T::Word(K::Select)], &[P::GroupBody], D::Unexpected, "a SELECT within a pattern needs its own braces")
        .edit("write { SELECT … }", Edit::Before("{ ")),
    advice(&[], &[P::GroupBody], D::Unexpected, "an expression must be in FILTER or BIND")
        .when(|_, t| matches!(t.kind, T::Word(word) if is_call(word)))
        .remedy("write FILTER(…) for a condition, or BIND(… AS ?x) for a value"),
    advice(&[T::Semicolon], &[P::GroupBody, P::Template], D::Unexpected, "a semicolon must be between an object and the next predicate")
        .remedy("end triples with a dot"),
    advice(&[T::Dot], &[P::GroupBody], D::Unexpected, "this dot does not follow a triple")
        .edit("remove it", Edit::Replace("")),
    advice(
        &[T::Equal, T::NotEqual, T::Greater, T::GreaterOrEqual, T::Less, T::LessOrEqual],
        &[P::Verb, P::GroupBody, P::AfterTriples], D::Unexpected, "a comparison must be in FILTER")
        .remedy("write FILTER(?x = 1) for a condition, or BIND(1 AS ?x) for a value"),
    advice(
        &[T::Minus], &[P::Verb, P::AfterTriples, P::Object, P::Where],
        D::Character, "a variable's name can only have letters, digits and _")
        .when(|p, t| p.behind == t.start)
        .remedy("write _ for -"),
    advice(&[T::Question], &[], D::Character, "a variable's name must follow its ? directly")
        .remedy("write ?name"),
    advice(
        &[T::Dot, T::CloseBrace], &[P::Verb],
        D::Unexpected, "a triple is a subject, a predicate and an object; here is only the subject")
        .remedy("write the predicate and the object after it"),
    advice(&[T::Dot, T::CloseBrace, T::Semicolon, T::Comma], &[P::Object], D::Unexpected, "the triple has no object")
        .remedy("write a variable, an IRI or a literal after the predicate"),
    advice(&[T::String, T::Integer, T::Decimal, T::Double], VERBS, D::Unexpected, "a literal cannot be a predicate")
        .remedy("a predicate is an IRI, a prefixed name, a variable, or the keyword a"),
    advice(&[T::Blank, T::OpenBracket], VERBS, D::BlankNode, "a blank node cannot be a predicate")
        .remedy("write a variable"),
    advice(&[T::Equal], &[P::Operand], D::Unexpected, "equality is a single =")
        .when(|p, t| p.double(t, b'='))
        .edit("write =", Edit::ReplacePair("=")),
    advice(&[T::Greater], &[P::Operand], D::Unexpected, "SPARQL writes 'not equal' as !=")
        .when(|p, t| p.double(t, b'<'))
        .edit("write !=", Edit::ReplacePair("!=")),
    advice(&[T::Less], &[P::Operand], D::Unexpected, "write <=")
        .when(|p, t| p.double(t, b'='))
        .edit("write <=", Edit::ReplacePair("<=")),
    advice(&[T::Greater], &[P::Operand], D::Unexpected, "write >=")
        .when(|p, t| p.double(t, b'='))
        .edit("write >=", Edit::ReplacePair(">=")),
    advice(&[T::Iri], &[P::AfterOperand, P::AfterArgument], D::Unexpected, "SPARQL writes 'not equal' as !=")
        .when(|p, t| p.slice(t) == "<>")
        .edit("write !=", Edit::Replace("!=")),
    advice(&[T::CloseParen], &[P::As], D::Unexpected, "the value has no name")
        .edit("write (… AS ?name)", Edit::Before(" AS ?name")),
    advice(&[T::Variable], DIRECTION, D::Bracket, "the expression after {word} must be in brackets")
        .edit("write {word}({text})", Edit::Replace("({text})")),
    advice(&[], DIRECTION, D::Unexpected, "{word} comes before its expression, which needs brackets")
        .remedy("write ORDER BY {word}(?x)"),
    advice(&[], &[P::AfterOperation], D::Unexpected, "updates are separated by semicolons")
        .when(starts_update)
        .edit("write one after the first", Edit::AfterPrevious(" ;")),
    advice(&[T::Pipe], &[P::AfterOperand, P::AfterArgument, P::AfterComparison], D::Unexpected, "SPARQL writes 'or' as ||")
        .edit("write ||", Edit::Replace("||")),
    advice(&[T::Comma], &[P::AfterOperand], D::Unexpected, "brackets can only have one expression here")
        .remedy("join conditions with && or ||"),
    advice(&[], &[P::AfterComparison], D::Unexpected, "comparisons cannot be chained")
        .when(|_, t| comparison(t.kind))
        .remedy("write ?a < ?b && ?b < ?c"),
    advice(&[T::OpenBrace], &[P::Operand, P::Filter], D::Unexpected, "a pattern is a condition only after EXISTS or NOT EXISTS")
        .edit("write EXISTS before it", Edit::Before("EXISTS ")),
    advice(&[T::Word(K::Select)], &[P::Operand], D::NotSparql, "a SELECT cannot be a value in SPARQL")
        .remedy("put { SELECT … } into the pattern and use its variable here"),
    advice(&[T::CloseParen], &[P::Operand], D::Unexpected, "a value is missing before this )")
        .remedy("write a variable, a literal or a call"),
    advice(&[T::Star], &[P::Operand], D::Unexpected, "* is only allowed in COUNT(*) and after SELECT")
        .remedy("name the variable"),
    advice(&[T::Variable, T::Bang, T::String], &[P::Filter], D::Bracket, "the condition of FILTER must be in brackets")
        .edit("write FILTER( before it and ) after it", Edit::Before("(")),
    advice(&[T::Comma], &[P::AfterQuery], D::Unexpected, "no commas are allowed here")
        .remedy("write LIMIT 10 OFFSET 20, and separate grouping or ordering expressions with spaces"),
    advice(&[T::Word(K::Asc), T::Word(K::Desc)], &[P::AfterQuery], D::Unexpected, "{NAME} comes before its expression")
        .remedy("write ORDER BY {NAME}(?x)"),
    advice(&[T::Prefixed, T::Namespace], &[P::DatasetGraph, P::DeclaredIri], D::Unexpected, "the IRI must be between < and > here")
        .remedy("write <http://…>"),
    advice(&[], &[P::DeclaredIri], D::Iri, "the IRI must be between < and >")
        .when(|_, t| matches!(t.kind, T::Word(_) | T::String))
        .remedy("write PREFIX ex: <http://example.org/>"),
    advice(&[T::Prefixed], &[P::DeclaredPrefix], D::Unexpected, "a prefix is declared with a colon and an IRI")
        .remedy("write PREFIX ex: <http://example.org/>"),
    advice(&[T::Variable], NUMBER, D::Number, "{word} needs a number, not a variable")
        .remedy("write {word} 10"),
    advice(&[T::Minus], NUMBER, D::Number, "{word} cannot be negative"),
    advice(&[T::Word(K::Into)], &[P::QuadsOpen], D::NotSparql, "SPARQL has no INSERT INTO")
        .remedy("write INSERT DATA { GRAPH <g> { … } }"),
    advice(&[T::Word(K::From)], &[P::QuadsOpen], D::NotSparql, "SPARQL has no DELETE FROM")
        .remedy("write DELETE WHERE { GRAPH <g> { … } }"),
    advice(&[T::Variable], &[P::DataValue], D::NotConstant, "VALUES takes constants, not variables")
        .remedy("write UNDEF for no value"),
    advice(&[T::Blank], &[P::DataValue], D::BlankNode, "VALUES cannot have blank nodes"),
    advice(
        &[T::Comma],
        &[P::DataValue, P::Row, P::ValuesVariables, P::Member, P::OrderCondition, P::GroupCondition],
        D::Unexpected, "no commas are allowed here")
        .edit("remove the comma", Edit::Replace("")),
    advice(&[], &[P::AsVariable], D::Unexpected, "AS needs a variable")
        .when(|_, t| matches!(t.kind, T::Word(_) | T::A | T::Prefixed))
        .edit("write ?{name}", Edit::Replace("?{name}")),
];

fn starts_update(_: &Parser<'_, '_>, token: Token) -> bool {
    matches!(token.kind, T::Word(word) if begins_update(word))
}

impl Parser<'_, '_> {
    /// The message of the first row for a token at a position; `None` if no row matches.
    pub(super) fn advised_token(&self, token: Token, place: P) -> Option<Diagnostic> {
        let advice = ADVICE.iter().find(|a| a.fits(self, token, place))?;
        let fill = |template: &str| self.filled(template, token, place);
        let (range, with) = match advice.edit {
            Edit::None => (token.range(), None),
            Edit::Replace(with) => (token.range(), Some(with)),
            Edit::ReplacePair(with) => (token.start - 1..token.end, Some(with)),
            Edit::Before(with) => (token.start..token.start, Some(with)),
            Edit::AfterPrevious(with) => (self.behind..self.behind, Some(with)),
        };
        let about = match advice.edit {
            Edit::ReplacePair(_) => range.clone(),
            _ => token.range(),
        };
        let d = self.diagnostic(about, advice.kind, fill(advice.message));
        Some(match (advice.remedy, with) {
            (None, _) => d,
            (Some(remedy), None) => d.suggest(fill(remedy)),
            (Some(remedy), Some(with)) => self.with(d, fill(remedy), range, fill(with)),
        })
    }

    /// The template with its placeholders replaced.
    fn filled(&self, template: &str, token: Token, place: P) -> String {
        if !template.contains('{') {
            return template.to_owned();
        }
        let text = self.slice(token);
        let name = text.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
        let word = match place {
            P::Direction(word) | P::Number(word) => word.text(),
            _ => "",
        };
        template
            .replace("{word}", word)
            .replace("{NAME}", &name.to_ascii_uppercase())
            .replace("{name}", name)
            .replace("{text}", text)
    }
}
