//! A page for people: a form for a query, and its answer as a table. Nothing in it comes from elsewhere, and answers are shown as text.

use super::{answered, reading, text};
use crate::negotiate;
use axum::body::Body;
use http::header::{CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, VARY};
use http::{HeaderMap, HeaderValue, Method, Response};

const PAGE: &str = include_str!("../page/page.html");
const SCRIPT: &str = include_str!("../page/page.js");
const STYLE: &str = include_str!("../page/page.css");

/// Scripts, styles and requests of this server alone; no frames around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// True for a browser's visit: HTML is asked for by its name. (`*/*` is anybody's, and gets data.)
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
    let answer = reading(&method).map(|()| text("text/javascript; charset=utf-8", SCRIPT));
    answered(answer, &headers)
}

pub(super) async fn style(method: Method, headers: HeaderMap) -> Response<Body> {
    let answer = reading(&method).map(|()| text("text/css; charset=utf-8", STYLE));
    answered(answer, &headers)
}
