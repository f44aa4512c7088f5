-- Asks to run a leg. The rules are those of src/row.rs.
-- ARGV: now, leg, fingerprint, runner, take_over, leg and fingerprint of the predecessor, lease, keep
local leg, fp, run, take_over = tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5] == '1'
local lease, keep = now + tonumber(ARGV[8]), now + tonumber(ARGV[9])
local function grant(fence, keep_until)
    redis.call('HSET', key, 'leg', text(leg), 'fp', fp, 'run', run, 'fence', text(fence), 'phase', '0',
        'lease', text(lease), 'keep', text(keep_until), 'out', '')
    expire_at(math.max(lease, keep_until))
    return { 'fresh', text(fence) }
end
local row = find()
if not row then
    local fence = math.max(now, (tonumber(redis.call('HGET', key, 'fence') or 0)) + 1)
    redis.call('DEL', key)
    redis.call('HSET', key, 'n', '0')
    return grant(fence, keep)
end
if leg < row.leg then return { 'earlier' } end
local same_leg = leg == row.leg
local same_answers = same_leg and fp == row.fp
if same_leg and not same_answers then
    if row.phase ~= '2' then return { 'answers' } end
    for i = 0, row.n - 1 do
        if step(i).leg == row.leg then return { 'answers' } end
    end
end
if row.phase == '0' then
    -- The same claim again, because its reply was lost.
    if same_answers and row.run == run then return grant(row.fence, math.max(row.keep, keep)) end
    if now < row.lease then return { 'in_flight', text(row.lease - now) } end
    if not (same_answers and take_over) then
        -- The attempt that started last, of a step without an end.
        for i = row.n - 1, 0, -1 do
            local last = step(i)
            if last.event ~= '0' and redis.call('HEXISTS', key, 's0 ' .. last.name) == 0 then
                return { 'unknown', text(row.leg), last.event, last.name }
            end
        end
        return { 'unknown', text(row.leg) }
    end
elseif row.phase == '1' and same_answers then
    return { 'done', redis.call('HGET', key, 'out') }
elseif not same_leg and ARGV[6] ~= '' and (tonumber(ARGV[6]) ~= row.leg or ARGV[7] ~= row.fp) then
    return { 'predecessor' }
end
return grant(math.max(now, row.fence + 1), math.max(row.keep, keep))
