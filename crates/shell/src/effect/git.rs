//! `git`, for the forms that only look.

use super::options::{Given, Operands, OptionValue, Parsed, READS, Tool};
use super::{Context, Facts, literal, literals};
use crate::names::has_name;
use crate::places::{Places, named, path_text};
use crate::{CommandDirectory, LineEffect, LinePath, ListedNames, NameEnd, PipedNames, Word};

const LOOKS: Tool = Tool { has_help: false, operands: Operands::Text, is_harmless: false, ..READS };

/// Options that shape a difference, as in [`Tool::long`].
const DIFF_OPTIONS: &str = "binary cached check compact-summary cumulative exit-code find-copies-harder full-index function-context histogram \
    ignore-all-space ignore-blank-lines ignore-cr-at-eol ignore-space-at-eol ignore-space-change indent-heuristic \
    merge-base minimal name-only name-status no-color no-color-moved no-commit-id no-ext-diff no-indent-heuristic no-patch \
    no-prefix no-relative no-rename-empty no-renames no-textconv numstat patch patch-with-raw patch-with-stat patience \
    quiet raw shortstat staged summary text diff-algorithm: diff-filter: dst-prefix: inter-hunk-context: line-prefix: \
    output-indicator-context: output-indicator-new: output-indicator-old: src-prefix: stat-count: stat-name-width: \
    stat-width: word-diff-regex: abbrev:: break-rewrites:: color:: color-moved:: color-moved-ws:: color-words:: \
    diff-merges:: dirstat:: find-copies:: find-renames:: ignore-submodules:: irreversible-delete:: relative:: stat:: \
    submodule:: unified:: word-diff:: ws-error-highlight::";
/// Options that choose and show commits.
const LOG_OPTIONS: &str = "abbrev-commit all all-match ancestry-path author-date-order basic-regexp bisect boundary cherry cherry-mark \
    cherry-pick children clear-decorations count date-order dense extended-regexp first-parent fixed-strings follow \
    full-diff full-history graph invert-grep left-only left-right log-size merge merges no-abbrev-commit no-decorate \
    no-expand-tabs no-max-parents no-merges no-min-parents no-notes not oneline parents perl-regexp pickaxe-all \
    pickaxe-regex regexp-ignore-case relative-date reverse right-only show-pulls show-linear-break simplify-by-decoration \
    simplify-merges source sparse topo-order unsorted walk-reflogs cc combined-all-paths remerge-diff dd after: author: \
    before: committer: date: decorate-refs: decorate-refs-exclude: encoding: exclude: glob: grep: grep-reflog: max-count: \
    since: skip: until: max-parents:: min-parents:: decorate:: expand-tabs:: format:: notes:: pretty:: show-notes:: \
    branches:: tags:: remotes:: no-walk::";

/// The subcommands that show commits.
const LOG: Tool = Tool {
    names: "log show whatchanged rev-list",
    letters: "abcgimpqrRstuwz0123456789EFPG:l:L:n:S:B::C::M::U::",
    long: LOG_OPTIONS,
    shared_long: DIFF_OPTIONS,
    has_number: true,
    ..LOOKS
};

