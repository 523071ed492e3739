//! `multipart/form-data` (RFC 7578) of a whole body. Parts are parsed one by one, since a body may have millions of
//! them.

use crate::problem::Problem;
use jindou::parse::Format;
use memchr::memchr;
use memchr::memmem::Finder;

/// Longest line in the head of a part, in bytes.
const LONGEST_LINE: usize = 16 << 10;

/// One part of a form.
pub(super) struct FormPart<'b> {
    pub(super) file_name: Option<String>,
    /// Media type in lower case, without parameters.
    pub(super) media_type: Option<String>,
    pub(super) charset: Option<String>,
    pub(super) content: &'b [u8],
}

/// The boundary in a Content-Type, if it is valid.
pub(super) fn boundary(content_type: &str) -> Option<String> {
    parameter(content_type, "boundary").filter(|b| !b.is_empty() && b.len() <= 70)
}

/// The value of a parameter of a header.
fn parameter(value: &str, name: &str) -> Option<String> {
    let parts = value.split(';').skip(1);
    parts
        .filter_map(|p| p.split_once('='))
        .find(|(k, _)| k.trim().eq_ignore_ascii_case(name))
        .map(|(_, v)| v.trim().trim_matches('"').to_owned())
}

fn bad(what: &str) -> Problem {
    Problem::bad_request(format!("the multipart body is malformed: {what}"))
}

/// Iterator over the parts of a body, which are parsed on demand.
pub(super) struct FormParts<'b> {
    rest: &'b [u8],
    /// Finders for the boundary line, without and with the line break before it.
    delimiter: Finder<'static>,
    inner: Finder<'static>,
    over: bool,
}

impl<'b> FormParts<'b> {
    /// # Errors
    /// 400 if the boundary does not occur.
    pub(super) fn parse(body: &'b [u8], boundary: &str) -> Result<Self, Problem> {
        let delimiter = Finder::new(&format!("--{boundary}")).into_owned();
        let inner = Finder::new(&format!("\n--{boundary}")).into_owned();
        let at = match delimiter.find(body) {
            Some(at) if at == 0 || body[..at].ends_with(b"\n") => at,
            _ => return Err(bad("no boundary found")),
        };
        Ok(Self {
            rest: &body[at + delimiter.needle().len()..],
            delimiter,
            inner,
            over: false,
        })
    }

    fn part(&mut self) -> Result<FormPart<'b>, Problem> {
        let find = |text, byte| memchr(byte, text);
        let mut rest = self.rest;
        let line = find(rest, b'\n').ok_or_else(|| bad("a boundary line does not end"))?;
        rest = &rest[line + 1..];
        let mut part = FormPart {
            file_name: None,
            media_type: None,
            charset: None,
            content: &[],
        };
        loop {
            let end = find(rest, b'\n').ok_or_else(|| bad("the headers of a part do not end"))?;
            if end > LONGEST_LINE {
                return Err(bad("a header line of a part is too long"));
            }
            let line = String::from_utf8_lossy(&rest[..end]);
            rest = &rest[end + 1..];
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            let (name, value) = line
                .split_once(':')
                .ok_or_else(|| bad("a header without a colon"))?;
            if name.eq_ignore_ascii_case("content-type") {
                let media = value.split(';').next().unwrap_or_default();
                part.media_type = Some(media.trim().to_ascii_lowercase());
                part.charset = Format::charset(value);
            } else if name.eq_ignore_ascii_case("content-disposition") {
                part.file_name = parameter(value, "filename");
            }
        }
        // The line break before a boundary belongs to the boundary and not to the part. An empty part has no such line
        // break.
        let delimiter = self.delimiter.needle();
        let (content, after) = if rest.starts_with(delimiter) {
            (0, delimiter.len())
        } else {
            let at = self.inner.find(rest);
            let at = at.ok_or_else(|| bad("a part does not end"))?;
            (at, at + self.inner.needle().len())
        };
        let text = &rest[..content];
        part.content = text.strip_suffix(b"\r").unwrap_or(text);
        self.rest = &rest[after..];
        Ok(part)
    }
}

impl<'b> Iterator for FormParts<'b> {
    type Item = Result<FormPart<'b>, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over || self.rest.starts_with(b"--") {
            return None;
        }
        let part = self.part();
        self.over = part.is_err();
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts<'b>(body: &'b [u8], boundary: &str) -> Result<Vec<FormPart<'b>>, Problem> {
        FormParts::parse(body, boundary)?.collect()
    }

    #[test]
    fn parts_are_found() {
        let b = boundary("multipart/form-data; charset=utf-8; Boundary=\"x y\"").unwrap();
        assert_eq!(b, "x y");
        let body = b"--x y\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a.ttl\"\r\nContent-Type: text/turtle; charset=utf-8\r\n\r\n<a> <b> 1 .\r\n\r\n--x y\r\n\r\n--x y--\r\n";
        let all = parts(body, &b).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].content, b"<a> <b> 1 .\r\n");
        assert_eq!(all[0].media_type.as_deref(), Some("text/turtle"));
        assert_eq!(all[0].file_name.as_deref(), Some("a.ttl"));
        assert!(all[1].content.is_empty());
    }

    #[test]
    fn what_breaks_off_is_refused() {
        let whole = b"--b\r\nA: b\r\n\r\ntext\r\n--b--";
        assert!(parts(whole, "b").is_ok());
        for n in 0..whole.len() - 1 {
            assert!(parts(&whole[..n], "b").is_err(), "{n}");
        }
        assert!(parts(b"no boundary", "b").is_err());
    }
}
