//! Error messages for remote clients, without the paths of this machine's files.

use jindou::Error;
use std::borrow::Cow;

/// The message of an error that a client may read. Absolute paths are reduced to their last component, except in
/// messages that quote the client's own request.
pub(crate) fn told(error: &Error) -> Cow<'static, str> {
    match error {
        Error::Io { path, source } => {
            let name = path.file_name().unwrap_or(path.as_os_str());
            format!("{}: {source}", name.to_string_lossy()).into()
        }
        Error::Damaged {
            file,
            offset,
            message,
        } => Error::Damaged {
            file: file.file_name().unwrap_or(file.as_os_str()).into(),
            offset: *offset,
            message: hidden(message),
        }
        .to_string()
        .into(),
        Error::Query(_) | Error::Sparql(_) | Error::Syntax { .. } | Error::Service { .. } => {
            error.to_string().into()
        }
        other => hidden(&other.to_string()).into(),
    }
}

/// The text with every absolute path reduced to its last component. A path begins at the beginning of a word, so IRIs
/// are not changed.
pub(crate) fn hidden(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let begins = c == '/' && (before.is_whitespace() || "'\"(=:,`".contains(before));
        let path = if begins { path_at(rest) } else { None };
        if let Some(length) = path {
            let path = rest[..length].trim_end_matches('/');
            out.push_str(path.rsplit('/').next().unwrap_or_default());
            rest = &rest[length..];
            before = '/';
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            before = c;
        }
    }
    out
}

/// Length of the absolute path with which a text begins; `None` if it begins with none (or with `//host`, or a lone
/// slash).
fn path_at(text: &str) -> Option<usize> {
    let end = text
        .find(|c: char| c.is_whitespace() || "'\"(),;:`<>".contains(c))
        .unwrap_or(text.len());
    let path = &text[..end];
    (path.len() > 1 && !path.starts_with("//")).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut_and_iris_are_not() {
        for (text, told) in [
            ("/srv/data/store/log is gone", "log is gone"),
            (
                "cannot read '/srv/a/b.jd': no room",
                "cannot read 'b.jd': no room",
            ),
            ("(/srv/a/): x", "(a): x"),
            (
                "LOAD <file:///srv/a.ttl>: no such file",
                "LOAD <file:///srv/a.ttl>: no such file",
            ),
            (
                "graph <http://e/a/b> is there",
                "graph <http://e/a/b> is there",
            ),
            ("1 / 2, and/or, //x", "1 / 2, and/or, //x"),
            ("file:/srv/secret/a", "file:a"),
            ("", ""),
        ] {
            assert_eq!(hidden(text), told);
        }
    }

    #[test]
    fn io_errors_keep_the_name_of_the_file() {
        let e = Error::io(
            "/srv/secret store/log/7.log",
            std::io::ErrorKind::StorageFull.into(),
        );
        let text = told(&e);
        assert!(
            text.starts_with("7.log: ") && !text.contains("srv"),
            "{text}"
        );
    }
}
