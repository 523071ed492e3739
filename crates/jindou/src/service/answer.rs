//! SPARQL Query Results in XML, read row by row as they arrive, with the parser [`jindou_parse::xml`]. A truncated
//! answer is an error. A literal is all text between its tags, including CDATA and without comments.

use super::terms::{self, MOST_TRIPLES, TermFault, TermResult, wrong};
use super::wide::{MOST_VARIABLES, WideAnswer};
use jindou_parse::xml::{Event, Reader, ReaderOptions, Start};
use std::collections::HashMap;
use std::io::Read;
use thiserror::Error;

/// Longest tag or comment that is accepted, in bytes.
const MARKUP: usize = 1 << 20;
/// Largest number of attributes of a tag.
const ATTRIBUTES: usize = 1000;
/// XML namespace of the attribute for a literal's base direction.
const ITS: &str = "http://www.w3.org/2005/11/its";

/// Reason why an answer cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The answer is not well-formed XML, is truncated, or could not be received.
    #[error("{0}")]
    Xml(jindou_parse::xml::Error),
    /// The answer is not JSON, is truncated, or is not a SPARQL result.
    #[error("{0}")]
    Json(String),
    /// The answer is not a table of values separated by tabs.
    #[error("{0}")]
    Table(String),
    /// The answer could not be received.
    #[error("{0}")]
    Io(std::io::Error),
    /// The answer has too many variables or cells, is truncated, or is nested too deeply.
    #[error("its answer {0}")]
    Wide(WideAnswer),
}

impl From<TermFault> for AnswerError {
    fn from(fault: TermFault) -> Self {
        match fault {
            TermFault::Wrong(message) => Self::Json(message),
            TermFault::Wide(wide) => Self::Wide(wide),
        }
    }
}

type Result<T> = std::result::Result<T, AnswerError>;

/// An answer in XML: its head, and its rows, which are read on demand.
pub struct XmlAnswer<'r> {
    reader: Reader<'r>,
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    boolean: Option<bool>,
    state: ReaderState,
}

/// State of the reader between two events of the XML parser.
#[derive(Default)]
struct ReaderState {
    /// The open elements, outermost first.
    open: Vec<ResultsElement>,
    /// Prefix for the labels of blank nodes.
    own: String,
    /// Text of the element being read.
    text: String,
    /// Language tag, and further attributes, of the literal being read.
    language: String,
    datatype: String,
    /// Triple terms that have begun, outermost first, with the components read so far.
    triples: Vec<[Option<Vec<u8>>; 3]>,
    /// The last term that was read, until it becomes part of a row or a triple term.
    term: Option<Vec<u8>>,
    cells: Vec<Option<Vec<u8>>>,
    column: usize,
    variables: Vec<String>,
    boolean: Option<bool>,
    has_results: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResultsElement {
    Sparql,
    Head,
    Variable,
    Results,
    Boolean,
    Result,
    Binding,
    Uri,
    Blank,
    Literal,
    Triple,
    Part(usize),
    /// An element that is ignored, including its content.
    Other,
}

impl<'r> XmlAnswer<'r> {
    /// Reads the head of an answer. Labels of blank nodes get `own` as a prefix, to distinguish answers. The encoding
    /// in `charset` (from the HTTP header) takes precedence over the document's own declaration.
    ///
    /// # Errors
    /// If the document is not a SPARQL result in XML.
    pub fn open(body: impl Read + 'r, own: &str, charset: Option<String>) -> Result<Self> {
        let mut options = ReaderOptions::default();
        options.markup = MARKUP;
        options.attributes = ATTRIBUTES;
        options.encoding = charset;
        let mut this = Self {
            reader: Reader::new(body, options).map_err(AnswerError::Xml)?,
            names: Vec::new(),
            numbers: HashMap::new(),
            boolean: None,
            state: ReaderState {
                own: own.to_owned(),
                ..ReaderState::default()
            },
        };
        while !this.state.has_results && this.step()?.is_some() {}
        this.names = std::mem::take(&mut this.state.variables);
        this.numbers = this.names.iter().cloned().zip(0..).collect();
        if this.numbers.len() < this.names.len() {
            return Err(this.wrong("its head names a variable twice, expected each once"));
        }
        this.state.cells = vec![None; this.names.len()];
        this.boolean = this.state.boolean;
        Ok(this)
    }

    /// The variables, in the order of the head.
    #[must_use]
    pub fn variables(&self) -> &[String] {
        &self.names
    }

