//! Functions of long texts, computed block by block, so that the query's limits are checked between blocks and no
//! second copy of the text is needed.

use super::{ArenaSpan, ArenaText, Row, Val};

/// Size of a block in bytes.
const BLOCK: usize = 1 << 14;

/// Applies `map` to the blocks of a text; the language tag is kept. `splits` tells, for the bytes before and after a
/// position, whether blocks may be separated there.
pub(super) fn mapped<R: Row>(
    row: &mut R,
    t: ArenaText,
    map: impl Fn(&str) -> String,
    splits: impl Fn(u8, u8) -> bool,
) -> Option<Val> {
    let end = t.text.end;
    if (end - t.text.start) as usize <= BLOCK {
        let changed = map(row.str(t.text));
        return Some(row.make(changed.as_bytes(), t.lang));
    }
    let mut made = row.push(&[]);
    let mut start = t.text.start;
    while start < end {
        let rest = row.bytes(ArenaSpan { start, end });
        let split = rest
            .windows(2)
            .skip(BLOCK - 1)
            .position(|pair| splits(pair[0], pair[1]))
            .map_or(end, |at| start + (at + BLOCK) as u32);
        // `map` is this many times slower than copying.
        if !row.worked(8 * (split - start) as usize) {
            return None;
        }
        let changed = map(row.str(ArenaSpan { start, end: split }));
        made.end = row.push(changed.as_bytes()).end;
        start = split;
    }
    Some(Val::Text(ArenaText {
        text: made,
        lang: t.lang,
    }))
}

/// True if a character begins at the second byte.
pub(super) fn between_characters(_: u8, after: u8) -> bool {
    after & 0xC0 != 0x80
}

/// True if changing the case of the text before this position does not depend on the text after it, nor the other way
/// round. (A capital sigma at the end of a word has a lower case of its own; Unicode, table 3-17.)
pub(super) fn between_contexts(before: u8, after: u8) -> bool {
    let ends = before.is_ascii_whitespace() || before.is_ascii_digit();
    (ends && between_characters(before, after))
        || (before.is_ascii_alphanumeric() && after.is_ascii_alphanumeric())
}

/// Position of the first occurrence of `part` in `text`, in bytes; `None` if there is none.
pub(super) fn find<R: Row>(row: &mut R, text: ArenaSpan, part: ArenaSpan) -> Option<usize> {
    let (length, sought) = (text.end - text.start, part.end - part.start);
    let step = (BLOCK as u32).max(sought);
    if length <= step.saturating_mul(2) {
        return row.str(text).find(row.str(part));
    }
    let mut start = text.start;
    loop {
        // Adjacent windows overlap by the length of `part`, so that every occurrence is inside one of them.
        let window = ArenaSpan {
            start,
            end: text
                .end
                .min(start.saturating_add(step).saturating_add(sought)),
        };
        if !row.worked(4 * (window.end - start) as usize) {
            return None;
        }
        let window = characters_of(row, window, text);
        if let Some(at) = row.str(window).find(row.str(part)) {
            return Some((window.start - text.start) as usize + at);
        }
        if window.end == text.end {
            return None;
        }
        start += step;
    }
}

/// A range of bytes of a text, extended to whole characters.
fn characters_of<R: Row>(row: &R, range: ArenaSpan, text: ArenaSpan) -> ArenaSpan {
    let bytes = row.bytes(text);
    let is_inside = |at: u32| {
        let byte = bytes.get((at - text.start) as usize);
        byte.is_some_and(|b| b & 0xC0 == 0x80)
    };
    let ArenaSpan { mut start, mut end } = range;
    while start > text.start && is_inside(start) {
        start -= 1;
    }
    while is_inside(end) {
        end += 1;
    }
    ArenaSpan { start, end }
}

/// Byte offset of a character of a text, counted from 0; the text's length if it has fewer characters.
pub(super) fn offset<R: Row>(row: &mut R, text: ArenaSpan, character: i64) -> usize {
    let mut left = usize::try_from(character.max(0)).unwrap_or(usize::MAX);
    for start in (text.start..text.end).step_by(BLOCK) {
        let end = text.end.min(start.saturating_add(BLOCK as u32));
        if end - start == BLOCK as u32 && !row.worked(BLOCK) {
            break;
        }
        let bytes = row.bytes(ArenaSpan { start, end });
        let begins = |b: &u8| b & 0xC0 != 0x80;
        let count = bytes.iter().filter(|&b| begins(b)).count();
        if count > left {
            let mut beginnings = (0..).zip(bytes).filter(|(_, b)| begins(b));
            let at = beginnings.nth(left).map_or(0, |(at, _)| at);
            return (start - text.start) as usize + at;
        }
        left -= count;
    }
    (text.end - text.start) as usize
}

/// The number of characters of a text.
pub(super) fn characters<R: Row>(row: &mut R, text: ArenaSpan) -> usize {
    let mut count = 0;
    for start in (text.start..text.end).step_by(BLOCK) {
        let end = text.end.min(start.saturating_add(BLOCK as u32));
        if end - start == BLOCK as u32 && !row.worked(BLOCK) {
            break;
        }
        let bytes = row.bytes(ArenaSpan { start, end });
        count += bytes.iter().filter(|&&b| b & 0xC0 != 0x80).count();
    }
    count
}
