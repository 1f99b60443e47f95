"""Computes the published vectors a second time: pip install xxhash; python check.py

Covers every line whose scheme has segment=word-chars or shingle=chars; UAX #29 words need a Unicode library.
"""
import json, pathlib, re, struct, unicodedata
from xxhash import xxh3_64_intdigest as xxh3

M = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15

def avalanche(x):
    x = (x ^ x >> 33) * 0xC2B2AE3D27D4EB4F & M
    x = (x ^ x >> 29) * 0x165667B19E3779F9 & M
    return x ^ x >> 32

def splitmix64(state):
    while True:
        state = state + 0x9E3779B97F4A7C15 & M
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & M
        z = (z ^ z >> 27) * 0x94D049BB133111EB & M
        yield z ^ z >> 31

def rotl(x, r):
    return (x << r | x >> 64 - r) & M

def stepped(x, steps, window):
    if window <= 16:
        return rotl(x, steps)
    for _ in range(steps):
        x = x << 1 ^ (x >> 63) * (1 << 64 | 0x1B)
    return x

def lookup3(data, seed):
    """hashlittle2 of Bob Jenkins's lookup3.c, with pc and pb the halves of the seed: c + (b << 32)."""
    W = (1 << 32) - 1
    rot = lambda x, k: (x << k | x >> 32 - k) & W
    a = b = c = 0xDEADBEEF + len(data) + seed & W
    c = c + (seed >> 32) & W
    blocks = [struct.unpack("<III", data[at:at + 12].ljust(12, b"\0")) for at in range(0, len(data), 12)]
    for number, (x, y, z) in enumerate(blocks):
        a, b, c = a + x & W, b + y & W, c + z & W
        if number < len(blocks) - 1:
            a = (a - c & W) ^ rot(c, 4); c = c + b & W
            b = (b - a & W) ^ rot(a, 6); a = a + c & W
            c = (c - b & W) ^ rot(b, 8); b = b + a & W
            a = (a - c & W) ^ rot(c, 16); c = c + b & W
            b = (b - a & W) ^ rot(a, 19); a = a + c & W
            c = (c - b & W) ^ rot(b, 4); b = b + a & W
        else:
            c = (c ^ b) - rot(b, 14) & W
            a = (a ^ c) - rot(c, 11) & W
            b = (b ^ a) - rot(a, 25) & W
            c = (c ^ b) - rot(b, 16) & W
            a = (a ^ c) - rot(c, 4) & W
            b = (b ^ a) - rot(a, 14) & W
            c = (c ^ b) - rot(b, 24) & W
    return c | b << 32

def siphash(data, key):
    """SipHash-2-4 of the paper."""
    k0, k1 = struct.unpack("<QQ", key)
    v0, v1, v2, v3 = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573
    def rounds(count):
        nonlocal v0, v1, v2, v3
        for _ in range(count):
            v0, v2 = v0 + v1 & M, v2 + v3 & M
            v1, v3 = rotl(v1, 13) ^ v0, rotl(v3, 16) ^ v2
            v0 = rotl(v0, 32)
            v2, v0 = v2 + v1 & M, v0 + v3 & M
            v1, v3 = rotl(v1, 17) ^ v2, rotl(v3, 21) ^ v0
            v2 = rotl(v2, 32)
    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) & 255])
    for word, in struct.iter_unpack("<Q", padded):
        v3 ^= word
        rounds(2)
        v0 ^= word
    v2 ^= 0xFF
    rounds(4)
    return v0 ^ v1 ^ v2 ^ v3

def hashed(text, s):
    """The hash of a word, of a window of characters or of an address."""
    if s["hash"].startswith("siphash-2-4:"):
        key = bytes.fromhex(s["key"])
        assert s["hash"] == "siphash-2-4:%016x" % siphash(b"lookalike key id", key), "another key"
        return siphash(text.encode(), key)
    return {"xxh3-64": xxh3, "lookup3": lookup3}[s["hash"]](text.encode(), int(s["seed"]))

