//! The programs that only look, and the options under which they do.
//!
//! A row names every option that writes nothing, runs nothing, loads no code and opens no connection; but none
//! that reads a list of further files or follows links below a directory: what it looks at is not named.

use std::sync::LazyLock;

use super::options::{Given, Operands, Parsed, READS, Tool};
use crate::names::{Sieve, has_name};
use crate::{ListedNames, NameEnd, PipedNames, SearchFilter};

/// A program whose words are not files, and that has no option which does harm.
const SAYS: Tool = Tool { operands: Operands::Text, ..READS };
/// A program with options that do harm, of which none is named.
const CAREFUL: Tool = Tool { is_harmless: false, ..READS };

/// A program that says something and has options that do harm.
const ASKS: Tool = Tool { is_harmless: false, ..SAYS };

/// One of those for object files.
const OBJECTS: Tool = Tool { takes_lists: true, ..CAREFUL };

const TOOLS: &[Tool] = &[
    // Programs that show what is in files.
    Tool {
        names: "cat",
        letters: "AbeEnstTuv",
        long: "number number-nonblank show-all show-ends show-nonprinting show-tabs squeeze-blank",
        ..READS
    },
    Tool { names: "tac", letters: "brs:", long: "before regex separator:", ..READS },
    Tool { names: "rev", ..READS },
    Tool { names: "nl", letters: "pb:d:f:h:i:l:n:s:v:w:", ..READS },
    Tool {
        names: "head",
        letters: "qvzc:n:",
        long: "quiet silent verbose zero-terminated bytes: lines:",
        has_number: true,
        ..READS
    },
    Tool {
        names: "tail",
        letters: "fFqvzc:n:s:",
        long: "quiet silent verbose zero-terminated retry bytes: lines: pid: sleep-interval: \
               max-unchanged-stats: follow::",
        has_number: true,
        ..READS
    },
    Tool { names: "wc", letters: "clLmw", long: "bytes chars lines max-line-length words total:", ..READS },
    Tool {
        names: "cut",
        letters: "nszb:c:d:f:",
        long: "complement only-delimited zero-terminated bytes: characters: delimiter: fields: \
               output-delimiter:",
        ..READS
    },
    Tool { names: "fold", letters: "bsw:", long: "width:", has_number: true, ..READS },
    Tool { names: "fmt", letters: "cstug:p:w:", long: "width: prefix: goal:", has_number: true, ..READS },
    Tool { names: "expand unexpand", letters: "ait:", long: "tabs:", ..READS },
    Tool { names: "paste", letters: "szd:", long: "serial delimiters:", ..READS },
    Tool { names: "join", letters: "iz1:2:a:e:j:o:t:v:", ..READS },
    Tool {
        names: "comm",
        letters: "123z",
        long: "check-order nocheck-order total zero-terminated output-delimiter:",
        ..READS
    },
    Tool { names: "cmp", letters: "blsi:n:", long: "print-bytes quiet silent verbose", ..READS },
    Tool {
        names: "column",
        letters: "eJLtxc:E:H:l:N:n:o:O:R:s:T:W:",
        long: "table json keep-empty-lines separator: output-separator: table-columns: columns: table-right: \
               output-width:",
        ..READS
    },
    Tool {
        names: "od",
        letters: "abcdfilosxvA:j:N:S:t:w:",
        long: "address-radix: skip-bytes: read-bytes: format:",
        ..READS
    },
    Tool { names: "hexdump hd", letters: "bcCdovxXe:n:s:", ..READS },
    Tool {
        names: "strings",
        letters: "afwn:t:e:",
        long: "all bytes: radix: encoding:",
        has_number: true,
        ..OBJECTS
    },
    Tool {
        names: "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum sum",
        letters: "btz",
        long: "binary tag text zero",
        ..READS
    },
    Tool {
        names: "b2sum cksum",
        letters: "btza:l:",
        long: "binary tag text zero length: algorithm:",
        ..READS
    },
    Tool { names: "stat", letters: "fLtc:", long: "dereference file-system terse format: printf:", ..READS },
    Tool {
        names: "realpath",
        letters: "eLmPqsz",
        long: "canonicalize-existing canonicalize-missing logical no-symlinks physical quiet strip zero \
               relative-to: relative-base:",
        ..READS
    },
    Tool {
        names: "readlink",
        letters: "efmnqsvz",
        long: "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero",
        ..READS
    },
    Tool {
        names: "file",
        letters: "bhIikLNnrv0e:F:P:",
        long: "brief dereference mime mime-encoding mime-type no-buffer no-dereference no-pad raw exclude: \
               separator:",
        ..CAREFUL
    },
    Tool { names: "base64 base32", letters: "diw:", long: "decode ignore-garbage wrap:", ..READS },
    Tool {
        names: "zcat bzcat xzcat zstdcat",
        has_help: false,
        endings: "gz tgz Z bz2 tbz2 xz txz lzma zst",
        ..CAREFUL
    },
    Tool {
        names: "nm",
        letters: "aABCDgnoprSuvWf:t:",
        long: "debug-syms defined-only demangle dynamic extern-only no-demangle no-sort numeric-sort \
               print-armap print-file-name print-size reverse-sort size-sort undefined-only format: radix:",
        ..OBJECTS
    },
    Tool {
        names: "readelf",
        letters: "aAdeghIlnrsStuVWp:x:",
        long: "all arch-specific dynamic file-header headers histogram notes program-headers relocs \
               section-groups section-headers sections segments syms symbols version-info wide hex-dump: \
               string-dump:",
        ..OBJECTS
    },
    Tool {
        names: "objdump",
        letters: "aCdDfhprRstTwxzj:M:",
        long: "all-headers archive-headers demangle disassemble disassemble-all dynamic-reloc dynamic-syms \
               file-headers full-contents no-show-raw-insn private-headers reloc section-headers syms wide \
               section: start-address: stop-address: disassembler-options:",
        ..OBJECTS
    },
    Tool { names: "size", letters: "ABdotx", long: "common totals format: radix:", ..OBJECTS },
    Tool { names: "bc", letters: "lqsw", long: "mathlib quiet standard warn", ..READS },
    // Programs that list or compare.
    Tool {
        names: "ls",
        letters: "1AaBbCcdFfGgHhiklLmNnopQqRrSstUuvXxZI:T:w:",
        long: "all almost-all author context dereference dereference-command-line directory escape file-type \
               full-time group-directories-first hide-control-chars human-readable ignore-backups inode \
               kibibytes literal no-group numeric-uid-gid quote-name recursive reverse show-control-chars si \
               size zero block-size: format: hide: ignore: indicator-style: quoting-style: sort: tabsize: \
               time: time-style: width: color:: classify:: hyperlink::",
        recursive: "R recursive",
        operands: Operands::PathsOrHere,
        ..READS
    },
    Tool {
        names: "du",
        letters: "0abcDhHklmPsSxB:d:t:",
        long: "all apparent-size bytes count-links dereference-args human-readable inodes no-dereference \
               null one-file-system separate-dirs si summarize total block-size: exclude: max-depth: \
               threshold: time-style: time::",
        recursive: "*",
        operands: Operands::PathsOrHere,
        ..READS
    },
    Tool {
        names: "df",
        letters: "ahHiklmPTvB:t:x:",
        long: "all human-readable inodes local no-sync portability print-type si total block-size: \
               exclude-type: type: output::",
        ..READS
    },
    Tool {
        names: "tree",
        letters: "aACdDfFghinNpqQrsStuvxJXI:L:P:",
        long: "dirsfirst du filesfirst gitignore ignore-case inodes matchdirs noreport prune si filelimit: \
               timefmt: sort::",
        recursive: "*",
        operands: Operands::PathsOrHere,
        ..CAREFUL
    },
    Tool {
        names: "diff",
        letters: "aBbcdEeiNnpqrsTtuwyZC:F:I:L:S:U:W:x:",
        long: "brief expand-tabs ignore-all-space ignore-blank-lines ignore-case ignore-space-change \
               ignore-tab-expansion ignore-trailing-space left-column minimal new-file no-dereference normal \
               rcs recursive report-identical-files show-c-function side-by-side speed-large-files \
               strip-trailing-cr suppress-blank-empty suppress-common-lines text unidirectional-new-file \
               initial-tab exclude: horizon-lines: ignore-matching-lines: label: show-function-line: \
               starting-file: tabsize: width: color:: context:: unified::",
        recursive: "r recursive",
        has_number: true,
        opens_links: true,
        ..CAREFUL
    },
    Tool {
        names: "sort",
        letters: "bcCdfghiMmnRrsuVzk:S:t:",
        long: "debug dictionary-order general-numeric-sort human-numeric-sort ignore-case \
               ignore-leading-blanks ignore-nonprinting merge month-sort numeric-sort random-sort reverse \
               stable unique version-sort zero-terminated batch-size: buffer-size: field-separator: key: \
               parallel: sort: check::",
        ..CAREFUL
    },
    Tool {
        names: "shuf",
        letters: "rzi:n:",
        long: "repeat zero-terminated head-count: input-range:",
        ..CAREFUL
    },
    Tool {
        names: "uniq",
        letters: "cdDiuzf:s:w:",
        long: "count ignore-case repeated unique zero-terminated check-chars: skip-chars: skip-fields: \
               all-repeated:: group::",
        operands: Operands::OnePath,
        ..CAREFUL
    },
    // Programs that search.
    Tool {
        names: "grep egrep fgrep",
        letters: "abcEFGhHiIlLnoPqrsTUvVwxyzZA:B:C:D:d:e:m:",
        long: "basic-regexp binary byte-offset count extended-regexp files-with-matches files-without-match \
               fixed-strings ignore-case initial-tab invert-match line-buffered line-number line-regexp \
               no-filename no-ignore-case no-messages null null-data only-matching perl-regexp quiet \
               recursive silent text with-filename word-regexp after-context: before-context: binary-files: \
               context: devices: directories: exclude: exclude-dir: group-separator: include: label: \
               max-count: regexp: color:: colour::",
        text_options: "e regexp",
        recursive: "r recursive d directories",
        operands: Operands::TextThenPaths,
        has_number: true,
        ..READS
    },
    Tool {
        names: "rg",
        letters: ".0abcFHhIiNnlopPqSsUuVvwxA:B:C:d:E:e:g:j:M:m:r:T:t:",
        long: "binary block-buffered byte-offset case-sensitive column count count-matches crlf files \
               files-with-matches files-without-match fixed-strings heading hidden ignore-case \
               ignore-file-case-insensitive include-zero invert-match json line-buffered line-number \
               line-regexp max-columns-preview multiline multiline-dotall no-column no-config no-filename \
               no-heading no-hidden no-ignore no-ignore-dot no-ignore-exclude no-ignore-files \
               no-ignore-global no-ignore-messages no-ignore-parent no-ignore-vcs no-line-number no-messages \
               no-unicode null null-data one-file-system only-matching passthru pcre2 pcre2-version pretty \
               quiet smart-case stats stop-on-nonmatch text trim type-list unrestricted vimgrep \
               with-filename word-regexp after-context: before-context: color: colors: context: \
               context-separator: dfa-size-limit: encoding: engine: field-context-separator: \
               field-match-separator: glob: iglob: max-columns: max-count: max-depth: max-filesize: \
               path-separator: regexp: replace: sort: sortr: threads: type: type-add: type-clear: type-not:",
        text_options: "e regexp files type-list",
        recursive: "*",
        operands: Operands::TextThenPathsOrHere,
        ..CAREFUL
    },
    Tool {
        names: "fd fdfind",
        letters: "01aFgHIipqsuc:d:E:e:S:t:",
        long: "absolute-path case-sensitive fixed-strings full-path glob hidden ignore-case no-ignore \
               no-ignore-parent no-ignore-vcs one-file-system print0 prune quiet regex unrestricted \
               changed-before: changed-within: color: depth: exact-depth: exclude: extension: max-depth: \
               max-results: min-depth: size: type:",
        recursive: "*",
        operands: Operands::TextThenPathsOrHere,
        ..CAREFUL
    },
    // Programs that say something about words, the system or nothing at all.
    Tool { names: "pwd", letters: "LP", operands: Operands::None, ..SAYS },
    Tool { names: "true false : echo expr sleep factor", ..SAYS },
    Tool { names: "basename", letters: "azs:", long: "multiple zero suffix:", ..SAYS },
    Tool { names: "dirname", letters: "z", long: "zero", ..SAYS },
    Tool { names: "seq", letters: "wf:s:", long: "equal-width format: separator:", ..SAYS },
    Tool { names: "tr", letters: "cCdst", long: "complement delete squeeze-repeats truncate-set1", ..SAYS },
    Tool { names: "which", letters: "as", long: "all", ..SAYS },
    Tool { names: "type", letters: "afpPt", ..SAYS },
    Tool { names: "whereis", letters: "bmsu", ..ASKS },
    Tool { names: "printenv", letters: "0", long: "null", ..SAYS },
    Tool {
        names: "uname",
        letters: "aimnoprsv",
        long: "all kernel-name kernel-release machine operating-system",
        operands: Operands::None,
        ..SAYS
    },
    Tool { names: "whoami arch tty logname wait", operands: Operands::None, ..SAYS },
    Tool { names: "nproc", long: "all ignore:", operands: Operands::None, ..SAYS },
    Tool { names: "id", letters: "aGgnruzZ", long: "group groups name real user zero", ..SAYS },
    Tool { names: "groups", ..SAYS },
    Tool { names: "uptime", letters: "psV", long: "pretty since", operands: Operands::None, ..SAYS },
    Tool {
        names: "free",
        letters: "bghklmtvwc:s:",
        long: "bytes giga human kibi lohi mebi mega si total wide count: seconds:",
        operands: Operands::None,
        ..SAYS
    },
    Tool { names: "lscpu", letters: "aeJpx", long: "all json", operands: Operands::None, ..SAYS },
    Tool { names: "who", letters: "abdHlmpqrsTtu", operands: Operands::None, ..ASKS },
    Tool { names: "pgrep", letters: "aflnovwxd:g:G:P:s:t:u:U:", ..ASKS },
    Tool { names: "pidof", letters: "csxo:", ..SAYS },
    Tool { names: "jobs", letters: "lnprs", ..ASKS },
    Tool { names: "hostname", letters: "s", long: "short", operands: Operands::None, ..ASKS },
    Tool {
        names: "numfmt",
        long: "grouping field: format: from: from-unit: padding: round: suffix: to: to-unit:",
        letters: "d:",
        ..SAYS
    },
    Tool { names: "locale", letters: "ackm", ..SAYS },
    Tool { names: "cal", letters: "13jmsyY", ..SAYS },
    Tool { names: "ss", letters: "046aeHilmnoptsuwx", has_help: false, operands: Operands::None, ..ASKS },
    Tool { names: "netstat", letters: "aeilnoprstuWx", has_help: false, operands: Operands::None, ..ASKS },
    Tool { names: "getconf", letters: "a", ..SAYS },
    Tool { names: "exit break continue", ..ASKS },
    Tool { names: "umask", letters: "S", operands: Operands::None, ..ASKS },
];

