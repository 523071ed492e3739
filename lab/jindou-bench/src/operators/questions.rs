//! The questions: an operator over rows of known shape, queries that produce those rows alone, and a check of the
//! answer.

use std::sync::LazyLock;

/// Check of an answer, by the text of another query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The other query gives the same rows, in any order.
    Same(&'static str),
    /// The other query's only value is the number of rows.
    Count(&'static str),
    /// The other query gives the same rows in any order, and the answer's first column ascends byte by byte.
    Ascending(&'static str),
    /// The answer has this many of the other query's rows, the first in the order of bytes.
    First(usize, &'static str),
}

/// One line of the benchmark.
#[derive(Debug)]
pub struct Question {
    pub operator: &'static str,
    pub name: &'static str,
    /// Query text without prefixes, like all texts of a question.
    pub text: &'static str,
    /// Queries that produce the operator's input rows and do nothing else.
    pub inputs: Vec<&'static str>,
    pub check: Check,
    /// The same question for DuckDB, with columns x and y. Tables `in0`, `in1` have the rows of the inputs, in columns
    /// `c0`, `c1`.
    pub sql: Option<&'static str>,
}

/// The questions to one data set.
pub struct Questions {
    /// The data set's name.
    pub data: &'static str,
    pub prefixes: &'static str,
    /// Query that is true in a store that has the data.
    pub is_there: &'static str,
    pub list: Vec<Question>,
}

/// The Lehigh University Benchmark.
pub static LUBM: LazyLock<Questions> = LazyLock::new(|| Questions {
    data: "LUBM",
    prefixes: "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#> ",
    is_there: "ASK { ?x ub:takesCourse ?c }",
    list: questions(include_str!("lubm.txt")),
});

/// The Waterloo SPARQL Diversity Test Suite.
pub static WATDIV: LazyLock<Questions> = LazyLock::new(|| Questions {
    data: "WatDiv",
    prefixes: "PREFIX w: <http://db.uwaterloo.ca/~galuc/wsdbm/> PREFIX gr: <http://purl.org/goodrelations/> \
         PREFIX rev: <http://purl.org/stuff/rev#> PREFIX s: <http://schema.org/> \
         PREFIX gn: <http://www.geonames.org/ontology#> PREFIX dc: <http://purl.org/dc/terms/> \
         PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> ",
    is_there: "ASK { ?x w:friendOf ?c }",
    list: questions(include_str!("watdiv.txt")),
});

/// Reads questions. Each begins with a line `== OPERATOR: NAME`. The other lines are a key and a text: `query`, `input`
/// (any number of them), one check (`same`, `count`, `ascending`, or `first` and a number), and `sql`, if there is any.
fn questions(text: &'static str) -> Vec<Question> {
    text.split("== ").skip(1).map(question).collect()
}

fn question(text: &'static str) -> Question {
    let mut lines = text.lines();
    let title = lines.next().and_then(|line| line.split_once(": "));
    let (operator, name) = title.expect("an operator and a name");
    let mut question = Question {
        operator,
        name,
        text: "",
        inputs: vec![],
        check: Check::Same(""),
        sql: None,
    };
    for line in lines.filter(|line| !line.is_empty()) {
        let (key, text) = line.split_once(' ').expect("a key and a text");
        match key {
            "query" => question.text = text,
            "input" => question.inputs.push(text),
            "same" => question.check = Check::Same(text),
            "count" => question.check = Check::Count(text),
            "ascending" => question.check = Check::Ascending(text),
            "first" => {
                let (number, text) = text.split_once(' ').expect("a number and a text");
                question.check = Check::First(number.parse().expect("a number"), text);
            }
            "sql" => question.sql = Some(text),
            _ => panic!("{operator}: {name} has a line '{line}'"),
        }
    }
    question
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_complete() {
        assert_eq!((LUBM.list.len(), WATDIV.list.len()), (60, 26));
        for q in LUBM.list.iter().chain(&WATDIV.list) {
            assert!(!q.text.is_empty() && !q.inputs.is_empty(), "{q:?}");
            assert_ne!(q.check, Check::Same(""), "{q:?}");
        }
        assert_eq!(LUBM.list.iter().filter(|q| q.sql.is_some()).count(), 10);
    }
}
