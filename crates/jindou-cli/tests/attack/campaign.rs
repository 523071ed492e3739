//! Sends many texts, one after the other, and reports those with which the server broke a promise.

use crate::requests::{Request, Route, accept, ask};
use crate::server::{Machine, Server, Setting, Template};
use crate::volley::{Class, Fault, Light, Plan, Seen, Slack, throw};
use jindou_testing::attack::{Attack, Language};
use jindou_testing::{Rng, from_environment};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Number of consecutive texts that are sent under the same setting. In the first half of them they are sent one at a
/// time, in the second half [`AT_ONCE`] at a time.
const ROW: usize = 64;
const AT_ONCE: usize = 8;
/// Growth of an idle server's memory from which it is restarted. Data written by updates stays in memory.
const GROWN: u64 = 48 << 20;

/// The factor by which a thread currently runs slower than on an idle machine, at most eight.
pub fn slowness() -> usize {
    let cpu = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanoseconds = text.split(' ').next().and_then(|n| n.parse::<u64>().ok());
        nanoseconds.map(Duration::from_nanos)
    };
    let (begun, Some(first)) = (Instant::now(), cpu()) else {
        return 1;
    };
    while begun.elapsed() < Duration::from_secs(2) {
        std::hint::spin_loop();
    }
    let used = cpu().map_or(Duration::ZERO, |c| c.saturating_sub(first));
    let times = begun.elapsed().as_secs_f64() / used.as_secs_f64().max(0.01);
    (times.round() as usize).clamp(1, 8)
}

/// The number in an environment variable, or else `otherwise`.
pub fn number(name: &str, otherwise: usize) -> usize {
    from_environment(name, otherwise as u64) as usize
}

/// A text, the route by which it is sent, and the end that its client plans.
#[derive(Clone, Debug)]
struct Shot {
    number: usize,
    attack: Attack,
    route: Route,
    accept: &'static str,
    plan: Plan,
    together: bool,
}

impl Shot {
    fn random(seed: usize, number: usize, most: usize) -> Self {
        let mut rng = Rng::new((seed as u64) << 32 | number as u64);
        // With similar seeds the first random numbers are similar, so they are skipped.
        for _ in 0..8 {
            rng.below(2);
        }
        let attack = match rng.below(20) {
            0..14 => Attack::query(&mut rng, most),
            14..18 => Attack::update(&mut rng, most),
            _ => Attack::document(&mut rng, most),
        };
        let after = Duration::from_millis(rng.one(&[5, 50, 200, 500]));
        let plan = match rng.below(100) {
            0..70 => Plan::Wait,
            70..82 => Plan::Leave(after),
            82..97 => Plan::Delete(after),
            _ => Plan::Terminate(after),
        };
        Self {
            number,
            route: Route::random(&mut rng, attack.language),
            accept: accept(&mut rng),
            attack,
            plan,
            together: number % ROW >= ROW / 2,
        }
    }
}

/// Attacks servers with texts, and collects the broken promises.
pub struct Campaign {
    settings: Vec<Setting>,
    /// Maximum length of a text in bytes.
    pub most: usize,
    /// Number of attempts to find a smaller text with the same fault.
    pub tries: usize,
    slack: Slack,
    template: Template,
    server: Option<(usize, Server)>,
    prepared: String,
    light: Light,
    machine: Machine,
    faults: Vec<String>,
    counts: BTreeMap<Class, usize>,
    statuses: BTreeMap<u16, usize>,
    thrown: usize,
    bytes: usize,
    starts: usize,
    most_over: Duration,
    most_peak: u64,
    begun: Instant,
}

impl Campaign {
    pub fn new(settings: &[Setting], subjects: usize, slack: Slack) -> Self {
        Self {
            settings: settings.to_vec(),
            most: 1 << 20,
            tries: 0,
            slack,
            template: Template::new(subjects),
            server: None,
            prepared: String::new(),
            light: Light::start(),
            machine: Machine::watch(),
            faults: vec![],
            counts: BTreeMap::new(),
            statuses: BTreeMap::new(),
            thrown: 0,
            bytes: 0,
            starts: 0,
            most_over: Duration::ZERO,
            most_peak: 0,
            begun: Instant::now(),
        }
    }

    /// Sends the `n` texts of a seed whose numbers begin with `from`.
    pub fn texts(&mut self, seed: usize, from: usize, n: usize) {
        let mut number = from;
        while number < from + n {
            let setting = number / ROW % self.settings.len();
            let first = Shot::random(seed, number, self.most);
            if !first.together {
                self.single(setting, &first);
                number += 1;
                continue;
            }
            let last = (number + AT_ONCE).min(from + n);
            // Either one text eight times, or eight different texts.
            let shots: Vec<Shot> = if (number / AT_ONCE).is_multiple_of(2) {
                vec![first; AT_ONCE]
            } else {
                (number..last)
                    .map(|i| Shot::random(seed, i, self.most))
                    .collect()
            };
            self.group(setting, &shots);
            number = last;
        }
    }

