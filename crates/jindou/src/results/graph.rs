//! Writers of RDF documents. N-Triples, N-Quads, Turtle and TriG are written here, with the same text as `oxttl` would
//! write, but with long literals in pieces and with checks of the time limit between the pieces. Other formats are
//! written by libraries.

use super::find::{Needle, first_of};
use super::out::{PieceWriter, TextOut, controls, push_escaped};
use super::polled::Polled;
use super::prefix_use::PrefixUse;
use super::text::{is_decimal, is_double, is_integer};
use super::writer::closed;
use super::{HELD_BY_LIBRARY, HELD_BY_PIECES, Prefixes};
use jindou_model::{Error, Result, scope};
use jindou_parse::xml::write::Returns;
use jindou_syntax::{is_name_char, is_name_start};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{
    GraphName, GraphNameRef, LiteralRef, NamedNode, NamedNodeRef, NamedOrBlankNode, QuadRef,
    TermRef,
};
use oxrdfio::{RdfFormat, RdfSerializer, WriterQuadSerializer};
use std::cmp::Reverse;
use std::io::Write;

/// Writes quads as a document. Work on long terms counts towards the query's limits. In Turtle and TriG each prefix is
/// declared before the first statement that uses it; unused prefixes are not declared.
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
///     writer.quad(&quad(subject))?;
/// }
/// assert_eq!(
///     String::from_utf8_lossy(&writer.finish()?),
///     "@prefix e: <http://e/> .\ne:a e:p e:o .\n@prefix f: <http://f/> .\nf:a e:p e:o .\n"
/// );
/// # Ok::<(), jindou::Error>(())
/// ```
pub struct GraphWriter<W: Write> {
    format: RdfFormat,
    prefixes: PrefixUse,
    kind: WriterKind<W>,
}

enum WriterKind<W: Write> {
    Text(W, GraphText),
    /// The writer of a library, before the first statement.
    New(W),
    Library(Box<WriterQuadSerializer<Returns<Polled<W>>>>),
    Failed,
}

impl<W: Write> GraphWriter<W> {
    /// A writer at the start of a document.
    pub fn new(out: W, format: RdfFormat, prefixes: Prefixes) -> Self {
        use RdfFormat::{NQuads, NTriples, TriG, Turtle};
        let kind = match format {
            NTriples | NQuads | Turtle | TriG => {
                let text = GraphText {
                    has_graphs: format.supports_datasets(),
                    is_terse: matches!(format, Turtle | TriG),
                    ..GraphText::default()
                };
                WriterKind::Text(out, text)
            }
            _ => WriterKind::New(out),
        };
        Self {
            format,
            prefixes: PrefixUse::new(prefixes),
            kind,
        }
    }

    /// Declares a prefix before the next statement, whether it is used or not.
    pub fn want(&mut self, name: impl Into<String>) {
        self.prefixes.want(name.into());
    }

    /// Requests that the prefixes of this statement be declared before the next written statement, without writing this
    /// one; so the prefixes of many statements can be declared together. Only Turtle and TriG allow declarations after
    /// the first statement; in other formats this has no effect then.
    pub fn note<'q>(&mut self, quad: impl Into<QuadRef<'q>>) {
        self.prefixes.note(quad.into());
    }

    /// Largest number of bytes that the writer allocates per byte of a statement's terms.
    pub fn bytes_held(&self) -> u64 {
        match self.kind {
            WriterKind::Text(..) => HELD_BY_PIECES,
            _ => HELD_BY_LIBRARY,
        }
    }

    /// Creates a library's writer with the prefixes requested so far, if that was not done yet.
    fn begin(&mut self) {
        self.kind = match std::mem::replace(&mut self.kind, WriterKind::Failed) {
            WriterKind::New(out) => {
                let mut serializer = RdfSerializer::from_format(self.format);
                for (name, iri) in self.prefixes.take_wanted() {
                    // IRIs whose prefix the library refuses are written in full.
                    if let Ok(with) = serializer.clone().with_prefix(name, iri) {
                        serializer = with;
                    }
                }
                let out = Returns::new(Polled(out), self.format == RdfFormat::RdfXml);
                WriterKind::Library(Box::new(serializer.for_writer(out)))
            }
            begun => begun,
        };
    }

    /// Writes a quad that the format can [express](super::expressible).
    ///
    /// # Errors
    /// Those of the output and of the query's token.
    pub fn quad<'q>(&mut self, quad: impl Into<QuadRef<'q>>) -> Result<()> {
        let quad = quad.into();
        if matches!(self.kind, WriterKind::New(_)) {
            self.prefixes.note(quad);
            self.begin();
        }
        match &mut self.kind {
            WriterKind::Text(out, text) => {
                if text.is_terse {
                    self.prefixes.note(quad);
                    text.declare(self.prefixes.take_wanted(), out)?;
                }
                text.quad(quad, out)
            }
            // A library that the token has stopped returns an I/O error; the scope has the true reason.
            WriterKind::Library(library) => library
                .serialize_quad(quad)
                .map_err(|e| scope::worked(0).err().unwrap_or_else(|| closed(e))),
            WriterKind::New(_) | WriterKind::Failed => Err(given_up()),
        }
    }

    /// Completes the document, and returns the output.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> Result<W> {
        self.begin();
        match self.kind {
            WriterKind::Text(mut out, mut text) => {
                if text.is_terse {
                    text.declare(self.prefixes.take_wanted(), &mut out)?;
                }
                out.write_all(text.end().as_bytes())
                    .and_then(|()| out.flush())
                    .map_err(closed)?;
                Ok(out)
            }
            WriterKind::Library(library) => {
                let mut out = library.finish().map_err(closed)?.into_inner().0;
                out.flush().map_err(closed)?;
                Ok(out)
            }
            WriterKind::New(_) | WriterKind::Failed => Err(given_up()),
        }
    }
}

