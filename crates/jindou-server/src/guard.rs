//! What every request passes: tokens, CORS, counting.

use crate::auth::Access;
use crate::problem::Problem;
use crate::shared::Shared;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, AUTHORIZATION, HOST, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use std::net::IpAddr;
use std::sync::Arc;

/// See the module.
pub(crate) async fn guard(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let route = match request.uri().path() {
        path @ ("/query" | "/prepared" | "/batch" | "/update" | "/store" | "/health"
        | "/metrics" | "/") => path.to_owned(),
        path if path.starts_with("/prepared/") => "/prepared".into(),
        path if path.starts_with("/store/") => "/store".into(),
        path if path.starts_with("/admin/") => "/admin".into(),
        _ => "other".into(),
    };
    let admin = route == "/admin";
    let origin = (!admin)
        .then(|| allowed_origin(&shared, request.headers()))
        .flatten();
    let headers = request.headers().clone();
    let mut response = if request.method() == Method::OPTIONS {
        preflight(origin.is_some())
    } else {
        match sized(&request).and_then(|()| permitted(&shared, &request)) {
            Ok(()) => next.run(request).await,
            Err(problem) => problem.response(&headers),
        }
    };
    if let Some(origin) = origin {
        let all = response.headers_mut();
        all.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        all.append(VARY, HeaderValue::from_static("origin"));
    }
    shared
        .metrics
        .requests
        .with_label_values(&[route.as_str(), response.status().as_str()])
        .inc();
    response
}

/// A head that came in one piece may be larger than the buffer that the parser was promised.
fn sized(request: &Request) -> Result<(), Problem> {
    let head: usize = request.uri().to_string().len()
        + request
            .headers()
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + 4)
            .sum::<usize>();
    if head <= crate::listen::MAX_HEAD {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "request-head",
        format!(
            "the request's head has {head} bytes; at most {} are taken: send the query in the body",
            crate::listen::MAX_HEAD
        ),
    ))
}

fn preflight(allowed: bool) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    if allowed {
        let all = response.headers_mut();
        all.insert(
            ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static("GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS"),
        );
        all.insert(
            ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static("accept, authorization, content-type"),
        );
        all.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    }
    response
}

/// What to answer in `Access-Control-Allow-Origin`; `None`: the page may not read the answer.
fn allowed_origin(shared: &Shared, headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(ORIGIN)?;
    let listed = &shared.options.cors_origins;
    let any = listed.iter().any(|o| o == "*") || (listed.is_empty() && shared.tokens.is_some());
    if any {
        return Some(HeaderValue::from_static("*"));
    }
    let text = origin.to_str().ok()?;
    let allowed = if listed.is_empty() {
        text.parse::<Uri>()
            .is_ok_and(|u| u.host().is_some_and(is_loopback))
    } else {
        listed.iter().any(|o| o == text)
    };
    allowed.then(|| origin.clone())
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// True if the request was meant for this machine by a name that only this machine answers to. A page elsewhere can
/// make a name of its own point here (DNS rebinding), and a server that knows no tokens must not answer to that.
fn is_for_loopback(request: &Request) -> bool {
    let named = request.headers().get(HOST).and_then(|h| h.to_str().ok());
    let host = match (request.uri().host(), named) {
        (Some(host), _) => Some(host.to_owned()),
        (None, Some(named)) => named
            .parse::<http::uri::Authority>()
            .ok()
            .map(|a| a.host().to_owned()),
        // HTTP/1.0 without a host: no browser.
        (None, None) => return true,
    };
    host.is_some_and(|h| is_loopback(&h) || h.parse::<IpAddr>().is_ok())
}

fn permitted(shared: &Shared, request: &Request) -> Result<(), Problem> {
    let path = request.uri().path();
    if path == "/health" {
        return Ok(());
    }
    let writes = path == "/update"
        || !matches!(*request.method(), Method::GET | Method::HEAD)
            && (path.starts_with("/store") || path.starts_with("/admin/"));
    let Some(tokens) = &shared.tokens else {
        if !is_for_loopback(request) {
            return Err(Problem::new(
                StatusCode::MISDIRECTED_REQUEST,
                "host",
                "a server without --token-file answers only to names of this machine (localhost, 127.0.0.1)",
            ));
        }
        // A page elsewhere may make this machine's browser send a form, and what it cannot read it can still do.
        let stranger = || {
            let headers = request.headers();
            headers.contains_key(ORIGIN) && allowed_origin(shared, headers).is_none()
        };
        if writes && stranger() {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                "origin",
                "pages of this origin may not write here; --cors-origin names those that may",
            ));
        }
        return Ok(());
    };
    let Some(header) = request.headers().get(AUTHORIZATION) else {
        return Err(Problem::unauthorized(
            "this server wants a token: send 'Authorization: Bearer TOKEN'",
        ));
    };
    let bytes = header.as_bytes();
    let token = match bytes.split_at_checked(7) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => token.trim_ascii(),
        _ => {
            return Err(Problem::unauthorized(
                "only 'Authorization: Bearer TOKEN' is understood",
            ));
        }
    };
    match tokens.access(token) {
        None => Err(Problem::unauthorized("this token is not known here")),
        Some(Access::Read) if writes => Err(Problem::new(
            StatusCode::FORBIDDEN,
            "token",
            "this token may read only; a write token is needed",
        )),
        Some(_) => Ok(()),
    }
}
