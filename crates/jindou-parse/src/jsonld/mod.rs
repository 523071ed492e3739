//! Corrections for the values of some numbers that `oxjsonld` gets wrong.
//!
//! In JSON-LD 1.1 a number without a fraction is an `xsd:integer` below 10^21, but in the parser only below 10^20; and
//! it drops the sign of a zero that is coerced to `xsd:double`. Only the parser knows to which type a context coerces a
//! number. So [`NumberReader`] shows it other numbers that it handles correctly, and corrects the literals that it
//! makes of them.

mod stand_ins;
mod token;

pub(crate) use stand_ins::{SharedStandIns, StandIns};

use crate::limits::Limits;
use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;
use token::JsonNumber;

/// Bytes that are read at a time.
const PIECE: usize = 1 << 16;

/// Reads JSON through, with stand-ins for the numbers that the parser gets wrong.
pub(crate) struct NumberReader<R> {
    inner: R,
    state: JsonState,
    /// The number being read.
    token: Vec<u8>,
    /// The bytes that were read last.
    piece: Vec<u8>,
    /// Text for the parser, which has received the first `given` bytes of it.
    ready: Vec<u8>,
    given: usize,
    /// Bytes of the document before `piece`, and the number of bytes given to the parser for them.
    read: u64,
    made: u64,
    ended: bool,
    shared: SharedStandIns,
}

#[derive(Clone, Copy, PartialEq)]
enum JsonState {
    Plain,
    Number,
    Text,
    Escape,
}

impl<R: Read> NumberReader<R> {
    pub(crate) fn new(inner: R, limits: &Limits) -> Self {
        Self {
            inner,
            state: JsonState::Plain,
            token: Vec::new(),
            piece: vec![0; PIECE],
            ready: Vec::new(),
            given: 0,
            read: 0,
            made: 0,
            ended: false,
            shared: Rc::new(RefCell::new(StandIns::new(limits))),
        }
    }

    /// The stand-ins, of which there are more with each read.
    pub(crate) fn stand_ins(&self) -> SharedStandIns {
        Rc::clone(&self.shared)
    }

    /// Copies the first `n` bytes of the piece, with numbers replaced, to the ready text. A number that may continue is
    /// held back.
    fn exchange(&mut self, n: usize) -> io::Result<()> {
        let mut i = 0;
        while i < n {
            let rest = &self.piece[i..n];
            let len = match self.state {
                JsonState::Plain => {
                    let next = |b: &u8| matches!(b, b'"' | b'-' | b'0'..=b'9');
                    let len = rest.iter().position(next).unwrap_or(rest.len());
                    match rest.get(len) {
                        None => {}
                        Some(b'"') => self.state = JsonState::Text,
                        Some(_) => self.state = JsonState::Number,
                    }
                    len + usize::from(self.state == JsonState::Text)
                }
                JsonState::Text => match memchr::memchr2(b'"', b'\\', rest) {
                    None => rest.len(),
                    Some(len) => {
                        self.state = match rest[len] {
                            b'"' => JsonState::Plain,
                            _ => JsonState::Escape,
                        };
                        len + 1
                    }
                },
                JsonState::Escape => {
                    self.state = JsonState::Text;
                    1
                }
                JsonState::Number => {
                    let ends =
                        |b: &u8| !matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                    let len = rest.iter().position(ends).unwrap_or(rest.len());
                    self.token.extend_from_slice(&rest[..len]);
                    i += len;
                    if i < n {
                        self.number(i)?;
                    }
                    continue;
                }
            };
            self.ready.extend_from_slice(&rest[..len]);
            i += len;
        }
        Ok(())
    }

    /// Processes the end of a number, `end` bytes into the piece.
    fn number(&mut self, end: usize) -> io::Result<()> {
        self.state = JsonState::Plain;
        let value = JsonNumber::from_token(&self.token);
        let stand_in = match value {
            Some(value) => self.shared.borrow_mut().stand_in(value)?,
            None => None,
        };
        let Some(stand_in) = stand_in else {
            self.ready.append(&mut self.token);
            return Ok(());
        };
        self.ready.extend_from_slice(&stand_in);
        // Blanks preserve the positions of the following text, if there is room.
        let blanks = self.token.len().saturating_sub(stand_in.len());
        self.ready.resize(self.ready.len() + blanks, b' ');
        if self.token.len() < stand_in.len() {
            let (read, made) = (self.read + end as u64, self.made + self.ready.len() as u64);
            self.shared.borrow_mut().shift(made, read);
        }
        self.token.clear();
        Ok(())
    }
}

impl<R: Read> Read for NumberReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.given == self.ready.len() && !self.ended {
            self.made += self.ready.len() as u64;
            self.ready.clear();
            self.given = 0;
            let n = self.inner.read(&mut self.piece)?;
            if n == 0 {
                self.ended = true;
                if self.state == JsonState::Number {
                    self.number(0)?;
                }
                break;
            }
            self.exchange(n)?;
            self.read += n as u64;
        }
        let rest = &self.ready[self.given..];
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        self.given += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests;
