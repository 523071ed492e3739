//! Algebra as text that does not depend on generated names, nor on how associative operators are nested. It is made
//! from what `Debug` writes, which has the same form for all of `spargebra`'s types.

use rustc_hash::FxHashMap;
use std::fmt::{Debug, Write};

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

const ASSOCIATIVE: [&str; 6] = ["Join", "Union", "Or", "And", "Sequence", "Alternative"];

/// A query or a list of operations. If `sorted`, the variables of projections are sorted.
pub(super) fn normal(algebra: &impl Debug, sorted: bool) -> String {
    let text = format!("{algebra:?}");
    let mut n = Normal::default();
    for node in nodes(&mut text.as_str(), sorted) {
        n.node(&node);
    }
    n.out
}

/// A value: its name, or a string with its closing quote only, so that no string equals a name; and its fields, whose
/// names are left out.
struct Node<'t> {
    name: &'t str,
    parts: Vec<Self>,
}

/// Reads values up to a closing bracket or the end of the text.
fn nodes<'t>(text: &mut &'t str, sorted: bool) -> Vec<Node<'t>> {
    let mut all = vec![];
    loop {
        *text = text.trim_start_matches([' ', ',']);
        if let Some(string) = text.strip_prefix('"') {
            let mut escaped = false;
            let close = string.find(|c: char| {
                let closes = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                closes
            });
            let (name, rest) = string.split_at(close.unwrap() + 1);
            all.push(Node::new(name, vec![], sorted));
            *text = rest;
            continue;
        }
        let end = text.find([' ', ',', ':', '(', ')', '[', ']', '{', '}']);
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        if let Some(value) = rest.strip_prefix(':') {
            *text = value;
        } else if let Some(inside) = rest.trim_start().strip_prefix(['(', '[', '{']) {
            *text = inside;
            let parts = nodes(text, sorted);
            all.push(Node::new(name, parts, sorted));
        } else if name.is_empty() {
            *text = text.get(1..).unwrap_or_default();
            return all;
        } else {
            all.push(Node::new(name, vec![], sorted));
            *text = rest;
        }
    }
}

impl<'t> Node<'t> {
    fn new(name: &'t str, mut parts: Vec<Self>, sorted: bool) -> Self {
        if sorted && name == "Project" {
            parts[1]
                .parts
                .sort_by_key(|variable| variable.parts[0].name);
        }
        // `spargebra` parses the sign of a number as an operator.
        if name == "Literal"
            && let [literal] = &mut parts[..]
            && let [content] = &mut literal.parts[..]
            && let [value, datatype] = &mut content.parts[..]
            && content.name == "TypedLiteral"
            && datatype.parts[0].name.starts_with(XSD)
            && let Some(rest) = value.name.strip_prefix(['+', '-'])
        {
            let plus = value.name.starts_with('+');
            value.name = rest;
            return Self {
                name: if plus { "UnaryPlus" } else { "UnaryMinus" },
                parts: vec![Self { name, parts }],
            };
        }
        Self { name, parts }
    }

    /// The name of a variable or blank node, if it was generated.
    fn generated(&self) -> Option<String> {
        let (name, length) = match (self.name, &self.parts[..]) {
            // The name as bytes, which zeros follow.
            ("Anonymous", [_, name]) => {
                let bytes = name.parts[0].parts.iter().map(|b| b.name);
                let bytes: Vec<&str> = bytes.filter(|&b| b != "0").collect();
                (bytes.join(" "), bytes.len())
            }
            ("Variable" | "Named", [Node { name, parts }]) if parts.is_empty() => {
                let name = name.trim_end_matches('"');
                let hex = name.bytes().all(|b| b.is_ascii_hexdigit());
                let length = if hex { name.len() } else { 0 };
                (name.to_owned(), length)
            }
            _ => return None,
        };
        ((28..=32).contains(&length) || name.starts_with("_gen")).then_some(name)
    }

    /// Adds the operands of an operator to `out`, also those of the same operator in them if it is associative.
    fn operands<'n>(&'n self, out: &mut Vec<&'n Self>) {
        for part in &self.parts {
            if part.name == self.name && ASSOCIATIVE.contains(&part.name) {
                part.operands(out);
            } else {
                out.push(part);
            }
        }
    }
}

#[derive(Default)]
struct Normal {
    out: String,
    /// Numbers of generated names.
    names: FxHashMap<String, usize>,
}

impl Normal {
    fn node(&mut self, node: &Node<'_>) {
        self.out.push_str(node.name);
        if let Some(name) = node.generated() {
            let next = self.names.len();
            let n = *self
                .names
                .entry(node.name.to_owned() + &name)
                .or_insert(next);
            let _ = write!(self.out, "#{n} ");
            return;
        }
        let mut operands = vec![];
        node.operands(&mut operands);
        if !operands.is_empty() || node.name.is_empty() {
            self.out.push('(');
            operands.into_iter().for_each(|part| self.node(part));
            self.out.push(')');
        }
        self.out.push(' ');
    }
}
