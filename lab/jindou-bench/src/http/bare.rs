//! A server that does nothing but HTTP: hyper, with the options that Jindou's server has, and an answer of fixed bytes.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use jindou::{Error, Result};
use std::convert::Infallible;
use std::process::ExitCode;
use tokio::net::TcpListener;

/// The answer to every request: that of `ASK {}`.
pub const BODY: &str = r#"{"head":{},"boolean":true}"#;

async fn answer(_: Request<Incoming>) -> std::result::Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(Bytes::from_static(BODY.as_bytes())));
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-type", "application/sparql-results+json"),
        ("vary", "accept, accept-encoding, origin"),
        ("x-content-type-options", "nosniff"),
    ] {
        headers.insert(name, hyper::header::HeaderValue::from_static(value));
    }
    Ok(response)
}

/// Serves on a free port, whose address is printed, until the process is killed.
pub fn run() -> Result<ExitCode> {
    let failed = |e| Error::io("a socket", e);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // As many threads as Jindou's server has.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores + 1)
        .enable_all()
        .build()
        .map_err(failed)?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        println!("serving at http://{address}/");
        loop {
            let (stream, _) = listener.accept().await.map_err(failed)?;
            stream.set_nodelay(true).map_err(failed)?;
            tokio::spawn(async move {
                let serving = http1::Builder::new();
                // An error means that the client has disconnected.
                let _ = serving
                    .serve_connection(TokioIo::new(stream), service_fn(answer))
                    .await;
            });
        }
    })
}
