//! Documents in every syntax of RDF, for tests that truncate them at any position.

const RDF: &str =
    "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>";

/// The file extension of a syntax, and a document in it.
pub type Document = (&'static str, String);

/// Generates `count` documents in each syntax.
pub fn documents(count: usize) -> Vec<Document> {
    let mut all = Vec::new();
    for n in 0..count {
        let text = ["1", "two words", "é𝄞", "&amp;", "a\tb", "]]>"][n % 6];
        let plain = text.replace("&amp;", "and").replace('\t', "\\t");
        let markup = text.replace("]]>", "]]&gt;");
        let more = |what: [&str; 5]| what[n / 6 % 5].to_owned();
        let xml = more([
            "<e:q rdf:parseType='Collection'><e:D/><e:D/></e:q>",
            "<e:q rdf:parseType='Literal'><b xmlns='http://x/'>t</b><!-- c --></e:q>",
            "<e:q rdf:parseType='Resource'><e:r xml:lang='de'>x</e:r></e:q>",
            "<e:q rdf:ID='i'><![CDATA[<&]]>y<?p i?></e:q>",
            "<rdf:li rdf:resource='x'/><rdf:li>&e;&#65;</rdf:li>",
        ]);
        let head = match n % 3 {
            0 => "<?xml version='1.0'?>\n<!DOCTYPE r [<!ENTITY e 'f'>]>\n",
            1 => "<!DOCTYPE rdf:RDF [\n <!-- c --><!ENTITY e \"g\">]>",
            _ => "<?xml version='1.0' encoding='UTF-8'?><!DOCTYPE a [<!ENTITY e ''>]>",
        };
        all.push((
            "rdf",
            format!(
                "{head}{RDF}<e:C rdf:about='http://e/{n}'><e:p>{markup}</e:p>{xml}</e:C></rdf:RDF>"
            ),
        ));
        let turtle = more([
            ":q ( 1 [ :r <x> ] )",
            ":q '''a'b\n\"c''' , \"\"\"d\"\"\"",
            ":q -1.5e3 , +2. , .5 ; :r :s\\-t",
            ":q << :a :b :c >>",
            "a :D , [ a :E ]",
        ])
        .replace("+2. ,", "+2 ,");
        all.push((
            "ttl",
            format!("@prefix : <http://e/> .\n:s{n} :p \"{plain}\"@en-GB , 12{n} , true ; {turtle} .\n:t{n} a :C . # end\n"),
        ));
        let trig = more([
            "{ :t :p _:b }",
            "[ :p :q ] .",
            "_:g { :t :p (1 2) }",
            "GRAPH <g> { }",
            "# c\n:x { :a :b :c , \"d\"^^:e }",
        ])
        .replace("[ :p :q ] .", "{ [ :p :q ] }");
        all.push((
            "trig",
            format!("PREFIX : <http://e/>\n:g{n} {{ :s :p '''{plain}''' . :s :q 1.5e{n} }}\n{trig} GRAPH :h {{ :u :p << :a :b :c >> }}\n"),
        ));
        let triple = more([
            "_:b1 <http://e/p> _:b12",
            "<http://e/a> <http://e/b> <<( <http://e/c> <http://e/d> \"e\" )>>",
            "<http://e/a> <http://e/b> \"\\u00e9\\\"\\\\\"@de-AT",
            "<http://e/a> <http://e/b> \"x\"@en--ltr",
            "<http://e/a> <http://e/\\u00e9> \"\"",
        ]);
        all.push((
            "nq",
            format!("<http://e/s{n}> <http://e/p> \"{plain}\"^^<http://e/d> <http://e/g> .\n{triple} _:g{n} .\n{triple} .\n"),
        ));
        all.push((
            "nt",
            format!("# {n}\n<http://e/s{n}> <http://e/p> \"{plain}\" .\r\n{triple} .\n"),
        ));
        let json = more([
            r#"{"@list":[{"@id":"e:x"},1]}"#,
            r#"[{"@value":"1","@type":"e:t"},1e20]"#,
            r#"{"@value":{"a":[1,null]},"@type":"@json"}"#,
            r#"{"@id":"e:y","@graph":[{"e:r":"\u00e9\n"}]}"#,
            r#"{"@set":[{"e:r":{"@value":"x","@language":"de"}}]}"#,
        ]);
        let plain = plain.replace("]]>", "]]}");
        all.push((
            "jsonld",
            format!(r#"{{"@context":{{"e":"http://e/"}},"@id":"e:{n}","e:p":["{plain}",{n}.5,true],"e:q":{json}}}"#),
        ));
    }
    all
}

/// True if a document with this extension may end after `before`, because that consists of complete statements. Valid
/// only for the documents above.
pub fn may_end(extension: &str, before: &str) -> bool {
    let end = before.trim_end();
    let end = end.rsplit_once('\n').map_or(end, |(head, last)| {
        if last.starts_with('#') {
            head.trim_end()
        } else {
            end
        }
    });
    let end = if end.starts_with('#') && !end.contains('\n') {
        ""
    } else {
        end
    };
    let end = end.split(" # ").next().unwrap_or_default().trim_end();
    // A text such as `-1.` is an integer followed by a dot.
    let number = |text: &str| text.ends_with(|c: char| c.is_ascii_digit());
    match extension {
        "ttl" => end
            .strip_suffix('.')
            .map_or(end.is_empty(), |b| b.ends_with(' ') || number(b)),
        "nq" | "nt" => end.is_empty() || end.ends_with(" ."),
        "trig" => end.is_empty() || end.ends_with('}') || end.ends_with("<http://e/>"),
        _ => false,
    }
}
