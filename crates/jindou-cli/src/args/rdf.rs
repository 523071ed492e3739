//! The command line of `jindou dump` and `jindou convert`.

use super::{Place, VerifyArg, parse_format};
use clap::Args as ClapArgs;
use jindou_model::units::parse_size;
use jindou_parse::Format;
use std::path::{Path, PathBuf};

#[derive(ClapArgs, Debug)]
pub struct Dump {
    #[command(flatten)]
    pub place: Place,
    #[command(flatten)]
    pub verify: VerifyArg,
    /// File to write (`-`: standard output). Its extension selects format and compression, as in all.nq.gz or all.trig.zst.
    #[arg(long, short, default_value = "-", value_name = "FILE")]
    pub out: PathBuf,
    /// Format to write, instead of by extension: nt, nq, ttl, trig, rdf, jsonld. Default on standard output: nq, or nt for one graph.
    #[arg(long, value_parser = parse_format, value_name = "FORMAT")]
    pub to: Option<Format>,
    /// Only this named graph.
    #[arg(long, value_name = "IRI", conflicts_with = "default_graph")]
    pub graph: Option<String>,
    /// Only the default graph.
    #[arg(long)]
    pub default_graph: bool,
    /// With --graph: write quads of the graph, not its triples.
    #[arg(long, requires = "graph")]
    pub keep_graph: bool,
    /// Write the triples of all graphs and drop the graph names.
    #[arg(long, conflicts_with_all = ["graph", "default_graph"])]
    pub drop_graphs: bool,
    #[command(flatten)]
    pub prefixes: PrefixArgs,
    /// Hide the progress bar and the summary.
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(ClapArgs, Debug)]
pub struct Convert {
    /// Files and folders, plain or compressed; `-` is standard input (with --from).
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Format of every file, instead of by extension: nt, nq, ttl, trig, rdf, jsonld.
    #[arg(long, value_parser = parse_format, value_name = "FORMAT")]
    pub from: Option<Format>,
    /// File to write (`-`: standard output). Its extension selects format and compression, as in all.nq.gz or all.trig.zst.
    #[arg(long, short, default_value = "-", value_name = "FILE")]
    pub out: PathBuf,
    /// Format to write, instead of by extension: nt, nq, ttl, trig, rdf, jsonld. Default on standard output: nq.
    #[arg(long, value_parser = parse_format, value_name = "FORMAT")]
    pub to: Option<Format>,
    /// Base for relative IRIs (default: the file's own IRI).
    #[arg(long, value_name = "IRI")]
    pub base: Option<String>,
    /// Put the triples into this named graph.
    #[arg(long, value_name = "IRI")]
    pub graph: Option<String>,
    /// Write the triples of all graphs and drop the graph names.
    #[arg(long, conflicts_with = "graph")]
    pub drop_graphs: bool,
    #[command(flatten)]
    pub contexts: ContextArgs,
    #[command(flatten)]
    pub prefixes: PrefixArgs,
    /// Skip invalid statements, count them, and list the first ten.
    #[arg(long)]
    pub lenient: bool,
    /// With --lenient: write all skipped statements to this file.
    #[arg(long, value_name = "FILE", requires = "lenient")]
    pub errors: Option<PathBuf>,
    /// Write nothing: only count the statements, or report the first error.
    #[arg(long, conflicts_with_all = ["out", "to"])]
    pub check: bool,
    /// Memory that one statement, list or compression window may take, e.g. 1G (default: half of this machine's).
    #[arg(long, value_parser = parse_size, value_name = "SIZE", env = "JINDOU_MEMORY")]
    pub memory: Option<u64>,
    /// Hide the progress bar and the summary.
    #[arg(long, short)]
    pub quiet: bool,
}

