//! Where the shared inputs lie.

use std::path::PathBuf;

/// The folder `part` of the shared inputs, or `None` with a word about it.
pub fn shared(part: &str) -> Option<PathBuf> {
    let root = std::env::var_os("JINDOU_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let path = root.join(part);
    if path.exists() {
        path.canonicalize().ok()
    } else {
        println!("skipped: there is no {}; set JINDOU_SHARED", path.display());
        None
    }
}
