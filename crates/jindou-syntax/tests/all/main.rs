//! Tests of texts and of the parser's results for them, and of the table of extensions.

mod cases;
mod extensions;
