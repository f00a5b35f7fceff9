//! The study page of generated records: complete, safe against injection, deterministic, and true to the record.

#![allow(clippy::unwrap_used)]

#[path = "generated/study_record.rs"]
mod study_record;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use evenhand_report::{ReportError, write_study_report};
use evenhand_study::compare;
use evenhand_study::record::{AccountRecord, ClaimRecord, StudyRecord, TrustRecord, WorkRecord};
use study_record::{StudyShape, study};

/// Writes a report and returns all its files by relative path.
fn report(record: &StudyRecord) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let written = write_study_report(folder.path(), record).unwrap();
    let mut files = BTreeMap::new();
    collect(folder.path(), folder.path(), &mut files);
    let list: serde_json::Value = serde_json::from_str(&files.remove("figures/figures.json").unwrap()).unwrap();
    assert_eq!(list["figures"].as_array().unwrap().len(), written.figures.len(), "{list}");
    assert_eq!(written.figures.len() + 1, files.len(), "exactly the files that it lists");
    assert_eq!(written.bytes, files.values().map(|text| text.len() as u64).sum::<u64>());
    files
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            files.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
}

/// Checks that elements nest, that attributes are quoted and that no text contains a bare `<` or `&`; returns the names
/// of all elements. Accepts SVG, and the HTML that the templates produce.
fn elements(text: &str, void: &[&str], raw: &[&str]) -> Result<Vec<String>, String> {
    let mut open: Vec<String> = Vec::new();
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        check_text(&rest[..start])?;
        rest = &rest[start + 1..];
        if let Some(after) = rest.strip_prefix('!') {
            rest = after.split_once('>').ok_or("an open declaration")?.1;
            continue;
        }
        let (tag, after) = end_of_tag(rest)?;
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            let last = open.pop();
            if last.as_deref() != Some(name) {
                return Err(format!("</{name}> closes {last:?}"));
            }
            continue;
        }
        let name = tag.split([' ', '\n', '/']).next().unwrap_or_default().to_owned();
        names.push(name.clone());
        if raw.contains(&name.as_str()) {
            rest = rest.split_once(&format!("</{name}>")).ok_or(format!("<{name}> is not closed"))?.1;
        } else if !tag.ends_with('/') && !void.contains(&name.as_str()) {
            open.push(name);
        }
    }
    check_text(rest)?;
    if open.is_empty() { Ok(names) } else { Err(format!("never closed: {open:?}")) }
}

fn end_of_tag(text: &str) -> Result<(&str, &str), String> {
    let mut quoted = false;
    for (index, character) in text.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '>' if !quoted => return Ok((&text[..index], &text[index + 1..])),
            '<' => return Err(format!("< within a tag: {}", &text[..index])),
            _ => {}
        }
    }
    Err("a tag that does not end".into())
}

fn check_text(text: &str) -> Result<(), String> {
    let known = ["amp;", "lt;", "gt;", "quot;", "#"];
    for (index, _) in text.match_indices('&') {
        if !known.iter().any(|entity| text[index + 1..].starts_with(entity)) {
            return Err(format!("a bare & in {text:?}"));
        }
    }
    if text.contains('>') { Err(format!("a bare > in {text:?}")) } else { Ok(()) }
}

/// Checks the properties that all reports share.
fn check(files: &BTreeMap<String, String>) {
    for (name, text) in files {
        let lower = text.replace("http://www.w3.org/2000/svg", "").to_lowercase();
        assert!(!lower.contains("http:") && !lower.contains("https:") && !lower.contains("//cdn"), "{name}");
        if name.ends_with(".svg") {
            elements(text, &[], &["style"]).unwrap_or_else(|error| panic!("{name}: {error}"));
            for invalid in ["NaN", "inf", "=\"\"", "∞"] {
                assert!(!text.contains(invalid), "{invalid} in {name}");
            }
            assert!(text.contains("role=\"img\"") && text.contains("<desc"), "{name}");
            assert!(files.contains_key(&name.replace(".svg", ".csv")), "{name} has no data");
        }
    }
    let page = &files["index.html"];
    let void = ["meta", "link", "input", "br"];
    elements(page, &void, &["style", "script"]).unwrap_or_else(|error| panic!("{error}"));
    let identities: Vec<&str> = page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(identities.len(), identities.iter().collect::<BTreeSet<_>>().len(), "duplicate id: {identities:?}");
    for link in page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        let there = link.starts_with("data:,")
            || files.contains_key(link)
            || identities.contains(&link.trim_start_matches('#'));
        assert!(there, "{link} leads nowhere");
    }
}

