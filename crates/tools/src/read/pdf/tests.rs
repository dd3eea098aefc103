use super::*;
use crate::fixture::{Fixture, structured, text};
use crate::read::{ReadInput, ReadLimits, read};

/// A PDF of these objects, the first of which is the catalog. Objects are numbered from 1.
fn pdf(objects: &[Vec<u8>]) -> Vec<u8> {
    pdf_with(objects, "")
}

/// As [`pdf`], with more in its trailer.
fn pdf_with(objects: &[Vec<u8>], more: &str) -> Vec<u8> {
    let mut bytes = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec();
    let mut offsets = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        offsets.push(bytes.len());
        bytes.extend_from_slice(format!("{} 0 obj\n", index + 1).as_bytes());
        bytes.extend_from_slice(object);
        bytes.extend_from_slice(b"\nendobj\n");
    }
    let table = bytes.len();
    bytes.extend_from_slice(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).as_bytes());
    for offset in offsets {
        bytes.extend_from_slice(format!("{offset:010} 00000 n \n").as_bytes());
    }
    let size = objects.len() + 1;
    let trailer = format!("trailer\n<< /Size {size} /Root 1 0 R {more} >>\nstartxref\n{table}\n%%EOF\n");
    bytes.extend_from_slice(trailer.as_bytes());
    bytes
}

fn stream(dict: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = format!("<< {dict} /Length {} >>\nstream\n", content.len()).into_bytes();
    bytes.extend_from_slice(content);
    bytes.extend_from_slice(b"\nendstream");
    bytes
}

fn deflate(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, content).unwrap();
    encoder.finish().unwrap()
}

/// Fonts: `/A` plain, `/B` with a table of its own. A form `/X` says "in a form".
fn document(pages: &[&str]) -> Vec<u8> {
    pdf(&objects(pages))
}

fn objects(pages: &[&str]) -> Vec<Vec<u8>> {
    let kids = (0..pages.len()).map(|page| format!("{} 0 R ", 7 + page * 2)).collect::<Vec<_>>().concat();
    let table = b"1 begincodespacerange <0000> <ffff> endcodespacerange 2 beginbfchar <0001> <65e5> <0002> <672c> endbfchar";
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", pages.len()).into_bytes(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding << /BaseEncoding /WinAnsiEncoding /Differences \
          [1 /fi /eacute] >> >>"
            .to_vec(),
        b"<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 5 0 R /DescendantFonts [<< /Subtype \
          /CIDFontType2 /DW 1000 >>] >>"
            .to_vec(),
        stream("/Filter /FlateDecode", &deflate(table)),
        stream(
            "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /Font << /A 3 0 R >> >>",
            b"BT /A 10 Tf 50 500 Td (in a form) Tj ET",
        ),
    ];
    for (index, content) in pages.iter().enumerate() {
        let resources = "<< /Font << /A 3 0 R /B 4 0 R >> /XObject << /X 6 0 R >> >>";
        let next = 8 + index * 2;
        objects.push(
            format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources {resources} /Contents {next} 0 R >>")
                .into_bytes(),
        );
        objects.push(stream("/Filter /FlateDecode", &deflate(content.as_bytes())));
    }
    objects
}

fn ask(
    content: &[u8],
    pages: Option<&str>,
    limits: ReadLimits,
) -> Result<windlass_protocol::ToolOutput, String> {
    let fixture = Fixture::new(&[("doc.pdf", content)]);
    let input =
        ReadInput { file_path: "doc.pdf".into(), pages: pages.map(str::to_owned), ..ReadInput::default() };
    read(&input, &fixture.context(&[]), limits)
}

fn check(page: &str, expected: &str) {
    let outcome = ask(&document(&[page]), None, ReadLimits::default()).unwrap();
    assert_eq!(text(&outcome), format!("--- page 1 of 1 ---\n{expected}"));
}

#[test]
fn words_and_lines() {
    check("BT /A 12 Tf 72 700 Td (Hello world) Tj 0 -14 Td (second line) Tj ET", "Hello world\nsecond line");
    check("BT /A 12 Tf 72 700 Td (first) Tj 0 -40 Td (next paragraph) Tj ET", "first\n\nnext paragraph");
    check("BT /A 12 Tf 14 TL 72 700 Td (a) Tj T* (b) Tj (c) ' ET", "a\nb\nc");
    check("BT /A 12 Tf 72 700 Td [(ke) 20 (rned) -300 (words)] TJ ET", "kerned words");
    check("BT /A 12 Tf 72 700 Td (\\001ne caf\\002 \\223quoted\\224) Tj ET", "fine café “quoted”");
    // Words placed one by one: "illicit" is narrow and "WWW" is wide, but both end where a word ends.
    check("BT /A 10 Tf 72 700 Td (illicit) Tj 27.5 0 Td (WWW) Tj 31 0 Td (x) Tj ET", "illicit WWW x");
    check("BT /B 12 Tf 72 700 Td <00010002> Tj ET", "日本");
    check("BT /A 1 Tf 12 0 0 12 72 700 Tm (scaled) Tj 1 0 0 1 72 600 Tm (far) Tj ET", "scaled\n\nfar");
    check("q 1 0 0 1 0 100 cm BT /A 12 Tf 72 600 Td (moved) Tj ET Q /X Do", "moved\n\nin a form");
    check(
        "0 0 m 10 10 l S",
        "[No text on this page. It may be a scan; convert it to an image through Bash to see it.]",
    );
}

