//! From the names of glyphs to the characters they show.

/// Base letters and the same letters with the accent.
const ACCENTS: &[(&str, &str, &str)] = &[
    ("acute", "AEIOUYaeiouyCcLlNnRrSsZz", "ÁÉÍÓÚÝáéíóúýĆćĹĺŃńŔŕŚśŹź"),
    ("grave", "AEIOUaeiou", "ÀÈÌÒÙàèìòù"),
    ("circumflex", "AEIOUaeiouGgJjSsWwYy", "ÂÊÎÔÛâêîôûĜĝĴĵŜŝŴŵŶŷ"),
    ("dieresis", "AEIOUYaeiouy", "ÄËÏÖÜŸäëïöüÿ"),
    ("tilde", "ANOano", "ÃÑÕãñõ"),
    ("caron", "CDENRSTZcdenrstz", "ČĎĚŇŘŠŤŽčďěňřšťž"),
    ("cedilla", "CScs", "ÇŞçş"),
    ("ogonek", "AEae", "ĄĘąę"),
    ("ring", "AUau", "ÅŮåů"),
    ("slash", "Oo", "Øø"),
    ("hungarumlaut", "OUou", "ŐŰőű"),
    ("dotaccent", "Zz", "Żż"),
];

/// Pairs of a name and what it shows, apart from the blanks.
const NAMES: &str = r#"
    exclam !  quotedbl "  numbersign #  dollar $  percent %  ampersand &  quotesingle '  parenleft (
    parenright )  asterisk *  plus +  comma ,  hyphen -  minus −  period .  slash /  zero 0  one 1
    two 2  three 3  four 4  five 5  six 6  seven 7  eight 8  nine 9  colon :  semicolon ;  less <
    equal =  greater >  question ?  at @  bracketleft [  backslash \  bracketright ]  asciicircum ^
    underscore _  grave `  braceleft {  bar |  braceright }  asciitilde ~  quoteleft ‘  quoteright ’
    quotesinglbase ‚  quotedblleft “  quotedblright ”  quotedblbase „  guillemotleft «  guillemotright »
    guilsinglleft ‹  guilsinglright ›  endash –  emdash —  bullet •  ellipsis …  periodcentered ·
    degree °  section §  paragraph ¶  copyright ©  registered ®  trademark ™  dagger †  daggerdbl ‡
    multiply ×  divide ÷  plusminus ±  lessequal ≤  greaterequal ≥  notequal ≠  mu µ  Euro €  sterling £
    yen ¥  cent ¢  germandbls ß  ae æ  AE Æ  oe œ  OE Œ  eth ð  Eth Ð  thorn þ  Thorn Þ  lslash ł
    Lslash Ł  dotlessi ı  exclamdown ¡  questiondown ¿  ff ff  fi fi  fl fl  ffi ffi  ffl ffl
    arrowright →  arrowleft ←  checkmark ✓
"#;

/// The text of a glyph by its name, such as `eacute`, `uni20AC` or `f_i`.
pub(super) fn text(name: &str) -> Option<String> {
    // Variants such as `a.sc` show the same character.
    let name = name.split_once('.').map_or(name, |(name, _)| name);
    if name.contains('_') {
        return name.split('_').map(text).collect();
    }
    let mut characters = name.chars();
    if let (Some(letter), None) = (characters.next(), characters.next()) {
        return Some(letter.to_string());
    }
    listed_glyph(name).map(str::to_owned).or_else(|| accented_letter(name)).or_else(|| by_number(name))
}

fn listed_glyph(name: &str) -> Option<&'static str> {
    if matches!(name, "space" | "nbspace") {
        return Some(" ");
    }
    let mut words = NAMES.split_whitespace();
    while let (Some(listed), Some(text)) = (words.next(), words.next()) {
        if listed == name {
            return Some(text);
        }
    }
    None
}

fn accented_letter(name: &str) -> Option<String> {
    let base = name.chars().next()?;
    let (_, bases, letters) = ACCENTS.iter().find(|(accent, ..)| &name[base.len_utf8()..] == *accent)?;
    let at = bases.chars().position(|letter| letter == base)?;
    letters.chars().nth(at).map(String::from)
}

fn by_number(name: &str) -> Option<String> {
    let digits = name.strip_prefix("uni").or_else(|| name.strip_prefix('u'))?;
    let number = u32::from_str_radix(digits, 16).ok().filter(|_| digits.len() >= 4)?;
    char::from_u32(number).map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_text() {
        let check =
            |name: &str, expected: Option<&str>| assert_eq!(text(name).as_deref(), expected, "{name}");
        check("A", Some("A"));
        check("eacute", Some("é"));
        check("Zcaron", Some("Ž"));
        check("fi", Some("fi"));
        check("f_f_i", Some("ffi"));
        check("one.oldstyle", Some("1"));
        check("uni20AC", Some("€"));
        check("u1F600", Some("😀"));
        check("union", None);
        check("g123", None);
    }

    #[test]
    fn accents_pair_up() {
        for (accent, bases, letters) in ACCENTS {
            assert_eq!(bases.chars().count(), letters.chars().count(), "{accent}");
        }
    }
}
