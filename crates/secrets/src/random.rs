//! Whether a value looks as if nobody had chosen its characters.

use crate::words::WORD_BYTES_MIN;

/// What is longer is data.
const VALUE_BYTES_MAX: usize = 2048;
/// So much says enough.
const LOOKED_AT: usize = 128;

/// Whether a value is a random one. Words, numbers, paths, addresses and references to variables are not.
pub(crate) fn is_random(value: &[u8]) -> bool {
    let looked_at = &value[..value.len().min(LOOKED_AT)];
    (WORD_BYTES_MIN..=VALUE_BYTES_MAX).contains(&value.len())
        && !value.contains(&b' ')
        && !is_reference(looked_at)
        && !is_uuid(value)
        && crate::bytes::is_varied(looked_at)
        && changes_often(looked_at)
        && entropy(looked_at) >= if looked_at.len() < 20 { 2.8 } else { 3.0 }
}

/// The form of a UUID. Alone it is a name, not a secret.
pub(crate) fn is_uuid(value: &[u8]) -> bool {
    let fits = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    value.len() == 36 && value.iter().enumerate().all(fits)
}

/// Whether a value says where something is, or is a digest, or an example.
fn is_reference(value: &[u8]) -> bool {
    let begins = |prefixes: &[&[u8]]| prefixes.iter().any(|prefix| value.starts_with(prefix));
    let holds = |parts: &[&[u8]]| parts.iter().any(|part| value.windows(part.len()).any(|at| at == *part));
    begins(&[
        b"$", b"%", b"@", b"/", b"./", b"../", b"~/", b"#", b"&", b"sha1", b"sha256", b"sha384", b"sha512",
    ]) || holds(&[b"${", b"{{", b"$(", b"://", b"EXAMPLE", b"example", b"redacted"])
}

/// Words and names keep to one kind of character for a while; what is random does not. Random letters of both cases and digits
/// make pieces of 2.2 characters, two of three of them short; names make pieces of 4, few of them short.
fn changes_often(value: &[u8]) -> bool {
    let (mut letters, mut pieces, mut short) = (0_u32, 0_u32, 0_u32);
    for piece in value.chunk_by(|former, byte| continues(*former, *byte)) {
        if piece[0].is_ascii_alphanumeric() {
            letters += u32::try_from(piece.len()).unwrap_or(u32::MAX);
            pieces += 1;
            short += u32::from(piece.len() <= 2);
        }
    }
    letters * 5 <= pieces * 16 && short * 5 >= pieces * 2
}

/// Whether two characters belong to one piece: a number, or letters of one case, or a capital and what follows.
fn continues(former: u8, byte: u8) -> bool {
    (former.is_ascii_digit() && byte.is_ascii_digit())
        || (former.is_ascii_alphabetic() && byte.is_ascii_lowercase())
        || (former.is_ascii_uppercase() && byte.is_ascii_uppercase())
}

/// Bits in each byte, by how often each occurs.
fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value {
        counts[usize::from(*byte)] += 1;
    }
    let total = f64::from(u32::try_from(value.len()).unwrap_or(u32::MAX));
    let share = |count: u32| f64::from(count) / total;
    counts.into_iter().filter(|count| *count > 0).map(|count| -share(count) * share(count).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_values_are_told_from_others() {
        let check =
            |value: &str, expected: bool| assert_eq!(is_random(value.as_bytes()), expected, "{value}");
        check("q7Zx2LmV9bTr4WcN", true);
        check("wJalrXUtn5FEMI/K7MdEN3/bPxRfiCYz1", true);
        check("3f786850e387550fdab836ed7e6dc881de23001b", true);
        check("9a0364b9e99bb480dd25e1f0284c8555", true);
        check("p8#Kd!2xQz@7Lm$w", true);
        check("short1A", false);
        check("correct-horse-battery-staple", false);
        check("getAccessTokenFromSession2", false);
        check("AccessTokenV2Response32", false);
        check("xxxxxxxxxxxxxxxxxxxxxxxx", false);
        check("your_api_key_goes_here_1", false);
        check("123456789012345678901234", false);
        check("123e4567-e89b-12d3-a456-426614174000", false);
        check("process.env.SECRET_TOKEN_V2", false);
        check("${SECRET_a1B2c3D4e5F6}", false);
        check("/run/secrets/a1B2c3D4e5F6g7", false);
        check("sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU", false);
    }
}