/// The subcommands that only look with the options named here.
const SUBCOMMANDS: &[Tool] = &[
    LOG,
    Tool {
        names: "diff diff-files diff-index diff-tree",
        letters: "abcDmprRstuwWzG:l:S:B::C::M::U::X::",
        shared_long: DIFF_OPTIONS,
        ..LOOKS
    },
    Tool {
        names: "status",
        letters: "bsvzu::M::",
        long: "ahead-behind branch long no-ahead-behind no-renames null renames short show-stash verbose column:: \
               find-renames:: ignore-submodules:: ignored:: porcelain:: untracked-files::",
        ..LOOKS
    },
    Tool {
        names: "ls-files",
        letters: "cdfikmorstuvzx:",
        long: "cached deleted directory deduplicate eol error-unmatch exclude-standard full-name ignored killed \
               modified no-empty-directory others recurse-submodules resolve-undo stage unmerged exclude: format: \
               abbrev::",
        ..LOOKS
    },
    Tool {
        names: "ls-tree",
        letters: "dlrtz",
        long: "full-name full-tree long name-only name-status object-only format: abbrev::",
        ..LOOKS
    },
    Tool {
        names: "blame annotate",
        letters: "bcefklnpstwL:C::M::",
        long: "color-by-age color-lines incremental line-porcelain minimal no-progress porcelain root score-debug \
               show-email show-name show-number show-stats date: ignore-rev: abbrev::",
        ..LOOKS
    },
    Tool {
        names: "shortlog",
        letters: "censw::",
        long: "all committer email merges no-merges numbered summary branches tags after: author: before: format: \
               group: grep: since: until:",
        ..LOOKS
    },
    Tool {
        names: "describe",
        long: "all always contains debug exact-match first-parent long tags abbrev: candidates: exclude: match: \
               broken:: dirty::",
        ..LOOKS
    },
    Tool {
        names: "rev-parse",
        letters: "q",
        long: "absolute-git-dir all branches git-common-dir git-dir is-bare-repository is-inside-git-dir \
               is-inside-work-tree is-shallow-repository quiet remotes show-cdup show-prefix \
               show-superproject-working-tree show-toplevel symbolic symbolic-full-name tags verify show-object-format \
               git-path: abbrev-ref:: short::",
        ..LOOKS
    },
    Tool { names: "cherry", letters: "v", long: "verbose abbrev:", ..LOOKS },
    Tool {
        names: "merge-base",
        letters: "a",
        long: "all fork-point independent is-ancestor octopus",
        ..LOOKS
    },
    Tool { names: "name-rev", long: "all always name-only tags refs: exclude:", ..LOOKS },
    Tool {
        names: "for-each-ref",
        long: "ignore-case color: contains: count: exclude: format: merged: no-contains: no-merged: points-at: sort:",
        ..LOOKS
    },
    Tool {
        names: "show-ref",
        letters: "dhqs",
        long: "dereference head heads quiet tags verify branches abbrev:: hash::",
        ..LOOKS
    },
    Tool { names: "cat-file", letters: "epst", long: "batch-check::", ..LOOKS },
    Tool {
        names: "count-objects",
        letters: "Hv",
        long: "human-readable verbose",
        operands: Operands::None,
        ..LOOKS
    },
    Tool {
        names: "grep",
        letters: "acEFGhHIiLlnopPqrvWwzA:B:C:e:m:",
        long: "all-match and basic-regexp cached column count extended-regexp files-with-matches files-without-match \
               fixed-strings full-name function-context heading ignore-case invert-match line-number name-only \
               no-color not null only-matching or perl-regexp quiet recursive show-function text untracked word-regexp \
               break no-recursive after-context: before-context: context: max-count: max-depth: threads: color::",
        has_number: true,
        ..LOOKS
    },
    Tool { names: "check-ignore", letters: "nqv", long: "no-index non-matching quiet verbose", ..LOOKS },
    Tool { names: "version", long: "build-options", operands: Operands::None, ..LOOKS },
    Tool {
        names: "branch",
        letters: "alrv",
        long: "all ignore-case list no-color no-column remotes show-current verbose format: points-at: sort: abbrev:: \
               color:: column:: contains:: merged:: no-contains:: no-merged::",
        text_options: "list contains merged no-contains no-merged",
        ..LOOKS
    },
    Tool {
        names: "tag",
        letters: "iln::",
        long: "ignore-case list no-column format: points-at: sort: color:: column:: contains:: merged:: no-contains:: \
               no-merged::",
        text_options: "l list contains merged no-contains no-merged",
        ..LOOKS
    },
];

