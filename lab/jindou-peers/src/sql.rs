//! Basic graph patterns as SQL, for the relational yardstick: one table `p<k>` (s, o) a predicate, joins written out.
//!
//! Two schemas. With *ids*, columns are numbers of the table `terms` (id, term), constants are looked up there first
//! and results joined back to it. With *text*, columns are the terms themselves. Terms are written as N-Triples
//! writes them.

use oxrdf::Variable;
use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression, GraphPattern};
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern};
use spargebra::{Query, SparqlParser};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// Where triples are.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// Table number of each predicate's IRI.
    pub predicates: HashMap<String, usize>,
    /// True if columns hold terms and not ids.
    pub text: bool,
}

/// A query in SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sql {
    /// Statements that look up constants; to be run (and timed) before.
    pub before: String,
    /// One SELECT; its columns are named like the header of SPARQL's TSV.
    pub select: String,
}

/// Translates SELECT and ASK over a basic graph pattern, with DISTINCT, LIMIT, OFFSET and counts.
///
/// # Errors
/// The obstacle, in a few words.
pub fn translate(query: &str, schema: &Schema) -> Result<Sql, String> {
    let query = SparqlParser::new()
        .parse_query(query)
        .map_err(|e| e.to_string())?;
    let mut t = Translator {
        schema,
        before: String::new(),
        constants: BTreeMap::new(),
    };
    let select = match &query {
        Query::Select {
            dataset: None,
            pattern,
            ..
        } => t.select(pattern)?,
        Query::Ask {
            dataset: None,
            pattern,
            ..
        } => {
            // What only shapes rows does not change whether there is one.
            let mut pattern = pattern;
            while let GraphPattern::Project { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner } = pattern
            {
                pattern = inner;
            }
            let bgp = t.bgp(pattern)?;
            format!("SELECT EXISTS (SELECT 1{}) AS \"?ask\"", bgp.tail())
        }
        Query::Select { .. } | Query::Ask { .. } => return Err("FROM is not translated".into()),
        _ => return Err("only SELECT and ASK are translated".into()),
    };
    Ok(Sql {
        before: t.before,
        select,
    })
}

struct Translator<'a> {
    schema: &'a Schema,
    before: String,
    constants: BTreeMap<String, String>,
}

/// FROM and WHERE of a basic graph pattern.
#[derive(Default)]
struct Bgp {
    from: Vec<String>,
    conditions: Vec<String>,
    /// Column of each variable.
    columns: HashMap<String, String>,
}

impl Bgp {
    fn tail(&self) -> String {
        let mut out = String::new();
        if !self.from.is_empty() {
            let _ = write!(out, " FROM {}", self.from.join(", "));
        }
        if !self.conditions.is_empty() {
            let _ = write!(out, " WHERE {}", self.conditions.join(" AND "));
        }
        out
    }
}

/// The contents of a result column.
enum Column {
    /// A term, by this inner column.
    Term(String),
    /// A number, by this inner column.
    Count(String),
    Unbound,
}