    /// The result of an ASK, read to the document's end; `None` if the answer has rows.
    #[must_use]
    pub fn boolean(&self) -> Option<bool> {
        self.boolean
    }

    /// The next row: a term's canonical bytes per variable, `None` where it is unbound. Returns `None` after the last
    /// row, if the document is complete.
    ///
    /// # Errors
    /// If the document is not well-formed, is truncated, or has an invalid term.
    pub fn row(&mut self) -> Result<Option<&mut [Option<Vec<u8>>]>> {
        self.state.cells.iter_mut().for_each(|cell| *cell = None);
        loop {
            match self.step()? {
                None => return Ok(None),
                Some(true) => return Ok(Some(&mut self.state.cells)),
                Some(false) => {}
            }
        }
    }

    /// Processes one event of the XML parser; true if it ends a row. `None` at the document's end.
    fn step(&mut self) -> Result<Option<bool>> {
        let event = self.reader.next_event().map_err(AnswerError::Xml)?;
        let state = &mut self.state;
        let step = match event {
            Event::Start(start) => state.start(&start, &self.numbers),
            Event::End { .. } => state.end(),
            Event::Text(text) => state.text(text),
            Event::Eof => {
                return match state.has_results {
                    true => Ok(None),
                    false => {
                        Err(self.wrong("it has no results, expected `<results>` or `<boolean>`"))
                    }
                };
            }
            _ => Ok(false),
        };
        step.map(Some).map_err(|fault| match fault {
            TermFault::Wrong(message) => self.wrong(&message),
            TermFault::Wide(wide) => AnswerError::Wide(wide),
        })
    }

    #[cold]
    fn wrong(&self, message: &str) -> AnswerError {
        AnswerError::Xml(self.reader.fault(message))
    }
}

/// The methods for events return true if a row has ended.
impl ReaderState {
    fn start(&mut self, start: &Start<'_>, numbers: &HashMap<String, usize>) -> TermResult<bool> {
        let name = start.name().local;
        let inner = match (self.open.last(), name) {
            (None, "sparql") => ResultsElement::Sparql,
            (None, _) => {
                return wrong(format!(
                    "`{name}` is not a SPARQL result, expected `<sparql>`"
                ));
            }
            (Some(ResultsElement::Other), _) => ResultsElement::Other,
            (Some(ResultsElement::Sparql), "head") => ResultsElement::Head,
            (Some(ResultsElement::Sparql), "results" | "boolean")
                if self.has_results || self.boolean.is_some() =>
            {
                return wrong("it has two results, expected one");
            }
            (Some(ResultsElement::Sparql), "results") => ResultsElement::Results,
            (Some(ResultsElement::Sparql), "boolean") => ResultsElement::Boolean,
            (Some(ResultsElement::Head), "variable") => {
                if self.has_results {
                    return wrong("its head follows its results, expected it before them");
                }
                let Some(name) = attribute(start, "", "name") else {
                    return wrong("a variable has no name, expected `name=\"…\"`");
                };
                if self.variables.len() >= MOST_VARIABLES {
                    return Err(TermFault::Wide(WideAnswer::Variables));
                }
                self.variables.push(name.to_owned());
                ResultsElement::Variable
            }
            // Ignores links and other metadata that endpoints add.
            (Some(ResultsElement::Head | ResultsElement::Variable), _) => ResultsElement::Other,
            (Some(ResultsElement::Results), "result") => ResultsElement::Result,
            (Some(ResultsElement::Result), "binding") => {
                let Some(name) = attribute(start, "", "name") else {
                    return wrong("a binding has no variable, expected `name=\"…\"`");
                };
                let Some(&column) = numbers.get(name) else {
                    return wrong(format!(
                        "the variable `{name}` is not in the head, expected one that is"
                    ));
                };
                if self.cells.get(column).is_some_and(Option::is_some) {
                    return wrong(format!("a row has two values for `{name}`, expected one"));
                }
                self.column = column;
                ResultsElement::Binding
            }
            (
                Some(ResultsElement::Binding | ResultsElement::Part(_)),
                "uri" | "bnode" | "literal" | "triple",
            ) => {
                if self.term.is_some() {
                    return wrong("a binding has two terms");
                }
                self.text.clear();
                match name {
                    "uri" => ResultsElement::Uri,
                    "bnode" => ResultsElement::Blank,
                    "literal" => {
                        self.literal_attributes(start)?;
                        ResultsElement::Literal
                    }
                    _ => {
                        if self.triples.len() >= MOST_TRIPLES {
                            return Err(TermFault::Wide(WideAnswer::Depth));
                        }
                        self.triples.push([None, None, None]);
                        ResultsElement::Triple
                    }
                }
            }
            (Some(ResultsElement::Triple), "subject") => ResultsElement::Part(0),
            (Some(ResultsElement::Triple), "predicate") => ResultsElement::Part(1),
            (Some(ResultsElement::Triple), "object") => ResultsElement::Part(2),
            (Some(outer), _) => {
                return wrong(
                    format!("`<{name}>` is not allowed in {outer:?}, expected a SPARQL result")
                        .to_lowercase(),
                );
            }
        };
        if inner == ResultsElement::Results {
            self.has_results = true;
        }
        if inner == ResultsElement::Boolean {
            self.text.clear();
        }
        self.open.push(inner);
        Ok(false)
    }

