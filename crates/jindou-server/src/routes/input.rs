//! The parameters and bodies of requests.

use super::{form, parameters};
use crate::codings;
use crate::negotiate;
use crate::problem::Problem;
use crate::shared::AppState;
use axum::body::Body;
use http::header::{CONTENT_TYPE, HOST};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use http_body_util::BodyExt;
use jindou::DatasetChoice;
use jindou::parse::Format;
use oxrdf::NamedNode;
use std::time::Duration;

/// Longest tag of a query, in bytes.
const LONGEST_TAG: usize = 64;
/// Longest time for a body to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

/// Names and values of parameters, in the order of the request.
#[derive(Debug, Default)]
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// The parameters of a URL.
    ///
    /// # Errors
    /// 400 for bytes that are not UTF-8 after decoding.
    pub(super) fn of_url(uri: &Uri) -> Result<Self, Problem> {
        let mut p = Self::default();
        form::decoded(uri.query().unwrap_or_default().as_bytes(), &mut p.0)?;
        Ok(p)
    }

    /// The parameters of a request to a route without other input: those of the URL and, for POST, of a form in the
    /// body.
    ///
    /// # Errors
    /// As [`Self::of_url`]; 415 for a body that is not a form, 413 for one that is longer than `most` bytes.
    pub(super) async fn of_request(
        parts: &Parts,
        content: Body,
        most: usize,
    ) -> Result<Self, Problem> {
        let mut p = Self::of_url(&parts.uri)?;
        if parts.method != Method::POST {
            return Ok(p);
        }
        let media = media_type(&parts.headers)?;
        let sent = body(content, most).await?;
        match media.as_deref() {
            Some("application/x-www-form-urlencoded") => p.add(&sent)?,
            _ if sent.is_empty() => {}
            other => {
                return Err(Problem::media_type(format!(
                    "send parameters in the URL or as application/x-www-form-urlencoded, not as {}",
                    other.unwrap_or("a body without Content-Type")
                )));
            }
        }
        Ok(p)
    }

    /// Adds the parameters of a form.
    ///
    /// # Errors
    /// As [`Self::of_url`], and 400 for a parameter that must be in the URL, since it is read before the body.
    pub(super) fn add(&mut self, encoded: &[u8]) -> Result<(), Problem> {
        let before = self.0.len();
        form::decoded(encoded, &mut self.0)?;
        match self.0[before..].iter().any(|(k, _)| k == "consistency") {
            false => Ok(()),
            true => Err(Problem::bad_request(
                "consistency is read before the body: give it in the URL or in the header Jindou-Consistency",
            )),
        }
    }

    pub(super) fn all(&self, name: &str) -> Vec<String> {
        debug_assert!(
            parameters::is_known(name),
            "{name} is not in the table of parameters"
        );
        let found = self.0.iter().filter(|(k, _)| k == name);
        found.map(|(_, v)| v.clone()).collect()
    }

    /// The parameters whose names begin with this character, without it.
    pub(super) fn prefixed(&self, with: char) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .filter_map(move |(k, v)| Some((k.strip_prefix(with)?, v.as_str())))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(k, _)| k == name)
    }

    /// The value of a parameter; 400 if it occurs more than once.
    pub(super) fn one(&self, name: &str) -> Result<Option<String>, Problem> {
        debug_assert!(
            parameters::is_known(name),
            "{name} is not in the table of parameters"
        );
        let mut found = self.0.iter().filter(|(k, _)| k == name);
        let first = found.next().map(|(_, v)| v.clone());
        match found.count() {
            0 => Ok(first),
            more => Err(Problem::bad_request(format!(
                "the parameter '{name}' is given {} times; only once is allowed",
                1 + more
            ))),
        }
    }

    /// The dataset that a query request selects (SPARQL 1.1 Protocol, section 2.1.4).
    pub(super) fn dataset(&self) -> Option<DatasetChoice> {
        self.graphs("default-graph-uri", "named-graph-uri")
    }

    /// True for `graphs=all`, which makes the default graph the union of all graphs; false for `graphs=default`; `None`
    /// without this parameter.
    pub(super) fn union_default(&self) -> Result<Option<bool>, Problem> {
        match self.one("graphs")?.as_deref() {
            None | Some("") => Ok(None),
            Some("all") => Ok(Some(true)),
            Some("default") => Ok(Some(false)),
            Some(other) => Err(Problem::bad_request(format!(
                "graphs={other} must be default (the store's default graph) or all (the union of all graphs)"
            ))),
        }
    }

    /// The dataset that an update request selects for patterns (SPARQL 1.1 Protocol, section 2.2.3).
    pub(super) fn using(&self) -> Option<DatasetChoice> {
        self.graphs("using-graph-uri", "using-named-graph-uri")
    }

    /// The dataset that two parameters select; `None` without them. Web forms send all of their fields, so an empty
    /// value is allowed: it means the store's default graph, or no named graph.
    fn graphs(&self, default: &str, named: &str) -> Option<DatasetChoice> {
        let (default, mut named) = (self.all(default), self.all(named));
        named.retain(|iri| !iri.is_empty());
        if named.is_empty() && default.iter().all(String::is_empty) {
            return None;
        }
        Some(DatasetChoice { default, named })
    }

    /// The parameter `timeout`: seconds, or milliseconds with the suffix `ms`.
    pub(super) fn timeout(&self) -> Result<Option<Duration>, Problem> {
        let Some(text) = self.one("timeout")? else {
            return Ok(None);
        };
        let t = text.trim();
        let (number, scale) = match t.strip_suffix("ms") {
            Some(n) => (n, 1e-3),
            None => (t.strip_suffix('s').unwrap_or(t), 1.0),
        };
        let time = number.trim().parse::<f64>().ok();
        time.and_then(|n| Duration::try_from_secs_f64(n * scale).ok())
            .map(Some)
            .ok_or_else(|| {
                Problem::bad_request(format!(
                    "timeout={text} is not a time; write seconds (30, 0.5) or milliseconds (500ms)"
                ))
            })
    }

    /// The tag that the client gives its query, to find it in the list of queries.
    pub(super) fn tag(&self) -> Result<Option<String>, Problem> {
        match self.one("tag")? {
            Some(tag) if tag.len() > LONGEST_TAG => Err(Problem::bad_request(format!(
                "the parameter 'tag' is {} bytes long; at most {LONGEST_TAG} are allowed",
                tag.len()
            ))),
            tag => Ok(tag),
        }
    }

    /// The name of the requested format, which takes precedence over Accept. The parameter has several names, since
    /// clients differ; some send the same value under all of them.
    ///
    /// # Errors
    /// 406 for an unknown name.
    pub(super) fn format(&self) -> Result<Option<String>, Problem> {
        let found = parameters::FORMAT
            .iter()
            .find_map(|name| self.0.iter().find(|(k, v)| k == name && !v.is_empty()));
        match found {
            None => Ok(None),
            Some((_, value)) if negotiate::is_known(value) => Ok(Some(value.clone())),
            Some((name, value)) => Err(Problem::new(
                StatusCode::NOT_ACCEPTABLE,
                "not-acceptable",
                format!(
                    "{name}={value} is not a format; use json, xml, csv or tsv, for graphs also ttl, nt, rdf, jsonld, nq or trig, or a media type of one of them"
                ),
            )),
        }
    }

    /// A boolean parameter: true for `true`, `1` or an empty value; false for `false` or `0`, or without the parameter.
    pub(super) fn switch(&self, name: &str) -> Result<bool, Problem> {
        match self.one(name)?.as_deref() {
            None | Some("false" | "0") => Ok(false),
            Some("" | "true" | "1") => Ok(true),
            Some(other) => Err(Problem::bad_request(format!(
                "{name}={other} must be true or false"
            ))),
        }
    }
}

