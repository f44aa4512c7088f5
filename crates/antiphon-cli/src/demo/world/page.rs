//! What a browser sees of the world.

use super::service::Shared;
use antiphon::Result;
use http_body_util::Full;
use hyper::{Response, StatusCode, body::Bytes, http::request::Parts};

pub(super) type Reply = Response<Full<Bytes>>;

pub(super) fn text(status: StatusCode, text: String) -> Result<Reply> {
    Ok(Response::builder()
        .status(status)
        .header("content-type", "text/plain; charset=utf-8")
        .body(Full::new(Bytes::from(text)))?)
}

pub(super) fn answer(_head: &Parts, _body: &Bytes, _things: &Shared) -> Result<Reply> {
    text(StatusCode::NOT_FOUND, "no such page".into())
}
