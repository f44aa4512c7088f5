//! Checks of the demo's `server/discover` and lists.

use crate::{
    check::{Check, CheckResult, checks, expect_equal},
    fleet::Fleet,
};
use rmcp::model::{ProtocolVersion, RequestMetaObject};
use serde_json::{Value, json};

pub(crate) const CHECKS: &[(&str, Check)] = checks! {
    "server/discover: version, capabilities, server name" => discover,
    "tools/list: the tools; questions are not arguments" => tools,
    "prompts/list: briefing, which requires nothing" => prompts,
    "resources/list: none" => resources,
    "resources/templates/list: report://{id}" => templates,
};

async fn discover(fleet: &Fleet) -> CheckResult {
    let found = fleet.client.peer_info().ok_or("no discovery")?;
    expect_equal(&found.protocol_version, &ProtocolVersion::V_2026_07_28)?;
    let name = found.server_info.as_ref().map(|server| server.name.as_str());
    expect_equal(&name, &Some("antiphon-demo"))?;
    let mut meta = RequestMetaObject::default();
    meta.set_protocol_version(ProtocolVersion::V_2026_07_28);
    let again = fleet.client.discover(meta).await.map_err(|error| error.to_string())?;
    let again = value(&again)?;
    expect_equal(&again["resultType"], &json!("complete"))?;
    expect_equal(&again["supportedVersions"], &json!(["2026-07-28"]))?;
    for capability in ["tools", "prompts", "resources"] {
        if !again["capabilities"][capability].is_object() {
            return Err(format!("{capability} is not among {}", again["capabilities"]));
        }
    }
    Ok(())
}

async fn tools(fleet: &Fleet) -> CheckResult {
    let wanted = json!({
        "echo": ["text"],
        "provision": ["name"],
        "get_weather": ["location"],
        "update_work_item": ["fields", "workItemId"],
        "book_table": ["date", "party_size"],
        "delete_folder": ["path"],
        "pick_file": ["path"],
        "pay_deposit": ["booking_id"],
        "deposit_status": ["booking_id"],
        "charge_once": ["amount"],
        "load_shedding": ["portions"],
        "ask_the_model": ["question"],
        "rolling_upgrade": [],
    });
    let listed = fleet.client.list_all_tools().await.map_err(|error| error.to_string())?;
    expect_equal(&listed.len(), &wanted.as_object().map_or(0, serde_json::Map::len))?;
    for tool in listed {
        let schema = value(&tool.input_schema)?;
        expect_equal(&schema["type"], &json!("object"))?;
        let mut arguments: Vec<&String> =
            schema["properties"].as_object().into_iter().flat_map(|all| all.keys()).collect();
        arguments.sort();
        expect_equal(&json!(arguments), &wanted[tool.name.as_ref()])?;
        let mut required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        required.sort_unstable();
        expect_equal(&json!(required), &wanted[tool.name.as_ref()])?;
    }
    Ok(())
}

async fn prompts(fleet: &Fleet) -> CheckResult {
    let listed = fleet.client.list_all_prompts().await.map_err(|error| error.to_string())?;
    expect_equal(&listed.len(), &1)?;
    expect_equal(&listed[0].name.as_str(), &"briefing")?;
    let arguments = listed[0].arguments.clone().unwrap_or_default();
    expect_equal(&arguments.len(), &1)?;
    expect_equal(&arguments[0].name.as_str(), &"topic")?;
    expect_equal(&arguments[0].required.unwrap_or_default(), &false)
}

async fn resources(fleet: &Fleet) -> CheckResult {
    let listed = fleet.client.list_all_resources().await.map_err(|error| error.to_string())?;
    expect_equal(&listed.len(), &0)
}

async fn templates(fleet: &Fleet) -> CheckResult {
    let listed = fleet.client.list_all_resource_templates().await.map_err(|error| error.to_string())?;
    let uris: Vec<&str> = listed.iter().map(|template| template.uri_template.as_str()).collect();
    expect_equal(&uris, &vec!["report://{id}"])
}

fn value(of: &impl serde::Serialize) -> Result<Value, String> {
    serde_json::to_value(of).map_err(|fault| fault.to_string())
}
