//! The list of inputs, and the options with which they are read.

use super::{SourceDocument, Sources};
use crate::fetch::DocumentSource;
use crate::folder::{Found, folder};
use crate::format::{Format, from_name};
use crate::input::{InputStream, Origin};
use crate::labels::KeptLabels;
use crate::limits::Limits;
use crate::report::Skipped;
use jindou_model::{Error, Location, Result, term};
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

/// An input, with options that override the builder's.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// A file, a folder, or `-` for standard input.
    pub path: PathBuf,
    /// The syntax, whatever the file's name suggests. Ignored for a folder.
    pub format: Option<Format>,
    /// IRI of the graph for statements that name none.
    pub graph: Option<String>,
}

/// Collects inputs and options for [`Sources`].
#[derive(Clone, Debug, Default)]
pub struct SourcesBuilder {
    inputs: Vec<Chosen>,
    format: Option<Format>,
    graph: Option<String>,
    base: Option<String>,
    lenient: bool,
    limits: Limits,
    contexts: Option<Arc<dyn DocumentSource>>,
    first_document: Option<u64>,
    all_labels: bool,
}

/// An input with its options.
#[derive(Clone, Debug)]
struct Chosen {
    wanted: InputKind,
    format: Option<Format>,
    graph: Option<String>,
    charset: Option<String>,
}

#[derive(Clone, Debug)]
enum InputKind {
    Path(PathBuf),
    Text(String, Arc<[u8]>),
    /// A document's IRI, and a stream of its bytes.
    Stream(String, InputStream),
}

impl SourcesBuilder {
    /// Adds a file, a folder (its RDF files, recursively, ordered by name), or `-` for standard input.
    #[must_use]
    pub fn path(self, path: impl Into<PathBuf>) -> Self {
        self.input(Input {
            path: path.into(),
            ..Input::default()
        })
    }

    /// Adds an input with a format or graph of its own.
    #[must_use]
    pub fn input(self, input: Input) -> Self {
        self.add(InputKind::Path(input.path), input.format, input.graph)
    }

    /// Adds text in memory, which may be compressed. `name` is shown in errors.
    #[must_use]
    pub fn text(self, name: impl Into<String>, text: impl Into<Arc<[u8]>>, format: Format) -> Self {
        let text = InputKind::Text(name.into(), text.into());
        self.add(text, Some(format), None)
    }

    /// Adds a document that is read once from a stream, plain or compressed. `size` is its length in bytes as
    /// transferred, if known. Its IRI is its base, and is shown in errors.
    #[must_use]
    pub fn stream(
        self,
        iri: impl Into<String>,
        reader: impl Read + Send + 'static,
        size: Option<u64>,
        format: Format,
        graph: Option<String>,
    ) -> Self {
        let stream = InputStream::new(Box::new(reader), size);
        self.add(InputKind::Stream(iri.into(), stream), Some(format), graph)
    }

    fn add(mut self, wanted: InputKind, format: Option<Format>, graph: Option<String>) -> Self {
        self.inputs.push(Chosen {
            wanted,
            format,
            graph,
            charset: None,
        });
        self
    }

    /// Sets the encoding that was declared with the last added input, as by HTTP's `charset`. For RDF/XML, it takes
    /// precedence over the declaration in the document. Documents in the other formats are always in UTF-8.
    #[must_use]
    pub fn charset(mut self, charset: Option<String>) -> Self {
        if let Some(last) = self.inputs.last_mut() {
            last.charset = charset;
        }
        self
    }

    /// Sets the format of inputs that have none of their own. It overrides what files' names suggest, except in
    /// folders.
    #[must_use]
    pub fn format(mut self, format: Option<Format>) -> Self {
        self.format = format;
        self
    }

    /// Sets the IRI of the graph for statements that name none, for inputs that have no graph of their own.
    #[must_use]
    pub fn graph(mut self, graph: Option<String>) -> Self {
        self.graph = graph;
        self
    }

    /// Sets the base of relative IRIs. By default, it is the `file://` URL of each file.
    #[must_use]
    pub fn base_iri(mut self, base: Option<String>) -> Self {
        self.base = base;
        self
    }

