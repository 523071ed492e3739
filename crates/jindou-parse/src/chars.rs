//! Character classes of N-Triples and N-Quads: tables, and fast checks that accept a subset of what the full checks
//! accept.

use jindou_model::prefixes::{is_name_char, is_name_start};

/// Allowed anywhere in an IRI after its scheme: unreserved characters and sub-delimiters (RFC 3986).
const IRI_ANYWHERE: u8 = 1;
/// Allowed in an IRI's path, query and fragment: the above, `:`, `@`, `/`, `?`.
const IRI_TAIL: u8 = 2;
/// Allowed in a scheme, except as the first character.
const SCHEME: u8 = 4;
/// ASCII characters of a blank node label, including the dot.
const LABEL: u8 = 8;
/// Ends a stretch of literal text: quote, backslash, line end.
const STRING_STOP: u8 = 16;

static CLASS: [u8; 256] = {
    let mut t = [0u8; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        let alnum = b.is_ascii_alphanumeric();
        if alnum
            || matches!(
                b,
                b'!' | b'$'
                    | b'&'
                    | b'\''
                    | b'('
                    | b')'
                    | b'*'
                    | b'+'
                    | b','
                    | b'-'
                    | b'.'
                    | b';'
                    | b'='
                    | b'_'
                    | b'~'
            )
        {
            t[i] |= IRI_ANYWHERE | IRI_TAIL;
        }
        if matches!(b, b':' | b'@' | b'/' | b'?') {
            t[i] |= IRI_TAIL;
        }
        if alnum || matches!(b, b'+' | b'-' | b'.') {
            t[i] |= SCHEME;
        }
        if alnum || matches!(b, b'_' | b'-' | b'.') {
            t[i] |= LABEL;
        }
        if matches!(b, b'"' | b'\\' | b'\n' | b'\r') {
            t[i] |= STRING_STOP;
        }
        i += 1;
    }
    t
};

/// Length of the longest prefix whose bytes are all in `class`.
#[inline(always)]
fn run(bytes: &[u8], class: u8) -> usize {
    bytes
        .iter()
        .position(|&b| CLASS[b as usize] & class == 0)
        .unwrap_or(bytes.len())
}

/// Length of the ASCII part of the blank node label at the start of `bytes`.
#[inline]
pub(crate) fn ascii_label(bytes: &[u8]) -> usize {
    run(bytes, LABEL)
}

/// Position of the first quote, backslash or line end.
#[inline]
pub(crate) fn string_stop(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .position(|&b| CLASS[b as usize] & STRING_STOP != 0)
        .unwrap_or(bytes.len())
}

/// Length of the IRI at the start of `bytes`, if `>` follows and the IRI is plain: ASCII, absolute, without escape or
/// percent sign, and with a host without port or user. Returns `None` for every other IRI, valid or not, which then
/// needs the full check.
#[inline]
pub(crate) fn plain_iri(bytes: &[u8]) -> Option<usize> {
    let i = plain_start(bytes)?;
    (bytes.get(i) == Some(&b'>')).then_some(i)
}

/// True if all of `bytes` is a plain IRI that resolution does not change: one without `.` and `..` in its path.
#[inline]
pub(crate) fn is_plain_iri(bytes: &[u8]) -> bool {
    plain_start(bytes) == Some(bytes.len())
        && !memchr::memchr_iter(b'.', bytes)
            .any(|at| at > 0 && matches!(bytes[at - 1], b'/' | b':'))
}

/// Length of the longest prefix of `bytes` that may be a plain IRI. The caller decides by the byte after it whether it
/// is a whole one.
#[inline(always)]
fn plain_start(bytes: &[u8]) -> Option<usize> {
    // Nearly all IRIs have one of these schemes, which are compared as a whole.
    let mut i = if bytes.starts_with(b"http://") {
        7
    } else if bytes.starts_with(b"https://") {
        8
    } else {
        if !bytes.first()?.is_ascii_alphabetic() {
            return None;
        }
        let scheme = run(bytes, SCHEME);
        if bytes.get(scheme) != Some(&b':') {
            return None;
        }
        if bytes[scheme + 1..].starts_with(b"//") {
            scheme + 3
        } else {
            0
        }
    };
    if i > 0 {
        i += run(&bytes[i..], IRI_ANYWHERE);
        if !matches!(bytes.get(i), None | Some(b'/' | b'?' | b'#' | b'>')) {
            return None;
        }
    }
    i += run(&bytes[i..], IRI_TAIL);
    if bytes.get(i) == Some(&b'#') {
        i += 1;
        i += run(&bytes[i..], IRI_TAIL);
    }
    Some(i)
}

/// True for language tags that need no full check: a language of two or three letters, optionally with a region of two
/// letters.
pub(crate) fn is_plain_language(tag: &[u8]) -> bool {
    match tag.len() {
        2 | 3 => tag.iter().all(u8::is_ascii_alphabetic),
        5 => {
            tag[2] == b'-'
                && tag[..2].iter().all(u8::is_ascii_alphabetic)
                && tag[3..].iter().all(u8::is_ascii_alphabetic)
        }
        _ => false,
    }
}

/// True for the first character of a blank node label (`PN_CHARS_U` or a digit).
pub(crate) fn is_label_start(c: char) -> bool {
    c.is_ascii_digit() || is_name_start(c)
}

/// True for a later character of a blank node label (`PN_CHARS` or a dot).
pub(crate) fn is_label_char(c: char) -> bool {
    c == '.' || is_name_char(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_iris_are_found() {
        let plain = "http://a.b/c?d#e urn:x:y mailto:a@b https:// file:///a/b a: x:#";
        for ok in plain.split(' ') {
            assert_eq!(
                plain_iri(format!("{ok}> ").as_bytes()),
                Some(ok.len()),
                "{ok}"
            );
        }
        let others = "http://a:80/,//a,a/b,,x:é,x:%20,http://[::1]/,x:a#b#c,x:a b";
        for slow in others.split(',') {
            assert_eq!(plain_iri(format!("{slow}>").as_bytes()), None, "{slow}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn what_the_fast_checks_accept_is_valid(
            iri in "(http://|https://|[a-z]{1,3}:/?/?)?[a-c0-9:/?#@%\\[\\]é <.]{0,12}",
        ) {
            let text = format!("{iri}>");
            if let Some(n) = plain_iri(text.as_bytes()) {
                prop_assert_eq!(n, iri.len());
                prop_assert!(oxiri::Iri::parse(iri.as_str()).is_ok());
            }
            if is_plain_iri(iri.as_bytes()) {
                let base = oxiri::Iri::parse("http://base/a/b").unwrap();
                let resolved = base.resolve(&iri).unwrap();
                prop_assert_eq!(resolved.as_str(), iri.as_str());
            }
        }

        #[test]
        fn plain_languages_are_valid(tag in "[a-zA-Z0-9-]{1,6}") {
            if is_plain_language(tag.as_bytes()) {
                prop_assert!(oxilangtag::LanguageTag::parse(tag.as_str()).is_ok());
            }
        }
    }
}
