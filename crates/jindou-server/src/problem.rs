//! Errors as HTTP responses: `application/problem+json` (RFC 9457), or text if the client prefers that.

use crate::admission::limits::Refusal;
use crate::advice;
use crate::codings;
use crate::live::shown;
use crate::negotiate::{self, Offer, TABLES};
use crate::paths;
use axum::body::Body;
use http::header::{ACCEPT_ENCODING, ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use jindou::{DiagnosticKind, Diagnostics, Error, Resource};
use std::borrow::Cow;

/// An error as it is reported to the client.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    /// The last part of the problem's type URI, `urn:jindou:problem:KIND`.
    pub(crate) kind: &'static str,
    pub(crate) detail: String,
    /// Line and column in the query, counted from 1, if the error has a position.
    at: Option<(u32, u32)>,
    /// Errors in the text of a query or an update, with their positions.
    faults: Option<Box<Diagnostics>>,
    headers: Vec<(http::HeaderName, Cow<'static, str>)>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, kind: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            detail: detail.into(),
            at: None,
            faults: None,
            headers: Vec::new(),
        }
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", detail)
    }

    pub(crate) fn method(allowed: &'static str) -> Self {
        let mut p = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method",
            format!("this resource accepts {allowed}"),
        );
        p.headers.push((ALLOW, allowed.into()));
        p
    }

    pub(crate) fn media_type(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", detail)
    }

    /// Response to a content coding that is not supported; it lists the supported ones (RFC 9110, section 15.5.16).
    pub(crate) fn content_coding(detail: impl Into<String>) -> Self {
        let mut p = Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "content-encoding",
            detail,
        );
        p.headers.push((ACCEPT_ENCODING, codings::READ.into()));
        p
    }

    pub(crate) fn not_acceptable<T>(offers: &[(&'static str, T)]) -> Self {
        Self::new(
            StatusCode::NOT_ACCEPTABLE,
            "not-acceptable",
            format!("only {} is available", negotiate::names(offers)),
        )
    }

    /// Response to a client that accepts none of the formats for this kind of answer.
    pub(crate) fn no_format(offers: &'static [Offer]) -> Self {
        let what = if offers == TABLES {
            "SELECT returns rows and ASK true or false"
        } else {
            "CONSTRUCT and DESCRIBE return a graph"
        };
        let mut p = Self::not_acceptable(offers);
        p.detail = format!("{what}: {}", p.detail);
        p
    }

    pub(crate) fn unauthorized(detail: &str) -> Self {
        let mut p = Self::new(StatusCode::UNAUTHORIZED, "token", detail);
        // A Basic challenge as well, since some clients send no credentials without it.
        for scheme in ["Bearer", "Basic realm=\"jindou\", charset=\"UTF-8\""] {
            p.headers.push((WWW_AUTHENTICATE, scheme.into()));
        }
        p
    }

    pub(crate) fn busy(detail: impl Into<String>) -> Self {
        let mut p = Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail);
        p.headers.push((RETRY_AFTER, "1".into()));
        p
    }

    /// The same problem with the header Retry-After, in whole seconds.
    pub(crate) fn retried_after(mut self, seconds: u32) -> Self {
        self.headers
            .push((RETRY_AFTER, Cow::Owned(seconds.to_string())));
        self
    }

    /// Response to a query that admission refused, with the time after which the client may retry.
    pub(crate) fn refused(refused: &Refusal) -> Self {
        let seconds = refused.retry_after.as_secs_f64().ceil().clamp(1.0, 3600.0) as u32;
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", refused.to_string())
            .retried_after(seconds)
    }

    /// Response to an error that occurred before the answer began.
    pub(crate) fn from_error(error: &Error) -> Self {
        let mut detail = paths::told(error);
        if let Some(advice) = advice::for_clients(error) {
            // A message with an excerpt of a document has several lines, so the advice gets a line of its own.
            let between = if detail.contains('\n') {
                "\nhelp: "
            } else {
                "; "
            };
            detail = Cow::Owned(format!("{detail}{between}{advice}"));
        }
        let (status, kind) = match error {
            Error::Query(_) | Error::Sparql(_) | Error::Syntax { .. } => {
                (StatusCode::BAD_REQUEST, "syntax")
            }
            Error::Busy(_) => return Self::busy(detail),
            // A server of the cluster is unreachable, and may come back.
            Error::Shard { .. } => {
                let mut p = Self::new(StatusCode::SERVICE_UNAVAILABLE, "shard", detail);
                p.headers.push((RETRY_AFTER, "1".into()));
                return p;
            }
            // Another server, or this one a little later, may be fresh enough.
            Error::Stale(_) => {
                let mut p = Self::new(StatusCode::SERVICE_UNAVAILABLE, "stale", detail);
                p.headers.push((RETRY_AFTER, "1".into()));
                return p;
            }
            Error::OutcomeUnknown(_) => (StatusCode::SERVICE_UNAVAILABLE, "outcome-unknown"),
            // The query's form exceeds a limit, so only another text helps, whatever the memory.
            Error::Limit(limit) if limit.resource == Resource::Form => {
                (StatusCode::BAD_REQUEST, "query-limit")
            }
            Error::Limit(limit) if limit.resource == Resource::Threads => {
                return Self::busy(detail);
            }
            Error::Limit(_) => (StatusCode::INSUFFICIENT_STORAGE, "limit"),
            Error::Timeout(_) => (StatusCode::SERVICE_UNAVAILABLE, "timeout"),
            Error::Cancelled => (StatusCode::SERVICE_UNAVAILABLE, "cancelled"),
            Error::Unsupported(_) | Error::Gpu(_) | Error::UnknownFormat { .. } => {
                (StatusCode::NOT_IMPLEMENTED, "unsupported")
            }
            Error::Service { .. } => (StatusCode::BAD_GATEWAY, "service"),
            Error::Document { .. } => (StatusCode::BAD_GATEWAY, "document"),
            Error::Conflict(_) => (StatusCode::CONFLICT, "conflict"),
            Error::Precondition(_) => (StatusCode::PRECONDITION_FAILED, "precondition"),
            Error::KeyReused(_) => (StatusCode::UNPROCESSABLE_ENTITY, "key-reused"),
            // The disk is full or unavailable, or another process has opened the store for writing. Only updates have
            // this error, and a retry may succeed.
            Error::Io { source, .. } if is_disk(source.kind()) => {
                (StatusCode::INSUFFICIENT_STORAGE, "disk")
            }
            // A failing disk, or missing or damaged files of the store: a retry is useless until the administrator has
            // repaired them.
            Error::Io { .. } | Error::NoStore { .. } | Error::StoreExists { .. } => {
                (StatusCode::INTERNAL_SERVER_ERROR, "disk")
            }
            // A store that refuses updates since it might lose them, which the administrator must repair as well.
            // Updates of a server that is read-only by its options are refused earlier.
            Error::ReadOnly(_) => (StatusCode::INTERNAL_SERVER_ERROR, "disk"),
            e if e.is_of_store() => (StatusCode::INTERNAL_SERVER_ERROR, "disk"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        };
        if status.is_server_error() && !matches!(kind, "timeout" | "cancelled" | "outcome-unknown")
        {
            let (whole, told) = (error.to_string(), &*detail);
            if !told.starts_with(&whole) {
                // The whole message, with paths that the client must not see, goes to the log.
                tracing::warn!(reason = &*shown(&whole), told, "an error's whole text");
            }
        }
        let mut p = Self::new(status, kind, detail);
        if let Error::Sparql(faults) = error {
            let faults = addressed(faults);
            p.detail = format!("{}\n{faults}", faults.headline());
            p.faults = Some(Box::new(faults));
        } else if status == StatusCode::BAD_REQUEST {
            p.at = match error {
                Error::Syntax { at, .. } => {
                    let number = |n: u64| u32::try_from(n).ok().filter(|n| *n > 0);
                    let place = number(at.line).zip(number(at.column));
                    place.or_else(|| position(&p.detail))
                }
                _ => position(&p.detail),
            };
        }
        p
    }

    /// The problem as a JSON document (RFC 9457).
    pub(crate) fn document(&self) -> serde_json::Value {
        let mut document = serde_json::json!({
            "type": format!("urn:jindou:problem:{}", self.kind),
            "title": self.status.canonical_reason().unwrap_or("error"),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        if let Some(faults) = &self.faults {
            let all = serde_json::to_value(&**faults).unwrap_or_default();
            // The members of the first error are also in the document itself, for clients that read only those.
            if let Some(first) = all[0].as_object() {
                for (name, value) in first.iter().filter(|(name, _)| *name != "message") {
                    document[name] = value.clone();
                }
            }
            document["faults"] = all;
        }
        if let Some((line, column)) = self.at {
            document["line"] = line.into();
            document["column"] = column.into();
        }
        document
    }

    /// The response, as JSON or text, whichever the client prefers.
    pub(crate) fn response(self, headers: &HeaderMap) -> Response<Body> {
        let (media, json) = negotiate::accept(headers, &negotiate::PROBLEMS)
            .unwrap_or(("application/problem+json", true));
        let body = if json {
            self.document().to_string() + "\n"
        } else {
            self.detail + "\n"
        };
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        let all = response.headers_mut();
        all.insert(CONTENT_TYPE, HeaderValue::from_static(media));
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                all.append(name, value);
            }
        }
        response
    }
}

/// The errors; if a query was sent as an update or the reverse, with the route to use instead.
fn addressed(faults: &Diagnostics) -> Diagnostics {
    let mut faults = faults.clone();
    for fault in faults.all_mut() {
        match fault.kind {
            DiagnosticKind::UpdateNotQuery => {
                fault.message = "this is an update: send it to /update".into();
            }
            DiagnosticKind::QueryNotUpdate => {
                fault.message = "this is a query: send it to /query".into();
            }
            _ => {}
        }
    }
    faults
}

/// True for errors of a disk that may pass, such as a full disk.
fn is_disk(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind as K;
    matches!(
        kind,
        K::StorageFull
            | K::QuotaExceeded
            | K::ReadOnlyFilesystem
            | K::PermissionDenied
            | K::FileTooLarge
    )
}

/// The line and column in a message of the query parser (`error at 1:5: …`) or of its guard (`line 1, column 5: …`).
fn position(message: &str) -> Option<(u32, u32)> {
    let number = |s: &str| -> Option<(u32, usize)> {
        let digits = s.bytes().take_while(u8::is_ascii_digit).count();
        Some((s[..digits].parse().ok()?, digits))
    };
    let pair = |lead: &str, between: &str| {
        let rest = &message[message.find(lead)? + lead.len()..];
        let (line, n) = number(rest)?;
        let (column, _) = number(rest[n..].strip_prefix(between)?)?;
        Some((line, column))
    };
    pair("error at ", ":").or_else(|| pair("line ", ", column "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_the_disk_are_named_so() {
        let eio = std::io::Error::from_raw_os_error(5);
        for (error, status) in [
            (Error::io("0001.log", eio), 500),
            (
                Error::io("0001.log", std::io::ErrorKind::NotFound.into()),
                500,
            ),
            (
                Error::io("0001.log", std::io::ErrorKind::StorageFull.into()),
                507,
            ),
            (
                Error::damaged("/srv/log/0001.log", "the log file was removed"),
                500,
            ),
        ] {
            let p = Problem::from_error(&error);
            assert_eq!((p.status.as_u16(), p.kind), (status, "disk"), "{error}");
            assert!(p.detail.contains("0001.log"), "{}", p.detail);
        }
        let p = Problem::from_error(&Error::Internal("a bug".into()));
        assert_eq!((p.status.as_u16(), p.kind), (500, "internal"));
    }

    #[test]
    fn limits_are_told_apart_by_what_would_help() {
        use jindou::{Holder, MemoryBudget};

        let all = MemoryBudget::new(10 << 20);
        let (one, other) = (all.part(8 << 20), all.part(8 << 20));
        other.charge(7 << 20).unwrap();
        // It would fit without the other query's memory, so the client may retry.
        let p = Problem::from_error(&one.charge(6 << 20).unwrap_err());
        assert_eq!((p.status.as_u16(), p.kind), (503, "busy"));
        assert!(p.headers.iter().any(|(name, _)| *name == RETRY_AFTER));
        assert!(p.detail.contains("together"), "{}", p.detail);
        // It would not fit even if no other query were running.
        let p = Problem::from_error(&one.charge_for(Holder::Text, 9 << 20).unwrap_err());
        assert_eq!((p.status.as_u16(), p.kind), (507, "limit"));
        assert!(p.detail.ends_with("; narrow the query"), "{}", p.detail);
        let nested = "ASK ".to_owned() + &"{".repeat(5000);
        let p = Problem::from_error(&jindou::parse_query(&nested).unwrap_err());
        assert_eq!((p.status.as_u16(), p.kind), (400, "query-limit"));
        let p = Problem::from_error(&Error::limit(Resource::Threads, "no thread"));
        assert_eq!((p.status.as_u16(), p.kind), (503, "busy"));
    }

    #[test]
    fn positions_are_found_in_messages_of_the_parser_itself() {
        for query in [
            "SELECT * {\n ?s ?p }",
            &*("ASK ".to_owned() + &"{".repeat(5000)),
        ] {
            let message = jindou::parse_query(query).unwrap_err().to_string();
            let (line, column) = position(&message).unwrap_or_else(|| panic!("{message}"));
            let written = [
                format!("{line}:{column}"),
                format!("line {line}, column {column}"),
            ];
            assert!(written.iter().any(|w| message.contains(w)), "{message}");
            assert_eq!(line, query.lines().count() as u32, "{message}");
        }
        assert_eq!(position("no position here"), None);
    }
}
