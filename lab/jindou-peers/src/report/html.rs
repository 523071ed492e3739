//! The report as one page that needs nothing else: no script, no network, light and dark, narrow and wide.

mod tables;

use super::svg::{Bar, Scale, bar};
use super::{QueryReport, Report, by_template, date, median, ms, ratio_text, size, thousands};
use std::fmt::Write;

/// Colours that the style sheet has; further engines share the last.
const COLOURS: usize = 7;

/// The page.
#[must_use]
pub fn html(r: &Report) -> String {
    let mut out = String::with_capacity(64 << 10);
    let title = escape(&heading(r));
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>{}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n",
        include_str!("page.css")
    );
    // Figures fold instances; what differs is said of each instance.
    let folded = by_template(r);
    introduction(r, &folded, &mut out);
    tiles(&folded, r.differences().len(), &mut out);
    queries(&folded, &mut out);
    loads(r, &mut out);
    tables::numbers(&folded, &mut out);
    differences(r, &mut out);
    method(r, &mut out);
    out += "</main>\n</body>\n</html>\n";
    out
}

fn own(r: &Report) -> &str {
    r.engines.first().map_or("", |e| &e.about.name)
}

/// Engines that took part, alongside the first.
fn peers(r: &Report) -> usize {
    r.engines
        .iter()
        .skip(1)
        .filter(|e| e.failed.is_none())
        .count()
}

fn heading(r: &Report) -> String {
    match peers(r) {
        0 => format!("{}: {} alone", r.title, own(r)),
        1 => format!("{}: {} next to another engine", r.title, own(r)),
        n => format!("{}: {} next to {n} other engines", r.title, own(r)),
    }
}

fn introduction(r: &Report, folded: &Report, out: &mut String) {
    let templates = if folded.queries.len() < r.queries.len() {
        format!(
            " (instances of {} templates: below, a template is one question, whose time is the median over its instances)",
            folded.queries.len()
        )
    } else {
        String::new()
    };
    let statements = r.data.statements.map_or_else(
        || size(r.data.bytes),
        |n| format!("{} statements", thousands(n)),
    );
    let _ = write!(
        out,
        "<p>A graph database keeps facts such as <em>this student takes that course</em> and answers questions about how they connect, \
         written in the language SPARQL. Here {} database{} loaded the same {statements} ({}) on one machine and then answered \
         the same {} question{}{templates}, in turn. A time is from sending the question to receiving the answer’s last byte. <strong>Shorter is \
         better</strong> everywhere on this page.</p>\n<p class=\"soft\">{}, {} cores, {} of memory; {}. \
         The machine’s load average was {:.1} before and {:.1} after{}.</p>\n{}",
        peers(r) + 1,
        if peers(r) == 0 { "" } else { "s" },
        escape(&r.data.name),
        r.queries.len(),
        if r.queries.len() == 1 { "" } else { "s" },
        escape(&r.machine.processor),
        r.machine.cores,
        size(r.machine.memory),
        date(r.unix_seconds),
        r.machine.load_before,
        r.load_after,
        if r.machine.load_before > 0.5 * r.machine.cores as f64 {
            ": others were working on it, so trust ratios rather than times"
        } else {
            ""
        },
        not_alike(r)
    );
}

/// A warning where the first engine was asked in another way than some of the others.
fn not_alike(r: &Report) -> String {
    let Some(first) = r.engines.first() else {
        return String::new();
    };
    let others: Vec<_> = r
        .engines
        .iter()
        .skip(1)
        .filter(|e| e.failed.is_none() && e.about.over_http != first.about.over_http)
        .map(|e| escape(&e.about.name))
        .collect();
    if others.is_empty() {
        return String::new();
    }
    let own = escape(&first.about.name);
    let (whose, others) = (
        others.join(", "),
        if first.about.over_http {
            format!(
                "{own} was asked over HTTP and they were not: its times hold a round trip that theirs do not."
            )
        } else {
            format!(
                "they were asked over HTTP and {own} was not: their times hold a round trip that its times do not."
            )
        },
    );
    format!(
        "<p class=\"note\"><strong>Not all were asked in the same way.</strong> {whose}: {others} “Asking nothing” below shows how much that is; for \
         questions that take about as long as that, it is most of the difference.</p>\n"
    )
}

