//! Parser for `tests/cases/*.http`, whose format docs/testing.md describes.

use std::collections::BTreeMap;

/// Values to insert for `{{NAME}}`.
pub(super) type Names = BTreeMap<String, String>;

/// A test case: exchanges with one server, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Case {
    pub(super) name: String,
    /// Number of the line with the case's name.
    pub(super) line: usize,
    /// Server options, as names and values.
    pub(super) serve: Vec<(String, String)>,
    /// The store's data as TriG.
    pub(super) data: Option<String>,
    /// Tables of values: the case is run for each row, or for each combination of rows of several tables.
    pub(super) each: Vec<Table>,
    pub(super) exchanges: Vec<Exchange>,
}

/// The header of a table, and its rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) names: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// A request, and the expected response.
#[derive(Clone, Debug, Default)]
pub(super) struct Exchange {
    pub(super) line: usize,
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<String>,
    /// Expected status such as `200` or `2xx`, and the expected kind of problem, if any.
    pub(super) status: String,
    pub(super) problem: Option<String>,
    /// True if the request is repeated until the response is as expected.
    pub(super) eventually: bool,
    /// Lines of the expected body, if the whole body is compared.
    pub(super) whole: Option<Vec<String>>,
    pub(super) expected: Vec<Expectation>,
}

/// An expectation about a response: a line `SUBJECT OPERATOR VALUE`.
#[derive(Clone, Debug)]
pub(super) struct Expectation {
    pub(super) line: usize,
    pub(super) subject: String,
    pub(super) operator: String,
    pub(super) value: String,
}

/// The part of a case to which the last line belongs; it determines which lines may follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Head,
    Request,
    Response,
}

fn is_request(line: &str) -> bool {
    let (method, target) = line.split_once(' ').unwrap_or((line, ""));
    let is_method = method.bytes().all(|b| b.is_ascii_uppercase()) || method == "{{method}}";
    is_method && method != "HTTP" && (target.starts_with('/') || target.starts_with("{{"))
}

impl Case {
    /// The cases of a file. Options and data before the first case apply to all cases that do not have their own.
    pub(super) fn all(text: &str) -> Result<Vec<Self>, String> {
        let mut cases: Vec<Self> = Vec::new();
        let (mut current, mut part) = (Self::default(), Part::Head);
        let mut common = None;
        for (n, line) in text.lines().enumerate() {
            let at = n + 1;
            if let Some(name) = line.strip_prefix("== ") {
                match &common {
                    None => common = Some(current),
                    Some(_) => cases.push(current),
                }
                current = Self {
                    name: name.to_owned(),
                    line: at,
                    ..common.clone().unwrap_or_default()
                };
                part = Part::Head;
                continue;
            }
            if line.is_empty() || line.starts_with("# ") || line == "#" {
                continue;
            }
            part = current
                .add(part, line, at)
                .ok_or_else(|| format!("line {at}: not understood: {line}"))?;
        }
        cases.push(current);
        for case in &cases {
            let unanswered = case.exchanges.iter().find(|e| e.status.is_empty());
            if let Some(e) = unanswered {
                return Err(format!("line {}: a request without a response", e.line));
            }
            if case.exchanges.is_empty() {
                return Err(format!("line {}: {} checks nothing", case.line, case.name));
            }
        }
        Ok(cases)
    }

    /// Adds a line, and returns the part to which it belongs; `None` if the line is not allowed here.
    fn add(&mut self, part: Part, line: &str, at: usize) -> Option<Part> {
        if is_request(line) {
            let (method, target) = line.split_once(' ')?;
            self.exchanges.push(Exchange {
                line: at,
                method: method.to_owned(),
                target: target.to_owned(),
                ..Exchange::default()
            });
            return Some(Part::Request);
        }
        let text = line.strip_prefix("| ").or((line == "|").then_some(""));
        match part {
            Part::Head => self.add_head(line, text),
            Part::Request => {
                let exchange = self.exchanges.last_mut()?;
                if let Some(text) = text {
                    exchange.body.push(text.to_owned());
                    return Some(Part::Request);
                }
                if let Some(status) = line.strip_prefix("HTTP ") {
                    let mut words = status.split(' ');
                    exchange.status = words.next()?.to_owned();
                    for word in words {
                        match word {
                            "eventually" => exchange.eventually = true,
                            kind => exchange.problem = Some(kind.to_owned()),
                        }
                    }
                    return Some(Part::Response);
                }
                let (name, value) = line.split_once(':')?;
                let header = (name.to_owned(), value.trim().to_owned());
                exchange.headers.push(header);
                Some(Part::Request)
            }
            Part::Response => {
                let exchange = self.exchanges.last_mut()?;
                if let Some(text) = text {
                    let whole = exchange.whole.get_or_insert_default();
                    whole.push(text.to_owned());
                    return Some(part);
                }
                let (subject, rest) = line.split_once(' ')?;
                let (operator, value) = rest.split_once(' ').unwrap_or((rest, ""));
                exchange.expected.push(Expectation {
                    line: at,
                    subject: subject.to_owned(),
                    operator: operator.to_owned(),
                    value: value.to_owned(),
                });
                Some(part)
            }
        }
    }

    /// Adds a line before the first request.
    fn add_head(&mut self, line: &str, text: Option<&str>) -> Option<Part> {
        let cells = |text: &str| -> Vec<String> {
            // Editors may have removed the space after an empty last cell.
            let text = format!("{text} ");
            text.split(" | ").map(|c| c.trim().to_owned()).collect()
        };
        if let Some(text) = text {
            let data = self.data.as_mut()?;
            data.push_str(text);
            data.push('\n');
        } else if line == "data" {
            self.data = Some(String::new());
        } else if let Some(option) = line.strip_prefix("serve ") {
            let (name, value) = option.split_once(' ').unwrap_or((option, ""));
            self.serve.push((name.to_owned(), value.to_owned()));
        } else if let Some(names) = line.strip_prefix("each ") {
            self.each.push(Table {
                names: cells(names),
                rows: vec![],
            });
        } else {
            let row = cells(line.strip_prefix('-')?);
            let table = self.each.last_mut()?;
            if row.len() != table.names.len() {
                return None;
            }
            table.rows.push(row);
        }
        Some(Part::Head)
    }

    /// All combinations of the tables' rows; a single empty one without tables.
    pub(super) fn combinations(&self) -> Vec<Names> {
        let mut all = vec![Names::new()];
        for table in &self.each {
            let combined = all.iter().flat_map(|known| {
                table.rows.iter().map(|row| {
                    let mut known = known.clone();
                    known.extend(table.names.iter().cloned().zip(row.iter().cloned()));
                    known
                })
            });
            all = combined.collect();
        }
        all
    }
}

/// The text with each known `{{NAME}}` replaced by its value.
pub(super) fn filled(text: &str, names: &Names) -> String {
    let mut text = text.to_owned();
    for (name, value) in names {
        let mark = format!("{{{{{name}}}}}");
        if text.contains(&mark) {
            text = text.replace(&mark, value);
        }
    }
    text
}
