//! Reads JSON text (RFC 8259) from a stream into [`JsonText`], one value at a time.

use super::{JsonNode, JsonText, Kind};
use crate::guard::Tail;
use crate::jsonld::fault::{Step, Stop, bad, shorten};
use crate::limits::unwrapped;
use jindou_model::{CancelToken, Charge, Error};
use std::cell::RefCell;
use std::io::Read;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Deepest nesting of arrays and objects.
pub(in crate::jsonld) const MAX_DEPTH: usize = 1000;
/// Number of bytes that are read at a time.
const PIECE: usize = 1 << 16;
/// Bytes of a value that are not charged.
const FREE: u64 = 1 << 20;
/// With at most this many members, names are compared pairwise to find duplicates.
const FEW: usize = 8;

/// The beginning of a JSON document.
pub(in crate::jsonld) enum Top {
    /// The text is empty or blank.
    Nothing,
    Array,
    /// An object or any other value.
    Other,
}

/// A streaming reader of JSON.
pub(in crate::jsonld) struct JsonReader<'a> {
    source: Box<dyn Read + Send>,
    pub(super) buf: Vec<u8>,
    pub(super) at: usize,
    pub(super) end: usize,
    /// Position of the buffer in the document.
    pub(super) start: u64,
    /// The text that was read last, for messages.
    tail: Rc<RefCell<Tail>>,
    /// Decoded text of a string that has escapes or continues beyond the buffer.
    pub(super) scratch: Vec<u8>,
    /// Indices of the arrays and objects that are being read.
    open: Vec<u32>,
    cancel: &'a CancelToken,
    /// Where the bytes that are read are counted; `None` if they were counted already.
    counter: Option<&'a AtomicU64>,
    charge: Charge,
}

impl<'a> JsonReader<'a> {
    /// A reader of the text from byte position `start` on.
    pub(in crate::jsonld) fn new(
        source: Box<dyn Read + Send>,
        start: u64,
        tail: Rc<RefCell<Tail>>,
        cancel: &'a CancelToken,
        charge: Charge,
        counter: Option<&'a AtomicU64>,
    ) -> Self {
        Self {
            source,
            buf: vec![0; PIECE],
            at: 0,
            end: 0,
            start,
            tail,
            scratch: Vec::new(),
            open: Vec::new(),
            cancel,
            counter,
            charge,
        }
    }

    /// The position of the next byte.
    pub(in crate::jsonld) fn position(&self) -> u64 {
        self.start + self.at as u64
    }

    /// Returns the source: the position of the buffer, its bytes, and the reader of the text after them.
    pub(in crate::jsonld) fn into_parts(mut self) -> (u64, Vec<u8>, Box<dyn Read + Send>) {
        self.buf.truncate(self.end);
        (self.start, self.buf, self.source)
    }

    /// The next byte; `None` at the end.
    #[inline]
    pub(super) fn peek(&mut self) -> Step<Option<u8>> {
        if self.at == self.end && !self.fill()? {
            return Ok(None);
        }
        Ok(Some(self.buf[self.at]))
    }

