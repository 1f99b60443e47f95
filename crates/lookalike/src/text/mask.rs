//! Masking of numbers and dates (Manku et al. 2007, section 6), before a text is cut into words.
//!
//! Pages that differ only in a counter, a price or the day they were made have the same features if these are masked. Each masked part becomes the
//! one character `0`:
//!
//! - *numbers*: each maximal run of numeric characters, with single `.`, `,`, `'`, `:` and no-break
//!   spaces inside it: `1,234.5`, `12:30`, `3` of `B3`;
//! - *dates*: years, months and days joined by `-`, `/` or `.` (`2024-05-01`, `1.5.2024`), optionally followed by `T` or a space and a time; times
//!   (`9:05`, `21:05:33 pm`, `9am`, `9 a.m.`); English dates with the name of the month (`Mon, 5th May 2024`, `May 5, 2024`, `May 2024`), optionally
//!   followed by a time and then a year; the same in seventeen other languages (`lundi 1er mai 2024`, `5. März`, `5 de mayo de 2024`, `май 2024`);
//!   Chinese, Japanese and Korean dates (numbers followed by year, month and day signs). A date begins and ends where no letter or digit is next to
//!   it, except letters of scripts that put words directly after a number: Thai, Lao, Burmese, Khmer, Hangul, Han and kana.

use crate::scheme::Mask;

/// Replacement of a masked part.
const MASKED: char = '0';

/// Writes `text`, masked, to `out`. Linear time.
pub(super) fn mask(text: &str, mask: Mask, out: &mut String) {
    out.clear();
    let mut rest = text;
    // A date may begin at the start of the text.
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let length = masked_len(rest, before, mask);
        if length > 0 {
            out.push(MASKED);
            // A digit, so that text after a masked number is still part of a longer word.
            before = MASKED;
            rest = &rest[length..];
            continue;
        }
        // Skip a word as a whole: no date begins inside it.
        let end = if mask.numbers || !joins(first) {
            first.len_utf8()
        } else {
            run(rest, joins)
        };
        let (passed, next) = rest.split_at(end);
        before = passed.chars().next_back().unwrap_or(before);
        out.push_str(passed);
        rest = next;
    }
}

/// Returns the length of the date or number that `text` begins with; 0 if there is none.
fn masked_len(text: &str, before: char, mask: Mask) -> usize {
    let date = if mask.dates && !joins(before) {
        date_len(text)
    } else {
        0
    };
    if date == 0 && mask.numbers {
        return number_len(text);
    }
    date
}

/// Returns true if a character next to a date makes it part of a longer word: letters and digits do, except those of scripts that put words directly
/// after a number.
fn joins(c: char) -> bool {
    match c {
        // Thai and Lao, Burmese, Khmer: only a digit makes the number a longer one.
        '\u{e00}'..='\u{eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{a9e0}'..='\u{a9ff}'
        | '\u{aa60}'..='\u{aa7f}' => c.is_numeric(),
        // Han and kana have no spaces between words, and Hangul has none before the particle of a date. Full-width digits are in this range.
        '\u{2e80}'.. => is_digit(c),
        _ => c.is_alphanumeric(),
    }
}

/// Returns the length in bytes of the longest prefix whose characters satisfy `is`.
fn run(text: &str, is: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is(c)).unwrap_or(text.len())
}

fn number_len(text: &str) -> usize {
    let mut length = run(text, char::is_numeric);
    while length > 0 {
        let rest = &text[length..];
        let Some(separator) = rest
            .chars()
            .next()
            .filter(|c| ".,':\u{a0}\u{202f}".contains(*c))
        else {
            break;
        };
        let more = run(&rest[separator.len_utf8()..], char::is_numeric);
        // A separator belongs to a number only between two digits.
        if more == 0 {
            break;
        }
        length += separator.len_utf8() + more;
    }
    length
}

/// Returns true for an ASCII digit, or a full-width one as in Japanese texts.
fn is_digit(c: char) -> bool {
    matches!(c, '0'..='9' | '\u{ff10}'..='\u{ff19}')
}

