use windlass_protocol::{CallFacts, CommandFacts, FoundCommand, HostFact, NamedPath, RawValue, UrlFact};

use super::*;

pub(super) mod properties;
mod times;

fn anchors() -> Anchors {
    Anchors {
        settings: "/srv/app".into(),
        start: "/srv/app".into(),
        roots: vec!["/srv/app".into()],
        home: Some("/home/me".into()),
    }
}

fn rule(behaviour: Behaviour, text: &str) -> Result<Rule, RuleError> {
    Rule::parse(behaviour, text, RuleSource::session(), &anchors())
}

fn facts(kind: CallKind, path: &str) -> CallFacts {
    let fact = PathFact { lexical: path.into(), resolved: Some(path.into()), is_directory: false };
    CallFacts { paths: vec![fact], ..CallFacts::new(kind) }
}

/// A rule and a call: whether it allows the call, whether it denies it.
#[track_caller]
fn check(text: &str, tool: &str, input: &str, facts: &CallFacts, expected: (bool, bool)) {
    let input = RawValue::from_string(input.into()).unwrap();
    let subject = RuleSubject::new(tool, ToolProfile::named(tool), &input, facts);
    let seen = (
        rule(Behaviour::Allow, text).is_ok_and(|rule| rule.covers(&subject)),
        rule(Behaviour::Deny, text).unwrap().restricts(&subject) == RestrictionMatch::Yes,
    );
    assert_eq!(seen, expected, "{text} {tool} {input}");
}

#[test]
fn a_ban_of_commands_holds_whatever_the_case_of_its_tool() {
    let words = ["rm", "x"].map(str::to_owned);
    let removal =
        CallFacts { commands: Some(properties::line(&words).into()), ..CallFacts::new(CallKind::Execute) };
    for text in ["Bash(rm:*)", "bash(rm:*)", "BASH(rm *)", "bash(rm x)"] {
        check(text, "Bash", "{}", &removal, (false, true));
    }
    let error = rule(Behaviour::Allow, "bash(rm:*)").unwrap_err().to_string();
    assert!(error.contains("the tool is called Bash"), "{error}");
}

