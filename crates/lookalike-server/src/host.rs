//! The names under which a service without keys answers.
//!
//! A page in a browser can make a name of its own point to this machine and then read what is served there. Such requests
//! bear that name.

use axum::body::Body;
use axum::http::Request;
use axum::http::header::{HOST, ORIGIN};

/// Tells whether a request is addressed to a name of this machine, or to none.
pub(crate) fn is_local(request: &Request<Body>) -> bool {
    let header = request
        .headers()
        .get(HOST)
        .map(|value| value.to_str().unwrap_or("?"));
    let sent_to = request
        .uri()
        .authority()
        .map(|authority| authority.as_str());
    // An absolute target overrides `Host` (RFC 9112 section 3.2.2), HTTP/2 may have no `Host` at all: whatever
    // there is has to be local.
    [header, sent_to].into_iter().flatten().all(is_name_of_here)
}

/// Tells whether a name with an optional port is one of this machine.
fn is_name_of_here(authority: &str) -> bool {
    let name = match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => authority,
    };
    // Brackets are those of an IPv6 address (RFC 3986 section 3.2.2). One without them may lose its last group
    // to the port above; no name from elsewhere becomes local by that.
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    // Nothing is resolved: what another name means is up to whoever serves its zone.
    name.eq_ignore_ascii_case("localhost")
        || bare
            .parse()
            .is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

/// Tells whether a page of this service sent the request: browsers set the origin, and pages cannot change it.
pub(crate) fn is_own_page(request: &Request<Body>) -> bool {
    let word = |name| request.headers().get(name)?.to_str().ok();
    let sent_to = request
        .uri()
        .authority()
        .map(|authority| authority.as_str())
        .or_else(|| word(HOST));
    let origin = word(ORIGIN).and_then(|origin| {
        origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
    });
    origin.is_some() && origin == sent_to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_page_of_this_service_is_its_own() {
        let request = |origin: &str| {
            let request = Request::builder()
                .uri("/")
                .header(HOST, "localhost:7280")
                .header(ORIGIN, origin)
                .body(Body::empty());
            is_own_page(&request.expect("a request"))
        };
        assert!(request("http://localhost:7280") && request("https://localhost:7280"));
        for other in ["null", "http://localhost:8000", "http://evil.example", ""] {
            assert!(!request(other), "{other}");
        }
        let request = Request::builder().uri("/").header(HOST, "localhost:7280");
        assert!(!is_own_page(
            &request.body(Body::empty()).expect("a request")
        ));
    }

    #[test]
    fn names_of_others_are_refused() {
        let request = |host: &str| {
            let request = Request::builder()
                .uri("/")
                .header(HOST, host)
                .body(Body::empty());
            is_local(&request.expect("a request"))
        };
        for local in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:7280",
            "[::1]:7280",
            "[::1]",
        ] {
            assert!(request(local), "{local}");
        }
        for other in [
            "evil.example",
            "evil.example:7280",
            "localhost.evil.example",
            "10.0.0.1",
            "",
        ] {
            assert!(!request(other), "{other}");
        }
    }
}
