//! The command line of `jindou search`.

use super::graphs::GraphChoice;
use super::{VerifyArg, parse_memory};
use clap::{Args as ClapArgs, ValueEnum};
use jindou_model::units::parse_duration;
use std::path::PathBuf;
use std::time::Duration;

#[derive(ClapArgs, Debug)]
pub struct SearchArgs {
    /// The store directory.
    #[arg(long, value_name = "DIR", env = "JINDOU_STORE")]
    pub store: PathBuf,
    /// Words that must all occur, the last one as the beginning of a word.
    #[arg(value_name = "WORDS", required = true)]
    pub words: Vec<String>,
    /// Largest number of resources.
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=200))]
    pub limit: u16,
    /// Preferred languages of labels, the best first, e.g. de,en.
    #[arg(long = "lang", value_name = "TAGS", value_delimiter = ',')]
    pub languages: Vec<String>,
    /// Property whose objects are labels of resources; repeatable, the best first (default: rdfs:label, skos:prefLabel, schema:name, foaf:name,
    /// dcterms:title).
    #[arg(long = "label-property", value_name = "IRI", value_parser = parse_iri)]
    pub label_properties: Vec<String>,
    /// Format of the answer.
    #[arg(long, value_enum, default_value_t = SearchFormat::Table)]
    pub format: SearchFormat,
    /// End the search after this time with what it has found, e.g. 500ms, 2m.
    #[arg(long, value_parser = parse_duration, default_value = "10s", value_name = "TIME")]
    pub timeout: Duration,
    /// Memory that the search may use, e.g. 2G (default: half of this machine's).
    #[arg(long, value_parser = parse_memory, value_name = "SIZE", env = "JINDOU_MEMORY")]
    pub memory: Option<u64>,
    /// Graphs that are searched: `default`, the store's default graph, or `all`, as without this option.
    #[arg(long, value_enum, value_name = "WHICH", hide_possible_values = true)]
    pub graphs: Option<GraphChoice>,
    /// Search in this named graph only; repeatable.
    #[arg(long = "graph", value_name = "IRI", value_parser = parse_iri, conflicts_with = "graphs")]
    pub named_graphs: Vec<String>,
    #[command(flatten)]
    pub verify: VerifyArg,
}

/// Format of what was found.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchFormat {
    /// Label, IRI and class in columns.
    Table,
    /// A JSON document, as the server's `/search` gives it.
    Json,
}

/// An IRI, with or without `<…>`.
pub fn parse_iri(text: &str) -> Result<String, String> {
    match jindou::oxrdf::NamedNode::new(text.trim_start_matches('<').trim_end_matches('>')) {
        Ok(iri) => Ok(iri.into_string()),
        Err(e) => Err(format!("not an IRI such as http://example.org/name: {e}")),
    }
}
