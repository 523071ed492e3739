//! Tokens and certificates that are reloaded, and information that error messages must not reveal.

use crate::security::{file, trusting};
use crate::{ENDLESS, MILLION, UPDATE, options, serve, store, thousand, until};
use jindou_server::{Server, ServerOptions};
use jindou_testing::http::{Answer, connect, receive, request};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use tempfile::NamedTempFile;

const READ: &str = "reading-0123456789";
const OTHER: &str = "another-0123456789";
const WRITE: &str = "writing-0123456789";

fn with_tokens(options: ServerOptions) -> (NamedTempFile, ServerOptions) {
    let file = file(&format!("read {READ}\nread {OTHER}\nwrite {WRITE}\n"));
    let path = file.path().to_owned();
    let options = options.with_token_file(path);
    (file, options)
}

fn send(server: &Server, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
    request(server.address(), method, target, headers, b"")
}

fn metric(server: &Server, headers: &[(&str, &str)], name: &str) -> f64 {
    let answer = send(server, "GET", "/metrics", headers);
    let line = answer.text().lines().find(|l| l.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn failed_attempts_are_counted_and_logged_without_their_token() {
    let log = crate::log::captured();
    let (_file, options) = with_tokens(options());
    let server = serve(thousand(), options);
    let query = "/query?query=ASK%7B%7D";
    let bearer = format!("Bearer {READ}");
    let reader = [("authorization", &*bearer), UPDATE];
    send(&server, "GET", query, &[]);
    for _ in 0..3 {
        send(
            &server,
            "GET",
            query,
            &[("authorization", "Bearer guessed-4711-guessed")],
        );
    }
    send(&server, "GET", query, &[("authorization", "Digest x")]);
    send(&server, "POST", "/update", &reader);
    let count = |reason: &str| {
        let name = format!("jindou_authentication_failures_total{{reason=\"{reason}\"}}");
        metric(&server, &reader, &name)
    };
    assert_eq!(count("missing"), 1.0);
    assert_eq!(count("unknown"), 3.0);
    assert_eq!(count("malformed"), 1.0);
    assert_eq!(count("forbidden"), 1.0);
    let text = log.text();
    assert!(!text.contains("guessed-4711"));
    let line = text.lines().find(|l| l.contains("unknown token"));
    assert!(line.unwrap().contains("client=\"127.0.0.1:"), "{text}");
}

#[test]
fn tokens_and_certificates_are_read_again() {
    let (file, options) = with_tokens(options());
    let server = serve(thousand(), options);
    let query = "/query?query=ASK%7B%7D";
    let status = |token: &str| {
        let bearer = format!("Bearer {token}");
        send(&server, "GET", query, &[("authorization", &bearer)]).status
    };
    assert_eq!((status(READ), status("replaced-0123456789")), (200, 401));
    std::fs::write(file.path(), "read replaced-0123456789\n").unwrap();
    assert_eq!((status(READ), status("replaced-0123456789")), (200, 401));
    server.reload().unwrap();
    assert_eq!((status(READ), status("replaced-0123456789")), (401, 200));
    std::fs::write(file.path(), "nonsense\n").unwrap();
    assert!(server.reload().is_err());
    assert_eq!(status("replaced-0123456789"), 200);
}

#[test]
fn a_certificate_is_replaced_without_a_restart() {
    let made = |name: &str| rcgen::generate_simple_self_signed(vec![name.into()]).unwrap();
    let (cert, key) = (file(""), file(""));
    let put = |made: &rcgen::CertifiedKey<rcgen::KeyPair>| {
        std::fs::write(cert.path(), made.cert.pem()).unwrap();
        std::fs::write(key.path(), made.signing_key.serialize_pem()).unwrap();
    };
    let (first, second) = (made("localhost"), made("localhost"));
    put(&first);
    let server = serve(
        thousand(),
        options().with_tls(jindou_server::TlsFiles::new(cert.path(), key.path())),
    );
    let trusts = |made: &rcgen::CertifiedKey<rcgen::KeyPair>| {
        let mut session = trusting(made);
        let mut stream = connect(server.address());
        while session.is_handshaking() {
            if session.complete_io(&mut stream).is_err() {
                return false;
            }
        }
        true
    };
    assert!(trusts(&first) && !trusts(&second));
    put(&second);
    server.reload().unwrap();
    assert!(!trusts(&first) && trusts(&second));
    // If a new file cannot be used, the old certificate stays in effect.
    std::fs::write(key.path(), first.signing_key.serialize_pem()).unwrap();
    assert!(server.reload().is_err());
    assert!(trusts(&second));
}

#[test]
fn a_secret_that_others_can_read_is_warned_of() {
    let file = file(&format!("read {READ}\n"));
    let options = options().with_token_file(file.path());
    assert_eq!(options.warnings(), Vec::<String>::new());
    for mode in [0o640, 0o604, 0o644] {
        std::fs::set_permissions(file.path(), PermissionsExt::from_mode(mode)).unwrap();
        let warnings = options.warnings();
        assert_eq!(warnings.len(), 1, "{mode:o}");
        assert!(warnings[0].contains("chmod 600"), "{warnings:?}");
    }
    let log = crate::log::captured();
    let _server = serve(thousand(), options);
    assert!(log.text().contains("can be read by other users"));
}

#[test]
fn a_request_without_a_host_is_refused() {
    let server = serve(thousand(), options());
    let raw = |head: &str| {
        let mut stream = connect(server.address());
        stream.write_all(head.as_bytes()).unwrap();
        receive(&mut stream, "GET").status
    };
    let get = "GET /query?query=ASK%7B%7D HTTP/1.1\r\n";
    assert_eq!(raw(&format!("{get}\r\n")), 400);
    assert_eq!(raw("GET /health HTTP/1.1\r\n\r\n"), 400);
    assert_eq!(raw("GET /health HTTP/1.0\r\n\r\n"), 200);
}

#[test]
fn readers_see_their_own_queries_only() {
    let (_file, options) = with_tokens(options());
    let server = serve(thousand(), options);
    let listed = |token: &str| -> Vec<String> {
        let bearer = format!("Bearer {token}");
        let answer = send(
            &server,
            "GET",
            "/admin/queries",
            &[("authorization", &bearer)],
        );
        let json = answer.json();
        let all = json["queries"].as_array().unwrap();
        all.iter()
            .map(|q| q["query"].as_str().unwrap().to_owned())
            .collect()
    };
    let begin = |token: &str, query: &str| {
        let mut stream = connect(server.address());
        let bearer = format!("Bearer {token}");
        let target = format!("/query?query={}", crate::escape(query));
        let headers = [("authorization", &*bearer)];
        jindou_testing::http::send(&mut stream, "GET", &target, &headers, b"");
        stream
    };
    let secret = format!("{ENDLESS} # a secret of mine");
    let (_one, _two) = (begin(READ, &secret), begin(OTHER, MILLION));
    until("both run", || listed(WRITE).len() == 2);
    assert_eq!(listed(READ), std::slice::from_ref(&secret));
    assert_eq!(listed(OTHER), [MILLION]);
    let one = |token: &str, id: u64| {
        let bearer = format!("Bearer {token}");
        let target = format!("/admin/queries/{id}");
        send(&server, "GET", &target, &[("authorization", &bearer)])
    };
    let statuses = |token: &str| [one(token, 1).status, one(token, 2).status];
    assert_eq!(statuses(WRITE), [200, 200]);
    let mut seen = [statuses(READ), statuses(OTHER)];
    seen.sort();
    assert_eq!(seen, [[200, 404], [404, 200]]);
}

#[test]
fn errors_name_no_place_of_the_server() {
    let data = store("<http://e/a> <http://e/p> 1 .");
    let inside = data.folder().join("store").join("backups");
    let server = serve(
        &data,
        options()
            .with_writable(true)
            .with_backup_to(jindou::BackupTarget::folder(inside.to_str().unwrap()).unwrap()),
    );
    let place = data.folder().to_str().unwrap().to_owned();
    let post =
        |target: &str, body: &[u8]| request(server.address(), "POST", target, &[UPDATE], body);
    // A backup into the store itself is refused with a message that names the store's path.
    post("/admin/backup", b"");
    let mut answer = String::new();
    until("the backup has failed", || {
        answer = send(&server, "GET", "/admin/backup", &[]).text().to_owned();
        answer.contains("failed")
    });
    assert!(answer.contains("backups is inside the store"), "{answer}");
    assert!(!answer.contains(&place), "{answer}");
    // With the log's folder removed, updates fail with messages about that folder.
    assert_eq!(
        post("/update", b"INSERT DATA { <a:a> <a:b> 2 }").status,
        200
    );
    std::fs::remove_dir_all(data.folder().join("store")).unwrap();
    let log = crate::log::captured();
    let mut refused = 0;
    for (target, body) in [
        ("/update", &b"INSERT DATA { <a:a> <a:b> 3 }"[..]),
        ("/admin/merge", b""),
    ] {
        let answer = post(target, body);
        assert!(!answer.text().contains(&place), "{}", answer.text());
        refused += usize::from(answer.status >= 500);
    }
    assert!(refused > 0);
    // The server's log contains the path.
    assert!(log.text().contains(&place));
}

/// All files and folders below a folder, with their permissions.
fn modes(folder: &std::path::Path, out: &mut Vec<(String, u32)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        out.push((path.display().to_string(), mode));
        if path.is_dir() {
            modes(&path, out);
        }
    }
}

#[test]
fn what_is_stored_is_its_owners_alone() {
    let data = store("<http://e/a> <http://e/p> 1 . <http://e/g> { <http://e/b> <http://e/p> 2 }");
    let backups = data.folder().join("backups");
    let server = serve(
        &data,
        options()
            .with_writable(true)
            .with_backup_to(jindou::BackupTarget::folder(backups.to_str().unwrap()).unwrap()),
    );
    let post = |target: &str, body: &[u8]| {
        request(server.address(), "POST", target, &[UPDATE], body).status
    };
    let job = |name: &str| {
        let target = format!("/admin/{name}");
        assert_eq!(post(&target, b""), 202);
        until(name, || {
            let text = send(&server, "GET", &target, &[]).text().to_owned();
            assert!(!text.contains("failed"), "{text}");
            text.contains("done")
        });
    };
    assert_eq!(post("/update", b"INSERT DATA { <a:a> <a:b> 2 }"), 200);
    assert_eq!(post("/admin/merge", b""), 200);
    assert_eq!(post("/update", b"INSERT DATA { <a:a> <a:b> 3 }"), 200);
    job("backup");
    job("recluster");
    assert_eq!(post("/update", b"INSERT DATA { <a:a> <a:b> 4 }"), 200);
    let mut all = Vec::new();
    modes(data.folder(), &mut all);
    assert!(all.len() > 15, "{all:?}");
    let open: Vec<_> = all.iter().filter(|(_, mode)| mode & 0o077 != 0).collect();
    assert!(open.is_empty(), "{open:?}");
}
