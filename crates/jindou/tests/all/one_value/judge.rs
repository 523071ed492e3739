//! Compares the values that each position returned with the reference, and with each other where the specifications
//! leave the value to the implementation.

use super::case::Case;
use super::positions::{Asked, POSITIONS, Position, Setting, What};
use super::stores::{Scripted, Store};
use jindou_testing::reference::{Outcome, Truth, same};
use jindou_testing::{Rng, Tree};
use oxrdf::Term;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::sync::Arc;

/// A value or refusal that differs from the expected one.
#[derive(Clone)]
pub struct Disagreement {
    pub position: &'static str,
    pub store: &'static str,
    pub query: String,
    pub expression: String,
    pub data: String,
    pub expected: String,
    pub got: String,
    /// The smallest part of the expression that is wrong in the same position, with the row's terms instead of
    /// variables.
    pub cause: String,
}

impl Disagreement {
    pub fn text(&self) -> String {
        let mut query = self.query.clone();
        if query.len() > 1500 {
            let mut end = 1500;
            while !query.is_char_boundary(end) {
                end -= 1;
            }
            query.truncate(end);
            query += " …";
        }
        format!(
            "position:   {} in the store \"{}\"\nexpression: {}\ndata:       {}\nexpected:   {}\ngot:        {}\nsmallest:   {}\nquery:      {query}\n",
            self.position,
            self.store,
            self.expression,
            self.data,
            self.expected,
            self.got,
            self.cause
        )
    }
}

/// Counts of a run, and its disagreements.
#[derive(Default)]
pub struct Report {
    /// Number of expressions times rows that were tested.
    pub judged: u64,
    /// Number of cells that were compared with the expected value.
    pub compared: u64,
    /// Number of values that the specifications leave to the implementation, by reason.
    pub free: BTreeMap<&'static str, u64>,
    pub wrong: u64,
    /// Time of the queries of each position, and of the comparison.
    pub spent: BTreeMap<&'static str, std::time::Duration>,
    /// Disagreements, grouped by the shape of the smallest wrong expression.
    pub classes: BTreeMap<String, Class>,
    /// Number of expressions that were reduced to their smallest wrong part so far.
    reduced: usize,
}

/// Disagreements that probably have the same cause.
pub struct Class {
    pub count: u64,
    pub positions: BTreeSet<&'static str>,
    /// The disagreement with the shortest text.
    pub example: Disagreement,
}

/// Largest number of wrong expressions that are reduced, since each takes several queries.
const REDUCED: usize = 600;

fn shown(t: Option<&Term>) -> String {
    t.map_or_else(|| "unbound".into(), ToString::to_string)
}

fn wanted(o: &Outcome) -> String {
    o.value
        .as_ref()
        .map_or_else(|| "unbound".into(), |v| v.term().to_string())
}

/// For values left to the implementation: the first value that any position returned, by expression and row. The other
/// positions must return the same.
#[derive(Default)]
struct Seen {
    values: HashMap<(usize, usize), Option<Term>>,
    truths: HashMap<(usize, usize), Option<bool>>,
}

fn label(t: &Term) -> Term {
    match t {
        Term::BlankNode(_) => oxrdf::BlankNode::new_unchecked("b").into(),
        t => t.clone(),
    }
}

/// Returns `Err` with the expected and the actual value if they differ.
fn compare(
    what: &What,
    value: &Outcome,
    truth: Truth,
    at: (usize, usize),
    seen: &mut Seen,
) -> Result<(), (String, String)> {
    let truths = |t: Option<bool>| match t {
        Some(b) => b.to_string(),
        None => "an error".into(),
    };
    match what {
        What::Value(got) => {
            let right = match (&value.value, got) {
                (None, None) => true,
                (Some(v), Some(t)) => same(t, v),
                _ => false,
            };
            if !right && value.free.is_none() {
                return Err((wanted(value), shown(got.as_ref())));
            }
            let got = got.as_ref().map(label);
            let first = seen.values.entry(at).or_insert_with(|| got.clone());
            if *first == got {
                Ok(())
            } else {
                Err((
                    format!("{}, as another position gave", shown(first.as_ref())),
                    shown(got.as_ref()),
                ))
            }
        }
        What::Made(got, want) => {
            let right = match (&want.value, got) {
                (None, None) => true,
                (Some(v), Some(t)) => same(t, v),
                _ => false,
            };
            if right || want.free.is_some() || value.free.is_some() {
                Ok(())
            } else {
                Err((wanted(want), shown(got.as_ref())))
            }
        }
        What::Truth(got) if truth.free.is_some() => {
            let first = *seen.truths.entry(at).or_insert(*got);
            if first == *got {
                Ok(())
            } else {
                Err((
                    format!("{}, as another position gave", truths(first)),
                    truths(*got),
                ))
            }
        }
        What::Holds(_) | What::Fails(_) if truth.free.is_some() => Ok(()),
        What::Truth(got) if *got == truth.value => Ok(()),
        What::Truth(got) => Err((truths(truth.value), truths(*got))),
        What::Holds(b) if *b == (truth.value == Some(true)) => Ok(()),
        What::Holds(b) => Err((truths(truth.value), format!("passing: {b}"))),
        What::Fails(b) if *b == (truth.value == Some(false)) => Ok(()),
        What::Fails(b) => Err((truths(truth.value), format!("passing negated: {b}"))),
    }
}

