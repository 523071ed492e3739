//! Entity tags of graphs, and requests with the conditions `If-Match` and `If-None-Match` (RFC 9110, sections 8.8.3 and
//! 13.1).
//!
//! ```text
//! "5b0c61f2a90d3e47"              tag of a graph's content, in answers to writes
//! "5b0c61f2a90d3e47-ttl-gzip"     tag of its representation in a format and a content coding, in answers to reads
//! ```
//!
//! In the conditions of a write, a tag of any representation stands for the content.

use crate::negotiate::Coding;
use crate::problem::Problem;
use axum::body::Body;
use http::header::{ETAG, IF_MATCH, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use jindou::{Condition, GraphName, RevisionSet};

/// Value of `Vary` in answers that depend on the negotiated format and coding.
pub(crate) const NEGOTIATED: HeaderValue =
    HeaderValue::from_static("accept, accept-encoding, origin");

/// The conditions in a request's headers.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Conditions {
    matches: Option<Tags>,
    differs: Option<Tags>,
}

/// The value of one of the two headers.
#[derive(Debug, PartialEq)]
enum Tags {
    /// `*`
    Any,
    These(Vec<Tag>),
}

#[derive(Debug, PartialEq)]
struct Tag {
    weak: bool,
    /// The tag without its quotes.
    opaque: String,
}

impl Tag {
    /// The revision of the content, and the name of the representation (empty for the content itself). `None` for tags
    /// that this program does not generate.
    fn parts(&self) -> Option<(u64, &str)> {
        let (number, rest) = self.opaque.split_at_checked(16)?;
        let plain = number
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let number = u64::from_str_radix(number, 16).ok().filter(|_| plain)?;
        match rest.strip_prefix('-') {
            None if rest.is_empty() => Some((number, "")),
            rest => Some((number, rest?)),
        }
    }
}

impl Tags {
    /// The value of a header, which may have several lines; `None` without that header.
    ///
    /// # Errors
    /// 400 for a value that is neither `*` nor a list of entity tags.
    fn from_headers(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Self>, Problem> {
        let wrong = || {
            Problem::bad_request(format!(
                "the header {name} is neither * nor a list of entity tags, which have quotes: {name}: \"5b0c61f2a90d3e47\""
            ))
        };
        if !headers.contains_key(name) {
            return Ok(None);
        }
        let mut text = Vec::new();
        for line in headers.get_all(name) {
            text.extend_from_slice(line.as_bytes().trim_ascii());
            text.push(b',');
        }
        if text.trim_ascii() == b"*," {
            return Ok(Some(Self::Any));
        }
        let mut rest = text.as_slice();
        let mut tags = Vec::new();
        loop {
            rest = rest.trim_ascii_start();
            match rest.split_first() {
                None => return Ok(Some(Self::These(tags))),
                Some((b',', after)) => {
                    rest = after;
                    continue;
                }
                _ => {}
            }
            let weak = rest.strip_prefix(b"W/");
            let opaque = weak.unwrap_or(rest).strip_prefix(b"\"").ok_or_else(wrong)?;
            let end = opaque.iter().position(|&b| b == b'"').ok_or_else(wrong)?;
            let (opaque, after) = opaque.split_at(end);
            let is_allowed = |&b: &u8| b == 0x21 || (b >= 0x23 && b != 0x7F);
            if !opaque.iter().all(is_allowed) {
                return Err(wrong());
            }
            tags.push(Tag {
                weak: weak.is_some(),
                opaque: String::from_utf8_lossy(opaque).into_owned(),
            });
            rest = after[1..].trim_ascii_start();
            rest = rest.strip_prefix(b",").ok_or_else(wrong)?;
        }
    }

    /// The revisions that the tags name, in any representation; weak tags are left out unless `weak` is true.
    fn revisions(&self, weak: bool) -> RevisionSet {
        match self {
            Self::Any => RevisionSet::Any,
            Self::These(tags) => {
                let tags = tags.iter().filter(|tag| weak || !tag.weak);
                RevisionSet::OneOf(tags.filter_map(|tag| Some(tag.parts()?.0)).collect())
            }
        }
    }
}

impl Conditions {
    /// Reads the conditions from the headers If-Match and If-None-Match.
    ///
    /// # Errors
    /// 400 for malformed headers.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Self, Problem> {
        Ok(Self {
            matches: Tags::from_headers(headers, &IF_MATCH)?,
            differs: Tags::from_headers(headers, &IF_NONE_MATCH)?,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.matches.is_none() && self.differs.is_none()
    }

    /// The condition for a write to a graph, or to the whole store (`None`). `If-Match` compares strongly,
    /// `If-None-Match` weakly (RFC 9110, section 8.8.3.2).
    pub(crate) fn on(&self, graph: Option<GraphName>) -> Condition {
        Condition::on(graph)
            .with_matches(self.matches.as_ref().map(|tags| tags.revisions(false)))
            .with_differs(self.differs.as_ref().map(|tags| tags.revisions(true)))
    }

    /// For a read that would be answered with this representation: the response 304 if the client has it already,
    /// otherwise `None`.
    ///
    /// # Errors
    /// 412 if `If-Match` requires another content.
    pub(crate) fn read(
        &self,
        read: &Representation,
        coding: Coding,
    ) -> Result<Option<Response<Body>>, Problem> {
        let now = Some(read.revision);
        if let Some(tags) = &self.matches
            && !tags.revisions(false).has(now)
        {
            return Err(Problem::new(
                StatusCode::PRECONDITION_FAILED,
                "precondition",
                "the content is not the one that If-Match names",
            ));
        }
        // Short answers are sent without a coding, so that tag counts as well.
        let own = [Coding::Identity, coding].map(|coding| read.named(coding));
        let tag = match &self.differs {
            None => None,
            Some(Tags::Any) => Some(read.tag(Coding::Identity)),
            Some(Tags::These(tags)) => {
                let has = |tag: &&Tag| {
                    tag.parts().is_some_and(|(revision, rest)| {
                        revision == read.revision
                            && (rest.is_empty() || own.iter().any(|own| own == rest))
                    })
                };
                tags.iter()
                    .find(has)
                    .and_then(|tag| HeaderValue::try_from(format!("\"{}\"", tag.opaque)).ok())
            }
        };
        Ok(tag.map(|tag| {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response.headers_mut().insert(ETAG, tag);
            response.headers_mut().insert(VARY, NEGOTIATED);
            response
        }))
    }
}

/// A graph's content, written in a format.
pub(crate) struct Representation {
    pub(crate) revision: u64,
    /// The format's usual file name extension.
    pub(crate) format: &'static str,
    /// A hash of the prefixes that the document declares; 0 if it declares none.
    pub(crate) prefixes: u32,
}

impl Representation {
    /// The part of the tag that names the representation.
    fn named(&self, coding: Coding) -> String {
        let mut name = self.format.to_owned();
        if self.prefixes > 0 {
            name += &format!(".{:x}", self.prefixes);
        }
        match coding.name() {
            Some(coding) => name + "-" + coding,
            None => name,
        }
    }