pub(super) fn judge(arguments: &[Word], context: &Context<'_>) -> Option<Facts> {
    let (places, mut reads, at) = global_options(arguments, context)?;
    let place = places.one();
    if place == CommandDirectory::Unknown {
        return None;
    }
    let moves = places != *context.here;
    let (subcommand, rest) = arguments[at..].split_first()?;
    let context = Context { here: &places, ..*context };
    let parsed = parse(literal(subcommand)?, rest)?;
    let is_other = |(name, value): &Given| {
        let value = value.as_deref().unwrap_or_default();
        // Signatures, which a format may ask for in several spellings, are checked by another program.
        let is_format = has_name("format pretty", name);
        value.contains("%G") || value.contains("signature") || (is_format && value.contains('\0'))
            // What looks like an option is one, if git knows no value there.
            || (value.starts_with('-') && rest.iter().any(|word| word.text == value))
    };
    if parsed.options.iter().any(is_other) {
        return None;
    }
    // What to look for is no path.
    let skip = usize::from(literal(subcommand) == Some("grep") && !parsed.has("e"));
    reads.extend(operand_paths(parsed.operands.get(skip..).unwrap_or_default(), &context));
    let texts: Vec<&str> = arguments[at..].iter().map(|word| word.text.as_str()).collect();
    if let Some(shown) = shown(&texts) {
        let named = shown.paths.iter().filter_map(|path| arguments.get(at + path));
        reads.extend(context.paths(named, true));
        reads.extend(shown.is_whole.then(|| context.here(true)).into_iter().flatten());
    }
    if literal(subcommand) == Some("config") {
        reads.extend(config_files(&parsed, rest, &context));
    }
    // Where the line starts need not be where the session does, so whoever knows both decides.
    let mut facts = Facts { effect: LineEffect::LooksAtStart, reads, ..Facts::default() };
    // Names that are relative to another directory mean something else to whoever gets them.
    let lists = !moves
        && match literal(subcommand)? {
            "ls-files" => parsed.options.iter().all(|(option, _)| {
                has_name("c cached d deleted m modified o others z exclude-standard", option)
            }),
            "grep" => parsed.has("l files-with-matches") && !parsed.has("full-name"),
            "diff" => parsed.has("name-only") && !parsed.has("line-prefix"),
            _ => false,
        };
    if lists {
        let end = if parsed.has("z null") { NameEnd::Nul } else { NameEnd::Line };
        // A name that another commit has need not be tracked any more.
        let is_open = parsed.has("o others") || literal(subcommand) == Some("diff");
        let listed = if is_open { ListedNames::All } else { ListedNames::Tracked };
        facts.names =
            super::listed(&context.here(true), &PipedNames { listed, end, is_led: false, pattern: None });
    }
    facts.directory = Some(place);
    Some(facts)
}

/// Options in front of the subcommand: where git runs, what it looks at there, and how many words that is.
fn global_options(arguments: &[Word], context: &Context<'_>) -> Option<(Places, Vec<LinePath>, usize)> {
    let mut places = context.here.clone();
    let mut reads = Vec::new();
    let mut at = 0;
    while let Some(word) = arguments.get(at).filter(|word| word.text.starts_with('-')) {
        match literal(word)? {
            "--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs" | "--no-replace-objects" => {
                at += 1;
            }
            "-C" => {
                let target = arguments.get(at + 1).filter(|word| !word.is_unknown() && !word.is_pattern)?;
                reads.extend(named(&path_text(target), false, &places));
                places = places.enter(Some(&path_text(target)));
                at += 2;
            }
            _ => return None,
        }
    }
    Some((places, reads, at))
}

