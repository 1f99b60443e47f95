//! Under which names a service without keys answers.
//!
//! A page in a browser can make a name of its own point to this machine and then read what is served there. Such requests
//! bear that name.

use axum::body::Body;
use axum::http::Request;
use axum::http::header::HOST;

/// Whether a request was sent to this machine by a name for it, or by none.
pub(crate) fn is_local(request: &Request<Body>) -> bool {
    let header = request
        .headers()
        .get(HOST)
        .map(|value| value.to_str().unwrap_or("?"));
    let sent_to = request
        .uri()
        .authority()
        .map(|authority| authority.as_str());
    [header, sent_to].into_iter().flatten().all(|authority| {
        let name = match authority.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => authority,
        };
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost")
            || bare
                .parse()
                .is_ok_and(|address: std::net::IpAddr| address.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_refused() {
        let asked = |host: &str| {
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
            assert!(asked(local), "{local}");
        }
        for other in [
            "evil.example",
            "evil.example:7280",
            "localhost.evil.example",
            "10.0.0.1",
            "",
        ] {
            assert!(!asked(other), "{other}");
        }
    }
}
