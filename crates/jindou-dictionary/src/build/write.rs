use jindou_model::{Error, Result};
use std::path::Path;
/// Writes `dictionary.jd`.
///
/// # Errors
/// Io, limits.
pub fn write_dictionary(_dir: &Path, _id_of_lex: &[u32], _threads: usize) -> Result<()> {
    Err(Error::Unsupported("dictionary building".into()))
}
