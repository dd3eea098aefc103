//! The colours of the page have enough contrast, in light and in dark.

use std::collections::BTreeMap;

type Colour = [f64; 3];

/// The variables of a block of the style that hold a colour.
fn colours(block: &str) -> BTreeMap<String, Colour> {
    let declared = block.split(';').filter_map(|line| line.trim().split_once(": #"));
    let parse =
        |hex: &str| [0, 2, 4].map(|at| f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0);
    declared.map(|(name, hex)| (name.trim().trim_start_matches("--").to_owned(), parse(hex.trim()))).collect()
}

fn luminance(colour: Colour) -> f64 {
    let linear =
        colour.map(|part| if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) });
    0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
}

fn contrast(a: Colour, b: Colour) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn mixed(colour: Colour, share: f64, paper: Colour) -> Colour {
    [0, 1, 2].map(|at| colour[at] * share + paper[at] * (1.0 - share))
}

#[test]
fn text_and_signs_stand_out_in_light_and_dark() {
    let style = include_str!("../../src/page/style.css");
    let blocks: Vec<&str> =
        style.split(":root {").skip(1).map(|block| block.split('}').next().unwrap()).collect();
    assert_eq!(blocks.len(), 2, "light and dark");
    for (block, tint) in blocks.iter().zip([0.15 + 0.14, 0.20 + 0.14]) {
        let colours = colours(block);
        let (paper, panel, ink) = (colours["paper"], colours["panel"], colours["ink"]);
        let hues = ["blue", "teal", "amber", "violet", "red", "slate", "rose", "olive"];
        for name in ["ink", "dim"].into_iter().chain(hues) {
            for ground in [paper, panel] {
                let seen = contrast(colours[name], ground);
                assert!(seen >= 4.5, "{name}: {seen:.2}");
            }
        }
        for name in hues {
            let seen = contrast(ink, mixed(colours[name], tint, paper));
            assert!(seen >= 4.5, "text on {name}: {seen:.2}");
        }
    }
}
