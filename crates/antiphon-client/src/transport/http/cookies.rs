//! The cookies of one session: a balancer that keeps a session on one instance often marks it with one.

use http::{HeaderMap, HeaderValue, header};
use std::sync::{Mutex, PoisonError};

/// The maximum number of cookies that are kept, and the maximum length of one in bytes, its name included.
const MAX_COOKIES: usize = 32;
const MAX_COOKIE: usize = 4096;

/// All go to the one URL of the transport, so that neither domain nor path is looked at.
#[derive(Default)]
pub(crate) struct CookieJar(Mutex<Vec<(String, String)>>);

impl CookieJar {
    /// Stores the cookies that a response sets.
    pub(crate) fn keep(&self, headers: &HeaderMap) {
        for cookie in headers.get_all(header::SET_COOKIE).iter().filter_map(|value| value.to_str().ok()) {
            let mut parts = cookie.split(';').map(str::trim);
            let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { continue };
            let (name, value) = (name.trim(), value.trim());
            let is_over = parts.any(|attribute| match attribute.split_once('=') {
                Some((key, age)) if key.eq_ignore_ascii_case("max-age") => age.starts_with('-') || age == "0",
                _ => false,
            });
            if name.is_empty() || name.len() + value.len() > MAX_COOKIE {
                continue;
            }
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.retain(|(other, _)| other != name);
            if !is_over && kept.len() < MAX_COOKIES {
                kept.push((name.to_owned(), value.to_owned()));
            }
        }
    }

    /// Adds them to a request, behind those that every request has.
    pub(crate) fn add(&self, headers: &mut HeaderMap) {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_empty() {
            return;
        }
        let own = headers.get(header::COOKIE).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let pairs = kept.iter().map(|(name, value)| format!("{name}={value}"));
        let all: Vec<String> = own.into_iter().chain(pairs).collect();
        if let Ok(mut value) = HeaderValue::try_from(all.join("; ")) {
            value.set_sensitive(true);
            headers.insert(header::COOKIE, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_goes_back() {
        let check = |own: Option<&str>, set: &[&str], sent: Option<&str>| {
            let jar = CookieJar::default();
            for cookie in set {
                let mut headers = HeaderMap::new();
                headers.append(header::SET_COOKIE, HeaderValue::from_str(cookie).unwrap());
                jar.keep(&headers);
            }
            let mut headers = HeaderMap::new();
            if let Some(own) = own {
                headers.insert(header::COOKIE, HeaderValue::from_str(own).unwrap());
            }
            jar.add(&mut headers);
            let found = headers.get(header::COOKIE).map(|value| value.to_str().unwrap());
            assert_eq!(found, sent, "{set:?}");
        };
        check(None, &[], None);
        check(Some("a=1"), &[], Some("a=1"));
        check(None, &["SRV=s1; path=/; HttpOnly"], Some("SRV=s1"));
        check(Some("a=1"), &["SRV=s1", "x = y ; Max-Age=60"], Some("a=1; SRV=s1; x=y"));
        check(None, &["SRV=s1", "SRV=s2"], Some("SRV=s2"));
        check(None, &["SRV=s1", "SRV=; Max-Age=0"], None);
        check(None, &["no pair", "=1", &format!("a={}", "x".repeat(MAX_COOKIE))], None);
        let many: Vec<String> = (0..MAX_COOKIES + 9).map(|n| format!("c{n}=1")).collect();
        let all: Vec<String> = many[..MAX_COOKIES].to_vec();
        check(None, &many.iter().map(String::as_str).collect::<Vec<_>>(), Some(&all.join("; ")));
    }
}