    pub(crate) fn tag(&self, coding: Coding) -> HeaderValue {
        let text = format!("\"{:016x}-{}\"", self.revision, self.named(coding));
        HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("\"\""))
    }
}

/// The tag of a content, without a representation.
pub(crate) fn content(revision: u64) -> HeaderValue {
    let text = format!("\"{revision:016x}\"");
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Refuses conditions on routes whose resources have no entity tags.
///
/// # Errors
/// 400 if the request has a condition.
pub(crate) fn refuse(headers: &HeaderMap) -> Result<(), Problem> {
    match [IF_MATCH, IF_NONE_MATCH]
        .iter()
        .find(|name| headers.contains_key(*name))
    {
        None => Ok(()),
        Some(name) => Err(Problem::bad_request(format!(
            "{name} is evaluated at /store, /update and /sparql only; nothing was done"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(lines: &[&'static str]) -> Option<Tags> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(IF_MATCH, HeaderValue::from_static(line));
        }
        Tags::from_headers(&headers, &IF_MATCH).ok().flatten()
    }

    fn these(tags: &[(bool, &str)]) -> Option<Tags> {
        let tags = tags.iter().map(|&(weak, opaque)| Tag {
            weak,
            opaque: opaque.to_owned(),
        });
        Some(Tags::These(tags.collect()))
    }

    #[test]
    fn lists_of_tags_are_read_as_rfc_9110_writes_them() {
        assert_eq!(tags(&["*"]), Some(Tags::Any));
        assert_eq!(tags(&[" * "]), Some(Tags::Any));
        assert_eq!(tags(&["\"xyzzy\""]), these(&[(false, "xyzzy")]));
        let three = || these(&[(false, "xyzzy"), (true, "r2d2"), (false, "c3,po")]);
        let list = "\"xyzzy\",W/\"r2d2\" ,, \"c3,po\"";
        assert_eq!(tags(&[list]), three());
        assert_eq!(tags(&["\"xyzzy\"", "W/\"r2d2\",\"c3,po\""]), three());
        assert_eq!(tags(&["\"\""]), these(&[(false, "")]));
        assert_eq!(tags(&[""]), these(&[]));
        assert_eq!(tags(&["*", "*"]), None);
    }

    #[test]
    fn tags_of_others_name_no_content() {
        let parts = |opaque: &str| {
            let tag = Tag {
                weak: false,
                opaque: opaque.to_owned(),
            };
            tag.parts().map(|(n, rest)| (n, rest.to_owned()))
        };
        assert_eq!(parts("000000000000001f"), Some((31, String::new())));
        assert_eq!(
            parts("000000000000001f-ttl-gzip"),
            Some((31, "ttl-gzip".into()))
        );
        for other in [
            "",
            "1f",
            "000000000000001F",
            "+00000000000001f",
            "000000000000001fx",
            "000000000000001é",
        ] {
            assert_eq!(parts(other), None, "{other}");
        }
    }
}
