//! The schemes of URLs to which credentials go.

use std::net::IpAddr;

/// Checks the scheme and the host of a URL of an authorization server or of a protected resource. `host` is as the `url` crate
/// returns it, an IPv6 address in brackets.
///
/// > All authorization server endpoints **MUST** be served over HTTPS.
///
/// # Errors
/// The reason, if the URL is neither `https` nor `http` on this machine itself.
pub fn check_secure(scheme: &str, host: Option<&str>) -> Result<(), &'static str> {
    let host = host.ok_or("it has no host")?;
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_loopback = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    match scheme {
        "https" => Ok(()),
        "http" if is_loopback => Ok(()),
        _ => Err("it must be https, or http on this machine itself"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_only_on_this_machine() {
        let check = |scheme: &str, host: Option<&str>, expected: bool| {
            assert_eq!(check_secure(scheme, host).is_ok(), expected, "{scheme} {host:?}");
        };
        check("https", Some("auth.example.com"), true);
        for host in ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"] {
            check("http", Some(host), true);
            check("ftp", Some(host), false);
        }
        for host in ["auth.example.com", "localhost.example.com", "10.0.0.1", "0.0.0.0", "[::2]", "[fe80::1]"]
        {
            check("http", Some(host), false);
        }
        check("https", None, false);
    }
}