#[test]
fn reports_of_all_shapes_are_complete() {
    let shapes = [
        StudyShape::default(),
        StudyShape { users: 1, policies: 1, capacities: 1, ..StudyShape::default() },
        StudyShape { users: 1, policies: 2, capacities: 1, incomplete: false, ..StudyShape::default() },
        StudyShape { users: 12, policies: 8, capacities: 11, ..StudyShape::default() },
        StudyShape { users: 9, time_scale: 1e280, ..StudyShape::default() },
        StudyShape { users: 9, time_scale: 1e-9, ..StudyShape::default() },
        StudyShape { users: 9, time_scale: 0.0, ..StudyShape::default() },
        StudyShape { users: 9, bins: 0, ..StudyShape::default() },
        StudyShape { users: 0, ..StudyShape::default() },
        StudyShape { repeats: true, ..StudyShape::default() },
        StudyShape { users: 9, time_scale: 1e280, repeats: true, ..StudyShape::default() },
        StudyShape { users: 9, time_scale: 0.0, repeats: true, ..StudyShape::default() },
        StudyShape { users: 0, repeats: true, ..StudyShape::default() },
    ];
    for shape in &shapes {
        check(&report(&study(shape)));
    }
    check(&report(&StudyRecord::default()));
}

#[test]
fn a_study_without_started_tasks_reports_it() {
    let mut record = study(&StudyShape { users: 3, policies: 2, capacities: 1, ..StudyShape::default() });
    for run in &mut record.runs {
        (run.mean_wait_s, run.users_mean_wait_s, run.jain_wait) = (None, None, None);
        for user in &mut run.users {
            (user.totals.started, user.totals.completed, user.completion_ratio) = (0, 0, 0.0);
            (user.mean_wait_s, user.p95_wait_s, user.mean_bounded_slowdown) = (None, None, None);
        }
        run.series.mean_wait_s.fill(None);
    }
    let comparison = &mut record.comparisons[0];
    (comparison.users_better, comparison.users_worse, comparison.users_same) = (0, 0, 0);
    (comparison.users_mean_wait_reduction, comparison.mean_user_wait_reduction) = (None, None);
    let files = report(&record);
    check(&files);
    assert!(files["index.html"].contains("Under fifo no task starts."));
    assert!(files["index.html"].contains("waits cannot be compared"));
}

#[test]
fn numbers_that_are_not_finite_are_omitted() {
    let mut record = study(&StudyShape { users: 4, policies: 2, capacities: 1, ..StudyShape::default() });
    for run in &mut record.runs {
        run.users[0].mean_wait_s = Some(f64::NAN);
        run.users[1].mean_wait_s = Some(f64::INFINITY);
        run.users[2].completion_ratio = f64::NAN;
        run.series.waiting[3] = f64::NAN;
        run.series.bin_s = f64::INFINITY;
    }
    record.comparisons[0].users_mean_wait_reduction = Some(f64::NEG_INFINITY);
    record.workload.span_s = f64::NAN;
    check(&report(&record));
}