/// A text that is consumed from the left.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    /// Takes a number of `least` to `most` digits that no digit follows. Returns the number of digits.
    fn digits(&mut self, least: usize, most: usize) -> Option<usize> {
        let length = run(self.rest, is_digit);
        let digits = self.rest[..length].chars().count();
        // A digit of another script would continue the number.
        let whole = !self.rest[length..].starts_with(char::is_numeric);
        (whole && (least..=most).contains(&digits)).then(|| {
            self.take(length);
            digits
        })
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Takes one of the characters of `of`.
    fn one(&mut self, of: &str) -> Option<char> {
        let c = self.rest.chars().next().filter(|c| of.contains(*c))?;
        self.take(c.len_utf8());
        Some(c)
    }

    fn blanks(&mut self) {
        self.take(run(self.rest, |c| c == ' ' || c == '\u{a0}'));
    }

    /// Takes a word of ASCII letters that is one of `names`, or the first three letters of one.
    fn name(&mut self, names: &[&str]) -> Option<()> {
        let word = &self.rest[..run(self.rest, joins)];
        // All names are ASCII and have three letters or more, so they can be cut there.
        let known = names
            .iter()
            .any(|name| word.eq_ignore_ascii_case(name) || word.eq_ignore_ascii_case(&name[..3]));
        known.then(|| {
            self.take(word.len());
            self.one(".");
        })
    }

    /// Takes a word that is one of `names`, which are lists of names in lower case, separated by spaces.
    fn name_of(&mut self, names: &[&str]) -> Option<()> {
        let word = &self.rest[..run(self.rest, joins)];
        // A Turkish `I` is the capital of the dotless letter.
        let dotted = |c: char| if c == 'ı' { 'i' } else { c };
        let lower = || word.chars().map(dotted).flat_map(char::to_lowercase);
        let mut known = names.iter().flat_map(|names| names.split(' '));
        known.any(|name| lower().eq(name.chars())).then(|| {
            self.take(word.len());
        })
    }

    /// Takes a word that is one of `words`; the case of ASCII letters does not count.
    fn word(&mut self, words: &[&str]) -> Option<()> {
        let word = &self.rest[..run(self.rest, joins)];
        let is_one = words.iter().any(|one| word.eq_ignore_ascii_case(one));
        is_one.then(|| {
            self.take(word.len());
        })
    }

    /// Takes the text that `read` takes, or nothing if it fails.
    fn maybe<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let mut ahead = *self;
        let found = read(&mut ahead)?;
        *self = ahead;
        Some(found)
    }

    fn at_end_of_word(&self) -> bool {
        !self.rest.starts_with(joins)
    }
}

const MONTHS: [&str; 13] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "sept",
    "october",
    "november",
    "december",
];

const WEEKDAYS: [&str; 11] = [
    "monday",
    "tuesday",
    "tues",
    "wednesday",
    "weds",
    "thursday",
    "thurs",
    "thur",
    "friday",
    "saturday",
    "sunday",
];

/// Months of other languages than English, as they are in dates and alone. Only whole names, because short ones are words of some language.
const OTHER_MONTHS: [&str; 21] = [
    "januar jänner februar märz april mai juni juli august september oktober november dezember",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "januari februari mars april maj juni juli augusti september oktober november december",
    "januar februar marts april maj juni juli august september oktober november december desember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre setiembre octubre noviembre diciembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie",
    "tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta heinäkuuta elokuuta syyskuuta lokakuuta marraskuuta joulukuuta",
    "tammikuu helmikuu maaliskuu huhtikuu toukokuu kesäkuu heinäkuu elokuu syyskuu lokakuu marraskuu joulukuu",
    "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień",
    "ledna února března dubna května června července srpna září října listopadu prosince",
    "leden únor březen duben květen červen červenec srpen září říjen listopad prosinec",
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь",
    "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня",
    "січень лютий березень квітень травень червень липень серпень вересень жовтень листопад грудень",
    "ocak şubat mart nisan mayis haziran temmuz ağustos eylül ekim kasim aralik",
    "januari februari maret april mei juni juli agustus september oktober november desember",
];

/// Weekdays of other languages than English, as they are before dates.
const OTHER_WEEKDAYS: [&str; 13] = [
    "montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag",
    "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
    "måndag tisdag onsdag torsdag fredag lördag söndag",
    "mandag tirsdag onsdag torsdag fredag lørdag søndag",
    "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "lunes martes miércoles jueves viernes sábado domingo",
    "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    "luni marți miercuri joi vineri sâmbătă duminică",
    "maanantaina tiistaina keskiviikkona torstaina perjantaina lauantaina sunnuntaina",
    "poniedziałek wtorek środa czwartek piątek sobota niedziela",
    "pondělí úterý středa čtvrtek pátek sobota neděle",
    "понедельник вторник среда четверг пятница суббота воскресенье",
    "senin selasa rabu kamis jumat sabtu minggu",
];

/// Zones behind a time. In capitals only, because `est` is also a word.
const ZONES: [&str; 17] = [
    "Z", "UTC", "GMT", "BST", "CET", "CEST", "EET", "EEST", "EST", "EDT", "CST", "CDT", "MST",
    "MDT", "PST", "PDT", "JST",
];