fn tiles(r: &Report, differences: usize, out: &mut String) {
    let own = escape(own(r));
    let compared: Vec<f64> = r
        .queries
        .iter()
        .filter_map(|q| Some(q.fastest_peer(r.limit_ms())?.1.times))
        .collect();
    let losses = r.losses().len();
    out.push_str("<div class=\"tiles\">\n");
    if let Some((mean, n)) = r.mean_of_fastest() {
        let (class, times, word) = if mean.times >= 1.0 {
            ("win", mean, "faster")
        } else {
            (
                "lose",
                super::Ratio {
                    times: 1.0 / mean.times,
                    at_least: false,
                },
                "slower",
            )
        };
        let _ = writeln!(
            out,
            "<div class=\"tile\"><b class=\"{class}\">{} {word}</b>{own} against the fastest other engine of each question, geometric mean of {n}</div>",
            ratio_text(times)
        );
    }
    let _ = writeln!(
        out,
        "<div class=\"tile\"><b class=\"win\">{} of {}</b>questions on which {own} is the fastest</div>\n\
         <div class=\"tile\"><b class=\"{}\">{losses} of {}</b>questions on which another engine is faster{}</div>\n\
         <div class=\"tile\"><b>{}</b>things on which the engines do not agree, or that one could not do <a href=\"#differences\">(all named below)</a></div>\n</div>",
        compared.len() - losses,
        r.queries.len(),
        if losses > 0 { "lose" } else { "" },
        r.queries.len(),
        if losses == 0 {
            String::new()
        } else {
            let names: Vec<_> = r.losses().iter().map(|(q, ..)| escape(&q.name)).collect();
            format!(": {}", names.join(", "))
        },
        differences,
    );
}

/// The bars of all queries on one scale.
fn time_scale(r: &Report) -> Scale {
    let floors = r.engines.iter().flat_map(|e| e.floor_ms.iter().copied());
    let times = r.queries.iter().flat_map(|q| &q.answers);
    let limit = times.clone().any(|a| a.over_limit).then_some(r.limit_ms());
    Scale::log_around(
        times
            .filter_map(super::Answer::median_ms)
            .chain(floors)
            .chain(limit),
    )
}

fn duration(ms: f64) -> String {
    if ms < 0.9995 {
        format!("{} µs", super::thousands((ms * 1e3).round() as u64))
    } else if ms < 999.5 {
        format!("{} ms", super::ms(ms))
    } else {
        format!("{} s", super::ms(ms / 1e3))
    }
}

fn tick(ms: f64) -> String {
    if ms < 0.99 {
        format!("{} µs", (ms * 1e3 * 1e3).round() / 1e3)
    } else if ms < 999.0 {
        format!("{} ms", ms.round())
    } else {
        format!("{} s", (ms / 1e3).round())
    }
}

fn axis(scale: Scale, label: impl Fn(f64) -> String, out: &mut String) {
    out.push_str("<div class=\"row scale\" aria-hidden=\"true\"><span class=\"spare\"></span><div class=\"axis\">");
    for t in scale.ticks() {
        let _ = write!(
            out,
            "<span style=\"left:{}%\">{}</span>",
            scale.percent(t),
            label(t)
        );
    }
    out.push_str("</div><span class=\"spare\"></span></div>\n");
}

fn queries(r: &Report, out: &mut String) {
    let scale = time_scale(r);
    let _ = write!(
        out,
        "<h2>Questions</h2>\n<p>The scale is logarithmic: <strong>each line is ten times the one before</strong>, so a bar that is a little \
         shorter is much faster. A bar is the median; the thin line in it goes from the fastest to the slowest run. A dashed bar was cut off \
         at {} s.</p>\n",
        r.limit_seconds
    );
    floor(r, scale, out);
    for q in &r.queries {
        out.push_str("<section class=\"query\">\n");
        query_head(r, q, out);
        for (i, (e, a)) in r.engines.iter().zip(&q.answers).enumerate() {
            if e.failed.is_some() {
                continue;
            }
            let (value, text) = match a.median_ms() {
                Some(m) => (m, duration(m)),
                None if a.over_limit => (r.limit_ms(), format!("> {} s", r.limit_seconds)),
                None => (0.0, "not answered".into()),
            };
            let mut text = escape(&text);
            if i > 0
                && let Some(x) = q.ratio(i, r.limit_ms())
            {
                let _ = write!(
                    text,
                    " <span class=\"{}\">({} {})</span>",
                    if x.times < 1.0 { "lose" } else { "soft" },
                    ratio_text(x),
                    escape(own(r))
                );
            }
            if !q.right(i) {
                text += " <strong class=\"lose\">wrong rows</strong>";
            }
            let _ = write!(
                out,
                "<div class=\"row{}\"><span>{}</span>",
                if i == 0 { " first" } else { "" },
                escape(&e.about.name)
            );
            let range = a
                .times_ms
                .first()
                .zip(a.times_ms.last())
                .map(|(a, b)| (*a, *b));
            bar(
                Bar {
                    value,
                    range: range.filter(|_| a.failure.is_none()),
                    cut: a.over_limit,
                    colour: i.min(COLOURS - 1),
                },
                scale,
                out,
            );
            let _ = writeln!(out, "<span class=\"v\">{text}</span></div>");
        }
        axis(scale, tick, out);
        let _ = write!(
            out,
            "<details><summary>The question in SPARQL</summary><pre>{}</pre></details>\n</section>\n",
            escape(q.text.trim())
        );
    }
}

