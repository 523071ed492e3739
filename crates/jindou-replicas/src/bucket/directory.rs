//! Puts in a directory. `object_store` creates all missing folders of a path, so a put that runs while the log's
//! directory is moved away would create a new directory in its place. Here, all steps of a put are relative to the
//! directory that was opened at the start, and only folders inside of it are created.

use super::generic;
use crate::blocking::blocking;
use async_trait::async_trait;
use futures_util::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Number of attempts to create a file in a folder that another process may remove meanwhile because it is empty.
const ATTEMPTS: usize = 16;

/// A directory as an object store. All operations except puts are delegated to `object_store`.
#[derive(Debug)]
pub(super) struct Directory {
    local: LocalFileSystem,
    root: Root,
}

/// The log's directory.
#[derive(Clone, Debug)]
struct Root {
    path: PathBuf,
    /// Device and inode of the directory.
    is: (u64, u64),
}

impl Directory {
    /// # Errors
    /// If the directory is missing.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = std::fs::canonicalize(path)?;
        let meta = std::fs::metadata(&path)?;
        let local = LocalFileSystem::new_with_prefix(&path)
            .map_err(io::Error::from)?
            .with_automatic_cleanup(true);
        let is = (meta.dev(), meta.ino());
        let root = Root { path, is };
        Ok(Self { local, root })
    }

    fn cannot(&self, operation: &str) -> Error {
        Error::NotImplemented {
            operation: operation.into(),
            implementer: self.to_string(),
        }
    }
}

impl std::fmt::Display for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Directory({})", self.root.path.display())
    }
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);
const FILE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::CLOEXEC);

fn open_in(folder: impl AsFd, name: &OsStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let mode = Mode::from_raw_mode(0o666);
    retry_on_intr(|| rustix::fs::openat(&folder, name, flags, mode))
}

impl Root {
    fn open(&self) -> io::Result<File> {
        let file = File::open(&self.path)?;
        let meta = file.metadata()?;
        match (meta.dev(), meta.ino()) == self.is {
            true => Ok(file),
            false => Err(io::Error::other("another directory is in its place")),
        }
    }

    /// Opens the folder that contains the file `name`, and creates it if it is missing.
    fn open_parent(&self, name: &Path) -> io::Result<File> {
        let mut at = self.open()?;
        for folder in name.parent().into_iter().flatten() {
            let opened = match open_in(&at, folder, FOLDER) {
                Err(Errno::NOENT) => {
                    match rustix::fs::mkdirat(&at, folder, Mode::from_raw_mode(0o777)) {
                        // Sync also if it exists: another process may have created it and not synced it yet.
                        Ok(()) | Err(Errno::EXIST) => at.sync_all()?,
                        Err(e) => return Err(e.into()),
                    }
                    open_in(&at, folder, FOLDER)
                }
                opened => opened,
            };
            at = opened?.into();
        }
        Ok(at)
    }

    /// Creates a temporary file in the folder of the file `name`. The temporary name has the suffix that `staged.rs`
    /// recognises.
    fn stage(&self, name: &Path, file_name: &OsStr) -> io::Result<Staged> {
        let folder = self.open_parent(name)?;
        for number in 1_u64.. {
            let mut staged = file_name.to_owned();
            staged.push(format!("#{number}"));
            match open_in(&folder, &staged, FILE) {
                Ok(file) => {
                    return Ok(Staged {
                        folder,
                        file: file.into(),
                        name: staged.into(),
                    });
                }
                Err(Errno::EXIST) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Writes a temporary file and durably renames it to `name`.
    ///
    /// # Errors
    /// `AlreadyExists` if the file exists and `replaces` is false. After other errors the file may exist.
    fn put(&self, name: &Path, payload: &PutPayload, replaces: bool) -> io::Result<()> {
        let file_name = name.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let failed = |what: &str, e: io::Error| {
            let path = self.path.join(name);
            io::Error::new(e.kind(), format!("cannot {what} {}: {e}", path.display()))
        };
        let mut attempts = 1..ATTEMPTS;
        let staged = loop {
            match self.stage(name, file_name) {
                // Either the folder was empty and was removed meanwhile; then the next attempt creates it. Or the
                // directory was moved away; then the next attempts fail, too.
                Err(e) if is_gone(&e) && attempts.next().is_some() => {}
                staged => break staged.map_err(|e| failed("stage", e))?,
            }
        };
        let Staged { folder, file, name } = staged;
        let written = write(file, payload).map_err(|e| failed("write", e));
        let placed = written.and_then(|()| {
            let placed = match replaces {
                true => rustix::fs::renameat(&folder, &name, &folder, file_name),
                false => rustix::fs::linkat(&folder, &name, &folder, file_name, AtFlags::empty()),
            };
            placed.map_err(|e| failed("put in its place", e.into()))
        });
        if placed.is_err() || !replaces {
            // A temporary file that cannot be removed now is removed by `remove_staged` a day later.
            let _ = rustix::fs::unlinkat(&folder, &name, AtFlags::empty());
        }
        placed?;
        folder
            .sync_all()
            .map_err(|e| failed("sync the folder of", e))
    }
}

/// A temporary file, which will be renamed to its final name.
struct Staged {
    folder: File,
    file: File,
    name: PathBuf,
}

fn write(mut file: File, payload: &PutPayload) -> io::Result<()> {
    for part in payload {
        file.write_all(part)?;
    }
    file.sync_all()
}

/// True if the error says that a folder was removed while in use.
fn is_gone(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle
    )
}

#[async_trait]
impl ObjectStore for Directory {
    async fn put_opts(
        &self,
        key: &Key,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let replaces = match options.mode {
            PutMode::Overwrite => true,
            PutMode::Create => false,
            PutMode::Update(_) => return Err(self.cannot("a conditional update")),
        };
        if !options.attributes.is_empty() {
            return Err(self.cannot("attributes"));
        }
        let root = self.root.clone();
        let path = self.local.path_to_filesystem(key)?;
        let name = path.strip_prefix(&root.path).map_err(generic)?.to_owned();
        let work = move || root.put(&name, &payload, replaces);
        match blocking(work).await {
            Ok(()) => Ok(PutResult {
                e_tag: None,
                version: None,
                extensions: Default::default(),
            }),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(Error::AlreadyExists {
                path: key.to_string(),
                source: Box::new(e),
            }),
            Err(e) => Err(generic(e)),
        }
    }

    async fn put_multipart_opts(
        &self,
        _: &Key,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Err(self.cannot("an upload in parts"))
    }

    async fn get_opts(&self, key: &Key, options: GetOptions) -> Result<GetResult> {
        self.local.get_opts(key, options).await
    }

    fn delete_stream(
        &self,
        keys: BoxStream<'static, Result<Key>>,
    ) -> BoxStream<'static, Result<Key>> {
        self.local.delete_stream(keys)
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.local.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Key>,
        offset: &Key,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.local.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> Result<ListResult> {
        self.local.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, _: &Key, _: &Key, _: CopyOptions) -> Result<()> {
        Err(self.cannot("a copy"))
    }
}
