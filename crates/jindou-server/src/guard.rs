//! Checks that every request must pass (host, token, origin), and the count of requests.

use crate::auth::{Caller, Credentials, Keyring, TokenRights, Writing};
use crate::codings;
use crate::conditions;
use crate::consistency;
use crate::problem::Problem;
use crate::routes;
use crate::run::Connection;
use crate::shared::AppState;
use axum::body::Body;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, HOST, ORIGIN, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri, Version};
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

/// Header with which browsers tell the relation between the page that caused a request and this server.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Response headers that pages of other origins may read, in addition to those that CORS always allows.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("content-encoding, etag, jindou-snapshot, location, retry-after");

/// Routes on which a server with a shared log waits until its published snapshot is fresh enough, by the names that
/// metrics use. All methods wait, so also updates sent to `/sparql` and writes to `/prefixes` and `/store`; updates
/// sent to `/update` do not.
const READING: [&str; 9] = [
    "/sparql",
    "/query",
    "/prepared",
    "/batch",
    "/complete",
    "/search",
    "/labels",
    "/prefixes",
    "/store",
];

/// Checks a request, and passes it on to `next`, or answers it with an error or to OPTIONS.
pub(crate) async fn guard<F: Future<Output = Response<Body>>>(
    shared: &Arc<AppState>,
    connection: Arc<Connection>,
    parts: Parts,
    next: impl FnOnce(Arc<Connection>, Parts) -> F,
) -> Response<Body> {
    let route = routes::name(parts.uri.path());
    let origin = match route {
        "/admin" => None,
        _ => allowed_origin(shared, &parts.headers),
    };
    let mut response = match check(shared, connection, &parts) {
        Ok(Checked::Options(methods)) => preflight(methods, origin.is_some()),
        Ok(Checked::Passed(by))
            if shared.upkeep.replica().is_some() && READING.contains(&route) =>
        {
            // Boxed, since most servers have no shared log, and the space for this would be copied for each request.
            let ready = Box::pin(consistency::wait(shared, &by, &parts)).await;
            match ready {
                Ok(()) => {
                    let mut response = next(by, parts).await;
                    consistency::number(shared, &mut response);
                    response
                }
                Err(problem) => problem.response(&parts.headers),
            }
        }
        Ok(Checked::Passed(by)) => next(by, parts).await,
        Err(problem) => problem.response(&parts.headers),
    };
    if let Some(origin) = origin {
        let all = response.headers_mut();
        all.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        all.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        all.append(VARY, HeaderValue::from_static("origin"));
    }
    // Keeps browsers from guessing another content type, such as that of a page or a script.
    let all = response.headers_mut();
    all.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    shared.metrics.answered(route, response.status());
    response
}

/// A request without errors.
enum Checked {
    /// A request for the methods that its path supports.
    Options(&'static str),
    /// A request that may reach its route: its connection, with the caller that the request's token identifies.
    Passed(Arc<Connection>),
}

/// Checks a request's head.
fn check(
    shared: &AppState,
    connection: Arc<Connection>,
    parts: &Parts,
) -> Result<Checked, Problem> {
    sized(parts)?;
    let host = hosted(parts)?;
    if parts.method == Method::OPTIONS {
        let methods = routes::methods(parts.uri.path());
        return Ok(match methods {
            Some(methods) => Checked::Options(methods),
            None => Checked::Passed(connection),
        });
    }
    let by = permitted(shared, connection, parts, host.as_deref())?;
    codings::from_headers(&parts.headers)?;
    Ok(Checked::Passed(by))
}

/// Checks that an HTTP/1.1 request names its host exactly once, with a valid host (RFC 9112, section 3.2). Returns the
/// host in the header, without the port; `None` for a client of HTTP/1.0 that sends no such header.
fn hosted(request: &Parts) -> Result<Option<Cow<'_, str>>, Problem> {
    let mut lines = request.headers.get_all(HOST).iter();
    let wrong = match (lines.next(), lines.next()) {
        (None, _) if request.version < Version::HTTP_11 => return Ok(None),
        (None, _) => "the request has no Host header",
        (Some(_), Some(_)) => "the request has two Host headers",
        (Some(host), None) => match host.to_str().ok().and_then(host_in) {
            Some(host) => return Ok(Some(host)),
            None => "the request's Host header is not a host name",
        },
    };
    Err(Problem::bad_request(wrong))
}

