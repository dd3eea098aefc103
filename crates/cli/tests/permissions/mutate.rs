//! Chance that can be repeated, and texts that have been damaged by it.

/// The seed of a test, unless `WINDLASS_GUARD_SEED` names another. It is printed, so that a failure can be repeated.
pub(crate) fn seed(fixed: u64) -> u64 {
    let seed = std::env::var("WINDLASS_GUARD_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(fixed);
    println!("seed {seed}");
    seed
}

/// A generator of numbers that gives the same ones each time.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap()
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Pieces that mean something to a shell, to a pattern or to a terminal.
const PIECES: [&str; 48] = [
    " ",
    "\n",
    "\t",
    "\r",
    ";",
    "&",
    "&&",
    "||",
    "|",
    "|&",
    "(",
    ")",
    "{",
    "}",
    "$(",
    "`",
    "${a:-",
    "$'",
    "'",
    "\"",
    "\\",
    "\\\n",
    "<",
    ">",
    ">>",
    ">&",
    "<<E\n",
    "<<'E'\n",
    "<(",
    "#",
    "!",
    "*",
    "?",
    "[a",
    "]",
    "~",
    "..",
    "../",
    "/",
    "-",
    "--",
    "=",
    "$x",
    "\0",
    "\u{1b}[2K",
    "\u{202e}",
    "\u{200b}",
    "\u{a0}",
];

/// A text with a few changes: pieces put in, taken out, doubled, exchanged for those of another, and bytes turned.
pub(crate) fn mutated(rng: &mut Rng, text: &str, other: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=rng.below(4) {
        let at = rng.below(bytes.len() + 1);
        let end = at + rng.below(bytes.len() - at + 1).min(24);
        match rng.below(7) {
            0 | 1 => drop(bytes.splice(at..at, rng.pick(&PIECES).bytes())),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, piece));
            }
            4 => {
                let from = rng.below(other.len() + 1);
                let piece = other.bytes().skip(from).take(24);
                drop(bytes.splice(at..end, piece));
            }
            5 => bytes.truncate(at),
            _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << rng.below(8)),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Bytes of pure chance, read as text.
pub(crate) fn noise(rng: &mut Rng, length: usize) -> String {
    let bytes: Vec<u8> = (0..rng.below(length)).map(|_| rng.next().to_le_bytes()[0]).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
