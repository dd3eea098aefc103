//! The programs that only look, and the options under which they do.
//!
//! A row names every option that was judged harmless: it writes nothing, runs nothing, loads no code and opens no connection. Options
//! that read a list of further files are left out, since those files would not be named; and so are those that follow links below a
//! directory, since they may lead anywhere.

use super::options::{Given, Operands, Parsed, READS, Tool};
use crate::names::{Sieve, has_name};
use crate::{ListedNames, NameEnd, Only, PipedNames, search};

/// A program whose words are not files, and that has no option which does harm.
const SAYS: Tool = Tool { operands: Operands::Text, ..READS };
/// A program with options that do harm, of which none is named.
const CAREFUL: Tool = Tool { is_harmless: false, ..READS };

/// One of those for object files.
const OBJECTS: Tool = Tool { takes_lists: true, ..CAREFUL };

const SUM_OPTIONS: &str = "help version binary tag text zero";

/// Programs by what they show of files.
const FILES: &[Tool] = &[
    Tool {
        names: "cat",
        flags: "AbeEnstTuv",
        long: "help version number number-nonblank show-all show-ends show-nonprinting show-tabs squeeze-blank",
        ..READS
    },
    Tool {
        names: "tac",
        flags: "br",
        valued: "s",
        long: "help version before regex",
        long_valued: "separator",
        ..READS
    },
    Tool { names: "rev", ..READS },
    Tool { names: "nl", flags: "p", valued: "bdfhilnsvw", ..READS },
    Tool {
        names: "head",
        flags: "qvz",
        valued: "cn",
        long: "help version quiet silent verbose zero-terminated",
        long_valued: "bytes lines",
        has_number: true,
        ..READS
    },
    Tool {
        names: "tail",
        flags: "fFqvz",
        valued: "cns",
        long: "help version quiet silent verbose zero-terminated retry",
        long_valued: "bytes lines pid sleep-interval max-unchanged-stats",
        long_attached: "follow",
        has_number: true,
        ..READS
    },
    Tool {
        names: "wc",
        flags: "clLmw",
        long: "help version bytes chars lines max-line-length words",
        long_valued: "total",
        ..READS
    },
    Tool {
        names: "cut",
        flags: "nsz",
        valued: "bcdf",
        long: "help version complement only-delimited zero-terminated",
        long_valued: "bytes characters delimiter fields output-delimiter",
        ..READS
    },
    Tool { names: "fold", flags: "bs", valued: "w", long_valued: "width", has_number: true, ..READS },
    Tool {
        names: "fmt",
        flags: "cstu",
        valued: "gpw",
        long_valued: "width prefix goal",
        has_number: true,
        ..READS
    },
    Tool { names: "expand unexpand", flags: "ai", valued: "t", long_valued: "tabs", ..READS },
    Tool {
        names: "paste",
        flags: "sz",
        valued: "d",
        long: "help version serial",
        long_valued: "delimiters",
        ..READS
    },
    Tool { names: "join", flags: "iz", valued: "12aejotv", ..READS },
    Tool {
        names: "comm",
        flags: "123z",
        long: "help version check-order nocheck-order total zero-terminated",
        long_valued: "output-delimiter",
        ..READS
    },
    Tool {
        names: "cmp",
        flags: "bls",
        valued: "in",
        long: "help version print-bytes quiet silent verbose",
        ..READS
    },
    Tool {
        names: "column",
        flags: "eJLtx",
        valued: "cEHlNnoORsTW",
        long: "help version table json keep-empty-lines",
        long_valued: "separator output-separator table-columns columns table-right output-width",
        ..READS
    },
    Tool {
        names: "od",
        flags: "abcdfilosxv",
        valued: "AjNStw",
        long_valued: "address-radix skip-bytes read-bytes format",
        ..READS
    },
    Tool { names: "hexdump hd", flags: "bcCdovxX", valued: "ens", ..READS },
    Tool {
        names: "strings",
        flags: "afw",
        valued: "nte",
        long: "help version all",
        long_valued: "bytes radix encoding",
        has_number: true,
        ..OBJECTS
    },
    Tool {
        names: "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum sum",
        flags: "btz",
        long: SUM_OPTIONS,
        ..READS
    },
    Tool {
        names: "b2sum cksum",
        flags: "btz",
        valued: "al",
        long: SUM_OPTIONS,
        long_valued: "length algorithm",
        ..READS
    },
    Tool {
        names: "stat",
        flags: "fLt",
        valued: "c",
        long: "help version dereference file-system terse",
        long_valued: "format printf",
        ..READS
    },
    Tool {
        names: "realpath",
        flags: "eLmPqsz",
        long: "help version canonicalize-existing canonicalize-missing logical no-symlinks physical quiet strip zero",
        long_valued: "relative-to relative-base",
        ..READS
    },
    Tool {
        names: "readlink",
        flags: "efmnqsvz",
        long: "help version canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero",
        ..READS
    },
    Tool {
        names: "file",
        flags: "bhIikLNnrv0",
        valued: "eFP",
        long: "help version brief dereference mime mime-encoding mime-type no-buffer no-dereference no-pad raw",
        long_valued: "exclude separator",
        ..CAREFUL
    },
    Tool {
        names: "base64 base32",
        flags: "di",
        valued: "w",
        long: "help version decode ignore-garbage",
        long_valued: "wrap",
        ..READS
    },
    Tool {
        names: "zcat bzcat xzcat zstdcat",
        long: "",
        endings: "gz tgz Z bz2 tbz2 xz txz lzma zst",
        ..CAREFUL
    },
    Tool {
        names: "nm",
        flags: "aABCDgnoprSuvW",
        long: "help version debug-syms defined-only demangle dynamic extern-only no-demangle no-sort numeric-sort \
               print-armap print-file-name print-size reverse-sort size-sort undefined-only",
        long_valued: "format radix",
        valued: "ft",
        ..OBJECTS
    },
    Tool {
        names: "readelf",
        flags: "aAdeghIlnrsStuVW",
        valued: "px",
        long: "help version all arch-specific dynamic file-header headers histogram notes program-headers relocs \
               section-groups section-headers sections segments syms symbols version-info wide",
        long_valued: "hex-dump string-dump",
        ..OBJECTS
    },
    Tool {
        names: "objdump",
        flags: "aCdDfhprRstTwxz",
        valued: "jM",
        long: "help version all-headers archive-headers demangle disassemble disassemble-all dynamic-reloc dynamic-syms \
               file-headers full-contents no-show-raw-insn private-headers reloc section-headers syms wide",
        long_valued: "section start-address stop-address disassembler-options",
        ..OBJECTS
    },
    Tool {
        names: "size",
        flags: "ABdotx",
        long: "help version common totals",
        long_valued: "format radix",
        ..OBJECTS
    },
    Tool { names: "bc", flags: "lqsw", long: "mathlib quiet standard warn version help", ..READS },
];