/// The IRI of a path on this server, with the host under which the client has addressed it.
pub(super) fn address(shared: &AppState, headers: &HeaderMap, path: &str) -> Option<NamedNode> {
    address_at(scheme(shared), headers.get(HOST)?, path)
}

fn scheme(shared: &AppState) -> &'static str {
    match shared.options.tls {
        Some(_) => "https",
        None => "http",
    }
}

fn address_at(scheme: &str, host: &HeaderValue, path: &str) -> Option<NamedNode> {
    let host = host.to_str().ok()?;
    NamedNode::new(format!("{scheme}://{host}{path}")).ok()
}

/// The address to which a query was sent. It is made an IRI only for a text that needs a base, which few do.
#[derive(Debug)]
pub(crate) struct BaseAddress {
    scheme: &'static str,
    host: Option<HeaderValue>,
    uri: Uri,
}

impl BaseAddress {
    pub(super) fn of(shared: &AppState, request: &Parts) -> Self {
        Self {
            scheme: scheme(shared),
            host: request.headers.get(HOST).cloned(),
            uri: request.uri.clone(),
        }
    }

    /// The address as an IRI; `None` if the request names no host, or the IRI would not be valid.
    pub(crate) fn iri(&self) -> Option<String> {
        let iri = address_at(self.scheme, self.host.as_ref()?, self.uri.path())?;
        Some(iri.into_string())
    }
}

