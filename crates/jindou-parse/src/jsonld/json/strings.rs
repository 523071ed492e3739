//! Strings of JSON, and their escapes.

use super::reader::JsonReader;
use super::{JsonText, Kind};
use crate::jsonld::fault::{Step, bad};

impl JsonReader<'_> {
    #[inline]
    pub(super) fn string(&mut self, doc: &mut JsonText) -> Step<()> {
        let at = self.position();
        self.at += 1;
        let rest = &self.buf[self.at..self.end];
        let plain = rest
            .iter()
            .position(|&b| b == b'"' || b == b'\\' || b < 0x20);
        let start = doc.text.len();
        match plain {
            Some(len) if rest[len] == b'"' => {
                doc.text.push_str(utf8(&rest[..len], at)?);
                self.at += len + 1;
            }
            _ => self.long_string(at, doc)?,
        }
        self.push(Kind::String, at, start, doc.text.len() - start, doc)
    }

    /// Reads a string that has escapes or continues beyond the buffer.
    fn long_string(&mut self, at: u64, doc: &mut JsonText) -> Step<()> {
        self.scratch.clear();
        let mut charged = self.start;
        loop {
            if self.peek()?.is_none() {
                return Err(bad(at, "this string does not end, expected `\"`"));
            }
            if charged != self.start {
                charged = self.start;
                self.charge(doc)?;
            }
            let rest = &self.buf[self.at..self.end];
            let plain = rest
                .iter()
                .position(|&b| b == b'"' || b == b'\\' || b < 0x20);
            let len = plain.unwrap_or(rest.len());
            self.scratch.extend_from_slice(&rest[..len]);
            let ends_with = rest.get(len).copied();
            self.at += len;
            match ends_with {
                None => {}
                Some(b'"') => {
                    self.at += 1;
                    doc.text.push_str(utf8(&self.scratch, at)?);
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(b) => {
                    return Err(bad(
                        self.position(),
                        format!(
                            "found the control character U+{b:04X} in a string, expected an escape such as `\\n`"
                        ),
                    ));
                }
            }
        }
    }

    fn escape(&mut self) -> Step<()> {
        let at = self.position();
        self.at += 1;
        let found = self.peek()?;
        let c = match found {
            Some(c @ (b'"' | b'\\' | b'/')) => c as char,
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                let c = self.code(at)?;
                self.scratch
                    .extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => {
                return Err(self.expected(found, r#"an escape: \" \\ \/ \b \f \n \r \t or \u"#));
            }
        };
        self.at += 1;
        self.scratch
            .extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    /// Decodes a `\u` escape that began at `at`, from its digits on. A character beyond U+FFFF takes two escapes.
    fn code(&mut self, at: u64) -> Step<char> {
        let first = self.hex()?;
        if let Some(c) = char::from_u32(first) {
            return Ok(c);
        }
        let lone = |unit: u32| {
            bad(
                at,
                format!(
                    "`\\u{unit:04x}` is half of a character (a lone surrogate), which a text cannot have, expected a pair such as `\\ud83d\\ude00`"
                ),
            )
        };
        if first >= 0xDC00 || self.peek()? != Some(b'\\') {
            return Err(lone(first));
        }
        self.at += 1;
        if self.peek()? != Some(b'u') {
            return Err(lone(first));
        }
        self.at += 1;
        let second = self.hex()?;
        let low = second.checked_sub(0xDC00).filter(|&low| low < 0x400);
        let c = low.and_then(|low| char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + low));
        c.ok_or_else(|| lone(first))
    }

    fn hex(&mut self) -> Step<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let found = self.peek()?;
            let Some(digit) = found.and_then(|b| (b as char).to_digit(16)) else {
                return Err(self.expected(found, "four hexadecimal digits after `\\u`"));
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}

fn utf8(bytes: &[u8], at: u64) -> Step<&str> {
    std::str::from_utf8(bytes).map_err(|_| {
        bad(
            at,
            "this string has bytes that are not UTF-8, expected UTF-8 text",
        )
    })
}
