//! Upper bounds on the cost of a schema, computed without a value.
//!
//! Work is counted in steps: a visit of one schema at one value is about one step. The count is an upper bound: it includes
//! every branch and assumes only one optimization of the validator (see [`Edge::remembered`]).

use super::{
    document::Document,
    fault::{self, MAX_CHAIN, MAX_COMPILED, MAX_WORK, NESTED_COMPILATIONS, SchemaFault},
    keywords::Applied,
    reference::Reference,
};
use serde_json::Value;
use std::collections::HashMap;

/// Upper bounds for a schema and all that it applies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bound {
    /// The number of weighted visits.
    pub(super) steps: u64,
    /// The number of matched regular expressions.
    pub(super) matches: u64,
    /// The maximum number of nested schemas.
    pub(super) chain: u32,
}

impl Bound {
    const ENDLESS: Self = Self { steps: u64::MAX, matches: u64::MAX, chain: u32::MAX };

    fn add(&mut self, other: Self) {
        self.steps = self.steps.saturating_add(other.steps);
        self.matches = self.matches.saturating_add(other.matches);
        self.chain = self.chain.max(other.chain);
    }
}

/// A schema and its references to the schemas that it applies.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) own: Bound,
    /// The number of regular expressions for names of members.
    pub(super) patterns: u64,
    /// The number of `unevaluated...` keywords. Each repeats the visits of the schemas in place.
    pub(super) unevaluated: u64,
    pub(super) in_place: Vec<Edge>,
    pub(super) named: HashMap<String, usize>,
    pub(super) matched: Vec<usize>,
    pub(super) other: Vec<usize>,
    pub(super) names: Vec<usize>,
    pub(super) prefix: HashMap<usize, Vec<usize>>,
    pub(super) items: Vec<usize>,
    /// The bound at a value without members: the schemas in place, with multiplicities.
    pub(super) flat: Bound,
    /// The bound at a value without members, when an `unevaluated...` keyword repeats the visit.
    pub(super) flat_again: Bound,
    /// The bound per value: all schemas that are applied on any path. Endless if the schema is recursive.
    pub(super) unfolded: Bound,
    /// The number of the strongly connected component.
    pub(super) component: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) to: usize,
    /// The bound on a reference that closes a recursion with no other target. The validator caches the verdict of such a
    /// target per object or array, so the target is visited once, not once per path.
    pub(super) remembered: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Costs {
    pub(super) rules: Vec<Rules>,
    pub(super) steps_per_byte: u64,
    /// True if work that the validator caches may be counted once.
    pub(super) remembers: bool,
}

/// The minimum number of visits of a verdict that the validator caches. Cheaper ones are repeated.
const FORGOTTEN: u64 = 16;

impl Costs {
    pub(super) fn of(document: &Document<'_>, references: &[Reference]) -> Result<Self, SchemaFault> {
        let mut rules: Vec<Rules> =
            (0..document.nodes.len()).map(|index| own_rules(document, index)).collect();
        for reference in references {
            rules[reference.from].in_place.push(Edge { to: reference.to, remembered: None });
        }
        let in_place: Vec<Vec<usize>> =
            rules.iter().map(|rules| rules.in_place.iter().map(|edge| edge.to).collect()).collect();
        let (order, cycle) = postorder(&in_place);
        if let Some(node) = cycle {
            return Err(SchemaFault::Endless(fault::short(&document.pointer(node))));
        }
        for node in order {
            flatten(&mut rules, node);
            if rules[node].flat.chain > MAX_CHAIN {
                return Err(SchemaFault::Chain);
            }
            if rules[node].flat.steps > MAX_WORK {
                return Err(SchemaFault::Costly);
            }
        }
        let all: Vec<Vec<usize>> = rules.iter().map(|rules| rules.applied().collect()).collect();
        let (order, _) = postorder(&all);
        unfold(&mut rules, &order);
        let component = components(&all, &order);
        let ways = rules[0].unfolded.chain.min(longest_ways(&all, &order, &component));
        let compiled = rules[0].unfolded.chain.min(document.deepest().saturating_mul(NESTED_COMPILATIONS));
        if ways > MAX_CHAIN || compiled > MAX_COMPILED {
            return Err(SchemaFault::Chain);
        }
        for (rules, &component) in rules.iter_mut().zip(&component) {
            rules.component = component;
        }
        let remembers = rules.iter().all(|rules| rules.unevaluated == 0);
        if remembers {
            remember(&mut rules, references, &all, &component);
        }
        Ok(Self { rules, steps_per_byte: 0, remembers })
    }
}

