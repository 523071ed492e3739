//! Content of elements: text, references, comments, processing instructions, end tags.

use super::{EntityFrame, RawEvent, Reader};
use crate::xml::chars;
use crate::xml::dtd::{EntityValue, predefined};
use crate::xml::error::Result;
use crate::xml::input::DecodedInput;
use crate::xml::options::ReaderOptions;
use crate::xml::value::{self, ReferenceMeaning};
use std::ops::Range;

/// Size in bytes from which on an entity's text is charged.
const LARGE: usize = 4 << 10;

impl Reader<'_> {
    /// The next token inside of an element; `None` if the caller must call again.
    pub(super) fn content(&mut self) -> Result<Option<RawEvent>> {
        if self.in_cdata {
            return self.cdata();
        }
        let rest = self.input.rest().as_bytes();
        match rest.first() {
            Some(b'<') => match rest.get(1) {
                Some(b'/') => self.end_tag().map(Some),
                Some(b'!') => {
                    if self.begins("<!--")? {
                        self.comment().map(Some)
                    } else if self.begins("<![CDATA[")? {
                        self.input.at += 9;
                        self.in_cdata = true;
                        Ok(None)
                    } else {
                        self.refuse("expected a comment or a CDATA section after `<!`")
                    }
                }
                Some(b'?') => self.instruction().map(Some),
                Some(_) => self.start_tag().map(Some),
                None => match self.more()? {
                    true => Ok(None),
                    false => self.refuse("the text ends in a tag"),
                },
            },
            Some(b'&') => self.reference(),
            Some(_) => self.text(),
            None => {
                if self.more()? {
                    return Ok(None);
                }
                self.leave()?;
                Ok(None)
            }
        }
    }

    /// Handles the end of the current input: that of an entity, or an unexpected end of the document.
    #[cold]
    fn leave(&mut self) -> Result<()> {
        let depth = self.outer.last().map(|f| f.depth);
        match depth {
            None => {
                let name = self.innermost();
                let message =
                    format!("the document ends in the element `{name}`, expected `</{name}>`");
                Err(self.bad(self.input.at, message))
            }
            Some(depth) if depth != self.elements.len() => Err(self.bad(
                self.input.at,
                "an element does not end in the entity in which it begins",
            )),
            Some(_) => {
                if let Some(frame) = self.outer.pop() {
                    if let Some(entity) = self.dtd.entities.get_mut(&frame.entity) {
                        entity.is_open = false;
                    }
                    self.input = frame.input;
                }
                Ok(())
            }
        }
    }

    /// Text up to the next markup or reference, or to the end of what was read.
    fn text(&mut self) -> Result<Option<RawEvent>> {
        let text = self.input.rest();
        let bytes = text.as_bytes();
        let mut at = 0;
        let end = loop {
            let rest = bytes.get(at..).unwrap_or_default();
            match memchr::memchr3(b'<', b'&', b']', rest) {
                None => break bytes.len(),
                Some(n) if rest.get(n) != Some(&b']') => break at + n,
                Some(n) => {
                    at += n;
                    match rest.get(n..n + 3) {
                        Some(b"]]>") => {
                            return Err(self.bad(
                                self.input.at + at,
                                "`]]>` is not allowed in text: write `]]&gt;`",
                            ));
                        }
                        Some(_) => at += 1,
                        // This may be the beginning of `]]>`, which the bytes to come decide.
                        None if at > 0 => break at,
                        None => {
                            if self.more()? {
                                return Ok(None);
                            }
                            break self.input.rest().len();
                        }
                    }
                }
            }
        };
        self.piece(end)
    }

    /// Returns the next `length` bytes as text.
    fn piece(&mut self, length: usize) -> Result<Option<RawEvent>> {
        let from = self.input.at;
        let mut to = from + length;
        if self.input.has_returns {
            let text = self.input.rest().as_bytes();
            // A line feed may follow the carriage return, and both are one line end.
            if text.get(..length).is_some_and(|t| t.last() == Some(&b'\r')) && text.len() == length
            {
                if length > 1 {
                    to -= 1;
                } else if self.more()? {
                    return Ok(None);
                }
            }
            let from = self.input.at;
            let to = to.min(from + self.input.rest().len());
            self.input.at = to;
            return Ok(Some(RawEvent::Text(self.normal_lines(from..to))));
        }
        self.input.at = to;
        Ok(Some(RawEvent::Text(Some(from..to))))
    }

    /// The range if the line ends of its text need no conversion. Otherwise `None`, and the text with line feeds is in
    /// the scratch buffer.
    fn normal_lines(&mut self, range: Range<usize>) -> Option<Range<usize>> {
        let text = self.input.part(range.clone());
        // A carriage return in an entity was written as a reference, and is kept.
        if !self.input.has_returns || memchr::memchr(b'\r', text.as_bytes()).is_none() {
            return Some(range);
        }
        self.scratch.clear();
        chars::push_lines(text, &mut self.scratch);
        None
    }

    /// The next text of a CDATA section.
    fn cdata(&mut self) -> Result<Option<RawEvent>> {
        let text = self.input.rest();
        let bytes = text.as_bytes();
        match memchr::memmem::find(bytes, b"]]>") {
            Some(0) => {
                self.input.at += 3;
                self.in_cdata = false;
                Ok(None)
            }
            Some(end) => self.piece(end),
            None => {
                let held = match bytes {
                    [.., b']', b']'] => 2,
                    [.., b']'] => 1,
                    _ => 0,
                };
                if bytes.len() > held {
                    return self.piece(bytes.len() - held);
                }
                match self.more()? {
                    true => Ok(None),
                    false => Err(self.bad(
                        self.input.at,
                        "a CDATA section does not end, expected `]]>`",
                    )),
                }
            }
        }
    }

    /// Handles a reference in text.
    fn reference(&mut self) -> Result<Option<RawEvent>> {
        // Length of the longest reference.
        let most = self.options.name + 3;
        loop {
            let rest = self.input.rest().as_bytes();
            let seen = rest.get(..most.min(rest.len())).unwrap_or_default();
            let is_whole = memchr::memchr3(b';', b'<', b' ', seen).is_some() || seen.len() == most;
            if is_whole || !self.more()? {
                break;
            }
        }
        let found = match value::reference(self.input.rest()) {
            Ok(found) => found,
            Err(message) => return self.refuse(message),
        };
        let length = found.length;
        match found.meaning {
            ReferenceMeaning::Character(c) => {
                self.scratch.clear();
                self.scratch.push(c);
            }
            ReferenceMeaning::Entity(name) => match predefined(name) {
                Some(text) => {
                    self.scratch.clear();
                    self.scratch.push_str(text);
                }
                None => {
                    let name = name.to_owned();
                    return self.enter(&name, length);
                }
            },
        }
        self.input.at += length;
        Ok(Some(RawEvent::Text(None)))
    }

    /// Begins to read the text of an entity. `length` is that of the reference in bytes.
    fn enter(&mut self, name: &str, length: usize) -> Result<Option<RawEvent>> {
        let from = self.input.at + 1;
        let most = self.most_expanded();
        let Some(entity) = self.dtd.entities.get_mut(name) else {
            if let Err(message) = value::missing(name, self.dtd.is_partial, &self.options) {
                return self.refuse(message);
            }
            self.input.at += length;
            return Ok(Some(RawEvent::Skipped(from..from + name.len())));
        };
        let text = match &entity.value {
            _ if entity.is_open => return self.refuse(value::contains_itself(name)),
            EntityValue::Text(text) => text,
            EntityValue::Unparsed => return self.refuse(value::unparsed(name)),
            EntityValue::External if self.options.skip_external => {
                self.input.at += length;
                return Ok(Some(RawEvent::Skipped(from..from + name.len())));
            }
            EntityValue::External => {
                return self.refuse(format!("the entity `{name}` is another document, which is not read: replace the reference with its text"));
            }
        };
        self.expanded += value::REFERENCE + text.len() as u64;
        if self.expanded > most {
            return self.refuse(value::too_much(most));
        }
        if self.outer.len() >= self.options.entities {
            return self.refuse(value::too_deep(self.options.entities));
        }
        let text = text.to_string();
        entity.is_open = true;
        self.input.at += length;
        let inner = DecodedInput::entity(text);
        let frame = EntityFrame {
            input: std::mem::replace(&mut self.input, inner),
            depth: self.elements.len(),
            entity: name.into(),
        };
        self.outer.push(frame);
        if self.input.rest().len() > LARGE {
            self.charge()?;
        }
        Ok(None)
    }

    /// Largest number of bytes to which entities may have expanded so far.
    pub(super) fn most_expanded(&self) -> u64 {
        let read = self.document().bytes_read();
        self.options
            .expansion
            .max(read.saturating_mul(ReaderOptions::AMPLIFICATION))
    }

    pub(super) fn comment(&mut self) -> Result<RawEvent> {
        let Some(end) = self.find("--", 4)? else {
            return self.refuse("a comment does not end, expected `-->`");
        };
        while self.input.since_start().len() < end + 3 && self.more()? {}
        let (from, to) = (self.input.start + 4, self.input.start + end);
        if !self.input.since_start()[end..].starts_with("-->") {
            return Err(self.bad(to, "`--` in a comment, expected `-->`"));
        }
        self.input.at = to + 3;
        Ok(RawEvent::Comment(self.normal_lines(from..to)))
    }

    pub(super) fn instruction(&mut self) -> Result<RawEvent> {
        let Some(end) = self.find("?>", 2)? else {
            return self.refuse("a processing instruction does not end, expected `?>`");
        };
        let (from, end) = (self.input.start + 2, self.input.start + end);
        let inside = self.input.part(from..end);
        let length = chars::name(inside);
        let target = inside.get(..length).unwrap_or_default();
        if length == 0 {
            return Err(self.bad(
                from,
                "expected the target of a processing instruction after `<?`",
            ));
        }
        if target.eq_ignore_ascii_case("xml") {
            return Err(self.bad(
                from,
                "a processing instruction may not be called `xml`: the XML declaration must be at the very beginning of the document",
            ));
        }
        if self.options.namespaces && target.contains(':') {
            return Err(self.bad(
                from,
                "the target of a processing instruction may not have a colon",
            ));
        }
        let spaces = chars::spaces(inside.as_bytes().get(length..).unwrap_or_default());
        if spaces == 0 && length < inside.len() {
            return Err(self.bad(
                from + length,
                "expected white space or `?>` after the target of a processing instruction",
            ));
        }
        let target = from..from + length;
        let data = from + length + spaces..end;
        self.input.at = end + 2;
        Ok(RawEvent::Instruction(target, self.normal_lines(data)))
    }

    /// Name of the innermost open element.
    fn innermost(&self) -> &str {
        let name = self.elements.last().map_or(0..0, |e| e.name.clone());
        &self.names[name]
    }

    fn end_tag(&mut self) -> Result<RawEvent> {
        loop {
            let name = self.innermost();
            let rest = self.input.rest().get(2..).unwrap_or_default();
            if let Some(behind) = rest.strip_prefix(name) {
                let spaces = chars::spaces(behind.as_bytes());
                if behind.as_bytes().get(spaces) == Some(&b'>') {
                    if let Some(frame) = self.outer.last()
                        && frame.depth == self.elements.len()
                    {
                        let message = format!(
                            "the element `{name}` ends in an entity in which it did not begin"
                        );
                        return self.refuse(message);
                    }
                    self.input.at += 3 + name.len() + spaces;
                    return Ok(self.pop());
                }
            }
            // The end tag is wrong, or was not read completely.
            let length = chars::name(rest);
            let spaces = chars::spaces(rest.as_bytes().get(length..).unwrap_or_default());
            if rest.len() == length + spaces {
                let seen = self.input.since_start().len();
                if self.more_markup(seen)? {
                    continue;
                }
            }
            let name = self.innermost();
            let rest = self.input.rest().get(2..).unwrap_or_default();
            let message = match rest.get(..length) {
                Some(other) if length > 0 && other != name => {
                    format!(
                        "the element `{name}` is open, expected `</{name}>` before `</{other}>`"
                    )
                }
                _ => format!("expected `</{name}>`"),
            };
            return self.refuse(message);
        }
    }
}
