//! Extensions of other engines that users' queries may contain, as data: how they are recognised, which engine has
//! them, and what to write instead. `docs/coming-from.md` shows the same table.

use super::FaultPlace;
use std::collections::{BTreeMap, BTreeSet};

/// An extension of another engine.
#[derive(Debug)]
pub struct Extension {
    /// The name as shown in messages, such as "the label service".
    pub name: &'static str,
    /// The engine that has it.
    pub engine: &'static str,
    /// Advice: how to write it in standard SPARQL.
    pub instead: &'static str,
}

impl Extension {
    /// A sentence that says what the extension is.
    #[must_use]
    pub fn message(&self) -> String {
        format!(
            "{} is an extension of {} that Jindou does not have",
            self.name, self.engine
        )
    }
}

/// An extension that is recognised by IRIs.
struct Vocabulary {
    /// Prefixes that are commonly used for these IRIs.
    prefixes: &'static [&'static str],
    /// Namespaces that the IRIs begin with.
    namespaces: &'static [&'static str],
    /// Local names that belong to the extension; a name that ends with `*` stands for all names with that prefix. If
    /// the list is empty, all names of the namespace belong to it.
    locals: &'static [&'static str],
    extension: Extension,
}

/// Positions at which a query or an update begins.
const BEGIN: &[FaultPlace] = &[FaultPlace::Query, FaultPlace::Operation];
/// Positions between the patterns of a group.
const INSIDE: &[FaultPlace] = &[
    FaultPlace::GroupBody,
    FaultPlace::AfterTriples,
    FaultPlace::Verb,
    FaultPlace::Object,
];
/// Positions after the selection of a query, or after its group.
const BEHIND: &[FaultPlace] = &[
    FaultPlace::Where,
    FaultPlace::SubWhere,
    FaultPlace::AfterQuery,
];

/// An abbreviation for the tables below.
const fn extension(name: &'static str, engine: &'static str, instead: &'static str) -> Extension {
    Extension {
        name,
        engine,
        instead,
    }
}

const fn vocabulary(
    prefixes: &'static [&'static str],
    namespaces: &'static [&'static str],
    locals: &'static [&'static str],
    extension: Extension,
) -> Vocabulary {
    Vocabulary {
        prefixes,
        namespaces,
        locals,
        extension,
    }
}

const WORDS: &str =
    "write FILTER(CONTAINS(LCASE(?text), \"word\")) or FILTER(REGEX(?text, \"word\", \"i\"))";
const NO_HINTS: &str = "leave the hint out: the planner orders the patterns, and EXPLAIN shows how";
const FUNCTIONS: &str = "write a function of SPARQL; the guide has them on the page Functions";
const PATH: &str = "write a property path, such as ?a ex:p+ ?b";
const SPACE: &str = "compare the coordinates in FILTER";
const MEDIAWIKI: &str = "call the API of MediaWiki from the program that sends the query";
const LABEL: &str = "write OPTIONAL { ?s rdfs:label ?l FILTER(LANG(?l) = \"en\") }";

/// For each extension that begins with a keyword: the word, the positions at which it is recognised, and the extension.
#[rustfmt::skip]
static BY_WORD: &[(&str, &[FaultPlace], Extension)] = &[
    ("WITH", BEHIND, extension("WITH … AS %name, a named sub-query,", "Blazegraph", "write a sub-select in place of INCLUDE: { SELECT … }")),
    ("INCLUDE", INSIDE, extension("INCLUDE %name, a named sub-query,", "Blazegraph", "write a sub-select in place of INCLUDE: { SELECT … }")),
    ("DEFINE", BEGIN, extension("DEFINE, a pragma,", "Virtuoso", "leave it out; write FROM <graph> for a default graph, and load inferred triples")),
    ("SPARQL", BEGIN, extension("the word SPARQL before a query", "Virtuoso", "leave it out")),
    ("MODIFY", BEGIN, extension("MODIFY", "Virtuoso", "write WITH <graph> DELETE { … } INSERT { … } WHERE { … }")),
    ("OPTION", &[ FaultPlace::GroupBody, FaultPlace::AfterTriples, FaultPlace::Verb, FaultPlace::Object, FaultPlace::AfterQuery, ], extension("OPTION (TRANSITIVE, …)", "Virtuoso", PATH)),
    ("PATHS", BEGIN, extension("PATHS, a query for paths,", "Stardog", PATH)),
    ("UNNEST", INSIDE, extension("UNNEST", "Stardog", "write VALUES ?x { … }, or a triple for each member in the data")),
    ("VALIDATE", BEGIN, extension("VALIDATE", "Stardog", "validate the data with a tool for SHACL")),
    ("UNFOLD", INSIDE, extension("UNFOLD", "Jena", "write VALUES ?x { … }, or a triple for each member in the data")),
    ("ASSIGN", INSIDE, extension("ASSIGN", "Jena", "write BIND(expression AS ?x)")),
    ("JSON", BEGIN, extension("JSON { … }, a form of queries,", "Jena", "write SELECT, and ask for the answer as JSON")),
    ("BINDINGS", &[FaultPlace::AfterQuery, FaultPlace::GroupBody], extension("BINDINGS", "a draft of SPARQL 1.1", "write VALUES (?x ?y) { (1 2) }")),
    ("EXPLAIN", BEGIN, extension("EXPLAIN before a query", "other engines", "send the query alone, with explain=true or jindou query --explain")),
    ("PROFILE", BEGIN, extension("PROFILE before a query", "other engines", "send the query alone, with profile=true or jindou query --profile")),
    ("INTERNAL", &[FaultPlace::AfterQuery], extension("INTERNAL SORT BY", "QLever", "write ORDER BY")),
    ("SEM_MATCH", BEGIN, extension("SEM_MATCH", "Oracle", "send the SPARQL query that is its first argument")),
    ("MATCH", BEGIN, extension("Cypher's MATCH", "Neo4j", "write SELECT ?name { ?planet a ex:Planet ; ex:name ?name }")),
];

