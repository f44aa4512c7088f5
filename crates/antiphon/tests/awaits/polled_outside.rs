//! Questions that are polled where their call is not: the caller learns nothing, the log says what to do.

use crate::common::tool_call::*;
use crate::common::{log::take_log_of_all_threads, *};
use antiphon::{
    Result,
    server::{Ctx, NoArguments, Server, Tool},
};
use futures_util::{FutureExt as _, future::BoxFuture};
use serde_json::{Value, json};

type Handler = for<'a> fn(&'a Ctx) -> BoxFuture<'a, Result<String>>;

/// Returns the closure unchanged. The bound lets its future borrow the context.
fn lent<F: for<'a> Fn(&'a Ctx, NoArguments) -> BoxFuture<'a, Result<String>>>(handler: F) -> F {
    handler
}

#[tokio::test]
async fn what_is_polled_outside_of_its_call_ends_the_request() {
    take_log_of_all_threads();
    let handlers: [Handler; 3] = [
        |ctx| {
            Box::pin(async {
                std::thread::scope(|threads| {
                    threads.spawn(|| ctx.checkpoint().now_or_never());
                });
                Ok("not seen".to_owned())
            })
        },
        |ctx| {
            Box::pin(async {
                let polled = std::thread::scope(|threads| {
                    let thread = threads.spawn(|| futures_executor(ctx.roots()));
                    thread.join()
                });
                polled.unwrap()?;
                Ok("not seen".to_owned())
            })
        },
        |ctx| {
            Box::pin(async {
                let step = ctx.step("late", async |_| Ok(String::new()));
                let joined = std::thread::scope(|threads| threads.spawn(|| futures_executor(step)).join());
                Ok(joined.unwrap()?)
            })
        },
    ];
    for handler in handlers {
        let tool = Tool::new("t", lent(move |ctx, _| handler(ctx)));
        let server = Server::builder("outside", "1").tool(tool).keys(ring(7)).build().unwrap();
        let reply = ToolCall::new(json!({})).leg(&server, Value::Null).await;
        // > Internal error
        assert_eq!(reply["error"]["code"], -32603, "{reply}");
        assert!(!reply.to_string().contains("polled"), "{reply}");
        let log = take_log_of_all_threads();
        assert!(log.contains("await questions and steps in the handler itself"), "{log}");
        assert!(log.contains("a request panicked"), "{log}");
    }
}

/// `block_on`, without a runtime.
fn futures_executor<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let waker = std::task::Waker::noop();
    loop {
        if let std::task::Poll::Ready(output) =
            future.as_mut().poll(&mut std::task::Context::from_waker(waker))
        {
            return output;
        }
        std::thread::yield_now();
    }
}