/// Writes the first section: the time of a question that asks nothing.
fn floor(r: &Report, scale: Scale, out: &mut String) {
    out.push_str("<section class=\"query\">\n<div class=\"head\"><h3>Asking nothing</h3><span class=\"soft\">what every question costs at least: \
                  the way there and back</span></div>\n");
    for (i, e) in r.engines.iter().enumerate() {
        if e.failed.is_some() {
            continue;
        }
        let mut times = e.floor_ms.clone();
        times.sort_by(f64::total_cmp);
        let Some(middle) = median(&times) else {
            continue;
        };
        let _ = write!(
            out,
            "<div class=\"row{}\"><span>{}</span>",
            if i == 0 { " first" } else { "" },
            escape(&e.about.name)
        );
        bar(
            Bar {
                value: middle,
                range: times.first().zip(times.last()).map(|(a, b)| (*a, *b)),
                cut: false,
                colour: i.min(COLOURS - 1),
            },
            scale,
            out,
        );
        let how = if e.about.over_http {
            ""
        } else {
            " <span class=\"soft\">(not over HTTP)</span>"
        };
        let _ = writeln!(
            out,
            "<span class=\"v\">{}{how}</span></div>",
            escape(&duration(middle))
        );
    }
    axis(scale, tick, out);
    out.push_str("</section>\n");
}

fn query_head(r: &Report, q: &QueryReport, out: &mut String) {
    let rows = q.answers.iter().find_map(|a| a.seen).map(|s| s.rows);
    let _ = write!(out, "<div class=\"head\"><h3>{}</h3>", escape(&q.name));
    if let Some(n) = q.known_rows.or(rows) {
        let _ = write!(
            out,
            "<span class=\"soft\">{} row{}{}</span>",
            thousands(n),
            if n == 1 { "" } else { "s" },
            if q.known_rows.is_some() {
                ", as published"
            } else {
                ""
            }
        );
    }
    if let Some((peer, x)) = q.fastest_peer(r.limit_ms()) {
        let (own, peer) = (escape(own(r)), escape(&r.engines[peer].about.name));
        let _ = if x.times >= 1.0 {
            write!(
                out,
                "<span class=\"verdict win\">{own} {} faster than {peer}, the next</span>",
                ratio_text(x)
            )
        } else {
            let inverse = super::Ratio {
                times: 1.0 / x.times,
                at_least: false,
            };
            write!(
                out,
                "<span class=\"verdict lose\">{own} {} slower than {peer}</span>",
                ratio_text(inverse)
            )
        };
    }
    out.push_str("</div>\n");
}

fn loads(r: &Report, out: &mut String) {
    out.push_str("<h2>Loading, and what it takes</h2>\n<p>Each engine loaded the data alone. These scales begin at zero and are linear.</p>\n<div class=\"plots\">\n");
    let loaded = |i: usize| r.engines[i].loaded;
    plot(
        r,
        "Time to load",
        |i| loaded(i).map(|l| l.seconds),
        |x| format!("{} s", ms(x)),
        out,
    );
    plot(
        r,
        "Space on disk",
        |i| loaded(i).map(|l| l.disk as f64),
        |x| size(x as u64),
        out,
    );
    plot(
        r,
        "Memory at most while loading",
        |i| loaded(i).map(|l| l.memory.resident as f64),
        |x| size(x as u64),
        out,
    );
    plot(
        r,
        "Memory at most while answering",
        |i| (r.engines[i].serving.resident > 0).then_some(r.engines[i].serving.resident as f64),
        |x| size(x as u64),
        out,
    );
    out.push_str("</div>\n<p class=\"soft\">Memory is what was resident, pages of mapped files included, which the system can take back; the table below also \
                  says how much was the engine’s own. Java engines fill the heap they are given.</p>\n");
}

