//! Programs whose arguments do not fit a row of the table.

use super::options::{Operands, READS, Tool, may_become_option};
use super::{Context, Facts, literal, literals, looks, tools};
use crate::names::has_name;
use crate::places::path_text;
use crate::strict::is_harmless_setting;
use crate::{LineEffect, NameEnd, Word};

pub(super) fn judge(name: &str, arguments: &[Word], context: &Context<'_>) -> Option<Facts> {
    match name {
        "cd" => change_directory(arguments, context),
        "test" => test(arguments, context),
        "[" => match arguments.split_last() {
            Some((last, arguments)) if literal(last) == Some("]") => test(arguments, context),
            _ => None,
        },
        "printf" => is_plain_format(arguments).then(|| looks(context.listed(arguments))),
        "date" => tells_date(arguments).then(|| looks(Vec::new())),
        "command" => finds_command(arguments).then(|| looks(Vec::new())),
        "env" => arguments.is_empty().then(|| looks(Vec::new())),
        "set" => is_harmless_set(arguments).then(|| looks(Vec::new())),
        "export" => exports_harmless(arguments).then(|| looks(Vec::new())),
        "tar" => archive_list(arguments, context),
        "unzip" => zip_list(arguments, context),
        "lsof" => is_socket_list(&literals(arguments)?).then(|| looks(Vec::new())),
        "ulimit" => shows_limit(&literals(arguments)?).then(|| looks(Vec::new())),
        "ps" => is_process_list(&literals(arguments)?).then(|| looks(Vec::new())),
        "jq" => jq(arguments, context),
        "docker" => is_docker_list(&literals(arguments)?).then(|| looks(Vec::new())),
        "read" => Some(looks(Vec::new())),
        "tput" => {
            matches!(literals(arguments)?[..], ["cols" | "lines" | "colors"]).then(|| looks(Vec::new()))
        }
        "xxd" => xxd(arguments, context),
        "xargs" => xargs(arguments, context),
        _ => None,
    }
}

fn change_directory(arguments: &[Word], context: &Context<'_>) -> Option<Facts> {
    let operands: Vec<&Word> =
        arguments.iter().skip_while(|word| matches!(word.text.as_str(), "-L" | "--")).collect();
    let target = match &operands[..] {
        [] => None,
        [target] if !target.text.starts_with('-') && !may_become_option(target) => Some(*target),
        _ => return None,
    };
    if target.is_some_and(|target| target.is_unknown() || target.is_pattern || target.text.is_empty()) {
        return None;
    }
    let enters = context.here.enter(target.map(path_text).as_deref());
    let home = Word { text: "~".to_owned(), is_home: true, ..Word::default() };
    let reads = context.paths([target.unwrap_or(&home)], false);
    Some(Facts { effect: LineEffect::Looks, reads, enters: Some(enters), ..Facts::default() })
}

/// Whether `read` sets variables that nothing else looks at.
pub(super) fn is_plain_read(arguments: &[Word]) -> bool {
    let Some(arguments) = literals(arguments) else { return false };
    let mut names = &arguments[..];
    if let ["-d" | "-rd", "", rest @ ..] | ["-r", "-d", "", rest @ ..] | ["-r", rest @ ..] = names {
        names = rest;
    }
    !names.is_empty() && names.iter().all(|name| crate::strict::is_loop_variable(name))
}

/// Whether a test evaluates nothing: no operand can turn out to be the test of a variable.
pub(super) fn is_plain_test(arguments: &[Word]) -> bool {
    let is_fixed = |word: &Word| !word.is_unknown();
    let tests_variable = |word: &Word| matches!(word.text.as_str(), "-v" | "-R");
    // Names of files could be anything, and any number of words.
    if arguments.iter().any(|word| word.is_split || word.is_pattern || tests_variable(word)) {
        return false;
    }
    if arguments.iter().all(is_fixed) {
        return true;
    }
    let arguments = match arguments {
        [not, rest @ ..] if not.text == "!" => rest,
        _ => arguments,
    };
    match arguments {
        [_] => true,
        [operator, _] | [_, operator, _] => is_fixed(operator),
        _ => false,
    }
}

/// Tests of files and comparisons. Tests of variables evaluate their argument and are not plain at all.
fn test(arguments: &[Word], context: &Context<'_>) -> Option<Facts> {
    const FILES: &str = "-a -b -c -d -e -f -g -G -h -k -L -N -O -p -r -s -S -u -w -x";
    const OTHERS: &str = "-z -n -t = == != < > -eq -ne -lt -le -gt -ge -a ! ( )";
    const COMPARES_FILES: &str = "-ef -nt -ot";
    let mut reads = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        if word.text.starts_with('-') && word.text.len() <= 3 && literal(word).is_some() {
            let operator = word.text.as_str();
            let compares = has_name(COMPARES_FILES, operator);
            let is_about_files = compares || has_name(FILES, operator);
            let is_known = is_about_files || has_name(OTHERS, operator);
            if !is_known && !operator[1..].bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            let before = arguments.get(at.wrapping_sub(1)).filter(|_| compares);
            let after = arguments.get(at + 1).filter(|_| is_about_files);
            reads.extend(context.paths(before.into_iter().chain(after), false));
        }
    }
    Some(looks(reads))
}