impl Rules {
    /// All applied schemas, one entry per path.
    fn applied(&self) -> impl Iterator<Item = usize> {
        let lists = [&self.matched, &self.other, &self.names, &self.items];
        let in_place = self.in_place.iter().map(|edge| edge.to);
        let below = lists.into_iter().chain(self.prefix.values()).flatten().copied();
        in_place.chain(below).chain(self.named.values().copied())
    }
}

fn own_rules(document: &Document<'_>, index: usize) -> Rules {
    let mut rules = Rules::default();
    let node = &document.nodes[index];
    rules.own = Bound { steps: 1, matches: 0, chain: 1 };
    for (keyword, value) in node.value.as_object().into_iter().flatten() {
        rules.own.steps += match &**keyword {
            "const" | "enum" => size(value),
            "default" | "examples" => 0,
            _ => 1 + value.as_array().map_or(0, Vec::len) as u64,
        };
        match (&**keyword, value) {
            ("pattern", _) => rules.own.matches += 1,
            ("patternProperties", Value::Object(patterns)) => rules.patterns += patterns.len() as u64,
            ("dependentRequired" | "dependencies", Value::Object(names)) => {
                rules.own.steps += names.values().map(size).sum::<u64>();
            }
            ("unevaluatedProperties" | "unevaluatedItems", _) => rules.unevaluated += 1,
            _ => {}
        }
    }
    for (applied, to) in &node.edges {
        let to = *to;
        match applied {
            Applied::InPlace => rules.in_place.push(Edge { to, remembered: None }),
            Applied::Property(name) => {
                rules.named.insert(name.clone(), to);
            }
            Applied::Pattern => rules.matched.push(to),
            Applied::OtherProperty => rules.other.push(to),
            Applied::Name => rules.names.push(to),
            Applied::Item(at) => rules.prefix.entry(*at).or_default().push(to),
            Applied::EveryItem => rules.items.push(to),
            Applied::Nowhere => {}
        }
    }
    rules
}

/// The values directly in a value.
fn size(value: &Value) -> u64 {
    let (mut count, mut open) = (0, vec![value]);
    while let Some(value) = open.pop() {
        count += 1;
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            Value::String(text) => count += text.len() as u64 / 64,
            _ => {}
        }
    }
    count
}

/// Returns the nodes in topological order, targets first, and a node on a cycle, if there is one. Not recursive.
fn postorder(edges: &[Vec<usize>]) -> (Vec<usize>, Option<usize>) {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut states = vec![State::New; edges.len()];
    let (mut order, mut cycle) = (Vec::with_capacity(edges.len()), None);
    for start in 0..edges.len() {
        let mut open = vec![(start, 0)];
        if states[start] != State::New {
            continue;
        }
        states[start] = State::Open;
        while let Some((node, at)) = open.last_mut() {
            match edges[*node].get(*at) {
                None => {
                    states[*node] = State::Done;
                    order.push(*node);
                    open.pop();
                }
                Some(&next) => {
                    *at += 1;
                    match states[next] {
                        State::New => {
                            states[next] = State::Open;
                            open.push((next, 0));
                        }
                        State::Open => cycle = Some(next),
                        State::Done => {}
                    }
                }
            }
        }
    }
    (order, cycle)
}

/// Computes the bounds. Requires the bounds of the schemas in place.
fn flatten(rules: &mut [Rules], node: usize) {
    let (mut flat, mut again) = (Bound::default(), Bound::default());
    for edge in &rules[node].in_place {
        flat.add(rules[edge.to].flat);
        again.add(rules[edge.to].flat_again);
    }
    for _ in 0..rules[node].unevaluated {
        flat.add(again);
    }
    flat.add(rules[node].own);
    flat.chain = flat.chain.max(again.chain).saturating_add(1);
    again.add(flat);
    rules[node].flat = flat;
    rules[node].flat_again = again;
}