/// The host in a Host header, without the port; `None` if the header is not valid.
fn host_in(header: &str) -> Option<Cow<'_, str>> {
    // Most headers are a name or an IPv4 address with a port, which need no parser.
    let (name, port) = header.split_once(':').unwrap_or((header, "80"));
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-');
    let has_port = port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok();
    if !name.is_empty() && name.bytes().all(is_plain) && has_port {
        return Some(name.into());
    }
    let authority = header.parse::<Authority>();
    let authority = authority.ok().filter(|_| !header.contains('@'))?;
    Some(authority.host().to_owned().into())
}

/// Checks the size of the request's head: one that arrives in a single piece may exceed the parser's buffer limit.
fn sized(request: &Parts) -> Result<(), Problem> {
    let uri = &request.uri;
    let address = uri.scheme_str().map_or(0, |s| s.len() + "://".len())
        + uri.authority().map_or(0, |a| a.as_str().len())
        + uri.path().len()
        + uri.query().map_or(0, |q| q.len() + 1);
    let lines = request.headers.iter();
    let head = lines.fold(address, |head, (name, value)| {
        head + name.as_str().len() + value.len() + ": \r\n".len()
    });
    if head <= crate::listen::MAX_HEAD {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "request-head",
        format!(
            "the request's head has {head} bytes, more than the {} allowed: send the query in the body",
            crate::listen::MAX_HEAD
        ),
    ))
}

/// The response to OPTIONS: the allowed methods, and, if the page may send the request, the CORS headers.
fn preflight(methods: &'static str, allowed: bool) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let all = response.headers_mut();
    all.insert(ALLOW, HeaderValue::from_static(methods));
    if allowed {
        all.insert(
            ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static(methods),
        );
        all.insert(
            ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static(
                "accept, authorization, content-encoding, content-type, idempotency-key, if-match, if-none-match, jindou-consistency, x-jindou-profile",
            ),
        );
        all.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    }
    response
}

/// Value of `Access-Control-Allow-Origin` in the response; `None` if the page must not read the response.
fn allowed_origin(shared: &AppState, headers: &HeaderMap) -> Option<HeaderValue> {
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

/// True if the request names this machine by an address or by `localhost`. A foreign page can make a domain of its own
/// resolve to this machine (DNS rebinding), and a server without tokens must not answer such requests.
fn is_for_loopback(request: &Parts, named: Option<&str>) -> bool {
    // A client without a Host header (HTTP/1.0) is not a browser.
    let host = request.uri.host().or(named);
    host.is_none_or(|h| is_loopback(h) || h.parse::<IpAddr>().is_ok())
}

/// True if a browser sent the request on behalf of a page whose origin is not this server.
fn is_foreign(headers: &HeaderMap) -> bool {
    let text = |name: http::HeaderName| headers.get(name).and_then(|v| v.to_str().ok());
    if !headers.contains_key(ORIGIN) {
        // Browsers that send no Origin send this header instead.
        return text(SEC_FETCH_SITE).is_some_and(|site| site == "cross-site");
    }
    let authority = text(ORIGIN).and_then(|o| Some(o.split_once("://")?.1));
    authority.is_none() || authority != text(HOST)
}

/// Identifies the caller, and returns the connection with it, or an error if the caller may not do this.
fn permitted(
    shared: &AppState,
    mut connection: Arc<Connection>,
    request: &Parts,
    host: Option<&str>,
) -> Result<Arc<Connection>, Problem> {
    let path = request.uri.path();
    if matches!(path, "/health" | "/ready") {
        return Ok(connection);
    }
    let admin = path.starts_with("/admin/");
    let safe = matches!(request.method, Method::GET | Method::HEAD);
    // `/sparql` takes both queries and updates, and checks the right to write itself.
    let changed = ["/store", "/prefixes/"].iter().any(|p| path.starts_with(p));
    let writes = path == "/update" || !safe && (changed || admin);
    let has_tags = path == "/update" || path.starts_with("/store");
    let mut caller = match &shared.tokens {
        Some(tokens) => bearer(shared, tokens, &connection, request)?,
        None => local(shared, request, host)?,
    };
    if admin && !safe && is_foreign(&request.headers) && caller.writing == Writing::Allowed {
        caller.writing = Writing::Stranger;
    }
    if caller != connection.caller {
        connection = Arc::new(connection.by(caller));
    }
    if writes && let Err(problem) = caller.may_write() {
        refused(shared, &connection, "forbidden", request, &problem.detail);
        return Err(problem);
    }
    if writes && !has_tags {
        conditions::refuse(&request.headers)?;
    }
    Ok(connection)
}

/// Refuses a request that turned out to be an update, if its caller may not write.
pub(crate) fn may_write(
    shared: &AppState,
    connection: &Connection,
    request: &Parts,
) -> Result<(), Problem> {
    connection.caller.may_write().inspect_err(|problem| {
        refused(shared, connection, "forbidden", request, &problem.detail);
    })
}

/// The caller on a server without tokens: programs on this machine may do everything, pages of other origins may only
/// read.
fn local(shared: &AppState, request: &Parts, host: Option<&str>) -> Result<Caller, Problem> {
    if !is_for_loopback(request, host) {
        return Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "host",
            "a server without --token-file answers only to names of this machine (localhost, 127.0.0.1)",
        ));
    }
    // A foreign page may make a browser on this machine submit a form. The page cannot read the answer, but the update
    // would take effect.
    let headers = &request.headers;
    let near = || {
        let origin = headers.get(ORIGIN).and_then(|o| o.to_str().ok());
        let host = origin.and_then(|o| o.parse::<Uri>().ok());
        let host = host.as_ref().and_then(Uri::host);
        host.is_some_and(is_loopback) && allowed_origin(shared, headers).is_some()
    };
    let mut caller = Caller::ANYBODY;
    if is_foreign(headers) && !near() {
        caller.writing = Writing::Stranger;
    }
    Ok(caller)
}

