//! A cursor over the text of a document type declaration.

use crate::xml::chars;

/// An error at a byte of the document type declaration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DtdFault {
    pub(crate) at: usize,
    pub(crate) message: String,
}

pub(crate) type Result<T> = std::result::Result<T, DtdFault>;

/// The text that is being parsed, and the position in it.
pub(super) struct DtdText<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    /// If this is the text of a parameter entity: the position of the reference to it, at which errors are reported.
    pub(super) reference: Option<usize>,
    pub(super) longest_name: usize,
    /// True if names of entities, notations and instructions may contain colons.
    pub(super) colons: bool,
}

impl<'t> DtdText<'t> {
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn bad<T>(&self, message: impl Into<String>) -> Result<T> {
        self.bad_at(self.at, message)
    }

    pub(super) fn bad_at<T>(&self, at: usize, message: impl Into<String>) -> Result<T> {
        Err(DtdFault {
            at: self.reference.unwrap_or(at),
            message: message.into(),
        })
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips `piece` if it comes next; returns true if it did.
    pub(super) fn take(&mut self, piece: &str) -> bool {
        let found = self.rest().starts_with(piece);
        if found {
            self.at += piece.len();
        }
        found
    }

    pub(super) fn expect(&mut self, piece: &str) -> Result<()> {
        match self.take(piece) {
            true => Ok(()),
            false if self.rest().is_empty() => self.bad(format!(
                "the document ends in its document type declaration, expected `{piece}`"
            )),
            false => self.bad(format!(
                "expected `{piece}` in the document type declaration"
            )),
        }
    }

    /// Skips white space; returns true if there was any.
    pub(super) fn spaces(&mut self) -> bool {
        let count = chars::spaces(self.rest().as_bytes());
        self.at += count;
        count > 0
    }

    pub(super) fn need_spaces(&mut self) -> Result<()> {
        match self.spaces() {
            true => Ok(()),
            false => self.bad("expected white space in the document type declaration"),
        }
    }

    pub(super) fn name(&mut self) -> Result<&'t str> {
        self.some_name(chars::name, "a name")
    }

    /// Parses the name of an entity, notation or instruction.
    pub(super) fn simple_name(&mut self) -> Result<&'t str> {
        let name = self.name()?;
        match self.colons || !name.contains(':') {
            true => Ok(name),
            false => self.bad_at(
                self.at - name.len(),
                format!(
                    "the name `{name}` may not have a colon: it is not an element or attribute"
                ),
            ),
        }
    }

    pub(super) fn nmtoken(&mut self) -> Result<&'t str> {
        self.some_name(chars::nmtoken, "a name token")
    }

    fn some_name(&mut self, length: fn(&str) -> usize, kind: &str) -> Result<&'t str> {
        let rest = self.rest();
        let length = length(rest);
        if length == 0 {
            return self.bad(format!("expected {kind} in the document type declaration"));
        }
        if length > self.longest_name {
            return self.bad(format!(
                "a name is longer than {} bytes, the maximum",
                self.longest_name
            ));
        }
        self.at += length;
        Ok(rest.get(..length).unwrap_or_default())
    }

    /// Parses text in quotation marks of either kind; returns the position of its first byte, and the text.
    pub(super) fn quoted(&mut self) -> Result<(usize, &'t str)> {
        let quote = match self.peek() {
            Some(b'"') => '"',
            Some(b'\'') => '\'',
            _ => {
                return self
                    .bad("expected a value in quotation marks in the document type declaration");
            }
        };
        let inside = self.rest().get(1..).unwrap_or_default();
        match inside.split_once(quote) {
            Some((value, _)) => {
                let from = self.at + 1;
                self.at = from + value.len() + 1;
                Ok((from, value))
            }
            None => self.bad("a value in the document type declaration does not end, expected the same quotation mark"),
        }
    }

    /// Skips a comment after its `<!--`.
    pub(super) fn comment(&mut self) -> Result<()> {
        match self.rest().find("--") {
            Some(end) => {
                self.at += end + 2;
                match self.take(">") {
                    true => Ok(()),
                    false => self.bad("`--` in a comment, expected `-->`"),
                }
            }
            None => self.bad("a comment does not end, expected `-->`"),
        }
    }

    /// Parses a processing instruction after its `<?`; returns its target and its data.
    pub(super) fn instruction(&mut self) -> Result<(&'t str, &'t str)> {
        let start = self.at;
        let target = self.simple_name()?;
        if target.eq_ignore_ascii_case("xml") {
            return self.bad_at(
                start,
                "a processing instruction may not be called `xml`: the XML declaration must be at the beginning of the document",
            );
        }
        if self.take("?>") {
            return Ok((target, ""));
        }
        self.need_spaces()?;
        match self.rest().split_once("?>") {
            Some((data, _)) => {
                self.at += data.len() + 2;
                Ok((target, data))
            }
            None => self.bad("a processing instruction does not end, expected `?>`"),
        }
    }
}