/// The error for a writer that is used again after an error.
fn given_up() -> Error {
    Error::Usage("the document cannot be continued: writing it has failed before".into())
}

/// State of a document in N-Triples, N-Quads, Turtle or TriG.
#[derive(Default)]
struct GraphText {
    /// True for formats with named graphs.
    has_graphs: bool,
    /// True for Turtle and TriG, where triples with the same subject, and subjects in the same graph, are grouped.
    is_terse: bool,
    /// Declared prefixes, by descending length of their IRIs.
    prefixes: Vec<(String, String)>,
    graph: GraphName,
    /// Subject and predicate of the last triple; `None` if no subject is open.
    last: Option<(NamedOrBlankNode, NamedNode)>,
    buffer: Vec<u8>,
}

impl GraphText {
    /// Declares prefixes, after ending the current subject and graph. Skips those whose IRI is invalid.
    fn declare<W: Write>(&mut self, prefixes: Vec<(String, String)>, out: &mut W) -> Result<()> {
        let is_valid = |(_, iri): &(String, String)| NamedNode::new(iri.as_str()).is_ok();
        let before = self.prefixes.len();
        self.prefixes.extend(prefixes.into_iter().filter(is_valid));
        if self.prefixes.len() == before {
            return Ok(());
        }
        let mut lines = self.end().to_owned();
        for (name, iri) in &self.prefixes[before..] {
            for part in ["@prefix ", name, ": <", iri, "> .\n"] {
                lines += part;
            }
        }
        self.prefixes.sort_by_key(|(_, iri)| Reverse(iri.len()));
        self.graph = GraphName::DefaultGraph;
        self.last = None;
        out.write_all(lines.as_bytes()).map_err(closed)
    }

    fn quad<W: Write>(&mut self, quad: QuadRef<'_>, out: &mut W) -> Result<()> {
        if !self.has_graphs && !quad.graph_name.is_default_graph() {
            let why = "a quad of a named graph for a format without graphs";
            return Err(Error::Usage(why.into()));
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut write_piece = |piece: &mut Vec<u8>| {
            let written = out.write_all(piece);
            piece.clear();
            written.map_err(closed)
        };
        let mut pieces = PieceWriter::new(&mut buffer, &mut write_piece);
        match self.is_terse {
            true => self.push_terse(quad, &mut pieces),
            false => self.push_line(quad, &mut pieces),
        }
        pieces.outcome()?;
        write_piece(&mut buffer)?;
        self.buffer = buffer;
        Ok(())
    }

    fn push_line(&self, quad: QuadRef<'_>, out: &mut PieceWriter<'_, '_>) {
        self.push_triple(quad, out);
        if !quad.graph_name.is_default_graph() {
            out.push(b' ');
            self.push_graph(quad.graph_name, out);
        }
        out.extend_from_slice(b" .\n");
    }

    fn push_terse(&mut self, quad: QuadRef<'_>, out: &mut PieceWriter<'_, '_>) {
        if quad.graph_name != self.graph.as_ref() {
            out.extend_from_slice(self.end().as_bytes());
            self.graph = quad.graph_name.into_owned();
            self.last = None;
            if !quad.graph_name.is_default_graph() {
                self.push_graph(quad.graph_name, out);
                out.extend_from_slice(b" {\n");
            }
        }
        let indent: &[u8] = match self.graph.is_default_graph() {
            true => b"",
            false => b"\t",
        };
        match &self.last {
            Some((subject, predicate)) if quad.subject == subject.as_ref() => {
                if quad.predicate == predicate.as_ref() {
                    out.extend_from_slice(b" , ");
                } else {
                    out.extend_from_slice(b" ;\n\t");
                    out.extend_from_slice(indent);
                    self.push_predicate(quad.predicate, out);
                    out.push(b' ');
                }
                self.push_term(quad.object, out);
            }
            last => {
                if last.is_some() {
                    out.extend_from_slice(b" .\n");
                }
                out.extend_from_slice(indent);
                self.push_triple(quad, out);
            }
        }
        match &mut self.last {
            Some((subject, predicate)) if quad.subject == subject.as_ref() => {
                if quad.predicate != predicate.as_ref() {
                    *predicate = quad.predicate.into_owned();
                }
            }
            last => *last = Some((quad.subject.into_owned(), quad.predicate.into_owned())),
        }
    }

    /// Text that ends the current subject and graph.
    fn end(&self) -> &'static str {
        match (self.last.is_some(), self.graph.is_default_graph()) {
            (true, true) => " .\n",
            (true, false) => " .\n}\n",
            (false, true) => "",
            (false, false) => "}\n",
        }
    }

