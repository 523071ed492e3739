//! Encodings of XML documents: detection by the first bytes and the declaration, and conversion to UTF-8.

use encoding_rs::{DecoderResult, Encoding};

/// Family of encodings, which can be told from the first four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// UTF-8 with a byte order mark.
    Utf8Marked,
    /// ASCII characters are single bytes, so the declaration can be read and names the encoding.
    Ascii,
    Utf16Le,
    Utf16Be,
}

/// The family, and the length of the byte order mark. `head` needs at most four bytes. An error completes the sentence
/// "the document …".
pub(crate) fn family(head: &[u8]) -> Result<(Family, usize), &'static str> {
    Ok(match head {
        [0, 0, 0xFE, 0xFF, ..] | [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0, b'<', ..] => {
            return Err("is in UTF-32, which is not supported: expected UTF-8 or UTF-16");
        }
        [0x4C, 0x6F, 0xA7, 0x94, ..] => {
            return Err("is in EBCDIC, which is not supported: expected UTF-8 or UTF-16");
        }
        [0xEF, 0xBB, 0xBF, ..] => (Family::Utf8Marked, 3),
        [0xFE, 0xFF, ..] => (Family::Utf16Be, 2),
        [0xFF, 0xFE, ..] => (Family::Utf16Le, 2),
        [0, b'<', ..] => (Family::Utf16Be, 0),
        [b'<', 0, ..] => (Family::Utf16Le, 0),
        _ => (Family::Ascii, 0),
    })
}

/// Decodes a document's bytes to UTF-8 incrementally.
pub(crate) enum DocumentDecoder {
    Utf8,
    /// A table with one character per byte, U+FFFD for undefined bytes.
    Single(Box<[char; 256]>),
    /// Little-endian or big-endian.
    Utf16 {
        little: bool,
    },
    /// A decoder for another encoding. `None` after the end of the input, when it must not be used any more.
    Other(Option<Box<encoding_rs::Decoder>>),
}

/// The reason why a declared encoding cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    Unknown,
    /// The document's first bytes show that it is in another encoding.
    Contradicted,
}

/// True if a label in lower case names UTF-16.
fn is_utf16(label: &str) -> bool {
    let names = [
        "utf-16",
        "utf16",
        "utf-16le",
        "utf-16be",
        "iso-10646-ucs-2",
        "ucs-2",
        "unicode",
        "csunicode",
    ];
    names.contains(&label)
}

/// Outcome of decoding some bytes.
pub(crate) struct DecodeOutcome {
    /// Number of bytes consumed. The bytes after them need more input.
    pub(crate) taken: usize,
    /// True if the bytes after those consumed are not valid in this encoding.
    pub(crate) malformed: bool,
}

impl DocumentDecoder {
    /// The decoder for a document whose encoding was given from outside. A byte order mark takes precedence. `None` for
    /// an unknown encoding.
    pub(crate) fn told(family: Family, marked: bool, label: &str) -> Option<Self> {
        let little = family == Family::Utf16Le;
        if marked {
            return Some(match family {
                Family::Utf16Le | Family::Utf16Be => Self::Utf16 { little },
                _ => Self::Utf8,
            });
        }
        let label = label.to_ascii_lowercase();
        match label.as_str() {
            "utf-16le" => Some(Self::Utf16 { little: true }),
            // Without a mark, UTF-16 is big-endian (RFC 2781), unless the first character `<` shows otherwise.
            l if is_utf16(l) => Some(Self::Utf16 {
                little: little && l != "utf-16be",
            }),
            l => Self::by_label(l).ok(),
        }
    }

    /// The decoder for a document of this family, with the encoding that it declares, if it declares one.
    pub(crate) fn new(family: Family, declared: Option<&str>) -> Result<Self, Unfit> {
        let label = declared.map(str::to_ascii_lowercase);
        let label = label.as_deref();
        match family {
            Family::Utf8Marked => match label {
                None | Some("utf-8" | "utf8") => Ok(Self::Utf8),
                Some(_) => Err(Unfit::Contradicted),
            },
            Family::Utf16Le | Family::Utf16Be => {
                let little = family == Family::Utf16Le;
                match label {
                    Some("utf-16le") if !little => Err(Unfit::Contradicted),
                    Some("utf-16be") if little => Err(Unfit::Contradicted),
                    Some(l) if !is_utf16(l) => Err(Unfit::Contradicted),
                    _ => Ok(Self::Utf16 { little }),
                }
            }
            Family::Ascii => match label {
                None | Some("utf-8" | "utf8") => Ok(Self::Utf8),
                Some(l) if is_utf16(l) => Err(Unfit::Contradicted),
                Some(l) => Self::by_label(l),
            },
        }
    }

