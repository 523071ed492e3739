//! One front for all result formats.

use super::table::Table;
use super::{AnswerSink, RowText, Rows, push_csv_row, push_tsv_row};
use jindou_model::{Error, Result, term};
use oxrdf::{Term, Triple, Variable};
use oxrdfio::{RdfFormat, RdfSerializer, WriterQuadSerializer};
use sparesults::{QueryResultsFormat, QueryResultsSerializer, WriterSolutionsSerializer};
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
    Solutions(Box<WriterSolutionsSerializer<W>>, Vec<Variable>),
    Graph(Box<WriterQuadSerializer<W>>),
    Done,
}

enum Kind {
    Table(Table),
    Tsv,
    Csv,
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
        self.state = match self.format {
            ResultFormat::Table => State::Text(out, Vec::new(), Kind::Table(Table::new(variables))),
            ResultFormat::Tsv | ResultFormat::Rdf(_) => {
                let head: Vec<String> = variables.iter().map(|v| format!("?{v}")).collect();
                writeln!(out, "{}", head.join("\t")).map_err(closed)?;
                State::Text(out, Vec::new(), Kind::Tsv)
            }
            ResultFormat::Csv => {
                write!(out, "{}\r\n", variables.join(",")).map_err(closed)?;
                State::Text(out, Vec::new(), Kind::Csv)
            }
            ResultFormat::Json | ResultFormat::Xml => {
                let vars: Vec<Variable> = variables.iter().map(Variable::new_unchecked).collect();
                let s = QueryResultsSerializer::from_format(solution_format(self.format))
                    .serialize_solutions_to_writer(out, vars.clone())
                    .map_err(closed)?;
                State::Solutions(Box::new(s), vars)
            }
        };
        Ok(())
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        match &mut self.state {
            State::Text(out, buffer, kind) => {
                for r in 0..rows.rows {
                    match kind {
                        Kind::Table(t) => t.row(rows.row(r), buffer),
                        Kind::Tsv => push_tsv_row(rows.row(r), buffer),
                        Kind::Csv => push_csv_row(rows.row(r), buffer),
                    }
                    if buffer.len() >= PIECE {
                        out.write_all(buffer).map_err(closed)?;
                        buffer.clear();
                    }
                }
                Ok(())
            }
            State::Solutions(s, vars) => {
                for r in 0..rows.rows {
                    let mut terms: Vec<(&Variable, Term)> = Vec::with_capacity(vars.len());
                    for (v, cell) in vars.iter().zip(rows.row(r)) {
                        if let Some(cell) = cell {
                            terms.push((v, term::decode(cell).ok_or_else(damaged)?));
                        }
                    }
                    s.serialize(terms.iter().map(|(v, t)| (*v, t)))
                        .map_err(closed)?;
                }
                Ok(())
            }
            _ => Err(Error::Internal("rows outside a table".into())),
        }
    }

    fn row_text(&self) -> Option<RowText> {
        match &self.state {
            State::Text(_, _, Kind::Tsv) => Some(RowText::Tsv),
            State::Text(_, _, Kind::Csv) => Some(RowText::Csv),
            _ => None,
        }
    }

    fn raw(&mut self, text: &[u8]) -> Result<()> {
        match &mut self.state {
            State::Text(out, _, Kind::Tsv | Kind::Csv) => out.write_all(text).map_err(closed),
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
            State::Text(mut out, mut buffer, kind) => {
                if let Kind::Table(mut t) = kind {
                    t.finish(&mut buffer);
                }
                out.write_all(&buffer)
                    .and_then(|()| out.flush())
                    .map_err(closed)
            }
            State::Solutions(s, _) => {
                let mut out = s.finish().map_err(closed)?;
                out.write_all(b"\n")
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

fn damaged() -> Error {
    Error::Store("the store's dictionary is damaged; run `jindou check`".into())
}
