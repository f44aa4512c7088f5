//! The page on which a deposit is paid: what a person opens in a browser.
//!
//! Whoever opens it has to be the person that the question was put to. Who that is says the page's own login, never the
//! link: a link can be sent to anyone, who would then pay for somebody else.

use super::{Who, service::Shared};
use antiphon::server::{Server, UrlRef};
use http_body_util::Full;
use hyper::{
    Method, Response, StatusCode,
    body::Bytes,
    header::{self, HeaderValue},
    http::request::Parts,
};

pub(super) type Reply = Response<Full<Bytes>>;

/// The question that leads here is `deposit#` and the number of the booking.
pub(in super::super) const KEY: &str = "deposit";

/// A reply to a browser.
pub(super) fn answer(head: &Parts, body: &[u8], things: &Shared, server: Option<&Server>) -> Reply {
    let path = head.uri.path();
    match (path.strip_prefix("/pay/"), server) {
        (Some(reference), Some(server)) => pay(head, reference, things, server),
        _ if path == "/sign-in" && head.method == Method::POST => sign_in(body),
        _ => page(StatusCode::NOT_FOUND, "<p>There is no such page."),
    }
}

fn pay(head: &Parts, reference: &str, things: &Shared, server: &Server) -> Reply {
    let who = signed_in(head);
    // Before anything is shown, and again before anything is taken: each request comes through here.
    let asked = match UrlRef::verify(server, reference, who.principal().as_ref()) {
        Ok(asked) => asked,
        Err(refused) => {
            return page(StatusCode::FORBIDDEN, &format!("<p>{refused} You are {who}.{SIGN_IN}"));
        }
    };
    // What is paid for comes from the sealed reference: the rest of a link can be changed by anyone.
    let Some(booking) = asked.key().strip_prefix(KEY).and_then(|key| key.strip_prefix('#')) else {
        return page(StatusCode::NOT_FOUND, "<p>There is nothing to pay here.");
    };
    let mut things = things.lock();
    let paid = things.deposits.contains_key(booking);
    if head.method == Method::POST && !paid {
        things.deposits.insert(booking.to_owned(), who.to_string());
        *things.counts.deposits.entry(booking.to_owned()).or_default() += 1;
    } else if !paid {
        let form = format!("<p>You are {who}. Deposit for booking {booking}: 50 EUR.{PAY}");
        return page(StatusCode::OK, &form);
    }
    page(StatusCode::OK, &format!("<p>The deposit for booking {booking} is paid. You can close this page."))
}

const PAY: &str = "<form method=post><button>Pay</button></form>";
const SIGN_IN: &str =
    "<form method=post action=/sign-in>Sign in as <input name=user> <button>Sign in</button></form>";

/// Who the cookie says. It is as good as a password here, and nothing elsewhere: a real page has a real login.
fn signed_in(head: &Parts) -> Who {
    let cookies = head.headers.get(header::COOKIE).and_then(|cookies| cookies.to_str().ok()).unwrap_or("");
    cookies.split("; ").find_map(|cookie| cookie.strip_prefix("user=")).map_or(Who::Guest, Who::named)
}

fn sign_in(body: &[u8]) -> Reply {
    let name = std::str::from_utf8(body).ok().and_then(|body| body.strip_prefix("user=")).unwrap_or("");
    let who = Who::named(name);
    let mut reply = page(StatusCode::OK, &format!("<p>You are {who}. Go back, and open the link again."));
    if let Ok(cookie) = HeaderValue::from_str(&format!("user={name}; Path=/; HttpOnly; SameSite=Lax"))
        && who != Who::Guest
    {
        reply.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    reply
}

fn page(status: StatusCode, body: &str) -> Reply {
    let html = format!("<!doctype html><meta charset=utf-8><title>Demo payments</title>{body}\n");
    reply(status, "text/html; charset=utf-8", html.into())
}

pub(super) fn reply(status: StatusCode, kind: &'static str, body: Vec<u8>) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body)));
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}