impl Report {
    /// Evaluates a case in every position, each on a random one of the stores.
    pub fn judge(&mut self, case: &Case<'_>, stores: &[Store], rng: &mut Rng) {
        self.judged += (case.expressions.len() * case.rows.len()) as u64;
        let service = Arc::new(Scripted::default());
        let mut seen = Seen::default();
        for e in &case.expressions {
            for o in &e.values {
                if let Some(why) = o.free {
                    *self.free.entry(why).or_default() += 1;
                }
            }
        }
        for position in &POSITIONS {
            let store = &stores[rng.below(stores.len())];
            let setting = Setting {
                case,
                db: &store.db,
                service: &service,
                turn: rng.below(1 << 16),
            };
            let begin = std::time::Instant::now();
            let asked = (position.1)(&setting);
            *self.spent.entry(position.0).or_default() += begin.elapsed();
            let begin = std::time::Instant::now();
            self.compare(position, store, &setting, asked, &mut seen);
            *self.spent.entry("comparing").or_default() += begin.elapsed();
        }
    }

    fn compare(
        &mut self,
        position: &Position,
        store: &Store,
        setting: &Setting<'_>,
        asked: Asked,
        seen: &mut Seen,
    ) {
        let case = setting.case;
        for (query, error) in &asked.refused {
            // Together, many long expressions may exceed the parser's limits; that is not a wrong value.
            if error.contains("too many operators and groups") {
                *self.free.entry("too long a query").or_default() += 1;
                continue;
            }
            self.note(Disagreement {
                position: position.0,
                store: store.name,
                query: query.clone(),
                expression: "-".into(),
                data: "-".into(),
                expected: "an answer".into(),
                got: error.clone(),
                cause: format!("refused: {error}"),
            });
        }
        for got in asked.got {
            self.compared += 1;
            let at = (got.expression, got.row);
            let judged = &case.expressions[got.expression];
            let (value, truth) = (&judged.values[got.row], judged.truths[got.row]);
            let Err((expected, gave)) = compare(&got.what, value, truth, at, seen) else {
                continue;
            };
            let row = case.rows[got.row];
            let cause = if self.reduced < REDUCED {
                self.reduced += 1;
                smallest(case, &judged.tree, &row, setting, position)
            } else {
                "(not reduced)".into()
            };
            let data = ["a", "b", "c"]
                .iter()
                .map(|v| format!("?{v} = {}", shown(case.term(&row, v).as_ref())))
                .collect::<Vec<_>>()
                .join(", ");
            self.note(Disagreement {
                position: position.0,
                store: store.name,
                query: asked.queries[got.query].clone(),
                expression: judged.text.clone(),
                data,
                expected,
                got: gave,
                cause,
            });
        }
    }

    /// Counts a disagreement in its class.
    pub fn note(&mut self, d: Disagreement) {
        self.wrong += 1;
        let class = self
            .classes
            .entry(shape(&d.cause))
            .or_insert_with(|| Class {
                count: 0,
                positions: BTreeSet::new(),
                example: d.clone(),
            });
        class.count += 1;
        class.positions.insert(d.position);
        let length = |d: &Disagreement| (d.cause.len(), d.expression.len(), d.query.len());
        if length(&d) < length(&class.example) {
            class.example = d;
        }
    }

    /// The counts, and an example of each class, the most frequent class first.
    pub fn text(&self) -> String {
        let mut out = format!(
            "{} expressions with their rows, {} comparisons, {} disagreements in {} classes\n",
            self.judged,
            self.compared,
            self.wrong,
            self.classes.len()
        );
        for (why, n) in &self.free {
            let _ = writeln!(out, "  free: {n} for {why}");
        }
        for (what, time) in &self.spent {
            let _ = writeln!(out, "  {:.2} s: {what}", time.as_secs_f64());
        }
        let mut classes: Vec<_> = self.classes.iter().collect();
        classes.sort_by_key(|(_, c)| std::cmp::Reverse(c.count));
        for (shape, class) in classes.iter().take(SHOWN) {
            let places: Vec<&str> = class.positions.iter().copied().collect();
            let _ = writeln!(
                out,
                "\n{} times, {shape}, in: {}\n{}",
                class.count,
                places.join("; "),
                class.example.text()
            );
        }
        out
    }
}

/// Largest number of classes in the text of a report.
const SHOWN: usize = 80;

/// An expression with the texts of its literals replaced by `…`, so that similar ones are equal.
fn shape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('"') {
        out += &rest[..start];
        let after = &rest[start + 1..];
        let Some(end) = after.find('"') else {
            break;
        };
        out += "…";
        rest = &after[end + 1..];
    }
    (out + rest).replace("http://www.w3.org/2001/XMLSchema#", "xsd:")
}

/// The deepest part of the expression that is wrong in the same position and row, with the row's terms.
fn smallest(
    case: &Case<'_>,
    tree: &Tree,
    row: &[Option<usize>; 3],
    setting: &Setting<'_>,
    position: &Position,
) -> String {
    for part in tree.parts() {
        if part.parts().is_empty() {
            continue;
        }
        let alone = Case::new(case.matrix, vec![part.clone()], vec![*row]);
        let asked = (position.1)(&Setting {
            case: &alone,
            turn: 0,
            ..*setting
        });
        let wrong = asked.got.iter().any(|g| {
            let e = &alone.expressions[g.expression];
            compare(
                &g.what,
                &e.values[g.row],
                e.truths[g.row],
                (0, 0),
                &mut Seen::default(),
            )
            .is_err()
        });
        if wrong {
            return smallest(case, part, row, setting, position);
        }
    }
    case.folded(&tree.text(), row)
}
