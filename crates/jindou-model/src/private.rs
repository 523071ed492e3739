//! Files and folders that hold users' data: only their owner may read, write or list them, whatever the umask says. A
//! umask can take more away, never add.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Permissions of a file.
const FILE: u32 = 0o600;
/// Permissions of a folder.
const FOLDER: u32 = 0o700;

/// Options that give a file they create the permissions 0600; one that is there keeps its own.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, FILE);
    options
}

/// Creates a file for reading and writing.
///
/// # Errors
/// As the file system says; also if something of that name is there.
pub fn create_new(path: impl AsRef<Path>) -> io::Result<File> {
    options().read(true).write(true).create_new(true).open(path)
}

/// Creates a file for writing, or empties the one that is there.
///
/// # Errors
/// As the file system says.
pub fn create(path: impl AsRef<Path>) -> io::Result<File> {
    options().write(true).create(true).truncate(true).open(path)
}

/// Makes these bytes a file's whole content.
///
/// # Errors
/// As the file system says.
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    create(path)?.write_all(bytes.as_ref())
}

/// Creates a folder; its parent must be there.
///
/// # Errors
/// As the file system says; also if something of that name is there.
pub fn create_folder(path: impl AsRef<Path>) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, FOLDER);
    builder.create(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn nobody_else_may_read_what_is_created() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("folder");
        create_folder(&inner).unwrap();
        assert_eq!(mode(&inner), 0o700);
        create_new(inner.join("a")).unwrap();
        create(inner.join("b")).unwrap();
        write(inner.join("c"), "text").unwrap();
        for name in ["a", "b", "c"] {
            assert_eq!(mode(&inner.join(name)), 0o600, "{name}");
        }
        assert_eq!(std::fs::read(inner.join("c")).unwrap(), b"text");
        assert!(create_new(inner.join("c")).is_err());
        assert!(create_folder(&inner).is_err());
    }
}
