//! Syntax and compression of a file: determined by its name, and for compression by its first bytes.

use oxrdfio::RdfFormat;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A syntax of RDF that can be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// N-Triples (`.nt`).
    NTriples,
    /// N-Quads (`.nq`).
    NQuads,
    /// Turtle (`.ttl`, and `.n3`: such files nearly always stay within the Turtle subset of N3).
    Turtle,
    /// TriG (`.trig`).
    TriG,
    /// RDF/XML (`.rdf`, `.xml`, `.owl`, `.rdfs`).
    RdfXml,
    /// JSON-LD (`.jsonld`, `.json`).
    JsonLd,
}

impl Format {
    /// All formats, in the order in which help texts list them.
    pub const ALL: &'static [Self] = &[
        Self::NTriples,
        Self::NQuads,
        Self::Turtle,
        Self::TriG,
        Self::RdfXml,
        Self::JsonLd,
    ];

    /// The format of a file extension (without the dot, any case).
    #[must_use]
    pub fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension.to_ascii_lowercase().as_str() {
            "nt" | "ntriples" => Self::NTriples,
            "nq" | "nquads" => Self::NQuads,
            "ttl" | "turtle" | "n3" => Self::Turtle,
            "trig" => Self::TriG,
            "rdf" | "xml" | "owl" | "rdfs" | "rdfxml" => Self::RdfXml,
            "jsonld" | "json" => Self::JsonLd,
            _ => return None,
        })
    }

    /// The format of a media type such as `text/turtle; charset=utf-8`. `None` also for an encoding other than UTF-8,
    /// except for XML ([`Format::charset`]).
    #[must_use]
    pub fn from_media_type(media_type: &str) -> Option<Self> {
        let bare = media_type.split(';').next().unwrap_or_default();
        if RdfFormat::from_media_type(bare) == Some(RdfFormat::RdfXml) {
            return Some(Self::RdfXml);
        }
        Some(match RdfFormat::from_media_type(media_type)? {
            RdfFormat::NTriples => Self::NTriples,
            RdfFormat::NQuads => Self::NQuads,
            RdfFormat::Turtle => Self::Turtle,
            RdfFormat::TriG => Self::TriG,
            RdfFormat::RdfXml => Self::RdfXml,
            RdfFormat::JsonLd { .. } => Self::JsonLd,
            _ => return None,
        })
    }

    /// The format of a document, given its media type and the format that its name suggests. The media type decides,
    /// unless it is one that servers use for any text (`text/plain`, `application/json`, `application/xml`, `text/xml`)
    /// and the name is more specific.
    #[must_use]
    pub fn of_document(media_type: &str, by_name: Option<Self>) -> Option<Self> {
        let bare = media_type.split(';').next().unwrap_or_default().trim();
        let is_general = [
            "text/plain",
            "application/json",
            "application/xml",
            "text/xml",
        ]
        .iter()
        .any(|general| bare.eq_ignore_ascii_case(general));
        let by_media = Self::from_media_type(media_type);
        match is_general {
            true => by_name.or(by_media),
            false => by_media.or(by_name),
        }
    }

    /// The parameter `charset` of a media type such as `application/rdf+xml; charset=utf-8`.
    #[must_use]
    pub fn charset(media_type: &str) -> Option<String> {
        let mut parameters = media_type.split(';').skip(1);
        let value = parameters.find_map(|p| {
            let (name, value) = p.split_once('=')?;
            let found = name.trim().eq_ignore_ascii_case("charset");
            found.then(|| value.trim().trim_matches(['"', '\'']).trim())
        })?;
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// The name of the format in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NTriples => "N-Triples",
            Self::NQuads => "N-Quads",
            Self::Turtle => "Turtle",
            Self::TriG => "TriG",
            Self::RdfXml => "RDF/XML",
            Self::JsonLd => "JSON-LD",
        }
    }

    /// True for the formats whose statements end at a line end, so that several threads can parse one document.
    pub(crate) const fn is_line_format(self) -> bool {
        matches!(self, Self::NTriples | Self::NQuads)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    /// Reads a `--format` value: an extension (`ttl`), a name (`turtle`, `n-triples`) or a media type.
    fn from_str(s: &str) -> Result<Self, String> {
        let short: String = s.chars().filter(char::is_ascii_alphanumeric).collect();
        Self::from_extension(&short)
            .or_else(|| Self::from_media_type(s))
            .ok_or_else(|| {
                format!("unknown RDF format `{s}`, expected nt, nq, ttl, trig, rdf or jsonld")
            })
    }
}

/// Compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// RFC 1952.
    Gzip,
    /// The format of bzip2.
    Bzip2,
    /// The format of xz, with LZMA2.
    Xz,
    /// RFC 8878.
    Zstd,
}

impl Compression {
    /// Number of bytes at the beginning of an input that [`Self::from_magic`] needs.
    pub(crate) const MAGIC_LEN: usize = 6;

    pub(crate) fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension.to_ascii_lowercase().as_str() {
            "gz" | "gzip" => Self::Gzip,
            "bz2" => Self::Bzip2,
            "xz" => Self::Xz,
            "zst" | "zstd" => Self::Zstd,
            _ => return None,
        })
    }

    /// The compression indicated by the first bytes of an input. Valid RDF text begins with none of these signatures.
    pub(crate) fn from_magic(head: &[u8]) -> Option<Self> {
        match head {
            [0x1F, 0x8B, ..] => Some(Self::Gzip),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Self::Bzip2),
            [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        }
    }
}

/// The format and the compression that a file's name suggests.
#[must_use]
pub fn from_name(path: &Path) -> (Option<Format>, Option<Compression>) {
    let name = path
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default();
    let Some((stem, last)) = name.rsplit_once('.') else {
        return (None, None);
    };
    match Compression::from_extension(last) {
        Some(c) => (
            stem.rsplit_once('.')
                .and_then(|(_, e)| Format::from_extension(e)),
            Some(c),
        ),
        None => (Format::from_extension(last), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_format_and_compression() {
        let of = |n: &str| from_name(Path::new(n));
        assert_eq!(of("a/b.nt"), (Some(Format::NTriples), None));
        assert_eq!(
            of("b.v2.TTL.gz"),
            (Some(Format::Turtle), Some(Compression::Gzip))
        );
        assert_eq!(of("x.tar.gz"), (None, Some(Compression::Gzip)));
        assert_eq!(of("x.zst"), (None, Some(Compression::Zstd)));
        assert_eq!(of("README"), (None, None));
    }

    #[test]
    fn names_say_more_than_general_media_types() {
        let of = Format::of_document;
        let ttl = Some(Format::Turtle);
        assert_eq!(of("text/plain; charset=utf-8", ttl), ttl);
        assert_eq!(of("text/plain", None), Some(Format::NTriples));
        assert_eq!(
            of("Application/JSON", Some(Format::JsonLd)),
            Some(Format::JsonLd)
        );
        assert_eq!(of("application/n-triples", ttl), Some(Format::NTriples));
        assert_eq!(of("application/octet-stream", ttl), ttl);
        assert_eq!(of("text/html", None), None);
    }

    #[test]
    fn format_option_takes_names_extensions_and_media_types() {
        for (s, f) in [
            ("ttl", Format::Turtle),
            ("N-Triples", Format::NTriples),
            ("application/n-quads", Format::NQuads),
            ("rdf/xml", Format::RdfXml),
            ("JSON-LD", Format::JsonLd),
        ] {
            assert_eq!(s.parse(), Ok(f));
        }
        assert!("docx".parse::<Format>().is_err());
    }
}
