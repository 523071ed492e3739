//! Endpoints' answers with rows, in any of three formats: JSON, XML, and tab-separated values.

use super::answer::{AnswerError, XmlAnswer};
use super::json::JsonAnswer;
use super::wide::{CheckedTable, WideAnswer};
use jindou_model::term;
use oxrdf::{BlankNode, NamedOrBlankNode, Term, Triple};
use sparesults::{
    QueryResultsFormat, QueryResultsParseError, QueryResultsParser, ReaderQueryResultsParserOutput,
    ReaderSolutionsParser,
};
use std::io::Read;

type Result<T> = std::result::Result<T, AnswerError>;
type Body<'r> = Box<dyn Read + 'r>;

/// An answer's head, and its rows, which are read on demand.
pub enum EndpointAnswer<'r> {
    /// SPARQL Query Results in XML.
    Xml(Box<XmlAnswer<'r>>),
    /// SPARQL Query Results in JSON.
    Json(Box<JsonAnswer<Body<'r>>>),
    /// Tab-separated values.
    Table(Box<TableAnswer<'r>>),
}

/// An answer in tab-separated values: its head, and its rows, which are read on demand.
pub struct TableAnswer<'r> {
    /// `None` for the answer to an ASK.
    solutions: Option<ReaderSolutionsParser<CheckedTable<Body<'r>>>>,
    boolean: Option<bool>,
    names: Vec<String>,
    own: String,
    cells: Vec<Option<Vec<u8>>>,
}

/// The format of an answer with this media type; `None` for any other type. `text/plain` is not accepted, although some
/// lists of media types assign it to tables, because endpoints use it for error messages.
#[must_use]
pub fn answer_format(media: &str) -> Option<QueryResultsFormat> {
    let name = media.split(';').next().unwrap_or_default().trim();
    match name.to_ascii_lowercase().as_str() {
        "text/plain" => None,
        "application/json" | "text/json" => Some(QueryResultsFormat::Json),
        "application/xml" | "text/xml" => Some(QueryResultsFormat::Xml),
        _ => QueryResultsFormat::from_media_type(media),
    }
}

impl<'r> EndpointAnswer<'r> {
    /// Reads the head of an answer. Labels of blank nodes get `own` as a prefix, to distinguish answers. The encoding
    /// in `charset` (from the HTTP header) takes precedence over that of an XML declaration.
    ///
    /// # Errors
    /// If the document is not a SPARQL result in this format.
    pub fn open(
        format: QueryResultsFormat,
        body: impl Read + 'r,
        own: &str,
        charset: Option<String>,
    ) -> Result<Self> {
        Ok(match format {
            QueryResultsFormat::Xml => Self::Xml(Box::new(XmlAnswer::open(body, own, charset)?)),
            QueryResultsFormat::Json => {
                let body: Body<'r> = Box::new(body);
                Self::Json(Box::new(JsonAnswer::open(body, own)?))
            }
            _ => Self::Table(Box::new(TableAnswer::open(format, Box::new(body), own)?)),
        })
    }

    /// The variables, in the order of the head.
    #[must_use]
    pub fn variables(&self) -> &[String] {
        match self {
            Self::Xml(answer) => answer.variables(),
            Self::Json(answer) => answer.variables(),
            Self::Table(answer) => &answer.names,
        }
    }

    /// The result of an ASK; `None` if the answer has rows.
    #[must_use]
    pub fn boolean(&self) -> Option<bool> {
        match self {
            Self::Xml(answer) => answer.boolean(),
            Self::Json(answer) => answer.boolean(),
            Self::Table(answer) => answer.boolean,
        }
    }

    /// The next row: a term's canonical bytes per variable, `None` where it is unbound. Returns `None` after the last
    /// row, if the document is complete.
    ///
    /// # Errors
    /// If the document is malformed or truncated, or has an invalid term.
    pub fn row(&mut self) -> Result<Option<&mut [Option<Vec<u8>>]>> {
        match self {
            Self::Xml(answer) => answer.row(),
            Self::Json(answer) => answer.row(),
            Self::Table(answer) => answer.row(),
        }
    }
}

impl<'r> TableAnswer<'r> {
    fn open(format: QueryResultsFormat, body: Body<'r>, own: &str) -> Result<Self> {
        let parser = QueryResultsParser::from_format(format)
            .for_reader(CheckedTable::new(body))
            .map_err(unread)?;
        let mut this = Self {
            solutions: None,
            boolean: None,
            names: Vec::new(),
            own: own.to_owned(),
            cells: Vec::new(),
        };
        match parser {
            ReaderQueryResultsParserOutput::Boolean(value) => this.boolean = Some(value),
            ReaderQueryResultsParserOutput::Solutions(solutions) => {
                let names = solutions.variables().iter();
                this.names = names.map(|v| v.as_str().to_owned()).collect();
                this.cells = vec![None; this.names.len()];
                this.solutions = Some(solutions);
            }
        }
        Ok(this)
    }

    fn row(&mut self) -> Result<Option<&mut [Option<Vec<u8>>]>> {
        let Some(solution) = self.solutions.as_mut().and_then(Iterator::next) else {
            return Ok(None);
        };
        let solution = solution.map_err(unread)?;
        for (cell, value) in self.cells.iter_mut().zip(solution.values()) {
            *cell = value
                .as_ref()
                .map(|t| term::encode(&apart(t.clone(), &self.own)));
        }
        Ok(Some(&mut self.cells))
    }
}

fn unread(e: QueryResultsParseError) -> AnswerError {
    match e {
        QueryResultsParseError::Io(e) => {
            let wide = e.get_ref().and_then(|e| e.downcast_ref::<WideAnswer>());
            match wide {
                Some(wide) => AnswerError::Wide(*wide),
                None => AnswerError::Io(e),
            }
        }
        e => AnswerError::Table(e.to_string()),
    }
}

/// The term with `own` as a prefix of its blank nodes' labels.
fn apart(t: Term, own: &str) -> Term {
    let blank = |b: &BlankNode| BlankNode::new_unchecked(format!("{own}{}", b.as_str()));
    match t {
        Term::BlankNode(b) => blank(&b).into(),
        Term::Triple(t) => {
            let subject = match t.subject {
                NamedOrBlankNode::BlankNode(b) => blank(&b).into(),
                other => other,
            };
            Triple::new(subject, t.predicate, apart(t.object, own)).into()
        }
        other => other,
    }
}
