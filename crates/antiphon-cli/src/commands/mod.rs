//! The commands, one file for each group.

mod call;
mod complete;
mod demo;
mod keygen;
mod list;
mod listen;
mod query;
mod serve;

use crate::{
    args::{Cli, Command},
    console,
    failure::{Exit, Failure},
};
use clap::Parser as _;
use std::{io, process::ExitCode};
use tracing_subscriber::filter::LevelFilter;

/// Runs the program: parses the command line, and returns the exit code.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let level = if cli.verbose { LevelFilter::DEBUG } else { LevelFilter::WARN };
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_target(false)
        .with_max_level(level)
        .init();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(fault) => {
            console::failed(&Failure::io("no runtime", &fault));
            return Exit::Protocol.into();
        }
    };
    let exit = runtime.block_on(command(cli)).unwrap_or_else(|failure| {
        console::failed(&failure);
        failure.exit
    });
    // A pending read of standard input would block a normal shutdown.
    runtime.shutdown_background();
    exit.into()
}

async fn command(cli: Cli) -> Result<Exit, Failure> {
    let log: Option<fn(&str)> = if cli.verbose { Some(console::note) } else { None };
    match cli.command {
        Command::Demo { answers } => demo::demo(answers).await,
        Command::ServeDemo(args) => serve::serve(args).await,
        Command::Call { tool, arguments, call_args, target } => {
            call::run(|| call::tool(tool, arguments), call_args, &target, log).await
        }
        Command::Prompt { name, arguments, call_args, target } => {
            call::run(|| call::prompt(name, arguments), call_args, &target, log).await
        }
        Command::Read { uri, call_args, target } => {
            call::run(|| Ok(call::resource(uri)), call_args, &target, log).await
        }
        Command::Resume { file, call_args, target } => call::resume(&file, call_args, &target, log).await,
        Command::Tools(args) => list::tools(&args, log).await,
        Command::Prompts(args) => list::prompts(&args, log).await,
        Command::Resources(args) => list::resources(&args, log).await,
        Command::Complete(args) => complete::complete(args, log).await,
        Command::Listen(args) => listen::listen(args, log).await,
        Command::Discover(args) => list::discover(&args, log).await,
        Command::Keygen => keygen::keygen(),
    }
}