fn parse<'a>(subcommand: &str, arguments: &'a [Word]) -> Option<Parsed<'a>> {
    let first = arguments.first().and_then(literal);
    match subcommand {
        "remote" => return remote(arguments),
        "config" => return config(arguments),
        "stash" => {
            let shows = matches!(first?, "list" | "show");
            return parse_known(&LOG, &arguments[1..]).filter(|_| shows);
        }
        "reflog" => {
            let rest = if first == Some("show") { &arguments[1..] } else { arguments };
            let parsed = parse_known(&LOG, rest)?;
            let names_ref = |word: &&Word| word.text.starts_with("HEAD") || first == Some("show");
            return parsed.operands.iter().all(names_ref).then_some(parsed);
        }
        "symbolic-ref" => {
            let tool = Tool { letters: "q", long: "quiet short recurse no-recurse", ..LOOKS };
            // With a second operand it would be set.
            let is_one =
                |parsed: &Parsed<'_>| matches!(parsed.operands[..], [name] if literal(name).is_some());
            return tool.parse(arguments).filter(is_one);
        }
        "submodule" => {
            let tool = Tool { letters: "q", long: "quiet cached recursive", ..LOOKS };
            return if first? == "status" { tool.parse(&arguments[1..]) } else { None };
        }
        "worktree" => {
            let tool = Tool { letters: "vz", long: "porcelain verbose", operands: Operands::None, ..LOOKS };
            return if first? == "list" { tool.parse(&arguments[1..]) } else { None };
        }
        _ => {}
    }
    let tool = SUBCOMMANDS.iter().find(|tool| has_name(tool.names, subcommand))?;
    let parsed = parse_known(tool, arguments)?;
    // Without an option that asks for a list, an operand would be made.
    let makes = matches!(subcommand, "branch" | "tag")
        && !parsed.operands.is_empty()
        && !parsed.has(tool.text_options);
    let excess = tool.operands == Operands::None && !parsed.operands.is_empty();
    (!makes && !excess).then_some(parsed)
}

/// Takes the arguments of a subcommand apart. The values of long options in the next word must be known.
fn parse_known<'a>(tool: &Tool, arguments: &'a [Word]) -> Option<Parsed<'a>> {
    let is_open = |two: &[Word]| {
        two[0].text.starts_with("--") && tool.takes_next(&two[0]) && literal(&two[1]).is_none()
    };
    let is_known = tool.shared_long.is_empty() || !arguments.windows(2).any(is_open);
    tool.parse(arguments).filter(|_| is_known)
}

fn remote(arguments: &[Word]) -> Option<Parsed<'_>> {
    let is_known = |word: &&str| !word.starts_with('-') || matches!(*word, "--all" | "--push");
    let looks = match &literals(arguments)?[..] {
        [] | ["-v" | "--verbose"] => true,
        ["get-url", rest @ ..] => rest.iter().all(is_known),
        _ => false,
    };
    looks.then(Parsed::default)
}

fn config(arguments: &[Word]) -> Option<Parsed<'_>> {
    const CONFIG: Tool = Tool {
        letters: "lz",
        long: "all bool bool-or-int get get-all get-regexp get-urlmatch global int list local name-only null path \
               show-origin show-scope system worktree includes no-includes default: type:",
        ..LOOKS
    };
    let mut parsed = CONFIG.parse(arguments)?;
    let is_list = parsed.has("l list");
    let asks = parsed.has("get get-all get-regexp get-urlmatch");
    let first = parsed.operands.first().and_then(|word| literal(word)).unwrap_or_default();
    let fits = match parsed.operands.len() {
        0 => is_list,
        // One name asks for its value.
        1 => !is_list && (asks || first.contains('.') || first == "list"),
        2 => asks || first == "get",
        3 => asks && parsed.has("get-urlmatch"),
        _ => false,
    };
    parsed.operands.clear();
    fits.then_some(parsed)
}

/// Sections whose settings hold no secrets.
const PUBLIC: &str = "branch color commit core diff init merge pull push rebase remote user";

/// The settings that are shown besides those of the work.
fn config_files(parsed: &Parsed<'_>, arguments: &[Word], context: &Context<'_>) -> Vec<LinePath> {
    let is_public =
        |word: &Word| word.text.split_once('.').is_some_and(|(section, _)| has_name(PUBLIC, section));
    let key = arguments.iter().find(|word| !word.text.starts_with('-') && word.text != "get");
    let is_named = parsed.has("local worktree system")
        || (!parsed.has("l list get-regexp get-urlmatch default type") && key.is_some_and(is_public));
    let own = Word { text: "~/.gitconfig".to_owned(), is_home: true, ..Word::default() };
    if is_named { Vec::new() } else { context.paths([&own], false) }
}

