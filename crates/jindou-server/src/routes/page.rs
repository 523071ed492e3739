//! The web page for exploring the data. Its sources are in `web/` at the repository's root; the built files are in
//! `src/page`, so that cargo does not need Node. The page loads nothing from other servers, and inserts data as text,
//! never as HTML. Without scripts it is a plain form.

use super::{answered, reading, text};
use crate::conditions::{Conditions, NEGOTIATED, Representation};
use crate::negotiate::{self, Coding};
use crate::problem::Problem;
use axum::body::Body;
use flate2::read::GzDecoder;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, ETAG, HeaderName, REFERRER_POLICY,
    VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use std::io::Read;

const PAGE: &str = include_str!("../page/page.html");

/// The content of a file that `build.rs` has compressed.
macro_rules! compressed {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".gz"))
    };
}

/// A file that the page loads.
struct Part {
    content_type: &'static str,
    gzip: &'static [u8],
    /// Content security policy of this file; needed for a worker script, to which the page's policy does not apply.
    policy: Option<&'static str>,
}

const SCRIPT: Part = Part {
    content_type: "text/javascript; charset=utf-8",
    gzip: compressed!("page.js"),
    policy: None,
};
const WORKER: Part = Part {
    content_type: "text/javascript; charset=utf-8",
    gzip: compressed!("worker.js"),
    policy: Some(WORKER_POLICY),
};
const STYLE: Part = Part {
    content_type: "text/css; charset=utf-8",
    gzip: compressed!("page.css"),
    policy: None,
};
const ICON: Part = Part {
    content_type: "image/svg+xml",
    gzip: compressed!("icon.svg"),
    policy: None,
};

/// Browsers may cache these files, but must ask each time whether they have changed, since another version's files
/// differ.
const KEPT: HeaderValue = HeaderValue::from_static("no-cache");

/// Content security policy of the page: scripts, styles and requests of this server only, and no embedding in frames.
/// Images may come from elsewhere: the page fetches one when the user asks for it.
const POLICY: &str = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' https: http:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Content security policy of the worker script: requests to this server only.
const WORKER_POLICY: &str = "default-src 'none'; connect-src 'self'";

/// True for a browser's visit: the client requests HTML explicitly. (`*/*` may come from any client, which gets data.)
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    negotiate::names_type(headers, "text/html")
}

pub(super) fn answer() -> Response<Body> {
    let mut response = text("text/html; charset=utf-8", PAGE);
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("x-frame-options"), "DENY"),
        // Pages that open this one, or are opened by it, get no access to its window.
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (VARY, "accept, origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

pub(super) async fn script(method: Method, headers: HeaderMap) -> Response<Body> {
    answered(part(&method, &headers, &SCRIPT), &headers)
}

pub(super) async fn worker(method: Method, headers: HeaderMap) -> Response<Body> {
    answered(part(&method, &headers, &WORKER), &headers)
}

pub(super) async fn style(method: Method, headers: HeaderMap) -> Response<Body> {
    answered(part(&method, &headers, &STYLE), &headers)
}

pub(super) async fn icon(method: Method, headers: HeaderMap) -> Response<Body> {
    answered(part(&method, &headers, &ICON), &headers)
}

fn part(method: &Method, headers: &HeaderMap, part: &Part) -> Result<Response<Body>, Problem> {
    reading(method)?;
    let coding = match negotiate::accepts_gzip(headers) {
        true => Coding::Gzip,
        false => Coding::Identity,
    };
    // A gzip file ends with the checksum and the length of its content, which serve as an entity tag.
    let revision = part
        .gzip
        .last_chunk()
        .map_or(0, |end| u64::from_le_bytes(*end));
    let version = Representation {
        revision,
        format: "page",
        prefixes: 0,
    };
    if let Some(mut same) = Conditions::from_headers(headers)?.read(&version, coding)? {
        same.headers_mut().insert(CACHE_CONTROL, KEPT);
        return Ok(same);
    }
    let mut response = match coding {
        Coding::Gzip => text(part.content_type, part.gzip),
        _ => text(part.content_type, unpacked(part.gzip)?),
    };
    let all = response.headers_mut();
    all.insert(VARY, NEGOTIATED);
    all.insert(CACHE_CONTROL, KEPT);
    all.insert(ETAG, version.tag(coding));
    if let Some(name) = coding.name() {
        all.insert(CONTENT_ENCODING, HeaderValue::from_static(name));
    }
    if let Some(policy) = part.policy {
        all.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    }
    Ok(response)
}

/// The decompressed file, for a client that does not accept gzip.
fn unpacked(gzip: &[u8]) -> Result<Vec<u8>, Problem> {
    let mut content = Vec::new();
    GzDecoder::new(gzip)
        .read_to_end(&mut content)
        .map_err(|e| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", e.to_string()))?;
    Ok(content)
}
