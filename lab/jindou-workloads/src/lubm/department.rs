//! Writes one department to one batch. Random numbers are drawn in the order of the benchmark's rules; statements are
//! written when they are decided.

use super::random::JavaRandom;
use super::vocabulary::{Class, Property, TermSpans};
use crate::decimal;
use jindou_model::term::{IRI, STRING};
use jindou_model::{QuadBatch, Span};

/// Number of universities from which degrees can come, whatever the size of the data.
const DEGREE_UNIVERSITIES: u32 = 1000;
/// Largest number of courses, and of graduate courses, of a department.
const COURSE_POOL: u32 = 100;
/// Marks the end of a list in [`DepartmentWriter::next_author`].
const END: u32 = u32::MAX;

const FACULTY: [Class; 4] = [
    Class::FullProfessor,
    Class::AssociateProfessor,
    Class::AssistantProfessor,
    Class::Lecturer,
];
/// Smallest and largest number of publications of a member of each class in [`FACULTY`].
const PUBLICATIONS: [(u32, u32); 4] = [(15, 20), (10, 18), (5, 10), (0, 5)];

struct Publication {
    author: Span,
    number: u32,
    /// Index in [`DepartmentWriter::next_author`] of the first and the last graduate author, or [`END`].
    first: u32,
    last: u32,
}

/// Writes departments, one batch each. Buffers are reused for the next department.
pub(super) struct DepartmentWriter<'v> {
    vocabulary: &'v TermSpans,
    pub(super) batch: QuadBatch,
    /// The part `Department{d}.University{u}.edu` of IRIs.
    host: Vec<u8>,
    department: Span,
    universities: Vec<Span>,
    faculty: [Vec<Span>; 4],
    graduates: Vec<Span>,
    courses: Vec<Span>,
    graduate_courses: Vec<Span>,
    publications: Vec<Publication>,
    /// Linked lists of graduate authors, one per publication: an author, and the index of the next entry or [`END`].
    next_author: Vec<(Span, u32)>,
    list: Vec<u32>,
    scratch: Vec<u32>,
}

impl<'v> DepartmentWriter<'v> {
    pub(super) fn new(vocabulary: &'v TermSpans) -> Self {
        Self {
            vocabulary,
            batch: QuadBatch::default(),
            host: vec![],
            department: Span::default(),
            universities: vec![],
            faculty: [const { vec![] }; 4],
            graduates: vec![],
            courses: vec![],
            graduate_courses: vec![],
            publications: vec![],
            next_author: vec![],
            list: vec![],
            scratch: vec![],
        }
    }

    /// Replaces the batch by the statements of department `number`. `random` must be in the state in which the
    /// university's previous department left it.
    pub(super) fn write(&mut self, random: &mut JavaRandom, university: u32, number: u32) {
        self.begin(university, number);
        let full = random.range(7, 10);
        let associate = random.range(10, 14);
        let assistant = random.range(8, 11);
        let lecturers = random.range(5, 7);
        let all = full + associate + assistant + lecturers;
        let undergraduates = random.range(8 * all, 14 * all);
        let graduates = random.range(3 * all, 4 * all);
        let teaching = random.range(graduates / 5, graduates / 4);
        let research = random.range(graduates / 4, graduates / 3);
        let groups = random.range(10, 20);
        let chair = random.below(full);

        self.organisation(university, number);
        for (kind, count) in [full, associate, assistant, lecturers]
            .into_iter()
            .enumerate()
        {
            for index in 0..count {
                self.member_of_faculty(random, kind, index, kind == 0 && index == chair);
            }
        }
        for index in 0..undergraduates {
            self.undergraduate(random, index);
        }
        for index in 0..graduates {
            self.graduate(random, index);
        }
        for index in 0..groups {
            let group = self.entity(Class::ResearchGroup, index);
            self.typed(group, Class::ResearchGroup);
            self.statement(group, Property::SubOrganizationOf, self.department);
        }
        self.write_publications();
        for index in 0..self.courses.len() {
            self.course(self.courses[index], Class::Course, index as u32);
        }
        for index in 0..self.graduate_courses.len() {
            self.course(
                self.graduate_courses[index],
                Class::GraduateCourse,
                index as u32,
            );
        }
        self.assistants(random, teaching, research);
    }

    fn begin(&mut self, university: u32, number: u32) {
        self.batch.clear();
        self.batch.bytes.extend_from_slice(self.vocabulary.bytes());
        self.host.clear();
        self.host.extend_from_slice(b"Department");
        decimal::push(&mut self.host, number.into());
        self.host.extend_from_slice(b".University");
        decimal::push(&mut self.host, university.into());
        self.host.extend_from_slice(b".edu");
        self.universities.clear();
        self.universities
            .resize(DEGREE_UNIVERSITIES as usize, Span::default());
        self.faculty.iter_mut().for_each(Vec::clear);
        self.graduates.clear();
        self.courses.clear();
        self.graduate_courses.clear();
        self.publications.clear();
        self.next_author.clear();
    }

