//! SPARQL Query Results in JSON, read row by row as they arrive. Some deviations from the format whose meaning is clear
//! are accepted, since endpoints send them: `"xml:lang": ""` and `null`, a head without variables or after the rows,
//! and labels of blank nodes that SPARQL does not allow.

use super::answer::AnswerError;
use super::terms::{self, MOST_TRIPLES, shortened};
use super::wide::{MOST_VARIABLES, WideAnswer};
use json_event_parser::{JsonEvent, JsonParseError, ReaderJsonParser};
use std::collections::{HashMap, VecDeque};
use std::io::Read;

/// Deepest nesting of values that are ignored.
const DEEPEST: usize = 512;

type Result<T> = std::result::Result<T, AnswerError>;
/// Canonical bytes of a row's terms, each with the number of its variable.
type Row = Vec<(usize, Vec<u8>)>;

/// An answer in JSON: its head, and its rows, which are read on demand.
pub struct JsonAnswer<R: Read> {
    events: Events<R>,
    /// Prefix for the labels of blank nodes.
    own: String,
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    boolean: Option<bool>,
    /// Rows that came before the head, whose variables are not known yet.
    held: VecDeque<Row>,
    /// True while the document's array of rows is being read.
    in_rows: bool,
    /// Number of rows read so far.
    rows: u64,
    cells: Vec<Option<Vec<u8>>>,
}

/// The members of the JSON object that describes a term.
#[derive(Default)]
struct Description {
    kind: String,
    text: Option<String>,
    language: String,
    direction: String,
    datatype: String,
    parts: [Option<Vec<u8>>; 3],
}

struct Events<R: Read>(ReaderJsonParser<R>);

impl<R: Read> Events<R> {
    fn next(&mut self) -> Result<JsonEvent<'_>> {
        self.0.parse_next().map_err(|e| match e {
            JsonParseError::Io(e) => AnswerError::Io(e),
            JsonParseError::Syntax(e) => AnswerError::Json(e.to_string()),
        })
    }

    /// The name of the current object's next member; `None` at the object's end.
    fn member(&mut self) -> Result<Option<String>> {
        match self.next()? {
            JsonEvent::ObjectKey(name) => Ok(Some(name.into_owned())),
            _ => Ok(None),
        }
    }

    /// Reads a string; `None` for `null`.
    fn text(&mut self, what: &str) -> Result<Option<String>> {
        match self.next()? {
            JsonEvent::String(s) => Ok(Some(s.into_owned())),
            JsonEvent::Null => Ok(None),
            _ => Err(wrong(format!("{what} is not a string"))),
        }
    }

    fn begin(&mut self, with: &JsonEvent<'_>, what: &str) -> Result<()> {
        if self.next()? == *with {
            return Ok(());
        }
        let kind = match with {
            JsonEvent::StartArray => "an array",
            _ => "an object",
        };
        Err(wrong(format!("{what} is not {kind}")))
    }

    /// Skips a value, including nested ones.
    fn skip(&mut self) -> Result<()> {
        let mut depth = 0;
        loop {
            match self.next()? {
                JsonEvent::StartArray | JsonEvent::StartObject => depth += 1,
                JsonEvent::EndArray | JsonEvent::EndObject => depth -= 1,
                JsonEvent::Eof => return Ok(()),
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
            if depth > DEEPEST {
                return Err(AnswerError::Wide(WideAnswer::Depth));
            }
        }
    }
}

#[cold]
fn wrong(message: impl Into<String>) -> AnswerError {
    AnswerError::Json(message.into())
}

impl<R: Read> JsonAnswer<R> {
    /// Reads an answer up to its rows. Labels of blank nodes get `own` as a prefix, to distinguish answers.
    ///
    /// # Errors
    /// If the document is not a SPARQL result in JSON.
    pub fn open(body: R, own: &str) -> Result<Self> {
        let mut this = Self {
            events: Events(ReaderJsonParser::new(body)),
            own: own.to_owned(),
            names: Vec::new(),
            numbers: HashMap::new(),
            boolean: None,
            held: VecDeque::new(),
            in_rows: false,
            rows: 0,
            cells: Vec::new(),
        };
        let events = &mut this.events;
        events.begin(&JsonEvent::StartObject, "it")?;
        let (mut has_head, mut has_rows) = (false, false);
        while let Some(name) = this.events.member()? {
            match name.as_str() {
                "head" => has_head = this.head(has_head, has_rows)?,
                "boolean" => match this.events.next()? {
                    JsonEvent::Boolean(value) => this.boolean = Some(value),
                    _ => return Err(wrong("its `boolean` is neither true nor false")),
                },
                "results" if has_rows => return Err(wrong("it has two results, expected one")),
                "results" => {
                    has_rows = true;
                    if this.results(has_head)? {
                        this.cells = vec![None; this.names.len()];
                        return Ok(this);
                    }
                }
                _ => this.events.skip()?,
            }
        }
        this.ended()?;
        match (this.boolean, has_rows) {
            (Some(_), true) => Err(wrong("it has two results, expected one")),
            (None, false) => Err(wrong(
                "it has no results, expected a member `results` or `boolean`",
            )),
            _ => {
                this.cells = vec![None; this.names.len()];
                Ok(this)
            }
        }
    }

