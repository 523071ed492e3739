//! Request parameters, and the routes that accept them. docs/server.md has the same table with explanations.

/// Names of the parameter for the format of an answer.
pub(super) const FORMAT: &[&str] = &["format", "output", "results", "accept", "Accept"];

/// The names of each parameter, and the routes that accept it: in the URL and, if the body of a POST is a form, also in
/// the body. `/sparql` and `/` accept the parameters of `/query` and `/update`.
pub(crate) const PARAMETERS: &[(&[&str], &str)] = &[
    (&["query"], "/query /prepared"),
    (&["update"], "/update"),
    (&["default-graph-uri"], "/query /complete /search /labels"),
    (&["named-graph-uri"], "/query /complete /search /labels"),
    (&["using-graph-uri"], "/update"),
    (&["using-named-graph-uri"], "/update"),
    (&["graphs"], "/query /update /complete /search /labels"),
    (
        &["timeout"],
        "/query /update /prepared /prepared/ID /batch /complete /search /labels /store",
    ),
    (&["$name"], "/query /prepared/ID"),
    (FORMAT, "/query /prepared/ID /store"),
    (&["explain"], "/query"),
    (&["why-empty"], "/query"),
    (&["profile"], "/query"),
    (
        &["tag"],
        "/query /prepared /prepared/ID /batch /complete /search /labels /admin/queries",
    ),
    (&["watch"], "/query /prepared/ID"),
    (&["parameter"], "/prepared"),
    (&["lenient"], "/update /store"),
    (&["graph"], "/store"),
    (&["default"], "/store"),
    (&["text"], "/complete"),
    (&["after"], "/complete"),
    (&["labels"], "/complete"),
    (&["limit"], "/complete /search"),
    (&["q"], "/search"),
    (&["lang"], "/search /labels"),
    (&["iri"], "/labels"),
    (&["memory"], "/admin/recluster"),
    (&["keep"], "/admin/backup"),
    (&["wait"], "/admin/drain"),
];

/// True if any route accepts a parameter with this name.
pub(super) fn is_known(name: &str) -> bool {
    PARAMETERS.iter().any(|(names, _)| names.contains(&name))
}