NUMERIC = "[" + "".join(c for c in map(chr, range(0x110000)) if unicodedata.category(c)[0] == "N") + "]"
# Scripts that put words directly after a number: only their digits, or nothing at all, continue it.
DIGITS_ONLY = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f]"
JOINS = f"(?:(?={DIGITS_ONLY}){NUMERIC}|(?!{DIGITS_ONLY})(?![\u2e80-\U0010ffff])[^\\W_]|[\uff10-\uff19])"
NUMBER = re.compile(f"{NUMERIC}+(?:[.,':\u00a0\u202f]{NUMERIC}+)*")

# Months and weekdays of other languages than English.
OTHER_MONTHS = (
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
)
OTHER_WEEKDAYS = (
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
)

def date_pattern():
    digit = "[0-9\uff10-\uff19]"
    def digits(least, most):
        return f"{digit}{{{least},{most}}}(?!{NUMERIC})"
    def name(names):
        spelt = [form for name in names.split() for form in (name, name[:3])]
        return f"(?:{'|'.join(spelt)})(?!{JOINS})\\.?+"
    months = name("january february march april may june july august september sept october november december")
    weekdays = name("monday tuesday tues wednesday weds thursday thurs thur friday saturday sunday")
    blanks, end = "[ \u00a0]*+", f"(?!{JOINS})"
    def others(lists):
        spelt = sorted({name for names in lists for name in names.split()}, key=len, reverse=True)
        return f"(?:{'|'.join(spelt)}){end}"
    other_months, other_weekdays = others(OTHER_MONTHS), others(OTHER_WEEKDAYS)
    separate = f"[,/-]?+{blanks}"
    year = f"{separate}{digits(4, 4)}{end}"
    number = f"{digits(1, 2)}(?:(?:st|nd|rd|th){end})?+{end}"
    numeric = (f"(?:{digit}{{4}}([-/.]){digit}{{1,2}}\\1{digit}{{1,2}}|{digit}{{1,2}}([-/.]){digit}{{1,2}}\\2(?:{digit}{{4}}|{digit}{{2}}))"
               f"(?!{NUMERIC})(?![-/.]{digits(1, '')})")
    def sign(least, most, signs):
        return f"{blanks}{digits(least, most)}[{signs}]"
    of_year, of_month, of_day = sign(4, 4, "\u5e74\ub144"), sign(1, 2, "\u6708\uc6d4"), sign(1, 2, "\u65e5\uc77c")
    signed = f"(?>{of_year}{of_month}(?:{of_day})?+|{of_month}{of_day})"
    day_first = f"{number}{separate}(?:of{end}{blanks})?+{months}(?:{year})?+"
    month_first = f"{months}(?>{blanks}{number}(?:{year})?+{end}|{year})"
    of_other = f"(?:del?{end}{blanks})?+"
    other_year = f"{blanks}{of_other}{digits(4, 4)}{end}"
    other_number = f"{digits(1, 2)}(?:(?:er|\u00ba){end})?+{end}"
    # Behind a dot, a month that is also an English one needs a year.
    english = f"(?>\\.{blanks}{of_other}{months}{other_year}|(?!\\.){blanks}{of_other}{months}(?:{other_year})?+)"
    other = f"\\.?+{blanks}{of_other}(?!{months}){other_months}(?:{other_year})?+"
    other_first = f"{other_number}(?>{english}|{other})"
    day = f"(?>{numeric}|{signed}|{day_first}|{other_first}|{month_first}|{other_months}{other_year})"
    half = f"{blanks}[ap](?:m|\\.m\\.?+){end}"
    zones = "Z UTC GMT BST CET CEST EET EEST EST EDT CST CDT MST MDT PST PDT JST".replace(" ", "|")
    minutes = f":{digits(2, 2)}(?::{digits(2, 2)})?+(?:[.,]{digits(1, 9)})?+"
    zone = f"(?:{blanks}(?-i:{zones}){end})?+(?:[+-]{digits(2, 4)}(?::{digits(2, 2)})?+)?+"
    time = f"{digits(1, 2)}(?>{minutes}(?:{half})?+{zone}|(?!(?-i:[ \u00a0]am)){half})"
    behind = f"[T,]?+{blanks}{time}(?:{blanks}{digits(4, 4)}{end})?+"
    return re.compile(f"(?>(?:(?>{weekdays},?+{blanks}|{other_weekdays},?+{blanks}(?=[dD]|{digit})))?+(?>{day}(?:{behind})?+|{time})){end}", re.IGNORECASE)

