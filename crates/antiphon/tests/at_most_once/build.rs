//! Settings that do not fit are errors of the build.

use super::*;

#[test]
fn a_server_says_what_its_protection_lacks() {
    let tool = || shop(&Effects::default());
    let build = |change: fn(ServerBuilder) -> ServerBuilder, tool: Tool| {
        change(Server::builder("shop", "1").tool(tool)).build().map(drop).map_err(|error| error.to_string())
    };
    let in_memory = |builder: ServerBuilder| builder.single_use(true).store(MemoryStore::new());
    assert!(build(|b| b.single_use(true), tool()).unwrap_err().contains(".store("));
    assert!(build(|b| b, tool().write_ahead(true)).unwrap_err().contains(".store("));
    assert_eq!(build(in_memory, tool()), Ok(()), "random keys: nobody else can open a state");
    let shared = in_memory(Server::builder("shop", "1").tool(tool()).keys(common::ring(7)));
    assert!(shared.build().unwrap_err().to_string().contains("single_instance"));
    let alone =
        in_memory(Server::builder("shop", "1").tool(tool()).keys(common::ring(7))).single_instance(true);
    assert!(alone.build().is_ok());
    let several = in_memory(Server::builder("shop", "1").tool(tool()).keys(common::ring(7)))
        .single_instance(true)
        .single_instance(false);
    assert!(several.build().is_err());
    let short = |lease| {
        use antiphon::server::{ClaimOptions, Limits};
        use std::time::Duration;
        in_memory(Server::builder("shop", "1").tool(tool()))
            .limits(Limits::default().step_grace(Duration::from_secs(5)))
            .claim_options(ClaimOptions::default().lease(Duration::from_secs(lease)))
            .build()
    };
    assert!(short(9).unwrap_err().to_string().contains("step_grace"));
    assert!(short(10).is_ok());
}