impl Translator<'_> {
    fn select(&mut self, pattern: &GraphPattern) -> Result<String, String> {
        let mut pattern = pattern;
        let mut slice = String::new();
        let mut distinct = "";
        let variables: &[Variable];
        loop {
            match pattern {
                GraphPattern::Slice {
                    inner,
                    start,
                    length,
                } if slice.is_empty() && distinct.is_empty() => {
                    if let Some(n) = length {
                        let _ = write!(slice, " LIMIT {n}");
                    }
                    if *start > 0 {
                        let _ = write!(slice, " OFFSET {start}");
                    }
                    pattern = inner;
                }
                GraphPattern::Distinct { inner } => {
                    distinct = "DISTINCT ";
                    pattern = inner;
                }
                GraphPattern::Reduced { inner } => pattern = inner,
                GraphPattern::Project {
                    inner,
                    variables: v,
                } => {
                    variables = v;
                    pattern = inner;
                    break;
                }
                other => return Err(format!("{} is not translated", kind(other))),
            }
        }
        // SELECT (COUNT(*) AS ?n): the aggregate has a variable of its own, which an Extend renames.
        let mut renamed: HashMap<&Variable, &Variable> = HashMap::new();
        while let GraphPattern::Extend {
            inner,
            variable,
            expression: Expression::Variable(from),
        } = pattern
        {
            renamed.insert(variable, from);
            pattern = inner;
        }
        let (bgp, group, counts) = match pattern {
            GraphPattern::Group {
                inner,
                variables,
                aggregates,
            } => {
                let bgp = self.bgp(inner)?;
                let mut counts = HashMap::new();
                for (name, aggregate) in aggregates {
                    counts.insert(name, count(aggregate, &bgp)?);
                }
                (bgp, Some(variables), counts)
            }
            other if renamed.is_empty() => (self.bgp(other)?, None, HashMap::new()),
            other => return Err(format!("{} is not translated", kind(other))),
        };
        let mut inner = Vec::new();
        let mut columns = Vec::new();
        for (i, v) in variables.iter().enumerate() {
            let source = renamed.get(v).copied().unwrap_or(v);
            let column = if let Some(count) = counts.get(source) {
                inner.push(format!("{count} AS v{i}"));
                Column::Count(format!("v{i}"))
            } else if group.is_some_and(|g| !g.contains(source)) {
                Column::Unbound
            } else if let Some(c) = bgp.columns.get(source.as_str()) {
                inner.push(format!("{c} AS v{i}"));
                Column::Term(format!("v{i}"))
            } else {
                Column::Unbound
            };
            columns.push((v.as_str(), column));
        }
        if inner.is_empty() {
            // Rows without any value still count.
            inner.push("1 AS none".into());
        }
        let mut core = format!("SELECT {distinct}{}{}", inner.join(", "), bgp.tail());
        if let Some(by) = group {
            let by: Vec<_> = by
                .iter()
                .filter_map(|v| bgp.columns.get(v.as_str()).cloned())
                .collect();
            if !by.is_empty() {
                let _ = write!(core, " GROUP BY {}", by.join(", "));
            }
        }
        core += &slice;
        Ok(self.decoded(&core, &columns))
    }

    fn decoded(&self, core: &str, columns: &[(&str, Column)]) -> String {
        let mut list = Vec::new();
        let mut joins = String::new();
        for (i, (name, column)) in columns.iter().enumerate() {
            let value = match column {
                Column::Term(v) if self.schema.text => format!("q.{v}"),
                Column::Term(v) => {
                    let _ = write!(joins, " JOIN terms d{i} ON d{i}.id = q.{v}");
                    format!("d{i}.term")
                }
                Column::Count(v) => {
                    format!("'\"' || q.{v} || '\"^^<http://www.w3.org/2001/XMLSchema#integer>'")
                }
                Column::Unbound => "''".into(),
            };
            list.push(format!("{value} AS \"?{name}\""));
        }
        if list.is_empty() {
            list.push("'' AS none".into());
        }
        format!("SELECT {} FROM ({core}) q{joins}", list.join(", "))
    }

    fn bgp(&mut self, pattern: &GraphPattern) -> Result<Bgp, String> {
        let mut triples = Vec::new();
        collect(pattern, &mut triples)?;
        let mut bgp = Bgp::default();
        for (i, t) in triples.into_iter().enumerate() {
            match &t.predicate {
                NamedNodePattern::NamedNode(p) => match self.schema.predicates.get(p.as_str()) {
                    Some(k) => bgp.from.push(format!("p{k} t{i}")),
                    // No triple has it.
                    None => bgp
                        .from
                        .push(format!("(SELECT s, o FROM triples WHERE false) t{i}")),
                },
                NamedNodePattern::Variable(v) => {
                    bgp.from.push(format!("triples t{i}"));
                    bind(&mut bgp, v.as_str(), format!("t{i}.p"));
                }
            }
            self.end(&mut bgp, &t.subject, format!("t{i}.s"))?;
            self.end(&mut bgp, &t.object, format!("t{i}.o"))?;
        }
        Ok(bgp)
    }

    fn end(&mut self, bgp: &mut Bgp, term: &TermPattern, column: String) -> Result<(), String> {
        match term {
            TermPattern::Variable(v) => bind(bgp, v.as_str(), column),
            // No variable's name begins so.
            TermPattern::BlankNode(b) => bind(bgp, &format!("_:{}", b.as_str()), column),
            TermPattern::NamedNode(n) => {
                let value = self.constant(&n.to_string());
                bgp.conditions.push(format!("{column} = {value}"));
            }
            TermPattern::Literal(l) => {
                let value = self.constant(&l.to_string());
                bgp.conditions.push(format!("{column} = {value}"));
            }
            TermPattern::Triple(_) => return Err("a triple term is not translated".into()),
        }
        Ok(())
    }

    fn constant(&mut self, term: &str) -> String {
        let quoted = quote(term);
        if self.schema.text {
            return quoted;
        }
        let next = self.constants.len();
        if let Some(known) = self.constants.get(term) {
            return known.clone();
        }
        let value = format!("getvariable('c{next}')");
        let _ = writeln!(
            self.before,
            "SET VARIABLE c{next} = (SELECT id FROM terms WHERE term = {quoted});"
        );
        self.constants.insert(term.to_owned(), value.clone());
        value
    }
}

