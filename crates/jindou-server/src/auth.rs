//! Tokens: the file that contains them, how requests send them, and the rights that they grant.

use crate::ServeError;
use crate::problem::Problem;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use subtle::ConstantTimeEq;

/// Rights that a token grants. A write token also allows reading and administration: listing and ending every client's
/// queries, merging, and backups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TokenRights {
    Read,
    Write,
}

/// Shortest allowed token, in bytes; shorter ones could be guessed.
const SHORTEST: usize = 16;

type Tokens = Vec<(TokenRights, Vec<u8>)>;

/// The tokens of a token file, which can be reloaded.
pub(crate) struct Keyring {
    path: PathBuf,
    tokens: RwLock<Tokens>,
    /// Derives a number from each token, so that lists of queries need not contain the token itself.
    names: RandomState,
}

impl Keyring {
    /// Reads lines `read TOKEN` and `write TOKEN`; empty lines and lines that begin with `#` are skipped.
    pub(crate) fn open(path: &Path) -> Result<Self, ServeError> {
        Ok(Self {
            path: path.into(),
            tokens: RwLock::new(read(path)?),
            names: RandomState::new(),
        })
    }

    /// Reads the file again, and returns the number of tokens. After an error the old tokens stay valid.
    pub(crate) fn reload(&self) -> Result<usize, ServeError> {
        let tokens = read(&self.path)?;
        let count = tokens.len();
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
        Ok(count)
    }

    /// The rights that this token grants; `None` if it is unknown. It is compared with every known token to the end, so
    /// that the response time reveals nothing but lengths.
    pub(crate) fn access(&self, token: &[u8]) -> Option<TokenRights> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = None;
        for (access, known) in tokens.iter() {
            if bool::from(known.as_slice().ct_eq(token)) {
                found = found.max(Some(*access));
            }
        }
        found
    }

    /// A number that identifies this token, and is the same in every process. Not shown in lists.
    pub(crate) fn principal(token: &[u8]) -> u64 {
        let hash = Sha256::new()
            .chain_update(b"jindou principal\n")
            .chain_update(token)
            .finalize();
        hash.first_chunk()
            .map_or(0, |first| u64::from_le_bytes(*first))
    }

    /// A number that identifies this token as long as this process runs.
    pub(crate) fn name(&self, token: &[u8]) -> u64 {
        self.names.hash_one(token)
    }
}

fn read(path: &Path) -> Result<Tokens, ServeError> {
    let bad = |message: String| ServeError::File {
        path: path.into(),
        message,
    };
    let text = std::fs::read_to_string(path).map_err(|e| bad(e.to_string()))?;
    let mut tokens = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let at = i + 1;
        let mut words = line.split_whitespace();
        let (Some(kind), Some(token), None) = (words.next(), words.next(), words.next()) else {
            return Err(bad(format!(
                "line {at}: expected 'read TOKEN' or 'write TOKEN'"
            )));
        };
        let access = match kind {
            "read" => TokenRights::Read,
            "write" => TokenRights::Write,
            other => {
                return Err(bad(format!(
                    "line {at}: '{other}' is neither 'read' nor 'write'"
                )));
            }
        };
        if token.len() < SHORTEST {
            return Err(bad(format!(
                "line {at}: a token has at least {SHORTEST} characters"
            )));
        }
        tokens.push((access, token.as_bytes().to_vec()));
    }
    if tokens.is_empty() {
        return Err(bad("it has no tokens".into()));
    }
    Ok(tokens)
}

/// A warning about a secret file that users other than its owner can read; `None` if only the owner can.
pub(crate) fn exposed(path: &Path, what: &str) -> Option<String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(path).ok()?.permissions().mode();
        (mode & 0o077 != 0).then(|| {
            format!(
                "the {what} {} can be read by other users of this machine (mode {:04o}); run chmod 600",
                path.display(),
                mode & 0o7777
            )
        })
    }
    #[cfg(not(unix))]
    {
        let _ = (path, what);
        None
    }
}

/// Credentials that a request contains.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Credentials<'r> {
    pub(crate) token: Cow<'r, [u8]>,
    /// True if browsers send such credentials automatically, whichever page causes the request.
    pub(crate) ambient: bool,
}

