//! The measured tools on rmcp 3.9, over its Streamable HTTP service at `/mcp`.
//!
//! `rmcp-server --listen ADDR [--tools N]`: with `--tools`, N more tools are listed and may be called.
//!
//! Set up as fast as its public API allows: no sessions, JSON replies instead of event streams,
//! a hand-written handler instead of the macros (which rebuild the tool table on each call),
//! `TCP_NODELAY`, no log subscriber.

mod tools;

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::tools::Tools;

fn main() -> Result<(), Box<dyn Error>> {
    let (listen, more) = arguments()?;
    let tools = Tools::new(more)?;
    let config =
        StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
    let service = Arc::new(StreamableHttpService::new(
        move || Ok(tools.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    ));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(bench_serve::serve(
        listen,
        move |request: Request<Incoming>| {
            let service = Arc::clone(&service);
            async move {
                if request.uri().path() == "/mcp" {
                    service.handle(request).await
                } else {
                    not_found()
                }
            }
        },
    ))?;
    Ok(())
}

fn arguments() -> Result<(SocketAddr, usize), Box<dyn Error>> {
    use lexopt::prelude::*;

    let (mut listen, mut tools) = (None, 0);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("listen") => listen = Some(parser.value()?.parse()?),
            Long("tools") => tools = parser.value()?.parse()?,
            other => return Err(other.unexpected().into()),
        }
    }
    Ok((listen.ok_or("--listen ADDR is missing")?, tools))
}

type Body = http_body_util::combinators::BoxBody<bytes::Bytes, Infallible>;

fn not_found() -> Response<Body> {
    let mut response = Response::new(Empty::new().boxed());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
