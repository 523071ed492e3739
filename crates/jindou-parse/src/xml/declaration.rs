//! The XML declaration, `<?xml version="1.0" …?>`.

use crate::xml::chars;

/// Content of an XML declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Declaration {
    pub(crate) encoding: Option<String>,
    /// True if the document declares that external declarations do not matter (`standalone="yes"`).
    pub(crate) standalone: bool,
}

/// Parses the text between `<?xml` and `?>`. An error comes with its byte offset in this text.
pub(crate) fn parse(text: &str) -> Result<Declaration, (usize, String)> {
    let mut parser = DeclarationParser { text, at: 0 };
    let mut declaration = Declaration::default();
    let Some(version) = parser.attribute("version")? else {
        return parser.bad("expected `version` in the XML declaration");
    };
    let digits = version.strip_prefix("1.").unwrap_or_default();
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return parser.bad("the version of XML is not 1.0");
    }
    if let Some(encoding) = parser.attribute("encoding")? {
        let mut bytes = encoding.bytes();
        let begins = bytes.next().is_some_and(|b| b.is_ascii_alphabetic());
        if !begins || !bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')) {
            return parser
                .bad("expected the name of an encoding in the XML declaration, such as UTF-8");
        }
        declaration.encoding = Some(encoding.to_owned());
    }
    if let Some(standalone) = parser.attribute("standalone")? {
        declaration.standalone = match standalone {
            "yes" => true,
            "no" => false,
            _ => {
                return parser
                    .bad("expected `yes` or `no` for `standalone` in the XML declaration");
            }
        };
    }
    parser.spaces();
    match parser.rest().is_empty() {
        true => Ok(declaration),
        false => parser.bad("expected `version`, then `encoding` and `standalone` if they are there, then `?>` in the XML declaration"),
    }
}

struct DeclarationParser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> DeclarationParser<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn bad<T>(&self, message: &str) -> Result<T, (usize, String)> {
        Err((self.at, message.to_owned()))
    }

    fn spaces(&mut self) -> usize {
        let count = chars::spaces(self.rest().as_bytes());
        self.at += count;
        count
    }

    /// Parses white space and `name = "value"`. Returns the value; `None` if this name does not come next.
    fn attribute(&mut self, name: &str) -> Result<Option<&'t str>, (usize, String)> {
        let before = self.at;
        if self.spaces() == 0 || !self.rest().starts_with(name) {
            self.at = before;
            return Ok(None);
        }
        self.at += name.len();
        self.spaces();
        if !self.rest().starts_with('=') {
            return self.bad("expected `=` in the XML declaration");
        }
        self.at += 1;
        self.spaces();
        let rest = self.rest();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let value = quote.and_then(|q| rest.get(1..)?.split_once(q));
        let Some((value, _)) = value else {
            return self.bad("expected a value in quotation marks in the XML declaration");
        };
        self.at += value.len() + 2;
        Ok(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_read_strictly() {
        for (text, encoding, standalone) in [
            (" version='1.0'", None, false),
            (" version = \"1.7\" encoding='UTF-8' ", Some("UTF-8"), false),
            ("\nversion='1.0'\tstandalone='yes'", None, true),
            (
                " version='1.0' encoding=\"a.b_c-d\" standalone='no'",
                Some("a.b_c-d"),
                false,
            ),
        ] {
            let read = parse(text).unwrap();
            assert_eq!(
                (read.encoding.as_deref(), read.standalone),
                (encoding, standalone)
            );
        }
        for bad in [
            "",
            " encoding='UTF-8'",
            "version='1.0'",
            " version='1'",
            " version='2.0'",
            " version='1.0\"",
            " version=1.0",
            " version='1.0'encoding='a'",
            " version='1.0' encoding=''",
            " version='1.0' encoding='-a'",
            " version='1.0' standalone='YES'",
            " version='1.0' standalone='yes' encoding='a'",
            " version='1.0' more='a'",
            " VERSION='1.0'",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
