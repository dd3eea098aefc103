//! Lines to try: those of the corpus, those with a piece changed, and those made of pieces.

/// The seed of a test, unless `WINDLASS_SHELL_SEED` names another.
pub(crate) fn seed(fixed: u64) -> u64 {
    std::env::var("WINDLASS_SHELL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(fixed)
}

/// A generator of numbers that gives the same ones each time.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap_or(0)
    }

    pub(crate) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

const NAMES: &[&str] = &[
    "a",
    "b",
    "no",
    "x1",
    "cat",
    "ls",
    "grep",
    "echo",
    ":",
    "'a'",
    "\"b\"",
    "a\\b",
    "$V",
    "$(a)",
    "time a",
    "command b",
    "nohup a",
    "xargs a",
    "timeout 5 a",
    "[",
    "cd sub",
    "cd ..",
    "test",
    "printf",
    "!",
    "true",
    "false",
    "if",
    "do",
    "eval a",
    "{a,b}",
    "l?",
    "exec a",
    "sub/a",
];
const FRAGMENTS: &[&str] = &[
    "a",
    "b",
    "-n",
    "--",
    "x1",
    "a=b",
    "'a b'",
    "\"a b\"",
    "\"$V\"",
    "$V",
    "${V}",
    "${V:-x}",
    "${V%x}",
    "$(b a)",
    "\"$(b a)\"",
    "*",
    "?",
    "[ab]",
    "sub/*",
    "~",
    "~/a",
    "{~/a,b}",
    "{,x}~/a",
    "{a}*",
    "[[:lower:]]",
    "['!'x]",
    "é?",
    "~x",
    "a~",
    "a=~",
    "{a,b}",
    "{1..3}",
    "{a",
    "}",
    "{}",
    ",",
    "#",
    "a#b",
    "!",
    "\\\n",
    "\\ ",
    "\\*",
    "\\$V",
    "$",
    "$'a\\tb'",
    "$\"a\"",
    "`b a`",
    "''",
    "\"\"",
    "$?",
    "$#",
    "$@",
    "\"$@\"",
    "$HOME/a",
    "\"$PWD\"/b",
    "é",
    "\"a`b`\"",
    "\"\\$V\"",
    "$((1+1))",
    "<(a)",
    "%",
    "^",
    "@",
    "+",
    ":",
    ".",
    "..",
    "/dev/null",
    "]",
    "]]",
    "-f",
    "-eq",
    "=",
    "==",
    "in",
    "do",
    "done",
    "then",
    "fi",
    "esac",
    "\"'\"",
    "'\"'",
    "\t",
];
const REDIRECTIONS: &[&str] = &[
    "> out",
    ">> out",
    "2> out",
    "< a",
    "2>&1",
    ">&2",
    "&> out",
    "> /dev/null",
    "2>/dev/null",
    "<<< 'a b'",
    "<<< $V",
    "> $V",
    "> \"out\"",
    ">| out",
    "<> out",
    "1>&-",
    "3< a",
    "> *",
    "< <(a)",
    ">&out",
    "{v}> out",
    "&>> out",
    "2>>out",
];
const JOINTS: &[&str] = &[
    " ; ", ";", " && ", "&&", " || ", " | ", "|", " |& ", " & ", "\n", " && \\\n", "\n\n", " # x\n", ";;",
    " ;& ", "&", "\n# y\n",
];
const RAW: &[&str] = &[
    "a",
    "b",
    " ",
    " ",
    "'",
    "\"",
    "\\",
    "$",
    "(",
    ")",
    "{",
    "}",
    ";",
    "&",
    "|",
    "<",
    ">",
    "\n",
    "`",
    "#",
    "!",
    "*",
    "[",
    "]",
    "=",
    "~",
    "$(",
    "${",
    "$((",
    "<<a",
    "<<'a'",
    "\na\n",
    "if ",
    "; then ",
    "; fi",
    "for x in ",
    "; do ",
    "; done",
    "case a in ",
    ") ",
    ";; ",
    " esac",
    "{ ",
    "; }",
    "a() ",
    "[[ ",
    " ]]",
    "é",
    "\t",
    "$'",
    "&&",
    "||",
    "2>",
    "&>",
    ">&",
    "<(",
    "@(",
    "a=",
    "a=(",
    "$V",
    "${V",
    ":-",
];

/// The lines of a file of the corpus; one `¶` stands for a line break.
pub(crate) fn read(file: &str) -> Vec<String> {
    file.lines().filter(|line| !line.is_empty()).map(|line| line.replace('¶', "\n")).collect()
}