    fn organisation(&mut self, university: u32, number: u32) {
        let v = self.vocabulary;
        let parent = self.university(university);
        if number == 0 {
            let start = self.batch.bytes.len() as u32;
            self.batch.bytes.push(STRING);
            self.batch.bytes.extend_from_slice(b"University");
            decimal::push(&mut self.batch.bytes, university.into());
            let name = self.since(start);
            self.typed(parent, Class::University);
            self.statement(parent, Property::Name, name);
        }
        let start = self.batch.bytes.len() as u32;
        self.batch.bytes.push(IRI);
        self.batch.bytes.extend_from_slice(b"http://www.");
        self.batch.bytes.extend_from_slice(&self.host);
        self.department = self.since(start);
        self.typed(self.department, Class::Department);
        self.statement(
            self.department,
            Property::Name,
            v.name(Class::Department, number),
        );
        self.point_at_university(self.department, Property::SubOrganizationOf, university);
    }

    fn member_of_faculty(&mut self, random: &mut JavaRandom, kind: usize, index: u32, chair: bool) {
        let v = self.vocabulary;
        let class = FACULTY[kind];
        let who = self.entity(class, index);
        self.faculty[kind].push(who);
        self.typed(who, class);
        self.statement(who, Property::Name, v.name(class, index));
        for graduate in [false, true] {
            for _ in 0..random.range(1, 2) {
                let (class, given) = if graduate {
                    (Class::GraduateCourse, self.graduate_courses.len() as u32)
                } else {
                    (Class::Course, self.courses.len() as u32)
                };
                // The rules draw a random course but ignore the number, and take the next course in sequence.
                random.below(COURSE_POOL - given);
                let course = self.entity(class, given);
                let list = if graduate {
                    &mut self.graduate_courses
                } else {
                    &mut self.courses
                };
                list.push(course);
                self.statement(who, Property::TeacherOf, course);
            }
        }
        for degree in [
            Property::UndergraduateDegreeFrom,
            Property::MastersDegreeFrom,
            Property::DoctoralDegreeFrom,
        ] {
            let from = random.below(DEGREE_UNIVERSITIES);
            self.point_at_university(who, degree, from);
        }
        self.statement(who, Property::WorksFor, self.department);
        self.contact(who, class, index);
        if class != Class::Lecturer {
            let area = random.below(30);
            self.statement(who, Property::ResearchInterest, v.interest(area));
        }
        if chair {
            self.statement(who, Property::HeadOf, self.department);
        }
        let (min, max) = PUBLICATIONS[kind];
        for number in 0..random.range(min, max) {
            self.publications.push(Publication {
                author: who,
                number,
                first: END,
                last: END,
            });
        }
    }

    fn undergraduate(&mut self, random: &mut JavaRandom, index: u32) {
        let who = self.student(Class::UndergraduateStudent, index);
        let count = random.range(2, 4);
        self.takes(random, who, count, false);
        if random.below(5) == 0 {
            self.advised(random, who);
        }
    }

    fn graduate(&mut self, random: &mut JavaRandom, index: u32) {
        let who = self.student(Class::GraduateStudent, index);
        self.graduates.push(who);
        let count = random.range(1, 3);
        self.takes(random, who, count, true);
        let from = random.below(DEGREE_UNIVERSITIES);
        self.point_at_university(who, Property::UndergraduateDegreeFrom, from);
        // Every graduate student has an advisor: the rules choose "one in one" by a draw, which is repeated here.
        random.below(1);
        self.advised(random, who);
        let count = random.range(0, 5);
        let all = self.publications.len() as u32;
        random.list(count, all, &mut self.list, &mut self.scratch);
        for &publication in &self.list {
            let publication = &mut self.publications[publication as usize];
            let entry = self.next_author.len() as u32;
            self.next_author.push((who, END));
            if publication.first == END {
                publication.first = entry;
            } else {
                self.next_author[publication.last as usize].1 = entry;
            }
            publication.last = entry;
        }
    }

    fn student(&mut self, class: Class, index: u32) -> Span {
        let who = self.entity(class, index);
        self.typed(who, class);
        self.statement(who, Property::Name, self.vocabulary.name(class, index));
        self.statement(who, Property::MemberOf, self.department);
        self.contact(who, class, index);
        who
    }

    fn takes(&mut self, random: &mut JavaRandom, who: Span, count: u32, graduate: bool) {
        let courses = if graduate {
            &self.graduate_courses
        } else {
            &self.courses
        };
        random.list(
            count,
            courses.len() as u32,
            &mut self.list,
            &mut self.scratch,
        );
        let takes = self.vocabulary.property(Property::TakesCourse);
        self.batch.quads.extend(
            self.list
                .iter()
                .map(|&c| [who, takes, courses[c as usize], Span::default()]),
        );
    }

