//! The table in a font that says which text its codes stand for.

use std::collections::HashMap;

/// Entries beyond this are left out: more codes than a font can have.
const ENTRIES_MAX: usize = 70_000;

/// From codes to text.
#[derive(Debug, Default)]
pub(super) struct CMap {
    single: HashMap<u32, String>,
    /// First code, last code, text of the first.
    ranges: Vec<(u32, u32, String)>,
    /// Bytes per code, if the table says.
    pub(super) code_bytes: Option<usize>,
}

enum Token<'a> {
    Hex(Vec<u8>),
    Open,
    Close,
    Word(&'a [u8]),
}

impl CMap {
    pub(super) fn parse(content: &[u8]) -> Self {
        let mut map = Self::default();
        let mut operands = Vec::new();
        for token in tokens(content) {
            match token {
                Token::Word(b"endbfchar") => map.add_singles(&operands),
                Token::Word(b"endbfrange") => map.add_ranges(&operands),
                Token::Word(b"endcodespacerange") => map.add_code_space(&operands),
                Token::Word(_) => {}
                operand => {
                    if operands.len() < ENTRIES_MAX {
                        operands.push(operand);
                    }
                    continue;
                }
            }
            operands.clear();
        }
        map
    }

    pub(super) fn text(&self, code: u32) -> Option<String> {
        if let Some(text) = self.single.get(&code) {
            return Some(text.clone());
        }
        let (first, _, text) =
            self.ranges.iter().find(|(first, last, _)| (*first..=*last).contains(&code))?;
        let mut characters: Vec<char> = text.chars().collect();
        let last = characters.last_mut()?;
        *last = char::from_u32(u32::from(*last) + (code - first))?;
        Some(characters.into_iter().collect())
    }

    fn is_full(&self) -> bool {
        self.single.len() + self.ranges.len() >= ENTRIES_MAX
    }

    fn add_singles(&mut self, operands: &[Token<'_>]) {
        for pair in operands.chunks_exact(2) {
            if let [Token::Hex(from), Token::Hex(to)] = pair
                && !self.is_full()
            {
                self.single.insert(code(from), utf16(to));
            }
        }
    }

    fn add_ranges(&mut self, operands: &[Token<'_>]) {
        let mut operands = operands.iter();
        while let (Some(Token::Hex(first)), Some(Token::Hex(last))) = (operands.next(), operands.next()) {
            let (first, last) = (code(first), code(last));
            match operands.next() {
                Some(Token::Hex(text)) if !self.is_full() => self.ranges.push((first, last, utf16(text))),
                Some(Token::Open) => self.add_list(first, &mut operands),
                _ => return,
            }
        }
    }

    /// Texts of codes that follow one another.
    fn add_list<'t, 'a: 't>(&mut self, first: u32, operands: &mut impl Iterator<Item = &'t Token<'a>>) {
        for code in first.. {
            match operands.next() {
                Some(Token::Hex(text)) if !self.is_full() => self.single.insert(code, utf16(text)),
                _ => return,
            };
        }
    }

    fn add_code_space(&mut self, operands: &[Token<'_>]) {
        if let Some(Token::Hex(first)) = operands.first() {
            self.code_bytes = Some(first.len().clamp(1, 4));
        }
    }
}

fn code(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |code, byte| code << 8 | u32::from(*byte))
}

fn utf16(bytes: &[u8]) -> String {
    encoding_rs::UTF_16BE.decode_without_bom_handling(bytes).0.into_owned()
}

/// Words, brackets and hexadecimal strings; everything else is passed over.
fn tokens(mut content: &[u8]) -> impl Iterator<Item = Token<'_>> {
    std::iter::from_fn(move || {
        loop {
            let (&byte, rest) = content.split_first()?;
            match byte {
                b'<' if rest.first() == Some(&b'<') => content = &rest[1..],
                b'<' => {
                    let end = memchr::memchr(b'>', rest)?;
                    content = &rest[end + 1..];
                    return Some(Token::Hex(hex(&rest[..end])));
                }
                b'[' | b']' => {
                    content = rest;
                    return Some(if byte == b'[' { Token::Open } else { Token::Close });
                }
                b'%' => content = &rest[memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len())..],
                _ if byte.is_ascii_alphabetic() => {
                    let end = content.iter().position(|byte| !byte.is_ascii_alphanumeric());
                    let (word, rest) = content.split_at(end.unwrap_or(content.len()));
                    content = rest;
                    return Some(Token::Word(word));
                }
                _ => content = rest,
            }
        }
    })
}

fn hex(digits: &[u8]) -> Vec<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let digits: Vec<u8> = digits.iter().filter_map(digit).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_become_text() {
        let map = CMap::parse(
            b"/CIDInit /ProcSet findresource begin 1 begincodespacerange <0000> <FFFF> endcodespacerange\n\
              2 beginbfchar <0003> <0041> <0004> <00660066> endbfchar % comment <0005>\n\
              2 beginbfrange <0010> <0012> <0061> <0020><0021>[<0058> <D83DDE00>] endbfrange",
        );
        let check =
            |code, expected: Option<&str>| assert_eq!(map.text(code).as_deref(), expected, "{code:x}");
        assert_eq!(map.code_bytes, Some(2));
        check(3, Some("A"));
        check(4, Some("ff"));
        check(5, None);
        check(0x12, Some("c"));
        check(0x20, Some("X"));
        check(0x21, Some("😀"));
    }
}
