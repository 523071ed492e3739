//! One writer for answers in all formats.

use super::table::TextTable;
use super::{
    AnswerSink, GraphWriter, HELD_BY_PIECES, PIECE, Prefixes, RowText, Rows, expressible, rows,
};
use jindou_model::{Error, Result, term};
use oxrdf::{GraphNameRef, NamedOrBlankNode, Term, Triple};
use oxrdfio::{JsonLdProfileSet, RdfFormat};
use sparesults::{QueryResultsFormat, QueryResultsSerializer};
use std::io::Write;
use std::str::FromStr;

/// A format for answers. Rows and booleans (SELECT, ASK) are written in the formats for tables, and graphs (CONSTRUCT,
/// DESCRIBE) in the formats for RDF. If a graph is requested in a format for tables: CSV, TSV and lines of JSON have
/// rows of subject, predicate and object; JSON means JSON-LD, XML means RDF/XML, and a table for people means
/// N-Triples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResultFormat {
    /// A table for people.
    Table,
    /// SPARQL Results TSV.
    Tsv,
    /// SPARQL Results CSV.
    Csv,
    /// SPARQL Results JSON.
    Json,
    /// Lines of JSON: an object per row, as in the `bindings` of SPARQL Results JSON. Programs can process the lines as
    /// they arrive.
    JsonLines,
    /// SPARQL Results XML.
    Xml,
    /// An RDF format.
    Rdf(RdfFormat),
}

impl ResultFormat {
    /// Names of all formats, as accepted by [`FromStr`].
    pub const NAMES: [&'static str; 12] = [
        "table", "tsv", "csv", "json", "ndjson", "xml", "nt", "nq", "ttl", "trig", "rdf", "jsonld",
    ];
}

impl FromStr for ResultFormat {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        Ok(match s {
            "table" => Self::Table,
            "tsv" => Self::Tsv,
            "csv" => Self::Csv,
            "json" | "srj" => Self::Json,
            "ndjson" | "jsonl" => Self::JsonLines,
            "xml" | "srx" => Self::Xml,
            "nt" | "ntriples" | "n-triples" => Self::Rdf(RdfFormat::NTriples),
            "nq" | "nquads" | "n-quads" => Self::Rdf(RdfFormat::NQuads),
            "ttl" | "turtle" | "n3" => Self::Rdf(RdfFormat::Turtle),
            "trig" => Self::Rdf(RdfFormat::TriG),
            "rdf" | "rdfxml" | "rdf+xml" | "rdf/xml" => Self::Rdf(RdfFormat::RdfXml),
            "jsonld" | "json-ld" => Self::Rdf(JSON_LD),
            other => {
                return Err(format!(
                    "unknown format '{other}'; expected one of {}",
                    Self::NAMES.join(", ")
                ));
            }
        })
    }
}

const JSON_LD: RdfFormat = RdfFormat::JsonLd {
    profile: JsonLdProfileSet::empty(),
};

enum WriterState<W: Write> {
    Ready(W),
    Text(W, Vec<u8>, FormatKind),
    /// A graph. Its first triples are held back until the prefixes that they use can be declared.
    Graph(Box<GraphWriter<W>>, RdfFormat, Option<HeldTriples>),
    Done,
}

enum FormatKind {
    Table(TextTable),
    /// Rows in a text format, and true if a row was written already.
    Rows(RowText, bool),
}

impl FormatKind {
    fn tail(&self) -> &'static [u8] {
        match self {
            Self::Rows(RowText::Json(_), _) => b"]}}\n",
            Self::Rows(RowText::Xml(_), _) => b"</results></sparql>\n",
            _ => b"",
        }
    }
}

/// Removes the comma before an answer's first row of JSON.
fn unjoined<'t>(kind: &mut FormatKind, text: &'t [u8]) -> &'t [u8] {
    match kind {
        FormatKind::Rows(kind, started) => unjoined_rows(kind, started, text),
        FormatKind::Table(_) => text,
    }
}

fn unjoined_rows<'t>(kind: &RowText, started: &mut bool, text: &'t [u8]) -> &'t [u8] {
    match kind {
        RowText::Json(_) if !text.is_empty() => {
            let from = usize::from(!*started);
            *started = true;
            &text[from..]
        }
        _ => text,
    }
}

