//! Test texts from other sources.

use std::path::{Path, PathBuf};

/// The folder of shared inputs; `None` with a message if it is missing.
pub(super) fn shared() -> Option<PathBuf> {
    let dir = std::env::var_os("JINDOU_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    if dir.join("w3c").is_dir() {
        dir.canonicalize().ok()
    } else {
        println!(
            "skipped: {} has no w3c folder; set JINDOU_SHARED",
            dir.display()
        );
        None
    }
}

fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, out);
        } else {
            out.push(path);
        }
    }
}

/// All texts of queries (`false`) and updates (`true`), with their paths.
pub(crate) fn texts() -> Vec<(PathBuf, bool, String)> {
    let mut files = vec![];
    if let Some(shared) = shared() {
        walk(&shared.join("w3c/sparql"), &mut files);
        walk(&shared.join("workloads"), &mut files);
    }
    walk(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../jindou-workloads/queries"),
        &mut files,
    );
    files.sort();
    let mut out = vec![];
    for path in files {
        let Ok(bytes) = std::fs::read(&path) else {
            continue;
        };
        if bytes.len() > 64 << 10 {
            continue;
        }
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("");
        let update = ending == "ru" || path.parent().is_some_and(|p| p.ends_with("update"));
        let is_query = matches!(ending, "rq" | "ru" | "sparql") || {
            let upper = text.to_ascii_uppercase();
            matches!(ending, "" | "txt")
                && ["SELECT", "CONSTRUCT", "DESCRIBE", "ASK", "INSERT", "DELETE"]
                    .iter()
                    .any(|w| upper.contains(w))
        };
        if is_query {
            out.push((path, update, text));
        }
    }
    out
}