fn plot(
    r: &Report,
    title: &str,
    value: impl Fn(usize) -> Option<f64>,
    label: impl Fn(f64) -> String,
    out: &mut String,
) {
    let most = (0..r.engines.len()).filter_map(&value).fold(0.0, f64::max);
    let _ = writeln!(out, "<section><h3>{title}</h3>");
    for (i, e) in r.engines.iter().enumerate() {
        if e.failed.is_some() {
            continue;
        }
        let _ = write!(
            out,
            "<div class=\"row{}\"><span>{}</span>",
            if i == 0 { " first" } else { "" },
            escape(&e.about.name)
        );
        let v = value(i);
        bar(
            Bar {
                value: v.unwrap_or(0.0),
                range: None,
                cut: false,
                colour: i.min(COLOURS - 1),
            },
            Scale::Linear(most),
            out,
        );
        let _ = writeln!(
            out,
            "<span class=\"v\">{}</span></div>",
            v.map_or("–".into(), &label)
        );
    }
    out.push_str("</section>\n");
}

fn differences(r: &Report, out: &mut String) {
    out.push_str("<h2 id=\"differences\">What differs</h2>\n");
    let all = r.differences();
    if all.is_empty() {
        out.push_str("<p>Every engine answered every question, and all answers are the same: as many rows, and the same terms in them \
                      (compared in any order; numbers by value; blank nodes as equal).</p>\n");
        return;
    }
    out.push_str("<p>Answers were compared term by term, in any order; numbers by value; blank nodes as equal.</p>\n<ul>\n");
    for d in all {
        let _ = writeln!(out, "<li>{}</li>", escape(&d));
    }
    out.push_str("</ul>\n");
}

fn method(r: &Report, out: &mut String) {
    let _ = write!(
        out,
        "<h2>How it was measured</h2>\n<ul>\n<li>Every engine loaded the same file ({}, {}), one after the other.</li>\n\
         <li>Then all were up at the same time and answered each question in turn: first once with every term of the answer read and compared, \
         once more to warm up, then {} timed rounds (four times as many where all take less than 50 ms; two or one where an engine takes more than 5 or 20 s), \
         with the engines alternating.</li>\n\
         <li>Answers come as tab-separated values and are read to the last byte by the same client.</li>\n",
        escape(&r.data.name),
        size(r.data.bytes),
        r.rounds
    );
    let inside: Vec<_> = r
        .engines
        .iter()
        .filter(|e| !e.about.over_http && e.failed.is_none())
        .map(|e| escape(&e.about.name))
        .collect();
    if !inside.is_empty() {
        let _ = writeln!(
            out,
            "<li><strong>Not over HTTP: {}.</strong> The others’ times hold an HTTP round trip; the row <code>ASK {{}}</code> above says what that costs. Nothing was subtracted.</li>",
            inside.join(", ")
        );
    }
    out.push_str("</ul>\n<h3>The engines</h3>\n<ul>\n");
    for e in &r.engines {
        let _ = writeln!(
            out,
            "<li><strong>{}</strong> ({}; {}): {}{}</li>",
            escape(&e.about.name),
            escape(&e.about.version),
            escape(&e.about.licence),
            escape(&e.about.how),
            if e.load_reused {
                " Its load’s figures are of an earlier run over the same file."
            } else {
                ""
            }
        );
    }
    let _ = write!(
        out,
        "</ul>\n<h3>The machine</h3>\n<p>{}, {} cores, {} of memory, {}.</p>\n<h3>Make it again</h3>\n<pre>{}</pre>\n",
        escape(&r.machine.processor),
        r.machine.cores,
        size(r.machine.memory),
        escape(&r.machine.system),
        escape(&r.command)
    );
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn the_page_stands_alone_and_hides_nothing() {
        let page = html(&sample());
        for words in [
            "jindou 2.00 × slower than a",
            "jindou 10 × faster than a, the next",
            "wrong rows",
            "&gt; 60 s",
            "b took no part: no port",
            "SELECT * { ?s ?p &quot;&lt;&amp;&gt;&quot; }",
            "prefers-color-scheme:dark",
            "how &lt;a&gt; &amp; co were set up",
        ] {
            assert!(page.contains(words), "no '{words}'");
        }
        for forbidden in [
            "<script", "http://", "https://", "url(", "@import", "NaN", "inf%",
        ] {
            assert!(!page.contains(forbidden), "'{forbidden}' in the page");
        }
    }

    #[test]
    fn every_element_is_closed() {
        let page = html(&sample());
        for tag in [
            "main", "section", "div", "span", "table", "tr", "td", "th", "ul", "li", "p", "svg",
            "details", "h2", "h3", "strong", "small",
        ] {
            let opened = page.matches(&format!("<{tag}>")).count()
                + page.matches(&format!("<{tag} ")).count();
            let closed = page.matches(&format!("</{tag}>")).count();
            assert_eq!(opened, closed, "{tag}");
        }
    }
}