    fn push_triple(&self, quad: QuadRef<'_>, out: &mut PieceWriter<'_, '_>) {
        self.push_term(quad.subject.into(), out);
        out.push(b' ');
        self.push_predicate(quad.predicate, out);
        out.push(b' ');
        self.push_term(quad.object, out);
    }

    fn push_graph(&self, graph: GraphNameRef<'_>, out: &mut PieceWriter<'_, '_>) {
        match graph {
            GraphNameRef::NamedNode(n) => self.push_iri(n.as_str(), out),
            GraphNameRef::BlankNode(b) => push_all(["_:", b.as_str()], out),
            GraphNameRef::DefaultGraph => {}
        }
    }

    fn push_predicate(&self, predicate: NamedNodeRef<'_>, out: &mut PieceWriter<'_, '_>) {
        match self.is_terse && predicate == rdf::TYPE {
            true => out.push(b'a'),
            false => self.push_iri(predicate.as_str(), out),
        }
    }

    fn push_term(&self, term: TermRef<'_>, out: &mut PieceWriter<'_, '_>) {
        match term {
            TermRef::NamedNode(n) => self.push_iri(n.as_str(), out),
            TermRef::BlankNode(b) => push_all(["_:", b.as_str()], out),
            TermRef::Literal(literal) => self.push_literal(literal, out),
            TermRef::Triple(t) => {
                out.extend_from_slice(b"<<( ");
                self.push_term(t.subject.as_ref().into(), out);
                out.push(b' ');
                self.push_iri(t.predicate.as_str(), out);
                out.push(b' ');
                self.push_term(t.object.as_ref(), out);
                out.extend_from_slice(b" )>>");
            }
        }
    }

    fn push_literal(&self, literal: LiteralRef<'_>, out: &mut PieceWriter<'_, '_>) {
        let (value, datatype) = (literal.value(), literal.datatype());
        let is_bare = match datatype {
            xsd::BOOLEAN => matches!(value, "true" | "false"),
            xsd::INTEGER => is_integer(value),
            xsd::DECIMAL => is_decimal(value),
            xsd::DOUBLE => is_double(value),
            _ => false,
        };
        if self.is_terse && is_bare {
            return out.extend_from_slice(value.as_bytes());
        }
        push_quoted(value.as_bytes(), out);
        if let Some(language) = literal.language() {
            push_all(["@", language], out);
            if let Some(direction) = literal.direction() {
                push_all(["--", &direction.to_string()], out);
            }
        } else if datatype != xsd::STRING {
            out.extend_from_slice(b"^^");
            self.push_iri(datatype.as_str(), out);
        }
    }

    /// Appends an IRI, abbreviated by the prefix with the longest namespace after which a valid local name remains.
    fn push_iri(&self, iri: &str, out: &mut PieceWriter<'_, '_>) {
        for (name, namespace) in &self.prefixes {
            let local = iri.strip_prefix(namespace.as_str());
            if let Some(local) = local.filter(|local| is_local(local)) {
                push_all([name, ":"], out);
                return push_local(local, out);
            }
        }
        push_all(["<", iri, ">"], out);
    }
}

/// Longest local name that is written, in bytes; longer IRIs are written in full.
const LONGEST: usize = 2048;

