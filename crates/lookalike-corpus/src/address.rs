//! Addresses of pages in one form, so that a link and the page that it leads to are written alike.
//!
//! An address is a URL of `http` or `https`, or the path of a file:
//!
//! - a link is resolved against the address of its page as RFC 3986, section 5.2, says, dots included;
//! - scheme and host are in lower case; a default port and the part behind `#` are left out; an empty path is `/`;
//! - characters that no URL holds are written as `%` and two digits, as browsers do. What is written so already stays.

use std::fmt::Write as _;

/// Longest address, in bytes: all links of a page are resolved against its own, and with a longer one would take the square of its length.
const LONGEST: usize = 4096;

/// The address of a page that is known by this URL or path; none for other URLs, such as `urn:`, and for more than 4,096 bytes.
///
/// ```
/// use lookalike_corpus::page_address;
/// assert_eq!(page_address("HTTP://Example.org:80#top").as_deref(), Some("http://example.org/"));
/// assert_eq!(page_address("docs/a b.html").as_deref(), Some("docs/a%20b.html"));
/// assert_eq!(page_address("urn:uuid:1"), None);
/// ```
pub fn page_address(name: &str) -> Option<String> {
    match scheme(name.trim_start()) {
        Some(_) => linked_address("", name),
        None if name.len() > LONGEST => None,
        None => {
            let mut path = String::new();
            // The name of a file is no URL: a `%`, `#` or `?` in it is a character of the name, and must not be
            // taken for an escape, a fragment or a query when a link to it is compared.
            encode(name, |c| " \"#%<>?`{}".contains(c), &mut path);
            Some(without_dots(&path))
        }
    }
}

/// The address that a link leads to on the page of an address; none where no page can be meant, such as `mailto:`, and for more than 4,096
/// bytes.
///
/// ```
/// use lookalike_corpus::linked_address;
/// let page = "http://example.org/a/b";
/// assert_eq!(linked_address(page, "../c?d#e").as_deref(), Some("http://example.org/c?d"));
/// assert_eq!(linked_address("docs/a.html", "b.html").as_deref(), Some("docs/b.html"));
/// assert_eq!(linked_address(page, "mailto:a@example.org"), None);
/// ```
pub fn linked_address(page: &str, link: &str) -> Option<String> {
    if link.len() > LONGEST || page.len() > LONGEST {
        return None;
    }
    resolved(page, link).filter(|address| address.len() <= LONGEST)
}

fn resolved(page: &str, link: &str) -> Option<String> {
    // As browsers do: blanks around a URL, and tabs and line ends within, are no part of it (WHATWG URL, basic
    // URL parser).
    let link = link.trim_matches(|c: char| c <= ' ');
    let link: String = link.chars().filter(|c| !"\t\n\r".contains(*c)).collect();
    // Before the query: a `?` behind the `#` belongs to the fragment (RFC 3986, section 3.5).
    let link = link.split('#').next().unwrap_or_default();
    let (path, query) = match link.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (link, None),
    };
    if let Some(name) = scheme(path) {
        // In URLs of the web a backslash is a slash (WHATWG URL).
        let rest = path[name.len() + 1..].replace('\\', "/");
        // `http:path` without `//` is a link that browsers repair in different ways; it names no page here.
        return url(&name.to_ascii_lowercase(), rest.strip_prefix("//")?, query);
    }
    let Some((name, place)) = page.split_once("://").filter(|_| scheme(page).is_some()) else {
        return linked_file(page, path, query);
    };
    let path = path.replace('\\', "/");
    if let Some(place) = path.strip_prefix("//") {
        return url(name, place, query);
    }
    let (here, own_query) = match place.split_once('?') {
        Some((here, query)) => (here, Some(query)),
        None => (place, None),
    };
    let host_end = here.find('/').unwrap_or(here.len());
    let (host, folder) = here.split_at(host_end);
    let whole = match path.as_str() {
        // A link without a path keeps that of the page, and its query unless it has its own (RFC 3986, section
        // 5.2.2).
        "" => return url(name, here, query.or(own_query)),
        path if path.starts_with('/') => format!("{host}{path}"),
        path => format!("{host}{}{path}", folder_of(folder, "/")),
    };
    url(name, &whole, query)
}

