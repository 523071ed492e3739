//! Where the text of rows goes: into a vector, or on to the reader in pieces while a long cell is being written.

use jindou_model::scope::worked;
use jindou_model::{Error, Result};

/// Bytes of a text that are converted between two looks at the clock.
pub(crate) const BLOCK: usize = 1 << 14;
/// Size of the pieces in which text is handed on: large enough that a system call per piece costs nothing.
pub(crate) const PIECE: usize = 1 << 16;
/// Bytes of text at which a piece is handed on even in the middle of a row.
pub(crate) const FULL: usize = 2 * PIECE;

/// Passes a piece of text on and clears the vector.
pub(crate) type HandOn<'h> = dyn FnMut(&mut Vec<u8>) -> Result<()> + 'h;

/// Takes the text of rows.
pub(crate) trait TextOut {
    /// Appends one byte.
    fn push(&mut self, byte: u8);
    /// Appends bytes.
    fn extend_from_slice(&mut self, text: &[u8]);
    /// To be called after `_done` bytes of a long text. True if the rest is not wanted: an error ended the answer.
    fn is_over(&mut self, _done: usize) -> bool {
        false
    }
}

impl TextOut for Vec<u8> {
    #[inline(always)]
    fn push(&mut self, byte: u8) {
        self.push(byte);
    }

    #[inline(always)]
    fn extend_from_slice(&mut self, text: &[u8]) {
        self.extend_from_slice(text);
    }
}

/// Hands text on whenever a piece is full.
pub(crate) struct Pieces<'o, 'h> {
    buffer: &'o mut Vec<u8>,
    hand_on: &'o mut HandOn<'h>,
    failed: Option<Error>,
}

impl<'o, 'h> Pieces<'o, 'h> {
    /// Continues the piece in `buffer`.
    pub(crate) fn new(buffer: &'o mut Vec<u8>, hand_on: &'o mut HandOn<'h>) -> Self {
        Self {
            buffer,
            hand_on,
            failed: None,
        }
    }

    /// The first error since the last call.
    pub(crate) fn outcome(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    fn hand_on_if_full(&mut self) {
        if self.buffer.len() >= FULL {
            self.failed = (self.hand_on)(self.buffer).err();
        }
    }
}

impl TextOut for Pieces<'_, '_> {
    fn push(&mut self, byte: u8) {
        if self.failed.is_none() {
            self.buffer.push(byte);
            self.hand_on_if_full();
        }
    }

    fn extend_from_slice(&mut self, text: &[u8]) {
        for block in text.chunks(BLOCK) {
            if self.is_over(block.len()) {
                return;
            }
            self.buffer.extend_from_slice(block);
            self.hand_on_if_full();
        }
    }

    fn is_over(&mut self, done: usize) -> bool {
        if self.failed.is_none() {
            self.failed = worked(done).err();
        }
        self.failed.is_some()
    }
}

/// Copies a text, with what `escape` makes of the bytes that `special` finds. `escape` gets the rest of the text from
/// such a byte on.
#[inline]
pub(super) fn push_escaped<T: TextOut>(
    text: &[u8],
    special: impl Fn(&[u8]) -> Option<usize>,
    mut escape: impl FnMut(&[u8], &mut T),
    out: &mut T,
) {
    let mut rest = text;
    loop {
        let block = &rest[..rest.len().min(BLOCK)];
        let taken = match special(block) {
            Some(at) => {
                out.extend_from_slice(&rest[..at]);
                escape(&rest[at..], out);
                at + 1
            }
            None => {
                out.extend_from_slice(block);
                block.len()
            }
        };
        rest = &rest[taken..];
        if rest.is_empty() || out.is_over(taken) {
            return;
        }
    }
}

/// True if `special` finds a byte.
pub(super) fn has_special<T: TextOut>(
    text: &[u8],
    special: impl Fn(&[u8]) -> Option<usize>,
    out: &mut T,
) -> bool {
    if text.len() <= BLOCK {
        return special(text).is_some();
    }
    text.chunks(BLOCK)
        .any(|block| special(block).is_some() || out.is_over(BLOCK))
}