/// True for a text that is a valid local name once some of its characters are escaped by a backslash.
fn is_local(local: &str) -> bool {
    let may_begin = |c: char| is_name_start(c) || c.is_ascii_digit() || c == ':';
    let mut chars = local.chars();
    local.len() <= LONGEST
        && chars.next().is_none_or(|c| may_begin(c) || is_escapable(c))
        && chars.all(|c| is_name_char(c) || c == ':' || is_escapable(c))
}

/// True for a character that may follow a backslash in a local name (SPARQL and Turtle, PN_LOCAL_ESC).
fn is_escapable(c: char) -> bool {
    "_~.-!$&'()*+,;=/?#@%".contains(c)
}

fn push_local(local: &str, out: &mut PieceWriter<'_, '_>) {
    let last = local
        .chars()
        .next_back()
        .map_or(0, |c| local.len() - c.len_utf8());
    for (at, c) in local.char_indices() {
        let is_plain = match c {
            '_' => true,
            '-' => at > 0,
            '.' => at > 0 && at < last,
            c => !is_escapable(c),
        };
        if !is_plain {
            out.push(b'\\');
        }
        out.append(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// Appends a string in quotation marks.
fn push_quoted(text: &[u8], out: &mut PieceWriter<'_, '_>) {
    static CONTROLS: [[u8; 6]; 32] = controls(b"0123456789ABCDEF");
    /// Bytes that are searched for. U+FFFE and U+FFFF must be escaped as well; they are found by their first byte in
    /// UTF-8, which few other characters have.
    const SPECIAL: [Needle; 4] = [
        Needle::one(b'"'),
        Needle::one(b'\\'),
        Needle::one(0x7F),
        Needle::one(0xEF),
    ];
    out.push(b'"');
    push_escaped(
        text,
        |block| first_of(block, 0x20, SPECIAL),
        |rest| {
            let escaped: &[u8] = match rest {
                [b'"', ..] => b"\\\"",
                [b'\\', ..] => b"\\\\",
                [b'\n', ..] => b"\\n",
                [b'\r', ..] => b"\\r",
                [b'\t', ..] => b"\\t",
                [0x08, ..] => b"\\b",
                [0x0C, ..] => b"\\f",
                [0x7F, ..] => b"\\u007F",
                [0xEF, 0xBF, 0xBE, ..] => return Some((3, b"\\uFFFE")),
                [0xEF, 0xBF, 0xBF, ..] => return Some((3, b"\\uFFFF")),
                [b, ..] => CONTROLS.get(usize::from(*b))?,
                [] => return None,
            };
            Some((1, escaped))
        },
        out,
    );
    out.push(b'"');
}

fn push_all<const N: usize>(parts: [&str; N], out: &mut PieceWriter<'_, '_>) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::GraphWriter;
    use crate::results::Prefixes;
    use oxrdf::vocab::{rdf, xsd};
    use oxrdf::{
        BaseDirection, BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term,
        Triple,
    };
    use oxrdfio::{RdfFormat, RdfSerializer};
    use proptest::prelude::*;

    const PREFIXES: [(&str, &str); 4] = [
        ("e", "http://e/"),
        ("l", "http://e/long/"),
        ("no", "no IRI"),
        ("", "http://f/"),
    ];

    fn iri() -> impl Strategy<Value = NamedNode> {
        let local = "[ab_.~!$&'()*+,;=/?#@%:0é·-]{0,4}";
        let namespace =
            prop::sample::select(vec!["http://e/", "http://e/long/", "http://f/", "x:"]);
        (namespace, local).prop_map(|(n, l)| NamedNode::new_unchecked(format!("{n}{l}")))
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            "[\\u{0}-\\u{1f}a\"\\\\\\u{7f}\\u{80}é\\u{fffd}\\u{fffe}\\u{ffff}\\u{1F600}]{0,20}",
            "[+-]?[0-9]{0,2}[.]?[0-9]{0,2}([eE][+-]?[0-9]{0,2})?",
            "true|false|x",
        ]
    }

    fn literal() -> impl Strategy<Value = Literal> {
        let datatypes = vec![
            xsd::STRING.into_owned(),
            xsd::BOOLEAN.into_owned(),
            xsd::INTEGER.into_owned(),
            xsd::DECIMAL.into_owned(),
            xsd::DOUBLE.into_owned(),
            NamedNode::new_unchecked("http://e/type"),
        ];
        let typed = (text(), prop::sample::select(datatypes));
        prop_oneof![
            typed.prop_map(|(t, d)| Literal::new_typed_literal(t, d)),
            text().prop_map(|t| Literal::new_language_tagged_literal_unchecked(t, "en-gb")),
            text().prop_map(|t| {
                let rtl = BaseDirection::Rtl;
                Literal::new_directional_language_tagged_literal_unchecked(t, "ar", rtl)
            }),
        ]
    }

    fn quad() -> impl Strategy<Value = Quad> {
        let blank = || "[ab]".prop_map(BlankNode::new_unchecked);
        let subject = || {
            let iri = prop::sample::select(vec!["http://e/s", "http://f/"]);
            prop_oneof![
                iri.prop_map(|i| NamedOrBlankNode::from(NamedNode::new_unchecked(i))),
                blank().prop_map(NamedOrBlankNode::from),
            ]
        };
        let predicate = prop_oneof![Just(rdf::TYPE.into_owned()), iri()];
        let plain = || {
            prop_oneof![
                iri().prop_map(Term::from),
                blank().prop_map(Term::from),
                literal().prop_map(Term::from),
            ]
        };
        let object = prop_oneof![
            4 => plain(),
            1 => (subject(), iri(), plain()).prop_map(|(s, p, o)| Triple::new(s, p, o).into()),
        ];
        let graph = prop_oneof![
            3 => Just(GraphName::DefaultGraph),
            1 => Just(NamedNode::new_unchecked("http://e/g").into()),
            1 => Just(BlankNode::new_unchecked("g").into()),
        ];
        (subject(), predicate, object, graph).prop_map(|(s, p, o, g)| Quad::new(s, p, o, g))
    }

    fn written(quads: &[Quad], format: RdfFormat) -> String {
        let mut out = Vec::new();
        let mut prefixes = Prefixes::new();
        for (name, iri) in PREFIXES {
            prefixes.declare(name, iri);
        }
        let mut writer = GraphWriter::new(&mut out, format, prefixes);
        for (name, _) in PREFIXES {
            writer.want(name);
        }
        for quad in quads {
            writer.quad(quad).unwrap();
        }
        writer.finish().unwrap();
        in_order(&out)
    }

    /// The document with its first lines, which declare prefixes, sorted.
    fn in_order(document: &[u8]) -> String {
        let text = std::str::from_utf8(document).unwrap();
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        let declared = lines
            .iter()
            .take_while(|l| l.starts_with("@prefix"))
            .count();
        lines[..declared].sort_unstable();
        lines.concat()
    }

    fn of_the_library(quads: &[Quad], format: RdfFormat) -> String {
        let mut serializer = RdfSerializer::from_format(format);
        for (name, iri) in PREFIXES {
            if let Ok(with) = serializer.clone().with_prefix(name, iri) {
                serializer = with;
            }
        }
        let mut writer = serializer.for_writer(Vec::new());
        for quad in quads {
            writer.serialize_quad(quad).unwrap();
        }
        in_order(&writer.finish().unwrap())
    }

    proptest! {
        #[test]
        fn documents_equal_those_of_the_library(quads in prop::collection::vec(quad(), 1..8)) {
            for format in [RdfFormat::NQuads, RdfFormat::TriG] {
                prop_assert_eq!(written(&quads, format), of_the_library(&quads, format));
            }
            let triples: Vec<Quad> = quads
                .into_iter()
                .map(|q| Triple::from(q).in_graph(GraphName::DefaultGraph))
                .collect();
            for format in [RdfFormat::NTriples, RdfFormat::Turtle] {
                prop_assert_eq!(written(&triples, format), of_the_library(&triples, format));
            }
        }
    }

    #[test]
    fn long_literals_equal_those_of_the_library() {
        for text in ["a", "\"", "\u{1}", "é\u{FFFF}", "a\u{FF5E}\n"] {
            let long = Literal::new_simple_literal(text.repeat(300_000));
            let p = NamedNode::new_unchecked("http://e/p");
            let quads = [Quad::new(p.clone(), p, long, GraphName::DefaultGraph)];
            for format in [RdfFormat::NTriples, RdfFormat::Turtle] {
                assert!(
                    written(&quads, format) == of_the_library(&quads, format),
                    "{text:?}"
                );
            }
        }
    }

    #[test]
    fn a_format_without_graphs_refuses_them() {
        let p = NamedNode::new_unchecked("http://e/p");
        let quad = Quad::new(p.clone(), p.clone(), p.clone(), p);
        for format in [RdfFormat::NTriples, RdfFormat::Turtle] {
            assert!(
                GraphWriter::new(Vec::new(), format, Prefixes::new())
                    .quad(&quad)
                    .is_err()
            );
        }
    }
}
