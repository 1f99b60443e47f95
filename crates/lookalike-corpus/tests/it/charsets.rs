//! Files in character sets other than UTF-8.

use encoding_rs::{
    BIG5, Encoding, GB18030, ISO_2022_JP, SHIFT_JIS, UTF_8, WINDOWS_1251, WINDOWS_1252,
};
use lookalike_corpus::{InputOptions, Inputs, charset};

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
}

#[test]
fn a_declaration_behind_a_long_script_was_not_seen() {
    let long = "x".repeat(1024);
    let cases = [
        (format!("<script>{long}</script><meta charset=sjis>"), true),
        (
            format!("<title>{long}</title><head><META charset=sjis>"),
            true,
        ),
        (format!("<body>{long}<meta charset=sjis>"), true),
        (
            format!("<script>{long}'<meta charset=sjis>'</script>"),
            false,
        ),
        (
            format!("<script>{long}<!-- </script>--><meta charset=sjis>"),
            true,
        ),
        (format!("<!-- {long}<meta charset=sjis> -->"), false),
        (format!("{long}</head><p><meta charset=sjis>"), false),
        (format!("{long}<body><meta charset=sjis>"), false),
        (format!("<p>{}<meta charset=sjis>", long.repeat(64)), false),
    ];
    for (page, is_seen) in cases {
        let expected = is_seen.then_some(SHIFT_JIS);
        assert_eq!(charset::declared(page.as_bytes()), expected, "{page:.20}");
    }
    let head = format!("<script>{long}</script><meta charset=windows-1254>");
    let page = [head.as_bytes(), b"<body><p>\xdeeker g\xfczel"].concat();
    let options = InputOptions::default();
    let corpus = Corpus::with("a.html", &page);
    let reading = read(&corpus.inputs("a.html", &options), &options);
    assert_eq!(reading.texts(), ["\u{15e}eker g\u{fc}zel"]);
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
fn utf16_without_a_mark_was_a_binary_file() {
    let options = InputOptions::default();
    let text = "plain w\u{f6}rds\nhere \u{2014} \u{4e2d}";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for bytes in [little, big] {
        for name in ["a.txt", "a.html", "a"] {
            let corpus = Corpus::with(name, &bytes);
            let reading = read(&corpus.inputs(name, &options), &options);
            let words: Vec<&str> = reading.texts()[0].split_whitespace().collect();
            assert_eq!(words.join(" "), text.replace('\n', " "), "{name}");
        }
    }
    // Numbers of 16 bits, and text in UTF-32, are not.
    let numbers: Vec<u8> = (1..99u16).flat_map(u16::to_le_bytes).collect();
    let wide: Vec<u8> = text
        .chars()
        .flat_map(|c| u32::from(c).to_le_bytes())
        .collect();
    let marked = [b"\xff\xfe\0\0", &wide[..]].concat();
    for (bytes, reason) in [
        (&numbers, "a binary file"),
        (&wide, "a binary file"),
        (&marked, "text in UTF-32 is not supported"),
    ] {
        let corpus = Corpus::with("a.txt", bytes);
        let error = Inputs::discover(&[corpus.path("a.txt").into()], &options, &corpus.path(""));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
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

/// Thirty character sets, each under three labels of others: the label is trusted, as in browsers, unless one side is UTF-8, which can be detected;
/// and nothing fails. Without any label, the bytes still become text.
#[test]
fn wrong_labels_fail_nobody() {
    let labels = [
        "utf-8",
        "ibm866",
        "iso-8859-2",
        "iso-8859-3",
        "iso-8859-4",
        "iso-8859-5",
        "iso-8859-6",
        "iso-8859-7",
        "iso-8859-8",
        "iso-8859-10",
        "iso-8859-13",
        "iso-8859-14",
        "iso-8859-15",
        "koi8-r",
        "koi8-u",
        "macintosh",
        "windows-874",
        "windows-1250",
        "windows-1251",
        "windows-1252",
        "windows-1253",
        "windows-1254",
        "windows-1255",
        "windows-1256",
        "windows-1257",
        "windows-1258",
        "gbk",
        "big5",
        "euc-jp",
        "shift_jis",
    ];
    let sentence =
        "caf\u{e9} \u{43c}\u{438}\u{440} \u{3b1}\u{3b2} \u{5d0} \u{627} \u{e01} \u{4e2d}\u{6587}";
    for (i, true_label) in labels.iter().enumerate() {
        let (bytes, _, _) = Encoding::for_label(true_label.as_bytes())
            .unwrap()
            .encode(sentence);
        for wrong in [1, 7, 20].map(|step| labels[(i + step) % labels.len()]) {
            let page = [format!("<meta charset={wrong}><p>x ").as_bytes(), &bytes].concat();
            let decoded = charset::decode(&page, true);
            let expected = Encoding::for_label(wrong.as_bytes()).unwrap().name();
            if [*true_label, wrong].contains(&"utf-8") {
                assert!(decoded.wrong_declaration, "{true_label} as {wrong}");
            } else {
                assert_eq!(decoded.charset, expected);
            }
            assert!(decoded.text.contains("<p>x "), "{true_label} as {wrong}");
        }
        assert!(!charset::decode(&bytes, false).text.is_empty());
    }
}

#[test]
fn a_header_wins_over_the_page_and_utf8_over_both() {
    let header = charset::in_content_type("text/html; Charset=\"koi8-r\"");
    let page = b"<meta charset=windows-1251><p>\xf0\xd2\xc9\xd7\xc5\xd4";
    let decoded = charset::decode_declared(page, true, header);
    assert_eq!(
        (decoded.charset, decoded.wrong_declaration),
        ("KOI8-R", false)
    );
    let page = "<meta charset=windows-1251><p>\u{41f}\u{440}\u{438}\u{432}";
    let decoded = charset::decode_declared(page.as_bytes(), true, header);
    assert_eq!(
        (decoded.charset, decoded.wrong_declaration),
        ("UTF-8", true)
    );
    assert_eq!(decoded.text, page);
    assert_eq!(charset::in_content_type("text/html"), None);
}

#[test]
fn two_characters_that_are_utf8_by_chance_do_not_refute_a_declaration() {
    // The name of a Chinese telephone company in GBK, which is also valid UTF-8.
    let header = charset::in_content_type("text/html; charset=gbk");
    let decoded = charset::decode_declared(b"<p>\xc1\xaa\xcd\xa8", true, header);
    assert_eq!(decoded.charset, "GBK");
    assert_eq!(decoded.text, "<p>\u{8054}\u{901a}");
}

/// Regression test: with these labels, decoders turn any text into one replacement character, so all such pages counted as copies of each other.
#[test]
fn pages_of_a_set_that_cannot_be_decoded_were_copies_of_each_other() {
    for label in ["iso-2022-kr", "hz-gb-2312", "replacement"] {
        let page = |text: &str| format!("<meta charset={label}><p>{text}");
        let text = |page: &str, header| {
            charset::decode_declared(page.as_bytes(), true, header)
                .text
                .into_owned()
        };
        let header = charset::in_content_type(&format!("text/html; charset={label}"));
        assert_eq!(header, None);
        assert_eq!(text(&page("Ferry"), header), page("Ferry"));
    }
}

#[test]
fn utf8_that_is_declared_as_ascii_with_escapes_was_lost() {
    let page = "<meta charset=iso-2022-jp><p>\u{65e5}\u{672c}";
    let decoded = charset::decode(page.as_bytes(), true);
    assert_eq!((&*decoded.text, decoded.wrong_declaration), (page, true));
    // Text in the declared set stays in it, despite one invalid byte.
    let page = b"<meta charset=iso-2022-jp><p>\x1b$B$3\x1b(B \xff";
    let decoded = charset::decode(page, true);
    assert_eq!(decoded.charset, "ISO-2022-JP");
    assert!(decoded.text.contains('\u{3053}'));
}

#[test]
fn a_header_that_says_utf16_was_not_believed() {
    let header = charset::in_content_type("text/html; charset=utf-16le");
    let page = "<p>caf\u{e9}";
    let bytes: Vec<u8> = page.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(charset::decode_declared(&bytes, true, header).text, page);
    let decoded = charset::decode_declared(b"<p>plain", true, header);
    assert_eq!(
        (&*decoded.text, decoded.wrong_declaration),
        ("<p>plain", true)
    );
    // A page that can be read byte by byte is in no such set, whatever it declares.
    let page = b"<meta charset=utf-16><p>plain";
    assert_eq!(charset::decode(page, true).charset, "UTF-8");
}

#[test]
fn xml_declares_its_character_set() {
    for (declaration, expected) in [
        (
            "<?xml version=\"1.0\" encoding=\"iso-8859-15\"?><p>5 \u{a4}",
            "ISO-8859-15",
        ),
        (
            "<?xml version='1.0' encoding = 'windows-1257' ?><p>",
            "windows-1257",
        ),
        (
            "<?xml version=\"1.0\"?><meta charset=koi8-r><p>encoding=\"gbk\"",
            "KOI8-R",
        ),
        (
            "<?xml version=\"1.0\" encoding=\"gbk\"?><meta charset=koi8-r>",
            "KOI8-R",
        ),
    ] {
        let found = charset::declared(declaration.as_bytes()).map(Encoding::name);
        assert_eq!(found, Some(expected), "{declaration}");
    }
    assert_eq!(
        charset::declared(b"<?xml version=\"1.0\"?><p>encoding=\"gbk\""),
        None
    );
}

#[test]
fn a_letter_behind_64_kib_of_ascii_was_read_as_windows_1252() {
    let text = "Усі люди народжуються вільними і рівними у своїй гідності та правах. Вони наділені розумом і совістю.";
    let style = "a { color: red }\n".repeat(4000);
    for head in [style, "x".repeat(70_000)] {
        let page = format!("<style>{head}</style><p>{text}\n<p>{text}");
        let (bytes, _, _) = WINDOWS_1251.encode(&page);
        let decoded = charset::decode(&bytes, true);
        assert_eq!((&*decoded.text, decoded.charset), (&*page, "windows-1251"));
    }
    let text =
        "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神相對待。";
    for encoding in [GB18030, BIG5] {
        let page = format!("{}{text}", "no line feed ".repeat(6000));
        let (bytes, _, _) = encoding.encode(&page);
        let decoded = charset::decode(&bytes, false);
        assert_eq!(decoded.text, page, "{}", encoding.name());
    }
}

#[test]
fn symbols_in_english_text_became_letters() {
    let symbols = "€„…†‡‰‹‘’“”•–—™›¡¢£¤¥¦§¨©ª«¬®¯°±²³´µ¶·¸¹º»¼½¾¿";
    for symbol in symbols.chars() {
        for text in [
            format!("The council has agreed to build a bridge, at a cost of {symbol}5 million."),
            format!("Home {symbol} News {symbol} Sport {symbol} and more of it"),
            format!("{symbol} 2008 The Paper, all rights reserved"),
            format!("they said that it was{symbol} and no more than that"),
        ] {
            let (bytes, _, _) = WINDOWS_1252.encode(&text);
            for is_page in [false, true] {
                let decoded = charset::decode(&bytes, is_page);
                assert_eq!((&*decoded.text, decoded.charset), (&*text, "windows-1252"));
            }
        }
    }
    // These sets have such bytes, too: as parts of characters, which stand in pairs, and hardly ever without others.
    for (encoding, text) in [
        (GB18030, "see “the guide” and ‘the list’ for these"),
        (SHIFT_JIS, "a title of ア and イ, and あいうえお"),
        (SHIFT_JIS, "あい"),
        (WINDOWS_1251, "Ёж и ёлка, ещё"),
    ] {
        let (bytes, _, _) = encoding.encode(text);
        assert_ne!(
            charset::decode(&bytes, false).charset,
            "windows-1252",
            "{text}"
        );
    }
}

#[test]
fn utf16_without_a_mark_lost_pages_with_a_character_of_a_zero_byte() {
    let plain = "plain English words follow here to the end of it ".repeat(12);
    for word in ["Latvijas", "Ārija", "一", "丁", "\u{3000}x"] {
        let page = format!("\n<!doctype html><title>A page</title><p>{word}<p>{plain}");
        let units = || page.encode_utf16();
        let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        for (bytes, name) in [(little, "UTF-16LE"), (big, "UTF-16BE")] {
            let decoded = charset::decode(&bytes, true);
            assert_eq!((&*decoded.text, decoded.charset), (&*page, name));
        }
    }
    // Hardly any ASCII, but a tag.
    let page = format!(
        "<p>{}</p>",
        "Все люди рождаются свободными и равными ".repeat(40)
    );
    let bytes: Vec<u8> = page.encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(charset::decode(&bytes, true).text, page);
    // Control characters are in no text.
    let bytes: Vec<u8> = "<p>\u{1}"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(charset::decode(&bytes, true).charset, "UTF-8");
}

#[test]
fn rows_behind_the_first_ones_of_a_table_were_read_as_windows_1252() {
    let row = "an English row with some words in it, so that it is long enough";
    let chinese = "本宣言所载的任何权利和自由的活动或行为";
    for rows in [10, 20_000] {
        let head = format!("\"{row}\"\n").repeat(rows);
        let table = format!("text\n{head}{chinese}\n");
        let (bytes, _, _) = GB18030.encode(&table);
        let corpus = Corpus::with("t.csv", &bytes);
        let options = InputOptions::default();
        let reading = read(&corpus.inputs("t.csv", &options), &options);
        assert_eq!(reading.texts().last(), Some(&chinese), "{rows}");
    }
}

#[test]
fn a_page_was_not_believed_where_the_header_of_its_server_was_wrong() {
    for (label, text) in [
        (
            "iso-8859-1",
            "Home » News. The council agreed on £5 million for the bridge. © 2008",
        ),
        (
            "iso-8859-3",
            "Ĉiuj homoj estas denaske liberaj kaj egalaj laŭ digno, ĝis.",
        ),
        ("macintosh", "Die Würde des Menschen, größer und schöner."),
        ("iso-8859-15", "Das Buch kostet 5 € und liegt bei Müller"),
    ] {
        let page = format!("<meta charset={label}><p>{text}");
        let encoding = Encoding::for_label(label.as_bytes()).unwrap();
        let (bytes, _, _) = encoding.encode(&page);
        let decoded = charset::decode_declared(&bytes, true, Some(UTF_8));
        assert_eq!((&*decoded.text, decoded.wrong_declaration), (&*page, true));
        let decoded = charset::decode_declared(&bytes, true, Some(encoding));
        assert_eq!((&*decoded.text, decoded.wrong_declaration), (&*page, false));
    }
}

#[test]
fn utf8_that_was_cut_within_a_character_was_read_in_another_set() {
    let whole = "The council’s budget of £5 million is agreed, said the mayor’";
    for cut in 1..3 {
        let bytes = &whole.as_bytes()[..whole.len() - cut];
        for head in ["", "<meta charset=utf-8>"] {
            let page = [head.as_bytes(), bytes].concat();
            let decoded = charset::decode(&page, !head.is_empty());
            let expected = whole.replace("mayor’", "mayor\u{fffd}");
            assert_eq!(decoded.text, format!("{head}{expected}"));
            assert_eq!(
                (decoded.charset, decoded.wrong_declaration),
                ("UTF-8", false)
            );
        }
    }
    // Without any other sequence, the last byte is no sign of UTF-8.
    let legacy = charset::decode(b"plain words and \xc3", false);
    assert_ne!(legacy.charset, "UTF-8");
}

#[test]
fn japanese_mail_was_read_as_ascii() {
    let text = "日本語のテキストです。これは短い文です。";
    let (bytes, _, _) = ISO_2022_JP.encode(text);
    assert_eq!(charset::decode(&bytes, false).text, text);
    // Pages must declare it, and other escape sequences are text.
    assert_eq!(charset::decode(&bytes, true).charset, "UTF-8");
    assert_eq!(
        charset::decode(b"\x1b[1mbold\x1b[0m", false).charset,
        "UTF-8"
    );
}

#[test]
fn declarations_of_xml_files_and_of_private_sets_were_misread() {
    let text = "Café £5 » x";
    let (bytes, _, _) = WINDOWS_1252.encode(text);
    let file = [b"<?xml version='1.0' encoding='iso-8859-1'?>", &*bytes].concat();
    assert!(charset::decode(&file, false).text.ends_with(text));
    let page = [b"<meta charset=x-user-defined>", &*bytes].concat();
    assert!(charset::decode(&page, true).text.ends_with(text));
}