/// Contexts that documents of JSON-LD refer to.
#[derive(ClapArgs, Debug)]
pub struct ContextArgs {
    /// File with the JSON-LD context of this IRI; repeatable. Contexts are never fetched; those with the address of a file are read from it.
    #[arg(long, value_parser = parse_context, value_name = "IRI=FILE")]
    pub context: Vec<(String, PathBuf)>,
}

/// Parses `IRI=FILE`. An IRI may contain `=`, so the last `=` with text after it separates the two.
fn parse_context(text: &str) -> Result<(String, PathBuf), String> {
    let at = text.match_indices('=').map(|(at, _)| at);
    let parts = at.map(|at| (&text[..at], Path::new(&text[at + 1..])));
    let found = parts.rev().find(|(_, file)| file.is_file());
    let (iri, file) = found.ok_or_else(|| {
        format!(
            "'{text}' names no file; write it like https://schema.org/=schema.jsonld with a file that is there"
        )
    })?;
    match jindou::oxiri::Iri::parse(iri) {
        Ok(_) => Ok((iri.to_owned(), file.to_owned())),
        Err(e) => Err(format!("<{iri}> is not an IRI: {e}")),
    }
}

/// Prefixes for a document to be written.
#[derive(ClapArgs, Debug)]
pub struct PrefixArgs {
    /// Prefix to use in Turtle, TriG, RDF/XML and JSON-LD; repeatable. Common prefixes that the statements use are added, and, except in
    /// JSON-LD, those of the store or of the documents. In RDF/XML and JSON-LD only the first statements decide which.
    #[arg(long, value_parser = parse_prefix, value_name = "NAME=IRI")]
    pub prefix: Vec<(String, String)>,
    /// Write only the prefixes given by --prefix.
    #[arg(long)]
    pub no_prefixes: bool,
}

/// Parses `NAME=IRI`, also written `NAME:=IRI` or `NAME: <IRI>`.
pub fn parse_prefix(text: &str) -> Result<(String, String), String> {
    let (name, iri) = text
        .split_once(['=', ' '])
        .ok_or_else(|| format!("'{text}' is not a prefix; write it like ex=http://example.org/"))?;
    let iri = iri.trim().trim_start_matches('<').trim_end_matches('>');
    let name = name.trim().trim_end_matches(':');
    if !is_prefix_name(name) {
        return Err(format!(
            "'{name}' is not a valid prefix name; use letters, digits, - and _, starting with a letter"
        ));
    }
    if let Err(e) = jindou::oxiri::Iri::parse(iri) {
        return Err(format!("the prefix {name}: <{iri}> is not an IRI: {e}"));
    }
    Ok((name.to_owned(), iri.to_owned()))
}

/// True if the name may be a prefix in every format. Turtle alone would allow more names (`PN_PREFIX`). Names that
/// begin with `xml` are reserved by XML.
fn is_prefix_name(name: &str) -> bool {
    let begins_with_xml = name
        .get(..3)
        .is_some_and(|start| start.eq_ignore_ascii_case("xml"));
    let is_letter = |c: char| {
        matches!(c,
            'A'..='Z' | 'a'..='z' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}'
            | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}' | '\u{3001}'..='\u{d7ff}')
    };
    let goes_on = |c: char| is_letter(c) || matches!(c, '0'..='9' | '-' | '_' | '.');
    name.is_empty()
        || (name.starts_with(is_letter)
            && name.chars().all(goes_on)
            && !name.ends_with('.')
            && !begins_with_xml)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_prefixes_are_names_in_every_format() {
        for name in ["", "e", "e1", "a-b_c.d", "é", "foaf"] {
            let given = format!("{name}=http://e/");
            let expected = (name.to_owned(), "http://e/".to_owned());
            assert_eq!(parse_prefix(&given), Ok(expected));
        }
        for name in ["1a", "a\"", "a.", "-a", "xml", "xmlns", "XMLx", "a:b", "_"] {
            assert!(
                parse_prefix(&format!("{name}=http://e/")).is_err(),
                "{name}"
            );
        }
    }
}