/// Operands may be names of commits as well; a path in a commit stands behind a colon.
fn operand_paths(operands: &[&Word], context: &Context<'_>) -> Vec<LinePath> {
    let mut paths = Vec::new();
    for operand in operands {
        let text = operand.text.rsplit_once(':').map_or(operand.text.as_str(), |(_, path)| path);
        if !text.is_empty() {
            let is_whole = text == operand.text;
            let choices = if is_whole { operand.choices.clone() } else { Vec::new() };
            let word = Word { text: text.to_owned(), choices, ..(*operand).clone() };
            paths.extend(context.paths([&word], false));
        }
    }
    paths
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The words that are certainly paths, counted from the subcommand on.
    pub(crate) paths: Vec<usize>,
    /// Every file of the work.
    pub(crate) is_whole: bool,
}

/// What a subcommand and its words show of files, if they show anything in them.
pub(crate) fn shown(words: &[&str]) -> Option<Shown> {
    let (subcommand, rest) = words.split_first()?;
    let options: Vec<&str> = rest.iter().copied().take_while(|word| *word != "--").collect();
    let has_patch = options.iter().any(|word| asks_for_patch(word));
    let is_summary = !has_patch && options.iter().any(|word| is_summary(word));
    let shows = match *subcommand {
        "grep" => true,
        "diff" | "show" | "format-patch" | "range-diff" => !is_summary,
        "diff-files" | "diff-index" | "diff-tree" | "log" | "whatchanged" | "reflog" => has_patch,
        "stash" => has_patch && rest.first() == Some(&"show"),
        _ => false,
    };
    shows.then(|| shown_operands(subcommand, words))
}

fn asks_for_patch(word: &str) -> bool {
    const LONG: &str = "--patch --unified --cc --word-diff --color-words --function-context --remerge-diff --dd \
        --pickaxe";
    let group = word.strip_prefix('-').unwrap_or_default();
    let is_group = !group.starts_with('-')
        && (group.starts_with(['S', 'G', 'L', 'U', 'W', 'c']) || group.contains(['p', 'u']));
    is_group || LONG.split(' ').any(|long| word.starts_with(long))
}

fn is_summary(word: &str) -> bool {
    const SUMMARIES: &str = "--stat --shortstat --numstat --name-only --name-status --summary --dirstat --compact-summary --raw --quiet --no-patch -s -q";
    has_name(SUMMARIES, word.split('=').next().unwrap_or_default())
}

/// Operands may be names of commits as well as paths: only what hardly is a commit counts as a path.
fn shown_operands(subcommand: &str, words: &[&str]) -> Shown {
    let is_grep = subcommand == "grep";
    let valued = if is_grep { "-A -B -C -m -e -f --max-depth --threads" } else { "-S -G -L -n -l -O" };
    let mut shown = Shown::default();
    let (mut commits, mut blobs) = (0, 0);
    let mut wants_text = is_grep && !words.iter().any(|word| word.starts_with("-e") || *word == "-f");
    let mut at = usize::from(subcommand == "stash") + 1;
    while let Some(word) = words.get(at) {
        let long = word.strip_prefix("--").unwrap_or_default();
        if *word == "--" {
            shown.paths.extend(at + 1..words.len());
            break;
        } else if has_name(valued, word) || LOG.long_value(long) == Some(OptionValue::Needed) {
            at += 1;
        } else if word.starts_with('-') || std::mem::take(&mut wants_text) {
            // Neither a commit nor a path.
        } else if word.contains(':') && !word.starts_with(":/") && !word.starts_with(":(") {
            blobs += 1;
        } else if is_path(word) {
            shown.paths.push(at);
        } else {
            commits += 1;
        }
        at += 1;
    }
    shown.is_whole = shown.paths.is_empty() && (blobs == 0 || commits > 0);
    shown
}

fn is_path(word: &str) -> bool {
    let is_file = |(name, end): (&str, &str)| {
        !name.ends_with('.') && !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    ["./", "../", "/", "~/"].iter().any(|start| word.starts_with(start))
        || word.ends_with('/')
        || word == "."
        || word.rsplit_once('.').is_some_and(is_file)
}