/// The lines of the whole corpus.
pub(crate) fn corpus() -> Vec<String> {
    let files = [
        include_str!("../corpus/harmless.txt"),
        include_str!("../corpus/attacks.txt"),
        include_str!("../corpus/odd.txt"),
    ];
    files.iter().flat_map(|file| read(file)).collect()
}

pub(crate) fn generate(rng: &mut Rng, corpus: &[String]) -> String {
    match rng.below(10) {
        0 => (0..rng.below(12)).map(|_| rng.pick(RAW)).collect(),
        1 | 2 => mutate(rng, corpus),
        _ => list(rng, 0),
    }
}

/// A line of the corpus with a piece put in, taken out or doubled.
fn mutate(rng: &mut Rng, corpus: &[String]) -> String {
    let mut chars: Vec<char> = corpus[rng.below(corpus.len())].chars().collect();
    for _ in 0..=rng.below(3) {
        let at = rng.below(chars.len() + 1);
        if rng.chance(50) {
            let piece: Vec<char> = rng.pick(RAW).chars().collect();
            chars.splice(at..at, piece);
        } else if at < chars.len() {
            chars.remove(at);
        }
    }
    let line: String = chars.into_iter().collect();
    // Nothing outside the jail is named, whatever the line turned into.
    if line.contains('/') || line.contains("..") { line.replace('/', "_").replace("..", "_") } else { line }
}

fn list(rng: &mut Rng, depth: usize) -> String {
    let mut text = String::new();
    for at in 0..=rng.below(3) {
        if at > 0 {
            text.push_str(rng.pick(JOINTS));
        }
        text.push_str(&command(rng, depth));
    }
    text
}

fn command(rng: &mut Rng, depth: usize) -> String {
    if depth < 3 && rng.chance(25) {
        let inner = list(rng, depth + 1);
        let other = command(rng, depth + 1);
        let tail = if rng.chance(20) { rng.pick(REDIRECTIONS) } else { "" };
        let text = match rng.below(10) {
            0 => format!("({inner}) {tail}"),
            1 => format!("{{ {inner}; }} {tail}"),
            2 => format!("if {other}; then {inner}; fi"),
            3 => format!("if {other}; then {inner}; else {other}; fi {tail}"),
            4 => format!("for x in {} {}; do {inner}; done", word(rng), word(rng)),
            5 => format!("while {other} && no; do {inner}; done {tail}"),
            6 => format!("case {} in a) {inner};; {}|b) {other};; esac", word(rng), word(rng)),
            7 => format!("a \"$({inner})\" {}", word(rng)),
            8 => format!("b $({inner})"),
            _ => format!(
                "[[ {} {} {} ]]",
                word(rng),
                rng.pick(&["==", "!=", "=", "&&", "-eq", "=~"]),
                word(rng)
            ),
        };
        return text;
    }
    if rng.chance(8) {
        let quote = rng.pick(&["'END'", "END", "\"END\"", "\\END"]);
        return document(rng, quote);
    }
    let mut text = String::new();
    if rng.chance(8) {
        text.push_str(rng.pick(&["NODE_ENV=x ", "X=1 ", "LANG=C ", "X=$(a) ", "A+=1 ", "CI= ", "TZ=UTC "]));
    }
    if rng.chance(5) {
        text.push_str(rng.pick(REDIRECTIONS));
        text.push(' ');
    }
    text.push_str(rng.pick(NAMES));
    for _ in 0..rng.below(4) {
        text.push(' ');
        text.push_str(&word(rng));
    }
    if rng.chance(20) {
        text.push(' ');
        text.push_str(rng.pick(REDIRECTIONS));
    }
    text
}

fn word(rng: &mut Rng) -> String {
    (0..=rng.below(3).saturating_sub(1)).map(|_| rng.pick(FRAGMENTS)).collect()
}

/// A here document, now and then inside a substitution, with lines that look like its end.
fn document(rng: &mut Rng, quote: &str) -> String {
    let bodies = [
        "text\n",
        "$(a x)\n",
        "it's $V\n",
        "`b`\n",
        "",
        "a \\\nb\n",
        " END\n",
        "ENDb x)\n",
        "END b)\n",
        "END;b)\n",
        "x END\n",
        "\tEND\n",
        ")\n",
    ];
    let body = rng.pick(&bodies);
    let dash = rng.pick(&["", "", "-"]);
    let name = rng.pick(&["cat", "cat", "a", "b"]);
    let tail = rng.pick(&["", "", " x", " | b", " > out", " && a", "; b"]);
    let text = format!("{name} <<{dash}{quote}{tail}\n{body}END\n");
    match rng.below(4) {
        0 => format!("a \"$({text})\" x"),
        1 => format!("a <({text}) x"),
        2 => format!("({text})"),
        _ => text,
    }
}