    /// Sends a text by all routes of its language.
    pub fn one(&mut self, attack: &Attack) {
        let mut rng = Rng::new(1);
        let mut routes: Vec<Route> = vec![];
        for _ in 0..200 {
            let route = Route::random(&mut rng, attack.language);
            if !routes.contains(&route) {
                routes.push(route);
            }
        }
        self.by(attack, &routes);
    }

    /// Sends a text by the simplest route of its language.
    pub fn plain(&mut self, attack: &Attack) {
        let route = match attack.language {
            Language::Query => Route::Body("/query"),
            Language::Update => Route::Update("/update"),
            Language::Document(_) => Route::Put,
        };
        self.by(attack, &[route]);
    }

    fn by(&mut self, attack: &Attack, routes: &[Route]) {
        for setting in 0..self.settings.len() {
            for route in routes {
                let shot = Shot {
                    number: 0,
                    attack: attack.clone(),
                    route: *route,
                    accept: "*/*",
                    plan: Plan::Wait,
                    together: false,
                };
                let seen = self.fire(setting, &[&shot], Plan::Wait);
                println!("{} {route:?}: {}", self.name(setting), line(&seen));
                self.report(setting, &[&shot], &seen);
            }
        }
    }

    fn single(&mut self, setting: usize, shot: &Shot) {
        let seen = self.fire(setting, &[shot], shot.plan);
        if let Some(verbose) = std::env::var_os("JINDOU_VERBOSE") {
            println!("{} {:?}: {}", shot.number, shot.route, line(&seen));
            if verbose == "recipes" {
                println!("    {}", described(shot));
            }
        }
        self.report(setting, &[shot], &seen);
        self.follow(setting, shot, &seen);
    }

    /// If the text was a query to be prepared, also runs the prepared query with values.
    fn follow(&mut self, setting: usize, shot: &Shot, seen: &Seen) {
        let prepares = matches!(shot.route, Route::Prepare | Route::PrepareForm);
        let Some(got) = seen
            .outcomes
            .first()
            .filter(|o| prepares && o.status == 201)
        else {
            return;
        };
        let made: serde_json::Value = serde_json::from_str(&got.said).unwrap_or_default();
        let Some(id) = made["id"].as_str() else {
            return;
        };
        let was = std::mem::replace(&mut self.prepared, id.to_owned());
        for route in [Route::Prepared, Route::Batch] {
            let next = Shot {
                route,
                plan: Plan::Wait,
                ..shot.clone()
            };
            let seen = self.fire(setting, &[&next], Plan::Wait);
            self.report(setting, &[&next], &seen);
        }
        self.prepared = was;
    }

    fn group(&mut self, setting: usize, shots: &[Shot]) {
        let plan = match shots[0].plan {
            Plan::Terminate(_) => Plan::Wait,
            plan => plan,
        };
        let all: Vec<&Shot> = shots.iter().collect();
        let seen = self.fire(setting, &all, plan);
        if std::env::var_os("JINDOU_VERBOSE").is_some() {
            println!("{} x{}: {}", shots[0].number, shots.len(), line(&seen));
        }
        if seen.faults.is_empty() {
            return;
        }
        // Tests whether one of the texts alone breaks the promise.
        let different = shots.iter().any(|s| s.number != shots[0].number);
        let alone = if different { shots } else { &shots[..1] };
        for shot in alone {
            let seen = self.fire(setting, &[shot], plan);
            if !seen.faults.is_empty() {
                return self.report(setting, &[shot], &seen);
            }
        }
        self.report(setting, &all, &seen);
    }

    fn name(&self, setting: usize) -> String {
        let s = &self.settings[setting];
        format!("[{} MiB, {} ms]", s.memory >> 20, s.timeout.as_millis())
    }

    /// Makes sure that a server with this setting runs. The present server is kept if it has this setting, is alive and
    /// its memory has not grown.
    fn ready(&mut self, setting: usize) {
        let usable = match &mut self.server {
            Some((of, server)) => *of == setting && server.is_alive() && !has_grown(server),
            None => false,
        };
        if usable {
            return;
        }
        self.light.ask(None);
        self.server = None;
        let server = Server::start(&self.template, &self.settings[setting]);
        self.starts += 1;
        let query = "SELECT * { ?s <http://e/n> ?o ; ?p ?x }";
        let (_, made) = ask(
            server.address,
            "POST",
            "/prepared?parameter=s&parameter=o",
            "application/sparql-query",
            query,
            Duration::from_secs(20),
        );
        let made: serde_json::Value = serde_json::from_str(&made).unwrap_or_default();
        self.prepared = made["id"].as_str().unwrap_or_default().to_owned();
        self.light.ask(Some(server.address));
        self.server = Some((setting, server));
    }