/// The files that `[[ … ]]` looks at; nothing if it computes, matches expressions or looks at variables.
pub(crate) fn double_bracket(words: &[Word]) -> Option<Vec<Word>> {
    let mut paths = Vec::new();
    if words.is_empty() {
        return None;
    }
    for part in words.split(|word| matches!(word.text.as_str(), "&&" | "||") && !word.is_unknown()) {
        let part = match part.split_first() {
            Some((first, rest)) if first.text == "!" => rest,
            _ => part,
        };
        match part {
            [operator, _] if matches!(operator.text.as_str(), "-z" | "-n") => {}
            [operator, path] if has_name("-e -f -d -s -r -w -x -L -h", &operator.text) => {
                paths.push(path.clone());
            }
            [_, operator, _] if matches!(operator.text.as_str(), "=" | "==" | "!=") => {}
            [word] if !word.text.starts_with('-') => {}
            _ => return None,
        }
    }
    Some(paths)
}

/// A format that is known and does not store anything in a variable.
fn is_plain_format(arguments: &[Word]) -> bool {
    let format = match arguments {
        [dashes, rest @ ..] if dashes.text == "--" => rest.first(),
        _ => arguments.first(),
    };
    let Some(format) = format.and_then(literal) else { return false };
    let stores = |part: &str| {
        part.trim_start_matches(|c: char| c.is_ascii_digit() || "-+ #'.*hlLjzt$".contains(c)).starts_with('n')
    };
    !format.starts_with('-') && !format.replace("%%", "").split('%').skip(1).any(stores)
}

fn tells_date(arguments: &[Word]) -> bool {
    const DATE: Tool = Tool {
        letters: "Rud:I::",
        long: "rfc-email universal utc date: rfc-3339: iso-8601::",
        operands: Operands::Text,
        is_harmless: false,
        ..READS
    };
    // Any other operand sets the clock.
    DATE.parse(arguments).is_some_and(|parsed| parsed.operands.iter().all(|word| word.text.starts_with('+')))
}

/// `command -v` says where a program is.
pub(super) fn finds_command(arguments: &[Word]) -> bool {
    let Some((option, names)) = arguments.split_first() else { return false };
    matches!(literal(option), Some("-v" | "-V")) && !names.iter().any(|name| name.text.starts_with('-'))
}

/// Options of the shell that make it stop earlier.
fn is_harmless_set(arguments: &[Word]) -> bool {
    let Some(arguments) = literals(arguments) else { return false };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(letters) = word.strip_prefix(['-', '+']).filter(|letters| !letters.is_empty()) else {
            return false;
        };
        if !letters.bytes().all(|letter| b"euo".contains(&letter)) {
            return false;
        }
        if letters.contains('o')
            && !words.next().is_some_and(|name| matches!(*name, "pipefail" | "errexit" | "nounset"))
        {
            return false;
        }
    }
    !arguments.is_empty()
}

/// Whether every variable that is handed on to programs may be told to any of them.
fn exports_harmless(arguments: &[Word]) -> bool {
    let is_harmless = |word: &Word| {
        let setting = literal(word).and_then(|text| text.split_once('='));
        setting.is_some_and(|(name, value)| is_harmless_setting(name, value))
    };
    !arguments.is_empty() && arguments.iter().all(is_harmless)
}

/// A limit is shown if no new one is given.
fn shows_limit(arguments: &[&str]) -> bool {
    let is_letters = |word: &&str| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        !letters.is_empty()
            && letters.bytes().all(|byte| byte.is_ascii_lowercase() || b"HSRPT".contains(&byte))
    };
    arguments.iter().all(is_letters)
}

/// `tar tf`: what is in an archive. A name with a colon is one on another machine.
fn archive_list(arguments: &[Word], context: &Context<'_>) -> Option<Facts> {
    let (letters, rest) = arguments.split_first()?;
    let letters = literal(letters)?.trim_start_matches('-');
    let lists = letters.bytes().all(|letter| b"tvfzjJ".contains(&letter)) && letters.contains('t');
    let (archive, members) = rest.split_first().filter(|_| lists && letters.ends_with('f'))?;
    let is_here = !literal(archive)?.contains(':') && !archive.text.starts_with('-');
    let is_name = |word: &Word| !word.text.starts_with('-') && literal(word).is_some();
    (is_here && members.iter().all(is_name)).then(|| looks(context.paths([archive], false)))
}

