//! Bearer tokens.

use crate::ServeError;
use std::path::Path;
use subtle::ConstantTimeEq;

/// What a request may do. Writers may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    Read,
    Write,
}

/// The tokens of a token file.
pub(crate) struct Tokens(Vec<(Access, Vec<u8>)>);

/// Shorter ones could be guessed.
const SHORTEST: usize = 16;

impl Tokens {
    /// Reads lines `read TOKEN` and `write TOKEN`; empty lines and lines that begin with `#` are skipped.
    pub(crate) fn read(path: &Path) -> Result<Self, ServeError> {
        let bad = |message: String| ServeError::File {
            path: path.into(),
            message,
        };
        let text = std::fs::read_to_string(path).map_err(|e| bad(e.to_string()))?;
        let mut tokens = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace();
            let (Some(kind), token, None) = (words.next(), words.next(), words.next()) else {
                if line.trim().is_empty() {
                    continue;
                }
                if line.trim_start().starts_with('#') {
                    continue;
                }
                return Err(bad(format!(
                    "line {}: expected 'read TOKEN' or 'write TOKEN'",
                    i + 1
                )));
            };
            if kind.starts_with('#') {
                continue;
            }
            let access = match kind {
                "read" => Access::Read,
                "write" => Access::Write,
                other => {
                    return Err(bad(format!(
                        "line {}: '{other}' is neither 'read' nor 'write'",
                        i + 1
                    )));
                }
            };
            let token = token.unwrap_or_default();
            if token.len() < SHORTEST {
                return Err(bad(format!(
                    "line {}: a token has at least {SHORTEST} characters",
                    i + 1
                )));
            }
            tokens.push((access, token.as_bytes().to_vec()));
        }
        if tokens.is_empty() {
            return Err(bad("there is no token in it".into()));
        }
        Ok(Self(tokens))
    }

    /// What this token allows. Every known token is compared to its end, so that the time tells nothing but lengths.
    pub(crate) fn access(&self, token: &[u8]) -> Option<Access> {
        let mut found = None;
        for (access, known) in &self.0 {
            if bool::from(known.as_slice().ct_eq(token)) {
                found = found.max(Some(*access));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn tokens(text: &str) -> Result<Tokens, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Tokens::read(file.path()).map_err(|e| e.to_string())
    }

    #[test]
    fn lines_are_kinds_and_tokens() {
        let t = tokens("# ours\n\nread 0123456789abcdef\nwrite fedcba9876543210\n").unwrap();
        assert_eq!(t.access(b"0123456789abcdef"), Some(Access::Read));
        assert_eq!(t.access(b"fedcba9876543210"), Some(Access::Write));
        assert_eq!(t.access(b"0123456789abcdeg"), None);
        assert_eq!(t.access(b""), None);
    }

    #[test]
    fn bad_files_are_refused_with_their_line() {
        for (text, what) in [
            ("read short", "line 1"),
            ("read 0123456789abcdef\nadmin 0123456789abcdef", "line 2"),
            ("read", "line 1"),
            ("read a b c", "line 1"),
            ("", "no token"),
        ] {
            let e = tokens(text).err().unwrap();
            assert!(e.contains(what), "{text}: {e}");
        }
    }
}