#[test]
fn untrusted_names_are_escaped_everywhere() {
    let evil = "</script><script>alert('x')</script>\"><img src=x onerror=\"alert(1)\">&lt;\u{1}";
    let mut record = study(&StudyShape { users: 9, policies: 2, capacities: 1, ..StudyShape::default() });
    record.workload.source = evil.into();
    record.workload.digest = evil.into();
    record.method.command = evil.into();
    record.method.parameters = vec![(evil.into(), evil.into())];
    record.missing = vec![evil.into()];
    record.workload.mean_use = [(evil.to_string(), 1.5)].into();
    record.workload.units = [(evil.to_string(), evil.to_string())].into();
    for run in &mut record.runs {
        run.capacity_name = evil.into();
        run.capacity_factor = None;
        run.id = format!("../../{evil}{}", run.policy);
        run.policy = format!("{evil}{}", run.policy);
        run.capacity = [(evil.to_string(), 1.0)].into();
        run.series.utilization = [(evil.to_string(), vec![0.5])].into();
        run.users[0].name = evil.into();
    }
    record.comparisons[0].run = record.runs[1].id.clone();
    record.comparisons[0].against = record.runs[0].id.clone();
    let files = report(&record);
    check(&files);
    for (name, text) in files.iter().filter(|(name, _)| !name.ends_with(".csv")) {
        assert!(!text.contains("<script>alert") && !text.contains("<img"), "{name}");
        assert!(!name.contains(['<', '"', '\'', ' ']), "{name}");
    }
    assert_eq!(files["index.html"].matches("</script>").count(), 2, "the page's own scripts only");
    assert!(files.keys().all(|name| name == "index.html" || name.starts_with("figures/")), "{:?}", files.keys());
}

#[test]
fn equal_records_give_equal_bytes() {
    let record = study(&StudyShape { users: 40, ..StudyShape::default() });
    assert_eq!(report(&record), report(&record.clone()));
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(report(&record), report(&serde_json::from_str(&text).unwrap()), "also when read back from summary.json");
}

#[test]
fn the_data_files_of_figures_hold_the_numbers_of_the_record() {
    let record = study(&StudyShape::default());
    let files = report(&record);
    let rows = |name: &str| -> Vec<Vec<String>> {
        let text = &files[&format!("figures/{name}.csv")];
        text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
    };
    let number = |text: &str| (!text.is_empty()).then(|| text.parse::<f64>().unwrap());
    let mut compared = 0;
    for comparison in &record.comparisons {
        let run = record.runs.iter().find(|run| run.id == comparison.run).unwrap();
        let base = record.runs.iter().find(|run| run.id == comparison.against).unwrap();
        let waits = rows(&format!("user-waits-{}", run.id));
        let completion = rows(&format!("user-completion-{}", run.id));
        assert_eq!((waits.len(), completion.len()), (run.users.len(), run.users.len()));
        for (user, (after, before)) in run.users.iter().zip(&base.users).enumerate() {
            assert_eq!(waits[user][0], after.name);
            assert_eq!(waits[user][1], after.totals.submitted.to_string());
            assert_eq!([number(&waits[user][2]), number(&waits[user][3])], [before.mean_wait_s, after.mean_wait_s]);
            let ratios = [number(&completion[user][2]), number(&completion[user][3])];
            assert_eq!(ratios, [before.completion_ratio, after.completion_ratio].map(Some));
            compared += 1;
        }
        for (name, reduction) in [
            ("users-mean-wait-reduction", comparison.users_mean_wait_reduction),
            ("mean-user-wait-reduction", comparison.mean_user_wait_reduction),
        ] {
            let same = |row: &&Vec<String>| row[0] == run.capacity_name && row[1] == run.policy;
            assert_eq!(number(&rows(name).iter().find(same).unwrap()[3]), reduction);
        }
    }
    assert_eq!(compared, 600);
    for run in &record.runs {
        let levels = |name: &str| -> Vec<Option<f64>> {
            let rows = rows(&format!("{name}-{}", run.capacity_name));
            rows.iter().filter(|row| row[1] == run.policy).map(|row| number(&row[4])).collect()
        };
        assert_eq!(levels("wait-over-time"), run.series.mean_wait_s);
        assert_eq!(levels("waiting-over-time"), run.series.waiting.iter().copied().map(Some).collect::<Vec<_>>());
        let cpu: Vec<Option<f64>> = run.series.utilization["cpu"].iter().copied().map(Some).collect();
        assert_eq!(levels("utilization-cpu"), cpu);
    }
}

