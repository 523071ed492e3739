//! Graphs and datasets with short names.

use super::Prefixes;
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{GraphNameRef, LiteralRef, NamedOrBlankNodeRef, QuadRef, TermRef};
use oxrdfio::{RdfFormat, RdfSerializer, WriterQuadSerializer};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Writes quads in a format of RDF. In Turtle and TriG each prefix is declared before the first statement that uses it, and one that
/// none uses is not.
///
/// ```
/// use jindou::results::{GraphWriter, Prefixes};
/// use oxrdfio::RdfFormat;
///
/// let quad = |subject: &str| {
///     let iri = oxrdf::NamedNode::new_unchecked;
///     let graph = oxrdf::GraphName::DefaultGraph;
///     oxrdf::Quad::new(iri(subject), iri("http://e/p"), iri("http://e/o"), graph)
/// };
/// let mut prefixes = Prefixes::new();
/// prefixes.declare("e", "http://e/");
/// prefixes.declare("f", "http://f/");
/// prefixes.declare("g", "http://g/");
/// let mut writer = GraphWriter::new(Vec::new(), RdfFormat::Turtle, prefixes);
/// for subject in ["http://e/a", "http://f/a"] {
///     writer.write(&quad(subject))?;
/// }
/// assert_eq!(
///     String::from_utf8_lossy(&writer.finish()?),
///     "@prefix e: <http://e/> .\ne:a e:p e:o .\n@prefix f: <http://f/> .\nf:a e:p e:o .\n"
/// );
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct GraphWriter<W: Write> {
    prefixes: Prefixes,
    format: RdfFormat,
    /// Knows the prefixes that are declared.
    serializer: RdfSerializer,
    /// Prefixes that are declared, or cannot be in this format, and lines that declare them.
    declared: BTreeSet<String>,
    lines: usize,
    /// Prefixes that the next statement comes after.
    wanted: BTreeSet<String>,
    /// Namespaces of which no further prefix can be wanted.
    settled: FxHashSet<Box<str>>,
    state: GraphState<W>,
}

/// Most prefixes that a document declares: each IRI is compared with all of them.
const MOST: usize = 256;

/// Most namespaces that are remembered, so that their IRIs need no search.
const MOST_SETTLED: usize = 4096;

enum GraphState<W: Write> {
    New(W),
    Begun(Box<WriterQuadSerializer<AfterLines<W>>>),
    Failed,
}

impl<W: Write> GraphWriter<W> {
    /// A writer that has written nothing yet.
    pub fn new(out: W, format: RdfFormat, prefixes: Prefixes) -> Self {
        Self {
            prefixes,
            format,
            serializer: RdfSerializer::from_format(format),
            declared: BTreeSet::new(),
            lines: 0,
            wanted: BTreeSet::new(),
            settled: FxHashSet::default(),
            state: GraphState::New(out),
        }
    }

    /// Adds a prefix by its name to those that are declared before the next statement, whether it is used or not.
    pub fn want(&mut self, name: impl Into<String>) {
        self.wanted.insert(name.into());
    }

