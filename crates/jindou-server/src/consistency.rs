//! Demands of queries over a store with a shared log: the parameter `consistency` or the header `Jindou-Consistency`, and
//! the header `Jindou-Snapshot` of answers.

use crate::admission::{self, AdmissionRequest};
use crate::live::{CancelCause, QueryState};
use crate::problem::Problem;
use crate::run::Connection;
use crate::shared::AppState;
use axum::body::Body;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, Uri};
use jindou::Database;
use jindou::replica::Consistency;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;

/// Header of a request, with the value of the parameter of the same name.
const CONSISTENCY: HeaderName = HeaderName::from_static("jindou-consistency");
/// Header of an answer: the number of the snapshot that it was read from, or that shows the update.
pub(crate) const SNAPSHOT: HeaderName = HeaderName::from_static("jindou-snapshot");
/// Header of an update with its idempotency key: the update is executed once however often it is sent.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Most characters of such a name.
const LONGEST_KEY: usize = 255;

/// Waits until the published snapshot satisfies a request with this address and these headers. Does nothing for a store
/// without a shared log. A request that waits is listed at `/admin/queries`, where it can be cancelled.
pub(crate) async fn wait(
    shared: &Arc<AppState>,
    connection: &Connection,
    request: &Parts,
) -> Result<(), Problem> {
    let Some(replica) = shared.upkeep.replica() else {
        return Ok(());
    };
    let mut ready = std::pin::pin!(replica.ready_for(wanted(&request.uri, &request.headers)?));
    if let Ok(ready) = tokio::time::timeout(UNLISTED, &mut ready).await {
        return ready.map_err(|e| Problem::from_error(&e));
    }
    let text = format!("{} {}", request.method, request.uri);
    let asked = AdmissionRequest::new(&text, None);
    let admitted = admission::admit(shared, connection, &asked)?;
    let query = &admitted.query;
    query.set_state(QueryState::Behind);
    match query.until(ready).await {
        Ok(ready) => ready.map_err(|e| Problem::from_error(&e)),
        Err(e) => {
            let mut problem = Problem::from_error(&e);
            if query.cause() == Some(CancelCause::Admin) {
                problem.detail = "the query was cancelled at /admin/queries".into();
            }
            Err(problem)
        }
    }
}

/// A request that waits shorter than this is not listed; most wait for some milliseconds at most.
const UNLISTED: Duration = Duration::from_millis(50);

/// Adds the number of the published snapshot to an answer without one.
pub(crate) fn number(shared: &AppState, response: &mut Response<Body>) {
    if shared.upkeep.replica().is_some() && !response.headers().contains_key(SNAPSHOT) {
        let number = shared.upkeep.snapshot_number();
        response.headers_mut().insert(SNAPSHOT, number.into());
    }
}

/// The reason why a query would not be answered now.
pub(crate) async fn behind(shared: &AppState) -> Option<String> {
    let replica = shared.upkeep.replica()?;
    match replica.status().await {
        Some(status) => status
            .unready
            .map(|why| format!("{why}; it is at snapshot {}", status.committed)),
        None => {
            Some((replica.ended()).unwrap_or_else(|| "the server does not follow the log".into()))
        }
    }
}

fn wanted(uri: &Uri, headers: &HeaderMap) -> Result<Consistency, Problem> {
    let query = uri.query().unwrap_or_default();
    let in_url = query
        .split('&')
        .find_map(|p| p.strip_prefix("consistency="));
    let in_header = || {
        headers
            .get(CONSISTENCY)
            .map(|value| value.to_str().unwrap_or("?"))
    };
    let Some(text) = in_url.or_else(in_header) else {
        return Ok(Consistency::Default);
    };
    let number = text
        .strip_prefix("at-least=")
        .or_else(|| text.strip_prefix("at-least%3D"))
        .or_else(|| text.strip_prefix("at-least%3d"));
    match (text, number.map(str::parse)) {
        ("default", _) => Ok(Consistency::Default),
        ("strict", _) => Ok(Consistency::Strict),
        ("any", _) => Ok(Consistency::Any),
        (_, Some(Ok(number))) => Ok(Consistency::AtLeast(number)),
        _ => Err(Problem::bad_request(
            "consistency is one of default, strict, any, and at-least=N with the Jindou-Snapshot of an earlier answer",
        )),
    }
}

