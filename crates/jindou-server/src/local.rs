//! A Unix socket, on which a server listens besides its address.

use crate::options::ServeError;
use std::io;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use tokio::net::UnixListener;

/// A connection through a Unix socket.
#[cfg(unix)]
pub(crate) type LocalStream = tokio::net::UnixStream;
#[cfg(not(unix))]
pub(crate) type LocalStream = tokio::net::TcpStream;

/// A Unix socket, whose file is removed when this is dropped.
pub(crate) struct LocalSocket {
    path: PathBuf,
    #[cfg(unix)]
    listener: UnixListener,
}

#[cfg(unix)]
impl LocalSocket {
    /// Listens at this path. The umask decides who may connect. The file of a server that has ended is replaced.
    ///
    /// # Errors
    /// [`ServeError::Socket`] if another server listens there, if the path is that of another file, and if the system
    /// cannot create the socket.
    pub(crate) fn listen(path: &Path) -> Result<Self, ServeError> {
        use std::os::unix::fs::FileTypeExt;
        let failed = |message: String| ServeError::Socket {
            path: path.into(),
            message,
        };
        if let Ok(metadata) = path.symlink_metadata() {
            if !metadata.file_type().is_socket() {
                return Err(failed(
                    "a file that is not a socket is there; choose another path".into(),
                ));
            }
            match std::os::unix::net::UnixStream::connect(path) {
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
                    std::fs::remove_file(path).map_err(|e| failed(e.to_string()))?;
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => {
                    return Err(failed(format!(
                        "it cannot be told whether it is in use: {e}"
                    )));
                }
                Ok(_) => {
                    return Err(failed(
                        "another program listens there; end it, or choose another path".into(),
                    ));
                }
            }
        }
        let listener = UnixListener::bind(path).map_err(|e| failed(e.to_string()))?;
        Ok(Self {
            path: path.into(),
            listener,
        })
    }

    /// Accepts a connection. Returns it with a name of its user, whose connections count as one client's.
    pub(crate) async fn accept(&self) -> io::Result<(LocalStream, String)> {
        let (stream, _) = self.listener.accept().await?;
        let user = stream.peer_cred()?.uid();
        Ok((stream, format!("user {user}")))
    }
}

#[cfg(not(unix))]
impl LocalSocket {
    pub(crate) fn listen(path: &Path) -> Result<Self, ServeError> {
        Err(ServeError::Socket {
            path: path.into(),
            message: "this system has no Unix sockets".into(),
        })
    }

    pub(crate) async fn accept(&self) -> io::Result<(LocalStream, String)> {
        std::future::pending().await
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        // Another server may have replaced the file only if it was removed by hand, so it is this server's.
        let _ = std::fs::remove_file(&self.path);
    }
}