    fn literal_attributes(&mut self, start: &Start<'_>) -> TermResult<()> {
        self.language.clear();
        self.datatype.clear();
        let given = |namespace, name| attribute(start, namespace, name).filter(|v| !v.is_empty());
        if let Some(tag) = given(jindou_parse::xml::XML, "lang") {
            self.language = terms::language(tag, attribute(start, ITS, "dir"))?;
        } else if let Some(iri) = given("", "datatype") {
            terms::check_datatype(iri)?;
            self.datatype.push_str(iri);
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> TermResult<bool> {
        match self.open.last() {
            Some(
                ResultsElement::Uri
                | ResultsElement::Blank
                | ResultsElement::Literal
                | ResultsElement::Boolean,
            ) => {
                self.text.push_str(text);
                Ok(false)
            }
            Some(ResultsElement::Other) => Ok(false),
            _ if text.trim_ascii().is_empty() => Ok(false),
            _ => wrong("text between elements, expected only white space"),
        }
    }

    fn end(&mut self) -> TermResult<bool> {
        let Some(element) = self.open.pop() else {
            return Ok(false);
        };
        match element {
            ResultsElement::Uri => self.term = Some(terms::iri(self.text.trim_ascii())?),
            ResultsElement::Blank => {
                self.term = Some(terms::blank(self.text.trim_ascii(), &self.own)?);
            }
            ResultsElement::Literal => {
                let bytes = terms::literal(&self.text, &self.language, &self.datatype);
                self.term = Some(bytes);
            }
            ResultsElement::Part(part) => self.end_part(part)?,
            ResultsElement::Triple => {
                let parts = self.triples.pop().unwrap_or_default();
                self.term = Some(terms::triple(parts)?);
            }
            ResultsElement::Binding => {
                let Some(term) = self.term.take() else {
                    return wrong("a binding has no term, expected one");
                };
                if let Some(cell) = self.cells.get_mut(self.column) {
                    *cell = Some(term);
                }
            }
            ResultsElement::Boolean => {
                self.boolean = match self.text.trim_ascii() {
                    "true" => Some(true),
                    "false" => Some(false),
                    _ => {
                        return wrong(
                            "a boolean is neither `true` nor `false`, expected one of them",
                        );
                    }
                };
            }
            ResultsElement::Sparql => self.has_results |= self.boolean.is_some(),
            ResultsElement::Result => return Ok(true),
            ResultsElement::Head
            | ResultsElement::Variable
            | ResultsElement::Results
            | ResultsElement::Other => {}
        }
        Ok(false)
    }

    /// Ends the subject (`part` is 0), predicate (1) or object (2) of a triple term.
    fn end_part(&mut self, part: usize) -> TermResult<()> {
        let Some(term) = self.term.take() else {
            return wrong("a part of a triple has no term, expected one");
        };
        terms::check_part(part, &term)?;
        let slot = self.triples.last_mut().and_then(|t| t.get_mut(part));
        if slot.is_some_and(|slot| slot.replace(term).is_some()) {
            return wrong("a part of a triple is given twice, expected it once");
        }
        Ok(())
    }
}

fn attribute<'a>(start: &Start<'a>, namespace: &str, local: &str) -> Option<&'a str> {
    let mut all = start.attributes();
    all.find(|a| a.name.local == local && a.name.namespace == namespace)
        .map(|a| a.value)
}

#[cfg(test)]
mod tests;
