//! Functions of strings: SPARQL 1.1 §17.4.3.

use super::Free;
use super::number::Number;
use super::value::{Tag, Value, ValueKind};
use regex::{Regex, RegexBuilder};

/// The lexical form of a literal or the text of an IRI; `None` for blank nodes and triple terms.
pub(super) fn text_of(value: &Value) -> Option<String> {
    use oxrdf::Term;
    match value.term() {
        Term::NamedNode(n) => Some(n.as_str().to_owned()),
        Term::Literal(l) => Some(l.value().to_owned()),
        _ => None,
    }
}

/// The text and language tag of a string; `None` for other values.
pub(super) fn text(value: &Value) -> Option<(String, Option<Tag>)> {
    match value.kind() {
        ValueKind::Text(s, tag) => Some((s, tag)),
        _ => None,
    }
}

/// The text of a string without language tag; `None` for other values.
pub(super) fn simple(value: &Value) -> Option<String> {
    text(value).filter(|(_, tag)| tag.is_none()).map(|(s, _)| s)
}

fn whole(value: &Value, free: &Free) -> Option<i128> {
    match value.kind() {
        ValueKind::Number(Number::Integer(n)) => n.to_string().parse().ok().or_else(|| {
            free.note("a place in a string beyond 128 bits");
            None
        }),
        ValueKind::Number(_) => {
            free.note("SUBSTR with a place that is not an integer");
            None
        }
        _ => None,
    }
}

/// The texts of both strings, and the language tag of the first, if they are compatible arguments (§17.4.3.1.2).
pub(super) fn compatible(a: &Value, b: &Value) -> Option<(String, String, Option<Tag>)> {
    let ((a, ta), (b, tb)) = (text(a)?, text(b)?);
    (tb.is_none() || ta == tb).then_some((a, b, ta))
}

/// fn:substring. The first character has position 1.
pub(super) fn substring(args: &[Value], free: &Free) -> Option<Value> {
    let (s, tag) = text(&args[0])?;
    let start = whole(&args[1], free)?;
    let end = match args.get(2) {
        Some(n) => start.saturating_add(whole(n, free)?),
        None => i128::MAX,
    };
    let out: String = s
        .chars()
        .zip(1_i128..)
        .filter(|(_, at)| *at >= start && *at < end)
        .map(|(c, _)| c)
        .collect();
    Some(Value::tagged(out, tag.as_ref()))
}

pub(super) fn before(a: &Value, b: &Value) -> Option<Value> {
    let (a, b, tag) = compatible(a, b)?;
    Some(match a.find(&b) {
        Some(at) => Value::tagged(&a[..at], tag.as_ref()),
        None => Value::string(""),
    })
}

pub(super) fn after(a: &Value, b: &Value) -> Option<Value> {
    let (a, b, tag) = compatible(a, b)?;
    Some(match a.find(&b) {
        Some(at) => Value::tagged(&a[at + b.len()..], tag.as_ref()),
        None => Value::string(""),
    })
}

/// CONCAT. The result has a language tag if all arguments have the same one.
pub(super) fn concat(args: &[Value]) -> Option<Value> {
    let parts = args.iter().map(text).collect::<Option<Vec<_>>>()?;
    let tag = parts.first().and_then(|(_, t)| t.clone());
    let tag = tag.filter(|t| parts.iter().all(|(_, u)| u.as_ref() == Some(t)));
    let all: String = parts.iter().map(|(s, _)| s.as_str()).collect();
    Some(Value::tagged(all, tag.as_ref()))
}

pub(super) fn encode(s: &str) -> String {
    s.bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() || b"-_.~".contains(&b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

/// LANGMATCHES by basic filtering (RFC 4647 §3.3.1).
pub(super) fn lang_matches(tag: &str, range: &str) -> bool {
    let (tag, range) = (tag.to_ascii_lowercase(), range.to_ascii_lowercase());
    match range.as_str() {
        "*" => !tag.is_empty(),
        r => tag == r || !r.is_empty() && tag.starts_with(&format!("{r}-")),
    }
}

/// Compiles a pattern. Callers must use only syntax that has the same meaning in XPath and in the `regex` crate.
fn compiled(pattern: &str, flags: &str) -> Option<Regex> {
    let quoted = flags.contains('q');
    let source = if quoted {
        regex::escape(pattern)
    } else {
        pattern.to_owned()
    };
    let mut builder = RegexBuilder::new(&source);
    for f in flags.chars() {
        match f {
            's' if !quoted => _ = builder.dot_matches_new_line(true),
            'm' if !quoted => _ = builder.multi_line(true),
            'i' => _ = builder.case_insensitive(true),
            'x' if !quoted => _ = builder.ignore_whitespace(true),
            's' | 'm' | 'x' | 'q' => {}
            _ => return None,
        }
    }
    builder.build().ok()
}

fn flags(args: &[Value], at: usize) -> Option<String> {
    args.get(at).map_or(Some(String::new()), simple)
}

pub(super) fn matches(args: &[Value]) -> Option<bool> {
    let (s, _) = text(&args[0])?;
    let r = compiled(&simple(&args[1])?, &flags(args, 2)?)?;
    Some(r.is_match(&s))
}

/// fn:replace. An error if the pattern matches the empty string, and if `\` or `$` in the replacement is invalid.
pub(super) fn replace(args: &[Value]) -> Option<Value> {
    let (s, tag) = text(&args[0])?;
    let flags = flags(args, 3)?;
    let pattern = compiled(&simple(&args[1])?, &flags)?;
    let with = simple(&args[2])?;
    if pattern.is_match("") {
        return None;
    }
    let mut out = String::new();
    let mut last = 0;
    // The replacement is checked even if the pattern does not match.
    expanded(&with, &pattern, None, flags.contains('q'))?;
    for m in pattern.captures_iter(&s) {
        let whole = m.get(0)?;
        out += &s[last..whole.start()];
        out += &expanded(&with, &pattern, Some(&m), flags.contains('q'))?;
        last = whole.end();
    }
    Some(Value::tagged(out + &s[last..], tag.as_ref()))
}

/// Expands `$N` in a replacement by rules 1 to 4 of fn:replace. `\` is only allowed before `\` and `$`.
fn expanded(
    with: &str,
    pattern: &Regex,
    found: Option<&regex::Captures<'_>>,
    quoted: bool,
) -> Option<String> {
    if quoted {
        return Some(with.to_owned());
    }
    let groups = pattern.captures_len() - 1;
    let mut out = String::new();
    let mut rest = with;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' => {
                let next = rest.chars().next().filter(|c| "\\$".contains(*c))?;
                out.push(next);
                rest = &rest[1..];
            }
            '$' => {
                let digits =
                    rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                let number = |long: usize| rest[..long].parse::<u128>().unwrap_or(u128::MAX);
                if digits == 0 {
                    return None;
                }
                let mut long = digits;
                while number(long) > groups as u128 && number(long) > 9 {
                    long -= 1;
                }
                let group = found.and_then(|f| f.get(number(long) as usize));
                out += group.map_or("", |g| g.as_str());
                rest = &rest[long..];
            }
            c => out.push(c),
        }
    }
    Some(out)
}
