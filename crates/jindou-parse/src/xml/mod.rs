//! A conforming, non-validating processor of XML 1.0 (fifth edition) with namespaces, for documents as they come.
//!
//! [`Reader`] reads from anything that gives bytes and returns an [`Event`] at a time. Every constraint on well-formedness is checked,
//! so [`Event::Eof`] means that the document was whole. Text and attributes are borrowed from the input wherever line ends, references
//! and white space let them; nothing is allocated for an event. External entities are never read. What is held is bounded by
//! [`ReaderOptions`] and charged to their budget.
//!
//! ```
//! use jindou_parse::xml::{Event, ReaderOptions, Reader};
//!
//! let document = "<!DOCTYPE a [<!ENTITY who 'world'>]><a b='1'>Hello, &who;!</a>";
//! let mut reader = Reader::new(document.as_bytes(), ReaderOptions::default())?;
//! let mut text = String::new();
//! loop {
//!     match reader.next_event()? {
//!         Event::Start(start) => assert_eq!(start.attributes().next().unwrap().value, "1"),
//!         Event::Text(piece) => text.push_str(piece),
//!         Event::Eof => break,
//!         _ => {}
//!     }
//! }
//! assert_eq!(text, "Hello, world!");
//! # Ok::<(), jindou_parse::xml::Error>(())
//! ```

mod chars;
mod declaration;
mod dtd;
mod encoding;
mod error;
mod event;
mod input;
mod names;
mod options;
mod reader;
mod tag;
mod value;
pub mod write;

pub use chars::{is_char, is_ncname};
pub use dtd::Notation;
pub use error::{Error, Fault, Position, Result};
pub use event::{Attribute, Event, Name, Start};
pub use names::XML;
pub use options::ReaderOptions;
pub use reader::Reader;