    /// The variables, in the order of the head, or of their occurrence if there is no head.
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
    /// If the document is not JSON, is truncated, or has an invalid term.
    pub fn row(&mut self) -> Result<Option<&mut [Option<Vec<u8>>]>> {
        self.cells.iter_mut().for_each(|cell| *cell = None);
        let row = match self.held.pop_front() {
            Some(row) => row,
            None if !self.in_rows => return Ok(None),
            None => match self.next_row(false)? {
                Some(row) => row,
                None => {
                    self.in_rows = false;
                    self.rest_of_results()?;
                    self.rest()?;
                    return Ok(None);
                }
            },
        };
        for (column, term) in row {
            if let Some(cell) = self.cells.get_mut(column) {
                *cell = Some(term);
            }
        }
        Ok(Some(&mut self.cells))
    }

    /// Reads the member `head`. Returns true if this or an earlier head has named the variables.
    fn head(&mut self, mut has_variables: bool, has_rows: bool) -> Result<bool> {
        self.events.begin(&JsonEvent::StartObject, "its head")?;
        while let Some(name) = self.events.member()? {
            if name != "vars" {
                self.events.skip()?;
                continue;
            }
            if has_variables {
                return Err(wrong("it has two lists of variables, expected one"));
            }
            let mut list = Vec::new();
            match self.events.next()? {
                JsonEvent::StartArray => {}
                JsonEvent::Null => continue,
                _ => return Err(wrong("`vars` of its head is not an array")),
            }
            loop {
                match self.events.next()? {
                    JsonEvent::String(name) => list.push(name.into_owned()),
                    JsonEvent::EndArray => break,
                    _ => return Err(wrong("a variable of its head is not a string")),
                }
                if list.len() > MOST_VARIABLES {
                    return Err(AnswerError::Wide(WideAnswer::Variables));
                }
            }
            has_variables = true;
            self.named(list, has_rows)?;
        }
        Ok(has_variables)
    }

    /// Sets the variables, as the head names them. If rows came before the head, their columns are renumbered.
    fn named(&mut self, list: Vec<String>, has_rows: bool) -> Result<()> {
        let numbers: HashMap<String, usize> = list.iter().cloned().zip(0..).collect();
        if numbers.len() < list.len() {
            return Err(wrong("its head names a variable twice, expected each once"));
        }
        if has_rows {
            let moved: Option<Vec<usize>> = self
                .names
                .iter()
                .map(|name| numbers.get(name).copied())
                .collect();
            let moved = moved.ok_or_else(|| {
                wrong("a row has a variable that is not in the head, expected one that is")
            })?;
            for (column, _) in self.held.iter_mut().flatten() {
                *column = moved.get(*column).copied().unwrap_or(usize::MAX);
            }
        }
        (self.names, self.numbers) = (list, numbers);
        Ok(())
    }

    /// Reads the member `results` up to its first row and returns true. If the head has not named the variables yet,
    /// reads all rows, keeps them in memory, and returns false.
    fn results(&mut self, has_head: bool) -> Result<bool> {
        self.events.begin(&JsonEvent::StartObject, "`results`")?;
        while let Some(name) = self.events.member()? {
            if name != "bindings" {
                self.events.skip()?;
                continue;
            }
            self.events
                .begin(&JsonEvent::StartArray, "`bindings` of the results")?;
            if has_head {
                self.in_rows = true;
                return Ok(true);
            }
            while let Some(row) = self.next_row(true)? {
                self.held.push_back(row);
            }
        }
        Ok(false)
    }

    /// Reads the remaining members of `results` after the rows.
    fn rest_of_results(&mut self) -> Result<()> {
        while let Some(name) = self.events.member()? {
            if name == "bindings" {
                return Err(wrong("it has two results, expected one"));
            }
            self.events.skip()?;
        }
        Ok(())
    }

    /// Reads the remaining members of the document after `results`.
    fn rest(&mut self) -> Result<()> {
        while let Some(name) = self.events.member()? {
            if matches!(name.as_str(), "results" | "boolean") {
                return Err(wrong("it has two results, expected one"));
            }
            self.events.skip()?;
        }
        self.ended()
    }

    fn ended(&mut self) -> Result<()> {
        match self.events.next()? {
            JsonEvent::Eof => Ok(()),
            _ => Err(wrong("text follows the answer")),
        }
    }