#[test]
fn the_answer_states_the_numbers_of_the_record() {
    let mut record = study(&StudyShape { users: 100, policies: 2, capacities: 1, ..StudyShape::default() });
    let comparison = &mut record.comparisons[0];
    (comparison.users_better, comparison.users_worse, comparison.users_same) = (61, 12, 27);
    (comparison.complete_more, comparison.complete_fewer) = (5, 1);
    comparison.users_mean_wait_reduction = Some(1.0 - 812.0 / 1204.0);
    record.runs[0].users_mean_wait_s = Some(1204.0);
    record.runs[1].users_mean_wait_s = Some(812.0);
    let page = report(&record)["index.html"].replace(['\u{202f}', '\u{a0}'], " ");
    let sentence = "<strong>drf at 0.5 R:</strong> 61 of 100 users wait less than under fifo, 12 wait longer, 27 the same; \
                    the mean over users of mean waits is 13.5 min (812 s) instead of 20.1 min (1 204 s) (32.6 % less); 5 \
                    complete more of their tasks, 1 fewer.";
    assert!(page.contains(sentence), "not found: {sentence}");
}

#[test]
fn the_answer_begins_with_its_trust_and_ends_with_how_the_study_was_repeated() {
    let mut record =
        study(&StudyShape { users: 12, policies: 2, capacities: 1, repeats: true, ..StudyShape::default() });
    record.trust = Some(TrustRecord {
        policy: "fifo".into(),
        verdict: "Direction can be trusted, size not.".into(),
        claims: vec![ClaimRecord {
            claim: "which users wait long".into(),
            holds: true,
            because: "the rank correlation is 0.90".into(),
            undecided: false,
        }],
        ..TrustRecord::default()
    });
    let files = report(&record);
    check(&files);
    let section = |id: &str| {
        let rest = files["index.html"].split(&format!("<section id=\"{id}\">")).nth(1).unwrap();
        rest.split("</section>").next().unwrap().to_owned()
    };
    let answer = section("answer");
    let place = |text: &str| answer.find(text).unwrap_or_else(|| panic!("{text} is missing"));
    assert!(place("Direction can be trusted, size not.") < place("<details"));
    assert!(place("<details") < place("The study was run"));
    let item = "<li><strong>Trusted: which users wait long.</strong> The rank correlation is 0.90.</li>";
    assert!(section("trust").contains(item));
}

