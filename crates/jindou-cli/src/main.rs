//! The command `jindou`.
fn main() {}
