//! Literals as in real data: with errors and unusual forms.

use super::words::{LANGUAGES, push_name, push_text};
use crate::decimal::{push, push_padded};
use crate::random::SplitMix;
use jindou_model::term::{LANG, STRING, TYPED};

/// The kind of literals that a predicate has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LiteralKind {
    /// Integers of several datatypes, with several lexical forms of the same value.
    Integer,
    Decimal,
    /// `xsd:double` and `xsd:float`, including NaN and infinities.
    Double,
    /// Dates, times, years.
    Date,
    /// A short string in a language.
    Label,
    /// Some sentences in a language.
    Text,
    /// A string without a language.
    Plain,
    /// Booleans, and literals of user-defined datatypes.
    Other,
    /// Literals of all other kinds, as in a table that people filled in by hand.
    Dirty,
}

// Codes of `jindou_model::term::DATATYPES`; a test compares them.
const INTEGER: u8 = 0x80;
const DECIMAL: u8 = 0x81;
const DOUBLE: u8 = 0x82;
const FLOAT: u8 = 0x83;
const INT: u8 = 0x84;
const LONG: u8 = 0x85;
const NON_NEGATIVE: u8 = 0x88;
const BOOLEAN: u8 = 0x90;
const DATE_TIME: u8 = 0x91;
const DATE: u8 = 0x92;
const TIME: u8 = 0x93;
const YEAR: u8 = 0x94;
const YEAR_MONTH: u8 = 0x95;

/// Length of the longest literal, in bytes.
pub const LONGEST_LITERAL: usize = 64 << 10;

/// Appends the canonical bytes of a random literal.
pub(super) fn push_literal(kind: LiteralKind, random: &mut SplitMix, out: &mut Vec<u8>) {
    match kind {
        LiteralKind::Integer => integer(random, out),
        LiteralKind::Decimal => decimal(random, out),
        LiteralKind::Double => double(random, out),
        LiteralKind::Date => date(random, out),
        LiteralKind::Label => {
            let language = LANGUAGES[random.zipf(LANGUAGES.len() as u32) as usize];
            label(random, language, out);
        }
        LiteralKind::Text => text(random, out),
        LiteralKind::Plain => plain(random, out),
        LiteralKind::Other => other(random, out),
        LiteralKind::Dirty => {
            let kinds = [
                LiteralKind::Integer,
                LiteralKind::Decimal,
                LiteralKind::Date,
                LiteralKind::Label,
                LiteralKind::Plain,
                LiteralKind::Other,
            ];
            push_literal(*random.pick(&kinds), random, out);
        }
    }
}

/// A number up to ten million by Zipf's law: small numbers are frequent.
fn magnitude(random: &mut SplitMix) -> u64 {
    random.zipf(10_000_000).into()
}

fn integer(random: &mut SplitMix, out: &mut Vec<u8>) {
    let style = random.below(256);
    let negative = random.chance(1, 16);
    out.push(match style {
        0..=31 => INT,
        32..=47 => LONG,
        48..=79 if !negative => NON_NEGATIVE,
        _ => INTEGER,
    });
    if style == 255 && random.chance(1, 2) {
        // An ill-typed literal, as in real data.
        out.extend_from_slice(b"n/a");
        return;
    }
    let value = magnitude(random);
    if negative {
        out.push(b'-');
    } else if style.is_multiple_of(40) {
        out.push(b'+');
    }
    push_padded(
        out,
        value,
        if style.is_multiple_of(16) {
            2 + style as usize / 64
        } else {
            1
        },
    );
}

fn decimal(random: &mut SplitMix, out: &mut Vec<u8>) {
    out.push(DECIMAL);
    if random.chance(1, 16) {
        out.push(b'-');
    }
    let value = magnitude(random) / 16;
    push(out, value);
    match random.below(8) {
        0 => {}
        1 => out.extend_from_slice(b".0"),
        2 => out.extend_from_slice(b".50"),
        digits => {
            out.push(b'.');
            let digits = (digits as usize).min(4);
            push_padded(out, random.below(10u32.pow(digits as u32)).into(), digits);
        }
    }
}

fn double(random: &mut SplitMix, out: &mut Vec<u8>) {
    out.push(if random.chance(1, 4) { FLOAT } else { DOUBLE });
    match random.below(200) {
        0 => out.extend_from_slice(b"NaN"),
        1 => out.extend_from_slice(b"INF"),
        2 => out.extend_from_slice(b"-INF"),
        3 => out.extend_from_slice(b"-0.0E0"),
        4..=60 => {
            // Different lexical forms of one value, such as 1.5E3, 1.5e3 and 1.50E03.
            push(out, random.range(1, 9).into());
            out.push(b'.');
            push_padded(out, random.below(1000).into(), 1 + random.below(3) as usize);
            out.push(if random.chance(1, 3) { b'e' } else { b'E' });
            if random.chance(1, 3) {
                out.push(b'-');
            }
            push_padded(out, random.below(12).into(), 1 + random.below(2) as usize);
        }
        _ => {
            if random.chance(1, 3) {
                out.push(b'-');
            }
            push(out, random.below(180).into());
            out.push(b'.');
            push_padded(out, random.below(1_000_000).into(), 6);
        }
    }
}

fn year(random: &mut SplitMix, out: &mut Vec<u8>) {
    match random.below(100) {
        0 => {
            out.push(b'-');
            push_padded(out, random.range(1, 800).into(), 4);
        }
        1..=9 => push_padded(out, random.range(1, 1899).into(), 4),
        _ => push_padded(out, (2024 - random.zipf(124)).into(), 4),
    }
}