#[test]
fn what_is_within_the_noise_is_not_counted_and_grey() {
    let shape = StudyShape { users: 100, policies: 2, capacities: 1, ..StudyShape::default() };
    let plain = report(&study(&shape));
    let record = study(&StudyShape { repeats: true, ..shape });
    let files = report(&record);
    let page = files["index.html"].replace(['\u{202f}', '\u{a0}'], " ");
    let comparison = &record.comparisons[0];
    let beyond = [comparison.users_better_beyond_noise.unwrap(), comparison.users_worse_beyond_noise.unwrap()];
    let within = comparison.users_better + comparison.users_worse - beyond[0] - beyond[1];
    assert!(within > 0 && beyond[0] > 0, "the example has both");
    assert!(page.contains(&format!("<strong>drf at 0.5 R:</strong> {} of ", beyond[0])), "{beyond:?}");
    assert!(page.contains(&format!(", and {within} differ by no more than the noise")));
    assert!(page.contains("The study was run 20 times: once on the log itself"));
    let compared = comparison.users_better + comparison.users_worse + comparison.users_same;
    let share = |worse: u64| format!("<td>{:.1} %</td>", 100.0 * worse as f64 / compared as f64);
    let fairness = page.split("<section id=\"fairness\">").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(fairness.contains(&share(beyond[1])) && !fairness.contains(&share(comparison.users_worse)), "{fairness}");
    assert!(fairness.contains("who wait longer beyond the noise."));
    let grey = |page: &str| page.matches("<tr class=\"noise\">").count() as u64;
    assert_eq!(grey(&page), within, "a row for each");
    // Every third bubble is grey: those within the noise, and those that do not differ.
    let bubbles =
        |svg: &str, class: &str| svg.matches(&format!("<circle class=\"bubble {class}\" data")).count() as u64;
    let svg = &files["figures/user-waits-drf-0.500.svg"];
    assert_eq!([bubbles(svg, "better"), bubbles(svg, "worse")], beyond);
    // The interval of the second reduction includes zero.
    let [first, second] = ["users-mean-wait-reduction", "mean-user-wait-reduction"]
        .map(|name| (&files[&format!("figures/{name}.svg")], &files[&format!("figures/{name}.csv")]));
    assert!(!first.0.contains("faded s1") && !first.0.contains(" faded\"") && second.0.contains(" faded\""));
    assert!(first.0.contains("class=\"whisker ink\""));
    let estimate = comparison.noise.as_ref().unwrap().users_mean_wait_reduction.unwrap();
    let row = format!(",{},{}", estimate.interval[0], estimate.interval[1]);
    assert!(first.1.lines().nth(1).unwrap().ends_with(&row), "{} {row}", first.1);
    // Without repeats there is no trace of them.
    assert_eq!(grey(&plain["index.html"]), 0);
    assert!(!plain["index.html"].contains("Of 20 repeats"));
    assert!(!plain["figures/users-mean-wait-reduction.csv"].contains("low"));
}

#[test]
fn the_page_has_the_classes_of_each_run() {
    let record = study(&StudyShape { users: 40, policies: 2, capacities: 1, ..StudyShape::default() });
    let page = report(&record)["index.html"].replace(['\u{202f}', '\u{a0}'], " ");
    let section = page.split("<section id=\"classes\">").nth(1).unwrap().split("</section>").next().unwrap();
    let rows = record.runs.iter().map(|run| run.classes.len()).sum::<usize>();
    assert_eq!(section.matches("<td class=\"text\">").count(), rows);
    assert!(section.contains("At 0.5 R: small up to 1.5 % of the capacity, short up to 5.00 min"), "{section}");
    assert!(section.contains("<td>3</td><td>2</td></tr>") && !section.contains("of repeats"));
    let mut without = record;
    without.runs.iter_mut().for_each(|run| run.classes.clear());
    assert!(!report(&without)["index.html"].contains("id=\"classes\""));
}

#[test]
fn the_page_has_a_table_of_accounts_only_if_the_study_has_accounts() {
    let record = study(&StudyShape { users: 12, policies: 2, capacities: 1, ..StudyShape::default() });
    let page = &report(&record)["index.html"];
    let body = page.split("<table id=\"account-table\">").nth(1).unwrap();
    let body = body.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
    let text =
        |row: &str| row.split("\">").find_map(|part| part.split_once("</span></th>")).map(|(name, _)| name.to_owned());
    let rows: Vec<(String, &str)> = body
        .split("<tr")
        .skip(1)
        .map(|row| (text(row).unwrap(), row.split("--depth:").nth(1).unwrap().split('"').next().unwrap()))
        .collect();
    // Every account follows its parent; sub-accounts come before users.
    let first: Vec<(&str, &str)> = rows.iter().take(6).map(|(name, depth)| (name.as_str(), *depth)).collect();
    let particles = "&lt;b&gt;particles &amp; fields&lt;&#x2f;b&gt;";
    assert_eq!(first[..4], [("all users", "0"), ("science", "1"), ("physics", "2"), (particles, "3")]);
    assert_eq!((rows.len(), rows.last().unwrap().1), (6 + 12, "1"), "users without an account come last");
    // The page first shows the second run.
    let nuwt = record.runs[1].accounts[0].results.normalized.nuwt_per_pe.unwrap();
    assert!((10.0..100.0).contains(&nuwt), "{nuwt} has one decimal");
    assert!(body.split("</tr>").next().unwrap().contains(&format!("<td>{nuwt:.1}</td>")), "{nuwt}");
    let none = &report(&study(&StudyShape { users: 12, accounts: false, ..StudyShape::default() }))["index.html"];
    assert!(!none.contains("id=\"accounts\"") && none.contains("id=\"waste\""));
}