/// `unzip -l`: what is in an archive.
fn zip_list(arguments: &[Word], context: &Context<'_>) -> Option<Facts> {
    let options = arguments.iter().take_while(|word| word.text.starts_with('-')).count();
    let (options, rest) = arguments.split_at(options);
    let lists =
        |word: &Word| matches!(word.text.as_str(), "-l" | "-v" | "-Z" | "-Z1" | "-lv" | "-lq" | "-ql");
    let (archive, members) =
        rest.split_first().filter(|_| !options.is_empty() && options.iter().all(lists))?;
    let is_name = |word: &Word| !word.text.starts_with('-') && literal(word).is_some();
    // It looks for another name, and for several by a pattern of its own.
    let is_whole =
        has_ending(archive, "zip jar war whl apk epub docx xlsx") && !archive.text.contains(['*', '?', '[']);
    (is_name(archive) && is_whole && members.iter().all(is_name))
        .then(|| looks(context.paths([archive], false)))
}

/// Whether the name of a file ends with one of these endings.
pub(super) fn has_ending(word: &Word, endings: &str) -> bool {
    word.text.rsplit_once('.').is_some_and(|(name, end)| !name.is_empty() && has_name(endings, end))
}

/// Which programs use which ports.
fn is_socket_list(arguments: &[&str]) -> bool {
    let is_selection =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":,-".contains(&byte));
    let asks = |word: &&str| match word.get(..2) {
        Some("-i" | "-s") => is_selection(&word[2..]),
        _ if has_name("-n -P -nP -Pn -t", word) => true,
        _ => word.starts_with(':') && is_selection(word),
    };
    arguments.iter().any(|word| word.starts_with("-i")) && arguments.iter().all(asks)
}

/// What `ps` can be asked to print: anything but the environments of processes.
const PROCESS_FIELDS: &str = "%cpu %mem args c cmd comm command cputime etime etimes euser group lstart lwp ni nlwp pcpu pgid pid pmem \
    ppid pri psr rss ruser s sid spid start start_time stat state stime sz tid time tt tty ucmd uid user vsz wchan";

/// A list of processes without environments. `e` asks for them without a dash, which `ps` ignores after a mistake.
fn is_process_list(arguments: &[&str]) -> bool {
    let is_field = |field: &str| {
        let name = field.trim_start_matches(['-', '+']).trim_end_matches('=');
        let (name, width) = name.split_once(':').unwrap_or((name, ""));
        has_name(PROCESS_FIELDS, name) && width.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_list = |value: &str| value.split(',').all(is_field);
    let is_ids = |value: &str| value.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
    let (mut letters, mut is_dashed) = (String::new(), true);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let is_known = match word.strip_prefix("--") {
            Some("forest" | "no-headers") => true,
            Some("sort") => words.next().is_some_and(|value| is_list(value)),
            Some(option) => option.strip_prefix("sort=").is_some_and(is_list),
            None if is_ids(word) => true,
            None => {
                let options = word.strip_prefix('-');
                is_dashed &= options.is_some();
                letters.push_str(options.unwrap_or(word));
                match word.bytes().last() {
                    Some(b'o') => words.next().is_some_and(|value| is_list(value)),
                    Some(b'p') => words.next().is_some_and(|value| is_ids(value)),
                    _ => true,
                }
            }
        };
        if !is_known {
            return false;
        }
    }
    let has_long = arguments.iter().any(|word| word.starts_with("--"));
    let known = match (letters.contains('e'), letters.contains('o')) {
        (true, _) if !is_dashed => "",
        // Threads cannot be shown as a tree.
        (true, false) if letters.contains('L') && !has_long => "efLw",
        (true, true) => "eow",
        (true, false) => "efFHlw",
        (false, _) => "aAdfFHjlLopTuwx",
    };
    letters.chars().all(|letter| known.contains(letter))
}

fn jq(arguments: &[Word], context: &Context<'_>) -> Option<Facts> {
    const JQ: Tool = Tool {
        letters: "aCceMnjRrSs",
        long: "ascii-output color-output compact-output exit-status join-output monochrome-output null-input \
               raw-input raw-output seq slurp sort-keys stream tab unbuffered indent:",
        operands: Operands::TextThenPaths,
        is_harmless: false,
        ..READS
    };
    // Options with two values are taken out first.
    let mut rest = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word.text == "--" {
            rest.push(word.clone());
            rest.extend(words.by_ref().cloned());
        } else if matches!(word.text.as_str(), "--arg" | "--argjson") {
            let name = words.next()?;
            let value = words.next()?;
            if name.is_split || name.is_pattern || value.is_split || value.is_pattern {
                return None;
            }
        } else {
            rest.push(word.clone());
        }
    }
    let parsed = JQ.parse(&rest)?;
    let program = literal(parsed.operands.first()?)?;
    if ["import", "include", "input_filename", "modulemeta"].iter().any(|word| program.contains(word)) {
        return None;
    }
    Some(looks(context.paths(parsed.operands[1..].iter().copied(), false)))
}

