//! Query strings and forms (`application/x-www-form-urlencoded`). They must be UTF-8 after decoding (SPARQL 1.1
//! Protocol, sections 2.1.1 and 2.2.1). Other bytes are refused: replacement characters would silently be stored or
//! looked up.

use crate::problem::Problem;
use http::StatusCode;

/// Largest number of parameters in a request, since each takes memory even if its text is short.
const MOST: usize = 1 << 16;

/// The names and values of a form, not decoded yet.
fn pairs(encoded: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let all = encoded.split(|b| *b == b'&').filter(|p| !p.is_empty());
    all.map(|pair| match pair.iter().position(|b| *b == b'=') {
        Some(at) => (&pair[..at], &pair[at + 1..]),
        None => (pair, &[][..]),
    })
}

/// Decodes `%XX` to a byte, and `+` to `plus`: a space in forms, `+` in paths. A `%` without two hexadecimal digits
/// after it stays as it is, as in the URL Standard.
pub(super) fn unescaped(text: &[u8], plus: u8) -> Vec<u8> {
    let digit = |at: usize| text.get(at).and_then(|b| char::from(*b).to_digit(16));
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&b) = text.get(at) {
        at += 1;
        out.push(match b {
            b'+' => plus,
            b'%' => match (digit(at), digit(at + 1)) {
                (Some(high), Some(low)) => {
                    at += 2;
                    (high << 4 | low) as u8
                }
                _ => b,
            },
            _ => b,
        });
    }
    out
}

/// Decodes a form, and appends its parameters to `into`.
///
/// # Errors
/// 400 for bytes that are not UTF-8, and for too many parameters.
pub(super) fn decoded(encoded: &[u8], into: &mut Vec<(String, String)>) -> Result<(), Problem> {
    for (name, value) in pairs(encoded) {
        if into.len() >= MOST {
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "query-limit",
                format!("the request has more than the {MOST} parameters allowed"),
            ));
        }
        let name = String::from_utf8(unescaped(name, b' ')).map_err(|e| {
            let shown = String::from_utf8_lossy(e.as_bytes()).into_owned();
            Problem::bad_request(format!(
                "the name of the parameter '{shown}' is not UTF-8; encode requests as UTF-8 before percent-encoding them"
            ))
        })?;
        let value = String::from_utf8(unescaped(value, b' ')).map_err(|e| {
            Problem::bad_request(format!(
                "the parameter '{name}' is not UTF-8 from byte {} of its decoded value on; encode requests as UTF-8 before percent-encoding them",
                e.utf8_error().valid_up_to()
            ))
        })?;
        into.push((name, value));
    }
    Ok(())
}

/// True if a form has a parameter with this name. Decodes only names.
pub(super) fn has(encoded: &[u8], name: &str) -> bool {
    pairs(encoded).any(|(n, _)| n == name.as_bytes() || unescaped(n, b' ') == name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: &[u8]) -> Result<Vec<(String, String)>, Problem> {
        let mut all = vec![];
        decoded(form, &mut all).map(|()| all)
    }

    #[test]
    fn forms_are_read_as_the_url_standard_has_them() {
        let form = b"a=1&&b&=c&d=x%20y+z&%65=%c3%A9=&f=%zz%4&g=\xc3\xa9";
        let expected = [
            ("a", "1"),
            ("b", ""),
            ("", "c"),
            ("d", "x y z"),
            ("e", "\u{e9}="),
            ("f", "%zz%4"),
            ("g", "\u{e9}"),
        ];
        let expected = expected.map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(read(form).unwrap(), expected);
        assert!(has(form, "e") && has(form, "b") && !has(form, "x y z"));
    }

    #[test]
    fn what_is_not_utf8_is_refused_where_it_stands() {
        for (form, told) in [
            (&b"a=caf%E9"[..], "'a' is not UTF-8 from byte 3"),
            (b"a=1&b=caf\xe9", "'b' is not UTF-8 from byte 3"),
            (b"a=%C3%28", "from byte 0"),
            (b"%E9=1", "name"),
            (b"a=%ED%A0%80", "from byte 0"),
        ] {
            let problem = read(form).unwrap_err();
            assert_eq!(problem.status, StatusCode::BAD_REQUEST);
            assert!(problem.detail.contains(told), "{}", problem.detail);
        }
    }

    #[test]
    fn there_are_only_so_many() {
        assert!(read(&b"a&".repeat(MOST)).is_ok());
        assert_eq!(
            read(&b"a&".repeat(MOST + 1)).unwrap_err().kind,
            "query-limit"
        );
    }
}