    /// If true, bad statements are skipped and counted, and the first ones are kept for a report; otherwise the first
    /// one ends the load. In N-Triples and N-Quads, a bad line is skipped. In Turtle, everything up to the next line
    /// that ends in a dot is skipped, or the rest of the line if a string in it is not closed. In RDF/XML, statements
    /// with an invalid IRI, language tag or attribute are skipped, or the rest of the document if it is not
    /// well-formed; in JSON-LD, an invalid entry of a node, or the rest of the document if the JSON is malformed; in
    /// TriG, the rest of the document. Statements before an error are always kept.
    #[must_use]
    pub fn lenient(mut self, lenient: bool) -> Self {
        self.lenient = lenient;
        self
    }

    /// Sets limits: when the reading ends, and a budget for the memory that a parser needs for a long token or line.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the source of contexts to which JSON-LD documents refer. Without one, a reference to a context is an error.
    #[must_use]
    pub fn contexts(mut self, contexts: Option<Arc<dyn DocumentSource>>) -> Self {
        self.contexts = contexts;
        self
    }

    /// Sets the number of the first document, so that labels of blank nodes differ from those of an earlier load. No
    /// label is then used unchanged.
    #[must_use]
    pub fn documents_from(mut self, first: u64) -> Self {
        self.first_document = Some(first);
        self
    }

    /// Uses all labels of blank nodes unchanged, for a document that is only passed on. Unlabelled nodes get labels
    /// with a random number.
    #[must_use]
    pub fn all_labels(mut self) -> Self {
        self.all_labels = true;
        self.first_document = Some(RandomState::new().hash_one(0));
        self
    }

    /// Resolves names and lists folders; opens no file yet.
    ///
    /// # Errors
    /// A path that does not exist, a file whose format is unknown, an invalid IRI, no input at all.
    pub fn build(self) -> Result<Sources> {
        if let Some(base) = &self.base {
            absolute_iri("base", base)?;
        }
        let FoundInputs {
            inputs: found,
            charsets,
            warnings,
            ..
        } = self.find_inputs()?;
        let first = self.first_document.unwrap_or(0);
        let mut size = Some(0u64);
        let documents: Vec<SourceDocument> = found
            .into_iter()
            .zip(charsets)
            .enumerate()
            .map(|(i, ((origin, format, compression, graph), charset))| {
                let bytes = origin.size();
                size = size.zip(bytes).map(|(a, b)| a + b);
                let base = self.base.clone().or_else(|| own_url(&origin));
                SourceDocument {
                    number: first.wrapping_add(i as u64),
                    origin,
                    format,
                    compression,
                    graph,
                    base,
                    charset,
                    bytes: bytes.unwrap_or(0),
                }
            })
            .collect();
        // First the documents that one worker reads as a whole, the longest first; then those that all workers share.
        let mut order: Vec<usize> = (0..documents.len()).collect();
        order.sort_by_key(|&i| {
            let d = &documents[i];
            (
                d.format.is_line_format(),
                if d.format.is_line_format() {
                    0
                } else {
                    u64::MAX - d.bytes
                },
            )
        });
        Ok(Sources {
            keep_labels: match (self.all_labels, self.first_document, documents.len()) {
                (true, _, _) => KeptLabels::All,
                (false, None, 1) => KeptLabels::Unlike,
                _ => KeptLabels::None,
            },
            documents,
            order,
            lenient: self.lenient,
            limits: self.limits,
            contexts: self.contexts,
            size,
            warnings,
            skipped: Skipped::default(),
            round: Mutex::new(None),
            stdin: Mutex::new(None),
        })
    }

    fn find_inputs(&self) -> Result<FoundInputs> {
        let mut found = FoundInputs::default();
        for chosen in &self.inputs {
            let graph = match chosen.graph.as_ref().or(self.graph.as_ref()) {
                Some(iri) => {
                    let iri = absolute_iri("graph", iri)?;
                    let mut bytes = Vec::new();
                    term::push_iri(iri, &mut bytes);
                    bytes
                }
                None => Vec::new(),
            };
            found.add(&chosen.wanted, chosen.format.or(self.format), graph)?;
            let all = found.inputs.len();
            found.charsets.resize(all, chosen.charset.clone());
        }
        if found.inputs.is_empty() {
            return Err(Error::Usage(match found.warnings.first() {
                Some(_) => format!(
                    "nothing to load: no file there has the extension of an RDF format (.nt, .nq, .ttl, \
                        .trig, .rdf, .owl, .jsonld; also .gz, .bz2, .xz, .zst): {}",
                    found.warnings.join("; ")
                ),
                None => "nothing to load: name at least one file, a folder with RDF files, or - for standard input"
                    .into(),
            }));
        }
        Ok(found)
    }
}

