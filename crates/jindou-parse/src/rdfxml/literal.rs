//! XML literals: written as exclusive canonical XML with comments while the document is read.

use crate::xml::Start;

/// The canonical form of a property's content.
#[derive(Default)]
pub(super) struct CanonicalContent {
    out: String,
    /// Prefixes with their namespaces that the output has declared and that are in scope, the innermost last.
    declared: Vec<(Box<str>, Box<str>)>,
    /// For each open element, the number of declarations outside of it.
    open: Vec<usize>,
}

impl CanonicalContent {
    pub(super) fn held(&self) -> usize {
        self.out.len() + self.declared.len() * 64
    }

    /// Returns the text, and starts a new one.
    pub(super) fn take(&mut self) -> String {
        self.declared.clear();
        self.open.clear();
        std::mem::take(&mut self.out)
    }

    pub(super) fn start(&mut self, start: &Start<'_>) {
        let name = start.name();
        self.open.push(self.declared.len());
        self.out.push('<');
        self.out.push_str(name.qualified);
        let mut attributes: Vec<_> = start.attributes().collect();
        attributes.sort_by(|a, b| {
            (a.name.namespace, a.name.local).cmp(&(b.name.namespace, b.name.local))
        });
        let mut prefixes = vec![name.prefix];
        prefixes.extend(
            attributes
                .iter()
                .map(|a| a.name.prefix)
                .filter(|p| !p.is_empty()),
        );
        prefixes.sort_unstable();
        prefixes.dedup();
        for prefix in prefixes.into_iter().filter(|p| *p != "xml") {
            let namespace = start.namespace_of(prefix);
            let declared = self.declared.iter().rev().find(|(p, _)| **p == *prefix);
            if declared.map_or("", |(_, n)| n) == namespace {
                continue;
            }
            self.declared.push((prefix.into(), namespace.into()));
            self.out.push_str(if prefix.is_empty() {
                " xmlns"
            } else {
                " xmlns:"
            });
            self.out.push_str(prefix);
            self.value(namespace);
        }
        for a in attributes {
            self.out.push(' ');
            self.out.push_str(a.name.qualified);
            self.value(a.value);
        }
        self.out.push('>');
    }

    fn value(&mut self, value: &str) {
        self.out.push_str("=\"");
        escape(value, &mut self.out, |c| match c {
            '&' => Some("&amp;"),
            '<' => Some("&lt;"),
            '"' => Some("&quot;"),
            '\t' => Some("&#x9;"),
            '\n' => Some("&#xA;"),
            '\r' => Some("&#xD;"),
            _ => None,
        });
        self.out.push('"');
    }

    pub(super) fn end(&mut self, name: &str) {
        self.declared.truncate(self.open.pop().unwrap_or_default());
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    pub(super) fn text(&mut self, text: &str) {
        escape(text, &mut self.out, |c| match c {
            '&' => Some("&amp;"),
            '<' => Some("&lt;"),
            '>' => Some("&gt;"),
            '\r' => Some("&#xD;"),
            _ => None,
        });
    }

    pub(super) fn comment(&mut self, text: &str) {
        self.out.push_str("<!--");
        self.out.push_str(text);
        self.out.push_str("-->");
    }

    pub(super) fn instruction(&mut self, target: &str, data: &str) {
        self.out.push_str("<?");
        self.out.push_str(target);
        if !data.is_empty() {
            self.out.push(' ');
            self.out.push_str(data);
        }
        self.out.push_str("?>");
    }
}

fn escape(text: &str, out: &mut String, reference: impl Fn(char) -> Option<&'static str>) {
    let mut from = 0;
    for (at, b) in text.bytes().enumerate() {
        if let Some(reference) = reference(char::from(b)) {
            out.push_str(text.get(from..at).unwrap_or_default());
            out.push_str(reference);
            from = at + 1;
        }
    }
    out.push_str(text.get(from..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::{Event, Reader, ReaderOptions};

    fn canonical(text: &str) -> String {
        let document = format!("<root xmlns='d' xmlns:h='u' xmlns:unused='x'>{text}</root>");
        let mut reader = Reader::new(document.as_bytes(), ReaderOptions::default()).unwrap();
        let mut out = CanonicalContent::default();
        let mut depth = 0;
        loop {
            match reader.next_event().unwrap() {
                Event::Start(_) if depth == 0 => depth = 1,
                Event::Start(start) => {
                    depth += 1;
                    out.start(&start);
                }
                Event::End { .. } if depth == 1 => return out.take(),
                Event::End { name } => {
                    depth -= 1;
                    out.end(name);
                }
                Event::Text(text) => out.text(text),
                Event::Comment(text) => out.comment(text),
                Event::Instruction { target, data } => out.instruction(target, data),
                _ => {}
            }
        }
    }

    #[test]
    fn only_used_namespaces_are_declared_and_only_once() {
        for (text, expected) in [
            ("<h:br xmlns:b='y'/>", r#"<h:br xmlns:h="u"></h:br>"#),
            (
                "<h:a> <b><h:c>t</h:c></b></h:a><b/>",
                r#"<h:a xmlns:h="u"> <b xmlns="d"><h:c>t</h:c></b></h:a><b xmlns="d"></b>"#,
            ),
            (
                "<a><b xmlns=''/></a>",
                r#"<a xmlns="d"><b xmlns=""></b></a>"#,
            ),
            (
                "<a xmlns:q='1' z='2' q:b='\"' a='1' xml:lang='en'/>",
                r#"<a xmlns="d" xmlns:q="1" a="1" z="2" q:b="&quot;" xml:lang="en"></a>"#,
            ),
            (
                "<h:a><h:b xmlns:h='v'><h:c/></h:b><h:d/></h:a>",
                r#"<h:a xmlns:h="u"><h:b xmlns:h="v"><h:c></h:c></h:b><h:d></h:d></h:a>"#,
            ),
        ] {
            assert_eq!(canonical(text), expected);
        }
    }

    #[test]
    fn text_is_written_as_canonical_xml_has_it() {
        for (text, expected) in [
            ("don't \"&amp;&lt;>&#13;", "don't \"&amp;&lt;&gt;&#xD;"),
            (
                "a<!-- c --><![CDATA[<&]]>é<?p  d ?><?q?>",
                "a<!-- c -->&lt;&amp;é<?p d ?><?q?>",
            ),
            (
                "<h:a b='&#9;&#10;&#13;\n&lt;>'/>",
                r#"<h:a xmlns:h="u" b="&#x9;&#xA;&#xD; &lt;>"></h:a>"#,
            ),
        ] {
            assert_eq!(canonical(text), expected);
        }
    }
}
