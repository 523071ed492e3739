//! Demands of queries over a store with a shared log: the parameter `consistency` or the header `Jindou-Consistency`, and
//! the header `Jindou-Snapshot` of answers.

use crate::problem::Problem;
use crate::shared::AppState;
use axum::body::Body;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri};
use jindou::Database;
use jindou::replica::Consistency;

/// Header of a request, with the value of the parameter of the same name.
const CONSISTENCY: HeaderName = HeaderName::from_static("jindou-consistency");
/// Header of an answer: the number of the snapshot that it was read from, or that shows the update.
pub(crate) const SNAPSHOT: HeaderName = HeaderName::from_static("jindou-snapshot");
/// Header of an update: its name, by which it is made once however often it is sent.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Most characters of such a name.
const LONGEST_KEY: usize = 255;

/// Waits until what is published satisfies a request with this address and these headers. Does nothing for a store without
/// a shared log.
pub(crate) async fn wait(shared: &AppState, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(replica) = shared.upkeep.replica() else {
        return Ok(());
    };
    let ready = replica.ready_for(wanted(uri, headers)?).await;
    ready.map_err(|e| Problem::from_error(&e))
}

/// Adds the number of the published snapshot to an answer that has none of its own.
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

/// An update's name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct UpdateKey {
    /// As the client gave it, or may give it when it sends the update again.
    own: String,
    /// True if the client gave it.
    given: bool,
    /// The caller, as all servers know it.
    principal: u64,
}

impl UpdateKey {
    /// The name among those of all callers.
    pub(crate) fn of_all(&self) -> String {
        format!("{:x}/{}", self.principal, self.own)
    }

    /// True if the client may send the same request again as it is, and the update is made once.
    pub(crate) fn is_given(&self) -> bool {
        self.given
    }

    /// Advice for a client that does not hear whether its update was made.
    pub(crate) fn advice(&self) -> String {
        format!(
            "send it again with the header Idempotency-Key: {}, and it is made once",
            self.own
        )
    }
}

/// The name that an update's headers give it, or a new one.
pub(crate) fn key(headers: &HeaderMap, principal: u64) -> Result<UpdateKey, Problem> {
    let Some(value) = headers.get(KEY) else {
        let own = format!("{:016x}", Database::document_number());
        return Ok(UpdateKey {
            own,
            given: false,
            principal,
        });
    };
    match value.to_str() {
        Ok(key) if (1..=LONGEST_KEY).contains(&key.len()) => Ok(UpdateKey {
            own: key.to_owned(),
            given: true,
            principal,
        }),
        _ => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "bad-request",
            format!("an Idempotency-Key has 1 to {LONGEST_KEY} characters of ASCII"),
        )),
    }
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

    #[test]
    fn names_of_updates_are_those_of_a_caller() {
        let mut headers = HeaderMap::new();
        let [one, two] = [(); 2].map(|()| key(&headers, 0).unwrap());
        assert_ne!(one, two);
        headers.insert(KEY, one.own.parse().unwrap());
        assert_eq!(key(&headers, 0).unwrap().of_all(), one.of_all());
        assert_ne!(key(&headers, 1).unwrap().of_all(), one.of_all());
        headers.insert(KEY, "x".repeat(256).parse().unwrap());
        assert!(key(&headers, 0).is_err());
    }
}
