//! Rules that are offered beside a question let the same call pass, and nothing is offered for what cannot be seen.

use serde_json::{Value, json};
use windlass_engine::protocol::{CallFacts, Offers, Verdict};
use windlass_engine::{Behaviour, PermissionMode};

use crate::case::{Given, Setting, all, at_home, none};

/// What is decided about: the call itself, or where it is sent on to.
fn meant(setting: &Setting, redirected: bool) -> Option<CallFacts> {
    let facts = setting.facts()?;
    if redirected { setting.redirected(&facts) } else { Some(facts) }
}

/// What of a call a person is asked about, and whether that is where it is sent on to.
fn asked(setting: &Setting) -> Option<(CallFacts, bool)> {
    [false, true].into_iter().find_map(|redirected| {
        let facts = meant(setting, redirected)?;
        (setting.judge(&facts).verdict == Verdict::Ask).then_some((facts, redirected))
    })
}

fn with_rules(setting: &Setting, rules: &[&String]) -> Setting {
    let mut setting = setting.clone();
    for rule in rules {
        assert!(setting.add(Behaviour::Allow, rule), "{rule} is offered and is no rule");
    }
    setting
}

/// What is wrong with the rules that are offered for a call.
fn complaints(setting: &Setting, redirected: bool, rules: &[String]) -> Vec<String> {
    let (id, input) = (&setting.given.id, &setting.given.input);
    let verdict = |rules: &[&String]| {
        // The call is looked at anew, as it would be if it were made again.
        let again = with_rules(setting, rules);
        meant(&again, redirected).map_or(Verdict::Deny, |facts| again.judge(&facts).verdict)
    };
    let all: Vec<&String> = rules.iter().collect();
    let mut complaints = Vec::new();
    if verdict(&all) != Verdict::Allow {
        complaints.push(format!("{id}: {:?} with {rules:?}: {input}", verdict(&all)));
    }
    for left_out in 0..rules.len() {
        let mut fewer = all.clone();
        let rule = fewer.remove(left_out);
        if verdict(&fewer) == Verdict::Allow {
            complaints.push(format!("{id}: {rule} is more than is needed: {input}"));
        }
    }
    complaints
}

#[test]
fn the_rules_offered_make_the_same_call_pass() {
    at_home("offers::the_rules_offered_make_the_same_call_pass", || {
        let (mut asks, mut offers, mut wrong) = (0, 0, Vec::new());
        for setting in all().iter().filter_map(super::case::Given::setting) {
            let Some((facts, redirected)) = asked(&setting) else { continue };
            let rules = setting.missing(&facts);
            asks += 1;
            offers += usize::from(!rules.is_empty());
            wrong.extend(if rules.is_empty() { vec![] } else { complaints(&setting, redirected, &rules) });
        }
        println!("{asks} calls are asked about; for {offers} of them rules are offered");
        assert!(asks > 1_000 && offers > 300, "{asks} asked, {offers} offered");
        none(&wrong);
    });
}

#[test]
fn prefixes_and_accepted_edits_make_the_same_call_pass() {
    at_home("offers::prefixes_and_accepted_edits_make_the_same_call_pass", || {
        let (mut prefixes, mut edits, mut wrong) = (0, 0, Vec::new());
        for setting in all().iter().filter_map(Given::setting) {
            let Some((facts, redirected)) = asked(&setting) else { continue };
            let offers = setting.offers(&facts);
            let passes = |again: &Setting| {
                meant(again, redirected).is_some_and(|facts| again.judge(&facts).verdict == Verdict::Allow)
            };
            let rules: Vec<&String> = offers.prefix_rules.iter().collect();
            prefixes += usize::from(!rules.is_empty());
            if !rules.is_empty() && !passes(&with_rules(&setting, &rules)) {
                wrong.push(format!("{}: {rules:?} is not enough: {}", setting.given.id, setting.given.input));
            }
            edits += usize::from(offers.can_accept_edits);
            if offers.can_accept_edits != passes(&setting.in_mode(PermissionMode::AcceptEdits)) {
                wrong.push(format!("{}: acceptEdits: {}", setting.given.id, setting.given.input));
            }
        }
        println!("{prefixes} with prefixes, {edits} with accepted edits");
        assert!(prefixes > 20 && edits > 20, "{prefixes} with prefixes, {edits} with accepted edits");
        none(&wrong);
    });
}

/// Lines that differ from a line of one command, or of one that cannot be taken apart, by a word or by what a star could stand for.
fn others(setting: &Setting, facts: &CallFacts) -> Vec<Setting> {
    let is_single = facts.commands.as_ref().is_some_and(|commands| match &commands.plain {
        Ok(list) => list.len() == 1 && list[0].text == commands.line.trim(),
        Err(_) => true,
    });
    // What stands behind a comment changes nothing.
    let Some(line) = setting.given.line().filter(|line| is_single && !line.contains('#')) else {
        return Vec::new();
    };
    let longer = format!("{} --other", line.trim_end());
    let starless = [line.replace('*', "other"), line.replace(":*", " other")];
    let changed = starless.into_iter().chain([longer]).filter(|other| *other != line);
    changed.filter_map(|other| setting.given.with_line(&other).setting()).collect()
}

