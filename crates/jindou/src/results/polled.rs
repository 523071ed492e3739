//! A writer that checks the query's time limit on behalf of the RDF libraries that write to it.

use jindou_model::scope;
use std::io::{self, Write};

/// Work that each call counts in addition to its bytes: some libraries write character by character.
const CALL: usize = 16;

/// Checks the query's token at each write. Once the query must end, writing fails with [`io::ErrorKind::BrokenPipe`],
/// and the library's caller asks the token for the reason.
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
