//! One front for all result formats.

use super::table::Table;
use super::{AnswerSink, RowText, Rows, rows};
use jindou_model::{Error, Result};
use oxrdf::Triple;
use oxrdfio::{RdfFormat, RdfSerializer, WriterQuadSerializer};
use sparesults::{QueryResultsFormat, QueryResultsSerializer};
use std::io::Write;
use std::str::FromStr;

/// A format for answers. Tables of variables use the first group, graphs (CONSTRUCT, DESCRIBE) the second;
/// asked for one of the wrong group, [`ResultWriter`] takes the group's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultFormat {
    /// A table for people.
    Table,
    /// SPARQL Results TSV.
    Tsv,
    /// SPARQL Results CSV.
    Csv,
    /// SPARQL Results JSON.
    Json,
    /// SPARQL Results XML.
    Xml,
    /// An RDF format.
    Rdf(RdfFormat),
}

impl FromStr for ResultFormat {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        Ok(match s {
            "table" => Self::Table,
            "tsv" => Self::Tsv,
            "csv" => Self::Csv,
            "json" | "srj" => Self::Json,
            "xml" | "srx" => Self::Xml,
            "nt" | "ntriples" => Self::Rdf(RdfFormat::NTriples),
            "nq" | "nquads" => Self::Rdf(RdfFormat::NQuads),
            "ttl" | "turtle" => Self::Rdf(RdfFormat::Turtle),
            "trig" => Self::Rdf(RdfFormat::TriG),
            "rdf" | "rdfxml" => Self::Rdf(RdfFormat::RdfXml),
            "jsonld" => Self::Rdf(RdfFormat::JsonLd {
                profile: Default::default(),
            }),
            other => {
                return Err(format!(
                    "unknown format '{other}': one of table, tsv, csv, json, xml, nt, nq, ttl, trig, rdf, jsonld"
                ));
            }
        })
    }
}

enum State<W: Write> {
    Ready(W),
    Text(W, Vec<u8>, Kind),
    Graph(Box<WriterQuadSerializer<W>>),
    Done,
}

enum Kind {
    Table(Table),
    /// Rows of a text, and whether one was written.
    Rows(RowText, bool),
}

impl Kind {
    fn tail(&self) -> &'static [u8] {
        match self {
            Self::Rows(RowText::Json(_), _) => b"]}}\n",
            Self::Rows(RowText::Xml(_), _) => b"</results></sparql>\n",
            _ => b"",
        }
    }
}

/// Leaves out the comma before an answer's first row.
fn unjoined<'t>(kind: &mut Kind, text: &'t [u8]) -> &'t [u8] {
    match kind {
        Kind::Rows(RowText::Json(_), started) if !text.is_empty() => {
            let from = usize::from(!*started);
            *started = true;
            &text[from..]
        }
        _ => text,
    }
}

/// Writes one answer: `solutions` then `rows`*, or `boolean`, or `triples`*; then `finish`.
pub struct ResultWriter<W: Write> {
    state: State<W>,
    format: ResultFormat,
}

fn closed(e: std::io::Error) -> Error {
    if e.kind() == std::io::ErrorKind::BrokenPipe {
        Error::SinkClosed
    } else {
        Error::io("<output>", e)
    }
}

/// Text is handed on in pieces of this size: large enough that a system call per piece is nothing.
const PIECE: usize = 1 << 16;

impl<W: Write> ResultWriter<W> {
    /// A writer that has written nothing.
    pub fn new(out: W, format: ResultFormat) -> Self {
        Self {
            state: State::Ready(out),
            format,
        }
    }

    fn ready(&mut self) -> Result<W> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Ready(w) => Ok(w),
            _ => Err(Error::Internal("an answer was started twice".into())),
        }
    }
}