#[test]
fn a_page_lists_at_most_two_thousand_accounts_and_users() {
    let mut record = study(&StudyShape { users: 3000, policies: 1, capacities: 1, ..StudyShape::default() });
    // A chain of accounts that is too deep for recursion.
    let accounts = &mut record.runs[0].accounts;
    for _ in 0..5000 {
        let parent = Some(accounts.len() - 1);
        accounts.push(AccountRecord { name: Some("deeper".into()), parent, ..AccountRecord::default() });
    }
    let page = &report(&record)["index.html"];
    assert!(page.contains("The 4\u{202f}006 accounts and users with the fewest tasks"), "5006 and 3000, less 4000");
}

#[test]
fn of_very_many_users_the_page_lists_those_whose_waits_differ_most_and_sums_up_the_others() {
    let mut record = study(&StudyShape { users: 10_001, policies: 2, capacities: 1, ..StudyShape::default() });
    for run in &mut record.runs {
        for user in &mut run.users {
            (user.totals.submitted, user.totals.started, user.mean_wait_s) = (2, 2, Some(60.0));
        }
    }
    record.runs[1].users[9999].mean_wait_s = Some(1e6);
    let files = report(&record);
    let page = files["index.html"].replace(['\u{202f}', '\u{a0}'], " ");
    let sentence = "The 8 001 others, with 16 002 tasks, are in <code>users.csv</code>; the mean of their mean waits at 0.5 R \
                    is 60.0 s under fifo, 60.0 s under drf.";
    assert!(page.contains(sentence), "not found: {sentence}");
    let table = page.split("<table id=\"user-table\">").nth(1).unwrap().split("</table>").next().unwrap();
    let name = &record.runs[1].users[9999].name;
    assert!(table.contains(name.as_str()), "{name} is not listed");
    let data = &files[&format!("figures/user-waits-{}.csv", record.runs[1].id)];
    assert_eq!(data.lines().count(), 1 + 2000);
    assert!(data.contains(&format!("\n{name},2,60,1000000\n")), "{}", &data[..300]);
}

#[test]
fn missing_runs_are_listed_and_leave_gaps() {
    let mut record = study(&StudyShape { users: 10, ..StudyShape::default() });
    let gone = record.runs.remove(0).id;
    record.comparisons.retain(|comparison| comparison.against != gone);
    record.missing = vec![gone.clone()];
    let files = report(&record);
    check(&files);
    let page = &files["index.html"];
    assert!(page.contains("1 of 9 runs are missing") && page.contains(&format!("<code>{gone}</code>")));
    assert!(page.contains("The run of fifo is missing"), "the others cannot be compared with it");
    assert!(page.contains("<option value=\"0\">fifo"), "still the first policy");
}

#[test]
fn a_study_in_which_all_tasks_complete_has_a_sentence_instead_of_figures() {
    let files = report(&study(&StudyShape { users: 10, incomplete: false, ..StudyShape::default() }));
    assert!(files["index.html"].contains("In every run every user completes every task"));
    assert!(!files.keys().any(|name| name.contains("completion")));
}

