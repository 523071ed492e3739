//! Divides a query into its basic graph patterns (BGPs). Workers find the matches of each; these replace the BGP as
//! inline data, and the master runs the query that results.

use jindou::{Error, Result, parse_query};
use spargebra::Query;
use spargebra::algebra::{Expression, GraphPattern};
use spargebra::term::{
    GroundTerm, NamedNode, NamedNodePattern, TermPattern, TriplePattern, Variable,
};
use std::collections::{BTreeMap, BTreeSet};

/// IRIs that `BIND` assigns to variables, which may replace the variables in BGPs that are joined with the `BIND`.
type Constants = BTreeMap<String, NamedNode>;

/// One basic graph pattern of a query.
#[derive(Clone, Debug)]
pub struct Bgp {
    /// Triple patterns in which constants replace the variables of `BIND`, and variables replace blank nodes.
    pub patterns: Vec<TriplePattern>,
    /// The variables that were replaced, with their constants.
    constants: Constants,
    /// Variables that other parts of the query mention.
    pub needed: BTreeSet<String>,
}

/// The work that remains for the master.
#[derive(Clone, Debug)]
pub enum Shape {
    /// The query is a single BGP: project these columns.
    Bgp {
        columns: Vec<String>,
        distinct: bool,
    },
    /// Any other query: run it with inline data for its BGPs.
    General(Box<Query>),
}

/// A query divided into BGPs and the remaining work.
#[derive(Clone, Debug)]
pub struct Divided {
    pub bgps: Vec<Bgp>,
    pub shape: Shape,
}

/// Rows of terms; `None` is unbound.
pub type Bindings = Vec<Vec<Option<GroundTerm>>>;

/// Divides a query.
///
/// # Errors
/// Those of the parser; [`Error::Unsupported`] for property paths, GRAPH, SERVICE, FROM and forms other than SELECT and ASK.
pub fn divide(text: &str) -> Result<Divided> {
    let mut query = Query::from(&parse_query(text)?);
    let shape = shape(&query);
    let mut bgps = vec![];
    let pattern = pattern(&mut query)?;
    walk(pattern, &Constants::new(), &mut |bgp, constants| {
        if let GraphPattern::Bgp { patterns } = bgp {
            let mut constants = constants.clone();
            let own: BTreeSet<_> = patterns
                .iter()
                .flat_map(super::decompose::variables)
                .collect();
            constants.retain(|v, _| own.contains(v));
            bgps.push(Bgp {
                patterns: patterns.iter().map(|p| place(p, &constants)).collect(),
                constants,
                needed: BTreeSet::new(),
            });
        }
        Ok(())
    })?;
    let mut rest = query.clone();
    walk(
        self::pattern(&mut rest)?,
        &Constants::new(),
        &mut |bgp, _| {
            *bgp = GraphPattern::default();
            Ok(())
        },
    )?;
    let rest = rest.to_string();
    let all = rest.contains("COUNT(DISTINCT *)");
    let mentioned = mentioned(&rest);
    let own: Vec<BTreeSet<String>> = bgps
        .iter()
        .map(|b| {
            b.patterns
                .iter()
                .flat_map(super::decompose::variables)
                .collect()
        })
        .collect();
    for (i, bgp) in bgps.iter_mut().enumerate() {
        bgp.needed = own[i]
            .iter()
            .filter(|v| {
                let mut others = own.iter().enumerate().filter(|(j, _)| *j != i);
                all || mentioned.contains(*v) || others.any(|(_, o)| o.contains(*v))
            })
            .cloned()
            .collect();
    }
    let shape = shape.unwrap_or_else(|| Shape::General(Box::new(query)));
    Ok(Divided { bgps, shape })
}

/// The query with a table as inline data in the place of each BGP, in the order of [`Divided::bgps`].
pub fn rebuild(query: &Query, bgps: &[Bgp], tables: Vec<(Vec<String>, Bindings)>) -> Result<Query> {
    let mut query = query.clone();
    let mut next = bgps.iter().zip(tables);
    walk(pattern(&mut query)?, &Constants::new(), &mut |at, _| {
        let Some((bgp, (columns, mut bindings))) = next.next() else {
            return Err(Error::Internal("more patterns than tables".into()));
        };
        let mut variables: Vec<Variable> = columns.iter().map(Variable::new_unchecked).collect();
        for (name, constant) in &bgp.constants {
            variables.push(Variable::new_unchecked(name));
            for row in &mut bindings {
                row.push(Some(constant.clone().into()));
            }
        }
        *at = GraphPattern::Values {
            variables,
            bindings,
        };
        Ok(())
    })?;
    Ok(query)
}