    fn advised(&mut self, random: &mut JavaRandom, who: Span) {
        let kind = random.below(3) as usize;
        let professors = &self.faculty[kind];
        let advisor = professors[random.below(professors.len() as u32) as usize];
        self.statement(who, Property::Advisor, advisor);
    }

    fn write_publications(&mut self) {
        for index in 0..self.publications.len() {
            let Publication {
                author,
                number,
                first,
                ..
            } = self.publications[index];
            let v = self.vocabulary;
            let start = self.batch.bytes.len() as u32;
            let at = author.start as usize;
            self.batch
                .bytes
                .extend_from_within(at..at + author.len as usize);
            self.batch.bytes.push(b'/');
            self.batch
                .bytes
                .extend_from_slice(v.name_text(Class::Publication, number));
            let publication = self.since(start);
            self.typed(publication, Class::Publication);
            self.statement(
                publication,
                Property::Name,
                v.name(Class::Publication, number),
            );
            self.statement(publication, Property::PublicationAuthor, author);
            let mut at = first;
            while at != END {
                let (graduate, next) = self.next_author[at as usize];
                self.statement(publication, Property::PublicationAuthor, graduate);
                at = next;
            }
        }
    }

    fn course(&mut self, course: Span, class: Class, index: u32) {
        self.typed(course, class);
        self.statement(course, Property::Name, self.vocabulary.name(class, index));
    }

    fn assistants(&mut self, random: &mut JavaRandom, teaching: u32, research: u32) {
        let (mut chosen, mut taught) = (vec![], vec![]);
        let graduates = self.graduates.len() as u32;
        random.list(
            teaching + research,
            graduates,
            &mut chosen,
            &mut self.scratch,
        );
        random.list(
            teaching,
            self.courses.len() as u32,
            &mut taught,
            &mut self.scratch,
        );
        for (i, &graduate) in chosen.iter().enumerate() {
            let who = self.graduates[graduate as usize];
            match taught.get(i) {
                Some(&course) => {
                    self.typed(who, Class::TeachingAssistant);
                    let course = self.courses[course as usize];
                    self.statement(who, Property::TeachingAssistantOf, course);
                }
                None => self.typed(who, Class::ResearchAssistant),
            }
        }
    }

    /// Writes mail address and telephone number.
    fn contact(&mut self, who: Span, class: Class, index: u32) {
        let v = self.vocabulary;
        let start = self.batch.bytes.len() as u32;
        self.batch.bytes.push(STRING);
        self.batch
            .bytes
            .extend_from_slice(v.name_text(class, index));
        self.batch.bytes.push(b'@');
        self.batch.bytes.extend_from_slice(&self.host);
        let mail = self.since(start);
        self.statement(who, Property::EmailAddress, mail);
        self.statement(who, Property::Telephone, v.telephone());
    }

    /// Adds a statement about a university. Like UBA, also states each time that it is a university.
    fn point_at_university(&mut self, subject: Span, property: Property, university: u32) {
        let object = self.university(university);
        self.statement(subject, property, object);
        self.typed(object, Class::University);
    }

    fn university(&mut self, number: u32) -> Span {
        if let Some(&known) = self.universities.get(number as usize)
            && known.len > 0
        {
            return known;
        }
        let start = self.batch.bytes.len() as u32;
        self.batch.bytes.push(IRI);
        self.batch.bytes.extend_from_slice(b"http://www.University");
        decimal::push(&mut self.batch.bytes, number.into());
        self.batch.bytes.extend_from_slice(b".edu");
        let span = self.since(start);
        if let Some(slot) = self.universities.get_mut(number as usize) {
            *slot = span;
        }
        span
    }

    /// Writes the IRI of an instance in the department.
    fn entity(&mut self, class: Class, index: u32) -> Span {
        let start = self.batch.bytes.len() as u32;
        self.batch.bytes.push(IRI);
        self.batch.bytes.extend_from_slice(b"http://www.");
        self.batch.bytes.extend_from_slice(&self.host);
        self.batch.bytes.push(b'/');
        self.batch
            .bytes
            .extend_from_slice(self.vocabulary.name_text(class, index));
        self.since(start)
    }

    fn since(&self, start: u32) -> Span {
        Span {
            start,
            len: self.batch.bytes.len() as u32 - start,
        }
    }

    fn typed(&mut self, subject: Span, class: Class) {
        let v = self.vocabulary;
        self.batch
            .quads
            .push([subject, v.rdf_type(), v.class(class), Span::default()]);
    }

    fn statement(&mut self, subject: Span, property: Property, object: Span) {
        let property = self.vocabulary.property(property);
        self.batch
            .quads
            .push([subject, property, object, Span::default()]);
    }
}
