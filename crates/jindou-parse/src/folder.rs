//! Finds the RDF files of a folder, and counts the files that are skipped.

use crate::format::{Compression, Format, from_name};
use crate::input::{self, Origin};
use crate::limits::Limits;
use jindou_model::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) type Found = (Origin, Format, Option<Compression>, Vec<u8>);

/// Adds the RDF files of a folder and its subfolders to `found`, ordered by name; describes skipped files in
/// `warnings`.
pub(crate) fn folder(
    path: &Path,
    graph: &[u8],
    found: &mut Vec<Found>,
    warnings: &mut Vec<String>,
) -> Result<()> {
    let mut pending = vec![path.to_path_buf()];
    let top = path;
    // Skipped files by reason: their number, and the first one.
    let mut foreign: BTreeMap<String, (u64, PathBuf)> = BTreeMap::new();
    let mut pass_over = |why: String, path: PathBuf| {
        foreign.entry(why).or_insert((0, path)).0 += 1;
    };
    while let Some(path) = pending.pop() {
        let meta = std::fs::metadata(&path).map_err(|e| Error::io(&path, e))?;
        if meta.is_dir() {
            let mut entries = Vec::new();
            for entry in std::fs::read_dir(&path).map_err(|e| Error::io(&path, e))? {
                let entry = entry.map_err(|e| Error::io(&path, e))?;
                if !entry.file_name().to_string_lossy().starts_with('.') {
                    entries.push(entry.path());
                }
            }
            entries.sort();
            for entry in entries.into_iter().rev() {
                if entry.is_symlink() && entry.is_dir() {
                    warnings.push(format!("{}: skipped, a link to a folder", entry.display()));
                } else {
                    pending.push(entry);
                }
            }
        } else if let (Some(format), compression) = from_name(&path) {
            if is_other_xml(&path, compression) {
                pass_over("in .xml that is not RDF/XML".into(), path);
            } else {
                found.push((Origin::File(path), format, compression, graph.to_vec()));
            }
        } else {
            let why = match path.extension() {
                Some(e) => format!(
                    "in .{}, which is not the extension of an RDF format",
                    e.to_string_lossy()
                ),
                None => "without an extension".into(),
            };
            pass_over(why, path);
        }
    }
    let mut foreign: Vec<_> = foreign.into_iter().collect();
    // The largest group comes first.
    foreign.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
    for (why, (count, first)) in foreign {
        let shown = first.strip_prefix(top).unwrap_or(&first).display();
        let top = top.display();
        warnings.push(match count {
            1 => format!("{top}: skipped 1 file {why}: {shown}"),
            n => format!("{top}: skipped {n} files {why}, such as {shown}"),
        });
    }
    Ok(())
}

/// Number of bytes at the beginning of a file in which the RDF namespace is searched for.
const SNIFFED: usize = 64 << 10;

/// True for a file called `.xml` that does not look like RDF/XML: its beginning does not contain RDF's namespace. False
/// for files that cannot be read or are not UTF-8.
fn is_other_xml(path: &Path, compression: Option<Compression>) -> bool {
    let name = path.to_string_lossy().to_ascii_lowercase();
    let name = match compression {
        Some(_) => name.rsplit_once('.').map_or("", |n| n.0),
        None => &name,
    };
    if !name.ends_with(".xml") {
        return false;
    }
    let origin = Origin::File(path.to_owned());
    let Ok(opened) = input::open(&origin, compression, &Arc::default(), &Limits::default()) else {
        return false;
    };
    let (mut reader, mut head) = (opened.reader, Vec::new());
    if input::read_more(&mut reader, &mut head, SNIFFED).is_err() || head.contains(&0) {
        return false;
    }
    memchr::memmem::find(&head, b"http://www.w3.org/1999/02/22-rdf-syntax-ns#").is_none()
}
