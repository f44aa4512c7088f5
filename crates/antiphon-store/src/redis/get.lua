-- Returns a blob whose time is not over. ARGV: now
local keep = tonumber(redis.call('HGET', key, 'keep') or 0)
if now >= keep then return {} end
return { redis.call('HGET', key, 'value') }
