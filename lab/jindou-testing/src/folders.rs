//! Folders: copies, lists of files, and archives.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies a folder and everything below it.
pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy_folder(&path, &to),
            false => drop(std::fs::copy(&path, to).unwrap()),
        }
    }
}

/// All files below a folder, sorted.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => files.extend(files_below(&path)),
            false => files.push(path),
        }
    }
    files.sort();
    files
}

/// Unpacks an archive into a folder by the command `tar`.
pub fn unpack(archive: &Path, to: &Path) {
    let mut tar = Command::new("tar");
    let done = tar.arg("xzf").arg(archive).arg("-C").arg(to).status();
    assert!(done.expect("tar").success(), "{}", archive.display());
}
