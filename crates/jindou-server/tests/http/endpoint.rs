//! Readiness and shutdown of a server, and compression of the page.

use crate::{csv, get, options, send, serve, store, thousand, until, update, writable};
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[test]
fn the_page_is_compressed_once_and_well() {
    let server = serve(thousand(), options());
    let page = send(&server, "GET", "/", &[("accept", "text/html")], "");
    let scripts = page.text().matches("<script").count();
    let own = page.text().matches("<script src=\"page.js\"").count();
    assert_eq!(scripts, own);
    let script = get(&server, "/page.js");
    let gzip = [("accept-encoding", "gzip")];
    let gzip = send(&server, "GET", "/page.js", &gzip, "");
    assert_eq!(gzip.header("content-encoding"), "gzip");
    assert!(gzip.body.len() * 2 < script.body.len());
    let mut best = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut best, &script.body).unwrap();
    assert_eq!(gzip.body, best.finish().unwrap());
}

#[test]
fn ready_means_that_requests_are_answered() {
    let data = store("<http://e/a> <http://e/p> 1 .");
    let server = serve(&data, writable());
    let ready = || get(&server, "/ready");
    assert_eq!(
        (ready().status, &ready().json()["status"]),
        (200, &"ready".into())
    );
    // With the log removed, the next update fails, and the server is not ready.
    std::fs::remove_dir_all(data.folder().join("store").join("log")).unwrap();
    let refused = update(&server, "INSERT DATA { <a:a> <a:b> 1 }");
    assert!(refused.status >= 500, "{}", refused.text());
    let not = ready();
    assert_eq!((not.status, &*not.problem()), (503, "not-ready"));
    assert!(not.text().contains("log") && !not.text().contains(data.folder().to_str().unwrap()));
    assert_eq!(get(&server, "/health").status, 200);
    assert_eq!(csv(&server, "ASK { ?s ?p 1 }").text(), "true\n");
}

#[test]
fn a_drained_server_answers_until_it_ends() {
    let data = store("<http://e/a> <http://e/p> 1 .");
    let reading = serve(&data, options());
    assert_eq!(send(&reading, "POST", "/admin/drain", &[], "").status, 403);
    drop(reading);
    let server = serve(&data, writable());
    let drain = |wait: &str| send(&server, "POST", &format!("/admin/drain{wait}"), &[], "");
    for wait in ["?wait=-1", "?wait=x", "?wait=3601"] {
        assert_eq!(drain(wait).status, 400, "{wait}");
    }
    assert_eq!(get(&server, "/ready").status, 200);
    let begun = Instant::now();
    assert_eq!(drain("?wait=2").status, 202);
    // A second request does not postpone the shutdown.
    assert_eq!(drain("?wait=3000").status, 202);
    let not = get(&server, "/ready");
    assert_eq!((not.status, &*not.problem()), (503, "not-ready"));
    assert_eq!(csv(&server, "ASK { ?s ?p 1 }").text(), "true\n");
    let done = update(&server, "INSERT DATA { <a:a> <a:b> 1 }");
    assert_eq!(done.status, 200);
    until("it has ended", || {
        TcpStream::connect(server.address()).is_err()
    });
    assert!(begun.elapsed() >= Duration::from_secs(2));
}