/// The address that a link in a file leads to.
fn linked_file(page: &str, path: &str, query: Option<&str>) -> Option<String> {
    // `//host/path` takes its scheme from the page, and a file has none.
    if path.starts_with("//") {
        return None;
    }
    let whole = match path {
        "" => page.to_owned(),
        path if path.starts_with('/') => path.to_owned(),
        path => format!("{}{path}", folder_of(page, "")),
    };
    let mut encoded = String::new();
    encode(&whole, is_foreign, &mut encoded);
    let mut address = without_dots(&encoded);
    if let Some(query) = query {
        address.push('?');
        encode(query, is_foreign_in_query, &mut address);
    }
    Some(address)
}

/// Path up to its last slash.
fn folder_of<'p>(path: &'p str, none: &'p str) -> &'p str {
    path.rfind('/').map_or(none, |slash| &path[..=slash])
}

/// The scheme that a URL begins with.
fn scheme(url: &str) -> Option<&str> {
    let (name, _) = url.split_once(':')?;
    let is_scheme = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_scheme.then_some(name)
}

/// The URL of host, path and query.
fn url(scheme: &str, place: &str, query: Option<&str>) -> Option<String> {
    let default_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return None,
    };
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let host = host.to_lowercase();
    // An empty port stands for the default one (RFC 3986, section 3.2.3), so a colon may be left before and
    // behind `:80`.
    let host = host.trim_end_matches(':');
    let host = host.strip_suffix(default_port).unwrap_or(host);
    let host = host.trim_end_matches(':');
    // Characters that no host holds (WHATWG URL, forbidden host code points). Hosts beyond ASCII stay as they
    // are: Punycode would need the tables of IDNA, and a link and its page are mostly written alike.
    if host.is_empty() || host.contains(|c: char| c <= ' ' || "<>\"%^`{|}".contains(c)) {
        return None;
    }
    let mut encoded = String::new();
    encode(path, is_foreign, &mut encoded);
    let path = match encoded.as_str() {
        "" => "/".to_owned(),
        path => without_dots(path),
    };
    let mut address = format!("{scheme}://{host}{path}");
    if let Some(query) = query {
        address.push('?');
        encode(query, is_foreign_in_query, &mut address);
    }
    Some(address)
}

/// Path without `.` and `..`, but for those that lead out of where a relative path begins.
fn without_dots(path: &str) -> String {
    let is_rooted = path.starts_with('/');
    let relative = path.strip_prefix('/').unwrap_or(path);
    // RFC 3986, section 5.2.4, save that what leads out of a relative path stays.
    let mut kept: Vec<&str> = Vec::new();
    let mut parts = relative.split('/').peekable();
    while let Some(part) = parts.next() {
        match part {
            "." => {}
            ".." if !is_rooted && kept.last().is_none_or(|last| *last == "..") => {
                kept.push("..");
                continue;
            }
            ".." => drop(kept.pop()),
            part => {
                kept.push(part);
                continue;
            }
        }
        // A last `.` or `..` means a directory: its address ends with a slash, as that of `a/` does.
        if parts.peek().is_none() {
            kept.push("");
        }
    }
    let root = if is_rooted { "/" } else { "" };
    format!("{root}{}", kept.join("/"))
}

fn is_foreign(c: char) -> bool {
    " \"#<>?`{}".contains(c)
}

fn is_foreign_in_query(c: char) -> bool {
    " \"#<>'".contains(c)
}

