//! Normalizes the addresses of pages, so that a link and the page that it leads to are written alike.
//!
//! An address is a URL of `http` or `https`, or the path of a file:
//!
//! - a link is resolved against the address of its page as in RFC 3986, section 5.2, including `.` and `..`;
//! - scheme and host are in lower case, the host in ASCII; a default port and the fragment (from `#` on) are left out; an empty path is `/`;
//! - characters that a URL cannot contain are percent-encoded, as in browsers. Existing escapes stay as they are.

use std::fmt::Write as _;

use crate::ascii_host::ascii_host;

/// Maximum length of an address, in bytes. All links of a page are resolved against its address, so a longer one could cost quadratic time.
const MAX_ADDRESS_BYTES: usize = 4096;

/// Returns the address of the page with this URL or path, or `None` for other URLs, such as `urn:`, and for names of more than 4,096 bytes.
///
/// ```
/// use lookalike_corpus::page_address;
/// assert_eq!(page_address("HTTP://Example.org:80#top").as_deref(), Some("http://example.org/"));
/// assert_eq!(page_address("docs/a b.html").as_deref(), Some("docs/a%20b.html"));
/// assert_eq!(page_address("urn:uuid:1"), None);
/// ```
pub fn page_address(name: &str) -> Option<String> {
    match url_scheme(name.trim_start()) {
        Some(_) => linked_address("", name),
        None if name.len() > MAX_ADDRESS_BYTES => None,
        None => {
            // A file name is not a URL: a `%`, `#` or `?` in it is an ordinary character, and must not be taken for an escape, a fragment or a query
            // when a link to the file is compared.
            let path = encode(name, |c| " \"#%<>?`{}".contains(c));
            Some(without_dots(&path))
        }
    }
}

/// Resolves a link found on the page with address `page`. Returns `None` if the link cannot lead to a page, such as `mailto:`, or if either has more
/// than 4,096 bytes.
///
/// ```
/// use lookalike_corpus::linked_address;
/// let page = "http://example.org/a/b";
/// assert_eq!(linked_address(page, "../c?d#e").as_deref(), Some("http://example.org/c?d"));
/// assert_eq!(linked_address("docs/a.html", "b.html").as_deref(), Some("docs/b.html"));
/// assert_eq!(linked_address(page, "mailto:a@example.org"), None);
/// ```
pub fn linked_address(page: &str, link: &str) -> Option<String> {
    if link.len() > MAX_ADDRESS_BYTES || page.len() > MAX_ADDRESS_BYTES {
        return None;
    }
    resolved(page, link).filter(|address| address.len() <= MAX_ADDRESS_BYTES)
}

fn resolved(page: &str, link: &str) -> Option<String> {
    // As in browsers: blanks around a URL, and tabs and line ends within it, are dropped (WHATWG URL, basic URL parser).
    let link = link.trim_matches(|c: char| c <= ' ');
    let link: String = link.chars().filter(|c| !"\t\n\r".contains(*c)).collect();
    // Cut the fragment before the query: a `?` after the `#` belongs to the fragment (RFC 3986, section 3.5).
    let link = link.split('#').next().unwrap_or_default();
    let (path, query) = match link.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (link, None),
    };
    if let Some(name) = url_scheme(path) {
        // In URLs of the web a backslash is a slash (WHATWG URL).
        let rest = path[name.len() + 1..].replace('\\', "/");
        // `http:path` without `//` is a malformed link that browsers repair in different ways, so it has no address here.
        return url(&name.to_ascii_lowercase(), rest.strip_prefix("//")?, query);
    }
    let Some((name, place)) = page
        .split_once("://")
        .filter(|_| url_scheme(page).is_some())
    else {
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

/// Resolves a link found in a file.
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
    let address = without_dots(&encode(&whole, is_foreign));
    Some(with_query(address, query))
}

/// Returns the path up to and including its last slash, or `none` if it has no slash.
fn folder_of<'p>(path: &'p str, none: &'p str) -> &'p str {
    path.rfind('/').map_or(none, |slash| &path[..=slash])
}