/// The media type of a body in lower case, without parameters.
///
/// # Errors
/// 415 if the header declares an encoding other than UTF-8.
pub(super) fn media_type(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some((media, charset)) = media_and_charset(headers)? else {
        return Ok(None);
    };
    in_utf8(charset.as_deref())?;
    Ok(Some(media))
}

/// The media type of a body in lower case, and its declared encoding.
///
/// # Errors
/// 415 if the header is malformed.
pub(super) fn media_and_charset(
    headers: &HeaderMap,
) -> Result<Option<(String, Option<String>)>, Problem> {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    let Some(value) = lines.next() else {
        return Ok(None);
    };
    if lines.next().is_some() {
        return Err(Problem::bad_request(
            "the request has two Content-Type headers",
        ));
    }
    let Ok(value) = value.to_str() else {
        return Err(Problem::media_type("the Content-Type header is malformed"));
    };
    let media = value.split(';').next().unwrap_or_default();
    let media = media.trim().to_ascii_lowercase();
    Ok(Some((media, Format::charset(value))))
}

/// Refuses encodings other than UTF-8, for a body whose format has no other.
///
/// # Errors
/// 415 for other encodings.
pub(super) fn in_utf8(charset: Option<&str>) -> Result<(), Problem> {
    match charset {
        Some(other) if !other.eq_ignore_ascii_case("utf-8") => Err(Problem::media_type(format!(
            "the body is in {other}; only UTF-8 is supported, except for RDF/XML"
        ))),
        _ => Ok(()),
    }
}

/// Reads the whole body.
///
/// # Errors
/// 413 if it is longer than `most` bytes, 408 if it does not arrive in time, 400 if it breaks off.
pub(super) async fn body(body: Body, most: usize) -> Result<Vec<u8>, Problem> {
    match tokio::time::timeout(PATIENCE, read(body, most)).await {
        Ok(Ok(Some(body))) => Ok(body),
        Ok(Ok(None)) => Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "request-size",
            format!("the request's body is longer than the server's limit of {most} bytes"),
        )),
        Ok(Err(e)) => Err(codings::broken(&e)),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "slow-request",
            "the request's body did not arrive in time",
        )),
    }
}

/// Reads a body; `None` if it is too long. Then up to four times the limit is read and discarded, since many clients
/// send everything before they read the answer, and lose the answer if the connection is closed with unread data.
async fn read(mut body: Body, most: usize) -> Result<Option<Vec<u8>>, axum::Error> {
    let mut kept = Vec::new();
    let mut seen = 0usize;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        seen = seen.saturating_add(data.len());
        if seen <= most {
            kept.extend_from_slice(&data);
        } else if seen > most.saturating_mul(4) {
            break;
        }
    }
    Ok((seen <= most).then_some(kept))
}

/// The body as text; 400 if it is not UTF-8.
pub(super) fn utf8(body: Vec<u8>) -> Result<String, Problem> {
    String::from_utf8(body).map_err(|e| {
        Problem::bad_request(format!(
            "the body is not UTF-8 from byte {} on",
            e.utf8_error().valid_up_to()
        ))
    })
}