    /// The decoder for the label, in lower case, of an encoding in which ASCII characters are single bytes.
    fn by_label(label: &str) -> Result<Self, Unfit> {
        // `encoding_rs` follows browsers, for which ISO-8859-1, -9 and -11 and US-ASCII are names of Windows code
        // pages. These have characters where the ISO encodings have control characters or nothing, so the latter are
        // decoded here.
        let ascii = [
            "us-ascii",
            "ascii",
            "iso646-us",
            "iso_646.irv:1991",
            "ansi_x3.4-1968",
            "ansi_x3.4-1986",
            "iso-ir-6",
            "us",
            "ibm367",
            "cp367",
            "csascii",
        ];
        if ascii.contains(&label) {
            let mut table = Box::new(['\u{FFFD}'; 256]);
            for (code, c) in (0..128u8).zip(table.iter_mut()) {
                *c = char::from(code);
            }
            return Ok(Self::Single(table));
        }
        let encoding = Encoding::for_label(label.as_bytes()).ok_or(Unfit::Unknown)?;
        let is_replaced = encoding == encoding_rs::REPLACEMENT
            || encoding == encoding_rs::UTF_16LE
            || encoding == encoding_rs::UTF_16BE;
        if is_replaced {
            return Err(Unfit::Unknown);
        }
        if encoding == encoding_rs::UTF_8 {
            return Ok(Self::Utf8);
        }
        if !encoding.is_single_byte() {
            return Ok(Self::Other(Some(Box::new(
                encoding.new_decoder_without_bom_handling(),
            ))));
        }
        let is_windows = label.contains("windows")
            || label.contains("cp125")
            || label.contains("874") && !label.contains("8859");
        let has_controls = !is_windows
            && (encoding == encoding_rs::WINDOWS_1252
                || encoding == encoding_rs::WINDOWS_1254
                || encoding == encoding_rs::WINDOWS_874);
        let mut table = Box::new(['\u{FFFD}'; 256]);
        for (code, c) in (0..=255u8).zip(table.iter_mut()) {
            if has_controls && (0x80..0xA0).contains(&code) {
                *c = char::from(code);
                continue;
            }
            let one = [code];
            if let Some(text) = encoding.decode_without_bom_handling_and_without_replacement(&one) {
                *c = text.chars().next().unwrap_or('\u{FFFD}');
            }
        }
        Ok(Self::Single(table))
    }

    /// Decodes `raw` and appends the text to `out`. `last` is true if no input follows.
    pub(crate) fn decode(&mut self, raw: &[u8], last: bool, out: &mut String) -> DecodeOutcome {
        let (taken, malformed) = match self {
            Self::Utf8 => match std::str::from_utf8(raw) {
                Ok(text) => {
                    out.push_str(text);
                    (raw.len(), false)
                }
                Err(e) => {
                    let taken = e.valid_up_to();
                    if let Some(text) = raw.get(..taken).and_then(|r| std::str::from_utf8(r).ok()) {
                        out.push_str(text);
                    }
                    (taken, e.error_len().is_some() || last)
                }
            },
            Self::Single(table) => {
                let chars = raw.iter().map(|&b| table[b as usize]);
                let taken = chars.clone().take_while(|c| *c != '\u{FFFD}').count();
                out.extend(chars.take(taken));
                (taken, taken < raw.len())
            }
            Self::Utf16 { little } => decode_utf16(raw, *little, last, out),
            Self::Other(slot) => match slot {
                None => (raw.len(), !raw.is_empty()),
                Some(decoder) => {
                    let need = decoder.max_utf8_buffer_length_without_replacement(raw.len());
                    out.reserve(need.unwrap_or(raw.len().saturating_mul(3)));
                    let (result, taken) =
                        decoder.decode_to_string_without_replacement(raw, out, last);
                    if last && result == DecoderResult::InputEmpty {
                        *slot = None;
                    }
                    (taken, matches!(result, DecoderResult::Malformed(..)))
                }
            },
        };
        DecodeOutcome { taken, malformed }
    }

