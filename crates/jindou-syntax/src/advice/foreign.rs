//! Words of other languages that are written in queries by mistake.

use super::FaultPlace;

/// Message and remedy for a word of SQL or another language at a position in the grammar; `None` for other words.
pub(crate) fn foreign(word: &str, place: FaultPlace) -> Option<(&'static str, &'static str)> {
    use FaultPlace as P;
    let upper = word.to_ascii_uppercase();
    let behind = matches!(
        place,
        P::AfterOperand | P::AfterArgument | P::AfterComparison
    );
    Some(match (upper.as_str(), place) {
        ("NULL" | "NIL" | "NONE", _) => (
            "SPARQL has no null",
            "a variable without a value is unbound: test it with BOUND(?x) or !BOUND(?x)",
        ),
        ("AND", _) if behind => ("SPARQL writes 'and' as &&", "&&"),
        ("OR", _) if behind => ("SPARQL writes 'or' as ||", "||"),
        ("LIKE" | "ILIKE" | "RLIKE" | "MATCHES", _) if behind => (
            "SPARQL has no LIKE",
            "write CONTAINS(?x, \"text\"), STRSTARTS(?x, \"text\") or REGEX(?x, \"pattern\", \"i\")",
        ),
        ("IS", _) if behind => (
            "SPARQL has no IS",
            "write BOUND(?x), !BOUND(?x) or = instead",
        ),
        ("BETWEEN", _) if behind => ("SPARQL has no BETWEEN", "write ?x >= 1 && ?x <= 9"),
        ("EQ" | "EQUALS", _) if behind => ("equality is written =", "="),
        ("NOT", P::Operand) => (
            "NOT is only allowed before IN and EXISTS",
            "write ! to negate a condition",
        ),
        ("TOP", P::Projection) => (
            "SPARQL has no TOP",
            "write LIMIT and the number at the end of the query",
        ),
        ("JOIN" | "INNER" | "AND", P::GroupBody | P::AfterTriples) => (
            "SPARQL has no JOIN",
            "patterns written one after another are joined on the variables they share",
        ),
        ("LEFT" | "RIGHT" | "OUTER", P::GroupBody | P::AfterTriples) => (
            "SPARQL has no outer joins by that name",
            "write OPTIONAL { … } around the part that may be missing",
        ),
        ("IF" | "CASE" | "WHEN", P::GroupBody | P::AfterTriples) => (
            "IF is a function in SPARQL",
            "write BIND(IF(condition, value, other) AS ?x)",
        ),
        ("CASE" | "WHEN", _) => ("SPARQL has no CASE", "write IF(condition, value, other)"),
        ("LET" | "SET", P::GroupBody | P::AfterTriples | P::Operation | P::ChangeWhere) => (
            "SPARQL does not assign values",
            "write BIND(expression AS ?x) in a pattern, and DELETE … INSERT … WHERE to change data",
        ),
        ("EXCEPT", _) => (
            "SPARQL has no EXCEPT",
            "write MINUS { … } or FILTER NOT EXISTS { … }",
        ),
        ("UPDATE" | "UPSERT" | "MERGE", P::Operation | P::Query) => (
            "SPARQL has no UPDATE",
            "write DELETE { old triples } INSERT { new triples } WHERE { pattern }",
        ),
        ("SUBSTRING", _) => ("the function is called SUBSTR", "SUBSTR"),
        ("LENGTH" | "LEN", _) => ("the function is called STRLEN", "STRLEN"),
        ("UPPER", _) => ("the function is called UCASE", "UCASE"),
        ("LOWER", _) => ("the function is called LCASE", "LCASE"),
        ("CURRENT_TIMESTAMP" | "GETDATE" | "CURRENT_DATE", _) => ("the time is NOW()", "NOW()"),
        ("ISNULL" | "IFNULL" | "NVL", _) => ("the function is called COALESCE", "COALESCE"),
        ("MEAN" | "AVERAGE", _) => ("the aggregate is called AVG", "AVG"),
        ("DISTINCT", P::Operand) => (
            "DISTINCT is only allowed inside aggregates",
            "write COUNT(DISTINCT ?x)",
        ),
        _ => return None,
    })
}