/// Appends a row to the buffer, and writes full pieces of it.
fn write_row<'a, W: Write>(
    (text, started): (&RowText, &mut bool),
    row: impl Iterator<Item = Option<&'a [u8]>>,
    buffer: &mut Vec<u8>,
    out: &mut W,
) -> Result<()> {
    let mut write = |piece: &mut Vec<u8>| {
        let written = out.write_all(unjoined_rows(text, started, piece));
        piece.clear();
        written.map_err(closed)
    };
    text.push_in_pieces(row, buffer, &mut write)?;
    match buffer.len() < PIECE {
        true => Ok(()),
        false => write(buffer),
    }
}

/// Writes one answer: `solutions` then `rows` any number of times, or `boolean`, or `graph` then `triple` any number of
/// times; then `finish`.
pub struct ResultWriter<W: Write> {
    state: WriterState<W>,
    format: ResultFormat,
    /// The format to use if the answer is a graph.
    graphs: ResultFormat,
    /// Prefixes for tables that people read, and for Turtle.
    prefixes: Prefixes,
    /// Width of the reader's screen in characters; `None` for no limit.
    width: Option<usize>,
    /// Reused buffers for a triple's cells, if a graph is written as rows.
    cells: [Vec<u8>; 3],
}

pub(super) fn closed(e: std::io::Error) -> Error {
    if e.kind() == std::io::ErrorKind::BrokenPipe {
        Error::SinkClosed
    } else {
        Error::io("<output>", e)
    }
}

impl<W: Write> ResultWriter<W> {
    /// A writer at the start of an answer.
    pub fn new(out: W, format: ResultFormat) -> Self {
        Self {
            state: WriterState::Ready(out),
            format,
            graphs: format,
            prefixes: Prefixes::new(),
            width: None,
            cells: Default::default(),
        }
    }

    /// The same writer, with another format for graphs than for tables.
    #[must_use]
    pub fn with_graphs(self, graphs: ResultFormat) -> Self {
        Self { graphs, ..self }
    }

    /// The same writer, with IRIs abbreviated by these prefixes in tables for people, Turtle and TriG. Turtle and TriG
    /// declare the prefixes that they use.
    #[must_use]
    pub fn with_prefixes(self, prefixes: Prefixes) -> Self {
        Self { prefixes, ..self }
    }

    /// The same writer, with tables for people no wider than a screen of this many columns: long cells are cut and end
    /// in `…`.
    #[must_use]
    pub fn with_width(self, columns: usize) -> Self {
        Self {
            width: Some(columns),
            ..self
        }
    }

    fn ready(&mut self) -> Result<W> {
        match std::mem::replace(&mut self.state, WriterState::Done) {
            WriterState::Ready(w) => Ok(w),
            _ => Err(Error::Usage("a writer takes one answer".into())),
        }
    }

    /// Begins a table.
    fn table(&mut self, variables: &[String], format: ResultFormat) -> Result<()> {
        let mut out = self.ready()?;
        let (kind, head) = match format {
            ResultFormat::Table => {
                let prefixes = std::mem::take(&mut self.prefixes);
                (
                    FormatKind::Table(TextTable::new(variables, prefixes, self.width)),
                    Vec::new(),
                )
            }
            ResultFormat::Tsv | ResultFormat::Rdf(_) => {
                let names: Vec<String> = variables.iter().map(|v| format!("?{v}")).collect();
                let head = names.join("\t") + "\n";
                (FormatKind::Rows(RowText::Tsv, false), head.into_bytes())
            }
            ResultFormat::Csv => {
                let head = variables.join(",") + "\r\n";
                (FormatKind::Rows(RowText::Csv, false), head.into_bytes())
            }
            ResultFormat::Json => (
                FormatKind::Rows(RowText::json(variables), false),
                json_head(variables),
            ),
            ResultFormat::JsonLines => {
                let rows = RowText::json_lines(variables);
                (FormatKind::Rows(rows, false), Vec::new())
            }
            ResultFormat::Xml => (
                FormatKind::Rows(RowText::xml(variables), false),
                xml_head(variables),
            ),
        };
        out.write_all(&head).map_err(closed)?;
        self.state = WriterState::Text(out, Vec::new(), kind);
        Ok(())
    }
}

impl<W: Write + Send> ResultWriter<W> {
    /// Writes the triples of a graph that were held back, after the prefixes that they use. From then on, triples are
    /// written as they arrive.
    fn release(&mut self) -> Result<()> {
        let WriterState::Graph(graph, format, held) = &mut self.state else {
            return Ok(());
        };
        let Some(held) = held.take() else {
            return Ok(());
        };
        for triple in &held.triples {
            graph.note(triple.as_ref().in_graph(GraphNameRef::DefaultGraph));
        }
        held.triples
            .iter()
            .try_for_each(|triple| write_triple(graph, *format, triple))
    }
}