fn bind(bgp: &mut Bgp, name: &str, column: String) {
    match bgp.columns.get(name) {
        Some(first) => bgp.conditions.push(format!("{column} = {first}")),
        None => {
            bgp.columns.insert(name.to_owned(), column);
        }
    }
}

fn collect<'a>(
    pattern: &'a GraphPattern,
    triples: &mut Vec<&'a TriplePattern>,
) -> Result<(), String> {
    match pattern {
        GraphPattern::Bgp { patterns } => {
            triples.extend(patterns);
            Ok(())
        }
        GraphPattern::Join { left, right } => {
            collect(left, triples)?;
            collect(right, triples)
        }
        other => Err(format!("{} is not translated", kind(other))),
    }
}

fn count(aggregate: &AggregateExpression, bgp: &Bgp) -> Result<String, String> {
    match aggregate {
        AggregateExpression::CountSolutions { distinct: false } => Ok("count(*)".into()),
        AggregateExpression::FunctionCall {
            name: AggregateFunction::Count,
            expr: Expression::Variable(v),
            distinct,
        } => {
            let column = bgp
                .columns
                .get(v.as_str())
                .ok_or("a count of an unbound variable is not translated")?;
            Ok(format!(
                "count({}{column})",
                if *distinct { "DISTINCT " } else { "" }
            ))
        }
        _ => Err("an aggregate other than COUNT is not translated".into()),
    }
}

fn kind(pattern: &GraphPattern) -> &'static str {
    match pattern {
        GraphPattern::Bgp { .. } | GraphPattern::Join { .. } => "a pattern here",
        GraphPattern::Path { .. } => "a property path",
        GraphPattern::LeftJoin { .. } => "OPTIONAL",
        GraphPattern::Filter { .. } => "FILTER",
        GraphPattern::Union { .. } => "UNION",
        GraphPattern::Graph { .. } => "GRAPH",
        GraphPattern::Extend { .. } => "an expression",
        GraphPattern::Minus { .. } => "MINUS",
        GraphPattern::Values { .. } => "VALUES",
        GraphPattern::OrderBy { .. } => "ORDER BY",
        GraphPattern::Group { .. } => "GROUP BY here",
        GraphPattern::Service { .. } => "SERVICE",
        _ => "a subquery",
    }
}

