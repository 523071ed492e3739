//! RDF text in, batches of canonical term bytes out: the `parse` stop of the load journey.
//!
//! [`Sources`] takes files, folders, standard input and text in six syntaxes, plain or compressed, and is a
//! [`jindou_model::QuadSource`]. N-Triples and N-Quads are read by this crate's own tokeniser, on all workers at once
//! and mostly without copying; RDF/XML by its own reader on top of [`crate::xml`], JSON-LD by its own algorithms; Turtle
//! and TriG by the `oxttl` parsers, protected by a guard against absurd nesting. In these, one worker reads a whole
//! document.
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
pub use format::Format;
pub use limits::Limits;
pub use replacement::Replacement;
pub use report::{BadStatement, Rest, SkipReport};
pub use sources::{Input, Sources, SourcesBuilder};
