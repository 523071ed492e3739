//! A writer that checks the query's time limit, since the RDF libraries that write to it do not.

use jindou_model::scope;
use std::io::{self, Write};

/// Work counted for each call in addition to its bytes, since some libraries write character by character.
const CALL: usize = 16;

/// Checks the query's token at each write. Once the query must end, writing fails with [`io::ErrorKind::BrokenPipe`];
/// the caller of the library then gets the reason from the token.
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