/// A predicate with a language tag.
pub(crate) static TAGGED_PREDICATE: Extension = extension(
    "a predicate with a language tag",
    "QLever",
    "write FILTER(LANG(?o) = \"en\")",
);

/// GRAPH in a template.
pub(crate) static QUAD_TEMPLATE: Extension = extension(
    "GRAPH in the template of CONSTRUCT",
    "Jena and Stardog",
    "leave GRAPH out: CONSTRUCT makes triples; SELECT ?g ?s ?p ?o gives the graphs as well",
);

/// Numbers of repetitions in a path.
pub(crate) static REPEATED_PATH: Extension = extension(
    "{n,m} after a step of a path",
    "Jena, Stardog and Virtuoso",
    "write the steps one after another: p/p?/p? for {1,3}, p/p+ for {2,}",
);

/// Extensions that are recognised by IRIs. The first matching entry counts.
#[rustfmt::skip]
static BY_IRI: &[Vocabulary] = &[
    vocabulary(&["wikibase"], &["http://wikiba.se/ontology#"], &["label"],
        extension("the label service wikibase:label", "Wikidata", LABEL)),
    vocabulary(&["wikibase"], &["http://wikiba.se/ontology#"], &["around", "box", "center", "radius", "cornerWest", "cornerEast"],
        extension("the search by place, wikibase:around and wikibase:box,", "Wikidata", SPACE)),
    vocabulary(&["wikibase"], &["http://wikiba.se/ontology#"], &["mwapi", "endpoint", "api", "apiOutput*"],
        extension("the service wikibase:mwapi", "Wikidata", MEDIAWIKI)),
    vocabulary(&["mwapi"], &["https://www.mediawiki.org/ontology#API/"], &["*"],
        extension("mwapi:, a parameter of the service wikibase:mwapi,", "Wikidata", MEDIAWIKI)),
    vocabulary(&["wikibase"], &["http://wikiba.se/ontology#"], &["isSomeValue", "decodeUri"],
        extension("wikibase:isSomeValue and wikibase:decodeUri", "Wikidata", "write isBLANK(?x) for unknown values")),
    vocabulary(&["bd"], &["http://www.bigdata.com/rdf#"], &["serviceParam"],
        extension("bd:serviceParam, a parameter of services such as the label service,", "Wikidata and Blazegraph", LABEL)),
    vocabulary(&["bd"], &["http://www.bigdata.com/rdf#"], &["*"],
        extension("bd:, a service of the engine,", "Blazegraph", "write the patterns without the service")),
    vocabulary(&["bds"], &["http://www.bigdata.com/rdf/search#"], &["*"],
        extension("bds:, full-text search,", "Blazegraph", WORDS)),
    vocabulary(&["hint"], &["http://www.bigdata.com/queryHints#"], &["*"],
        extension("hint:, a hint for the optimizer,", "Blazegraph", NO_HINTS)),
    vocabulary(&["gas"], &["http://www.bigdata.com/rdf/gas#"], &["*"],
        extension("gas:, the traversal of graphs,", "Blazegraph", PATH)),
    vocabulary(&["geo"], &["http://www.bigdata.com/rdf/geospatial#"], &["*"],
        extension("the search by place", "Blazegraph", SPACE)),
    vocabulary(&["bif"], &["http://www.openlinksw.com/schemas/bif#", "bif:"], &["contains", "xcontains"],
        extension("bif:contains, full-text search,", "Virtuoso", WORDS)),
    vocabulary(&["bif"], &["http://www.openlinksw.com/schemas/bif#", "bif:"], &["st_*"],
        extension("bif:st_…, functions of places,", "Virtuoso", SPACE)),
    vocabulary(&["bif"], &["http://www.openlinksw.com/schemas/bif#", "bif:"], &["*"],
        extension("bif:, built-in functions,", "Virtuoso", FUNCTIONS)),
    vocabulary(&["sql"], &["sql:"], &["*"],
        extension("sql:, functions of SQL,", "Virtuoso", FUNCTIONS)),
    vocabulary(&["stardog"], &["tag:stardog:api:property:", "tag:stardog:api:search:"], &["textMatch"],
        extension("textMatch, full-text search,", "Stardog", WORDS)),
    vocabulary(&["fts"], &["tag:stardog:api:search:"], &["*"],
        extension("fts:, full-text search,", "Stardog", WORDS)),
    vocabulary(&[], &["tag:stardog:api:context:"], &["*"],
        extension("a graph that stands for all graphs", "Stardog", "write the pattern outside of GRAPH, and ask for all graphs: graphs=all or --graphs all")),
    vocabulary(&["stardog"], &["tag:stardog:api:"], &["*"],
        extension("stardog:, functions and services,", "Stardog", FUNCTIONS)),
    vocabulary(&["text"], &["http://jena.apache.org/text#"], &["*"],
        extension("text:query, full-text search,", "Jena", WORDS)),
    vocabulary(&["spatial", "spatialF"], &["http://jena.apache.org/spatial#", "http://jena.apache.org/function/spatial#"], &["*"],
        extension("spatial:, the search by place,", "Jena", SPACE)),
    vocabulary(&["afn"], &["http://jena.apache.org/ARQ/function#", "http://jena.hpl.hp.com/ARQ/function#"], &["*"],
        extension("afn:, functions,", "Jena", FUNCTIONS)),
    vocabulary(&["list"], &["http://jena.apache.org/ARQ/list#", "http://jena.hpl.hp.com/ARQ/list#"], &["*"],
        extension("list:, members of lists,", "Jena", "write ?list rdf:rest*/rdf:first ?member")),
    vocabulary(&["apf"], &["http://jena.apache.org/ARQ/property#", "http://jena.hpl.hp.com/ARQ/property#"], &["*"],
        extension("apf:, property functions,", "Jena", "compute the value with BIND and a function of SPARQL")),
    vocabulary(&[], &["urn:x-arq:"], &["UnionGraph"],
        extension("<urn:x-arq:UnionGraph>", "Jena", "write the pattern outside of GRAPH, and ask for all graphs: graphs=all or --graphs all")),
    vocabulary(&[], &["urn:x-arq:"], &["DefaultGraph", "DefaultGraphNode"],
        extension("<urn:x-arq:DefaultGraph>", "Jena", "write the pattern outside of GRAPH")),
    vocabulary(&["luc", "con", "elastic", "solr"], &["http://www.ontotext.com/connectors/", "http://www.ontotext.com/owlim/lucene#"], &["*"],
        extension("a connector to Lucene, Elasticsearch or Solr", "GraphDB", WORDS)),
    vocabulary(&["omgeo"], &["http://www.ontotext.com/owlim/geo#"], &["*"],
        extension("omgeo:, the search by place,", "GraphDB", SPACE)),
    vocabulary(&["ofn"], &["http://www.ontotext.com/sparql/functions/"], &["*"],
        extension("ofn:, functions,", "GraphDB", FUNCTIONS)),
    vocabulary(&["spif"], &["http://spinrdf.org/spif#"], &["*"],
        extension("spif:, functions,", "GraphDB and TopBraid", FUNCTIONS)),
    vocabulary(&["path"], &["http://www.ontotext.com/path#"], &["*"],
        extension("path:, the search for paths,", "GraphDB", PATH)),
    vocabulary(&["rank"], &["http://www.ontotext.com/owlim/RDFRank#"], &["*"],
        extension("rank:, the rank of nodes,", "GraphDB", "count the triples of a node, with GROUP BY")),
    vocabulary(&["onto"], &["http://www.ontotext.com/"], &["explicit", "implicit", "readwrite", "explain", "disable-sameAs", "count", "retain-bind-position"],
        extension("onto:, a graph that is an option,", "GraphDB", "leave it out: all triples are explicit, and EXPLAIN shows the plan")),
    vocabulary(&["sesame"], &["http://www.openrdf.org/schema/sesame#"], &["nil", "direct*"],
        extension("sesame:, a graph or predicate that is an option,", "RDF4J and GraphDB", "leave it out: patterns outside of GRAPH read the default graph")),
    vocabulary(&["search"], &["http://www.openrdf.org/contrib/lucenesail#"], &["*"],
        extension("search:matches, full-text search,", "RDF4J", WORDS)),
    vocabulary(&["ql"], &["http://qlever.cs.uni-freiburg.de/builtin-functions/"], &["*"],
        extension("ql:contains-word, full-text search,", "QLever", WORDS)),
    vocabulary(&["qlss", "spatialSearch"], &["https://qlever.cs.uni-freiburg.de/spatialSearch/"], &["*"],
        extension("the spatial join", "QLever", SPACE)),
    vocabulary(&["pathSearch", "textSearch"], &["https://qlever.cs.uni-freiburg.de/pathSearch/", "https://qlever.cs.uni-freiburg.de/textSearch/"], &["*"],
        extension("pathSearch: and textSearch:, services of the engine,", "QLever", PATH)),
    vocabulary(&["geof"], &["http://www.opengis.net/def/function/geosparql/"], &["*"],
        extension("geof:, functions of places,", "GeoSPARQL", SPACE)),
    vocabulary(&["fn", "math"], &["http://www.w3.org/2005/xpath-functions"], &["*"],
        extension("fn:, XPath's functions by their IRI,", "Jena and GraphDB", FUNCTIONS)),
    vocabulary(&["orardf", "orageo"], &["http://xmlns.oracle.com/rdf/"], &["*"],
        extension("orardf: and orageo:, functions,", "Oracle", FUNCTIONS)),
    vocabulary(&["fti", "franzOption", "sna"], &["http://franz.com/ns/"], &["*"],
        extension("full-text search and other predicates of franz.com", "AllegroGraph", WORDS)),
    vocabulary(&["cts", "xdmp"], &["http://marklogic.com/"], &["*"],
        extension("cts: and xdmp:, functions,", "MarkLogic", FUNCTIONS)),
    vocabulary(&["neptune-fts"], &["http://aws.amazon.com/neptune/vocab/v01/services/fts#"], &["*"],
        extension("full-text search", "Neptune", WORDS)),
    vocabulary(&[], &["http://aws.amazon.com/neptune/vocab/v01/QueryHints#"], &["*"],
        extension("a hint for the optimizer", "Neptune", NO_HINTS)),
];

