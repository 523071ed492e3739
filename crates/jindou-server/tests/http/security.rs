//! Tests of permissions: who may do what, from where, and over which connection.

use crate::{ask, options, serve, store, thousand};
use jindou_server::{ServeError, Server, TlsFiles};
use jindou_testing::http::{Answer, connect, receive, request, send};
use rustls::pki_types::{CertificateDer, ServerName};
use std::io::Write;
use std::sync::Arc;
use tempfile::NamedTempFile;

const READ: &str = "reading-0123456789";
const WRITE: &str = "writing-0123456789";

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn with_tokens() -> (NamedTempFile, Server) {
    let tokens = file(&format!("read {READ}\nwrite {WRITE}\n"));
    let server = serve(thousand(), options().with_token_file(tokens.path()));
    (tokens, server)
}

fn bearing(server: &Server, token: &str, method: &str, target: &str) -> Answer {
    let authorization = format!("Bearer {token}");
    let headers = [
        ("authorization", &*authorization),
        ("content-type", "application/sparql-update"),
    ];
    request(server.address(), method, target, &headers, b"")
}

#[test]
fn other_machines_need_tokens() {
    let open = options().with_host([0, 0, 0, 0]);
    let refused = Server::start(thousand().db.clone(), open).err().unwrap();
    assert!(matches!(refused, ServeError::Open(_)));
    assert!(refused.to_string().contains("--token-file"));
}

#[test]
fn tokens_open_what_they_are_for() {
    let (_file, server) = with_tokens();
    let query = "/query?query=ASK%7B%7D";
    let none = request(server.address(), "GET", query, &[], b"");
    assert_eq!(
        (none.status, none.header("www-authenticate")),
        (401, "Bearer")
    );
    for wrong in [
        "",
        "nobody-0123456789",
        "reading-012345678",
        "reading-01234567890",
    ] {
        assert_eq!(bearing(&server, wrong, "GET", query).status, 401);
    }
    let basic = [("authorization", "Basic cmVhZGluZw==")];
    assert_eq!(
        request(server.address(), "GET", query, &basic, b"").status,
        401
    );
    for token in [READ, WRITE] {
        for target in [query, "/metrics", "/store?default", "/admin/queries", "/"] {
            assert_eq!(
                bearing(&server, token, "GET", target).status,
                200,
                "{target}"
            );
        }
    }
    for (method, target) in [
        ("POST", "/update"),
        ("PUT", "/store?default"),
        ("DELETE", "/admin/queries/1"),
    ] {
        assert_eq!(
            bearing(&server, READ, method, target).status,
            403,
            "{target}"
        );
    }
    // An update of nothing, and a graph in no RDF.
    assert_eq!(bearing(&server, WRITE, "POST", "/update").status, 200);
    assert_eq!(bearing(&server, WRITE, "PUT", "/store?default").status, 415);
    assert_eq!(
        bearing(&server, WRITE, "DELETE", "/admin/queries/1").status,
        404
    );
    assert_eq!(
        request(server.address(), "GET", "/health", &[], b"").status,
        200
    );
}

#[test]
fn pages_read_answers_as_their_origin_allows() {
    let allowed = |server: &Server, origin: &str| {
        let answer = ask(server, "ASK {}", &[("origin", origin)]);
        assert_eq!(answer.status, 200);
        answer.header("access-control-allow-origin").to_owned()
    };
    let mine = serve(thousand(), options());
    assert_eq!(
        allowed(&mine, "http://localhost:3000"),
        "http://localhost:3000"
    );
    assert_eq!(allowed(&mine, "http://127.0.0.1"), "http://127.0.0.1");
    assert_eq!(allowed(&mine, "http://evil.example"), "");
    assert_eq!(allowed(&mine, "http://localhost.evil.example"), "");
    let listed = serve(
        thousand(),
        options().with_cors_origins(["https://yasgui.example"]),
    );
    assert_eq!(
        allowed(&listed, "https://yasgui.example"),
        "https://yasgui.example"
    );
    assert_eq!(allowed(&listed, "http://localhost:3000"), "");
    let (_file, tokens) = with_tokens();
    let preflight = [
        ("origin", "https://any.example"),
        ("access-control-request-method", "POST"),
    ];
    let answer = request(tokens.address(), "OPTIONS", "/query", &preflight, b"");
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (204, "*")
    );
    assert!(
        answer
            .header("access-control-allow-headers")
            .contains("authorization")
    );
    // A web page must not be able to cancel queries.
    let admin = request(
        tokens.address(),
        "OPTIONS",
        "/admin/queries/1",
        &preflight,
        b"",
    );
    assert_eq!(admin.header("access-control-allow-origin"), "");
}

#[test]
fn a_foreign_name_for_this_machine_is_not_answered() {
    let server = serve(thousand(), options());
    let by_name = |host: &str| {
        request(
            server.address(),
            "GET",
            "/query?query=ASK%7B%7D",
            &[("host", host)],
            b"",
        )
        .status
    };
    assert_eq!(by_name("rebound.example:7878"), 421);
    assert_eq!(by_name("localhost:7878"), 200);
    assert_eq!(by_name("127.0.0.1"), 200);
    assert_eq!(by_name("[::1]:7878"), 200);
}

#[test]
fn tls() {
    let data = store("<http://e/a> <http://e/b> <http://e/c> .");
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let (cert, key) = (
        file(&made.cert.pem()),
        file(&made.signing_key.serialize_pem()),
    );
    let files = TlsFiles::new(cert.path(), key.path());
    let server = serve(&data, options().with_tls(files.clone()));
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from(made.cert.der().to_vec()))
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let session = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = rustls::StreamOwned::new(session, connect(server.address()));
    send(
        &mut stream,
        "GET",
        "/query?query=SELECT%20%3Fs%20%3Fp%20%3Fo%7B%3Fs%20%3Fp%20%3Fo%7D",
        &[("accept", "text/csv")],
        b"",
    );
    let answer = receive(&mut stream, "GET");
    assert_eq!(
        answer.text(),
        "s,p,o\r\nhttp://e/a,http://e/b,http://e/c\r\n"
    );
    assert_eq!(
        stream.conn.protocol_version(),
        Some(rustls::ProtocolVersion::TLSv1_3)
    );
    // A client that does not speak TLS gets nothing, and does no harm.
    let mut plain = connect(server.address());
    send(&mut plain, "GET", "/health", &[], b"");
    let mut nothing = Vec::new();
    let _ = std::io::Read::read_to_end(&mut plain, &mut nothing);
    assert!(!nothing.starts_with(b"HTTP"));
    // Files that cannot be used are named.
    let swapped = TlsFiles::new(files.key, files.cert);
    let bad = options().with_tls(swapped);
    assert!(matches!(
        Server::start(data.db.clone(), bad).err(),
        Some(ServeError::File { .. })
    ));
}
