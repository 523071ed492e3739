//! An output file that gets its name only when it is complete, or standard output.

use jindou::{Error, Result};
use jindou_parse::{Compression, from_name};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// An output, compressed as its name indicates. A file is written under a temporary name and renamed when it is
/// complete, so that an interrupted command leaves no incomplete file and does not change an existing one.
pub struct OutFile {
    to: Encoder,
    /// The temporary and the final name of a file; `None` for standard output.
    names: Option<(PathBuf, PathBuf)>,
}

enum Encoder {
    Plain(BufWriter<File>),
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
    Bzip2(bzip2::write::BzEncoder<BufWriter<File>>),
    Xz(liblzma::write::XzEncoder<BufWriter<File>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<File>>),
    Ended,
}

/// Compression levels of xz and zstd. Higher ones would take ten minutes instead of half a minute per gigabyte.
const XZ_LEVEL: u32 = 4;
const ZSTD_LEVEL: i32 = 3;

impl OutFile {
    /// An output to a file, or to standard output for `-`.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be created.
    pub fn create(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            let out = io::stdout().as_fd().try_clone_to_owned();
            let out = out.map_err(|e| Error::io("<stdout>", e))?;
            let plain = BufWriter::with_capacity(1 << 16, File::from(out));
            return Ok(Self {
                to: Encoder::Plain(plain),
                names: None,
            });
        }
        let failed = |e| Error::io(path, e);
        let there = path.metadata().ok();
        // A device or a pipe is written directly, without a temporary file.
        let special = there.as_ref().is_some_and(|m| !m.is_file());
        // If the path is a link, the file that it points to is replaced, not the link.
        let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut name = whole.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".part-{}", std::process::id()));
        let meanwhile = whole.with_file_name(name);
        let file = match &there {
            Some(_) if special => File::options().write(true).open(path),
            // The new file gets the permissions of the existing one.
            Some(there) => File::create(&meanwhile).and_then(|file| {
                file.set_permissions(there.permissions())?;
                Ok(file)
            }),
            None => File::create(&meanwhile),
        };
        let file = BufWriter::with_capacity(1 << 16, file.map_err(failed)?);
        let to = match from_name(path).1 {
            None => Encoder::Plain(file),
            Some(Compression::Gzip) => {
                let level = flate2::Compression::default();
                Encoder::Gzip(flate2::write::GzEncoder::new(file, level))
            }
            Some(Compression::Bzip2) => {
                let level = bzip2::Compression::default();
                Encoder::Bzip2(bzip2::write::BzEncoder::new(file, level))
            }
            Some(Compression::Xz) => Encoder::Xz(liblzma::write::XzEncoder::new(file, XZ_LEVEL)),
            Some(Compression::Zstd) => {
                Encoder::Zstd(zstd::stream::write::Encoder::new(file, ZSTD_LEVEL).map_err(failed)?)
            }
        };
        Ok(Self {
            to,
            names: (!special).then_some((meanwhile, whole)),
        })
    }

    /// Completes the output. A file is then on the disk under its final name.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be completed.
    pub fn finish(mut self) -> io::Result<()> {
        let file = match std::mem::replace(&mut self.to, Encoder::Ended) {
            Encoder::Plain(f) => f,
            Encoder::Gzip(e) => e.finish()?,
            Encoder::Bzip2(e) => e.finish()?,
            Encoder::Xz(e) => e.finish()?,
            Encoder::Zstd(e) => e.finish()?,
            Encoder::Ended => return Ok(()),
        };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        if let Some((meanwhile, name)) = &self.names {
            file.sync_all()?;
            std::fs::rename(meanwhile, name)?;
        }
        self.names = None;
        Ok(())
    }
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            Encoder::Plain(f) => f.write(bytes),
            Encoder::Gzip(e) => e.write(bytes),
            Encoder::Bzip2(e) => e.write(bytes),
            Encoder::Xz(e) => e.write(bytes),
            Encoder::Zstd(e) => e.write(bytes),
            Encoder::Ended => Err(io::Error::other("the output has ended")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            Encoder::Plain(f) => f.flush(),
            // Compressed output is not flushed before its end, since that would only worsen the compression.
            _ => Ok(()),
        }
    }
}

impl Drop for OutFile {
    fn drop(&mut self) {
        if let Some((meanwhile, _)) = &self.names {
            let _ = std::fs::remove_file(meanwhile);
        }
    }
}