#[test]
fn rules_about_tools_and_their_inputs() {
    let other = CallFacts::new(CallKind::Execute);
    check("Bash", "Bash", "{}", &other, (true, true));
    check("Bash(*)", "Bash", "{}", &other, (true, true));
    check("bash", "Bash", "{}", &other, (false, true));
    check("slashcommand(/deploy)", "Skill", r#"{"skill":"deploy"}"#, &other, (false, true));
    check("read(src/**)", "Read", "{}", &facts(CallKind::Read, "/srv/app/src/a"), (false, true));
    check("EDIT(.env)", "Write", "{}", &facts(CallKind::Edit, "/srv/app/.env"), (false, true));
    check("mcp__srv", "mcp__srv__get", "{}", &other, (true, true));
    check("mcp__srv", "mcp__srv2__get", "{}", &other, (false, false));
    check("mcp__srv__*", "mcp__srv__get", "{}", &other, (true, true));
    check("mcp__srv__get_*", "mcp__srv__get_x", "{}", &other, (true, true));
    check("mcp__srv__get_*", "mcp__srv__set_x", "{}", &other, (false, false));
    check("mcp__*", "mcp__srv__get", "{}", &other, (false, true));
    check("*", "Anything", "{}", &other, (false, true));
    check("Re*d", "Grep", "{}", &facts(CallKind::Read, "/srv/app/a"), (false, true));
    check("Ed*", "Write", "{}", &facts(CallKind::Edit, "/srv/app/a"), (false, true));
    check("Task(Explore)", "Agent", r#"{"subagent_type":"Explore"}"#, &other, (true, true));
    check("Agent(Explore)", "Agent", r#"{"subagent_type":"Plan"}"#, &other, (false, false));
    check("Agent(Explore)", "Task", r#"{"subagent_type":"Explore"}"#, &other, (true, true));
    check("Skill(deploy)", "SlashCommand", r#"{"command":"/deploy"}"#, &other, (true, true));
    check("SlashCommand(/deploy)", "SlashCommand", r#"{"command":"/deploy"}"#, &other, (true, true));
    check("SlashCommand(/deploy:*)", "Skill", r#"{"skill":"deploy","args":"now"}"#, &other, (true, true));
    check("Skill(/deploy)", "Skill", r#"{"skill":"deploy"}"#, &other, (true, true));
    check("SlashCommand", "Skill", r#"{"skill":"deploy"}"#, &other, (true, true));
    check("SlashCommand(/deploy)", "Skill", r#"{"skill":"undo"}"#, &other, (false, false));
    check("Bash", "Monitor", "{}", &other, (true, true));
    check("Agent(model:opus)", "Agent", r#"{"model":"opus"}"#, &other, (false, true));
    check("Agent(model:opus)", "Agent", "{}", &other, (false, false));
    check("Skill(deploy)", "Skill", r#"{"skill":"deploy"}"#, &other, (true, true));
    check("Skill(deploy)", "Skill", r#"{"skill":"deploy","args":"now"}"#, &other, (false, true));
    check("Skill(deploy *)", "Skill", r#"{"skill":"deploy","args":"now"}"#, &other, (true, true));
    check("Bash(run_in_background:true)", "Bash", r#"{"run_in_background":true}"#, &other, (false, true));
    check("mcp__srv__x(n:5)", "mcp__srv__x", r#"{"n":5}"#, &other, (false, true));
}

#[test]
fn rules_about_paths_hold_for_every_tool_that_touches_them() {
    let (read, edit) = (facts(CallKind::Read, "/srv/app/src/a"), facts(CallKind::Edit, "/srv/app/src/a"));
    check("Read(src/**)", "Read", "{}", &read, (true, true));
    check("Read(src/**)", "Grep", "{}", &read, (true, true));
    check("Read(src/**)", "Edit", "{}", &edit, (false, true));
    check("Edit(src/**)", "Write", "{}", &edit, (true, true));
    check("Edit(src/**)", "Read", "{}", &read, (true, false));
    check("Write(src/**)", "Write", "{}", &edit, (false, true));
    check("Write(src/**)", "Edit", "{}", &edit, (false, true));
    check("Edit", "Write", "{}", &edit, (false, true));
    check("Read", "Grep", "{}", &read, (false, true));
    check("Write", "Edit", "{}", &edit, (false, false));
    check("Read(src/**)", "mcp__srv__read", "{}", &read, (false, true));
}

#[test]
fn what_code_mentions_may_be_read_and_changed() {
    use RestrictionMatch::{May, No};
    let path = facts(CallKind::Read, "/srv/app/.env").paths.remove(0);
    let named = NamedPath {
        path: path.into(),
        naming: PathNaming::Mentioned,
        is_recursive: false,
        is_redirected: false,
    };
    let found = FoundCommand { words: vec![], reads: vec![named], writes: vec![], removes: vec![] };
    let (line, plain) = ("python3 -c …".into(), Err("it is code".to_owned()));
    let commands = CommandFacts { line, plain, found: vec![found], unseen: None, has_hidden: false };
    let call = CallFacts { commands: Some(commands.into()), ..CallFacts::new(CallKind::Execute) };
    let input = RawValue::from_string("{}".to_owned()).unwrap();
    let check = |text: &str, expected: RestrictionMatch| {
        let seen = rule(Behaviour::Deny, text).unwrap().restricts(&RuleSubject::new(
            "Bash",
            ToolProfile::BASH,
            &input,
            &call,
        ));
        assert_eq!(seen, expected, "{text}");
    };
    check("Read(.env)", May);
    check("Edit(.env)", May);
    check("Read(.env.example)", No);
    check("Read", No);
    check("Edit", No);
}

#[test]
fn rules_about_hosts() {
    let url = |name: &str| UrlFact {
        text: format!("https://{name}/"),
        is_secure: true,
        host: HostFact::Name(name.into()),
        port: 443,
    };
    let facts = |name: &str| CallFacts { url: Some(url(name)), ..CallFacts::new(CallKind::Read) };
    check("WebFetch(domain:docs.rs)", "WebFetch", "{}", &facts("docs.rs"), (true, true));
    check("WebFetch(domain:docs.rs)", "WebFetch", "{}", &facts("docs.rs.evil.example"), (false, false));
    check("WebFetch(domain:*.docs.rs)", "WebFetch", "{}", &facts("a.docs.rs"), (true, true));
    check("WebFetch", "WebFetch", "{}", &facts("any.example"), (true, true));
}

#[test]
fn what_is_no_rule_is_refused_with_the_reason() {
    use Behaviour::{Allow, Ask, Deny};
    let check = |behaviour, text: &str, expected: &str| {
        let error = rule(behaviour, text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    };
    check(Deny, "", "names no tool");
    check(Deny, "(x)", "names no tool");
    check(
        Deny,
        "Bash(",
        "this session: the deny rule `Bash(` is invalid: the parenthesis is not closed; write ",
    );
    check(Deny, "Bash(npm", "not closed; write Tool(pattern), such as Bash(npm test)");
    check(Deny, "Bash)", "no opening one; write Tool or Tool(pattern)");
    check(Deny, "Bash(a) b", "follows the closing parenthesis");
    check(Deny, "Bash()", "parentheses are empty");
    check(Deny, "Bash( )", "parentheses are empty");
    check(Deny, "npm test", "only letters");
    check(Allow, "*", "after the name of a server");
    check(Allow, "mcp__*", "after the name of a server");
    check(Allow, "B*h", "after the name of a server");
    check(Allow, "WebFetch(example.com)", "it names no host; write WebFetch(domain:example.com)");
    check(Deny, "WebFetch(domain:a..b)", "is empty; write ");
    check(Ask, "WebFetch(domain:https://x)", "without scheme");
    check(Allow, "Bash(timeout:5)", "can only deny or ask; move it ");
    check(Allow, "WebSearch(cats)", "takes no pattern");
    check(Deny, "Read(a/../b)", "beginning");
    check(Deny, "Bash(a\u{1b}b)", "control character; remove it");
}

#[test]
fn a_rule_says_where_it_stands() {
    let file = RuleSource { place: "user settings".into(), file: Some("/etc/x.json".into()), line: Some(3) };
    assert_eq!(file.to_string(), "/etc/x.json:3");
    assert_eq!(RuleSource { line: None, ..file }.to_string(), "/etc/x.json");
    assert_eq!(RuleSource::session().to_string(), "this session");
}
