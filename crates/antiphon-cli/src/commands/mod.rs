//! The commands, one file for each kind.

mod ask_server;
mod call;
mod complete;
mod demo;
mod keygen;
mod list;
mod listen;
mod serve;

use crate::{
    args::{Cli, Command},
    console,
    failure::{Exit, Failure},
};
use clap::Parser as _;
use std::{io, process::ExitCode};
use tracing_subscriber::filter::LevelFilter;

/// Runs the program: reads the command line, and returns the exit code that the help explains.
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
    // A read of standard input may still be waiting: it is not waited for.
    runtime.shutdown_background();
    exit.into()
}

async fn command(cli: Cli) -> Result<Exit, Failure> {
    let tell: Option<fn(&str)> = if cli.verbose { Some(console::note) } else { None };
    match cli.command {
        Command::Demo { answers } => demo::demo(answers).await,
        Command::ServeDemo(args) => serve::serve(args).await,
        Command::Call { tool, arguments, how, target } => {
            call::run(|| call::tool(tool, arguments), how, &target, tell).await
        }
        Command::Prompt { name, arguments, how, target } => {
            call::run(|| call::prompt(name, arguments), how, &target, tell).await
        }
        Command::Read { uri, how, target } => call::run(|| Ok(call::resource(uri)), how, &target, tell).await,
        Command::Resume { file, how, target } => call::resume(&file, how, &target, tell).await,
        Command::Tools(args) => list::tools(&args, tell).await,
        Command::Prompts(args) => list::prompts(&args, tell).await,
        Command::Resources(args) => list::resources(&args, tell).await,
        Command::Complete(args) => complete::complete(args, tell).await,
        Command::Listen(args) => listen::listen(args, tell).await,
        Command::Discover(args) => list::discover(&args, tell).await,
        Command::Keygen => keygen::keygen(),
    }
}