fn date_len(text: &str) -> usize {
    if !may_begin_date(text) {
        return 0;
    }
    let mut cursor = Cursor { rest: text };
    let time_behind = |cursor: &mut Cursor<'_>| {
        cursor.one("T,");
        cursor.blanks();
        time(cursor)?;
        // `Wed May  1 12:00:00 2024`, as ctime and date write it.
        cursor.maybe(|cursor| {
            cursor.blanks();
            cursor.digits(4, 4)?;
            cursor.at_end_of_word().then_some(())
        });
        Some(())
    };
    let read = |cursor: &mut Cursor<'_>| {
        cursor.maybe(|cursor| {
            let is_english = cursor.name(&WEEKDAYS).is_some();
            if !is_english {
                cursor.name_of(&OTHER_WEEKDAYS)?;
            }
            cursor.one(",");
            cursor.blanks();
            (is_english || cursor.rest.starts_with(begins_number)).then_some(())
        });
        if cursor.maybe(day).is_none() {
            // Without a day, a time must follow: a weekday alone is no date.
            return time(cursor);
        }
        cursor.maybe(time_behind);
        Some(())
    };
    let found = cursor.maybe(read).is_some() && cursor.at_end_of_word();
    if found {
        text.len() - cursor.rest.len()
    } else {
        0
    }
}

/// Returns false for most texts that do not begin with a date.
fn may_begin_date(text: &str) -> bool {
    // Digits, and the first letters of English months and weekdays.
    if text.starts_with(|c: char| is_digit(c) || "JFMASONDTWjfmasondtw".contains(c)) {
        return true;
    }
    // Behind names of other languages there is a number.
    let mut cursor = Cursor { rest: text };
    let name = cursor.take(run(text, joins));
    cursor.one(",");
    cursor.blanks();
    !name.is_empty() && cursor.rest.starts_with(begins_number)
}

/// Returns true for the first character of a day or year, or of the `de` before it.
fn begins_number(c: char) -> bool {
    is_digit(c) || matches!(c, 'd' | 'D')
}

fn day(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor
        // Every attempt begins at the same position: one that fails has taken nothing.
        .maybe(numeric_day)
        .or_else(|| cursor.maybe(signed_day))
        .or_else(|| cursor.maybe(day_before_month))
        .or_else(|| cursor.maybe(day_before_other_month))
        .or_else(|| cursor.maybe(month_before_day))
        .or_else(|| cursor.maybe(other_month_before_year))
}

/// `2024-05-01`, `1.5.2024`, `05/01/24`.
fn numeric_day(cursor: &mut Cursor<'_>) -> Option<()> {
    let first = cursor.digits(1, 4)?;
    let separator = cursor.one("-/.")?;
    cursor.digits(1, 2)?;
    let again = cursor.one("-/.")?;
    let last = cursor.digits(1, 4)?;
    let year_first = first == 4 && last <= 2;
    let year_last = first <= 2 && (last == 4 || last == 2);
    // A fourth number makes it an address or a version instead of a day.
    let goes_on = cursor.maybe(|cursor| {
        cursor.one("-/.")?;
        cursor.digits(1, usize::MAX)
    });
    // One separator in both positions, and one year: `1-2.3` and `1.2.3` are not days.
    (separator == again && (year_first || year_last) && goes_on.is_none()).then_some(())
}

/// Chinese, Japanese and Korean dates: a year and a month, a month and a day, or all three.
fn signed_day(cursor: &mut Cursor<'_>) -> Option<()> {
    let part = |cursor: &mut Cursor<'_>, [least, most]: [usize; 2], signs: &str| {
        cursor.maybe(|cursor| {
            cursor.blanks();
            cursor.digits(least, most)?;
            cursor.one(signs)
        })
    };
    let year = part(cursor, [4, 4], "\u{5e74}\u{b144}");
    part(cursor, [1, 2], "\u{6708}\u{c6d4}")?;
    let day = part(cursor, [1, 2], "\u{65e5}\u{c77c}");
    year.or(day).map(drop)
}

/// `5 May 2024`, `5th of May`, `05-May-2024`.
fn day_before_month(cursor: &mut Cursor<'_>) -> Option<()> {
    day_number(cursor)?;
    separate(cursor);
    cursor.maybe(|cursor| {
        cursor.word(&["of"])?;
        cursor.blanks();
        Some(())
    });
    cursor.name(&MONTHS)?;
    cursor.maybe(trailing_year);
    Some(())
}