/// The caller on a server with tokens, with the rights of the request's token.
fn bearer(
    shared: &AppState,
    tokens: &Keyring,
    connection: &Connection,
    request: &Parts,
) -> Result<Caller, Problem> {
    let headers = &request.headers;
    let refuse = |reason: &str, sentence: &'static str| {
        refused(shared, connection, reason, request, sentence);
        Err(Problem::unauthorized(sentence))
    };
    let credentials = match Credentials::from_headers(headers) {
        Ok(Some(credentials)) => credentials,
        Ok(None) => {
            return refuse(
                "missing",
                "this server requires a token: send 'Authorization: Bearer TOKEN', or Basic with the token as password",
            );
        }
        Err(sentence) => return refuse("malformed", sentence),
    };
    let Some(access) = tokens.access(&credentials.token) else {
        return refuse("unknown", "unknown token");
    };
    // A foreign page cannot make a browser send a Bearer token, but browsers send remembered Basic credentials
    // automatically.
    let listed = || {
        let origin = headers.get(ORIGIN).and_then(|o| o.to_str().ok());
        origin.is_some_and(|o| shared.options.cors_origins.iter().any(|listed| listed == o))
    };
    let writing = match access {
        TokenRights::Read => Writing::ReadToken,
        TokenRights::Write if credentials.ambient && is_foreign(headers) && !listed() => {
            Writing::Stranger
        }
        TokenRights::Write => Writing::Allowed,
    };
    Ok(Caller {
        owner: Some(tokens.name(&credentials.token)),
        principal: Keyring::principal(&credentials.token),
        writing,
    })
}

/// Counts and logs a refused request, without its token.
fn refused(
    shared: &AppState,
    connection: &Connection,
    reason: &str,
    request: &Parts,
    sentence: &str,
) {
    let counter = &shared.metrics.refused_attempts;
    counter.with_label_values(&[reason]).inc();
    let client = &*connection.peer;
    let (method, path) = (request.method.as_str(), shown(request.uri.path()));
    if reason == "missing" {
        // Not a warning, since browsers and most libraries first try without credentials.
        tracing::info!(client, reason, method, path, "{sentence}");
    } else {
        tracing::warn!(client, reason, method, path, "{sentence}");
    }
}

/// The beginning of a path, as logs show it.
fn shown(path: &str) -> &str {
    path.get(..path.len().min(200)).unwrap_or("")
}