fn date(random: &mut SplitMix, out: &mut Vec<u8>) {
    let tag = match random.below(32) {
        0..=15 => DATE,
        16..=24 => DATE_TIME,
        25..=29 => YEAR,
        30 => YEAR_MONTH,
        _ => TIME,
    };
    out.push(tag);
    if tag == DATE && random.chance(1, 400) {
        out.extend_from_slice(b"0000-00-00");
        return;
    }
    if tag != TIME {
        year(random, out);
    }
    if matches!(tag, DATE | DATE_TIME | YEAR_MONTH) {
        out.push(b'-');
        push_padded(out, random.range(1, 12).into(), 2);
    }
    if matches!(tag, DATE | DATE_TIME) {
        out.push(b'-');
        push_padded(out, random.range(1, 28).into(), 2);
    }
    if tag == DATE_TIME {
        out.push(b'T');
    }
    if matches!(tag, DATE_TIME | TIME) {
        push_padded(out, random.below(24).into(), 2);
        out.push(b':');
        push_padded(out, random.below(60).into(), 2);
        out.push(b':');
        push_padded(out, random.below(60).into(), 2);
        if random.chance(1, 4) {
            out.push(b'.');
            push_padded(out, random.below(1000).into(), 3);
        }
    }
    let zoned = if matches!(tag, DATE_TIME | TIME) {
        4
    } else {
        1
    };
    if random.chance(zoned, 8) {
        out.extend_from_slice(
            random
                .pick(&["Z", "Z", "+00:00", "+02:00", "-05:00", "+05:30"])
                .as_bytes(),
        );
    }
}

fn begin_language(language: &str, out: &mut Vec<u8>) {
    out.push(LANG);
    out.extend_from_slice(language.as_bytes());
    out.push(0);
}

/// A name in a language; one in three is a proper name, which has the same spelling in all languages.
pub(super) fn label(random: &mut SplitMix, language: &str, out: &mut Vec<u8>) {
    begin_language(language, out);
    if random.chance(1, 3) {
        push_name(random, out);
    } else {
        let words = 1 + random.zipf(4);
        push_text(random, language, words, out);
    }
    spice(random, out);
}

fn text(random: &mut SplitMix, out: &mut Vec<u8>) {
    let language = LANGUAGES[random.zipf(LANGUAGES.len() as u32) as usize];
    begin_language(language, out);
    if random.chance(1, 1000) {
        long(random, language, out);
    } else {
        let words = random.range(3, 24);
        push_text(random, language, words, out);
        out.push(b'.');
    }
    spice(random, out);
}

fn plain(random: &mut SplitMix, out: &mut Vec<u8>) {
    out.push(STRING);
    match random.below(1024) {
        0..=199 => {
            // Codes such as those of products.
            push_name(random, out);
            out.push(b'-');
            push(out, magnitude(random));
        }
        200..=399 => push(out, magnitude(random)),
        400..=409 => {}
        410 => long(random, "en", out),
        _ => {
            let words = 1 + random.zipf(6);
            let language = if random.chance(1, 4) { "fr" } else { "en" };
            push_text(random, language, words, out);
        }
    }
    spice(random, out);
}

/// A text of 1 KiB to 64 KiB; all orders of magnitude are equally likely.
fn long(random: &mut SplitMix, language: &str, out: &mut Vec<u8>) {
    let start = out.len();
    let least = 1u32 << random.range(10, 15);
    // Leaves space for one more word, and for the bytes that `spice` adds.
    let length = (least + random.below(least)) as usize;
    let length = length.min(LONGEST_LITERAL - 256);
    while out.len() - start < length {
        push_text(random, language, 4, out);
        out.push(b'\n');
    }
}

/// Adds characters that need escapes or special care to one string in 40.
fn spice(random: &mut SplitMix, out: &mut Vec<u8>) {
    if random.chance(1, 40) {
        let odd = [
            " \"quoted\"",
            "\\",
            " C:\\new\\table",
            "\n",
            "\t",
            "\r\n",
            " 😀",
            " e\u{301}",
            "\u{200D}",
            " ",
            "\u{A0}",
            " <b>",
            " & ",
            "\u{7F}",
            "'",
        ];
        out.extend_from_slice(random.pick(&odd).as_bytes());
    }
}

fn other(random: &mut SplitMix, out: &mut Vec<u8>) {
    if random.chance(1, 2) {
        out.push(BOOLEAN);
        out.extend_from_slice(random.pick(&["true", "true", "false", "1", "0"]).as_bytes());
        return;
    }
    out.push(TYPED);
    out.extend_from_slice(b"http://ugly.example/datatype/");
    out.extend_from_slice(
        random
            .pick(&["squareKilometre", "kilogram", "euro", "usDollar", "kelvin"])
            .as_bytes(),
    );
    out.push(0);
    push(out, magnitude(random));
    if random.chance(1, 2) {
        out.extend_from_slice(b".0");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jindou_model::term::datatype_code;

    #[test]
    fn tags_are_those_of_the_model() {
        for (name, tag) in [
            ("integer", INTEGER),
            ("decimal", DECIMAL),
            ("double", DOUBLE),
            ("float", FLOAT),
            ("int", INT),
            ("long", LONG),
            ("nonNegativeInteger", NON_NEGATIVE),
            ("boolean", BOOLEAN),
            ("dateTime", DATE_TIME),
            ("date", DATE),
            ("time", TIME),
            ("gYear", YEAR),
            ("gYearMonth", YEAR_MONTH),
        ] {
            let iri = format!("http://www.w3.org/2001/XMLSchema#{name}");
            assert_eq!(datatype_code(&iri), Some(tag));
        }
    }
}