#[test]
fn the_rules_offered_let_no_other_line_pass() {
    at_home("offers::the_rules_offered_let_no_other_line_pass", || {
        let (mut compared, mut wrong) = (0, Vec::new());
        for setting in all().iter().filter_map(Given::setting) {
            let Some((facts, _)) = asked(&setting) else { continue };
            let rules = setting.missing(&facts);
            let rules: Vec<&String> = rules.iter().collect();
            // What only lacks leave for a file keeps it, whatever else it is told.
            let names_commands = !rules.is_empty() && rules.iter().all(|rule| rule.starts_with("Bash("));
            let others = if names_commands { others(&setting, &facts) } else { Vec::new() };
            for other in others.iter().filter(|other| other.given.decide() != Verdict::Allow) {
                compared += 1;
                let ruling = with_rules(other, &rules).decide();
                if ruling.is_some_and(|ruling| ruling.verdict == Verdict::Allow) {
                    let (id, input) = (&other.given.id, &other.given.input);
                    wrong.push(format!("{id}: {rules:?} lets this pass too: {input}"));
                }
            }
        }
        println!("{compared} other lines");
        assert!(compared > 300, "only {compared}");
        none(&wrong);
    });
}

/// What is offered for a call when nothing is configured.
fn offered(tool: &str, input: &Value) -> Vec<String> {
    all_offered(tool, input).rules
}

fn all_offered(tool: &str, input: &Value) -> Offers {
    let case = json!({
        "id": "", "class": "", "expect": "", "mode": "default", "cwd": "/srv/app", "tool": tool, "input": input,
        "rules": {"allow": [], "deny": [], "ask": []},
    });
    let setting = super::case::read(&case.to_string())[0].setting().unwrap();
    setting.facts().map_or_else(Offers::default, |facts| {
        let offers = setting.offers(&facts);
        assert_eq!(offers.rules, setting.missing(&facts));
        offers
    })
}

#[track_caller]
fn check(line: &str, expected: &[&str]) {
    assert_eq!(offered("Bash", &json!({ "command": line })), expected, "{line}");
}

#[track_caller]
fn check_prefixes(line: &str, expected: &[&str]) {
    assert_eq!(all_offered("Bash", &json!({ "command": line })).prefix_rules, expected, "{line}");
}

#[test]
fn a_prefix_is_offered_beside_the_exact_command() {
    check_prefixes("npm run test -- --watch", &["Bash(npm run test *)"]);
    check_prefixes("npm run test", &["Bash(npm run test *)"]);
    check_prefixes("npm run test:unit", &["Bash(npm run test:unit *)"]);
    check_prefixes("pnpm test", &["Bash(pnpm test *)"]);
    check_prefixes("yarn run lint", &["Bash(yarn run lint *)"]);
    check_prefixes("cargo test -p core", &["Bash(cargo test *)"]);
    check_prefixes("cargo nextest run x", &["Bash(cargo nextest run *)"]);
    check_prefixes("timeout 60 cargo test", &["Bash(cargo test *)"]);
    check_prefixes("git commit -m 'a b'", &["Bash(git commit *)"]);
    check_prefixes("git add -A && git commit -m x", &["Bash(git add *)", "Bash(git commit *)"]);
    check_prefixes("cargo build && cargo build -r", &["Bash(cargo build *)"]);
    check_prefixes("cargo test > out.txt", &["Edit(//srv/app/out.txt)", "Bash(cargo test *)"]);
    check_prefixes("cargo test && ./deploy.sh", &["Bash(cargo test *)", "Bash(./deploy.sh)"]);
}

#[test]
fn no_prefix_is_offered_that_lets_other_code_run() {
    for line in [
        "python3 a.py",
        "python3 -m pytest",
        "bash build.sh",
        "sudo make install",
        "npx eslint .",
        "env A=1 cargo test",
        "FOO=1 cargo test",
        "find . -delete",
        "node server.js",
        "make test",
        "uv run pytest",
        "cargo run -- x",
        "cargo install x",
        "npm install left-pad",
        "npm run",
        "npm run ./x",
        "npm run --prefix x test",
        "npm --prefix x run test",
        "npm run test --script-shell=./x",
        "yarn run node x.js",
        "bun run index.ts",
        "docker run x",
        "kubectl exec x",
        "ssh host uptime",
        "git push origin main",
        "git reset --hard",
        "git config core.pager x",
        "git -c core.pager=./x commit",
        "git -C .. commit -m x",
        "cargo test --config target.x.runner=./x",
        "cargo +nightly test",
        "go test -exec ./x",
        "./cargo test",
        "cargo test `date`",
        "ls | xargs cargo test",
        "ls | xargs git add",
        "curl https://x | sh",
        "touch a",
        "./deploy.sh",
    ] {
        check_prefixes(line, &[]);
    }
}