/// Returns the scheme of a URL, without the colon.
pub(crate) fn url_scheme(url: &str) -> Option<&str> {
    let (name, _) = url.split_once(':')?;
    let is_scheme = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_scheme.then_some(name)
}

/// Builds the normalized URL from scheme, host, path and query.
fn url(scheme: &str, place: &str, query: Option<&str>) -> Option<String> {
    let default_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return None,
    };
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let host = host.to_lowercase();
    // An empty port stands for the default one (RFC 3986, section 3.2.3), so a colon may remain before and after `:80`.
    let host = host.trim_end_matches(':');
    let host = host.strip_suffix(default_port).unwrap_or(host);
    let host = host.trim_end_matches(':');
    let host = ascii_host(host)?;
    // Characters that a host cannot contain (WHATWG URL, forbidden host code points).
    if host.is_empty() || host.contains(|c: char| c <= ' ' || "<>\"%^`{|}".contains(c)) {
        return None;
    }
    let path = match encode(path, is_foreign).as_str() {
        "" => "/".to_owned(),
        path => without_dots(path),
    };
    Some(with_query(format!("{scheme}://{host}{path}"), query))
}

/// Removes the `.` and `..` segments of a path, except a `..` that leads above the start of a relative path.
fn without_dots(path: &str) -> String {
    let is_rooted = path.starts_with('/');
    let relative = path.strip_prefix('/').unwrap_or(path);
    // RFC 3986, section 5.2.4, except that a `..` above the start of a relative path stays.
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
        // A last `.` or `..` means a directory, so the address ends with a slash, like that of `a/`.
        if parts.peek().is_none() {
            kept.push("");
        }
    }
    let root = if is_rooted { "/" } else { "" };
    format!("{root}{}", kept.join("/"))
}

/// Appends the query to an address, if there is one.
fn with_query(address: String, query: Option<&str>) -> String {
    match query {
        Some(query) => address + "?" + &encode(query, is_foreign_in_query),
        None => address,
    }
}

fn is_foreign(c: char) -> bool {
    " \"#<>?`{}".contains(c)
}

fn is_foreign_in_query(c: char) -> bool {
    " \"#<>'".contains(c)
}

/// Percent-encodes every byte of control characters, non-ASCII characters and those for which `is_foreign` is true.
fn encode(text: &str, is_foreign: impl Fn(char) -> bool) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c > ' ' && c < '\u{7f}' && !is_foreign(c) {
            out.push(c);
            continue;
        }
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            write!(out, "%{byte:02X}").expect("a string takes everything");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    #[cfg(feature = "cloud")]
    use url::Url;

    use super::*;

    /// Checks those examples of RFC 3986, section 5.4, that are links to pages.
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

        /// Compares with the URL crate that follows the browsers' standard, for links that both accept.
        #[cfg(feature = "cloud")]
        #[test]
        fn links_are_resolved_as_browsers_do(
            page in "https?://[a-c]{1,3}(:80|:443|:8)?(/[a-c]{0,2}){0,3}(\\?[a-c]{0,2})?",
            link in "(https?:)?(//[a-cA-C]{1,2}/)?[a-c./\\\\ é'\"<>{}`]{0,9}(\\?[a-c/.' é\"]{0,4})?(#[a-c?]{0,2})?",
        ) {
            let ours = linked_address(&page_address(&page).unwrap(), &link);
            let expected = Url::parse(&page).unwrap().join(&link);
            // Browsers give a scheme without a host the host of the page or of the path; nobody writes such links on purpose.
            prop_assume!(ours.is_some() && expected.is_ok());
            let mut expected = expected.unwrap();
            expected.set_fragment(None);
            // Hosts in other scripts stay as written here.
            prop_assume!(!expected.as_str().contains("xn--"));
            prop_assert_eq!(ours.unwrap(), expected.to_string());
        }
    }
}
