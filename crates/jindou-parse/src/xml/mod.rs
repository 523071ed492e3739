//! A streaming, conforming, non-validating processor of XML 1.0 (fifth edition) with namespaces.
//!
//! [`Reader`] reads bytes from any [`std::io::Read`] and returns one [`Event`] at a time. All constraints on
//! well-formedness are checked, so [`Event::Eof`] means that the document was well-formed. Text and attributes are
//! borrowed from the input, unless line ends, references or white space must be converted; events need no allocation.
//! External entities are never read. The memory in use is bounded by [`ReaderOptions`] and charged to their budget.
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
