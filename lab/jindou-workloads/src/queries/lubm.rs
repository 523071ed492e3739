//! Queries over LUBM: L1 to L7 (Atre et al. 2010, as used by Trinity.RDF, TriAD and Wukong), q8 to q12 (Wukong's), and
//! A1 to A6 (the templates of Wukong's mixed workload). The queries need no inference.

use crate::lubm::{Class, Lubm, known};
use crate::random::SplitMix;

/// A query with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LubmQuery {
    /// Short name, such as `L1`.
    pub name: &'static str,
    /// SPARQL.
    pub text: &'static str,
}

impl LubmQuery {
    const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text }
    }

    /// Number of rows over LUBM(`universities`) with seed 0, if known.
    pub fn rows(&self, universities: u32) -> Option<u64> {
        rows(self.name, universities)
    }
}

/// A query in which a constant is replaced by [`PLACEHOLDER`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    /// Short name, such as `A1`.
    pub name: &'static str,
    /// SPARQL, with [`PLACEHOLDER`] for the constant.
    pub text: &'static str,
    /// The class that the constant is an instance of.
    pub class: Class,
}

/// Replaced by a constant in a template's text.
pub const PLACEHOLDER: &str = "%CONSTANT%";

impl Template {
    const fn new(name: &'static str, text: &'static str, class: Class) -> Self {
        Self { name, text, class }
    }

    /// The query with the constant `iri` (without `<` and `>`) instead of [`PLACEHOLDER`].
    pub fn with(&self, iri: &str) -> String {
        self.text.replace(PLACEHOLDER, &format!("<{iri}>"))
    }
}

macro_rules! query {
    ($file:literal) => {
        concat!(
            "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>\n",
            "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#>\n",
            include_str!(concat!("../../queries/lubm/", $file, ".rq"))
        )
    };
}

/// L1 to L7 and q8 to q12.
pub const QUERIES: [LubmQuery; 12] = [
    // A triangle. Graduate students in a department of the university of their undergraduate degree.
    LubmQuery::new("L1", query!("L1")),
    // A scan. All courses and their names.
    LubmQuery::new("L2", query!("L2")),
    // L1 for undergraduates, who have no degree, so the result is always empty.
    LubmQuery::new("L3", query!("L3")),
    // Full professors of one department, with name, mail address and telephone number.
    LubmQuery::new("L4", query!("L4")),
    // Research groups of one department.
    LubmQuery::new("L5", query!("L5")),
    // Full professors of one university.
    LubmQuery::new("L6", query!("L6")),
    // A triangle. Undergraduates who take a course that their advisor teaches.
    LubmQuery::new("L7", query!("L7")),
    // All edges that enter departments of one university.
    LubmQuery::new("q8", query!("q8")),
    // All edges that enter one department.
    LubmQuery::new("q9", query!("q9")),
    // Edges from undergraduates to one professor.
    LubmQuery::new("q10", query!("q10")),
    // Edges from one student to one department.
    LubmQuery::new("q11", query!("q11")),
    // Faculty members of one university who advise students.
    LubmQuery::new("q12", query!("q12")),
];

/// The query with a name, in upper or lower case.
pub fn query(name: &str) -> Option<LubmQuery> {
    QUERIES
        .into_iter()
        .find(|q| q.name.eq_ignore_ascii_case(name))
}

/// Templates of the light queries L4, L5 and L6.
pub const LIGHT: [Template; 3] = [
    Template::new("L4", query!("A4"), Class::Department),
    Template::new("L5", query!("A5"), Class::Department),
    Template::new("L6", query!("L6-template"), Class::University),
];

/// A1 to A6, the templates of light queries of Wukong's emulator.
pub const EMULATOR: [Template; 6] = [
    Template::new("A1", query!("A1"), Class::GraduateCourse),
    Template::new("A2", query!("A2"), Class::AssistantProfessor),
    Template::new("A3", query!("A3"), Class::Department),
    Template::new("A4", query!("A4"), Class::Department),
    Template::new("A5", query!("A5"), Class::Department),
    Template::new("A6", query!("A6"), Class::University),
];

