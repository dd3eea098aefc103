//! The page's own rule for browsers: load nothing, and run no script but the one named here by its hash. Should a text of
//! the session ever become markup, it still cannot act.

/// The policy for a page with this script.
pub(crate) fn policy(script: &str) -> String {
    let hash = base64(&sha256(script.as_bytes()));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"
    )
}

const FIRST: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// The first 32 bits of the fractions of the cube roots of the first 64 primes.
fn round_constants() -> [u32; 64] {
    let mut constants = [0; 64];
    let is_prime = |n: &u64| (2..*n).all(|divisor| !n.is_multiple_of(divisor));
    let primes = (2_u64..).filter(is_prime);
    for (constant, prime) in constants.iter_mut().zip(primes) {
        *constant = cube_root_fraction(prime);
    }
    constants
}

/// Bit by bit: the largest number whose cube is at most the prime, in units of 2^-32.
fn cube_root_fraction(prime: u64) -> u32 {
    let goal = u128::from(prime) << 96;
    let mut root = 0_u128;
    for bit in (0..36).rev() {
        let next = root | (1 << bit);
        if next * next * next <= goal {
            root = next;
        }
    }
    u32::try_from(root & 0xffff_ffff).unwrap_or_default()
}

fn sha256(message: &[u8]) -> [u8; 32] {
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - message.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let length = padded.len();
    padded[length - 8..].copy_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    let constants = round_constants();
    let state = padded.chunks_exact(64).fold(FIRST, |state, chunk| compress(state, chunk, &constants));
    let mut hash = [0; 32];
    for (bytes, word) in hash.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    hash
}

fn compress(state: [u32; 8], chunk: &[u8], constants: &[u32; 64]) -> [u32; 8] {
    let mut words = [0_u32; 64];
    for (word, bytes) in words.iter_mut().zip(chunk.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, byte| (word << 8) | u32::from(*byte));
    }
    for at in 16..64 {
        let (early, late) = (words[at - 15], words[at - 2]);
        let small = early.rotate_right(7) ^ early.rotate_right(18) ^ (early >> 3);
        let large = late.rotate_right(17) ^ late.rotate_right(19) ^ (late >> 10);
        words[at] = words[at - 16].wrapping_add(small).wrapping_add(words[at - 7]).wrapping_add(large);
    }
    let mut now = state;
    for (word, constant) in words.iter().zip(constants) {
        let choice = (now[4] & now[5]) ^ (!now[4] & now[6]);
        let majority = (now[0] & now[1]) ^ (now[0] & now[2]) ^ (now[1] & now[2]);
        let turned_late = now[4].rotate_right(6) ^ now[4].rotate_right(11) ^ now[4].rotate_right(25);
        let turned_early = now[0].rotate_right(2) ^ now[0].rotate_right(13) ^ now[0].rotate_right(22);
        let sum = now[7].wrapping_add(turned_late).wrapping_add(choice);
        let first = sum.wrapping_add(*constant).wrapping_add(*word);
        now.rotate_right(1);
        now[0] = first.wrapping_add(turned_early).wrapping_add(majority);
        now[4] = now[4].wrapping_add(first);
    }
    let mut sums = state;
    for (sum, more) in sums.iter_mut().zip(now) {
        *sum = sum.wrapping_add(more);
    }
    sums
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group =
            (0..3).fold(0_usize, |group, at| group << 8 | usize::from(chunk.get(at).copied().unwrap_or(0)));
        for place in 0..4 {
            let letter = LETTERS[group >> (18 - 6 * place) & 63];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_standard() {
        let check = |text: &str, expected: &str| assert_eq!(base64(&sha256(text.as_bytes())), expected);
        check("", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        check("abc", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
        check(&"a".repeat(56), "s1Q5pKxvCUi21vnjxq8PX1kM4g8b3nCQ73lwaG7Gc4o=");
        check(&"a".repeat(64), "/+BU/nrgy23GXDr5th1SCfQ5hR20PQulmXM33xVGaOs=");
        check(&"a".repeat(119), "MeulHDE6XAgiat8Y1KNZz9/Y0ugWsT9K+VL36mWE3Ps=");
    }
}