/// Programs that list or compare.
const LISTS: &[Tool] = &[
    Tool {
        names: "ls",
        flags: "1AaBbCcdFfGgHhiklLmNnopQqRrSsTtUuvXxZ",
        valued: "ITw",
        long: "help version all almost-all author context dereference dereference-command-line directory escape file-type \
               full-time group-directories-first hide-control-chars human-readable ignore-backups inode kibibytes literal \
               no-group numeric-uid-gid quote-name recursive reverse show-control-chars si size zero",
        long_valued: "block-size format hide ignore indicator-style quoting-style sort tabsize time time-style width",
        long_attached: "color classify hyperlink",
        recursive: "R recursive",
        operands: Operands::PathsOrHere,
        ..READS
    },
    Tool {
        names: "du",
        flags: "0abcDhHklmPsSx",
        valued: "Bdt",
        long: "help version all apparent-size bytes count-links dereference-args human-readable inodes \
               no-dereference null one-file-system separate-dirs si summarize total",
        long_valued: "block-size exclude max-depth threshold time-style",
        long_attached: "time",
        recursive: "*",
        operands: Operands::PathsOrHere,
        ..READS
    },
    Tool {
        names: "df",
        flags: "ahHiklmPTv",
        valued: "Btx",
        long: "help version all human-readable inodes local no-sync portability print-type si total",
        long_valued: "block-size exclude-type type",
        long_attached: "output",
        ..READS
    },
    Tool {
        names: "tree",
        flags: "aACdDfFghinNpqQrsStuvxJX",
        valued: "ILP",
        long: "help version dirsfirst du filesfirst gitignore ignore-case inodes matchdirs noreport prune si",
        long_valued: "filelimit timefmt",
        long_attached: "sort",
        recursive: "*",
        operands: Operands::PathsOrHere,
        ..CAREFUL
    },
    Tool {
        names: "diff",
        flags: "aBbcdEeiNnpqrsTtuwyZ",
        valued: "CFILSUWx",
        long: "help version brief expand-tabs ignore-all-space ignore-blank-lines ignore-case ignore-space-change \
               ignore-tab-expansion ignore-trailing-space left-column minimal new-file no-dereference normal rcs \
               recursive report-identical-files show-c-function side-by-side speed-large-files strip-trailing-cr \
               suppress-blank-empty suppress-common-lines text unidirectional-new-file initial-tab",
        long_valued: "exclude horizon-lines ignore-matching-lines label show-function-line starting-file tabsize width",
        long_attached: "color context unified",
        recursive: "r recursive",
        has_number: true,
        opens_links: true,
        ..CAREFUL
    },
    Tool {
        names: "sort",
        flags: "bcCdfghiMmnRrsuVz",
        valued: "kSt",
        long: "help version debug dictionary-order general-numeric-sort human-numeric-sort ignore-case \
               ignore-leading-blanks ignore-nonprinting merge month-sort numeric-sort random-sort reverse stable unique \
               version-sort zero-terminated",
        long_valued: "batch-size buffer-size field-separator key parallel sort",
        long_attached: "check",
        ..CAREFUL
    },
    Tool {
        names: "shuf",
        flags: "rz",
        valued: "in",
        long: "help version repeat zero-terminated",
        long_valued: "head-count input-range",
        ..CAREFUL
    },
    Tool {
        names: "uniq",
        flags: "cdDiuz",
        valued: "fsw",
        long: "help version count ignore-case repeated unique zero-terminated",
        long_valued: "check-chars skip-chars skip-fields",
        long_attached: "all-repeated group",
        operands: Operands::OnePath,
        ..CAREFUL
    },
];