impl<'r> Credentials<'r> {
    /// Credentials from `Authorization: Bearer TOKEN`, or from `Basic` with the token as the password and any user
    /// name. `Ok(None)` without that header.
    ///
    /// # Errors
    /// A message that says what is wrong with the header.
    pub(crate) fn from_headers(headers: &'r HeaderMap) -> Result<Option<Self>, &'static str> {
        let mut lines = headers.get_all(AUTHORIZATION).iter();
        let Some(line) = lines.next() else {
            return Ok(None);
        };
        if lines.next().is_some() {
            return Err("there are two 'Authorization' headers; only one is allowed");
        }
        let line = line.as_bytes().trim_ascii();
        let (scheme, rest) = line
            .iter()
            .position(|b| *b == b' ')
            .map_or((line, &line[line.len()..]), |at| line.split_at(at));
        let rest = rest.trim_ascii();
        if scheme.eq_ignore_ascii_case(b"bearer") {
            return Ok(Some(Self {
                token: rest.into(),
                ambient: false,
            }));
        }
        if !scheme.eq_ignore_ascii_case(b"basic") {
            return Err("only 'Authorization: Bearer TOKEN' and 'Basic' are supported");
        }
        let pair = BASE64_STANDARD.decode(rest).ok();
        let token = pair.and_then(|mut pair| {
            let colon = pair.iter().position(|b| *b == b':')?;
            Some(pair.split_off(colon + 1))
        });
        let token = token.ok_or("'Authorization: Basic' is not base64 of USER:TOKEN")?;
        Ok(Some(Self {
            token: token.into(),
            ambient: true,
        }))
    }
}

/// The sender of a request, and its rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Number that identifies the sender's token in this process; `None` on a server without tokens.
    pub(crate) owner: Option<u64>,
    /// Number that identifies the sender's token in every process; 0 without a token.
    pub(crate) principal: u64,
    pub(crate) writing: Writing,
}

/// Tells if a request may change data, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    Allowed,
    /// The token only allows reading.
    ReadToken,
    /// A page of another origin made a browser send the request.
    Stranger,
}

impl Caller {
    /// A caller that may do everything, on a server without tokens.
    pub(crate) const ANYBODY: Self = Self {
        owner: None,
        principal: 0,
        writing: Writing::Allowed,
    };

    /// # Errors
    /// 403 with the reason if the caller may not write.
    pub(crate) fn may_write(self) -> Result<(), Problem> {
        match self.writing {
            Writing::Allowed => Ok(()),
            Writing::ReadToken => Err(Problem::new(
                StatusCode::FORBIDDEN,
                "token",
                "this token is read-only; a write token is needed",
            )),
            Writing::Stranger => Err(Problem::new(
                StatusCode::FORBIDDEN,
                "origin",
                "pages of this origin may not write here; requests from other origins need 'Authorization: Bearer' with a write token",
            )),
        }
    }

    /// True if the caller may see the text of a query with this owner.
    pub(crate) fn sees(self, owner: Option<u64>) -> bool {
        self.writing != Writing::ReadToken || self.owner == owner
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const PRINCIPAL: [u8; 8] = [0x85, 0x3e, 0xb4, 0xe3, 0x70, 0xd0, 0x9a, 0xaa];

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    #[test]
    fn principals_are_the_same_in_every_process() {
        // The expected value is the SHA-256 of a fixed text followed by the token, computed by `sha256sum`.
        let name = Keyring::principal(b"0123456789abcdef");
        assert_eq!(name.to_le_bytes(), PRINCIPAL);
        assert_ne!(name, Keyring::principal(b"0123456789abcdeg"));
    }

    fn tokens(text: &str) -> Result<Keyring, String> {
        Keyring::open(file(text).path()).map_err(|e| e.to_string())
    }

    #[test]
    fn lines_are_kinds_and_tokens() {
        let t = tokens("# ours\n\n #\nread 0123456789abcdef\nwrite fedcba9876543210\n").unwrap();
        assert_eq!(t.access(b"0123456789abcdef"), Some(TokenRights::Read));
        assert_eq!(t.access(b"fedcba9876543210"), Some(TokenRights::Write));
        assert_eq!(t.access(b"0123456789abcdeg"), None);
        assert_eq!(t.access(b""), None);
        assert_ne!(t.name(b"0123456789abcdef"), t.name(b"fedcba9876543210"));
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

    #[test]
    fn a_file_that_is_bad_when_it_is_read_again_changes_nothing() {
        let mut f = file("read 0123456789abcdef\n");
        let t = Keyring::open(f.path()).unwrap();
        f.write_all(b"nonsense\n").unwrap();
        assert!(t.reload().is_err());
        assert_eq!(t.access(b"0123456789abcdef"), Some(TokenRights::Read));
    }
}