/// `5. März 2024`, `1er mai`, `5 de mayo de 2024`, `1º de maio`.
fn day_before_other_month(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.digits(1, 2)?;
    cursor.maybe(|cursor| cursor.word(&["er", "º"]));
    cursor.at_end_of_word().then_some(())?;
    let is_dotted = cursor.one(".").is_some();
    cursor.blanks();
    cursor.maybe(of);
    let is_english = cursor.name(&MONTHS).is_some();
    if !is_english {
        cursor.name_of(&OTHER_MONTHS)?;
    }
    let has_year = cursor.maybe(other_year).is_some();
    // An English sentence may end with a number, and the next one begin with `May`.
    (has_year || !(is_english && is_dotted)).then_some(())
}

/// `März 2024`, `mayo de 2024`.
fn other_month_before_year(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.name_of(&OTHER_MONTHS)?;
    other_year(cursor)
}

/// Takes the word between the parts of a Spanish or Portuguese date.
fn of(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.word(&["de", "del"])?;
    cursor.blanks();
    Some(())
}

fn other_year(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.blanks();
    cursor.maybe(of);
    cursor.digits(4, 4)?;
    cursor.at_end_of_word().then_some(())
}

/// `May 5, 2024`, `May 5`, `May 2024`.
fn month_before_day(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.name(&MONTHS)?;
    let with_day = cursor.maybe(|cursor| {
        cursor.blanks();
        day_number(cursor)?;
        cursor.maybe(trailing_year);
        cursor.at_end_of_word().then_some(())
    });
    // In `May 2024` the number is not a day.
    with_day.or_else(|| cursor.maybe(trailing_year))
}

fn day_number(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.digits(1, 2)?;
    cursor.maybe(|cursor| cursor.word(&["st", "nd", "rd", "th"]));
    cursor.at_end_of_word().then_some(())
}

fn trailing_year(cursor: &mut Cursor<'_>) -> Option<()> {
    separate(cursor);
    cursor.digits(4, 4)?;
    cursor.at_end_of_word().then_some(())
}

/// Takes the separator between the parts of a date.
fn separate(cursor: &mut Cursor<'_>) {
    cursor.one(",-/");
    cursor.blanks();
}

/// `9:05`, `21:05:33.120`, `9:05 pm`, `9am`, `21:05Z`, `21:05+02:00`.
fn time(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.digits(1, 2)?;
    if cursor.maybe(minutes).is_none() {
        // `5 am` may be German: "5 at the".
        let is_word = cursor.rest.starts_with(" am") || cursor.rest.starts_with("\u{a0}am");
        return if is_word { None } else { half_of_day(cursor) };
    }
    cursor.maybe(half_of_day);
    cursor.maybe(|cursor| {
        cursor.blanks();
        let word = &cursor.rest[..run(cursor.rest, joins)];
        ZONES.contains(&word).then(|| cursor.take(word.len()))
    });
    cursor.maybe(|cursor| {
        cursor.one("+-")?;
        cursor.digits(2, 4)?;
        cursor.maybe(|cursor| {
            cursor.one(":")?;
            cursor.digits(2, 2)
        });
        Some(())
    });
    Some(())
}

/// `:05`, `:05:33.120`.
fn minutes(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.one(":")?;
    cursor.digits(2, 2)?;
    cursor.maybe(|cursor| {
        cursor.one(":")?;
        cursor.digits(2, 2)
    });
    cursor.maybe(|cursor| {
        cursor.one(".,")?;
        cursor.digits(1, 9)
    });
    Some(())
}

