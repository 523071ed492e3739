//! Mistakes and their messages; the table of extensions.

mod extensions;
mod mistakes;
