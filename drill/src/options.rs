//! The options of the command line.

use crate::{error::Result, store::WITHOUT_DBOS};
use std::fmt;

/// True in a build with mutants: `drill/mutants/base.patch` turns it on.
const HAS_MUTANTS: bool = false;

/// The options of a run. Without a number of calls and a time, it is a run in full size.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) calls: Option<u64>,
    pub(crate) seconds: Option<u64>,
    pub(crate) store: String,
    pub(crate) seed: u64,
    pub(crate) people: u64,
    /// The lease, in milliseconds.
    pub(crate) lease: u64,
    pub(crate) mutant: Option<String>,
    /// Kills only, at random points, and the same plan for each call.
    pub(crate) crash: bool,
    /// Tasks in the place of calls.
    pub(crate) tasks: bool,
}

impl Options {
    /// Reads the command line.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            calls: None,
            seconds: None,
            store: "sqlite".to_owned(),
            seed: crate::clock::micros() % 1_000_000,
            people: 0,
            lease: 2000,
            mutant: None,
            crash: false,
            tasks: false,
        };
        while let Some(word) = words.next() {
            if word == "--crash" {
                options.crash = true;
                continue;
            }
            if word == "--tasks" {
                options.tasks = true;
                continue;
            }
            let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
            match word.as_str() {
                "--calls" => options.calls = Some(value.parse()?),
                "--seconds" => options.seconds = Some(value.parse()?),
                "--store" => options.store = value,
                "--seed" => options.seed = value.parse()?,
                "--people" => options.people = value.parse()?,
                "--lease" => options.lease = value.parse()?,
                "--mutant" => options.mutant = Some(value),
                other => return Err(format!("unknown option {other}").into()),
            }
        }
        if options.mutant.is_some() && !HAS_MUTANTS {
            return Err("this build has no mutants: see drill/run.sh".into());
        }
        if options.tasks && options.crash {
            return Err("--crash is a run of calls".into());
        }
        if options.tasks && !["sqlite", "dbos"].contains(&&*options.store) {
            return Err(format!(
                "--tasks needs --store sqlite or dbos: processes share no tasks in {}",
                options.store
            )
            .into());
        }
        if options.store == "dbos" && !options.tasks {
            return Err("--store dbos is a run of tasks: the calls there are in PostgreSQL".into());
        }
        if options.store == "dbos" && cfg!(not(feature = "dbos")) {
            return Err(WITHOUT_DBOS.into());
        }
        let is_full = options.calls.is_none() && options.seconds.is_none();
        if is_full {
            options.calls = Some(if options.tasks { 200 } else { 5000 });
        }
        if options.people == 0 {
            options.people = if is_full && !options.tasks { 200 } else { 16 };
        }
        Ok(options)
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.tasks {
            true => "drill of tasks",
            false if self.crash => "crash drill",
            false => "fleet drill",
        };
        write!(f, "{mode}: store {}, seed {}, {} people", self.store, self.seed, self.people)?;
        write!(f, ", lease {} ms", self.lease)?;
        match &self.mutant {
            Some(mutant) => write!(f, ", mutant {mutant}"),
            None => Ok(()),
        }
    }
}
