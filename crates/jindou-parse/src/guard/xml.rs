//! The elements, attributes and entities of RDF/XML.

use super::{MAX_DEPTH, Seen};

/// Longest value of an XML entity after its own references are resolved. Namespaces are some
/// hundred bytes; entities made of entities grow exponentially.
const MAX_ENTITY: u64 = 4096;
/// Longest XML document type declaration.
const MAX_DOCTYPE: usize = 1 << 20;
/// Most attributes of an XML element, namespaces included: parsers look each up among all of them.
const MAX_ATTRIBUTES: usize = 1000;

/// Depth of elements, and the entities of the document type declaration.
#[derive(Default)]
pub(super) struct Xml {
    depth: usize,
    /// The markup being read, from behind its `<`; only as much of it as is needed.
    markup: Vec<u8>,
    in_markup: bool,
    quote: u8,
    last: u8,
    /// Of the element being read.
    attributes: usize,
    /// Elements since somebody asked.
    pub(super) elements: u64,
    /// Open `<` inside a document type declaration.
    open: usize,
}

impl Xml {
    pub(super) fn see(&mut self, bytes: &[u8]) -> Seen {
        let mut i = 0;
        while i < bytes.len() {
            if !self.in_markup {
                let Some(n) = memchr::memchr(b'<', &bytes[i..]) else {
                    return Ok(());
                };
                i += n + 1;
                self.in_markup = true;
                self.markup.clear();
                self.quote = 0;
                self.attributes = 0;
                self.open = 1;
                continue;
            }
            let b = bytes[i];
            if self.step(b).map_err(|m| (i, m))? {
                self.in_markup = false;
            }
            self.last = b;
            i += 1;
        }
        Ok(())
    }

    /// Takes a byte of markup; true at its end.
    fn step(&mut self, b: u8) -> Result<bool, String> {
        let m = &mut self.markup;
        let doctype = m.first() == Some(&b'!') && !m.starts_with(b"!-") && !m.starts_with(b"![");
        if doctype || m.len() < 16 {
            m.push(b);
        } else {
            // The last bytes decide where comments, CDATA and instructions end.
            m.copy_within(9.., 8);
            m[15] = b;
        }
        match m[0] {
            b'!' if m.starts_with(b"!--") => Ok(m.len() >= 6 && m.ends_with(b"-->")),
            b'!' if m.starts_with(b"![") => Ok(m.ends_with(b"]]>")),
            b'!' => {
                if m.len() > MAX_DOCTYPE {
                    return Err(
                        "the XML document type declaration is too long, expected at most 1 MiB"
                            .into(),
                    );
                }
                match b {
                    b'<' => self.open += 1,
                    b'>' => self.open -= 1,
                    _ => {}
                }
                if self.open > 0 || m.len() < 2 {
                    return Ok(false);
                }
                check_entities(&self.markup)?;
                Ok(true)
            }
            b'?' => Ok(m.len() >= 3 && m.ends_with(b"?>")),
            first => {
                if self.quote != 0 {
                    if b == self.quote {
                        self.quote = 0;
                    }
                    return Ok(false);
                }
                match b {
                    b'"' | b'\'' => {
                        self.quote = b;
                        self.attributes += 1;
                        if self.attributes > MAX_ATTRIBUTES {
                            return Err(format!(
                                "an XML element has too many attributes, expected at most {MAX_ATTRIBUTES}"
                            ));
                        }
                    }
                    b'>' if first == b'/' => {
                        self.depth = self.depth.saturating_sub(1);
                        return Ok(true);
                    }
                    b'>' => {
                        self.elements += 1;
                        if self.last != b'/' || m.len() < 2 {
                            self.depth += 1;
                        }
                        if self.depth > MAX_DEPTH {
                            return Err(format!(
                                "XML elements nest too deep, expected at most {MAX_DEPTH} levels"
                            ));
                        }
                        return Ok(true);
                    }
                    _ => {}
                }
                Ok(false)
            }
        }
    }
}

/// Refuses entities whose references make them huge.
fn check_entities(doctype: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(doctype);
    let mut sizes: Vec<(&str, u64)> = Vec::new();
    for part in text.split("<!ENTITY").skip(1) {
        let part = part.trim_start().trim_start_matches('%').trim_start();
        let Some((name, rest)) = part.split_once(|c: char| c.is_ascii_whitespace()) else {
            continue;
        };
        let rest = rest.trim_start();
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            continue;
        };
        let value = rest[1..].split(quote).next().unwrap_or_default();
        let mut size = value.len() as u64;
        for reference in value.split('&').skip(1) {
            let name = reference.split(';').next().unwrap_or_default();
            // The last definition wins in the parser; take the largest to be safe.
            let of = sizes
                .iter()
                .filter(|(n, _)| *n == name)
                .map(|(_, s)| *s)
                .max();
            size = size.saturating_add(of.unwrap_or(0));
        }
        if size > MAX_ENTITY {
            return Err(format!(
                "the XML entity `{name}` becomes {size} bytes long, expected at most {MAX_ENTITY}"
            ));
        }
        sizes.push((name, size));
        if sizes.len() > 1000 {
            return Err(
                "the document type declares too many XML entities, expected at most 1000".into(),
            );
        }
    }
    Ok(())
}