/// The key by which repetitions of an update are recognised, and what it is valid for.
#[derive(Clone, Debug)]
pub(crate) struct UpdateKey {
    /// The key as the client gave it, or as it may give it when it retries the update.
    own: String,
    /// True if the client gave it.
    given: bool,
    /// The caller, as all servers know it.
    principal: u64,
    /// Hash of the request without its body.
    head: Sha256,
}

impl UpdateKey {
    /// The key, made unique among all callers.
    pub(crate) fn of_all(&self) -> String {
        format!("{:x}/{}", self.principal, self.own)
    }

    /// True if the client has sent a key, so that it may safely retry the request.
    pub(crate) fn is_given(&self) -> bool {
        self.given
    }

    /// A fingerprint of the request with this body, the same at all servers. Never 0.
    pub(crate) fn fingerprint(&self, body: &[u8]) -> u64 {
        let hash = self.head.clone().chain_update(body).finalize();
        let first = hash.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        first.max(1)
    }

    /// A number for the graph that a request with this fingerprint creates: the same one when it comes again.
    pub(crate) fn graph_number(&self, fingerprint: u64) -> u64 {
        let hash = Sha256::new()
            .chain_update(self.of_all())
            .chain_update(fingerprint.to_le_bytes())
            .finalize();
        hash.first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
    }

    /// Advice for a client that does not hear whether its update was made.
    pub(crate) fn advice(&self) -> String {
        format!(
            "send it again with the header Idempotency-Key: {}; the server then makes it only once",
            self.own
        )
    }
}

/// Parameters in a URL that change what a request does.
const MATTERING: [&str; 8] = [
    "default",
    "graph",
    "graphs",
    "lenient",
    "query",
    "update",
    "using-graph-uri",
    "using-named-graph-uri",
];

/// The key in an update's headers, or a new one.
///
/// # Errors
/// 400 for a key that is empty or too long, and for two keys.
pub(crate) fn key(request: &Parts, principal: u64) -> Result<UpdateKey, Problem> {
    let mut lines = request.headers.get_all(KEY).iter();
    let (own, given) = match (lines.next(), lines.next()) {
        (None, _) => (format!("{:016x}", Database::document_number()), false),
        (Some(value), None) => {
            let text = value.to_str().unwrap_or_default().trim();
            // A string of structured fields has quotes.
            let quoted = text.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
            (quoted.unwrap_or(text).to_owned(), true)
        }
        _ => (String::new(), true),
    };
    if !(1..=LONGEST_KEY).contains(&own.len()) {
        return Err(Problem::bad_request(format!(
            "an Idempotency-Key has 1 to {LONGEST_KEY} characters of ASCII, and a request has one key"
        )));
    }
    Ok(UpdateKey {
        own,
        given,
        principal,
        head: head(request),
    })
}

/// Hash of a request without its body: of everything that changes what it does.
fn head(request: &Parts) -> Sha256 {
    let mut parameters: Vec<&str> = request
        .uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|p| MATTERING.contains(&p.split('=').next().unwrap_or_default()))
        .collect();
    parameters.sort_unstable();
    let mut hash = Sha256::new();
    // An update is the same one at each address that takes updates.
    let path = match request.uri.path() {
        path if path.starts_with("/store") || path.starts_with("/prefixes") => path,
        _ => "/update",
    };
    let parts = [request.method.as_str(), path];
    for part in parts.into_iter().chain(parameters) {
        hash.update(part);
        hash.update("\n");
    }
    for name in [CONTENT_TYPE, CONTENT_ENCODING, IF_MATCH, IF_NONE_MATCH] {
        for value in request.headers.get_all(&name) {
            hash.update(name.as_str());
            hash.update(value);
            hash.update("\n");
        }
    }
    hash.update("\n");
    hash
}

