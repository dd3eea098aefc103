//! The same thing spelled differently: quotes change no decision, and no spelling of a path gets round a denial.

use windlass_engine::Behaviour;
use windlass_engine::protocol::Verdict;
use windlass_shell::{StrictCommand, Word, analyse};

use crate::case::{Given, LISTS, all, at_home, none};
use crate::mutate::{Rng, seed};

/// A way to write a word so that bash reads it back.
type Quoting = fn(&str) -> String;

const QUOTINGS: [Quoting; 4] = [in_single, in_double, with_backslashes, in_pieces];

fn in_single(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn in_double(word: &str) -> String {
    let escape = |c: char| if "\"\\$`".contains(c) { format!("\\{c}") } else { c.to_string() };
    format!("\"{}\"", word.chars().map(escape).collect::<String>())
}

/// A backslash before a line end would take it away, so that is quoted.
fn with_backslashes(word: &str) -> String {
    let escape = |c: char| if c == '\n' { "'\n'".to_owned() } else { format!("\\{c}") };
    if word.is_empty() { "''".to_owned() } else { word.chars().map(escape).collect() }
}

fn in_pieces(word: &str) -> String {
    let middle = word.char_indices().nth(word.chars().count() / 2).map_or(0, |(at, _)| at);
    format!("{}{}", in_single(&word[..middle]), in_double(&word[middle..]))
}

/// The one command of a line, if its words are all that there is to it.
fn only_words(line: &str) -> Option<StrictCommand> {
    let [command]: [StrictCommand; 1] = analyse(line).plain.ok()?.try_into().ok()?;
    let is_fixed = |word: &Word| !word.is_unknown() && !word.is_pattern && !word.is_split && !word.is_home;
    let redirected = command.reads.iter().chain(&command.writes).any(|path| path.is_redirected);
    let name = command.words.first()?.text().to_string();
    // Assignments and wrappers are not among the words.
    let bare = command.words == command.whole && line.trim_start().starts_with(&name);
    let fits = bare && !redirected && command.words.iter().all(is_fixed) && !line.contains(['<', '>', '#']);
    fits.then_some(command)
}

fn respelled(command: &StrictCommand, quote: Quoting) -> String {
    let (name, arguments) = command.words.split_first().unwrap();
    let arguments: Vec<String> = arguments.iter().map(|word| quote(&word.text().to_string())).collect();
    format!("{} {}", name.text(), arguments.join(" "))
}

/// Whether a rule is the very line, as it is written. It holds for no other spelling, and that is what it is for.
fn is_ruled_as_written(case: &Given, line: &str) -> bool {
    let rule = format!("Bash({})", line.trim());
    LISTS.iter().any(|list| case.rules.list(*list).contains(&rule))
}

#[test]
fn quotes_around_arguments_change_no_decision() {
    at_home("spelling::quotes_around_arguments_change_no_decision", || {
        let (mut tried, mut wrong) = (0, Vec::new());
        for case in all() {
            let line = case.line().filter(|line| !is_ruled_as_written(&case, line));
            let Some(command) = line.as_deref().and_then(only_words) else { continue };
            let before = case.decide();
            for quote in QUOTINGS {
                tried += 1;
                let line = respelled(&command, quote);
                let after = case.with_line(&line).decide();
                if after != before {
                    wrong.push(format!("{}: {before:?} became {after:?}: {line:?}, {}", case.id, case.input));
                }
            }
        }
        println!("{tried} lines with other quotes");
        assert!(tried > 1_500, "only {tried}");
        none(&wrong);
    });
}

/// A way to write a path that leads to the same file, or to one that differs in case alone.
type Respelling = fn(&str) -> String;

const RESPELLINGS: [Respelling; 6] = [
    |path| path.replace('/', "/./"),
    |path| if path.starts_with(['/', '~']) { path.to_owned() } else { format!("./{path}") },
    |path| path.replace('/', "//"),
    |path| match path.rsplit_once('/') {
        Some((above, name)) => format!("{above}/elsewhere/../{name}"),
        None => format!("elsewhere/../{path}"),
    },
    |path| {
        path.rsplit_once('/')
            .map_or(path.to_uppercase(), |(above, name)| format!("{above}/{}", name.to_uppercase()))
    },
    |path| path.to_lowercase(),
];

#[test]
fn no_spelling_of_a_path_gets_round_a_denial() {
    at_home("spelling::no_spelling_of_a_path_gets_round_a_denial", || {
        let (mut tried, mut wrong) = (0, Vec::new());
        for case in all() {
            let ruling = case.setting().and_then(|setting| setting.decide());
            let denied =
                ruling.is_some_and(|ruling| ruling.verdict == Verdict::Deny && ruling.rule.is_some());
            let fields = ["file_path", "notebook_path", "path"];
            let Some((field, path)) = fields.iter().find_map(|field| Some((field, case.text(field)?))) else {
                continue;
            };
            for respell in RESPELLINGS.iter().filter(|_| denied) {
                tried += 1;
                let path = respell(&path);
                let after = case.with_text(field, &path).decide();
                if after != Verdict::Deny {
                    wrong.push(format!("{}: {after:?} for {path:?}", case.id));
                }
            }
        }
        println!("{tried} paths spelled differently");
        assert!(tried > 100, "only {tried}");
        none(&wrong);
    });
}

/// Denials and the paths they mean, below the working directory.
const DENIED: [(&str, &str); 7] = [
    ("Read(.env)", ".env"),
    ("Read(.env)", "conf/deep/.env"),
    ("Read(secrets/**)", "secrets/key.pem"),
    ("Read(**/*.pem)", "a/b.pem"),
    ("Read(//srv/app/keys/id)", "keys/id"),
    ("Read(~/.aws/**)", "/home/dev/.aws/credentials"),
    ("Read(./Conf/[a-c]*.yml)", "Conf/base.yml"),
];

/// Lines that read a path or change it.
const USES: [&str; 10] = [
    "cat @",
    "head -n 1 @",
    "grep key @",
    "cat < @",
    "ls && cat @ | wc -l",
    "echo x > @",
    "cp @ copy",
    "cp other @",
    "(cat @)",
    "x=$(cat @)",
];

fn spelled_at_random(rng: &mut Rng, path: &str) -> String {
    let mut path = path.to_owned();
    for _ in 0..=rng.below(3) {
        path = RESPELLINGS[rng.below(RESPELLINGS.len())](&path);
    }
    QUOTINGS[rng.below(QUOTINGS.len())](&path)
}

#[test]
fn no_spelling_in_a_line_gets_round_a_denial() {
    at_home("spelling::no_spelling_in_a_line_gets_round_a_denial", || {
        let mut rng = Rng::new(seed(17));
        let template = all().into_iter().find(|case: &Given| case.tool == "Bash").unwrap();
        let mut wrong = Vec::new();
        for _ in 0..3_000 {
            let ((rule, path), line) = (*rng.pick(&DENIED), *rng.pick(&USES));
            let spelled = spelled_at_random(&mut rng, path);
            let mut case = template.with_line(&line.replace('@', &spelled));
            (case.mode, case.rules, case.cwd) =
                ("bypassPermissions".into(), <_>::default(), "/srv/app".into());
            let setting = case.setting().unwrap().with(Behaviour::Deny, rule).unwrap();
            let verdict = setting.decide().unwrap().verdict;
            if verdict != Verdict::Deny {
                wrong.push(format!("{verdict:?} for {} although {rule}", case.input));
            }
        }
        none(&wrong);
    });
}
