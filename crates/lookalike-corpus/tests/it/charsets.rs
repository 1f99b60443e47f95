//! Files in other character sets than UTF-8.

use encoding_rs::{Encoding, SHIFT_JIS, UTF_8, WINDOWS_1251, WINDOWS_1252};
use lookalike_corpus::{InputOptions, charset};

use crate::support::{Corpus, read};

#[test]
fn a_mark_wins_over_everything() {
    let page = b"\xff\xfe<\0m\0e\0t\0a\0 \0c\0h\0a\0r\0s\0e\0t\0=\0b\0i\0g\x005\0>\0\xe9\0";
    let decoded = charset::decode(page, true);
    assert_eq!(decoded.text, "<meta charset=big5>\u{e9}");
    assert_eq!(decoded.charset, "UTF-16LE");
    let decoded = charset::decode(b"\xef\xbb\xbfa\xff", false);
    assert_eq!(
        (&*decoded.text, decoded.charset, decoded.replaced),
        ("a\u{fffd}", "UTF-8", true)
    );
}

#[test]
fn a_page_declares_its_character_set() {
    let cases: [(&str, Option<&'static Encoding>); 14] = [
        ("<meta charset=windows-1251>", Some(WINDOWS_1251)),
        ("<META CharSet = 'Shift_JIS' >", Some(SHIFT_JIS)),
        (
            "<meta http-equiv=Content-Type content=\"text/html; charset=latin1\">",
            Some(WINDOWS_1252),
        ),
        (
            "<meta content='text/html;charset=\"sjis\"' http-equiv='content-type'>",
            Some(SHIFT_JIS),
        ),
        ("<meta content='text/html;charset=sjis'>", None),
        ("<meta name=x content=y><meta charset=utf-8>", Some(UTF_8)),
        ("<meta charset=utf-16>", Some(UTF_8)),
        ("<meta charset=nonsense>", None),
        (
            "<!-- <meta charset=sjis> --><meta charset=utf-8>",
            Some(UTF_8),
        ),
        ("<!-- <meta charset=sjis>", None),
        ("<metadata charset=sjis>", None),
        ("<meta charset=", None),
        ("<meta", None),
        ("", None),
    ];
    for (page, expected) in cases {
        assert_eq!(charset::declared(page.as_bytes()), expected, "{page}");
    }
    let late = format!("{}<meta charset=sjis>", " ".repeat(1024));
    assert_eq!(charset::declared(late.as_bytes()), None);
}

#[test]
fn undeclared_text_is_guessed() {
    let russian = "\u{412}\u{441}\u{435} \u{43b}\u{44e}\u{434}\u{438} \u{440}\u{43e}\u{436}\u{434}\u{430}\u{44e}\u{442}\u{441}\u{44f} \
                   \u{441}\u{432}\u{43e}\u{431}\u{43e}\u{434}\u{43d}\u{44b}\u{43c}\u{438} \u{438} \u{440}\u{430}\u{432}\u{43d}\u{44b}\u{43c}\u{438}";
    let (bytes, _, _) = WINDOWS_1251.encode(russian);
    let decoded = charset::decode(&bytes, false);
    assert_eq!((&*decoded.text, decoded.charset), (russian, "windows-1251"));
    let decoded = charset::decode(b"Les \xe9l\xe8ves ont mang\xe9 \xe0 la f\xeate", false);
    assert_eq!(
        decoded.text,
        "Les \u{e9}l\u{e8}ves ont mang\u{e9} \u{e0} la f\u{ea}te"
    );
    assert!(!decoded.replaced);
}

#[test]
fn a_few_broken_bytes_leave_utf8_what_it_is() {
    let text = "gr\u{fc}\u{df}e \u{fc}ber \u{e4}cker und fl\u{fc}sse";
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0xff);
    let decoded = charset::decode(&bytes, false);
    assert_eq!(decoded.charset, "UTF-8");
    assert_eq!(decoded.text, format!("{text}\u{fffd}"));
    assert!(decoded.replaced);
}

#[test]
fn files_come_decoded() {
    let options = InputOptions::default();
    let corpus = Corpus::with(
        "a.html",
        b"<meta charset=windows-1251><p>\xcf\xf0\xe8\xe2\xe5\xf2",
    );
    corpus.add("b.txt", b"\xfe\xff\0h\0i");
    let reading = read(&corpus.inputs("", &options), &options);
    assert_eq!(
        reading.texts(),
        ["\u{41f}\u{440}\u{438}\u{432}\u{435}\u{442}", "hi"]
    );
}