/// It may run a pager of somebody's choice.
pub(super) const BAT: Tool = Tool {
    names: "bat batcat",
    has_help: false,
    letters: "AnpPl:r:",
    long: "number plain color:: language:: line-range:: paging:: style::",
    ..CAREFUL
};

/// Programs that show what is in a file, and the options with which they show something else, or more than one file.
const VIEWERS: &[(&str, &str)] = &[
    ("cat nl head", ""),
    ("tail", "f F follow retry"),
    ("grep", "c count l files-with-matches L files-without-match q quiet silent r R recursive d directories"),
    (
        "rg",
        "c count count-matches l files files-with-matches files-without-match q quiet r replace json type-list \
         V pcre2-version",
    ),
];

/// Whether what a program prints is what is in the files that it reads.
pub(super) fn shows_content(tool: &Tool, parsed: &Parsed<'_>) -> bool {
    let viewer = VIEWERS.iter().find(|(viewers, _)| has_name(viewers, tool.name()));
    viewer.is_some_and(|(_, unless)| !parsed.has(unless) && !parsed.has("help version"))
}

static KNOWN: LazyLock<Sieve> = LazyLock::new(|| Sieve::of(TOOLS.iter().map(|tool| tool.names)));

pub(super) fn find(name: &str) -> Option<&'static Tool> {
    if !KNOWN.may_have(name) {
        return None;
    }
    TOOLS.iter().find(|tool| has_name(tool.names, name))
}

