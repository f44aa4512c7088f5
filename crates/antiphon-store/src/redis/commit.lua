-- Stores the outcome. ARGV: now, fence, outcome
local row = find_fence(ARGV[2])
if not row or row.phase == '2' then return { 'lost' } end
if row.phase == '1' then
    if redis.call('HGET', key, 'out') == ARGV[3] then return { 'written' } end
    return { 'lost' }
end
redis.call('HSET', key, 'phase', '1', 'lease', '0', 'out', ARGV[3])
expire_at(row.keep)
return { 'written' }