/// Appends a text, with what `is_foreign`, controls and what is beyond ASCII as `%` and two digits a byte.
fn encode(text: &str, is_foreign: impl Fn(char) -> bool, out: &mut String) {
    for c in text.chars() {
        if c > ' ' && c < '\u{7f}' && !is_foreign(c) {
            out.push(c);
            continue;
        }
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            write!(out, "%{byte:02X}").expect("a string takes everything");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    #[cfg(feature = "cloud")]
    use url::Url;

    use super::*;

    /// RFC 3986, section 5.4: the examples that are links to pages.
    #[test]
    fn the_examples_of_the_rfc() {
        let page = "http://a/b/c/d;p?q";
        for (link, expected) in [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            ("g?y#s", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/../h", "http://a/b/c/h"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
        ] {
            assert_eq!(
                linked_address(page, link).as_deref(),
                Some(expected),
                "{link}"
            );
        }
    }

    #[test]
    fn one_page_has_one_address() {
        for (name, expected) in [
            ("https://E.org:443", Some("https://e.org/")),
            ("http://e.org:8080/A?b#c", Some("http://e.org:8080/A?b")),
            (" http://e.org/a\nb ", Some("http://e.org/ab")),
            ("http:\\\\e.org\\a", Some("http://e.org/a")),
            (
                "http://e.org/\u{e9} x%20",
                Some("http://e.org/%C3%A9%20x%20"),
            ),
            ("./a/../b.html", Some("b.html")),
            ("../b.html", Some("../b.html")),
            ("../a/../../b.html", Some("../../b.html")),
            ("/../b.html", Some("/b.html")),
            ("/srv/50% x?.html", Some("/srv/50%25%20x%3F.html")),
            ("http:///a", None),
            ("http:a", None),
            ("ftp://e.org/", None),
            ("javascript:void(0)", None),
        ] {
            assert_eq!(page_address(name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn links_of_files_lead_to_files() {
        for (link, expected) in [
            ("c.html#x", Some("a/b/c.html")),
            ("../c.html", Some("a/c.html")),
            ("../../c.html", Some("c.html")),
            ("../../../c.html", Some("../c.html")),
            ("//e.org/", None),
            ("c%20d.html", Some("a/b/c%20d.html")),
            ("c d.html", Some("a/b/c%20d.html")),
            ("HTTP://e.org", Some("http://e.org/")),
        ] {
            assert_eq!(
                linked_address("a/b/x.html", link).as_deref(),
                expected,
                "{link}"
            );
        }
    }

    proptest! {
        #[test]
        fn an_address_leads_to_itself(name in "(https?://[a-c]{1,3}(:80|:443|:8)?)?[a-c./%? é#:]{0,12}") {
            if let Some(address) = page_address(&name) {
                let again = page_address(&address);
                if address.starts_with("http") && address.contains("://") {
                    prop_assert_eq!(again.as_ref(), Some(&address));
                    prop_assert_eq!(linked_address("http://x/y", &address), Some(address));
                }
            }
        }

        /// The browsers' own definition, for what both take.
        #[cfg(feature = "cloud")]
        #[test]
        fn links_are_resolved_as_browsers_do(
            page in "https?://[a-c]{1,3}(:80|:443|:8)?(/[a-c]{0,2}){0,3}(\\?[a-c]{0,2})?",
            link in "(https?:)?(//[a-cA-C]{1,2}/)?[a-c./\\\\ é'\"<>{}`]{0,9}(\\?[a-c/.' é\"]{0,4})?(#[a-c?]{0,2})?",
        ) {
            let ours = linked_address(&page_address(&page).unwrap(), &link);
            let expected = Url::parse(&page).unwrap().join(&link);
            // A scheme without a host takes that of the page or of the path in browsers; nobody means that.
            prop_assume!(ours.is_some() && expected.is_ok());
            let mut expected = expected.unwrap();
            expected.set_fragment(None);
            // Hosts in other scripts stay as they are written.
            prop_assume!(!expected.as_str().contains("xn--"));
            prop_assert_eq!(ours.unwrap(), expected.to_string());
        }
    }
}