    /// Declares the prefixes that a statement uses before the next one that is written, so that those of many stand together. In
    /// formats other than Turtle and TriG nothing is declared after the first statement.
    pub fn note<'q>(&mut self, quad: impl Into<QuadRef<'q>>) {
        let quad = quad.into();
        if self.prefixes.is_empty() {
            return;
        }
        let mut uses = |iri: &str| self.uses(iri);
        if let NamedOrBlankNodeRef::NamedNode(n) = quad.subject {
            uses(n.as_str());
        }
        if quad.predicate != rdf::TYPE {
            uses(quad.predicate.as_str());
        }
        match quad.object {
            TermRef::NamedNode(n) => uses(n.as_str()),
            TermRef::Literal(l) if !is_bare(l) => uses(l.datatype().as_str()),
            _ => {}
        }
        if let GraphNameRef::NamedNode(n) = quad.graph_name {
            uses(n.as_str());
        }
    }

    /// Adds the prefix of an IRI to those that are wanted, if it has one that is not declared.
    fn uses(&mut self, iri: &str) {
        let end = memchr::memrchr3(b'#', b'/', b':', iri.as_bytes()).map_or(0, |at| at + 1);
        let space = &iri[..end];
        if self.settled.contains(space) {
            return;
        }
        if let Some((name, _)) = self.prefixes.split(iri)
            && !self.declared.contains(name)
        {
            self.wanted.insert(name.to_owned());
            return;
        }
        let is_settled = |name: &str| self.declared.contains(name);
        if self.settled.len() < MOST_SETTLED && self.prefixes.name_of(space).is_none_or(is_settled)
        {
            let is_longer =
                |(_, other): (&str, &str)| other.len() > end && other.starts_with(space);
            if !self.prefixes.iter().any(is_longer) {
                self.settled.insert(space.into());
            }
        }
    }

    /// Declares what is wanted.
    fn declare(&mut self) -> io::Result<()> {
        let mut lines = Vec::new();
        for name in std::mem::take(&mut self.wanted) {
            // What cannot be declared is written out.
            if self.lines < MOST
                && let Some(iri) = self.prefixes.iri(&name)
                && let Ok(with) = self.serializer.clone().with_prefix(&name, iri)
            {
                self.serializer = with;
                writeln!(lines, "@prefix {name}: <{iri}> .")?;
                self.lines += 1;
            }
            self.declared.insert(name);
        }
        let (out, skipped) = match std::mem::replace(&mut self.state, GraphState::Failed) {
            GraphState::New(out) => (out, 0),
            GraphState::Begun(writer) if lines.is_empty() => {
                self.state = GraphState::Begun(writer);
                return Ok(());
            }
            GraphState::Begun(writer) => {
                let mut out = writer.finish()?.out;
                out.write_all(&lines)?;
                (out, self.lines)
            }
            GraphState::Failed => return Err(io::Error::other("the graph has ended")),
        };
        // The next serializer would begin with all declarations again.
        let out = AfterLines { skipped, out };
        self.state = GraphState::Begun(Box::new(self.serializer.clone().for_writer(out)));
        Ok(())
    }

    /// Writes a statement.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write<'q>(&mut self, quad: impl Into<QuadRef<'q>>) -> io::Result<()> {
        let quad = quad.into();
        let begins = matches!(self.state, GraphState::New(_));
        if begins || matches!(self.format, RdfFormat::Turtle | RdfFormat::TriG) {
            self.note(quad);
            if begins || !self.wanted.is_empty() {
                self.declare()?;
            }
        }
        match &mut self.state {
            GraphState::Begun(writer) => writer.serialize_quad(quad),
            GraphState::New(_) | GraphState::Failed => Err(io::Error::other("the graph has ended")),
        }
    }

    /// Completes the document, and returns the output.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<W> {
        if matches!(self.state, GraphState::New(_)) {
            self.declare()?;
        }
        match self.state {
            GraphState::Begun(writer) => Ok(writer.finish()?.out),
            GraphState::New(_) | GraphState::Failed => Err(io::Error::other("the graph has ended")),
        }
    }
}

/// True if Turtle writes a literal without its datatype.
fn is_bare(literal: LiteralRef<'_>) -> bool {
    let bare = [
        xsd::STRING,
        xsd::BOOLEAN,
        xsd::INTEGER,
        xsd::DECIMAL,
        xsd::DOUBLE,
    ];
    literal.language().is_some() || bare.contains(&literal.datatype())
}

/// An output that leaves out the first lines.
struct AfterLines<W> {
    skipped: usize,
    out: W,
}

impl<W: Write> Write for AfterLines<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if self.skipped == 0 {
            return self.out.write(text);
        }
        match text.iter().position(|&b| b == b'\n') {
            Some(end) => {
                self.skipped -= 1;
                Ok(end + 1)
            }
            None => Ok(text.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