/// Programs that search.
const SEARCHES: &[Tool] = &[
    Tool {
        names: "grep egrep fgrep",
        flags: "abcEFGhHiIlLnoPqrsTUvVwxyzZ",
        valued: "ABCDdem",
        long: "help version basic-regexp binary byte-offset count extended-regexp \
               files-with-matches files-without-match fixed-strings ignore-case initial-tab invert-match line-buffered \
               line-number line-regexp no-filename no-ignore-case no-messages null null-data only-matching perl-regexp \
               quiet recursive silent text with-filename word-regexp",
        long_valued: "after-context before-context binary-files context devices directories exclude exclude-dir \
                      group-separator include label max-count regexp",
        long_attached: "color colour",
        text_options: "e regexp",
        recursive: "r recursive d directories",
        operands: Operands::TextThenPaths,
        has_number: true,
        ..READS
    },
    Tool {
        names: "rg",
        flags: ".0abcFHhIiNnlopPqSsUuVvwx",
        valued: "ABCdEegjMmrTt",
        long: "help version binary block-buffered byte-offset case-sensitive column count count-matches crlf files \
               files-with-matches files-without-match fixed-strings heading hidden ignore-case ignore-file-case-insensitive \
               include-zero invert-match json line-buffered line-number line-regexp max-columns-preview multiline \
               multiline-dotall no-column no-config no-filename no-heading no-hidden no-ignore no-ignore-dot \
               no-ignore-exclude no-ignore-files no-ignore-global no-ignore-messages no-ignore-parent no-ignore-vcs \
               no-line-number no-messages no-unicode null null-data one-file-system only-matching passthru pcre2 \
               pcre2-version pretty quiet smart-case stats stop-on-nonmatch text trim type-list unrestricted vimgrep \
               with-filename word-regexp",
        long_valued: "after-context before-context color colors context context-separator dfa-size-limit encoding \
                      engine field-context-separator field-match-separator glob iglob max-columns max-count max-depth \
                      max-filesize path-separator regexp replace sort sortr threads type type-add type-clear type-not",
        text_options: "e regexp files type-list",
        recursive: "*",
        operands: Operands::TextThenPathsOrHere,
        ..CAREFUL
    },
    Tool {
        names: "fd fdfind",
        flags: "01aFgHIipqsu",
        valued: "cdEeSt",
        long: "help version absolute-path case-sensitive fixed-strings full-path glob hidden ignore-case no-ignore \
               no-ignore-parent no-ignore-vcs one-file-system print0 prune quiet regex unrestricted",
        long_valued: "changed-before changed-within color depth exact-depth exclude extension max-depth max-results \
                      min-depth size type",
        recursive: "*",
        operands: Operands::TextThenPathsOrHere,
        ..CAREFUL
    },
];

