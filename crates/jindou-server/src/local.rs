//! A Unix socket, on which a server listens besides its address.

use crate::options::ServeError;
use std::io;
use std::path::Path;
#[cfg(unix)]
use {
    socket2::{Domain, SockAddr, Socket, Type},
    std::path::PathBuf,
    tokio::net::UnixListener,
};

/// A connection through a Unix socket.
#[cfg(unix)]
pub(crate) type LocalStream = tokio::net::UnixStream;
#[cfg(not(unix))]
pub(crate) type LocalStream = tokio::net::TcpStream;

/// A Unix socket, whose file is removed when this is dropped.
#[cfg(unix)]
pub(crate) struct LocalSocket {
    path: PathBuf,
    /// Device and inode of the file.
    file: Option<(u64, u64)>,
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
            // A server that is busy may not accept the connection now, which is then `WouldBlock`.
            let probe = Socket::new(Domain::UNIX, Type::STREAM, None).and_then(|socket| {
                socket.set_nonblocking(true)?;
                socket.connect(&SockAddr::unix(path)?)
            });
            match probe.map_err(|e| (e.kind(), e)) {
                Err((io::ErrorKind::ConnectionRefused, _)) => {
                    std::fs::remove_file(path).map_err(|e| failed(e.to_string()))?;
                }
                Err((io::ErrorKind::NotFound, _)) => {}
                Ok(()) | Err((io::ErrorKind::WouldBlock, _)) => {
                    return Err(failed(
                        "another program listens there; end it, or choose another path".into(),
                    ));
                }
                Err((_, e)) => {
                    return Err(failed(format!(
                        "cannot find out whether another program listens there: {e}"
                    )));
                }
            }
        }
        let listener = UnixListener::bind(path).map_err(|e| failed(e.to_string()))?;
        Ok(Self {
            path: path.into(),
            file: identity(path),
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

#[cfg(unix)]
impl Drop for LocalSocket {
    fn drop(&mut self) {
        // After the file was removed by hand, it may be that of another server.
        if self.file.is_some() && identity(&self.path) == self.file {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let metadata = path.symlink_metadata().ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
pub(crate) enum LocalSocket {}

#[cfg(not(unix))]
impl LocalSocket {
    pub(crate) fn listen(path: &Path) -> Result<Self, ServeError> {
        Err(ServeError::Socket {
            path: path.into(),
            message: "this system has no Unix sockets".into(),
        })
    }

    pub(crate) async fn accept(&self) -> io::Result<(LocalStream, String)> {
        match *self {}
    }
}