/// `xxd` takes options only in front, one in each word; a second operand would be written.
fn xxd(arguments: &[Word], context: &Context<'_>) -> Option<Facts> {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let mut at = 0;
    while let Some(option) =
        arguments.get(at).filter(|word| word.text.starts_with('-') && word.text.len() > 1)
    {
        at += match literal(option)? {
            "-a" | "-b" | "-C" | "-E" | "-e" | "-i" | "-p" | "-ps" | "-u" => 1,
            "-c" | "-g" | "-l" | "-o" | "-s" => is_number(literal(arguments.get(at + 1)?)?).then_some(2)?,
            option if has_name("-c -g -l -o -s", option.get(..2)?) => is_number(&option[2..]).then_some(1)?,
            _ => return None,
        };
    }
    let files = &arguments[at..];
    let fits = files.len() <= 1 && files.iter().all(|word| !may_become_option(word) && !word.is_pattern);
    fits.then(|| looks(context.paths(files, false)))
}

/// Questions to the daemon that was configured, without a switch to another one.
fn is_docker_list(arguments: &[&str]) -> bool {
    let options = match arguments {
        ["container" | "image" | "network" | "volume", "ls" | "list", options @ ..]
        | ["ps" | "images" | "info", options @ ..] => options,
        ["logs", options @ ..] => return is_docker_log(options),
        _ => return false,
    };
    let known = |option: &&str| {
        has_name("-a -q -l -s --all --quiet --latest --size --no-trunc", option)
            || ["--filter=", "--format=", "-n="].iter().any(|name| option.starts_with(name))
    };
    let mut words = options.iter();
    while let Some(word) = words.next() {
        if has_name("--filter -f --format -n", word) {
            words.next();
        } else if !known(word) {
            return false;
        }
    }
    true
}

/// What a container has said.
fn is_docker_log(arguments: &[&str]) -> bool {
    let known = |option: &&str| {
        !option.starts_with('-')
            || has_name("-f -t -n --follow --timestamps --tail --since --until --details", option)
            || ["--tail=", "--since=", "--until=", "-n"].iter().any(|name| option.starts_with(name))
    };
    arguments.iter().all(known)
}

/// `xargs` with options: the program must be harmless whatever comes in.
fn xargs(arguments: &[Word], context: &Context<'_>) -> Option<Facts> {
    let mut at = 0;
    while let Some(option) = arguments.get(at).filter(|word| word.text.starts_with('-')) {
        at += match literal(option)? {
            "-0" | "-r" | "-t" | "-x" | "--null" | "--no-run-if-empty" | "--verbose" => 1,
            "-d" => matches!(literal(arguments.get(at + 1)?)?, "\\n" | "\n").then_some(2)?,
            "-n" | "-L" | "-P" | "-s" | "-I" => {
                literal(arguments.get(at + 1)?)?;
                2
            }
            option if option.get(..2).is_some_and(|name| has_name("-n -L -P -s", name)) => {
                option[2..].bytes().all(|byte| byte.is_ascii_digit()).then_some(1)?
            }
            option if option.starts_with("-I") || option == "-d\\n" => 1,
            _ => return None,
        };
    }
    let (name, inner) = arguments.get(at..)?.split_first()?;
    let tool = tools::find(literal(name)?).filter(|tool| tool.is_harmless)?;
    let words = [inner, &[Word { is_split: true, ..Word::new("\0") }]].concat();
    let end = name_end(&arguments[..at]);
    let piped = crate::strict::Stripped { gets_more: true, end, ..*context.stripped };
    tool.judge(&words, &Context { here: context.here, stripped: &piped, names: context.names })
}

/// Where `xargs` ends what comes in. Only with these two options it leaves quotes alone.
fn name_end(options: &[Word]) -> NameEnd {
    let texts: Vec<&str> = options.iter().map(|option| option.text.as_str()).collect();
    let ends_lines = |at: usize| texts[at] == "-d\\n" || texts.get(at + 1) == Some(&"\\n");
    let mut delimiters = (0..texts.len()).filter(|at| texts[*at].starts_with("-d")).peekable();
    if delimiters.peek().is_some() {
        return if delimiters.all(ends_lines) { NameEnd::Line } else { NameEnd::Blank };
    }
    if texts.iter().any(|text| matches!(*text, "-0" | "--null")) { NameEnd::Nul } else { NameEnd::Blank }
}
