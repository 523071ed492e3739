//! Request bodies that are not valid text: bytes that are not UTF-8, and damaged compression.

use crate::{UPDATE, csv, quads, serve, store, writable};
use jindou_server::Server;
use jindou_testing::http::{Answer, request};
use std::io::Write;

const FORM: &str = "application/x-www-form-urlencoded";

fn post(server: &Server, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    request(server.address(), "POST", target, headers, body)
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut e = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    e.write_all(text).unwrap();
    e.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 3).unwrap()
}

#[test]
fn bytes_that_are_not_utf8_are_refused() {
    let store = store("");
    let server = serve(&store, writable());
    let form = [("content-type", FORM)];
    for target in ["/update", "/sparql", "/"] {
        let body = b"update=INSERT DATA {<urn:a> <urn:p> \"caf\xe9\"}";
        let answer = post(&server, target, &form, body);
        assert_eq!((answer.status, &*answer.problem()), (400, "bad-request"));
        assert!(answer.text().contains("is not UTF-8"), "{}", answer.text());
    }
    let direct = [("content-type", "application/sparql-query")];
    let answer = post(&server, "/query", &direct, b"ASK { ?s ?p \"\xe9\" }");
    assert_eq!(answer.status, 400);
    assert_eq!(quads(&server), 0);
}

#[test]
fn bodies_in_brotli_are_read() {
    let store = store("");
    let server = serve(&store, writable());
    // The text `<urn:a> <urn:p> 7 .`, compressed by Node's encoder.
    let br = [
        0x0b, 0x09, 0x80, 0x3c, 0x75, 0x72, 0x6e, 0x3a, 0x61, 0x3e, 0x20, 0x3c, 0x75, 0x72, 0x6e,
        0x3a, 0x70, 0x3e, 0x20, 0x37, 0x20, 0x2e, 0x03,
    ];
    for (coding, body) in [("br", br.to_vec()), ("br, gzip", gzip(&br))] {
        for target in ["/store?default", "/store/g"] {
            let headers = [
                ("content-type", "text/turtle"),
                ("content-encoding", coding),
            ];
            let answer = request(server.address(), "PUT", target, &headers, &body);
            assert!(
                matches!(answer.status, 200 | 201),
                "{coding}: {}",
                answer.text()
            );
        }
    }
    let seven = csv(&server, "ASK { ?s ?p 7 }");
    assert_eq!(seven.text(), "true\n");
}

/// Damaged compressed texts, each with a word that must be in the error message.
fn damaged() -> Vec<(&'static str, Vec<u8>)> {
    let text: String = (0..2000)
        .map(|i| format!("<urn:s{i}> <urn:p> {} .\n", i * 7919))
        .collect();
    let text = text.as_bytes();
    let mut bz = bzip2::write::BzEncoder::new(vec![], bzip2::Compression::fast());
    bz.write_all(text).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(vec![], 1);
    xz.write_all(text).unwrap();
    let whole = [
        ("gzip", gzip(text)),
        ("zstd", zstd(text)),
        ("bzip2", bz.finish().unwrap()),
        ("xz", xz.finish().unwrap()),
    ];
    let mut all = vec![];
    for (name, body) in whole {
        all.push((name, body[..body.len() / 2].to_vec()));
        all.push((name, body[..body.len() - 3].to_vec()));
        all.push((name, [&body[..], b"trailing text"].concat()));
    }
    all
}

#[test]
fn damaged_bodies_are_the_clients_fault() {
    let store = store("");
    let server = serve(&store, writable());
    for (name, body) in damaged() {
        for media in ["application/n-triples", "text/turtle"] {
            let headers = [("content-type", media)];
            let answer = request(
                server.address(),
                "PUT",
                "/store?graph=urn:g",
                &headers,
                &body,
            );
            let told = answer.text().to_owned();
            assert_eq!(
                (answer.status, &*answer.problem()),
                (400, "syntax"),
                "{name}: {told}"
            );
            assert!(told.contains(name) && told.contains("byte"), "{told}");
        }
        // The same body with a Content-Encoding.
        if matches!(name, "gzip" | "zstd") {
            let coded = [UPDATE, ("content-encoding", name)];
            let answer = post(&server, "/update", &coded, &body);
            assert_eq!((answer.status, &*answer.problem()), (400, "bad-request"));
            let coded = [("content-type", "text/turtle"), ("content-encoding", name)];
            assert_eq!(post(&server, "/store?default", &coded, &body).status, 400);
        }
    }
    assert_eq!(quads(&server), 0);
}
