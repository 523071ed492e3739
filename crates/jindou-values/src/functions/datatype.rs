//! `DATATYPE`.

use super::{Cost, Definition, Row, Scalar, Type, Val};
use jindou_model::term::{self, Parts};
use std::borrow::Cow;

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["DATATYPE"],
    arguments: &[("literal", Type::Literal)],
    least: 1,
    repeats: false,
    gives: Type::Iri,
    deterministic: true,
    cost: Cost::Text,
    row: Some(Scalar::Datatype),
    number: None,
    group: "Strings",
    summary: "The datatype of a literal; `xsd:string`, `rdf:langString` or `rdf:dirLangString` for strings.",
    errors: "for anything but a literal",
    examples: &[
        (
            "DATATYPE(1.5)",
            "<http://www.w3.org/2001/XMLSchema#decimal>",
        ),
        (
            r#"DATATYPE("a"@en)"#,
            "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>",
        ),
    ],
};

/// The value for a row.
#[inline]
pub fn row<R: Row>(row: &mut R, [first, ..]: [Option<Val>; 3]) -> Option<Val> {
    row.parts(first?, |row, parts| {
        let datatype: Cow<'_, str> = match parts? {
            Parts::String(_) => "http://www.w3.org/2001/XMLSchema#string".into(),
            Parts::Lang(_, l) if l.contains("--") => {
                "http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString".into()
            }
            Parts::Lang(..) => "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString".into(),
            Parts::Coded(_, code) => term::datatype_iri(code)?.into(),
            Parts::Typed(_, iri) => iri.into(),
            _ => return None,
        };
        let mut bytes = vec![];
        term::push_iri(&datatype, &mut bytes);
        Some(Val::Term(row.push(&bytes)))
    })
}