/// A string as SQL writes it.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: bool) -> Schema {
        Schema {
            predicates: [("http://p".to_owned(), 0), ("http://q".to_owned(), 7)].into(),
            text,
        }
    }

    #[test]
    fn joins_are_written_out() {
        let sql = translate(
            "SELECT DISTINCT ?x ?none WHERE { ?x <http://p> ?y . ?y <http://q> 'it''s' . ?x ?r <http://o> }"
                .replace("'it''s'", "\"it's\"")
                .as_str(),
            &schema(true),
        )
        .unwrap();
        assert_eq!(sql.before, "");
        assert_eq!(
            sql.select,
            "SELECT q.v0 AS \"?x\", '' AS \"?none\" FROM (SELECT DISTINCT t0.s AS v0 FROM p0 t0, p7 t1, triples t2 \
             WHERE t1.s = t0.o AND t1.o = '\"it''s\"' AND t2.s = t0.s AND t2.o = '<http://o>') q"
        );
    }

    #[test]
    fn with_ids_constants_are_looked_up_and_results_joined_back() {
        let sql = translate(
            "SELECT ?x { ?x <http://p> <http://o> ; <http://q> <http://o> ; <http://unknown> _:b } LIMIT 3 OFFSET 1",
            &schema(false),
        )
        .unwrap();
        assert_eq!(
            sql.before,
            "SET VARIABLE c0 = (SELECT id FROM terms WHERE term = '<http://o>');\n"
        );
        assert_eq!(
            sql.select,
            "SELECT d0.term AS \"?x\" FROM (SELECT t0.s AS v0 FROM p0 t0, p7 t1, (SELECT s, o FROM triples WHERE false) t2 \
             WHERE t0.o = getvariable('c0') AND t1.s = t0.s AND t1.o = getvariable('c0') AND t2.s = t0.s LIMIT 3 OFFSET 1) q \
             JOIN terms d0 ON d0.id = q.v0"
        );
    }

    #[test]
    fn ask() {
        let sql = |q| translate(q, &schema(true)).unwrap().select;
        assert_eq!(sql("ASK {}"), "SELECT EXISTS (SELECT 1) AS \"?ask\"");
        assert_eq!(
            sql("ASK { ?x <http://p> ?x }"),
            "SELECT EXISTS (SELECT 1 FROM p0 t0 WHERE t0.o = t0.s) AS \"?ask\""
        );
    }

    #[test]
    fn counts() {
        let sql = translate(
            "SELECT ?y (COUNT(DISTINCT ?x) AS ?n) { ?x <http://p> ?y } GROUP BY ?y",
            &schema(true),
        )
        .unwrap();
        assert_eq!(
            sql.select,
            "SELECT q.v0 AS \"?y\", '\"' || q.v1 || '\"^^<http://www.w3.org/2001/XMLSchema#integer>' AS \"?n\" \
             FROM (SELECT t0.o AS v0, count(DISTINCT t0.s) AS v1 FROM p0 t0 GROUP BY t0.o) q"
        );
    }

    #[test]
    fn what_is_not_translated_is_named() {
        for (query, word) in [
            ("SELECT * { ?s <http://p> ?o FILTER(?o > 1) }", "FILTER"),
            ("SELECT * { ?s <http://p>* ?o }", "path"),
            (
                "SELECT * { { ?s <http://p> ?o } UNION { ?s <http://q> ?o } }",
                "UNION",
            ),
            (
                "SELECT * { ?s <http://p> ?o OPTIONAL { ?o <http://q> ?x } }",
                "OPTIONAL",
            ),
            ("SELECT * { ?s <http://p> ?o } ORDER BY ?o", "ORDER BY"),
            ("SELECT (SUM(?o) AS ?n) { ?s <http://p> ?o }", "COUNT"),
            ("DESCRIBE <http://o>", "SELECT"),
            ("SELECT", "error"),
        ] {
            let e = translate(query, &schema(false)).unwrap_err();
            assert!(e.contains(word), "{query}: {e}");
        }
    }
}
