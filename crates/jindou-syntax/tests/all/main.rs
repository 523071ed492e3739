//! Texts with what the parser makes of them; the table of extensions.

mod cases;
mod extensions;