DATE = date_pattern()

def masked(text, kinds):
    """The text with 0 for each date and number; after one, as after any digit, no date begins."""
    made, at, before = [], 0, " "
    while at < len(text):
        found = "dates" in kinds and not re.match(JOINS, before) and DATE.match(text, at)
        found = found or "numbers" in kinds and NUMBER.match(text, at)
        before = "0" if found else text[at]
        made.append(before)
        at = found.end() if found else at + 1
    return "".join(made)

def is_ignorable(c):
    """Default_Ignorable_Code_Point, as Unicode derives it from other properties."""
    code, others = ord(c), (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0)
    if code in others or 0xFFF0 <= code <= 0xFFF8 or 0xE0000 <= code <= 0xE0FFF or 0x180B <= code <= 0x180F:
        return True
    prepended = (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD)
    is_format = unicodedata.category(c) == "Cf" and code not in prepended
    return 0xFE00 <= code <= 0xFE0F or is_format and not (0xFFF9 <= code <= 0xFFFB or 0x13430 <= code <= 0x1345F)

ACCENTS = "[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
SINGLE = "[\u2018-\u201b\u2032\u2035\u2039\u203a\u02bb\u02bc\u055a\u05f3\uff07]"
DOUBLE = "[\u201c-\u201f\u2033\u2036\u00ab\u00bb\u05f4\u301d-\u301f\uff02]"
DASHES = "[\u2010-\u2015\u2212\u058a\u05be\u2e3a\u2e3b\ufe58\ufe63\uff0d]"

def is_arabic_sign(c):
    is_mark = unicodedata.category(c).startswith("M") and ("\u0610" <= c <= "\u06ed" or "\u08ca" <= c <= "\u08ff")
    return c == "\u0640" or is_mark and not "\u0653" <= c <= "\u0655"

def usual_width(c):
    return unicodedata.normalize("NFKD", c) if unicodedata.decomposition(c).startswith(("<wide>", "<narrow>")) else c

def variants(piece, s):
    kinds = s["fold"].split(",")
    if "width" in kinds:
        piece = "".join(map(usual_width, piece))
    piece = unicodedata.normalize("NFKD" if s["normalize"] == "nfkc" else "NFD", piece)
    if "accents" in kinds:
        piece = re.sub(ACCENTS, "", piece)
    if "arabic" in kinds:
        piece = "".join(c for c in piece if not is_arabic_sign(c))
    if "punctuation" in kinds:
        piece = re.sub(DASHES, "-", re.sub(DOUBLE, '"', re.sub(SINGLE, "'", piece)))
    return unicodedata.normalize("NFC", piece)

def fold(piece, s):
    if s["fold"] != "none":
        piece = variants(piece, s)
    elif s["normalize"] != "none":
        piece = unicodedata.normalize(s["normalize"].upper(), piece)
    return piece.lower() if s["case"] == "lower" else piece

SPACES = " \t\n\r\x0b\x0c"
WHITE_SPACE = SPACES + "\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

def pieces_of(text, s, spaces=SPACES):
    if s["normalize"] != "none":
        text = "".join(c for c in text if not is_ignorable(c))
    text = masked(text, s["mask"].split(","))
    folded = [fold(piece, s) for piece in re.split(f"[{spaces}]+", text)]
    return [piece for piece in folded if piece]

def words(text, s):
    """The hashes of all words of a text."""
    return [hashed(word, s) for piece in pieces_of(text, s) for word in re.findall(r"\w+", piece)]

def windows(tokens, m):
    """The features of all runs of m words, as words:w has them for w of 2 and more."""
    made = []
    for i in range(len(tokens) - m + 1):
        mix = m * GOLDEN & M
        for j in range(m):
            mix ^= stepped(tokens[i + j], m - 1 - j, m)
        made.append(avalanche(mix))
    return made

