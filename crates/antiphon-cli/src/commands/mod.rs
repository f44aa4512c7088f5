//! The commands, one file for each group.

mod call;
mod keygen;
mod list;
mod listen;
mod serve;
mod task;

use crate::{
    args::{CallTaskArgs, Cli, Command, ReceiptCommand},
    arguments::Arguments,
    console,
    drive::Start,
    ended_by_signal,
    failure::{Exit, Failure},
    sign_in,
};
use antiphon::client::Call;
use clap::Parser as _;
use std::process::ExitCode;
use tracing_subscriber::{
    Layer as _,
    filter::{LevelFilter, Targets},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

/// Runs the program: parses the command line, and returns the exit code.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let level = match (cli.verbose, cli.quiet) {
        (true, _) => LevelFilter::DEBUG,
        (_, true) => LevelFilter::ERROR,
        _ => LevelFilter::WARN,
    };
    if cli.quiet {
        console::be_quiet();
    }
    // The library of HTTP/2 logs each frame: of other crates, warnings are enough.
    let targets = Targets::new().with_target("antiphon", level).with_default(level.min(LevelFilter::WARN));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| console::LogWriter)
        .with_ansi(false)
        .with_target(false);
    // Without `-v` a warning stands beside the error that follows: no log, no times.
    let lines = if cli.verbose { lines.boxed() } else { lines.without_time().boxed() };
    tracing_subscriber::registry().with(lines).with(targets).init();
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
    ended_by_signal::code().map_or_else(|| exit.into(), ExitCode::from)
}

async fn command(cli: Cli) -> Result<Exit, Failure> {
    let log: Option<fn(&str)> = if cli.verbose { Some(console::note) } else { None };
    match cli.command {
        Command::Demo { answers, store } => serve::demo(answers, &store).await,
        Command::ServeDemo(args) => serve::serve(args).await,
        Command::Call { tool, arguments, task, call_args, target } => {
            let start = target.split().and_then(|(words, target)| {
                Ok((Start::Tool(tool, Arguments::read(arguments, words)?), target))
            });
            call::run(start, (call_args, task), log).await
        }
        Command::Task(command) => task::task(command, log).await,
        Command::Tasks(command) => task::tasks(command).await,
        Command::Calls { answers, client, wait, log_level, target } => {
            call::calls(answers, client, (wait, log_level), &target, log).await
        }
        Command::Prompt { name, arguments, call_args, target } => {
            let start = target.split().and_then(|(words, target)| {
                Ok((Start::New(Arguments::read(arguments, words)?.prompt(name)?), target))
            });
            call::run(start, (call_args, CallTaskArgs::default()), log).await
        }
        Command::Read { uri, call_args, target } => {
            let start = Ok((Start::New(Call::resource(uri)), target));
            call::run(start, (call_args, CallTaskArgs::default()), log).await
        }
        Command::Resume { file, call_args, target } => call::resume(&file, call_args, target, log).await,
        Command::Tools(args) => list::tools(args, log).await,
        Command::Prompts(args) => list::prompts(args, log).await,
        Command::Resources(args) => list::resources(args, log).await,
        Command::Complete(args) => list::complete(args, log).await,
        Command::Listen(args) => listen::listen(args, log).await,
        Command::Discover(args) => list::discover(&args, log).await,
        Command::Login(args) => sign_in::login(&args).await,
        Command::Logout(args) => sign_in::logout(&args).await,
        Command::Whoami(args) => sign_in::whoami(&args).await,
        Command::Token(args) => sign_in::token(&args).await,
        Command::Keygen(args) => keygen::keygen(&args),
        Command::Receipt(ReceiptCommand::Verify(args)) => keygen::verify(&args),
    }
}
