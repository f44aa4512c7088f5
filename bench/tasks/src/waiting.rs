//! Many tasks that wait, and the one of them that is answered.

use crate::{
    client::TaskClient,
    engine::Engine,
    measured::{Result, median},
};
use std::time::Instant;

/// The number of tasks that are answered, one after the other.
const ANSWERED: usize = 21;

/// Creates the tasks, answers some of them, and prints a line.
pub(crate) async fn measure(engine: &Engine, number: usize) -> Result<()> {
    let client = TaskClient::new(engine)?;
    let alone = answered(&client, &created(&client, ANSWERED).await?).await?;
    let before = resident()?;
    let ids = created(&client, number).await?;
    let each = (resident()?.saturating_sub(before)) as f64 / number as f64;
    let step = (number / ANSWERED).max(1);
    let chosen: Vec<String> = ids.into_iter().step_by(step).collect();
    let among = answered(&client, &chosen).await?;
    println!("| {} | {number} | {each:.1} | {:.2} | {:.2} |", engine.name, among / 1e3, alone / 1e3);
    Ok(())
}

/// Creates tasks that all wait for their answer.
async fn created(client: &TaskClient, number: usize) -> Result<Vec<String>> {
    let mut ids = Vec::with_capacity(number);
    for _ in 0..number {
        let id = client.create().await?;
        client.until_asked(&id).await?;
        ids.push(id);
    }
    Ok(ids)
}

/// Answers the tasks. Returns the median of the microseconds from an answer to the result.
async fn answered(client: &TaskClient, ids: &[String]) -> Result<f64> {
    let mut times = Vec::new();
    for id in ids {
        let begin = Instant::now();
        client.answer(id).await?;
        client.until_completed(id).await?;
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(&mut times))
}

/// The resident memory of this process, in KiB.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