STOPS = """the of and a in to is was it for with he be on i that by at you are not his this from but had which she
they or an were we their been has have will would her there can all as if who what said""".split()

def features(text, s, collection=()):
    shingle, _, short = s["shingle"].partition("/")
    kind, sizes = shingle.split(":")
    width = int(sizes.split("+")[0])
    if kind == "chars":
        pieces = pieces_of(text, s, WHITE_SPACE)
        chars = " ".join(pieces) if s["segment"] == "unicode" else "".join(re.findall(r"\w", "".join(pieces)))
        width = min(width, len(chars))
        return [hashed(chars[i:i + width], s) for i in range(len(chars) - width + 1) if chars]
    tokens = words(text, s)
    if kind == "phrases":
        return phrases(tokens, width, table(s, collection))
    if kind == "stops":
        stops = {hashed(word, s) for word in STOPS}
        tokens = [token for token in tokens if token in stops]
    if short:
        below, shorter = map(int, short.split(":"))
        width = shorter if len(tokens) < below else width
    sizes = [width] if short else map(int, sizes.split("+"))
    made = [feature for size in sizes for feature in (windows(tokens, size) if size > 1 else tokens)]
    return made or windows(tokens, len(tokens)) if tokens else []

def table(s, collection):
    """In how many texts each feature occurs, where in two or more, and in how many all in all; for phrases, of words and of pairs of them."""
    shingle = "words:1+2" if s["shingle"].startswith("phrases:") else s["shingle"]
    counted = s | dict(shingle=shingle, weight="set", nouns="none", fields="none", terms="none", sketch="none")
    counts = {}
    for text in collection:
        for feature in set(features(text, counted)):
            counts[feature] = counts.get(feature, 0) + 1
    counts = {feature: count for feature, count in counts.items() if count > 1}
    scheme = " ".join(["lookalike/1", *("=".join(field) for field in counted.items() if field[0] != "key")]).encode()
    order = sorted(counts)
    file = (b"LKTERM\0\1" + struct.pack("<I", len(scheme)) + scheme + struct.pack("<QQ", len(collection), len(order))
            + struct.pack(f"<{len(order)}Q", *order) + struct.pack(f"<{len(order)}I", *map(counts.get, order)))
    assert "%016x" % xxh3(file, 0) == s["terms"], "another table of terms"
    return counts, len(collection)

def phrases(tokens, least, counted):
    counts, documents = counted
    pairs, made, at = windows(tokens, 2), [], 0
    while at < len(tokens):
        both, first, second = (counts.get(feature, 1) for feature in
                               (pairs[at] if at < len(pairs) else None, tokens[at], tokens[min(at + 1, len(tokens) - 1)]))
        joined = at < len(pairs) and both >= least and both * documents >= 8 * first * second
        made.append(pairs[at] if joined else tokens[at])
        at += 2 if joined else 1
    return made

