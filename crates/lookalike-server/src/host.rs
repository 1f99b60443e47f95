//! Host names to which a service without keys answers.
//!
//! A page in a browser can make its own host name resolve to this machine and then read what the service answers. Such requests contain
//! that name.

use axum::body::Body;
use axum::http::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;

/// Tells whether a request is addressed to a name of this machine, or to no name.
pub(crate) fn is_local(request: &Request<Body>) -> bool {
    let headers = request.headers().get_all(HOST).iter();
    // A name that is not ASCII is none of this machine's, and neither is `?`.
    let named = headers.map(|value| value.to_str().unwrap_or("?"));
    let sent_to = request.uri().authority().map(Authority::as_str);
    // An absolute target overrides `Host` (RFC 9112 section 3.2.2), and HTTP/2 requests may have no `Host`: every name that is present must
    // be local.
    named.chain(sent_to).all(is_local_name)
}

/// Tells whether a name, with an optional port, is one of this machine.
fn is_local_name(authority: &str) -> bool {
    let name = match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => authority,
    };
    // Brackets enclose an IPv6 address (RFC 3986 section 3.2.2). An address without them may lose its last group to the port above, but
    // this does not make any foreign name local.
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    // Names are not resolved: the owner of a zone decides what its names resolve to.
    name.eq_ignore_ascii_case("localhost")
        || bare
            .parse()
            .is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

/// Tells whether a page of this service sent the request. Browsers set the origin, and pages cannot change it.
pub(crate) fn is_same_origin(request: &Request<Body>) -> bool {
    let word = |name| request.headers().get(name)?.to_str().ok();
    let sent_to = request.uri().authority().map(Authority::as_str);
    let sent_to = sent_to.or_else(|| word(HOST));
    let origin = word(ORIGIN).and_then(|origin| {
        origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
    });
    origin.is_some() && origin == sent_to
}

/// Tells whether a page of another site sent the request. Such a page cannot read the answer, but could cause work. Browsers report this
/// (Fetch Metadata Request Headers, section 2.3); other programs do not send the header. Sites do not include ports, so other pages on this
/// machine are treated as foreign too.
pub(crate) fn is_cross_site(request: &Request<Body>) -> bool {
    let site = request.headers().get("sec-fetch-site");
    site.is_some_and(|site| site == "cross-site" || site == "same-site")
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
            is_same_origin(&request.expect("a request"))
        };
        assert!(request("http://localhost:7280") && request("https://localhost:7280"));
        for other in ["null", "http://localhost:8000", "http://evil.example", ""] {
            assert!(!request(other), "{other}");
        }
        let request = Request::builder().uri("/").header(HOST, "localhost:7280");
        assert!(!is_same_origin(
            &request.body(Body::empty()).expect("a request")
        ));
    }

    #[test]
    fn pages_of_other_sites_made_the_service_work() {
        let request = |site: &str| {
            let request = Request::builder().header("Sec-Fetch-Site", site);
            is_cross_site(&request.body(Body::empty()).expect("a request"))
        };
        assert!(request("cross-site") && request("same-site"));
        assert!(!request("same-origin") && !request("none"));
        assert!(!is_cross_site(&Request::new(Body::empty())));
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
        let twice = Request::builder()
            .uri("/")
            .header(HOST, "localhost")
            .header(HOST, "evil.example")
            .body(Body::empty());
        assert!(!is_local(&twice.expect("a request")));
    }
}
