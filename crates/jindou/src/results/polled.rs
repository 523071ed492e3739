//! A writer for the libraries that write RDF, which know nothing of a query's time limit.

use jindou_model::scope;
use std::io::{self, Write};

/// Work of a call, in bytes: some writers pass character by character.
const CALL: usize = 16;

/// Looks at the query's token while text passes. Once the query is over, writing fails with
/// [`io::ErrorKind::BrokenPipe`]: who calls the library finds the reason at the token.
pub(super) struct Polled<W>(pub W);

impl<W: Write> Write for Polled<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        scope::worked(CALL + 4 * text.len())
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        self.0.write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
