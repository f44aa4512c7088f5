-- KEYS[1] is the only key of each script: a hash for each call, and one for each blob. ARGV[1] is the time of a test, or empty.
-- Fields of a call: leg, fp, run, fence, phase (0 running, 1 done, 2 released), lease, keep, out, and n, the number of steps.
-- Step number i is in the fields o<i> ("leg event name") and s<event> <name> (its value). Times are microseconds since 1970.
local key = KEYS[1]
local function text(number) return string.format('%.0f', number) end
local now = tonumber(ARGV[1])
if not now then
    local time = redis.call('TIME')
    now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
-- The server removes a key one minute after its end. The scripts compare the end themselves.
local function expire_at(moment) redis.call('PEXPIRE', key, text(math.ceil((moment - now) / 1000) + 60000)) end
local function find()
    local found = redis.call('HMGET', key, 'leg', 'fp', 'run', 'fence', 'phase', 'lease', 'keep', 'n')
    if not found[1] then return nil end
    local row = { leg = tonumber(found[1]), fp = found[2], run = found[3], fence = tonumber(found[4]), phase = found[5],
        lease = tonumber(found[6]), keep = tonumber(found[7]), n = tonumber(found[8]) }
    row.ends = row.keep
    if row.phase == '0' and row.lease > row.ends then row.ends = row.lease end
    if now >= row.ends then return nil end
    return row
end
local function find_fence(fence)
    local row = find()
    if row and row.fence == tonumber(fence) then return row end
    return nil
end
local function step(number)
    local leg, event, name = string.match(redis.call('HGET', key, 'o' .. text(number)), '^(%d+) (%d+) (.*)$')
    return { leg = tonumber(leg), event = event, name = name }
end
