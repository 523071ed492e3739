//! Writes batches of quads as a document.

use super::{OutFile, has_graphs, rdf_format};
use jindou::oxrdf::{GraphName, NamedOrBlankNode, Quad, Term, TripleRef};
use jindou::results::{GraphWriter, Prefixes, expressible};
use jindou::{Error, PrefixPlace, QuadBatch, QuadSink, Result};
use jindou_model::prefixes::is_prefix_name;
use jindou_model::{Span, term};
use jindou_parse::Format;
use jindou_parse::write::write_batch;
use oxrdfio::RdfSerializer;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Treatment of quads in named graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedGraphs {
    /// Writes the quads with their graph names. If the format has no named graphs, the first such quad is an error.
    Keep,
    /// Writes the triples without the graph names.
    Drop,
}

/// Maximum number of prefixes from the documents or the store that are remembered.
const MOST: usize = 10_000;

/// Writes quads as a document, in the order in which they come. Uses the memory of one batch.
pub struct QuadWriter {
    format: Format,
    graphs: NamedGraphs,
    /// Prefixes given by the user, which are written even if they are unused.
    prefixes: Vec<(String, String)>,
    /// Prefixes declared by the documents or the store.
    declared: Vec<(String, String)>,
    common: bool,
    name: PathBuf,
    state: OutputState,
    quads: u64,
}

enum OutputState {
    /// Nothing has been written.
    New(OutFile),
    Lines(OutFile, Vec<u8>),
    Document(Box<GraphWriter<OutFile>>),
    Failed,
}

impl QuadWriter {
    /// A writer for a document in this format.
    pub fn new(out: OutFile, path: &Path, format: Format, graphs: NamedGraphs) -> Self {
        let name = match path.as_os_str() == "-" {
            true => PathBuf::from("<stdout>"),
            false => path.to_owned(),
        };
        Self {
            format,
            graphs,
            prefixes: vec![],
            declared: vec![],
            common: false,
            name,
            state: OutputState::New(out),
            quads: 0,
        }
    }

    /// Sets the prefixes to write. With `common`, prefixes of the documents or the store and common prefixes are also
    /// written, if statements use them.
    pub fn with_prefixes(mut self, prefixes: &[(String, String)], common: bool) -> Self {
        self.prefixes = prefixes.to_vec();
        self.common = common;
        self
    }

    fn failed(&self, e: io::Error) -> Error {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Error::SinkClosed,
            _ => Error::io(&self.name, e),
        }
    }

    /// An error of the document's writer, with this file's name.
    fn named(&self, e: Error) -> Error {
        match e {
            Error::Io { source, .. } => self.failed(source),
            e => e,
        }
    }

    /// Begins the document, with the prefixes that this batch uses.
    fn begin(&mut self, batch: &QuadBatch) -> Result<()> {
        let OutputState::New(out) = std::mem::replace(&mut self.state, OutputState::Failed) else {
            return Err(Error::Internal("a document was started twice".into()));
        };
        self.state = if matches!(self.format, Format::NTriples | Format::NQuads) {
            OutputState::Lines(out, vec![])
        } else {
            let mut all = match self.common {
                true => Prefixes::common(),
                false => Prefixes::new(),
            };
            // Later declarations win, so the order is: common prefixes, those of the documents with the first
            // declaration last, and the user's.
            let declared = std::mem::take(&mut self.declared);
            for (name, iri) in declared
                .into_iter()
                .rev()
                .chain(self.prefixes.iter().cloned())
            {
                all.declare(name, iri);
            }
            let format = rdf_format(self.format);
            let mut writer = GraphWriter::new(out, format, all);
            for (name, iri) in &self.prefixes {
                RdfSerializer::from_format(format)
                    .with_prefix(name, iri)
                    .map(drop)
                    .map_err(|e| {
                        Error::Usage(format!(
                            "the prefix {name}: cannot be bound to <{iri}>: {e}"
                        ))
                    })?;
                writer.want(name);
            }
            let mut last = Last::default();
            for spans in &batch.quads {
                let triples = self.graphs == NamedGraphs::Drop;
                writer.note(last.quad(batch, spans, triples)?);
            }
            OutputState::Document(Box::new(writer))
        };
        Ok(())
    }

    /// Completes the document, and returns its number of quads.
    ///
    /// # Errors
    /// [`Error::Io`] if its end cannot be written.
    pub fn finish(mut self) -> Result<u64> {
        if matches!(self.state, OutputState::New(_)) {
            self.begin(&QuadBatch::default())?;
        }
        let done = match std::mem::replace(&mut self.state, OutputState::Failed) {
            OutputState::Lines(out, _) => out.finish(),
            OutputState::Document(writer) => {
                let out = writer.finish().map_err(|e| self.named(e))?;
                out.finish()
            }
            OutputState::New(_) | OutputState::Failed => Ok(()),
        };
        done.map_err(|e| self.failed(e))?;
        Ok(self.quads)
    }

    /// Returns an error for quads in named graphs if the format has none.
    fn check_graphs(&self, batch: &QuadBatch) -> Result<()> {
        if has_graphs(self.format) || self.graphs == NamedGraphs::Drop {
            return Ok(());
        }
        match batch.quads.iter().find(|q| q[3].len > 0) {
            None => Ok(()),
            Some(q) => {
                let graph = term::decode(batch.term(q[3]));
                Err(Error::Usage(format!(
                    "there are statements of the graph {}, but {} has no named graphs; write N-Quads \
                            or TriG (--to nq, --to trig), one graph (--graph IRI, --default-graph), or \
                            all triples without their graphs (--drop-graphs)",
                    graph.map_or_else(|| "?".into(), |g| g.to_string()),
                    self.format,
                )))
            }
        }
    }
}

