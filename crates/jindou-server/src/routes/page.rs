//! A web page for exploring the data. Its sources are in `web/` at the repository's root; the built files are in
//! `src/page`, so that cargo does not need Node. The page loads nothing from other servers, and texts of the data are
//! shown as text. Without scripts it is a plain form.

use super::{answered, reading, text};
use crate::negotiate;
use crate::response::coded;
use axum::body::Body;
use http::header::{CONTENT_ENCODING, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, VARY};
use http::{HeaderMap, HeaderValue, Method, Response};

const PAGE: &str = include_str!("../page/page.html");
const SCRIPT: &str = include_str!("../page/page.js");
const WORKER: &str = include_str!("../page/worker.js");
const STYLE: &str = include_str!("../page/page.css");
const ICON: &str = include_str!("../page/icon.svg");

/// Scripts, styles and requests of this server alone; no frames around it. Images may come from elsewhere: the page fetches one when its reader asks for it.
const POLICY: &str = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' https: http:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// The script alongside the page asks this server, and does nothing else.
const WORKER_POLICY: &str = "default-src 'none'; connect-src 'self'";

/// True for a browser's visit, which asks for HTML by name. (`*/*` may come from any client, which gets data.)
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
        (VARY, "accept, origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

pub(super) async fn script(method: Method, headers: HeaderMap) -> Response<Body> {
    part(
        &method,
        &headers,
        "text/javascript; charset=utf-8",
        SCRIPT,
        None,
    )
}

pub(super) async fn worker(method: Method, headers: HeaderMap) -> Response<Body> {
    part(
        &method,
        &headers,
        "text/javascript; charset=utf-8",
        WORKER,
        Some(WORKER_POLICY),
    )
}

pub(super) async fn style(method: Method, headers: HeaderMap) -> Response<Body> {
    part(&method, &headers, "text/css; charset=utf-8", STYLE, None)
}

pub(super) async fn icon(method: Method, headers: HeaderMap) -> Response<Body> {
    part(&method, &headers, "image/svg+xml", ICON, None)
}

/// A file of the page, compressed in the way that the browser prefers. A file that runs on its own needs its own
/// policy.
fn part(
    method: &Method,
    headers: &HeaderMap,
    content_type: &'static str,
    content: &'static str,
    policy: Option<&'static str>,
) -> Response<Body> {
    let answer = reading(method).map(|()| {
        let wanted = negotiate::coding(headers);
        // This takes some milliseconds, once per visit.
        let made = tokio::task::block_in_place(|| coded(content.into(), wanted));
        let mut response = match made {
            Ok((body, coding)) => {
                let mut response = text(content_type, body);
                if let Some(name) = coding.name() {
                    let value = HeaderValue::from_static(name);
                    response.headers_mut().insert(CONTENT_ENCODING, value);
                }
                response
            }
            Err(_) => text(content_type, content),
        };
        let all = response.headers_mut();
        all.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if let Some(policy) = policy {
            let value = HeaderValue::from_static(policy);
            all.insert(CONTENT_SECURITY_POLICY, value);
        }
        response
    });
    answered(answer, headers)
}