fn write_triple<W: Write>(
    graph: &mut GraphWriter<W>,
    format: RdfFormat,
    triple: &Triple,
) -> Result<()> {
    let other = expressible(triple.as_ref(), format)?;
    let triple = other.as_ref().unwrap_or(triple).as_ref();
    graph.quad(triple.in_graph(GraphNameRef::DefaultGraph))
}

impl<W: Write + Send> AnswerSink for ResultWriter<W> {
    fn solutions(&mut self, variables: &[String]) -> Result<()> {
        if let ResultFormat::Rdf(format) = self.format {
            return Err(no_graph("SELECT returns rows", format));
        }
        self.table(variables, self.format)
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        let WriterState::Text(out, buffer, kind) = &mut self.state else {
            unreachable!("columns come before rows");
        };
        for r in 0..rows.rows {
            match kind {
                FormatKind::Table(t) => {
                    t.row(rows.row(r), buffer);
                    if buffer.len() >= PIECE {
                        out.write_all(buffer).map_err(closed)?;
                        buffer.clear();
                    }
                }
                FormatKind::Rows(text, started) => {
                    write_row((text, started), rows.row(r), buffer, out)?;
                }
            }
        }
        Ok(())
    }

    fn row_text(&self) -> Option<RowText> {
        match &self.state {
            WriterState::Text(_, _, FormatKind::Rows(text, _)) => Some(text.clone()),
            _ => None,
        }
    }

    fn raw(&mut self, text: &[u8], _: u64) -> Result<()> {
        match &mut self.state {
            WriterState::Text(out, buffer, kind @ FormatKind::Rows(..)) => {
                if !buffer.is_empty() {
                    out.write_all(unjoined(kind, buffer)).map_err(closed)?;
                    buffer.clear();
                }
                out.write_all(unjoined(kind, text)).map_err(closed)
            }
            _ => unreachable!("rows are text where the writer says so"),
        }
    }

    fn boolean(&mut self, value: bool) -> Result<()> {
        if let ResultFormat::Rdf(format) = self.format {
            return Err(no_graph("ASK returns true or false", format));
        }
        let mut out = self.ready()?;
        match self.format {
            // The whole document; a serializer takes longer for it than a light query.
            ResultFormat::Json => {
                let text = match value {
                    true => r#"{"head":{},"boolean":true}"#,
                    false => r#"{"head":{},"boolean":false}"#,
                };
                out.write_all(text.as_bytes()).map_err(closed)?;
            }
            ResultFormat::Xml => {
                QueryResultsSerializer::from_format(QueryResultsFormat::Xml)
                    .serialize_boolean_to_writer(&mut out, value)
                    .map_err(closed)?;
            }
            ResultFormat::JsonLines => {
                writeln!(out, "{{\"boolean\":{value}}}").map_err(closed)?;
            }
            _ => writeln!(out, "{value}").map_err(closed)?,
        }
        out.flush().map_err(closed)
    }

    fn graph(&mut self) -> Result<()> {
        let format = match self.graphs {
            ResultFormat::Rdf(format) => format,
            ResultFormat::Json => JSON_LD,
            ResultFormat::Xml => RdfFormat::RdfXml,
            ResultFormat::Table => RdfFormat::NTriples,
            rows @ (ResultFormat::Csv | ResultFormat::Tsv | ResultFormat::JsonLines) => {
                return self.table(&TRIPLE.map(str::to_owned), rows);
            }
        };
        let out = self.ready()?;
        let prefixes = match format {
            RdfFormat::Turtle | RdfFormat::TriG => std::mem::take(&mut self.prefixes),
            _ => Prefixes::new(),
        };
        let held = (!prefixes.is_empty()).then(HeldTriples::default);
        let graph = GraphWriter::new(out, format, prefixes);
        self.state = WriterState::Graph(Box::new(graph), format, held);
        Ok(())
    }

    fn bytes_held(&self) -> u64 {
        match &self.state {
            WriterState::Graph(graph, ..) => graph.bytes_held(),
            _ => HELD_BY_PIECES,
        }
    }