    fn fire(&mut self, setting: usize, shots: &[&Shot], plan: Plan) -> Seen {
        let prepared = self.prepared.clone();
        self.ready(setting);
        let of_server = std::mem::take(&mut self.prepared);
        // The id of the query that was just prepared, or of the one prepared when the server was started.
        let id = if prepared.is_empty() {
            &of_server
        } else {
            &prepared
        };
        let requests: Vec<Request> = shots
            .iter()
            .map(|s| s.route.request(&s.attack, s.accept, id, self.most))
            .collect();
        self.prepared = if prepared.is_empty() {
            of_server
        } else {
            prepared
        };
        let Some((_, server)) = &mut self.server else {
            return Seen::default();
        };
        let limits = &self.settings[setting];
        let seen = throw(
            server,
            limits,
            self.slack,
            plan,
            &requests,
            &self.light,
            &self.machine,
        );
        self.thrown += shots.len();
        self.bytes += requests.iter().map(Request::bytes).sum::<usize>();
        for outcome in &seen.outcomes {
            *self.statuses.entry(outcome.status).or_default() += 1;
        }
        if seen.faults.is_empty() {
            self.most_over = self.most_over.max(seen.over);
            self.most_peak = self.most_peak.max(seen.peak);
        }
        if !seen.faults.is_empty() || matches!(plan, Plan::Terminate(_)) {
            self.light.ask(None);
            self.server = None;
        }
        seen
    }

    fn report(&mut self, setting: usize, shots: &[&Shot], seen: &Seen) {
        let Some(first) = seen.faults.first() else {
            return;
        };
        *self.counts.entry(first.class).or_default() += 1;
        let faults: Vec<String> = seen.faults.iter().map(Fault::to_string).collect();
        let mut text = format!(
            "{} text {} after {} s: {}\n    {:.1} s, peak {} MiB, others waited {} ms; {}",
            self.name(setting),
            shots[0].number,
            self.begun.elapsed().as_secs(),
            faults.join(", "),
            seen.took.as_secs_f64(),
            seen.peak >> 20,
            seen.wait.as_millis(),
            line(seen),
        );
        for (i, shot) in shots.iter().enumerate() {
            if i == 0 || shot.number != shots[0].number {
                text += &format!("\n    {}", described(shot));
            }
        }
        if let [shot] = shots {
            let class = first.class;
            let smaller = self.shrunk(setting, shot, class);
            if let Some((smaller, seen)) = smaller {
                text += &format!(
                    "\n    smaller: {}\n    {}",
                    described(&smaller),
                    line(&seen)
                );
            }
        }
        println!("{text}");
        self.faults.push(text);
    }

    /// Finds a smaller text with a fault of the same class.
    fn shrunk(&mut self, setting: usize, shot: &Shot, class: Class) -> Option<(Shot, Seen)> {
        let mut best = None;
        let mut now = shot.clone();
        let mut left = self.tries;
        'smaller: while left > 0 {
            for attack in now.attack.smaller() {
                if left == 0 {
                    break;
                }
                left -= 1;
                let next = Shot {
                    attack,
                    ..now.clone()
                };
                let seen = self.fire(setting, &[&next], next.plan);
                if seen.faults.iter().any(|f| f.class == class) {
                    now = next.clone();
                    best = Some((next, seen));
                    continue 'smaller;
                }
            }
            break;
        }
        best
    }

    /// Prints the figures of the whole campaign, and fails if there was a fault.
    pub fn end(self) {
        println!(
            "{} texts, {} MiB, {} s, {} servers; at most {} ms of computing after a limit and {} MiB where all was in bounds; statuses {:?}; faults {:?}",
            self.thrown,
            self.bytes >> 20,
            self.begun.elapsed().as_secs(),
            self.starts,
            self.most_over.as_millis(),
            self.most_peak >> 20,
            self.statuses,
            self.counts,
        );
        assert!(
            self.faults.is_empty(),
            "{} out of bounds:\n{}",
            self.faults.len(),
            self.faults.join("\n")
        );
    }
}

/// True if the memory of the idle server has grown, and does not shrink again soon.
fn has_grown(server: &Server) -> bool {
    for _ in 0..10 {
        if server.resident() < server.at_rest + GROWN {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

fn described(shot: &Shot) -> String {
    let attack = &shot.attack;
    let mut text = format!("{:?} {:?}", shot.route, shot.plan);
    if let Language::Document(media) = attack.language {
        text += &format!(" {media}");
    }
    if let Some(damage) = &attack.damage {
        text += &format!(" {damage:?}");
    }
    for (name, value) in &attack.values {
        text += &format!(" ${name}={value}");
    }
    format!("{text} {} bytes: {}", attack.recipe.bytes(), attack.recipe)
}

fn line(seen: &Seen) -> String {
    let answers: Vec<String> = seen
        .outcomes
        .iter()
        .map(|o| format!("{} in {:.2} s", o.status, o.took.as_secs_f64()))
        .collect();
    let said: String = seen
        .outcomes
        .first()
        .map_or("", |o| &o.said)
        .chars()
        .take(160)
        .collect();
    format!(
        "{}, over {:.2} s, peak {} MiB: {}",
        answers.join(", "),
        seen.over.as_secs_f64(),
        seen.peak >> 20,
        said.replace(|c: char| c.is_control(), " ")
    )
}
