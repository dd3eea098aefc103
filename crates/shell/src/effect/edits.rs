//! Programs that make, copy, move and remove files: what they change is all named.

use super::options::{Operands, Parsed, READS, Tool, may_become_option};
use super::{Context, Facts, looks, tools};
use crate::names::has_name;
use crate::{LineEffect, LinePath, Word};

const CHANGES: Tool = Tool { long: "verbose", operands: Operands::Paths, is_harmless: false, ..READS };

/// A program that changes its operands and nothing else, whatever its options.
const NAMES_ALL: Tool = Tool { is_harmless: true, ..CHANGES };

const TOOLS: &[Tool] = &[
    Tool { names: "mkdir", letters: "pvm:", long: "parents verbose mode:", ..NAMES_ALL },
    Tool { names: "touch", letters: "acmhd:t:", long: "no-create no-dereference date: time:", ..NAMES_ALL },
    Tool {
        names: "rm",
        letters: "dfiIRrv",
        long: "dir force one-file-system preserve-root recursive verbose interactive::",
        recursive: "r R recursive",
        ..NAMES_ALL
    },
    Tool { names: "truncate", letters: "cos:", long: "no-create size:", ..CHANGES },
    Tool { names: "tee", letters: "aip", long: "append ignore-interrupts", ..CHANGES },
    Tool { names: "rmdir", letters: "pv", long: "ignore-fail-on-non-empty parents verbose", ..NAMES_ALL },
    Tool {
        names: "mv",
        letters: "finTuvt:",
        long: "force interactive no-clobber no-target-directory strip-trailing-slashes verbose \
               target-directory: update::",
        recursive: "*",
        ..CHANGES
    },
    Tool {
        names: "cp",
        letters: "adfHiLnPpRrTuvxt:",
        long: "archive dereference force interactive no-clobber no-dereference no-target-directory \
               one-file-system recursive remove-destination strip-trailing-slashes verbose target-directory: \
               preserve:: reflink:: sparse:: update::",
        recursive: "a R r archive recursive",
        ..CHANGES
    },
];

/// More pairs of a source and a target are not told apart.
const PAIRS_MAX: usize = 64;

pub(super) fn judge(name: &str, arguments: &[Word], context: &Context<'_>) -> Option<Facts> {
    let tool = TOOLS.iter().find(|tool| has_name(tool.names, name))?;
    let parsed = tool.parse(arguments).filter(|parsed| !tools::follows_links(tool, parsed))?;
    if name == "tee" && parsed.operands.iter().all(|word| word.text == "/dev/null") {
        return Some(looks(Vec::new()));
    }
    // What is changed must be known, and be a file.
    let is_odd = |word: &&Word| {
        let is_unknown = word.is_unknown() && (word.choices.is_empty() || word.is_split);
        is_unknown || (name != "tee" && matches!(word.text.as_str(), "/dev/null" | "-"))
    };
    if parsed.operands.is_empty() || parsed.operands.iter().any(is_odd) {
        return None;
    }
    // A name that begins with a dash would be an option.
    let may_be_more = name == "rm" && parsed.operands.iter().any(|word| may_become_option(word));
    let is_recursive = tool.recursive == "*" || parsed.has(tool.recursive) || may_be_more;
    let (reads, writes) = match name {
        "mv" | "cp" => {
            let (sources, targets) = transfer(&parsed, context, is_recursive)?;
            let writes = if name == "mv" { [&sources[..], &targets].concat() } else { targets };
            (sources, writes)
        }
        // Parents are removed as well.
        "rmdir" if parsed.has("p parents") => return None,
        _ => (Vec::new(), context.paths(parsed.operands.iter().copied(), is_recursive)),
    };
    Some(Facts { effect: LineEffect::ChangesFiles, reads, writes, ..Facts::default() })
}

/// What a word may be, if a loop goes through it. Nothing if its names only come in while it runs.
fn alternatives(word: &Word) -> Option<Vec<Word>> {
    if word.choices.is_empty() {
        return Some(vec![word.clone()]);
    }
    let one = |path: &LinePath| {
        let is_home = path.text.start().starts_with('~');
        let word = Word { text: path.marked(), is_pattern: path.is_pattern, is_home, ..Word::default() };
        (!path.is_recursive).then_some(word)
    };
    word.choices.iter().map(one).collect()
}

/// What is taken and what is written.
fn transfer(
    parsed: &Parsed<'_>,
    context: &Context<'_>,
    is_recursive: bool,
) -> Option<(Vec<LinePath>, Vec<LinePath>)> {
    let given = parsed.options.iter().find(|(name, _)| name == "t" || name == "target-directory");
    let named_target: Word;
    let (target, sources) = if let Some((_, value)) = given {
        let text = value.clone().filter(|text| !text.contains('\0') && !text.starts_with('~'))?;
        named_target = Word::new(text);
        (&named_target, &parsed.operands[..])
    } else {
        let (target, sources) = parsed.operands.split_last()?;
        (*target, sources)
    };
    let sources: Vec<Word> =
        sources.iter().map(|source| alternatives(source)).collect::<Option<Vec<_>>>()?.concat();
    let targets = alternatives(target)?;
    if sources.is_empty()
        || sources.len() * targets.len() > PAIRS_MAX
        || targets.iter().any(|target| target.is_pattern)
    {
        return None;
    }
    let written = targets.iter().flat_map(|target| written(parsed, target, &sources, context, is_recursive));
    Some((context.paths(&sources, is_recursive), written.collect()))
}

/// What is written: the target, and what each source is called inside it if it is a directory.
fn written(
    parsed: &Parsed<'_>,
    target: &Word,
    sources: &[Word],
    context: &Context<'_>,
    is_recursive: bool,
) -> Vec<LinePath> {
    // In a directory only the names of the sources are written. `x/` may become a copy of the source itself.
    let is_directory = !parsed.has("T no-target-directory")
        && (parsed.has("t target-directory")
            || matches!(target.text.as_str(), "." | ".." | "./" | "../")
            || target.text.ends_with("/.")
            || (target.text.ends_with('/') && !is_recursive));
    let has_name = |source: &Word| !source.is_pattern && last_name(&source.text).is_some();
    let mut targets = Vec::new();
    if !(is_directory && sources.iter().all(has_name)) {
        targets = context.paths([target], is_recursive);
    }
    for source in sources {
        let Some(name) = last_name(source.text.trim_end_matches('/')) else { continue };
        let inside = Word {
            text: format!("{}/{name}", target.text.trim_end_matches('/')),
            is_pattern: source.is_pattern,
            ..target.clone()
        };
        targets.extend(context.paths([&inside], is_recursive));
    }
    targets
}

/// The last part of a path, if that is a name of its own.
fn last_name(path: &str) -> Option<&str> {
    path.rsplit('/').next().filter(|name| !matches!(*name, "" | "." | ".."))
}