/// The documents that were found for the inputs, each with the encoding that was declared for it.
#[derive(Default)]
struct FoundInputs {
    inputs: Vec<Found>,
    charsets: Vec<Option<String>>,
    warnings: Vec<String>,
    /// True if standard input is among them.
    stdin: bool,
}

impl FoundInputs {
    fn add(&mut self, wanted: &InputKind, format: Option<Format>, graph: Vec<u8>) -> Result<()> {
        match wanted {
            InputKind::Text(name, text) => {
                let origin = Origin::Memory(name.clone(), Arc::clone(text));
                let format = format.unwrap_or(Format::NQuads);
                self.inputs.push((origin, format, None, graph));
            }
            InputKind::Stream(iri, stream) => {
                let origin = Origin::Stream(iri.clone(), stream.clone());
                let format = format.unwrap_or(Format::NQuads);
                self.inputs.push((origin, format, None, graph));
            }
            InputKind::Path(path) if path.as_os_str() == "-" => {
                let format = format.ok_or_else(|| Error::UnknownFormat {
                    name: "<stdin>".into(),
                })?;
                if std::mem::replace(&mut self.stdin, true) {
                    return Err(Error::Unsupported(
                        "standard input (-) is named twice".into(),
                    ));
                }
                self.inputs.push((Origin::Stdin, format, None, graph));
            }
            InputKind::Path(path) => {
                let meta = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
                if meta.is_dir() {
                    return folder(path, &graph, &mut self.inputs, &mut self.warnings);
                }
                let (named, compression) = from_name(path);
                let format = format.or(named).ok_or_else(|| unknown_format(path))?;
                let origin = Origin::File(path.clone());
                self.inputs.push((origin, format, compression, graph));
            }
        }
        Ok(())
    }
}

fn unknown_format(path: &Path) -> Error {
    let name = path.display().to_string();
    if name.contains(".tar") || name.ends_with(".zip") || name.ends_with(".tgz") {
        return Error::Unsupported(format!("{name}: an archive; unpack it and load the folder"));
    }
    Error::UnknownFormat { name }
}

fn absolute_iri<'a>(what: &str, iri: &'a str) -> Result<&'a str> {
    match oxiri::Iri::parse(iri) {
        Ok(_) => Ok(iri),
        Err(e) => Err(Error::Syntax {
            at: Location {
                file: format!("--{what}"),
                line: 0,
                column: 0,
            },
            message: format!(
                "`{iri}` is not a valid IRI ({e}), expected an absolute one such as http://example.org/g"
            ),
            text: None,
        }),
    }
}

/// An absolute path without `.` and `..`. As in the operating system, `..` after a symbolic link is the parent of the
/// link's target.
fn without_dots(path: &Path) -> PathBuf {
    let mut made = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if made.is_symlink()
                    && let Ok(target) = made.canonicalize()
                {
                    made = target;
                }
                made.pop();
            }
            part => made.push(part),
        }
    }
    made
}

/// The `file://` URL of a file, or the IRI of a stream; `None` for other inputs.
fn own_url(origin: &Origin) -> Option<String> {
    use std::os::unix::ffi::OsStrExt;
    let path = match origin {
        Origin::File(path) => path,
        Origin::Stream(iri, _) => return Some(iri.clone()),
        Origin::Stdin | Origin::Memory(..) => return None,
    };
    let path = without_dots(&std::path::absolute(path).ok()?);
    let mut url = String::from("file://");
    for &b in path.as_os_str().as_bytes() {
        if b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'.' | b'_' | b'~') {
            url.push(char::from(b));
        } else {
            url.push_str(&format!("%{b:02X}"));
        }
    }
    Some(url)
}
