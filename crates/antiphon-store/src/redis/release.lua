-- Gives the leg back. ARGV: now, fence
local row = find_fence(ARGV[2])
if not row or row.phase == '1' then return { 'lost' } end
redis.call('HSET', key, 'phase', '2', 'lease', '0')
expire_at(row.keep)
return { 'written' }
