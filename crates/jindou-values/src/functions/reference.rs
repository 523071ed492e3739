//! Generation of the page `docs/functions.md`.

use super::{ALL, Definition};
use std::fmt::Write;

/// The reference of all functions, as Markdown.
#[must_use]
pub fn reference() -> String {
    let mut out = String::from(
        "# Functions\n\n\
         The functions of SPARQL and of SPARQL Enhancement Proposals that have a name. This page is written from their\n\
         definitions (`crates/jindou-values/src/functions`); [values.md](values.md) has what the specification leaves open.\n\n\
         An argument without a value, an unbound variable or an error, makes the call an error. Names are written in any case.\n",
    );
    let mut groups: Vec<&str> = vec![];
    for d in ALL {
        if !groups.contains(&d.group) {
            groups.push(d.group);
        }
    }
    for group in groups {
        let _ = write!(out, "\n## {group}\n");
        for d in ALL.iter().filter(|d| d.group == group) {
            function(d, &mut out);
        }
    }
    out
}

fn function(d: &Definition, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(out, "\n### {}\n\n", d.names.join(", "));
    let mut call = format!("{}(", d.names[0]);
    for (i, (name, _)) in d.arguments.iter().enumerate() {
        let before = if i == 0 { "" } else { ", " };
        let _ = match i >= d.least {
            true => write!(call, "[{before}{name}]"),
            false => write!(call, "{before}{name}"),
        };
    }
    if d.repeats {
        call.push_str(", …");
    }
    call.push(')');
    let _ = write!(out, "`{call}` → {}", d.gives.name());
    if !d.deterministic {
        out.push_str(", another one in each call");
    }
    out.push_str("\n\n");
    let errors = match d.errors {
        "" => String::new(),
        errors => format!(" An error {errors}."),
    };
    wrap(&format!("{}{errors}", d.summary), out);
    if !d.arguments.is_empty() {
        out.push_str("\n| argument | type |\n|---|---|\n");
        for (name, of) in d.arguments {
            let _ = writeln!(out, "| `{name}` | {} |", of.name());
        }
    }
    if !d.examples.is_empty() {
        out.push_str("\n| call | value |\n|---|---|\n");
        for (call, value) in d.examples {
            let _ = writeln!(out, "| `{call}` | `{value}` |");
        }
    }
}

/// Appends a paragraph in lines of at most 120 characters.
fn wrap(text: &str, out: &mut String) {
    let mut long = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if long > 0 && long + 1 + length > 120 {
            out.push('\n');
            long = 0;
        } else if long > 0 {
            out.push(' ');
            long += 1;
        }
        out.push_str(word);
        long += length;
    }
    out.push('\n');
}
