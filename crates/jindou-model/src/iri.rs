//! Resolution of IRI references against a base IRI, by RFC 3986, section 5.2, applied to IRIs (RFC 3987).
//!
//! `oxiri` parses and checks IRIs, but its `resolve` must not be used: it does not remove dot segments from a base's
//! path or after an authority.

use oxiri::{Iri, IriParseError, IriRef};
use std::ops::Deref;

/// Reason why a reference cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The reference is not a valid IRI reference.
    #[error(transparent)]
    Reference(#[from] IriParseError),
    /// The path begins with `//` and there is no authority, so the path would be read as an authority.
    #[error("the path would begin with //, which only follows an authority")]
    TwoSlashes,
}

/// Resolves a reference. An absolute IRI is returned unchanged, including its dot segments.
///
/// # Errors
/// An invalid reference, or a resulting IRI that would be ambiguous.
pub fn resolve<B: Deref<Target = str>>(
    base: &Iri<B>,
    reference: &str,
) -> Result<String, ResolveError> {
    let mut made = String::new();
    resolve_into(base, reference, &mut made)?;
    Ok(made)
}

/// Appends the IRI that a reference resolves to. If there is an error, `out` is unchanged.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_into<B: Deref<Target = str>>(
    base: &Iri<B>,
    reference: &str,
    out: &mut String,
) -> Result<(), ResolveError> {
    let given = IriRef::parse(reference)?;
    if given.is_absolute() {
        out.push_str(reference);
        return Ok(());
    }
    let start = out.len();
    out.push_str(base.scheme());
    out.push(':');
    let authority = given.authority().or(base.authority());
    if let Some(authority) = authority {
        out.push_str("//");
        out.push_str(authority);
    }
    let (path_start, path) = (out.len(), given.path());
    let keeps_path = given.authority().is_none() && path.is_empty();
    if keeps_path {
        out.push_str(base.path());
    } else if given.authority().is_some() || path.starts_with('/') {
        push_path("", path, out);
    } else {
        let before = match base.path().rfind('/') {
            Some(slash) => &base.path()[..=slash],
            None if authority.is_some() => "/",
            None => "",
        };
        push_path(before, path, out);
    }
    if authority.is_none() && out[path_start..].starts_with("//") {
        out.truncate(start);
        return Err(ResolveError::TwoSlashes);
    }
    let query = given.query().or(base.query().filter(|_| keeps_path));
    for (mark, part) in [('?', query), ('#', given.fragment())] {
        if let Some(part) = part {
            out.push(mark);
            out.push_str(part);
        }
    }
    Ok(())
}

/// A path with its dot segments removed.
#[must_use]
pub fn without_dots(path: &str) -> String {
    let mut made = String::with_capacity(path.len());
    push_path("", path, &mut made);
    made
}

/// True if a path has a segment `.` or `..`.
#[must_use]
pub fn has_dots(path: &str) -> bool {
    path.split('/').any(|s| matches!(s, "." | ".."))
}

/// Appends the concatenation of two paths, with dot segments removed (RFC 3986, section 5.2.4).
fn push_path(before: &str, path: &str, out: &mut String) {
    if !has_dots(before) && !has_dots(path) {
        out.push_str(before);
        out.push_str(path);
        return;
    }
    let start = out.len();
    let whole = [before, path].concat();
    let mut rest = whole.as_str();
    // Dot segments at the start of a relative path have no segment before them to remove.
    while let Some(after) = rest.strip_prefix("../").or(rest.strip_prefix("./")) {
        rest = after;
    }
    if matches!(rest, "." | "..") {
        return;
    }
    // Handles one segment at a time, with the slash before it.
    while !rest.is_empty() {
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest[first..].find('/').map_or(rest.len(), |at| first + at);
        let (segment, after) = rest.split_at(end);
        let is_last = after.is_empty();
        match segment {
            "/." | "/.." => {
                if segment == "/.." {
                    let above = out[start..].rfind('/').unwrap_or(0);
                    out.truncate(start + above);
                }
                if is_last {
                    out.push('/');
                }
            }
            _ => out.push_str(segment),
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(base: &str, reference: &str) -> String {
        let base = Iri::parse(base).unwrap();
        resolve(&base, reference).unwrap_or_else(|e| format!("error: {e}"))
    }

    #[test]
    fn dot_segments_of_a_base() {
        for (base, reference, want) in [
            ("http://h/a/./b/", "x", "http://h/a/b/x"),
            ("http://h/a/./b/", "../y", "http://h/a/y"),
            ("http://h/a/b/../c/", "../p", "http://h/a/p"),
            ("http://h/a/b/../c/", "../../p", "http://h/p"),
            ("http://h/a/./b/", "//g/k/../m", "http://g/m"),
            ("http://h/a/./b/", "//g/..", "http://g/"),
            // A reference without a path takes the base's path unchanged, with its dot segments.
            ("http://h/a/./b/", "", "http://h/a/./b/"),
            ("http://h/a/./b/", "#f", "http://h/a/./b/#f"),
            ("http://h/a/./b/?q", "?r", "http://h/a/./b/?r"),
            // An absolute IRI is not resolved.
            ("http://h/a/", "http://h/a/../b", "http://h/a/../b"),
            ("a:", "/..", "a:/"),
            ("a:b/../c", "d", "a:/d"),
            ("urn:x:y", "é/.", "urn:é/"),
            ("mailto:x@y", "üü/../é", "mailto:/é"),
            ("http://h", "x", "http://h/x"),
            ("http://h?q", "x", "http://h/x"),
        ] {
            assert_eq!(resolved(base, reference), want, "{base} {reference}");
        }
        for (base, reference) in [("a:/b", "/..//c"), ("a:b", ".//c")] {
            let made = resolved(base, reference);
            assert!(
                made.starts_with("error: ") || !made.starts_with("a://"),
                "{made}"
            );
        }
        let base = Iri::parse("http://h/").unwrap();
        let mut out = String::from("<");
        assert!(resolve_into(&base, "a b", &mut out).is_err() && out == "<");
    }

    /// Bases, references and resolved IRIs: first the examples of RFC 3986, section 5.4 (for the abnormal ones, the
    /// results of a strict parser), then others, computed by `urijoin` of Python's `uritools` 7.0. The variable
    /// `JINDOU_REFERENCES` may name another file of this form.
    #[test]
    fn references_as_another_implementation_resolves_them() {
        let own = include_str!("../tests/data/references.tsv");
        let named = std::env::var("JINDOU_REFERENCES");
        let text = named.map_or_else(|_| own.to_owned(), |f| std::fs::read_to_string(f).unwrap());
        for line in text.lines() {
            let parts: Vec<&str> = line.split('\t').collect();
            let [base, reference, want] = parts[..] else {
                panic!("{line}")
            };
            assert_eq!(resolved(base, reference), want, "{base} {reference}");
        }
    }
}
