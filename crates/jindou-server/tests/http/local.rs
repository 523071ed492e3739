//! The Unix socket of a server.

use crate::{get, options, serve, thousand, until};
use jindou_server::{ServeError, Server};
use jindou_testing::http::{Answer, receive, send};
use socket2::{Domain, SockAddr, Socket, Type};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

fn by_socket(path: &Path, target: &str) -> Answer {
    let mut stream = UnixStream::connect(path).unwrap();
    send(&mut stream, "GET", target, &[], b"");
    receive(&mut stream, "GET")
}

fn refusal(path: &Path) -> String {
    let second = Server::start(thousand().db.clone(), options().with_unix_socket(path));
    let refused = second.err().unwrap();
    assert!(matches!(refused, ServeError::Socket { .. }));
    refused.to_string()
}

#[test]
fn a_unix_socket_answers_as_the_address_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let server = serve(thousand(), options().with_unix_socket(&path));
    for target in [
        "/query?query=ASK%20%7B%7D",
        "/query?query=ASK",
        "/health",
        "/",
    ] {
        let (here, there) = (by_socket(&path, target), get(&server, target));
        assert_eq!(here.status, there.status);
        assert_eq!(here.body, there.body);
    }
    // The umask decides who may connect, as for other sockets.
    let other = folder.path().join("other");
    let _other = UnixListener::bind(&other).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
    assert_eq!(mode(&path), mode(&other));
    server.stop();
    assert!(!path.exists());
}

#[test]
fn only_sockets_of_servers_that_have_ended_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let server = serve(thousand(), options().with_unix_socket(&path));
    assert!(refusal(&path).contains("another program listens"));
    assert_eq!(by_socket(&path, "/health").status, 200);
    drop(server);
    until("the socket is gone", || !path.exists());
    // std does not remove the file of a listener, so this is what a server leaves that was killed.
    drop(UnixListener::bind(&path).unwrap());
    let server = serve(thousand(), options().with_unix_socket(&path));
    assert_eq!(by_socket(&path, "/health").status, 200);
    drop(server);

    let file = folder.path().join("file");
    std::fs::write(&file, "text").unwrap();
    assert!(refusal(&file).contains("not a socket"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "text");
    let long = folder.path().join("x".repeat(120));
    assert!(refusal(&long).contains("SUN_LEN"));
    let nowhere = folder.path().join("nowhere/socket");
    assert!(refusal(&nowhere).contains("No such file"));
}

#[test]
fn the_socket_of_another_server_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let first = serve(thousand(), options().with_unix_socket(&path));
    std::fs::remove_file(&path).unwrap();
    let second = serve(thousand(), options().with_unix_socket(&path));
    first.stop();
    assert_eq!(by_socket(&path, "/health").status, 200);
    second.stop();
    assert!(!path.exists());
}

#[test]
fn a_program_that_accepts_no_connection_now_listens_nevertheless() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let socket = || Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    let address = SockAddr::unix(&path).unwrap();
    let busy = socket();
    busy.bind(&address).unwrap();
    busy.listen(0).unwrap();
    let mut waiting = vec![];
    loop {
        let next = socket();
        next.set_nonblocking(true).unwrap();
        let connected = next.connect(&address);
        waiting.push(next);
        match connected {
            Ok(()) => assert!(waiting.len() < 100),
            Err(e) => break assert_eq!(e.kind(), ErrorKind::WouldBlock),
        }
    }
    assert!(refusal(&path).contains("another program listens"));
}