    /// Reads a row; `None` after the last one. If the head has not been read yet, variables are numbered as they occur.
    fn next_row(&mut self, is_before_head: bool) -> Result<Option<Row>> {
        match self.events.next()? {
            JsonEvent::StartObject => {}
            JsonEvent::EndArray => return Ok(None),
            _ => return Err(wrong("a row is not an object")),
        }
        self.rows += 1;
        let mut row = Row::new();
        while let Some(name) = self.events.member()? {
            let column = match self.numbers.get(&name) {
                Some(&column) => column,
                None if is_before_head => {
                    if self.names.len() == MOST_VARIABLES {
                        return Err(AnswerError::Wide(WideAnswer::Variables));
                    }
                    self.names.push(name.clone());
                    self.numbers.insert(name.clone(), self.names.len() - 1);
                    self.names.len() - 1
                }
                None => {
                    return Err(wrong(format!(
                        "the variable `{}` is not in the head, expected one that is",
                        shortened(&name)
                    )));
                }
            };
            let place = |e: AnswerError, rows: u64| match e {
                AnswerError::Json(message) => wrong(format!(
                    "row {rows}, variable {}: {message}",
                    shortened(&name)
                )),
                e => e,
            };
            let term = self.term(0).map_err(|e| place(e, self.rows))?;
            let Some(term) = term else { continue };
            if row.len() > MOST_VARIABLES {
                return Err(AnswerError::Wide(WideAnswer::Variables));
            }
            row.push((column, term));
        }
        row.sort_by_key(|(column, _)| *column);
        if row.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(wrong(format!(
                "row {} has two values for a variable, expected one",
                self.rows
            )));
        }
        Ok(Some(row))
    }

    /// Reads a term; `None` for `null`.
    fn term(&mut self, depth: usize) -> Result<Option<Vec<u8>>> {
        match self.events.next()? {
            JsonEvent::StartObject => {}
            JsonEvent::Null => return Ok(None),
            _ => return Err(wrong("a term is not an object")),
        }
        let mut it = Description::default();
        while let Some(name) = self.events.member()? {
            let events = &mut self.events;
            match name.as_str() {
                "type" => it.kind = events.text("`type`")?.unwrap_or_default(),
                "xml:lang" => it.language = events.text("`xml:lang`")?.unwrap_or_default(),
                "its:dir" => it.direction = events.text("`its:dir`")?.unwrap_or_default(),
                "datatype" => it.datatype = events.text("`datatype`")?.unwrap_or_default(),
                "value" => {
                    it.text = match events.next()? {
                        JsonEvent::String(s) => Some(s.into_owned()),
                        JsonEvent::StartObject => None,
                        _ => return Err(wrong("`value` is not a string")),
                    };
                    if it.text.is_none() {
                        it.parts = self.parts(depth)?;
                    }
                }
                _ => events.skip()?,
            }
        }
        it.bytes(&self.own).map(Some)
    }

    /// Reads the components of a triple term after the beginning of their object.
    fn parts(&mut self, depth: usize) -> Result<[Option<Vec<u8>>; 3]> {
        if depth >= MOST_TRIPLES {
            return Err(AnswerError::Wide(WideAnswer::Depth));
        }
        let mut parts = [None, None, None];
        while let Some(name) = self.events.member()? {
            let part = match name.as_str() {
                "subject" => 0,
                "predicate" => 1,
                "object" => 2,
                _ => {
                    self.events.skip()?;
                    continue;
                }
            };
            parts[part] = self.term(depth + 1)?;
        }
        Ok(parts)
    }
}

impl Description {
    /// Canonical bytes of the term.
    fn bytes(self, own: &str) -> Result<Vec<u8>> {
        if self.kind == "triple" {
            return Ok(terms::triple(self.parts)?);
        }
        let text = self
            .text
            .as_deref()
            .ok_or_else(|| wrong("a term has no `value`, expected a string"))?;
        match self.kind.as_str() {
            "uri" => Ok(terms::iri(text)?),
            "bnode" => Ok(terms::blank(text, own)?),
            "literal" | "typed-literal" => self.literal(text),
            other => Err(wrong(format!(
                "a term has the type `{}`, expected uri, bnode, literal or triple",
                shortened(other)
            ))),
        }
    }

    fn literal(&self, text: &str) -> Result<Vec<u8>> {
        if self.language.is_empty() {
            if !self.datatype.is_empty() {
                terms::check_datatype(&self.datatype)?;
            }
            return Ok(terms::literal(text, "", &self.datatype));
        }
        let direction = Some(self.direction.as_str()).filter(|d| !d.is_empty());
        let language = terms::language(&self.language, direction)?;
        Ok(terms::literal(text, &language, ""))
    }
}

#[cfg(test)]
mod tests;
