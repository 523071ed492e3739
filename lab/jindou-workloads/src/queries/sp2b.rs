//! The 17 queries of SP²Bench (Schmidt, Hornung, Lausen, Pinkel: SP²Bench: A SPARQL Performance Benchmark, ICDE
//! 2009), as published.

use super::lubm::LubmQuery;

/// All queries in the published order.
pub const QUERIES: [LubmQuery; 17] = queries!(
    "sp2b",
    "\
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
PREFIX dc: <http://purl.org/dc/elements/1.1/>
PREFIX dcterms: <http://purl.org/dc/terms/>
PREFIX swrc: <http://swrc.ontoware.org/ontology#>
PREFIX bench: <http://localhost/vocabulary/bench/>
PREFIX person: <http://localhost/persons/>
",
    "Q1" "Q2" "Q3a" "Q3b" "Q3c" "Q4" "Q5a" "Q5b" "Q6" "Q7" "Q8" "Q9" "Q10" "Q11" "Q12a" "Q12b" "Q12c"
);
