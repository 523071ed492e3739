//! Connections from other machines, and over TLS.

use crate::{options, serve, store, thousand};
use jindou_server::{ServeError, Server, TlsFiles};
use jindou_testing::http::{connect, receive, send};
use rustls::pki_types::ServerName;
use std::io::Write;
use std::sync::Arc;
use tempfile::NamedTempFile;

pub fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// A client's side of a connection that trusts only this certificate.
pub fn trusting(made: &rcgen::CertifiedKey<rcgen::KeyPair>) -> rustls::ClientConnection {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    rustls::ClientConnection::new(Arc::new(config), name).unwrap()
}

#[test]
fn other_machines_need_tokens() {
    let open = options().with_host([0, 0, 0, 0]);
    let refused = Server::start(thousand().db.clone(), open).err().unwrap();
    assert!(matches!(refused, ServeError::Open(_)));
    assert!(refused.to_string().contains("--token-file"));
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
    let mut stream = rustls::StreamOwned::new(trusting(&made), connect(server.address()));
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
    // A client that does not use TLS gets no answer, and does no harm.
    let mut plain = connect(server.address());
    send(&mut plain, "GET", "/health", &[], b"");
    let mut nothing = Vec::new();
    let _ = std::io::Read::read_to_end(&mut plain, &mut nothing);
    assert!(!nothing.starts_with(b"HTTP"));
    // TLS files that cannot be used are named in the error.
    let swapped = TlsFiles::new(files.key, files.cert);
    let bad = options().with_tls(swapped);
    assert!(matches!(
        Server::start(data.db.clone(), bad).err(),
        Some(ServeError::File { .. })
    ));
}
