//! The function: `cargo lambda build`, or `cargo build --target x86_64-unknown-linux-musl` and a file named `bootstrap`.

use antiphon_example_lambda::{Function, Settings};
use lambda_http::{Error, run, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let function = Function::new(Settings::from_environment()?);
    run(service_fn(|request| function.answer(request))).await
}