#[test]
fn runs_of_different_workloads_are_an_error() {
    let mut record = study(&StudyShape { users: 3, ..StudyShape::default() });
    record.runs[1].users.pop();
    let folder = tempfile::tempdir().unwrap();
    let error = write_study_report(folder.path(), &record).unwrap_err();
    assert!(matches!(&error, ReportError::UsersDiffer { position: 2, .. }), "{error}");
    assert!(error.to_string().contains("missing"), "{error}");
    let mut record = study(&StudyShape { users: 3, ..StudyShape::default() });
    record.runs.push(record.runs[0].clone());
    let error = write_study_report(folder.path(), &record).unwrap_err();
    assert!(matches!(error, ReportError::DuplicateRun { .. }), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "no file is written");
}

#[test]
fn reports_of_large_studies_are_small() {
    let record = study(&StudyShape { users: 627, policies: 3, capacities: 6, ..StudyShape::default() });
    let files = report(&record);
    assert!(files["index.html"].len() < 3_000_000, "{} bytes", files["index.html"].len());
    let crowd = report(&study(&StudyShape { users: 5000, policies: 2, capacities: 1, ..StudyShape::default() }));
    assert!(crowd["index.html"].contains("tasks, are in <code>users.csv</code>"));
    assert_eq!(crowd["figures/user-waits-drf-0.500.csv"].lines().count(), 5001);
}

#[test]
fn the_page_says_what_users_get_done_where_they_react() {
    let plain = study(&StudyShape { users: 12, policies: 2, capacities: 1, ..StudyShape::default() });
    assert!(!report(&plain)["index.html"].contains("id=\"work\""));
    let mut record = plain;
    for (run, tasks) in record.runs.iter_mut().zip([100, 110]) {
        run.work = Some(WorkRecord {
            arrivals: "closed".into(),
            window_s: 172_800.0,
            tasks_in_window: tasks,
            tasks_per_day: tasks as f64 / 2.0,
            work_in_window: [("cpu".to_string(), tasks as f64)].into(),
            users_mean_finish_s: Some(7200.0),
        });
    }
    let (first, second) = (record.runs[0].clone(), record.runs[1].clone());
    record.comparisons[0] = compare(&second, &first);
    let page = report(&record)["index.html"].replace(['\u{202f}', '\u{a0}'], " ");
    let section = page.split("<section id=\"work\">").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(section.contains("also between sessions") && section.contains("(2.00 d)"), "{section}");
    assert!(section.contains("<span class=\"value better\">+10.0 %</span>"), "{section}");
    assert!(section.contains("<td>cpu +10.0 %</td>"), "{section}");
}

#[test]
fn classes_of_a_repeated_study_have_intervals_in_table_and_figure() {
    let shape = StudyShape { users: 40, policies: 2, capacities: 2, repeats: true, ..StudyShape::default() };
    let record = study(&shape);
    let files = report(&record);
    check(&files);
    let page = files["index.html"].replace(['\u{202f}', '\u{a0}'], " ");
    let section = page.split("<section id=\"classes\">").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(section.contains("<th scope=\"col\">95 % of repeats</th>"));
    // Those beyond the noise are counted, not those that differ at all; the second and fourth class are within it.
    assert!(section.contains("<td>1</td><td>0</td></tr>") && !section.contains("<td>3</td><td>2</td></tr>"));
    assert_eq!(section.matches("class=\"value noise\"").count(), 2 * 2, "two classes at each of two capacities");
    assert_eq!(section.matches("<svg").count(), 2, "a figure for each capacity");
    for comparison in &record.comparisons {
        let capacity = &record.runs.iter().find(|run| run.id == comparison.run).unwrap().capacity_name;
        let csv = &files[&format!("figures/class-reductions-{capacity}.csv")];
        assert_eq!(csv.lines().next().unwrap(), "class,policy,against,reduction,reduction_low,reduction_high");
        for (row, class) in csv.lines().skip(1).zip(&comparison.classes) {
            let [low, high] = class.mean_wait_reduction_interval.unwrap();
            let reduction = class.mean_wait_reduction.unwrap();
            assert_eq!(row, format!("{},drf,fifo,{reduction},{low},{high}", class.class));
        }
    }
}
