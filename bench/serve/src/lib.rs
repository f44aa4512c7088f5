//! The HTTP shell that the bare server and the peer SDK share.
//!
//! Both then differ only in what they do with a request: same accept loop, same hyper settings,
//! same `TCP_NODELAY`.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// Serves HTTP/1.1 on `listen` until the process ends, one task per connection.
///
/// # Errors
///
/// Fails when the address cannot be bound or the listener breaks.
pub async fn serve<H, F, B>(listen: SocketAddr, handler: H) -> io::Result<()>
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send,
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    let listener = TcpListener::bind(listen).await?;
    loop {
        let (stream, _peer) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let handler = handler.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answer = handler(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            if let Err(error) = served {
                eprintln!("connection: {error}");
            }
        });
    }
}