/// Relative frequencies of the templates in [`EMULATOR`] in Wukong's default mix.
pub const EMULATOR_WEIGHTS: [u32; 6] = [25, 25, 3, 6, 25, 2];

/// Numbers of rows of L1 and L7 by number of universities. Those for 1, 10, 50, 2560 and 10,240 universities are
/// published. The others were counted by brute force over the generated triples, as a test does. The number of L1 is
/// constant from 1000 universities on, because degrees come from the first 1000 only.
#[rustfmt::skip]
const TRIANGLES: [(u32, u64, u64); 17] = [
    (1, 0, 30),
    (5, 9, 213),
    (10, 28, 422),
    (20, 59, 886),
    (40, 106, 1_763),
    (50, 130, 2_199),
    (100, 264, 4_462),
    (160, 397, 7_125),
    (200, 499, 8_831),
    (320, 819, 14_153),
    (500, 1_284, 22_001),
    (640, 1_621, 28_301),
    (800, 2_003, 35_356),
    (1_000, 2_528, 44_190),
    (1_280, 2_528, 56_408),
    (2_560, 2_528, 112_559),
    (10_240, 2_528, 450_539),
];

fn rows(name: &str, universities: u32) -> Option<u64> {
    if universities == 0 {
        return None;
    }
    let triangle = || TRIANGLES.iter().find(|t| t.0 == universities);
    Some(match name {
        "L1" => triangle()?.1,
        "L2" => known::totals(universities)?.courses,
        "L3" => 0,
        "L4" | "L5" => 10,
        "L6" => 125,
        "L7" => triangle()?.2,
        "q8" => 8_569,
        "q9" => 730,
        "q10" => 5,
        "q11" => 1,
        "q12" => 3_101,
        _ => return None,
    })
}

/// Random constants for templates, computed from the rules of the generator without reading a store.
#[derive(Debug)]
pub struct Constants {
    lubm: Lubm,
    random: SplitMix,
}

impl Constants {
    /// Constants in LUBM(`universities`) with the generator's seed `data_seed`. The same `seed` gives the same
    /// constants.
    pub fn new(universities: u32, data_seed: i64, seed: u64) -> Self {
        Self {
            lubm: Lubm::new(universities.max(1), data_seed),
            random: SplitMix::stream(seed, 0, 0),
        }
    }

    /// Draws the IRI of an instance of a class that is certainly in the data. Universities, and then departments of a
    /// random university, are uniformly distributed. Other instances get a number that exists in every department, so
    /// instances with the highest numbers are never drawn. `None` for publications and assistants, for which no number
    /// exists in every department.
    pub fn draw(&mut self, class: Class) -> Option<String> {
        let university = self.random.below(self.lubm.universities());
        // The smallest number of instances of each class in a department.
        let sure = match class {
            Class::University => return Some(format!("http://www.University{university}.edu")),
            Class::Department => 0,
            Class::FullProfessor => 7,
            Class::AssociateProfessor => 10,
            Class::AssistantProfessor => 8,
            Class::Lecturer => 5,
            Class::UndergraduateStudent => 8 * 30,
            Class::GraduateStudent => 3 * 30,
            // A department has at least 30 teachers, and each gives at least one course and one graduate course.
            Class::Course | Class::GraduateCourse => 30,
            Class::ResearchGroup => 10,
            Class::Publication | Class::TeachingAssistant | Class::ResearchAssistant => {
                return None;
            }
        };
        let department = self.random.below(self.lubm.departments(university));
        let host = format!("http://www.Department{department}.University{university}.edu");
        if sure == 0 {
            return Some(host);
        }
        let number = self.random.below(sure);
        Some(format!(
            "{host}/{}{number}",
            crate::lubm::CLASSES[class as usize]
        ))
    }
}