impl QuadSink for QuadWriter {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        self.check_graphs(batch)?;
        if matches!(self.state, OutputState::New(_)) {
            self.begin(batch)?;
        }
        let triples = self.graphs == NamedGraphs::Drop;
        let wrote = match &mut self.state {
            OutputState::Lines(out, text) => {
                text.clear();
                let mut bare;
                let batch = match triples && batch.quads.iter().any(|q| q[3].len > 0) {
                    false => batch,
                    true => {
                        bare = QuadBatch {
                            bytes: batch.bytes.clone(),
                            quads: batch.quads.clone(),
                        };
                        bare.quads.iter_mut().for_each(|q| q[3] = Span::default());
                        &bare
                    }
                };
                write_batch(batch, text)?;
                let written = out.write_all(text);
                written.map_err(|e| Error::io(&self.name, e))
            }
            OutputState::Document(writer) => {
                let mut last = Last::default();
                let format = rdf_format(self.format);
                let mut outcome = Ok(());
                for quad in &batch.quads {
                    let quad = last.quad(batch, quad, triples)?;
                    outcome = match expressible(TripleRef::from(quad.as_ref()), format)? {
                        None => writer.quad(quad),
                        Some(other) => writer.quad(&other.in_graph(quad.graph_name.clone())),
                    };
                    if outcome.is_err() {
                        break;
                    }
                }
                outcome
            }
            OutputState::New(_) | OutputState::Failed => Err(Error::Internal(
                "a statement after the document's end".into(),
            )),
        };
        wrote.map_err(|e| self.named(e))?;
        self.quads += batch.quads.len() as u64;
        Ok(())
    }

    fn prefix(&mut self, _: PrefixPlace, name: &str, iri: &str) -> Result<()> {
        let begun = !matches!(self.state, OutputState::New(_));
        // JSON-LD has its own rules for prefixes, so those of documents are not used there. XML reserves names that
        // begin with `xml`.
        let fits = match self.format {
            Format::Turtle | Format::TriG => is_prefix_name(name),
            Format::RdfXml => !name.to_ascii_lowercase().starts_with("xml"),
            _ => false,
        };
        if self.common && !begun && fits && self.declared.len() < MOST {
            self.declared.push((name.to_owned(), iri.to_owned()));
        }
        Ok(())
    }
}

/// The last decoded quad. If consecutive quads have equal spans in the batch, their terms are equal and are not decoded
/// again.
#[derive(Default)]
struct Last(Option<([Span; 4], Quad)>);

impl Last {
    fn quad(&mut self, batch: &QuadBatch, spans: &[Span; 4], triples: bool) -> Result<&Quad> {
        let damaged = || Error::Internal("a batch holds bytes that are not a quad".into());
        let decoded = |span: Span| term::decode(batch.term(span)).ok_or_else(damaged);
        let node = |span| match decoded(span)? {
            Term::NamedNode(n) => Ok(NamedOrBlankNode::from(n)),
            Term::BlankNode(b) => Ok(b.into()),
            _ => Err(damaged()),
        };
        let name = |span| match decoded(span)? {
            Term::NamedNode(n) => Ok(n),
            _ => Err(damaged()),
        };
        let graph = |span: Span| -> Result<GraphName> {
            if span.len == 0 || triples {
                return Ok(GraphName::DefaultGraph);
            }
            Ok(node(span)?.into())
        };
        match &mut self.0 {
            Some((before, quad)) => {
                if before[0] != spans[0] {
                    quad.subject = node(spans[0])?;
                }
                if before[1] != spans[1] {
                    quad.predicate = name(spans[1])?;
                }
                quad.object = decoded(spans[2])?;
                if before[3] != spans[3] {
                    quad.graph_name = graph(spans[3])?;
                }
                *before = *spans;
            }
            empty => {
                let quad = Quad::new(
                    node(spans[0])?,
                    name(spans[1])?,
                    decoded(spans[2])?,
                    graph(spans[3])?,
                );
                *empty = Some((*spans, quad));
            }
        }
        self.0.as_ref().map(|(_, quad)| quad).ok_or_else(damaged)
    }
}
