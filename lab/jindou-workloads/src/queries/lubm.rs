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
    #[must_use]
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
    #[must_use]
    pub fn with(&self, iri: &str) -> String {
        self.text.replace(PLACEHOLDER, &format!("<{iri}>"))
    }
}

macro_rules! query {
    ($body:literal) => {
        concat!(
            "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>\n",
            "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#>\n",
            $body
        )
    };
}

/// L1: a triangle. Graduate students in a department of the university of their undergraduate degree.
pub const L1: &str = query!(
    "SELECT ?X ?Y ?Z WHERE {
    ?Y rdf:type ub:University .
    ?X ub:undergraduateDegreeFrom ?Y .
    ?X rdf:type ub:GraduateStudent .
    ?X ub:memberOf ?Z .
    ?Z ub:subOrganizationOf ?Y .
    ?Z rdf:type ub:Department .
}"
);

/// L2: a scan. All courses and their names.
pub const L2: &str = query!(
    "SELECT ?X ?Y WHERE {
    ?X rdf:type ub:Course .
    ?X ub:name ?Y .
}"
);

/// L3: L1 for undergraduates, who have no degree, so the result is always empty.
pub const L3: &str = query!(
    "SELECT ?X ?Y ?Z WHERE {
    ?X ub:undergraduateDegreeFrom ?Y .
    ?X rdf:type ub:UndergraduateStudent .
    ?X ub:memberOf ?Z .
    ?Z rdf:type ub:Department .
    ?Z ub:subOrganizationOf ?Y .
    ?Y rdf:type ub:University .
}"
);

/// L4: full professors of one department, with name, mail address and telephone number.
pub const L4: &str = query!(
    "SELECT ?X ?Y1 ?Y2 ?Y3 WHERE {
    ?X ub:worksFor <http://www.Department0.University0.edu> .
    ?X rdf:type ub:FullProfessor .
    ?X ub:name ?Y1 .
    ?X ub:emailAddress ?Y2 .
    ?X ub:telephone ?Y3 .
}"
);

/// L5: research groups of one department.
pub const L5: &str = query!(
    "SELECT ?X WHERE {
    ?X ub:subOrganizationOf <http://www.Department0.University0.edu> .
    ?X rdf:type ub:ResearchGroup .
}"
);

/// L6: full professors of one university.
pub const L6: &str = query!(
    "SELECT ?X ?Y WHERE {
    ?Y ub:subOrganizationOf <http://www.University0.edu> .
    ?Y rdf:type ub:Department .
    ?X ub:worksFor ?Y .
    ?X rdf:type ub:FullProfessor .
}"
);

/// L7: a triangle. Undergraduates who take a course that their advisor teaches.
pub const L7: &str = query!(
    "SELECT ?X ?Y ?Z WHERE {
    ?Y rdf:type ub:FullProfessor .
    ?X ub:advisor ?Y .
    ?X rdf:type ub:UndergraduateStudent .
    ?X ub:takesCourse ?Z .
    ?Z rdf:type ub:Course .
    ?Y ub:teacherOf ?Z .
}"
);

/// q8: all edges that enter departments of one university.
pub const Q8: &str = query!(
    "SELECT ?X ?P ?D WHERE {
    ?D ub:subOrganizationOf <http://www.University0.edu> .
    ?X ?P ?D .
}"
);

/// q9: all edges that enter one department.
pub const Q9: &str = query!(
    "SELECT ?X ?P WHERE {
    ?X ?P <http://www.Department0.University0.edu> .
}"
);

/// q10: edges from undergraduates to one professor.
pub const Q10: &str = query!(
    "SELECT ?X ?Y WHERE {
    ?X rdf:type ub:UndergraduateStudent .
    ?X ?Y <http://www.Department3.University0.edu/FullProfessor1> .
}"
);

/// q11: edges from one student to one department.
pub const Q11: &str = query!(
    "SELECT ?X WHERE {
    <http://www.Department7.University0.edu/UndergraduateStudent201> ?X <http://www.Department7.University0.edu> .
}"
);

/// q12: faculty members of one university who advise students.
pub const Q12: &str = query!(
    "SELECT ?X ?Y WHERE {
    ?Y ub:subOrganizationOf <http://www.University0.edu> .
    ?X ub:worksFor ?Y .
    ?Z ub:advisor ?X .
}"
);

/// L1 to L7 and q8 to q12.
pub const QUERIES: [LubmQuery; 12] = [
    LubmQuery::new("L1", L1),
    LubmQuery::new("L2", L2),
    LubmQuery::new("L3", L3),
    LubmQuery::new("L4", L4),
    LubmQuery::new("L5", L5),
    LubmQuery::new("L6", L6),
    LubmQuery::new("L7", L7),
    LubmQuery::new("q8", Q8),
    LubmQuery::new("q9", Q9),
    LubmQuery::new("q10", Q10),
    LubmQuery::new("q11", Q11),
    LubmQuery::new("q12", Q12),
];

/// The query with a name, in upper or lower case.
#[must_use]
pub fn query(name: &str) -> Option<LubmQuery> {
    QUERIES
        .into_iter()
        .find(|q| q.name.eq_ignore_ascii_case(name))
}

const A4_TEXT: &str = query!(
    "SELECT ?X ?Y1 ?Y2 ?Y3 WHERE {
    ?X ub:worksFor %CONSTANT% .
    ?X rdf:type ub:FullProfessor .
    ?X ub:name ?Y1 .
    ?X ub:emailAddress ?Y2 .
    ?X ub:telephone ?Y3 .
}"
);
const A5_TEXT: &str = query!(
    "SELECT ?X WHERE {
    ?X ub:subOrganizationOf %CONSTANT% .
    ?X rdf:type ub:ResearchGroup .
}"
);

/// Templates of the light queries L4, L5 and L6.
pub const LIGHT: [Template; 3] = [
    Template::new("L4", A4_TEXT, Class::Department),
    Template::new("L5", A5_TEXT, Class::Department),
    Template::new(
        "L6",
        query!(
            "SELECT ?X ?Y WHERE {
    ?Y ub:subOrganizationOf %CONSTANT% .
    ?Y rdf:type ub:Department .
    ?X ub:worksFor ?Y .
    ?X rdf:type ub:FullProfessor .
}"
        ),
        Class::University,
    ),
];

/// A1 to A6, the templates of light queries of Wukong's emulator.
pub const EMULATOR: [Template; 6] = [
    Template::new(
        "A1",
        query!(
            "SELECT ?X WHERE {
    ?X ub:takesCourse %CONSTANT% .
    ?X rdf:type ub:GraduateStudent .
}"
        ),
        Class::GraduateCourse,
    ),
    Template::new(
        "A2",
        query!(
            "SELECT ?X WHERE {
    ?X ub:publicationAuthor %CONSTANT% .
    ?X rdf:type ub:Publication .
}"
        ),
        Class::AssistantProfessor,
    ),
    Template::new(
        "A3",
        query!(
            "SELECT ?X WHERE {
    ?X ub:memberOf %CONSTANT% .
    ?X rdf:type ub:GraduateStudent .
}"
        ),
        Class::Department,
    ),
    Template::new("A4", A4_TEXT, Class::Department),
    Template::new("A5", A5_TEXT, Class::Department),
    Template::new(
        "A6",
        query!(
            "SELECT ?X ?Y WHERE {
    ?X ub:subOrganizationOf %CONSTANT% .
    ?X rdf:type ub:Department .
    ?Y ub:worksFor ?X .
    ?Y rdf:type ub:FullProfessor .
}"
        ),
        Class::University,
    ),
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
    #[must_use]
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
    #[must_use]
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
