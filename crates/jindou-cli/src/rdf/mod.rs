//! RDF written to files: formats, compression, prefixes.

mod file;
mod writer;

pub use file::OutFile;
pub use writer::{NamedGraphs, QuadWriter};

use jindou::{Error, RdfFormat, Result};
use jindou_parse::Format;
use oxrdfio::JsonLdProfileSet;
use std::path::Path;

/// Compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputCompression {
    Gzip,
    Bzip2,
    Xz,
    Zstd,
}

/// Format and compression that a file's name indicates.
fn named(path: &Path) -> (Option<Format>, Option<OutputCompression>) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some((stem, last)) = name.rsplit_once('.') else {
        return (None, None);
    };
    let compression = match last.to_ascii_lowercase().as_str() {
        "gz" | "gzip" => Some(OutputCompression::Gzip),
        "bz2" => Some(OutputCompression::Bzip2),
        "xz" => Some(OutputCompression::Xz),
        "zst" | "zstd" => Some(OutputCompression::Zstd),
        _ => return (Format::from_extension(last), None),
    };
    let inner = stem.rsplit_once('.').map(|(_, e)| e);
    (inner.and_then(Format::from_extension), compression)
}

/// The format in which to write a file: the requested one, or the one that the file's name indicates.
///
/// # Errors
/// [`Error::Limit`] if the name indicates no format and none was requested.
pub fn format_for(out: &Path, asked: Option<Format>) -> Result<Option<Format>> {
    let found = asked.or(named(out).0);
    if found.is_none() && out.as_os_str() != "-" {
        return Err(Error::Usage(format!(
            "{}: cannot tell the RDF format from the name; choose one with --to nt|nq|ttl|trig|rdf|jsonld",
            out.display()
        )));
    }
    Ok(found)
}

/// True if a format has named graphs.
pub fn has_graphs(format: Format) -> bool {
    matches!(format, Format::NQuads | Format::TriG | Format::JsonLd)
}

fn rdf_format(format: Format) -> RdfFormat {
    match format {
        Format::NTriples => RdfFormat::NTriples,
        Format::NQuads => RdfFormat::NQuads,
        Format::Turtle => RdfFormat::Turtle,
        Format::RdfXml => RdfFormat::RdfXml,
        Format::JsonLd => RdfFormat::JsonLd {
            profile: JsonLdProfileSet::empty(),
        },
        _ => RdfFormat::TriG,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_format_and_compression() {
        let of = |n: &str| named(Path::new(n));
        assert_eq!(of("a/b.nt"), (Some(Format::NTriples), None));
        assert_eq!(
            of("b.v2.TTL.gz"),
            (Some(Format::Turtle), Some(OutputCompression::Gzip))
        );
        assert_eq!(of("x.zst"), (None, Some(OutputCompression::Zstd)));
        assert_eq!(of("README"), (None, None));
        assert!(format_for(Path::new("x"), None).is_err());
        assert_eq!(format_for(Path::new("-"), None).unwrap(), None);
        let asked = format_for(Path::new("x.nt"), Some(Format::TriG)).unwrap();
        assert_eq!(asked, Some(Format::TriG));
    }
}