    fn triple(&mut self, triple: &Triple) -> Result<()> {
        match &mut self.state {
            WriterState::Graph(_, _, Some(held)) => match held.push(triple) {
                true => self.release(),
                false => Ok(()),
            },
            WriterState::Graph(graph, format, None) => write_triple(graph, *format, triple),
            WriterState::Text(out, buffer, FormatKind::Rows(text, started)) => {
                let parts = [
                    &Term::from(triple.subject.clone()),
                    &Term::from(triple.predicate.clone()),
                    &triple.object,
                ];
                for (cell, part) in self.cells.iter_mut().zip(parts) {
                    cell.clear();
                    term::push_term(part, cell);
                }
                let row = self.cells.iter().map(|c| Some(&**c));
                let written = write_row((text, started), row, buffer, out);
                for cell in self.cells.iter_mut().filter(|c| c.len() >= PIECE) {
                    *cell = Vec::new();
                }
                written
            }
            _ => unreachable!("a graph begins before its triples"),
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.release()?;
        match std::mem::replace(&mut self.state, WriterState::Done) {
            WriterState::Text(mut out, mut buffer, mut kind) => {
                if let FormatKind::Table(t) = &mut kind {
                    t.finish(&mut buffer);
                }
                out.write_all(unjoined(&mut kind, &buffer))
                    .and_then(|()| out.write_all(kind.tail()))
                    .and_then(|()| out.flush())
                    .map_err(closed)
            }
            WriterState::Graph(g, ..) => g.finish().map(drop),
            WriterState::Ready(_) | WriterState::Done => Ok(()),
        }
    }
}

/// Number of a graph's first triples that are held back to declare the prefixes that they use; fewer if their terms
/// have this many bytes.
const HELD: usize = 256;
const HELD_BYTES: usize = 1 << 16;

#[derive(Default)]
struct HeldTriples {
    triples: Vec<Triple>,
    bytes: usize,
}

impl HeldTriples {
    /// Adds a triple; true if no more triples should be held back.
    fn push(&mut self, triple: &Triple) -> bool {
        self.bytes += triple_length(triple);
        self.triples.push(triple.clone());
        self.triples.len() >= HELD || self.bytes >= HELD_BYTES
    }
}

/// Length in bytes of the texts of a triple's terms.
pub(crate) fn triple_length(triple: &Triple) -> usize {
    let subject = match &triple.subject {
        NamedOrBlankNode::NamedNode(n) => n.as_str().len(),
        NamedOrBlankNode::BlankNode(b) => b.as_str().len(),
    };
    subject + triple.predicate.as_str().len() + term_length(&triple.object)
}

/// Length in bytes of a term's text.
pub(crate) fn term_length(term: &Term) -> usize {
    match term {
        Term::NamedNode(n) => n.as_str().len(),
        Term::BlankNode(b) => b.as_str().len(),
        Term::Literal(l) => l.value().len() + l.datatype().as_str().len(),
        Term::Triple(inner) => triple_length(inner),
    }
}

/// Names of the columns of a graph that is written as rows.
const TRIPLE: [&str; 3] = ["subject", "predicate", "object"];

fn no_graph(answer: &str, format: RdfFormat) -> Error {
    Error::Unsupported(format!(
        "{answer}, but {} is a format for graphs; use json, ndjson, xml, csv or tsv, or ask with CONSTRUCT",
        format.name()
    ))
}

fn json_head(variables: &[String]) -> Vec<u8> {
    let mut out = b"{\"head\":{\"vars\":[".to_vec();
    for (i, v) in variables.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        rows::push_json_string(v.as_bytes(), &mut out);
    }
    out.extend_from_slice(b"]},\"results\":{\"bindings\":[");
    out
}

fn xml_head(variables: &[String]) -> Vec<u8> {
    let mut out =
        b"<?xml version=\"1.0\"?><sparql xmlns=\"http://www.w3.org/2005/sparql-results#\"><head>"
            .to_vec();
    for v in variables {
        out.extend_from_slice(b"<variable name=\"");
        rows::push_xml_name(v, &mut out);
        out.extend_from_slice(b"\"/>");
    }
    out.extend_from_slice(b"</head><results>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_of_a_boolean_is_that_of_another_serializer() {
        for value in [true, false] {
            let mut out = Vec::new();
            let mut writer = ResultWriter::new(&mut out, ResultFormat::Json);
            writer.boolean(value).unwrap();
            drop(writer);
            let other = QueryResultsSerializer::from_format(QueryResultsFormat::Json);
            let other = other
                .serialize_boolean_to_writer(Vec::new(), value)
                .unwrap();
            assert_eq!(out, other);
        }
    }
}