/// [`Shape::Bgp`] if the query is a single BGP under a projection; otherwise `None`.
fn shape(query: &Query) -> Option<Shape> {
    let Query::Select {
        pattern, dataset, ..
    } = query
    else {
        return None;
    };
    let (pattern, distinct) = match pattern {
        GraphPattern::Distinct { inner } => (&**inner, true),
        p => (p, false),
    };
    match pattern {
        GraphPattern::Project { inner, variables }
            if matches!(&**inner, GraphPattern::Bgp { patterns } if !patterns.is_empty())
                && dataset.is_none() =>
        {
            let columns = variables.iter().map(|v| v.as_str().to_owned()).collect();
            Some(Shape::Bgp { columns, distinct })
        }
        _ => None,
    }
}

fn pattern(query: &mut Query) -> Result<&mut GraphPattern> {
    let unsupported = |what: &str| Err(Error::Unsupported(format!("{what} on partitions")));
    match query {
        Query::Select { dataset, .. } | Query::Ask { dataset, .. } if dataset.is_some() => {
            unsupported("FROM")
        }
        Query::Select { pattern, .. } | Query::Ask { pattern, .. } => Ok(pattern),
        _ => unsupported("CONSTRUCT and DESCRIBE"),
    }
}

type Visit<'a> = &'a mut dyn FnMut(&mut GraphPattern, &Constants) -> Result<()>;

/// Calls `visit` with every BGP that is not empty, from left to right, and with the constants that it is joined with.
fn walk(p: &mut GraphPattern, constants: &Constants, visit: Visit<'_>) -> Result<()> {
    let unsupported = |what: &str| Err(Error::Unsupported(format!("{what} on partitions")));
    let none = Constants::new();
    match p {
        GraphPattern::Bgp { patterns } if patterns.is_empty() => Ok(()),
        GraphPattern::Bgp { .. } => visit(p, constants),
        GraphPattern::Values { .. } => Ok(()),
        GraphPattern::Join { left, right } => {
            let mut of_right = constants.clone();
            certain(left, &mut of_right);
            let mut of_left = constants.clone();
            certain(right, &mut of_left);
            walk(left, &of_left, visit)?;
            walk(right, &of_right, visit)
        }
        GraphPattern::Union { left, right } => {
            walk(left, constants, visit)?;
            walk(right, constants, visit)
        }
        GraphPattern::LeftJoin {
            left,
            right,
            expression,
        } => {
            walk(left, constants, visit)?;
            walk(right, &none, visit)?;
            expression.as_mut().map_or(Ok(()), |e| within(e, visit))
        }
        GraphPattern::Minus { left, right } => {
            walk(left, constants, visit)?;
            walk(right, &none, visit)
        }
        GraphPattern::Filter { expr, inner } => {
            walk(inner, constants, visit)?;
            within(expr, visit)
        }
        GraphPattern::Extend {
            inner, expression, ..
        } => {
            walk(inner, constants, visit)?;
            within(expression, visit)
        }
        GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::Group { inner, .. } => walk(inner, &none, visit),
        GraphPattern::Path { .. } => unsupported("property paths"),
        GraphPattern::Graph { .. } => unsupported("GRAPH"),
        GraphPattern::Service { .. } => unsupported("SERVICE"),
        GraphPattern::Lateral { .. } => unsupported("LATERAL"),
    }
}

/// Visits the BGPs of EXISTS inside an expression.
fn within(e: &mut Expression, visit: Visit<'_>) -> Result<()> {
    if let Expression::Exists(p) = e {
        return walk(p, &Constants::new(), visit);
    }
    parts_mut(e).into_iter().try_for_each(|x| within(x, visit))
}

/// The direct operands of an expression.
fn parts_mut(e: &mut Expression) -> Vec<&mut Expression> {
    use Expression as E;
    match e {
        E::NamedNode(_) | E::Literal(_) | E::Variable(_) | E::Bound(_) | E::Exists(_) => vec![],
        E::Or(a, b)
        | E::And(a, b)
        | E::Equal(a, b)
        | E::SameTerm(a, b)
        | E::Greater(a, b)
        | E::GreaterOrEqual(a, b)
        | E::Less(a, b)
        | E::LessOrEqual(a, b)
        | E::Add(a, b)
        | E::Subtract(a, b)
        | E::Multiply(a, b)
        | E::Divide(a, b) => vec![a, b],
        E::UnaryPlus(a) | E::UnaryMinus(a) | E::Not(a) => vec![a],
        E::In(a, list) => std::iter::once(&mut **a).chain(list).collect(),
        E::If(a, b, c) => vec![a, b, c],
        E::Coalesce(list) | E::FunctionCall(_, list) => list.iter_mut().collect(),
    }
}

/// Adds the constants that every solution of a pattern certainly has, found by a simple rule.
fn certain(p: &GraphPattern, out: &mut Constants) {
    match p {
        GraphPattern::Extend {
            inner,
            variable,
            expression,
        } => {
            if let Expression::NamedNode(n) = expression {
                out.insert(variable.as_str().to_owned(), n.clone());
            }
            certain(inner, out);
        }
        GraphPattern::Join { left, right } => {
            certain(left, out);
            certain(right, out);
        }
        GraphPattern::Filter { inner, .. } => certain(inner, out),
        _ => {}
    }
}

