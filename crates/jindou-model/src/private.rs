//! Files and folders with users' data, which only their owner may read, write or list, whatever the umask is. (A umask
//! can remove permissions, but not add any.) Writing does not follow symbolic links, and only regular files are read or
//! written, since opening a pipe would wait for the process at its other end.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

/// Permissions of a file.
const FILE: u32 = 0o600;
/// Permissions of a folder.
const FOLDER: u32 = 0o700;

/// Options that create files with the permissions 0600; an existing file keeps its own. Opening with them follows no
/// symbolic link and does not wait for a pipe.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(FILE);
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    }
    options
}

/// Opens a file with [`options`]. Fails with a clear message if it is not a regular file.
fn opened(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let refused = |what: &str| {
        let why =
            format!("{what}, where Jindou needs a regular file of its own; move it elsewhere");
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    };
    match options.open(path) {
        Ok(file) if file.metadata()?.is_file() => Ok(file),
        Ok(_) => refused("it is not a regular file"),
        Err(e) => match std::fs::symlink_metadata(path) {
            _ if e.kind() == io::ErrorKind::AlreadyExists => Err(e),
            Ok(there) if there.is_symlink() => refused("it is a symbolic link"),
            Ok(there) if !there.is_file() => refused("it is not a regular file"),
            _ => Err(e),
        },
    }
}

/// Opens a file for reading; follows symbolic links.
///
/// # Errors The file system's errors, and an error if it is not a regular file.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.read(true).open(path)?;
    match file.metadata()?.file_type() {
        t if t.is_file() => Ok(file),
        t if t.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        )),
    }
}

/// A file's whole content.
///
/// # Errors
/// The errors of [`open`].
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens an existing file for writing.
///
/// # Errors
/// The file system's errors; also for a symbolic link and for anything but a regular file.
pub fn open_to_write(path: impl AsRef<Path>) -> io::Result<File> {
    opened(path.as_ref(), options().write(true))
}

/// Opens a file for reading and writing, and creates it if it does not exist.
///
/// # Errors
/// The file system's errors; also for a symbolic link and for anything but a regular file.
pub fn open_or_create(path: impl AsRef<Path>) -> io::Result<File> {
    let mut options = options();
    options.read(true).write(true).create(true).truncate(false);
    opened(path.as_ref(), &options)
}

/// Creates a file for reading and writing.
///
/// # Errors
/// The file system's errors; also if the name exists already.
pub fn create_new(path: impl AsRef<Path>) -> io::Result<File> {
    let mut options = options();
    options.read(true).write(true).create_new(true);
    opened(path.as_ref(), &options)
}

/// Creates a file for writing, or truncates an existing one.
///
/// # Errors
/// The file system's errors; also for a symbolic link and for anything but a regular file.
pub fn create(path: impl AsRef<Path>) -> io::Result<File> {
    let mut options = options();
    options.write(true).create(true).truncate(true);
    opened(path.as_ref(), &options)
}

/// Replaces a file's whole content by these bytes.
///
/// # Errors
/// The file system's errors.
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    create(path)?.write_all(bytes.as_ref())
}

/// Creates a folder; its parent must exist.
///
/// # Errors
/// The file system's errors; also if the name exists already.
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

    #[test]
    fn links_and_pipes_are_neither_written_nor_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("target"), "untouched").unwrap();
        std::os::unix::fs::symlink(at("target"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
        let pipe = std::ffi::CString::new(at("pipe").to_str().unwrap()).unwrap();
        // SAFETY: the name is a string that ends with a zero byte.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        std::fs::create_dir(at("folder")).unwrap();
        for name in ["link", "dangling", "pipe", "folder"] {
            for made in [
                create(at(name)),
                open_to_write(at(name)),
                open_or_create(at(name)),
                create_new(at(name)),
            ] {
                let e = made.unwrap_err().to_string();
                let told = e.contains("symbolic link") || e.contains("not a regular file");
                assert!(told || e.contains("exists"), "{name}: {e}");
            }
            assert!(write(at(name), "text").is_err());
        }
        assert_eq!(std::fs::read(at("target")).unwrap(), b"untouched");
        assert!(!at("nowhere").exists());
        assert_eq!(read(at("link")).unwrap(), b"untouched");
        for name in ["pipe", "folder", "dangling"] {
            assert!(read(at(name)).is_err(), "{name}");
        }
    }
}