impl Vocabulary {
    fn has_local(&self, local: &str) -> bool {
        self.locals.iter().any(|l| match l.strip_suffix('*') {
            Some(start) => local.starts_with(start),
            None => *l == local,
        })
    }
}

/// The extension that begins with this word at this position; `None` if the word begins none.
pub(crate) fn extension_of_word(word: &str, place: FaultPlace) -> Option<&'static Extension> {
    let found = BY_WORD
        .iter()
        .find(|(own, places, _)| own.eq_ignore_ascii_case(word) && places.contains(&place));
    found.map(|(_, _, extension)| extension)
}

/// The extension that a name with an undeclared prefix probably belongs to, if any.
pub(crate) fn extension_of_name(prefix: &str, local: &str) -> Option<&'static Extension> {
    let found = BY_IRI
        .iter()
        .find(|v| v.prefixes.contains(&prefix) && v.has_local(local));
    found.map(|v| &v.extension)
}

/// The extension of another engine that an IRI belongs to; `None` for other IRIs.
#[must_use]
pub fn extension_of_iri(iri: &str) -> Option<&'static Extension> {
    let found = BY_IRI.iter().find(|v| {
        let mut rests = v.namespaces.iter().filter_map(|n| iri.strip_prefix(n));
        rests.any(|rest| v.has_local(rest))
    });
    found.map(|v| &v.extension)
}

/// All extensions in these tables as a Markdown table: what to write instead, and the extensions, each with its engine.
#[must_use]
pub fn extensions() -> String {
    let words = BY_WORD.iter().map(|(_, _, extension)| extension);
    let syntax = [&TAGGED_PREDICATE, &QUAD_TEMPLATE, &REPEATED_PATH];
    let all = words
        .chain(syntax)
        .chain(BY_IRI.iter().map(|v| &v.extension));
    let mut rows: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for e in all {
        let name = e.name.trim_end_matches(',');
        let names = rows.entry(e.instead).or_default();
        names.insert(format!("{name} ({})", e.engine));
    }
    let mut out = String::from("| instead | of |\n|---|---|\n");
    for (instead, names) in rows {
        let names: Vec<String> = names.into_iter().collect();
        let row = format!("| {instead} | {} |\n", names.join("; "));
        out.push_str(&row.replace('<', "\\<").replace('*', "\\*"));
    }
    out
}