/// A number as the value of [`SNAPSHOT`].
pub(crate) fn value(number: u64) -> HeaderValue {
    number.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consistencies_are_read() {
        let of = |uri: &str| wanted(&uri.parse().unwrap(), &HeaderMap::new()).ok();
        assert_eq!(of("/query?query=x"), Some(Consistency::Default));
        assert_eq!(
            of("/query?query=x&consistency=strict"),
            Some(Consistency::Strict)
        );
        assert_eq!(of("/query?consistency=any&query=x"), Some(Consistency::Any));
        for text in ["at-least=17", "at-least%3D17"] {
            let uri = format!("/query?consistency={text}");
            assert_eq!(of(&uri), Some(Consistency::AtLeast(17)));
        }
        for text in [
            "",
            "most",
            "at-least=",
            "at-least=-1",
            "at-least=99999999999999999999",
        ] {
            assert_eq!(of(&format!("/query?consistency={text}")), None, "{text}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONSISTENCY, "at-least=3".parse().unwrap());
        let read = wanted(&"/query".parse().unwrap(), &headers).ok();
        assert_eq!(read, Some(Consistency::AtLeast(3)));
    }

    fn of(method: &str, target: &str, headers: &[(&'static str, &str)]) -> UpdateKey {
        let mut request = http::Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        key(&request.body(()).unwrap().into_parts().0, 0).unwrap()
    }

    #[test]
    fn names_of_updates_are_those_of_a_caller() {
        let request = |lines: &[&str]| {
            let mut request = http::Request::builder();
            for line in lines {
                request = request.header(KEY, *line);
            }
            request.body(()).unwrap().into_parts().0
        };
        let own = |lines: &[&str]| key(&request(lines), 0).ok().map(|key| key.of_all());
        assert_ne!(own(&[]), own(&[]));
        assert_eq!(own(&["one"]), own(&["one"]));
        assert_eq!(own(&["one"]), own(&["\"one\""]));
        assert_ne!(own(&["one"]), own(&["One"]));
        let other = key(&request(&["one"]), 1).unwrap().of_all();
        assert_ne!(own(&["one"]), Some(other));
        let (long, longest) = ("x".repeat(256), "x".repeat(255));
        assert!(own(&[&longest]).is_some());
        for wrong in [&[&*long][..], &[""], &["\"\""], &["a", "b"], &["a", "a"]] {
            assert_eq!(own(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn fingerprints_tell_requests_apart() {
        let turtle = ("content-type", "text/turtle");
        let put = |target: &str, more: &[(&'static str, &str)], body: &str| {
            let headers = [&[turtle][..], more].concat();
            of("PUT", target, &headers).fingerprint(body.as_bytes())
        };
        let one = put("/store?graph=urn:g", &[], "a");
        for same in [
            put("/store?graph=urn:g", &[], "a"),
            put(
                "/store?graph=urn:g&timeout=3",
                &[("accept", "text/plain")],
                "a",
            ),
            put(
                "/store?consistency=any&graph=urn:g",
                &[("host", "other")],
                "a",
            ),
        ] {
            assert_eq!(one, same);
        }
        for other in [
            put("/store?graph=urn:g", &[], "b"),
            put("/store?graph=urn:h", &[], "a"),
            put("/store?default", &[], "a"),
            put("/store?graph=urn:g&lenient=true", &[], "a"),
            put("/store/urn:g", &[], "a"),
            put("/store?graph=urn:g", &[("if-match", "*")], "a"),
            put("/store?graph=urn:g", &[("content-encoding", "gzip")], "a"),
            of("POST", "/store?graph=urn:g", &[turtle]).fingerprint(b"a"),
            of("PUT", "/store?graph=urn:g", &[]).fingerprint(b"a"),
        ] {
            assert_ne!(one, other);
        }
    }
}
