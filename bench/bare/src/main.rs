//! The floor: hyper, the whole body read, recorded bytes sent back.
//!
//! `bare --listen ADDR --answers DIR` reads from DIR, for each request, `NAME.head` (the header fields of a recorded
//! answer) and `NAME.body`. It parses no JSON: the `mcp-name` header chooses the answer, and for tools that ask one
//! substring search.

mod answers;

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};

use crate::answers::{Answer, Answers};

fn main() -> Result<(), Box<dyn Error>> {
    let (listen, dir) = arguments()?;
    let answers = Arc::new(Answers::load(&dir)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(bench_serve::serve(listen, move |request| respond(Arc::clone(&answers), request)))?;
    Ok(())
}

fn arguments() -> Result<(SocketAddr, PathBuf), Box<dyn Error>> {
    use lexopt::prelude::*;

    let (mut listen, mut answers) = (None, None);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("listen") => listen = Some(parser.value()?.parse()?),
            Long("answers") => answers = Some(PathBuf::from(parser.value()?)),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok((listen.ok_or("--listen ADDR is missing")?, answers.ok_or("--answers DIR is missing")?))
}

async fn respond(answers: Arc<Answers>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        return bad_request();
    };
    let name = head.headers.get("mcp-name").map(hyper::header::HeaderValue::as_bytes);
    match answers.choose(name, &body.to_bytes()) {
        Some(Answer { headers, body }) => {
            let mut response = Response::new(Full::new(body.clone()));
            *response.headers_mut() = headers.clone();
            response
        }
        None => bad_request(),
    }
}

fn bad_request() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}
