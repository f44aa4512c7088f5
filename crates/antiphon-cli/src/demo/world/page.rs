//! The page on which a deposit is paid: what a person opens in a browser.
//!
//! Whoever opens it has to be the person that the question was put to. Who that is says the page's own login, never the
//! link: a link can be sent to anyone, who would then pay for somebody else.

use super::{Who, service::Shared};
use antiphon::server::Server;
use http_body_util::Full;
use hyper::{
    Method, Response, StatusCode,
    body::Bytes,
    header::{self, HeaderValue},
    http::request::Parts,
};

pub(super) type Reply = Response<Full<Bytes>>;

/// A reply to a browser.
pub(super) fn answer(head: &Parts, body: &[u8], things: &Shared, server: Option<&Server>) -> Reply {
    let _ = (things, server);
    match () {
        () if head.uri.path() == "/sign-in" && head.method == Method::POST => sign_in(body),
        _ => page(StatusCode::NOT_FOUND, "<p>There is no such page."),
    }
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