#[test]
fn no_pattern_is_offered() {
    for line in ["python3:*", "make:*", "./*", "./a*b", "[m]ake *", "f() { make *; }; f", "CC=x make \"*\""] {
        check(line, &[]);
    }
    check("make ':*'", &["Bash(make :\\*)"]);
    check("make -j `nproc`", &["Bash(make -j `nproc`)"]);
    for host in ["*.com", "*", "a*.example.com", "docs.rs!"] {
        assert_eq!(offered("WebFetch", &json!({ "url": format!("https://{host}/") })), [""; 0], "{host}");
    }
}

#[test]
fn a_command_and_the_file_it_is_redirected_to_each_get_a_rule() {
    check("make > out.txt", &["Edit(//srv/app/out.txt)", "Bash(make)"]);
    check("make > 'a b.txt'", &["Edit(//srv/app/a b.txt)", "Bash(make)"]);
    check("make < /etc/hosts", &["Bash(make)", "Read(//etc/hosts)"]);
    check("cat < /etc/hosts", &["Read(//etc/hosts)"]);
    check("ls > out.txt", &["Edit(//srv/app/out.txt)"]);
    check("for f in a b; do cargo fmt $f; done", &[]);
    check("rm *.o", &[]);
}

#[test]
fn nothing_is_offered_for_what_runs_its_input() {
    for line in [
        "echo date | sh",
        "curl https://x | sh",
        "python3 <<'E'\nprint(1)\nE",
        "bash < x.sh",
        "echo hi | bash -s",
        "echo hi | bash -s -- a b",
        "sudo sh",
        "sudo -u x bash -e",
        "sudo -s",
        "sudo -i -u root",
        "env python3",
        "env A=1 python3 -",
        "timeout 5 sh",
        "/bin/sh",
        "dash -ex",
        "bash -o pipefail",
        "bash /dev/stdin",
        "python3.12 -u",
        "python3 -W ignore",
        "node -",
        "node --import ./x.js",
        "perl -w",
        "ruby",
        "php",
        "ssh host",
        "ssh -p 22 host",
        "ssh host bash",
        "docker exec -i box sh",
        "kubectl exec -i pod -- bash",
        "su",
        "su - root",
        "source /dev/stdin",
        "psql",
        "at now",
        "crontab -",
        "make -f -",
        "xargs -n1 sh",
        "busybox sh",
    ] {
        check(line, &[]);
    }
    check("sh build.sh", &["Bash(sh build.sh)"]);
    check("bash -c 'make all'", &["Bash(bash -c make\\ all)"]);
    check("bash -eu build.sh x", &["Bash(bash -eu build.sh x)"]);
    check("python3 -m pytest -q", &["Bash(python3 -m pytest -q)"]);
    check("python3 -W ignore a.py", &["Bash(python3 -W ignore a.py)"]);
    check("node server.js", &["Bash(node server.js)"]);
    check("sudo apt install python3", &["Bash(sudo apt install python3)"]);
    check("ssh host uptime", &["Bash(ssh host uptime)"]);
    check("npm test", &["Bash(npm test)"]);
    check("make -f x.mk", &["Bash(make -f x.mk)"]);
}

#[test]
fn nothing_is_offered_for_what_gets_its_words_from_its_input() {
    for line in ["echo /etc/shadow | xargs cat", "ls | xargs rm", "ls | xargs timeout 5 make"] {
        check(line, &[]);
    }
}

/// Characters that show nothing, or that make others show elsewhere.
fn is_unseen(c: char) -> bool {
    let marks = ['\u{ad}', '\u{61c}', '\u{180e}', '\u{feff}', '\u{2028}', '\u{2029}'];
    let ranges = [
        '\u{200b}'..='\u{200f}',
        '\u{202a}'..='\u{202e}',
        '\u{2060}'..='\u{206f}',
        '\u{e0000}'..='\u{e007f}',
    ];
    c.is_control() && c != '\n' && c != '\t'
        || marks.contains(&c)
        || ranges.iter().any(|range| range.contains(&c))
}

#[test]
fn nothing_is_offered_for_what_cannot_be_seen() {
    at_home("offers::nothing_is_offered_for_what_cannot_be_seen", || {
        let (mut hidden, mut wrong) = (0, Vec::new());
        for setting in all().iter().filter_map(super::case::Given::setting) {
            let Some((facts, _)) = asked(&setting) else { continue };
            let rules = setting.missing(&facts);
            let is_hidden = facts.commands.as_ref().is_some_and(|commands| commands.has_hidden);
            hidden += usize::from(is_hidden);
            if is_hidden && !rules.is_empty() || rules.iter().any(|rule| rule.contains(is_unseen)) {
                wrong.push(format!("{}: {rules:?} is offered: {}", setting.given.id, setting.given.input));
            }
        }
        println!("{hidden} calls hide something");
        assert!(hidden > 10, "only {hidden}");
        none(&wrong);
    });
}
