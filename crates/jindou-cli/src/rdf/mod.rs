//! RDF written to files: formats, compression, prefixes.

mod file;
mod writer;

pub use file::OutFile;
pub use writer::{NamedGraphs, QuadWriter};

use jindou::{Error, RdfFormat, Result};
use jindou_parse::{Format, from_name};
use oxrdfio::JsonLdProfileSet;
use std::path::Path;

/// The format in which to write a file: the requested one, or the one that the file's name indicates.
///
/// # Errors
/// [`Error::Limit`] if the name indicates no format and none was requested.
pub fn format_for(out: &Path, asked: Option<Format>) -> Result<Option<Format>> {
    let found = asked.or(from_name(out).0);
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
    fn the_format_is_the_asked_one_or_the_names() {
        assert!(format_for(Path::new("x"), None).is_err());
        assert_eq!(format_for(Path::new("-"), None).unwrap(), None);
        let asked = format_for(Path::new("x.nt"), Some(Format::TriG)).unwrap();
        assert_eq!(asked, Some(Format::TriG));
    }
}