    #[cold]
    fn fill(&mut self) -> Step<bool> {
        self.cancel.check().map_err(Stop::Failed)?;
        self.start += self.end as u64;
        (self.at, self.end) = (0, 0);
        self.end = loop {
            match self.source.read(&mut self.buf) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(unwrapped(e).map_or_else(Stop::Unreadable, Stop::Failed)),
                Ok(n) => break n,
            }
        };
        if let Some(counter) = self.counter {
            counter.fetch_add(self.end as u64, Ordering::Relaxed);
        }
        self.tail.borrow_mut().add(&self.buf[..self.end]);
        Ok(self.end > 0)
    }

    /// Charges the memory of a value of which a part was read.
    pub(super) fn charge(&mut self, doc: &JsonText) -> Step<()> {
        let held = doc.held() + self.scratch.capacity() as u64;
        if held <= FREE && self.charge.bytes() == 0 {
            return Ok(());
        }
        let held = if held > FREE { held } else { 0 };
        self.charge.set(held).map_err(|e| match e {
            Error::Limit(why) => Stop::Failed(Error::Limit(why.told(|why| {
                format!(
                    "a JSON value of {} MiB has not ended yet: {why}",
                    held >> 20
                )
            }))),
            other => Stop::Failed(other),
        })
    }

    #[inline]
    fn skip_blanks(&mut self) -> Step<Option<u8>> {
        loop {
            match self.peek()? {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                other => return Ok(other),
            }
        }
    }

    /// Reads up to the first value of the document. If that is an array, enters it.
    pub(in crate::jsonld) fn top(&mut self) -> Step<Top> {
        Ok(match self.skip_blanks()? {
            None => Top::Nothing,
            Some(b'[') => {
                self.at += 1;
                Top::Array
            }
            Some(_) => Top::Other,
        })
    }

    /// Reads the next item of the array that was entered into `doc`; `false` at its end, after its bracket.
    pub(in crate::jsonld) fn item(&mut self, first: bool, doc: &mut JsonText) -> Step<bool> {
        doc.clear();
        if !self.item_before(b']', first)? {
            return Ok(false);
        }
        self.value(doc)?;
        self.charge(doc)?;
        Ok(true)
    }

    /// Reads the next value.
    pub(in crate::jsonld) fn any(&mut self, doc: &mut JsonText) -> Step<()> {
        doc.clear();
        self.value(doc)
    }

    /// Number of bytes that were read from the source since position `start`.
    pub(in crate::jsonld) fn read_bytes(&self, start: u64) -> u64 {
        self.start + self.end as u64 - start
    }

    /// Checks that only blanks follow.
    pub(in crate::jsonld) fn ended(&mut self) -> Step<()> {
        match self.skip_blanks()? {
            None => Ok(()),
            found => Err(self.expected(found, "the end of the document")),
        }
    }

    /// Reads an object. If the value of its member `lazy` is an array, stores an empty array for it and its position in
    /// `found`. If there is a mistake after that position, `doc` has the members before the mistake.
    pub(in crate::jsonld) fn object_without(
        &mut self,
        lazy: &str,
        doc: &mut JsonText,
        found: &mut Option<u64>,
    ) -> Step<()> {
        doc.clear();
        if self.skip_blanks()? != Some(b'{') {
            return self.value(doc);
        }
        self.begin(Kind::Object, doc)?;
        let mut whole = 0;
        let read = self.members_without(lazy, doc, found, &mut whole);
        if read.is_err() && found.is_some() {
            doc.nodes.truncate(whole);
            doc.nodes[0].next = whole as u32;
        }
        read
    }

    /// Reads the members of an object. `whole` is set to the number of nodes up to the last complete member.
    fn members_without(
        &mut self,
        lazy: &str,
        doc: &mut JsonText,
        found: &mut Option<u64>,
        whole: &mut usize,
    ) -> Step<()> {
        while self.name(*whole == 0, doc)? {
            let is_lazy = doc.nodes.last().is_some_and(|key| {
                found.is_none() && &doc.text[key.start..][..key.len as usize] == lazy
            });
            if is_lazy && self.skip_blanks()? == Some(b'[') {
                *found = Some(self.position());
                self.push(Kind::Array, self.position(), 0, 0, doc)?;
                doc.nodes[0].len += 1;
                *whole = doc.nodes.len();
                self.skip_array()?;
                continue;
            }
            self.value(doc)?;
            doc.nodes[0].len += 1;
            *whole = doc.nodes.len();
        }
        self.close(doc)?;
        self.charge(doc)
    }

    /// Skips an array, of which only brackets and strings are interpreted.
    fn skip_array(&mut self) -> Step<()> {
        let (mut depth, mut in_string, mut escape) = (0usize, false, false);
        loop {
            if self.peek()?.is_none() {
                return Err(self.expected(None, "the end of the array in @graph"));
            }
            let rest = &self.buf[self.at..self.end];
            for (i, &b) in rest.iter().enumerate() {
                if escape {
                    escape = false;
                } else if in_string {
                    match b {
                        b'"' => in_string = false,
                        b'\\' => escape = true,
                        _ => {}
                    }
                } else {
                    match b {
                        b'"' => in_string = true,
                        b'[' | b'{' => depth += 1,
                        b']' | b'}' => depth -= 1,
                        _ => {}
                    }
                    if depth == 0 {
                        self.at += i + 1;
                        return Ok(());
                    }
                }
            }
            self.at = self.end;
        }
    }

    /// Reads a value and appends it to `doc`.
    fn value(&mut self, doc: &mut JsonText) -> Step<()> {
        let outer = self.open.len();
        let mut charged = self.start;
        loop {
            let mut ended = true;
            match self.skip_blanks()? {
                Some(b'{') => {
                    self.begin(Kind::Object, doc)?;
                    ended = !self.name(true, doc)?;
                    if ended {
                        self.close(doc)?;
                    }
                }
                Some(b'[') => {
                    self.begin(Kind::Array, doc)?;
                    ended = !self.item_before(b']', true)?;
                    if ended {
                        self.close(doc)?;
                    }
                }
                Some(b'"') => self.string(doc)?,
                Some(b'-' | b'0'..=b'9') => self.number(doc)?,
                Some(b't') => self.word("true", Kind::True, doc)?,
                Some(b'f') => self.word("false", Kind::False, doc)?,
                Some(b'n') => self.word("null", Kind::Null, doc)?,
                found => return Err(self.expected(found, "a JSON value")),
            }
            if charged != self.start {
                charged = self.start;
                self.charge(doc)?;
            }
            while ended {
                if self.open.len() == outer {
                    return Ok(());
                }
                ended = !self.goes_on(doc)?;
                if ended {
                    self.close(doc)?;
                }
            }
        }
    }

    /// Skips the separator between two values of the innermost array or object; `false` if that ends here.
    fn goes_on(&mut self, doc: &mut JsonText) -> Step<bool> {
        let top = self.open.last().map_or(0, |&i| i as usize);
        let is_object = doc.nodes[top].kind == Kind::Object;
        doc.nodes[top].len += 1;
        if is_object {
            return self.name(false, doc);
        }
        self.item_before(b']', false)
    }

    /// Skips the comma before an item, which the first one does not have; `false` at the end, after this bracket.
    fn item_before(&mut self, bracket: u8, first: bool) -> Step<bool> {
        match self.skip_blanks()? {
            Some(b) if b == bracket => {
                self.at += 1;
                Ok(false)
            }
            _ if first => Ok(true),
            Some(b',') => {
                self.at += 1;
                self.skip_blanks()?;
                Ok(true)
            }
            found if bracket == b']' => Err(self.expected(found, "`,` or `]`")),
            found => Err(self.expected(found, "`,` or `}`")),
        }
    }

    /// Reads the next name of an object and the colon after it; `false` at the object's end, after its bracket.
    fn name(&mut self, first: bool, doc: &mut JsonText) -> Step<bool> {
        if !self.item_before(b'}', first)? {
            return Ok(false);
        }
        match self.peek()? {
            Some(b'"') => self.string(doc)?,
            found => return Err(self.expected(found, "a name in quotes")),
        }
        match self.skip_blanks()? {
            Some(b':') => self.at += 1,
            found => return Err(self.expected(found, "`:`")),
        }
        Ok(true)
    }

    fn begin(&mut self, kind: Kind, doc: &mut JsonText) -> Step<()> {
        if self.open.len() == MAX_DEPTH {
            return Err(bad(
                self.position(),
                format!("JSON is nested too deeply, expected at most {MAX_DEPTH} levels"),
            ));
        }
        self.open.push(doc.nodes.len() as u32);
        let at = self.position();
        self.at += 1;
        self.push(kind, at, 0, 0, doc)
    }

    /// Ends the innermost array or object.
    fn close(&mut self, doc: &mut JsonText) -> Step<()> {
        let Some(node) = self.open.pop() else {
            return Ok(());
        };
        doc.nodes[node as usize].next = doc.nodes.len() as u32;
        match repeated_name(doc, node) {
            None => Ok(()),
            Some((at, name)) => Err(bad(
                at,
                format!(
                    "the key \"{}\" occurs twice in one object, expected each key once",
                    shorten(name)
                ),
            )),
        }
    }

    pub(super) fn push(
        &self,
        kind: Kind,
        at: u64,
        start: usize,
        len: usize,
        doc: &mut JsonText,
    ) -> Step<()> {
        let next = doc.nodes.len() + 1;
        let (Ok(next), Ok(len)) = (u32::try_from(next), u32::try_from(len)) else {
            return Err(bad(at, "a JSON value has more than 4 billion parts"));
        };
        doc.nodes.push(JsonNode {
            at,
            start,
            len,
            next,
            kind,
        });
        Ok(())
    }

    fn word(&mut self, word: &str, kind: Kind, doc: &mut JsonText) -> Step<()> {
        let at = self.position();
        for expected in word.bytes() {
            match self.peek()? {
                Some(b) if b == expected => self.at += 1,
                found => return Err(self.expected(found, &format!("`{word}`"))),
            }
        }
        self.push(kind, at, 0, 0, doc)
    }

    fn number(&mut self, doc: &mut JsonText) -> Step<()> {
        let (at, start) = (self.position(), doc.text.len());
        if self.peek()? == Some(b'-') {
            self.at += 1;
            doc.text.push('-');
        }
        let digits = doc.text.len();
        self.digits(doc)?;
        if doc.text.len() > digits + 1 && doc.text[digits..].starts_with('0') {
            return Err(bad(
                at,
                "a number begins with a zero, expected another digit",
            ));
        }
        if self.peek()? == Some(b'.') {
            self.at += 1;
            doc.text.push('.');
            self.digits(doc)?;
        }
        if let Some(b'e' | b'E') = self.peek()? {
            self.at += 1;
            doc.text.push('e');
            if let Some(sign @ (b'+' | b'-')) = self.peek()? {
                self.at += 1;
                doc.text.push(sign as char);
            }
            self.digits(doc)?;
        }
        let len = doc.text.len() - start;
        self.push(Kind::Number, at, start, len, doc)
    }

    fn digits(&mut self, doc: &mut JsonText) -> Step<()> {
        let before = doc.text.len();
        while let Some(digit @ b'0'..=b'9') = self.peek()? {
            doc.text.push(digit as char);
            self.at += 1;
        }
        if doc.text.len() == before {
            let found = self.peek()?;
            return Err(self.expected(found, "a digit"));
        }
        Ok(())
    }

    #[cold]
    pub(super) fn expected(&self, found: Option<u8>, what: &str) -> Stop {
        let found = match found {
            None => "the document ends here".to_owned(),
            Some(b) if b.is_ascii_graphic() => format!("found `{}`", b as char),
            Some(b) if b < 0x80 => format!("found the character U+{b:04X}"),
            Some(_) => "found a character beyond ASCII".to_owned(),
        };
        bad(self.position(), format!("{found}, expected {what}"))
    }
}

/// A name that an object has twice, and the position of the second one.
fn repeated_name(doc: &JsonText, object: u32) -> Option<(u64, &str)> {
    let json = super::Json { doc, node: object };
    if !json.is_object() || json.len() < 2 {
        return None;
    }
    let name = |key: super::Json<'_>| {
        let node = &doc.nodes[key.node as usize];
        (&doc.text[node.start..][..node.len as usize], node.at)
    };
    let mut names: Vec<_>;
    if json.len() <= FEW {
        let mut few = [("", 0); FEW];
        for (i, (key, _)) in json.members().enumerate() {
            few[i] = name(key);
            if let Some((text, _)) = few[..i].iter().find(|other| other.0 == few[i].0) {
                return Some((few[i].1, text));
            }
        }
        return None;
    }
    names = json.members().map(|(key, _)| name(key)).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0].0 == pair[1].0)?;
    Some((twice[1].1, twice[1].0))
}