#[test]
fn pages_are_chosen() {
    let pages: Vec<String> = (1..=30).map(|n| format!("BT /A 12 Tf 72 700 Td (text {n}) Tj ET")).collect();
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let (few, many) = (document(&pages[..10]), document(&pages));
    let shown =
        |content: &[u8], pages| ask(content, pages, ReadLimits::default()).map(|outcome| text(&outcome));
    assert!(shown(&few, None).unwrap().ends_with("--- page 10 of 10 ---\ntext 10"));
    assert!(shown(&many, None).unwrap_err().contains("has 30 pages. Choose some with `pages`"));
    assert_eq!(
        shown(&many, Some("3-4")).unwrap(),
        "--- page 3 of 30 ---\ntext 3\n\n--- page 4 of 30 ---\ntext 4"
    );
    assert_eq!(shown(&many, Some("30")).unwrap(), "--- page 30 of 30 ---\ntext 30");
    assert_eq!(shown(&many, Some("30-40")).unwrap(), "--- page 30 of 30 ---\ntext 30");
    assert!(shown(&many, Some("31")).unwrap_err().contains("has only 30 pages"));
    let json = structured(&ask(&many, Some("3-4"), ReadLimits::default()).unwrap());
    assert_eq!((&json["type"], &json["file"]["pageCount"]), (&"pdf".into(), &30.into()));
    assert_eq!((&json["file"]["firstPage"], &json["file"]["lastPage"]), (&3.into(), &4.into()));
}

#[test]
fn long_documents_are_cut_at_a_page() {
    let page = format!("BT /A 12 Tf 72 700 Td ({}) Tj ET", "word ".repeat(50));
    let content = document(&[&page, &page, &page]);
    let limits = ReadLimits { tokens_max: 160, ..ReadLimits::default() };
    let shown = text(&ask(&content, None, limits).unwrap());
    assert!(
        shown.contains("[PARTIAL view: pages 1-2 of 3;") && shown.ends_with("pages \"3-3\".]"),
        "{shown}"
    );
}

#[test]
fn ranges() {
    let check = |text: &str, expected: Result<(usize, usize), &str>| match (PageRange::parse(text), expected)
    {
        (Ok(range), Ok(expected)) => assert_eq!((range.first, range.last), expected),
        (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
        (range, _) => panic!("{text}: {range:?}"),
    };
    check("5", Ok((5, 5)));
    check(" 3 - 7 ", Ok((3, 7)));
    check("1-20", Ok((1, 20)));
    check("1-21", Err("at most 20 pages"));
    check("7-3", Err("ends before it begins"));
    check("0", Err("give a page"));
    check("1,3", Err("give a page"));
    check("", Err("give a page"));
}

#[test]
fn broken_and_absurd_files_are_refused() {
    let refuse = |content: &[u8], expected: &str| {
        let error = ask(content, None, ReadLimits::default()).unwrap_err();
        assert!(error.contains(expected) && error.contains("doc.pdf"), "{error}");
    };
    refuse(b"%PDF-1.7\nnothing else", "damaged PDF");
    let bomb = deflate(&vec![0; usize::try_from(STREAM_BYTES_MAX).unwrap() + 10]);
    refuse(&pdf(&[stream("/Filter /FlateDecode", &bomb)]), "unpacks to a huge size");
    let picture = pdf(&[stream("/Subtype /Image /Filter /FlateDecode", &bomb)]);
    assert_eq!(check_streams(&picture, &CancellationToken::new()), Ok(()), "nobody unpacks it");
    let bomb = deflate(&vec![0; usize::try_from(PICTURE_BYTES_MAX).unwrap() + 10]);
    refuse(&pdf(&[stream("/Subtype /Image /Filter /FlateDecode", &bomb)]), "unpacks to a huge size");
    let keys = "/O (01234567890123456789012345678901) /U (01234567890123456789012345678901)";
    let lock = format!("/ID [<00> <00>] /Encrypt << /Filter /Standard /V 1 /R 2 {keys} /P -4 >>");
    let encrypted = pdf_with(&objects(&["BT ET"]), &lock);
    refuse(&encrypted, "encrypted PDF that needs a password");
}

#[test]
fn a_damaged_page_does_not_spoil_the_others() {
    let mut content = document(&["BT /A 12 Tf 72 700 Td (kept) Tj ET"]);
    let end = content.len() - 200;
    content.truncate(end);
    // The table of objects is gone; the parser finds them again.
    let outcome = ask(&content, None, ReadLimits::default());
    assert!(outcome.is_ok_and(|outcome| text(&outcome).contains("kept")));
}