def weights(text, fields, s):
    """Features of a text and of other fields with their weights in 256ths, no sum above 2^23."""
    wanted = dict(part.split(":") for part in s["fields"].split(","))
    own = words(text, s)
    weighed = [(feature, 256) for feature in (own if s["weight"] == "tf" else set(own))]
    if "anchors" in wanted:
        weight, _, window = wanted["anchors"].partition("~")
        full, window = 256 * int(weight), int(window or 0)
        of = lambda text: [avalanche(hash ^ GOLDEN) for hash in words(text, s)]
        for anchor in fields["anchors"]:
            weighed += [(feature, full) for feature in of(anchor["text"])]
            for near in of(anchor["before"])[::-1][:window], of(anchor["after"])[:window]:
                weighed += [(feature, full * (window - d) // (window + 1)) for d, feature in enumerate(near)]
    for number, name, field in (2, "in-links", "in_links"), (3, "out-links", "out_links"):
        links = set(fields[field]) if name in wanted else ()
        weighed += [(avalanche(hashed(link, s) ^ number * GOLDEN & M), 256 * int(wanted[name]))
                    for link in links]
    total = {}
    for feature, weight in weighed:
        total[feature] = total.get(feature, 0) + weight
    return sorted((feature, min(weight, 1 << 23)) for feature, weight in total.items())

def weighted_simhash(weighed, width=64):
    if not weighed:
        return None
    if width == 128:
        weighed = [(value | avalanche(value ^ GOLDEN) << 64, weight) for value, weight in weighed]
    bits = (sum(weight if value >> bit & 1 else -weight for value, weight in weighed) for bit in range(width))
    return "%0*x" % (width // 4, sum(1 << bit for bit, total in enumerate(bits) if total > 0))

def log2(number):
    """The logarithm in 256ths, rounded down."""
    return (number ** 256).bit_length() - 1

def weighed_features(values, s, collection):
    """Each distinct feature with its weight."""
    counts, documents = table(s, collection) if s["terms"] != "none" else ({}, 0)
    idf = lambda value: max(log2(documents + 1) - log2(counts.get(value, 1)), 1)
    def weight(value, n):
        log_tf = 256 + log2(min(n, 1 << 15))
        return {"set": 1, "tf": n, "log-tf": log_tf, "idf": idf(value), "tf-idf": min(n, 1 << 15) * idf(value),
                "log-tf-idf": max(log_tf * idf(value) // 256, 1)}[s["weight"]]
    return [(value, weight(value, values.count(value))) for value in set(values)]

def one_permutation(values, bins, seed):
    factor, least = next(splitmix64(seed)) | 1, {}
    for value in values:
        hash = avalanche(value * factor & M)
        bin = (hash >> 32) * bins >> 32
        least[bin] = min(least.get(bin, M), hash & 0xFFFFFFFF)
    def filled(bin, tries=0):
        at = bin
        while at not in least:
            tries += 1
            at = (avalanche((((bin + (tries << 32)) & M) ^ factor) * GOLDEN & M) >> 32) * bins >> 32
        return least[at]
    return [filled(bin) for bin in range(bins)]

def signature(values, functions, seed):
    draws, folds = splitmix64(seed), [(value >> 32 ^ value) & 0xFFFFFFFF for value in values]
    family = [(draw >> 32 | 1, draw & 0xFFFFFFFF) for draw, _ in zip(draws, range(functions))]
    return [min((a * x + b) & 0xFFFFFFFF for x in folds) for a, b in family]

def sketch(values, s, collection):
    kind, size = s["sketch"].split(":") if ":" in s["sketch"] else (s["sketch"], "")
    if kind == "none":
        return ["%016x" % value for value in values]
    if kind == "simhash":
        return weighted_simhash(weighed_features(values, s, collection), int(size))
    values = values if s["weight"] == "tf" else set(values)
    if not values:
        return None
    if kind == "oph":
        return ["%08x" % least for least in one_permutation(values, int(size), int(s["seed"]))]
    if kind == "minhash":
        return ["%08x" % least for least in signature(values, int(size), int(s["seed"]))]
    groups, rows = map(int, size.split("x"))
    minima = signature(values, groups * rows, int(s["seed"]))
    cut = [b"".join(v.to_bytes(4, "little") for v in minima[g * rows:(g + 1) * rows]) for g in range(groups)]
    return ["%016x" % xxh3(part, g) for g, part in enumerate(cut)]

def expected(row, s):
    """Each value of a row, by its name."""
    if "fields" in row:
        weighed = weights(row["text"], row["fields"], s)
        yield "weights", [["%016x" % feature, weight] for feature, weight in weighed]
        yield "fingerprint", weighted_simhash(weighed)
    else:
        name, = set(row) - {"scheme", "key", "text", "collection"}
        collection = row.get("collection", ())
        yield name, sketch(features(row["text"], s, collection), s, collection)

checked = 0
for name in "features", "words", "simhash", "weights", "minhash", "super-shingle", "stops", "phrases", "fields", "oph":
    for line in (pathlib.Path(__file__).parent / f"{name}.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        s = dict(part.split("=") for part in row["scheme"].split()[1:]) | {"key": row.get("key", "")}
        if s["segment"] == "word-chars" or s["shingle"].startswith("chars:"):
            for key, value in expected(row, s):
                assert value == row[key], (name, key, row)
            checked += 1
print(checked, "vectors agree")