fn unfold(rules: &mut [Rules], order: &[usize]) {
    let mut done = vec![None; rules.len()];
    let mut again = vec![Bound::default(); rules.len()];
    for &node in order {
        let mut bound = Bound::default();
        for to in rules[node].applied() {
            // An unfinished node is on the current path, so this is a recursion.
            bound.add(done[to].unwrap_or(Bound::ENDLESS));
        }
        let mut looked = Bound::default();
        for edge in &rules[node].in_place {
            looked.add(again[edge.to]);
        }
        for _ in 0..rules[node].unevaluated {
            bound.add(looked);
        }
        bound.add(rules[node].own);
        bound.add(Bound { steps: rules[node].patterns, matches: rules[node].patterns, chain: 0 });
        bound.chain = bound.chain.saturating_add(1);
        done[node] = Some(bound);
        looked.add(bound);
        again[node] = looked;
        rules[node].unfolded = bound;
    }
}

/// Marks the references that close a recursion with a single target.
fn remember(rules: &mut [Rules], references: &[Reference], all: &[Vec<usize>], component: &[usize]) {
    let mut targets: HashMap<usize, Option<usize>> = HashMap::new();
    for reference in references.iter().filter(|it| component[it.from] == component[it.to]) {
        let target = targets.entry(component[reference.to]).or_insert(Some(reference.to));
        if *target != Some(reference.to) {
            *target = None;
        }
    }
    for target in targets.into_values().flatten() {
        let within = |node: usize| component[node] == component[target];
        // One iteration of the recursion: without the references to the target, the component has no cycle.
        let mut round: HashMap<usize, u64> = HashMap::new();
        let inner: Vec<Vec<usize>> = all
            .iter()
            .enumerate()
            .map(|(node, edges)| match within(node) {
                true => edges.iter().copied().filter(|&to| within(to) && to != target).collect(),
                false => Vec::new(),
            })
            .collect();
        for node in postorder(&inner).0.into_iter().filter(|&node| within(node)) {
            let mut steps = rules[node].own.steps.saturating_add(rules[node].patterns);
            for &to in all[node].iter().filter(|&&to| to != target) {
                let below = round.get(&to).copied().unwrap_or(rules[to].unfolded.steps);
                steps = steps.saturating_add(below);
            }
            round.insert(node, steps);
        }
        let once = round.get(&target).copied().unwrap_or(u64::MAX).saturating_mul(FORGOTTEN);
        for reference in references.iter().filter(|it| it.to == target && within(it.from)) {
            for edge in rules[reference.from].in_place.iter_mut().filter(|edge| edge.to == target) {
                edge.remembered = Some(once);
            }
        }
    }
}

/// Returns an upper bound on the length of the longest path from the root without a repeated schema.
fn longest_ways(all: &[Vec<usize>], order: &[usize], component: &[usize]) -> u32 {
    // The size of a component bounds a path in it. Components are in the order in which their first nodes were finished, so
    // those below are complete.
    let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
    component.iter().enumerate().for_each(|(node, &it)| members.entry(it).or_default().push(node));
    let mut longest: HashMap<usize, u32> = HashMap::new();
    for root in order.iter().filter(|&&node| component[node] == node) {
        let nodes = members.get(root).map_or(&[][..], |nodes| nodes);
        let below = nodes.iter().flat_map(|&node| &all[node]).map(|&to| component[to]);
        let below = below.filter(|it| it != root).filter_map(|it| longest.get(&it)).max();
        let size = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        let whole = size.saturating_add(below.copied().unwrap_or(0));
        longest.insert(*root, whole);
    }
    component.first().and_then(|it| longest.get(it)).copied().unwrap_or(u32::MAX)
}

/// Returns the component of each node: the number of its node that was finished last.
fn components(all: &[Vec<usize>], order: &[usize]) -> Vec<usize> {
    let mut back = vec![Vec::new(); all.len()];
    for (node, edges) in all.iter().enumerate() {
        edges.iter().for_each(|&to| back[to].push(node));
    }
    let mut component = vec![usize::MAX; all.len()];
    for &root in order.iter().rev() {
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            if component[node] == usize::MAX {
                component[node] = root;
                open.extend(&back[node]);
            }
        }
    }
    component
}