/// Whether options that are harmless alone let a program follow the links that it finds below a directory.
pub(super) fn follows_links(tool: &Tool, parsed: &Parsed<'_>) -> bool {
    match tool.names {
        "ls" => parsed.has("R recursive") && parsed.has("L dereference"),
        "diff" => parsed.has("r recursive") && !parsed.has("no-dereference"),
        "cp" => parsed.has("R r recursive") && parsed.has("L dereference"),
        _ => false,
    }
}

/// Which files a search opens, if not all.
pub(super) fn only(tool: &Tool, parsed: &Parsed<'_>) -> Option<SearchFilter> {
    let given =
        parsed.options.iter().map(|(name, value)| (name.as_str(), value.as_deref().unwrap_or_default()));
    SearchFilter::of_search(tool.name(), given)
}

/// Which names a search lists. One that shows what is in files follows no links.
pub(super) fn handed(name: &str, parsed: &Parsed<'_>) -> PipedNames {
    let options = &parsed.options;
    let is_file = |(option, value): &Given| {
        !has_name("t type", option) || matches!(value.as_deref(), Some("f" | "file"))
    };
    let is_whole =
        |(option, _): &Given| has_name("u unrestricted . hidden", option) || option.starts_with("no-ignore");
    let listed = match name {
        "fd" if !parsed.has("t type") || !options.iter().all(is_file) => ListedNames::All,
        "rg" if !options.iter().any(is_whole) => ListedNames::NotIgnored,
        _ => ListedNames::Files,
    };
    let ends_with_nul = if name == "grep" { "Z null" } else { "0 null print0" };
    let end = if parsed.has(ends_with_nul) { NameEnd::Nul } else { NameEnd::Line };
    PipedNames { listed, end, is_led: false, pattern: None }
}

/// Programs that print their version when asked, and nothing else; none that may be a proxy (rustup, asdf, mise …).
const VERSIONED: &str = "awk bash clang clang++ curl docker find fish g++ gawk gcc gh git gpg gzip jq less make mawk mysql nginx ninja nvim \
    openssl pkg-config psql redis-cli rg sed sh sqlite3 ssh tar tmux unzip vim wget xz zip zsh";

/// Programs that say how they are used when asked, and do nothing else. Those that open a manual page are not here, nor are proxies.
const HELPFUL: &str = "clang curl docker gcc gh jq make rg sqlite3 tar wget";

/// Whether the arguments only ask a program for its version, or for how it is used.
pub(super) fn asks_for_version(name: &str, arguments: &[&str]) -> bool {
    let programs = match arguments {
        ["--help"] => HELPFUL,
        ["--version"] => VERSIONED,
        ["-V"] => "ssh tmux",
        ["version"] => "docker",
        _ => return false,
    };
    has_name(programs, name)
}
