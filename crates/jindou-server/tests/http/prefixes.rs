//! Turtle answers declare the prefixes that they use.

use crate::{get, options, serve, store};
use jindou_testing::http::escape;
use oxrdfio::{RdfFormat, RdfParser};

#[test]
fn a_graph_declares_the_prefixes_that_it_uses() {
    // More prefixes than a document may declare, and one of the data's own for the namespace of a common prefix.
    let mut text: String = (0..300)
        .map(|n| format!("@prefix p{n}: <http://e/{n}/> .\n"))
        .collect();
    text += "@prefix own: <http://xmlns.com/foaf/0.1/> .\n";
    // Rows are sorted by predicate, so some prefixes are used only long after the first rows.
    for n in 0..3000 {
        text += &format!("p7:s{n} p140:q {n} ; own:name \"{n}\"^^p3:t .\n");
    }
    text += "p299:last a p200:C .";
    let data = store(&text);
    let server = serve(&data, options());
    let query = escape("CONSTRUCT WHERE { ?s ?p ?o }");
    for target in [
        "/store?default&format=ttl".to_owned(),
        format!("/query?format=ttl&query={query}"),
        "/store?format=trig".to_owned(),
    ] {
        let answer = get(&server, &target);
        let text = answer.text();
        let is_declared = |line: &&str| line.starts_with("@prefix ");
        let mut declared: Vec<&str> = text.lines().filter(is_declared).collect();
        declared.sort_unstable();
        let wanted = [
            "@prefix own: <http://xmlns.com/foaf/0.1/> .",
            "@prefix p140: <http://e/140/> .",
            "@prefix p200: <http://e/200/> .",
            "@prefix p299: <http://e/299/> .",
            "@prefix p3: <http://e/3/> .",
            "@prefix p7: <http://e/7/> .",
        ];
        assert_eq!(declared, wanted, "{target}");
        let rest: Vec<&str> = text.lines().filter(|l| !is_declared(l)).collect();
        assert!(!rest.join("\n").contains("http://"), "{target}");
        let format = match target.contains("trig") {
            true => RdfFormat::TriG,
            false => RdfFormat::Turtle,
        };
        let read = RdfParser::from_format(format).for_slice(text.as_bytes());
        assert_eq!(read.map(Result::unwrap).count(), 6001, "{target}");
    }
}