/// Programs that say something about words, the system or nothing at all.
const SAYINGS: &[Tool] = &[
    Tool { names: "pwd", flags: "LP", operands: Operands::None, ..SAYS },
    Tool { names: "true false : echo expr sleep factor", flags: "", ..SAYS },
    Tool {
        names: "basename",
        flags: "az",
        valued: "s",
        long: "help version multiple zero",
        long_valued: "suffix",
        ..SAYS
    },
    Tool { names: "dirname", flags: "z", long: "help version zero", ..SAYS },
    Tool {
        names: "seq",
        flags: "w",
        valued: "fs",
        long: "help version equal-width",
        long_valued: "format separator",
        ..SAYS
    },
    Tool {
        names: "tr",
        flags: "cCdst",
        long: "help version complement delete squeeze-repeats truncate-set1",
        ..SAYS
    },
    Tool { names: "which", flags: "as", long: "help version all", ..SAYS },
    Tool { names: "type", flags: "afpPt", ..SAYS },
    Tool { names: "whereis", flags: "bmsu", ..Tool { is_harmless: false, ..SAYS } },
    Tool { names: "printenv", flags: "0", long: "help version null", ..SAYS },
    Tool {
        names: "uname",
        flags: "aimnoprsv",
        long: "help version all kernel-name kernel-release machine operating-system",
        operands: Operands::None,
        ..SAYS
    },
    Tool { names: "whoami arch tty logname wait", operands: Operands::None, ..SAYS },
    Tool {
        names: "nproc",
        long: "help version all",
        long_valued: "ignore",
        operands: Operands::None,
        ..SAYS
    },
    Tool { names: "id", flags: "aGgnruzZ", long: "help version group groups name real user zero", ..SAYS },
    Tool { names: "groups", ..SAYS },
    Tool {
        names: "uptime",
        flags: "psV",
        long: "help version pretty since",
        operands: Operands::None,
        ..SAYS
    },
    Tool {
        names: "free",
        flags: "bghklmtvw",
        valued: "cs",
        long: "help version bytes giga human kibi lohi mebi mega si total wide",
        long_valued: "count seconds",
        operands: Operands::None,
        ..SAYS
    },
    Tool { names: "lscpu", flags: "aeJpx", long: "help version all json", operands: Operands::None, ..SAYS },
    Tool { names: "who", flags: "abdHlmpqrsTtu", operands: Operands::None, is_harmless: false, ..SAYS },
    Tool { names: "pgrep", flags: "aflnovwx", valued: "dgGPstuU", ..Tool { is_harmless: false, ..SAYS } },
    Tool { names: "pidof", flags: "csx", valued: "o", ..SAYS },
    Tool { names: "jobs", flags: "lnprs", ..Tool { is_harmless: false, ..SAYS } },
    Tool {
        names: "hostname",
        flags: "s",
        long: "help version short",
        operands: Operands::None,
        is_harmless: false,
        ..SAYS
    },
    Tool {
        names: "numfmt",
        long: "help version grouping",
        long_valued: "field format from from-unit padding round suffix to to-unit",
        flags: "",
        valued: "d",
        ..SAYS
    },
    Tool { names: "locale", flags: "ackm", ..SAYS },
    Tool { names: "cal", flags: "13jmsyY", ..SAYS },
    Tool {
        names: "ss",
        flags: "046aeHilmnoptsuwx",
        long: "",
        operands: Operands::None,
        ..Tool { is_harmless: false, ..SAYS }
    },
    Tool {
        names: "netstat",
        flags: "aeilnoprstuWx",
        long: "",
        operands: Operands::None,
        ..Tool { is_harmless: false, ..SAYS }
    },
    Tool { names: "getconf", flags: "a", ..SAYS },
    Tool { names: "exit break continue", ..Tool { is_harmless: false, ..SAYS } },
    Tool { names: "umask", flags: "S", operands: Operands::None, is_harmless: false, ..SAYS },
];

/// It may run a pager of somebody's choice.
pub(super) const BAT: Tool = Tool {
    names: "bat batcat",
    flags: "AnpP",
    valued: "lr",
    long: "number plain",
    long_attached: "color language line-range paging style",
    ..CAREFUL
};

/// Programs that show what is in a file, and the options with which they show something else, or more than one file.
const VIEWERS: &[(&str, &str)] = &[
    ("cat", ""),
    ("nl", ""),
    ("head", ""),
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
    let name = tool.names.split(' ').next().unwrap_or_default();
    let viewer = VIEWERS.iter().find(|(viewer, _)| *viewer == name);
    viewer.is_some_and(|(_, unless)| !parsed.has(unless) && !parsed.has("help version"))
}

const TABLES: [&[Tool]; 4] = [FILES, LISTS, SEARCHES, SAYINGS];

static KNOWN: Sieve = {
    let mut known = Sieve::EMPTY;
    let mut table = 0;
    while table < TABLES.len() {
        let mut row = 0;
        while row < TABLES[table].len() {
            known = known.with(TABLES[table][row].names);
            row += 1;
        }
        table += 1;
    }
    known
};

/// The row of a program.
pub(super) fn find(name: &str) -> Option<&'static Tool> {
    if !KNOWN.may_have(name) {
        return None;
    }
    let mut rows = TABLES.iter().flat_map(|table| table.iter());
    rows.find(|tool| has_name(tool.names, name))
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
pub(super) fn only(tool: &Tool, parsed: &Parsed<'_>) -> Option<Only> {
    let given =
        parsed.options.iter().map(|(name, value)| (name.as_str(), value.as_deref().unwrap_or_default()));
    search::only(tool.names.split(' ').next().unwrap_or_default(), given)
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

/// Programs that print their version when asked for it and do nothing else. Compilers, interpreters and what is installed with them
/// are not here: the program of that name may be a proxy (rustup, asdf, mise, volta, tfenv …) that runs what the project chooses.
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
