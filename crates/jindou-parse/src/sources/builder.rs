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

/// One input, with its deviations from the builder's defaults.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// A file, a folder, or `-` for standard input.
    pub path: PathBuf,
    /// Its syntax, whatever its name indicates. Ignored for a folder.
    pub format: Option<Format>,
    /// IRI of the graph for its statements without a graph name.
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
    /// A document's IRI, and its bytes as they arrive.
    Stream(String, InputStream),
}

impl SourcesBuilder {
    /// Adds a file, a folder (its files with a known extension, recursively, by name), or `-`.
    #[must_use]
    pub fn path(self, path: impl Into<PathBuf>) -> Self {
        self.input(Input {
            path: path.into(),
            ..Input::default()
        })
    }

    /// Adds an input with a format or graph of its own.
    #[must_use]
    pub fn input(mut self, input: Input) -> Self {
        self.inputs.push(Chosen {
            wanted: InputKind::Path(input.path),
            format: input.format,
            graph: input.graph,
            charset: None,
        });
        self
    }

    /// Adds text in memory (which may be compressed); `name` is shown in errors.
    #[must_use]
    pub fn text(
        mut self,
        name: impl Into<String>,
        text: impl Into<Arc<[u8]>>,
        format: Format,
    ) -> Self {
        self.inputs.push(Chosen {
            wanted: InputKind::Text(name.into(), text.into()),
            format: Some(format),
            graph: None,
            charset: None,
        });
        self
    }

    /// Adds a document that is read once, as it arrives, plain or compressed; `size` is its length in bytes as
    /// transferred, if known. Its IRI is its base, and is shown in errors.
    #[must_use]
    pub fn stream(
        mut self,
        iri: impl Into<String>,
        reader: impl Read + Send + 'static,
        size: Option<u64>,
        format: Format,
        graph: Option<String>,
    ) -> Self {
        let stream = InputStream::new(Box::new(reader), size);
        self.inputs.push(Chosen {
            wanted: InputKind::Stream(iri.into(), stream),
            format: Some(format),
            graph,
            charset: None,
        });
        self
    }

    /// Sets the encoding declared with the last added input, such as HTTP's `charset`: for RDF/XML it takes precedence
    /// over the document's own declaration. The other formats are always in UTF-8.
    #[must_use]
    pub fn charset(mut self, charset: Option<String>) -> Self {
        if let Some(last) = self.inputs.last_mut() {
            last.charset = charset;
        }
        self
    }

    /// The format of inputs without one of their own: it overrides names, except in folders, where the names decide.
    #[must_use]
    pub fn format(mut self, format: Option<Format>) -> Self {
        self.format = format;
        self
    }

    /// IRI of the graph for statements without a graph name, for inputs without a graph of their own.
    #[must_use]
    pub fn graph(mut self, graph: Option<String>) -> Self {
        self.graph = graph;
        self
    }

    /// Base IRI for relative IRIs. The default is the `file://` URL of each file.
    #[must_use]
    pub fn base_iri(mut self, base: Option<String>) -> Self {
        self.base = base;
        self
    }

    /// Skips bad statements, counts them and remembers the first ones, instead of stopping. In line formats a bad line
    /// is skipped; in Turtle everything to the next line that ends in a dot, or to the end of the line if a string in
    /// it does not end; in RDF/XML the statements that have an IRI, language tag or attribute that is not valid, and
    /// the rest of the document if it is not well-formed; in TriG the rest of the document; in JSON-LD a bad entry of a node, or
    /// the rest when the JSON itself is broken. Statements before the error are kept.
    #[must_use]
    pub fn lenient(mut self, lenient: bool) -> Self {
        self.lenient = lenient;
        self
    }

    /// Ends the reading when its time is over, and charges the memory that a parser needs for a long token or line.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Finds the contexts that documents of JSON-LD refer to. Without it such a document is an error.
    #[must_use]
    pub fn contexts(mut self, contexts: Option<Arc<dyn DocumentSource>>) -> Self {
        self.contexts = contexts;
        self
    }

    /// Numbers the documents from here on, for labels of blank nodes that must differ from those of an earlier load;
    /// labels are then never kept unchanged.
    #[must_use]
    pub fn documents_from(mut self, first: u64) -> Self {
        self.first_document = Some(first);
        self
    }

    /// Keeps all labels of blank nodes unchanged: for a document that is only passed on. Nodes without a label get one
    /// with a number that is drawn here.
    #[must_use]
    pub fn all_labels(mut self) -> Self {
        self.all_labels = true;
        self.first_document = Some(RandomState::new().hash_one(0));
        self
    }

    /// Resolves names and folders; opens nothing yet.
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
        // Whole documents come first, the long ones of them first; then those that all workers share.
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

/// The documents that the inputs are, and the encoding declared with each.
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

/// An absolute path without `.` and `..`. As in the operating system, a `..` after a symbolic link refers to the parent
/// of its target.
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

/// The `file://` URL of a file, or the address of a stream.
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