/// A triple pattern with constants in the place of their variables, and variables in the place of blank nodes.
fn place(p: &TriplePattern, constants: &Constants) -> TriplePattern {
    let term = |t: &TermPattern| match t {
        TermPattern::BlankNode(b) => {
            let name = format!("jindou_blank_{}", b.as_str());
            TermPattern::Variable(Variable::new_unchecked(name))
        }
        TermPattern::Variable(v) => match constants.get(v.as_str()) {
            Some(n) => TermPattern::NamedNode(n.clone()),
            None => t.clone(),
        },
        _ => t.clone(),
    };
    TriplePattern {
        subject: term(&p.subject),
        predicate: match &p.predicate {
            NamedNodePattern::Variable(v) => match constants.get(v.as_str()) {
                Some(n) => n.clone().into(),
                None => p.predicate.clone(),
            },
            n => n.clone(),
        },
        object: term(&p.object),
    }
}

/// Names after question marks in a query's text. A false one (in a literal) only keeps an unneeded column.
fn mentioned(text: &str) -> BTreeSet<String> {
    text.split('?')
        .skip(1)
        .map(|rest| {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            rest[..end.unwrap_or(rest.len())].to_owned()
        })
        .collect()
}

/// A term for inline data. A blank node, which inline data cannot contain, becomes an IRI with the prefix [`BLANK`].
///
/// # Errors
/// [`Error::Unsupported`] for triple terms.
pub fn ground(canonical: &[u8]) -> Result<GroundTerm> {
    match jindou::decode_term(canonical) {
        Some(oxrdf::Term::NamedNode(n)) => Ok(GroundTerm::NamedNode(n)),
        Some(oxrdf::Term::Literal(l)) => Ok(GroundTerm::Literal(l)),
        Some(oxrdf::Term::BlankNode(b)) => Ok(GroundTerm::NamedNode(NamedNode::new_unchecked(
            format!("{BLANK}{}", b.as_str()),
        ))),
        _ => Err(Error::Unsupported("triple terms in inline data".into())),
    }
}

/// Prefix of the IRIs that stand for blank nodes.
pub const BLANK: &str = "urn:jindou:parallel:blank:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pattern_is_left_to_the_join() {
        let d = divide("SELECT DISTINCT ?a { ?a <http://e/p> ?b . ?b <http://e/q> _:x }").unwrap();
        assert_eq!(d.bgps.len(), 1);
        assert_eq!(d.bgps[0].patterns.len(), 2);
        assert!(matches!(&d.shape, Shape::Bgp { columns, distinct: true } if columns == &["a"]));
        assert_eq!(d.bgps[0].needed, ["a".to_owned()].into());
    }

    #[test]
    fn patterns_of_optionals_unions_and_exists_are_found() {
        let d = divide(
            "SELECT ?a (COUNT(*) AS ?n) { { ?a <http://e/p> ?b } UNION { ?a <http://e/q> ?c } \
             OPTIONAL { ?a <http://e/r> ?d } FILTER NOT EXISTS { ?d <http://e/s> ?e } } GROUP BY ?a",
        )
        .unwrap();
        assert_eq!(d.bgps.len(), 4);
        assert_eq!(d.bgps[0].needed, ["a".to_owned()].into());
        assert_eq!(d.bgps[2].needed, ["a".to_owned(), "d".to_owned()].into());
        let Shape::General(query) = &d.shape else {
            panic!("not one pattern");
        };
        let tables = vec![(vec![], vec![]); 4];
        let text = rebuild(query, &d.bgps, tables).unwrap().to_string();
        assert!(!text.contains("http://e/"), "{text}");
    }

    #[test]
    fn a_bound_constant_takes_its_variables_place() {
        let d = divide("SELECT * { BIND(<http://e/x> AS ?x) { ?x ?p ?o } UNION { ?s ?p ?x } }")
            .unwrap();
        assert_eq!(d.bgps.len(), 2);
        assert_eq!(d.bgps[0].patterns[0].to_string(), "<http://e/x> ?p ?o");
        assert_eq!(d.bgps[1].patterns[0].to_string(), "?s ?p <http://e/x>");
        assert_eq!(d.bgps[0].constants.len(), 1);
    }

    #[test]
    fn what_needs_more_than_patterns_is_refused() {
        for text in [
            "SELECT * { ?a <http://e/p>+ ?b }",
            "SELECT * { GRAPH ?g { ?a ?p ?b } }",
            "CONSTRUCT { ?a ?p ?b } { ?a ?p ?b }",
        ] {
            assert!(matches!(divide(text), Err(Error::Unsupported(_))), "{text}");
        }
    }
}
