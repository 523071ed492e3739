//! Namespaces in XML literals. `rdf:parseType="Literal"` means the exclusive canonical form: an
//! element declares just the namespaces that it or its attributes use and that are not declared
//! around it. The RDF/XML parser gives us every namespace in scope instead.

/// A start tag's parts, as they are in the text.
struct Tag<'a> {
    name: &'a str,
    /// Prefix (empty for the default namespace) and value.
    declarations: Vec<(&'a str, &'a str)>,
    /// Name and value.
    attributes: Vec<(&'a str, &'a str)>,
    empty: bool,
}

/// The text with its namespace declarations and attributes in exclusive canonical form; `None` when
/// nothing has to change or the text is not well-formed.
pub(crate) fn canonical(text: &str) -> Option<String> {
    if !text.contains("xmlns") {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    // Declarations in scope and those already written, by element depth.
    let mut scope: Vec<(&str, &str)> = Vec::new();
    let mut written: Vec<(&str, &str)> = Vec::new();
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(end) = skipped(rest)? {
            out.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        if rest.starts_with("</") {
            let end = rest.find('>')? + 1;
            out.push_str(&rest[..end]);
            rest = &rest[end..];
            let (scoped, wrote) = open.pop()?;
            scope.truncate(scoped);
            written.truncate(wrote);
            continue;
        }
        let (tag, behind) = start_tag(rest)?;
        rest = behind;
        let before = (scope.len(), written.len());
        scope.extend(&tag.declarations);
        write_tag(&tag, &scope, &mut written, &mut out);
        if tag.empty {
            scope.truncate(before.0);
            written.truncate(before.1);
        } else {
            open.push(before);
        }
    }
    out.push_str(rest);
    (open.is_empty() && out != text).then_some(out)
}

/// Length of the comment, instruction or CDATA section that `text` starts with, if it does. The
/// outer `None` says that it does not end.
#[expect(clippy::option_option, reason = "`?` ends the caller on broken text")]
fn skipped(text: &str) -> Option<Option<usize>> {
    for (start, end) in [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")] {
        if let Some(inside) = text.strip_prefix(start) {
            return Some(Some(start.len() + inside.find(end)? + end.len()));
        }
    }
    Some(None)
}

fn start_tag(text: &str) -> Option<(Tag<'_>, &str)> {
    let mut rest = text.strip_prefix('<')?;
    let end = rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/'))?;
    let mut tag = Tag {
        name: &rest[..end],
        declarations: Vec::new(),
        attributes: Vec::new(),
        empty: false,
    };
    rest = &rest[end..];
    loop {
        rest = rest.trim_ascii_start();
        if let Some(behind) = rest.strip_prefix('>') {
            return Some((tag, behind));
        }
        if let Some(behind) = rest.strip_prefix("/>") {
            tag.empty = true;
            return Some((tag, behind));
        }
        let (name, behind) = rest.split_once('=')?;
        let name = name.trim_ascii_end();
        let behind = behind.trim_ascii_start();
        let quote = behind.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, behind) = behind[1..].split_once(quote)?;
        if name == "xmlns" {
            tag.declarations.push(("", value));
        } else if let Some(prefix) = name.strip_prefix("xmlns:") {
            tag.declarations.push((prefix, value));
        } else {
            tag.attributes.push((name, value));
        }
        rest = behind;
    }
}

fn write_tag<'a>(
    tag: &Tag<'a>,
    scope: &[(&'a str, &'a str)],
    written: &mut Vec<(&'a str, &'a str)>,
    out: &mut String,
) {
    let prefix = |name: &'a str| name.split_once(':').map_or("", |(p, _)| p);
    let of = |list: &[(&'a str, &'a str)], p: &str| {
        list.iter()
            .rev()
            .find(|(q, _)| *q == p)
            .map_or("", |(_, uri)| *uri)
    };
    out.push('<');
    out.push_str(tag.name);
    let mut used = vec![prefix(tag.name)];
    used.extend(
        tag.attributes
            .iter()
            .map(|(name, _)| prefix(name))
            .filter(|p| !p.is_empty()),
    );
    used.sort_unstable();
    used.dedup();
    for p in used.into_iter().filter(|p| *p != "xml") {
        let uri = of(scope, p);
        if uri != of(written, p) {
            written.push((p, uri));
            attribute(if p.is_empty() { "xmlns" } else { "xmlns:" }, p, uri, out);
        }
    }
    let mut attributes = tag.attributes.clone();
    attributes.sort_by_key(|(name, _)| match name.split_once(':') {
        Some((p, local)) => (of(scope, p), local),
        None => ("", *name),
    });
    for (name, value) in attributes {
        attribute(name, "", value, out);
    }
    out.push('>');
    if tag.empty {
        out.push_str("</");
        out.push_str(tag.name);
        out.push('>');
    }
}

fn attribute(name: &str, rest_of_name: &str, value: &str, out: &mut String) {
    out.push(' ');
    out.push_str(name);
    out.push_str(rest_of_name);
    out.push_str("=\"");
    out.push_str(&value.replace('"', "&quot;"));
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_used_namespaces_stay() {
        let of = |s: &str| canonical(s).unwrap_or_else(|| s.to_owned());
        assert_eq!(of(r#"<br xmlns:a="x" xmlns:b="y"></br>"#), "<br></br>");
        assert_eq!(
            of(r#" <h:a xmlns="d" xmlns:h="u"> <b><h:c>t</h:c></b></h:a>"#),
            r#" <h:a xmlns:h="u"> <b xmlns="d"><h:c>t</h:c></b></h:a>"#
        );
        assert_eq!(
            of("<a xmlns='d'><b xmlns=''/></a>"),
            r#"<a xmlns="d"><b xmlns=""></b></a>"#
        );
        assert_eq!(
            of(r#"<a xmlns:q="1" z="2" q:b='"' a="1"></a>"#),
            r#"<a xmlns:q="1" a="1" z="2" q:b="&quot;"></a>"#
        );
    }

    #[test]
    fn broken_text_stays_as_it_is() {
        for bad in [
            "<a xmlns",
            "<a xmlns:b='x'>",
            "</a>xmlns",
            "<!-- xmlns",
            "xmlns <",
            "<a xmlns=x>",
            "<é xmlns='",
        ] {
            assert_eq!(canonical(bad), None, "{bad}");
        }
    }
}
