//! A strict reader of markup: stricter than browsers, which forgive what these pages must not need forgiven.

use std::collections::BTreeSet;

/// Elements without content.
const VOID: [&str; 3] = ["meta", "input", "br"];

/// What a page consists of.
#[derive(Debug, Default)]
pub(crate) struct Markup {
    pub(crate) ids: BTreeSet<String>,
    pub(crate) links: Vec<String>,
    pub(crate) elements: Vec<String>,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) text: String,
}

/// Reads a page, or says what is wrong with it.
pub(crate) fn read(page: &str) -> Result<Markup, String> {
    let mut markup = Markup::default();
    let mut open: Vec<String> = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>\n").ok_or("no doctype")?;
    while let Some(at) = rest.find('<') {
        let (text, tag) = rest.split_at(at);
        check_text(text)?;
        markup.text.push_str(text);
        let end = tag.find('>').ok_or("a tag without an end")?;
        let (inside, after) = (&tag[1..end], &tag[end + 1..]);
        rest = after;
        if let Some(name) = inside.strip_prefix('/') {
            let last = open.pop().unwrap_or_default();
            if last != name {
                return Err(format!("</{name}> closes <{last}> before {rest:.60}"));
            }
            continue;
        }
        let name = element(inside, &mut markup)?;
        if name == "script" || name == "style" {
            let close = format!("</{name}>");
            let end = rest.find(&close).ok_or("a script without an end")?;
            rest = &rest[end + close.len()..];
            continue;
        }
        if !VOID.contains(&&*name) && !inside.ends_with('/') {
            open.push(name);
        }
    }
    check_text(rest)?;
    if open.is_empty() { Ok(markup) } else { Err(format!("left open: {open:?}")) }
}

/// Text between tags: no stray ends of tags, and `&` only in references.
fn check_text(text: &str) -> Result<(), String> {
    if text.contains('>') {
        return Err(format!("a stray > in {text:.60}"));
    }
    check_references(text)
}

fn check_references(text: &str) -> Result<(), String> {
    let known = ["amp;", "lt;", "gt;", "quot;", "#39;"];
    let stray = text.split('&').skip(1).find(|rest| !known.iter().any(|name| rest.starts_with(name)));
    stray.map_or(Ok(()), |rest| Err(format!("a stray & before {rest:.40}")))
}

/// The name of an element; its attributes are noted. Each has a quoted value or none.
fn element(inside: &str, markup: &mut Markup) -> Result<String, String> {
    let inside = inside.trim_end_matches('/');
    let (name, mut rest) = inside.split_once(' ').unwrap_or((inside, ""));
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if !is_name(name) {
        return Err(format!("no name of an element: <{inside:.60}>"));
    }
    markup.elements.push(name.to_owned());
    while !rest.trim().is_empty() {
        rest = rest.trim_start();
        let end = rest.find(['=', ' ']).unwrap_or(rest.len());
        let (attribute, after) = rest.split_at(end);
        if !is_name(attribute) {
            return Err(format!("no name of an attribute: {attribute:?} in <{inside:.80}>"));
        }
        let Some(value) = after.strip_prefix("=\"") else {
            rest = after;
            continue;
        };
        let (value, after) =
            value.split_once('"').ok_or_else(|| format!("a value without an end in <{inside:.80}>"))?;
        check_references(value)?;
        note(attribute, value, markup)?;
        rest = after;
    }
    Ok(name.to_owned())
}

fn note(attribute: &str, value: &str, markup: &mut Markup) -> Result<(), String> {
    match attribute {
        "id" if !markup.ids.insert(value.to_owned()) => {
            return Err(format!("two elements with the id {value}"));
        }
        "href" => markup.links.push(value.to_owned()),
        _ => {}
    }
    markup.attributes.push((attribute.to_owned(), value.to_owned()));
    Ok(())
}

#[test]
fn bad_markup_is_found() {
    let check = |body: &str, expected: &str| {
        let error = read(&format!("<!DOCTYPE html>\n{body}")).err().unwrap_or_default();
        assert!(error.contains(expected) && error.is_empty() == expected.is_empty(), "{body}: {error}");
    };
    check("<p class=\"a\">x &amp; y</p>", "");
    check("<p>x</b>", "closes <p>");
    check("<p>", "left open");
    check("<p>a & b</p>", "stray &");
    check("<p>a > b</p>", "stray >");
    check("<p title='x'>y</p>", "no name of an attribute");
    check("<p id=\"a\"></p><p id=\"a\"></p>", "two elements");
    check("<p on<x=\"1\">y</p>", "no name of an attribute");
    check("<p a=\"1\"b>y</p>", "");
}