    /// Number of bytes of the document for a decoded text; the length in UTF-8 if that cannot be computed.
    pub(crate) fn bytes_of(&self, text: &str) -> u64 {
        (match self {
            Self::Utf8 | Self::Other(_) => text.len(),
            Self::Single(_) => text.chars().count(),
            Self::Utf16 { .. } => text.chars().map(char::len_utf16).sum::<usize>() * 2,
        }) as u64
    }

    /// The encoding's name for messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16 { .. } => "UTF-16",
            Self::Single(_) | Self::Other(_) => "text in the encoding that it declares",
        }
    }
}

/// Returns the parts of a [`DecodeOutcome`].
fn decode_utf16(raw: &[u8], little: bool, last: bool, out: &mut String) -> (usize, bool) {
    let (units, rest) = raw.as_chunks::<2>();
    let unit = |pair: &[u8; 2]| match little {
        true => u16::from_le_bytes(*pair),
        false => u16::from_be_bytes(*pair),
    };
    let mut taken = 0;
    for decoded in char::decode_utf16(units.iter().map(unit)) {
        match decoded {
            Ok(c) => {
                out.push(c);
                taken += 2 * c.len_utf16();
            }
            Err(_) => {
                // The last unit is the first half of a surrogate pair, whose second half may come with more input.
                let waits = taken + 2 == units.len() * 2
                    && units
                        .last()
                        .is_some_and(|u| (0xD800..0xDC00).contains(&unit(u)));
                return (taken, last || !waits);
            }
        }
    }
    (taken, last && !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(label: &str, raw: &[u8]) -> Option<String> {
        let mut decoder = DocumentDecoder::new(Family::Ascii, Some(label)).ok()?;
        let mut out = String::new();
        let end = decoder.decode(raw, true, &mut out);
        (!end.malformed && end.taken == raw.len()).then_some(out)
    }

    #[test]
    fn labels_mean_what_they_say() {
        assert_eq!(
            decoded("ISO-8859-1", b"\xE9\x85").as_deref(),
            Some("é\u{85}")
        );
        assert_eq!(decoded("latin1", b"\x80").as_deref(), Some("\u{80}"));
        assert_eq!(decoded("windows-1252", b"\x80").as_deref(), Some("€"));
        assert_eq!(decoded("cp1252", b"\x80").as_deref(), Some("€"));
        assert_eq!(decoded("ISO-8859-15", b"\xA4").as_deref(), Some("€"));
        assert_eq!(
            decoded("ISO-8859-9", b"\xFD\x90").as_deref(),
            Some("ı\u{90}")
        );
        assert_eq!(decoded("KOI8-R", b"\xC1").as_deref(), Some("а"));
        assert_eq!(decoded("Shift_JIS", b"\x82\xA0").as_deref(), Some("あ"));
        assert_eq!(decoded("EUC-JP", b"\xA4\xA2").as_deref(), Some("あ"));
        assert_eq!(decoded("US-ASCII", b"a\x80"), None);
        assert_eq!(decoded("Shift_JIS", b"\x82"), None);
        assert_eq!(decoded("UTF-8", b"\xED\xA0\x80"), None);
        for unknown in ["utf-7", "x-none", "utf-16", "iso-2022-kr", "hz-gb-2312"] {
            assert!(
                DocumentDecoder::new(Family::Ascii, Some(unknown)).is_err(),
                "{unknown}"
            );
        }
    }

    #[test]
    fn utf16_waits_for_the_other_half() {
        let text = "a𝄞é";
        for little in [true, false] {
            let raw: Vec<u8> = text
                .encode_utf16()
                .flat_map(|u| {
                    if little {
                        u.to_le_bytes()
                    } else {
                        u.to_be_bytes()
                    }
                })
                .collect();
            for cut in 0..=raw.len() {
                let mut out = String::new();
                let mut decoder = DocumentDecoder::Utf16 { little };
                let first = decoder.decode(&raw[..cut], false, &mut out);
                assert!(!first.malformed, "{cut}");
                let second = decoder.decode(&raw[first.taken..], true, &mut out);
                assert!(!second.malformed && out == text, "{cut}");
                let mut out = String::new();
                let alone = decoder.decode(&raw[..cut], true, &mut out);
                assert_eq!(alone.malformed, ![0, 2, 6, 8].contains(&cut), "{cut}");
            }
        }
        let mut out = String::new();
        let lone = [0xDC, 0x00, 0x00, 0x41];
        assert!(
            DocumentDecoder::Utf16 { little: false }
                .decode(&lone, false, &mut out)
                .malformed
        );
    }
}
