//! Parsers of RDF: text in, batches of terms in canonical bytes out. The first stage of loading.
//!
//! [`Sources`] takes files, folders, standard input and text in six syntaxes, plain or compressed, and is a
//! [`jindou_model::QuadSource`]. N-Triples and N-Quads are read by this crate's tokeniser, on all workers at once and
//! mostly without copying. Documents in the other syntaxes are read by one worker each: RDF/XML by a reader on top of
//! [`crate::xml`], JSON-LD by the algorithms of its specification, Turtle and TriG by the `oxttl` parsers behind a
//! guard that refuses excessive nesting.
//!
//! ```
//! use jindou_model::{Progress, QuadBatch, QuadSink, QuadSource};
//! use jindou_parse::{Format, Sources};
//!
//! struct Count(usize);
//! impl QuadSink for Count {
//!     fn batch(&mut self, batch: &QuadBatch) -> jindou_model::Result<()> {
//!         self.0 += batch.quads.len();
//!         Ok(())
//!     }
//! }
//!
//! let text = &b"<http://e/s> <http://e/p> 1, 2 ."[..];
//! let text = [b"@prefix e: <http://e/> . ", text].concat();
//! let sources = Sources::builder().text("example", text, Format::Turtle).build()?;
//! let mut count = Count(0);
//! sources.run(0, 1, &mut count, &Progress::default())?;
//! assert_eq!(count.0, 2);
//! # Ok::<(), jindou_model::Error>(())
//! ```

mod blocks;
mod chars;
mod declared;
mod document;
mod emit;
mod fetch;
mod folder;
mod format;
mod guard;
mod input;
mod jsonld;
mod labels;
mod limits;
mod line;
mod rdfxml;
mod replacement;
mod report;
mod restart;
mod sources;
pub mod write;
pub mod xml;

pub use fetch::{ContextFiles, Document, DocumentSource, file_path};
pub use format::{Compression, Format, from_name};
pub use limits::Limits;
pub use replacement::Replacement;
pub use report::{BadStatement, Rest, SkipReport};
pub use sources::{Input, Sources, SourcesBuilder};