impl<W: Write + Send> AnswerSink for ResultWriter<W> {
    fn solutions(&mut self, variables: &[String]) -> Result<()> {
        let mut out = self.ready()?;
        let (kind, head) = match self.format {
            ResultFormat::Table => (Kind::Table(Table::new(variables)), Vec::new()),
            ResultFormat::Tsv | ResultFormat::Rdf(_) => {
                let names: Vec<String> = variables.iter().map(|v| format!("?{v}")).collect();
                let head = names.join("\t") + "\n";
                (Kind::Rows(RowText::Tsv, false), head.into_bytes())
            }
            ResultFormat::Csv => {
                let head = variables.join(",") + "\r\n";
                (Kind::Rows(RowText::Csv, false), head.into_bytes())
            }
            ResultFormat::Json => (
                Kind::Rows(RowText::json(variables), false),
                json_head(variables),
            ),
            ResultFormat::Xml => (
                Kind::Rows(RowText::xml(variables), false),
                xml_head(variables),
            ),
        };
        out.write_all(&head).map_err(closed)?;
        self.state = State::Text(out, Vec::new(), kind);
        Ok(())
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        let State::Text(out, buffer, kind) = &mut self.state else {
            return Err(Error::Internal("rows outside a table".into()));
        };
        for r in 0..rows.rows {
            match kind {
                Kind::Table(t) => t.row(rows.row(r), buffer),
                Kind::Rows(text, _) => text.push(rows.row(r), buffer),
            }
            if buffer.len() >= PIECE {
                out.write_all(unjoined(kind, buffer)).map_err(closed)?;
                buffer.clear();
            }
        }
        Ok(())
    }

    fn row_text(&self) -> Option<RowText> {
        match &self.state {
            State::Text(_, _, Kind::Rows(text, _)) => Some(text.clone()),
            _ => None,
        }
    }

    fn raw(&mut self, text: &[u8], _: u64) -> Result<()> {
        match &mut self.state {
            State::Text(out, buffer, kind @ Kind::Rows(..)) => {
                if !buffer.is_empty() {
                    out.write_all(unjoined(kind, buffer)).map_err(closed)?;
                    buffer.clear();
                }
                out.write_all(unjoined(kind, text)).map_err(closed)
            }
            _ => Err(Error::Internal("text rows outside a text table".into())),
        }
    }

    fn boolean(&mut self, value: bool) -> Result<()> {
        let mut out = self.ready()?;
        match self.format {
            ResultFormat::Json | ResultFormat::Xml => {
                QueryResultsSerializer::from_format(solution_format(self.format))
                    .serialize_boolean_to_writer(&mut out, value)
                    .map_err(closed)?;
            }
            _ => writeln!(out, "{value}").map_err(closed)?,
        }
        out.flush().map_err(closed)
    }

    fn graph(&mut self) -> Result<()> {
        let out = self.ready()?;
        let format = match self.format {
            ResultFormat::Rdf(f) => f,
            _ => RdfFormat::NTriples,
        };
        self.state = State::Graph(Box::new(RdfSerializer::from_format(format).for_writer(out)));
        Ok(())
    }

    fn triple(&mut self, triple: &Triple) -> Result<()> {
        match &mut self.state {
            State::Graph(g) => g.serialize_triple(triple).map_err(closed),
            _ => Err(Error::Internal("a triple outside a graph".into())),
        }
    }

    fn finish(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Text(mut out, mut buffer, mut kind) => {
                if let Kind::Table(t) = &mut kind {
                    t.finish(&mut buffer);
                }
                out.write_all(unjoined(&mut kind, &buffer))
                    .and_then(|()| out.write_all(kind.tail()))
                    .and_then(|()| out.flush())
                    .map_err(closed)
            }
            State::Graph(g) => g.finish().and_then(|mut out| out.flush()).map_err(closed),
            State::Ready(_) | State::Done => Ok(()),
        }
    }
}

fn solution_format(f: ResultFormat) -> QueryResultsFormat {
    if f == ResultFormat::Xml {
        QueryResultsFormat::Xml
    } else {
        QueryResultsFormat::Json
    }
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
        rows::push_xml_text(v.as_bytes(), &mut out);
        out.extend_from_slice(b"\"/>");
    }
    out.extend_from_slice(b"</head><results>");
    out
}
