//! Signals to a server.

use super::run::{good, jindou};
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

/// Waits until a server has written `what` to standard error. Returns everything that it has written by then.
fn said(errors: &mut impl Read, what: &str) -> String {
    let mut all = Vec::new();
    let mut byte = [0];
    while errors.read(&mut byte).unwrap() == 1 {
        all.push(byte[0]);
        if byte[0] == b'\n' && String::from_utf8_lossy(&all).contains(what) {
            return String::from_utf8_lossy(&all).into_owned();
        }
    }
    panic!("never '{what}' in {}", String::from_utf8_lossy(&all));
}

#[test]
fn a_hangup_makes_a_server_read_its_tokens_again() {
    use std::os::unix::fs::PermissionsExt;
    let tmp = tempfile::tempdir().unwrap();
    fs::write(tmp.path().join("d.nt"), "<urn:a> <urn:p> <urn:b> .\n").unwrap();
    good(tmp.path(), &["load", "-q", "--store", "s", "d.nt"]);
    let tokens = tmp.path().join("tokens");
    fs::write(&tokens, "read 0123456789abcdef\n").unwrap();
    fs::set_permissions(&tokens, PermissionsExt::from_mode(0o644)).unwrap();
    let mut server = jindou(tmp.path())
        .args(["serve", "s", "--port", "0", "--host", "localhost"])
        .args(["--token-file", "tokens"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = server.stderr.take().unwrap();
    said(&mut errors, "can be read by other users");
    let mut line = Vec::new();
    let mut out = server.stdout.take().unwrap();
    let mut byte = [0];
    while out.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    // The server installs its signal handlers a moment after it begins to listen.
    let id = server.id().to_string();
    let signal = |name: &str| Command::new("kill").args([name, &id]).status().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(signal("-HUP").success());
    let text = said(&mut errors, "again");
    assert!(
        text.contains("read tokens and certificates again"),
        "{text}"
    );
    fs::write(&tokens, "nonsense\n").unwrap();
    assert!(signal("-HUP").success());
    let text = said(&mut errors, "reload failed");
    assert!(text.contains("line 1"), "{text}");
    assert!(server.try_wait().unwrap().is_none());
    assert!(signal("-TERM").success());
    assert!(server.wait().unwrap().success());
}