/// `am`, `PM`, `a.m.`
fn half_of_day(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.blanks();
    cursor.one("apAP")?;
    let is_dotted = cursor.one(".").is_some();
    cursor.one("mM")?;
    if is_dotted {
        cursor.one(".");
    }
    cursor.at_end_of_word().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(text: &str, of: &str) -> String {
        let mut out = String::new();
        mask(text, of.parse().unwrap(), &mut out);
        out
    }

    #[test]
    fn numbers() {
        for (text, expected) in [
            ("", ""),
            ("no number.", "no number."),
            ("12 of 1,234.50: 3.", "0 of 0: 0."),
            ("B3 12:30 2024-05-01", "B0 0 0-0-0"),
            ("\u{664}\u{665}\u{666} \u{bd}", "0 0"),
            ("1..2 1, 2", "0..0 0, 0"),
        ] {
            assert_eq!(masked(text, "numbers"), expected, "{text}");
        }
    }

    #[test]
    fn dates() {
        for (text, expected) in [
            ("on 2024-05-01.", "on 0."),
            ("1.5.2024, 05/01/24", "0, 0"),
            ("2024-05-01T21:05:33.120Z!", "0!"),
            ("at 9:05 pm, 21:05+02:00", "at 0, 0"),
            ("Mon, 5th May 2024 9:05 GMT", "0"),
            ("May 5, 2024 and Sept. 7", "0 and 0"),
            ("Sep. 7 and MAY 2024", "0 and 0"),
            ("the 1st of June", "the 0"),
            ("05-Jan-2024", "0"),
            (
                "\u{4e8e}2024\u{5e74}5\u{6708}1\u{65e5}\u{5230}",
                "\u{4e8e}0\u{5230}",
            ),
            ("10.0.10.1", "10.0.10.1"),
            ("version 1.2.3 of 127.0.0.1", "version 1.2.3 of 127.0.0.1"),
            (
                "you may 3x it, 12 cats, mayor 2024",
                "you may 3x it, 12 cats, mayor 2024",
            ),
            (
                "x2024-05-01 2024-05-01x 5 mayors",
                "x2024-05-01 2024-05-01x 5 mayors",
            ),
        ] {
            assert_eq!(masked(text, "dates"), expected, "{text}");
        }
        assert_eq!(masked("12 on May 5, 2024", "numbers,dates"), "0 on 0");
    }

    #[test]
    fn common_forms_of_dates_and_times_stayed() {
        for date in [
            "Sept. 5, 2024",
            "sept 2024",
            "Tues, 5 May",
            "Thurs. 5 May 2024",
            "Thur 5 May",
            "Weds 5 May",
            "9am",
            "9 AM",
            "11 p.m.",
            "9:00 a.m.",
            "10:00 P.M.",
            "12:00 CET",
            "Wed May  1 12:00:00 2024",
            "Wed May  1 12:00:00 UTC 2024",
            "2024\u{5e74} 5\u{6708} 1\u{65e5}",
            "5\u{6708}1\u{65e5}",
            "\u{ff12}\u{ff10}\u{ff12}\u{ff14}\u{5e74}\u{ff15}\u{6708}\u{ff11}\u{65e5}",
            "2024\u{b144} 5\u{c6d4} 1\u{c77c}",
        ] {
            assert_eq!(
                masked(&format!("at {date} on"), "dates"),
                "at 0 on",
                "{date}"
            );
        }
        for text in [
            "Platz 5 am Rhein",
            "12:00 est",
            "9 amp",
            "9a.x",
            "5\u{6708}",
            "5\u{65e5}",
            "septic 5",
            "\u{ff11}\u{ff12}\u{ff10}\u{ff12}\u{ff14}\u{5e74}\u{ff15}\u{6708}",
        ] {
            let other = masked(text, "dates");
            let wanted = text.replace("12:00", "0");
            assert_eq!(other, wanted, "{text}");
        }
    }

    #[test]
    fn months_of_other_languages_stayed() {
        for date in [
            "5. März 2024",
            "Montag, 5. MÄRZ 2024, 9:05",
            "5. April 2024",
            "5. mai",
            "lundi 1er mai 2024",
            "5 de mayo de 2024",
            "Lunes, 5 de mayo del 2024",
            "1º de maio de 2024",
            "lunedì 5 maggio 2024",
            "5 mei 2024",
            "maj 2024",
            "mayo de 2024",
            "5. toukokuuta 2024",
            "5 maja 2024",
            "5. května 2024",
            "5 мая 2024",
            "5 травня",
            "5 Mayıs 2024",
            "5 MAYIS 2024",
        ] {
            let text = format!("x {date} x");
            assert_eq!(masked(&text, "dates"), "x 0 x", "{date}");
        }
        for text in [
            "it was 5. May we go",
            "5 marzipan",
            "mars 68",
            "5 de la calle",
            "Montag, 5 Brote",
            "les mars de 20245",
        ] {
            assert_eq!(masked(text, "dates"), text);
        }
    }

    #[test]
    fn dates_beside_thai_lao_burmese_and_khmer_words_stayed() {
        for word in [
            "\u{e17}\u{e35}\u{e48}",
            "\u{ea7}\u{eb1}\u{e99}",
            "\u{1014}\u{1031}\u{1037}",
            "\u{1790}\u{17d2}\u{1784}\u{17c3}",
            // Spaces separate words in Korean, but not a date from its particle.
            "\u{c5d0}\u{c11c}",
        ] {
            let text = format!("{word}2024-05-01{word} 9:05{word}");
            assert_eq!(masked(&text, "dates"), format!("{word}0{word} 0{word}"));
        }
        let thai_digit = "\u{e55}2024-05-01\u{e55}";
        assert_eq!(masked(thai_digit, "dates"), thai_digit);
    }
}
