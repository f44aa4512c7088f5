-- Appends a step's record. ARGV: now, fence, step, event, value
local row = find_fence(ARGV[2])
if not row or row.phase ~= '0' then return { 'lost' } end
local field = 's' .. ARGV[4] .. ' ' .. ARGV[3]
local value = redis.call('HGET', key, field)
if value then return { 'existing', value } end
redis.call('HSET', key, field, ARGV[5], 'o' .. text(row.n), text(row.leg) .. ' ' .. ARGV[4] .. ' ' .. ARGV[3],
    'n', text(row.n + 1))
return { 'written' }
