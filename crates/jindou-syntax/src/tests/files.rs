//! Texts of queries and updates from other sources.

use jindou_testing::files_below;
use jindou_testing::seeds::{QUERIES, UPDATES};
use std::path::{Path, PathBuf};

/// Fails with all texts for which something was wrong.
pub(super) fn none_is_wrong(wrong: &[String]) {
    let all = wrong.join("\n----\n");
    assert!(wrong.is_empty(), "{}:\n{all}", wrong.len());
}

/// All texts, with their paths; false for queries, true for updates.
pub(crate) fn texts() -> Vec<(PathBuf, bool, String)> {
    let mut files = vec![];
    for part in ["w3c/sparql", "workloads"] {
        if let Some(folder) = jindou_testing::shared_too(part) {
            files.extend(files_below(&folder));
        }
    }
    let own = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../lab/jindou-workloads/queries"
    );
    files.extend(files_below(Path::new(own)));
    files.sort();
    let mut out = vec![];
    let own = [(QUERIES, false, "query"), (UPDATES, true, "update")];
    for (texts, update, kind) in own {
        for (n, text) in texts.iter().enumerate() {
            let place = format!("jindou_testing::seeds, {kind} {n}");
            out.push((place.into(), update, (*text).to_owned()));
        }
    }
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
